//! Ours: the hash log in memory, with keys and values of 8 bytes.

use std::ops::Range;

use sapwood_hashlog::{HashLog, Layout, Options};

use super::SAPWOOD;
use crate::Error;
use crate::hash::store::{BatchStore, Store};
use crate::hash::workload::{key, value};

/// Entries of a batch while loading.
const LOADED_TOGETHER: usize = 256;
const IN_MEMORY: &str = "the keys have 8 bytes and memory has no budget";

pub(crate) struct Sapwood(HashLog);

impl Store for Sapwood {
    const NAME: &'static str = SAPWOOD;

    fn with_room(keys: u32) -> Result<Sapwood, Error> {
        let mut options = Options::default();
        options.layout = Layout::Fixed8;
        options.expected_entries = u64::from(keys);
        Ok(Sapwood(HashLog::in_memory(options)?))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get_with(&key.to_le_bytes(), word).expect(IN_MEMORY)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.put(&key.to_le_bytes(), &value.to_le_bytes()).expect(IN_MEMORY);
    }

    #[inline]
    fn increment(&self, key: u64) {
        self.0.add(&key.to_le_bytes(), 1).expect(IN_MEMORY);
    }

    fn load(&self, numbers: Range<u32>) {
        let mut batch = [([0; 8], [0; 8]); LOADED_TOGETHER];
        for begin in numbers.clone().step_by(LOADED_TOGETHER) {
            let limit = numbers.end.min(begin.saturating_add(LOADED_TOGETHER as u32));
            let entries = &mut batch[..(limit - begin) as usize];
            for (entry, number) in entries.iter_mut().zip(begin..) {
                *entry = Self::batch_entry(key(number), value(number, 0));
            }
            self.put_many(entries);
        }
    }

    fn accounted_bytes(&self) -> Option<u64> {
        Some(self.0.stats().reserved_bytes)
    }
}

impl BatchStore for Sapwood {
    type Key = [u8; 8];
    type Entry = ([u8; 8], [u8; 8]);

    #[inline]
    fn batch_key(key: u64) -> [u8; 8] {
        key.to_le_bytes()
    }

    #[inline]
    fn batch_entry(key: u64, value: u64) -> Self::Entry {
        (key.to_le_bytes(), value.to_le_bytes())
    }

    #[inline]
    fn get_many(&self, keys: &[[u8; 8]], mut read: impl FnMut(u64)) {
        let each = |_, value: Option<&[u8]>| {
            if let Some(value) = value {
                read(word(value));
            }
        };
        self.0.get_many(keys, each).expect(IN_MEMORY);
    }

    #[inline]
    fn put_many(&self, entries: &[Self::Entry]) {
        self.0.put_many(entries).expect(IN_MEMORY);
    }

    #[inline]
    fn increment_many(&self, keys: &[[u8; 8]]) {
        // Deltas stand beside their keys; batches are at most this long.
        let mut deltas = [([0; 8], 1i64); 32];
        for (delta, key) in deltas.iter_mut().zip(keys) {
            delta.0 = *key;
        }
        self.0.add_many(&deltas[..keys.len()]).expect(IN_MEMORY);
    }
}

#[inline]
fn word(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().expect("values have 8 bytes"))
}
