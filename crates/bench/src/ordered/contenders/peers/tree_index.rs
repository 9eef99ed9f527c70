//! scc's read-optimised B+ tree.

use std::ops::Bound;

use scc::Guard;

use super::TREE_INDEX;
use super::{Cell, tally};
use crate::consume::consume;
use crate::ordered::in_process::Ordered;
use crate::ordered::workload::ScanForm;
use crate::tally::Tally;

pub(crate) struct TreeIndex(scc::TreeIndex<Box<[u8]>, Cell>);

impl Ordered for TreeIndex {
    const NAME: &'static str = TREE_INDEX;

    fn new() -> Self {
        TreeIndex(scc::TreeIndex::new())
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        self.0.upsert_sync(key.into(), Cell::new(value));
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        // Refused if present, and that is what was asked for.
        let _ = self.0.insert_sync(key.into(), Cell::new(value));
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        if self.0.peek_with(key, |_, there| there.increment()).is_some() {
            return;
        }
        if self.0.insert_sync(key.into(), Cell::new(value)).is_err() {
            self.0
                .peek_with(key, |_, there| there.increment())
                .expect("nothing is removed meanwhile");
        }
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        self.0.peek_with(key, |_, value| value.sum())
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        self.0.peek_with(key, |_, value| value.copy()).map(|value| consume(&value))
    }

    fn remove(&self, key: &[u8]) -> bool {
        self.0.remove_sync(key)
    }

    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let guard = Guard::new();
        let range = self.0.range::<[u8], _>((Bound::Included(from), Bound::Unbounded), &guard);
        tally(range.map(|(key, value)| (&**key, value)), limit, form)
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let guard = Guard::new();
        let range = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(from)), &guard);
        tally(range.rev().map(|(key, value)| (&**key, value)), limit, form)
    }
}
