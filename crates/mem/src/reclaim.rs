//! Deferred freeing of slices that readers may still use.
//!
//! Readers pin themselves with [`Reclaimer::pin`]; a thread that takes a slice out of reach gives
//! it to [`Reclaimer::retire`], which frees it once every thread that was pinned at that moment has
//! left. The epochs are those of [`epoch`](crate::epoch), one set for each table, so that a
//! reader that stays in one table holds back nothing in another.
//!
//! A pin lasts for work of the engine alone. [`Guard::outside`] runs a caller's closure without it,
//! for as long as that takes, and tells afterwards whether everything that was reached before is
//! still there: it is while no epoch has begun meanwhile, and an epoch begins once for many retired
//! slices. What a closure reads holds a count of its own, [`Kind::Counted`]: such a slice outlasts
//! its grace period while the count says that a reader is inside. Where a count is too dear, a
//! thread marks the one slice that it reads, [`Marker`].
//!
//! ```text
//!  retire ─► bag (by thread) ─► batch, stamped by a bump ─► freed when the stamp is safe
//!                                                      └──► read: asked again later ─► freed
//! ```
//!
//! | shared word | written by | read by |
//! |---|---|---|
//! | epochs | see [`epoch`](crate::epoch) | |
//! | bags, batches, slices that are read | under their locks | the same |
//! | count of a slice | its readers (Release) | the thread that frees it (Acquire), after the grace period |
//! | marks | see [`epoch`](crate::epoch) | the thread that frees counted slices, after the grace period |
//!
//! *Invariants*
//! - I-GRACE: a slice is freed only when every thread has left that was pinned when it was retired.
//! - I-COUNTED: a counted slice is freed only when no reader is inside and no thread marks it, too.
//!   Once retired it is not entered again, and after the grace period not marked again, so that
//!   either answer is final.
//! - I-NESTED: of two guards that a thread has in one table, the later one goes first.
//!
//! Source: K. Fraser, "Practical lock-freedom", 2004, chapter 5.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;

use crate::arena::{Arena, stripe_count, stripe_of_thread};
use crate::epoch::{Epochs, Pin};
use crate::slice::SliceRef;

/// Proof that the current thread is pinned in one table: what it can reach there stays.
pub struct Guard<'a> {
    pin: Pin<'a>,
    epochs: &'a Epochs,
    epoch: Cell<Epoch>,
}

/// The epoch in which a thread has reached what it knows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(u64);

impl Guard<'_> {
    /// The epoch of the guard: what was reached under the guard may be used while it is the same.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.epoch.get()
    }

    /// Whether what this thread reached in `epoch`, under a guard that is gone, is still there: it
    /// may be used under this one then.
    #[inline]
    pub fn keeps(&self, epoch: Epoch) -> bool {
        self.epochs.is_current(epoch.0)
    }

    /// Lets go while `work` runs, and pins again afterwards, also when it panics. If
    /// [`epoch`](Self::epoch) differs then, nothing that was reached before may be used any more.
    ///
    /// Inside of another guard of this thread nothing is let go of.
    #[inline]
    pub fn outside<R>(&self, work: impl FnOnce() -> R) -> R {
        let Guard { pin, epochs, epoch } = self;
        pin.suspend();
        let _back = Back { epoch, pin_again: |since| pin.resume(epochs, since) };
        work()
    }

    /// A way to read one counted slice without a pin and without a count; `None` in a closure that
    /// reads another one so, and inside of another guard, which lets go of nothing.
    pub fn marker(&self) -> Option<Marker<'_>> {
        (self.pin.is_outermost() && !self.pin.is_marked()).then_some(Marker(self))
    }

    /// Lets go and pins again: what was reached before must not be used any more.
    #[inline]
    pub fn repin(&self) {
        self.outside(|| ());
    }
}

/// Marks one slice at a time, which stays while this thread is away: a hazard pointer (M. Michael,
/// "Hazard Pointers", 2004), which costs a store.
pub struct Marker<'g>(&'g Guard<'g>);

impl Marker<'_> {
    /// As [`Guard::outside`], while `work` reads the counted slice at `address`, which was reached
    /// under the guard. The slice stays until this is called again, or dropped.
    #[inline]
    pub fn outside<R>(&self, address: *const u8, work: impl FnOnce() -> R) -> R {
        let Guard { pin, epochs, epoch } = self.0;
        pin.mark(address as usize);
        pin.suspend_outermost();
        let _back = Back { epoch, pin_again: |since| pin.resume_outermost(epochs, since) };
        work()
    }
}

impl Drop for Marker<'_> {
    fn drop(&mut self) {
        self.0.pin.mark(0);
    }
}

/// Pins again when it is dropped, in an epoch or in the latest; tells which.
struct Back<'a, P: Fn(u64) -> u64> {
    epoch: &'a Cell<Epoch>,
    pin_again: P,
}

impl<P: Fn(u64) -> u64> Drop for Back<'_, P> {
    #[inline]
    fn drop(&mut self) {
        let since = self.epoch.get();
        let latest = Epoch((self.pin_again)(since.0));
        if latest != since {
            self.epoch.set(latest);
        }
    }
}

impl std::fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// The readers that keep a retired slice, besides the threads that were pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// Readers inside, which its own bytes count, and marks.
    Counted,
}

/// A retired slice and its kind, in one word.
#[derive(Clone, Copy)]
struct Retired(u64);

impl Retired {
    /// One of the two bits that a holder of a slice's word may use.
    const COUNTED: u64 = SliceRef::TAGS & SliceRef::TAGS.wrapping_neg();

    fn new(slice: SliceRef, kind: Kind) -> Retired {
        let tag = match kind {
            Kind::Plain => 0,
            Kind::Counted => Retired::COUNTED,
        };
        Retired(slice.word() | tag)
    }

    fn slice(self) -> SliceRef {
        SliceRef::from_word(self.0).expect("made of a slice")
    }

    fn kind(self) -> Kind {
        if self.0 & Retired::COUNTED == 0 { Kind::Plain } else { Kind::Counted }
    }
}

/// Slices that the threads of one stripe have retired since the last epoch began.
#[derive(Default)]
struct Bag {
    retired: Vec<Retired>,
    /// Slices and bytes that `retire` has not told of yet.
    untold_slices: usize,
    untold_bytes: u64,
}

impl Bag {
    /// `retire` tells of this many slices at once ...
    const TOLD_SLICES: usize = 64;
    /// ... or of this many bytes: few large slices are worth as much work as many small ones.
    const TOLD_BYTES: u64 = 32 << 10;

    /// Counts a slice of so many bytes; answers what it is time to tell of.
    #[inline]
    fn count(&mut self, bytes: u64) -> u64 {
        self.untold_slices += 1;
        self.untold_bytes += bytes;
        if self.untold_slices < Bag::TOLD_SLICES && self.untold_bytes < Bag::TOLD_BYTES {
            return 0;
        }
        self.untold_slices = 0;
        std::mem::take(&mut self.untold_bytes)
    }
}

/// Slices that were out of reach before the epoch of their stamp began.
struct Batch {
    stamp: u64,
    retired: Vec<Retired>,
}

/// Slices that wait after the bags.
#[derive(Default)]
struct Waiting {
    /// For their grace periods, oldest first.
    batches: VecDeque<Batch>,
    /// Counted slices, for the readers inside of them alone.
    read: VecDeque<SliceRef>,
}

/// The slices that [`Reclaimer::flush`] had to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// At most slices with readers inside: they wait for their readers.
    Read,
    /// Slices that a pinned thread may have reached: pins are short, so that they are due soon.
    Pinned,
}

/// An epoch begins for so many slices in one bag, or for so many bytes in all: a thirty-second of
/// what the arena has mapped, within these bounds. A bump is a system call that interrupts the
/// process's other running threads, so it is shared by many slices; and freeing a batch is a pause
/// for the operation that it falls on.
const BAG_SLICES_MAX: usize = 1024;
const STEP_BYTES_MIN: u64 = 128 << 10;
const STEP_BYTES_MAX: u64 = 1 << 20;
/// Slices with readers inside that are asked again at a time, so that many of them, which stay,
/// cost those that retire others little.
const ASKED_MAX: usize = 256;
/// Slices asked for ahead of their freeing.
const AHEAD: usize = 8;

/// Frees retired slices of one arena after their grace period.
pub struct Reclaimer {
    arena: Arc<Arena>,
    epochs: Epochs,
    /// Whether a reader is inside of the counted slice at this address.
    is_read: unsafe fn(*const u8) -> bool,
    bags: Box<[CachePadded<Mutex<Bag>>]>,
    waiting: Mutex<Waiting>,
    /// Threads that have taken from `waiting` and not yet put back what is left.
    at_work: AtomicUsize,
    retired_bytes: AtomicU64,
    /// Retired bytes at which the next epoch begins.
    due_bytes: AtomicU64,
}

impl Reclaimer {
    /// A reclaimer for `arena`. `is_read` is asked about counted slices after their grace period:
    /// it says by an Acquire load whether a reader is inside.
    pub fn new(arena: Arc<Arena>, is_read: unsafe fn(*const u8) -> bool) -> Reclaimer {
        Reclaimer {
            arena,
            epochs: Epochs::new(),
            is_read,
            bags: (0..stripe_count()).map(|_| CachePadded::default()).collect(),
            waiting: Mutex::default(),
            at_work: AtomicUsize::new(0),
            retired_bytes: AtomicU64::new(0),
            due_bytes: AtomicU64::new(STEP_BYTES_MIN),
        }
    }

    /// Pins the current thread in this table. Cheap, and nests (I-NESTED).
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        let pin = self.epochs.pin();
        let epoch = Cell::new(Epoch(pin.epoch()));
        Guard { pin, epochs: &self.epochs, epoch }
    }

    /// Bytes that are unlinked but not yet free.
    pub fn retired_bytes(&self) -> u64 {
        self.retired_bytes.load(Ordering::Relaxed)
    }

    /// Frees `slice` once no thread can be reading it. Answers, now and then, how many bytes this
    /// and the calls before it have retired, for a caller that counts them; zero at all other
    /// times.
    ///
    /// # Safety
    /// The slice is live; no thread that pins itself from now on can reach it; nothing else retires
    /// or frees it. If it is counted, no reader goes inside from now on.
    pub unsafe fn retire(&self, slice: SliceRef, kind: Kind) -> u64 {
        let bytes = self.arena.capacity(slice) as u64;
        let retired_bytes = self.retired_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let (bag_len, told_bytes) = {
            let mut bag = self.lock_bag(stripe_of_thread(self.bags.len()));
            bag.retired.push(Retired::new(slice, kind));
            (bag.retired.len(), bag.count(bytes))
        };
        if bag_len >= BAG_SLICES_MAX || retired_bytes >= self.due_bytes.load(Ordering::Relaxed) {
            self.turn();
        }
        told_bytes
    }

    /// Begins an epoch for what is in the bags, and frees what waits longer.
    ///
    /// The caller is pinned, mostly: so what it has just put into a bag waits for the next turn.
    #[cold]
    fn turn(&self) {
        // First, so that few other threads turn as well.
        let step = self.arena.stats().reserved_bytes / 32;
        let step = step.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
        self.due_bytes.store(self.retired_bytes() + step, Ordering::Relaxed);
        self.collect(ASKED_MAX);
        self.seal();
        self.due_bytes.store(self.retired_bytes() + step, Ordering::Relaxed);
    }

    /// Frees what was retired before and is neither reached by a pinned thread nor read.
    ///
    /// Call it unpinned: the caller's own guard would hold everything back.
    pub fn flush(&self) -> Left {
        self.seal();
        self.collect(usize::MAX)
    }

    /// Stamps the slices in all bags. What they name went out of reach before, so it is due when
    /// the epoch that begins here is safe.
    fn seal(&self) {
        let mut retired = Vec::new();
        for stripe in 0..self.bags.len() {
            let bag = &mut self.lock_bag(stripe).retired;
            if retired.is_empty() {
                std::mem::swap(&mut retired, bag);
            } else {
                retired.append(bag);
            }
        }
        if !retired.is_empty() {
            // INVARIANT: I-GRACE: the stamp's epoch begins after each of these went out of reach.
            // Not under a lock: a model may switch threads here.
            let stamp = self.epochs.bump();
            self.lock_waiting().batches.push_back(Batch { stamp, retired });
        }
    }

    /// Frees what is due; asks at most `asked_max` slices again that had readers inside.
    fn collect(&self, asked_max: usize) -> Left {
        self.at_work.fetch_add(1, Ordering::Relaxed);
        // Taken out, so that no lock is held while slices are freed.
        let (mut batches, mut read) = {
            let mut waiting = self.lock_waiting();
            let asked = waiting.read.len().min(asked_max);
            let read: Vec<_> = waiting.read.drain(..asked).collect();
            (std::mem::take(&mut waiting.batches), read)
        };
        let mut freed_bytes = 0;
        if !read.is_empty() {
            let marks: Vec<usize> = self.epochs.marks().collect();
            // SAFETY: their grace period was over when they came here (I-GRACE), before `marks`.
            read.retain(|slice| !unsafe { self.free_unread(*slice, &marks, &mut freed_bytes) });
        }
        while batches.front().is_some_and(|batch| self.epochs.is_safe(batch.stamp)) {
            let Some(batch) = batches.pop_front() else { break };
            // Only now: a thread that was pinned before has marked what it reads when it left.
            let marks: Vec<usize> = self.epochs.marks().collect();
            for (at, retired) in batch.retired.iter().enumerate() {
                if let Some(next) = batch.retired.get(at + AHEAD) {
                    self.arena.prefetch(next.slice(), 1);
                }
                let slice = retired.slice();
                // SAFETY: I-GRACE, and `retire`'s contract: every thread has left that was pinned when
                // the slice was retired.
                unsafe {
                    match retired.kind() {
                        Kind::Plain => self.free(slice, &mut freed_bytes),
                        Kind::Counted if self.free_unread(slice, &marks, &mut freed_bytes) => {}
                        Kind::Counted => read.push(slice),
                    }
                }
            }
        }
        let retired_bytes = self.retired_bytes.fetch_sub(freed_bytes, Ordering::Relaxed);
        debug_assert!(retired_bytes >= freed_bytes, "what is freed was retired, once");
        let mut waiting = self.lock_waiting();
        waiting.read.extend(read);
        for batch in batches.into_iter().rev() {
            waiting.batches.push_front(batch);
        }
        // Under the lock: a thread that finds nothing waiting, and this one at work, asks again.
        let others = self.at_work.fetch_sub(1, Ordering::Relaxed) > 1;
        if others || !waiting.batches.is_empty() { Left::Pinned } else { Left::Read }
    }

    /// Frees a counted slice unless a reader is inside or it is marked; true if it did.
    ///
    /// # Safety
    /// A counted slice after its grace period; `marks` were read after that.
    unsafe fn free_unread(&self, slice: SliceRef, marks: &[usize], freed_bytes: &mut u64) -> bool {
        let base = self.arena.ptr(slice);
        // SAFETY: I-LIVE: the caller's slice is freed here and nowhere else.
        let is_read = marks.contains(&(base as usize)) || unsafe { (self.is_read)(base) };
        if !is_read {
            // INVARIANT: I-COUNTED: asked after the grace period, when either answer is final.
            // SAFETY: I-GRACE by the caller.
            unsafe { self.free(slice, freed_bytes) };
        }
        !is_read
    }

    /// # Safety
    /// As of [`Arena::free`].
    unsafe fn free(&self, slice: SliceRef, freed_bytes: &mut u64) {
        debug_assert!(!self.arena.ptr(slice).is_null(), "a retired slice is live");
        *freed_bytes += self.arena.capacity(slice) as u64;
        // SAFETY: the caller's.
        unsafe { self.arena.free(slice) };
    }

    fn lock_bag(&self, stripe: usize) -> MutexGuard<'_, Bag> {
        self.bags[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Reclaimer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reclaimer")
            .field("retired_bytes", &self.retired_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::arena::ArenaOptions;
    use crate::sync::RawAtomicU64;

    /// In these tests a counted slice begins with the number of its readers.
    unsafe fn is_read(slice: *const u8) -> bool {
        // SAFETY: the tests write the word before they retire the slice.
        unsafe { &*slice.cast::<RawAtomicU64>() }.load(Ordering::Acquire) > 0
    }

    fn reclaimer() -> Reclaimer {
        Reclaimer::new(Arc::new(Arena::new(ArenaOptions::default())), is_read)
    }

    /// Retires a new slice of 1,000 bytes.
    fn retire_one(reclaimer: &Reclaimer) {
        let slice = reclaimer.arena.alloc(1000).expect("no budget");
        // SAFETY: nothing else knows the slice.
        unsafe { reclaimer.retire(slice, Kind::Plain) };
    }

    #[test]
    fn retired_slices_wait_for_pinned_threads_and_no_longer() {
        let reclaimer = reclaimer();
        let (ready, wait_ready) = mpsc::channel();
        let (leave, wait_leave) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let pinned_in = &reclaimer;
            let reader = scope.spawn(move || {
                let _guard = pinned_in.pin();
                ready.send(()).expect("the test waits");
                wait_leave.recv().expect("the test sends");
            });
            wait_ready.recv().expect("the reader sends");
            retire_one(&reclaimer);
            assert_eq!(reclaimer.flush(), Left::Pinned);
            assert_eq!(reclaimer.retired_bytes(), 1000, "the reader is still pinned");
            leave.send(()).expect("the reader waits");
            reader.join().expect("the reader does not panic");
        });
        assert_eq!(reclaimer.flush(), Left::Read);
        assert_eq!(reclaimer.retired_bytes(), 0);
        assert_eq!(reclaimer.arena.stats().live_bytes, 0);
    }

    #[test]
    fn a_guard_that_lets_go_holds_nothing_back_and_knows_it() {
        let reclaimer = reclaimer();
        let guard = reclaimer.pin();
        let before = guard.epoch();
        guard.outside(|| ());
        assert!(guard.epoch() == before && guard.keeps(before), "nothing went");
        guard.outside(|| {
            retire_one(&reclaimer);
            assert_eq!(reclaimer.flush(), Left::Read);
        });
        assert_eq!(reclaimer.retired_bytes(), 0);
        assert!(guard.epoch() != before && !guard.keeps(before), "something may have gone");
        // Pinned again, in the epoch that it says.
        retire_one(&reclaimer);
        assert_eq!(reclaimer.flush(), Left::Pinned);
        assert_eq!(reclaimer.retired_bytes(), 1000);
        // Inside of another guard, the outer one goes on holding.
        let inner = reclaimer.pin();
        inner.outside(|| {
            retire_one(&reclaimer);
            assert_eq!(reclaimer.flush(), Left::Pinned);
        });
        drop(inner);
        drop(guard);
        assert_eq!(reclaimer.flush(), Left::Read);
        assert_eq!(reclaimer.retired_bytes(), 0);
    }

    #[test]
    fn a_guard_that_let_go_pins_again_when_its_closure_panics() {
        let reclaimer = reclaimer();
        let guard = reclaimer.pin();
        let outside = || guard.outside(|| std::panic::resume_unwind(Box::new(())));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(outside)).expect_err("it panics");
        retire_one(&reclaimer);
        assert_eq!(reclaimer.flush(), Left::Pinned);
        drop(guard);
        assert_eq!(reclaimer.flush(), Left::Read);
    }

    #[test]
    fn counted_slices_wait_for_their_readers() {
        let reclaimer = reclaimer();
        let slices: Vec<SliceRef> = (0..3 * ASKED_MAX)
            .map(|_| {
                let slice = reclaimer.arena.alloc(1000).expect("no budget");
                // SAFETY: the slice is new, and nothing else knows it.
                unsafe {
                    RawAtomicU64::init(reclaimer.arena.ptr(slice).cast(), 1);
                    reclaimer.retire(slice, Kind::Counted);
                }
                slice
            })
            .collect();
        assert_eq!(reclaimer.flush(), Left::Read);
        let bytes = slices.len() as u64 * 1000;
        assert_eq!(reclaimer.retired_bytes(), bytes, "readers are inside");
        for slice in &slices {
            // SAFETY: I-COUNTED: a reader is inside, and this is the reader.
            let count = unsafe { &*reclaimer.arena.ptr(*slice).cast::<RawAtomicU64>() };
            count.store(0, Ordering::Release);
        }
        // A turn asks some of them, so that each comes to be asked.
        for turn in 1..=3 {
            reclaimer.turn();
            assert_eq!(reclaimer.retired_bytes(), bytes - turn * ASKED_MAX as u64 * 1000);
        }
        assert_eq!(reclaimer.arena.stats().live_bytes, 0);
    }

    #[test]
    fn turns_come_by_themselves_and_free_what_is_due() {
        let reclaimer = reclaimer();
        for _ in 0..100_000 {
            let _guard = reclaimer.pin();
            retire_one(&reclaimer);
            assert!(reclaimer.retired_bytes() <= 3 * STEP_BYTES_MIN);
        }
    }

    #[test]
    fn a_dropped_table_gives_its_memory_back_at_once() {
        let reclaimer = reclaimer();
        let still_there = Arc::downgrade(&reclaimer.arena);
        (0..1000).for_each(|_| retire_one(&reclaimer));
        drop(reclaimer);
        assert!(still_there.upgrade().is_none(), "retired slices do not keep an arena");
    }

    #[test]
    fn a_thread_that_stays_in_one_table_holds_back_no_other() {
        let tables: Vec<Reclaimer> = (0..100).map(|_| reclaimer()).collect();
        let stays = tables[0].pin();
        for table in &tables[1..] {
            let guard = table.pin();
            retire_one(table);
            drop(guard);
            assert_eq!(table.flush(), Left::Read);
            assert_eq!(table.retired_bytes(), 0);
        }
        drop(stays);
    }
}
