//! Models of the map's protocols: loom runs every interleaving up to a bound on
//! preemptions. The code under test is the code that ships, down to the epochs;
//! words of freed records are gone in a model, so a use after free panics.

use std::ops::ControlFlow;
use std::sync::Arc;

use loom::thread;
use sapwood_engine::{Effect, Journal};
use sapwood_mem::model;

use crate::{ChunkMap, Direction, Options, Piece, Widths};

/// Chunks of two entries: the third insert rebalances.
fn small_map() -> Arc<ChunkMap> {
    let mut options = Options::default();
    options.chunk_entries = 2;
    options.block_bytes = 4096;
    Arc::new(ChunkMap::with_options(options).expect("a few pages"))
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    loom::model(move || {
        model::reset();
        check();
    });
}

fn spawn<R: 'static>(
    map: &Arc<ChunkMap>,
    work: impl FnOnce(&ChunkMap) -> R + 'static,
) -> thread::JoinHandle<R> {
    let map = Arc::clone(map);
    thread::spawn(move || work(&map))
}

/// One of two inserts of a key wins, and its value stays.
#[test]
fn loom_insert_insert() {
    model(|| {
        let map = small_map();
        let other = spawn(&map, |map| map.put_if_absent(b"k", b"1").expect("memory"));
        let mine = map.put_if_absent(b"k", b"2").expect("memory");
        let theirs = other.join().expect("no panic");
        assert!(mine != theirs, "exactly one inserts");
        let value = map.get(b"k").expect("a fine key").expect("inserted");
        assert_eq!(value, if mine { b"2" } else { b"1" });
    });
}

/// A remove takes what an insert made, or finds nothing; then the key can come back.
#[test]
fn loom_insert_remove() {
    model(|| {
        let map = small_map();
        let other = spawn(&map, |map| map.remove(b"k").expect("a fine key"));
        assert!(map.put_if_absent(b"k", b"1").expect("memory"), "nobody else inserts");
        let removed = other.join().expect("no panic");
        assert_eq!(map.contains_key(b"k").expect("a fine key"), !removed);
        assert_eq!(map.put(b"k", b"2").expect("memory"), !removed);
        assert_eq!(map.get(b"k").expect("a fine key").as_deref(), Some(&b"2"[..]));
        assert_eq!(map.len(), 1);
    });
}

/// Of two removes one takes the entry, and frees it once.
#[test]
fn loom_remove_remove() {
    model(|| {
        let map = small_map();
        map.put(b"k", b"1").expect("memory");
        let other = spawn(&map, |map| map.remove(b"k").expect("a fine key"));
        let mine = map.remove(b"k").expect("a fine key");
        assert!(mine != other.join().expect("no panic"), "exactly one removes");
        assert_eq!(map.len(), 0);
    });
}

/// A reader sees a value before or after an update, never half of it; and the
/// update is not lost.
#[test]
fn loom_update_get() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value.iter_mut().for_each(|byte| *byte += 1)).expect("memory")
        });
        let seen = map.get(b"k").expect("a fine key").expect("never removed");
        assert!(seen == [1; 16] || seen == [2; 16], "half an update: {seen:?}");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2; 16]));
    });
}

/// Two updates of a value both count.
#[test]
fn loom_update_update() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[0]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value[0] += 1).expect("memory");
        });
        map.update(b"k", |value| value[0] += 1).expect("memory");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2]));
    });
}

/// An update that grows the value moves it; a remove at the same time takes the
/// old or the new one.
#[test]
fn loom_grow_remove() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value.resize(100).expect("memory")).expect("memory").is_some()
        });
        let removed = map.remove_with(b"k", <[u8]>::len).expect("a fine key").expect("one remover");
        let updated = other.join().expect("no panic");
        assert_eq!(removed, if updated { 100 } else { 1 });
        assert!(map.is_empty());
    });
}

/// Inserts that find the chunk full or frozen lose nothing.
#[test]
fn loom_rebalance_insert() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        // The delta has room for two: both threads' inserts go through a rebalance.
        let other = spawn(&map, |map| map.put(b"b", b"2").expect("memory"));
        assert!(!map.put(b"d", b"3").expect("memory"));
        assert!(!other.join().expect("no panic"));
        let mut keys = Vec::new();
        let _ = map
            .scan_keys(.., Direction::Ascending, |key| {
                keys.push(key.to_vec());
                ControlFlow::<()>::Continue(())
            })
            .expect("a scan");
        assert_eq!(keys, [b"a", b"b", b"c", b"d"]);
    });
}

/// A chunk that was appended to splits where it grew, and both threads find their end.
#[test]
fn loom_growth_insert() {
    model(|| {
        let map = small_map();
        for key in [b"a", b"b", b"c", b"d"] {
            map.put(key, b"1").expect("memory");
        }
        // Two are sorted, and the delta is full.
        let other = spawn(&map, |map| map.put(b"e", b"2").expect("memory"));
        assert!(!map.put(b"bb", b"3").expect("memory"));
        assert!(!other.join().expect("no panic"));
        for key in [&b"a"[..], b"b", b"bb", b"c", b"d", b"e"] {
            assert!(map.contains_key(key).expect("a fine key"), "{key:?}");
        }
        assert_eq!(map.len_exact(), 6);
    });
}

/// A batch that found its chunks before another thread replaces them loses nothing.
#[test]
fn loom_growth_batch() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| {
            let inserted = map.put_if_absent(b"d", b"2").expect("memory");
            map.tree.reclaimer.flush();
            inserted
        });
        let entries = [(b"a", b"7"), (b"d", b"7")];
        let inserted = map.put_if_absent_or_update_many(&entries, |_, value| value[0] += 1);
        let theirs = other.join().expect("no panic");
        assert_eq!(inserted.expect("memory"), usize::from(!theirs), "one of the two inserts");
        assert_eq!(map.get(b"a").expect("a fine key").as_deref(), Some(&b"2"[..]));
        let wanted = if theirs { b"3" } else { b"7" };
        assert_eq!(map.get(b"d").expect("a fine key").as_deref(), Some(&wanted[..]));
        assert_eq!(map.len_exact(), 3);
    });
}

/// A run beside an insert of a key among its own, of one in front of it, or behind: all are in, each once.
#[test]
fn loom_run_insert() {
    for key in [b"a", b"d", b"z"] {
        model(move || {
            let map = small_map();
            map.put(b"b", b"0").expect("memory");
            let other = spawn(&map, move |map| map.put_if_absent(key, b"1").expect("memory"));
            let run = [(b"c", b"2"), (b"d", b"2"), (b"e", b"2")];
            let mut updated = 0;
            let inserted = map.put_if_absent_or_update_many(&run, |_, _| updated += 1);
            assert_eq!(inserted.expect("memory") + updated, 3);
            let theirs = other.join().expect("no panic");
            assert_eq!(theirs, key != b"d" || updated == 1, "one of the two inserts it");
            assert_eq!(map.len_exact(), if key == b"d" { 4 } else { 5 });
            let (value, mine) = (map.get(key).expect("a fine key"), !theirs);
            assert_eq!(value.as_deref(), Some(if mine { &b"2"[..] } else { b"1" }));
            map.check().expect("every invariant holds");
        });
    }
}

/// Two runs that lie in one gap, one behind the other or one within the other: all keys are in, each once.
#[test]
fn loom_run_run() {
    for theirs in [[b"e", b"f"], [b"b", b"d"]] {
        model(move || {
            let map = small_map();
            let other = spawn(&map, move |map| {
                map.put_many(&theirs.map(|key| (key, b"1"))).expect("memory");
            });
            let run = [(b"a", b"2"), (b"c", b"2")];
            assert_eq!(map.put_many(&run).expect("memory"), 0, "no key is twice");
            other.join().expect("no panic");
            assert_eq!(map.len_exact(), 4);
            for (key, value) in run.iter().copied().chain(theirs.map(|key| (key, b"1"))) {
                assert_eq!(map.get(key).expect("a fine key").as_deref(), Some(&value[..]));
            }
            map.check().expect("every invariant holds");
        });
    }
}

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
        let mut seen = Vec::new();
        let flow = map.scan_keys(.., Direction::Ascending, |key| {
            seen.push(key[0]);
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(flow.expect("no closure"), ControlFlow::Continue(()));
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert!(seen.starts_with(b"a") && seen.ends_with(b"z"), "{seen:?}");
        other.join().expect("no panic");
        assert_eq!(map.len_exact(), 5);
    });
}

/// A value replaced while its chunk is rebalanced is replaced in the new chunk.
#[test]
fn loom_rebalance_replace() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| map.put(b"a", &[2; 100]).expect("memory"));
        assert!(!map.put(b"b", b"3").expect("memory"));
        assert!(other.join().expect("no panic"), "the key was there all the time");
        assert_eq!(map.get(b"a").expect("a fine key"), Some(vec![2; 100]));
        assert_eq!(map.len_exact(), 3);
    });
}

/// A reader finds a key that is there all the time, whatever a rebalance does.
#[test]
fn loom_rebalance_get() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| map.put(b"b", b"2").expect("memory"));
        assert_eq!(map.get(b"c").expect("a fine key").as_deref(), Some(&b"1"[..]));
        other.join().expect("no panic");
    });
}

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

/// The wait of a closure that stays: the other thread may go on.
fn stay() {
    thread::yield_now();
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
    model(|| {
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
    model(|| {
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

/// The keys that a scan shows, which a chunk tells by its words alone.
fn keys_of(map: &ChunkMap) -> Vec<u8> {
    let mut keys = Vec::new();
    let flow = map.scan_keys(.., Direction::Ascending, |key| {
        keys.push(key[0]);
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow.expect("no closure"), ControlFlow::Continue(()));
    keys
}

/// A key that this thread has seen gone is not shown to it, although its word may not tell so yet.
#[test]
fn loom_keys_removed() {
    model(|| {
        let map = small_map();
        for key in [b"a", b"b", b"c"] {
            map.put(key, b"1").expect("memory");
        }
        let other = spawn(&map, |map| {
            let was_gone = !map.contains_key(b"b").expect("a fine key");
            let keys = keys_of(map);
            assert!(keys == b"ac" || keys == b"abc" && !was_gone, "{keys:?}");
        });
        assert!(map.remove(b"b").expect("a fine key"));
        other.join().expect("no panic");
        assert_eq!(keys_of(&map), b"ac");
    });
}

/// A key that comes back is shown once, although the removed record may still be there beside it.
#[test]
fn loom_keys_come_back() {
    model(|| {
        let map = small_map();
        for key in [b"a", b"b", b"c"] {
            map.put(key, b"1").expect("memory");
        }
        let other = spawn(&map, |map| {
            let came_back = !map.put(b"b", b"2").expect("memory");
            let keys = keys_of(map);
            assert!(keys == b"abc" || keys == b"ac" && !came_back, "{keys:?}");
            came_back
        });
        assert!(map.remove(b"b").expect("a fine key"));
        let there: &[u8] = if other.join().expect("no panic") { b"abc" } else { b"ac" };
        assert_eq!(keys_of(&map), there);
    });
}

/// The same, while a third thread's rebalance takes the words to another chunk.
#[test]
fn loom_keys_removed_beside_rebalance() {
    model(|| {
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

/// Puts another chunk in the place of the only one.
fn rebalance(map: &ChunkMap) {
    let guard = map.tree.reclaimer.pin();
    map.rebalance(&guard, map.tree.leaf(&guard, b"a")).expect("memory");
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
        let grow = |value: &mut crate::ValueMut<'_>| {
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
            crate::Compute::Replace(vec![3; 8])
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
            let grow = |value: &mut crate::ValueMut<'_>| {
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
    let moved = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = Arc::clone(&moved);
    model(move || {
        if check() > 0 {
            seen.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(moved.load(std::sync::atomic::Ordering::Relaxed), "no interleaving moves them");
}

/// Two entries of one chunk, and records in another order than their keys; the next scan moves them together.
fn scattered_map() -> Arc<ChunkMap> {
    let map = small_map();
    for key in [b"b", b"a"] {
        map.put(key, &[1; 16]).expect("memory");
    }
    let guard = map.tree.reclaimer.pin();
    map.rebalance(&guard, map.tree.leaf(&guard, b"a")).expect("memory");
    drop(guard);
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

/// What a journal heard of a key last.
#[derive(Debug, Default)]
struct Last(std::sync::Mutex<Option<Vec<u8>>>);

impl Journal for Last {
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn log(&self, _: &[u8], effect: Effect<'_>) {
        *self.0.lock().expect("no panic") = match effect {
            Effect::Put(value) => Some(value.to_vec()),
            Effect::Write { .. } => unreachable!("values of one byte are told whole"),
            Effect::Remove => None,
        };
    }
}

fn told_map() -> (Arc<ChunkMap>, Arc<Last>) {
    let last = Arc::new(Last::default());
    let map = Arc::into_inner(small_map()).expect("not shared yet");
    (Arc::new(map.with_journal(last.clone() as Arc<dyn Journal>)), last)
}

/// The last change of a key that a journal hears of is the last that happened.
#[track_caller]
fn last_told_is_there(first: fn(&ChunkMap), second: fn(&ChunkMap)) {
    model(move || {
        let (map, last) = told_map();
        let other = spawn(&map, first);
        second(&map);
        other.join().expect("no panic");
        assert_eq!(*last.0.lock().expect("no panic"), map.get(b"k").expect("a fine key"));
    });
}

#[test]
fn loom_told_insert_insert() {
    last_told_is_there(
        |map| drop(map.put(b"k", b"1").expect("memory")),
        |map| drop(map.put(b"k", b"2").expect("memory")),
    );
}

#[test]
fn loom_told_insert_remove() {
    last_told_is_there(
        |map| drop(map.put_if_absent(b"k", b"1").expect("memory")),
        |map| drop(map.remove(b"k").expect("a fine key")),
    );
}

#[test]
fn loom_told_remove_insert() {
    last_told_is_there(
        |map| {
            map.put(b"k", b"1").expect("memory");
            map.remove(b"k").expect("a fine key");
        },
        |map| drop(map.put(b"k", b"2").expect("memory")),
    );
}

/// A reader sees a value only after the journal has heard of it.
#[test]
fn loom_told_before_read() {
    model(|| {
        let (map, last) = told_map();
        let other = spawn(&map, |map| drop(map.put(b"k", b"1").expect("memory")));
        if let Some(value) = map.get(b"k").expect("a fine key") {
            assert_eq!(*last.0.lock().expect("no panic"), Some(value));
        }
        other.join().expect("no panic");
    });
}

/// A walk by columns sees a value before or after an update in place, never half of it; and finds a record that a copy
/// replaced.
#[test]
fn loom_columns_update() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value.iter_mut().for_each(|byte| *byte += 1)).expect("memory")
        });
        let mut seen = Vec::new();
        let flow = map.scan_columns(.., Widths::new(1, 16).expect("not wide"), |piece| {
            match piece {
                Piece::Batch(batch) => {
                    seen.extend((0..batch.len()).map(|at| batch.values().item(at).to_vec()))
                }
                Piece::Entry(_, value) => seen.push(value.to_vec()),
            }
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.expect("no closure").is_continue());
        assert!(seen == [[1; 16]] || seen == [[2; 16]], "half an update: {seen:?}");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2; 16]));
    });
}

/// A look-up by columns beside an insert that rebalances and a remove sees what was there all the time.
#[test]
fn loom_columns_rebalance() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| {
            map.put(b"b", b"2").expect("memory");
            map.remove(b"a").expect("a fine key");
        });
        let mut count = 0;
        let flow =
            map.get_many_columns(&[b"a", b"c"], Widths::new(1, 1).expect("not wide"), |piece| {
                count += match piece {
                    Piece::Batch(batch) => batch.len(),
                    Piece::Entry(..) => 1,
                };
                ControlFlow::<()>::Continue(())
            });
        assert!(flow.expect("no closure").is_continue());
        assert!(count == 1 || count == 2, "{count} of two keys, one of which stays");
        other.join().expect("no panic");
        assert_eq!(map.len_exact(), 2);
    });
}
