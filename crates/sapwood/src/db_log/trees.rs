//! The pool of tree tables in the log: its commits go there, and its engine writes its checkpoints.

use std::sync::Arc;

use sapwood_disk::Disk;
use sapwood_ptree::{OpeningPool, Pool, PoolOptions};
use sapwood_wal::{Checkpoints, Contents, RECORDS, TableId};

use super::{DbLog, Description};
use crate::{Error, LogError, Result, TreeEngineError};

#[derive(Debug)]
struct Open(Pool);

impl Checkpoints for Open {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        let done = self.0.checkpoint();
        done.map_err(|cause| LogError::Contents { why: format!("tree tables: {cause}") })?;
        Ok(self.0.info().map_or(0, |info| info.generation))
    }
}

/// A pool that is being moved to the log, with nothing in it.
#[derive(Debug)]
struct Moving;

impl Checkpoints for Moving {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        Ok(0)
    }
}

fn contents(pool: &Pool) -> Contents {
    Contents::Checkpoints(Arc::new(Open(pool.clone())))
}

/// What the log has of tree tables.
impl DbLog {
    /// Makes a pool, whose files are there before the log knows it: one that the log does not know has no commit.
    pub(crate) fn create_pool(&self, disk: &dyn Disk, options: &PoolOptions) -> Result<Pool> {
        let id = self.wal.reserve();
        let pool = Pool::create_in_log(disk, options, self.wal.shared_log(id))
            .map_err(|cause| self.trees_refused(cause))?;
        self.note_pool(id, contents(&pool))?;
        Ok(pool)
    }

    /// Lets a pool that has a log of its own, as those of earlier versions, use this one. Where a crash came
    /// between the steps, the log knows it already.
    pub(crate) fn move_pool(
        &self,
        known: Option<TableId>,
        disk: &Arc<dyn Disk>,
        options: &PoolOptions,
    ) -> Result<TableId> {
        let id = known.unwrap_or_else(|| self.wal.reserve());
        let moving = Contents::Checkpoints(Arc::new(Moving));
        match known {
            Some(_) => self.wal.adopt(id, moving),
            None => self.note_pool(id, moving)?,
        }
        Pool::move_to_log(Arc::clone(disk), options.clone(), &*self.wal.shared_log(id))
            .map_err(|cause| self.trees_refused(cause))?;
        Ok(id)
    }

    /// Opens the pool, of which the log has told all.
    pub(crate) fn open_pool(&self, id: TableId, opening: OpeningPool) -> Result<Pool> {
        let pool =
            opening.finish(self.wal.shared_log(id)).map_err(|cause| self.trees_refused(cause))?;
        self.wal.adopt(id, contents(&pool));
        Ok(pool)
    }

    fn note_pool(&self, id: TableId, contents: Contents) -> Result<()> {
        let description = Description::Trees.encode();
        let made = self.wal.create_table(id, RECORDS, description.as_bytes(), contents);
        made.map_err(|cause| self.named(cause))
    }

    fn trees_refused(&self, cause: TreeEngineError) -> Error {
        Error::Trees { path: Some(self.directory.pool_path()), cause }
    }
}
