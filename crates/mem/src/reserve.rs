//! Reservations: address space that fills with memory as it grows, without moving.
//!
//! A [`Reservation`] is address space without memory: ranges of it are committed when they are
//! needed and released when they are not, so that what lies in it is found by one addition and
//! keeps its address for life.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, MlockFlags};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

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

/// The pages that a committed range is to lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Pages of the smallest size.
    Small,
    /// Huge pages, where the range covers some and the system has them.
    Huge,
}

// SAFETY: a reservation is an address range; it owns no thread-bound state.
unsafe impl Send for Reservation {}
// SAFETY: as above; what is committed is synchronised by its users.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves `bytes`, a power of two, or half of it and so on down to `least`, where address
    /// space is short or has many takers already: the n-th reservation gets no more than
    /// 16 TiB / n. Begins on a huge-page border. `pages` is what committed ranges will ask for;
    /// those of the administrator's pool cannot be put into a reservation, so that transparent ones
    /// stand in for them.
    ///
    /// # Errors
    /// [`NoAddressSpace`] when not even `least` bytes are left.
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
                    let refused = NoAddressSpace { bytes: bytes as u64, why: cause.to_string() };
                    return Err(std::io::Error::new(cause.kind(), refused));
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

    /// Makes a range, of whole pages, readable and writable; it holds zeros where nothing was
    /// written. Answers what it lies on: huge pages where it covers some and `backing` asks for them.
    ///
    /// # Errors
    /// [`NoMemory`] when the system has none to promise.
    pub fn commit(&self, offset: usize, bytes: usize, backing: Backing) -> std::io::Result<Pages> {
        assert!(offset + bytes <= self.bytes, "inside the reservation");
        assert!(offset.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES), "pages");
        // SAFETY: the range lies inside the reservation, just checked.
        let base = unsafe { self.base.add(offset) };
        let huge =
            backing == Backing::Huge && bytes >= HUGE_PAGE_BYTES && self.pages != Pages::Small;
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the range is ours, and more access takes nothing from a user.
        unsafe { rustix::mm::mprotect(base.as_ptr().cast(), bytes, access) }.map_err(|cause| {
            std::io::Error::new(
                std::io::ErrorKind::OutOfMemory,
                NoMemory { bytes: bytes as u64, why: cause.to_string() },
            )
        })?;
        unpoison(base.as_ptr(), bytes);
        let granted = huge && transparent_pages_allowed() && advise_huge(base, bytes);
        Ok(if granted { Pages::Transparent } else { Pages::Small })
    }

    /// Gives the memory of a committed range, of whole pages, back to the system. A caller
    /// that wants the range again commits it again, and finds zeros. The range stays readable: a
    /// late reader of its atomic words finds what was there, or zeros.
    ///
    /// Memory that the process locked (`mlockall`) is given back, too, and is locked when it is
    /// committed again. Where the system refuses all the same, the range is wiped and stays in
    /// memory until the reservation goes.
    ///
    /// # Safety
    /// No caller relies on what the range holds, nor writes it before it is committed again.
    pub unsafe fn release(&self, offset: usize, bytes: usize) {
        assert!(offset + bytes <= self.bytes, "inside the reservation");
        // SAFETY: inside the reservation, just checked.
        let base = unsafe { self.base.add(offset) };
        crate::sync::forget_range(base.as_ptr(), bytes);
        // SAFETY: the range is ours, committed, and the caller needs nothing that is in it.
        let given = unsafe { give_back(base, bytes) };
        if given.is_err() {
            // SAFETY: as above.
            unsafe { wipe(base, bytes) };
        }
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
        // SAFETY: the range is exactly what `reserve` kept, and only this unmaps it.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Gives memory back, with what is in it, and leaves its range readable and writable: zeros.
///
/// # Safety
/// The range is of whole pages, committed, and no caller needs what is in it.
#[cfg(target_os = "linux")]
unsafe fn give_back(base: NonNull<u8>, bytes: usize) -> rustix::io::Result<()> {
    // SAFETY: as the caller says.
    let given = |advice| unsafe { rustix::mm::madvise(base.as_ptr().cast(), bytes, advice) };
    given(Advice::LinuxDontNeed)
        // Locked memory, which Linux 5.18 and later give back by another name ...
        .or_else(|_| given(Advice::LinuxDontneedLocked))
        // SAFETY: ... and older ones once it is not locked any more.
        .or_else(|_| unsafe { give_back_unlocking(base, bytes) })
}

/// As `give_back`, of memory that is locked and shall be when it is touched again.
///
/// # Safety
/// As of `give_back`.
#[cfg(target_os = "linux")]
unsafe fn give_back_unlocking(base: NonNull<u8>, bytes: usize) -> rustix::io::Result<()> {
    let start = base.as_ptr().cast();
    // SAFETY: as the caller says; locks change no byte.
    unsafe {
        rustix::mm::munlock(start, bytes)?;
        rustix::mm::madvise(start, bytes, Advice::LinuxDontNeed)?;
        // It was locked until now, so there is room for it under the limit.
        let _locked = rustix::mm::mlock_with(start, bytes, MlockFlags::ONFAULT);
    }
    Ok(())
}

/// As on Linux, where alone advice makes zeros: elsewhere the range is mapped anew, in one step for
/// late readers.
///
/// # Safety
/// As on Linux.
#[cfg(any(test, not(target_os = "linux")))]
unsafe fn map_anew(base: NonNull<u8>, bytes: usize) -> rustix::io::Result<()> {
    // SAFETY: the range is ours, and no caller needs what is in it.
    let mapped = unsafe {
        rustix::mm::mmap_anonymous(
            base.as_ptr().cast(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
        )
    }?;
    debug_assert_eq!(mapped.cast(), base.as_ptr());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
use map_anew as give_back;

/// Zeroes memory that cannot be given back, word by word, since late readers may be at it.
///
/// # Safety
/// As of `give_back`.
#[cold]
unsafe fn wipe(base: NonNull<u8>, bytes: usize) {
    for word in 0..bytes / size_of::<AtomicU64>() {
        // SAFETY: inside the range, which is of whole pages and committed.
        let word = unsafe { base.cast::<AtomicU64>().add(word).as_ref() };
        // Relaxed: a reader that may be there takes any value.
        word.store(0, Ordering::Relaxed);
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

/// The system gives no address space for a reservation; what [`Reservation::new`] answers holds it.
#[derive(Debug)]
pub struct NoAddressSpace {
    /// Bytes that were asked for last, the least that would have done.
    pub bytes: u64,
    /// The system's answer.
    pub why: String,
}

impl std::fmt::Display for NoAddressSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let NoAddressSpace { bytes, why } = self;
        write!(f, "the process gets no {bytes} bytes of address space more: {why}")
    }
}

impl std::error::Error for NoAddressSpace {}

/// The system has no memory for a range; what [`Reservation::commit`] answers holds it.
#[derive(Debug)]
pub struct NoMemory {
    /// Bytes that were asked for.
    pub bytes: u64,
    /// The system's answer.
    pub why: String,
}

impl std::fmt::Display for NoMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the system has no memory for {} more bytes: {}", self.bytes, self.why)
    }
}

impl std::error::Error for NoMemory {}

/// Bytes of memory of this machine, where the system tells.
pub fn machine_bytes() -> Option<u64> {
    // SAFETY: asks for two numbers.
    let (pages, bytes) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    Some(u64::try_from(pages).ok()? * u64::try_from(bytes).ok()?)
}

/// Bytes that one table may come to fill, a power of two: those of the machine, rounded up, or a
/// quarter of the address space that the process may still take, where it has a limit
/// (`ulimit -v`). A reservation of more would be of no use, or leave nothing for the next.
pub fn fillable_bytes() -> usize {
    let machine = machine_bytes().unwrap_or(1 << 36).next_power_of_two() as usize;
    match address_space_left() {
        Some(left) => machine.min(1 << (left / 4).max(1).ilog2()),
        None => machine,
    }
}

/// Bytes of address space up to the limit of the process, if it has one.
fn address_space_left() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the two numbers.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if !known || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    // Elsewhere than on Linux the limit counts for little, and what is in use is not told.
    let used_kib = std::fs::read_to_string("/proc/self/status").ok().and_then(|text| {
        let size = text.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
        size.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    Some(limit.rlim_cur.saturating_sub(used_kib.unwrap_or(0) << 10))
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
            let granted = space.commit(offset, HUGE_PAGE_BYTES, Backing::Huge).expect("2 MiB");
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
                space.commit(offset, HUGE_PAGE_BYTES, Backing::Huge).expect("2 MiB");
                assert_eq!(byte.read(), 0, "released memory begins anew");
                space.release(offset, HUGE_PAGE_BYTES);
            }
        }
    }

    /// The next mapping there is another owner's.
    #[cfg(asan)]
    #[test]
    fn a_reservation_leaves_no_poison() {
        let space = Reservation::new(1 << 30, 1 << 30, Pages::Small).expect("address space");
        space.commit(PAGE_BYTES, 2 * PAGE_BYTES, Backing::Small).expect("two pages");
        let byte = space.base().as_ptr().wrapping_add(PAGE_BYTES);
        // SAFETY: not in use.
        unsafe { space.release(PAGE_BYTES, 2 * PAGE_BYTES) };
        assert!(crate::region::is_poisoned(byte));
        drop(space);
        assert!(!crate::region::is_poisoned(byte));
    }

    /// Runs a test again, alone in a process, with `check` in place of this call.
    fn in_process_of_its_own(test: &str, check: fn()) {
        const IS_CHILD: &str = "SAPWOOD_CHILD_OF";
        if std::env::var(IS_CHILD).is_ok_and(|name| name == test) {
            return check();
        }
        let this = std::env::current_exe().expect("a test has a program");
        let child = std::process::Command::new(this)
            .args(["--exact", test, "--nocapture"])
            .env(IS_CHILD, test)
            .output()
            .expect("a process");
        let told = String::from_utf8_lossy(&child.stdout).into_owned();
        let why = String::from_utf8_lossy(&child.stderr);
        print!("{told}");
        assert!(child.status.success() && told.contains("1 passed"), "{told}{why}");
    }

    const RANGE: usize = 16 * HUGE_PAGE_BYTES;

    /// A committed range full of ones.
    fn filled() -> Reservation {
        let space = Reservation::new(1 << 30, 1 << 30, Pages::Small).expect("address space");
        space.commit(0, RANGE, Backing::Small).expect("memory");
        // SAFETY: committed just above, and of no other owner.
        unsafe { space.base().as_ptr().write_bytes(1, RANGE) };
        space
    }

    fn assert_zero_and_writable(space: &Reservation) {
        // SAFETY: committed by `filled`, and of no other owner.
        let bytes = unsafe { std::slice::from_raw_parts_mut(space.base().as_ptr(), RANGE) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes[RANGE - 1] = 7;
        assert_eq!(bytes[RANGE - 1], 7);
    }

    /// Bytes of a field of the process's status, for instance of `VmRSS`.
    #[cfg(target_os = "linux")]
    fn status(field: &str) -> usize {
        let text = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
        let kib = line.trim_start_matches(':').trim().trim_end_matches("kB").trim();
        kib.parse::<usize>().expect("a number") << 10
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn locked_memory_is_given_back() {
        in_process_of_its_own("reserve::tests::locked_memory_is_given_back", || {
            // SAFETY: changes what is kept in memory, and no byte of it.
            if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
                let why = std::io::Error::last_os_error();
                println!(
                    "skipped: this user may not lock memory ({why}); next: ulimit -l unlimited"
                );
                return;
            }
            type Way = unsafe fn(NonNull<u8>, usize) -> rustix::io::Result<()>;
            for way in [give_back as Way, give_back_unlocking] {
                let space = filled();
                let (before, locked) = (status("VmRSS"), status("VmLck"));
                // SAFETY: committed, and no caller needs what is in it.
                unsafe { way(space.base(), RANGE) }.expect("memory of ours");
                let given = before.saturating_sub(status("VmRSS"));
                assert!(given >= RANGE - HUGE_PAGE_BYTES, "{given} of {RANGE} bytes");
                assert_eq!(status("VmLck"), locked, "it is locked when it is touched again");
                assert_zero_and_writable(&space);
            }
            let space = filled();
            // SAFETY: as above.
            unsafe { space.release(0, RANGE) };
            space.commit(0, RANGE, Backing::Huge).expect("memory");
            assert_zero_and_writable(&space);
        });
    }

    #[test]
    fn every_way_to_release_leaves_zeros_that_a_late_reader_may_read() {
        type Way = unsafe fn(NonNull<u8>, usize) -> rustix::io::Result<()>;
        let wiped: Way = |base, bytes| {
            // SAFETY: as of each way.
            unsafe { wipe(base, bytes) };
            Ok(())
        };
        for way in [give_back as Way, map_anew, wiped] {
            let space = filled();
            // SAFETY: committed, and no caller needs what is in it.
            unsafe { way(space.base(), RANGE) }.expect("memory of ours");
            assert_zero_and_writable(&space);
        }
    }

    #[cfg(all(target_os = "linux", not(asan)))]
    #[test]
    fn a_limit_leaves_address_space_for_the_next() {
        in_process_of_its_own("reserve::tests::a_limit_leaves_address_space_for_the_next", || {
            let bytes = (status("VmSize") + (3 << 30)) as u64;
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            // SAFETY: reads the two numbers.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
            let mut taken = Vec::new();
            let refused = loop {
                assert!(fillable_bytes().is_power_of_two());
                match Reservation::new(fillable_bytes().max(32 << 20), 32 << 20, Pages::Small) {
                    Ok(space) => taken.push(space),
                    Err(cause) => break cause,
                }
            };
            assert!(taken.len() >= 10, "{} reservations", taken.len());
            assert!(taken[0].bytes() >= 512 << 20, "the first is a large one");
            let inner = refused.get_ref().and_then(|inner| inner.downcast_ref::<NoAddressSpace>());
            assert_eq!(inner.expect("it says what is missing").bytes, 32 << 20);
        });
    }

    #[test]
    fn short_address_space_is_reserved_in_part() {
        let space = Reservation::new(1 << 50, 1 << 21, Pages::Small).expect("less than asked for");
        assert!(space.bytes().is_power_of_two() && space.bytes() < 1 << 48);
        assert!(Reservation::new(1 << 50, 1 << 50, Pages::Small).is_err());
    }
}
