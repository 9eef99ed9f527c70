//! The rows of a batch as the schema sees them: with transforms, times, and those that count.

use std::cell::RefCell;

use crate::input::batch::{Column, RowBatch, Values, is_null};
use crate::report::Ingested;
use crate::rollup::Rollup;
use crate::schema::TIME_COLUMN;
use crate::value::{NoNumber, Value};

/// The rows of a batch.
pub(super) struct Rows<'b> {
    batch: &'b RowBatch,
    /// What transforms made; they hide columns of the batch. Later ones hide earlier ones.
    made: Vec<(&'b str, Column)>,
    /// In milliseconds; of rows that count.
    times: Vec<i64>,
    /// Those that count.
    kept: Vec<u32>,
    /// Rows with a value that could not be read, if there is any.
    errors: RefCell<Vec<bool>>,
}

impl<'b> Rows<'b> {
    pub(super) fn new(
        rollup: &'b Rollup,
        batch: &'b RowBatch,
        now: i64,
        told: &mut Ingested,
    ) -> Rows<'b> {
        let count = batch.rows();
        let mut rows = Rows {
            batch,
            made: Vec::new(),
            times: vec![0; count],
            kept: (0..count as u32).collect(),
            errors: RefCell::default(),
        };
        rows.read_times(rollup, told);
        rows.transform(rollup, told);
        rows.filter(rollup, now, told);
        rows
    }

    /// Those that count.
    pub(super) fn kept(&self) -> &[u32] {
        &self.kept
    }

    pub(super) fn time(&self, row: usize) -> i64 {
        self.times[row]
    }

    pub(super) fn find(&self, name: &str) -> Option<&Column> {
        let made = self.made.iter().rev().find(|(known, _)| *known == name);
        made.map(|(_, column)| column).or_else(|| self.batch.find(name))
    }

    /// All columns, those hidden by transforms left out.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        let is_made = |name: &str| self.made.iter().any(|(known, _)| *known == name);
        let own = self.batch.columns().iter().map(|(name, column)| (name.as_str(), column));
        let made = self.made.iter().map(|(name, column)| (*name, column));
        own.filter(move |(name, _)| !is_made(name)).chain(made)
    }

    /// A value of a row, by the name of its column.
    pub(super) fn value(&self, name: &str, row: usize) -> Value<'_> {
        if name == TIME_COLUMN {
            return Value::Long(self.times[row]);
        }
        self.find(name).map_or(Value::Null, |column| column.value(row))
    }

    /// Counts a row as one with an error, once.
    pub(super) fn error(
        &self,
        row: usize,
        column: &str,
        told: &mut Ingested,
        why: impl FnOnce() -> String,
    ) {
        let mut errors = self.errors.borrow_mut();
        errors.resize(self.batch.rows(), false);
        if !std::mem::replace(&mut errors[row], true) {
            told.processed_with_error += 1;
        }
        told.sample(row, column, why);
    }

    /// Whether a row was counted as one with an error.
    pub(super) fn has_error(&self, row: usize) -> bool {
        self.errors.borrow().get(row).is_some_and(|error| *error)
    }

    fn read_times(&mut self, rollup: &Rollup, told: &mut Ingested) {
        let spec = &rollup.schema().timestamp;
        let column = self.batch.find(&spec.column);
        let times = &mut self.times;
        if let Some(Column(Values::Longs { values, nulls: None })) = column
            && values
                .iter()
                .zip(&mut *times)
                .all(|(value, time)| spec.format.read_long(*value).map(|read| *time = read).is_ok())
        {
            return;
        }
        self.kept.retain(|&row| {
            let row = row as usize;
            let value = column.map_or(Value::Null, |column| column.value(row));
            let is_missing =
                value.is_null() || matches!(&value, Value::Text(text) if text.is_empty());
            let read = match spec.missing {
                Some(missing) if is_missing => Ok(missing),
                _ => spec.format.read(&value),
            };
            match read {
                Ok(time) => {
                    times[row] = time;
                    true
                }
                Err(error) => {
                    told.unparseable += 1;
                    told.sample(row, &spec.column, || error.to_string());
                    false
                }
            }
        });
    }

    fn transform(&mut self, rollup: &'b Rollup, told: &mut Ingested) {
        for transform in &rollup.schema().transforms {
            let mut values = vec![Value::Null; self.batch.rows()];
            for at in 0..self.kept.len() {
                let row = self.kept[at] as usize;
                let evaluated = transform.expression.evaluate(&|name| self.value(name, row));
                match evaluated.map(Value::into_owned) {
                    Ok(value) => values[row] = value,
                    Err(why) => self.error(row, &transform.name, told, || why),
                }
            }
            if transform.name == TIME_COLUMN {
                self.retime(&values, told);
            } else {
                self.made.push((&transform.name, Column::values(values)));
            }
        }
    }

    /// Takes times that a transform made.
    fn retime(&mut self, values: &[Value<'static>], told: &mut Ingested) {
        let (times, errors) = (&mut self.times, self.errors.borrow());
        self.kept.retain(|&row| {
            let row = row as usize;
            match crate::TimestampFormat::Millis.read(&values[row]) {
                Ok(time) => {
                    times[row] = time;
                    true
                }
                Err(error) => {
                    if errors.get(row).is_some_and(|error| *error) {
                        told.processed_with_error -= 1;
                    }
                    told.unparseable += 1;
                    told.sample(row, TIME_COLUMN, || error.to_string());
                    false
                }
            }
        });
    }

    /// Leaves out what the filter and the windows of time do.
    fn filter(&mut self, rollup: &Rollup, now: i64, told: &mut Ingested) {
        let limits = &rollup.schema().limits;
        let mut kept = std::mem::take(&mut self.kept);
        let before = kept.len();
        let late_max = limits.late_max.into_iter().chain(limits.retention).min();
        if late_max.is_some() || limits.early_max.is_some() {
            let from = late_max.map_or(i64::MIN, |late| now.saturating_sub(late));
            let to = limits.early_max.map_or(i64::MAX, |early| now.saturating_add(early));
            kept.retain(|&row| (from..=to).contains(&self.times[row as usize]));
        }
        if let Some(filter) = rollup.filter() {
            kept.retain(|&row| filter.matches(&|name| self.value(name, row as usize)));
        }
        told.thrown_away += (before - kept.len()) as u64;
        let errors = self.errors.borrow();
        if !errors.is_empty() && kept.len() < before {
            let wrong = kept.iter().filter(|&&row| errors[row as usize]).count();
            told.processed_with_error = wrong as u64;
        }
        drop(errors);
        self.kept = kept;
    }

    /// A column as numbers of one type. What is none is null, and an error of its row.
    pub(super) fn numbers<T: Copy>(
        &self,
        name: &str,
        column: &Column,
        read: fn(&Value<'_>) -> Result<Option<T>, NoNumber>,
        told: &mut Ingested,
    ) -> Vec<Option<T>> {
        let mut numbers = vec![None; column.len()];
        for &row in &self.kept {
            let row = row as usize;
            let value = column.value(row);
            match read(&value) {
                Ok(number) => numbers[row] = number,
                Err(NoNumber) => {
                    self.error(row, name, told, || format!("`{value}` is no number of its type"));
                }
            }
            let is_not_finite = value.is_null()
                && matches!(&column.0, Values::Doubles { nulls, .. } if !is_null(nulls, row));
            if is_not_finite {
                self.error(row, name, told, || "the number is not finite".to_owned());
            }
        }
        numbers
    }
}
