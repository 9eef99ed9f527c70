//! Sums of entries, kept by inner nodes. The protocol stands in `ticket`.

use sapwood_mem::reclaim::Guard;
use sapwood_mem::sync::Ordering;

use super::{HEAD_LINES, Node, Tree};
use crate::node::chunk::Chunk;
use crate::node::cursor::{Inside, KeyBounds};
use crate::node::inner::{Inner, Side};
use crate::node::ticket::Ticket;

/// Chunks to ask for ahead of the one that is counted.
const AHEAD: usize = 6;

impl Tree {
    /// A ticket for a count.
    pub(crate) fn new_ticket(&self) -> Ticket {
        // Relaxed: each number once.
        Ticket::new(self.counts.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts the entries below a node that lie between bounds.
    pub(crate) fn count_between<'g>(
        &'g self,
        guard: &'g Guard,
        node: Node<'g>,
        bounds: KeyBounds<'_>,
        ticket: Ticket,
    ) -> u64 {
        let inner = match node {
            Node::Chunk(chunk) => return Inside::of(&chunk, bounds).count(&chunk),
            Node::Inner(inner) => inner,
        };
        let (low, high) = (bounds.low_key(), bounds.high_key());
        if low.is_none() && high.is_none() {
            return self.count_all(guard, inner, ticket).0;
        }
        let of = |key: &[u8]| inner.index_of(key, Side::Covering);
        let (first, last) = (low.map(of), high.map(of));
        let at = |at: usize| self.node(guard, inner.child(at));
        match (first, last) {
            (Some(first), Some(last)) if first >= last => {
                return self.count_between(guard, at(first), bounds, ticket);
            }
            _ => {}
        }
        let whole = first.map_or(0, |first| first + 1)..last.unwrap_or(inner.len());
        let mut sum = self.count_children(guard, inner, whole, |node| match node {
            Node::Chunk(chunk) => chunk.live_len(),
            Node::Inner(inner) => self.count_all(guard, inner, ticket).0,
        });
        if let Some(first) = first {
            sum += self.count_between(guard, at(first), bounds.without_high(), ticket);
        }
        if let Some(last) = last {
            sum += self.count_between(guard, at(last), bounds.without_low(), ticket);
        }
        sum
    }

    /// Counts the entries below an inner node; true if its sum may be kept above.
    fn count_all<'g>(&'g self, guard: &'g Guard, inner: Inner<'g>, ticket: Ticket) -> (u64, bool) {
        if let Some(sum) = inner.sum() {
            return (sum, true);
        }
        inner.begin_count(ticket);
        let mut is_kept = true;
        let sum = self.count_children(guard, inner, 0..inner.len(), |node| match node {
            Node::Chunk(chunk) => {
                let counted = chunk.count_for(ticket);
                is_kept &= counted.is_kept;
                counted.entries
            }
            Node::Inner(inner) => {
                let (sum, is_known) = self.count_all(guard, inner, ticket);
                is_kept &= is_known;
                sum
            }
        });
        if is_kept {
            inner.end_count(ticket, sum);
        }
        (sum, is_kept)
    }

    fn count_children<'g>(
        &'g self,
        guard: &'g Guard,
        inner: Inner<'g>,
        range: std::ops::Range<usize>,
        mut count: impl FnMut(Node<'g>) -> u64,
    ) -> u64 {
        let limit = range.end;
        range
            .map(|at| {
                if at + AHEAD < limit {
                    self.arena.prefetch(inner.child(at + AHEAD), HEAD_LINES);
                }
                count(self.node(guard, inner.child(at)))
            })
            .sum()
    }

    /// The chunk with the entry of a rank, and the entry's rank among those of the chunk; `None` if there are not so
    /// many entries. A chunk may have fewer, where entries went meanwhile.
    pub(crate) fn chunk_of_rank<'g>(
        &'g self,
        guard: &'g Guard,
        rank: u64,
        ticket: Ticket,
    ) -> Option<(Chunk<'g>, u64)> {
        let (mut node, mut left) = (self.root_node(guard), rank);
        let mut is_root = true;
        loop {
            let inner = match node {
                Node::Chunk(chunk) => {
                    return (!is_root || left < chunk.live_len()).then_some((chunk, left));
                }
                Node::Inner(inner) => inner,
            };
            let found = (0..inner.len()).find_map(|at| {
                let child = self.node(guard, inner.child(at));
                let entries = match child {
                    Node::Chunk(chunk) => chunk.live_len(),
                    Node::Inner(inner) => self.count_all(guard, inner, ticket).0,
                };
                if left < entries {
                    return Some(child);
                }
                left -= entries;
                None
            });
            node = match found {
                Some(child) => child,
                None if is_root => return None,
                None => self.node(guard, inner.child(inner.len() - 1)),
            };
            is_root = false;
        }
    }

    /// Forgets the sums above a chunk with a ticket, after a write to it.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget_sums_of(
        &self,
        guard: &Guard,
        chunk: &Chunk<'_>,
        ticket: Ticket,
        key: &[u8],
    ) {
        self.forget_sums(guard, key);
        chunk.take_back(ticket);
    }

    /// Forgets the sums on the way to a key.
    pub(crate) fn forget_sums(&self, guard: &Guard, key: &[u8]) {
        let mut before = Vec::new();
        loop {
            let mut path = Vec::with_capacity(before.len());
            let mut slice = self.root();
            while let Node::Inner(inner) = self.node(guard, slice) {
                path.push(inner);
                slice = inner.child(inner.index_of(key, Side::Covering));
            }
            if path.iter().map(Inner::slice).eq(before.iter().map(Inner::slice)) {
                return;
            }
            // INVARIANT: I-SUM: from the bottom up, so that a count above finds no sum below that is to be forgotten.
            path.iter().rev().for_each(Inner::forget_sum);
            before = path;
        }
    }
}
