//! Rows of files whose columns have types, as cells.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;

use sapwood::files::{FileSource, Format, ReadOptions};
use sapwood::schema::{Batch, Value};

use crate::rows::exchange::cell::{Cell, Column, Kind};
use crate::rows::exchange::form::Form;
use crate::rows::exchange::origin::{METADATA, Origin};
use crate::rows::exchange::reader::{Visit, bad_row};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::quoted;
use crate::terminal::ui::Ui;

/// A file of typed columns.
pub(crate) struct ColumnFile {
    name: String,
    source: FileSource,
    pub(crate) names: Vec<String>,
}

impl ColumnFile {
    pub(crate) fn open(path: &Path, format: Format) -> Outcome<Self> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Err(Failure::Usage(format!(
                "{} files are read from their end on: give a file, not standard input",
                format.name()
            )));
        }
        let unread = |what: &str| Failure::Failed(format!("{name} cannot be read: {what}"));
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            return Err(unread("it is no file that can be read from its end on"));
        }
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let source = FileSource::open(path, &options)?;
        if let Some(notice) = source.notices().first() {
            return Err(unread(&format!("{notice}; rename or cast such columns first")));
        }
        let names = source.columns().iter().map(|column| column.name.clone()).collect();
        Ok(Self { name, source, names })
    }

    /// The file's description of the table that it came from, if it came from one.
    pub(crate) fn origin(&self) -> Outcome<Option<Origin>> {
        let Some(text) = self.source.metadata(METADATA) else { return Ok(None) };
        match Origin::parse(text) {
            Some(origin) => Ok(Some(origin)),
            None => Err(Failure::Failed(format!(
                "{}: what it says of its table (metadata {}) cannot be read; a newer sapwood may \
                 read it",
                self.name,
                quoted(METADATA)
            ))),
        }
    }

    /// Calls `visit` with the cells of each row.
    pub(crate) fn read(self, form: &Form, ui: &Ui, visit: &mut Visit<'_>) -> Outcome {
        let columns = form.columns();
        let place = |column: &Column| self.names.iter().position(|name| *name == column.name);
        let places: Vec<usize> =
            columns.iter().map(|column| place(column).expect("the names were compared")).collect();
        let progress = match self.source.rows_estimate() {
            Some(rows) => ui.progress("importing", rows),
            None => ui.progress_unknown("importing"),
        };
        let (mut number, mut outcome) = (0, Ok(()));
        let scan = self.source.scan(&places, false)?;
        // One thread has the rows in the order of the file.
        let read = scan.work(&mut |_, batch| {
            outcome = self.show(batch, &places, columns, &mut number, visit);
            progress.inc(batch.len as u64);
            match outcome.is_err() || ui.interrupt.asked() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        progress.finish_and_clear();
        outcome.and(read.map_err(Failure::Failed))
    }

    fn show(
        &self,
        batch: &Batch,
        places: &[usize],
        columns: &[Column],
        number: &mut u64,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        for row in 0..batch.len {
            *number += 1;
            let bad = |what: &str| bad_row(&self.name, "row", *number, what);
            let mut values = Vec::with_capacity(columns.len());
            for (vector, place) in batch.columns.iter().zip(places) {
                let value = vector.value(row, &self.source.columns()[*place].kind);
                values.push(value.map_err(|error| bad(&error.to_string()))?);
            }
            let cells = values.iter().zip(columns).map(|(value, column)| cell(value, column));
            let cells: Vec<Cell<'_>> =
                cells.collect::<Result<_, _>>().map_err(|what: String| bad(&what))?;
            visit(*number, &cells).map_err(|failure| match failure {
                Failure::Usage(what) => bad(&what),
                other => other,
            })?;
        }
        Ok(())
    }
}

/// A value as a cell; of a column of whole numbers of 128 bits, that of its digits.
fn cell<'v>(value: &'v Value<'_>, column: &Column) -> Result<Cell<'v>, String> {
    Ok(match (value, column.kind) {
        (Value::Null, _) => Cell::Null,
        (Value::Bool(value), _) => Cell::Bool(*value),
        (Value::Int(number), _) => Cell::Int(*number),
        (Value::Float(number), Kind::Float32) => Cell::Float32(*number as f32),
        (Value::Float(number), _) => Cell::Float64(*number),
        (Value::Bytes(bytes), _) => Cell::bytes(bytes),
        (Value::Text(text), Kind::Int { bits: 128, .. }) => return column.parse(text),
        (Value::Text(text), _) => Cell::text(text),
        (other, _) => Cell::Text(Cow::Owned(other.to_string())),
    })
}
