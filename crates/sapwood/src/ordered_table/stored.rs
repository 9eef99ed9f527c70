//! The entries of a table in its snapshot, with what the log has of them since, until they are needed in memory.
//!
//! | a block of the snapshot is | its entries are read | and changed |
//! |---|---|---|
//! | in place | from the file, with the [changes](Changes) that the log had when the table was opened | never |
//! | in memory | from the map | in the map |
//!
//! A change of a key brings the block that the key belongs to into memory first; gets, scans and statements of SQL
//! bring none. What needs the table as a whole, as neighbours and queries, brings all of them. So do gets and scans
//! that have read each block about twice.
//!
//! # Invariants
//!
//! - I-LOADED: `is_loaded` of a block is set (release) once the map has all its entries, and never taken back. A thread
//!   that finds it set (acquire) finds them in the map. Until then no thread changes keys of the block.
//!
//! A thread that finds the block in place reads it as it is then, though another may load and change it meanwhile: its
//! read takes effect when it looks at `is_loaded`.

mod changes;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::ops::{Bound, ControlFlow, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use sapwood_chunkmap::ChunkMap;
use sapwood_engine::{Effect, broken_off, keep_break};
#[cfg(feature = "sql")]
use sapwood_wal::ReadAhead;
use sapwood_wal::{Block, Snapshot};

use crate::{
    Direction, Error, KEY_BYTES_MAX, KeyRange, LogError, OrderedEngineError, OrderedStats,
    OrderedTableOptions, Result,
};

use changes::Totals;
pub(crate) use changes::{Changes, Run, runs, write};

/// How often each block is read, on average, before all entries are read into memory.
const READ_IN_PLACE_MAX: usize = 2;

/// Entries that are put into memory together.
const PUT_TOGETHER: usize = 1_024;

/// A snapshot, and what the log has since.
#[derive(Debug)]
pub(crate) struct Source {
    snapshot: Snapshot,
    /// By block.
    changes: BTreeMap<usize, Changes>,
    /// Of each block.
    is_loaded: Box<[AtomicBool]>,
}

/// A table in its snapshot.
pub(crate) struct Stored {
    name: Arc<str>,
    options: OrderedTableOptions,
    /// Unset while the table is [being loaded](crate::BulkLoad).
    source: OnceLock<Source>,
    /// Of the log, for messages.
    path: PathBuf,
    /// That read all entries into memory.
    threads: Option<NonZero<usize>>,
    /// The entries of blocks that are in memory.
    map: Arc<ChunkMap>,
    /// Set once all are.
    is_all_loaded: AtomicBool,
    /// Held while blocks are loaded: what the snapshot has of all others.
    loading: Mutex<Totals>,
    /// The block that was read last: the next key may be in it.
    last: Mutex<Option<Arc<Block>>>,
    /// Blocks that were read for gets and scans.
    blocks_read: AtomicUsize,
}

/// Where the entries of a block are.
pub(crate) enum Place<'s> {
    InPlace(Arc<Block>, Option<&'s Changes>),
    InMemory,
}

impl Source {
    pub(crate) fn new(snapshot: Snapshot) -> Source {
        let is_loaded = (0..snapshot.blocks()).map(|_| AtomicBool::new(false)).collect();
        Source { snapshot, changes: BTreeMap::new(), is_loaded }
    }

    fn is_loaded(&self, number: usize) -> bool {
        self.is_loaded[number].load(Ordering::Acquire)
    }

    fn totals(&self) -> Totals {
        let (key_bytes, value_bytes) = self.snapshot.entry_bytes();
        let [entries, key_bytes, value_bytes] =
            [self.snapshot.entries(), key_bytes, value_bytes].map(|number| number as i64);
        Totals { entries, key_bytes, value_bytes }
    }

    /// Notes a change that the log has behind those before.
    pub(crate) fn note(&mut self, key: &[u8], effect: Effect<'_>) {
        self.changes.entry(self.block_of(key)).or_default().note(key, effect);
    }

    /// The block that a key belongs to. Keys below all belong to the first.
    fn block_of(&self, key: &[u8]) -> usize {
        self.snapshot.find(key).unwrap_or(0)
    }

    /// The first key that belongs to a block, and the first that does not.
    fn bounds(&self, number: usize) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let first = |number| self.snapshot.first_key(number);
        let begin = match number {
            0 => Bound::Unbounded,
            number => Bound::Included(first(number)),
        };
        let end = match number + 1 {
            next if next < self.snapshot.blocks() => Bound::Excluded(first(next)),
            _ => Bound::Unbounded,
        };
        (begin, end)
    }

    /// The blocks that may have entries within bounds, or none.
    fn blocks(&self, begin: Bound<&[u8]>, end: Bound<&[u8]>) -> Range<usize> {
        let first = match begin {
            Bound::Included(key) | Bound::Excluded(key) => self.block_of(key),
            Bound::Unbounded => 0,
        };
        let limit = match end {
            Bound::Included(key) | Bound::Excluded(key) => self.block_of(key) + 1,
            Bound::Unbounded => self.is_loaded.len(),
        };
        first..limit.max(first)
    }
}

impl Stored {
    /// A table whose entries are brought into a map that is empty. Without a source it is being loaded, until it
    /// is [given](Self::fill) one.
    pub(crate) fn new(
        (name, options): (Arc<str>, OrderedTableOptions),
        source: Option<Source>,
        map: Arc<ChunkMap>,
        path: PathBuf,
        threads: Option<NonZero<usize>>,
    ) -> Stored {
        let stored = Stored {
            name,
            options,
            path,
            threads,
            map,
            source: OnceLock::new(),
            is_all_loaded: AtomicBool::new(false),
            loading: Mutex::default(),
            last: Mutex::default(),
            blocks_read: AtomicUsize::new(0),
        };
        if let Some(source) = source {
            stored.fill(source);
        }
        stored
    }

    /// Gives a table what it was loaded with.
    pub(crate) fn fill(&self, source: Source) {
        let mut in_place = lock(&self.loading);
        *in_place = source.totals();
        // The map is as empty as the source.
        self.is_all_loaded.store(source.is_loaded.is_empty(), Ordering::Release);
        assert!(self.source.set(source).is_ok(), "a table is filled once");
    }

    pub(super) fn is_being_loaded(&self) -> bool {
        self.source.get().is_none()
    }

    /// # Errors
    /// [`Error::Loading`].
    fn source(&self) -> Result<&Source> {
        self.source.get().ok_or_else(|| Error::Loading { name: self.name.to_string() })
    }

    /// Whether some entries are in the snapshot alone, and few of them were asked for.
    pub(super) fn is_in_place(&self) -> bool {
        // Relaxed: it decides what is faster, and no more.
        let read = self.blocks_read.load(Ordering::Relaxed);
        let blocks = self.source.get().map_or(0, |source| source.is_loaded.len());
        !self.is_all_loaded() && read <= READ_IN_PLACE_MAX * blocks
    }

    fn is_all_loaded(&self) -> bool {
        self.is_all_loaded.load(Ordering::Acquire)
    }

    pub(super) fn len(&self) -> Result<usize> {
        if self.is_all_loaded() {
            return Ok(self.map.len());
        }
        let source = self.source()?;
        let in_place = lock(&self.loading);
        let entries = self.in_place(source, *in_place)?.entries + self.map.len() as i64;
        Ok(usize::try_from(entries).unwrap_or(0))
    }

    /// As [`len`](Self::len); where a block cannot be read, without the changes of its keys.
    pub(super) fn len_estimate(&self) -> usize {
        self.len().unwrap_or_else(|_| lock(&self.loading).entries.max(0) as usize + self.map.len())
    }

    /// What blocks in place have with the changes of their keys.
    fn in_place(&self, source: &Source, snapshot: Totals) -> Result<Totals> {
        let in_place = source.changes.keys().filter(|number| !source.is_loaded(**number));
        in_place
            .map(|number| self.difference(source, *number))
            .try_fold(snapshot, |totals, difference| Ok(totals.plus(difference?)))
    }

    /// What the changes of its keys add to what a block has.
    fn difference(&self, source: &Source, number: usize) -> Result<Totals> {
        let Some(changes) = source.changes.get(&number) else { return Ok(Totals::default()) };
        changes.difference(|| self.read(source, number), |counted| self.named(counted))
    }

    pub(super) fn stats(&self) -> OrderedStats {
        let in_place = lock(&self.loading);
        let totals = self.source().and_then(|source| self.in_place(source, *in_place));
        let totals = totals.unwrap_or(*in_place);
        let mut stats = self.map.stats();
        if stats.entries == 0 && totals.entries > 0 {
            stats = OrderedStats::default();
            stats.pages = "none";
        }
        let plus = |bytes: u64, more: i64| bytes.saturating_add_signed(more);
        stats.entries = plus(stats.entries, totals.entries);
        stats.key_bytes = plus(stats.key_bytes, totals.key_bytes);
        stats.value_bytes = plus(stats.value_bytes, totals.value_bytes);
        stats.budget_bytes = self.options.memory_budget;
        stats
    }

    /// Puts the file's place to an error of the log.
    pub(crate) fn named<T>(&self, result: sapwood_wal::Result<T>) -> Result<T> {
        result.map_err(|cause: LogError| Error::Log { path: self.path.clone(), cause })
    }

    fn refused(&self, cause: OrderedEngineError) -> Error {
        Error::OrderedEngine { table: Arc::clone(&self.name), cause }
    }

    /// A block, which is kept until another is read.
    fn block(&self, source: &Source, number: usize) -> Result<Arc<Block>> {
        let last =
            lock(&self.last).as_ref().filter(|block| block.number() == number).map(Arc::clone);
        if let Some(block) = last {
            return Ok(block);
        }
        self.blocks_read.fetch_add(1, Ordering::Relaxed);
        let block = self.read(source, number)?;
        *lock(&self.last) = Some(Arc::clone(&block));
        Ok(block)
    }

    fn read(&self, source: &Source, number: usize) -> Result<Arc<Block>> {
        self.named(source.snapshot.block(number)).map(Arc::new)
    }

    fn place<'s>(&self, source: &'s Source, number: usize) -> Result<Place<'s>> {
        match source.is_loaded(number) {
            true => Ok(Place::InMemory),
            false => {
                let block = self.block(source, number)?;
                Ok(Place::InPlace(block, source.changes.get(&number)))
            }
        }
    }

    /// As [`place`](Self::place), to be read once and as a whole: the block is not kept, and does not count.
    #[cfg(feature = "sql")]
    pub(crate) fn place_to_scan(&self, number: usize) -> Result<Place<'_>> {
        let source = self.source()?;
        match source.is_loaded(number) {
            true => Ok(Place::InMemory),
            false => Ok(Place::InPlace(self.read(source, number)?, source.changes.get(&number))),
        }
    }

    pub(super) fn get_with<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (mut read, mut answer) = (Some(read), None);
        self.show(key, &mut |value| answer = read.take().map(|read| read(value)))?;
        Ok(answer)
    }

    /// Shows a value, once, if the key is there.
    fn show(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<()> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Err(self.refused(OrderedEngineError::KeyLength { len: key.len() }));
        }
        let source = self.source()?;
        let Place::InPlace(block, changes) = self.place(source, source.block_of(key))? else {
            let shown = self.map.get_with(key, read);
            return shown.map(drop).map_err(|cause| self.refused(cause));
        };
        if let Some(Ok(value)) = changes.map(|changes| changes.value(key, &block)) {
            self.named(value)?.as_deref().into_iter().for_each(read);
            return Ok(());
        }
        let (entry, is_there) = self.named(block.search(key))?;
        if is_there {
            let mut value = Vec::new();
            self.named(block.value(entry, &mut value))?;
            read(&value);
        }
        Ok(())
    }

    pub(super) fn scan<B>(
        &self,
        range: &impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        keep_break(|kept| {
            let visit = &mut |key: &[u8], value: &[u8]| broken_off(visit(key, value), kept);
            self.scan_with(range.bounds(), direction, visit)
        })
    }

    fn scan_with(
        &self,
        (begin, end): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        mut visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if self.is_all_loaded() {
            let scanned = self.map.scan((begin, end), direction, visit);
            return scanned.map_err(|cause| self.refused(cause));
        }
        let source = self.source()?;
        let blocks = source.blocks(begin, end);
        for at in 0..blocks.len() {
            let number = match direction {
                Direction::Ascending => blocks.start + at,
                Direction::Descending => blocks.end - 1 - at,
            };
            let bounds = (begin, end);
            let flow = match self.place(source, number)? {
                Place::InMemory => self.scan_loaded(number, bounds, direction, &mut visit)?,
                Place::InPlace(block, changes) => {
                    self.named(scan_block(&block, changes, bounds, direction, &mut visit))?
                }
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Shows the entries of a block that is in memory, within bounds.
    pub(crate) fn scan_loaded<B>(
        &self,
        number: usize,
        (begin, end): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let (first, limit) = self.source()?.bounds(number);
        // The outer blocks alone have keys beyond the bounds.
        let begin = match (begin, first) {
            (Bound::Included(begin) | Bound::Excluded(begin), Bound::Included(first))
                if begin < first =>
            {
                Bound::Included(first)
            }
            (Bound::Unbounded, first) => first,
            (begin, _) => begin,
        };
        let end = match (end, limit) {
            (Bound::Included(end) | Bound::Excluded(end), Bound::Excluded(limit))
                if end >= limit =>
            {
                Bound::Excluded(limit)
            }
            (Bound::Unbounded, limit) => limit,
            (end, _) => end,
        };
        self.map.scan((begin, end), direction, visit).map_err(|cause| self.refused(cause))
    }

    /// The blocks that may have entries within bounds, or none.
    #[cfg(feature = "sql")]
    pub(crate) fn blocks(&self, begin: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<Range<usize>> {
        Ok(self.source()?.blocks(begin, end))
    }

    /// Blocks that are to be read in their order.
    #[cfg(feature = "sql")]
    pub(crate) fn read_ahead(&self, blocks: Range<usize>) -> Result<ReadAhead<'_>> {
        Ok(self.source()?.snapshot.read_ahead(blocks))
    }

    /// The map, once it has the entries of the block that a key belongs to.
    pub(super) fn map_at(&self, key: &[u8]) -> Result<&ChunkMap> {
        if self.is_all_loaded() {
            return Ok(&self.map);
        }
        let source = self.source()?;
        let number = source.block_of(key);
        if !source.is_loaded(number) {
            let mut in_place = lock(&self.loading);
            if !source.is_loaded(number) {
                *in_place = in_place.minus(self.load(source, number)?);
            }
        }
        Ok(&self.map)
    }

    /// As [`map_at`](Self::map_at), of many keys.
    pub(super) fn map_at_all<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<&ChunkMap> {
        match self.is_all_loaded() {
            true => Ok(&self.map),
            false => keys.try_fold(&*self.map, |_, key| self.map_at(key)),
        }
    }

    /// Gives memory back that removals have left.
    pub(super) fn trim(&self) -> u64 {
        self.map.trim()
    }

    /// Moves the entries that are in memory together.
    pub(super) fn compact(&self) {
        self.map.compact();
    }

    /// The map, once it has all entries.
    pub(super) fn map(&self) -> Result<&ChunkMap> {
        match self.is_all_loaded() {
            true => Ok(&self.map),
            false => self.load_all(),
        }
    }

    #[cold]
    fn load_all(&self) -> Result<&ChunkMap> {
        let source = self.source()?;
        let mut in_place = lock(&self.loading);
        if self.is_all_loaded() {
            return Ok(&self.map);
        }
        let next = AtomicUsize::new(0);
        let ahead = source.snapshot.read_ahead(0..source.is_loaded.len());
        let load = || {
            let mut loaded = Totals::default();
            loop {
                // Relaxed: each number is taken once, and that is all it says.
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= source.is_loaded.len() {
                    return (loaded, Ok(()));
                }
                ahead.begin(number);
                if source.is_loaded(number) {
                    continue;
                }
                match self.load(source, number) {
                    Ok(totals) => loaded = loaded.plus(totals),
                    Err(error) => return (loaded, Err(error)),
                }
            }
        };
        let there = || thread::available_parallelism().map_or(1, NonZero::get);
        let threads = self.threads.map_or_else(there, NonZero::get).min(source.is_loaded.len());
        let (loaded, done) = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(load)).collect();
            let mine = load();
            let joined = others.into_iter().map(|other| other.join().expect("its panic was told"));
            joined.fold(mine, |(all, done), (loaded, others)| (all.plus(loaded), done.and(others)))
        });
        *in_place = in_place.minus(loaded);
        done?;
        self.is_all_loaded.store(true, Ordering::Release);
        *lock(&self.last) = None;
        Ok(&self.map)
    }

    /// Brings a block into memory; what the snapshot has of it. The caller holds `loading`, and the block is not there.
    fn load(&self, source: &Source, number: usize) -> Result<Totals> {
        let (block, changes) = (self.read(source, number)?, source.changes.get(&number));
        // All is read before anything is put: a block that is damaged is as it was.
        let (mut bytes, mut ends, mut loaded) = (Vec::new(), Vec::new(), Totals::default());
        let all = (Bound::Unbounded, Bound::Unbounded);
        let read = scan_block(&block, changes, all, Direction::Ascending, |key, value| {
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
            bytes.extend_from_slice(value);
            ends.push(bytes.len());
            loaded.add(key, value);
            ControlFlow::<()>::Continue(())
        });
        let _all_were_read = self.named(read)?;
        let difference = self.difference(source, number)?;
        let mut begin = 0;
        for ends in ends.chunks(2 * PUT_TOGETHER) {
            let entries = ends.chunks_exact(2).map(|ends| {
                let entry = (&bytes[begin..ends[0]], &bytes[ends[0]..ends[1]]);
                begin = ends[1];
                entry
            });
            let entries: Vec<(&[u8], &[u8])> = entries.collect();
            self.map.load_many(&entries).map_err(|stopped| self.refused(stopped.error))?;
        }
        source.is_loaded[number].store(true, Ordering::Release);
        Ok(loaded.minus(difference))
    }
}

/// Shows the entries of a block with the changes of its keys, within bounds.
fn scan_block<B>(
    block: &Block,
    changes: Option<&Changes>,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
) -> sapwood_wal::Result<ControlFlow<B>> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    runs(block, changes, bounds, direction, |run| {
        let entries = match run {
            Run::Changed(key, value) => return Ok(visit(key, value)),
            Run::Unchanged(entries) => entries,
        };
        for at in 0..entries.len() {
            let entry = match direction {
                Direction::Ascending => entries.start + at,
                Direction::Descending => entries.end - 1 - at,
            };
            block.key(entry, &mut key)?;
            block.value(entry, &mut value)?;
            if let ControlFlow::Break(end) = visit(&key, &value) {
                return Ok(ControlFlow::Break(end));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("name", &self.name).finish_non_exhaustive()
    }
}
