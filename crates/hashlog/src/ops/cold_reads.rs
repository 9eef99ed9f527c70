//! Records below `head`: from the read cache, or from the disk.

use crate::error::Result;
use crate::log::cold::{self, ColdRecord, Source};
use crate::ops::store::Store;
use crate::record::Form;
use crate::record::address::Address;

impl Store {
    /// The record at an address below `head`, read if it is not in the read cache.
    pub(crate) fn cold_record<F: Form>(&self, address: Address) -> Result<ColdRecord> {
        if let Some(record) = self.cached_record(address) {
            return Ok(record);
        }
        self.cold_reads.add(1);
        cold::fetch::<F>(&self.log, address)
    }

    /// The same, if the read cache has it.
    pub(crate) fn cached_record(&self, address: Address) -> Option<ColdRecord> {
        let bytes = self.read_cache.as_ref()?.get(address)?;
        self.cached_reads.add(1);
        Some(ColdRecord::kept(address, bytes))
    }

    /// Keeps a record in the read cache that a get was answered by.
    pub(crate) fn keep_read(&self, record: &ColdRecord) {
        let Some(cache) = &self.read_cache else { return };
        // What comes back by itself need not be kept.
        if record.source == Source::ReadCache || self.log.comes_back(record.address) {
            return;
        }
        if !cache.has_begun() {
            // Pages that have its bytes go as the next ones are filled.
            if self.log.takes_more(self.bytes_beside()) {
                return;
            }
            cache.begin();
        }
        cache.keep(record.address, record.bytes());
    }

    /// Bytes that are taken by the read cache, or left to it: as soon as some records lie on the disk
    /// alone.
    pub(crate) fn read_cache_bytes(&self) -> u64 {
        match &self.read_cache {
            Some(cache) if cache.has_begun() || self.log.has_cold() => cache.bytes(),
            _ => 0,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
