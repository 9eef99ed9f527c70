//! The operations of a tree table that change it: each a transaction of its own.

use std::ops::ControlFlow;

use super::{TreeTable, TreeTransaction};
#[cfg(doc)]
use crate::Transaction;
use crate::{Compute, Computed, Direction, Error, KeyRange, Result, Upsert, ValueMut};

impl TreeTable {
    /// Puts a value.
    ///
    /// # Errors
    /// As [`Transaction::put`]; nothing was changed.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"old")?;
    /// table.put(b"k", b"new")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.alone(|tx| tx.put(self, key, value))
    }

    /// Puts a value unless the key is there; true if it did.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(table.put_if_absent(b"k", b"first")?);
    /// assert!(!table.put_if_absent(b"k", b"second")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.alone(|tx| tx.put_if_absent(self, key, value))
    }

    /// Puts the entries, all in one transaction, or none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, entries: &[(K, V)]) -> Result<()> {
        self.alone(|tx| entries.iter().try_for_each(|(key, value)| tx.put(self, key, value)))
    }

    /// Changes the values of many keys, in one transaction; `change` is given the key's index.
    /// Answers how many keys were there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", [1]), ("b", [2])])?;
    /// let found = table.update_many(&["a", "b", "c"], |index, value| value[0] += index as u8)?;
    /// assert_eq!(found, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        self.alone(|tx| {
            keys.iter().enumerate().try_fold(0, |found, (index, key)| {
                let changed = tx.update(self, key, |value| change(index, value))?;
                Ok(found + usize::from(changed.is_some()))
            })
        })
    }

    /// Puts `new` if the value is `expected`; true if it did. A key that is not there has no value, and
    /// equals none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"printer", b"ada")?;
    /// assert!(!table.compare_and_put(b"printer", b"bob", b"eve")?);
    /// assert!(table.compare_and_put(b"printer", b"ada", b"bob")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compare_and_put(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.alone(|tx| tx.compare_and_put(self, key, expected, new))
    }

    /// Adds to a counter and answers the sum. A counter is a value of 8 bytes, an `i64` with its least
    /// significant byte first; a key that is not there counts as 0, and is there afterwards.
    ///
    /// # Errors
    /// As [`Transaction::add`].
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// assert_eq!(table.add(b"/index.html", 1)?, 1);
    /// assert_eq!(table.add(b"/index.html", 41)?, 42);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        self.alone(|tx| tx.add(self, key, delta))
    }

    /// Adds to many counters, in one transaction.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.add_many(&[("an", 1), ("oak", 1), ("an", 1)])?;
    /// assert_eq!(table.get_counter(b"an")?, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add_many<K: AsRef<[u8]>>(&self, deltas: &[(K, i64)]) -> Result<()> {
        self.alone(|tx| {
            deltas.iter().try_for_each(|(key, delta)| tx.add(self, key, *delta).map(drop))
        })
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert!(table.remove(b"k")?);
    /// assert!(!table.remove(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.alone(|tx| tx.remove(self, key)).map(|removed| removed.is_some())
    }

    /// Removes a key and reads the value that was there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"value")?;
    /// assert_eq!(table.remove_with(b"k", |value| value.len())?, Some(5));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        Ok(self.alone(|tx| tx.remove(self, key))?.map(|value| read(&value)))
    }

    /// Changes a value, in one step for every reader; `None` if the key is not there. The closure may
    /// shrink or grow the value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"name", b"oak and elm")?;
    /// table.update(b"name", |value| value.resize(3))?.expect("it is there")?;
    /// assert_eq!(table.get(b"name")?.as_deref(), Some(&b"oak"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update<R>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        self.alone(|tx| tx.update(self, key, change))
    }

    /// Puts `value` if the key is not there, or changes the value that is, with one search.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// let count = || table.put_if_absent_or_update(b"hits", [1], |value| value[0] += 1);
    /// assert_eq!(count()?, sapwood::Upsert::Inserted);
    /// assert_eq!(count()?, sapwood::Upsert::Updated(()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent_or_update<R>(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        self.alone(|tx| tx.put_if_absent_or_update(self, key, value, change))
    }

    /// Lets `decide` keep, replace or remove what is at a key, seeing it first.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// let made = table.compute(b"k", |_| sapwood::Compute::Replace(vec![1]))?;
    /// assert_eq!(made, sapwood::Computed::Inserted);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compute(
        &self,
        key: impl AsRef<[u8]>,
        decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        self.alone(|tx| tx.compute(self, key, decide))
    }

    /// Removes and answers the entry with the least key.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.pop_first()?.expect("two entries").0, b"a");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn pop_first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(Direction::Ascending)
    }

    /// Removes and answers the entry with the greatest key.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.pop_last()?.expect("two entries").0, b"b");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn pop_last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(Direction::Descending)
    }

    /// Removes every entry, in one transaction.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// table.clear()?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        self.alone(|tx| tx.clear(self))
    }

    /// Removes the entries in `range`, in one transaction, and answers how many.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// assert_eq!(table.remove_range("b"..)?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove_range(&self, range: impl KeyRange) -> Result<u64> {
        self.retain_in(range, |_, _| false)
    }

    /// Removes the entries of which `keep` says false, in one transaction, and answers how many.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.retain(|_key, value| value == b"2")?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn retain(&self, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        self.retain_in(.., keep)
    }

    fn pop(&self, direction: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.alone(|tx| {
            let end = tx.scan(self, .., direction, |key, _| ControlFlow::Break(key.to_vec()))?;
            let ControlFlow::Break(key) = end else { return Ok(None) };
            let value = tx.remove(self, &key)?;
            Ok(value.map(|value| (key, value)))
        })
    }

    fn retain_in(
        &self,
        range: impl KeyRange,
        mut keep: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.alone(|tx| {
            let mut refused = Vec::new();
            let _all = tx.scan(self, range, Direction::Ascending, |key, value| {
                if !keep(key, value) {
                    refused.push(key.to_vec());
                }
                ControlFlow::<()>::Continue(())
            })?;
            for key in &refused {
                tx.remove(self, key)?;
            }
            Ok(refused.len() as u64)
        })
    }

    /// Runs `change` in a transaction of its own.
    fn alone<R>(&self, change: impl FnOnce(&TreeTransaction<'_>) -> Result<R>) -> Result<R> {
        let transaction = TreeTransaction::begin(self.tree().pool())?;
        let done = change(&transaction)?;
        transaction.commit()?.settle().map_err(Error::trees)?;
        Ok(done)
    }
}
