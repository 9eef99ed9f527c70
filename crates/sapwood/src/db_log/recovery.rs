//! Tables from what the log tells.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sapwood_chunkmap::ChunkMap;
use sapwood_engine::Effect;
use sapwood_wal::{Recovery, TableId};

use super::Description;
use crate::{Error, LogError, OrderedEngineError, OrderedTable, OrderedTableOptions};

/// The tables that were told so far.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) ordered: BTreeMap<TableId, Recovered>,
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

impl Tables {
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

impl Recovery<Stopped> for Tables {
    fn create(
        &mut self,
        table: TableId,
        name: &str,
        description: &[u8],
        _own: Option<u64>,
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
        }
        Ok(())
    }

    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.change_map(table, |map| map.put(key, value).map(drop))
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Result<()> {
        self.change_map(table, |map| match effect {
            Effect::Put(value) => map.put(key, value).map(drop),
            Effect::Write { offset, bytes } => map
                .update(key, |value| {
                    let end = offset.saturating_add(bytes.len());
                    if let Some(there) = value.get_mut(offset..end) {
                        there.copy_from_slice(bytes);
                    }
                })
                .map(drop),
            Effect::Remove => map.remove(key).map(drop),
        })
    }

    fn drop_table(&mut self, table: TableId) -> Result<()> {
        self.ordered.remove(&table);
        Ok(())
    }
}
