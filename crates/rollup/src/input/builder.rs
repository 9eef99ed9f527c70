//! Columns that grow row by row, and find their types by themselves.

use super::batch::{Column, Nulls, RowBatch, Values};
use crate::error::Result;
use crate::value::{Value, canonical};

/// Makes a [`RowBatch`] of one row after another, whose columns need not be known before.
///
/// ```
/// use sapwood::rollup::RowBatchBuilder;
///
/// let mut builder = RowBatchBuilder::new();
/// builder.push("time", "2013-01-01");
/// builder.push("delay", 7);
/// builder.end_row();
/// builder.push("time", "2013-01-02");
/// builder.end_row();
/// let batch = builder.finish();
/// assert_eq!((batch.rows(), batch.names().collect::<Vec<_>>()), (2, vec!["time", "delay"]));
/// ```
#[derive(Debug, Default)]
pub struct RowBatchBuilder {
    rows: usize,
    columns: Vec<(String, Growing)>,
    /// Where the next column is likely to be: rows mostly have theirs in one order.
    next: usize,
}

/// A column that may lag behind: rows at the end that it has not are null.
#[derive(Debug)]
struct Growing {
    values: Values,
    len: usize,
}

impl RowBatchBuilder {
    /// Without rows and columns.
    pub fn new() -> RowBatchBuilder {
        RowBatchBuilder::default()
    }

    /// Gives the row that is being made a value in a column; the last one of several counts.
    pub fn push<'v>(&mut self, name: &str, value: impl Into<Value<'v>>) {
        let row = self.rows;
        self.column(name).push(row, value.into());
    }

    /// Adds the rows of a batch behind those that are made, and forgets the values of one that is not. A column that
    /// either has not is null there.
    ///
    /// ```
    /// use sapwood::rollup::{Column, RowBatch, RowBatchBuilder};
    ///
    /// let batch = |name: &str| RowBatch::new(2).column(name, Column::longs([7, 9]));
    /// let mut builder = RowBatchBuilder::new();
    /// builder.append(&batch("added")?)?;
    /// builder.append(&batch("deleted")?)?;
    /// let both = builder.finish();
    /// assert_eq!((both.rows(), both.names().collect::<Vec<_>>()), (4, vec!["added", "deleted"]));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// None yet.
    pub fn append(&mut self, batch: &RowBatch) -> Result<()> {
        self.cancel_row();
        for (name, column) in batch.columns() {
            let first = self.rows;
            let growing = self.column(name);
            (0..batch.rows()).for_each(|row| growing.push(first + row, column.value(row)));
        }
        self.rows += batch.rows();
        self.next = 0;
        Ok(())
    }

    pub(crate) fn push_text(&mut self, name: &str, value: &str) {
        let row = self.rows;
        self.column(name).push_text(row, value);
    }

    /// The row has all its values.
    pub fn end_row(&mut self) {
        self.rows += 1;
        self.next = 0;
    }

    /// Forgets the values of the row that is being made.
    pub fn cancel_row(&mut self) {
        for (_, column) in &mut self.columns {
            column.truncate(self.rows);
        }
        self.next = 0;
    }

    /// How many rows are made.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The batch. Values of a row that was not ended are left out.
    pub fn finish(mut self) -> RowBatch {
        self.cancel_row();
        let rows = self.rows;
        let finished = self.columns.into_iter().map(|(name, mut column)| {
            column.fill(rows);
            (name, Column(column.values))
        });
        RowBatch::of_columns(rows, finished.collect())
    }

    fn column(&mut self, name: &str) -> &mut Growing {
        let likely = self.next;
        let at = match self.columns.get(likely) {
            Some((known, _)) if known == name => likely,
            _ => match self.columns.iter().position(|(known, _)| known == name) {
                Some(at) => at,
                None => {
                    let values = Values::Mixed(Vec::new());
                    self.columns.push((name.to_owned(), Growing { values, len: 0 }));
                    self.columns.len() - 1
                }
            },
        };
        self.next = at + 1;
        &mut self.columns[at].1
    }
}

impl Growing {
    /// Makes all rows before `row` null that it has not, and forgets those from `row` on.
    #[inline]
    fn prepare(&mut self, row: usize) {
        if self.len > row {
            self.truncate(row);
        }
        if self.len < row {
            self.fill(row);
        }
    }

    fn push(&mut self, row: usize, value: Value<'_>) {
        match value {
            Value::Null => self.truncate(row),
            Value::Long(value) => self.push_long(row, value),
            Value::Double(value) => self.push_double(row, value),
            Value::Text(value) => self.push_text(row, &value),
            list => self.push_mixed(row, list.into_owned()),
        }
    }

    fn push_long(&mut self, row: usize, value: i64) {
        self.prepare(row);
        if self.is_untyped() {
            self.values = Values::Longs { values: vec![0; self.len], nulls: all_null(self.len) };
        }
        match &mut self.values {
            Values::Longs { values, nulls } => {
                values.push(value);
                extend(nulls);
                self.len += 1;
            }
            _ => self.push_mixed(row, Value::Long(value)),
        }
    }

    fn push_double(&mut self, row: usize, value: f64) {
        self.prepare(row);
        let value = canonical(value);
        if self.is_untyped() {
            self.values =
                Values::Doubles { values: vec![0.0; self.len], nulls: all_null(self.len) };
        }
        match &mut self.values {
            Values::Doubles { values, nulls } => {
                values.push(value);
                extend(nulls);
                self.len += 1;
            }
            _ => self.push_mixed(row, Value::Double(value)),
        }
    }

    #[inline]
    fn push_text(&mut self, row: usize, value: &str) {
        self.prepare(row);
        if self.is_untyped() {
            let (ends, nulls) = (vec![0; self.len], all_null(self.len));
            self.values = Values::Texts { bytes: String::new(), ends, nulls };
        }
        match &mut self.values {
            Values::Texts { bytes, ends, nulls } => {
                bytes.push_str(value);
                ends.push(bytes.len());
                extend(nulls);
                self.len += 1;
            }
            _ => self.push_mixed(row, Value::Text(value.to_owned().into())),
        }
    }

    fn push_mixed(&mut self, row: usize, value: Value<'static>) {
        self.prepare(row);
        if !matches!(self.values, Values::Mixed(_)) {
            let known = Column(std::mem::replace(&mut self.values, Values::Mixed(Vec::new())));
            let known = (0..self.len).map(|row| known.value(row).into_owned());
            self.values = Values::Mixed(known.collect());
        }
        let Values::Mixed(values) = &mut self.values else { unreachable!("it was made so") };
        values.push(value);
        self.len += 1;
    }

    /// Whether it has nothing but nulls yet.
    fn is_untyped(&self) -> bool {
        matches!(&self.values, Values::Mixed(values) if values.iter().all(Value::is_null))
    }

    fn fill(&mut self, rows: usize) {
        while self.len < rows {
            let len = self.len;
            match &mut self.values {
                Values::Longs { values, nulls } => {
                    values.push(0);
                    push_null(nulls, len);
                }
                Values::Doubles { values, nulls } => {
                    values.push(0.0);
                    push_null(nulls, len);
                }
                Values::Texts { bytes, ends, nulls } => {
                    ends.push(bytes.len());
                    push_null(nulls, len);
                }
                Values::Mixed(values) => values.push(Value::Null),
            }
            self.len += 1;
        }
    }

    fn truncate(&mut self, rows: usize) {
        if self.len <= rows {
            return;
        }
        self.len = rows;
        let cut = |nulls: &mut Nulls| {
            if let Some(nulls) = nulls {
                nulls.truncate(rows);
            }
        };
        match &mut self.values {
            Values::Longs { values, nulls } => {
                values.truncate(rows);
                cut(nulls);
            }
            Values::Doubles { values, nulls } => {
                values.truncate(rows);
                cut(nulls);
            }
            Values::Texts { bytes, ends, nulls } => {
                bytes.truncate(if rows == 0 { 0 } else { ends[rows - 1] });
                ends.truncate(rows);
                cut(nulls);
            }
            Values::Mixed(values) => values.truncate(rows),
        }
    }
}

fn all_null(rows: usize) -> Nulls {
    (rows > 0).then(|| vec![true; rows])
}

#[inline]
fn extend(nulls: &mut Nulls) {
    if let Some(nulls) = nulls {
        nulls.push(false);
    }
}

fn push_null(nulls: &mut Nulls, len: usize) {
    nulls.get_or_insert_with(|| vec![false; len]).push(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_find_their_types_and_keep_their_rows() {
        let mut builder = RowBatchBuilder::new();
        builder.push("a", Value::Null);
        builder.push("b", 1);
        builder.push("d", "x");
        builder.push("d", "last");
        builder.end_row();
        builder.push("b", 2);
        builder.push("a", "one");
        builder.push("c", Value::Double(0.5));
        builder.push("d", "gone");
        builder.cancel_row();
        builder.push("c", Value::Double(-0.0));
        builder.push("b", Value::List(vec![1.into()]));
        builder.end_row();
        builder.end_row();
        builder.push("a", "two");
        builder.push("d", "");
        builder.end_row();
        builder.push("a", "unfinished");
        let batch = builder.finish();
        let column = |name: &str| {
            let column = batch.find(name).expect(name);
            (0..batch.rows()).map(|row| column.value(row).to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(column("a"), "null null null two");
        assert_eq!(column("b"), "1 [1] null null");
        assert_eq!(column("c"), "null 0.0 null null");
        assert_eq!(column("d"), "last null null ");
        assert!(matches!(batch.find("a"), Some(Column(Values::Texts { .. }))));
        assert!(matches!(batch.find("b"), Some(Column(Values::Mixed(_)))));
        assert!(matches!(batch.find("c"), Some(Column(Values::Doubles { .. }))));
    }
}
