//! Buffers of columns, which walks fill.

use crate::{Addresses, Column, ColumnBatch, RecordAddress, Validity};

/// The columns that are read of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// The value alone.
    Values,
    /// Key and value.
    Entries,
    /// Key, value and [`RecordAddress`].
    Addresses,
}

/// Room for a batch of entries of 8-byte keys and values, filled again and again.
///
/// The first `len` of each column count; a walk may write beyond them.
///
/// ```
/// use sapwood_engine::{ColumnBuffer, Columns, RecordAddress};
///
/// let mut buffer = ColumnBuffer::boxed();
/// buffer.push(*b"acorn   ", *b"quercus ", RecordAddress::from_word(3));
/// let batch = buffer.batch(Columns::Entries);
/// assert_eq!(batch.entry(0), Some((&b"acorn   "[..], &b"quercus "[..])));
/// assert_eq!(buffer.batch(Columns::Addresses).addresses().get(0).map(RecordAddress::word), Some(3));
/// ```
///
/// # Consistency
/// It belongs to one thread; a batch borrows it.
pub struct ColumnBuffer {
    /// How many entries there are, at most [`ColumnBuffer::LEN_MAX`].
    pub len: usize,
    /// Their keys.
    pub keys: [[u8; 8]; ColumnBuffer::LEN_MAX],
    /// Their values.
    pub values: [[u8; 8]; ColumnBuffer::LEN_MAX],
    /// Where they lie.
    pub addresses: [RecordAddress; ColumnBuffer::LEN_MAX],
}

impl ColumnBuffer {
    /// Most entries of a batch: its columns stay in the first cache.
    pub const LEN_MAX: usize = 1024;

    /// A buffer without entries.
    pub fn boxed() -> Box<ColumnBuffer> {
        let words = [[0; 8]; ColumnBuffer::LEN_MAX];
        let addresses = [RecordAddress::default(); ColumnBuffer::LEN_MAX];
        Box::new(ColumnBuffer { len: 0, keys: words, values: words, addresses })
    }

    /// Whether no further entry has room.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len >= ColumnBuffer::LEN_MAX
    }

    /// Appends an entry.
    ///
    /// # Panics
    /// If the buffer is full.
    #[inline]
    pub fn push(&mut self, key: [u8; 8], value: [u8; 8], address: RecordAddress) {
        (self.keys[self.len], self.values[self.len]) = (key, value);
        self.addresses[self.len] = address;
        self.len += 1;
    }

    /// These columns of the entries.
    #[inline]
    pub fn batch(&self, columns: Columns) -> ColumnBatch<'_> {
        let len = self.len;
        let keys = match columns {
            Columns::Values => Column::NOTHING,
            Columns::Entries | Columns::Addresses => Column::of_words(&self.keys[..len]),
        };
        let addresses = match columns {
            Columns::Addresses => Addresses::Each(&self.addresses[..len]),
            Columns::Values | Columns::Entries => Addresses::None,
        };
        let values = Column::of_words(&self.values[..len]);
        ColumnBatch::new(len, keys, values, Validity::All)
            .and_then(|batch| batch.with_addresses(addresses))
            .expect("all columns have its length")
    }
}

impl std::fmt::Debug for ColumnBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ColumnBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_the_columns_that_are_asked_for() {
        let mut buffer = ColumnBuffer::boxed();
        for number in 0..ColumnBuffer::LEN_MAX as u64 {
            assert!(!buffer.is_full());
            buffer.push(
                number.to_le_bytes(),
                (number + 1).to_le_bytes(),
                RecordAddress::from_word(number + 2),
            );
        }
        assert!(buffer.is_full());
        let last = ColumnBuffer::LEN_MAX - 1;
        for (columns, key_width, address) in [
            (Columns::Values, 0, None),
            (Columns::Entries, 8, None),
            (Columns::Addresses, 8, Some(1025)),
        ] {
            let batch = buffer.batch(columns);
            let (key, value) = batch.entry(last).expect("all are valid");
            assert_eq!(
                (batch.len(), key.len(), value),
                (1024, key_width, &1024_u64.to_le_bytes()[..])
            );
            assert_eq!(batch.addresses().get(last).map(RecordAddress::word), address);
        }
    }
}
