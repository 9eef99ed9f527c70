//! Counts of the entries below nodes of a tree, in memory alone: ranks have made them.
//!
//! *Invariants*
//! - I-SUMS: a commit notes its objects and stores their words under one lock, which a rank holds from its first look
//!   to its last. The sum of a node changes only where the node, or one below it, is changed: so the sums of touched
//!   nodes and of all nodes above these are forgotten before others are used.

use std::collections::HashMap;

use crate::object::ObjectId;

/// Sums of fewer entries are counted each time.
pub(crate) const KEPT_MIN: u64 = 256;
/// Objects after whose change all sums are forgotten: to find what lies above them would be more work.
const TOUCHED_MAX: usize = 1 << 14;

/// The sums of a tree. They are of the tree before `touched` was changed.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    known: HashMap<ObjectId, u64>,
    /// Each with its words.
    touched: Vec<(ObjectId, usize)>,
}

impl Sums {
    /// Notes that objects are changed.
    #[inline]
    pub(crate) fn touch(&mut self, objects: impl Iterator<Item = (ObjectId, usize)>) {
        if self.known.is_empty() {
            return;
        }
        self.touched.extend(objects);
        if self.touched.len() > TOUCHED_MAX.min(self.known.len() + 64) {
            *self = Sums::default();
        }
    }

    /// The nodes that were touched since the last call.
    pub(crate) fn take_touched(&mut self) -> Vec<(ObjectId, usize)> {
        std::mem::take(&mut self.touched)
    }

    pub(crate) fn of(&self, node: ObjectId) -> Option<u64> {
        self.known.get(&node).copied()
    }

    /// Keeps a sum, if it is worth it.
    pub(crate) fn keep(&mut self, node: ObjectId, sum: u64) {
        if sum >= KEPT_MIN {
            self.known.insert(node, sum);
        }
    }

    pub(crate) fn forget(&mut self, node: ObjectId) {
        self.known.remove(&node);
    }
}
