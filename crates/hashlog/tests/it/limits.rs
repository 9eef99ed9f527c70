//! At each limit: the last that is taken, the first that is refused, and nothing lost by it.

use crate::adapter::{
    Adapter, Configuration, IN_MEMORY, NASTIEST, configurations, contents, key, value,
};
use sapwood_disk::SimDisk;
use sapwood_hashlog::{BatchError, Cut, Error, HashLog, Layout, Options, ValueMut};
use sapwood_testkit::case;
use sapwood_testkit::keyed::KeyedEngine as _;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The lengths of keys that `log` says it takes.
fn key_lengths(log: &HashLog) -> (usize, usize) {
    match log.get(&[]) {
        Err(Error::KeyLength { len: 0, min, max }) => (min, max),
        other => panic!("an empty key: {other:?}"),
    }
}

/// The lengths of values that `log` says it takes beside a key of 8 bytes.
fn value_lengths(log: &HashLog, page_bytes: usize) -> (usize, usize) {
    match log.put(&key(0), &vec![0; page_bytes + 1]) {
        Err(Error::ValueLength { len, min, max }) if len == page_bytes + 1 => (min, max),
        other => panic!("a value longer than a page: {other:?}"),
    }
}

#[test]
fn lengths_are_what_the_documentation_says() {
    for configuration in configurations() {
        let log = configuration.log();
        let lengths = configuration.lengths();
        assert_eq!(key_lengths(&log), (*lengths.key.start(), *lengths.key.end()));
        let values = lengths.value_of(8);
        let told = value_lengths(&log, configuration.page_bytes);
        assert_eq!(told, (*values.start(), *values.end()), "{configuration:?}");
    }
}

#[test]
fn keys_of_a_wrong_length_are_refused_by_every_operation() {
    for configuration in configurations() {
        let log = configuration.log();
        let value = &value(1)[..];
        let (min, max) = key_lengths(&log);
        for len in [min, *configuration.lengths().key_of_pair().end()] {
            // Beside the longest key there may be no room for a value.
            let value = &value[..configuration.lengths().value_of(len).end().min(&8).to_owned()];
            let key = vec![b'k'; len];
            log.put(&key, value).unwrap();
            assert_eq!(log.get(&key), Ok(Some(value.to_vec())));
            assert_eq!(log.remove(&key), Ok(true));
            log.put(&key, value).unwrap();
        }
        let held = contents(&log);
        for len in [0, min - 1, max + 1, 3 * max + 1, 1 << 20] {
            let key = &vec![b'k'; len][..];
            let refused = Error::KeyLength { len, min, max };
            assert_eq!(log.get(key), Err(refused.clone()));
            assert_eq!(log.get_with(key, |_| ()), Err(refused.clone()));
            assert_eq!(log.contains_key(key), Err(refused.clone()));
            assert_eq!(log.put(key, value), Err(refused.clone()));
            assert_eq!(log.put_if_absent(key, value), Err(refused.clone()));
            assert_eq!(log.remove(key), Err(refused.clone()));
            assert_eq!(log.update(key, |_| ()), Err(refused.clone()));
            let upsert = log.put_if_absent_or_update(key, value, |_| ());
            assert_eq!(upsert, Err(refused.clone()));
            assert_eq!(log.compare_and_put(key, value, value), Err(refused.clone()));
            assert_eq!(log.add(key, 1), Err(refused.clone()));
            assert_eq!(log.get_many(&[key], |_, _| ()), Err(refused.clone()));
            let good = &crate::adapter::key(9)[..];
            let stopped = BatchError { done: 1, error: refused };
            let batch = log.put_many(&[(good, value), (key, value), (good, value)]);
            assert_eq!(batch, Err(stopped.clone()));
            assert_eq!(log.update_many(&[good, key], |_, _| ()), Err(stopped.clone()));
            assert_eq!(log.add_many(&[(good, 1), (key, 1)]), Err(stopped));
            assert_eq!(log.remove(good), Ok(true));
            assert_eq!(contents(&log), held);
        }
        log.check().unwrap();
    }
}

#[test]
fn values_of_a_wrong_length_are_refused_by_every_operation() {
    for configuration in configurations() {
        let log = configuration.log();
        let (min, max) = value_lengths(&log, configuration.page_bytes);
        let (there, absent) = (&key(1)[..], &key(2)[..]);
        for len in [min, max] {
            let value = vec![b'v'; len];
            log.put(there, &value).unwrap();
            assert_eq!(log.get(there), Ok(Some(value)));
        }
        let held = contents(&log);
        let too_short = min.checked_sub(1);
        for len in [max + 1, max + 8, 40 << 20].into_iter().chain(too_short) {
            let long = &vec![b'v'; len][..];
            let refused = Error::ValueLength { len, min, max };
            assert_eq!(log.put(there, long), Err(refused.clone()));
            assert_eq!(log.put(absent, long), Err(refused.clone()));
            assert_eq!(log.put_if_absent(absent, long), Err(refused.clone()));
            let upsert = log.put_if_absent_or_update(absent, long, |_| ());
            assert_eq!(upsert, Err(refused.clone()));
            let was = &held[0].1;
            assert_eq!(log.compare_and_put(there, was, long), Err(refused.clone()));
            let stopped = BatchError { done: 1, error: refused.clone() };
            assert_eq!(log.put_many(&[(there, &was[..]), (there, long)]), Err(stopped));
            let grow = |value: &mut ValueMut<'_>| {
                (value.set(long), value.resize(long.len()), value.to_vec())
            };
            let steps = (Err(refused.clone()), Err(refused.clone()), was.clone());
            assert_eq!(log.update(there, grow), Ok(Some(steps)));
            assert_eq!(contents(&log), held);
        }
        let long = Error::ValueLength { len: max + 1, min, max };
        let append = |value: &mut ValueMut<'_>| value.extend_from_slice(b"x");
        assert_eq!(log.update(there, append), Ok(Some(Err(long))));
        let huge = Error::ValueLength { len: usize::MAX, min, max };
        assert_eq!(log.update(there, |value| value.resize(usize::MAX)), Ok(Some(Err(huge))));
        assert_eq!(contents(&log), held);
        log.check().unwrap();
    }
}

#[test]
fn counters_keep_to_their_range() {
    for configuration in configurations() {
        let log = configuration.log();
        for (end, step) in [(i64::MAX, 1), (i64::MIN, -1)] {
            let counter = &key(end as u64)[..];
            assert_eq!(log.add(counter, end), Ok(end));
            assert_eq!(log.add(counter, 0), Ok(end));
            for delta in [step, 100 * step, end] {
                let overflow = Error::Overflow { value: end, delta };
                assert_eq!(log.add(counter, delta), Err(overflow.clone()));
                let fresh = &key(7)[..];
                let batch = log.add_many(&[(fresh, 5), (counter, delta), (fresh, 5)]);
                assert_eq!(batch, Err(BatchError { done: 1, error: overflow }));
                assert_eq!(log.get(fresh), Ok(Some(value(5).to_vec())));
                assert_eq!(log.remove(fresh), Ok(true));
            }
            assert_eq!(log.add(counter, -step), Ok(end - step));
            assert_eq!(log.add(counter, step), Ok(end));
            assert_eq!(log.get(counter), Ok(Some(end.to_le_bytes().to_vec())));
        }
        assert_eq!(log.add(&key(3), i64::MIN), Ok(i64::MIN));
        log.check().unwrap();
    }
}

#[test]
fn only_8_bytes_are_a_counter() {
    for configuration in configurations().filter(|it| it.layout == Layout::Variable) {
        let log = configuration.log();
        for len in [0, 1, 7, 9, 16] {
            let text = vec![b'1'; len];
            log.put(b"text", &text).unwrap();
            assert_eq!(log.add(b"text", 1), Err(Error::NotACounter { len }));
            let batch = log.add_many(&[(&b"other"[..], 1), (b"text", 1)]);
            assert_eq!(batch, Err(BatchError { done: 1, error: Error::NotACounter { len } }));
            assert_eq!(log.get(b"text"), Ok(Some(text)));
        }
    }
}

/// Puts until the budget refuses; returns how many are in.
fn fill(log: &HashLog, bytes: &[u8]) -> u64 {
    for index in 0.. {
        match log.put(&key(index), bytes) {
            Ok(()) => {}
            Err(Error::OutOfMemory { used, budget, .. }) => {
                assert!(used <= budget, "{used} of {budget} bytes in use");
                return index;
            }
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("the budget is finite")
}

fn bounded(configuration: Configuration, budget: u64) -> HashLog {
    let mut options = configuration.options();
    options.memory_budget = Some(budget);
    HashLog::in_memory(options).expect("room for an empty log")
}

#[test]
fn a_budget_without_a_directory_refuses_with_nothing_lost() {
    for configuration in IN_MEMORY {
        let budget = if configuration.page_bytes > 1 << 20 { 16 << 20 } else { 256 << 10 };
        let log = bounded(configuration, budget);
        let bytes = value(7);
        let count = fill(&log, &bytes);
        // The smallest pages spend most of their memory on themselves.
        let each = if configuration.page_bytes < 4 << 10 { 4 << 10 } else { 128 };
        assert!(count * each > budget, "{configuration:?}: {count} entries in {budget} bytes");
        let stats = log.stats();
        assert!(stats.reserved_bytes <= budget, "{stats:?}");
        assert_eq!(stats.budget_bytes, Some(budget));
        let intact = || {
            for index in 0..count {
                assert_eq!(log.get(&key(index)), Ok(Some(bytes.to_vec())));
            }
            assert_eq!(log.len_exact(), Ok(count as usize));
            log.check().unwrap();
        };
        intact();
        let out = |error: Error| assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        out(log.put(&key(count), &bytes).unwrap_err());
        out(log.put_if_absent(&key(count), &bytes).unwrap_err());
        out(log.put_if_absent_or_update(&key(count), &bytes, |_| ()).unwrap_err());
        out(log.add(&key(count), 1).unwrap_err());
        let batch = log.put_many(&[(key(0), bytes), (key(count), bytes)]).unwrap_err();
        assert_eq!(batch.done, 1);
        out(batch.error);
        intact();
        // What needs no memory goes on, and what was removed makes room.
        assert_eq!(log.add(&key(1), 1), Ok(8));
        log.put(&key(1), &bytes).unwrap();
        assert_eq!(log.update(&key(2), |value| value.fill(9)), Ok(Some(())));
        for index in 0..count {
            assert_eq!(log.remove(&key(index)), Ok(true), "{configuration:?}");
        }
        assert_eq!(log.len_exact(), Ok(0));
        log.clear().unwrap();
        log.check().unwrap();
        let again = fill(&log, &bytes);
        assert!(again * 100 >= count * 90, "{configuration:?}: {count} entries, then {again}");
    }
}

/// Threads that meet the budget all the time lose nothing of what they were told is in.
#[test]
fn threads_at_the_budget_lose_nothing() {
    case!().seeds(4, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1], IN_MEMORY[2]] {
            let log = bounded(configuration, 96 << 10);
            let (kept, refused) = std::thread::scope(|scope| {
                let log = &log;
                let threads: Vec<_> = (0..4)
                    .map(|thread| scope.spawn(move || churn_at_the_budget(log, thread, seed)))
                    .collect();
                let mut all = (BTreeMap::new(), 0);
                for thread in threads {
                    let (kept, refused) = thread.join().unwrap();
                    all.0.extend(kept);
                    all.1 += refused;
                }
                all
            });
            assert!(refused > 0, "{configuration:?}: the budget was never met");
            let kept: Vec<(Vec<u8>, Vec<u8>)> = kept.into_iter().collect();
            assert_eq!(contents(&log), kept, "{configuration:?}");
            log.check().unwrap();
        }
    });
}

/// What is in by this thread, and how often it was refused.
fn churn_at_the_budget(log: &HashLog, thread: u64, seed: u64) -> (BTreeMap<Vec<u8>, Vec<u8>>, u32) {
    let mut model = BTreeMap::new();
    let mut refused = 0;
    for step in 0..4_000u64 {
        let key = key((step * 13 + seed) % 1_500 * 4 + thread);
        if step % 5 == 4 {
            assert_eq!(log.remove(&key), Ok(model.remove(&key[..]).is_some()));
            continue;
        }
        match log.put(&key, &value(step)) {
            Ok(()) => drop(model.insert(key.to_vec(), value(step).to_vec())),
            Err(Error::OutOfMemory { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    (model, refused)
}

/// With a directory nothing is refused, however far beyond the budget the data are.
#[test]
fn a_budget_with_a_directory_spills() {
    for configuration in crate::adapter::ON_DISK {
        let log = configuration.log();
        let budget = configuration.memory_budget.expect("all on disk have one");
        // The index has room beside some pages; the records have not.
        let count = budget / 20;
        for index in 0..count {
            log.put(&key(index), &value(index)).unwrap();
            let used = log.stats().reserved_bytes;
            // A few pages are all the memory there is: one of them is being exchanged.
            let slack = budget / 10 + configuration.page_bytes as u64;
            assert!(used <= budget + slack, "{configuration:?}: {used} of {budget} bytes");
        }
        for index in (0..count).rev() {
            assert_eq!(log.get(&key(index)), Ok(Some(value(index).to_vec())));
        }
        let stats = log.stats();
        assert!(stats.cold_reads > 0 && stats.file_bytes > budget, "{stats:?}");
        log.check().unwrap();
    }
}

/// Slots run out in single buckets long before the index is full. A blind put whose key had to
/// share one would have to read the disk, to know which of several chains the key is in.
#[test]
fn an_index_at_half_of_its_budget_keeps_blind_puts_blind() {
    let mut options = Options::default();
    options.layout = Layout::Fixed8;
    options.page_bytes = 4 << 10;
    options.memory_budget = Some(512 << 10);
    // 4,096 buckets of 64 bytes: no more may come.
    options.expected_entries = 6 * 4_096;
    let log = HashLog::open(Arc::new(SimDisk::new()), options).unwrap();
    // Four slots a bucket of seven; of 4,096 buckets some 200 need more.
    let count = 4 * 4_096;
    for round in 0..3 {
        for index in 0..count {
            log.put(&key(index), &value(index + round)).unwrap();
        }
    }
    let stats = log.stats();
    assert_eq!(stats.cold_reads, 0, "{stats:?}");
    assert!(stats.file_bytes > 512 << 10 && stats.reserved_bytes <= 576 << 10, "{stats:?}");
    for index in (0..count).step_by(37) {
        assert_eq!(log.get(&key(index)), Ok(Some(value(index + 2).to_vec())));
    }
    log.check().unwrap();
}

#[test]
fn without_a_directory_there_are_no_checkpoints() {
    for configuration in IN_MEMORY {
        let log = configuration.log();
        log.put(&key(1), &value(1)).unwrap();
        assert_eq!(log.checkpoint(Cut::Full).map(drop), Err(Error::NoDirectory));
        assert_eq!(log.checkpoint(Cut::Incremental).map(drop), Err(Error::NoDirectory));
        assert_eq!(log.get(&key(1)), Ok(Some(value(1).to_vec())));
    }
}

/// Compaction in memory frees what is superseded and keeps the rest.
#[test]
fn compaction_in_memory_keeps_what_is_live() {
    // In the largest pages all of it lies in the one that is being written.
    for configuration in &IN_MEMORY[..4] {
        let adapter = configuration.adapter();
        let log = &adapter.log;
        for index in 0..2_000 {
            log.put(&key(index), &value(index)).unwrap();
        }
        (0..2_000).filter(|index| index % 10 != 0).for_each(|index| {
            assert_eq!(log.remove(&key(index)), Ok(true));
        });
        let held = contents(log);
        let before = log.stats();
        let compacted = log.compact(1.0).unwrap();
        let after = log.stats();
        assert!(compacted.bytes_freed > 0, "{configuration:?}: {compacted:?}");
        assert!(after.log_bytes < before.log_bytes, "{configuration:?}: {before:?}, {after:?}");
        assert_eq!(contents(log), held);
        assert_eq!(adapter.len_counted(), Some(200));
        log.check().unwrap();
        for share in [0.0, 0.5, 1.0] {
            log.compact(share).unwrap();
            assert_eq!(contents(log), held);
            log.check().unwrap();
        }
    }
}

#[test]
fn options_that_cannot_work_are_refused() {
    let refused = |what: &str, change: &dyn Fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        let in_memory = HashLog::in_memory(options.clone()).err();
        assert!(matches!(in_memory, Some(Error::Options(_))), "{what}: {in_memory:?}");
        let opened = HashLog::open(Arc::new(SimDisk::new()), options).err();
        assert!(matches!(opened, Some(Error::Options(_))), "{what}: {opened:?}");
    };
    for page_bytes in [0, 1, 32, 63, 65, 5_000, (2 << 20) + 1, 64 << 20, usize::MAX] {
        refused("page_bytes", &|options| options.page_bytes = page_bytes);
    }
    for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        refused("mutable_share", &|options| options.mutable_share = share);
    }
    refused("checkpoints_kept", &|options| options.checkpoints_kept = 0);
    for share in [0.0, -0.5, 1.0, 2.0, f64::NAN] {
        refused("garbage_share", &|options| {
            options.compaction.as_mut().unwrap().garbage_share = share;
        });
    }
    refused("log_bytes_max", &|options| {
        options.compaction.as_mut().unwrap().log_bytes_max = Some(1 << 20);
    });
}

#[test]
fn a_budget_too_small_for_anything_is_refused() {
    for configuration in configurations() {
        let mut options = configuration.options();
        options.memory_budget = Some(0);
        let told = [
            HashLog::in_memory(options.clone()).err(),
            HashLog::open(Arc::new(SimDisk::new()), options).err(),
        ];
        for told in told {
            let told = told.expect("no log lives in no memory");
            let expected = matches!(told, Error::OutOfMemory { .. } | Error::Options(_));
            assert!(expected, "{configuration:?}: {told}");
        }
    }
}

/// A directory keeps its layout: what opens it must ask for the same.
#[test]
fn options_that_contradict_the_directory_are_refused() {
    for configuration in crate::adapter::ON_DISK {
        let disk = SimDisk::new();
        let log = configuration.open(&disk);
        log.put(&key(1), &value(1)).unwrap();
        log.checkpoint(Cut::Full).unwrap();
        drop(log);
        let other = match configuration.layout {
            Layout::Variable => Layout::Fixed8,
            Layout::Fixed8 => Layout::Variable,
        };
        let told = Configuration { layout: other, ..configuration }.try_open(&disk).err();
        assert!(matches!(told, Some(Error::Options(_))), "{configuration:?}: {told:?}");
        // And nothing is lost by asking.
        assert_eq!(configuration.open(&disk).get(&key(1)), Ok(Some(value(1).to_vec())));
    }
}

#[test]
fn thousands_of_empty_logs_are_small() {
    let logs: Vec<HashLog> =
        (0..4_000).map(|_| HashLog::in_memory(Options::default()).unwrap()).collect();
    let bytes: u64 = logs.iter().map(|log| log.stats().reserved_bytes).sum();
    assert!(bytes / 4_000 < 4 << 10, "{} bytes for an empty log", bytes / 4_000);
    for (index, log) in (0..).zip(&logs) {
        assert_eq!(log.is_empty(), Ok(true));
        let walk = log.for_each(|_, _| ControlFlow::Break(()));
        assert_eq!(walk, Ok(ControlFlow::Continue(())));
        log.put(&key(index), &value(index)).unwrap();
    }
    for (index, log) in (0..).zip(&logs) {
        assert_eq!(log.get(&key(index)), Ok(Some(value(index).to_vec())));
        assert_eq!((log.len(), log.is_empty()), (Ok(1), Ok(false)));
        log.check().unwrap();
    }
}

#[test]
fn clear_leaves_nothing_and_the_log_works_on() {
    for configuration in configurations() {
        let adapter = configuration.adapter();
        let Adapter { log, .. } = &adapter;
        for round in 0..3 {
            for index in 0..1_000 {
                log.put(&key(index), &value(index + round)).unwrap();
            }
            log.clear().unwrap();
            assert_eq!((log.len_exact(), contents(log)), (Ok(0), vec![]));
            assert_eq!(log.get(&key(5)), Ok(None));
            log.check().unwrap();
        }
    }
}

/// What a log maps stays within its budget from the first byte on, whatever it is asked to hold.
#[test]
fn the_smallest_budgets_hold() {
    for layout in [Layout::Variable, Layout::Fixed8] {
        for page_bytes in [64, 1 << 10, 4 << 10, 16 << 10] {
            let mut options = Options::default();
            (options.layout, options.page_bytes) = (layout, page_bytes);
            // A page of the machine at least, and two buckets.
            let least = page_bytes.max(4 << 10) as u64 + 128;
            options.memory_budget = Some(least - 1);
            let refused = HashLog::in_memory(options.clone()).err();
            let told = refused.expect("it does not hold a page").to_string();
            assert!(told.contains(&format!("{least} bytes")), "{told}");
            for budget in [least, least + 1, least + 1_500, least * 2, least * 2 + 5_000] {
                options.memory_budget = Some(budget);
                let disk = Arc::new(SimDisk::new());
                let logs = [
                    HashLog::in_memory(options.clone()).unwrap(),
                    HashLog::open(disk, options.clone()).unwrap(),
                ];
                for (log, place) in logs.iter().zip(["in memory", "in a directory"]) {
                    for index in 0..1_000 {
                        let put = log.put(&key(index), &value(index));
                        assert!(matches!(put, Ok(()) | Err(Error::OutOfMemory { .. })), "{put:?}");
                        let bytes = log.stats().reserved_bytes;
                        let what = format!("{layout:?}, {page_bytes}, {place}, entry {index}");
                        // A spilling log has copies of pages in the air besides.
                        let is_held = bytes <= budget || place != "in memory";
                        assert!(is_held, "{bytes} of {budget} bytes: {what}");
                    }
                    log.check().unwrap();
                }
                assert!(logs[0].len().unwrap() > 0);
                assert_eq!(logs[1].len(), Ok(1_000));
            }
        }
    }
}

#[test]
fn an_index_that_the_machine_cannot_hold_is_refused() {
    for (entries, budget) in
        [(1 << 60, None), (u64::MAX, None), (1 << 40, None), (1_000, Some(9_000))]
    {
        let mut options = Options::default();
        options.page_bytes = 4 << 10;
        (options.expected_entries, options.memory_budget) = (entries, budget);
        let refused = HashLog::in_memory(options).expect_err("more than there is");
        assert!(matches!(refused, Error::Options(_)), "{refused}");
        assert!(refused.to_string().contains("expected_entries"), "{refused}");
    }
}

#[test]
fn parts_and_shares_that_are_none_are_refused() {
    for configuration in [NASTIEST, crate::adapter::IN_MEMORY[1]] {
        let log = configuration.log();
        log.put(&key(1), &value(1)).unwrap();
        let none = |_: &[u8], _: &[u8]| -> ControlFlow<()> { panic!("no entry is visited") };
        for (part, parts) in [(5, 3), (3, 3), (0, 0), (usize::MAX, 1)] {
            let snapshot = log.snapshot().unwrap();
            let refused = [
                log.for_each_part(part, parts, none).err(),
                snapshot.scan_part(part, parts, none).err(),
                log.sweep().unwrap().scan_part(part, parts, none).err(),
            ];
            let walk = snapshot.by_columns(sapwood_hashlog::Columns::Values);
            let by_columns = walk.map(|walk| {
                walk.scan_part(part, parts, |_| -> ControlFlow<()> { panic!("no entry") }).err()
            });
            for error in refused.into_iter().chain(by_columns) {
                let error = error.expect("there is no such part");
                assert!(matches!(error, Error::Argument(_)), "{error}");
                assert!(error.to_string().contains(&format!("no part {part} of {parts}")));
            }
        }
        for share in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let refused = log.compact(share).expect_err("not a share");
            assert!(matches!(refused, Error::Argument(_)), "{refused}");
        }
        log.compact(0.0).unwrap();
        log.compact(1.0).unwrap();
        assert_eq!(log.get(&key(1)), Ok(Some(value(1).to_vec())));
    }
}

/// Puts on cold keys are blind. That they may be of removed keys must deceive no caller.
#[test]
fn a_log_of_cold_keys_tells_how_many_it_holds() {
    const KEYS: u64 = 20_000;
    for layout in [Layout::Variable, Layout::Fixed8] {
        let mut options = Options::default();
        (options.layout, options.page_bytes) = (layout, 16 << 10);
        options.memory_budget = Some(256 << 10);
        let disk = Arc::new(SimDisk::new());
        let log = HashLog::open(disk.clone(), options.clone()).unwrap();
        assert_eq!((log.len(), log.is_empty()), (Ok(0), Ok(true)));
        let fill = || (0..KEYS).for_each(|index| log.put(&key(index), &value(index)).unwrap());
        fill();
        (0..KEYS).for_each(|index| assert_eq!(log.remove(&key(index)), Ok(true)));
        assert_eq!((log.is_empty(), log.len()), (Ok(true), Ok(0)));
        fill();
        assert!(log.len_estimate() < KEYS as usize, "no put was blind: the test says nothing");
        assert_eq!((log.is_empty(), log.len()), (Ok(false), Ok(KEYS as usize)));
        assert_eq!(log.len_estimate(), KEYS as usize, "a walk sets the estimate right");
        log.checkpoint(Cut::Full).unwrap();
        drop(log);
        let log = HashLog::open(disk, options).unwrap();
        assert_eq!((log.is_empty(), log.len()), (Ok(false), Ok(KEYS as usize)));
        assert_eq!(log.stats().entries_estimate, KEYS);
    }
}
