//! Blocks: many objects of fixed width, handed over at once.
//!
//! Engines keep objects of fixed width at a constant distance from each other. A [`Block`] is a view
//! of such a run: where keys and values lie, and which of the objects count. Figures of whole-number
//! fields are then computed a column at a time, at the speed of memory.

use crate::error::{QueryError, Result};

/// Items of one width at a constant distance.
///
/// ```text
///  bytes ─► ┌─ offset ─┬ width ┬──────────┬ width ┬─────
///           │          │ item 0│          │ item 1│ ...
///           └──────────┴───────┴──────────┴───────┴─────
///                      └──── stride ──────┘
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Strided<'a> {
    /// From the first item on.
    bytes: &'a [u8],
    stride: usize,
    width: usize,
}

impl Strided<'static> {
    /// Items without bytes, as many as are wanted: keys that are not needed.
    pub const NOTHING: Strided<'static> = Strided { bytes: &[], stride: 1, width: 0 };
}

impl<'a> Strided<'a> {
    /// Items of `width` bytes, the first at `offset`, each `stride` bytes behind the one before.
    ///
    /// # Errors
    /// [`QueryError::Query`] if items overlap, or the offset lies behind the bytes.
    pub fn new(bytes: &'a [u8], offset: usize, stride: usize, width: usize) -> Result<Strided<'a>> {
        match bytes.get(offset..) {
            Some(bytes) if stride >= width.max(1) => Ok(Strided { bytes, stride, width }),
            _ => {
                let len = bytes.len();
                let why = format!(
                    "items of {width} bytes at {offset}, {stride} bytes apart, do not lie in {len} bytes"
                );
                Err(QueryError::Query(why))
            }
        }
    }

    /// How many items lie whole in the bytes.
    fn count_max(&self) -> usize {
        match self.bytes.len().checked_sub(self.width) {
            _ if self.width == 0 => usize::MAX,
            None => 0,
            Some(behind_the_first) => behind_the_first / self.stride + 1,
        }
    }

    /// I-INSIDE: the block's count is at most `count_max`.
    pub(crate) fn item(&self, at: usize) -> &'a [u8] {
        let begin = if self.width == 0 { 0 } else { at * self.stride };
        &self.bytes[begin..begin + self.width]
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// From `offset` within an item on.
    pub(crate) fn from(&self, at: usize, offset: usize) -> &'a [u8] {
        &self.bytes[at * self.stride + offset..]
    }
}

/// Which objects of a block count.
#[derive(Debug, Clone, Copy)]
pub enum Live<'a> {
    /// All.
    All,
    /// Those whose bit is set: object `i` has bit `i % 64` of word `i / 64`.
    Bits(&'a [u64]),
    /// Those of which a word of 8 bytes, least significant first, agrees with `equals` in the bits
    /// of `mask`.
    Word {
        /// The words, 8 bytes wide.
        words: Strided<'a>,
        /// Which bits matter.
        mask: u64,
        /// What these bits must be.
        equals: u64,
    },
}

/// A run of objects of fixed width.
///
/// ```
/// use sapwood_aggregate::{Aggregate, Block, Live, Query, Strided};
///
/// let query = Query::new("n:i64le".parse()?)
///     .aggregates(Aggregate::list("count, sum(n)")?)
///     .compile()?;
/// // Records of a word that says whether they live, a key and a value, 8 bytes each.
/// let records = [[1_u64, 7, 40], [0, 7, 9], [1, 8, 2]];
/// let bytes: Vec<u8> = records.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
/// let column = |offset| Strided::new(&bytes, offset, 24, 8);
/// let live = Live::Word { words: column(0)?, mask: 1, equals: 1 };
/// let block = Block::new(records.len(), column(8)?, column(16)?, live)?;
///
/// let mut fold = query.fold();
/// fold.push_block(&block)?;
/// let answer = query.finish(fold.into_partial())?;
/// assert_eq!(answer.value(0, "sum(n)")?, &42.into());
/// # Ok::<(), sapwood_aggregate::QueryError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    count: usize,
    keys: Strided<'a>,
    values: Strided<'a>,
    live: Live<'a>,
}

impl<'a> Block<'a> {
    /// `count` objects.
    ///
    /// # Errors
    /// [`QueryError::Query`] if keys, values, words or bits are fewer, or words are not of 8 bytes.
    pub fn new(
        count: usize,
        keys: Strided<'a>,
        values: Strided<'a>,
        live: Live<'a>,
    ) -> Result<Block<'a>> {
        let (known, width) = match live {
            Live::All => (count, 8),
            Live::Bits(bits) => (bits.len().saturating_mul(64), 8),
            Live::Word { words, .. } => (words.count_max(), words.width),
        };
        let there = known.min(keys.count_max()).min(values.count_max());
        // INVARIANT: I-INSIDE.
        if count > there || width != 8 {
            let why = format!(
                "the block says {count} objects, and its bytes have {there}; words are 8 bytes wide"
            );
            return Err(QueryError::Query(why));
        }
        Ok(Block { count, keys, values, live })
    }

    /// How many objects, live or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Which objects count.
    pub(crate) fn live(&self) -> Live<'a> {
        self.live
    }

    pub(crate) fn keys(&self) -> Strided<'a> {
        self.keys
    }

    pub(crate) fn values(&self) -> Strided<'a> {
        self.values
    }

    /// Key and value of an object, if it counts.
    pub(crate) fn object(&self, at: usize) -> Option<(&'a [u8], &'a [u8])> {
        let is_live = match self.live {
            Live::All => true,
            Live::Bits(bits) => bits[at / 64] >> (at % 64) & 1 == 1,
            Live::Word { words, mask, equals } => {
                let word = words.item(at).try_into().expect("checked by Block::new");
                u64::from_le_bytes(word) & mask == equals
            }
        };
        is_live.then(|| (self.keys.item(at), self.values.item(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_in_their_bytes() {
        let bytes = [7_u8; 40];
        let strided = |offset, stride, width| Strided::new(&bytes, offset, stride, width);
        // The last item may end where the bytes do.
        let keys = strided(0, 16, 8).expect("inside");
        assert_eq!(keys.count_max(), 3);
        assert!(Block::new(3, keys, keys, Live::All).is_ok());
        assert!(Block::new(4, keys, keys, Live::All).is_err());
        let no_keys = strided(40, 1, 0).expect("inside");
        let block = Block::new(3, no_keys, keys, Live::All).expect("inside");
        assert_eq!(block.object(2), Some((&[][..], &bytes[32..])));
        assert_eq!(strided(33, 8, 8).expect("inside").count_max(), 0);

        for (offset, stride, width) in [(41, 8, 8), (0, 7, 8), (0, 0, 0)] {
            assert!(strided(offset, stride, width).is_err(), "{offset} {stride} {width}");
        }
        let narrow = Live::Word { words: strided(0, 8, 4).expect("inside"), mask: 0, equals: 0 };
        assert!(Block::new(1, keys, keys, narrow).is_err());
        assert!(Block::new(1, keys, keys, Live::Bits(&[])).is_err());
        let short = Live::Word { words: strided(24, 8, 8).expect("inside"), mask: 0, equals: 0 };
        assert!(Block::new(3, keys, keys, short).is_err());
    }

    #[test]
    fn objects_that_do_not_live_are_not_shown() {
        let bytes: Vec<u8> = (0..64).collect();
        let words = Strided::new(&bytes, 0, 16, 8).expect("inside");
        let shown = |live| {
            let block = Block::new(4, words, words, live).expect("inside");
            (0..4).filter(|&at| block.object(at).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(shown(Live::All), [0, 1, 2, 3]);
        assert_eq!(shown(Live::Bits(&[0b1010])), [1, 3]);
        assert_eq!(shown(Live::Word { words, mask: 0x30, equals: 0x20 }), [2]);
    }
}
