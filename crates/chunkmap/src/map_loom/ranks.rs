//! Counts beside writers: what a call has returned is counted from then on, and sums are right once all is quiet.

use super::{model, model_long, small_map, spawn};
use crate::ChunkMap;

/// An inner node over two chunks, whose sum is known or not.
fn two_chunks(is_known: bool) -> std::sync::Arc<ChunkMap> {
    let map = small_map();
    for key in [b"a", b"b", b"d", b"e", b"g"] {
        map.put(key, b"1").expect("memory");
    }
    if is_known {
        assert_eq!(map.count(..), 5);
    }
    map
}

fn is_right_at_last(map: &ChunkMap, entries: u64) {
    assert_eq!(map.count(..), entries);
    map.check().expect("every invariant holds");
}

fn counted_beside(is_known: bool, write: fn(&ChunkMap), left: u64) {
    model(move || {
        let map = two_chunks(is_known);
        let other = spawn(&map, move |map| {
            write(map);
            assert_eq!(map.count(..), left, "the call has returned");
        });
        let counted = map.count(..);
        assert!([5, left].contains(&counted), "{counted}");
        other.join().expect("no panic");
        is_right_at_last(&map, left);
    });
}

fn insert(map: &ChunkMap) {
    assert!(!map.put(b"h", b"2").expect("memory"));
}

#[test]
fn loom_first_count_insert() {
    counted_beside(false, insert, 6);
}

#[test]
fn loom_count_insert() {
    counted_beside(true, insert, 6);
}

#[test]
fn loom_first_count_remove() {
    counted_beside(false, |map| assert!(map.remove(b"e").expect("a fine key")), 4);
}

/// A chunk is replaced while the node above it is being counted.
#[test]
fn loom_count_rebalance() {
    counted_beside(
        false,
        |map| {
            let guard = map.tree.reclaimer.pin();
            map.rebalance(&guard, map.tree.leaf(&guard, b"g")).expect("memory");
            drop(guard);
            insert(map);
        },
        6,
    );
}

/// Two writers of one chunk: one takes the ticket back, the other needs no sum.
#[test]
fn loom_two_inserts_behind_a_count() {
    model_long(|| {
        let map = two_chunks(true);
        let other = spawn(&map, |map| {
            assert!(!map.put(b"f", b"2").expect("memory"));
            assert!(map.count(..) >= 6);
        });
        insert(&map);
        assert!(map.count(..) >= 6);
        other.join().expect("no panic");
        is_right_at_last(&map, 7);
    });
}
