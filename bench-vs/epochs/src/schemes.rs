//! The schemes under test, each behind the three verbs that the map needs.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_epoch as epoch;
use seize::Guard as _;

use crate::arena::Arena;

/// A way to know when no reader can still see a retired slice.
pub(crate) trait Scheme: Sync {
    type Worker<'s>: Worker
    where
        Self: 's;
    /// A thread's handle.
    fn worker(&self) -> Self::Worker<'_>;
    /// Reclaims what is left, with no worker alive.
    fn drain(&self, arena: &'static Arena);
}

/// What one thread does.
pub(crate) trait Worker {
    /// Pins and unpins.
    fn pin(&self);
    /// Reads under a pin.
    fn read(&self, arena: &'static Arena, read: impl FnOnce(&Arena) -> u64) -> u64;
    /// Replaces the slice of an entry and retires the old one.
    fn replace(&self, arena: &'static Arena, entry: u32);
    /// Pins and retires something whose reclamation costs nothing.
    fn retire_nothing(&self, arena: &'static Arena);
}

/// No protection: the bound for reads.
pub(crate) struct Leak;

impl Scheme for Leak {
    type Worker<'s> = LeakWorker;
    fn worker(&self) -> LeakWorker {
        LeakWorker
    }
    fn drain(&self, _: &'static Arena) {}
}

pub(crate) struct LeakWorker;

impl Worker for LeakWorker {
    #[inline]
    fn pin(&self) {}
    #[inline]
    fn read(&self, arena: &'static Arena, read: impl FnOnce(&Arena) -> u64) -> u64 {
        read(arena)
    }
    fn replace(&self, _: &'static Arena, _: u32) {
        unreachable!("only reads are run without protection")
    }
    fn retire_nothing(&self, _: &'static Arena) {
        unreachable!("only reads are run without protection")
    }
}

/// crossbeam-epoch's default collector: one for the process, found through a thread local.
pub(crate) struct Crossbeam;

impl Scheme for Crossbeam {
    type Worker<'s> = CrossbeamWorker;
    fn worker(&self) -> CrossbeamWorker {
        CrossbeamWorker
    }
    fn drain(&self, arena: &'static Arena) {
        drain_pinning(arena, epoch::pin);
    }
}

pub(crate) struct CrossbeamWorker;

impl Worker for CrossbeamWorker {
    #[inline]
    fn pin(&self) {
        drop(epoch::pin());
    }
    #[inline]
    fn read(&self, arena: &'static Arena, read: impl FnOnce(&Arena) -> u64) -> u64 {
        let _guard = epoch::pin();
        read(arena)
    }
    #[inline]
    fn replace(&self, arena: &'static Arena, entry: u32) {
        let guard = epoch::pin();
        let old = arena.swap(entry);
        guard.defer(move || arena.reclaim(old));
    }
    #[inline]
    fn retire_nothing(&self, arena: &'static Arena) {
        let guard = epoch::pin();
        guard.defer(move || {
            std::hint::black_box(arena.entries);
        });
    }
}

/// crossbeam-epoch with a collector of the table's own and a handle for each thread.
pub(crate) struct CrossbeamOwn {
    collector: epoch::Collector,
}

impl CrossbeamOwn {
    pub(crate) fn new() -> Self {
        Self { collector: epoch::Collector::new() }
    }
}

impl Scheme for CrossbeamOwn {
    type Worker<'s> = CrossbeamOwnWorker;
    fn worker(&self) -> CrossbeamOwnWorker {
        CrossbeamOwnWorker { handle: self.collector.register() }
    }
    fn drain(&self, arena: &'static Arena) {
        let handle = self.collector.register();
        drain_pinning(arena, || handle.pin());
    }
}

pub(crate) struct CrossbeamOwnWorker {
    handle: epoch::LocalHandle,
}

impl Worker for CrossbeamOwnWorker {
    #[inline]
    fn pin(&self) {
        drop(self.handle.pin());
    }
    #[inline]
    fn read(&self, arena: &'static Arena, read: impl FnOnce(&Arena) -> u64) -> u64 {
        let _guard = self.handle.pin();
        read(arena)
    }
    #[inline]
    fn replace(&self, arena: &'static Arena, entry: u32) {
        let guard = self.handle.pin();
        let old = arena.swap(entry);
        guard.defer(move || arena.reclaim(old));
    }
    #[inline]
    fn retire_nothing(&self, arena: &'static Arena) {
        let guard = self.handle.pin();
        guard.defer(move || {
            std::hint::black_box(arena.entries);
        });
    }
}

fn drain_pinning(arena: &'static Arena, pin: impl Fn() -> epoch::Guard) {
    for _ in 0..100_000 {
        if arena.garbage() == 0 {
            return;
        }
        pin().flush();
    }
    assert_eq!(arena.garbage(), 0, "crossbeam-epoch reclaims all garbage once no thread is pinned");
}

/// seize (Hyaline-1): batches of retired pointers counted down by the readers of their time.
pub(crate) struct Seize {
    collector: seize::Collector,
}

impl Seize {
    pub(crate) fn new(batch: usize) -> Self {
        Self { collector: seize::Collector::new().batch_size(batch) }
    }
}

impl Scheme for Seize {
    type Worker<'s> = SeizeWorker<'s>;
    fn worker(&self) -> SeizeWorker<'_> {
        SeizeWorker { collector: &self.collector }
    }
    fn drain(&self, arena: &'static Arena) {
        // SAFETY: no worker is alive, so no guard is.
        unsafe { self.collector.reclaim_all() };
        assert_eq!(arena.garbage(), 0, "seize reclaims all garbage when told to");
    }
}

pub(crate) struct SeizeWorker<'s> {
    collector: &'s seize::Collector,
}

impl Worker for SeizeWorker<'_> {
    #[inline]
    fn pin(&self) {
        drop(self.collector.enter());
    }
    #[inline]
    fn read(&self, arena: &'static Arena, read: impl FnOnce(&Arena) -> u64) -> u64 {
        let _guard = self.collector.enter();
        read(arena)
    }
    #[inline]
    fn replace(&self, arena: &'static Arena, entry: u32) {
        let guard = self.collector.enter();
        let old = arena.swap(entry);
        // SAFETY: the swap made the slice unreachable for later readers.
        unsafe { guard.defer_retire(arena.address(old), reclaim_slice) };
    }
    #[inline]
    fn retire_nothing(&self, arena: &'static Arena) {
        let guard = self.collector.enter();
        // SAFETY: `reclaim_nothing` does not touch what it is given.
        unsafe { guard.defer_retire(arena.address(0), reclaim_nothing) };
    }
}

unsafe fn reclaim_slice(address: *mut u8, _: &seize::Collector) {
    // The map would find its arena from the slice's block header.
    let arena = Arena::the_one();
    arena.reclaim(arena.slice_at(address));
}

unsafe fn reclaim_nothing(address: *mut u8, _: &seize::Collector) {
    std::hint::black_box(address);
}

/// sdd: one epoch for the process, as scc uses it.
pub(crate) struct Sdd;

impl Scheme for Sdd {
    type Worker<'s> = SddWorker;
    fn worker(&self) -> SddWorker {
        SddWorker
    }
    fn drain(&self, arena: &'static Arena) {
        for _ in 0..1_000_000 {
            if arena.garbage() == 0 {
                return;
            }
            let guard = sdd::Guard::new();
            guard.accelerate();
        }
        assert_eq!(arena.garbage(), 0, "sdd reclaims all garbage once no thread is pinned");
    }
}

pub(crate) struct SddWorker;

impl Worker for SddWorker {
    #[inline]
    fn pin(&self) {
        drop(sdd::Guard::new());
    }
    #[inline]
    fn read(&self, arena: &'static Arena, read: impl FnOnce(&Arena) -> u64) -> u64 {
        let _guard = sdd::Guard::new();
        read(arena)
    }
    #[inline]
    fn replace(&self, arena: &'static Arena, entry: u32) {
        let guard = sdd::Guard::new();
        let old = arena.swap(entry);
        guard.defer_execute(move || arena.reclaim(old));
    }
    #[inline]
    fn retire_nothing(&self, arena: &'static Arena) {
        let guard = sdd::Guard::new();
        guard.defer_execute(move || {
            std::hint::black_box(arena.entries);
        });
    }
}

/// A collector of the table's own, its handle found in a list that each thread keeps.
///
/// What a map with its own collector must do, since its callers bring no handle.
pub(crate) struct CrossbeamFound {
    collector: epoch::Collector,
    id: u64,
}

thread_local! {
    /// This thread's handles, latest used first.
    static HANDLES: std::cell::RefCell<Vec<(u64, epoch::LocalHandle)>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl CrossbeamFound {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { collector: epoch::Collector::new(), id: NEXT.fetch_add(1, Relaxed) }
    }

    #[inline]
    fn pin(&self) -> epoch::Guard {
        HANDLES.with(|handles| {
            let mut handles = handles.borrow_mut();
            match handles.first() {
                Some((id, handle)) if *id == self.id => handle.pin(),
                _ => self.pin_slow(&mut handles),
            }
        })
    }

    #[cold]
    fn pin_slow(&self, handles: &mut Vec<(u64, epoch::LocalHandle)>) -> epoch::Guard {
        match handles.iter().position(|(id, _)| *id == self.id) {
            Some(found) => handles.swap(0, found),
            None => handles.insert(0, (self.id, self.collector.register())),
        }
        handles[0].1.pin()
    }
}

impl Scheme for CrossbeamFound {
    type Worker<'s> = CrossbeamFoundWorker<'s>;
    fn worker(&self) -> CrossbeamFoundWorker<'_> {
        CrossbeamFoundWorker { scheme: self }
    }
    fn drain(&self, arena: &'static Arena) {
        drain_pinning(arena, || self.pin());
        HANDLES.with(|handles| handles.borrow_mut().retain(|(id, _)| *id != self.id));
    }
}

pub(crate) struct CrossbeamFoundWorker<'s> {
    scheme: &'s CrossbeamFound,
}

impl Worker for CrossbeamFoundWorker<'_> {
    #[inline]
    fn pin(&self) {
        drop(self.scheme.pin());
    }
    #[inline]
    fn read(&self, arena: &'static Arena, read: impl FnOnce(&Arena) -> u64) -> u64 {
        let _guard = self.scheme.pin();
        read(arena)
    }
    #[inline]
    fn replace(&self, arena: &'static Arena, entry: u32) {
        let guard = self.scheme.pin();
        let old = arena.swap(entry);
        guard.defer(move || arena.reclaim(old));
    }
    #[inline]
    fn retire_nothing(&self, arena: &'static Arena) {
        let guard = self.scheme.pin();
        guard.defer(move || {
            std::hint::black_box(arena.entries);
        });
    }
}
