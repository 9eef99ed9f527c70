//! The thread that compacts a log in a directory.
//!
//! A writer that turned a page calls ([`Store::request_compaction`]) when the log has grown by an
//! eighth since it was last looked at. A thread of the log's own, which starts with the first call,
//! then estimates the garbage ([`Store::sample_garbage`]) and, while there is too much, compacts an
//! eighth of the log at a time, in chunks between which walks and checkpoints have their turn. It
//! sleeps otherwise, and ends when the log is dropped.
//!
//! What fails is kept for [`HashStats`](crate::HashStats), and tried again after a pause. Pauses
//! are counted in calls, that is in pages that were filled or could not be: a log without writes
//! needs no compaction. So there is no clock, and a disk that is full is not hammered.
//!
//! Writers that are much faster than it wait for it: once the log is twice as long as it was when
//! the thread was called, a writer that turns a page lets two chunks go first. No writer waits for
//! a thread that waits itself, for a walk to end or a checkpoint to come, or that failed.
//!
//! # Thread safety
//!
//! Everything here is behind locks, but for figures that order nothing. Lock order: `compacting`,
//! then `begin_lock`, then those of the log; `compacting`, then those of checkpoints. A thread that
//! holds a checkpoint's lock waits to share `begin_lock`; a thread that waits for that lock never
//! holds `begin_lock`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{JoinHandle, ThreadId};

use crate::counter::Counter;
use crate::error::{Error, Result};
use crate::ops::store::Store;
use crate::options::{Compaction, Layout};
use crate::record::address::Address;
use crate::record::in_place::InPlace;
use crate::record::{Fixed, Variable};
use crate::stats::Compacted;

/// An own compaction goes through one of so many parts of the log, and looks again.
const STEPS: u64 = 8;
/// A log that is too long is compacted for so little garbage.
const LEAST_SHARE: f64 = 0.1;
/// At most two to this power calls pass before what failed is tried again.
const PAUSE_BITS_MAX: u32 = 6;

/// The part of a log that keeps it short.
pub(crate) struct Compactor {
    /// `None`: on request alone.
    policy: Option<Compaction>,
    /// Held by the thread that moves `begin` in a log with a directory.
    compacting: Mutex<()>,
    state: Mutex<State>,
    called: Condvar,
    /// Signalled when the thread has done a chunk, or stops.
    went_on: Condvar,
    /// The log, for the thread to share.
    log: OnceLock<Weak<Store>>,
    /// Calls are due when the tail is here; never, while the thread is at it.
    look_at: AtomicU64,
    /// Bytes of a log that is too long for writers to go on at once.
    too_long: AtomicU64,
    /// The room that was given up last waits for a checkpoint.
    waits_for_checkpoint: AtomicBool,
    /// Share of the log that was garbage when it was last looked at, as bits of an `f64`.
    garbage_share: AtomicU64,
    /// Bytes of memory of a compaction that is under way.
    buffer_bytes: AtomicU64,
    pub(crate) done: Counter,
    pub(crate) bytes_freed: Counter,
    pub(crate) bytes_moved: Counter,
}

#[derive(Default)]
struct State {
    due: bool,
    ended: bool,
    /// The thread was called, and is not done.
    busy: bool,
    /// A compaction waits for others.
    waits: bool,
    /// The thread that compacts: the log's own, or a caller's.
    compacting: Option<ThreadId>,
    /// Chunks so far.
    chunks: u64,
    /// Calls that pass unheard.
    pause: u64,
    /// Failures in a row, and the last of them.
    failures: u32,
    error: Option<Error>,
    thread: Option<JoinHandle<()>>,
}

impl Compactor {
    pub(crate) fn new(policy: Option<Compaction>) -> Compactor {
        Compactor {
            policy,
            compacting: Mutex::default(),
            state: Mutex::default(),
            called: Condvar::new(),
            went_on: Condvar::new(),
            log: OnceLock::new(),
            look_at: AtomicU64::new(0),
            too_long: AtomicU64::new(u64::MAX),
            waits_for_checkpoint: AtomicBool::new(false),
            garbage_share: AtomicU64::new(0),
            buffer_bytes: AtomicU64::new(0),
            done: Counter::default(),
            bytes_freed: Counter::default(),
            bytes_moved: Counter::default(),
        }
    }

    /// Makes the log known that it belongs to.
    pub(crate) fn belong_to(&self, store: &Arc<Store>) {
        let first = self.log.set(Arc::downgrade(store));
        debug_assert!(first.is_ok(), "a log is made known once");
    }

    /// The error that stopped it last.
    pub(crate) fn error(&self) -> Option<Error> {
        self.state().error.clone()
    }

    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes.load(Ordering::Relaxed)
    }

    /// Counts buffers of a compaction among the log's memory.
    pub(crate) fn set_buffer_bytes(&self, bytes: u64) {
        self.buffer_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn garbage_share(&self) -> f64 {
        f64::from_bits(self.garbage_share.load(Ordering::Relaxed))
    }

    pub(crate) fn set_garbage_share(&self, share: f64) {
        self.garbage_share.store(share.to_bits(), Ordering::Relaxed);
    }

    /// Counts a compaction for the log's figures.
    pub(crate) fn count(&self, done: &Compacted) {
        self.done.add(i64::from(done.bytes_freed > 0));
        self.bytes_freed.add(done.bytes_freed as i64);
        self.bytes_moved.add(done.bytes_moved as i64);
    }

    /// Wakes the thread, or starts it, for a log of so many bytes.
    fn call(&self, log_bytes: u64) {
        let mut state = self.state();
        if state.pause > 0 {
            state.pause -= 1;
            return;
        }
        state.due = true;
        if !state.busy {
            state.busy = true;
            self.too_long.store(2 * log_bytes, Ordering::Relaxed);
        }
        if state.thread.is_none()
            && !state.ended
            && let Some(store) = self.log.get().and_then(Weak::upgrade)
        {
            let thread = std::thread::Builder::new().name("sapwood-compact".to_owned());
            match thread.spawn(move || store.keep_short()) {
                Ok(handle) => state.thread = Some(handle),
                Err(cause) => {
                    state.fail(Error::io("cannot start the thread that compacts the log", &cause));
                    state.busy = false;
                }
            }
        }
        drop(state);
        self.called.notify_one();
    }

    /// Sleeps until it is called; false at the end.
    fn wait_until_called(&self) -> bool {
        let mut state = self.state();
        state.busy = state.due;
        if !state.busy {
            self.too_long.store(u64::MAX, Ordering::Relaxed);
        }
        self.went_on.notify_all();
        while !state.due && !state.ended {
            state = self.called.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.due = false;
        !state.ended
    }

    /// Runs a compaction, one at a time. While it does, its own appends do not wait for it.
    pub(crate) fn alone<R>(&self, compact: impl FnOnce() -> R) -> R {
        // It guards no data.
        let _compacting = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        self.state().compacting = Some(std::thread::current().id());
        let compacted = compact();
        self.state().compacting = None;
        compacted
    }

    /// A chunk is done: writers that wait for it may go on.
    pub(crate) fn went_on(&self) {
        self.state().chunks += 1;
        self.went_on.notify_all();
    }

    /// Runs what waits for others, while no writer waits for a compaction.
    pub(crate) fn waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.state().waits = true;
        self.went_on.notify_all();
        let waited = wait();
        self.state().waits = false;
        waited
    }

    /// Lets compaction do two chunks, if the thread is at work and is not the caller.
    fn let_go_on(&self) {
        let mut state = self.state();
        let enough = state.chunks + 2;
        while state.busy && !state.waits && !state.ended && state.chunks < enough {
            if state.compacting == Some(std::thread::current().id()) {
                return;
            }
            state = self.went_on.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the thread, and waits for it.
    fn end(&self) {
        let thread = {
            let mut state = self.state();
            state.ended = true;
            state.thread.take()
        };
        self.called.notify_all();
        if let Some(Err(panic)) = thread.map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }

    // No step leaves it half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fail(&mut self, error: Error) {
        self.failures += 1;
        self.pause = 1 << self.failures.min(PAUSE_BITS_MAX);
        self.error = Some(error);
    }

    fn succeed(&mut self) {
        self.failures = 0;
        self.pause = 0;
        self.error = None;
    }
}

/// Once through the log.
struct Lap {
    limit: Address,
    freed: u64,
    moved: u64,
}

impl Lap {
    fn new(limit: Address) -> Lap {
        Lap { limit, freed: 0, moved: 0 }
    }

    /// The estimate may be wrong by a few percent, and garbage such that moving it gives nothing.
    fn was_worth_it(&self) -> bool {
        self.moved < self.freed - self.freed / 20
    }
}

impl Compaction {
    fn is_due(&self, log_bytes: u64, garbage_share: f64) -> bool {
        garbage_share > self.garbage_share
            || garbage_share > LEAST_SHARE
                && self.log_bytes_max.is_some_and(|bytes_max| log_bytes > bytes_max)
    }
}

impl Store {
    /// A page was filled, or there was no room for another: calls the log's own compaction where
    /// that may be due. Call it unpinned.
    pub(crate) fn request_compaction(&self) {
        let Some(policy) = &self.compactor.policy else { return };
        let (tail, log_bytes) = (self.log.tail().bytes(), self.log_bytes());
        if log_bytes >= policy.log_bytes_min
            && tail >= self.compactor.look_at.load(Ordering::Relaxed)
        {
            self.compactor.call(log_bytes);
        }
    }

    /// A writer filled a page: as `request_compaction`, and where compaction is far behind, waits
    /// for some.
    pub(crate) fn request_compaction_and_yield(&self) {
        self.request_compaction();
        if self.log_bytes() > self.compactor.too_long.load(Ordering::Relaxed) {
            self.compactor.let_go_on();
        }
    }

    /// After a checkpoint: files may go now, and what failed may work again.
    pub(crate) fn request_compaction_at_checkpoint(&self) {
        if self.compactor.policy.is_none() {
            return;
        }
        let waited = self.compactor.waits_for_checkpoint.swap(false, Ordering::Relaxed);
        let failed = std::mem::take(&mut self.compactor.state().pause) > 0;
        if waited || failed {
            self.compactor.look_at.store(0, Ordering::Relaxed);
            self.request_compaction();
        }
    }

    /// Ends the thread, as the log is dropped.
    pub(crate) fn end_compaction(&self) {
        self.begin_lock.end();
        self.compactor.end();
    }

    /// The loop of the thread.
    fn keep_short(&self) {
        while self.compactor.wait_until_called() {
            self.compactor.look_at.store(u64::MAX, Ordering::Relaxed);
            let done = match self.options.layout {
                Layout::Fixed8 => self.compact_while_due::<Fixed>(),
                Layout::Variable => self.compact_while_due::<Variable>(),
            };
            match done {
                Err(error) => {
                    self.compactor.state().fail(error);
                    self.compactor.look_at.store(0, Ordering::Relaxed);
                }
                Ok(()) => {
                    self.compactor.state().succeed();
                    let growth = (self.log_bytes() / STEPS).max(self.log.page_bytes as u64);
                    let next = self.log.tail().bytes() + growth;
                    self.compactor.look_at.store(next, Ordering::Relaxed);
                }
            }
        }
    }

    /// Compacts until there is little garbage, or to go on would give little room.
    fn compact_while_due<F: InPlace>(&self) -> Result<()> {
        let Some(policy) = &self.compactor.policy else { return Ok(()) };
        // All of the log that is there, once; what has been moved and written meanwhile, another
        // time, if this one was worth it.
        let mut lap = Lap::new(self.log.tail());
        while self.log_bytes() >= policy.log_bytes_min {
            if self.has_to_wait_for_checkpoint() || self.begin_lock.is_ended() {
                return Ok(());
            }
            let share = self.sample_garbage::<F>()?;
            if !policy.is_due(self.log_bytes(), share) {
                return Ok(());
            }
            let step = (self.log_bytes() / STEPS).max(self.log.page_bytes as u64);
            let until = Address::from_bytes(self.log.begin().bytes() + step).min(lap.limit);
            let done = self.compact::<F>(until)?;
            self.drop_unneeded_parts()?;
            lap.freed += done.bytes_freed;
            lap.moved += done.bytes_moved;
            if done.bytes_freed == 0 || self.log.begin() >= lap.limit {
                if !lap.was_worth_it() {
                    return Ok(());
                }
                lap = Lap::new(self.log.tail());
            }
        }
        Ok(())
    }

    /// Whether to compact would only lengthen the files: more of them is kept for checkpoints than
    /// is in use.
    fn has_to_wait_for_checkpoint(&self) -> bool {
        let would_not_help =
            || self.log.begin() < self.log.head() && self.held_bytes() > self.log_bytes();
        if !would_not_help() {
            return false;
        }
        // A checkpoint that ends now either finds the flag or is seen by the second look.
        self.compactor.waits_for_checkpoint.store(true, Ordering::SeqCst);
        would_not_help()
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        // In this order: both only grow.
        let begin = self.log.begin().bytes();
        self.log.tail().bytes().saturating_sub(begin)
    }

    /// Of the log that was given up, bytes whose files are kept for checkpoints.
    pub(crate) fn held_bytes(&self) -> u64 {
        let oldest = self.checkpoints.as_ref().and_then(|checkpoints| checkpoints.oldest_begin());
        oldest.map_or(0, |oldest| self.log.begin().bytes().saturating_sub(oldest))
    }

    /// Superseded, removed or unused bytes of the log: as counted, or estimated last.
    pub(crate) fn garbage_bytes(&self) -> u64 {
        match &self.log.parts {
            None => self.garbage.sum() + self.log.wasted(0),
            Some(_) => (self.log_bytes() as f64 * self.compactor.garbage_share()) as u64,
        }
    }
}
