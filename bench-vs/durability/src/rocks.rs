//! RocksDB: a log-structured tree with a write-ahead log, which is off, in the page cache, or synced.
//! Compression is off.

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WriteBatch, WriteOptions};
use sapwood_bench::Error;
use sapwood_bench::durability::{Level, DurablePlace, DurableStore};

/// A cache that all entries fit into, and memtables.
const CACHE_BYTES: usize = 512 << 20;
const MEMTABLE_BYTES: usize = 64 << 20;

struct Rocks {
    db: DB,
    write: WriteOptions,
}

pub fn open(place: &DurablePlace) -> Result<Option<Box<dyn DurableStore>>, Error> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    blocks.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.increase_parallelism(std::thread::available_parallelism()?.get() as i32);
    let db = DB::open(&options, &place.dir)?;
    let mut write = WriteOptions::default();
    match place.level {
        Level::Memory => write.disable_wal(true),
        Level::Buffered | Level::Async => write.set_sync(false),
        Level::Sync => write.set_sync(true),
    }
    Ok(Some(Box::new(Rocks { db, write })))
}

impl DurableStore for Rocks {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.db.put_opt(key, value, &self.write)?)
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let mut batch = WriteBatch::default();
        for (key, value) in entries {
            batch.put(key, value);
        }
        Ok(self.db.write_opt(batch, &self.write)?)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if let Some(value) = self.db.get_pinned(key)? {
            read(&value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.db.flush_wal(true)?)
    }
}
