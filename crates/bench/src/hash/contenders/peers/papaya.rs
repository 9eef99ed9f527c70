//! papaya, with values that are replaced and with values that change in place.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ::papaya::HashMap;

use super::Hasher;
use crate::Error;
use crate::hash::contenders::{PAPAYA, PAPAYA_ATOMIC};
use crate::hash::store::Store;

fn with_room<V>(keys: u32) -> HashMap<u64, V, Hasher> {
    HashMap::builder().capacity(keys as usize).hasher(Hasher::default()).build()
}

/// An update allocates an entry and retires the old one.
pub(crate) struct Plain(HashMap<u64, u64, Hasher>);

impl Store for Plain {
    const NAME: &'static str = PAPAYA;

    fn with_room(keys: u32) -> Result<Plain, Error> {
        Ok(Plain(with_room(keys)))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.pin().get(&key).copied()
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.pin().insert(key, value);
    }

    #[inline]
    fn increment(&self, key: u64) {
        self.0.pin().update(key, |value| value + 1);
    }
}

/// An update stores to the entry that is there.
pub(crate) struct Atomic(HashMap<u64, AtomicU64, Hasher>);

impl Store for Atomic {
    const NAME: &'static str = PAPAYA_ATOMIC;

    fn with_room(keys: u32) -> Result<Atomic, Error> {
        Ok(Atomic(with_room(keys)))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.pin().get(&key).map(|value| value.load(Relaxed))
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        let map = self.0.pin();
        match map.get(&key) {
            Some(cell) => cell.store(value, Relaxed),
            None => {
                map.insert(key, AtomicU64::new(value));
            }
        }
    }

    #[inline]
    fn increment(&self, key: u64) {
        if let Some(cell) = self.0.pin().get(&key) {
            cell.fetch_add(1, Relaxed);
        }
    }
}
