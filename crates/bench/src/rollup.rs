//! The speed and size of roll-ups beside Druid's incremental index and a roll-up in a hash map.
//!
//! Rows of a synthetic stream (a time, five dimensions of texts with 10,000 combinations, a whole number
//! and a float) are folded into facts with five metrics, by time truncated to a granularity: as columns,
//! and as JSON lines with their parsing. Then the facts are asked. In each round the engines take turns;
//! the totals of every engine are compared with those of the rows.
//!
//! | module | holds |
//! |---|---|
//! | `workload` | the stream, and what is timed |
//! | `contenders` | our index, and the map that a program would write |
//! | `druid` | Druid's index, in a JVM |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `targets` | the targets, and whether a run reached them |

mod contenders;
mod druid;
mod measure;
mod report;
mod targets;
mod workload;

use std::io::Write;

pub use workload::{Granule, Phase};

use crate::Error;
use crate::command::{check_engines, command, thread_counts};

/// The number of rows at which the targets are judged.
const TARGET_ROWS: usize = 1_000_000;

/// Flags of `sapwood bench rollup`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Rows of the stream [default: 1000000]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,

    /// Rows that come in together
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    batch: usize,

    /// To what times are truncated [default: all of them]
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

    /// Interleaved runs of each figure
    #[arg(long, default_value_t = 3)]
    runs: usize,

    /// Print one JSON object a line instead of tables
    #[arg(long)]
    json: bool,

    /// Finish in seconds: 20,000 rows, 2 runs
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
    batch: usize,
    granules: Vec<Granule>,
    phases: Vec<Phase>,
    threads: Vec<usize>,
    engines: Vec<String>,
    druid: bool,
    runs: usize,
}

impl Args {
    fn plan(&self) -> Result<Plan, Error> {
        let names = [&contenders::NAMES[..], &[druid::NAME]].concat();
        check_engines(&self.engines, &names)?;
        if !self.druid && self.engines.iter().any(|name| name == druid::NAME) {
            return Err(format!("{} runs in a JVM: add --druid", druid::NAME).into());
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
        Ok(Plan {
            rows,
            batch: self.batch,
            granules: all_or(&self.granularity, &Granule::ALL),
            phases: all_or(&self.workloads, &Phase::ALL),
            threads: all_or(&self.threads, &thread_counts()),
            engines: self.engines.clone(),
            druid: self.druid,
            runs,
        })
    }
}

/// Measures and prints to standard output; progress goes to standard error.
///
/// # Errors
///
/// As of [`run_to`].
pub fn run(args: &Args) -> Result<(), Error> {
    run_to(args, &mut std::io::stdout().lock())
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, our engine answered wrongly, or `out` refuses what is written.
pub fn run_to(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let plan = args.plan()?;
    let figures = measure::measure(&plan)?;
    if args.json {
        return Ok(report::print_json(out, &figures)?);
    }
    report::print_tables(out, &figures)?;
    targets::print(out, &figures)?;
    Ok(writeln!(out, "\nRepeat with: {}", command())?)
}
