//! Tables of a simple kind over a log, and what should be in them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use sapwood_disk::log::Durability;
use sapwood_disk::{Disk, SimDisk};
use sapwood_engine::{Effect, Journal};
use sapwood_wal::{self as wal, Contents, Error, Recovery, Result, TableId, Wal, WalOptions};

pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// All tables, by name.
pub(crate) type Tables = BTreeMap<String, Entries>;

/// A map behind a lock that tells its changes before it makes them.
#[derive(Debug)]
pub(crate) struct MapTable {
    entries: Mutex<Entries>,
    journal: Arc<dyn Journal>,
    /// Done by the next snapshot once it has told an entry.
    pub(crate) within_snapshot: Mutex<Option<fn(&MapTable)>>,
}

impl MapTable {
    fn new(entries: Entries, journal: Arc<dyn Journal>) -> Arc<MapTable> {
        let within_snapshot = Mutex::default();
        Arc::new(MapTable { entries: Mutex::new(entries), journal, within_snapshot })
    }

    pub(crate) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().expect("no panic")
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) {
        let mut entries = self.entries();
        self.journal.log(key, Effect::Put(value));
        entries.insert(key.to_vec(), value.to_vec());
    }

    /// Tells if the log has room for a value.
    pub(crate) fn may_put(&self, key: &[u8], value: &[u8]) -> bool {
        let claimed = self.journal.claim(key.len() + value.len(), 1);
        claimed.map(|claimed| self.journal.give_back(claimed)).is_ok()
    }

    /// Writes into a value that is long enough.
    pub(crate) fn write(&self, key: &[u8], offset: usize, bytes: &[u8]) {
        let mut entries = self.entries();
        let value = entries.get_mut(key).and_then(|value| value.get_mut(offset..));
        let Some(value) = value.and_then(|value| value.get_mut(..bytes.len())) else { return };
        self.journal.log(key, Effect::Write { offset, bytes });
        value.copy_from_slice(bytes);
    }

    pub(crate) fn remove(&self, key: &[u8]) {
        let mut entries = self.entries();
        self.journal.log(key, Effect::Remove);
        entries.remove(key);
    }
}

impl wal::Entries for MapTable {
    fn for_each(&self, entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        // Entry by entry, so that others change between.
        let mut next = self.entries().first_key_value().map(|(key, _)| key.clone());
        while let Some(key) = next {
            let value = self.entries().get(&key).cloned();
            if let Some(value) = value {
                entry(&key, &value)?;
                let within = self.within_snapshot.lock().expect("no panic").take();
                if let Some(within) = within {
                    within(self);
                }
            }
            next = self
                .entries()
                .range(key.clone()..)
                .map(|(key, _)| key)
                .find(|k| **k != key)
                .cloned();
        }
        Ok(())
    }
}

/// A log with its tables.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) wal: Wal,
    pub(crate) tables: BTreeMap<String, (TableId, Arc<MapTable>)>,
}

/// Collects what opening tells.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) tables: BTreeMap<TableId, (String, Entries)>,
}

impl Recovery<Error> for Told {
    fn create(
        &mut self,
        table: TableId,
        name: &str,
        description: &[u8],
        own: Option<u64>,
    ) -> Result<()> {
        assert_eq!(own, None);
        assert_eq!(description, format!("of {name}").as_bytes());
        let known = self.tables.insert(table, (name.to_owned(), Entries::new()));
        assert_eq!(known, None, "told once");
        Ok(())
    }

    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        let (_, entries) = self.tables.get_mut(&table).expect("told");
        assert_eq!(entries.insert(key.to_vec(), value.to_vec()), None, "an entry comes once");
        Ok(())
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Result<()> {
        let (_, entries) = self.tables.get_mut(&table).expect("told");
        match effect {
            Effect::Put(value) => drop(entries.insert(key.to_vec(), value.to_vec())),
            Effect::Write { offset, bytes } => {
                let value = entries.get_mut(key).and_then(|value| value.get_mut(offset..));
                if let Some(value) = value.and_then(|value| value.get_mut(..bytes.len())) {
                    value.copy_from_slice(bytes);
                }
            }
            Effect::Remove => drop(entries.remove(key)),
        }
        Ok(())
    }
}

impl Told {
    pub(crate) fn contents(&self) -> Tables {
        self.tables.values().cloned().collect()
    }
}

pub(crate) fn options(durability: Durability) -> WalOptions {
    WalOptions::default().durability(durability).id(0x5a9)
}

impl World {
    pub(crate) fn create(disk: &SimDisk, durability: Durability) -> Result<World> {
        World::create_with(disk, options(durability))
    }

    pub(crate) fn create_with(disk: &SimDisk, options: WalOptions) -> Result<World> {
        let wal = Wal::create(Arc::new(disk.clone()), options)?;
        Ok(World { wal, tables: BTreeMap::new() })
    }

    pub(crate) fn open(disk: &SimDisk, durability: Durability) -> Result<World> {
        let mut told = Told::default();
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let wal = Wal::open(disk, options(durability), &mut told)?;
        let mut tables = BTreeMap::new();
        for (id, (name, entries)) in told.tables {
            let table = MapTable::new(entries, wal.journal(id));
            wal.adopt(id, Contents::Entries(table.clone()));
            tables.insert(name, (id, table));
        }
        Ok(World { wal, tables })
    }

    pub(crate) fn make_table(&mut self, name: &str) -> Result<()> {
        let id = self.wal.reserve();
        let table = MapTable::new(Entries::new(), self.wal.journal(id));
        self.wal.create_table(
            id,
            name,
            format!("of {name}").as_bytes(),
            Contents::Entries(table.clone()),
        )?;
        self.tables.insert(name.to_owned(), (id, table));
        Ok(())
    }

    pub(crate) fn drop_table(&mut self, name: &str) -> Result<()> {
        let Some((id, _)) = self.tables.get(name) else { return Ok(()) };
        self.wal.drop_table(*id)?;
        self.tables.remove(name);
        Ok(())
    }

    pub(crate) fn table(&self, name: &str) -> &MapTable {
        &self.tables[name].1
    }

    pub(crate) fn contents(&self) -> Tables {
        let contents = self.tables.iter();
        contents.map(|(name, (_, table))| (name.clone(), table.entries().clone())).collect()
    }
}
