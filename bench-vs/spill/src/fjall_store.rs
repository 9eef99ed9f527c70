//! fjall: a log-structured tree with a cache of its own, which gets three quarters of the budget,
//! the memtable the rest; the kernel caches its files too. Its journal is not synced.

use std::sync::Arc;

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};
use sapwood_bench::Error;
use sapwood_bench::hash::spill::{SpillKey, SpillPlace, SpillStore, SpillValue};

use crate::stripes::{Stripes, incremented};

struct Fjall {
    db: Database,
    keyspace: Keyspace,
    stripes: Stripes,
}

pub fn open(place: &SpillPlace) -> Result<Arc<dyn SpillStore>, Error> {
    let db = Database::builder(&place.dir)
        .cache_size(place.budget_bytes / 4 * 3)
        .manual_journal_persist(true)
        .open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size((place.budget_bytes / 4).max(1 << 20))
            .expect_point_read_hits(true)
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
    };
    let keyspace = db.keyspace("spill", options)?;
    Ok(Arc::new(Fjall { db, keyspace, stripes: Stripes::new() }))
}

impl SpillStore for Fjall {
    fn get(&self, key: &SpillKey, read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if let Some(value) = self.keyspace.get(key)? {
            read(&value);
        }
        Ok(())
    }

    fn put(&self, key: &SpillKey, value: &SpillValue) -> Result<(), Error> {
        Ok(self.keyspace.insert(key, value)?)
    }

    fn increment(&self, key: &SpillKey) -> Result<(), Error> {
        let _alone = self.stripes.lock(key);
        if let Some(value) = self.keyspace.get(key)? {
            self.keyspace.insert(key, incremented(&value))?;
        }
        Ok(())
    }

    fn put_many(&self, entries: &[(SpillKey, SpillValue)]) -> Result<(), Error> {
        let mut batch = self.db.batch();
        for (key, value) in entries {
            batch.insert(&self.keyspace, key, value);
        }
        Ok(batch.commit()?)
    }
}
