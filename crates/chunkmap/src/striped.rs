//! StripedCounters of entries and bytes, striped, so that writers do not contend.

use crossbeam_utils::CachePadded;
use sapwood_mem::arena::stripe_of_thread;
use sapwood_mem::sync::Ordering;
use sapwood_mem::sync::counter::AtomicI64;

const STRIPES: usize = 8;

#[derive(Default)]
struct Cell {
    entries: AtomicI64,
    key_bytes: AtomicI64,
    value_bytes: AtomicI64,
}

/// Entries and bytes; each stripe may be negative, the sum is right whenever no
/// operation is half done.
#[derive(Default)]
pub(crate) struct StripedCounters {
    cells: [CachePadded<Cell>; STRIPES],
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
        let cell = &self.cells[stripe_of_thread(STRIPES)];
        for (counter, change) in [
            (&cell.entries, entries),
            (&cell.key_bytes, key_bytes),
            (&cell.value_bytes, value_bytes),
        ] {
            if change != 0 {
                counter.fetch_add(change, Ordering::Relaxed);
            }
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
