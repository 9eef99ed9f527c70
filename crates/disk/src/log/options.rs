//! Options of a log: its files, and where reading them begins.

use std::time::Duration;

use super::format::Lsn;

/// The files of a log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The beginning of the names of its files.
    pub prefix: String,
    /// Bytes of its first part, and of the first of each opening; each next one has twice as many ...
    pub part_bytes_min: u64,
    /// ... up to so many.
    pub part_bytes_max: u64,
    /// Files that are kept to be used again.
    pub spares: usize,
    /// The time after which what was appended is synced, by a thread of the log. By default, and
    /// where it is `None`, a log is synced when a caller wants it.
    pub sync_interval: Option<Duration>,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            prefix: "redo".to_owned(),
            part_bytes_min: 1 << 20,
            part_bytes_max: 64 << 20,
            spares: 2,
            sync_interval: None,
        }
    }
}

/// Where reading a log begins, and how far it must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStart {
    /// The first record that is wanted.
    pub lsn: Lsn,
    /// The number of the part that it is in, as [`Log::position`](super::Log::position) said.
    pub part: u64,
    /// The log was synced up to there: one that ends before is damaged.
    pub durable: Lsn,
}
