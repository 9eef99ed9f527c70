//! Iterators: entries one by one, each under a guard of its own; both ends.

use std::ops::{Bound, RangeBounds};

use sapwood_mem::epoch::Guard;

use crate::chunk::RECORD_LINES;
use crate::cursor::{ChunkCursor, Direction, KeyBounds, Visit};
use crate::error::Result;
use crate::map::ChunkMap;
use crate::record::ReadLock;
use crate::scan::{key_bounds, next_border};

/// An entry under its guard: key and value stay as they are for as long as it lives.
///
/// Others may update or remove the entry meanwhile, which goes to a copy. An
/// entry that is kept keeps memory from being reused: let go of it soon.
pub struct Entry<'a> {
    // Before the guard, since it must go first.
    lock: ReadLock<'a>,
    _guard: Guard,
}

impl Entry<'_> {
    /// The key.
    pub fn key(&self) -> &[u8] {
        self.lock.record().key()
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        self.lock.value()
    }

    /// Copies of key and value.
    pub fn to_owned(&self) -> (Vec<u8>, Vec<u8>) {
        (self.key().to_vec(), self.value().to_vec())
    }
}

impl std::fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("key", &self.key()).field("value", &self.value()).finish()
    }
}

/// Entries of a range in ascending order; from its other end with
/// [`rev`](Iterator::rev) or [`next_back`](DoubleEndedIterator::next_back).
///
/// # Consistency
/// As of [`ChunkMap::scan`].
///
/// # Errors
/// An item is an error only inside a closure that changes a value; the iterator
/// goes on behind it.
pub struct Range<'a> {
    map: &'a ChunkMap,
    front: End<'a>,
    back: End<'a>,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    done: bool,
}

/// One end of a range: where its cursor is, and the guard that keeps it valid.
#[derive(Default)]
struct End<'a> {
    // Before the guard, since it must go first.
    cursor: Option<Box<ChunkCursor<'a>>>,
    guard: Option<Guard>,
}

impl<'a> End<'a> {
    /// The guard, with a lifetime that ends with the cursor rather than with the borrow.
    fn pinned(&mut self, map: &ChunkMap) -> &'a Guard {
        let guard: *const Guard = self.guard.get_or_insert_with(|| map.tree.reclaimer.pin());
        // SAFETY: what is made with this reference lives in `cursor` or in a value
        // with its own guard; `cursor` is dropped or replaced before the guard is.
        // A guard is an owner of a pin, not a place: moving the `End` keeps it.
        unsafe { &*guard }
    }
}

impl ChunkMap {
    /// Iterates over the entries within `bounds`: `..`, `&b"a"[..]..&b"b"[..]`, or
    /// a pair of [`Bound`]s.
    ///
    /// ```
    /// # use sapwood_chunkmap::ChunkMap;
    /// # let map = ChunkMap::new();
    /// map.put(b"a", b"1")?;
    /// map.put(b"b", b"2")?;
    /// let newest = map.range(..).next_back().expect("not empty")?;
    /// assert_eq!((newest.key(), newest.value()), (&b"b"[..], &b"2"[..]));
    /// let pairs: Result<Vec<_>, _> = map.range(..).owned().collect();
    /// assert_eq!(pairs?.len(), 2);
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    pub fn range<'k>(&self, bounds: impl RangeBounds<&'k [u8]>) -> Range<'_> {
        let bounds = key_bounds(&bounds);
        Range {
            map: self,
            front: End::default(),
            back: End::default(),
            low: bounds.low.map(<[u8]>::to_vec),
            high: bounds.high.map(<[u8]>::to_vec),
            done: bounds.is_empty(),
        }
    }
}

impl<'a> Range<'a> {
    /// The same entries as pairs of vectors.
    pub fn owned(self) -> impl DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>)>> + 'a {
        self.map(|entry| entry.map(|entry| entry.to_owned()))
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Entry<'a>>> {
        while !self.done {
            let bounds = KeyBounds {
                low: self.low.as_ref().map(Vec::as_slice),
                high: self.high.as_ref().map(Vec::as_slice),
            };
            let map = self.map;
            let end = match direction {
                Direction::Ascending => &mut self.front,
                Direction::Descending => &mut self.back,
            };
            let guard = end.pinned(map);
            let cursor = end.cursor.get_or_insert_with(|| {
                let chunk = map.chunk_at_edge(guard, bounds, direction);
                Box::new(ChunkCursor::new(chunk, bounds, direction, RECORD_LINES))
            });
            let Some(visit) = cursor.next() else {
                let border = next_border(cursor.chunk(), bounds, direction).map(<[u8]>::to_vec);
                end.cursor = None;
                if let Some(guard) = &mut end.guard {
                    guard.repin();
                }
                match (border, direction) {
                    (None, _) => self.done = true,
                    (Some(border), Direction::Ascending) => self.low = Bound::Included(border),
                    (Some(border), Direction::Descending) => self.high = Bound::Excluded(border),
                }
                continue;
            };
            let record = match visit {
                Visit::Gone => continue,
                Visit::Record(record) | Visit::Moved(record) => record,
            };
            let key = record.key();
            // The other end may have come to meet this one since the cursor was made.
            let (behind, beyond) = match direction {
                Direction::Ascending => (!bounds.above_low(key), !bounds.below_high(key)),
                Direction::Descending => (!bounds.below_high(key), !bounds.above_low(key)),
            };
            if behind || beyond {
                self.done = beyond;
                continue;
            }
            let locked = match record.read() {
                Ok(Some(lock)) => Ok(Some(lock)),
                Ok(None) => map.read_lock(guard, key),
                Err(refused) => Err(refused),
            };
            let narrowed = match direction {
                Direction::Ascending => &mut self.low,
                Direction::Descending => &mut self.high,
            };
            exclude(narrowed, key);
            match locked {
                Ok(Some(lock)) => {
                    return Some(Ok(Entry { lock, _guard: map.tree.reclaimer.pin() }));
                }
                Ok(None) => {}
                Err(refused) => return Some(Err(refused)),
            }
        }
        None
    }
}

/// Makes `bound` exclude `key`, in the buffer it has.
fn exclude(bound: &mut Bound<Vec<u8>>, key: &[u8]) {
    let mut buffer = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(buffer) | Bound::Excluded(buffer) => buffer,
        Bound::Unbounded => Vec::new(),
    };
    buffer.clear();
    buffer.extend_from_slice(key);
    *bound = Bound::Excluded(buffer);
}

impl<'a> Iterator for Range<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Ascending)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Descending)
    }
}

impl std::iter::FusedIterator for Range<'_> {}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range")
            .field("low", &self.low)
            .field("high", &self.high)
            .finish_non_exhaustive()
    }
}
