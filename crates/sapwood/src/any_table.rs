//! A table whose engine is known at run time.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_engine::{broken_off, keep_break};

use crate::aggregate::{
    Compiled, DisaggregationRun, Disaggregator, Execution, Layout, Partial, Pending, Plan,
};
use crate::formats::Formats;
use crate::table::{
    Bounds, Entry, Nearest, Range, Refusal, SortedVerbs, StoredVerbs, TableStats, Verbs,
};
use crate::{
    Compute, Computed, Direction, Durability, Engine, Error, HashTable, OrderedTable, Result,
    Table, TreeTable, Upsert, ValueMut,
};

/// Calls the same operation of the table, of whichever engine it is.
macro_rules! each {
    ($any:ident, $table:ident => $call:expr) => {
        match &$any.shared {
            Shared::Ordered($table) => $call,
            Shared::Hash($table) => $call,
            Shared::Tree($table) => $call,
        }
    };
}

/// Calls the same operation of the table, if its engine has order.
macro_rules! sorted {
    ($any:ident, $table:ident => $call:expr, $none:expr) => {
        match &$any.shared {
            Shared::Ordered($table) => $call,
            Shared::Tree($table) => $call,
            Shared::Hash(_) => $none,
        }
    };
}

/// Any of the engines, at the cost of one branch in each operation.
#[derive(Debug, Clone, Copy)]
pub enum Any {}

/// A table of any engine, for code that works on all of them. [`Db::table`](crate::Db::table) opens one by its name, and
/// each table turns into one.
///
/// ```
/// use sapwood::{AnyTable, Db, HashTableOptions, OrderedTableOptions};
///
/// fn count(words: &AnyTable, text: &str) -> sapwood::Result<()> {
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
///
/// A range of a table without order is an error at run time:
///
/// ```
/// use sapwood::{Db, Direction, Error, HashTableOptions};
///
/// let db = Db::in_memory();
/// db.create_hash_table("by_hash", HashTableOptions::default())?;
/// let refused = db.table("by_hash")?.scan(.., Direction::Ascending, |_key, _value| ());
/// assert!(matches!(refused, Err(Error::NoOrder { .. })));
/// # Ok::<(), sapwood::Error>(())
/// ```
pub type AnyTable = Table<Any>;

#[derive(Clone)]
pub enum Shared {
    Ordered(OrderedTable),
    Hash(HashTable),
    Tree(TreeTable),
}

/// A table by its engine: [`AnyTable::resolve`](Table::resolve). Methods that take a table of any engine take what turns
/// into one.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum TableRef<'t> {
    /// An ordered table.
    Ordered(&'t OrderedTable),
    /// A hash table.
    Hash(&'t HashTable),
    /// A tree table.
    Tree(&'t TreeTable),
}

impl<'t> From<&'t OrderedTable> for TableRef<'t> {
    fn from(table: &'t OrderedTable) -> Self {
        TableRef::Ordered(table)
    }
}

impl<'t> From<&'t HashTable> for TableRef<'t> {
    fn from(table: &'t HashTable) -> Self {
        TableRef::Hash(table)
    }
}

impl<'t> From<&'t TreeTable> for TableRef<'t> {
    fn from(table: &'t TreeTable) -> Self {
        TableRef::Tree(table)
    }
}

impl<'t> From<&'t AnyTable> for TableRef<'t> {
    fn from(table: &'t AnyTable) -> Self {
        table.resolve()
    }
}

impl From<OrderedTable> for AnyTable {
    fn from(table: OrderedTable) -> AnyTable {
        Table::of(Shared::Ordered(table))
    }
}

impl From<HashTable> for AnyTable {
    fn from(table: HashTable) -> AnyTable {
        Table::of(Shared::Hash(table))
    }
}

impl From<TreeTable> for AnyTable {
    fn from(table: TreeTable) -> AnyTable {
        Table::of(Shared::Tree(table))
    }
}

impl Table<Any> {
    /// The table of its engine, for a `match`.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, TableRef};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// let freed = match table.resolve() {
    ///     TableRef::Ordered(table) => table.trim(),
    ///     _ => 0,
    /// };
    /// # println!("{freed}");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn resolve(&self) -> TableRef<'_> {
        match &self.shared {
            Shared::Ordered(table) => TableRef::Ordered(table),
            Shared::Hash(table) => TableRef::Hash(table),
            Shared::Tree(table) => TableRef::Tree(table),
        }
    }

    /// The table's engine.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// assert_eq!(table.engine(), sapwood::Engine::Ordered);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn engine(&self) -> Engine {
        match &self.shared {
            Shared::Ordered(_) => Engine::Ordered,
            Shared::Hash(_) => Engine::Hash,
            Shared::Tree(_) => Engine::Tree,
        }
    }

    /// The ordered table, if it is one.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// table.as_ordered().expect("an ordered table").compact();
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn as_ordered(&self) -> Option<&OrderedTable> {
        match &self.shared {
            Shared::Ordered(table) => Some(table),
            Shared::Hash(_) | Shared::Tree(_) => None,
        }
    }

    /// The hash table, if it is one: for checkpoints, snapshots and compaction.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # db.create_hash_table("t", HashTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// let hash = table.as_hash().expect("a hash table");
    /// assert_eq!(hash.checkpoints().unwrap_err().hash_engine(), Some(&sapwood::HashEngineError::NoDirectory));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn as_hash(&self) -> Option<&HashTable> {
        match &self.shared {
            Shared::Hash(table) => Some(table),
            Shared::Ordered(_) | Shared::Tree(_) => None,
        }
    }

    /// The tree table, if it is one.
    ///
    /// ```
    /// # use sapwood::{Db, TreeKind, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # db.create_tree_table("t", TreeTableOptions::default())?;
    /// # let table = db.table("t")?;
    /// assert_eq!(table.as_tree().expect("a tree table").kind(), TreeKind::BTree);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn as_tree(&self) -> Option<&TreeTable> {
        match &self.shared {
            Shared::Tree(table) => Some(table),
            Shared::Ordered(_) | Shared::Hash(_) => None,
        }
    }

    fn no_order(&self) -> Error {
        Error::NoOrder { table: Arc::clone(Any::shared_name(self)) }
    }

    fn show(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<Option<()>> {
        each!(self, table => table.get_with(key, read))
    }

    fn change(&self, key: &[u8], change: &mut dyn FnMut(&mut ValueMut<'_>)) -> Result<Option<()>> {
        each!(self, table => table.update(key, change))
    }

    fn upsert(
        &self,
        key: &[u8],
        value: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>),
    ) -> Result<Upsert<()>> {
        each!(self, table => table.put_if_absent_or_update(key, value, change))
    }

    fn take(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<Option<()>> {
        each!(self, table => table.remove_with(key, read))
    }

    fn decide(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        each!(self, table => table.compute(key, decide))
    }

    fn walk(
        &self,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        each!(self, table => table.for_each(visit))
    }

    fn walk_range(
        &self,
        bounds: Bounds<'_>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        sorted!(self, table => table.scan(bounds, direction, visit), Err(self.no_order()))
    }
}

// Closures go to the engines as `dyn`, so that each operation is compiled once an engine and not once a closure.
impl Verbs for Any {
    type Shared = Shared;
    type Iter<'a> = Box<dyn Iterator<Item = Result<Entry<'a>>> + 'a>;

    fn shared_name(any: &AnyTable) -> &Arc<str> {
        match &any.shared {
            Shared::Ordered(table) => &table.shared.name,
            Shared::Hash(table) => &table.shared.name,
            Shared::Tree(table) => &table.shared.name,
        }
    }

    fn debug(any: &AnyTable, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(any, table => fmt::Debug::fmt(table, f))
    }

    fn formats(any: &AnyTable) -> Option<&Arc<Formats>> {
        each!(any, table => table.formats())
    }

    fn refused(any: &AnyTable, refusal: Refusal) -> Error {
        each!(any, table => table.refused(refusal))
    }

    fn get_with<R>(any: &AnyTable, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let (mut read, mut answer) = (Some(read), None);
        any.show(key, &mut |value| answer = read.take().map(|read| read(value)))?;
        Ok(answer)
    }

    fn contains_key(any: &AnyTable, key: &[u8]) -> Result<bool> {
        each!(any, table => table.contains_key(key))
    }

    fn get_many<K: AsRef<[u8]>>(
        any: &AnyTable,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        each!(any, table => table.get_many(keys, read))
    }

    fn put(any: &AnyTable, key: &[u8], value: &[u8]) -> Result<()> {
        each!(any, table => table.put(key, value))
    }

    fn put_if_absent(any: &AnyTable, key: &[u8], value: &[u8]) -> Result<bool> {
        each!(any, table => table.put_if_absent(key, value))
    }

    fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(any: &AnyTable, entries: &[(K, V)]) -> Result<()> {
        each!(any, table => table.put_many(entries))
    }

    fn update<R>(
        any: &AnyTable,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut answer = None;
        let updated = any.change(key, &mut |value| answer = Some(change(value)))?;
        Ok(answer.filter(|_| updated.is_some()))
    }

    fn update_many<K: AsRef<[u8]>>(
        any: &AnyTable,
        keys: &[K],
        change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        each!(any, table => table.update_many(keys, change))
    }

    fn put_if_absent_or_update<R>(
        any: &AnyTable,
        key: &[u8],
        value: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let mut answer = None;
        let change = &mut |value: &mut ValueMut<'_>| answer = Some(change(value));
        Ok(match (any.upsert(key, value, change)?, answer) {
            (Upsert::Updated(()), Some(answer)) => Upsert::Updated(answer),
            _ => Upsert::Inserted,
        })
    }

    fn compare_and_put(any: &AnyTable, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        each!(any, table => table.compare_and_put(key, expected, new))
    }

    fn add(any: &AnyTable, key: &[u8], delta: i64) -> Result<i64> {
        each!(any, table => table.add(key, delta))
    }

    fn add_many<K: AsRef<[u8]>>(any: &AnyTable, deltas: &[(K, i64)]) -> Result<()> {
        each!(any, table => table.add_many(deltas))
    }

    fn remove(any: &AnyTable, key: &[u8]) -> Result<bool> {
        each!(any, table => table.remove(key))
    }

    fn remove_with<R>(
        any: &AnyTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (mut read, mut answer) = (Some(read), None);
        any.take(key, &mut |value| answer = read.take().map(|read| read(value)))?;
        Ok(answer)
    }

    fn compute(
        any: &AnyTable,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        any.decide(key, &mut decide)
    }

    fn retain(any: &AnyTable, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let keep: &mut dyn FnMut(&[u8], &[u8]) -> bool = &mut keep;
        each!(any, table => table.retain(keep))
    }

    fn clear(any: &AnyTable) -> Result<()> {
        each!(any, table => table.clear())
    }

    fn for_each<B>(
        any: &AnyTable,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        keep_break(|kept| any.walk(&mut |key, value| broken_off(visit(key, value), kept)))
    }

    fn iter(any: &AnyTable) -> Self::Iter<'_> {
        match &any.shared {
            Shared::Ordered(table) => Box::new(table.iter()),
            Shared::Hash(table) => table.iter(),
            Shared::Tree(table) => Box::new(table.iter()),
        }
    }

    fn len(any: &AnyTable) -> Result<usize> {
        each!(any, table => table.len())
    }

    fn is_empty(any: &AnyTable) -> Result<bool> {
        each!(any, table => table.is_empty())
    }
}

impl SortedVerbs for Any {
    fn scan<B>(
        any: &AnyTable,
        bounds: Bounds<'_>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        keep_break(|kept| {
            let visit = &mut |key: &[u8], value: &[u8]| broken_off(visit(key, value), kept);
            any.walk_range(bounds, direction, visit)
        })
    }

    fn scan_keys<B>(
        any: &AnyTable,
        bounds: Bounds<'_>,
        direction: Direction,
        visit: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        sorted!(any, table => table.scan_keys(bounds, direction, visit), Err(any.no_order()))
    }

    fn range<'a>(any: &'a AnyTable, bounds: Bounds<'_>) -> Range<'a> {
        let none = || Range::refused(Any::shared_name(any), any.no_order());
        sorted!(any, table => table.range(bounds), none())
    }

    fn nearest<'a>(any: &'a AnyTable, nearest: Nearest<'_>) -> Result<Option<Entry<'a>>> {
        match &any.shared {
            Shared::Ordered(table) => SortedVerbs::nearest(table, nearest),
            Shared::Tree(table) => SortedVerbs::nearest(table, nearest),
            Shared::Hash(_) => Err(any.no_order()),
        }
    }

    fn count(any: &AnyTable, bounds: Bounds<'_>) -> Result<u64> {
        sorted!(any, table => table.count(bounds), Err(any.no_order()))
    }

    fn nth(any: &AnyTable, rank: u64) -> Result<Option<Entry<'_>>> {
        sorted!(any, table => table.nth(rank), Err(any.no_order()))
    }

    fn pop(any: &AnyTable, end: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        match &any.shared {
            Shared::Ordered(table) => SortedVerbs::pop(table, end),
            Shared::Tree(table) => SortedVerbs::pop(table, end),
            Shared::Hash(_) => Err(any.no_order()),
        }
    }

    fn remove_range(any: &AnyTable, bounds: Bounds<'_>) -> Result<u64> {
        sorted!(any, table => table.remove_range(bounds), Err(any.no_order()))
    }
}

impl StoredVerbs for Any {
    type Stats = TableStats;

    fn with_durability(any: &AnyTable, durability: Durability) -> AnyTable {
        each!(any, table => table.with_durability(durability).into())
    }

    fn len_estimate(any: &AnyTable) -> usize {
        each!(any, table => table.len_estimate())
    }

    fn stats(any: &AnyTable) -> TableStats {
        each!(any, table => table.stats().into())
    }

    fn check(any: &AnyTable) -> Result<()> {
        each!(any, table => table.check())
    }

    fn fields(any: &AnyTable) -> Option<&Layout> {
        each!(any, table => table.fields())
    }

    fn aggregate(
        any: &AnyTable,
        query: &Compiled,
        execution: &Execution<'_>,
    ) -> Result<(Partial, Plan)> {
        match &any.shared {
            Shared::Ordered(table) => StoredVerbs::aggregate(table, query, execution),
            Shared::Hash(table) => StoredVerbs::aggregate(table, query, execution),
            Shared::Tree(table) => StoredVerbs::aggregate(table, query, execution),
        }
    }

    fn explain(any: &AnyTable, query: &Compiled, execution: &Execution<'_>) -> Result<Plan> {
        each!(any, table => table.explain(query, execution))
    }

    fn disaggregate(
        any: &AnyTable,
        by: &Disaggregator,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun> {
        each!(any, table => table.disaggregate_with(by, execution))
    }

    fn resume(
        any: &AnyTable,
        by: &Disaggregator,
        pending: Pending,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun> {
        each!(any, table => table.resume(by, pending, execution))
    }
}
