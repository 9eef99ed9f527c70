//! Rows put, changed and removed.

use super::row_ref::{ColumnId, find};
use super::{AsRow, RowKind, Rows};
use crate::formats::{FIRST_NUMBER, pass_number};
#[cfg(feature = "sql")]
use crate::schema::Cell;
use crate::schema::{Error as Cause, RowFormat, Value};
use crate::{Compute, Computed, Result, Sorted, Upsert, ValueMut};

#[cfg(doc)]
use crate::{Error, Table};

/// Rows that are given to the table at once.
const BATCH: usize = 1 << 10;

impl<R: RowKind, E: Sorted> Rows<R, E> {
    /// Puts a row, in the place of one with its key. In a numbered table there is none; the answer is the number of the
    /// row.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors); [`Error::Schema`] for more or fewer values than columns.
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
    pub fn put(&self, row: &(impl AsRow<R> + ?Sized)) -> Result<Option<u64>> {
        let format = self.format();
        let (mut key, value) = self.encode_row(format, row, FIRST_NUMBER)?;
        match format.schema().is_numbered() {
            true => self.put_numbered(&mut key, &value).map(Some),
            false => self.table.put(&key, &value).map(|()| None),
        }
    }

    /// Puts a row unless there is one with its key; true if it did. In a numbered table there is none.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
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
    pub fn insert(&self, row: &(impl AsRow<R> + ?Sized)) -> Result<bool> {
        let (mut key, value) = self.encode_row(self.format(), row, FIRST_NUMBER)?;
        self.insert_entry(&mut key, &value)
    }

    /// Puts a row of a numbered table under a number, as one that is replaced, or copied from elsewhere.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put); [`Error::Schema`] in a table that is not numbered.
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
    pub fn put_at(&self, number: u64, row: &(impl AsRow<R> + ?Sized)) -> Result<()> {
        let format = self.format();
        if !format.schema().is_numbered() {
            let what = "its rows have no numbers: put them without".to_owned();
            return Err(self.refused(Cause::Schema(what)));
        }
        let (key, value) = self.encode_row(format, row, number)?;
        if self.counts() {
            pass_number(self.counter()?, number);
        }
        self.table.put(&key, &value)
    }

    /// Puts rows, those of one key in order, each as by [`put`](Self::put): faster than single calls.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put) and of [`Table::put_many`]. Rows before the one that was refused may be in.
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
    pub fn put_many(&self, rows: &[impl AsRow<R>]) -> Result<()> {
        let format = self.format();
        let is_numbered = format.schema().is_numbered();
        if is_numbered && !self.counts() {
            return rows.iter().try_for_each(|row| self.put(row).map(drop));
        }
        for rows in rows.chunks(BATCH) {
            let entries = rows.iter().map(|row| self.encode_row(format, row, FIRST_NUMBER));
            let mut entries = entries.collect::<Result<Vec<_>>>()?;
            if is_numbered {
                // Once all of them are rows: numbers are not taken for nothing.
                self.count_entries(&mut entries)?;
            }
            self.table.put_many(&entries)?;
        }
        Ok(())
    }

    /// Removes the row of a key; true if there was one.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors).
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
    pub fn remove(&self, key: R::Key<'_>) -> Result<bool> {
        self.table.remove(self.key(key)?)
    }

    /// Changes one column of a row, in one step for every reader; false if there is no row of the key. A value of fixed
    /// width is changed in place; for others, and in rows that were put before the column was added, the row is written
    /// anew.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors); [`Error::Schema`] for a column that the table lacks, and for one of the key.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, schema::Value};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert!(planes.update_column(&["N14228".into()], "seats", &150.into())?);
    /// assert_eq!(planes.get(&["N14228".into()])?.expect("it was put")[1], Value::Int(150));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update_column(
        &self,
        key: R::Key<'_>,
        column: impl ColumnId,
        value: &Value<'_>,
    ) -> Result<bool> {
        let schema = self.schema();
        let column = self.named(find(schema, column))?;
        if schema.key_columns().contains(&column) {
            return Err(self.key_changed());
        }
        let key = self.key(key)?;
        if schema.columns()[column].kind.width().is_some() {
            // The newest format, read after the row: it is not older than the row.
            let set = |row: &mut ValueMut<'_>| self.format().set(column, row, value);
            match self.table.update(&key, set)? {
                None => return Ok(false),
                Some(Ok(())) => return Ok(true),
                // A value that the column cannot have, or a row from before the column was added.
                Some(Err(Cause::Value { .. })) => {}
                Some(Err(cause)) => return Err(self.refused(cause)),
            }
        }
        let set = &mut |values: &mut Vec<Value<'static>>| {
            values[column] = value.clone().into_owned();
            Ok(())
        };
        Ok(self.rewrite(&key, None, set)? == Computed::Replaced)
    }

    /// Changes a row, in one step for every reader; false if there is no row of the key. The closure is called as that of
    /// [`Table::update`]; columns of the key stay as they are.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors); [`Error::Schema`] if a column of the key was changed.
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
    /// let row = pages.get(&["/oaks".into()])?.expect("it was put");
    /// assert_eq!(row[1..], [Value::Int(2), Value::text("ada")]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update(&self, key: R::Key<'_>, mut change: impl FnMut(&mut R::Row)) -> Result<bool> {
        let key = self.key(key)?;
        let change =
            &mut |values: &mut Vec<Value<'static>>| self.change_values(values, &mut change);
        Ok(self.rewrite(&key, None, change)? == Computed::Replaced)
    }

    /// Puts a row of a new key, or changes the row that the key has, in one step for every reader. The closure is called
    /// as by [`update`](Self::update). A numbered table puts the row under a new number.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put) and [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// #[derive(Row)]
    /// struct Visits { #[row(key)] page: String, count: u32 }
    ///
    /// # let db = Db::in_memory();
    /// db.create_hash_table("visits", HashTableOptions::default().schema(Visits::schema()))?;
    /// let visits = db.rows("visits")?.typed::<Visits>()?;
    /// for page in ["/oaks", "/elms", "/oaks"] {
    ///     let first = Visits { page: page.to_owned(), count: 1 };
    ///     visits.put_if_absent_or_update(&first, |visits| visits.count += 1)?;
    /// }
    /// assert_eq!(visits.get("/oaks")?.expect("two visits").count, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent_or_update(
        &self,
        row: &(impl AsRow<R> + ?Sized),
        mut change: impl FnMut(&mut R::Row),
    ) -> Result<Upsert<()>> {
        let format = self.format();
        let (mut key, value) = self.encode_row(format, row, FIRST_NUMBER)?;
        if format.schema().is_numbered() {
            return self.put_numbered(&mut key, &value).map(|_| Upsert::Inserted);
        }
        let change =
            &mut |values: &mut Vec<Value<'static>>| self.change_values(values, &mut change);
        Ok(match self.rewrite(&key, Some(&value), change)? {
            Computed::Inserted => Upsert::Inserted,
            _ => Upsert::Updated(()),
        })
    }

    /// Changes the values of a table's row as `change` changes a row of this type.
    fn change_values(
        &self,
        values: &mut Vec<Value<'static>>,
        change: &mut impl FnMut(&mut R::Row),
    ) -> Result<()> {
        let mut row = self.of_values(values.clone())?;
        change(&mut row);
        let fields = R::to_values(&row);
        let fields = fields.iter().cloned().map(Value::into_owned);
        match &self.columns {
            None => *values = fields.collect(),
            Some(columns) => {
                columns.iter().zip(fields).for_each(|(&at, value)| values[at] = value);
            }
        }
        Ok(())
    }

    /// Writes a row anew with the values that `change` leaves, or puts `first` if there is none.
    fn rewrite(
        &self,
        key: &[u8],
        first: Option<&[u8]>,
        change: &mut dyn FnMut(&mut Vec<Value<'static>>) -> Result<()>,
    ) -> Result<Computed> {
        let mut refused = None;
        let computed = self.table.compute(key, |row| {
            refused = None;
            let Some(row) = row else {
                return first.map_or(Compute::Keep, |first| Compute::Replace(first.to_vec()));
            };
            self.rewritten(key, row, change).map_or_else(
                |error| {
                    refused = Some(error);
                    Compute::Keep
                },
                Compute::Replace,
            )
        })?;
        refused.map_or(Ok(computed), Err)
    }

    /// The bytes of a row with the values that `change` leaves.
    fn rewritten(
        &self,
        key: &[u8],
        row: &[u8],
        change: &mut dyn FnMut(&mut Vec<Value<'static>>) -> Result<()>,
    ) -> Result<Vec<u8>> {
        // The newest format, read after the row: it is not older than the row.
        let format = self.format();
        let values = self.named(format.decode(key, row))?;
        let mut values = values.into_iter().map(Value::into_owned).collect();
        change(&mut values)?;
        let number = format.number_of(key).unwrap_or(FIRST_NUMBER);
        let (new_key, new_row) = self.encode(format, &values, number)?;
        match new_key == key {
            true => Ok(new_row),
            false => Err(self.key_changed()),
        }
    }

    /// A row as a key and a value.
    fn encode_row(
        &self,
        format: &RowFormat,
        row: &(impl AsRow<R> + ?Sized),
        number: u64,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        self.encode(format, &self.to_columns(format, row.row_values()), number)
    }

    /// The values of all columns as a key and a value.
    fn encode(
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

    /// Encodes the entry of a new row, whose key lacks the number of a numbered table.
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

    /// Puts the entry of a new row, which gets a number if the table is numbered; false if there is a row of its key.
    pub(crate) fn insert_entry(&self, key: &mut [u8], value: &[u8]) -> Result<bool> {
        match self.schema().is_numbered() {
            true => self.put_numbered(key, value).map(|_| true),
            false => self.table.put_if_absent(&*key, value),
        }
    }

    fn key_changed(&self) -> crate::Error {
        let what = "the column is in the key: remove the row, and put it with another key";
        self.refused(Cause::Schema(what.to_owned()))
    }
}
