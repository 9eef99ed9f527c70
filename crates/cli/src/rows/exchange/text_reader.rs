//! Rows of CSV and JSON lines, as cells.

use std::borrow::Cow;
use std::path::Path;

use indicatif::ProgressBar;
use serde_json::{Map, Number, Value};

use crate::args::rows::Format;
use crate::rows::columns::Columns;
use crate::rows::exchange::cell::{Cell, Column, Kind};
use crate::rows::exchange::form::Form;
use crate::rows::exchange::reader::{Visit, bad_row};
use crate::rows::exchange::text_rows::{Body, Malformed, Row, RowReader};
use crate::rows::source::Source;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::quoted;
use crate::terminal::ui::Ui;

/// A file of text whose columns are known.
pub(crate) struct TextFile {
    name: String,
    reader: RowReader,
    /// The row that was read for its columns.
    first: Option<Row>,
    progress: ProgressBar,
    /// The columns of the header; of JSON lines, the members of the first.
    pub(crate) names: Vec<String>,
}

impl TextFile {
    pub(crate) fn open(path: &Path, format: Format, ui: &Ui) -> Outcome<Self> {
        let source = Source::of(path, format, ui)?;
        let (name, progress) = (source.name.clone(), source.progress.clone());
        let mut reader = RowReader::new(source)?;
        if let Some(renamed) = reader.renamed().first() {
            return Err(Failure::Failed(format!("{name}, line 1: {renamed}; rename one of them")));
        }
        let mut first = None;
        let names = match reader.columns() {
            Columns::Csv(names) => names.clone(),
            Columns::Json | Columns::Entries | Columns::Typed(_) => {
                first = next(&mut reader, &name, ui)?;
                let object = first.as_ref().and_then(|row: &Row| row.object());
                object.map(|object| object.keys().cloned().collect()).unwrap_or_default()
            }
        };
        Ok(Self { name, reader, first, progress, names })
    }

    /// Whether there is no row to tell columns by, and no header.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.reader.columns(), Columns::Json) && self.first.is_none()
    }

    /// Whether rows are JSON lines.
    pub(crate) fn has_lines(&self) -> bool {
        matches!(self.reader.columns(), Columns::Json)
    }

    /// Calls `visit` with the cells of each row.
    pub(crate) fn read(mut self, form: &Form, ui: &Ui, visit: &mut Visit<'_>) -> Outcome {
        let columns = form.columns();
        let places: Vec<usize> = match self.has_lines() {
            true => Vec::new(),
            false => {
                let place = |column: &Column| self.names.iter().position(|n| *n == column.name);
                columns
                    .iter()
                    .map(|column| place(column).expect("the names were compared"))
                    .collect()
            }
        };
        let mut row = self.first.take();
        loop {
            row = match row {
                Some(row) => Some(row),
                None => next(&mut self.reader, &self.name, ui)?,
            };
            let Some(read) = &row else { break };
            let line = read.line;
            let cells = cells_of(read, form, &places).map_err(|what| self.bad(line, &what))?;
            visit(line, &cells).map_err(|failure| match failure {
                Failure::Usage(what) => self.bad(line, &what),
                other => other,
            })?;
            row = None;
        }
        self.progress.finish_and_clear();
        Ok(())
    }

    fn bad(&self, line: u64, what: &str) -> Failure {
        self.progress.finish_and_clear();
        bad_row(&self.name, "line", line, what)
    }
}

/// The next row; none at the end, or when the user has asked to stop.
fn next(reader: &mut RowReader, name: &str, ui: &Ui) -> Outcome<Option<Row>> {
    if ui.interrupt.asked() {
        return Ok(None);
    }
    match reader.next_row() {
        Err(_) if ui.interrupt.asked() => Ok(None),
        Err(failure) => Err(failure),
        Ok(None) => Ok(None),
        Ok(Some(Ok(row))) => Ok(Some(row)),
        Ok(Some(Err(Malformed { line, what }))) => Err(bad_row(name, "line", line, &what)),
    }
}

fn cells_of<'r>(row: &'r Row, form: &Form, places: &[usize]) -> Result<Vec<Cell<'r>>, String> {
    let columns = form.columns();
    match (&row.body, form) {
        (Body::Csv(record), _) => {
            let cell = |(column, place): (&Column, &usize)| {
                column.parse(record.get(*place).unwrap_or_default())
            };
            columns.iter().zip(places).map(cell).collect()
        }
        (Body::Json { text, .. }, Form::Lines { .. }) => Ok(vec![Cell::text(text)]),
        (Body::Json { object, .. }, _) => {
            let unknown = || object.keys().find(|name| columns.iter().all(|c| c.name != **name));
            if let Some(unknown) = unknown().filter(|_| object.len() != columns.len()) {
                return Err(format!("the table has no column {}", quoted(unknown)));
            }
            columns.iter().map(|column| member(column, object)).collect()
        }
    }
}

/// The value of a column in an object.
fn member<'r>(column: &Column, object: &'r Map<String, Value>) -> Result<Cell<'r>, String> {
    let refused = |what: &str| Err(column.refusal(what));
    let Some(value) = object.get(&column.name) else {
        return Err(format!("column {} is missing", quoted(&column.name)));
    };
    match (value, column.kind) {
        (Value::Null, _) if column.optional => Ok(Cell::Null),
        (Value::Null, _) => refused("is null"),
        // Empty text is text here.
        (Value::String(text), Kind::Text) => Ok(Cell::text(text)),
        (Value::String(text), _) if text.is_empty() && column.kind != Kind::Bytes => {
            refused("is empty text")
        }
        (Value::String(text), _) => Column { optional: false, ..column.clone() }.parse(text),
        (Value::Bool(value), Kind::Bool) => Ok(Cell::Bool(*value)),
        (Value::Number(number), Kind::Int { .. }) => {
            let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            match whole {
                Some(whole) if column.kind.holds(whole) => Ok(Cell::Int(whole)),
                _ => refused(&format!("is {number}")),
            }
        }
        (Value::Number(number), Kind::Float64) => float(number, column).map(Cell::Float64),
        (Value::Number(number), Kind::Float32) => {
            float(number, column).map(|float| Cell::Float32(float as f32))
        }
        (Value::Number(number), Kind::Text) => Ok(Cell::Text(Cow::Owned(number.to_string()))),
        (Value::Bool(value), Kind::Text) => Ok(Cell::text(if *value { "true" } else { "false" })),
        (Value::Array(_), _) => refused("is an array"),
        (Value::Object(_), _) => refused("is an object"),
        (Value::Number(number), _) => refused(&format!("is {number}")),
        (Value::Bool(value), _) => refused(&format!("is {value}")),
    }
}

fn float(number: &Number, column: &Column) -> Result<f64, String> {
    number.as_f64().ok_or_else(|| column.refusal(&format!("is {number}")))
}
