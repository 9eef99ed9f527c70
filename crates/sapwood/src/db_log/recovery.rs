//! Tables from what the log tells.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sapwood_chunkmap::ChunkMap;
use sapwood_engine::Effect;
use sapwood_hashlog::HashLog;
use sapwood_wal::{Recovery, TableId};

use super::Description;
use crate::directory::Directory;
use crate::{Error, LogError, OrderedEngineError, OrderedTable, OrderedTableOptions, aggregate};

/// The tables that were told so far.
pub(super) struct Tables<'d> {
    directory: &'d Directory,
    pub(super) ordered: BTreeMap<TableId, Recovered>,
    pub(super) hash: BTreeMap<TableId, RecoveredHash>,
}

/// A hash table, which is opened when the log has a change of it.
pub(super) struct RecoveredHash {
    pub(super) name: Arc<str>,
    /// Its newest checkpoint when the log had one last.
    pub(super) newest: u64,
    pub(super) state: HashState,
}

pub(super) enum HashState {
    Unchanged,
    Open(HashLog, Option<aggregate::Layout>),
    /// It does not open, or may not be changed.
    Unrecovered(Error),
}

/// An ordered table without a journal.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) name: Arc<str>,
    pub(super) options: OrderedTableOptions,
    pub(super) map: ChunkMap,
}

impl Recovered {
    /// The map with all its entries.
    pub(super) fn finish(self) -> (Arc<str>, OrderedTableOptions, ChunkMap) {
        let map = self.map.with_memory_budget(self.options.memory_budget);
        (self.name, self.options, map)
    }
}

/// Why an opening ended.
#[derive(Debug)]
pub(super) enum Stopped {
    Log(LogError),
    Table(Error),
}

impl From<LogError> for Stopped {
    fn from(cause: LogError) -> Stopped {
        Stopped::Log(cause)
    }
}

impl Stopped {
    pub(super) fn named(self, path: &Path) -> Error {
        match self {
            Stopped::Log(cause) => Error::Log { path: path.to_owned(), cause },
            Stopped::Table(error) => error,
        }
    }
}

type Result<T> = std::result::Result<T, Stopped>;

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

    fn open(&self, directory: &Directory) -> crate::Result<(HashLog, Option<aggregate::Layout>)> {
        if directory.is_read_only() {
            let (name, path) = (self.name.to_string(), directory.path().to_owned());
            return Err(Error::Unrecovered { name, path });
        }
        let folder = directory.folder(&self.name)?;
        let stored = folder.read_options()?;
        let log = HashLog::open(folder.disk, stored.engine())
            .map_err(|cause| Error::HashEngine { table: Arc::clone(&self.name), cause })?;
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
    pub(super) fn new(directory: &'d Directory) -> Tables<'d> {
        Tables { directory, ordered: BTreeMap::new(), hash: BTreeMap::new() }
    }

    fn change_map(
        &self,
        table: TableId,
        change: impl FnOnce(&ChunkMap) -> std::result::Result<(), OrderedEngineError>,
    ) -> Result<()> {
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
    ) -> Result<()> {
        let damaged = |what| {
            let what = format!("the description of table `{name}` cannot be read: {what}");
            Stopped::Log(LogError::CorruptFile { file: "the log".to_owned(), offset: 0, what })
        };
        let name: Arc<str> = name.into();
        match Description::decode(description).map_err(damaged)? {
            Description::Ordered(options) => {
                // What was there is put in again, whatever of the budget that takes.
                let unlimited = OrderedTableOptions { memory_budget: None, ..options.clone() };
                let map = OrderedTable::new_map(&name, &unlimited).map_err(Stopped::Table)?;
                self.ordered.insert(table, Recovered { name, options, map });
            }
            Description::Hash => {
                let (newest, state) = (own.unwrap_or(0), HashState::Unchanged);
                self.hash.insert(table, RecoveredHash { name, newest, state });
            }
        }
        Ok(())
    }

    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.change_map(table, |map| map.put(key, value).map(drop))
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Result<()> {
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

    fn drop_table(&mut self, table: TableId) -> Result<()> {
        self.ordered.remove(&table);
        self.hash.remove(&table);
        Ok(())
    }
}
