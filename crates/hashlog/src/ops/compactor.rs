//! The state of the thread that compacts: its calls, its failures, and the writers that wait for it.
//!
//! `compaction::background` says when it is called and what it does; here nothing knows a log.
//! Everything is behind locks, but for figures that order nothing.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{JoinHandle, ThreadId};

use crate::error::Error;
use crate::options::Compaction;
use crate::stats::Compacted;
use crate::striped::StripedCounter;

/// At most two to this power calls pass before what failed is tried again.
const PAUSE_BITS_MAX: u32 = 6;

/// The work of the thread.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// Gives the work, unless the log is being dropped.
type Employer = dyn Fn() -> Option<Work> + Send + Sync;

/// The part of a log that keeps it short.
pub(crate) struct Compactor {
    /// `None`: on request alone.
    pub(crate) policy: Option<Compaction>,
    /// Held by the thread that moves `begin` in a log with a directory.
    compacting: Mutex<()>,
    state: Mutex<CompactorState>,
    called: Condvar,
    /// Signalled when the thread has done a chunk, or stops.
    went_on: Condvar,
    /// The work of the thread, while the log is there.
    work: OnceLock<Box<Employer>>,
    /// Calls are due when the tail is here; not while the thread is at it, which looks afterwards
    /// whether one was.
    pub(crate) look_at: AtomicU64,
    /// Bytes of a log that is too long for writers to go on at once.
    pub(crate) too_long: AtomicU64,
    /// The room that was given up last waits for a checkpoint.
    pub(crate) waits_for_checkpoint: AtomicBool,
    /// Share of the log that was garbage when it was last looked at, as bits of an `f64`.
    garbage_share: AtomicU64,
    /// Bytes of superseded records that had been counted then.
    garbage_counted: AtomicI64,
    /// Bytes of memory of a compaction that is under way.
    buffer_bytes: AtomicU64,
    pub(crate) done: StripedCounter,
    pub(crate) bytes_freed: StripedCounter,
    pub(crate) bytes_moved: StripedCounter,
}

#[derive(Default)]
pub(crate) struct CompactorState {
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
    pub(crate) pause: u64,
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
            work: OnceLock::new(),
            look_at: AtomicU64::new(0),
            too_long: AtomicU64::new(u64::MAX),
            waits_for_checkpoint: AtomicBool::new(false),
            garbage_share: AtomicU64::new(0),
            garbage_counted: AtomicI64::new(0),
            buffer_bytes: AtomicU64::new(0),
            done: StripedCounter::default(),
            bytes_freed: StripedCounter::default(),
            bytes_moved: StripedCounter::default(),
        }
    }

    /// Makes the work of its thread known.
    pub(crate) fn belong_to(&self, work: impl Fn() -> Option<Work> + Send + Sync + 'static) {
        let first = self.work.set(Box::new(work));
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

    /// Bytes that have been counted as garbage since it was last looked at, of those counted by now.
    pub(crate) fn garbage_since(&self, counted: i64) -> u64 {
        (counted - self.garbage_counted.load(Ordering::Relaxed)).max(0) as u64
    }

    /// Remembers a look at the garbage, and the bytes that were counted by then.
    pub(crate) fn set_garbage_share(&self, share: f64, counted: i64) {
        self.garbage_share.store(share.to_bits(), Ordering::Relaxed);
        self.garbage_counted.store(counted, Ordering::Relaxed);
    }

    /// Counts a compaction for the log's figures.
    pub(crate) fn count(&self, done: &Compacted) {
        self.done.add(i64::from(done.bytes_freed > 0));
        self.bytes_freed.add(done.bytes_freed as i64);
        self.bytes_moved.add(done.bytes_moved as i64);
    }

    /// Wakes the thread, or starts it, for a log of so many bytes.
    pub(crate) fn call(&self, log_bytes: u64) {
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
            && let Some(work) = self.work.get().and_then(|work| work())
        {
            let thread = std::thread::Builder::new().name("sapwood-compact".to_owned());
            match thread.spawn(work) {
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

    /// The thread is done, and may be called when the tail is at an address: the log has so many
    /// bytes then.
    pub(crate) fn end_at(&self, look_at: u64, log_bytes: u64) {
        // Not by what the log has now: each call that is late would let it grow to twice as much.
        let due_bytes = self.policy.map_or(0, |policy| policy.log_bytes_min).max(log_bytes);
        self.too_long.store(2 * due_bytes, Ordering::Relaxed);
        self.look_at.store(look_at, Ordering::Relaxed);
    }

    /// Sleeps until it is called; false at the end.
    pub(crate) fn wait_until_called(&self) -> bool {
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
        let compacting = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        self.run(compacting, compact)
    }

    /// Runs a compaction, or answers `None` while another one runs.
    pub(crate) fn try_alone<R>(&self, compact: impl FnOnce() -> R) -> Option<R> {
        let compacting = match self.compacting.try_lock() {
            Ok(compacting) => compacting,
            // It guards no data.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(self.run(compacting, compact))
    }

    fn run<R>(&self, _compacting: MutexGuard<'_, ()>, compact: impl FnOnce() -> R) -> R {
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
    pub(crate) fn let_go_on(&self) {
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
    pub(crate) fn end(&self) {
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
    pub(crate) fn state(&self) -> MutexGuard<'_, CompactorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompactorState {
    pub(crate) fn fail(&mut self, error: Error) {
        self.failures += 1;
        self.pause = 1 << self.failures.min(PAUSE_BITS_MAX);
        self.error = Some(error);
    }

    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
        self.pause = 0;
        self.error = None;
    }
}
