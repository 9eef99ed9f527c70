//! Batches of a walk: entries of one moment, copied out.

use std::ops::Bound;

use sapwood_engine::{Direction, is_empty_range};

use super::entry::{Entry, Probe, TreeLayout};
use super::structure::{Flow, Head, Structure, TreeKind};
use super::{BTree, CritBit, RedBlack, with_structure};
use crate::error::Result;
use crate::view::View;

/// Entries of the first batch of a walk; each next one has twice as many ...
const FIRST_ENTRIES: usize = 16;
/// ... up to so many, or so many bytes.
const ENTRIES: usize = 512;
const BYTES: usize = 64 << 10;

/// Entries of a range, and where the walk goes on.
#[derive(Debug)]
pub(crate) struct Batch {
    layout: TreeLayout,
    direction: Direction,
    /// Where the next batch begins.
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    most: usize,
    copies: Copies,
    is_done: bool,
}

/// Keys and values, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    bytes: Vec<u8>,
    /// Where each key ends, and its value.
    ends: Vec<(usize, usize)>,
    /// Whether the range has no entry behind these.
    is_last: bool,
}

fn owned(bound: Bound<&[u8]>) -> Bound<Vec<u8>> {
    bound.map(<[u8]>::to_vec)
}

impl Batch {
    pub(crate) fn new(
        layout: TreeLayout,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Batch {
        let (from, to) = match direction {
            Direction::Ascending => (low, high),
            Direction::Descending => (high, low),
        };
        Batch {
            layout,
            direction,
            from: owned(from),
            to: owned(to),
            most: FIRST_ENTRIES,
            copies: Copies::default(),
            is_done: is_empty_range(low, high),
        }
    }

    /// The same with one entry at most.
    pub(crate) fn of_one(mut self) -> Batch {
        self.most = 1;
        self
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    pub(crate) fn len(&self) -> usize {
        self.copies.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A key and its value.
    pub(crate) fn get(&self, number: usize) -> (&[u8], &[u8]) {
        let begin = number.checked_sub(1).map_or(0, |before| self.copies.ends[before].1);
        let (key, value) = self.copies.ends[number];
        (&self.copies.bytes[begin..key], &self.copies.bytes[key..value])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// The next entries.
    pub(crate) fn read_next(&self, view: &impl View, head: &Head) -> Result<Copies> {
        let mut copies = Copies { is_last: true, ..Copies::default() };
        copies.ends.reserve(self.most);
        let from = self.from.as_ref().map(|key| Probe::new(key));
        let mut tell = |entry: Entry| {
            if !self.holds(view, entry)? {
                return Ok(Flow::Break(()));
            }
            if copies.ends.len() == self.most || copies.bytes.len() >= BYTES {
                copies.is_last = false;
                return Ok(Flow::Break(()));
            }
            self.layout.read_key(view, entry, &mut copies.bytes)?;
            let key = copies.bytes.len();
            self.layout.read_value(view, entry, &mut copies.bytes)?;
            copies.ends.push((key, copies.bytes.len()));
            Ok(Flow::Continue(()))
        };
        with_structure!(head.kind, S => S::walk(view, head, from, self.direction, &mut tell))?;
        Ok(copies)
    }

    /// Whether an entry lies before the end of the range.
    fn holds(&self, view: &impl View, entry: Entry) -> Result<bool> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let (key, may_be_equal) = match &self.to {
            Bound::Unbounded => return Ok(true),
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        Ok(match (self.layout.compare(view, Probe::new(key), entry)?, self.direction) {
            (Equal, _) => may_be_equal,
            (Greater, Direction::Ascending) | (Less, Direction::Descending) => true,
            (Less, Direction::Ascending) | (Greater, Direction::Descending) => false,
        })
    }

    /// Goes on behind the entries that were read.
    pub(crate) fn take(&mut self, copies: Copies) {
        self.is_done = copies.is_last || copies.ends.is_empty();
        self.copies = copies;
        if let Some(last) = self.len().checked_sub(1) {
            self.from = Bound::Excluded(self.get(last).0.to_vec());
        }
        self.most = (self.most * 2).min(ENTRIES);
    }
}
