//! Readers of a record: the search for it, and the lock.

use sapwood_mem::reclaim::Guard;

use crate::error::Result;
use crate::map::ChunkMap;
use crate::node::chunk::{Find, Wanted};
use crate::node::enter::enter;
use crate::node::record::ReadLock;
use crate::tree::{Found, Leaf};

impl ChunkMap {
    /// Goes into the live record of `key` as a reader, and lets go of the pin.
    #[inline]
    pub(crate) fn read_lock_unpinned(&self, key: &[u8]) -> Result<Option<ReadLock<'_>>> {
        let guard = self.tree.reclaimer.pin();
        let lock = self.read_lock(&guard, key)?;
        // SAFETY: I-HELD: the borrow of the map ends before the map does.
        Ok(lock.map(|lock| unsafe { lock.unpinned() }))
    }

    /// Locks the record of `key` for a read, from a chunk that the call found before.
    #[inline]
    pub(crate) fn read_lock_found(&self, found: Found, key: &[u8]) -> Result<Option<ReadLock<'_>>> {
        let guard = self.tree.reclaimer.pin();
        let lock = self.read_lock_in(&guard, found, key)?;
        // SAFETY: I-HELD: as above.
        Ok(lock.map(|lock| unsafe { lock.unpinned() }))
    }

    /// Goes into the live record of `key` as a reader.
    #[inline]
    pub(crate) fn read_lock<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
    ) -> Result<Option<ReadLock<'g>>> {
        loop {
            let leaf = self.tree.leaf(guard, key);
            match leaf.chunk.find(key, Wanted::Record) {
                Find::Hit(entry) => {
                    if let Some(lock) = entry.record.try_read_quick() {
                        return Ok(Some(lock));
                    }
                    if let Some(lock) = enter(guard, || entry.record.try_read())? {
                        return Ok(Some(lock));
                    }
                }
                Find::Miss(miss) if miss.stale && !self.tree.is_current(guard, &leaf.chunk) => {}
                Find::Miss(_) => return Ok(None),
            }
        }
    }

    /// Goes into the live record of `key` as a reader, from a chunk that was found before. The likely record is on its
    /// way to the cache. If the chunk was replaced since, a record that lives there is still the one record of the key, but a key that it lacks may have
    /// been put elsewhere.
    #[inline]
    pub(crate) fn read_lock_in<'g>(
        &'g self,
        guard: &'g Guard,
        found: Found,
        key: &[u8],
    ) -> Result<Option<ReadLock<'g>>> {
        if let Some(Leaf { chunk, .. }) = self.tree.found_leaf(guard, found) {
            match chunk.find(key, Wanted::Key) {
                Find::Hit(entry) => {
                    if let Some(lock) = entry.record.try_read_quick() {
                        return Ok(Some(lock));
                    }
                }
                Find::Miss(miss) if miss.stale || chunk.is_claimed() => {}
                Find::Miss(_) => return Ok(None),
            }
        }
        self.read_lock(guard, key)
    }
}
