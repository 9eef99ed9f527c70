//! The state of a map's compaction, which `compact` and `cluster` take steps of.

use std::cell::Cell;

use crossbeam_utils::CachePadded;
use sapwood_mem::sync::Ordering;
use sapwood_mem::sync::counter::AtomicU64;
use sapwood_mem::sync::held::{Mutex, MutexGuard};

#[cfg(not(loom))]
thread_local! {
    /// The map for which this thread should take a step at the end of its operation.
    static DUE: Cell<*const Compaction> = const { Cell::new(std::ptr::null()) };
}

// A model's threads share one thread of the system.
#[cfg(loom)]
loom::thread_local! {
    static DUE: Cell<*const Compaction> = Cell::new(std::ptr::null());
}

/// The state of a map's compaction.
#[derive(Default)]
pub(crate) struct Compaction {
    /// Bytes that went to the epochs since the last look at the arena ...
    pub(crate) handed_bytes: CachePadded<AtomicU64>,
    /// ... and how many of them make the next look due. Relaxed: both only choose
    /// a moment.
    pub(crate) look_at_bytes: AtomicU64,
    /// Bytes that passes have moved so far.
    pub(crate) moved_bytes: AtomicU64,
    pub(crate) state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    /// While a pass is under way: the key from which it goes on.
    pub(crate) cursor: Option<Vec<u8>>,
    /// Passes that came to their end.
    pub(crate) passes: u64,
    /// The usage when the last look or pass ended.
    pub(crate) settled: Option<Usage>,
    /// The usage when `trim` found that it could gain no more.
    pub(crate) trimmed: Option<Usage>,
    /// The pass under way empties spans, for `cluster`, and no blocks.
    pub(crate) is_of_spans: bool,
    /// The least bytes that holes had since the last pass: see `cluster` ...
    pub(crate) hole_bytes: Option<u64>,
    /// ... and since the last one that emptied blocks.
    pub(crate) first_hole_bytes: Option<u64>,
}

/// Memory that is mapped, and the part of it in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) reserved_bytes: u64,
    pub(crate) live_bytes: u64,
    /// Idle, and of use for any size.
    pub(crate) extent_bytes: u64,
}

impl Usage {
    /// Holes: mapped, in no live slice, and of use for slices of one size alone.
    pub(crate) fn hole_bytes(&self) -> u64 {
        self.reserved_bytes.saturating_sub(self.live_bytes + self.extent_bytes)
    }

    /// True if more than half of the memory is idle, and more than two blocks.
    pub(crate) fn is_sparse(&self, block_bytes: usize) -> bool {
        self.reserved_bytes > 2 * self.live_bytes + 2 * (block_bytes as u64).max(32 << 10)
    }

    /// True if so little has happened since `trimmed` that another `trim` would move in vain.
    pub(crate) fn is_close_to(&self, trimmed: &Usage) -> bool {
        let close = |now: u64, then: u64| now.abs_diff(then) <= then / 16;
        close(self.live_bytes, trimmed.live_bytes)
            && close(self.reserved_bytes, trimmed.reserved_bytes)
    }

    /// True if enough has happened since `settled` for another pass to pay.
    pub(crate) fn has_moved_on(&self, settled: &Usage) -> bool {
        self.live_bytes * 4 < settled.live_bytes * 3
            || self.reserved_bytes * 4 > settled.reserved_bytes * 5
    }
}

/// The progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

impl Compaction {
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Ordering::Relaxed)
    }

    /// The operation that this thread is in takes a step when it ends.
    pub(crate) fn set_due(&self) {
        DUE.with(|due| due.set(self));
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        DUE.with(|due| std::ptr::eq(due.get(), self))
    }

    pub(crate) fn set_done(&self) {
        if self.is_due() {
            DUE.with(|due| due.set(std::ptr::null()));
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
