//! Cache lines that are written back, to memory that keeps them without power.
//!
//! A store to persistent memory is in the processor's cache first. [`write_back`] makes it last: a
//! flush of each line, then one fence (Intel: "Architectures Software Developer's Manual", volume 1,
//! 11.4.3; Rudoff: "Persistent Memory Programming", ;login: 2017). CLWB keeps the line in the cache,
//! CLFLUSHOPT throws it out, CLFLUSH does so one line after the other.

use std::ops::Range;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// An instruction that writes a line back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    #[cfg(target_arch = "x86_64")]
    Clwb,
    #[cfg(target_arch = "x86_64")]
    Clflushopt,
    #[cfg(target_arch = "x86_64")]
    Clflush,
}

impl Flush {
    /// Those that this processor has, the best one first. None where we know of no processor of its
    /// kind how it is done.
    pub(crate) fn all() -> impl Iterator<Item = Flush> {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{__cpuid, __cpuid_count};
            let features = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
            let has = move |bit: u32| features >> bit & 1 == 1;
            [(Flush::Clwb, has(24)), (Flush::Clflushopt, has(23)), (Flush::Clflush, true)]
                .into_iter()
                .filter_map(|(flush, is_there)| is_there.then_some(flush))
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::iter::empty()
    }

    /// Writes the lines back that have some byte of the range, and waits until they have arrived.
    ///
    /// # Safety
    /// The range is mapped.
    pub(crate) unsafe fn write_back(self, range: Range<*const u8>) {
        let bytes = range.end.addr() - range.start.addr();
        for offset in lines(range.start.addr(), bytes) {
            let line = range.start.wrapping_offset(offset);
            // SAFETY: a line lies within a page, and a page with some byte of the range is mapped. No
            // byte of it changes. Not `nomem`, so that stores before stay before.
            unsafe { self.write_line_back(line) };
        }
        fence();
    }

    /// # Safety
    /// The line is mapped.
    unsafe fn write_line_back(self, line: *const u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the instruction, see `all`, and the line is mapped.
        unsafe {
            use std::arch::asm;
            match self {
                Flush::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)),
                Flush::Clflushopt => {
                    asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                }
                Flush::Clflush => {
                    asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags));
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _none = line;
            match self {}
        }
    }
}

/// Waits until all lines have arrived.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Where the lines of a range begin, from its own beginning.
fn lines(first: usize, bytes: usize) -> impl Iterator<Item = isize> {
    let within = (first % LINE_BYTES).cast_signed();
    let count = if bytes == 0 { 0 } else { (bytes + first % LINE_BYTES).div_ceil(LINE_BYTES) };
    (0..count.cast_signed()).map(move |line| line * LINE_BYTES.cast_signed() - within)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_range_is_written_back_and_no_other() {
        let of = |first, bytes| lines(first, bytes).collect::<Vec<_>>();
        assert_eq!(of(640, 0), [] as [isize; 0]);
        assert_eq!(of(650, 0), [] as [isize; 0]);
        assert_eq!(of(640, 64), [0]);
        assert_eq!(of(640, 65), [0, 64]);
        assert_eq!(of(650, 1), [-10]);
        assert_eq!(of(650, 54), [-10]);
        assert_eq!(of(650, 55), [-10, 54]);
        assert_eq!(of(703, 66), [-63, 1, 65]);
    }

    #[test]
    fn bytes_stay_what_they_are() {
        let bytes: Vec<u8> = (0..1000u32).map(|at| at as u8).collect();
        for flush in Flush::all() {
            let expected = bytes.clone();
            // SAFETY: it is a part of a vector.
            unsafe { flush.write_back(bytes[7..900].as_ptr_range()) };
            assert_eq!(bytes, expected, "{flush:?}");
        }
    }
}
