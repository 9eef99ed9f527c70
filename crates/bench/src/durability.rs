//! What it costs that ordered and hash tables last, and how long opening them takes.
//!
//! *Levels*: writers put to keys that are there, in place, while changes are to outlive nothing, the
//! process, power loss soon, or power loss at once; Redis beside it, over loopback, and embedded
//! stores at equal durability. *Checkpoints*: single puts while one is written, and while none is.
//! *Recovery*: opening what was closed, and what ended; Redis beside it. *Log bytes*: of a change.
//! Contenders take turns in each round. Every run checks the values that it leaves.
//!
//! Engines outside this workspace run the same workloads through [`Store`] and [`run_with`].
//!
//! | module | holds |
//! |---|---|
//! | `workload` | the timed operations; keys and values |
//! | `store` | the interface of an engine |
//! | `ours` | ordered and hash tables of a database |
//! | `peers` | engines of this process that are light to build |
//! | `redis` | Redis, in a process of its own |
//! | `floor` | what the disk does by itself |
//! | `writers` | threads that put for a while |
//! | `levels` | rates of puts at each level |
//! | `checkpoints` | single puts beside a checkpoint |
//! | `recovery` | opening what was closed, and what ended |
//! | `log_bytes` | bytes of the log for a change |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `targets` | the targets, and whether a run reached them |

mod checkpoints;
mod floor;
mod levels;
mod log_bytes;
mod measure;
mod ours;
mod peers;
mod recovery;
mod redis;
mod report;
mod store;
mod targets;
mod workload;
mod writers;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

pub use store::{Engine, Place, Store};
pub use workload::{Data, Level};

use crate::Error;
use crate::command::check_engines;
use crate::list::Names;
use crate::sheet::SheetFlags;

/// The numbers of entries at which targets of recovery and of checkpoints are judged.
const TARGET_RECOVERED: u32 = 10_000_000;
const TARGET_CHECKPOINTED: u32 = 1_000_000;
/// The same of levels: the shortest run.
const TARGET_SECONDS: f64 = 0.5;

/// Flags of `sapwood-bench durability`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    part: Vec<Part>,

    /// Keys that are put to, of 8-byte values; of 1 KB values a tenth of them [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=99_999_999))]
    keys: Option<u32>,

    /// What changes outlive [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LEVELS")]
    levels: Vec<Level>,

    /// Keys and values
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SIZES")]
    data: Vec<Data>,

    /// Writers, and connections of Redis
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", default_values_t = [1, 8, 50])]
    writers: Vec<usize>,

    /// Entries of the table that checkpoints are written of [default: 200000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99_999_999))]
    checkpointed: Option<u32>,

    /// Entries that are recovered [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99_999_999))]
    recovered: Option<u32>,

    /// Engines to run, by the names that the table shows [default: those that are installed]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Interleaved runs of each figure
    #[arg(long, default_value_t = 3)]
    runs: usize,

    /// Seconds of a run [default: 0.6]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,

    /// A folder on the disk to measure: fresh ones inside it are used and removed [default: the
    /// system's temporary folder]
    #[arg(long)]
    dir: Option<PathBuf>,

    #[command(flatten)]
    sheet: SheetFlags,

    /// Finish in seconds: 2,000 keys, 10,000 recovered entries, 2 runs of a hundredth of a second
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: 10,000,000 recovered entries, 1,000,000 under a checkpoint, 5 runs
    #[arg(long)]
    full: bool,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Rates of puts at each level
    Levels,
    /// Single puts while a checkpoint is written, and while none is
    Checkpoints,
    /// Opening what was closed, and what ended
    Recovery,
    /// Bytes of the log for a change
    LogBytes,
}

impl Part {
    const ALL: [Part; 4] = [Part::Levels, Part::Checkpoints, Part::Recovery, Part::LogBytes];
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    parts: Vec<Part>,
    keys: u32,
    levels: Vec<Level>,
    data: Vec<Data>,
    writers: Vec<usize>,
    checkpointed: u32,
    recovered: u32,
    engines: Vec<String>,
    runs: usize,
    time: Duration,
    dir: PathBuf,
}

impl Args {
    fn plan(&self, known: &[Engine]) -> Result<Plan, Error> {
        let names: Vec<&str> =
            known.iter().map(|engine| engine.name).chain([redis::NAME, floor::NAME]).collect();
        check_engines(&self.engines, &names)?;
        let sized = |smoke, usual, full| match (self.smoke, self.full) {
            (true, _) => smoke,
            (_, true) => full,
            _ => usual,
        };
        let seconds = self.seconds.unwrap_or(if self.smoke { 0.01 } else { 0.6 });
        if self.runs == 0 || self.writers.contains(&0) || seconds.is_nan() || seconds <= 0.0 {
            return Err("--runs and --writers are at least 1, --seconds above 0".into());
        }
        Ok(Plan {
            parts: chosen(&self.part, &Part::ALL),
            keys: self.keys.unwrap_or(sized(2_000, 1_000_000, 1_000_000)),
            levels: chosen(&self.levels, &Level::ALL),
            data: chosen(&self.data, &Data::ALL),
            writers: self.writers.clone(),
            checkpointed: self.checkpointed.unwrap_or(sized(2_000, 200_000, TARGET_CHECKPOINTED)),
            recovered: self.recovered.unwrap_or(sized(10_000, 1_000_000, TARGET_RECOVERED)),
            engines: self.engines.clone(),
            runs: match (self.smoke, self.full) {
                (true, _) => self.runs.min(2),
                (_, true) => self.runs.max(5),
                _ => self.runs,
            },
            time: Duration::from_secs_f64(seconds),
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
        })
    }
}

/// Those that were named, or all.
fn chosen<T: Copy>(named: &[T], all: &[T]) -> Vec<T> {
    if named.is_empty() { all } else { named }.to_vec()
}

impl Plan {
    fn takes(&self, name: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|wanted| wanted == name)
    }

    fn keys(&self, data: Data) -> u32 {
        match data {
            Data::Small => self.keys,
            Data::Large => self.keys / 10,
        }
    }
}

/// The engines of this workspace: ours, then peers.
pub fn engines() -> Vec<Engine> {
    let ours = ours::ENGINES.iter().copied();
    let ours = ours.chain(peers::ENGINES);
    ours.collect()
}

/// The names of workloads and engines.
pub(crate) fn names() -> Names {
    Names::new(
        Level::ALL.map(Level::name),
        engines().iter().map(|engine| engine.name).chain([redis::NAME, floor::NAME]),
    )
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// As of [`run_with`].
pub fn run_to(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    run_with(args, &engines(), out)
}

/// Measures `engines` and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, the folder cannot be used, our engine answered wrongly, or
/// `out` refuses what is written.
pub fn run_with(args: &Args, engines: &[Engine], out: &mut dyn Write) -> Result<(), Error> {
    let plan = args.plan(engines)?;
    let mut sheet = args.sheet.open(out)?;
    let figures = measure::measure(&plan, engines)?;
    sheet.print(
        |out| report::print_json(out, &figures),
        |out| report::print_tables(out, &figures),
    )?;
    sheet.end(|out| targets::print(out, &figures))
}
