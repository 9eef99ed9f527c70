//! Roll-up tables of a database: made, opened.

use std::sync::Arc;

use sapwood_disk::Disk;

use crate::db::{Db, Slot, Slots, check_name, check_new_name, other_engine};
use crate::db_log::Kept;
use crate::rollup::Rollup;
use crate::rollup_table::named;
use crate::{Error, Result, RollupTable, RollupTableOptions};

impl Db {
    /// Makes a roll-up table; refuses a name that is taken. Where the database has a directory, the table lasts.
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::TableExists`]; [`Error::Rollup`] if the schema's parts do not fit;
    /// [`Error::Directory`] where its folder cannot be made; [`Error::Log`]; [`Error::ReadOnly`].
    ///
    /// ```
    /// use sapwood::rollup::{Dimension, Metric, Schema};
    /// use sapwood::{Db, Engine, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// let db = Db::in_memory();
    /// db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// assert_eq!(db.engine("edits"), Some(Engine::Rollup));
    /// // It has no keys.
    /// assert!(db.table("edits").is_err());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn create_rollup_table(
        &self,
        name: &str,
        options: RollupTableOptions,
    ) -> Result<RollupTable> {
        check_new_name(name)?;
        let _name = self.shared.schemas.hold(name);
        self.shared.schemas.expect_usable(name)?;
        let _set = self.change_table_set();
        let mut slots = self.slots_mut();
        Self::expect_free(&slots, name)?;
        self.create_rollup(&mut slots, name, options, |_| Ok(()))
    }

    /// Makes a roll-up table that lasts, of what `fill` brings into its folder.
    pub(in crate::db) fn create_rollup_of(
        &self,
        name: &str,
        options: RollupTableOptions,
        fill: impl FnOnce(&Arc<dyn Disk>) -> Result<()>,
    ) -> Result<RollupTable> {
        check_name(name)?;
        let _set = self.change_table_set();
        let mut slots = self.slots_mut();
        Self::expect_free(&slots, name)?;
        self.create_rollup(&mut slots, name, options, fill)
    }

    /// Opens a roll-up table that is there.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::OtherEngine`] if it is of another kind.
    ///
    /// ```
    /// # use sapwood::{Db, Error, RollupTableOptions, rollup::Schema};
    /// # let db = Db::in_memory();
    /// db.create_rollup_table("edits", RollupTableOptions::new(Schema::new("time")))?;
    /// assert_eq!(db.rollup_table("edits")?.name(), "edits");
    /// assert!(matches!(db.rollup_table("others"), Err(Error::TableMissing { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn rollup_table(&self, name: &str) -> Result<RollupTable> {
        let slots = self.slots();
        match slots.get(name) {
            Some(slot) => rollup(name, slot),
            None => Err(Self::missing(&slots, name)),
        }
    }

    /// Opens a roll-up table, after making it with these options if it is not there. A table that is
    /// there keeps its own.
    ///
    /// # Errors
    /// [`Error::OtherEngine`] if it is of another kind; else as
    /// [`create_rollup_table`](Self::create_rollup_table).
    ///
    /// ```
    /// # use sapwood::{Db, RollupTableOptions, rollup::Schema};
    /// # let db = Db::in_memory();
    /// for _ in 0..2 {
    ///     let options = RollupTableOptions::new(Schema::new("time"));
    ///     db.open_or_create_rollup_table("edits", options)?;
    /// }
    /// assert_eq!(db.table_names(), ["edits"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_or_create_rollup_table(
        &self,
        name: &str,
        options: RollupTableOptions,
    ) -> Result<RollupTable> {
        check_new_name(name)?;
        let _name = self.shared.schemas.hold(name);
        self.shared.schemas.expect_usable(name)?;
        let _set = self.change_table_set();
        let mut slots = self.slots_mut();
        match slots.get(name) {
            Some(slot) => rollup(name, slot),
            None => self.create_rollup(&mut slots, name, options, |_| Ok(())),
        }
    }

    fn create_rollup(
        &self,
        slots: &mut Slots,
        name: &str,
        options: RollupTableOptions,
        fill: impl FnOnce(&Arc<dyn Disk>) -> Result<()>,
    ) -> Result<RollupTable> {
        let name: Arc<str> = name.into();
        let RollupTableOptions { schema } = options;
        let (rollup, kept, folder) = match (&self.home().log, &self.home().directory) {
            (Some(log), Some(directory)) => {
                let id = log.reserve_rollup();
                let disk = directory.make_rollup(id)?;
                let made = fill(&disk).and_then(|()| named(&name, Rollup::on_disk(schema, disk)));
                let rollup = made.inspect_err(|_| {
                    // Where it cannot go now, it goes when the directory is opened: the log does not know it.
                    let _left = directory.remove_rollup(id);
                })?;
                // Where the log fails, it may know the table all the same, and needs its folder then.
                let (rollup, kept) = log.create_rollup(id, &name, rollup)?;
                (rollup, kept, Some(directory.rollup_path(id)))
            }
            (None, Some(directory)) => {
                return Err(Error::ReadOnly { path: directory.path().to_owned() });
            }
            (_, None) => {
                let rollup = Arc::new(named(&name, Rollup::new(schema))?);
                (rollup, Kept::in_memory(&self.home().versions), None)
            }
        };
        let table = RollupTable::new(Arc::clone(&name), rollup, kept, folder);
        slots.insert(name, Slot::Rollup(table.clone()));
        Ok(table)
    }
}

fn rollup(name: &str, slot: &Slot) -> Result<RollupTable> {
    match slot {
        Slot::Rollup(table) => Ok(table.clone()),
        Slot::Ordered(_) | Slot::Hash(_) | Slot::Tree(_) => Err(other_engine(name, slot)),
    }
}
