//! Rows as MessagePack, a map each.

use std::borrow::Cow;
use std::io::Read;

use rmp::Marker;
use rmp::decode::{RmpRead, read_marker};

use super::batch::RowBatch;
use super::builder::RowBatchBuilder;
use crate::error::{Error, Result};
use crate::value::Value;

/// A value of MessagePack that is no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The byte at which it begins; of bytes that are no MessagePack, the one that is wrong.
    pub offset: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Maps and lists inside each other, the row among them: as deep as JSON may be.
const DEPTH_MAX: usize = 127;

/// The extension type of a time.
const TIMESTAMP: i8 = -1;

impl RowBatch {
    /// Reads MessagePack: maps one after the other, or lists of them. Maps inside of maps become columns
    /// with a dot in their name, as those of JSON do: `{"user": {"id": 7}}` has the column `user.id`.
    ///
    /// Bytes must be UTF-8 and are texts; truth values are the texts `true` and `false`; whole numbers
    /// beyond 64 bits with a sign are doubles; times (extension type -1) are milliseconds. A number that
    /// is not finite is the text that says so, which is an error where a number is wanted.
    ///
    /// A value that is no row is told beside the batch, as is a row with which it would have
    /// [too many](Self::COLUMNS_MAX) columns or [values](Self::CELLS_MAX), and the next one is read. Bytes that are no
    /// MessagePack end the batch: no row can be found behind them.
    ///
    /// ```
    /// use sapwood::rollup::RowBatch;
    ///
    /// let rows = b"\x81\xa1a\x01\x07\x81\xa1b\x92\xa1x\xc0\x81\xa1";
    /// let (batch, bad) = RowBatch::from_message_pack(rows);
    /// assert_eq!((batch.rows(), bad[0].offset, bad[1].offset), (2, 4, 14));
    /// ```
    pub fn from_message_pack(bytes: &[u8]) -> (RowBatch, Vec<BadRow>) {
        let mut reader = Reader { all: bytes, rest: bytes };
        let (mut builder, mut bad) = (RowBatchBuilder::new(), Vec::new());
        let mut listed = 0;
        while listed > 0 || !reader.rest.is_empty() {
            let offset = reader.offset();
            match reader.row(&mut listed, &mut builder) {
                Ok(Taken::Row | Taken::Head) => {}
                Ok(Taken::BadRow(why)) => bad.push(BadRow { offset, why }),
                Err(refused) => {
                    bad.push(refused.damage(bytes.len()));
                    break;
                }
            }
        }
        (builder.finish(), bad)
    }
}

/// Reads MessagePack batch after batch, as [`RowBatch::from_message_pack`] does bytes that are there.
///
/// ```
/// use sapwood::rollup::MessagePackRows;
///
/// let mut rows = MessagePackRows::new(&b"\x81\xa1a\x01\x07\x81\xa1b\x92\xa1x\xc0"[..]);
/// let (batch, bad) = rows.next_batch(2)?.expect("a row, and a number");
/// assert_eq!((batch.rows(), bad[0].offset), (1, 4));
/// assert!(rows.next_batch(2)?.is_some() && rows.next_batch(2)?.is_none());
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug)]
pub struct MessagePackRows<R> {
    input: R,
    /// What is read, and taken up to `taken`.
    bytes: Vec<u8>,
    taken: usize,
    /// Where `bytes` begin in the input.
    offset: usize,
    /// Rows that a list around them still has.
    listed: u32,
    is_ended: bool,
}

impl<R: Read> MessagePackRows<R> {
    /// Bytes that are read at a time, at least.
    const READ_BYTES: usize = 64 << 10;

    /// Of an input, from its beginning.
    pub fn new(input: R) -> MessagePackRows<R> {
        MessagePackRows {
            input,
            bytes: Vec::new(),
            taken: 0,
            offset: 0,
            listed: 0,
            is_ended: false,
        }
    }

    /// Passes over so many values, those that are no rows counted too; how many there were. Bytes that are no
    /// MessagePack are one, and the last.
    ///
    /// ```
    /// use sapwood::rollup::MessagePackRows;
    ///
    /// let mut rows = MessagePackRows::new(&b"\x93\x80\x07\x80"[..]);
    /// assert_eq!((rows.skip(2)?, rows.skip(9)?), (2, 1));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if the input cannot be read.
    pub fn skip(&mut self, values: u64) -> Result<u64> {
        let mut passed = 0;
        while passed < values {
            let skipped = self.take(|reader, listed| {
                let head = reader.rest;
                match reader.item()? {
                    Item::List(len) if *listed == 0 => {
                        *listed = len;
                        return Ok(0);
                    }
                    _ => reader.rest = head,
                }
                reader.skip()?;
                *listed = listed.saturating_sub(1);
                Ok(1)
            })?;
            match skipped {
                None => break,
                Some(Ok(values)) => passed += values,
                Some(Err(_)) => passed += 1,
            }
        }
        Ok(passed)
    }

    /// Up to so many values, rows and others; none at the end. Those that are no rows, or with which the batch would be
    /// beyond its [limits](RowBatch::CELLS_MAX), are told beside it.
    ///
    /// # Errors
    /// [`Error::Input`] if the input cannot be read.
    pub fn next_batch(&mut self, values_max: usize) -> Result<Option<(RowBatch, Vec<BadRow>)>> {
        let (mut builder, mut bad) = (RowBatchBuilder::new(), Vec::new());
        while builder.rows() + bad.len() < values_max {
            let offset = self.offset + self.taken;
            match self.take(|reader, listed| reader.row(listed, &mut builder))? {
                None if builder.rows() == 0 && bad.is_empty() => return Ok(None),
                None => break,
                Some(Ok(Taken::Row | Taken::Head)) => {}
                Some(Ok(Taken::BadRow(why))) => bad.push(BadRow { offset, why }),
                Some(Err(damage)) => bad.push(damage),
            }
        }
        Ok(Some((builder.finish(), bad)))
    }

    /// Takes something of the bytes, of which more are read until they do not end within it; none at the end. Damage
    /// ends the input.
    fn take<T>(
        &mut self,
        mut take: impl FnMut(&mut Reader<'_>, &mut u32) -> Found<T>,
    ) -> Result<Option<std::result::Result<T, BadRow>>> {
        loop {
            let rest = &self.bytes[self.taken..];
            let is_between = rest.is_empty() && self.listed == 0;
            if is_between && self.is_ended {
                return Ok(None);
            }
            let mut reader = Reader { all: rest, rest };
            let refused = match take(&mut reader, &mut self.listed) {
                Ok(taken) => {
                    self.taken += reader.offset();
                    return Ok(Some(Ok(taken)));
                }
                Err(refused) => refused,
            };
            if self.is_ended || !matches!(refused, Refused::Cut) {
                let mut damage = refused.damage(rest.len());
                damage.offset += self.offset + self.taken;
                (self.is_ended, self.listed) = (true, 0);
                self.taken = self.bytes.len();
                return Ok(Some(Err(damage)));
            }
            self.read_more()?;
        }
    }

    /// Reads as much again as a value has that is not whole, so that long ones are not looked at often.
    fn read_more(&mut self) -> Result<()> {
        self.bytes.drain(..self.taken);
        self.offset += std::mem::take(&mut self.taken);
        let wanted = self.bytes.len().max(Self::READ_BYTES);
        let read = self.input.by_ref().take(wanted as u64).read_to_end(&mut self.bytes);
        let read = read.map_err(|error| Error::Input(error.to_string()))?;
        self.is_ended = read < wanted;
        Ok(())
    }
}

/// Why a row is none.
enum Refused {
    /// The bytes end within a value.
    Cut,
    /// The bytes are no MessagePack.
    Damaged { offset: usize },
    /// They are, and say what a row cannot have.
    Row(String),
}

type Found<T> = std::result::Result<T, Refused>;

impl Refused {
    /// What is told of bytes of this length, which are no MessagePack.
    fn damage(self, len: usize) -> BadRow {
        match self {
            Refused::Cut => BadRow { offset: len, why: "the bytes end within a value".to_owned() },
            Refused::Damaged { offset } => {
                BadRow { offset, why: "no value begins with this byte".to_owned() }
            }
            Refused::Row(why) => BadRow { offset: 0, why },
        }
    }
}

/// What was taken of the bytes.
enum Taken {
    /// The beginning of a list of rows.
    Head,
    Row,
    /// A value that is none.
    BadRow(String),
}

/// The beginning of a value, and all of it but for lists and maps.
enum Item<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    /// Beyond those with a sign.
    Large(u64),
    Float(f64),
    Text(&'a [u8]),
    Extension(i8, &'a [u8]),
    List(u32),
    Map(u32),
}

impl<'a> Item<'a> {
    /// How an error calls it.
    fn name(&self) -> &'static str {
        match self {
            Item::Nil => "nil",
            Item::Bool(_) => "a truth value",
            Item::Int(_) | Item::Large(_) | Item::Float(_) => "a number",
            Item::Text(_) => "a text",
            Item::Extension(..) => "an extension",
            Item::List(_) => "a list",
            Item::Map(_) => "a map",
        }
    }

    /// Values that lie inside this one.
    fn inside(&self) -> u64 {
        match self {
            Item::List(len) => u64::from(*len),
            Item::Map(len) => 2 * u64::from(*len),
            _ => 0,
        }
    }

    /// A value of a row that is neither list nor map; else what it cannot be.
    fn value(self) -> std::result::Result<Value<'a>, Cow<'static, str>> {
        Ok(match self {
            Item::Nil => Value::Null,
            Item::Bool(value) => Value::text(if value { "true" } else { "false" }),
            Item::Int(value) => Value::Long(value),
            Item::Large(value) => Value::Double(value as f64),
            Item::Float(value) if value.is_finite() => Value::Double(value),
            Item::Float(value) => Value::from(value.to_string()),
            Item::Text(bytes) => Value::text(std::str::from_utf8(bytes).map_err(|_| "no UTF-8")?),
            Item::Extension(TIMESTAMP, bytes) => {
                Value::Long(milliseconds(bytes).ok_or("a time that cannot be")?)
            }
            Item::Extension(kind, _) => return Err(format!("of the extension type {kind}").into()),
            Item::List(_) | Item::Map(_) => return Err(self.name().into()),
        })
    }
}

/// The time of an extension: seconds, and nanoseconds of the next one.
fn milliseconds(bytes: &[u8]) -> Option<i64> {
    let (seconds, nanoseconds) = match *bytes {
        [a, b, c, d] => (i64::from(u32::from_be_bytes([a, b, c, d])), 0),
        [a, b, c, d, e, f, g, h] => {
            let word = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            // 30 bits above 34.
            ((word & ((1 << 34) - 1)) as i64, (word >> 34) as u32)
        }
        [a, b, c, d, ref seconds @ ..] => {
            let seconds = seconds.try_into().ok()?;
            (i64::from_be_bytes(seconds), u32::from_be_bytes([a, b, c, d]))
        }
        _ => return None,
    };
    if nanoseconds >= 1_000_000_000 {
        return None;
    }
    seconds.checked_mul(1_000)?.checked_add(i64::from(nanoseconds / 1_000_000))
}

struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// How many bytes are taken.
    fn offset(&self) -> usize {
        self.all.len() - self.rest.len()
    }

    /// Takes a row, another value in the place of one, or the beginning of a list of rows; `listed` is how many a list
    /// around them still has.
    fn row(&mut self, listed: &mut u32, builder: &mut RowBatchBuilder) -> Found<Taken> {
        let row = self.rest;
        let read = match self.item()? {
            Item::List(len) if *listed == 0 => {
                *listed = len;
                return Ok(Taken::Head);
            }
            Item::Map(len) => self.map(len, "", DEPTH_MAX, builder),
            other => Err(Refused::Row(format!("{}, not a map", other.name()))),
        };
        let ended =
            read.and_then(|()| builder.end_row().map_err(|error| Refused::Row(error.to_string())));
        let taken = match ended {
            Ok(()) => Taken::Row,
            Err(refused) => {
                builder.cancel_row();
                let Refused::Row(why) = refused else { return Err(refused) };
                // What lies behind a row that cannot be is found by its lengths alone.
                self.rest = row;
                self.skip()?;
                Taken::BadRow(why)
            }
        };
        *listed = listed.saturating_sub(1);
        Ok(taken)
    }

    /// The fields of a map go into the row; the names of those inside of others begin with `prefix`.
    fn map(
        &mut self,
        len: u32,
        prefix: &str,
        depth: usize,
        builder: &mut RowBatchBuilder,
    ) -> Found<()> {
        let mut path = String::new();
        for _ in 0..len {
            let name = match self.item()? {
                Item::Text(name) => std::str::from_utf8(name)
                    .map_err(|_| Refused::Row("the name of a column is no UTF-8".to_owned()))?,
                other => {
                    let why = format!("the name of a column is {}, not a text", other.name());
                    return Err(Refused::Row(why));
                }
            };
            let name = match prefix {
                "" => name,
                prefix => {
                    path.clear();
                    path.extend([prefix, ".", name]);
                    &path
                }
            };
            match self.item()? {
                Item::Map(len) => self.map(len, name, deeper(depth, name)?, builder)?,
                Item::List(len) => {
                    let values = self.list(len, name, deeper(depth, name)?)?;
                    builder.push(name, Value::List(values));
                }
                other => builder.push(name, other.value().map_err(|what| cannot_be(name, &what))?),
            }
        }
        Ok(())
    }

    fn list(&mut self, len: u32, name: &str, depth: usize) -> Found<Vec<Value<'static>>> {
        let mut values = Vec::new();
        for _ in 0..len {
            values.push(match self.item()? {
                Item::List(len) => Value::List(self.list(len, name, deeper(depth, name)?)?),
                Item::Map(_) => return Err(cannot_be(name, "a map in a list")),
                other => other.value().map_err(|what| cannot_be(name, &what))?.into_owned(),
            });
        }
        Ok(values)
    }

    /// Takes a value, with all that lies inside it.
    fn skip(&mut self) -> Found<()> {
        let mut left = 1;
        while left > 0 {
            left = left - 1 + self.item()?.inside();
            // Each value takes a byte at least, so what is promised cannot overflow.
            if left > self.rest.len() as u64 {
                return Err(Refused::Cut);
            }
        }
        Ok(())
    }

    #[inline]
    fn item(&mut self) -> Found<Item<'a>> {
        let offset = self.offset();
        let Ok(marker) = read_marker(&mut self.rest) else { return Err(Refused::Cut) };
        macro_rules! data {
            ($read:ident) => {
                match self.rest.$read() {
                    Ok(data) => data,
                    Err(_) => return Err(Refused::Cut),
                }
            };
        }
        let int = |value: u64| i64::try_from(value).map_or(Item::Large(value), Item::Int);
        Ok(match marker {
            Marker::Null => Item::Nil,
            Marker::True => Item::Bool(true),
            Marker::False => Item::Bool(false),
            Marker::FixPos(value) => Item::Int(value.into()),
            Marker::FixNeg(value) => Item::Int(value.into()),
            Marker::U8 => Item::Int(data!(read_data_u8).into()),
            Marker::U16 => Item::Int(data!(read_data_u16).into()),
            Marker::U32 => Item::Int(data!(read_data_u32).into()),
            Marker::U64 => int(data!(read_data_u64)),
            Marker::I8 => Item::Int(data!(read_data_i8).into()),
            Marker::I16 => Item::Int(data!(read_data_i16).into()),
            Marker::I32 => Item::Int(data!(read_data_i32).into()),
            Marker::I64 => Item::Int(data!(read_data_i64)),
            Marker::F32 => Item::Float(data!(read_data_f32).into()),
            Marker::F64 => Item::Float(data!(read_data_f64)),
            Marker::FixStr(len) => Item::Text(self.bytes(len.into())?),
            Marker::Str8 | Marker::Bin8 => Item::Text(self.sized(1)?),
            Marker::Str16 | Marker::Bin16 => Item::Text(self.sized(2)?),
            Marker::Str32 | Marker::Bin32 => Item::Text(self.sized(4)?),
            Marker::FixArray(len) => Item::List(len.into()),
            Marker::Array16 => Item::List(data!(read_data_u16).into()),
            Marker::Array32 => Item::List(data!(read_data_u32)),
            Marker::FixMap(len) => Item::Map(len.into()),
            Marker::Map16 => Item::Map(data!(read_data_u16).into()),
            Marker::Map32 => Item::Map(data!(read_data_u32)),
            Marker::FixExt1 => self.extension(1)?,
            Marker::FixExt2 => self.extension(2)?,
            Marker::FixExt4 => self.extension(4)?,
            Marker::FixExt8 => self.extension(8)?,
            Marker::FixExt16 => self.extension(16)?,
            Marker::Ext8 => self.sized_extension(1)?,
            Marker::Ext16 => self.sized_extension(2)?,
            Marker::Ext32 => self.sized_extension(4)?,
            Marker::Reserved => {
                return Err(Refused::Damaged { offset });
            }
        })
    }

    fn bytes(&mut self, len: usize) -> Found<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Refused::Cut)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A length of `width` bytes.
    fn len(&mut self, width: usize) -> Found<usize> {
        let digits = self.bytes(width)?.iter();
        Ok(digits.fold(0, |len, &byte| len << 8 | usize::from(byte)))
    }

    fn sized(&mut self, width: usize) -> Found<&'a [u8]> {
        let len = self.len(width)?;
        self.bytes(len)
    }

    /// A byte that tells the type comes before the data.
    fn extension(&mut self, len: usize) -> Found<Item<'a>> {
        let kind = self.bytes(1)?[0] as i8;
        Ok(Item::Extension(kind, self.bytes(len)?))
    }

    fn sized_extension(&mut self, width: usize) -> Found<Item<'a>> {
        let len = self.len(width)?;
        self.extension(len)
    }
}

fn cannot_be(name: &str, what: &str) -> Refused {
    Refused::Row(format!("`{name}` cannot be: {what}"))
}

/// What is left of the depth, inside.
fn deeper(depth: usize, name: &str) -> Found<usize> {
    match depth - 1 {
        0 => Err(Refused::Row(format!("`{name}` is more than {DEPTH_MAX} maps and lists deep"))),
        depth => Ok(depth),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(batch: &RowBatch, name: &str) -> String {
        let column = batch.find(name).expect(name);
        (0..batch.rows()).map(|row| column.value(row).to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let values: &[(&[u8], &str)] = &[
            (b"\xc0", "null"),
            (b"\xc2", "false"),
            (b"\xc3", "true"),
            (b"\x7f", "127"),
            (b"\xff", "-1"),
            (b"\xcc\xff", "255"),
            (b"\xcd\xff\xff", "65535"),
            (b"\xce\xff\xff\xff\xff", "4294967295"),
            (b"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"),
            (b"\xcf\x80\0\0\0\0\0\0\0", "9.223372036854776e18"),
            (b"\xd0\x80", "-128"),
            (b"\xd1\x80\0", "-32768"),
            (b"\xd2\x80\0\0\0", "-2147483648"),
            (b"\xd3\x80\0\0\0\0\0\0\0", "-9223372036854775808"),
            (b"\xca\x3f\xc0\0\0", "1.5"),
            (b"\xcb\x3f\xf8\0\0\0\0\0\0", "1.5"),
            (b"\xca\x7f\xc0\0\0", "NaN"),
            (b"\xca\xff\x80\0\0", "-inf"),
            (b"\xa2ab", "ab"),
            (b"\xd9\x02ab", "ab"),
            (b"\xda\0\x02ab", "ab"),
            (b"\xdb\0\0\0\x02ab", "ab"),
            (b"\xc4\x02ab", "ab"),
            (b"\xc5\0\x02ab", "ab"),
            (b"\xc6\0\0\0\x02ab", "ab"),
            (b"\x92\xa1x\x92\xc3\xc0", "[x, [true, null]]"),
            (b"\xdc\0\x01\x05", "[5]"),
            (b"\xdd\0\0\0\x01\x05", "[5]"),
            // Times: 1 s; 1 s and 999,999,999 ns; -1 s and 1,000,000 ns.
            (b"\xd6\xff\0\0\0\x01", "1000"),
            (b"\xd7\xff\xee\x6b\x27\xfc\0\0\0\x01", "1999"),
            (b"\xc7\x0c\xff\0\x0f\x42\x40\xff\xff\xff\xff\xff\xff\xff\xff", "-999"),
        ];
        for (bytes, expected) in values {
            let row = [b"\x81\xa1a", *bytes].concat();
            let (batch, bad) = RowBatch::from_message_pack(&row);
            assert!(bad.is_empty(), "{bytes:?} {bad:?}");
            assert_eq!(told(&batch, "a"), *expected, "{bytes:?}");
            // Each of its bytes is needed.
            let (batch, bad) = RowBatch::from_message_pack(&row[..row.len() - 1]);
            assert_eq!((batch.rows(), bad.len(), bad[0].offset), (0, 1, row.len() - 1));
        }
    }

    #[test]
    fn rows_that_cannot_be_are_passed_over() {
        for bytes in [
            &b"\x07"[..],
            b"\xa1x",
            b"\x90\x91\xc0",
            b"\x81\x01\x01",
            b"\x81\xa1\xff\x01",
            b"\x81\xa1a\xa1\xff",
            b"\x81\xa1a\xc4\x01\xff",
            b"\x82\xa1a\x01\xa1b\x91\x81\xa1c\x01",
            b"\x81\xa1a\xd4\x05\0",
            b"\x81\xa1a\xd7\xff\xff\xff\xff\xff\0\0\0\x01",
            b"\x81\xa1a\xc7\x0c\xff\0\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
            b"\x81\xa1a\xd5\xff\0\0",
        ] {
            let all = [b"\x81\xa1a\x01", bytes, b"\x81\xa1a\x02"].concat();
            let (batch, bad) = RowBatch::from_message_pack(&all);
            assert_eq!(told(&batch, "a"), "1 2", "{bytes:?} {bad:?}");
            assert_eq!((bad.len(), batch.names().count()), (1, 1), "{bytes:?}");
            assert!(bad[0].offset >= 4 && !bad[0].why.is_empty(), "{bytes:?} {bad:?}");
        }
    }

    #[test]
    fn damage_ends_the_batch_and_keeps_what_was_before() {
        let row: &[u8] = b"\x81\xa1a\x01";
        for (bytes, offset) in [
            (&b"\xc1"[..], 4),
            (b"\x81", 5),
            (b"\x81\xa1", 6),
            (b"\xdf\xff\xff\xff\xff\xa1a\x01", 12),
            (b"\xdd\xff\xff\xff\xff", 9),
            (b"\x93\x80\x80", 7),
            (b"\x81\xa1a\xdb\xff\xff\xff\xffab", 14),
            (b"\x81\xa1a\x91\xc1", 8),
        ] {
            let (batch, bad) = RowBatch::from_message_pack(&[row, bytes].concat());
            let kept = 1 + bytes.iter().filter(|byte| **byte == 0x80).count();
            assert_eq!((batch.rows(), bad.len()), (kept, 1), "{bytes:?} {bad:?}");
            assert_eq!(bad[0].offset, offset, "{bytes:?} {bad:?}");
            assert_eq!(told(&batch, "a").split(' ').next(), Some("1"));
        }
        // A row that cannot be, in which the bytes end.
        let (_, bad) = RowBatch::from_message_pack(b"\x82\x01\xc0\xa1");
        assert_eq!(bad.iter().map(|bad| bad.offset).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn depth_has_a_bound() {
        let nested = |begin: &[u8], each: &[u8], depth: usize| {
            [begin, &each.repeat(depth), b"\xc0", b"\x81\xa1b\x01"].concat()
        };
        for (begin, each) in [(&b"\x81\xa1a"[..], &b"\x91"[..]), (b"\x81\xa1a", b"\x81\xa1a")] {
            let (batch, bad) = RowBatch::from_message_pack(&nested(begin, each, DEPTH_MAX - 1));
            assert_eq!((batch.rows(), bad.len()), (2, 0), "{bad:?}");
            let (batch, bad) = RowBatch::from_message_pack(&nested(begin, each, DEPTH_MAX));
            assert_eq!((batch.rows(), bad.len()), (1, 1));
            let (batch, bad) = RowBatch::from_message_pack(&nested(begin, each, 1_000_000));
            assert_eq!((batch.rows(), bad.len()), (1, 1));
        }
    }

    #[test]
    fn lists_of_maps_are_rows() {
        let (batch, bad) = RowBatch::from_message_pack(b"\x90\x92\x81\xa1a\x01\x81\xa1a\x02\x80");
        assert_eq!((told(&batch, "a").as_str(), bad.len()), ("1 2 null", 0));
    }

    #[test]
    fn a_map_with_too_many_columns_is_passed_over() {
        let mut bytes = b"\x93\x81\xa1a\x01\xdf\0\0\x4e\x20".to_vec();
        for number in 0..20_000 {
            bytes.extend(format!("_{number:05}").bytes());
            bytes.push(0);
        }
        // The mark of a text of five bytes.
        bytes[10..].iter_mut().filter(|byte| **byte == b'_').for_each(|byte| *byte = 0xa5);
        bytes.extend(b"\x81\xa1a\x02");
        let (batch, bad) = RowBatch::from_message_pack(&bytes);
        assert_eq!((told(&batch, "a").as_str(), batch.names().count()), ("1 2", 1));
        assert_eq!((bad.len(), bad[0].offset), (1, 5));
        assert!(bad[0].why.starts_with("16385 columns, "), "{bad:?}");
    }

    /// Gives a few bytes at a time.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let few = self.0.len().min(buffer.len()).min(7);
            let (bytes, rest) = self.0.split_at(few);
            buffer[..few].copy_from_slice(bytes);
            self.0 = rest;
            Ok(few)
        }
    }

    /// All batches of an input as one, and what is none.
    fn batches(bytes: &[u8], values_max: usize) -> (RowBatch, Vec<BadRow>) {
        let mut rows = MessagePackRows::new(Trickle(bytes));
        let (mut all, mut bad) = (RowBatchBuilder::new(), Vec::new());
        while let Some((batch, mut more)) = rows.next_batch(values_max).expect("memory") {
            assert!((1..=values_max).contains(&(batch.rows() + more.len())));
            all.append(&batch).expect("within the limits");
            bad.append(&mut more);
        }
        (all.finish(), bad)
    }

    #[test]
    fn batches_of_an_input_are_those_of_its_bytes() {
        let long = "x".repeat(200_000);
        let mut bytes = b"\x81\xa1a\xdb\0\x03\x0d\x40".to_vec();
        bytes.extend(long.bytes());
        bytes.extend(b"\x94\x81\xa1a\x01\x07\x81\x01\x02\x81\xa1a\x03\x90\xc0\x81\xa1b\xa1x");
        for end in [&b""[..], b"\xc1", b"\x81", b"\x92\x80", b"\x81\x01"] {
            let bytes = [&bytes[..], end].concat();
            let (expected, told) = RowBatch::from_message_pack(&bytes);
            assert_eq!(expected.rows(), 4 + usize::from(end.contains(&0x80)));
            for values_max in [1, 2, 3, 1_000] {
                let (found, bad) = batches(&bytes, values_max);
                assert_eq!((found.rows(), &bad), (expected.rows(), &told), "{end:?}");
                for name in expected.names() {
                    assert!(
                        super::tests::told(&found, name) == super::tests::told(&expected, name)
                    );
                }
            }
            // Some of them passed over.
            let values = (expected.rows() + told.len()) as u64;
            for passed in 0..=values + 1 {
                let mut rows = MessagePackRows::new(Trickle(&bytes));
                assert_eq!(rows.skip(passed), Ok(passed.min(values)), "{end:?}");
                let rest = rows.next_batch(usize::MAX).expect("memory");
                let rest = rest.map_or(0, |(batch, bad)| (batch.rows() + bad.len()) as u64);
                assert_eq!(rest, values - passed.min(values), "{end:?}");
            }
        }
    }

    #[test]
    fn an_input_that_fails_is_told() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("unplugged"))
            }
        }
        let mut rows = MessagePackRows::new((&b"\x80\x80"[..]).chain(Failing));
        assert_eq!(rows.next_batch(9), Err(Error::Input("unplugged".to_owned())));
    }
}
