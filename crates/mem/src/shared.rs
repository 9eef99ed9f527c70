//! Shared mappings: bytes of a file that are written by storing to memory.
//!
//! What is stored is in the system's page cache at once: it outlives the process, however that
//! ends, and lasts once the file is synced. Of a file in persistent memory (DAX: no page cache lies
//! between) the memory itself is mapped, and what is stored lasts once its cache lines are written
//! back.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

#[cfg(target_os = "linux")]
use rustix::mm::Advice;
use rustix::mm::{MapFlags, ProtFlags};

use crate::flush::Flush;
#[cfg(target_os = "linux")]
use crate::region::PAGE_BYTES;

/// Whether files are taken to lie in persistent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dax {
    /// Where the system says so: it maps them with `MAP_SYNC`.
    #[default]
    Detected,
    /// Whatever the system says. What is stored to other files lasts no longer than their page cache.
    Assumed,
}

/// The first bytes of a file, mapped for reading and writing; unmapped on drop.
#[derive(Debug)]
pub struct SharedMapping {
    base: NonNull<u8>,
    bytes: usize,
    /// How cache lines are written back, in persistent memory.
    flush: Option<Flush>,
}

// SAFETY: a mapping is an address range; it owns no thread-bound state.
unsafe impl Send for SharedMapping {}
// SAFETY: shared references read only, and writing takes an exclusive one.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Maps the first `bytes` of a file, which has so many, keeps them while it is mapped, and is
    /// changed by no other means.
    ///
    /// # Errors
    /// The system's answer.
    ///
    /// # Panics
    /// If `bytes` is zero.
    pub fn map(file: BorrowedFd<'_>, bytes: usize, dax: Dax) -> std::io::Result<SharedMapping> {
        assert!(bytes > 0, "something to map");
        let flush = Flush::all().next();
        let mapped = |base, flush| SharedMapping { base, bytes, flush };
        #[cfg(target_os = "linux")]
        if flush.is_some() {
            // Names and places of blocks that a store needs last before the store is done. Refused
            // where the file is in no such memory.
            let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
            if let Ok(base) = map_with(file, bytes, flags) {
                return Ok(mapped(base, flush));
            }
        }
        let base = map_with(file, bytes, MapFlags::SHARED)?;
        Ok(mapped(base, flush.filter(|_| dax == Dax::Assumed)))
    }

    /// Whether the file is taken to lie in persistent memory, so that [`SharedMapping::persist`] makes
    /// stored bytes last.
    pub fn is_dax(&self) -> bool {
        self.flush.is_some()
    }

    /// Makes the stored bytes of a range last, where the file lies in persistent memory: no system
    /// call, but a flush for each cache line and one fence. Elsewhere it does nothing.
    ///
    /// # Panics
    /// Beyond the end.
    pub fn persist(&self, offset: usize, bytes: usize) {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "inside the mapping");
        let Some(flush) = self.flush else { return };
        // SAFETY: inside the mapping, just checked.
        unsafe {
            let first = self.base.as_ptr().cast_const().add(offset);
            flush.write_back(first..first.add(bytes));
        }
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes the pages of a range ready to be stored to, together, where the system can: each would
    /// take a fault of its own later.
    ///
    /// # Panics
    /// Beyond the end.
    pub fn prepare(&self, offset: usize, bytes: usize) {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "inside the mapping");
        #[cfg(target_os = "linux")]
        {
            let from = offset / PAGE_BYTES * PAGE_BYTES;
            // SAFETY: pages of the mapping, whose bytes stay what they are. Where the system refuses,
            // they fault one by one.
            let _advised = unsafe {
                let first = self.base.as_ptr().add(from).cast();
                rustix::mm::madvise(first, bytes + (offset - from), Advice::LinuxPopulateWrite)
            };
        }
    }

    /// Stores bytes from `offset` on.
    ///
    /// # Panics
    /// Beyond the end.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.bytes && bytes.len() <= self.bytes - offset, "inside the mapping");
        // SAFETY: inside the mapping, just checked; exclusive by `&mut self`; `bytes` is no part of
        // it, since no reference into it is handed out.
        unsafe {
            let into = self.base.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len());
        }
    }

    /// Fills `into` from `offset` on.
    ///
    /// # Panics
    /// Beyond the end.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(offset <= self.bytes && into.len() <= self.bytes - offset, "inside the mapping");
        // SAFETY: as in `write`; no writer is there, by `&self`.
        unsafe {
            let from = self.base.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
    }
}

fn map_with(file: BorrowedFd<'_>, bytes: usize, flags: MapFlags) -> std::io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
    let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) }?;
    Ok(NonNull::new(base.cast()).expect("the kernel never maps page zero unasked"))
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `map` mapped, and only this unmaps it.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use std::os::fd::AsFd;

    #[test]
    fn what_is_stored_is_in_the_file() {
        for dax in [Dax::Detected, Dax::Assumed] {
            let mut file = tempfile::tempfile().expect("a file");
            file.set_len(8192).expect("8 KiB");
            let mut mapping = SharedMapping::map(file.as_fd(), 8192, dax).expect("mapped");
            mapping.write(4095, b"acorn");
            mapping.persist(4095, 5);
            drop(mapping);
            let mut bytes = Vec::new();
            file.rewind().expect("the start");
            file.read_to_end(&mut bytes).expect("read");
            assert_eq!((bytes.len(), &bytes[4095..4100]), (8192, &b"acorn"[..]));
            let mapping = SharedMapping::map(file.as_fd(), 8192, dax).expect("mapped");
            let mut into = [0; 5];
            mapping.read(4095, &mut into);
            assert_eq!(&into, b"acorn");
        }
    }

    #[test]
    fn a_file_in_a_page_cache_is_in_persistent_memory_only_if_that_is_assumed() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a page");
        let is_dax = |dax| SharedMapping::map(file.as_fd(), 4096, dax).expect("mapped").is_dax();
        let can_flush = Flush::all().next().is_some();
        assert_eq!(is_dax(Dax::Assumed), can_flush);
        // This machine may have such memory.
        assert!(can_flush || !is_dax(Dax::Detected));
    }

    #[test]
    #[should_panic(expected = "inside the mapping")]
    fn nothing_is_stored_beyond_the_end() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a page");
        let mut mapping = SharedMapping::map(file.as_fd(), 4096, Dax::Detected).expect("mapped");
        mapping.write(4095, b"ab");
    }
}
