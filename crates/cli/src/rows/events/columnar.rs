//! Events in files of typed columns: Arrow, a file or a stream, and Parquet.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use indicatif::ProgressBar;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use sapwood::rollup::{self, Error, RowBatch};

use super::{BATCH_ROWS, Rows};
use crate::args::rows::EventFormat;
use crate::rows::source::Source;
use crate::terminal::exit::Outcome;
use crate::terminal::ui::Ui;
use sapwood::files::{guarded, plain};

/// How a file of Arrow begins, and a stream does not.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// Rows of a file of typed columns.
pub(super) struct ColumnRows {
    from: From,
    /// What is read and not taken.
    rest: Option<RecordBatch>,
}

enum From {
    Stream(StreamReader<BufReader<Box<dyn Read>>>),
    File(FileReader<BufReader<File>>),
    Parquet(ParquetRecordBatchReader),
}

impl ColumnRows {
    /// Opens Arrow or Parquet; the bar follows a stream as it is read.
    pub(super) fn open(
        path: &Path,
        format: EventFormat,
        ui: &Ui,
    ) -> Outcome<Result<(ColumnRows, ProgressBar), String>> {
        let Source { mut bytes, progress, .. } = Source::of(path, format, ui)?;
        let mut open = || {
            if format == EventFormat::Parquet {
                let file = file(path)?;
                let reader = guarded(|| {
                    let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
                    reader.with_batch_size(BATCH_ROWS).build()
                });
                return reader.map(From::Parquet);
            }
            let mut head = Vec::with_capacity(FILE_MAGIC.len());
            let read = bytes.by_ref().take(FILE_MAGIC.len() as u64).read_to_end(&mut head);
            read.map_err(|error| plain(&error))?;
            if head.starts_with(FILE_MAGIC) {
                let file = BufReader::new(file(path)?);
                return guarded(|| FileReader::try_new(file, None)).map(From::File);
            }
            let bytes = std::mem::replace(&mut bytes, Box::new(std::io::empty()));
            let whole: Box<dyn Read> = Box::new(Cursor::new(head).chain(bytes));
            guarded(|| StreamReader::try_new(BufReader::new(whole), None)).map(From::Stream)
        };
        let opened = open();
        if opened.is_err() {
            progress.finish_and_clear();
        }
        Ok(opened.map(|from| (ColumnRows { from, rest: None }, progress)))
    }

    /// So many of the next rows at most; none at the end.
    fn take(&mut self, rows: usize) -> rollup::Result<Option<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => loop {
                let next = guarded(|| match &mut self.from {
                    From::Stream(reader) => reader.next().transpose(),
                    From::File(reader) => reader.next().transpose(),
                    From::Parquet(reader) => reader.next().transpose(),
                });
                match next.map_err(Error::Input)? {
                    None => return Ok(None),
                    Some(batch) if batch.num_rows() == 0 => {}
                    Some(batch) => break batch,
                }
            },
        };
        let taken = rows.min(batch.num_rows());
        let behind = batch.num_rows() - taken;
        self.rest = (behind > 0).then(|| batch.slice(taken, behind));
        Ok(Some(batch.slice(0, taken)))
    }
}

impl Rows for ColumnRows {
    fn pass(&mut self, rows: u64) -> rollup::Result<u64> {
        let passed = self.take(usize::try_from(rows).unwrap_or(usize::MAX))?;
        Ok(passed.map_or(0, |batch| batch.num_rows() as u64))
    }

    fn next(&mut self, _: &str) -> rollup::Result<Option<(RowBatch, Vec<String>)>> {
        let Some(batch) = self.take(BATCH_ROWS)? else { return Ok(None) };
        Ok(Some((RowBatch::from_arrow(&batch)?, Vec::new())))
    }
}

/// A file that is read from its end on.
fn file(path: &Path) -> Result<File, String> {
    const WANTED: &str = "it is read from its end on: give a file, unpacked";
    if path == Path::new("-") {
        return Err(WANTED.to_owned());
    }
    let file = File::open(path).map_err(|error| plain(&error))?;
    match file.metadata().is_ok_and(|about| about.is_file()) {
        true => Ok(file),
        false => Err(WANTED.to_owned()),
    }
}
