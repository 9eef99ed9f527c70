//! Where is bucket number N? An array that grows without moving.
//!
//! Segments double: the first holds [`FIRST`] buckets, each later one as many as all before it.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use sapwood_mem::Pages;
use sapwood_mem::region::{PAGE_BYTES, Region};
use sapwood_mem::sync::RawAtomicU64;

use crate::bucket::Bucket;
use crate::layout::bucket;

/// Buckets of the first segment: one page; few in a model, where each word has a shadow.
const FIRST: u64 = if cfg!(loom) { 4 } else { (PAGE_BYTES / bucket::BYTES) as u64 };
const SEGMENTS: usize = 41;

/// Buckets by number.
pub(crate) struct Buckets {
    /// Where bucket 0 would lie if the segment began there: one addition finds a bucket.
    origins: [AtomicPtr<Bucket>; SEGMENTS],
    regions: Mutex<Vec<Region>>,
    pages: Pages,
}

#[inline]
fn segment_of(number: u64) -> usize {
    ((number | (FIRST - 1)).ilog2() - (FIRST - 1).ilog2()) as usize
}

/// First bucket number and count of a segment.
fn extent(segment: usize) -> (u64, u64) {
    match segment {
        0 => (0, FIRST),
        _ => (FIRST << (segment - 1), FIRST << (segment - 1)),
    }
}

impl Buckets {
    pub(crate) fn new(pages: Pages) -> Buckets {
        Buckets {
            origins: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS],
            regions: Mutex::default(),
            pages,
        }
    }

    /// Makes sure that buckets below `count` are there, zeroed.
    pub(crate) fn ensure(&self, count: u64) -> std::io::Result<()> {
        let last = segment_of(count.max(1) - 1);
        if !self.origins[last].load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        for segment in regions.len()..=last {
            let (first, buckets) = extent(segment);
            let bytes = buckets as usize * bucket::BYTES;
            let region = Region::map(bytes.next_multiple_of(PAGE_BYTES), self.pages)?;
            let base = region.base().as_ptr().cast::<Bucket>();
            for word in (0..bytes / 8).filter(|_| cfg!(loom)) {
                // SAFETY: inside the fresh mapping, which nobody else knows yet.
                unsafe { RawAtomicU64::init(base.cast::<RawAtomicU64>().add(word), 0) };
            }
            let origin = base.wrapping_sub(first as usize);
            // INVARIANT I-MAPPED: a segment stays mapped until the Buckets are dropped.
            regions.push(region);
            // Release: pairs with the Acquire in `at`.
            self.origins[segment].store(origin, Ordering::Release);
        }
        Ok(())
    }

    /// Bucket `number`, which `ensure` has covered.
    #[inline]
    pub(crate) fn at(&self, number: u64) -> &Bucket {
        let origin = self.origins[segment_of(number)].load(Ordering::Acquire);
        debug_assert!(!origin.is_null(), "bucket {number} is mapped");
        // SAFETY: I-MAPPED; callers take numbers below a count that was ensured before it was
        // published. All words of a bucket are atomics, valid for any bits.
        unsafe { &*origin.wrapping_add(number as usize) }
    }

    /// Asks for the line of a bucket.
    #[inline]
    pub(crate) fn prefetch(&self, number: u64) {
        let origin = self.origins[segment_of(number)].load(Ordering::Acquire);
        sapwood_mem::arena::prefetch_line(origin.wrapping_add(number as usize).cast());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_places_of_their_own() {
        let buckets = Buckets::new(Pages::Small);
        buckets.ensure(3 * FIRST).expect("a few pages");
        let mut places: Vec<usize> =
            (0..4 * FIRST).map(|number| std::ptr::from_ref(buckets.at(number)) as usize).collect();
        assert!(places.iter().all(|place| place % bucket::BYTES == 0));
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len() as u64, 4 * FIRST, "ensure maps whole segments");
    }
}
