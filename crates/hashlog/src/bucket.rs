//! What does a bucket's line say?
//!
//! | word | written | read |
//! |---|---|---|
//! | slot | inserters: CAS 0 to tentative, CAS tentative to final; writers: CAS to a newer address; the splitter: freezes, then rewrites | everyone: Acquire, so that the record behind it is seen whole |
//! | link | inserters: CAS to the first overflow bucket; the splitter: freezes, then deepens | everyone: Acquire, before and, on a miss, after the slots |

use sapwood_mem::sync::{Ordering, RawAtomicU64};

use crate::address::Address;
use crate::layout::{bucket, slot};

/// One cache line of slots.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    words: [RawAtomicU64; bucket::LINK + 1],
}

const _: () = assert!(size_of::<Bucket>() == bucket::BYTES);

/// The link word of a bucket, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link(pub(crate) u64);

impl Link {
    /// Number of low hash bits that every key of the bucket shares.
    #[inline]
    pub(crate) fn depth(self) -> u32 {
        (self.0 & bucket::DEPTH_MASK) as u32
    }

    #[inline]
    pub(crate) fn overflow(self) -> Option<u64> {
        ((self.0 & bucket::OVERFLOW_MASK) >> bucket::OVERFLOW_SHIFT).checked_sub(1)
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
        Link(u64::from(depth) | overflow << bucket::OVERFLOW_SHIFT | short)
    }

    pub(crate) fn with_overflow(self, overflow: u64) -> Link {
        Link((self.0 & !bucket::OVERFLOW_MASK) | (overflow + 1) << bucket::OVERFLOW_SHIFT)
    }
}

/// How a bucket is scanned on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    /// All eight words at once, by AVX-512.
    #[cfg_attr(
        any(not(target_arch = "x86_64"), loom, miri),
        expect(dead_code, reason = "of x86-64 alone")
    )]
    wide: bool,
}

impl Scan {
    /// The best that the processor can do.
    pub(crate) fn detect() -> Scan {
        #[cfg(target_arch = "x86_64")]
        return Scan {
            wide: is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq"),
        };
        #[cfg(not(target_arch = "x86_64"))]
        return Scan { wide: false };
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
        sapwood_mem::sync::order_in_model();
        Link(self.words[bucket::LINK].load(Ordering::SeqCst))
    }

    pub(crate) fn link_word(&self) -> &RawAtomicU64 {
        &self.words[bucket::LINK]
    }

    /// A bit for each slot that may have the tag, whose bits beyond those of a slot do not matter,
    /// by the bits of `mask`.
    ///
    /// Without a branch: an early exit would be mispredicted half of the time, and with it would
    /// go the overlap of this look-up's cache misses with the next one's. What a slot says now it
    /// said at some moment of the call; read it again to rely on it.
    #[inline(always)]
    pub(crate) fn candidates<const MASK: u64>(&self, scan: Scan, depth: u32, tag: u64) -> u32 {
        let parity = if MASK & slot::PARITY == 0 { 0 } else { slot::parity(depth) };
        let tag = (tag << slot::FIELD_SHIFT) & slot::SCAN_TAG_MASK;
        self.matches::<MASK>(scan, tag | parity)
    }

    /// Of several candidates, what the first one names that agrees in all the bits that it knows.
    #[cold]
    #[inline(never)]
    pub(crate) fn likeliest(&self, candidates: u32, tag: u64) -> Option<Address> {
        let tag = tag & ((1 << slot::TAG_BITS) - 1);
        (0..bucket::SLOTS)
            .filter(|at| candidates >> at & 1 == 1)
            .map(|at| self.words[at].load(Ordering::Acquire))
            .find(|word| word & slot::UNSURE == 0 && slot::agrees(*word, tag))
            .map(slot::address)
    }

    /// A bit for each slot that is empty.
    #[inline(always)]
    pub(crate) fn vacancies(&self, scan: Scan) -> u32 {
        self.matches::<{ slot::FIELD_MASK << slot::FIELD_SHIFT }>(scan, 0)
    }

    /// Whether a scan behind [`Bucket::link_in_order`] reads in the one order of all SeqCst
    /// accesses: a load behind a locked instruction of the same thread does, on x86-64.
    pub(crate) const SCANS_IN_ORDER: bool = cfg!(any(loom, all(target_arch = "x86_64", not(miri))));

    /// A bit for each slot that has these bits under the mask, which are of its upper half.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    fn matches<const MASK: u64>(&self, scan: Scan, wanted: u64) -> u32 {
        const { assert!(MASK as u32 == 0, "of the upper half") };
        let all = (1 << bucket::SLOTS) - 1;
        if scan.wide {
            // SAFETY: `wide` says that the processor can.
            return all & unsafe { self.matches_wide(wanted, &MASK) };
        }
        all & self.matches_narrow((wanted >> 32) as u32, (MASK >> 32) as u32)
    }

    /// Eight words at once.
    ///
    /// # Safety
    /// The processor has AVX-512 F and DQ.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    unsafe fn matches_wide(&self, wanted: u64, mask: &'static u64) -> u32 {
        let found: u32;
        // SAFETY: the bucket is 64 bytes, aligned to 64. Other threads change its words meanwhile,
        // which is why the load is the machine's and not the language's: each word of it is at
        // least as good as a relaxed load. Registers from 16 up, since they leave nothing behind
        // that slows SSE down.
        unsafe {
            std::arch::asm!(
                "vpbroadcastq zmm16, {wanted}",
                "vpxorq zmm16, zmm16, zmmword ptr [{base}]",
                "vptestnmq k1, zmm16, qword ptr [{mask}]{{1to8}}",
                "kmovb {found:e}, k1",
                wanted = in(reg) wanted,
                base = in(reg) std::ptr::from_ref(self),
                mask = in(reg) std::ptr::from_ref(mask),
                found = lateout(reg) found,
                out("zmm16") _,
                out("k1") _,
                options(nostack, preserves_flags, readonly),
            );
        }
        found
    }

    /// The same by halves of words.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    fn matches_narrow(&self, wanted: u32, mask: u32) -> u32 {
        use std::arch::x86_64::*;

        let (a, b, c, d): (__m128, __m128, __m128, __m128);
        // SAFETY: as in `matches_wide`; SSE2 is part of x86-64.
        unsafe {
            std::arch::asm!(
                "movaps {a}, [{base}]",
                "movaps {b}, [{base} + 16]",
                "movaps {c}, [{base} + 32]",
                "movaps {d}, [{base} + 48]",
                base = in(reg) std::ptr::from_ref(self),
                a = out(xmm_reg) a,
                b = out(xmm_reg) b,
                c = out(xmm_reg) c,
                d = out(xmm_reg) d,
                options(nostack, preserves_flags, readonly),
            );
            let wanted = _mm_set1_epi32(wanted as i32);
            let mask = _mm_set1_epi32(mask as i32);
            let equal = |low, high| {
                let halves = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(low, high));
                _mm_cmpeq_epi32(_mm_and_si128(halves, mask), wanted)
            };
            let words = _mm_packs_epi32(equal(a, b), equal(c, d));
            let bytes = _mm_packs_epi16(words, words);
            _mm_movemask_epi8(bytes) as u32
        }
    }

    /// As on x86-64.
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    fn matches<const MASK: u64>(&self, _: Scan, wanted: u64) -> u32 {
        (0..bucket::SLOTS).fold(0, |found, at| {
            // Acquire: whoever misses here reads the link afterwards (I-SPLIT).
            let word = self.words[at].load(Ordering::Acquire);
            found | u32::from((word ^ wanted) & MASK == 0) << at
        })
    }

    /// As [`Bucket::candidates`], where slots know too few bits for it.
    #[cold]
    pub(crate) fn candidates_slow(&self, depth: u32, tag: u64) -> u32 {
        (0..bucket::SLOTS).fold(0, |found, at| {
            let word = self.words[at].load(Ordering::Acquire);
            let settled = word & (slot::PARITY | slot::TENTATIVE) == slot::parity(depth);
            found | u32::from(settled && slot::agrees(word, tag)) << at
        })
    }
}
