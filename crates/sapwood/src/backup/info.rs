//! A backup in a list, and the progress of one.

use std::time::SystemTime;

/// A backup that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number; a later one has a higher.
    pub number: u64,
    /// When it was begun.
    pub taken: SystemTime,
    /// The directory that it is of, as it was named then.
    pub of: String,
    /// The number of its files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were written for it: the others were in the store already. Of a backup that is listed, bytes
    /// that no other backup has.
    pub own_bytes: u64,
}

/// The progress of a backup, a restoring or a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Bytes that are read.
    pub done: u64,
    /// Bytes in all, as known by now.
    pub all: u64,
}
