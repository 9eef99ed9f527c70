//! Updates of entries where a walk met them: each planned key is changed once, whatever has become
//! of its record, and whatever others do meanwhile.

use crate::adapter::{Configuration, IN_MEMORY, ON_DISK, contents, key, present, value};
use sapwood_hashlog::{BatchError, Columns, Error, HashLog, RecordAddress, ValueMut};
use sapwood_testkit::case;
use sapwood_testkit::interleave::{self, Running, pause};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Logs of fixed records: pages of two records, of 170, of many; and where nothing is ever edited.
const FIXED: [Configuration; 5] = [
    IN_MEMORY[1],
    IN_MEMORY[3],
    Configuration { page_bytes: 2 << 20, ..IN_MEMORY[1] },
    ON_DISK[1],
    ON_DISK[3],
];

/// How entries are changed by place: one by one, or under an edit.
#[derive(Debug, Clone, Copy)]
enum By {
    One,
    Edit,
}

/// Each way in each log.
fn ways() -> impl Iterator<Item = (Configuration, By)> {
    FIXED.into_iter().flat_map(|configuration| [By::One, By::Edit].map(|by| (configuration, by)))
}

impl By {
    fn update<K: AsRef<[u8]>>(
        self,
        log: &HashLog,
        addresses: &[RecordAddress],
        keys: &[K],
        change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize, BatchError> {
        match self {
            By::One => log.update_at(addresses, keys, present(change)),
            By::Edit => log.edit().update_at(addresses, keys, present(change)),
        }
    }
}

/// Where a log's entries are, in log order, and their keys.
fn plan(log: &HashLog) -> (Vec<RecordAddress>, Vec<[u8; 8]>) {
    let (mut addresses, mut keys) = (Vec::new(), Vec::new());
    let snapshot = log.snapshot().unwrap();
    let walk = snapshot.by_columns(Columns::Addresses).expect("records of fixed length");
    let walk = walk.scan(|batch| {
        addresses.extend((0..batch.len()).filter_map(|at| batch.addresses().get(at)));
        keys.extend_from_slice(batch.keys().words().expect("keys of 8 bytes"));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(walk, Ok(ControlFlow::Continue(())));
    (addresses, keys)
}

fn add(delta: u64, counter: &mut ValueMut<'_>) {
    let sum = count_of(counter) + delta;
    counter.copy_from_slice(&value(sum));
}

fn count_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

fn with_counters(configuration: Configuration, count: u64) -> HashLog {
    let log = configuration.log();
    for index in 0..count {
        log.put(&key(index), &value(index)).unwrap();
    }
    log
}

#[test]
fn every_entry_of_a_plan_is_changed_once() {
    for (configuration, by) in ways() {
        let log = with_counters(configuration, 5_000);
        let (mut addresses, mut keys) = plan(&log);
        let before = contents(&log);
        let told = by.update(&log, &addresses, &keys, |at, value| add(1 + at as u64 % 7, value));
        assert_eq!(told, Ok(5_000), "{configuration:?}, {by:?}");
        let mut after: Vec<_> = before
            .iter()
            .map(|(key, value)| {
                let at = keys.iter().position(|planned| planned[..] == key[..]).expect("planned");
                (key.clone(), (count_of(value) + 1 + at as u64 % 7).to_le_bytes().to_vec())
            })
            .collect();
        assert_eq!(contents(&log), after, "{configuration:?}, {by:?}");
        // In another order, each twice.
        addresses.reverse();
        keys.reverse();
        let (addresses, keys) =
            ([&addresses[..], &addresses].concat(), [&keys[..], &keys].concat());
        assert_eq!(by.update(&log, &addresses, &keys, |_, value| add(1, value)), Ok(10_000));
        for (_, value) in &mut after {
            *value = (count_of(value) + 2).to_le_bytes().to_vec();
        }
        assert_eq!(contents(&log), after, "{configuration:?}, {by:?}");
        log.check().unwrap();
    }
}

/// What was removed stays so; what was replaced or moved is found by its key.
#[test]
fn stale_addresses_are_not_believed() {
    for (configuration, by) in ways() {
        let log = with_counters(configuration, 3_000);
        let (addresses, keys) = plan(&log);
        let held = log.snapshot().unwrap();
        for index in 0..3_000 {
            match index % 5 {
                0 => assert_eq!(log.remove(&key(index)), Ok(true)),
                1 => log.put(&key(index), &value(100_000 + index)).unwrap(),
                2 => drop(log.update(&key(index), |value| add(200_000, value)).unwrap()),
                _ => {}
            }
        }
        drop(held);
        for index in (0..3_000).filter(|index| index % 10 == 0) {
            log.put(&key(index), &value(300_000 + index)).unwrap();
        }
        for round in 0..3 {
            let there = by.update(&log, &addresses, &keys, |_, value| add(1, value));
            assert_eq!(there, Ok(2_700), "{configuration:?}, {by:?}, round {round}");
            log.compact([0.3, 0.6, 1.0][round]).unwrap();
        }
        for index in 0..3_000 {
            let expected = match index % 10 {
                0 => Some(300_003 + index),
                5 => None,
                1 | 6 => Some(100_003 + index),
                2 | 7 => Some(200_003 + index),
                _ => Some(index + 3),
            };
            let found = log.get_with(&key(index), count_of).unwrap();
            assert_eq!(found, expected, "{configuration:?}, {by:?}, key {index}");
        }
        log.check().unwrap();
    }
}

/// A place of another log, of other keys, or of none.
#[test]
fn wrong_addresses_are_not_believed() {
    for (configuration, by) in ways() {
        let log = with_counters(configuration, 2_000);
        let (addresses, keys) = plan(&log);
        for page_bytes in [64, 256, 4 << 10, 2 << 20] {
            let other = with_counters(Configuration { page_bytes, ..IN_MEMORY[1] }, 4_000);
            let (others, _) = plan(&other);
            for wrong in [&others[..2_000], &others[2_000..], &[RecordAddress::default(); 2_000]] {
                let there = by.update(&log, wrong, &keys, |_, value| add(1, value));
                assert_eq!(there, Ok(2_000), "{configuration:?}, {by:?}");
            }
        }
        // Any word may be given, also beside true addresses.
        let words = [u64::MAX, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3, 1, 0];
        let mut mixed = addresses.clone();
        for (place, word) in mixed.iter_mut().step_by(3).zip(words.iter().cycle()) {
            *place = RecordAddress::from_word(*word);
        }
        assert_eq!(
            by.update(&log, &mixed, &keys, |_, value| add(1, value)),
            Ok(2_000),
            "{configuration:?}, {by:?}"
        );
        let mut shifted = addresses.clone();
        shifted.rotate_left(1);
        assert_eq!(by.update(&log, &shifted, &keys, |_, value| add(1, value)), Ok(2_000));
        let counts = (0..2_000).map(|index| (key(index).to_vec(), value(index + 14).to_vec()));
        let mut counts: Vec<_> = counts.collect();
        counts.sort_unstable();
        assert_eq!(contents(&log), counts, "{configuration:?}, {by:?}");
        log.check().unwrap();
    }
}

#[test]
fn an_error_says_what_is_done() {
    for (configuration, by) in ways() {
        let log = with_counters(configuration, 1_500);
        let (addresses, keys) = plan(&log);
        for bad in [0, 1, 700, 1_400, 1_499] {
            let mut keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            keys[bad] = b"short";
            let mut changed = vec![false; keys.len()];
            let told = by.update(&log, &addresses, &keys, |at, _| changed[at] = true);
            let error = Error::KeyLength { len: 5, min: 8, max: 8 };
            assert_eq!(told, Err(BatchError { done: bad, error }), "{configuration:?}, {by:?}");
            assert!(changed[..bad].iter().all(|changed| *changed), "{configuration:?}, {by:?}");
            assert!(!changed[bad..].iter().any(|changed| *changed), "{configuration:?}, {by:?}");
        }
        let unequal = AssertUnwindSafe(|| by.update(&log, &addresses[1..], &keys, |_, _| ()));
        assert!(catch_unwind(unequal).is_err());
    }
}

/// Where it can end, and what is left, when a closure panics, calls the log, or is a call itself.
#[test]
fn closures_may_panic_and_call_the_log() {
    for (configuration, by) in ways() {
        let log = with_counters(configuration, 1_500);
        let (addresses, keys) = plan(&log);
        let panics = AssertUnwindSafe(|| {
            by.update(&log, &addresses, &keys, |at, value| {
                assert!(at != 1_200, "the closure's own panic");
                add(1, value);
            })
        });
        assert!(catch_unwind(panics).is_err());
        let changed = |at: usize| log.get_with(&keys[at], count_of).unwrap().unwrap();
        let first = changed(0);
        let there = by.update(&log, &addresses, &keys, |at, value| {
            if at > 0 {
                return add(1, value);
            }
            assert_eq!(log.get_with(&keys[1], count_of).unwrap().unwrap(), changed(1));
            log.put(b"inserted", &[0; 8]).unwrap();
            assert_eq!(log.snapshot().err(), Some(Error::WouldBlock));
            // One that has just been changed, and lies near: refused or done, but not waited for.
            let near = log.update(&keys[1], |_| ());
            assert!(matches!(near, Ok(Some(())) | Err(Error::WouldBlock)), "{near:?}");
            let nested = by.update(&log, &addresses[..1], &[b"inserted"], |_, value| add(5, value));
            assert_eq!(nested, Ok(1));
            add(1, value);
        });
        assert_eq!((there, changed(0)), (Ok(1_500), first + 1));
        assert_eq!(log.get(b"inserted"), Ok(Some(value(5).to_vec())));
        // No thread is left that holds anything.
        assert_eq!(log.len_exact(), Ok(1_501));
        assert_eq!(log.update(&keys[1], |value| add(1, value)), Ok(Some(())));
        log.snapshot().unwrap();
        log.compact(1.0).unwrap();
        log.check().unwrap();
    }
}

/// Adds, puts, removals, snapshots, compactions and two that update by addresses at once: every
/// counter ends as what was added to it, each planned key once.
#[test]
fn among_writers_every_planned_key_is_changed_once() {
    const COUNTERS: u64 = 600;
    const ROUNDS: u64 = 25;
    case!().seeds(6, |seed| {
        for configuration in &FIXED[..3] {
            let log = configuration.log();
            for index in 0..COUNTERS {
                log.put(&key(index), &value(0)).unwrap();
            }
            let counter_of = |key: &[u8; 8]| (0..COUNTERS).position(|at| self::key(at) == *key);
            let added: Vec<AtomicU64> = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
            let placing = Running::new(2);
            std::thread::scope(|scope| {
                let (log, added, placing) = (&log, &added, &placing);
                for thread in 0..2 {
                    scope.spawn(move || {
                        let _placing = placing.guard();
                        interleave::seed_thread(seed * 7 + thread);
                        for round in 0..ROUNDS {
                            let (addresses, keys) = plan(log);
                            let counters: Vec<_> = keys.iter().map(counter_of).collect();
                            pause();
                            let delta = 1 + round % 3;
                            let by = [By::One, By::Edit][(thread + round) as usize % 2];
                            let there = by.update(log, &addresses, &keys, |at, value| {
                                add(if counters[at].is_some() { delta } else { 0 }, value);
                            });
                            let planned: Vec<_> = counters.into_iter().flatten().collect();
                            assert_eq!(planned.len() as u64, COUNTERS, "a scan is one moment");
                            assert!(there.unwrap() >= planned.len(), "counters stay");
                            for at in planned {
                                added[at].fetch_add(delta, Relaxed);
                            }
                        }
                    });
                }
                for thread in 2..4 {
                    scope.spawn(move || {
                        interleave::seed_thread(seed * 7 + thread);
                        let mut turn = seed + thread;
                        while placing.any() {
                            turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            let at = (turn >> 33) % COUNTERS;
                            let other = key(COUNTERS + at % 50);
                            match (turn >> 60) % 8 {
                                0 => drop(log.remove(&other).unwrap()),
                                1 => log.put(&other, &value(turn)).unwrap(),
                                2 => {
                                    let many = [key(at), key((at + 1) % COUNTERS)];
                                    let there = log.update_many(&many, |_, value| add(2, value));
                                    assert_eq!(there, Ok(2));
                                    added[at as usize].fetch_add(2, Relaxed);
                                    added[(at as usize + 1) % COUNTERS as usize]
                                        .fetch_add(2, Relaxed);
                                }
                                _ => {
                                    log.add(&key(at), 1).unwrap();
                                    added[at as usize].fetch_add(1, Relaxed);
                                }
                            }
                            pause();
                        }
                    });
                }
                scope.spawn(move || {
                    interleave::seed_thread(seed * 7 + 4);
                    let mut turn = 0;
                    while placing.any() {
                        turn += 1;
                        if turn % 3 == 0 {
                            log.compact(0.5).unwrap();
                            continue;
                        }
                        let snapshot = log.snapshot().unwrap();
                        let mut seen = [Vec::new(), Vec::new()];
                        for seen in &mut seen {
                            let walk = snapshot.scan(|key, value| {
                                seen.push((key.to_vec(), value.to_vec()));
                                ControlFlow::<()>::Continue(())
                            });
                            assert_eq!(walk, Ok(ControlFlow::Continue(())));
                            seen.sort_unstable();
                            pause();
                        }
                        assert_eq!(seen[0], seen[1], "a snapshot stands still");
                    }
                });
            });
            for index in 0..COUNTERS {
                let sum = log.get_with(&key(index), count_of).unwrap();
                let right = added[index as usize].load(Relaxed);
                assert_eq!(sum, Some(right), "{configuration:?}, seed {seed}, counter {index}");
            }
            log.check().unwrap();
        }
    });
}
