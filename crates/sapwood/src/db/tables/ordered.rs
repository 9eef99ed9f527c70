//! Ordered tables of a database: made, opened.

use std::sync::Arc;

use sapwood_wal::TableId;

use super::schemas::Lasting;
use crate::db::{Db, Slot, Slots, check_name, check_new_name, other_engine};
use crate::db_log::{DbLog, Loading};
use crate::formats::Formats;
use crate::ordered_table::{Entries, Stored};
use crate::{Error, OrderedTable, OrderedTableOptions, Result};

/// A table that was made to be loaded.
pub(crate) struct ToLoad {
    pub(crate) table: OrderedTable,
    pub(crate) log: Arc<DbLog>,
    pub(crate) id: TableId,
    pub(crate) stored: Arc<Stored>,
    pub(crate) loading: Loading,
}

impl Db {
    /// Makes an ordered table; refuses a name that is taken. Where the database has a directory, the table
    /// lasts, unless its options say otherwise ([`OrderedTableOptions::volatile`]).
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::TableExists`]; [`Error::OrderedEngine`] for options that cannot
    /// work; [`Error::Log`]; [`Error::ReadOnly`]; as of [`add_column`](Self::add_column) where its schema
    /// cannot be kept.
    ///
    /// ```
    /// # use sapwood::Error;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let table = db.create_ordered_table("sessions", OrderedTableOptions::default())?;
    /// table.put(b"ada", b"online")?;
    /// let again = db.create_ordered_table("sessions", OrderedTableOptions::default());
    /// assert!(matches!(again, Err(Error::TableExists { .. })));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn create_ordered_table(
        &self,
        name: &str,
        options: OrderedTableOptions,
    ) -> Result<OrderedTable> {
        check_new_name(name)?;
        let _name = self.shared.schemas.hold(name);
        Self::expect_free(&self.slots(), name)?;
        self.create_ordered_named(name, options)
    }

    /// Makes a table that answers [`Error::Loading`] until its entries are [given](Stored::fill); `None` where a table
    /// cannot be loaded so: in memory, with a memory budget, and beside another load.
    pub(crate) fn create_to_load(
        &self,
        name: &str,
        options: &OrderedTableOptions,
    ) -> Result<Option<ToLoad>> {
        let (Some(log), Some(directory)) = (&self.home().log, &self.home().directory) else {
            return Ok(None);
        };
        self.expect_apart()?;
        if options.volatile || options.memory_budget.is_some() {
            return Ok(None);
        }
        let Some(loading) = log.begin_load() else { return Ok(None) };
        check_new_name(name)?;
        let _name = self.shared.schemas.hold(name);
        Self::expect_free(&self.slots(), name)?;
        let formats = self.note_schema(name, options.schema.as_ref(), Lasting::Directory)?;
        let mut slots = self.slots_mut();
        // A roll-up table may have come by it.
        Self::expect_free(&slots, name)?;
        let name: Arc<str> = name.into();
        let mut stored = None;
        let (id, entries, given, kept) = log.create_ordered(&name, options, |map| {
            let (table, path) = ((Arc::clone(&name), options.clone()), directory.log_path());
            let made = Arc::new(Stored::new(table, None, map, path, None));
            Entries::Stored(Arc::clone(stored.insert(made)))
        })?;
        let table =
            OrderedTable::with_entries(Arc::clone(&name), entries, options.clone(), given, kept);
        if let Some(formats) = formats {
            table.set_formats(formats);
        }
        slots.insert(name, Slot::Ordered(table.clone()));
        let stored = stored.expect("it was made with the table");
        Ok(Some(ToLoad { table, log: Arc::clone(log), id, stored, loading }))
    }

    /// Makes a table whose schema, if it has one, is copied as any other entry.
    pub(in crate::db) fn create_ordered_as_it_was(
        &self,
        name: &str,
        options: OrderedTableOptions,
    ) -> Result<OrderedTable> {
        check_name(name)?;
        let mut slots = self.slots_mut();
        Self::expect_free(&slots, name)?;
        self.create_ordered(&mut slots, name, options, None)
    }

    /// Opens an ordered table that is there.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::OtherEngine`] if it is a hash table.
    ///
    /// ```
    /// # use sapwood::Error;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_ordered_table("sessions", OrderedTableOptions::default())?;
    /// assert_eq!(db.ordered_table("sessions")?.name(), "sessions");
    /// assert!(matches!(db.ordered_table("others"), Err(Error::TableMissing { .. })));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ordered_table(&self, name: &str) -> Result<OrderedTable> {
        let slots = self.slots();
        match slots.get(name) {
            Some(slot) => ordered(name, slot),
            None => Err(Self::missing(&slots, name)),
        }
    }

    /// Opens an ordered table, after making it with these options if it is not there. A table
    /// that is there keeps its own.
    ///
    /// # Errors
    /// [`Error::OtherEngine`] if it is a hash table; [`Error::TableName`] and others as for [`create_ordered_table`](Self::create_ordered_table).
    ///
    /// ```
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// let db = Db::in_memory();
    /// let options = OrderedTableOptions::default().memory_budget(64 << 20);
    /// for _ in 0..2 {
    ///     let sessions = db.open_or_create_ordered_table("sessions", options.clone())?;
    ///     sessions.put_if_absent(b"ada", b"online")?;
    /// }
    /// assert_eq!(db.ordered_table("sessions")?.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_or_create_ordered_table(
        &self,
        name: &str,
        options: OrderedTableOptions,
    ) -> Result<OrderedTable> {
        let found = self.slots().get(name).map(|slot| ordered(name, slot)).transpose()?;
        if let Some(table) = found {
            return Ok(table);
        }
        check_new_name(name)?;
        let _name = self.shared.schemas.hold(name);
        // Another thread may have made it before the name was held.
        let found = self.slots().get(name).map(|slot| ordered(name, slot)).transpose()?;
        match found {
            Some(table) => Ok(table),
            None => self.create_ordered_named(name, options),
        }
    }

    /// Makes a table, and notes its schema. The name is held, and was free.
    fn create_ordered_named(
        &self,
        name: &str,
        options: OrderedTableOptions,
    ) -> Result<OrderedTable> {
        let lasting = if options.volatile { Lasting::Process } else { Lasting::Directory };
        let formats = self.note_schema(name, options.schema.as_ref(), lasting)?;
        let mut slots = self.slots_mut();
        // A roll-up table may have come by it.
        Self::expect_free(&slots, name)?;
        self.create_ordered(&mut slots, name, options, formats)
    }

    pub(in crate::db) fn create_ordered(
        &self,
        slots: &mut Slots,
        name: &str,
        options: OrderedTableOptions,
        formats: Option<Arc<Formats>>,
    ) -> Result<OrderedTable> {
        let name: Arc<str> = name.into();
        let table = match (&self.home().log, &self.home().directory) {
            (Some(log), _) if !options.volatile => {
                let (_, entries, formats, kept) =
                    log.create_ordered(&name, &options, Entries::Memory)?;
                OrderedTable::with_entries(Arc::clone(&name), entries, options, formats, kept)
            }
            (None, Some(directory)) if !options.volatile => {
                return Err(Error::ReadOnly { path: directory.path().to_owned() });
            }
            _ => OrderedTable::in_memory(Arc::clone(&name), options, &self.home().versions)?,
        };
        if let Some(formats) = formats {
            table.set_formats(formats);
        }
        slots.insert(name, Slot::Ordered(table.clone()));
        Ok(table)
    }
}

fn ordered(name: &str, slot: &Slot) -> Result<OrderedTable> {
    match slot {
        Slot::Ordered(table) => Ok(table.clone()),
        Slot::Hash(_) | Slot::Tree(_) | Slot::Rollup(_) => Err(other_engine(name, slot)),
    }
}
