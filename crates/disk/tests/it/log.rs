//! A log has a prefix of what was appended after any crash, and all that was synced.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_disk::log::{Damage, Log, LogOptions, LogStart};
use sapwood_disk::{Disk, Faults, FileDisk, Presence, SimDisk, SyncFault, WriteFault};

const ID: u64 = 0x5a9;

fn options() -> LogOptions {
    LogOptions { part_bytes_min: 8 << 10, part_bytes_max: 16 << 10, ..LogOptions::default() }
}

fn start() -> LogStart {
    LogStart { lsn: 0, part: 1, durable: 0 }
}

/// A record that says its number, of a length that depends on it.
fn record(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..len).map(|at| (number as usize + at) as u8));
    bytes
}

fn number(record: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*record.first_chunk().expect("8 bytes"));
    let expected = self::record(number, record.len() - 8);
    assert_eq!(record, expected, "record {number} is whole");
    number
}

fn open(disk: &SimDisk, start: LogStart) -> io::Result<(Log, Vec<u64>)> {
    let mut numbers = Vec::new();
    let log = Log::open(Arc::new(disk.clone()), ID, options(), start, &mut |_, record| {
        numbers.push(number(record));
        Ok::<(), io::Error>(())
    })?;
    Ok((log, numbers))
}

#[test]
fn records_of_any_length_are_read_in_order() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    for number in 0..300 {
        log.append(&record(number, (number as usize * 37) % 40_000)).expect("appended");
    }
    let before = disk.list().expect("names");
    let mut seen = Vec::new();
    let end = Log::view(&disk, ID, "redo", start(), &mut |_, record| {
        seen.push(number(record));
        Ok::<(), io::Error>(())
    });
    assert_eq!(end.expect("read"), log.position());
    assert_eq!(disk.list().expect("names"), before, "looking changes nothing");
    drop(log);
    let (_log, opened) = open(&disk, start()).expect("opened");
    assert_eq!(opened, (0..300).collect::<Vec<_>>());
    assert_eq!(seen, opened);
}

#[test]
fn a_log_is_read_from_where_it_is_wanted() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let mut starts = Vec::new();
    for number in 0..100 {
        let (lsn, part) = log.position();
        starts.push(LogStart { lsn, part, durable: 0 });
        log.append(&record(number, 500)).expect("appended");
    }
    for (first, start) in starts.into_iter().enumerate() {
        let mut seen = Vec::new();
        Log::view(&disk, ID, "redo", start, &mut |_, record| {
            seen.push(number(record));
            Ok::<(), io::Error>(())
        })
        .expect("read");
        assert_eq!(seen, (first as u64..100).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_forgotten_gives_its_files_back() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let mut most = 0;
    for number in 0..2000 {
        let lsn = log.append(&record(number, 300)).expect("appended");
        if number % 50 == 0 {
            log.sync(lsn).expect("synced");
            log.forget_before(log.position().1).expect("forgotten");
        }
        most = most.max(log.file_bytes());
    }
    assert!(most <= 8 * (16 << 10), "{most} bytes for what 50 records need");
    assert_eq!(disk.file_bytes(), log.file_bytes());
}

/// Appends, syncs, forgets; crashes at a random moment; opens what is left and goes on, many times.
fn crash_chain(seed: u64, mut disk: SimDisk) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let mut from = start();
    let (mut first, mut next) = (0, 0);
    for life in 0..6 {
        let mut durable = next;
        // Positions and numbers of records.
        let mut positions = Vec::new();
        let count = rng.random_range(1..120);
        let stop = disk.operations() + count;
        disk.stop_after(count);
        loop {
            match rng.random_range(0..10) {
                0 => {
                    let Ok(()) = log.sync(log.position().0) else { break };
                    durable = next;
                }
                // As a checkpoint does: what is not needed any more was made to last elsewhere.
                1 if !positions.is_empty() => {
                    let (number, lsn, part) = positions[rng.random_range(0..positions.len())];
                    let Ok(()) = log.sync(lsn) else { break };
                    durable = durable.max(number);
                    first = number;
                    from = LogStart { lsn, part, durable: log.durable() };
                    positions.retain(|(known, ..)| *known >= number);
                    let Ok(()) = log.forget_before(part) else { break };
                }
                _ => {
                    let (lsn, part) = log.position();
                    positions.push((next, lsn, part));
                    let Ok(_) = log.append(&record(next, rng.random_range(0..3000))) else { break };
                    // Stores to a mapping do not say that the power is off.
                    if disk.operations() >= stop {
                        break;
                    }
                    next += 1;
                }
            }
        }
        drop(log);
        let is_killed = rng.random_ratio(1, 3);
        match is_killed {
            // The process ends, and the page cache stays.
            true => {
                disk.stop_after(1 << 40);
                durable = next;
            }
            false => disk = disk.crash(rng.random()),
        }
        let (opened, numbers) = open(&disk, from)
            .unwrap_or_else(|cause| panic!("seed {seed}, life {life}, from {from:?}: {cause}"));
        let end = first + numbers.len() as u64;
        assert_eq!(numbers, (first..end).collect::<Vec<_>>(), "seed {seed}, life {life}");
        assert!(end >= durable, "seed {seed}, life {life}: {end} of {durable} synced");
        assert!(end <= next + 1, "seed {seed}, life {life}");
        (log, next) = (opened, end);
    }
}

#[test]
fn any_chain_of_crashes_leaves_a_prefix_with_all_that_was_synced() {
    for seed in 0..400 {
        crash_chain(seed, SimDisk::new());
    }
}

#[test]
fn any_chain_of_crashes_of_persistent_memory_does_so_too() {
    for seed in 0..400 {
        crash_chain(seed, SimDisk::with_dax());
    }
}

#[test]
fn every_crash_while_a_log_is_opened_leaves_it_as_it_was() {
    for disk in [SimDisk::new(), SimDisk::with_dax()] {
        let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
        for number in 0..40 {
            let lsn = log.append(&record(number, 700)).expect("appended");
            if number == 30 {
                log.sync(lsn).expect("synced");
            }
        }
        drop(log);
        for seed in 0..60 {
            let crashed = disk.crash(seed);
            let (_, found) = open(&crashed.crash(0), start()).expect("opened");
            for stop in 0..20 {
                let opening = crashed.crash(0);
                opening.stop_after(stop);
                let _cut_off = open(&opening, start());
                let (log, again) = open(&opening.crash(seed + stop), start()).expect("opened");
                assert_eq!(again, found, "seed {seed}, stop {stop}");
                drop(log);
            }
        }
    }
}

/// The page cache has what a failed sync left out, and later syncs take it for written.
#[test]
fn what_a_sync_left_out_lasts_once_the_log_is_opened_again() {
    // Of a part in its middle, of several, and of one that is behind all that lasts.
    for (synced, records) in [(3, 8), (3, 60), (0, 8), (20, 21)] {
        for failing in 0..3 {
            let disk = SimDisk::new();
            let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
            for number in 0..records {
                let lsn = log.append(&record(number, 700)).expect("appended");
                if number + 1 == synced {
                    log.sync(lsn).expect("synced");
                }
            }
            let doubtful = SyncFault::Doubtful(io::ErrorKind::Other);
            disk.set_faults(Faults::new().syncs(failing..=failing, doubtful));
            let _told = log.sync(log.position().0);
            disk.set_faults(Faults::new());
            drop(log);
            // Syncs of an opening fail, too.
            for failing in 0..4 {
                disk.set_faults(Faults::new().syncs(failing..=failing, doubtful));
                let _told = open(&disk, start());
                disk.set_faults(Faults::new());
            }
            let (log, _) = open(&disk, start()).expect("opened");
            log.sync(log.append(&record(records, 700)).expect("appended")).expect("synced");
            for seed in 0..16 {
                let (_, numbers) = open(&disk.crash(seed), start()).expect("opened");
                let what = format!("{synced} of {records} synced, sync {failing} failed");
                assert_eq!(numbers, (0..=records).collect::<Vec<_>>(), "{what}, seed {seed}");
            }
        }
    }
}

#[test]
fn on_a_full_disk_what_is_opened_is_read_and_takes_nothing() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let lsn = log.append(&record(0, 700)).expect("appended");
    drop(log);
    disk.set_faults(Faults::new().writes(.., WriteFault::Error(io::ErrorKind::StorageFull)));
    let (log, numbers) = open(&disk, start()).expect("opened");
    disk.set_faults(Faults::new());
    assert_eq!(numbers, [0]);
    log.sync(lsn).expect_err("it need not last");
    let cause = log.append(&record(1, 700)).expect_err("nothing is taken");
    assert!(cause.to_string().contains("open it again"), "{cause}");
    let (log, numbers) = open(&disk, start()).expect("opened once there is room");
    assert_eq!(numbers, [0]);
    log.append(&record(1, 700)).expect("appended");
}

/// A process ends, and the power goes while the next one opens what the page cache has.
#[test]
fn a_power_loss_while_what_never_lasted_is_opened_leaves_a_prefix() {
    for seed in 0..40 {
        for stop in 0..40 {
            let disk = SimDisk::new();
            let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
            for number in 0..30 {
                let lsn = log.append(&record(number, 700)).expect("appended");
                if number == 10 {
                    log.sync(lsn).expect("synced");
                }
            }
            drop(log);
            disk.stop_after(stop);
            let _cut_off = open(&disk, start());
            let (_, numbers) = open(&disk.crash(seed), start())
                .unwrap_or_else(|cause| panic!("seed {seed}, stop {stop}: {cause}"));
            assert!(numbers.len() > 10, "seed {seed}, stop {stop}: {} records", numbers.len());
            assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        }
    }
}

/// In persistent memory no sync of a file is called but for a new part.
#[test]
fn a_sync_in_persistent_memory_calls_nothing() {
    let disk = SimDisk::with_dax();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    assert!(log.is_dax());
    disk.set_faults(Faults::new().syncs(.., SyncFault::Lost(io::ErrorKind::Other)));
    for number in 0..20 {
        let lsn = log.append(&record(number, 100)).expect("appended");
        log.sync(lsn).expect("no file is synced");
        let (_, numbers) = open(&disk.crash(number), start()).expect("opened");
        assert_eq!(numbers, (0..=number).collect::<Vec<_>>());
    }
    // The part is full: another one begins.
    let lsn = log.append(&record(20, 9000)).expect("appended");
    log.sync(lsn).expect_err("its file is synced once");
}

#[test]
fn a_log_that_lost_what_was_synced_is_damaged() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let mut lsn = 0;
    for number in 0..4 {
        lsn = log.append(&record(number, 700)).expect("appended");
    }
    log.sync(lsn).expect("synced");
    drop(log);
    let name = disk.list().expect("names").remove(0);
    disk.damage(&name, 4096 + 1500, 1).expect("there is a record");
    let cause = open(&disk, LogStart { durable: lsn, ..start() }).expect_err("damaged");
    assert_eq!(cause.kind(), io::ErrorKind::InvalidData);
    assert!(cause.to_string().contains("was synced up to"), "{cause}");
}

/// Of a log of several parts, each of which was synced before the next one began.
#[test]
fn damage_before_the_last_part_is_refused_and_can_be_passed_over() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    for number in 0..60 {
        let lsn = log.append(&record(number, 700)).expect("appended");
        log.sync(lsn).expect("synced");
    }
    drop(log);
    let first = disk.list().expect("names").into_iter().min().expect("parts");
    disk.damage(&first, 4096 + 1500, 1).expect("there is a record");
    let cause = open(&disk, start()).expect_err("damaged");
    let damage = cause.get_ref().and_then(|inner| inner.downcast_ref::<Damage>());
    let damage = damage.expect("it says where");
    assert_eq!((&damage.file, damage.offset), (&first, 4096 + 1024), "{damage}");

    let survey = |goes_on: bool| {
        let mut numbers = Vec::new();
        let mut take = |_, bytes: &[u8]| -> io::Result<()> {
            numbers.push(number(bytes));
            Ok(())
        };
        let survey = Log::survey(&disk, ID, &options().prefix, start(), goes_on, &mut take);
        (survey.expect("no call fails"), numbers)
    };
    let (found, numbers) = survey(false);
    assert_eq!(numbers, [0]);
    assert_eq!(found.damage, std::slice::from_ref(damage));
    assert!(!found.unread.is_empty() && found.end < found.durable);
    let (found, numbers) = survey(true);
    assert_eq!(numbers, [0].into_iter().chain(2..60).collect::<Vec<_>>());
    assert_eq!((found.damage.len(), found.damage[0].offset), (1, damage.offset));
    assert!(found.end >= found.durable && found.unread.is_empty());

    // A part that is missing.
    disk.remove(&found.parts[1].name).expect("there is one");
    open(&disk, start()).expect_err("damaged");
    let (found, numbers) = survey(true);
    assert!(numbers.len() < 59 && numbers.last() == Some(&59), "{numbers:?}");
    assert_eq!(found.damage.len(), 2, "{:?}", found.damage);
}

#[test]
fn after_a_failed_sync_the_log_takes_nothing_more() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let lsn = log.append(&record(0, 8)).expect("appended");
    disk.set_faults(Faults::new().syncs(.., SyncFault::Lost(io::ErrorKind::Other)));
    log.sync(lsn).expect_err("the sync fails");
    disk.set_faults(Faults::new());
    log.sync(lsn).expect_err("it is not tried again");
    log.append(&record(1, 8)).expect_err("nothing more is taken");
}

#[test]
fn a_full_disk_refuses_a_record_and_takes_others_later() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    disk.set_faults(Faults::new().space(20 << 10));
    let mut taken = 0;
    while log.append(&record(taken, 1000)).is_ok() {
        taken += 1;
    }
    assert!(taken >= 3, "{taken} records fit");
    disk.set_faults(Faults::new());
    log.append(&record(taken, 1000)).expect("there is room again");
    drop(log);
    let (_, numbers) = open(&disk, start()).expect("opened");
    assert_eq!(numbers, (0..=taken).collect::<Vec<_>>());
}

#[test]
fn callers_that_sync_together_all_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::open(folder.path()).expect("opened"));
    let log = Log::create(Arc::clone(&disk), ID, options(), 0).expect("made");
    let numbers = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let lsn = log.append(&record(number, 100)).expect("appended");
                    log.sync(lsn).expect("synced");
                    assert!(log.durable() >= lsn);
                }
            });
        }
    });
    drop(log);
    let mut seen = Vec::new();
    Log::view(&*disk, ID, "redo", start(), &mut |_, record| {
        seen.push(number(record));
        Ok::<(), io::Error>(())
    })
    .expect("read");
    seen.sort_unstable();
    assert_eq!(seen, (0..400).collect::<Vec<_>>());
}

#[test]
fn any_bytes_are_a_log_or_an_error() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    for number in 0..60 {
        log.append(&record(number, 300)).expect("appended");
    }
    drop(log);
    let names = disk.list().expect("names");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..500 {
        let damaged = disk.crash(0);
        for name in &names {
            damaged.plant(name, &disk.contents(name).expect("there")).expect("planted");
            for _ in 0..rng.random_range(0..3) {
                let bytes = damaged.contents(name).expect("there").len() as u64;
                // Headers more often than what is between them.
                let limit = if rng.random() { 4096 + 64 } else { bytes };
                let at = rng.random_range(0..limit);
                damaged.damage(name, at, rng.random_range(1..=255)).expect("damaged");
            }
            if rng.random_ratio(1, 10) {
                damaged.truncate(name, rng.random_range(0..9000)).expect("cut");
            }
        }
        if let Ok((_, numbers)) = open(&damaged, start()) {
            assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn cached_files_read_what_was_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let real: Arc<dyn Disk> = Arc::new(FileDisk::open(folder.path()).expect("opened"));
    let simulated: Arc<dyn Disk> = Arc::new(SimDisk::new());
    for disk in [real, simulated] {
        let file = disk.cached("a", Presence::New).expect("made");
        file.reserve(10_000).expect("room");
        assert_eq!(file.bytes().expect("a length"), 10_000);
        let mut mapped = file.map(10_000).expect("mapped");
        mapped.write(4090, b"acorn");
        file.write_at(4095, b"s and oaks").expect("written");
        let mut bytes = [0; 15];
        mapped.read(4090, &mut bytes);
        assert_eq!(&bytes, b"acorns and oaks");
        file.read_at(4090, &mut bytes).expect("read");
        assert_eq!(&bytes, b"acorns and oaks");
        file.lengthen(20_000).expect("longer");
        assert_eq!(file.bytes().expect("a length"), 20_000);
        assert!(file.read_at(19_999, &mut bytes).is_err(), "beyond the end");
        file.sync().expect("synced");
        assert!(disk.cached("a", Presence::New).is_err(), "it is there");
        assert!(disk.cached("b", Presence::There).is_err(), "it is not there");
    }
}

/// Found by a fuzzer: a part that says that it has more bytes than 64 bits can double.
#[test]
fn lengths_and_numbers_beyond_all_measure_are_refused() {
    for start in [LogStart { lsn: u64::MAX - 1, ..start() }, LogStart { part: u64::MAX, ..start() }]
    {
        let disk = SimDisk::new();
        Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
        let cause = open(&disk, start).expect_err("refused");
        assert_eq!(cause.kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn a_log_that_is_opened_often_stays_small() {
    let disk = SimDisk::new();
    let mut log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let mut from = start();
    for number in 0..20 {
        log.append(&record(number, 10)).expect("appended");
        let (lsn, part) = log.position();
        log.sync(lsn).expect("synced");
        from = LogStart { lsn, part, durable: log.durable() };
        log.forget_before(part).expect("forgotten");
        drop(log);
        log = open(&disk, from).expect("opened").0;
    }
    assert!(log.file_bytes() <= 2 * options().part_bytes_min, "{} bytes", log.file_bytes());
    assert_eq!(open(&disk, from).expect("opened").1, [] as [u64; 0]);
}

/// Claimed records fit when the disk refuses writes, and beside other appends and syncs.
#[test]
fn a_claimed_record_needs_no_room_of_the_disk() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let lens = [700, 0, 9_000, 1, 40_000, 3];
    let claimed: Vec<u64> = lens.iter().map(|len| log.claim(8 + len).expect("room")).collect();
    let small = log.claim_many(1_400, 100).expect("room");
    disk.set_faults(Faults::new().writes(.., WriteFault::Error(io::ErrorKind::StorageFull)));
    let mut others = 0;
    while let Ok(claimed) = log.claim(708) {
        log.append_claimed(&record(0, 700)).expect("claimed");
        log.sync(log.position().0).expect("synced");
        log.give_back(claimed);
        others += 1;
    }
    for (number, (len, claimed)) in (1..).zip(lens.into_iter().zip(claimed)) {
        log.append_claimed(&record(number, len)).expect("claimed");
        log.give_back(claimed);
    }
    for number in 7..107 {
        log.append_claimed(&record(number, 6)).expect("claimed");
    }
    log.give_back(small);
    let refused = log.claim(100_000).expect_err("the disk is full");
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    disk.set_faults(Faults::new());
    // One record may have the room of several claims.
    let claimed: u64 = (0..50).map(|_| log.claim(100).expect("room")).sum();
    let end = log.append_claimed(&record(107, 50 * 100 - 8)).expect("claimed");
    log.give_back(claimed);
    log.sync(end).expect("synced");
    let (_, numbers) = open(&disk, start()).expect("opened");
    let all = std::iter::repeat_n(0, others).chain(1..108);
    assert_eq!(numbers, all.collect::<Vec<_>>());
}

/// The claims of a long transaction come one by one, and are kept until it ends.
#[test]
fn claims_that_are_kept_begin_few_parts() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    let claimed: u64 = (0..10_000).map(|_| log.claim(100).expect("room")).sum();
    assert!(log.position().1 < 20, "{} parts", log.position().1);
    assert!(log.file_bytes() < 6 * claimed, "{} bytes", log.file_bytes());
    log.give_back(claimed);
}

/// Where the disk has no room for as large a part as is wanted next, it may have some for a smaller
/// one.
#[test]
fn a_nearly_full_disk_has_a_small_part() {
    let disk = SimDisk::new();
    let log = Log::create(Arc::new(disk.clone()), ID, options(), 0).expect("made");
    while log.file_bytes() < 60_000 {
        log.append(&record(0, 700)).expect("room");
    }
    disk.set_faults(Faults::new().space(disk.file_bytes() + options().part_bytes_min));
    let before = log.position().1;
    while log.position().1 == before {
        log.append(&record(0, 700)).expect("room");
    }
}
