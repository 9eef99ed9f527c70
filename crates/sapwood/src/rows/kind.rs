//! Types of rows: structs, and values.

use std::borrow::Cow;

use crate::row::Row;
use crate::schema::{Column, Error as Cause, Schema, Value};

/// Rows as values in the order of the schema: `Rows` without a type is `Rows<Values>`.
#[derive(Debug, Clone, Copy)]
pub enum Values {}

/// A type of rows that [`Rows`](crate::Rows) reads and changes: [`Values`], and every [`Row`].
pub trait RowKind {
    /// A row of its own.
    type Row;

    /// A key: values for [`Values`]; the fields of the key for a [`Row`].
    type Key<'k>;

    /// The values of a key.
    fn key_values<'k>(key: Self::Key<'k>) -> Cow<'k, [Value<'k>]>;

    /// The values of a row.
    fn to_values(row: &Self::Row) -> Cow<'_, [Value<'_>]>;

    /// A row of the values.
    ///
    /// # Errors
    /// [`Error::Schema`](Cause::Schema) and [`Error::Value`](Cause::Value) for values that a field cannot have.
    fn from_values(values: Vec<Value<'_>>) -> Result<Self::Row, Cause>;
}

impl RowKind for Values {
    type Row = Vec<Value<'static>>;
    type Key<'k> = &'k [Value<'k>];

    fn key_values<'k>(key: Self::Key<'k>) -> Cow<'k, [Value<'k>]> {
        Cow::Borrowed(key)
    }

    fn to_values(row: &Self::Row) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(row)
    }

    fn from_values(values: Vec<Value<'_>>) -> Result<Vec<Value<'static>>, Cause> {
        Ok(values.into_iter().map(Value::into_owned).collect())
    }
}

impl<R: Row> RowKind for R {
    type Row = R;
    type Key<'k> = R::Key<'k>;

    fn key_values<'k>(key: Self::Key<'k>) -> Cow<'k, [Value<'k>]> {
        Cow::Owned(R::key_values(key))
    }

    fn to_values(row: &R) -> Cow<'_, [Value<'_>]> {
        Cow::Owned(row.to_values())
    }

    fn from_values(values: Vec<Value<'_>>) -> Result<R, Cause> {
        R::from_values(values)
    }
}

/// A row that is put: a struct, or a slice, an array or a vector of values.
pub trait AsRow<R> {
    /// The values of the row.
    fn row_values(&self) -> Cow<'_, [Value<'_>]>;
}

impl<R: Row> AsRow<R> for R {
    fn row_values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Owned(self.to_values())
    }
}

impl AsRow<Values> for [Value<'_>] {
    fn row_values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(self)
    }
}

impl AsRow<Values> for &[Value<'_>] {
    fn row_values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(self)
    }
}

impl<const N: usize> AsRow<Values> for [Value<'_>; N] {
    fn row_values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(self)
    }
}

impl AsRow<Values> for Vec<Value<'_>> {
    fn row_values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(self)
    }
}

/// The column of each field.
pub(super) fn columns_of(
    fields: &Schema,
    table: &Schema,
) -> std::result::Result<Vec<usize>, Cause> {
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
