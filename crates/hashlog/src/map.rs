//! The public type: every operation, for whichever layout.

mod batches;
mod opening;
mod upkeep;
mod walks;

pub use upkeep::FilesHeld;

use std::sync::Arc;

use sapwood_engine::{Compute, Computed, Journal, Upsert};

use crate::error::Result;
use crate::journal::LatchedJournal;
use crate::logged::ChangeValue;
use crate::ops::by_layout;
use crate::ops::rmw::Rmw;
use crate::ops::store::Store;
use crate::options::Layout;
use crate::record::in_place::Write;
use crate::record::value::{ValueMut, with_scratch};
use crate::record::{Fixed, Form};

#[cfg(doc)]
use crate::error::Error;

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
    /// Hears of changes, where there is one.
    pub(crate) journal: Option<Arc<LatchedJournal>>,
    /// Set where changes have a fast half: of fixed records, without a journal.
    has_fast_path: bool,
}

impl HashLog {
    /// Logs each change from now on in a journal, once it is made and before the call returns: changes of
    /// a key in the order in which they happen. An update logs the bytes that it changed, where they
    /// are few.
    ///
    /// Inside closures a change may answer [`Error::WouldBlock`] while another thread changes an entry.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> HashLog {
        let journal = Arc::new(LatchedJournal::new(journal));
        // The first one counts; there is no other.
        let _first = self.store.journal.set(Arc::clone(&journal));
        self.journal = Some(journal);
        self.has_fast_path = false;
        self
    }

    /// Whether the table takes a key, and a value of so many bytes with it.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`].
    pub fn expect_lengths(&self, key: &[u8], value_len: usize) -> Result<()> {
        by_layout!(self, F => F::check_value(F::key(key)?, value_len, self.store.options.page_bytes))
    }

    /// Reads a value where it lies; `None` without the key. A record on the disk is read first.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; [`Error::Io`] and [`Error::Corrupt`] for a record on the disk.
    #[inline(always)]
    pub fn get_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        if self.store.options.layout == Layout::Fixed8
            && let Some(key) = Fixed::word(key)
            && let Some(value) = self.store.get_fast(Fixed::hash(key), key)
        {
            return Ok(Some(read(&value)));
        }
        let (mut read, mut answer) = (Some(read), None);
        self.show(key, &mut |value| answer = read.take().map(|read| read(value)))?;
        Ok(answer)
    }

    /// Shows a value, once: the half of `get_with` that stands once in this crate, and not in its callers.
    #[inline(never)]
    fn show(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<()> {
        by_layout!(self, F => {
            let key = F::key(key)?;
            let hash = F::hash(key);
            if let Err(read) = self.store.get_by_look::<F, (), _>(hash, key, read) {
                self.store.get_slow::<F, ()>(hash, key, read)?;
            }
            Ok(())
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
    #[inline(always)]
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.try_put_fast(key, value) { Ok(()) } else { self.put_slow(key, value) }
    }

    /// True where changes of this log have a fast half: elsewhere [`HashLog::try_put_fast`] and its like do nothing.
    #[inline(always)]
    pub fn has_fast_path(&self) -> bool {
        self.has_fast_path
    }

    /// The fast half of [`HashLog::put`]: it ends at first sight, without a wait or an error. Else nothing has
    /// happened, the answer is false, and [`HashLog::put_slow`] does all of it. It becomes a part
    /// of the caller's code, which need not call anything.
    #[inline(always)]
    pub fn try_put_fast(&self, key: &[u8], value: &[u8]) -> bool {
        if self.has_fast_path
            && let (Some(key), Some(value)) = (Fixed::word(key), Fixed::word(value))
        {
            return self.store.put_fast(Fixed::hash(key), key, value);
        }
        false
    }

    /// The slow half of [`HashLog::put`], for what [`HashLog::try_put_fast`] has not done.
    ///
    /// # Errors
    /// As [`HashLog::put`].
    #[inline(never)]
    pub fn put_slow(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let put = || by_layout!(self, F => self.store.put::<F>(key, value));
        self.logged(key, key.len() + value.len(), put, |log, ()| log.put(key, value))
    }

    /// Puts a value unless the key is there; true if it did.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    pub fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let put = || by_layout!(self, F => self.store.put_if_absent::<F>(key, value));
        self.logged(key, key.len() + value.len(), put, |log, done| {
            if *done {
                log.put(key, value);
            }
        })
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        let remove = || by_layout!(self, F => self.store.remove::<F>(key));
        self.logged(key, key.len(), remove, |log, done| {
            if *done {
                log.remove(key);
            }
        })
    }

    /// Changes a value in one step for every reader; `None` without the key.
    ///
    /// The closure works on a copy, and may run again on a newer one when another thread gets
    /// between, or when the log must turn a page first; the last run counts.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    #[inline(always)]
    pub fn update<R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        match self.try_update_fast(key, &mut change) {
            Some(answer) => Ok(Some(answer)),
            None => self.update_slow(key, change),
        }
    }

    /// The fast half of [`HashLog::update`]: see [`HashLog::try_put_fast`]. The closure has not run if the answer is
    /// `None`.
    #[inline(always)]
    pub fn try_update_fast<R>(
        &self,
        key: &[u8],
        change: &mut impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Option<R> {
        let key = Fixed::word(key).filter(|_| self.has_fast_path)?;
        let mut change = |value: &mut ValueMut<'_>| (change(value), Write::Changed);
        self.store.rmw_fast(Fixed::hash(key), key, &mut change)
    }

    /// The slow half of [`HashLog::update`], for what [`HashLog::try_update_fast`] has not done.
    ///
    /// # Errors
    /// As [`HashLog::update`].
    #[inline]
    pub fn update_slow<R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut answer = None;
        let done = self.rmw(key, None, &mut |value| answer = Some(change(value)))?;
        Ok(answer.filter(|_| matches!(done, Rmw::Updated(()))))
    }

    /// A read-modify-write: the one compiled copy of `update` and `put_if_absent_or_update`.
    #[inline(never)]
    fn rmw(
        &self,
        key: &[u8],
        absent: Option<&[u8]>,
        change: &mut ChangeValue<'_>,
    ) -> Result<Rmw<()>> {
        self.logged_rmw(key, absent, change, |change| {
            let mut change = |value: &mut ValueMut<'_>| (change(value), Write::Changed);
            by_layout!(self, F => self.store.rmw::<F, ()>(key, absent, &mut change))
        })
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
        if Fixed::word(value).is_some()
            && let Some(answer) = self.try_update_fast(key, &mut change)
        {
            return Ok(Upsert::Updated(answer));
        }
        let mut answer = None;
        let done = self.rmw(key, Some(value), &mut |value| answer = Some(change(value)))?;
        Ok(match (done, answer) {
            (Rmw::Updated(()), Some(answer)) => Upsert::Updated(answer),
            _ => Upsert::Inserted,
        })
    }

    /// Puts `new` if the value is `expected`; true if it did. An absent key equals nothing.
    ///
    /// # Errors
    /// As [`HashLog::put`] and [`HashLog::get_with`].
    pub fn compare_and_put(&self, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        let put = || by_layout!(self, F => self.store.compare_and_put::<F>(key, expected, new));
        self.logged(key, key.len() + new.len(), put, |log, done| {
            if *done {
                log.change(key, expected, new);
            }
        })
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
        self.logged_compute(
            key,
            &mut decide,
            |decide| by_layout!(self, F => self.store.compute::<F>(F::key(key)?, decide)),
        )
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
    #[inline(always)]
    pub fn add(&self, key: &[u8], delta: i64) -> Result<i64> {
        match self.try_add_fast(key, delta) {
            Some(sum) => Ok(sum),
            None => self.add_slow(key, delta),
        }
    }

    /// The fast half of [`HashLog::add`]: see [`HashLog::try_put_fast`].
    #[inline(always)]
    pub fn try_add_fast(&self, key: &[u8], delta: i64) -> Option<i64> {
        let key = Fixed::word(key).filter(|_| self.has_fast_path)?;
        self.store.add_fast(Fixed::hash(key), key, delta)
    }

    /// The slow half of [`HashLog::add`], for what [`HashLog::try_add_fast`] has not done.
    ///
    /// # Errors
    /// As [`HashLog::add`].
    #[inline(never)]
    pub fn add_slow(&self, key: &[u8], delta: i64) -> Result<i64> {
        let add = || by_layout!(self, F => self.store.add::<F>(key, delta));
        self.logged(key, key.len() + 8, add, |log, sum| log.put(key, &sum.to_le_bytes()))
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
