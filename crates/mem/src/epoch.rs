//! When has the last reader of a removed slice left?
//!
//! Readers pin themselves with [`Reclaimer::pin`]; whoever unlinks a slice gives
//! it to [`Reclaimer::retire`], which frees it once every thread that was pinned
//! at that moment has unpinned. Grace periods come from crossbeam-epoch, one
//! collector a table, so that a reader who stays long in one table holds back
//! nothing in another (why not seize: `docs/design/mem.md`); the bags of retired
//! slices are the table's own, so that their bytes are accounted for and a
//! dropped table waits for nobody.
//!
//! Source: K. Fraser, "Practical lock-freedom", 2004, chapter 5.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crossbeam_epoch::{Collector, LocalHandle};
use crossbeam_utils::CachePadded;

use crate::arena::{Arena, stripe_count, stripe_of_thread};
use crate::slice::SliceRef;

/// Proof that the current thread is pinned in one table: what it can reach there
/// stays.
pub struct Guard(crossbeam_epoch::Guard);

impl Guard {
    /// Lets go and pins again, unless an outer guard holds on. What was reached
    /// before must not be used any more.
    pub fn repin(&mut self) {
        self.0.repin();
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}

/// A thread's handle on the collector of one table.
struct Handle {
    table: u64,
    /// Dangles once the table was dropped.
    alive: Weak<Arena>,
    local: LocalHandle,
}

/// A thread's handles, the last one used in front.
#[derive(Default)]
struct Handles(Vec<Handle>);

impl Handles {
    /// The handle on `reclaimer`'s collector, in front from now on.
    #[inline]
    fn get(&mut self, reclaimer: &Reclaimer) -> &LocalHandle {
        if self.0.first().is_none_or(|first| first.table != reclaimer.table) {
            self.bring_to_front(reclaimer);
        }
        &self.0[0].local
    }

    #[cold]
    fn bring_to_front(&mut self, reclaimer: &Reclaimer) {
        let at = match self.0.iter().position(|handle| handle.table == reclaimer.table) {
            Some(at) => at,
            None => {
                self.0.retain(|handle| handle.alive.strong_count() > 0);
                self.0.push(Handle {
                    table: reclaimer.table,
                    alive: Arc::downgrade(&reclaimer.arena),
                    local: reclaimer.collector.register(),
                });
                self.0.len() - 1
            }
        };
        self.0.swap(0, at);
    }
}

#[cfg(not(loom))]
thread_local! {
    static HANDLES: RefCell<Handles> = const { RefCell::new(Handles(Vec::new())) };
}

// A model's threads share one thread of the system.
#[cfg(loom)]
loom::thread_local! {
    static HANDLES: RefCell<Handles> = RefCell::new(Handles::default());
}

/// A bag is handed to the epochs when it holds this many slices ...
const BAG_SLICES_MAX: usize = 64;
/// ... or this many bytes.
const BAG_BYTES_MAX: usize = 256 << 10;

#[derive(Default)]
struct Bag {
    slices: Vec<SliceRef>,
    bytes: usize,
}

/// Frees retired slices of one arena after their grace period.
pub struct Reclaimer {
    arena: Arc<Arena>,
    collector: Collector,
    /// Never given to another table.
    table: u64,
    bags: Box<[CachePadded<Mutex<Bag>>]>,
    retired_bytes: Arc<AtomicU64>,
}

impl Reclaimer {
    /// A reclaimer for `arena`.
    pub fn new(arena: Arc<Arena>) -> Reclaimer {
        static TABLES: AtomicU64 = AtomicU64::new(0);
        Reclaimer {
            arena,
            collector: Collector::new(),
            table: TABLES.fetch_add(1, Ordering::Relaxed),
            bags: (0..stripe_count()).map(|_| CachePadded::default()).collect(),
            retired_bytes: Arc::default(),
        }
    }

    /// Pins the current thread in this table. Cheap, and nests.
    #[inline]
    pub fn pin(&self) -> Guard {
        let pinned = HANDLES.try_with(|handles| handles.borrow_mut().get(self).pin());
        // A thread whose locals are gone already registers for this once.
        Guard(pinned.unwrap_or_else(|_| self.collector.register().pin()))
    }

    /// Bytes that are unlinked but not yet free.
    pub fn retired_bytes(&self) -> u64 {
        self.retired_bytes.load(Ordering::Relaxed)
    }

    /// Frees `slice` once nobody can be reading it. Answers the bytes that went to
    /// the epochs with this call: those of a whole bag now and then, else zero.
    ///
    /// # Safety
    /// The slice is live; no thread that pins itself from now on can reach it;
    /// nobody else retires or frees it.
    pub unsafe fn retire(&self, guard: &Guard, slice: SliceRef) -> usize {
        let bytes = self.arena.capacity(slice);
        self.retired_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut bag = self.lock(stripe_of_thread(self.bags.len()));
        bag.slices.push(slice);
        bag.bytes += bytes;
        if bag.slices.len() >= BAG_SLICES_MAX || bag.bytes >= BAG_BYTES_MAX {
            let full = std::mem::take(&mut *bag);
            drop(bag);
            let handed_bytes = full.bytes;
            self.defer(guard, full);
            return handed_bytes;
        }
        0
    }

    /// Hands every bag to the epochs and frees what is due. With no other
    /// thread pinned, everything retired before is free afterwards.
    ///
    /// Call it unpinned: the caller's own guard would hold everything back.
    pub fn flush(&self) {
        for stripe in 0..self.bags.len() {
            let bag = std::mem::take(&mut *self.lock(stripe));
            if !bag.slices.is_empty() {
                self.defer(&self.pin(), bag);
            }
        }
        // An item waits for two advances of the epoch, and a collection looks at
        // a few bags at a time.
        for _ in 0..8 {
            if self.retired_bytes() == 0 {
                return;
            }
            self.pin().0.flush();
        }
    }

    fn defer(&self, guard: &Guard, bag: Bag) {
        let arena: Weak<Arena> = Arc::downgrade(&self.arena);
        let retired_bytes = Arc::clone(&self.retired_bytes);
        let free_all = move || {
            // A dropped arena has unmapped everything already.
            let Some(arena) = arena.upgrade() else { return };
            for slice in &bag.slices {
                // SAFETY: `retire`'s contract; the grace period is over.
                unsafe { arena.free(*slice) };
            }
            retired_bytes.fetch_sub(bag.bytes as u64, Ordering::Relaxed);
        };
        // SAFETY: the closure may run on any thread, at any time: it owns
        // everything it uses, and all of it is Send.
        unsafe { guard.0.defer_unchecked(free_all) };
        guard.0.flush();
    }

    fn lock(&self, stripe: usize) -> std::sync::MutexGuard<'_, Bag> {
        self.bags[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::arena::ArenaOptions;

    #[test]
    fn retired_slices_wait_for_pinned_threads_and_no_longer() {
        let arena = Arc::new(Arena::new(ArenaOptions::default()));
        let reclaimer = Reclaimer::new(Arc::clone(&arena));
        let slice = arena.alloc(1000).expect("no budget");
        let (ready, wait_ready) = std::sync::mpsc::channel();
        let (leave, wait_leave) = std::sync::mpsc::channel::<()>();
        let reclaimer = Arc::new(reclaimer);
        let pinned_in = Arc::clone(&reclaimer);
        let reader = std::thread::spawn(move || {
            let _guard = pinned_in.pin();
            ready.send(()).expect("the test waits");
            wait_leave.recv().expect("the test sends");
        });
        wait_ready.recv().expect("the reader sends");
        // SAFETY: nobody but this test knows the slice.
        unsafe { reclaimer.retire(&reclaimer.pin(), slice) };
        reclaimer.flush();
        assert_eq!(reclaimer.retired_bytes(), 1000, "the reader is still pinned");
        leave.send(()).expect("the reader waits");
        reader.join().expect("the reader does not panic");
        reclaimer.flush();
        assert_eq!(reclaimer.retired_bytes(), 0);
        assert_eq!(arena.stats().live_bytes, 0);
    }

    #[test]
    fn a_dropped_table_gives_its_memory_back_at_once() {
        let arena = Arc::new(Arena::new(ArenaOptions::default()));
        let reclaimer = Reclaimer::new(Arc::clone(&arena));
        let still_there = Arc::downgrade(&arena);
        let guard = reclaimer.pin();
        for _ in 0..1000 {
            let slice = arena.alloc(1000).expect("no budget");
            // SAFETY: nobody else knows the slice.
            unsafe { reclaimer.retire(&guard, slice) };
        }
        drop((guard, reclaimer, arena));
        assert!(still_there.upgrade().is_none(), "retired slices do not keep an arena");
    }

    #[test]
    fn a_thread_that_stays_in_one_table_holds_back_no_other() {
        let tables: Vec<Reclaimer> = (0..100)
            .map(|_| Reclaimer::new(Arc::new(Arena::new(ArenaOptions::default()))))
            .collect();
        let stays = tables[0].pin();
        for table in &tables[1..] {
            let slice = table.arena.alloc(1000).expect("no budget");
            // SAFETY: nobody else knows the slice.
            unsafe { table.retire(&table.pin(), slice) };
            table.flush();
            assert_eq!(table.retired_bytes(), 0);
        }
        drop(stays);
        drop(tables);
        let fresh = Reclaimer::new(Arc::new(Arena::new(ArenaOptions::default())));
        drop(fresh.pin());
        let handles = HANDLES.with(|handles| handles.borrow().0.len());
        assert_eq!(handles, 1, "handles on dropped tables go");
    }
}
