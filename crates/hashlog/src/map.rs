//! The public type: every operation, for whichever layout.

use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_disk::Disk;

use crate::checkpoint::{self, Opening};
use crate::edit::Edit;
use crate::error::{BatchError, Error, Result};
use crate::journal::Told;
use crate::ops::by_layout;
use crate::ops::store::Store;
use crate::options::Cut;
use crate::options::{ColdReads, Layout, Options};
use crate::record::address::Address;
use crate::record::value::{ValueMut, with_scratch};
use crate::record::{Fixed, Form, Variable};
use crate::stats::Compacted;
use crate::stats::{CheckpointInfo, HashStats, StoredCheckpoint};
use crate::walks::snapshot::{Snapshot, Sweep, check_part};
use sapwood_engine::RecordAddress;
use sapwood_engine::{Compute, Computed, Journal, Upsert};

/// A concurrent map of byte keys to byte values: a hash index over a hybrid log.
///
/// All operations take `&self`; any number of threads use the map at once. A thread that never
/// used it before registers by itself, and no call allocates on the heap unless it has to read
/// from the disk.
///
/// # Consistency
///
/// Operations on one key are linearizable. A batch is its operations, each by itself, in the
/// order given for each key. [`HashLog::scan_log`], [`HashLog::snapshot`] and
/// [`HashLog::checkpoint`] see one moment between their call and the first entry: all that was
/// done before it and nothing that was begun after. [`HashLog::for_each`] sees every key that is
/// there throughout exactly once, with a value that it had during the walk, and so do the steps of
/// [`HashLog::scan_from`] together.
///
/// # Closures
///
/// A closure that reads or changes a value may call the map again. What would have to wait for
/// the closure itself answers [`Error::Reentrant`] or [`Error::WouldBlock`]. A closure that takes
/// its time keeps pages in memory that writers may be waiting to spill.
///
/// ```
/// use sapwood_hashlog::{HashLog, Layout, Options};
///
/// let mut options = Options::default();
/// options.layout = Layout::Fixed8;
/// let hits = HashLog::in_memory(options)?;
/// let page = 7_u64.to_le_bytes();
/// assert_eq!(hits.add(&page, 1)?, 1);
/// assert_eq!(hits.add(&page, 2)?, 3);
/// assert_eq!(hits.get(&page)?, Some(3_i64.to_le_bytes().to_vec()));
/// # Ok::<(), sapwood_hashlog::Error>(())
/// ```
pub struct HashLog {
    /// Shared with the thread that compacts, where there is one.
    pub(crate) store: Arc<Store>,
    /// Of a log whose changes are told.
    told: Option<Arc<Told>>,
}

impl HashLog {
    /// An empty log in memory.
    ///
    /// # Errors
    /// [`Error::Options`], or [`Error::OutOfMemory`] if not even an empty one fits.
    pub fn in_memory(options: Options) -> Result<HashLog> {
        options.validate()?;
        Ok(HashLog::of(Store::create(options, None)?))
    }

    /// Opens the log in a directory: as its newest checkpoint left it, or empty if it never had
    /// one.
    ///
    /// # Errors
    /// [`Error::CheckpointDamaged`] if the newest checkpoint is damaged, or its manifest missing,
    /// and names one that [`HashLog::open_at`] opens; [`Error::Corrupt`] if none opens. Nothing is
    /// changed then. [`Error::Options`] if the directory was made with another layout or page size.
    ///
    /// Of a disk that is open to be read only nothing is changed: what would change the log answers
    /// [`Error::ReadOnly`], and newer checkpoints stay.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<HashLog> {
        HashLog::open_by(disk, options, Opening::Newest)
    }

    /// Goes back: opens a log as checkpoint `number` left it, and removes newer ones, damaged ones
    /// among them. Their numbers are not used again.
    ///
    /// # Errors
    /// As [`HashLog::open`]; [`Error::Options`] names the checkpoints that are there.
    pub fn open_at(disk: Arc<dyn Disk>, options: Options, number: u64) -> Result<HashLog> {
        HashLog::open_by(disk, options, Opening::Back(number.into()))
    }

    /// Looks at a log as checkpoint `number` left it, and changes nothing on the disk. What is put
    /// into the view lives in its memory alone: once that is full it fails with [`Error::Io`], and
    /// a checkpoint of it answers [`Error::View`]. Nothing else may have the directory open.
    ///
    /// # Errors
    /// As [`HashLog::open_at`].
    pub fn view(disk: Arc<dyn Disk>, options: Options, number: u64) -> Result<HashLog> {
        // There is no room for copies of what is read.
        let options = Options { cold_reads: ColdReads::Stay, ..options };
        HashLog::open_by(disk, options, Opening::View(number.into()))
    }

    /// As [`HashLog::view`], of the newest checkpoint; in memory, and empty, where there never was one.
    ///
    /// # Errors
    /// As [`HashLog::open`].
    pub fn view_newest(disk: Arc<dyn Disk>, options: Options) -> Result<HashLog> {
        let options = Options { cold_reads: ColdReads::Stay, compaction: None, ..options };
        HashLog::open_by(disk, options, Opening::NewestView)
    }

    /// Ends changes: from now on what would change the log answers [`Error::ReadOnly`].
    #[must_use]
    pub fn read_only(self) -> HashLog {
        self.store.freeze();
        self
    }

    /// The checkpoints in a directory that is not open, oldest first, and whether each opens: its
    /// index image is read whole, of the log only where its pages lie. A newest one whose manifest
    /// is missing is listed too. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn stored(disk: &Arc<dyn Disk>) -> Result<Vec<StoredCheckpoint>> {
        checkpoint::list(disk)
    }

    fn open_by(disk: Arc<dyn Disk>, options: Options, opening: Opening) -> Result<HashLog> {
        options.validate()?;
        let store = match options.layout {
            Layout::Fixed8 => Store::open::<Fixed>(disk, options, opening),
            Layout::Variable => Store::open::<Variable>(disk, options, opening),
        }?;
        Ok(HashLog::of(store))
    }

    fn of(store: Store) -> HashLog {
        let store = Arc::new(store);
        store.employ_compactor();
        HashLog { store, told: None }
    }

    /// Tells each change from now on to a journal, once it is made and before the call returns: changes of
    /// a key in the order in which they happen. An update tells the bytes that it changed, where they
    /// are few.
    ///
    /// Inside closures a change may answer [`Error::WouldBlock`] while another thread changes an entry.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> HashLog {
        let told = Arc::new(Told::new(journal));
        // The first one counts; there is no other.
        let _first = self.store.told.set(Arc::clone(&told));
        self.told = Some(told);
        self
    }

    /// Reads a value where it lies; `None` without the key. A record on the disk is read first.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; [`Error::Io`] and [`Error::Corrupt`] for a record on the disk.
    #[inline]
    pub fn get_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        by_layout!(self, F => {
            let key = F::key(key)?;
            let hash = F::hash(key);
            match self.store.get_quick::<F, R, _>(hash, key, read) {
                Ok(answer) => Ok(Some(answer)),
                Err(read) => self.store.get_slow::<F, R>(hash, key, read),
            }
        })
    }

    /// Copies a value out.
    ///
    /// # Errors
    /// As [`HashLog::get_with`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Whether the key is there.
    ///
    /// # Errors
    /// As [`HashLog::get_with`].
    pub fn contains_key(&self, key: &[u8]) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// Puts a value, blindly: it never reads from the disk, and so does not say whether it
    /// replaced one.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`]; [`Error::OutOfMemory`] in memory,
    /// [`Error::Io`] where a page had to be spilled and could not.
    #[inline]
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        match &self.told {
            None => self.put_untold(key, value),
            Some(told) => self.put_told(told, key, value),
        }
    }

    /// Puts a value unless the key is there; true if it did.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    pub fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        match &self.told {
            None => self.put_if_absent_untold(key, value),
            Some(told) => self.put_if_absent_told(told, key, value),
        }
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        match &self.told {
            None => self.remove_untold(key),
            Some(told) => self.remove_told(told, key),
        }
    }

    /// Changes a value in one step for every reader; `None` without the key.
    ///
    /// The closure works on a copy, and may run again on a newer one when another thread gets
    /// between, or when the log must turn a page first; the last run counts.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    #[inline]
    pub fn update<R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        match &self.told {
            None => self.update_untold(key, change),
            Some(told) => self.update_told(told, key, &mut change),
        }
    }

    /// Puts `value` if the key is absent, or else changes the value that is there as
    /// [`HashLog::update`] does, with one search.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    #[inline]
    pub fn put_if_absent_or_update<R>(
        &self,
        key: &[u8],
        value: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        match &self.told {
            None => self.put_if_absent_or_update_untold(key, value, change),
            Some(told) => self.put_if_absent_or_update_told(told, key, value, &mut change),
        }
    }

    /// Puts `new` if the value is `expected`; true if it did. An absent key equals nothing.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    pub fn compare_and_put(&self, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        match &self.told {
            None => self.compare_and_put_untold(key, expected, new),
            Some(told) => self.compare_and_put_told(told, key, expected, new),
        }
    }

    /// Lets `decide` look at the value, or at `None`, and say what to do, in one step for every
    /// other thread.
    ///
    /// `decide` may run again: on a newer value when another thread gets between, or when the log
    /// must turn a page first; the last run counts. A removal in the mutable region of a
    /// [`Layout::Fixed8`] log waits until all closures of other threads have ended.
    ///
    /// ```
    /// use sapwood_hashlog::{Compute, Computed, HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// let push = |stack: Option<&[u8]>| Compute::Replace([stack.unwrap_or(b""), b"x"].concat());
    /// assert_eq!(log.compute(b"stack", push)?, Computed::Inserted);
    /// assert_eq!(log.compute(b"stack", push)?, Computed::Replaced);
    /// let pop = |stack: Option<&[u8]>| match stack {
    ///     Some([_, rest @ ..]) if !rest.is_empty() => Compute::Replace(rest.to_vec()),
    ///     _ => Compute::Remove,
    /// };
    /// assert_eq!(log.compute(b"stack", pop)?, Computed::Replaced);
    /// assert_eq!(log.compute(b"stack", pop)?, Computed::Removed);
    /// assert_eq!(log.compute(b"stack", pop)?, Computed::Absent);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`]; the entry is as it was. Inside a closure that
    /// reads or changes a value also [`Error::Reentrant`] and [`Error::WouldBlock`].
    ///
    /// # Panics
    /// If `decide` does; the entry is as it was.
    pub fn compute(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        match &self.told {
            None => self.compute_untold(key, &mut decide),
            Some(told) => self.compute_told(told, key, &mut decide),
        }
    }

    /// Removes a key and shows its value to `read`, afterwards: the entry is gone by then, also if
    /// `read` panics. `None` without the key.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put(b"key", b"value")?;
    /// assert_eq!(log.remove_with(b"key", |value| value.len())?, Some(5));
    /// assert_eq!(log.remove_with(b"key", |value| value.len())?, None);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::compute`]; the entry is as it was.
    pub fn remove_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        with_scratch(|removed| {
            let done = self.compute(key, |value| {
                removed.clear();
                removed.extend_from_slice(value.unwrap_or_default());
                Compute::Remove
            })?;
            Ok((done == Computed::Removed).then(|| read(removed)))
        })
    }

    /// Adds to a counter, 8 bytes, little endian, of which an absent one counts as 0; answers the
    /// sum. In the mutable region of a [`Layout::Fixed8`] log it is one atomic instruction.
    ///
    /// # Errors
    /// [`Error::Overflow`] and [`Error::NotACounter`], which change nothing; as [`HashLog::put`]
    /// and [`HashLog::get_with`].
    #[inline]
    pub fn add(&self, key: &[u8], delta: i64) -> Result<i64> {
        match &self.told {
            None => self.add_untold(key, delta),
            Some(told) => self.add_told(told, key, delta),
        }
    }

    /// Calls `read(i, value)` once for each `keys[i]`, in order. Look-ups overlap, in memory
    /// and on the disk: several times faster than one by one.
    ///
    /// # Errors
    /// As [`HashLog::get_with`]; entries that were read by then were handed out.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut read =
            |at, found: Option<(&[u8], RecordAddress)>| read(at, found.map(|(value, _)| value));
        by_layout!(self, F => self.store.get_many::<F, K>(keys, &mut read))
    }

    /// As [`HashLog::put`] for each entry; entries of the same key in the order given.
    ///
    /// # Errors
    /// As [`HashLog::put`]; the entries before the one that is named are in.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
    ) -> std::result::Result<(), BatchError> {
        match &self.told {
            None => self.put_many_untold(entries),
            Some(told) => self.put_many_told(told, entries),
        }
    }

    /// As [`HashLog::update`] for each key, of which the closure gets the index; answers how many
    /// were there.
    ///
    /// # Errors
    /// As [`HashLog::update`]; the keys before the one that is named are done, those behind are
    /// not.
    pub fn update_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> std::result::Result<usize, BatchError> {
        self.update_each(keys, &mut |at, value: Option<&mut ValueMut<'_>>| {
            if let Some(value) = value {
                change(at, value);
            }
        })
    }

    /// The same, where `change` is told of keys that are not there, too.
    #[inline]
    pub(crate) fn update_each<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> std::result::Result<usize, BatchError> {
        match &self.told {
            None => self.update_each_untold(keys, change),
            Some(told) => self.update_each_told(told, keys, change),
        }
    }

    /// As [`HashLog::get_many`], and tells where each entry lies; [`RecordAddress::default`] where
    /// that is not known.
    ///
    /// # Errors
    /// As [`HashLog::get_with`]; entries that were read by then were handed out.
    pub fn get_many_with_addresses<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<(&[u8], RecordAddress)>),
    ) -> Result<()> {
        by_layout!(self, F => self.store.get_many::<F, K>(keys, &mut read))
    }

    /// As [`HashLog::update_many`], for keys that were met at these addresses
    /// ([`HashLog::get_many_with_addresses`],
    /// [`ColumnBatch::addresses`](crate::ColumnBatch::addresses)): without a search where the entries
    /// still are where they were; the others are found by their keys. Addresses may be stale, or
    /// [`RecordAddress::default`] for keys that were met nowhere. They are of this log, since it was opened: one from elsewhere may lead to an entry that is just being inserted, and if
    /// another thread inserts the key first, what is changed there is lost.
    ///
    /// The last call of `change` for a key counts: with `None` if the key is not there. For addresses
    /// in the order of the log, [`HashLog::edit`] is faster.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Layout, Options, RecordAddress};
    ///
    /// let mut options = Options::default();
    /// options.layout = Layout::Fixed8;
    /// let log = HashLog::in_memory(options)?;
    /// let keys = [7_u64, 8, 9].map(u64::to_le_bytes);
    /// log.put_many(&keys.map(|key| (key, [0; 8])))?;
    /// let mut addresses = [RecordAddress::default(); 3];
    /// log.get_many_with_addresses(&keys, |at, found| addresses[at] = found.expect("it is there").1)?;
    /// let there = log.update_at(&addresses, &keys, |at, value| {
    ///     if let Some(value) = value {
    ///         value[0] += at as u8;
    ///     }
    /// })?;
    /// assert_eq!(there, 3);
    /// assert_eq!(log.get(&keys[2])?, Some(2_u64.to_le_bytes().to_vec()));
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::update_many`]; the entries before the one that is named are done, those behind
    /// are not.
    ///
    /// # Panics
    /// If there are not as many addresses as keys.
    pub fn update_at<K: AsRef<[u8]>>(
        &self,
        addresses: &[RecordAddress],
        keys: &[K],
        mut change: impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> std::result::Result<usize, BatchError> {
        assert_eq!(addresses.len(), keys.len(), "one address for each key");
        match &self.told {
            None => by_layout!(self, F => {
                self.store.update_at::<F, K>(addresses, keys, None, &mut change)
            }),
            Some(_) => self.update_each(keys, &mut change),
        }
    }

    /// Begins to change many entries where a walk met them, without an atomic instruction for each.
    /// It takes microseconds, and as long as it lives others copy what they change, and nothing is
    /// compacted: drop it after some ten thousand entries, and begin another. Drop snapshots first,
    /// since what they show is only ever copied.
    ///
    /// In a directory, of records of variable length, or inside a closure, it edits nothing:
    /// [`Edit::update_at`] is then what [`HashLog::update_at`] is.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use sapwood_hashlog::{Columns, HashLog, Layout, Options};
    ///
    /// let mut options = Options::default();
    /// options.layout = Layout::Fixed8;
    /// let log = HashLog::in_memory(options)?;
    /// for key in 0..5_000_u64 {
    ///     log.put(&key.to_le_bytes(), &2_u64.to_le_bytes())?;
    /// }
    /// let (mut addresses, mut keys) = (Vec::new(), Vec::new());
    /// let sweep = log.sweep()?;
    /// let walk = sweep.by_columns(Columns::Addresses).expect("records of fixed length");
    /// let _all = walk.scan(|batch| {
    ///     addresses.extend((0..batch.len()).filter_map(|at| batch.addresses().get(at)));
    ///     keys.extend_from_slice(batch.keys().words().expect("keys of 8 bytes"));
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// let there = log.edit().update_at(&addresses, &keys, |_, value| {
    ///     if let Some(value) = value {
    ///         value[0] += 1;
    ///     }
    /// })?;
    /// assert_eq!(there, 5_000);
    /// assert_eq!(log.get(&7_u64.to_le_bytes())?, Some(3_u64.to_le_bytes().to_vec()));
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    pub fn edit(&self) -> Edit<'_> {
        let begun = match &self.told {
            None => by_layout!(self, F => self.store.edit::<F>()),
            // Changes are told one by one.
            Some(_) => None,
        };
        Edit { begun, log: self }
    }

    /// As [`HashLog::add`] for each counter.
    ///
    /// # Errors
    /// As [`HashLog::add`]; the counters before the one that is named are done, those behind are
    /// not.
    pub fn add_many<K: AsRef<[u8]>>(
        &self,
        deltas: &[(K, i64)],
    ) -> std::result::Result<(), BatchError> {
        match &self.told {
            None => self.add_many_untold(deltas, &mut |_, _| ()),
            Some(told) => self.add_many_told(told, deltas),
        }
    }

    /// Visits the entries in bucket order, until `visit` breaks. A key that is there throughout
    /// is visited exactly once. The index does not grow meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] for records on the disk; [`Error::WouldBlock`] inside a
    /// closure, while the log is compacted.
    pub fn for_each<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.for_each_part(0, 1, visit)
    }

    /// Part `part` of `parts` disjoint parts of [`HashLog::for_each`], for as many threads.
    ///
    /// # Errors
    /// As [`HashLog::for_each`]; [`Error::Argument`] if `part` is not below `parts`.
    pub fn for_each_part<B>(
        &self,
        part: usize,
        parts: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        check_part(part, parts)?;
        by_layout!(self, F => self.store.walk_buckets::<F, B>((part, parts), &mut visit))
    }

    /// One step of a walk of all entries: visits the entries of whole buckets from `cursor` on, until
    /// `entries_min` were visited or there are no more, and of one bucket at least; answers the
    /// cursor of the next step, or 0 at the end. The first step has cursor 0.
    ///
    /// Between two steps nothing is held: writers go on, the index grows, the log is compacted or
    /// checkpointed, and opened again. A key that is there from the first step to the end of the
    /// last one is visited exactly once, with a value that it had meanwhile; one that is put or
    /// removed meanwhile is visited or not. The steps of a walk may differ in length, and any
    /// number of walks go on at once. All steps together cost what [`HashLog::for_each`] does, and a
    /// little for each step.
    ///
    /// A cursor is a number below that of the buckets. Every other number is taken too, as that of
    /// a walk of some of the entries.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put_many(&[(b"one", b"1"), (b"two", b"2")])?;
    /// let (mut cursor, mut keys) = (0, Vec::new());
    /// loop {
    ///     cursor = log.scan_from(cursor, 1, |key, _value| keys.push(key.to_vec()))?;
    ///     if cursor == 0 {
    ///         break;
    ///     }
    /// }
    /// keys.sort();
    /// assert_eq!(keys, [b"one", b"two"]);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::for_each`]; `visit` was called for some entries by then, and the same step may
    /// be tried again.
    pub fn scan_from(
        &self,
        cursor: u64,
        entries_min: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        by_layout!(self, F => self.store.scan_from::<F>(cursor, entries_min, &mut visit))
    }

    /// One entry, owned, chosen by `random`, a number all of whose bits are random; `None` without
    /// entries.
    ///
    /// The bucket is the one that `random` names, or else the first few from there on that have
    /// entries, and each of their entries is as likely. So every entry can be chosen, and those of
    /// buckets with few entries, or behind empty ones, are chosen more often. One bucket is looked
    /// at, or a few: many only where most entries were removed, and all where all were.
    ///
    /// The entry was there at a moment of the call. `None` says that no entry was there throughout.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// let random = 0x9E37_79B9_7F4A_7C15;
    /// assert_eq!(log.sample(random)?, None);
    /// log.put(b"one", b"1")?;
    /// assert_eq!(log.sample(random)?, Some((b"one".to_vec(), b"1".to_vec())));
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::for_each`].
    pub fn sample(&self, random: u64) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        by_layout!(self, F => self.store.sample::<F>(random))
    }

    /// The entries, owned, in bucket order. A key that is there from the call to the iterator's end
    /// comes exactly once, with a value that it had meanwhile. Of a key that is put or removed
    /// meanwhile the entry may come or not.
    ///
    /// Some hundred entries are in memory at a time, by [`HashLog::scan_from`]. Between them nothing
    /// is held: writers go on, the index grows, the log is compacted. An error is the last item.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put_many(&[(b"one", b"1"), (b"two", b"2")])?;
    /// let mut entries = log.iter().collect::<Result<Vec<_>, _>>()?;
    /// entries.sort();
    /// assert_eq!(entries[1], (b"two".to_vec(), b"2".to_vec()));
    /// assert_eq!(entries.len(), 2);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each step may answer as [`HashLog::for_each`].
    pub fn iter(&self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + '_ {
        let entries: Box<dyn Iterator<Item = _> + '_> =
            by_layout!(self, F => Box::new(self.store.entries::<F>()));
        entries
    }

    /// Removes the entries of which `keep` says false, and answers how many. An entry that is put
    /// meanwhile may be asked about or not. Not atomic as a whole; writers go on.
    ///
    /// An entry is removed as it was when `keep` refused it: one that a writer changes meanwhile is
    /// asked about again. So `keep` may see an entry twice, the second time as
    /// [`HashLog::compute`] does.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put_many(&[(b"one", b"1"), (b"two", b"2")])?;
    /// assert_eq!(log.retain(|_key, value| value == b"2")?, 1);
    /// assert_eq!(log.get(b"one")?, None);
    /// assert_eq!(log.get(b"two")?, Some(b"2".to_vec()));
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::for_each`] and [`HashLog::compute`]; some entries may be gone by then.
    ///
    /// # Panics
    /// If `keep` does; the entry that it was asked about is there.
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let mut removed = 0;
        for entry in self.iter() {
            let (key, seen) = entry?;
            if keep(&key, &seen) {
                continue;
            }
            let done = self.compute(&key, |now| match now {
                Some(now) if now == seen || !keep(&key, now) => Compute::Remove,
                _ => Compute::Keep,
            })?;
            removed += u64::from(done == Computed::Removed);
        }
        Ok(removed)
    }

    /// Visits the entries in log order as they were at one moment of the call, until `visit`
    /// breaks. Writers go on; what they change meanwhile they copy.
    ///
    /// # Errors
    /// As [`HashLog::snapshot`]; [`Error::Io`] and [`Error::Corrupt`] for records on the disk.
    pub fn scan_log<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.snapshot()?.scan(visit)
    }

    /// Fixes this moment for walks. As long as it lives, records below its boundary are copied
    /// instead of changed, and nothing is compacted.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure; [`Error::OutOfMemory`] and [`Error::Io`] if the log
    /// cannot begin a page.
    pub fn snapshot(&self) -> Result<Snapshot<'_>> {
        Ok(Snapshot { moment: self.store.moment()?, store: &self.store })
    }

    /// Begins a walk of the log that fixes nothing: a key that is there from now until it has been
    /// walked is visited exactly once, with a value that it has in that time. As long as it lives,
    /// nothing is compacted; writers change in place what they may change in place. [`Snapshot`]
    /// shows one moment instead, for which writers copy what they change, and pages are closed.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put(b"key", b"value")?;
    /// let mut seen = 0;
    /// let _all = log.sweep()?.scan_part(0, 1, |_key, _value| {
    ///     seen += 1;
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(seen, 1);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure.
    pub fn sweep(&self) -> Result<Sweep<'_>> {
        Ok(Sweep(Snapshot { moment: self.store.sweep()?, store: &self.store }))
    }

    /// Writes a checkpoint: the log as it is at one moment of the call, while all threads go on.
    /// Everything that it covers is there after any crash, once it has returned.
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory; [`Error::View`]; [`Error::WouldBlock`] inside a closure;
    /// [`Error::Io`]: the one before is there, and this one may be; [`HashLog::checkpoints`] lists
    /// it where only removing older files failed.
    pub fn checkpoint(&self, cut: Cut) -> Result<CheckpointInfo> {
        by_layout!(self, F => self.store.checkpoint::<F>(cut))
    }

    /// The checkpoints that are kept, oldest first.
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        self.store.expect_checkpoints().map(|all| all.infos())
    }

    /// The number of the newest checkpoint, if nothing has changed since its moment.
    pub fn unchanged_since(&self) -> Option<u64> {
        let tail = self.store.log.tail().bytes();
        let newest = self.store.checkpoints.as_ref()?.infos().pop()?;
        // What a checkpoint has is changed by copies at the tail alone.
        (newest.end == tail).then_some(newest.number)
    }

    /// Moves live records out of the oldest `share` (0.0 to 1.0) of the log and gives it up.
    /// Traffic goes on; walks and checkpoints wait for a page or 1 MiB of it at most.
    /// Files go once no checkpoint that is kept needs them. A log does this by itself, too:
    /// [`Options::compaction`].
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure; as [`HashLog::put`] and [`HashLog::get_with`]:
    /// then the log is as good as before, only longer. [`Error::Argument`] if `share` is not a
    /// number from 0.0 to 1.0.
    pub fn compact(&self, share: f64) -> Result<Compacted> {
        if !(0.0..=1.0).contains(&share) {
            let why = format!("a share of {share} cannot be compacted: 0.0 to 1.0, 1.0 for all");
            return Err(Error::Argument(why));
        }
        let (begin, tail) = (self.store.log.begin().bytes(), self.store.log.tail().bytes());
        let bytes = ((tail - begin) as f64 * share) as u64;
        self.compact_below(begin + bytes)
    }

    /// Compacts the log if it is longer than `bytes_max`, by what it is longer.
    ///
    /// # Errors
    /// As [`HashLog::compact`].
    pub fn compact_to(&self, bytes_max: u64) -> Result<Compacted> {
        self.compact_below(self.store.log.tail().bytes().saturating_sub(bytes_max))
    }

    /// Estimates how many bytes of the log are superseded, removed or left unused, by a sample of
    /// the pages: in a directory, up to 64 reads of 64 KiB, and as many of single records as a
    /// thousand records in doubt need. In memory they are counted.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure; [`Error::Io`] and [`Error::Corrupt`] for what is on
    /// the disk.
    pub fn estimate_garbage(&self) -> Result<u64> {
        by_layout!(self, F => self.store.estimate_garbage::<F>())
    }

    fn compact_below(&self, limit: u64) -> Result<Compacted> {
        let limit = Address::from_bytes(limit);
        let done = by_layout!(self, F => self.store.compact::<F>(limit))?;
        self.store.drop_unneeded_parts()?;
        Ok(done)
    }

    /// The number of entries. A log in memory counts them, which is exact while no thread writes.
    /// In a directory it is a walk, which reads what is on the disk: [`HashLog::len_estimate`] is
    /// for callers that need it often.
    ///
    /// # Errors
    /// As [`HashLog::for_each`], in a directory.
    pub fn len(&self) -> Result<usize> {
        match self.store.log.parts {
            None => Ok(self.len_estimate()),
            Some(_) => self.len_exact(),
        }
    }

    /// Whether there is no entry. A log in memory looks at its count. In a directory it is a walk
    /// that ends at the first entry: short, unless most of what lies before it was removed.
    ///
    /// # Errors
    /// As [`HashLog::for_each`], in a directory.
    pub fn is_empty(&self) -> Result<bool> {
        match self.store.log.parts {
            None => Ok(self.len_estimate() == 0),
            Some(_) => Ok(self.for_each(|_, _| ControlFlow::Break(()))?.is_continue()),
        }
    }

    /// The number of entries by counters, at no cost. In memory they are right while no
    /// thread writes. In a directory a put on a key whose newest record is on the disk does not
    /// read it, and is taken to replace an entry: each that follows a removal leaves the count one
    /// too low, as far as to 0 in a full log, until [`HashLog::len`] sets it right. Decide nothing
    /// by it.
    pub fn len_estimate(&self) -> usize {
        self.store.entries.sum() as usize
    }

    /// The number of entries, by a walk.
    ///
    /// # Errors
    /// As [`HashLog::for_each`].
    pub fn len_exact(&self) -> Result<usize> {
        // Of several that count at once one sets the estimate right.
        let counting = self.store.counting.try_lock();
        let (mut count, estimate) = (0, self.store.entries.net());
        let _all = self.for_each(|_, _| {
            count += 1;
            ControlFlow::<()>::Continue(())
        })?;
        // What other threads did meanwhile they have counted themselves.
        if self.store.log.parts.is_some() && counting.is_ok() {
            self.store.entries.add(count as i64 - estimate);
        }
        Ok(count)
    }

    /// Removes every entry that is there when it starts.
    ///
    /// # Errors
    /// As [`HashLog::for_each`] and [`HashLog::remove`].
    pub fn clear(&self) -> Result<()> {
        let mut keys = Vec::new();
        let _all = self.for_each(|key, _| {
            keys.push(key.to_vec());
            ControlFlow::<()>::Continue(())
        })?;
        keys.iter().try_for_each(|key| self.remove(key).map(drop))
    }

    /// The lengths of its keys and values.
    pub fn layout(&self) -> Layout {
        self.store.options.layout
    }

    /// Whether the log lives in memory alone.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// assert!(HashLog::in_memory(Options::default())?.is_in_memory());
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    pub fn is_in_memory(&self) -> bool {
        self.store.log.parts.is_none()
    }

    /// The options the log was made or opened with.
    pub fn options(&self) -> &Options {
        &self.store.options
    }

    /// Figures of the log: contents and costs.
    pub fn stats(&self) -> HashStats {
        self.store.stats()
    }

    /// Verifies the invariants of index and log while no thread writes.
    ///
    /// # Errors
    /// The first that does not hold, and where.
    pub fn check(&self) -> std::result::Result<(), String> {
        by_layout!(self, F => self.store.check::<F>())
    }
}

impl Drop for HashLog {
    fn drop(&mut self) {
        self.store.end_compaction();
        self.store.give_up_unsaved();
    }
}

impl std::fmt::Debug for HashLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HashLog")
            .field("layout", &self.store.options.layout)
            .field("entries_estimate", &self.len_estimate())
            .finish_non_exhaustive()
    }
}
