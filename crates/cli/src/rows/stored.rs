//! The rows of tables, as they are shown: typed ones, those that are kept as the text of a file, and entries.
//!
//! Tables that earlier versions loaded hold text, and so do those of `sapwood import --key`. A JSON row is kept as its
//! line. A CSV row is kept as its fields in the order of the header, each as its length (LEB128: seven bits a byte, low
//! ones first, the high bit says that more follow) and its bytes: one byte beyond the text for fields of up to 127 bytes.

use std::io::{self, Write};

use sapwood::files::{csv_text, write_json_object};
use sapwood::schema::{RowFormat, Schema, Value as TypedValue};
use serde_json::Value;

use crate::rows::columns::Columns;
use crate::terminal::format::escaped_bytes;

/// Appends a field of a CSV row.
pub(crate) fn append_cell(field: &[u8], out: &mut Vec<u8>) {
    let mut length = field.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(field);
}

/// The values of a row as they are shown.
pub(crate) fn as_shown<'v>(values: Vec<TypedValue<'v>>, schema: &Schema) -> Vec<TypedValue<'v>> {
    let values = values.into_iter().zip(schema.columns());
    values.map(|(value, column)| value.shown_as(&column.kind)).collect()
}

/// The columns of entries that were not loaded from a file.
const ENTRY: [&str; 2] = ["key", "value"];

/// Rows of these columns; values that programs wrote are shown as they are.
pub(crate) struct Stored<'a> {
    pub(crate) columns: &'a Columns,
}

impl Stored<'_> {
    /// Writes the lines above the rows: the header of CSV, nothing for JSON lines.
    pub(crate) fn write_header(&self, out: &mut impl Write) -> io::Result<()> {
        match self.columns {
            Columns::Csv(names) => write_csv(names.iter().map(String::as_bytes), out),
            Columns::Json => Ok(()),
            Columns::Entries => write_csv(ENTRY.into_iter(), out),
            Columns::Typed(format) => {
                write_csv(format.schema().columns().iter().map(|column| &column.name[..]), out)
            }
        }
    }

    /// The row in the form of the input.
    pub(crate) fn write_row(
        &self,
        key: &[u8],
        value: &[u8],
        out: &mut impl Write,
    ) -> io::Result<()> {
        match self.columns {
            Columns::Csv(_) => write_csv(StoredFields(value), out),
            Columns::Json => {
                out.write_all(value)?;
                out.write_all(b"\n")
            }
            Columns::Entries => write_csv([key, value].map(escaped_bytes).into_iter(), out),
            Columns::Typed(format) => {
                write_csv(shown(format, key, value)?.iter().map(csv_text), out)
            }
        }
    }

    /// The row as a JSON object; of text and of entries, with each field as a string.
    pub(crate) fn write_json(
        &self,
        key: &[u8],
        value: &[u8],
        out: &mut impl Write,
    ) -> io::Result<()> {
        match self.columns {
            Columns::Json => self.write_row(key, value, out),
            Columns::Typed(format) => {
                let values = shown(format, key, value)?;
                let names = format.schema().columns().iter().map(|column| &column.name[..]);
                write_json_object(names.zip(&values), out)
            }
            Columns::Csv(_) | Columns::Entries => {
                let fields = self.fields(key, value).into_iter();
                let object: Value =
                    fields.map(|(name, text)| (name, Value::String(text))).collect();
                writeln!(out, "{object}")
            }
        }
    }

    /// The columns of the row with their values as text.
    pub(crate) fn fields(&self, key: &[u8], value: &[u8]) -> Vec<(String, String)> {
        match self.columns {
            Columns::Csv(names) => {
                let texts =
                    StoredFields(value).map(|field| String::from_utf8_lossy(field).into_owned());
                names.iter().cloned().zip(texts).collect()
            }
            Columns::Json => {
                let object: serde_json::Map<String, Value> =
                    serde_json::from_slice(value).expect("only lines that parsed are kept");
                let text = |value: Value| match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                object.into_iter().map(|(name, value)| (name, text(value))).collect()
            }
            Columns::Entries => {
                let texts = [key, value].map(escaped_bytes);
                ENTRY.map(str::to_owned).into_iter().zip(texts).collect()
            }
            Columns::Typed(format) => {
                let names = format.schema().columns().iter().map(|column| column.name.clone());
                match shown(format, key, value) {
                    Ok(values) => names.zip(values.iter().map(ToString::to_string)).collect(),
                    Err(error) => vec![("this is no row".to_owned(), error.to_string())],
                }
            }
        }
    }
}

/// The values of a typed row as they are shown.
fn shown<'r>(
    format: &RowFormat,
    key: &'r [u8],
    value: &'r [u8],
) -> io::Result<Vec<TypedValue<'r>>> {
    let values = format.decode(key, value).map_err(io::Error::other)?;
    Ok(as_shown(values, format.schema()))
}

fn write_csv<T: AsRef<[u8]>>(
    fields: impl Iterator<Item = T>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1024).from_writer(out);
    writer.write_record(fields)?;
    writer.flush()
}

/// The fields of a stored CSV row that are left.
pub(crate) struct StoredFields<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for StoredFields<'a> {
    type Item = &'a [u8];

    /// The next field; none at the end, or where the bytes are not of fields.
    fn next(&mut self) -> Option<&'a [u8]> {
        let mut rest = self.0;
        let mut length = 0;
        // Five bytes of seven bits: no value is longer.
        for shift in [0, 7, 14, 21, 28] {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            length |= usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                let (field, rest) = rest.split_at_checked(length)?;
                self.0 = rest;
                return Some(field);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_rows_come_out_as_they_went_in() {
        let long = "x".repeat(20_000);
        for fields in [
            vec!["", "a", "b,c", "d\"e", "f\ng"],
            vec![""],
            vec![long.as_str(), "", &long[..127], &long[..128]],
        ] {
            let mut value = Vec::new();
            fields.iter().for_each(|field| append_cell(field.as_bytes(), &mut value));
            let names = (0..fields.len()).map(|index| index.to_string());
            let columns = Columns::Csv(names.collect());
            let stored = Stored { columns: &columns };
            let texts: Vec<String> =
                stored.fields(b"", &value).into_iter().map(|(_, text)| text).collect();
            assert_eq!(texts, fields);
            let mut line = Vec::new();
            stored.write_row(b"", &value, &mut line).expect("a vector takes everything");
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&line[..]);
            let record = reader.records().next().expect("a row").expect("good CSV");
            assert_eq!(record, csv::StringRecord::from(fields));
        }
    }
}
