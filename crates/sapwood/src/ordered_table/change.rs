//! The operations that change an ordered table.

use sapwood_chunkmap::BatchError;

use crate::{Compute, Computed, Error, KeyRange, OrderedTable, Result, Upsert, ValueMut};

impl OrderedTable {
    /// Puts a value. It does not say whether it replaced one, as no table does;
    /// [`put_if_absent`](Self::put_if_absent) and [`compute`](Self::compute) say it.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] with `KeyLength`, `ValueLength` or `OutOfMemory`; inside a closure
    /// that changes a value also with `Reentrant` or `WouldBlock`
    /// ([`OrderedEngineError`](crate::OrderedEngineError)); [`Error::Log`] where the log of a
    /// directory has no room. Nothing was changed.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"old")?;
    /// table.put(b"k", b"new")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.put(key.as_ref(), value.as_ref()).map(drop))
        })
    }

    /// Puts a value unless the key is there; true if it did.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert!(table.put_if_absent(b"k", b"first")?);
    /// assert!(!table.put_if_absent(b"k", b"second")?);
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"first"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.put_if_absent(key.as_ref(), value.as_ref()))
        })
    }

    /// Puts the entries in order, each as by [`put`](Self::put): faster than single calls, since
    /// the searches overlap. If one is refused, those before it are in: [`Error::OrderedBatch`]
    /// says how many.
    ///
    /// # Errors
    /// [`Error::OrderedBatch`], which says how many are in; the cause is as of [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, entries: &[(K, V)]) -> Result<()> {
        self.change_keys(entries.iter().map(|(key, _)| key.as_ref()), || {
            self.batch(
                self.map_at_all(entries.iter().map(|(key, _)| key.as_ref()))?
                    .put_many(entries)
                    .map(drop),
            )
        })
    }

    /// Changes the values of many keys, in order, each as by [`update`](Self::update); `change` is
    /// given the key's index. Answers how many keys were there.
    ///
    /// # Errors
    /// [`Error::OrderedBatch`], which says how many are done; the cause is as of
    /// [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", [1]), ("b", [2])])?;
    /// let more = [10, 20, 30];
    /// let found = table.update_many(&["a", "b", "c"], |index, value| value[0] += more[index])?;
    /// assert_eq!(found, 2);
    /// assert_eq!(table.get(b"b")?, Some(vec![22]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        let table = &self.shared.name;
        self.change_keys(keys.iter().map(AsRef::as_ref), || {
            self.batch(self.map_at_all(keys.iter().map(AsRef::as_ref))?.update_many(
                keys,
                |index, value| {
                    change(index, &mut ValueMut::of_ordered(value, table));
                },
            ))
        })
    }

    /// Puts `new` if the value is `expected`; true if it did. A key that is not there has no
    /// value, and equals none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let leases = Db::in_memory().create_ordered_table("leases", OrderedTableOptions::default())?;
    /// leases.put(b"printer", b"ada")?;
    /// assert!(!leases.compare_and_put(b"printer", b"bob", b"eve")?);
    /// assert!(leases.compare_and_put(b"printer", b"ada", b"bob")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compare_and_put(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.compare_and_put(
                key.as_ref(),
                expected.as_ref(),
                new.as_ref(),
            ))
        })
    }

    /// Adds to a counter and answers the sum. A counter is a value of 8 bytes, an `i64` with its
    /// least significant byte first; a key that is not there counts as 0, and is there afterwards.
    /// [`get_counter`](Self::get_counter) reads one.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] with `Overflow` for a sum that leaves the range of `i64`, and with
    /// `NotACounter` for a value that does not have 8 bytes; otherwise as [`put`](Self::put).
    /// Nothing was changed.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let hits = Db::in_memory().create_ordered_table("hits", OrderedTableOptions::default())?;
    /// assert_eq!(hits.add(b"/index.html", 1)?, 1);
    /// assert_eq!(hits.add(b"/index.html", 41)?, 42);
    /// assert_eq!(hits.get_counter(b"/index.html")?, Some(42));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.add(key.as_ref(), delta))
        })
    }

    /// Adds to many counters, in order, each as by [`add`](Self::add): faster than single calls,
    /// since the searches overlap.
    ///
    /// # Errors
    /// [`Error::OrderedBatch`], which says how many are done; the cause is as of
    /// [`add`](Self::add).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let words = Db::in_memory().create_ordered_table("words", OrderedTableOptions::default())?;
    /// words.add_many(&[("an", 1), ("oak", 1), ("is", 1), ("an", 1), ("oak", 1)])?;
    /// assert_eq!(words.get_counter(b"oak")?, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add_many<K: AsRef<[u8]>>(&self, deltas: &[(K, i64)]) -> Result<()> {
        self.change_keys(deltas.iter().map(|(key, _)| key.as_ref()), || {
            self.batch(
                self.map_at_all(deltas.iter().map(|(key, _)| key.as_ref()))?.add_many(deltas),
            )
        })
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] with `KeyLength`; inside a closure that changes a value also with
    /// `Reentrant` or `WouldBlock` ([`OrderedEngineError`](crate::OrderedEngineError)).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert!(table.remove(b"k")?);
    /// assert!(!table.remove(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.remove(key.as_ref()))
        })
    }

    /// Removes a key and reads the value that was there.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
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
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.remove_with(key.as_ref(), read))
        })
    }

    /// Changes a value in place, in one step for every reader; `None` if the key is not there.
    /// The closure may shrink or grow the value.
    ///
    /// The rule of every table: the closure may run again, and its last run counts. Here it runs at
    /// most once; code that relies on it does not move to a [`HashTable`](crate::HashTable).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"hits", &[1])?;
    /// let hits = table.update(b"hits", |value| {
    ///     value[0] += 1;
    ///     value[0]
    /// })?;
    /// assert_eq!(hits, Some(2));
    ///
    /// table.put(b"name", b"oak and elm")?;
    /// let cut = table.update(b"name", |value| {
    ///     value[0] = b'O';
    ///     value.resize(3)
    /// })?;
    /// assert_eq!(cut, Some(Ok(())));
    /// assert_eq!(table.get(b"name")?.as_deref(), Some(&b"Oak"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update<R>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let table = &self.shared.name;
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            change(&mut ValueMut::of_ordered(value, table))
        };
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.update(key.as_ref(), change))
        })
    }

    /// Puts `value` if the key is not there, or changes the value that is, with one search. The
    /// closure runs as in [`update`](Self::update).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::Upsert;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
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
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let table = &self.shared.name;
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            change(&mut ValueMut::of_ordered(value, table))
        };
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.put_if_absent_or_update(
                key.as_ref(),
                value.as_ref(),
                change,
            ))
        })
    }

    /// Lets `decide` keep, replace or remove what is at a key, seeing it first. The closure may
    /// run again when another thread gets between.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Compute, Computed};
    /// # use sapwood::{Db, OrderedTableOptions};
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
        self.change_key(key.as_ref(), || {
            self.named(self.map_at(key.as_ref())?.compute(key.as_ref(), decide))
        })
    }

    /// Removes and answers the entry with the least key.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.pop_first()?, Some((b"a".to_vec(), b"1".to_vec())));
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn pop_first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.change_any(|| self.named(self.map()?.pop_first()))
    }

    /// Removes and answers the entry with the greatest key.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.pop_last()?, Some((b"b".to_vec(), b"2".to_vec())));
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn pop_last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.change_any(|| self.named(self.map()?.pop_last()))
    }

    /// Removes every entry that is there when it starts.
    ///
    /// # Errors
    /// As [`remove`](Self::remove); some entries may be gone by then.
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
        self.change_any(|| self.named(self.map()?.clear()))
    }

    /// Removes the entries in `range`, and answers how many: those that are there when it
    /// starts; what is put meanwhile may stay. A series of removals, not one atomic one.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`]: inside a closure that changes a value, where it would wait for
    /// itself; some entries may be gone by then.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, key};
    /// # let seen = Db::in_memory().create_ordered_table("seen", OrderedTableOptions::default())?;
    /// for (minute, user) in [(480_u32, "ada"), (481, "bob"), (600, "eve")] {
    ///     seen.put(&key::encode(&(minute, user)), b"")?;
    /// }
    /// let nine_o_clock = key::encode(&540_u32);
    /// assert_eq!(seen.remove_range(..nine_o_clock)?, 2);
    /// assert_eq!(seen.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove_range(&self, range: impl KeyRange) -> Result<u64> {
        self.change_any(|| self.named(self.map()?.remove_range(range)))
    }

    /// Removes the entries of which `keep` says false, and answers how many. A series of removals,
    /// not one atomic one; what is put meanwhile may be asked about or not.
    ///
    /// An entry is removed as it was when `keep` refused it: `keep` is asked a second time right
    /// before, while no other thread can change the entry.
    ///
    /// # Errors
    /// As [`remove_range`](Self::remove_range).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let sessions = Db::in_memory().create_ordered_table("sessions", OrderedTableOptions::default())?;
    /// for (user, expires) in [("ada", 540_u32), ("bob", 600), ("eve", 480)] {
    ///     sessions.put(user.as_bytes(), &expires.to_be_bytes())?;
    /// }
    /// let now = 500_u32.to_be_bytes();
    /// assert_eq!(sessions.retain(|_user, expires| expires > &now[..])?, 1);
    /// assert!(!sessions.contains_key(b"eve")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn retain(&self, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        self.change_any(|| self.named(self.map()?.retain(keep)))
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
