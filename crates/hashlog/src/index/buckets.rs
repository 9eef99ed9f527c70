//! An array of buckets that grows without moving.

use std::sync::{Mutex, PoisonError};

use sapwood_mem::Pages;
use sapwood_mem::region::PAGE_BYTES;
use sapwood_mem::reserve::{Backing, NoMemory, Reservation};
use sapwood_mem::sync::RawAtomicU64;

use crate::index::bucket::Bucket;
use crate::record::layout::bucket;

/// Buckets that are committed at once at least: one page.
const FIRST: u64 = (PAGE_BYTES / bucket::BYTES) as u64;
/// In a model each word has a shadow, so only few of a page's buckets are used.
const USED_OF_FIRST: u64 = if cfg!(loom) { 4 } else { FIRST };
/// Address space to make do with where there is little.
const BYTES_MIN: usize = 32 << 20;

/// Buckets by number.
pub(crate) struct Buckets {
    space: Reservation,
    /// Buckets that are committed.
    committed: Mutex<u64>,
}

impl Buckets {
    /// Room for `bytes` of buckets, or as many as there is address space for.
    pub(crate) fn new(pages: Pages, bytes: usize) -> std::io::Result<Buckets> {
        Ok(Buckets {
            space: Reservation::new(bytes.next_power_of_two(), BYTES_MIN, pages)?,
            committed: Mutex::default(),
        })
    }

    /// Makes sure that buckets below `count` are there, zeroed.
    pub(crate) fn ensure(&self, count: u64) -> std::io::Result<()> {
        let mut committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        if count <= *committed {
            return Ok(());
        }
        if count > (self.space.bytes() / bucket::BYTES) as u64 {
            let bytes = (count - *committed) * bucket::BYTES as u64;
            let why = "the address space of the index is full".to_owned();
            return Err(std::io::Error::other(NoMemory { bytes, why }));
        }
        // Doubling, so that it happens seldom and covers whole huge pages.
        let target = match cfg!(loom) {
            true => count.next_multiple_of(USED_OF_FIRST),
            false => count.next_power_of_two().max(FIRST),
        };
        let bytes = |buckets: u64| (buckets as usize * bucket::BYTES).next_multiple_of(PAGE_BYTES);
        // In a model pages are committed again, which changes nothing.
        let from = *committed as usize * bucket::BYTES / PAGE_BYTES * PAGE_BYTES;
        let _granted = self.space.commit(from, bytes(target) - from, Backing::Huge)?;
        for number in (*committed..target).filter(|_| cfg!(loom)) {
            for word in 0..bucket::BYTES / 8 {
                let bucket = self.base().wrapping_add(number as usize).cast::<RawAtomicU64>();
                // SAFETY: committed just above; no other thread knows the bucket yet.
                unsafe { RawAtomicU64::init(bucket.add(word), 0) };
            }
        }
        *committed = target;
        Ok(())
    }

    /// Bucket 0.
    #[inline(always)]
    pub(crate) fn base(&self) -> *mut Bucket {
        self.space.base().as_ptr().cast()
    }

    /// Bucket `number`, which `ensure` has covered.
    #[inline(always)]
    pub(crate) fn at(&self, number: u64) -> &Bucket {
        // SAFETY: callers take numbers below a count that was ensured before it was published, and
        // what is committed stays so. All words of a bucket are atomics, valid for any bits.
        unsafe { &*self.base().wrapping_add(number as usize) }
    }

    /// Asks for the line of a bucket.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: u64) {
        sapwood_mem::arena::prefetch_line(self.base().wrapping_add(number as usize).cast());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_places_of_their_own() {
        let buckets = Buckets::new(Pages::Small, 1 << 30).expect("address space");
        for count in [1, FIRST, FIRST + 1, 3 * FIRST] {
            buckets.ensure(count).expect("a few pages");
            let last: *const Bucket = buckets.at(count - 1);
            assert_eq!(last.addr() - buckets.base().addr(), (count as usize - 1) * bucket::BYTES);
            assert!(last.addr().is_multiple_of(bucket::BYTES));
        }
    }

    #[test]
    fn more_buckets_than_address_space_are_refused() {
        let buckets = Buckets::new(Pages::Small, BYTES_MIN).expect("address space");
        assert!(buckets.ensure(1 << 40).is_err());
        buckets.ensure(1).expect("the first bucket is still to be had");
    }
}
