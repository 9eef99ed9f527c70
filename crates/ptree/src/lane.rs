//! Lanes: what one open transaction needs, kept for the next one.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use sapwood_mem::words::Words;

use crate::error::Result;
use crate::heap::LaneRun;
use crate::heap::layout::CLASSES;
use crate::object::{ObjectId, Word};
use crate::redo::{Redo, out_of_memory};
use crate::state::TreeState;

/// Address space for the copies of one transaction.
const SCRATCH_BYTES: usize = 1 << 38;
const SCRATCH_BYTES_LEAST: usize = 1 << 30;
/// Objects in a list for which a lane keeps room between transactions.
const LIST_KEPT: usize = 1 << 12;
/// Words of copies that a lane keeps between transactions.
const SCRATCH_WORDS_KEPT: usize = 1 << 17;

/// Memory of a transaction: copies of the objects that it changes, slots for those that it makes,
/// its lists and its redo record.
#[derive(Debug)]
pub(crate) struct Lane {
    scratch: Words,
    used: Cell<usize>,
    pub(crate) runs: RefCell<Vec<Option<LaneRun>>>,
    pub(crate) redo: RefCell<Redo>,
    /// Objects that the transaction has changed, made or freed.
    pub(crate) touched: RefCell<Vec<Touched>>,
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    pub(crate) id: ObjectId,
    pub(crate) words: usize,
    pub(crate) what: What,
    /// Where in the lane's memory one bit a word says which were set.
    pub(crate) mask: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Its copy is in the lane's memory, there.
    Copied(usize),
    /// It is new, and changed where it is.
    Made,
    /// It was there before, and is freed.
    Freed,
    /// It was made and freed.
    Gone,
}

impl Lane {
    fn new() -> Result<Lane> {
        let scratch = Words::new(SCRATCH_BYTES, SCRATCH_BYTES_LEAST)
            .map_err(|cause| out_of_memory(0, SCRATCH_BYTES / 8, &cause.to_string()))?;
        Ok(Lane {
            scratch,
            used: Cell::new(0),
            runs: RefCell::new(CLASSES.iter().map(|_| None).collect()),
            redo: RefCell::default(),
            touched: RefCell::default(),
            freed: RefCell::default(),
            held: RefCell::default(),
            created: RefCell::default(),
            removed: RefCell::default(),
        })
    }

    /// So many words of scratch, and where they are. They hold anything.
    #[inline]
    pub(crate) fn take(&self, words: usize) -> Result<(usize, &[Word])> {
        let at = self.used.get();
        self.used.set(at + words);
        match self.scratch.get(at, words) {
            Some(taken) => Ok((at, taken)),
            None => self.take_more(at, words),
        }
    }

    #[cold]
    fn take_more(&self, at: usize, words: usize) -> Result<(usize, &[Word])> {
        let refused = |why: &str| out_of_memory(at, self.scratch.most(), why);
        self.scratch.grow(at + words).map_err(|cause| refused(&cause.to_string()))?;
        let taken = self.scratch.get(at, words);
        taken.map(|taken| (at, taken)).ok_or_else(|| refused("no words came"))
    }

    /// Words of scratch that were taken.
    #[inline]
    pub(crate) fn words(&self, at: usize, words: usize) -> &[Word] {
        self.scratch.get(at, words).unwrap_or(&[])
    }

    /// Makes it ready for the next transaction.
    pub(crate) fn reset(&mut self) {
        self.used.set(0);
        if self.scratch.len() > SCRATCH_WORDS_KEPT {
            self.scratch.shrink(SCRATCH_WORDS_KEPT);
        }
        self.redo.get_mut().clear();
        // The memory of lists stays for the next one.
        let (touched, freed) = (self.touched.get_mut(), self.freed.get_mut());
        touched.clear();
        touched.shrink_to(LIST_KEPT);
        freed.clear();
        freed.shrink_to(LIST_KEPT);
        for trees in [&mut self.held, &mut self.created, &mut self.removed] {
            trees.get_mut().clear();
        }
    }
}
