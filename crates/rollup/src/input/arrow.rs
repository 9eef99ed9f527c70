//! Rows of Arrow, batch by batch, column by column.

mod column;
mod stream;

use std::collections::HashSet;

use arrow_array::RecordBatch;

use super::batch::{Column, RowBatch, expect_within_limits};
use super::budget::Budget;
use crate::error::{Error, Result};

impl RowBatch {
    /// The rows of an Arrow batch. Columns become what those of other inputs are:
    ///
    /// | type | here |
    /// |---|---|
    /// | whole numbers | longs; those beyond 64 bits with a sign doubles, as in JSON |
    /// | floating point numbers | doubles; what is not finite is null when it is read, and an error there |
    /// | decimals of up to 128 bits | with digits behind the point the nearest doubles, else as whole numbers |
    /// | truth values | the texts `true` and `false` |
    /// | texts; bytes, which must be UTF-8 | texts |
    /// | timestamps of each unit, dates | whole milliseconds, rounded down; without a zone they are UTC |
    /// | lists of these, large and of fixed size | lists |
    /// | dictionaries of these | the values |
    /// | null | nulls |
    ///
    /// A batch whose rows would take much more memory than it does itself, as rows that share one long
    /// text would, is refused.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    /// use sapwood::rollup::RowBatch;
    ///
    /// let pages: ArrayRef = Arc::new(StringArray::from(vec![Some("Oak"), None]));
    /// let added: ArrayRef = Arc::new(Int64Array::from(vec![7, 9]));
    /// let arrow = RecordBatch::try_from_iter([("page", pages), ("added", added)])?;
    /// let batch = RowBatch::from_arrow(&arrow)?;
    /// assert_eq!((batch.rows(), batch.names().collect::<Vec<_>>()), (2, vec!["page", "added"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] with the name of the column and its type, if there is a column of another type, bytes
    /// that are no UTF-8, or a time beyond 64 bits of milliseconds; if two columns have one name; if the
    /// rows would take too much memory, or have more columns or [values](Self::CELLS_MAX) than a batch.
    pub fn from_arrow(batch: &RecordBatch) -> Result<RowBatch> {
        read(batch, &mut budget(batch.get_array_memory_size()))
    }

    /// The rows of a stream of Arrow (the IPC streaming format), a batch for each of its own. Columns are
    /// those of [`from_arrow`](Self::from_arrow); buffers that are compressed are refused.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use sapwood::rollup::RowBatch;
    ///
    /// let added: ArrayRef = Arc::new(Int64Array::from(vec![7, 9]));
    /// let arrow = RecordBatch::try_from_iter([("added", added)])?;
    /// let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &arrow.schema())?;
    /// writer.write(&arrow)?;
    /// writer.write(&arrow)?;
    /// let bytes = writer.into_inner()?;
    ///
    /// let batches = RowBatch::from_arrow_stream(&bytes)?;
    /// assert_eq!(batches.iter().map(RowBatch::rows).collect::<Vec<_>>(), [2, 2]);
    /// assert!(RowBatch::from_arrow_stream(&bytes[..100]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if the bytes are no such stream, or one of its batches as of
    /// [`from_arrow`](Self::from_arrow).
    pub fn from_arrow_stream(bytes: &[u8]) -> Result<Vec<RowBatch>> {
        stream::read(bytes)
    }
}

/// Rows may take so many bytes for each that they have in Arrow: a bit becomes a text and its end, or a list
/// with a value.
const BYTES_PER_BYTE: usize = 512;

/// And this without a reason: what is small may be made of nulls.
const BYTES_MIN: usize = 64 << 20;

fn budget(bytes: usize) -> Budget {
    Budget::new(bytes.saturating_mul(BYTES_PER_BYTE).max(BYTES_MIN))
}

fn read(batch: &RecordBatch, budget: &mut Budget) -> Result<RowBatch> {
    let rows = batch.num_rows();
    let too_many = || Error::Input(format!("a batch of {rows} rows that have no values"));
    // What folding takes for a row.
    budget.take(rows, size_of::<u64>()).ok_or_else(too_many)?;
    expect_within_limits(rows, batch.num_columns())?;
    let schema = batch.schema_ref();
    let (mut columns, mut names) = (Vec::new(), HashSet::new());
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        let name = field.name();
        if !names.insert(name) {
            return Err(Error::Input(format!("there are two columns `{name}`")));
        }
        let refused = |why: String| {
            let kind = array.data_type();
            Error::Input(format!("the column `{name}` of the type {kind} cannot be: {why}"))
        };
        let values = column::read(array.as_ref(), budget).map_err(refused)?;
        columns.push((name.clone(), Column(values)));
    }
    Ok(RowBatch::of_columns(rows, columns))
}
