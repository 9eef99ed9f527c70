//! Rows of typed columns into files: CSV, JSON lines, Parquet and Arrow.

#[cfg(feature = "columnar")]
mod columnar;

use std::io;

use sapwood::schema::{Type, Value};

use crate::args::exchange::FileFormat;
use crate::rows::exchange::sink::{Sink, Trouble};
use crate::rows::values::{csv_text, write_json_object};
use crate::terminal::exit::Outcome;

/// Writes rows one after the other. The file is there once it is [finished](Self::finish).
pub(crate) struct TypedWriter {
    to: To,
    trouble: Trouble,
}

enum To {
    Csv(Box<csv::Writer<Sink>>),
    Jsonl(Vec<String>, Box<Sink>),
    #[cfg(feature = "columnar")]
    Columns(Box<columnar::ColumnWriter>),
}

impl TypedWriter {
    /// Begins a file whose columns have these names and types.
    pub(crate) fn new<'c>(
        format: FileFormat,
        columns: impl Iterator<Item = (&'c str, &'c Type)>,
        sink: Sink,
    ) -> Outcome<Self> {
        let trouble = sink.trouble();
        let to = Self::begin(format, columns, sink)?.map_err(|error| trouble.failure(&error))?;
        Ok(Self { to, trouble })
    }

    fn begin<'c>(
        format: FileFormat,
        columns: impl Iterator<Item = (&'c str, &'c Type)>,
        sink: Sink,
    ) -> Outcome<io::Result<To>> {
        Ok(match format {
            FileFormat::Csv => {
                let mut writer = csv::Writer::from_writer(sink);
                let header = writer.write_record(columns.map(|(name, _)| name));
                header.map(|()| To::Csv(Box::new(writer))).map_err(io::Error::from)
            }
            FileFormat::Jsonl => {
                Ok(To::Jsonl(columns.map(|(name, _)| name.to_owned()).collect(), Box::new(sink)))
            }
            #[cfg(feature = "columnar")]
            FileFormat::Parquet | FileFormat::Arrow => {
                columnar::ColumnWriter::new(format, columns, sink)
                    .map(|writer| To::Columns(Box::new(writer)))
            }
            #[cfg(not(feature = "columnar"))]
            FileFormat::Parquet | FileFormat::Arrow => {
                return Err(crate::rows::exchange::file_format::not_built(format.name()));
            }
        })
    }

    /// Writes a row, which has a value for each column.
    pub(crate) fn write(&mut self, row: &[Value<'_>]) -> Outcome {
        let written = match &mut self.to {
            To::Csv(writer) => {
                writer.write_record(row.iter().map(csv_text)).map_err(io::Error::from)
            }
            To::Jsonl(names, sink) => {
                let row: Vec<Value<'_>> = row.iter().map(readable).collect();
                write_json_object(names.iter().map(String::as_str).zip(&row), sink)
            }
            #[cfg(feature = "columnar")]
            To::Columns(writer) => writer.write(row),
        };
        written.map_err(|error| self.trouble.failure(&error))
    }

    /// Ends the file, and gives it its name.
    pub(crate) fn finish(self) -> Outcome {
        let sink = match self.to {
            To::Csv(writer) => writer.into_inner().map_err(|error| error.into_error()),
            To::Jsonl(_, sink) => Ok(*sink),
            #[cfg(feature = "columnar")]
            To::Columns(writer) => writer.finish(),
        };
        sink.map_err(|error| self.trouble.failure(&error))?.finish()
    }
}

/// A number with more digits than readers of JSON keep, as text.
fn readable<'v>(value: &'v Value<'_>) -> Value<'v> {
    /// Those that every float of 64 bits has.
    const DIGITS: u32 = 15;
    let is_kept = match value {
        Value::Int(number) => i64::try_from(*number).is_ok() || u64::try_from(*number).is_ok(),
        Value::Huge(_) => false,
        Value::Decimal { units, .. } => units.unsigned_abs() < 10_u128.pow(DIGITS),
        _ => true,
    };
    match is_kept {
        true => value.clone(),
        false => Value::text(value.to_string()),
    }
}
