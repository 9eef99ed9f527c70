//! The speed and size of the hash log beside its peers, in memory and beyond it.
//!
//! FASTER's evaluation: all keys are loaded, then 8-byte values are read, blindly updated, or
//! added to, in several mixes, uniformly and by Zipf's law, one key a call and in batches. All
//! stores stand loaded in one process, and in each round they take turns with the same planned
//! operations. Every value tells which key it belongs to: what is read is summed and compared with
//! what the keys must give, written values are looked at after each run, and sums of what was
//! added are compared before and after.
//!
//! | module | holds |
//! |---|---|
//! | `workload` | the keys and values, the timed operations |
//! | `store` | the interface of an engine, one key a call or many |
//! | `contenders` | the engines |
//! | [`peer`] | stores outside this workspace that take part |
//! | `in_process` | a job on a store of this process |
//! | `baseline` | the hardware's lower bound: the same memory without a map |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | [`spill`] | stores whose data is larger than their memory |
//! | `targets` | the targets, and whether a run reached them |

mod baseline;
mod contenders;
mod flags;
mod in_process;
mod load;
mod measure;
pub mod peer;
mod report;
pub mod spill;
mod store;
mod targets;
mod workload;

use std::io::Write;

pub use flags::RoundFlags;
pub use spill::SpillFlags;

use crate::Error;
use crate::command::check_engines;
use crate::list::Names;
use flags::Rounds;
use peer::Peer;
use spill::Engine;
use workload::{KEYS_MAX, Mix};

/// The number of keys at which the targets are judged.
const TARGET_KEYS: u32 = 50_000_000;
/// Most bytes that all stores together may take.
const BYTES_MAX: u64 = 15 << 30;

/// Flags of `sapwood-bench hash`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Keys loaded [default: 2500000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=i64::from(KEYS_MAX)))]
    keys: Option<u32>,

    /// Engines to run, by the names that the table shows [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Which parts to run: stores in memory, stores larger than memory [default: memory]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,

    #[command(flatten)]
    rounds: RoundFlags,

    #[command(flatten)]
    spill: SpillFlags,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// 8-byte keys and values in memory, beside other maps
    Memory,
    /// 8-byte keys and 100-byte values on a disk, a quarter of them in memory
    Spill,
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    keys: u32,
    engines: Vec<String>,
    rounds: Rounds,
    /// Operations of each thread in a run.
    ops: usize,
}

impl Args {
    fn plan(&self, engines: Vec<String>, outside: &[Peer]) -> Result<Plan, Error> {
        let (keys, ops) = match (self.rounds.smoke, self.rounds.full) {
            (true, _) => (20_000, 2_000),
            (_, true) => (TARGET_KEYS, 5_000_000),
            _ => (2_500_000, 1_000_000),
        };
        let keys = self.keys.unwrap_or(keys);
        let chosen =
            |name: &&str| engines.is_empty() || engines.iter().any(|chosen| chosen == name);
        let each: u64 = contenders::names(outside)
            .filter(chosen)
            .filter(|name| contenders::takes(name, keys))
            .map(|name| contenders::bytes_expected(name, outside))
            .sum();
        if each * u64::from(keys) > BYTES_MAX {
            return Err(format!(
                "{keys} keys would take about {} MB in these engines together: choose fewer with --engines, or fewer --keys",
                each * u64::from(keys) / 1_000_000
            )
            .into());
        }
        Ok(Plan {
            keys,
            engines,
            rounds: self.rounds.rounds(&Mix::ALL)?,
            ops: self.rounds.ops.unwrap_or(ops),
        })
    }

    fn parts(&self) -> Vec<Part> {
        match (self.part.is_empty(), self.rounds.smoke || self.rounds.full) {
            (false, _) => self.part.clone(),
            (true, true) => vec![Part::Memory, Part::Spill],
            (true, false) => vec![Part::Memory],
        }
    }
}

/// The names of workloads and engines.
pub(crate) fn names() -> Names {
    let engines = contenders::names(&[]).chain(spill::our_engines().map(|engine| engine.name));
    let mut engines: Vec<&str> = engines.collect();
    let mut seen = std::collections::HashSet::new();
    engines.retain(|name| seen.insert(*name));
    Names::new(Mix::ALL.map(Mix::name), engines)
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, the engines together would not fit into memory, our engine
/// answered wrongly, or `out` refuses what is written.
pub fn run_to(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    run_with(args, &[], &[], out)
}

/// As [`run_to`], with stores from outside this workspace: `peers` in memory, `spilling` where data
/// is larger than memory.
///
/// # Errors
///
/// As of [`run_to`].
pub fn run_with(
    args: &Args,
    peers: &[Peer],
    spilling: &[Engine],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let parts = args.parts();
    let engines_of_spill: Vec<Engine> =
        spill::our_engines().iter().chain(spilling).copied().collect();
    let in_memory = |name: &str| contenders::names(peers).any(|known| known == name);
    let in_spill = |name: &str| engines_of_spill.iter().any(|engine| engine.name == name);
    let in_spill_alone =
        engines_of_spill.iter().map(|engine| engine.name).filter(|name| !in_memory(name));
    let known: Vec<&str> = contenders::names(peers).chain(in_spill_alone).collect();
    check_engines(&args.engines, &known)?;
    // Some engines take part in one part only.
    let of_part = |known: &dyn Fn(&str) -> bool| -> Vec<String> {
        args.engines.iter().filter(|name| known(name)).cloned().collect()
    };
    let runs = |part, engines: &[String]| {
        parts.contains(&part) && (args.engines.is_empty() || !engines.is_empty())
    };
    let mut sheet = args.rounds.sheet.open(out)?;
    let engines = of_part(&in_memory);
    if runs(Part::Memory, &engines) {
        let figures = measure::measure(&args.plan(engines, peers)?, peers)?;
        sheet.print(
            |out| report::print_json(out, &figures),
            |out| {
                report::print_tables(out, &figures)?;
                targets::print(out, &figures)
            },
        )?;
    }
    let engines = of_part(&in_spill);
    if runs(Part::Spill, &engines) {
        spill::run_on(&args.rounds, &args.spill, &engines, &engines_of_spill, &mut sheet)?;
    }
    sheet.end(|_| Ok(()))
}
