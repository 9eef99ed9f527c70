//! A database: named tables.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::KNOWN_COUNT;
use crate::{Error, Options, Result, Stats, Table, TableOptions};

/// The longest name of a table, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// A database of named tables, in memory.
///
/// A `Db` is a handle: clones are the same database, which lives until the last handle of it
/// and of its tables is gone. It has no threads and costs next to nothing beyond its tables.
///
/// # Consistency
///
/// Making, opening and dropping tables is atomic: of two threads that create a name, one does
/// and the other is told that it exists. What a reader may see in a table is said at
/// [`Table`]; nothing orders changes to two tables but the threads that make them.
///
/// ```
/// use sapwood::{Db, TableOptions};
///
/// let db = Db::in_memory();
/// let sessions = db.create_table("sessions", TableOptions::default())?;
/// sessions.put(b"ada", b"online")?;
/// assert_eq!(db.table("sessions")?.get(b"ada")?.as_deref(), Some(&b"online"[..]));
/// assert_eq!(db.table_names(), ["sessions"]);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Db {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    /// Locked only to look a name up or change the set of names, never while a table works.
    tables: RwLock<BTreeMap<Arc<str>, Table>>,
}

/// What the tables of a [`Db`] hold and cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DbStats {
    /// Of each table, by name.
    pub tables: BTreeMap<String, Stats>,
    /// Sum of the tables' entries.
    pub entries: u64,
    /// Sum of the bytes of live keys and values.
    pub data_bytes: u64,
    /// Sum of the bytes mapped from the system.
    pub reserved_bytes: u64,
}

impl Db {
    /// A database without tables, in memory, with default options.
    pub fn in_memory() -> Self {
        Self::with_options(Options::default())
    }

    /// A database without tables, in memory.
    pub fn with_options(options: Options) -> Self {
        let shared = Shared { options, tables: RwLock::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Makes a table; refuses a name that is taken.
    pub fn create_table(&self, name: &str, options: TableOptions) -> Result<Table> {
        check_name(name)?;
        let mut tables = self.tables_mut();
        if tables.contains_key(name) {
            let name = name.to_owned();
            return Err(Error::TableExists { name });
        }
        Self::create(&mut tables, name, &options)
    }

    /// Opens a table that is there.
    pub fn table(&self, name: &str) -> Result<Table> {
        let tables = self.tables();
        tables.get(name).cloned().ok_or_else(|| Self::missing(&tables, name))
    }

    /// Opens a table, after making it with [`Options::table`] if it is not there.
    pub fn open_or_create(&self, name: &str) -> Result<Table> {
        if let Some(table) = self.tables().get(name) {
            return Ok(table.clone());
        }
        check_name(name)?;
        let mut tables = self.tables_mut();
        // Another thread may have made it between the two locks.
        match tables.get(name) {
            Some(table) => Ok(table.clone()),
            None => Self::create(&mut tables, name, &self.shared.options.table),
        }
    }

    /// Takes a table out of the database. Its name is free at once; its memory goes back to
    /// the system when the last handle is dropped, and until then those handles work on.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let mut tables = self.tables_mut();
        match tables.remove(name) {
            Some(table) => {
                // Giving memory back may take long; other names need not wait for it.
                drop(tables);
                drop(table);
                Ok(())
            }
            None => Err(Self::missing(&tables, name)),
        }
    }

    /// The names of all tables, in order.
    pub fn table_names(&self) -> Vec<String> {
        self.tables().keys().map(|name| name.to_string()).collect()
    }

    /// What each table and all together hold and cost.
    pub fn stats(&self) -> DbStats {
        let tables: Vec<Table> = self.tables().values().cloned().collect();
        let tables: BTreeMap<String, Stats> =
            tables.iter().map(|table| (table.name().to_owned(), table.stats())).collect();
        let sum = |count: fn(&Stats) -> u64| tables.values().map(count).sum();
        DbStats {
            entries: sum(|stats| stats.entries),
            data_bytes: sum(|stats| stats.key_bytes + stats.value_bytes),
            reserved_bytes: sum(|stats| stats.reserved_bytes),
            tables,
        }
    }

    fn create(
        tables: &mut BTreeMap<Arc<str>, Table>,
        name: &str,
        options: &TableOptions,
    ) -> Result<Table> {
        let name: Arc<str> = name.into();
        let table = Table::new(Arc::clone(&name), options)?;
        tables.insert(name, table.clone());
        Ok(table)
    }

    fn missing(tables: &BTreeMap<Arc<str>, Table>, name: &str) -> Error {
        Error::TableMissing {
            name: name.to_owned(),
            known: tables.keys().take(KNOWN_COUNT).map(|name| name.to_string()).collect(),
        }
    }

    // The map is whole even after a panic: nothing under the lock leaves it half changed.
    fn tables(&self) -> RwLockReadGuard<'_, BTreeMap<Arc<str>, Table>> {
        self.shared.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tables_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Arc<str>, Table>> {
        self.shared.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names are safe to print, to type in a shell, and to name a file after.
fn check_name(name: &str) -> Result<()> {
    let why = match name.as_bytes() {
        [] => "is empty",
        bytes if bytes.len() > NAME_BYTES_MAX => "is too long",
        [first, ..] if !first.is_ascii_alphanumeric() => "begins with another character",
        bytes if !bytes.iter().all(|byte| is_name_byte(*byte)) => "has another character",
        _ => return Ok(()),
    };
    Err(Error::TableName { name: name.to_owned(), why })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
