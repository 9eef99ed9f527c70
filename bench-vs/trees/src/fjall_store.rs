//! fjall: a log-structured tree. Its journal goes to the page cache with each write, or is synced.
//! Compression is off. It has no transaction here: a batch is atomic, and one thread reads before it
//! removes.

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use sapwood_bench::Error;
use sapwood_bench::trees::{TreeEntry, TreeKey, CommitLevel, TreePlace, TreeStore, TreeValue, Writers};

/// A cache and a memtable that all entries fit into.
const CACHE_BYTES: u64 = 512 << 20;

struct Fjall {
    db: Database,
    keyspace: Keyspace,
    level: CommitLevel,
}

pub fn open(place: &TreePlace) -> Result<Box<dyn TreeStore>, Error> {
    let db = Database::builder(&place.dir).cache_size(CACHE_BYTES).open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .expect_point_read_hits(true)
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
    };
    let keyspace = db.keyspace("bench", options)?;
    Ok(Box::new(Fjall { db, keyspace, level: place.level }))
}

impl Fjall {
    fn settle(&self) -> Result<(), Error> {
        match self.level {
            CommitLevel::Buffered => (),
            CommitLevel::Sync => self.db.persist(PersistMode::SyncData)?,
        }
        Ok(())
    }
}

impl TreeStore for Fjall {
    fn insert(&mut self, entry: &TreeEntry) -> Result<(), Error> {
        Writers::insert(self, entry)
    }

    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>, Error> {
        let Some(value) = self.keyspace.get(key)? else { return Ok(None) };
        self.keyspace.remove(key)?;
        self.settle()?;
        Ok(Some(TreeValue::try_from(&value[..])?))
    }

    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result<(), Error> {
        let mut batch = self.db.batch();
        for (key, value) in entries {
            batch.insert(&self.keyspace, key, value);
        }
        Ok(batch.commit()?)
    }

    fn remove_all(
        &mut self,
        entries: &[TreeEntry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let mut batch = self.db.batch();
        for (key, _) in entries {
            if let Some(value) = self.keyspace.get(key)? {
                removed(&value);
                batch.remove(&self.keyspace, key);
            }
        }
        Ok(batch.commit()?)
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        for (key, _) in entries {
            if let Some(value) = self.keyspace.get(key)? {
                read(&value);
            }
        }
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        for entry in self.keyspace.iter() {
            let (key, value) = entry.into_inner()?;
            read(&key, &value);
        }
        Ok(())
    }

    fn writers(&self) -> Option<&dyn Writers> {
        Some(self)
    }
}

impl Writers for Fjall {
    fn insert(&self, (key, value): &TreeEntry) -> Result<(), Error> {
        self.keyspace.insert(key, value)?;
        self.settle()
    }
}
