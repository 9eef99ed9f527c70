//! An entry at random: each can be chosen, none that is gone, and many buckets share the choice.

use crate::adapter::{COLDEST, IN_MEMORY, NASTIEST, configurations, contents, key, value};
use rand::RngExt as _;
use sapwood_hashlog::{HashLog, Options};
use sapwood_testkit::case;
use sapwood_testkit::interleave::{self, Running};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_entry_can_be_chosen_and_none_that_is_gone() {
    case!().seeds(2, |seed| {
        let mut rng = sapwood_testkit::rng(seed);
        for configuration in configurations() {
            for entries in [0, 1, 2, 60] {
                let log = configuration.log();
                for index in 0..2 * entries {
                    log.put(&key(index), &value(index)).unwrap();
                }
                for index in entries..2 * entries {
                    log.remove(&key(index)).unwrap();
                }
                let right: BTreeSet<_> = contents(&log).into_iter().collect();
                // 60 in at least 2 buckets: none is missed in so many draws but by one in e^25.
                let draws = [0, 1, u64::MAX].into_iter().chain((0..6_000).map(|_| rng.random()));
                let chosen: BTreeSet<_> =
                    draws.filter_map(|random| log.sample(random).unwrap()).collect();
                assert_eq!(chosen, right, "{configuration:?}");
            }
        }
    });
}

/// By the bits above those that name the bucket.
#[test]
fn entries_of_one_bucket_are_chosen_alike() {
    let log = IN_MEMORY[1].log();
    for index in 0..3_000 {
        log.put(&key(index), &value(index)).unwrap();
    }
    let mut rng = sapwood_testkit::rng(7);
    for bucket in 0..20 {
        let mut counts = BTreeMap::new();
        for _ in 0..2_000 {
            let (key, _) = log.sample(rng.random::<u64>() << 16 | bucket).unwrap().unwrap();
            *counts.entry(key).or_insert(0_u32) += 1;
        }
        let even = 2_000 / counts.len() as u32;
        assert!(counts.values().all(|count| (even / 2..2 * even).contains(count)), "{counts:?}");
    }
}

/// Over all buckets, an entry of a full one comes out a few times less than one that is alone.
#[test]
fn no_entry_is_favoured_much() {
    const ENTRIES: u64 = 2_000;
    let log = NASTIEST.log();
    for index in 0..ENTRIES {
        log.put(&key(index), &value(index)).unwrap();
    }
    let mut rng = sapwood_testkit::rng(11);
    let mut counts = BTreeMap::new();
    for _ in 0..50 * ENTRIES {
        *counts.entry(log.sample(rng.random()).unwrap().unwrap().0).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.len() as u64, ENTRIES);
    let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
    assert!(*least >= 5 && *most <= 1_000, "{least} to {most} times");
}

#[test]
fn one_entry_in_a_large_index_is_found_from_everywhere() {
    let mut options = Options::default();
    options.expected_entries = 200_000;
    let log = HashLog::in_memory(options).unwrap();
    let mut rng = sapwood_testkit::rng(3);
    assert_eq!(log.sample(rng.random()), Ok(None));
    log.put(&key(1), &value(1)).unwrap();
    for _ in 0..100 {
        let one = (key(1).to_vec(), value(1).to_vec());
        assert_eq!(log.sample(rng.random()), Ok(Some(one)));
    }
}

#[test]
fn among_a_thread_that_puts_and_removes() {
    case!().seeds(3, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1], COLDEST] {
            let log = configuration.log();
            log.put(&key(0), &value(0)).unwrap();
            let writing = Running::new(1);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _writing = writing.guard();
                    interleave::seed_thread(seed);
                    for index in 1..4_000 {
                        log.put(&key(index), &value(index)).unwrap();
                        if index > 100 {
                            log.remove(&key(index - 100)).unwrap();
                        }
                    }
                });
                let mut rng = sapwood_testkit::rng(seed);
                while writing.any() {
                    // The first one is there throughout.
                    let (found, shown) = log.sample(rng.random()).unwrap().expect("an entry");
                    let index = u64::from_le_bytes(shown[..].try_into().unwrap());
                    assert_eq!(found, key(index));
                }
            });
            log.check().unwrap();
        }
    });
}
