//! Batches of rows, column by column: the form in which rows pass from files and tables to statements.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::row::{Cell, write_array};
use crate::types::Type;
use crate::value::Value;

/// Rows that a batch has at most, as sources make them.
pub const BATCH_ROWS: usize = 2_048;

/// Some rows, column by column.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The number of rows.
    pub len: usize,
    /// A vector of `len` values for each column that was asked for, in the order of the request.
    pub columns: Vec<Vector>,
    /// The name of each row in its source, if names were asked for.
    pub ids: Option<Strings>,
}

/// Takes batches of rows: the number that says where they stand among all, and the rows.
pub type Sink<'s> = dyn FnMut(u64, &Batch) -> ControlFlow<()> + 's;

/// Rows that are being read, by any number of threads.
pub trait Scan: Sync {
    /// The most threads that find something to do: all, unless it is known that rows are few.
    fn threads_max(&self) -> usize {
        usize::MAX
    }

    /// Shows batches until there are no more, or the sink breaks. Threads that call it at the same time share the
    /// rows: each batch goes to one of them. Batches are numbered in the order of the source.
    ///
    /// # Errors
    /// Why rows cannot be read.
    fn work(&self, sink: &mut Sink<'_>) -> Result<(), String>;
}

/// A column of a source of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// True if a value may be null.
    pub nullable: bool,
}

/// The values of one column.
#[derive(Debug, Clone)]
pub struct Vector {
    /// A value for each row; where it is null, any.
    pub data: Data,
    /// Which values are null; `None` if none is.
    pub nulls: Option<Vec<bool>>,
}

/// Values of one representation.
#[derive(Debug, Clone)]
pub enum Data {
    /// Truth values.
    Bool(Vec<bool>),
    /// Whole numbers of up to 64 bits but `u64`, days, ticks, and the units of decimals of up to 18 digits.
    Int(Vec<i64>),
    /// Whole numbers beyond, and the units of other decimals.
    Big(Vec<i128>),
    /// Whole numbers of 128 bits without a sign.
    Huge(Vec<u128>),
    /// Floats, 32-bit ones too.
    Float(Vec<f64>),
    /// Text, bytes, and arrays as rows have them.
    Bytes(Strings),
}

/// Byte strings, one behind the other; or, where few of many differ, the number of each in a dictionary.
#[derive(Debug, Clone, Default)]
pub struct Strings {
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// With a dictionary: which of its strings each is. The others above are empty then.
    codes: Vec<u8>,
    dictionary: Option<Arc<Strings>>,
}

impl Strings {
    /// Strings that a dictionary has at most.
    pub const DICTIONARY_MAX: usize = 256;

    /// None yet.
    pub fn new() -> Strings {
        Strings::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.dictionary {
            None => self.ends.len(),
            Some(_) => self.codes.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn get(&self, at: usize) -> &[u8] {
        match &self.dictionary {
            None => self.own(at),
            Some(dictionary) => dictionary.own(self.codes[at].into()),
        }
    }

    /// One of those that lie here.
    #[inline(always)]
    fn own(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[begin..self.ends[at]]
    }

    /// Appends one.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_with(|own| own.extend_from_slice(bytes));
    }

    /// Appends one that `write` appends to the bytes.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.dictionary.is_some() {
            self.decode();
        }
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Appends strings of a dictionary by their numbers. They stay numbers while all others here are of the same one.
    ///
    /// # Panics
    /// If the dictionary has fewer, more than [`DICTIONARY_MAX`](Self::DICTIONARY_MAX), or a dictionary itself.
    pub fn extend_from_dictionary(&mut self, dictionary: &Arc<Strings>, codes: &[u8]) {
        let len = dictionary.len();
        assert!(dictionary.dictionary.is_none(), "a dictionary has strings");
        assert!(len <= Strings::DICTIONARY_MAX, "{len} strings have no numbers");
        assert!(codes.iter().all(|code| usize::from(*code) < len), "the dictionary has them");
        if self.is_empty() {
            self.dictionary = Some(Arc::clone(dictionary));
        }
        match &self.dictionary {
            Some(own) if Arc::ptr_eq(own, dictionary) => self.codes.extend_from_slice(codes),
            _ => codes.iter().for_each(|code| self.push(dictionary.own((*code).into()))),
        }
    }

    /// The dictionary, and the number of each, where there is one.
    #[inline]
    pub fn coded(&self) -> Option<(&Arc<Strings>, &[u8])> {
        self.dictionary.as_ref().map(|dictionary| (dictionary, &self.codes[..]))
    }

    /// Gives each its own bytes.
    #[cold]
    fn decode(&mut self) {
        let Some(dictionary) = self.dictionary.take() else { return };
        for &code in &self.codes {
            self.bytes.extend_from_slice(dictionary.own(code.into()));
            self.ends.push(self.bytes.len());
        }
        self.codes.clear();
    }

    /// The strings at some places, in that order.
    fn take(&self, places: &[u32]) -> Strings {
        if let Some(dictionary) = &self.dictionary {
            let codes = places.iter().map(|&at| self.codes[at as usize]).collect();
            let dictionary = Some(Arc::clone(dictionary));
            return Strings { codes, dictionary, ..Strings::new() };
        }
        // Most are short: sixteen bytes are copied with fewer instructions than some.
        const SHORT: usize = 16;
        let mut taken = Strings { ends: Vec::with_capacity(places.len()), ..Strings::new() };
        taken.bytes.reserve(self.bytes.len() / self.len().max(1) * places.len() + SHORT);
        for &at in places {
            let at = at as usize;
            let begin = if at == 0 { 0 } else { self.ends[at - 1] };
            let len = self.ends[at] - begin;
            let end = taken.bytes.len() + len;
            match self.bytes[begin..].first_chunk::<SHORT>() {
                Some(chunk) if len <= SHORT => {
                    taken.bytes.extend_from_slice(chunk);
                    taken.bytes.truncate(end);
                }
                _ => taken.bytes.extend_from_slice(&self.bytes[begin..begin + len]),
            }
            taken.ends.push(end);
        }
        taken
    }

    /// Appends some that lie one behind the other, and end at these places of their bytes.
    pub fn extend_from(&mut self, bytes: &[u8], ends: impl Iterator<Item = usize>) {
        self.decode();
        let before = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.ends.extend(ends.map(|end| before + end));
        debug_assert_eq!(self.ends.last().copied().unwrap_or(0), self.bytes.len());
    }

    /// One of up to 15 bytes as a number, the first byte lowest, and how many they are.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn word(&self, at: usize) -> Option<(u128, usize)> {
        if let Some(dictionary) = &self.dictionary {
            return dictionary.word(self.codes[at].into());
        }
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        let len = self.ends[at] - begin;
        if len > 15 {
            return None;
        }
        let rest = &self.bytes[begin..];
        let word = match (rest.first_chunk(), rest.first_chunk()) {
            (Some(chunk), _) if len < 8 => {
                (u64::from_le_bytes(*chunk) & ((1 << (len * 8)) - 1)).into()
            }
            (_, Some(chunk)) => u128::from_le_bytes(*chunk) & ((1 << (len * 8)) - 1),
            _ => {
                let mut chunk = [0; 16];
                chunk[..len].copy_from_slice(&rest[..len]);
                u128::from_le_bytes(chunk)
            }
        };
        Some((word, len))
    }

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Forgets all but the first so many.
    pub fn truncate(&mut self, len: usize) {
        self.codes.truncate(len);
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
        self.codes.clear();
        self.dictionary = None;
    }

    /// Bytes of memory that they take, about; a dictionary, which others share, is not counted.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.codes.capacity()
    }
}

impl PartialEq for Strings {
    fn eq(&self, other: &Strings) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Strings {}

impl<'a> FromIterator<&'a [u8]> for Strings {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(all: I) -> Strings {
        let mut strings = Strings::new();
        all.into_iter().for_each(|bytes| strings.push(bytes));
        strings
    }
}

impl Data {
    /// No values yet, of the representation that a type has.
    pub fn of_type(kind: &Type) -> Data {
        match kind {
            Type::Bool => Data::Bool(Vec::new()),
            Type::UInt(64) | Type::Int(128) => Data::Big(Vec::new()),
            Type::UInt(128) => Data::Huge(Vec::new()),
            Type::Int(_) | Type::UInt(_) | Type::Date | Type::Timestamp(_) => Data::Int(Vec::new()),
            Type::Decimal { digits, .. } if *digits <= 18 => Data::Int(Vec::new()),
            Type::Decimal { .. } => Data::Big(Vec::new()),
            Type::F32 | Type::F64 => Data::Float(Vec::new()),
            Type::Text | Type::Bytes | Type::Array(..) => Data::Bytes(Strings::new()),
        }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Data::Bool(values) => values.len(),
            Data::Int(values) => values.len(),
            Data::Big(values) => values.len(),
            Data::Huge(values) => values.len(),
            Data::Float(values) => values.len(),
            Data::Bytes(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends what stands where there is no value.
    #[inline]
    fn push_nothing(&mut self) {
        match self {
            Data::Bool(values) => values.push(false),
            Data::Int(values) => values.push(0),
            Data::Big(values) => values.push(0),
            Data::Huge(values) => values.push(0),
            Data::Float(values) => values.push(0.0),
            Data::Bytes(values) => values.push(b""),
        }
    }

    fn clear(&mut self) {
        match self {
            Data::Bool(values) => values.clear(),
            Data::Int(values) => values.clear(),
            Data::Big(values) => values.clear(),
            Data::Huge(values) => values.clear(),
            Data::Float(values) => values.clear(),
            Data::Bytes(values) => values.clear(),
        }
    }
}

impl Vector {
    /// No values yet, of the representation of this vector.
    pub fn emptied(&self) -> Vector {
        Vector::new(match &self.data {
            Data::Bool(_) => Data::Bool(Vec::new()),
            Data::Int(_) => Data::Int(Vec::new()),
            Data::Big(_) => Data::Big(Vec::new()),
            Data::Huge(_) => Data::Huge(Vec::new()),
            Data::Float(_) => Data::Float(Vec::new()),
            Data::Bytes(_) => Data::Bytes(Strings::new()),
        })
    }

    /// No values yet, of a type.
    pub fn of_type(kind: &Type) -> Vector {
        Vector { data: Data::of_type(kind), nulls: None }
    }

    /// Values none of which is null.
    pub fn new(data: Data) -> Vector {
        Vector { data, nulls: None }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Whether a value is null.
    #[inline]
    pub fn is_null(&self, at: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls[at])
    }

    /// Appends a null.
    #[inline]
    pub fn push_null(&mut self) {
        let len = self.data.len();
        self.data.push_nothing();
        self.nulls.get_or_insert_with(|| vec![false; len]).push(true);
    }

    /// Notes that the value which was appended last to the data is not null.
    #[inline]
    fn note_value(&mut self) {
        if let Some(nulls) = &mut self.nulls {
            nulls.push(false);
        }
    }

    /// Appends a cell of a row, which is of the type of this vector.
    ///
    /// # Panics
    /// If it is of another representation.
    #[inline]
    pub fn push_cell(&mut self, cell: &Cell<'_>) {
        match (&mut self.data, cell) {
            (_, Cell::Null) => return self.push_null(),
            (Data::Int(values), Cell::Int(value)) => values.push(*value),
            (Data::Float(values), Cell::Float(value)) => values.push(*value),
            (Data::Bytes(values), Cell::Bytes(bytes)) => values.push(bytes),
            (Data::Bytes(values), Cell::Array(bytes)) => values.push(bytes),
            (Data::Bool(values), Cell::Int(value)) => values.push(*value != 0),
            (Data::Big(values), Cell::Big(value)) => values.push(*value),
            (Data::Big(values), Cell::Int(value)) => values.push((*value).into()),
            (Data::Huge(values), Cell::Huge(value)) => values.push(*value),
            // Of a type that the column had before; none of these is negative.
            (Data::Huge(values), Cell::Big(value)) => values.push(value.unsigned_abs()),
            (Data::Huge(values), Cell::Int(value)) => values.push(value.unsigned_abs().into()),
            (data, cell) => unreachable!("{cell:?} does not go into {data:?}"),
        }
        self.note_value();
    }

    /// Appends a value of the type of this vector.
    ///
    /// # Panics
    /// If it is of another type.
    pub fn push_value(&mut self, value: &Value<'_>) {
        let cell = match value {
            Value::Null => Cell::Null,
            Value::Bool(value) => Cell::Int((*value).into()),
            Value::Int(value) => whole(&self.data, *value),
            Value::Huge(value) => Cell::Huge(*value),
            Value::Decimal { units, .. } => whole(&self.data, *units),
            Value::Float(value) => Cell::Float(*value),
            Value::Date(days) => Cell::Int((*days).into()),
            Value::Timestamp { ticks, .. } => Cell::Int(*ticks),
            Value::Text(text) => Cell::Bytes(text.as_bytes().into()),
            Value::Bytes(bytes) => Cell::Bytes(bytes.as_ref().into()),
            other => unreachable!("{other:?} has no cell"),
        };
        self.push_cell(&cell);
    }

    /// Appends an array of a type, as rows have it.
    ///
    /// # Panics
    /// If it is none of that type.
    pub fn push_array(&mut self, value: &Value<'_>, kind: &Type) {
        let Data::Bytes(values) = &mut self.data else { unreachable!("arrays are bytes") };
        values.push_with(|out| write_array(value, kind, out));
        self.note_value();
    }

    /// A value, read as one of a type.
    ///
    /// # Errors
    /// What is wrong with it: a text that is not UTF-8.
    pub fn value<'a>(&'a self, at: usize, kind: &Type) -> Result<Value<'a>, crate::Error> {
        self.cell(at, kind).into_value(kind)
    }

    /// A value, as a cell of a type.
    #[inline]
    pub fn cell(&self, at: usize, kind: &Type) -> Cell<'_> {
        if self.is_null(at) {
            return Cell::Null;
        }
        match &self.data {
            Data::Bool(values) => Cell::Int(values[at].into()),
            Data::Int(values) => Cell::Int(values[at]),
            Data::Big(values) => Cell::Big(values[at]),
            Data::Huge(values) => Cell::Huge(values[at]),
            Data::Float(values) => Cell::Float(values[at]),
            Data::Bytes(values) if matches!(kind, Type::Array(..)) => Cell::Array(values.get(at)),
            Data::Bytes(values) => Cell::Bytes(values.get(at).into()),
        }
    }

    /// The values at some places, in that order.
    pub fn take(&self, places: &[u32]) -> Vector {
        fn pick<T: Copy>(values: &[T], places: &[u32]) -> Vec<T> {
            places.iter().map(|&at| values[at as usize]).collect()
        }
        let data = match &self.data {
            Data::Bool(values) => Data::Bool(pick(values, places)),
            Data::Int(values) => Data::Int(pick(values, places)),
            Data::Big(values) => Data::Big(pick(values, places)),
            Data::Huge(values) => Data::Huge(pick(values, places)),
            Data::Float(values) => Data::Float(pick(values, places)),
            Data::Bytes(values) => Data::Bytes(values.take(places)),
        };
        let nulls = self.nulls.as_ref().map(|nulls| pick(nulls, places));
        Vector { data, nulls: nulls.filter(|nulls| nulls.contains(&true)) }
    }

    /// Appends a value of another vector of this representation.
    pub fn push_from(&mut self, other: &Vector, at: usize) {
        if other.is_null(at) {
            return self.push_null();
        }
        match (&mut self.data, &other.data) {
            (Data::Bool(values), Data::Bool(others)) => values.push(others[at]),
            (Data::Int(values), Data::Int(others)) => values.push(others[at]),
            (Data::Big(values), Data::Big(others)) => values.push(others[at]),
            (Data::Huge(values), Data::Huge(others)) => values.push(others[at]),
            (Data::Float(values), Data::Float(others)) => values.push(others[at]),
            (Data::Bytes(values), Data::Bytes(others)) => values.push(others.get(at)),
            (data, other) => unreachable!("{other:?} does not go into {data:?}"),
        }
        self.note_value();
    }

    /// Forgets all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.nulls = None;
    }

    /// Bytes of memory that the values take, about.
    pub fn memory(&self) -> usize {
        let nulls = self.nulls.as_ref().map_or(0, Vec::len);
        nulls
            + match &self.data {
                Data::Bool(values) => values.len(),
                Data::Int(values) => values.len() * 8,
                Data::Big(values) => values.len() * 16,
                Data::Huge(values) => values.len() * 16,
                Data::Float(values) => values.len() * 8,
                Data::Bytes(values) => values.memory(),
            }
    }
}

fn whole(data: &Data, number: i128) -> Cell<'static> {
    match data {
        Data::Int(_) => Cell::Int(i64::try_from(number).expect("it is of the vector's type")),
        _ => Cell::Big(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all lengths around those that are read and copied at once, also at the end of the bytes.
    #[test]
    fn strings_are_read_and_taken_as_they_are() {
        let all: Vec<Vec<u8>> =
            (0..20).chain((0..20).rev()).map(|len| vec![len + 1; len.into()]).collect();
        let strings: Strings = all.iter().map(Vec::as_slice).collect();
        for (at, own) in all.iter().enumerate() {
            let expected = (own.len() <= 15).then(|| {
                let mut word = [0; 16];
                word[..own.len()].copy_from_slice(own);
                (u128::from_le_bytes(word), own.len())
            });
            assert_eq!(strings.word(at), expected, "{at}");
        }
        let places = [39, 0, 16, 17, 15, 20, 39, 1, 36];
        let taken = strings.take(&places);
        let expected: Vec<&[u8]> = places.iter().map(|&at| &all[at as usize][..]).collect();
        assert_eq!(taken.iter().collect::<Vec<_>>(), expected);

        let mut some = taken.clone();
        some.truncate(3);
        some.extend_from(b"abc", [0, 2, 3].into_iter());
        assert_eq!(some.iter().skip(3).collect::<Vec<_>>(), [&b""[..], b"ab", b"c"]);
        assert_eq!(some.iter().take(3).collect::<Vec<_>>(), expected[..3]);
        some.truncate(0);
        assert!(some.is_empty() && some.iter().next().is_none());
    }
    /// Strings of dictionaries against the same ones by themselves, through all that is done with them.
    #[test]
    fn strings_of_a_dictionary_are_its_strings() {
        let all: Vec<Vec<u8>> = (0..=255).map(|len: u8| vec![len; usize::from(len % 20)]).collect();
        let dictionary = |len: usize| Arc::new(all[..len].iter().map(Vec::as_slice).collect());
        let dictionaries: [Arc<Strings>; 2] = [dictionary(256), dictionary(9)];
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..300 {
            let (mut strings, mut expected) = (Strings::new(), Vec::<Vec<u8>>::new());
            for _ in 0..random.usize(1..6) {
                match random.u8(..9) {
                    0 => {
                        strings.push(b"own");
                        expected.push(b"own".to_vec());
                    }
                    1 => {
                        let places: Vec<u32> =
                            (0..expected.len() as u32).filter(|_| random.bool()).collect();
                        strings = strings.take(&places);
                        let taken = places.iter().map(|&at| expected[at as usize].clone());
                        expected = taken.collect();
                    }
                    2 => {
                        let len = random.usize(..=expected.len());
                        strings.truncate(len);
                        expected.truncate(len);
                    }
                    3 => {
                        strings.extend_from(b"abc", [1, 3].into_iter());
                        expected.extend([b"a".to_vec(), b"bc".to_vec()]);
                    }
                    4 => {
                        strings.clear();
                        expected.clear();
                    }
                    _ => {
                        let dictionary = &dictionaries[usize::from(random.u8(..4) == 0)];
                        let codes =
                            (0..random.usize(..9)).map(|_| random.usize(..dictionary.len()));
                        let codes: Vec<u8> = codes.map(|code| code as u8).collect();
                        strings.extend_from_dictionary(dictionary, &codes);
                        expected.extend(codes.iter().map(|&code| all[usize::from(code)].clone()));
                    }
                }
                assert_eq!(
                    (strings.len(), strings.is_empty()),
                    (expected.len(), expected.is_empty())
                );
                assert_eq!(strings.iter().collect::<Vec<_>>(), expected);
                let own: Strings = expected.iter().map(Vec::as_slice).collect();
                for at in 0..strings.len() {
                    assert_eq!(strings.word(at), own.word(at));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "the dictionary has them")]
    fn a_dictionary_has_what_is_taken_of_it() {
        let dictionary = Arc::new(Strings::from_iter([&b"a"[..], b"b"]));
        Strings::new().extend_from_dictionary(&dictionary, &[1, 2]);
    }
}
