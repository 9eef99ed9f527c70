//! A B-tree (Bayer and McCreight: "Organization and maintenance of large ordered indices", Acta
//! Informatica 1972).
//!
//! A classic one, with entries in inner nodes, too, and not a B+-tree. A separator of a B+-tree is a
//! copy of a key. Here a key is two words that name a record, and a copy would have to change when
//! the record does, or own a record of its own. An inner entry costs a look-up nothing, since its
//! `b` is loaded for equal keys alone, and spares the leaves 1 of 20 entries.
//!
//! # Invariants
//! - I-HEIGHT: all leaves are at level 1, the root is at the level that the head's height says.
//! - I-FILL: a node has `fill_least` entries or more, the root and nodes on the left and right
//!   edges at least one. A node on an edge that is full gives up no half of its entries to an
//!   insert beyond the edge: keys that come in order leave full nodes.
//! - I-FREE: see [`node`].
//!
//! Walks come to an end on any words: levels fall on the way down, and each leaf must begin behind
//! the end of the one before.

use std::ops::Bound;

use sapwood_engine::Direction;
use smallvec::SmallVec;

use super::entry::{Entry, Probe};
use super::structure::{Flow, Head, Inserted, Looks, Part, Place, Reached, Structure};
use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::transaction::Transaction;
use crate::view::View;
use node::{LEAF, LEAF_SLOTS, Node, NodeEdit, level_of, slots};
use search::{HEIGHT_MAX, Search, fill_least, height, search};

mod build;
mod check;
mod node;
mod search;
#[cfg(test)]
mod tests;
mod walk;
#[cfg(test)]
pub(crate) use node::layout;

/// A tree of nodes with up to 21 or 31 entries, balanced by splits and merges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BTree;

/// A step of the way from the root to a leaf: a node, its entries, and the rank of the child that
/// the way goes on to, or of the entry that it leads to.
#[derive(Debug, Clone, Copy)]
struct Step {
    node: ObjectId,
    rank: usize,
    len: usize,
}

/// A node, and its level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subtree {
    id: ObjectId,
    level: usize,
}

/// From the root to a leaf.
type Path = SmallVec<[Step; 8]>;

impl Structure for BTree {
    type Subtree = Subtree;
    const LOOKS: Looks = Looks { pieces: 16, ways: 1 };

    #[inline]
    fn find(view: &impl View, head: &Head, key: Probe<'_>) -> Result<Option<Entry>> {
        let mut id = ObjectId::new(head.root);
        for level in (LEAF..=height(head)?).rev() {
            let node = Node::read(view, id, level)?;
            match search(view, head.layout, &node, key)? {
                Search::Found(rank) => return Ok(Some(node.entry(rank))),
                Search::Absent(rank) if level > LEAF => id = node.child(rank),
                Search::Absent(_) => {}
            }
        }
        Ok(None)
    }

    fn place(tx: &Transaction<'_>, head: &Head, key: Probe<'_>) -> Result<Option<(Place, Entry)>> {
        let mut path = Path::new();
        let found = seek(tx, head, key, &mut path)?;
        Ok(found.map(|(node, rank)| (node.place(rank), node.entry(rank))))
    }

    fn insert(
        tx: &Transaction<'_>,
        head: &mut Head,
        key: Probe<'_>,
        make: impl FnOnce() -> Result<Entry>,
    ) -> Result<Inserted> {
        let mut path = Path::new();
        if let Some((node, rank)) = seek(tx, head, key, &mut path)? {
            return Ok(Inserted::There(node.place(rank), node.entry(rank)));
        }
        match path.last() {
            Some(step) if step.len < LEAF_SLOTS => {
                let mut leaf = NodeEdit::open(tx, step.node, LEAF)?;
                leaf.insert(step.rank, make()?, ObjectId::NULL);
            }
            Some(_) => insert_splitting(tx, head, &path, make)?,
            None => insert_first(tx, head, make)?,
        }
        head.count_up(tx)?;
        Ok(Inserted::New)
    }

    fn set(tx: &Transaction<'_>, _head: &Head, place: Place, entry: Entry) -> Result<()> {
        NodeEdit::set_b(tx, place, entry.b)
    }

    fn remove(tx: &Transaction<'_>, head: &mut Head, key: Probe<'_>) -> Result<Option<Entry>> {
        let mut path = Path::new();
        let Some((node, rank)) = seek(tx, head, key, &mut path)? else { return Ok(None) };
        let entry = node.entry(rank);
        let found = (node.level > LEAF).then_some((node.id, node.level, rank));
        if found.is_some() {
            // The entry before it takes its place: the last one of some leaf.
            descend_to_last(tx, node.child(rank), node.level - 1, &mut path)?;
        }
        let step = path[path.len() - 1];
        let mut leaf = NodeEdit::open(tx, step.node, LEAF)?;
        if let Some((id, level, rank)) = found {
            let mut inner = NodeEdit::open(tx, id, level)?;
            inner.replace(rank, leaf.entry(step.rank));
        }
        leaf.remove(step.rank);
        if step.len <= fill_least(LEAF) {
            tx.nested(|tx| rebalance(tx, head, &path))?;
        }
        head.count_down(tx)?;
        Ok(Some(entry))
    }

    fn walk(
        view: &impl View,
        head: &Head,
        from: Bound<Probe<'_>>,
        direction: Direction,
        tell: &mut dyn FnMut(Entry) -> Result<Flow>,
    ) -> Result<()> {
        match direction {
            Direction::Ascending => walk::ascending(view, head, from, tell),
            Direction::Descending => walk::descending(view, head, from, tell),
        }
    }

    fn check(
        view: &impl View,
        head: &Head,
        node: &mut dyn FnMut(ObjectId) -> Result<()>,
        entry: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<()> {
        check::check(view, head, node, entry)
    }

    fn reach(view: &impl View, head: &Head, tell: &mut dyn FnMut(Reached)) {
        check::reach(view, head, tell);
    }

    fn whole(head: &Head) -> Result<Option<Subtree>> {
        let level = height(head)?;
        Ok((level > 0).then_some(Subtree { id: ObjectId::new(head.root), level }))
    }

    fn parts(
        view: &impl View,
        subtree: Subtree,
        tell: &mut impl FnMut(Part<Subtree>),
    ) -> Result<()> {
        let node = Node::read(view, subtree.id, subtree.level)?;
        let below = |rank| Part::Subtree(Subtree { id: node.child(rank), level: node.level - 1 });
        for rank in 0..node.len {
            if node.level > LEAF {
                tell(below(rank));
            }
            tell(Part::Entry(node.entry(rank)));
        }
        if node.level > LEAF {
            tell(below(node.len));
        }
        Ok(())
    }

    fn top(subtree: Subtree) -> ObjectId {
        subtree.id
    }

    fn leaf_len(view: &impl View, subtree: Subtree) -> Result<Option<u64>> {
        if subtree.level != LEAF {
            return Ok(None);
        }
        Ok(Some(Node::read(view, subtree.id, LEAF)?.len as u64))
    }

    fn entry_in(view: &impl View, id: ObjectId, words: usize) -> Result<Option<Entry>> {
        let Some(level) = level_of(view, id, words)? else { return Ok(None) };
        Ok(Some(Node::read(view, id, level)?.entry(0)))
    }

    fn part_of(view: &impl View, head: &Head, subtree: Subtree, key: Probe<'_>) -> Result<usize> {
        let node = Node::read(view, subtree.id, subtree.level)?;
        Ok(match search(view, head.layout, &node, key)? {
            Search::Found(rank) if node.level > LEAF => 2 * rank + 1,
            Search::Absent(rank) if node.level > LEAF => 2 * rank,
            Search::Found(rank) | Search::Absent(rank) => rank,
        })
    }

    fn build(
        tx: &Transaction<'_>,
        head: &mut Head,
        entries: &mut dyn Iterator<Item = Result<Entry>>,
    ) -> Result<()> {
        // What fails half-way leaves nodes behind: nothing of the transaction may stay.
        tx.nested(|tx| build::build(tx, head, entries))
    }
}

/// Walks to a key, or to the leaf where it would be; the node that has it, and its rank there.
#[inline]
fn seek<'t>(
    tx: &'t Transaction<'_>,
    head: &Head,
    key: Probe<'_>,
    path: &mut Path,
) -> Result<Option<(Node<'t>, usize)>> {
    let mut id = ObjectId::new(head.root);
    for level in (LEAF..=height(head)?).rev() {
        let node = Node::read(tx, id, level)?;
        let found = search(tx, head.layout, &node, key)?;
        let (Search::Found(rank) | Search::Absent(rank)) = found;
        path.push(Step { node: id, rank, len: node.len });
        if let Search::Found(_) = found {
            return Ok(Some((node, rank)));
        }
        if level > LEAF {
            id = node.child(rank);
        }
    }
    Ok(None)
}

/// Walks on to the last entry of a subtree.
fn descend_to_last(
    tx: &Transaction<'_>,
    mut id: ObjectId,
    level: usize,
    path: &mut Path,
) -> Result<()> {
    for level in (LEAF..=level).rev() {
        let node = Node::read(tx, id, level)?;
        let rank = if level == LEAF { node.len - 1 } else { node.len };
        path.push(Step { node: id, rank, len: node.len });
        if level > LEAF {
            id = node.child(rank);
        }
    }
    Ok(())
}

/// Frees nodes that were made in vain.
fn free_all(tx: &Transaction<'_>, nodes: &[NodeEdit<'_>]) -> Result<()> {
    nodes.iter().try_for_each(|node| tx.free(node.id))
}

#[cold]
fn insert_first(
    tx: &Transaction<'_>,
    head: &mut Head,
    make: impl FnOnce() -> Result<Entry>,
) -> Result<()> {
    let mut root = NodeEdit::make(tx, LEAF)?;
    let entry = match make() {
        Ok(entry) => entry,
        Err(error) => {
            tx.free(root.id)?;
            return Err(error);
        }
    };
    root.insert(0, entry, ObjectId::NULL);
    head.set_root(tx, root.id.word())?;
    head.set_height(tx, LEAF as u64)
}

/// Inserts where a path leads to a full leaf.
#[cold]
fn insert_splitting(
    tx: &Transaction<'_>,
    head: &mut Head,
    path: &Path,
    make: impl FnOnce() -> Result<Entry>,
) -> Result<()> {
    // All new nodes come first: what the heap refuses leaves the tree as it was.
    let mut fresh: SmallVec<[NodeEdit<'_>; 8]> = SmallVec::new();
    let made = make_siblings(tx, path, &mut fresh).and_then(|()| make());
    let entry = match made {
        Ok(entry) => entry,
        Err(error) => {
            free_all(tx, &fresh)?;
            return Err(error);
        }
    };
    tx.nested(|tx| split(tx, head, path, &mut fresh, entry))
}

/// Makes a right sibling for each full node from a path's end on, and a new root above if the old
/// one is full, too.
fn make_siblings<'t>(
    tx: &'t Transaction<'_>,
    path: &Path,
    fresh: &mut SmallVec<[NodeEdit<'t>; 8]>,
) -> Result<()> {
    let steps = path.iter().rev().zip(LEAF..);
    let full = steps.take_while(|(step, level)| step.len == slots(*level)).count();
    if full == path.len() && full == HEIGHT_MAX {
        let root = path.first().map_or(0, |step| step.node.index());
        return Err(Error::corrupt(root, "a B-tree cannot have more levels"));
    }
    let levels = full + usize::from(full == path.len());
    for level in LEAF..LEAF + levels {
        fresh.push(NodeEdit::make(tx, level)?);
    }
    Ok(())
}

/// Splits the full nodes at the end of a path, and inserts an entry into its leaf.
fn split(
    tx: &Transaction<'_>,
    head: &mut Head,
    path: &Path,
    fresh: &mut [NodeEdit<'_>],
    entry: Entry,
) -> Result<()> {
    let middle = |of: &Step| {
        // Keys that come in order leave full nodes behind (I-FILL).
        if path.iter().all(|step| step.rank == step.len) {
            of.len - 1
        } else if path.iter().all(|step| step.rank == 0) {
            0
        } else {
            of.len / 2
        }
    };
    let (mut entry, mut child) = (entry, ObjectId::NULL);
    let mut steps = path.iter().rev().zip(LEAF..);
    for right in fresh.iter_mut() {
        let Some((step, level)) = steps.next() else {
            // The last of the new nodes is the root.
            right.set_child(0, ObjectId::new(head.root));
            right.insert(0, entry, child);
            head.set_root(tx, right.id.word())?;
            return head.set_height(tx, right.level as u64);
        };
        let mut left = NodeEdit::open(tx, step.node, level)?;
        let middle = middle(step);
        let up = left.entry(middle);
        right.set_child(0, left.child(middle + 1));
        for rank in middle + 1..left.len() {
            right.insert(rank - middle - 1, left.entry(rank), left.child(rank + 1));
        }
        left.truncate(middle);
        match step.rank <= middle {
            true => left.insert(step.rank, entry, child),
            false => right.insert(step.rank - middle - 1, entry, child),
        }
        (entry, child) = (up, right.id);
    }
    if let Some((step, level)) = steps.next() {
        NodeEdit::open(tx, step.node, level)?.insert(step.rank, entry, child);
    }
    Ok(())
}

/// Brings the nodes at the end of a path, whose leaf has lost an entry, back to I-FILL.
#[cold]
fn rebalance(tx: &Transaction<'_>, head: &mut Head, path: &Path) -> Result<()> {
    for (index, level) in (1..path.len()).rev().zip(LEAF..) {
        let node = NodeEdit::open(tx, path[index].node, level)?;
        if node.len() >= fill_least(level) {
            return Ok(());
        }
        let step = path[index - 1];
        let mut parent = NodeEdit::open(tx, step.node, level + 1)?;
        // The entry between the node and a neighbour.
        let rank = step.rank.saturating_sub(1);
        let mut left = NodeEdit::open(tx, parent.child(rank), level)?;
        let mut right = NodeEdit::open(tx, parent.child(rank + 1), level)?;
        if left.len() + 1 + right.len() > slots(level) {
            return balance(&mut parent, rank, &mut left, &mut right);
        }
        tx.free(merge(&mut parent, rank, &mut left, &mut right))?;
    }
    let root = NodeEdit::open(tx, path[0].node, path.len())?;
    if root.len() > 0 {
        return Ok(());
    }
    head.set_root(tx, root.child(0).word())?;
    head.set_height(tx, path.len() as u64 - 1)?;
    tx.free(root.id)
}

/// Moves entries between neighbours until both have as many.
fn balance(
    parent: &mut NodeEdit<'_>,
    rank: usize,
    left: &mut NodeEdit<'_>,
    right: &mut NodeEdit<'_>,
) -> Result<()> {
    while left.len() + 1 < right.len() {
        left.insert(left.len(), parent.entry(rank), right.child(0));
        parent.replace(rank, right.entry(0));
        right.set_child(0, right.child(1));
        right.remove(0);
    }
    while right.len() + 1 < left.len() {
        let last = left.len() - 1;
        right.insert(0, parent.entry(rank), right.child(0));
        right.set_child(0, left.child(last + 1));
        parent.replace(rank, left.entry(last));
        left.remove(last);
    }
    Ok(())
}

/// Moves the entries of the smaller neighbour, and the one between them, to the other; the node that
/// has none any more.
fn merge(
    parent: &mut NodeEdit<'_>,
    rank: usize,
    left: &mut NodeEdit<'_>,
    right: &mut NodeEdit<'_>,
) -> ObjectId {
    let between = parent.entry(rank);
    let empty = if left.len() >= right.len() {
        left.insert(left.len(), between, right.child(0));
        for from in 0..right.len() {
            left.insert(left.len(), right.entry(from), right.child(from + 1));
        }
        right.id
    } else {
        right.insert(0, between, right.child(0));
        for from in (0..left.len()).rev() {
            right.insert(0, left.entry(from), left.child(from + 1));
        }
        right.set_child(0, left.child(0));
        // The parent loses the right one's place: the left one's becomes the right one's.
        parent.set_child(rank, right.id);
        left.id
    };
    parent.remove(rank);
    empty
}
