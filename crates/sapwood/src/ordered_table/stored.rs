//! The entries of a table that is open to be read, in its snapshot.
//!
//! Gets and scans read the blocks that they need. What needs more, as neighbours and queries, has all entries read
//! into memory once, and what comes later works on these. So do gets and scans that have read each block about twice.

use std::num::NonZero;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use sapwood_chunkmap::ChunkMap;
use sapwood_wal::{Block, Snapshot};

use crate::{
    Direction, Error, KEY_BYTES_MAX, KeyRange, LogError, OrderedEngineError, OrderedStats,
    OrderedTableOptions, Result,
};

/// How often each block is read, on average, before all entries are read into memory.
const READ_IN_PLACE_MAX: usize = 2;

/// Entries that are put into memory together.
const PUT_TOGETHER: usize = 1_024;

/// A table in its snapshot.
pub(crate) struct Stored {
    pub(crate) name: Arc<str>,
    pub(crate) options: OrderedTableOptions,
    snapshot: Snapshot,
    /// Of the log, for messages.
    path: PathBuf,
    /// That read all entries into memory.
    threads: Option<NonZero<usize>>,
    map: OnceLock<ChunkMap>,
    /// Held while they are read.
    filling: Mutex<()>,
    /// The block that was read last: the next key may be in it.
    last: Mutex<Option<Arc<Block>>>,
    /// Blocks that were read for gets and scans.
    blocks_read: AtomicUsize,
}

impl Stored {
    pub(crate) fn new(
        name: Arc<str>,
        options: OrderedTableOptions,
        snapshot: Snapshot,
        path: PathBuf,
        threads: Option<NonZero<usize>>,
    ) -> Stored {
        let (map, filling, last) = (OnceLock::new(), Mutex::default(), Mutex::default());
        let blocks_read = AtomicUsize::new(0);
        Stored { name, options, snapshot, path, threads, map, filling, last, blocks_read }
    }

    /// Whether the entries are in the snapshot alone, and few of them are asked for.
    pub(super) fn is_in_place(&self) -> bool {
        // Relaxed: it decides what is faster, and no more.
        let read = self.blocks_read.load(Ordering::Relaxed);
        self.map.get().is_none() && read <= READ_IN_PLACE_MAX * self.snapshot.blocks()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(super) fn len(&self) -> usize {
        self.snapshot.entries() as usize
    }

    pub(super) fn stats(&self) -> OrderedStats {
        if let Some(map) = self.map.get() {
            return map.stats();
        }
        let (key_bytes, value_bytes) = self.snapshot.entry_bytes();
        let entries = self.snapshot.entries();
        let mut stats = OrderedStats::default();
        (stats.entries, stats.key_bytes, stats.value_bytes) = (entries, key_bytes, value_bytes);
        stats.pages = "none";
        stats.budget_bytes = self.options.memory_budget;
        stats
    }

    /// Puts the file's place to an error of the log.
    pub(crate) fn named<T>(&self, result: sapwood_wal::Result<T>) -> Result<T> {
        result.map_err(|cause: LogError| Error::Log { path: self.path.clone(), cause })
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<Block>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block, which is kept until another is read.
    fn block(&self, number: usize) -> Result<Arc<Block>> {
        let last = self.last().as_ref().filter(|block| block.number() == number).map(Arc::clone);
        if let Some(block) = last {
            return Ok(block);
        }
        self.blocks_read.fetch_add(1, Ordering::Relaxed);
        let block = Arc::new(self.named(self.snapshot.block(number))?);
        *self.last() = Some(Arc::clone(&block));
        Ok(block)
    }

    pub(super) fn get_with<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            let cause = OrderedEngineError::KeyLength { len: key.len() };
            return Err(Error::OrderedEngine { table: Arc::clone(&self.name), cause });
        }
        let Some(number) = self.snapshot.find(key) else { return Ok(None) };
        let block = self.block(number)?;
        let (entry, is_there) = self.named(block.search(key))?;
        if !is_there {
            return Ok(None);
        }
        let mut value = Vec::new();
        self.named(block.value(entry, &mut value))?;
        Ok(Some(read(&value)))
    }

    pub(super) fn scan<B>(
        &self,
        range: &impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let (begin, end) = range.bounds();
        let blocks = self.blocks(begin, end);
        let mut show = |number: usize| -> Result<ControlFlow<B>> {
            let block = self.block(number)?;
            // Only the outer blocks have entries beyond the bounds.
            let from = match begin {
                Bound::Included(key) => self.place(&block, key, false)?,
                Bound::Excluded(key) => self.place(&block, key, true)?,
                Bound::Unbounded => 0,
            };
            let to = match end {
                Bound::Included(key) => self.place(&block, key, true)?,
                Bound::Excluded(key) => self.place(&block, key, false)?,
                Bound::Unbounded => block.entries(),
            };
            let (mut key, mut value) = (Vec::new(), Vec::new());
            for at in 0..to.saturating_sub(from) {
                let entry = match direction {
                    Direction::Ascending => from + at,
                    Direction::Descending => to - 1 - at,
                };
                self.named(block.key(entry, &mut key))?;
                self.named(block.value(entry, &mut value))?;
                if let ControlFlow::Break(end) = visit(&key, &value) {
                    return Ok(ControlFlow::Break(end));
                }
            }
            Ok(ControlFlow::Continue(()))
        };
        for at in 0..blocks.len() {
            let number = match direction {
                Direction::Ascending => blocks.start + at,
                Direction::Descending => blocks.end - 1 - at,
            };
            if let ControlFlow::Break(end) = show(number)? {
                return Ok(ControlFlow::Break(end));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The blocks that have entries within bounds, or none.
    pub(crate) fn blocks(&self, begin: Bound<&[u8]>, end: Bound<&[u8]>) -> std::ops::Range<usize> {
        let first = match begin {
            Bound::Included(key) | Bound::Excluded(key) => self.snapshot.find(key).unwrap_or(0),
            Bound::Unbounded => 0,
        };
        let limit = match end {
            Bound::Included(key) | Bound::Excluded(key) => {
                self.snapshot.find(key).map_or(0, |last| last + 1)
            }
            Bound::Unbounded => self.snapshot.blocks(),
        };
        first..limit.max(first)
    }

    /// The first entry that is not below the key, or the one behind that of the key.
    fn place(&self, block: &Block, key: &[u8], behind: bool) -> Result<usize> {
        let (entry, is_there) = self.named(block.search(key))?;
        Ok(entry + usize::from(is_there && behind))
    }

    /// All entries in memory, which are read the first time.
    #[cold]
    pub(super) fn map(&self) -> Result<&ChunkMap> {
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        let _filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        // What was there is read, whatever of the budget that takes.
        let options = OrderedTableOptions { memory_budget: None, ..self.options.clone() };
        let map = options.new_map(&self.name)?;
        let next = AtomicUsize::new(0);
        let fill = || -> Result<()> {
            loop {
                // Relaxed: each number is taken once, and that is all it says.
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.snapshot.blocks() {
                    return Ok(());
                }
                self.put_block(&map, number)?;
            }
        };
        let there = || thread::available_parallelism().map_or(1, NonZero::get);
        let threads = self.threads.map_or_else(there, NonZero::get).min(self.snapshot.blocks());
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(fill)).collect();
            let mine = fill();
            let joined = others.into_iter().map(|other| other.join().expect("its panic was told"));
            joined.fold(mine, Result::and)
        })?;
        let map = self.map.get_or_init(|| map.with_memory_budget(self.options.memory_budget));
        *self.last() = None;
        Ok(map)
    }

    fn put_block(&self, map: &ChunkMap, number: usize) -> Result<()> {
        let block = self.named(self.snapshot.block(number))?;
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for first in (0..block.entries()).step_by(PUT_TOGETHER) {
            bytes.clear();
            ends.clear();
            for entry in first..(first + PUT_TOGETHER).min(block.entries()) {
                self.named(block.key(entry, &mut key))?;
                self.named(block.value(entry, &mut value))?;
                bytes.extend_from_slice(&key);
                ends.push(bytes.len());
                bytes.extend_from_slice(&value);
                ends.push(bytes.len());
            }
            let mut begin = 0;
            let entries = ends.chunks_exact(2).map(|ends| {
                let entry = (&bytes[begin..ends[0]], &bytes[ends[0]..ends[1]]);
                begin = ends[1];
                entry
            });
            let entries: Vec<(&[u8], &[u8])> = entries.collect();
            map.put_many(&entries).map_err(|stopped| Error::OrderedEngine {
                table: Arc::clone(&self.name),
                cause: stopped.error,
            })?;
        }
        Ok(())
    }
}
