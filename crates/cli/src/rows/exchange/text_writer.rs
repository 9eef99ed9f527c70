//! Rows as CSV and JSON lines.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::args::rows::Format;
use crate::rows::exchange::cell::{Cell, Column, text_of_bytes};
use crate::rows::exchange::form::Form;
use crate::rows::exchange::sink::Sink;

/// Writes rows as text.
pub(crate) enum TextWriter {
    Csv {
        writer: Box<csv::Writer<Sink>>,
        text: String,
    },
    Json {
        sink: Sink,
        names: Vec<Vec<u8>>,
        line: Vec<u8>,
    },
    /// Each row has one cell, its line.
    Lines {
        sink: Sink,
    },
}

impl TextWriter {
    /// Begins a file: with the header, of CSV.
    pub(crate) fn new(format: Format, form: &Form, sink: Sink) -> io::Result<Self> {
        let columns = form.columns();
        match (format, form) {
            (Format::Csv, _) => {
                let mut writer = csv::WriterBuilder::new().from_writer(sink);
                writer.write_record(columns.iter().map(|column| &column.name))?;
                Ok(Self::Csv { writer: Box::new(writer), text: String::new() })
            }
            (Format::Jsonl, Form::Lines { .. }) => Ok(Self::Lines { sink }),
            (Format::Jsonl, _) => {
                let names = columns.iter().enumerate();
                let names = names.map(|(index, column)| member(index, column)).collect();
                Ok(Self::Json { sink, names, line: Vec::new() })
            }
        }
    }

    pub(crate) fn write(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        match self {
            Self::Csv { writer, text } => {
                for cell in cells {
                    write_field(writer, cell, text)?;
                }
                writer.write_record(None::<&[u8]>)?;
                Ok(())
            }
            Self::Json { sink, names, line } => {
                line.clear();
                for (name, cell) in names.iter().zip(cells) {
                    line.extend_from_slice(name);
                    write_json(cell, line)?;
                }
                line.extend_from_slice(b"}\n");
                sink.write_all(line)
            }
            Self::Lines { sink } => {
                if let [Cell::Text(line)] = cells {
                    sink.write_all(line.as_bytes())?;
                }
                sink.write_all(b"\n")
            }
        }
    }

    pub(crate) fn finish(self) -> io::Result<Sink> {
        match self {
            Self::Csv { writer, .. } => writer.into_inner().map_err(|error| error.into_error()),
            Self::Json { sink, .. } | Self::Lines { sink } => Ok(sink),
        }
    }
}

/// What stands before the value of a member.
fn member(index: usize, column: &Column) -> Vec<u8> {
    let before = if index == 0 { '{' } else { ',' };
    format!("{before}{}:", serde_json::Value::from(column.name.as_str())).into_bytes()
}

fn write_field(
    writer: &mut csv::Writer<Sink>,
    cell: &Cell<'_>,
    text: &mut String,
) -> csv::Result<()> {
    text.clear();
    // Formatting into a string does not fail.
    let _ = match cell {
        Cell::Text(own) => return writer.write_field(own.as_bytes()),
        Cell::Bytes(bytes) => return writer.write_field(text_of_bytes(bytes).as_bytes()),
        Cell::Null => Ok(()),
        Cell::Bool(value) => write!(text, "{value}"),
        Cell::Int(number) => write!(text, "{number}"),
        Cell::Float32(number) => write!(text, "{number}"),
        Cell::Float64(number) => write!(text, "{number}"),
    };
    writer.write_field(text.as_bytes())
}

fn write_json(cell: &Cell<'_>, line: &mut Vec<u8>) -> io::Result<()> {
    match cell {
        Cell::Null => line.write_all(b"null"),
        Cell::Bool(value) => write!(line, "{value}"),
        // Others read longer numbers as floats.
        Cell::Int(number) if i64::try_from(*number).is_ok() || u64::try_from(*number).is_ok() => {
            write!(line, "{number}")
        }
        Cell::Int(number) => write!(line, "\"{number}\""),
        Cell::Float32(number) => write_json_float(f64::from(*number), line),
        Cell::Float64(number) => write_json_float(*number, line),
        Cell::Text(text) => Ok(serde_json::to_writer(line, &**text)?),
        Cell::Bytes(bytes) => Ok(serde_json::to_writer(line, &*text_of_bytes(bytes))?),
    }
}

fn write_json_float(number: f64, line: &mut Vec<u8>) -> io::Result<()> {
    match number.is_finite() {
        true => write!(line, "{number:?}"),
        // JSON has neither NaN nor infinity.
        false => write!(line, "\"{number}\""),
    }
}
