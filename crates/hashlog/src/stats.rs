//! Figures of a log: its entries, its boundaries, its bytes.

use crate::error::{Error, Result};
use crate::files::stored::FileKind;

/// Figures of a log.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HashStats {
    /// Entries by counters, as `len_estimate` tells: right
    /// for a log in memory, and perhaps far too low in a directory.
    pub entries_estimate: u64,
    /// Buckets of the index, without overflow.
    pub buckets: u64,
    /// Overflow buckets in use.
    pub overflow_buckets: u64,
    /// Slots in use.
    pub slots: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes of pages in memory.
    pub log_bytes: u64,
    /// Bytes of memory in all.
    pub reserved_bytes: u64,
    /// Most bytes of memory.
    pub budget_bytes: Option<u64>,
    /// First address that is still used, in bytes.
    pub begin: u64,
    /// First address in memory.
    pub head: u64,
    /// Bytes of the log below `head` that there is room for in memory, and that come back: opening
    /// reads none of them, the first walk that needs them reads all, and each record that is read
    /// from the disk brings some.
    pub returning_bytes: u64,
    /// Bytes of these that records take, and that a walk reads back.
    pub read_back_bytes: u64,
    /// FASTER's safe read-only address: values below it change by edits alone. Where no boundary is moving
    /// it is the read-only address, too: the first that is updated in place.
    pub safe_read_only: u64,
    /// Where the next record goes.
    pub tail: u64,
    /// Bytes of the log that are superseded, removed or left unused. Counted for a log in memory;
    /// with a directory an estimate, as of the last look at a sample of the pages
    /// (`estimate_garbage`), with what was superseded or removed in memory since.
    pub garbage_bytes: u64,
    /// Bytes of log parts on the disk.
    pub file_bytes: u64,
    /// Of the log that was given up, bytes whose files are kept for checkpoints.
    pub held_bytes: u64,
    /// Compactions since the log was opened: calls, and steps of its own.
    pub compactions: u64,
    /// Bytes of the log that they gave up.
    pub compacted_bytes: u64,
    /// Live bytes that they moved for that.
    pub moved_bytes: u64,
    /// The error that stopped the log's own compaction last, until it goes on: it tries again after
    /// so many more pages have been filled, twice as many each time, or after a checkpoint.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_text"))]
    pub compaction_error: Option<Error>,
    /// Records read from the disk so far.
    pub cold_reads: u64,
    /// Records found in the read cache so far, which would else have been read from the disk.
    pub cached_reads: u64,
    /// Bytes of the read cache, from the first record that lies on the disk alone; part of
    /// `reserved_bytes`.
    pub read_cache_bytes: u64,
    /// By what reads of a batch are in flight together: `io_uring`, or `threads` where the system has none
    /// or forbids it, or the disk was opened so. Empty for a log in memory.
    pub reads_by: &'static str,
    /// Reads of batches that were given to io_uring so far. A thread that the system refuses a ring of its
    /// own reads by others, also where `reads_by` says `io_uring`.
    pub ring_reads: u64,
    /// Records that the index was asked about so far, whether they are superseded: by walks of the
    /// log about those on the disk, and as pages came back.
    pub chains_asked: u64,
    /// The kind of pages under most of the memory: `4 KiB`, `2 MiB transparent` or `2 MiB
    /// explicit`.
    pub pages: &'static str,
}

impl HashStats {
    /// Mean number of slots in use in the chain of a bucket.
    pub fn load(&self) -> f64 {
        if self.buckets == 0 { 0.0 } else { self.slots as f64 / self.buckets as f64 }
    }
    /// Mean number of buckets in a chain.
    pub fn chain(&self) -> f64 {
        if self.buckets == 0 {
            0.0
        } else {
            (self.buckets + self.overflow_buckets) as f64 / self.buckets as f64
        }
    }
}

#[cfg(feature = "serde")]
fn as_text<S: serde::Serializer>(
    error: &Option<Error>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    match error {
        Some(error) => to.serialize_some(&error.to_string()),
        None => to.serialize_none(),
    }
}

/// A complete checkpoint in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// Its number, higher is newer.
    pub number: u64,
    /// Whether it has an index image of its own.
    pub full: bool,
    /// Log addresses it covers, in bytes: from here ...
    pub begin: u64,
    /// ... to here.
    pub end: u64,
    /// Entries of the table, as `len_estimate` told.
    pub entries: u64,
    /// Bytes it wrote.
    pub written_bytes: u64,
}

/// A checkpoint in a directory, as its files tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCheckpoint {
    /// Its number, higher is newer.
    pub number: u64,
    /// The checkpoint, or why it does not open.
    pub state: Result<CheckpointInfo>,
}

impl CheckpointInfo {
    /// The file that makes it one.
    pub fn file_name(&self) -> String {
        FileKind::Manifest.file_name(self.number)
    }
}

impl StoredCheckpoint {
    /// The file that makes it one.
    pub fn file_name(&self) -> String {
        FileKind::Manifest.file_name(self.number)
    }
}

/// The outcome of a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Records that were live and moved.
    pub records_kept: u64,
    /// Records that were superseded or removed.
    pub records_dropped: u64,
    /// Bytes of the log given up. Files go when no checkpoint that is kept needs them.
    pub bytes_freed: u64,
    /// Bytes of the records that were kept, which the log has grown by.
    pub bytes_moved: u64,
}
