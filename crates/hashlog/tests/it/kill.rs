//! `kill -9` at any moment, over and over: a real process on a real folder comes back to the last
//! checkpoint that it told of, or the one it was taking.

use crate::adapter::{
    COLDEST, Configuration, KEPT_SHORT, ON_DISK, contents, key, number_of_environment, value,
};
use rand::RngExt as _;
use sapwood_disk::FileDisk;
use sapwood_hashlog::{Cut, HashLog};
use sapwood_testkit::case;
use sapwood_testkit::engine::Pair;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Names the folder of a child, and so that a process is one.
const FOLDER: &str = "SAPWOOD_KILL_FOLDER";
/// Which configuration it opens.
const CONFIGURATION: &str = "SAPWOOD_KILL_CONFIGURATION";
/// Comes before the number of each round that is checkpointed.
const TOLD: &str = "checkpointed round ";

const CONFIGURATIONS: [Configuration; 4] = [COLDEST, KEPT_SHORT[2], ON_DISK[4], KEPT_SHORT[1]];
const KEYS: u64 = 3_000;
const STEPS: u64 = 400;

fn open(configuration: Configuration, folder: &Path) -> HashLog {
    let disk = FileDisk::open(folder).expect("no other process has the folder by now");
    HashLog::open(Arc::new(disk), configuration.options()).expect("a log that opens")
}

/// Counts rounds; no round changes it otherwise.
fn round_key() -> [u8; 8] {
    key(u64::MAX / 3)
}

/// What a step does to its key.
#[derive(Clone, Copy)]
enum Change {
    Put(u64),
    Add(i64),
    Remove,
}

/// The changes of a round, the same in every process.
fn changes(round: u64) -> impl Iterator<Item = ([u8; 8], Change)> {
    (0..STEPS).map(move |step| {
        let dice = (round * STEPS + step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let change = match dice % 8 {
            0 => Change::Remove,
            1..4 => Change::Add((dice % 100) as i64),
            _ => Change::Put(round),
        };
        (key(dice / 8 % KEYS), change)
    })
}

/// What is in the log after `round`.
fn model(round: u64) -> Vec<Pair> {
    let mut model: BTreeMap<[u8; 8], u64> = BTreeMap::new();
    for round in 1..=round {
        for (key, change) in changes(round) {
            match change {
                Change::Put(value) => drop(model.insert(key, value)),
                Change::Add(delta) => *model.entry(key).or_insert(0) += delta as u64,
                Change::Remove => drop(model.remove(&key)),
            }
        }
        model.insert(round_key(), round);
    }
    model.into_iter().map(|(key, count)| (key.to_vec(), value(count).to_vec())).collect()
}

/// The other end: runs in a child alone, until it is killed.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let configuration = CONFIGURATIONS[number_of_environment(CONFIGURATION, 0) as usize];
    let log = open(configuration, Path::new(&folder));
    loop {
        let round = log.add(&round_key(), 1).unwrap() as u64;
        for (key, change) in changes(round) {
            match change {
                Change::Put(count) => log.put(&key, &value(count)).unwrap(),
                Change::Add(delta) => drop(log.add(&key, delta).unwrap()),
                Change::Remove => drop(log.remove(&key).unwrap()),
            }
        }
        log.checkpoint(if round.is_multiple_of(4) { Cut::Full } else { Cut::Incremental }).unwrap();
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{TOLD}{round}").and_then(|()| stdout.flush()).expect("a parent");
        if round.is_multiple_of(5) {
            log.compact(0.4).unwrap();
        }
    }
}

fn start(folder: &Path, configuration: usize) -> Child {
    let program = std::env::current_exe().expect("a test knows its program");
    Command::new(program)
        .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(CONFIGURATION, configuration.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a test program runs")
}

/// Lets a child tell of a few rounds, kills it a little later, and says of which it told last.
fn kill_one(folder: &Path, configuration: usize, rng: &mut sapwood_testkit::Rng) -> Option<u64> {
    let mut child = start(folder, configuration);
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut told = None;
    let mut more = rng.random_range(0..4);
    // The harness has begun the first line with the name of the test.
    let round = |line: &str| line.split_once(TOLD)?.1.parse::<u64>().ok();
    let mut lines = stdout.lines().map(|line| line.expect("lines of text"));
    while more > 0 {
        let line = lines.next().expect("a child runs until it is killed");
        if let Some(round) = round(&line) {
            told = Some(round);
            more -= 1;
        }
    }
    // Any moment will do: which one it is decides what is tested, not whether the test passes.
    std::thread::sleep(Duration::from_micros(rng.random_range(0..20_000)));
    child.kill().expect("a child that runs");
    let told = lines.filter_map(|line| round(&line)).last().or(told);
    child.wait().expect("a child that was killed");
    told
}

/// What a log holds that it should not, and lacks that it should; a few of each.
fn difference(held: &[Pair], right: &[Pair]) -> String {
    let missing = |these: &[Pair], those: &[Pair]| -> Vec<Pair> {
        let those: BTreeSet<&Pair> = those.iter().collect();
        these.iter().filter(|pair| !those.contains(pair)).cloned().collect()
    };
    let (more, less) = (missing(held, right), missing(right, held));
    match more.len() + less.len() {
        0 => String::new(),
        _ => format!(
            "{} wrong pairs, {} right ones missing: {:?}, {:?}",
            more.len(),
            less.len(),
            &more[..more.len().min(4)],
            &less[..less.len().min(4)]
        ),
    }
}

/// `KILLS=n` kills n times.
#[test]
fn a_killed_process_comes_back_to_its_last_checkpoint() {
    const EACH: u64 = 4;
    let kills = number_of_environment("KILLS", 16);
    case!().hangs_after(Duration::from_secs(600 + kills)).seeds(kills.div_ceil(EACH), |seed| {
        let configuration = seed as usize % CONFIGURATIONS.len();
        let folder = tempfile::tempdir().expect("a folder");
        let mut rng = sapwood_testkit::rng(seed);
        let mut least = 0;
        for kill in 0..EACH {
            let told = kill_one(folder.path(), configuration, &mut rng);
            least = told.unwrap_or(least);
            let log = open(CONFIGURATIONS[configuration], folder.path());
            log.check().unwrap();
            let counter = log.get(&round_key()).unwrap();
            let round = counter.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
            // The child may have taken one more without having told of it.
            assert!(
                (least..=least + 1).contains(&round),
                "kill {kill}: told of round {least}, came back to {round}"
            );
            let differs = difference(&contents(&log), &model(round));
            assert_eq!(differs, "", "kill {kill}: not what round {round} left");
            least = round;
        }
    });
}
