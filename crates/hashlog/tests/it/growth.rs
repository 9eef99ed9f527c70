//! The index grows from next to nothing to many buckets under many threads, and loses nothing.

use crate::adapter::{COLDEST, Configuration, IN_MEMORY, NASTIEST, ON_DISK, key, value};
use sapwood_hashlog::{HashLog, Layout};
use sapwood_testkit::case;
use sapwood_testkit::interleave::{self, StartLine};
use std::sync::atomic::{AtomicU64, Ordering};

const GROWING: [Configuration; 5] = [NASTIEST, IN_MEMORY[1], IN_MEMORY[4], COLDEST, ON_DISK[3]];

/// Runs `each` in `threads` threads from one start line.
fn at_once(threads: u64, seed: u64, each: impl Fn(u64) + Sync) {
    let start = StartLine::new(threads as usize);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (start, each) = (&start, &each);
            scope.spawn(move || {
                interleave::seed_thread(seed << 8 | thread);
                start.wait();
                each(thread);
            });
        }
    });
}

fn assert_grown(log: &HashLog, entries: u64, what: &Configuration) {
    let stats = log.stats();
    // Beside a budget this small the index must stop, and its slots are shared by many keys; else
    // a chain of many buckets would mean that it stopped growing.
    assert!(what.memory_budget.is_some() || stats.buckets * 16 >= entries, "{what:?}: {stats:?}");
    // How far the index gets beside a budget depends on when pages go to the disk.
    let chain_max = if what.memory_budget.is_some() { 16.0 } else { 4.0 };
    assert!(stats.chain() < chain_max, "{what:?}: {stats:?}");
    assert_eq!(log.len_exact(), Ok(entries as usize), "{what:?}");
    log.check().unwrap();
}

#[test]
fn different_keys_from_four_threads() {
    const EACH: u64 = 5_000;
    case!().seeds(3, |seed| {
        for configuration in GROWING {
            let log = configuration.log();
            let few = log.stats().buckets;
            at_once(4, seed, |thread| {
                for step in 0..EACH {
                    let index = thread * EACH + step;
                    log.put(&key(index), &value(index)).unwrap();
                    // What this thread has put is there at once and for good.
                    let earlier = thread * EACH + step / 2;
                    assert_eq!(log.get(&key(earlier)).unwrap(), Some(value(earlier).to_vec()));
                    if step % 64 == 0 {
                        interleave::pause();
                    }
                }
            });
            assert!(log.stats().buckets > 16 * few, "{few} buckets, then {:?}", log.stats());
            assert_grown(&log, 4 * EACH, &configuration);
            for index in 0..4 * EACH {
                assert_eq!(log.get(&key(index)).unwrap(), Some(value(index).to_vec()));
            }
        }
    });
}

/// What is counted in two places may change between the two: found where a query asked for figures
/// while overflow buckets were freed.
#[test]
fn figures_while_the_index_grows_are_figures() {
    case!().seeds(20, |seed| {
        for configuration in GROWING {
            let log = configuration.log();
            let writing = AtomicU64::new(3);
            at_once(4, seed, |thread| {
                if thread == 0 {
                    while writing.load(Ordering::Relaxed) > 0 {
                        let stats = log.stats();
                        assert!(stats.overflow_buckets < 1 << 32, "{stats:?}");
                    }
                    return;
                }
                for step in 0..2_000 {
                    log.put(&key(thread << 32 | step), &value(step)).unwrap();
                }
                writing.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

/// Four threads put each key at once: one of them inserts it, and all deltas are in it.
#[test]
fn the_same_keys_from_four_threads() {
    const KEYS: u64 = 4_000;
    case!().seeds(3, |seed| {
        for configuration in GROWING {
            let log = configuration.log();
            let inserted = AtomicU64::new(0);
            at_once(4, seed, |thread| {
                for index in 0..KEYS {
                    if log.put_if_absent(&key(index), &value(0)).unwrap() {
                        inserted.fetch_add(1, Ordering::Relaxed);
                    }
                    log.add(&key(index), 1 + thread as i64).unwrap();
                    if (index + thread) % 64 == 0 {
                        interleave::pause();
                    }
                }
            });
            assert_eq!(inserted.into_inner(), KEYS, "{configuration:?}");
            assert_grown(&log, KEYS, &configuration);
            for index in 0..KEYS {
                assert_eq!(log.get(&key(index)).unwrap(), Some(value(10).to_vec()));
            }
        }
    });
}

/// Keys that come and go while the index grows under them.
#[test]
fn removals_while_the_index_grows() {
    const KEYS: u64 = 6_000;
    case!().seeds(3, |seed| {
        for configuration in GROWING {
            let log = configuration.log();
            at_once(4, seed, |thread| {
                for step in 0..KEYS {
                    let index = step * 4 + thread;
                    log.put(&key(index), &value(index)).unwrap();
                    if step % 2 == 1 {
                        assert_eq!(log.remove(&key(index - 4)), Ok(true));
                        assert_eq!(log.remove(&key(index - 4)), Ok(false));
                        assert_eq!(log.get(&key(index - 4)), Ok(None));
                    }
                    if step % 64 == 0 {
                        interleave::pause();
                    }
                }
            });
            assert_eq!(log.len_exact(), Ok(2 * KEYS as usize), "{configuration:?}");
            for index in 0..4 * KEYS {
                let right = (index / 4 % 2 == 1).then(|| value(index).to_vec());
                assert_eq!(log.get(&key(index)).unwrap(), right);
            }
            log.check().unwrap();
        }
    });
}

/// A log that is told how much will come does not grow on the way, and holds the same.
#[test]
fn a_log_made_for_its_size_is_never_split() {
    for layout in [Layout::Variable, Layout::Fixed8] {
        let mut options = IN_MEMORY[2].options();
        options.layout = layout;
        options.expected_entries = 20_000;
        let log = HashLog::in_memory(options).unwrap();
        let buckets = log.stats().buckets;
        for index in 0..20_000 {
            log.put(&key(index), &value(index)).unwrap();
        }
        assert_eq!(log.stats().buckets, buckets, "{layout:?}");
        assert!(log.stats().chain() < 2.0, "{:?}", log.stats());
        assert_eq!(log.len_exact(), Ok(20_000));
        log.check().unwrap();
    }
}
