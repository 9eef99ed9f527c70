//! An iterator over copies of entries, read a page at a time from both ends.

use std::collections::VecDeque;
use std::ops::Bound;

use super::{Bounds, Entry, Page, SortedVerbs, Table};
use crate::{Direction, Result};

/// Entries of the first read; each further one reads twice as many.
const PAGE_ENTRIES: usize = 16;
/// Entries of one read at most.
const PAGE_ENTRIES_MAX: usize = 256;

/// The entries of a range, of which those that neither end has read lie between `low` and `high`.
pub(crate) struct Paged<'a, E: SortedVerbs> {
    table: &'a Table<E>,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// True once nothing is left between the bounds.
    is_read: bool,
    /// Entries of the next read.
    entries_max: usize,
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
            entries_max: PAGE_ENTRIES,
            front: VecDeque::new(),
            back: VecDeque::new(),
        }
    }

    fn read(&mut self, direction: Direction) -> Result<()> {
        if self.is_read {
            return Ok(());
        }
        let bounds = (self.low.as_ref().map(Vec::as_slice), self.high.as_ref().map(Vec::as_slice));
        let page = E::page(self.table, bounds, direction, self.entries_max);
        let Page { entries, is_last } = page.inspect_err(|_| self.end())?;
        self.is_read = is_last;
        self.entries_max = (self.entries_max * 2).min(PAGE_ENTRIES_MAX);
        if let Some((last, _)) = entries.last() {
            let last = Bound::Excluded(last.clone());
            match direction {
                Direction::Ascending => self.low = last,
                Direction::Descending => self.high = last,
            }
        }
        match direction {
            Direction::Ascending => self.front.extend(entries),
            Direction::Descending => {
                entries.into_iter().for_each(|entry| self.back.push_front(entry));
            }
        }
        Ok(())
    }

    /// Ends both ways, after an error: what lies between the ends was not read.
    fn end(&mut self) {
        self.is_read = true;
        self.front.clear();
        self.back.clear();
    }
}

impl<'a, E: SortedVerbs> Iterator for Paged<'a, E> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.is_empty()
            && let Err(error) = self.read(Direction::Ascending)
        {
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
            return Some(Err(error));
        }
        let entry = self.back.pop_back().or_else(|| self.front.pop_back())?;
        Some(Ok(Entry::copied(entry)))
    }
}
