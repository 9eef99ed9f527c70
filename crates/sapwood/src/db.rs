//! A database: named tables, in memory or in a directory.

mod checkpoints;
mod hash_slot;
mod inspection;
mod recovery;
mod replay;
#[cfg(feature = "sim")]
mod simulated;
mod trees;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use sapwood_hashlog::HashLog;
use sapwood_ptree::{Pool, TreeLayout};

use crate::db_log::{DbLog, Kept};
use crate::directory::{self, Directory};
use crate::error::KNOWN_COUNT;
use crate::stored_options;
use crate::{
    Changes, Cut, DbOptions, Engine, Error, HashStats, HashTable, HashTableOptions, LogStats,
    OrderedStats, OrderedTable, OrderedTableOptions, RecordLayout, Result, Table, Transaction,
    TreeEngineError, TreePoolStats, TreeStats, TreeTable, TreeTableOptions,
};

use hash_slot::{HashSlot, Opening};
use trees::Trees;

pub use checkpoints::StoredCheckpoint;
pub use inspection::TreePool;

/// A database of named tables.
///
/// A table is ordered ([`OrderedTable`]) or hashed ([`HashTable`]); a name is one or the other. A
/// `Db` is a handle: clones are the same database, which lives until the last handle of it and of
/// its tables is gone. It costs next to nothing beyond its tables and, in a directory, the log.
///
/// # Consistency
///
/// Making, opening and dropping tables is atomic: of two threads that create a name, one does and
/// the other is told that it exists. What a reader may see in a table is said at [`OrderedTable`]
/// and [`HashTable`]; nothing orders changes to two tables but the threads that make them.
///
/// # Durability
///
/// [`Db::in_memory`] keeps nothing. [`Db::open`] keeps all tables in a directory: every change of ordered
/// tables and hash tables is in one log, and every change of tree tables in another, so that all of
/// them are there after the end of the process, and, as [`DbOptions::durability`] says, after power
/// loss.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let sessions = db.create_ordered_table("sessions", OrderedTableOptions::default())?;
/// sessions.put(b"ada", b"online")?;
/// assert_eq!(db.ordered_table("sessions")?.get(b"ada")?.as_deref(), Some(&b"online"[..]));
/// assert_eq!(db.table_names(), ["sessions"]);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Db {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: Option<Arc<Directory>>,
    /// Of a database in a directory that is open to be written.
    log: Option<Arc<DbLog>>,
    trees: Trees,
    /// Locked only to look a name up or change the set of names, never while a table works or
    /// recovers.
    slots: RwLock<Slots>,
}

type Slots = BTreeMap<Arc<str>, Slot>;

/// What a name stands for.
#[derive(Debug, Clone)]
enum Slot {
    Ordered(OrderedTable),
    Hash(Arc<HashSlot>),
    Tree(TreeTable),
}

impl Slot {
    fn engine(&self) -> Engine {
        match self {
            Self::Ordered(_) => Engine::Ordered,
            Self::Hash(_) => Engine::Hash,
            Self::Tree(_) => Engine::Tree,
        }
    }
}

/// What the tables of a [`Db`] hold and cost.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DbStats {
    /// Of each ordered table, by name.
    pub ordered_tables: BTreeMap<String, OrderedStats>,
    /// Of each hash table that is open, by name.
    pub hash_tables: BTreeMap<String, HashStats>,
    /// Of each tree table, by name.
    pub tree_tables: BTreeMap<String, TreeStats>,
    /// What all tree tables cost, if there was ever one.
    pub trees: Option<TreePoolStats>,
    /// What the log costs, and whether it takes changes, of a directory that is open to be written.
    pub log: Option<LogStats>,
    /// The hash tables of the directory that are not opened yet. They cost no memory, and the
    /// sums below know nothing of them.
    pub unopened: Vec<String>,
    /// Sum of the tables' entries: of hash tables in a directory, what
    /// [`HashTable::len_estimate`] says.
    pub entries_estimate: u64,
    /// Sum of the bytes of live keys and values in ordered tables.
    pub data_bytes: u64,
    /// Sum of the bytes mapped from the system; of the heap of tree tables, all of it.
    pub reserved_bytes: u64,
    /// Sum of the bytes that tables and the log have on the disk.
    pub file_bytes: u64,
}

impl Db {
    /// A database without tables, in memory.
    ///
    /// ```
    /// # use sapwood::Db;
    /// let db = Db::in_memory();
    /// assert_eq!(db.directory(), None);
    /// ```
    pub fn in_memory() -> Self {
        Self::in_memory_with(DbOptions::default())
    }

    /// As [`Db::in_memory`], with options.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// let db = Db::in_memory_with(DbOptions::default().tree_limit(1 << 30));
    /// assert_eq!(db.directory(), None);
    /// ```
    pub fn in_memory_with(options: DbOptions) -> Self {
        let trees = Trees::new(options.pool());
        Self {
            shared: Arc::new(Shared {
                directory: None,
                log: None,
                trees,
                slots: RwLock::default(),
            }),
        }
    }

    /// Opens the database in a directory, after making the directory if it is not there.
    ///
    /// All tables that it holds are there by their names, with every change that was logged; what the log
    /// has since the last checkpoint is done again. A hash table of which it has nothing is
    /// opened when it is first asked for. A record that a crash cut off at the end of the log is none.
    ///
    /// A directory of an earlier version has no log, and gets one.
    ///
    /// One `Db` at a time has a directory open; another answers [`Error::DirectoryInUse`].
    /// [`Db::open_read_only`] is for any number of readers.
    ///
    /// # Errors
    /// [`Error::DirectoryInUse`]; [`Error::Directory`] where the directory cannot be made, read or
    /// locked; [`Error::Log`] where the log is damaged before its end, and names file and offset.
    ///
    /// ```
    /// use sapwood::{Db, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path().join("counters");
    /// let db = Db::open(&path)?;
    /// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
    /// hits.add(b"/index.html", 1)?;
    /// drop(hits);
    /// db.close()?;
    ///
    /// let db = Db::open(&path)?;
    /// assert_eq!(db.hash_table("hits")?.get_counter(b"/index.html")?, Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, DbOptions::default())
    }

    /// As [`Db::open`], with options.
    ///
    /// # Errors
    /// As [`Db::open`].
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions, Durability};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().durability(Durability::Sync))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_with(path: impl AsRef<Path>, options: DbOptions) -> Result<Self> {
        Self::of_directory(Directory::open(path.as_ref())?, &options)
    }

    /// Opens the database in a directory to read it, which needs read permission alone:
    /// nothing is made, written or removed there, and what would change a hash table answers
    /// [`HashEngineError::ReadOnly`](crate::HashEngineError::ReadOnly), one of an ordered table
    /// [`Error::ReadOnly`]. Tables are as the last change in the log left them; changes of a hash table
    /// since its newest complete checkpoint, as a crash leaves them in the log, are kept in memory, beyond
    /// the table's memory budget where they have to be.
    ///
    /// Any number of them have a directory open at once, in any processes, while none has it open
    /// to be written: [`Error::DirectoryInUse`] says if there is one. Options that tables are
    /// opened with ([`hash_table_with`](Self::hash_table_with)) are not kept, and going back to a
    /// checkpoint ([`hash_table_at`](Self::hash_table_at)) leaves newer ones where they are.
    ///
    /// # Errors
    /// [`Error::DirectoryInUse`]; [`Error::Directory`] where the directory is not there, or cannot
    /// be read.
    ///
    /// ```
    /// use sapwood::{Db, Error, HashEngineError, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path().join("counters");
    /// let db = Db::open(&path)?;
    /// db.create_hash_table("hits", HashTableOptions::default())?.add(b"/", 7)?;
    /// db.close()?;
    ///
    /// let (one, other) = (Db::open_read_only(&path)?, Db::open_read_only(&path)?);
    /// for db in [&one, &other] {
    ///     let hits = db.hash_table("hits")?;
    ///     assert_eq!(hits.get(b"/")?, Some(7_i64.to_le_bytes().to_vec()));
    ///     let refused = hits.add(b"/", 1).unwrap_err();
    ///     assert_eq!(refused.hash_engine(), Some(&HashEngineError::ReadOnly));
    /// }
    /// assert!(matches!(Db::open(&path), Err(Error::DirectoryInUse { .. })));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::of_directory(Directory::open_read_only(path.as_ref())?, &DbOptions::default())
    }

    fn of_directory(directory: Directory, options: &DbOptions) -> Result<Self> {
        let trees = Trees::of_directory(options.pool(), &directory)?;
        let directory = Arc::new(directory);
        let (log, tables) = match directory.is_read_only() {
            true => (None, recovery::view(&directory)?),
            false => {
                let (log, tables) = recovery::open(&directory, options)?;
                (Some(log), tables)
            }
        };
        let mut slots = Slots::new();
        for name in directory.table_names()? {
            slots.insert(name.into(), Slot::Hash(HashSlot::stored()));
        }
        for (name, table) in tables.hash {
            slots.insert(name, Slot::Hash(HashSlot::logged(table, log.as_ref())));
        }
        for table in tables.ordered {
            slots.insert(Arc::clone(&table.shared.name), Slot::Ordered(table));
        }
        let directory = Some(directory);
        if let Some(pool) = trees.opened() {
            for info in pool.trees().map_err(Error::trees)? {
                let tree = pool.tree(&info.name).map_err(Error::trees)?;
                let table = TreeTable::stored(&info, tree, directory.clone())?;
                // Names are not taken twice, so that no hash table has this one.
                slots.insert(Arc::clone(&table.shared.name), Slot::Tree(table));
            }
        }
        Ok(Self { shared: Arc::new(Shared { directory, log, trees, slots: RwLock::new(slots) }) })
    }

    /// The directory, if there is one.
    ///
    /// ```
    /// # use sapwood::Db;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// assert_eq!(db.directory(), Some(directory.path()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn directory(&self) -> Option<&Path> {
        self.shared.directory.as_ref().map(|directory| directory.path())
    }

    /// Opens a table that is there, of whichever kind it is.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; for a hash table as [`hash_table`](Self::hash_table).
    ///
    /// ```
    /// # use sapwood::{Db, Engine, HashTableOptions, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_ordered_table("sessions", OrderedTableOptions::default())?;
    /// db.create_hash_table("hits", HashTableOptions::default())?;
    /// assert_eq!(db.table("sessions")?.engine(), Engine::Ordered);
    /// assert_eq!(db.table("hits")?.engine(), Engine::Hash);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn table(&self, name: &str) -> Result<Table> {
        loop {
            match self.slots().get(name) {
                Some(Slot::Ordered(table)) => return Ok(table.clone().into()),
                Some(Slot::Tree(table)) => return Ok(table.clone().into()),
                Some(Slot::Hash(_)) | None => {}
            }
            // Without the lock on the names: it may have to be recovered.
            match self.hash_table(name) {
                // Another thread has dropped it, and made one of another kind.
                Err(Error::OtherEngine { .. }) => {}
                answer => return answer.map(Table::from),
            }
        }
    }

    /// Makes an ordered table; refuses a name that is taken. Where the database has a directory, the table
    /// lasts, unless its options say otherwise ([`OrderedTableOptions::volatile`]).
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::TableExists`]; [`Error::OrderedEngine`] for options that cannot
    /// work; [`Error::Log`]; [`Error::ReadOnly`].
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
        check_name(name)?;
        let mut slots = self.slots_mut();
        Self::expect_free(&slots, name)?;
        self.create_ordered(&mut slots, name, options)
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
        check_name(name)?;
        let mut slots = self.slots_mut();
        // Another thread may have made it between the two locks.
        match slots.get(name) {
            Some(slot) => ordered(name, slot),
            None => self.create_ordered(&mut slots, name, options),
        }
    }

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
        check_name(name)?;
        let mut slots = self.slots_mut();
        Self::expect_free(&slots, name)?;
        self.create_hash(&mut slots, name, &options)
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
        let options = slot.options(&name, self.shared.directory.as_ref())?;
        // Another thread may have dropped it meanwhile.
        options.ok_or_else(|| Self::missing(&self.slots(), &name))
    }

    /// As [`hash_table`](Self::hash_table), and gives the table other options than those it was
    /// made with; layout and page size cannot be others. Answers [`Error::TableInUse`] while
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
            check_name(name)?;
            let mut slots = self.slots_mut();
            // Another thread may have made it between the two locks.
            if slots.get(name).is_none() {
                return self.create_hash(&mut slots, name, &options);
            }
        }
        self.hash_table(name)
    }

    /// Makes a tree table; refuses a name that is taken. It lives in the database's directory if
    /// there is one, and else in memory.
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::TableExists`]; [`Error::Trees`], [`Error::ReadOnly`] and
    /// [`Error::Directory`] where it cannot be made.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// let orders = db.create_tree_table("orders", TreeTableOptions::default())?;
    /// orders.put(b"1", b"an oak")?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn create_tree_table(&self, name: &str, options: TreeTableOptions) -> Result<TreeTable> {
        check_name(name)?;
        Self::expect_free(&self.slots(), name)?;
        self.create_tree(name, &options)
    }

    /// Opens a tree table that is there.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::OtherEngine`] if it is of another kind.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_tree_table("orders", TreeTableOptions::default())?.put(b"1", b"an oak")?;
    /// assert_eq!(db.tree_table("orders")?.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn tree_table(&self, name: &str) -> Result<TreeTable> {
        let slots = self.slots();
        match slots.get(name) {
            Some(slot) => tree(name, slot),
            None => Err(Self::missing(&slots, name)),
        }
    }

    /// Opens a tree table, after making it with these options if it is not there. A table that is
    /// there keeps its own.
    ///
    /// # Errors
    /// [`Error::OtherEngine`] if it is of another kind; as
    /// [`create_tree_table`](Self::create_tree_table).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// for _ in 0..2 {
    ///     db.open_or_create_tree_table("orders", TreeTableOptions::default())?;
    /// }
    /// assert_eq!(db.table_names(), ["orders"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_or_create_tree_table(
        &self,
        name: &str,
        options: TreeTableOptions,
    ) -> Result<TreeTable> {
        check_name(name)?;
        if let Some(slot) = self.slots().get(name) {
            return tree(name, slot);
        }
        match self.create_tree(name, &options) {
            // Another thread has made it, and may not have noted it yet.
            Err(Error::TableExists { engine: Engine::Tree, .. }) => self.note_stored_tree(name),
            made => made,
        }
    }

    /// Begins a transaction over tree tables.
    ///
    /// # Errors
    /// [`Error::Trees`]: the directory is open to be read only, or its disk has failed.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.put(&table, b"k", b"v")?;
    /// tx.commit()?.wait().expect("on the disk");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn begin(&self) -> Result<Transaction<'_>> {
        Transaction::begin(self.shared.trees.pool(self.shared.directory.as_ref())?)
    }

    /// Begins a transaction that has these tables from the beginning: it waits for all of them now,
    /// in an order of its own, so that it meets no conflict with them later.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); tables of another database are refused.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let from = db.create_tree_table("from", TreeTableOptions::default())?;
    /// # let to = db.create_tree_table("to", TreeTableOptions::default())?;
    /// let tx = db.begin_on(&[&to, &from])?;
    /// tx.add(&from, b"k", -1)?;
    /// tx.add(&to, b"k", 1)?;
    /// tx.commit()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn begin_on(&self, tables: &[&TreeTable]) -> Result<Transaction<'_>> {
        Transaction::begin_on(self.shared.trees.pool(self.shared.directory.as_ref())?, tables)
    }

    /// Runs `change` in a transaction over tree tables and commits, or aborts where it fails.
    ///
    /// # Errors
    /// Those of `change`, of [`begin`](Self::begin) and of [`Transaction::commit`].
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let refused = db.transaction(|tx| {
    ///     tx.put(&table, b"a", b"no number")?;
    ///     tx.add(&table, b"a", 1)
    /// });
    /// assert!(refused.is_err() && table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn transaction<R>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<R>) -> Result<R> {
        let transaction = self.begin()?;
        let done = change(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Runs `changes`, after which all that they changed in tree tables lasts together: after a crash all
    /// of it is there, or nothing; and so all that they changed in other tables that last. (A crash in
    /// between may leave the one without the other.) Readers see each change when it is made, and nothing
    /// is taken back where `changes` fails or panics. For code that cannot keep a [`Transaction`] in
    /// hand.
    ///
    /// Commits of other threads to tree tables wait for the end, after they are made; so `changes` waits
    /// for no thread that writes. The caller sees to it that no other thread changes the same entries of
    /// other tables meanwhile. No change waits for the disk until the end.
    ///
    /// # Errors
    /// [`Error::Trees`] and [`Error::Log`] where the disk refused.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let accounts = db.create_ordered_table("accounts", OrderedTableOptions::default())?;
    /// let (done, changes) = db.together(|| {
    ///     accounts.add(b"ada", -5)?;
    ///     accounts.add(b"bob", 5)
    /// })?;
    /// done?;
    /// changes.wait()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn together<R>(&self, changes: impl FnOnce() -> R) -> Result<(R, Changes)> {
        let Shared { log, trees, .. } = &*self.shared;
        if let Some(log) = log {
            log.check()?;
        }
        let logged = || match log {
            Some(log) => log.wal().together(changes),
            None => changes(),
        };
        let (done, commit) = match trees.opened() {
            Some(pool) => {
                let (done, commit) = pool.together(logged).map_err(Error::trees)?;
                (done, Some(commit))
            }
            None => (logged(), None),
        };
        if let Some(log) = log {
            // They are appended at the end, and nothing in them could tell that this failed.
            log.check()?;
        }
        let log = log.as_ref().map(|log| (Arc::clone(log), log.wal().told()));
        Ok((done, Changes { log, trees: commit }))
    }

    /// Replaces the time after which changes last that wait for nothing
    /// ([`Durability::Interval`](crate::Durability::Interval)), from the next change on; `None` leaves that
    /// to the system.
    ///
    /// ```
    /// # use sapwood::Db;
    /// # use std::time::Duration;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// db.set_sync_interval(Some(Duration::from_secs(1)));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn set_sync_interval(&self, interval: Option<Duration>) {
        if let Some(log) = &self.shared.log {
            log.wal().set_sync_interval(interval);
        }
        if let Some(pool) = self.shared.trees.opened() {
            pool.set_sync_interval(interval);
        }
    }

    /// The changes that this thread has made so far to tables that last, to wait for: for a program whose
    /// [`DbOptions::durability`](crate::DbOptions::durability) lets changes go on at once, and that tells
    /// others of them once they last. It may have some of other threads, too.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let orders = db.create_ordered_table("orders", OrderedTableOptions::default())?;
    /// (0..100_u8).try_for_each(|order| orders.put([order], b"an oak"))?;
    /// db.changes().wait()?; // One sync for all.
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn changes(&self) -> Changes {
        let log = self.shared.log.as_ref();
        Changes {
            log: log.map(|log| (Arc::clone(log), log.wal().told())),
            trees: self.shared.trees.opened().map(Pool::last_commit),
        }
    }

    /// Whether the database has, or had, tree tables: a heap for them.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// let db = Db::in_memory();
    /// assert!(!db.has_trees());
    /// db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(db.has_trees());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn has_trees(&self) -> bool {
        self.shared.trees.opened().is_some()
    }

    /// Waits until all changes so far survive power loss, of all tables that last.
    ///
    /// # Errors
    /// [`Error::Log`] and [`Error::Trees`] where the disk refused.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// db.create_tree_table("orders", TreeTableOptions::default())?.put(b"1", b"an oak")?;
    /// db.sync()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        let log = self.shared.log.as_ref().map_or(Ok(()), |log| log.sync());
        let trees = self.shared.trees.opened();
        log.and(trees.map_or(Ok(()), |pool| pool.sync().map_err(Error::trees)))
    }

    /// Takes a table out of the database, and its files out of the directory. Its name is free
    /// at once.
    ///
    /// The memory of a table in memory goes back to the system when the last handle is dropped,
    /// and until then those handles work on. A hash table in a directory answers
    /// [`Error::TableInUse`] while it has handles.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::TableInUse`]; [`Error::ReadOnly`] and [`Error::Directory`]
    /// where its files cannot be removed.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_ordered_table("sessions", OrderedTableOptions::default())?;
    /// db.drop_table("sessions")?;
    /// assert!(db.table_names().is_empty());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let slot = {
            let slots = self.slots();
            slots.get(name).cloned().ok_or_else(|| Self::missing(&slots, name))?
        };
        if let Slot::Hash(slot) = &slot {
            match slot.remove(name, self.shared.directory.as_deref()) {
                Ok(true) => {}
                Ok(false) => return Err(Self::missing(&self.slots(), name)),
                Err(error) => return Err(error),
            }
        }
        if let Slot::Ordered(table) = &slot {
            table.shared.kept.drop_table()?;
        }
        if let Slot::Tree(table) = &slot {
            match table.tree().pool().remove_tree(table.tree()) {
                Err(TreeEngineError::TreeRemoved) => {
                    return Err(Self::missing(&self.slots(), name));
                }
                removed => table.named(removed)?,
            }
        }
        let mut slots = self.slots_mut();
        let removed = match (slots.get(name), &slot) {
            (Some(Slot::Ordered(there)), Slot::Ordered(found)) => {
                Arc::ptr_eq(&there.shared, &found.shared)
            }
            (Some(Slot::Hash(there)), Slot::Hash(found)) => Arc::ptr_eq(there, found),
            (Some(Slot::Tree(there)), Slot::Tree(found)) => {
                Arc::ptr_eq(&there.shared, &found.shared)
            }
            _ => false,
        };
        if !removed {
            // Another thread dropped it first.
            return Err(Self::missing(&slots, name));
        }
        slots.remove(name);
        // Giving memory back may take long; other names need not wait for it.
        drop(slots);
        drop(slot);
        Ok(())
    }

    /// The names of all tables, in order.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_ordered_table("b", OrderedTableOptions::default())?;
    /// db.create_ordered_table("a", OrderedTableOptions::default())?;
    /// assert_eq!(db.table_names(), ["a", "b"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn table_names(&self) -> Vec<String> {
        self.slots().keys().map(|name| name.to_string()).collect()
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
        let slots: Vec<Slot> = self.slots().values().cloned().collect();
        let opened = slots.into_iter().filter_map(|slot| match slot {
            Slot::Hash(slot) => slot.opened(),
            Slot::Ordered(_) | Slot::Tree(_) => None,
        });
        opened.collect()
    }

    /// Which engine a table has; `None` if it is not there.
    ///
    /// ```
    /// use sapwood::{Db, Engine, HashTableOptions};
    ///
    /// let db = Db::in_memory();
    /// db.create_hash_table("hits", HashTableOptions::default())?;
    /// assert_eq!(db.engine("hits"), Some(Engine::Hash));
    /// let error = db.ordered_table("hits").unwrap_err();
    /// assert_eq!(error.to_string(), "table `hits` is a hash table; open it with `Db::hash_table`");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn engine(&self, name: &str) -> Option<Engine> {
        self.slots().get(name).map(Slot::engine)
    }

    /// Takes a checkpoint of all tables, while writers go on, after which the log before it goes. It comes
    /// by itself, too ([`DbOptions::checkpoint_bytes`](crate::DbOptions::checkpoint_bytes)); taken before
    /// the end of a program it makes the next opening quick.
    ///
    /// Where one table's checkpoint fails, those of the others are still taken, the log keeps what it has,
    /// and the first error is the answer. A database in memory answers [`Error::NoDirectory`].
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory; [`Error::ReadOnly`]; [`Error::HashEngine`] of the first
    /// table whose checkpoint failed; [`Error::Log`]; [`Error::Trees`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// # let table = db.create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// db.checkpoint()?;
    /// assert_eq!(table.checkpoints()?.len(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn checkpoint(&self) -> Result<()> {
        match &self.shared.directory {
            Some(directory) => {
                directory.expect_writable()?;
                self.checkpoint_all(Cut::Incremental)
            }
            None => Err(Error::NoDirectory),
        }
    }

    /// Takes a checkpoint of all tables, a full one of hash tables, so that opening them is fast, and gives
    /// this handle up. A `Db` that is dropped without it loses nothing: opening it reads the log.
    ///
    /// Errors are answered as by [`checkpoint`](Self::checkpoint). Other handles of the database
    /// and its tables work on, and keep the directory from being opened again until they are gone. In memory
    /// it does nothing.
    ///
    /// # Errors
    /// As of [`checkpoint`](Self::checkpoint).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// # let table = db.create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// drop(table);
    /// db.close()?;
    /// let table = Db::open(directory.path())?.hash_table("t")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn close(self) -> Result<()> {
        match &self.shared.directory {
            Some(directory) if !directory.is_read_only() => {
                if let Some(log) = &self.shared.log {
                    log.begin_close();
                }
                self.checkpoint_all(Cut::Full)
            }
            _ => Ok(()),
        }
    }

    /// What each table and all together hold and cost.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_ordered_table("t", OrderedTableOptions::default())?.put(b"k", b"v")?;
    /// let stats = db.stats();
    /// assert_eq!((stats.entries_estimate, stats.data_bytes), (1, 2));
    /// assert_eq!(stats.ordered_tables["t"].entries, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn stats(&self) -> DbStats {
        // Cloned, so that no name waits while tables count.
        let slots = self.slots().clone();
        let mut stats = DbStats {
            ordered_tables: BTreeMap::new(),
            hash_tables: BTreeMap::new(),
            tree_tables: BTreeMap::new(),
            trees: None,
            log: None,
            unopened: Vec::new(),
            entries_estimate: 0,
            data_bytes: 0,
            reserved_bytes: 0,
            file_bytes: 0,
        };
        for (name, slot) in slots {
            let name = name.to_string();
            match slot {
                Slot::Ordered(table) => {
                    let table = table.stats();
                    stats.entries_estimate += table.entries;
                    stats.data_bytes += table.key_bytes + table.value_bytes;
                    stats.reserved_bytes += table.reserved_bytes;
                    stats.ordered_tables.insert(name, table);
                }
                Slot::Hash(slot) => match slot.opened() {
                    Some(table) => {
                        let table = table.stats();
                        stats.entries_estimate += table.entries_estimate;
                        stats.reserved_bytes += table.reserved_bytes;
                        stats.file_bytes += table.file_bytes;
                        stats.hash_tables.insert(name, table);
                    }
                    None => stats.unopened.push(name),
                },
                Slot::Tree(table) => {
                    let table = table.stats();
                    stats.entries_estimate += table.entries;
                    stats.tree_tables.insert(name, table);
                }
            }
        }
        if let Some(pool) = self.shared.trees.opened() {
            let (heap_bytes, log_bytes) = (pool.heap_bytes(), pool.log_bytes());
            stats.reserved_bytes += heap_bytes;
            if self.shared.directory.is_some() {
                stats.file_bytes += heap_bytes + log_bytes;
            }
            stats.trees = Some(TreePoolStats { heap_bytes, log_bytes });
        }
        if let Some(log) = &self.shared.log {
            let log = log.stats();
            stats.file_bytes += log.log_bytes + log.snapshot_bytes;
            stats.log = Some(log);
        }
        stats
    }

    fn checkpoint_all(&self, cut: Cut) -> Result<()> {
        let slots: Vec<Slot> = self.slots().values().cloned().collect();
        let mut first = Ok(());
        for slot in slots {
            if let Slot::Hash(slot) = slot
                && let Some(table) = slot.opened()
            {
                first = first.and(table.checkpoint(cut).map(drop));
            }
        }
        if let Some(log) = &self.shared.log {
            first = first.and(log.checkpoint());
        }
        match self.shared.trees.opened() {
            Some(pool) => first.and(pool.checkpoint().map_err(Error::trees)),
            None => first,
        }
    }

    fn expect_free(slots: &Slots, name: &str) -> Result<()> {
        match slots.get(name) {
            None => Ok(()),
            Some(slot) => Err(Error::TableExists { name: name.to_owned(), engine: slot.engine() }),
        }
    }

    fn create_ordered(
        &self,
        slots: &mut Slots,
        name: &str,
        options: OrderedTableOptions,
    ) -> Result<OrderedTable> {
        let name: Arc<str> = name.into();
        let table = match (&self.shared.log, &self.shared.directory) {
            (Some(log), _) if !options.volatile => {
                let (map, kept) = log.create_ordered(&name, &options)?;
                OrderedTable::of(Arc::clone(&name), map, options, kept)
            }
            (None, Some(directory)) if !options.volatile => {
                return Err(Error::ReadOnly { path: directory.path().to_owned() });
            }
            _ => OrderedTable::in_memory(Arc::clone(&name), options)?,
        };
        slots.insert(name, Slot::Ordered(table.clone()));
        Ok(table)
    }

    fn create_hash(
        &self,
        slots: &mut Slots,
        name: &str,
        options: &HashTableOptions,
    ) -> Result<HashTable> {
        let name: Arc<str> = name.into();
        let directory = self.shared.directory.clone();
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
                if let Some(db_log) = &self.shared.log {
                    // With its options the table is there: changes of others before that must last, too.
                    db_log.sync()?;
                }
                folder.write_options(options)?;
                log
            }
        };
        let (log, kept) = match &self.shared.log {
            // A crash in between leaves a folder that the log does not know: opening puts it in.
            Some(db_log) => db_log.open_hash(db_log.create_hash(&name)?, log),
            None => (Arc::new(log), Kept::Memory),
        };
        let table = HashTable::new(Arc::clone(&name), log, fields, directory, kept);
        slots.insert(name, Slot::Hash(HashSlot::open_already(table.clone())));
        Ok(table)
    }

    /// Makes a tree table. The names are not locked meanwhile: its commit may wait for other threads,
    /// which may want a name.
    fn create_tree(&self, name: &str, options: &TreeTableOptions) -> Result<TreeTable> {
        let directory = &self.shared.directory;
        if let Some(directory) = directory {
            directory.expect_writable()?;
        }
        let pool = self.shared.trees.pool(directory.as_ref())?;
        let layout = match options.layout {
            RecordLayout::Fixed8 => TreeLayout::Fixed,
            RecordLayout::Variable => TreeLayout::Bytes,
        };
        let made = pool.transaction(|tx| {
            let tree = tx.create_tree(pool, name, options.kind, layout)?;
            if let Some(fields) = &options.fields {
                tx.set_note(&tree, fields.to_string().as_bytes())?;
            }
            Ok(tree)
        });
        let tree = made.map_err(|cause| match cause {
            TreeEngineError::TreeExists { name } => {
                Error::TableExists { name, engine: Engine::Tree }
            }
            cause => Error::TreeEngine { table: name.into(), cause },
        })?;
        let fields = options.fields.clone();
        let table = TreeTable::new(name.into(), tree, fields, directory.clone());
        let noted = self.note_tree(table.clone());
        if noted.is_err() {
            table.named(pool.remove_tree(table.tree()))?;
        }
        noted
    }

    /// Gives a tree table its name, unless another kind of table has come by it.
    fn note_tree(&self, table: TreeTable) -> Result<TreeTable> {
        let mut slots = self.slots_mut();
        match slots.get(table.name()) {
            Some(Slot::Tree(there)) if there.tree().id() == table.tree().id() => Ok(there.clone()),
            // That of a table that is being dropped.
            Some(Slot::Tree(_)) | None => {
                slots.insert(Arc::clone(&table.shared.name), Slot::Tree(table.clone()));
                Ok(table)
            }
            Some(slot) => {
                let (name, engine) = (table.name().to_owned(), slot.engine());
                Err(Error::TableExists { name, engine })
            }
        }
    }

    fn note_stored_tree(&self, name: &str) -> Result<TreeTable> {
        let pool = self.shared.trees.pool(self.shared.directory.as_ref())?;
        let infos = pool.trees().map_err(Error::trees)?;
        let info = infos.into_iter().find(|info| info.name == name);
        let info = info.ok_or_else(|| Self::missing(&self.slots(), name))?;
        let tree = pool.tree(name).map_err(Error::trees)?;
        self.note_tree(TreeTable::stored(&info, tree, self.shared.directory.clone())?)
    }

    fn open_hash(&self, name: &str, opening: Opening) -> Result<HashTable> {
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
            Some((name, slot)) => slot.open(&name, opening, self.shared.directory.as_ref())?,
            None => None,
        };
        // Another thread may have dropped it meanwhile.
        table.ok_or_else(|| Self::missing(&self.slots(), name))
    }

    fn missing(slots: &Slots, name: &str) -> Error {
        Error::TableMissing {
            name: name.to_owned(),
            known: slots.keys().take(KNOWN_COUNT).map(|name| name.to_string()).collect(),
        }
    }

    // The map is whole even after a panic: nothing under the lock leaves it half changed.
    fn slots(&self) -> RwLockReadGuard<'_, Slots> {
        self.shared.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots_mut(&self) -> RwLockWriteGuard<'_, Slots> {
        self.shared.slots.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ordered(name: &str, slot: &Slot) -> Result<OrderedTable> {
    match slot {
        Slot::Ordered(table) => Ok(table.clone()),
        Slot::Hash(_) | Slot::Tree(_) => Err(other_engine(name, slot)),
    }
}

fn tree(name: &str, slot: &Slot) -> Result<TreeTable> {
    match slot {
        Slot::Tree(table) => Ok(table.clone()),
        Slot::Hash(_) | Slot::Ordered(_) => Err(other_engine(name, slot)),
    }
}

fn other_engine(name: &str, slot: &Slot) -> Error {
    Error::OtherEngine { name: name.to_owned(), engine: slot.engine() }
}

/// Names are safe to print, to type in a shell, and to name a folder after.
fn check_name(name: &str) -> Result<()> {
    let why = match name.as_bytes() {
        [] => "is empty",
        bytes if bytes.len() > crate::error::NAME_BYTES_MAX => "is too long",
        [first, ..] if !first.is_ascii_alphanumeric() => "begins with another character",
        bytes if !bytes.iter().all(|byte| is_name_byte(*byte)) => "has another character",
        _ => return Ok(()),
    };
    Err(Error::TableName { name: name.to_owned(), why })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
