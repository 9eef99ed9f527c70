//! LMDB through heed: a B-tree in a memory map that is written by system calls. `MDB_WRITEMAP` is
//! off: with it, and without syncs, power loss would corrupt the file.

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use sapwood_bench::Error;
use sapwood_bench::trees::{TreeEntry, TreeKey, CommitLevel, TreePlace, TreeStore, TreeValue, Writers};

/// Room in the map for each entry: half-empty pages, and copies of changed ones beside them.
const ROOM_BYTES: usize = 512;

struct Lmdb {
    env: Env<WithoutTls>,
    db: Database<Bytes, Bytes>,
}

pub fn open(place: &TreePlace) -> Result<Box<dyn TreeStore>, Error> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size((1 << 30) + (place.keys * ROOM_BYTES).next_multiple_of(1 << 20));
    let flags = match place.level {
        CommitLevel::Buffered => EnvFlags::NO_SYNC,
        CommitLevel::Sync => EnvFlags::empty(),
    };
    // SAFETY: the folder is fresh and ours alone, nothing truncates its file, and what is lost in
    // a crash is not read again.
    let env = unsafe { options.flags(flags).open(&place.dir)? };
    let mut transaction = env.write_txn()?;
    let db = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, db }))
}

impl TreeStore for Lmdb {
    fn insert(&mut self, entry: &TreeEntry) -> Result<(), Error> {
        Writers::insert(self, entry)
    }

    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>, Error> {
        let mut transaction = self.env.write_txn()?;
        let value = self.db.get(&transaction, key)?.map(TreeValue::try_from).transpose()?;
        self.db.delete(&mut transaction, key)?;
        transaction.commit()?;
        Ok(value)
    }

    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in entries {
            self.db.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn remove_all(
        &mut self,
        entries: &[TreeEntry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        for (key, _) in entries {
            if let Some(value) = self.db.get(&transaction, key)? {
                removed(value);
                self.db.delete(&mut transaction, key)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let transaction = self.env.read_txn()?;
        for (key, _) in entries {
            if let Some(value) = self.db.get(&transaction, key)? {
                read(value);
            }
        }
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let transaction = self.env.read_txn()?;
        for entry in self.db.iter(&transaction)? {
            let (key, value) = entry?;
            read(key, value);
        }
        Ok(())
    }

    fn writers(&self) -> Option<&dyn Writers> {
        Some(self)
    }
}

impl Writers for Lmdb {
    fn insert(&self, (key, value): &TreeEntry) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        self.db.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }
}
