//! How does memory grow without moving?
//!
//! A [`Reservation`] is address space without memory: ranges of it are committed when they are
//! needed and released when they are not, so that what lies in it is found by one addition and
//! keeps its address for life.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

use crate::region::{
    HUGE_PAGE_BYTES, PAGE_BYTES, Pages, advise_huge, poison, transparent_pages_allowed, unpoison,
};

/// Address space for reservations: an eighth of what a process has.
const ADDRESS_SPACE: usize = 1 << 44;
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// A range of address space, given back on drop.
#[derive(Debug)]
pub struct Reservation {
    base: NonNull<u8>,
    bytes: usize,
    pages: Pages,
    /// Ranges that are poisoned, or were. The shadow of all of a reservation would be terabytes.
    #[cfg(asan)]
    released: std::sync::Mutex<std::collections::BTreeSet<(usize, usize)>>,
}

// SAFETY: a reservation is an address range; it owns no thread-bound state.
unsafe impl Send for Reservation {}
// SAFETY: as above; what is committed is synchronised by those who use it.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves `bytes`, a power of two, or half of it and so on down to `least`, where address
    /// space is short or has many takers already: the n-th reservation gets no more than
    /// 16 TiB / n. Begins on a huge-page border. `pages` is what committed ranges will ask for;
    /// those of the administrator's pool cannot be put into a reservation, so that transparent ones
    /// stand in for them.
    ///
    /// # Errors
    /// The kernel's answer when not even `least` bytes of address space are left.
    pub fn new(bytes: usize, least: usize, pages: Pages) -> std::io::Result<Reservation> {
        assert!(bytes.is_power_of_two() && least >= HUGE_PAGE_BYTES, "a power of two");
        let live = LIVE.fetch_add(1, Ordering::Relaxed) + 1;
        let fair = ADDRESS_SPACE / live;
        let mut bytes = bytes.max(least.next_power_of_two());
        while bytes > fair && bytes / 2 >= least {
            bytes /= 2;
        }
        loop {
            match reserve(bytes) {
                Ok(base) => {
                    return Ok(Reservation {
                        base,
                        bytes,
                        pages,
                        #[cfg(asan)]
                        released: Default::default(),
                    });
                }
                Err(_) if bytes / 2 >= least => bytes /= 2,
                Err(cause) => {
                    LIVE.fetch_sub(1, Ordering::Relaxed);
                    return Err(cause);
                }
            }
        }
    }

    /// First byte.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes, a power of two.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes a range, of whole pages, readable and writable; it holds zeros where nobody wrote.
    /// Answers what it lies on: huge pages where it covers some and `huge` asks for them.
    ///
    /// # Errors
    /// The kernel's answer when it has no memory to promise.
    pub fn commit(&self, offset: usize, bytes: usize, huge: bool) -> std::io::Result<Pages> {
        assert!(offset + bytes <= self.bytes, "inside the reservation");
        assert!(offset.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES), "pages");
        // SAFETY: the range lies inside the reservation, just checked.
        let base = unsafe { self.base.add(offset) };
        let huge = huge && bytes >= HUGE_PAGE_BYTES && self.pages != Pages::Small;
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the range is ours, and more access takes nothing from anybody.
        unsafe { rustix::mm::mprotect(base.as_ptr().cast(), bytes, access) }?;
        unpoison(base.as_ptr(), bytes);
        let granted = huge && transparent_pages_allowed() && advise_huge(base, bytes);
        Ok(if granted { Pages::Transparent } else { Pages::Small })
    }

    /// Gives the memory of a committed range, of whole pages, back to the system. Whoever wants
    /// the range again commits it again, and finds zeros.
    ///
    /// # Safety
    /// Nobody relies on what the range holds, nor reads or writes it before it is committed again.
    pub unsafe fn release(&self, offset: usize, bytes: usize) {
        assert!(offset + bytes <= self.bytes, "inside the reservation");
        // SAFETY: inside the reservation, just checked.
        let base = unsafe { self.base.add(offset) };
        crate::sync::forget_range(base.as_ptr(), bytes);
        // SAFETY: the range is ours, and the caller needs nothing that is in it.
        let released =
            unsafe { rustix::mm::madvise(base.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
        assert!(released.is_ok(), "private memory of ours can always be given back");
        poison(base.as_ptr(), bytes);
        #[cfg(asan)]
        self.released.lock().expect("no panic while it is held").insert((offset, bytes));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        crate::sync::forget_range(self.base.as_ptr(), self.bytes);
        #[cfg(asan)]
        for (offset, bytes) in std::mem::take(&mut *self.released.lock().expect("as in release")) {
            unpoison(self.base.as_ptr().wrapping_add(offset), bytes);
        }
        // SAFETY: the range is exactly what `reserve` kept, and nobody else unmaps it.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Address space on a huge-page border, without access.
fn reserve(bytes: usize) -> std::io::Result<NonNull<u8>> {
    let wide_bytes = bytes + HUGE_PAGE_BYTES;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
    let wide = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            wide_bytes,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }?;
    let wide = NonNull::new(wide.cast::<u8>()).expect("the kernel never maps page zero unasked");
    let skip = wide.as_ptr().align_offset(HUGE_PAGE_BYTES);
    // SAFETY: `skip < HUGE_PAGE_BYTES`: what is kept lies inside the wide mapping, and both cuts
    // inside it and outside of what is kept.
    unsafe {
        let base = wide.add(skip);
        if skip > 0 {
            rustix::mm::munmap(wide.as_ptr().cast(), skip)?;
        }
        rustix::mm::munmap(base.as_ptr().add(bytes).cast(), HUGE_PAGE_BYTES - skip)?;
        Ok(base)
    }
}

/// Bytes of memory of this machine, rounded up to a power of two: more address space than that is
/// never filled.
pub fn machine_bytes() -> usize {
    // SAFETY: asks for two numbers.
    let (pages, bytes) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let known = usize::try_from(pages).ok().zip(usize::try_from(bytes).ok());
    known.map_or(1 << 36, |(pages, bytes)| pages * bytes).next_power_of_two()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn committed_ranges_hold_zeros_and_what_is_written() {
        for pages in [Pages::Small, Pages::Transparent, Pages::Explicit] {
            let space = Reservation::new(1 << 36, 1 << 30, pages).expect("address space");
            assert_eq!(space.base().addr().get() % HUGE_PAGE_BYTES, 0);
            let offset = 6 * HUGE_PAGE_BYTES;
            let granted = space.commit(offset, HUGE_PAGE_BYTES, true).expect("2 MiB");
            assert!(granted <= pages);
            // SAFETY: committed just above, ours alone; bytes need no alignment.
            unsafe {
                let byte = space.base().as_ptr().add(offset + 77);
                assert_eq!(byte.read(), 0);
                byte.write(7);
                assert_eq!(byte.read(), 7);
                space.release(offset, HUGE_PAGE_BYTES);
                #[cfg(asan)]
                assert!(crate::region::is_poisoned(byte), "a use after release is noticed");
                space.commit(offset, HUGE_PAGE_BYTES, true).expect("2 MiB");
                assert_eq!(byte.read(), 0, "released memory begins anew");
                space.release(offset, HUGE_PAGE_BYTES);
            }
        }
    }

    /// What is mapped there next is somebody else's.
    #[cfg(asan)]
    #[test]
    fn a_reservation_leaves_no_poison() {
        let space = Reservation::new(1 << 30, 1 << 30, Pages::Small).expect("address space");
        space.commit(PAGE_BYTES, 2 * PAGE_BYTES, false).expect("two pages");
        let byte = space.base().as_ptr().wrapping_add(PAGE_BYTES);
        // SAFETY: nobody uses it.
        unsafe { space.release(PAGE_BYTES, 2 * PAGE_BYTES) };
        assert!(crate::region::is_poisoned(byte));
        drop(space);
        assert!(!crate::region::is_poisoned(byte));
    }

    #[test]
    fn short_address_space_is_reserved_in_part() {
        let space = Reservation::new(1 << 50, 1 << 21, Pages::Small).expect("less than asked for");
        assert!(space.bytes().is_power_of_two() && space.bytes() < 1 << 48);
        assert!(Reservation::new(1 << 50, 1 << 50, Pages::Small).is_err());
    }
}
