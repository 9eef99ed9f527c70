//! Roll-up tables of a damaged directory: copies of their segments and batches.

use std::cell::RefCell;
use std::sync::Arc;

use sapwood_wal::TableId;

use super::super::Problem;
use super::Saving;
use crate::rollup::{self, Schema, Writer};
use crate::rollup_table::named;
use crate::{Result, RollupTable, RollupTableOptions};

/// A roll-up table of the new directory, and what brings it batches of the log.
pub(super) struct SavedRollup {
    table: RollupTable,
    writer: Writer,
}

impl Saving {
    /// Makes a roll-up table, with the segments that can be read. The log had so many batches in segments when it had
    /// a checkpoint last.
    pub(super) fn create_rollup(
        &mut self,
        id: TableId,
        name: &str,
        schema: &str,
        sealed: u64,
    ) -> Result<()> {
        let path = self.from.rollup_path(id);
        let schema = match Schema::from_json(schema) {
            Ok(schema) => schema,
            Err(error) => {
                let what =
                    format!("nothing of it is copied, since its schema cannot be read: {error}");
                self.problem(Problem::new(&path, what).of_table(name));
                return Ok(());
            }
        };
        let from = match self.from.rollup_disk(id, sealed) {
            Ok(disk) => disk,
            Err(error) => {
                let what = format!("{error}; what of it the log has is copied");
                self.problem(Problem::new(&path, what).of_table(name));
                None
            }
        };
        let found = RefCell::new(Vec::new());
        let table = self.create_free(id, name, |db, name| {
            db.create_rollup_of(name, RollupTableOptions::new(schema.clone()), |new| {
                let Some(from) = &from else { return Ok(()) };
                let copied = sapwood_rollup::salvage(&schema, &**from, sealed, Arc::clone(new));
                found.replace(named(&name.into(), copied)?);
                Ok(())
            })
        })?;
        let found = found.into_inner();
        let found = found.iter().map(|error| Problem::of_rollup(&path, name, error));
        self.salvage.problems.extend(found);
        let writer = Writer::new(table.rollup());
        self.rollups.insert(id, SavedRollup { table, writer });
        Ok(())
    }

    /// Takes a batch of the log again, unless a segment has it.
    pub(super) fn redo(&mut self, table: TableId, record: &[u8]) -> Result<()> {
        let Some(SavedRollup { table, writer }) = self.rollups.get_mut(&table) else {
            return Ok(());
        };
        let name: Arc<str> = table.name().into();
        match writer.redo(record) {
            Err(error @ rollup::Error::Corrupt { .. }) => {
                let what = format!("rows of a batch are not copied: {error}");
                self.problem(Problem::new(&self.from.log_path(), what).of_table(&name));
                Ok(())
            }
            done => named(&name, done),
        }
    }
}
