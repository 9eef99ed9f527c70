//! What a table does around a change, so that the change lasts as long as its user wants.

use std::sync::{Arc, OnceLock};

use sapwood_engine::Refused;
use sapwood_occ::{Shared, Versions};
use sapwood_wal::TableId;

use super::DbLog;
use crate::directory::Directory;
use crate::key_versions::KeyVersions;
use crate::{Durability, Error, LogError, Result};

/// What a table does around a change: where it is kept, and what transactions are to know of it.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) place: Place,
    pub(crate) keys: KeyVersions,
    /// The name that the table had until it was dropped.
    dropped: Arc<OnceLock<Arc<str>>>,
}

/// Where changes of a table are kept.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In memory alone.
    Memory,
    /// In the log, under this number.
    Logged { log: Arc<DbLog>, id: TableId },
    /// Nowhere: the table is open to be read.
    ReadOnly(Arc<Directory>),
}

impl Kept {
    pub(crate) fn in_memory(versions: &Arc<Versions>) -> Kept {
        Kept::at(Place::Memory, versions)
    }

    pub(crate) fn logged(log: &Arc<DbLog>, id: TableId) -> Kept {
        Kept::at(Place::Logged { log: Arc::clone(log), id }, log.directory.versions())
    }

    pub(crate) fn read_only(directory: &Arc<Directory>) -> Kept {
        Kept::at(Place::ReadOnly(Arc::clone(directory)), directory.versions())
    }

    fn at(place: Place, versions: &Arc<Versions>) -> Kept {
        Kept { place, keys: KeyVersions::new(versions), dropped: Arc::default() }
    }

    /// Whether changes are kept in memory alone.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.place, Place::Memory)
    }

    /// Runs a change if it can be kept, and waits until it is as the durability wants. `shared` is held
    /// while it is made.
    #[inline]
    pub(crate) fn change<R>(
        &self,
        shared: Shared<'_>,
        durability: Option<Durability>,
        change: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if matches!(self.place, Place::Memory) {
            return change();
        }
        self.expect_changes()?;
        // Of a batch that stopped some changes are made, too.
        let done = change();
        // Transactions need not wait for the disk.
        drop(shared);
        let settled = self.settle(durability);
        done.and_then(|done| settled.map(|()| done))
    }

    /// The same of a change that no transaction has to know of.
    #[cfg(feature = "rollup")]
    pub(crate) fn keep<R>(&self, change: impl FnOnce() -> Result<R>) -> Result<R> {
        if matches!(self.place, Place::Memory) {
            return change();
        }
        self.expect_changes()?;
        let done = change()?;
        self.settle(None).map(|()| done)
    }

    /// Refuses where a change could not be kept.
    pub(crate) fn expect_changes(&self) -> Result<()> {
        match &self.place {
            Place::Memory => Ok(()),
            Place::Logged { log, .. } => log.check(),
            Place::ReadOnly(directory) => directory.expect_writable(),
        }
    }

    /// Refuses a table that was dropped.
    pub(crate) fn expect_there(&self) -> Result<()> {
        match self.dropped.get() {
            Some(name) => Err(Error::TableDropped { table: Arc::clone(name) }),
            None => Ok(()),
        }
    }

    /// Notes that the table was dropped, for transactions that have changed it.
    pub(crate) fn note_dropped(&self, name: &str) {
        self.dropped.get_or_init(|| name.into());
    }

    /// The error of a change for which the log had no room.
    #[cold]
    pub(crate) fn refused(&self, refused: Refused) -> Error {
        let Place::Logged { log, .. } = &self.place else {
            unreachable!("a table without a log has no journal")
        };
        let Refused { kind, why } = refused;
        log.check().map_or_else(|cause| cause, |()| log.named(LogError::NoRoom { kind, why }))
    }

    /// Takes a moment at which no changes that go together are made by half.
    pub(crate) fn apart<R>(&self, take: impl FnOnce() -> R) -> Result<R> {
        match &self.place {
            Place::Logged { log, .. } => log.wal.apart(take).map_err(|cause| log.named(cause)),
            Place::Memory | Place::ReadOnly(_) => Ok(take()),
        }
    }

    /// The position behind all changes so far, for [`note_saved`](Self::note_saved).
    pub(crate) fn position(&self) -> u64 {
        match &self.place {
            Place::Logged { log, .. } => log.wal.position(),
            Place::Memory | Place::ReadOnly(_) => 0,
        }
    }

    /// Notes that a checkpoint of the table's engine has all changes before a position.
    pub(crate) fn note_saved(&self, before: u64) -> Result<()> {
        match &self.place {
            Place::Logged { log, id } => {
                log.wal.note_saved(*id, before).map_err(|cause| log.named(cause))
            }
            Place::Memory | Place::ReadOnly(_) => Ok(()),
        }
    }

    /// Takes the table out of the log, if it is in it.
    pub(crate) fn drop_table(&self) -> Result<()> {
        self.expect_changes()?;
        match &self.place {
            Place::Logged { log, id } => log.wal.drop_table(*id).map_err(|cause| log.named(cause)),
            Place::Memory | Place::ReadOnly(_) => Ok(()),
        }
    }

    fn settle(&self, durability: Option<Durability>) -> Result<()> {
        let Place::Logged { log, .. } = &self.place else { return Ok(()) };
        let durability = durability.unwrap_or(log.wal.durability());
        log.wal.settle_as(durability).map_err(|cause| log.named(cause))
    }
}
