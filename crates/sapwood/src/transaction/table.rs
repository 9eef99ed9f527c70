//! Tables as a transaction sees them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use sapwood_engine::is_empty_range;
use sapwood_occ::{Conflict, Reads};

use super::buffered::Buffered;
use super::{Pending, Transaction};
use crate::formats::Formats;
use crate::table::{Bounds, Entry, Nearest, Page, Paged, Range, Refusal, SortedVerbs, Verbs};
use crate::{
    Compute, Computed, Direction, Error, HashTable, Result, Table, TableRef, TreeTable, Upsert,
    ValueMut,
};

#[cfg(doc)]
use crate::TreeEngineError;

/// Entries of an ordered table that a scan reads first; then twice as many each time.
const BATCH_ENTRIES: usize = 16;
/// Entries that a scan reads at a time at most.
const BATCH_ENTRIES_MAX: usize = 256;

fn conflict(_: Conflict) -> Error {
    Error::Conflict
}

/// Any of the engines, as a [`Transaction`] sees it.
pub struct InTransaction<'tx, 'db>(Infallible, PhantomData<&'tx Transaction<'db>>);

/// A table as a [`Transaction`] sees it: [`Transaction::table`]. It has the verbs of every [`Table`]; its changes
/// take effect at the commit. It stays in the thread of the transaction.
///
/// # Consistency
///
/// Reads see the transaction's own changes. A closure may read in the transaction; a change of the same key within
/// [`update`](Table::update) or [`compute`](Table::compute) is overwritten by theirs. Scans and iterators read ahead: they
/// may show an entry as it was before a change that the transaction made during the scan.
///
/// A batch ([`put_many`](Table::put_many), [`update_many`](Table::update_many), [`add_many`](Table::add_many)),
/// [`retain`](Table::retain), [`remove_range`](Table::remove_range) and [`clear`](Table::clear) are series of single
/// changes: where one is refused, those before it stay in the transaction.
///
/// # Errors
///
/// Beside those of the table, [`Error::Conflict`] where another change meets something that was read before, and
/// [`Conflict`](TreeEngineError::Conflict) in [`Error::TreeEngine`]. A range of a hash table is
/// [`Error::NoOrder`]; [`for_each`](Table::for_each) copies its entries first, in the order of their keys.
///
/// ```
/// use sapwood::{Db, TreeTableOptions};
///
/// let db = Db::in_memory();
/// let orders = db.create_tree_table("orders", TreeTableOptions::default())?;
/// db.transaction(|tx| {
///     let ours = tx.table(&orders);
///     ours.put(b"1", b"an oak")?;
///     assert_eq!(ours.len()?, 1);
///     assert_eq!(orders.len()?, 0); // Not committed yet.
///     Ok(())
/// })?;
/// assert_eq!(orders.get(b"1")?.as_deref(), Some(&b"an oak"[..]));
/// # Ok::<(), sapwood::Error>(())
/// ```
pub type TransactionTable<'tx, 'db> = Table<InTransaction<'tx, 'db>>;

#[derive(Clone)]
pub struct Opened<'tx, 'db> {
    tx: &'tx Transaction<'db>,
    kind: Kind,
}

impl<'tx, 'db> Opened<'tx, 'db> {
    /// The transaction and the table, if both are of one database.
    fn parts(&self) -> Result<(&'tx Transaction<'db>, &Kind)> {
        match &self.kind {
            Kind::Buffered(table) if !table.kept().keys.is_among(self.tx.home.versions()) => {
                Err(Error::OtherDatabase { table: table.name().clone() })
            }
            kind => Ok((self.tx, kind)),
        }
    }
}

#[derive(Clone)]
enum Kind {
    Tree(TreeTable),
    Buffered(Buffered),
}

impl<'db> Transaction<'db> {
    /// A table as this transaction sees it, for reads and changes of the transaction. Operations on a table of another
    /// database answer [`Error::OtherDatabase`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let accounts = db.create_hash_table("accounts", HashTableOptions::default())?;
    /// db.transaction(|tx| {
    ///     let accounts = tx.table(&accounts);
    ///     accounts.add(b"ada", -30)?;
    ///     accounts.add(b"bob", 30)
    /// })?;
    /// assert_eq!(accounts.get_counter(b"bob")?, Some(30));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn table<'tx, 't>(&'tx self, table: impl Into<TableRef<'t>>) -> TransactionTable<'tx, 'db> {
        let kind = match table.into() {
            TableRef::Tree(table) => Kind::Tree(table.clone()),
            TableRef::Ordered(table) => Kind::Buffered(Buffered::Ordered(table.clone())),
            TableRef::Hash(table) => Kind::Buffered(Buffered::Hash(table.clone())),
        };
        Table::of(Opened { tx: self, kind })
    }

    /// Fills an empty tree table from entries in strictly ascending order of keys, and answers how many:
    /// the fastest way to fill one.
    ///
    /// # Errors
    /// [The engine's](crate::Table#errors), and [`Options`](TreeEngineError::Options) where the table is not empty or
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

    /// Runs something with what was read so far, and what will be changed.
    fn with_pending<R>(
        &self,
        work: impl FnOnce(&mut Reads<'db>, &super::Writes) -> Result<R>,
    ) -> Result<R> {
        let Pending { reads, writes } = &mut *self.pending.borrow_mut();
        let reads = match reads {
            Some(reads) => reads,
            None => reads.insert(Reads::begin(self.home.versions()).map_err(conflict)?),
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

    /// Copies the entries of a hash table, in the order of their keys.
    fn all_buffered(&self, table: &Buffered, hash: &HashTable) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        self.with_pending(|reads, writes| {
            let all = || hash.iter().map(|entry| Ok(entry?.into_pair())).collect();
            let all: Result<BTreeMap<_, _>> = reads.read_all(all).map_err(conflict)?;
            let mut entries = all?;
            for (key, value) in writes.of(table).into_iter().flatten() {
                match value {
                    Some(value) => drop(entries.insert(key.clone(), value.clone())),
                    None => drop(entries.remove(key)),
                }
            }
            Ok(entries.into_iter().collect())
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
        let mut entries_max = BATCH_ENTRIES;
        loop {
            // What is left, behind the entry that was visited last.
            let rest = match (&last, direction) {
                (None, _) => (low, high),
                (Some(last), Direction::Ascending) => (Bound::Excluded(&last[..]), high),
                (Some(last), Direction::Descending) => (low, Bound::Excluded(&last[..])),
            };
            let batch = self.next_entries(table, rest, direction, entries_max)?;
            entries_max = (entries_max * 2).min(BATCH_ENTRIES_MAX);
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
        entries_max: usize,
    ) -> Result<Entries> {
        self.with_pending(|reads, writes| {
            let some = || table.some(bounds, direction, entries_max);
            let Page { mut entries, is_last } = reads.read_all(some).map_err(conflict)??;
            let until = match is_last {
                true => None,
                false => entries.last().map(|(key, _)| key.clone()),
            };
            if let Some(values) = writes.of(table) {
                let (mut low, mut high) = bounds;
                if let Some(until) = &until {
                    match direction {
                        Direction::Ascending => high = Bound::Included(until),
                        Direction::Descending => low = Bound::Included(until),
                    }
                }
                // Bounds that cross each other have nothing between them: a map would panic.
                if !is_empty_range(low, high) {
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

impl<'tx, 'db> Verbs for InTransaction<'tx, 'db> {
    type Shared = Opened<'tx, 'db>;
    type Iter<'a>
        = Box<dyn Iterator<Item = Result<Entry<'a>>> + 'a>
    where
        Self: 'a;

    fn shared_name(table: &Table<Self>) -> &Arc<str> {
        match &table.shared.kind {
            Kind::Tree(table) => &table.shared.name,
            Kind::Buffered(table) => table.name(),
        }
    }

    fn debug(table: &Table<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionTable").field("name", &table.name()).finish_non_exhaustive()
    }

    fn formats(table: &Table<Self>) -> Option<&Arc<Formats>> {
        match &table.shared.kind {
            Kind::Tree(table) => table.formats(),
            Kind::Buffered(table) => table.formats(),
        }
    }

    fn refused(table: &Table<Self>, refusal: Refusal) -> Error {
        match &table.shared.kind {
            Kind::Tree(table) => table.refused(refusal),
            Kind::Buffered(table) => table.refused(refusal),
        }
    }

    fn get_with<R>(
        table: &Table<Self>,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (tx, kind) = table.shared.parts()?;
        let value = match kind {
            Kind::Tree(table) => tx.tree()?.get(table, key)?,
            Kind::Buffered(table) => tx.get_buffered(table, key)?,
        };
        Ok(value.map(|value| read(&value)))
    }

    fn contains_key(table: &Table<Self>, key: &[u8]) -> Result<bool> {
        let (tx, kind) = table.shared.parts()?;
        match kind {
            Kind::Tree(table) => tx.tree()?.contains_key(table, key),
            Kind::Buffered(table) => Ok(tx.get_buffered(table, key)?.is_some()),
        }
    }

    fn put(table: &Table<Self>, key: &[u8], value: &[u8]) -> Result<()> {
        let (tx, kind) = table.shared.parts()?;
        match kind {
            Kind::Tree(table) => tx.tree()?.put(table, key, value),
            Kind::Buffered(table) => tx.set_buffered(table, key, Some(value.to_vec())),
        }
    }

    fn put_if_absent(table: &Table<Self>, key: &[u8], value: &[u8]) -> Result<bool> {
        let decide = |found: Option<&[u8]>| match found {
            Some(_) => Compute::Keep,
            None => Compute::Replace(value.to_vec()),
        };
        Ok(Self::compute(table, key, decide)? == Computed::Inserted)
    }

    fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        table: &Table<Self>,
        entries: &[(K, V)],
    ) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| table.put(key, value))
    }

    fn update<R>(
        table: &Table<Self>,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let (tx, kind) = table.shared.parts()?;
        match kind {
            Kind::Tree(table) => tx.tree()?.update(table, key, change),
            Kind::Buffered(table) => match tx.get_buffered(table, key)? {
                Some(value) => tx.change_buffered(table, key, value, &mut change).map(Some),
                None => Ok(None),
            },
        }
    }

    fn update_many<K: AsRef<[u8]>>(
        table: &Table<Self>,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        keys.iter().enumerate().try_fold(0, |found, (index, key)| {
            let changed = table.update(key, |value| change(index, value))?;
            Ok(found + usize::from(changed.is_some()))
        })
    }

    fn put_if_absent_or_update<R>(
        table: &Table<Self>,
        key: &[u8],
        value: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let (tx, kind) = table.shared.parts()?;
        match kind {
            Kind::Tree(table) => tx.tree()?.put_if_absent_or_update(table, key, value, change),
            Kind::Buffered(table) => match tx.get_buffered(table, key)? {
                Some(found) => {
                    tx.change_buffered(table, key, found, &mut change).map(Upsert::Updated)
                }
                None => {
                    tx.set_buffered(table, key, Some(value.to_vec()))?;
                    Ok(Upsert::Inserted)
                }
            },
        }
    }

    fn compare_and_put(
        table: &Table<Self>,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        let decide = |value: Option<&[u8]>| match value == Some(expected) {
            true => Compute::Replace(new.to_vec()),
            false => Compute::Keep,
        };
        Ok(Self::compute(table, key, decide)? == Computed::Replaced)
    }

    fn add(table: &Table<Self>, key: &[u8], delta: i64) -> Result<i64> {
        if let (tx, Kind::Tree(table)) = table.shared.parts()? {
            return tx.tree()?.add(table, key, delta);
        }
        let value = table.get_counter(key)?.unwrap_or(0);
        let overflow = || table.refused(Refusal::Overflow { value, delta });
        let sum = value.checked_add(delta).ok_or_else(overflow)?;
        table.put(key, sum.to_le_bytes())?;
        Ok(sum)
    }

    fn add_many<K: AsRef<[u8]>>(table: &Table<Self>, deltas: &[(K, i64)]) -> Result<()> {
        deltas.iter().try_for_each(|(key, delta)| table.add(key, *delta).map(drop))
    }

    fn remove(table: &Table<Self>, key: &[u8]) -> Result<bool> {
        Ok(Self::remove_with(table, key, |_| ())?.is_some())
    }

    fn remove_with<R>(
        table: &Table<Self>,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (tx, kind) = table.shared.parts()?;
        let removed = match kind {
            Kind::Tree(table) => tx.tree()?.remove(table, key)?,
            Kind::Buffered(table) => {
                let found = tx.get_buffered(table, key)?;
                if found.is_some() {
                    tx.set_buffered(table, key, None)?;
                }
                found
            }
        };
        Ok(removed.map(|value| read(&value)))
    }

    fn compute(
        table: &Table<Self>,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let (tx, kind) = table.shared.parts()?;
        let buffered = match kind {
            Kind::Tree(table) => return tx.tree()?.compute(table, key, decide),
            Kind::Buffered(table) => table,
        };
        let found = tx.get_buffered(buffered, key)?;
        let (done, value) = match (decide(found.as_deref()), &found) {
            (Compute::Keep, Some(_)) => return Ok(Computed::Kept),
            (Compute::Keep | Compute::Remove, None) => return Ok(Computed::Absent),
            (Compute::Remove, Some(_)) => (Computed::Removed, None),
            (Compute::Replace(value), Some(_)) => (Computed::Replaced, Some(value)),
            (Compute::Replace(value), None) => (Computed::Inserted, Some(value)),
        };
        tx.set_buffered(buffered, key, value)?;
        Ok(done)
    }

    fn retain(table: &Table<Self>, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let mut refused = Vec::new();
        table.for_each(|key, value| {
            if !keep(key, value) {
                refused.push(key.to_vec());
            }
        })?;
        table.remove_all(refused)
    }

    fn clear(table: &Table<Self>) -> Result<()> {
        match table.shared.parts()? {
            (tx, Kind::Tree(table)) => tx.tree()?.clear(table),
            (_, Kind::Buffered(_)) => table.retain(|_, _| false).map(drop),
        }
    }

    fn for_each<B>(
        table: &Table<Self>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let (tx, Kind::Buffered(table @ Buffered::Hash(hash))) = table.shared.parts()? else {
            return Self::scan(table, Nearest::First.range().0, Direction::Ascending, visit);
        };
        let entries = tx.all_buffered(table, hash)?;
        Ok(entries.iter().try_for_each(|(key, value)| visit(key, value)))
    }

    fn iter(table: &Table<Self>) -> Self::Iter<'_> {
        let entries = match table.shared.parts() {
            Ok((tx, Kind::Buffered(table @ Buffered::Hash(hash)))) => tx.all_buffered(table, hash),
            Ok(_) => return Box::new(table.range(..)),
            Err(error) => Err(error),
        };
        match entries {
            Ok(entries) => Box::new(entries.into_iter().map(|entry| Ok(Entry::copied(entry)))),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn len(table: &Table<Self>) -> Result<usize> {
        let (tx, kind) = table.shared.parts()?;
        match kind {
            Kind::Tree(table) => tx.tree()?.len(table),
            Kind::Buffered(table) => tx.len_buffered(table),
        }
    }
}

impl SortedVerbs for InTransaction<'_, '_> {
    fn scan<B>(
        table: &Table<Self>,
        bounds: Bounds<'_>,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let (tx, kind) = table.shared.parts()?;
        match kind {
            Kind::Tree(table) => tx.tree()?.scan(table, bounds, direction, visit),
            Kind::Buffered(table) => tx.scan_buffered(table, bounds, direction, visit),
        }
    }

    fn range<'a>(table: &'a Table<Self>, bounds: Bounds<'_>) -> Range<'a> {
        Range::copied(Self::shared_name(table), Paged::new(table, bounds))
    }

    fn nearest<'a>(table: &'a Table<Self>, nearest: Nearest<'_>) -> Result<Option<Entry<'a>>> {
        let (bounds, direction) = nearest.range();
        Ok(Self::page(table, bounds, direction, 1)?.entries.pop().map(Entry::copied))
    }

    fn nth(table: &Table<Self>, rank: u64) -> Result<Option<Entry<'_>>> {
        let mut left = rank;
        let found = table.scan(.., Direction::Ascending, |key, value| match left {
            0 => ControlFlow::Break((key.to_vec(), value.to_vec())),
            _ => {
                left -= 1;
                ControlFlow::Continue(())
            }
        })?;
        Ok(found.break_value().map(Entry::copied))
    }

    fn pop(table: &Table<Self>, end: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let entry = Self::page(table, Nearest::First.range().0, end, 1)?.entries.pop();
        if let Some((key, _)) = &entry {
            table.remove(key)?;
        }
        Ok(entry)
    }

    fn remove_range(table: &Table<Self>, bounds: Bounds<'_>) -> Result<u64> {
        let mut keys = Vec::new();
        table.scan(bounds, Direction::Ascending, |key, _value| keys.push(key.to_vec()))?;
        table.remove_all(keys)
    }
}

impl Table<InTransaction<'_, '_>> {
    fn remove_all(&self, keys: Vec<Vec<u8>>) -> Result<u64> {
        for key in &keys {
            self.remove(key)?;
        }
        Ok(keys.len() as u64)
    }
}

impl fmt::Debug for InTransaction<'_, '_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

struct Entries {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// The key up to which these are all; none where there are no more.
    until: Option<Vec<u8>>,
}
