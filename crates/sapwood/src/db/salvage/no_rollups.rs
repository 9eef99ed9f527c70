//! Roll-up tables in a build without the feature `rollup`: they are reported, and not copied.

use std::convert::Infallible;

use sapwood_wal::TableId;

use super::super::Problem;
use super::Saving;
use crate::{Error, Result};

/// A roll-up table of the new directory: there is none.
pub(super) struct SavedRollup(Infallible);

impl Saving {
    pub(super) fn create_rollup(&mut self, id: TableId, name: &str, _: &str, _: u64) -> Result<()> {
        let refused = Error::Unsupported { table: name.into(), feature: "rollup" };
        let path = self.from.rollup_path(id);
        self.problem(Problem::new(&path, refused).of_table(name));
        Ok(())
    }

    pub(super) fn redo(&mut self, table: TableId, _: &[u8]) -> Result<()> {
        match self.rollups.get(&table) {
            Some(saved) => match saved.0 {},
            None => Ok(()),
        }
    }
}
