//! Files that nothing changes any more, mapped to be read.
//!
//! - I-UNCHANGED: no process changes or cuts a file while it is mapped. The maker of the mapping promises it: the file
//!   was written, synced and named, and is only removed after that, in a folder that is locked against other
//!   processes.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

/// All bytes of a file, mapped for reading; unmapped on drop.
#[derive(Debug)]
pub struct FileView {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is an address range; it owns no thread-bound state.
unsafe impl Send for FileView {}
// SAFETY: its bytes are only read.
unsafe impl Sync for FileView {}

impl FileView {
    /// Maps the first `bytes` of a file, which has so many, as long as I-UNCHANGED holds of it. A file
    /// that has fewer, or loses some, ends the process where they are read.
    ///
    /// # Errors
    /// The system's answer.
    ///
    /// # Panics
    /// If `bytes` is zero.
    pub fn map(file: BorrowedFd<'_>, bytes: usize) -> std::io::Result<FileView> {
        assert!(bytes > 0, "something to map");
        let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let base =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) }?;
        let base = NonNull::new(base.cast()).expect("the kernel never maps page zero unasked");
        Ok(FileView { base, bytes })
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has so many bytes, lives as long as `self`, and no thread writes them, by
        // I-UNCHANGED.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }
}

impl Drop for FileView {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `map` mapped, and only this unmaps it.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_is_read_where_it_lies_after_its_name_is_gone() {
        let mut file = tempfile::tempfile().expect("a file");
        let written: Vec<u8> = (0..10_000).map(|at| at as u8).collect();
        file.write_all(&written).expect("written");
        let view = FileView::map(file.as_fd(), written.len()).expect("mapped");
        drop(file);
        assert_eq!(view.bytes(), written);
    }
}
