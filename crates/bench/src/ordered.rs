//! The speed and size of the ordered engine beside its peers.
//!
//! Oak's evaluation: half of a range of keys is loaded in random order by one thread with
//! put_if_absent, then every workload runs on 1 to all cores. In each round the engines take turns,
//! with the same planned operations; after each run, untimed, written values are checked and the
//! map is put back, so that every run finds the same half of the range. Every byte that a
//! workload reads is summed, and sums are compared with what the keys and values must give.
//!
//! | module | holds |
//! |---|---|
//! | `space` | the keys and values, and their sums |
//! | `workload` | the timed operations, and their keys |
//! | `load` | loading, outside the rounds |
//! | `in_process` | a job on an engine of this process |
//! | `contenders` | the engines |
//! | `baseline` | the hardware's lower bound: the same bytes without a map |
//! | `jvm` | engines of a JVM |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `targets` | the targets, and whether a run reached them |

mod arena;
mod baseline;
mod contenders;
mod in_process;
mod jvm;
mod load;
mod measure;
mod report;
mod space;
mod targets;
mod workload;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;

pub use crate::clock::Clock;
pub use space::KeyShape;

use crate::Error;
use crate::command::{check_engines, thread_counts};
use crate::list::Names;
use crate::sheet::SheetFlags;
use space::{Data, Space};
use workload::Workload;

/// The number of entries at which the targets are judged.
const TARGET_ENTRIES: usize = 1_000_000;
/// Least time of a run where targets are judged: shorter ones tell of the machine's other work.
const LEAST_MS_FULL: u64 = 500;

/// Flags of `sapwood-bench ordered`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Entries loaded: half of the range that keys are drawn from [default: 200000]
    #[arg(long, value_name = "N")]
    entries: Option<usize>,

    /// What keys and values are [default: generated]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "DATA")]
    data: Vec<DataChoice>,

    /// Bytes of a generated key
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    key_bytes: usize,

    /// Bytes of a generated value
    #[arg(long, default_value_t = 1000, value_name = "BYTES")]
    value_bytes: usize,

    /// Where a generated key keeps its number
    #[arg(long, value_enum, default_value_t = KeyShape::Integer)]
    key_shape: KeyShape,

    /// Engines to run, by the names that the table shows [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Workloads to run, by the names that the table shows [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    workloads: Vec<String>,

    /// Threads [default: 1, 2, 4 ... and all cores]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    threads: Vec<usize>,

    /// Interleaved runs of each figure
    #[arg(long, default_value_t = 5)]
    runs: usize,

    /// Point operations, and short scans, of each thread in a run [default: a quarter of the entries]
    #[arg(long)]
    ops: Option<usize>,

    /// Long scans of each thread in a run [default: 100]; scans of keys alone run 5 times as many
    #[arg(long)]
    scans: Option<usize>,

    /// Leave out the pass that times single operations
    #[arg(long)]
    no_latencies: bool,

    /// Run the JVM's maps beside ours: needs a JDK 17 or later and Maven
    #[arg(long)]
    jvm: bool,

    /// What runs are timed by
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    clock: Clock,

    #[command(flatten)]
    sheet: SheetFlags,

    /// Least time of a run of the first engine: more operations are planned where fewer are done earlier [default: 0;
    /// 500 with --full]
    #[arg(long, value_name = "MS")]
    least_ms: Option<u64>,

    /// Finish in seconds: 2,000 entries of every data, 2 runs
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: 1,000,000 entries, every data
    #[arg(long)]
    full: bool,
}

/// Which keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DataChoice {
    /// Generated keys and values of --key-bytes and --value-bytes
    Generated,
    /// Generated keys and values of 8 bytes each
    Small,
    /// Half of the 336,776 flights that left New York in 2013
    Flights,
    /// Generated keys that are equal for 72 bytes in their middle, and values of 100 bytes
    Middle,
    /// Generated keys of 1 KB that are equal but for 8 bytes in front and the last one, and values of 100 bytes
    Long,
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    data: Vec<Data>,
    entries: usize,
    engines: Vec<String>,
    workloads: Vec<Workload>,
    threads: Vec<usize>,
    runs: usize,
    ops: usize,
    scans: usize,
    latencies: bool,
    /// Least time of a run of the first engine.
    least: Duration,
    jvm: bool,
    clock: Clock,
    flights: PathBuf,
}

impl Args {
    fn plan(&self) -> Result<Plan, Error> {
        let entries = self.entries.unwrap_or(match (self.smoke, self.full) {
            (true, _) => 2_000,
            (_, true) => TARGET_ENTRIES,
            _ => 200_000,
        });
        let mut choices = self.data.clone();
        if choices.is_empty() {
            choices = if self.smoke || self.full {
                DataChoice::value_variants().to_vec()
            } else {
                vec![DataChoice::Generated]
            };
        }
        let generated =
            |key_bytes, value_bytes, shape| Data::Generated { key_bytes, value_bytes, shape };
        let data = choices
            .into_iter()
            .map(|choice| match choice {
                DataChoice::Generated => {
                    generated(self.key_bytes, self.value_bytes, self.key_shape)
                }
                DataChoice::Small => space::SMALL,
                DataChoice::Flights => Data::Flights,
                DataChoice::Middle => space::MIDDLE,
                DataChoice::Long => generated(1024, 100, KeyShape::Middle),
            })
            .collect();
        let workloads = if self.workloads.is_empty() {
            Workload::TIMED.to_vec()
        } else {
            self.workloads.iter().map(|name| workload_named(name)).collect::<Result<_, _>>()?
        };
        let engines = self.engines.clone();
        check_engines(&engines, &measure::engine_names().collect::<Vec<_>>())?;
        if let Some(name) = engines.iter().find(|name| jvm::ENGINES.contains(&name.as_str()))
            && !self.jvm
        {
            return Err(format!("{name} runs in a JVM: add --jvm").into());
        }
        if self.runs == 0 || self.threads.contains(&0) {
            return Err("--runs and --threads are at least 1".into());
        }
        Ok(Plan {
            data,
            entries,
            engines,
            workloads,
            threads: if self.threads.is_empty() { thread_counts() } else { self.threads.clone() },
            runs: if self.smoke { 2 } else { self.runs },
            ops: self.ops.unwrap_or(entries / 4).max(1),
            scans: self.scans.unwrap_or(if self.smoke { 3 } else { 100 }).max(1),
            latencies: !self.no_latencies,
            least: Duration::from_millis(self.least_ms.unwrap_or(if self.full {
                LEAST_MS_FULL
            } else {
                0
            })),
            jvm: self.jvm,
            clock: self.clock,
            flights: PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../datasets/flights-2013.csv.zst"
            )),
        })
    }
}

fn workload_named(name: &str) -> Result<Workload, Error> {
    Workload::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Workload::TIMED.iter().map(|workload| workload.name()).collect();
        format!("no workload is called {name}: choose from {}", known.join(", ")).into()
    })
}

/// The names of workloads and engines.
pub(crate) fn names() -> Names {
    Names::new(Workload::TIMED.map(Workload::name), measure::engine_names())
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, the flights are missing, a JVM was asked for and cannot run,
/// our engine answered wrongly, or `out` refuses what is written.
pub fn run_to(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let plan = args.plan()?;
    let mut sheet = args.sheet.open(out)?;
    let mut all = Vec::new();
    for (place, &data) in plan.data.iter().enumerate() {
        let space = Arc::new(Space::new(data, plan.entries, &plan.flights)?);
        let heap = if place == 0 { measure::Heap::Fresh } else { measure::Heap::Used };
        let figures = measure::measure(&plan, &space, heap)?;
        sheet.print(
            |out| report::print_json(out, &figures),
            |out| report::print_tables(out, &figures),
        )?;
        all.push(figures);
    }
    sheet.end(|out| all.iter().try_for_each(|figures| targets::print(out, figures)))
}
