//! Draining: blocks, or spans, that are being emptied take nothing new, and their slices are told apart.
//!
//! Which they are is chosen in [`drain`](crate::drain).

use std::sync::PoisonError;

use super::Arena;
use crate::drain;
use crate::slice::SliceRef;

impl Arena {
    /// Chooses the blocks that are worth emptying, if that gives back at least
    /// `gain_bytes`: from now on nothing new goes into them, and the caller moves
    /// what [`is_drained`](Self::is_drained). Ends whatever was drained before.
    ///
    /// Looks at every span; chooses without a lock that another thread waits for.
    pub fn begin_drain(&self, gain_bytes: u64) -> bool {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.restore(&mut draining);
        let mut spans = Vec::new();
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).survey(&mut spans);
        }
        let ground = self.lock_buddy().ground();
        let blocks = drain::choose(&ground, &spans, gain_bytes);
        if blocks.is_empty() {
            return false;
        }
        {
            let mut buddy = self.lock_buddy();
            buddy.drain(&blocks);
            self.apply_changes(&mut buddy);
        }
        *draining = true;
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).drain(|block| self.blocks.is_drained_block(block));
        }
        true
    }

    /// As [`begin_drain`](Self::begin_drain), of spans: pieces of blocks of one size of slice. What they hold fits into the
    /// holes of other spans, and what lies in the same blocks stays. No block goes back by that, but slices of
    /// any size can have what the spans had.
    pub fn begin_drain_spans(&self, gain_bytes: u64) -> bool {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.restore(&mut draining);
        let (mut spans, mut of_stripe) = (Vec::new(), Vec::new());
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).survey(&mut of_stripe);
            spans.extend(of_stripe.drain(..).map(|span| (stripe, span)));
        }
        let chosen = drain::choose_spans(spans, gain_bytes);
        *draining = !chosen.is_empty();
        for (stripe, span) in &chosen {
            let mut stripe = self.lock_stripe(*stripe);
            if let Some(extent) = stripe.drain_span(span.index, span.class) {
                // SAFETY: I-LIVE: under the stripe's lock, and the span has slices: its block stays.
                unsafe { self.blocks.set_drained(extent, true) };
            }
        }
        *draining
    }

    /// All blocks serve again; true if some were drained.
    pub fn end_drain(&self) -> bool {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.restore(&mut draining)
    }

    /// Under the lock of `draining`.
    fn restore(&self, draining: &mut bool) -> bool {
        if !std::mem::take(draining) {
            return false;
        }
        {
            let mut buddy = self.lock_buddy();
            buddy.restore();
            self.apply_changes(&mut buddy);
        }
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).restore(|extent| {
                // SAFETY: as in `begin_drain_spans`.
                unsafe { self.blocks.set_drained(extent, false) };
            });
        }
        true
    }

    /// Bytes that new spans can have, under the budget, while blocks are drained.
    pub fn room_bytes(&self) -> usize {
        self.lock_buddy().room_bytes()
    }

    /// Whether the slice, which is live, lies in a block or a span that is being emptied.
    #[inline]
    pub fn is_drained(&self, slice: SliceRef) -> bool {
        // SAFETY: I-LIVE: the caller's slice is live.
        self.blocks.is_drained_block(slice.block()) || unsafe { self.blocks.is_drained(slice) }
    }
}
