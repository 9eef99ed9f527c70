//! The trees of a pool, on keys and values of 8 bytes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use sapwood_disk::FileDisk;
use sapwood_ptree::{Direction, Durability, Pool, PoolOptions, Tree, TreeKind, TreeLayout};

use super::store::{Engine, Entry, Key, Level, Place, Recovery, TreeStore, Value, Writers};
use crate::Error;

pub(crate) const BTREE: &str = "sapwood-btree";
pub(crate) const CRIT_BIT: &str = "sapwood-crit-bit";
pub(crate) const RED_BLACK: &str = "sapwood-red-black";

pub(crate) const ENGINES: [Engine; 3] = [
    Engine {
        name: BTREE,
        open: |place| open(place, TreeKind::BTree),
        recover: Some(|place, entries| recover(place, entries, TreeKind::BTree)),
    },
    Engine {
        name: CRIT_BIT,
        open: |place| open(place, TreeKind::CritBit),
        recover: Some(|place, entries| recover(place, entries, TreeKind::CritBit)),
    },
    Engine {
        name: RED_BLACK,
        open: |place| open(place, TreeKind::RedBlack),
        recover: Some(|place, entries| recover(place, entries, TreeKind::RedBlack)),
    },
];

const NAME: &str = "bench";

struct Ours {
    pool: Pool,
    tree: Tree,
}

fn open(place: &Place, kind: TreeKind) -> Result<Box<dyn TreeStore>, Error> {
    Ok(Box::new(Ours::create(place, kind, options(place))?))
}

fn options(place: &Place) -> PoolOptions {
    PoolOptions::default().durability(match place.level {
        Level::Buffered => Durability::Buffered,
        Level::Sync => Durability::Sync,
    })
}

fn recover(place: &Place, entries: &[Entry], kind: TreeKind) -> Result<Recovery, Error> {
    // No checkpoint: the log has all that was ever done.
    let options = || options(place).checkpoint_bytes(u64::MAX);
    let ours = Ours::create(place, kind, options())?;
    let begin = ours.position()?;
    for entry in entries {
        Writers::insert(&ours, entry)?;
    }
    let log_bytes = ours.position()? - begin;
    // A pool that is dropped does nothing more to its files, as if its process had ended.
    drop(ours);
    let begin = Instant::now();
    let pool = Pool::open(Arc::new(FileDisk::open(&place.dir)?), options())?;
    let entries = pool.tree(NAME)?.len()?;
    Ok(Recovery { log_bytes, elapsed: begin.elapsed(), entries })
}

impl Ours {
    fn create(place: &Place, kind: TreeKind, options: PoolOptions) -> Result<Ours, Error> {
        let pool = Pool::create(Arc::new(FileDisk::open(&place.dir)?), options)?;
        let tree = pool.create_tree(NAME, kind, TreeLayout::Fixed)?;
        Ok(Ours { pool, tree })
    }

    /// The log's end, as a commit without changes tells it.
    fn position(&self) -> Result<u64, Error> {
        Ok(self.pool.begin()?.commit()?.position())
    }
}

fn value_of(bytes: Vec<u8>) -> Result<Value, Error> {
    bytes.try_into().map_err(|_| "a value is not of 8 bytes".into())
}

impl TreeStore for Ours {
    fn insert(&mut self, entry: &Entry) -> Result<(), Error> {
        Writers::insert(self, entry)
    }

    fn remove(&mut self, key: &Key) -> Result<Option<Value>, Error> {
        self.tree.remove(key)?.map(value_of).transpose()
    }

    fn insert_all(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let transaction = self.pool.begin()?;
        for (key, value) in entries {
            transaction.put(&self.tree, key, value)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn remove_all(
        &mut self,
        entries: &[Entry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let transaction = self.pool.begin()?;
        for (key, _) in entries {
            if let Some(value) = transaction.remove(&self.tree, key)? {
                removed(&value);
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn get_all(&self, entries: &[Entry], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        for (key, _) in entries {
            self.tree.get_with(key, &mut *read)?;
        }
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let _all = self.tree.scan(.., Direction::Ascending, |key, value| {
            read(key, value);
            ControlFlow::<()>::Continue(())
        })?;
        Ok(())
    }

    fn writers(&self) -> Option<&dyn Writers> {
        Some(self)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.pool.heap_bytes())
    }

    fn log_position(&self) -> Result<Option<u64>, Error> {
        self.position().map(Some)
    }
}

impl Writers for Ours {
    fn insert(&self, (key, value): &Entry) -> Result<(), Error> {
        self.tree.put(key, value)?;
        Ok(())
    }
}
