//! Records that move: as a pass of `trim` moves them, and as a scan moves them together.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{model, rebalance, small_map, spawn};
use crate::{ChunkMap, Direction};

/// Moves every record of the chunk that covers `key`, as a pass of `trim` does.
fn move_records(map: &ChunkMap, key: &[u8]) {
    let guard = map.tree.reclaimer.pin();
    let chunk = map.tree.leaf(&guard, key).chunk;
    let elsewhere = |bytes| map.tree.arena.alloc_elsewhere(bytes);
    map.move_records(&guard, &chunk, |_| true, elsewhere, &mut { u64::MAX }).expect("memory");
}

/// A reader sees the value of a record that moves, and the old bytes stay for as long as it reads.
#[test]
fn loom_move_get() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&map, |map| {
            move_records(map, b"k");
            map.tree.reclaimer.flush();
        });
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![1; 16]));
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![1; 16]));
    });
}

/// An update in place is not lost, whether it comes before a move or after.
#[test]
fn loom_move_update() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&map, |map| move_records(map, b"k"));
        map.update(b"k", |value| value.iter_mut().for_each(|byte| *byte += 1)).expect("memory");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2; 16]));
    });
}

/// A record that is removed does not come back by a move.
#[test]
fn loom_move_remove() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1]).expect("memory");
        let other = spawn(&map, |map| move_records(map, b"k"));
        assert!(map.remove(b"k").expect("a fine key"), "it is there until now");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), None);
        assert!(map.is_empty());
    });
}

/// A record moves while its chunk is rebalanced: the new chunk names the new place.
#[test]
fn loom_move_rebalance() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| move_records(map, b"a"));
        // The delta has room for two.
        assert!(!map.put(b"b", b"2").expect("memory"));
        other.join().expect("no panic");
        for (key, value) in [(b"a", b"1"), (b"b", b"2"), (b"c", b"1")] {
            assert_eq!(map.get(key).expect("a fine key").as_deref(), Some(&value[..]));
        }
        assert_eq!(map.len_exact(), 3);
    });
}

/// A write inside a closure that changes another key waits for a mover, and is never refused.
#[test]
fn loom_move_write_inside_a_closure() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"k", b"1").expect("memory");
        let other = spawn(&map, |map| move_records(map, b"k"));
        let inside = map.update(b"a", |_| map.put(b"k", b"2")).expect("memory");
        assert_eq!(inside, Some(Ok(true)));
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key").as_deref(), Some(&b"2"[..]));
    });
}

/// As `model`, of a check that answers how many bytes were moved: some, at one interleaving at least.
fn model_that_moves(check: impl Fn() -> u64 + Sync + Send + 'static) {
    let moved = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&moved);
    model(move || {
        if check() > 0 {
            seen.store(true, Ordering::Relaxed);
        }
    });
    assert!(moved.load(Ordering::Relaxed), "no interleaving moves them");
}

/// Two entries of one chunk, and records in another order than their keys; the next scan moves them together.
fn scattered_map() -> Arc<ChunkMap> {
    let map = small_map();
    for key in [b"b", b"a"] {
        map.put(key, &[1; 16]).expect("memory");
    }
    rebalance(&map);
    assert_eq!(entries(&map), [(b'a', 1), (b'b', 1)]);
    assert_eq!(map.stats().moved_bytes, 0);
    map
}

/// First bytes of keys and values; a value is whole.
fn entries(map: &ChunkMap) -> Vec<(u8, u8)> {
    let mut seen = Vec::new();
    let scan = map.scan(.., Direction::Ascending, |key, value| {
        assert!(value.iter().all(|byte| *byte == value[0]), "half a value");
        seen.push((key[0], value[0]));
        ControlFlow::<()>::Continue(())
    });
    assert!(scan.expect("no closure").is_continue());
    seen
}

/// A scan that moves the records of a chunk together shows each of them once and whole, and no update is lost.
#[test]
fn loom_cluster_update() {
    model_that_moves(|| {
        let map = scattered_map();
        let other = spawn(&map, |map| {
            let seen = entries(map);
            assert!(seen == [(b'a', 1), (b'b', 1)] || seen == [(b'a', 1), (b'b', 2)], "{seen:?}");
        });
        map.update(b"b", |value| value.fill(2)).expect("memory").expect("it is there");
        other.join().expect("no panic");
        // Not where the update has put a copy behind the other record.
        let moved_bytes = map.stats().moved_bytes;
        assert_eq!(entries(&map), [(b'a', 1), (b'b', 2)]);
        moved_bytes
    });
}

/// Two scans that come to move the same records.
#[test]
fn loom_cluster_cluster() {
    model(|| {
        let map = scattered_map();
        let other = spawn(&map, |map| assert_eq!(entries(map), [(b'a', 1), (b'b', 1)]));
        assert_eq!(entries(&map), [(b'a', 1), (b'b', 1)]);
        other.join().expect("no panic");
        assert!(map.stats().moved_bytes > 0, "the scan moves them");
    });
}

/// What is removed while its chunk is moved together stays removed.
#[test]
fn loom_cluster_remove() {
    model_that_moves(|| {
        let map = scattered_map();
        let other = spawn(&map, |map| {
            let seen = entries(map);
            assert!(seen == [(b'a', 1), (b'b', 1)] || seen == [(b'b', 1)], "{seen:?}");
        });
        assert_eq!(map.remove(b"a"), Ok(true));
        other.join().expect("no panic");
        // Not where the record had gone before the scan came to its end.
        let moved_bytes = map.stats().moved_bytes;
        assert_eq!(entries(&map), [(b'b', 1)]);
        assert_eq!(map.len(), 1);
        moved_bytes
    });
}
