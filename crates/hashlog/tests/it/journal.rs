//! What a journal hears, done again, leads to what the log has.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use fastrand::Rng;
use sapwood_disk::{Disk, SimDisk};
use sapwood_engine::{Effect, Journal};
use sapwood_hashlog::{
    Columns, Compute, Cut, Error, HashLog, Layout, RecordAddress, Upsert, ValueMut,
};
use sapwood_testkit::case;
use sapwood_testkit::heard::{Done, Entries, Heard, replay};

use crate::adapter::{COLDEST, Configuration, IN_MEMORY, KEPT_SHORT, NASTIEST, ON_DISK};

const CONFIGURATIONS: [Configuration; 8] = [
    NASTIEST,
    IN_MEMORY[1],
    IN_MEMORY[2],
    COLDEST,
    ON_DISK[1],
    KEPT_SHORT[0],
    KEPT_SHORT[1],
    KEPT_SHORT[2],
];

fn contents(log: &HashLog) -> Entries {
    log.iter().collect::<Result<BTreeMap<_, _>, _>>().expect("walked")
}

fn told(log: HashLog) -> (HashLog, Arc<Heard>) {
    let (heard, journal) = Heard::journal();
    (log.with_journal(journal), heard)
}

/// A key of few, and a value that it may have.
fn pair(log: &HashLog, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
    let number = rng.u64(..12);
    match log.layout() {
        Layout::Fixed8 => (number.to_le_bytes().to_vec(), rng.u64(..4).to_le_bytes().to_vec()),
        Layout::Variable => {
            let key = vec![b'k'; 1 + number as usize];
            let len = if rng.bool() { 8 } else { rng.usize(..20) };
            (key, vec![rng.u8(..2); len])
        }
    }
}

/// A change within a closure, which may be that of the same key.
fn nested(log: &HashLog, inner: u8, key: &[u8], value: &[u8]) {
    let done = match inner {
        0 => log.put(key, value),
        1 => log.remove(key).map(drop),
        _ => log.update(key, |now| now.set(value).expect("it fits")).map(drop),
    };
    let refused = Err(Error::WouldBlock);
    assert!(done.is_ok() || done == refused || done == Err(Error::Reentrant), "{done:?}");
}

/// One change of any kind.
fn change(log: &HashLog, rng: &mut Rng) {
    let (key, value) = pair(log, rng);
    let (other, more) = pair(log, rng);
    let flip = |bytes: &mut [u8], at: usize| {
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1;
        }
    };
    let at = rng.usize(..10);
    let done = match rng.u8(..22) {
        0 | 1 => log.put(&key, &value),
        2 => log.put_if_absent(&key, &value).map(drop),
        3 | 4 => log.remove(&key).map(drop),
        5 => log.remove_with(&key, <[u8]>::len).map(drop),
        6 => log.update(&key, |now| flip(now, at)).map(drop),
        7 => log.update(&key, |now| now.set(&value).expect("it fits")).map(drop),
        8 => log.put_if_absent_or_update(&key, &value, |now| flip(now, at)).map(drop),
        9 => log.compare_and_put(&key, &value, &more).map(drop),
        10 => match log.add(&key, 3) {
            Err(Error::NotACounter { .. }) => Ok(()),
            added => added.map(drop),
        },
        11 | 12 => {
            let removes = rng.bool();
            let decided = log.compute(&key, |now| match now {
                None => Compute::Replace(value.clone()),
                Some(_) if removes => Compute::Remove,
                Some(now) if now == value => Compute::Keep,
                Some(_) => Compute::Replace(value.clone()),
            });
            decided.map(drop)
        }
        13 => log.put_many(&[(&key, &value), (&other, &more), (&key, &more)]).map_err(|s| s.error),
        14 => {
            let changed = log.update_many(&[&key, &other, &key], |at, now| flip(now, at));
            changed.map(drop).map_err(|stopped| stopped.error)
        }
        15 => match log.add_many(&[(&key, 1), (&other, 2)]) {
            Err(stopped) if matches!(stopped.error, Error::NotACounter { .. }) => Ok(()),
            added => added.map_err(|stopped| stopped.error),
        },
        16 => log.retain(|seen, _| seen != key || at > 5).map(drop),
        17..=20 => {
            let inner = rng.u8(..3);
            // Once: a closure that changes its own key each time that it runs may be run for ever.
            let mut is_first = true;
            let mut nested = || {
                if std::mem::take(&mut is_first) {
                    nested(log, inner, &other, &more);
                }
            };
            match rng.u8(..3) {
                0 => log.update(&key, |now| (nested(), flip(now, at))).map(drop),
                1 => {
                    let decided = log.compute(&key, |now| {
                        nested();
                        now.map_or(Compute::Keep, |_| Compute::Replace(value.clone()))
                    });
                    decided.map(drop)
                }
                _ => {
                    let changed = log.update_many(&[&other, &key, &other], |index, now| {
                        if index == 1 {
                            nested();
                        }
                        flip(now, at);
                    });
                    changed.map(drop).map_err(|stopped| stopped.error)
                }
            }
        }
        _ => {
            let mut addresses = [RecordAddress::default(); 2];
            let met = log.get_many_with_addresses(&[&key, &other], |at, found| {
                addresses[at] = found.map_or(RecordAddress::default(), |(_, address)| address);
            });
            met.expect("read");
            let edit = log.edit();
            let changed = edit.update_at(&addresses, &[&key, &other], |at, now| {
                if let Some(now) = now {
                    flip(now, at);
                }
            });
            changed.map(drop).map_err(|stopped| stopped.error)
        }
    };
    done.expect("changed");
}

#[test]
fn what_is_heard_leads_to_what_is_there() {
    case!().seeds(40, |seed| {
        let mut rng = Rng::with_seed(seed);
        for configuration in CONFIGURATIONS {
            let (log, heard) = told(configuration.log());
            let mut entries = Entries::new();
            for step in 0..150 {
                change(&log, &mut rng);
                replay(&mut entries, &heard.take());
                assert_eq!(entries, contents(&log), "{configuration:?}, step {step}");
            }
            log.clear().expect("cleared");
            replay(&mut entries, &heard.take());
            assert_eq!(entries, Entries::new());
        }
    });
}

#[test]
fn threads_change_the_same_keys_and_are_heard_in_their_order() {
    case!().seeds(12, |seed| {
        for configuration in CONFIGURATIONS {
            let (log, heard) = told(configuration.log());
            thread::scope(|scope| {
                for thread in 0..4 {
                    let log = &log;
                    scope.spawn(move || {
                        let mut rng = Rng::with_seed(seed * 4 + thread);
                        (0..150).for_each(|_| change(log, &mut rng));
                    });
                }
            });
            let mut entries = Entries::new();
            replay(&mut entries, &heard.take());
            assert_eq!(entries, contents(&log), "{configuration:?}");
        }
    });
}

/// What a database does after a crash: a checkpoint, and what was heard from before its moment on.
#[test]
fn a_checkpoint_and_what_was_heard_since_are_the_log() {
    case!().seeds(20, |seed| {
        for configuration in [COLDEST, ON_DISK[1], KEPT_SHORT[1], KEPT_SHORT[2]] {
            let disk = SimDisk::new();
            let (log, heard) = told(configuration.open(&disk));
            let is_over = AtomicBool::new(false);
            let from = thread::scope(|scope| {
                let writers: Vec<_> = (0..3)
                    .map(|thread| {
                        let log = &log;
                        scope.spawn(move || {
                            let mut rng = Rng::with_seed(seed * 3 + thread);
                            (0..120).for_each(|_| change(log, &mut rng));
                        })
                    })
                    .collect();
                let checkpoints = scope.spawn(|| {
                    let mut from = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let heard = heard.all().len();
                        log.checkpoint(Cut::Incremental).expect("written");
                        from = heard;
                    }
                    from
                });
                writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
                is_over.store(true, Ordering::Relaxed);
                checkpoints.join().expect("no panic")
            });
            let before = contents(&log);
            drop(log);
            let mut entries = contents(&configuration.open(&disk));
            replay(&mut entries, &heard.all()[from..]);
            assert_eq!(entries, before, "{configuration:?}");
        }
    });
}

#[test]
fn an_update_tells_the_bytes_that_it_changed() {
    let (log, heard) = told(IN_MEMORY[4].log());
    log.put(b"k", &[0; 100]).expect("put");
    heard.take();
    log.update(b"k", |value| (value[40], value[42]) = (1, 1)).expect("update");
    assert_eq!(heard.take(), [(b"k".to_vec(), Done::Write(40, vec![1, 0, 1]))]);
    log.update(b"k", |value| value[7] = 0).expect("update");
    assert_eq!(heard.take(), []);
    log.update(b"k", |value| (value[0], value[99]) = (1, 1)).expect("update");
    assert!(matches!(&heard.take()[..], [(_, Done::Put(value))] if value.len() == 100));
    log.compare_and_put(b"k", b"another", b"value").expect("compared");
    log.put_if_absent(b"k", b"another").expect("put");
    log.remove(b"absent").expect("remove");
    assert_eq!(log.update(b"absent", |_| ()), Ok(None));
    assert_eq!(heard.take(), []);
}

/// Closures may read and, where no other thread is in the way, write.
#[test]
fn nested_changes_are_told_too() {
    for configuration in [NASTIEST, IN_MEMORY[1], COLDEST] {
        let (log, heard) = told(configuration.log());
        let key = |number: u64| number.to_le_bytes();
        log.put(&key(1), &key(0)).expect("put");
        let done = log.put_if_absent_or_update(&key(1), &key(0), |value| {
            (2..200).for_each(|other| log.put(&key(other), &key(7)).expect("no other thread"));
            value[0] = 9;
        });
        assert_eq!(done, Ok(Upsert::Updated(())));
        log.get_with(&key(1), |_| log.put(&key(300), &key(8)).expect("no other thread"))
            .expect("read");
        let mut entries = Entries::new();
        replay(&mut entries, &heard.take());
        assert_eq!(entries, contents(&log), "{configuration:?}");
        assert_eq!(entries.len(), 200);
    }
}

/// What a closure does to its own key is told as the engine has it in the end.
#[test]
fn a_closure_that_changes_its_own_key_is_told() {
    let key = 1_u64.to_le_bytes();
    let value = |number: u64| number.to_le_bytes();
    for configuration in [NASTIEST, IN_MEMORY[1], COLDEST, ON_DISK[1]] {
        for removes in [false, true] {
            for batch in [false, true] {
                let (log, heard) = told(configuration.log());
                log.put(&key, &value(1)).expect("put");
                let nested = |now: &mut ValueMut<'_>| {
                    // Where a closure must not, it is refused, and the update counts.
                    let _refused = match removes {
                        true => log.remove(&key).map(drop),
                        false => log.put(&key, &value(2)),
                    };
                    now[0] = 9;
                };
                match batch {
                    false => assert_eq!(log.update(&key, nested), Ok(Some(()))),
                    true => {
                        let done = log.update_many(&[key], |_, now| nested(now));
                        assert_eq!(done.map_err(|stopped| stopped.error), Ok(1));
                    }
                }
                let mut entries = Entries::new();
                replay(&mut entries, &heard.take());
                assert_eq!(entries, contents(&log), "{configuration:?}, {removes}, {batch}");
            }
        }
    }
}

/// A closure of a batch changes a key whose turn was before, or panics: what was done by then is told,
/// and in its order.
#[test]
fn a_batch_is_told_in_its_order() {
    let keys = [1_u64, 2, 3].map(u64::to_le_bytes);
    for configuration in CONFIGURATIONS {
        for panics in [false, true] {
            let (log, heard) = told(configuration.log());
            log.put_many(&keys.map(|key| (key, [0; 8]))).expect("put");
            let change = |at: usize, value: &mut ValueMut<'_>| {
                value[0] += 1;
                match (at, panics) {
                    (1, true) => panic!("as planned"),
                    (1, false) => _ = log.put(&keys[0], &[7; 8]),
                    _ => {}
                }
            };
            let run = catch_unwind(AssertUnwindSafe(|| log.update_many(&keys, change)));
            assert_eq!(run.is_err(), panics);
            let mut entries = Entries::new();
            replay(&mut entries, &heard.take());
            assert_eq!(entries, contents(&log), "{configuration:?}");
            assert_eq!(entries[&keys[0][..]][0], if panics { 1 } else { 7 });
        }
    }
}

/// Of a batch that stops, what is done is told.
#[test]
fn a_batch_that_stops_has_told_what_it_did() {
    let (log, heard) = told(IN_MEMORY[4].log());
    log.put(b"text", b"no counter").expect("put");
    heard.take();
    let stopped =
        log.add_many(&[(b"one1", 1), (b"text", 1), (b"two2", 1)]).expect_err("no counter");
    assert_eq!((stopped.done, stopped.error), (1, Error::NotACounter { len: 10 }));
    assert_eq!(heard.take(), [(b"one1".to_vec(), Done::Put(1_i64.to_le_bytes().to_vec()))]);
    let long = vec![0; 4 << 20];
    let stopped = log.put_many(&[(b"a", &[1][..]), (b"b", &long)]).expect_err("it fits no page");
    assert_eq!(stopped.done, 1);
    assert_eq!(heard.take(), [(b"a".to_vec(), Done::Put(vec![1]))]);
    let stopped = log.put_many(&[(&b"c"[..], b"1"), (&b""[..], b"2")]).expect_err("no key");
    assert_eq!(stopped.done, 1);
    assert_eq!(heard.take(), [(b"c".to_vec(), Done::Put(b"1".to_vec()))]);
}

/// Threads that change a second entry within a closure do not wait for each other.
#[test]
fn nested_changes_of_threads_end() {
    let (log, heard) = told(IN_MEMORY[1].log());
    let key = |number: u64| number.to_le_bytes();
    (0..8).for_each(|number| log.put(&key(number), &key(0)).expect("put"));
    thread::scope(|scope| {
        for seed in 0..3 {
            let log = &log;
            scope.spawn(move || {
                let mut rng = Rng::with_seed(seed);
                for _ in 0..3_000 {
                    let (one, other) = (rng.u64(..8), rng.u64(..8));
                    let nested = log.compute(&key(one), |_| match log.put(&key(other), &key(1)) {
                        Ok(()) | Err(Error::WouldBlock | Error::Reentrant) => {
                            Compute::Replace(key(2).to_vec())
                        }
                        Err(error) => panic!("{error}"),
                    });
                    assert!(matches!(nested, Ok(_) | Err(Error::WouldBlock)), "{nested:?}");
                }
            });
        }
    });
    let mut entries = Entries::new();
    replay(&mut entries, &heard.take());
    assert_eq!(entries, contents(&log));
}

#[test]
fn a_panic_tells_nothing_that_did_not_happen() {
    for configuration in [NASTIEST, IN_MEMORY[1], COLDEST] {
        let (log, heard) = told(configuration.log());
        let key = 1_u64.to_le_bytes();
        log.put(&key, &key).expect("put");
        heard.take();
        for what in 0..3 {
            let panicking = catch_unwind(AssertUnwindSafe(|| match what {
                0 => drop(log.update(&key, |value| {
                    value[0] = 9;
                    panic!("as planned");
                })),
                1 => drop(log.compute(&key, |_| panic!("as planned"))),
                _ => drop(log.update_many(&[&key], |_, _| panic!("as planned"))),
            }));
            assert!(panicking.is_err());
        }
        assert_eq!(heard.take(), []);
        log.put(&key, &2_u64.to_le_bytes()).expect("nothing is latched any more");
        assert_eq!(heard.take().len(), 1);
    }
}

/// Syncs fail, or come too late: it notes what of a checkpoint was there by then.
#[derive(Debug)]
struct Syncs {
    disk: SimDisk,
    fails: AtomicBool,
    manifests: Mutex<Vec<usize>>,
}

impl Journal for Syncs {
    fn log(&self, _key: &[u8], _effect: Effect<'_>) {}

    fn sync(&self) -> io::Result<()> {
        self.manifests.lock().expect("no panic").push(manifests(&self.disk));
        match self.fails.load(Ordering::Relaxed) {
            true => Err(io::Error::other("fails as planned")),
            false => Ok(()),
        }
    }
}

fn manifests(disk: &SimDisk) -> usize {
    let names = disk.list().expect("names");
    names.iter().filter(|name| name.starts_with("checkpoint-")).count()
}

#[test]
fn the_journal_lasts_before_a_checkpoint_counts() {
    let disk = SimDisk::new();
    let syncs = Arc::new(Syncs {
        disk: disk.clone(),
        fails: AtomicBool::new(false),
        manifests: Mutex::default(),
    });
    let log = COLDEST.open(&disk).with_journal(syncs.clone());
    log.put(b"k", b"1").expect("put");
    log.checkpoint(Cut::Full).expect("written");
    assert!(manifests(&disk) > 0, "{:?}", disk.list());
    let by_then = syncs.manifests.lock().expect("no panic").clone();
    assert_eq!(by_then, [0], "it is synced once, before the checkpoint is there");
    log.put(b"k", b"1").expect("put");
    let before = manifests(&disk);
    log.snapshot().expect("a moment").checkpoint(Cut::Incremental).expect("written");
    let by_then = syncs.manifests.lock().expect("no panic").clone();
    assert_eq!(by_then, [0, before], "a checkpoint of a snapshot waits for the journal, too");
    log.put(b"k", b"2").expect("put");
    syncs.fails.store(true, Ordering::Relaxed);
    let refused = log.checkpoint(Cut::Incremental).expect_err("its journal may not last");
    assert!(refused.to_string().contains("fails as planned"), "{refused}");
    drop(log);
    assert_eq!(COLDEST.open(&disk).get(b"k"), Ok(Some(b"1".to_vec())));
}

/// What a walk met is changed by key, and told.
#[test]
fn an_edit_is_told() {
    let (log, heard) = told(IN_MEMORY[3].log());
    (0..500_u64).for_each(|key| log.put(&key.to_le_bytes(), &[0; 8]).expect("put"));
    let (mut addresses, mut keys) = (Vec::new(), Vec::new());
    {
        let sweep = log.sweep().expect("a walk");
        let walk = sweep.by_columns(Columns::Addresses).expect("records of fixed length");
        let walked = walk.scan(|batch| {
            addresses.extend((0..batch.len()).filter_map(|at| batch.addresses().get(at)));
            keys.extend_from_slice(batch.keys().words().expect("keys of 8 bytes"));
            std::ops::ControlFlow::<()>::Continue(())
        });
        assert!(walked.expect("walked").is_continue());
    }
    let changed = log.edit().update_at(&addresses, &keys, |_, value| {
        value.expect("it is there")[0] = 1;
    });
    assert_eq!(changed.map_err(|stopped| stopped.error), Ok(500));
    let mut entries = Entries::new();
    replay(&mut entries, &heard.take());
    assert_eq!(entries, contents(&log));
    assert!(entries.values().all(|value| value[0] == 1));
}
