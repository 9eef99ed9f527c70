//! The typed view of a table: rows of columns, as values or as structs.

mod kind;
mod number;
mod range;
mod read;
mod row_ref;
mod write;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::formats::Formats;
use crate::row::Row;
use crate::schema::{Error as Cause, RowFormat, Schema, Value};
use crate::{
    Any, AnyTable, Error, InTransaction, Keyed, Result, Sorted, Table, TableRef, Transaction,
};

pub use kind::{AsRow, RowKind, Values};
pub use range::{KeyPart, RowPrefix, RowRange};
pub use row_ref::{ColumnId, RowRef};

/// The rows of a table that has a schema, read and changed by column: as structs of one type, or as [`Values`].
///
/// It is a view of a table of any engine, or of one as a transaction sees it ([`Transaction::rows`]); clones are the
/// same table. [`Db::rows`](crate::Db::rows) gives the rows as values, and [`typed`](Self::typed) as structs.
///
/// | | `Rows` | `Rows<Plane>` |
/// |---|---|---|
/// | a row | a slice of values in the order of the schema | a struct that derives [`Row`](macro@crate::row::Row) |
/// | a key | a slice of the values of the key columns | their values as Rust types: one alone, several as a tuple |
/// | bounds of a range | arrays of values, or tuples of Rust types, of the first key columns | |
///
/// # Numbers
///
/// A row that is put into a numbered table gets a number that no row of it has, which stands behind the columns of the
/// key. If the number alone is the key, and in hash tables, it is larger than all numbers of the table; in ordered and
/// tree tables with more key columns it is larger by one than the largest among the rows with the same values of
/// these. The first is 1. A number may be used again after its row was removed.
///
/// # Consistency
///
/// That of the [`Table`]: each operation on one row takes effect at one moment, and a row is read whole. A column that
/// is added ([`Db::add_column`](crate::Db::add_column)) is visible to all views at once: earlier rows have no value for
/// it.
///
/// # Errors
///
/// Beside the table's, [`Error::Schema`] for values that their columns cannot have, and for entries that were put as
/// bytes and are no rows.
///
/// ```
/// use sapwood::schema::Value;
/// use sapwood::{Db, Direction, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let schema = "carrier:text, flight:u16, delay:i16?, key(carrier, flight)".parse().expect("a schema");
/// db.create_ordered_table("flights", OrderedTableOptions::default().schema(schema))?;
/// let flights = db.rows("flights")?;
/// flights.put_many(&[
///     ["UA".into(), 1545.into(), 11.into()],
///     ["UA".into(), 1714.into(), 20.into()],
///     ["AA".into(), 1141.into(), Value::Null],
/// ])?;
/// flights.update_column(&["AA".into(), 1141.into()], "delay", &33.into())?;
///
/// // All flights of a carrier, in the order of their keys.
/// let mut delays = Vec::new();
/// flights.scan(("UA",)..=("UA",), Direction::Ascending, |row| {
///     delays.push(row.get("delay").map(Value::into_owned));
/// })?;
/// assert_eq!(delays, [Ok(Value::Int(11)), Ok(Value::Int(20))]);
/// # Ok::<(), sapwood::Error>(())
/// ```
pub struct Rows<R = Values, E: Keyed = Any> {
    table: Table<E>,
    /// The table outside of a transaction, for the numbers of rows.
    base: AnyTable,
    formats: Arc<Formats>,
    /// The column of each field of a struct; none for values, which are in the order of the columns.
    columns: Option<Vec<usize>>,
    /// No row is kept here: threads may share the view of any.
    row: std::marker::PhantomData<fn() -> R>,
}

impl<R, E: Keyed> Clone for Rows<R, E> {
    fn clone(&self) -> Self {
        self.with(self.table.clone(), self.columns.clone())
    }
}

impl<R, E: Keyed> fmt::Debug for Rows<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("table", &self.table).finish()
    }
}

impl Rows {
    /// The rows of a table.
    ///
    /// # Errors
    /// [`Error::NoSchema`].
    ///
    /// ```
    /// # use sapwood::{Db, Error, HashTableOptions, Rows};
    /// # let db = Db::in_memory();
    /// let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// let planes = db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = Rows::new(planes)?;
    /// let bytes = db.create_hash_table("bytes", HashTableOptions::default())?;
    /// assert!(matches!(Rows::new(bytes), Err(Error::NoSchema { .. })));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn new(table: impl Into<AnyTable>) -> Result<Rows> {
        let base = table.into();
        let none = || Error::NoSchema { table: base.name().into() };
        let formats = Arc::clone(base.formats().ok_or_else(none)?);
        Ok(Rows { table: base.clone(), base, formats, columns: None, row: Default::default() })
    }
}

impl<'db> Transaction<'db> {
    /// The rows of a table as this transaction sees them.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "account:text, cents:i64, key(account)".parse().expect("a schema");
    /// db.create_tree_table("accounts", TreeTableOptions::default().schema(schema))?;
    /// let accounts = db.rows("accounts")?;
    /// accounts.put_many(&[["ada".into(), 500.into()], ["bob".into(), 20.into()]])?;
    /// db.transaction(|tx| {
    ///     let accounts = tx.rows(&accounts);
    ///     accounts.update_column(&["ada".into()], "cents", &470.into())?;
    ///     accounts.update_column(&["bob".into()], "cents", &50.into())
    /// })?;
    /// assert_eq!(accounts.get(&["bob".into()])?, Some(vec!["bob".into(), 50.into()]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn rows<'tx, R>(&'tx self, rows: &Rows<R>) -> Rows<R, InTransaction<'tx, 'db>> {
        rows.with(self.table(TableRef::from(&rows.table)), rows.columns.clone())
    }
}

impl<R, E: Keyed> Rows<R, E> {
    /// Shows these rows as another type, or through another engine.
    fn with<S, F: Keyed>(&self, table: Table<F>, columns: Option<Vec<usize>>) -> Rows<S, F> {
        let (base, formats) = (self.base.clone(), Arc::clone(&self.formats));
        Rows { table, base, formats, columns, row: Default::default() }
    }

    /// The rows as structs. A table may have nullable columns that the struct does not know: reads ignore them, and
    /// puts leave them without a value.
    ///
    /// # Errors
    /// [`Error::Schema`] if the struct has a field that is no such column, lacks a column that every row has a value
    /// for, or has another key.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// use sapwood::row::Row;
    ///
    /// #[derive(Row, Debug, PartialEq)]
    /// struct Plane {
    ///     #[row(key)]
    ///     tail: String,
    ///     seats: u16,
    /// }
    /// # let db = Db::in_memory();
    /// let schema = "tail:text, seats:u16, key(tail)".parse().expect("a schema");
    /// db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// planes.update("N14228", |plane| plane.seats += 1)?;
    /// assert_eq!(planes.get("N14228")?.expect("it was put").seats, 150);
    ///
    /// let schema = "tail:text, seats:u32, key(tail)".parse().expect("a schema");
    /// db.create_hash_table("wide", HashTableOptions::default().schema(schema))?;
    /// let refused = db.rows("wide")?.typed::<Plane>().unwrap_err();
    /// assert!(refused.to_string().contains("`seats` is `u32` here, and `u16` in the struct"));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn typed<S: Row>(&self) -> Result<Rows<S, E>> {
        let columns = self.named(kind::columns_of(&S::schema(), self.schema()))?;
        Ok(self.with(self.table.clone(), Some(columns)))
    }

    /// The table.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert_eq!(planes.table().len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn table(&self) -> &Table<E> {
        &self.table
    }

    /// The columns, as of now.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// assert_eq!(planes.schema().find("seats"), Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self) -> &Schema {
        self.format().schema()
    }

    /// The encoding of rows as bytes, as of now; it reads all rows that this view has met.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// // To read few columns of many rows.
    /// let seats = planes.format().project(&[1]);
    /// let mut sum = 0;
    /// let _ = planes.for_each(|row| match row.read(&seats, |_, cell| {
    ///     if let sapwood::schema::Cell::Int(seats) = cell {
    ///         sum += seats;
    ///     }
    /// }) {
    ///     Ok(()) => std::ops::ControlFlow::Continue(()),
    ///     Err(error) => std::ops::ControlFlow::Break(error),
    /// })?;
    /// assert_eq!(sum, 149);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn format(&self) -> &RowFormat {
        self.formats.newest()
    }

    #[inline]
    fn row<'a>(&'a self, key: &'a [u8], value: &'a [u8]) -> RowRef<'a> {
        // The newest format, read after the row: it is not older than the row.
        RowRef { format: self.formats.newest(), table: self.table.name(), key, value }
    }

    /// A whole key as bytes.
    fn whole_key(&self, values: &[Value<'_>]) -> Result<Vec<u8>> {
        let schema = self.schema();
        let wanted = schema.key_columns().len() + usize::from(schema.is_numbered());
        if values.len() != wanted {
            let what = format!("a key has {wanted} values here, and {} are given", values.len());
            return Err(self.refused(Cause::Schema(what)));
        }
        self.key_prefix(values)
    }

    /// The first columns of a key as bytes.
    fn key_prefix(&self, values: &[Value<'_>]) -> Result<Vec<u8>> {
        let format = self.format();
        let columns = format.schema().key_columns().len();
        let (values, numbers) = values.split_at(columns.min(values.len()));
        let mut key = Vec::new();
        self.named(format.encode_key(values, &mut key))?;
        match numbers {
            [] => {}
            [number] if format.schema().is_numbered() => {
                key.extend_from_slice(&self.number(number)?.to_be_bytes());
            }
            _ => {
                let what = "there are more values than columns of the key".to_owned();
                return Err(self.refused(Cause::Schema(what)));
            }
        }
        Ok(key)
    }

    fn number(&self, value: &Value<'_>) -> Result<u64> {
        let number = match value {
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        number.ok_or_else(|| {
            self.refused(Cause::Value {
                column: "#".to_owned(),
                wanted: "u64".to_owned(),
                what: format!("{value} is no number of a row"),
            })
        })
    }

    fn named<T>(&self, result: std::result::Result<T, Cause>) -> Result<T> {
        result.map_err(|cause| self.refused(cause))
    }

    #[cold]
    fn refused(&self, cause: Cause) -> Error {
        Error::Schema { table: self.table.name().into(), cause }
    }
}

impl<R: RowKind, E: Sorted> Rows<R, E> {
    fn key(&self, key: R::Key<'_>) -> Result<Vec<u8>> {
        self.whole_key(&R::key_values(key))
    }

    /// A row of a table as one of this type.
    fn of_values(&self, mut values: Vec<Value<'_>>) -> Result<R::Row> {
        let fields = match &self.columns {
            None => values,
            Some(columns) => {
                let mut take =
                    |column: &usize| std::mem::replace(&mut values[*column], Value::Null);
                columns.iter().map(&mut take).collect()
            }
        };
        self.named(R::from_values(fields))
    }

    /// A value for each column of the table, by the fields of a row.
    fn to_columns<'v>(
        &self,
        format: &RowFormat,
        fields: Cow<'v, [Value<'v>]>,
    ) -> Cow<'v, [Value<'v>]> {
        let Some(columns) = &self.columns else { return fields };
        let mut values = vec![Value::Null; format.schema().columns().len()];
        for (&column, value) in columns.iter().zip(fields.into_owned()) {
            values[column] = value;
        }
        Cow::Owned(values)
    }
}
