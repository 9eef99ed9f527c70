//! Transactions over tree tables.

use std::ops::ControlFlow;

use sapwood_ptree::{Commit, Pool};

use super::{TreeTable, counter};
use crate::{Compute, Computed, Direction, Error, KeyRange, Result, Upsert, ValueMut};

#[cfg(doc)]
use crate::{Db, TreeEngineError};

/// Changes to any tree tables of a database that take effect together, at
/// [`commit`](Self::commit), or not at all: for readers, and after a crash. [`Db::begin`] and
/// [`Db::transaction`] make it; one that is dropped is aborted.
///
/// *Isolation*: the transaction has each table that it reads or changes for itself until it ends, so
/// that what it read stays so; other transactions wait, and readers outside see what was there
/// before. Where two could wait for each other, one is refused
/// ([`TreeEngineError::Conflict`]): it is dropped and begun again, with [`Db::begin_on`], which takes
/// all its tables at once and meets no conflict.
///
/// A transaction stays in its thread. An operation that is refused changes nothing, and the
/// transaction goes on.
///
/// ```
/// use sapwood::{Db, TreeTableOptions};
///
/// let db = Db::in_memory();
/// let accounts = db.create_tree_table("accounts", TreeTableOptions::default())?;
/// let bookings = db.create_tree_table("bookings", TreeTableOptions::default())?;
/// accounts.add(b"ada", 100)?;
///
/// db.transaction(|tx| {
///     tx.add(&accounts, b"ada", -30)?;
///     tx.add(&accounts, b"bob", 30)?;
///     tx.put(&bookings, b"2026-11-01/1", b"ada bob 30")
/// })?;
/// assert_eq!(accounts.get_counter(b"bob")?, Some(30));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction<'db> {
    tx: sapwood_ptree::Transaction<'db>,
}

impl<'db> Transaction<'db> {
    pub(crate) fn begin(pool: &'db Pool) -> Result<Transaction<'db>> {
        Ok(Transaction { tx: pool.begin().map_err(Error::trees)? })
    }

    pub(crate) fn begin_on(pool: &'db Pool, tables: &[&TreeTable]) -> Result<Transaction<'db>> {
        let trees: Vec<_> = tables.iter().map(|table| table.tree()).collect();
        Ok(Transaction { tx: pool.begin_on(&trees).map_err(Error::trees)? })
    }

    /// Makes all changes visible and durable, as far as [`Durability`](crate::Durability) says. The
    /// answer waits for more, if more is wanted.
    ///
    /// # Errors
    /// [`Error::Trees`] where the disk refused. Nothing changed.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.put(&table, b"k", b"v")?;
    /// tx.commit()?;
    /// assert!(table.contains_key(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn commit(self) -> Result<Commit> {
        self.tx.commit().map_err(Error::trees)
    }

    /// Forgets all changes, as dropping the transaction does.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.put(&table, b"k", b"v")?;
    /// tx.abort();
    /// assert!(!table.contains_key(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn abort(self) {
        self.tx.abort();
    }

    /// Copies a value out, as the transaction sees it.
    ///
    /// # Errors
    /// [`Error::TreeEngine`]: those of [`TreeTable::get_with`], and
    /// [`Conflict`](TreeEngineError::Conflict).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// db.transaction(|tx| {
    ///     tx.put(&table, b"k", b"v")?;
    ///     assert_eq!(tx.get(&table, b"k")?.as_deref(), Some(&b"v"[..]));
    ///     assert_eq!(table.get(b"k")?, None); // Not committed yet.
    ///     Ok(())
    /// })?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, table: &TreeTable, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        table.named(self.tx.get(table.tree(), key))
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(!db.transaction(|tx| tx.contains_key(&table, b"k"))?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn contains_key(&self, table: &TreeTable, key: impl AsRef<[u8]>) -> Result<bool> {
        table.named(self.tx.contains_key(table.tree(), key))
    }

    /// Reads a counter; `None` without the key.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`NotACounter`](TreeEngineError::NotACounter).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// table.add(b"k", 7)?;
    /// assert_eq!(db.transaction(|tx| tx.get_counter(&table, b"k"))?, Some(7));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_counter(&self, table: &TreeTable, key: impl AsRef<[u8]>) -> Result<Option<i64>> {
        let value = self.get(table, key)?;
        table.named(value.map(|value| counter(&value)).transpose())
    }

    /// Visits the entries in a range, as the transaction sees them; `visit` ends it with
    /// `ControlFlow::Break`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, Direction, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let last = db.transaction(|tx| {
    ///     tx.remove(&table, b"b")?;
    ///     tx.scan(&table, .., Direction::Descending, |key, _| ControlFlow::Break(key.to_vec()))
    /// })?;
    /// assert_eq!(last, ControlFlow::Break(b"a".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<B>(
        &self,
        table: &TreeTable,
        range: impl KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        table.named(self.tx.scan(table.tree(), range, direction, visit))
    }

    /// How many entries a table has.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert_eq!(db.transaction(|tx| tx.len(&table))?, 0);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len(&self, table: &TreeTable) -> Result<usize> {
        table.named(self.tx.len(table.tree())).map(|len| len as usize)
    }

    /// Puts a value.
    ///
    /// # Errors
    /// [`Error::TreeEngine`]: [`KeyLength`](TreeEngineError::KeyLength),
    /// [`ValueLength`](TreeEngineError::ValueLength),
    /// [`OutOfMemory`](TreeEngineError::OutOfMemory),
    /// [`Reentrant`](TreeEngineError::Reentrant) inside a closure that changes a value,
    /// [`ReadOnly`](TreeEngineError::ReadOnly); and as [`get`](Self::get).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// db.transaction(|tx| tx.put(&table, b"k", b"v"))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        table.named(self.tx.put(table.tree(), key, value).map(drop))
    }

    /// Puts a value unless the key is there; true if it did.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(db.transaction(|tx| tx.put_if_absent(&table, b"k", b"v"))?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        table.named(self.tx.put_if_absent(table.tree(), key, value))
    }

    /// Changes a value; `None` without the key. The closure may read in the transaction, and
    /// changes nothing else there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"oak")?;
    /// db.transaction(|tx| tx.update(&table, b"k", |value| value[0] = b'O'))?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"Oak"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update<R>(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let name = &table.shared.name;
        let change =
            |value: &mut sapwood_ptree::ValueMut<'_>| change(&mut ValueMut::of_tree(value, name));
        table.named(self.tx.update(table.tree(), key, change))
    }

    /// Puts `value` if the key is not there, or changes the value that is, with one search.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions, Upsert};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let count = || {
    ///     db.transaction(|tx| tx.put_if_absent_or_update(&table, b"k", [1], |value| value[0] += 1))
    /// };
    /// assert_eq!((count()?, count()?), (Upsert::Inserted, Upsert::Updated(())));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent_or_update<R>(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let name = &table.shared.name;
        let change =
            |value: &mut sapwood_ptree::ValueMut<'_>| change(&mut ValueMut::of_tree(value, name));
        table.named(self.tx.put_if_absent_or_update(table.tree(), key, value, change))
    }

    /// Puts `new` if the value is `expected`; true if it did. A key that is not there has no value,
    /// and equals none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"old")?;
    /// assert!(db.transaction(|tx| tx.compare_and_put(&table, b"k", b"old", b"new"))?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compare_and_put(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let (expected, new) = (expected.as_ref(), new.as_ref());
        let decide = |value: Option<&[u8]>| match value == Some(expected) {
            true => Compute::Replace(new.to_vec()),
            false => Compute::Keep,
        };
        Ok(self.compute(table, key, decide)? == Computed::Replaced)
    }

    /// Adds to a counter and answers the sum, as [`TreeTable::add`] does.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`NotACounter`](TreeEngineError::NotACounter),
    /// [`Overflow`](TreeEngineError::Overflow).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert_eq!(db.transaction(|tx| tx.add(&table, b"k", 7))?, 7);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add(&self, table: &TreeTable, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        table.named(self.tx.add(table.tree(), key, delta))
    }

    /// Lets `decide` keep, replace or remove what is at a key, seeing it first.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Compute, Computed, Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let made = db.transaction(|tx| tx.compute(&table, b"k", |_| Compute::Replace(vec![1])))?;
    /// assert_eq!(made, Computed::Inserted);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compute(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        decide: impl FnOnce(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        table.named(self.tx.compute(table.tree(), key, decide))
    }

    /// Removes a key and answers the value that it had.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(db.transaction(|tx| tx.remove(&table, b"k"))?, Some(b"v".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, table: &TreeTable, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        table.named(self.tx.remove(table.tree(), key))
    }

    /// Fills an empty table from entries in strictly ascending order of keys, and answers how many:
    /// the fastest way to fill one.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`Options`](TreeEngineError::Options) where the table is not empty or
    /// the keys do not ascend. The transaction is aborted then.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let numbers = (0..1_000_u32).map(|number| (number.to_be_bytes(), b"n"));
    /// assert_eq!(db.transaction(|tx| tx.load(&table, numbers))?, 1_000);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        table: &TreeTable,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        table.named(self.tx.load(table.tree(), entries))
    }

    /// Removes every entry.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// db.transaction(|tx| tx.clear(&table))?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn clear(&self, table: &TreeTable) -> Result<()> {
        table.named(self.tx.clear(table.tree()))
    }
}
