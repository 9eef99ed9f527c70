//! Hash tables of a database: made, opened.

use std::sync::Arc;

use sapwood_hashlog::HashLog;

use super::hash_slot::{HashSlot, Opening};
use super::schemas::{self, Lasting};
use crate::db::{Db, Slot, Slots, check_name, check_new_name, is_reserved, other_engine};
use crate::db_log::Kept;
use crate::formats::Formats;
use crate::{Error, HashTable, HashTableOptions, Result, directory, stored_options};

impl Db {
    /// Makes a hash table; refuses a name that is taken. It lives in the database's directory if
    /// there is one, and else in memory.
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::TableExists`]; [`Error::HashEngine`] for options that cannot
    /// work; [`Error::Directory`], and [`Error::Fields`] for fields that cannot be kept there.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
    /// hits.add(b"/index.html", 1)?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn create_hash_table(&self, name: &str, options: HashTableOptions) -> Result<HashTable> {
        check_new_name(name)?;
        let _name = self.shared.schemas.hold(name);
        Self::expect_free(&self.slots(), name)?;
        self.create_hash_named(name, &options)
    }

    /// Makes a table whose schema, if it has one, is copied as any other entry.
    pub(in crate::db) fn create_hash_as_it_was(
        &self,
        name: &str,
        options: &HashTableOptions,
    ) -> Result<HashTable> {
        check_name(name)?;
        let _set = self.change_table_set();
        let mut slots = self.slots_mut();
        Self::expect_free(&slots, name)?;
        self.create_hash(&mut slots, name, options, None)
    }

    /// Makes a table, and notes its schema. The name is held, and was free.
    fn create_hash_named(&self, name: &str, options: &HashTableOptions) -> Result<HashTable> {
        schemas::expect_rows(name, options.layout, options.schema.as_ref())?;
        let formats = self.note_schema(name, options.schema.as_ref(), Lasting::Directory)?;
        let _set = self.change_table_set();
        let mut slots = self.slots_mut();
        // A roll-up table may have come by it.
        Self::expect_free(&slots, name)?;
        self.create_hash(&mut slots, name, options, formats)
    }

    /// Opens a hash table that is there: in a directory, for the first time, by recovering its
    /// newest complete checkpoint.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::OtherEngine`] if it is an ordered table;
    /// [`Error::Directory`], [`Error::StoredOptions`] and [`Error::HashEngine`] where its files
    /// cannot be read, or are damaged.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_hash_table("hits", HashTableOptions::default())?.add(b"/", 1)?;
    /// assert_eq!(db.hash_table("hits")?.get_counter(b"/")?, Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn hash_table(&self, name: &str) -> Result<HashTable> {
        self.open_hash(name, Opening::Newest)
    }

    /// The options of a hash table, which need not be open: those it was made with, or was given
    /// since. With a few of them changed, they are options for
    /// [`hash_table_with`](Self::hash_table_with).
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::OtherEngine`] if it is an ordered table;
    /// [`Error::Directory`] and [`Error::StoredOptions`] where its file cannot be read, or is
    /// damaged.
    ///
    /// ```
    /// use sapwood::{Db, HashTableOptions, RecordLayout};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let db = Db::open(path)?;
    /// let options = HashTableOptions::default().layout(RecordLayout::Fixed8);
    /// drop(db.create_hash_table("views", options)?);
    /// db.close()?;
    ///
    /// let reader = Db::open_read_only(path)?;
    /// let options = reader.hash_table_options("views")?.memory_budget(16 << 20);
    /// let views = reader.hash_table_with("views", options)?;
    /// assert_eq!(views.stats().budget_bytes, Some(16 << 20));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn hash_table_options(&self, name: &str) -> Result<HashTableOptions> {
        let (name, slot) = self.hash_slot(name)?;
        let options = slot.options(&name, self.home().directory.as_ref())?;
        // Another thread may have dropped it meanwhile.
        let mut options = options.ok_or_else(|| Self::missing(&self.slots(), &name))?;
        options.schema = self.schema(&name)?;
        Ok(options)
    }

    /// As [`hash_table`](Self::hash_table), and gives the table other options than those it was
    /// made with; layout, page size and schema cannot be others. Answers [`Error::TableInUse`] while
    /// handles of the table are in use.
    ///
    /// # Errors
    /// [`Error::TableInUse`]; [`Error::HashEngine`] for options that cannot work; else as
    /// [`hash_table`](Self::hash_table).
    ///
    /// ```
    /// use sapwood::{Db, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let options = HashTableOptions::default();
    /// drop(db.create_hash_table("hits", options.clone())?);
    /// let hits = db.hash_table_with("hits", options.memory_budget(64 << 20))?;
    /// assert_eq!(hits.stats().budget_bytes, Some(64 << 20));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn hash_table_with(&self, name: &str, options: HashTableOptions) -> Result<HashTable> {
        if options.schema.is_some() && options.schema != self.schema(name)? {
            let what = "it was made with another schema, and keeps it (`Db::add_column`)";
            return Err(schemas::refused(name, what));
        }
        self.open_hash(name, Opening::With(options))
    }

    /// Goes back: opens a hash table as its checkpoint `number` left it. Newer checkpoints are
    /// removed, and what was changed since is gone. Answers [`Error::TableInUse`] while handles of
    /// the table are in use; [`Db::checkpoints`] lists the numbers, also where the newest
    /// checkpoint is damaged and the table does not open. [`Db::hash_table_view`] looks before.
    ///
    /// # Errors
    /// [`Error::TableInUse`]; [`Error::CheckpointMissing`]; [`Error::NoDirectory`] in memory; else
    /// as [`hash_table`](Self::hash_table).
    ///
    /// ```
    /// use sapwood::{Cut, Db, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
    /// hits.add(b"/", 1)?;
    /// let first = hits.checkpoint(Cut::Full)?;
    /// hits.add(b"/", 1)?;
    /// hits.checkpoint(Cut::Incremental)?;
    /// drop(hits);
    /// let hits = db.hash_table_at("hits", first.number)?;
    /// assert_eq!(hits.get_counter(b"/")?, Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn hash_table_at(&self, name: &str, number: u64) -> Result<HashTable> {
        self.open_hash(name, Opening::At(number))
    }

    /// Opens a hash table, after making it with these options if it is not there. A table that is
    /// there keeps its own; [`hash_table_with`](Self::hash_table_with) gives it others.
    ///
    /// # Errors
    /// [`Error::OtherEngine`] if it is an ordered table; else as
    /// [`hash_table`](Self::hash_table) and [`create_hash_table`](Self::create_hash_table).
    ///
    /// ```
    /// use sapwood::{Db, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path().join("counters");
    /// for run in 1..=3 {
    ///     let db = Db::open(&path)?;
    ///     let options = HashTableOptions::default().memory_budget(64 << 20);
    ///     let runs = db.open_or_create_hash_table("runs", options)?;
    ///     assert_eq!(runs.add(b"this program", 1)?, run);
    ///     drop(runs);
    ///     db.close()?;
    /// }
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_or_create_hash_table(
        &self,
        name: &str,
        options: HashTableOptions,
    ) -> Result<HashTable> {
        if self.slots().get(name).is_none() {
            check_new_name(name)?;
            let _name = self.shared.schemas.hold(name);
            // Another thread may have made it before the name was held.
            let is_there = self.slots().contains_key(name);
            if !is_there {
                return self.create_hash_named(name, &options);
            }
        }
        self.hash_table(name)
    }

    /// The hash tables that are open, in the order of their names.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_hash_table("t", HashTableOptions::default())?;
    /// assert_eq!(db.open_hash_tables().iter().map(|table| table.name()).collect::<Vec<_>>(), ["t"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_hash_tables(&self) -> Vec<HashTable> {
        let slots = self.slots().clone();
        let slots = slots.into_iter().filter(|(name, _)| !is_reserved(name)).map(|(_, slot)| slot);
        let opened = slots.filter_map(|slot| match slot {
            Slot::Hash(slot) => slot.opened(),
            Slot::Ordered(_) | Slot::Tree(_) | Slot::Rollup(_) => None,
        });
        opened.collect()
    }

    pub(in crate::db) fn create_hash(
        &self,
        slots: &mut Slots,
        name: &str,
        options: &HashTableOptions,
        formats: Option<Arc<Formats>>,
    ) -> Result<HashTable> {
        let name: Arc<str> = name.into();
        let directory = self.home().directory.clone();
        let named = |cause| Error::HashEngine { table: Arc::clone(&name), cause };
        let fields = options.fields.clone();
        let log = match &directory {
            None => HashLog::in_memory(options.engine()).map_err(named)?,
            Some(directory) => {
                stored_options::check(&name, options)?;
                let folder = directory.make(&name)?;
                let mut engine = options.engine();
                engine.table_id = directory::new_table_id();
                let log = HashLog::open(Arc::clone(&folder.disk), engine);
                let log = log.map_err(named)?;
                if let Some(db_log) = &self.home().log {
                    // With its options the table is there: changes of others before that must last, too.
                    db_log.sync()?;
                }
                folder.write_options(options)?;
                log
            }
        };
        let (log, kept) = match &self.home().log {
            // A crash in between leaves a folder that the log does not know: opening puts it in.
            Some(db_log) => db_log.open_hash(db_log.create_hash(&name)?, log),
            None => (Arc::new(log), Kept::in_memory(&self.home().versions)),
        };
        let table = HashTable::new(Arc::clone(&name), log, fields, directory, kept);
        if let Some(formats) = formats {
            table.set_formats(formats);
        }
        slots.insert(name, Slot::Hash(HashSlot::open_already(table.clone())));
        Ok(table)
    }

    pub(in crate::db) fn open_hash(&self, name: &str, opening: Opening) -> Result<HashTable> {
        let slot = {
            let slots = self.slots();
            match slots.get_key_value(name) {
                Some((name, Slot::Hash(slot))) => Some((Arc::clone(name), Arc::clone(slot))),
                Some((_, slot)) => return Err(other_engine(name, slot)),
                None => None,
            }
        };
        // Without the lock on the names: recovery may take long.
        let table = match slot {
            Some((name, slot)) => slot.open(&name, opening, self.home().directory.as_ref())?,
            None => None,
        };
        // Another thread may have dropped it meanwhile.
        let table = table.ok_or_else(|| Self::missing(&self.slots(), name))?;
        // A table with a handle in a directory is not dropped: this is the schema of no other.
        self.give_schema(&table);
        Ok(table)
    }
}
