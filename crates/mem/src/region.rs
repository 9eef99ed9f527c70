//! Mapped memory, and the pages that it lies on.
//!
//! A [`Region`] is one private anonymous mapping. From 2 MiB up it starts on a
//! 2 MiB border and asks for huge pages: a dependent random load costs about
//! half on them, since one translation covers 512 times the bytes.

use std::ptr::NonNull;

#[cfg(target_os = "linux")]
use rustix::mm::Advice;
use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of the pages every machine has.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Which pages a mapping lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Pages {
    /// Only 4 KiB pages.
    Small,
    /// 2 MiB pages where the kernel finds them, by itself, after `madvise`.
    #[default]
    Transparent,
    /// 2 MiB pages from the pool that the administrator set aside
    /// (`vm.nr_hugepages`); falls back to [`Pages::Transparent`] when it is empty.
    Explicit,
}

impl Pages {
    /// Prose for people: `4 KiB`, `2 MiB transparent` or `2 MiB explicit`.
    pub fn describe(self) -> &'static str {
        match self {
            Pages::Small => "4 KiB",
            Pages::Transparent => "2 MiB transparent",
            Pages::Explicit => "2 MiB explicit",
        }
    }
}

/// One private anonymous mapping, unmapped on drop.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    pages: Pages,
}

// SAFETY: a region is an address range; it owns no thread-bound state.
unsafe impl Send for Region {}
// SAFETY: as above; `&Region` only tells the range.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `bytes` (a multiple of [`PAGE_BYTES`]) of zeroed memory.
    ///
    /// Mappings of at least [`HUGE_PAGE_BYTES`] start on a huge-page border.
    ///
    /// # Errors
    /// The kernel's answer when it has no memory or no address space left.
    pub fn map(bytes: usize, wanted: Pages) -> std::io::Result<Region> {
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE_BYTES), "whole pages");
        let huge = bytes >= HUGE_PAGE_BYTES && wanted != Pages::Small;
        #[cfg(target_os = "linux")]
        if huge
            && wanted == Pages::Explicit
            && bytes.is_multiple_of(HUGE_PAGE_BYTES)
            && let Ok(base) = map_anonymous(bytes, MapFlags::HUGETLB)
        {
            return Ok(Region { base, bytes, pages: Pages::Explicit });
        }
        if bytes < HUGE_PAGE_BYTES {
            let base = map_anonymous(bytes, MapFlags::empty())?;
            return Ok(Region { base, bytes, pages: Pages::Small });
        }
        let base = map_aligned(bytes)?;
        let pages = if huge && transparent_pages_allowed() && advise_huge(base, bytes) {
            Pages::Transparent
        } else {
            Pages::Small
        };
        Ok(Region { base, bytes, pages })
    }

    /// First byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Which pages the kernel granted.
    pub fn pages(&self) -> Pages {
        self.pages
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        crate::sync::forget_range(self.base.as_ptr(), self.bytes);
        unpoison(self.base.as_ptr(), self.bytes);
        // SAFETY: the range is exactly what `map` mapped, and only this unmaps it.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
    }
}

fn map_anonymous(bytes: usize, extra: MapFlags) -> std::io::Result<NonNull<u8>> {
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice
    // aliases nothing.
    let base = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE | extra,
        )
    }?;
    Ok(NonNull::new(base.cast()).expect("the kernel never maps page zero unasked"))
}

/// Maps on a huge-page border: first try as it comes (beside an aligned
/// neighbour it is aligned already, and the kernel merges the two), else map
/// too much and cut both ends off.
fn map_aligned(bytes: usize) -> std::io::Result<NonNull<u8>> {
    let base = map_anonymous(bytes, MapFlags::empty())?;
    if base.addr().get().is_multiple_of(HUGE_PAGE_BYTES) {
        return Ok(base);
    }
    // SAFETY: mapped just above and not handed out.
    unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) }?;
    let wide_bytes = bytes + HUGE_PAGE_BYTES;
    let wide = map_anonymous(wide_bytes, MapFlags::empty())?;
    let skip = wide.as_ptr().align_offset(HUGE_PAGE_BYTES);
    // SAFETY: `skip < HUGE_PAGE_BYTES`, so the cut stays inside the wide mapping.
    let base = unsafe { wide.add(skip) };
    let tail_bytes = wide_bytes - skip - bytes;
    // SAFETY: both cuts lie inside the wide mapping and outside what is kept.
    unsafe {
        if skip > 0 {
            rustix::mm::munmap(wide.as_ptr().cast(), skip)?;
        }
        if tail_bytes > 0 {
            rustix::mm::munmap(base.as_ptr().add(bytes).cast(), tail_bytes)?;
        }
    }
    Ok(base)
}

#[cfg(target_os = "linux")]
pub(crate) fn advise_huge(base: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: advice on a mapping of ours changes no byte of it.
    unsafe { rustix::mm::madvise(base.as_ptr().cast(), bytes, Advice::LinuxHugepage) }.is_ok()
}

/// Only Linux takes the advice.
#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge(_base: NonNull<u8>, _bytes: usize) -> bool {
    false
}

/// Never where the system is not Linux.
pub(crate) fn transparent_pages_allowed() -> bool {
    use std::sync::OnceLock;
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .is_ok_and(|modes| !modes.contains("[never]"))
    })
}

#[cfg(asan)]
unsafe extern "C" {
    fn __asan_poison_memory_region(base: *const u8, bytes: usize);
    fn __asan_unpoison_memory_region(base: *const u8, bytes: usize);
    #[cfg(test)]
    fn __asan_address_is_poisoned(byte: *const u8) -> std::ffi::c_int;
}

/// Whether AddressSanitizer would report a touch of this byte.
#[cfg(all(asan, test))]
pub(crate) fn is_poisoned(byte: *const u8) -> bool {
    // SAFETY: reads shadow memory only.
    unsafe { __asan_address_is_poisoned(byte) != 0 }
}

/// Tells AddressSanitizer that these bytes are not to be touched.
#[inline]
pub(crate) fn poison(base: *const u8, bytes: usize) {
    #[cfg(asan)]
    // SAFETY: marks shadow memory only; the range is ours.
    unsafe {
        __asan_poison_memory_region(base, bytes);
    }
    let _ = (base, bytes);
}

/// Tells AddressSanitizer that these bytes are in use.
#[inline]
pub(crate) fn unpoison(base: *const u8, bytes: usize) {
    #[cfg(asan)]
    // SAFETY: marks shadow memory only; the range is ours.
    unsafe {
        __asan_unpoison_memory_region(base, bytes);
    }
    let _ = (base, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_regions_start_on_huge_page_borders() {
        for bytes in [HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + PAGE_BYTES] {
            for wanted in [Pages::Small, Pages::Transparent, Pages::Explicit] {
                let region = Region::map(bytes, wanted).expect("a few MiB are to be had");
                assert_eq!(region.base().addr().get() % HUGE_PAGE_BYTES, 0);
                assert_eq!(region.bytes(), bytes);
                assert!(region.pages() <= wanted);
            }
        }
    }

    #[test]
    fn an_impossible_mapping_is_an_error() {
        assert!(Region::map(1 << 50, Pages::Transparent).is_err());
    }

    #[test]
    fn fresh_memory_is_zero_and_writable() {
        let region = Region::map(PAGE_BYTES, Pages::Transparent).expect("one page");
        assert_eq!(region.pages(), Pages::Small);
        // SAFETY: the page is mapped, ours alone, and `u8` needs no alignment.
        unsafe {
            let last = region.base().as_ptr().add(PAGE_BYTES - 1);
            assert_eq!(last.read(), 0);
            last.write(7);
            assert_eq!(last.read(), 7);
        }
    }
}
