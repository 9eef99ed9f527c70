//! Values of JSON as they are written: numbers keep all their digits.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Objects within objects that are taken apart; those within are text.
const DEPTH_MAX: usize = 8;

/// A value, borrowed from the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Json<'b> {
    Null,
    Bool(bool),
    /// Its text.
    Number(&'b str),
    String(Cow<'b, str>),
    /// Its text.
    Array(&'b str),
    Object(Members<'b>),
    /// The text of an object that lies too deep to be taken apart.
    Nested(&'b str),
}

/// The members of an object, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Members<'b>(Vec<(Cow<'b, str>, Json<'b>)>);

impl<'b> Json<'b> {
    /// Takes a value apart; `depth` objects are around it.
    fn of(raw: &'b RawValue, depth: usize) -> serde_json::Result<Json<'b>> {
        let text = raw.get();
        Ok(match text.as_bytes().first() {
            Some(b'n') => Json::Null,
            Some(b't') => Json::Bool(true),
            Some(b'f') => Json::Bool(false),
            Some(b'"') => Json::String(string(text)?),
            Some(b'[') => Json::Array(text),
            Some(b'{') if depth < DEPTH_MAX => Json::Object(Members::within(text, depth)?),
            Some(b'{') => Json::Nested(text),
            _ => Json::Number(text),
        })
    }

    /// Its words, as messages and columns of text have it: strings are themselves, arrays and objects JSON without
    /// blanks.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Json::Null => "null".into(),
            Json::Bool(true) => "true".into(),
            Json::Bool(false) => "false".into(),
            Json::Number(text) => (*text).into(),
            Json::String(text) => text.as_ref().into(),
            Json::Array(text) | Json::Nested(text) => compact(text).into(),
            Json::Object(_) => unreachable!("objects are taken apart"),
        }
    }
}

impl<'b> Members<'b> {
    /// Takes an object apart, which is known to be one.
    pub(crate) fn of(object: &'b str) -> serde_json::Result<Members<'b>> {
        Members::within(object, 0)
    }

    fn within(object: &'b str, depth: usize) -> serde_json::Result<Members<'b>> {
        let Raw(members) = serde_json::from_str(object)?;
        let taken = members.into_iter().map(|(name, raw)| Ok((name, Json::of(raw, depth + 1)?)));
        taken.collect::<serde_json::Result<_>>().map(Members)
    }

    /// Shows the values in the object, and in the objects within, with their names: `a.b` is that of one within.
    pub(crate) fn leaves<'v>(&'v self, each: &mut dyn FnMut(&str, &'v Json<'b>)) {
        fn within<'v, 'b>(
            object: &'v Members<'b>,
            path: &mut String,
            depth: usize,
            each: &mut dyn FnMut(&str, &'v Json<'b>),
        ) {
            for (name, value) in &object.0 {
                let begin = path.len();
                if depth > 1 {
                    path.push('.');
                }
                path.push_str(name);
                match value {
                    Json::Object(inner) => within(inner, path, depth + 1, each),
                    value => each(path, value),
                }
                path.truncate(begin);
            }
        }
        within(self, &mut String::new(), 1, each);
    }
}

/// The items of an array.
pub(crate) fn items(array: &str) -> serde_json::Result<Vec<Json<'_>>> {
    let raw: Vec<&RawValue> = serde_json::from_str(array)?;
    // Objects in arrays are not taken apart.
    raw.into_iter().map(|raw| Json::of(raw, DEPTH_MAX)).collect()
}

fn string(text: &str) -> serde_json::Result<Cow<'_, str>> {
    let Name(string) = serde_json::from_str(text)?;
    Ok(string)
}

/// JSON without the blanks between its signs. Numbers are as they are.
fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    let (mut at, mut begin) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b' ' | b'\t' | b'\n' | b'\r' => {
                compact.push_str(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    compact.push_str(&text[begin..]);
    compact
}

/// Members that are not yet looked at.
struct Raw<'b>(Vec<(Cow<'b, str>, &'b RawValue)>);

impl<'b> Deserialize<'b> for Raw<'b> {
    fn deserialize<D: Deserializer<'b>>(from: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'b> Visitor<'b> for Each {
            type Value = Raw<'b>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'b>>(self, mut members: M) -> Result<Raw<'b>, M::Error> {
                let mut all = Vec::new();
                while let Some((Name(name), value)) = members.next_entry()? {
                    all.push((name, value));
                }
                Ok(Raw(all))
            }
        }

        from.deserialize_map(Each)
    }
}

/// A string, borrowed where it has no escapes.
struct Name<'b>(Cow<'b, str>);

impl<'b> Deserialize<'b> for Name<'b> {
    fn deserialize<D: Deserializer<'b>>(from: D) -> Result<Self, D::Error> {
        struct One;

        impl<'b> Visitor<'b> for One {
            type Value = Name<'b>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'b str) -> Result<Name<'b>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'b>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        from.deserialize_str(One)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_they_are_written() {
        let text = r#"{"a": 1.50, "b\n": "x\u0041", "c": {"d": [1, {"e": " ]"}], "f": null},
            "g": -123456789012345678901234567890, "h": true, "a": 1e400}"#;
        let members = Members::of(text).expect("an object");
        let mut found = Vec::new();
        members.leaves(&mut |path, value| found.push(format!("{path}={}", value.text())));
        assert_eq!(
            found,
            [
                "a=1.50",
                "b\n=xA",
                r#"c.d=[1,{"e":" ]"}]"#,
                "c.f=null",
                "g=-123456789012345678901234567890",
                "h=true",
                "a=1e400"
            ]
        );
        assert!(Members::of(r#"{"a": "\uD800"}"#).is_err());
    }

    #[test]
    fn objects_that_lie_deep_are_text() {
        let text = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for (depth, path, value) in
            [(1, "a", "1"), (8, "a.a.a.a.a.a.a.a", "1"), (9, "a.a.a.a.a.a.a.a", "{\"a\":1}")]
        {
            let text = text(depth);
            let members = Members::of(&text).expect("an object");
            members.leaves(&mut |found, leaf| {
                assert_eq!((found, leaf.text().as_ref()), (path, value));
            });
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Members::of(&deep).is_ok());
    }

    #[test]
    fn arrays_have_items() {
        let found = items("[1, \"a\\\"\", null, {\"b\": 2}, [] ]").expect("an array");
        let texts: Vec<_> = found.iter().map(|item| item.text().into_owned()).collect();
        assert_eq!(texts, ["1", "a\"", "null", "{\"b\":2}", "[]"]);
    }
}
