//! A walk in steps visits every key that stays exactly once, whatever happens between two steps and
//! whatever cursor it begins with.

use crate::adapter::{
    COLDEST, Configuration, IN_MEMORY, KEPT_SHORT, NASTIEST, ON_DISK, configurations, contents,
    key, stepped, value,
};
use rand::RngExt as _;
use sapwood_disk::{Faults, ReadFault, SimDisk};
use sapwood_hashlog::{Cut, HashLog, Layout, Options};
use sapwood_testkit::case;
use sapwood_testkit::engine::Pair;
use sapwood_testkit::interleave::{self, Running, StartLine};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;

fn filled(configuration: Configuration, entries: u64) -> HashLog {
    let log = configuration.log();
    put(&log, 0..entries);
    log
}

fn put(log: &HashLog, indexes: std::ops::Range<u64>) {
    for index in indexes {
        log.put(&key(index), &value(index)).unwrap();
    }
}

fn sorted(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_unstable();
    pairs
}

/// That the first `stable` keys were seen once each, and none of the others more often.
#[track_caller]
fn assert_stable(pairs: &[Pair], stable: u64) {
    let mut seen = BTreeMap::new();
    for (key, value) in pairs {
        assert_eq!(seen.insert(key, value), None, "{key:?} twice");
    }
    for index in 0..stable {
        let right = (key(index).to_vec(), value(index).to_vec());
        assert_eq!(seen.get(&right.0), Some(&&right.1), "key {index}");
    }
}

#[test]
fn steps_of_every_length_over_tables_of_every_size() {
    for configuration in configurations() {
        for entries in [0, 1, 2, 13, 700] {
            let log = filled(configuration, entries);
            for index in (0..entries).filter(|index| index % 3 == 0) {
                log.remove(&key(index)).unwrap();
            }
            let right = contents(&log);
            for step in [0, 1, 7, 100, usize::MAX] {
                let mut steps = 1;
                let seen = stepped(&log, step, || steps += 1).unwrap();
                assert_eq!(sorted(seen), right, "{configuration:?}, {entries} by {step}");
                let most = right.len().checked_div(step).unwrap_or(log.stats().buckets as usize);
                assert!(steps <= most + 1, "{steps} steps of {step} for {} entries", right.len());
            }
        }
    }
}

/// A step is as long as it was asked for, and little longer.
#[test]
fn a_step_visits_what_it_was_asked_for() {
    for configuration in configurations() {
        let log = filled(configuration, 3_000);
        // Beside a small budget the index stays small, and buckets hold more.
        let bucket = 3_000 / log.stats().buckets as usize + 40;
        for step in [1, 10, 100, 1_000] {
            let mut cursor = 0;
            loop {
                let mut visited = 0;
                cursor = log.scan_from(cursor, step, |_, _| visited += 1).unwrap();
                assert!(visited <= 2 * step + bucket, "{configuration:?}: {visited} by {step}");
                if cursor == 0 {
                    break;
                }
                assert!(visited >= step, "{configuration:?}: {visited} by {step}");
            }
        }
    }
}

/// Few entries in many buckets take few steps, each of which passes over what is empty.
#[test]
fn few_entries_in_a_large_index() {
    let mut options = Options::default();
    options.expected_entries = 500_000;
    let log = HashLog::in_memory(options).unwrap();
    put(&log, 0..100);
    assert!(log.stats().buckets > 65_536);
    let mut steps = 1;
    let seen = stepped(&log, 10, || steps += 1).unwrap();
    assert_eq!(sorted(seen), contents(&log));
    assert!(steps <= 11, "{steps} steps");
    assert_eq!(log.clear(), Ok(()));
    assert_eq!(log.scan_from(0, 1, |_, _| panic!("an entry")), Ok(0));
}

/// Steps of one bucket, in an index that has more buckets than 16 bits can tell apart.
#[test]
fn steps_of_one_bucket_in_a_large_index() {
    let mut options = Options::default();
    options.layout = Layout::Fixed8;
    let log = HashLog::in_memory(options).unwrap();
    put(&log, 0..450_000);
    let buckets = log.stats().buckets;
    assert!(buckets > 65_536 && !buckets.is_power_of_two(), "{buckets}");
    let (mut cursor, mut steps, mut seen) = (0, 0, Vec::new());
    loop {
        let before = seen.len();
        let visit = |key: &[u8], value: &[u8]| seen.push((key.to_vec(), value.to_vec()));
        cursor = log.scan_from(cursor, 0, visit).unwrap();
        assert!(seen.len() - before < 50, "{} entries in a step", seen.len() - before);
        steps += 1;
        // A number of a bucket, which every client can hold.
        assert!(cursor < buckets);
        if cursor == 0 {
            break;
        }
    }
    assert_eq!((steps, seen.len()), (buckets, 450_000));
    assert_stable(&seen, 450_000);
}

#[test]
fn the_index_grows_between_steps() {
    const STABLE: u64 = 300;
    for configuration in configurations() {
        for step in [0, 1, 20] {
            let log = filled(configuration, STABLE);
            let (few, mut next) = (log.stats().buckets, STABLE);
            let seen = stepped(&log, step, || {
                let more = if next < 4_000 { 150 } else { 0 };
                put(&log, next..next + more);
                // Some go again.
                for index in next..next + more / 2 {
                    log.remove(&key(index)).unwrap();
                }
                next += more;
            });
            assert_stable(&seen.unwrap(), STABLE);
            assert!(configuration.memory_budget.is_some() || log.stats().buckets > 2 * few);
        }
    }
}

/// Threads put, change and remove other keys, so that the index grows and the log compacts itself.
#[test]
fn among_threads_that_write() {
    const STABLE: u64 = 300;
    case!().seeds(3, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1], IN_MEMORY[4], COLDEST, ON_DISK[1]] {
            let log = filled(configuration, STABLE);
            let (writing, start) = (Running::new(2), StartLine::new(4));
            std::thread::scope(|scope| {
                let (log, writing, start) = (&log, &writing, &start);
                for writer in 0..2 {
                    scope.spawn(move || {
                        let _writing = writing.guard();
                        interleave::seed_thread(seed << 8 | writer);
                        start.wait();
                        for index in (STABLE..6_000).filter(|index| index % 2 == writer) {
                            log.put(&key(index), &value(index)).unwrap();
                            if index % 3 == 0 {
                                log.remove(&key((index - 20).max(STABLE))).unwrap();
                                put(log, index % STABLE..index % STABLE + 1);
                            }
                            if index % 32 == 0 {
                                interleave::pause();
                            }
                        }
                    });
                }
                for step in [1, 25] {
                    scope.spawn(move || {
                        start.wait();
                        let mut walks = 0;
                        while walks == 0 || writing.any() {
                            let seen = stepped(log, step, || ()).unwrap();
                            assert_stable(&seen, STABLE);
                            walks += 1;
                        }
                    });
                }
            });
            log.check().unwrap();
        }
    });
}

/// Between two steps the log is compacted, checkpointed, closed and opened again.
#[test]
fn compacted_and_opened_again_between_steps() {
    const STABLE: u64 = 400;
    for configuration in ON_DISK.into_iter().chain(KEPT_SHORT) {
        for cut in [Cut::Full, Cut::Incremental] {
            let disk = SimDisk::new();
            let mut log = configuration.open(&disk);
            put(&log, 0..STABLE);
            let (mut cursor, mut seen, mut round) = (0, Vec::new(), 0);
            loop {
                let visit = |key: &[u8], value: &[u8]| seen.push((key.to_vec(), value.to_vec()));
                cursor = log.scan_from(cursor, 10, visit).unwrap();
                if cursor == 0 {
                    break;
                }
                round += 1;
                // Keys that are seen or not; then garbage.
                put(&log, round * 1_000..round * 1_000 + 100);
                for index in round * 1_000..round * 1_000 + 90 {
                    log.remove(&key(index)).unwrap();
                }
                match round % 4 {
                    0 => drop(log.compact(0.7).unwrap()),
                    1 => drop(log.checkpoint(Cut::Incremental).unwrap()),
                    _ => {
                        log.checkpoint(cut).unwrap();
                        drop(log);
                        log = configuration.open(&disk);
                    }
                }
            }
            assert!(round > 8, "{configuration:?}: {round} rounds");
            assert_stable(&seen, STABLE);
        }
    }
}

/// A cursor of a large index is taken to one that is smaller, in which it lies within a bucket.
#[test]
fn a_smaller_index_goes_on_where_a_larger_one_stopped() {
    const STABLE: u64 = 500;
    for configuration in [NASTIEST, IN_MEMORY[1], IN_MEMORY[4]] {
        let (small, large) = (filled(configuration, STABLE), filled(configuration, 30 * STABLE));
        let buckets = [small.stats().buckets, large.stats().buckets];
        assert!(buckets[0] * 16 < buckets[1], "{buckets:?}");
        for logs in [[&small, &large], [&large, &small]] {
            let (mut cursor, mut seen, mut turn) = (0, Vec::new(), 0);
            loop {
                let visit = |key: &[u8], value: &[u8]| seen.push((key.to_vec(), value.to_vec()));
                // Not even: a bucket of the small one is as much as many of the large one.
                let log = logs[usize::from(turn % 3 == 0)];
                cursor = log.scan_from(cursor, 1, visit).unwrap();
                if cursor == 0 {
                    break;
                }
                turn += 1;
            }
            assert!(turn > 20);
            assert_stable(&seen, STABLE);
        }
    }
}

/// Whatever number a client sends, the walk ends, and its entries are those behind.
#[test]
fn cursors_that_were_made_up() {
    case!().seeds(20, |seed| {
        let mut rng = sapwood_testkit::rng(seed);
        for configuration in [NASTIEST, IN_MEMORY[1], COLDEST, ON_DISK[3]] {
            let log = filled(configuration, rng.random_range(0..400));
            let right = contents(&log);
            let mut cursors = vec![1, u64::MAX, u64::MAX - 1, 1 << 63, i64::MAX as u64, 1 << 32];
            cursors.extend((0..20).map(|_| rng.random::<u64>() >> rng.random_range(0..64)));
            // In the order of what is left to walk.
            cursors.sort_by_key(|cursor| cursor.reverse_bits());
            let mut left = right.len();
            for cursor in cursors {
                let (mut at, mut seen, mut steps) = (cursor, Vec::new(), 0);
                loop {
                    let step = rng.random_range(0..30);
                    let visit =
                        |key: &[u8], value: &[u8]| seen.push((key.to_vec(), value.to_vec()));
                    at = log.scan_from(at, step, visit).unwrap();
                    steps += 1;
                    assert!(steps <= log.stats().buckets, "it does not end");
                    if at == 0 {
                        break;
                    }
                }
                assert_stable(&seen, 0);
                assert!(seen.iter().all(|pair| right.contains(pair)), "another entry");
                assert!(seen.len() <= left, "{cursor:x}: {} of {left} left", seen.len());
                left = seen.len();
            }
        }
    });
}

/// A step that fails is made again with the same cursor.
#[test]
fn a_disk_that_fails_now_and_then() {
    for configuration in ON_DISK {
        let disk = SimDisk::new();
        let log = configuration.open(&disk);
        put(&log, 0..configuration.memory_budget.expect("on disk") / 20);
        log.checkpoint(Cut::Full).unwrap();
        let right = contents(&log);
        let (mut cursor, mut pairs, mut failed, mut turn) = (0, Vec::new(), 0, 0);
        loop {
            turn += 1;
            if turn % 2 == 0 {
                disk.set_faults(Faults::new().reads(1.., ReadFault::Error(ErrorKind::TimedOut)));
            }
            let step = RefCell::new(Vec::new());
            let next = log.scan_from(cursor, 40, |key, value| {
                step.borrow_mut().push((key.to_vec(), value.to_vec()));
            });
            disk.set_faults(Faults::new());
            match next {
                Ok(next) => {
                    pairs.extend(step.into_inner());
                    cursor = next;
                    if cursor == 0 {
                        break;
                    }
                }
                Err(_) => failed += 1,
            }
        }
        assert!(failed > 3, "{configuration:?}: {failed} of {turn}");
        assert_eq!(sorted(pairs), right);
    }
}

/// A visitor may use the log, also for a walk of its own.
#[test]
fn a_visitor_calls_the_log() {
    for configuration in [NASTIEST, IN_MEMORY[1], IN_MEMORY[4]] {
        let log = filled(configuration, 200);
        let (mut seen, mut inner) = (0, 0);
        let end = log.scan_from(0, usize::MAX, |key, value| {
            assert_eq!(log.get(key).as_ref().map(Option::as_deref), Ok(Some(value)));
            log.put(key, value).unwrap();
            let _next = log.scan_from(seen, 1, |_, _| inner += 1).unwrap();
            seen += 1;
        });
        assert_eq!((end, seen), (Ok(0), 200));
        assert!(inner >= 200);
    }
}
