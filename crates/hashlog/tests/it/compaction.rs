//! A log in a directory keeps itself short, says what keeps it from that, and leaves no thread
//! behind.
//!
//! Nothing here depends on time: what the log's own thread is to reach is waited for, and the
//! guard against hangs is what fails a test that waits in vain.

use crate::adapter::{Configuration, KEPT_SHORT, ON_DISK, contents, key, value};
use crate::background::BackgroundDisk;
use sapwood_disk::{Disk as _, Faults, ReadFault, SimDisk};
use sapwood_hashlog::{Compaction, Cut, Error, HashLog, HashStats, Layout, Options};
use sapwood_testkit::case;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, mpsc};

const KEYS: u64 = 2_000;
const VALUE_BYTES: usize = 1_000;
/// What so many records take, and a little more.
const LIVE_BYTES: u64 = KEYS * 1_050;
/// A log that is kept short has no more, whenever it is looked at last.
const SHORT: u64 = 8 << 20;
/// Pages of 64 KiB have parts of 1024, with two trailers each.
const PART_BYTES: u64 = 1024 * (72 << 10) + 4096;

fn options(garbage_share: f64, log_bytes_min: u64) -> Options {
    let compaction = Compaction { garbage_share, log_bytes_min, ..Compaction::default() };
    let mut options = Options::default();
    options.page_bytes = 64 << 10;
    options.memory_budget = Some(1 << 20);
    options.compaction = Some(compaction);
    options
}

fn open(disk: &SimDisk, options: Options) -> HashLog {
    HashLog::open(Arc::new(disk.clone()), options).expect("a log that opens")
}

fn bytes(round: u64, index: u64) -> Vec<u8> {
    let mut bytes = vec![round as u8; VALUE_BYTES];
    bytes[..8].copy_from_slice(&value(round << 32 | index));
    bytes
}

/// Writes every key anew, once a round.
fn overwrite(log: &HashLog, rounds: std::ops::Range<u64>) {
    for round in rounds {
        for index in 0..KEYS {
            log.put(&key(index), &bytes(round, index)).unwrap();
        }
    }
}

fn assert_round(log: &HashLog, round: u64) {
    for index in 0..KEYS {
        let held = log.get(&key(index)).unwrap();
        assert_eq!(held, Some(bytes(round, index)), "key {index}");
    }
    assert_eq!(log.len_exact(), Ok(KEYS as usize));
    log.check().unwrap();
}

fn log_bytes(stats: &HashStats) -> u64 {
    stats.tail - stats.begin
}

fn wait_until(log: &HashLog, reached: impl Fn(&HashStats) -> bool) -> HashStats {
    loop {
        let stats = log.stats();
        if reached(&stats) {
            return stats;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_log_keeps_itself_and_its_files_short() {
    case!().once(|| {
        let disk = SimDisk::new();
        let log = open(&disk, options(0.5, 4 << 20));
        for turn in 0..10 {
            overwrite(&log, turn * 10..turn * 10 + 10);
            wait_until(&log, |it| log_bytes(it) <= SHORT && it.file_bytes <= 2 * PART_BYTES);
        }
        let stats = log.stats();
        assert_eq!(stats.compaction_error, None);
        assert!(stats.tail > 90 * LIVE_BYTES, "{stats:?}");
        assert!(stats.compactions > 0 && stats.compacted_bytes > 80 * LIVE_BYTES, "{stats:?}");
        assert!(disk.file_bytes() <= 3 * PART_BYTES, "{} bytes", disk.file_bytes());
        assert_round(&log, 99);
    });
}

/// Found on a busy machine: pages that were filled while the log's own thread looked were not
/// counted as growth, and the log stayed long once nothing more was written.
#[test]
fn what_is_written_during_a_look_is_looked_at() {
    case!().once(|| {
        let disk = SimDisk::new();
        let mut before = options(0.3, 0);
        before.compaction = None;
        let log = open(&disk, before);
        overwrite(&log, 0..1);
        // Superseded on the disk: a look ends by reading what their chains go on at.
        for index in (0..KEYS).step_by(40) {
            log.put(&key(index), &bytes(0, index)).unwrap();
        }
        log.checkpoint(Cut::Full).unwrap();
        drop(log);

        let ((begin, begun), (go, gone)) = (mpsc::channel(), mpsc::channel::<()>());
        let first = Mutex::new(Some((begin, gone)));
        let sim = disk.clone();
        let held = BackgroundDisk::over(&disk, move |works| {
            if std::thread::current().name() == Some("sapwood-compact")
                && let Some((begin, gone)) = first.lock().unwrap().take()
            {
                begin.send(()).unwrap();
                // Or the test has failed.
                let _or_failed = gone.recv();
            }
            sim.spawn(works);
        });
        let log = HashLog::open(held, options(0.3, 0)).unwrap();
        let overwrite = |index| log.put(&key(index), &bytes(1, index)).unwrap();
        // It begins a page, and so calls the thread.
        overwrite(0);
        begun.recv().unwrap();
        (1..KEYS * 4 / 5).for_each(overwrite);
        let long = log_bytes(&log.stats());
        assert!(long > LIVE_BYTES / 4 * 7, "{long} bytes");
        go.send(()).unwrap();
        wait_until(&log, |it| log_bytes(it) < LIVE_BYTES / 10 * 16);
        log.check().unwrap();
    });
}

/// What the default costs: under random overwriting hardly a byte is moved for each that is
/// written, and the log stays at about twice what is live.
#[test]
fn keeping_a_log_short_moves_little() {
    case!().once(|| {
        for (garbage_share, moved_max, length_max) in [(0.5, 1.3, 3.0), (0.25, 3.5, 2.0)] {
            let log = open(&SimDisk::new(), options(garbage_share, 0));
            overwrite(&log, 0..1);
            let mut longest = 0;
            for step in 0..40 * KEYS {
                let random = (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
                log.put(&key(random % KEYS), &bytes(1, random)).unwrap();
                longest = longest.max(log_bytes(&log.stats()));
                // As far behind as the writer lets it be, it would do less.
                if step.is_multiple_of(500) {
                    wait_until(&log, |it| log_bytes(it) < (length_max * LIVE_BYTES as f64) as u64);
                }
            }
            let stats = log.stats();
            let moved = stats.moved_bytes as f64 / (stats.tail - stats.moved_bytes) as f64;
            let length = longest as f64 / LIVE_BYTES as f64;
            println!("at {garbage_share}: {moved:.2} moved, {length:.2} times what is live");
            assert!(moved <= moved_max && length <= length_max + 0.5, "{garbage_share}: {stats:?}");
        }
    });
}

/// A writer that never waits of its own accord is not let run away.
#[test]
fn a_log_is_kept_short_however_fast_it_is_written() {
    case!().once(|| {
        let log = open(&SimDisk::new(), options(0.5, 4 << 20));
        for round in 0..60 {
            overwrite(&log, round..round + 1);
            let stats = log.stats();
            // Twice what it had when compaction was called, and what was written since.
            assert!(log_bytes(&stats) <= 3 * SHORT, "{stats:?}");
        }
        assert_round(&log, 59);
    });
}

/// Found by crash images and rounds of threads: a thread that asked for a compaction waited, while
/// it moved records, for the log's own, which waited for it.
#[test]
fn a_log_that_compacts_itself_is_compacted_on_request_too() {
    case!().once(|| {
        let log = open(&SimDisk::new(), options(0.1, 0));
        for round in 0..30 {
            overwrite(&log, round..round + 1);
            log.compact([0.2, 0.9][round as usize % 2]).unwrap();
        }
        assert_round(&log, 29);
    });
}

/// A snapshot that is kept holds compaction up, and no writer with it.
#[test]
fn writers_go_on_while_a_snapshot_is_read() {
    case!().once(|| {
        let log = open(&SimDisk::new(), options(0.5, 4 << 20));
        overwrite(&log, 0..1);
        let snapshot = log.snapshot().unwrap();
        overwrite(&log, 1..20);
        assert!(log_bytes(&log.stats()) > 18 * LIVE_BYTES);
        let mut seen = 0;
        let walked = snapshot.scan(|_, held| {
            seen += usize::from(held[8] == 0);
            std::ops::ControlFlow::<()>::Continue(())
        });
        assert_eq!((walked.is_ok(), seen), (true, KEYS as usize));
        drop(snapshot);
        wait_until(&log, |it| log_bytes(it) <= SHORT);
        assert_round(&log, 19);
    });
}

/// A walk of a moment follows the changes of a key since then once: a walk that began again with each of them that
/// comes from the disk would not end here.
#[test]
fn a_snapshot_passes_many_changes_of_a_key() {
    case!().once(|| {
        const CHANGES: u64 = 12_000;
        let mut options = options(0.5, 0);
        (options.compaction, options.mutable_share) = (None, 0.0);
        (options.page_bytes, options.memory_budget) = (4 << 10, Some(64 << 10));
        let log = open(&SimDisk::new(), options);
        log.put(&key(0), &bytes(7, 0)).unwrap();
        let snapshot = log.snapshot().unwrap();
        for change in 1..CHANGES {
            log.put(&key(0), &bytes(8, change)).unwrap();
            // Behind a page of others, it is not changed in place again.
            (1..5).for_each(|other| log.put(&key(4 * change + other), &bytes(8, 0)).unwrap());
        }
        let before = log.stats().cold_reads;
        let mut seen = Vec::new();
        let walked = snapshot.scan(|_, held| {
            seen.push(held.to_vec());
            std::ops::ControlFlow::<()>::Continue(())
        });
        assert_eq!((walked.is_ok(), seen), (true, vec![bytes(7, 0)]));
        let reads = log.stats().cold_reads - before;
        assert!(reads > CHANGES / 2, "each change is a record of the chain: {reads}");
    });
}

/// A thread that has other work gives memory back a page at a time. What was removed in memory is
/// known to be garbage without a look at the log.
#[test]
fn a_step_gives_up_a_page_and_waits_for_nothing() {
    case!().once(|| {
        for is_in_memory in [true, false] {
            let mut options = options(0.5, 0);
            (options.memory_budget, options.compaction) = (None, None);
            let log = match is_in_memory {
                true => HashLog::in_memory(options).unwrap(),
                false => open(&SimDisk::new(), options),
            };
            overwrite(&log, 0..1);
            (1..KEYS).for_each(|index| assert_eq!(log.remove(&key(index)), Ok(true)));
            let full = log.stats();
            assert!(full.garbage_bytes > LIVE_BYTES / 10 * 9, "{full:?}");
            let snapshot = log.snapshot().unwrap();
            assert_eq!(log.compact_step(), Ok(None), "a walk may go on");
            drop(snapshot);
            let mut pages = 0;
            while log.compact_step().unwrap().is_some_and(|done| done.bytes_freed > 0) {
                pages += 1;
                assert_eq!(log.stats().begin, full.begin + pages * (64 << 10));
            }
            log.estimate_garbage().unwrap();
            let left = log.stats();
            assert!(left.log_bytes <= 3 * (64 << 10), "{left:?}");
            assert!(left.garbage_bytes <= left.tail - left.begin, "{left:?}");
            assert_eq!(log.get(&key(0)), Ok(Some(bytes(0, 0))));
            assert_eq!(log.len_exact(), Ok(1));
            log.check().unwrap();
        }
    });
}

/// Nothing is gained by moving what is live.
#[test]
fn a_log_without_garbage_is_left_alone() {
    case!().once(|| {
        let log = open(&SimDisk::new(), options(0.5, 0));
        for index in 0..20 * KEYS {
            log.put(&key(index), &bytes(0, index)).unwrap();
        }
        let stats = log.stats();
        assert_eq!((stats.compactions, stats.compaction_error), (0, None));
        assert_eq!(stats.begin, 64 << 10);
    });
}

/// A log that is longer than it should be is compacted for less.
#[test]
fn a_log_that_is_too_long_is_compacted_for_less_garbage() {
    case!().once(|| {
        let mut options = options(0.9, 0);
        let compaction = options.compaction.as_mut().unwrap();
        compaction.log_bytes_max = Some(2 * LIVE_BYTES);
        let log = open(&SimDisk::new(), options);
        overwrite(&log, 0..8);
        wait_until(&log, |it| log_bytes(it) <= 3 * LIVE_BYTES);
        assert_round(&log, 7);
    });
}

#[test]
fn without_the_option_a_log_grows() {
    case!().once(|| {
        let mut options = options(0.5, 0);
        options.compaction = None;
        let log = open(&SimDisk::new(), options);
        overwrite(&log, 0..8);
        let stats = log.stats();
        assert_eq!((stats.compactions, stats.begin), (0, 64 << 10));
        // What it holds can be asked for all the same.
        let garbage = log.estimate_garbage().unwrap();
        assert!(garbage.abs_diff(log_bytes(&stats) - LIVE_BYTES) < log_bytes(&stats) / 10);
        assert!(log.compact(1.0).unwrap().bytes_freed > 6 * LIVE_BYTES);
        assert_round(&log, 7);
    });
}

/// Checkpoints keep the files that they need, and a log is compacted no further while more waits
/// for them than is in use. They let go of both.
#[test]
fn files_go_when_checkpoints_let_them() {
    case!().once(|| {
        let disk = SimDisk::new();
        let log = open(&disk, options(0.5, 4 << 20));
        overwrite(&log, 0..1);
        log.checkpoint(Cut::Full).unwrap();
        overwrite(&log, 1..80);
        // Half of what was written is held by then, and the log as long as what is held.
        let stats = wait_until(&log, |it| it.held_bytes > 0);
        assert!(log_bytes(&stats) > 20 * LIVE_BYTES, "{stats:?}");
        assert!(stats.file_bytes > 80 * LIVE_BYTES, "{stats:?}");
        while log_bytes(&log.stats()) > SHORT {
            log.checkpoint(Cut::Incremental).unwrap();
        }
        let held = contents(&log);
        for _ in 0..2 {
            log.checkpoint(Cut::Full).unwrap();
        }
        let stats = wait_until(&log, |it| it.file_bytes <= 2 * PART_BYTES);
        assert!(stats.held_bytes <= SHORT, "{stats:?}");
        assert_round(&log, 79);
        drop(log);
        let log = open(&disk, options(0.5, 4 << 20));
        assert_eq!(contents(&log), held);
    });
}

/// Overwrites keys until `reached`; what fails is not taken back.
fn overwrite_until(log: &HashLog, reached: impl Fn(&HashStats) -> bool) {
    for step in 0_u64.. {
        if step.is_multiple_of(64) && reached(&log.stats()) {
            return;
        }
        let index = (step * 7_919) % KEYS;
        match log.put(&key(index), &bytes(200, index)) {
            Ok(()) => {}
            Err(Error::Io { .. }) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}

fn failed(stats: &HashStats, kind: ErrorKind) -> bool {
    matches!(&stats.compaction_error, Some(Error::Io { kind: met, .. }) if *met == kind)
}

/// A log of which nearly a third is garbage everywhere, that is to be compacted at a tenth.
fn due(disk: &SimDisk) -> HashLog {
    let mut before = options(0.5, 0);
    before.compaction = None;
    let log = open(disk, before);
    overwrite(&log, 0..1);
    for index in 0..KEYS * 9 / 20 {
        let index = index * 2 % KEYS;
        log.put(&key(index), &bytes(0, index)).unwrap();
    }
    log.checkpoint(Cut::Full).unwrap();
    drop(log);
    open(disk, options(0.1, 0))
}

/// The table is readable throughout, and short again once the disk works.
fn recovers(disk: &SimDisk, log: &HashLog) {
    disk.set_faults(Faults::new());
    for index in 0..KEYS {
        let held = log.get(&key(index)).unwrap();
        let known = [Some(bytes(0, index)), Some(bytes(200, index))];
        assert!(known.contains(&held), "key {index}");
    }
    overwrite_until(log, |it| it.compaction_error.is_none());
    // It may wait for a checkpoint by now.
    while log_bytes(&log.stats()) > 2 * LIVE_BYTES {
        log.checkpoint(Cut::Incremental).unwrap();
    }
    log.check().unwrap();
    overwrite(log, 201..203);
    assert_round(log, 202);
}

#[test]
fn a_read_that_fails_is_told_and_tried_again() {
    case!().once(|| {
        let disk = SimDisk::new();
        let log = due(&disk);
        disk.set_faults(Faults::new().reads(.., ReadFault::Error(ErrorKind::TimedOut)));
        overwrite_until(&log, |it| failed(it, ErrorKind::TimedOut));
        // A caller that asks gets the error as well.
        let asked = [log.compact(1.0).map(drop), log.estimate_garbage().map(drop)];
        for told in asked {
            assert!(matches!(told, Err(Error::Io { kind: ErrorKind::TimedOut, .. })), "{told:?}");
        }
        recovers(&disk, &log);
    });
}

#[test]
fn a_full_disk_is_told_and_tried_again() {
    case!().once(|| {
        let disk = SimDisk::new();
        let log = due(&disk);
        disk.set_faults(Faults::new().space(disk.file_bytes()));
        overwrite_until(&log, |it| failed(it, ErrorKind::StorageFull));
        let told = log.compact(1.0);
        assert!(matches!(told, Err(Error::Io { kind: ErrorKind::StorageFull, .. })), "{told:?}");
        // All of it is readable while the disk is full.
        assert_eq!(contents(&log).len(), KEYS as usize);
        recovers(&disk, &log);
    });
}

/// No compaction passes a damaged page, and what it holds is not lost silently.
#[test]
fn damage_is_told_and_stops_it_there() {
    case!().once(|| {
        let disk = SimDisk::new();
        let log = due(&disk);
        disk.damage("log-0000000000000000.part", (72 << 10) + 4096 + 100, 1).unwrap();
        overwrite_until(&log, |it| matches!(it.compaction_error, Some(Error::Corrupt { .. })));
        let begin = log.stats().begin;
        assert!(matches!(log.compact(1.0), Err(Error::Corrupt { .. })));
        assert_eq!(log.stats().begin, begin);
    });
}

/// A log may be dropped at any moment: no thread waits for long, and no thread goes on with it.
#[test]
fn a_log_is_dropped_while_it_compacts() {
    case!().seeds(12, |seed| {
        for configuration in KEPT_SHORT {
            let disk = SimDisk::new();
            let mut saved = Vec::new();
            for life in 0..4 {
                let log = configuration.open(&disk);
                assert_eq!(contents(&log), saved, "{configuration:?}");
                for step in 0..seed * 97 {
                    log.put(&key(step * 31 % 200), &value(life << 32 | step)).unwrap();
                }
                log.checkpoint(Cut::Incremental).unwrap();
                saved = contents(&log);
                for step in 0..seed * 53 {
                    log.put(&key(step * 17 % 200), &value(step)).unwrap();
                }
            }
        }
    });
}

/// Threads of this process that compact.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.expect("a thread").path().join("comm");
        // It may have ended meanwhile.
        std::fs::read_to_string(path).unwrap_or_default()
    };
    tasks.map(name).filter(|name| name.trim() == "sapwood-compact").count()
}

#[test]
fn a_thread_comes_when_there_is_work_and_goes_with_the_log() {
    case!().alone(|| {
        let in_memory: Vec<HashLog> = (0..1_000)
            .map(|_| {
                let mut options = Options::default();
                options.page_bytes = 4 << 10;
                let log = HashLog::in_memory(options).unwrap();
                for index in 0..300 {
                    log.put(&key(index % 3), &bytes(0, index)[..900]).unwrap();
                    log.remove(&key(index % 3)).unwrap();
                }
                log
            })
            .collect();
        let small: Vec<HashLog> = (0..20)
            .map(|_| {
                let log = open(&SimDisk::new(), options(0.5, 256 << 20));
                overwrite(&log, 0..2);
                log
            })
            .collect();
        assert_eq!(threads(), 0);
        let mut long: Vec<HashLog> = (0..3)
            .map(|_| {
                let log = open(&SimDisk::new(), options(0.5, 0));
                overwrite(&log, 0..4);
                wait_until(&log, |it| it.compactions > 0);
                log
            })
            .collect();
        for left in (0..3).rev() {
            assert_eq!(threads(), left + 1);
            drop(long.pop());
        }
        assert_eq!(threads(), 0);
        drop((in_memory, small));
    });
}

/// What a sample of the log says is near what is right, whatever was done to it.
#[test]
fn garbage_is_estimated_well() {
    let right = |log: &HashLog, configuration: Configuration, live: u64, what: &str| {
        let record = if configuration.layout == Layout::Fixed8 { 24 } else { 32 };
        let all = log_bytes(&log.stats());
        let right = all - live * record;
        let told = log.estimate_garbage().unwrap();
        let near = told.abs_diff(right) <= all * 8 / 100;
        assert!(near, "{configuration:?}, {what}: {told} bytes of {all}, {right} are right");
        assert_eq!(log.stats().garbage_bytes, told);
    };
    case!().once(|| {
        for configuration in ON_DISK {
            // More pages than a sample takes.
            let count = if configuration.page_bytes > 4 << 10 { 40_000 } else { 24_000 };
            let disk = SimDisk::new();
            let mut log = configuration.open(&disk);
            for index in 0..count {
                log.put(&key(index), &value(index)).unwrap();
            }
            right(&log, configuration, count, "fresh");
            for step in 0..count {
                log.put(&key(step * 7_919 % count), &value(step)).unwrap();
            }
            right(&log, configuration, count, "overwritten");
            for index in (0..count).step_by(2) {
                log.remove(&key(index)).unwrap();
            }
            right(&log, configuration, count / 2, "removed in part");
            log.checkpoint(Cut::Full).unwrap();
            drop(log);
            log = configuration.open(&disk);
            right(&log, configuration, count / 2, "opened");
            log.compact(1.0).unwrap();
            right(&log, configuration, count / 2, "compacted");
        }
    });
}

#[test]
fn a_closure_cannot_wait_for_an_estimate() {
    let log = ON_DISK[0].log();
    log.put(&key(1), &value(1)).unwrap();
    let told = log.get_with(&key(1), |_| log.estimate_garbage());
    assert_eq!(told, Ok(Some(Err(Error::WouldBlock))));
}
