//! Writing the stored form of a batch.

use hashbrown::HashTable;
use integer_encoding::VarInt;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::error::{Error, Result};
use crate::input::batch::{Nulls, RowBatch, Values, text};

/// Shorter bodies are not compressed.
const COMPRESSED_FROM: usize = 64;

/// Texts of a column are no longer looked up once more than this and half of the rows before were
/// different.
const DIFFERENT_MAX: usize = 64;

impl RowBatch {
    /// Appends the stored form. Nothing is appended with an error.
    ///
    /// # Errors
    /// [`Error::Input`] if the batch takes more than a gibibyte, or has lists that are too deep.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut body = Vec::new();
        let mut writer = Writer { out: &mut body, costs: Costs::new() };
        writer.batch(self).map_err(|refused| {
            Error::Input(match refused {
                Refused::TooLarge => format!(
                    "a batch of {} rows takes more than {DECODED_BYTES_MAX} bytes: split it into smaller ones",
                    self.rows()
                ),
                Refused::TooDeep => {
                    format!("a value has lists that are more than {LIST_DEPTH_MAX} deep")
                }
            })
        })?;
        out.push(VERSION);
        if body.len() >= COMPRESSED_FROM {
            let packed = lz4_flex::block::compress(&body);
            if packed.len() + body.len().required_space() < body.len() {
                out.push(LZ4);
                out.extend(body.len().encode_var_vec());
                out.extend(packed);
                return Ok(());
            }
        }
        out.push(PLAIN);
        out.extend(body);
        Ok(())
    }
}

/// Why a batch has no stored form.
enum Refused {
    TooLarge,
    TooDeep,
}

impl From<TooLarge> for Refused {
    fn from(TooLarge: TooLarge) -> Refused {
        Refused::TooLarge
    }
}

struct TooLarge;

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    costs: Costs,
}

impl Writer<'_> {
    fn batch(&mut self, batch: &RowBatch) -> std::result::Result<(), Refused> {
        self.costs.rows(batch.rows()).ok_or(TooLarge)?;
        self.number(batch.rows());
        self.number(batch.columns().len());
        for (name, column) in batch.columns() {
            self.costs.column(name).ok_or(TooLarge)?;
            self.text(name);
            self.column(&column.0)?;
        }
        Ok(())
    }

    fn column(&mut self, values: &Values) -> std::result::Result<(), Refused> {
        match values {
            Values::Longs { values, nulls } => {
                self.out.push(LONGS);
                self.nulls(nulls)?;
                self.costs.numbers(values.len()).ok_or(TooLarge)?;
                self.longs(values);
            }
            Values::Doubles { values, nulls } => {
                self.out.push(DOUBLES);
                self.nulls(nulls)?;
                self.costs.numbers(values.len()).ok_or(TooLarge)?;
                self.fixed(values.iter().map(|value| value.to_le_bytes()));
            }
            Values::Texts { bytes, ends, nulls } => {
                self.out.push(TEXTS);
                self.nulls(nulls)?;
                self.costs.numbers(ends.len()).ok_or(TooLarge)?;
                self.costs.text(bytes.len()).ok_or(TooLarge)?;
                match Dictionary::of(bytes, ends) {
                    Some(dictionary) => self.dictionary(&dictionary),
                    None => {
                        self.out.push(EACH);
                        self.frame(lens(ends));
                        self.out.extend(bytes.as_bytes());
                    }
                }
            }
            Values::Mixed(values) => {
                self.out.push(MIXED);
                self.costs.values(values.len()).ok_or(TooLarge)?;
                values.iter().try_for_each(|value| self.value(value, LIST_DEPTH_MAX))?;
            }
        }
        Ok(())
    }

    fn nulls(&mut self, nulls: &Nulls) -> std::result::Result<(), TooLarge> {
        let Some(nulls) = nulls else {
            self.out.push(NO_NULLS);
            return Ok(());
        };
        self.costs.nulls(nulls.len()).ok_or(TooLarge)?;
        self.out.push(NULL_BITS);
        let bits = |nulls: &[bool]| {
            nulls.iter().rev().fold(0, |bits, is_null| bits << 1 | u8::from(*is_null))
        };
        self.out.extend(nulls.chunks(8).map(bits));
        Ok(())
    }

    /// Whole numbers: they or their differences, whichever lie closer together.
    fn longs(&mut self, values: &[i64]) {
        let differences = || values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        match values.first() {
            Some(first)
                if Frame::of(differences()).width < Frame::of(values.iter().copied()).width =>
            {
                self.out.push(DIFFERENCES);
                self.out.extend(first.to_le_bytes());
                self.frame(differences());
            }
            _ => {
                self.out.push(NUMBERS);
                self.frame(values.iter().copied());
            }
        }
    }

    /// The width, the least number, and what each is above it, in bytes of the width.
    fn frame(&mut self, numbers: impl Iterator<Item = i64> + Clone) {
        let Frame { least, width } = Frame::of(numbers.clone());
        self.out.push(width);
        self.out.extend(least.to_le_bytes());
        let above = numbers.map(|number| number.wrapping_sub(least));
        match width {
            1 => self.fixed(above.map(|above| (above as u8).to_le_bytes())),
            2 => self.fixed(above.map(|above| (above as u16).to_le_bytes())),
            4 => self.fixed(above.map(|above| (above as u32).to_le_bytes())),
            8 => self.fixed(above.map(|above| (above as u64).to_le_bytes())),
            _ => {}
        }
    }

    fn fixed<const N: usize>(&mut self, numbers: impl Iterator<Item = [u8; N]>) {
        self.out.reserve(numbers.size_hint().0 * N);
        numbers.for_each(|bytes| self.out.extend_from_slice(&bytes));
    }

    fn dictionary(&mut self, dictionary: &Dictionary<'_>) {
        self.out.push(DICTIONARY);
        self.number(dictionary.texts.len());
        self.frame(dictionary.texts.iter().map(|text| text.len() as i64));
        dictionary.texts.iter().for_each(|text| self.out.extend(text.as_bytes()));
        self.frame(dictionary.numbers.iter().map(|number| i64::from(*number)));
    }

    fn value(&mut self, value: &Value<'_>, depth: usize) -> std::result::Result<(), Refused> {
        match value {
            Value::Null => self.out.push(VALUE_NULL),
            Value::Long(value) => {
                self.out.push(VALUE_LONG);
                self.number(*value);
            }
            Value::Double(value) => {
                self.out.push(VALUE_DOUBLE);
                self.out.extend(value.to_le_bytes());
            }
            Value::Text(text) => {
                self.costs.text(text.len()).ok_or(TooLarge)?;
                self.out.push(VALUE_TEXT);
                self.text(text);
            }
            Value::List(values) => {
                let depth = depth.checked_sub(1).ok_or(Refused::TooDeep)?;
                self.costs.values(values.len()).ok_or(TooLarge)?;
                self.out.push(VALUE_LIST);
                self.number(values.len());
                values.iter().try_for_each(|value| self.value(value, depth))?;
            }
        }
        Ok(())
    }

    fn number(&mut self, number: impl VarInt) {
        let mut digits = [0; 10];
        let len = number.encode_var(&mut digits);
        self.out.extend_from_slice(&digits[..len]);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.out.extend(text.as_bytes());
    }
}

/// The least of some numbers, and the bytes that hold what each is above it.
struct Frame {
    least: i64,
    width: u8,
}

impl Frame {
    fn of(numbers: impl Iterator<Item = i64>) -> Frame {
        let bounds = (i64::MAX, i64::MIN);
        let (least, greatest) = numbers
            .fold(bounds, |(least, greatest), number| (least.min(number), greatest.max(number)));
        if least > greatest {
            return Frame { least: 0, width: 0 };
        }
        let width = match greatest.wrapping_sub(least) as u64 {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        Frame { least, width }
    }
}

fn lens(ends: &[usize]) -> impl Iterator<Item = i64> + Clone + '_ {
    let starts = std::iter::once(&0).chain(ends);
    starts.zip(ends).map(|(start, end)| (end - start) as i64)
}

/// The different texts of a column in the order in which they come, and the number of each row's.
struct Dictionary<'c> {
    texts: Vec<&'c str>,
    numbers: Vec<u32>,
}

impl<'c> Dictionary<'c> {
    /// None where it would not be smaller than the texts.
    fn of(bytes: &'c str, ends: &[usize]) -> Option<Dictionary<'c>> {
        let mut dictionary =
            Dictionary { texts: Vec::new(), numbers: Vec::with_capacity(ends.len()) };
        let mut table: HashTable<(u64, u32)> = HashTable::new();
        let mut own = 0;
        for row in 0..ends.len() {
            let text = text(bytes, ends, row);
            let hash = xxh3_64(text.as_bytes());
            let is_same = |&(known, number): &(u64, u32)| {
                known == hash && dictionary.texts[number as usize] == text
            };
            let number = match table.find(hash, is_same) {
                Some(&(_, number)) => number,
                None if dictionary.texts.len() >= DIFFERENT_MAX + row / 2 => return None,
                None => {
                    let number = u32::try_from(dictionary.texts.len()).ok()?;
                    table.insert_unique(hash, (hash, number), |&(hash, _)| hash);
                    dictionary.texts.push(text);
                    own += text.len();
                    number
                }
            };
            dictionary.numbers.push(number);
        }
        let width = |numbers: &mut dyn Iterator<Item = i64>| usize::from(Frame::of(numbers).width);
        let len_width = width(&mut lens(ends));
        let number_width = width(&mut dictionary.numbers.iter().map(|number| i64::from(*number)));
        let with = own + dictionary.texts.len() * len_width + ends.len() * number_width;
        (with < bytes.len() + ends.len() * len_width).then_some(dictionary)
    }
}
