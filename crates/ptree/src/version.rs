//! Versions: how readers notice that a commit went on meanwhile.
//!
//! A sequence lock (Lameter: "Effective synchronization on Linux/NUMA systems", 2005; for the
//! orders see Boehm, MSPC 2012). The number is odd while a commit stores the words of a tree.

use sapwood_mem::sync::{AtomicU64, Backoff, Ordering};

#[cfg(loom)]
use loom::sync::atomic::fence;
#[cfg(not(loom))]
use std::sync::atomic::fence;

/// The number of changes to what a reader looks at, times two, and one more during a change.
#[derive(Debug)]
pub(crate) struct Version(AtomicU64);

/// A version at which no change went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Version {
    pub(crate) fn new() -> Version {
        Version(AtomicU64::new(0))
    }

    /// Waits while a change goes on, and answers the version then.
    #[inline]
    pub(crate) fn read(&self) -> Moment {
        let backoff = Backoff::new();
        loop {
            // Acquire: with the release of `end_change`, so that a reader of this version sees all
            // that it changed.
            let now = self.0.load(Ordering::Acquire);
            if now & 1 == 0 {
                return Moment(now);
            }
            backoff.wait();
        }
    }

    /// Whether no change began since: what was loaded in between is of one moment.
    #[inline]
    pub(crate) fn is_still(&self, moment: Moment) -> bool {
        // Acquire: a load before this fence that saw a word of a change makes the load behind it
        // see that the change began, by the fence in `begin_change`.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == moment.0
    }

    /// Begins a change; one thread at a time.
    pub(crate) fn begin_change(&self) {
        let now = self.0.load(Ordering::Relaxed);
        debug_assert!(now & 1 == 0, "one change at a time");
        self.0.store(now + 1, Ordering::Relaxed);
        // Release: see `is_still`. No store of the change comes before the odd number.
        fence(Ordering::Release);
    }

    /// Ends the change that this thread began.
    pub(crate) fn end_change(&self) {
        let now = self.0.load(Ordering::Relaxed);
        // Release: see `read`.
        self.0.store(now + 1, Ordering::Release);
    }
}
