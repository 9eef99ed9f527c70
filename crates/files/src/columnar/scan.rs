//! Rows of Parquet and Arrow that are being read.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::ChunkReader;
use sapwood_schema::{BATCH_ROWS, Batch, Scan, Sink, SourceColumn, Type, Vector};

use super::vectors::vector_of;
use super::{damaged, open};
use crate::blocks::batch_number;
use crate::guard::guarded;
use crate::input::{Input, Seekable};

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
    input: &'a Input,
    metadata: &'a ArrowReaderMetadata,
    wanted: Vec<usize>,
    slots: Slots<'a>,
    /// The next group. Relaxed: threads share nothing but the number.
    next: AtomicUsize,
}

impl<'a> ParquetScan<'a> {
    pub(crate) fn new(
        input: &'a Input,
        metadata: &'a ArrowReaderMetadata,
        wanted: Vec<usize>,
        slots: Slots<'a>,
    ) -> ParquetScan<'a> {
        ParquetScan { input, metadata, wanted, slots, next: AtomicUsize::new(0) }
    }

    fn group(
        &self,
        reader: impl ChunkReader + 'static,
        group: usize,
    ) -> Result<ParquetRecordBatchReader, String> {
        guarded(|| {
            let metadata = self.metadata.clone();
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(reader, metadata);
            let mask = ProjectionMask::roots(builder.parquet_schema(), self.wanted.iter().copied());
            builder
                .with_projection(mask)
                .with_row_groups(vec![group])
                .with_batch_size(BATCH_ROWS)
                .build()
        })
        .map_err(|what| damaged(self.input, "Parquet", &what))
    }

    fn read(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        loop {
            let group = self.next.fetch_add(1, Ordering::Relaxed);
            if group >= self.metadata.metadata().num_row_groups() {
                return Ok(());
            }
            // A file that is open twice has two places; a handle that is shared has one.
            let mut reader = match open(self.input)? {
                Seekable::File(file) => self.group(file, group)?,
                Seekable::Memory(bytes) => self.group(bytes, group)?,
            };
            for number in 0.. {
                self.input.expect_wanted()?;
                let next = guarded(|| reader.next().transpose());
                let next = next.map_err(|what| damaged(self.input, "Parquet", &what))?;
                let Some(rows) = next else { break };
                let batch = batch_of(self.input, &rows, &self.slots)?;
                if sink(batch_number(group as u64, number), &batch).is_break() {
                    return Ok(());
                }
            }
        }
    }
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
    input: &'a Input,
    /// The batches, and how many were taken.
    rest: Mutex<(R, u64)>,
    slots: Slots<'a>,
    /// Whether a thread has failed. Relaxed: others may go on for a while.
    has_failed: AtomicBool,
}

impl<'a, R: Iterator<Item = Result<RecordBatch, ArrowError>> + Send> ArrowScan<'a, R> {
    pub(crate) fn new(input: &'a Input, reader: R, slots: Slots<'a>) -> ArrowScan<'a, R> {
        ArrowScan {
            input,
            rest: Mutex::new((reader, 0)),
            slots,
            has_failed: AtomicBool::new(false),
        }
    }

    fn next(&self) -> Result<Option<(u64, RecordBatch)>, String> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, taken) = &mut *rest;
        let next = guarded(|| reader.next().transpose());
        let next = next.map_err(|what| damaged(self.input, "Arrow", &what))?;
        *taken += 1;
        Ok(next.map(|rows| (*taken - 1, rows)))
    }

    fn read(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        while !self.has_failed.load(Ordering::Relaxed) {
            self.input.expect_wanted()?;
            let Some((place, rows)) = self.next()? else { return Ok(()) };
            for (number, begin) in (0..rows.num_rows()).step_by(BATCH_ROWS).enumerate() {
                let len = BATCH_ROWS.min(rows.num_rows() - begin);
                let batch = batch_of(self.input, &rows.slice(begin, len), &self.slots)?;
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

fn batch_of(input: &Input, rows: &RecordBatch, slots: &Slots<'_>) -> Result<Batch, String> {
    let columns = slots.iter().map(|Slot { slot, members, column }| {
        let array = rows.column(*slot).as_ref();
        guarded(|| member_of(array, members, &column.kind))
            .map_err(|what| damaged(input, "Arrow", &what))
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok(Batch { len: rows.num_rows(), columns, ids: None })
}

/// The values of a member of a structure, or of an array itself: none where a structure on the way
/// is none.
fn member_of(mut array: &dyn Array, members: &[usize], kind: &Type) -> Result<Vector, String> {
    let mut is_absent = vec![false; if members.is_empty() { 0 } else { array.len() }];
    for member in members {
        let structure = array.as_struct();
        for (at, is_absent) in is_absent.iter_mut().enumerate() {
            *is_absent |= structure.is_null(at);
        }
        array = structure.column(*member).as_ref();
    }
    vector_of(array, kind, &|at| is_absent.get(at).is_some_and(|is_absent| *is_absent))
}
