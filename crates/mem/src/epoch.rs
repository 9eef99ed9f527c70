//! Pins of threads, and the epochs that they are pinned in.
//!
//! An engine that moves a boundary (what is in memory, what may be changed in place) publishes
//! it, calls [`Epochs::bump`], and may act on it once [`Epochs::is_safe`] says that every thread
//! that was pinned before has left. A pin costs two stores to a line of the thread's own: the
//! fence that orders them with the reads behind them is paid by the thread that bumps, through the
//! `membarrier` system call where the kernel has it.
//!
//! Source: B. Chandramouli et al., "FASTER", SIGMOD 2018, section 2.3 (epoch protection); the
//! asymmetric fence is that of D. Dice et al., "Asymmetric Dekker Synchronization", 2001.
//!
//! | word | written | read |
//! |---|---|---|
//! | `current` | `bump`: AcqRel | `pin`: Acquire, so that a pin in an epoch sees its boundaries |
//! | a thread's slot | that thread: Release + light barrier, 0 by Release | `is_safe`: Acquire, after the heavy barrier |
//! | a thread's mark | that thread: Release, before the 0 in its slot | `marks`: Acquire, after `is_safe` |
//!
//! A pin is stored by Release, too: `is_safe` may see it without having seen the 0 that ended the
//! pin before it.
//!
//! *Invariants*
//! - I-BOUNDARY: once an epoch is safe, every pinned thread sees what was written before its bump.
//! - I-RESUMED: what a thread reached under a pin is still there when it pins again, if no epoch has
//!   begun meanwhile.
//!
//! A thread finds its slot by a number that it keeps while it lives. The destructors of its
//! thread-locals may use a table when the number is given back already: such a *late* pin takes a
//! number that the thread keeps until its last late pin, of any table, has gone.

#[cfg(not(loom))]
use std::cell::Cell;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Mutex, OnceLock, PoisonError};

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering};

/// No pin.
const QUIET: u64 = 0;
/// Threads in the first segment of slots; each later one holds twice as many. A model has two,
/// and small stacks.
const FIRST_SEGMENT: usize = if cfg!(loom) { 2 } else { 32 };
const SEGMENTS: usize = 20;
/// Number of the slot that is never quiet.
const NO_THREAD: usize = FIRST_SEGMENT;

const SLOT_BYTES: usize = size_of::<CachePadded<Slot>>();

/// The words of a thread, in a line of their own.
struct Slot {
    /// The epoch it is pinned in, or `QUIET`.
    pinned: AtomicU64,
    /// An address that it reads while it is away, or zero: see `Pin::mark`.
    mark: AtomicU64,
}

impl Slot {
    fn new(pinned: u64) -> CachePadded<Slot> {
        CachePadded::new(Slot { pinned: AtomicU64::new(pinned), mark: AtomicU64::new(0) })
    }
}

/// Epochs of one table.
pub struct Epochs {
    current: CachePadded<AtomicU64>,
    /// Slots of the first threads, and one that is never quiet ...
    first: [CachePadded<Slot>; FIRST_SEGMENT + 1],
    /// ... and of later ones, in segments that never move.
    segments: [OnceLock<Box<[CachePadded<Slot>]>>; SEGMENTS],
}

/// Proof that this thread is pinned: what it can reach stays.
pub struct Pin<'a> {
    slot: &'a Slot,
    level: Level,
    /// A pin belongs to its thread.
    not_send: PhantomData<*const ()>,
}

/// Where a pin stands among those of its thread in its table. Pins nest; only the outermost leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Outermost,
    /// Outermost, under a number that the thread has for late pins alone.
    OutermostLate,
    Inner,
}

impl Pin<'_> {
    /// Whether no other pin of this thread in this table encloses this one. A thread must not
    /// wait for a bump while one does.
    #[inline]
    pub fn is_outermost(&self) -> bool {
        self.level != Level::Inner
    }

    /// The epoch that this thread is pinned in.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.slot.pinned.load(Ordering::Relaxed)
    }

    /// Says that this thread reads at `address` while it is away; zero: no more. What was reached
    /// under this pin and is marked before `suspend` stays until another mark takes its place:
    /// the thread that sees this thread quiet by an Acquire load sees the mark, too.
    #[inline]
    pub(crate) fn mark(&self, address: usize) {
        // Release: pairs with the Acquire in `marks`; what was read under the mark before is done.
        self.slot.mark.store(address as u64, Ordering::Release);
    }

    /// Whether this thread has marked something.
    pub(crate) fn is_marked(&self) -> bool {
        self.slot.mark.load(Ordering::Relaxed) != 0
    }

    /// Leaves for a while; `resume` pins again. Nothing happens inside of another pin.
    #[inline]
    pub(crate) fn suspend(&self) {
        if self.is_outermost() {
            self.suspend_outermost();
        }
    }

    /// As `suspend`, of a pin that is known to be outermost.
    #[inline]
    pub(crate) fn suspend_outermost(&self) {
        debug_assert!(self.is_outermost());
        debug_assert_ne!(self.epoch(), QUIET, "only what is pinned is suspended");
        // Release: pairs with the Acquire in `is_safe`, as in `drop`.
        self.slot.pinned.store(QUIET, Ordering::Release);
    }

    /// Pins again, after `suspend`, in `since` if no later epoch has begun, else in the latest;
    /// returns which.
    ///
    /// What this thread had reached in `since`, and nothing else, is as safe then as if it had
    /// never left: the thread that takes something out of reach that was reached in `since` bumps
    /// to a later epoch before it asks whether all have left. If the load below does not see that
    /// bump, the heavy half of the fence comes after the light one, and the question meets `since`
    /// in the slot.
    #[inline]
    pub(crate) fn resume(&self, epochs: &Epochs, since: u64) -> u64 {
        if self.is_outermost() { self.resume_outermost(epochs, since) } else { since }
    }

    /// As `resume`, of a pin that is known to be outermost.
    #[inline]
    pub(crate) fn resume_outermost(&self, epochs: &Epochs, since: u64) -> u64 {
        debug_assert!(self.is_outermost());
        debug_assert_eq!(self.epoch(), QUIET, "only what was suspended resumes");
        // Release: pairs with the Acquire in `is_safe`; what was read before `suspend` is done for
        // the thread that sees this and not the quiet slot in between.
        self.slot.pinned.store(since, Ordering::Release);
        barrier::light();
        // INVARIANT: I-RESUMED: a bump that this load does not see finds `since` in the slot.
        // Acquire: pairs with `bump`, as in `pin`.
        let latest = epochs.current.load(Ordering::Acquire);
        if latest != since {
            // No fence: a bump beyond `latest` finds either of the two in the slot. Release: pairs
            // with the Acquire in `is_safe`, as above.
            self.slot.pinned.store(latest, Ordering::Release);
        }
        latest
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.level == Level::Inner {
            return;
        }
        debug_assert_ne!(self.epoch(), QUIET, "a pin ends once");
        // Release: pairs with the Acquire in is_safe; what was read and written is done.
        self.slot.pinned.store(QUIET, Ordering::Release);
        if self.level == Level::OutermostLate {
            Late::leave();
        }
    }
}

impl Default for Epochs {
    fn default() -> Self {
        Epochs::new()
    }
}

impl Epochs {
    /// Epochs without a pin.
    pub fn new() -> Epochs {
        barrier::prepare();
        Epochs {
            current: CachePadded::new(AtomicU64::new(1)),
            first: std::array::from_fn(|at| {
                let initial = if at == NO_THREAD { u64::MAX } else { QUIET };
                Slot::new(initial)
            }),
            segments: [const { OnceLock::new() }; SEGMENTS],
        }
    }

    /// Pins this thread, if it is not pinned already: the least that a pin can cost.
    #[inline(always)]
    pub fn pin_quick(&self) -> Option<Pin<'_>> {
        let mut slot = self.quick_slot();
        if slot.pinned.load(Ordering::Relaxed) == QUIET {
            self.occupy_quick(slot);
        } else {
            slot = self.pin_slow()?;
        }
        Some(Pin { slot, level: Level::Outermost, not_send: PhantomData })
    }

    /// As `pin_quick`, and without a call: `None` also for a thread that has not pinned before, for
    /// one beyond the first segment, and where the fence is not asymmetric. A call, however seldom
    /// it is made, would have its caller keep on the stack what it needs behind it.
    #[inline(always)]
    pub fn pin_at_once(&self) -> Option<Pin<'_>> {
        if cfg!(loom) {
            // No slot of a model is quick: so what relies on this is modelled all the same.
            return self.pin_quick();
        }
        let slot = self.quick_slot();
        if slot.pinned.load(Ordering::Relaxed) != QUIET {
            return None;
        }
        self.occupy_quick(slot);
        Some(Pin { slot, level: Level::Outermost, not_send: PhantomData })
    }

    /// The slot of this thread, or the one that is never quiet.
    #[inline(always)]
    fn quick_slot(&self) -> &Slot {
        let at = quick_slot();
        debug_assert!(at.is_multiple_of(SLOT_BYTES) && at / SLOT_BYTES <= NO_THREAD);
        // SAFETY: `quick_slot` is where a slot of the first segment begins, or the one that is
        // never quiet; without a check, which would be in the way of every operation.
        unsafe { &*self.first.as_ptr().byte_add(at) }
    }

    /// Pins this thread, whose quick slot is quiet.
    #[inline(always)]
    fn occupy_quick(&self, slot: &Slot) {
        // As in `occupy`: Acquire pairs with `bump`, Release with the Acquire in `is_safe`.
        slot.pinned.store(self.current.load(Ordering::Acquire), Ordering::Release);
        barrier::light_asymmetric();
    }

    /// As `pin_quick`, for a thread without a number, or with one beyond the first segment, or
    /// where the fence is not asymmetric. A late pin is never quick.
    #[cold]
    #[inline(never)]
    fn pin_slow(&self) -> Option<&Slot> {
        let slot = self.slot(number_for_life()?);
        self.occupy(slot).then_some(slot)
    }

    /// Pins this thread.
    #[inline]
    pub fn pin(&self) -> Pin<'_> {
        self.pin_quick().unwrap_or_else(|| self.pin_again())
    }

    /// Pins a thread that is pinned in this table already, or pins late.
    #[cold]
    #[inline(never)]
    fn pin_again(&self) -> Pin<'_> {
        match number_for_life() {
            Some(number) => {
                Pin { slot: self.slot(number), level: Level::Inner, not_send: PhantomData }
            }
            None => self.pin_late(),
        }
    }

    fn pin_late(&self) -> Pin<'_> {
        let slot = self.slot(Late::enter());
        let level = match self.occupy(slot) {
            true => Level::OutermostLate,
            false => {
                Late::leave();
                Level::Inner
            }
        };
        Pin { slot, level, not_send: PhantomData }
    }

    /// Pins the slot's thread; false if it is pinned already.
    fn occupy(&self, slot: &Slot) -> bool {
        if slot.pinned.load(Ordering::Relaxed) != QUIET {
            return false;
        }
        // Acquire: pairs with the AcqRel in `bump`. Release: pairs with the Acquire in `is_safe`,
        // which may see this pin and not the end of the one before.
        slot.pinned.store(self.current.load(Ordering::Acquire), Ordering::Release);
        barrier::light();
        true
    }

    /// Whether this thread is pinned.
    pub fn is_pinned(&self) -> bool {
        let number = number_for_life().or_else(Late::number);
        number.is_some_and(|number| self.slot(number).pinned.load(Ordering::Relaxed) != QUIET)
    }

    /// Starts an epoch: threads that pin themselves from now on see everything that the caller
    /// wrote before.
    pub fn bump(&self) -> u64 {
        // AcqRel: pairs with the Acquire of pins, of `is_current`, and with earlier bumps.
        let epoch = self.current.fetch_add(1, Ordering::AcqRel) + 1;
        // INVARIANT: I-BOUNDARY: a pin that `is_safe` does not see begins after this fence.
        barrier::heavy();
        epoch
    }

    /// Whether no epoch after `since` has begun. What a thread reached in `since` it may use again
    /// then, under the pin that it has now: see `Pin::resume`.
    #[inline]
    pub(crate) fn is_current(&self, since: u64) -> bool {
        // Acquire: pairs with the AcqRel in `bump`.
        self.current.load(Ordering::Acquire) == since
    }

    /// Whether every thread that was pinned before `epoch` began has left.
    pub fn is_safe(&self, epoch: u64) -> bool {
        debug_assert!(epoch <= self.current.load(Ordering::Relaxed), "the epoch has begun");
        self.slots().all(|slot| {
            // Acquire: pairs with the Release of pins and of their ends, so that what was read
            // under them is done.
            let pinned = slot.pinned.load(Ordering::Acquire);
            pinned == QUIET || pinned >= epoch
        })
    }

    /// The marks of threads that are away. Asked after `is_safe` has said so of an epoch, the
    /// answer has every mark at something that went out of reach before that epoch.
    pub(crate) fn marks(&self) -> impl Iterator<Item = usize> {
        // Acquire: pairs with the Release in `mark`, so that what was read under an earlier mark is
        // done.
        let marks = self.slots().map(|slot| slot.mark.load(Ordering::Acquire) as usize);
        marks.filter(|mark| *mark != 0)
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        let later = self.segments.iter().map_while(OnceLock::get).flat_map(|slots| slots.iter());
        self.first[..FIRST_SEGMENT].iter().chain(later).map(|slot| &**slot)
    }

    #[inline(never)]
    fn slot(&self, thread: usize) -> &Slot {
        match thread {
            ..FIRST_SEGMENT => &self.first[thread],
            _ => self.later_slot(thread - FIRST_SEGMENT),
        }
    }

    fn later_slot(&self, thread: usize) -> &Slot {
        let at = thread + FIRST_SEGMENT;
        let segment = at.ilog2() - FIRST_SEGMENT.ilog2();
        let first = FIRST_SEGMENT << segment;
        match self.segments[segment as usize].get() {
            Some(slots) => &slots[at - first],
            None => self.slot_slow(segment as usize, at - first),
        }
    }

    #[cold]
    fn slot_slow(&self, segment: usize, at: usize) -> &Slot {
        // is_safe looks at segments up to the first that is missing.
        for (earlier, slots) in self.segments[..=segment].iter().enumerate() {
            slots.get_or_init(|| (0..FIRST_SEGMENT << earlier).map(|_| Slot::new(QUIET)).collect());
        }
        &self.segments[segment].get().expect("made just above")[at]
    }
}

impl std::fmt::Debug for Epochs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Epochs").finish_non_exhaustive()
    }
}

/// Numbers of threads that ended, for new ones.
#[cfg(not(loom))]
static FREE_NUMBERS: Mutex<(usize, Vec<usize>)> = Mutex::new((0, Vec::new()));

#[cfg(loom)]
std::thread_local! {
    /// All threads of a model run on one thread of the system, so this is the model's own. There a
    /// number is this thread's alone until the next execution: the checker would not see that the
    /// lock orders its hand-over.
    static FREE_NUMBERS: Mutex<(usize, Vec<usize>)> = const { Mutex::new((0, Vec::new())) };
}

fn free_numbers<R>(work: impl FnOnce(&mut (usize, Vec<usize>)) -> R) -> R {
    let locked = |numbers: &Mutex<(usize, Vec<usize>)>| {
        work(&mut numbers.lock().unwrap_or_else(PoisonError::into_inner))
    };
    #[cfg(not(loom))]
    return locked(&FREE_NUMBERS);
    #[cfg(loom)]
    return FREE_NUMBERS.with(locked);
}

/// Begins an execution of a model: all numbers are free.
#[cfg(loom)]
pub(crate) fn forget_numbers() {
    free_numbers(|numbers| *numbers = (0, Vec::new()));
}

/// A number that no other thread has until it is given back, small while few threads have one.
fn claim_number() -> usize {
    free_numbers(|(next, free)| match (0..free.len()).min_by_key(|at| free[*at]) {
        Some(least) => free.swap_remove(least),
        None => {
            *next += 1;
            *next - 1
        }
    })
}

fn give_number_back(number: usize) {
    #[cfg(not(loom))]
    free_numbers(|(_, free)| free.push(number));
    let _ = number;
}

/// The number that a thread has for life.
struct ThreadNumber(usize);

impl Drop for ThreadNumber {
    fn drop(&mut self) {
        #[cfg(not(loom))]
        QUICK.set(NO_THREAD * SLOT_BYTES);
        give_number_back(self.0);
    }
}

#[cfg(not(loom))]
std::thread_local! {
    static THREAD: ThreadNumber = ThreadNumber(claim_number());
}

#[cfg(loom)]
loom::thread_local! {
    static THREAD: ThreadNumber = ThreadNumber(claim_number());
}

/// The number of this thread; `None` once it is given back.
fn number_for_life() -> Option<usize> {
    #[cfg(loom)]
    if LATE.with(|late| late.borrow().is_ending) {
        return None;
    }
    let number = THREAD.try_with(|number| number.0).ok()?;
    #[cfg(not(loom))]
    if barrier::is_asymmetric() {
        QUICK.set(number.min(NO_THREAD) * SLOT_BYTES);
    }
    Some(number)
}

/// The late pins of a thread that has given back its number for life. Without a destructor: a
/// thread-local with one would be gone itself when it is needed.
#[derive(Default)]
struct Late {
    /// While there are pins.
    number: Option<usize>,
    /// Outermost pins, of all tables.
    pins: usize,
    /// In a model, a thread says by this that its thread-locals are gone.
    #[cfg(loom)]
    is_ending: bool,
}

#[cfg(not(loom))]
std::thread_local! {
    static LATE: RefCell<Late> = const { RefCell::new(Late { number: None, pins: 0 }) };
}

#[cfg(loom)]
loom::thread_local! {
    static LATE: RefCell<Late> = RefCell::new(Late::default());
}

impl Late {
    /// The number of this thread for one more pin.
    fn enter() -> usize {
        LATE.with(|late| {
            let late = &mut *late.borrow_mut();
            late.pins += 1;
            *late.number.get_or_insert_with(claim_number)
        })
    }

    /// One pin less. The last gives the number back, when its slots are quiet: the lock around the
    /// free numbers orders that before the pins of the next thread.
    fn leave() {
        LATE.with(|late| {
            let late = &mut *late.borrow_mut();
            late.pins -= 1;
            if late.pins == 0 {
                late.number.take().into_iter().for_each(give_number_back);
            }
        });
    }

    fn number() -> Option<usize> {
        LATE.with(|late| late.borrow().number)
    }
}

/// Makes this thread of a model act from now on as in destructors of thread-locals.
#[cfg(loom)]
pub(crate) fn end_locals() {
    LATE.with(|late| late.borrow_mut().is_ending = true);
}

#[cfg(not(loom))]
std::thread_local! {
    /// Where the thread's slot is in the first segment, bytes from its begin, if the fence is
    /// asymmetric; the one that is never quiet before the thread has one, or where the fence is
    /// not.
    static QUICK: Cell<usize> = const { Cell::new(NO_THREAD * SLOT_BYTES) };
}

/// The number of this thread that no other living thread has, if it is below `limit` and known: it
/// is once the thread has been pinned, where the fence is asymmetric.
#[inline(always)]
pub fn number_of_thread(limit: usize) -> Option<usize> {
    let number = quick_slot() / SLOT_BYTES;
    (number < limit.min(FIRST_SEGMENT)).then_some(number)
}

#[inline(always)]
fn quick_slot() -> usize {
    #[cfg(not(loom))]
    return QUICK.get();
    #[cfg(loom)]
    return NO_THREAD * SLOT_BYTES;
}

/// Registers the process for the fence that reaches every thread, as the first [`Epochs`] of a process does. Linux waits
/// some 10 ms for that once there are other threads, and for nothing before.
pub fn prepare_process() {
    barrier::prepare();
}

#[cfg(not(loom))]
mod barrier {
    //! A fence in two halves: `heavy` on one side orders as if `light` were a full fence.

    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

    /// Whether the kernel makes `heavy` reach every thread.
    static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

    #[cfg(target_os = "linux")]
    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call has no memory arguments, and an unknown command is an error.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    #[cfg(not(target_os = "linux"))]
    fn membarrier(_command: i32) -> bool {
        false
    }

    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

    /// Before the first pin, so that no pin of an unregistered process counts on it.
    pub(super) fn prepare() {
        static DONE: OnceLock<()> = OnceLock::new();
        DONE.get_or_init(|| {
            let works = membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED);
            ASYMMETRIC.store(works, Ordering::Relaxed);
        });
    }

    pub(super) fn is_asymmetric() -> bool {
        ASYMMETRIC.load(Ordering::Relaxed)
    }

    /// As `light`, where the fence is known to be asymmetric.
    #[inline(always)]
    pub(super) fn light_asymmetric() {
        compiler_fence(Ordering::SeqCst);
    }

    pub(super) fn light() {
        if ASYMMETRIC.load(Ordering::Relaxed) {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    pub(super) fn heavy() {
        fence(Ordering::SeqCst);
        if ASYMMETRIC.load(Ordering::Relaxed) {
            assert!(membarrier(PRIVATE_EXPEDITED), "membarrier worked when the process began");
        }
    }
}

#[cfg(loom)]
mod barrier {
    pub(super) fn prepare() {}

    pub(super) fn light_asymmetric() {
        light();
    }

    pub(super) fn light() {
        loom::sync::atomic::fence(super::Ordering::SeqCst);
    }

    pub(super) fn heavy() {
        loom::sync::atomic::fence(super::Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_safe_when_earlier_pins_have_left() {
        let epochs = Epochs::new();
        let outer = epochs.pin();
        assert!(outer.is_outermost() && epochs.is_pinned());
        let epoch = epochs.bump();
        assert!(!epochs.is_safe(epoch));
        let inner = epochs.pin();
        assert!(!inner.is_outermost());
        drop(inner);
        assert!(!epochs.is_safe(epoch), "the outer pin holds on");
        drop(outer);
        assert!(epochs.is_safe(epoch) && !epochs.is_pinned());
        let later = epochs.pin();
        assert!(epochs.is_safe(epoch), "a pin of the new epoch holds nothing back");
        drop(later);
    }

    /// A thread-local that is made before the thread's number is dropped after it.
    struct AtEnd(Option<Box<dyn FnOnce()>>);

    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(|work| work());
        }
    }

    thread_local! {
        static AT_END: RefCell<AtEnd> = const { RefCell::new(AtEnd(None)) };
    }

    #[test]
    fn a_thread_that_lost_its_number_pins_all_the_same() {
        let (tell, told) = std::sync::mpsc::channel();
        let late = move || {
            let gone = number_for_life().is_none();
            tell.send((gone, std::panic::catch_unwind(pins_nest_across_tables)))
                .expect("the test waits");
        };
        let thread = std::thread::spawn(move || {
            AT_END.with(|local| local.borrow_mut().0 = Some(Box::new(late)));
            drop(Epochs::new().pin());
        });
        thread.join().expect("no panic");
        let (gone, passed) = told.recv().expect("the destructor runs");
        assert!(gone, "destructors run in another order here: the test says nothing");
        passed.expect("no panic");
    }

    fn pins_nest_across_tables() {
        let (one, other) = (Epochs::new(), Epochs::new());
        assert!(!one.is_pinned() && one.pin_quick().is_none() && Late::number().is_none());
        let outer = one.pin();
        assert!(outer.is_outermost() && one.is_pinned() && !other.is_pinned());
        let epoch = one.bump();
        let inner = one.pin();
        assert!(!inner.is_outermost());
        let elsewhere = other.pin();
        assert!(elsewhere.is_outermost());
        drop(inner);
        assert!(!one.is_safe(epoch), "the outer pin holds on");
        drop(outer);
        assert!(one.is_safe(epoch) && !one.is_pinned());
        // The number stays while a pin of any table needs it.
        let elsewhere_since = other.bump();
        assert!(!other.is_safe(elsewhere_since) && Late::number().is_some());
        drop(one.pin());
        assert!(!other.is_safe(elsewhere_since) && other.is_pinned());
        drop(elsewhere);
        assert!(other.is_safe(elsewhere_since) && Late::number().is_none());
    }

    #[test]
    fn many_threads_have_slots_of_their_own() {
        let epochs = Epochs::new();
        let all_pinned = std::sync::Barrier::new(101);
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    let _pin = epochs.pin();
                    all_pinned.wait();
                    all_pinned.wait();
                });
            }
            all_pinned.wait();
            let epoch = epochs.bump();
            assert!(!epochs.is_safe(epoch));
            all_pinned.wait();
        });
        assert!(epochs.is_safe(epochs.bump()));
    }
}
