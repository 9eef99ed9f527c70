//! What a writer does in its chunk: appends a record, changes the value of one, or puts another in its place.

use sapwood_engine::Effect;
use sapwood_mem::reclaim::Guard;
use sapwood_mem::{Arena, SliceRef};

use crate::error::Result;
use crate::layout::record;
use crate::map::ChunkMap;
use crate::node::chunk::{Append, Chunk, Hit, Miss, Successor};
use crate::node::record::{Entered, Record, WriteLock, WriteMode};
use crate::tree::Leaf;
use crate::write::value::{Change, ValueMut, suits};

/// A record that is not yet in the map; freed if it never gets there.
pub(crate) struct Fresh<'m> {
    arena: &'m Arena,
    slice: Option<SliceRef>,
}

impl<'m> Fresh<'m> {
    pub(crate) fn new(arena: &'m Arena) -> Fresh<'m> {
        Fresh { arena, slice: None }
    }

    /// The record's slice, written on first use.
    pub(crate) fn get(&mut self, key: &[u8], value: &[u8]) -> Result<SliceRef> {
        if let Some(slice) = self.slice {
            return Ok(slice);
        }
        let slice = self.arena.alloc(record::bytes(key.len(), value.len()))?;
        // SAFETY: a new slice of the right size, ours alone.
        unsafe { Record::write(self.arena.ptr(slice), key, value) };
        self.slice = Some(slice);
        Ok(slice)
    }

    /// The record is in the map now.
    pub(crate) fn published(&mut self) {
        self.slice = None;
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        if let Some(slice) = self.slice {
            // SAFETY: never published.
            unsafe { self.arena.free(slice) };
        }
    }
}

impl ChunkMap {
    /// Appends a record to the chunk; false if the caller has to look again.
    #[inline]
    pub(crate) fn insert(
        &self,
        guard: &Guard,
        leaf: Leaf<'_>,
        miss: Miss,
        key: &[u8],
        value: &[u8],
        fresh: &mut Fresh<'_>,
    ) -> Result<bool> {
        self.append(guard, leaf, miss, (key, value), fresh, self.is_logged())
    }

    /// As [`insert`](Self::insert), and the journal hears of it or not.
    pub(crate) fn append(
        &self,
        guard: &Guard,
        leaf: Leaf<'_>,
        miss: Miss,
        (key, value): (&[u8], &[u8]),
        fresh: &mut Fresh<'_>,
        is_logged: bool,
    ) -> Result<bool> {
        if miss.end == leaf.chunk.delta_cap() {
            self.rebalance(guard, leaf)?;
            return Ok(false);
        }
        let _claim = if is_logged { self.claim(key.len() + value.len())? } else { None };
        leaf.chunk.prefetch_append(miss.end);
        let slice = fresh.get(key, value)?;
        // A record that is to be told has a writer from the first: no thread reads or changes it
        // before the journal has heard of it.
        let born = match is_logged {
            true => Some(self.lock_unpublished(guard, slice)?),
            false => None,
        };
        match leaf.chunk.append(miss, key, slice) {
            Append::Done => {
                fresh.published();
                if let Some(mut born) = born {
                    self.log(&mut born, Effect::Put(value));
                }
                self.counters.inserted(key.len(), value.len());
                if let Some(ticket) = leaf.chunk.ticket() {
                    self.tree.forget_sums_of(guard, &leaf.chunk, ticket, key);
                }
                Ok(true)
            }
            Append::Exists => Ok(false),
            Append::Full => self.rebalance(guard, leaf).map(|()| false),
            Append::Frozen => {
                self.wait_for_successor(guard, &leaf.chunk);
                Ok(false)
            }
        }
    }

    /// Takes the writer's lock of a record that only this thread knows.
    #[cold]
    fn lock_unpublished<'g>(&'g self, _pin: &'g Guard, slice: SliceRef) -> Result<WriteLock<'g>> {
        // SAFETY: I-PINNED: the record is this thread's own until it is published, and then it is
        // pinned.
        let record = unsafe { Record::new(self.tree.arena.ptr(slice)) };
        match record.try_write_unpublished()? {
            Entered::Inside(lock) => Ok(lock),
            Entered::Dead | Entered::Busy => unreachable!("no other thread knows the record"),
        }
    }

    /// Gives a locked record another value: in place if it has no readers and the
    /// slice has the right size, else through a new record.
    pub(crate) fn overwrite(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        mut lock: WriteLock<'_>,
        value: &[u8],
        fresh: &mut Fresh<'_>,
    ) -> Result<()> {
        let key = lock.key();
        let _claim = self.claim(key.len() + value.len())?;
        let old_len = lock.value_len();
        let wanted = record::bytes(key.len(), value.len());
        let suits = suits(self.tree.arena.capacity(hit.slice), wanted);
        if suits && lock.access() == WriteMode::InPlace {
            // SAFETY: I-VALUE: alone with the bytes, and the slice has room for the value.
            unsafe { lock.value_ptr().copy_from_nonoverlapping(value.as_ptr(), value.len()) };
            lock.set_value_len(value.len());
            self.log(&mut lock, Effect::Put(value));
        } else {
            let successor = fresh.get(key, value)?;
            fresh.published();
            self.log(&mut lock, Effect::Put(value));
            self.supersede(guard, hit, lock, successor);
        }
        self.counters.resized(old_len, value.len());
        Ok(())
    }

    pub(crate) fn change<R, F: FnOnce(&mut ValueMut<'_>) -> R>(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        lock: WriteLock<'_>,
        change: &mut Option<F>,
    ) -> Result<R> {
        let mut work = Change::begin(self, guard, hit, lock)?;
        let change = change.take().expect("a closure runs once: nothing fails after it began");
        // `work` commits when it is dropped, also while unwinding.
        Ok(guard.outside(|| change(&mut work.value())))
    }

    /// Puts `successor` into the entry of a locked record, and buries the record.
    pub(crate) fn supersede(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        lock: WriteLock<'_>,
        successor: SliceRef,
    ) {
        self.bury_behind(guard, hit, lock, successor);
        // SAFETY: I-OWNER: no current chunk names the record any more.
        unsafe { self.retire(hit.slice) };
    }

    /// The same, and leaves it to the caller to retire the record.
    pub(crate) fn bury_behind(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        mut lock: WriteLock<'_>,
        successor: SliceRef,
    ) {
        self.swap(guard, hit, lock.key(), Successor::Record(successor));
        lock.bury();
    }

    /// Buries a locked record and empties its entry, if the journal has room for that.
    pub(crate) fn unlink(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        mut lock: WriteLock<'_>,
    ) -> Result<()> {
        let (key, value_len) = (lock.key(), lock.value_len());
        let _claim = self.claim(key.len())?;
        self.log(&mut lock, Effect::Remove);
        let removing = self.removals.begin();
        lock.bury();
        self.counters.removed(key.len(), value_len);
        let chunk = self.swap(guard, hit, key, Successor::Tombstone);
        drop(removing);
        drop(lock);
        // SAFETY: I-OWNER: no current chunk names the record any more.
        unsafe { self.retire(hit.slice) };
        let tombstone = chunk.count_tombstone();
        if let Some(ticket) = tombstone.ticket {
            self.tree.forget_sums_of(guard, &chunk, ticket, key);
        }
        if tombstone.pays {
            // The last entry of a map comes here, too.
            self.compaction.set_due();
            let leaf = self.tree.leaf(guard, key);
            if leaf.chunk.is(&chunk) {
                // Without memory the tombstones stay a while; the remove is done.
                let _ = self.rebalance(guard, leaf);
            }
        }
        Ok(())
    }

    /// Changes an entry's word, wherever a rebalance has taken the entry by now;
    /// returns the chunk it was in.
    fn swap<'g>(
        &'g self,
        guard: &'g Guard,
        hit: Hit<'g>,
        key: &[u8],
        successor: Successor,
    ) -> Chunk<'g> {
        let mut hit = hit;
        while !hit.swap(successor) {
            self.wait_for_successor(guard, &hit.chunk);
            hit = self.find_held(guard, key, hit.slice);
        }
        hit.chunk
    }
}
