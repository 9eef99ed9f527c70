//! A tree table: its handle, and the operations that only read. The operations that change it are in
//! `tree_table/change.rs`.

mod change;
mod range;
mod stats;
mod transaction;

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};

use sapwood_ptree::{Tree, TreeInfo, TreeLayout};

use crate::db_log::DbLog;
use crate::directory::Directory;
use crate::formats::Formats;
use crate::schema::Schema;
use crate::{
    Direction, Error, KeyRange, RecordLayout, Result, TreeEngineError, TreeKind, aggregate,
};

#[cfg(doc)]
use crate::{Db, OrderedTable, Transaction};

pub use range::TreeRange;
pub use stats::{TreePoolStats, TreeStats};
pub(crate) use transaction::TreeTransaction;

/// A named table of a [`Db`] that keeps its keys in order, in a crash-safe heap: a B-tree, a crit-bit
/// tree or a red-black tree.
///
/// Where the database has a directory, each change lasts as soon as it is made, as far as
/// [`Durability`](crate::Durability) says, however large the table is, and opening it again reads a
/// log and not the table. Changes of any number of keys in any number of tree tables become one in a
/// [`Transaction`].
///
/// A `TreeTable` is a handle: clones are the same table. Keys and values may be empty.
///
/// # Consistency
///
/// Each operation is a transaction of its own and takes effect at one moment, batches and
/// [`clear`](Self::clear) included. Writers of a table wait for each other; readers wait for none, and
/// see what is committed. A walk sees entries in batches of one moment each: a key that is there
/// throughout is visited once.
///
/// ```
/// use sapwood::{Db, TreeTableOptions};
///
/// # let directory = tempfile::tempdir().expect("a directory for the example");
/// # let path = directory.path();
/// let db = Db::open(path)?;
/// let orders = db.create_tree_table("orders", TreeTableOptions::default())?;
/// orders.put(b"2026-11-01/7", b"an oak")?;
/// drop((orders, db)); // No `close`, no checkpoint: as if the process had been killed.
///
/// let orders = Db::open(path)?.tree_table("orders")?;
/// assert_eq!(orders.get(b"2026-11-01/7")?.as_deref(), Some(&b"an oak"[..]));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Clone)]
pub struct TreeTable {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) tree: Tree,
    pub(crate) fields: Option<aggregate::Layout>,
    /// None in a table of plain bytes. Set before a program has the table.
    formats: OnceLock<Arc<Formats>>,
    _home: Home,
}

/// Where a database is: kept locked, and with checkpoints when they are due, as long as there is a handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Home {
    /// None in memory.
    pub(crate) directory: Option<Arc<Directory>>,
    /// Of a directory that is open to be written.
    pub(crate) log: Option<Arc<DbLog>>,
}

impl TreeTable {
    pub(crate) fn new(
        name: Arc<str>,
        tree: Tree,
        fields: Option<aggregate::Layout>,
        home: Home,
    ) -> Self {
        let shared = Shared { name, tree, fields, formats: OnceLock::new(), _home: home };
        Self { shared: Arc::new(shared) }
    }

    /// That of a tree which was there when its pool was opened.
    pub(crate) fn stored(info: &TreeInfo, tree: Tree, home: Home) -> Result<Self> {
        let name: Arc<str> = info.name.as_str().into();
        let unreadable = || Error::TreeEngine {
            table: Arc::clone(&name),
            cause: TreeEngineError::Options("its fields cannot be read".to_owned()),
        };
        let fields = match &info.note[..] {
            [] => None,
            note => {
                let text = std::str::from_utf8(note).map_err(|_| unreadable())?;
                Some(text.parse().map_err(|_| unreadable())?)
            }
        };
        Ok(Self::new(name, tree, fields, home))
    }

    /// The table's name.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// assert_eq!(table.name(), "t");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The typed columns of the table, if it was made with some. A column that was added
    /// ([`Db::add_column`](crate::Db::add_column)) is among them at once.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:date, hits:u64, key(day)".parse().expect("a schema");
    /// let table = db.create_tree_table("t", TreeTableOptions::default().schema(schema))?;
    /// assert_eq!(table.schema().and_then(|schema| schema.find("hits")), Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self) -> Option<&Schema> {
        self.formats().map(|formats| formats.newest().schema())
    }

    pub(crate) fn formats(&self) -> Option<&Arc<Formats>> {
        self.shared.formats.get()
    }

    /// Gives the table its columns, unless it has them.
    pub(crate) fn set_formats(&self, formats: Arc<Formats>) {
        self.shared.formats.get_or_init(|| formats);
    }

    /// How the tree is balanced.
    ///
    /// ```
    /// # use sapwood::{Db, TreeKind, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// assert_eq!(table.kind(), TreeKind::BTree);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn kind(&self) -> TreeKind {
        self.tree().kind()
    }

    /// Which keys and values it takes.
    ///
    /// ```
    /// # use sapwood::{Db, RecordLayout, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// assert_eq!(table.layout(), RecordLayout::Variable);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn layout(&self) -> RecordLayout {
        match self.tree().layout() {
            TreeLayout::Fixed => RecordLayout::Fixed8,
            TreeLayout::Bytes => RecordLayout::Variable,
        }
    }

    /// Reads a copy of a value; answers what `read` answers, or `None` without the key.
    ///
    /// # Errors
    /// [`Error::TreeEngine`]: [`KeyLength`](TreeEngineError::KeyLength),
    /// [`TreeRemoved`](TreeEngineError::TreeRemoved) after the table was dropped,
    /// [`Corrupt`](TreeEngineError::Corrupt) where its file is damaged.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get_with(b"oak", |value| value.len())?, Some(7));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.named(self.tree().get_with(key, read))
    }

    /// Copies a value out.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get(b"oak")?.as_deref(), Some(&b"quercus"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.named(self.tree().get(key))
    }

    /// Whether the key is there.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"oak", b"")?;
    /// assert!(table.contains_key(b"oak")? && !table.contains_key(b"elm")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.named(self.tree().contains_key(key))
    }

    /// Reads a counter, as [`add`](Self::add) makes them; `None` without the key.
    ///
    /// # Errors
    /// [`NotACounter`](TreeEngineError::NotACounter) if the value has not 8 bytes; otherwise as
    /// [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.add(b"hits", 42)?;
    /// assert_eq!(table.get_counter(b"hits")?, Some(42));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_counter(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>> {
        let counter = self.get_with(key, counter)?;
        self.named(counter.transpose())
    }

    /// Calls `read(i, value)` once for each `keys[i]`, in order.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with), at the first key that is refused; `read` was called for
    /// others.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("elm", "ulmus"), ("oak", "quercus")])?;
    /// let mut lens = Vec::new();
    /// table.get_many(&["oak", "ash"], |_index, value| lens.push(value.map(<[u8]>::len)))?;
    /// assert_eq!(lens, [Some(7), None]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (index, key) in keys.iter().enumerate() {
            if self.get_with(key, |value| read(index, Some(value)))?.is_none() {
                read(index, None);
            }
        }
        Ok(())
    }

    /// The entry with the least key.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("b", "2"), ("a", "1")])?;
    /// assert_eq!(table.first()?, Some((b"a".to_vec(), b"1".to_vec())));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.named(self.tree().first(..))
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("b", "2"), ("a", "1")])?;
    /// assert_eq!(table.last()?, Some((b"b".to_vec(), b"2".to_vec())));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.named(self.tree().last(..))
    }

    /// The entry with the greatest key at or below `key`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.floor(b"c")?.expect("there is one").0, b"b");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn floor(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.named(self.tree().last(..=key.as_ref()))
    }

    /// The entry with the greatest key below `key`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.lower(b"b")?.expect("there is one").0, b"a");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn lower(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.named(self.tree().last(..key.as_ref()))
    }

    /// The entry with the least key at or above `key`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.ceiling(b"c")?.expect("there is one").0, b"d");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ceiling(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.named(self.tree().first(key.as_ref()..))
    }

    /// The entry with the least key above `key`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.higher(b"b")?.expect("there is one").0, b"d");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn higher(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.named(self.tree().first((Bound::Excluded(key.as_ref()), Bound::Unbounded)))
    }

    /// The entries in a range as an iterator, both ways. Its items are `Result<(Vec<u8>, Vec<u8>)>`.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let keys: sapwood::Result<Vec<_>> =
    ///     table.range("b"..).rev().map(|entry| Ok(entry?.0)).collect();
    /// assert_eq!(keys?, [b"c", b"b"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> TreeRange<'_> {
        TreeRange::new(self, range)
    }

    /// Visits the entries in a range; `visit` ends it with `ControlFlow::Break`.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with); `visit` was called for the entries before.
    ///
    /// ```
    /// # use sapwood::Direction;
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let found = table.scan("b".., Direction::Ascending, |key, value| {
    ///     if value == b"3" { ControlFlow::Break(key.to_vec()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(found, ControlFlow::Break(b"c".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<B>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.named(self.tree().scan(range, direction, visit))
    }

    /// Visits every entry, in the order of the keys; `visit` ends it with `ControlFlow::Break`.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
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
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.scan(.., Direction::Ascending, visit)
    }

    /// How many entries: exact, at no cost.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len(&self) -> Result<usize> {
        self.named(self.tree().len()).map(|len| len as usize)
    }

    /// As [`len`](Self::len), and 0 where that fails.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len_estimate(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len_estimate(&self) -> usize {
        self.len().unwrap_or_default()
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        self.named(self.tree().is_empty())
    }

    /// What the table holds. What it costs is a part of what all tree tables of its database cost
    /// ([`Db::stats`]).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"key", b"value")?;
    /// assert_eq!(table.stats().entries, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn stats(&self) -> TreeStats {
        let pool = self.tree().pool();
        TreeStats {
            entries: self.len_estimate() as u64,
            kind: self.kind(),
            layout: self.layout(),
            trees: TreePoolStats { heap_bytes: pool.heap_bytes() },
        }
    }

    /// Verifies every invariant of all tree tables of the database, and of the heap that they share.
    /// Commits wait meanwhile.
    ///
    /// # Errors
    /// [`Error::TreesCorrupt`] with all that does not hold.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// table.check()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        let report = self.named(self.tree().pool().check())?;
        match report.problems.is_empty() {
            true => Ok(()),
            false => Err(Error::TreesCorrupt { problems: report.problems.into() }),
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.shared.tree
    }

    /// Runs a change of any keys.
    #[inline]
    pub(crate) fn change_any<R>(&self, change: impl FnOnce() -> Result<R>) -> Result<R> {
        change()
    }

    /// Puts the table's name to an engine's error.
    #[inline]
    pub(crate) fn named<T>(&self, result: std::result::Result<T, TreeEngineError>) -> Result<T> {
        result.map_err(|cause| self.refused(cause))
    }

    #[cold]
    fn refused(&self, cause: TreeEngineError) -> Error {
        Error::TreeEngine { table: Arc::clone(&self.shared.name), cause }
    }
}

/// The counter that a value is.
fn counter(value: &[u8]) -> std::result::Result<i64, TreeEngineError> {
    match value.try_into() {
        Ok(bytes) => Ok(i64::from_le_bytes(bytes)),
        Err(_) => Err(TreeEngineError::NotACounter { len: value.len() }),
    }
}

impl std::fmt::Debug for TreeTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeTable")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .field("entries", &self.len_estimate())
            .finish_non_exhaustive()
    }
}
