//! A disk that does in the background what it was asked to, late and in any order: pages land out
//! of order, reads answer out of order, some of them fail, and nothing is lost.

use crate::adapter::{COLDEST, Configuration, ON_DISK, contents, key, value};
use crate::background::BackgroundDisk;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_disk::{Disk, Faults, SimDisk, Work, WriteFault};
use sapwood_hashlog::{ColdReads, Cut, Error, HashLog, Layout};
use sapwood_testkit::engine::Pair;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Enough pages in memory for several flights at once.
const ROOMY: Configuration = Configuration {
    page_bytes: 1 << 10,
    memory_budget: Some(128 << 10),
    mutable_share: 0.5,
    ..COLDEST
};

fn configurations() -> impl Iterator<Item = Configuration> {
    [
        ROOMY,
        Configuration { layout: Layout::Fixed8, cold_reads: ColdReads::Stay, ..ROOMY },
        Configuration { mutable_share: 0.0, ..ROOMY },
    ]
    .into_iter()
    .chain(ON_DISK)
}

/// A simulated disk whose works wait in a bag, out of which threads draw.
struct LateDisk {
    disk: Arc<dyn Disk>,
    bag: Arc<Bag>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Bag {
    works: Mutex<(Vec<Work>, bool)>,
    more: Condvar,
}

impl Bag {
    fn put(&self, works: Vec<Work>) {
        self.works.lock().unwrap().0.extend(works);
        self.more.notify_all();
    }

    fn serve(&self, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut works = self.works.lock().unwrap();
        loop {
            if works.0.is_empty() {
                if works.1 {
                    return;
                }
                works = self.more.wait(works).unwrap();
                continue;
            }
            let drawn = rng.random_range(0..works.0.len());
            let work = works.0.swap_remove(drawn);
            drop(works);
            for _ in 0..rng.random_range(0..8) {
                std::thread::yield_now();
            }
            work();
            works = self.works.lock().unwrap();
        }
    }
}

impl LateDisk {
    fn new(disk: &SimDisk, seed: u64) -> LateDisk {
        let bag = Arc::new(Bag::default());
        let threads = (0..3).map(|thread| {
            let bag = Arc::clone(&bag);
            std::thread::spawn(move || bag.serve(seed * 3 + thread))
        });
        let (threads, to) = (threads.collect(), Arc::clone(&bag));
        let disk = BackgroundDisk::over(disk, move |works| to.put(works));
        LateDisk { disk, bag, threads }
    }
}

impl Drop for LateDisk {
    fn drop(&mut self) {
        self.bag.works.lock().unwrap().1 = true;
        self.bag.more.notify_all();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn open(configuration: Configuration, late: &LateDisk) -> HashLog {
    HashLog::open(Arc::clone(&late.disk), configuration.options()).unwrap()
}

fn pairs(right: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<Pair> {
    right.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Changes the log and the map alike: mostly blindly, so that pages turn faster than they land.
fn change(log: &HashLog, right: &mut BTreeMap<Vec<u8>, Vec<u8>>, rng: &mut ChaCha8Rng) {
    // More of them than memory holds.
    let count = log.stats().budget_bytes.expect("it spills") / 15;
    let keys: Vec<[u8; 8]> = (0..count / 8).map(|_| key(rng.random_range(0..count))).collect();
    match rng.random_range(0..6) {
        0..=2 => {
            let entries: Vec<_> = keys.iter().map(|key| (*key, value(rng.random()))).collect();
            log.put_many(&entries).unwrap();
            right.extend(entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        }
        3 => {
            let change = |bytes: &mut [u8]| bytes[0] = bytes[0].wrapping_add(3);
            let found = log.update_many(&keys, |_, value| change(value)).unwrap();
            let mut expected = 0;
            for key in &keys {
                if let Some(value) = right.get_mut(&key[..]) {
                    change(value);
                    expected += 1;
                }
            }
            assert_eq!(found, expected);
        }
        4 => log
            .get_many(&keys, |at, value| assert_eq!(value, right.get(&keys[at][..]).map(|v| &**v)))
            .unwrap(),
        _ => {
            for key in &keys[..100] {
                assert_eq!(log.remove(key), Ok(right.remove(&key[..]).is_some()));
            }
        }
    }
}

#[test]
fn pages_that_land_out_of_order_and_reads_that_answer_so() {
    for (seed, configuration) in configurations().enumerate() {
        let sim = SimDisk::new();
        let disk = LateDisk::new(&sim, seed as u64);
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let mut right = BTreeMap::new();
        let mut log = open(configuration, &disk);
        for step in 0..40 {
            change(&log, &mut right, &mut rng);
            match step % 20 {
                7 => drop(log.compact(0.3).unwrap()),
                13 => {
                    log.checkpoint(if step < 20 { Cut::Full } else { Cut::Incremental }).unwrap();
                    // What the crash leaves is the checkpoint.
                    let crashed = configuration.open(&sim.crash(rng.random()));
                    assert_eq!(contents(&crashed), pairs(&right), "{configuration:?}");
                }
                17 => {
                    log.checkpoint(Cut::Incremental).unwrap();
                    let before = right.clone();
                    change(&log, &mut right, &mut rng);
                    // Pages are on their way when it goes, and the next one writes the same ones.
                    drop(log);
                    log = open(configuration, &disk);
                    right = before;
                }
                _ => {}
            }
            log.check().unwrap();
        }
        assert_eq!(contents(&log), pairs(&right), "{configuration:?}");
        let stats = log.stats();
        assert!(stats.head > 0 && stats.cold_reads > 0, "{stats:?}");
    }
}

/// A write that failed in the background is made again before a caller hears of it.
#[test]
fn single_writes_that_fail_are_made_again_unnoticed() {
    for (seed, configuration) in configurations().enumerate() {
        for fault in [WriteFault::Error(ErrorKind::Other), WriteFault::Torn(ErrorKind::Other)] {
            let sim = SimDisk::new();
            let disk = LateDisk::new(&sim, seed as u64);
            let log = open(configuration, &disk);
            let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
            let mut right = BTreeMap::new();
            for step in 0..20 {
                sim.set_faults(Faults::new().writes(step % 5..step % 5 + 1, fault));
                change(&log, &mut right, &mut rng);
                log.check().unwrap();
                sim.set_faults(Faults::new());
                log.checkpoint(Cut::Incremental).unwrap();
            }
            assert_eq!(contents(&log), pairs(&right), "{configuration:?}");
            assert_eq!(contents(&configuration.open(&sim.crash(1))), pairs(&right));
        }
    }
}

/// While no write succeeds, pages stay in memory, and a writer that needs another page is told why
/// there is none. What was answered is there, before and after.
#[test]
fn writes_that_keep_failing_reach_the_thread_that_needs_room() {
    for (seed, configuration) in configurations().enumerate() {
        let sim = SimDisk::new();
        let disk = LateDisk::new(&sim, seed as u64);
        let log = open(configuration, &disk);
        let mut right = BTreeMap::new();
        for index in 0..3_000 {
            log.put(&key(index), &value(index)).unwrap();
            right.insert(key(index).to_vec(), value(index).to_vec());
        }
        sim.set_faults(Faults::new().writes(.., WriteFault::Error(ErrorKind::TimedOut)));
        let mut told = None;
        for index in 3_000..60_000 {
            match log.put(&key(index), &value(index)) {
                Ok(()) => drop(right.insert(key(index).to_vec(), value(index).to_vec())),
                Err(error) => {
                    told = Some(error);
                    break;
                }
            }
        }
        let told = told.expect("memory ends");
        let Error::Io { kind: ErrorKind::TimedOut, .. } = &told else { panic!("{told:?}") };
        assert!(told.to_string().contains("write"), "{told}");
        log.check().unwrap();
        for index in (0..3_000).step_by(101) {
            assert_eq!(log.get(&key(index)), Ok(Some(value(index).to_vec())), "{configuration:?}");
        }
        assert!(log.checkpoint(Cut::Full).is_err());
        sim.set_faults(Faults::new());
        assert_eq!(contents(&log), pairs(&right), "{configuration:?}");
        log.put(&key(0), &value(7)).unwrap();
        right.insert(key(0).to_vec(), value(7).to_vec());
        log.checkpoint(Cut::Full).unwrap();
        assert_eq!(contents(&configuration.open(&sim.crash(2))), pairs(&right));
    }
}
