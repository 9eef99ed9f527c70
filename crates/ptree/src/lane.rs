//! Lanes: what one open transaction needs, kept for the next one.

use std::cell::{Cell, RefCell};
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
/// and its redo record.
#[derive(Debug)]
pub(crate) struct Lane {
    scratch: Words,
    used: Cell<usize>,
    pub(crate) runs: RefCell<Vec<Option<LaneRun>>>,
    pub(crate) redo: RefCell<Redo>,
    /// Empty ones of the last transaction, for the next: their memory is there already.
    pub(crate) lists: Lists,
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

/// What a transaction lists.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) touched: Vec<Touched>,
    pub(crate) freed: Vec<(ObjectId, Option<usize>)>,
    pub(crate) held: Vec<Arc<TreeState>>,
}

impl Lane {
    pub(crate) fn new() -> Result<Lane> {
        let scratch = Words::new(SCRATCH_BYTES, SCRATCH_BYTES_LEAST)
            .map_err(|cause| out_of_memory(0, SCRATCH_BYTES / 8, &cause.to_string()))?;
        Ok(Lane {
            scratch,
            used: Cell::new(0),
            runs: RefCell::new(CLASSES.iter().map(|_| None).collect()),
            redo: RefCell::default(),
            lists: Lists::default(),
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
        self.lists.touched.clear();
        self.lists.touched.shrink_to(LIST_KEPT);
        self.lists.freed.clear();
        self.lists.freed.shrink_to(LIST_KEPT);
    }
}
