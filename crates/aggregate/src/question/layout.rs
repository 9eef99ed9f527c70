//! The layout of objects: where each field lies, and how it is read.
//!
//! A [`Layout`] names the fields of an object, which is a key and a value. Each [`Field`] says in
//! which of the two it lies ([`Place`]), in which part of it ([`Part`]), and how the bytes of that
//! part are read ([`Read`]). Layouts have a text form, see [`Layout`].
//!
//! *Useful for* values as programs store them: records of fixed width, single integers, decimal
//! strings, JSON and MessagePack, keys made of parts. *Not for* changing them.
//!
//! Reading answers a value, "missing", or a mismatch, and never a wrong number: what has not the
//! form that the layout says is a mismatch, which the query counts and reports.

mod decimal;
mod document;
mod row;
mod text;

pub(crate) use text::body;
mod tuple;

pub use document::{Path, Step};
pub use row::RowColumn;
pub use tuple::{Component, ComponentForm, Tuple};

use std::borrow::Cow;

use crate::error::{QueryError, Result, Why};
use crate::value::number::{Form, Number};
use crate::value::{Kind, Value};

/// The fields of an object, by name.
///
/// # Text form
///
/// Fields stand between commas: a name, a colon, and how the field is read.
///
/// | form | reads |
/// |---|---|
/// | `u8` `i8`, `u16le` ... `i128be`, `f32le` `f64be` | a number, least or most significant byte first |
/// | `i32ord`, `f64ord` | a number as ordered keys encode it |
/// | `bytes4`, `bytes` | 4 bytes; all bytes to the end |
/// | `text6`, `text` | 6 bytes of UTF-8 without the zeros at their end; all to the end |
/// | `decimal` | a number written in digits, as Redis writes them |
/// | `json($.a.b[0])`, `msgpack($.a)` | the value at a path of a document (feature `documents`) |
/// | `tuple(str,u16)[0]` | component 0 of an ordered key, which has these components and nothing more |
/// | `tuple(str,u16)` | the last of these components of an ordered key, which any bytes may follow |
///
/// Before it may stand `key.` or `value.` (the value if neither), and a part of that:
/// `split("/",1).` is what lies behind the first slash and before the second, `cell(3).` the
/// fourth cell of a row of length-prefixed texts. Behind it may stand `@12`, the offset in bytes,
/// and `?`, with the value that stands for "missing": `i16le@2?-32768`, `cell(5).decimal?"NA"`.
///
/// `key(carrier:str,flight:u16)` names the components of an ordered key at once; `_` names one that is
/// not a field. The key ends behind the last of them. Where it may go on, the layout says so: `..`
/// behind the last component, as in `key(carrier:str,..)`, stands for any bytes.
///
/// Keys carry no marks of their types. A field compares the bytes left behind its component with those
/// that the components behind it take ([`Tuple`]): a key of `("UA", 1)`, whose literal is an `i32`, is a
/// mismatch where `flight` is declared as `u16`. A mismatch is *not* seen between types of the same
/// width (`i32`, `u32` and `f32`), nor where a text or an option behind the field leaves the length
/// open. Declare the types that `key::encode` was given.
///
/// ```
/// use sapwood::aggregate::Layout;
///
/// let layout: Layout = "key(carrier:str, flight:u16, _:u16, month:u8), \
///     delay:i16le@2?-32768, plane:text6@14"
///     .parse()?;
/// assert_eq!(layout.fields().len(), 5);
/// assert_eq!(layout.fields()[2].to_string(), "month:key.tuple(str,u16,u16,u8)[3]");
/// assert_eq!(layout.fields()[3].to_string(), "delay:i16le@2?-32768");
///
/// let error = "count:u32@0".parse::<Layout>().unwrap_err().to_string();
/// assert!(error.contains("`u32le` or `u32be`"), "{error}");
/// # Ok::<(), sapwood::aggregate::SyntaxError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    fields: Vec<Field>,
}

/// One field: its name, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// What predicates, groups and aggregates call it.
    pub name: String,
    /// In the key or in the value.
    pub place: Place,
    /// In which part of that.
    pub part: Part,
    /// How the bytes of the part are read.
    pub read: Read,
    /// The value that stands for "missing", if one does. Text is compared with the bytes before
    /// they are read as well, so that `NA` may stand where a number is expected.
    pub absent: Option<Value<'static>>,
}

/// Where a field lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the object's key.
    Key,
    /// In its value.
    Value,
}

/// Which bytes of the key or the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// From this offset, in bytes, to the end.
    From(usize),
    /// What lies between two separators: part 0 before the first, part 1 behind it, and so on.
    Split {
        /// The separator, at least one byte.
        separator: Vec<u8>,
        /// Which part, from 0.
        index: usize,
    },
    /// A cell of a row, from 0. Each cell is its length (LEB128: seven bits a byte, low ones
    /// first, the high bit says that more follow) and its bytes.
    Cell(usize),
}

/// How the bytes of a part are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A number of fixed width; what lies behind it does not matter.
    Number(Number),
    /// So many bytes, or all.
    Bytes(Option<usize>),
    /// So many bytes of UTF-8 without the zeros at their end, or all bytes.
    Text(Option<usize>),
    /// A number in decimal digits: `[+-]digits[.digits][e[+-]digits]`, nothing else. Whole ones
    /// are exact up to 128 bits, others the nearest float. It reads what Redis' INCR and
    /// INCRBYFLOAT read, but hexadecimal, infinities and numbers beyond a 64-bit float.
    Decimal,
    /// The value at a path of a JSON document. A path without a value, and null, are missing. Queries
    /// need the feature `documents`.
    Json(Path),
    /// The value at a path of a MessagePack document, likewise.
    MessagePack(Path),
    /// A component of an ordered key; those before it say where it begins.
    Tuple(Tuple),
    /// A column of a row of a schema, in the key or in the value. Null is missing. It has no text form that is
    /// read: [`Layout::of_rows`] makes it.
    Row(RowColumn),
}

impl Layout {
    /// A layout of these fields.
    ///
    /// # Errors
    /// [`QueryError::Query`] if two fields share a name, a name is empty or has a backquote, or a field
    /// reads nothing (an empty separator).
    pub fn new(fields: Vec<Field>) -> Result<Layout> {
        for (at, field) in fields.iter().enumerate() {
            field.check()?;
            if fields[..at].iter().any(|earlier| earlier.name == field.name) {
                let name = &field.name;
                return Err(QueryError::Query(format!(
                    "two fields are called `{name}`: rename one"
                )));
            }
        }
        Ok(Layout { fields })
    }

    /// All fields, in the order in which they were declared.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The number of the field with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

impl Field {
    /// The number at an offset, in bytes, of the value.
    ///
    /// ```
    /// use sapwood::aggregate::{Field, Number};
    ///
    /// assert_eq!(Field::number("n", "u32le".parse::<Number>()?, 4).to_string(), "n:u32le@4");
    /// # Ok::<(), sapwood::aggregate::SyntaxError>(())
    /// ```
    pub fn number(name: impl Into<String>, number: Number, offset: usize) -> Field {
        Field {
            name: name.into(),
            place: Place::Value,
            part: Part::From(offset),
            read: Read::Number(number),
            absent: None,
        }
    }

    fn check(&self) -> Result<()> {
        let name = &self.name;
        let wrong = if name.is_empty() || name.contains('`') {
            "names have at least one character and no backquote"
        } else if matches!(&self.part, Part::Split { separator, .. } if separator.is_empty()) {
            "the separator has no bytes: give it one"
        } else {
            return Ok(());
        };
        Err(QueryError::Query(format!("field `{name}`: {wrong}")))
    }

    /// Refuses a field that this build cannot read.
    pub(crate) fn expect_readable(&self) -> Result<()> {
        match self.read {
            Read::Json(_) | Read::MessagePack(_) if !cfg!(feature = "documents") => {
                let name = &self.name;
                Err(QueryError::Query(format!(
                    "field `{name}` is part of a document, which this program cannot read; \
                     next: build it with the feature `documents` of the crate `sapwood`"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Of which kind its values are, where the layout alone says so.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match &self.read {
            Read::Number(_) | Read::Decimal => Some(Kind::Number),
            Read::Bytes(_) | Read::Text(_) => Some(Kind::Bytes),
            Read::Json(_) | Read::MessagePack(_) => None,
            Read::Tuple(tuple) => Some(tuple.component().kind()),
            Read::Row(column) => column.kind(),
        }
    }

    /// Whether all its values are floating point.
    pub(crate) fn is_float(&self) -> bool {
        match &self.read {
            Read::Number(number) => number.form() == Form::Float,
            Read::Tuple(tuple) => tuple.component().is_float(),
            Read::Row(column) => column.is_float(),
            _ => false,
        }
    }

    /// Reads the field of an object; `None` if it is missing.
    #[inline]
    pub(crate) fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
    ) -> std::result::Result<Option<Value<'a>>, Why> {
        let all = match self.place {
            Place::Key => key,
            Place::Value => value,
        };
        // The most common way first: a number of fixed width.
        if let (Part::From(offset), Read::Number(number), None) =
            (&self.part, &self.read, &self.absent)
        {
            return number.read(fixed(all, *offset, number.bytes())?).map(Some);
        }
        if let Read::Row(column) = &self.read {
            return column.read(key, value);
        }
        let bytes = self.part.of(all)?;
        if let Some(Value::Bytes(absent)) = &self.absent
            && **absent == *bytes
        {
            return Ok(None);
        }
        let value = self.read.value(bytes).map_err(|why| why.beyond(&self.part))?;
        Ok(value.filter(|value| self.absent.as_ref() != Some(value)))
    }
}

impl Why {
    /// Lengths count from the beginning of the key or value.
    fn beyond(self, part: &Part) -> Why {
        match (self, part) {
            (Why::TooShort { needed, len }, Part::From(offset)) => {
                Why::TooShort { needed: needed + offset, len: len + offset }
            }
            (why, _) => why,
        }
    }
}

fn fixed(bytes: &[u8], offset: usize, width: usize) -> std::result::Result<&[u8], Why> {
    let needed = offset.saturating_add(width);
    bytes.get(offset..needed).ok_or(Why::TooShort { needed, len: bytes.len() })
}

impl Part {
    fn of<'a>(&self, bytes: &'a [u8]) -> std::result::Result<&'a [u8], Why> {
        match self {
            Part::From(offset) => fixed(bytes, *offset, 0).map(|_| &bytes[*offset..]),
            Part::Split { separator, index } => split(bytes, separator, *index),
            Part::Cell(index) => cell(bytes, *index),
        }
    }
}

fn split<'a>(
    mut bytes: &'a [u8],
    separator: &[u8],
    index: usize,
) -> std::result::Result<&'a [u8], Why> {
    for count in 0.. {
        let end = bytes.windows(separator.len()).position(|window| window == separator);
        match end {
            _ if count == index => return Ok(&bytes[..end.unwrap_or(bytes.len())]),
            Some(end) => bytes = &bytes[end + separator.len()..],
            None => return Err(Why::NoPart { index, count: count + 1 }),
        }
    }
    unreachable!("bytes end")
}

fn cell(mut bytes: &[u8], index: usize) -> std::result::Result<&[u8], Why> {
    let bad = Why::BadCell { index };
    for at in 0..=index {
        let mut len = 0_usize;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = bytes.split_first().ok_or(bad)?;
            bytes = rest;
            // Five bytes of seven bits: no value is longer.
            if shift > 28 {
                return Err(bad);
            }
            len |= usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let text = bytes.get(..len).ok_or(bad)?;
        if at == index {
            return Ok(text);
        }
        bytes = &bytes[len..];
    }
    unreachable!("the range has a last element")
}

impl Read {
    fn value<'a>(&self, bytes: &'a [u8]) -> std::result::Result<Option<Value<'a>>, Why> {
        match self {
            Read::Number(number) => number.read(fixed(bytes, 0, number.bytes())?).map(Some),
            Read::Bytes(len) => {
                let bytes = len.map_or(Ok(bytes), |len| fixed(bytes, 0, len))?;
                Ok(Some(bytes.into()))
            }
            Read::Text(len) => {
                let bytes = match len {
                    Some(len) => {
                        let padded = fixed(bytes, 0, *len)?;
                        let end = padded.iter().rposition(|&byte| byte != 0);
                        &padded[..end.map_or(0, |last| last + 1)]
                    }
                    None => bytes,
                };
                let text = std::str::from_utf8(bytes).map_err(|_| Why::NotUtf8)?;
                Ok(Some(Value::Bytes(Cow::Borrowed(text.as_bytes()))))
            }
            Read::Decimal => decimal::read(bytes).map(Some),
            Read::Json(path) => document::json(bytes, path),
            Read::MessagePack(path) => document::message_pack(bytes, path),
            Read::Tuple(tuple) => tuple.read(bytes),
            Read::Row(_) => {
                unreachable!("a row is its key and its value, not bytes of one of them")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(
        field: &str,
        key: &'a [u8],
        value: &'a [u8],
    ) -> std::result::Result<Option<Value<'a>>, Why> {
        let layout: Layout = field.parse().expect("a layout");
        layout.fields()[0].read(key, value)
    }

    #[track_caller]
    fn check(field: &str, value: &[u8], expected: impl Into<Value<'static>>) {
        assert_eq!(read(field, b"", value), Ok(Some(expected.into())), "{field}");
    }

    #[test]
    fn parts_are_cut_out() {
        assert_eq!(read("a:key.bytes2@1", b"abcd", b""), Ok(Some("bc".into())));
        check("a:bytes@2", b"abcd", "cd");
        check("a:text4@1", b"-UA\0\0", "UA");
        check("a:text4", b"\0\0\0\0", "");
        check("a:split(\"::\",0).text", b"x::yy::z", "x");
        check("a:split(\"::\",1).text", b"x::yy::z", "yy");
        check("a:split(\"::\",2).decimal", b"x::yy::7", 7);
        check("a:cell(0).text", b"\x02UA\x03-17", "UA");
        check("a:cell(1).decimal", b"\x02UA\x03-17", -17);
        check("a:cell(0).text", &[&[0x80 | 4, 1], &[b'x'; 132][..]].concat(), {
            Value::from(&[b'x'; 132][..]).into_owned()
        });
    }

    #[test]
    fn what_is_not_there_is_a_mismatch() {
        for (field, value, expected) in [
            ("a:u32le@2", &b"12345"[..], Why::TooShort { needed: 6, len: 5 }),
            ("a:u32le@9", b"12345", Why::TooShort { needed: 13, len: 5 }),
            ("a:bytes4@2", b"12345", Why::TooShort { needed: 6, len: 5 }),
            ("a:bytes@6", b"12345", Why::TooShort { needed: 6, len: 5 }),
            ("a:text", b"\xFF", Why::NotUtf8),
            ("a:split(\"/\",2).text", b"a/b", Why::NoPart { index: 2, count: 2 }),
            ("a:cell(1).text", b"\x02UA", Why::BadCell { index: 1 }),
            ("a:cell(0).text", b"\x03UA", Why::BadCell { index: 0 }),
            (
                "a:cell(0).text",
                b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
                Why::BadCell { index: 0 },
            ),
            ("a:split(\"/\",1).u16le", b"a/b", Why::TooShort { needed: 2, len: 1 }),
        ] {
            assert_eq!(read(field, b"", value), Err(expected), "{field}");
        }
    }

    #[test]
    fn a_value_can_stand_for_missing() {
        assert_eq!(read("a:i16le?-32768", b"", &i16::MIN.to_le_bytes()), Ok(None));
        check("a:i16le?-32768", &7_i16.to_le_bytes(), 7);
        assert_eq!(read("a:cell(0).decimal?\"NA\"", b"", b"\x02NA"), Ok(None));
        assert_eq!(read("a:cell(0).text?\"\"", b"", b"\x00"), Ok(None));
        check("a:cell(0).decimal?\"NA\"", b"\x012", 2);
    }

    #[test]
    fn fields_must_read_something_and_differ_in_name() {
        let field = |name: &str| Field::number(name, "u8".parse().expect("a number"), 0);
        let split = Part::Split { separator: Vec::new(), index: 0 };
        for (fields, says) in [
            (vec![field("a"), field("a")], "two fields"),
            (vec![field("")], "at least one"),
            (vec![field("a`")], "no backquote"),
            (vec![Field { part: split, ..field("a") }], "separator"),
        ] {
            let error = Layout::new(fields).expect_err("refused").to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
