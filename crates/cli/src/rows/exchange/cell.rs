//! A value of a row, its type, and its text.

use std::borrow::Cow;
use std::fmt;

use crate::terminal::format::{escaped, escaped_bytes, quoted, unescaped_bytes};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    /// A whole number of so many bits.
    Int {
        bits: u8,
        signed: bool,
    },
    Float32,
    Float64,
    Text,
    Bytes,
}

impl Kind {
    /// Whole numbers of 64 bits.
    pub(crate) const INT64: Kind = Kind::Int { bits: 64, signed: true };

    /// The least and the greatest number of so many bits; unsigned ones of 128 bits end at 2^127.
    fn range(bits: u8, signed: bool) -> (i128, i128) {
        let unused = 128 - u32::from(bits);
        match signed {
            true => (i128::MIN >> unused, i128::MAX >> unused),
            false => (0, (u128::MAX >> unused.max(1)).cast_signed()),
        }
    }

    /// Whether this number is one of its type.
    pub(crate) fn holds(self, number: i128) -> bool {
        match self {
            Kind::Int { bits, signed } => {
                let (least, greatest) = Self::range(bits, signed);
                (least..=greatest).contains(&number)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bool => f.write_str("true or false"),
            Kind::Int { bits, signed: true } => write!(f, "a whole number of {bits} bits"),
            Kind::Int { bits, signed: false } => {
                write!(f, "a whole number of {bits} bits, without a sign")
            }
            Kind::Float32 => f.write_str("a number of 32 bits"),
            Kind::Float64 => f.write_str("a number"),
            Kind::Text => f.write_str("text"),
            Kind::Bytes => f.write_str("bytes"),
        }
    }
}

/// A column of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether values may be missing.
    pub(crate) optional: bool,
}

impl Column {
    pub(crate) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, optional: false }
    }

    /// Reads a value as CSV has it. An empty one is missing where values may be.
    pub(crate) fn parse<'a>(&self, text: &'a str) -> Result<Cell<'a>, String> {
        if self.optional && text.is_empty() {
            return Ok(Cell::Null);
        }
        let refused = || self.refusal(&format!("is {}", quoted(text)));
        match self.kind {
            Kind::Text => Ok(Cell::Text(Cow::Borrowed(text))),
            Kind::Bytes => Ok(Cell::Bytes(plain_bytes(text))),
            Kind::Bool => match text {
                "true" => Ok(Cell::Bool(true)),
                "false" => Ok(Cell::Bool(false)),
                _ => Err(refused()),
            },
            Kind::Int { .. } => match text.parse::<i128>() {
                Ok(number) if self.kind.holds(number) => Ok(Cell::Int(number)),
                _ => Err(refused()),
            },
            Kind::Float32 => text.parse().map(Cell::Float32).map_err(|_| refused()),
            Kind::Float64 => text.parse().map(Cell::Float64).map_err(|_| refused()),
        }
    }

    /// The words for a value that is not of the column's type.
    pub(crate) fn refusal(&self, what: &str) -> String {
        format!("column {} {what}, not {}", quoted(&self.name), self.kind)
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i128),
    Float32(f32),
    Float64(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Cell<'a> {
    pub(crate) fn text(text: &'a str) -> Self {
        Cell::Text(Cow::Borrowed(text))
    }

    pub(crate) fn bytes(bytes: &'a [u8]) -> Self {
        Cell::Bytes(Cow::Borrowed(bytes))
    }

    /// Whether the text of the cell is read back to the same bits.
    pub(crate) fn is_exact_as_text(&self) -> bool {
        match self {
            // Text has one NaN alone.
            Cell::Float32(number) => !number.is_nan() || number.to_bits() == f32::NAN.to_bits(),
            Cell::Float64(number) => !number.is_nan() || number.to_bits() == f64::NAN.to_bits(),
            _ => true,
        }
    }

    /// The kind of value, in words.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Cell::Null => "is missing",
            Cell::Bool(_) => "is a truth value",
            Cell::Int(_) => "is a whole number",
            Cell::Float32(_) | Cell::Float64(_) => "is a float",
            Cell::Text(_) => "is text",
            Cell::Bytes(_) => "is bytes",
        }
    }
}

/// Bytes as text: as they are where nothing in them needs an escape, else as `sapwood scan` prints
/// them.
pub(crate) fn text_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\\') && matches!(escaped(text), Cow::Borrowed(_)) => {
            Cow::Borrowed(text)
        }
        _ => Cow::Owned(escaped_bytes(bytes)),
    }
}

/// The way back.
fn plain_bytes(text: &str) -> Cow<'_, [u8]> {
    match text.contains('\\') {
        true => Cow::Owned(unescaped_bytes(text)),
        false => Cow::Borrowed(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_text() {
        let mut all: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte]).collect();
        all.extend([
            (0..=255).collect(),
            b"\\x41\\n".to_vec(),
            "caf\u{e9} \u{202e}\u{200f}\u{85}\u{ad}\u{feff}\u{fffd}".as_bytes().to_vec(),
            b"\xEF\xBF\xBD\xEF\xBF".to_vec(),
            Vec::new(),
        ]);
        // Each pair, since an escape may run into what follows it.
        all.extend((0..=255_u8).flat_map(|a| (0..=255_u8).map(move |b| vec![a, b])));
        for bytes in all {
            let text = text_of_bytes(&bytes);
            assert_eq!(&*plain_bytes(&text), bytes, "{text}");
            assert_eq!(&*plain_bytes(&escaped_bytes(&bytes)), bytes, "{text}");
        }
        for (bytes, text) in [("a b", "a b"), ("caf\u{e9} 1", "caf\u{e9} 1"), ("a\\n", "a\\\\n")] {
            assert_eq!(text_of_bytes(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn numbers_stay_within_their_width() {
        for (bits, signed, least, greatest) in [
            (8, true, -128, 127),
            (8, false, 0, 255),
            (64, false, 0, i128::from(u64::MAX)),
            (128, true, i128::MIN, i128::MAX),
            (128, false, 0, i128::MAX),
        ] {
            let column = Column::new("n", Kind::Int { bits, signed });
            for number in [least, greatest] {
                assert_eq!(column.parse(&number.to_string()), Ok(Cell::Int(number)));
            }
            for beyond in [least.checked_sub(1), greatest.checked_add(1)].into_iter().flatten() {
                assert!(column.parse(&beyond.to_string()).is_err(), "{beyond} in {bits} bits");
            }
        }
    }
}
