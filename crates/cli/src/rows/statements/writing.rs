//! Answers as text and as files.

use std::io::{self, Write};
use std::path::Path;

use sapwood::schema::Value;
use sapwood::sql::Answer;

use crate::rows::exchange::file_format::of_name;
use crate::rows::exchange::sink::{Existing, Sink};
use crate::rows::typed_writer::TypedWriter;
use crate::rows::values::{csv_text, write_json_object};
use crate::terminal::exit::{Failure, Outcome};

/// Writes an answer to a file, whose name tells the format. The file is there whole or not at all.
pub(super) fn write(answer: &Answer, path: &Path, existing: Existing) -> Outcome {
    let (format, packing) = of_name(path, None)?;
    let sink = Sink::file(path, packing, existing)?;
    let columns = answer.columns().iter().map(|column| (&column.name[..], &column.kind));
    let mut writer = TypedWriter::new(format, columns, sink)?;
    for at in 0..answer.len() {
        let values = answer.row(at).map_err(|error| Failure::Failed(error.to_string()))?;
        writer.write(&values)?;
    }
    writer.finish()
}

fn row(answer: &Answer, row: usize) -> io::Result<Vec<Value<'_>>> {
    answer.row(row).map_err(io::Error::other)
}

/// CSV with a header. Null is an empty field.
pub(crate) fn csv(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(answer.columns().iter().map(|column| &column.name))?;
    for at in 0..answer.len() {
        let values = row(answer, at)?;
        writer.write_record(values.iter().map(csv_text))?;
    }
    writer.flush()
}

/// An object for each row.
pub(crate) fn json_lines(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    for at in 0..answer.len() {
        let values = row(answer, at)?;
        let names = answer.columns().iter().map(|column| &column.name[..]);
        write_json_object(names.zip(&values), out)?;
    }
    Ok(())
}
