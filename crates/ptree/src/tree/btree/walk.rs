//! Walks over a B-tree: twin loops, one for each direction.

use std::ops::Bound;

use smallvec::SmallVec;

use super::check;
use super::node::{LEAF, Node};
use super::search::{Search, height, search};
use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::tree::entry::{Entry, Probe, TreeLayout};
use crate::tree::structure::{Flow, Head};
use crate::view::View;

/// A node on the way, and how far the walk is: the rank of its next entry if that ascends, how many
/// entries are left if it descends.
type Frame<'v> = (Node<'v>, usize);

/// From the root to where the walk is.
type Stack<'v> = SmallVec<[Frame<'v>; 8]>;

/// Where a walk begins in a node: the number of its frame, and what comes before that.
type Begin = (usize, Below);

/// What of the child of the frame's rank a walk tells first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    Nothing,
    All,
    /// What lies within the bound.
    Some,
}

pub(super) fn ascending(
    view: &impl View,
    head: &Head,
    from: Bound<Probe<'_>>,
    tell: &mut dyn FnMut(Entry) -> Result<Flow>,
) -> Result<()> {
    let begin = |node: &Node<'_>, bound: Bound<Probe<'_>>| {
        Ok(match bound {
            Bound::Unbounded => (0, Below::All),
            Bound::Included(key) | Bound::Excluded(key) => {
                match (search(view, head.layout, node, key)?, bound) {
                    (Search::Absent(rank), _) => (rank, Below::Some),
                    (Search::Found(rank), Bound::Excluded(_)) => (rank + 1, Below::All),
                    (Search::Found(rank), _) => (rank, Below::Nothing),
                }
            }
        })
    };
    let levels = height(head)?;
    if levels == 0 {
        return Ok(());
    }
    let mut stack = Stack::new();
    descend(view, ObjectId::new(head.root), levels, from, &begin, &mut stack)?;
    let mut last: Option<Entry> = None;
    while let Some((node, rank)) = stack.pop() {
        if node.level > LEAF {
            if rank < node.len {
                if tell(node.entry(rank))?.is_break() {
                    return Ok(());
                }
                stack.push((node, rank + 1));
                let child = node.child(rank + 1);
                node.prefetch_child(view, rank + 2);
                descend(view, child, node.level - 1, Bound::Unbounded, &begin, &mut stack)?;
            }
            continue;
        }
        for rank in rank..node.len {
            let entry = node.entry(rank);
            if let Some(last) = last.take() {
                in_order(view, head.layout, last, entry, node.id)?;
            }
            if tell(entry)?.is_break() {
                return Ok(());
            }
        }
        last = (rank < node.len).then(|| node.entry(node.len - 1)).or(last);
    }
    Ok(())
}

pub(super) fn descending(
    view: &impl View,
    head: &Head,
    from: Bound<Probe<'_>>,
    tell: &mut dyn FnMut(Entry) -> Result<Flow>,
) -> Result<()> {
    let begin = |node: &Node<'_>, bound: Bound<Probe<'_>>| {
        Ok(match bound {
            Bound::Unbounded => (node.len, Below::All),
            Bound::Included(key) | Bound::Excluded(key) => {
                match (search(view, head.layout, node, key)?, bound) {
                    (Search::Absent(rank), _) => (rank, Below::Some),
                    (Search::Found(rank), Bound::Excluded(_)) => (rank, Below::All),
                    (Search::Found(rank), _) => (rank + 1, Below::Nothing),
                }
            }
        })
    };
    let levels = height(head)?;
    if levels == 0 {
        return Ok(());
    }
    let mut stack = Stack::new();
    descend(view, ObjectId::new(head.root), levels, from, &begin, &mut stack)?;
    let mut last: Option<Entry> = None;
    while let Some((node, left)) = stack.pop() {
        if node.level > LEAF {
            if let Some(rank) = left.checked_sub(1) {
                if tell(node.entry(rank))?.is_break() {
                    return Ok(());
                }
                stack.push((node, rank));
                let child = node.child(rank);
                node.prefetch_child(view, rank.wrapping_sub(1));
                descend(view, child, node.level - 1, Bound::Unbounded, &begin, &mut stack)?;
            }
            continue;
        }
        for rank in (0..left).rev() {
            let entry = node.entry(rank);
            if let Some(last) = last.take() {
                in_order(view, head.layout, entry, last, node.id)?;
            }
            if tell(entry)?.is_break() {
                return Ok(());
            }
        }
        last = (left > 0).then(|| node.entry(0)).or(last);
    }
    Ok(())
}

/// Goes down to where a walk begins in a subtree.
fn descend<'v>(
    view: &'v impl View,
    mut id: ObjectId,
    levels: usize,
    mut bound: Bound<Probe<'_>>,
    begin: &impl Fn(&Node<'_>, Bound<Probe<'_>>) -> Result<Begin>,
    stack: &mut Stack<'v>,
) -> Result<()> {
    for level in (LEAF..=levels).rev() {
        let node = Node::read(view, id, level)?;
        let (rank, below) = begin(&node, bound)?;
        stack.push((node, rank));
        match below {
            Below::Nothing => break,
            Below::All => bound = Bound::Unbounded,
            Below::Some => {}
        }
        if level > LEAF {
            id = node.child(rank);
        }
    }
    Ok(())
}

/// A walk that goes back would not end.
#[inline]
fn in_order(
    view: &impl View,
    layout: TreeLayout,
    before: Entry,
    after: Entry,
    id: ObjectId,
) -> Result<()> {
    match before.a < after.a || check::ascends(view, layout, before, after)? {
        true => Ok(()),
        false => Err(Error::corrupt(id.index(), "a leaf is not in order with the one before")),
    }
}
