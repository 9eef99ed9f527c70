//! Walks keep their promise while writers run: `for_each` for every key alone, `scan_log` and
//! snapshots for one moment of the whole log.

use crate::adapter::{
    COLDEST, Configuration, IN_MEMORY, NASTIEST, ON_DISK, batch_pairs, configurations, contents,
    key, see, snapped, value,
};
use sapwood_hashlog::{Columns, HashLog, Snapshot};
use sapwood_testkit::case;
use sapwood_testkit::engine::Pair;
use sapwood_testkit::interleave::{self, Running, StartLine};
use sapwood_testkit::keyed::ledger::Ledger;
use sapwood_testkit::keyed::stress::KeyedRound;
use sapwood_testkit::keyed::{KeyedEngine as _, Walk};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

fn check(configuration: Configuration, round: &KeyedRound, seed: u64) {
    if let Err(told) = round.check(&configuration.adapter(), seed) {
        panic!("{configuration:?}, seed {seed}: {told}");
    }
}

#[test]
fn stable_keys_among_churning_ones() {
    // Many: an update that is lost at the end of a snapshot shows in one round of 200.
    case!().seeds(100, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1], COLDEST] {
            let round = KeyedRound {
                walker_count: 2,
                walks_per_walker: 12,
                is_stable: |index| index % 4 == 0,
                ..KeyedRound::few_keys(3, 120, 40, configuration.sizes())
            };
            check(configuration, &round, seed);
        }
    });
}

#[test]
fn many_keys_in_every_configuration() {
    case!().seeds(3, |seed| {
        for configuration in configurations() {
            let round = KeyedRound {
                walker_count: 2,
                walks_per_walker: 8,
                is_stable: |index| index % 3 == 0,
                ..KeyedRound::few_keys(3, 400, 300, configuration.sizes())
            };
            check(configuration, &round, seed);
        }
    });
}

/// Writers keep their books, `rounds` rounds of them, while `walk` runs.
fn among_writers<R>(
    configuration: Configuration,
    rounds: u32,
    seed: u64,
    walk: impl FnOnce(&HashLog, &Ledger, &Running) -> R,
) -> R {
    const WRITERS: u8 = 3;
    let adapter = configuration.adapter();
    let ledger = Ledger::new(WRITERS, 6, &configuration.lengths());
    ledger.fill(&adapter).unwrap();
    let writing = Running::new(usize::from(WRITERS));
    let walked = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (adapter, ledger, writing) = (&adapter, &ledger, &writing);
            scope.spawn(move || {
                let _writing = writing.guard();
                ledger.write(adapter, writer, rounds, seed).unwrap();
            });
        }
        interleave::seed_thread(seed);
        walk(&adapter.log, &ledger, &writing)
    });
    for walk in Walk::ALL {
        let before = ledger.before();
        let seen = adapter.pairs(walk).unwrap();
        ledger.after().check(&before, &seen).unwrap_or_else(|told| panic!("{walk:?}: {told}"));
    }
    adapter.log.check().unwrap();
    walked
}

/// By columns where the layout has them.
fn scanned(log: &HashLog) -> Vec<Pair> {
    if let Some(walk) = log.snapshot().unwrap().by_columns(Columns::Entries) {
        return batch_pairs(&walk, 0, 1).unwrap();
    }
    let mut pairs = Vec::new();
    let walk = log.scan_log(|key, value| see(&mut pairs, key, value));
    assert_eq!(walk, Ok(ControlFlow::Continue(())));
    pairs
}

#[test]
fn a_scan_of_the_log_is_one_moment() {
    case!().seeds(6, |seed| {
        for configuration in configurations() {
            among_writers(configuration, 60, seed, |log, ledger, writing| {
                while writing.any() {
                    let before = ledger.before();
                    let seen = scanned(log);
                    let told = ledger.after().check(&before, &seen);
                    told.unwrap_or_else(|told| panic!("{configuration:?}: {told}"));
                }
            });
        }
    });
}

/// However late and however often a snapshot is walked, and by however many threads.
#[test]
fn a_snapshot_stays_the_moment_it_was_taken_at() {
    case!().seeds(6, |seed| {
        for configuration in configurations() {
            among_writers(configuration, 60, seed, |log, ledger, writing| {
                while writing.any() {
                    let before = ledger.before();
                    let snapshot = log.snapshot().unwrap();
                    let after = ledger.after();
                    for _ in 0..20 {
                        interleave::pause();
                    }
                    let seen = snapped(&snapshot, 1).unwrap();
                    let told = after.check(&before, &seen);
                    told.unwrap_or_else(|told| panic!("{configuration:?}: {told}"));
                    let mut again = by_threads(&snapshot, 3);
                    again.sort_unstable();
                    assert_eq!(again, sorted(seen), "{configuration:?}: another moment");
                }
            });
        }
    });
}

fn sorted(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_unstable();
    pairs
}

/// What the parts of a snapshot hold, each walked by a thread of its own.
fn by_threads(snapshot: &Snapshot<'_>, parts: usize) -> Vec<Pair> {
    let walk = |part| {
        let mut pairs = Vec::new();
        let walk = snapshot.scan_part(part, parts, |key, value| see(&mut pairs, key, value));
        assert_eq!(walk, Ok(ControlFlow::Continue(())));
        pairs
    };
    std::thread::scope(|scope| {
        let walks: Vec<_> = (0..parts).map(|part| scope.spawn(move || walk(part))).collect();
        walks.into_iter().flat_map(|walk| walk.join().expect("a walk")).collect()
    })
}

/// Snapshots overlap in every order, and some are dropped before they are walked or half-way.
#[test]
fn many_snapshots_at_once() {
    case!().seeds(6, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1], IN_MEMORY[3], COLDEST, ON_DISK[3]] {
            among_writers(configuration, 60, seed, |log, ledger, writing| {
                let mut held = Vec::new();
                let mut turn = seed as usize;
                while writing.any() {
                    let before = ledger.before();
                    held.push((before, log.snapshot().unwrap(), ledger.after()));
                    interleave::pause();
                    if held.len() < 3 {
                        continue;
                    }
                    turn += 1;
                    let (before, snapshot, after) = held.swap_remove(turn % 3);
                    match turn % 4 {
                        0 => drop(snapshot),
                        1 => {
                            let first = snapshot.scan(|key, _| ControlFlow::Break(key.len()));
                            assert_eq!(first, Ok(ControlFlow::Break(8)));
                        }
                        _ => {
                            let seen = snapped(&snapshot, 2).unwrap();
                            let told = after.check(&before, &seen);
                            told.unwrap_or_else(|told| panic!("{configuration:?}: {told}"));
                        }
                    }
                }
            });
        }
    });
}

/// What a snapshot shows is what was there, to the byte, whatever is done to every entry since.
#[test]
fn every_way_of_writing_leaves_a_snapshot_alone() {
    for configuration in configurations() {
        let log = configuration.log();
        let was: BTreeMap<Vec<u8>, Vec<u8>> =
            (0..200).map(|index| (key(index).to_vec(), value(index).to_vec())).collect();
        for (key, value) in &was {
            log.put(key, value).unwrap();
        }
        let snapshot = log.snapshot().unwrap();
        for index in 0..260u64 {
            let (key, new) = (key(index), value(index + 1_000));
            match index % 8 {
                0 => log.put(&key, &new).unwrap(),
                1 => drop(log.update(&key, |value| value.fill(0xEE)).unwrap()),
                2 => drop(log.remove(&key).unwrap()),
                3 => drop(log.add(&key, 7).unwrap()),
                4 => drop(log.compare_and_put(&key, &value(index), &new).unwrap()),
                5 => drop(log.put_if_absent_or_update(&key, &new, |value| value[0] ^= 1).unwrap()),
                6 => {
                    log.remove(&key).unwrap();
                    log.put(&key, &new).unwrap();
                    log.update(&key, |value| value.fill(0xDD)).unwrap();
                }
                _ => drop(log.put_if_absent(&key, &new).unwrap()),
            }
        }
        let was: Vec<Pair> = was.into_iter().collect();
        assert_eq!(sorted(snapped(&snapshot, 1).unwrap()), was, "{configuration:?}");
        assert_eq!(sorted(snapped(&snapshot, 5).unwrap()), was, "{configuration:?}");
        drop(snapshot);
        assert_ne!(contents(&log), was);
        log.check().unwrap();
    }
}

/// Of a log whose pages hold more than a batch, and of one whose batches hold many pages.
#[test]
fn batches_are_full_but_for_the_last() {
    for page_bytes in [64, 4 << 10, 64 << 10, 2 << 20] {
        let configuration = Configuration { page_bytes, ..IN_MEMORY[1] };
        let log = configuration.log();
        for index in 0..10_000 {
            log.put(&key(index), &value(index)).unwrap();
        }
        for index in (0..10_000).filter(|index| index % 7 < 3) {
            log.remove(&key(index)).unwrap();
        }
        let left = log.len().unwrap();
        let snapshot = log.snapshot().unwrap();
        let walk = snapshot.by_columns(Columns::Addresses).expect("records of fixed length");
        let mut lens = Vec::new();
        let whole = walk.scan(|batch| {
            lens.push(batch.len());
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(whole, Ok(ControlFlow::Continue(())));
        assert_eq!(lens.iter().sum::<usize>(), left);
        assert!(lens[..lens.len() - 1].iter().all(|len| *len == 1024), "{lens:?}");
        let stopped = walk.scan(|batch| ControlFlow::Break(batch.len()));
        assert_eq!(stopped, Ok(ControlFlow::Break(1024)));
        let both = [0, 1].map(|part| batch_pairs(&walk, part, 2).unwrap());
        assert_eq!(sorted(both.concat()), sorted(snapped(&snapshot, 1).unwrap()));
    }
    let variable = NASTIEST.log();
    assert!(variable.snapshot().unwrap().by_columns(Columns::Values).is_none());
}

#[test]
fn a_walk_stops_when_told() {
    for configuration in configurations() {
        let log = configuration.log();
        for index in 0..100 {
            log.put(&key(index), &value(index)).unwrap();
        }
        for stop in [1, 50, 100] {
            let snapshot = log.snapshot().unwrap();
            let mut counts = [0; 3];
            let [one, two, three] = &mut counts;
            let count = |count: &mut u32| {
                *count += 1;
                if *count == stop {
                    ControlFlow::Break("enough")
                } else {
                    ControlFlow::Continue(())
                }
            };
            let told = Ok(ControlFlow::Break("enough"));
            assert_eq!(log.for_each(|_, _| count(one)), told);
            assert_eq!(log.scan_log(|_, _| count(two)), told);
            assert_eq!(snapshot.scan(|_, _| count(three)), told);
            assert_eq!(counts, [stop; 3]);
        }
    }
}

/// Keys that stay are seen once by `for_each`, also while the index grows from next to nothing.
#[test]
fn for_each_sees_every_key_that_stays_once_while_the_index_grows() {
    const STABLE: u64 = 300;
    case!().seeds(4, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1], IN_MEMORY[2], COLDEST] {
            let last = if configuration == COLDEST { 2_000 } else { 8_000 };
            let log = configuration.log();
            for index in 0..STABLE {
                log.put(&key(index), &value(index)).unwrap();
            }
            let growing = Running::new(1);
            let start = StartLine::new(3);
            std::thread::scope(|scope| {
                let (log, growing, start) = (&log, &growing, &start);
                scope.spawn(move || {
                    let _growing = growing.guard();
                    interleave::seed_thread(seed);
                    start.wait();
                    for index in STABLE..last {
                        log.put(&key(index), &value(index)).unwrap();
                        if index % 32 == 0 {
                            interleave::pause();
                        }
                    }
                });
                for parts in [1, 4] {
                    scope.spawn(move || {
                        start.wait();
                        let mut walks = 0;
                        while walks == 0 || growing.any() {
                            see_stable(log, parts, STABLE);
                            walks += 1;
                        }
                    });
                }
            });
            assert_eq!(log.len_exact(), Ok(last as usize));
            log.check().unwrap();
        }
    });
}

fn see_stable(log: &HashLog, parts: usize, stable: u64) {
    let mut seen = BTreeMap::new();
    for part in 0..parts {
        let walk = log.for_each_part(part, parts, |key, value| {
            let earlier = seen.insert(key.to_vec(), value.to_vec());
            assert_eq!(earlier, None, "{key:?} twice");
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(walk, Ok(ControlFlow::Continue(())));
    }
    for index in 0..stable {
        assert_eq!(seen.get(&key(index)[..]), Some(&value(index).to_vec()), "key {index}");
    }
}
