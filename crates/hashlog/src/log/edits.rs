//! Edits: many records changed in place without an atomic read-modify-write for each.
//!
//! An *edit* raises `read_only` above them: from then on other threads replace them by appends, as
//! under a snapshot. What is left to exclude are other edits, and read-modify-writes that copy a
//! value which is about to change. Both go by *windows*, ranges of addresses of which no two
//! overlap: an edit opens one, changes what lies in it by plain loads and stores, and closes it.
//! A thread that copies a record claims it first, then waits if a window is over it. An edit skips
//! claimed records.
//!
//! | word | written | read |
//! |---|---|---|
//! | `count` | the thread that begins or ends an edit: SeqCst, under `moving`, then an epoch | pinned threads that copy a record: Acquire |
//! | `windows` | edits, under its lock | copies of claimed records, under its lock |
//! | a record's WRITER | the thread that copies it: fetch_or AcqRel, before it looks at `windows` | edits: Acquire, after they have opened a window |
//! | `fixed_below` | snapshots, under `moving`, then an epoch | edits, pinned: Acquire |
//!
//! Of a claim and a window one is first, by the lock of `windows`. If the claim, the edit sees it.
//! If the window, the claimant sees that, and copies what the edit has left.
//!
//! A blind put or a removal neither claims nor waits: it does not depend on the value. An edit that
//! races it began before, since it has waited for all earlier appends, and counts as just
//! before it.

use std::ops::Range;

use sapwood_mem::sync::held::Mutex;
use sapwood_mem::sync::{AtomicU64, Backoff, Ordering};

use crate::lock::lock;
use crate::log::Log;
use crate::record::address::Address;

/// The edits of a log.
#[derive(Default)]
pub(super) struct Edits {
    /// The number of edits that go on, or are about to.
    count: AtomicU64,
    /// Addresses that `read_only` may not go below: one for each.
    pub(super) limits: Mutex<Vec<Address>>,
    windows: Mutex<Vec<Range<Address>>>,
}

/// An edit: no other thread changes records below its limit in place.
pub(crate) struct LogEdit<'a> {
    log: &'a Log,
    pub(crate) limit: Address,
}

/// Records that only its holder changes in place, if they lie below the edit's limit and above
/// every snapshot.
pub(crate) struct Window<'a> {
    log: &'a Log,
    range: Range<Address>,
}

impl Edits {
    pub(super) fn any(&self) -> bool {
        // Acquire: pairs with the SeqCst of the thread that begins an edit.
        self.count.load(Ordering::Acquire) > 0
    }
}

impl Log {
    /// Begins an edit of what is in pages that are full or closed. Call it unpinned, on a log
    /// without a directory.
    pub(crate) fn begin_edit(&self) -> LogEdit<'_> {
        debug_assert!(self.parts.is_none(), "stored pages are never edited");
        let _moving = lock(&self.moving);
        let limit = self.closed_below();
        // Known to a thread that copies a record because `read_only` has moved.
        self.edits.count.fetch_add(1, Ordering::SeqCst);
        lock(&self.edits.limits).push(limit);
        if limit > self.read_only() {
            self.bounds.read_only.store(limit.units(), Ordering::SeqCst);
        }
        // Also where a snapshot had moved it before: a thread that appends unseen has left by then.
        self.wait_for_epoch(self.epochs.bump());
        if limit > self.safe_read_only() {
            self.bounds.safe_read_only.store(self.read_only().units(), Ordering::Release);
        }
        LogEdit { log: self, limit }
    }

    /// Below it pages are full or closed, and mapped.
    pub(crate) fn closed_below(&self) -> Address {
        self.page_start(self.page_of(self.tail()))
    }

    /// Whether a record must be claimed before it is copied.
    #[inline]
    pub(crate) fn has_edits(&self) -> bool {
        self.edits.any()
    }

    /// Whether a window is open over a record.
    pub(crate) fn is_edited(&self, address: Address) -> bool {
        lock(&self.edits.windows).iter().any(|window| window.contains(&address))
    }

    /// Below lies what snapshots show.
    pub(crate) fn fixed_below(&self) -> Address {
        Address::from_units(self.bounds.fixed_below.load(Ordering::Acquire))
    }
}

impl<'a> LogEdit<'a> {
    /// Opens a window, once no other overlaps. Call it unpinned.
    pub(crate) fn open(&self, range: Range<Address>) -> Window<'a> {
        let overlaps = |other: &Range<Address>| other.start < range.end && range.start < other.end;
        let backoff = Backoff::new();
        loop {
            let mut windows = lock(&self.log.edits.windows);
            if !windows.iter().any(overlaps) {
                windows.push(range.clone());
                return Window { log: self.log, range };
            }
            drop(windows);
            backoff.wait();
        }
    }
}

impl Drop for LogEdit<'_> {
    fn drop(&mut self) {
        {
            let _moving = lock(&self.log.moving);
            let mut limits = lock(&self.log.edits.limits);
            let at = limits.iter().position(|at| *at == self.limit).expect("it was begun");
            limits.swap_remove(at);
            self.log.edits.count.fetch_sub(1, Ordering::SeqCst);
        }
        self.log.lower();
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let mut windows = lock(&self.log.edits.windows);
        let at = windows.iter().position(|at| *at == self.range).expect("it was opened");
        windows.swap_remove(at);
    }
}
