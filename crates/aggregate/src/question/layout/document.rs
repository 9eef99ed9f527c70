//! The value at a path of a JSON or MessagePack document.
//!
//! A document is walked, not built: the walk follows the path and skips the rest. The whole document
//! must be well formed nevertheless. Of members with the same name the last counts.

#[cfg(feature = "documents")]
mod json;
#[cfg(feature = "documents")]
mod message_pack;

use std::fmt;

use crate::error::Why;
use crate::value::Value;

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

/// Reads the value at `path` of a JSON document; `None` if there is none, or null.
#[cfg(feature = "documents")]
pub(super) fn json<'a>(bytes: &'a [u8], path: &Path) -> Result<Option<Value<'a>>, Why> {
    json::read(bytes, path)
}

/// Reads the value at `path` of a MessagePack document; `None` if there is none, or nil.
#[cfg(feature = "documents")]
pub(super) fn message_pack<'a>(bytes: &'a [u8], path: &Path) -> Result<Option<Value<'a>>, Why> {
    message_pack::read(bytes, path)
}

/// Refuses to read documents.
///
/// No query gets here: [`Field::expect_readable`](super::Field::expect_readable) comes first.
#[cfg(not(feature = "documents"))]
pub(super) fn json<'a>(_: &'a [u8], _: &Path) -> Result<Option<Value<'a>>, Why> {
    unreachable!("a query without the feature `documents` reads no fields of documents")
}

#[cfg(not(feature = "documents"))]
pub(super) use json as message_pack;

#[cfg(all(test, feature = "documents"))]
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
