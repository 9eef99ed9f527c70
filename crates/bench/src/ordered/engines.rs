//! The ordered maps of this process: ours, and those of other crates.
//!
//! Peers hold a value as a [`Cell`]: one allocation that the map points to, with the first 8 bytes
//! atomic, so that adding to them in place needs no lock and reading the rest pays nothing. This
//! is the most that a peer can be given: Sapwood's update may change any byte and the length.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound::{self, Included, Unbounded};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_skiplist::SkipMap;
use masstree::{MassTree15, RangeBound};
use parking_lot::{Mutex, RwLock};
use sapwood_chunkmap::{ChunkMap, Direction, Entry, ValueMut};
use triomphe::ThinArc;

use super::job::{End, Scan, ScanForm};
use super::map::{Accounted, LoadedMap, OrderedContender, OrderedMap, Value};
use crate::harness::*;

pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const SKIP_LIST: &str = "crossbeam-skiplist";
pub(crate) const BTREE: &str = "RwLock<BTreeMap>";

type Make = fn() -> Box<dyn OrderedContender>;

/// Every engine of this process by name.
pub(crate) const ENGINES: [(&str, Make); 5] = [
    (SAPWOOD, LoadedMap::<SapwoodOrdered>::boxed),
    (SKIP_LIST, LoadedMap::<SkipList>::boxed),
    (BTREE, LoadedMap::<LockedBTree>::boxed),
    (Masstree::NAME, LoadedMap::<Masstree>::boxed),
    (TreeIndex::NAME, LoadedMap::<TreeIndex>::boxed),
];

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

impl Scan {
    fn bounds(self, from: &[u8]) -> Bounds<'_> {
        if self.descending { (Unbounded, Included(from)) } else { (Included(from), Unbounded) }
    }

    /// The sum of an entry, as far as the scan reads it.
    #[inline]
    fn sum<V: Value + ?Sized>(self, key: &[u8], value: &V) -> u64 {
        match self.form {
            ScanForm::Keys => consume(key),
            _ => consume(key).wrapping_add(value.sum()),
        }
    }

    /// Adds up the first entries of an iterator, or the last ones.
    #[inline]
    fn take<I: DoubleEndedIterator>(self, entries: I, sum: impl Fn(Self, I::Item) -> u64) -> Tally {
        match self.descending {
            false => self.take_first(entries, sum),
            true => self.take_first(entries.rev(), sum),
        }
    }

    #[inline]
    fn take_first<I: Iterator>(self, entries: I, sum: impl Fn(Self, I::Item) -> u64) -> Tally {
        let mut tally = Tally::default();
        // A loop as programs have it: its body is compiled in place, that of `for_each` may be a call.
        for entry in entries.take(self.entries) {
            tally.add(sum(self, entry));
        }
        tally
    }
}

fn one(sum: Option<u64>) -> Tally {
    let mut tally = Tally::default();
    sum.into_iter().for_each(|sum| tally.add(sum));
    tally
}

/// The ordered engine as the facade uses it.
struct SapwoodOrdered(ChunkMap);

/// Why no call here can fail: keys and values are within bounds, nothing calls back, no budget.
const SOUND: &str = "keys and values are within bounds and the table has no budget";

impl OrderedMap for SapwoodOrdered {
    type Value = [u8];
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
        let update = |value: &mut ValueMut<'_>| increment(value);
        self.0.put_if_absent_or_update(key, value, update).expect(SOUND);
    }

    #[inline]
    fn read<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get_with(key, read).expect(SOUND)
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

    fn remove(&self, key: &[u8]) {
        self.0.remove(key).expect(SOUND);
    }

    fn scan(&self, from: &[u8], scan: Scan) -> Tally {
        let bounds = scan.bounds(from);
        let (mut tally, mut left) = (Tally::default(), scan.entries);
        let mut next = |key: &[u8], value: &[u8]| {
            tally.add(scan.sum(key, value));
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let direction = if scan.descending { Direction::Descending } else { Direction::Ascending };
        // A scan may break off or run out.
        let _ = match scan.form {
            ScanForm::Iterator => {
                return scan.take(self.0.range(bounds), |scan, entry| {
                    let entry: Entry<'_> = entry.expect(SOUND);
                    scan.sum(entry.key(), entry.value())
                });
            }
            ScanForm::Keys => self.0.scan_keys(bounds, direction, |key| next(key, &[])),
            ScanForm::Stream => self.0.scan(bounds, direction, next),
        }
        .expect(SOUND);
        tally
    }

    #[inline]
    fn first(&self) -> Tally {
        let first = self.0.first().expect(SOUND);
        one(first.map(|first| consume(first.key()).wrapping_add(consume(first.value()))))
    }

    #[inline]
    fn pop(&self, end: End) -> Option<u64> {
        let popped = match end {
            End::First => self.0.pop_first(),
            End::Last => self.0.pop_last(),
        };
        popped.expect(SOUND).map(|(_, value)| consume(&value))
    }

    fn accounted(&self) -> Option<Accounted> {
        let stats = self.0.stats();
        Some(Accounted {
            used_bytes: stats.reserved_bytes - stats.free_bytes,
            overhead_bytes: stats.overhead_bytes,
            free_bytes: stats.free_bytes,
            moved_bytes: stats.moved_bytes,
            pages: stats.pages,
        })
    }
}

/// A value of at least 8 bytes: its first word, then the rest.
#[derive(Clone)]
struct Cell(ThinArc<AtomicU64, u8>);

impl Cell {
    #[inline]
    fn new(value: &[u8]) -> Cell {
        let (head, rest) = value.split_first_chunk::<8>().expect("values have at least 8 bytes");
        Cell(ThinArc::from_header_and_slice(AtomicU64::new(u64::from_le_bytes(*head)), rest))
    }

    #[inline]
    fn increment(&self) {
        self.0.header.header.fetch_add(1, Relaxed);
    }
}

impl Value for Cell {
    #[inline]
    fn sum(&self) -> u64 {
        self.0.header.header.load(Relaxed).wrapping_add(consume(&self.0.slice))
    }

    #[inline]
    fn copy(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(8 + self.0.slice.len());
        copy.extend_from_slice(&self.0.header.header.load(Relaxed).to_le_bytes());
        copy.extend_from_slice(&self.0.slice);
        copy
    }
}

struct SkipList(SkipMap<Box<[u8]>, Cell>);

type SkipEntry<'a> = crossbeam_skiplist::map::Entry<'a, Box<[u8]>, Cell>;

impl OrderedMap for SkipList {
    type Value = Cell;
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
        if self.read(key, Cell::increment).is_some() {
            return;
        }
        let ours = Cell::new(value);
        let entry = self.0.get_or_insert_with(key.into(), || ours.clone());
        if !std::ptr::eq(entry.value().0.as_ptr(), ours.0.as_ptr()) {
            entry.value().increment();
        }
    }

    #[inline]
    fn read<R>(&self, key: &[u8], read: impl FnOnce(&Cell) -> R) -> Option<R> {
        self.0.get(key).map(|entry| read(entry.value()))
    }

    fn remove(&self, key: &[u8]) {
        self.0.remove(key);
    }

    #[inline]
    fn first(&self) -> Tally {
        one(self.0.front().map(|it| consume(it.key()).wrapping_add(it.value().sum())))
    }

    #[inline]
    fn pop(&self, end: End) -> Option<u64> {
        let popped = match end {
            End::First => self.0.pop_front(),
            End::Last => self.0.pop_back(),
        };
        popped.map(|entry| entry.value().sum())
    }

    fn scan(&self, from: &[u8], scan: Scan) -> Tally {
        let sum = |scan: Scan, entry: SkipEntry<'_>| scan.sum(entry.key(), entry.value());
        scan.take(self.0.range::<[u8], _>(scan.bounds(from)), sum)
    }
}

/// The standard library's BTreeMap behind a read-write lock.
struct LockedBTree(RwLock<BTreeMap<Box<[u8]>, Box<[u8]>>>);

impl OrderedMap for LockedBTree {
    type Value = [u8];
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
        match map.get_mut(key) {
            Some(there) => increment(there),
            None => drop(map.insert(key.into(), value.into())),
        }
    }

    #[inline]
    fn read<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.read().get(key).map(|value| read(value))
    }

    fn remove(&self, key: &[u8]) {
        self.0.write().remove(key);
    }

    #[inline]
    fn first(&self) -> Tally {
        let map = self.0.read();
        one(map.first_key_value().map(|(key, value)| consume(key).wrapping_add(consume(value))))
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

    fn scan(&self, from: &[u8], scan: Scan) -> Tally {
        let map = self.0.read();
        let entries = map.range::<[u8], _>(scan.bounds(from));
        scan.take(entries, |scan, (key, value)| scan.sum(key, &value[..]))
    }
}

/// scc's read-optimised B+ tree.
struct TreeIndex(scc::TreeIndex<Box<[u8]>, Cell>);

impl OrderedMap for TreeIndex {
    type Value = Cell;
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
        let update = || self.read(key, Cell::increment);
        if update().is_none() && self.0.insert_sync(key.into(), Cell::new(value)).is_err() {
            update().expect("nothing is removed meanwhile");
        }
    }

    #[inline]
    fn read<R>(&self, key: &[u8], read: impl FnOnce(&Cell) -> R) -> Option<R> {
        self.0.peek_with(key, |_, value| read(value))
    }

    fn remove(&self, key: &[u8]) {
        self.0.remove_sync(key);
    }

    fn scan(&self, from: &[u8], scan: Scan) -> Tally {
        let guard = scc::Guard::new();
        let entries = self.0.range::<[u8], _>(scan.bounds(from), &guard);
        scan.take(entries, |scan, (key, value)| scan.sum(key, value))
    }
}

/// The masstree crate: a trie of B+ trees after the Masstree paper.
///
/// It boxes values, so a value is two hops from its leaf. It has no insert-if-absent that answers
/// atomically, so inserting ones go through a striped lock; adding to a value that is there does
/// not. Its zero-copy scans are its stream form; its iterator hands out owned keys.
struct Masstree {
    tree: MassTree15<Cell>,
    inserting: Vec<Mutex<()>>,
    hasher: RandomState,
}

const STRIPES: usize = 256;

impl Masstree {
    /// Inserts a value under the lock of its key, unless `is_there` finds one.
    #[inline]
    fn insert(&self, key: &[u8], value: &[u8], is_there: impl Fn() -> bool) {
        let _lock = self.inserting[self.hasher.hash_one(key) as usize % STRIPES].lock();
        if !is_there() {
            self.put(key, value);
        }
    }
}

impl OrderedMap for Masstree {
    type Value = Cell;
    const NAME: &'static str = "masstree";
    const KEY_BYTES_MAX: usize = masstree::MAX_KEY_LENGTH;

    fn new() -> Self {
        let inserting = (0..STRIPES).map(|_| Mutex::new(())).collect();
        Masstree { tree: MassTree15::new(), inserting, hasher: RandomState::new() }
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        self.tree.insert_with_guard(key, Cell::new(value), &self.tree.guard());
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        self.insert(key, value, || self.read(key, |_| ()).is_some());
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        let update = || self.read(key, Cell::increment).is_some();
        if !update() {
            self.insert(key, value, update);
        }
    }

    #[inline]
    fn read<R>(&self, key: &[u8], read: impl FnOnce(&Cell) -> R) -> Option<R> {
        self.tree.get_ref(key, &self.tree.guard()).map(|value| read(&value))
    }

    fn remove(&self, key: &[u8]) {
        let removed = self.tree.remove_with_guard(key, &self.tree.guard());
        removed.expect("no other thread contends for long");
    }

    fn scan(&self, from: &[u8], scan: Scan) -> Tally {
        let guard = self.tree.guard();
        let (begin, end) = match scan.descending {
            false => (RangeBound::Included(from), RangeBound::Unbounded),
            true => (RangeBound::Unbounded, RangeBound::Included(from)),
        };
        if scan.form == ScanForm::Iterator {
            let entries = self.tree.range(begin, end, &guard);
            return scan.take(entries, |scan, entry| scan.sum(&entry.key, &*entry.value));
        }
        let (mut tally, mut left) = (Tally::default(), scan.entries);
        let next = |key: &[u8], value: &Cell| {
            tally.add(scan.sum(key, value));
            left -= 1;
            left > 0
        };
        match scan.descending {
            false => self.tree.scan_ref(begin, end, next, &guard),
            true => self.tree.scan_rev_batch_ref(begin, end, next, &guard),
        };
        tally
    }
}
