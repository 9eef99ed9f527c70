//! Files of rows that are being written, in any format.

#[cfg(feature = "columnar")]
mod columnar;
mod sink;
mod text;

pub use sink::{Existing, FileSink};
#[cfg(feature = "columnar")]
pub(crate) use text::json;
pub use text::{csv_text, write_json_object};

use std::collections::HashMap;
use std::io;

use sapwood_schema::{Batch, SourceColumn, Type, Value};

use crate::error::{Error, Result};
use crate::format::Format;
use sink::Trouble;

/// Writes rows one after the other. The file is there once it is [finished](Self::finish).
///
/// | format | a value without a type of the format's own is |
/// |---|---|
/// | CSV | its text; null is an empty field |
/// | JSON lines | its text; numbers of more digits than readers keep, too |
/// | MessagePack | its text |
/// | Parquet, Arrow | none: whole numbers of 128 bits are decimals |
///
/// ```
/// use sapwood::files::{Existing, FileSink, FileSource, FileWriter, Format, Packing, ReadOptions};
/// use sapwood::schema::{Type, Value};
///
/// # let folder = tempfile::tempdir().expect("a directory for the example");
/// # let path = folder.path().join("flights.csv");
/// let sink = FileSink::file(&path, Packing::Plain, Existing::Keep)?;
/// let columns = [("carrier", &Type::Text), ("delay", &Type::Int(64))];
/// let mut writer = FileWriter::new(Format::Csv, columns.into_iter(), sink)?;
/// writer.write(&[Value::text("UA"), Value::Int(11)])?;
/// writer.finish()?;
/// assert_eq!(FileSource::open(&path, &ReadOptions::default())?.columns().len(), 2);
/// # Ok::<(), sapwood::files::Error>(())
/// ```
pub struct FileWriter {
    to: To,
    trouble: Trouble,
}

impl std::fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWriter").finish_non_exhaustive()
    }
}

enum To {
    Csv(Box<csv::Writer<FileSink>>),
    Jsonl(Vec<String>, Box<FileSink>),
    MessagePack(Vec<String>, Box<FileSink>),
    #[cfg(feature = "columnar")]
    Columns(Box<columnar::ColumnWriter>),
}

impl FileWriter {
    /// Begins a file whose columns have these names and types.
    ///
    /// # Errors
    /// An error of writing; a format that this build has not.
    pub fn new<'c>(
        format: Format,
        columns: impl Iterator<Item = (&'c str, &'c Type)>,
        sink: FileSink,
    ) -> Result<Self> {
        Self::with_metadata(format, columns, HashMap::new(), sink)
    }

    /// Begins a file with texts that a reader finds by their names ([`metadata`](crate::FileSource::metadata)); formats of text have no
    /// place for them.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_metadata<'c>(
        format: Format,
        columns: impl Iterator<Item = (&'c str, &'c Type)>,
        metadata: HashMap<String, String>,
        sink: FileSink,
    ) -> Result<Self> {
        let trouble = sink.trouble();
        let to = Self::begin(format, columns, metadata, sink)?;
        Ok(Self { to: to.map_err(|error| trouble.of(&error))?, trouble })
    }

    fn begin<'c>(
        format: Format,
        columns: impl Iterator<Item = (&'c str, &'c Type)>,
        metadata: HashMap<String, String>,
        sink: FileSink,
    ) -> Result<io::Result<To>> {
        let names = |columns: &mut dyn Iterator<Item = (&'c str, &'c Type)>| -> Vec<String> {
            columns.map(|(name, _)| name.to_owned()).collect()
        };
        let mut columns = columns;
        Ok(match format {
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(sink);
                let header = writer.write_record(columns.map(|(name, _)| name));
                header.map(|()| To::Csv(Box::new(writer))).map_err(io::Error::from)
            }
            Format::Jsonl => Ok(To::Jsonl(names(&mut columns), Box::new(sink))),
            Format::MessagePack => Ok(To::MessagePack(names(&mut columns), Box::new(sink))),
            #[cfg(feature = "columnar")]
            Format::Parquet | Format::Arrow => {
                columnar::ColumnWriter::new(format, columns, metadata, sink)
                    .map(|writer| To::Columns(Box::new(writer)))
            }
            #[cfg(not(feature = "columnar"))]
            Format::Parquet | Format::Arrow => {
                let (name, _) = (format.name(), metadata);
                return Err(Error::Format(format!(
                    "{name} cannot be read or written: {}",
                    crate::format::NOT_BUILT
                )));
            }
        })
    }

    /// Writes a row, which has a value for each column.
    ///
    /// # Errors
    /// An error of writing; a value that its column cannot have.
    pub fn write(&mut self, row: &[Value<'_>]) -> Result<()> {
        let written = match &mut self.to {
            To::Csv(writer) => {
                writer.write_record(row.iter().map(csv_text)).map_err(io::Error::from)
            }
            To::Jsonl(names, sink) => {
                let row: Vec<Value<'_>> = row.iter().map(text::readable).collect();
                write_json_object(names.iter().map(String::as_str).zip(&row), sink)
            }
            To::MessagePack(names, sink) => {
                text::write_map(names.iter().map(String::as_str).zip(row), sink)
            }
            #[cfg(feature = "columnar")]
            To::Columns(writer) => writer.write(row),
        };
        written.map_err(|error| self.trouble.of(&error))
    }

    /// Writes the rows of a batch, whose vectors are of the columns' types.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write); a text that is not UTF-8.
    pub fn write_batch(&mut self, batch: &Batch, columns: &[SourceColumn]) -> Result<()> {
        for row in 0..batch.len {
            let values = batch.columns.iter().zip(columns);
            let values = values.map(|(vector, column)| vector.value(row, &column.kind));
            let values = values.collect::<Result<Vec<_>, _>>();
            self.write(&values.map_err(|error| Error::Read(error.to_string()))?)?;
        }
        Ok(())
    }

    /// Ends the file, and gives it its name.
    ///
    /// # Errors
    /// An error of writing: there is no file then.
    pub fn finish(self) -> Result<()> {
        let sink = match self.to {
            To::Csv(writer) => writer.into_inner().map_err(|error| error.into_error()),
            To::Jsonl(_, sink) | To::MessagePack(_, sink) => Ok(*sink),
            #[cfg(feature = "columnar")]
            To::Columns(writer) => writer.finish(),
        };
        sink.map_err(|error| self.trouble.of(&error))?.finish()
    }
}
