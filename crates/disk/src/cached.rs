//! Files in the page cache: any bytes at any offset, and bytes that are written by storing to memory.
//!
//! What is written is in the page cache at once: it outlives the process, however that ends, and
//! lasts once the file is synced.

use std::io;
use std::os::fd::BorrowedFd;

/// Whether a file is to be made, or to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is made, and must not be there yet.
    New,
    /// It is there.
    There,
}

/// An open file that is read and written through the page cache. Threads share it.
pub trait CachedFile: Send + Sync + std::fmt::Debug {
    /// Its length in bytes.
    ///
    /// # Errors
    /// The system's answer, as of all methods.
    fn bytes(&self) -> io::Result<u64>;
    /// Makes it at least so long, with zeros at its end, and keeps room for all of it on the disk,
    /// so that no later write lacks room.
    fn reserve(&self, bytes: u64) -> io::Result<()>;
    /// Makes it at least so long, with zeros at its end that take no room.
    fn lengthen(&self, bytes: u64) -> io::Result<()>;
    /// Fills `into` from `offset`, whole, or answers why not (`UnexpectedEof` at the end).
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Whether the byte at `offset` is read without waiting for the disk; true where the system does not say.
    fn is_in_memory(&self, offset: u64) -> bool {
        let _not_asked = offset;
        true
    }
    /// Asks the system to read bytes into memory, and does not wait for them. Where it cannot, they are read when
    /// they are needed.
    fn read_ahead(&self, offset: u64, bytes: u64) {
        let _not_asked = (offset, bytes);
    }
    /// Writes all bytes of `from`, growing the file where it must.
    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()>;
    /// Makes what was written or stored last.
    fn sync(&self) -> io::Result<()>;
    /// Maps its first `bytes`, which it has.
    fn map(&self, bytes: usize) -> io::Result<Box<dyn Mapped>>;
    /// What the system calls it, where it is a real one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The first bytes of a file, which are written by storing to memory.
pub trait Mapped: Send + Sync + std::fmt::Debug {
    /// Stores bytes from `offset` on.
    ///
    /// # Panics
    /// Beyond the end.
    fn write(&mut self, offset: usize, bytes: &[u8]);
    /// Fills `into` from `offset` on.
    ///
    /// # Panics
    /// Beyond the end.
    fn read(&self, offset: usize, into: &mut [u8]);
    /// Says that a range is going to be stored to.
    ///
    /// # Panics
    /// Beyond the end.
    fn prepare(&self, offset: usize, bytes: usize) {
        let _no_pages = (offset, bytes);
    }
    /// Whether [`Mapped::persist`] makes stored bytes last: the file lies in persistent memory. Else
    /// [`CachedFile::sync`] does. Either way only what was synced once has its length and its name.
    fn is_dax(&self) -> bool {
        false
    }
    /// Makes the stored bytes of a range last, in persistent memory.
    ///
    /// # Errors
    /// Of a simulated disk that has no power.
    ///
    /// # Panics
    /// Beyond the end.
    fn persist(&self, offset: usize, bytes: usize) -> io::Result<()> {
        let _synced_later = (offset, bytes);
        Ok(())
    }
}

/// The bytes of a file that nothing changes any more.
pub trait View: Send + Sync + std::fmt::Debug {
    /// All of them.
    fn bytes(&self) -> &[u8];
}

impl View for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl View for sapwood_mem::view::FileView {
    fn bytes(&self) -> &[u8] {
        sapwood_mem::view::FileView::bytes(self)
    }
}

impl Mapped for sapwood_mem::shared::SharedMapping {
    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        sapwood_mem::shared::SharedMapping::write(self, offset, bytes);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        sapwood_mem::shared::SharedMapping::read(self, offset, into);
    }

    fn prepare(&self, offset: usize, bytes: usize) {
        sapwood_mem::shared::SharedMapping::prepare(self, offset, bytes);
    }
    fn is_dax(&self) -> bool {
        sapwood_mem::shared::SharedMapping::is_dax(self)
    }

    fn persist(&self, offset: usize, bytes: usize) -> io::Result<()> {
        sapwood_mem::shared::SharedMapping::persist(self, offset, bytes);
        Ok(())
    }
}
