//! The bytes of partial states, and the refusal of all others.
//!
//! Little endian. Every structure has one form, so that equal states have equal bytes: decoding
//! refuses all others. `docs/design/aggregate.md` draws the format.

use crate::error::{Example, QueryError};
use crate::value::{Float, Value};

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Corrupt {
    pub(crate) offset: usize,
    pub(crate) what: String,
}

impl From<Corrupt> for QueryError {
    fn from(Corrupt { offset, what }: Corrupt) -> QueryError {
        QueryError::Corrupt { offset, what }
    }
}

/// Takes structures off the front of untrusted bytes.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
    version: u32,
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
    /// Of the newest version.
    pub(crate) fn new(all: &'a [u8]) -> Reader<'a> {
        Reader { all, rest: all, version: u32::MAX }
    }

    /// Which version of its format the bytes have.
    pub(crate) fn version(&self) -> u32 {
        self.version
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

    /// A number that [`varint`] wrote.
    pub(crate) fn varint(&mut self, what: &str) -> Result<u128, Corrupt> {
        let wrong = self.corrupt(format!("{what} is not in its one form"));
        let mut number = 0_u128;
        for shift in (0..).step_by(7) {
            let byte = self.u8(what)?;
            let bits = u128::from(byte & 0x7F);
            // The last byte has bits, unless it is the only one.
            let is_short = byte & 0x80 == 0;
            if shift >= 128
                || bits << shift >> shift != bits
                || (is_short && bits == 0 && shift > 0)
            {
                return Err(wrong);
            }
            number |= bits << shift;
            if is_short {
                break;
            }
        }
        Ok(number)
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

/// Appends a number in groups of seven bits, low ones first; the high bit of a byte says that more
/// follow.
pub(crate) fn varint(mut number: u128, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

impl Example {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        sized(&self.key, out);
        sized(self.what.as_bytes(), out);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> std::result::Result<Example, Corrupt> {
        let key = reader.sized("a key")?.to_vec();
        let what = str::from_utf8(reader.sized("a message")?);
        let Ok(what) = what else { return Err(reader.corrupt("a message is not UTF-8")) };
        if key.len() > Example::KEY_BYTES_MAX {
            return Err(reader.corrupt("the key of an example is too long"));
        }
        Ok(Example { key, what: what.to_owned() })
    }
}

/// What every stored state begins with: magic, version, checksum of all that follows.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) magic: [u8; 8],
    /// The one that is written; those from 1 on are read.
    pub(crate) version: u32,
    /// What the bytes are, for people.
    pub(crate) what: &'static str,
}

const ENVELOPE_BYTES: usize = 16;

impl Envelope {
    /// Bytes with room for the envelope.
    pub(crate) fn begin(&self) -> Vec<u8> {
        vec![0; ENVELOPE_BYTES]
    }

    pub(crate) fn seal(&self, out: &mut [u8]) {
        let checksum = crc32fast::hash(&out[ENVELOPE_BYTES..]);
        out[..8].copy_from_slice(&self.magic);
        out[8..12].copy_from_slice(&self.version.to_le_bytes());
        out[12..ENVELOPE_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Checks what `seal` wrote; the reader stands behind it.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8]) -> Result<Reader<'a>, Corrupt> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(8, "the magic")? != self.magic {
            return Err(Corrupt { offset: 0, what: format!("this is not {}", self.what) });
        }
        let version = reader.u32("the version")?;
        if !(1..=self.version).contains(&version) {
            let reads = match self.version {
                1 => "version 1".to_owned(),
                newest => format!("versions 1 to {newest}"),
            };
            let what = format!("the format has version {version}, this program reads {reads}");
            return Err(Corrupt { offset: 8, what });
        }
        reader.version = version;
        let checksum = reader.u32("the checksum")?;
        if checksum != crc32fast::hash(&bytes[ENVELOPE_BYTES..]) {
            return Err(Corrupt {
                offset: 12,
                what: "the checksum does not match the bytes".into(),
            });
        }
        Ok(reader)
    }
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

    #[test]
    fn numbers_of_seven_bits_a_byte_have_one_form() {
        for number in [0, 1, 127, 128, 300, u64::MAX.into(), i128::MAX as u128, u128::MAX] {
            let mut bytes = Vec::new();
            varint(number, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.varint("a number"), Ok(number));
            assert!(reader.is_empty());
        }
        let too_long = [&[0xFF; 18][..], &[0x07]].concat();
        for bytes in [&[0x80, 0][..], &[0x80], &[], &too_long, &[0xFF; 30]] {
            assert!(Reader::new(bytes).varint("a number").is_err(), "{bytes:?}");
        }
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
