//! A table of any kind, and what all kinds have in common.

mod query;
mod stats;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use sapwood_engine::{broken_off, keep_break};

use crate::formats::Formats;
use crate::schema::{RowFormat, Schema};
use crate::{
    Compute, Computed, Direction, Engine, Error, HashTable, KeyRange, OrderedTable, Result,
    TreeTable, Upsert, ValueMut,
};

pub use stats::TableStats;

/// Calls the same method of the table, of whichever kind it is.
macro_rules! each {
    ($self:ident, $table:ident => $call:expr) => {
        match $self {
            $crate::Table::Ordered($table) => $call,
            $crate::Table::Hash($table) => $call,
            $crate::Table::Tree($table) => $call,
        }
    };
}
use each;

/// A named table of any kind, for code that works on all of them.
///
/// It has the operations that all kinds have, and costs one branch in each; [`OrderedTable`],
/// [`HashTable`] and [`TreeTable`] have what only some can do, and limits of their own for keys and
/// values. A
/// `Table` is a handle, as they are. [`Db::table`](crate::Db::table) opens one by its name, and
/// each kind turns into one.
///
/// # Consistency
///
/// That of the table which it holds: each operation on one key takes effect at one moment between
/// its call and its return, for every thread. Batches, [`clear`](Self::clear) and walks are a
/// series of operations, not one atomic one.
///
/// ```
/// use sapwood::{Db, HashTableOptions, OrderedTableOptions, Table};
///
/// fn count(words: &Table, text: &str) -> sapwood::Result<()> {
///     text.split(' ').try_for_each(|word| words.add(word.as_bytes(), 1).map(drop))
/// }
///
/// let db = Db::in_memory();
/// db.create_ordered_table("in_order", OrderedTableOptions::default())?;
/// db.create_hash_table("by_hash", HashTableOptions::default())?;
/// for name in db.table_names() {
///     let words = db.table(&name)?;
///     count(&words, "an oak is an oak")?;
///     assert_eq!(words.get_counter(b"oak")?, Some(2));
/// }
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Table {
    /// One that keeps its keys in order.
    Ordered(OrderedTable),
    /// One that finds its keys by their hash.
    Hash(HashTable),
    /// One that keeps its keys in order, in a crash-safe heap.
    Tree(TreeTable),
}

impl From<OrderedTable> for Table {
    fn from(table: OrderedTable) -> Table {
        Table::Ordered(table)
    }
}

impl From<HashTable> for Table {
    fn from(table: HashTable) -> Table {
        Table::Hash(table)
    }
}

impl From<TreeTable> for Table {
    fn from(table: TreeTable) -> Table {
        Table::Tree(table)
    }
}

impl Table {
    /// The table's name.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// assert_eq!(table.name(), "t");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        each!(self, table => table.name())
    }

    /// The typed columns of the table, if it was made with some.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:date, hits:u64, key(day)".parse().expect("a schema");
    /// db.create_hash_table("t", HashTableOptions::default().schema(schema))?;
    /// assert_eq!(db.table("t")?.schema().and_then(|schema| schema.find("hits")), Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self) -> Option<&Schema> {
        self.row_format().map(RowFormat::schema)
    }

    /// How rows of the table are written and read as bytes, if it has a schema. It reads all rows that were put
    /// before it was asked for; a column that is added later is in another one.
    ///
    /// ```
    /// # use sapwood::schema::Value;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:date, hits:u64, key(day)".parse().expect("a schema");
    /// db.create_ordered_table("t", OrderedTableOptions::default().schema(schema))?;
    /// db.rows("t")?.put(&[Value::Date(0), 7.into()])?;
    /// let table = db.table("t")?;
    /// let format = table.row_format().expect("it has a schema");
    /// let mut key = Vec::new();
    /// format.encode_key(&[Value::Date(0)], &mut key).expect("a day");
    /// let hits = table.get_with(&key, |value| format.get(1, &key, value).expect("a row").to_string())?;
    /// assert_eq!(hits.as_deref(), Some("7"));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn row_format(&self) -> Option<&RowFormat> {
        self.formats().map(|formats| formats.newest())
    }

    pub(crate) fn formats(&self) -> Option<&Arc<Formats>> {
        each!(self, table => table.formats())
    }

    /// How the table keeps its entries.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// assert_eq!(table.engine(), sapwood::Engine::Ordered);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn engine(&self) -> Engine {
        match self {
            Self::Ordered(_) => Engine::Ordered,
            Self::Hash(_) => Engine::Hash,
            Self::Tree(_) => Engine::Tree,
        }
    }

    /// The ordered table, if it is one: for neighbours, ranges and scans.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let ordered = table.as_ordered().expect("it was made so");
    /// assert_eq!(ordered.last()?.expect("two entries").key(), b"b");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn as_ordered(&self) -> Option<&OrderedTable> {
        match self {
            Self::Ordered(table) => Some(table),
            Self::Hash(_) | Self::Tree(_) => None,
        }
    }

    /// The hash table, if it is one: for checkpoints, snapshots and compaction.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// let hash = table.as_hash().expect("it was made so");
    /// assert_eq!(hash.checkpoints().unwrap_err().hash_engine(), Some(&sapwood::HashEngineError::NoDirectory));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn as_hash(&self) -> Option<&HashTable> {
        match self {
            Self::Hash(table) => Some(table),
            Self::Ordered(_) | Self::Tree(_) => None,
        }
    }

    /// The tree table, if it is one: for transactions.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # db.create_tree_table("t", TreeTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// let tree = table.as_tree().expect("it was made so");
    /// db.transaction(|tx| tx.add(tree, b"hits", 1))?;
    /// assert_eq!(table.get_counter(b"hits")?, Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn as_tree(&self) -> Option<&TreeTable> {
        match self {
            Self::Tree(table) => Some(table),
            Self::Ordered(_) | Self::Hash(_) => None,
        }
    }

    /// Reads a value where it lies; answers what `read` answers, or `None` without the key.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] or [`Error::HashEngine`], as the method of the same name answers.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get_with(b"oak", |value| value.len())?, Some(7));
    /// assert_eq!(table.get_with(b"elm", |value| value.len())?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (mut read, mut answer) = (Some(read), None);
        self.show(key.as_ref(), &mut |value| answer = read.take().map(|read| read(value)))?;
        Ok(answer)
    }

    fn show(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<Option<()>> {
        each!(self, table => table.get_with(key, read))
    }

    /// Copies a value out.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get(b"oak")?.as_deref(), Some(&b"quercus"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        each!(self, table => table.get(key))
    }

    /// Whether the key is there.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"oak", b"quercus")?;
    /// assert!(table.contains_key(b"oak")? && !table.contains_key(b"elm")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        each!(self, table => table.contains_key(key))
    }

    /// Reads a counter, as [`add`](Self::add) makes them, and leaves it as it is; `None` without
    /// the key, where `add` would make one.
    ///
    /// # Errors
    /// `NotACounter` of the engine if the value has not 8 bytes; otherwise as
    /// [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.add(b"hits", 42)?;
    /// assert_eq!(table.get_counter(b"hits")?, Some(42));
    /// assert_eq!(table.get_counter(b"misses")?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_counter(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>> {
        each!(self, table => table.get_counter(key))
    }

    /// Calls `read(i, value)` once for each `keys[i]`, in any order: faster than single calls,
    /// since the searches overlap.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with); `read` was called for others by then.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put_many(&[("elm", "ulmus"), ("oak", "quercus")])?;
    /// let mut lens = [None; 3];
    /// table.get_many(&["oak", "ash", "elm"], |index, value| lens[index] = value.map(<[u8]>::len))?;
    /// assert_eq!(lens, [Some(7), None, Some(5)]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        each!(self, table => table.get_many(keys, read))
    }

    /// Puts a value.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] or [`Error::HashEngine`], as the method of the same name answers.
    /// Nothing was changed.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"k", b"old")?;
    /// table.put(b"k", b"new")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        each!(self, table => table.put(key, value))
    }

    /// Puts a value unless the key is there; true if it did.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// assert!(table.put_if_absent(b"k", b"first")?);
    /// assert!(!table.put_if_absent(b"k", b"second")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        each!(self, table => table.put_if_absent(key, value))
    }

    /// Puts the entries, those of one key in order, each as by [`put`](Self::put): faster than
    /// single calls, since the searches overlap.
    ///
    /// # Errors
    /// [`Error::OrderedBatch`] or [`Error::HashBatch`], which says how many are in.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, entries: &[(K, V)]) -> Result<()> {
        each!(self, table => table.put_many(entries))
    }

    /// Changes a value, in one step for every reader; `None` if the key is not there. The closure
    /// may run again when another thread gets between, and its last run counts: so it is no place to
    /// count or to send.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"hits", &[1])?;
    /// let hits = table.update(b"hits", |value| {
    ///     value[0] += 1;
    ///     value[0]
    /// })?;
    /// assert_eq!(hits, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update<R>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut answer = None;
        let updated = self.update_with(key.as_ref(), &mut |value| answer = Some(change(value)))?;
        Ok(answer.filter(|_| updated.is_some()))
    }

    fn update_with(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Option<()>> {
        each!(self, table => table.update(key, change))
    }

    /// Changes the values of many keys, each as by [`update`](Self::update); `change` is given the
    /// key's index. Answers how many keys were there.
    ///
    /// # Errors
    /// [`Error::OrderedBatch`] or [`Error::HashBatch`], which says how many are done.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
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
        each!(self, table => table.update_many(keys, change))
    }

    /// Puts `value` if the key is not there, or changes the value that is, with one search. The
    /// closure runs as in [`update`](Self::update).
    ///
    /// # Errors
    /// As [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// let count = || table.put_if_absent_or_update(b"hits", &[1], |value| value[0] += 1);
    /// assert_eq!(count()?, sapwood::Upsert::Inserted);
    /// assert_eq!(count()?, sapwood::Upsert::Updated(()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_if_absent_or_update<R>(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let mut answer = None;
        let change = &mut |value: &mut ValueMut<'_>| answer = Some(change(value));
        Ok(match (self.upsert_with(key.as_ref(), value.as_ref(), change)?, answer) {
            (Upsert::Updated(()), Some(answer)) => Upsert::Updated(answer),
            _ => Upsert::Inserted,
        })
    }

    fn upsert_with(
        &self,
        key: &[u8],
        value: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Upsert<()>> {
        each!(self, table => table.put_if_absent_or_update(key, value, change))
    }

    /// Puts `new` if the value is `expected`; true if it did. A key that is not there has no value,
    /// and equals none.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
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
        each!(self, table => table.compare_and_put(key, expected, new))
    }

    /// Adds to a counter and answers the sum. A counter is a value of 8 bytes, an `i64` with its
    /// least significant byte first; a key that is not there counts as 0, and is there afterwards.
    ///
    /// # Errors
    /// `Overflow` of the engine for a sum that leaves the range of `i64`, `NotACounter` for a value
    /// that does not have 8 bytes; otherwise as [`update`](Self::update). Nothing was changed.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// assert_eq!(table.add(b"hits", 1)?, 1);
    /// assert_eq!(table.add(b"hits", 41)?, 42);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        each!(self, table => table.add(key, delta))
    }

    /// Adds to many counters, each as by [`add`](Self::add): the fastest way to count events.
    ///
    /// # Errors
    /// [`Error::OrderedBatch`] or [`Error::HashBatch`], which says how many are done.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.add_many(&[("an", 1), ("oak", 1), ("is", 1), ("an", 1), ("oak", 1)])?;
    /// assert_eq!(table.get_counter(b"oak")?, Some(2));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add_many<K: AsRef<[u8]>>(&self, deltas: &[(K, i64)]) -> Result<()> {
        each!(self, table => table.add_many(deltas))
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] or [`Error::HashEngine`], as the method of the same name answers.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"k", b"v")?;
    /// assert!(table.remove(b"k")?);
    /// assert!(!table.remove(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        each!(self, table => table.remove(key))
    }

    /// Removes a key and shows its value to `read`; `None` without the key.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
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
        let (mut read, mut answer) = (Some(read), None);
        self.take_with(key.as_ref(), &mut |value| answer = read.take().map(|read| read(value)))?;
        Ok(answer)
    }

    fn take_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<Option<()>> {
        each!(self, table => table.remove_with(key, read))
    }

    /// Lets `decide` keep, replace or remove what is at a key, seeing it first. The closure may run
    /// again when another thread gets between.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Compute, Computed};
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
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
        mut decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        self.compute_with(key.as_ref(), &mut decide)
    }

    fn compute_with(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        each!(self, table => table.compute(key, decide))
    }

    /// Removes the entries of which `keep` says false, and answers how many. A series of removals,
    /// not one atomic one.
    ///
    /// # Errors
    /// As [`remove`](Self::remove) and [`for_each`](Self::for_each); some entries may be gone by
    /// then.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put_many(&[("ada", "540"), ("eve", "480")])?;
    /// assert_eq!(table.retain(|_user, expires| expires > &b"500"[..])?, 1);
    /// assert!(!table.contains_key(b"eve")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        self.retain_with(&mut keep)
    }

    fn retain_with(&self, keep: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        each!(self, table => table.retain(keep))
    }

    /// Removes every entry that is there when it starts.
    ///
    /// # Errors
    /// As [`remove`](Self::remove); some entries may be gone by then.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"k", b"v")?;
    /// table.clear()?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        each!(self, table => table.clear())
    }

    /// Calls `visit(key, value)` for every entry, in the order that the engine has: of the keys, or
    /// none that means anything; `visit` ends it with `ControlFlow::Break`.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] or [`Error::HashEngine`], as the method of the same name answers.
    /// `visit` was called for the entries before.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let mut bytes = 0;
    /// let _ = table.for_each(|key, value| {
    ///     bytes += key.len() + value.len();
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(bytes, 4);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each<B>(
        &self,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        keep_break(|kept| self.for_each_with(&mut |key, value| broken_off(visit(key, value), kept)))
    }

    fn for_each_with(
        &self,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        each!(self, table => table.for_each(visit))
    }

    /// Visits the entries in a range of a table that keeps its keys in order; `visit` ends it with
    /// `ControlFlow::Break`.
    ///
    /// # Errors
    /// [`Error::NoOrder`] of a hash table; as the method of the same name answers.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, Direction, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # db.create_tree_table("t", TreeTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let mut keys = Vec::new();
    /// let _ = table.scan("b".., Direction::Descending, |key, _value| {
    ///     keys.push(key.to_vec());
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(keys, [b"c", b"b"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<B>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        keep_break(|kept| {
            let visit = &mut |key: &[u8], value: &[u8]| broken_off(visit(key, value), kept);
            self.scan_with(range.bounds(), direction, visit)
        })
    }

    fn scan_with(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        match self {
            Self::Ordered(table) => table.scan(bounds, direction, visit),
            Self::Tree(table) => table.scan(bounds, direction, visit),
            Self::Hash(table) => Err(Error::NoOrder { table: table.name().into() }),
        }
    }

    /// How many entries: exact while nothing changes the table. Only a hash table in a directory
    /// has to walk for it; [`len_estimate`](Self::len_estimate) costs nothing.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] or [`Error::HashEngine`], as the method of the same name answers.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len(&self) -> Result<usize> {
        each!(self, table => table.len())
    }

    /// How many entries there may be, at no cost; [`HashTable::len_estimate`] says how far off it
    /// is in a directory.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len_estimate(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len_estimate(&self) -> usize {
        each!(self, table => table.len_estimate())
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// assert!(table.is_empty()?);
    /// table.put(b"k", b"v")?;
    /// assert!(!table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        each!(self, table => table.is_empty())
    }

    /// What the table holds and costs.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.stats().entries_estimate(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn stats(&self) -> TableStats {
        match self {
            Self::Ordered(table) => TableStats::Ordered(table.stats()),
            Self::Hash(table) => TableStats::Hash(table.stats()),
            Self::Tree(table) => TableStats::Tree(table.stats()),
        }
    }

    /// Verifies the engine's invariants. Call it while nothing changes the table.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::HashCorrupt`]: the first invariant that does not hold, and
    /// where.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Table};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.put(b"k", b"v")?;
    /// table.check()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        each!(self, table => table.check())
    }
}
