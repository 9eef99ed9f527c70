//! Holds: what their walks meet stays where it is, and is changed there once, whatever has become of
//! its record, and whatever others do meanwhile.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sapwood_hashlog::{
    Addresses, BatchError, ChangeRun, Error, HashLog, HeldKeys, Hold, Layout, RecordAddress,
    RecordRun, ValueMut,
};
use sapwood_testkit::case;
use sapwood_testkit::interleave::{self, Running, pause};

use crate::adapter::{Configuration, IN_MEMORY, ON_DISK, TOLD, contents, key, value};

/// Logs of fixed records: pages of two records, of 170, of many.
const HELD: [Configuration; 3] =
    [IN_MEMORY[1], IN_MEMORY[3], Configuration { page_bytes: 2 << 20, ..IN_MEMORY[1] }];

/// What a hold's walk met: runs, and what came by itself.
#[derive(Default)]
struct Met {
    runs: Vec<RecordRun>,
    /// Keys and values, of runs in their order.
    of_runs: Vec<([u8; 8], [u8; 8])>,
    apart: Vec<(RecordAddress, [u8; 8])>,
}

fn walk(hold: &Hold<'_>, parts: usize) -> Met {
    let mut met = Met::default();
    for part in 0..parts {
        let all =
            hold.scan_part(part, parts, |batch| {
                let entries = (0..batch.len()).filter_map(|at| Some((at, batch.entry(at)?)));
                let whole = |bytes: &[u8]| bytes.try_into().expect("8 bytes");
                match batch.addresses() {
                    Addresses::Stepped { first, step } => {
                        let mut run = RecordRun { first, step, bits: [0; 16] };
                        for (at, (key, value)) in entries {
                            run.bits[at / 64] |= 1 << (at % 64);
                            met.of_runs.push((whole(key), whole(value)));
                            let slot = run.address_of_slot(at as u64);
                            assert_eq!(batch.addresses().get(at), Some(slot));
                        }
                        met.runs.push(run);
                    }
                    addresses => met.apart.extend(entries.map(|(at, (key, _))| {
                        (addresses.get(at).expect("one for each"), whole(key))
                    })),
                }
                ControlFlow::<()>::Continue(())
            });
        assert_eq!(all, Ok(ControlFlow::Continue(())));
    }
    met
}

/// Adds to each counter, and notes which.
struct Add {
    delta: u64,
    met: Vec<(usize, [u8; 8])>,
    by_key: Vec<(usize, [u8; 8], bool)>,
}

impl Add {
    fn of(delta: u64) -> Add {
        Add { delta, met: Vec::new(), by_key: Vec::new() }
    }
}

impl ChangeRun for Add {
    fn becomes(&self, _key: [u8; 8], value: [u8; 8]) -> Option<[u8; 8]> {
        u64::from_le_bytes(value).checked_add(self.delta).map(u64::to_le_bytes)
    }

    fn met(&mut self, at: usize, key: [u8; 8], _before: [u8; 8]) {
        self.met.push((at, key));
    }

    fn by_key(&mut self, at: usize, key: [u8; 8], value: Option<&mut ValueMut<'_>>) {
        self.by_key.retain(|(known, ..)| *known != at);
        self.by_key.push((at, key, value.is_some()));
        if let Some(word) = value.and_then(|value| value.first_chunk_mut()) {
            *word = self.becomes(key, *word).unwrap_or(*word);
        }
    }
}

fn counted(log: &HashLog, key: &[u8; 8]) -> Option<u64> {
    let count = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    log.get_with(key, count).expect("no error")
}

fn with_counters(configuration: Configuration, count: u64) -> HashLog {
    let log = configuration.log();
    for index in 0..count {
        log.put(&key(index), &value(index)).expect("room");
    }
    log
}

#[test]
fn a_walk_meets_each_entry_once_and_keys_are_read_again() {
    for configuration in HELD {
        for parts in [1, 3, 8] {
            let log = with_counters(configuration, 5_000);
            // Of some there are older records, of some none.
            for index in (0..5_000).step_by(7) {
                log.put(&key(index), &value(index + 9)).expect("room");
                assert_eq!(log.remove(&key(index + 1)), Ok(true));
            }
            let hold = log.hold().expect("outside of closures").expect("in memory, fixed");
            let met = walk(&hold, parts);
            assert!(met.apart.is_empty(), "{configuration:?}");
            let pairs = met.of_runs.iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
            let mut pairs: Vec<_> = pairs.collect();
            pairs.sort_unstable();
            assert_eq!(pairs, contents(&log), "{configuration:?} {parts}");
            assert_eq!(hold.entries(), pairs.len() as u64);

            let (mut keys, mut each) = (Vec::new(), Vec::new());
            met.runs.iter().for_each(|run| hold.read_run(run, &mut keys));
            let addresses =
                |run: &RecordRun| (0..run.len()).filter_map(|at| run.address(at)).collect();
            let addresses: Vec<Vec<_>> = met.runs.iter().map(addresses).collect();
            hold.read_each(&addresses.concat(), &mut each);
            let expected: Vec<_> = met.of_runs.iter().map(|(key, _)| *key).collect();
            assert_eq!((&keys, &each), (&expected, &expected), "{configuration:?}");

            let mut sample = Vec::new();
            hold.sample_keys(500, &mut sample);
            // The page at the tail has none.
            let least = if configuration.page_bytes > 1 << 20 { 0 } else { 100 };
            assert!((least..=500).contains(&sample.len()), "{}", sample.len());
            assert!(sample.iter().all(|key| expected.contains(key)));
        }
        let empty = configuration.log();
        let hold = empty.hold().expect("outside of closures").expect("in memory, fixed");
        assert!(walk(&hold, 2).runs.iter().all(RecordRun::is_empty));
    }
}

#[test]
fn nothing_is_held_where_records_go_or_changes_are_told() {
    for configuration in [IN_MEMORY[0], IN_MEMORY[2], ON_DISK[1], ON_DISK[3], TOLD[1]] {
        let log = configuration.log();
        assert!(log.hold().expect("outside of closures").is_none(), "{configuration:?}");
    }
    let log = with_counters(HELD[1], 10);
    let inside = log.get_with(&key(1), |_| log.hold().map(drop)).expect("no error");
    assert!(matches!(inside, None | Some(Ok(()) | Err(Error::WouldBlock))), "{inside:?}");
}

/// Superseded, removed, put again and under a snapshot: each entry that was met is changed once, or
/// found gone, in order.
#[test]
fn what_has_gone_elsewhere_is_changed_by_its_key() {
    for configuration in HELD {
        for is_fixed in [false, true] {
            let log = with_counters(configuration, 3_000);
            let hold = log.hold().expect("outside of closures").expect("in memory, fixed");
            let met = walk(&hold, 1);
            let copies = log.snapshot().expect("outside of closures");
            for index in 0..3_000 {
                match index % 5 {
                    0 => assert_eq!(log.remove(&key(index)), Ok(true)),
                    1 => log.put(&key(index), &value(100_000 + index)).expect("room"),
                    _ => {}
                }
            }
            let snapshot = is_fixed.then(|| log.snapshot().expect("outside of closures"));
            drop(copies);
            for index in (0..3_000).step_by(10) {
                log.put(&key(index), &value(300_000 + index)).expect("room");
            }
            let gone = (0..3_000).filter(|index| index % 10 == 5).count();
            let mut done = 0;
            for run in &met.runs {
                let mut add = Add::of(1);
                assert_eq!(hold.update_run(run, 0, &mut add), Ok(run.len()), "{configuration:?}");
                assert!(add.met.is_sorted(), "in order");
                let by_key = add.by_key.iter().map(|(at, key, _)| (*at, *key));
                let mut all: Vec<_> = add.met.iter().copied().chain(by_key).collect();
                all.sort_unstable();
                let expected = &met.of_runs[done..done + run.len()];
                let expected: Vec<_> = expected.iter().map(|(key, _)| *key).enumerate().collect();
                assert_eq!(all, expected, "{configuration:?}");
                done += run.len();
            }
            drop(hold);
            drop(snapshot);
            let mut missing = 0;
            for index in 0..3_000 {
                let expected = match index % 10 {
                    0 => Some(300_001 + index),
                    5 => None,
                    1 | 6 => Some(100_001 + index),
                    _ => Some(index + 1),
                };
                assert_eq!(counted(&log, &key(index)), expected, "{configuration:?}, {index}");
                missing += usize::from(expected.is_none());
            }
            assert_eq!(missing, gone);
            log.compact(1.0).expect("nothing is held");
            log.check().expect("sound");
        }
    }
}

/// The first ones are left out, values that cannot be changed stay, and inside a closure all goes by
/// keys.
#[test]
fn a_run_may_be_gone_on_with() {
    for configuration in HELD {
        let log = with_counters(configuration, 700);
        log.put(&key(3), &value(u64::MAX)).expect("room");
        let hold = log.hold().expect("outside of closures").expect("in memory, fixed");
        let met = walk(&hold, 1);
        let mut number = 0;
        for run in &met.runs {
            for done in [0, run.len() / 2, run.len()] {
                let mut add = Add::of(1);
                assert_eq!(hold.update_run(run, done, &mut add), Ok(run.len()));
                let count = add.met.len() + add.by_key.len();
                assert_eq!(count, run.len() - done, "{configuration:?}");
            }
            for at in 0..run.len() {
                let (key, before) = met.of_runs[number + at];
                let times = 1 + u64::from(at >= run.len() / 2);
                let before = u64::from_le_bytes(before);
                let after = before.checked_add(times).unwrap_or(before);
                assert_eq!(counted(&log, &key), Some(after), "{configuration:?}");
            }
            number += run.len();
        }
        let run = met.runs.iter().find(|run| !run.is_empty()).expect("there are entries");
        log.put(b"inserted", &value(0)).expect("room");
        let nested = log.update(b"inserted", |_| {
            let mut add = Add::of(1);
            let told = hold.update_run(run, 0, &mut add);
            (told, add.met.len())
        });
        let (told, here) = nested.expect("no error").expect("it is there");
        assert!(matches!(told, Ok(_) | Err(BatchError { .. })) && here == 0, "{told:?}");
    }
}

#[test]
fn runs_of_other_walks_are_refused() {
    let log = with_counters(HELD[1], 2_000);
    let hold = log.hold().expect("outside of closures").expect("in memory, fixed");
    let run = walk(&hold, 1).runs[0];
    let first = |word| RecordRun { first: RecordAddress::from_word(word), ..run };
    let word = run.first.word();
    let many = RecordRun { bits: [u64::MAX; 16], ..run };
    for wrong in [
        first(0),
        first(word + 1),
        first(u64::MAX),
        first(u64::MAX - 2),
        first(word + (1 << 20)),
        RecordRun { step: 6, ..run },
        many,
    ] {
        let reads = AssertUnwindSafe(|| hold.read_run(&wrong, &mut Vec::new()));
        assert!(catch_unwind(reads).is_err(), "{wrong:?}");
        let changes = AssertUnwindSafe(|| hold.update_run(&wrong, 0, &mut Add::of(1)));
        assert!(catch_unwind(changes).is_err(), "{wrong:?}");
    }
    // A record that the walk did not meet, since it came later, is not there.
    log.put(b"inserted", &value(1)).expect("room");
    let late = log.hold().expect("outside of closures").expect("in memory, fixed");
    let last = walk(&late, 1).runs.into_iter().rfind(|run| !run.is_empty()).expect("one");
    let changes = AssertUnwindSafe(|| hold.update_run(&last, 0, &mut Add::of(1)));
    assert!(catch_unwind(changes).is_err());
    assert_eq!(counted(&log, &key(7)), Some(7));
}

/// Adds, puts, removals, snapshots, compactions and two holds at once: every counter ends as what was
/// added to it, each entry that a hold met once.
#[test]
fn among_writers_every_entry_that_was_met_is_changed_once() {
    const COUNTERS: u64 = 600;
    const ROUNDS: u64 = 25;
    case!().seeds(6, |seed| {
        for configuration in HELD {
            let log = with_counters(configuration, 0);
            for index in 0..COUNTERS {
                log.put(&key(index), &value(0)).expect("room");
            }
            let counter_of = |key: &[u8; 8]| (0..COUNTERS).position(|at| self::key(at) == *key);
            let added: Vec<AtomicU64> = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
            let holding = Running::new(2);
            std::thread::scope(|scope| {
                let (log, added, holding) = (&log, &added, &holding);
                for thread in 0..2 {
                    scope.spawn(move || {
                        let _holding = holding.guard();
                        interleave::seed_thread(seed * 7 + thread);
                        for round in 0..ROUNDS {
                            let hold = log.hold().expect("outside").expect("in memory, fixed");
                            let met = walk(&hold, 1);
                            let all = met.of_runs.iter().map(|(key, _)| key);
                            let all = all.chain(met.apart.iter().map(|(_, key)| key));
                            let mut planned: Vec<_> = all.filter_map(counter_of).collect();
                            planned.sort_unstable();
                            let expected: Vec<_> = (0..COUNTERS as usize).collect();
                            assert_eq!(planned, expected, "each is met once");
                            pause();
                            let delta = 1 + round % 3;
                            // Those that are no counters are given nothing that is looked at.
                            for (at, run) in met.runs.iter().enumerate() {
                                let told = hold.update_run(run, 0, &mut Add::of(delta));
                                assert_eq!(told, Ok(run.len()));
                                if at % 100 == 0 {
                                    pause();
                                }
                            }
                            for (_, key) in &met.apart {
                                let bytes = |value: &mut ValueMut<'_>| {
                                    let word = value.first_chunk_mut().expect("8 bytes");
                                    *word = (u64::from_le_bytes(*word) + delta).to_le_bytes();
                                };
                                let there = log.update(key, bytes).expect("no error");
                                assert!(there.is_some() || counter_of(key).is_none());
                            }
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
                        while holding.any() {
                            turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            let at = (turn >> 33) % COUNTERS;
                            let other = key(COUNTERS + at % 50);
                            match (turn >> 60) % 8 {
                                0 => drop(log.remove(&other).expect("no error")),
                                1 => log.put(&other, &value(turn >> 1)).expect("room"),
                                _ => {
                                    log.add(&key(at), 1).expect("room");
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
                    while holding.any() {
                        turn += 1;
                        if turn % 3 == 0 {
                            log.compact(0.5).expect("no error");
                            continue;
                        }
                        let snapshot = log.snapshot().expect("outside of closures");
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
                let right = added[index as usize].load(Relaxed);
                let sum = counted(&log, &key(index));
                assert_eq!(sum, Some(right), "{configuration:?}, seed {seed}, counter {index}");
            }
            assert_eq!(log.options().layout, Layout::Fixed8);
            log.check().expect("sound");
        }
    });
}
