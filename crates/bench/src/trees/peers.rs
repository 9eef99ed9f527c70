//! Engines of this process that are light to build: the standard library's map as the floor, and
//! redb.

use std::collections::BTreeMap;

use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::store::{
    CommitLevel, TreeEngine, TreeEntry, TreeKey, TreePlace, TreeStore, TreeValue, Writers,
};
use crate::harness::*;

pub(crate) const ENGINES: [TreeEngine; 2] = [
    TreeEngine { name: "std-btreemap", open: |_| Ok(Box::new(StdMap::default())), recover: None },
    TreeEngine { name: "redb", open: open_redb, recover: None },
];

/// A map that nothing outlives and that has no transactions: what the keys cost by themselves.
#[derive(Default)]
struct StdMap(BTreeMap<TreeKey, TreeValue>);

impl TreeStore for StdMap {
    fn insert(&mut self, (key, value): &TreeEntry) -> Result {
        self.0.insert(*key, *value);
        Ok(())
    }

    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>> {
        Ok(self.0.remove(key))
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result {
        entries.iter().filter_map(|(key, _)| self.0.get(key)).for_each(|value| read(value));
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result {
        self.0.iter().for_each(|(key, value)| read(key, value));
        Ok(())
    }
}

/// Keys of 8 bytes as byte strings: numbers would be decoded at each comparison.
const TABLE: TableDefinition<'static, &[u8; 8], &[u8; 8]> = TableDefinition::new("bench");

const CACHE_BYTES: usize = 1 << 30;

type RedbTable<'t> = redb::Table<'t, &'static [u8; 8], &'static [u8; 8]>;

struct RedbTree {
    db: Database,
    durability: Durability,
}

fn open_redb(place: &TreePlace) -> Result<Box<dyn TreeStore>> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let db = builder.create(place.dir.join("redb"))?;
    let durability = match place.level {
        CommitLevel::Buffered => Durability::None,
        CommitLevel::Sync => Durability::Immediate,
    };
    let store = RedbTree { db, durability };
    store.write(|_| Ok(()))?;
    Ok(Box::new(store))
}

impl RedbTree {
    fn write<R>(
        &self,
        change: impl FnOnce(&mut RedbTable<'_>) -> Result<R, redb::StorageError>,
    ) -> Result<R> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(self.durability)?;
        let done = change(&mut transaction.open_table(TABLE)?)?;
        transaction.commit()?;
        Ok(done)
    }
}

impl TreeStore for RedbTree {
    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>> {
        self.write(|table| Ok(table.remove(key)?.map(|value| *value.value())))
    }

    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result {
        self.write(|table| {
            entries.iter().try_for_each(|(key, value)| table.insert(key, value).map(|_| ()))
        })
    }

    fn remove_all(&mut self, entries: &[TreeEntry], removed: &mut dyn FnMut(&[u8])) -> Result {
        self.write(|table| {
            for (key, _) in entries {
                if let Some(value) = table.remove(key)? {
                    removed(value.value());
                }
            }
            Ok(())
        })
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result {
        let transaction = self.db.begin_read()?;
        let table = transaction.open_table(TABLE)?;
        for (key, _) in entries {
            if let Some(value) = table.get(key)? {
                read(value.value());
            }
        }
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result {
        let transaction = self.db.begin_read()?;
        for entry in transaction.open_table(TABLE)?.iter()? {
            let (key, value) = entry?;
            read(key.value(), value.value());
        }
        Ok(())
    }

    fn writers(&self) -> Option<&dyn Writers> {
        Some(self)
    }

    /// By its pages: those of commits without durability are not in the file.
    fn bytes(&self) -> Option<u64> {
        let transaction = self.db.begin_write().ok()?;
        let stats = transaction.stats().ok()?;
        Some(stats.allocated_pages() * stats.page_size() as u64)
    }
}

impl Writers for RedbTree {
    fn insert(&self, (key, value): &TreeEntry) -> Result {
        self.write(|table| table.insert(key, value).map(|_| ()))
    }
}
