//! How are the rows of an answer printed?

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};
use sapwood::aggregate::{Accuracy, Answer, Cell, TopEntry, Value};

/// For people: floats shortened, `-` where there is nothing.
pub(crate) fn as_table(answer: &Answer) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(answer.columns.iter().map(|column| &column.name));
    for row in &answer.rows {
        table.add_row(row.iter().map(text));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        let is_text = |cell: &Cell| matches!(cell, Cell::Value(Value::Bytes(_)) | Cell::Top(_));
        if !answer.rows.iter().any(|row| is_text(&row[index])) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => "-".to_owned(),
        Cell::Value(Value::Float(float)) => float_text(float.get()),
        Cell::Value(value) => value.to_string(),
        Cell::Top(entries) => {
            let entries: Vec<String> = entries.iter().map(entry_text).collect();
            entries.join(", ")
        }
    }
}

fn entry_text(TopEntry { value, at_least, at_most }: &TopEntry) -> String {
    match at_least == at_most {
        true => format!("{value} {at_least}"),
        false => format!("{value} {at_least} to {at_most}"),
    }
}

/// Six digits, and three behind the point at least; whole numbers as such.
fn float_text(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || size < 1e15 && number.trunc() == number {
        return format!("{number:.0}");
    }
    if !(1e-6..1e15).contains(&size) {
        // Infinities too, which are what lies below all classes.
        return if size.is_finite() { format!("{number:.5e}") } else { number.to_string() };
    }
    let decimals = (5 - size.log10().floor() as i32).max(3) as usize;
    format!("{number:.decimals$}")
}

/// An object a row: numbers with all digits, nothing as null.
pub(crate) fn write_json(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    for row in &answer.rows {
        let fields = answer.columns.iter().zip(row);
        let fields: Vec<String> = fields
            .map(|(column, cell)| format!("{}:{}", json_text(&column.name), json(cell)))
            .collect();
        writeln!(out, "{{{}}}", fields.join(","))?;
    }
    Ok(())
}

fn json(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => "null".to_owned(),
        Cell::Value(value) => json_value(value),
        Cell::Top(entries) => {
            let entry = |TopEntry { value, at_least, at_most }: &TopEntry| {
                let value = json_value(value);
                format!(r#"{{"value":{value},"at_least":{at_least},"at_most":{at_most}}}"#)
            };
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("[{}]", entries.join(","))
        }
    }
}

/// Written here and not by serde_json, whose numbers end at 64 bits.
fn json_value(value: &Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) if value.get().is_finite() => {
            serde_json::Value::from(value.get()).to_string()
        }
        // JSON has no infinity.
        Value::Float(value) => json_text(&value.get().to_string()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json_text(text),
            Err(_) => json_text(&value.to_string()),
        },
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What is to be known of columns that are not exact.
pub(crate) fn notes(answer: &Answer) -> Vec<String> {
    let note = |column: &sapwood::aggregate::Column| {
        let name = &column.name;
        match column.accuracy {
            Accuracy::Exact | Accuracy::Rounded => None,
            Accuracy::Within(share) => {
                Some(format!("{name} is within {} % of the value of that rank", percent(share)))
            }
            Accuracy::Estimated { exact_max, standard_error } => Some(format!(
                "{name} is exact up to {exact_max}; beyond, two thirds are within {} %, 95 % within {} %",
                percent(standard_error),
                percent(2.0 * standard_error)
            )),
            Accuracy::Bounded => {
                Some(format!("{name} counts exactly where it shows one count, else between two"))
            }
        }
    };
    answer.columns.iter().filter_map(note).collect()
}

/// Two digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = (1 - percent.log10().floor() as i32).max(0) as usize;
    let text = format!("{percent:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_six_digits_for_people() {
        for (number, text) in [
            (0.0, "0"),
            (-60.0, "-60"),
            (12.639_070_257, "12.6391"),
            (-0.000_123_456_78, "-0.000123457"),
            (1_234_567.890_12, "1234567.890"),
            (1e300, "1.00000e300"),
            (1.5e-9, "1.50000e-9"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float_text(number), text);
        }
    }

    #[test]
    fn json_has_all_digits_and_every_value() {
        let float = |value| Cell::Value(Value::float(value).expect("not NaN"));
        for (cell, expected) in [
            (Cell::Nothing, "null"),
            (Cell::Value(i128::MIN.into()), "-170141183460469231731687303715884105728"),
            (float(0.1), "0.1"),
            (float(2.0), "2.0"),
            (float(f64::NEG_INFINITY), "\"-inf\""),
            (Cell::Value(true.into()), "true"),
            (Cell::Value("a\"b\n".into()), r#""a\"b\n""#),
            (Cell::Value(Value::Bytes(vec![0xFF, 0].into())), "\"ff00\""),
            (
                Cell::Top(vec![TopEntry { value: "x".into(), at_least: 1, at_most: 2 }]),
                r#"[{"value":"x","at_least":1,"at_most":2}]"#,
            ),
        ] {
            assert_eq!(json(&cell), expected);
        }
    }

    #[test]
    fn shares_have_two_digits() {
        for (share, text) in [(0.01, "1"), (0.008_125, "0.81"), (0.016_25, "1.6"), (0.5, "50")] {
            assert_eq!(percent(share), text);
        }
    }
}
