//! Rows as CSV, with the names of the columns in the first line.

use std::io::Read;

use super::batch::{RowBatch, expect_within_limits};
use super::builder::RowBatchBuilder;
use super::json_lines::BadLine;
use crate::error::{Error, Result};

impl RowBatch {
    /// Reads CSV whose first line names the columns, as [`CsvRows`] does, in one batch.
    ///
    /// ```
    /// use sapwood::rollup::RowBatch;
    ///
    /// let (batch, bad) = RowBatch::from_csv(b"time,page\n2013-01-01,Oak\n2013-01-02,Elm,1\n")?;
    /// assert_eq!((batch.rows(), bad[0].line), (1, 2));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`CsvRows::new`]; [`Error::Input`] if the rows have more [values](Self::CELLS_MAX) than a batch.
    pub fn from_csv(text: &[u8]) -> Result<(RowBatch, Vec<BadLine>)> {
        let mut rows = CsvRows::new(text)?;
        let all = rows.next_batch(usize::MAX)?.unwrap_or_default();
        match rows.skip(1)? {
            0 => Ok(all),
            _ => Err(expect_within_limits(all.0.rows() + 1, rows.names.len())
                .expect_err("it ended before the text")),
        }
    }
}

/// Reads CSV batch after batch. Fields are texts, and empty ones are null.
///
/// ```
/// use sapwood::rollup::CsvRows;
///
/// let mut rows = CsvRows::new(&b"time,page\n2013-01-01,Oak\n2013-01-02,Elm\n"[..])?;
/// let (batch, _) = rows.next_batch(1)?.expect("two rows");
/// assert_eq!(batch.rows(), 1);
/// assert!(rows.next_batch(1)?.is_some() && rows.next_batch(1)?.is_none());
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug)]
pub struct CsvRows<R> {
    reader: csv::Reader<R>,
    names: Vec<String>,
}

impl<R: Read> CsvRows<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// [`Error::Input`] if it cannot be read, names no columns, [too many](RowBatch::COLUMNS_MAX), or one of them
    /// twice.
    pub fn new(input: R) -> Result<CsvRows<R>> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
        let headers = reader.headers().map_err(|error| Error::Input(format!("no CSV: {error}")))?;
        let names: Vec<String> = headers.iter().map(str::to_owned).collect();
        if names.is_empty() {
            return Err(Error::Input("the first line names no columns".to_owned()));
        }
        expect_within_limits(1, names.len())?;
        let mut sorted = names.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Input(format!("the first line names `{}` twice", twice[0])));
        }
        Ok(CsvRows { reader, names })
    }

    /// Passes over so many lines, those that are no rows counted too; how many there were.
    ///
    /// ```
    /// use sapwood::rollup::CsvRows;
    ///
    /// let mut rows = CsvRows::new(&b"time,page\n2013-01-01\n2013-01-02,Elm\n"[..])?;
    /// assert_eq!((rows.skip(1)?, rows.skip(9)?), (1, 1));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if the input cannot be read.
    pub fn skip(&mut self, lines: u64) -> Result<u64> {
        let mut record = csv::ByteRecord::new();
        for passed in 0..lines {
            match self.reader.read_byte_record(&mut record) {
                Ok(true) => {}
                Ok(false) => return Ok(passed),
                Err(error) => return Err(Error::Input(error.to_string())),
            }
        }
        Ok(lines)
    }

    /// Up to so many rows, and no more than a batch [may have](RowBatch::CELLS_MAX); none at the end. Lines with another number of fields than the first are told
    /// beside the batch.
    ///
    /// # Errors
    /// [`Error::Input`] if the input cannot be read.
    pub fn next_batch(&mut self, rows_max: usize) -> Result<Option<(RowBatch, Vec<BadLine>)>> {
        let (mut builder, mut bad) = (RowBatchBuilder::new(), Vec::new());
        let mut record = csv::StringRecord::new();
        let rows_max = rows_max.min(RowBatch::CELLS_MAX / self.names.len());
        while builder.rows() < rows_max {
            let line = self.reader.position().line() as usize - 1;
            match self.reader.read_record(&mut record) {
                Ok(false) if builder.rows() == 0 && bad.is_empty() => return Ok(None),
                Ok(false) => break,
                Ok(true) if record.len() == self.names.len() => {
                    for (name, field) in self.names.iter().zip(&record) {
                        if !field.is_empty() {
                            builder.push_text(name, field);
                        }
                    }
                    builder.end_row()?;
                }
                Ok(true) => {
                    let (found, wanted) = (record.len(), self.names.len());
                    bad.push(BadLine { line, why: format!("{found} fields, not {wanted}") });
                }
                Err(error) if error.is_io_error() => return Err(Error::Input(error.to_string())),
                Err(error) => bad.push(BadLine { line, why: format!("no CSV: {error}") }),
            }
        }
        Ok(Some((builder.finish(), bad)))
    }
}
