//! RocksDB: direct reads, so that the budget is all the memory that it has. A quarter of the budget
//! is for memtables, the rest for the block cache, which holds index and filter blocks too.

use std::sync::Arc;

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WriteBatch, WriteOptions};
use sapwood_bench::Error;
use sapwood_bench::hash::spill::{SpillKey, SpillPlace, SpillStore, SpillValue};

use crate::stripes::{Stripes, incremented};

struct Rocks {
    db: DB,
    unsynced: WriteOptions,
    stripes: Stripes,
}

pub fn open(place: &SpillPlace) -> Result<Arc<dyn SpillStore>, Error> {
    let budget = place.budget_bytes as usize;
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(budget / 4 * 3));
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_use_direct_reads(true);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_write_buffer_size(budget / 16);
    options.set_max_write_buffer_number(4);
    options.set_db_write_buffer_size(budget / 4);
    options.increase_parallelism(std::thread::available_parallelism()?.get() as i32);
    let mut unsynced = WriteOptions::default();
    unsynced.set_sync(false);
    // Sapwood writes no log of its own either until a checkpoint.
    unsynced.disable_wal(true);
    let db = DB::open(&options, &place.dir)?;
    Ok(Arc::new(Rocks { db, unsynced, stripes: Stripes::new() }))
}

impl SpillStore for Rocks {
    fn get(&self, key: &SpillKey, read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if let Some(value) = self.db.get_pinned(key)? {
            read(&value);
        }
        Ok(())
    }

    fn put(&self, key: &SpillKey, value: &SpillValue) -> Result<(), Error> {
        Ok(self.db.put_opt(key, value, &self.unsynced)?)
    }

    fn increment(&self, key: &SpillKey) -> Result<(), Error> {
        let _alone = self.stripes.lock(key);
        if let Some(value) = self.db.get_pinned(key)? {
            self.db.put_opt(key, incremented(&value), &self.unsynced)?;
        }
        Ok(())
    }

    fn put_many(&self, entries: &[(SpillKey, SpillValue)]) -> Result<(), Error> {
        let mut batch = WriteBatch::default();
        for (key, value) in entries {
            batch.put(key, value);
        }
        Ok(self.db.write_opt(batch, &self.unsynced)?)
    }

    fn get_many(&self, keys: &[SpillKey], read: &mut dyn FnMut(usize, &[u8])) -> Result<(), Error> {
        for (i, value) in self.db.multi_get(keys).into_iter().enumerate() {
            if let Some(value) = value? {
                read(i, &value);
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        self.db.flush()?;
        self.db.wait_for_compact(&rocksdb::WaitForCompactOptions::default())?;
        Ok(())
    }
}
