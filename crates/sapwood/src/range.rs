//! The iterator over a range of a table.

use std::sync::Arc;

use crate::{Entry, Error, Result};

/// The entries of a range in ascending order of their keys; `.rev()` descends.
///
/// Made by [`OrderedTable::range`](crate::OrderedTable::range), which says what it sees of changes.
pub struct Range<'a> {
    /// None where the entries cannot be read, and why, until that is told.
    pub(crate) entries: Option<sapwood_chunkmap::Range<'a>>,
    pub(crate) refused: Option<Box<Error>>,
    pub(crate) table: &'a Arc<str>,
}

impl<'a> Range<'a> {
    /// The same entries as owned pairs of key and value.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let pairs = table.range(..).owned().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(pairs[1], (b"b".to_vec(), b"2".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn owned(self) -> impl DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>)>> + 'a {
        self.map(|entry| entry.map(|entry| entry.to_owned()))
    }

    fn named<T>(&self, result: sapwood_chunkmap::Result<T>) -> Result<T> {
        result.map_err(|cause| Error::OrderedEngine { table: Arc::clone(self.table), cause })
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(entries) = &mut self.entries else {
            return self.refused.take().map(|error| Err(*error));
        };
        let entry = entries.next()?;
        Some(self.named(entry))
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let Some(entries) = &mut self.entries else {
            return self.refused.take().map(|error| Err(*error));
        };
        let entry = entries.next_back()?;
        Some(self.named(entry))
    }
}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range").field("table", self.table).finish_non_exhaustive()
    }
}
