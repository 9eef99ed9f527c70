//! The schemas of a database's tables: noted when tables are made, found when they are opened.
//!
//! A database in a directory keeps them in a hash table of its own, which is made for the first schema: the key
//! is the name of a table, the value the text form of its schema. It is a table like others to
//! checkpoints, backups, checks and the log; programs neither make nor drop it. In memory there is none, since
//! tables have their schemas themselves.
//!
//! # Crashes
//!
//! A schema counts as that of a table only while the table exists. Making a table writes its schema before the table
//! comes into being, or removes one that is left of an earlier table of its name; dropping removes the table
//! first. The log has both steps in that order, a crash leaves a prefix of the log, and the folder of a hash
//! table has its options only after a sync of the log. So a crash between the steps leaves a schema without
//! a table, which is none, and never a table with the schema of another. A column that is added is synced
//! before a row can have it, since a checkpoint of the table may last without the log.
//!
//! Changes that go together ([`Db::together`]) are appended at their end, behind tables that are made meanwhile: in a
//! database with schemas no table is made among them.
//!
//! A database without a log of changes ([`DbOptions::without_log`](crate::DbOptions::without_log)) takes a
//! checkpoint of the schemas in place of the sync.
//!
//! # Locks
//!
//! The name of a table is held from before its schema is written until the table is there, and while it is
//! dropped or gets a column, so that two threads do not mix their steps. It is taken before all other locks.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use super::hash_slot::Opening;
use crate::db::{Db, Slot};
use crate::db_log::Place;
use crate::formats::Formats;
use crate::schema::{Error as Cause, Schema, Type};
use crate::{Cut, Error, HashTable, HashTableOptions, LogError, RecordLayout, Result, Rows};

/// The name of the table that has them. Stored: do not change.
pub(in crate::db) const TABLE: &str = "sapwood.schemas";

/// The text of a schema begins with it as long as its table has not all its rows; no schema does.
/// Stored: do not change.
const UNFINISHED: &str = "unfinished\n";

/// Bytes of a page of the table, into which a schema must fit: 16,384 columns of 60 bytes each.
const PAGE_BYTES: usize = 1 << 20;

/// How long a table is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::db) enum Lasting {
    /// As long as the process.
    Process,
    /// As the database is, in memory or in a directory.
    Directory,
}

/// The schemas of tables, by name.
#[derive(Debug, Default)]
pub(in crate::db) struct Schemas {
    /// Of tables, and such as are left of tables that were.
    known: RwLock<BTreeMap<Arc<str>, Known>>,
    /// Why those that are stored cannot be read.
    unreadable: Option<Error>,
    names: Names,
    /// Names of unfinished tables that could not be ended, and why: they are of no use.
    refused: Mutex<BTreeMap<String, Error>>,
}

/// A schema, or why its text is none.
type Known = std::result::Result<Arc<Formats>, Cause>;

/// Names whose tables are being made, dropped or changed.
#[derive(Debug, Default)]
struct Names {
    held: Mutex<BTreeSet<String>>,
    freed: Condvar,
}

/// A name that one thread holds.
pub(in crate::db) struct NameHeld<'a> {
    names: &'a Names,
    name: String,
}

impl Drop for NameHeld<'_> {
    fn drop(&mut self) {
        self.names.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        self.names.freed.notify_all();
    }
}

impl Schemas {
    /// Waits until no other thread makes, drops or changes the table of a name.
    pub(in crate::db) fn hold(&self, name: &str) -> NameHeld<'_> {
        let held = self.names.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.names.freed.wait_while(held, |held| held.contains(name));
        held.unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        NameHeld { names: &self.names, name: name.to_owned() }
    }

    /// Lets no table have a name as long as the process lives.
    pub(in crate::db) fn refuse_name(&self, name: &str, why: Error) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(name.to_owned(), why);
    }

    /// Refuses a name that no table may have. The name is held.
    pub(in crate::db) fn expect_usable(&self, name: &str) -> Result<()> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(name).map_or(Ok(()), |why| Err(why.clone()))
    }

    fn get(&self, name: &str) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Gives a hash table that was opened its schema.
    fn give(&self, table: &HashTable) {
        if let Some(Ok(formats)) = self.get(table.name()) {
            table.set_formats(formats);
        }
    }

    fn set(&self, name: &str, formats: Option<&Arc<Formats>>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match formats {
            Some(formats) => known.insert(name.into(), Ok(Arc::clone(formats))),
            None => known.remove(name),
        };
    }
}

impl Db {
    /// The typed columns of a table, if it was made with some. The table is not opened for it.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::Schema`] where a later version of Sapwood has written it; those of a hash
    /// table where the schemas of the directory cannot be read.
    ///
    /// ```
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let db = Db::open(path)?;
    /// let schema = "day:date, hits:u64, key(day)".parse().expect("a schema");
    /// db.create_ordered_table("days", OrderedTableOptions::default().schema(schema))?;
    /// db.close()?;
    ///
    /// let schema = Db::open_read_only(path)?.schema("days")?.expect("it was made with one");
    /// assert_eq!(schema.to_string(), "day:date, hits:u64, key(day)");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self, name: &str) -> Result<Option<Schema>> {
        let formats = self.formats_of(name)?;
        Ok(formats.map(|formats| formats.newest().schema().clone()))
    }

    /// The rows of a table that has a schema.
    ///
    /// # Errors
    /// [`Error::NoSchema`]; as of [`table`](Self::table) and [`schema`](Self::schema).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert_eq!(planes.table().len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn rows(&self, name: &str) -> Result<Rows> {
        let table = self.table(name)?;
        // It says why a schema that is stored is none.
        self.formats_of(name)?;
        Rows::new(table)
    }

    /// Adds a nullable column to a table: rows that are there have no value for it, and are not written again. All
    /// handles of the table have it at once, and it lasts once this returns.
    ///
    /// # Errors
    /// [`Error::NoSchema`]; [`Error::Schema`] for a name that is taken, a type that cannot be stored, or too many
    /// versions; [`Error::TableMissing`]; [`Error::ReadOnly`], [`Error::Log`] and [`Error::HashEngine`] where it
    /// cannot be kept.
    ///
    /// ```
    /// use sapwood::schema::{Type, Value};
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// let db = Db::in_memory();
    /// let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// db.add_column("planes", "year", Type::Int(16))?;
    /// assert_eq!(planes.get(&["N14228".into()])?.expect("it is there")[2], Value::Null);
    /// planes.put(&["N24211".into(), 149.into(), 1998.into()])?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add_column(&self, table: &str, name: &str, kind: Type) -> Result<()> {
        self.evolve(table, |schema| schema.with_column(name, kind))
    }

    /// Gives a column a wider type: one that has all values of the type before
    /// ([`Type::widens_to`]). Rows that are there are not written again. All handles of the table have it at
    /// once, and it lasts once this returns.
    ///
    /// # Errors
    /// [`Error::NoSchema`]; [`Error::Schema`] for a column that is not there or in the key, a type that is not wider, or too
    /// many versions; [`Error::TableMissing`]; [`Error::ReadOnly`], [`Error::Log`] and [`Error::HashEngine`] where it
    /// cannot be kept.
    ///
    /// ```
    /// use sapwood::schema::Type;
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// let db = Db::in_memory();
    /// let schema = "page:text, hits:i16, key(page)".parse().expect("a schema");
    /// db.create_ordered_table("pages", OrderedTableOptions::default().schema(schema))?;
    /// let pages = db.rows("pages")?;
    /// pages.put(&["/oaks".into(), 32_767.into()])?;
    /// assert!(pages.update_column(&["/oaks".into()], "hits", &32_768.into()).is_err());
    /// db.widen_column("pages", "hits", Type::Int(64))?;
    /// assert!(pages.update_column(&["/oaks".into()], "hits", &32_768.into())?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn widen_column(&self, table: &str, name: &str, kind: Type) -> Result<()> {
        self.evolve(table, |schema| schema.with_wider(name, kind))
    }

    /// Stores the next version of a schema, and then lets rows have it.
    fn evolve(
        &self,
        table: &str,
        next: impl FnOnce(&Schema) -> std::result::Result<Schema, crate::schema::Error>,
    ) -> Result<()> {
        let schemas = &self.shared.schemas;
        let _name = schemas.hold(table);
        let no_schema = || Error::NoSchema { table: table.into() };
        let formats = self.formats_of(table)?.ok_or_else(no_schema)?;
        if let Some(directory) = &self.home().directory
            && self.lasting(table) == Lasting::Directory
        {
            directory.expect_writable()?;
        }
        let next = next(formats.newest().schema());
        let next = next.map_err(|cause| Error::Schema { table: table.into(), cause })?;
        self.store_schema(table, &next, self.lasting(table))?;
        formats.widen(next);
        Ok(())
    }

    /// The formats of a table that is there.
    fn formats_of(&self, name: &str) -> Result<Option<Arc<Formats>>> {
        {
            let slots = self.slots();
            match slots.get(name) {
                None => return Err(Self::missing(&slots, name)),
                Some(Slot::Rollup(_)) => return Ok(None),
                Some(_) => {}
            }
        }
        let schemas = &self.shared.schemas;
        match (schemas.get(name), &schemas.unreadable) {
            (Some(known), _) => {
                known.map(Some).map_err(|cause| Error::Schema { table: name.into(), cause })
            }
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(None),
        }
    }

    /// How long a table is there.
    fn lasting(&self, name: &str) -> Lasting {
        match self.slots().get(name) {
            Some(Slot::Ordered(table)) if matches!(table.shared.kept.place, Place::Memory) => {
                Lasting::Process
            }
            _ => Lasting::Directory,
        }
    }

    /// Notes the schema of a table that is about to be made, or that it has none. The name is held.
    pub(in crate::db) fn note_schema(
        &self,
        name: &str,
        schema: Option<&Schema>,
        lasting: Lasting,
    ) -> Result<Option<Arc<Formats>>> {
        self.shared.schemas.expect_usable(name)?;
        match schema {
            Some(schema) => self.store_schema(name, schema, lasting)?,
            None if lasting == Lasting::Directory && self.home().log.is_some() => {
                if let Some(table) = self.schema_table()? {
                    self.expect_apart()?;
                    table.remove(name)?;
                    // Also where it was removed before: with the table, if that could not be made to last.
                    self.settle_schemas(&table)?;
                }
            }
            None => {}
        }
        let formats = schema.map(|schema| Arc::new(Formats::new(schema.clone())));
        self.shared.schemas.set(name, formats.as_ref());
        Ok(formats)
    }

    /// Ends a table that has not all its rows. Where that fails its name is of no use in this process.
    pub(in crate::db) fn end_unfinished(&self, name: &str, slot: &Slot) {
        match self.end_table(name, slot) {
            // Last, so that none is taken for finished.
            Ok(()) => self.forget_schema(name),
            Err(error) => self.shared.schemas.refuse_name(name, error),
        }
    }

    /// Ends the tables that an earlier process has not finished; of a directory that is read they have no name.
    pub(in crate::db) fn end_all_unfinished(&self, names: Vec<String>) {
        for name in names {
            let slot = self.slots_mut().remove(&*name);
            match slot {
                _ if self.is_read_only() => {}
                Some(slot) => self.end_unfinished(&name, &slot),
                None => self.forget_schema(&name),
            }
        }
    }

    /// Notes the schema of a table that is about to be made, and is not there before its schema is
    /// [stored](Self::store_schema). The name is held.
    #[cfg(feature = "sql")]
    pub(in crate::db) fn note_unfinished(
        &self,
        name: &str,
        schema: &Schema,
    ) -> Result<Arc<Formats>> {
        self.shared.schemas.expect_usable(name)?;
        self.store_text(name, format!("{UNFINISHED}{schema}"), Lasting::Directory)?;
        let formats = Arc::new(Formats::new(schema.clone()));
        self.shared.schemas.set(name, Some(&formats));
        Ok(formats)
    }

    /// Forgets the schema of a table that was dropped. The name is held.
    pub(in crate::db) fn forget_schema(&self, name: &str) {
        self.shared.schemas.set(name, None);
        if self.home().log.is_some()
            && let Ok(Some(table)) = self.schema_table()
        {
            // One that is left is the schema of no table.
            let _left = table.remove(name);
        }
    }

    /// Gives a hash table that was opened its schema.
    pub(in crate::db) fn give_schema(&self, table: &HashTable) {
        self.shared.schemas.give(table);
    }

    pub(in crate::db) fn store_schema(
        &self,
        name: &str,
        schema: &Schema,
        lasting: Lasting,
    ) -> Result<()> {
        self.store_text(name, schema.to_string(), lasting)
    }

    fn store_text(&self, name: &str, text: String, lasting: Lasting) -> Result<()> {
        if lasting == Lasting::Process || self.home().log.is_none() {
            return Ok(());
        }
        self.expect_apart()?;
        let table = self.schema_table_or_new()?;
        table.put(name, text)?;
        self.settle_schemas(&table)
    }

    /// Lets changes of the schemas last before what comes behind them.
    fn settle_schemas(&self, table: &HashTable) -> Result<()> {
        match &self.home().log {
            Some(log) if log.is_logged() => log.sync(),
            _ => table.checkpoint(Cut::Incremental).map(drop),
        }
    }

    /// Refuses among changes that go together, which have no order with tables.
    pub(crate) fn expect_apart(&self) -> Result<()> {
        match &self.home().log {
            Some(log) if log.wal().is_together() => {
                let what = "a database with schemas makes tables, and adds columns, before or after \
                            changes that go together";
                Err(log.named(LogError::Table(what.to_owned())))
            }
            _ => Ok(()),
        }
    }

    fn schema_table(&self) -> Result<Option<HashTable>> {
        if let Some(error) = &self.shared.schemas.unreadable {
            return Err(error.clone());
        }
        let is_there = self.slots().contains_key(TABLE);
        is_there.then(|| self.open_hash(TABLE, Opening::Newest)).transpose()
    }

    fn schema_table_or_new(&self) -> Result<HashTable> {
        if let Some(table) = self.schema_table()? {
            return Ok(table);
        }
        {
            let _set = self.change_table_set();
            let mut slots = self.slots_mut();
            // Another thread may have made it meanwhile.
            if !slots.contains_key(TABLE) {
                let options = HashTableOptions::default().page_bytes(PAGE_BYTES).compaction(None);
                return self.create_hash(&mut slots, TABLE, &options, None);
            }
        }
        self.open_hash(TABLE, Opening::Newest)
    }

    /// Reads the schemas of a directory, and gives them to the tables that are open; the names of tables that are not
    /// finished.
    pub(in crate::db) fn read_schemas(&mut self) -> Vec<String> {
        let mut unfinished = Vec::new();
        let mut read = || -> Result<BTreeMap<Arc<str>, Known>> {
            let mut known = BTreeMap::new();
            let Some(table) = self.schema_table()? else { return Ok(known) };
            let _all = table.for_each(|name, text| {
                let utf8 = || Cause::Schema("its text is not UTF-8".to_owned());
                let name = String::from_utf8_lossy(name);
                let text = match text.strip_prefix(UNFINISHED.as_bytes()) {
                    Some(text) => {
                        unfinished.push(name.to_string());
                        text
                    }
                    None => text,
                };
                let schema = std::str::from_utf8(text).map_err(|_| utf8());
                let schema = schema.and_then(str::parse::<Schema>);
                known.insert(name.as_ref().into(), schema.map(|it| Arc::new(Formats::new(it))));
                ControlFlow::<()>::Continue(())
            })?;
            Ok(known)
        };
        let schemas = match read() {
            Ok(known) => Schemas { known: RwLock::new(known), ..Schemas::default() },
            Err(error) => Schemas { unreadable: Some(error), ..Schemas::default() },
        };
        for (name, slot) in &*self.slots() {
            let Some(Ok(formats)) = schemas.get(name) else { continue };
            match slot {
                Slot::Ordered(table) => table.set_formats(formats),
                Slot::Tree(table) => table.set_formats(formats),
                Slot::Hash(slot) => slot.opened().iter().for_each(|table| schemas.give(table)),
                Slot::Rollup(_) => {}
            }
        }
        let shared = Arc::get_mut(&mut self.shared);
        shared.expect("the database is being opened").schemas = schemas;
        unfinished
    }
}

/// Refuses a schema of a table whose keys and values have 8 bytes each.
pub(in crate::db) fn expect_rows(
    table: &str,
    layout: RecordLayout,
    schema: Option<&Schema>,
) -> Result<()> {
    match (layout, schema) {
        (RecordLayout::Fixed8, Some(_)) => {
            Err(refused(table, "rows have no 8 bytes each: take `RecordLayout::Variable`"))
        }
        _ => Ok(()),
    }
}

/// A schema that a table cannot have.
pub(in crate::db) fn refused(table: &str, what: &str) -> Error {
    Error::Schema { table: table.into(), cause: Cause::Schema(what.to_owned()) }
}
