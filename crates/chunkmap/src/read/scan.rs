//! Streams: every entry of a range is shown to a closure, and nothing is created
//! per entry.

use std::ops::{Bound, ControlFlow};

use sapwood_engine::KeyRange;
use sapwood_mem::reclaim::{Epoch, Guard, Marker};

use crate::Direction;
use crate::error::Result;
use crate::map::ChunkMap;
use crate::node::chunk::{Chunk, KEY_LINES, RECORD_LINES};
use crate::node::cursor::{ChunkCursor, KeyBounds, Visit};
use crate::node::record::{Entered, Record};
use crate::node::sorted_keys::{KeyCursor, Seen};

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
        walk(&guard, bounds, direction, |rest, next| {
            let chunk = self.chunk_at_edge(&guard, rest, direction);
            let mut cursor = ChunkCursor::new(chunk, rest, direction, RECORD_LINES);
            while let Some(visit) = cursor.next() {
                match self.show_entry(&guard, visit, next, &mut show)? {
                    Entry::Shown => {}
                    Entry::ShownLast(result) => return Ok(Step::Break(result)),
                    Entry::Left => return Ok(Step::On),
                }
            }
            let step = next.step_behind(&chunk, bounds, direction);
            if bounds.cover(&chunk) {
                self.cluster_if_due(&guard, &chunk);
            }
            Ok(step)
        })
    }

    /// Shows an entry, unless it has gone.
    #[inline(always)]
    fn show_entry<B>(
        &self,
        guard: &Guard,
        mut seen: Visit<'_>,
        next: &mut Place,
        show: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Entry<B>> {
        let epoch = guard.epoch();
        loop {
            let lock = match seen {
                Visit::Gone => return Ok(Entry::Shown),
                Visit::Record(record) => match record.try_read()? {
                    Entered::Inside(lock) => lock,
                    // It died just now: by removal, or it has a successor.
                    Entered::Dead => {
                        seen = Visit::Moved(record);
                        continue;
                    }
                    Entered::Busy => {
                        next.set(From::At, record.key());
                        match self.read_lock(guard, &next.key)? {
                            Some(lock) => lock,
                            None => return Ok(Entry::passed(guard, epoch)),
                        }
                    }
                },
                Visit::Moved(record) => {
                    // The wait for a value may take the record away: its key is copied.
                    next.set(From::At, record.key());
                    match self.read_lock(guard, &next.key)? {
                        Some(lock) => lock,
                        None => return Ok(Entry::passed(guard, epoch)),
                    }
                }
            };
            if let ControlFlow::Break(result) = guard.outside(|| show(lock.key(), lock.value())) {
                return Ok(Entry::ShownLast(result));
            }
            if guard.epoch() != epoch {
                next.set(From::Behind, lock.key());
                return Ok(Entry::Left);
            }
            return Ok(Entry::Shown);
        }
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
        let (mut shower, mut written) = (KeyShower::new(&guard), Vec::new());
        walk(&guard, bounds, direction, |rest, next| {
            // Before the look for the chunk: see `Removals`.
            let are_words_enough = self.removals.is_none();
            let chunk = self.chunk_at_edge(&guard, rest, direction);
            if are_words_enough && chunk.is_exact() {
                let mut cursor = KeyCursor::new(chunk, rest, direction, &mut written);
                while let Some(seen) = cursor.next() {
                    let shown = match seen {
                        Seen::Sorted => shower.show_copy(cursor.key(), next, &mut show),
                        Seen::Entry(visit) => self.show_key(&mut shower, visit, next, &mut show)?,
                    };
                    match shown {
                        Entry::Shown => {}
                        Entry::ShownLast(result) => return Ok(Step::Break(result)),
                        Entry::Left => return Ok(Step::On),
                    }
                }
            } else {
                let mut cursor = ChunkCursor::new(chunk, rest, direction, KEY_LINES);
                while let Some(visit) = cursor.next() {
                    match self.show_key(&mut shower, visit, next, &mut show)? {
                        Entry::Shown => {}
                        Entry::ShownLast(result) => return Ok(Step::Break(result)),
                        Entry::Left => return Ok(Step::On),
                    }
                }
            }
            Ok(next.step_behind(&chunk, bounds, direction))
        })
    }

    /// Shows the key of an entry, unless it has gone.
    #[inline(always)]
    fn show_key<B>(
        &self,
        shower: &mut KeyShower<'_>,
        seen: Visit<'_>,
        next: &mut Place,
        show: &mut impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<Entry<B>> {
        let record = match seen {
            Visit::Gone => return Ok(Entry::Shown),
            Visit::Record(record) => record,
            Visit::Moved(record) if self.contains_key(record.key())? => record,
            Visit::Moved(_) => return Ok(Entry::Shown),
        };
        Ok(shower.show(record, next, show))
    }

    /// The chunk where a walk over `bounds` begins.
    #[inline]
    pub(crate) fn chunk_at_edge<'g>(
        &'g self,
        guard: &'g Guard,
        bounds: KeyBounds<'_>,
        direction: Direction,
    ) -> Chunk<'g> {
        let leaf = match (direction, bounds.low, bounds.high) {
            (Direction::Ascending, Bound::Unbounded, _)
            | (Direction::Descending, _, Bound::Unbounded) => {
                self.tree.outermost_leaf(guard, direction)
            }
            (Direction::Ascending, Bound::Included(low) | Bound::Excluded(low), _) => {
                self.tree.leaf(guard, low)
            }
            (Direction::Descending, _, Bound::Included(high)) => self.tree.leaf(guard, high),
            (Direction::Descending, _, Bound::Excluded(high)) => self.tree.leaf_below(guard, high),
        };
        leaf.chunk
    }
}

/// Shows keys, while the guard lets go.
struct KeyShower<'g> {
    guard: &'g Guard<'g>,
    /// Keys never change, so that a mark will do for a count of readers. Inside of a closure that is shown a key so,
    /// keys are copied.
    marker: Option<Marker<'g>>,
    copy: Vec<u8>,
}

impl<'g> KeyShower<'g> {
    fn new(guard: &'g Guard<'g>) -> KeyShower<'g> {
        KeyShower { guard, marker: guard.marker(), copy: Vec::new() }
    }

    /// Shows a record's key.
    #[inline(always)]
    fn show<B>(
        &mut self,
        record: Record<'_>,
        next: &mut Place,
        show: &mut impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Entry<B> {
        let (epoch, key) = (self.guard.epoch(), record.key());
        let Some(marker) = &self.marker else {
            let mut copy = std::mem::take(&mut self.copy);
            copy.clear();
            copy.extend_from_slice(key);
            let shown = self.show_copy(&copy, next, show);
            self.copy = copy;
            return shown;
        };
        let flow = marker.outside(record.address(), || show(key));
        self.after(epoch, flow, key, next)
    }

    /// Shows a key that lies elsewhere than in a record.
    #[inline(always)]
    fn show_copy<B>(
        &self,
        key: &[u8],
        next: &mut Place,
        show: &mut impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Entry<B> {
        let epoch = self.guard.epoch();
        let flow = self.guard.outside(|| show(key));
        self.after(epoch, flow, key, next)
    }

    #[inline(always)]
    fn after<B>(
        &self,
        epoch: Epoch,
        flow: ControlFlow<B>,
        key: &[u8],
        next: &mut Place,
    ) -> Entry<B> {
        if let ControlFlow::Break(result) = flow {
            return Entry::ShownLast(result);
        }
        if self.guard.epoch() != epoch {
            next.set(From::Behind, key);
            return Entry::Left;
        }
        Entry::Shown
    }
}

/// Goes from chunk to chunk. `over` walks over the first chunk of the bounds that it is given; if there is more
/// then, it has said from where.
pub(crate) fn walk<B>(
    guard: &Guard,
    bounds: KeyBounds<'_>,
    direction: Direction,
    mut over: impl FnMut(KeyBounds<'_>, &mut Place) -> Result<Step<B>>,
) -> Result<ControlFlow<B>> {
    if bounds.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    let (mut place, mut next) = (Place::at_bounds(), Place::at_bounds());
    loop {
        match over(place.rest_of(bounds, direction), &mut next)? {
            Step::On => {}
            Step::Ended => return Ok(ControlFlow::Continue(())),
            Step::Break(result) => return Ok(ControlFlow::Break(result)),
        }
        std::mem::swap(&mut place, &mut next);
        guard.repin();
    }
}

/// How a walk goes on after a chunk.
pub(crate) enum Step<B> {
    /// From the next place.
    On,
    Ended,
    Break(B),
}

/// What became of an entry.
enum Entry<B> {
    /// It was shown, or there was nothing to show.
    Shown,
    /// The closure wants no more.
    ShownLast(B),
    /// The chunk may have gone meanwhile: from the next place again.
    Left,
}

impl<B> Entry<B> {
    /// Of one that was not shown: the guard may have let go in between.
    fn passed(guard: &Guard, epoch: Epoch) -> Entry<B> {
        if guard.epoch() == epoch { Entry::Shown } else { Entry::Left }
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
    fn at_bounds() -> Place {
        Place { from: From::Bounds, key: Vec::new() }
    }

    #[cold]
    pub(crate) fn set(&mut self, from: From, key: &[u8]) {
        self.from = from;
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// Goes on behind a chunk, if the bounds do not end in it. A border belongs to the chunk above it.
    pub(crate) fn step_behind<B>(
        &mut self,
        chunk: &Chunk<'_>,
        bounds: KeyBounds<'_>,
        direction: Direction,
    ) -> Step<B> {
        let Some(border) = next_border(chunk, bounds, direction) else { return Step::Ended };
        let from = match direction {
            Direction::Ascending => From::At,
            Direction::Descending => From::Behind,
        };
        self.set(from, border);
        Step::On
    }

    /// The rest of `bounds`.
    fn rest_of<'k>(&'k self, bounds: KeyBounds<'k>, direction: Direction) -> KeyBounds<'k> {
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
    chunk: &Chunk<'g>,
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
