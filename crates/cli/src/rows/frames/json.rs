//! JSON: objects whose fields are columns.
//!
//! Fields of objects within objects are columns `a.b`; arrays are text, their JSON. Columns stand in the order in
//! which fields first occur.

use std::collections::HashMap;

use sapwood::schema::{Type, Value, date_of_text, timestamp_of_text};
use sapwood::sql::{BATCH_ROWS, Batch, Scan, Sink, SourceResult, Strings, Vector};
use serde_json::{Map, Value as Json};

use super::blocks::{Blocks, batch_number};
use super::content::Layout;
use super::cuts::Cuts;
use super::input::Input;
use super::looks::Look;
use super::objects::{Bad, Objects};
use super::options::FrameOptions;
use super::text::{Known, TextFile, Widening};
use crate::terminal::format::quoted;

/// Objects within objects that are taken apart; those within are text.
const DEPTH_MAX: usize = 8;

/// The fields that the first rows have, and what they are; those of the rows before are known. Objects that are none
/// tell nothing.
pub(super) fn look(
    input: &Input,
    options: &FrameOptions,
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
            leaves(&object, &mut |path, value| {
                let at = places.get(path).copied().unwrap_or_else(|| {
                    names.push(path.to_owned());
                    looks.push(Look::default());
                    places.insert(path.to_owned(), names.len() - 1);
                    names.len() - 1
                });
                let look = &mut looks[at];
                match value {
                    Json::Null => {}
                    Json::Bool(_) => look.truth(),
                    Json::Number(number) => look.number(&number.to_string()),
                    Json::String(text) if options.na.as_ref() == Some(text) => {}
                    Json::String(text) => look.string(text),
                    Json::Array(_) | Json::Object(_) => look.text(),
                }
            });
            rows += 1;
        }
    }
    input.finish();
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

/// The values in an object, and in the objects within, with their names.
fn leaves<'v>(object: &'v Map<String, Json>, each: &mut dyn FnMut(&str, &'v Json)) {
    fn within<'v>(
        object: &'v Map<String, Json>,
        path: &mut String,
        depth: usize,
        each: &mut dyn FnMut(&str, &'v Json),
    ) {
        for (name, value) in object {
            let begin = path.len();
            if depth > 1 {
                path.push('.');
            }
            path.push_str(name);
            match value {
                Json::Object(inner) if depth < DEPTH_MAX => within(inner, path, depth + 1, each),
                value => each(path, value),
            }
            path.truncate(begin);
        }
    }
    within(object, &mut String::new(), 1, each);
}

/// Objects that are being read.
pub(super) struct JsonScan<'a> {
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
    pub(super) fn new(
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

    fn read(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
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
        object: &Map<String, Json>,
        line: u64,
        vectors: &mut [Vector],
    ) -> SourceResult<bool> {
        let file = self.file;
        let mut values: HashMap<usize, &Json> = HashMap::with_capacity(self.places.len());
        let mut further = None;
        leaves(object, &mut |path, value| match self.places.get(path) {
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
            let text = match value {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
            if file.leaves_out() && file.typed.is_said[*column] {
                file.leave_out(line, file.unlike(*column, &text));
                return Ok(false);
            }
            return Err(file.misfit(*column, &text, line, &self.columns));
        }
        vectors.iter_mut().zip(&row).for_each(|(vector, value)| vector.push_value(value));
        Ok(true)
    }

    fn is_key(&self, column: usize) -> bool {
        self.file.options.key.contains(&self.file.known.names[column])
    }

    /// A value of a column's type; none if it is of another.
    fn value<'v>(&self, column: usize, value: &'v Json) -> Option<Value<'v>> {
        let kind = self.file.kind(column);
        let missing = self.file.typed.missing.as_ref();
        match (kind, value) {
            (_, Json::Null) => Some(Value::Null),
            (_, Json::String(text)) if missing == Some(text) && !self.is_key(column) => {
                Some(Value::Null)
            }
            (Type::Text, Json::String(text)) => Some(Value::text(text.as_str())),
            (Type::Text, other) => Some(Value::text(other.to_string())),
            _ if self.file.typed.is_said[column] => {
                let value = match value {
                    Json::String(text) => Value::of_text(text, kind),
                    other => Value::of_text(&other.to_string(), kind).map(Value::into_owned),
                };
                value.and_then(|value| value.to_type(kind)).ok()
            }
            (Type::Int(_), Json::Number(number)) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Some(Value::from(number)),
                (None, Some(number)) if *kind == Type::Int(128) => Some(Value::from(number)),
                _ => None,
            },
            (Type::F64, Json::Number(number)) => number.as_f64().map(Value::Float),
            (Type::Bool, Json::Bool(value)) => Some(Value::Bool(*value)),
            (_, Json::String(text)) if text.starts_with('+') => None,
            (Type::Date, Json::String(text)) => date_of_text(text).map(Value::Date),
            (Type::Timestamp(precision), Json::String(text)) => {
                let precision = *precision;
                timestamp_of_text(text, precision)
                    .map(|ticks| Value::Timestamp { ticks, precision })
            }
            _ => None,
        }
    }
}

impl Scan for JsonScan<'_> {
    fn work(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
        let read = self.read(sink);
        if read.is_err() {
            self.blocks.stop();
        }
        read
    }
}

impl Drop for JsonScan<'_> {
    fn drop(&mut self) {
        self.file.input.finish();
    }
}
