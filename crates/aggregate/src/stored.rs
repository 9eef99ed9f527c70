//! How do partial states become bytes, and which bytes are refused?
//!
//! Little endian. Every structure has one form, so that equal states have equal bytes: decoding
//! refuses all others. `docs/design/aggregate.md` draws the format.

use crate::error::Error;
use crate::value::{Float, Value};

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Corrupt {
    pub(crate) offset: usize,
    pub(crate) what: String,
}

impl From<Corrupt> for Error {
    fn from(Corrupt { offset, what }: Corrupt) -> Error {
        Error::Corrupt { offset, what }
    }
}

/// Takes structures off the front of bytes that nobody vouches for.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

macro_rules! ints {
    ($($int:ident)*) => {$(
        pub(crate) fn $int(&mut self, what: &str) -> Result<$int, Corrupt> {
            let bytes = self.bytes(size_of::<$int>(), what)?;
            Ok($int::from_le_bytes(bytes.try_into().expect("as many bytes as were taken")))
        }
    )*};
}

impl<'a> Reader<'a> {
    pub(crate) fn new(all: &'a [u8]) -> Reader<'a> {
        Reader { all, rest: all }
    }

    ints!(u8 u16 u32 u64 i128);

    pub(crate) fn bytes(&mut self, len: usize, what: &str) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| self.corrupt(format!("{what} is cut off")))?;
        self.rest = rest;
        Ok(taken)
    }

    /// As many bytes as the `u32` before them says.
    pub(crate) fn sized(&mut self, what: &str) -> Result<&'a [u8], Corrupt> {
        let len = self.u32(what)?;
        self.bytes(len as usize, what)
    }

    /// A count of things of which each takes `bytes` at least, so that room can be made for them.
    pub(crate) fn count(&mut self, bytes: usize, what: &str) -> Result<usize, Corrupt> {
        let count = self.u32(what)? as usize;
        if count > self.rest.len() / bytes {
            return Err(self.corrupt(format!("{what} are more than fit")));
        }
        Ok(count)
    }

    pub(crate) fn offset(&self) -> usize {
        self.all.len() - self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn corrupt(&self, what: impl Into<String>) -> Corrupt {
        Corrupt { offset: self.offset(), what: what.into() }
    }

    /// A value that [`value`] wrote, or `None` for a missing one.
    pub(crate) fn value(&mut self) -> Result<Option<Value<'a>>, Corrupt> {
        let wrong = self.corrupt("a value is not in its one form");
        let value = match self.u8("a value")? {
            tag::MISSING => return Ok(None),
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INT => Value::Int(self.u64("a number")?.cast_signed().into()),
            tag::WIDE => match self.i128("a number")? {
                number if i64::try_from(number).is_err() => Value::Int(number),
                _ => return Err(wrong),
            },
            tag::FLOAT => {
                let bits = self.u64("a number")?;
                let float =
                    Float::new(f64::from_bits(bits)).map(Value::Float).map(Value::canonical);
                match float {
                    Some(value @ Value::Float(_)) => value,
                    _ => return Err(wrong),
                }
            }
            tag::BYTES => self.sized("a text")?.into(),
            _ => return Err(wrong),
        };
        Ok(Some(value))
    }

    /// A value that is there.
    pub(crate) fn present(&mut self) -> Result<Value<'a>, Corrupt> {
        let absent = self.corrupt("a value is expected");
        self.value()?.ok_or(absent)
    }
}

/// What a value begins with. Stored: do not renumber.
mod tag {
    pub(super) const MISSING: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const INT: u8 = 4;
    pub(super) const WIDE: u8 = 5;
    pub(super) const FLOAT: u8 = 6;
    pub(super) const BYTES: u8 = 7;
}

/// Appends a value: equal ones, whole or floating point, as the same bytes.
pub(crate) fn value(value: Option<&Value<'_>>, out: &mut impl Extend<u8>) {
    let (tag, bytes): (u8, &[u8]) = match value {
        None => (tag::MISSING, &[]),
        Some(Value::Bool(false)) => (tag::FALSE, &[]),
        Some(Value::Bool(true)) => (tag::TRUE, &[]),
        Some(Value::Int(number)) => return int(*number, out),
        Some(Value::Float(float)) => match Value::Float(*float).canonical() {
            Value::Int(number) => return int(number, out),
            _ => (tag::FLOAT, &float.get().to_bits().to_le_bytes()),
        },
        Some(Value::Bytes(bytes)) => {
            out.extend([tag::BYTES]);
            out.extend(len(bytes.len()).to_le_bytes());
            return out.extend(bytes.iter().copied());
        }
    };
    out.extend([tag]);
    out.extend(bytes.iter().copied());
}

fn int(number: i128, out: &mut impl Extend<u8>) {
    match i64::try_from(number) {
        Ok(number) => {
            out.extend([tag::INT]);
            out.extend(number.to_le_bytes());
        }
        Err(_) => {
            out.extend([tag::WIDE]);
            out.extend(number.to_le_bytes());
        }
    }
}

/// A length or count as it is stored.
pub(crate) fn len(len: usize) -> u32 {
    u32::try_from(len).expect("a partial state is below 4 GiB")
}

/// Appends bytes behind their length.
pub(crate) fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(len(bytes.len()).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The values that stand one after the other in `bytes`, which [`value`] wrote.
pub(crate) fn values(bytes: &[u8], count: usize) -> Result<Vec<Option<Value<'static>>>, Corrupt> {
    let mut reader = Reader::new(bytes);
    let read = |_| Ok(reader.value()?.map(Value::into_owned));
    let values = (0..count).map(read).collect::<Result<_, Corrupt>>()?;
    if !reader.is_empty() {
        return Err(reader.corrupt("a group has more values than the query groups by"));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_values_have_equal_bytes() {
        let bytes = |value: Value<'_>| {
            let mut out = Vec::new();
            super::value(Some(&value), &mut out);
            out
        };
        let float = |value| Value::float(value).expect("not NaN");
        assert_eq!(bytes(Value::Int(-3)), bytes(float(-3.0)));
        assert_eq!(bytes(Value::Int(0)), bytes(float(-0.0)));
        assert_eq!(bytes(Value::Int(1 << 100)), bytes(float((1_u128 << 100) as f64)));
        assert_ne!(bytes(Value::Int(1)), bytes(Value::Bool(true)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_in_its_one_form_or_refused(given in prop::collection::vec(any::<u8>(), 0..30), tag in 0_u8..9) {
            let given = [&[tag][..], &given].concat();
            let mut reader = Reader::new(&given);
            if let Ok(read) = reader.value() {
                let mut again = Vec::new();
                value(read.as_ref(), &mut again);
                prop_assert_eq!(&again[..], &given[..reader.offset()]);
            }
        }
    }
}
