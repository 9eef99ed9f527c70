//! Rows read and changed in transactions.

use std::ops::ControlFlow;

use super::change::set_number;
use super::row_ref::{ColumnId, RowRef, find};
use super::{RowRange, Rows, TypedRows};
use crate::formats::{FIRST_NUMBER, take_numbers};
use crate::row::Row;
use crate::schema::{RowFormat, Value};
use crate::{Compute, Computed, Direction, Result, Transaction, key};

#[cfg(doc)]
use crate::Error;

/// The rows of a table, as a transaction sees and changes them. Made by [`Transaction::rows`].
///
/// # Consistency
///
/// That of the [`Transaction`]: what it reads was so at one moment, and what it changes takes effect at the commit with
/// all other changes of the transaction, or not at all. Numbers that rows of numbered tables get from a counter are not
/// given back by a transaction that is aborted.
///
/// # Errors
///
/// [`Error::Schema`] for values that their columns cannot have, and for entries that are no rows; [`Error::Conflict`]
/// where something that was read before is no longer so.
///
/// ```
/// use sapwood::schema::Value;
/// use sapwood::{Db, HashTableOptions, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let accounts = "owner:text, balance:i64, key(owner)".parse().expect("a schema");
/// let bookings = "day:date, note:text, amount:i64".parse().expect("a schema");
/// db.create_hash_table("accounts", HashTableOptions::default().schema(accounts))?;
/// db.create_ordered_table("bookings", OrderedTableOptions::default().schema(bookings))?;
/// let (accounts, bookings) = (db.rows("accounts")?, db.rows("bookings")?);
/// accounts.put_many(&[["ada".into(), 100.into()], ["bob".into(), 0.into()]])?;
///
/// db.transaction(|tx| {
///     let accounts = tx.rows(&accounts);
///     for (owner, amount) in [("ada", -30), ("bob", 30)] {
///         accounts.update(&[owner.into()], |row| {
///             if let Value::Int(balance) = &mut row[1] {
///                 *balance += amount;
///             }
///         })?;
///     }
///     tx.rows(&bookings).put(&[Value::Date(20_000), "ada to bob".into(), 30.into()])?;
///     Ok(())
/// })?;
/// assert_eq!(accounts.get(&["bob".into()])?.expect("it is there")[1], Value::Int(30));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TransactionRows<'t, 'db> {
    tx: &'t Transaction<'db>,
    rows: &'t Rows,
}

/// As [`TransactionRows`], of rows that are structs. Made by [`Transaction::typed_rows`].
///
/// ```
/// use sapwood::row::Row;
/// use sapwood::{Db, HashTableOptions};
///
/// #[derive(Row, Debug, PartialEq)]
/// struct Plane {
///     #[row(key)]
///     tail: String,
///     seats: u16,
/// }
///
/// let db = Db::in_memory();
/// db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
/// let planes = db.rows("planes")?.typed::<Plane>()?;
/// db.transaction(|tx| {
///     let planes = tx.typed_rows(&planes);
///     planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
///     planes.update(&["N14228".into()], |plane| plane.seats += 1)
/// })?;
/// assert_eq!(planes.get(&["N14228".into()])?.expect("it was put").seats, 150);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug)]
pub struct TransactionTypedRows<'t, 'db, R> {
    tx: &'t Transaction<'db>,
    rows: &'t TypedRows<R>,
}

impl<'db> Transaction<'db> {
    /// The rows of a table, to be read and changed in this transaction.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// let tx = db.begin()?;
    /// tx.rows(&planes).put(&["N14228".into(), 149.into()])?;
    /// assert_eq!(planes.get(&["N14228".into()])?, None); // Not committed yet.
    /// tx.commit()?;
    /// assert!(planes.get(&["N14228".into()])?.is_some());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn rows<'t>(&'t self, rows: &'t Rows) -> TransactionRows<'t, 'db> {
        TransactionRows { tx: self, rows }
    }

    /// The rows of a table as structs, to be read and changed in this transaction.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// let there = db.transaction(|tx| tx.typed_rows(&planes).get(&["N14228".into()]))?;
    /// assert_eq!(there, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn typed_rows<'t, R: Row>(
        &'t self,
        rows: &'t TypedRows<R>,
    ) -> TransactionTypedRows<'t, 'db, R> {
        TransactionTypedRows { tx: self, rows }
    }
}

impl TransactionRows<'_, '_> {
    /// The row of a key, which is a value for each column of it, and the number of a numbered table; `None` if there is
    /// none.
    ///
    /// # Errors
    /// [`Error::Schema`] for a key that is none, and for an entry that is no row; as of [`Transaction::get`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let row = db.transaction(|tx| tx.rows(&planes).get(&["N14228".into()]))?;
    /// assert_eq!(row, Some(vec!["N14228".into(), 149.into()]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: &[Value<'_>]) -> Result<Option<Vec<Value<'static>>>> {
        let key = self.rows.key(key)?;
        let Some(value) = self.tx.get(&self.rows.table, &key)? else { return Ok(None) };
        self.decode(&key, &value).map(Some)
    }

    /// Visits the rows in a range of values of the first columns of the key, in order, as [`Rows::scan`] does; `visit` ends
    /// it with `ControlFlow::Break`.
    ///
    /// # Errors
    /// As of [`get`](Self::get); [`Error::NoOrder`] of a hash table.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, Direction, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let last = db.transaction(|tx| {
    ///     tx.rows(&planes).put(&["N24211".into(), 178.into()])?;
    ///     tx.rows(&planes).scan(.., Direction::Descending, |row| {
    ///         ControlFlow::Break(row.to_values())
    ///     })
    /// })?;
    /// let ControlFlow::Break(last) = last else { panic!("there are two") };
    /// assert_eq!(last?, ["N24211".into(), 178.into()]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<'v, B>(
        &self,
        range: impl RowRange<'v>,
        direction: Direction,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let range = self.rows.byte_range(&range)?;
        self.tx
            .scan(&self.rows.table, range, direction, |key, value| visit(self.rows.row(key, value)))
    }

    /// Puts a row. One with the same key is replaced; in a numbered table there is none, and the number that
    /// the row has got is answered.
    ///
    /// # Errors
    /// [`Error::Schema`] for more or fewer values than columns, and for a value that its column cannot have; as
    /// of [`Transaction::put`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "line:text".parse().expect("a schema");
    /// db.create_ordered_table("lines", OrderedTableOptions::default().schema(schema))?;
    /// let lines = db.rows("lines")?;
    /// let number = db.transaction(|tx| tx.rows(&lines).put(&["an oak".into()]))?;
    /// assert_eq!(number, Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(&self, row: &[Value<'_>]) -> Result<Option<u64>> {
        let format = self.rows.format();
        let (mut key, value) = self.rows.encode(format, row, FIRST_NUMBER)?;
        match format.schema().is_numbered() {
            true => self.put_numbered(&mut key, &value).map(Some),
            false => self.tx.put(&self.rows.table, &key, &value).map(|()| None),
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
    /// db.transaction(|tx| {
    ///     assert!(tx.rows(&planes).insert(&["N14228".into(), 149.into()])?);
    ///     assert!(!tx.rows(&planes).insert(&["N14228".into(), 150.into()])?);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn insert(&self, row: &[Value<'_>]) -> Result<bool> {
        let format = self.rows.format();
        let (mut key, value) = self.rows.encode(format, row, FIRST_NUMBER)?;
        match format.schema().is_numbered() {
            true => self.put_numbered(&mut key, &value).map(|_| true),
            false => self.tx.put_if_absent(&self.rows.table, &key, &value),
        }
    }

    /// Removes the row of a key; true if it was there.
    ///
    /// # Errors
    /// [`Error::Schema`] for a key that is none; as of [`Transaction::remove`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert!(db.transaction(|tx| tx.rows(&planes).remove(&["N14228".into()]))?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, key: &[Value<'_>]) -> Result<bool> {
        let key = self.rows.key(key)?;
        Ok(self.tx.remove(&self.rows.table, &key)?.is_some())
    }

    /// Changes one column of a row; false if there is no row of the key.
    ///
    /// # Errors
    /// [`Error::Schema`] for a column that is not there or in the key, and for a value that it cannot have; as
    /// of [`Transaction::compute`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, schema::Value};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// db.transaction(|tx| tx.rows(&planes).update_column(&["N14228".into()], "seats", &150.into()))?;
    /// assert_eq!(planes.get(&["N14228".into()])?.expect("it is there")[1], Value::Int(150));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update_column(
        &self,
        key: &[Value<'_>],
        column: impl ColumnId,
        value: &Value<'_>,
    ) -> Result<bool> {
        let schema = self.rows.schema();
        let column = self.rows.named(find(schema, column))?;
        if schema.key_columns().contains(&column) {
            return Err(self.rows.key_changed());
        }
        self.update(key, |row| row[column] = value.clone().into_owned())
    }

    /// Changes a row; false if there is no row of the key. Columns of the key stay as they are.
    ///
    /// # Errors
    /// [`Error::Schema`] for values that their columns cannot have, and if a column of the key was changed; as of
    /// [`Transaction::compute`]. The row is as it was then.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, schema::Value};
    /// # let db = Db::in_memory();
    /// # let schema = "page:text, hits:u64, key(page)".parse().expect("a schema");
    /// # db.create_ordered_table("pages", OrderedTableOptions::default().schema(schema))?;
    /// let pages = db.rows("pages")?;
    /// pages.put(&["/oaks".into(), 1.into()])?;
    /// db.transaction(|tx| tx.rows(&pages).update(&["/oaks".into()], |row| row[1] = 2.into()))?;
    /// assert_eq!(pages.get(&["/oaks".into()])?.expect("it is there")[1], Value::Int(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update(
        &self,
        key: &[Value<'_>],
        change: impl FnOnce(&mut Vec<Value<'static>>),
    ) -> Result<bool> {
        let key = self.rows.key(key)?;
        let mut refused = None;
        let computed = self.tx.compute(&self.rows.table, &key, |value| {
            let Some(value) = value else { return Compute::Keep };
            self.rows.rewritten(&key, value, change).map_or_else(
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

    fn decode(&self, key: &[u8], value: &[u8]) -> Result<Vec<Value<'static>>> {
        // The newest format, once the row is there: it is not older than the row.
        let format: &RowFormat = self.rows.format();
        let row = self.rows.named(format.decode(key, value))?;
        Ok(row.into_iter().map(Value::into_owned).collect())
    }

    /// Puts a row under a number of its own, which it writes behind the columns of the key.
    fn put_numbered(&self, key: &mut [u8], value: &[u8]) -> Result<u64> {
        let rows = self.rows;
        loop {
            let number = match rows.counts() {
                true => take_numbers(rows.counter()?, 1),
                false => match self.last_number(&key[..key.len() - size_of::<u64>()])? {
                    Some(last) => last.checked_add(1),
                    None => Some(FIRST_NUMBER),
                },
            };
            let number = number.ok_or_else(|| rows.no_number())?;
            set_number(key, number);
            if self.tx.put_if_absent(&rows.table, &*key, value)? {
                return Ok(number);
            }
        }
    }

    /// The number of the last row among those whose keys begin so.
    fn last_number(&self, prefix: &[u8]) -> Result<Option<u64>> {
        let range = key::prefix_range(prefix);
        let last = self.tx.scan(&self.rows.table, range, Direction::Descending, |key, _| {
            ControlFlow::Break(self.rows.format().number_of(key))
        })?;
        Ok(match last {
            ControlFlow::Break(number) => number,
            ControlFlow::Continue(()) => None,
        })
    }
}

impl<'t, 'db, R: Row> TransactionTypedRows<'t, 'db, R> {
    fn rows(&self) -> TransactionRows<'t, 'db> {
        self.tx.rows(self.rows.rows())
    }

    /// The row of a key, as [`TransactionRows::get`].
    ///
    /// # Errors
    /// As of [`TransactionRows::get`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// let plane = db.transaction(|tx| tx.typed_rows(&planes).get(&["N14228".into()]))?;
    /// assert_eq!(plane.map(|plane| plane.seats), Some(149));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: &[Value<'_>]) -> Result<Option<R>> {
        self.rows().get(key)?.map(|values| self.rows.of_values(values)).transpose()
    }

    /// Puts a row, as [`TransactionRows::put`].
    ///
    /// # Errors
    /// As of [`TransactionRows::put`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// let plane = Plane { tail: "N14228".to_owned(), seats: 149 };
    /// db.transaction(|tx| tx.typed_rows(&planes).put(&plane))?;
    /// assert_eq!(planes.get(&["N14228".into()])?, Some(plane));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(&self, row: &R) -> Result<Option<u64>> {
        self.rows().put(&self.rows.values(row))
    }

    /// Puts a row unless there is one with its key, as [`TransactionRows::insert`].
    ///
    /// # Errors
    /// As of [`TransactionRows::insert`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// let plane = Plane { tail: "N14228".to_owned(), seats: 149 };
    /// assert!(db.transaction(|tx| tx.typed_rows(&planes).insert(&plane))?);
    /// assert!(!db.transaction(|tx| tx.typed_rows(&planes).insert(&plane))?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn insert(&self, row: &R) -> Result<bool> {
        self.rows().insert(&self.rows.values(row))
    }

    /// Removes the row of a key, as [`TransactionRows::remove`].
    ///
    /// # Errors
    /// As of [`TransactionRows::remove`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// assert!(!db.transaction(|tx| tx.typed_rows(&planes).remove(&["N14228".into()]))?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, key: &[Value<'_>]) -> Result<bool> {
        self.rows().remove(key)
    }

    /// Changes a row; false if there is no row of the key. Fields of the key stay as they are, and so do columns that the
    /// struct does not know.
    ///
    /// # Errors
    /// As of [`TransactionRows::update`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// db.transaction(|tx| tx.typed_rows(&planes).update(&["N14228".into()], |plane| plane.seats = 7))?;
    /// assert_eq!(planes.get(&["N14228".into()])?.map(|plane| plane.seats), Some(7));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update(&self, key: &[Value<'_>], change: impl FnOnce(&mut R)) -> Result<bool> {
        let mut refused = None;
        let updated =
            self.rows().update(key, |values| match self.rows.of_values(values.clone()) {
                Ok(mut row) => {
                    change(&mut row);
                    self.rows.write(&row, values);
                }
                Err(error) => refused = Some(error),
            })?;
        refused.map_or(Ok(updated), Err)
    }
}
