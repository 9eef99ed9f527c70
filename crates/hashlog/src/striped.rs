//! A striped counter: threads add to it without sharing a cache line, and mostly without a locked
//! instruction.

use std::sync::atomic::{AtomicI64, Ordering};

use crossbeam_utils::CachePadded;
use sapwood_mem::epoch::number_of_thread;

/// One in a model, whose stacks are small.
const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };
/// Shared by threads without a stripe of their own.
const SHARED: usize = STRIPES - 1;

/// A sum in stripes. It orders nothing.
#[derive(Default)]
pub(crate) struct StripedCounter {
    stripes: [CachePadded<AtomicI64>; STRIPES],
}

impl StripedCounter {
    #[inline]
    pub(crate) fn add(&self, delta: i64) {
        match number_of_thread(SHARED) {
            Some(own) => {
                let stripe = &self.stripes[own];
                let sum = stripe.load(Ordering::Relaxed).wrapping_add(delta);
                stripe.store(sum, Ordering::Relaxed);
            }
            None => _ = self.stripes[SHARED].fetch_add(delta, Ordering::Relaxed),
        }
    }

    /// Exact while no thread adds.
    pub(crate) fn sum(&self) -> u64 {
        self.net().max(0) as u64
    }

    /// The sum even where it is below zero.
    pub(crate) fn net(&self) -> i64 {
        self.stripes.iter().map(|stripe| stripe.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn set(&self, value: u64) {
        self.stripes.iter().for_each(|stripe| stripe.store(0, Ordering::Relaxed));
        self.stripes[SHARED].store(value as i64, Ordering::Relaxed);
    }
}
