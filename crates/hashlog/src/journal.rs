//! A log's journal, and the latches under which it hears of changes.
//!
//! Values of the fixed layout change by atomic instructions, so that no record has a lock under
//! which a change could be logged. Where there is a journal, and there alone, a writer has a *latch*
//! instead: that of the stripe of its key's hash.
//!
//! - I-LOGGED: a writer takes the latch before its operation, and logs what that did before the
//!   latch goes. So changes of a key are logged in the order in which they happened, and what was
//!   logged before a checkpoint's moment is in that checkpoint.
//! - I-CLAIMED: room for what is logged is claimed before it is done: a full journal refuses a
//!   change, and never what was made. Where a closure decides what that is, its value is given back
//!   what it was.
//! - I-NO-WAIT: a thread that has a latch, or a pin, waits for no other: its calls answer
//!   [`Error::WouldBlock`] where they would. A batch takes the latches of a group of keys in the
//!   order of the stripes. So no two threads wait for each other.
//!
//! | word of a stripe | written | read |
//! |---|---|---|
//! | `latch` | its holder | threads that want it |
//! | `holder` | the thread that has the latch: Relaxed | all threads, Relaxed: each looks for itself alone, which only it writes |
//! | `changes` | the thread that has the latch: Relaxed | the same thread |

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, PoisonError, TryLockError};

use crossbeam_utils::CachePadded;
use sapwood_engine::{Claim, Effect, Journal, Refused};
use sapwood_mem::sync::Ordering;
use sapwood_mem::sync::counter::{AtomicU64, AtomicUsize};
use sapwood_mem::sync::held::{Mutex, MutexGuard};

use crate::error::{Error, Result};

/// A power of two. Two in a model, whose keys share them.
const STRIPES: usize = if cfg!(loom) { 2 } else { 1024 };
/// No thread.
const NONE: usize = 0;

/// A journal, and the latches.
#[derive(Debug)]
pub(crate) struct LatchedJournal {
    journal: Arc<dyn Journal>,
    stripes: Box<[CachePadded<Stripe>]>,
}

#[derive(Debug, Default)]
struct Stripe {
    latch: Mutex<()>,
    /// The thread that has the latch, by a number of its own.
    holder: AtomicUsize,
    /// Changes that were logged under the latch so far.
    changes: AtomicU64,
}

#[cfg(not(loom))]
thread_local! {
    /// The number of latches that this thread has, of all logs. It has no destructor: a log may be used
    /// in those of other thread-locals. Its address is the thread's number.
    static LATCHES: Cell<usize> = const { Cell::new(0) };
}

#[cfg(loom)]
loom::thread_local! {
    static LATCHES: Cell<usize> = Cell::new(0);
}

/// Bytes that are compared at once.
const STEP: usize = 64;

/// Bytes that are equal in two values, step by step, up to the first that differ.
fn equal_from<'v, I: Iterator<Item = &'v u8>>(
    mut steps: impl Iterator<Item = (&'v [u8], &'v [u8])>,
    bytes: impl Fn(&'v [u8]) -> I,
) -> usize {
    let mut equal = 0;
    let last = steps.find(|(before, after)| {
        let is_same = before == after;
        equal += if is_same { after.len() } else { 0 };
        !is_same
    });
    equal
        + last.map_or(0, |(before, after)| {
            bytes(before).zip(bytes(after)).take_while(|(before, after)| before == after).count()
        })
}

/// The part of a value that a change has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Nothing,
    /// These bytes of a value of the same length, which are at most half of it.
    Bytes(Range<usize>),
    All,
}

impl Changed {
    /// The bytes between the first and the last that differ.
    pub(crate) fn between(before: &[u8], after: &[u8]) -> Changed {
        if before.len() != after.len() {
            return Changed::All;
        }
        let first = equal_from(before.chunks(STEP).zip(after.chunks(STEP)), |step| step.iter());
        if first == after.len() {
            return Changed::Nothing;
        }
        let (before, rest) = (&before[first..], &after[first..]);
        let steps = before.rchunks(STEP).zip(rest.rchunks(STEP));
        let len = rest.len() - equal_from(steps, |step| step.iter().rev());
        match len * 2 <= after.len() && after.len() > 8 {
            true => Changed::Bytes(first..first + len),
            false => Changed::All,
        }
    }

    /// Bytes of the value in the log's record.
    pub(crate) fn logged_bytes(&self, after: &[u8]) -> usize {
        match self {
            Changed::Nothing => 0,
            Changed::Bytes(range) => range.len(),
            Changed::All => after.len(),
        }
    }
}

/// The number of this thread, while it lives.
fn this_thread() -> usize {
    LATCHES.with(|latches| std::ptr::from_ref(latches).addr())
}

/// Whether this thread has no latch of any log.
pub(crate) fn has_no_latch() -> bool {
    LATCHES.with(Cell::get) == 0
}

/// A latch that this thread has until it is dropped; without a guard where it had it already.
pub(crate) struct Latch<'t> {
    stripe: &'t Stripe,
    guard: Option<MutexGuard<'t, ()>>,
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        if self.guard.is_some() {
            self.stripe.holder.store(NONE, Ordering::Relaxed);
            LATCHES.with(|latches| latches.set(latches.get() - 1));
        }
    }
}

impl LatchedJournal {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> LatchedJournal {
        LatchedJournal { journal, stripes: (0..STRIPES).map(|_| CachePadded::default()).collect() }
    }

    /// Makes what was logged so far last.
    pub(crate) fn sync(&self) -> Result<()> {
        self.journal.sync().map_err(|cause| Error::io("sync the journal", &cause))
    }

    /// Keeps room for changes whose keys and values have so many bytes together (I-CLAIMED).
    #[inline]
    pub(crate) fn claim(
        &self,
        bytes: usize,
        changes: usize,
    ) -> std::result::Result<Claim<'_>, Refused> {
        Claim::new(&*self.journal, bytes, changes)
    }

    /// The number of the stripe of a key.
    #[inline]
    pub(crate) fn stripe_of(hash: u64) -> usize {
        // Other bits than those that choose buckets and tags.
        (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % STRIPES
    }

    /// INVARIANT: I-NO-WAIT: it waits where `may_wait` says so, and a thread says that without latches,
    /// or of stripes behind all that it has.
    pub(crate) fn latch(&self, stripe: usize, may_wait: bool) -> Result<Latch<'_>> {
        let (stripe, thread) = (&*self.stripes[stripe], this_thread());
        if stripe.holder.load(Ordering::Relaxed) == thread {
            return Ok(Latch { stripe, guard: None });
        }
        // A panic of a closure leaves nothing half changed.
        let guard = match stripe.latch.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if may_wait => {
                stripe.latch.lock().unwrap_or_else(PoisonError::into_inner)
            }
            Err(TryLockError::WouldBlock) => return Err(Error::WouldBlock),
        };
        stripe.holder.store(thread, Ordering::Relaxed);
        LATCHES.with(|latches| latches.set(latches.get() + 1));
        Ok(Latch { stripe, guard: Some(guard) })
    }

    /// Changes of a stripe that were logged so far, for the thread that has its latch. Where the number
    /// grows while a closure runs, the closure has changed a key of this stripe itself.
    pub(crate) fn changes(&self, stripe: usize) -> u64 {
        self.stripes[stripe].changes.load(Ordering::Relaxed)
    }

    pub(crate) fn put(&self, stripe: usize, key: &[u8], value: &[u8]) {
        self.log(stripe, key, Effect::Put(value));
    }

    pub(crate) fn remove(&self, stripe: usize, key: &[u8]) {
        self.log(stripe, key, Effect::Remove);
    }

    /// Logs how a value changed.
    pub(crate) fn change(&self, stripe: usize, key: &[u8], after: &[u8], changed: &Changed) {
        match changed {
            Changed::Nothing => {}
            Changed::All => self.put(stripe, key, after),
            Changed::Bytes(range) => {
                let (offset, bytes) = (range.start, &after[range.clone()]);
                self.log(stripe, key, Effect::Write { offset, bytes });
            }
        }
    }

    fn log(&self, stripe: usize, key: &[u8], effect: Effect<'_>) {
        let holder = &self.stripes[stripe].holder;
        debug_assert_eq!(
            holder.load(Ordering::Relaxed),
            this_thread(),
            "I-LOGGED: it has the latch"
        );
        // The holder of the latch alone writes it.
        self.stripes[stripe].changes.store(self.changes(stripe) + 1, Ordering::Relaxed);
        self.journal.log(key, effect);
    }
}
