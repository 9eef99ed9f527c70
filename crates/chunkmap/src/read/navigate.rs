//! The entry nearest to a key, and the ones at the ends.
//!
//! The key of an answer was the nearest at some moment of the call, and so was there none. The value is the entry's own
//! afterwards, as a `get` of that key would have it. `pop_first` and `pop_last` take an entry that was found so, even if
//! a nearer one has come since; every entry is popped by one caller only.
//!
//! A search looks into one chunk after the other, until one has an entry. Those that it passed had none when it looked,
//! each at its own moment. So it looks again at what has come to them since, and begins anew if that may be an entry.

use std::ops::Bound;

use sapwood_engine::KeyRange;
use sapwood_mem::reclaim::Guard;

use crate::Direction;
use crate::error::Result;
use crate::map::{ChunkMap, check_key};
use crate::node::chunk::{Chunk, Hit};
use crate::node::cursor::KeyBounds;
use crate::node::nearest::{may_have_come, nearest, nearest_alive, nearest_of_all};
use crate::node::record::Entered;
use crate::read::range::Entry;
use crate::read::scan::{key_bounds, next_border};

type OwnedEntry = (Vec<u8>, Vec<u8>);

impl ChunkMap {
    /// The entry with the least key.
    ///
    /// # Errors
    /// As of [`scan`](Self::scan).
    pub fn first(&self) -> Result<Option<Entry<'_>>> {
        self.outermost(Direction::Ascending)
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As of [`scan`](Self::scan).
    pub fn last(&self) -> Result<Option<Entry<'_>>> {
        self.outermost(Direction::Descending)
    }

    /// The entry with the greatest key that is at most `key`.
    ///
    /// # Errors
    /// [`Error::KeyLength`](crate::Error::KeyLength), and as of [`scan`](Self::scan).
    pub fn floor(&self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        check_key(key)?;
        self.edge(..=key, Direction::Descending)
    }

    /// The entry with the greatest key below `key`.
    ///
    /// # Errors
    /// As of [`floor`](Self::floor).
    pub fn lower(&self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        check_key(key)?;
        self.edge(..key, Direction::Descending)
    }

    /// The entry with the least key that is at least `key`.
    ///
    /// # Errors
    /// As of [`floor`](Self::floor).
    pub fn ceiling(&self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        check_key(key)?;
        self.edge(key.., Direction::Ascending)
    }

    /// The entry with the least key above `key`.
    ///
    /// # Errors
    /// As of [`floor`](Self::floor).
    pub fn higher(&self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        check_key(key)?;
        self.edge((Bound::Excluded(key), Bound::Unbounded), Direction::Ascending)
    }

    /// Removes the first entry and returns it.
    ///
    /// # Errors
    /// As of [`remove`](Self::remove).
    pub fn pop_first(&self) -> Result<Option<OwnedEntry>> {
        self.pop(Direction::Ascending)
    }

    /// Removes the last entry and returns it.
    ///
    /// # Errors
    /// As of [`remove`](Self::remove).
    pub fn pop_last(&self) -> Result<Option<OwnedEntry>> {
        self.pop(Direction::Descending)
    }

    /// The first or the last entry of all.
    #[inline(always)]
    fn outermost(&self, direction: Direction) -> Result<Option<Entry<'_>>> {
        let guard = self.tree.reclaimer.pin();
        match self.try_outermost(&guard, direction) {
            Ok(None) => return Ok(None),
            Ok(Some(hit)) => {
                if let Some(lock) = hit.record.try_read_quick() {
                    return Ok(Some(Entry::of(self, lock)));
                }
            }
            Err(Passed) => {}
        }
        drop(guard);
        self.edge(.., direction)
    }

    #[inline(never)]
    pub(crate) fn edge(
        &self,
        bounds: impl KeyRange,
        direction: Direction,
    ) -> Result<Option<Entry<'_>>> {
        let bounds = key_bounds(&bounds);
        let guard = self.tree.reclaimer.pin();
        loop {
            match self.try_nearest(&guard, bounds, direction) {
                Err(Passed) => {}
                Ok(None) => return Ok(None),
                Ok(Some(hit)) => {
                    if let Some(lock) = hit.record.try_read_quick() {
                        return Ok(Some(Entry::of(self, lock)));
                    }
                    let lock = match hit.record.try_read()? {
                        Entered::Inside(lock) => Some(lock),
                        Entered::Dead => None,
                        // The wait for a value may take the record away: its key is copied.
                        Entered::Busy => {
                            let key = hit.record.key().to_vec();
                            self.read_lock(&guard, &key)?
                        }
                    };
                    if let Some(lock) = lock {
                        return Ok(Some(Entry::of(self, lock)));
                    }
                }
            }
            guard.repin();
        }
    }

    #[inline(always)]
    fn pop(&self, direction: Direction) -> Result<Option<OwnedEntry>> {
        loop {
            let taken = {
                let guard = self.tree.reclaimer.pin();
                match self.try_outermost(&guard, direction) {
                    Err(Passed) => continue,
                    Ok(None) => return Ok(None),
                    Ok(Some(hit)) => match hit.record.try_write_shared()? {
                        Entered::Inside(lock) => {
                            let removed = (lock.key().to_vec(), lock.value().to_vec());
                            self.unlink(&guard, hit, lock)?;
                            Ok(removed)
                        }
                        Entered::Dead => continue,
                        Entered::Busy => Err(hit.record.key().to_vec()),
                    },
                }
            };
            match taken {
                Ok(popped) => {
                    self.compact_if_due();
                    return Ok(Some(popped));
                }
                // Another writer has it. To wait for that takes no pin.
                Err(key) => {
                    if let Some(value) = self.remove_with(&key, <[u8]>::to_vec)? {
                        return Ok(Some((key, value)));
                    }
                }
            }
        }
    }

    /// The entry that was the nearest at some moment of this call. It may have gone since.
    #[inline(always)]
    fn try_nearest<'g>(
        &'g self,
        guard: &'g Guard,
        bounds: KeyBounds<'_>,
        direction: Direction,
    ) -> std::result::Result<Option<Hit<'g>>, Passed> {
        if bounds.is_empty() {
            return Ok(None);
        }
        let chunk = self.chunk_at_edge(guard, bounds, direction);
        match nearest(&chunk, bounds, direction) {
            Some(entry) if !entry.record.is_dead() => Ok(Some(entry.of(chunk))),
            _ => self.nearest_from(guard, chunk, bounds, direction),
        }
    }

    /// The same of all entries.
    #[inline(always)]
    fn try_outermost<'g>(
        &'g self,
        guard: &'g Guard,
        direction: Direction,
    ) -> std::result::Result<Option<Hit<'g>>, Passed> {
        let leaf = self.tree.outermost_leaf(guard, direction);
        match nearest_of_all(&leaf.chunk, direction) {
            Some(entry) if !entry.record.is_dead() => Ok(Some(entry.of(leaf.chunk))),
            _ => self.nearest_from(guard, leaf.chunk, key_bounds(&..), direction),
        }
    }

    /// The same from a chunk on whose nearest entry has gone, or which has none.
    #[cold]
    fn nearest_from<'g>(
        &'g self,
        guard: &'g Guard,
        mut chunk: Chunk<'g>,
        bounds: KeyBounds<'_>,
        direction: Direction,
    ) -> std::result::Result<Option<Hit<'g>>, Passed> {
        let mut passed = Vec::new();
        let mut rest = bounds;
        let found = loop {
            let end = chunk.delta_len();
            let alive = nearest_alive(&chunk, rest, direction);
            // Of a dead record in a frozen chunk another may live elsewhere, unless no other chunk has come.
            if alive.stale && !self.tree.is_current(guard, &chunk) {
                return Err(Passed);
            }
            let border = next_border(&chunk, bounds, direction);
            match (alive.entry, border) {
                (None, Some(border)) => {
                    passed.push((chunk, end));
                    match direction {
                        Direction::Ascending => rest.low = Bound::Included(border),
                        Direction::Descending => rest.high = Bound::Excluded(border),
                    }
                    chunk = self.chunk_at_edge(guard, rest, direction);
                }
                (entry, _) => break entry.map(|entry| entry.of(chunk)),
            }
        };
        let had_none = |&(chunk, end): &(Chunk<'_>, usize)| {
            !may_have_come(&chunk, end, bounds) && self.tree.is_current(guard, &chunk)
        };
        if found.is_some_and(|hit| hit.record.is_dead()) || !passed.iter().all(had_none) {
            return Err(Passed);
        }
        Ok(found)
    }
}

/// Entries have come to a place that a search had passed, or gone from where it ended: it begins anew.
struct Passed;
