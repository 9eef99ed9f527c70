//! The cost of durable ordered and hash tables, and of opening them.
//!
//! *Levels*: writers put to keys that are there, in place, while changes are to outlive nothing, the
//! process, power loss soon, or power loss at once; Redis beside it, over loopback, and embedded
//! stores at equal durability. *Checkpoints*: single puts while one is written, and while none is.
//! *Recovery*: opening what was closed, and what ended; Redis beside it. *Log bytes*: of a change.
//! Engines take turns in each round. Every run checks the values that it leaves.
//!
//! Engines outside this workspace run the same workloads through [`DurableStore`] and [`run_with`].

mod checkpoints;
mod data;
mod levels;
mod ours;
mod recovery;
mod redb;
mod redis;
mod store;
mod writers;

use std::io::Write;
use std::time::Duration;

pub use data::{Data, Level};
pub use store::{DurableEngine, DurablePlace, DurableStore};

use crate::harness::*;
use ours::{HASH, ORDERED};

pub(crate) const BENCH: Bench = Bench {
    name: "durability",
    workloads: &["levels", "checkpoints", "recovery", "log-bytes"],
    extra: &[],
    engines: &[ORDERED, HASH, "redb", redis::NAME, levels::FLOOR],
    entries: [&[2_000], &[1_000_000], &[1_000_000]],
    entries_range: [10, 99_999_999],
    runs: [2, 3, 5],
    threads: &[1, 8, 50],
};

const OURS: &[&str] = &[ORDERED, HASH];
const BESIDE: &str = "put beside a checkpoint";
const WITHOUT: &str = "put without a checkpoint";
const FROM: [&[&str]; 2] = [&["recovery from checkpoint"], &["recovery from log"]];

const fn of_level(
    workloads: &'static [&'static str],
    least: f64,
    workload: &'static str,
    threads: usize,
) -> Target {
    Target::rate(OURS, workloads, least, &[]).against(Against::Sample("", workload, threads))
}

const LEVELS: Targets = Targets {
    judged: 500..=usize::MAX,
    size_unit: "ms a run",
    hint: "leave --seconds and --smoke out to judge them",
    rows: &[
        of_level(&["put 8 B, async"], 0.7, "put 8 B, memory", 0),
        of_level(&["put 1 KB, async"], 0.7, "put 1 KB, memory", 0),
        of_level(&["put 8 B, sync", "put 1 KB, sync"], 10.0, "", 1).on(&[50]),
    ],
};

const CHECKPOINTS: Targets = Targets {
    judged: 1_000_000..=usize::MAX,
    size_unit: "entries",
    hint: "pass --full to judge them",
    rows: &[Target::most(OURS, &[BESIDE], &NANOSECONDS, 2.0, Against::Sample("", WITHOUT, 0))],
};

const RECOVERY: Targets = Targets {
    judged: 10_000_000..=usize::MAX,
    size_unit: "entries",
    hint: "pass --full to judge them",
    rows: &[
        Target::most(OURS, FROM[0], &SECONDS, 1.0, Against::Constant(5.0)),
        Target::most(OURS, FROM[1], &SECONDS, 1.0, Against::Constant(5.0)),
        Target::most(OURS, FROM[0], &SECONDS, 1.0, Against::Best(&[redis::NAME])),
        Target::most(OURS, FROM[1], &SECONDS, 1.0, Against::Best(&[redis::NAME])),
    ],
};

/// Flags of `sapwood-bench durability`. Its entries are keys that are put to, of 8-byte values; of
/// 1 KB values a tenth of them. Its threads are writers, and connections of Redis.
#[derive(Debug, Clone, clap::Args)]
pub struct DurabilityArgs {
    #[command(flatten)]
    flags: Flags,

    /// Parts to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    part: Vec<DurabilityPart>,

    /// Levels of durability [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LEVELS")]
    levels: Vec<Level>,

    /// Keys and values [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SIZES")]
    data: Vec<Data>,

    /// Entries of the table that checkpoints are written of [default: 200000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99_999_999))]
    checkpointed: Option<u32>,

    /// Entries that are recovered [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99_999_999))]
    recovered: Option<u32>,

    /// Seconds of a run [default: 0.6]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DurabilityPart {
    /// Rates of puts at each level
    Levels,
    /// Single puts while a checkpoint is written, and while none is
    Checkpoints,
    /// Opening what was closed, and what ended
    Recovery,
    /// Bytes of the log for a change
    LogBytes,
}

struct Sizes {
    plan: Plan,
    levels: Vec<Level>,
    checkpointed: u32,
    recovered: u32,
    time: Duration,
}

impl Sizes {
    fn new(args: &DurabilityArgs, engines: &[DurableEngine]) -> Result<Sizes> {
        let outside: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
        let plan = args.flags.plan(&BENCH, &outside)?;
        let seconds = args.seconds.unwrap_or(plan.mode.pick(0.01, 0.6, 0.6));
        if seconds.is_nan() || seconds <= 0.0 {
            bail!("--seconds is above 0");
        }
        let checkpointed = plan.mode.pick(2_000, 200_000, 1_000_000);
        let recovered = plan.mode.pick(10_000, 1_000_000, 10_000_000);
        Ok(Sizes {
            plan,
            levels: or(&args.levels, Level::value_variants()),
            checkpointed: args.checkpointed.unwrap_or(checkpointed),
            recovered: args.recovered.unwrap_or(recovered),
            time: Duration::from_secs_f64(seconds),
        })
    }

    fn keys(&self, data: Data) -> u32 {
        let keys = self.plan.size() as u32;
        match data {
            Data::Small => keys,
            Data::Large => keys / 10,
        }
    }
}

/// The engines of this workspace: ours, then peers.
#[must_use]
pub fn engines() -> Vec<DurableEngine> {
    ours::ENGINES.into_iter().chain([redb::ENGINE]).collect()
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &DurabilityArgs, out: &mut dyn Write) -> Result {
    run_with(args, &engines(), out)
}

/// Measures `engines` and prints to `out`; progress goes to standard error.
pub fn run_with(args: &DurabilityArgs, engines: &[DurableEngine], out: &mut dyn Write) -> Result {
    let sizes = Sizes::new(args, engines)?;
    let mut sheet = args.flags.open(out)?;
    let has =
        |part, name| (args.part.is_empty() || args.part.contains(&part)) && sizes.plan.runs(name);
    if has(DurabilityPart::Levels, "levels") {
        for data in or(&args.data, Data::value_variants()) {
            sheet.print(&levels::measure(&sizes, engines, data)?, &[&LEVELS])?;
        }
    }
    if has(DurabilityPart::Checkpoints, "checkpoints") {
        sheet.print(&checkpoints::measure(&sizes)?, &[&CHECKPOINTS])?;
    }
    if has(DurabilityPart::Recovery, "recovery") {
        sheet.print(&recovery::measure(&sizes)?, &[&RECOVERY])?;
    }
    if has(DurabilityPart::LogBytes, "log-bytes") {
        for &data in Data::value_variants() {
            sheet.print(&checkpoints::log_bytes(&sizes, data)?, &[])?;
        }
    }
    sheet.end()
}
