//! The files of a database while none that counts may go away.

use std::sync::PoisonError;

use super::Db;
use crate::{Engine, Error, HashTable, Result};

impl Db {
    /// Takes a checkpoint, then runs something while no other is taken and no table is made or dropped: all
    /// changes that were made before last in the files.
    pub(crate) fn hold_files<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        let Some(log) = &self.shared.log else { return Ok(work()) };
        self.checkpoint()?;
        let files = &self.shared.files;
        let _no_table_comes = files.write().unwrap_or_else(PoisonError::into_inner);
        let is_hash = |name: &String| self.engine(name) == Some(Engine::Hash);
        let names = self.table_names().into_iter().filter(is_hash);
        // A handle keeps its table from going back to a checkpoint, too.
        let tables = names.map(|name| self.hash_table(&name)).collect::<Result<Vec<_>>>()?;
        // In the order in which a checkpoint of the log takes them.
        let _no_checkpoint = log.wal().hold_files();
        let _nor_of_tables: Vec<_> =
            tables.iter().map(HashTable::log).map(|log| log.hold_files()).collect();
        let pool = self.shared.trees.opened();
        let _nor_of_trees = pool.map(|pool| pool.hold_files());
        log.sync()?;
        pool.map_or(Ok(()), |pool| pool.sync().map_err(Error::trees))?;
        Ok(work())
    }
}
