//! B-trees from entries in order, from the leaves up.

use super::node::{LEAF, NodeEdit, slots};
use super::search::HEIGHT_MAX;
use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::transaction::Transaction;
use crate::tree::entry::Entry;
use crate::tree::structure::Head;

/// Entries of a node that is built: all but one, so that the first insert into it does not split.
fn fill(level: usize) -> usize {
    slots(level) - 1
}

/// The nodes of one level, and the entries between them.
struct Level {
    first: ObjectId,
    /// An entry, and the node behind it.
    rest: Vec<(Entry, ObjectId)>,
}

pub(super) fn build(
    tx: &Transaction<'_>,
    head: &mut Head,
    entries: &mut dyn Iterator<Item = Result<Entry>>,
) -> Result<()> {
    let Some((mut level, count)) = leaves(tx, entries)? else { return Ok(()) };
    let mut height = LEAF;
    while !level.rest.is_empty() {
        height += 1;
        level = above(tx, &level, height)?;
    }
    if height > HEIGHT_MAX {
        return Err(Error::corrupt(head.id.index(), "a B-tree cannot have more levels"));
    }
    head.set_root(tx, level.first.word())?;
    head.set_height(tx, height as u64)?;
    head.set_count(tx, count)
}

/// The leaves, and how many entries there are; none without entries.
fn leaves(
    tx: &Transaction<'_>,
    entries: &mut dyn Iterator<Item = Result<Entry>>,
) -> Result<Option<(Level, u64)>> {
    let Some(mut next) = entries.next().transpose()? else { return Ok(None) };
    let mut leaf = NodeEdit::make(tx, LEAF)?;
    let mut level = Level { first: leaf.id, rest: Vec::new() };
    let mut count = 0;
    loop {
        let entry = next;
        let following = entries.next().transpose()?;
        count += 1;
        // The last one of all fits where it is: no leaf comes to be empty.
        if leaf.len() < fill(LEAF) || following.is_none() {
            leaf.insert(leaf.len(), entry, ObjectId::NULL);
        } else {
            leaf = NodeEdit::make(tx, LEAF)?;
            level.rest.push((entry, leaf.id));
        }
        match following {
            Some(following) => next = following,
            None => return Ok(Some((level, count))),
        }
    }
}

/// The level above one of several nodes.
fn above(tx: &Transaction<'_>, below: &Level, height: usize) -> Result<Level> {
    // Each node takes its entries, and one more stands between it and the next.
    let nodes = (below.rest.len() + 1).div_ceil(fill(height) + 1);
    let kept = below.rest.len() - (nodes - 1);
    let mut entries = below.rest.iter();
    let mut level: Option<Level> = None;
    for index in 0..nodes {
        let mut node = NodeEdit::make(tx, height)?;
        match &mut level {
            None => {
                node.set_child(0, below.first);
                level = Some(Level { first: node.id, rest: Vec::with_capacity(nodes - 1) });
            }
            Some(level) => {
                if let Some(&(entry, child)) = entries.next() {
                    node.set_child(0, child);
                    level.rest.push((entry, node.id));
                }
            }
        }
        let len = kept / nodes + usize::from(index < kept % nodes);
        for &(entry, child) in entries.by_ref().take(len) {
            node.insert(node.len(), entry, child);
        }
    }
    Ok(level.unwrap_or(Level { first: below.first, rest: Vec::new() }))
}
