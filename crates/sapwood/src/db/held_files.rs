//! The files of a database while none that counts may go away.

use std::sync::{PoisonError, RwLockWriteGuard};

use super::{Db, Shared, Slot};
use crate::directory::Directory;
use crate::{Engine, Error, HashTable, Result, RollupTable};

impl Db {
    /// Takes a checkpoint, then runs something while no other is taken and no table is dropped: all
    /// changes that were made before last in the files. No table is made, either, as long as `work` holds what it
    /// is given.
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory; those of [`Db::checkpoint`].
    pub(crate) fn hold_files<R>(
        &self,
        work: impl FnOnce(&Directory, TableSetHeld<'_>) -> R,
    ) -> Result<R> {
        let Shared { removals, table_set, home, .. } = &*self.shared;
        let (Some(log), Some(directory)) = (&home.log, &home.directory) else {
            return Err(Error::NoDirectory);
        };
        self.checkpoint()?;
        let _no_file_goes = removals.write().unwrap_or_else(PoisonError::into_inner);
        let no_table_comes = table_set.write().unwrap_or_else(PoisonError::into_inner);
        let is_hash = |name: &String| self.engine(name) == Some(Engine::Hash);
        let names = self.stored_names().into_iter().filter(is_hash);
        // A handle keeps its table from going back to a checkpoint, too.
        let tables = names.map(|name| self.hash_table(&name)).collect::<Result<Vec<_>>>()?;
        // In the order in which a checkpoint of the log takes them.
        log.expect_no_load()?;
        let _no_checkpoint = log.wal().hold_files();
        let _nor_of_tables: Vec<_> =
            tables.iter().map(HashTable::log).map(|log| log.hold_files()).collect();
        let rollups: Vec<RollupTable> = self
            .slots()
            .values()
            .filter_map(|slot| match slot {
                Slot::Rollup(table) => Some(table.clone()),
                _ => None,
            })
            .collect();
        let _nor_of_rollups: Vec<_> = rollups.iter().map(RollupTable::hold_files).collect();
        let pool = self.home().opened_pool();
        let _nor_of_trees = pool.map(|pool| pool.hold_files());
        log.sync()?;
        pool.map_or(Ok(()), |pool| pool.sync().map_err(Error::trees))?;
        Ok(work(directory, TableSetHeld(no_table_comes)))
    }
}

/// The tables that there are stay the same as long as this lives.
pub(crate) struct TableSetHeld<'a>(
    #[expect(dead_code, reason = "it is held")] RwLockWriteGuard<'a, ()>,
);
