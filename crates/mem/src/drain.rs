//! Which blocks are worth emptying?
//!
//! After many removals the live slices lie here and there: no block is empty, so
//! none goes back to the system. Blocks that hold little are *drained*: their
//! slices move into the holes of the blocks that stay, or into fresh ones.
//!
//! The blocks stay in the order of how full they are. For each number of blocks
//! that could stay, the sums say how much memory the others give back, less what
//! their slices need beyond the holes of their classes; the best number wins.

use crate::buddy::Buddy;
use crate::slice::Class;
use crate::stripe::{SpanUse, least_span_bytes};

/// A block and what its spans hold.
struct Candidate {
    id: u32,
    bytes: usize,
    /// In free extents.
    extents_bytes: usize,
    live_bytes: usize,
    spans: Vec<SpanUse>,
}

/// Bytes of a class: live where blocks go, free where they stay.
#[derive(Default, Clone, Copy)]
struct ClassSums {
    leaving: usize,
    holes: usize,
}

impl ClassSums {
    /// Bytes of extents that the class needs beyond its holes. A quarter more: spans
    /// are powers of two, and each stripe's last one is not full.
    fn needed(self, class: Class) -> usize {
        match self.leaving.saturating_sub(self.holes) {
            0 => 0,
            missing => (missing + missing / 4).max(least_span_bytes(class)),
        }
    }
}

/// The blocks to drain: none if they give back less than `gain_bytes`, or if
/// what they hold would not fit under the budget.
pub(crate) fn choose(buddy: &Buddy, spans: &[SpanUse], gain_bytes: u64) -> Vec<u32> {
    let (mut candidates, idle_bytes) = candidates(buddy, spans);
    // The fullest first: those stay.
    candidates.sort_by(|a, b| {
        let (a_full, b_full) = (a.live_bytes * b.bytes, b.live_bytes * a.bytes);
        b_full.cmp(&a_full).then(a.id.cmp(&b.id))
    });
    let class_count = spans.iter().map(|span| span.class.index() + 1).max().unwrap_or(0);
    let mut sums = vec![ClassSums::default(); class_count];
    let mut needed = 0;
    let mut change = |needed: &mut usize, span: &SpanUse, change: fn(&mut ClassSums, &SpanUse)| {
        let class = &mut sums[span.class.index()];
        *needed -= class.needed(span.class);
        change(class, span);
        *needed += class.needed(span.class);
    };
    for span in candidates.iter().flat_map(|block| &block.spans) {
        change(&mut needed, span, |class, span| class.leaving += span.live_bytes);
    }
    let mut leaving_bytes: usize = candidates.iter().map(|block| block.bytes).sum();
    let mut moved_bytes: usize = candidates.iter().map(|block| block.live_bytes).sum();
    let (mut staying_bytes, mut extents_bytes) = (idle_bytes, idle_bytes);
    let mut best = (0, candidates.len());
    for at in 0..candidates.len() {
        let missing = needed.saturating_sub(extents_bytes);
        let gain = leaving_bytes.saturating_sub(buddy.mapped_for(missing, staying_bytes));
        // A move costs something, too: four bytes of it have to bring one.
        let worth = gain.saturating_sub(moved_bytes / 4);
        let fits = missing <= buddy.unmapped_budget();
        if fits && gain as u64 >= gain_bytes && worth > best.0 {
            best = (worth, at);
        }
        let block = &candidates[at];
        for span in &block.spans {
            change(&mut needed, span, |class, span| {
                class.leaving -= span.live_bytes;
                class.holes += span.free_bytes;
            });
        }
        leaving_bytes -= block.bytes;
        moved_bytes -= block.live_bytes;
        staying_bytes += block.bytes;
        extents_bytes += block.extents_bytes;
    }
    candidates[best.1..].iter().map(|block| block.id).collect()
}

/// Blocks that hold something, and the bytes of those that do not.
fn candidates(buddy: &Buddy, spans: &[SpanUse]) -> (Vec<Candidate>, usize) {
    let mut idle_bytes = 0;
    let mut candidates = Vec::new();
    let mut by_block: Vec<usize> = Vec::new();
    for (id, bytes, extents_bytes) in buddy.shared_blocks() {
        if extents_bytes == bytes {
            idle_bytes += bytes;
            continue;
        }
        by_block.resize(id as usize + 1, usize::MAX);
        by_block[id as usize] = candidates.len();
        candidates.push(Candidate { id, bytes, extents_bytes, live_bytes: 0, spans: Vec::new() });
    }
    for span in spans {
        // A block can have come or gone since the spans were looked at.
        let at = by_block.get(span.block as usize).copied();
        if let Some(block) = at.and_then(|at| candidates.get_mut(at)) {
            block.live_bytes += span.live_bytes;
            block.spans.push(*span);
        }
    }
    (candidates, idle_bytes)
}
