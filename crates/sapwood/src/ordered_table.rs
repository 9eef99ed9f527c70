//! An ordered table: its handle, and the operations that only read. The operations that change it
//! are in `ordered_table/change.rs`.

mod change;
mod entries;
mod stored;

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_chunkmap::ChunkMap;
use sapwood_occ::{Conflict, Versions};

use crate::db_log::Kept;
use crate::formats::{Formats, FormatsCell};
use crate::schema::Schema;
use crate::{
    Direction, Durability, Entry, Error, KeyRange, OrderedEngineError, OrderedStats,
    OrderedTableOptions, Range, Result, aggregate,
};

pub(crate) use entries::Entries;
#[cfg(feature = "sql")]
pub(crate) use stored::{Place, Run, runs};
pub(crate) use stored::{Source, Stored, write};

/// A named, ordered table from byte keys to byte values.
///
/// Keys are 1 byte to 64 KiB ([`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX)), in the order of their
/// bytes; values 0 bytes to 256 MiB ([`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX)). An
/// `OrderedTable` is a handle: clones are the same table, and threads share it freely. Where order
/// is of no use, [`HashTable`](crate::HashTable) is faster, and outgrows memory.
///
/// # Consistency
///
/// Each operation on one key is linearizable: it takes effect at one moment between its call
/// and its return, for every thread. A value is read whole, as it was at one moment, also while
/// another thread changes it in place. A scan or a range sees every key that is there through
/// the whole of it exactly once and in order; a key put or removed meanwhile may or may not be
/// seen. [`get_many`](Self::get_many), [`put_many`](Self::put_many),
/// [`remove_range`](Self::remove_range), [`retain`](Self::retain) and [`clear`](Self::clear) are a
/// series of operations, not one atomic one.
///
/// A closure that is given a value may call back into this table or another; a call that would
/// wait for itself answers [`OrderedEngineError::Reentrant`] or [`OrderedEngineError::WouldBlock`].
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let table = db.create_ordered_table("oaks", OrderedTableOptions::default())?;
/// table.put(b"robur", b"pedunculate")?;
/// table.put(b"petraea", b"sessile")?;
/// let len = table.get_with(b"robur", |value| value.len())?;
/// assert_eq!(len, Some(11));
/// let first = table.first()?.expect("two entries");
/// assert_eq!((first.key(), first.value()), (&b"petraea"[..], &b"sessile"[..]));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Clone)]
pub struct OrderedTable {
    pub(crate) shared: Arc<Shared>,
    /// What changes through this handle wait for; `None` for what those of the database do.
    durability: Option<Durability>,
}

pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    entries: Entries,
    pub(crate) fields: Option<aggregate::Layout>,
    formats: FormatsCell,
    pub(crate) kept: Kept,
}

impl OrderedTable {
    /// A table that ends with the process.
    pub(crate) fn in_memory(
        name: Arc<str>,
        options: OrderedTableOptions,
        versions: &Arc<Versions>,
    ) -> Result<Self> {
        let map = Arc::new(options.new_map(&name)?);
        let (entries, kept) = (Entries::Memory(map), Kept::in_memory(versions));
        Ok(Self::of(name, entries, options, FormatsCell::default(), kept))
    }

    pub(crate) fn of(
        name: Arc<str>,
        entries: Entries,
        options: OrderedTableOptions,
        formats: FormatsCell,
        kept: Kept,
    ) -> Self {
        let shared = Shared { name, entries, fields: options.fields, formats, kept };
        Self { shared: Arc::new(shared), durability: None }
    }

    /// The table's name.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert_eq!(table.name(), "t");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The typed columns of the table, if it was made with some. A column that was added
    /// ([`Db::add_column`](crate::Db::add_column)) is among them at once.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:date, hits:u64, key(day)".parse().expect("a schema");
    /// let table = db.create_ordered_table("t", OrderedTableOptions::default().schema(schema))?;
    /// assert_eq!(table.schema().and_then(|schema| schema.find("hits")), Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self) -> Option<&Schema> {
        self.formats().map(|formats| formats.newest().schema())
    }

    pub(crate) fn formats(&self) -> Option<&Arc<Formats>> {
        self.shared.formats.get()
    }

    /// Gives the table its columns, unless it has them.
    pub(crate) fn set_formats(&self, formats: Arc<Formats>) {
        self.shared.formats.get_or_init(|| formats);
    }

    /// A handle of the same table whose changes wait for something else than
    /// [`DbOptions::durability`](crate::DbOptions::durability) says. It says nothing of a table that
    /// lives in memory alone.
    ///
    /// ```
    /// use sapwood::{Db, Durability, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let orders = db.create_ordered_table("orders", OrderedTableOptions::default())?;
    /// orders.put(b"1", b"an oak")?; // On the disk soon.
    /// orders.with_durability(Durability::Sync).put(b"2", b"an elm")?; // It is, with all before it.
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Self { shared: Arc::clone(&self.shared), durability: Some(durability) }
    }

    /// Reads a value where it lies; answers what `read` answers, or `None` without the key.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`]: a key that no table has ([`OrderedEngineError::KeyLength`]);
    /// inside a closure that changes a value also [`OrderedEngineError::Reentrant`] and
    /// [`OrderedEngineError::WouldBlock`]. Of a table that is [open to be
    /// read](crate::Db::open_read_only), [`Error::Log`] where its file is damaged or cannot be read, as of
    /// every method that reads.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get_with(b"oak", |value| value.len())?, Some(7));
    /// assert_eq!(table.get_with(b"elm", |value| value.len())?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        match self.in_place() {
            None => self.named(self.map()?.get_with(key.as_ref(), read)),
            Some(stored) => stored.get_with(key.as_ref(), read),
        }
    }

    /// Copies a value out.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get(b"oak")?.as_deref(), Some(&b"quercus"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        match self.in_place() {
            None => self.named(self.map()?.get(key.as_ref())),
            Some(stored) => stored.get_with(key.as_ref(), <[u8]>::to_vec),
        }
    }

    /// Whether the key is there.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`]: a key that no table has ([`OrderedEngineError::KeyLength`]); [`Error::Log`] as of
    /// [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert!(table.contains_key(b"oak")?);
    /// assert!(!table.contains_key(b"elm")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        match self.in_place() {
            None => self.named(self.map()?.contains_key(key.as_ref())),
            Some(stored) => Ok(stored.get_with(key.as_ref(), |_| ())?.is_some()),
        }
    }

    /// Reads a counter, as [`add`](Self::add) makes them, and leaves it as it is; `None` without
    /// the key, where `add` would make one.
    ///
    /// # Errors
    /// [`OrderedEngineError::NotACounter`] if the value has not 8 bytes; otherwise as
    /// [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let hits = Db::in_memory().create_ordered_table("hits", OrderedTableOptions::default())?;
    /// hits.add(b"/index.html", 42)?;
    /// assert_eq!(hits.get_counter(b"/index.html")?, Some(42));
    /// assert_eq!(hits.get_counter(b"/other.html")?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_counter(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>> {
        let counter = self.get_with(key, |value| match value.try_into() {
            Ok(bytes) => Ok(i64::from_le_bytes(bytes)),
            Err(_) => Err(OrderedEngineError::NotACounter { len: value.len() }),
        })?;
        self.named(counter.transpose())
    }

    /// Calls `read(i, value)` once for each `keys[i]`, in order: faster than single calls on a
    /// table larger than the caches, since the searches overlap.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with), at the first key that is refused; `read` was called for
    /// others.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("elm", "ulmus"), ("oak", "quercus")])?;
    /// let mut lens = Vec::new();
    /// table.get_many(&["oak", "ash", "elm"], |_index, value| lens.push(value.map(<[u8]>::len)))?;
    /// assert_eq!(lens, [Some(7), None, Some(5)]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.named(self.map()?.get_many(keys, read))
    }

    /// The entry with the least key.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`]: inside a closure that changes a value,
    /// [`OrderedEngineError::Reentrant`] and [`OrderedEngineError::WouldBlock`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert!(table.first()?.is_none());
    /// table.put_many(&[("b", "2"), ("a", "1")])?;
    /// assert_eq!(table.first()?.expect("two entries").key(), b"a");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<Entry<'_>>> {
        self.named(self.map()?.first())
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("b", "2"), ("a", "1")])?;
    /// assert_eq!(table.last()?.expect("two entries").value(), b"2");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<Entry<'_>>> {
        self.named(self.map()?.last())
    }

    /// The entry with the greatest key at or below `key`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// let entry = table.floor(b"b")?.expect("there is one");
    /// assert_eq!(entry.key(), b"b");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn floor(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        self.named(self.map()?.floor(key.as_ref()))
    }

    /// The entry with the greatest key below `key`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// let entry = table.lower(b"b")?.expect("there is one");
    /// assert_eq!(entry.key(), b"a");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn lower(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        self.named(self.map()?.lower(key.as_ref()))
    }

    /// The entry with the least key at or above `key`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// let entry = table.ceiling(b"c")?.expect("there is one");
    /// assert_eq!(entry.key(), b"d");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ceiling(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        self.named(self.map()?.ceiling(key.as_ref()))
    }

    /// The entry with the least key above `key`, in the whole table: with composite keys that may be one of
    /// another prefix; within one, take the first of its [`range`](Self::range).
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// let entry = table.higher(b"b")?.expect("there is one");
    /// assert_eq!(entry.key(), b"d");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn higher(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        self.named(self.map()?.higher(key.as_ref()))
    }

    /// The entries in a range as an iterator, both ways. Its items are `Result<Entry>`.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, key};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// for minute in [485_u16, 492, 510] {
    ///     table.put(&key::encode(&("Museum", minute)), b"U6")?;
    /// }
    /// let (from, to) = (key::encode(&("Museum", 490_u16)), key::encode(&("Museum", 500_u16)));
    /// assert_eq!(table.range(from..to).count(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// for key in ["a", "b", "c"] {
    ///     table.put(key.as_bytes(), b"")?;
    /// }
    /// let mut keys = Vec::new();
    /// for entry in table.range("b"..).rev() {
    ///     keys.push(entry?.key().to_vec());
    /// }
    /// assert_eq!(keys, [b"c", b"b"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Range<'_> {
        let (entries, refused) = match self.map() {
            Ok(map) => (Some(map.range(range)), None),
            Err(error) => (None, Some(Box::new(error))),
        };
        Range { entries, refused, table: &self.shared.name }
    }

    /// The entries in a range as a stream that creates nothing per entry; `visit` ends it
    /// with `ControlFlow::Break`.
    ///
    /// # Errors
    /// As [`first`](Self::first); `visit` was called for the entries before.
    ///
    /// ```
    /// # use sapwood::Direction;
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let found = table.scan("b".., Direction::Ascending, |key, value| {
    ///     if value == b"3" { ControlFlow::Break(key.to_vec()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(found, ControlFlow::Break(b"c".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<B>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        match self.in_place() {
            None => self.named(self.map()?.scan(range, direction, visit)),
            Some(stored) => stored.scan(&range, direction, visit),
        }
    }

    /// As [`scan`](Self::scan), of the keys alone, without touching values.
    ///
    /// # Errors
    /// [`Error::Log`] as of [`get_with`](Self::get_with): keys alone wait for no closure.
    ///
    /// ```
    /// # use sapwood::Direction;
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let mut keys = Vec::new();
    /// let _ = table.scan_keys(.., Direction::Descending, |key| {
    ///     keys.push(key.to_vec());
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(keys, [b"c", b"b", b"a"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan_keys<B>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.named(self.map()?.scan_keys(range, direction, visit))
    }

    /// Calls `visit(key, value)` for every entry, in the order of the keys; `visit` ends it with
    /// `ControlFlow::Break`.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let mut bytes = 0;
    /// let _ = table.for_each(|key, value| {
    ///     bytes += key.len() + value.len();
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(bytes, 4);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.scan(.., Direction::Ascending, visit)
    }

    /// How many entries. The table counts them, at no cost: exact while nothing changes it.
    ///
    /// # Errors
    /// Of a table that is [open to be read](crate::Db::open_read_only), [`Error::Log`] where its file is damaged or cannot
    /// be read.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len(&self) -> Result<usize> {
        match &self.shared.entries {
            Entries::Memory(map) => Ok(map.len()),
            Entries::Stored(stored) => stored.len(),
        }
    }

    /// How many entries there may be, at no cost: right while nothing changes the table.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len_estimate(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len_estimate(&self) -> usize {
        match &self.shared.entries {
            Entries::Memory(map) => map.len(),
            Entries::Stored(stored) => stored.len_estimate(),
        }
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert!(table.is_empty()?);
    /// table.put(b"k", b"v")?;
    /// assert!(!table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// What the table holds and costs, with every byte accounted for.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"key", b"value")?;
    /// let stats = table.stats();
    /// assert_eq!((stats.entries, stats.key_bytes, stats.value_bytes), (1, 3, 5));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn stats(&self) -> OrderedStats {
        match &self.shared.entries {
            Entries::Memory(map) => map.stats(),
            Entries::Stored(stored) => stored.stats(),
        }
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

    /// Verifies every structural invariant of the engine. Call it while nothing changes the
    /// table.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: the first invariant that does not hold, and where.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// table.check()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        self.map()?.check().map_err(|corruption| Error::Corrupt {
            table: Arc::clone(&self.shared.name),
            what: corruption.what,
        })
    }

    /// Writes the table's structure for a person to read.
    ///
    /// # Errors
    /// What `out` answers.
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

    /// As [`map_at`](Self::map_at), of many keys.
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

    /// What a change holds. A commit that lasts too long may wait for the closure that the change is made in.
    #[inline]
    fn shared_keys<'k>(
        &self,
        shared: std::result::Result<sapwood_occ::Shared<'k>, Conflict>,
    ) -> Result<sapwood_occ::Shared<'k>> {
        shared.map_err(|_| self.refused(OrderedEngineError::WouldBlock))
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
        result.map_err(|cause| self.refused(cause))
    }

    // Programs have a copy of each operation for each type of key: this is no part of it.
    #[cold]
    fn refused(&self, cause: OrderedEngineError) -> Error {
        match cause {
            OrderedEngineError::Journal(refused) => self.shared.kept.refused(refused),
            cause => Error::OrderedEngine { table: Arc::clone(&self.shared.name), cause },
        }
    }
}

impl std::fmt::Debug for OrderedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderedTable")
            .field("name", &self.name())
            .field("entries", &self.len_estimate())
            .finish_non_exhaustive()
    }
}
