//! Searches for keys that ascend.

use sapwood_mem::SliceRef;
use sapwood_mem::reclaim::{Epoch, Guard};

use super::{Found, INNER_LINES, Node, Tree};
use crate::node::inner::{Inner, Side};

/// Searches for keys that ascend: a search goes on in the inner node in which the one before ended, unless the guard has
/// gone on to another epoch since.
///
/// That node may have been replaced since. Its children stay as they were then: chunks that were current at a time
/// after the first search, as a chunk is that was found and then replaced.
pub(crate) struct Ascent<'g> {
    tree: &'g Tree,
    guard: &'g Guard<'g>,
    /// The epoch of the last search from the root.
    epoch: Epoch,
    /// The node above the chunk that was found last; `None` before the first search, and where the root is a chunk.
    above: Option<Inner<'g>>,
    /// Keys from here on are of another node; `None`: no key is.
    node_high: Option<&'g [u8]>,
    /// Keys from here on are of another chunk; `None`: no key is.
    chunk_high: Option<&'g [u8]>,
}

impl<'g> Ascent<'g> {
    /// The chunk that covers `key`, which is not below the keys before. The chunk is not touched, but its head is asked for.
    #[inline]
    pub(crate) fn find(&mut self, key: &[u8]) -> Found {
        let slice = match self.above {
            // INVARIANT: I-PINNED: reached under the guard, which has not gone on to another epoch since.
            Some(inner)
                if self.guard.epoch() == self.epoch
                    && self.node_high.is_none_or(|high| key < high) =>
            {
                self.child(inner, key)
            }
            _ => self.descend(key),
        };
        self.tree.arena.prefetch(slice, 1);
        Found { slice, epoch: self.epoch }
    }

    /// True if the chunk that was found has `key`, which is not below the key that was searched for last.
    #[inline]
    pub(crate) fn is_of_the_last(&self, key: &[u8]) -> bool {
        self.chunk_high.is_none_or(|high| key < high)
    }

    fn descend(&mut self, key: &[u8]) -> SliceRef {
        (self.above, self.node_high, self.chunk_high) = (None, None, None);
        self.epoch = self.guard.epoch();
        let mut slice = self.tree.root();
        while let Node::Inner(inner) = self.tree.node(self.guard, slice) {
            slice = self.child(inner, key);
            if inner.height() == 1 {
                self.above = Some(inner);
                break;
            }
            self.tree.arena.prefetch(slice, INNER_LINES);
            self.node_high = self.chunk_high;
        }
        slice
    }

    /// The child of `inner`, whose keys end at `node_high`, for a key.
    #[inline]
    fn child(&mut self, inner: Inner<'g>, key: &[u8]) -> SliceRef {
        let at = inner.index_of(key, Side::Covering);
        self.chunk_high =
            if at + 1 < inner.len() { Some(inner.separator(at)) } else { self.node_high };
        inner.child(at)
    }
}

impl Tree {
    /// Searches for keys that ascend.
    pub(crate) fn ascent<'g>(&'g self, guard: &'g Guard<'g>) -> Ascent<'g> {
        Ascent {
            tree: self,
            guard,
            epoch: guard.epoch(),
            above: None,
            node_high: None,
            chunk_high: None,
        }
    }
}
