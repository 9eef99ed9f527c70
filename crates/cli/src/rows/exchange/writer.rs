//! Rows in a file of any format.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use sapwood::files::{FileSink, FileWriter, Format};
use sapwood::schema::{Type, Value};

use crate::rows::exchange::cell::{Cell, Kind, text_of_bytes};
use crate::rows::exchange::form::Form;
use crate::rows::exchange::origin::{METADATA, Origin};
use crate::terminal::exit::{Failure, Outcome};

/// Writes rows, one after the other.
pub(crate) struct RowWriter {
    kinds: Vec<Kind>,
    is_columnar: bool,
    to: To,
}

enum To {
    Rows(Box<FileWriter>),
    /// Each row has one cell, its line.
    Lines(Box<FileSink>),
}

impl RowWriter {
    pub(crate) fn new(
        format: Format,
        form: &Form,
        origin: &Origin,
        sink: FileSink,
    ) -> Outcome<Self> {
        let (kinds, is_columnar) =
            (form.columns().iter().map(|column| column.kind).collect(), format.is_columnar());
        let to = match (form, format) {
            (Form::Lines { .. }, Format::Jsonl) => To::Lines(Box::new(sink)),
            _ => {
                let types: Vec<Type> =
                    form.columns().iter().map(|it| type_of(it.kind, is_columnar)).collect();
                let names = form.columns().iter().map(|column| column.name.as_str());
                let metadata = HashMap::from([(METADATA.to_owned(), origin.to_text())]);
                let columns = names.zip(&types);
                To::Rows(Box::new(FileWriter::with_metadata(format, columns, metadata, sink)?))
            }
        };
        Ok(Self { kinds, is_columnar, to })
    }

    pub(crate) fn write(&mut self, cells: &[Cell<'_>]) -> Outcome {
        match &mut self.to {
            To::Rows(writer) => {
                let row = cells.iter().zip(&self.kinds);
                let row: Vec<Value<'_>> =
                    row.map(|(cell, kind)| value(cell, *kind, self.is_columnar)).collect();
                Ok(writer.write(&row)?)
            }
            To::Lines(sink) => {
                let [Cell::Text(line)] = cells else { unreachable!("lines are texts") };
                let written = sink.write_all(line.as_bytes()).and_then(|()| sink.write_all(b"\n"));
                written.map_err(|error| Failure::from(sink.failure(&error)))
            }
        }
    }

    /// Ends the file. Without it there is none.
    pub(crate) fn finish(self) -> Outcome {
        match self.to {
            To::Rows(writer) => writer.finish()?,
            To::Lines(sink) => sink.finish()?,
        }
        Ok(())
    }
}

/// The type of a column in a file. No type of Arrow holds all numbers of 128 bits, and text has no bytes.
fn type_of(kind: Kind, is_columnar: bool) -> Type {
    match kind {
        Kind::Bool => Type::Bool,
        Kind::Int { bits: 128, .. } => Type::Text,
        Kind::Int { bits, signed: true } => Type::Int(bits),
        Kind::Int { bits, signed: false } => Type::UInt(bits),
        Kind::Float32 => Type::F32,
        Kind::Float64 => Type::F64,
        Kind::Bytes if is_columnar => Type::Bytes,
        Kind::Text | Kind::Bytes => Type::Text,
    }
}

fn value<'c>(cell: &'c Cell<'_>, kind: Kind, is_columnar: bool) -> Value<'c> {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => Value::Bool(*value),
        Cell::Int(number) if matches!(kind, Kind::Int { bits: 128, .. }) && is_columnar => {
            Value::text(number.to_string())
        }
        Cell::Int(number) => Value::Int(*number),
        Cell::Float32(number) if is_columnar => Value::Float((*number).into()),
        Cell::Float32(number) => Value::Float((*number).into()).shown_as(&Type::F32),
        Cell::Float64(number) => Value::Float(*number),
        Cell::Text(text) => Value::Text(Cow::Borrowed(text)),
        Cell::Bytes(bytes) if is_columnar => Value::Bytes(Cow::Borrowed(bytes)),
        Cell::Bytes(bytes) => Value::Text(text_of_bytes(bytes)),
    }
}
