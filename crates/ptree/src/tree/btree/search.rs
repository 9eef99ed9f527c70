//! The search in a node, and the shape that all nodes share.

use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::tree::entry::{Probe, TreeLayout};
use crate::tree::structure::Head;
use crate::view::View;

use super::node::{INNER_SLOTS, LEAF, LEAF_SLOTS, Node};

/// Fewest entries of a node that is on no edge. A third of the slots, and not half: a node that was
/// merged or balanced is some removals away from the next time.
pub(super) const fn fill_least(level: usize) -> usize {
    (if level == LEAF { LEAF_SLOTS } else { INNER_SLOTS }) / 3
}
/// Levels of the tallest tree. One of 2^48 nodes with [`fill_least`] entries each has 15.
pub(super) const HEIGHT_MAX: usize = 16;

/// The rank of a key in a node, or the one that it would have.
pub(super) enum Search {
    Found(usize),
    Absent(usize),
}

/// Levels; none of an empty tree.
#[inline]
pub(super) fn height(head: &Head) -> Result<usize> {
    match (head.root, head.height) {
        (0, 0) => Ok(0),
        (1.., height @ 1..) if height <= HEIGHT_MAX as u64 => Ok(height as usize),
        (_, height) => Err(wrong_height(head.id, height)),
    }
}

#[cold]
fn wrong_height(head: ObjectId, height: u64) -> Error {
    Error::corrupt(head.index(), format!("a B-tree cannot have {height} levels"))
}

#[inline(always)]
pub(super) fn search(
    view: &impl View,
    layout: TreeLayout,
    node: &Node<'_>,
    key: Probe<'_>,
) -> Result<Search> {
    let rank = node.count_below(key.head);
    if rank < node.len && node.a(rank) == key.head {
        return match layout {
            TreeLayout::Fixed => Ok(Search::Found(rank)),
            TreeLayout::Bytes => search_equal(view, layout, node, key, rank),
        };
    }
    // By I-FREE no more than there are entries, unless the node is damaged.
    Ok(Search::Absent(rank.min(node.len)))
}

/// Searches among the entries whose `a` is the key's, from `begin` on.
fn search_equal(
    view: &impl View,
    layout: TreeLayout,
    node: &Node<'_>,
    key: Probe<'_>,
    begin: usize,
) -> Result<Search> {
    let behind = match key.head.checked_add(1) {
        Some(next) => node.count_below(next).min(node.len),
        None => node.len,
    };
    let (mut low, mut high) = (begin, behind);
    while low < high {
        let middle = low + (high - low) / 2;
        match layout.compare(view, key, node.entry(middle))? {
            std::cmp::Ordering::Less => high = middle,
            std::cmp::Ordering::Greater => low = middle + 1,
            std::cmp::Ordering::Equal => return Ok(Search::Found(middle)),
        }
    }
    Ok(Search::Absent(low))
}
