//! Batches of rows, as columns.

use super::names::Names;
use crate::error::{Error, Result};
use crate::value::Value;

/// Rows as columns. Columns are named, in any order, and all have one value a row. A batch has up to
/// [`COLUMNS_MAX`](Self::COLUMNS_MAX) columns and [`CELLS_MAX`](Self::CELLS_MAX) values, nulls among them.
///
/// ```
/// use sapwood::rollup::{Column, RowBatch};
///
/// let batch = RowBatch::new(2)
///     .column("time", Column::longs([0, 60_000]))?
///     .column("page", Column::texts(["Oak", "Elm"]))?
///     .column("added", Column::optional_longs([Some(7), None]))?;
/// assert_eq!(batch.rows(), 2);
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RowBatch {
    rows: usize,
    columns: Vec<(String, Column)>,
    names: Names,
}

impl PartialEq for RowBatch {
    fn eq(&self, other: &RowBatch) -> bool {
        self.rows == other.rows && self.columns == other.columns
    }
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column(pub(crate) Values);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Longs {
        values: Vec<i64>,
        nulls: Nulls,
    },
    Doubles {
        values: Vec<f64>,
        nulls: Nulls,
    },
    Texts {
        bytes: String,
        ends: Vec<usize>,
        nulls: Nulls,
    },
    /// Of several types, or lists.
    Mixed(Vec<Value<'static>>),
}

/// Which values are null; none without a list.
pub(crate) type Nulls = Option<Vec<bool>>;

#[inline]
pub(crate) fn is_null(nulls: &Nulls, row: usize) -> bool {
    nulls.as_ref().is_some_and(|nulls| nulls[row])
}

impl Column {
    /// Whole numbers.
    pub fn longs(values: impl IntoIterator<Item = i64>) -> Column {
        Column(Values::Longs { values: values.into_iter().collect(), nulls: None })
    }

    /// Whole numbers, some of them null.
    pub fn optional_longs(values: impl IntoIterator<Item = Option<i64>>) -> Column {
        let (values, nulls) = optional(values);
        Column(Values::Longs { values, nulls })
    }

    /// Floating point numbers. What is not finite is null when it is read.
    pub fn doubles(values: impl IntoIterator<Item = f64>) -> Column {
        Column(Values::Doubles { values: values.into_iter().collect(), nulls: None })
    }

    /// Floating point numbers, some of them null.
    pub fn optional_doubles(values: impl IntoIterator<Item = Option<f64>>) -> Column {
        let (values, nulls) = optional(values);
        Column(Values::Doubles { values, nulls })
    }

    /// Texts.
    pub fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Column {
        Column::optional_texts(values.into_iter().map(Some))
    }

    /// Texts, some of them null.
    pub fn optional_texts<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> Column {
        let (mut bytes, mut ends, mut nulls) = (String::new(), Vec::new(), Vec::new());
        for value in values {
            bytes.push_str(value.as_ref().map_or("", AsRef::as_ref));
            ends.push(bytes.len());
            nulls.push(value.is_none());
        }
        Column(Values::Texts { bytes, ends, nulls: some_null(nulls) })
    }

    /// Values of any types, and lists of them.
    pub fn values(values: impl IntoIterator<Item = Value<'static>>) -> Column {
        Column(Values::Mixed(values.into_iter().collect()))
    }

    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Values::Longs { values, .. } => values.len(),
            Values::Doubles { values, .. } => values.len(),
            Values::Texts { ends, .. } => ends.len(),
            Values::Mixed(values) => values.len(),
        }
    }

    /// A value.
    pub(crate) fn value(&self, row: usize) -> Value<'_> {
        match &self.0 {
            Values::Longs { nulls, .. }
            | Values::Doubles { nulls, .. }
            | Values::Texts { nulls, .. }
                if is_null(nulls, row) =>
            {
                Value::Null
            }
            Values::Longs { values, .. } => Value::Long(values[row]),
            Values::Doubles { values, .. } if values[row].is_finite() => Value::Double(values[row]),
            Values::Doubles { .. } => Value::Null,
            Values::Texts { bytes, ends, .. } => Value::text(text(bytes, ends, row)),
            Values::Mixed(values) => values[row].borrowed(),
        }
    }
}

/// The text of a row.
#[inline]
pub(crate) fn text<'c>(bytes: &'c str, ends: &[usize], row: usize) -> &'c str {
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &bytes[start..ends[row]]
}

fn optional<T: Default>(values: impl IntoIterator<Item = Option<T>>) -> (Vec<T>, Nulls) {
    let (mut known, mut nulls) = (Vec::new(), Vec::new());
    for value in values {
        nulls.push(value.is_none());
        known.push(value.unwrap_or_default());
    }
    (known, some_null(nulls))
}

fn some_null(nulls: Vec<bool>) -> Nulls {
    nulls.contains(&true).then_some(nulls)
}

/// Refuses what is more than a batch may have.
pub(super) fn expect_within_limits(rows: usize, columns: usize) -> Result<()> {
    if columns > RowBatch::COLUMNS_MAX {
        return Err(Error::Input(format!(
            "{columns} columns, and a batch has {} at most: bring rows of other columns in other batches",
            RowBatch::COLUMNS_MAX
        )));
    }
    match rows.checked_mul(columns) {
        Some(cells) if cells <= RowBatch::CELLS_MAX => Ok(()),
        _ => Err(Error::Input(format!(
            "{rows} rows of {columns} columns, and a batch has {} values at most: bring fewer rows at a time",
            RowBatch::CELLS_MAX
        ))),
    }
}

impl RowBatch {
    /// Most columns of a batch.
    pub const COLUMNS_MAX: usize = 16_384;

    /// Most values of a batch, rows times columns. Where a row lacks a column its null counts, too: rows of
    /// a few bytes each could take all memory if each brought a column of its own.
    pub const CELLS_MAX: usize = 1 << 27;

    /// So many rows, without columns yet.
    pub fn new(rows: usize) -> RowBatch {
        RowBatch { rows, ..RowBatch::default() }
    }

    /// With one more column.
    ///
    /// # Errors
    /// [`Error::Input`] if it has not one value a row, if its name is taken, or beyond the limits of a batch.
    pub fn column(mut self, name: impl Into<String>, column: Column) -> Result<RowBatch> {
        let name = name.into();
        if column.len() != self.rows {
            let (len, rows) = (column.len(), self.rows);
            return Err(Error::Input(format!(
                "`{name}` has {len} values, and there are {rows} rows"
            )));
        }
        if self.find(&name).is_some() {
            return Err(Error::Input(format!("there are two columns `{name}`")));
        }
        expect_within_limits(self.rows, self.columns.len() + 1)?;
        self.columns.push((name, column));
        self.names.added(&self.columns);
        Ok(self)
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Column> {
        self.names.find(&self.columns, name).map(|at| &self.columns[at].1)
    }

    pub(crate) fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// Of columns with different names.
    pub(crate) fn of_columns(rows: usize, columns: Vec<(String, Column)>) -> RowBatch {
        RowBatch { rows, names: Names::of(&columns), columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_among_any_number() {
        let mut batch = RowBatch::new(1);
        for number in 0..RowBatch::COLUMNS_MAX as i64 {
            let name = number.to_string();
            assert!(batch.find(&name).is_none());
            batch = batch.column(name, Column::longs([number])).expect("within the limits");
        }
        for number in 0..RowBatch::COLUMNS_MAX as i64 {
            let column = batch.find(&number.to_string()).expect("it is there");
            assert_eq!(column.value(0), Value::Long(number));
        }
        assert_eq!(batch.clone(), RowBatch::of_columns(1, batch.columns().to_vec()));
        let twice = batch.clone().column("7", Column::longs([0]));
        assert_eq!(twice, Err(Error::Input("there are two columns `7`".to_owned())));
        let refused = batch.column("more", Column::longs([0])).expect_err("too many");
        assert!(refused.to_string().starts_with("16385 columns, "), "{refused}");
    }

    #[test]
    fn cells_have_a_bound() {
        let within = RowBatch::CELLS_MAX / 4;
        assert_eq!(expect_within_limits(within, 4), Ok(()));
        assert_eq!(expect_within_limits(usize::MAX, 0), Ok(()));
        for (rows, columns) in [(within, 5), (within + 1, 4), (usize::MAX, 2)] {
            assert!(matches!(expect_within_limits(rows, columns), Err(Error::Input(_))));
        }
    }
}
