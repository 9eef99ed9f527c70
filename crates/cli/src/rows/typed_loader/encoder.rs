//! Rows of a file as keys and values, written by the threads that read them.

use std::sync::Arc;

use sapwood::files::FileSource;
use sapwood::schema::{Batch, Cell, RowFormat, Type};

use super::runs::Prefix;
use crate::rows::rows_table;

/// In which order rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    OfFile,
    /// Those of each batch in the order of their keys, and those of a key as the file has them. Rows that are too long
    /// for an ordered table are refused.
    OfKeys,
}

/// Writes rows of a file as keys and values.
pub(super) struct Encoder {
    format: Arc<RowFormat>,
    order: Order,
    /// The columns of the file that the table has.
    pub(super) wanted: Vec<usize>,
    /// Their types.
    kinds: Vec<Type>,
    /// For each column of the table its place among those; none has no value for it.
    slots: Vec<Option<usize>>,
}

/// Rows as bytes.
#[derive(Default)]
pub(super) struct Encoded {
    /// How many were read.
    pub(super) count: u64,
    /// How many of them take a number: those that can be written.
    pub(super) numbers: u64,
    /// Whether they are told by their lines in the file; else by their numbers in the batch.
    pub(super) has_lines: bool,
    /// Key and value of each, one behind the other.
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<EncodedRow>,
    /// The rows that cannot be written so, in the order of the file, and why.
    pub(super) refused: Vec<(Place, String)>,
}

/// Where a row stands: its line, and how many rows come before it, which tells those of a line apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) row: u64,
}

pub(super) struct EncodedRow {
    /// In the batch.
    pub(super) place: Place,
    /// Where the key ends, and where the value does.
    pub(super) key_end: usize,
    pub(super) end: usize,
}

impl Encoder {
    pub(super) fn new(format: Arc<RowFormat>, file: &FileSource, order: Order) -> Encoder {
        let columns = format.schema().columns().iter();
        let places =
            columns.map(|column| file.columns().iter().position(|it| it.name == column.name));
        let (mut wanted, mut slots) = (Vec::new(), Vec::new());
        for place in places {
            slots.push(place.map(|_| wanted.len()));
            wanted.extend(place);
        }
        let kinds = wanted.iter().map(|place| file.columns()[*place].kind.clone()).collect();
        Encoder { format, order, wanted, kinds, slots }
    }

    /// Writes the rows of a batch. Keys of numbered rows end in their number among those of the batch, from zero.
    pub(super) fn encode(&self, batch: &Batch) -> Encoded {
        let has_lines = batch.ids.is_some();
        let mut encoded = Encoded { count: batch.len as u64, has_lines, ..Encoded::default() };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in 0..batch.len {
            let line = match &batch.ids {
                Some(ids) => u64::from_le_bytes(ids.get(row).try_into().expect("a line")),
                None => row as u64 + 1,
            };
            let place = Place { line, row: row as u64 };
            let cell = |column: usize| match self.slots[column] {
                Some(slot) => batch.columns[slot].cell(row, &self.kinds[slot]),
                None => Cell::Null,
            };
            let number = Some(encoded.numbers);
            if let Err(error) = self.format.encode_cells(&cell, number, &mut key, &mut value) {
                encoded.refused.push((place, error.to_string()));
                continue;
            }
            encoded.numbers += 1;
            let what = match self.order {
                Order::OfFile => None,
                Order::OfKeys => rows_table::too_long_to_order(&key, &value),
            };
            match what {
                Some(what) => encoded.refused.push((place, what)),
                None => encoded.push(place, &key, &value),
            }
        }
        match self.order {
            Order::OfFile => encoded,
            Order::OfKeys => encoded.sorted(number_bytes(&self.format)),
        }
    }
}

/// Bytes at the end of each key that are a number.
pub(super) fn number_bytes(format: &RowFormat) -> usize {
    if format.schema().is_numbered() { size_of::<u64>() } else { 0 }
}

impl Encoded {
    pub(super) fn push(&mut self, place: Place, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.rows.push(EncodedRow { place, key_end, end: self.bytes.len() });
    }

    /// Where the bytes of a row begin.
    pub(super) fn begin(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.rows[before].end)
    }

    /// The place in the file of a row, behind so many rows of other batches.
    pub(super) fn place(&self, place: Place, rows_before: u64) -> Place {
        let lines_before = if self.has_lines { 0 } else { rows_before };
        Place { line: place.line + lines_before, row: place.row + rows_before }
    }

    /// The same in the order of keys, whose last bytes are numbers that do not count: so many.
    pub(super) fn sorted(self, number_bytes: usize) -> Encoded {
        let key = |row: usize| &self.bytes[self.begin(row)..self.rows[row].key_end - number_bytes];
        let mut order: Vec<(Prefix, usize)> =
            (0..self.rows.len()).map(|row| (Prefix::of(key(row)), row)).collect();
        let by_key = |one: &(Prefix, usize), other: &(Prefix, usize)| {
            one.0.cmp(&other.0).then_with(|| key(one.1).cmp(key(other.1)))
        };
        if order.is_sorted_by(|one, other| by_key(one, other).is_le()) {
            return self;
        }
        order.sort_by(by_key);
        let mut sorted = Encoded {
            bytes: Vec::with_capacity(self.bytes.len()),
            rows: Vec::with_capacity(self.rows.len()),
            ..Encoded::default()
        };
        for (_, row) in order {
            let EncodedRow { place, key_end, end } = self.rows[row];
            sorted.push(place, &self.bytes[self.begin(row)..key_end], &self.bytes[key_end..end]);
        }
        let Encoded { count, numbers, has_lines, refused, .. } = self;
        Encoded { count, numbers, has_lines, refused, ..sorted }
    }
}
