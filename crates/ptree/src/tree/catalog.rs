//! The catalog: a tree that has the heads of all trees, by name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::entry::TreeLayout;
use super::structure::{Head, TreeKind};
use super::{Frozen, Tree, expect_pool};
use crate::error::{Error, Result};
use crate::heap::layout::{ROOT, ROOT_CATALOG, ROOT_WORDS};
use crate::object::{ObjectId, load};
use crate::pool::{Pool, lock};
use crate::state::TreeState;
use crate::transaction::Transaction;
use crate::view::View;

/// What the catalog says of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeInfo {
    /// Its name.
    pub name: String,
    /// How it is balanced.
    pub kind: TreeKind,
    /// What keys and values it takes.
    pub layout: TreeLayout,
    /// Entries.
    pub entries: u64,
    /// What [`Transaction::set_note`] noted of it last.
    pub note: Vec<u8>,
}

impl Pool {
    /// Makes a tree, in a transaction of its own.
    ///
    /// # Errors
    /// [`Error::TreeExists`], and those of a transaction.
    pub fn create_tree(&self, name: &str, kind: TreeKind, layout: TreeLayout) -> Result<Tree> {
        self.transaction(|tx| tx.create_tree(self, name, kind, layout))
    }

    /// Removes a tree with all its entries, in a transaction of its own.
    ///
    /// # Errors
    /// As of [`Transaction::remove_tree`].
    pub fn remove_tree(&self, tree: &Tree) -> Result<()> {
        self.transaction(|tx| tx.remove_tree(tree))
    }

    /// A tree that is there.
    ///
    /// # Errors
    /// [`Error::NoTree`], [`Error::Corrupt`].
    pub fn tree(&self, name: &str) -> Result<Tree> {
        let absent = || Error::NoTree { name: name.to_owned() };
        let catalog = self.catalog()?.ok_or_else(absent)?;
        let head = catalog.get(name)?.ok_or_else(absent)?;
        self.open_tree(name, head_id(&head)?)
    }

    /// All trees, by name.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn trees(&self) -> Result<Vec<TreeInfo>> {
        let Some(catalog) = self.catalog()? else { return Ok(Vec::new()) };
        let mut infos = Vec::new();
        for entry in catalog.iter() {
            let (name, head) = entry?;
            let name = String::from_utf8_lossy(&name).into_owned();
            let tree = match self.open_tree(&name, head_id(&head)?) {
                // Removed meanwhile.
                Err(Error::TreeRemoved) => continue,
                tree => tree?,
            };
            let (kind, layout, note) = (tree.kind(), tree.layout(), note_of(&head).to_vec());
            infos.push(TreeInfo { name, kind, layout, entries: tree.len()?, note });
        }
        Ok(infos)
    }

    /// Begins a transaction that has these trees, in whatever order: it waits for all of them now,
    /// so that it meets no [`Error::Conflict`] with them later.
    ///
    /// # Errors
    /// As of [`Pool::begin`], and [`Error::OtherPool`].
    pub fn begin_on(&self, trees: &[&Tree]) -> Result<Transaction<'_>> {
        let transaction = self.begin()?;
        let mut trees = trees.to_vec();
        trees.sort_by_key(|tree| tree.state.head);
        for tree in trees {
            expect_pool(&transaction, tree)?;
            transaction.hold(&tree.state)?;
        }
        Ok(transaction)
    }

    /// Keeps commits to all of these trees away, as [`Tree::frozen`] does to one: reads of all of
    /// them see one moment. They are taken in one order, whatever the order here.
    pub fn frozen<'t>(&self, trees: &[&'t Tree]) -> Vec<Frozen<'t>> {
        let mut trees = trees.to_vec();
        trees.sort_by_key(|tree| tree.state.head);
        trees.into_iter().map(Tree::frozen).collect()
    }

    pub(crate) fn catalog(&self) -> Result<Option<Tree>> {
        let root = self.inner.committed();
        let id = load(&root.object(ROOT, ROOT_WORDS)?[ROOT_CATALOG]);
        match id {
            0 => Ok(None),
            id => self.open_tree("", ObjectId::new(id)).map(Some),
        }
    }

    fn open_tree(&self, name: &str, id: ObjectId) -> Result<Tree> {
        let state = self.inner.tree_state(id, name);
        let head = loop {
            let moment = state.version.read();
            let head = Head::read(&self.inner.committed(), id);
            if state.version.is_still(moment) {
                break head;
            }
        };
        state.check()?;
        Ok(Tree::new(self.clone(), state, &head?))
    }
}

impl crate::pool::Inner {
    /// What is known of the tree with this head.
    pub(crate) fn tree_state(&self, id: ObjectId, name: &str) -> Arc<TreeState> {
        let mut trees = lock(&self.trees);
        let state =
            trees.entry(id).or_insert_with(|| Arc::new(TreeState::new(id, name.to_owned())));
        Arc::clone(state)
    }

    /// Notes that a tree is gone.
    pub(crate) fn forget_tree(&self, state: &TreeState) {
        state.is_removed.store(true, Ordering::Release);
        lock(&self.trees).remove(&state.head);
    }
}

impl Transaction<'_> {
    /// Makes a tree in `pool`, the transaction's own. Other threads find it after the commit; an
    /// abort takes it back.
    ///
    /// # Errors
    /// [`Error::TreeExists`], and as of [`Transaction::put`].
    pub fn create_tree(
        &self,
        pool: &Pool,
        name: &str,
        kind: TreeKind,
        layout: TreeLayout,
    ) -> Result<Tree> {
        self.check()?;
        if !std::ptr::eq(self.pool, &*pool.inner) {
            return Err(Error::OtherPool);
        }
        let catalog = self.catalog_for_change(pool)?;
        if self.contains_key(&catalog, name)? {
            return Err(Error::TreeExists { name: name.to_owned() });
        }
        let id = Head::make(self, kind, layout)?;
        self.put(&catalog, name, id.word().to_le_bytes())?;
        let state = Arc::new(TreeState::new(id, name.to_owned()));
        lock(&self.pool.trees).insert(id, Arc::clone(&state));
        self.lane().created.borrow_mut().push(Arc::clone(&state));
        self.hold(&state)?;
        Ok(Tree::new(pool.clone(), state, &Head::read(self, id)?))
    }

    /// Removes a tree with all its entries. Handles of it answer [`Error::TreeRemoved`] after the
    /// commit.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn remove_tree(&self, tree: &Tree) -> Result<()> {
        self.check()?;
        expect_pool(self, tree)?;
        // In the order in which trees are made: the catalog's head comes first.
        let catalog = self.catalog_for_change(tree.pool())?;
        self.hold(&tree.state)?;
        tree.state.check()?;
        let head = Head::read(self, tree.state.head)?;
        self.free_entries(&head)?;
        self.free(tree.state.head)?;
        self.remove(&catalog, tree.name())?;
        self.lane().removed.borrow_mut().push(Arc::clone(&tree.state));
        Ok(())
    }

    /// Keeps some bytes beside a tree's name, in place of those before: what its user wants to know of
    /// it, such as what its values mean.
    ///
    /// ```
    /// # use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};
    /// # let pool = Pool::in_memory(PoolOptions::default())?;
    /// let tree = pool.create_tree("ledger", TreeKind::BTree, TreeLayout::Bytes)?;
    /// pool.transaction(|tx| tx.set_note(&tree, b"cents"))?;
    /// assert_eq!(pool.trees()?[0].note, b"cents");
    /// # Ok::<(), sapwood_ptree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn set_note(&self, tree: &Tree, note: &[u8]) -> Result<()> {
        self.check()?;
        expect_pool(self, tree)?;
        let catalog = self.catalog_for_change(tree.pool())?;
        self.hold(&tree.state)?;
        tree.state.check()?;
        let head = tree.state.head.word().to_le_bytes();
        self.put(&catalog, tree.name(), [&head[..], note].concat()).map(drop)
    }

    fn catalog_for_change(&self, pool: &Pool) -> Result<Tree> {
        self.hold(&self.pool.tree_state(ROOT, ""))?;
        let id = load(&self.object(ROOT, ROOT_WORDS)?[ROOT_CATALOG]);
        let id = match id {
            0 => {
                let id = Head::make(self, TreeKind::BTree, TreeLayout::Bytes)?;
                self.edit(ROOT, ROOT_WORDS)?.set(ROOT_CATALOG, id.word());
                self.lane().created.borrow_mut().push(self.pool.tree_state(id, ""));
                id
            }
            id => ObjectId::new(id),
        };
        Ok(Tree::new(pool.clone(), self.pool.tree_state(id, ""), &Head::read(self, id)?))
    }
}

/// What the catalog has of a tree beside its head.
fn note_of(value: &[u8]) -> &[u8] {
    value.get(size_of::<u64>()..).unwrap_or(&[])
}

/// The head's name, as the catalog has it.
fn head_id(value: &[u8]) -> Result<ObjectId> {
    let word = value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    word.map(ObjectId::new).ok_or_else(|| Error::corrupt(0, "the catalog names no head"))
}
