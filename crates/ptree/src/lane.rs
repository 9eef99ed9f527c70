//! Lanes: what one open transaction needs, kept for the next one.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use sapwood_mem::sync::Ordering;
use sapwood_mem::words::Words;

use crate::error::Result;
use crate::heap::LaneRun;
use crate::heap::layout::CLASSES;
use crate::object::{ObjectId, Word, load};
use crate::redo::{Redo, out_of_memory};
use crate::state::TreeState;

/// Address space for the copies of one transaction, and for its notes.
const SCRATCH_BYTES: usize = 1 << 37;
const SCRATCH_BYTES_LEAST: usize = 1 << 30;
/// Words of what a lane notes of an object: a cache line.
const NOTE_WORDS: usize = 8;
/// The word of a note with the mask, or where the mask is.
const MASK: usize = 2;
/// The word of a note where the copy begins, or that says where it is.
const COPY: usize = 3;
/// Words of the longest object whose mask is one word, in the note.
const MASKED_IN_NOTE: usize = 64;
/// Words of the longest object whose copy is in the note.
const COPIED_IN_NOTE: usize = NOTE_WORDS - COPY;
/// Words of notes that a lane keeps between transactions.
const NOTE_WORDS_KEPT: usize = 1 << 15;
/// Objects in a list for which a lane keeps room between transactions.
const LIST_KEPT: usize = 1 << 12;
/// Words of copies that a lane keeps between transactions.
const SCRATCH_WORDS_KEPT: usize = 1 << 17;

/// Memory of a transaction: copies of the objects that it changes, slots for those that it makes,
/// its lists and its redo record.
///
/// Of each object that the transaction has changed, made or freed there is a note of one cache line,
/// at the place that the object's header says:
///
/// ```text
///  0      1                2                         3 .. 8
/// +------+----------------+-------------------------+------------------------+
/// | name | what, words    | mask of changed words   | copy                   |   up to 5 words
/// |      | 4 and 60 bits  | mask                    | where the copy is      |   up to 64
/// |      |                | where the mask is       | where the copy is      |   more
/// +------+----------------+-------------------------+------------------------+
/// ```
/// So a binary tree's node is found, and changed, with one more cache miss.
#[derive(Debug)]
pub(crate) struct Lane {
    notes: Words,
    noted: Cell<usize>,
    /// Copies and masks that are too long for a note.
    scratch: Words,
    used: Cell<usize>,
    pub(crate) runs: RefCell<Vec<Option<LaneRun>>>,
    pub(crate) redo: RefCell<Redo>,
    /// Objects that were there before, and the chunks that each had for itself, if any.
    pub(crate) freed: RefCell<Vec<(ObjectId, Option<usize>)>>,
    /// Trees that it has.
    pub(crate) held: RefCell<Vec<Arc<TreeState>>>,
    /// Trees that it made and removed.
    pub(crate) created: RefCell<Vec<Arc<TreeState>>>,
    pub(crate) removed: RefCell<Vec<Arc<TreeState>>>,
}

/// A lane that moves as one word, with the transaction that has it.
#[derive(Debug)]
pub(crate) struct BoxedLane(Box<Lane>);

impl BoxedLane {
    pub(crate) fn new() -> Result<BoxedLane> {
        Ok(BoxedLane(Box::new(Lane::new()?)))
    }
}

impl Deref for BoxedLane {
    type Target = Lane;

    #[inline]
    fn deref(&self) -> &Lane {
        &self.0
    }
}

impl DerefMut for BoxedLane {
    #[inline]
    fn deref_mut(&mut self) -> &mut Lane {
        &mut self.0
    }
}

/// An object that a transaction has changed, made or freed.
#[derive(Clone, Copy)]
pub(crate) struct Touched<'l> {
    lane: &'l Lane,
    note: &'l [Word; NOTE_WORDS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Its copy is in the lane's memory.
    Copied,
    /// It is new, and changed where it is.
    Made,
    /// It was there before, and is freed.
    Freed,
    /// It was made and freed.
    Gone,
}

impl What {
    const SHIFT: u32 = 60;

    #[inline]
    fn noted(self, words: usize) -> u64 {
        let code: u64 = match self {
            What::Copied => 0,
            What::Made => 1,
            What::Freed => 2,
            What::Gone => 3,
        };
        code << What::SHIFT | words as u64
    }
}

impl<'l> Touched<'l> {
    #[inline]
    fn word(&self, index: usize) -> usize {
        load(&self.note[index]) as usize
    }

    #[inline]
    pub(crate) fn id(&self) -> ObjectId {
        ObjectId::new(load(&self.note[0]))
    }

    /// Words of the object, as far as the transaction has looked.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.word(1) & ((1 << What::SHIFT) - 1)
    }

    #[inline]
    pub(crate) fn what(&self) -> What {
        match self.word(1) >> What::SHIFT {
            0 => What::Copied,
            1 => What::Made,
            2 => What::Freed,
            _ => What::Gone,
        }
    }

    pub(crate) fn become_what(&self, what: What) {
        self.note[1].store(what.noted(self.len()), Ordering::Relaxed);
    }

    /// One bit a word says which were set.
    #[inline]
    pub(crate) fn mask(&self) -> &'l [Word] {
        match self.len() {
            ..=MASKED_IN_NOTE => &self.note[MASK..=MASK],
            len => self.lane.words(self.word(MASK), len.div_ceil(64)),
        }
    }

    /// The copy of an object that has one.
    #[inline]
    pub(crate) fn copy(&self) -> &'l [Word] {
        match self.len() {
            len @ ..=COPIED_IN_NOTE => &self.note[COPY..COPY + len],
            len => self.lane.words(self.word(COPY), len),
        }
    }
}

impl Lane {
    fn new() -> Result<Lane> {
        let space = || {
            Words::new(SCRATCH_BYTES, SCRATCH_BYTES_LEAST)
                .map_err(|cause| out_of_memory(0, SCRATCH_BYTES / 8, &cause.to_string()))
        };
        Ok(Lane {
            notes: space()?,
            noted: Cell::new(0),
            scratch: space()?,
            used: Cell::new(0),
            runs: RefCell::new(CLASSES.iter().map(|_| None).collect()),
            redo: RefCell::default(),
            freed: RefCell::default(),
            held: RefCell::default(),
            created: RefCell::default(),
            removed: RefCell::default(),
        })
    }

    /// Whether the transaction has touched nothing yet.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        self.noted.get() == 0
    }

    /// Objects that the transaction has touched.
    pub(crate) fn touched(&self) -> impl Iterator<Item = Touched<'_>> {
        let notes = self.notes.get(0, self.noted.get() * NOTE_WORDS).unwrap_or(&[]);
        let (notes, _) = notes.as_chunks();
        notes.iter().map(|note| Touched { lane: self, note })
    }

    /// What is noted at a slot, if it is of this object.
    #[inline]
    pub(crate) fn find(&self, slot: usize, id: ObjectId) -> Option<Touched<'_>> {
        if slot >= self.noted.get() {
            return None;
        }
        let note = self.notes.get(slot * NOTE_WORDS, NOTE_WORDS)?.first_chunk()?;
        let touched = Touched { lane: self, note };
        (touched.id() == id).then_some(touched)
    }

    /// Notes an object of so many words that was not touched before; its slot, too. The mask is
    /// empty; a copy has room and holds anything.
    #[inline]
    pub(crate) fn note(
        &self,
        id: ObjectId,
        words: usize,
        what: What,
    ) -> Result<(u32, Touched<'_>)> {
        let noted = self.noted.get();
        let (at, len) = (noted * NOTE_WORDS, self.notes.len());
        let slot = u32::try_from(noted).ok();
        let found = match self.notes.get(at, NOTE_WORDS) {
            Some(found) => Some(found),
            None => grown(&self.notes, at, NOTE_WORDS)?,
        };
        let (Some(slot), Some(note)) = (slot, found.and_then(|found| found.first_chunk())) else {
            return Err(out_of_memory(len, self.notes.most(), "there are too many notes"));
        };
        let mut mask = 0;
        if words > MASKED_IN_NOTE {
            let (at, zeros) = self.take(words.div_ceil(64))?;
            for word in zeros {
                word.store(0, Ordering::Relaxed);
            }
            mask = at as u64;
        }
        if words > COPIED_IN_NOTE && what == What::Copied {
            let (at, _) = self.take(words)?;
            note[COPY].store(at as u64, Ordering::Relaxed);
        }
        note[0].store(id.word(), Ordering::Relaxed);
        note[1].store(what.noted(words), Ordering::Relaxed);
        note[MASK].store(mask, Ordering::Relaxed);
        self.noted.set(noted + 1);
        Ok((slot, Touched { lane: self, note }))
    }

    /// So many words of scratch, and where they are. They hold anything.
    #[inline]
    fn take(&self, words: usize) -> Result<(usize, &[Word])> {
        let at = self.used.get();
        self.used.set(at + words);
        let taken = match self.scratch.get(at, words) {
            Some(taken) => Some(taken),
            None => grown(&self.scratch, at, words)?,
        };
        let refused = || out_of_memory(at, self.scratch.most(), "no words came");
        taken.map(|taken| (at, taken)).ok_or_else(refused)
    }

    /// Words of scratch that were taken.
    #[inline]
    fn words(&self, at: usize, words: usize) -> &[Word] {
        self.scratch.get(at, words).unwrap_or(&[])
    }

    /// Makes it ready for the next transaction.
    pub(crate) fn reset(&mut self) {
        self.used.set(0);
        self.noted.set(0);
        if self.notes.len() > NOTE_WORDS_KEPT {
            self.notes.shrink(NOTE_WORDS_KEPT);
        }
        if self.scratch.len() > SCRATCH_WORDS_KEPT {
            self.scratch.shrink(SCRATCH_WORDS_KEPT);
        }
        self.redo.get_mut().clear();
        // The memory of lists stays for the next one.
        let freed = self.freed.get_mut();
        freed.clear();
        freed.shrink_to(LIST_KEPT);
        for trees in [&mut self.held, &mut self.created, &mut self.removed] {
            trees.get_mut().clear();
        }
    }
}

/// Words of a lane that were not usable before.
#[cold]
fn grown(words: &Words, at: usize, count: usize) -> Result<Option<&[Word]>> {
    let refused = |cause: std::io::Error| out_of_memory(at, words.most(), &cause.to_string());
    words.grow(at + count).map_err(refused)?;
    Ok(words.get(at, count))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn notes_of_all_lengths_have_masks_and_copies_of_their_own() {
        let mut lane = Lane::new().expect("a lane");
        let lengths = [1, 5, 6, 64, 65, 300];
        for round in 0..2 {
            assert!(lane.is_untouched());
            for (slot, &len) in lengths.iter().enumerate() {
                let id = ObjectId::new(slot as u64 + 1);
                let (noted, touched) = lane.note(id, len, What::Copied).expect("a note");
                assert_eq!((noted as usize, touched.copy().len()), (slot, len));
                assert!(touched.mask().iter().all(|word| load(word) == 0), "round {round}");
                for word in touched.copy().iter().chain(touched.mask()) {
                    word.store(id.word(), Ordering::Relaxed);
                }
            }
            let touched: Vec<_> = lane.touched().collect();
            assert_eq!(touched.iter().map(Touched::len).collect::<Vec<_>>(), lengths);
            for touched in touched {
                let id = touched.id();
                assert_eq!(touched.mask().len(), touched.len().div_ceil(64));
                for word in touched.copy().iter().chain(touched.mask()) {
                    assert_eq!(load(word), id.word(), "an object of {} words", touched.len());
                }
                assert!(lane.find(id.index(), id).is_none(), "another object's slot");
                let found = lane.find(id.index() - 1, id).expect("its own");
                found.become_what(What::Freed);
                assert_eq!((found.what(), found.len()), (What::Freed, lengths[id.index() - 1]));
            }
            lane.reset();
            assert!(lane.find(0, ObjectId::new(1)).is_none(), "a transaction that ended");
        }
    }

    #[test]
    fn lanes_forget_the_memory_of_large_transactions() {
        let mut lane = Lane::new().expect("a lane");
        for id in 1..20_000 {
            lane.note(ObjectId::new(id), 12, What::Copied).expect("a note");
        }
        assert!(lane.notes.len() > NOTE_WORDS_KEPT && lane.scratch.len() > SCRATCH_WORDS_KEPT);
        lane.reset();
        assert!(lane.notes.len() <= NOTE_WORDS_KEPT && lane.scratch.len() <= SCRATCH_WORDS_KEPT);
    }
}
