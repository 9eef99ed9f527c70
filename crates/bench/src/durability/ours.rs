//! Ordered and hash tables of a database.

use std::path::Path;
use std::time::Duration;

use sapwood::{AnyTable, Db, DbOptions, Durability, RecordLayout};

use super::data::{Data, Level};
use super::store::{DurableEngine, DurablePlace, DurableStore};
use crate::harness::*;

pub(crate) const ORDERED: &str = "sapwood-ordered";
pub(crate) const HASH: &str = "sapwood-hash";

pub(crate) const ENGINES: [DurableEngine; 2] = [
    DurableEngine { name: ORDERED, open: |place| open(place, TableKind::Ordered) },
    DurableEngine { name: HASH, open: |place| open(place, TableKind::Hash) },
];

/// The time after which changes last at [`Level::Async`]: the default of a database.
pub(crate) const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of the log after which a checkpoint is due by default.
const CHECKPOINT_BYTES: u64 = 256 << 20;

/// A table with its database. Checkpoints are written where the bench wants one, and at no other
/// time.
pub(crate) struct Ours {
    pub(crate) db: Db,
    pub(crate) table: AnyTable,
}

fn open(place: &DurablePlace, kind: TableKind) -> Result<Option<Box<dyn DurableStore>>> {
    Ok(Some(Box::new(Ours::create(&place.dir, kind, place.level, place.data, place.keys)?)))
}

fn options(level: Level) -> DbOptions {
    let durability = match level {
        Level::Memory | Level::Buffered => Durability::Buffered,
        Level::Async => Durability::Interval(SYNC_INTERVAL),
        Level::Sync => Durability::Sync,
    };
    DbOptions::default().durability(durability).checkpoint_bytes(u64::MAX)
}

impl Ours {
    pub(crate) fn create(
        dir: &Path,
        kind: TableKind,
        level: Level,
        data: Data,
        keys: u32,
    ) -> Result<Ours> {
        let is_volatile = level == Level::Memory;
        let db = match kind {
            TableKind::Hash if is_volatile => Db::in_memory(),
            _ => Db::open_with(dir, options(level))?,
        };
        let is_small = data == Data::Small;
        let layout = if is_small { RecordLayout::Fixed8 } else { RecordLayout::Variable };
        let table = kind.create(&db, layout, keys.into(), is_volatile)?;
        Ok(Ours { db, table })
    }

    /// Opens what a directory has, without writing a checkpoint by itself.
    pub(crate) fn reopen(dir: &Path) -> Result<Ours> {
        let db = Db::open_with(dir, options(Level::Buffered))?;
        let table = db.table(TABLE_NAME)?;
        Ok(Ours { db, table })
    }

    pub(crate) fn checkpoint(&self) -> Result {
        match self.db.directory() {
            Some(_) => Ok(self.db.checkpoint()?),
            None => Ok(()),
        }
    }
}

impl DurableStore for Ours {
    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) -> Result {
        Ok(self.table.put(key, value)?)
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result {
        Ok(self.table.put_many(entries)?)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result {
        self.table.get_with(key, read)?;
        Ok(())
    }

    fn sync(&self) -> Result {
        match self.db.directory() {
            Some(_) => Ok(self.db.sync()?),
            None => Ok(()),
        }
    }

    fn syncs_itself(&self) -> bool {
        true
    }

    /// A checkpoint is written where one would be due by default: a hash table copies values after
    /// each that it changed in place before.
    fn settle(&self) -> Result {
        match self.log_bytes() {
            Some(bytes) if bytes >= CHECKPOINT_BYTES => self.checkpoint(),
            _ => self.sync(),
        }
    }

    fn log_bytes(&self) -> Option<u64> {
        self.db.stats().log.map(|log| log.unsaved_bytes)
    }
}
