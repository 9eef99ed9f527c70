//! Verbs that change single keys, and batches of them.

use super::{KeyEntry, Keyed, Table};
use crate::{Compute, Computed, Result, Upsert, ValueMut};

impl<E: Keyed> Table<E> {
    /// Puts a value, in the place of one that the key has. [`put_if_absent`](Self::put_if_absent) and
    /// [`compute`](Self::compute) say whether there was one.
    ///
    /// # Errors
    /// [The engine's](Table#errors).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"old")?;
    /// table.put(b"k", b"new")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline(always)]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        E::put(self, key.as_ref(), value.as_ref())
    }

    /// Puts a value unless the key has one; true if it did.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// assert!(table.put_if_absent(b"k", b"first")?);
    /// assert!(!table.put_if_absent(b"k", b"second")?);
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"first"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        E::put_if_absent(self, key.as_ref(), value.as_ref())
    }

    /// Puts the entries, those of one key in order, each as by [`put`](Self::put): faster than single calls, since
    /// the searches overlap. A tree table puts all or none.
    ///
    /// # Errors
    /// [`Error::OrderedBatch`](crate::Error::OrderedBatch) or [`Error::HashBatch`](crate::Error::HashBatch): the number of
    /// entries that are in, and the cause, one of [`put`](Self::put)'s.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, entries: &[(K, V)]) -> Result<()> {
        E::put_many(self, entries)
    }

    /// Changes a value in place, in one step for every reader; `None` without the key.
    ///
    /// The closure may be called more than once, and its last call takes effect: it is no place to count or to send.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put) and [`get_with`](Self::get_with); the entry is as it was.
    ///
    /// # Panics
    /// If the closure does: an ordered table holds what was written until then, and others the value as it was.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"hits", &[1])?;
    /// let hits = table.update(b"hits", |value| {
    ///     value[0] += 1;
    ///     value[0]
    /// })?;
    /// assert_eq!(hits, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline(always)]
    pub fn update<R>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        E::update(self, key.as_ref(), change)
    }

    /// Changes the values of many keys, each as by [`update`](Self::update); `change` is given the key's index.
    /// Answers the number of keys that had a value.
    ///
    /// # Errors
    /// The errors of [`put_many`](Self::put_many).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", [1]), ("b", [2])])?;
    /// let found = table.update_many(&["a", "b", "c"], |index, value| value[0] += index as u8)?;
    /// assert_eq!(found, 2);
    /// assert_eq!(table.get(b"b")?, Some(vec![3]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        E::update_many(self, keys, change)
    }

    /// Puts `value` for a new key, or changes the value that the key has, with one search. The closure is called as
    /// by [`update`](Self::update).
    ///
    /// # Errors
    /// The errors of [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Upsert};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// let count = || table.put_if_absent_or_update(b"hits", &[1], |value| value[0] += 1);
    /// assert_eq!(count()?, Upsert::Inserted);
    /// assert_eq!(count()?, Upsert::Updated(()));
    /// assert_eq!(table.get(b"hits")?, Some(vec![2]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent_or_update<R>(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        E::put_if_absent_or_update(self, key.as_ref(), value.as_ref(), change)
    }

    /// The place of a key, for a change in one search that reads as `std`'s maps do it.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// for word in ["an", "oak", "is", "an", "oak"] {
    ///     table.entry(word).and_update(|count| count[0] += 1).or_put([1])?;
    /// }
    /// assert_eq!(table.get("oak")?, Some(vec![2]));
    /// assert!(!table.entry("oak").or_put([9])?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn entry<K: AsRef<[u8]>>(&self, key: K) -> KeyEntry<'_, E, K> {
        KeyEntry::new(self, key)
    }

    /// Puts `new` if the value is `expected`; true if it did. A key without a value equals none.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
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
        E::compare_and_put(self, key.as_ref(), expected.as_ref(), new.as_ref())
    }

    /// Adds to a counter and answers the sum. A counter is a value of 8 bytes, an `i64` with its least significant
    /// byte first; a new key starts at 0.
    ///
    /// # Errors
    /// `Overflow` of the engine for a sum beyond `i64`, `NotACounter` for a value that does not have 8 bytes;
    /// otherwise those of [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// assert_eq!(table.add(b"hits", 1)?, 1);
    /// assert_eq!(table.add(b"hits", 41)?, 42);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline(always)]
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        E::add(self, key.as_ref(), delta)
    }

    /// Adds to many counters, each as by [`add`](Self::add): the fastest way to count events.
    ///
    /// # Errors
    /// The errors of [`put_many`](Self::put_many).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.add_many(&[("an", 1), ("oak", 1), ("is", 1), ("an", 1), ("oak", 1)])?;
    /// assert_eq!(table.get_counter(b"oak")?, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add_many<K: AsRef<[u8]>>(&self, deltas: &[(K, i64)]) -> Result<()> {
        E::add_many(self, deltas)
    }

    /// Removes a key; true if it had a value.
    ///
    /// # Errors
    /// The errors of [`get_with`](Self::get_with), and of a change; the entry is as it was.
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
        E::remove(self, key.as_ref())
    }

    /// Removes a key and shows its value to `read`; `None` without the key.
    ///
    /// # Errors
    /// The errors of [`remove`](Self::remove).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"value")?;
    /// assert_eq!(table.remove_with(b"k", |value| value.len())?, Some(5));
    /// assert_eq!(table.remove_with(b"k", |value| value.len())?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        E::remove_with(self, key.as_ref(), read)
    }

    /// Lets `decide` keep, replace or remove the value of a key, which it sees first, in one step for every other
    /// thread. The closure is called as by [`update`](Self::update).
    ///
    /// With [`RecordLayout::Fixed8`](crate::RecordLayout::Fixed8) a removal may wait until closures of other threads have
    /// ended.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update).
    ///
    /// # Panics
    /// If the closure does; the entry is as it was.
    ///
    /// ```
    /// # use sapwood::{Compute, Computed, Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let count_down = |value: Option<&[u8]>| match value {
    ///     None => Compute::Replace(vec![1]),
    ///     Some([0]) => Compute::Remove,
    ///     Some(left) => Compute::Replace(vec![left[0] - 1]),
    /// };
    /// assert_eq!(table.compute(b"k", count_down)?, Computed::Inserted);
    /// assert_eq!(table.compute(b"k", count_down)?, Computed::Replaced);
    /// assert_eq!(table.compute(b"k", count_down)?, Computed::Removed);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compute(
        &self,
        key: impl AsRef<[u8]>,
        decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        E::compute(self, key.as_ref(), decide)
    }

    /// Removes the entries of which `keep` says false, and answers their number. An entry is removed as it was when
    /// `keep` refused it: one that a writer changes meanwhile is shown again.
    ///
    /// # Errors
    /// The errors of [`remove`](Self::remove) and [`for_each`](Self::for_each); some entries may be gone by then, but for
    /// those of a tree table, which removes all or none.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let sessions = Db::in_memory().create_hash_table("sessions", HashTableOptions::default())?;
    /// for (user, expires) in [("ada", 540_u32), ("bob", 600), ("eve", 480)] {
    ///     sessions.put(user, &expires.to_be_bytes())?;
    /// }
    /// let now = 500_u32.to_be_bytes();
    /// assert_eq!(sessions.retain(|_user, expires| expires > &now[..])?, 1);
    /// assert!(!sessions.contains_key(b"eve")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn retain(&self, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        E::retain(self, keep)
    }

    /// Removes every entry that the table has when it starts.
    ///
    /// # Errors
    /// The errors of [`retain`](Self::retain).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// table.clear()?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        E::clear(self)
    }
}
