//! Rows as structs.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use super::{RowRange, RowRef, Rows};
use crate::row::Row;
use crate::schema::{Column, Error as Cause, Schema, Value};
use crate::{Direction, Result};

#[cfg(doc)]
use crate::Error;

/// The rows of a table as structs of one type.
///
/// The fields of the struct are columns of the table, by name and type, and have the same key. A table may have
/// nullable columns that the struct does not know: it reads past them, and what it puts has no value
/// there. Made by [`Rows::typed`].
///
/// # Consistency
///
/// That of [`Rows`].
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
/// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
/// assert_eq!(planes.get(&["N14228".into()])?.expect("it was put").seats, 149);
/// # Ok::<(), sapwood::Error>(())
/// ```
pub struct TypedRows<R> {
    rows: Rows,
    /// The column of each field.
    columns: Vec<usize>,
    /// No struct is kept here: threads may share the view of any.
    row: PhantomData<fn() -> R>,
}

impl<R> Clone for TypedRows<R> {
    fn clone(&self) -> Self {
        TypedRows { rows: self.rows.clone(), columns: self.columns.clone(), row: PhantomData }
    }
}

impl<R> std::fmt::Debug for TypedRows<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedRows").field("rows", &self.rows).finish()
    }
}

impl Rows {
    /// The rows as structs.
    ///
    /// # Errors
    /// [`Error::Schema`] if the struct has a field that is no such column, lacks a column that every row has a value
    /// for, or has another key.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// use sapwood::row::Row;
    ///
    /// #[derive(Row)]
    /// struct Plane {
    ///     #[row(key)]
    ///     tail: String,
    ///     seats: u16,
    /// }
    /// # let db = Db::in_memory();
    /// let schema = "tail:text, seats:u32, key(tail)".parse().expect("a schema");
    /// db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let refused = db.rows("planes")?.typed::<Plane>().unwrap_err();
    /// assert!(refused.to_string().contains("`seats` is `u32` here, and `u16` in the struct"));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn typed<R: Row>(&self) -> Result<TypedRows<R>> {
        let columns = self.named(columns_of(&R::schema(), self.schema()))?;
        Ok(TypedRows { rows: self.clone(), columns, row: PhantomData })
    }
}

impl<R: Row> TypedRows<R> {
    /// The rows as values.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// assert!(planes.rows().remove(&["N14228".into()])?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Puts a row, as [`Rows::put`].
    ///
    /// # Errors
    /// As of [`Rows::put`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// assert_eq!(planes.rows().table().len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(&self, row: &R) -> Result<Option<u64>> {
        self.rows.put(&self.values(row))
    }

    /// Puts a row unless there is one with its key, as [`Rows::insert`].
    ///
    /// # Errors
    /// As of [`Rows::insert`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// assert!(planes.insert(&Plane { tail: "N14228".to_owned(), seats: 149 })?);
    /// assert!(!planes.insert(&Plane { tail: "N14228".to_owned(), seats: 150 })?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn insert(&self, row: &R) -> Result<bool> {
        self.rows.insert(&self.values(row))
    }

    /// Puts rows, as [`Rows::put_many`].
    ///
    /// # Errors
    /// As of [`Rows::put_many`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// let plane = |tail: &str| Plane { tail: tail.to_owned(), seats: 149 };
    /// planes.put_many(&[plane("N14228"), plane("N24211")])?;
    /// assert_eq!(planes.rows().table().len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many(&self, rows: &[R]) -> Result<()> {
        let rows: Vec<_> = rows.iter().map(|row| self.values(row)).collect();
        self.rows.put_many(&rows)
    }

    /// The row of a key, which is a value for each column of it; `None` if there is none.
    ///
    /// # Errors
    /// As of [`Rows::get`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// assert_eq!(planes.get(&["N14228".into()])?.map(|plane| plane.seats), Some(149));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: &[Value<'_>]) -> Result<Option<R>> {
        self.rows.get_with(key, |row| self.read(row))?.transpose()
    }

    /// Visits every row, as [`Rows::for_each`].
    ///
    /// # Errors
    /// As of [`Rows::for_each`]; [`Error::Schema`] at the first entry that is no row.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// let mut seats = 0;
    /// let _ = planes.for_each(|plane| {
    ///     seats += plane.seats;
    ///     std::ops::ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(seats, 149);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each<B>(
        &self,
        mut visit: impl FnMut(R) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        flow(self.rows.for_each(|row| visited(self.read(row), &mut visit))?)
    }

    /// Visits the rows in a range, as [`Rows::scan`].
    ///
    /// # Errors
    /// As of [`Rows::scan`]; [`Error::Schema`] at the first entry that is no row.
    ///
    /// ```
    /// # use sapwood::{Db, Direction, OrderedTableOptions, row::Row};
    /// # #[derive(Row, Debug, PartialEq)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("planes", OrderedTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// let plane = |tail: &str| Plane { tail: tail.to_owned(), seats: 149 };
    /// planes.put_many(&[plane("N14228"), plane("N24211")])?;
    /// let last = planes.scan(.., Direction::Descending, std::ops::ControlFlow::Break)?;
    /// assert_eq!(last, std::ops::ControlFlow::Break(plane("N24211")));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<'v, B>(
        &self,
        range: impl RowRange<'v>,
        direction: Direction,
        mut visit: impl FnMut(R) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let visit = |row: RowRef<'_>| visited(self.read(row), &mut visit);
        flow(self.rows.scan(range, direction, visit)?)
    }

    /// A value for each column of the table.
    pub(super) fn values<'a>(&self, row: &'a R) -> Vec<Value<'a>> {
        let mut values = vec![Value::Null; self.rows.schema().columns().len()];
        for (&column, value) in self.columns.iter().zip(row.to_values()) {
            values[column] = value;
        }
        values
    }

    fn read(&self, row: RowRef<'_>) -> Result<R> {
        self.of_values(row.values()?)
    }

    /// A struct of the values of a row.
    pub(super) fn of_values(&self, mut values: Vec<Value<'_>>) -> Result<R> {
        let of_fields =
            self.columns.iter().map(|&column| std::mem::replace(&mut values[column], Value::Null));
        self.rows.named(R::from_values(of_fields.collect::<Vec<_>>()))
    }

    /// Puts the fields of a struct into the values of a row.
    pub(super) fn write(&self, row: &R, values: &mut [Value<'static>]) {
        for (&column, value) in self.columns.iter().zip(row.to_values()) {
            values[column] = value.into_owned();
        }
    }
}

fn visited<R, B>(
    row: Result<R>,
    visit: &mut impl FnMut(R) -> ControlFlow<B>,
) -> ControlFlow<Result<B>> {
    match row {
        Ok(row) => visit(row).map_break(Ok),
        Err(error) => ControlFlow::Break(Err(error)),
    }
}

fn flow<B>(flow: ControlFlow<Result<B>>) -> Result<ControlFlow<B>> {
    match flow {
        ControlFlow::Continue(()) => Ok(ControlFlow::Continue(())),
        ControlFlow::Break(result) => result.map(ControlFlow::Break),
    }
}

/// The column of each field.
fn columns_of(fields: &Schema, table: &Schema) -> std::result::Result<Vec<usize>, Cause> {
    let shown =
        |column: &Column| format!("{}{}", column.kind, if column.nullable { "?" } else { "" });
    let mut columns = Vec::with_capacity(fields.columns().len());
    for field in fields.columns() {
        let name = &field.name;
        let unknown = || Cause::Schema(format!("it has no column `{name}`, as the struct has"));
        let column = table.find(name).ok_or_else(unknown)?;
        let there = &table.columns()[column];
        if (&there.kind, there.nullable) != (&field.kind, field.nullable) {
            return Err(Cause::Schema(format!(
                "`{name}` is `{}` here, and `{}` in the struct",
                shown(there),
                shown(field)
            )));
        }
        columns.push(column);
    }
    let needed = table
        .columns()
        .iter()
        .enumerate()
        .find(|(column, described)| !described.nullable && !columns.contains(column));
    if let Some((_, Column { name, .. })) = needed {
        return Err(Cause::Schema(format!("every row has a `{name}`, and the struct has none")));
    }
    fn key(schema: &Schema) -> (Vec<&str>, bool) {
        let names = schema.key_columns().iter().map(|&at| &schema.columns()[at].name[..]);
        (names.collect(), schema.is_numbered())
    }
    match key(fields) == key(table) {
        true => Ok(columns),
        false => Err(Cause::Schema(format!(
            "its key is another than that of the struct, which has the schema `{fields}`"
        ))),
    }
}
