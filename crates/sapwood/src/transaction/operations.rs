//! What a transaction can do.

use std::ops::{Bound, ControlFlow};

use sapwood_occ::{Conflict, Reads};

use super::table_ref::{Buffered, TableRef};
use super::{Pending, Transaction};
use crate::{Compute, Computed, Direction, Error, KeyRange, Result, TreeTable, Upsert, ValueMut};

#[cfg(doc)]
use crate::{HashTable, TreeEngineError};

/// Entries of an ordered table that a scan reads at a time.
const BATCH_ENTRIES: usize = 256;

fn conflict(_: Conflict) -> Error {
    Error::Conflict
}

impl<'db> Transaction<'db> {
    /// Copies a value out, as the transaction sees it.
    ///
    /// # Errors
    /// Those of the table's `get`; [`Error::Conflict`] where something that was read before is no longer so,
    /// and [`Conflict`](TreeEngineError::Conflict) in [`Error::TreeEngine`]; [`Error::OtherDatabase`].
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
    pub fn get<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.get(table, key),
            Kind::Buffered(table) => self.get_buffered(&table, key),
        }
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
    pub fn contains_key<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let key = key.as_ref();
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.contains_key(table, key),
            Kind::Buffered(table) => Ok(self.get_buffered(&table, key)?.is_some()),
        }
    }

    /// Reads a counter; `None` without the key.
    ///
    /// # Errors
    /// As [`get`](Self::get), and `NotACounter` of the table's engine.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// table.add(b"k", 7)?;
    /// assert_eq!(db.transaction(|tx| tx.get_counter(&table, b"k"))?, Some(7));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_counter<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<i64>> {
        let key = key.as_ref();
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.get_counter(table, key),
            Kind::Buffered(table) => {
                let value = self.get_buffered(&table, key)?;
                value.map(|value| counter(&table, &value)).transpose()
            }
        }
    }

    /// Visits the entries in a range, as the transaction sees them; `visit` ends it with
    /// `ControlFlow::Break`.
    ///
    /// The entries of an ordered table are read some hundred at a time, before they are visited.
    ///
    /// # Errors
    /// As [`get`](Self::get); [`Error::NoOrder`] of a hash table.
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
    pub fn scan<'t, B>(
        &self,
        table: impl Into<TableRef<'t>>,
        range: impl KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.scan(table, range, direction, visit),
            Kind::Buffered(table) => self.scan_buffered(&table, range.bounds(), direction, visit),
        }
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
    pub fn len<'t>(&self, table: impl Into<TableRef<'t>>) -> Result<usize> {
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.len(table),
            Kind::Buffered(table) => self.len_buffered(&table),
        }
    }

    /// Puts a value.
    ///
    /// # Errors
    /// Those of the table's engine, as `KeyLength` and `ValueLength`; of a tree table also
    /// [`OutOfMemory`](TreeEngineError::OutOfMemory),
    /// [`Reentrant`](TreeEngineError::Reentrant) inside a closure that changes a value,
    /// [`ReadOnly`](TreeEngineError::ReadOnly), and of other tables at the commit; and as
    /// [`get`](Self::get).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// db.transaction(|tx| tx.put(&table, b"k", b"v"))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.put(table, key, value),
            Kind::Buffered(table) => self.set_buffered(&table, key, Some(value.to_vec())),
        }
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
    pub fn put_if_absent<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let decide = |there: Option<&[u8]>| match there {
            Some(_) => Compute::Keep,
            None => Compute::Replace(value.as_ref().to_vec()),
        };
        Ok(self.compute(table, key, decide)? == Computed::Inserted)
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
    pub fn update<'t, R>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let key = key.as_ref();
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.update(table, key, change),
            Kind::Buffered(table) => match self.get_buffered(&table, key)? {
                Some(value) => self.change_buffered(&table, key, value, change).map(Some),
                None => Ok(None),
            },
        }
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
    pub fn put_if_absent_or_update<'t, R>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let (key, value) = (key.as_ref(), value.as_ref());
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.put_if_absent_or_update(table, key, value, change),
            Kind::Buffered(table) => match self.get_buffered(&table, key)? {
                Some(there) => {
                    self.change_buffered(&table, key, there, change).map(Upsert::Updated)
                }
                None => {
                    self.set_buffered(&table, key, Some(value.to_vec()))?;
                    Ok(Upsert::Inserted)
                }
            },
        }
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
    pub fn compare_and_put<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
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

    /// Adds to a counter and answers the sum, as [`HashTable::add`] does.
    ///
    /// # Errors
    /// As [`put`](Self::put), and `NotACounter` and `Overflow` of the table's engine.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert_eq!(db.transaction(|tx| tx.add(&table, b"k", 7))?, 7);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
        delta: i64,
    ) -> Result<i64> {
        let key = key.as_ref();
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.add(table, key, delta),
            Kind::Buffered(table) => {
                let there = match self.get_buffered(&table, key)? {
                    Some(value) => counter(&table, &value)?,
                    None => 0,
                };
                let sum = there.checked_add(delta).ok_or_else(|| table.overflow(there, delta))?;
                self.set_buffered(&table, key, Some(sum.to_le_bytes().to_vec()))?;
                Ok(sum)
            }
        }
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
    pub fn compute<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
        decide: impl FnOnce(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let key = key.as_ref();
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.compute(table, key, decide),
            Kind::Buffered(table) => {
                let there = self.get_buffered(&table, key)?;
                let (done, value) = match (decide(there.as_deref()), &there) {
                    (Compute::Keep, Some(_)) => return Ok(Computed::Kept),
                    (Compute::Keep | Compute::Remove, None) => return Ok(Computed::Absent),
                    (Compute::Remove, Some(_)) => (Computed::Removed, None),
                    (Compute::Replace(value), Some(_)) => (Computed::Replaced, Some(value)),
                    (Compute::Replace(value), None) => (Computed::Inserted, Some(value)),
                };
                self.set_buffered(&table, key, value)?;
                Ok(done)
            }
        }
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
    pub fn remove<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        match self.kind_of(table)? {
            Kind::Tree(table) => self.tree()?.remove(table, key),
            Kind::Buffered(table) => {
                let there = self.get_buffered(&table, key)?;
                if there.is_some() {
                    self.set_buffered(&table, key, None)?;
                }
                Ok(there)
            }
        }
    }

    /// Fills an empty tree table from entries in strictly ascending order of keys, and answers how many:
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
    /// assert_eq!(db.transaction(|tx| tx.load(&table, numbers.clone()))?, 1_000);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        table: &TreeTable,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.tree()?.load(table, entries)
    }

    /// Removes every entry of a tree table.
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
        self.tree()?.clear(table)
    }

    fn kind_of<'t>(&self, table: impl Into<TableRef<'t>>) -> Result<Kind<'t>> {
        let table = match table.into() {
            TableRef::Tree(table) => return Ok(Kind::Tree(table)),
            TableRef::Ordered(table) => Buffered::Ordered(table.clone()),
            TableRef::Hash(table) => Buffered::Hash(table.clone()),
        };
        match table.kept().keys.is_among(self.db.versions()) {
            true => Ok(Kind::Buffered(table)),
            false => Err(Error::OtherDatabase { table: table.name().clone() }),
        }
    }

    /// Runs something with what was read so far, and what will be changed.
    fn with_pending<R>(
        &self,
        work: impl FnOnce(&mut Reads<'db>, &super::Writes) -> Result<R>,
    ) -> Result<R> {
        let Pending { reads, writes } = &mut *self.pending.borrow_mut();
        let reads = match reads {
            Some(reads) => reads,
            None => reads.insert(Reads::begin(self.db.versions()).map_err(conflict)?),
        };
        work(reads, writes)
    }

    fn get_buffered(&self, table: &Buffered, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.with_pending(|reads, writes| {
            if let Some(value) = writes.of(table).and_then(|values| values.get(key)) {
                return Ok(value.clone());
            }
            let stripe = table.kept().keys.stripe(key);
            reads.read(stripe, || table.get(key)).map_err(conflict)?
        })
    }

    fn set_buffered(&self, table: &Buffered, key: &[u8], value: Option<Vec<u8>>) -> Result<()> {
        table.expect_fits(key, value.as_deref())?;
        self.pending.borrow_mut().writes.set(table, key, value);
        Ok(())
    }

    fn change_buffered<R>(
        &self,
        table: &Buffered,
        key: &[u8],
        mut value: Vec<u8>,
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<R> {
        let expect_len = |len: usize| table.expect_lengths(key, len);
        let done = change(&mut ValueMut::of_buffer(&mut value, &expect_len, table.name()));
        self.set_buffered(table, key, Some(value))?;
        Ok(done)
    }

    fn len_buffered(&self, table: &Buffered) -> Result<usize> {
        self.with_pending(|reads, writes| {
            let mut len = reads.read_all(|| table.len()).map_err(conflict)??;
            for (key, value) in writes.of(table).into_iter().flatten() {
                let stripe = table.kept().keys.stripe(key);
                let there = reads.read(stripe, || table.get(key)).map_err(conflict)??;
                len = len + usize::from(value.is_some()) - usize::from(there.is_some());
            }
            Ok(len)
        })
    }

    fn scan_buffered<B>(
        &self,
        table: &Buffered,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let mut last: Option<Vec<u8>> = None;
        loop {
            // What is left, behind the entry that was visited last.
            let rest = match (&last, direction) {
                (None, _) => (low, high),
                (Some(last), Direction::Ascending) => (Bound::Excluded(&last[..]), high),
                (Some(last), Direction::Descending) => (low, Bound::Excluded(&last[..])),
            };
            let batch = self.next_entries(table, rest, direction)?;
            for (key, value) in &batch.entries {
                if let ControlFlow::Break(done) = visit(key, value) {
                    return Ok(ControlFlow::Break(done));
                }
            }
            match batch.until {
                Some(until) => last = Some(until),
                None => return Ok(ControlFlow::Continue(())),
            }
        }
    }

    /// The next entries of an ordered table, as the transaction sees them.
    fn next_entries(
        &self,
        table: &Buffered,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Entries> {
        self.with_pending(|reads, writes| {
            let some = || table.some(bounds, direction, BATCH_ENTRIES);
            let mut entries = reads.read_all(some).map_err(conflict)??;
            let until = match entries.len() == BATCH_ENTRIES {
                true => entries.last().map(|(key, _)| key.clone()),
                false => None,
            };
            if let Some(values) = writes.of(table) {
                let (mut low, mut high) = bounds;
                if let Some(until) = &until {
                    match direction {
                        Direction::Ascending => high = Bound::Included(until),
                        Direction::Descending => low = Bound::Included(until),
                    }
                }
                // Bounds that cross each other have nothing between them.
                if !is_empty(low, high) {
                    entries.retain(|(key, _)| !values.contains_key(key));
                    let changed = values.range::<[u8], _>((low, high));
                    entries.extend(changed.filter_map(|(key, value)| {
                        value.as_ref().map(|value| (key.clone(), value.clone()))
                    }));
                    entries.sort();
                    if direction == Direction::Descending {
                        entries.reverse();
                    }
                }
            }
            Ok(Entries { entries, until })
        })
    }
}

/// A table, by what a transaction does with it.
enum Kind<'t> {
    Tree(&'t TreeTable),
    Buffered(Buffered),
}

struct Entries {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// The key up to which these are all; none where there are no more.
    until: Option<Vec<u8>>,
}

fn counter(table: &Buffered, value: &[u8]) -> Result<i64> {
    match value.try_into() {
        Ok(bytes) => Ok(i64::from_le_bytes(bytes)),
        Err(_) => Err(table.not_a_counter(value.len())),
    }
}

/// Whether no key is between bounds: a map would panic.
fn is_empty(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
    }
}
