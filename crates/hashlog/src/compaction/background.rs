//! The thread that compacts a log in a directory.
//!
//! A writer that turned a page calls ([`Store::request_compaction`]) when the log has grown by an
//! eighth since it was last looked at. A thread of the log's own, which starts with the first call,
//! then estimates the garbage ([`Store::sample_garbage`]) and, while there is too much, compacts an
//! eighth of the log at a time, in chunks between which walks and checkpoints have their turn. While
//! it does, writers do not call: it calls itself if the log has grown by an eighth since its last
//! look. It sleeps otherwise, and ends when the log is dropped.
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

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::error::Result;
use crate::ops::compactor::Work;
use crate::ops::store::Store;
use crate::options::{Compaction, Layout};
use crate::record::address::Address;
use crate::record::in_place::InPlace;
use crate::record::{Fixed, Variable};

/// An own compaction goes through one of so many parts of the log, and looks again.
const STEPS: u64 = 8;
/// A log that is too long is compacted for so little garbage.
const LEAST_SHARE: f64 = 0.1;

/// How far the log had come when it was last looked at.
#[derive(Clone, Copy)]
struct Seen {
    tail: u64,
    log_bytes: u64,
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
        // Pairs with itself: of a writer that has moved the tail, and the log's own thread that has
        // moved `look_at`, one sees what the other did.
        fence(Ordering::SeqCst);
        let Seen { tail, log_bytes } = self.seen();
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

    /// Gives the compactor's thread its work, for as long as the log is there.
    pub(crate) fn employ_compactor(self: &Arc<Store>) {
        let store = Arc::downgrade(self);
        self.compactor.belong_to(move || {
            let store = store.upgrade()?;
            Some(Box::new(move || store.keep_short()) as Work)
        });
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
                Ok(seen) => {
                    self.compactor.state().succeed();
                    let growth = (seen.log_bytes / STEPS).max(self.log.page_bytes as u64);
                    // As if called in time: a call may be overdue.
                    self.compactor.end_at(seen.tail + growth, seen.log_bytes + growth);
                    // Writers that filled pages since it looked have not called, and may be done.
                    self.request_compaction();
                }
            }
        }
    }

    /// Compacts until there is little garbage, or to go on would give little room. Answers how far
    /// the log had come when that was seen: what is written meanwhile may be garbage.
    fn compact_while_due<F: InPlace>(&self) -> Result<Seen> {
        let Some(policy) = &self.compactor.policy else { return Ok(self.seen()) };
        // All of the log that is there, once; what has been moved and written meanwhile, another
        // time, if this one was worth it.
        let mut lap = Lap::new(self.log.tail());
        loop {
            let seen = self.seen();
            if seen.log_bytes < policy.log_bytes_min
                || self.has_to_wait_for_checkpoint()
                || self.begin_lock.is_ended()
            {
                return Ok(seen);
            }
            let share = self.sample_garbage::<F>()?;
            if !policy.is_due(self.log_bytes(), share) {
                return Ok(seen);
            }
            let step = (self.log_bytes() / STEPS).max(self.log.page_bytes as u64);
            let until = Address::from_bytes(self.log.begin().bytes() + step).min(lap.limit);
            let done = self.compact::<F>(until)?;
            self.drop_unneeded_parts()?;
            lap.freed += done.bytes_freed;
            lap.moved += done.bytes_moved;
            if done.bytes_freed == 0 || self.log.begin() >= lap.limit {
                if !lap.was_worth_it() {
                    // What it moved itself is no reason to look again.
                    return Ok(self.seen());
                }
                lap = Lap::new(self.log.tail());
            }
        }
    }

    /// Whether to compact would only lengthen the files: more of them is kept for checkpoints than
    /// is in use.
    fn has_to_wait_for_checkpoint(&self) -> bool {
        let would_not_help = || self.log.has_cold() && self.held_bytes() > self.log_bytes();
        if !would_not_help() {
            return false;
        }
        // A checkpoint that ends now either finds the flag or is seen by the second look.
        self.compactor.waits_for_checkpoint.store(true, Ordering::SeqCst);
        would_not_help()
    }

    fn seen(&self) -> Seen {
        let (begin, tail) = self.log.ends();
        Seen { tail: tail.bytes(), log_bytes: tail.bytes().saturating_sub(begin.bytes()) }
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.seen().log_bytes
    }

    /// Of the log that was given up, bytes whose files are kept for checkpoints.
    pub(crate) fn held_bytes(&self) -> u64 {
        let oldest = self.checkpoints.as_ref().and_then(|checkpoints| checkpoints.oldest_begin());
        oldest.map_or(0, |oldest| self.log.begin().bytes().saturating_sub(oldest))
    }

    /// Superseded, removed or unused bytes of the log: as counted, or estimated last with what was
    /// superseded in memory since.
    pub(crate) fn garbage_bytes(&self) -> u64 {
        match &self.log.parts {
            None => self.garbage.sum() + self.log.wasted(0),
            Some(_) => {
                let log_bytes = self.log_bytes();
                let estimated = (log_bytes as f64 * self.compactor.garbage_share()) as u64;
                let since = self.compactor.garbage_since(self.garbage.net());
                (estimated + since).min(log_bytes)
            }
        }
    }
}
