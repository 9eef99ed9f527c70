//! Appends what tables tell to the log, in one order, and remembers the first failure.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sapwood_disk::log::{Log, Lsn};
use sapwood_engine::{Effect, Journal};

use crate::error::{Error, Result};
use crate::frame::{Frame, TableId};

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The log, and why it takes no more changes, if it does not.
#[derive(Debug)]
pub(crate) struct Appender {
    pub(crate) log: Arc<Log>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The first append that failed. None comes behind it: a gap would make what lasts no prefix of
    /// what happened.
    failed: Option<Error>,
    /// The record that is made up.
    record: Vec<u8>,
}

/// Bytes of the longest record whose memory is kept for the next.
const RECORD_KEPT: usize = 64 << 10;

impl Appender {
    pub(crate) fn new(log: Log) -> Arc<Appender> {
        Arc::new(Appender { log: Arc::new(log), state: Mutex::default() })
    }

    /// # Errors
    /// Those of the first append, or sync, that failed.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(failed) = &lock(&self.state).failed {
            return Err(failed.clone());
        }
        match self.log.failed_sync() {
            Some(cause) => Err(Error::io("sync the log", &cause)),
            None => Ok(()),
        }
    }

    /// Appends a frame; the position behind it.
    pub(crate) fn append(&self, frame: &Frame<'_>) -> Result<Lsn> {
        let mut state = lock(&self.state);
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
        let mut record = std::mem::take(&mut state.record);
        record.clear();
        frame.encode(&mut record);
        let appended = self.log.append(&record).map_err(|cause: io::Error| {
            let error = Error::io("append to the log", &cause);
            state.failed = Some(error.clone());
            error
        });
        if record.capacity() <= RECORD_KEPT {
            state.record = record;
        }
        appended
    }
}

/// What one table tells.
#[derive(Debug)]
pub(crate) struct TableJournal {
    pub(crate) table: TableId,
    pub(crate) appender: Arc<Appender>,
}

impl Journal for TableJournal {
    fn log(&self, key: &[u8], effect: Effect<'_>) {
        // The appender knows of a failure, and the caller of the table asks.
        let _failed = self.appender.append(&Frame::Change { table: self.table, key, effect });
    }
}
