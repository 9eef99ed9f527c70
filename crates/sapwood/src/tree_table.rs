//! The trees as a table.

mod transaction;
mod verbs;

use std::sync::{Arc, OnceLock};

use sapwood_ptree::{TreeInfo, TreeLayout};

use crate::formats::Formats;
use crate::home::Home;
use crate::{Error, RecordLayout, Result, Table, TreeEngineError, TreeKind, aggregate};

pub(crate) use transaction::TreeTransaction;

/// The engine that keeps keys in order, in a crash-safe heap: a B-tree, a crit-bit tree or a red-black tree.
#[derive(Debug, Clone, Copy)]
pub enum Tree {}

/// A table that keeps its keys in order, in a crash-safe heap: it opens at once, however large it is.
///
/// Where the database has a directory, opening it again reads a log and not the table. Changes of any number of
/// keys in any number of tree tables become one in a [`Transaction`](crate::Transaction). Keys and values may be empty.
///
/// Each operation is a transaction of its own and takes effect at one moment, batches and
/// [`clear`](Table::clear) included. Writers of a table wait for each other; readers wait for none, and see what is
/// committed. A walk sees entries in batches of one moment each: a key that is there throughout is visited once.
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
pub type TreeTable = Table<Tree>;

pub struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) tree: sapwood_ptree::Tree,
    pub(crate) fields: Option<aggregate::Layout>,
    /// None in a table of plain bytes. Set before a program has the table.
    formats: OnceLock<Arc<Formats>>,
    home: Arc<Home>,
}

impl Table<Tree> {
    pub(crate) fn new(
        name: Arc<str>,
        tree: sapwood_ptree::Tree,
        fields: Option<aggregate::Layout>,
        home: Arc<Home>,
    ) -> Self {
        Self::of(Arc::new(Shared { name, tree, fields, formats: OnceLock::new(), home }))
    }

    /// The table of a tree that a pool had when it was opened.
    pub(crate) fn stored(
        info: &TreeInfo,
        tree: sapwood_ptree::Tree,
        home: Arc<Home>,
    ) -> Result<Self> {
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

    /// Gives the table its columns, unless it has them.
    pub(crate) fn set_formats(&self, formats: Arc<Formats>) {
        self.shared.formats.get_or_init(|| formats);
    }

    /// The structure of the tree.
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

    /// The lengths of its keys and values.
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

    pub(crate) fn tree(&self) -> &sapwood_ptree::Tree {
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
        result.map_err(|cause| self.error(cause))
    }

    #[cold]
    fn error(&self, cause: TreeEngineError) -> Error {
        Error::TreeEngine { table: Arc::clone(&self.shared.name), cause }
    }
}
