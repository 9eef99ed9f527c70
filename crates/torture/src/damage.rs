//! Damaged files: every stored file of a small database, with a bit flipped, cut, with a block of
//! zeros or noise, longer than it was, or missing. Each damaged copy is opened and read in a
//! process of its own. Right answers are right, and so are errors; wrong answers, panics, hangs and
//! much memory are not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use sapwood::Db;
use sapwood_testkit::Rng;

use crate::chains::look;
use crate::expected::Expected;
use crate::oracle::{Oracle, read_all};
use crate::report::{self, Outcome};
use crate::runs::{DatabaseFolder, Run, copy, last_words, spawn};
use crate::worker::Work;

/// The time that a reader may take: a hundred times what it does.
const SECONDS_MAX: u64 = 20;
/// Resident memory of a reader at most; the database has less than one.
const RESIDENT_MIB_MAX: u64 = 128;
/// The bytes that are zeroed or overwritten at a time.
const BLOCK_BYTES: usize = 4096;

/// Damages, each by its number.
#[derive(Debug, Clone)]
pub(crate) struct Damages {
    pub(crate) seed: u64,
    pub(crate) first: u64,
    pub(crate) count: usize,
    pub(crate) within: Option<PathBuf>,
}

/// A whole database and what it holds.
struct Whole {
    place: DatabaseFolder,
    expected: PathBuf,
    /// Relative to the database.
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Flip { bit: u64 },
    Cut { bytes: u64 },
    Zeros { block: u64 },
    Noise { block: u64 },
    Longer { bytes: u64 },
    Missing,
}

impl Damages {
    pub(crate) fn run(&self, jobs: usize) -> Result<(), String> {
        let whole = self.make_whole()?;
        report::run("damages", self.count, jobs, |at| {
            let mut outcome = Outcome::default();
            let number = self.first + at as u64;
            let repeat = format!("damage --seed {} --first {number} --count 1", self.seed);
            match DatabaseFolder::make(self.within.as_deref()) {
                Err(what) => outcome.fail(what, repeat, None),
                Ok(place) => match self.damage_one(&whole, &place, number, &mut outcome) {
                    Ok(()) => {}
                    Err(what) => outcome.fail(what, repeat, Some(place.leave())),
                },
            }
            outcome
        })
    }

    /// The same one for a seed: a worker that does all in order.
    fn make_whole(&self) -> Result<Whole, String> {
        let place = DatabaseFolder::make(self.within.as_deref())?;
        let work = Work {
            dir: place.database.clone(),
            // Odd: not closed, so that a checkpoint has no image of its own.
            seed: self.seed | 1,
            threads: 1,
            rounds: 3,
            in_order: true,
            removed: None,
            fail: None,
            lose: None,
            full: false,
            unlogged: false,
        };
        let mut oracle = Oracle::new(work.seed, work.threads);
        let run = Run::of(&work, None)?;
        oracle.hear(&run.messages)?;
        run.expect_ended()?;
        look(&mut oracle, &place)?;

        let mut expected = Expected::default();
        let db = Db::open(&place.database).map_err(|e| e.to_string())?;
        for name in db.table_names() {
            let table = db.hash_table(&name).map_err(|e| e.to_string())?;
            expected.add(&name, read_all(&table)?);
        }
        drop(db);
        let file = place.removed.join("expected");
        fs::write(&file, expected.to_text()).map_err(|e| e.to_string())?;
        let mut files = Vec::new();
        list(&place.database, Path::new(""), &mut files).map_err(|e| e.to_string())?;
        files.sort();
        Ok(Whole { place, expected: file, files })
    }

    fn damage_one(
        &self,
        whole: &Whole,
        place: &DatabaseFolder,
        number: u64,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        copy(&whole.place.database, &place.database).map_err(|e| e.to_string())?;
        let mut rng = sapwood_testkit::rng(self.seed.wrapping_mul(1_000_003) ^ number);
        let file = &whole.files[rng.random_range(0..whole.files.len())];
        let path = place.database.join(file);
        let mut bytes = fs::read(&path).map_err(|e| e.to_string())?;
        let kind = Kind::pick(&mut rng, bytes.len() as u64);
        let told = format!("{} of {} bytes, {kind:?}", file.display(), bytes.len());
        kind.apply(&mut bytes, &mut rng);
        match kind {
            Kind::Missing => fs::remove_file(&path),
            _ => fs::write(&path, &bytes),
        }
        .map_err(|e| e.to_string())?;
        let read = read_in_a_process(&place.database, &whole.expected);
        let read = read.map_err(|what| format!("{told}: {what}"))?;
        outcome.add(kind.name(), 1);
        match read.starts_with("refused") {
            true => outcome.add("refused, all or in part", 1),
            false => outcome.add("read in full", 1),
        }
        Ok(())
    }
}

impl Kind {
    fn pick(rng: &mut Rng, bytes: u64) -> Kind {
        let any = |rng: &mut Rng, limit: u64| rng.random_range(0..limit.max(1));
        let block = |rng: &mut Rng| any(rng, bytes.div_ceil(BLOCK_BYTES as u64));
        // Where a bit says something: at the beginning of a block more often than elsewhere.
        let near = |rng: &mut Rng| block(rng) * BLOCK_BYTES as u64 + any(rng, 96);
        match rng.random_range(0..20) {
            0..=6 => Kind::Flip { bit: 8 * near(rng) + any(rng, 8) },
            7..=11 => Kind::Flip { bit: 8 * any(rng, bytes) + any(rng, 8) },
            12..=13 => Kind::Cut { bytes: any(rng, bytes) },
            14 => Kind::Cut { bytes: block(rng) * BLOCK_BYTES as u64 },
            15..=16 => Kind::Zeros { block: block(rng) },
            17 => Kind::Noise { block: block(rng) },
            18 => Kind::Longer { bytes: 1 + any(rng, 3 * BLOCK_BYTES as u64) },
            _ => Kind::Missing,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Flip { .. } => "bits flipped",
            Kind::Cut { .. } => "files cut",
            Kind::Zeros { .. } => "blocks zeroed",
            Kind::Noise { .. } => "blocks of noise",
            Kind::Longer { .. } => "files made longer",
            Kind::Missing => "files missing",
        }
    }

    fn apply(self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        let block_of = |block: u64, bytes: &Vec<u8>| {
            let begin = (block as usize * BLOCK_BYTES).min(bytes.len());
            begin..(begin + BLOCK_BYTES).min(bytes.len())
        };
        match self {
            Kind::Flip { bit } => {
                if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Kind::Cut { bytes: left } => bytes.truncate(left as usize),
            Kind::Zeros { block } => {
                let range = block_of(block, bytes);
                bytes[range].fill(0);
            }
            Kind::Noise { block } => {
                let range = block_of(block, bytes);
                bytes[range].iter_mut().for_each(|byte| *byte = rng.random());
            }
            Kind::Longer { bytes: more } => {
                bytes.extend((0..more).map(|_| rng.random::<u8>()));
            }
            Kind::Missing => {}
        }
    }
}

/// Files with data, below a folder.
fn list(root: &Path, within: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(within))? {
        let entry = entry?;
        let path = within.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(root, &path, files)?;
        } else if entry.metadata()?.len() > 0 {
            files.push(path);
        }
    }
    Ok(())
}

/// The first line of what a reader says, or what is wrong about it.
fn read_in_a_process(database: &Path, expected: &Path) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg("read").arg("--dir").arg(database).arg("--expected").arg(expected);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(&mut command)?;
    let limit = Instant::now() + Duration::from_secs(SECONDS_MAX);
    // What it says fits into a pipe.
    while child.try_wait().map_err(|e| e.to_string())?.is_none() {
        if Instant::now() > limit {
            // It may end by itself after all.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("reading it hangs: no end after {SECONDS_MAX} s"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        let words = last_words(&format!("{said}\n{errors}"));
        return Err(format!("the reader ended with {}: {words}", output.status));
    }
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

/// Resident memory of this process at most, so far.
pub(crate) fn expect_little_memory() -> Result<(), String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak
        .and_then(|peak| peak.split_whitespace().next()?.parse().ok())
        .ok_or("the system does not say how much memory this process has")?;
    match kib >> 10 {
        mib if mib > RESIDENT_MIB_MAX => {
            Err(format!("{mib} MiB of memory for a database of less than one"))
        }
        _ => Ok(()),
    }
}
