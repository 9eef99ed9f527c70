//! The map: its parts, and the checks that all operations share.
//!
//! Every operation is: pin, go down to the chunk, find the entry, take the
//! record the way it needs, and do it; if something moved in between, again.
//! `read` has those that change nothing, `write` those that do, `upkeep` what keeps chunks and memory in order.
//!
//! No caller's closure runs under a pin, and nothing that a closure may prolong is
//! waited for under one: either would hold back all that is retired meanwhile. The
//! record in hand stays by itself then (I-HELD); what else was reached is looked for
//! again if the guard says that it may have gone.

pub(crate) mod compaction;
pub(crate) mod counters;

use std::sync::Arc;

use sapwood_engine::{Claim, Effect, Journal};
use sapwood_mem::ArenaOptions;
use sapwood_mem::sync::counter::AtomicU64;

use self::compaction::Compaction;
use self::counters::{Removals, StripedCounters};
use crate::error::{Error, Result};
use crate::layout::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::node::hazard_pointers::HazardPointers;
use crate::node::record::WriteLock;
use crate::options::Options;
use crate::tree::Tree;

/// A concurrent ordered map of byte keys to byte values, outside every managed heap.
///
/// Keys are 1 byte to 64 KiB in `memcmp` order, values 0 bytes to 256 MiB. Every
/// method takes `&self`; share the map by reference or in an `Arc`.
///
/// # Consistency
/// Operations on one key are linearizable, and an [`update`](Self::update) is
/// atomic for every reader. Scans and iterators see every key that is present
/// from their start to their end exactly once, no key twice, and keys in order;
/// a key that is inserted or removed meanwhile may be seen or not. Each value a
/// scan shows was current at the moment it was shown.
///
/// # Closures
/// A closure may call back into the map. Reading closures (`get_with`, `scan`)
/// may do anything: an update of the very value being read goes to a copy, and
/// the reader's bytes stay as they are. Inside a closure that changes a value,
/// the same key answers [`Error::Reentrant`], and a key whose value another
/// thread is changing at that moment answers [`Error::WouldBlock`]; everything
/// else works. Nothing hangs.
///
/// # Example
/// ```
/// use sapwood_chunkmap::ChunkMap;
///
/// let map = ChunkMap::new();
/// map.put(b"apple", b"3")?;
/// map.put_if_absent_or_update(b"apple", b"0", |value| value.extend_from_slice(b"0"))?;
/// assert_eq!(map.get_with(b"apple", |value| value.len())?, Some(2));
/// assert!(map.remove(b"apple")?);
/// # Ok::<(), sapwood_chunkmap::Error>(())
/// ```
pub struct ChunkMap {
    pub(crate) tree: Tree,
    pub(crate) counters: StripedCounters,
    pub(crate) removals: Removals,
    pub(crate) options: Options,
    pub(crate) rebalances: AtomicU64,
    pub(crate) compaction: Compaction,
    pub(crate) hazards: HazardPointers,
    journal: Option<Arc<dyn Journal>>,
}

impl Default for ChunkMap {
    fn default() -> Self {
        ChunkMap::new()
    }
}

impl std::fmt::Debug for ChunkMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkMap").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl ChunkMap {
    /// An empty map with the default [`Options`].
    ///
    /// # Panics
    /// If the system has no memory for a few KiB.
    pub fn new() -> ChunkMap {
        ChunkMap::with_options(Options::default()).expect("memory for an empty map")
    }

    /// An empty map.
    ///
    /// # Errors
    /// [`Error::Options`] if an option is out of its range, [`Error::OutOfMemory`]
    /// if the budget does not even hold an empty map.
    pub fn with_options(options: Options) -> Result<ChunkMap> {
        options.validate()?;
        let arena = ArenaOptions {
            block_bytes: options.block_bytes,
            budget: options.memory_budget,
            pages: options.pages,
        };
        let tree = Tree::new(arena, options.fanout(), options.delta_entries())?;
        let (counters, removals) = (StripedCounters::new(), Removals::new());
        let (rebalances, compaction) = (AtomicU64::new(0), Compaction::default());
        let hazards = HazardPointers::new();
        Ok(ChunkMap {
            tree,
            counters,
            removals,
            options,
            rebalances,
            compaction,
            hazards,
            journal: None,
        })
    }

    /// Tells each change from now on to a journal, before any thread reads it, and makes none for
    /// which that has no room. Only [`contains_key`](Self::contains_key) and
    /// [`put_if_absent`](Self::put_if_absent) may find a key whose insert is being told. A
    /// [`scan`](Self::scan) that begins once the journal has heard of a change shows what the
    /// change has left.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> ChunkMap {
        self.journal = Some(journal);
        self
    }

    /// Replaces the memory budget of the options. A map that has more keeps it, and maps none until it
    /// has less.
    #[must_use]
    pub fn with_memory_budget(mut self, budget: Option<u64>) -> ChunkMap {
        self.options.memory_budget = budget;
        self.tree.arena.set_budget(budget);
        self
    }

    /// Keeps room in the journal for a change of a key and a value that have so many bytes
    /// together.
    #[inline]
    pub(crate) fn claim(&self, bytes: usize) -> Result<Option<Claim<'_>>> {
        match &self.journal {
            None => Ok(None),
            Some(journal) => Ok(Some(Claim::new(&**journal, bytes, 1)?)),
        }
    }

    pub(crate) fn journal(&self) -> Option<&dyn Journal> {
        self.journal.as_deref()
    }

    /// Ends what the journal keeps for a change.
    pub(crate) fn give_back(&self, claimed: u64) {
        if let Some(journal) = &self.journal {
            journal.give_back(claimed);
        }
    }

    /// Tells a change of a record that is locked, before it is made. No reader goes in from here on until it is (I-CLOSED).
    #[inline]
    pub(crate) fn log(&self, lock: &mut WriteLock<'_>, effect: Effect<'_>) {
        if let Some(journal) = &self.journal {
            lock.close();
            journal.log(lock.key(), effect);
        }
    }

    #[inline]
    pub(crate) fn is_logged(&self) -> bool {
        self.journal.is_some()
    }

    /// The options the map was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether maps take a key, and a value of so many bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`].
    pub fn expect_lengths(key: &[u8], value_len: usize) -> Result<()> {
        check_key(key)?;
        check_value(value_len)
    }
}

pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Error::KeyLength { len: key.len() });
    }
    Ok(())
}

pub(crate) fn check_value(len: usize) -> Result<()> {
    if len > VALUE_BYTES_MAX {
        return Err(Error::ValueLength { len });
    }
    Ok(())
}
