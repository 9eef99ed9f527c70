//! The entries of a range as an iterator.

use std::fmt;
use std::sync::Arc;

use super::Entry;
use crate::{Error, Result};

/// The entries of a range in the order of their keys, both ways: [`Table::range`](crate::Table::range).
///
/// Items are `Result<Entry>`: a table that is read from a file, and a transaction, may refuse an entry.
/// A key that is there throughout the iteration is returned once; one that is put or removed meanwhile may or may
/// not be returned.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
/// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
/// let mut range = table.range("a"..);
/// assert_eq!(range.next().expect("three entries")?.key(), b"a");
/// assert_eq!(range.next_back().expect("two entries")?.key(), b"c");
/// assert_eq!(range.count(), 1);
/// # Ok::<(), sapwood::Error>(())
/// ```
pub struct Range<'a> {
    entries: Entries<'a>,
    table: &'a Arc<str>,
}

enum Entries<'a> {
    InPlace(sapwood_chunkmap::Range<'a>),
    Copied(Box<dyn DoubleEndedIterator<Item = Result<Entry<'a>>> + 'a>),
    Refused(Option<Box<Error>>),
}

impl<'a> Range<'a> {
    pub(crate) fn in_place(table: &'a Arc<str>, entries: sapwood_chunkmap::Range<'a>) -> Range<'a> {
        Range { entries: Entries::InPlace(entries), table }
    }

    pub(crate) fn copied(
        table: &'a Arc<str>,
        entries: impl DoubleEndedIterator<Item = Result<Entry<'a>>> + 'a,
    ) -> Range<'a> {
        Range { entries: Entries::Copied(Box::new(entries)), table }
    }

    /// A range whose first item is an error.
    pub(crate) fn refused(table: &'a Arc<str>, error: Error) -> Range<'a> {
        Range { entries: Entries::Refused(Some(Box::new(error))), table }
    }

    /// The keys and values as owned bytes.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// let pairs = table.range(..).owned().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(pairs, [(b"k".to_vec(), b"v".to_vec())]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn owned(self) -> impl DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>)>> + 'a {
        self.map(|entry| entry.map(Entry::into_pair))
    }

    fn named(
        &self,
        entry: sapwood_chunkmap::Result<sapwood_chunkmap::Entry<'a>>,
    ) -> Result<Entry<'a>> {
        let table = || Arc::clone(self.table);
        entry.map(Entry::in_place).map_err(|cause| Error::OrderedEngine { table: table(), cause })
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = Result<Entry<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.entries {
            Entries::InPlace(entries) => {
                let entry = entries.next()?;
                Some(self.named(entry))
            }
            Entries::Copied(entries) => entries.next(),
            Entries::Refused(error) => error.take().map(|error| Err(*error)),
        }
    }
}

impl DoubleEndedIterator for Range<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.entries {
            Entries::InPlace(entries) => {
                let entry = entries.next_back()?;
                Some(self.named(entry))
            }
            Entries::Copied(entries) => entries.next_back(),
            Entries::Refused(error) => error.take().map(|error| Err(*error)),
        }
    }
}

impl fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("table", self.table).finish_non_exhaustive()
    }
}

/// The keys of a table as owned bytes, in the order of its entries: [`Table::keys`](crate::Table::keys).
pub struct Keys<I>(pub(super) I);

impl<'a, I: Iterator<Item = Result<Entry<'a>>>> Iterator for Keys<I> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| entry.map(|entry| entry.key().to_vec()))
    }
}

impl<'a, I: DoubleEndedIterator<Item = Result<Entry<'a>>>> DoubleEndedIterator for Keys<I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|entry| entry.map(|entry| entry.key().to_vec()))
    }
}

impl<I> fmt::Debug for Keys<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
