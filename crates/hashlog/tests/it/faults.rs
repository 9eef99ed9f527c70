//! A disk that fails: the operation says so, nothing is lost, and once it works again all goes on.

use crate::adapter::{COLDEST, Configuration, ON_DISK, contents, key, value};
use sapwood_disk::{Faults, ReadFault, SimDisk, SyncFault, WriteFault};
use sapwood_hashlog::{Cut, Error, HashLog};
use sapwood_testkit::engine::Pair;
use std::io::ErrorKind;

/// More than memory holds, all of it in a checkpoint; and what it is.
fn stored(configuration: Configuration) -> (SimDisk, HashLog, Vec<Pair>) {
    let disk = SimDisk::new();
    let log = configuration.open(&disk);
    let count = configuration.memory_budget.expect("on disk") / 20;
    for index in 0..count {
        log.put(&key(index), &value(index)).unwrap();
    }
    log.checkpoint(Cut::Full).unwrap();
    let held = contents(&log);
    (disk, log, held)
}

fn assert_io(error: &Error, kind: ErrorKind) {
    assert!(matches!(error, Error::Io { kind: met, .. } if *met == kind), "{error:?}");
    let told = error.to_string();
    // What was being done, not only what the system answered.
    assert!(told.contains(':') && told.len() > 20, "{told}");
}

#[test]
fn a_read_that_fails_says_so_and_the_next_one_works() {
    for configuration in ON_DISK {
        let (disk, log, held) = stored(configuration);
        disk.set_faults(Faults::new().reads(.., ReadFault::Error(ErrorKind::TimedOut)));
        let mut failed = 0;
        for (key, value) in &held {
            match log.get(key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                Err(error) => {
                    assert_io(&error, ErrorKind::TimedOut);
                    failed += 1;
                }
            }
        }
        assert!(failed > held.len() / 2, "{configuration:?}: {failed} of {} failed", held.len());
        let keys: Vec<&[u8]> = held.iter().map(|(key, _)| &**key).collect();
        assert_io(&log.get_many(&keys, |_, _| ()).unwrap_err(), ErrorKind::TimedOut);
        let cold = keys.iter().find(|key| log.get(key).is_err()).expect("most are cold");
        assert_io(&log.update(cold, |_| ()).unwrap_err(), ErrorKind::TimedOut);
        assert_io(&log.add(cold, 1).unwrap_err(), ErrorKind::TimedOut);
        assert_io(&log.put_if_absent(cold, &value(1)).unwrap_err(), ErrorKind::TimedOut);
        assert_io(&log.remove(cold).unwrap_err(), ErrorKind::TimedOut);
        assert_io(
            &log.scan_log(|_, _| std::ops::ControlFlow::<()>::Continue(())).unwrap_err(),
            ErrorKind::TimedOut,
        );
        disk.set_faults(Faults::new());
        assert_eq!(contents(&log), held, "{configuration:?}");
        log.check().unwrap();
        let put_blindly = &key(0);
        log.put(put_blindly, &value(9)).unwrap();
        assert_eq!(log.get(put_blindly), Ok(Some(value(9).to_vec())));
    }
}

/// Each read of an opening fails in turn: it says so or has everything, and takes nothing away.
#[test]
fn an_opening_whose_reads_fail_takes_nothing_away() {
    for configuration in [COLDEST, ON_DISK[1]] {
        let (disk, log, _) = stored(configuration);
        log.put(&key(0), &value(9)).unwrap();
        log.checkpoint(Cut::Incremental).unwrap();
        let held = contents(&log);
        drop(log);
        for fault in [ReadFault::Error(ErrorKind::Other), ReadFault::Short] {
            disk.set_faults(Faults::new());
            drop(configuration.open(&disk));
            for number in 0..disk.calls()[0] {
                disk.set_faults(Faults::new().reads(number..=number, fault));
                let opened = configuration.try_open(&disk);
                disk.set_faults(Faults::new());
                if let Ok(log) = opened {
                    assert_eq!(contents(&log), held, "{configuration:?}, {fault:?}, {number}");
                }
                let log = configuration.open(&disk);
                assert_eq!(contents(&log), held, "{configuration:?}, {fault:?}, {number}");
            }
        }
    }
}

/// Every second read fails: what succeeds is right.
#[test]
fn reads_that_fail_now_and_then() {
    for configuration in ON_DISK {
        let (disk, log, held) = stored(configuration);
        let mut failed = 0;
        for (index, (key, value)) in held.iter().enumerate() {
            let fault = match index % 4 {
                0 => Faults::new().reads(0..1, ReadFault::Short),
                1 => Faults::new().reads(1.., ReadFault::Error(ErrorKind::Other)),
                2 => Faults::new().reads(.., ReadFault::Flip(index * 8)),
                _ => Faults::new(),
            };
            disk.set_faults(fault);
            match log.get(key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value), "{configuration:?}"),
                Err(Error::Io { .. } | Error::Corrupt { .. }) => failed += 1,
                Err(other) => panic!("{configuration:?}: {other}"),
            }
        }
        assert!(failed > held.len() / 8, "{configuration:?}: {failed} of {} failed", held.len());
        disk.set_faults(Faults::new());
        assert_eq!(contents(&log), held);
    }
}

/// A sync that fails is no checkpoint, and no later one may rely on what it was to make last.
#[test]
fn a_sync_that_fails_is_no_checkpoint() {
    let faults = [SyncFault::Doubtful(ErrorKind::Other), SyncFault::Lost(ErrorKind::Other)];
    for configuration in [COLDEST, ON_DISK[3]] {
        for fault in faults {
            let mut failed = 0;
            for number in 0.. {
                let (disk, log, older) = stored(configuration);
                for index in 0..200 {
                    log.put(&key(index), &value(index + 7)).unwrap();
                }
                disk.set_faults(Faults::new().syncs(number..=number, fault));
                let cut = if number % 2 == 0 { Cut::Full } else { Cut::Incremental };
                let done = log.checkpoint(cut);
                disk.set_faults(Faults::new());
                let what = format!("{configuration:?}, {fault:?}, sync {number}: {done:?}");
                match done {
                    Ok(_) => break,
                    Err(error) => assert_io(&error, ErrorKind::Other),
                }
                failed += 1;
                if matches!(fault, SyncFault::Doubtful(_)) {
                    let newer = contents(&log);
                    assert_eq!(newer.len(), older.len(), "{what}");
                    assert_ne!(newer, older, "{what}");
                    after_failed_sync(configuration, &disk, &log, (&older, &newer), &what);
                }
            }
            assert!(failed >= 2, "{configuration:?}: a checkpoint syncs files and names");
        }
    }
}

/// A later checkpoint either lasts whatever a crash leaves, or is refused.
fn after_failed_sync(
    configuration: Configuration,
    disk: &SimDisk,
    log: &HashLog,
    (older, newer): (&[Pair], &[Pair]),
    what: &str,
) {
    let again = log.checkpoint(Cut::Incremental);
    for seed in 0..4 {
        let image = disk.crash(seed);
        let held = contents(&configuration.open(&image));
        match again {
            Ok(_) => assert_eq!(held, newer, "{what}, then {again:?}, image {seed}"),
            Err(_) => assert!(held == newer || held == older, "{what}, image {seed}"),
        }
    }
}

#[test]
fn a_full_disk_says_so_and_the_log_goes_on_when_there_is_room() {
    for configuration in ON_DISK {
        let (disk, log, held) = stored(configuration);
        disk.set_faults(Faults::new().space(disk.file_bytes() + (16 << 10)));
        let mut put = Vec::new();
        let mut error = None;
        for index in 1_000_000..1_100_000u64 {
            match log.put(&key(index), &value(index)) {
                Ok(()) => put.push(index),
                Err(told) => {
                    error = Some(told);
                    break;
                }
            }
        }
        assert_io(&error.expect("a full disk"), ErrorKind::StorageFull);
        assert!(!put.is_empty());
        let intact = || {
            for (key, value) in held.iter().step_by(7) {
                assert_eq!(log.get(key).as_ref(), Ok(&Some(value.clone())), "{configuration:?}");
            }
            for index in &put {
                assert_eq!(log.get(&key(*index)), Ok(Some(value(*index).to_vec())));
            }
        };
        intact();
        log.check().unwrap();
        disk.set_faults(Faults::new());
        intact();
        for index in 2_000_000..2_001_000u64 {
            log.put(&key(index), &value(index)).unwrap();
            put.push(index);
        }
        assert_eq!(log.len_exact(), Ok(held.len() + put.len()));
        log.checkpoint(Cut::Full).unwrap();
        let all = contents(&log);
        drop(log);
        assert_eq!(contents(&configuration.open(&disk)), all);
    }
}

/// A checkpoint that finds no room leaves the one before it.
#[test]
fn a_checkpoint_without_room_leaves_the_last_one() {
    for configuration in ON_DISK {
        let (disk, log, held) = stored(configuration);
        log.put(&key(0), &value(99)).unwrap();
        disk.set_faults(Faults::new().space(disk.file_bytes()));
        for cut in [Cut::Full, Cut::Incremental] {
            let error = log.checkpoint(cut).map(drop).unwrap_err();
            assert_io(&error, ErrorKind::StorageFull);
            assert_eq!(log.get(&key(0)), Ok(Some(value(99).to_vec())));
        }
        assert_eq!(contents(&configuration.open(&disk.crash(1))), held);
        disk.set_faults(Faults::new());
        log.checkpoint(Cut::Incremental).unwrap();
        let now = contents(&log);
        assert_ne!(now, held);
        assert_eq!(contents(&configuration.open(&disk.crash(2))), now);
    }
}

/// Writes that fail once are made again, or the operation that needed them says so.
#[test]
fn writes_that_fail_now_and_then_lose_nothing() {
    for configuration in [COLDEST, ON_DISK[1], ON_DISK[2]] {
        for fault in [WriteFault::Error(ErrorKind::Other), WriteFault::Torn(ErrorKind::Other)] {
            let disk = SimDisk::new();
            let log = configuration.open(&disk);
            let mut right = std::collections::BTreeMap::new();
            let mut failed = 0;
            for step in 0..6_000u64 {
                if step % 100 == 0 {
                    disk.set_faults(Faults::new().writes(0..1, fault));
                }
                let (key, value) = (key(step % 4_000), value(step));
                match log.put(&key, &value) {
                    Ok(()) => drop(right.insert(key.to_vec(), value.to_vec())),
                    Err(Error::Io { .. }) => failed += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            disk.set_faults(Faults::new());
            let right: Vec<Pair> = right.into_iter().collect();
            assert_eq!(contents(&log), right, "{configuration:?}, {failed} puts failed");
            log.checkpoint(Cut::Full).unwrap();
            drop(log);
            assert_eq!(contents(&configuration.open(&disk)), right);
        }
    }
}

/// Found by reasoning: a compaction that failed had already taken removed keys out of the index,
/// which a later incremental checkpoint knew nothing of. Keys that came back were lost in it.
#[test]
fn a_compaction_that_fails_among_removals_harms_no_later_checkpoint() {
    let reads = |from| Faults::new().reads(from.., ReadFault::Error(ErrorKind::Other));
    let writes = |from| Faults::new().writes(from.., WriteFault::Error(ErrorKind::Other));
    for configuration in [COLDEST, ON_DISK[1], ON_DISK[3]] {
        let mut failed = 0;
        // 0, 1, 3, 7, ...: as many reads or writes as work before the first that fails.
        for from in (0..20).map(|turn| (1 << turn) - 1) {
            let faults = [reads(from), writes(from)];
            let done = faults.map(|faults| fails_among_removals(configuration, faults));
            failed += done.iter().filter(|done| done.is_err()).count();
            if done == [Ok(()), Ok(())] {
                break;
            }
        }
        assert!(failed > 1, "{configuration:?}: {failed} compactions failed");
    }
}

fn fails_among_removals(configuration: Configuration, faults: Faults) -> Result<(), Error> {
    let (disk, log, held) = stored(configuration);
    let count = held.len() as u64;
    let removed = || (0..count).step_by(2);
    for index in removed() {
        assert_eq!(log.remove(&key(index)), Ok(true));
    }
    for index in 0..count {
        log.put(&key(1_000_000 + index), &value(index)).unwrap();
    }
    log.checkpoint(Cut::Full).unwrap();
    disk.set_faults(faults);
    let compacted = log.compact(0.9).map(drop);
    disk.set_faults(Faults::new());
    for index in removed() {
        log.put(&key(index), &value(index + 1)).unwrap();
    }
    log.checkpoint(Cut::Incremental).unwrap();
    let now = contents(&log);
    drop(log);
    let log = configuration.open(&disk);
    let what = format!("{configuration:?}: {compacted:?}");
    log.check().unwrap_or_else(|told| panic!("{what}: {told}"));
    for (key, value) in &now {
        assert_eq!(log.get(key).as_ref(), Ok(&Some(value.clone())), "{what}");
    }
    compacted
}
