//! The replacing of nodes, from a chunk up to the root.

use sapwood_mem::reclaim::{Guard, Kind};
use sapwood_mem::sync::{Backoff, Ordering};
use sapwood_mem::{OutOfMemory, SliceRef};

use super::{Node, Tree};
use crate::layout::KIND_CHUNK;
use crate::node::build::write_inner;
use crate::node::inner::{Child, Inner, Latch, Side};

/// Why nodes could not be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotReplaced {
    /// The two old nodes have different parents.
    NotSiblings,
    OutOfMemory(OutOfMemory),
}

impl From<OutOfMemory> for NotReplaced {
    fn from(refused: OutOfMemory) -> Self {
        NotReplaced::OutOfMemory(refused)
    }
}

impl Tree {
    /// Puts `new` in the place of `old`, one or two neighbours; retires the old ones.
    ///
    /// `key` is any key that the first old node covers. No other thread replaces the old nodes, for
    /// the caller has claimed the chunks, or holds the latches of the inner nodes.
    pub(crate) fn replace(
        &self,
        guard: &Guard,
        key: &[u8],
        old: &[SliceRef],
        new: &[Child<'_>],
    ) -> Result<(), NotReplaced> {
        debug_assert!(matches!(old.len(), 1 | 2) && !new.is_empty(), "one or two nodes, by some");
        let backoff = Backoff::new();
        loop {
            let Some((slice, parent, at)) = self.parent_of(guard, key, old[0]) else {
                if self.replace_root(old, new)? {
                    break;
                }
                backoff.wait();
                continue;
            };
            let latch = parent.latch();
            if latch.is_none() || parent.child(at) != old[0] {
                drop(latch);
                backoff.wait();
                continue;
            }
            if let [_, second] = old {
                let next = (at + 1 < parent.len()).then(|| parent.child(at + 1));
                if next != Some(*second) {
                    return Err(NotReplaced::NotSiblings);
                }
            }
            if let ([_], [only]) = (old, new) {
                parent.set_child(at, only.node);
                break;
            }
            self.replace_parent(guard, key, slice, parent, at..at + old.len(), new)?;
            drop(latch);
            break;
        }
        for slice in old {
            // INVARIANT: I-PINNED: retired, not freed, since readers may be there.
            // SAFETY: I-CURRENT: unreachable since just now; this thread alone replaced it.
            unsafe { self.reclaimer.retire(*slice, Kind::Plain) };
        }
        Ok(())
    }

    /// The inner node right above `child` on the way to `key`, and its index there;
    /// `None` if `child` is the root, or was replaced.
    fn parent_of<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
        child: SliceRef,
    ) -> Option<(SliceRef, Inner<'g>, usize)> {
        let mut slice = self.root();
        while let Node::Inner(inner) = self.node(guard, slice) {
            let at = inner.index_of(key, Side::Covering);
            let next = inner.child(at);
            if next == child {
                return Some((slice, inner, at));
            }
            slice = next;
        }
        None
    }

    /// Builds `parent` anew with other children and replaces it. Under its latch.
    fn replace_parent(
        &self,
        guard: &Guard,
        key: &[u8],
        slice: SliceRef,
        parent: Inner<'_>,
        range: std::ops::Range<usize>,
        new: &[Child<'_>],
    ) -> Result<(), NotReplaced> {
        // The first separator of a node is what its own parent says; it is not kept here.
        let mut children = parent.to_children(&[]);
        let first = children[range.start].separator;
        children.splice(range.clone(), new.iter().copied());
        children[range.start].separator = first;
        if children.len() == 1 && self.root() == slice {
            // Only the holder of the root node's latch replaces it.
            let replaced = self.replace_root(&[slice], &children)?;
            assert!(replaced, "the latch keeps the root as it is");
            // INVARIANT: I-PINNED: as in `replace`.
            // SAFETY: I-CURRENT: unreachable since just now; the latch kept other threads out.
            unsafe { self.reclaimer.retire(slice, Kind::Plain) };
        } else {
            self.replace_by_inner(guard, key, &[slice], parent.height(), &children)?;
        }
        parent.set_obsolete();
        Ok(())
    }

    /// Replaces inner nodes by one or two new ones over `children`.
    fn replace_by_inner(
        &self,
        guard: &Guard,
        key: &[u8],
        old: &[SliceRef],
        height: u8,
        children: &[Child<'_>],
    ) -> Result<(), NotReplaced> {
        let halves = if children.len() > self.fanout {
            vec![&children[..children.len() / 2], &children[children.len() / 2..]]
        } else {
            vec![children]
        };
        let mut built: Vec<Child<'_>> = Vec::with_capacity(2);
        let result = halves
            .iter()
            .try_for_each(|half| {
                let node = write_inner(&self.arena, height, half)?;
                built.push(Child { separator: half[0].separator, node });
                Ok(())
            })
            .and_then(|()| self.replace(guard, key, old, &built));
        if result.is_err() {
            for child in built {
                // SAFETY: never published.
                unsafe { self.arena.free(child.node) };
            }
        }
        result
    }

    /// Puts `new` in the place of the root; false if `old` is not the root.
    fn replace_root(&self, old: &[SliceRef], new: &[Child<'_>]) -> Result<bool, NotReplaced> {
        let _latch = Latch::take(&self.root.latch);
        if self.root() != old[0] {
            return Ok(false);
        }
        if old.len() > 1 {
            return Err(NotReplaced::NotSiblings);
        }
        let root = match new {
            [only] => only.node,
            several => write_inner(&self.arena, self.height_above(several), several)?,
        };
        // Release: pairs with the Acquire in `root`.
        self.root.node.store(root.word(), Ordering::Release);
        Ok(true)
    }

    fn height_above(&self, children: &[Child<'_>]) -> u8 {
        let slice = children[0].node;
        let base = self.arena.ptr(slice);
        // SAFETY: new nodes are the caller's, not published yet; the first byte is
        // the kind, and what is no chunk is an inner node.
        unsafe {
            if base.read() == KIND_CHUNK {
                return 1;
            }
            Inner::new(slice, base).height() + 1
        }
    }

    /// Joins inner nodes on the way to `key` with a neighbour where they are small,
    /// so that what is left of the nodes above removed keys goes, too. Best effort:
    /// without memory, or when others are at work here, they stay.
    ///
    /// Called without any latch.
    pub(crate) fn merge_inner(&self, guard: &Guard, key: &[u8]) {
        // Each success leaves one small node less on the way.
        while self.merge_small(guard, key).is_some() {}
    }

    /// Writes inner nodes on the way to `key` anew, as they are, where `wanted` says
    /// so. Best effort: without memory, or when others are at work here, they stay.
    ///
    /// Called without any latch.
    pub(crate) fn renew_inner(&self, guard: &Guard, key: &[u8], wanted: impl Fn(SliceRef) -> bool) {
        let (mut slice, mut low): (_, &[u8]) = (self.root(), &[]);
        while let Node::Inner(inner) = self.node(guard, slice) {
            let at = inner.index_of(key, Side::Covering);
            if wanted(slice) && self.renew(guard, slice, inner, low).is_none() {
                return;
            }
            // An old node leads to the same children as its copy, or to nodes that have been
            // replaced since: those are the business of the thread that replaced them.
            if at > 0 {
                low = inner.separator(at - 1);
            }
            slice = inner.child(at);
        }
    }

    /// Replaces an inner node by a copy; `low` is the least key it covers.
    fn renew(&self, guard: &Guard, slice: SliceRef, inner: Inner<'_>, low: &[u8]) -> Option<()> {
        let _latch = inner.latch()?;
        let children = inner.to_children(low);
        self.replace_by_inner(guard, low, &[slice], inner.height(), &children).ok()?;
        inner.set_obsolete();
        Some(())
    }

    /// Joins the highest small inner node on the way to `key`; `None` if there is
    /// none, or it could not be.
    fn merge_small(&self, guard: &Guard, key: &[u8]) -> Option<()> {
        let Node::Inner(mut above) = self.root_node(guard) else { return None };
        let mut low: &[u8] = &[];
        loop {
            let at = above.index_of(key, Side::Covering);
            let Node::Inner(inner) = self.node(guard, above.child(at)) else { return None };
            if inner.len() <= self.fanout / 4 && above.len() > 1 {
                let left_at = if at + 1 < above.len() { at } else { at - 1 };
                let left_low = if left_at == 0 { low } else { above.separator(left_at - 1) };
                return self.merge_pair(guard, above, left_at, left_low);
            }
            if at > 0 {
                low = above.separator(at - 1);
            }
            above = inner;
        }
    }

    /// Joins children `left_at` and `left_at + 1`, or evens them out if together they
    /// are too many for one; `key` is the least the left one covers.
    fn merge_pair(
        &self,
        guard: &Guard,
        above: Inner<'_>,
        left_at: usize,
        key: &[u8],
    ) -> Option<()> {
        let slices = [above.child(left_at), above.child(left_at + 1)];
        let nodes = slices.map(|slice| self.node(guard, slice));
        let [Node::Inner(left), Node::Inner(right)] = nodes else { return None };
        // I-LATCHES: left before right, both before the parent (in `replace`).
        let _left_latch = left.latch()?;
        let _right_latch = right.latch()?;
        let mut children = left.to_children(key);
        children.extend(right.to_children(above.separator(left_at)));
        self.replace_by_inner(guard, key, &slices, left.height(), &children).ok()?;
        left.set_obsolete();
        right.set_obsolete();
        Some(())
    }
}
