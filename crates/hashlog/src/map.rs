//! The public type: every operation, for whichever layout.

mod batches;
mod opening;
mod upkeep;
mod walks;

pub use upkeep::FilesHeld;

use std::sync::Arc;

use sapwood_engine::{Compute, Computed, Journal, Upsert};

use crate::error::Result;
use crate::journal::Told;
use crate::ops::by_layout;
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
    /// Of a log whose changes are told.
    told: Option<Arc<Told>>,
    /// Whether changes may end at first sight: of fixed records, if they are not told.
    ends_at_once: bool,
}

impl HashLog {
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
        self.ends_at_once = false;
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
            && let Some(value) = self.store.get_at_once(Fixed::hash(key), key)
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
            if let Err(read) = self.store.get_quick::<F, (), _>(hash, key, read) {
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
        if self.put_at_once(key, value) { Ok(()) } else { self.put_otherwise(key, value) }
    }

    /// Whether changes of this log may end at once: without it, there is no use in
    /// [`HashLog::put_at_once`] and its like.
    #[inline(always)]
    pub fn ends_at_once(&self) -> bool {
        self.ends_at_once
    }

    /// As [`HashLog::put`], if that ends at first sight, without a wait or an error; else nothing has
    /// happened, the answer is false, and [`HashLog::put_otherwise`] is for the rest. It becomes a part
    /// of the caller's code, which need not call anything.
    #[inline(always)]
    pub fn put_at_once(&self, key: &[u8], value: &[u8]) -> bool {
        if self.ends_at_once
            && let (Some(key), Some(value)) = (Fixed::word(key), Fixed::word(value))
        {
            return self.store.put_at_once(Fixed::hash(key), key, value);
        }
        false
    }

    /// As [`HashLog::put`], for what [`HashLog::put_at_once`] has not done.
    ///
    /// # Errors
    /// As [`HashLog::put`].
    #[inline(never)]
    pub fn put_otherwise(&self, key: &[u8], value: &[u8]) -> Result<()> {
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
    #[inline(always)]
    pub fn update<R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        match self.update_at_once(key, &mut change) {
            Some(answer) => Ok(Some(answer)),
            None => self.update_otherwise(key, change),
        }
    }

    /// As [`HashLog::update`], if that ends at first sight: see [`HashLog::put_at_once`]. The closure
    /// has not run if the answer is `None`.
    #[inline(always)]
    pub fn update_at_once<R>(
        &self,
        key: &[u8],
        change: &mut impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Option<R> {
        let key = Fixed::word(key).filter(|_| self.ends_at_once)?;
        let mut change = |value: &mut ValueMut<'_>| (change(value), Write::Changed);
        self.store.rmw_at_once(Fixed::hash(key), key, &mut change)
    }

    /// As [`HashLog::update`], for what [`HashLog::update_at_once`] has not done.
    ///
    /// # Errors
    /// As [`HashLog::update`].
    #[inline]
    pub fn update_otherwise<R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut answer = None;
        let updated = self.update_with(key, &mut |value| answer = Some(change(value)))?;
        Ok(answer.filter(|_| updated))
    }

    #[inline(never)]
    fn update_with(&self, key: &[u8], change: &mut dyn FnMut(&mut ValueMut<'_>)) -> Result<bool> {
        let updated = match &self.told {
            None => self.update_untold(key, change),
            Some(told) => self.update_told(told, key, change),
        };
        Ok(updated?.is_some())
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
            && let Some(answer) = self.update_at_once(key, &mut change)
        {
            return Ok(Upsert::Updated(answer));
        }
        let mut answer = None;
        let done = self.upsert_with(key, value, &mut |value| answer = Some(change(value)))?;
        Ok(match (done, answer) {
            (Upsert::Updated(()), Some(answer)) => Upsert::Updated(answer),
            _ => Upsert::Inserted,
        })
    }

    #[inline(never)]
    fn upsert_with(
        &self,
        key: &[u8],
        value: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Upsert<()>> {
        match &self.told {
            None => self.put_if_absent_or_update_untold(key, value, change),
            Some(told) => self.put_if_absent_or_update_told(told, key, value, change),
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
    #[inline(always)]
    pub fn add(&self, key: &[u8], delta: i64) -> Result<i64> {
        match self.add_at_once(key, delta) {
            Some(sum) => Ok(sum),
            None => self.add_otherwise(key, delta),
        }
    }

    /// As [`HashLog::add`], if that ends at first sight: see [`HashLog::put_at_once`].
    #[inline(always)]
    pub fn add_at_once(&self, key: &[u8], delta: i64) -> Option<i64> {
        let key = Fixed::word(key).filter(|_| self.ends_at_once)?;
        self.store.add_at_once(Fixed::hash(key), key, delta)
    }

    /// As [`HashLog::add`], for what [`HashLog::add_at_once`] has not done.
    ///
    /// # Errors
    /// As [`HashLog::add`].
    #[inline(never)]
    pub fn add_otherwise(&self, key: &[u8], delta: i64) -> Result<i64> {
        match &self.told {
            None => self.add_untold(key, delta),
            Some(told) => self.add_told(told, key, delta),
        }
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
