//! The nearest entry of a chunk in a direction, without a cursor.

use std::cell::Cell;
use std::cmp::Ordering as KeyOrder;
use std::ops::Range;

use sapwood_mem::SliceRef;
use sapwood_mem::sync::{Ordering, RawAtomicU64};

use crate::Direction;
use crate::layout::EntryState;
use crate::node::chunk::{Chunk, Edge, Entry, Gathered};
use crate::node::cursor::{Inside, KeyBounds, Visit, look};

/// The entry that a cursor would visit first, without a cursor; `None` where there is no entry.
///
/// If its record is alive afterwards, it was the first when the delta had been read to its end: what comes before it in
/// the sorted part was a tombstone by then. In a frozen chunk it was the first when that was frozen, or when the caller
/// came to it, if that was later.
pub(crate) fn nearest<'g>(
    chunk: &Chunk<'g>,
    bounds: KeyBounds<'_>,
    direction: Direction,
) -> Option<Entry<'g>> {
    let inside = Inside::of(chunk, bounds);
    if inside.is_all() {
        return nearest_of_all(chunk, direction);
    }
    let known = chunk.edge(direction);
    let (entry, gone) = nearest_of(chunk, &inside, direction, published);
    note(chunk, direction, known, Edge { gone, ..known });
    entry
}

/// The record that an entry's word names.
#[inline(always)]
fn published(word: &RawAtomicU64) -> Option<SliceRef> {
    // Acquire: pairs with the CAS in `append` or `swap` that published the record.
    match EntryState::of(word.load(Ordering::Acquire)) {
        EntryState::Record(slice) => Some(slice),
        EntryState::Empty | EntryState::Tombstone => None,
    }
}

/// Notes what is known of an end of a chunk, if it is much more than was known.
#[inline(always)]
fn note(chunk: &Chunk<'_>, direction: Direction, known: Edge, edge: Edge) {
    if edge.gone > known.gone + EDGE_STEP || edge.read > known.read + EDGE_STEP {
        chunk.note_edge(direction, edge);
    }
}

/// Entries at an end of a chunk that searches look at one by one, before one notes what it has seen.
const EDGE_STEP: usize = if cfg!(loom) { 0 } else { 8 };

/// What [`nearest_alive`] found.
pub(crate) struct Alive<'g> {
    pub(crate) entry: Option<Entry<'g>>,
    /// A dead record was met in a frozen chunk. If the chunk has been replaced since, its successor may hold a live one.
    pub(crate) stale: bool,
}

/// As [`nearest`], of the entries whose records are alive when it looks at them.
///
/// What lies before the answer is a tombstone, or had gone by the moment at which the delta had been read to its end.
pub(crate) fn nearest_alive<'g>(
    chunk: &Chunk<'g>,
    bounds: KeyBounds<'_>,
    direction: Direction,
) -> Alive<'g> {
    let stale = Cell::new(false);
    let inside = Inside::of(chunk, bounds);
    let (entry, _) = nearest_of(chunk, &inside, direction, |word| match look(chunk, word) {
        (Visit::Record(_), slice) => slice,
        (Visit::Gone, _) => None,
        (Visit::Moved(_), _) => {
            stale.set(true);
            None
        }
    });
    Alive { entry, stale: stale.get() }
}

/// Whether an entry between the bounds may have been appended to the delta, from place `end` on.
pub(crate) fn may_have_come(chunk: &Chunk<'_>, end: usize, bounds: KeyBounds<'_>) -> bool {
    // Acquire: pairs with the CAS in `append` that published the record.
    let states =
        chunk.delta_words()[end..].iter().map(|word| EntryState::of(word.load(Ordering::Acquire)));
    // I-APPEND: nothing lies behind an empty word.
    states.take_while(|state| *state != EntryState::Empty).any(|state| match state {
        EntryState::Record(slice) => {
            let key = chunk.record(slice).key();
            bounds.above_low(key) && bounds.below_high(key)
        }
        // Its key is not known any more.
        EntryState::Tombstone | EntryState::Empty => true,
    })
}

/// The nearest of the entries of whose words `record` tells a record. It is asked about each that may be the nearest,
/// those of the delta last, up to its end. Also answers how many sorted entries at the end of the chunk have none.
#[inline(always)]
fn nearest_of<'g>(
    chunk: &Chunk<'g>,
    inside: &Inside<'_>,
    direction: Direction,
    record: impl Fn(&'g RawAtomicU64) -> Option<SliceRef>,
) -> (Option<Entry<'g>>, usize) {
    let gone = chunk.edge(direction).gone;
    let sorted = inside.sorted(chunk);
    let begins_there = match direction {
        Direction::Ascending => sorted.start <= gone,
        Direction::Descending => sorted.end + gone >= chunk.sorted_len(),
    };
    let nearest = Nearest::new(chunk, direction, inside);
    let gone = match begins_there {
        true => gone + nearest.offer_sorted(without_edge(chunk, sorted, direction, gone), &record),
        false => {
            nearest.offer_sorted(sorted, &record);
            0
        }
    };
    for (at, entry) in chunk.delta_entries_where(|abbreviation| nearest.may_be(abbreviation)) {
        if inside.contains(chunk, &entry) {
            nearest.offer_delta(at, entry, &record);
        }
    }
    (nearest.entry(), gone)
}

/// As [`nearest`], of all entries of a chunk. Entries of the delta that are known to be farther are not looked at.
///
/// Inlined, so that the direction is a constant: it takes little more than half of the instructions then.
#[inline(always)]
pub(crate) fn nearest_of_all<'g>(chunk: &Chunk<'g>, direction: Direction) -> Option<Entry<'g>> {
    let mut known = chunk.edge(direction);
    let nearest = Nearest::new(chunk, direction, &Inside::ALL);
    let sorted = without_edge(chunk, 0..chunk.sorted_len(), direction, known.gone);
    let gone = known.gone + nearest.offer_sorted(sorted, &published);
    // Of the delta alone: what is nearest of all is not, once that is removed.
    let of_delta = Nearest::new(chunk, direction, &Inside::ALL);
    if known.read > 0 {
        match chunk.delta_entry(known.nearest, published) {
            Some(entry) => of_delta.set_delta(known.nearest, entry),
            // It has gone: of the others, none is known to be the nearest.
            None => known.read = 0,
        }
    }
    let mut entries =
        chunk.delta_entries_from(known.read, |abbreviation| of_delta.may_be(abbreviation));
    for (at, entry) in entries.by_ref() {
        of_delta.offer_delta(at, entry, &published);
    }
    let read = entries.place();
    let edge = match of_delta.best.get() {
        Some((entry, word)) => {
            nearest.offer(entry, word);
            Edge { gone, read, nearest: of_delta.place.get() }
        }
        None => Edge { gone, ..known },
    };
    note(chunk, direction, known, edge);
    nearest.entry()
}

/// Sorted entries but for the tombstones at an end.
fn without_edge(
    chunk: &Chunk<'_>,
    sorted: Range<usize>,
    direction: Direction,
    gone: usize,
) -> Range<usize> {
    match direction {
        Direction::Ascending => gone.min(sorted.end)..sorted.end,
        Direction::Descending => sorted.start..(chunk.sorted_len() - gone).max(sorted.start),
    }
}

/// The nearest of the entries that were offered.
struct Nearest<'c, 'g> {
    chunk: &'c Chunk<'g>,
    direction: Direction,
    best: Cell<Option<(Gathered, &'g RawAtomicU64)>>,
    /// The place of it, of those of the delta.
    place: Cell<usize>,
    /// The least and the greatest abbreviation that an entry may have to be nearer.
    least: Cell<u64>,
    greatest: Cell<u64>,
}

impl<'c, 'g> Nearest<'c, 'g> {
    #[inline(always)]
    fn new(chunk: &'c Chunk<'g>, direction: Direction, inside: &Inside<'_>) -> Nearest<'c, 'g> {
        let (least, greatest) = inside.abbreviations();
        let (least, greatest) = (Cell::new(least), Cell::new(greatest));
        Nearest { chunk, direction, best: Cell::new(None), place: Cell::new(0), least, greatest }
    }

    #[inline(always)]
    fn may_be(&self, abbreviation: u64) -> bool {
        (self.least.get() <= abbreviation) & (abbreviation <= self.greatest.get())
    }

    #[inline(always)]
    fn is_nearer(&self, entry: &Gathered) -> bool {
        let nearer = match self.direction {
            Direction::Ascending => KeyOrder::Less,
            Direction::Descending => KeyOrder::Greater,
        };
        self.best.get().is_none_or(|(best, _)| self.chunk.compare(entry, &best) == nearer)
    }

    #[inline(always)]
    fn offer(&self, entry: Gathered, word: &'g RawAtomicU64) {
        if self.is_nearer(&entry) {
            self.set(entry, word);
        }
    }

    #[inline(always)]
    fn set(&self, entry: Gathered, word: &'g RawAtomicU64) {
        self.best.set(Some((entry, word)));
        match self.direction {
            Direction::Ascending => self.greatest.set(entry.abbreviation),
            Direction::Descending => self.least.set(entry.abbreviation),
        }
    }

    /// Offers an entry of the delta if `record` still tells its record.
    #[inline(always)]
    fn offer_delta(
        &self,
        at: usize,
        entry: Gathered,
        record: &impl Fn(&'g RawAtomicU64) -> Option<SliceRef>,
    ) {
        let word = &self.chunk.delta_words()[at];
        if self.is_nearer(&entry)
            && let Some(slice) = record(word)
        {
            self.set_delta(at, Gathered { slice, ..entry });
        }
    }

    /// Takes an entry of the delta for the nearest.
    #[inline(always)]
    fn set_delta(&self, at: usize, entry: Gathered) {
        self.place.set(at);
        self.set(entry, &self.chunk.delta_words()[at]);
    }

    /// Offers the nearest sorted entry that has a record; how many before it have none.
    #[inline(always)]
    fn offer_sorted(
        &self,
        mut sorted: Range<usize>,
        record: &impl Fn(&'g RawAtomicU64) -> Option<SliceRef>,
    ) -> usize {
        let chunk = self.chunk;
        for passed in 0.. {
            let at = match self.direction {
                Direction::Ascending => sorted.next(),
                Direction::Descending => sorted.next_back(),
            };
            let Some(at) = at else { return passed };
            let word = chunk.sorted_word(at);
            if let Some(slice) = record(word) {
                self.offer(Gathered { abbreviation: chunk.sorted_abbreviation(at), slice }, word);
                return passed;
            }
        }
        unreachable!("the range ends")
    }

    fn entry(&self) -> Option<Entry<'g>> {
        let (Gathered { slice, .. }, word) = self.best.get()?;
        Some(Entry { word, slice, record: self.chunk.record(slice) })
    }
}
