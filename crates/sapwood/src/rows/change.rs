//! Rows put, changed and removed.

#[cfg(feature = "sql")]
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use super::Rows;
use super::row_ref::{ColumnId, find};
use crate::formats::{FIRST_NUMBER, pass_number, take_numbers};
#[cfg(feature = "sql")]
use crate::schema::Cell;
use crate::schema::{Error as Cause, RowFormat, Value};
use crate::{Compute, Computed, Direction, Result, Table, key};

#[cfg(doc)]
use crate::Error;

/// Bytes of the number at the end of a key.
const NUMBER_BYTES: usize = size_of::<u64>();

/// Rows that are given to the table at once.
const BATCH: usize = 1 << 10;

impl Rows {
    /// Puts a row. One with the same key is replaced; in a numbered table there is none, and the number that
    /// the row has got is answered.
    ///
    /// # Errors
    /// [`Error::Schema`] for more or fewer values than columns, and for a value that its column cannot have; as
    /// of [`Table::put`].
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// db.create_tree_table("planes", TreeTableOptions::default().schema(schema))?;
    /// assert_eq!(db.rows("planes")?.put(&["N14228".into(), 149.into()])?, None);
    ///
    /// let numbered = "line:text".parse().expect("a schema");
    /// db.create_tree_table("lines", TreeTableOptions::default().schema(numbered))?;
    /// let lines = db.rows("lines")?;
    /// assert_eq!(lines.put(&["an oak".into()])?, Some(1));
    /// assert_eq!(lines.put(&["an oak".into()])?, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(&self, row: &[Value<'_>]) -> Result<Option<u64>> {
        let format = self.format();
        let (mut key, value) = self.encode(format, row, FIRST_NUMBER)?;
        match format.schema().is_numbered() {
            true => self.put_numbered(&mut key, &value).map(Some),
            false => self.table.put(&key, &value).map(|()| None),
        }
    }

    /// Puts a row unless there is one with its key; true if it did. In a numbered table there is none.
    ///
    /// # Errors
    /// As of [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// assert!(planes.insert(&["N14228".into(), 149.into()])?);
    /// assert!(!planes.insert(&["N14228".into(), 150.into()])?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn insert(&self, row: &[Value<'_>]) -> Result<bool> {
        let format = self.format();
        let (mut key, value) = self.encode(format, row, FIRST_NUMBER)?;
        match format.schema().is_numbered() {
            true => self.put_numbered(&mut key, &value).map(|_| true),
            false => self.table.put_if_absent(&key, &value),
        }
    }

    /// The entry of a new row: of a numbered table, its key lacks the number.
    #[cfg(feature = "sql")]
    pub(crate) fn encode_new(
        &self,
        format: &RowFormat,
        row: &[Value<'_>],
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        self.encode(format, row, FIRST_NUMBER)
    }

    /// Encodes a new entry from the cells of a row: `cell` returns that of a column.
    #[cfg(feature = "sql")]
    pub(crate) fn encode_new_cells<'c>(
        &self,
        format: &RowFormat,
        cell: &impl Fn(usize) -> Cell<'c>,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        self.named(format.encode_cells(cell, Some(FIRST_NUMBER), &mut key, &mut value))?;
        Ok((key, value))
    }

    /// Puts the entry of a new row, which gets a number if the table is numbered; false where its
    /// key is there.
    #[cfg(feature = "sql")]
    pub(crate) fn insert_entry(&self, key: &mut [u8], value: &[u8]) -> Result<bool> {
        match self.schema().is_numbered() {
            true => self.put_numbered(key, value).map(|_| true),
            false => self.table.put_if_absent(&*key, value),
        }
    }

    /// Gives the entries of new rows of a numbered table the numbers that are next.
    #[cfg(feature = "sql")]
    pub(crate) fn number_entries(&self, entries: &mut [(Vec<u8>, Vec<u8>)]) -> Result<()> {
        if self.counts() {
            let first = take_numbers(self.counter()?, entries.len() as u64);
            let first = first.ok_or_else(|| self.no_number())?;
            (first..).zip(entries).for_each(|(number, (key, _))| set_number(key, number));
            return Ok(());
        }
        // By the other columns of the key.
        let mut last: HashMap<Vec<u8>, u64> = HashMap::new();
        for (key, _) in entries {
            let prefix = &key[..key.len() - NUMBER_BYTES];
            let number = match last.get(prefix) {
                Some(last) => last.checked_add(1),
                None => match self.last_number(prefix)? {
                    Some(last) => last.checked_add(1),
                    None => Some(FIRST_NUMBER),
                },
            };
            let number = number.ok_or_else(|| self.no_number())?;
            last.insert(prefix.to_vec(), number);
            set_number(key, number);
        }
        Ok(())
    }

    /// Puts a row of a numbered table under a number, as one that is replaced, or copied from elsewhere.
    ///
    /// # Errors
    /// [`Error::Schema`] in a table that is not numbered; as of [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "line:text".parse().expect("a schema");
    /// # db.create_hash_table("lines", HashTableOptions::default().schema(schema))?;
    /// let lines = db.rows("lines")?;
    /// lines.put_at(7, &["an oak".into()])?;
    /// lines.put_at(7, &["an elm".into()])?;
    /// assert_eq!(lines.put(&["an ash".into()])?, Some(8));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_at(&self, number: u64, row: &[Value<'_>]) -> Result<()> {
        let format = self.format();
        if !format.schema().is_numbered() {
            let what = "its rows have no numbers: put them without".to_owned();
            return Err(self.refused(Cause::Schema(what)));
        }
        let (key, value) = self.encode(format, row, number)?;
        if self.counts() {
            pass_number(self.counter()?, number);
        }
        self.table.put(&key, &value)
    }

    /// Puts rows, those of one key in order, each as by [`put`](Self::put): faster than single calls.
    ///
    /// # Errors
    /// As of [`put`](Self::put), and of [`Table::put_many`]. Rows before the one that was refused may be in.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put_many(&[["N14228".into(), 149.into()], ["N24211".into(), 149.into()]])?;
    /// assert_eq!(planes.table().len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many<'v>(&self, rows: &[impl AsRef<[Value<'v>]>]) -> Result<()> {
        let format = self.format();
        let is_numbered = format.schema().is_numbered();
        if is_numbered && !self.counts() {
            return rows.iter().try_for_each(|row| self.put(row.as_ref()).map(drop));
        }
        for rows in rows.chunks(BATCH) {
            let entries = rows.iter().map(|row| self.encode(format, row.as_ref(), FIRST_NUMBER));
            let mut entries = entries.collect::<Result<Vec<_>>>()?;
            if is_numbered {
                // Once all of them are rows: numbers are not taken for nothing.
                let first = take_numbers(self.counter()?, entries.len() as u64);
                let first = first.ok_or_else(|| self.no_number())?;
                for (number, (key, _)) in (first..).zip(&mut entries) {
                    set_number(key, number);
                }
            }
            self.table.put_many(&entries)?;
        }
        Ok(())
    }

    /// Removes the row of a key; true if it was there.
    ///
    /// # Errors
    /// [`Error::Schema`] for a key that is none; as of [`Table::remove`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert!(planes.remove(&["N14228".into()])?);
    /// assert!(!planes.remove(&["N14228".into()])?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, key: &[Value<'_>]) -> Result<bool> {
        self.table.remove(self.key(key)?)
    }

    /// Changes one column of a row, in one step for every reader; false if there is no row of the key. A value of fixed
    /// width is changed where it lies; for others, and in rows that were put before the column came, the row
    /// is written anew.
    ///
    /// # Errors
    /// [`Error::Schema`] for a column that is not there or in the key, and for a value that it cannot have; as
    /// of [`Table::update`] and [`Table::compute`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, schema::Value};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert!(planes.update_column(&["N14228".into()], "seats", &150.into())?);
    /// assert_eq!(planes.get(&["N14228".into()])?.expect("it is there")[1], Value::Int(150));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update_column(
        &self,
        key: &[Value<'_>],
        column: impl ColumnId,
        value: &Value<'_>,
    ) -> Result<bool> {
        let schema = self.schema();
        let column = self.named(find(schema, column))?;
        if schema.key_columns().contains(&column) {
            return Err(self.key_changed());
        }
        let bytes = self.key(key)?;
        if schema.columns()[column].kind.width().is_some() {
            // The newest format, once the row is there: it is not older than the row.
            let set = |row: &mut crate::ValueMut<'_>| self.format().set(column, row, value);
            match self.table.update(&bytes, set)? {
                None => return Ok(false),
                Some(Ok(())) => return Ok(true),
                // A value that the column cannot have, or a row from before the column came.
                Some(Err(Cause::Value { .. })) => {}
                Some(Err(cause)) => return Err(self.refused(cause)),
            }
        }
        self.rewrite(&bytes, |row| row[column] = value.clone().into_owned())
    }

    /// Changes a row, in one step for every reader; false if there is no row of the key. The closure runs as of
    /// [`Table::compute`]: it may run again, and its last run counts. Columns of the key stay as they are.
    ///
    /// # Errors
    /// [`Error::Schema`] for values that their columns cannot have, and if a column of the key was changed; as of
    /// [`Table::compute`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, schema::Value};
    /// # let db = Db::in_memory();
    /// let schema = "page:text, hits:u64, last:text?, key(page)".parse().expect("a schema");
    /// db.create_ordered_table("pages", OrderedTableOptions::default().schema(schema))?;
    /// let pages = db.rows("pages")?;
    /// pages.put(&["/oaks".into(), 1.into(), Value::Null])?;
    /// pages.update(&["/oaks".into()], |row| {
    ///     if let Value::Int(hits) = &mut row[1] {
    ///         *hits += 1;
    ///     }
    ///     row[2] = Value::text("ada");
    /// })?;
    /// let row = pages.get(&["/oaks".into()])?.expect("it is there");
    /// assert_eq!(row[1..], [Value::Int(2), Value::text("ada")]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update(
        &self,
        key: &[Value<'_>],
        change: impl FnMut(&mut Vec<Value<'static>>),
    ) -> Result<bool> {
        self.rewrite(&self.key(key)?, change)
    }

    /// Writes a row anew, as `change` leaves it.
    fn rewrite(
        &self,
        key: &[u8],
        mut change: impl FnMut(&mut Vec<Value<'static>>),
    ) -> Result<bool> {
        let mut refused = None;
        let computed = self.table.compute(key, |value| {
            refused = None;
            let Some(value) = value else { return Compute::Keep };
            self.rewritten(key, value, &mut change).map_or_else(
                |error| {
                    refused = Some(error);
                    Compute::Keep
                },
                Compute::Replace,
            )
        })?;
        match refused {
            Some(error) => Err(error),
            None => Ok(computed == Computed::Replaced),
        }
    }

    /// The value of a row as `change` leaves it, whose key stays.
    pub(super) fn rewritten(
        &self,
        key: &[u8],
        value: &[u8],
        change: impl FnOnce(&mut Vec<Value<'static>>),
    ) -> Result<Vec<u8>> {
        // The newest format, once the row is there: it is not older than the row.
        let format = self.format();
        let row = self.named(format.decode(key, value))?;
        let mut row = row.into_iter().map(Value::into_owned).collect();
        change(&mut row);
        let number = format.number_of(key).unwrap_or(FIRST_NUMBER);
        let (new_key, new_value) = self.encode(format, &row, number)?;
        match new_key == key {
            true => Ok(new_value),
            false => Err(self.key_changed()),
        }
    }

    /// A row as a key and a value.
    pub(super) fn encode(
        &self,
        format: &RowFormat,
        row: &[Value<'_>],
        number: u64,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let columns = format.schema().columns().len();
        if row.len() != columns {
            let what = format!("a row has {columns} values here, and {} are given", row.len());
            return Err(self.refused(Cause::Schema(what)));
        }
        let (mut key, mut value) = (Vec::new(), Vec::new());
        self.named(format.encode(row, Some(number), &mut key, &mut value))?;
        Ok((key, value))
    }

    /// Puts a row under a number of its own, which it writes behind the columns of the key. Two threads may come by
    /// one number, as may a row that was put as bytes: one of them finds it taken, and takes another.
    fn put_numbered(&self, key: &mut [u8], value: &[u8]) -> Result<u64> {
        loop {
            let number = match self.counts() {
                true => take_numbers(self.counter()?, 1),
                false => match self.last_number(&key[..key.len() - NUMBER_BYTES])? {
                    Some(last) => last.checked_add(1),
                    None => Some(FIRST_NUMBER),
                },
            };
            let number = number.ok_or_else(|| self.no_number())?;
            set_number(key, number);
            if self.table.put_if_absent(&*key, value)? {
                return Ok(number);
            }
        }
    }

    /// Whether numbers of rows come from the counter of the table, and not from the last row of those that share
    /// the columns of the key.
    pub(super) fn counts(&self) -> bool {
        matches!(self.table, Table::Hash(_)) || self.schema().key_columns().is_empty()
    }

    /// The counter of row numbers. It begins behind the largest number in the table: rows that are put while that
    /// is looked for have numbers from the counter, so from later on, or come by [`put_at`](Self::put_at), which
    /// waits for the counter first.
    pub(super) fn counter(&self) -> Result<&AtomicU64> {
        self.formats.counter(|| match &self.table {
            Table::Hash(table) => {
                let mut largest = None;
                let _all = table.for_each(|key, _| {
                    largest = largest.max(self.format().number_of(key));
                    ControlFlow::<()>::Continue(())
                })?;
                Ok(largest)
            }
            Table::Ordered(_) | Table::Tree(_) => self.last_number(&[]),
        })
    }

    /// The number of the last row among those whose keys begin so.
    fn last_number(&self, prefix: &[u8]) -> Result<Option<u64>> {
        let last =
            self.table.scan(key::prefix_range(prefix), Direction::Descending, |key, _| {
                ControlFlow::Break(self.format().number_of(key))
            })?;
        Ok(match last {
            ControlFlow::Break(number) => number,
            ControlFlow::Continue(()) => None,
        })
    }

    pub(super) fn key_changed(&self) -> crate::Error {
        let what = "the column is in the key: remove the row, and put it with another key";
        self.refused(Cause::Schema(what.to_owned()))
    }

    pub(super) fn no_number(&self) -> crate::Error {
        let what = "there is no number left above the largest: copy the rows into a new table";
        self.refused(Cause::Schema(what.to_owned()))
    }
}

/// Writes the number at the end of a key.
pub(super) fn set_number(key: &mut [u8], number: u64) {
    let at = key.len() - NUMBER_BYTES;
    key[at..].copy_from_slice(&number.to_be_bytes());
}
