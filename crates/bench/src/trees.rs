//! The speed and size of the transactional trees beside embedded stores.
//!
//! The tables of libpmemobj's key-value stores ("An introduction to pmemobj", pmem.io, 2015): keys
//! and values of 8 bytes are inserted into an empty tree and removed from a full one, with one
//! transaction around all of them and with a transaction each, in random and in ascending order of
//! keys. Look-ups, walks in order, commits that last, bytes and recovery come with them. In
//! each round the engines take turns, each on an empty folder of the same file system. Every
//! value that comes back is summed, and sums are compared with what the keys must give.
//!
//! Engines outside this workspace run the same workloads through [`TreeStore`] and [`run_with`].
//!
//! | module | holds |
//! |---|---|
//! | `workload` | the timed operations; keys and values |
//! | `store` | the interface of an engine |
//! | `ours` | the trees of a pool |
//! | `peers` | engines of this process that are light to build |
//! | `pmdk` | libpmemobj's own trees, each in a process of its own |
//! | `floor` | one sync of the disk |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `targets` | the targets, and whether a run reached them |

mod floor;
mod measure;
mod ours;
mod peers;
mod pmdk;
mod report;
mod store;
mod targets;
mod workload;

use std::io::Write;
use std::path::PathBuf;

pub use store::{Engine, Entry, Key, Level, Limit, Place, Recovery, TreeStore, Value, Writers};
pub use workload::{Order, Phase};

use crate::Error;
use crate::command::check_engines;
use crate::list::Names;
use crate::sheet::SheetFlags;

/// The number of keys at which the targets are judged.
const TARGET_KEYS: usize = 1_000_000;

/// Flags of `sapwood-bench trees`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Keys inserted [default: 1000000]
    #[arg(long, value_name = "N")]
    keys: Option<usize>,

    /// Transactions of the workloads with a transaction each [default: one for each key]
    #[arg(long, value_name = "N")]
    ops: Option<usize>,

    /// Commits that last, by all writers together [default: 4000]
    #[arg(long, value_name = "N")]
    syncs: Option<usize>,

    /// Writers of commits that last
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", default_values_t = [1, 16])]
    writers: Vec<usize>,

    /// The order in which keys come [default: both]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ORDERS")]
    order: Vec<Order>,

    /// Engines to run, by the names that the table shows [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Run libpmemobj's trees beside ours, where libpmemobj-dev, make and a C compiler are installed
    #[arg(long)]
    pmdk: bool,

    /// Workloads to run [default: all but remove-tenfold, which --full adds]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    workloads: Vec<Phase>,

    /// Interleaved runs of each figure
    #[arg(long, default_value_t = 3)]
    runs: usize,

    /// A folder on the disk to measure: a fresh one inside it is used and removed [default: the
    /// system's temporary folder]
    #[arg(long)]
    dir: Option<PathBuf>,

    #[command(flatten)]
    sheet: SheetFlags,

    /// Finish in seconds: 2,000 keys, 2 runs
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: 1,000,000 keys, 5 runs, and removes from a tree ten times as large
    #[arg(long)]
    full: bool,
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    keys: usize,
    ops: usize,
    syncs: usize,
    writers: Vec<usize>,
    orders: Vec<Order>,
    engines: Vec<String>,
    phases: Vec<Phase>,
    runs: usize,
    dir: PathBuf,
}

impl Args {
    fn plan(&self, known: &[Engine]) -> Result<Plan, Error> {
        let names: Vec<&str> = known
            .iter()
            .chain(&pmdk::ENGINES)
            .map(|engine| engine.name)
            .chain([floor::NAME])
            .collect();
        check_engines(&self.engines, &names)?;
        let of_pmdk = |name: &&String| pmdk::ENGINES.iter().any(|engine| engine.name == **name);
        if let Some(name) = self.engines.iter().find(of_pmdk)
            && !self.pmdk
        {
            return Err(format!("{name} runs in a process of its own: add --pmdk").into());
        }
        let (keys, syncs, runs) = match (self.smoke, self.full) {
            (true, _) => (2_000, 32, 2),
            (_, true) => (TARGET_KEYS, 4_000, self.runs.max(5)),
            _ => (TARGET_KEYS, 4_000, self.runs),
        };
        let keys = self.keys.unwrap_or(keys);
        let syncs = self.syncs.unwrap_or(syncs);
        if keys == 0 || syncs == 0 || runs == 0 || self.ops == Some(0) || self.writers.contains(&0)
        {
            return Err("--keys, --ops, --syncs, --writers and --runs are at least 1".into());
        }
        let phases = match (self.workloads.is_empty(), self.full) {
            (false, _) => self.workloads.clone(),
            (true, true) => Phase::ALL.to_vec(),
            (true, false) => Phase::USUAL.to_vec(),
        };
        Ok(Plan {
            keys,
            ops: self.ops.unwrap_or(keys).min(keys),
            syncs,
            writers: self.writers.clone(),
            orders: match self.order.is_empty() {
                true => vec![Order::Random, Order::Sequential],
                false => self.order.clone(),
            },
            engines: self.engines.clone(),
            phases,
            runs,
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
        })
    }
}

impl Plan {
    fn has(&self, phases: &[Phase]) -> bool {
        phases.iter().any(|phase| self.phases.contains(phase))
    }

    fn takes(&self, name: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|wanted| wanted == name)
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
        Phase::ALL.map(Phase::name),
        engines().iter().chain(&pmdk::ENGINES).map(|engine| engine.name).chain([floor::NAME]),
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
    let mut engines = engines.to_vec();
    let absent = match args.pmdk && pmdk::ENGINES.iter().any(|engine| plan.takes(engine.name)) {
        true => pmdk::join(&mut engines, pmdk::build("make", &pmdk::folder())),
        false => None,
    };
    let mut figures = measure::measure(&plan, &engines)?;
    figures.rates.wrong.extend(absent);
    sheet.print(
        |out| report::print_json(out, &figures),
        |out| report::print_tables(out, &figures),
    )?;
    sheet.end(|out| targets::print(out, &figures))
}
