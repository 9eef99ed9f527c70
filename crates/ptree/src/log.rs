//! The log of a pool: one of its own, or one that it shares with other engines.

use std::io;
use std::sync::Arc;

use sapwood_disk::log::{Log, Lsn, SharedLog};

/// Where the commits of a pool go.
#[derive(Debug, Clone)]
pub(crate) enum PoolLog {
    /// The pool gives it up by its own checkpoints.
    Own(Arc<Log>),
    /// Others give it up, after a checkpoint of the pool.
    Shared(Arc<dyn SharedLog>),
}

impl PoolLog {
    /// For positions and syncs.
    pub(crate) fn log(&self) -> &Arc<Log> {
        match self {
            PoolLog::Own(log) => log,
            PoolLog::Shared(shared) => shared.log(),
        }
    }

    /// Appends a record; `ends_group` as of [`SharedLog::append`].
    pub(crate) fn append(&self, record: &[u8], ends_group: bool) -> io::Result<Lsn> {
        match self {
            PoolLog::Own(log) => log.append(record),
            PoolLog::Shared(shared) => shared.append(record, ends_group),
        }
    }

    /// Keeps room for a record, as [`SharedLog::claim`] does.
    pub(crate) fn claim(&self, record_bytes: usize) -> io::Result<u64> {
        match self {
            PoolLog::Own(log) => log.claim(record_bytes),
            PoolLog::Shared(shared) => shared.claim(record_bytes),
        }
    }

    /// Appends records for which there are claims; `ends_group` as of [`SharedLog::append`].
    pub(crate) fn append_claimed(&self, records: &[u8], ends_group: bool) -> io::Result<Lsn> {
        match self {
            PoolLog::Own(log) => log.append_claimed(records),
            PoolLog::Shared(shared) => shared.append_claimed(records, ends_group),
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, PoolLog::Shared(_))
    }
}
