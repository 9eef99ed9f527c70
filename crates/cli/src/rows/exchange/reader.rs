//! Rows of a file of any format, as cells.

use std::path::Path;

use sapwood::files::Format as FileFormat;

use crate::args::rows::Format;
use crate::rows::exchange::cell::Cell;
use crate::rows::exchange::column_reader::ColumnFile;
use crate::rows::exchange::form::{Form, KEY, VALUE};
use crate::rows::exchange::origin::Origin;
use crate::rows::exchange::text_reader::TextFile;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::quoted;
use crate::terminal::ui::Ui;

/// What is called with the number of each row and its cells. It answers [`Failure::Usage`] of a row
/// that cannot be used, to which the place of the row is added.
pub(crate) type Visit<'v> = dyn FnMut(u64, &[Cell<'_>]) -> Outcome + 'v;

/// A file that was opened, of which the columns are known.
pub(crate) struct RowFile {
    pub(crate) origin: Option<Origin>,
    name: String,
    from: From,
}

enum From {
    Text(Box<TextFile>),
    Columns(Box<ColumnFile>),
}

impl RowFile {
    pub(crate) fn open(path: &Path, format: FileFormat, ui: &Ui) -> Outcome<Self> {
        let name = path.display().to_string();
        let text = match format {
            FileFormat::Csv => Some(Format::Csv),
            FileFormat::Jsonl => Some(Format::Jsonl),
            _ => None,
        };
        match text {
            Some(text) => {
                let file = TextFile::open(path, text, ui)?;
                Ok(Self { origin: None, name, from: From::Text(Box::new(file)) })
            }
            None => {
                let file = ColumnFile::open(path, format)?;
                let origin = file.origin()?;
                Ok(Self { origin, name, from: From::Columns(Box::new(file)) })
            }
        }
    }

    /// The columns, as far as the file tells.
    pub(crate) fn names(&self) -> &[String] {
        match &self.from {
            From::Text(file) => &file.names,
            From::Columns(file) => &file.names,
        }
    }

    /// Whether the columns are those of entries as bytes.
    pub(crate) fn has_entries(&self) -> bool {
        let names = self.names();
        names.len() == 2 && [KEY, VALUE].iter().all(|own| names.iter().any(|name| name == own))
    }

    /// Whether rows are JSON lines, which need not have the same members.
    pub(crate) fn has_lines(&self) -> bool {
        match &self.from {
            From::Text(file) => file.has_lines(),
            From::Columns(_) => false,
        }
    }

    /// What rows are counted by.
    pub(crate) fn unit(&self) -> &'static str {
        match &self.from {
            From::Text(_) => "line",
            From::Columns(_) => "row",
        }
    }

    /// Whether there is no row, and nothing that tells columns.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.from {
            From::Text(file) => file.is_empty(),
            From::Columns(_) => false,
        }
    }

    /// Refuses a file that has not the columns of a form.
    pub(crate) fn expect_columns(&self, form: &Form) -> Outcome {
        if matches!(form, Form::Lines { .. }) || self.is_empty() {
            return Ok(());
        }
        let names = self.names();
        let has = || {
            let names: Vec<String> = names.iter().take(40).map(|name| quoted(name)).collect();
            names.join(", ")
        };
        let columns = form.columns();
        if let Some(missing) = columns.iter().find(|c| !names.contains(&c.name)) {
            return Err(Failure::Failed(format!(
                "{}: no column {}; it has {}; rename its columns, or import into another table",
                self.name,
                quoted(&missing.name),
                has()
            )));
        }
        if let Some(unknown) = names.iter().find(|name| columns.iter().all(|c| c.name != **name)) {
            return Err(Failure::Failed(format!(
                "{}: the table has no column {}; leave it out, or import into another table",
                self.name,
                quoted(unknown)
            )));
        }
        Ok(())
    }

    /// Calls `visit` with each row, in the order of the columns of `form`. Ends early, and well, when
    /// the user has asked to stop.
    pub(crate) fn read(self, form: &Form, ui: &Ui, visit: &mut Visit<'_>) -> Outcome {
        match self.from {
            From::Text(file) => file.read(form, ui, visit),
            From::Columns(file) => file.read(form, ui, visit),
        }
    }
}

/// The failure of a row: in which file, where, what, and what to do.
pub(crate) fn bad_row(name: &str, unit: &str, number: u64, what: &str) -> Failure {
    Failure::Failed(format!("{name}, {unit} {number}: {what}; mend it and import the file again"))
}
