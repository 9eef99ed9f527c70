//! Rows of Parquet and Arrow that are being read.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::ChunkReader;
use sapwood_schema::{BATCH_ROWS, Batch, Scan, Sink, SourceColumn, Type};

use super::nested::len_of;
use super::vectors::vector_of;
use super::{ColumnFile, damaged, open};
use crate::blocks::batch_number;
use crate::guard::guarded;
use crate::input::Seekable;
use crate::words::quoted;

/// A column of a batch.
pub(crate) struct Slot<'a> {
    /// Its place among those of the file that are read.
    pub(crate) slot: usize,
    /// The members on the way into it.
    pub(crate) members: &'a [usize],
    pub(crate) column: &'a SourceColumn,
}

type Slots<'a> = Vec<Slot<'a>>;

/// Parquet, whose groups of rows threads take one by one.
pub(crate) struct ParquetScan<'a> {
    file: &'a ColumnFile,
    metadata: &'a ArrowReaderMetadata,
    wanted: Vec<usize>,
    slots: Slots<'a>,
    /// The next group. Relaxed: threads share nothing but the number.
    next: AtomicUsize,
}

impl<'a> ParquetScan<'a> {
    pub(crate) fn new(
        file: &'a ColumnFile,
        metadata: &'a ArrowReaderMetadata,
        wanted: Vec<usize>,
        slots: Slots<'a>,
    ) -> ParquetScan<'a> {
        ParquetScan { file, metadata, wanted, slots, next: AtomicUsize::new(0) }
    }

    fn read(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        loop {
            let group = self.next.fetch_add(1, Ordering::Relaxed);
            if group >= self.metadata.metadata().num_row_groups() {
                return Ok(());
            }
            // A file that is open twice has two places; a handle that is shared has one.
            let mut reader =
                parquet(self.file, self.metadata, self.wanted.clone(), Some(vec![group]))?;
            for number in 0.. {
                self.file.input.expect_wanted()?;
                let next = guarded(|| reader.next().transpose());
                let next = next.map_err(|what| damaged(&self.file.input, "Parquet", &what))?;
                let Some(rows) = next else { break };
                let batch = batch_of(self.file, &rows, &self.slots)?;
                if sink(batch_number(group as u64, number), &batch).is_break() {
                    return Ok(());
                }
            }
        }
    }
}

/// The rows of some groups, or of all.
pub(super) fn parquet(
    file: &ColumnFile,
    metadata: &ArrowReaderMetadata,
    wanted: Vec<usize>,
    groups: Option<Vec<usize>>,
) -> Result<ParquetRecordBatchReader, String> {
    fn reader(
        bytes: impl ChunkReader + 'static,
        metadata: &ArrowReaderMetadata,
        wanted: Vec<usize>,
        groups: Option<Vec<usize>>,
    ) -> Result<ParquetRecordBatchReader, String> {
        guarded(|| {
            let metadata = metadata.clone();
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata);
            let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
            let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
            match groups {
                Some(groups) => builder.with_row_groups(groups),
                None => builder,
            }
            .build()
        })
    }
    let reader = match open(&file.input)? {
        Seekable::File(bytes) => reader(bytes, metadata, wanted, groups),
        Seekable::Memory(bytes) => reader(bytes, metadata, wanted, groups),
    };
    reader.map_err(|what| damaged(&file.input, "Parquet", &what))
}

impl Scan for ParquetScan<'_> {
    fn work(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        let read = self.read(sink);
        if read.is_err() {
            self.next.store(usize::MAX / 2, Ordering::Relaxed);
        }
        read
    }
}

/// Arrow, whose batches threads take one by one.
pub(crate) struct ArrowScan<'a, R> {
    file: &'a ColumnFile,
    /// The batches, and how many were taken.
    rest: Mutex<(R, u64)>,
    slots: Slots<'a>,
    /// True once a thread has failed. Relaxed: others may go on for a while.
    has_failed: AtomicBool,
}

impl<'a, R: Iterator<Item = Result<RecordBatch, ArrowError>> + Send> ArrowScan<'a, R> {
    pub(crate) fn new(file: &'a ColumnFile, reader: R, slots: Slots<'a>) -> ArrowScan<'a, R> {
        ArrowScan { file, rest: Mutex::new((reader, 0)), slots, has_failed: AtomicBool::new(false) }
    }

    fn next(&self) -> Result<Option<(u64, RecordBatch)>, String> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, taken) = &mut *rest;
        let next = guarded(|| reader.next().transpose());
        let next = next.map_err(|what| damaged(&self.file.input, "Arrow", &what))?;
        *taken += 1;
        Ok(next.map(|rows| (*taken - 1, rows)))
    }

    fn read(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        while !self.has_failed.load(Ordering::Relaxed) {
            self.file.input.expect_wanted()?;
            let Some((place, rows)) = self.next()? else { return Ok(()) };
            for (number, begin) in (0..rows.num_rows()).step_by(BATCH_ROWS).enumerate() {
                let len = BATCH_ROWS.min(rows.num_rows() - begin);
                let batch = batch_of(self.file, &rows.slice(begin, len), &self.slots)?;
                if sink(batch_number(place, number), &batch).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl<R: Iterator<Item = Result<RecordBatch, ArrowError>> + Send> Scan for ArrowScan<'_, R> {
    fn work(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        let read = self.read(sink);
        if read.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        read
    }
}

fn batch_of(file: &ColumnFile, rows: &RecordBatch, slots: &Slots<'_>) -> Result<Batch, String> {
    let columns = slots.iter().map(|Slot { slot, members, column }| {
        let Member { array, is_absent } = member_of(rows.column(*slot).as_ref(), members);
        let is_absent = |at: usize| is_absent.get(at).is_some_and(|is_absent| *is_absent);
        if let (Type::Array(_, len), DataType::List(_) | DataType::LargeList(_)) =
            (&column.kind, array.data_type())
            && len_of(array, &is_absent, Ok(Some(*len))).is_err()
        {
            file.is_too_narrow.store(true, Ordering::Relaxed);
            return Err(format!(
                "{}: an array in column {} has not {len} items, as those before it; opened again, the column is text",
                file.input.name,
                quoted(&column.name)
            ));
        }
        guarded(|| vector_of(array, &column.kind, &is_absent))
            .map_err(|what| damaged(&file.input, "Arrow", &what))
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok(Batch { len: rows.num_rows(), columns, ids: None })
}

/// A member of a structure, or an array itself.
pub(super) struct Member<'a> {
    pub(super) array: &'a dyn Array,
    /// True where a structure on the way is none; empty if there is no structure.
    pub(super) is_absent: Vec<bool>,
}

pub(super) fn member_of<'a>(mut array: &'a dyn Array, members: &[usize]) -> Member<'a> {
    let mut is_absent = vec![false; if members.is_empty() { 0 } else { array.len() }];
    for member in members {
        let structure = array.as_struct();
        for (at, is_absent) in is_absent.iter_mut().enumerate() {
            *is_absent |= structure.is_null(at);
        }
        array = structure.column(*member).as_ref();
    }
    Member { array, is_absent }
}
