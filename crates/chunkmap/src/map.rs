//! The map itself: how each single-key operation goes.
//!
//! Every operation is: pin, go down to the chunk, find the entry, take the
//! record the way it needs, and do it; if something moved in between, again.
//!
//! No caller's closure runs under a pin, and nothing that a closure may prolong is
//! waited for under one: either would hold back all that is retired meanwhile. The
//! record in hand stays by itself then (I-HELD); what else was reached is looked for
//! again if the guard says that it may have gone.

use std::sync::Arc;

use sapwood_engine::{Compute, Computed, Effect, Journal, Upsert};
use sapwood_mem::reclaim::{Epoch, Guard, Left};
use sapwood_mem::sync::counter::AtomicU64;
use sapwood_mem::sync::{Backoff, Ordering};
use sapwood_mem::{Arena, ArenaOptions, SliceRef};

use crate::chunk::{Append, Chunk, Find, Hit, Successor, Wanted};
use crate::compact::Compaction;
use crate::error::{Error, Result};
use crate::layout::{KEY_BYTES_MAX, VALUE_BYTES_MAX, record};
use crate::options::Options;
use crate::record::{Entered, ReadLock, Record, WriteLock, WriteMode};
use crate::striped::StripedCounters;
use crate::tree::{Found, Leaf, Tree};
use crate::value::{Change, ValueMut};

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
    pub(crate) options: Options,
    pub(crate) rebalances: AtomicU64,
    pub(crate) compaction: Compaction,
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

/// A record that is not yet in the map; freed if it never gets there.
struct Fresh<'m> {
    arena: &'m Arena,
    slice: Option<SliceRef>,
}

impl<'m> Fresh<'m> {
    fn new(arena: &'m Arena) -> Fresh<'m> {
        Fresh { arena, slice: None }
    }

    /// The record's slice, written on first use.
    fn get(&mut self, key: &[u8], value: &[u8]) -> Result<SliceRef> {
        if let Some(slice) = self.slice {
            return Ok(slice);
        }
        let slice = self.arena.alloc(record::bytes(key.len(), value.len()))?;
        // SAFETY: a new slice of the right size, ours alone.
        unsafe { Record::write(self.arena.ptr(slice), key, value) };
        self.slice = Some(slice);
        Ok(slice)
    }

    /// The record is in the map now.
    fn published(&mut self) {
        self.slice = None;
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        if let Some(slice) = self.slice {
            // SAFETY: never published.
            unsafe { self.arena.free(slice) };
        }
    }
}

/// A key's record in the hands of a writer, or the place where it would go.
enum Writer<'g> {
    Locked(Hit<'g>, WriteLock<'g>),
    Absent(Leaf<'g>, usize),
}

/// The intention of a writer that goes into a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intent {
    /// Replace the whole value, in place if no reader is inside.
    Overwrite,
    /// Change a part of the value, mostly, in place if no reader is inside.
    Change,
    /// Remove the entry.
    Remove,
    /// Read the value and decide.
    Decide,
}

impl Intent {
    /// Whether the writer needs the bytes; else it is enough to keep other writers out.
    #[inline]
    fn is_in_place(self) -> bool {
        matches!(self, Intent::Overwrite | Intent::Change)
    }

    #[inline]
    fn wanted(self) -> Wanted {
        match self {
            Intent::Change | Intent::Remove => Wanted::Key,
            Intent::Overwrite | Intent::Decide => Wanted::Record,
        }
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
        let counters = StripedCounters::new();
        let (rebalances, compaction) = (AtomicU64::new(0), Compaction::default());
        Ok(ChunkMap { tree, counters, options, rebalances, compaction, journal: None })
    }

    /// Tells each change from now on to a journal, before any thread reads it. Only
    /// [`contains_key`](Self::contains_key) and [`put_if_absent`](Self::put_if_absent) may find a key
    /// whose insert is being told.
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

    #[inline]
    pub(crate) fn log(&self, key: &[u8], effect: Effect<'_>) {
        if let Some(journal) = &self.journal {
            journal.log(key, effect);
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

    /// Reads a value in place: `read` gets its bytes, which stay as they are until
    /// it returns. `None` if the key is absent.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; inside a closure that changes a value also
    /// [`Error::Reentrant`] and [`Error::WouldBlock`].
    pub fn get_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        check_key(key)?;
        Ok(self.read_lock_unpinned(key)?.map(|lock| read(lock.value())))
    }

    /// Goes into the live record of `key` as a reader, and lets go of the pin.
    #[inline]
    pub(crate) fn read_lock_unpinned(&self, key: &[u8]) -> Result<Option<ReadLock<'_>>> {
        let guard = self.tree.reclaimer.pin();
        let lock = self.read_lock(&guard, key)?;
        // SAFETY: I-HELD: the borrow of the map ends before the map does.
        Ok(lock.map(|lock| unsafe { lock.beyond_pin() }))
    }

    /// A copy of a value. Errors as of [`get_with`](Self::get_with).
    ///
    /// # Errors
    /// As of [`get_with`](Self::get_with).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Is the key there? Never waits, not even for a writer of this key.
    ///
    /// # Errors
    /// [`Error::KeyLength`].
    pub fn contains_key(&self, key: &[u8]) -> Result<bool> {
        check_key(key)?;
        let guard = self.tree.reclaimer.pin();
        loop {
            let leaf = self.tree.leaf(&guard, key);
            match leaf.chunk.find(key, Wanted::Key) {
                Find::Hit(_) => return Ok(true),
                Find::Miss(miss) if miss.stale && !self.tree.is_current(&guard, &leaf.chunk) => {}
                Find::Miss(_) => return Ok(false),
            }
        }
    }

    /// Whether maps take a key, and a value of so many bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`].
    pub fn expect_lengths(key: &[u8], value_len: usize) -> Result<()> {
        check_key(key)?;
        check_value(value_len)
    }

    /// Puts a value, whether there was one or not; true if it replaced one.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`], [`Error::OutOfMemory`]; inside a
    /// closure that changes a value also [`Error::Reentrant`] and [`Error::WouldBlock`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        check_key(key)?;
        check_value(value.len())?;
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                match self.lock_writer(guard, key, Intent::Overwrite)? {
                    Writer::Locked(hit, lock) => {
                        self.overwrite(guard, hit, lock, value, &mut fresh)?;
                        return Ok(true);
                    }
                    Writer::Absent(leaf, end) => {
                        if self.insert(guard, leaf, end, key, value, &mut fresh)? {
                            return Ok(false);
                        }
                    }
                }
            }
        })
    }

    /// Puts a value unless there is one; true if it did.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`], [`Error::OutOfMemory`].
    pub fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_new(key, value, self.is_logged())
    }

    /// Removes an entry; true if there was one.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; inside a closure that changes a value also
    /// [`Error::Reentrant`] and [`Error::WouldBlock`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        check_key(key)?;
        {
            let guard = self.tree.reclaimer.pin();
            match self.lock_writer(&guard, key, Intent::Remove)? {
                Writer::Absent(..) => return Ok(false),
                Writer::Locked(hit, lock) => self.unlink(&guard, hit, lock),
            }
        }
        self.compact_if_due();
        Ok(true)
    }

    /// Removes an entry and shows its value to `read`, afterwards: the entry is
    /// gone by then, also if `read` panics.
    ///
    /// # Errors
    /// As of [`remove`](Self::remove).
    pub fn remove_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        check_key(key)?;
        let guard = self.tree.reclaimer.pin();
        let shown = match self.lock_writer(&guard, key, Intent::Decide)? {
            Writer::Absent(..) => return Ok(None),
            Writer::Locked(hit, lock) => {
                let removed = lock.read();
                self.unlink(&guard, hit, lock);
                guard.outside(|| read(removed.value()))
            }
        };
        drop(guard);
        self.compact_if_due();
        Ok(Some(shown))
    }

    /// Changes a value in place, atomically for every reader; `None` if the key is
    /// absent. The closure runs at most once, and may change the length through
    /// [`ValueMut`].
    ///
    /// Readers of this key wait while it runs, unless some were inside before it
    /// began: then it works on a copy, which takes the value's place afterwards.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; [`Error::OutOfMemory`] if a copy was needed and did not
    /// fit; inside a closure that changes a value also [`Error::Reentrant`] and
    /// [`Error::WouldBlock`].
    ///
    /// # Panics
    /// If the closure does. The value then holds exactly what the closure had
    /// written until there, and the map remains usable.
    pub fn update<R>(
        &self,
        key: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        check_key(key)?;
        let mut change = Some(change);
        self.with_memory(|guard| match self.lock_writer(guard, key, Intent::Change)? {
            Writer::Absent(..) => Ok(None),
            Writer::Locked(hit, lock) => self.change(guard, hit, lock, &mut change).map(Some),
        })
    }

    /// Puts `value` if the key is absent, else changes the value that is there, as
    /// [`update`](Self::update) does; searches once.
    ///
    /// # Errors
    /// As of [`put`](Self::put).
    ///
    /// # Panics
    /// As of [`update`](Self::update).
    pub fn put_if_absent_or_update<R>(
        &self,
        key: &[u8],
        value: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        self.put_if_absent_or_update_at(None, key, value, change)
    }

    /// The same for a key whose chunk was found before. If the chunk was replaced since, its words
    /// are frozen (I-FROZEN): a record of the key that lives is the one record of the key, and
    /// nothing is appended.
    #[inline]
    pub(crate) fn put_if_absent_or_update_at<R>(
        &self,
        found: Option<Found>,
        key: &[u8],
        value: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        check_key(key)?;
        check_value(value.len())?;
        let (mut found, mut change) = (found, Some(change));
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                let leaf = || {
                    let found = found.take().and_then(|found| self.tree.found_leaf(guard, found));
                    found.unwrap_or_else(|| self.tree.leaf(guard, key))
                };
                match self.lock_writer_in(guard, key, Intent::Change, leaf)? {
                    Writer::Locked(hit, lock) => {
                        return self.change(guard, hit, lock, &mut change).map(Upsert::Updated);
                    }
                    Writer::Absent(leaf, end) => {
                        if self.insert(guard, leaf, end, key, value, &mut fresh)? {
                            return Ok(Upsert::Inserted);
                        }
                    }
                }
            }
        })
    }

    /// Lets `decide` look at the value, or at `None`, and say what to do. For the
    /// time it runs no other thread changes the value; readers go on.
    ///
    /// If the key is absent and another thread inserts it meanwhile, `decide` runs
    /// again on what is there then.
    ///
    /// # Errors
    /// As of [`put`](Self::put); the entry is unchanged.
    ///
    /// # Panics
    /// If `decide` does; the entry is unchanged.
    pub fn compute(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        check_key(key)?;
        // What `decide` said of an absent key, until it is in. It is not asked again
        // while the key stays absent: a closure that changes the chunk itself
        // would otherwise be run for ever.
        let mut decided: Option<Vec<u8>> = None;
        self.with_memory(|guard| {
            loop {
                let (leaf, end) = match self.lock_writer(guard, key, Intent::Decide)? {
                    Writer::Absent(leaf, end) => (leaf, end),
                    Writer::Locked(hit, lock) => {
                        return self.compute_locked(guard, hit, lock, &mut decide);
                    }
                };
                let value = match decided.take() {
                    Some(value) => value,
                    None => {
                        let epoch = guard.epoch();
                        let value = match guard.outside(|| decide(None)) {
                            Compute::Keep | Compute::Remove => return Ok(Computed::Absent),
                            Compute::Replace(value) => value,
                        };
                        check_value(value.len())?;
                        if guard.epoch() != epoch {
                            // The chunk may have gone.
                            decided = Some(value);
                            continue;
                        }
                        value
                    }
                };
                let mut fresh = Fresh::new(&self.tree.arena);
                let inserted = self.insert(guard, leaf, end, key, &value, &mut fresh);
                decided = Some(value);
                if inserted? {
                    return Ok(Computed::Inserted);
                }
            }
        })
    }

    fn compute_locked(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        mut lock: WriteLock<'_>,
        decide: &mut impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let epoch = guard.epoch();
        let decision = guard.outside(|| decide(Some(lock.value())));
        let hit = self.still(guard, epoch, hit, lock.key());
        match decision {
            Compute::Keep => Ok(Computed::Kept),
            Compute::Remove => {
                self.unlink(guard, hit, lock);
                Ok(Computed::Removed)
            }
            Compute::Replace(value) => {
                check_value(value.len())?;
                lock.try_in_place();
                let mut fresh = Fresh::new(&self.tree.arena);
                self.overwrite(guard, hit, lock, &value, &mut fresh)?;
                Ok(Computed::Replaced)
            }
        }
    }

    /// Puts `new` if the value is `expected`; true if it did. A key that is absent has
    /// no value, and equals none. Searches once; readers go on while it compares.
    ///
    /// # Errors
    /// As of [`put`](Self::put).
    pub fn compare_and_put(&self, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        check_key(key)?;
        check_value(new.len())?;
        self.with_memory(|guard| match self.lock_writer(guard, key, Intent::Decide)? {
            Writer::Absent(..) => Ok(false),
            Writer::Locked(_, lock) if lock.value() != expected => Ok(false),
            Writer::Locked(hit, mut lock) => {
                lock.try_in_place();
                let mut fresh = Fresh::new(&self.tree.arena);
                self.overwrite(guard, hit, lock, new, &mut fresh)?;
                Ok(true)
            }
        })
    }

    /// Goes into the live record of `key` as a reader.
    #[inline]
    pub(crate) fn read_lock<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
    ) -> Result<Option<ReadLock<'g>>> {
        loop {
            let leaf = self.tree.leaf(guard, key);
            match leaf.chunk.find(key, Wanted::Record) {
                Find::Hit(entry) => {
                    if let Some(lock) = entry.record.try_read_quick() {
                        return Ok(Some(lock));
                    }
                    if let Some(lock) = enter(guard, || entry.record.try_read())? {
                        return Ok(Some(lock));
                    }
                }
                Find::Miss(miss) if miss.stale && !self.tree.is_current(guard, &leaf.chunk) => {}
                Find::Miss(_) => return Ok(None),
            }
        }
    }

    #[inline]
    fn lock_writer<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<Writer<'g>> {
        self.lock_writer_in(guard, key, intent, || self.tree.leaf(guard, key))
    }

    /// The same in the chunk that `leaf` tells, each time the key is to be looked up.
    #[inline]
    fn lock_writer_in<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
        mut leaf: impl FnMut() -> Leaf<'g>,
    ) -> Result<Writer<'g>> {
        loop {
            let leaf = leaf();
            match leaf.chunk.find(key, intent.wanted()) {
                Find::Hit(entry) => {
                    let lock = enter(guard, || match intent.is_in_place() {
                        true => entry.record.try_write_in_place(),
                        false => entry.record.try_write_shared(),
                    })?;
                    if let Some(lock) = lock {
                        return Ok(Writer::Locked(entry.of(leaf.chunk), lock));
                    }
                }
                Find::Miss(miss) if miss.stale && !self.tree.is_current(guard, &leaf.chunk) => {}
                Find::Miss(miss) => return Ok(Writer::Absent(leaf, miss.end)),
            }
        }
    }

    /// Puts a value unless there is one; true if it did. The journal hears of it, or has it from elsewhere.
    #[inline]
    pub(crate) fn put_new(&self, key: &[u8], value: &[u8], is_told: bool) -> Result<bool> {
        check_key(key)?;
        check_value(value.len())?;
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                let leaf = self.tree.leaf(guard, key);
                match leaf.chunk.find(key, Wanted::Record) {
                    Find::Hit(_) => return Ok(false),
                    Find::Miss(miss) => {
                        if self.append(guard, leaf, miss.end, (key, value), &mut fresh, is_told)? {
                            return Ok(true);
                        }
                    }
                }
            }
        })
    }

    /// Appends a record to the chunk; false if the caller has to look again.
    #[inline]
    fn insert(
        &self,
        guard: &Guard,
        leaf: Leaf<'_>,
        end: usize,
        key: &[u8],
        value: &[u8],
        fresh: &mut Fresh<'_>,
    ) -> Result<bool> {
        self.append(guard, leaf, end, (key, value), fresh, self.is_logged())
    }

    /// As [`insert`](Self::insert), and the journal hears of it or not.
    fn append(
        &self,
        guard: &Guard,
        leaf: Leaf<'_>,
        end: usize,
        (key, value): (&[u8], &[u8]),
        fresh: &mut Fresh<'_>,
        is_told: bool,
    ) -> Result<bool> {
        if end == leaf.chunk.delta_cap() {
            self.rebalance(guard, leaf)?;
            return Ok(false);
        }
        let slice = fresh.get(key, value)?;
        // A record that is to be told has a writer from the first: no thread reads or changes it
        // before the journal has heard of it.
        let born = match is_told {
            true => Some(self.lock_unpublished(guard, slice)?),
            false => None,
        };
        match leaf.chunk.append(end, key, slice) {
            Append::Done => {
                fresh.published();
                if born.is_some() {
                    self.log(key, Effect::Put(value));
                }
                self.counters.inserted(key.len(), value.len());
                Ok(true)
            }
            Append::Exists => Ok(false),
            Append::Full => self.rebalance(guard, leaf).map(|()| false),
            Append::Frozen => {
                self.wait_for_successor(guard, &leaf.chunk);
                Ok(false)
            }
        }
    }

    /// Takes the writer's lock of a record that only this thread knows.
    #[cold]
    fn lock_unpublished<'g>(&'g self, _pin: &'g Guard, slice: SliceRef) -> Result<WriteLock<'g>> {
        // SAFETY: I-PINNED: the record is this thread's own until it is published, and then it is
        // pinned.
        let record = unsafe { Record::new(self.tree.arena.ptr(slice)) };
        match record.try_write_in_place()? {
            Entered::Inside(lock) => Ok(lock),
            Entered::Dead | Entered::Busy => unreachable!("no other thread knows the record"),
        }
    }

    /// Gives a locked record another value: in place if it has no readers and the
    /// slice has the right size, else through a new record.
    fn overwrite(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        mut lock: WriteLock<'_>,
        value: &[u8],
        fresh: &mut Fresh<'_>,
    ) -> Result<()> {
        let key = lock.key();
        let old_len = lock.value_len();
        let wanted = record::bytes(key.len(), value.len());
        let suits = suits(self.tree.arena.capacity(hit.slice), wanted);
        if suits && lock.access() == WriteMode::InPlace {
            // SAFETY: I-VALUE: alone with the bytes, and the slice has room for the value.
            unsafe { lock.value_ptr().copy_from_nonoverlapping(value.as_ptr(), value.len()) };
            lock.set_value_len(value.len());
            self.log(key, Effect::Put(value));
        } else {
            let successor = fresh.get(key, value)?;
            fresh.published();
            self.log(key, Effect::Put(value));
            self.supersede(guard, hit, lock, successor);
        }
        self.counters.resized(old_len, value.len());
        Ok(())
    }

    fn change<R, F: FnOnce(&mut ValueMut<'_>) -> R>(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        lock: WriteLock<'_>,
        change: &mut Option<F>,
    ) -> Result<R> {
        let mut work = Change::begin(self, guard, hit, lock)?;
        let change = change.take().expect("a closure runs once: nothing fails after it began");
        // `work` commits when it is dropped, also while unwinding.
        Ok(guard.outside(|| change(&mut work.value())))
    }

    /// A hit of `epoch`, whose record this thread is writing: found again if the guard let go
    /// since.
    pub(crate) fn still<'g>(
        &'g self,
        guard: &'g Guard,
        epoch: Epoch,
        hit: Hit<'g>,
        key: &[u8],
    ) -> Hit<'g> {
        if guard.epoch() == epoch { hit } else { self.find_held(guard, key, hit.slice) }
    }

    /// The entry of a record that this thread is writing.
    #[cold]
    fn find_held<'g>(&'g self, guard: &'g Guard, key: &[u8], slice: SliceRef) -> Hit<'g> {
        let leaf = self.tree.leaf(guard, key);
        let found = leaf.chunk.find_slice(key, slice);
        found.expect("I-OWNER: a rebalance copies every record that is not removed")
    }

    /// Puts `successor` into the entry of a locked record, and buries the record.
    pub(crate) fn supersede(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        lock: WriteLock<'_>,
        successor: SliceRef,
    ) {
        self.bury_behind(guard, hit, lock, successor);
        // SAFETY: I-OWNER: no current chunk names the record any more.
        unsafe { self.retire(hit.slice) };
    }

    /// The same, and leaves it to the caller to retire the record.
    pub(crate) fn bury_behind(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        mut lock: WriteLock<'_>,
        successor: SliceRef,
    ) {
        self.swap(guard, hit, lock.key(), Successor::Record(successor));
        lock.bury();
    }

    /// Buries a locked record and empties its entry.
    fn unlink(&self, guard: &Guard, hit: Hit<'_>, mut lock: WriteLock<'_>) {
        let (key, value_len) = (lock.key(), lock.value_len());
        self.log(key, Effect::Remove);
        lock.bury();
        self.counters.removed(key.len(), value_len);
        let chunk = self.swap(guard, hit, key, Successor::Tombstone);
        drop(lock);
        // SAFETY: I-OWNER: no current chunk names the record any more.
        unsafe { self.retire(hit.slice) };
        if chunk.count_tombstone() {
            // The last entry of a map comes here, too.
            self.compaction.set_due();
            let leaf = self.tree.leaf(guard, key);
            if leaf.chunk.is(&chunk) {
                // Without memory the tombstones stay a while; the remove is done.
                let _ = self.rebalance(guard, leaf);
            }
        }
    }

    /// Changes an entry's word, wherever a rebalance has taken the entry by now;
    /// returns the chunk it was in.
    fn swap<'g>(
        &'g self,
        guard: &'g Guard,
        hit: Hit<'g>,
        key: &[u8],
        successor: Successor,
    ) -> Chunk<'g> {
        let mut hit = hit;
        while !hit.swap(successor) {
            self.wait_for_successor(guard, &hit.chunk);
            hit = self.find_held(guard, key, hit.slice);
        }
        hit.chunk
    }

    /// Waits until a frozen chunk has been replaced, or thawed for lack of memory.
    pub(crate) fn wait_for_successor(&self, guard: &Guard, chunk: &Chunk<'_>) {
        let backoff = Backoff::new();
        while chunk.is_claimed() && self.tree.is_current(guard, chunk) {
            backoff.wait();
        }
    }

    /// Runs `attempt`; when memory runs out, frees what readers have left and
    /// tries again before it gives up.
    fn with_memory<R>(&self, mut attempt: impl FnMut(&Guard) -> Result<R>) -> Result<R> {
        const ATTEMPTS_MAX: usize = 64;
        // Pins are short: only a thread that the system does not run stays in one for so many
        // sleeps of a wait, a tenth of a second and more.
        const WAITS_MAX: usize = 2_000;
        let reclaimer = &self.tree.reclaimer;
        let backoff = Backoff::new();
        let (mut attempts, mut waits) = (0, 0);
        loop {
            let retired_before = reclaimer.retired_bytes();
            let result = attempt(&reclaimer.pin());
            attempts += 1;
            if !matches!(result, Err(Error::OutOfMemory { .. })) {
                self.compact_if_due();
                return result;
            }
            if attempts == ATTEMPTS_MAX {
                return result;
            }
            while reclaimer.flush() == Left::Pinned
                && reclaimer.retired_bytes() >= retired_before
                && waits < WAITS_MAX
            {
                backoff.wait();
                waits += 1;
            }
            if reclaimer.retired_bytes() == retired_before {
                // What is retired is in the hands of readers, or nothing is.
                return result;
            }
        }
    }

    pub(crate) fn count_rebalance(&self) {
        self.rebalances.fetch_add(1, Ordering::Relaxed);
    }
}

/// Goes into a record by `try_enter`, and waits without a pin while it is busy; `None` if the key
/// is to be looked up again.
#[inline]
fn enter<T>(guard: &Guard, try_enter: impl Fn() -> Result<Entered<T>>) -> Result<Option<T>> {
    match try_enter()? {
        Entered::Inside(lock) => Ok(Some(lock)),
        Entered::Dead => Ok(None),
        Entered::Busy => enter_slow(guard, try_enter),
    }
}

#[cold]
fn enter_slow<T>(guard: &Guard, try_enter: impl Fn() -> Result<Entered<T>>) -> Result<Option<T>> {
    let (epoch, backoff) = (guard.epoch(), Backoff::new());
    loop {
        guard.outside(|| backoff.wait());
        if guard.epoch() != epoch {
            // The record may have gone.
            return Ok(None);
        }
        match try_enter()? {
            Entered::Inside(lock) => return Ok(Some(lock)),
            Entered::Dead => return Ok(None),
            Entered::Busy => {}
        }
    }
}

/// Is a slice of `capacity` right for a record of `wanted` bytes: large enough,
/// and not so large that it wastes more than a quarter?
pub(crate) fn suits(capacity: usize, wanted: usize) -> bool {
    const SLACK_BYTES: usize = 64;
    wanted <= capacity && capacity - wanted <= SLACK_BYTES.max(capacity / 4)
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
