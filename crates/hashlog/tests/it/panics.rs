//! Closures that panic or call back leave the log usable, and no thread waits for ever.

use crate::adapter::{COLDEST, Configuration, IN_MEMORY, configurations, contents, key, value};
use sapwood_hashlog::{Error, HashLog, Layout, ValueMut};
use sapwood_testkit::case;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::time::Duration;

/// What the closures throw: no message, no payload of another panic.
struct Thrown;

const KEYS: u64 = 20;

fn filled(configuration: Configuration) -> HashLog {
    let log = configuration.log();
    for index in 0..KEYS {
        log.put(&key(index), &value(index)).unwrap();
    }
    log
}

/// The log works for this thread and for others, for every key.
fn assert_usable(log: &HashLog) {
    log.check().unwrap();
    std::thread::scope(|scope| {
        // Another thread would wait for ever for a lock that was left behind.
        let other = scope.spawn(|| {
            for index in 0..KEYS {
                log.put(&key(index), &value(50)).unwrap();
                assert_eq!(log.add(&key(index), 1), Ok(51));
                assert_eq!(log.update(&key(index), |bytes| bytes[0]), Ok(Some(51)));
                assert_eq!(log.get(&key(index)), Ok(Some(value(51).to_vec())));
            }
        });
        other.join().expect("the log is usable");
    });
    assert_eq!(contents(log).len(), KEYS as usize);
    assert_eq!(log.remove(&key(3)), Ok(true));
    log.clear().unwrap();
    assert_eq!(log.len_exact(), Ok(0));
    log.check().unwrap();
}

/// Runs an operation with a closure of each kind that takes one, on key 5 where it takes a key;
/// `inside` runs in each closure.
fn each_closure(log: &HashLog, way: usize, inside: &mut dyn FnMut()) -> bool {
    let five = key(5);
    match way {
        0 => drop(log.get_with(&five, |_| inside()).unwrap()),
        1 => drop(log.update(&five, |_| inside()).unwrap()),
        2 => drop(log.put_if_absent_or_update(&five, &value(5), |_| inside()).unwrap()),
        3 => log
            .get_many(&[key(4), five], |index, _| {
                if index == 1 {
                    inside()
                }
            })
            .unwrap(),
        4 => {
            let changed = log.update_many(&[key(4), five], |i, _| {
                if i == 1 {
                    inside()
                }
            });
            assert_eq!(changed, Ok(2));
        }
        5..9 => {
            let visit = |key: &[u8], _: &[u8]| {
                if key == five {
                    inside();
                }
                ControlFlow::<()>::Continue(())
            };
            let walked = match way {
                5 => log.for_each(visit),
                6 => log.for_each_part(0, 1, visit),
                7 => log.scan_log(visit),
                _ => log.snapshot().and_then(|snapshot| snapshot.scan(visit)),
            };
            assert_eq!(walked, Ok(ControlFlow::Continue(())));
        }
        _ => return false,
    }
    true
}

/// Whether the closure of this way may change what it is shown.
fn changes(way: usize) -> bool {
    matches!(way, 1 | 2 | 4)
}

#[test]
fn a_closure_that_panics_leaves_the_log_usable() {
    case!().hangs_after(Duration::from_secs(60)).once(|| {
        for configuration in configurations() {
            for way in 0.. {
                let log = filled(configuration);
                let call = || each_closure(&log, way, &mut || panic_any(Thrown));
                match catch_unwind(AssertUnwindSafe(call)) {
                    Ok(ran) => {
                        assert!(!ran, "way {way} ran no closure");
                        break;
                    }
                    Err(thrown) => assert!(thrown.is::<Thrown>(), "another panic came through"),
                }
                assert_eq!(log.get(&key(5)), Ok(Some(value(5).to_vec())), "way {way}");
                assert_usable(&log);
            }
        }
    });
}

/// What an update had written when it panicked is there or is not, and nothing else.
#[test]
fn an_update_that_panics_half_way_leaves_its_key_whole() {
    case!().hangs_after(Duration::from_secs(60)).once(|| {
        for configuration in configurations() {
            let log = filled(configuration);
            let half = |value: &mut ValueMut<'_>| {
                value[7] = 0xEE;
                panic_any(Thrown);
            };
            let thrown = catch_unwind(AssertUnwindSafe(|| log.update(&key(5), half)));
            assert!(thrown.is_err_and(|thrown| thrown.is::<Thrown>()));
            let left = log.get(&key(5)).unwrap().expect("the key is there");
            let mut written = value(5);
            written[7] = 0xEE;
            assert!(left == value(5) || left == written, "{configuration:?}: {left:?}");
            assert_usable(&log);
        }
    });
}

/// Refusals that a closure which calls back may meet.
fn may_meet<T: std::fmt::Debug>(what: &str, answer: Result<T, Error>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(Error::Reentrant | Error::WouldBlock) => None,
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Every operation on the same key inside every closure: answered or refused, never waited for.
#[test]
fn a_closure_that_asks_for_its_own_key_is_answered_or_refused() {
    const ASKS: usize = 8;
    case!().hangs_after(Duration::from_secs(60)).once(|| {
        for configuration in configurations() {
            for way in 0..9 {
                for ask in 0..ASKS {
                    let log = filled(configuration);
                    let what = format!("{configuration:?}, way {way}, ask {ask}");
                    let mut was_put = None;
                    let mut inside = || {
                        if was_put.is_some() {
                            // Tried again, for what it asked for at first came between.
                            return;
                        }
                        let five = key(5);
                        let new = value(99);
                        was_put = Some(match ask {
                            0 => read(&what, log.get(&five)),
                            1 => read(&what, log.get_with(&five, <[u8]>::to_vec)),
                            2 => {
                                may_meet(&what, log.contains_key(&five));
                                false
                            }
                            3 => may_meet(&what, log.put(&five, &new)).is_some(),
                            4 => {
                                let changed = log.update(&five, |value| value.set(&new).unwrap());
                                may_meet(&what, changed).flatten().is_some()
                            }
                            5 => may_meet(&what, log.compare_and_put(&five, &value(5), &new))
                                .unwrap_or(false),
                            6 => may_meet(&what, log.add(&five, 94)).is_some(),
                            _ => may_meet(&what, log.put_many(&[(five, new)]).map_err(|e| e.error))
                                .is_some(),
                        });
                    };
                    assert!(each_closure(&log, way, &mut inside), "{what}");
                    let was_put = was_put.expect("the closure ran");
                    if changes(way) && configuration.layout == Layout::Variable {
                        assert!(!was_put, "{what}: two changed the value at once");
                    }
                    let right = if was_put { value(99) } else { value(5) };
                    assert_eq!(log.get(&key(5)), Ok(Some(right.to_vec())), "{what}");
                    assert_usable(&log);
                }
            }
        }
    });
}

fn read(what: &str, answer: Result<Option<Vec<u8>>, Error>) -> bool {
    if let Some(found) = may_meet(what, answer) {
        assert_eq!(found, Some(value(5).to_vec()), "{what}");
    }
    false
}

/// What would wait for the closure it is called in is refused.
#[test]
fn a_closure_that_changes_a_key_cannot_change_it_from_inside() {
    case!().hangs_after(Duration::from_secs(60)).once(|| {
        for configuration in configurations().filter(|it| it.layout == Layout::Variable) {
            let log = filled(configuration);
            let inner = log.update(&key(5), |_| log.put(&key(5), &value(1)));
            assert_eq!(inner, Ok(Some(Err(Error::Reentrant))));
            let inner = log.update(&key(5), |_| log.remove(&key(5)));
            assert_eq!(inner, Ok(Some(Err(Error::Reentrant))));
            assert_eq!(log.get(&key(5)), Ok(Some(value(5).to_vec())));
            assert_usable(&log);
        }
    });
}

/// Other keys are as free inside a closure as outside, also while the index grows and pages go to
/// the disk: what cannot be done is refused and can be done after it. A compaction waits for pinned
/// threads, of which this is one: it must not wait for the compaction.
#[test]
fn a_walk_inside_a_closure_is_refused_while_the_log_is_compacted() {
    case!().once(|| {
        let log = filled(IN_MEMORY[0]);
        std::thread::scope(|scope| {
            let refused = log.get_with(&key(1), |_| {
                scope.spawn(|| log.compact(1.0).unwrap());
                loop {
                    match log.len_exact() {
                        Ok(count) => assert_eq!(count as u64, KEYS),
                        Err(error) => return error,
                    }
                    std::thread::yield_now();
                }
            });
            assert_eq!(refused, Ok(Some(Error::WouldBlock)));
        });
        assert_eq!(log.len_exact(), Ok(KEYS as usize));
    });
}

#[test]
fn a_closure_that_asks_for_other_keys_gets_on() {
    case!().hangs_after(Duration::from_secs(60)).once(|| {
        for configuration in configurations() {
            for way in 0..9 {
                let log = filled(configuration);
                let (mut done, mut refused) = (0, Vec::new());
                let mut inside = || {
                    for index in 100..400 {
                        match may_meet("put of another key", log.put(&key(index), &value(index))) {
                            Some(()) => done += 1,
                            None => refused.push(index),
                        }
                    }
                };
                assert!(each_closure(&log, way, &mut inside));
                assert!(done > 0, "{configuration:?}, way {way}: nothing gets on");
                for index in refused {
                    log.put(&key(index), &value(index)).unwrap();
                }
                for index in 100..400 {
                    assert_eq!(log.get(&key(index)), Ok(Some(value(index).to_vec())));
                }
                log.check().unwrap();
            }
        }
    });
}

/// Closures nested in closures on different keys, from several threads in opposite orders.
#[test]
fn nested_closures_in_opposite_orders_do_not_wait_for_each_other_for_ever() {
    case!().hangs_after(Duration::from_secs(60)).seeds(4, |seed| {
        for configuration in [crate::adapter::NASTIEST, crate::adapter::IN_MEMORY[1], COLDEST] {
            let log = filled(configuration);
            std::thread::scope(|scope| {
                for thread in 0..4u64 {
                    let log = &log;
                    scope.spawn(move || {
                        sapwood_testkit::interleave::seed_thread(seed << 8 | thread);
                        for step in 0..100 {
                            // Readers nest in any order; writers nest upwards, as locks must.
                            let (outer, inner) = (step % 5, 5 + (step + thread) % 5);
                            let nested = log.get_with(&key(outer), |_| log.get(&key(inner)));
                            assert!(nested.unwrap().is_some());
                            let nested = log.update(&key(outer), |_| log.add(&key(inner), 1));
                            assert!(nested.unwrap().is_some());
                        }
                    });
                }
            });
            assert_usable(&log);
        }
    });
}
