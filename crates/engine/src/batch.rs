//! Batches of columns: many entries, handed over at once.
//!
//! Engines keep entries of fixed width at a constant distance from each other, or copy them so. A
//! [`ColumnBatch`] is a view of such a run: where keys and values lie, and which entries count.
//! Figures of whole-number fields are then computed a column at a time, at the speed of memory.
//!
//! I-INSIDE: all items of a batch lie in the bytes of its columns.

use crate::RecordAddress;

/// A column: items of one width at a constant distance, in bytes that lie elsewhere.
///
/// ```text
///  bytes ─► ┌─ offset ─┬ width ┬──────────┬ width ┬─────
///           │          │ item 0│          │ item 1│ ...
///           └──────────┴───────┴──────────┴───────┴─────
///                      └──── stride ──────┘
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// From the first item on.
    bytes: &'a [u8],
    stride: usize,
    width: usize,
}

impl Column<'static> {
    /// Items without bytes, as many as are wanted: keys that are not needed.
    pub const NOTHING: Column<'static> = Column { bytes: &[], stride: 1, width: 0 };
}

impl<'a> Column<'a> {
    /// Items of `width` bytes, the first at `offset`, each `stride` bytes behind the one before.
    ///
    /// # Errors
    /// [`InvalidBatch::Column`] if items overlap, or the offset lies behind the bytes.
    pub fn new(
        bytes: &'a [u8],
        offset: usize,
        stride: usize,
        width: usize,
    ) -> Result<Column<'a>, InvalidBatch> {
        match bytes.get(offset..) {
            Some(bytes) if stride >= width.max(1) => Ok(Column { bytes, stride, width }),
            _ => Err(InvalidBatch::Column { width, offset, stride, len: bytes.len() }),
        }
    }

    /// A column of words that lie one after the other.
    #[inline]
    pub fn of_words(words: &'a [[u8; 8]]) -> Column<'a> {
        Column { bytes: words.as_flattened(), stride: 8, width: 8 }
    }

    /// How many items lie whole in the bytes.
    fn count_max(&self) -> usize {
        match self.bytes.len().checked_sub(self.width) {
            _ if self.width == 0 => usize::MAX,
            None => 0,
            Some(behind_the_first) => behind_the_first / self.stride + 1,
        }
    }

    /// An item. I-INSIDE: the length of a batch is at most `count_max`.
    ///
    /// # Panics
    /// If it does not lie in the bytes.
    #[inline]
    pub fn item(&self, at: usize) -> &'a [u8] {
        let begin = if self.width == 0 { 0 } else { at * self.stride };
        &self.bytes[begin..begin + self.width]
    }

    /// The bytes from the first item on.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The items, where they are words that lie one after the other.
    #[inline]
    pub fn words(&self) -> Option<&'a [[u8; 8]]> {
        let is_of_words = self.stride == 8 && self.width == 8;
        is_of_words.then_some(self.bytes.as_chunks().0)
    }

    /// Bytes from one item to the next.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes of an item.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The bytes from `offset` within an item on.
    ///
    /// # Panics
    /// If that is not in the bytes.
    #[inline]
    pub fn bytes_from(&self, at: usize, offset: usize) -> &'a [u8] {
        &self.bytes[at * self.stride + offset..]
    }
}

/// Which entries of a batch count.
#[derive(Debug, Clone, Copy)]
pub enum Validity<'a> {
    /// All.
    All,
    /// Those whose bit is set: entry `i` has bit `i % 64` of word `i / 64`.
    Bits(&'a [u64]),
    /// Those of which a word of 8 bytes, least significant first, agrees with `equals` in the bits
    /// of `mask`.
    Word {
        /// The words, 8 bytes wide.
        words: Column<'a>,
        /// Which bits matter.
        mask: u64,
        /// What these bits must be.
        equals: u64,
    },
}

/// The addresses of a batch's entries.
#[derive(Debug, Clone, Copy)]
pub enum Addresses<'a> {
    /// Entries are found again by their keys.
    None,
    /// One for each entry of the batch, valid or not.
    Each(&'a [RecordAddress]),
    /// Entry `i` lies at the word `first + i * step`, wrapping.
    Stepped {
        /// The address of the batch's first entry.
        first: RecordAddress,
        /// How much more each word is.
        step: u64,
    },
}

impl Addresses<'_> {
    /// The address of an entry.
    ///
    /// # Panics
    /// If there are addresses, but none of that entry.
    #[inline]
    pub fn get(&self, at: usize) -> Option<RecordAddress> {
        match self {
            Addresses::None => None,
            Addresses::Each(addresses) => Some(addresses[at]),
            Addresses::Stepped { first, step } => {
                let ahead = (at as u64).wrapping_mul(*step);
                Some(RecordAddress::from_word(first.word().wrapping_add(ahead)))
            }
        }
    }
}

/// The reason why columns are no batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// The items of a column do not lie in its bytes.
    #[error(
        "items of {width} bytes at {offset}, {stride} bytes apart, do not lie in {len} bytes; give \
         all bytes, and a distance of at least the width"
    )]
    Column {
        /// Bytes of an item.
        width: usize,
        /// Where the first one was said to lie.
        offset: usize,
        /// Bytes from one to the next.
        stride: usize,
        /// How many bytes there are.
        len: usize,
    },
    /// A column is shorter than the batch, or a word of its validity is not of 8 bytes.
    #[error(
        "the batch says {len} entries, and its columns have {known}; give columns of one length, \
         and words of 8 bytes"
    )]
    Len {
        /// The length given.
        len: usize,
        /// The length of the shortest column.
        known: usize,
    },
}

/// Entries by columns: keys, values, addresses, and which of them count.
///
/// A view of columns that lie elsewhere, in a page of a log or in a
/// [`ColumnBuffer`](crate::ColumnBuffer): kernels read them there. Columns have one length, as those
/// of an Arrow record batch; what is masked out is not moved.
///
/// ```
/// use sapwood_engine::{Column, ColumnBatch, Validity};
///
/// // Records of a word that says whether they are valid, a key and a value, 8 bytes each.
/// let records = [[1_u64, 7, 40], [0, 7, 9], [1, 8, 2]];
/// let bytes: Vec<u8> = records.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
/// let column = |offset| Column::new(&bytes, offset, 24, 8);
/// let validity = Validity::Word { words: column(0)?, mask: 1, equals: 1 };
/// let batch = ColumnBatch::new(records.len(), column(8)?, column(16)?, validity)?;
///
/// let values = (0..batch.len()).filter_map(|at| batch.entry(at)).map(|(_key, value)| value[0]);
/// assert_eq!(values.collect::<Vec<_>>(), [40, 2]);
/// # Ok::<(), sapwood_engine::InvalidBatch>(())
/// ```
///
/// # Consistency
/// The bytes do not change while a batch is there.
#[derive(Debug, Clone, Copy)]
pub struct ColumnBatch<'a> {
    len: usize,
    keys: Column<'a>,
    values: Column<'a>,
    addresses: Addresses<'a>,
    validity: Validity<'a>,
}

impl<'a> ColumnBatch<'a> {
    /// `len` entries, without addresses.
    ///
    /// # Errors
    /// [`InvalidBatch::Len`] if keys, values, words or bits are fewer, or words are not of 8 bytes.
    pub fn new(
        len: usize,
        keys: Column<'a>,
        values: Column<'a>,
        validity: Validity<'a>,
    ) -> Result<ColumnBatch<'a>, InvalidBatch> {
        let (known, width) = match validity {
            Validity::All => (len, 8),
            Validity::Bits(bits) => (bits.len().saturating_mul(64), 8),
            Validity::Word { words, .. } => (words.count_max(), words.width),
        };
        let known = known.min(keys.count_max()).min(values.count_max());
        // INVARIANT: I-INSIDE.
        if len > known || width != 8 {
            return Err(InvalidBatch::Len { len, known });
        }
        Ok(ColumnBatch { len, keys, values, addresses: Addresses::None, validity })
    }

    /// The same entries with their addresses.
    ///
    /// # Errors
    /// [`InvalidBatch::Len`] if addresses are fewer than entries.
    pub fn with_addresses(self, addresses: Addresses<'a>) -> Result<ColumnBatch<'a>, InvalidBatch> {
        match addresses {
            Addresses::Each(each) if each.len() < self.len => {
                Err(InvalidBatch::Len { len: self.len, known: each.len() })
            }
            _ => Ok(ColumnBatch { addresses, ..self }),
        }
    }

    /// How many entries, valid or not.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry, valid or not.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which entries count.
    #[inline]
    pub fn validity(&self) -> Validity<'a> {
        self.validity
    }

    /// The keys; [`Column::NOTHING`] if they were not asked for.
    #[inline]
    pub fn keys(&self) -> Column<'a> {
        self.keys
    }

    /// The values.
    #[inline]
    pub fn values(&self) -> Column<'a> {
        self.values
    }

    /// The addresses, if they were asked for.
    #[inline]
    pub fn addresses(&self) -> Addresses<'a> {
        self.addresses
    }

    /// Key and value of an entry, if it counts.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn entry(&self, at: usize) -> Option<(&'a [u8], &'a [u8])> {
        let is_valid = match self.validity {
            Validity::All => true,
            Validity::Bits(bits) => bits[at / 64] >> (at % 64) & 1 == 1,
            Validity::Word { words, mask, equals } => {
                let word = words.item(at).try_into().expect("checked by ColumnBatch::new");
                u64::from_le_bytes(word) & mask == equals
            }
        };
        is_valid.then(|| (self.keys.item(at), self.values.item(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_lie_in_their_bytes() {
        let bytes = [7_u8; 40];
        let strided = |offset, stride, width| Column::new(&bytes, offset, stride, width);
        // The last item may end where the bytes do.
        let keys = strided(0, 16, 8).expect("inside");
        assert_eq!(keys.count_max(), 3);
        assert!(ColumnBatch::new(3, keys, keys, Validity::All).is_ok());
        assert!(ColumnBatch::new(4, keys, keys, Validity::All).is_err());
        let no_keys = strided(40, 1, 0).expect("inside");
        let batch = ColumnBatch::new(3, no_keys, keys, Validity::All).expect("inside");
        assert_eq!(batch.entry(2), Some((&[][..], &bytes[32..])));
        assert_eq!(strided(33, 8, 8).expect("inside").count_max(), 0);

        for (offset, stride, width) in [(41, 8, 8), (0, 7, 8), (0, 0, 0)] {
            assert!(strided(offset, stride, width).is_err(), "{offset} {stride} {width}");
        }
        let narrow =
            Validity::Word { words: strided(0, 8, 4).expect("inside"), mask: 0, equals: 0 };
        assert!(ColumnBatch::new(1, keys, keys, narrow).is_err());
        assert!(ColumnBatch::new(1, keys, keys, Validity::Bits(&[])).is_err());
        let short =
            Validity::Word { words: strided(24, 8, 8).expect("inside"), mask: 0, equals: 0 };
        assert!(ColumnBatch::new(3, keys, keys, short).is_err());
    }

    #[test]
    fn entries_that_are_not_valid_are_not_shown() {
        let bytes: Vec<u8> = (0..64).collect();
        let words = Column::new(&bytes, 0, 16, 8).expect("inside");
        let shown = |validity| {
            let batch = ColumnBatch::new(4, words, words, validity).expect("inside");
            (0..4).filter(|&at| batch.entry(at).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(shown(Validity::All), [0, 1, 2, 3]);
        assert_eq!(shown(Validity::Bits(&[0b1010])), [1, 3]);
        assert_eq!(shown(Validity::Word { words, mask: 0x30, equals: 0x20 }), [2]);
    }

    #[test]
    fn words_are_given_where_they_are_contiguous() {
        let words = [[1; 8], [2; 8]];
        let column = Column::of_words(&words);
        assert_eq!((column.words(), column.bytes()), (Some(&words[..]), words.as_flattened()));
        let apart = Column::new(words.as_flattened(), 0, 16, 8).expect("inside");
        assert_eq!((apart.words(), Column::NOTHING.words()), (None, None));
        assert_eq!(apart.item(0), &[1; 8]);
    }

    #[test]
    fn addresses_are_one_for_each_entry() {
        let words = [[7; 8]; 3];
        let column = Column::of_words(&words);
        let batch = ColumnBatch::new(3, column, column, Validity::All).expect("inside");
        let each: Vec<_> = (0..3).map(|at| RecordAddress::from_word(10 + 5 * at)).collect();
        let refused = batch.with_addresses(Addresses::Each(&each[..2])).map(drop);
        assert_eq!(refused, Err(InvalidBatch::Len { len: 3, known: 2 }));
        let stepped = Addresses::Stepped { first: each[0], step: 5 };
        for addresses in [Addresses::Each(&each), stepped] {
            let batch = batch.with_addresses(addresses).expect("enough");
            let read: Vec<_> = (0..3).filter_map(|at| batch.addresses().get(at)).collect();
            assert_eq!(read, each);
        }
        assert_eq!(batch.addresses().get(0), None);
    }
}
