//! Replies as text, JSON or CSV.

use std::io::{self, Write};

use comfy_table::{Table, presets};
use serde_json::json;

use super::value::Value;
use super::words::{quote, text};
use crate::args::Form;
use crate::terminal::format::{escaped, markdown_row, table, write_table};

/// Whether the reader is a person at a terminal, or another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Person,
    Program,
}

/// Writes a reply in a form; an error is the caller's, except in JSON.
pub(crate) fn write(
    value: &Value,
    form: Form,
    reader: Reader,
    out: &mut impl Write,
) -> io::Result<()> {
    match form {
        Form::Json => match objects(value) {
            Some(objects) => objects.iter().try_for_each(|object| writeln!(out, "{object}")),
            None => writeln!(out, "{}", as_json(value)),
        },
        Form::Csv => write_csv(value, out),
        Form::Table => write_text(value, reader, out),
        Form::Markdown => write_markdown(value, reader, out),
    }
}

/// A value as JSON: bytes that are not UTF-8 stand as `\x00` in a string.
pub(crate) fn as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Error(message) => json!({ "error": text(message) }),
        Value::Integer(number) => json!(number),
        Value::Boolean(boolean) => json!(boolean),
        Value::Double(number) if number.is_finite() => json!(number),
        Value::Double(number) => json!(number.to_string()),
        Value::BigNumber(digits) => json!(text(digits)),
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim(bytes) => json!(text(bytes)),
        Value::Array(values) | Value::Push(values) => values.iter().map(as_json).collect(),
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| (cell(key), as_json(value));
            serde_json::Value::Object(pairs.iter().map(pair).collect())
        }
    }
}

/// The rows of a statement's answer, each an object.
fn objects(value: &Value) -> Option<Vec<serde_json::Value>> {
    let Value::Array(columns) = value.field("columns")? else { return None };
    // Other answers have no types.
    value.field("types")?;
    let Value::Array(rows) = value.field("rows")? else { return None };
    let object = |row: &Value| {
        let cells = elements(row, columns.len())?;
        let fields = columns.iter().zip(cells);
        let fields = fields.map(|(name, value)| (cell(name), as_json(value)));
        Some(serde_json::Value::Object(fields.collect()))
    };
    rows.iter().map(object).collect()
}

/// A value without those in it, as text; with them, as JSON.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Error(message) => format!("(error) {}", text(message)),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Double(number) => number.to_string(),
        Value::BigNumber(bytes)
        | Value::Simple(bytes)
        | Value::Bulk(bytes)
        | Value::Verbatim(bytes) => text(bytes),
        nested => as_json(nested).to_string(),
    }
}

/// Rows of values, as replies of several kinds have them.
struct Rows<'v> {
    header: Option<Vec<String>>,
    rows: Vec<Vec<&'v Value>>,
    /// What else the reply says.
    others: Vec<(&'v Value, &'v Value)>,
}

impl<'v> Rows<'v> {
    fn of(value: &'v Value) -> Option<Rows<'v>> {
        match value {
            Value::Map(pairs) => Rows::named(value, pairs).or_else(|| {
                let rows = pairs.iter().map(|(key, value)| vec![key, value]).collect();
                let header = Some(vec!["field".to_owned(), "value".to_owned()]);
                (!pairs.is_empty()).then_some(Rows { header, rows, others: Vec::new() })
            }),
            Value::Array(values) => Rows::maps(values).or_else(|| Rows::lists(values)),
            _ => None,
        }
    }

    /// Columns and rows under these names.
    fn named(value: &'v Value, pairs: &'v [(Value, Value)]) -> Option<Rows<'v>> {
        let Value::Array(columns) = value.field("columns")? else { return None };
        let Value::Array(rows) = value.field("rows")? else { return None };
        let rows: Option<Vec<_>> = rows.iter().map(|row| elements(row, columns.len())).collect();
        let is_other =
            |(key, _): &&(Value, Value)| !matches!(key.bytes(), Some(b"columns" | b"rows"));
        let others = pairs.iter().filter(is_other).map(|(key, value)| (key, value)).collect();
        Some(Rows { header: Some(columns.iter().map(cell).collect()), rows: rows?, others })
    }

    /// A map a row, with the same fields in each.
    fn maps(values: &'v [Value]) -> Option<Rows<'v>> {
        let Some(Value::Map(first)) = values.first() else { return None };
        let row = |value: &'v Value| {
            let Value::Map(pairs) = value else { return None };
            let names = || pairs.iter().map(|(name, _)| name);
            let is_alike = names().eq(first.iter().map(|(name, _)| name));
            is_alike.then(|| pairs.iter().map(|(_, value)| value).collect())
        };
        let rows: Option<Vec<_>> = values.iter().map(row).collect();
        let header = Some(first.iter().map(|(name, _)| cell(name)).collect());
        Some(Rows { header, rows: rows?, others: Vec::new() })
    }

    /// An array a row, as long as each other.
    fn lists(values: &'v [Value]) -> Option<Rows<'v>> {
        let Some(Value::Array(first)) = values.first() else { return None };
        let rows: Option<Vec<_>> =
            values.iter().map(|value| elements(value, first.len())).collect();
        let rows = rows?;
        let is_plain = !first.is_empty() && rows.iter().flatten().all(|cell| !cell.is_nested());
        is_plain.then_some(Rows { header: None, rows, others: Vec::new() })
    }
}

fn elements(row: &Value, count: usize) -> Option<Vec<&Value>> {
    match row {
        Value::Array(cells) if cells.len() == count => Some(cells.iter().collect()),
        _ => None,
    }
}

fn write_csv(value: &Value, out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
    match (Rows::of(value), value) {
        (Some(rows), _) => {
            if let Some(header) = rows.header {
                writer.write_record(header)?;
            }
            for row in rows.rows {
                writer.write_record(row.into_iter().map(bytes_of))?;
            }
        }
        (None, Value::Array(values) | Value::Push(values)) => {
            for value in values {
                writer.write_record([bytes_of(value)])?;
            }
        }
        (None, value) => writer.write_record([bytes_of(value)])?,
    }
    writer.flush()
}

/// The bytes of a text as they are, and other values as text.
fn bytes_of(value: &Value) -> Vec<u8> {
    value.bytes().map_or_else(|| cell(value).into_bytes(), <[u8]>::to_vec)
}

fn write_text(value: &Value, reader: Reader, out: &mut impl Write) -> io::Result<()> {
    match Rows::of(value) {
        Some(rows) => write_rows(&rows, out),
        None => write_nested(value, reader, "", out),
    }
}

/// Rows as a table of Markdown, and other values as text.
fn write_markdown(value: &Value, reader: Reader, out: &mut impl Write) -> io::Result<()> {
    let Some(rows) = Rows::of(value) else { return write_text(value, reader, out) };
    let width = rows.rows.first().map_or(0, Vec::len);
    let header = rows.header.unwrap_or_else(|| vec![String::new(); width]);
    writeln!(out, "{}", markdown_row(header.iter().map(|name| escaped(name))))?;
    writeln!(out, "{}", markdown_row(header.iter().map(|_| "---".into())))?;
    rows.rows.iter().try_for_each(|row| {
        let cells: Vec<_> = row.iter().map(|value| cell(value)).collect();
        writeln!(out, "{}", markdown_row(cells.iter().map(|cell| escaped(cell))))
    })
}

fn write_rows(rows: &Rows<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut written = match &rows.header {
        Some(header) => table(header.iter().map(|name| escaped(name).into_owned())),
        None => {
            let mut written = Table::new();
            written.load_style(presets::NOTHING);
            written
        }
    };
    for row in &rows.rows {
        written.add_row(row.iter().map(|value| escaped(&cell(value)).into_owned()));
    }
    for column in written.column_iter_mut() {
        column.set_padding((0, 2));
    }
    write_table(&written, out)?;
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Integer(number) => *number != 0,
        value => !value.is_nested(),
    };
    let others: Vec<_> = rows.others.iter().filter(|(_, value)| says(value)).collect();
    if !others.is_empty() {
        let said = others.iter().map(|(name, value)| format!("{} {}", cell(name), cell(value)));
        let said = said.collect::<Vec<_>>().join(", ");
        writeln!(out, "({})", escaped(&said))?;
    }
    Ok(())
}

/// A value as `redis-cli` writes it: with its kind for a person, bare for a program.
fn write_nested(
    value: &Value,
    reader: Reader,
    indent: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let values: Vec<&Value> = match value {
        Value::Array(values) | Value::Push(values) => values.iter().collect(),
        Value::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).collect(),
        plain => return write_plain(plain, reader, out),
    };
    if reader == Reader::Program {
        return values.iter().try_for_each(|value| write_nested(value, reader, "", out));
    }
    if values.is_empty() {
        return writeln!(out, "(empty)");
    }
    let width = values.len().to_string().len();
    for (index, value) in values.iter().enumerate() {
        let before = if index == 0 { "" } else { indent };
        write!(out, "{before}{:>width$}) ", index + 1)?;
        let indent = format!("{indent}{}", " ".repeat(width + 2));
        write_nested(value, reader, &indent, out)?;
    }
    Ok(())
}

fn write_plain(value: &Value, reader: Reader, out: &mut impl Write) -> io::Result<()> {
    match (value, reader) {
        (Value::Null, Reader::Person) => writeln!(out, "(nil)"),
        (Value::Integer(number), Reader::Person) => writeln!(out, "(integer) {number}"),
        (Value::Boolean(boolean), Reader::Person) => writeln!(out, "({boolean})"),
        (Value::Bulk(bytes), Reader::Person) => writeln!(out, "{}", quote(bytes)),
        (Value::Verbatim(bytes), Reader::Person) => {
            let text = text(bytes);
            text.lines().try_for_each(|line| writeln!(out, "{}", escaped(line)))
        }
        (Value::Simple(bytes), Reader::Person) => writeln!(out, "{}", escaped(&text(bytes))),
        (Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim(bytes), Reader::Program) => {
            out.write_all(bytes)?;
            writeln!(out)
        }
        (value, _) => writeln!(out, "{}", cell(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    fn list(values: &[Value]) -> Value {
        Value::Array(values.to_vec())
    }

    fn shown(value: &Value, form: Form, reader: Reader) -> String {
        let mut out = Vec::new();
        write(value, form, reader, &mut out).expect("memory takes it");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn plain_values_have_their_kind_for_people_alone() {
        for (value, person, program, json) in [
            (Value::Null, "(nil)\n", "\n", "null\n"),
            (Value::Simple("OK".into()), "OK\n", "OK\n", "\"OK\"\n"),
            (Value::Integer(5), "(integer) 5\n", "5\n", "5\n"),
            (bulk("a\"\u{1b}"), "\"a\\\"\\x1b\"\n", "a\"\u{1b}\n", "\"a\\\"\\u001b\"\n"),
            (Value::Bulk(b"\xff".into()), "\"\\xff\"\n", "", "\"\\\\xff\"\n"),
            (Value::Verbatim("a\r\nb".into()), "a\nb\n", "a\r\nb\n", "\"a\\r\\nb\"\n"),
            (Value::Double(1.5), "1.5\n", "1.5\n", "1.5\n"),
            (Value::Double(f64::INFINITY), "inf\n", "inf\n", "\"inf\"\n"),
            (Value::Boolean(true), "(true)\n", "true\n", "true\n"),
            (Value::BigNumber("99".into()), "99\n", "99\n", "\"99\"\n"),
            (
                Value::Error("ERR x".into()),
                "(error) ERR x\n",
                "(error) ERR x\n",
                "{\"error\":\"ERR x\"}\n",
            ),
        ] {
            assert_eq!(shown(&value, Form::Table, Reader::Person), person);
            if !program.is_empty() {
                assert_eq!(shown(&value, Form::Table, Reader::Program), program);
            }
            assert_eq!(shown(&value, Form::Json, Reader::Program), json);
        }
    }

    #[test]
    fn lists_are_numbered() {
        let value = list(&[bulk("a"), list(&[Value::Integer(1), list(&[])]), Value::Null]);
        let numbered = "1) \"a\"\n2) 1) (integer) 1\n   2) (empty)\n3) (nil)\n";
        assert_eq!(shown(&value, Form::Table, Reader::Person), numbered);
        assert_eq!(shown(&value, Form::Table, Reader::Program), "a\n1\n\n");
        assert_eq!(shown(&value, Form::Json, Reader::Program), "[\"a\",[1,[]],null]\n");
        assert_eq!(shown(&value, Form::Csv, Reader::Program), "a\n\"[1,[]]\"\n\"\"\n");
    }

    #[test]
    fn replies_with_rows_are_tables() {
        let columns = list(&[bulk("carrier"), bulk("count")]);
        let row = |name: &str, count| list(&[bulk(name), Value::Integer(count)]);
        let answer = Value::Map(vec![
            (bulk("columns"), columns),
            (bulk("rows"), list(&[row("UA", 7), row("B,6", 12)])),
            (bulk("accuracy"), list(&[])),
            (bulk("selected"), Value::Integer(19)),
            (bulk("missing"), Value::Integer(0)),
        ]);
        let text = "carrier  count\nUA       7\nB,6      12\n(selected 19)\n";
        assert_eq!(shown(&answer, Form::Table, Reader::Program), text);
        let csv = "carrier,count\nUA,7\n\"B,6\",12\n";
        assert_eq!(shown(&answer, Form::Csv, Reader::Program), csv);
        let maps = list(&[
            Value::Map(vec![(bulk("a"), Value::Integer(1)), (bulk("b"), bulk("x"))]),
            Value::Map(vec![(bulk("a"), Value::Integer(2)), (bulk("b"), bulk("y"))]),
        ]);
        assert_eq!(shown(&maps, Form::Csv, Reader::Program), "a,b\n1,x\n2,y\n");
        assert_eq!(shown(&maps, Form::Table, Reader::Person), "a  b\n1  x\n2  y\n");
        let pairs = list(&[row("a", 1), row("b\n", 2)]);
        assert_eq!(shown(&pairs, Form::Table, Reader::Person), "a    1\nb\\n  2\n");
        let map = Value::Map(vec![(bulk("a"), list(&[Value::Integer(1)]))]);
        assert_eq!(shown(&map, Form::Table, Reader::Person), "field  value\na      [1]\n");
        assert_eq!(shown(&map, Form::Json, Reader::Person), "{\"a\":[1]}\n");
        let markdown = "| a | b |\n| --- | --- |\n| 1 | x |\n| 2 | y |\n";
        assert_eq!(shown(&maps, Form::Markdown, Reader::Person), markdown);
        assert_eq!(shown(&bulk("a"), Form::Markdown, Reader::Program), "a\n");
    }
}
