//! What a tree's structure is to the verbs of all trees.

use std::ops::Bound;

use sapwood_engine::Direction;

use super::entry::{Entry, Probe, TreeLayout};
use crate::error::{Error, Result};
use crate::object::{ObjectId, ObjectType, load};
use crate::transaction::{Edit, Transaction};
use crate::view::View;

/// Words of a tree's head.
pub(crate) const HEAD_WORDS: usize = 8;
const HEAD_KIND: usize = 1;
const HEAD_ROOT: usize = 2;
const HEAD_COUNT: usize = 3;
const HEAD_HEIGHT: usize = 4;

/// How a tree is balanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TreeKind {
    /// A B-tree: the least memory, the fastest look-ups and walks.
    #[default]
    BTree,
    /// A crit-bit tree: no comparisons of whole keys on the way down, and no balancing.
    CritBit,
    /// A red-black tree.
    RedBlack,
}

impl TreeKind {
    fn stored(self) -> u64 {
        match self {
            TreeKind::BTree => 1,
            TreeKind::CritBit => 2,
            TreeKind::RedBlack => 3,
        }
    }

    fn from_stored(code: u64) -> Option<TreeKind> {
        [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack]
            .into_iter()
            .find(|kind| kind.stored() == code)
    }
}

/// The head of a tree as an operation sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: ObjectId,
    pub(crate) kind: TreeKind,
    pub(crate) layout: TreeLayout,
    /// The root, as its structure writes it; zero for an empty tree.
    pub(crate) root: u64,
    /// Entries.
    pub(crate) count: u64,
    /// Whatever the structure wants to know of its root.
    pub(crate) height: u64,
}

impl Head {
    /// Makes the head of an empty tree.
    pub(crate) fn make(
        tx: &Transaction<'_>,
        kind: TreeKind,
        layout: TreeLayout,
    ) -> Result<ObjectId> {
        let (id, head) = tx.make(ObjectType::TREE_HEAD, HEAD_WORDS)?;
        head.set(HEAD_KIND, kind.stored() | layout.stored() << 8);
        for word in [HEAD_ROOT, HEAD_COUNT, HEAD_HEIGHT] {
            head.set(word, 0);
        }
        Ok(id)
    }

    pub(crate) fn read(view: &impl View, id: ObjectId) -> Result<Head> {
        let words = view.object(id, HEAD_WORDS)?;
        let what = load(&words[HEAD_KIND]);
        let kind = TreeKind::from_stored(what & 0xff);
        let layout = TreeLayout::from_stored(what >> 8);
        let (Some(kind), Some(layout)) = (kind, layout) else {
            return Err(Error::corrupt(id.index(), "no head of a tree is there"));
        };
        Ok(Head {
            id,
            kind,
            layout,
            root: load(&words[HEAD_ROOT]),
            count: load(&words[HEAD_COUNT]),
            height: load(&words[HEAD_HEIGHT]),
        })
    }

    fn edit<'t>(&self, tx: &'t Transaction<'_>) -> Result<Edit<'t>> {
        tx.edit(self.id, HEAD_WORDS)
    }

    pub(crate) fn set_root(&mut self, tx: &Transaction<'_>, root: u64) -> Result<()> {
        self.root = root;
        self.edit(tx)?.set(HEAD_ROOT, root);
        Ok(())
    }

    pub(crate) fn set_count(&mut self, tx: &Transaction<'_>, count: u64) -> Result<()> {
        self.count = count;
        self.edit(tx)?.set(HEAD_COUNT, count);
        Ok(())
    }

    /// Counts an entry that came.
    pub(crate) fn count_up(&mut self, tx: &Transaction<'_>) -> Result<()> {
        self.set_count(tx, self.count.wrapping_add(1))
    }

    /// Counts an entry that went.
    pub(crate) fn count_down(&mut self, tx: &Transaction<'_>) -> Result<()> {
        self.set_count(tx, self.count.wrapping_sub(1))
    }

    pub(crate) fn set_height(&mut self, tx: &Transaction<'_>, height: u64) -> Result<()> {
        self.height = height;
        self.edit(tx)?.set(HEAD_HEIGHT, height);
        Ok(())
    }
}

/// Where an entry is: good until the tree changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) node: ObjectId,
    pub(crate) slot: usize,
}

/// The outcome of [`Structure::insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The key was absent, and has the entry now.
    New,
    /// The key is there already.
    There(Place, Entry),
}

/// What [`Structure::reach`] comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reached {
    Entry(Entry),
    /// Damage, beyond which the walk does not go.
    Nothing(Error),
}

/// How many looks an estimate takes: more where subtrees of one node may differ more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    /// Into how many pieces of one size a range is taken apart, about.
    pub(crate) pieces: usize,
    /// Random ways down from the top of a piece. The one that tells most entries says whether it is taken apart.
    pub(crate) ways: usize,
}

/// A part of a subtree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<S> {
    Entry(Entry),
    Subtree(S),
}

/// Whether a walk goes on.
pub(crate) type Flow = std::ops::ControlFlow<()>;

/// A balanced (or not) binary or wider tree of entries in key order. It keeps the count in its head.
///
/// Reading functions take any view. Under a view of committed words they may meet a mix of before
/// and after a commit: they must come to an end, with whatever answer or [`Error::Corrupt`], since
/// the caller throws it away; so their loops are bounded. Numbers that lead to objects are checked by
/// [`View::object`]; all others are the structure's to check.
pub(crate) trait Structure {
    /// What lies below a link, with what a walk has to know of it.
    type Subtree: Copy;

    /// How closely its subtrees have to be looked at to know how many entries they have, about.
    const LOOKS: Looks;

    /// The entry of a key.
    fn find(view: &impl View, head: &Head, key: Probe<'_>) -> Result<Option<Entry>>;

    /// The entry of a key, and where it is, for a change.
    fn place(tx: &Transaction<'_>, head: &Head, key: Probe<'_>) -> Result<Option<(Place, Entry)>>;

    /// Inserts what `make` answers if the key is absent; one search. `make` runs before anything
    /// is changed, and its error is the answer.
    fn insert(
        tx: &Transaction<'_>,
        head: &mut Head,
        key: Probe<'_>,
        make: impl FnOnce() -> Result<Entry>,
    ) -> Result<Inserted>;

    /// Gives the entry at a place, which has the same key, another second word.
    fn set(tx: &Transaction<'_>, head: &Head, place: Place, entry: Entry) -> Result<()>;

    /// Takes the entry of a key out of the tree. Its record stays.
    fn remove(tx: &Transaction<'_>, head: &mut Head, key: Probe<'_>) -> Result<Option<Entry>>;

    /// Tells entries in order, from a bound on in a direction, until `tell` breaks.
    fn walk(
        view: &impl View,
        head: &Head,
        from: Bound<Probe<'_>>,
        direction: Direction,
        tell: &mut dyn FnMut(Entry) -> Result<Flow>,
    ) -> Result<()>;

    /// Tells each node, records not included, and each entry; nodes after those below them. Checks
    /// everything that holds of a tree of this kind: order, balance, links, counts.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first thing that is not so.
    fn check(
        view: &impl View,
        head: &Head,
        node: &mut dyn FnMut(ObjectId) -> Result<()>,
        entry: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<()>;

    /// Tells the entries of a damaged tree that can be reached from its head, in any order, and the
    /// damage that it meets. It comes to each node once.
    fn reach(view: &impl View, head: &Head, tell: &mut dyn FnMut(Reached));

    /// The whole tree; `None` where it is empty.
    fn whole(head: &Head) -> Result<Option<Self::Subtree>>;

    /// Tells what a subtree has right below its top, in key order: entries, and subtrees between them.
    fn parts(
        view: &impl View,
        subtree: Self::Subtree,
        tell: &mut impl FnMut(Part<Self::Subtree>),
    ) -> Result<()>;

    /// The object at the top of a subtree.
    fn top(subtree: Self::Subtree) -> ObjectId;

    /// The number of entries of a subtree that has no subtrees.
    fn leaf_len(_view: &impl View, _subtree: Self::Subtree) -> Result<Option<u64>> {
        Ok(None)
    }

    /// An entry below an object or in it, which has so many words, if it is a node of this structure.
    fn entry_in(view: &impl View, id: ObjectId, words: usize) -> Result<Option<Entry>>;

    /// The number of the part that has a key of the tree, or would have it.
    fn part_of(
        view: &impl View,
        head: &Head,
        subtree: Self::Subtree,
        key: Probe<'_>,
    ) -> Result<usize>;

    /// Builds an empty tree from entries in strictly ascending order of keys.
    fn build(
        tx: &Transaction<'_>,
        head: &mut Head,
        entries: &mut dyn Iterator<Item = Result<Entry>>,
    ) -> Result<()>;
}

/// The words of a head, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> Vec<crate::object::LayoutRow> {
    let word = |at: usize| at as u32;
    let codes = [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack].map(TreeKind::stored);
    let layouts = [TreeLayout::Bytes, TreeLayout::Fixed].map(TreeLayout::stored);
    assert_eq!((codes, layouts), ([1, 2, 3], [1, 2]), "as the table says");
    vec![
        (0, 1, "header", "type 0xff00"),
        (
            word(HEAD_KIND),
            1,
            "kind",
            "1 B-tree, 2 crit-bit, 3 red-black; from bit 8 on 1 bytes, 2 fixed",
        ),
        (word(HEAD_ROOT), 1, "root", "link or name of the root, 0 of an empty tree"),
        (word(HEAD_COUNT), 1, "count", "entries"),
        (word(HEAD_HEIGHT), 1, "height", "levels of a B-tree; 0 of others"),
        (word(HEAD_HEIGHT + 1), word(HEAD_WORDS - HEAD_HEIGHT - 1), "unused", "zero"),
    ]
}

#[cfg(test)]
mod tests;
