//! The speed and size of roll-ups beside Druid's incremental index, DuckDB, DataFusion, and a roll-up in a hash map.
//!
//! Rows of a synthetic stream (a time, five dimensions of texts with 10,000 combinations, a whole number
//! and a float), of the flights that left New York in 2013, and of a day of Wikipedia's edits are folded into facts
//! with five metrics, by time truncated to a granularity: as columns, and as JSON lines with their parsing. Then the
//! facts are asked, live ones and those in segments. In each round the engines take turns;
//! the totals of every engine are compared with those of the rows.
//!
//! | module | holds |
//! |---|---|
//! | `workload` | what is timed |
//! | `sets`, `stream` | rows, and what is right to answer about them |
//! | `engines` | what each engine does; those of this process |
//! | `ours`, `hash_map` | our index, and the map that a program would write |
//! | `druid` | Druid's index, in a JVM |
//! | `frames` | DuckDB and DataFusion, in Python |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `targets` | the targets, and whether a run reached them |

mod druid;
mod engines;
mod frames;
mod hash_map;
mod measure;
mod ours;
mod report;
mod sets;
mod stream;
mod targets;
mod workload;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

pub use sets::{Granule, Source};
pub use workload::Phase;

use crate::Error;
use crate::command::{check_engines, thread_counts};
use crate::list::Names;
use crate::report::tell;
use crate::sheet::SheetFlags;

/// The number of rows at which the targets are judged.
const TARGET_ROWS: usize = 1_000_000;

/// A question is asked again until this has passed.
const ASKED_AT_LEAST: Duration = Duration::from_millis(200);

/// Flags of `sapwood-bench rollup`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Rows of the synthetic stream [default: 1000000]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,

    /// Rows that come in together
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    batch: usize,

    /// Where rows come from [default: all, and wikiticker where it is given]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    sets: Vec<Source>,

    /// Wikipedia's edits as JSON lines, such as wikiticker-2015-09-12-sampled.json.gz of Druid
    #[arg(long, value_name = "FILE")]
    wikiticker: Option<PathBuf>,

    /// To what times of the synthetic stream are truncated [default: all of them]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    granularity: Vec<Granule>,

    /// Workloads to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    workloads: Vec<Phase>,

    /// Threads [default: 1, 2, 4 ... and all cores]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    threads: Vec<usize>,

    /// Engines to run, by the names that the table shows [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Run Druid's incremental index beside ours, where a JDK and Maven are installed
    #[arg(long)]
    druid: bool,

    /// Run DuckDB and DataFusion beside ours, where Python 3.10 or later is installed: packages come from
    /// PyPI the first time
    #[arg(long)]
    frames: bool,

    /// Where segments, Parquet and rows for other programs lie meanwhile [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Interleaved runs of each figure
    #[arg(long, default_value_t = 3)]
    runs: usize,

    #[command(flatten)]
    sheet: SheetFlags,

    /// Finish in seconds: 20,000 rows of each set, 2 runs
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: 5,000,000 rows, 5 runs
    #[arg(long)]
    full: bool,
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    rows: usize,
    /// Of a set that is read.
    rows_most: usize,
    batch: usize,
    sources: Vec<Source>,
    flights: PathBuf,
    wikiticker: Option<PathBuf>,
    granules: Vec<Granule>,
    phases: Vec<Phase>,
    threads: Vec<usize>,
    engines: Vec<String>,
    druid: bool,
    frames: bool,
    dir: PathBuf,
    runs: usize,
    asked_at_least: Duration,
}

impl Args {
    fn plan(&self) -> Result<Plan, Error> {
        let names = [&[ours::OURS, engines::HASH_MAP, druid::DRUID], &frames::NAMES[..]].concat();
        check_engines(&self.engines, &names)?;
        let is_wanted = |name: &&&str| self.engines.iter().any(|wanted| wanted == **name);
        if let Some(name) = [druid::DRUID].iter().find(is_wanted).filter(|_| !self.druid) {
            return Err(format!("{name} runs in a JVM: add --druid").into());
        }
        if let Some(name) = frames::NAMES.iter().find(is_wanted).filter(|_| !self.frames) {
            return Err(format!("{name} runs in Python: add --frames").into());
        }
        let (rows, runs) = match (self.smoke, self.full) {
            (true, _) => (20_000, 2),
            (_, true) => (5 * TARGET_ROWS, self.runs.max(5)),
            _ => (TARGET_ROWS, self.runs),
        };
        let rows = self.rows.unwrap_or(rows);
        if rows == 0 || self.batch == 0 || runs == 0 || self.threads.contains(&0) {
            return Err("--rows, --batch, --threads and --runs are at least 1".into());
        }
        fn all_or<T: Copy>(wanted: &[T], all: &[T]) -> Vec<T> {
            if wanted.is_empty() { all.to_vec() } else { wanted.to_vec() }
        }
        let mut sources = all_or(&self.sets, &Source::ALL);
        if self.wikiticker.is_none() && sources.contains(&Source::Wikiticker) {
            if self.sets.contains(&Source::Wikiticker) {
                return Err("the edits are not part of this repository: say with --wikiticker FILE where they are".into());
            }
            tell("left out: wikiticker; say with --wikiticker FILE where the edits are");
            sources.retain(|source| *source != Source::Wikiticker);
        }
        for (asked, name) in [(self.druid, "druid"), (self.frames, "frames")] {
            if !asked && self.engines.is_empty() {
                tell(format_args!("left out: {name}; run it with --{name}"));
            }
        }
        Ok(Plan {
            rows,
            rows_most: if self.smoke { rows } else { usize::MAX },
            sources,
            flights: PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../datasets/flights-2013.csv.zst"
            )),
            wikiticker: self.wikiticker.clone(),
            batch: self.batch,
            granules: all_or(&self.granularity, &Granule::ALL),
            phases: all_or(&self.workloads, &Phase::ALL),
            threads: all_or(&self.threads, &thread_counts()),
            engines: self.engines.clone(),
            druid: self.druid,
            frames: self.frames,
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
            runs,
            asked_at_least: if self.smoke { Duration::ZERO } else { ASKED_AT_LEAST },
        })
    }
}

/// The names of workloads and engines.
pub(crate) fn names() -> Names {
    Names::new(
        Phase::ALL.map(Phase::name),
        [ours::OURS, engines::HASH_MAP, druid::DRUID].into_iter().chain(frames::NAMES),
    )
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, a program of a peer cannot run, an engine answered wrongly, or `out` refuses what is written.
pub fn run_to(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let plan = args.plan()?;
    let mut sheet = args.sheet.open(out)?;
    let figures = measure::measure(&plan)?;
    sheet.print(
        |out| report::print_json(out, &figures),
        |out| report::print_tables(out, &figures),
    )?;
    sheet.end(|out| targets::print(out, &figures))
}
