//! One bucket: a cache line of slots and a link.
//!
//! | word | written | read |
//! |---|---|---|
//! | slot | inserters: CAS 0 to tentative, CAS tentative to final; writers: CAS to a newer address; the splitter: freezes, then rewrites | all threads: Acquire, so that the record behind it is seen whole |
//! | link | inserters: CAS to the first overflow bucket; the splitter: freezes, then deepens | all threads: Acquire, before and, on a miss, after the slots |

use sapwood_mem::sync::{Ordering, RawAtomicU64};

use crate::index::IndexShape;
use crate::index::buckets::Buckets;
use crate::record::address::Address;
use crate::record::layout::{bucket, slot};

/// One cache line of slots.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    words: [RawAtomicU64; bucket::LINK + 1],
}

const _: () = assert!(size_of::<Bucket>() == bucket::BYTES);

/// The words of a bucket, or room for them.
pub(crate) type Words = [u64; bucket::LINK + 1];

/// The slots of a bucket that name a record, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) len: usize,
    pub(crate) link: Link,
}

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
        Link(u64::from(depth) | overflow << bucket::OVERFLOW_SHIFT | short | bucket::NO_SLOT)
    }

    pub(crate) fn with_overflow(self, overflow: u64) -> Link {
        Link((self.0 & !bucket::OVERFLOW_MASK) | (overflow + 1) << bucket::OVERFLOW_SHIFT)
    }
}

/// The words that a quick look compares, laid out for the assembler.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
static QUICK_MASK: u64 = slot::QUICK_MASK;
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
static ADDRESS_MASK: u64 = slot::ADDRESS_MASK;
/// Where of `QUICK_MASK` the tag belongs.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
static TAG_MASK: u64 = slot::SCAN_TAG_MASK;
/// Upper halves of `QUICK_MASK`.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
static QUICK_HALVES: Halves = Halves([(slot::QUICK_MASK >> 32) as u32; 4]);

/// Halves of words, as a register of SSE2 holds them.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[repr(align(16))]
#[expect(dead_code, reason = "the assembler reads it")]
struct Halves([u32; 4]);

/// The way to scan a bucket on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BucketScan {
    /// All eight words at once, by AVX-512, and shifts by BMI2.
    #[cfg_attr(
        any(not(target_arch = "x86_64"), loom, miri),
        expect(dead_code, reason = "of x86-64 alone, and not where a checker watches")
    )]
    wide: bool,
    /// Shifts by BMI2.
    #[cfg_attr(
        any(not(target_arch = "x86_64"), loom, miri),
        expect(dead_code, reason = "of x86-64 alone, and not where a checker watches")
    )]
    shifts: bool,
}

impl BucketScan {
    /// The way for every processor.
    #[cfg(all(test, not(loom)))]
    pub(crate) const NARROW: BucketScan = BucketScan { wide: false, shifts: false };

    /// The best that the processor can do.
    pub(crate) fn detect() -> BucketScan {
        #[cfg(target_arch = "x86_64")]
        {
            let shifts = is_x86_feature_detected!("bmi2");
            let wide = shifts
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq");
            BucketScan { wide, shifts }
        }
        #[cfg(not(target_arch = "x86_64"))]
        BucketScan { wide: false, shifts: false }
    }

    /// All ways of this processor.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn all() -> [BucketScan; 3] {
        let best = BucketScan::detect();
        [best, BucketScan { wide: false, ..best }, BucketScan::NARROW]
    }

    /// The record named by the first slot of a hash's bucket that has its tag, as far as a scan
    /// compares it, and that is one to rely on: not tentative, frozen or shared. Else NONE.
    ///
    /// Look-ups overlap as far as the processor looks ahead, which is counted in instructions: some
    /// 256 where another thread has the other half of the store. So what counts beyond the cache is
    /// how few there are, not how long they take.
    #[inline(always)]
    pub(crate) fn look(self, buckets: &Buckets, shape: IndexShape, hash: u64) -> Address {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        if self.wide {
            // SAFETY: `wide` says that the processor can; a shape numbers buckets that are there.
            return unsafe { look_wide(buckets.base(), shape, hash) };
        }
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        if self.shifts {
            // SAFETY: `shifts` says that the processor can.
            let (number, tag) = unsafe { number_and_tag(shape, hash) };
            return buckets.at(number).look_narrow(tag);
        }
        let (number, depth) = shape.number_and_depth(hash);
        buckets.at(number).look(self, hash >> depth)
    }
}

/// `IndexShape::number_and_depth`, and the hash's bits from the depth up. BZHI takes the lowest byte, SHRX the lowest 6
/// bits.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
macro_rules! number_and_tag {
    () => {
        concat!(
            "mov {tag}, {depth}\n",
            "shr {tag}, 8\n",
            "bzhi {number}, {hash}, {depth}\n",
            "cmp {number}, {tag}\n",
            "adc {depth}, 0\n",
            "bzhi {number}, {hash}, {depth}\n",
            "shrx {tag}, {hash}, {depth}",
        )
    };
}

/// The bucket of a hash, and the hash's bits from the bucket's depth up.
///
/// # Safety
/// The processor has BMI2.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
unsafe fn number_and_tag(shape: IndexShape, hash: u64) -> (u64, u64) {
    let (number, tag): (u64, u64);
    // SAFETY: these are registers alone.
    unsafe {
        std::arch::asm!(
            number_and_tag!(),
            hash = in(reg) hash,
            depth = inout(reg) shape.0 => _,
            number = out(reg) number,
            tag = out(reg) tag,
            options(nostack, nomem, pure),
        );
    }
    (number, tag)
}

/// As [`BucketScan::look`]. All eight words at once, of which the first that agrees is moved to the
/// front: so it comes out of the very load that was compared.
///
/// # Safety
/// The processor has AVX-512 F and DQ, and BMI2. The buckets of the shape are there.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
unsafe fn look_wide(buckets: *const Bucket, shape: IndexShape, hash: u64) -> Address {
    let address: u64;
    // SAFETY: as in `matches_wide`. On x86-64 every load is an acquire.
    unsafe {
        std::arch::asm!(
            number_and_tag!(),
            // Where it is in a slot.
            "pdep {tag}, {tag}, qword ptr [rip + {tag_mask}]",
            "vpbroadcastq zmm17, {tag}",
            "shl {number}, 6",
            "vmovdqa64 zmm16, zmmword ptr [{buckets} + {number}]",
            "vpxorq zmm17, zmm17, zmm16",
            "vptestnmq k1, zmm17, qword ptr [rip + {mask}]{{1to8}}",
            "vpcompressq zmm16 {{k1}}{{z}}, zmm16",
            "vmovq {tag}, xmm16",
            "and {tag}, qword ptr [rip + {address_mask}]",
            buckets = in(reg) buckets,
            hash = in(reg) hash,
            mask = sym QUICK_MASK,
            tag_mask = sym TAG_MASK,
            address_mask = sym ADDRESS_MASK,
            depth = inout(reg) shape.0 => _,
            number = out(reg) _,
            tag = out(reg) address,
            out("zmm16") _,
            out("zmm17") _,
            out("k1") _,
            options(nostack, readonly),
        );
    }
    Address::from_units(address)
}

impl Bucket {
    #[inline]
    pub(crate) fn slot(&self, at: usize) -> &RawAtomicU64 {
        debug_assert!(at < bucket::SLOTS);
        &self.words[at]
    }

    #[inline]
    pub(crate) fn link(&self) -> Link {
        // Acquire: pairs with the Release of the thread that set the link.
        Link(self.words[bucket::LINK].load(Ordering::Acquire))
    }

    /// As [`Bucket::link`], in the one order of all SeqCst accesses: an inserter looks whether
    /// its bucket was frozen after it put its tentative slot.
    #[inline]
    pub(crate) fn link_in_order(&self) -> Link {
        sapwood_mem::sync::order_in_model();
        Link(self.words[bucket::LINK].load(Ordering::SeqCst))
    }

    /// Puts the words of slots that name a record, as they were at one moment, to the front of
    /// `words`, and zeroes behind them; `None` if they changed meanwhile.
    ///
    /// Each word is read twice, all of them once before the first again: a word that is the same
    /// was so in between, since none ever comes back.
    #[inline(always)]
    pub(crate) fn slots_in_use(&self, scan: BucketScan, words: &mut Words) -> Option<InUse> {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        if scan.wide {
            // SAFETY: `wide` says that the processor can.
            return unsafe { self.slots_in_use_wide(words) };
        }
        let _ = scan;
        // Acquire: pairs with the Release of the thread that filled the slot.
        let read = || std::array::from_fn(|at| self.words[at].load(Ordering::Acquire));
        let once: Words = read();
        if once != read() {
            return None;
        }
        let mut len = 0;
        for word in &once[..bucket::SLOTS] {
            words[len] = *word;
            let names = word & slot::ADDRESS_MASK != 0 && word & slot::TENTATIVE == 0;
            len += usize::from(names);
        }
        words[len..].fill(0);
        Some(InUse { len, link: Link(once[bucket::LINK]) })
    }

    /// # Safety
    /// As for `matches_wide`.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    unsafe fn slots_in_use_wide(&self, words: &mut Words) -> Option<InUse> {
        let (changed, len, link): (u64, u64, u64);
        // SAFETY: as in `matches_wide`; loads of one thread take place in their order on x86-64.
        // `words` is the caller's alone.
        unsafe {
            std::arch::asm!(
                "vmovdqa64 zmm16, zmmword ptr [{bucket}]",
                "vpcmpneqq k1, zmm16, zmmword ptr [{bucket}]",
                "kmovb {changed:e}, k1",
                // Not tentative, which is the sign, and an address.
                "vpmovq2m k1, zmm16",
                "knotb k1, k1",
                "vptestmq k1 {{k1}}, zmm16, qword ptr [rip + {address_mask}]{{1to8}}",
                "kmovb {len:e}, k1",
                "and {len:e}, {slots}",
                "kmovb k1, {len:e}",
                "popcnt {len:e}, {len:e}",
                "vpcompressq zmm17 {{k1}}{{z}}, zmm16",
                "vmovdqu64 zmmword ptr [{words}], zmm17",
                // At the moment or later: buckets are only added behind.
                "mov {link}, qword ptr [{bucket} + {link_at}]",
                bucket = in(reg) std::ptr::from_ref(self),
                words = in(reg) words.as_mut_ptr(),
                address_mask = sym ADDRESS_MASK,
                slots = const (1 << bucket::SLOTS) - 1,
                link_at = const 8 * bucket::LINK,
                changed = out(reg) changed,
                len = out(reg) len,
                link = lateout(reg) link,
                out("zmm16") _,
                out("zmm17") _,
                out("k1") _,
                options(nostack),
            );
        }
        (changed == 0).then_some(InUse { len: len as usize, link: Link(link) })
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
    pub(crate) fn candidates<const MASK: u64>(
        &self,
        scan: BucketScan,
        depth: u32,
        tag: u64,
    ) -> u32 {
        let parity = if MASK & slot::PARITY == 0 { 0 } else { slot::parity(depth) };
        let tag = (tag << slot::FIELD_SHIFT) & slot::SCAN_TAG_MASK;
        self.matches::<MASK>(scan, tag | parity)
    }

    /// As [`BucketScan::look`], for a tag in this bucket.
    #[inline(always)]
    pub(crate) fn look(&self, scan: BucketScan, tag: u64) -> Address {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        return if scan.wide {
            // SAFETY: `wide` says that the processor can.
            unsafe { self.look_wide((tag << slot::FIELD_SHIFT) & slot::SCAN_TAG_MASK) }
        } else {
            self.look_narrow(tag)
        };
        #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
        {
            let wanted = (tag << slot::FIELD_SHIFT) & slot::SCAN_TAG_MASK;
            match self.matches::<{ slot::QUICK_MASK }>(scan, wanted) {
                0 => Address::NONE,
                found => self.named_by(found.trailing_zeros() as usize),
            }
        }
    }

    /// The record that a word names which agreed, unless it is one not to rely on by now. What it
    /// was when it was compared does not matter.
    #[inline(always)]
    fn named_by(&self, at: usize) -> Address {
        #[cfg(all(test, not(loom)))]
        if at < bucket::SLOTS {
            crate::index::tests::meanwhile();
        }
        let word = self.words[at].load(Ordering::Acquire);
        if word & slot::UNSURE == 0 { slot::address(word) } else { Address::NONE }
    }

    /// As [`Bucket::look`], by upper halves of words. Where no slot agrees, the link is taken for
    /// one that did: it is one not to rely on.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    fn look_narrow(&self, tag: u64) -> Address {
        const { assert!(slot::SCAN_BITS == u8::BITS && slot::QUICK_MASK as u32 == 0) };
        let at: usize;
        // SAFETY: as in `matches_wide`; SSE2 is part of x86-64. Processors without TZCNT take it
        // for BSF, which is the same where a bit is set.
        unsafe {
            std::arch::asm!(
                "movaps {low}, [{bucket}]",
                "shufps {low}, [{bucket} + 16], {upper}",
                "movaps {high}, [{bucket} + 32]",
                "shufps {high}, [{bucket} + 48], {upper}",
                "movzx {at:e}, {tag:l}",
                "shl {at:e}, {shift}",
                "movd {wanted}, {at:e}",
                "pshufd {wanted}, {wanted}, 0",
                "andps {low}, xmmword ptr [rip + {mask}]",
                "andps {high}, xmmword ptr [rip + {mask}]",
                "pcmpeqd {low}, {wanted}",
                "pcmpeqd {high}, {wanted}",
                "packssdw {low}, {high}",
                // Two bits a word.
                "pmovmskb {at:e}, {low}",
                "or {at:e}, {link}",
                "tzcnt {at:e}, {at:e}",
                "shr {at:e}, 1",
                bucket = in(reg) std::ptr::from_ref(self),
                tag = in(reg) tag,
                mask = sym QUICK_HALVES,
                upper = const 0b11_01_11_01,
                shift = const slot::FIELD_SHIFT - 32,
                link = const 1 << (2 * bucket::LINK),
                at = out(reg) at,
                wanted = out(xmm_reg) _,
                low = out(xmm_reg) _,
                high = out(xmm_reg) _,
                options(nostack, readonly),
            );
            std::hint::assert_unchecked(at <= bucket::LINK);
        }
        self.named_by(at)
    }

    /// # Safety
    /// As for `matches_wide`.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    unsafe fn look_wide(&self, wanted: u64) -> Address {
        let word: u64;
        // SAFETY: as in `matches_wide`. On x86-64 every load is an acquire.
        unsafe {
            std::arch::asm!(
                "vpbroadcastq zmm17, {word}",
                "vmovdqa64 zmm16, zmmword ptr [{bucket}]",
                "vpxorq zmm17, zmm17, zmm16",
                "vptestnmq k1, zmm17, qword ptr [rip + {mask}]{{1to8}}",
                "vpcompressq zmm16 {{k1}}{{z}}, zmm16",
                "vmovq {word}, xmm16",
                bucket = in(reg) std::ptr::from_ref(self),
                mask = sym QUICK_MASK,
                word = inout(reg) wanted => word,
                out("zmm16") _,
                out("zmm17") _,
                out("k1") _,
                options(nostack, preserves_flags, readonly),
            );
        }
        slot::address(word)
    }

    /// A bit for each slot that is empty.
    #[inline(always)]
    pub(crate) fn vacancies(&self, scan: BucketScan) -> u32 {
        self.matches::<{ slot::FIELD_MASK << slot::FIELD_SHIFT }>(scan, 0)
    }

    /// Whether a scan behind [`Bucket::link_in_order`] reads in the one order of all SeqCst
    /// accesses: a load behind a locked instruction of the same thread does, on x86-64.
    pub(crate) const SCANS_IN_ORDER: bool = cfg!(any(loom, all(target_arch = "x86_64", not(miri))));

    /// A bit for each slot that has these bits under the mask, which are of its upper half.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    fn matches<const MASK: u64>(&self, scan: BucketScan, wanted: u64) -> u32 {
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
    fn matches<const MASK: u64>(&self, _: BucketScan, wanted: u64) -> u32 {
        (0..bucket::SLOTS).fold(0, |found, at| {
            // Acquire: a thread that misses here reads the link afterwards (I-SPLIT).
            let word = self.words[at].load(Ordering::Acquire);
            found | u32::from((word ^ wanted) & MASK == 0) << at
        })
    }

    /// As [`Bucket::candidates`], where slots know too few bits for it.
    #[cold]
    pub(crate) fn candidates_slow(&self, depth: u32, tag: u64) -> u32 {
        (0..bucket::SLOTS).fold(0, |found, at| {
            // Acquire: pairs with the Release of the thread that filled the slot.
            let word = self.words[at].load(Ordering::Acquire);
            let settled = word & (slot::PARITY | slot::TENTATIVE) == slot::parity(depth);
            found | u32::from(settled && slot::agrees(word, tag)) << at
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use sapwood_mem::Pages;

    /// What a look finds, by the words one after the other.
    fn named(bucket: &Bucket, tag: u64) -> Address {
        (0..bucket::SLOTS)
            .map(|at| bucket.slot(at).load(Ordering::Relaxed))
            .find(|word| (word ^ (tag << slot::FIELD_SHIFT)) & slot::QUICK_MASK == 0)
            .map_or(Address::NONE, slot::address)
    }

    #[test]
    fn every_way_to_look_finds_the_same() {
        let mut state = 0_u64;
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            crate::record::hash::of_word(state)
        };
        for count in 2..70 {
            let buckets = Buckets::new(Pages::Small, 1 << 20).expect("address space");
            buckets.ensure(count).expect("a page or two");
            let shape = IndexShape::new(count);
            for number in 0..count {
                let depth = crate::index::depth_of(number, count);
                let bucket = buckets.at(number);
                for at in 0..bucket::SLOTS {
                    // Few tags, so that they agree; now and then a flag.
                    let (tag, flags) = (next() & 3, (next() & next() & next()) & slot::UNSURE);
                    // Some name nothing.
                    let units = if next() & 7 == 0 { 0 } else { next() & slot::ADDRESS_MASK };
                    let address = Address::from_units(units);
                    let word = slot::word(depth, tag, slot::TAG_BITS, address) | flags;
                    bucket.slot(at).store(word, Ordering::Relaxed);
                }
                let link = Link::new(depth, Some(next() >> 30), next() & 1 == 0);
                bucket.link_word().store(link.0, Ordering::Relaxed);
            }
            for number in 0..count {
                let bucket = buckets.at(number);
                let in_use: Vec<u64> = (0..bucket::SLOTS)
                    .map(|at| bucket.slot(at).load(Ordering::Relaxed))
                    .filter(|word| word & slot::ADDRESS_MASK != 0 && word & slot::TENTATIVE == 0)
                    .collect();
                let right = Some(InUse { len: in_use.len(), link: bucket.link() });
                for scan in BucketScan::all() {
                    let mut words = [1; bucket::LINK + 1];
                    assert_eq!(bucket.slots_in_use(scan, &mut words), right);
                    let (front, rest) = words.split_at(in_use.len());
                    assert_eq!(front, in_use);
                    assert!(rest.iter().all(|word| *word == 0));
                }
            }
            for _ in 0..200 {
                let (number, depth) = shape.number_and_depth(next());
                let hash = number | (next() & 3) << depth;
                assert_eq!(shape.number_and_depth(hash), (number, depth));
                let right = named(buckets.at(number), (hash >> depth) & 0xFF);
                for scan in BucketScan::all() {
                    assert_eq!(scan.look(&buckets, shape, hash), right);
                    assert_eq!(buckets.at(number).look(scan, hash >> depth), right);
                }
            }
        }
    }
}
