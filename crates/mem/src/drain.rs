//! The choice of the blocks that are worth emptying.
//!
//! After many removals the live slices lie here and there: no block is empty, so
//! none goes back to the system. Blocks that hold little are *drained*: their
//! slices move into the holes of the blocks that stay, or into fresh ones.
//!
//! The blocks stay in the order of how full they are. For each number of blocks
//! that could stay, the sums say how much memory the others give back, less what
//! their slices need beyond the holes of their classes; the best number wins.

use crate::buddy::{Ground, SharedBlock};
use crate::slice::Class;
use crate::stripe::{SpanUse, least_span_bytes};

/// A block and what its spans hold.
struct Candidate {
    block: SharedBlock,
    live_bytes: usize,
    /// It is being filled, by slices that lie together and should go on to.
    in_row: bool,
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
pub(crate) fn choose(ground: &Ground, spans: &[SpanUse], gain_bytes: u64) -> Vec<u32> {
    let (mut candidates, idle_bytes) = candidates(ground, spans);
    // Those with a row first, then the fullest: those stay.
    candidates.sort_by(|a, b| {
        let (a_full, b_full) = (a.live_bytes * b.block.bytes, b.live_bytes * a.block.bytes);
        b.in_row.cmp(&a.in_row).then(b_full.cmp(&a_full)).then(a.block.id.cmp(&b.block.id))
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
    for span in candidates.iter().flat_map(|candidate| &candidate.spans) {
        change(&mut needed, span, |class, span| class.leaving += span.live_bytes);
    }
    let mut leaving_bytes: usize = candidates.iter().map(|candidate| candidate.block.bytes).sum();
    let mut moved_bytes: usize = candidates.iter().map(|candidate| candidate.live_bytes).sum();
    let (mut staying_bytes, mut extents_bytes) = (idle_bytes, idle_bytes);
    let mut best = (0, candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        let missing = needed.saturating_sub(extents_bytes);
        let gain = leaving_bytes.saturating_sub(ground.mapped_for(missing, staying_bytes));
        // A move costs something, too: four bytes of it have to bring one.
        let worth = gain.saturating_sub(moved_bytes / 4);
        let fits = missing <= ground.unmapped_budget;
        if fits && gain as u64 >= gain_bytes && worth > best.0 {
            best = (worth, at);
        }
        for span in &candidate.spans {
            change(&mut needed, span, |class, span| {
                class.leaving -= span.live_bytes;
                class.holes += span.free_bytes;
            });
        }
        leaving_bytes -= candidate.block.bytes;
        moved_bytes -= candidate.live_bytes;
        staying_bytes += candidate.block.bytes;
        extents_bytes += candidate.block.extents_bytes;
    }
    candidates[best.1..].iter().map(|candidate| candidate.block.id).collect()
}

/// The spans to empty so that what they hold fits into the holes of the others of their size; none if they are less
/// than `gain_bytes`. Each comes with the number of its stripe. A row is not among them, and has no holes.
pub(crate) fn choose_spans(
    mut spans: Vec<(usize, SpanUse)>,
    gain_bytes: u64,
) -> Vec<(usize, SpanUse)> {
    spans.retain(|(_, span)| !span.in_row);
    // By size, the sparsest first.
    spans.sort_by(|(a_stripe, a), (b_stripe, b)| {
        let (a_full, b_full) = (a.live_bytes * b.bytes(), b.live_bytes * a.bytes());
        a.class
            .cmp(&b.class)
            .then(a_full.cmp(&b_full))
            .then((a_stripe, a.index).cmp(&(b_stripe, b.index)))
    });
    let mut chosen = Vec::new();
    for of_size in spans.chunk_by(|(_, a), (_, b)| a.class == b.class) {
        let mut hole_bytes: usize = of_size.iter().map(|(_, span)| span.free_bytes).sum();
        let mut moved_bytes = 0;
        chosen.extend(of_size.iter().take_while(|(_, span)| {
            moved_bytes += span.live_bytes;
            hole_bytes -= span.free_bytes;
            moved_bytes <= hole_bytes
        }));
    }
    let gained_bytes: u64 = chosen.iter().map(|(_, span)| span.bytes() as u64).sum();
    if gained_bytes < gain_bytes { Vec::new() } else { chosen }
}

/// Blocks that hold something, and the bytes of those that do not.
fn candidates(ground: &Ground, spans: &[SpanUse]) -> (Vec<Candidate>, usize) {
    let mut idle_bytes = 0;
    let mut candidates = Vec::new();
    let mut by_block: Vec<usize> = Vec::new();
    for block in &ground.shared {
        if block.extents_bytes == block.bytes {
            idle_bytes += block.bytes;
            continue;
        }
        by_block.resize(block.id as usize + 1, usize::MAX);
        by_block[block.id as usize] = candidates.len();
        candidates.push(Candidate {
            block: *block,
            live_bytes: 0,
            in_row: false,
            spans: Vec::new(),
        });
    }
    for span in spans {
        // A block can have come or gone since the spans were looked at.
        let at = by_block.get(span.block as usize).copied();
        if let Some(candidate) = at.and_then(|at| candidates.get_mut(at)) {
            candidate.live_bytes += span.live_bytes;
            candidate.in_row |= span.in_row;
            candidate.spans.push(*span);
        }
    }
    (candidates, idle_bytes)
}
