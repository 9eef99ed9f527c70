//! Numbers of rows in numbered tables.

#[cfg(feature = "sql")]
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use super::Rows;
use crate::formats::{FIRST_NUMBER, take_numbers};
use crate::schema::Error as Cause;
use crate::{Direction, Engine, Error, Result, Sorted, Table, key};

/// Bytes of the number at the end of a key.
const NUMBER_BYTES: usize = size_of::<u64>();

impl<R, E: Sorted> Rows<R, E> {
    /// Puts a row under a number of its own, which it writes behind the columns of the key. Two threads may choose one
    /// number, as may a row that was put as bytes: one of them finds it taken, and takes another.
    pub(super) fn put_numbered(&self, key: &mut [u8], value: &[u8]) -> Result<u64> {
        loop {
            let number = match self.counts() {
                true => take_numbers(self.counter()?, 1),
                false => self.number_behind(&key[..key.len() - NUMBER_BYTES])?,
            };
            let number = number.ok_or_else(|| self.no_number())?;
            set_number(key, number);
            if self.table.put_if_absent(&*key, value)? {
                return Ok(number);
            }
        }
    }

    /// Gives the entries of new rows the next numbers.
    #[cfg(feature = "sql")]
    pub(crate) fn number_entries(&self, entries: &mut [(Vec<u8>, Vec<u8>)]) -> Result<()> {
        if self.counts() {
            return self.count_entries(entries);
        }
        // By the other columns of the key.
        let mut last: HashMap<Vec<u8>, u64> = HashMap::new();
        for (key, _) in entries {
            let prefix = &key[..key.len() - NUMBER_BYTES];
            let number = match last.get(prefix) {
                Some(last) => last.checked_add(1),
                None => self.number_behind(prefix)?,
            };
            let number = number.ok_or_else(|| self.no_number())?;
            last.insert(prefix.to_vec(), number);
            set_number(key, number);
        }
        Ok(())
    }

    /// Gives the entries of new rows the next numbers of the table's counter.
    pub(super) fn count_entries(&self, entries: &mut [(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let first = take_numbers(self.counter()?, entries.len() as u64);
        let first = first.ok_or_else(|| self.no_number())?;
        (first..).zip(entries).for_each(|(number, (key, _))| set_number(key, number));
        Ok(())
    }

    /// True if numbers of rows come from the table's counter, and not from the last row of those that share the
    /// columns of the key.
    pub(super) fn counts(&self) -> bool {
        self.base.engine() == Engine::Hash || self.schema().key_columns().is_empty()
    }

    /// The counter of row numbers. It begins behind the largest number in the table. Rows that are put during the search
    /// for it have numbers of the counter, so later ones, or are put by [`put_at`](Self::put_at), which waits for the
    /// counter first.
    pub(super) fn counter(&self) -> Result<&AtomicU64> {
        self.formats.counter(|| match self.base.engine() {
            Engine::Hash => {
                let mut largest = None;
                self.base.for_each(|key, _value| {
                    largest = largest.max(self.format().number_of(key));
                })?;
                Ok(largest)
            }
            _ => self.last_number(&self.base, &[]),
        })
    }

    /// The number behind that of the last row whose key has the prefix.
    fn number_behind(&self, prefix: &[u8]) -> Result<Option<u64>> {
        let last = self.last_number(&self.table, prefix)?;
        Ok(last.map_or(Some(FIRST_NUMBER), |last| last.checked_add(1)))
    }

    /// The number of the last row whose key has the prefix.
    fn last_number<F: Sorted>(&self, table: &Table<F>, prefix: &[u8]) -> Result<Option<u64>> {
        let last =
            table.scan(key::prefix_range(prefix), Direction::Descending, |key, _value| {
                ControlFlow::Break(self.format().number_of(key))
            })?;
        Ok(match last {
            ControlFlow::Break(number) => number,
            ControlFlow::Continue(()) => None,
        })
    }

    fn no_number(&self) -> Error {
        let what = "there is no number left above the largest: copy the rows into a new table";
        self.refused(Cause::Schema(what.to_owned()))
    }
}

/// Writes the number of a row into its key.
fn set_number(key: &mut [u8], number: u64) {
    let at = key.len() - NUMBER_BYTES;
    key[at..].copy_from_slice(&number.to_be_bytes());
}
