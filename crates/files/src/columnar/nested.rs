//! Lists and maps: arrays where all have as many items, else their JSON.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;
use sapwood_schema::{Data, Strings, Type, Value, Vector};

use super::vectors::{kind_of, vector_of};
use crate::write::json;

/// Items that an array has at most.
const ITEMS_MAX: u16 = 4_096;

/// The number of items that each list has; none if no list was seen, an error if they differ or items are missing.
pub(super) type Len = Result<Option<u16>, Mixed>;

/// Lists have not the same number of items, or an item is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mixed;

/// The type of the items of lists that may be arrays; none for other arrays.
pub(super) fn item_kind(array: &DataType) -> Option<Type> {
    let (DataType::List(item) | DataType::LargeList(item)) = array else { return None };
    kind_of(item.data_type()).filter(|kind| kind.width().is_some())
}

/// True of types whose values are read as JSON.
pub(super) fn is_json(array: &DataType) -> bool {
    match array {
        DataType::Struct(members) => members.iter().all(|member| is_json(member.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => is_json(item.data_type()),
        other => kind_of(other).is_some(),
    }
}

/// The items of all lists, and the places of those of each.
fn lists_of(array: &dyn Array) -> (ArrayRef, Vec<Range<usize>>) {
    fn ranges<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<Range<usize>> {
        offsets.windows(2).map(|pair| pair[0].as_usize()..pair[1].as_usize()).collect()
    }
    match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            (lists.values().clone(), ranges(lists.value_offsets()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            (lists.values().clone(), ranges(lists.value_offsets()))
        }
        DataType::FixedSizeList(..) => {
            let lists = array.as_fixed_size_list();
            let len = lists.value_length() as usize;
            let range = |at| {
                let begin = lists.value_offset_at(at);
                begin..begin + len
            };
            (lists.values().clone(), (0..lists.len()).map(range).collect())
        }
        other => unreachable!("{other} has no items"),
    }
}

/// The number of items that each list has, as all before have it.
pub(super) fn len_of(array: &dyn Array, is_absent: &dyn Fn(usize) -> bool, before: Len) -> Len {
    let mut len = before?;
    let (items, ranges) = lists_of(array);
    let nulls = items.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    for (at, mut range) in ranges.into_iter().enumerate() {
        if array.is_null(at) || is_absent(at) {
            continue;
        }
        let own = u16::try_from(range.len()).ok().filter(|len| (1..=ITEMS_MAX).contains(len));
        let own = own.ok_or(Mixed)?;
        let has_null = nulls.as_ref().is_some_and(|nulls| range.any(|item| nulls.is_null(item)));
        if has_null || len.is_some_and(|len| len != own) {
            return Err(Mixed);
        }
        len = Some(own);
    }
    Ok(len)
}

/// Lists of one length, as rows have them.
pub(super) fn arrays(
    array: &dyn Array,
    kind: &Type,
    is_null: impl Fn(usize) -> bool,
) -> Result<Data, String> {
    let Type::Array(item, len) = kind else { unreachable!("lists are arrays") };
    let (items, ranges) = lists_of(array);
    let items = vector_of(items.as_ref(), item, &|_| false)?;
    let mut vector = Vector::of_type(kind);
    for (at, range) in ranges.into_iter().enumerate() {
        if is_null(at) {
            vector.push_null();
            continue;
        }
        if range.len() != usize::from(*len) {
            return Err(format!("an array of {kind} has {} items", range.len()));
        }
        let values = range.map(|place| match items.value(place, item) {
            Ok(Value::Null) => Err(format!("an array of {kind} has no nulls inside")),
            Ok(value) => Ok(value.into_owned()),
            Err(error) => Err(error.to_string()),
        });
        vector.push_array(&Value::Array(values.collect::<Result<_, _>>()?), kind);
    }
    Ok(vector.data)
}

/// The JSON of each value.
pub(super) fn texts(array: &dyn Array, is_null: impl Fn(usize) -> bool) -> Result<Data, String> {
    let values = Nested::of(array)?;
    let (mut strings, mut text) = (Strings::new(), String::new());
    for at in 0..array.len() {
        text.clear();
        if !is_null(at) {
            values.write(at, &mut text)?;
        }
        strings.push(text.as_bytes());
    }
    Ok(Data::Bytes(strings))
}

/// Values that are written as JSON.
enum Nested {
    Values(Vector, Type),
    Lists(Parts<Box<Nested>>),
    /// Names and values.
    Maps(Parts<Box<(Nested, Nested)>>),
    Members(Parts<Vec<(String, Nested)>>),
}

/// The parts of nested values, and the places of each; none where it is null.
struct Parts<P> {
    parts: P,
    ranges: Vec<Option<Range<usize>>>,
}

impl<P> Parts<P> {
    fn of(array: &dyn Array, parts: P, ranges: Vec<Range<usize>>) -> Parts<P> {
        let ranges = ranges.into_iter().enumerate();
        let ranges = ranges.map(|(at, range)| array.is_valid(at).then_some(range)).collect();
        Parts { parts, ranges }
    }
}

impl Nested {
    fn of(array: &dyn Array) -> Result<Nested, String> {
        Ok(match array.data_type() {
            DataType::Struct(members) => {
                let columns = members.iter().zip(array.as_struct().columns());
                let members = columns.map(|(member, column)| {
                    Ok((member.name().clone(), Nested::of(column.as_ref())?))
                });
                let members = members.collect::<Result<_, String>>()?;
                Nested::Members(Parts::of(
                    array,
                    members,
                    (0..array.len()).map(|at| at..at).collect(),
                ))
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let parts = (Nested::of(map.keys().as_ref())?, Nested::of(map.values().as_ref())?);
                let offsets = map.value_offsets().windows(2);
                let ranges = offsets.map(|pair| pair[0] as usize..pair[1] as usize).collect();
                Nested::Maps(Parts::of(array, Box::new(parts), ranges))
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                let (items, ranges) = lists_of(array);
                Nested::Lists(Parts::of(array, Box::new(Nested::of(items.as_ref())?), ranges))
            }
            other => {
                let kind = kind_of(other).ok_or_else(|| format!("{other} has no JSON"))?;
                Nested::Values(vector_of(array, &kind, &|_| false)?, kind)
            }
        })
    }

    /// Appends the JSON of a value.
    fn write(&self, at: usize, out: &mut String) -> Result<(), String> {
        match self {
            Nested::Values(vector, kind) => {
                let value = vector.value(at, kind).map_err(|error| error.to_string())?;
                out.push_str(&json(&value.shown_as(kind)));
                Ok(())
            }
            Nested::Lists(Parts { parts, ranges }) => {
                write_all(ranges[at].clone(), ['[', ']'], out, |item, out| parts.write(item, out))
            }
            Nested::Maps(Parts { parts, ranges }) => {
                let (names, values) = &**parts;
                write_all(ranges[at].clone(), ['{', '}'], out, |item, out| {
                    let mut name = String::new();
                    names.write(item, &mut name)?;
                    // Names of objects are texts.
                    match name.starts_with('"') {
                        true => out.push_str(&name),
                        false => out.push_str(&json(&Value::text(&name[..]))),
                    }
                    out.push(':');
                    values.write(item, out)
                })
            }
            Nested::Members(Parts { parts, ranges }) => {
                let members = ranges[at].as_ref().map(|_| 0..parts.len());
                write_all(members, ['{', '}'], out, |member, out| {
                    let (name, values) = &parts[member];
                    out.push_str(&json(&Value::text(&name[..])));
                    out.push(':');
                    values.write(at, out)
                })
            }
        }
    }
}

/// Appends items between two signs; `null` where there are none.
fn write_all(
    items: Option<Range<usize>>,
    [open, close]: [char; 2],
    out: &mut String,
    mut write: impl FnMut(usize, &mut String) -> Result<(), String>,
) -> Result<(), String> {
    let Some(items) = items else {
        out.push_str("null");
        return Ok(());
    };
    out.push(open);
    let first = items.start;
    for item in items {
        if item > first {
            out.push(',');
        }
        write(item, out)?;
    }
    out.push(close);
    Ok(())
}
