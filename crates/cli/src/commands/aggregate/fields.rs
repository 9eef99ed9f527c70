//! The columns of rows as fields of a query.
//!
//! Typed rows, of a file or of a directory, have the columns of their schema, and a table that a program made the fields
//! that it declared. Of rows that are kept as text, a key column is read from the key, by its type. Other columns of CSV
//! are numbers if all their values in the first rows are, else text; if `NA` stands for a missing number, it stands for
//! missing text too. Columns of JSON lines have the types of their values, and members of objects are called `a.b`.
//! `--layout` names others, or replaces these.

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;

use sapwood::aggregate::{
    self, Compiled, ComponentForm, Field, Layout, Part, Path, Place, Read, Step,
};
use serde_json::Value;

use crate::rows::columns::Columns;
use crate::rows::open_input::Loaded;
use crate::rows::rows_table;
use crate::rows::stored::Stored;
use crate::terminal::exit::Outcome;
use crate::terminal::format::quoted;

/// Rows that decide what the columns are.
const FIRST_ROWS: usize = 10_000;

/// The text that, beside the empty one, stands for a missing number in the files of many programs.
const NA: &str = "NA";

/// The depth to which objects in JSON lines are searched for fields.
const DEPTH_MAX: usize = 8;

/// The fields of rows, and columns of text that some would take for numbers.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) fields: Vec<Field>,
    pub(super) mixed: Vec<Mixed>,
    /// Columns in which `NA` is a value though it stands for what is missing in others.
    pub(super) keeps_na: Vec<String>,
}

/// A column that is read as text though it has numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mixed {
    /// That would read its numbers.
    pub(super) field: Field,
    /// A value that is not a number.
    pub(super) other: String,
    /// Whether it has more numbers than others.
    is_mostly_numbers: bool,
}

impl Mixed {
    /// Whether a query takes numbers for text.
    pub(super) fn is_read_by(&self, query: &Compiled, layout: &Layout) -> bool {
        let name = &self.field.name;
        let is_text = |field: &Field| field.name == *name && matches!(field.read, Read::Text(_));
        self.is_mostly_numbers && query.reads_field(name) && layout.fields().iter().any(is_text)
    }
}

impl fmt::Display for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mixed { field, other, .. } = self;
        write!(
            f,
            "{} is read as text, and sorts so: it has {} beside numbers; --layout '{field}' with \
             --mismatches skip reads the numbers",
            quoted(&field.name),
            quoted(other)
        )
    }
}

/// The fields of the rows, with `own` beside or instead of them.
pub(super) fn of_rows(loaded: &Loaded, na: Option<&str>, own: &[Field]) -> Outcome<Fields> {
    let mut fields = own.to_vec();
    let mut mixed = Vec::new();
    let mut keeps_na = Vec::new();
    let absent = |text: &str| Some(aggregate::Value::from(text).into_owned());
    let mut key_fields = loaded.keys.fields();
    for field in &mut key_fields {
        field.absent = na.and_then(absent);
    }
    let columns = match &loaded.columns {
        Columns::Csv(names) => {
            let cells = cells(names, &first_rows(loaded, cells_of)?, na);
            mixed = cells.mixed;
            keeps_na = cells.keeps_na;
            // A column is one thing, in the key and beside it.
            for field in key_fields.iter_mut().filter(|field| na.is_none() && is_text(field)) {
                let cell = cells.fields.iter().find(|cell| cell.name == field.name);
                let missing = cell.and_then(|cell| cell.absent.clone());
                field.absent = missing.filter(|missing| *missing == NA.into());
            }
            cells.fields
        }
        Columns::Json => {
            let mut fields = members(&first_rows(loaded, object_of)?);
            fields.iter_mut().for_each(|field| field.absent = na.and_then(absent));
            fields
        }
        Columns::Entries => Vec::new(),
        Columns::Typed(format) => Layout::of_rows(format).fields().to_vec(),
    };
    let declared = loaded.table.fields().map_or(&[][..], Layout::fields).iter().cloned();
    for field in key_fields.into_iter().chain(columns).chain(declared) {
        // Of columns with the same name the first can be asked for, as everywhere here.
        let is_new = !fields.iter().any(|known| known.name == field.name);
        if is_new && !field.name.is_empty() && !field.name.contains('`') {
            fields.push(field);
        }
    }
    Ok(Fields { fields, mixed, keeps_na })
}

/// Whether a field of the key is text.
fn is_text(field: &Field) -> bool {
    match &field.read {
        Read::Tuple(tuple) => tuple.component().form == ComponentForm::Text,
        _ => false,
    }
}

fn first_rows<T>(loaded: &Loaded, read: impl Fn(&Stored<'_>, &[u8]) -> T) -> Outcome<Vec<T>> {
    let stored = Stored { columns: &loaded.columns };
    let mut rows = Vec::new();
    let _ = rows_table::scan(&loaded.table, |value| {
        rows.push(read(&stored, value));
        match rows.len() {
            FIRST_ROWS => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })?;
    Ok(rows)
}

fn cells_of(stored: &Stored<'_>, value: &[u8]) -> Vec<String> {
    stored.fields(b"", value).into_iter().map(|(_, text)| text).collect()
}

fn object_of(_: &Stored<'_>, value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_default()
}

/// The columns of CSV as fields.
fn cells(names: &[String], rows: &[Vec<String>], na: Option<&str>) -> Fields {
    let columns: Vec<Column> = (0..names.len())
        .map(|index| {
            let texts = rows.iter().filter_map(|row| row.get(index)).map(String::as_str);
            Column::of(texts, na)
        })
        .collect();
    // A file has one way to write what is missing, though the first rows of a column have all.
    let with_na = columns.iter().any(|column| column.is_number() && column.has_na);
    let field = |(index, (name, column)): (usize, (&String, &Column))| {
        let absent = match na {
            Some(text) => text,
            None if with_na && !column.has_empty => NA,
            None => "",
        };
        Field {
            name: name.clone(),
            place: Place::Value,
            part: Part::Cell(index),
            read: if column.is_number() { Read::Decimal } else { Read::Text(None) },
            absent: Some(aggregate::Value::from(absent).into_owned()),
        }
    };
    let fields: Vec<Field> = names.iter().zip(&columns).enumerate().map(field).collect();
    let mixed = fields.iter().zip(&columns).filter_map(|(field, column)| {
        let other = column.other.clone().filter(|_| column.numbers > 0)?;
        let field = Field { read: Read::Decimal, ..field.clone() };
        Some(Mixed { field, other, is_mostly_numbers: column.numbers > column.others })
    });
    let keeps_na = names.iter().zip(&columns).filter(|(_, column)| {
        let is_text_with_both = column.has_na && column.has_empty && !column.is_number();
        na.is_none() && with_na && is_text_with_both
    });
    let keeps_na = keeps_na.map(|(name, _)| name.clone()).collect();
    Fields { mixed: mixed.collect(), keeps_na, fields }
}

/// The facts known of a column of CSV.
#[derive(Default)]
struct Column {
    numbers: usize,
    /// Numbers with a plus: codes and telephone numbers, unless there are others.
    signed: usize,
    others: usize,
    /// The first that is neither a number nor missing.
    other: Option<String>,
    has_na: bool,
    has_empty: bool,
}

impl Column {
    fn of<'a>(texts: impl Iterator<Item = &'a str>, na: Option<&str>) -> Column {
        let mut column = Column::default();
        for text in texts {
            match (na, text) {
                (Some(na), text) if text == na => {}
                (None, "") => column.has_empty = true,
                (None, NA) => column.has_na = true,
                (_, text) if is_number(text) => column.numbers += 1,
                (_, text) if text.strip_prefix('+').is_some_and(is_unsigned) => column.signed += 1,
                _ => {
                    column.others += 1;
                    column.other.get_or_insert_with(|| text.to_owned());
                }
            }
        }
        column
    }

    fn is_number(&self) -> bool {
        self.numbers > 0 && self.other.is_none()
    }
}

/// Whether a text is a number as people write one: `007` is rather a code.
fn is_number(text: &str) -> bool {
    is_unsigned(text.strip_prefix('-').unwrap_or(text))
}

/// Whether it is one without a sign.
fn is_unsigned(text: &str) -> bool {
    let begins_so = match text.as_bytes() {
        [b'0'] | [b'0', b'.', ..] => true,
        [b'.', first, ..] => first.is_ascii_digit(),
        [first, ..] => matches!(first, b'1'..=b'9'),
        [] => false,
    };
    let digits_alone = || text.bytes().all(|byte| byte.is_ascii_digit());
    begins_so
        && match digits_alone() {
            // Beyond 128 bits nothing adds up.
            true => text.parse::<i128>().is_ok(),
            // `1_000` and `1inf` do not parse, and `1e999` is no number that can be added.
            false => text.parse::<f64>().is_ok_and(f64::is_finite),
        }
}

/// The members of JSON objects as fields, in the order in which they first occur.
fn members(rows: &[Value]) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut known: HashSet<Vec<String>> = HashSet::new();
    for row in rows {
        walk(row, &mut Vec::new(), &mut |path| {
            if !known.contains(path) {
                known.insert(path.to_vec());
                fields.push(Field {
                    name: path.join("."),
                    place: Place::Value,
                    part: Part::From(0),
                    read: Read::Json(Path(path.iter().cloned().map(Step::Member).collect())),
                    absent: None,
                });
            }
        });
    }
    fields
}

/// Calls `found` with the way to each member that is no object.
fn walk(value: &Value, path: &mut Vec<String>, found: &mut impl FnMut(&[String])) {
    match value {
        Value::Object(members) if path.len() < DEPTH_MAX => {
            for (name, value) in members {
                path.push(name.clone());
                walk(value, path, found);
                path.pop();
            }
        }
        _ if path.is_empty() => {}
        _ => found(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(names: &[&str], rows: &[&[&str]], na: Option<&str>) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        cells(&names, &rows, na).fields.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn columns_are_numbers_if_all_that_is_there_is() {
        let rows: &[&[&str]] =
            &[&["1", "-0.5", "007", "1", "", "NA"], &["", "1e3", "8", "x", "", "NA"]];
        assert_eq!(
            layout(&["a", "b", "c", "d", "e", "f"], rows, None),
            [
                r#"a:cell(0).decimal?"""#,
                r#"b:cell(1).decimal?"""#,
                r#"c:cell(2).text?"""#,
                r#"d:cell(3).text?"""#,
                r#"e:cell(4).text?"""#,
                r#"f:cell(5).text?"""#,
            ]
        );
    }

    #[test]
    fn columns_that_have_numbers_and_others_are_known() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let rows = [["1", "x", "1"], ["-", "y", ""], ["+", "z", "2"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        for (na, other, layout) in
            [(None, "-", r#"a:cell(0).decimal?"""#), (Some("-"), "+", r#"a:cell(0).decimal?"-""#)]
        {
            let mixed = &cells(&names, &rows, na).mixed[0];
            assert_eq!((mixed.other.as_str(), mixed.field.to_string().as_str()), (other, layout));
        }
        assert_eq!(cells(&names, &rows, None).mixed.len(), 1);
    }

    #[test]
    fn a_file_has_one_way_to_write_what_is_missing() {
        let rows: &[&[&str]] = &[&["1", "2", ""], &["NA", "3", "4"]];
        assert_eq!(
            layout(&["a", "b", "c"], rows, None),
            [r#"a:cell(0).decimal?"NA""#, r#"b:cell(1).decimal?"NA""#, r#"c:cell(2).decimal?"""#]
        );
        assert_eq!(
            layout(&["a", "b", "c"], rows, Some("NA")),
            [r#"a:cell(0).decimal?"NA""#, r#"b:cell(1).decimal?"NA""#, r#"c:cell(2).text?"NA""#]
        );
        assert_eq!(layout(&["a"], &[&["-"], &["5"]], Some("-")), [r#"a:cell(0).decimal?"-""#]);
        // Text too; what is empty is missing where it is there.
        let rows: &[&[&str]] =
            &[&["1", "x", "x", "y"], &["NA", "NA", "", ""], &["2", "z", "z", "NA"]];
        assert_eq!(
            layout(&["a", "b", "c", "d"], rows, None),
            [
                r#"a:cell(0).decimal?"NA""#,
                r#"b:cell(1).text?"NA""#,
                r#"c:cell(2).text?"""#,
                r#"d:cell(3).text?"""#,
            ]
        );
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        assert_eq!(cells(&names, &rows, None).keeps_na, ["d"]);
        assert!(cells(&names, &rows, Some("NA")).keeps_na.is_empty());
        // Where no number is NA, it is a word like others.
        assert_eq!(layout(&["a"], &[&["NA"], &["x"]], None), [r#"a:cell(0).text?"""#]);
    }

    #[test]
    fn a_plus_makes_codes_unless_there_are_other_numbers() {
        assert_eq!(layout(&["a"], &[&["+4"], &["4"]], None), [r#"a:cell(0).decimal?"""#]);
        assert_eq!(layout(&["a"], &[&["+49170"], &["+49171"]], None), [r#"a:cell(0).text?"""#]);
        assert_eq!(layout(&["a"], &[&["+x"], &["4"]], None), [r#"a:cell(0).text?"""#]);
    }

    #[test]
    fn columns_of_numbers_with_few_others_are_told() {
        let names = ["a", "b"].map(str::to_owned);
        let rows = [["1", "1"], ["NaN", "x"], ["2", "y"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let mixed = cells(&names, &rows, None).mixed;
        let told: Vec<bool> = mixed.iter().map(|mixed| mixed.is_mostly_numbers).collect();
        assert_eq!(told, [true, false]);
        assert_eq!(
            mixed[0].to_string(),
            "`a` is read as text, and sorts so: it has `NaN` beside numbers; --layout \
             'a:cell(0).decimal?\"\"' with --mismatches skip reads the numbers"
        );
    }

    #[test]
    fn numbers_are_what_people_write_as_such() {
        for number in [
            "0",
            "-1",
            "12.50",
            "0.5",
            ".5",
            "-.5",
            "5.",
            "1e3",
            "170141183460469231731687303715884105727",
        ] {
            assert!(is_number(number), "{number}");
        }
        for other in [
            "",
            "-",
            "007",
            "+7",
            ".",
            ".e5",
            "1,5",
            "1_000",
            "1e999",
            "NaN",
            "inf",
            "-inf",
            "2013-01-01",
            "170141183460469231731687303715884105728",
        ] {
            assert!(!is_number(other), "{other}");
        }
    }

    #[test]
    fn members_of_objects_are_found_wherever_they_occur() {
        let rows: Vec<Value> =
            [r#"{"a": 1, "b": {"c d": 2, "e": [1]}}"#, r#"{"f": null, "a": {}}"#]
                .iter()
                .map(|row| serde_json::from_str(row).expect("JSON"))
                .collect();
        let fields: Vec<String> = members(&rows).iter().map(ToString::to_string).collect();
        assert_eq!(
            fields,
            ["a:json($.a)", "`b.c d`:json($.b[\"c d\"])", "`b.e`:json($.b.e)", "f:json($.f)"]
        );
    }
}
