//! Logs beyond memory in real folders, read by io_uring where the system permits it, and by threads:
//! both are the same map.

use crate::adapter::{Adapter, COLDEST, Configuration, ON_DISK, contents, key, value};
use sapwood_disk::{DiskReads, FileDisk};
use sapwood_hashlog::{Error, HashLog};
use sapwood_testkit::case;
use sapwood_testkit::keyed::stream::KeyedSpec;
use sapwood_testkit::runner::check_against_oracle;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The ways that the system permits.
fn ways() -> Vec<DiskReads> {
    let folder = tempfile::tempdir().expect("a folder");
    match disk(folder.path(), DiskReads::IoUring) {
        Ok(_) => vec![DiskReads::IoUring, DiskReads::Threads],
        Err(cause) => {
            println!("by threads alone: {cause}");
            vec![DiskReads::Threads]
        }
    }
}

fn disk(folder: &Path, reads: DiskReads) -> std::io::Result<FileDisk> {
    FileDisk::open(folder)?.with_reads(reads)
}

fn open(configuration: Configuration, folder: &Path, reads: DiskReads) -> HashLog {
    let disk = disk(folder, reads).expect("a folder of our own, and a way that is permitted");
    configuration.try_open_on(Arc::new(disk)).expect("valid options")
}

const KEYS: u64 = 3000;

fn keys(numbers: impl Iterator<Item = u64>) -> Vec<[u8; 8]> {
    numbers.map(key).collect()
}

/// Calls with a log of each way and configuration, nearly all of whose entries are cold.
fn each_way(check: impl Fn(DiskReads, &HashLog, &Path)) {
    for reads in ways() {
        for configuration in ON_DISK.into_iter().filter(|it| it.memory_budget < Some(64 << 10)) {
            let folder = tempfile::tempdir().expect("a folder");
            let log = open(configuration, folder.path(), reads);
            for index in 0..KEYS {
                log.put(&key(index), &value(index)).unwrap();
            }
            check(reads, &log, folder.path());
        }
    }
}

#[test]
fn streams_are_those_of_a_map() {
    case!().seeds(3, |seed| {
        for reads in ways() {
            for configuration in ON_DISK {
                let spec = KeyedSpec::random(seed, 400, configuration.lengths());
                let folder = tempfile::tempdir().expect("a folder");
                let number = AtomicU64::new(0);
                let make = || {
                    let name = number.fetch_add(1, Ordering::Relaxed).to_string();
                    let log = open(configuration, &folder.path().join(name), reads);
                    Adapter::new(log, configuration)
                };
                if let Err(divergence) = check_against_oracle(make, &spec.ops(seed)) {
                    panic!("{reads:?} {configuration:?} {spec:?}\n{divergence}");
                }
            }
        }
    });
}

#[test]
fn batches_and_walks_find_each_cold_entry_and_tell_by_what() {
    each_way(|reads, log, _| {
        let by_ring = reads == DiskReads::IoUring;
        let before = log.stats();
        assert_eq!(before.reads_by, if by_ring { "io_uring" } else { "threads" });
        for count in [1, 2, 64, 1000, KEYS + 5] {
            let wanted = keys((0..count).map(|at| at * 7 % (KEYS + 5)));
            let mut seen = 0;
            log.get_many(&wanted, |at, bytes| {
                let index = at as u64 * 7 % (KEYS + 5);
                assert_eq!(bytes, (index < KEYS).then_some(&value(index)[..]), "{index}");
                seen += 1;
            })
            .unwrap();
            assert_eq!(seen, count);
        }
        let change = |at: usize, value: &mut sapwood_hashlog::ValueMut<'_>| {
            value[0] = value[0].wrapping_add(at as u8);
        };
        let found = log.update_many(&keys(0..500), change).unwrap();
        assert_eq!(found, 500);
        let deltas: Vec<_> = (500..1000).map(|index| (key(index), 1i64)).collect();
        log.add_many(&deltas).unwrap();
        for index in 500..1000 {
            assert_eq!(log.get(&key(index)), Ok(Some(value(index + 1).to_vec())));
        }
        assert_eq!(contents(log).len() as u64, KEYS);
        log.check().unwrap();
        let stats = log.stats();
        assert_eq!(stats.ring_reads > before.ring_reads, by_ring, "{stats:?}");
        assert!(stats.cold_reads > before.cold_reads, "{stats:?}");
    });
}

/// A closure in the middle of a batch asks the same log, and others read meanwhile.
#[test]
fn batches_are_nested_and_shared() {
    each_way(|_, log, _| {
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for round in 0..2 {
                        let numbers =
                            move || (0..200).map(move |at| (at * 13 + thread + round) % KEYS);
                        let wanted = keys(numbers());
                        let mut expected = numbers();
                        log.get_many(&wanted, |at, bytes| {
                            let index = expected.next().expect("in order");
                            assert_eq!(bytes, Some(&value(index)[..]));
                            if at % 50 == 7 {
                                let inner = keys((0..100).map(|at| (at * 17 + index) % KEYS));
                                let mut count = 0;
                                log.get_many(&inner, |_, bytes| {
                                    count += usize::from(bytes.is_some())
                                })
                                .unwrap_or_else(|error| assert_eq!(error, Error::WouldBlock));
                            }
                        })
                        .unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn a_panic_in_the_middle_of_a_batch_leaves_no_read_behind() {
    each_way(|_, log, _| {
        for at_panic in [0, 1, 63, 200] {
            let batch = || {
                let asked = log.get_many(&keys(0..300), |at, _| {
                    if at == at_panic {
                        std::panic::panic_any(at);
                    }
                });
                asked.unwrap();
            };
            let panicked = catch_unwind(AssertUnwindSafe(batch)).expect_err("it is thrown on");
            assert_eq!(panicked.downcast_ref(), Some(&at_panic));
            let mut next = 0;
            log.get_many(&keys(0..300), |_, bytes| {
                assert_eq!(bytes, Some(&value(next)[..]));
                next += 1;
            })
            .unwrap();
        }
    });
}

/// The log's files are damaged behind its back: cut short, or changed.
#[test]
fn damage_is_told_the_same_way() {
    type Damage = fn(&fs::File);
    let damages: [Damage; 3] = [
        |file| file.set_len(4096).expect("cut"),
        |file| file.set_len(4096 + 100).expect("cut within a block"),
        |file| {
            use std::os::unix::fs::FileExt as _;
            let bytes = file.metadata().expect("a length").len();
            for offset in (4096..bytes).step_by(512) {
                file.write_all_at(&[0xA5], offset + 33).expect("changed");
            }
        },
    ];
    for damage in damages {
        let mut told = Vec::new();
        for reads in ways() {
            let folder = tempfile::tempdir().expect("a folder");
            let log = open(COLDEST, folder.path(), reads);
            for index in 0..KEYS {
                log.put(&key(index), &value(index)).unwrap();
            }
            for entry in fs::read_dir(folder.path()).expect("a folder") {
                let path = entry.expect("a name").path();
                if path.extension().is_some_and(|it| it == "part") {
                    damage(&fs::File::options().read(true).write(true).open(path).expect("there"));
                }
            }
            let single = log.get(&key(3)).expect_err("it is damaged");
            let batch = log.get_many(&keys(3..90), |_, _| ()).expect_err("it is damaged");
            assert!(matches!(single, Error::Corrupt { .. }), "{single}");
            assert_eq!(single, batch, "{reads:?}");
            told.push(batch.to_string());
        }
        assert!(told.iter().all(|other| *other == told[0]), "{told:?}");
    }
}
