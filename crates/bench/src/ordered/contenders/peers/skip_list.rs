//! crossbeam-skiplist with boxed keys.

use crossbeam_skiplist::SkipMap;

use super::Cell;
use crate::consume::consume;
use crate::ordered::contenders::SKIP_LIST;
use crate::ordered::in_process::Ordered;
use crate::ordered::workload::{End, ScanForm};
use crate::tally::Tally;

pub(crate) struct SkipList(SkipMap<Box<[u8]>, Cell>);

impl Ordered for SkipList {
    const NAME: &'static str = SKIP_LIST;
    const POPS: bool = true;

    fn new() -> Self {
        SkipList(SkipMap::new())
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), Cell::new(value));
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        self.0.get_or_insert_with(key.into(), || Cell::new(value));
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        if let Some(entry) = self.0.get(key) {
            entry.value().increment();
            return;
        }
        let ours = Cell::new(value);
        let entry = self.0.get_or_insert_with(key.into(), || ours.clone());
        if !entry.value().is(&ours) {
            entry.value().increment();
        }
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        self.0.get(key).map(|entry| entry.value().sum())
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        self.0.get(key).map(|entry| consume(&entry.value().copy()))
    }

    fn remove(&self, key: &[u8]) -> bool {
        self.0.remove(key).is_some()
    }

    #[inline]
    fn first(&self) -> Tally {
        let mut tally = Tally::default();
        if let Some(first) = self.0.front() {
            tally.add(consume(first.key()).wrapping_add(first.value().sum()));
        }
        tally
    }

    #[inline]
    fn pop(&self, end: End) -> Option<u64> {
        let popped = match end {
            End::First => self.0.pop_front(),
            End::Last => self.0.pop_back(),
        };
        popped.map(|entry| entry.value().sum())
    }

    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        scan(
            self.0.range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded)),
            limit,
            form,
        )
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        scan(
            self.0
                .range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(from)))
                .rev(),
            limit,
            form,
        )
    }
}

type SkipEntry<'a> = crossbeam_skiplist::map::Entry<'a, Box<[u8]>, Cell>;

#[inline]
fn scan<'a>(entries: impl Iterator<Item = SkipEntry<'a>>, limit: usize, form: ScanForm) -> Tally {
    let mut sums = Tally::default();
    for entry in entries.take(limit) {
        sums.add(match form {
            ScanForm::Keys => consume(entry.key()),
            _ => consume(entry.key()).wrapping_add(entry.value().sum()),
        });
    }
    sums
}
