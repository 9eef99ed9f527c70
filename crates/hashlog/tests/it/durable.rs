//! What was checkpointed comes back, all of it and nothing else; what is damaged is named.

use crate::adapter::{
    Adapter, COLDEST, Configuration, KEPT_SHORT, ON_DISK, configurations, contents, key, value,
};
use sapwood_disk::{Disk as _, SimDisk};
use sapwood_hashlog::{Cut, Error, HashLog, Layout, Options};
use sapwood_testkit::case;
use sapwood_testkit::engine::Pair;
use sapwood_testkit::interleave::{self, Running};
use sapwood_testkit::keyed::ledger::Ledger;
use sapwood_testkit::keyed::{KeyedEngine as _, Walk};
use std::sync::Arc;

const CUTS: [Cut; 2] = [Cut::Full, Cut::Incremental];

#[test]
fn a_directory_without_a_checkpoint_is_an_empty_log() {
    for configuration in ON_DISK {
        let disk = SimDisk::new();
        for _ in 0..3 {
            let log = configuration.open(&disk);
            assert_eq!((log.len_exact(), log.checkpoints()), (Ok(0), Ok(vec![])));
            for index in 0..2_000 {
                log.put(&key(index), &value(index)).unwrap();
            }
            log.check().unwrap();
        }
        // Files that no checkpoint names do not pile up, nor after a crash.
        assert_eq!(disk.list().unwrap(), ["table.identity"]);
        let log = configuration.open(&disk);
        for index in 0..2_000 {
            log.put(&key(index), &value(index)).unwrap();
        }
        // The last of two: all of it reached the disk.
        let crashed = disk.crash_images(2).last().unwrap();
        assert!(crashed.file_bytes() > 8_192 || configuration == ON_DISK[4], "it spilled");
        drop(configuration.open(&crashed));
        assert_eq!(crashed.list().unwrap(), ["table.identity"]);
    }
}

#[test]
fn a_chain_of_checkpoints_of_both_kinds_comes_back() {
    for configuration in ON_DISK.into_iter().chain(KEPT_SHORT) {
        for first in CUTS {
            let disk = SimDisk::new();
            let mut log = configuration.open(&disk);
            let mut right: Vec<Pair> = Vec::new();
            for round in 0..8u64 {
                for step in 0..300 {
                    let index = (round * 170 + step * 7) % 1_000;
                    log.put(&key(index), &value(round * 1_000 + step)).unwrap();
                    log.remove(&key((index * 3) % 1_000)).unwrap();
                    log.add(&key(5_000 + step % 3), 1).unwrap();
                }
                let cut = if round % 4 == 0 { first } else { Cut::Incremental };
                let info = log.checkpoint(cut).unwrap();
                assert!(info.full || cut == Cut::Incremental, "{info:?}");
                assert_eq!(log.checkpoints().unwrap().last(), Some(&info));
                right = contents(&log);
                log.put(&key(1), b"unsaved!").unwrap();
                if round % 3 == 2 {
                    drop(log);
                    log = configuration.open(&disk);
                    assert_eq!(contents(&log), right, "{configuration:?}, round {round}");
                    log.check().unwrap();
                }
            }
            drop(log);
            // A crash loses nothing of it either.
            for seed in 0..4 {
                let log = configuration.open(&disk.crash(seed));
                assert_eq!(contents(&log), right, "{configuration:?}");
            }
        }
    }
}

/// The checkpoints of a directory, the oldest first, and what was in the log at each.
fn several(configuration: Configuration, kept: usize) -> (SimDisk, Vec<(u64, Vec<Pair>)>) {
    let disk = SimDisk::new();
    let mut options = configuration.options();
    options.checkpoints_kept = kept;
    let log = HashLog::open(Arc::new(disk.clone()), options).unwrap();
    let mut saved = Vec::new();
    for round in 0..6u64 {
        for index in 0..200 {
            log.put(&key(round * 50 + index), &value(round * 1_000 + index)).unwrap();
        }
        log.remove(&key(round * 7)).unwrap();
        let cut = if round % 3 == 0 { Cut::Full } else { Cut::Incremental };
        saved.push((log.checkpoint(cut).unwrap().number, contents(&log)));
    }
    (disk, saved)
}

#[test]
fn an_older_checkpoint_is_opened_on_request() {
    for configuration in ON_DISK {
        for kept in [1, 2, 4] {
            let (disk, saved) = several(configuration, kept);
            assert!(saved.is_sorted_by(|a, b| a.0 < b.0), "numbers rise");
            let mut options = configuration.options();
            options.checkpoints_kept = kept;
            let listed = HashLog::open(Arc::new(disk.clone()), options.clone()).unwrap();
            let listed = listed.checkpoints().unwrap();
            let numbers: Vec<u64> = listed.iter().map(|info| info.number).collect();
            let newest = saved[saved.len() - kept..].iter().map(|(number, _)| *number);
            // What an incremental one builds on is kept too.
            assert!(newest.clone().all(|number| numbers.contains(&number)), "{numbers:?}");
            for (number, right) in &saved {
                let image = disk.crash(1);
                let opened = HashLog::open_at(Arc::new(image.clone()), options.clone(), *number);
                let log = match opened {
                    Ok(log) => log,
                    Err(error) => {
                        assert!(!numbers.contains(number), "{number}: {error}");
                        assert!(error.to_string().contains(&number.to_string()), "{error}");
                        continue;
                    }
                };
                assert_eq!(contents(&log), *right, "{configuration:?}, checkpoint {number}");
                log.check().unwrap();
                // Newer ones are gone, for the log goes on from here.
                let left = log.checkpoints().unwrap();
                assert_eq!(left.last().map(|info| info.number), Some(*number));
                log.put(&key(77), &value(77)).unwrap();
                log.checkpoint(Cut::Incremental).unwrap();
                let held = contents(&log);
                drop(log);
                let again = HashLog::open(Arc::new(image), options.clone()).unwrap();
                assert_eq!(contents(&again), held);
            }
        }
    }
}

/// One flipped bit anywhere: what is opened is right, or the damage is named; and where it is
/// named, the checkpoint before opens on request.
#[test]
fn damage_is_named_and_never_believed() {
    case!().seeds(3, |seed| {
        for configuration in [COLDEST, ON_DISK[1], ON_DISK[4]] {
            let (disk, saved) = several(configuration, 2);
            let (_, newest) = &saved[5];
            let mut named = 0;
            for file in disk.list().unwrap() {
                let bytes = disk.contents(&file).unwrap().len() as u64;
                for offset in offsets(bytes, seed) {
                    let image = disk.crash(1);
                    image.damage(&file, offset, 1 << (offset % 8)).unwrap();
                    let Some(error) = believed(configuration, &image, newest) else {
                        continue;
                    };
                    named += 1;
                    let told = error.to_string();
                    assert!(told.contains(&file) || matches!(error, Error::Options(_)), "{told}");
                    let (number, right) = &saved[4];
                    let options = configuration.options();
                    let older = HashLog::open_at(Arc::new(image), options, *number);
                    // Both may lie on the damaged bytes.
                    if let Some(held) = older.ok().and_then(|log| readable(&log)) {
                        assert_eq!(held, *right, "{file} at {offset}");
                    }
                }
            }
            assert!(named > 0, "{configuration:?}: no damage was noticed");
        }
    });
}

/// A few places in a file of so many bytes: its ends, and some in between.
fn offsets(bytes: u64, seed: u64) -> impl Iterator<Item = u64> {
    let ends = [0, 1, 8, 100, bytes.saturating_sub(1)];
    let between = (0..10).map(move |step| (step * 7_919 + seed * 104_729) * 31);
    ends.into_iter()
        .chain(between)
        .map(move |offset| offset % bytes.max(1))
        .filter(move |_| bytes > 0)
}

/// Everything in the log, if nothing of it is damaged.
fn readable(log: &HashLog) -> Option<Vec<Pair>> {
    let mut pairs = Vec::new();
    let _ = log.for_each(|key, value| crate::adapter::see(&mut pairs, key, value)).ok()?;
    pairs.sort_unstable();
    Some(pairs)
}

/// How the damage of `image` was named; or nothing, where all that is read is right.
fn believed(configuration: Configuration, image: &SimDisk, right: &[Pair]) -> Option<Error> {
    let log = match configuration.try_open(image) {
        Ok(log) => log,
        Err(error) => return Some(error),
    };
    let mut pairs = Vec::new();
    let walk = log.for_each(|key, value| crate::adapter::see(&mut pairs, key, value));
    pairs.sort_unstable();
    match walk {
        Ok(_) => assert_eq!(pairs, right),
        Err(error) => return Some(error),
    }
    for (key, value) in right {
        match log.get(key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(value)),
            Err(error) => return Some(error),
        }
    }
    None
}

/// Files cut short, or gone.
#[test]
fn a_file_that_is_cut_or_gone_is_named() {
    for configuration in [COLDEST, ON_DISK[1]] {
        let (disk, saved) = several(configuration, 2);
        let mut named = 0;
        for file in disk.list().unwrap() {
            let bytes = disk.contents(&file).unwrap().len() as u64;
            for keep in [0, bytes / 2, bytes.saturating_sub(4_096)] {
                let image = disk.crash(1);
                image.truncate(&file, keep).unwrap();
                named += usize::from(believed(configuration, &image, &saved[5].1).is_some());
            }
            let image = disk.crash(1);
            image.remove(&file).unwrap();
            named += usize::from(believed(configuration, &image, &saved[5].1).is_some());
        }
        assert!(named > 3, "{configuration:?}: {named} noticed");
    }
}

/// A checkpoint among writers is one moment.
#[test]
fn a_checkpoint_among_writers_is_one_moment() {
    const WRITERS: u8 = 3;
    case!().seeds(4, |seed| {
        for configuration in ON_DISK.into_iter().chain(KEPT_SHORT) {
            let disk = SimDisk::new();
            let adapter = Adapter::new(configuration.open(&disk), configuration);
            let ledger = Ledger::new(WRITERS, 6, &configuration.lengths());
            ledger.fill(&adapter).unwrap();
            let writing = Running::new(usize::from(WRITERS));
            std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let (adapter, ledger, writing) = (&adapter, &ledger, &writing);
                    scope.spawn(move || {
                        let _writing = writing.guard();
                        ledger.write(adapter, writer, 40, seed).unwrap();
                    });
                }
                interleave::seed_thread(seed);
                let mut turn = seed as usize;
                while writing.any() {
                    let before = ledger.before();
                    adapter.log.checkpoint(CUTS[turn % 2]).unwrap();
                    let after = ledger.after();
                    let left = disk.crash(seed + turn as u64);
                    let left = Adapter::new(configuration.open(&left), configuration);
                    let seen = left.pairs(Walk::ALL[turn % Walk::ALL.len()]).unwrap();
                    let told = after.check(&before, &seen);
                    told.unwrap_or_else(|told| panic!("{configuration:?}: {told}"));
                    left.log.check().unwrap();
                    turn += 1;
                    if turn.is_multiple_of(3) {
                        adapter.log.compact(0.5).unwrap();
                    }
                }
            });
            let seen = adapter.pairs(Walk::Log).unwrap();
            ledger.after().check(&ledger.before(), &seen).unwrap();
        }
    });
}

/// Found by a stream: keys whose absence and return both lie in an increment were lost to `get`,
/// though walks showed them.
#[test]
fn a_key_that_goes_and_comes_back_in_an_increment_is_found() {
    for configuration in ON_DISK {
        for (others, clears) in [(0, true), (2, true), (0, false), (2, false), (40, false)] {
            let disk = SimDisk::new();
            let log = configuration.open(&disk);
            log.checkpoint(Cut::Full).unwrap();
            log.put(&key(1), &value(1)).unwrap();
            match clears {
                true => log.clear().unwrap(),
                false => assert_eq!(log.remove(&key(1)), Ok(true)),
            }
            for index in (2..2 + others).chain([1]) {
                log.put(&key(index), &value(index + 10)).unwrap();
            }
            log.checkpoint(Cut::Incremental).unwrap();
            drop(log);
            let log = configuration.open(&disk);
            let what = format!("{configuration:?}, {others} others, clears {clears}");
            for index in 1..2 + others {
                let right = Ok(Some(value(index + 10).to_vec()));
                assert_eq!(log.get(&key(index)), right, "{what}: key {index}");
            }
            assert_eq!(log.len_exact(), Ok(1 + others as usize), "{what}");
            log.check().unwrap();
        }
    }
}

/// Checkpoints of a log that holds next to nothing, or nothing.
#[test]
fn an_empty_log_comes_back_empty() {
    for configuration in ON_DISK {
        for cut in CUTS {
            let disk = SimDisk::new();
            let log = configuration.open(&disk);
            log.checkpoint(cut).unwrap();
            log.put(&key(1), &value(1)).unwrap();
            log.checkpoint(cut).unwrap();
            log.remove(&key(1)).unwrap();
            log.checkpoint(cut).unwrap();
            log.checkpoint(cut).unwrap();
            drop(log);
            let log = configuration.open(&disk);
            assert_eq!(log.len_exact(), Ok(0), "{configuration:?}");
            log.check().unwrap();
        }
    }
}

/// Logs in memory and in a directory hold the same after the same operations.
#[test]
fn a_directory_changes_no_answer() {
    let held: Vec<Vec<Pair>> = configurations()
        .chain(KEPT_SHORT)
        .map(|configuration| {
            let log = configuration.log();
            for step in 0..3_000u64 {
                match step % 7 {
                    0..4 => log.put(&key(step * 31 % 700), &value(step)).unwrap(),
                    4 => drop(log.remove(&key(step * 17 % 700)).unwrap()),
                    _ => drop(log.add(&key(step * 13 % 700), 3).unwrap()),
                }
            }
            contents(&log)
        })
        .collect();
    assert!(held[0].len() > 300 && held.iter().all(|pairs| *pairs == held[0]));
}

/// Each opening begins a page: those that hold next to nothing take next to no memory.
#[test]
fn pages_that_are_mostly_empty_take_little_memory() {
    const ROUNDS: u64 = 40;
    for layout in [Layout::Variable, Layout::Fixed8] {
        let disk = SimDisk::new();
        let mut options = Options::default();
        options.layout = layout;
        let open = || HashLog::open(Arc::new(disk.clone()), options.clone()).unwrap();
        for round in 0..ROUNDS {
            let log = open();
            log.put(&key(2 * round), &value(round)).unwrap();
            log.put(&key(2 * round + 1), &value(round)).unwrap();
            log.checkpoint(Cut::Full).unwrap();
        }
        let log = open();
        let stats = log.stats();
        assert!(stats.log_bytes <= ROUNDS * 4_096, "{} bytes", stats.log_bytes);
        assert!(stats.reserved_bytes <= ROUNDS * 4_096 + (128 << 10), "{stats:?}");
        assert_eq!(log.stats().cold_reads, 0, "all of it is in memory");
        let held = contents(&log);
        let right = (0..ROUNDS).flat_map(|round| {
            [2 * round, 2 * round + 1].map(|index| (key(index).to_vec(), value(round).to_vec()))
        });
        let mut right: Vec<Pair> = right.collect();
        right.sort_unstable();
        assert_eq!(held, right);
        // What is written goes behind them.
        for (key, _) in &right {
            log.add(key, 1).unwrap();
        }
        assert_eq!(log.len_exact(), Ok(right.len()));
        log.check().unwrap();
    }
}
