//! dashmap, with as many shards as it chooses.

use ::dashmap::DashMap;

use super::Hasher;
use crate::Error;
use crate::hash::contenders::DASHMAP;
use crate::hash::store::Store;

pub(crate) struct Dash(DashMap<u64, u64, Hasher>);

impl Store for Dash {
    const NAME: &'static str = DASHMAP;

    fn with_room(keys: u32) -> Result<Dash, Error> {
        Ok(Dash(DashMap::with_capacity_and_hasher(keys as usize, Hasher::default())))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key).map(|value| *value)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    #[inline]
    fn increment(&self, key: u64) {
        if let Some(mut value) = self.0.get_mut(&key) {
            *value += 1;
        }
    }
}
