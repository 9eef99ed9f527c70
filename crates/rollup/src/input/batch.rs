//! Batches of rows, as columns.

use crate::error::{Error, Result};
use crate::value::Value;

/// Rows as columns. Columns are named, in any order, and all have one value a row.
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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowBatch {
    rows: usize,
    columns: Vec<(String, Column)>,
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

impl RowBatch {
    /// So many rows, without columns yet.
    pub fn new(rows: usize) -> RowBatch {
        RowBatch { rows, columns: Vec::new() }
    }

    /// With one more column.
    ///
    /// # Errors
    /// [`Error::Input`] if it has not one value a row, or if its name is taken.
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
        self.columns.push((name, column));
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
        self.columns.iter().find(|(known, _)| known == name).map(|(_, column)| column)
    }

    pub(crate) fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    pub(crate) fn of_columns(rows: usize, columns: Vec<(String, Column)>) -> RowBatch {
        RowBatch { rows, columns }
    }
}
