//! Iterators: entries one by one, each held by itself; both ends.

use std::ops::Bound;

use sapwood_engine::KeyRange;
use sapwood_mem::reclaim::{Epoch, Guard};

use crate::Direction;
use crate::error::Result;
use crate::map::ChunkMap;
use crate::node::chunk::RECORD_LINES;
use crate::node::cursor::{ChunkCursor, KeyBounds, Visit};
use crate::node::record::{Entered, ReadLock};
use crate::read::scan::{key_bounds, next_border};

/// An entry that is held: key and value stay as they are for as long as it lives.
///
/// Others may update or remove the entry meanwhile, which goes to a copy. An entry
/// that is kept keeps the memory of its own key and value, and no other.
pub struct Entry<'a> {
    lock: ReadLock<'a>,
}

impl<'a> Entry<'a> {
    /// The entry of a record of this map, which may outlive the guard that it was found under.
    pub(crate) fn of(_map: &'a ChunkMap, lock: ReadLock<'_>) -> Entry<'a> {
        // SAFETY: I-HELD: the borrow of the map ends before the map does.
        Entry { lock: unsafe { lock.unpinned() } }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.lock.key()
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

/// One end of a range: where its cursor is, and in which epoch it got there. The cursor is used
/// under a guard that keeps the epoch, or not at all.
#[derive(Default)]
struct End<'a> {
    cursor: Option<(Box<ChunkCursor<'a>>, Epoch)>,
    /// It came into its chunk from the one before.
    from_border: bool,
}

impl<'a> End<'a> {
    /// The cursor, if what it knows is still there.
    #[inline]
    fn cursor(&mut self, guard: &Guard) -> Option<&mut ChunkCursor<'a>> {
        if self.cursor.as_ref().is_some_and(|(_, epoch)| !guard.keeps(*epoch)) {
            self.cursor = None;
        }
        self.cursor.as_mut().map(|(cursor, _)| &mut **cursor)
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
    pub fn range(&self, bounds: impl KeyRange) -> Range<'_> {
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
        if self.done {
            return None;
        }
        let map = self.map;
        let pinned = map.tree.reclaimer.pin();
        // SAFETY: I-PINNED, I-HELD: what is made with this reference and outlives the guard is an
        // end's cursor, which is used again only under a guard that keeps the cursor's epoch, and
        // locks, which hold their records by themselves.
        let guard: &'a Guard<'a> = unsafe { &*(&raw const pinned).cast() };
        while !self.done {
            let bounds = KeyBounds {
                low: self.low.as_ref().map(Vec::as_slice),
                high: self.high.as_ref().map(Vec::as_slice),
            };
            let end = match direction {
                Direction::Ascending => &mut self.front,
                Direction::Descending => &mut self.back,
            };
            if end.cursor(guard).is_none() {
                let chunk = map.chunk_at_edge(guard, bounds, direction);
                let cursor = ChunkCursor::new(chunk, bounds, direction, RECORD_LINES);
                end.cursor = Some((Box::new(cursor), guard.epoch()));
            }
            let Some((cursor, _)) = &mut end.cursor else { unreachable!("made just now") };
            let Some(visit) = cursor.next() else {
                let border = next_border(cursor.chunk(), bounds, direction).map(<[u8]>::to_vec);
                let chunk = *cursor.chunk();
                end.cursor = None;
                let whole = std::mem::replace(&mut end.from_border, border.is_some());
                if whole && border.is_some() {
                    map.cluster_if_due(guard, &chunk);
                }
                guard.repin();
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
            let narrowed = match direction {
                Direction::Ascending => &mut self.low,
                Direction::Descending => &mut self.high,
            };
            exclude(narrowed, key);
            let locked = match record.try_read() {
                Ok(Entered::Inside(lock)) => Ok(Some(lock)),
                Err(refused) => Err(refused),
                // The wait for a value may take the record away: its key is in the bound now.
                Ok(Entered::Dead | Entered::Busy) => map.read_lock(guard, excluded(narrowed)),
            };
            match locked {
                Ok(Some(lock)) => return Some(Ok(Entry::of(map, lock))),
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

/// The key that [`exclude`] has put there.
fn excluded(bound: &Bound<Vec<u8>>) -> &[u8] {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
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
