//! The masstree crate: a trie of B+ trees after the Masstree paper.
//!
//! It boxes values, so a value is two hops from its leaf. It has no insert-if-absent that answers
//! atomically, so inserting ones go through a striped lock; adding to a value that is there does
//! not. Its zero-copy scans are its stream form; its iterator hands out owned keys.

use std::hash::{BuildHasher, RandomState};

use masstree::{MassTree15, RangeBound};
use parking_lot::{Mutex, MutexGuard};

use super::engines::Cell;
use super::job::ScanForm;
use super::map::OrderedMap;
use crate::harness::consume::consume;
use crate::harness::tally::Tally;

pub(crate) struct Masstree {
    tree: MassTree15<Cell>,
    inserting: Vec<Mutex<()>>,
    hasher: RandomState,
}

const STRIPES: usize = 256;

impl Masstree {
    fn lock(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        self.inserting[self.hasher.hash_one(key) as usize % STRIPES].lock()
    }
}

impl OrderedMap for Masstree {
    const NAME: &'static str = "masstree";
    const KEY_BYTES_MAX: usize = masstree::MAX_KEY_LENGTH;

    fn new() -> Self {
        Masstree {
            tree: MassTree15::new(),
            inserting: (0..STRIPES).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        let guard = self.tree.guard();
        self.tree.insert_with_guard(key, Cell::new(value), &guard);
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        let guard = self.tree.guard();
        let _lock = self.lock(key);
        if self.tree.get_ref(key, &guard).is_none() {
            self.tree.insert_with_guard(key, Cell::new(value), &guard);
        }
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        let guard = self.tree.guard();
        if let Some(there) = self.tree.get_ref(key, &guard) {
            there.increment();
            return;
        }
        let _lock = self.lock(key);
        if let Some(there) = self.tree.get_ref(key, &guard) {
            there.increment();
        } else {
            self.tree.insert_with_guard(key, Cell::new(value), &guard);
        }
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        let guard = self.tree.guard();
        self.tree.get_ref(key, &guard).map(|value| value.sum())
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        let guard = self.tree.guard();
        self.tree.get_ref(key, &guard).map(|value| consume(&value.copy()))
    }

    fn remove(&self, key: &[u8]) -> bool {
        let guard = self.tree.guard();
        self.tree
            .remove_with_guard(key, &guard)
            .expect("no other thread contends for long")
            .is_some()
    }

    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let guard = self.tree.guard();
        let (begin, end) = (RangeBound::Included(from), RangeBound::Unbounded);
        let mut visit = BoundedVisit::new(limit, form);
        match form {
            ScanForm::Iterator => {
                for entry in self.tree.range(begin, end, &guard) {
                    if !visit.entry(&entry.key, &entry.value) {
                        break;
                    }
                }
            }
            _ => {
                self.tree.scan_ref(begin, end, |key, value| visit.entry(key, value), &guard);
            }
        }
        visit.tally
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let guard = self.tree.guard();
        let (begin, end) = (RangeBound::Unbounded, RangeBound::Included(from));
        let mut visit = BoundedVisit::new(limit, form);
        match form {
            ScanForm::Iterator => {
                for entry in self.tree.range(begin, end, &guard).rev() {
                    if !visit.entry(&entry.key, &entry.value) {
                        break;
                    }
                }
            }
            _ => {
                self.tree.scan_rev_batch_ref(
                    begin,
                    end,
                    |key, value| visit.entry(key, value),
                    &guard,
                );
            }
        }
        visit.tally
    }
}

struct BoundedVisit {
    tally: Tally,
    left: usize,
    form: ScanForm,
}

impl BoundedVisit {
    fn new(limit: usize, form: ScanForm) -> Self {
        BoundedVisit { tally: Tally::default(), left: limit, form }
    }

    /// True if the scan goes on.
    #[inline]
    fn entry(&mut self, key: &[u8], value: &Cell) -> bool {
        self.tally.add(match self.form {
            ScanForm::Keys => consume(key),
            _ => consume(key).wrapping_add(value.sum()),
        });
        self.left -= 1;
        self.left > 0
    }
}
