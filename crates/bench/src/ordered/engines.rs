//! The ordered maps of this process: ours, and those of other crates.
//!
//! Peers hold a value as a [`Cell`]: one allocation that the map points to, with the first 8 bytes
//! atomic, so that adding to them in place needs no lock and reading the rest pays nothing. This
//! is the most that a peer can be given: Sapwood's update may change any byte and the length.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_skiplist::SkipMap;
use parking_lot::RwLock;
use sapwood_chunkmap::{ChunkMap, Direction, Entry, ValueMut};
use triomphe::ThinArc;

use super::job::{End, ScanForm};
use super::map::{Accounted, LoadedMap, OrderedContender, OrderedMap};
use super::masstree::Masstree;
use crate::harness::consume::consume;
use crate::harness::tally::Tally;

pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const SKIP_LIST: &str = "crossbeam-skiplist";
pub(crate) const BTREE: &str = "RwLock<BTreeMap>";

/// Makes one engine.
type Make = fn() -> Box<dyn OrderedContender>;

/// Every engine of this process by name.
pub(crate) const ENGINES: [(&str, Make); 5] = [
    (SAPWOOD, LoadedMap::<SapwoodOrdered>::boxed),
    (SKIP_LIST, LoadedMap::<SkipList>::boxed),
    (BTREE, LoadedMap::<LockedBTree>::boxed),
    (Masstree::NAME, LoadedMap::<Masstree>::boxed),
    (TreeIndex::NAME, LoadedMap::<TreeIndex>::boxed),
];

/// The ordered engine as the facade uses it.
struct SapwoodOrdered(ChunkMap);

/// Why no call here can fail: keys and values are within bounds, nothing calls back, no budget.
const SOUND: &str = "keys and values are within bounds and the table has no budget";

impl OrderedMap for SapwoodOrdered {
    const NAME: &'static str = SAPWOOD;
    const POPS: bool = true;
    const BATCHES: bool = true;

    fn new() -> Self {
        SapwoodOrdered(ChunkMap::new())
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        self.0.put(key, value).expect(SOUND);
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        self.0.put_if_absent(key, value).expect(SOUND);
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        self.0.put_if_absent_or_update(key, value, increment).expect(SOUND);
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        self.0.get_with(key, consume).expect(SOUND)
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        self.0.get(key).expect(SOUND).map(|value| consume(&value))
    }

    #[inline]
    fn get_many(&self, keys: &[&[u8]]) -> Tally {
        let mut tally = Tally::default();
        let add =
            |_, value: Option<&[u8]>| value.into_iter().for_each(|value| tally.add(consume(value)));
        self.0.get_many(keys, add).expect(SOUND);
        tally
    }

    fn remove(&self, key: &[u8]) -> bool {
        self.0.remove(key).expect(SOUND)
    }

    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let bounds = (Bound::Included(from), Bound::Unbounded);
        match form {
            ScanForm::Iterator => iterate(self.0.range(bounds), limit),
            _ => stream(&self.0, bounds, Direction::Ascending, limit, form),
        }
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let bounds = (Bound::Unbounded, Bound::Included(from));
        match form {
            ScanForm::Iterator => iterate(self.0.range(bounds).rev(), limit),
            _ => stream(&self.0, bounds, Direction::Descending, limit, form),
        }
    }

    #[inline]
    fn first(&self) -> Tally {
        let mut tally = Tally::default();
        if let Some(first) = self.0.first().expect(SOUND) {
            tally.add(consume(first.key()).wrapping_add(consume(first.value())));
        }
        tally
    }

    #[inline]
    fn pop(&self, end: End) -> Option<u64> {
        let popped = match end {
            End::First => self.0.pop_first(),
            End::Last => self.0.pop_last(),
        };
        popped.expect(SOUND).map(|(_, value)| consume(&value))
    }

    fn maps_its_memory(&self) -> bool {
        true
    }

    fn accounted(&self) -> Option<Accounted> {
        let stats = self.0.stats();
        Some(Accounted {
            used_bytes: stats.reserved_bytes - stats.free_bytes,
            overhead_bytes: stats.overhead_bytes,
            free_bytes: stats.free_bytes,
            pages: stats.pages,
        })
    }

    fn moved_bytes(&self) -> Option<u64> {
        Some(self.0.stats().moved_bytes)
    }
}

fn increment(value: &mut ValueMut<'_>) {
    let head = value.first_chunk_mut::<8>().expect("values have at least 8 bytes");
    *head = u64::from_le_bytes(*head).wrapping_add(1).to_le_bytes();
}

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

#[inline]
fn stream(
    map: &ChunkMap,
    bounds: Bounds<'_>,
    direction: Direction,
    limit: usize,
    form: ScanForm,
) -> Tally {
    let mut tally = Tally::default();
    let mut left = limit;
    let mut next = |sum| {
        tally.add(sum);
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    // Whether the scan broke off or ran out does not matter here.
    let _ = match form {
        ScanForm::Keys => map.scan_keys(bounds, direction, |key| next(consume(key))),
        _ => map
            .scan(bounds, direction, |key, value| next(consume(key).wrapping_add(consume(value)))),
    }
    .expect(SOUND);
    tally
}

#[inline]
fn iterate<'a>(
    entries: impl Iterator<Item = sapwood_chunkmap::Result<Entry<'a>>>,
    limit: usize,
) -> Tally {
    let mut tally = Tally::default();
    for entry in entries.take(limit) {
        let entry = entry.expect(SOUND);
        tally.add(consume(entry.key()).wrapping_add(consume(entry.value())));
    }
    tally
}

/// A value of at least 8 bytes: its first word, then the rest.
#[derive(Clone)]
pub(crate) struct Cell(ThinArc<AtomicU64, u8>);

impl Cell {
    #[inline]
    pub(crate) fn new(value: &[u8]) -> Cell {
        let (head, rest) = value.split_first_chunk::<8>().expect("values have at least 8 bytes");
        Cell(ThinArc::from_header_and_slice(AtomicU64::new(u64::from_le_bytes(*head)), rest))
    }

    #[inline]
    pub(crate) fn increment(&self) {
        self.0.header.header.fetch_add(1, Relaxed);
    }

    #[inline]
    pub(crate) fn sum(&self) -> u64 {
        self.0.header.header.load(Relaxed).wrapping_add(consume(&self.0.slice))
    }

    #[inline]
    pub(crate) fn copy(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(8 + self.0.slice.len());
        copy.extend_from_slice(&self.0.header.header.load(Relaxed).to_le_bytes());
        copy.extend_from_slice(&self.0.slice);
        copy
    }

    fn is(&self, other: &Cell) -> bool {
        std::ptr::eq(self.0.as_ptr(), other.0.as_ptr())
    }
}

/// Sums what an iterator of entries yields, in the way that `form` asks for.
#[inline]
fn sum_up<'a>(
    entries: impl Iterator<Item = (&'a [u8], &'a Cell)>,
    limit: usize,
    form: ScanForm,
) -> Tally {
    let mut tally = Tally::default();
    match form {
        ScanForm::Keys => {
            for (key, _) in entries.take(limit) {
                tally.add(consume(key));
            }
        }
        // These peers have iterators only: both forms are one.
        ScanForm::Stream | ScanForm::Iterator => {
            for (key, value) in entries.take(limit) {
                tally.add(consume(key).wrapping_add(value.sum()));
            }
        }
    }
    tally
}

/// crossbeam-skiplist with boxed keys.
struct SkipList(SkipMap<Box<[u8]>, Cell>);

impl OrderedMap for SkipList {
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
        scan_skip_list(
            self.0.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)),
            limit,
            form,
        )
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        scan_skip_list(
            self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(from))).rev(),
            limit,
            form,
        )
    }
}

type SkipEntry<'a> = crossbeam_skiplist::map::Entry<'a, Box<[u8]>, Cell>;

#[inline]
fn scan_skip_list<'a>(
    entries: impl Iterator<Item = SkipEntry<'a>>,
    limit: usize,
    form: ScanForm,
) -> Tally {
    let mut sums = Tally::default();
    for entry in entries.take(limit) {
        sums.add(match form {
            ScanForm::Keys => consume(entry.key()),
            _ => consume(entry.key()).wrapping_add(entry.value().sum()),
        });
    }
    sums
}

type BoxedBytes = Box<[u8]>;

/// The standard library's BTreeMap behind a read-write lock, under which values change as plain
/// bytes.
pub(crate) struct LockedBTree(RwLock<BTreeMap<BoxedBytes, BoxedBytes>>);

impl OrderedMap for LockedBTree {
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
        scan_btree(map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)), limit, form)
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let map = self.0.read();
        scan_btree(
            map.range::<[u8], _>((Bound::Unbounded, Bound::Included(from))).rev(),
            limit,
            form,
        )
    }
}

#[inline]
fn scan_btree<'a>(
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

/// scc's read-optimised B+ tree.
struct TreeIndex(scc::TreeIndex<Box<[u8]>, Cell>);

impl OrderedMap for TreeIndex {
    const NAME: &'static str = "scc::TreeIndex";

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
        let guard = scc::Guard::new();
        let range = self.0.range::<[u8], _>((Bound::Included(from), Bound::Unbounded), &guard);
        sum_up(range.map(|(key, value)| (&**key, value)), limit, form)
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let guard = scc::Guard::new();
        let range = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(from)), &guard);
        sum_up(range.rev().map(|(key, value)| (&**key, value)), limit, form)
    }
}
