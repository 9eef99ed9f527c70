//! Files as an engine sees them.
//!
//! A [`Disk`] is one directory of files. [`FileDisk`] is a real one; `SimDisk` is a model of one
//! that loses, tears and reorders what was not synced, for tests alone: the feature `sim` has it.
//! Reads and writes of a [`File`] are whole [`BLOCK_BYTES`] blocks at block borders, in buffers of
//! [`Blocks`], so that a real disk can bypass the page cache; a [`CachedFile`] goes through it. A
//! [`log`] of records, which commits wait for, lies on cached files. [`Folders`] are several disks in one
//! directory.
#![forbid(unsafe_code)]

use std::any::Any;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

mod begun;
mod blocks;
mod cached;
mod checksum;
mod clock;
mod file;
mod folders;
mod held;
pub mod log;
mod name;
mod pending;
mod place;
mod pool;
mod reading;
mod ring;
#[cfg(feature = "sim")]
mod sim;
mod version;

pub use begun::{BegunRead, OwnedRead};
pub use blocks::{BLOCK_BYTES, Blocks};
pub use cached::{CachedFile, Mapped, Presence, View};
pub use checksum::checksum;
pub use clock::{Clock, SystemClock};
pub use file::FileDisk;
pub use folders::{FileFolders, Folders};
pub use held::HeldFiles;
pub use pending::{Pending, Work};
pub use reading::{DiskReads, ReadsBy};
#[cfg(feature = "sim")]
pub use sim::{CrashImages, Faults, ReadFault, SECTOR_BYTES, SimDisk, SyncFault, WriteFault};
pub use version::is_later_version;

/// One read of a batch.
#[derive(Debug)]
pub struct Read<'a> {
    /// From which file.
    pub file: &'a (dyn File + 'static),
    /// At which byte; a multiple of [`BLOCK_BYTES`].
    pub offset: u64,
    /// Filled whole, or `result` says why not.
    pub into: &'a mut Blocks,
    /// The outcome; `Ok` before it is tried.
    pub result: io::Result<()>,
}

/// One directory of files.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Makes a file that must not be there yet, for reading and writing.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Opens a file that is there, for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// All bytes of a file that nothing changes any more, as long as the view lives: it may be removed,
    /// but not written. Where the disk can, it is mapped.
    fn view(&self, name: &str) -> io::Result<Arc<dyn View>> {
        let file = self.cached(name, Presence::There)?;
        let bytes = usize::try_from(file.bytes()?).map_err(io::Error::other)?;
        let mut read = vec![0; bytes];
        file.read_at(0, &mut read)?;
        Ok(Arc::new(read))
    }
    /// Opens a file through the page cache, for reading and writing where the disk is.
    fn cached(&self, name: &str, presence: Presence) -> io::Result<Arc<dyn CachedFile>>;
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Gives a file another name, replacing one that has it. Lasting after [`Disk::sync`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name. Handles that are open keep reading.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes the set of names last.
    fn sync(&self) -> io::Result<()>;
    /// Does all reads, many at a time, and answers when the last is done.
    fn read_many(&self, reads: &mut [Read<'_>]);
    /// Begins all reads, in flight together. Each answers for itself.
    fn begin_reads(&self, reads: Vec<OwnedRead>) -> Vec<BegunRead> {
        let (begun, works) = reads.into_iter().map(OwnedRead::split).unzip();
        self.spawn(works);
        begun
    }
    /// By what reads that were [begun](Self::begin_reads) are in flight together.
    fn reads_by(&self) -> ReadsBy {
        ReadsBy::Threads
    }
    /// Reads that were given to io_uring so far.
    fn ring_reads(&self) -> u64 {
        0
    }
    /// Does works that wait for this disk: many at a time, in any order, in the background, or all
    /// before it returns. A work must not hold the last reference to the disk.
    fn spawn(&self, works: Vec<Work>) {
        for work in works {
            work();
        }
    }
    /// The clock by which threads of the disk wait.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock::default())
    }
    /// Whether everything that would change something is refused.
    fn is_read_only(&self) -> bool {
        false
    }
    /// Tells the writer of this folder that files may be wanted which nothing names any more
    /// ([`is_being_read`](Self::is_being_read)), until the answer is dropped or the process ends. `None` where the
    /// folder never had a writer that would ask.
    fn begin_reading(&self) -> io::Result<Option<Reading>> {
        Ok(None)
    }
    /// Whether a reader may want files that nothing names any more. One that [begins](Self::begin_reading) after
    /// the question wants none that was given up before it.
    fn is_being_read(&self) -> bool {
        false
    }
    /// Where this is, for messages.
    fn place(&self) -> String;
    /// The path that leads to the folder; `None` of one that is not in a file system.
    ///
    /// # Errors
    /// `StaleNetworkFileHandle` where the folder was moved or removed since it was opened, and the path leads to
    /// another or nowhere. So does everything that uses or changes names, and a sync.
    fn path(&self) -> io::Result<Option<PathBuf>> {
        Ok(None)
    }
}

/// A reader of a folder, as its writer sees it: see [`Disk::begin_reading`].
pub struct Reading(#[expect(dead_code, reason = "it is held")] Box<dyn Any + Send + Sync>);

impl Reading {
    /// Ends when `held` is dropped.
    pub(crate) fn new(held: impl Any + Send + Sync) -> Reading {
        Reading(Box::new(held))
    }
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

/// An open file. Threads share it. (`Any`, so that a disk tells its own files from others'.)
pub trait File: Any + Send + Sync + std::fmt::Debug {
    /// Its length in bytes.
    fn bytes(&self) -> io::Result<u64>;
    /// Fills `into` from `offset`, whole, or answers why not (`UnexpectedEof` at the end).
    fn read_at(&self, offset: u64, into: &mut Blocks) -> io::Result<()>;
    /// Writes all bytes of `from`, growing the file where it must.
    fn write_at(&self, offset: u64, from: &Blocks) -> io::Result<()>;
    /// Writes some of the blocks of `from`, counted from 0, the first of them to `offset`.
    fn write_some_at(&self, offset: u64, from: &Blocks, blocks: Range<usize>) -> io::Result<()> {
        let mut some = Blocks::new(blocks.len() * BLOCK_BYTES);
        let range = blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES;
        some.bytes_mut().copy_from_slice(&from.bytes()[range]);
        self.write_at(offset, &some)
    }
    /// Cuts off what lies from `bytes` on, a multiple of [`BLOCK_BYTES`]; a shorter file stays as
    /// it is. Lasting after a [`File::sync`].
    fn cut(&self, bytes: u64) -> io::Result<()>;
    /// Gives the room of a range back, where the disk can: its bytes, whole blocks, are not read again. The file stays
    /// as long as it is.
    fn discard(&self, _range: Range<u64>) -> io::Result<()> {
        Ok(())
    }
    /// Makes what was written last.
    fn sync(&self) -> io::Result<()>;
}

/// Tells a disk that is full, for a user or for all, from one that fails: another try may succeed.
pub fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
