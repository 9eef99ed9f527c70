//! FASTER on a file system: of its log as much lies in memory as the budget says. Its buckets come on
//! top, to its favour: with them it could not keep to the budget, as its log has six pages of 32 MiB
//! and its buckets have two of 64 MiB at least.
//!
//! It reads past the kernel's page cache. A single call waits for its answer; the calls of a batch are
//! in flight together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_bench::Error;
use sapwood_bench::hash::spill::{SpillKey, SpillPlace, SpillStore, VALUE_BYTES, SpillValue};

use crate::native::Spill;

const PAGE_BYTES: u64 = 32 << 20;
/// FASTER wants so many pages that it no longer changes in place, and two that it does.
const PAGES_READ_ONLY: u64 = 4;
const PAGES_LEAST: u64 = PAGES_READ_ONLY + 2;
/// Keys of a bucket, as in its benchmark.
const KEYS_OF_BUCKET: u64 = 2;
const BUCKET_BYTES: u64 = 64;
/// The log is long once it is so many times what the entries take.
const LONG: u64 = 4;

struct Faster {
    store: Spill,
    /// Entries read from the disk.
    fetched: AtomicU64,
    memory_bytes: u64,
    entries_bytes: u64,
}

pub fn open(place: &SpillPlace) -> Result<Arc<dyn SpillStore>, Error> {
    let pages = place.budget_bytes.div_ceil(PAGE_BYTES).max(PAGES_LEAST);
    let buckets = (u64::from(place.keys) / KEYS_OF_BUCKET).next_power_of_two();
    // The half rounds up what is cut off.
    let mutable = (pages - PAGES_READ_ONLY) as f64 + 0.5;
    let store = Spill::open(&place.dir, buckets, pages * PAGE_BYTES, mutable / pages as f64)?;
    Ok(Arc::new(Faster {
        store,
        fetched: AtomicU64::new(0),
        memory_bytes: pages * PAGE_BYTES + buckets * BUCKET_BYTES,
        entries_bytes: u64::from(place.keys) * (8 + VALUE_BYTES as u64),
    }))
}

impl Faster {
    fn note(&self, fetched: u64) {
        if fetched > 0 {
            self.fetched.fetch_add(fetched, Ordering::Relaxed);
        }
    }
}

fn word(key: &SpillKey) -> u64 {
    u64::from_le_bytes(*key)
}

impl SpillStore for Faster {
    fn enter(&self) {
        self.store.enter();
    }

    fn leave(&self) {
        self.store.leave();
    }

    fn get(&self, key: &SpillKey, read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let (mut value, mut is_found) = ([[0; VALUE_BYTES]], [false]);
        self.note(self.store.read(&[word(key)], &mut value, &mut is_found));
        if is_found[0] {
            read(&value[0]);
        }
        Ok(())
    }

    fn put(&self, key: &SpillKey, value: &SpillValue) -> Result<(), Error> {
        self.store.upsert(word(key), value);
        Ok(())
    }

    fn increment(&self, key: &SpillKey) -> Result<(), Error> {
        self.note(self.store.increment(&[word(key)]));
        Ok(())
    }

    fn get_many(&self, keys: &[SpillKey], read: &mut dyn FnMut(usize, &[u8])) -> Result<(), Error> {
        let words: Vec<u64> = keys.iter().map(word).collect();
        let mut values = vec![[0; VALUE_BYTES]; keys.len()];
        let mut are_found = vec![false; keys.len()];
        self.note(self.store.read(&words, &mut values, &mut are_found));
        for (i, (value, is_found)) in values.iter().zip(are_found).enumerate() {
            if is_found {
                read(i, value);
            }
        }
        Ok(())
    }

    fn increment_many(&self, keys: &[SpillKey]) -> Result<(), Error> {
        let words: Vec<u64> = keys.iter().map(word).collect();
        self.note(self.store.increment(&words));
        Ok(())
    }

    fn fetched(&self) -> Option<u64> {
        Some(self.fetched.load(Ordering::Relaxed))
    }

    fn accounted_bytes(&self) -> Option<u64> {
        Some(self.memory_bytes)
    }

    fn is_long(&self) -> bool {
        self.store.log_bytes() > self.entries_bytes * LONG
    }
}
