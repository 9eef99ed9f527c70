//! The hash engine as a table.

mod snapshot;
mod verbs;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use sapwood_engine::{broken_off, keep_break};
use sapwood_hashlog::HashLog;
use sapwood_occ::Conflict;

use crate::db_log::Kept;
use crate::directory::Directory;
use crate::formats::Formats;
use crate::table::Visit;
use crate::{
    CheckpointInfo, Compacted, Cut, Error, HashEngineError, HashTableOptions, RecordLayout, Result,
    Table, aggregate,
};

pub use snapshot::HashSnapshot;

/// The engine that finds keys by their hash: a latch-free index over a hybrid log, after FASTER.
#[derive(Debug, Clone, Copy)]
pub enum Hash {}

/// A table without order: the fastest operations on single keys, and with a directory more entries than memory
/// holds.
///
/// Keys are 1 byte to 16 KiB less one, values any length that lets a record fit into a page of the log
/// ([`HashTableOptions::page_bytes`](crate::HashTableOptions::page_bytes)); with
/// [`RecordLayout::Fixed8`](crate::RecordLayout::Fixed8) both are exactly 8 bytes. For order, neighbours and ranges
/// there is [`OrderedTable`](crate::OrderedTable).
///
/// [`for_each`](Table::for_each) sees every key that is there throughout exactly once, and so do the steps of
/// [`scan_from`](Table::scan_from) together; [`scan_log`](Table::scan_log) and [`snapshot`](Table::snapshot) see the table
/// as of one moment.
///
/// ```
/// use sapwood::{Db, HashTableOptions};
///
/// let db = Db::in_memory();
/// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
/// hits.add(b"/index.html", 1)?;
/// hits.add(b"/index.html", 1)?;
/// assert_eq!(hits.get_counter(b"/index.html")?, Some(2));
/// # Ok::<(), sapwood::Error>(())
/// ```
pub type HashTable = Table<Hash>;

pub struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) log: Arc<HashLog>,
    pub(crate) fields: Option<aggregate::Layout>,
    /// None in a table of plain bytes. Set before a program has the table.
    formats: OnceLock<Arc<Formats>>,
    /// Keeps other processes out of the directory for as long as a handle could write to it.
    directory: Option<Arc<Directory>>,
    pub(crate) kept: Kept,
    /// True where the engine has fast changes, and no log has them.
    has_fast_path: bool,
}

impl Table<Hash> {
    pub(crate) fn new(
        name: Arc<str>,
        log: Arc<HashLog>,
        fields: Option<aggregate::Layout>,
        directory: Option<Arc<Directory>>,
        kept: Kept,
    ) -> Self {
        let has_fast_path = log.has_fast_path() && kept.is_in_memory();
        let formats = OnceLock::new();
        Self::of(Arc::new(Shared { name, log, fields, formats, directory, kept, has_fast_path }))
    }

    /// Gives the table its columns, unless it has them.
    pub(crate) fn set_formats(&self, formats: Arc<Formats>) {
        self.shared.formats.get_or_init(|| formats);
    }

    /// Part `part` of `parts` disjoint parts of [`for_each`](Self::for_each), which are the whole:
    /// several threads take one each.
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let mut entries = 0;
    /// for part in 0..4 {
    ///     table.for_each_part(part, 4, |_key, _value| entries += 1)?;
    /// }
    /// assert_eq!(entries, 3);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each_part<V: Visit>(
        &self,
        part: usize,
        parts: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> V,
    ) -> Result<V> {
        let flow = keep_break(|broken| {
            self.walk_part(part, parts, &mut |key, value| {
                broken_off(visit(key, value).into_flow(), broken)
            })
        })?;
        Ok(V::of_flow(flow))
    }

    fn walk_part(
        &self,
        part: usize,
        parts: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.named(self.log().for_each_part(part, parts, visit))
    }

    /// One step of a walk of all entries that holds nothing between steps, as a client walks that
    /// comes back with a cursor (Redis: `SCAN`). Calls `visit(key, value)` for the entries of whole
    /// buckets from `cursor` on, until `entries_min` were visited or there are no more, and of one
    /// bucket at least; answers the cursor of the next step, or 0 at the end. The first step has
    /// cursor 0.
    ///
    /// # Consistency
    ///
    /// A key that is there from the first step to the end of the last one is visited exactly once,
    /// with a value that it had meanwhile; one that is put or removed meanwhile is visited or not.
    /// Between steps the table may grow, be compacted, take checkpoints, and be opened again from
    /// one. The steps of a walk may differ in length, and any number of walks go on at once.
    ///
    /// Every number is taken as a cursor. One that no step answered begins a walk of some of the
    /// entries.
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each); the same step may be tried again, with the same cursor.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("ash", "fraxinus"), ("elm", "ulmus"), ("oak", "quercus")])?;
    /// let (mut cursor, mut keys) = (0, Vec::new());
    /// loop {
    ///     cursor = table.scan_from(cursor, 1, |key, _value| keys.push(key.to_vec()))?;
    ///     if cursor == 0 {
    ///         break;
    ///     }
    /// }
    /// keys.sort();
    /// assert_eq!(keys, [b"ash", b"elm", b"oak"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan_from(
        &self,
        cursor: u64,
        entries_min: usize,
        visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        self.named(self.log().scan_from(cursor, entries_min, visit))
    }

    /// An entry chosen by `random`, a number all of whose bits are random, as a key and a value that
    /// are copied out (Redis: `RANDOMKEY`); `None` without entries. The table draws no numbers
    /// itself.
    ///
    /// Every entry can be chosen. The number names a bucket and one of its entries, so an entry of a
    /// bucket with few others, or behind empty ones, is chosen more often. A call looks at a bucket
    /// or a few: at many only where most entries were removed, and at all where all were.
    ///
    /// # Consistency
    ///
    /// The entry was there at a moment of the call. `None` says that no entry was there throughout.
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// let random = 0x9E37_79B9_7F4A_7C15; // from a generator of random numbers
    /// assert_eq!(table.sample(random)?, None);
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.sample(random)?, Some((b"oak".to_vec(), b"quercus".to_vec())));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn sample(&self, random: u64) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.named(self.log().sample(random))
    }

    /// Calls `visit(key, value)` for every entry as it was at the moment of the call, in the order
    /// in which the entries were written: the way to walk a table that lies on the disk.
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each), and as [`snapshot`](Self::snapshot).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let mut bytes = 0;
    /// table.scan_log(|key, value| bytes += key.len() + value.len())?;
    /// assert_eq!(bytes, 4);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan_log<V: Visit>(&self, mut visit: impl FnMut(&[u8], &[u8]) -> V) -> Result<V> {
        let flow = self.log().scan_log(|key, value| visit(key, value).into_flow());
        Ok(V::of_flow(self.named(flow)?))
    }

    /// All entries as of now, to be walked later or by several threads, while writers go on.
    ///
    /// # Errors
    /// [`Error::HashEngine`] with `OutOfMemory` or `Io` where the log has no room for a new page; inside
    /// a closure that changes a value also with `Reentrant` or `WouldBlock`.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use std::ops::ControlFlow;
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"before")?;
    /// let snapshot = table.snapshot()?;
    /// table.put(b"k", b"after")?;
    /// let found = snapshot.scan(|_key, value| ControlFlow::Break(value.to_vec()))?;
    /// assert_eq!(found, ControlFlow::Break(b"before".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<HashSnapshot<'_>> {
        let before = self.shared.kept.position();
        let snapshot = self.named(self.shared.kept.apart(|| self.log().snapshot())?)?;
        Ok(HashSnapshot { snapshot, table: self, before })
    }

    /// Makes the state of the table at one moment durable, and returns when it is; writers go on meanwhile.
    /// A table in memory answers [`HashEngineError::NoDirectory`].
    ///
    /// [`Cut::Incremental`] writes what is new since the last checkpoint; [`Cut::Full`] an image
    /// of the index too, which makes opening the table fast.
    ///
    /// # Errors
    /// [`Error::HashEngine`] with `NoDirectory` in memory, `ReadOnly` and `View` where the directory may not
    /// be written, and `Io`. The checkpoints before it stay.
    ///
    /// ```
    /// # use sapwood::Cut;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// # let table = db.create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// let info = table.checkpoint(Cut::Full)?;
    /// assert!(info.full);
    /// assert_eq!(info.entries, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn checkpoint(&self, cut: Cut) -> Result<CheckpointInfo> {
        loop {
            match self.snapshot()?.checkpoint(cut) {
                // Another thread has written one of a later moment.
                Err(Error::HashEngine { cause: HashEngineError::Argument(_), .. }) => {}
                done => return done,
            }
        }
    }

    /// The complete checkpoints that the directory holds, the oldest first;
    /// [`Db::hash_table_at`](crate::Db::hash_table_at) goes back to one.
    ///
    /// # Errors
    /// [`Error::HashEngine`] with `NoDirectory` in memory, and with `Io` where the directory cannot be
    /// read.
    ///
    /// ```
    /// # use sapwood::Cut;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// # let table = db.create_hash_table("t", HashTableOptions::default())?;
    /// let first = table.checkpoint(Cut::Full)?;
    /// let second = table.checkpoint(Cut::Incremental)?;
    /// let numbers: Vec<u64> = table.checkpoints()?.iter().map(|info| info.number).collect();
    /// assert_eq!(numbers, [first.number, second.number]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        self.named(self.log().checkpoints())
    }

    /// Moves what is still in use out of the oldest `share` of the log (0.0 to 1.0), and frees it,
    /// on the disk and in memory. Writers go on meanwhile. A table does so by itself, too
    /// ([`HashTableOptions::compaction`](crate::HashTableOptions::compaction)).
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each) and [`put`](Self::put): it reads, and moves what it reads.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// for round in 0..3 {
    ///     table.put(b"k", format!("round {round}").as_bytes())?;
    /// }
    /// table.compact(1.0)?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"round 2"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compact(&self, share: f64) -> Result<Compacted> {
        self.named(self.log().compact(share))
    }

    /// Gives up the oldest page of the log, as [`compact`](Self::compact) does, where that needs no
    /// wait for a walk, a checkpoint or another compaction: `None` where it would. For a thread that gives
    /// memory of removed entries back between other work: with no writes a table keeps it else.
    ///
    /// # Errors
    /// The errors of [`compact`](Self::compact).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.put(b"k", b"v")?;
    /// while table.stats().garbage_bytes > 4 << 20 {
    ///     match table.compact_step()? {
    ///         Some(done) if done.bytes_freed > 0 => {}
    ///         // Later.
    ///         _ => break,
    ///     }
    /// }
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compact_step(&self) -> Result<Option<Compacted>> {
        self.named(self.log().compact_step())
    }

    /// Estimates how many bytes of the log are garbage, by a sample of it: superseded, removed or
    /// left unused. For a table in a directory [`stats`](Self::stats) has the last estimate.
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// println!("{} bytes are garbage", table.estimate_garbage()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn estimate_garbage(&self) -> Result<u64> {
        self.named(self.log().estimate_garbage())
    }

    /// The lengths of its keys and values.
    ///
    /// ```
    /// # use sapwood::RecordLayout;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// assert_eq!(table.layout(), RecordLayout::Variable);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn layout(&self) -> RecordLayout {
        self.log().layout()
    }

    /// The options it was made with, or was given when it was opened.
    pub(crate) fn options(&self) -> HashTableOptions {
        HashTableOptions::of(self.log().options(), self.shared.fields.clone())
    }

    /// True if there is no other handle. It stays so for as long as none is given out.
    pub(crate) fn is_only_handle(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    #[inline(always)]
    pub(crate) fn log(&self) -> &HashLog {
        &self.shared.log
    }

    /// Holds the keys of a change. A commit that takes too long may wait for the closure that the change is made in.
    #[inline]
    fn shared_keys<'k>(
        &self,
        shared: std::result::Result<sapwood_occ::Shared<'k>, Conflict>,
    ) -> Result<sapwood_occ::Shared<'k>> {
        shared.map_err(|_| self.error(HashEngineError::WouldBlock))
    }

    /// Runs a change that ends at once, if it does: without a wait, an error, or a call. Programs have
    /// a copy of it wherever they call an operation; what is left is done out of line.
    #[inline(always)]
    fn try_change_fast<R>(&self, change: impl FnOnce(&HashLog) -> Option<R>) -> Option<R> {
        let Shared { log, kept, has_fast_path: true, .. } = &*self.shared else { return None };
        let _shared = kept.keys.share_at_once()?;
        change(log)
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
    #[inline(always)]
    pub(crate) fn named<T>(&self, result: std::result::Result<T, HashEngineError>) -> Result<T> {
        result.map_err(|cause| self.error(cause))
    }

    // Programs have a copy of each operation for each type of key: this is no part of it.
    #[cold]
    #[inline(never)]
    fn error(&self, cause: HashEngineError) -> Error {
        match cause {
            HashEngineError::Journal(refused) => self.shared.kept.refused(refused),
            cause => Error::HashEngine { table: Arc::clone(&self.shared.name), cause },
        }
    }
}
