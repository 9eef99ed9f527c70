//! Streams: every entry of a range is shown to a closure, and nothing is created
//! per entry.

use std::ops::{Bound, ControlFlow, RangeBounds};

use crate::chunk::RECORD_LINES;
use crate::cursor::{ChunkCursor, Direction, KeyBounds, Visit};
use crate::error::Result;
use crate::map::ChunkMap;
use crate::record::Record;

/// Lines to ask for ahead where keys alone are read.
const KEY_LINES: usize = 2;

impl ChunkMap {
    /// Shows every entry within `bounds` to `show`, in key order or against it,
    /// until it breaks.
    ///
    /// # Consistency
    /// Every key present from start to end of the scan is shown exactly once, none
    /// twice, in order. Each value is shown whole, as it was when shown.
    ///
    /// # Errors
    /// Inside a closure that changes a value:
    /// [`Error::Reentrant`](crate::Error::Reentrant) and
    /// [`Error::WouldBlock`](crate::Error::WouldBlock), when the scan comes to a
    /// value that is being changed in place.
    ///
    /// # Example
    /// ```
    /// use std::ops::ControlFlow;
    /// use sapwood_chunkmap::{ChunkMap, Direction};
    ///
    /// let map = ChunkMap::new();
    /// for key in [b"a", b"b", b"c"] {
    ///     map.put(key, b"1")?;
    /// }
    /// let mut keys = Vec::new();
    /// let flow = map.scan(&b"b"[..].., Direction::Descending, |key, _value| {
    ///     keys.push(key.to_vec());
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert!(flow.is_continue());
    /// assert_eq!(keys, [b"c", b"b"]);
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    pub fn scan<'k, B>(
        &self,
        bounds: impl RangeBounds<&'k [u8]>,
        direction: Direction,
        mut show: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let bounds = key_bounds(&bounds);
        self.walk(bounds, direction, RECORD_LINES, |guard, mut seen| {
            loop {
                match seen {
                    Visit::Gone => return Ok(ControlFlow::Continue(())),
                    Visit::Record(record) => match record.read()? {
                        Some(lock) => return Ok(show(record.key(), lock.value())),
                        // It died just now: by removal, or it has a successor.
                        None => seen = Visit::Moved(record),
                    },
                    Visit::Moved(record) => match self.read_lock(guard, record.key())? {
                        Some(lock) => return Ok(show(record.key(), lock.value())),
                        None => seen = Visit::Gone,
                    },
                }
            }
        })
    }

    /// As [`scan`](Self::scan), for keys alone: values are not touched, and nothing
    /// is waited for.
    ///
    /// # Errors
    /// None at present; a `Result` for symmetry with [`scan`](Self::scan).
    pub fn scan_keys<'k, B>(
        &self,
        bounds: impl RangeBounds<&'k [u8]>,
        direction: Direction,
        mut show: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let bounds = key_bounds(&bounds);
        self.walk(bounds, direction, KEY_LINES, |_guard, seen| {
            let present = |record: &Record<'_>| self.contains_key(record.key());
            match seen {
                Visit::Gone => Ok(ControlFlow::Continue(())),
                Visit::Record(record) => Ok(show(record.key())),
                Visit::Moved(record) if present(&record)? => Ok(show(record.key())),
                Visit::Moved(_) => Ok(ControlFlow::Continue(())),
            }
        })
    }

    /// Goes from chunk to chunk; pins anew for each, so that a long scan does not
    /// hold back reclamation.
    fn walk<B>(
        &self,
        bounds: KeyBounds<'_>,
        direction: Direction,
        prefetch_lines: usize,
        mut each: impl FnMut(&sapwood_mem::epoch::Guard, Visit<'_>) -> Result<ControlFlow<B>>,
    ) -> Result<ControlFlow<B>> {
        if bounds.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut guard = self.tree.reclaimer.pin();
        // Where to go on: the border of the last chunk.
        let mut border: Option<Vec<u8>> = None;
        loop {
            {
                let rest = match (&border, direction) {
                    (None, _) => bounds,
                    (Some(border), Direction::Ascending) => {
                        KeyBounds { low: Bound::Included(border), ..bounds }
                    }
                    (Some(border), Direction::Descending) => {
                        KeyBounds { high: Bound::Excluded(border), ..bounds }
                    }
                };
                let chunk = self.chunk_at_edge(&guard, rest, direction);
                let mut cursor = ChunkCursor::new(chunk, rest, direction, prefetch_lines);
                while let Some(visit) = cursor.next() {
                    if let ControlFlow::Break(result) = each(&guard, visit)? {
                        return Ok(ControlFlow::Break(result));
                    }
                }
                let Some(next) = next_border(&chunk, bounds, direction) else {
                    return Ok(ControlFlow::Continue(()));
                };
                let border = border.get_or_insert_default();
                border.clear();
                border.extend_from_slice(next);
            }
            guard.repin();
        }
    }

    /// The chunk where a walk over `bounds` begins.
    pub(crate) fn chunk_at_edge<'g>(
        &'g self,
        guard: &'g sapwood_mem::epoch::Guard,
        bounds: KeyBounds<'_>,
        direction: Direction,
    ) -> crate::chunk::Chunk<'g> {
        let leaf = match (direction, bounds.low, bounds.high) {
            (Direction::Ascending, Bound::Unbounded, _) => self.tree.leaf(guard, &[]),
            (Direction::Ascending, Bound::Included(low) | Bound::Excluded(low), _) => {
                self.tree.leaf(guard, low)
            }
            (Direction::Descending, _, Bound::Unbounded) => self.tree.last_leaf(guard),
            (Direction::Descending, _, Bound::Included(high)) => self.tree.leaf(guard, high),
            (Direction::Descending, _, Bound::Excluded(high)) => self.tree.leaf_below(guard, high),
        };
        leaf.chunk
    }
}

/// Where the walk goes on behind this chunk; `None` if the bounds end in it.
pub(crate) fn next_border<'g>(
    chunk: &crate::chunk::Chunk<'g>,
    bounds: KeyBounds<'_>,
    direction: Direction,
) -> Option<&'g [u8]> {
    match direction {
        Direction::Ascending => chunk.high().filter(|high| !bounds.ends_before(high)),
        Direction::Descending => chunk.low().filter(|low| !bounds.begins_at(low)),
    }
}

pub(crate) fn key_bounds<'k>(bounds: &impl RangeBounds<&'k [u8]>) -> KeyBounds<'k> {
    KeyBounds { low: bounds.start_bound().cloned(), high: bounds.end_bound().cloned() }
}
