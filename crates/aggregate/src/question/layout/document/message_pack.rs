//! The value at a path of a MessagePack document.

use rmp::Marker;
use rmp::decode::{RmpRead, read_marker};

use super::{Path, Step};
use crate::error::Why;
use crate::value::{Float, Value};

/// Reads the value at `path`; `None` if there is none, or nil.
pub(super) fn read<'a>(bytes: &'a [u8], path: &Path) -> Result<Option<Value<'a>>, Why> {
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
