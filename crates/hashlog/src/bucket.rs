//! What does a bucket's line say?
//!
//! | word | written | read |
//! |---|---|---|
//! | slot | inserters: CAS 0 to tentative, CAS tentative to final; writers: CAS to a newer address; the splitter: freezes, then rewrites | everyone: Acquire, so that the record behind it is seen whole |
//! | link | inserters: CAS to the first overflow bucket; the splitter: freezes, then deepens | everyone: Acquire, before and, on a miss, after the slots |

use sapwood_mem::sync::{Ordering, RawAtomicU64};

use crate::layout::{bucket, slot};

/// One cache line of slots.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    words: [RawAtomicU64; bucket::SLOTS + 1],
}

const _: () = assert!(size_of::<Bucket>() == bucket::BYTES);

/// The link word of a bucket, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link(pub(crate) u64);

impl Link {
    /// Number of low hash bits that every key of the bucket shares.
    #[inline]
    pub(crate) fn depth(self) -> u32 {
        ((self.0 >> bucket::DEPTH_SHIFT) & bucket::DEPTH_MASK) as u32
    }

    #[inline]
    pub(crate) fn overflow(self) -> Option<u64> {
        (self.0 & bucket::OVERFLOW_MASK).checked_sub(1)
    }

    #[inline]
    pub(crate) fn is_frozen(self) -> bool {
        self.0 & bucket::FROZEN != 0
    }

    /// Whether what was scanned under `self` stood still until the link was read again as `after`:
    /// a bucket that was added behind does not matter.
    #[inline]
    pub(crate) fn stood_until(self, after: Link) -> bool {
        (self.0 ^ after.0) & !bucket::OVERFLOW_MASK == 0
    }

    /// Whether slots of the chain know fewer tag bits than a scan compares.
    #[inline]
    pub(crate) fn is_short(self) -> bool {
        self.0 & bucket::SHORT != 0
    }

    pub(crate) fn new(depth: u32, overflow: Option<u64>, short: bool) -> Link {
        let overflow = overflow.map_or(0, |number| number + 1);
        let short = if short { bucket::SHORT } else { 0 };
        Link(u64::from(depth) << bucket::DEPTH_SHIFT | overflow | short)
    }

    pub(crate) fn with_overflow(self, overflow: u64) -> Link {
        Link((self.0 & !bucket::OVERFLOW_MASK) | (overflow + 1))
    }
}

impl Bucket {
    #[inline]
    pub(crate) fn slot(&self, at: usize) -> &RawAtomicU64 {
        debug_assert!(at < bucket::SLOTS);
        &self.words[at]
    }

    #[inline]
    pub(crate) fn link(&self) -> Link {
        Link(self.words[bucket::LINK].load(Ordering::Acquire))
    }

    /// As [`Bucket::link`], in the one order of all SeqCst accesses: an inserter looks whether
    /// its bucket was frozen after it put its tentative slot.
    #[inline]
    pub(crate) fn link_in_order(&self) -> Link {
        Link(self.words[bucket::LINK].load(Ordering::SeqCst))
    }

    pub(crate) fn link_word(&self) -> &RawAtomicU64 {
        &self.words[bucket::LINK]
    }

    /// All slots, and a bit for each that may have the tag.
    ///
    /// Without a branch: an early exit would be mispredicted half of the time, and with it would
    /// go the overlap of this look-up's cache misses with the next one's.
    #[inline]
    pub(crate) fn scan(&self, depth: u32, tag: u64) -> ([u64; bucket::SLOTS], u32) {
        let wanted = ((tag << slot::FIELD_SHIFT) & slot::SCAN_MASK) | slot::parity(depth);
        let mut slots = [0; bucket::SLOTS];
        let mut candidates = 0;
        for (at, slot) in slots.iter_mut().enumerate() {
            *slot = self.words[at].load(Ordering::Acquire);
            candidates |= u32::from((*slot ^ wanted) & slot::SCAN_MASK == 0) << at;
        }
        (slots, candidates)
    }

    /// As [`Bucket::scan`], the bits alone.
    #[inline(always)]
    pub(crate) fn candidates(&self, depth: u32, tag: u64) -> u32 {
        let wanted = ((tag << slot::FIELD_SHIFT) & slot::SCAN_MASK) | slot::parity(depth);
        let mut candidates = 0;
        for at in 0..bucket::SLOTS {
            let word = self.words[at].load(Ordering::Relaxed);
            candidates |= u32::from((word ^ wanted) & slot::SCAN_MASK == 0) << at;
        }
        candidates
    }

    /// As [`Bucket::scan`], where slots know too few bits for it.
    #[cold]
    pub(crate) fn scan_slow(&self, depth: u32, tag: u64) -> ([u64; bucket::SLOTS], u32) {
        let mut slots = [0; bucket::SLOTS];
        let mut candidates = 0;
        for (at, word) in slots.iter_mut().enumerate() {
            *word = self.words[at].load(Ordering::Acquire);
            let settled = *word & (slot::PARITY | slot::TENTATIVE) == slot::parity(depth);
            candidates |= u32::from(settled && slot::agrees(*word, tag)) << at;
        }
        (slots, candidates)
    }
}
