//! MessagePack as lines of JSON, so that one reader has both.
//!
//! Rows are maps, one after the other or in lists. Bytes are texts of UTF-8; moments (extension type -1) are texts
//! as 2013-01-01 05:15:00; numbers that are not finite are the texts that say so.

use std::io::{self, BufRead, BufReader, Read, Write};

use rmp::Marker;
use rmp::decode::{RmpRead, read_marker};
use sapwood_schema::{Precision, Value};

/// Maps and lists inside each other: as deep as JSON may be.
const DEPTH_MAX: usize = 127;

/// The extension type of a moment.
const TIMESTAMP: i8 = -1;

/// The bytes of a text that are read at once: a length that damage made takes no more memory than there is text.
const PIECE_BYTES: u64 = 64 << 10;

/// Lines of JSON, one for each row.
pub(crate) struct JsonLines<R> {
    from: BufReader<R>,
    /// Items of a list of rows that are still to come.
    listed: u64,
    line: Vec<u8>,
    /// The bytes of the line that were read.
    read: usize,
}

impl<R: Read> JsonLines<R> {
    pub(crate) fn of(from: R) -> JsonLines<R> {
        let from = BufReader::with_capacity(256 << 10, from);
        JsonLines { from, listed: 0, line: Vec::new(), read: 0 }
    }

    /// Reads the next row; false at the end.
    fn next(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.read = 0;
        if self.listed == 0 && self.from.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let marker = self.marker()?;
        if self.listed == 0
            && let Some(len) = self.list_len(marker)?
        {
            self.listed = len;
            return Ok(true);
        }
        self.listed = self.listed.saturating_sub(1);
        self.value(marker, 1)?;
        self.line.push(b'\n');
        Ok(true)
    }

    fn marker(&mut self) -> io::Result<Marker> {
        read_marker(&mut self.from).map_err(|error| error.0)
    }

    fn list_len(&mut self, marker: Marker) -> io::Result<Option<u64>> {
        Ok(match marker {
            Marker::FixArray(len) => Some(len.into()),
            Marker::Array16 => Some(self.len(2)?),
            Marker::Array32 => Some(self.len(4)?),
            _ => None,
        })
    }

    /// A length of so many bytes.
    fn len(&mut self, width: usize) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.from.read_exact(&mut bytes[8 - width..])?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// Appends a value as JSON; `depth` maps and lists are around it.
    fn value(&mut self, marker: Marker, depth: usize) -> io::Result<()> {
        if let Some(len) = self.list_len(marker)? {
            return self.items(len, depth, b"[]", |lines| lines.item(depth + 1));
        }
        match marker {
            Marker::FixMap(len) => self.map(len.into(), depth),
            Marker::Map16 => self.len(2).and_then(|len| self.map(len, depth)),
            Marker::Map32 => self.len(4).and_then(|len| self.map(len, depth)),
            Marker::Null => self.line.write_all(b"null"),
            Marker::True => self.line.write_all(b"true"),
            Marker::False => self.line.write_all(b"false"),
            Marker::F32 => {
                let number = self.from.read_data_f32().map_err(damaged)?;
                self.float(number.into())
            }
            Marker::F64 => {
                let number = self.from.read_data_f64().map_err(damaged)?;
                self.float(number)
            }
            Marker::FixStr(len) => self.text(len.into()),
            Marker::Str8 | Marker::Bin8 => self.len(1).and_then(|len| self.text(len)),
            Marker::Str16 | Marker::Bin16 => self.len(2).and_then(|len| self.text(len)),
            Marker::Str32 | Marker::Bin32 => self.len(4).and_then(|len| self.text(len)),
            Marker::FixExt1 => self.extension(1),
            Marker::FixExt2 => self.extension(2),
            Marker::FixExt4 => self.extension(4),
            Marker::FixExt8 => self.extension(8),
            Marker::FixExt16 => self.extension(16),
            Marker::Ext8 => self.len(1).and_then(|len| self.extension(len)),
            Marker::Ext16 => self.len(2).and_then(|len| self.extension(len)),
            Marker::Ext32 => self.len(4).and_then(|len| self.extension(len)),
            marker => self.whole(marker),
        }
    }

    fn item(&mut self, depth: usize) -> io::Result<()> {
        let marker = self.marker()?;
        self.value(marker, depth)
    }

    fn map(&mut self, len: u64, depth: usize) -> io::Result<()> {
        self.items(len, depth, b"{}", |lines| {
            lines.name(depth)?;
            lines.line.push(b':');
            lines.item(depth + 1)
        })
    }

    /// Appends so many items between two signs.
    fn items(
        &mut self,
        len: u64,
        depth: usize,
        signs: &[u8; 2],
        mut item: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(damage("maps and lists lie deeper than 127"));
        }
        self.line.push(signs[0]);
        for number in 0..len {
            if number > 0 {
                self.line.push(b',');
            }
            item(self)?;
        }
        self.line.push(signs[1]);
        Ok(())
    }

    /// Appends the name of a member: a text, or a number as text.
    fn name(&mut self, depth: usize) -> io::Result<()> {
        let begin = self.line.len();
        self.item(depth + 1)?;
        match self.line[begin] {
            b'"' => Ok(()),
            b'[' | b'{' => Err(damage("a name is a list or a map")),
            _ => {
                self.line.insert(begin, b'"');
                self.line.push(b'"');
                Ok(())
            }
        }
    }

    fn whole(&mut self, marker: Marker) -> io::Result<()> {
        let from = &mut self.from;
        let number: i128 = match marker {
            Marker::FixPos(value) => value.into(),
            Marker::FixNeg(value) => value.into(),
            Marker::U8 => from.read_data_u8().map_err(damaged)?.into(),
            Marker::U16 => from.read_data_u16().map_err(damaged)?.into(),
            Marker::U32 => from.read_data_u32().map_err(damaged)?.into(),
            Marker::U64 => from.read_data_u64().map_err(damaged)?.into(),
            Marker::I8 => from.read_data_i8().map_err(damaged)?.into(),
            Marker::I16 => from.read_data_i16().map_err(damaged)?.into(),
            Marker::I32 => from.read_data_i32().map_err(damaged)?.into(),
            Marker::I64 => from.read_data_i64().map_err(damaged)?.into(),
            _ => return Err(damage("a byte begins no value of MessagePack")),
        };
        write!(self.line, "{number}")
    }

    fn float(&mut self, number: f64) -> io::Result<()> {
        match number.is_finite() {
            true => Ok(serde_json::to_writer(&mut self.line, &number)?),
            false => write!(self.line, "\"{number}\""),
        }
    }

    fn bytes(&mut self, len: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len.min(PIECE_BYTES) as usize);
        let read = self.from.by_ref().take(len).read_to_end(&mut bytes)?;
        match read as u64 == len {
            true => Ok(bytes),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn text(&mut self, len: u64) -> io::Result<()> {
        let bytes = self.bytes(len)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| damage("a text is not UTF-8"))?;
        Ok(serde_json::to_writer(&mut self.line, text)?)
    }

    fn extension(&mut self, len: u64) -> io::Result<()> {
        let kind = self.from.read_data_i8().map_err(damaged)?;
        let bytes = self.bytes(len)?;
        let moment = (kind == TIMESTAMP).then(|| moment(&bytes)).flatten();
        let text = moment.ok_or_else(|| damage(format!("a value of the extension type {kind}")))?;
        Ok(serde_json::to_writer(&mut self.line, &text)?)
    }
}

/// A moment as text; none if the bytes are none.
fn moment(bytes: &[u8]) -> Option<String> {
    let (seconds, nanos) = match bytes.len() {
        4 => (i64::from(u32::from_be_bytes(bytes.try_into().ok()?)), 0),
        8 => {
            let both = u64::from_be_bytes(bytes.try_into().ok()?);
            ((both & ((1 << 34) - 1)) as i64, (both >> 34) as u32)
        }
        12 => {
            let (nanos, seconds) = bytes.split_first_chunk::<4>()?;
            (i64::from_be_bytes(seconds.try_into().ok()?), u32::from_be_bytes(*nanos))
        }
        _ => return None,
    };
    let ticks = seconds.checked_mul(1_000_000_000).and_then(|it| it.checked_add(nanos.into()));
    let moment = match ticks {
        Some(ticks) if nanos > 0 => Value::Timestamp { ticks, precision: Precision::Nanos },
        _ => Value::Timestamp { ticks: seconds, precision: Precision::Seconds },
    };
    Some(moment.to_string())
}

fn damage(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

fn damaged(error: rmp::decode::ValueReadError) -> io::Error {
    match error {
        rmp::decode::ValueReadError::InvalidMarkerRead(error)
        | rmp::decode::ValueReadError::InvalidDataRead(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

impl<R: Read> Read for JsonLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.line.len() {
            if !self.next()? {
                return Ok(0);
            }
        }
        let read = (&self.line[self.read..]).read(buffer)?;
        self.read += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        JsonLines::of(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn values_are_those_of_json() {
        for (bytes, expected) in [
            (&b"\x81\xa1a\x01"[..], "{\"a\":1}\n"),
            (b"\x82\xa1a\xc0\xa1b\x92\xc3\xff", "{\"a\":null,\"b\":[true,-1]}\n"),
            (b"\x92\x81\xa1a\x01\x81\xa1a\x02\x80", "{\"a\":1}\n{\"a\":2}\n{}\n"),
            (b"\x81\x07\xa3a\"b", "{\"7\":\"a\\\"b\"}\n"),
            (b"\x81\xa1a\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "{\"a\":18446744073709551615}\n"),
            (b"\x81\xa1a\xcb\x3f\xf8\0\0\0\0\0\0", "{\"a\":1.5}\n"),
            (b"\x81\xa1a\xcb\x7f\xf8\0\0\0\0\0\0", "{\"a\":\"NaN\"}\n"),
            (b"\x81\xa1a\xd6\xff\0\0\0\x3d", "{\"a\":\"1970-01-01 00:01:01\"}\n"),
            (b"\x81\xa1a\xc4\x02xy", "{\"a\":\"xy\"}\n"),
            (b"\x81\xa1a\x81\xa1b\x90", "{\"a\":{\"b\":[]}}\n"),
            (b"\x90", ""),
            (b"", ""),
        ] {
            assert_eq!(lines(bytes).expect("whole"), expected, "{bytes:?}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        let whole = b"\x82\xa1a\xcd\x01\x00\xa1b\xd9\x02xy";
        for end in 1..whole.len() {
            assert!(lines(&whole[..end]).is_err(), "cut at {end}");
        }
        for bytes in [
            &b"\xc1"[..],
            b"\x81\x90\x01",
            b"\x81\xa1a\xa1\xff",
            b"\x81\xa1a\xd4\x05\x00",
            b"\x81\xa1a\xdb\xff\xff\xff\xffx",
            &[0x91; 200],
        ] {
            assert!(lines(bytes).is_err(), "{bytes:?}");
        }
    }
}
