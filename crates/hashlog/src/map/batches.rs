//! Many keys in one call, whose misses of the cache and of the disk overlap.

use sapwood_engine::RecordAddress;

use super::HashLog;
use crate::edit::Edit;
use crate::error::{BatchError, Result};
use crate::ops::by_layout;
use crate::record::value::ValueMut;

#[cfg(doc)]
use crate::Error;

impl HashLog {
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
        let put =
            |entries: &[(K, V)]| by_layout!(self, F => self.store.put_many::<F, K, V>(entries));
        match &self.journal {
            None => put(entries),
            Some(journal) => self.put_many_logged(journal, entries, put),
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

    /// Changes many keys; unlike that of `update_many`, `change` gets keys that are absent, too.
    #[inline]
    pub(crate) fn update_each<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> std::result::Result<usize, BatchError> {
        match &self.journal {
            None => by_layout!(self, F => self.store.update_many::<F, K>(keys, change)),
            Some(journal) => self.update_each_logged(journal, keys, change),
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
        match &self.journal {
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
        let begun = match &self.journal {
            None => by_layout!(self, F => self.store.edit::<F>()),
            // Changes are logged one by one.
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
        match &self.journal {
            None => by_layout!(self, F => self.store.add_many::<F, K>(deltas, &mut |_, _| ())),
            Some(journal) => self.add_many_logged(journal, deltas, |deltas, mut sum| {
                by_layout!(self, F => self.store.add_many::<F, K>(deltas, &mut sum))
            }),
        }
    }
}
