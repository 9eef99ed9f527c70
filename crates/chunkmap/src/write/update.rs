//! Changes of a value by what it is.

use sapwood_engine::{Compute, Computed, Upsert};
use sapwood_mem::reclaim::Guard;

use crate::error::Result;
use crate::map::{ChunkMap, check_key, check_value};
use crate::node::chunk::Hit;
use crate::node::record::WriteLock;
use crate::tree::Found;
use crate::write::entry::Fresh;
use crate::write::lock::{Intent, Writer};
use crate::write::value::ValueMut;

#[cfg(doc)]
use crate::error::Error;

impl ChunkMap {
    /// Changes a value in place, atomically for every reader; `None` if the key is
    /// absent. The closure runs at most once, and may change the length through
    /// [`ValueMut`].
    ///
    /// Readers of this key wait while it runs, unless some were inside before it
    /// began: then it works on a copy, which takes the value's place afterwards.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; [`Error::OutOfMemory`] if a copy was needed and did not
    /// fit; inside a closure that changes a value also [`Error::Reentrant`] and
    /// [`Error::WouldBlock`].
    ///
    /// # Panics
    /// If the closure does. The value then holds exactly what the closure had
    /// written until there, and the map remains usable.
    pub fn update<R>(
        &self,
        key: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let (mut change, mut answer) = (Some(change), None);
        self.update_with(key, &mut |value| answer = change.take().map(|change| change(value)))?;
        Ok(answer)
    }

    /// Updates a value by a closure of any type: the one compiled copy of `update`.
    fn update_with(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Option<()>> {
        self.update_at(None, key, change)
    }

    /// Updates a value from a chunk that was found before. If the chunk was replaced since, a key that it lacks may have
    /// been put elsewhere.
    #[inline]
    pub(crate) fn update_at<R>(
        &self,
        mut found: Option<Found>,
        key: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        check_key(key)?;
        let mut change = Some(change);
        self.with_memory(|guard| {
            loop {
                let was_found = found.is_some();
                let leaf = || self.leaf_once(guard, &mut found, key);
                match self.lock_writer_in(guard, key, Intent::Change, leaf)? {
                    Writer::Absent(leaf, _) if was_found && leaf.chunk.is_claimed() => {}
                    Writer::Absent(..) => return Ok(None),
                    Writer::Locked(hit, lock) => {
                        return self.change(guard, hit, lock, &mut change).map(Some);
                    }
                }
            }
        })
    }

    /// Puts `value` if the key is absent, else changes the value that is there, as
    /// [`update`](Self::update) does; searches once.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    ///
    /// # Panics
    /// If the closure does: see [`update`](Self::update).
    pub fn put_if_absent_or_update<R>(
        &self,
        key: &[u8],
        value: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let (mut change, mut answer) = (Some(change), None);
        let done = self.upsert_with(key, value, &mut |value| {
            answer = change.take().map(|change| change(value));
        })?;
        Ok(match (done, answer) {
            (Upsert::Updated(()), Some(answer)) => Upsert::Updated(answer),
            _ => Upsert::Inserted,
        })
    }

    /// Inserts a value or updates the one there: the one compiled copy of `put_if_absent_or_update`.
    fn upsert_with(
        &self,
        key: &[u8],
        value: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Upsert<()>> {
        self.put_if_absent_or_update_at(None, key, value, change)
    }

    /// Puts or updates a value from a chunk that was found before. If the chunk was replaced since, its words
    /// are frozen (I-FROZEN): a record of the key that lives is the one record of the key, and
    /// nothing is appended.
    #[inline]
    pub(crate) fn put_if_absent_or_update_at<R>(
        &self,
        found: Option<Found>,
        key: &[u8],
        value: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        check_key(key)?;
        check_value(value.len())?;
        let (mut found, mut change) = (found, Some(change));
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                let leaf = || self.leaf_once(guard, &mut found, key);
                match self.lock_writer_in(guard, key, Intent::Change, leaf)? {
                    Writer::Locked(hit, lock) => {
                        return self.change(guard, hit, lock, &mut change).map(Upsert::Updated);
                    }
                    Writer::Absent(leaf, miss) => {
                        if self.insert(guard, leaf, miss, key, value, &mut fresh)? {
                            return Ok(Upsert::Inserted);
                        }
                    }
                }
            }
        })
    }

    /// Lets `decide` look at the value, or at `None`, and say what to do. For the
    /// time it runs no other thread changes the value; readers go on.
    ///
    /// If the key is absent and another thread inserts it meanwhile, `decide` runs
    /// again on what is there then.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put); the entry is unchanged.
    ///
    /// # Panics
    /// If `decide` does; the entry is unchanged.
    pub fn compute(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        check_key(key)?;
        // What `decide` said of an absent key, until it is in. It is not asked again
        // while the key stays absent: a closure that changes the chunk itself
        // would otherwise be run for ever.
        let mut decided: Option<Vec<u8>> = None;
        self.with_memory(|guard| {
            loop {
                let (leaf, miss) = match self.lock_writer(guard, key, Intent::Decide)? {
                    Writer::Absent(leaf, miss) => (leaf, miss),
                    Writer::Locked(hit, lock) => {
                        return self.compute_locked(guard, hit, lock, &mut decide);
                    }
                };
                let value = match decided.take() {
                    Some(value) => value,
                    None => {
                        let epoch = guard.epoch();
                        let value = match guard.outside(|| decide(None)) {
                            Compute::Keep | Compute::Remove => return Ok(Computed::Absent),
                            Compute::Replace(value) => value,
                        };
                        check_value(value.len())?;
                        if guard.epoch() != epoch {
                            // The chunk may have gone.
                            decided = Some(value);
                            continue;
                        }
                        value
                    }
                };
                let mut fresh = Fresh::new(&self.tree.arena);
                let inserted = self.insert(guard, leaf, miss, key, &value, &mut fresh);
                decided = Some(value);
                if inserted? {
                    return Ok(Computed::Inserted);
                }
            }
        })
    }

    fn compute_locked(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        mut lock: WriteLock<'_>,
        decide: &mut impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let epoch = guard.epoch();
        let decision = guard.outside(|| decide(Some(lock.value())));
        let hit = self.still(guard, epoch, hit, lock.key());
        match decision {
            Compute::Keep => Ok(Computed::Kept),
            Compute::Remove => {
                self.unlink(guard, hit, lock)?;
                Ok(Computed::Removed)
            }
            Compute::Replace(value) => {
                check_value(value.len())?;
                lock.try_in_place(&self.hazards);
                let mut fresh = Fresh::new(&self.tree.arena);
                self.overwrite(guard, hit, lock, &value, &mut fresh)?;
                Ok(Computed::Replaced)
            }
        }
    }

    /// Puts `new` if the value is `expected`; true if it did. A key that is absent has
    /// no value, and equals none. Searches once; readers go on while it compares.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn compare_and_put(&self, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        check_key(key)?;
        check_value(new.len())?;
        self.with_memory(|guard| match self.lock_writer(guard, key, Intent::Decide)? {
            Writer::Absent(..) => Ok(false),
            Writer::Locked(_, lock) if lock.value() != expected => Ok(false),
            Writer::Locked(hit, mut lock) => {
                lock.try_in_place(&self.hazards);
                let mut fresh = Fresh::new(&self.tree.arena);
                self.overwrite(guard, hit, lock, new, &mut fresh)?;
                Ok(true)
            }
        })
    }
}
