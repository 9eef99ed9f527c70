//! moka, with twice the room, so that it evicts nothing.

use ::moka::ops::compute::Op;
use ::moka::sync::Cache;

use super::Hasher;
use crate::Error;
use crate::hash::contenders::MOKA;
use crate::hash::store::Store;

pub(crate) struct Moka(Cache<u64, u64, Hasher>);

impl Store for Moka {
    const NAME: &'static str = MOKA;

    fn with_room(keys: u32) -> Result<Moka, Error> {
        let cache = Cache::builder()
            .max_capacity(u64::from(keys) * 2)
            .initial_capacity(keys as usize)
            .build_with_hasher(Hasher::default());
        Ok(Moka(cache))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    #[inline]
    fn increment(&self, key: u64) {
        self.0.entry(key).and_compute_with(|entry| match entry {
            Some(entry) => Op::Put(entry.into_value() + 1),
            None => Op::Nop,
        });
    }
}
