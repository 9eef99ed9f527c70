//! The few knobs of a map.

use sapwood_mem::Pages;

use crate::error::{Error, Result};
use crate::layout::FANOUT_MAX;

/// How a map lays out its memory.
///
/// ```
/// use sapwood_chunkmap::{ChunkMap, Options};
///
/// let mut options = Options::default();
/// options.memory_budget = Some(64 << 20);
/// let map = ChunkMap::with_options(options)?;
/// # Ok::<(), sapwood_chunkmap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Most entries in the sorted part of a chunk: 2 to 4,096, default 512.
    ///
    /// More make rebalances rarer and longer, and the tree above lower.
    pub chunk_entries: usize,
    /// Largest block of memory mapped at a time, bytes: a power of two from 4 KiB
    /// to 16 MiB, default 2 MiB.
    ///
    /// Small tables start with smaller blocks by themselves. Below 2 MiB there
    /// are no huge pages.
    pub block_bytes: usize,
    /// Most bytes the map may have mapped; default none. Reaching it answers
    /// [`Error::OutOfMemory`].
    pub memory_budget: Option<u64>,
    /// Which pages to ask for; default transparent huge pages.
    pub pages: Pages,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            chunk_entries: 512,
            block_bytes: 2 << 20,
            memory_budget: None,
            pages: Pages::default(),
        }
    }
}

/// A delta's entries share one cache line of fingerprints.
pub(crate) const DELTA_ENTRIES_MAX: usize = 64;

impl Options {
    pub(crate) fn validate(&self) -> Result<()> {
        if !(2..=4096).contains(&self.chunk_entries) {
            return Err(Error::Options("chunk_entries must be 2 to 4096"));
        }
        if !self.block_bytes.is_power_of_two() || !(4 << 10..=16 << 20).contains(&self.block_bytes)
        {
            return Err(Error::Options("block_bytes must be a power of two from 4 KiB to 16 MiB"));
        }
        Ok(())
    }

    /// Entries of a delta: an eighth of the sorted part, so that an entry is copied
    /// by some eight rebalances before its chunk splits.
    pub(crate) fn delta_entries(&self) -> usize {
        (self.chunk_entries / 8).clamp(2, DELTA_ENTRIES_MAX)
    }

    /// Children of an inner node: few where chunks are small, so that tests with
    /// small chunks see every change of the tree.
    pub(crate) fn fanout(&self) -> usize {
        self.chunk_entries.clamp(4, FANOUT_MAX)
    }
}
