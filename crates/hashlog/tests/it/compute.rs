//! Closures that decide: compute, remove_with, retain, and the iterator beside them.

use crate::adapter::{
    Configuration, IN_MEMORY, KEPT_SHORT, NASTIEST, configurations, contents, key, value,
};
use sapwood_hashlog::{Compute, Computed, Error, HashLog, Layout, ValueMut};
use sapwood_testkit::case;
use sapwood_testkit::interleave::{self, Running, StartLine};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

fn count(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

/// What is taken out of a counter is what was added to it, whichever way both went.
#[test]
fn concurrent_removals_take_every_addition_once() {
    const THREADS: u64 = 4;
    const STEPS: u64 = 300;
    case!().seeds(2, |seed| {
        for configuration in configurations().chain(KEPT_SHORT) {
            let log = configuration.log();
            let (added, taken) = (AtomicU64::new(0), AtomicU64::new(0));
            let start = StartLine::new(THREADS as usize);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (log, added, taken, start) = (&log, &added, &taken, &start);
                    scope.spawn(move || {
                        interleave::seed_thread(seed << 8 | thread);
                        start.wait();
                        for step in 0..STEPS {
                            let key = key(step % 2);
                            if (step + thread).is_multiple_of(3) {
                                taken.fetch_add(take(log, &key, step), Ordering::Relaxed);
                            } else {
                                add(log, &key, step);
                                added.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            let left: u64 = contents(&log).iter().map(|(_, value)| count(value)).sum();
            let taken = taken.load(Ordering::Relaxed) + left;
            assert_eq!(added.load(Ordering::Relaxed), taken, "{configuration:?}");
            log.check().unwrap();
        }
    });
}

fn add(log: &HashLog, key: &[u8], way: u64) {
    match way % 4 {
        0 => drop(log.add(key, 1).unwrap()),
        1 => log.add_many(&[(key, 1)]).unwrap(),
        2 => {
            let change = |bytes: &mut ValueMut<'_>| {
                let sum = count(bytes) + 1;
                interleave::pause();
                bytes.copy_from_slice(&value(sum));
            };
            log.put_if_absent_or_update(key, &value(1), change).unwrap();
        }
        _ => {
            let more = |bytes: Option<&[u8]>| {
                let sum = bytes.map_or(0, count) + 1;
                interleave::pause();
                Compute::Replace(value(sum).to_vec())
            };
            log.compute(key, more).unwrap();
        }
    }
}

fn take(log: &HashLog, key: &[u8], way: u64) -> u64 {
    if way.is_multiple_of(2) {
        return log.remove_with(key, count).unwrap().unwrap_or(0);
    }
    let mut seen = 0;
    let done = log.compute(key, |bytes| {
        seen = bytes.map_or(0, count);
        interleave::pause();
        Compute::Remove
    });
    match done.unwrap() {
        Computed::Removed => seen,
        _ => 0,
    }
}

/// A counter with an odd count is never removed: only its own thread adds to it, and sees the count
/// go on or, from an even one, begin again.
#[test]
fn retain_removes_nothing_that_it_would_have_kept() {
    const STEPS: u64 = 2_000;
    case!().seeds(3, |seed| {
        let mut removed = 0;
        for configuration in configurations().chain(KEPT_SHORT) {
            let log = configuration.log();
            let running = Running::new(2);
            std::thread::scope(|scope| {
                for thread in 0..2 {
                    let (log, running) = (&log, &running);
                    scope.spawn(move || {
                        let _running = running.guard();
                        interleave::seed_thread(seed << 8 | thread);
                        let mut last = 0;
                        for step in 0..STEPS {
                            let sum = log.add(&key(thread), 1).unwrap();
                            let goes_on = sum == last + 1;
                            let begins = sum == 1 && last % 2 == 0;
                            assert!(goes_on || begins, "{configuration:?}: {last}, then {sum}");
                            last = sum;
                            if step % 16 == 0 {
                                interleave::pause();
                            }
                        }
                    });
                }
                while running.any() {
                    removed += log.retain(|_, value| count(value) % 2 == 1).unwrap();
                }
            });
            log.check().unwrap();
        }
        assert!(removed > 0, "no removal met a writer");
    });
}

/// A key that is there throughout comes once, while the index grows and records move.
#[test]
fn an_iterator_shows_every_key_that_stays_once() {
    const STAY: u64 = 3_000;
    for configuration in [NASTIEST, IN_MEMORY[3], KEPT_SHORT[3]] {
        let log = configuration.log();
        for index in 0..STAY {
            log.put(&key(index), &value(index)).unwrap();
        }
        let running = Running::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for index in (STAY..).take_while(|_| running.any()).take(60_000) {
                    log.put(&key(index), &value(index)).unwrap();
                    log.put(&key(index % STAY), &value(index % STAY)).unwrap();
                    if index % 3 == 1 {
                        log.remove(&key(index - 1)).unwrap();
                    }
                }
            });
            let _running = running.guard();
            for _ in 0..3 {
                let mut seen = BTreeSet::new();
                for entry in log.iter() {
                    let (key, _) = entry.unwrap();
                    assert!(seen.insert(key), "{configuration:?}: a key came twice");
                }
                let missing = (0..STAY).find(|index| !seen.contains(&key(*index)[..]));
                assert_eq!(missing, None, "{configuration:?}");
            }
        });
    }
}

/// Steps hold nothing: between two of them the same thread may do what waits for walks.
#[test]
fn nothing_waits_for_an_iterator() {
    for configuration in configurations() {
        let log = configuration.log();
        for index in 0..2_000 {
            log.put(&key(index), &value(index)).unwrap();
        }
        let mut entries = log.iter();
        assert!(entries.next().is_some());
        log.compact(1.0).unwrap();
        drop(log.snapshot().unwrap());
        assert_eq!(entries.filter(Result::is_ok).count(), 1_999, "{configuration:?}");
        assert_eq!(log.retain(|_, _| false).unwrap(), 2_000);
        assert_eq!(log.iter().count(), 0);
        log.check().unwrap();
    }
}

#[test]
fn a_closure_that_panics_leaves_the_entry() {
    for configuration in configurations() {
        let log = configuration.log();
        log.put(&key(1), &value(1)).unwrap();
        let told = catch_unwind(AssertUnwindSafe(|| log.compute(&key(1), |_| panic!("no"))));
        assert!(told.is_err());
        let told = catch_unwind(AssertUnwindSafe(|| log.retain(|_, _| panic!("no"))));
        assert!(told.is_err());
        assert_eq!(log.get(&key(1)).unwrap(), Some(value(1).to_vec()));
        // No lock and no hold is left behind.
        assert_eq!(log.compute(&key(1), |_| Compute::Remove).unwrap(), Computed::Removed);
        log.put(&key(1), &value(2)).unwrap();
        let told = catch_unwind(AssertUnwindSafe(|| log.remove_with(&key(1), |_| panic!("no"))));
        assert!(told.is_err());
        assert_eq!(log.get(&key(1)).unwrap(), None, "{configuration:?}");
        log.check().unwrap();
    }
}

/// What would wait for the closure itself is refused, and works after it.
#[test]
fn a_closure_is_never_waited_for_by_its_own_thread() {
    for configuration in IN_MEMORY {
        let log = configuration.log();
        log.put(&key(1), &value(1)).unwrap();
        log.put(&key(2), &value(2)).unwrap();
        let inside = log.update(&key(1), |_| log.compute(&key(2), |_| Compute::Remove));
        let right = match configuration.layout {
            Layout::Fixed8 => Err(Error::WouldBlock),
            Layout::Variable => Ok(Computed::Removed),
        };
        assert_eq!(inside.unwrap().unwrap(), right, "{configuration:?}");
        if configuration.layout == Layout::Variable {
            let same = log.compute(&key(1), |_| {
                assert_eq!(log.put(&key(1), &value(9)), Err(Error::Reentrant));
                Compute::Keep
            });
            assert_eq!(same, Ok(Computed::Kept));
        }
        log.compute(&key(2), |_| Compute::Remove).unwrap();
        assert_eq!(log.get(&key(2)).unwrap(), None);
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_and_nothing_changed() {
    let too_long = |configuration: &Configuration| vec![7; configuration.page_bytes + 8];
    for configuration in configurations() {
        let log = configuration.log();
        let replace = |_: Option<&[u8]>| Compute::Replace(too_long(&configuration));
        for there in [false, true] {
            let refused = log.compute(&key(1), replace);
            assert!(matches!(refused, Err(Error::ValueLength { .. })), "{refused:?}");
            assert_eq!(log.get(&key(1)).unwrap().is_some(), there);
            log.put(&key(1), &value(1)).unwrap();
        }
        assert_eq!(log.get(&key(1)).unwrap(), Some(value(1).to_vec()));
    }
}

/// Out of memory, an insert by a decision changes nothing, and a removal by one still works.
#[test]
fn a_full_log_refuses_what_grows_and_lets_go() {
    for configuration in [NASTIEST, IN_MEMORY[3]] {
        let mut options = configuration.options();
        options.memory_budget = Some(48 << 10);
        let log = HashLog::in_memory(options).unwrap();
        let put = |index: u64| {
            log.compute(&key(index), |now| {
                assert_eq!(now, None);
                Compute::Replace(value(index).to_vec())
            })
        };
        let full = (0..).find(|index| put(*index).is_err()).unwrap();
        assert!(matches!(put(full), Err(Error::OutOfMemory { .. })));
        assert_eq!(log.get(&key(full)).unwrap(), None);
        assert_eq!(log.len().unwrap() as u64, full);
        for index in 0..full {
            let removed = log.remove_with(&key(index), count).unwrap();
            assert_eq!(removed, Some(index), "{configuration:?}");
        }
        assert_eq!(log.len_exact().unwrap(), 0);
        log.check().unwrap();
    }
}
