//! Hazard pointers: the records that threads read without a count.
//!
//! A reader of one record counts itself in the record's header and takes itself off again: two atomic read-modify-writes,
//! which take longer than reading a word. A thread that reads many records *declares* them, a group at a time: it sets a
//! bit for each in a filter of its own, and one fence orders that before it reads any. A writer that has taken a record
//! for itself looks into the filters before it changes bytes in place; where it finds the record's bit, it leaves the
//! bytes alone and changes a copy, as beside a counted reader. Two records may have one bit: then a writer makes a copy
//! for nothing.
//!
//! | word | written by | read by |
//! |---|---|---|
//! | `taken` | reader: the bit of a filter on when it begins (AcqRel), off at its end (Release) | writer (SeqCst), after it has set X (SeqCst) |
//! | filter | the reader that took it: a group's bits (Release), then a fence (SeqCst), then it looks at headers; zeros (Release) | the same |
//!
//! *Thread safety*: any number of threads may declare and ask. Beyond [`FILTERS`] readers at a time, one is told to count.
//!
//! *Invariants*
//! - I-DECLARED: while a record is declared, and X was off when the reader looked at its header after the fence, no
//!   thread changes its bytes. If the writer's X comes before the reader's look in the order of SeqCst, the reader sees X.
//!   If it comes after, the fence came before, and the writer sees the bit.
//!
//! Sources: hazard pointers (M. Michael, 2004), with a filter (B. Bloom, 1970) in place of a list.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;
use sapwood_mem::sync::{AtomicU64, Ordering, fence, order_in_model};

/// Readers that may declare records at a time.
const FILTERS: usize = if cfg!(loom) { 1 } else { 16 };
/// Words of a filter: one cache line.
const WORDS: usize = if cfg!(loom) { 1 } else { 8 };

/// A bit for each record that a reader has declared.
struct Filter([AtomicU64; WORDS]);

/// The bits of records that are to be declared.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bits([u64; WORDS]);

impl Bits {
    /// Adds those of the record at `base`.
    #[inline(always)]
    pub(crate) fn add(&mut self, base: *const u8) {
        let (word, bit) = place(base);
        self.0[word] |= bit;
    }
}

/// The filters of all readers of a map.
pub(crate) struct HazardPointers {
    /// A bit for each filter that a reader has.
    taken: AtomicU64,
    /// Made for the first reader.
    filters: OnceLock<Box<[CachePadded<Filter>]>>,
}

/// A filter in the hands of a reader, which gives it back.
pub(crate) struct Declaring<'m> {
    hazards: &'m HazardPointers,
    filter: &'m Filter,
    number: usize,
}

impl HazardPointers {
    pub(crate) fn new() -> HazardPointers {
        HazardPointers { taken: AtomicU64::new(0), filters: OnceLock::new() }
    }

    /// A filter for a reader; `None` where all are taken.
    pub(crate) fn filter(&self) -> Option<Declaring<'_>> {
        let filters = self.filters.get_or_init(|| {
            let filter = || CachePadded::new(Filter(std::array::from_fn(|_| AtomicU64::new(0))));
            (0..FILTERS).map(|_| filter()).collect()
        });
        let mut taken = self.taken.load(Ordering::Relaxed);
        loop {
            let number = taken.trailing_ones() as usize;
            let filter = filters.get(number)?;
            // Acquire: pairs with the Release of the reader that had the filter before. Release: pairs with the load in
            // `has`, for the filters.
            match self.taken.compare_exchange(
                taken,
                taken | 1 << number,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Declaring { hazards: self, filter, number }),
                Err(now) => taken = now,
            }
        }
    }

    /// Whether a reader may have declared the record at `base`. The caller has set X by SeqCst before.
    #[inline]
    pub(crate) fn has(&self, base: *const u8) -> bool {
        order_in_model();
        // SeqCst: I-DECLARED; and pairs with the Release by which the last reader was done.
        let taken = self.taken.load(Ordering::SeqCst);
        taken != 0 && self.is_declared(taken, base)
    }

    #[cold]
    fn is_declared(&self, mut taken: u64, base: *const u8) -> bool {
        let filters = self.filters.get().map_or(&[][..], |filters| filters);
        let (word, bit) = place(base);
        while let Some(filter) = filters.get(taken.trailing_zeros() as usize) {
            taken &= taken - 1;
            // SeqCst: as in `has`.
            if filter.0[word].load(Ordering::SeqCst) & bit != 0 {
                return true;
            }
        }
        false
    }
}

impl Declaring<'_> {
    /// Declares records, in place of those before.
    #[inline]
    pub(crate) fn declare(&self, bits: &Bits) {
        // INVARIANT: I-DECLARED: the bits are there before the reader looks at a header.
        self.set(bits);
        fence(Ordering::SeqCst);
    }

    /// Says that no record is being read.
    #[inline]
    pub(crate) fn withdraw(&self) {
        self.set(&Bits::default());
    }

    #[inline]
    fn set(&self, bits: &Bits) {
        for (word, bits) in self.filter.0.iter().zip(bits.0) {
            // Release: pairs with the load in `is_declared`: what was read under the bits before is done.
            word.store(bits, Ordering::Release);
        }
    }
}

impl Drop for Declaring<'_> {
    fn drop(&mut self) {
        self.withdraw();
        // Release: pairs with the Acquire of the next reader, and the load in `has`.
        self.hazards.taken.fetch_and(!(1 << self.number), Ordering::Release);
    }
}

/// Records that begin in one page have one bit: a walk over neighbours sets few.
#[inline(always)]
pub(crate) fn page(base: *const u8) -> usize {
    base as usize >> 10
}

/// Which bit of which word is a record's.
#[inline]
fn place(base: *const u8) -> (usize, u64) {
    let hash = (page(base) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (hash as usize >> 6 & (WORDS - 1), 1 << (hash & 63))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ChunkMap;
    use crate::layout::record::HEADER_BYTES;

    fn base_of(map: &ChunkMap, key: &[u8]) -> *const u8 {
        let lock = map.read_lock_unpinned(key).expect("a fine key").expect("it is there");
        lock.key().as_ptr().wrapping_sub(HEADER_BYTES)
    }

    #[test]
    fn a_declared_record_is_changed_by_a_copy() {
        let map = ChunkMap::new();
        map.put(b"k", &[1; 8]).expect("memory");
        let first = base_of(&map, b"k");
        let declaring = map.hazards.filter().expect("a filter");
        let changes: [&dyn Fn(); 3] = [
            &|| map.update(b"k", |value| value[0] += 1).expect("memory").expect("it is there"),
            &|| assert!(map.put(b"k", &[7; 8]).expect("memory")),
            &|| assert!(map.compare_and_put(b"k", &[7; 8], &[8; 8]).expect("memory")),
        ];
        for change in changes {
            let base = base_of(&map, b"k");
            let mut bits = Bits::default();
            bits.add(base);
            declaring.declare(&bits);
            change();
            assert_ne!(base_of(&map, b"k"), base, "changed where it is read");
        }
        declaring.withdraw();
        for change in &changes[..2] {
            let base = base_of(&map, b"k");
            change();
            assert_eq!(base_of(&map, b"k"), base, "no thread reads it");
        }
        assert_ne!(base_of(&map, b"k"), first);
        drop(declaring);
        assert_eq!(map.hazards.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn filters_are_given_back_and_have_an_end() {
        let hazards = HazardPointers::new();
        let all: Vec<_> = (0..FILTERS).map(|_| hazards.filter().expect("a filter")).collect();
        assert!(hazards.filter().is_none());
        let bases: Vec<_> = (1..40_usize).map(|at| (at * 24) as *const u8).collect();
        let mut bits = Bits::default();
        bases.iter().for_each(|base| bits.add(*base));
        all[FILTERS - 1].declare(&bits);
        assert!(bases.iter().all(|base| hazards.has(*base)));
        let others = (1_000..2_000_usize).filter(|at| hazards.has((at * 24) as *const u8)).count();
        assert!(others < 300, "{others} of 1,000 that were not declared");
        drop(all);
        assert!(hazards.filter().is_some());
        assert!(!bases.iter().any(|base| hazards.has(*base)), "what was declared is forgotten");
    }
}
