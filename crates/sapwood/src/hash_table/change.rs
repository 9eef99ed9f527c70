//! The operations that change a hash table.

use sapwood_hashlog::BatchError;

use crate::{Error, HashTable, Result, Upsert, ValueMut};

impl HashTable {
    /// Puts a value. It does not say whether it replaced one: for that it would have to read the
    /// disk where the key's record lies there; [`put_if_absent`](Self::put_if_absent) says it.
    ///
    /// # Errors
    /// [`Error::HashEngine`] with `KeyLength` or `ValueLength`; `OutOfMemory` in memory; `Io` where
    /// a page had to be written and could not be; inside a closure that changes a value also
    /// `Reentrant` or `WouldBlock` ([`HashEngineError`](crate::HashEngineError)); [`Error::Log`]
    /// where the log of a directory has no room. Nothing was changed.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"old")?;
    /// table.put(b"k", b"new")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline(always)]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        match self.change_at_once(|log| log.try_put_fast(key, value).then_some(())) {
            Some(()) => Ok(()),
            None => self.put_otherwise(key, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_otherwise(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.change_key(key, || self.named(self.log().put_slow(key, value)))
    }

    /// Puts a value unless the key is there; true if it did.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// assert!(table.put_if_absent(b"k", b"first")?);
    /// assert!(!table.put_if_absent(b"k", b"second")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.change_key(key.as_ref(), || {
            self.named(self.log().put_if_absent(key.as_ref(), value.as_ref()))
        })
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert!(table.remove(b"k")?);
    /// assert!(!table.remove(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.change_key(key.as_ref(), || self.named(self.log().remove(key.as_ref())))
    }

    /// Changes a value, in one step for every reader; `None` if the key is not there. In place
    /// where the value lies in the mutable part of the log and keeps its length, else in a copy.
    ///
    /// The rule of every table: the closure may run again, and its last run counts. Here it does when
    /// another thread gets between, and where a copy needs a new page of the log.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_with`](Self::get_with).
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
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let table = &self.shared.name;
        let mut change = |value: &mut sapwood_hashlog::ValueMut<'_>| {
            change(&mut ValueMut::of_hash(value, table))
        };
        let key = key.as_ref();
        match self.change_at_once(|log| log.try_update_fast(key, &mut change)) {
            Some(answer) => Ok(Some(answer)),
            None => self.update_otherwise(key, change),
        }
    }

    #[cold]
    #[inline(never)]
    fn update_otherwise<R>(
        &self,
        key: &[u8],
        change: impl FnMut(&mut sapwood_hashlog::ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        self.change_key(key, || self.named(self.log().update_slow(key, change)))
    }

    /// Puts `value` if the key is not there, or changes the value that is, with one search. The
    /// closure runs as in [`update`](Self::update).
    ///
    /// # Errors
    /// As [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::Upsert;
    /// # use sapwood::{Db, HashTableOptions};
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
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let table = &self.shared.name;
        let change = |value: &mut sapwood_hashlog::ValueMut<'_>| {
            change(&mut ValueMut::of_hash(value, table))
        };
        self.change_key(key.as_ref(), || {
            self.named(self.log().put_if_absent_or_update(key.as_ref(), value.as_ref(), change))
        })
    }

    /// Puts `new` if the value is `expected`; true if it did. A key that is not there has no
    /// value, and equals none.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let leases = Db::in_memory().create_hash_table("leases", HashTableOptions::default())?;
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
            self.named(self.log().compare_and_put(key.as_ref(), expected.as_ref(), new.as_ref()))
        })
    }

    /// Adds to a counter and answers the sum. A counter is a value of 8 bytes, an `i64` with its
    /// least significant byte first; a key that is not there counts as 0, and is there afterwards.
    /// [`get_counter`](Self::get_counter) reads one.
    ///
    /// # Errors
    /// [`Error::HashEngine`] with `Overflow` for a sum that leaves the range of `i64`, and with
    /// `NotACounter` for a value that does not have 8 bytes; otherwise as
    /// [`update`](Self::update). Nothing was changed.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let hits = Db::in_memory().create_hash_table("hits", HashTableOptions::default())?;
    /// assert_eq!(hits.add(b"/index.html", 1)?, 1);
    /// assert_eq!(hits.add(b"/index.html", 41)?, 42);
    /// assert_eq!(hits.get_counter(b"/index.html")?, Some(42));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline(always)]
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        let key = key.as_ref();
        match self.change_at_once(|log| log.try_add_fast(key, delta)) {
            Some(sum) => Ok(sum),
            None => self.add_otherwise(key, delta),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_otherwise(&self, key: &[u8], delta: i64) -> Result<i64> {
        self.change_key(key, || self.named(self.log().add_slow(key, delta)))
    }

    /// Puts the entries, those of one key in order, each as by [`put`](Self::put): faster than
    /// single calls, since the searches overlap. If one is refused, [`Error::HashBatch`] says how
    /// many before it are in.
    ///
    /// # Errors
    /// [`Error::HashBatch`], which says how many are in; the cause is as of [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, entries: &[(K, V)]) -> Result<()> {
        self.change_keys(entries.iter().map(|(key, _)| key.as_ref()), || {
            self.batch(self.log().put_many(entries))
        })
    }

    /// Changes the values of many keys, each as by [`update`](Self::update); `change` is given the
    /// key's index. Answers how many keys were there.
    ///
    /// # Errors
    /// [`Error::HashBatch`], which says how many are done; the cause is as of [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
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
            self.batch(self.log().update_many(keys, |index, value| {
                change(index, &mut ValueMut::of_hash(value, table));
            }))
        })
    }

    /// Adds to many counters, each as by [`add`](Self::add): the fastest way to count events.
    ///
    /// # Errors
    /// [`Error::HashBatch`], which says how many are done; the cause is as of [`add`](Self::add).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let words = Db::in_memory().create_hash_table("words", HashTableOptions::default())?;
    /// words.add_many(&[("an", 1), ("oak", 1), ("is", 1), ("an", 1), ("oak", 1)])?;
    /// assert_eq!(words.get_counter(b"oak")?, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add_many<K: AsRef<[u8]>>(&self, deltas: &[(K, i64)]) -> Result<()> {
        self.change_keys(deltas.iter().map(|(key, _)| key.as_ref()), || {
            self.batch(self.log().add_many(deltas))
        })
    }

    /// Removes every entry that is there when it starts.
    ///
    /// # Errors
    /// As [`remove`](Self::remove) and [`for_each`](Self::for_each); some entries may be gone by then.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// table.clear()?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        self.change_any(|| self.named(self.log().clear()))
    }

    /// Puts the table's name to an engine's error about a batch.
    fn batch<R>(&self, result: std::result::Result<R, BatchError>) -> Result<R> {
        result.map_err(|stopped| Error::HashBatch {
            table: self.shared.name.clone(),
            done: stopped.done,
            cause: stopped.error,
        })
    }
}
