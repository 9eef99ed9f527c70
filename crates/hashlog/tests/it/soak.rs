//! Memory over a long life: data far beyond the budget stay within it, churn comes to rest.
//!
//! Each test has a process of its own, for figures of resident memory. Sizes are those of a smoke
//! run; `SAPWOOD_SOAK=full` runs the long ones, best with `--release`.

use crate::adapter::{COLDEST, Configuration, IN_MEMORY, NASTIEST, ON_DISK, key, value};
use rand::RngExt as _;
use rand::distr::Distribution as _;
use sapwood_disk::FileDisk;
use sapwood_hashlog::{ColdReads, HashLog, HashStats, Layout};
use sapwood_testkit::case;
use sapwood_testkit::case::Case;
use std::sync::Arc;
use std::time::Duration;

fn sized(smoke: u64, full: u64) -> u64 {
    match std::env::var("SAPWOOD_SOAK").as_deref() {
        Ok("full") => full,
        Ok(other) => panic!("SAPWOOD_SOAK={other}: only `full` has a meaning"),
        Err(_) => smoke,
    }
}

/// The long sizes take minutes, on a slow machine many.
fn long(case: Case) -> Case {
    case.hangs_after(Duration::from_secs(sized(300, 7_200)))
}

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    let kib = line.split_whitespace().nth(1).expect("a figure");
    kib.parse::<u64>().expect("a number") << 10
}

/// What is right of each key: how often it was written, 0 while it is absent.
struct Versions {
    layout: Layout,
    versions: Vec<u32>,
}

impl Versions {
    /// Of a key that is there.
    fn bytes(&self, index: usize, version: u32) -> Vec<u8> {
        match self.layout {
            Layout::Fixed8 => value(u64::from(version)).to_vec(),
            Layout::Variable => {
                let mut bytes = vec![version as u8; 400 + (index + version as usize) % 200];
                bytes[..8].copy_from_slice(&value(index as u64 ^ u64::from(version) << 32));
                bytes
            }
        }
    }

    fn right(&self, index: usize) -> Option<Vec<u8>> {
        match self.versions[index] {
            0 => None,
            version => Some(self.bytes(index, version)),
        }
    }
}

/// Reads, writes, changes and removes one key.
fn touch(log: &HashLog, right: &mut Versions, index: usize, dice: u32) {
    let key = key(index as u64);
    let before = right.right(index);
    let version = right.versions[index] + 1;
    let after = right.bytes(index, version);
    match dice {
        0..50 => return assert_eq!(log.get(&key).unwrap(), before, "key {index}"),
        50..70 => log.put(&key, &after).unwrap(),
        70..90 => {
            let changed = log.update(&key, |value| value.set(&after).unwrap()).unwrap();
            assert_eq!(changed.is_some(), before.is_some(), "key {index}");
            if changed.is_none() {
                return;
            }
        }
        90..96 => {
            if !log.put_if_absent(&key, &after).unwrap() {
                return assert!(before.is_some(), "key {index}");
            }
        }
        _ => {
            assert_eq!(log.remove(&key).unwrap(), before.is_some(), "key {index}");
            right.versions[index] = 0;
            return;
        }
    }
    right.versions[index] = version;
}

/// So many records on a real folder that memory, beside the index, has room for few.
fn beyond_the_budget(configuration: Configuration, budget: u64, count: usize) {
    let mut right = Versions { layout: configuration.layout, versions: vec![1; count] };
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = configuration.options();
    options.memory_budget = Some(budget);
    options.page_bytes = sized(64 << 10, 2 << 20) as usize;
    let before = resident();
    let disk = FileDisk::open(folder.path()).expect("a folder of our own");
    let log = HashLog::open(Arc::new(disk), options).unwrap();
    let within = |what: &str| {
        let (stats, now) = (log.stats(), resident());
        let told =
            format!("{configuration:?}, {what}: {before} resident before, {now} now, {stats:?}");
        assert!(stats.reserved_bytes <= budget + budget / 10, "{told}");
        // The allocator's and the threads' own memory is beside the budget.
        assert!(now <= before + budget + budget / 10 + (4 << 20), "{told}");
    };
    for index in 0..count {
        log.put(&key(index as u64), &right.bytes(index, 1)).unwrap();
        if index % (count / 10) == 0 {
            within("load");
        }
    }
    let mut rng = sapwood_testkit::rng(7);
    let zipf = rand_distr::Zipf::new(count as f64, 1.0).expect("keys");
    let steps = sized(60_000, 20_000_000);
    for step in 0..steps {
        let index = (zipf.sample(&mut rng) as usize * 7_919) % count;
        touch(&log, &mut right, index, rng.random_range(0..100));
        if step % (steps / 10) == 0 {
            within("mix");
        }
    }
    let mut seen = 0;
    for index in 0..count {
        // All of them in a long run; in a smoke run, of many cold ones every few.
        if index % sized(8, 1) as usize == 0 {
            assert_eq!(log.get(&key(index as u64)).unwrap(), right.right(index), "key {index}");
        }
        seen += usize::from(right.versions[index] > 0);
    }
    within("end");
    // These remember what they have seen.
    assert_eq!(log.len_exact(), Ok(seen));
    log.check().unwrap();
    assert!(log.stats().cold_reads > 0, "{:?}", log.stats());
}

#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn ten_times_more_data_than_memory() {
    long(case!()).alone(|| {
        let budget = sized(4 << 20, 256 << 20);
        let configuration = Configuration { mutable_share: 0.9, ..COLDEST };
        beyond_the_budget(configuration, budget, (10 * budget / 512) as usize);
    });
}

/// Of counters the index alone takes half as much memory as all records would.
#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn more_counters_than_memory() {
    long(case!()).alone(|| {
        let budget = sized(4 << 20, 256 << 20);
        let cold_reads = ColdReads::Stay;
        let configuration = Configuration { mutable_share: 0.9, cold_reads, ..ON_DISK[1] };
        beyond_the_budget(configuration, budget, (budget / 20) as usize);
    });
}

/// Puts `count` keys with values of `len` bytes, each key but the `live` latest removed again in
/// that order; every tenth of it `rest` runs; returns the stats after each tenth.
fn churn(
    log: &HashLog,
    (live, count): (u64, u64),
    len: usize,
    rest: impl Fn(&HashLog),
) -> Vec<HashStats> {
    let mut tenths = Vec::new();
    let bytes = vec![7; len];
    for index in 0..count {
        log.put(&key(index), &bytes).unwrap();
        if index >= live {
            assert_eq!(log.remove(&key(index - live)), Ok(true));
        }
        if (index + 1) % (count / 10) == 0 {
            rest(log);
            tenths.push(log.stats());
        }
    }
    assert_eq!(log.len_exact(), Ok(live as usize));
    log.check().unwrap();
    tenths
}

/// In the last four tenths, `figure` stays what it was in the first six.
fn assert_flat(what: &str, tenths: &[HashStats], figure: impl Fn(&HashStats) -> u64) {
    let figures: Vec<u64> = tenths.iter().map(figure).collect();
    let early = *figures[..5].iter().max().expect("five");
    let flat = figures[5..].iter().all(|late| late * 100 <= early * 115);
    assert!(flat, "{what} after each tenth: {figures:?}");
}

#[test]
fn first_in_first_out_churn_keeps_memory_flat() {
    long(case!()).alone(|| {
        for configuration in [NASTIEST, IN_MEMORY[1], IN_MEMORY[2], IN_MEMORY[3]] {
            let count = sized(100_000, 10_000_000);
            let tenths = churn(&configuration.log(), (1_000, count), 8, |_| ());
            assert_flat(&format!("{configuration:?}: memory"), &tenths, |it| it.reserved_bytes);
        }
    });
}

#[test]
fn first_in_first_out_churn_keeps_a_compacted_index_flat() {
    long(case!()).alone(|| {
        for configuration in ON_DISK {
            let compact = |log: &HashLog| {
                log.compact(1.0).unwrap();
            };
            let count = sized(60_000, 4_000_000);
            let tenths = churn(&configuration.log(), (2_000, count), 8, compact);
            // Not the checksums of the part that is being written, which go with it.
            assert_flat(&format!("{configuration:?}"), &tenths, |it| it.index_bytes + it.log_bytes);
        }
    });
}

/// Files go in parts of the log, large ones: many of them come and go.
#[test]
fn first_in_first_out_churn_keeps_compacted_files_flat() {
    long(case!()).alone(|| {
        let compact = |log: &HashLog| {
            log.compact(1.0).unwrap();
        };
        let count = sized(150_000, 3_000_000);
        let log = COLDEST.log();
        let tenths = churn(&log, (500, count), 1_000, compact);
        assert_flat("files", &tenths, |it| it.file_bytes);
        let file_bytes = tenths[9].file_bytes;
        assert!(file_bytes < count * 1_000 * 2, "{file_bytes} bytes: no part has gone");
    });
}

/// The same keys written over and over take no more memory than once.
#[test]
fn overwriting_keeps_memory_flat() {
    long(case!()).alone(|| {
        for configuration in IN_MEMORY {
            let log = configuration.log();
            let mut tenths = Vec::new();
            for round in 0..sized(60, 6_000) {
                for index in 0..500 {
                    log.put(&key(index), &value(round)).unwrap();
                    log.add(&key(index), 1).unwrap();
                    if configuration.layout == Layout::Variable {
                        // Lengths that change: 8 bytes, none, 8 again.
                        log.update(&key(index), |value| value.resize(0).unwrap()).unwrap();
                    }
                }
                if (round + 1) % sized(6, 600) == 0 {
                    tenths.push(log.stats());
                }
            }
            assert_flat(&format!("{configuration:?}"), &tenths, |it| it.reserved_bytes);
            log.check().unwrap();
        }
    });
}

/// A thread that stays in one log holds back nothing in another.
#[test]
fn a_reader_in_one_log_keeps_no_memory_of_another() {
    long(case!()).alone(|| {
        for configuration in [IN_MEMORY[2], IN_MEMORY[3]] {
            let (read, churned) = (configuration.log(), configuration.log());
            read.put(&key(0), &value(0)).unwrap();
            let within = read.get_with(&key(0), |_| {
                let tenths = churn(&churned, (500, sized(50_000, 5_000_000)), 8, |_| ());
                assert_flat("beside a reader", &tenths, |it| it.reserved_bytes);
            });
            assert_eq!(within, Ok(Some(())));
        }
    });
}

#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn a_dropped_log_gives_its_memory_back_to_the_system() {
    long(case!()).alone(|| {
        let before = resident();
        for configuration in [IN_MEMORY[4], IN_MEMORY[3]] {
            let log = configuration.log();
            let count = sized(1_000_000, 40_000_000);
            for index in 0..count {
                log.put(&key(index), &value(index)).unwrap();
            }
            let filled = resident();
            assert!(filled > before + count * 24, "{before} before, {filled} with data");
            drop(log);
            let after = resident();
            let told = format!("{before} before, {filled} with data, {after} after");
            assert!(after < before + count * 24 / 10 + (2 << 20), "{told}");
        }
    });
}

/// No thread leaves anything behind: neither in the log nor in the process.
#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn a_thousand_threads_over_a_lifetime() {
    long(case!()).alone(|| {
        for configuration in [IN_MEMORY[2], IN_MEMORY[3]] {
            let log = configuration.log();
            let mut residents = Vec::new();
            for group in 0..125u64 {
                std::thread::scope(|scope| {
                    for thread in 0..8u64 {
                        let log = &log;
                        scope.spawn(move || {
                            for step in 0..40u64 {
                                log.put(&key(step * 8 + thread), &value(group)).unwrap();
                                log.add(&key(step * 8 + thread), 1).unwrap();
                            }
                        });
                    }
                });
                if group % 12 == 11 {
                    residents.push(resident());
                }
            }
            assert_eq!(log.len_exact(), Ok(320));
            log.check().unwrap();
            let told = format!("{configuration:?}: resident after each tenth: {residents:?}");
            assert!(residents[9] <= residents[3] + (4 << 20), "{told}");
        }
    });
}
