//! Tables whose entries are rows of a schema.
//!
//! | modules, each above those it uses | |
//! |---|---|
//! | `range` | ranges of rows, by values of the first columns of their keys |
//! | `row_ref` | a row where it lies |
//! | `change` | rows put, changed and removed |
//! | `typed` | rows as structs |
//! | `in_transaction` | rows read and changed in transactions |

mod change;
mod in_transaction;
mod range;
mod row_ref;
mod typed;

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::formats::Formats;
use crate::schema::{Error as Cause, RowFormat, Schema, Value};
use crate::{Direction, Error, Result, Table};

pub use in_transaction::{TransactionRows, TransactionTypedRows};
pub use range::RowRange;
pub use row_ref::{ColumnId, RowRef};
pub use typed::TypedRows;

/// The rows of a table of any kind that has a schema: read and changed by values.
///
/// It is a handle of the table, not a kind of its own: [`table`](Self::table) gives the table, and clones are
/// the same table. A row is a value for each column, in the order of the schema; its key is the values of
/// the columns of the key, and of a numbered schema its number behind them.
///
/// # Numbers
///
/// A row that is put into a numbered table gets a number that no row there has. Where nothing but the number is
/// the key, and in hash tables, it is larger than all numbers of the table; in ordered and tree tables with
/// more columns in their key it is larger by one than the largest among the rows with the same values of
/// these. The first is 1. A number may come again after its row was removed.
///
/// # Consistency
///
/// That of the [`Table`]: each operation on one row takes effect at one moment between its call and its return,
/// for every thread, and a row is read whole. Batches and walks are a series of operations, not one
/// atomic one. A column that is added ([`Db::add_column`](crate::Db::add_column)) is there for all handles at once: rows
/// that were put before have no value for it.
///
/// # Errors
///
/// [`Error::Schema`] for values that their columns cannot have, and for entries that were put as bytes and are
/// no rows.
///
/// ```
/// use std::ops::ControlFlow;
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
/// let united = || [Value::from("UA")];
/// let mut delays = Vec::new();
/// let _ = flights.scan(united()..=united(), Direction::Ascending, |row| {
///     delays.push(row.get("delay").map(Value::into_owned));
///     ControlFlow::<()>::Continue(())
/// })?;
/// assert_eq!(delays, [Ok(Value::Int(11)), Ok(Value::Int(20))]);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rows {
    table: Table,
    formats: Arc<Formats>,
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
    pub fn new(table: impl Into<Table>) -> Result<Rows> {
        let table = table.into();
        match table.formats() {
            Some(formats) => Ok(Rows { formats: Arc::clone(formats), table }),
            None => Err(Error::NoSchema { table: table.name().into() }),
        }
    }

    /// The table.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// assert_eq!(db.rows("planes")?.table().name(), "planes");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The columns, as they are now.
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

    /// How rows are written now, and how all that were met are read.
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

    /// A copy of the row of a key; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Schema`]; as of [`Table::get_with`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::schema::Value;
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert_eq!(planes.get(&["N14228".into()])?, Some(vec!["N14228".into(), Value::Int(149)]));
    /// assert_eq!(planes.get(&["N24211".into()])?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: &[Value<'_>]) -> Result<Option<Vec<Value<'static>>>> {
        self.get_with(key, |row| row.to_values())?.transpose()
    }

    /// Calls `read` with the row of a key, in place; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Schema`] for a key that is none; as of [`Table::get_with`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::schema::Value;
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let is_large = planes.get_with(&["N14228".into()], |row| {
    ///     row.get("seats").map(|seats| matches!(seats, Value::Int(120..)))
    /// })?;
    /// assert_eq!(is_large, Some(Ok(true)));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_with<R>(
        &self,
        key: &[Value<'_>],
        read: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        let key = self.key(key)?;
        self.table.get_with(&key, |value| read(self.row(&key, value)))
    }

    /// Whether there is a row of a key.
    ///
    /// # Errors
    /// [`Error::Schema`] for a key that is none; as of [`Table::contains_key`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert!(planes.contains_key(&["N14228".into()])? && !planes.contains_key(&["N1".into()])?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn contains_key(&self, key: &[Value<'_>]) -> Result<bool> {
        self.table.contains_key(self.key(key)?)
    }

    /// Visits every row, in place, in the order of the keys, or of a hash table in none; `visit` ends it with
    /// `ControlFlow::Break`.
    ///
    /// # Errors
    /// As of [`Table::for_each`].
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put_many(&[["N14228".into(), 149.into()], ["N24211".into(), 149.into()]])?;
    /// let found = planes.for_each(|row| match row.get("plane") {
    ///     Ok(plane) if plane == "N24211".into() => ControlFlow::Break(()),
    ///     _ => ControlFlow::Continue(()),
    /// })?;
    /// assert!(found.is_break());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each<B>(
        &self,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.table.for_each(|key, value| visit(self.row(key, value)))
    }

    /// Visits the rows of an ordered or a tree table in a range, in place; `visit` ends it with
    /// `ControlFlow::Break`. The bounds are values of the first columns of the key: `[a]..=[a]` are all rows whose
    /// first column of the key is `a`, `[a]..` those from there on.
    ///
    /// # Errors
    /// [`Error::NoOrder`] of a hash table; [`Error::Schema`] for bounds that are no values of these columns;
    /// as of [`Table::scan`].
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::schema::Value;
    /// # use sapwood::{Db, Direction, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:u8, hour:u8, hits:u32, key(day, hour)".parse().expect("a schema");
    /// db.create_ordered_table("hits", OrderedTableOptions::default().schema(schema))?;
    /// let hits = db.rows("hits")?;
    /// for (day, hour) in [(1, 23), (2, 0), (2, 9), (3, 0)] {
    ///     hits.put(&[day.into(), hour.into(), 7.into()])?;
    /// }
    /// let mut hours = Vec::new();
    /// let from = [Value::Int(2), Value::Int(1)];
    /// let _ = hits.scan(&from[..].., Direction::Descending, |row| {
    ///     hours.push(row.get("hour").map(Value::into_owned));
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(hours, [Ok(Value::Int(0)), Ok(Value::Int(9))]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<'v, B>(
        &self,
        range: impl RowRange<'v>,
        direction: Direction,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let range = self.byte_range(&range)?;
        self.table.scan(range, direction, |key, value| visit(self.row(key, value)))
    }

    #[inline]
    fn row<'a>(&'a self, key: &'a [u8], value: &'a [u8]) -> RowRef<'a> {
        // The format is asked for once the row is there, so that it is not older than the row.
        RowRef { format: self.formats.newest(), table: self.table.name(), key, value }
    }

    /// The key of a row, from a value for each column of it, and the number.
    fn key(&self, values: &[Value<'_>]) -> Result<Vec<u8>> {
        let schema = self.schema();
        let wanted = schema.key_columns().len() + usize::from(schema.is_numbered());
        if values.len() != wanted {
            let what = format!("a key has {wanted} values here, and {} are given", values.len());
            return Err(self.refused(Cause::Schema(what)));
        }
        self.key_prefix(values)
    }

    /// What keys begin with that have these values first.
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
