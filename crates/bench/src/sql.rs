//! Statements of SQL over a file and over tables, beside DuckDB, SQLite and polars.
//!
//! The flights as they are, and rows that are made up. From the file and stored, a process answers each question
//! and ends: its start is in the figure. Opened by a program (`library`), rows are looked up, changed and
//! asked for without one. Answers of all systems are compared.
//!
//! | module | holds |
//! |---|---|
//! | `workload` | what is asked, and where the rows lie |
//! | `rows` | the rows, as CSV |
//! | `systems` | the programs that are measured |
//! | `library` | systems that a program has open |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `targets` | the targets, and whether a run reached them |

mod library;
mod measure;
mod report;
mod rows;
mod systems;
mod targets;
mod workload;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::Error;
use crate::command::check_engines;
use crate::list::Names;
use crate::process;
use crate::report::tell;
use crate::sheet::SheetFlags;

pub use rows::Source;
pub use workload::Phase;

/// The number of rows that are made up, and of flights, at which the targets are judged.
const TARGET_ROWS: usize = 5_000_000;
const FLIGHTS: usize = 336_776;

/// What to do where the program is not found.
const NO_PROGRAM: &str = "there is no program sapwood beside this one: build it in the same \
                          profile (-p sapwood-cli), or name it with --program FILE";

/// The flag that asks for the peers.
const FLAG: &str = "--peers";

/// The least time that a question is asked again and again for.
const ASKED_AT_LEAST: Duration = Duration::from_millis(500);

/// Flags of `sapwood-bench sql`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Rows that are made up [default: 5000000]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    rows: Vec<usize>,

    /// Where rows come from [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    sets: Vec<Source>,

    /// Workloads to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    workloads: Vec<Phase>,

    /// Systems to run, by the names that the table shows [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Run DuckDB, SQLite and polars beside ours, where Python 3.10 or later and sqlite3 are installed:
    /// packages come from PyPI the first time
    #[arg(long)]
    peers: bool,

    /// The program `sapwood` whose processes answer [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Where files and tables lie meanwhile [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Interleaved runs of each figure
    #[arg(long, default_value_t = 3)]
    runs: usize,

    #[command(flatten)]
    sheet: SheetFlags,

    /// Finish in seconds: 5,000 rows of each set, 2 runs
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: 5,000,000 and 50,000,000 rows, 5 runs
    #[arg(long)]
    full: bool,
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    /// With how many rows.
    sources: Vec<(Source, usize)>,
    flights: PathBuf,
    phases: Vec<Phase>,
    engines: Vec<String>,
    peers: bool,
    program: PathBuf,
    dir: PathBuf,
    runs: usize,
    least: Duration,
    /// All cores: each system shares a question among them as it sees fit.
    threads: usize,
}

impl Args {
    fn plan(&self) -> Result<Plan, Error> {
        check_engines(&self.engines, &[&systems::OURS[..], &systems::PEERS].concat())?;
        let is_wanted = |name: &&&str| self.engines.iter().any(|wanted| wanted == **name);
        match systems::PEERS.iter().find(is_wanted) {
            Some(name) if !self.peers => {
                return Err(format!("{name} is not part of this program: add {FLAG}").into());
            }
            None if !self.peers => tell(format_args!("left out: the peers; run them with {FLAG}")),
            _ => {}
        }
        let (rows, flights, runs): (&[usize], _, _) = match (self.smoke, self.full) {
            (true, _) => (&[5_000], 5_000, 2),
            (_, true) => (&[TARGET_ROWS, 10 * TARGET_ROWS], usize::MAX, self.runs.max(5)),
            _ => (&[TARGET_ROWS], usize::MAX, self.runs),
        };
        let rows = if self.rows.is_empty() { rows } else { &self.rows };
        if rows.contains(&0) || runs == 0 {
            return Err("--rows and --runs are at least 1".into());
        }
        let sets = if self.sets.is_empty() { &Source::ALL[..] } else { &self.sets };
        let sources = sets.iter().flat_map(|&source| {
            let counts = match source {
                Source::Flights => vec![flights],
                Source::Generated => rows.to_vec(),
            };
            counts.into_iter().map(move |count| (source, count))
        });
        let phases = if self.workloads.is_empty() { &Phase::ALL[..] } else { &self.workloads };
        Ok(Plan {
            sources: sources.collect(),
            flights: PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../datasets/flights-2013.csv.zst"
            )),
            phases: phases.to_vec(),
            engines: self.engines.clone(),
            peers: self.peers,
            program: match &self.program {
                Some(program) => program.clone(),
                None => process::sapwood().ok_or(NO_PROGRAM)?,
            },
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
            runs,
            least: if self.smoke { Duration::ZERO } else { ASKED_AT_LEAST },
            threads: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        })
    }
}

/// The names of workloads and engines.
pub(crate) fn names() -> Names {
    Names::new(Phase::ALL.map(Phase::name), systems::OURS.into_iter().chain(systems::PEERS))
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, a program cannot run, answers do not agree, or `out` refuses what is written.
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
