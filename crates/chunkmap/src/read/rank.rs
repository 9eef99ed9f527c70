//! Ranks: how many entries a range has, and which entry has how many before it.
//!
//! Chunks know how many entries they have, and inner nodes keep sums of those below (`ticket`). A rank is the sum of
//! what lies left of one way down. *Useful for* pages of a list, percentiles, positions. *Not useful for* a rank after
//! each of many inserts in no order: each makes sums unknown on its way, and the next rank counts chunks there again.

use std::ops::Bound;

use sapwood_engine::{Direction, KeyRange};
use sapwood_mem::sync::Ordering;

use crate::error::Result;
use crate::layout::EntryState;
use crate::map::ChunkMap;
use crate::node::cursor::{KeyBounds, Merge};
use crate::read::range::Entry;
use crate::read::scan::key_bounds;

impl ChunkMap {
    /// The number of entries in a range.
    ///
    /// # Consistency
    /// It counts each entry that is there throughout the call, once, and none that is not there throughout; of those
    /// that come or go meanwhile some. While nothing changes it is exact.
    ///
    /// ```
    /// use sapwood_chunkmap::ChunkMap;
    ///
    /// let map = ChunkMap::new();
    /// for number in 0..10_000_u32 {
    ///     map.put(&number.to_be_bytes(), b"")?;
    /// }
    /// let (low, high) = (100_u32.to_be_bytes(), 350_u32.to_be_bytes());
    /// assert_eq!(map.count(&low[..]..&high[..]), 250);
    /// assert_eq!(map.rank(&high), 350);
    /// assert_eq!(map.nth(350)?.expect("there are more").key(), high);
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    pub fn count(&self, range: impl KeyRange) -> u64 {
        let bounds = key_bounds(&range);
        if bounds.is_empty() {
            return 0;
        }
        let guard = self.tree.reclaimer.pin();
        let root = self.tree.root_node(&guard);
        self.tree.count_between(&guard, root, bounds, self.tree.new_ticket())
    }

    /// The number of entries whose keys are below `key`, which need not be there; consistent as
    /// [`count`](Self::count).
    pub fn rank(&self, key: &[u8]) -> u64 {
        self.count(..key)
    }

    /// The entry that has `rank` entries before it; `None` if there are not so many.
    ///
    /// # Consistency
    /// Exact while nothing changes, as [`count`](Self::count) is. Beside writers it is an entry that is there at
    /// some moment of the call, and as many entries lay before it as a count of them may have answered.
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan).
    pub fn nth(&self, rank: u64) -> Result<Option<Entry<'_>>> {
        match self.key_of_rank(rank) {
            Some(key) => self.edge(&key[..].., Direction::Ascending),
            None => Ok(None),
        }
    }

    /// The key of a rank, or one behind it, where the entry went meanwhile.
    fn key_of_rank(&self, rank: u64) -> Option<Vec<u8>> {
        let guard = self.tree.reclaimer.pin();
        let (chunk, mut left) = self.tree.chunk_of_rank(&guard, rank, self.tree.new_ticket())?;
        let everything = KeyBounds { low: Bound::Unbounded, high: Bound::Unbounded };
        let mut merge = Merge::new(chunk, everything, Direction::Ascending);
        while let Some(at) = merge.next() {
            // Acquire: pairs with the CAS in `append` or `swap` that published the record.
            let word = merge.word(at).load(Ordering::Acquire);
            let EntryState::Record(slice) = EntryState::of(word) else { continue };
            if left == 0 {
                return Some(chunk.record(slice).key().to_vec());
            }
            left -= 1;
        }
        chunk.high().map(<[u8]>::to_vec)
    }
}
