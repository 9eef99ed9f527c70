//! Columns that grow row by row, and find their types by themselves.

use super::batch::{Column, Nulls, RowBatch, Values, expect_within_limits};
use super::names::Names;
use crate::error::{Error, Result};
use crate::value::{Value, canonical};

/// Makes a [`RowBatch`] of one row after another, whose columns need not be known before.
///
/// ```
/// use sapwood::rollup::RowBatchBuilder;
///
/// let mut builder = RowBatchBuilder::new();
/// builder.push("time", "2013-01-01");
/// builder.push("delay", 7);
/// builder.end_row()?;
/// builder.push("time", "2013-01-02");
/// builder.end_row()?;
/// let batch = builder.finish();
/// assert_eq!((batch.rows(), batch.names().collect::<Vec<_>>()), (2, vec!["time", "delay"]));
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct RowBatchBuilder {
    rows: usize,
    columns: Vec<(String, Growing)>,
    names: Names,
    /// Columns of the rows that are made; those behind them came with the row that is being made.
    kept: usize,
    /// Why the row that is being made cannot be.
    refused: Option<Error>,
    /// Where the next column is likely to be: rows mostly have theirs in one order.
    next: usize,
}

/// A column that may lag behind: rows at the end that it has not are null.
#[derive(Debug)]
struct Growing {
    values: Values,
    len: usize,
    /// Of mixed values, how many at the beginning are null.
    nulls: usize,
}

impl RowBatchBuilder {
    /// Without rows and columns.
    pub fn new() -> RowBatchBuilder {
        RowBatchBuilder::default()
    }

    /// Gives the row that is being made a value in a column; the last one of several counts.
    pub fn push<'v>(&mut self, name: &str, value: impl Into<Value<'v>>) {
        let row = self.rows;
        if let Some(column) = self.column(name) {
            column.push(row, value.into());
        }
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
    /// [`Error::Input`] if all rows would have more columns, or values, than a batch
    /// [may have](RowBatch::CELLS_MAX): none of the batch is added.
    pub fn append(&mut self, batch: &RowBatch) -> Result<()> {
        self.cancel_row();
        let is_new = |name: &&str| self.names.find(&self.columns, name).is_none();
        let columns = self.columns.len() + batch.names().filter(is_new).count();
        expect_within_limits(self.rows + batch.rows(), columns)?;
        for (name, column) in batch.columns() {
            let first = self.rows;
            let growing = self.column(name).expect("all are within the limits");
            (0..batch.rows()).for_each(|row| growing.push(first + row, column.value(row)));
        }
        self.rows += batch.rows();
        self.kept = self.columns.len();
        self.next = 0;
        Ok(())
    }

    pub(crate) fn push_text(&mut self, name: &str, value: &str) {
        let row = self.rows;
        if let Some(column) = self.column(name) {
            column.push_text(row, value);
        }
    }

    /// The row has all its values.
    ///
    /// ```
    /// use sapwood::rollup::{RowBatch, RowBatchBuilder};
    ///
    /// let mut builder = RowBatchBuilder::new();
    /// (0..=RowBatch::COLUMNS_MAX).for_each(|number| builder.push(&number.to_string(), 7));
    /// assert!(builder.end_row().is_err());
    /// builder.push("delay", 7);
    /// builder.end_row()?;
    /// assert_eq!(builder.finish().names().collect::<Vec<_>>(), ["delay"]);
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if the rows with this one would have more columns, or values, than a batch
    /// [may have](RowBatch::CELLS_MAX). The row is [cancelled](Self::cancel_row), and others may follow.
    pub fn end_row(&mut self) -> Result<()> {
        let fits = match self.refused.take() {
            Some(error) => Err(error),
            None => expect_within_limits(self.rows + 1, self.columns.len()),
        };
        if fits.is_err() {
            self.cancel_row();
            return fits;
        }
        self.rows += 1;
        self.kept = self.columns.len();
        self.next = 0;
        Ok(())
    }

    /// Forgets the values of the row that is being made, and the columns that it brought.
    pub fn cancel_row(&mut self) {
        self.names.truncate(&self.columns, self.kept);
        self.columns.truncate(self.kept);
        for (_, column) in &mut self.columns {
            column.truncate(self.rows);
        }
        self.refused = None;
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

    /// None if the row cannot be with this column.
    fn column(&mut self, name: &str) -> Option<&mut Growing> {
        let likely = self.next;
        let at = match self.columns.get(likely) {
            Some((known, _)) if known == name => likely,
            _ => match self.names.find(&self.columns, name) {
                Some(at) => at,
                None => self.add(name)?,
            },
        };
        self.next = at + 1;
        Some(&mut self.columns[at].1)
    }

    /// A new column. The nulls of the rows before it take memory as soon as it has a value, so it is refused here.
    #[cold]
    fn add(&mut self, name: &str) -> Option<usize> {
        if self.refused.is_none() {
            self.refused = expect_within_limits(self.rows + 1, self.columns.len() + 1).err();
        }
        if self.refused.is_some() {
            return None;
        }
        let values = Values::Mixed(Vec::new());
        self.columns.push((name.to_owned(), Growing { values, len: 0, nulls: 0 }));
        self.names.added(&self.columns);
        Some(self.columns.len() - 1)
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
            let known: Vec<Value<'static>> = known.collect();
            self.nulls = known.iter().take_while(|value| value.is_null()).count();
            self.values = Values::Mixed(known);
        }
        let Values::Mixed(values) = &mut self.values else { unreachable!("it was made so") };
        values.push(value);
        self.len += 1;
    }

    /// Whether it has nothing but nulls yet.
    fn is_untyped(&self) -> bool {
        matches!(&self.values, Values::Mixed(values) if values.len() == self.nulls)
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
                Values::Mixed(values) => {
                    self.nulls += usize::from(self.nulls == len);
                    values.push(Value::Null);
                }
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
            Values::Mixed(values) => {
                values.truncate(rows);
                self.nulls = self.nulls.min(rows);
            }
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
    fn batches_are_added_whole_or_not_at_all() {
        let column = |batch: &RowBatch, name: &str| {
            let column = batch.find(name).expect(name);
            (0..batch.rows()).map(|row| column.value(row).to_string()).collect::<Vec<_>>().join(" ")
        };
        let batch = RowBatch::new(2)
            .column("a", Column::longs([1, 2]))
            .and_then(|batch| batch.column("b", Column::optional_texts([None, Some("x")])))
            .expect("of one length");
        let mut builder = RowBatchBuilder::new();
        builder.append(&batch).expect("within the limits");
        builder.push("c", 7);
        builder.append(&RowBatch::new(1)).expect("within the limits");
        builder.push("a", "text");
        builder.end_row().expect("within the limits");
        let wide = RowBatch::new(RowBatch::CELLS_MAX);
        builder.append(&wide).expect_err("as many rows of two columns");
        builder.append(&batch).expect("within the limits");
        let all = builder.finish();
        assert_eq!((all.rows(), all.names().collect::<Vec<_>>()), (6, vec!["a", "b"]));
        assert_eq!(column(&all, "a"), "1 2 null text 1 2");
        assert_eq!(column(&all, "b"), "null x null null null x");
    }

    #[test]
    fn columns_find_their_types_and_keep_their_rows() {
        let mut builder = RowBatchBuilder::new();
        builder.push("a", Value::Null);
        builder.push("b", 1);
        builder.push("d", "x");
        builder.push("d", "last");
        builder.end_row().expect("within the limits");
        builder.push("b", 2);
        builder.push("a", "one");
        builder.push("c", Value::Double(0.5));
        builder.push("d", "gone");
        builder.cancel_row();
        builder.push("c", Value::Double(-0.0));
        builder.push("b", Value::List(vec![1.into()]));
        builder.end_row().expect("within the limits");
        builder.end_row().expect("within the limits");
        builder.push("a", "two");
        builder.push("d", "");
        builder.end_row().expect("within the limits");
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

    #[test]
    fn columns_of_a_row_that_was_cancelled_go_with_it() {
        for columns in [1, 15, 16, 17, 40] {
            let mut builder = RowBatchBuilder::new();
            let names: Vec<String> = (0..2 * columns).map(|number| number.to_string()).collect();
            let push = |builder: &mut RowBatchBuilder, names: &[String]| {
                names.iter().for_each(|name| builder.push(name, name.as_str()));
            };
            push(&mut builder, &names[..columns]);
            builder.end_row().expect("within the limits");
            push(&mut builder, &names);
            builder.cancel_row();
            push(&mut builder, &names[columns..]);
            push(&mut builder, &names[1..columns]);
            builder.end_row().expect("within the limits");
            push(&mut builder, &["gone".to_owned()]);
            let batch = builder.finish();
            assert_eq!((batch.rows(), batch.names().count()), (2, 2 * columns));
            for (at, name) in names.iter().enumerate() {
                let column = batch.find(name).expect(name);
                let told = [0, 1].map(|row| column.value(row).to_string());
                let of = |is_there| if is_there { name.as_str() } else { "null" };
                assert_eq!(told, [of(at < columns), of(at > 0)]);
            }
            assert!(batch.find("gone").is_none());
        }
    }

    #[test]
    fn a_row_with_too_many_columns_is_refused_and_others_follow() {
        let mut builder = RowBatchBuilder::new();
        builder.push("a", 1);
        builder.end_row().expect("within the limits");
        for round in 0..2 {
            (0..100_000).for_each(|number| builder.push(&format!("{round} {number}"), number));
            assert!(builder.columns.len() <= RowBatch::COLUMNS_MAX);
            builder.push("a", 2);
            let refused = builder.end_row().expect_err("too many columns");
            assert!(refused.to_string().starts_with("16385 columns, "), "{refused}");
            assert_eq!((builder.rows(), builder.columns.len()), (1, 1));
        }
        // As many as may be.
        (1..RowBatch::COLUMNS_MAX).for_each(|number| builder.push(&number.to_string(), 3));
        builder.end_row().expect("within the limits");
        builder.push("b", 4);
        builder.end_row().expect_err("one more");
        builder.push("a", 5);
        builder.push("7", 5);
        builder.end_row().expect("no new column");
        let batch = builder.finish();
        let column = |name| {
            let column = batch.find(name).expect(name);
            (0..batch.rows()).map(|row| column.value(row).to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((batch.rows(), batch.names().count()), (3, RowBatch::COLUMNS_MAX));
        assert_eq!([column("a"), column("7")], ["1 null 5", "null 3 5"]);
    }

    #[test]
    fn rows_times_columns_have_a_bound() {
        let mut builder = RowBatchBuilder::new();
        let columns = RowBatch::COLUMNS_MAX;
        (0..columns).for_each(|number| builder.push(&number.to_string(), Value::Null));
        builder.end_row().expect("within the limits");
        while builder.rows() < RowBatch::CELLS_MAX / columns {
            builder.end_row().expect("within the limits");
        }
        let refused = builder.end_row().expect_err("too many values");
        assert!(refused.to_string().starts_with("8193 rows of 16384 columns, "), "{refused}");
        assert_eq!(builder.rows(), 8_192);
        // A column that comes late has a null in each row before.
        let mut builder = RowBatchBuilder::new();
        (0..63).for_each(|number| builder.push(&number.to_string(), 1));
        for _ in 0..RowBatch::CELLS_MAX / 64 {
            builder.end_row().expect("within the limits");
        }
        builder.push("late", 1);
        assert_eq!(builder.columns.len(), 63);
        builder.end_row().expect_err("too many values");
        builder.push("7", 2);
        builder.end_row().expect("no new column");
    }

    #[test]
    fn nulls_before_a_list_are_counted_once() {
        let mut builder = RowBatchBuilder::new();
        let rows = 100_000;
        for row in 0..rows {
            if row == rows / 2 {
                builder.push("a", Value::List(vec![1.into()]));
                builder.cancel_row();
                builder.push("a", Value::List(vec![2.into()]));
            } else if row > rows / 2 {
                builder.push("a", row);
            }
            builder.end_row().expect("within the limits");
        }
        let batch = builder.finish();
        let column = batch.find("a").expect("it is there");
        let told = [0, rows / 2, rows - 1].map(|row| column.value(row as usize).to_string());
        assert_eq!(told, ["null", "[2]", "99999"]);
    }
}
