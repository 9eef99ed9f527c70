//! Ordered maps of other crates.
//!
//! They hold a value as a [`Cell`]: one allocation that the map points to, with the first 8 bytes
//! atomic, so that adding to them in place needs no lock and reading the rest pays nothing. This
//! is the most that a peer can be given: Sapwood's update may change any byte and the length.

pub(crate) mod btree;
pub(crate) mod masstree;
pub(crate) mod off_heap;
pub(crate) mod skip_list;
pub(crate) mod tree_index;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use triomphe::ThinArc;

use crate::consume::consume;
use crate::ordered::workload::ScanForm;
use crate::tally::Tally;

pub(crate) const OFF_HEAP: &str = "skiplist-offheap";
pub(crate) const MASSTREE: &str = "masstree";
pub(crate) const TREE_INDEX: &str = "scc::TreeIndex";

/// A value of at least 8 bytes: its first word, then the rest.
#[derive(Clone)]
pub(crate) struct Cell(ThinArc<AtomicU64, u8>);

impl Cell {
    #[inline]
    fn new(value: &[u8]) -> Cell {
        let (head, rest) = value.split_first_chunk::<8>().expect("values have at least 8 bytes");
        Cell(ThinArc::from_header_and_slice(AtomicU64::new(u64::from_le_bytes(*head)), rest))
    }

    #[inline]
    fn increment(&self) {
        self.0.header.header.fetch_add(1, Relaxed);
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.0.header.header.load(Relaxed).wrapping_add(consume(&self.0.slice))
    }

    #[inline]
    fn copy(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(8 + self.0.slice.len());
        copy.extend_from_slice(&self.0.header.header.load(Relaxed).to_le_bytes());
        copy.extend_from_slice(&self.0.slice);
        copy
    }

    fn is(&self, other: &Cell) -> bool {
        std::ptr::eq(self.0.as_ptr(), other.0.as_ptr())
    }
}

/// Sums what an iterator of entries yields, in the way that `form` asks for.
#[inline]
fn tally<'a>(
    entries: impl Iterator<Item = (&'a [u8], &'a Cell)>,
    limit: usize,
    form: ScanForm,
) -> Tally {
    let mut tally = Tally::default();
    match form {
        ScanForm::Keys => {
            for (key, _) in entries.take(limit) {
                tally.add(consume(key));
            }
        }
        // These peers have iterators only: both forms are one.
        ScanForm::Stream | ScanForm::Iterator => {
            for (key, value) in entries.take(limit) {
                tally.add(consume(key).wrapping_add(value.sum()));
            }
        }
    }
    tally
}
