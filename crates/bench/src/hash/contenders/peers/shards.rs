//! hashbrown tables, each behind a lock of its own.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use parking_lot::RwLock;

use super::Hasher;
use crate::Error;
use crate::hash::contenders::SHARDS;
use crate::hash::store::Store;

/// Shards; so many that two threads seldom meet.
const COUNT: usize = 1024;
/// Room above the mean, for shards that get more than their share: over six deviations at 50
/// million keys.
const ROOM: f64 = 1.03;

/// Padded, so that locks do not share cache lines.
#[repr(align(64))]
struct Shard(RwLock<HashTable<(u64, u64)>>);

pub(crate) struct Shards {
    shards: Box<[Shard]>,
    hasher: Hasher,
}

impl Shards {
    /// The hash, taken once, and its shard: from bits that the tables do not use.
    #[inline]
    fn find(&self, key: u64) -> (u64, &RwLock<HashTable<(u64, u64)>>) {
        let hash = self.hasher.hash_one(key);
        (hash, &self.shards[(hash >> 40) as usize % COUNT].0)
    }
}

impl Store for Shards {
    const NAME: &'static str = SHARDS;

    fn with_room(keys: u32) -> Result<Shards, Error> {
        let room = (f64::from(keys) / COUNT as f64 * ROOM) as usize + 1;
        let shard = || Shard(RwLock::new(HashTable::with_capacity(room)));
        Ok(Shards { shards: (0..COUNT).map(|_| shard()).collect(), hasher: Hasher::default() })
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        let (hash, shard) = self.find(key);
        shard.read().find(hash, |entry| entry.0 == key).map(|entry| entry.1)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        let (hash, shard) = self.find(key);
        let mut table = shard.write();
        if let Some(entry) = table.find_mut(hash, |entry| entry.0 == key) {
            entry.1 = value;
        } else {
            table.insert_unique(hash, (key, value), |entry| self.hasher.hash_one(entry.0));
        }
    }

    #[inline]
    fn increment(&self, key: u64) {
        let (hash, shard) = self.find(key);
        if let Some(entry) = shard.write().find_mut(hash, |entry| entry.0 == key) {
            entry.1 += 1;
        }
    }
}
