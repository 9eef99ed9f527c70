//! The map itself: how each single-key operation goes. How a thread gets into a record is in `entering`, what a writer
//! leaves in a chunk in `writing`.
//!
//! Every operation is: pin, go down to the chunk, find the entry, take the
//! record the way it needs, and do it; if something moved in between, again.
//!
//! No caller's closure runs under a pin, and nothing that a closure may prolong is
//! waited for under one: either would hold back all that is retired meanwhile. The
//! record in hand stays by itself then (I-HELD); what else was reached is looked for
//! again if the guard says that it may have gone.

use std::sync::Arc;

use sapwood_engine::{Claim, Compute, Computed, Effect, Journal, Upsert};
use sapwood_mem::ArenaOptions;
use sapwood_mem::reclaim::{Guard, Left};
use sapwood_mem::sync::counter::AtomicU64;
use sapwood_mem::sync::{Backoff, Ordering};

use crate::chunk::{Chunk, Find, Hit, Wanted};
use crate::compact::Compaction;
use crate::entering::{Intent, Writer};
use crate::error::{Error, Result};
use crate::hazards::Hazards;
use crate::layout::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::options::Options;
use crate::record::{ReadLock, WriteLock};
use crate::striped::{Removals, StripedCounters};
use crate::tree::{Found, Leaf, Tree};
use crate::value::ValueMut;
use crate::writing::Fresh;

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
    pub(crate) hazards: Hazards,
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
        let hazards = Hazards::new();
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

    /// The same for a key whose chunk was found before, within the call.
    #[inline]
    pub(crate) fn read_lock_found(&self, found: Found, key: &[u8]) -> Result<Option<ReadLock<'_>>> {
        let guard = self.tree.reclaimer.pin();
        let lock = self.read_lock_in(&guard, found, key)?;
        // SAFETY: I-HELD: as above.
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
        self.put_at(None, key, value)
    }

    /// The same for a key whose chunk was found before: see
    /// [`put_if_absent_or_update_at`](Self::put_if_absent_or_update_at).
    #[inline]
    pub(crate) fn put_at(
        &self,
        mut found: Option<Found>,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        check_key(key)?;
        check_value(value.len())?;
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                let leaf = || self.leaf_once(guard, &mut found, key);
                match self.lock_writer_in(guard, key, Intent::Overwrite, leaf)? {
                    Writer::Locked(hit, lock) => {
                        self.overwrite(guard, hit, lock, value, &mut fresh)?;
                        return Ok(true);
                    }
                    Writer::Absent(leaf, miss) => {
                        if self.insert(guard, leaf, miss, key, value, &mut fresh)? {
                            return Ok(false);
                        }
                    }
                }
            }
        })
    }

    /// The chunk that was found, once; then the one that covers the key.
    #[inline]
    fn leaf_once<'g>(
        &'g self,
        guard: &'g Guard,
        found: &mut Option<Found>,
        key: &[u8],
    ) -> Leaf<'g> {
        let leaf = found.take().and_then(|found| self.tree.found_leaf(guard, found));
        leaf.unwrap_or_else(|| self.tree.leaf(guard, key))
    }

    /// Puts a value unless there is one; true if it did.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`], [`Error::OutOfMemory`].
    pub fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_new(None, key, value, self.is_logged())
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
                Writer::Locked(hit, lock) => self.unlink(&guard, hit, lock)?,
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
                self.unlink(&guard, hit, lock)?;
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
        let (mut change, mut answer) = (Some(change), None);
        self.update_with(key, &mut |value| answer = change.take().map(|change| change(value)))?;
        Ok(answer)
    }

    /// Updates a value by a closure of any type: the one compiled copy of `update`.
    fn update_with(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Option<()>> {
        self.update_at(None, key, change)
    }

    /// The same for a key whose chunk was found before. If the chunk was replaced since, a key that it lacks may have
    /// been put elsewhere.
    #[inline]
    pub(crate) fn update_at<R>(
        &self,
        mut found: Option<Found>,
        key: &[u8],
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        check_key(key)?;
        let mut change = Some(change);
        self.with_memory(|guard| {
            loop {
                let was_found = found.is_some();
                let leaf = || self.leaf_once(guard, &mut found, key);
                match self.lock_writer_in(guard, key, Intent::Change, leaf)? {
                    Writer::Absent(leaf, _) if was_found && leaf.chunk.is_claimed() => {}
                    Writer::Absent(..) => return Ok(None),
                    Writer::Locked(hit, lock) => {
                        return self.change(guard, hit, lock, &mut change).map(Some);
                    }
                }
            }
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
        let (mut change, mut answer) = (Some(change), None);
        let done = self.upsert_with(key, value, &mut |value| {
            answer = change.take().map(|change| change(value));
        })?;
        Ok(match (done, answer) {
            (Upsert::Updated(()), Some(answer)) => Upsert::Updated(answer),
            _ => Upsert::Inserted,
        })
    }

    /// Inserts a value or updates the one there: the one compiled copy of `put_if_absent_or_update`.
    fn upsert_with(
        &self,
        key: &[u8],
        value: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Upsert<()>> {
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
                let leaf = || self.leaf_once(guard, &mut found, key);
                match self.lock_writer_in(guard, key, Intent::Change, leaf)? {
                    Writer::Locked(hit, lock) => {
                        return self.change(guard, hit, lock, &mut change).map(Upsert::Updated);
                    }
                    Writer::Absent(leaf, miss) => {
                        if self.insert(guard, leaf, miss, key, value, &mut fresh)? {
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
                let (leaf, miss) = match self.lock_writer(guard, key, Intent::Decide)? {
                    Writer::Absent(leaf, miss) => (leaf, miss),
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
                let inserted = self.insert(guard, leaf, miss, key, &value, &mut fresh);
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
                self.unlink(guard, hit, lock)?;
                Ok(Computed::Removed)
            }
            Compute::Replace(value) => {
                check_value(value.len())?;
                lock.try_in_place(&self.hazards);
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
                lock.try_in_place(&self.hazards);
                let mut fresh = Fresh::new(&self.tree.arena);
                self.overwrite(guard, hit, lock, new, &mut fresh)?;
                Ok(true)
            }
        })
    }

    /// Puts a value unless there is one; true if it did. The journal hears of it, or has it from elsewhere. The chunk
    /// may have been found before: see [`put_if_absent_or_update_at`](Self::put_if_absent_or_update_at).
    #[inline]
    pub(crate) fn put_new(
        &self,
        mut found: Option<Found>,
        key: &[u8],
        value: &[u8],
        is_told: bool,
    ) -> Result<bool> {
        check_key(key)?;
        check_value(value.len())?;
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                let leaf = self.leaf_once(guard, &mut found, key);
                match leaf.chunk.find(key, Wanted::Record) {
                    Find::Hit(_) => return Ok(false),
                    Find::Miss(miss) => {
                        if self.append(guard, leaf, miss, (key, value), &mut fresh, is_told)? {
                            return Ok(true);
                        }
                    }
                }
            }
        })
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
