//! What failed and interrupted checkpoints leave harms nothing, and goes.

use crate::adapter::{COLDEST, Configuration, ON_DISK, contents, key, try_contents, value};
use sapwood_disk::{Disk, Faults, SimDisk, SyncFault};
use sapwood_hashlog::{Cut, Error, HashLog};
use sapwood_testkit::engine::Pair;
use std::io::ErrorKind;
use std::sync::Arc;

const CUTS: [Cut; 2] = [Cut::Full, Cut::Incremental];

fn fill(log: &HashLog, round: u64) {
    for index in 0..40 {
        log.put(&key(index * (round + 1)), &value(round * 1_000 + index)).unwrap();
    }
}

/// Faults of one sync, or of all from it on; names that may last or not.
fn failing_syncs(number: u64) -> [Faults; 2] {
    let fault = SyncFault::Doubtful(ErrorKind::Other);
    [Faults::new().syncs(number..=number, fault), Faults::new().syncs(number.., fault)]
}

/// Every image of a crash, where these are few, opens as one of what is given.
fn assert_opens(configuration: Configuration, disk: &SimDisk, right: &[Vec<Pair>], what: &str) {
    for image in disk.crash_images(8) {
        let log = configuration.try_open(&image).unwrap_or_else(|error| panic!("{what}: {error}"));
        let held = contents(&log);
        assert!(right.contains(&held), "{what}: {held:?}");
        log.check().unwrap();
    }
}

/// A manifest has its name, and the sync that was to make that last fails. The next checkpoint
/// is cut off anywhere.
#[test]
fn a_checkpoint_that_may_be_there_keeps_what_it_names() {
    for configuration in [COLDEST, ON_DISK[1]] {
        for (first, second) in [(Cut::Full, Cut::Full), (Cut::Full, Cut::Incremental)] {
            for before in 0..2 {
                let mut failed = 0;
                for number in 0..8 {
                    for (way, faults) in failing_syncs(number).into_iter().enumerate() {
                        for power in 0.. {
                            let disk = SimDisk::new();
                            let log = configuration.open(&disk);
                            let mut right = vec![vec![]];
                            for round in 0..before {
                                fill(&log, round);
                                log.checkpoint(Cut::Full).unwrap();
                                right = vec![contents(&log)];
                            }
                            fill(&log, 7);
                            disk.set_faults(faults.clone());
                            let told = log.checkpoint(first);
                            failed += u64::from(told.is_err());
                            if told.is_ok() {
                                right.clear();
                            }
                            right.push(contents(&log));
                            disk.set_faults(Faults::new());
                            fill(&log, 8);
                            right.push(contents(&log));
                            disk.stop_after(power);
                            let done = log.checkpoint(second).is_ok();
                            let what = format!(
                                "{configuration:?}, {before} before, sync {number} ({way}): {told:?}, {second:?} with power for {power}"
                            );
                            assert_opens(configuration, &disk, &right, &what);
                            // With the power on, the next one has it.
                            if done || power > 60 {
                                break;
                            }
                        }
                    }
                }
                assert!(failed > 3, "{failed} checkpoints failed");
            }
        }
    }
}

/// A disk that syncs nothing any more, from any moment on: what is there opens, at once and after
/// a crash.
#[test]
fn a_disk_whose_syncs_all_fail_keeps_what_lasts() {
    for configuration in [COLDEST, ON_DISK[1], ON_DISK[4]] {
        for fault in [SyncFault::Doubtful(ErrorKind::Other), SyncFault::Lost(ErrorKind::Other)] {
            for number in 0..30 {
                let disk = SimDisk::new();
                let log = configuration.open(&disk);
                disk.set_faults(Faults::new().syncs(number.., fault));
                let mut right = vec![vec![]];
                for round in 0..8 {
                    fill(&log, round);
                    // What is lost at once can be told from what was written.
                    let Ok(held) = try_contents(&log) else { break };
                    if log.checkpoint(CUTS[(round % 2) as usize]).is_ok() {
                        right.clear();
                    }
                    right.push(held);
                }
                let what = format!("{configuration:?}, syncs fail from {number} on");
                assert_opens(configuration, &disk, &right, &what);
                drop(log);
                disk.set_faults(Faults::new());
                let held = contents(&configuration.open(&disk));
                assert!(right.contains(&held), "{what}: {held:?}");
            }
        }
    }
}

fn names(disk: &SimDisk, suffix: &str) -> Vec<String> {
    disk.list().unwrap().into_iter().filter(|name| name.ends_with(suffix)).collect()
}

/// Images and unfinished manifests that no manifest names, whatever their numbers.
#[test]
fn files_that_no_checkpoint_names_go() {
    for configuration in ON_DISK {
        let disk = SimDisk::new();
        let log = configuration.open(&disk);
        for round in 0..3 {
            fill(&log, round);
            log.checkpoint(Cut::Full).unwrap();
        }
        let right = contents(&log);
        drop(log);
        for number in [1, 0x17, 0xff] {
            disk.plant(&format!("index-{number:016x}.image"), b"whatever").unwrap();
            disk.plant(&format!("checkpoint-{number:016x}.unfinished"), b"whatever").unwrap();
        }
        disk.plant("log-00000000000000ff.part", b"whatever").unwrap();
        disk.plant("notes.txt", b"of a user").unwrap();
        let log = configuration.open(&disk);
        assert_eq!(contents(&log), right, "{configuration:?}");
        let info = log.checkpoint(Cut::Full).unwrap();
        assert!(info.number > 0xff, "no number that a file has is used again: {info:?}");
        assert_eq!(contents(&log), right, "{configuration:?}");
        let all = disk.list().unwrap();
        assert_eq!(names(&disk, ".unfinished"), Vec::<String>::new());
        assert_eq!(names(&disk, ".image").len(), 2, "{all:?}");
        assert_eq!(names(&disk, ".manifest").len(), 2, "{all:?}");
        assert!(!all.contains(&"log-00000000000000ff.part".to_owned()), "{all:?}");
        assert!(all.contains(&"notes.txt".to_owned()), "{all:?}");
    }
}

/// Full checkpoints that are cut off again and again leave no more than one that is not.
#[test]
fn checkpoints_that_are_cut_off_leave_no_files_behind() {
    for configuration in [COLDEST, ON_DISK[1]] {
        let mut disk = SimDisk::new();
        let log = configuration.open(&disk);
        fill(&log, 0);
        log.checkpoint(Cut::Full).unwrap();
        drop(log);
        for round in 0..40_u64 {
            let log = configuration.open(&disk);
            fill(&log, round);
            disk.stop_after(round % 20);
            let _cut_off = log.checkpoint(Cut::Full);
            disk = disk.crash(round);
            drop(log);
            let images = names(&disk, ".image").len() + names(&disk, ".unfinished").len();
            assert!(images <= 6, "{configuration:?}, round {round}: {:?}", disk.list());
        }
        let log = configuration.open(&disk);
        fill(&log, 99);
        log.checkpoint(Cut::Full).unwrap();
        let all = disk.list().unwrap();
        assert_eq!(names(&disk, ".unfinished"), Vec::<String>::new());
        assert_eq!(names(&disk, ".image").len(), names(&disk, ".manifest").len(), "{all:?}");
    }
}

/// A table with some checkpoints, and what was in it at each: their numbers ascend.
fn several(configuration: Configuration) -> (SimDisk, Vec<(u64, Vec<Pair>)>) {
    let disk = SimDisk::new();
    let mut saved = Vec::new();
    let mut options = configuration.options();
    options.table_id = 77;
    let log = HashLog::open(Arc::new(disk.clone()), options).unwrap();
    for round in 0..4 {
        fill(&log, round);
        let info = log.checkpoint(CUTS[(round % 2) as usize]).unwrap();
        assert_eq!(info.entries, log.stats().entries_estimate);
        saved.push((info.number, contents(&log)));
    }
    drop(log);
    (disk, saved)
}

fn view(configuration: Configuration, disk: &SimDisk, number: u64) -> Result<HashLog, Error> {
    HashLog::view(Arc::new(disk.clone()), configuration.options(), number)
}

fn back(configuration: Configuration, disk: &SimDisk, number: u64) -> Result<HashLog, Error> {
    HashLog::open_at(Arc::new(disk.clone()), configuration.options(), number)
}

fn files(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().unwrap().into_iter();
    names.map(|name| (name.clone(), disk.contents(&name).unwrap())).collect()
}

fn file_of(kind: &str, number: u64) -> String {
    match kind {
        "image" => format!("index-{number:016x}.image"),
        _ => format!("checkpoint-{number:016x}.{kind}"),
    }
}

/// What stands in the way of the newest checkpoint.
const DAMAGES: [&str; 3] = ["a manifest that is gone", "a manifest", "an image"];

fn damage(disk: &SimDisk, damage: &str, number: u64) {
    match damage {
        "a manifest that is gone" => disk.remove(&file_of("manifest", number)).unwrap(),
        "a manifest" => disk.damage(&file_of("manifest", number), 50, 1).unwrap(),
        _ => {
            disk.plant(&file_of("image", number), b"something else").unwrap();
        }
    }
}

/// The newest checkpoint is damaged: the error names the one that opens, nothing is changed, and
/// both ways to that one work.
#[test]
fn a_damaged_checkpoint_says_which_one_opens() {
    for configuration in ON_DISK {
        for what in DAMAGES {
            let (disk, mut saved) = several(configuration);
            let log = configuration.open(&disk);
            fill(&log, 9);
            saved.push((log.checkpoint(Cut::Full).unwrap().number, contents(&log)));
            drop(log);
            let [.., (older, right), (newest, _)] = &saved[..] else { panic!("several") };
            damage(&disk, what, *newest);
            let before = files(&disk);
            let error = configuration.try_open(&disk).expect_err("the newest is damaged");
            let Error::CheckpointDamaged { number, opens, .. } = &error else { panic!("{error}") };
            assert_eq!((number, opens), (newest, older), "{what}");
            let told = error.to_string();
            assert!(told.contains(&format!("{newest:016x}")), "{told}");
            assert!(told.contains(&format!("go back to checkpoint {older}")), "{told}");
            // All of them, and which are whole.
            let disk_of_it: Arc<dyn Disk> = Arc::new(disk.clone());
            let listed = HashLog::stored(&disk_of_it).unwrap();
            let states: Vec<_> = listed.iter().map(|one| (one.number, one.state.is_ok())).collect();
            assert_eq!(states, [(*older, true), (*newest, false)], "{what}");
            let info = listed[0].state.as_ref().unwrap();
            assert_eq!(info.entries, right.len() as u64, "{what}");
            // A look changes nothing, though it is written into.
            let looked = view(configuration, &disk, *older).unwrap();
            assert_eq!(contents(&looked), *right, "{what}");
            looked.put(&key(7), &value(7)).unwrap();
            assert_eq!(looked.checkpoint(Cut::Full), Err(Error::View));
            assert_eq!(looked.checkpoints(), Err(Error::View));
            looked.check().unwrap();
            drop(looked);
            assert!(files(&disk) == before, "{configuration:?}, {what}: a view changed files");
            let log = back(configuration, &disk, *older).unwrap();
            assert_eq!(contents(&log), *right, "{what}");
            log.put(&key(7), &value(7)).unwrap();
            let info = log.checkpoint(Cut::Incremental).unwrap();
            assert!(info.number > *newest, "the number of the damaged one is not used again");
            let held = contents(&log);
            drop(log);
            assert_eq!(contents(&configuration.open(&disk)), held, "{what}");
        }
    }
}

/// A view that has no memory left for what is put into it refuses, and what it shows is right.
#[test]
fn a_view_that_is_full_refuses() {
    let (disk, saved) = several(COLDEST);
    let (number, right) = saved.last().unwrap();
    let before = files(&disk);
    let looked = view(COLDEST, &disk, *number).unwrap();
    let refused = (0..10_000).find_map(|index| looked.put(&key(index + 90_000), &value(1)).err());
    let refused = refused.expect("it has a budget").to_string();
    assert!(refused.contains("for reading alone"), "{refused}");
    for (key, value) in right {
        assert_eq!(looked.get(key), Ok(Some(value.clone())));
    }
    drop(looked);
    assert!(files(&disk) == before);
}

/// A way back that is cut off anywhere ends at one of the two checkpoints, and is no missing one.
#[test]
fn a_way_back_that_is_cut_off_ends_at_a_checkpoint() {
    for configuration in [COLDEST, ON_DISK[1]] {
        let (_, saved) = several(configuration);
        let [.., (older, right), (_, newest)] = &saved[..] else { panic!("several") };
        for power in 0.. {
            let (disk, _) = several(configuration);
            disk.stop_after(power);
            let done = back(configuration, &disk, *older).is_ok();
            for image in disk.crash_images(16) {
                let held = contents(&configuration.open(&image));
                assert!(held == *right || held == *newest && !done, "power for {power}");
            }
            if done {
                break;
            }
        }
    }
}

/// Every manifest is gone: nothing opens, nothing is removed, and the error names what is missing.
#[test]
fn a_table_without_its_manifests_is_not_an_empty_one() {
    for configuration in ON_DISK {
        for keep in ["all", "parts", "images", "identity"] {
            let (disk, saved) = several(configuration);
            for name in disk.list().unwrap() {
                let goes = match keep {
                    "all" => name.ends_with(".manifest"),
                    "parts" => !name.ends_with(".part"),
                    "images" => !name.ends_with(".image"),
                    _ => name != "table.identity",
                };
                if goes {
                    disk.remove(&name).unwrap();
                }
            }
            let before = files(&disk);
            let what = format!("{configuration:?}, {keep}");
            let error = configuration.try_open(&disk).map(drop).expect_err(&what);
            assert!(error.to_string().contains(".manifest"), "{what}: {error}");
            assert!(matches!(error, Error::Corrupt { .. }), "{what}: {error}");
            assert!(files(&disk) == before, "{what}: something was removed");
            let disk_of_it: Arc<dyn Disk> = Arc::new(disk.clone());
            let listed = HashLog::stored(&disk_of_it).unwrap();
            assert!(listed.iter().all(|one| one.state.is_err()), "{what}: {listed:?}");
            // Brought back, it opens.
            let (copy, _) = several(configuration);
            for (name, bytes) in files(&copy) {
                disk.plant(&name, &bytes).unwrap();
            }
            assert_eq!(contents(&configuration.open(&disk)), saved[3].1, "{what}");
        }
    }
}

/// At each moment before the first checkpoint is complete the table opens, empty.
#[test]
fn a_table_that_never_had_a_checkpoint_is_empty_whatever_a_crash_leaves() {
    for configuration in [COLDEST, ON_DISK[1], ON_DISK[4]] {
        for cut in CUTS {
            for power in 0.. {
                let disk = SimDisk::new();
                disk.stop_after(power);
                let run = || {
                    let log = configuration.try_open(&disk)?;
                    for index in 0..600 {
                        log.put(&key(index), &value(index))?;
                    }
                    log.checkpoint(cut).map(drop)
                };
                let done = run().is_ok();
                for seed in 0..4 {
                    let image = disk.crash(seed);
                    let held = contents(&configuration.open(&image)).len();
                    assert!(held == 600 || !done && held == 0, "power for {power}: {held}");
                }
                if done {
                    break;
                }
            }
        }
    }
}

/// A log that is dropped with changes that no checkpoint has leaves the disk as the checkpoint did.
#[test]
fn what_no_checkpoint_has_goes_with_the_log() {
    for configuration in ON_DISK {
        for checkpoints in 0..3 {
            let disk = SimDisk::new();
            let log = configuration.open(&disk);
            let mut right = Vec::new();
            for round in 0..checkpoints {
                fill(&log, round);
                log.checkpoint(CUTS[(round % 2) as usize]).unwrap();
                right = contents(&log);
            }
            let bytes = disk.file_bytes();
            drop(log);
            for _ in 0..3 {
                let log = configuration.open(&disk);
                // More than memory holds.
                for index in 0..configuration.memory_budget.unwrap() / 16 {
                    log.put(&key(index), &value(index)).unwrap();
                }
                assert!(disk.file_bytes() > 2 * bytes, "it spilled");
                drop(log);
                assert!(disk.file_bytes() <= bytes.max(8_192), "{:?}", disk.list());
            }
            // Also where the process had no time for it.
            let log = configuration.open(&disk);
            for index in 0..configuration.memory_budget.unwrap() / 16 {
                log.put(&key(index), &value(index)).unwrap();
            }
            let crashed = disk.crash_images(2).nth(1).unwrap();
            assert!(crashed.file_bytes() > 2 * bytes, "it spilled");
            let log = configuration.open(&crashed);
            assert!(crashed.file_bytes() <= bytes.max(8_192), "{:?}", crashed.list());
            assert_eq!(contents(&log), right, "{configuration:?}");
        }
    }
}

/// Files of another table, made with the same options and of the same lengths.
#[test]
fn files_of_another_table_are_refused() {
    for configuration in ON_DISK {
        let make = |table_id: u64, by: u64| {
            let disk = SimDisk::new();
            let mut options = configuration.options();
            options.table_id = table_id;
            let log = HashLog::open(Arc::new(disk.clone()), options).unwrap();
            for index in 0..40 {
                log.put(&key(index * by), &value(index)).unwrap();
            }
            log.checkpoint(Cut::Full).unwrap();
            drop(log);
            disk
        };
        let (ours, theirs) = (make(1, 2), make(2, 3));
        let right = contents(&configuration.open(&ours));
        for (name, bytes) in files(&theirs) {
            let mixed = ours.crash(0);
            mixed.plant(&name, &bytes).unwrap();
            let error = configuration.try_open(&mixed).map(drop).expect_err(&name).to_string();
            assert!(error.contains("of another table"), "{name}: {error}");
            mixed.plant(&name, &ours.contents(&name).unwrap()).unwrap();
            assert_eq!(contents(&configuration.open(&mixed)), right, "{name}");
        }
    }
}
