//! The growth of the index beside operations, within its share of the budget.

use std::sync::atomic::Ordering;

use sapwood_mem::epoch::Pin;

use crate::ops::store::Store;
use crate::options::frame_bytes;
use crate::record::Form;
use crate::record::layout::bucket;

impl Store {
    /// While the index has twice the load that it is made for, helps it grow, then yields so that
    /// the growing thread, or one that it waits for, can run. Call it unpinned.
    #[inline]
    pub(crate) fn let_index_catch_up<F: Form>(&self) {
        if self.index.behind.load(Ordering::Relaxed) != 0 {
            self.catch_up::<F>();
        }
    }

    #[cold]
    fn catch_up<F: Form>(&self) {
        /// A few: a thread may stay pinned for as long as a user's closure runs.
        const YIELDS: usize = 16;
        for _ in 0..YIELDS {
            let epoch = self.index.behind.load(Ordering::Relaxed);
            if epoch == 0 || self.log.epochs.is_pinned() {
                return;
            }
            if self.log.epochs.is_safe(epoch) {
                self.grow::<F>(&self.log.epochs.pin());
            }
            sapwood_mem::sync::yield_now();
        }
    }

    #[cold]
    pub(super) fn grow<F: Form>(&self, pin: &Pin<'_>) {
        if !self.index.is_overloaded() || !self.may_grow() {
            self.index.behind.store(0, Ordering::Relaxed);
            return;
        }
        // An index that cannot grow has longer chains, and tries again at the next insert.
        let _longer_chains = self.index.grow(&self.log.epochs, |newest, hashes| {
            let mut address = newest;
            while address >= self.log.head() {
                let record = self.log.record(pin, address);
                hashes.push(F::hash_of(record));
                address = record.previous();
            }
            address < self.log.begin()
        });
    }

    /// Whether the index is below half of the budget: the rest is for pages.
    fn may_grow(&self) -> bool {
        self.index_may_pass(|budget| budget / 2)
    }

    /// Whether a full bucket may get another behind it: for a quarter more than the index may grow
    /// to. At the load that it grows at, every fourth bucket has one, and keys that share slots
    /// cost reads.
    pub(super) fn may_extend(&self) -> bool {
        self.index_may_pass(|budget| budget / 8 * 5)
    }

    /// Whether the index may get another bucket: up to a share of the budget, and to what a page
    /// leaves of it.
    #[inline]
    fn index_may_pass(&self, share: impl FnOnce(u64) -> u64) -> bool {
        self.options.memory_budget.is_none_or(|budget| {
            let beside_a_page = budget.saturating_sub(frame_bytes(self.log.page_bytes));
            self.index.bytes() + bucket::BYTES as u64 <= share(budget).min(beside_a_page)
        })
    }
}
