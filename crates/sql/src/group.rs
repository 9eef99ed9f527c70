//! Groups of rows that are equal in some columns.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use sapwood_schema::{Data, Strings, Vector};

/// Appends bytes that equal values share, and others do not: zeros are equal, and so are all NaN.
#[inline]
pub(crate) fn encode_value(vector: &Vector, row: usize, out: &mut Vec<u8>) {
    match &vector.data {
        Data::Bool(values) => out.push(values[row].into()),
        Data::Int(values) => out.extend_from_slice(&values[row].to_le_bytes()),
        Data::Big(values) => out.extend_from_slice(&values[row].to_le_bytes()),
        Data::Huge(values) => out.extend_from_slice(&values[row].to_le_bytes()),
        Data::Float(values) => {
            let value = values[row];
            let value = match value {
                0.0 => 0.0,
                value if value.is_nan() => f64::NAN,
                value => value,
            };
            out.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        Data::Bytes(values) => {
            let bytes = values.get(row);
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// The values of a row in some columns, packed into a few bytes that others do not share: for each column a byte that
/// says how many follow, one more than there are, or zero for null; then those. Numbers leave out high bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Packed {
    bits: u128,
    bytes: u32,
}

impl Packed {
    const BYTES: u32 = 16;
    /// Of bytes that are too many, from then on.
    const OVERFLOW: u32 = u32::MAX / 2;
    /// No first byte says that so many follow.
    const NONE: u128 = u128::MAX;

    #[inline(always)]
    fn push(&mut self, word: u128, len: usize) {
        self.append((word << 8) | (len as u128 + 1), len as u32 + 1);
    }

    #[inline(always)]
    fn append(&mut self, bits: u128, bytes: u32) {
        let all = self.bytes + bytes;
        if all <= 8 {
            // As below, with fewer instructions.
            self.bits |= u128::from((bits as u64) << (self.bytes * 8));
        } else if all <= Packed::BYTES {
            self.bits |= bits << (self.bytes * 8);
        } else {
            self.bytes = Packed::OVERFLOW;
            return;
        }
        self.bytes = all;
    }

    #[inline]
    fn push_int(&mut self, value: i64) {
        // Small ones have few bytes, below zero too.
        let value = value.rotate_left(1).cast_unsigned();
        let value = if value & 1 == 0 { value } else { value ^ (u64::MAX - 1) };
        self.push(value.into(), (64 - value.leading_zeros() as usize).div_ceil(8));
    }

    #[inline]
    fn push_bytes(&mut self, values: &Strings, row: usize) {
        match values.word(row) {
            Some((word, len)) => self.push(word, len),
            None => self.bytes = Packed::OVERFLOW,
        }
    }

    /// Appends the values of some rows, each to its own.
    fn push_column(all: &mut [Packed], vector: &Vector, rows: Range<usize>) {
        #[inline(always)]
        fn push_each(
            all: &mut [Packed],
            vector: &Vector,
            rows: Range<usize>,
            push: impl Fn(&mut Packed, usize),
        ) {
            for (packed, row) in all.iter_mut().zip(rows) {
                match vector.is_null(row) {
                    true => packed.append(0, 1),
                    false => push(packed, row),
                }
            }
        }
        match &vector.data {
            Data::Int(values) => {
                push_each(all, vector, rows, |packed, row| packed.push_int(values[row]));
            }
            Data::Bytes(values) => {
                push_each(all, vector, rows, |packed, row| packed.push_bytes(values, row));
            }
            Data::Bool(values) => {
                push_each(all, vector, rows, |packed, row| packed.push(values[row].into(), 1));
            }
            Data::Big(_) | Data::Huge(_) | Data::Float(_) => {
                all.iter_mut().for_each(|packed| packed.bytes = Packed::OVERFLOW);
            }
        }
    }

    /// The bits, if they have all.
    #[inline]
    fn bits(self) -> Option<u128> {
        (self.bytes <= Packed::BYTES).then_some(self.bits)
    }

    /// A place of so many (a power of two) for the bits.
    #[inline]
    fn place(bits: u128, places: usize) -> usize {
        let mixed = (bits as u64 ^ ((bits >> 64) as u64).rotate_left(31))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 40) as usize & (places - 1)
    }
}

/// Groups, numbered from 0 in the order in which they came.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Keys that can be packed.
    short: HashTable<(u128, u32)>,
    coded: CodedGroups,
    /// Some of them, each at its [place](Packed::place).
    near: Vec<(u128, u32)>,
    /// All other keys: numbers of groups, by the bytes of `keys`.
    long: HashTable<(u32, u32)>,
    keys: Strings,
    hasher: FixedState,
    /// The values of each group, column by column.
    columns: Vec<Vector>,
    count: u32,
    // Kept for its memory.
    key: Vec<u8>,
}

/// Keys that are found without a search.
const NEAR_KEYS: usize = 512;
/// Rows whose keys are packed before groups are looked up: so few that those stay in the first cache.
const ROWS_AT_ONCE: usize = 256;

impl Groups {
    /// None yet, by columns of these representations.
    pub(crate) fn new(columns: impl IntoIterator<Item = Data>) -> Groups {
        Groups {
            short: HashTable::new(),
            coded: CodedGroups::default(),
            near: Vec::new(),
            long: HashTable::new(),
            keys: Strings::new(),
            hasher: FixedState::default(),
            columns: columns.into_iter().map(Vector::new).collect(),
            count: 0,
            key: Vec::new(),
        }
    }

    /// The number of groups.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// The values of the groups.
    pub(crate) fn columns(&self) -> &[Vector] {
        &self.columns
    }

    pub(crate) fn into_columns(self) -> Vec<Vector> {
        self.columns
    }

    /// Bytes of memory that they take, about.
    pub(crate) fn memory(&self) -> usize {
        let columns: usize = self.columns.iter().map(Vector::memory).sum();
        (self.short.capacity() + self.near.len()) * 40
            + self.coded.groups.capacity() * 4
            + self.long.capacity() * 10
            + self.key.capacity()
            + self.keys.memory()
            + columns
    }

    /// The group of each of some rows, in their order. Groups that are not there are made.
    pub(crate) fn assign<V: AsColumn>(
        &mut self,
        columns: &[V],
        rows: Range<usize>,
        numbers: &mut Vec<u32>,
    ) {
        numbers.clear();
        if columns.is_empty() {
            self.count = 1;
            numbers.extend(rows.map(|_| 0));
            return;
        }
        if self.coded.begin(columns) {
            self.assign_coded(columns, rows, numbers);
            return;
        }
        self.near.resize(NEAR_KEYS, (Packed::NONE, 0));
        for begin in rows.clone().step_by(ROWS_AT_ONCE) {
            let rows = begin..rows.end.min(begin + ROWS_AT_ONCE);
            let mut packed = [Packed::default(); ROWS_AT_ONCE];
            for column in columns {
                Packed::push_column(&mut packed, column.as_column(), rows.clone());
            }
            let of_row = |(packed, row): (&Packed, usize)| {
                let Some(bits) = packed.bits() else { return self.find_or_make(columns, row) };
                let place = Packed::place(bits, NEAR_KEYS);
                if self.near[place].0 != bits {
                    self.near[place] = (bits, self.find_or_make_short(bits, columns, row));
                }
                self.near[place].1
            };
            numbers.extend(packed.iter().zip(rows).map(of_row));
        }
    }

    /// As [`assign`](Self::assign), where all columns have a dictionary: a combination of their codes is looked up once.
    fn assign_coded<V: AsColumn>(
        &mut self,
        columns: &[V],
        rows: Range<usize>,
        numbers: &mut Vec<u32>,
    ) {
        for column in columns {
            self.coded.append(column.as_column(), rows.clone(), numbers);
        }
        for (number, row) in numbers.iter_mut().zip(rows) {
            let place = *number as usize;
            if self.coded.groups[place] == CodedGroups::NONE {
                let mut packed = [Packed::default()];
                for column in columns {
                    Packed::push_column(&mut packed, column.as_column(), row..row + 1);
                }
                self.coded.groups[place] = match packed[0].bits() {
                    Some(bits) => self.find_or_make_short(bits, columns, row),
                    None => self.find_or_make(columns, row),
                };
            }
            *number = self.coded.groups[place];
        }
    }

    fn find_or_make_short<V: AsColumn>(&mut self, key: u128, columns: &[V], row: usize) -> u32 {
        let hash = |key: u128| self.hasher.hash_one(key);
        let entry =
            self.short.entry(hash(key), |(other, _)| *other == key, |(other, _)| hash(*other));
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => entry.get().1,
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let number = self.count;
                entry.insert((key, number));
                self.count += 1;
                for (own, column) in self.columns.iter_mut().zip(columns) {
                    own.push_from(column.as_column(), row);
                }
                number
            }
        }
    }

    fn find_or_make<V: AsColumn>(&mut self, columns: &[V], row: usize) -> u32 {
        self.key.clear();
        for column in columns {
            let column = column.as_column();
            match column.is_null(row) {
                true => self.key.push(0),
                false => {
                    self.key.push(1);
                    encode_value(column, row, &mut self.key);
                }
            }
        }
        let (keys, key) = (&self.keys, &self.key);
        let entry = self.long.entry(
            self.hasher.hash_one(&key[..]),
            |(place, _)| keys.get(*place as usize) == &key[..],
            |(place, _)| self.hasher.hash_one(keys.get(*place as usize)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => entry.get().1,
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let number = self.count;
                entry.insert((keys.len() as u32, number));
                self.count += 1;
                self.keys.push(&self.key);
                for (own, column) in self.columns.iter_mut().zip(columns) {
                    own.push_from(column.as_column(), row);
                }
                number
            }
        }
    }
}

/// Groups by the codes of all columns, of some dictionaries.
#[derive(Debug, Default)]
struct CodedGroups {
    dictionaries: Vec<Arc<Strings>>,
    /// By the codes of a row as one number, or none so far. A column that is null has the code behind the last one.
    groups: Vec<u32>,
}

impl CodedGroups {
    const NONE: u32 = u32::MAX;
    /// So many that they stay in the second cache.
    const COMBINATIONS_MAX: usize = 1 << 14;

    /// Whether rows of these columns can be appended: all have a dictionary, and these few combinations.
    fn begin<V: AsColumn>(&mut self, columns: &[V]) -> bool {
        let dictionaries = || columns.iter().map(|column| dictionary_of(column.as_column()));
        let are_same = dictionaries().zip(&self.dictionaries).all(|(column, own)| {
            column.is_some_and(|(dictionary, _)| Arc::ptr_eq(dictionary, own))
        });
        if are_same && self.dictionaries.len() == columns.len() {
            return true;
        }
        let combinations = dictionaries().try_fold(1_usize, |count, column| {
            let count = count * (column?.0.len() + 1);
            (count <= Self::COMBINATIONS_MAX).then_some(count)
        });
        let Some(combinations) = combinations else { return false };
        let dictionaries = dictionaries().flatten().map(|(dictionary, _)| Arc::clone(dictionary));
        self.dictionaries = dictionaries.collect();
        self.groups.clear();
        self.groups.resize(combinations, Self::NONE);
        true
    }

    /// Appends the codes of a column to those before, which none of the first has.
    fn append(&self, column: &Vector, rows: Range<usize>, numbers: &mut Vec<u32>) {
        let (dictionary, codes) = dictionary_of(column).expect("it has one");
        let codes = &codes[rows.clone()];
        let null = dictionary.len() as u32;
        if numbers.is_empty() {
            numbers.resize(rows.len(), 0);
        }
        match &column.nulls {
            None => {
                for (number, code) in numbers.iter_mut().zip(codes) {
                    *number = *number * (null + 1) + u32::from(*code);
                }
            }
            Some(nulls) => {
                for ((number, code), is_null) in numbers.iter_mut().zip(codes).zip(&nulls[rows]) {
                    let code = if *is_null { null } else { (*code).into() };
                    *number = *number * (null + 1) + code;
                }
            }
        }
    }
}

fn dictionary_of(column: &Vector) -> Option<(&Arc<Strings>, &[u8])> {
    match &column.data {
        Data::Bytes(strings) => strings.coded(),
        _ => None,
    }
}

/// What has the values of a column.
pub(crate) trait AsColumn {
    fn as_column(&self) -> &Vector;
}

impl AsColumn for Vector {
    fn as_column(&self) -> &Vector {
        self
    }
}

impl AsColumn for Cow<'_, Vector> {
    fn as_column(&self) -> &Vector {
        self
    }
}

/// Pairs of a group and a value, each once: what `count(distinct x)` counts.
#[derive(Debug, Default)]
pub(crate) struct DistinctValues {
    table: HashTable<u32>,
    /// Pairs that can be packed, some, each at its [place](Packed::place).
    near: Vec<u128>,
    seen: SeenCodes,
    keys: Strings,
    hasher: FixedState,
    key: Vec<u8>,
}

/// Pairs that are found without a search.
const NEAR_PAIRS: usize = 1 << 15;

impl DistinctValues {
    /// Whether the group has this value for the first time.
    #[inline]
    pub(crate) fn insert(&mut self, group: u32, vector: &Vector, row: usize) -> bool {
        if let Some((dictionary, codes)) = dictionary_of(vector) {
            return self.seen.note(group, dictionary, codes[row])
                && self.insert_long(group, vector, row);
        }
        let mut packed = Packed::default();
        packed.append(group.into(), 4);
        match &vector.data {
            Data::Int(values) => packed.push_int(values[row]),
            Data::Bytes(values) => packed.push_bytes(values, row),
            _ => packed.bytes = Packed::OVERFLOW,
        }
        let Some(bits) = packed.bits() else { return self.insert_long(group, vector, row) };
        if self.near.is_empty() {
            self.near.resize(NEAR_PAIRS, Packed::NONE);
        }
        let place = Packed::place(bits, NEAR_PAIRS);
        if self.near[place] == bits {
            return false;
        }
        self.near[place] = bits;
        self.insert_long(group, vector, row)
    }

    fn insert_long(&mut self, group: u32, vector: &Vector, row: usize) -> bool {
        self.key.clear();
        self.key.extend_from_slice(&group.to_le_bytes());
        encode_value(vector, row, &mut self.key);
        let (keys, key) = (&self.keys, &self.key);
        let entry = self.table.entry(
            self.hasher.hash_one(&key[..]),
            |place| keys.get(*place as usize) == &key[..],
            |place| self.hasher.hash_one(keys.get(*place as usize)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(_) => false,
            hashbrown::hash_table::Entry::Vacant(entry) => {
                entry.insert(keys.len() as u32);
                self.keys.push(&self.key);
                true
            }
        }
    }

    /// Bytes of memory that they take, about.
    pub(crate) fn memory(&self) -> usize {
        self.keys.memory()
            + self.table.capacity() * 5
            + self.near.len() * 16
            + self.seen.codes.capacity() * size_of::<Codes>()
    }
}

/// A bit for each code.
type Codes = [u64; Strings::DICTIONARY_MAX / 64];

/// Which strings of a dictionary each group has.
#[derive(Debug, Default)]
struct SeenCodes {
    dictionary: Option<Arc<Strings>>,
    codes: Vec<Codes>,
}

impl SeenCodes {
    /// Groups beyond that number are not noted.
    const GROUPS_MAX: usize = 1 << 14;

    /// Notes that a group has a string: false if that was noted before.
    #[inline]
    fn note(&mut self, group: u32, dictionary: &Arc<Strings>, code: u8) -> bool {
        if !self.dictionary.as_ref().is_some_and(|own| Arc::ptr_eq(own, dictionary)) {
            self.dictionary = Some(Arc::clone(dictionary));
            self.codes.clear();
        }
        let (group, word, bit) = (group as usize, usize::from(code / 64), 1 << (code % 64));
        if group >= self.codes.len() {
            if group >= Self::GROUPS_MAX {
                return true;
            }
            self.codes.resize(group + 1, Codes::default());
        }
        let codes = &mut self.codes[group][word];
        let is_new = *codes & bit == 0;
        *codes |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_schema::Value;

    fn vector(values: &[Option<&str>]) -> Vector {
        let mut vector = Vector::new(Data::Bytes(Strings::new()));
        values.iter().for_each(|value| vector.push_value(&Value::from(*value)));
        vector
    }

    #[test]
    fn rows_that_are_equal_share_a_group() {
        let long = "a text of more than fifteen bytes";
        let values =
            [Some("a"), None, Some(""), Some("a"), Some(long), None, Some(long), Some("\0")];
        let column = vector(&values);
        let mut groups = Groups::new([column.emptied().data]);
        let mut numbers = Vec::new();
        groups.assign(std::slice::from_ref(&column), 0..values.len(), &mut numbers);
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1, 3, 4]);
        assert_eq!((groups.len(), groups.columns()[0].len()), (5, 5));

        let other = vector(&values.map(|value| value.map(|_| "same")));
        let mut pairs = Groups::new([column.emptied().data, other.emptied().data]);
        pairs.assign(&[column, other], 0..values.len(), &mut numbers);
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1, 3, 4]);
    }

    /// Values of all widths, packed and not, on both sides of what fits, against a map.
    #[test]
    fn groups_of_many_columns_are_those_of_their_values() {
        let ints = [0, 1, -1, 127, 128, -128, -129, i64::MAX, i64::MIN, 1 << 40];
        let texts = ["", "a", "ab", "\0", "\0\0", "seven..", "fifteen bytes..", "sixteen bytes..."];
        let mut random = fastrand::Rng::with_seed(3);
        for columns in 1..=4 {
            let rows: Vec<Vec<Value<'_>>> = (0..3_000)
                .map(|_| {
                    let value = |column: usize| match (random.u8(..8), column % 2) {
                        (0, _) => Value::Null,
                        (_, 0) => Value::from(texts[random.usize(..texts.len())]),
                        (_, _) => Value::from(ints[random.usize(..ints.len())]),
                    };
                    (0..columns).map(value).collect()
                })
                .collect();
            let data = |column: usize| match column % 2 {
                0 => Data::Bytes(Strings::new()),
                _ => Data::Int(Vec::new()),
            };
            let mut vectors: Vec<Vector> = (0..columns).map(|at| Vector::new(data(at))).collect();
            for row in &rows {
                vectors.iter_mut().zip(row).for_each(|(vector, value)| vector.push_value(value));
            }
            let mut groups = Groups::new((0..columns).map(data));
            let mut numbers = Vec::new();
            groups.assign(&vectors, 0..rows.len(), &mut numbers);
            let mut expected = std::collections::HashMap::new();
            for (row, number) in rows.iter().zip(&numbers) {
                let next = expected.len() as u32;
                let own = *expected.entry(format!("{row:?}")).or_insert(next);
                assert_eq!(own, *number, "{row:?}");
            }
            assert_eq!(groups.len(), expected.len());
            assert!(groups.columns().iter().all(|column| column.len() == expected.len()));

            let (mut distinct, mut pairs) =
                (DistinctValues::default(), std::collections::HashSet::new());
            for (row, number) in numbers.iter().enumerate() {
                let vector = &vectors[0];
                if !vector.is_null(row) {
                    let is_new = pairs.insert((number % 7, format!("{:?}", rows[row][0])));
                    assert_eq!(distinct.insert(number % 7, vector, row), is_new);
                }
            }
        }
    }

    #[test]
    fn zeros_are_equal_and_nan_is_one_value() {
        let column = Vector::new(Data::Float(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]));
        let mut groups = Groups::new([column.emptied().data]);
        let mut numbers = Vec::new();
        groups.assign(&[column], 0..5, &mut numbers);
        assert_eq!(numbers, [0, 0, 1, 1, 2]);
    }
    /// Columns with dictionaries, of several batches and dictionaries, against the same columns without.
    #[test]
    fn groups_by_codes_are_those_of_the_texts() {
        let texts: Vec<String> = (0..256).map(|at| "x".repeat(at % 40) + &at.to_string()).collect();
        let dictionary =
            |some: Range<usize>| Arc::new(texts[some].iter().map(String::as_bytes).collect());
        let dictionaries: [Arc<Strings>; 4] =
            [dictionary(0..5), dictionary(3..9), dictionary(0..256), dictionary(0..1)];
        let mut random = fastrand::Rng::with_seed(6);
        for case in 0..60 {
            let columns = 1 + case % 3;
            let data = || vec![Data::Bytes(Strings::new()); columns];
            let (mut coded, mut plain) = (Groups::new(data()), Groups::new(data()));
            let (mut of_coded, mut of_plain) = (Vec::new(), Vec::new());
            let (mut distinct, mut expected) =
                (DistinctValues::default(), DistinctValues::default());
            for _ in 0..6 {
                let len = random.usize(1..300);
                let vectors: Vec<Vector> = (0..columns)
                    .map(|_| {
                        let dictionary = &dictionaries[random.usize(..4)];
                        let codes = (0..len).map(|_| random.usize(..dictionary.len()) as u8);
                        let codes: Vec<u8> = codes.collect();
                        let mut strings = Strings::new();
                        strings.extend_from_dictionary(dictionary, &codes);
                        let nulls =
                            random.bool().then(|| (0..len).map(|_| random.bool()).collect());
                        Vector { data: Data::Bytes(strings), nulls }
                    })
                    .collect();
                let without: Vec<Vector> = vectors
                    .iter()
                    .map(|vector| {
                        let Data::Bytes(strings) = &vector.data else { unreachable!("texts") };
                        let data = Data::Bytes(strings.iter().collect());
                        Vector { data, nulls: vector.nulls.clone() }
                    })
                    .collect();
                let begin = random.usize(..len);
                coded.assign(&vectors, begin..len, &mut of_coded);
                plain.assign(&without, begin..len, &mut of_plain);
                assert_eq!(of_coded, of_plain);
                for (row, group) in (begin..len).zip(&of_coded) {
                    if !vectors[0].is_null(row) {
                        // Groups of several texts.
                        let group = group % 3;
                        let is_new = distinct.insert(group, &vectors[0], row);
                        assert_eq!(is_new, expected.insert(group, &without[0], row));
                    }
                }
            }
            assert_eq!(coded.len(), plain.len());
            let kind = sapwood_schema::Type::Text;
            for (own, other) in coded.columns().iter().zip(plain.columns()) {
                let values = |vector: &Vector| -> Vec<String> {
                    (0..vector.len()).map(|at| format!("{:?}", vector.cell(at, &kind))).collect()
                };
                assert_eq!(values(own), values(other));
            }
        }
    }
}
