//! An iterator over copies of entries, read a page at a time from both ends.

use std::collections::VecDeque;
use std::ops::Bound;

use super::{Bounds, Entry, SortedVerbs, Table};
use crate::{Direction, Result};

/// Entries of one read.
const PAGE_ENTRIES: usize = 256;

/// The entries of a range, of which those that neither end has read lie between `low` and `high`.
pub(crate) struct Paged<'a, E: SortedVerbs> {
    table: &'a Table<E>,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// Whether nothing is left between the bounds.
    is_read: bool,
    /// Read from the low end and not returned yet, ascending.
    front: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// Read from the high end and not returned yet, ascending too.
    back: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl<'a, E: SortedVerbs> Paged<'a, E> {
    pub(crate) fn new(table: &'a Table<E>, (low, high): Bounds<'_>) -> Paged<'a, E> {
        let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        Paged {
            table,
            low: owned(low),
            high: owned(high),
            is_read: false,
            front: VecDeque::new(),
            back: VecDeque::new(),
        }
    }

    fn read(&mut self, direction: Direction) -> Result<()> {
        if self.is_read {
            return Ok(());
        }
        let bounds = (self.low.as_ref().map(Vec::as_slice), self.high.as_ref().map(Vec::as_slice));
        let page = E::page(self.table, bounds, direction, PAGE_ENTRIES)?;
        self.is_read = page.len() < PAGE_ENTRIES;
        if let Some((last, _)) = page.last() {
            let last = Bound::Excluded(last.clone());
            match direction {
                Direction::Ascending => self.low = last,
                Direction::Descending => self.high = last,
            }
        }
        match direction {
            Direction::Ascending => self.front.extend(page),
            Direction::Descending => page.into_iter().for_each(|entry| self.back.push_front(entry)),
        }
        Ok(())
    }
}

impl<'a, E: SortedVerbs> Iterator for Paged<'a, E> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.is_empty()
            && let Err(error) = self.read(Direction::Ascending)
        {
            self.is_read = true;
            return Some(Err(error));
        }
        let entry = self.front.pop_front().or_else(|| self.back.pop_front())?;
        Some(Ok(Entry::copied(entry)))
    }
}

impl<E: SortedVerbs> DoubleEndedIterator for Paged<'_, E> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.is_empty()
            && let Err(error) = self.read(Direction::Descending)
        {
            self.is_read = true;
            return Some(Err(error));
        }
        let entry = self.back.pop_back().or_else(|| self.front.pop_back())?;
        Some(Ok(Entry::copied(entry)))
    }
}
