//! crossbeam-skiplist over slices of an arena: keys and values leave the heap, the towers stay.
//!
//! The arena is words on 2 MiB pages, seen as atomics so that no unsafe code is needed: a slice is
//! written once, before the skip list publishes its address. The first word of a value is added to
//! in place. A slice is freed to a list of its size when the skip list drops the reference, which
//! is when no reader can see it any more.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_skiplist::SkipMap;
use parking_lot::Mutex;

use super::OFF_HEAP;
use crate::consume::consume;
use crate::ordered::arena::{BLOCK_WORDS, give_block, take_block};
use crate::ordered::in_process::Ordered;
use crate::ordered::workload::ScanForm;
use crate::tally::Tally;

pub(crate) struct OffHeap {
    map: SkipMap<Slice, Slice>,
    arena: Arc<Arena>,
}

impl Ordered for OffHeap {
    const NAME: &'static str = OFF_HEAP;

    fn new() -> Self {
        OffHeap { map: SkipMap::new(), arena: Arc::default() }
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        self.map.insert(Arena::slice(&self.arena, key), Arena::slice(&self.arena, value));
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        self.map.get_or_insert_with(Arena::slice(&self.arena, key), || {
            Arena::slice(&self.arena, value)
        });
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        if let Some(entry) = self.map.get(probe(&key)) {
            entry.value().increment();
            return;
        }
        let mut ours = None;
        let entry = self.map.get_or_insert_with(Arena::slice(&self.arena, key), || {
            let slice = Arena::slice(&self.arena, value);
            ours = Some(slice.words.as_ptr());
            slice
        });
        if ours != Some(entry.value().words.as_ptr()) {
            entry.value().increment();
        }
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        self.map.get(probe(&key)).map(|entry| entry.value().sum())
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        self.map.get(probe(&key)).map(|entry| consume(&entry.value().copy()))
    }

    fn remove(&self, key: &[u8]) -> bool {
        self.map.remove(probe(&key)).is_some()
    }

    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let bounds = (Bound::Included(probe(&from)), Bound::Unbounded);
        scan(self.map.range::<dyn Probe + '_, _>(bounds), limit, form)
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let bounds = (Bound::Unbounded, Bound::Included(probe(&from)));
        scan(self.map.range::<dyn Probe + '_, _>(bounds).rev(), limit, form)
    }
}

#[inline]
fn scan<'a>(
    entries: impl Iterator<Item = crossbeam_skiplist::map::Entry<'a, Slice, Slice>>,
    limit: usize,
    form: ScanForm,
) -> Tally {
    let mut sums = Tally::default();
    for entry in entries.take(limit) {
        sums.add(match form {
            ScanForm::Keys => entry.key().sum(),
            _ => entry.key().sum().wrapping_add(entry.value().sum()),
        });
    }
    sums
}

/// A length word and the bytes in little-endian words, zero-padded.
pub(crate) struct Slice {
    words: &'static [AtomicU64],
    arena: Arc<Arena>,
}

impl Slice {
    #[inline]
    fn len(&self) -> usize {
        self.words[0].load(Relaxed) as usize
    }

    #[inline]
    fn increment(&self) {
        self.words[1].fetch_add(1, Relaxed);
    }

    /// What `consume` answers for the bytes: the words, but the tail byte by byte.
    #[inline]
    fn sum(&self) -> u64 {
        let len = self.len();
        let (whole, tail) = self.words[1..].split_at(len / 8);
        let mut sum = 0u64;
        for word in whole {
            sum = sum.wrapping_add(word.load(Relaxed));
        }
        if !len.is_multiple_of(8) {
            for byte in tail[0].load(Relaxed).to_le_bytes() {
                sum = sum.wrapping_add(u64::from(byte));
            }
        }
        sum
    }

    #[inline]
    fn copy(&self) -> Vec<u8> {
        let len = self.len();
        let mut copy = Vec::with_capacity(len + 8);
        for word in &self.words[1..=len.div_ceil(8)] {
            copy.extend_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        copy.truncate(len);
        copy
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.arena.inner.lock().free.entry(self.words.len()).or_default().push(self.words);
    }
}

#[derive(Default)]
pub(crate) struct Arena {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    blocks: Vec<&'static [AtomicU64]>,
    /// Words of the last block that are taken.
    taken: usize,
    /// Freed slices by words.
    free: HashMap<usize, Vec<&'static [AtomicU64]>>,
}

impl Arena {
    #[inline]
    fn slice(arena: &Arc<Arena>, bytes: &[u8]) -> Slice {
        let words = arena.inner.lock().take(1 + bytes.len().div_ceil(8));
        words[0].store(bytes.len() as u64, Relaxed);
        let (whole, tail) = bytes.as_chunks::<8>();
        for (word, bytes) in words[1..].iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Relaxed);
        }
        if !tail.is_empty() {
            let mut last = [0; 8];
            last[..tail.len()].copy_from_slice(tail);
            words[1 + whole.len()].store(u64::from_le_bytes(last), Relaxed);
        }
        Slice { words, arena: Arc::clone(arena) }
    }
}

impl Inner {
    fn take(&mut self, words: usize) -> &'static [AtomicU64] {
        assert!(words <= BLOCK_WORDS, "values fit a block");
        if let Some(slice) = self.free.get_mut(&words).and_then(Vec::pop) {
            return slice;
        }
        if self.blocks.is_empty() || self.taken + words > BLOCK_WORDS {
            self.blocks.push(take_block());
            self.taken = 0;
        }
        let block = self.blocks[self.blocks.len() - 1];
        self.taken += words;
        &block[self.taken - words..self.taken]
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // Every slice holds the arena, so none is left.
        for block in self.inner.get_mut().blocks.drain(..) {
            give_block(block);
        }
    }
}

/// A key to search for: a slice of the arena or bytes of the caller.
trait Probe {
    fn key(&self) -> Key<'_>;
}

enum Key<'a> {
    Words(&'a [AtomicU64]),
    Bytes(&'a [u8]),
}

fn probe<'a>(key: &'a &'a [u8]) -> &'a (dyn Probe + 'a) {
    key
}

impl Probe for &[u8] {
    fn key(&self) -> Key<'_> {
        Key::Bytes(self)
    }
}

impl Probe for Slice {
    fn key(&self) -> Key<'_> {
        Key::Words(self.words)
    }
}

impl<'a> Borrow<dyn Probe + 'a> for Slice {
    fn borrow(&self) -> &(dyn Probe + 'a) {
        self
    }
}

impl Ord for dyn Probe + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.key(), other.key()) {
            (Key::Words(ours), Key::Words(theirs)) => compare_words(ours, theirs),
            (Key::Words(ours), Key::Bytes(theirs)) => compare_bytes(ours, theirs),
            (Key::Bytes(ours), Key::Words(theirs)) => compare_bytes(theirs, ours).reverse(),
            (Key::Bytes(ours), Key::Bytes(theirs)) => ours.cmp(theirs),
        }
    }
}

impl PartialOrd for dyn Probe + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Probe + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Probe + '_ {}

impl Ord for Slice {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_words(self.words, other.words)
    }
}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Slice {}

/// Byte order: zero-padded big-endian words, then lengths.
#[inline]
fn compare_words(ours: &[AtomicU64], theirs: &[AtomicU64]) -> Ordering {
    for (our, their) in ours[1..].iter().zip(&theirs[1..]) {
        match our.load(Relaxed).swap_bytes().cmp(&their.load(Relaxed).swap_bytes()) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    ours[0].load(Relaxed).cmp(&theirs[0].load(Relaxed))
}

#[inline]
fn compare_bytes(ours: &[AtomicU64], theirs: &[u8]) -> Ordering {
    let (whole, tail) = theirs.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let padded = whole.iter().chain((!tail.is_empty()).then_some(&last));
    for (our, their) in ours[1..].iter().zip(padded) {
        match our.load(Relaxed).swap_bytes().cmp(&u64::from_be_bytes(*their)) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    (ours[0].load(Relaxed) as usize).cmp(&theirs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_order_and_sum_like_their_bytes() {
        let arena = Arc::<Arena>::default();
        let keys: [&[u8]; 8] = [
            b"a",
            b"a\0",
            b"ab",
            b"abcdefgh",
            b"abcdefgh\0",
            b"abcdefghi",
            b"b",
            b"\xff12345678901",
        ];
        for ours in keys {
            let slice = Arena::slice(&arena, ours);
            assert_eq!(slice.sum(), consume(ours));
            assert_eq!(slice.copy(), ours);
            for theirs in keys {
                assert_eq!(slice.cmp(&Arena::slice(&arena, theirs)), ours.cmp(theirs));
                assert_eq!(compare_bytes(slice.words, theirs), ours.cmp(theirs));
            }
        }
    }
}
