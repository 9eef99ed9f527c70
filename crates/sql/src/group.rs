//! Groups of rows that are equal in some columns.

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::vector::{Data, Strings, Vector};

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

/// Groups, numbered from 0 in the order in which they came.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Keys of one column whose bytes are few.
    short: HashTable<(u128, u32)>,
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

impl Groups {
    /// None yet, by columns of these representations.
    pub(crate) fn new(columns: impl IntoIterator<Item = Data>) -> Groups {
        Groups {
            short: HashTable::new(),
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
        self.short.capacity() * 40
            + self.long.capacity() * 10
            + self.key.capacity()
            + self.keys.memory()
            + columns
    }

    /// The group of each of some rows, in their order. Groups that are not there are made.
    pub(crate) fn assign<V: AsColumn>(
        &mut self,
        columns: &[V],
        rows: impl Iterator<Item = usize>,
        numbers: &mut Vec<u32>,
    ) {
        numbers.clear();
        if columns.is_empty() {
            self.count = 1;
            numbers.extend(rows.map(|_| 0));
            return;
        }
        if let [column] = columns {
            let column = column.as_column();
            match &column.data {
                Data::Int(values) => {
                    for row in rows {
                        let key = u128::from(values[row] as u64) | 1 << 64;
                        let key = if column.is_null(row) { 0 } else { key };
                        numbers.push(self.short(key, column, row));
                    }
                    return;
                }
                Data::Bytes(values) => {
                    let mut before = (u128::MAX, 0);
                    for row in rows {
                        let number = match (column.is_null(row), short_key(values.get(row))) {
                            (true, _) => self.short(0, column, row),
                            (false, Some(key)) if key == before.0 => before.1,
                            (false, Some(key)) => {
                                before = (key, self.short(key, column, row));
                                before.1
                            }
                            (false, None) => self.find_or_make(columns, row),
                        };
                        numbers.push(number);
                    }
                    return;
                }
                _ => {}
            }
        }
        for row in rows {
            numbers.push(self.find_or_make(columns, row));
        }
    }

    #[inline]
    fn short(&mut self, key: u128, column: &Vector, row: usize) -> u32 {
        let hash = |key: u128| self.hasher.hash_one(key);
        let entry =
            self.short.entry(hash(key), |(other, _)| *other == key, |(other, _)| hash(*other));
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => entry.get().1,
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let number = self.count;
                entry.insert((key, number));
                self.count += 1;
                self.columns[0].push_from(column, row);
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

/// Up to 15 bytes, with their number: never zero.
#[inline]
fn short_key(bytes: &[u8]) -> Option<u128> {
    if bytes.len() > 15 {
        return None;
    }
    let mut key = [0; 16];
    key[..bytes.len()].copy_from_slice(bytes);
    key[15] = bytes.len() as u8 + 1;
    Some(u128::from_le_bytes(key))
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
    keys: Strings,
    hasher: FixedState,
    key: Vec<u8>,
}

impl DistinctValues {
    /// Whether the group has this value for the first time.
    pub(crate) fn insert(&mut self, group: u32, vector: &Vector, row: usize) -> bool {
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
        self.keys.memory() + self.table.capacity() * 5
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
        let mut groups = Groups::new([column.data_like()]);
        let mut numbers = Vec::new();
        groups.assign(std::slice::from_ref(&column), 0..values.len(), &mut numbers);
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1, 3, 4]);
        assert_eq!((groups.len(), groups.columns()[0].len()), (5, 5));

        let other = vector(&values.map(|value| value.map(|_| "same")));
        let mut pairs = Groups::new([column.data_like(), other.data_like()]);
        pairs.assign(&[column, other], (0..values.len()).rev(), &mut numbers);
        assert_eq!(numbers, [0, 1, 2, 1, 3, 4, 2, 3]);
    }

    #[test]
    fn zeros_are_equal_and_nan_is_one_value() {
        let column = Vector::new(Data::Float(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]));
        let mut groups = Groups::new([column.data_like()]);
        let mut numbers = Vec::new();
        groups.assign(&[column], 0..5, &mut numbers);
        assert_eq!(numbers, [0, 0, 1, 1, 2]);
    }
}
