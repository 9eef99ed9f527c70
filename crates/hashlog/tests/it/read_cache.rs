//! The read cache: what was read from the disk is found in memory the next time, and is what it was.

use crate::adapter::{Adapter, CACHED, Configuration, contents, key, value};
use sapwood_disk::SimDisk;
use sapwood_hashlog::{ColdReads, Cut, Error, HashLog, Layout, Options};
use sapwood_testkit::case;
use sapwood_testkit::keyed::stream::KeyedSpec;
use sapwood_testkit::runner::check_against_oracle;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// So many are many times what memory holds.
const KEYS: u64 = 4_000;

/// With room for some hundred records.
const ROOMY: Configuration =
    Configuration { memory_budget: Some(128 << 10), read_cache: 32 << 10, ..CACHED };

/// Each layout.
fn each_kind(check: impl Fn(Configuration)) {
    for layout in [Layout::Variable, Layout::Fixed8] {
        check(Configuration { layout, ..ROOMY });
    }
}

fn filled(configuration: Configuration) -> HashLog {
    let log = configuration.log();
    fill(&log);
    log
}

fn fill(log: &HashLog) {
    for index in 0..KEYS {
        log.put(&key(index), &value(index)).unwrap();
    }
}

/// Reads keys, singly or by batches.
fn read(log: &HashLog, indices: std::ops::Range<u64>, batch: bool) {
    if !batch {
        for index in indices {
            assert_eq!(log.get(&key(index)), Ok(Some(value(index).to_vec())), "{index}");
        }
        return;
    }
    let keys: Vec<_> = indices.clone().map(key).collect();
    let mut next = indices;
    log.get_many(&keys, |_, bytes| {
        let index = next.next().expect("in order");
        assert_eq!(bytes, Some(&value(index)[..]), "{index}");
    })
    .unwrap();
}

#[test]
fn a_second_read_goes_to_the_disk_no_more_and_nothing_lengthens_the_log() {
    each_kind(|configuration| {
        for batch in [false, true] {
            let log = filled(configuration);
            let before = log.stats();
            assert_eq!((before.cold_reads, before.cached_reads), (0, 0));
            read(&log, 0..100, batch);
            let first = log.stats();
            // Records of one slot are read through to the one that is wanted.
            assert!((100..150).contains(&first.cold_reads), "{first:?}");
            for round in 1..=3 {
                read(&log, 0..100, batch);
                let stats = log.stats();
                assert!(stats.cached_reads >= first.cached_reads + round * 90, "{stats:?}");
                assert!(stats.cold_reads < first.cold_reads + round * 50, "{stats:?}");
            }
            assert_eq!(log.stats().tail, before.tail, "nothing was copied");
            log.check().unwrap();
        }
    });
}

#[test]
fn it_is_within_the_budget_and_has_nothing_before_there_are_cold_records() {
    each_kind(|configuration| {
        let log = configuration.log();
        log.put(&key(0), &value(0)).unwrap();
        assert_eq!(log.stats().read_cache_bytes, 0);
        fill(&log);
        let budget = configuration.memory_budget.expect("there is one");
        for round in 0..3 {
            read(&log, 0..KEYS, round % 2 == 0);
            let stats = log.stats();
            assert_eq!(stats.read_cache_bytes, 32 << 10);
            // Buffers of a batch come from no budget as small as this.
            let used = stats.index_bytes + stats.log_bytes + stats.read_cache_bytes;
            assert!(used <= budget, "{stats:?}");
        }
        assert_eq!(log.stats().read_cache_bytes, 32 << 10);
    });
}

#[test]
fn without_one_each_read_goes_to_the_disk_again() {
    each_kind(|configuration| {
        let copies = Configuration { cold_reads: ColdReads::CopyToTail, ..configuration };
        for configuration in [Configuration { read_cache: 0, ..configuration }, copies] {
            let log = filled(configuration);
            read(&log, 0..50, false);
            let first = log.stats();
            read(&log, 0..50, false);
            let second = log.stats();
            let copies = configuration.cold_reads == ColdReads::CopyToTail;
            assert_eq!(second.cold_reads < first.cold_reads + 50, copies, "{second:?}");
            assert_eq!((second.cached_reads, second.read_cache_bytes), (0, 0));
        }
    });
}

#[test]
fn its_size_is_an_option() {
    let options = |budget: Option<u64>, page_bytes, read_cache| {
        let mut options = Options::default();
        (options.memory_budget, options.page_bytes) = (budget, page_bytes);
        (options.cold_reads, options.read_cache) = (ColdReads::Stay, read_cache);
        options
    };
    let cached = |options: Options| {
        let log = HashLog::open(Arc::new(SimDisk::new()), options).expect("valid options");
        (0..60_000).for_each(|index| log.put(&key(index), &value(index)).unwrap());
        let stats = log.stats();
        (stats.head > stats.begin, stats.read_cache_bytes)
    };
    assert_eq!(Options::default().read_cache, 0);
    assert_eq!(cached(options(Some(1 << 20), 4 << 10, 100_000)), (true, 100_000));
    assert_eq!(cached(options(Some(1 << 20), 4 << 10, 0)), (true, 0));
    assert_eq!(cached(options(None, 4 << 10, 100_000)), (false, 0));
    let refused = HashLog::open(
        Arc::new(SimDisk::new()),
        options(Some(1 << 20), 64 << 10, (1 << 20) - (64 << 10)),
    );
    let error = refused.expect_err("no page fits beside it");
    assert!(matches!(&error, Error::Options(why) if why.contains("read_cache")), "{error}");
}

/// Whatever happens to a record that is in the cache, the cache answers no more for it.
#[test]
fn what_is_changed_removed_compacted_and_reopened_is_read_as_it_is() {
    for configuration in [
        Configuration { memory_budget: Some(64 << 10), read_cache: 16 << 10, ..ROOMY },
        Configuration { layout: Layout::Fixed8, memory_budget: Some(64 << 10), ..CACHED },
        CACHED,
    ] {
        let disk = SimDisk::new();
        let mut log = configuration.open(&disk);
        let mut oracle = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(7);
        let mut was_cached = false;
        let expect = |log: &HashLog, oracle: &BTreeMap<u64, u64>, batch: bool| {
            // Mostly few of them, so that the cache is asked.
            let indices: Vec<u64> = (0..200).map(|at| at * at % 1_500).collect();
            let keys: Vec<_> = indices.iter().map(|index| key(*index)).collect();
            let expected = |at: usize| oracle.get(&indices[at]).map(|count| value(*count).to_vec());
            match batch {
                true => log
                    .get_many(&keys, |at, bytes| {
                        assert_eq!(bytes.map(<[u8]>::to_vec), expected(at), "{}", indices[at]);
                    })
                    .unwrap(),
                false => keys.iter().enumerate().for_each(|(at, key)| {
                    assert_eq!(log.get(key).unwrap(), expected(at), "{}", indices[at]);
                }),
            }
        };
        for index in 0..KEYS {
            log.put(&key(index), &value(index)).unwrap();
            oracle.insert(index, index);
        }
        for round in 0..40 {
            expect(&log, &oracle, round % 2 == 0);
            expect(&log, &oracle, round % 3 == 0);
            for _ in 0..60 {
                let index = random.u64(..1_500);
                let count = random.u64(..1 << 40);
                match random.u8(..4) {
                    0 => {
                        log.put(&key(index), &value(count)).unwrap();
                        oracle.insert(index, count);
                    }
                    1 => {
                        assert_eq!(
                            log.remove(&key(index)).unwrap(),
                            oracle.remove(&index).is_some()
                        );
                    }
                    2 => {
                        log.add(&key(index), 3).unwrap();
                        *oracle.entry(index).or_insert(0) += 3;
                    }
                    _ => {
                        let changed = |bytes: &mut sapwood_hashlog::ValueMut<'_>| {
                            bytes.copy_from_slice(&value(count));
                        };
                        let found = log.update(&key(index), changed).unwrap().is_some();
                        assert_eq!(found, oracle.contains_key(&index));
                        oracle.entry(index).and_modify(|held| *held = count);
                    }
                }
            }
            expect(&log, &oracle, round % 2 == 1);
            was_cached |= log.stats().cached_reads > 0;
            match round % 8 {
                3 => drop(log.checkpoint(Cut::Incremental).unwrap()),
                5 => drop(log.compact(0.5).unwrap()),
                7 => {
                    log.checkpoint(Cut::Full).unwrap();
                    drop(log);
                    log = configuration.open(&disk);
                }
                _ => {}
            }
        }
        assert!(was_cached, "{:?}", log.stats());
        let all: Vec<_> =
            oracle.iter().map(|(index, count)| (key(*index), value(*count))).collect();
        let found = contents(&log);
        assert_eq!(found.len(), all.len());
        for (key, value) in all {
            assert_eq!(log.get(&key), Ok(Some(value.to_vec())));
        }
        log.check().unwrap();
    }
}

/// Streams of operations, with checkpoints, compactions and reopening among them.
#[test]
fn streams_are_those_of_a_map() {
    case!().seeds(6, |seed| {
        for layout in [Layout::Variable, Layout::Fixed8] {
            for configuration in [
                Configuration { layout, ..ROOMY },
                Configuration { layout, keeps_short: true, ..CACHED },
            ] {
                let spec = KeyedSpec::random(seed, 600, configuration.lengths());
                let make = || Adapter::new(configuration.log(), configuration);
                if let Err(divergence) = check_against_oracle(make, &spec.ops(seed)) {
                    panic!("{configuration:?} {spec:?}\n{divergence}");
                }
            }
        }
    });
}

/// Counts only grow, and a reader never sees one smaller than before: neither the cache nor a copy at the
/// tail brings an older one back.
#[test]
fn readers_beside_writers_and_a_compaction_see_no_older_value() {
    const THREADS: u64 = 3;
    const HOT: u64 = 300;
    for configuration in [
        ROOMY,
        Configuration { keeps_short: true, ..CACHED },
        Configuration { layout: Layout::Fixed8, ..ROOMY },
    ] {
        let log = filled(configuration);
        for index in 0..HOT {
            log.put(&key(index), &value(0)).unwrap();
        }
        fill_from(&log, HOT);
        let begun: Vec<AtomicU64> = (0..HOT).map(|_| AtomicU64::new(0)).collect();
        let done: Vec<AtomicU64> = (0..HOT).map(|_| AtomicU64::new(0)).collect();
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            let (log, begun, done, ends) = (&log, &begun, &done, &ends);
            let readers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut random = fastrand::Rng::with_seed(thread);
                        for round in 0..400 {
                            let indices: Vec<u64> = (0..20).map(|_| random.u64(..HOT)).collect();
                            let keys: Vec<_> = indices.iter().map(|index| key(*index)).collect();
                            let least: Vec<u64> = indices
                                .iter()
                                .map(|index| done[*index as usize].load(Ordering::SeqCst))
                                .collect();
                            let see = |at: usize, bytes: Option<&[u8]>| {
                                let bytes = bytes.expect("none is removed").try_into();
                                let seen = u64::from_le_bytes(bytes.expect("8 bytes"));
                                let most = begun[indices[at] as usize].load(Ordering::SeqCst);
                                assert!((least[at]..=most).contains(&seen), "{seen}");
                            };
                            if round % 2 == 0 {
                                log.get_many(&keys, see).unwrap();
                            } else {
                                for (at, key) in keys.iter().enumerate() {
                                    see(at, log.get(key).unwrap().as_deref());
                                }
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(99);
                while !ends.load(Ordering::SeqCst) {
                    let index = random.u64(..HOT);
                    let count = begun[index as usize].fetch_add(1, Ordering::SeqCst) + 1;
                    match count % 2 {
                        0 => log.put(&key(index), &value(count)).unwrap(),
                        _ => {
                            log.add(&key(index), 1).unwrap();
                        }
                    }
                    done[index as usize].store(count, Ordering::SeqCst);
                    // What is hot goes to the disk.
                    let cold = random.u64(HOT..KEYS);
                    log.put(&key(cold), &value(cold)).unwrap();
                }
            });
            scope.spawn(move || {
                while !ends.load(Ordering::SeqCst) {
                    log.compact(0.5).unwrap();
                    thread::yield_now();
                }
            });
            let ended: Vec<_> = readers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            ends.store(true, Ordering::SeqCst);
            ended.into_iter().for_each(|reader| reader.expect("no panic"));
        });
        let stats = log.stats();
        assert!(stats.cached_reads > 0 && stats.cold_reads > 0, "{stats:?}");
        for index in 0..HOT {
            let count = done[index as usize].load(Ordering::SeqCst);
            assert_eq!(log.get(&key(index)), Ok(Some(value(count).to_vec())));
        }
        log.check().unwrap();
    }
}

fn fill_from(log: &HashLog, first: u64) {
    for index in first..KEYS {
        log.put(&key(index), &value(index)).unwrap();
    }
}
