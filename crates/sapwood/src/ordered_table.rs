//! The ordered engine as a table.

mod entries;
mod stored;

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_chunkmap::{BatchError, ChunkMap};
use sapwood_occ::{Conflict, Versions};

use crate::aggregate::{
    self, Compiled, DisaggregationRun, Disaggregator, Execution, Layout, Partial, Pending, Plan,
};
use crate::db_log::Kept;
use crate::formats::{Formats, FormatsCell};
use crate::table::{
    Bounds, Entry, Nearest, Range, Refusal, SortedVerbs, StoredVerbs, Verbs, operations,
};
use crate::{
    Compute, Computed, Direction, Error, OrderedEngineError, OrderedStats, OrderedTableOptions,
    Result, Table, Upsert, ValueMut,
};

pub(crate) use entries::Entries;
#[cfg(feature = "sql")]
pub(crate) use stored::{Place, Run, runs};
pub(crate) use stored::{Source, Stored, write};

/// The engine that keeps keys in order, in memory: chunks of sorted entries under a tree, after Oak.
#[derive(Debug, Clone, Copy)]
pub enum Ordered {}

/// A table that keeps its keys in order, in memory: scans both ways beside many writers, updates in place.
///
/// Keys are 1 byte to 64 KiB ([`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX)), in the order of their bytes; values 0
/// bytes to 256 MiB ([`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX)). Where order is of no use,
/// [`HashTable`](crate::HashTable) is faster, and outgrows memory.
///
/// ```
/// use sapwood::{Db, Direction, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let table = db.create_ordered_table("oaks", OrderedTableOptions::default())?;
/// table.put_many(&[("robur", "pedunculate"), ("petraea", "sessile"), ("rubra", "red")])?;
/// let mut names = Vec::new();
/// table.scan("r".., Direction::Descending, |_key, value| names.push(value.to_vec()))?;
/// assert_eq!(names, [&b"red"[..], b"pedunculate"]);
/// # Ok::<(), sapwood::Error>(())
/// ```
pub type OrderedTable = Table<Ordered>;

pub struct Shared {
    pub(crate) name: Arc<str>,
    entries: Entries,
    pub(crate) fields: Option<aggregate::Layout>,
    formats: FormatsCell,
    pub(crate) kept: Kept,
}

impl Table<Ordered> {
    /// A table that ends with the process.
    pub(crate) fn in_memory(
        name: Arc<str>,
        options: OrderedTableOptions,
        versions: &Arc<Versions>,
    ) -> Result<Self> {
        let map = Arc::new(options.new_map(&name)?);
        let (entries, kept) = (Entries::Memory(map), Kept::in_memory(versions));
        Ok(Self::with_entries(name, entries, options, FormatsCell::default(), kept))
    }

    pub(crate) fn with_entries(
        name: Arc<str>,
        entries: Entries,
        options: OrderedTableOptions,
        formats: FormatsCell,
        kept: Kept,
    ) -> Self {
        Self::of(Arc::new(Shared { name, entries, fields: options.fields, formats, kept }))
    }

    /// Gives the table its columns, unless it has them.
    pub(crate) fn set_formats(&self, formats: Arc<Formats>) {
        self.shared.formats.get_or_init(|| formats);
    }

    /// Moves what removals have left together, and gives the memory that becomes free back to the
    /// system; answers how many bytes. Afterwards the table takes about what a fresh load of its
    /// entries takes.
    ///
    /// A table gives memory back by itself, too: at removals, once more than half of its memory
    /// is idle, and never the last 4 MiB. So call this after many removals, before a long rest,
    /// or where a table is small.
    ///
    /// Other threads go on meanwhile; what lies in sparse places is copied, a piece at a time.
    /// Within a memory budget that is used up it goes as far as there is room. A record that a
    /// closure reads or an [`Entry`] holds stays until its reader has left, of this thread as of
    /// others: then call it again later.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("sessions", OrderedTableOptions::default())?;
    /// for session in 0..20_000_u32 {
    ///     table.put(&session.to_be_bytes(), &[0; 500])?;
    /// }
    /// for session in (0..20_000_u32).filter(|session| session % 10 != 0) {
    ///     table.remove(&session.to_be_bytes())?;
    /// }
    /// let given_back = table.trim();
    /// let stats = table.stats();
    /// assert!(stats.reserved_bytes < 2 * (stats.key_bytes + stats.value_bytes));
    /// # println!("{given_back}");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn trim(&self) -> u64 {
        match &self.shared.entries {
            Entries::Memory(map) => map.trim(),
            Entries::Stored(stored) => stored.trim(),
        }
    }

    /// Moves the entries of neighbouring keys together in memory, so that scans find them one behind the other.
    ///
    /// A table does so by itself where it is scanned: the second scan over scattered entries moves
    /// them. Call this after a load in no order, before many scans; after many removals, call
    /// [`trim`](Self::trim) first. Afterwards the table takes about as much memory as before, and on the way a
    /// twentieth more. Near the end of a memory budget, entries stay where they are.
    ///
    /// Other threads go on meanwhile. An entry that a thread changes at that moment stays where it
    /// is, and so do entries of more than 4 KiB, and those of a stored table that were not read yet.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, Direction, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("readings", OrderedTableOptions::default())?;
    /// for reading in 0..20_000_u32 {
    ///     table.put(&reading.reverse_bits().to_be_bytes(), &[0; 100])?;
    /// }
    /// table.compact();
    /// let mut count = 0;
    /// table.scan(.., Direction::Ascending, |_key, _value| {
    ///     count += 1;
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(count, 20_000);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compact(&self) {
        match &self.shared.entries {
            Entries::Memory(map) => map.compact(),
            Entries::Stored(stored) => stored.compact(),
        }
    }

    /// Writes the table's structure for a person to read.
    ///
    /// # Errors
    /// The errors of `out`.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// let mut text = Vec::new();
    /// table.dump(&mut text)?;
    /// assert!(!text.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dump(&self, out: &mut impl io::Write) -> io::Result<()> {
        self.map().map_err(io::Error::other)?.dump(out)
    }

    /// The entries in memory; those of a snapshot are brought there first.
    #[inline]
    pub(crate) fn map(&self) -> Result<&ChunkMap> {
        match &self.shared.entries {
            Entries::Memory(map) => Ok(map),
            Entries::Stored(stored) => stored.map(),
        }
    }

    /// The map with the entries that a key belongs to, which are brought into memory first.
    #[inline]
    pub(crate) fn map_at(&self, key: &[u8]) -> Result<&ChunkMap> {
        match &self.shared.entries {
            Entries::Memory(map) => Ok(map),
            Entries::Stored(stored) => stored.map_at(key),
        }
    }

    /// The map with the entries that many keys belong to: see [`map_at`](Self::map_at).
    #[inline]
    fn map_at_all<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<&ChunkMap> {
        match &self.shared.entries {
            Entries::Memory(map) => Ok(map),
            Entries::Stored(stored) => stored.map_at_all(keys),
        }
    }

    /// The snapshot that has the entries, in memory or not.
    #[cfg(feature = "sql")]
    pub(crate) fn stored_entries(&self) -> Option<&Stored> {
        match &self.shared.entries {
            Entries::Memory(_) => None,
            Entries::Stored(stored) => Some(stored),
        }
    }

    /// The snapshot that has the entries, while they are not all in memory.
    #[inline]
    pub(crate) fn in_place(&self) -> Option<&Stored> {
        match &self.shared.entries {
            Entries::Memory(_) => None,
            Entries::Stored(stored) => stored.is_in_place().then_some(stored),
        }
    }

    /// Holds the keys of a change. A commit that takes too long may wait for the closure that the change is made in.
    #[inline]
    fn shared_keys<'k>(
        &self,
        shared: std::result::Result<sapwood_occ::Shared<'k>, Conflict>,
    ) -> Result<sapwood_occ::Shared<'k>> {
        shared.map_err(|_| self.error(OrderedEngineError::WouldBlock))
    }

    /// Runs a change of a key.
    #[inline]
    pub(crate) fn change_key<R>(
        &self,
        key: &[u8],
        change: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let Shared { kept, .. } = &*self.shared;
        kept.change(self.shared_keys(kept.keys.share(key))?, self.durability, change)
    }

    /// Runs a change of some keys.
    #[inline]
    pub(crate) fn change_keys<'k, R>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        change: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let Shared { kept, .. } = &*self.shared;
        kept.change(self.shared_keys(kept.keys.share_many(keys))?, self.durability, change)
    }

    /// Runs a change of any keys.
    #[inline]
    pub(crate) fn change_any<R>(&self, change: impl FnOnce() -> Result<R>) -> Result<R> {
        let Shared { kept, .. } = &*self.shared;
        kept.change(self.shared_keys(kept.keys.share_all())?, self.durability, change)
    }

    /// Puts the table's name to an engine's error.
    #[inline]
    pub(crate) fn named<T>(&self, result: std::result::Result<T, OrderedEngineError>) -> Result<T> {
        result.map_err(|cause| self.error(cause))
    }

    // Programs have a copy of each operation for each type of key: this is no part of it.
    #[cold]
    fn error(&self, cause: OrderedEngineError) -> Error {
        match cause {
            OrderedEngineError::Journal(refused) => self.shared.kept.refused(refused),
            cause => Error::OrderedEngine { table: Arc::clone(&self.shared.name), cause },
        }
    }

    /// Puts the table's name to an engine's error about a batch.
    fn batch<R>(&self, result: std::result::Result<R, BatchError>) -> Result<R> {
        result.map_err(|stopped| Error::OrderedBatch {
            table: self.shared.name.clone(),
            done: stopped.done,
            cause: stopped.error,
        })
    }
}

impl Verbs for Ordered {
    type Shared = Arc<Shared>;
    type Iter<'a> = Range<'a>;

    fn shared_name(table: &OrderedTable) -> &Arc<str> {
        &table.shared.name
    }

    fn debug(table: &OrderedTable, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedTable")
            .field("name", &table.name())
            .field("entries", &table.len_estimate())
            .finish_non_exhaustive()
    }

    fn formats(table: &OrderedTable) -> Option<&Arc<Formats>> {
        table.shared.formats.get()
    }

    fn refused(table: &OrderedTable, refusal: Refusal) -> Error {
        table.error(match refusal {
            Refusal::NotACounter { len } => OrderedEngineError::NotACounter { len },
            Refusal::Overflow { value, delta } => OrderedEngineError::Overflow { value, delta },
        })
    }

    #[inline]
    fn get_with<R>(
        table: &OrderedTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        match table.in_place() {
            None => table.named(table.map()?.get_with(key, read)),
            Some(stored) => stored.get_with(key, read),
        }
    }

    #[inline]
    fn contains_key(table: &OrderedTable, key: &[u8]) -> Result<bool> {
        match table.in_place() {
            None => table.named(table.map()?.contains_key(key)),
            Some(stored) => Ok(stored.get_with(key, |_| ())?.is_some()),
        }
    }

    #[inline]
    fn get_many<K: AsRef<[u8]>>(
        table: &OrderedTable,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        table.named(table.map()?.get_many(keys, read))
    }

    #[inline]
    fn put(table: &OrderedTable, key: &[u8], value: &[u8]) -> Result<()> {
        table.change_key(key, || table.named(table.map_at(key)?.put(key, value).map(drop)))
    }

    #[inline]
    fn put_if_absent(table: &OrderedTable, key: &[u8], value: &[u8]) -> Result<bool> {
        table.change_key(key, || table.named(table.map_at(key)?.put_if_absent(key, value)))
    }

    #[inline]
    fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        table: &OrderedTable,
        entries: &[(K, V)],
    ) -> Result<()> {
        let keys = || entries.iter().map(|(key, _)| key.as_ref());
        table.change_keys(keys(), || {
            table.batch(table.map_at_all(keys())?.put_many(entries).map(drop))
        })
    }

    #[inline]
    fn update<R>(
        table: &OrderedTable,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let name = &table.shared.name;
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            change(&mut ValueMut::of_ordered(value, name))
        };
        table.change_key(key, || table.named(table.map_at(key)?.update(key, change)))
    }

    #[inline]
    fn update_many<K: AsRef<[u8]>>(
        table: &OrderedTable,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        let name = &table.shared.name;
        let change = |index, value: &mut sapwood_chunkmap::ValueMut<'_>| {
            change(index, &mut ValueMut::of_ordered(value, name));
        };
        table.change_keys(keys.iter().map(AsRef::as_ref), || {
            let map = table.map_at_all(keys.iter().map(AsRef::as_ref))?;
            table.batch(map.update_many(keys, change))
        })
    }

    #[inline]
    fn put_if_absent_or_update<R>(
        table: &OrderedTable,
        key: &[u8],
        value: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let name = &table.shared.name;
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            change(&mut ValueMut::of_ordered(value, name))
        };
        table.change_key(key, || {
            table.named(table.map_at(key)?.put_if_absent_or_update(key, value, change))
        })
    }

    #[inline]
    fn compare_and_put(
        table: &OrderedTable,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        table
            .change_key(key, || table.named(table.map_at(key)?.compare_and_put(key, expected, new)))
    }

    #[inline]
    fn add(table: &OrderedTable, key: &[u8], delta: i64) -> Result<i64> {
        table.change_key(key, || table.named(table.map_at(key)?.add(key, delta)))
    }

    #[inline]
    fn add_many<K: AsRef<[u8]>>(table: &OrderedTable, deltas: &[(K, i64)]) -> Result<()> {
        let keys = || deltas.iter().map(|(key, _)| key.as_ref());
        table.change_keys(keys(), || table.batch(table.map_at_all(keys())?.add_many(deltas)))
    }

    #[inline]
    fn remove(table: &OrderedTable, key: &[u8]) -> Result<bool> {
        table.change_key(key, || table.named(table.map_at(key)?.remove(key)))
    }

    #[inline]
    fn remove_with<R>(
        table: &OrderedTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        table.change_key(key, || table.named(table.map_at(key)?.remove_with(key, read)))
    }

    #[inline]
    fn compute(
        table: &OrderedTable,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        table.change_key(key, || table.named(table.map_at(key)?.compute(key, decide)))
    }

    fn retain(table: &OrderedTable, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        table.change_any(|| table.named(table.map()?.retain(keep)))
    }

    fn clear(table: &OrderedTable) -> Result<()> {
        table.change_any(|| table.named(table.map()?.clear()))
    }

    #[inline]
    fn for_each<B>(
        table: &OrderedTable,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        Self::scan(table, Nearest::First.range().0, Direction::Ascending, visit)
    }

    fn iter(table: &OrderedTable) -> Range<'_> {
        table.range(..)
    }

    fn len(table: &OrderedTable) -> Result<usize> {
        match &table.shared.entries {
            Entries::Memory(map) => Ok(map.len()),
            Entries::Stored(stored) => stored.len(),
        }
    }
}

impl SortedVerbs for Ordered {
    #[inline]
    fn scan<B>(
        table: &OrderedTable,
        bounds: Bounds<'_>,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        match table.in_place() {
            None => table.named(table.map()?.scan(bounds, direction, visit)),
            Some(stored) => stored.scan(&bounds, direction, visit),
        }
    }

    #[inline]
    fn scan_keys<B>(
        table: &OrderedTable,
        bounds: Bounds<'_>,
        direction: Direction,
        visit: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        table.named(table.map()?.scan_keys(bounds, direction, visit))
    }

    fn range<'a>(table: &'a OrderedTable, bounds: Bounds<'_>) -> Range<'a> {
        match table.map() {
            Ok(map) => Range::in_place(&table.shared.name, map.range(bounds)),
            Err(error) => Range::refused(&table.shared.name, error),
        }
    }

    fn nearest<'a>(table: &'a OrderedTable, nearest: Nearest<'_>) -> Result<Option<Entry<'a>>> {
        let map = table.map()?;
        let entry = match nearest {
            Nearest::First => map.first(),
            Nearest::Last => map.last(),
            Nearest::Floor(key) => map.floor(key),
            Nearest::Lower(key) => map.lower(key),
            Nearest::Ceiling(key) => map.ceiling(key),
            Nearest::Higher(key) => map.higher(key),
        };
        Ok(table.named(entry)?.map(Entry::in_place))
    }

    fn count(table: &OrderedTable, bounds: Bounds<'_>) -> Result<u64> {
        match table.in_place() {
            None => Ok(table.map()?.count(bounds)),
            Some(stored) => {
                let mut count = 0;
                let _end = stored.scan(&bounds, Direction::Ascending, |_key, _value| {
                    count += 1;
                    ControlFlow::<()>::Continue(())
                })?;
                Ok(count)
            }
        }
    }

    fn nth(table: &OrderedTable, rank: u64) -> Result<Option<Entry<'_>>> {
        Ok(table.named(table.map()?.nth(rank))?.map(Entry::in_place))
    }

    fn pop(table: &OrderedTable, end: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        table.change_any(|| {
            let map = table.map()?;
            table.named(match end {
                Direction::Ascending => map.pop_first(),
                Direction::Descending => map.pop_last(),
            })
        })
    }

    fn remove_range(table: &OrderedTable, bounds: Bounds<'_>) -> Result<u64> {
        table.change_any(|| table.named(table.map()?.remove_range(bounds)))
    }
}

impl StoredVerbs for Ordered {
    type Stats = OrderedStats;

    fn len_estimate(table: &OrderedTable) -> usize {
        match &table.shared.entries {
            Entries::Memory(map) => map.len(),
            Entries::Stored(stored) => stored.len_estimate(),
        }
    }

    fn stats(table: &OrderedTable) -> OrderedStats {
        match &table.shared.entries {
            Entries::Memory(map) => map.stats(),
            Entries::Stored(stored) => stored.stats(),
        }
    }

    fn check(table: &OrderedTable) -> Result<()> {
        table.map()?.check().map_err(|corruption| Error::Corrupt {
            table: Arc::clone(&table.shared.name),
            what: corruption.what,
        })
    }

    fn fields(table: &OrderedTable) -> Option<&Layout> {
        table.shared.fields.as_ref()
    }

    operations!(map, ?);
}
