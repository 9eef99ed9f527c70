//! Hash tables in the log: their engine writes their checkpoints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

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

/// A table that is being dropped, whose newest checkpoint lacks changes that the log has.
#[derive(Debug, Default)]
struct Dropping {
    /// Once it has ended: why the table is still there, if it is.
    ended: Mutex<Option<Option<String>>>,
    has_ended: Condvar,
}

impl Checkpoints for Dropping {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = self.has_ended.wait_while(ended, |ended| ended.is_none());
        match ended.unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Option::as_ref) {
            // It is gone, and the log says so behind the position of any checkpoint that waited.
            None => Ok(0),
            Some(why) => Err(LogError::Contents { why: why.clone() }),
        }
    }
}

/// The drop of a table that is under way.
#[derive(Debug)]
pub(crate) struct DropOfHash(Arc<Dropping>);

impl DropOfHash {
    /// The table is gone.
    pub(crate) fn done(self) {
        self.end(None);
    }

    /// The table is there, and the log keeps what it has of it.
    pub(crate) fn failed(self, why: String) {
        self.end(Some(why));
    }

    fn end(&self, why: Option<String>) {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.0.has_ended.notify_all();
    }
}

impl Drop for DropOfHash {
    /// After a panic: nothing is known to be gone.
    fn drop(&mut self) {
        self.end(Some("the drop of a table ended half way".to_owned()));
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
        self.expect_no_load()?;
        let closed = self.wal.replace(id, Contents::Checkpoints(Arc::new(Closed(newest))));
        closed.map_err(|cause| self.named(cause))
    }

    /// Keeps what the log has of a table, as long as it cannot be opened.
    pub(crate) fn keep_hash(&self, id: TableId, name: &str, why: &str) {
        let why = format!("table `{name}` cannot be opened: {why}");
        self.wal.adopt(id, Contents::Checkpoints(Arc::new(Unrecovered(why))));
    }

    /// Lets go of a table that is being dropped, and keeps what the log has of it until the answer is told how that
    /// ended: checkpoints wait meanwhile.
    ///
    /// # Errors
    /// As of [`close_hash`](Self::close_hash).
    pub(crate) fn begin_drop_of_hash(&self, id: TableId) -> Result<DropOfHash> {
        let drop = Arc::new(Dropping::default());
        let contents = Contents::Checkpoints(Arc::clone(&drop) as Arc<dyn Checkpoints>);
        self.expect_no_load()?;
        self.wal.replace(id, contents).map_err(|cause| self.named(cause))?;
        Ok(DropOfHash(drop))
    }

    pub(crate) fn drop_hash(&self, id: TableId) -> Result<()> {
        self.wal.drop_table(id).map_err(|cause| self.named(cause))
    }
}
