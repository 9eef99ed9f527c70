//! redb, a B-tree in a file.

use ::redb::{Builder, Database, Durability, ReadableDatabase, TableDefinition};

use super::data::Level;
use super::store::{DurableEngine, DurablePlace, DurableStore};
use crate::harness::*;

pub(crate) const ENGINE: DurableEngine = DurableEngine { name: "redb", open: open_redb };

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("bench");

const CACHE_BYTES: usize = 1 << 30;

/// redb keeps a commit without durability in the process's memory. So it has no buffered level, and
/// its memory level is a B-tree in transactions.
struct DurableRedb {
    db: Database,
    durability: Durability,
}

fn open_redb(place: &DurablePlace) -> Result<Option<Box<dyn DurableStore>>> {
    let durability = match place.level {
        Level::Memory => Durability::None,
        Level::Buffered | Level::Async => return Ok(None),
        Level::Sync => Durability::Immediate,
    };
    let db = Builder::new().set_cache_size(CACHE_BYTES).create(place.dir.join("redb"))?;
    Ok(Some(Box::new(DurableRedb { db, durability })))
}

impl DurableRedb {
    fn write<'e>(
        &self,
        durability: Durability,
        entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
    ) -> Result {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in entries {
                table.insert(key, value)?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl DurableStore for DurableRedb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result {
        self.write(self.durability, [(key, value)])
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result {
        self.write(Durability::None, entries.iter().map(|(key, value)| (&key[..], &value[..])))
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result {
        if let Some(value) = self.db.begin_read()?.open_table(TABLE)?.get(key)? {
            read(value.value());
        }
        Ok(())
    }

    fn sync(&self) -> Result {
        self.write(Durability::Immediate, [])
    }

    /// Nothing: at the level of memory a sync would write what the others never write.
    fn settle(&self) -> Result {
        Ok(())
    }
}
