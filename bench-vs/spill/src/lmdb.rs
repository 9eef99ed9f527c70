//! LMDB through heed: a memory map that the kernel caches. One transaction an operation, nothing
//! synced; readers keep no thread-local state.

use std::sync::Arc;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use sapwood_bench::Error;
use sapwood_bench::hash::spill::{SpillKey, SpillPlace, SpillStore, VALUE_BYTES, SpillValue};

use crate::stripes::incremented;

/// Room in the map for each byte of keys and values: pages are half empty at worst, and copies of
/// changed pages stand beside them.
const ROOM: usize = 8;

struct Lmdb {
    env: Env<WithoutTls>,
    db: Database<Bytes, Bytes>,
}

pub fn open(place: &SpillPlace) -> Result<Arc<dyn SpillStore>, Error> {
    let page_bytes = 1 << 20;
    let room = (place.keys as usize * (8 + VALUE_BYTES) * ROOM).next_multiple_of(page_bytes);
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(room.max(64 << 20));
    // SAFETY: the folder is fresh and ours alone, nothing truncates its file, and what is lost in
    // a crash is not read again.
    let env = unsafe {
        options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC | EnvFlags::NO_READ_AHEAD);
        options.open(&place.dir)?
    };
    let mut transaction = env.write_txn()?;
    let db = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Arc::new(Lmdb { env, db }))
}

impl SpillStore for Lmdb {
    fn get(&self, key: &SpillKey, read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let transaction = self.env.read_txn()?;
        if let Some(value) = self.db.get(&transaction, key)? {
            read(value);
        }
        Ok(())
    }

    fn put(&self, key: &SpillKey, value: &SpillValue) -> Result<(), Error> {
        self.put_many(&[(*key, *value)])
    }

    fn increment(&self, key: &SpillKey) -> Result<(), Error> {
        // There is one writer at a time.
        let mut transaction = self.env.write_txn()?;
        if let Some(value) = self.db.get(&transaction, key)?.map(incremented) {
            self.db.put(&mut transaction, key, &value)?;
        }
        Ok(transaction.commit()?)
    }

    fn put_many(&self, entries: &[(SpillKey, SpillValue)]) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in entries {
            self.db.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }
}
