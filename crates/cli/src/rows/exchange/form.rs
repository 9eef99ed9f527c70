//! The forms in which the entries of a table are rows of a file.
//!
//! | form | tables | columns |
//! |---|---|---|
//! | `Entries` | any | `key` and `value`, as bytes |
//! | `Fields` | those that declare fields | the fields; a key or value that they do not cover is bytes |
//! | `Cells` | those that a file with columns was loaded into | those of the file |
//! | `Lines` | those that JSON lines were loaded into | none: each row is a line |

use std::borrow::Cow;

use sapwood::aggregate::{Layout, Place};

use crate::rows::exchange::cell::{Cell, Column, Kind};
use crate::rows::exchange::packed::Side;
use crate::rows::exchange::text_rows::json_row;
use crate::rows::key_columns::KeyColumns;
use crate::rows::stored::{StoredFields, append_cell};
use crate::terminal::format::quoted;

/// The columns of entries as bytes.
pub(crate) const KEY: &str = "key";
pub(crate) const VALUE: &str = "value";

/// How entries are rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    Entries { columns: Vec<Column> },
    Fields { columns: Vec<Column>, key: Side, key_columns: usize, value: Side },
    Cells(Cells),
    Lines { keys: KeyColumns, columns: Vec<Column> },
}

/// The rows of a file that was loaded: texts, some of which are numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells {
    pub(crate) columns: Vec<Column>,
    /// The text that a missing value of each column stands for.
    pub(crate) absent: Vec<String>,
    pub(crate) keys: KeyColumns,
}

impl Form {
    pub(crate) fn entries() -> Self {
        let column = |name: &str| Column::new(name, Kind::Bytes);
        Form::Entries { columns: vec![column(KEY), column(VALUE)] }
    }

    /// The form of declared fields; none if it would say no more than that of entries, or if its
    /// columns could be taken for theirs.
    pub(crate) fn fields(layout: &Layout) -> Option<Self> {
        if layout.fields().iter().any(|field| [KEY, VALUE].contains(&field.name.as_str())) {
            return None;
        }
        let (key, mut columns) = Side::of(layout.fields(), Place::Key, KEY);
        let (value, value_columns) = Side::of(layout.fields(), Place::Value, VALUE);
        if (&key, &value) == (&Side::Whole, &Side::Whole) {
            return None;
        }
        let key_columns = columns.len();
        columns.extend(value_columns);
        Some(Form::Fields { columns, key, key_columns, value })
    }

    /// The form of rows with these columns, all of which are text.
    pub(crate) fn cells(names: &[String], keys: KeyColumns) -> Self {
        let columns = names.iter().map(|name| Column::new(name, Kind::Text)).collect();
        Form::Cells(Cells { columns, absent: vec![String::new(); names.len()], keys })
    }

    pub(crate) fn lines(keys: KeyColumns) -> Self {
        Form::Lines { keys, columns: vec![Column::new("line", Kind::Text)] }
    }

    /// The name of the form, for people and machines.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Form::Entries { .. } => "bytes",
            Form::Fields { .. } => "fields",
            Form::Cells(_) => "columns",
            Form::Lines { .. } => "lines",
        }
    }

    /// The columns of a row; the line, of lines.
    pub(crate) fn columns(&self) -> &[Column] {
        match self {
            Form::Entries { columns }
            | Form::Fields { columns, .. }
            | Form::Lines { columns, .. } => columns,
            Form::Cells(cells) => &cells.columns,
        }
    }

    /// The cells of an entry, or why it has none.
    pub(crate) fn split<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
        cells: &mut Vec<Cell<'a>>,
    ) -> Result<(), String> {
        cells.clear();
        let misfit = |which: &'static str| move |what: &str| format!("the {which} {what}");
        match self {
            Form::Entries { .. } => cells.extend([Cell::bytes(key), Cell::bytes(value)]),
            Form::Fields { key: key_side, value: value_side, .. } => {
                key_side.split(key, cells).map_err(misfit("key"))?;
                value_side.split(value, cells).map_err(misfit("value"))?;
            }
            Form::Cells(form) => form.split(value, cells)?,
            Form::Lines { .. } => {
                let line = std::str::from_utf8(value).map_err(|_| "the value is not UTF-8")?;
                if line.contains(['\n', '\r']) {
                    return Err("the value is more than one line".to_owned());
                }
                cells.push(Cell::text(line));
            }
        }
        Ok(())
    }

    /// The entry of cells, into `key` and `value`, or why they are none.
    pub(crate) fn join(
        &self,
        cells: &[Cell<'_>],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<(), String> {
        key.clear();
        value.clear();
        let [first, ..] = cells else { return Err("the row has no columns".to_owned()) };
        match self {
            Form::Entries { columns } => {
                for ((column, cell), out) in columns.iter().zip(cells).zip([key, value]) {
                    Side::Whole.join(
                        std::slice::from_ref(column),
                        std::slice::from_ref(cell),
                        out,
                    )?;
                }
                Ok(())
            }
            Form::Fields { columns, key: key_side, key_columns, value: value_side } => {
                let (key_cells, value_cells) = cells.split_at(*key_columns);
                let (key_names, value_names) = columns.split_at(*key_columns);
                key_side.join(key_names, key_cells, key)?;
                value_side.join(value_names, value_cells, value)
            }
            Form::Cells(form) => form.join(cells, key, value),
            Form::Lines { keys, .. } => {
                let Cell::Text(line) = first else { return Err("the line is not text".to_owned()) };
                let row = json_row(line.as_bytes(), 0).map_err(|malformed| malformed.what)?;
                keys.encode_members(row.object().expect("a line is an object"), key)?;
                value.extend_from_slice(line.trim().as_bytes());
                Ok(())
            }
        }
    }
}

impl Cells {
    fn split<'a>(&self, value: &'a [u8], cells: &mut Vec<Cell<'a>>) -> Result<(), String> {
        let mut stored = StoredFields(value);
        for (column, absent) in self.columns.iter().zip(&self.absent) {
            let bytes = stored.next().ok_or("the value has fewer columns than its file")?;
            let text = std::str::from_utf8(bytes)
                .map_err(|_| format!("column {} is not UTF-8", quoted(&column.name)))?;
            cells.push(match column.optional && text == absent {
                true => Cell::Null,
                false => column.parse(text)?,
            });
        }
        match stored.0.is_empty() {
            true => Ok(()),
            false => Err("the value has more columns than its file".to_owned()),
        }
    }

    fn join(
        &self,
        cells: &[Cell<'_>],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut texts = Vec::with_capacity(cells.len());
        for ((cell, column), absent) in cells.iter().zip(&self.columns).zip(&self.absent) {
            texts.push(text_of(cell, column, absent)?);
        }
        for text in &texts {
            append_cell(text.as_bytes(), value);
        }
        self.keys.encode_cells(|index| texts.get(index).map(|text| &**text), key)
    }
}

/// A cell as the text that a loaded file had.
fn text_of<'a>(
    cell: &'a Cell<'_>,
    column: &Column,
    absent: &'a str,
) -> Result<Cow<'a, str>, String> {
    Ok(match cell {
        Cell::Null => Cow::Borrowed(absent),
        Cell::Text(text) => Cow::Borrowed(text),
        Cell::Int(number) => Cow::Owned(number.to_string()),
        Cell::Float64(number) => Cow::Owned(number.to_string()),
        Cell::Float32(number) => Cow::Owned(number.to_string()),
        Cell::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
        Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => return Err(format!("column {} is not UTF-8", quoted(&column.name))),
        },
    })
}
