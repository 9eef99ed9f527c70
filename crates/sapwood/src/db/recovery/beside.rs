//! Opening a directory to read it, while a writer may be beside.
//!
//! The log tells of all tables at one moment, the end that it has once all else is open ([`View`]). What engines
//! write beside the log is opened before that: the heap of tree tables is copied, segments of roll-ups are mapped,
//! files of hash tables are held open, so that a table is opened when it is first asked for, as it was. A table that was
//! made meanwhile is all in the log: where it has a checkpoint of its own already, or has ended again, the reader was
//! outrun, and begins anew. So it does where a file has gone before it was opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use sapwood_disk::Disk;
use sapwood_disk::log::Lsn;
use sapwood_hashlog::HashLog;
use sapwood_wal::{TableId, View};

use super::LoggedTables;
use super::replay::RollupTarget;
use crate::db_log::Description;
use crate::directory::Directory;
use crate::{DbOptions, Error, Result};

/// How often an opening begins anew, at most.
const ATTEMPTS: usize = 50;

/// The tables of a directory that is open to be read, and up to where the log has told of them, if there is one.
pub(crate) fn view(
    directory: &Arc<Directory>,
    options: &DbOptions,
) -> Result<(LoggedTables, Option<Lsn>)> {
    let mut last = Error::Outrun { path: directory.path().to_owned() };
    for _ in 0..ATTEMPTS {
        let names = if directory.is_beside_writer() { directory.names() } else { Vec::new() };
        directory.hold_no_table();
        match super::view(directory, options) {
            Ok(Some(viewed)) => return Ok(viewed),
            Ok(None) => {}
            // No name has changed meanwhile: no writer has made a file go.
            Err(error) if !directory.is_beside_writer() || directory.names() == names => {
                return Err(error);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Holds the files of all hash tables of a directory without a log.
pub(crate) fn hold_listed(directory: &Directory) -> Result<()> {
    for name in directory.listed_tables()? {
        if let Some(files) = directory.files_of_table(&name)? {
            directory.hold_table(&name, files);
        }
    }
    Ok(())
}

/// What was opened of tables before the end of the log was looked for.
pub(crate) struct Beside {
    /// The files of hash tables; none of one that is being dropped.
    hash: BTreeMap<TableId, Option<Arc<dyn Disk>>>,
    rollups: BTreeMap<TableId, Arc<RollupTarget>>,
    /// Tables that were made later.
    late: Vec<TableId>,
    is_outrun: bool,
}

impl Beside {
    /// Opens what engines have of the tables that there are by now.
    pub(crate) fn open(directory: &Directory, view: &View<'_>) -> Result<Beside> {
        let mut beside = Beside {
            hash: BTreeMap::new(),
            rollups: BTreeMap::new(),
            late: Vec::new(),
            is_outrun: false,
        };
        for (id, name, description) in view.tables() {
            match Description::decode(description) {
                Ok(Description::Hash) => {
                    beside.hash.insert(id, directory.files_of_table(name)?);
                }
                Ok(Description::Rollup { name, schema }) => {
                    let sealed = view.checkpoint_of(id);
                    let opened = RollupTarget::open(directory, id, (&name, &schema), sealed)?;
                    beside.rollups.insert(id, opened);
                }
                // What cannot be read is refused when it is told.
                Ok(Description::Ordered(_) | Description::Trees) | Err(_) => {}
            }
        }
        Ok(beside)
    }

    /// Lets a hash table that is told have its files.
    pub(crate) fn hold_hash(
        &mut self,
        directory: &Directory,
        id: TableId,
        name: &str,
    ) -> Result<()> {
        let files = match self.hash.remove(&id) {
            Some(files) => files,
            None => {
                self.late.push(id);
                let files = directory.files_of_table(name)?;
                self.is_outrun |= match &files {
                    Some(files) => has_checkpoint(files, name)?,
                    None => true,
                };
                files
            }
        };
        if let Some(files) = files {
            directory.hold_table(name, files);
        }
        Ok(())
    }

    /// A roll-up table that is told.
    pub(crate) fn rollup(
        &mut self,
        directory: &Directory,
        id: TableId,
        described: (&str, &str),
        sealed: Option<u64>,
    ) -> Result<Arc<RollupTarget>> {
        if let Some(opened) = self.rollups.remove(&id) {
            return Ok(opened);
        }
        self.late.push(id);
        let opened = RollupTarget::open(directory, id, described, sealed)?;
        self.is_outrun |= opened.sealed_batches() > 0;
        Ok(opened)
    }

    /// Whether a table was made since.
    pub(crate) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Whether a table that was made late may have been opened as of another moment than all others.
    pub(crate) fn is_outrun(&self, view: &View<'_>) -> sapwood_wal::Result<bool> {
        if self.is_outrun || self.late.is_empty() {
            return Ok(self.is_outrun);
        }
        let ended = view.ended_since()?;
        Ok(self.late.iter().any(|id| ended.contains(id)))
    }
}

fn has_checkpoint(files: &Arc<dyn Disk>, name: &str) -> Result<bool> {
    let stored = HashLog::stored(files);
    let stored = stored.map_err(|cause| Error::HashEngine { table: name.into(), cause })?;
    Ok(!stored.is_empty())
}
