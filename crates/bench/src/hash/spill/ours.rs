//! The hash log as a spilling store: on files, under a memory budget.

use std::sync::Arc;

use sapwood_disk::FileDisk;
use sapwood_hashlog::{ColdReads, HashLog, Options};

use super::STAY;
use super::store::{SpillEngine, SpillKey, SpillPlace, SpillStore, SpillValue, VALUE_BYTES};
use crate::harness::*;
use crate::hash::engines::SAPWOOD;

/// The log is long once its files are so many times what the entries take. Compacting it would do
/// as well and take longer than the load.
const LONG: u64 = 4;

/// The engines of this workspace: what is read from the disk comes back into memory, or stays where
/// it is.
#[must_use]
pub fn engines() -> [SpillEngine; 2] {
    let batches = &[64, 1024];
    [
        SpillEngine { name: SAPWOOD, batches, open: |place| open(place, ColdReads::CopyToTail) },
        SpillEngine { name: STAY, batches, open: |place| open(place, ColdReads::Stay) },
    ]
}

struct SpillingLog {
    log: HashLog,
    entries_bytes: u64,
}

fn open(place: &SpillPlace, cold_reads: ColdReads) -> Result<Arc<dyn SpillStore>> {
    let mut options = Options::default();
    options.memory_budget = Some(place.budget_bytes);
    options.expected_entries = u64::from(place.keys);
    options.cold_reads = cold_reads;
    // Between workloads instead, so that each is measured alone.
    options.compaction = None;
    // Small stores have small pages, so that several of them fit into the budget.
    while (options.page_bytes as u64) * 32 > place.budget_bytes {
        options.page_bytes /= 2;
    }
    let log = HashLog::open(Arc::new(FileDisk::open(&place.dir)?), options)?;
    let entries_bytes = u64::from(place.keys) * (8 + VALUE_BYTES as u64);
    Ok(Arc::new(SpillingLog { log, entries_bytes }))
}

impl SpillStore for SpillingLog {
    fn get(&self, key: &SpillKey, read: &mut dyn FnMut(&[u8])) -> Result {
        self.log.get_with(key, read)?;
        Ok(())
    }

    fn put(&self, key: &SpillKey, value: &SpillValue) -> Result {
        Ok(self.log.put(key, value)?)
    }

    fn increment(&self, key: &SpillKey) -> Result {
        self.log.update(key, |value| increment(value))?;
        Ok(())
    }

    fn put_many(&self, entries: &[(SpillKey, SpillValue)]) -> Result {
        Ok(self.log.put_many(entries)?)
    }

    fn get_many(&self, keys: &[SpillKey], read: &mut dyn FnMut(usize, &[u8])) -> Result {
        let each = |i, value: Option<&[u8]>| {
            if let Some(value) = value {
                read(i, value);
            }
        };
        Ok(self.log.get_many(keys, each)?)
    }

    fn increment_many(&self, keys: &[SpillKey]) -> Result {
        self.log.update_many(keys, |_, value| increment(value))?;
        Ok(())
    }

    fn fetched(&self) -> Option<u64> {
        Some(self.log.stats().cold_reads)
    }

    fn accounted_bytes(&self) -> Option<u64> {
        Some(self.log.stats().reserved_bytes)
    }

    fn is_long(&self) -> bool {
        self.log.stats().file_bytes > self.entries_bytes * LONG
    }
}
