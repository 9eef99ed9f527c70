//! The seam between the table type and its engines.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crate::aggregate::{
    Compiled, DisaggregationRun, Disaggregator, Execution, Layout, Partial, Pending, Plan,
};
use crate::formats::Formats;
use crate::table::{Entry, Range, Table, TableStats};
use crate::{Compute, Computed, Direction, Durability, Error, Result, Upsert, ValueMut};

/// Ends of a range of keys.
pub(crate) type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Bytes of a page, but for its last entry.
const PAGE_BYTES: usize = 64 << 10;

/// Copies of entries in the order of a scan.
#[derive(Debug, Default)]
pub struct Page {
    pub(crate) entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// True if the scan has no more.
    pub(crate) is_last: bool,
}

/// An entry relative to a key, or to the ends of a table.
#[derive(Debug, Clone, Copy)]
pub enum Nearest<'k> {
    First,
    Last,
    /// The greatest key at or below one.
    Floor(&'k [u8]),
    /// The greatest key below one.
    Lower(&'k [u8]),
    /// The least key at or above one.
    Ceiling(&'k [u8]),
    /// The least key above one.
    Higher(&'k [u8]),
}

impl<'k> Nearest<'k> {
    /// The range whose first entry in the direction is the one that is meant.
    pub(crate) fn range(self) -> (Bounds<'k>, Direction) {
        use Bound::{Excluded, Included, Unbounded};
        match self {
            Nearest::First => ((Unbounded, Unbounded), Direction::Ascending),
            Nearest::Last => ((Unbounded, Unbounded), Direction::Descending),
            Nearest::Floor(key) => ((Unbounded, Included(key)), Direction::Descending),
            Nearest::Lower(key) => ((Unbounded, Excluded(key)), Direction::Descending),
            Nearest::Ceiling(key) => ((Included(key), Unbounded), Direction::Ascending),
            Nearest::Higher(key) => ((Excluded(key), Unbounded), Direction::Ascending),
        }
    }
}

/// A refusal that each engine has a word for.
#[derive(Debug, Clone, Copy)]
pub enum Refusal {
    /// A value of `len` bytes is no counter.
    NotACounter { len: usize },
    /// A sum leaves the range of `i64`.
    Overflow { value: i64, delta: i64 },
}

/// The operations of an engine, as the methods of [`Table`] call them. Those of the same name describe them.
pub trait Verbs: Sized {
    /// The engine's half of a handle.
    type Shared: Clone;

    /// The iterator of [`Table::iter`].
    type Iter<'a>: Iterator<Item = Result<Entry<'a>>>
    where
        Self: 'a;

    fn shared_name(table: &Table<Self>) -> &Arc<str>;

    fn debug(table: &Table<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn formats(table: &Table<Self>) -> Option<&Arc<Formats>>;

    fn refused(table: &Table<Self>, refusal: Refusal) -> Error;

    fn get_with<R>(
        table: &Table<Self>,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>>;

    #[inline]
    fn contains_key(table: &Table<Self>, key: &[u8]) -> Result<bool> {
        Ok(Self::get_with(table, key, |_| ())?.is_some())
    }

    fn get_many<K: AsRef<[u8]>>(
        table: &Table<Self>,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (index, key) in keys.iter().enumerate() {
            if Self::get_with(table, key.as_ref(), |value| read(index, Some(value)))?.is_none() {
                read(index, None);
            }
        }
        Ok(())
    }

    fn put(table: &Table<Self>, key: &[u8], value: &[u8]) -> Result<()>;

    fn put_if_absent(table: &Table<Self>, key: &[u8], value: &[u8]) -> Result<bool>;

    fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        table: &Table<Self>,
        entries: &[(K, V)],
    ) -> Result<()>;

    fn update<R>(
        table: &Table<Self>,
        key: &[u8],
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>>;

    fn update_many<K: AsRef<[u8]>>(
        table: &Table<Self>,
        keys: &[K],
        change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize>;

    fn put_if_absent_or_update<R>(
        table: &Table<Self>,
        key: &[u8],
        value: &[u8],
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>>;

    fn compare_and_put(
        table: &Table<Self>,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<bool>;

    fn add(table: &Table<Self>, key: &[u8], delta: i64) -> Result<i64>;

    fn add_many<K: AsRef<[u8]>>(table: &Table<Self>, deltas: &[(K, i64)]) -> Result<()>;

    fn remove(table: &Table<Self>, key: &[u8]) -> Result<bool>;

    fn remove_with<R>(
        table: &Table<Self>,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>>;

    fn compute(
        table: &Table<Self>,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed>;

    fn retain(table: &Table<Self>, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64>;

    fn clear(table: &Table<Self>) -> Result<()>;

    fn for_each<B>(
        table: &Table<Self>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>>;

    fn iter(table: &Table<Self>) -> Self::Iter<'_>;

    fn len(table: &Table<Self>) -> Result<usize>;

    fn is_empty(table: &Table<Self>) -> Result<bool> {
        Ok(Self::len(table)? == 0)
    }
}

/// Operations of an engine with order.
pub trait SortedVerbs: Verbs {
    fn scan<B>(
        table: &Table<Self>,
        bounds: Bounds<'_>,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>>;

    fn scan_keys<B>(
        table: &Table<Self>,
        bounds: Bounds<'_>,
        direction: Direction,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        Self::scan(table, bounds, direction, |key, _value| visit(key))
    }

    fn range<'a>(table: &'a Table<Self>, bounds: Bounds<'_>) -> Range<'a>;

    fn nearest<'a>(table: &'a Table<Self>, nearest: Nearest<'_>) -> Result<Option<Entry<'a>>>;

    fn count(table: &Table<Self>, bounds: Bounds<'_>) -> Result<u64> {
        let mut count = 0;
        let _end = Self::scan_keys(table, bounds, Direction::Ascending, |_key| {
            count += 1;
            ControlFlow::<()>::Continue(())
        })?;
        Ok(count)
    }

    fn nth(table: &Table<Self>, rank: u64) -> Result<Option<Entry<'_>>>;

    fn pop(table: &Table<Self>, end: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>>;

    fn remove_range(table: &Table<Self>, bounds: Bounds<'_>) -> Result<u64>;

    /// Copies the first entries of a range: at most so many, and no more once they have [`PAGE_BYTES`].
    fn page(
        table: &Table<Self>,
        bounds: Bounds<'_>,
        direction: Direction,
        entries_max: usize,
    ) -> Result<Page> {
        let mut page = Page::default();
        let mut bytes = 0;
        let end = Self::scan(table, bounds, direction, |key, value| {
            page.entries.push((key.to_vec(), value.to_vec()));
            bytes += key.len() + value.len();
            match page.entries.len() < entries_max && bytes < PAGE_BYTES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        page.is_last = end.is_continue();
        Ok(page)
    }
}

/// Operations of the table itself.
pub trait StoredVerbs: Verbs {
    /// The engine's own statistics.
    type Stats: Into<TableStats>;

    fn with_durability(table: &Table<Self>, durability: Durability) -> Table<Self> {
        Table { shared: table.shared.clone(), durability: Some(durability) }
    }

    fn len_estimate(table: &Table<Self>) -> usize;

    fn stats(table: &Table<Self>) -> Self::Stats;

    fn check(table: &Table<Self>) -> Result<()>;

    fn fields(table: &Table<Self>) -> Option<&Layout>;

    fn aggregate(
        table: &Table<Self>,
        query: &Compiled,
        execution: &Execution<'_>,
    ) -> Result<(Partial, Plan)>;

    fn explain(table: &Table<Self>, query: &Compiled, execution: &Execution<'_>) -> Result<Plan>;

    fn disaggregate(
        table: &Table<Self>,
        by: &Disaggregator,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun>;

    fn resume(
        table: &Table<Self>,
        by: &Disaggregator,
        pending: Pending,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun>;
}

/// An engine, or a view of one: it has the verbs of single keys, and walks in an order of its own.
///
/// [`Ordered`](crate::Ordered), [`Hash`](crate::Hash), [`Tree`](crate::Tree), [`Any`](crate::Any) and
/// [`InTransaction`](crate::InTransaction) are all there are: programs name the trait in bounds, and implement it for
/// nothing.
///
/// ```
/// use sapwood::{Db, HashTableOptions, Keyed, Result, Table};
///
/// fn count<E: Keyed>(words: &Table<E>, text: &str) -> Result<()> {
///     text.split(' ').try_for_each(|word| words.add(word, 1).map(drop))
/// }
///
/// let db = Db::in_memory();
/// let words = db.create_hash_table("words", HashTableOptions::default())?;
/// count(&words, "an oak is an oak")?;
/// db.transaction(|tx| count(&tx.table(&words), "oak"))?;
/// assert_eq!(words.get_counter("oak")?, Some(3));
/// # Ok::<(), sapwood::Error>(())
/// ```
pub trait Keyed: Verbs {}

impl<E: Verbs> Keyed for E {}

/// An engine, or a view of one, that keeps keys in the order of their bytes.
pub trait Sorted: Keyed + SortedVerbs {}

impl<E: SortedVerbs> Sorted for E {}

/// An engine, or any of them, as opposed to the view of a transaction.
pub trait Stored: Keyed + StoredVerbs {}

impl<E: StoredVerbs> Stored for E {}
