//! Rows of CSV and JSON lines as their text, one after the other, each with the line it stands on: for `sapwood
//! import`, which has entries back byte for byte.
//!
//! *Not for* rows of types, which [`FileSource`](sapwood::files::FileSource) reads.

use std::io::{BufRead, BufReader, Read};

use serde_json::{Map, Value};

use crate::args::rows::Format;
use crate::rows::columns::Columns;
use crate::rows::lines::{Lines, NotingReader, byte_order_mark, unclosed};
use crate::rows::source::Source;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{plural, quoted};
use sapwood::files::{Renamed, distinct_names, plain};

/// The longest line of JSON that is read: no longer value could be kept.
const LINE_BYTES_MAX: u64 = sapwood::VALUE_BYTES_MAX as u64;

/// A row and where it stands.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) line: u64,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Csv(csv::StringRecord),
    /// The line as it is, and what it says.
    Json {
        text: String,
        object: Map<String, Value>,
    },
}

/// A row that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: u64,
    pub(crate) what: String,
}

impl Row {
    pub(crate) fn object(&self) -> Option<&Map<String, Value>> {
        match &self.body {
            Body::Csv(_) => None,
            Body::Json { object, .. } => Some(object),
        }
    }
}

/// Reads the rows of a source.
pub(crate) struct RowReader {
    name: String,
    columns: Columns,
    renamed: Vec<Renamed>,
    input: Decoder,
}

enum Decoder {
    Csv {
        reader: csv::Reader<NotingReader<Box<dyn Read + Send>>>,
        record: csv::ByteRecord,
        lines: Lines,
    },
    Json {
        reader: BufReader<Box<dyn Read + Send>>,
        line: u64,
        bytes: Vec<u8>,
    },
}

impl RowReader {
    /// Begins to read: of CSV, the header.
    pub(crate) fn new(source: Source) -> Outcome<Self> {
        let Source { name, bytes, .. } = source;
        match source.format {
            Format::Jsonl => Ok(Self {
                name,
                columns: Columns::Json,
                renamed: Vec::new(),
                input: Decoder::Json {
                    reader: BufReader::with_capacity(256 * 1024, bytes),
                    line: 0,
                    bytes: Vec::new(),
                },
            }),
            Format::Csv => {
                let lines = Lines::default();
                let mut reader = csv::ReaderBuilder::new()
                    .flexible(true)
                    .buffer_capacity(256 * 1024)
                    .from_reader(lines.note(bytes));
                let header =
                    reader.byte_headers().map_err(|error| csv_failure(&name, &lines, 1, &error))?;
                if let Some(line) = lines.unclosed_quote() {
                    return Err(unclosed(&name, line));
                }
                if header.is_empty() {
                    return Err(Failure::Failed(format!(
                        "{name} is empty: a header line with the column names is expected"
                    )));
                }
                let columns =
                    header.iter().map(|field| String::from_utf8_lossy(field).into_owned());
                let (columns, renamed) = distinct_names(columns.collect());
                Ok(Self {
                    columns: Columns::Csv(columns),
                    renamed,
                    name,
                    input: Decoder::Csv { reader, record: csv::ByteRecord::new(), lines },
                })
            }
        }
    }

    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Columns of the header that share a name with one before them.
    pub(crate) fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// The next row, or what is wrong with it; `None` at the end.
    pub(crate) fn next_row(&mut self) -> Outcome<Option<Result<Row, Malformed>>> {
        match &mut self.input {
            Decoder::Csv { reader, record, lines } => match reader.read_byte_record(record) {
                Ok(false) => Ok(None),
                Ok(true) => {
                    // The reader takes all that is left for one value, and says nothing.
                    if let Some(line) = lines.unclosed_quote() {
                        return Err(unclosed(&self.name, line));
                    }
                    let last = lines.of_record_end(reader.position().byte());
                    let breaks = record.as_slice().iter().filter(|byte| **byte == b'\n').count();
                    Ok(Some(csv_row(record, last - breaks as u64, &self.columns)))
                }
                Err(error) => {
                    let line = lines.of_record_end(reader.position().byte());
                    Err(csv_failure(&self.name, lines, line, &error))
                }
            },
            Decoder::Json { reader, line, bytes } => loop {
                bytes.clear();
                *line += 1;
                let read = reader.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', bytes);
                if *line == 1 {
                    bytes.drain(..byte_order_mark(bytes));
                }
                match read {
                    Err(error) => return Err(cannot_read(&self.name, *line, &plain(&error))),
                    Ok(0) => return Ok(None),
                    Ok(length) if length as u64 > LINE_BYTES_MAX => {
                        let what = "the line is longer than 256 MiB; is this JSON lines?";
                        return Err(cannot_read(&self.name, *line, what));
                    }
                    Ok(_) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                    Ok(_) => return Ok(Some(json_row(bytes, *line))),
                }
            },
        }
    }
}

fn cannot_read(name: &str, line: u64, what: &str) -> Failure {
    Failure::Failed(format!(
        "{name} cannot be read on from line {line}: {what}; is the file whole?"
    ))
}

fn csv_failure(name: &str, lines: &Lines, line: u64, error: &csv::Error) -> Failure {
    match (lines.unclosed_quote(), error.kind()) {
        (Some(line), _) => unclosed(name, line),
        (None, csv::ErrorKind::Io(error)) => cannot_read(name, line, &plain(error)),
        (None, _) => cannot_read(name, line, &error.to_string()),
    }
}

fn csv_row(record: &csv::ByteRecord, line: u64, columns: &Columns) -> Result<Row, Malformed> {
    let Columns::Csv(names) = columns else {
        unreachable!("CSV input has CSV columns");
    };
    if record.len() != names.len() {
        let fields = plural(record.len(), "field");
        let what = format!("{fields}, the header has {}", names.len());
        return Err(Malformed { line, what });
    }
    match csv::StringRecord::from_byte_record(record.clone()) {
        Ok(record) => Ok(Row { line, body: Body::Csv(record) }),
        Err(error) => {
            let column = names.get(error.utf8_error().field()).map_or("", String::as_str);
            let what = format!("column {} is not UTF-8", quoted(column));
            Err(Malformed { line, what })
        }
    }
}

/// The row of a line of JSON.
pub(crate) fn json_row(bytes: &[u8], line: u64) -> Result<Row, Malformed> {
    let malformed = |what: String| Malformed { line, what };
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("not UTF-8".to_owned()))?;
    let text = text.trim();
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => {
            Ok(Row { line, body: Body::Json { text: text.to_owned(), object } })
        }
        Ok(_) => Err(malformed("JSON, but not an object".to_owned())),
        Err(error) => {
            // serde_json counts lines within this one line: keep its words and the column.
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or_default();
            Err(malformed(format!("not JSON: {words} at column {}", error.column())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::ProgressBar;
    use std::io::Cursor;

    fn read(format: Format, text: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut reader = RowReader::new(Source {
            name: "input".to_owned(),
            format,
            bytes: Box::new(Cursor::new(text.to_vec())),
            progress: ProgressBar::hidden(),
        })
        .expect("a header");
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row().expect("readable") {
            rows.push(match row {
                Ok(Row { line, body: Body::Csv(record) }) => (line, Ok(record[0].to_owned())),
                Ok(Row { line, body: Body::Json { object, .. } }) => {
                    let cell = object.get("a").map(ToString::to_string);
                    (line, Ok(cell.unwrap_or_else(|| "is missing".to_owned())))
                }
                Err(malformed) => (malformed.line, Err(malformed.what)),
            });
        }
        rows
    }

    fn good(line: u64, cell: &str) -> (u64, Result<String, String>) {
        (line, Ok(cell.to_owned()))
    }

    fn bad(line: u64, what: &str) -> (u64, Result<String, String>) {
        (line, Err(what.to_owned()))
    }

    #[test]
    fn csv_rows_have_their_lines() {
        assert_eq!(
            read(
                Format::Csv,
                b"\xEF\xBB\xBFa,b\r\n1,2\r\n\n\"x\ny\",3\n4\n5,6,7\n\xFF,8\n9,\xFE\n10,11"
            ),
            [
                good(2, "1"),
                good(4, "x\ny"),
                bad(6, "1 field, the header has 2"),
                bad(7, "3 fields, the header has 2"),
                bad(8, "column `a` is not UTF-8"),
                bad(9, "column `b` is not UTF-8"),
                good(10, "10"),
            ]
        );
    }

    #[test]
    fn a_quote_that_never_closes_is_named_where_it_opens() {
        let source = |text: &str| Source {
            name: "input".to_owned(),
            format: Format::Csv,
            bytes: Box::new(Cursor::new(text.as_bytes().to_vec())),
            progress: ProgressBar::hidden(),
        };
        let failed = |failure: Failure, line: u64| match failure {
            Failure::Failed(why) => {
                let says = format!("input cannot be read from line {line} on: a quote opens");
                assert!(why.starts_with(&says), "{why}");
            }
            other => panic!("{other:?}"),
        };
        for end in ["", "\n", "\r\n", "\n\n", "\"\"\n"] {
            for (row, line) in [("\"3,4", 3), ("3,\"4", 3), ("\"x\ny\",\"4", 4)] {
                let text = format!("a,b\n1,2\n{row}\n5,6{end}");
                let mut reader = RowReader::new(source(&text)).expect("a header");
                assert!(matches!(reader.next_row(), Ok(Some(Ok(_)))), "the row before it is good");
                failed(reader.next_row().expect_err("no row"), line);
            }
        }
        failed(RowReader::new(source("a,\"b\n1,2\n")).err().expect("no header"), 1);
    }

    #[test]
    fn a_mark_before_the_first_line_is_no_part_of_it() {
        let text = "\u{FEFF}{\"a\": 1}\n{\"a\": 2}\n\u{FEFF}{\"a\": 3}\n";
        let rows = read(Format::Jsonl, text.as_bytes());
        assert_eq!(rows[..2], [good(1, "1"), good(2, "2")]);
        assert!(matches!(&rows[2], (3, Err(what)) if what.starts_with("not JSON")), "{rows:?}");
        assert_eq!(read(Format::Jsonl, "\u{FEFF}".as_bytes()), []);
    }

    #[test]
    fn json_rows_have_their_lines() {
        let text = b"{\"a\": \"x\"}\n\n  \n{\"a\": 1.50}\n[1]\n{\"a\": \n\xFF\n{\"b\": 1}\n{\"a\": null}\n{\"a\": [1]}\n{\"a\": {}}\n{\"a\": true}";
        assert_eq!(
            read(Format::Jsonl, text),
            [
                good(1, "\"x\""),
                good(4, "1.5"),
                bad(5, "JSON, but not an object"),
                bad(6, "not JSON: EOF while parsing a value at column 5"),
                bad(7, "not UTF-8"),
                good(8, "is missing"),
                good(9, "null"),
                good(10, "[1]"),
                good(11, "{}"),
                good(12, "true"),
            ]
        );
    }

    #[test]
    fn nested_json_beyond_reason_is_malformed() {
        let text = "[".repeat(100_000);
        let rows = read(Format::Jsonl, text.as_bytes());
        assert!(
            matches!(&rows[..], [(1, Err(what))] if what.contains("recursion limit")),
            "{rows:?}"
        );
    }
}
