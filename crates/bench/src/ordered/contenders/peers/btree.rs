//! The standard library's BTreeMap behind a read-write lock.
//!
//! Under the write lock values are changed as plain bytes, so no [`Cell`](super::Cell) is needed.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use crate::consume::consume;
use crate::ordered::contenders::BTREE;
use crate::ordered::in_process::Ordered;
use crate::ordered::workload::{End, ScanForm};
use crate::tally::Tally;

type Bytes = Box<[u8]>;

pub(crate) struct LockedBTree(RwLock<BTreeMap<Bytes, Bytes>>);

impl Ordered for LockedBTree {
    const NAME: &'static str = BTREE;
    const POPS: bool = true;

    fn new() -> Self {
        LockedBTree(RwLock::default())
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        let (key, value) = (key.into(), value.into());
        // The old value is freed after the lock is given back.
        let _old = self.0.write().insert(key, value);
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        self.0.write().entry(key.into()).or_insert_with(|| value.into());
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        let mut map = self.0.write();
        if let Some(there) = map.get_mut(key) {
            let head = there.first_chunk_mut::<8>().expect("values have at least 8 bytes");
            *head = u64::from_le_bytes(*head).wrapping_add(1).to_le_bytes();
        } else {
            map.insert(key.into(), value.into());
        }
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        self.0.read().get(key).map(|value| consume(value))
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        let copy = self.0.read().get(key).map(|value| value.to_vec());
        copy.map(|value| consume(&value))
    }

    fn remove(&self, key: &[u8]) -> bool {
        self.0.write().remove(key).is_some()
    }

    #[inline]
    fn first(&self) -> Tally {
        let map = self.0.read();
        let mut tally = Tally::default();
        if let Some((key, value)) = map.first_key_value() {
            tally.add(consume(key).wrapping_add(consume(value)));
        }
        tally
    }

    #[inline]
    fn pop(&self, end: End) -> Option<u64> {
        let mut map = self.0.write();
        let popped = match end {
            End::First => map.pop_first(),
            End::Last => map.pop_last(),
        };
        drop(map);
        popped.map(|(_, value)| consume(&value))
    }

    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let map = self.0.read();
        scan(map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)), limit, form)
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let map = self.0.read();
        scan(map.range::<[u8], _>((Bound::Unbounded, Bound::Included(from))).rev(), limit, form)
    }
}

#[inline]
fn scan<'a>(
    entries: impl Iterator<Item = (&'a Box<[u8]>, &'a Box<[u8]>)>,
    limit: usize,
    form: ScanForm,
) -> Tally {
    let mut sums = Tally::default();
    for (key, value) in entries.take(limit) {
        sums.add(match form {
            ScanForm::Keys => consume(key),
            _ => consume(key).wrapping_add(consume(value)),
        });
    }
    sums
}
