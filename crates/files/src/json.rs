//! JSON: objects whose fields are columns.
//!
//! Fields of objects within objects are columns `a.b`. Arrays that all have as many numbers, truth values, days or moments
//! are arrays; others are text, their JSON. Columns stand in the order in which fields first occur. Numbers keep their
//! digits: each is read from its own text.

use std::collections::HashMap;

use sapwood_schema::{
    BATCH_ROWS, Batch, Scan, Sink, Strings, Type, Value, Vector, date_of_text, timestamp_of_text,
};

use crate::blocks::{Blocks, batch_number};
use crate::content::Layout;
use crate::cuts::Cuts;
use crate::input::Input;
use crate::looks::{Look, Values};
use crate::members::{Json, Members, items};
use crate::objects::{Bad, Objects};
use crate::options::ReadOptions;
use crate::text::{Known, TextFile, Widening};
use crate::words::quoted;

/// The fields that the first rows have, and what they are; those of the rows before are known. Objects that are none
/// tell nothing.
pub(crate) fn look(
    input: &Input,
    options: &ReadOptions,
    layout: Layout,
    known: Known,
    rows_max: usize,
) -> Result<Known, String> {
    let Known { mut names, mut looks, notices } = known;
    let mut places: HashMap<String, usize> =
        names.iter().enumerate().map(|(at, name)| (name.clone(), at)).collect();
    let blocks = TextFile::blocks(input, options, cuts(layout))?;
    let (mut block, mut rows) = (Vec::new(), 0);
    while rows < rows_max {
        input.expect_wanted()?;
        let next = blocks.next(&mut block).map_err(|error| input.unread(&error))?;
        let Some(place) = next else { break };
        for object in Objects::of(&block, layout, place) {
            let object = match object {
                Ok((_, object)) => object,
                Err(Bad { is_end: false, .. }) => continue,
                Err(bad) => return Err(format!("{}, line {}: {}", input.name, bad.line, bad.what)),
            };
            object.leaves(&mut |path, value| {
                let at = places.get(path).copied().unwrap_or_else(|| {
                    names.push(path.to_owned());
                    looks.push(Look::default());
                    places.insert(path.to_owned(), names.len() - 1);
                    names.len() - 1
                });
                match value {
                    Json::String(text) if options.na.as_deref() == Some(text) => {}
                    value => looks[at].json(value),
                }
            });
            rows += 1;
        }
    }
    if names.is_empty() {
        return Err(format!(
            "{} has no object with fields: objects are expected, which have the columns",
            input.name
        ));
    }
    Ok(Known { names, looks, notices })
}

fn cuts(layout: Layout) -> Cuts {
    match layout {
        Layout::Lines => Cuts::lines(),
        Layout::Values | Layout::Array => Cuts::values(),
    }
}

/// Objects that are being read.
pub(crate) struct JsonScan<'a> {
    file: &'a TextFile,
    layout: Layout,
    blocks: Blocks,
    columns: Vec<usize>,
    /// The places of the fields that are wanted, each of which may be wanted more than once.
    places: HashMap<&'a str, usize>,
    /// Whether all columns are wanted, so that a further one is missed.
    is_whole: bool,
    /// Whether rows are named by their lines.
    with_lines: bool,
}

impl<'a> JsonScan<'a> {
    pub(crate) fn new(
        file: &'a TextFile,
        layout: Layout,
        columns: &[usize],
        with_lines: bool,
    ) -> Result<Self, String> {
        let blocks = TextFile::blocks(&file.input, &file.options, cuts(layout))?;
        let names = file.known.names.iter().enumerate();
        let is_whole = (0..file.known.names.len()).all(|column| columns.contains(&column));
        let places = names.filter(|(at, _)| columns.contains(at));
        let places = places.map(|(at, name)| (name.as_str(), at)).collect();
        let columns = columns.to_vec();
        Ok(JsonScan { file, layout, blocks, columns, places, is_whole, with_lines })
    }

    fn read(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        let file = self.file;
        let mut block = Vec::new();
        let mut vectors: Vec<Vector> =
            self.columns.iter().map(|column| Vector::of_type(file.kind(*column))).collect();
        loop {
            file.input.expect_wanted()?;
            let next = self.blocks.next(&mut block);
            let next = next.map_err(|error| file.input.unread(&error))?;
            let Some(place) = next else { return Ok(()) };
            let (mut len, mut number) = (0, 0);
            let mut lines = Strings::new();
            let mut objects = Objects::of(&block, self.layout, place);
            loop {
                let object = objects.next();
                let is_end = object.is_none();
                match object {
                    Some(Ok((line, object))) => {
                        let is_taken = self.push(&object, line, &mut vectors)?;
                        len += usize::from(is_taken);
                        if is_taken {
                            lines.push(&line.to_le_bytes());
                        }
                    }
                    Some(Err(Bad { is_end: false, line, what })) if file.leaves_out() => {
                        file.leave_out(line, what);
                    }
                    Some(Err(bad)) => return Err(file.at_line(bad.line, bad.what)),
                    None => {}
                }
                if len == BATCH_ROWS || is_end && len > 0 {
                    let empty = |column: &usize| Vector::of_type(file.kind(*column));
                    let empty = self.columns.iter().map(empty).collect();
                    let columns = std::mem::replace(&mut vectors, empty);
                    let lines = std::mem::replace(&mut lines, Strings::new());
                    let batch = Batch { len, columns, ids: self.with_lines.then_some(lines) };
                    if sink(batch_number(place.number, number), &batch).is_break() {
                        return Ok(());
                    }
                    (len, number) = (0, number + 1);
                }
                if is_end {
                    break;
                }
            }
        }
    }

    /// Appends an object to the columns; false if it is left out.
    fn push(
        &self,
        object: &Members<'_>,
        line: u64,
        vectors: &mut [Vector],
    ) -> Result<bool, String> {
        let file = self.file;
        let mut values: HashMap<usize, &Json<'_>> = HashMap::with_capacity(self.places.len());
        let mut further = None;
        object.leaves(&mut |path, value| match self.places.get(path) {
            Some(column) => drop(values.insert(*column, value)),
            None if self.is_whole && further.is_none() => further = Some(path.to_owned()),
            None => {}
        });
        if let Some(name) = further {
            file.widen(Widening { column: None, columns: self.columns.clone() });
            let what = format!(
                "the field {} is none of the rows before it; opened again, the file has a column \
                 of it",
                quoted(&name)
            );
            return Err(file.at_line(line, what));
        }
        let mut row = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let value = values.get(column).copied().unwrap_or(&Json::Null);
            if let Some(value) = self.value(*column, value) {
                row.push(value);
                continue;
            }
            let text = value.text();
            if file.leaves_out() && file.typed.is_said[*column] {
                file.leave_out(line, file.unlike(*column, &text));
                return Ok(false);
            }
            return Err(file.misfit(*column, &text, line, &self.columns));
        }
        for ((vector, value), column) in vectors.iter_mut().zip(&row).zip(&self.columns) {
            match value {
                Value::Array(_) => vector.push_array(value, file.kind(*column)),
                value => vector.push_value(value),
            }
        }
        Ok(true)
    }

    fn is_key(&self, column: usize) -> bool {
        self.file.options.key.contains(&self.file.known.names[column])
    }

    /// A value of a column's type; none if it is of another.
    fn value<'v>(&self, column: usize, value: &'v Json<'_>) -> Option<Value<'v>> {
        let kind = self.file.kind(column);
        let missing = self.file.typed.missing.as_deref();
        let look = &self.file.known.looks[column];
        let is_said = self.file.typed.is_said[column];
        match (kind, value) {
            (_, Json::Null) => Some(Value::Null),
            (_, Json::String(text)) if missing == Some(text) && !self.is_key(column) => {
                Some(Value::Null)
            }
            (Type::Array(item, len), Json::Array(text)) => {
                let items = items(text).ok().filter(|items| items.len() == usize::from(*len))?;
                let seen = (!is_said).then_some(&look.items);
                let items = items.iter().map(|value| scalar(item, value, seen));
                let items = items.map(|value| value.map(Value::into_owned));
                items.collect::<Option<_>>().map(Value::Array)
            }
            _ => scalar(kind, value, (!is_said).then_some(&look.values)),
        }
    }
}

/// A value of a type; none if it is of another. Of a type that was found it is what others were `seen` to be, of one that
/// was said whatever has a text that is.
fn scalar<'v>(kind: &Type, value: &'v Json<'_>, seen: Option<&Values>) -> Option<Value<'v>> {
    let Some(seen) = seen else {
        let value = match (kind, value) {
            (Type::Text, value) => Ok(Value::Text(value.text())),
            (_, Json::String(text)) => Value::of_text(text, kind),
            (_, Json::Number(text)) => number(text, kind),
            (_, Json::Bool(true)) => Value::of_text("true", kind),
            (_, Json::Bool(false)) => Value::of_text("false", kind),
            _ => return None,
        };
        return value.and_then(|value| value.to_type(kind)).ok();
    };
    match (kind, value) {
        (_, Json::Null) => None,
        (Type::Text, value) => Some(Value::Text(value.text())),
        (Type::Int(64), Json::Number(text)) => text.parse::<i64>().ok().map(Value::from),
        (Type::Int(_), Json::Number(text)) => text.parse::<i128>().ok().map(Value::from),
        (Type::UInt(_), Json::Number(text)) => text.parse::<u128>().ok().map(Value::from),
        (Type::F64, Json::Number(text)) => {
            // Few digits are those of a float in any case.
            let is_float = text.len() <= 15 || seen.holds(text, kind);
            let float = text.parse::<f64>().ok().filter(|float| is_float && float.is_finite());
            float.map(Value::Float)
        }
        (Type::Bool, Json::Bool(value)) => Some(Value::Bool(*value)),
        (_, Json::String(text)) if text.starts_with('+') => None,
        (Type::Date, Json::String(text)) => date_of_text(text).map(Value::Date),
        (Type::Timestamp(precision), Json::String(text)) => {
            let precision = *precision;
            timestamp_of_text(text, precision).map(|ticks| Value::Timestamp { ticks, precision })
        }
        _ => None,
    }
}

/// A number as a value of a type that was said. One with an exponent is exact, too.
fn number<'v>(text: &'v str, kind: &Type) -> Result<Value<'v>, String> {
    match (kind, text.contains(['e', 'E'])) {
        (Type::Int(_) | Type::UInt(_) | Type::Decimal { .. }, true) => {
            let plain = without_exponent(text).ok_or_else(|| format!("`{text}` is no {kind}"))?;
            Value::of_text(&plain, kind).map(Value::into_owned)
        }
        _ => Value::of_text(text, kind),
    }
}

/// The digits of a number that is written with an exponent; none if there are too many for any type.
fn without_exponent(text: &str) -> Option<String> {
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok().filter(|it: &i32| it.unsigned_abs() <= 100)?;
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{behind}");
    // Where the point stands among the digits.
    let point = whole.len() as i32 + exponent;
    let zeros = |count: i32| "0".repeat(count.max(0) as usize);
    let (front, back) = match usize::try_from(point) {
        Ok(point) if point < digits.len() => digits.split_at(point),
        Ok(_) => (digits.as_str(), ""),
        Err(_) => ("", digits.as_str()),
    };
    let front = format!("{front}{}", zeros(point - digits.len() as i32));
    let back = format!("{}{back}", zeros(-point));
    let (front, back) = (front.trim_start_matches('0'), back.trim_end_matches('0'));
    let front = if front.is_empty() { "0" } else { front };
    Some(match back {
        "" => format!("{sign}{front}"),
        back => format!("{sign}{front}.{back}"),
    })
}

impl Scan for JsonScan<'_> {
    fn work(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        let read = self.read(sink);
        if read.is_err() {
            self.blocks.stop();
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_move_the_point() {
        for (text, expected) in [
            ("1e3", "1000"),
            ("1.50E2", "150"),
            ("-1.25e-2", "-0.0125"),
            ("12.5e-1", "1.25"),
            ("1e-3", "0.001"),
            ("123456789012345678901234567890e1", "1234567890123456789012345678900"),
            ("0e5", "0"),
            ("0.005e3", "5"),
        ] {
            assert_eq!(without_exponent(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(without_exponent("1e101"), None);
        assert_eq!(without_exponent("1e-99999999999"), None);
    }
}
