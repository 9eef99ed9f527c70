//! What a table does around a change, so that the change lasts as long as its user wants.

use std::sync::Arc;

use sapwood_wal::TableId;

use super::DbLog;
use crate::directory::Directory;
use crate::{Durability, Result};

/// Where changes of a table are kept.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    /// In memory alone.
    Memory,
    /// In the log, under this number.
    Logged { log: Arc<DbLog>, id: TableId },
    /// Nowhere: the table is open to be read.
    ReadOnly(Arc<Directory>),
}

impl Kept {
    /// Runs a change if it can be kept, and waits until it is as the durability wants.
    #[inline]
    pub(crate) fn change<R>(
        &self,
        durability: Option<Durability>,
        change: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if matches!(self, Kept::Memory) {
            return change();
        }
        self.expect_changes()?;
        // Of a batch that stopped some changes are made, too.
        let done = change();
        let settled = self.settle(durability);
        done.and_then(|done| settled.map(|()| done))
    }

    /// Refuses where a change could not be kept.
    fn expect_changes(&self) -> Result<()> {
        match self {
            Kept::Memory => Ok(()),
            Kept::Logged { log, .. } => log.check(),
            Kept::ReadOnly(directory) => directory.expect_writable(),
        }
    }

    /// Takes a moment at which no changes that go together are made by half.
    pub(crate) fn apart<R>(&self, take: impl FnOnce() -> R) -> Result<R> {
        match self {
            Kept::Logged { log, .. } => log.wal.apart(take).map_err(|cause| log.named(cause)),
            Kept::Memory | Kept::ReadOnly(_) => Ok(take()),
        }
    }

    /// The position behind all changes so far, for [`note_saved`](Self::note_saved).
    pub(crate) fn position(&self) -> u64 {
        match self {
            Kept::Logged { log, .. } => log.wal.position(),
            Kept::Memory | Kept::ReadOnly(_) => 0,
        }
    }

    /// Notes that a checkpoint of the table's engine has all changes before a position.
    pub(crate) fn note_saved(&self, before: u64) -> Result<()> {
        match self {
            Kept::Logged { log, id } => {
                log.wal.note_saved(*id, before).map_err(|cause| log.named(cause))
            }
            Kept::Memory | Kept::ReadOnly(_) => Ok(()),
        }
    }

    /// Takes the table out of the log, if it is in it.
    pub(crate) fn drop_table(&self) -> Result<()> {
        self.expect_changes()?;
        match self {
            Kept::Logged { log, id } => log.wal.drop_table(*id).map_err(|cause| log.named(cause)),
            Kept::Memory | Kept::ReadOnly(_) => Ok(()),
        }
    }

    fn settle(&self, durability: Option<Durability>) -> Result<()> {
        let Kept::Logged { log, .. } = self else { return Ok(()) };
        let durability = durability.unwrap_or(log.wal.durability());
        log.wal.settle_as(durability).map_err(|cause| log.named(cause))
    }
}
