//! The trees of a pool, on keys and values of 8 bytes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use sapwood_disk::FileDisk;
use sapwood_ptree::{Direction, Durability, Pool, PoolOptions, Tree, TreeKind, TreeLayout};

use super::store::{
    CommitLevel, Recovery, TreeEngine, TreeEntry, TreeKey, TreePlace, TreeStore, TreeValue, Writers,
};
use super::{BTREE, CRIT_BIT, RED_BLACK};
use crate::harness::*;

macro_rules! engine {
    ($name:ident, $kind:ident) => {
        TreeEngine {
            name: $name,
            open: |place| open(place, TreeKind::$kind),
            recover: Some(|place, entries| recover(place, entries, TreeKind::$kind)),
        }
    };
}

pub(crate) const ENGINES: [TreeEngine; 3] =
    [engine!(BTREE, BTree), engine!(CRIT_BIT, CritBit), engine!(RED_BLACK, RedBlack)];

const NAME: &str = "bench";

struct OurTree {
    pool: Pool,
    tree: Tree,
}

fn open(place: &TreePlace, kind: TreeKind) -> Result<Box<dyn TreeStore>> {
    Ok(Box::new(OurTree::create(place, kind, options(place))?))
}

fn options(place: &TreePlace) -> PoolOptions {
    PoolOptions::default().durability(match place.level {
        CommitLevel::Buffered => Durability::Buffered,
        CommitLevel::Sync => Durability::Sync,
    })
}

fn recover(place: &TreePlace, entries: &[TreeEntry], kind: TreeKind) -> Result<Recovery> {
    // No checkpoint: the log has all that was ever done.
    let options = || options(place).checkpoint_bytes(u64::MAX);
    let ours = OurTree::create(place, kind, options())?;
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

impl OurTree {
    fn create(place: &TreePlace, kind: TreeKind, options: PoolOptions) -> Result<OurTree> {
        let pool = Pool::create(Arc::new(FileDisk::open(&place.dir)?), options)?;
        let tree = pool.create_tree(NAME, kind, TreeLayout::Fixed)?;
        Ok(OurTree { pool, tree })
    }

    /// The log's end, as a commit without changes tells it.
    fn position(&self) -> Result<u64> {
        Ok(self.pool.begin()?.commit()?.position())
    }
}

fn value_of(bytes: Vec<u8>) -> Result<TreeValue> {
    bytes.try_into().map_err(|_| "a value is not of 8 bytes".into())
}

impl TreeStore for OurTree {
    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>> {
        self.tree.remove(key)?.map(value_of).transpose()
    }

    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result {
        let transaction = self.pool.begin()?;
        for (key, value) in entries {
            transaction.put(&self.tree, key, value)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn remove_all(&mut self, entries: &[TreeEntry], removed: &mut dyn FnMut(&[u8])) -> Result {
        let transaction = self.pool.begin()?;
        for (key, _) in entries {
            if let Some(value) = transaction.remove(&self.tree, key)? {
                removed(&value);
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result {
        for (key, _) in entries {
            self.tree.get_with(key, &mut *read)?;
        }
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result {
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

    fn log_position(&self) -> Result<Option<u64>> {
        self.position().map(Some)
    }
}

impl Writers for OurTree {
    fn insert(&self, (key, value): &TreeEntry) -> Result {
        self.tree.put(key, value)?;
        Ok(())
    }
}
