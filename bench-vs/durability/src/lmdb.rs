//! LMDB through heed: a B-tree in a memory map that is written by system calls. `MDB_WRITEMAP` is
//! off: with it, and without syncs, power loss would corrupt the file. It has no level that outlives
//! nothing.

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use sapwood_bench::Error;
use sapwood_bench::durability::{Level, DurablePlace, DurableStore};

/// Room in the map beside the entries: half-empty pages, and copies of changed ones.
const ROOM: usize = 4;

struct Lmdb {
    env: Env<WithoutTls>,
    db: Database<Bytes, Bytes>,
}

pub fn open(place: &DurablePlace) -> Result<Option<Box<dyn DurableStore>>, Error> {
    let flags = match place.level {
        Level::Memory => return Ok(None),
        Level::Buffered | Level::Async => EnvFlags::NO_SYNC,
        Level::Sync => EnvFlags::empty(),
    };
    let entries = place.keys as usize * place.data.lengths().iter().sum::<usize>();
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size((1 << 30) + (entries * ROOM).next_multiple_of(1 << 20));
    // SAFETY: the folder is fresh and ours alone, nothing truncates its file, and what is lost in
    // a crash is not read again.
    let env = unsafe { options.flags(flags).open(&place.dir)? };
    let mut transaction = env.write_txn()?;
    let db = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Some(Box::new(Lmdb { env, db })))
}

impl DurableStore for Lmdb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        self.db.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in entries {
            self.db.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let transaction = self.env.read_txn()?;
        if let Some(value) = self.db.get(&transaction, key)? {
            read(value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.env.force_sync()?)
    }
}
