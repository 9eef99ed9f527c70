//! fjall: a log-structured tree. Its journal goes to the page cache with each write, or is synced.
//! Compression is off. It has no level that outlives nothing.

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use sapwood_bench::Error;
use sapwood_bench::durability::{Level, DurablePlace, DurableStore};

/// A cache that all entries fit into.
const CACHE_BYTES: u64 = 512 << 20;

struct Fjall {
    db: Database,
    keyspace: Keyspace,
    level: Level,
}

pub fn open(place: &DurablePlace) -> Result<Option<Box<dyn DurableStore>>, Error> {
    if place.level == Level::Memory {
        return Ok(None);
    }
    let db = Database::builder(&place.dir).cache_size(CACHE_BYTES).open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .expect_point_read_hits(true)
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
    };
    let keyspace = db.keyspace("bench", options)?;
    Ok(Some(Box::new(Fjall { db, keyspace, level: place.level })))
}

impl DurableStore for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.keyspace.insert(key, value)?;
        match self.level {
            Level::Sync => self.sync(),
            Level::Memory | Level::Buffered | Level::Async => Ok(()),
        }
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let mut batch = self.db.batch();
        for (key, value) in entries {
            batch.insert(&self.keyspace, &key[..], &value[..]);
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if let Some(value) = self.keyspace.get(key)? {
            read(&value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.db.persist(PersistMode::SyncData)?)
    }
}
