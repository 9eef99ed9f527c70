//! The value at a path of a JSON or MessagePack document.
//!
//! Documents are walked, not built: the path is followed, all else is skipped. The whole document
//! must be well formed nevertheless. Of members with the same name the last counts.

use std::borrow::Cow;
use std::fmt;

use rmp::Marker;
use rmp::decode::{RmpRead, read_marker};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::decimal;
use crate::error::Why;
use crate::value::{Float, Value};

/// The way from a document's root to a value: `$.a.b[0]`.
///
/// ```
/// use sapwood::aggregate::{Path, Step};
///
/// let path = Path(vec![Step::Member("route".into()), Step::Index(1), Step::Member("a b".into())]);
/// assert_eq!(path.to_string(), r#"$.route[1]["a b"]"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path(pub Vec<Step>);

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To the member of an object with this name.
    Member(String),
    /// To an element of an array, from 0.
    Index(usize),
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.0.iter().try_for_each(|step| match step {
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Member(name) => {
                let mut letters = name.chars();
                let plain = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
                    && letters.all(|c| c.is_alphanumeric() || c == '_');
                match plain {
                    true => write!(f, ".{name}"),
                    false => write!(f, "[{}]", crate::value::literal(&name.as_str().into())),
                }
            }
        })
    }
}

/// Reads what lies at `path` of a JSON document; `None` if nothing or null does.
pub(super) fn json<'a>(bytes: &'a [u8], path: &Path) -> Result<Option<Value<'a>>, Why> {
    let mut document = serde_json::Deserializer::from_slice(bytes);
    let found = Walk { path: &path.0 }.deserialize(&mut document);
    let found = found.and_then(|found| document.end().map(|()| found));
    let found =
        found.map_err(|error| Why::BadJson { line: error.line(), column: error.column() })?;
    found.map_or(Ok(None), |raw| leaf(raw.get()))
}

/// A JSON value from its text, which is well formed.
fn leaf(text: &str) -> Result<Option<Value<'_>>, Why> {
    match text.as_bytes() {
        [b'n', ..] => Ok(None),
        [b't', ..] => Ok(Some(Value::Bool(true))),
        [b'f', ..] => Ok(Some(Value::Bool(false))),
        [b'{' | b'[', ..] => Err(Why::Compound),
        [b'"', inside @ .., b'"'] if !inside.contains(&b'\\') => {
            Ok(Some(Value::Bytes(Cow::Borrowed(inside))))
        }
        [b'"', ..] => {
            let text: String = serde_json::from_str(text).map_err(|_| Why::NotUtf8)?;
            Ok(Some(Value::Bytes(Cow::Owned(text.into_bytes()))))
        }
        number => decimal::read(number).map(Some),
    }
}

/// Follows a path; answers the text of what lies at its end.
struct Walk<'p> {
    path: &'p [Step],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.path {
            [] => serde::Deserialize::deserialize(deserializer).map(Some),
            _ => deserializer.deserialize_any(self),
        }
    }
}

/// Where a path meets a value that has no such step, it leads nowhere.
macro_rules! leads_nowhere {
    ($($visit:ident: $type:ty,)*) => {$(
        fn $visit<E: serde::de::Error>(self, _: $type) -> Result<Self::Value, E> {
            Ok(None)
        }
    )*};
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    leads_nowhere! {
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (step, rest) = self.path.split_first().ok_or_else(|| A::Error::custom("no step"))?;
        let mut found = None;
        let name = match step {
            Step::Member(name) => Some(name.as_str()),
            Step::Index(_) => None,
        };
        while let Some(is_wanted) = map.next_key_seed(Is { name })? {
            if is_wanted {
                found = map.next_value_seed(Walk { path: rest })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (step, rest) = self.path.split_first().ok_or_else(|| A::Error::custom("no step"))?;
        let mut found = None;
        if let Step::Index(index) = step {
            for _ in 0..*index {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(None);
                }
            }
            found = seq.next_element_seed(Walk { path: rest })?.flatten();
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// Whether a member's name is the wanted one.
struct Is<'p> {
    name: Option<&'p str>,
}

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<bool, E> {
        Ok(self.name == Some(name))
    }
}

/// Reads what lies at `path` of a MessagePack document; `None` if nothing or nil does.
pub(super) fn message_pack<'a>(bytes: &'a [u8], path: &Path) -> Result<Option<Value<'a>>, Why> {
    let mut reader = MessagePackReader { all: bytes, rest: bytes };
    let found = reader.find(&path.0)?;
    match reader.rest {
        [] => found.map_or(Ok(None), Item::value),
        _ => Err(reader.bad()),
    }
}

struct MessagePackReader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

/// The beginning of a MessagePack value, and all of it but for arrays and maps.
enum Item<'a> {
    Nil,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// A type that an application defines.
    Extension,
    Array(u32),
    Map(u32),
}

impl<'a> Item<'a> {
    fn value(self) -> Result<Option<Value<'a>>, Why> {
        match self {
            Item::Nil => Ok(None),
            Item::Bool(value) => Ok(Some(Value::Bool(value))),
            Item::Int(value) => Ok(Some(Value::Int(value))),
            Item::Float(value) => match Float::new(value) {
                Some(value) => Ok(Some(Value::Float(value))),
                None => Err(Why::Nan),
            },
            Item::Text(bytes) if std::str::from_utf8(bytes).is_err() => Err(Why::NotUtf8),
            Item::Text(bytes) | Item::Bytes(bytes) => Ok(Some(bytes.into())),
            Item::Extension | Item::Array(_) | Item::Map(_) => Err(Why::Compound),
        }
    }

    /// Values that lie inside this one.
    fn inside(&self) -> u64 {
        match self {
            Item::Array(len) => u64::from(*len),
            Item::Map(len) => 2 * u64::from(*len),
            _ => 0,
        }
    }
}

impl<'a> MessagePackReader<'a> {
    fn bad(&self) -> Why {
        Why::BadMessagePack { offset: self.all.len() - self.rest.len() }
    }

    /// Follows the path through the value that comes next, and takes all of that value.
    fn find(&mut self, path: &[Step]) -> Result<Option<Item<'a>>, Why> {
        let item = self.item()?;
        let Some((step, path)) = path.split_first() else {
            self.skip(item.inside())?;
            return Ok(Some(item));
        };
        let mut found = None;
        match (&item, step) {
            (Item::Map(len), Step::Member(name)) => {
                for _ in 0..*len {
                    let key = self.item()?;
                    self.skip(key.inside())?;
                    if matches!(key, Item::Text(text) if text == name.as_bytes()) {
                        found = self.find(path)?;
                    } else {
                        self.skip(1)?;
                    }
                }
            }
            (Item::Array(len), Step::Index(index)) if (*index as u64) < u64::from(*len) => {
                self.skip(*index as u64)?;
                found = self.find(path)?;
                self.skip(u64::from(*len) - *index as u64 - 1)?;
            }
            _ => self.skip(item.inside())?,
        }
        Ok(found)
    }

    /// Takes so many values, with all that lies inside them.
    fn skip(&mut self, count: u64) -> Result<(), Why> {
        let mut left = count;
        while left > 0 {
            // Each value takes a byte at least, so what is promised cannot overflow.
            left = left - 1 + self.item()?.inside();
            if left > self.rest.len() as u64 {
                return Err(self.bad());
            }
        }
        Ok(())
    }

    fn item(&mut self) -> Result<Item<'a>, Why> {
        let bad = self.bad();
        let marker = read_marker(&mut self.rest).map_err(|_| bad)?;
        macro_rules! data {
            ($read:ident) => {
                self.rest.$read().map_err(|_| bad)?
            };
        }
        Ok(match marker {
            Marker::Null => Item::Nil,
            Marker::True => Item::Bool(true),
            Marker::False => Item::Bool(false),
            Marker::FixPos(value) => Item::Int(value.into()),
            Marker::FixNeg(value) => Item::Int(value.into()),
            Marker::U8 => Item::Int(data!(read_data_u8).into()),
            Marker::U16 => Item::Int(data!(read_data_u16).into()),
            Marker::U32 => Item::Int(data!(read_data_u32).into()),
            Marker::U64 => Item::Int(data!(read_data_u64).into()),
            Marker::I8 => Item::Int(data!(read_data_i8).into()),
            Marker::I16 => Item::Int(data!(read_data_i16).into()),
            Marker::I32 => Item::Int(data!(read_data_i32).into()),
            Marker::I64 => Item::Int(data!(read_data_i64).into()),
            Marker::F32 => Item::Float(data!(read_data_f32).into()),
            Marker::F64 => Item::Float(data!(read_data_f64)),
            Marker::FixStr(len) => Item::Text(self.bytes(len.into(), bad)?),
            Marker::Str8 => Item::Text(self.sized(1, bad)?),
            Marker::Str16 => Item::Text(self.sized(2, bad)?),
            Marker::Str32 => Item::Text(self.sized(4, bad)?),
            Marker::Bin8 => Item::Bytes(self.sized(1, bad)?),
            Marker::Bin16 => Item::Bytes(self.sized(2, bad)?),
            Marker::Bin32 => Item::Bytes(self.sized(4, bad)?),
            Marker::FixArray(len) => Item::Array(len.into()),
            Marker::Array16 => Item::Array(data!(read_data_u16).into()),
            Marker::Array32 => Item::Array(data!(read_data_u32)),
            Marker::FixMap(len) => Item::Map(len.into()),
            Marker::Map16 => Item::Map(data!(read_data_u16).into()),
            Marker::Map32 => Item::Map(data!(read_data_u32)),
            Marker::FixExt1 => self.extension(1, bad)?,
            Marker::FixExt2 => self.extension(2, bad)?,
            Marker::FixExt4 => self.extension(4, bad)?,
            Marker::FixExt8 => self.extension(8, bad)?,
            Marker::FixExt16 => self.extension(16, bad)?,
            Marker::Ext8 => self.sized_extension(1, bad)?,
            Marker::Ext16 => self.sized_extension(2, bad)?,
            Marker::Ext32 => self.sized_extension(4, bad)?,
            Marker::Reserved => return Err(bad),
        })
    }

    fn bytes(&mut self, len: usize, bad: Why) -> Result<&'a [u8], Why> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(bad)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A length of `width` bytes.
    fn len(&mut self, width: usize, bad: Why) -> Result<usize, Why> {
        let digits = self.bytes(width, bad)?.iter();
        Ok(digits.fold(0, |len, &byte| len << 8 | usize::from(byte)))
    }

    fn sized(&mut self, width: usize, bad: Why) -> Result<&'a [u8], Why> {
        let len = self.len(width, bad)?;
        self.bytes(len, bad)
    }

    /// A byte that tells the type comes before the data.
    fn extension(&mut self, len: usize, bad: Why) -> Result<Item<'a>, Why> {
        self.bytes(1 + len, bad).map(|_| Item::Extension)
    }

    fn sized_extension(&mut self, width: usize, bad: Why) -> Result<Item<'a>, Why> {
        let len = self.len(width, bad)?;
        self.extension(len, bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::layout::{Layout, Read};

    fn path(text: &str) -> Path {
        let layout: Layout = format!("a:json({text})").parse().expect("a layout");
        match &layout.fields()[0].read {
            Read::Json(path) => path.clone(),
            other => panic!("{other:?}"),
        }
    }

    const DOCUMENT: &str = r#" {"a": 1, "b": {"c": [10, {"d": "x\"\u00e9"}, null]}, "e": true,
        "big": 170141183460469231731687303715884105727, "f": 1.25, "a b": "z", "n": null} "#;

    /// The same as MessagePack.
    fn packed() -> Vec<u8> {
        let mut out = vec![0x87];
        let text = |out: &mut Vec<u8>, text: &str| {
            out.push(0xA0 | text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        };
        text(&mut out, "a");
        out.push(1);
        text(&mut out, "b");
        out.push(0x81);
        text(&mut out, "c");
        out.extend([0x93, 10, 0x81]);
        text(&mut out, "d");
        text(&mut out, "x\"\u{e9}");
        out.push(0xC0);
        text(&mut out, "e");
        out.push(0xC3);
        text(&mut out, "big");
        out.push(0xCF);
        out.extend(u64::MAX.to_be_bytes());
        text(&mut out, "f");
        out.push(0xCB);
        out.extend(1.25_f64.to_be_bytes());
        text(&mut out, "a b");
        out.extend([0xC4, 1, b'z']);
        text(&mut out, "n");
        out.push(0xC0);
        out
    }

    #[test]
    fn paths_lead_to_values() {
        let packed = packed();
        for (at, expected) in [
            ("$.a", Some(Value::Int(1))),
            ("$.b.c[0]", Some(Value::Int(10))),
            ("$.b.c[1].d", Some("x\"\u{e9}".into())),
            ("$.b.c[2]", None),
            ("$.b.c[3]", None),
            ("$.e", Some(Value::Bool(true))),
            ("$.f", Some(Value::float(1.25).expect("no NaN"))),
            ("$[\"a b\"]", Some("z".into())),
            ("$.n", None),
            ("$.absent", None),
            ("$.a.b", None),
            ("$.b[0]", None),
            ("$.b.c.d", None),
        ] {
            assert_eq!(json(DOCUMENT.as_bytes(), &path(at)), Ok(expected.clone()), "{at}");
            assert_eq!(message_pack(&packed, &path(at)), Ok(expected), "{at}");
        }
        let big = json(DOCUMENT.as_bytes(), &path("$.big"));
        assert_eq!(big, Ok(Some(Value::Int(i128::MAX))));
        let big = message_pack(&packed, &path("$.big"));
        assert_eq!(big, Ok(Some(Value::Int(u64::MAX.into()))));
        assert_eq!(json(DOCUMENT.as_bytes(), &path("$.b")), Err(Why::Compound));
        assert_eq!(message_pack(&packed, &path("$.b.c")), Err(Why::Compound));
        assert_eq!(json(b"7", &path("$")), Ok(Some(Value::Int(7))));
        assert_eq!(json(br#"{"a":1,"a":2}"#, &path("$.a")), Ok(Some(Value::Int(2))));
    }

    #[test]
    fn bad_documents_are_refused_wherever_they_are_bad() {
        for text in ["", "{", "{\"a\":1", "{\"a\":1}x", "{\"a\":1,\"b\":[1,}", "{'a':1}", "\u{1}"] {
            let found = json(text.as_bytes(), &path("$.a"));
            assert!(matches!(found, Err(Why::BadJson { .. })), "{text}: {found:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(json(deep.as_bytes(), &path("$.a")), Err(Why::BadJson { .. })));
        assert_eq!(json(b"{\"a\":1e999}", &path("$.a")), Err(Why::BeyondFloats));

        let packed = packed();
        for end in 0..packed.len() {
            let found = message_pack(&packed[..end], &path("$.a"));
            assert!(matches!(found, Err(Why::BadMessagePack { .. })), "{end}: {found:?}");
        }
        let behind = [&packed[..], &[0]].concat();
        let expected = Err(Why::BadMessagePack { offset: packed.len() });
        assert_eq!(message_pack(&behind, &path("$.a")), expected);
        // Lengths that promise more than there is cost nothing.
        for bytes in [&[0xDD, 255, 255, 255, 255][..], &[0xDF, 255, 255, 255, 255, 0xC1]] {
            let found = message_pack(bytes, &path("$.a"));
            assert!(matches!(found, Err(Why::BadMessagePack { .. })), "{bytes:?}: {found:?}");
        }
        assert_eq!(message_pack(&[0xCA, 0x7F, 0xC0, 0, 0], &path("$")), Err(Why::Nan));
        assert_eq!(message_pack(&[0xA1, 0xFF], &path("$")), Err(Why::NotUtf8));
        assert_eq!(message_pack(&[0xD4, 1, 2], &path("$")), Err(Why::Compound));
        let deep = [&vec![0x91; 1_000_000][..], &[0xC0]].concat();
        assert_eq!(message_pack(&deep, &path("$")), Err(Why::Compound));
    }
}
