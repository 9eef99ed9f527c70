//! The rows of an answer, printed.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table};
use sapwood::aggregate::{Accuracy, Answer, Cell, Group, GroupBy, TopEntry, Value};

use crate::terminal::format::{escaped, table};

/// For people: floats shortened, as many digits behind the point in all of a column; `-` where
/// there is no figure, and of `groups`, the first columns, what they stand for.
pub(crate) fn as_table(answer: &Answer, groups: &[Group]) -> Table {
    let mut table = table(answer.columns.iter().map(|column| escaped(&column.name)));
    let columns: Vec<Vec<String>> =
        (0..answer.columns.len()).map(|index| texts(answer, groups.get(index), index)).collect();
    for row in 0..answer.rows.len() {
        table.add_row(columns.iter().map(|texts| &texts[row]));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_text = |cell: &Cell| matches!(cell, Cell::Value(Value::Bytes(_)) | Cell::Top(_));
        if !answer.rows.iter().any(|row| is_text(&row[index])) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The cells of a column.
fn texts(answer: &Answer, group: Option<&Group>, index: usize) -> Vec<String> {
    let cells = || answer.rows.iter().map(|row| &row[index]);
    let bounds = match group.map(|group| &group.by) {
        Some(GroupBy::Classes { bounds, .. }) => Some(&bounds[..]),
        _ => None,
    };
    let floats = cells().filter_map(|cell| match cell {
        Cell::Value(Value::Float(float)) => Some(float.get()),
        _ => None,
    });
    let decimals = Decimals::of(floats);
    let text = |cell: &Cell| match (cell, bounds) {
        (Cell::Nothing, _) if group.is_some() => "missing".to_owned(),
        (Cell::Nothing, _) => "-".to_owned(),
        (Cell::Value(value), Some(bounds)) => class(value, bounds),
        (Cell::Value(Value::Float(float)), None) => decimals.text(float.get()),
        (Cell::Value(value), None) => escaped(&value.to_string()).into_owned(),
        (Cell::Top(entries), _) => {
            let entries: Vec<String> = entries.iter().map(entry_text).collect();
            entries.join(", ")
        }
    };
    cells().map(text).collect()
}

/// What the greatest bound that is reached says: `< 0`, `0 to < 15`, `>= 15`.
fn class(reached: &Value<'_>, bounds: &[Value<'_>]) -> String {
    match bounds.iter().position(|bound| bound == reached) {
        None => bounds.first().map_or_else(String::new, |least| format!("< {least}")),
        Some(at) => match bounds.get(at + 1) {
            Some(next) => format!("{reached} to < {next}"),
            None => format!(">= {reached}"),
        },
    }
}

fn entry_text(TopEntry { value, at_least, at_most }: &TopEntry) -> String {
    let value = value.to_string();
    let value = escaped(&value);
    match at_least == at_most {
        true => format!("{value} {at_least}"),
        false => format!("{value} {at_least} to {at_most}"),
    }
}

/// The digits behind the point of a column's floats.
struct Decimals(usize);

impl Decimals {
    /// So many that the greatest shows six digits and the least three; not more than nine, and none
    /// that are zero in all of them.
    fn of(floats: impl Iterator<Item = f64> + Clone) -> Self {
        let plain = || floats.clone().filter(|number| is_plain(*number));
        let sizes = || plain().map(f64::abs).filter(|size| *size > 0.0);
        let behind = |size: f64, digits: i32| digits - 1 - size.log10().floor() as i32;
        let greatest = sizes().reduce(f64::max).map_or(0, |greatest| behind(greatest, 6));
        let least = sizes().reduce(f64::min).map_or(0, |least| behind(least, 3));
        let wanted = greatest.max(least).clamp(0, 9) as usize;
        if plain().all(|number| number.trunc() == number) {
            return Self(0);
        }
        let needed = plain().map(|number| {
            let text = format!("{number:.wanted$}");
            let (_, behind) = text.split_once('.').unwrap_or_default();
            behind.trim_end_matches('0').len()
        });
        // One is left: not all are whole.
        Self(needed.max().unwrap_or(0).max(1))
    }

    fn text(&self, number: f64) -> String {
        if is_plain(number) {
            let decimals = self.0;
            let text = format!("{number:.decimals$}");
            // Nothing is left of a sign whose digits are all cut off.
            let is_zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
            return if is_zero { text.trim_start_matches('-').to_owned() } else { text };
        }
        // Infinities too, which no file has.
        if number.is_finite() { format!("{number:.5e}") } else { number.to_string() }
    }
}

/// Whether digits behind a point show it.
fn is_plain(number: f64) -> bool {
    number == 0.0 || (1e-6..1e15).contains(&number.abs())
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

/// Notes on columns that are not exact.
pub(crate) fn notes(answer: &Answer) -> Vec<String> {
    let note = |column: &sapwood::aggregate::Column| {
        let name = escaped(&column.name);
        match column.accuracy {
            Accuracy::Exact | Accuracy::Rounded => None,
            Accuracy::Within(share) => Some(format!(
                "{name}, of many different values, is within {} % of the one at that rank, the lower of two",
                percent(share)
            )),
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
    fn floats_of_a_column_have_as_many_digits_behind_the_point() {
        for (numbers, expected) in [
            (&[0.0, -60.0][..], &["0", "-60"][..]),
            (&[12.639_070_257, 8.586_024_6], &["12.6391", "8.5860"]),
            (&[7.5, 0.5, 7.0], &["7.5", "0.5", "7.0"]),
            (&[-0.000_123_456_78], &["-0.000123457"]),
            (&[1_234_567.890_12, 0.25], &["1234567.89", "0.25"]),
            (&[1_234_567.0, 0.000_012_3], &["1234567.0000000", "0.0000123"]),
            (&[7.000_000_1], &["7.0"]),
            (&[-1e-5, 100.0], &["-0.00001", "100.00000"]),
            (&[1e300, 1.5], &["1.00000e300", "1.5"]),
            (&[1.5e-9], &["1.50000e-9"]),
            (&[f64::NEG_INFINITY, 2.0], &["-inf", "2"]),
        ] {
            let decimals = Decimals::of(numbers.iter().copied());
            let texts: Vec<String> = numbers.iter().map(|number| decimals.text(*number)).collect();
            assert_eq!(texts, expected);
        }
    }

    #[test]
    fn classes_say_what_they_hold() {
        let bounds: Vec<Value<'_>> = vec![0.into(), 15.into()];
        let below = Value::float(f64::NEG_INFINITY).expect("not NaN");
        for (reached, says) in
            [(below, "< 0"), (Value::from(0), "0 to < 15"), (Value::from(15), ">= 15")]
        {
            assert_eq!(class(&reached, &bounds), says);
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
