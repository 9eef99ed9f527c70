//! Events in files of typed columns: Arrow, a file or a stream, and Parquet.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::args::rows::EventFormat;
use crate::rows::exchange::columnar::guarded;
use crate::rows::source::{Source, plain};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

/// How a file of Arrow begins, and a stream does not.
const FILE_MAGIC: &[u8] = b"ARROW1";
/// Rows that come in together.
const BATCH_ROWS: usize = 8_192;

/// Batches of a file, one after the other.
pub(super) struct Batches {
    name: String,
    from: From,
}

enum From {
    Stream(StreamReader<BufReader<Box<dyn Read>>>),
    File(FileReader<BufReader<File>>),
    Parquet(ParquetRecordBatchReader),
}

impl Batches {
    /// Opens Arrow or Parquet.
    pub(super) fn open(path: &Path, format: EventFormat, ui: &Ui) -> Outcome<Batches> {
        let name = path.display().to_string();
        let from = match format {
            EventFormat::Parquet => {
                let file = file(path, &name)?;
                guarded(|| {
                    let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
                    reader.with_batch_size(BATCH_ROWS).build()
                })
                .map(From::Parquet)
            }
            _ => {
                let Source { mut bytes, .. } = Source::of(path, format, ui)?;
                let mut head = Vec::with_capacity(FILE_MAGIC.len());
                let read = bytes.by_ref().take(FILE_MAGIC.len() as u64).read_to_end(&mut head);
                read.map_err(|error| unread(&name, &plain(&error)))?;
                match head.starts_with(FILE_MAGIC) {
                    true => {
                        let file = BufReader::new(file(path, &name)?);
                        guarded(|| FileReader::try_new(file, None)).map(From::File)
                    }
                    false => {
                        let whole: Box<dyn Read> = Box::new(Cursor::new(head).chain(bytes));
                        let reader = guarded(|| StreamReader::try_new(BufReader::new(whole), None));
                        reader.map(From::Stream)
                    }
                }
            }
        };
        let from = from.map_err(|what| unread(&name, &what))?;
        Ok(Batches { name, from })
    }

    /// The next rows; none at the end.
    pub(super) fn next(&mut self) -> Outcome<Option<RecordBatch>> {
        let next = guarded(|| match &mut self.from {
            From::Stream(reader) => reader.next().transpose(),
            From::File(reader) => reader.next().transpose(),
            From::Parquet(reader) => reader.next().transpose(),
        });
        next.map_err(|what| unread(&self.name, &what))
    }
}

/// So many rows of a batch at a time, from one on.
pub(super) fn parts(batch: &RecordBatch, from: usize) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    let begins = (from..rows).step_by(BATCH_ROWS);
    begins.map(move |begin| batch.slice(begin, BATCH_ROWS.min(rows - begin)))
}

/// A file that is read from its end on.
fn file(path: &Path, name: &str) -> Outcome<File> {
    let file = File::open(path).map_err(|error| unread(name, &plain(&error)))?;
    match file.metadata().is_ok_and(|about| about.is_file()) {
        true => Ok(file),
        false => Err(unread(name, "it is read from its end on: give a file, unpacked")),
    }
}

fn unread(name: &str, what: &str) -> Failure {
    Failure::Failed(format!("{name} cannot be read: {what}"))
}
