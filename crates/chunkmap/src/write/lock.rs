//! Writers of a record: the search for it, the lock, and the search for its entry once more.

use sapwood_mem::SliceRef;
use sapwood_mem::reclaim::{Epoch, Guard};

use crate::error::Result;
use crate::map::ChunkMap;
use crate::node::chunk::{Find, Hit, Miss, Wanted};
use crate::node::enter::enter;
use crate::node::record::WriteLock;
use crate::tree::Leaf;

/// A key's record in the hands of a writer, or the place where it would go.
pub(crate) enum Writer<'g> {
    Locked(Hit<'g>, WriteLock<'g>),
    Absent(Leaf<'g>, Miss),
}

/// The intention of a writer that goes into a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Replace the whole value, in place if no reader is inside.
    Overwrite,
    /// Change a part of the value, mostly, in place if no reader is inside.
    Change,
    /// Remove the entry.
    Remove,
    /// Read the value and decide.
    Decide,
}

impl Intent {
    /// Whether the writer needs the bytes; else it is enough to keep other writers out.
    #[inline]
    fn is_in_place(self) -> bool {
        matches!(self, Intent::Overwrite | Intent::Change)
    }

    #[inline]
    fn wanted(self) -> Wanted {
        match self {
            Intent::Change | Intent::Remove => Wanted::Key,
            Intent::Overwrite | Intent::Decide => Wanted::Record,
        }
    }
}

impl ChunkMap {
    #[inline(always)]
    pub(crate) fn lock_writer<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<Writer<'g>> {
        self.lock_writer_in(guard, key, intent, || self.tree.leaf(guard, key))
    }

    /// The same in the chunk that `leaf` tells, each time the key is to be looked up.
    #[inline(always)]
    pub(crate) fn lock_writer_in<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
        mut leaf: impl FnMut() -> Leaf<'g>,
    ) -> Result<Writer<'g>> {
        loop {
            let leaf = leaf();
            match leaf.chunk.find(key, intent.wanted()) {
                Find::Hit(entry) => {
                    let lock = enter(guard, || match intent.is_in_place() {
                        true => entry.record.try_write_in_place(&self.hazards),
                        false => entry.record.try_write_shared(),
                    })?;
                    if let Some(lock) = lock {
                        return Ok(Writer::Locked(entry.of(leaf.chunk), lock));
                    }
                }
                Find::Miss(miss) if miss.stale && !self.tree.is_current(guard, &leaf.chunk) => {}
                Find::Miss(miss) => return Ok(Writer::Absent(leaf, miss)),
            }
        }
    }

    /// A hit of `epoch`, whose record this thread is writing: found again if the guard let go
    /// since.
    pub(crate) fn still<'g>(
        &'g self,
        guard: &'g Guard,
        epoch: Epoch,
        hit: Hit<'g>,
        key: &[u8],
    ) -> Hit<'g> {
        if guard.epoch() == epoch { hit } else { self.find_held(guard, key, hit.slice) }
    }

    /// The entry of a record that this thread is writing.
    #[cold]
    pub(crate) fn find_held<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
        slice: SliceRef,
    ) -> Hit<'g> {
        let leaf = self.tree.leaf(guard, key);
        let found = leaf.chunk.find_slice(key, slice);
        found.expect("I-OWNER: a rebalance copies every record that is not removed")
    }
}
