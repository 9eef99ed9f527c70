//! Counters of entries and bytes and of removals in progress, striped, so that writers do not contend, and mostly count
//! without a locked instruction.

use crossbeam_utils::CachePadded;
use sapwood_mem::arena::stripe_of_thread;
use sapwood_mem::epoch::number_of_thread;
use sapwood_mem::sync::counter::AtomicI64;
use sapwood_mem::sync::{AtomicU64, Ordering};

/// Stripes that each belong to one thread; none in a model, whose stacks are small.
const OWN: usize = if cfg!(loom) { 0 } else { 8 };
/// Stripes of the threads that have none of their own.
const SHARED: usize = if cfg!(loom) { 1 } else { 8 };

#[derive(Default)]
struct Cell {
    entries: AtomicI64,
    key_bytes: AtomicI64,
    value_bytes: AtomicI64,
}

impl Cell {
    /// Calls `add` with each counter that changes.
    #[inline(always)]
    fn each(&self, entries: i64, key_bytes: i64, value_bytes: i64, add: impl Fn(&AtomicI64, i64)) {
        for (counter, change) in [
            (&self.entries, entries),
            (&self.key_bytes, key_bytes),
            (&self.value_bytes, value_bytes),
        ] {
            if change != 0 {
                add(counter, change);
            }
        }
    }
}

/// Entries and bytes; each stripe may be negative, the sum is right whenever no
/// operation is half done.
#[derive(Default)]
pub(crate) struct StripedCounters {
    cells: [CachePadded<Cell>; OWN + SHARED],
}

/// The sums of [`StripedCounters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) entries: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
}

impl StripedCounters {
    pub(crate) fn new() -> StripedCounters {
        StripedCounters::default()
    }

    pub(crate) fn inserted(&self, key_len: usize, value_len: usize) {
        self.add(1, key_len as i64, value_len as i64);
    }

    pub(crate) fn removed(&self, key_len: usize, value_len: usize) {
        self.add(-1, -(key_len as i64), -(value_len as i64));
    }

    pub(crate) fn resized(&self, from: usize, to: usize) {
        if from != to {
            self.add(0, 0, to as i64 - from as i64);
        }
    }

    fn add(&self, entries: i64, key_bytes: i64, value_bytes: i64) {
        if let Some(own) = number_of_thread(OWN) {
            // No other thread changes this stripe until the number has changed hands, by a lock.
            self.cells[own].each(entries, key_bytes, value_bytes, |counter, change| {
                let sum = counter.load(Ordering::Relaxed).wrapping_add(change);
                counter.store(sum, Ordering::Relaxed);
            });
        } else {
            let shared = &self.cells[OWN + stripe_of_thread(SHARED)];
            shared.each(entries, key_bytes, value_bytes, |counter, change| {
                counter.fetch_add(change, Ordering::Relaxed);
            });
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let sum = |field: fn(&Cell) -> &AtomicI64| {
            let sum: i64 = self.cells.iter().map(|cell| field(cell).load(Ordering::Relaxed)).sum();
            // A sum taken in the middle of an operation may dip below zero.
            sum.max(0) as u64
        };
        Totals {
            entries: sum(|cell| &cell.entries),
            key_bytes: sum(|cell| &cell.key_bytes),
            value_bytes: sum(|cell| &cell.value_bytes),
        }
    }
}

/// Removals in progress: of entries whose record is dead, and whose word does not tell it yet.
///
/// A thread that finds none knows of each record that it has seen dead, removed as it was, that the word has gone with
/// it: where it looks for a chunk afterwards, it need not look at records to see what is removed.
pub(crate) struct Removals {
    cells: [CachePadded<AtomicU64>; SHARED],
}

impl Removals {
    pub(crate) fn new() -> Removals {
        Removals { cells: std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0))) }
    }

    /// A removal is in progress until this is dropped.
    #[inline]
    pub(crate) fn begin(&self) -> Removing<'_> {
        let cell = &self.cells[stripe_of_thread(SHARED)];
        // Relaxed: the record dies by a Release afterwards, so that a thread that sees it dead sees this.
        cell.fetch_add(1, Ordering::Relaxed);
        Removing(cell)
    }

    /// Whether no removal that this thread can have seen is in progress.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        // Acquire: pairs with the Release at the end of each removal, so that this thread sees its tombstone.
        self.cells.iter().all(|cell| cell.load(Ordering::Acquire) == 0)
    }
}

/// A removal in progress.
pub(crate) struct Removing<'m>(&'m AtomicU64);

impl Drop for Removing<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `is_none`.
        self.0.fetch_sub(1, Ordering::Release);
    }
}
