//! The tables that a database has when it is opened, from what the log tells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sapwood_chunkmap::ChunkMap;
use sapwood_engine::Effect;
use sapwood_hashlog::HashLog;
use sapwood_wal::{Recovery, TableId};

use crate::db_log::{DbLog, Description, Kept, Stopped};
use crate::directory::Directory;
use crate::{
    DbOptions, Error, HashTable, LogError, OrderedEngineError, OrderedTable, OrderedTableOptions,
    Result, aggregate,
};

/// The tables that the log of a directory has.
pub(super) struct LoggedTables {
    pub(super) ordered: Vec<OrderedTable>,
    /// By name.
    pub(super) hash: BTreeMap<Arc<str>, LoggedHash>,
}

/// A hash table that the log has.
pub(super) enum LoggedHash {
    /// The log has no change since its newest checkpoint.
    Closed(TableId),
    /// With all changes.
    Open(HashTable),
    /// The log has changes, and the table cannot be opened.
    Unrecovered(Option<TableId>, Error),
}

/// Opens the log of a directory, or makes it, with the tables that it has.
pub(super) fn open(
    directory: &Arc<Directory>,
    options: &DbOptions,
) -> Result<(Arc<DbLog>, LoggedTables)> {
    let mut recovery = Tables::new(directory);
    let log = DbLog::open(directory, options, &mut recovery)?;
    let (ordered, hash) = (recovery.ordered, recovery.hash);
    let ordered = ordered.into_iter().map(|(id, table)| {
        let (name, options, map) = table.finish();
        let (map, kept) = log.open_ordered(id, map);
        OrderedTable::of(name, map, options, kept)
    });
    let ordered = ordered.collect();
    let hash = settle_hash(&log, directory, hash)?;
    log.begin(options)?;
    Ok((log, LoggedTables { ordered, hash }))
}

/// Brings the hash tables of the log and those of the directory together.
fn settle_hash(
    log: &Arc<DbLog>,
    directory: &Arc<Directory>,
    recovered: BTreeMap<TableId, RecoveredHash>,
) -> Result<BTreeMap<Arc<str>, LoggedHash>> {
    let mut there: BTreeSet<String> = directory.table_names()?.into_iter().collect();
    let mut tables = BTreeMap::new();
    for (id, RecoveredHash { name, newest, state }) in recovered {
        if !there.remove(&*name) {
            // A crash came while it was dropped.
            log.drop_hash(id)?;
            continue;
        }
        let table = match state {
            HashState::Unchanged => {
                log.close_hash(id, newest)?;
                LoggedHash::Closed(id)
            }
            HashState::Open(engine, fields) => {
                let (engine, kept) = log.open_hash(id, engine);
                let directory = Some(Arc::clone(directory));
                LoggedHash::Open(HashTable::new(Arc::clone(&name), engine, fields, directory, kept))
            }
            HashState::Unrecovered(error) => {
                log.keep_hash(id, &name, &error.to_string());
                LoggedHash::Unrecovered(Some(id), error)
            }
        };
        tables.insert(name, table);
    }
    // Of a version that had no log, or of a crash while they were made.
    for name in there {
        tables.insert(name.as_str().into(), LoggedHash::Closed(log.create_hash(&name)?));
    }
    Ok(tables)
}

/// The tables of the log of a directory that is open to be read.
pub(super) fn view(directory: &Arc<Directory>) -> Result<LoggedTables> {
    let mut recovery = Tables::new(directory);
    DbLog::view(directory, &mut recovery)?;
    let ordered = recovery.ordered.into_values().map(|table| {
        let (name, options, map) = table.finish();
        let kept = Kept::ReadOnly(Arc::clone(directory));
        OrderedTable::of(name, Arc::new(map), options, kept)
    });
    let ordered = ordered.collect();
    let hash = recovery.hash.into_values().filter_map(|RecoveredHash { name, state, .. }| {
        let table = match state {
            HashState::Unchanged => return None,
            HashState::Open(engine, fields) => {
                let (engine, directory) = (Arc::new(engine.read_only()), Some(directory.clone()));
                LoggedHash::Open(HashTable::new(
                    name.clone(),
                    engine,
                    fields,
                    directory,
                    Kept::Memory,
                ))
            }
            HashState::Unrecovered(error) => LoggedHash::Unrecovered(None, error),
        };
        Some((name, table))
    });
    Ok(LoggedTables { ordered, hash: hash.collect() })
}

/// The tables that were told so far.
struct Tables<'d> {
    directory: &'d Directory,
    ordered: BTreeMap<TableId, Recovered>,
    hash: BTreeMap<TableId, RecoveredHash>,
}

/// A hash table, which is opened when the log has a change of it.
struct RecoveredHash {
    name: Arc<str>,
    /// Its newest checkpoint when the log had one last.
    newest: u64,
    state: HashState,
}

enum HashState {
    Unchanged,
    Open(HashLog, Option<aggregate::Layout>),
    /// It does not open, or may not be changed.
    Unrecovered(Error),
}

/// An ordered table without a journal.
#[derive(Debug)]
struct Recovered {
    name: Arc<str>,
    options: OrderedTableOptions,
    map: ChunkMap,
}

impl Recovered {
    /// The map with all its entries.
    fn finish(self) -> (Arc<str>, OrderedTableOptions, ChunkMap) {
        let map = self.map.with_memory_budget(self.options.memory_budget);
        (self.name, self.options, map)
    }
}

type Told<T> = std::result::Result<T, Stopped>;

impl RecoveredHash {
    /// Does a change again.
    fn change(&mut self, directory: &Directory, key: &[u8], effect: Effect<'_>) {
        if matches!(self.state, HashState::Unchanged) {
            self.state = match self.open(directory) {
                Ok((log, fields)) => HashState::Open(log, fields),
                Err(error) => HashState::Unrecovered(error),
            };
        }
        let HashState::Open(log, _) = &self.state else { return };
        let done = match effect {
            Effect::Put(value) => log.put(key, value),
            Effect::Write { offset, bytes } => {
                log.update(key, |value| write(value, offset, bytes)).map(drop)
            }
            Effect::Remove => log.remove(key).map(drop),
        };
        if let Err(cause) = done {
            let table = Arc::clone(&self.name);
            self.state = HashState::Unrecovered(Error::HashEngine { table, cause });
        }
    }

    fn open(&self, directory: &Directory) -> Result<(HashLog, Option<aggregate::Layout>)> {
        let folder = directory.folder(&self.name)?;
        let stored = folder.read_options()?;
        let log = match directory.is_read_only() {
            true => {
                // What changes is kept in memory alone.
                let mut options = stored.engine();
                options.memory_budget = None;
                HashLog::view_newest(folder.disk, options)
            }
            false => HashLog::open(folder.disk, stored.engine()),
        };
        let log =
            log.map_err(|cause| Error::HashEngine { table: Arc::clone(&self.name), cause })?;
        Ok((log, stored.fields))
    }
}

/// What does not fit is as it will be.
fn write(value: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(there) = value.get_mut(offset..offset.saturating_add(bytes.len())) {
        there.copy_from_slice(bytes);
    }
}

impl<'d> Tables<'d> {
    fn new(directory: &'d Directory) -> Tables<'d> {
        Tables { directory, ordered: BTreeMap::new(), hash: BTreeMap::new() }
    }

    fn change_map(
        &self,
        table: TableId,
        change: impl FnOnce(&ChunkMap) -> std::result::Result<(), OrderedEngineError>,
    ) -> Told<()> {
        let Some(recovered) = self.ordered.get(&table) else { return Ok(()) };
        change(&recovered.map).map_err(|cause| {
            Stopped::Table(Error::OrderedEngine { table: Arc::clone(&recovered.name), cause })
        })
    }
}

impl Recovery<Stopped> for Tables<'_> {
    fn create(
        &mut self,
        table: TableId,
        name: &str,
        description: &[u8],
        own: Option<u64>,
    ) -> Told<()> {
        let damaged = |what| {
            let what = format!("the description of table `{name}` cannot be read: {what}");
            Stopped::Log(LogError::CorruptFile { file: "the log".to_owned(), offset: 0, what })
        };
        let name: Arc<str> = name.into();
        match Description::decode(description).map_err(damaged)? {
            Description::Ordered(options) => {
                // What was there is put in again, whatever of the budget that takes.
                let unlimited = OrderedTableOptions { memory_budget: None, ..options.clone() };
                let map = unlimited.new_map(&name).map_err(Stopped::Table)?;
                self.ordered.insert(table, Recovered { name, options, map });
            }
            Description::Hash => {
                let (newest, state) = (own.unwrap_or(0), HashState::Unchanged);
                self.hash.insert(table, RecoveredHash { name, newest, state });
            }
        }
        Ok(())
    }

    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Told<()> {
        self.change_map(table, |map| map.put(key, value).map(drop))
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Told<()> {
        if let Some(recovered) = self.hash.get_mut(&table) {
            recovered.change(self.directory, key, effect);
            return Ok(());
        }
        self.change_map(table, |map| match effect {
            Effect::Put(value) => map.put(key, value).map(drop),
            Effect::Write { offset, bytes } => {
                map.update(key, |value| write(value, offset, bytes)).map(drop)
            }
            Effect::Remove => map.remove(key).map(drop),
        })
    }

    fn drop_table(&mut self, table: TableId) -> Told<()> {
        self.ordered.remove(&table);
        self.hash.remove(&table);
        Ok(())
    }
}
