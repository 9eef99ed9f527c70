//! Faults: the calls that are to fail, and how.

use std::io;
use std::ops::{Bound, RangeBounds};

/// The fate of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFault {
    /// It fails.
    Error(io::ErrorKind),
    /// The media give half of the bytes, as if the file ended there: `UnexpectedEof`.
    Short,
    /// It succeeds with one bit flipped, in the byte at this offset of what was read (modulo its
    /// length).
    Flip(usize),
}

/// The fate of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// It fails and does nothing.
    Error(io::ErrorKind),
    /// It fails after writing the first half of its sectors.
    Torn(io::ErrorKind),
}

/// The fate of a sync of a file or of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncFault {
    /// It fails. What it was to make last can still be read, and may be lost in a crash whatever
    /// later syncs say.
    Doubtful(io::ErrorKind),
    /// It fails, and what it was to make last is gone at once: reads give what was there before.
    /// For names the same as [`SyncFault::Doubtful`].
    Lost(io::ErrorKind),
}

/// A plan of failures. Reads, writes, syncs, changes of names and looks at them are counted each on their own, from 0,
/// beginning when the plan is set.
///
/// ```
/// use sapwood_disk::{Disk, Faults, SimDisk, SyncFault};
///
/// let disk = SimDisk::new();
/// disk.set_faults(Faults::new().syncs(1.., SyncFault::Doubtful(std::io::ErrorKind::Other)));
/// assert!(disk.sync().is_ok());
/// assert!(disk.sync().is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Faults {
    reads: Vec<(Numbers, ReadFault)>,
    writes: Vec<(Numbers, WriteFault)>,
    syncs: Vec<(Numbers, SyncFault)>,
    names: Vec<(Numbers, io::ErrorKind)>,
    looks: Vec<(Numbers, io::ErrorKind)>,
    bytes_max: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Numbers(Bound<u64>, Bound<u64>);

impl Numbers {
    fn of(range: impl RangeBounds<u64>) -> Numbers {
        Numbers(range.start_bound().cloned(), range.end_bound().cloned())
    }
}

fn pick<F: Copy>(plan: &[(Numbers, F)], number: u64) -> Option<F> {
    plan.iter().find(|(numbers, _)| (numbers.0, numbers.1).contains(&number)).map(|plan| plan.1)
}

impl Faults {
    /// No failure.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Reads with these numbers fail.
    #[must_use]
    pub fn reads(mut self, numbers: impl RangeBounds<u64>, fault: ReadFault) -> Faults {
        self.reads.push((Numbers::of(numbers), fault));
        self
    }

    /// Writes with these numbers fail.
    #[must_use]
    pub fn writes(mut self, numbers: impl RangeBounds<u64>, fault: WriteFault) -> Faults {
        self.writes.push((Numbers::of(numbers), fault));
        self
    }

    /// Syncs, of files and of names, with these numbers fail.
    #[must_use]
    pub fn syncs(mut self, numbers: impl RangeBounds<u64>, fault: SyncFault) -> Faults {
        self.syncs.push((Numbers::of(numbers), fault));
        self
    }

    /// Changes of names, of files and folders, with these numbers fail, and do nothing.
    #[must_use]
    pub fn names(mut self, numbers: impl RangeBounds<u64>, fault: io::ErrorKind) -> Faults {
        self.names.push((Numbers::of(numbers), fault));
        self
    }

    /// Looks at names with these numbers fail: openings of files and folders that are there, lists of names, and
    /// questions for one.
    #[must_use]
    pub fn looks(mut self, numbers: impl RangeBounds<u64>, fault: io::ErrorKind) -> Faults {
        self.looks.push((Numbers::of(numbers), fault));
        self
    }

    /// All files together may have this many bytes; a write that would make a file longer than
    /// that allows fails with `StorageFull` and does nothing.
    #[must_use]
    pub fn space(mut self, bytes_max: u64) -> Faults {
        self.bytes_max = Some(bytes_max);
        self
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max.unwrap_or(u64::MAX)
    }

    pub(super) fn of_read(&self, number: u64) -> Option<ReadFault> {
        pick(&self.reads, number)
    }

    pub(super) fn of_write(&self, number: u64) -> Option<WriteFault> {
        pick(&self.writes, number)
    }

    pub(super) fn of_name(&self, number: u64) -> Option<io::ErrorKind> {
        pick(&self.names, number)
    }

    pub(super) fn of_look(&self, number: u64) -> Option<io::ErrorKind> {
        pick(&self.looks, number)
    }

    pub(super) fn of_sync(&self, number: u64) -> Option<SyncFault> {
        pick(&self.syncs, number)
    }
}
