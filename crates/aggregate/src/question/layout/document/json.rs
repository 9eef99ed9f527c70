//! The value at a path of a JSON document.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::super::decimal;
use super::{Path, Step};
use crate::error::Why;
use crate::value::Value;

/// Reads the value at `path`; `None` if there is none, or null.
pub(super) fn read<'a>(bytes: &'a [u8], path: &Path) -> Result<Option<Value<'a>>, Why> {
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

/// Ends a path at a value without its next step: nothing is found.
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

/// Compares a member's name with the wanted one.
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
