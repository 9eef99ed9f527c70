//! Rows as CSV, with the names of the columns in the first line.

use super::batch::RowBatch;
use super::builder::RowBatchBuilder;
use super::json_lines::BadLine;
use crate::error::{Error, Result};

impl RowBatch {
    /// Reads CSV whose first line names the columns. Fields are texts, and empty ones are null. Lines with
    /// another number of fields are told beside the batch.
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
    /// [`Error::Input`] if the first line names no columns, or one of them twice.
    pub fn from_csv(text: &[u8]) -> Result<(RowBatch, Vec<BadLine>)> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
        let headers = reader.headers().map_err(|error| Error::Input(format!("no CSV: {error}")))?;
        let names: Vec<String> = headers.iter().map(str::to_owned).collect();
        if names.is_empty() {
            return Err(Error::Input("the first line names no columns".to_owned()));
        }
        let mut sorted = names.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Input(format!("the first line names `{}` twice", twice[0])));
        }
        let (mut builder, mut bad) = (RowBatchBuilder::new(), Vec::new());
        let mut record = csv::StringRecord::new();
        loop {
            let line = reader.position().line() as usize - 1;
            match reader.read_record(&mut record) {
                Ok(false) => break,
                Ok(true) if record.len() == names.len() => {
                    for (name, field) in names.iter().zip(&record) {
                        if !field.is_empty() {
                            builder.push_text(name, field);
                        }
                    }
                    builder.end_row();
                }
                Ok(true) => {
                    let (found, wanted) = (record.len(), names.len());
                    bad.push(BadLine { line, why: format!("{found} fields, not {wanted}") });
                }
                Err(error) if error.is_io_error() => break,
                Err(error) => bad.push(BadLine { line, why: format!("no CSV: {error}") }),
            }
        }
        Ok((builder.finish(), bad))
    }
}
