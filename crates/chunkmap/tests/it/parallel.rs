//! No thread waits for writers of other keys: not readers, not writers, not even rebalances of the
//! chunk that both keys are in.
//!
//! One thread parks inside a closure on key `m` and does not come out before the other thread has
//! done all of its work; if that work waited for the parked thread, the watchdog would tell.

use crate::adapter::{ALL, CONFIGURATIONS, contents, map};
use sapwood_chunkmap::{ChunkMap, Compute, Computed, Direction, Upsert};
use sapwood_testkit::case;
use std::ops::ControlFlow;
use std::sync::mpsc;

const PARKED: &[u8] = b"m";

fn key(index: u32) -> Vec<u8> {
    // Half of them before `m`, half behind.
    let side = [b"l", b"m"][index as usize % 2];
    [&side[..], &index.to_be_bytes()[..]].concat()
}

/// Parks one thread inside `park` while `work` runs; then both are done.
fn beside(
    map: &ChunkMap,
    park: impl FnOnce(&ChunkMap, &dyn Fn()) + Send,
    work: impl FnOnce(&ChunkMap),
) {
    let (inside, wait_inside) = mpsc::channel();
    let (done, wait_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            park(map, &|| {
                inside.send(()).expect("the other thread waits");
                // Ends when `done` is dropped, also by a panic of the work.
                let _ = wait_done.recv();
            });
        });
        wait_inside.recv().expect("the parked thread comes in");
        work(map);
        drop(done);
    });
}

/// Every kind of write and read on other keys, with hundreds of inserts around `m`.
fn work_on_other_keys(map: &ChunkMap) {
    for index in 0..600 {
        assert_eq!(map.put(&key(index), b"x"), Ok(index < 8));
    }
    for index in 0..600 {
        let key = key(index);
        assert_eq!(map.put_if_absent(&key, b"no"), Ok(false));
        assert_eq!(map.update(&key, |value| value.resize(30)), Ok(Some(Ok(()))));
        let updated = map.put_if_absent_or_update(&key, b"", |value| value.fill(b'y'));
        assert_eq!(updated, Ok(Upsert::Updated(())));
        assert_eq!(map.get(&key), Ok(Some(vec![b'y'; 30])));
        let replace = |_: Option<&[u8]>| Compute::Replace(b"z".to_vec());
        assert_eq!(map.compute(&key, replace), Ok(Computed::Replaced));
        if index >= 8 {
            assert_eq!(map.remove(&key), Ok(true));
        }
    }
    assert_eq!(map.first().unwrap().unwrap().key(), key(0));
    assert_eq!(map.last().unwrap().unwrap().key(), key(7));
    assert_eq!(map.range(..PARKED).next_back().unwrap().unwrap().key(), key(6));
    assert_eq!(map.range(&b"m\0"[..]..).count(), 4);
}

/// Keys alone can be read past a value that is under change.
fn read_keys_past_the_parked_one(map: &ChunkMap) {
    assert_eq!(map.len_exact(), 9);
    assert_eq!(map.contains_key(PARKED), Ok(true));
    for direction in [Direction::Ascending, Direction::Descending] {
        let mut seen = false;
        let walked = map.scan_keys(ALL, direction, |key| {
            seen |= key == PARKED;
            ControlFlow::<()>::Continue(())
        });
        assert_eq!((walked, seen), (Ok(ControlFlow::Continue(())), true));
    }
}

fn few_keys(configuration: (usize, usize)) -> ChunkMap {
    let map = map(configuration);
    map.put(PARKED, b"before").unwrap();
    for index in 0..8 {
        map.put(&key(index), b"x").unwrap();
    }
    map
}

#[test]
fn a_parked_update_holds_nobody_else_up() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            // In place, grown into another slice before and after the others' rebalances, shrunk.
            for (before, after) in [(6, 6), (6, 700), (700, 700), (700, 2), (0, 0)] {
                let map = few_keys(configuration);
                let park = |map: &ChunkMap, wait: &dyn Fn()| {
                    let update = map.update(PARKED, |value| {
                        value.resize(before).unwrap();
                        wait();
                        value.resize(after).unwrap();
                        value.fill(b'!');
                    });
                    assert_eq!(update, Ok(Some(())));
                };
                beside(&map, park, |map| {
                    work_on_other_keys(map);
                    read_keys_past_the_parked_one(map);
                });
                assert_eq!(map.get(PARKED), Ok(Some(vec![b'!'; after])));
                assert_eq!(contents(&map).len(), 9);
                map.check().unwrap();
            }
        }
    });
}

#[test]
fn a_parked_compute_holds_nobody_else_up_nor_readers_of_its_key() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            for replace in [true, false] {
                let map = few_keys(configuration);
                let park = |map: &ChunkMap, wait: &dyn Fn()| {
                    let computed = map.compute(PARKED, |value| {
                        assert_eq!(value, Some(&b"before"[..]));
                        wait();
                        assert_eq!(value, Some(&b"before"[..]));
                        match replace {
                            true => Compute::Replace(b"after".to_vec()),
                            false => Compute::Remove,
                        }
                    });
                    let right = if replace { Computed::Replaced } else { Computed::Removed };
                    assert_eq!(computed, Ok(right));
                };
                beside(&map, park, |map| {
                    work_on_other_keys(map);
                    assert_eq!(map.get(PARKED), Ok(Some(b"before".to_vec())));
                });
                let after = replace.then(|| b"after".to_vec());
                assert_eq!(map.get(PARKED), Ok(after));
                map.check().unwrap();
            }
        }
    });
}

#[test]
fn a_parked_reader_holds_nobody_up_not_even_writers_of_its_key() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            let map = few_keys(configuration);
            let park = |map: &ChunkMap, wait: &dyn Fn()| {
                let read = map.get_with(PARKED, |value| {
                    wait();
                    assert_eq!(value, b"before", "bytes changed under a reader");
                });
                assert_eq!(read, Ok(Some(())));
            };
            beside(&map, park, |map| {
                work_on_other_keys(map);
                assert_eq!(map.update(PARKED, |value| value.fill(b'u')), Ok(Some(())));
                assert_eq!(map.get(PARKED), Ok(Some(b"uuuuuu".to_vec())));
                assert_eq!(map.remove(PARKED), Ok(true));
                assert_eq!(map.put(PARKED, b"again"), Ok(false));
            });
            assert_eq!(map.get(PARKED), Ok(Some(b"again".to_vec())));
            map.check().unwrap();
        }
    });
}

#[test]
fn a_parked_scan_holds_nobody_up() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            for direction in [Direction::Ascending, Direction::Descending] {
                let map = few_keys(configuration);
                let park = |map: &ChunkMap, wait: &dyn Fn()| {
                    let mut seen = Vec::new();
                    let flow = map.scan(ALL, direction, |key, value| {
                        if key == PARKED {
                            wait();
                            assert_eq!(value, b"before", "bytes changed under a scan");
                        }
                        seen.push(key.to_vec());
                        ControlFlow::<()>::Continue(())
                    });
                    assert_eq!(flow, Ok(ControlFlow::Continue(())));
                    // The first eight and `m` were there all the time.
                    assert!((0..8).all(|index| seen.contains(&key(index))), "{direction:?}");
                    assert!(seen.contains(&PARKED.to_vec()));
                    assert!(match direction {
                        Direction::Ascending => seen.is_sorted_by(|a, b| a < b),
                        Direction::Descending => seen.is_sorted_by(|a, b| a > b),
                    });
                };
                beside(&map, park, work_on_other_keys);
                map.check().unwrap();
            }
        }
    });
}
