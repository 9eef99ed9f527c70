//! redb: a B-tree in one file with a cache of its own, which gets the budget; the kernel caches the
//! file too. One transaction an operation, without durability.

use std::sync::Arc;

use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use sapwood_bench::Error;
use sapwood_bench::hash::spill::{SpillKey, SpillPlace, SpillStore, SpillValue};

use crate::stripes::incremented;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("spill");

struct Redb(Database);

pub fn open(place: &SpillPlace) -> Result<Arc<dyn SpillStore>, Error> {
    let mut builder = Builder::new();
    builder.set_cache_size(place.budget_bytes as usize);
    let store = Redb(builder.create(place.dir.join("redb"))?);
    store.write(Durability::Immediate, |_| Ok(()))?;
    Ok(Arc::new(store))
}

impl Redb {
    fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut redb::Table<'_, &'static [u8], &'static [u8]>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(durability)?;
        change(&mut transaction.open_table(TABLE)?)?;
        Ok(transaction.commit()?)
    }
}

impl SpillStore for Redb {
    fn get(&self, key: &SpillKey, read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let transaction = self.0.begin_read()?;
        if let Some(value) = transaction.open_table(TABLE)?.get(key.as_slice())? {
            read(value.value());
        }
        Ok(())
    }

    fn put(&self, key: &SpillKey, value: &SpillValue) -> Result<(), Error> {
        self.put_many(&[(*key, *value)])
    }

    fn increment(&self, key: &SpillKey) -> Result<(), Error> {
        // There is one writer at a time.
        self.write(Durability::None, |table| {
            let changed = table.get(key.as_slice())?.map(|value| incremented(value.value()));
            if let Some(value) = changed {
                table.insert(key.as_slice(), value.as_slice())?;
            }
            Ok(())
        })
    }

    fn put_many(&self, entries: &[(SpillKey, SpillValue)]) -> Result<(), Error> {
        self.write(Durability::None, |table| {
            for (key, value) in entries {
                table.insert(key.as_slice(), value.as_slice())?;
            }
            Ok(())
        })
    }

    fn settle(&self) -> Result<(), Error> {
        // Pages of commits without durability are given back by one with it.
        self.write(Durability::Immediate, |_| Ok(()))
    }
}
