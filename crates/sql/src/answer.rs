//! Answers: rows with typed columns.

use sapwood_schema::{BATCH_ROWS, Batch, Scan, Sink, SourceColumn, Type, Value, Vector};

use crate::error::{Error, Result};
use crate::source::{Request, Source, SourceResult};

/// The rows that a statement answers.
#[derive(Debug, Clone)]
pub struct Answer {
    columns: Vec<SourceColumn>,
    rows: usize,
    vectors: Vec<Vector>,
}

impl Answer {
    pub(crate) fn new(columns: Vec<(String, Type)>, rows: usize, vectors: Vec<Vector>) -> Answer {
        let column = |(name, kind): (String, Type)| SourceColumn { name, kind, nullable: true };
        Answer { columns: columns.into_iter().map(column).collect(), rows, vectors }
    }

    /// Of rows of values.
    pub(crate) fn of_values(columns: &[(&str, Type)], rows: &[Vec<Value<'_>>]) -> Answer {
        let vectors = columns.iter().enumerate().map(|(at, (_, kind))| {
            let mut vector = Vector::of_type(kind);
            rows.iter().for_each(|row| vector.push_value(&row[at]));
            vector
        });
        let vectors = vectors.collect();
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone()));
        Answer::new(columns.collect(), rows.len(), vectors)
    }

    /// The columns: their names and types. Two may share a name.
    pub fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    /// The number of the column with a name.
    ///
    /// # Errors
    /// The names of the columns, if there is no such.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.columns.iter().position(|column| column.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|column| &column.name[..]).collect();
            Error::meaning(format!("the answer has no column `{name}`, but {}", names.join(", ")))
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The values of a column.
    pub fn vector(&self, column: usize) -> &Vector {
        &self.vectors[column]
    }

    /// A value; one of a column of `f32` is a double with [the digits that it shows](Value::shown_as).
    ///
    /// # Errors
    /// [`Error`] for a text that is not UTF-8.
    ///
    /// # Panics
    /// If there are fewer rows or columns.
    pub fn value(&self, row: usize, column: usize) -> Result<Value<'_>> {
        Ok(self.stored(row, column)?.shown_as(&self.columns[column].kind))
    }

    /// A value with all its digits.
    pub(crate) fn stored(&self, row: usize, column: usize) -> Result<Value<'_>> {
        let value = self.vectors[column].value(row, &self.columns[column].kind);
        value.map_err(|error| Error::value(format!("row {}: {error}", row + 1)))
    }

    /// The values of a row.
    ///
    /// # Errors
    /// As of [`value`](Self::value).
    pub fn row(&self, row: usize) -> Result<Vec<Value<'_>>> {
        (0..self.columns.len()).map(|column| self.value(row, column)).collect()
    }
}

/// An answer can be asked again.
impl Source for Answer {
    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn rows_estimate(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn explain(&self, _: &Request) -> String {
        "every row of an answer".to_owned()
    }

    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        Ok(Box::new(AnswerScan {
            answer: self,
            columns: request.columns.clone(),
            next: std::sync::atomic::AtomicUsize::new(0),
        }))
    }
}

struct AnswerScan<'a> {
    answer: &'a Answer,
    columns: Vec<usize>,
    next: std::sync::atomic::AtomicUsize,
}

impl Scan for AnswerScan<'_> {
    fn work(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
        loop {
            let begin = self.next.fetch_add(BATCH_ROWS, std::sync::atomic::Ordering::Relaxed);
            if begin >= self.answer.rows {
                return Ok(());
            }
            let end = self.answer.rows.min(begin + BATCH_ROWS);
            let rows: Vec<u32> = (begin as u32..end as u32).collect();
            let columns = self.columns.iter().map(|&at| self.answer.vectors[at].take(&rows));
            let batch = Batch { len: rows.len(), columns: columns.collect(), ids: None };
            if sink(begin as u64, &batch).is_break() {
                return Ok(());
            }
        }
    }
}
