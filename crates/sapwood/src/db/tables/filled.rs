//! Tables that are there with all their rows, or not at all.
//!
//! ```text
//! schema, marked as unfinished ── table ── rows ── schema: from here on the table is there
//! ```
//!
//! The log has each step behind the one before, so that a reader, and the next process, has all rows where it has the
//! last step. A table that is found unfinished has no name for readers, and ends when the directory is opened to be
//! written. In the process that fills it no name leads to it before.

use super::schemas::{self, Lasting};
use crate::db::{Db, Slot, Slots, check_new_name};
use crate::schema::Schema;
use crate::{AnyTable, Engine, HashTableOptions, OrderedTableOptions, Result, TreeTableOptions};

impl Db {
    /// Makes a table with the rows that `fill` puts into it: it is there once that has answered true. Where it answers
    /// false, or the process ends before, it never was.
    ///
    /// # Errors
    /// Errors of the method that makes a table of the engine.
    pub(crate) fn create_filled(
        &self,
        name: &str,
        schema: &Schema,
        engine: Engine,
        fill: impl FnOnce(AnyTable) -> bool,
    ) -> Result<()> {
        check_new_name(name)?;
        // Until it is there, or is gone.
        let _name = self.shared.schemas.hold(name);
        Self::expect_free(&self.slots(), name)?;
        let slot = self.create_unfinished(name, schema, engine)?;
        let made = Unfinished { db: self, name, slot: Some(slot) };
        match made.slot.as_ref().and_then(Slot::to_table).is_some_and(fill) {
            true => self.finish(schema, made),
            false => Ok(()),
        }
    }

    /// Makes a table without rows that has no name.
    fn create_unfinished(&self, name: &str, schema: &Schema, engine: Engine) -> Result<Slot> {
        let formats = Some(self.note_unfinished(name, schema)?);
        let _set = self.change_table_set();
        let mut unnamed = Slots::new();
        match engine {
            Engine::Ordered => {
                let options = OrderedTableOptions::default().schema(schema.clone());
                self.create_ordered(&mut unnamed, name, options, formats)?;
            }
            Engine::Hash => {
                let options = HashTableOptions::default().schema(schema.clone());
                self.create_hash(&mut unnamed, name, &options, formats)?;
            }
            Engine::Tree => {
                let options = TreeTableOptions::default().schema(schema.clone());
                let table = self.make_tree(name, &options, formats)?;
                unnamed.insert(name.into(), Slot::Tree(table));
            }
            Engine::Rollup => return Err(schemas::refused(name, "a roll-up has facts, no rows")),
        }
        let (_, slot) = unnamed.pop_first().expect("a table was made");
        Ok(slot)
    }

    /// Lets a table be there that has all its rows.
    fn finish(&self, schema: &Schema, mut made: Unfinished<'_>) -> Result<()> {
        if self.home().log.as_ref().is_some_and(|log| !log.is_logged()) {
            // The rows must last before the schema says so.
            self.checkpoint()?;
        }
        // A backup has the table that its copy of the log knows.
        let _set = self.change_table_set();
        self.store_schema(made.name, schema, Lasting::Directory)?;
        self.slots_mut().extend(made.slot.take().map(|slot| (made.name.into(), slot)));
        Ok(())
    }
}

/// A table that has not all its rows. Dropped, it ends.
struct Unfinished<'a> {
    db: &'a Db,
    name: &'a str,
    slot: Option<Slot>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.db.end_unfinished(self.name, &slot);
        }
    }
}

impl Slot {
    /// The table, if it is one of keys and open.
    fn to_table(&self) -> Option<AnyTable> {
        match self {
            Slot::Ordered(table) => Some(table.clone().into()),
            Slot::Tree(table) => Some(table.clone().into()),
            Slot::Hash(slot) => slot.opened().map(AnyTable::from),
            Slot::Rollup(_) => None,
        }
    }
}
