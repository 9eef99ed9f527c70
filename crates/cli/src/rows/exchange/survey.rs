//! The form that fits all entries of a table.
//!
//! A walk splits every entry into cells and joins them again. Where one comes back as other bytes,
//! the table is written as keys and values: a file never has less than the table.

use std::ops::ControlFlow;

use sapwood::AnyTable;

use crate::args::key_spec::ColumnType;
use crate::rows::columns::Columns;
use crate::rows::exchange::cell::{Cell, Column, Kind, text_of_bytes};
use crate::rows::exchange::form::{Form, KEY, VALUE};
use crate::rows::kept::Description;
use crate::rows::rows_table;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::shown;
use crate::terminal::ui::Ui;
use sapwood::files::Format;

/// A form that fits.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) form: Form,
    /// Why it is not the one that the table has, if it is not.
    pub(crate) instead: Option<String>,
    pub(crate) rows: u64,
}

/// The form that a table has by what is known of it; that of entries where nothing is, or where the
/// format has no room for it, and why.
fn own_form(
    table: &AnyTable,
    description: &Description,
    format: Format,
) -> (Form, Option<&'static str>) {
    let keys = || description.keys.clone();
    match &description.columns {
        Columns::Csv(names) => match names.len() {
            // Without its type a file of them would be read as one of bytes.
            2 if are_entry_names(names) && !format.is_columnar() => {
                (Form::entries(), Some("its columns are called key and value"))
            }
            _ => (Form::cells(names, keys()), None),
        },
        Columns::Json => match format {
            Format::Jsonl => (Form::lines(keys()), None),
            _ => (Form::entries(), Some("rows of JSON lines need not have the same columns")),
        },
        // Rows of a schema are not surveyed: each is one of its columns.
        Columns::Typed(_) => (Form::entries(), None),
        Columns::Entries => match table.fields() {
            None => (Form::entries(), None),
            Some(layout) => match Form::fields(layout) {
                Some(form) => (form, None),
                None => (Form::entries(), Some("its fields leave bytes out")),
            },
        },
    }
}

fn are_entry_names(names: &[String]) -> bool {
    [KEY, VALUE].iter().all(|own| names.iter().any(|name| name == own))
}

/// Finds the form in which a table is written.
pub(crate) fn survey(
    table: &AnyTable,
    description: &Description,
    format: Format,
    raw: bool,
    ui: &Ui,
) -> Outcome<Survey> {
    let (form, instead) = match raw {
        true => (Form::entries(), None),
        false => own_form(table, description, format),
    };
    if matches!(form, Form::Entries { .. }) {
        let rows = table.len_estimate() as u64;
        return Ok(Survey { form, instead: instead.map(str::to_owned), rows });
    }
    let progress = ui.progress("looking", table.len_estimate() as u64);
    let mut walk = Walk::new(&form, format);
    let end = rows_table::scan_entries(table, |key, value| {
        progress.inc(1);
        match walk.look(key, value) {
            Err(why) => {
                let key = text_of_bytes(key);
                ControlFlow::Break(Some(format!("of the entry with key {}: {why}", shown(&key))))
            }
            Ok(()) if ui.interrupt.asked() => ControlFlow::Break(None),
            Ok(()) => ControlFlow::Continue(()),
        }
    })?;
    progress.finish_and_clear();
    let (rows, guesses) = (walk.rows, walk.guesses);
    match end {
        ControlFlow::Break(None) => Err(Failure::Interrupted("nothing is written".to_owned())),
        ControlFlow::Break(Some(why)) => {
            let rows = table.len_estimate() as u64;
            Ok(Survey { form: Form::entries(), instead: Some(why), rows })
        }
        ControlFlow::Continue(()) => {
            let form = match form {
                Form::Cells(mut cells) if format.is_columnar() => {
                    for (index, guess) in guesses.into_iter().enumerate() {
                        (cells.columns[index], cells.absent[index]) =
                            guess.settle(&cells.columns[index]);
                    }
                    Form::Cells(cells)
                }
                form => form,
            };
            Ok(Survey { form, instead: None, rows })
        }
    }
}

/// A walk over all entries.
struct Walk<'f> {
    form: &'f Form,
    format: Format,
    rows: u64,
    guesses: Vec<Guess>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'f> Walk<'f> {
    fn new(form: &'f Form, format: Format) -> Self {
        let guesses = match form {
            Form::Cells(cells) => {
                (0..cells.columns.len()).map(|index| Guess::of(cells.keys.kind_of(index))).collect()
            }
            _ => Vec::new(),
        };
        Walk { form, format, rows: 0, guesses, key: Vec::new(), value: Vec::new() }
    }

    /// Fails if the entry does not come back from its cells.
    fn look(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.rows += 1;
        let columns = self.form.columns();
        let mut cells = Vec::with_capacity(columns.len());
        self.form.split(key, value, &mut cells)?;
        self.form.join(&cells, &mut self.key, &mut self.value)?;
        if self.key != key {
            return Err("the key does not follow from the columns".to_owned());
        }
        if self.value != value {
            return Err("the value has other bytes than its columns say".to_owned());
        }
        if !self.format.is_columnar() {
            for (cell, column) in cells.iter().zip(columns) {
                self.look_at_text(cell, column)?;
            }
        } else {
            for (guess, cell) in self.guesses.iter_mut().zip(&cells) {
                if let Cell::Text(text) = cell {
                    guess.see(text);
                }
            }
        }
        match (&self.form, &cells[..]) {
            (Form::Lines { .. }, [Cell::Text(line)]) if is_entry(line) => {
                Err("its members are called key and value".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn look_at_text(&self, cell: &Cell<'_>, column: &Column) -> Result<(), String> {
        if !cell.is_exact_as_text() {
            return Err(format!("a NaN of `{}` has bits that text has not", column.name));
        }
        let is_empty = match cell {
            Cell::Text(text) => text.is_empty(),
            Cell::Bytes(bytes) => bytes.is_empty(),
            _ => false,
        };
        if is_empty && column.optional && self.format == Format::Csv {
            return Err(format!("an empty `{}` would be a missing one", column.name));
        }
        Ok(())
    }
}

/// Whether a line could be one of an entry's bytes.
fn is_entry(line: &str) -> bool {
    if !(line.contains("\"key\"") && line.contains("\"value\"")) {
        return false;
    }
    match serde_json::from_str(line) {
        Ok(serde_json::Value::Object(members)) => {
            members.len() == 2 && [KEY, VALUE].iter().all(|name| members.contains_key(*name))
        }
        _ => false,
    }
}

/// What the texts of a column are: numbers, if each is one that would be written the same.
struct Guess {
    can_be_int: bool,
    can_be_float: bool,
    numbers: u64,
    absent: Option<&'static str>,
}

impl Guess {
    /// Before any text was seen. A key column has the type that it sorts by.
    fn of(key: Option<ColumnType>) -> Self {
        let is_text = key == Some(ColumnType::Text);
        Guess { can_be_int: !is_text, can_be_float: !is_text, numbers: 0, absent: None }
    }

    fn see(&mut self, text: &str) {
        if !self.can_be_int && !self.can_be_float {
            return;
        }
        if let Some(absent) = ["", "NA"].into_iter().find(|absent| *absent == text) {
            let other = self.absent.is_some_and(|before| before != absent);
            if other {
                (self.can_be_int, self.can_be_float) = (false, false);
            }
            self.absent = Some(absent);
            return;
        }
        self.numbers += 1;
        let int = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
        let is_float = match int {
            // A float has all of its digits.
            Some(number) if number.unsigned_abs() < 1 << 53 => true,
            _ => text
                .parse::<f64>()
                .is_ok_and(|number| number.is_finite() && number.to_string() == text),
        };
        self.can_be_int &= int.is_some();
        self.can_be_float &= is_float;
    }

    /// The column with its type, and the text that stands for a missing value.
    fn settle(self, column: &Column) -> (Column, String) {
        let kind = match self.numbers {
            0 => Kind::Text,
            _ if self.can_be_int => Kind::INT64,
            _ if self.can_be_float => Kind::Float64,
            _ => Kind::Text,
        };
        if kind == Kind::Text {
            return (column.clone(), String::new());
        }
        let optional = self.absent.is_some();
        let column = Column { name: column.name.clone(), kind, optional };
        (column, self.absent.unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(texts: &[&str]) -> (Kind, Option<String>) {
        let mut guess = Guess::of(None);
        texts.iter().for_each(|text| guess.see(text));
        let (column, absent) = guess.settle(&Column::new("c", Kind::Text));
        (column.kind, column.optional.then_some(absent))
    }

    #[test]
    fn columns_are_numbers_only_if_each_is_written_the_same() {
        let missing = |text: &str| Some(text.to_owned());
        for (texts, kind, absent) in [
            (&["1", "-2", "9223372036854775807"][..], Kind::INT64, None),
            (&["1", "", "3"], Kind::INT64, missing("")),
            (&["NA", "1"], Kind::INT64, missing("NA")),
            (&["NA", "1", ""], Kind::Text, None),
            (&["", ""], Kind::Text, None),
            (&["1", "0.5", "-0"], Kind::Float64, None),
            (&["1.50"], Kind::Text, None),
            (&["007"], Kind::Text, None),
            (&["+1"], Kind::Text, None),
            (&["1e3"], Kind::Text, None),
            (&["9223372036854775808", "0.5"], Kind::Text, None),
            (&["9007199254740992", "0.5"], Kind::Float64, None),
            (&["9223372036854775807", "0.5"], Kind::Text, None),
            (&["inf", "1"], Kind::Text, None),
            (&["NaN"], Kind::Text, None),
            (&["1", "x"], Kind::Text, None),
        ] {
            assert_eq!(guessed(texts), (kind, absent), "{texts:?}");
        }
        let mut key = Guess::of(Some(ColumnType::Text));
        key.see("1");
        assert_eq!(key.settle(&Column::new("c", Kind::Text)).0.kind, Kind::Text);
    }
}
