//! A thread that ends may use a log in the destructors of its thread-locals, those included that
//! run when the thread-locals of the engine are gone.

use crate::adapter::{
    COLDEST, Configuration, IN_MEMORY, KEPT_SHORT, NASTIEST, ON_DISK, configurations, contents,
    key, value,
};
use sapwood_hashlog::{Cut, Error, HashLog, RecordAddress};
use sapwood_testkit::engine::Pair;
use sapwood_testkit::heard::{Entries, Heard, replay};
use std::cell::RefCell;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

/// Work for the end of a thread.
struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

thread_local! {
    static AT_END: RefCell<AtEnd> = const { RefCell::new(AtEnd(None)) };
}

/// When a thread-local of a user is made: before or behind the first operation of its thread, or
/// without any. The last one is dropped first, or they are in any order, as the system likes.
#[derive(Debug, Clone, Copy)]
enum Made {
    Before,
    Behind,
    Alone,
}

const EVERY_MOMENT: [Made; 3] = [Made::Before, Made::Behind, Made::Alone];

/// What `work` answers in a destructor of a thread-local.
fn in_destructor<R: Send + 'static>(
    made: Made,
    first_operation: impl FnOnce() + Send + 'static,
    work: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (tell, told) = mpsc::channel();
    let at_end = move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        tell.send(result).expect("the test waits");
    };
    let make = |at_end| AT_END.with(|local| local.borrow_mut().0 = Some(at_end));
    let thread = std::thread::spawn(move || match made {
        Made::Before => {
            make(Box::new(at_end));
            first_operation();
        }
        Made::Behind => {
            first_operation();
            make(Box::new(at_end));
        }
        Made::Alone => make(Box::new(at_end)),
    });
    thread.join().expect("the thread itself does nothing that panics");
    told.recv().expect("the destructor runs").expect("no operation panics")
}

/// Calls every operation and writes down what each answers.
fn script(log: &HashLog, configuration: &Configuration) -> (Vec<String>, Vec<Pair>) {
    let mut answers = Vec::new();
    let mut note = |answer: &dyn Debug| answers.push(format!("{answer:?}"));
    for index in 0..200 {
        note(&log.put(&key(index), &value(index)));
    }
    let keys: Vec<_> = (0..300).map(key).collect();
    let pairs: Vec<_> = (100..300).map(|index| (key(index), value(2 * index))).collect();
    note(&log.put_many(&pairs));
    for index in (0..320).step_by(3) {
        note(&log.get(&key(index)));
        note(&log.contains_key(&key(index)));
        note(&log.put_if_absent(&key(index), &value(1)));
        note(&log.update(&key(index + 1), |value| value[0] ^= 1));
        note(&log.put_if_absent_or_update(&key(index + 2), &value(7), |value| value[1]));
        note(&log.compare_and_put(&key(index), &value(index), &value(3)));
        note(&log.add(&key(index), 5));
        note(&log.remove(&key(index + 1)));
    }
    let mut sum = 0;
    note(&log.get_many(&keys, |at, value| sum += at * usize::from(value.is_some())));
    note(&sum);
    note(&log.update_many(&keys, |at, value| value[2] = at as u8));
    note(&log.add_many(&keys.iter().map(|key| (*key, 1)).collect::<Vec<_>>()).map_err(drop));
    let addresses = vec![RecordAddress::default(); keys.len()];
    let change = |_: usize, value: Option<&mut sapwood_hashlog::ValueMut<'_>>| {
        value.into_iter().for_each(|value| value[3] = 4);
    };
    note(&log.update_at(&addresses, &keys, change));
    note(&log.edit().update_at(&addresses, &keys, change));
    walks(log, &mut note);
    closures(log, configuration, &mut note);
    note(&log.len_exact());
    note(&log.checkpoint(Cut::Full).map(drop));
    note(&log.compact(1.0).map(drop));
    note(&log.estimate_garbage().map(drop));
    note(&log.stats().compaction_error);
    note(&log.check());
    (answers, contents(log))
}

fn walks(log: &HashLog, note: &mut dyn FnMut(&dyn Debug)) {
    let mut seen = [0; 3];
    let mut see = |at: usize| {
        seen[at] += 1;
        ControlFlow::<()>::Continue(())
    };
    note(&log.for_each(|_, _| see(0)));
    note(&log.scan_log(|_, _| see(1)));
    note(&log.sweep().and_then(|sweep| sweep.scan_part(0, 1, |_, _| see(2))));
    note(&seen);
}

/// Pins within pins: of the same log, of another, and both ways round.
fn closures(log: &HashLog, configuration: &Configuration, note: &mut dyn FnMut(&dyn Debug)) {
    let other = COLDEST.log();
    for index in 0..200 {
        other.put(&key(index), &value(index)).expect("room");
    }
    let (ours, theirs) = (key(0), key(2));
    note(&log.get_with(&ours, |_| {
        let read = other.get_with(&theirs, |_| (log.get(&theirs), other.get(&key(50))));
        // A thread that is pinned must not wait for itself.
        let refused = [
            log.snapshot().map(drop),
            log.checkpoint(Cut::Full).map(drop),
            log.compact(1.0).map(drop),
        ];
        // A value that was read from the disk is shown without a pin. Where the log compacts itself,
        // it may just have been brought back.
        let is_either = configuration.keeps_short
            && [Ok(()), Err(Error::WouldBlock)]
                .iter()
                .any(|one| refused.iter().all(|it| it == one));
        (read, if is_either { None } else { Some(refused) })
    }));
    note(&log.update(&ours, |value| {
        value[5] = 5;
        // An attempt that is repeated, of a counter alone, may not find the lock that this holds.
        let again: Result<_, Error> = log.get(&theirs);
        (again, other.update(&theirs, |_| other.get(&theirs).is_ok()))
    }));
    note(&log.get(&ours));
    // Not pinned any more: what waits for pinned threads comes to an end.
    note(&other.checkpoint(Cut::Full).map(drop));
    note(&other.compact(1.0).map(drop));
    note(&other.check());
}

#[test]
fn a_destructor_of_a_thread_local_uses_a_log_as_any_code_does() {
    let all: Vec<Configuration> = configurations().chain(KEPT_SHORT).collect();
    for configuration in all {
        let expected = script(&configuration.log(), &configuration);
        for made in EVERY_MOMENT {
            let log = std::sync::Arc::new(configuration.log());
            let (first, last) = (log.clone(), log.clone());
            let first_operation = move || {
                // All that keeps something for its thread.
                first.put(&key(999), &value(1)).expect("room");
                first.update(&key(999), |value| value[0] = 2).expect("room");
                assert_eq!(first.remove(&key(999)), Ok(true));
            };
            let answers =
                in_destructor(made, first_operation, move || script(&last, &configuration));
            let differ = answers.0.iter().zip(&expected.0).find(|(ours, usual)| ours != usual);
            assert_eq!(differ, None, "{made:?}, {configuration:?}");
            assert!(answers == expected, "other entries; {made:?}, {configuration:?}");
            // The thread has left: nothing waits for it.
            log.compact(1.0).expect("a compaction");
            log.check().expect("a sound log");
        }
    }
}

/// With a journal too, which hears of all of it.
#[test]
fn a_destructor_of_a_thread_local_is_heard() {
    for configuration in [NASTIEST, IN_MEMORY[1], COLDEST, ON_DISK[1]] {
        let told = || {
            let (heard, journal) = Heard::journal();
            (configuration.log().with_journal(journal), heard)
        };
        let expected = script(&told().0, &configuration);
        for made in EVERY_MOMENT {
            let (log, heard) = told();
            let log = std::sync::Arc::new(log);
            let (first, last) = (log.clone(), log.clone());
            let first_operation = move || {
                first.update_many(&[key(999)], |_, _| ()).expect("room");
                first.put(&key(999), &value(1)).expect("room");
                assert_eq!(first.remove(&key(999)), Ok(true));
            };
            let answers =
                in_destructor(made, first_operation, move || script(&last, &configuration));
            assert!(answers == expected, "{made:?}, {configuration:?}");
            let mut entries = Entries::new();
            replay(&mut entries, &heard.take());
            assert_eq!(entries.into_iter().collect::<Vec<_>>(), contents(&log));
            // No latch is left.
            log.put_many(&(0..2_000).map(|index| (key(index), value(1))).collect::<Vec<_>>())
                .expect("room");
        }
    }
}

/// The counters that each thread adds when it ends are all there.
#[test]
fn threads_that_end_together_add_what_they_counted() {
    const THREADS: u64 = 40;
    for configuration in configurations() {
        let log = std::sync::Arc::new(configuration.log());
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let log = log.clone();
                std::thread::spawn(move || {
                    let at_end = {
                        let log = log.clone();
                        move || {
                            for index in 0..20 {
                                let added = log.add(&key(index), 1);
                                assert!(added.is_ok(), "{added:?}");
                            }
                        }
                    };
                    AT_END.with(|local| local.borrow_mut().0 = Some(Box::new(at_end)));
                    log.add(&key(0), 1).expect("room");
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let sums: Vec<_> = (0..20).map(|index| log.get(&key(index))).collect();
        let expected = |index: u64| value(THREADS * if index == 0 { 2 } else { 1 }).to_vec();
        let expected: Vec<_> = (0..20).map(|index| Ok(Some(expected(index)))).collect();
        assert_eq!(sums, expected, "{configuration:?}");
        log.check().expect("a sound log");
    }
}
