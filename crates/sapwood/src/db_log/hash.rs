//! Hash tables in the log: their engine writes their checkpoints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use sapwood_hashlog::HashLog;
use sapwood_wal::{Checkpoints, Contents, TableId, Wal};

use super::{DbLog, Description, Kept};
use crate::{Cut, HashEngineError, LogError, Result};

/// A table that is open.
#[derive(Debug)]
struct Open {
    log: Arc<HashLog>,
    wal: Weak<Wal>,
    /// Whether the next checkpoint is to be quick to open: it may be the last.
    is_closing: Arc<AtomicBool>,
}

impl Checkpoints for Open {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        if let Some(number) = self.log.unchanged_since() {
            return Ok(number);
        }
        let cut = match self.is_closing.load(Ordering::Relaxed) {
            true => Cut::Full,
            false => Cut::Incremental,
        };
        let refused = |cause: HashEngineError| LogError::Contents { why: cause.to_string() };
        let Some(wal) = self.wal.upgrade() else {
            return Err(LogError::Contents { why: "the log is being closed".to_owned() });
        };
        let moment = wal.apart(|| self.log.snapshot())?.map_err(refused)?;
        match moment.checkpoint(cut) {
            // Another thread has written one of a later moment.
            Err(HashEngineError::Argument(_)) => {
                let newest = self.log.checkpoints().map_err(refused)?;
                Ok(newest.last().map_or(0, |info| info.number))
            }
            done => done.map(|info| info.number).map_err(refused),
        }
    }
}

/// A table that nothing changes before it is opened: this is its newest checkpoint.
#[derive(Debug)]
struct Closed(u64);

impl Checkpoints for Closed {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        Ok(self.0)
    }
}

/// A table that cannot be opened, of which the log has changes.
#[derive(Debug)]
struct Unrecovered(String);

impl Checkpoints for Unrecovered {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        Err(LogError::Contents { why: self.0.clone() })
    }
}

/// What the log has of hash tables.
impl DbLog {
    /// Notes a table that is made, before anything is told of it.
    pub(crate) fn create_hash(&self, name: &str) -> Result<TableId> {
        let id = self.wal.reserve();
        let description = Description::Hash.encode();
        let contents = Contents::Checkpoints(Arc::new(Closed(0)));
        let made = self.wal.create_table(id, name, description.as_bytes(), contents);
        made.map(|()| id).map_err(|cause| self.named(cause))
    }

    /// Lets a table that is open tell its changes.
    pub(crate) fn open_hash(self: &Arc<DbLog>, id: TableId, log: HashLog) -> (Arc<HashLog>, Kept) {
        let log = Arc::new(match self.is_logged {
            true => log.with_journal(self.wal.journal(id)),
            false => log,
        });
        let open = Open {
            log: Arc::clone(&log),
            wal: Arc::downgrade(&self.wal),
            is_closing: Arc::clone(&self.is_closing),
        };
        self.wal.adopt(id, Contents::Checkpoints(Arc::new(open)));
        (log, Kept::logged(self, id))
    }

    /// Lets go of a table, which has a checkpoint of all that was told.
    ///
    /// # Errors
    /// [`Error::Log`](crate::Error::Log) among changes that go together, while a checkpoint is written.
    pub(crate) fn close_hash(&self, id: TableId, newest: u64) -> Result<()> {
        let closed = self.wal.replace(id, Contents::Checkpoints(Arc::new(Closed(newest))));
        closed.map_err(|cause| self.named(cause))
    }

    /// Keeps what the log has of a table, as long as it cannot be opened.
    pub(crate) fn keep_hash(&self, id: TableId, name: &str, why: &str) {
        let why = format!("table `{name}` cannot be opened: {why}");
        self.wal.adopt(id, Contents::Checkpoints(Arc::new(Unrecovered(why))));
    }

    /// Lets go of a table that is to be dropped, and keeps what the log has of it until then.
    ///
    /// # Errors
    /// As of [`close_hash`](Self::close_hash).
    pub(crate) fn suspend_hash(&self, id: TableId, name: &str) -> Result<()> {
        let why = format!("table `{name}` is dropped, and its files are not gone");
        let unsaved = Contents::Checkpoints(Arc::new(Unrecovered(why)));
        self.wal.replace(id, unsaved).map_err(|cause| self.named(cause))
    }

    pub(crate) fn drop_hash(&self, id: TableId) -> Result<()> {
        self.wal.drop_table(id).map_err(|cause| self.named(cause))
    }
}
