//! Trees: keys and values in order, read beside one writer.
//!
//! A reader looks at committed words, and afterwards at the tree's version: where a commit went on
//! meanwhile, it looks again. So it never waits for a transaction, only for the moment in which one
//! is published, and what it answers was true at one moment. A walk reads batches, each of one
//! moment; [`Tree::frozen`] keeps commits away from several reads.

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, PoisonError, RwLockReadGuard};

use sapwood_engine::{Direction, KeyRange};
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::pool::{Inner, Pool};
use crate::state::TreeState;
use crate::transaction::Transaction;
use crate::view::{Committed, View};
use batch::Batch;
use btree::BTree;
use crit_bit::CritBit;
use entry::{Entry, Probe, TreeLayout};
use red_black::RedBlack;
use structure::{Head, Structure, TreeKind};

pub(crate) mod alone;
pub(crate) mod batch;
pub(crate) mod btree;
pub(crate) mod catalog;
pub(crate) mod change;
pub(crate) mod crit_bit;
pub(crate) mod entry;
pub(crate) mod rank;
pub(crate) mod red_black;
pub(crate) mod split_points;
pub(crate) mod structure;
pub(crate) mod value;

/// Looks before a reader keeps commits away.
const LOOKS: usize = 32;

/// Runs an expression with the structure of a kind.
macro_rules! with_structure {
    ($kind:expr, $structure:ident => $body:expr) => {
        match $kind {
            TreeKind::BTree => {
                type $structure = BTree;
                $body
            }
            TreeKind::CritBit => {
                type $structure = CritBit;
                $body
            }
            TreeKind::RedBlack => {
                type $structure = RedBlack;
                $body
            }
        }
    };
}
pub(crate) use with_structure;

/// A tree of a pool: an ordered map from keys to values, as bytes.
///
/// Clones are the same tree. It may be read by any number of threads; changes take a
/// [`Transaction`], or one each.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) pool: Pool,
    pub(crate) state: Arc<TreeState>,
    kind: TreeKind,
    layout: TreeLayout,
}

/// Bytes of a value that fit on the stack.
type ValueBuffer = SmallVec<[u8; 64]>;

impl Tree {
    pub(crate) fn new(pool: Pool, state: Arc<TreeState>, head: &Head) -> Tree {
        Tree { pool, state, kind: head.kind, layout: head.layout }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The object that is its head: no other tree of the pool has it.
    pub fn id(&self) -> ObjectId {
        self.state.head
    }

    /// How it is balanced.
    pub fn kind(&self) -> TreeKind {
        self.kind
    }

    /// What keys and values it takes.
    pub fn layout(&self) -> TreeLayout {
        self.layout
    }

    /// The pool that it is in.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.pool.inner
    }

    /// What `look` answers of one moment.
    fn read<R>(&self, look: impl Fn(&Committed<'_>, &Head) -> Result<R>) -> Result<R> {
        let view = self.inner().committed();
        let once = || Head::read(&view, self.state.head).and_then(|head| look(&view, &head));
        for _ in 0..LOOKS {
            let moment = self.state.version.read();
            let seen = once();
            if self.state.version.is_still(moment) {
                self.state.check()?;
                return seen;
            }
        }
        // Commits come faster than looks: keep them away for one.
        let _no_commit = self.freeze();
        self.state.check()?;
        once()
    }

    pub(crate) fn freeze(&self) -> RwLockReadGuard<'_, ()> {
        self.state.publishing.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps commits to this tree away as long as the answer lives: reads see one moment. A
    /// transaction may go on, and waits when it commits. A thread that holds this does not commit
    /// to the tree. Several trees are kept by [`Pool::frozen`](crate::Pool::frozen).
    ///
    /// ```
    /// # use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};
    /// # let pool = Pool::in_memory(PoolOptions::default())?;
    /// let tree = pool.create_tree("ledger", TreeKind::BTree, TreeLayout::Bytes)?;
    /// tree.put(b"a", b"1")?;
    /// let frozen = tree.frozen();
    /// assert_eq!(tree.len()?, tree.iter().count() as u64);
    /// drop(frozen);
    /// # Ok::<(), sapwood_ptree::Error>(())
    /// ```
    pub fn frozen(&self) -> Frozen<'_> {
        Frozen { _no_commit: self.freeze() }
    }

    /// The number of entries.
    ///
    /// # Errors
    /// [`Error::TreeRemoved`], [`Error::Corrupt`], as of all reads.
    pub fn len(&self) -> Result<u64> {
        self.read(|_, head| Ok(head.count))
    }

    /// Whether it has no entry.
    ///
    /// # Errors
    /// As of [`Tree::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Runs `read` on a copy of the value of a key; `None` without the key.
    ///
    /// # Errors
    /// As of [`Tree::len`], and [`Error::KeyLength`].
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let key = key.as_ref();
        self.layout.check_key(key)?;
        let found = self.read(|view, head| value_of(view, head, key))?;
        Ok(found.map(|value| read(&value)))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As of [`Tree::get_with`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As of [`Tree::get_with`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.layout.check_key(key)?;
        self.read(|view, head| Ok(find(view, head, Probe::new(key))?.is_some()))
    }

    /// Visits the entries of a range, until `visit` breaks. Entries come in batches, each of one
    /// moment: an entry that is there throughout is visited once, and none twice.
    ///
    /// # Errors
    /// As of [`Tree::len`].
    pub fn scan<B>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let mut batch = Batch::new(self.layout, range.bounds(), direction);
        while self.fill(&mut batch)? {
            for (key, value) in batch.iter() {
                if let ControlFlow::Break(result) = visit(key, value) {
                    return Ok(ControlFlow::Break(result));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the next entries of a walk; whether there are any.
    pub(crate) fn fill(&self, batch: &mut Batch) -> Result<bool> {
        if batch.is_done() {
            return Ok(false);
        }
        let next = self.read(|view, head| batch.read_next(view, head))?;
        batch.take(next);
        Ok(!batch.is_empty())
    }

    /// The entries of a range in ascending order. As [`Tree::scan`], with copies.
    pub fn range(&self, range: impl KeyRange) -> Entries {
        Entries::new(self, range.bounds(), Direction::Ascending)
    }

    /// The entries of a range in descending order.
    pub fn range_descending(&self, range: impl KeyRange) -> Entries {
        Entries::new(self, range.bounds(), Direction::Descending)
    }

    /// All entries in ascending order.
    pub fn iter(&self) -> Entries {
        self.range(..)
    }

    /// The first entry of a range; the key's ceiling for `key..`, its successor for what follows.
    ///
    /// # Errors
    /// As of [`Tree::len`].
    pub fn first(&self, range: impl KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.end_of(range.bounds(), Direction::Ascending)
    }

    /// The last entry of a range; the key's floor for `..=key`, its predecessor for `..key`.
    ///
    /// # Errors
    /// As of [`Tree::len`].
    pub fn last(&self, range: impl KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.end_of(range.bounds(), Direction::Descending)
    }

    fn end_of(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut batch = Batch::new(self.layout, bounds, direction).of_one();
        self.fill(&mut batch)?;
        let first = batch.iter().next().map(|(key, value)| (key.to_vec(), value.to_vec()));
        Ok(first)
    }
}

/// Keeps commits to a tree away.
#[derive(Debug)]
pub struct Frozen<'t> {
    pub(crate) _no_commit: RwLockReadGuard<'t, ()>,
}

/// The entry of a key.
#[inline]
pub(crate) fn find(view: &impl View, head: &Head, key: Probe<'_>) -> Result<Option<Entry>> {
    with_structure!(head.kind, S => S::find(view, head, key))
}

/// A copy of the value of a key.
#[inline]
pub(crate) fn value_of(view: &impl View, head: &Head, key: &[u8]) -> Result<Option<ValueBuffer>> {
    let Some(entry) = find(view, head, Probe::new(key))? else { return Ok(None) };
    if head.layout == TreeLayout::Fixed {
        return Ok(Some(ValueBuffer::from_slice(&entry.b.to_le_bytes())));
    }
    let mut value = ValueBuffer::new();
    head.layout.read_value(view, entry, &mut value)?;
    Ok(Some(value))
}

/// The entries of a range, read in batches.
#[derive(Debug)]
pub struct Entries {
    tree: Tree,
    batch: Batch,
    next: usize,
    failed: bool,
}

impl Entries {
    fn new(tree: &Tree, bounds: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction) -> Entries {
        let batch = Batch::new(tree.layout, bounds, direction);
        Entries { tree: tree.clone(), batch, next: 0, failed: false }
    }
}

impl Iterator for Entries {
    /// A key and its value.
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if self.next == self.batch.len() {
            self.next = 0;
            match self.tree.fill(&mut self.batch) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        let (key, value) = self.batch.get(self.next);
        self.next += 1;
        Some(Ok((key.to_vec(), value.to_vec())))
    }
}

/// The head of a tree as a transaction sees it.
pub(crate) fn head_in(tx: &Transaction<'_>, id: ObjectId) -> Result<Head> {
    Head::read(tx, id)
}

/// The tree is of another pool.
pub(crate) fn expect_pool(tx: &Transaction<'_>, tree: &Tree) -> Result<()> {
    match std::ptr::eq(tx.pool, tree.inner()) {
        true => Ok(()),
        false => Err(Error::OtherPool),
    }
}
