//! Statistics: the contents of a map, and where its bytes are.

use std::ops::ControlFlow;

use sapwood_mem::reclaim::Guard;
use sapwood_mem::sync::Ordering;

use crate::Direction;
use crate::error::Result;
use crate::map::ChunkMap;
use crate::tree::Node;

/// Figures of a map. `reserved = key + value + free + retired + overhead`, and
/// `index` is part of the overhead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OrderedStats {
    /// Entries.
    pub entries: u64,
    /// Bytes of keys.
    pub key_bytes: u64,
    /// Bytes of values.
    pub value_bytes: u64,
    /// Bytes of chunks and inner nodes.
    pub index_bytes: u64,
    /// Bytes mapped from the system.
    pub reserved_bytes: u64,
    /// Mapped bytes that a new record can have.
    pub free_bytes: u64,
    /// Bytes removed or superseded, which wait for readers to leave.
    pub retired_bytes: u64,
    /// Everything else: index, record headers, rounding, ends of spans.
    pub overhead_bytes: u64,
    /// Tables of the allocator, on the heap beside what is mapped.
    pub table_bytes: u64,
    /// Most bytes that may be mapped.
    pub budget_bytes: Option<u64>,
    /// Chunks.
    pub chunks: u64,
    /// Inner nodes above them.
    pub inner_nodes: u64,
    /// Levels, chunks included.
    pub height: u32,
    /// Rebalances so far.
    pub rebalances: u64,
    /// Bytes moved so far, to give memory back and to lay neighbours together.
    pub moved_bytes: u64,
    /// The pages that most of the memory lies on: `4 KiB`, `2 MiB transparent` or `2 MiB explicit`;
    /// `none` of entries that are read from a file.
    pub pages: &'static str,
}

impl OrderedStats {
    /// Overhead for each byte of keys and values; 0 for an empty map.
    pub fn overhead_ratio(&self) -> f64 {
        let data = self.key_bytes + self.value_bytes;
        if data == 0 { 0.0 } else { self.overhead_bytes as f64 / data as f64 }
    }
}

#[derive(Default)]
struct TreeShape {
    chunks: u64,
    inner_nodes: u64,
    bytes: u64,
    height: u32,
}

impl ChunkMap {
    /// Entries, from counters: exact while no writer runs, close while some do.
    pub fn len(&self) -> usize {
        self.counters.totals().entries as usize
    }

    /// Entries, counted by a walk: every key present throughout is counted, none twice.
    pub fn len_exact(&self) -> usize {
        let mut count = 0;
        let walked = self.scan_keys(.., Direction::Ascending, |_| {
            count += 1;
            ControlFlow::<()>::Continue(())
        });
        debug_assert!(walked.is_ok(), "a scan of keys waits for nothing");
        count
    }

    /// True if [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes mapped from the system, without a look at the tree: [`OrderedStats::reserved_bytes`].
    pub fn reserved_bytes(&self) -> u64 {
        self.tree.arena.stats().reserved_bytes
    }

    /// Removes every entry that is there when it begins; what is inserted
    /// meanwhile may stay. Not atomic as a whole.
    ///
    /// # Errors
    /// As of [`remove`](Self::remove); some entries may be gone by then.
    pub fn clear(&self) -> Result<()> {
        let mut refused = None;
        let _ = self.scan_keys(.., Direction::Ascending, |key| match self.remove(key) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        })?;
        // Until now the scan's own guard kept what was removed.
        self.compact_now();
        match refused {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Figures; exact while no writer runs. Visits every chunk, not every entry.
    pub fn stats(&self) -> OrderedStats {
        let guard = self.tree.reclaimer.pin();
        let mut shape = TreeShape::default();
        self.measure(&guard, self.tree.root_node(&guard), 1, &mut shape);
        let arena = self.tree.arena.stats();
        let totals = self.counters.totals();
        let retired_bytes = self.tree.reclaimer.retired_bytes();
        let elsewhere = totals.key_bytes + totals.value_bytes + arena.free_bytes + retired_bytes;
        OrderedStats {
            entries: totals.entries,
            key_bytes: totals.key_bytes,
            value_bytes: totals.value_bytes,
            index_bytes: shape.bytes,
            reserved_bytes: arena.reserved_bytes,
            free_bytes: arena.free_bytes,
            retired_bytes,
            overhead_bytes: arena.reserved_bytes.saturating_sub(elsewhere),
            table_bytes: arena.table_bytes,
            budget_bytes: self.options.memory_budget,
            chunks: shape.chunks,
            inner_nodes: shape.inner_nodes,
            height: shape.height,
            rebalances: self.rebalances.load(Ordering::Relaxed),
            moved_bytes: self.compaction.moved_bytes(),
            pages: arena.pages.describe(),
        }
    }

    fn measure(&self, guard: &Guard, node: Node<'_>, level: u32, shape: &mut TreeShape) {
        shape.height = shape.height.max(level);
        match node {
            Node::Chunk(chunk) => {
                shape.chunks += 1;
                shape.bytes += chunk.node_bytes() as u64;
            }
            Node::Inner(inner) => {
                shape.inner_nodes += 1;
                shape.bytes += self.tree.arena.capacity(inner.slice()) as u64;
                for at in 0..inner.len() {
                    self.measure(guard, self.tree.node(guard, inner.child(at)), level + 1, shape);
                }
            }
        }
    }
}
