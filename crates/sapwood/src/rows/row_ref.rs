//! A row where it lies.

use crate::row::{self, RowField};
use crate::schema::{Cell, Error as Cause, Projection, RowFormat, Schema, Value};
use crate::{Error, Result};

/// A row of a table, where it lies.
///
/// ```
/// use sapwood::schema::Value;
/// use sapwood::{Db, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
/// db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
/// let planes = db.rows("planes")?;
/// planes.put(&["N14228".into(), 149.into()])?;
/// planes.for_each(|row| {
///     // By name, or by its number, which is found once for many rows.
///     assert_eq!(row.get("seats"), Ok(Value::Int(149)));
///     assert_eq!(row.get(0), Ok("N14228".into()));
/// })?;
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    pub(super) format: &'a RowFormat,
    pub(super) table: &'a str,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// A column of a schema: by its name, or by its number.
///
/// ```
/// use sapwood::ColumnId;
///
/// let schema = "plane:text, seats:u16".parse().expect("a schema");
/// assert_eq!("seats".find_in(&schema), Some(1));
/// assert_eq!(2.find_in(&schema), None);
/// ```
pub trait ColumnId: std::fmt::Display + Copy {
    /// Its number, if the schema has it.
    fn find_in(self, schema: &Schema) -> Option<usize>;
}

impl ColumnId for usize {
    fn find_in(self, schema: &Schema) -> Option<usize> {
        (self < schema.columns().len()).then_some(self)
    }
}

impl ColumnId for &str {
    fn find_in(self, schema: &Schema) -> Option<usize> {
        schema.find(self)
    }
}

impl<'a> RowRef<'a> {
    /// The value of a column, which borrows text and bytes from the row.
    ///
    /// # Errors
    /// [`Error::Schema`] if there is no such column, or the entry is no row.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// # let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let seats = planes.get_with(&["N14228".into()], |row| row.get("seats").map(|it| it.to_string()))?;
    /// assert_eq!(seats.expect("it is there")?, "149");
    /// let unknown = planes.get_with(&["N14228".into()], |row| row.get("wings").map(drop))?;
    /// assert!(unknown.expect("it is there").is_err());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, column: impl ColumnId) -> Result<Value<'a>> {
        let column = find(self.format.schema(), column).map_err(|cause| self.refused(cause))?;
        self.named(self.format.get(column, self.key, self.value))
    }

    /// The value of a column as a Rust type.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get); [`Error::Schema`] for a value that the type cannot have.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// planes.for_each(|row| assert_eq!(row.field::<u16>("seats"), Ok(149)))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn field<T: RowField>(&self, column: impl ColumnId) -> Result<T> {
        let name = column.to_string();
        self.named(row::field(&name, &mut std::iter::once(self.get(column)?)))
    }

    /// A value for each column.
    ///
    /// # Errors
    /// [`Error::Schema`] if the entry is no row.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// # let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let len = planes.get_with(&["N14228".into()], |row| row.values().map(|values| values.len()))?;
    /// assert_eq!(len, Some(Ok(2)));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn values(&self) -> Result<Vec<Value<'a>>> {
        self.named(self.format.decode(self.key, self.value))
    }

    /// Copies of the values of all columns.
    ///
    /// # Errors
    /// The errors of [`values`](Self::values).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// # let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let row = planes.get_with(&["N14228".into()], |row| row.to_values())?.expect("it is there")?;
    /// assert_eq!(row, ["N14228".into(), 149.into()]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn to_values(&self) -> Result<Vec<Value<'static>>> {
        Ok(self.values()?.into_iter().map(Value::into_owned).collect())
    }

    /// Shows some columns, which were chosen once for many rows
    /// ([`RowFormat::project`]): their numbers among the chosen, and their cells.
    ///
    /// # Errors
    /// [`Error::Schema`] if the entry is no row, or has a column more than the projection knows of.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, schema::Cell};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// # let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let seats = planes.format().project(&[1]);
    /// let shown = planes.get_with(&["N14228".into()], |row| {
    ///     row.read(&seats, |_, cell| assert_eq!(cell, Cell::Int(149)))
    /// })?;
    /// assert_eq!(shown, Some(Ok(())));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn read(
        &self,
        projection: &Projection,
        mut show: impl FnMut(usize, Cell<'a>),
    ) -> Result<()> {
        self.named(projection.read(self.key, self.value, &mut show))
    }

    /// The number of the row, if the schema is numbered.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "text:text".parse().expect("a schema");
    /// db.create_ordered_table("lines", OrderedTableOptions::default().schema(schema))?;
    /// let lines = db.rows("lines")?;
    /// lines.put(&["an oak".into()])?;
    /// let number = lines.get_with(&[1.into()], |row| row.number())?;
    /// assert_eq!(number, Some(Some(1)));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn number(&self) -> Option<u64> {
        self.format.number_of(self.key)
    }

    /// The bytes of the key.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, key};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// # let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let bytes = planes.get_with(&["N14228".into()], |row| row.key().to_vec())?;
    /// assert_eq!(bytes, Some(key::encode(&"N14228")));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The bytes of the value.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(schema))?;
    /// # let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// // The version of the schema, then the column that is not in the key.
    /// assert_eq!(planes.get_with(&["N14228".into()], |row| row.value().len())?, Some(3));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    fn named<T>(&self, result: std::result::Result<T, Cause>) -> Result<T> {
        result.map_err(|cause| self.refused(cause))
    }

    #[cold]
    fn refused(&self, cause: Cause) -> Error {
        Error::Schema { table: self.table.into(), cause }
    }
}

/// The number of a column.
pub(super) fn find(schema: &Schema, column: impl ColumnId) -> std::result::Result<usize, Cause> {
    let names = || {
        let names: Vec<&str> = schema.columns().iter().map(|column| &column.name[..]).collect();
        names.join(", ")
    };
    let unknown = || Cause::Schema(format!("there is no column `{column}`, but {}", names()));
    column.find_in(schema).ok_or_else(unknown)
}
