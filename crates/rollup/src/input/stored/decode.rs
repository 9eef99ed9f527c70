//! Reading the stored form of a batch, of bytes that may be any.

use std::collections::HashSet;

use integer_encoding::VarInt;

use super::*;
use crate::error::{Error, Result};
use crate::input::batch::{Column, Nulls, RowBatch, Values};

/// LZ4 makes of a byte no more than so many.
const LZ4_RATIO_MAX: usize = 255;

const CUT: &str = "it is cut off";
const TOO_LARGE: &str = "it would be larger than a batch may be";

impl RowBatch {
    /// Reads the stored form. The bytes may be any; no more than a small multiple of a gibibyte is allocated
    /// for them.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they are no batch: what is wrong, and at which byte, compressed ones counted
    /// as they are unpacked.
    pub(crate) fn decode(bytes: &[u8]) -> Result<RowBatch> {
        let head = |offset: usize, what: &str| Error::corrupt(offset as u64, what);
        let [version, packing, body @ ..] = bytes else { return Err(head(bytes.len(), CUT)) };
        if *version != VERSION {
            return Err(head(0, "the version is not known here"));
        }
        let unpacked;
        let body = match *packing {
            PLAIN => body,
            LZ4 => {
                unpacked = unpack(body).ok_or(head(2, "it cannot be unpacked"))?;
                &unpacked
            }
            _ => return Err(head(1, "the packing is not known here")),
        };
        let mut reader = Reader { bytes: body, at: 0, costs: Costs::new() };
        let batch = reader.batch()?;
        match reader.at == body.len() {
            true => Ok(batch),
            false => Err(reader.corrupt("it does not end where it should")),
        }
    }
}

fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let (len, used) = usize::decode_var(bytes)?;
    let packed = &bytes[used..];
    if len > packed.len().saturating_mul(LZ4_RATIO_MAX).min(DECODED_BYTES_MAX) {
        return None;
    }
    let unpacked = lz4_flex::block::decompress(packed, len).ok()?;
    (unpacked.len() == len).then_some(unpacked)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    costs: Costs,
}

impl<'a> Reader<'a> {
    fn batch(&mut self) -> Result<RowBatch> {
        let rows = self.number()?;
        self.fits(|costs| costs.rows(rows))?;
        let count = self.number()?;
        let (mut columns, mut names) = (Vec::new(), HashSet::new());
        for _ in 0..count {
            let name = self.text()?;
            self.fits(|costs| costs.column(name))?;
            if !names.insert(name) {
                return Err(self.corrupt("two columns have one name"));
            }
            columns.push((name.to_owned(), Column(self.column(rows)?)));
        }
        Ok(RowBatch::of_columns(rows, columns))
    }

    fn column(&mut self, rows: usize) -> Result<Values> {
        Ok(match self.byte()? {
            LONGS => {
                let nulls = self.nulls(rows)?;
                Values::Longs { values: self.longs(rows)?, nulls }
            }
            DOUBLES => {
                let nulls = self.nulls(rows)?;
                self.fits(|costs| costs.numbers(rows))?;
                let bytes = self.take(rows.checked_mul(8).ok_or_else(|| self.corrupt(CUT))?)?;
                let values =
                    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
                Values::Doubles { values: values.collect(), nulls }
            }
            TEXTS => {
                let nulls = self.nulls(rows)?;
                let (bytes, ends) = self.texts(rows)?;
                Values::Texts { bytes, ends, nulls }
            }
            MIXED => {
                self.fits(|costs| costs.values(rows))?;
                let values = (0..rows).map(|_| self.value(LIST_DEPTH_MAX));
                Values::Mixed(values.collect::<Result<_>>()?)
            }
            _ => return Err(self.corrupt("the kind of a column is not known here")),
        })
    }

    fn nulls(&mut self, rows: usize) -> Result<Nulls> {
        match self.byte()? {
            NO_NULLS => Ok(None),
            NULL_BITS => {
                self.fits(|costs| costs.nulls(rows))?;
                let bits = self.take(rows.div_ceil(8))?;
                let is_null = |row: usize| bits[row / 8] >> (row % 8) & 1 == 1;
                if bits
                    .last()
                    .is_some_and(|last| !rows.is_multiple_of(8) && last >> (rows % 8) != 0)
                {
                    return Err(self.corrupt("a row that is not there is null"));
                }
                Ok(Some((0..rows).map(is_null).collect()))
            }
            _ => Err(self.corrupt("a list of nulls is not known here")),
        }
    }

    fn longs(&mut self, rows: usize) -> Result<Vec<i64>> {
        self.fits(|costs| costs.numbers(rows))?;
        match self.byte()? {
            NUMBERS => self.frame(rows),
            DIFFERENCES if rows > 0 => {
                let first = i64::from_le_bytes(self.array()?);
                let mut at = first;
                let differences = self.frame(rows - 1)?.into_iter().map(|difference| {
                    at = at.wrapping_add(difference);
                    at
                });
                Ok(std::iter::once(first).chain(differences).collect())
            }
            _ => Err(self.corrupt("an order of numbers is not known here")),
        }
    }

    /// So many numbers, whose memory was counted.
    fn frame(&mut self, count: usize) -> Result<Vec<i64>> {
        let width = self.byte()?;
        let least = i64::from_le_bytes(self.array()?);
        let number = |above: u64| least.wrapping_add(above as i64);
        if ![0, 1, 2, 4, 8].contains(&width) {
            return Err(self.corrupt("a number has a width that is not known here"));
        }
        let bytes = count.checked_mul(width.into()).ok_or_else(|| self.corrupt(CUT))?;
        let bytes = self.take(bytes)?;
        Ok(match width {
            0 => vec![least; count],
            1 => bytes.iter().map(|byte| number((*byte).into())).collect(),
            2 => bytes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|it| number(u16::from_le_bytes(*it).into()))
                .collect(),
            4 => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|it| number(u32::from_le_bytes(*it).into()))
                .collect(),
            _ => {
                bytes.as_chunks::<8>().0.iter().map(|it| number(u64::from_le_bytes(*it))).collect()
            }
        })
    }

    fn texts(&mut self, rows: usize) -> Result<(String, Vec<usize>)> {
        self.fits(|costs| costs.numbers(rows))?;
        match self.byte()? {
            EACH => {
                let (bytes, ends) = self.each(rows)?;
                self.fits(|costs| costs.text(bytes.len()))?;
                Ok((bytes.to_owned(), ends))
            }
            DICTIONARY => {
                let count = self.number()?;
                // Its memory is counted as that of the rows.
                if count > rows {
                    return Err(self.corrupt("a dictionary has more texts than there are rows"));
                }
                let (texts, text_ends) = self.each(count)?;
                let text = |number: i64| {
                    let number = usize::try_from(number).ok().filter(|number| *number < count)?;
                    let start = if number == 0 { 0 } else { text_ends[number - 1] };
                    Some(&texts[start..text_ends[number]])
                };
                let numbers = self.frame(rows)?;
                let mut ends = Vec::with_capacity(rows);
                let mut len = 0_usize;
                for number in &numbers {
                    let text = text(*number);
                    let text =
                        text.ok_or_else(|| self.corrupt("a text is not in its dictionary"))?;
                    len = len.checked_add(text.len()).ok_or_else(|| self.corrupt(TOO_LARGE))?;
                    ends.push(len);
                }
                self.fits(|costs| costs.text(len))?;
                let mut bytes = String::with_capacity(len);
                numbers.into_iter().filter_map(text).for_each(|text| bytes.push_str(text));
                Ok((bytes, ends))
            }
            _ => Err(self.corrupt("an order of texts is not known here")),
        }
    }

    /// So many texts, one after the other, and where each ends.
    fn each(&mut self, count: usize) -> Result<(&'a str, Vec<usize>)> {
        let lens = self.frame(count)?;
        let mut ends = Vec::with_capacity(count);
        let mut len = 0_usize;
        for each in lens {
            let longer = usize::try_from(each).ok().and_then(|each| len.checked_add(each));
            len = longer.ok_or_else(|| self.corrupt("a length cannot be"))?;
            ends.push(len);
        }
        let bytes = self.utf8(len)?;
        match ends.iter().all(|end| bytes.is_char_boundary(*end)) {
            true => Ok((bytes, ends)),
            false => Err(self.corrupt("a text ends within a letter")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value<'static>> {
        Ok(match self.byte()? {
            VALUE_NULL => Value::Null,
            VALUE_LONG => {
                let read = i64::decode_var(&self.bytes[self.at..]);
                let (value, used) = read.ok_or_else(|| self.corrupt("a number cannot be"))?;
                self.at += used;
                Value::Long(value)
            }
            VALUE_DOUBLE => Value::Double(f64::from_le_bytes(self.array()?)),
            VALUE_TEXT => {
                let text = self.text()?;
                self.fits(|costs| costs.text(text.len()))?;
                Value::from(text.to_owned())
            }
            VALUE_LIST => {
                let deeper = depth.checked_sub(1);
                let depth =
                    deeper.ok_or_else(|| self.corrupt("lists are too deep inside each other"))?;
                let len = self.number()?;
                self.fits(|costs| costs.values(len))?;
                let values = (0..len).map(|_| self.value(depth));
                Value::List(values.collect::<Result<_>>()?)
            }
            _ => return Err(self.corrupt("the type of a value is not known here")),
        })
    }

    fn corrupt(&self, what: &'static str) -> Error {
        Error::corrupt(self.at as u64, what)
    }

    /// Before memory is allocated.
    fn fits(&mut self, take: impl FnOnce(&mut Costs) -> Option<()>) -> Result<()> {
        take(&mut self.costs).ok_or_else(|| self.corrupt(TOO_LARGE))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let rest = self.bytes[self.at..].get(..len).ok_or_else(|| self.corrupt(CUT))?;
        self.at += len;
        Ok(rest)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| self.corrupt(CUT))
    }

    fn byte(&mut self) -> Result<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn number(&mut self) -> Result<usize> {
        let read = usize::decode_var(&self.bytes[self.at..]);
        let (number, used) = read.ok_or_else(|| self.corrupt("a number cannot be"))?;
        self.at += used;
        Ok(number)
    }

    fn utf8(&mut self, len: usize) -> Result<&'a str> {
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt("a text is no UTF-8"))
    }

    fn text(&mut self) -> Result<&'a str> {
        let len = self.number()?;
        self.utf8(len)
    }
}
