//! Operations on single keys are linearizable, whatever else goes on.

use crate::adapter::{
    COLDEST, Configuration, IN_MEMORY, KEPT_SHORT, NASTIEST, ON_DISK, TOLD, configurations, key,
    value,
};
use sapwood_hashlog::{Cut, HashLog, Layout, ValueMut};
use sapwood_testkit::case;
use sapwood_testkit::interleave::{self, Running, StartLine};
use sapwood_testkit::keyed::stress::{Evidence, KeyedRound};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

fn round(configuration: Configuration, threads: usize, ops: usize, keys: u16) -> KeyedRound {
    KeyedRound::few_keys(threads, ops, keys, configuration.sizes())
}

fn check(configuration: Configuration, round: &KeyedRound, seed: u64) -> Evidence {
    match round.check(&configuration.adapter(), seed) {
        Ok(evidence) => evidence,
        Err(told) => panic!("{configuration:?}, seed {seed}: {told}"),
    }
}

#[test]
fn four_threads_on_three_keys() {
    let total = Cell::new(Evidence::default());
    case!().seeds(100, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1]] {
            let mut sum = total.get();
            sum += check(configuration, &round(configuration, 4, 60, 3), seed);
            total.set(sum);
        }
    });
    // Without operations at the same time the rounds would prove nothing.
    let Evidence { events, overlaps } = total.get();
    assert!(overlaps * 50 > events, "{overlaps} of {events} events overlap");
}

#[test]
fn four_threads_on_one_key() {
    case!().seeds(60, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1]] {
            check(configuration, &round(configuration, 4, 80, 1), seed);
        }
    });
}

#[test]
fn eight_threads_on_a_dozen_keys() {
    case!().seeds(30, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1]] {
            check(configuration, &round(configuration, 8, 60, 12), seed);
        }
    });
}

#[test]
fn five_threads_in_every_configuration() {
    case!().seeds(6, |seed| {
        for configuration in configurations().chain(KEPT_SHORT).chain(TOLD) {
            check(configuration, &round(configuration, 5, 150, 6), seed);
        }
    });
}

/// A page that goes holds zeros at once, and another page's records later. The key that is nothing
/// but zeros would be found in both.
#[test]
fn readers_never_see_a_page_that_went() {
    const PUTS: u64 = 60_000;
    case!().seeds(2, |_| {
        for configuration in [IN_MEMORY[1], IN_MEMORY[3], ON_DISK[1], ON_DISK[3]] {
            let log = configuration.log();
            log.put(&[0; 8], &[1; 8]).unwrap();
            let running = Running::new(1);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while running.any() {
                            let value = log.get_with(&[0; 8], |value| value[0]).unwrap();
                            assert!(matches!(value, Some(1..)), "{configuration:?}: {value:?}");
                        }
                    });
                }
                let _running = running.guard();
                for number in 0..PUTS {
                    // In memory compaction moves what a removal leaves; on disk the tail does.
                    log.put(&key(number % 64 + 1), &value(number)).unwrap();
                    log.remove(&key((number + 32) % 64 + 1)).unwrap();
                    log.put(&[0; 8], &[number as u8 | 1; 8]).unwrap();
                    if number.is_multiple_of(2_000) && configuration.memory_budget.is_none() {
                        log.compact(1.0).unwrap();
                    }
                }
            });
        }
    });
}

/// Keys in between are put once and push the few that are fought for out to the disk.
#[test]
fn five_threads_while_records_go_to_the_disk_and_come_back() {
    case!().seeds(12, |seed| {
        for configuration in ON_DISK.into_iter().chain(KEPT_SHORT) {
            let adapter = configuration.adapter();
            let running = Running::new(1);
            let told = std::thread::scope(|scope| {
                let (log, running) = (&adapter.log, &running);
                let _running = running.guard();
                scope.spawn(move || {
                    interleave::seed_thread(seed);
                    for index in 0u64.. {
                        if !running.any() {
                            break;
                        }
                        let ballast = (0xBA11 << 32) | (index % 2_000);
                        log.put(&ballast.to_be_bytes(), &value(index)).unwrap();
                        if index % 64 == 0 {
                            interleave::pause();
                        }
                    }
                });
                round(configuration, 4, 120, 6).check_among_others(&adapter, seed)
            });
            told.unwrap_or_else(|told| panic!("{configuration:?}, seed {seed}: {told}"));
        }
    });
}

/// Takes checkpoints and compacts while others run.
fn keep_house(log: &HashLog, running: &Running, seed: u64) {
    interleave::seed_thread(seed);
    for turn in seed.. {
        if !running.any() {
            return;
        }
        match turn % 4 {
            0 => drop(log.checkpoint(Cut::Full).unwrap()),
            1 | 3 => drop(log.compact(0.5).unwrap()),
            _ => drop(log.checkpoint(Cut::Incremental).unwrap()),
        }
        interleave::pause();
    }
}

#[test]
fn five_threads_while_the_log_is_checkpointed_and_compacted() {
    case!().seeds(12, |seed| {
        for configuration in ON_DISK.into_iter().chain(KEPT_SHORT) {
            let adapter = configuration.adapter();
            let running = Running::new(1);
            let told = std::thread::scope(|scope| {
                let _running = running.guard();
                scope.spawn(|| keep_house(&adapter.log, &running, seed));
                round(configuration, 5, 100, 8).check_among_others(&adapter, seed)
            });
            told.unwrap_or_else(|told| panic!("{configuration:?}, seed {seed}: {told}"));
            adapter.log.check().unwrap();
        }
    });
}

#[test]
fn long_rounds() {
    case!().seeds(3, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1], COLDEST] {
            check(configuration, &round(configuration, 4, 2_000, 8), seed);
        }
    });
}

/// Every delta is in the sum, however it was added, and every answer is a sum that was there.
#[test]
fn concurrent_adds_sum_exactly() {
    const THREADS: u64 = 4;
    const ADDS: u64 = 600;
    case!().seeds(3, |seed| {
        for configuration in configurations().chain(KEPT_SHORT).chain(TOLD) {
            let log = configuration.log();
            let sums = [const { AtomicI64::new(0) }; 5];
            let start = StartLine::new(THREADS as usize);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (log, sums, start) = (&log, &sums, &start);
                    scope.spawn(move || {
                        interleave::seed_thread(seed << 8 | thread);
                        start.wait();
                        for step in 0..ADDS {
                            let index = (step * 7 + thread + seed) % 5;
                            let delta = (step as i64 % 9) - 3;
                            add(log, &key(index), delta, step % 4);
                            sums[index as usize].fetch_add(delta, Ordering::Relaxed);
                        }
                    });
                }
            });
            for (index, sum) in (0..).zip(&sums) {
                let sum = sum.load(Ordering::Relaxed);
                let found = log.get(&key(index)).unwrap().expect("a counter");
                assert_eq!(found, sum.to_le_bytes(), "{configuration:?}, counter {index}");
            }
            log.check().unwrap();
        }
    });
}

/// Changes of length go to a copy of the record: none of them is lost either, nor what is written
/// in place while the copy is made.
#[test]
fn concurrent_changes_of_length_all_count() {
    const THREADS: u64 = 4;
    const CHANGES: u64 = 400;
    case!().seeds(3, |seed| {
        for configuration in configurations().filter(|it| it.layout == Layout::Variable) {
            let log = configuration.log();
            let start = StartLine::new(THREADS as usize);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (log, start) = (&log, &start);
                    scope.spawn(move || {
                        interleave::seed_thread(seed << 8 | thread);
                        start.wait();
                        for step in 0..CHANGES {
                            count_up(log, &key(step % 2), step % 3 == 0);
                        }
                    });
                }
            });
            for index in 0..2 {
                let count = counted(&log.get(&key(index)).unwrap().expect("it was put"));
                assert_eq!(count, THREADS * CHANGES / 2, "{configuration:?}");
            }
            log.check().unwrap();
        }
    });
}

fn counted(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Adds 1 to the first 8 bytes of a value whose length changes with it, one way or another.
fn count_up(log: &HashLog, key: &[u8], compared: bool) {
    let next = |bytes: &[u8]| {
        let count = counted(bytes) + 1;
        interleave::pause();
        value(count).repeat(2)[..8 + count as usize % 3 * 4].to_vec()
    };
    if !compared {
        let change = |bytes: &mut ValueMut<'_>| bytes.set(&next(bytes)).unwrap();
        log.put_if_absent_or_update(key, &value(1), change).unwrap();
        return;
    }
    loop {
        let done = match log.get(key).unwrap() {
            Some(before) => log.compare_and_put(key, &before, &next(&before)),
            None => log.put_if_absent(key, &value(1)),
        };
        if done.unwrap() {
            return;
        }
    }
}

fn add(log: &HashLog, key: &[u8], delta: i64, way: u64) {
    match way {
        0 | 1 => drop(log.add(key, delta).unwrap()),
        2 => log.add_many(&[(key, delta)]).unwrap(),
        _ => {
            let change = |bytes: &mut ValueMut<'_>| {
                let sum = i64::from_le_bytes((**bytes).try_into().unwrap()) + delta;
                bytes.copy_from_slice(&sum.to_le_bytes());
            };
            log.put_if_absent_or_update(key, &delta.to_le_bytes(), change).unwrap();
        }
    }
}

/// A put that returns between two reads of a batch is seen by the second, though the batch looked
/// both keys up at its begin.
#[test]
fn reads_of_a_batch_come_one_after_the_other() {
    for configuration in [NASTIEST, IN_MEMORY[0], IN_MEMORY[1]] {
        let log = configuration.log();
        let keys = [key(1), key(2)];
        for key in &keys {
            log.put(key, &value(1)).expect("it is small");
        }
        // What it holds on to is replaced by a put, and not changed in place.
        let _snapshot = log.snapshot().expect("room for a page");
        let mut seen = Vec::new();
        let read = |index: usize, found: Option<&[u8]>| {
            seen.push(found.map(<[u8]>::to_vec));
            if index == 0 {
                let put = || log.put(&keys[1], &value(2)).expect("it is small");
                std::thread::scope(|scope| scope.spawn(put).join().expect("no panic"));
            }
        };
        log.get_many(&keys, read).expect("they are in memory");
        assert_eq!(seen, [1, 2].map(|number| Some(value(number).to_vec())), "{configuration:?}");
    }
}
