//! Rows as bytes.
//!
//! The key of a row has the columns of the key, each in an order-preserving encoding
//! ([`key`](crate::key)), and the row's number behind them if the schema is numbered. The value has the other
//! columns:
//!
//! ```text
//! version     1 byte: the schema's version, 1 to 127; bit 7 says that ends take 4 bytes each, and not 2
//! nulls       a bit for each nullable column of that version, in their order, low bits first; 1 is null
//! fixed       the columns of fixed width, least significant byte first; zeros where they are null
//! ends        where each text but the last ends, counted from the beginning of the first
//! texts       text and bytes, one behind the other
//! ```
//!
//! So a column of fixed width lies at one offset in all rows of a version, of the type that it had in that, and a text between two ends. Stored:
//! do not change without another form of the first byte.

use std::borrow::Cow;

use crate::key::{Decoder, KeyDecode, KeyEncode};
use crate::{Error, Result, Schema, Type, Value};

/// In the first byte: ends take four bytes.
const WIDE_ENDS: u8 = 0x80;

/// Marks before the value of a nullable column of the key, as those of an `Option`.
const KEY_NULL: u8 = 1;
const KEY_SOME: u8 = 2;

/// What is said where a value is missing that must be there.
const NEEDED: &str = "a value is needed: the column is not nullable";

/// A column of a row, as its bytes have it.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// Whole numbers of up to 64 bits but `u64`, decimals of up to 18 digits (their units), truth (0 or 1), days and
    /// ticks.
    Int(i64),
    /// `u64`, `i128`, and decimals of more digits.
    Big(i128),
    /// `u128`; where the column was narrower when the row was written, cells are as they were.
    Huge(u128),
    /// Floats.
    Float(f64),
    /// Text, which is UTF-8, and bytes. Borrowed, but where a key has zero bytes in it.
    Bytes(Cow<'a, [u8]>),
    /// The items of an array, one behind the other, as in a row.
    Array(&'a [u8]),
}

/// Where a column lies in values of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The version has no such column, or it is in the key.
    Absent,
    Fixed {
        offset: usize,
        null_bit: Option<usize>,
    },
    Text {
        index: usize,
        null_bit: Option<usize>,
    },
}

/// The values of one version.
#[derive(Debug, Clone)]
struct ValueFormat {
    /// By column.
    places: Vec<Place>,
    /// The types that columns had.
    kinds: Vec<Type>,
    /// Bytes of null bits.
    nulls: usize,
    /// The widths of the columns that are not texts, one behind the other.
    widths: Vec<u32>,
    /// Where ends begin.
    ends: usize,
    texts: usize,
}

/// How rows of a schema are written and read.
///
/// ```
/// use sapwood::schema::{RowFormat, Schema, Value};
///
/// let schema: Schema = "carrier:text, flight:u16, delay:i16?, plane:text?, key(carrier, flight)".parse()?;
/// let rows = RowFormat::new(schema);
/// let row: [Value<'_>; 4] = ["UA".into(), 1545.into(), (-4).into(), Value::Null];
/// let (mut key, mut value) = (Vec::new(), Vec::new());
/// rows.encode(&row, None, &mut key, &mut value)?;
/// assert_eq!((key.len(), value.len()), (6, 4));
///
/// assert_eq!(rows.decode(&key, &value)?, row);
/// assert_eq!(rows.get(2, &key, &value)?, Value::Int(-4));
/// rows.set(2, &mut value, &7.into())?;
/// assert_eq!(rows.get(2, &key, &value)?, Value::Int(7));
/// # Ok::<(), sapwood::schema::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RowFormat {
    schema: Schema,
    /// By version, from 1.
    versions: Vec<ValueFormat>,
}

/// Formats of equal schemas are equal.
impl PartialEq for RowFormat {
    fn eq(&self, other: &RowFormat) -> bool {
        self.schema == other.schema
    }
}

impl Eq for RowFormat {}

/// Some columns of rows, to be read together: see [`RowFormat::project`].
#[derive(Debug, Clone)]
pub struct Projection {
    /// Components of the key up to the last that is wanted: their types, and the places among the wanted columns.
    key: Vec<(Type, bool, Vec<usize>)>,
    /// Wanted columns of the value: which, where in each version, and of what type.
    value: Vec<(usize, Vec<(Place, Type)>)>,
    /// Of each version, where ends begin, and how many texts there are.
    ends: Vec<(usize, usize)>,
}

impl RowFormat {
    /// That of a schema.
    pub fn new(schema: Schema) -> RowFormat {
        let versions = (1..=schema.version()).map(|version| value_format(&schema, version));
        RowFormat { versions: versions.collect(), schema }
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Writes a row, which has a value for each column, into `key` and `value`, replacing what they held. A
    /// numbered schema needs a number.
    ///
    /// # Errors
    /// [`Error::Value`] for a value that its column cannot have. What was written is of no use then.
    ///
    /// # Panics
    /// If there are more or fewer values than columns, or no number where one is needed.
    pub fn encode(
        &self,
        row: &[Value<'_>],
        number: Option<u64>,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        assert_eq!(row.len(), self.schema.columns().len(), "a value for each column");
        let fitting = row.iter().enumerate().map(|(column, value)| self.fitting(column, value));
        let row: Vec<Value<'_>> = fitting.collect::<Result<_>>()?;
        // Arrays have no bytes of their own.
        let arrays = row.iter().zip(self.schema.columns()).map(|(value, column)| {
            let mut bytes = Vec::new();
            if let Value::Array(_) = value {
                write_array(value, &column.kind, &mut bytes);
            }
            bytes
        });
        let arrays: Vec<Vec<u8>> = arrays.collect();
        let cell = |column: usize| cell_of(&row[column], &arrays[column]);
        self.encode_cells(&cell, number, key, value)
    }

    /// Writes a row as [`encode`](Self::encode) does, from its cells: `cell` answers that of a column, and may be asked
    /// twice. The form for rows whose values lie in columns.
    ///
    /// # Errors
    /// [`Error::Value`] for a cell that its column cannot have. What was written is of no use then.
    ///
    /// # Panics
    /// If there is no number where one is needed, or a cell is of another kind than its column.
    pub fn encode_cells<'c>(
        &self,
        cell: &impl Fn(usize) -> Cell<'c>,
        number: Option<u64>,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        key.clear();
        for &column in self.schema.key_columns() {
            self.encode_key_cell(column, &cell(column), key)?;
        }
        if self.schema.is_numbered() {
            number.expect("rows of this schema are numbered").encode_to(key);
        }
        if !self.encode_value::<2>(cell, value)? {
            let is_written = self.encode_value::<4>(cell, value)?;
            debug_assert!(is_written, "no value is as long");
        }
        Ok(())
    }

    /// Writes the columns that are not in the key, with ends of so many bytes; false if that is too few.
    #[inline]
    fn encode_value<'c, const WIDTH: usize>(
        &self,
        cell: &impl Fn(usize) -> Cell<'c>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let format = self.versions.last().expect("there is a first version");
        let ends = format.texts.saturating_sub(1);
        let begin = format.ends + ends * WIDTH;
        value.clear();
        value.resize(begin, 0);
        value[0] = self.schema.version() | if WIDTH == 4 { WIDE_ENDS } else { 0 };
        for (column, place) in format.places.iter().enumerate() {
            match (place, cell_at(place, column, cell)) {
                (Place::Absent, _) => {}
                (Place::Fixed { null_bit, .. } | Place::Text { null_bit, .. }, Cell::Null) => {
                    let bit = null_bit.ok_or_else(|| self.refused(column, NEEDED.to_owned()))?;
                    value[1 + bit / 8] |= 1 << (bit % 8);
                }
                (Place::Fixed { offset, .. }, cell) => {
                    let kind = &self.schema.columns()[column].kind;
                    write_cell(&cell, kind, &mut value[*offset..])
                        .map_err(|what| self.refused(column, what))?;
                }
                (Place::Text { .. }, Cell::Bytes(bytes)) => value.extend_from_slice(&bytes),
                (place, cell) => unreachable!("{cell:?} does not lie at {place:?}"),
            }
            if let Place::Text { index, .. } = place {
                let end = (value.len() - begin) as u64;
                if end >> (8 * WIDTH) > 0 {
                    return Ok(false);
                }
                if *index < ends {
                    let at = format.ends + index * WIDTH;
                    value[at..at + WIDTH].copy_from_slice(&end.to_le_bytes()[..WIDTH]);
                }
            }
        }
        Ok(true)
    }

    /// Writes values of the first columns of the key: all of them make the key of a row (but for its number),
    /// fewer the prefix that rows with these values share.
    ///
    /// # Errors
    /// [`Error::Value`] for a value that its column cannot have.
    pub fn encode_key<'v, 'a: 'v>(
        &self,
        values: impl IntoIterator<Item = &'v Value<'a>>,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        key.clear();
        for (value, &column) in values.into_iter().zip(self.schema.key_columns()) {
            let value = self.fitting(column, value)?;
            self.encode_key_cell(column, &cell_of(&value, &[]), key)?;
        }
        Ok(())
    }

    /// Appends one column of a key.
    fn encode_key_cell(&self, column: usize, cell: &Cell<'_>, key: &mut Vec<u8>) -> Result<()> {
        let described = &self.schema.columns()[column];
        match (cell, described.nullable) {
            (Cell::Null, true) => {
                key.push(KEY_NULL);
                return Ok(());
            }
            (Cell::Null, false) => return Err(self.refused(column, NEEDED.to_owned())),
            (_, true) => key.push(KEY_SOME),
            (_, false) => {}
        }
        let width = described.kind.width().unwrap_or(0);
        match cell {
            Cell::Float(value) => {
                // Zeros are equal, and so are all NaN.
                let value = match *value {
                    0.0 => 0.0,
                    value if value.is_nan() => f64::NAN,
                    value => value,
                };
                match width {
                    4 => (value as f32).encode_to(key),
                    _ => value.encode_to(key),
                }
            }
            Cell::Bytes(bytes) => bytes.as_ref().encode_to(key),
            cell if described.kind == Type::UInt(128) => {
                let number = unsigned_of(cell, &described.kind);
                let number = number.map_err(|what| self.refused(column, what))?;
                key.extend_from_slice(&number.to_be_bytes());
            }
            cell => {
                let number =
                    number_of(cell, &described.kind).map_err(|what| self.refused(column, what))?;
                let bytes = match described.kind {
                    Type::UInt(_) | Type::Bool => number.to_be_bytes(),
                    // The sign flips, so that bytes sort as numbers do.
                    _ => (number ^ (1_i128 << (width * 8 - 1))).to_be_bytes(),
                };
                key.extend_from_slice(&bytes[16 - width..]);
            }
        }
        Ok(())
    }

    #[cold]
    fn refused(&self, column: usize, what: String) -> Error {
        let described = &self.schema.columns()[column];
        Error::Value { column: described.name.clone(), wanted: described.kind.to_string(), what }
    }

    /// A value in the type of its column.
    fn fitting<'a>(&self, column: usize, value: &Value<'a>) -> Result<Value<'a>> {
        let described = &self.schema.columns()[column];
        let refuse = |what: String| self.refused(column, what);
        match value {
            Value::Null if described.nullable => Ok(Value::Null),
            Value::Null => Err(refuse(NEEDED.to_owned())),
            value => value.clone().to_type(&described.kind).map_err(refuse),
        }
    }

    /// Reads a row: a value for each column.
    ///
    /// # Errors
    /// [`Error::Bytes`] if the two are no row of the schema.
    pub fn decode<'a>(&self, key: &'a [u8], value: &'a [u8]) -> Result<Vec<Value<'a>>> {
        let columns: Vec<usize> = (0..self.schema.columns().len()).collect();
        let mut row = vec![Value::Null; columns.len()];
        let mut wrong = None;
        self.project(&columns).read(key, value, &mut |column, cell| match self
            .value_of(column, cell)
        {
            Ok(value) => row[column] = value,
            Err(error) => wrong = Some(error),
        })?;
        wrong.map_or(Ok(row), Err)
    }

    /// Reads one column.
    ///
    /// # Errors
    /// [`Error::Bytes`] if the two are no row of the schema.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn get<'a>(&self, column: usize, key: &'a [u8], value: &'a [u8]) -> Result<Value<'a>> {
        let columns = self.schema.columns();
        let in_key = self.schema.key_columns();
        if in_key.contains(&column) {
            let mut rest = key;
            for &at in in_key {
                let cell = key_cell(&columns[at].kind, columns[at].nullable, &mut rest)?;
                if at == column {
                    return self.value_of(column, cell);
                }
            }
        }
        let format = &self.versions[version_of(value, self.versions.len())?];
        let texts = Texts::of(value, format.ends, format.texts)?;
        let cell = texts.cell(&format.kinds[column], format.places[column], value)?;
        self.value_of(column, cell)
    }

    /// The number behind the columns of a key, if the schema has one.
    pub fn number_of(&self, key: &[u8]) -> Option<u64> {
        let number = key.last_chunk().filter(|_| self.schema.is_numbered())?;
        Some(u64::from_be_bytes(*number))
    }

    /// Changes one column of fixed width where it lies.
    ///
    /// # Errors
    /// [`Error::Value`] for a value that the column cannot have, and for a column that is in the key, is of no
    /// fixed width, or came or became wide enough after the row was written: such a row is written anew.
    /// [`Error::Bytes`] if these are not the bytes of a row. The row is as it was then.
    pub fn set(&self, column: usize, value: &mut [u8], new: &Value<'_>) -> Result<()> {
        let new = self.fitting(column, new)?;
        let described = &self.schema.columns()[column];
        let version = version_of(value, self.versions.len())?;
        let format = &self.versions[version];
        if value.len() < format.ends {
            return Err(too_short(value.len(), format.ends));
        }
        let kind = &format.kinds[column];
        let fits = *kind == described.kind || new.clone().to_type(kind).is_ok_and(|it| it == new);
        let (Place::Fixed { offset, null_bit }, true) = (format.places[column], fits) else {
            return Err(Error::Value {
                column: described.name.clone(),
                wanted: described.kind.to_string(),
                what: "it is not changed in place: write the row anew".to_owned(),
            });
        };
        if let Some(bit) = null_bit {
            let (byte, mask) = (&mut value[1 + bit / 8], 1 << (bit % 8));
            match new.is_null() {
                true => *byte |= mask,
                false => *byte &= !mask,
            }
        }
        let width = kind.width().expect("it is fixed");
        match new {
            Value::Null => value[offset..offset + width].fill(0),
            new => write_fixed(&new, kind, &mut value[offset..]),
        }
        Ok(())
    }

    /// Where a column of fixed width lies in the value of every row: in bytes, from its beginning. None if it may be
    /// null, is in the key, or lies elsewhere in rows of other versions, or was of another type there.
    pub fn offset_of(&self, column: usize) -> Option<usize> {
        if !self.schema.columns()[column].was.is_empty() {
            return None;
        }
        let mut places = self.versions.iter().map(|format| format.places[column]);
        let Some(Place::Fixed { offset, null_bit: None }) = places.next() else { return None };
        let is_same =
            |place| matches!(place, Place::Fixed { offset: at, null_bit: None } if at == offset);
        places.all(is_same).then_some(offset)
    }

    /// Some columns, to be read together. The same column may be asked for twice.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn project(&self, columns: &[usize]) -> Projection {
        let all = self.schema.columns();
        let mut key: Vec<(Type, bool, Vec<usize>)> = Vec::new();
        let wanted = |column: usize| -> Vec<usize> {
            columns.iter().enumerate().filter(|(_, it)| **it == column).map(|(at, _)| at).collect()
        };
        for &column in self.schema.key_columns() {
            key.push((all[column].kind.clone(), all[column].nullable, wanted(column)));
        }
        while key.last().is_some_and(|(_, _, wanted)| wanted.is_empty()) {
            key.pop();
        }
        let in_value = columns.iter().enumerate();
        let in_value = in_value.filter(|(_, column)| !self.schema.key_columns().contains(column));
        let value = in_value
            .map(|(at, &column)| {
                let places = self.versions.iter();
                let places =
                    places.map(|format| (format.places[column], format.kinds[column].clone()));
                (at, places.collect())
            })
            .collect();
        let ends = self.versions.iter().map(|format| (format.ends, format.texts)).collect();
        Projection { key, value, ends }
    }

    /// A cell of a column as a value.
    ///
    /// # Errors
    /// [`Error::Bytes`] for a text that is not UTF-8.
    pub fn value_of<'a>(&self, column: usize, cell: Cell<'a>) -> Result<Value<'a>> {
        value_of(&self.schema.columns()[column].kind, cell)
    }
}

impl Projection {
    /// Shows each column of a row: its number among those that were asked for, and its cell.
    ///
    /// # Errors
    /// [`Error::Bytes`] if the two are no row of the schema. Text is not checked to be UTF-8 here.
    #[inline]
    pub fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
        show: &mut impl FnMut(usize, Cell<'a>),
    ) -> Result<()> {
        if !self.key.is_empty() {
            self.read_key(key, show)?;
        }
        if self.value.is_empty() {
            return Ok(());
        }
        let version = version_of(value, self.ends.len())?;
        let (ends, texts) = self.ends[version];
        let texts = Texts::of(value, ends, texts)?;
        for (at, places) in &self.value {
            let (place, kind) = &places[version];
            show(*at, texts.cell(kind, *place, value)?);
        }
        Ok(())
    }

    fn read_key<'a>(&self, key: &'a [u8], show: &mut impl FnMut(usize, Cell<'a>)) -> Result<()> {
        let mut rest = key;
        for (kind, nullable, wanted) in &self.key {
            let cell = key_cell(kind, *nullable, &mut rest)?;
            if let Some((&last, others)) = wanted.split_last() {
                others.iter().for_each(|&at| show(at, cell.clone()));
                show(last, cell);
            }
        }
        Ok(())
    }
}

/// Where the texts of a value lie, which is long enough for all before them.
#[derive(Clone, Copy)]
struct Texts {
    count: usize,
    /// Where ends begin, and how many bytes each has.
    ends: usize,
    end_bytes: usize,
    /// Where texts begin.
    begin: usize,
}

impl Texts {
    /// Of a value that has a first byte.
    #[inline]
    fn of(value: &[u8], ends: usize, count: usize) -> Result<Texts> {
        let end_bytes = if value[0] & WIDE_ENDS == 0 { 2 } else { 4 };
        let begin = ends + count.saturating_sub(1) * end_bytes;
        match value.len() < begin {
            true => Err(too_short(value.len(), begin)),
            false => Ok(Texts { count, ends, end_bytes, begin }),
        }
    }

    #[inline]
    fn end(&self, index: usize, value: &[u8]) -> usize {
        let at = self.ends + index * self.end_bytes;
        match self.end_bytes {
            2 => u16::from_le_bytes([value[at], value[at + 1]]) as usize,
            _ => u32::from_le_bytes(value[at..at + 4].try_into().expect("4 bytes")) as usize,
        }
    }

    /// Reads a column.
    #[inline]
    fn cell<'a>(&self, kind: &Type, place: Place, value: &'a [u8]) -> Result<Cell<'a>> {
        let is_null =
            |bit: Option<usize>| bit.is_some_and(|bit| value[1 + bit / 8] & (1 << (bit % 8)) != 0);
        Ok(match place {
            Place::Absent => Cell::Null,
            Place::Fixed { null_bit, .. } | Place::Text { null_bit, .. } if is_null(null_bit) => {
                Cell::Null
            }
            Place::Fixed { offset, .. } => fixed(kind, &value[offset..]),
            Place::Text { index, .. } => {
                let from = if index == 0 { 0 } else { self.end(index - 1, value) };
                let text = match index + 1 == self.count {
                    true => value.get(self.begin + from..),
                    false => value.get(self.begin + from..self.begin + self.end(index, value)),
                };
                let wrong = || Error::value("a text ends before it begins, or behind the row");
                Cell::Bytes(Cow::Borrowed(text.ok_or_else(wrong)?))
            }
        })
    }
}

/// The number of a value's version, from 0.
#[inline]
fn version_of(value: &[u8], versions: usize) -> Result<usize> {
    let Some(first) = value.first() else { return Err(Error::value("it is empty")) };
    match usize::from(first & !WIDE_ENDS) {
        version if (1..=versions).contains(&version) => Ok(version - 1),
        version => Err(Error::value(format!(
            "it is of version {version}, and the schema has versions 1 to {versions}"
        ))),
    }
}

#[cold]
fn too_short(len: usize, needed: usize) -> Error {
    Error::value(format!("it has {len} bytes, and at least {needed} are needed"))
}

fn value_format(schema: &Schema, version: u8) -> ValueFormat {
    let columns = schema.columns();
    let in_value = |column: &usize| {
        !schema.key_columns().contains(column) && columns[*column].since <= version
    };
    let own: Vec<usize> = (0..columns.len()).filter(in_value).collect();
    let nullable = own.iter().filter(|&&column| columns[column].nullable).count();
    let mut format = ValueFormat {
        places: vec![Place::Absent; columns.len()],
        kinds: columns.iter().map(|column| column.kind_at(version).clone()).collect(),
        nulls: nullable.div_ceil(8),
        widths: Vec::new(),
        ends: 1 + nullable.div_ceil(8),
        texts: 0,
    };
    let mut bits = 0..;
    for column in own {
        let null_bit = columns[column].nullable.then(|| bits.next().expect("bits do not end"));
        format.places[column] = match format.kinds[column].width() {
            Some(width) => {
                let offset = format.ends;
                format.ends += width;
                format.widths.push(width as u32);
                Place::Fixed { offset, null_bit }
            }
            None => {
                format.texts += 1;
                Place::Text { index: format.texts - 1, null_bit }
            }
        };
    }
    format
}

/// The cell of a column, but of one that the value has not.
#[inline]
fn cell_at<'c>(place: &Place, column: usize, cell: &impl Fn(usize) -> Cell<'c>) -> Cell<'c> {
    match place {
        Place::Absent => Cell::Null,
        _ => cell(column),
    }
}

/// A value of its column's type as a cell; `array` has the bytes of an array.
fn cell_of<'c>(value: &'c Value<'_>, array: &'c [u8]) -> Cell<'c> {
    let number = match value {
        Value::Null => return Cell::Null,
        Value::Float(value) => return Cell::Float(*value),
        Value::Text(text) => return Cell::Bytes(Cow::Borrowed(text.as_bytes())),
        Value::Bytes(bytes) => return Cell::Bytes(Cow::Borrowed(bytes)),
        Value::Array(_) => return Cell::Array(array),
        Value::Huge(number) => return Cell::Huge(*number),
        other => whole(other),
    };
    i64::try_from(number).map_or(Cell::Big(number), Cell::Int)
}

/// The whole number of a cell, if a column of this type can have it.
#[inline]
fn number_of(cell: &Cell<'_>, kind: &Type) -> std::result::Result<i128, String> {
    let number = match cell {
        Cell::Int(number) => i128::from(*number),
        Cell::Big(number) => *number,
        Cell::Huge(number) => {
            i128::try_from(*number).map_err(|_| format!("{number} does not fit into {kind}"))?
        }
        other => unreachable!("{other:?} is no whole number"),
    };
    let fits = match kind {
        Type::Bool => (0..=1).contains(&number),
        Type::Int(128) => true,
        Type::Int(bits) => {
            let limit = 1_i128 << (bits - 1);
            (-limit..limit).contains(&number)
        }
        Type::UInt(bits) => (0..1_i128 << bits).contains(&number),
        Type::Date => i32::try_from(number).is_ok(),
        Type::Timestamp(_) => i64::try_from(number).is_ok(),
        Type::Decimal { digits, .. } => {
            number.unsigned_abs() < crate::POWERS_OF_TEN[usize::from(*digits)].unsigned_abs()
        }
        other => unreachable!("{other} has no whole numbers"),
    };
    match fits {
        true => Ok(number),
        false => Err(format!("{number} does not fit into {kind}")),
    }
}

/// The whole number of a cell in a column of 128 bits without a sign.
#[inline]
fn unsigned_of(cell: &Cell<'_>, kind: &Type) -> std::result::Result<u128, String> {
    let number = match cell {
        Cell::Huge(number) => return Ok(*number),
        Cell::Int(number) => i128::from(*number),
        Cell::Big(number) => *number,
        other => unreachable!("{other:?} is no whole number"),
    };
    u128::try_from(number).map_err(|_| format!("{number} does not fit into {kind}"))
}

/// Writes a cell of fixed width at the beginning of `out`.
#[inline]
fn write_cell(cell: &Cell<'_>, kind: &Type, out: &mut [u8]) -> std::result::Result<(), String> {
    // The most, without numbers of 128 bits.
    match (cell, kind) {
        (&Cell::Int(number), Type::Int(16)) => {
            if let Ok(number) = i16::try_from(number) {
                out[..2].copy_from_slice(&number.to_le_bytes());
                return Ok(());
            }
        }
        (&Cell::Int(number), Type::Int(32)) => {
            if let Ok(number) = i32::try_from(number) {
                out[..4].copy_from_slice(&number.to_le_bytes());
                return Ok(());
            }
        }
        (Cell::Int(number), Type::Int(64) | Type::Timestamp(_)) => {
            out[..8].copy_from_slice(&number.to_le_bytes());
            return Ok(());
        }
        _ => {}
    }
    match (cell, kind) {
        (Cell::Float(value), Type::F32) => {
            out[..4].copy_from_slice(&(*value as f32).to_le_bytes());
        }
        (Cell::Float(value), _) => out[..8].copy_from_slice(&value.to_le_bytes()),
        (Cell::Array(bytes), _) => out[..bytes.len()].copy_from_slice(bytes),
        (cell, Type::UInt(128)) => {
            out[..16].copy_from_slice(&unsigned_of(cell, kind)?.to_le_bytes());
        }
        (cell, kind) => {
            let width = kind.width().expect("it is fixed");
            let number = number_of(cell, kind)?;
            out[..width].copy_from_slice(&number.to_le_bytes()[..width]);
        }
    }
    Ok(())
}

/// The whole number behind a value that has one.
fn whole(value: &Value<'_>) -> i128 {
    match value {
        Value::Bool(value) => i128::from(*value),
        Value::Int(value) => *value,
        Value::Decimal { units, .. } => *units,
        Value::Date(days) => i128::from(*days),
        Value::Timestamp { ticks, .. } => i128::from(*ticks),
        other => unreachable!("{other:?} is no whole number"),
    }
}

/// Writes a value of fixed width at the beginning of `out`.
fn write_fixed(value: &Value<'_>, kind: &Type, out: &mut [u8]) {
    let width = kind.width().expect("it is fixed");
    match (value, kind) {
        (Value::Float(value), Type::F32) => {
            out[..4].copy_from_slice(&(*value as f32).to_le_bytes());
        }
        (Value::Float(value), _) => out[..8].copy_from_slice(&value.to_le_bytes()),
        (Value::Array(items), Type::Array(item, _)) => {
            let width = item.width().expect("items are fixed");
            for (at, value) in items.iter().enumerate() {
                write_fixed(value, item, &mut out[at * width..]);
            }
        }
        (Value::Huge(number), _) => out[..width].copy_from_slice(&number.to_le_bytes()[..width]),
        (value, _) => out[..width].copy_from_slice(&whole(value).to_le_bytes()[..width]),
    }
}

/// Appends an array as rows have it.
///
/// # Panics
/// If the value is no array of this type.
pub fn write_array(value: &Value<'_>, kind: &Type, out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + kind.width().expect("arrays have a width"), 0);
    write_fixed(value, kind, &mut out[begin..]);
}

/// Reads a value of fixed width from the beginning of `bytes`, which has it.
#[inline]
fn fixed<'a>(kind: &Type, bytes: &'a [u8]) -> Cell<'a> {
    match kind {
        Type::Bool | Type::UInt(8) => Cell::Int(bytes[0].into()),
        Type::Int(8) => Cell::Int(i64::from(bytes[0] as i8)),
        Type::Int(16) => Cell::Int(i16::from_le_bytes(take(bytes)).into()),
        Type::UInt(16) => Cell::Int(u16::from_le_bytes(take(bytes)).into()),
        Type::Int(32) | Type::Date => Cell::Int(i32::from_le_bytes(take(bytes)).into()),
        Type::UInt(32) => Cell::Int(u32::from_le_bytes(take(bytes)).into()),
        Type::Int(64) | Type::Timestamp(_) => Cell::Int(i64::from_le_bytes(take(bytes))),
        Type::UInt(64) => Cell::Big(u64::from_le_bytes(take(bytes)).into()),
        Type::UInt(_) => Cell::Huge(u128::from_le_bytes(take(bytes))),
        Type::Int(_) => Cell::Big(i128::from_le_bytes(take(bytes))),
        Type::Decimal { digits, .. } if *digits <= 18 => Cell::Int(i64::from_le_bytes(take(bytes))),
        Type::Decimal { .. } => Cell::Big(i128::from_le_bytes(take(bytes))),
        Type::F32 => Cell::Float(f32::from_le_bytes(take(bytes)).into()),
        Type::F64 => Cell::Float(f64::from_le_bytes(take(bytes))),
        Type::Array(item, len) => {
            let width = item.width().expect("items are fixed");
            Cell::Array(&bytes[..width * usize::from(*len)])
        }
        Type::Text | Type::Bytes => unreachable!("text has no fixed width"),
    }
}

#[inline]
fn take<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("the row is long enough")
}

/// Takes a column off the front of what is left of a key.
fn key_cell<'a>(kind: &Type, nullable: bool, rest: &mut &'a [u8]) -> Result<Cell<'a>> {
    let ends = || Error::key("it ends within a column");
    if nullable {
        let (mark, behind) = rest.split_first().ok_or_else(ends)?;
        *rest = behind;
        match *mark {
            KEY_NULL => return Ok(Cell::Null),
            KEY_SOME => {}
            _ => return Err(Error::key("a column that may be missing begins with 1 or 2")),
        }
    }
    let Some(width) = kind.width() else {
        // A zero byte that ends the text, or stands for itself, is rare: look for the first.
        let zero = rest.iter().position(|&byte| byte == 0).ok_or_else(ends)?;
        if rest.get(zero + 1) == Some(&1) {
            let text = &rest[..zero];
            *rest = &rest[zero + 2..];
            return Ok(Cell::Bytes(Cow::Borrowed(text)));
        }
        let mut decoder = Decoder::new(rest);
        let text = Vec::<u8>::decode_from(&mut decoder);
        *rest = decoder.rest();
        return Ok(Cell::Bytes(Cow::Owned(text.map_err(|error| Error::key(error.to_string()))?)));
    };
    let (bytes, behind) = rest.split_at_checked(width).ok_or_else(ends)?;
    *rest = behind;
    let mut wide = [0; 16];
    wide[16 - width..].copy_from_slice(bytes);
    let number = i128::from_be_bytes(wide);
    Ok(match kind {
        Type::F32 => {
            let mut decoder = Decoder::new(bytes);
            Cell::Float(f32::decode_from(&mut decoder).expect("it has 4 bytes").into())
        }
        Type::F64 => {
            let mut decoder = Decoder::new(bytes);
            Cell::Float(f64::decode_from(&mut decoder).expect("it has 8 bytes"))
        }
        Type::Bool if number > 1 => return Err(Error::key("a truth value is 0 or 1")),
        Type::Bool => Cell::Int(number as i64),
        Type::UInt(64) => Cell::Big(number),
        Type::UInt(128) => Cell::Huge(number.cast_unsigned()),
        Type::UInt(_) => Cell::Int(number as i64),
        _ => {
            let bits = width as u32 * 8;
            // The flipped sign, then the sign in all bits above it.
            let number = (number ^ (1 << (bits - 1))) << (128 - bits) >> (128 - bits);
            match kind {
                Type::Int(128) => Cell::Big(number),
                Type::Decimal { digits, .. } if *digits > 18 => Cell::Big(number),
                _ => Cell::Int(number as i64),
            }
        }
    })
}

impl<'a> Cell<'a> {
    /// The value that the cell is, in a column of this type.
    ///
    /// # Errors
    /// [`Error::Bytes`] for a text that is not UTF-8.
    ///
    /// # Panics
    /// If no cell of the type looks so.
    pub fn into_value(self, kind: &Type) -> Result<Value<'a>> {
        value_of(kind, self)
    }
}

fn value_of<'a>(kind: &Type, cell: Cell<'a>) -> Result<Value<'a>> {
    let number = match cell {
        Cell::Null => return Ok(Value::Null),
        Cell::Float(value) => return Ok(Value::Float(value)),
        Cell::Bytes(bytes) if *kind == Type::Bytes => return Ok(Value::Bytes(bytes)),
        Cell::Bytes(bytes) => {
            let wrong = |_| Error::value("a text is not UTF-8");
            return Ok(Value::Text(match bytes {
                Cow::Borrowed(bytes) => {
                    Cow::Borrowed(std::str::from_utf8(bytes).map_err(|_| wrong(()))?)
                }
                Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).map_err(|_| wrong(()))?),
            }));
        }
        Cell::Array(bytes) => {
            let Type::Array(item, _) = kind else { unreachable!("cells are of their type") };
            let width = item.width().expect("items are fixed");
            let items = bytes.chunks_exact(width).map(|bytes| value_of(item, fixed(item, bytes)));
            return Ok(Value::Array(items.collect::<Result<_>>()?));
        }
        Cell::Huge(number) => return Ok(Value::from(number)),
        Cell::Int(number) => i128::from(number),
        Cell::Big(number) => number,
    };
    Ok(match kind {
        Type::Bool => Value::Bool(number != 0),
        Type::Decimal { scale, .. } => Value::Decimal { units: number, scale: *scale },
        Type::Date => Value::Date(number as i32),
        Type::Timestamp(precision) => {
            Value::Timestamp { ticks: number as i64, precision: *precision }
        }
        _ => Value::Int(number),
    })
}

mod pieces;
#[cfg(test)]
mod tests;

pub use pieces::{ColumnPiece, RowCut};
