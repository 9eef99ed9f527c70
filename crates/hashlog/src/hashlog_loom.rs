//! Models of the log's protocols: loom runs every interleaving up to a bound on
//! preemptions. The code under test is the code that ships, down to the epochs;
//! words of frames that were evicted are gone in a model, so a use after free panics.

use std::ops::ControlFlow;
use std::sync::Arc;

use loom::thread;
use sapwood_mem::Pages;
use sapwood_mem::sync::model;

use crate::hash;
use crate::layout::slot;
use crate::{HashLog, Layout, Options, Snapshot};

/// Two buckets, and pages of ten fixed records.
fn small_log(layout: Layout) -> Arc<HashLog> {
    let mut options = Options::default();
    options.layout = layout;
    options.page_bytes = 256;
    options.pages = Pages::Small;
    Arc::new(HashLog::in_memory(options).expect("a few pages"))
}

/// A log of fixed records that holds key 1, so that its first page is there.
fn counters() -> Arc<HashLog> {
    let log = small_log(Layout::Fixed8);
    log.put(&word(1), &word(10)).expect("memory");
    log
}

fn word(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

fn value_of(log: &HashLog, key: u64) -> Option<u64> {
    let read = |value: &[u8]| u64::from_le_bytes(value.try_into().expect("8 bytes"));
    log.get_with(&word(key), read).expect("a fine key")
}

/// What a snapshot shows, in log order.
fn scanned(snapshot: &Snapshot<'_>) -> Vec<(u64, u64)> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut seen = Vec::new();
    let _all = snapshot
        .scan(|key, value| {
            seen.push((number(key), number(value)));
            ControlFlow::<()>::Continue(())
        })
        .expect("a scan in memory");
    seen
}

/// Fresh keys whose first look-ups go to one bucket, with tags that agree or not.
fn neighbours(agreeing: bool) -> [u64; 2] {
    let depth = 1;
    let place = |key: u64| {
        let hash = hash::of_word(key);
        (hash & 1, slot::tag_of(hash, depth))
    };
    let first = 2;
    let (bucket, tag) = place(first);
    let second = (3..)
        .find(|key| place(*key).0 == bucket && (place(*key).1 == tag) == agreeing)
        .expect("tags have fourteen bits");
    [first, second]
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    loom::model(move || {
        model::reset();
        check();
    });
}

fn spawn<R: 'static>(
    log: &Arc<HashLog>,
    work: impl FnOnce(&HashLog) -> R + 'static,
) -> thread::JoinHandle<R> {
    let log = Arc::clone(log);
    thread::spawn(move || work(&log))
}

/// One of two inserts of a key wins, and its value stays.
#[test]
fn loom_insert_insert() {
    model(|| {
        let log = counters();
        let other = spawn(&log, |log| log.put_if_absent(&word(2), &word(1)).expect("memory"));
        let mine = log.put_if_absent(&word(2), &word(2)).expect("memory");
        let theirs = other.join().expect("no panic");
        assert!(mine != theirs, "exactly one inserts");
        assert_eq!(value_of(&log, 2), Some(if mine { 2 } else { 1 }));
        log.check().expect("invariants");
    });
}

/// The same while a slot before them is vacated, so that each may take another one: what one finds
/// alone, both must not.
#[test]
fn loom_insert_insert_beside_a_removal() {
    let [gone, key] = neighbours(false);
    model(move || {
        let log = counters();
        assert!(log.put_if_absent(&word(gone), &word(0)).expect("memory"));
        let other =
            spawn(&log, move |log| log.put_if_absent(&word(key), &word(1)).expect("memory"));
        assert!(log.remove(&word(gone)).expect("memory"), "it was there all the time");
        let mine = log.put_if_absent(&word(key), &word(2)).expect("memory");
        let theirs = other.join().expect("no panic");
        assert!(mine != theirs, "exactly one inserts");
        assert_eq!(value_of(&log, key), Some(if mine { 2 } else { 1 }));
        log.check().expect("invariants");
    });
}

/// Two keys that share bucket and tag end up in one chain.
#[test]
fn loom_insert_insert_agreeing() {
    let [a, b] = neighbours(true);
    model(move || {
        let log = counters();
        let other = spawn(&log, move |log| log.put_if_absent(&word(b), &word(2)).expect("memory"));
        assert!(log.put_if_absent(&word(a), &word(1)).expect("memory"), "nobody else inserts it");
        assert!(other.join().expect("no panic"));
        assert_eq!((value_of(&log, a), value_of(&log, b)), (Some(1), Some(2)));
        log.check().expect("invariants");
    });
}

/// Two keys of one bucket find a slot each.
#[test]
fn loom_insert_insert_apart() {
    let [a, b] = neighbours(false);
    model(move || {
        let log = counters();
        let other = spawn(&log, move |log| log.put_if_absent(&word(b), &word(2)).expect("memory"));
        assert!(log.put_if_absent(&word(a), &word(1)).expect("memory"), "nobody else inserts it");
        assert!(other.join().expect("no panic"));
        assert_eq!((value_of(&log, a), value_of(&log, b)), (Some(1), Some(2)));
        log.check().expect("invariants");
    });
}

/// A put and an add in place: the add counts on top of the put, or of what was before it.
///
/// Loom keeps no total order of the writes to a word: after the sum 11 it may show 11, which a
/// machine cannot, since the put came later.
#[test]
fn loom_put_add() {
    model(|| {
        let log = counters();
        let other = spawn(&log, |log| log.add(&word(1), 1).expect("a counter"));
        log.put(&word(1), &word(20)).expect("memory");
        let sum = other.join().expect("no panic");
        let left = value_of(&log, 1).expect("never removed");
        assert!(matches!((sum, left), (21, 21) | (11, 20 | 11)), "{sum}, then {left}");
    });
}

/// Two adds both count, and answer different sums.
#[test]
fn loom_add_add() {
    model(|| {
        let log = counters();
        let other = spawn(&log, |log| log.add(&word(1), 1).expect("a counter"));
        let mine = log.add(&word(1), 2).expect("a counter");
        let theirs = other.join().expect("no panic");
        assert!((mine, theirs) == (12, 13) || (mine, theirs) == (13, 11), "{mine}, {theirs}");
        assert_eq!(value_of(&log, 1), Some(13));
    });
}

/// An add while a snapshot is taken: it counts, and the snapshot shows it or not. One that began
/// after the snapshot was there does not show.
#[test]
fn loom_add_during_shift() {
    model(|| {
        let log = counters();
        let other = spawn(&log, |log| log.add(&word(1), 1).expect("a counter"));
        let snapshot = log.snapshot().expect("unpinned");
        let first = scanned(&snapshot);
        let theirs = other.join().expect("no panic");
        assert_eq!(theirs, 11);
        assert_eq!(log.add(&word(1), 1).expect("a counter"), 12, "no add is lost");
        let again = scanned(&snapshot);
        assert!(matches!(first[..], [(1, 10 | 11)]), "{first:?}");
        assert_eq!(again, first, "a snapshot stands still");
        drop(snapshot);
        assert_eq!(value_of(&log, 1), Some(12));
    });
}

/// An insert while the key is removed: the one that comes second finds what the first left.
#[test]
fn loom_remove_insert() {
    model(|| {
        let log = counters();
        let other = spawn(&log, |log| log.remove(&word(1)).expect("memory"));
        let inserted = log.put_if_absent(&word(1), &word(2)).expect("memory");
        assert!(other.join().expect("no panic"), "it was there all the time");
        assert!(matches!((inserted, value_of(&log, 1)), (true, Some(2)) | (false, None)));
        log.check().expect("invariants");
    });
}

/// A new key inserted and removed again: the remove takes it, or finds nothing.
#[test]
fn loom_insert_remove() {
    model(|| {
        let log = counters();
        let other = spawn(&log, |log| log.remove(&word(2)).expect("memory"));
        assert!(log.put_if_absent(&word(2), &word(1)).expect("memory"), "nobody else inserts");
        let removed = other.join().expect("no panic");
        assert_eq!(value_of(&log, 2).is_none(), removed);
        log.check().expect("invariants");
    });
}

/// Splits the first of two buckets, as if the index had its load.
fn split(log: &HashLog) {
    let index = &log.core.index;
    index.slots.add(12);
    let _pin = log.core.log.epochs.pin();
    index.grow(&log.core.log.epochs, |_, _| unreachable!("tags are long")).expect("memory");
    index.slots.add(-12);
}

fn key_that_a_split_moves() -> u64 {
    (2..).find(|key| hash::of_word(*key) & 3 == 2).expect("four classes")
}

/// A key is found in its new bucket while the split goes on.
#[test]
fn loom_grow_get() {
    let moved = key_that_a_split_moves();
    model(move || {
        let log = counters();
        log.put(&word(moved), &word(30)).expect("memory");
        let other = spawn(&log, split);
        assert_eq!(value_of(&log, moved), Some(30));
        assert!(!log.put_if_absent(&word(moved), &word(40)).expect("memory"), "it is there");
        other.join().expect("no panic");
        assert_eq!(value_of(&log, moved), Some(30));
        log.check().expect("invariants");
    });
}

/// A search alone, which nothing behind it would put right, misses no key of a bucket that splits.
#[test]
fn loom_grow_remove() {
    let moved = key_that_a_split_moves();
    model(move || {
        let log = counters();
        log.put(&word(moved), &word(30)).expect("memory");
        let other = spawn(&log, split);
        assert!(log.remove(&word(moved)).expect("memory"), "it was there all the time");
        other.join().expect("no panic");
        assert_eq!(value_of(&log, moved), None);
        log.check().expect("invariants");
    });
}

/// A key that is inserted while its bucket splits is in the bucket that it is looked for in.
#[test]
fn loom_grow_insert() {
    let moved = key_that_a_split_moves();
    model(move || {
        let log = counters();
        let other = spawn(&log, split);
        assert!(log.put_if_absent(&word(moved), &word(30)).expect("memory"), "nobody else does");
        assert_eq!(value_of(&log, moved), Some(30));
        other.join().expect("no panic");
        assert_eq!(value_of(&log, moved), Some(30));
        log.check().expect("invariants");
    });
}

/// A scan shows a key whose record is superseded meanwhile exactly once.
#[test]
fn loom_superseded_scan() {
    model(|| {
        let log = counters();
        // The first record is below the boundary of this snapshot: the put must append.
        let still = log.snapshot().expect("unpinned");
        let other = spawn(&log, |log| log.put(&word(1), &word(20)).expect("memory"));
        let snapshot = log.snapshot().expect("unpinned");
        let seen = scanned(&snapshot);
        assert!(matches!(seen[..], [(1, 10 | 20)]), "{seen:?}");
        other.join().expect("no panic");
        assert_eq!(scanned(&still), [(1, 10)]);
        assert_eq!(scanned(&snapshot), seen, "a snapshot stands still");
    });
}

/// Two updates of a value of variable length both count.
#[test]
fn loom_update_variable() {
    model(|| {
        let log = small_log(Layout::Variable);
        log.put(b"k", &[0]).expect("memory");
        let other = spawn(&log, |log| {
            log.update(b"k", |value| value[0] += 1).expect("memory").expect("never removed");
        });
        log.update(b"k", |value| value[0] += 1).expect("memory").expect("never removed");
        other.join().expect("no panic");
        assert_eq!(log.get(b"k").expect("a fine key"), Some(vec![2]));
    });
}

/// A reader sees a value of variable length before or after an update, never half of it.
#[test]
fn loom_update_get_variable() {
    model(|| {
        let log = small_log(Layout::Variable);
        log.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&log, |log| log.put(b"k", &[2; 12]).expect("memory"));
        let seen = log.get(b"k").expect("a fine key").expect("never removed");
        assert!(seen == [1; 16] || seen == [2; 12], "half an update: {seen:?}");
        other.join().expect("no panic");
        assert_eq!(log.get(b"k").expect("a fine key"), Some(vec![2; 12]));
    });
}
