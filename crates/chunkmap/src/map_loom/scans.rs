//! Scans and searches for the nearest key beside writers.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{keys_of, map_of, model, model_long, rebalance, small_map, spawn};
use crate::{ChunkMap, Direction};

/// A scan beside a run sees none of its keys or those up to its end, and all others.
#[test]
fn loom_run_scan() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"0").expect("memory");
        map.put(b"z", b"0").expect("memory");
        let other = spawn(&map, |map| {
            let run = [(b"b", b"1"), (b"c", b"1"), (b"d", b"1")];
            assert_eq!(map.put_many(&run).expect("memory"), 0);
        });
        let seen = keys_of(&map);
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert!(seen.starts_with(b"a") && seen.ends_with(b"z"), "{seen:?}");
        other.join().expect("no panic");
        assert_eq!(map.len_exact(), 5);
    });
}

/// A scan shows a key that is there all the time exactly once, also while the
/// value moves and another key goes.
#[test]
fn loom_scan_replace() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"b", b"1").expect("memory");
        let other = spawn(&map, |map| map.put(b"a", &[2; 100]).expect("memory"));
        let mut seen = Vec::new();
        let _ = map
            .scan(.., Direction::Descending, |key, value| {
                seen.push((key.to_vec(), value.len()));
                ControlFlow::<()>::Continue(())
            })
            .expect("a scan");
        other.join().expect("no panic");
        let keys: Vec<_> = seen.iter().map(|(key, _)| key.as_slice()).collect();
        assert_eq!(keys, [b"b", b"a"]);
        assert!(matches!(seen[1].1, 1 | 100));
    });
}

/// The first key is one that was the first at some moment: of two keys of which one comes before the other goes, one.
#[test]
fn loom_first_moves() {
    model(|| {
        let map = small_map();
        map.put(b"b", b"1").expect("memory");
        map.put(b"z", b"1").expect("memory");
        let other = spawn(&map, |map| {
            map.put(b"c", b"1").expect("memory");
            assert!(map.remove(b"b").expect("a fine key"));
        });
        let first = map.first().expect("no closure").expect("never empty").key().to_vec();
        assert!([b"b", b"c"].contains(&&[first[0]]), "{first:?}");
        other.join().expect("no panic");
    });
}

/// The same where the delta has been read before, so that a search looks at its nearest entry and at what came since,
/// while that entry goes: beside one that has come, or that was there.
#[test]
fn loom_first_of_a_delta_that_was_read() {
    for comes in [true, false] {
        model_long(move || {
            let map = map_of(32);
            map.put(b"d", b"1").expect("memory");
            rebalance(&map);
            if !comes {
                map.put(b"c", b"1").expect("memory");
            }
            map.put(b"b", b"1").expect("memory");
            let first = |map: &ChunkMap| {
                map.first().expect("no closure").expect("never empty").key().to_vec()
            };
            assert_eq!(first(&map), b"b");
            let other = spawn(&map, move |map| {
                if comes {
                    map.put(b"c", b"1").expect("memory");
                }
                assert!(map.remove(b"b").expect("a fine key"));
            });
            let seen = first(&map);
            assert!([b"b", b"c"].contains(&&[seen[0]]), "{seen:?}");
            other.join().expect("no panic");
            assert_eq!(first(&map), b"c");
            assert!(map.remove(b"c").expect("a fine key"));
            assert_eq!(first(&map), b"d");
        });
    }
}

/// The same where the one that comes lies in a chunk in which the search has been in vain, when the other one goes.
#[test]
fn loom_nearest_comes_to_a_chunk_that_was_passed() {
    model(|| {
        let map = small_map();
        // Two chunks, and what is below `y` lies in the first.
        for key in [&b"a"[..], b"b", b"c", b"z", b"zz"] {
            map.put(key, b"1").expect("memory");
        }
        assert!(map.remove(b"c").expect("a fine key"));
        assert!(map.stats().chunks > 1);
        let other = spawn(&map, |map| {
            map.put(b"d", b"1").expect("memory");
            assert!(map.remove(b"b").expect("a fine key"));
        });
        let nearest = map.floor(b"y").expect("no closure").expect("never empty").key().to_vec();
        assert!([b"b", b"d"].contains(&&[nearest[0]]), "{nearest:?}");
        other.join().expect("no panic");
    });
}

/// Four sorted entries of one chunk, of which one may go without a rebalance.
fn sorted_map() -> Arc<ChunkMap> {
    let map = map_of(8);
    for key in [b"a", b"b", b"c", b"d"] {
        map.put(key, b"1").expect("memory");
    }
    rebalance(&map);
    map
}

/// A key that this thread has seen gone is not shown to it, although its word may not tell so yet.
#[test]
fn loom_keys_removed() {
    model(|| {
        let map = sorted_map();
        let other = spawn(&map, |map| {
            let was_gone = !map.contains_key(b"b").expect("a fine key");
            let keys = keys_of(map);
            assert!(keys == b"acd" || keys == b"abcd" && !was_gone, "{keys:?}");
        });
        assert!(map.remove(b"b").expect("a fine key"));
        other.join().expect("no panic");
        assert_eq!(keys_of(&map), b"acd");
    });
}

/// A key that comes back is shown once, although the removed record may still be there beside it.
#[test]
fn loom_keys_come_back() {
    model(|| {
        let map = sorted_map();
        let other = spawn(&map, |map| {
            let came_back = !map.put(b"b", b"2").expect("memory");
            let keys = keys_of(map);
            assert!(keys == b"abcd" || keys == b"acd" && !came_back, "{keys:?}");
            came_back
        });
        assert!(map.remove(b"b").expect("a fine key"));
        let there: &[u8] = if other.join().expect("no panic") { b"abcd" } else { b"acd" };
        assert_eq!(keys_of(&map), there);
    });
}

/// As `loom_keys_removed`, while a third thread's rebalance takes the words to another chunk.
#[test]
fn loom_keys_removed_beside_rebalance() {
    model_long(|| {
        let map = small_map();
        for key in [b"a", b"b"] {
            map.put(key, b"1").expect("memory");
        }
        rebalance(&map);
        let remover = spawn(&map, |map| assert!(map.remove(b"b").expect("a fine key")));
        let rebalancer = spawn(&map, rebalance);
        let was_gone = !map.contains_key(b"b").expect("a fine key");
        let keys = keys_of(&map);
        assert!(keys == b"a" || keys == b"ab" && !was_gone, "{keys:?}");
        remover.join().expect("no panic");
        rebalancer.join().expect("no panic");
    });
}
