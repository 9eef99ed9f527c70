//! What readers hold, or stand in, while other threads take it out of reach and free it.

use std::ops::ControlFlow;

use super::{model, model_long, small_map, spawn, stay};
use crate::{ChunkMap, Compute, Direction, ValueMut};

/// A record is not freed under a reader: one that was inside keeps its bytes.
#[test]
fn loom_reclaim_get() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            map.put(b"k", &[2; 200]).expect("memory");
            map.tree.reclaimer.flush();
        });
        let seen = map.get(b"k").expect("a fine key").expect("never removed");
        assert!(seen == [1; 8] || seen == [2; 200], "{seen:?}");
        other.join().expect("no panic");
    });
}

/// Removes a key and frees what is due.
fn remove_and_flush(map: &ChunkMap, key: &[u8]) {
    map.remove(key).expect("a fine key");
    map.tree.reclaimer.flush();
}

/// A reader that stays in its closure keeps its record, and no pin.
#[test]
fn loom_reclaim_closure() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            remove_and_flush(map, b"k");
            // Takes the slice, if it was freed.
            map.put(b"m", &[2; 8]).expect("memory");
        });
        let seen = map.get_with(b"k", |value| {
            assert_eq!(value, [1; 8]);
            stay();
            assert_eq!(value, [1; 8], "freed under its reader");
        });
        other.join().expect("no panic");
        // What the reader kept is free when it has left.
        map.tree.reclaimer.flush();
        assert_eq!(map.tree.reclaimer.retired_bytes(), 0, "{seen:?}");
    });
}

/// An entry is held while its record is superseded, its chunk rebalanced and all of it reclaimed;
/// the range that it came from goes on.
#[test]
fn loom_reclaim_entry() {
    model_long(|| {
        let map = small_map();
        map.put(b"a", &[1; 8]).expect("memory");
        map.put(b"c", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            map.put(b"a", &[2; 64]).expect("memory");
            // The delta is full.
            map.put(b"b", &[2; 8]).expect("memory");
            map.tree.reclaimer.flush();
        });
        let mut range = map.range(..);
        let first = range.next().expect("two stay").expect("no writer");
        stay();
        assert_eq!(first.key(), b"a");
        assert!([&[1; 8][..], &[2; 64]].contains(&first.value()));
        let mut rest: Vec<_> = range.map(|entry| entry.expect("no writer").to_owned().0).collect();
        rest.retain(|key| key != b"b");
        assert_eq!(rest, [b"c"]);
        drop(first);
        other.join().expect("no panic");
        map.tree.reclaimer.flush();
        assert_eq!(map.tree.reclaimer.retired_bytes(), 0);
    });
}

/// A scan lets go at each entry; the chunk that it stands in is rebalanced and freed there.
fn scan_beside_reclamation(direction: Direction) {
    model(move || {
        let map = small_map();
        map.put(b"a", &[1; 8]).expect("memory");
        map.put(b"c", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            // The delta is full: a rebalance, and another chunk in the old one's place.
            map.put(b"b", &[2; 8]).expect("memory");
            remove_and_flush(map, b"b");
        });
        let mut seen = Vec::new();
        let _ = map
            .scan(.., direction, |key, value| {
                seen.push(key.to_vec());
                stay();
                assert!(value == [1; 8] || key == b"b", "{value:?}");
                ControlFlow::<()>::Continue(())
            })
            .expect("no writer");
        other.join().expect("no panic");
        if direction == Direction::Descending {
            seen.reverse();
        }
        assert!(seen == [b"a", b"c"] || seen == [b"a", b"b", b"c"], "{seen:?}");
    });
}

#[test]
fn loom_reclaim_scan() {
    scan_beside_reclamation(Direction::Ascending);
}

#[test]
fn loom_reclaim_scan_down() {
    scan_beside_reclamation(Direction::Descending);
}

/// As a scan, from copies of the keys; the key it stands on goes.
#[test]
fn loom_reclaim_scan_keys() {
    model_long(|| {
        let map = small_map();
        for key in [b"a", b"b"] {
            map.put(key, &[1; 8]).expect("memory");
        }
        let other = spawn(&map, |map| {
            map.put(b"c", &[1; 8]).expect("memory");
            remove_and_flush(map, b"a");
            // Takes the slice, if it was freed.
            map.put(b"d", &[1; 8]).expect("memory");
        });
        let mut seen = Vec::new();
        let _ = map
            .scan_keys(.., Direction::Ascending, |key| {
                let before = key.to_vec();
                stay();
                assert_eq!(key, before);
                seen.push(before);
                ControlFlow::<()>::Continue(())
            })
            .expect("a scan");
        other.join().expect("no panic");
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert_eq!(seen.iter().filter(|key| **key == b"b").count(), 1, "{seen:?}");
    });
}

/// A closure that changes a value stays while its chunk is rebalanced and freed, and then moves
/// the value.
#[test]
fn loom_reclaim_update() {
    model(|| {
        let map = small_map();
        map.put(b"a", &[1; 8]).expect("memory");
        map.put(b"c", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            map.put(b"b", &[2; 8]).expect("memory");
            map.tree.reclaimer.flush();
        });
        let grow = |value: &mut ValueMut<'_>| {
            stay();
            value.resize(64).expect("memory");
        };
        map.update(b"a", grow).expect("memory").expect("it stays");
        other.join().expect("no panic");
        assert_eq!(map.get_with(b"a", <[u8]>::len), Ok(Some(64)));
        assert_eq!(map.len_exact(), 3);
        map.check().expect("every invariant holds");
    });
}

/// A closure decides about a key that is absent while the chunk where it would go is freed.
#[test]
fn loom_reclaim_compute() {
    model(|| {
        let map = small_map();
        map.put(b"a", &[1; 8]).expect("memory");
        map.put(b"c", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            map.put(b"d", &[2; 8]).expect("memory");
            map.tree.reclaimer.flush();
        });
        let decide = |value: Option<&[u8]>| {
            assert_eq!(value, None);
            stay();
            Compute::Replace(vec![3; 8])
        };
        map.compute(b"b", decide).expect("memory");
        other.join().expect("no panic");
        assert_eq!(map.get(b"b"), Ok(Some(vec![3; 8])));
        assert_eq!(map.len_exact(), 4);
    });
}

/// A removed value is shown when its record is out of reach.
#[test]
fn loom_reclaim_remove_with() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            map.tree.reclaimer.flush();
            map.put(b"m", &[2; 8]).expect("memory");
        });
        let seen = map.remove_with(b"k", |value| {
            stay();
            assert_eq!(value, [1; 8], "freed under its reader");
        });
        assert_eq!(seen, Ok(Some(())));
        other.join().expect("no panic");
    });
}

/// A value that a reader stays with is not changed in place.
#[test]
fn loom_update_beside_closure() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value.fill(2)).expect("memory").expect("it stays");
            map.tree.reclaimer.flush();
        });
        map.get_with(b"k", |value| {
            let before = value.to_vec();
            stay();
            assert_eq!(value, before, "changed under its reader");
        })
        .expect("a fine key")
        .expect("it stays");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k"), Ok(Some(vec![2; 8])));
    });
}

/// A reader waits without a pin for a closure that changes its value; the value moves and the old
/// record is freed meanwhile.
#[test]
fn loom_reclaim_wait() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 8]).expect("memory");
        let other = spawn(&map, |map| {
            let grow = |value: &mut ValueMut<'_>| {
                stay();
                value.set(&[2; 64]).expect("memory");
            };
            map.update(b"k", grow).expect("memory").expect("it stays");
            map.tree.reclaimer.flush();
        });
        let seen = map.get(b"k").expect("no closure").expect("it stays");
        assert!(seen == [1; 8] || seen == [2; 64], "{seen:?}");
        other.join().expect("no panic");
    });
}

/// A third thread stamps what another one retires while it stamps.
#[test]
fn loom_reclaim_flush() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 8]).expect("memory");
        let flushes = spawn(&map, |map| map.tree.reclaimer.flush());
        let removes = spawn(&map, |map| map.remove(b"k").expect("a fine key"));
        let seen = map.get(b"k").expect("a fine key");
        assert!(seen.is_none_or(|value| value == [1; 8]));
        flushes.join().expect("no panic");
        assert!(removes.join().expect("no panic"));
    });
}
