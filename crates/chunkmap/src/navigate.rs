//! The entry nearest to a key, and the ones at the ends.
//!
//! The key of an answer was the nearest at some moment of the call, where the first chunk that may have it does and
//! its record lives. Else the entries that were passed had gone when they were looked at, as those of a scan.
//! `pop_first` and `pop_last` take an entry that was found so; every entry is popped by one caller only.

use std::ops::Bound;

use sapwood_engine::KeyRange;

use crate::Direction;
use crate::cursor::{self, KeyBounds};
use crate::error::Result;
use crate::map::{ChunkMap, check_key};
use crate::range::Entry;
use crate::record::Entered;
use crate::scan::key_bounds;

type OwnedEntry = (Vec<u8>, Vec<u8>);

impl ChunkMap {
    /// The entry with the least key.
    ///
    /// # Errors
    /// As of [`scan`](Self::scan).
    pub fn first(&self) -> Result<Option<Entry<'_>>> {
        self.edge(.., Direction::Ascending)
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As of [`scan`](Self::scan).
    pub fn last(&self) -> Result<Option<Entry<'_>>> {
        self.edge(.., Direction::Descending)
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

    fn edge(&self, bounds: impl KeyRange, direction: Direction) -> Result<Option<Entry<'_>>> {
        if let Some(entry) = self.edge_of_chunk(key_bounds(&bounds), direction) {
            return Ok(Some(entry));
        }
        let mut range = self.range(bounds);
        match direction {
            Direction::Ascending => range.next(),
            Direction::Descending => range.next_back(),
        }
        .transpose()
    }

    /// The entry, if the first chunk that may have it does, and no thread has to be waited for.
    fn edge_of_chunk(&self, bounds: KeyBounds<'_>, direction: Direction) -> Option<Entry<'_>> {
        if bounds.is_empty() {
            return None;
        }
        let guard = self.tree.reclaimer.pin();
        let chunk = self.chunk_at_edge(&guard, bounds, direction);
        let lock = cursor::nearest(&chunk, bounds, direction)?.record.try_read_quick()?;
        Some(Entry::of(self, lock))
    }

    /// Removes it, if the first chunk has it and no other thread has its record.
    fn pop_of_chunk(&self, direction: Direction) -> Option<OwnedEntry> {
        let bounds = KeyBounds { low: Bound::Unbounded, high: Bound::Unbounded };
        let guard = self.tree.reclaimer.pin();
        let chunk = self.chunk_at_edge(&guard, bounds, direction);
        let hit = cursor::nearest(&chunk, bounds, direction)?;
        let Ok(Entered::Inside(lock)) = hit.record.try_write_shared() else { return None };
        let removed = lock.read();
        self.unlink(&guard, hit, lock);
        Some((removed.key().to_vec(), removed.value().to_vec()))
    }

    fn pop(&self, direction: Direction) -> Result<Option<OwnedEntry>> {
        if let Some(popped) = self.pop_of_chunk(direction) {
            self.compact_if_due();
            return Ok(Some(popped));
        }
        loop {
            let Some(entry) = self.edge(.., direction)? else {
                return Ok(None);
            };
            let key = entry.key().to_vec();
            drop(entry);
            if let Some(value) = self.remove_with(&key, <[u8]>::to_vec)? {
                return Ok(Some((key, value)));
            }
        }
    }
}
