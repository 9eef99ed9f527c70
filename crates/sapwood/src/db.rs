//! A database: named tables, in memory or in a directory.

mod changes;
mod check;
mod checkpoints;
mod held_files;
mod inspection;
mod problem;
mod recovery;
mod salvage;
#[cfg(feature = "sim")]
mod simulated;
mod stats;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::db_log::Place;
use crate::directory::Directory;
use crate::error::KNOWN_COUNT;
use crate::home::Home;
use crate::{AnyTable, DbOptions, Engine, Error, OrderedTable, Result, TreeEngineError, TreeTable};

use crate::RollupTable;
#[cfg(doc)]
use crate::{HashTable, LogReader};

use tables::{HashSlot, Schemas};

pub use check::{CheckedTable, DbCheck};
pub use checkpoints::StoredCheckpoint;
pub use inspection::TreePool;
pub use problem::Problem;
pub use salvage::{Salvage, SalvagedTable};
pub use stats::DbStats;
pub(crate) use tables::ToLoad;

/// A database of named tables.
///
/// A table is ordered ([`OrderedTable`]), hashed ([`HashTable`]), a tree ([`TreeTable`]) or a roll-up
/// ([`RollupTable`]); a name is one of them. A
/// `Db` is a handle: clones are the same database, which lives until the last handle of it and of
/// its tables is gone. It costs next to nothing beyond its tables and, in a directory, the log.
///
/// # Consistency
///
/// Making, opening and dropping tables is atomic: of two threads that create a name, one does and
/// the other is told that it exists. What a reader may see in a table is said at [`OrderedTable`]
/// and [`HashTable`]; nothing orders changes to two tables but the threads that make them, and
/// [transactions](crate::Transaction).
///
/// # Durability
///
/// [`Db::in_memory`] keeps nothing. [`Db::open`] keeps all tables in a directory: every change is in one log, so
/// that all of them are there after the end of the process, and, as [`DbOptions::durability`] says, after power
/// loss. What a crash leaves is a prefix of all changes to all tables.
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
    home: Arc<Home>,
    /// The end of the log when the database was opened to be read.
    read_to: Option<u64>,
    /// The columns of its tables.
    schemas: Schemas,
    /// Shared by what makes and removes tables, taken before `slots`.
    table_set: RwLock<()>,
    /// Shared by what removes files of tables, taken before `table_set`.
    removals: RwLock<()>,
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
    Rollup(RollupTable),
}

impl Slot {
    fn engine(&self) -> Engine {
        match self {
            Self::Ordered(_) => Engine::Ordered,
            Self::Hash(_) => Engine::Hash,
            Self::Tree(_) => Engine::Tree,
            Self::Rollup(_) => Engine::Rollup,
        }
    }
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
        Self {
            shared: Arc::new(Shared {
                home: Arc::new(Home::in_memory(options.pool())),
                read_to: None,
                schemas: Schemas::default(),
                table_set: RwLock::default(),
                removals: RwLock::default(),
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
    /// One `Db` at a time has a directory open to write; another answers [`Error::DirectoryInUse`].
    /// [`Db::open_read_only`] is for any number of readers beside it.
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
        Self::of_directory(Directory::open(path.as_ref(), options.disk_reads)?, &options)
    }

    /// Opens the database in a directory to read it, as it is at one moment, also while another process, or this one,
    /// has it open and changes it. Any number of readers do so at once.
    ///
    /// The tables have a prefix of all changes to all of them, up to the end that the log has while they are opened
    /// ([`log_position`](Self::log_position)): each change whose call had returned before the call of this, changes
    /// that go together whole or not at all. They stay so while the writer goes on, takes checkpoints, drops tables,
    /// ends, or is killed; open the directory again to see what came later, or follow it by a [`LogReader`]. The last
    /// changes may be such as a power loss takes back ([`Durability`](crate::Durability)).
    ///
    /// It needs read permission alone: nothing is made, written or removed in the directory, and what would change a
    /// hash table answers [`HashEngineError::ReadOnly`](crate::HashEngineError::ReadOnly), one of another table
    /// [`Error::ReadOnly`]. The writer does not wait for readers. While one opens the directory it keeps the files of
    /// the log that the reader may need; a reader that is killed stands in no way.
    ///
    /// What it takes: an ordered table is read where it lies, in its checkpoint, with what the log has of it since: gets,
    /// scans and [statements](Self::sql) read the blocks that they need, and whatever else is first asked for, as
    /// neighbours and queries, reads all of it into memory. One that has changed in more bytes than it had is read into
    /// memory at once, and so are, since a writer changes their heap in place, all tree tables. What is damaged is told
    /// by what reads it. Hash tables are opened when they are first asked for, and keep the changes since their newest checkpoint
    /// in memory, beyond their memory budget where they have to; their files, where the writer gives them up, take
    /// room on the disk until the reader is closed. A writer that goes back to an earlier checkpoint of a hash table
    /// ([`hash_table_at`](Self::hash_table_at)) leaves readers what they have.
    ///
    /// Options that tables are opened with ([`hash_table_with`](Self::hash_table_with)) are not kept, and going back
    /// to a checkpoint leaves newer ones where they are.
    ///
    /// # Errors
    /// [`Error::Directory`] where the directory is not there, or cannot be read; [`Error::Log`], [`Error::Trees`] and
    /// [`Error::Rollup`] where something is damaged; [`Error::Outrun`] where tables come and go faster than they can
    /// be opened.
    ///
    /// ```
    /// use sapwood::{Db, HashEngineError, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path().join("counters");
    /// let db = Db::open(&path)?;
    /// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
    /// hits.add(b"/", 7)?;
    ///
    /// let reader = Db::open_read_only(&path)?;
    /// hits.add(b"/", 1)?;
    /// let seen = reader.hash_table("hits")?;
    /// assert_eq!(seen.get_counter(b"/")?, Some(7));
    /// assert_eq!(Db::open_read_only(&path)?.hash_table("hits")?.get_counter(b"/")?, Some(8));
    /// let refused = seen.add(b"/", 1).unwrap_err();
    /// assert_eq!(refused.hash_engine(), Some(&HashEngineError::ReadOnly));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_read_only_with(path, DbOptions::default())
    }

    /// As [`Db::open_read_only`], with options: those that concern changes do nothing.
    ///
    /// # Errors
    /// As [`Db::open_read_only`].
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # drop(Db::open(directory.path())?);
    /// let options = DbOptions::default().tree_memory(64 << 20);
    /// let reader = Db::open_read_only_with(directory.path(), options)?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_read_only_with(path: impl AsRef<Path>, options: DbOptions) -> Result<Self> {
        Self::of_directory(Directory::open_beside(path.as_ref(), options.disk_reads)?, &options)
    }

    fn of_directory(directory: Directory, options: &DbOptions) -> Result<Self> {
        let directory = Arc::new(directory);
        let (log, tables, read_to) = match directory.is_read_only() {
            true => {
                let (tables, read_to) = recovery::view_beside(&directory, options)?;
                (None, tables, read_to)
            }
            false => {
                let (log, tables) = recovery::open(&directory, options)?;
                (Some(log), tables, None)
            }
        };
        let mut slots = Slots::new();
        for name in directory.table_names()? {
            slots.insert(name.into(), Slot::Hash(HashSlot::stored()));
        }
        for (name, table) in tables.hash {
            slots.insert(name, Slot::Hash(HashSlot::logged(table, log.as_ref())));
        }
        for table in tables.rollups {
            slots.insert(table.name().into(), Slot::Rollup(table));
        }
        for table in tables.ordered {
            slots.insert(Arc::clone(&table.shared.name), Slot::Ordered(table));
        }
        let versions = Arc::clone(directory.versions());
        let pool = (options.pool(), tables.trees);
        let home = Arc::new(Home::new(Some(directory), log, versions, pool));
        if let Some(pool) = home.opened_pool() {
            for info in pool.trees().map_err(Error::trees)? {
                let tree = pool.tree(&info.name).map_err(Error::trees)?;
                let table = TreeTable::stored(&info, tree, Arc::clone(&home))?;
                // Names are not taken twice, so that no hash table has this one.
                slots.insert(Arc::clone(&table.shared.name), Slot::Tree(table));
            }
        }
        let shared = Shared {
            home,
            read_to,
            schemas: Schemas::default(),
            table_set: RwLock::default(),
            removals: RwLock::default(),
            slots: RwLock::new(slots),
        };
        let mut db = Self { shared: Arc::new(shared) };
        let unfinished = db.read_schemas();
        db.end_all_unfinished(unfinished);
        Ok(db)
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
        self.home().directory.as_ref().map(|directory| directory.path())
    }

    pub(crate) fn home(&self) -> &Home {
        &self.shared.home
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.home().directory.as_ref().is_some_and(|directory| directory.is_read_only())
    }

    /// The position of the log that the tables have all changes up to: of one that is [open to be
    /// read](Self::open_read_only) as long as it is open, of one that is written by now. A [`LogReader`] that goes on
    /// from there is told what came later. `None` in memory, and where there is no log.
    ///
    /// ```
    /// use sapwood::{Db, LogReader, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let db = Db::open(path)?;
    /// let trees = db.create_ordered_table("trees", OrderedTableOptions::default())?;
    /// trees.put("oak", "12 m")?;
    /// let reader = Db::open_read_only(path)?;
    /// assert_eq!(reader.log_position(), db.log_position());
    /// trees.put("elm", "9 m")?;
    /// assert!(reader.log_position() < db.log_position());
    ///
    /// let position = reader.log_position().expect("there is a log");
    /// let mut later = 0;
    /// LogReader::open_at(path, position)?.read(|record| Ok(later += record.changes.len()))?;
    /// assert_eq!(later, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn log_position(&self) -> Option<u64> {
        match &self.home().log {
            Some(log) => Some(log.wal().position()),
            None => self.shared.read_to,
        }
    }

    /// Opens a table of keys and values that is there, of whichever kind it is.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::OtherEngine`] if it is a roll-up, which has no keys; for a hash table as [`hash_table`](Self::hash_table).
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
    pub fn table(&self, name: &str) -> Result<AnyTable> {
        loop {
            match self.slots().get(name) {
                Some(Slot::Ordered(table)) => return Ok(table.clone().into()),
                Some(Slot::Tree(table)) => return Ok(table.clone().into()),
                Some(slot @ Slot::Rollup(_)) => return Err(other_engine(name, slot)),
                Some(Slot::Hash(_)) | None => {}
            }
            // Without the lock on the names: it may have to be recovered.
            match self.hash_table(name) {
                // Another thread has dropped it, and made one of another kind.
                Err(Error::OtherEngine { .. }) => {}
                answer => return answer.map(AnyTable::from),
            }
        }
    }

    /// Takes a table out of the database, and its files out of the directory. Its name is free
    /// at once.
    ///
    /// The memory of a table in memory goes back to the system when the last handle is dropped,
    /// and until then those handles work on; transactions that change it are refused
    /// ([`Error::TableDropped`]). A hash table in a directory answers [`Error::TableInUse`] while it
    /// has handles.
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
        self.drop_table_if(name, |_| true)
    }

    /// Drops the table of a load that is given up, and none that has its name since.
    pub(crate) fn drop_loaded(&self, table: &OrderedTable) -> Result<()> {
        self.drop_table_if(table.name(), |slot| match slot {
            Slot::Ordered(there) => Arc::ptr_eq(&there.shared, &table.shared),
            Slot::Hash(_) | Slot::Tree(_) | Slot::Rollup(_) => false,
        })
    }

    fn drop_table_if(&self, name: &str, is_meant: impl Fn(&Slot) -> bool) -> Result<()> {
        let find = || {
            let slots = self.slots();
            let slot = slots.get(name).filter(|slot| is_meant(slot)).cloned();
            slot.ok_or_else(|| Self::missing(&slots, name))
        };
        if is_reserved(name) {
            check_new_name(name)?;
        }
        // One that is not there waits for no backup.
        find()?;
        let _name = self.shared.schemas.hold(name);
        let _files_may_go = self.shared.removals.read().unwrap_or_else(PoisonError::into_inner);
        let _set = self.change_table_set();
        let slot = find()?;
        self.end_table(name, &slot)?;
        let mut slots = self.slots_mut();
        let removed = match (slots.get(name), &slot) {
            (Some(Slot::Ordered(there)), Slot::Ordered(found)) => {
                Arc::ptr_eq(&there.shared, &found.shared)
            }
            (Some(Slot::Hash(there)), Slot::Hash(found)) => Arc::ptr_eq(there, found),
            (Some(Slot::Tree(there)), Slot::Tree(found)) => {
                Arc::ptr_eq(&there.shared, &found.shared)
            }
            (Some(Slot::Rollup(there)), Slot::Rollup(found)) => there.is_same(found),
            _ => false,
        };
        if !removed {
            // Another thread dropped it first.
            return Err(Self::missing(&slots, name));
        }
        slots.remove(name);
        drop(slots);
        self.forget_schema(name);
        // Giving memory back may take long; other names need not wait for it.
        drop(slot);
        Ok(())
    }

    /// Takes a table out of the log, and its files out of the directory.
    fn end_table(&self, name: &str, slot: &Slot) -> Result<()> {
        match slot {
            Slot::Ordered(table) => {
                table.shared.kept.drop_table()?;
                table.shared.kept.note_dropped(name);
                Ok(())
            }
            Slot::Hash(slot) => match slot.remove(name, self.home().directory.as_deref())? {
                true => Ok(()),
                false => Err(Self::missing(&self.slots(), name)),
            },
            Slot::Rollup(table) => {
                table.kept().drop_table()?;
                if let (Place::Logged { id, .. }, Some(directory)) =
                    (&table.kept().place, &self.home().directory)
                {
                    // A folder that cannot go now goes when the directory is opened: the log does not
                    // know it any more.
                    let _left = directory.remove_rollup(*id);
                }
                Ok(())
            }
            Slot::Tree(table) => match table.tree().pool().remove_tree(table.tree()) {
                Err(TreeEngineError::TreeRemoved) => Err(Self::missing(&self.slots(), name)),
                removed => table.named(removed),
            },
        }
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
        let mut names = self.stored_names();
        names.retain(|name| !is_reserved(name));
        names
    }

    /// The names of all tables, those of the database itself included.
    fn stored_names(&self) -> Vec<String> {
        self.slots().keys().map(|name| name.to_string()).collect()
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

    fn expect_free(slots: &Slots, name: &str) -> Result<()> {
        match slots.get(name) {
            None => Ok(()),
            Some(slot) => Err(Error::TableExists { name: name.to_owned(), engine: slot.engine() }),
        }
    }

    fn missing(slots: &Slots, name: &str) -> Error {
        Error::TableMissing {
            name: name.to_owned(),
            known: slots
                .keys()
                .filter(|name| !is_reserved(name))
                .take(KNOWN_COUNT)
                .map(|name| name.to_string())
                .collect(),
        }
    }

    /// Held while a table is made or dropped: a backup waits for that, and that for the beginning of a backup.
    fn change_table_set(&self) -> RwLockReadGuard<'_, ()> {
        self.shared.table_set.read().unwrap_or_else(PoisonError::into_inner)
    }

    // The map is whole even after a panic: nothing under the lock leaves it half changed.
    fn slots(&self) -> RwLockReadGuard<'_, Slots> {
        self.shared.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots_mut(&self) -> RwLockWriteGuard<'_, Slots> {
        self.shared.slots.write().unwrap_or_else(PoisonError::into_inner)
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

/// Names that programs give to tables are none of those that the database uses itself.
fn check_new_name(name: &str) -> Result<()> {
    match is_reserved(name) {
        true => Err(Error::TableName { name: name.to_owned(), why: "is the database's own" }),
        false => check_name(name),
    }
}

fn is_reserved(name: &str) -> bool {
    name == tables::SCHEMA_TABLE
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
