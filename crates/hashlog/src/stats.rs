//! What is in the log, and where are its bytes?

use crate::error::{Error, Result};
use crate::stored::FileKind;

/// Figures of a log.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Entries: exact for a log in memory. With a directory a put on a key whose record is on
    /// the disk does not read it, and is taken to replace an entry.
    pub entries: u64,
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
    /// First address that is updated in place.
    pub read_only: u64,
    /// Where the next record goes.
    pub tail: u64,
    /// Bytes of the log that are superseded, removed or left unused. Counted for a log in memory;
    /// with a directory an estimate, as of the last look at a sample of the pages
    /// ([`HashLog::estimate_garbage`](crate::HashLog::estimate_garbage)), and 0 before the first.
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
    /// What stopped the log's own compaction last, until it goes on: it tries again after so many
    /// more pages have been filled, twice as many each time, or after a checkpoint.
    pub compaction_error: Option<Error>,
    /// Records read from the disk so far.
    pub cold_reads: u64,
    /// What most of the memory lies on: `4 KiB`, `2 MiB transparent` or `2 MiB explicit`.
    pub pages: &'static str,
}

impl Stats {
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

/// A complete checkpoint in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Entries of the table, as [`HashLog::len`](crate::HashLog::len) counted them.
    pub entries: u64,
    /// Bytes it wrote.
    pub written_bytes: u64,
}

/// A checkpoint in a directory, as its files tell ([`HashLog::stored`](crate::HashLog::stored)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCheckpoint {
    /// Its number, higher is newer.
    pub number: u64,
    /// What it is, or why it does not open.
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
