//! One map under one lock: what a program has before it looks for anything better.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::Hasher;
use crate::Error;
use crate::hash::contenders::DICTIONARY;
use crate::hash::store::Store;

pub(crate) struct Dictionary(Mutex<HashMap<u64, u64, Hasher>>);

impl Store for Dictionary {
    const NAME: &'static str = DICTIONARY;

    fn with_room(keys: u32) -> Result<Dictionary, Error> {
        let map = HashMap::with_capacity_and_hasher(keys as usize, Hasher::default());
        Ok(Dictionary(Mutex::new(map)))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.lock().get(&key).copied()
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.lock().insert(key, value);
    }

    #[inline]
    fn increment(&self, key: u64) {
        if let Some(value) = self.0.lock().get_mut(&key) {
            *value += 1;
        }
    }
}
