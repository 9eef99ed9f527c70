//! scc's hash map.

use ::scc::HashMap;

use super::Hasher;
use crate::Error;
use crate::hash::contenders::SCC;
use crate::hash::store::Store;

pub(crate) struct Scc(HashMap<u64, u64, Hasher>);

impl Store for Scc {
    const NAME: &'static str = SCC;

    fn with_room(keys: u32) -> Result<Scc, Error> {
        Ok(Scc(HashMap::with_capacity_and_hasher(keys as usize, Hasher::default())))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.read_sync(&key, |_, value| *value)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.upsert_sync(key, value);
    }

    #[inline]
    fn increment(&self, key: u64) {
        self.0.update_sync(&key, |_, value| *value += 1);
    }
}
