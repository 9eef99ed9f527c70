//! Cursors: the entries of a chunk one after the other, in key order, either way.
//!
//! A cursor merges the sorted part with the delta as it was when the cursor was
//! made, sorted once. It needs no more work downwards than upwards.
//!
//! A cursor knows what was reached in one epoch. It keeps addresses and no
//! references, so that it may lie about after that epoch, unused.

use std::cmp::Ordering as KeyOrder;
use std::ops::{Bound, Range};
use std::ptr::NonNull;

use sapwood_engine::Direction;
use sapwood_mem::SliceRef;
use sapwood_mem::sync::{Ordering, RawAtomicU64};

use crate::layout::{EntryState, FROZEN};
use crate::node::chunk::{Chunk, Gathered};
use crate::node::record::Record;
use crate::options::DELTA_ENTRIES_MAX;

/// Two bounds of keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyBounds<'k> {
    pub(crate) low: Bound<&'k [u8]>,
    pub(crate) high: Bound<&'k [u8]>,
}

impl<'k> KeyBounds<'k> {
    /// The key of the lower bound.
    pub(crate) fn low_key(&self) -> Option<&'k [u8]> {
        match self.low {
            Bound::Unbounded => None,
            Bound::Included(low) | Bound::Excluded(low) => Some(low),
        }
    }

    /// The key of the upper bound.
    pub(crate) fn high_key(&self) -> Option<&'k [u8]> {
        match self.high {
            Bound::Unbounded => None,
            Bound::Included(high) | Bound::Excluded(high) => Some(high),
        }
    }

    pub(crate) fn without_low(&self) -> KeyBounds<'k> {
        KeyBounds { low: Bound::Unbounded, high: self.high }
    }

    pub(crate) fn without_high(&self) -> KeyBounds<'k> {
        KeyBounds { low: self.low, high: Bound::Unbounded }
    }
}

impl KeyBounds<'_> {
    pub(crate) fn above_low(&self, key: &[u8]) -> bool {
        match self.low {
            Bound::Unbounded => true,
            Bound::Included(low) => low <= key,
            Bound::Excluded(low) => low < key,
        }
    }

    pub(crate) fn below_high(&self, key: &[u8]) -> bool {
        match self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
        }
    }

    /// Whether no key can be between them.
    pub(crate) fn is_empty(&self) -> bool {
        match (self.low, self.high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (
                Bound::Included(low) | Bound::Excluded(low),
                Bound::Included(high) | Bound::Excluded(high),
            ) => low >= high,
        }
    }

    /// Whether keys from `limit` on lie outside.
    pub(crate) fn ends_before(&self, limit: &[u8]) -> bool {
        match self.high {
            Bound::Unbounded => false,
            Bound::Included(high) => high < limit,
            Bound::Excluded(high) => high <= limit,
        }
    }

    /// Whether every key of the chunk lies between them.
    pub(crate) fn cover(&self, chunk: &Chunk<'_>) -> bool {
        let above = match chunk.high() {
            Some(limit) => !self.ends_before(limit),
            None => self.high == Bound::Unbounded,
        };
        above && covers_low(chunk, self.low)
    }

    /// Whether keys below `limit` lie outside.
    pub(crate) fn begins_at(&self, limit: &[u8]) -> bool {
        match self.low {
            Bound::Unbounded => false,
            Bound::Included(low) | Bound::Excluded(low) => low >= limit,
        }
    }
}

/// An entry of the delta in a cursor's order.
#[derive(Clone, Copy)]
struct DeltaEntry {
    entry: Gathered,
    at: usize,
}

/// Where an entry of a chunk lies.
#[derive(Clone, Copy)]
pub(crate) enum At {
    Sorted(usize),
    Delta { at: usize, abbreviation: u64 },
}

/// The entries of a chunk that lie within bounds: the sorted part, merged with the delta as it was.
pub(crate) struct Merge<'g> {
    chunk: Chunk<'g>,
    direction: Direction,
    /// Sorted entries not yet merged.
    sorted: Range<usize>,
    /// Delta entries not yet merged lie in `delta[delta_range]`, in key order.
    delta: [DeltaEntry; DELTA_ENTRIES_MAX],
    delta_range: Range<usize>,
}

impl<'g> Merge<'g> {
    pub(crate) fn new(chunk: Chunk<'g>, bounds: KeyBounds<'_>, direction: Direction) -> Merge<'g> {
        let inside = Inside::of(&chunk, bounds);
        let nothing =
            Gathered { abbreviation: 0, slice: SliceRef::from_word(1).expect("not zero") };
        let mut delta = [DeltaEntry { entry: nothing, at: 0 }; DELTA_ENTRIES_MAX];
        let mut delta_len = 0;
        for (at, entry) in chunk.delta_entries_where(|abbreviation| inside.may_have(abbreviation)) {
            if !inside.contains(&chunk, &entry) {
                continue;
            }
            delta[delta_len] = DeltaEntry { entry, at };
            delta_len += 1;
        }
        // Equal keys: all but one are dead, in any order.
        delta[..delta_len].sort_unstable_by(|a, b| chunk.compare(&a.entry, &b.entry));
        let sorted = inside.sorted(&chunk);
        Merge { chunk, direction, sorted, delta, delta_range: 0..delta_len }
    }

    pub(crate) fn chunk(&self) -> &Chunk<'g> {
        &self.chunk
    }

    /// The word of an entry.
    #[inline]
    pub(crate) fn word(&self, at: At) -> &'g RawAtomicU64 {
        match at {
            At::Sorted(at) => self.chunk.sorted_word(at),
            At::Delta { at, .. } => &self.chunk.delta_words()[at],
        }
    }

    /// Slices of the delta's entries that are not yet merged, as they were.
    pub(crate) fn delta_slices(&self) -> impl Iterator<Item = SliceRef> {
        self.delta[self.delta_range.clone()].iter().map(|delta| delta.entry.slice)
    }

    /// The next entry.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<At> {
        let (sorted_at, delta_at) = match self.direction {
            Direction::Ascending => (self.sorted.start, self.delta_range.start),
            Direction::Descending => {
                (self.sorted.end.wrapping_sub(1), self.delta_range.end.wrapping_sub(1))
            }
        };
        let delta =
            (!self.delta_range.is_empty()).then(|| &self.delta[delta_at % self.delta.len()]);
        if self.sorted_is_next(sorted_at, delta)? {
            match self.direction {
                Direction::Ascending => self.sorted.start += 1,
                Direction::Descending => self.sorted.end -= 1,
            }
            return Some(At::Sorted(sorted_at));
        }
        let DeltaEntry { entry, at } = *delta?;
        match self.direction {
            Direction::Ascending => self.delta_range.start += 1,
            Direction::Descending => self.delta_range.end -= 1,
        }
        Some(At::Delta { at, abbreviation: entry.abbreviation })
    }

    /// Asks for the words of the sorted entries that come so far behind the next one; upwards.
    #[inline]
    pub(crate) fn prefetch_sorted(&self, behind: Range<usize>) {
        let at = self.sorted.start;
        self.chunk.prefetch_sorted(at + behind.start..at + behind.end);
    }

    /// Sorted entries that are not yet merged.
    pub(crate) fn sorted_left(&self) -> usize {
        self.sorted.len()
    }

    /// Takes the sorted entries that come before the next one of the delta, `most` of them at most; upwards.
    #[inline]
    pub(crate) fn sorted_run(&mut self, most: usize) -> Range<usize> {
        debug_assert!(self.direction == Direction::Ascending);
        let begin = self.sorted.start;
        let mut end = self.sorted.end.min(begin + most);
        if !self.delta_range.is_empty() {
            let next = self.delta[self.delta_range.start % self.delta.len()].entry.abbreviation;
            let before = |at: &usize| self.chunk.sorted_abbreviation(*at) < next;
            end = (begin..end).find(|at| !before(at)).unwrap_or(end);
        }
        self.sorted.start = end;
        begin..end
    }

    /// Whether the next entry comes from the sorted part, at `at`; `None` at the end.
    #[inline]
    fn sorted_is_next(&self, at: usize, delta: Option<&DeltaEntry>) -> Option<bool> {
        let Some(delta) = delta else { return (!self.sorted.is_empty()).then_some(true) };
        if self.sorted.is_empty() {
            return Some(false);
        }
        let first = match self.direction {
            Direction::Ascending => KeyOrder::Less,
            Direction::Descending => KeyOrder::Greater,
        };
        let abbreviation = self.chunk.sorted_abbreviation(at);
        if abbreviation != delta.entry.abbreviation {
            return Some(abbreviation.cmp(&delta.entry.abbreviation) == first);
        }
        // Acquire: pairs with the CAS in `swap` that published the record.
        let word = self.chunk.sorted_word(at).load(Ordering::Acquire);
        let EntryState::Record(slice) = EntryState::of(word) else { return Some(true) };
        let sorted = Gathered { abbreviation, slice };
        Some(self.chunk.compare(&sorted, &delta.entry) == first)
    }
}

/// Entries whose records are asked for before they are visited: enough to cover a
/// load from memory with the work on those in hand. A power of two.
const AHEAD: usize = 8;
/// The same where records are long: more of their lines than the processor keeps in flight are no faster upwards, and
/// slower downwards. A power of two, too.
const LONG_AHEAD: usize = 4;
const LONG_BYTES: usize = 512;

/// Walks the records of one chunk that lie within bounds.
pub(crate) struct ChunkCursor<'g> {
    merge: Merge<'g>,
    /// Entries merged and asked for, but not yet visited: a ring.
    ahead: [Option<NonNull<RawAtomicU64>>; AHEAD],
    /// To the places of it that are used.
    ahead_mask: usize,
    visited: usize,
    /// The record visited last, and whether it had moved.
    previous: Option<(Record<'g>, bool)>,
    prefetch_lines: usize,
}

/// The contents of an entry at the moment of the visit.
#[derive(Clone, Copy)]
pub(crate) enum Visit<'g> {
    Record(Record<'g>),
    /// Nothing any more.
    Gone,
    /// The chunk is frozen and the record dead: look the key up afresh.
    Moved(Record<'g>),
}

impl<'g> ChunkCursor<'g> {
    /// A cursor over the entries of `chunk` within `bounds`, which asks for
    /// `prefetch_lines` cache lines of the records to come.
    pub(crate) fn new(
        chunk: Chunk<'g>,
        bounds: KeyBounds<'_>,
        direction: Direction,
        prefetch_lines: usize,
    ) -> ChunkCursor<'g> {
        let mut cursor = ChunkCursor {
            merge: Merge::new(chunk, bounds, direction),
            ahead: [None; AHEAD],
            ahead_mask: AHEAD - 1,
            visited: 0,
            previous: None,
            prefetch_lines,
        };
        let mut place = 0;
        while place <= cursor.ahead_mask {
            let word = cursor.merge_next();
            if place == 0 && word.is_some_and(|word| cursor.is_long(word)) {
                cursor.ahead_mask = LONG_AHEAD - 1;
            }
            cursor.ahead[place] = word.map(NonNull::from);
            place += 1;
        }
        cursor
    }

    pub(crate) fn chunk(&self) -> &Chunk<'g> {
        self.merge.chunk()
    }

    /// The contents of the next entry that is not gone.
    ///
    /// A frozen chunk can have two entries of one key: a record that was being
    /// removed, and one inserted afterwards. Their order is any. Once both have
    /// moved on, each leads to the same successor; so of two neighbours of one
    /// key, one of them moved, only the first counts.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Visit<'g>> {
        loop {
            let word = self.next_word()?;
            let (visit, _) = look(self.chunk(), word);
            let (record, moved) = match visit {
                Visit::Gone => continue,
                Visit::Record(record) => (record, false),
                Visit::Moved(record) => (record, true),
            };
            let previous = self.previous.replace((record, moved));
            let again = previous.is_some_and(|(previous, previous_moved)| {
                (moved || previous_moved) && previous.key() == record.key()
            });
            if !again {
                return Some(visit);
            }
        }
    }

    /// The word of the next entry.
    #[inline(always)]
    fn next_word(&mut self) -> Option<&'g RawAtomicU64> {
        let place = self.visited & self.ahead_mask;
        let word = self.ahead[place]?;
        self.ahead[place] = self.merge_next().map(NonNull::from);
        self.visited += 1;
        // SAFETY: I-PINNED: a word of the chunk, which is there for as long as the cursor is used.
        Some(unsafe { word.as_ref() })
    }

    /// Whether much is asked for of a word's record.
    fn is_long(&self, word: &RawAtomicU64) -> bool {
        let bytes = match EntryState::of(word.load(Ordering::Relaxed)) {
            EntryState::Record(slice) => self.chunk().slice_bytes(slice),
            EntryState::Empty | EntryState::Tombstone => 0,
        };
        bytes.min(self.prefetch_lines * 64) >= LONG_BYTES
    }

    /// Merges one entry more, and asks for its record.
    #[inline(always)]
    fn merge_next(&mut self) -> Option<&'g RawAtomicU64> {
        let at = self.merge.next()?;
        let (chunk, word) = (self.merge.chunk(), self.merge.word(at));
        if let EntryState::Record(slice) = EntryState::of(word.load(Ordering::Relaxed)) {
            match self.merge.direction {
                Direction::Ascending => chunk.prefetch_record(slice, self.prefetch_lines),
                Direction::Descending => chunk.prefetch_record_down(slice, self.prefetch_lines),
            }
        }
        Some(word)
    }
}

/// Bounds of keys as a chunk has them: with the abbreviations of those that lie among its own keys.
pub(crate) struct Inside<'k> {
    bounds: KeyBounds<'k>,
    low: Option<u64>,
    high: Option<u64>,
}

impl<'k> Inside<'k> {
    pub(crate) const ALL: Inside<'static> = Inside {
        bounds: KeyBounds { low: Bound::Unbounded, high: Bound::Unbounded },
        low: None,
        high: None,
    };

    /// Whether all entries of the chunk lie between them.
    pub(crate) fn is_all(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }

    #[inline]
    pub(crate) fn of(chunk: &Chunk<'_>, bounds: KeyBounds<'k>) -> Inside<'k> {
        let low = match bounds.low {
            Bound::Included(low) | Bound::Excluded(low) if !covers_low(chunk, bounds.low) => {
                Some(chunk.abbreviate(low))
            }
            _ => None,
        };
        let high = match bounds.high {
            Bound::Included(high) | Bound::Excluded(high)
                if chunk.high().is_none_or(|limit| bounds.ends_before(limit)) =>
            {
                Some(chunk.abbreviate(high))
            }
            _ => None,
        };
        Inside { bounds, low, high }
    }

    /// The sorted entries between the bounds.
    #[inline]
    pub(crate) fn sorted(&self, chunk: &Chunk<'_>) -> Range<usize> {
        let start = match (self.bounds.low, self.low) {
            (Bound::Included(low), Some(at)) => chunk.sorted_bound(low, at, KeyOrder::Less),
            (Bound::Excluded(low), Some(at)) => chunk.sorted_bound(low, at, KeyOrder::Equal),
            _ => 0,
        };
        let end = match (self.bounds.high, self.high) {
            (Bound::Included(high), Some(at)) => chunk.sorted_bound(high, at, KeyOrder::Equal),
            (Bound::Excluded(high), Some(at)) => chunk.sorted_bound(high, at, KeyOrder::Less),
            _ => chunk.sorted_len(),
        };
        start..end.max(start)
    }

    /// The least and the greatest abbreviation that entries between the bounds may have.
    #[inline]
    pub(crate) fn abbreviations(&self) -> (u64, u64) {
        (self.low.unwrap_or(0), self.high.unwrap_or(u64::MAX))
    }

    /// The number of a chunk's entries between the bounds.
    pub(crate) fn count(&self, chunk: &Chunk<'_>) -> u64 {
        if self.is_all() {
            return chunk.live_len();
        }
        let is_live = |at: &usize| {
            // Relaxed: the record is not looked at.
            let word = chunk.sorted_word(*at).load(Ordering::Relaxed);
            matches!(EntryState::of(word), EntryState::Record(_))
        };
        let sorted = self.sorted(chunk).filter(is_live).count();
        let delta = chunk.delta_entries_where(|abbreviation| self.may_have(abbreviation));
        let delta = delta.filter(|(_, entry)| self.contains(chunk, entry)).count();
        (sorted + delta) as u64
    }

    /// Whether entries of this abbreviation may lie between the bounds.
    #[inline]
    pub(crate) fn may_have(&self, abbreviation: u64) -> bool {
        let (least, greatest) = self.abbreviations();
        (least <= abbreviation) & (abbreviation <= greatest)
    }

    /// Whether an entry of an abbreviation that they may have lies between the bounds. Its key is read only where
    /// abbreviations do not tell.
    #[inline]
    pub(crate) fn contains(&self, chunk: &Chunk<'_>, entry: &Gathered) -> bool {
        let at_low = self.low == Some(entry.abbreviation);
        let at_high = self.high == Some(entry.abbreviation);
        let key = || chunk.record(entry.slice).key();
        (!at_low || self.bounds.above_low(key())) && (!at_high || self.bounds.below_high(key()))
    }
}

/// Whether every key of the chunk lies above this lower bound.
fn covers_low(chunk: &Chunk<'_>, low: Bound<&[u8]>) -> bool {
    match (chunk.low(), low) {
        (_, Bound::Unbounded) => true,
        (None, _) => false,
        (Some(chunk_low), Bound::Included(low)) => low <= chunk_low,
        (Some(chunk_low), Bound::Excluded(low)) => low < chunk_low,
    }
}

/// Looks at an entry's record, and says where it is.
#[inline]
pub(crate) fn look<'g>(chunk: &Chunk<'g>, word: &'g RawAtomicU64) -> (Visit<'g>, Option<SliceRef>) {
    // Acquire: pairs with the CAS in `append` or `swap` that published the record.
    let mut value = word.load(Ordering::Acquire);
    loop {
        let EntryState::Record(slice) = EntryState::of(value) else { return (Visit::Gone, None) };
        let record = chunk.record(slice);
        if !record.is_dead() {
            return (Visit::Record(record), Some(slice));
        }
        // A replaced record dies after its word has moved on; a removed one before. Acquire: pairs
        // with the CAS in `swap`.
        let now = word.load(Ordering::Acquire);
        if EntryState::of(now) == EntryState::of(value) {
            let visit = if now & FROZEN != 0 { Visit::Moved(record) } else { Visit::Gone };
            return (visit, Some(slice));
        }
        value = now;
    }
}
