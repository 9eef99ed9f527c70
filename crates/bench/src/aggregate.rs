//! The speed of aggregation and disaggregation over many objects, by each executor.
//!
//! RAMCloud's tables ("Data Operations"): a table of one integer an object, of which all, a tenth
//! or a two-hundredth are summed. Keys and integers have 8 bytes and were put in a random order.
//! Every executor of a hash table and of an ordered one answers, forced and chosen by the planner,
//! and the baseline, a plain loop over the same bytes, takes its turns in the same rounds. A rate
//! counts the objects that were selected. Every answer of every round is compared with the right
//! one; that holds beside a writer too, and what that costs is shown.
//!
//! | module | holds |
//! |---|---|
//! | `objects` | the objects, their places and their sums |
//! | `workload` | the queries and their selections |
//! | `contenders` | the tables, by each executor |
//! | `baseline` | the hardware's lower bound: the same bytes without a table |
//! | `disaggregate` | disaggregation: a total is spread over the objects |
//! | `writers` | exact sums beside a writer |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `references` | published rates |
//! | `targets` | the targets, and whether a run reached them |

mod baseline;
mod contenders;
mod disaggregate;
mod measure;
mod objects;
mod references;
mod report;
mod targets;
mod workload;
mod writers;

use std::io::Write;
use std::time::Duration;

use crate::Error;
use crate::command::{check_engines, thread_counts};
use crate::list::Names;
use crate::sheet::SheetFlags;
use contenders::{TableKind, WAYS};
use workload::Pick;

/// The number of objects at which the targets are judged.
const TARGET_OBJECTS: u32 = 10_000_000;
/// Most bytes that tables and the baseline together may take.
const BYTES_MAX: u64 = 15 << 30;
/// Above this many objects no list has every key: it would take more than the table.
const LISTED_OBJECTS_MAX: u32 = 10_000_000;
/// Above this many objects ordered tables are left out, unless they are all that is asked for:
/// beside a hash table they would not fit.
const ORDERED_OBJECTS_MAX: u32 = 50_000_000;

/// Flags of `sapwood-bench aggregate`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Objects of the tables, one size after the other [default:
    /// 10000,100000,1000000,10000000]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1_000..=1_000_000_000))]
    objects: Vec<u32>,

    /// Ways to answer, by the names that the table shows [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Which parts to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,

    /// Threads [default: 1, 2, 4 ... and all cores]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    threads: Vec<usize>,

    /// Interleaved runs of each figure; what takes over a second runs once
    #[arg(long, default_value_t = 5)]
    runs: usize,

    #[command(flatten)]
    sheet: SheetFlags,

    /// Finish in seconds: 2,000 and 20,000 objects, 2 runs
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: up to 100,000,000 objects, 9 runs
    #[arg(long)]
    full: bool,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Sums of all, of ranges and of lists of keys, by each executor
    Sums,
    /// Totals that are spread back over the objects
    Disaggregate,
    /// Sums beside a writer
    Writers,
}

impl Part {
    const ALL: [Part; 3] = [Part::Sums, Part::Disaggregate, Part::Writers];
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    objects: Vec<u32>,
    engines: Vec<String>,
    parts: Vec<Part>,
    threads: Vec<usize>,
    runs: usize,
    /// Objects that a run looks at where a table has fewer: it is asked several times.
    looked_at: u32,
    /// The time that sums are repeated beside a writer.
    window: Duration,
}

impl Args {
    fn plan(&self) -> Result<Plan, Error> {
        let known: Vec<_> = WAYS.iter().map(|way| way.name).chain(baseline::NAMES).collect();
        check_engines(&self.engines, &known)?;
        if self.runs == 0 || self.threads.contains(&0) {
            return Err("--runs and --threads are at least 1".into());
        }
        let (objects, runs, window): (&[u32], _, _) = match (self.smoke, self.full) {
            (true, _) => (&[2_000, 20_000], 2, Duration::from_millis(2)),
            (_, true) => {
                let all = &[10_000, 100_000, 1_000_000, TARGET_OBJECTS, 100_000_000];
                (all, self.runs.max(9), writers::WINDOW)
            }
            _ => (&[10_000, 100_000, 1_000_000, TARGET_OBJECTS], self.runs, writers::WINDOW),
        };
        let given = |given: &[u32]| if given.is_empty() { objects } else { given }.to_vec();
        let plan = Plan {
            objects: given(&self.objects),
            engines: self.engines.clone(),
            parts: if self.part.is_empty() { Part::ALL.to_vec() } else { self.part.clone() },
            threads: if self.threads.is_empty() { thread_counts() } else { self.threads.clone() },
            runs,
            looked_at: if self.smoke { 20_000 } else { 1_000_000 },
            window,
        };
        for &count in &plan.objects {
            let bytes = plan.bytes_expected(count);
            if bytes > BYTES_MAX {
                return Err(format!(
                    "{count} objects would take about {} MB: choose fewer with --objects, or \
                     fewer tables with --engines",
                    bytes / 1_000_000
                )
                .into());
            }
        }
        Ok(plan)
    }
}

impl Plan {
    fn wants(&self, name: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|engine| engine == name)
    }

    /// Whether a kind of table is loaded with so many objects.
    fn takes(&self, kind: TableKind, count: u32) -> bool {
        let is_wanted = |kind| WAYS.iter().any(|way| way.kind == kind && self.wants(way.name));
        let fits =
            kind == TableKind::Hash || count <= ORDERED_OBJECTS_MAX || !is_wanted(TableKind::Hash);
        is_wanted(kind) && fits
    }

    /// The selections of a table of so many objects.
    fn picks(&self, count: u32) -> impl Iterator<Item = Pick> {
        let are_listed = count <= LISTED_OBJECTS_MAX;
        Pick::ALL.into_iter().filter(move |pick| are_listed || *pick != Pick::EVERY_KEY)
    }

    /// About the bytes that everything takes.
    fn bytes_expected(&self, count: u32) -> u64 {
        let tables = TableKind::ALL.into_iter().filter(|kind| self.takes(*kind, count));
        let baseline = if baseline::NAMES.into_iter().any(|name| self.wants(name)) {
            baseline::BYTES_EXPECTED
        } else {
            0
        };
        let each: u64 = tables.map(TableKind::bytes_expected).sum();
        let lists = match count {
            ..=LISTED_OBJECTS_MAX => workload::BYTES_EXPECTED,
            _ => workload::BYTES_OF_PARTS,
        };
        (each + baseline + objects::BYTES_EXPECTED + lists) * u64::from(count)
    }
}

/// The names of workloads and engines.
pub(crate) fn names() -> Names {
    Names::new(Pick::ALL.map(Pick::name), WAYS.iter().map(|way| way.name).chain(baseline::NAMES))
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, the tables would not fit into memory, a table answered
/// wrongly, or `out` refuses what is written.
pub fn run_to(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let plan = args.plan()?;
    let mut sheet = args.sheet.open(out)?;
    let mut last = None;
    for &count in &plan.objects {
        let figures = measure::measure(&plan, count)?;
        sheet.print(
            |out| report::print_json(out, &figures),
            |out| report::print_tables(out, &figures),
        )?;
        // Targets are judged at their own size, or else at the last.
        let is_at_home = |figures: &measure::Figures| figures.objects == TARGET_OBJECTS;
        if !last.as_ref().is_some_and(is_at_home) {
            last = Some(figures);
        }
    }
    sheet.end(|out| last.iter().try_for_each(|figures| targets::print(out, figures)))
}
