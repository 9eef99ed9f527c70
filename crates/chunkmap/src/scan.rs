//! Streams: every entry of a range is shown to a closure, and nothing is created
//! per entry.

use std::ops::{Bound, ControlFlow};

use sapwood_engine::KeyRange;
use sapwood_mem::reclaim::{Epoch, Guard};

use crate::Direction;
use crate::chunk::{RECORD_LINES, Wanted};
use crate::cursor::{ChunkCursor, KeyBounds, Visit};
use crate::error::Result;
use crate::map::ChunkMap;
use crate::record::Entered;

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
    pub fn scan<B>(
        &self,
        bounds: impl KeyRange,
        direction: Direction,
        mut show: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let bounds = key_bounds(&bounds);
        let guard = self.tree.reclaimer.pin();
        self.walk(&guard, bounds, direction, Wanted::Record, |guard, mut seen, place| {
            let epoch = guard.epoch();
            loop {
                let lock = match seen {
                    Visit::Gone => return Ok(Step::On),
                    Visit::Record(record) => match record.try_read()? {
                        Entered::Inside(lock) => lock,
                        // It died just now: by removal, or it has a successor.
                        Entered::Dead => {
                            seen = Visit::Moved(record);
                            continue;
                        }
                        Entered::Busy => {
                            place.set(From::At, record.key());
                            match self.read_lock(guard, &place.key)? {
                                Some(lock) => lock,
                                None => return Ok(Step::after(guard, epoch)),
                            }
                        }
                    },
                    Visit::Moved(record) => {
                        // The wait for a value may take the record away: its key is copied.
                        place.set(From::At, record.key());
                        match self.read_lock(guard, &place.key)? {
                            Some(lock) => lock,
                            None => return Ok(Step::after(guard, epoch)),
                        }
                    }
                };
                if let ControlFlow::Break(result) = guard.outside(|| show(lock.key(), lock.value()))
                {
                    return Ok(Step::Break(result));
                }
                if guard.epoch() != epoch {
                    place.set(From::Behind, lock.key());
                    return Ok(Step::Anew);
                }
                return Ok(Step::On);
            }
        })
    }

    /// As [`scan`](Self::scan), for keys alone: values are not touched, and nothing
    /// is waited for.
    ///
    /// # Errors
    /// None at present; a `Result` for symmetry with [`scan`](Self::scan).
    pub fn scan_keys<B>(
        &self,
        bounds: impl KeyRange,
        direction: Direction,
        mut show: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let bounds = key_bounds(&bounds);
        let guard = self.tree.reclaimer.pin();
        // Keys never change, so that a mark will do for a count of readers. Inside of a closure
        // that is shown a key so, keys are copied.
        let (marker, mut copy) = (guard.marker(), Vec::new());
        self.walk(&guard, bounds, direction, Wanted::Key, |guard, seen, place| {
            let epoch = guard.epoch();
            let record = match seen {
                Visit::Gone => return Ok(Step::On),
                Visit::Record(record) => record,
                Visit::Moved(record) if self.contains_key(record.key())? => record,
                Visit::Moved(_) => return Ok(Step::On),
            };
            let mut key = record.key();
            let flow = match &marker {
                Some(marker) => marker.outside(record.address(), || show(key)),
                None => {
                    copy.clear();
                    copy.extend_from_slice(key);
                    key = &copy;
                    guard.outside(|| show(key))
                }
            };
            if let ControlFlow::Break(result) = flow {
                return Ok(Step::Break(result));
            }
            if guard.epoch() != epoch {
                place.set(From::Behind, key);
                return Ok(Step::Anew);
            }
            Ok(Step::On)
        })
    }

    /// Goes from entry to entry and from chunk to chunk. `each` may let go of the guard; if it
    /// then says that it has to begin anew, it has said from where.
    fn walk<B>(
        &self,
        guard: &Guard,
        bounds: KeyBounds<'_>,
        direction: Direction,
        wanted: Wanted,
        mut each: impl FnMut(&Guard, Visit<'_>, &mut Place) -> Result<Step<B>>,
    ) -> Result<ControlFlow<B>> {
        let (prefetch_lines, reads_values) = match wanted {
            Wanted::Key => (KEY_LINES, false),
            Wanted::Record => (RECORD_LINES, true),
        };
        if bounds.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut place = Place::new();
        loop {
            let rest = place.rest_of(bounds, direction);
            let chunk = self.chunk_at_edge(guard, rest, direction);
            let mut cursor = ChunkCursor::new(chunk, rest, direction, prefetch_lines);
            let ended = loop {
                let Some(visit) = cursor.next() else { break true };
                match each(guard, visit, &mut place)? {
                    Step::On => {}
                    Step::Anew => break false,
                    Step::Break(result) => return Ok(ControlFlow::Break(result)),
                }
            };
            if ended {
                let border = next_border(&chunk, bounds, direction);
                let is_last = border.is_none();
                if let Some(border) = border {
                    place.set_border(border, direction);
                }
                if reads_values && bounds.cover(&chunk) {
                    self.cluster_if_due(guard, &chunk);
                }
                if is_last {
                    return Ok(ControlFlow::Continue(()));
                }
                guard.repin();
            }
        }
    }

    /// The chunk where a walk over `bounds` begins.
    pub(crate) fn chunk_at_edge<'g>(
        &'g self,
        guard: &'g Guard,
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

/// How a walk goes on after an entry.
enum Step<B> {
    On,
    /// The chunk may have gone meanwhile: from its place again.
    Anew,
    Break(B),
}

impl<B> Step<B> {
    /// After an entry that was not shown: the guard may have let go in between.
    fn after(guard: &Guard, epoch: Epoch) -> Step<B> {
        if guard.epoch() == epoch { Step::On } else { Step::Anew }
    }
}

/// Where a walk goes on when it looks for its chunk again.
pub(crate) struct Place {
    from: From,
    key: Vec<u8>,
}

/// How the key of a [`Place`] is meant, in the direction of the walk.
#[derive(Clone, Copy)]
pub(crate) enum From {
    /// There is none yet: at the bounds.
    Bounds,
    /// With the key itself.
    At,
    /// Behind the key.
    Behind,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { from: From::Bounds, key: Vec::new() }
    }

    #[cold]
    pub(crate) fn set(&mut self, from: From, key: &[u8]) {
        self.from = from;
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// Goes on in the next chunk: a border belongs to the chunk above it.
    pub(crate) fn set_border(&mut self, border: &[u8], direction: Direction) {
        let from = match direction {
            Direction::Ascending => From::At,
            Direction::Descending => From::Behind,
        };
        self.set(from, border);
    }

    /// The rest of `bounds`.
    pub(crate) fn rest_of<'k>(
        &'k self,
        bounds: KeyBounds<'k>,
        direction: Direction,
    ) -> KeyBounds<'k> {
        let edge = match self.from {
            From::Bounds => return bounds,
            From::At => Bound::Included(&self.key[..]),
            From::Behind => Bound::Excluded(&self.key[..]),
        };
        match direction {
            Direction::Ascending => KeyBounds { low: edge, ..bounds },
            Direction::Descending => KeyBounds { high: edge, ..bounds },
        }
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

pub(crate) fn key_bounds(range: &impl KeyRange) -> KeyBounds<'_> {
    let (low, high) = range.bounds();
    KeyBounds { low, high }
}
