//! The check of everything that holds of a B-tree, and the walk over one of which not all does.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::node::{LEAF, Node};
use super::search::{fill_least, height};
use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::tree::entry::{Entry, Probe, TreeLayout};
use crate::tree::structure::{Head, Reached};
use crate::view::View;

/// What a check carries along.
struct Check<'a, V> {
    view: &'a V,
    layout: TreeLayout,
    node: &'a mut dyn FnMut(ObjectId) -> Result<()>,
    entry: &'a mut dyn FnMut(Entry) -> Result<()>,
    last: Option<Entry>,
    count: u64,
}

/// Whether a node lies on an edge of the tree, where it may have few entries.
#[derive(Debug, Clone, Copy)]
struct Edges {
    left: bool,
    right: bool,
}

pub(super) fn check(
    view: &impl View,
    head: &Head,
    node: &mut dyn FnMut(ObjectId) -> Result<()>,
    entry: &mut dyn FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let mut check = Check { view, layout: head.layout, node, entry, last: None, count: 0 };
    let levels = height(head)?;
    if levels > 0 {
        check.subtree(ObjectId::new(head.root), levels, Edges { left: true, right: true })?;
    }
    if check.count != head.count {
        let what = format!("a tree of {} entries counts {}", check.count, head.count);
        return Err(Error::corrupt(head.id.index(), what));
    }
    Ok(())
}

pub(super) fn reach(view: &impl View, head: &Head, tell: &mut dyn FnMut(Reached)) {
    let mut seen = HashSet::new();
    let mut open = match height(head) {
        Ok(0) => Vec::new(),
        Ok(levels) => vec![(ObjectId::new(head.root), levels)],
        Err(error) => return tell(Reached::Nothing(error)),
    };
    while let Some((id, level)) = open.pop() {
        let node = Node::read(view, id, level).and_then(|node| {
            node.check()?;
            match seen.insert(id) {
                true => Ok(node),
                false => Err(Error::corrupt(id.index(), "a node of a B-tree has two places")),
            }
        });
        match node {
            Ok(node) => {
                for rank in 0..=node.len {
                    if level > LEAF {
                        open.push((node.child(rank), level - 1));
                    }
                    if rank < node.len {
                        tell(Reached::Entry(node.entry(rank)));
                    }
                }
            }
            Err(error) => tell(Reached::Nothing(error)),
        }
    }
}

impl<V: View> Check<'_, V> {
    fn subtree(&mut self, id: ObjectId, level: usize, edges: Edges) -> Result<()> {
        let node = Node::read(self.view, id, level)?;
        node.check()?;
        if node.len < fill_least(level) && !(edges.left || edges.right) {
            return Err(Error::corrupt(id.index(), "a node of a B-tree has too few entries"));
        }
        for rank in 0..=node.len {
            if level > LEAF {
                let edges =
                    Edges { left: edges.left && rank == 0, right: edges.right && rank == node.len };
                self.subtree(node.child(rank), level - 1, edges)?;
            }
            if rank < node.len {
                self.entry(node.entry(rank), id)?;
            }
        }
        (self.node)(id)
    }

    fn entry(&mut self, entry: Entry, id: ObjectId) -> Result<()> {
        if let Some(last) = self.last.replace(entry)
            && !ascends(self.view, self.layout, last, entry)?
        {
            return Err(Error::corrupt(id.index(), "entries of a B-tree are not in order"));
        }
        self.count += 1;
        (self.entry)(entry)
    }
}

/// Whether the key of an entry is smaller than that of another.
pub(super) fn ascends(
    view: &impl View,
    layout: TreeLayout,
    before: Entry,
    after: Entry,
) -> Result<bool> {
    if before.a != after.a || layout == TreeLayout::Fixed {
        return Ok(before.a < after.a);
    }
    let mut key = Vec::new();
    layout.read_key(view, before, &mut key)?;
    let probe = Probe { key: &key, head: before.a };
    Ok(layout.compare(view, probe, after)? == Ordering::Less)
}
