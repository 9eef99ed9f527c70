//! Closures that call back into the map: it works or answers a clear error, and never hangs.
//!
//! A hang shows as the watchdog's message; nothing else here depends on time.

use crate::adapter::{ALL, CONFIGURATIONS, NASTIEST, contents, map};
use sapwood_chunkmap::{ChunkMap, Compute, Computed, Direction, Error, Upsert, ValueMut};
use sapwood_testkit::case;
use std::ops::ControlFlow;
use std::sync::Barrier;

const OWN: &[u8] = b"own";
const OTHER: &[u8] = b"other";

/// Everything that reads or writes one key, as one list of calls.
type Call = (&'static str, fn(&ChunkMap, &[u8]) -> Result<(), Error>);

const READS: [Call; 6] = [
    ("get", |map, key| map.get(key).map(drop)),
    ("get_with", |map, key| map.get_with(key, |_| ()).map(drop)),
    ("get_many", |map, key| map.get_many(&[key], |_, _| ())),
    ("floor", |map, key| map.floor(key).map(drop)),
    ("ceiling", |map, key| map.ceiling(key).map(drop)),
    ("range", |map, key| map.range(key..).next().transpose().map(drop)),
];

const WRITES: [Call; 9] = [
    ("put", |map, key| map.put(key, b"put").map(drop)),
    ("put, longer", |map, key| map.put(key, &[b'p'; 3_000]).map(drop)),
    ("put_many", |map, key| {
        let batch = map.put_many(&[(key, b"many")]);
        batch.map(drop).map_err(|stopped| stopped.error)
    }),
    ("update", |map, key| map.update(key, |value| value.fill(b'u')).map(drop)),
    ("update, longer", |map, key| {
        map.update(key, |value| value.resize(5_000))?.transpose().map(drop)
    }),
    ("put_if_absent_or_update", |map, key| {
        map.put_if_absent_or_update(key, b"new", |value| value.fill(b'v')).map(drop)
    }),
    ("compute", |map, key| map.compute(key, |_| Compute::Replace(b"computed".to_vec())).map(drop)),
    ("remove", |map, key| map.remove(key).map(drop)),
    ("remove_with", |map, key| map.remove_with(key, |_| ()).map(drop)),
];

/// Both keys of `map`, as they are before each call.
fn reset(map: &ChunkMap) {
    map.put(OWN, b"before").unwrap();
    map.put(OTHER, b"before").unwrap();
}

#[test]
fn a_reader_may_do_anything_and_its_bytes_stay() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            let map = map(configuration);
            for (name, call) in READS.iter().chain(&WRITES) {
                for key in [OWN, OTHER, b"absent"] {
                    reset(&map);
                    let read = map.get_with(OWN, |value| {
                        assert_eq!(call(&map, key), Ok(()), "{name} inside get_with");
                        assert_eq!(value, b"before", "bytes changed under get_with by {name}");
                    });
                    assert_eq!(read, Ok(Some(())));
                    // What the closure did, took place.
                    let fresh = ChunkMap::new();
                    reset(&fresh);
                    call(&fresh, key).unwrap();
                    assert_eq!(map.get(key), fresh.get(key), "{name}");
                    map.remove(b"absent").unwrap();
                }
            }
            map.check().unwrap();
        }
    });
}

#[test]
fn a_writer_is_told_that_it_calls_for_its_own_key() {
    /// Runs something inside a closure that changes `OWN`.
    type Outer = (&'static str, fn(&ChunkMap, &dyn Fn()) -> Result<(), Error>);
    let nested: [Outer; 4] = [
        ("update", |map, inside| map.update(OWN, |_| inside()).map(drop)),
        ("growing update", |map, inside| {
            let grow = |value: &mut ValueMut<'_>| {
                value.resize(9_000).unwrap();
                inside();
                value.resize(6).unwrap();
            };
            map.update(OWN, grow).map(drop)
        }),
        ("put_if_absent_or_update", |map, inside| {
            map.put_if_absent_or_update(OWN, b"", |_| inside()).map(drop)
        }),
        ("update of a value that is being read", |map, inside| {
            let _reader = map.floor(OWN)?;
            map.update(OWN, |_| inside()).map(drop)
        }),
    ];
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            let map = map(configuration);
            for (outer, run) in &nested {
                for (name, call) in &WRITES {
                    reset(&map);
                    let inside = || {
                        let answer = call(&map, OWN);
                        assert_eq!(answer, Err(Error::Reentrant), "{name} inside {outer}");
                    };
                    assert_eq!(run(&map, &inside), Ok(()));
                    let own = map.get(OWN).unwrap().expect("nothing removed it");
                    assert!(own.starts_with(b"before"), "{name} inside {outer}");
                }
                for (name, call) in &READS {
                    reset(&map);
                    let inside = || {
                        let answer = call(&map, OWN);
                        // A copy is under change where a reader is inside: then the old value
                        // shows.
                        let clear = [Ok(()), Err(Error::Reentrant)].contains(&answer);
                        assert!(clear, "{name} inside {outer}: {answer:?}");
                        if *outer == "update" {
                            assert_eq!(answer, Err(Error::Reentrant), "{name} inside {outer}");
                        }
                    };
                    assert_eq!(run(&map, &inside), Ok(()));
                }
            }
            map.check().unwrap();
        }
    });
}

#[test]
fn a_writer_may_do_anything_to_other_keys() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            let map = map(configuration);
            for (name, call) in READS.iter().chain(&WRITES) {
                for key in [OTHER, b"absent"] {
                    reset(&map);
                    let update = map.update(OWN, |value| {
                        assert_eq!(call(&map, key), Ok(()), "{name} inside update");
                        value.set(b"after").unwrap();
                    });
                    assert_eq!(update, Ok(Some(())));
                    assert_eq!(map.get(OWN), Ok(Some(b"after".to_vec())));
                    let computed = map.compute(OWN, |value| {
                        assert_eq!(value, Some(&b"after"[..]));
                        assert_eq!(call(&map, key), Ok(()), "{name} inside compute");
                        Compute::Replace(b"computed".to_vec())
                    });
                    assert_eq!(computed, Ok(Computed::Replaced));
                    map.remove(b"absent").unwrap();
                }
            }
            map.check().unwrap();
        }
    });
}

/// The chunk of the key under change is split and merged by the very closure that changes it.
#[test]
fn a_writer_may_rebalance_its_own_chunk() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            for grown_len in [3, 6, 40, 9_000] {
                let map = map(configuration);
                reset(&map);
                let around = |index: u32| [b"own", &index.to_be_bytes()[..]].concat();
                let update = map.update(OWN, |value| {
                    for index in 0..1_000 {
                        map.put(&around(index), b"x").unwrap();
                    }
                    value.resize(grown_len).unwrap();
                    for index in 0..990 {
                        assert_eq!(map.remove(&around(index)), Ok(true));
                    }
                    value.fill(b'!');
                });
                assert_eq!(update, Ok(Some(())));
                assert_eq!(map.get(OWN), Ok(Some(vec![b'!'; grown_len])));
                assert_eq!(map.len_exact(), 12);
                map.check().unwrap();
            }
        }
    });
}

#[test]
fn updates_nest_over_many_keys() {
    fn nest(map: &ChunkMap, depth: u8) {
        if depth == 40 {
            return;
        }
        let update = map.update(&[depth], |value| {
            value[0] += 1;
            nest(map, depth + 1);
            value.extend_from_slice(&[depth; 100]).unwrap();
            // Every key above is this thread's own.
            assert_eq!(map.update(&[depth / 2], |_| ()), Err(Error::Reentrant));
        });
        assert_eq!(update, Ok(Some(())));
    }
    case!().once(|| {
        let map = map(NASTIEST);
        for key in 0..40u8 {
            map.put(&[key], &[0]).unwrap();
        }
        nest(&map, 0);
        for key in 0..40u8 {
            let value = map.get(&[key]).unwrap().expect("still there");
            assert_eq!((value.len(), value[0], value[100]), (101, 1, key));
        }
        map.check().unwrap();
    });
}

/// Two threads, each inside an update of the key that the other one wants next.
#[test]
fn two_updates_that_want_each_other_do_not_wait_for_ever() {
    let inner: [Call; 6] = [WRITES[0], WRITES[3], WRITES[5], WRITES[6], WRITES[7], READS[0]];
    case!().once(|| {
        for configuration in [NASTIEST, CONFIGURATIONS[4]] {
            for (name, call) in inner {
                let map = map(configuration);
                reset(&map);
                let barrier = Barrier::new(2);
                let thread = |own: &'static [u8], other: &'static [u8]| {
                    let update = map.update(own, |value| {
                        barrier.wait();
                        let answer = call(&map, other);
                        barrier.wait();
                        value.set(b"after").unwrap();
                        answer
                    });
                    update.unwrap().expect("nothing could remove it")
                };
                let answers = std::thread::scope(|scope| {
                    let one = scope.spawn(|| thread(OWN, OTHER));
                    let two = scope.spawn(|| thread(OTHER, OWN));
                    [one.join().unwrap(), two.join().unwrap()]
                });
                assert_eq!(answers, [Err(Error::WouldBlock), Err(Error::WouldBlock)], "{name}");
                let both = [(OTHER.to_vec(), b"after".to_vec()), (OWN.to_vec(), b"after".to_vec())];
                assert_eq!(contents(&map), both, "{name}");
                map.check().unwrap();
            }
        }
    });
}

/// Outside of a closure the same call waits for the writer instead, and sees its value.
#[test]
fn who_holds_nothing_waits_for_a_writer() {
    case!().once(|| {
        let map = map(NASTIEST);
        reset(&map);
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                map.update(OWN, |value| {
                    barrier.wait();
                    for step in 0..20 {
                        value.set(&[step; 10]).unwrap();
                        std::thread::yield_now();
                    }
                    value.set(b"after").unwrap();
                })
                .unwrap();
            });
            barrier.wait();
            assert_eq!(map.get(OWN), Ok(Some(b"after".to_vec())));
            assert_eq!(map.update(OWN, |value| value.to_vec()), Ok(Some(b"after".to_vec())));
        });
    });
}

#[test]
fn a_compute_that_calls_for_its_own_key_comes_to_an_end() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            for (name, call) in READS.iter().chain(&WRITES) {
                // On a key that is there.
                let map = map(configuration);
                reset(&map);
                let mut answers = Vec::new();
                let computed = map.compute(OWN, |value| {
                    assert_eq!(value, Some(&b"before"[..]), "compute runs under {name}");
                    answers.push(call(&map, OWN));
                    Compute::Replace(b"after".to_vec())
                });
                assert_eq!(computed, Ok(Computed::Replaced), "{name}");
                let clear =
                    |answer: &Result<(), Error>| matches!(answer, Ok(()) | Err(Error::Reentrant));
                assert!(answers.iter().all(clear), "{name}: {answers:?}");
                assert_eq!(map.get(OWN), Ok(Some(b"after".to_vec())), "{name}");
                // On a key that is not, which the closure may put or remove itself.
                let mut runs = 0;
                let computed = map.compute(b"absent", |_| {
                    runs += 1;
                    assert!(runs < 100, "{name} makes compute run for ever");
                    let answer = call(&map, b"absent");
                    assert!(clear(&answer), "{name}: {answer:?}");
                    Compute::Replace(b"after".to_vec())
                });
                computed.unwrap();
                assert_eq!(map.get(b"absent"), Ok(Some(b"after".to_vec())), "{name}");
                map.check().unwrap();
            }
        }
    });
}

/// Each run of the closure changes the chunk that the new entry is to go to.
#[test]
fn a_compute_whose_closure_changes_its_chunk_comes_to_an_end() {
    /// Changes the chunk of the absent key, in the n-th run of the closure.
    type Change = (&'static str, fn(&ChunkMap, u32));
    let changes: [Change; 3] = [
        ("puts and removes its own key", |map, _| {
            map.put(b"absent", b"nested").unwrap();
            assert_eq!(map.remove(b"absent"), Ok(true));
        }),
        ("puts keys around its own", |map, run| {
            for index in 0..20u32 {
                let key = [b"absent", &(run * 20 + index).to_be_bytes()[..]].concat();
                map.put(&key, b"nested").unwrap();
            }
        }),
        ("puts and removes a key beside its own", |map, _| {
            map.put(b"absenu", b"nested").unwrap();
            assert_eq!(map.remove(b"absenu"), Ok(true));
        }),
    ];
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            for (name, change) in changes {
                let map = map(configuration);
                reset(&map);
                let mut runs = 0;
                let computed = map.compute(b"absent", |value| {
                    assert_eq!(value, None);
                    runs += 1;
                    assert!(runs < 1_000, "compute runs for ever: {name}, {configuration:?}");
                    change(&map, runs);
                    Compute::Replace(b"after".to_vec())
                });
                assert_eq!(computed, Ok(Computed::Inserted), "{name}");
                assert_eq!(map.get(b"absent"), Ok(Some(b"after".to_vec())), "{name}");
                map.check().unwrap();
            }
        }
    });
}

#[test]
fn a_scan_may_change_what_it_walks_over() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            for direction in [Direction::Ascending, Direction::Descending] {
                let map = map(configuration);
                for index in 0..300u32 {
                    map.put(&(index * 2).to_be_bytes(), b"old").unwrap();
                }
                let mut seen = Vec::new();
                let flow = map.scan(ALL, direction, |key, value| {
                    let Ok(number) = key.try_into().map(u32::from_be_bytes) else {
                        // A new key that the scan itself put ahead: it may be seen or not.
                        assert_eq!((key.last(), value), (Some(&b'+'), &b"new"[..]));
                        return ControlFlow::Continue(());
                    };
                    seen.push(number);
                    // The key it stands on, and a new one right behind it in key order.
                    match number / 2 % 4 {
                        0 => assert_eq!(map.remove(key), Ok(true)),
                        1 => assert_eq!(map.put(key, &[b'x'; 100]), Ok(true)),
                        2 => {
                            assert_eq!(map.update(key, |value| value.resize(50)), Ok(Some(Ok(()))))
                        }
                        _ => assert_eq!(map.put(&[key, b"+"].concat(), b"new"), Ok(false)),
                    }
                    assert_eq!(value, b"old", "bytes changed under a scan");
                    ControlFlow::<()>::Continue(())
                });
                assert_eq!(flow, Ok(ControlFlow::Continue(())));
                if direction == Direction::Descending {
                    seen.reverse();
                }
                let all: Vec<u32> = (0..300).map(|index| index * 2).collect();
                assert_eq!(seen, all, "{configuration:?} {direction:?}");
                map.check().unwrap();
            }
        }
    });
}

#[test]
fn an_iterator_may_be_held_while_its_thread_writes() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            let map = map(configuration);
            for index in 0..200u32 {
                map.put(&index.to_be_bytes(), &index.to_be_bytes()).unwrap();
            }
            let mut held = Vec::new();
            for entry in map.range(ALL) {
                let entry = entry.unwrap();
                let key = entry.key().to_vec();
                match held.len() % 4 {
                    0 => {
                        map.put(&key, b"changed").unwrap();
                    }
                    1 => {
                        map.update(&key, |value| value.fill(0xEE)).unwrap();
                    }
                    2 => {
                        map.remove(&key).unwrap();
                    }
                    _ => {
                        map.compute(&key, |_| Compute::Remove).unwrap();
                    }
                }
                held.push((entry, key));
            }
            assert_eq!(held.len(), 200);
            for (entry, key) in &held {
                assert_eq!((entry.key(), entry.value()), (&key[..], &key[..]));
            }
            drop(held);
            assert_eq!(map.len_exact(), 100);
            map.check().unwrap();
        }
    });
}

#[test]
fn a_batch_of_reads_may_write() {
    case!().once(|| {
        let map = map(NASTIEST);
        reset(&map);
        let keys = [OWN, OTHER, b"absent", OWN];
        let mut seen = [const { None }; 4];
        let batch = map.get_many(&keys, |index, value| {
            let before = value.map(<[u8]>::to_vec);
            map.put(keys[index], b"after").unwrap();
            assert_eq!(value, before.as_deref(), "bytes changed under get_many");
            seen[index] = Some(before);
        });
        assert_eq!(batch, Ok(()));
        assert!(seen.iter().all(Option::is_some));
        assert_eq!(map.get(b"absent"), Ok(Some(b"after".to_vec())));
        map.check().unwrap();
    });
}

/// A batch has found the chunks of later keys by the time that its closure puts those keys, in chunks that have taken
/// the place of these.
#[test]
fn a_batch_meets_what_its_closure_has_put() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            let late: Vec<[u8; 5]> = (0..8).map(|at| [b'o', b'w', b'n', 0, at]).collect();
            let keys: Vec<&[u8]> =
                std::iter::once(OWN).chain(late.iter().map(|key| &key[..])).collect();
            let put_late = |map: &ChunkMap| {
                // One rebalance and no more: much that is freed would begin an epoch, and the batch search anew.
                let before = map.stats().rebalances;
                for at in 0.. {
                    if map.stats().rebalances > before {
                        break;
                    }
                    map.put(format!("own{at:04}").as_bytes(), b"filler").unwrap();
                }
                for key in &late {
                    map.put(key, b"late").unwrap();
                }
            };

            let map = map(configuration);
            reset(&map);
            let mut read = 0;
            let batch = map.get_many(&keys, |index, value| {
                if index == 0 {
                    put_late(&map);
                }
                let expected: &[u8] = if index == 0 { b"before" } else { b"late" };
                assert_eq!(value, Some(expected), "key {index}");
                read += 1;
            });
            assert_eq!((batch, read), (Ok(()), keys.len()));
            map.check().unwrap();

            let map = crate::adapter::map(configuration);
            reset(&map);
            let changed = map.update_many(&keys, |index, value| {
                if index == 0 {
                    put_late(&map);
                }
                value[0] = b'!';
            });
            assert_eq!(changed.map_err(|stopped| stopped.error), Ok(keys.len()));
            assert_eq!(map.get(&late[7]), Ok(Some(b"!ate".to_vec())));
            map.check().unwrap();
        }
    });
}

#[test]
fn a_removed_value_may_be_put_back_while_it_is_read() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            let map = map(configuration);
            reset(&map);
            let removed = map.remove_with(OWN, |old| {
                // The entry is gone by now, so that its key is free for anything.
                assert_eq!(map.get(OWN), Ok(None));
                assert_eq!(map.remove(OWN), Ok(false));
                assert_eq!(map.put(OWN, b"again"), Ok(false));
                for index in 0..200u32 {
                    map.put(&index.to_be_bytes(), b"filler").unwrap();
                }
                assert_eq!(old, b"before", "a removed value's bytes changed under its reader");
            });
            assert_eq!(removed, Ok(Some(())));
            assert_eq!(map.get(OWN), Ok(Some(b"again".to_vec())));
            map.check().unwrap();
        }
    });
}

/// A value may have more readers than any counter of them holds.
#[test]
fn seventy_thousand_guards_on_one_value() {
    case!().once(|| {
        let map = map(NASTIEST);
        reset(&map);
        let held: Vec<_> = (0..70_000).map(|_| map.floor(OWN).unwrap().unwrap()).collect();
        let update = map.put_if_absent_or_update(OWN, b"", |value| value.fill(b'x'));
        assert_eq!(update, Ok(Upsert::Updated(())));
        assert_eq!(map.get(OWN), Ok(Some(b"xxxxxx".to_vec())));
        assert!(held.iter().all(|entry| entry.value() == b"before"));
        assert_eq!(map.remove(OWN), Ok(true));
        assert!(held.iter().all(|entry| entry.value() == b"before"));
        drop(held);
        reset(&map);
        assert_eq!(map.update(OWN, |value| value.to_vec()), Ok(Some(b"before".to_vec())));
        map.check().unwrap();
    });
}
