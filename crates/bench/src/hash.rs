//! The speed and size of the hash log beside its peers, in memory and beyond it.
//!
//! FASTER's evaluation: all keys are loaded, then 8-byte values are read, blindly updated, or
//! added to, in several mixes, uniformly and by Zipf's law, one key a call and in batches. All
//! stores stand loaded in one process, and in each round they take turns with the same planned
//! operations. Every value names its key: reads are summed and compared with what the keys must
//! give, written values are looked at after each run, and sums of what was added are compared
//! before and after.

mod engines;
mod floor;
mod job;
pub mod spill;
mod store;

use std::io::Write;

use crate::harness::*;
use engines::{MOKA_NUMBERS_MAX, SAPWOOD, SAPWOOD_16, SAPWOOD_32};
use job::{Draw, HashJob, Mix, NAMES};
use peer::HashPeer;
use spill::{SpillEngine, SpillFlags};
use store::HashContender;

/// Maps outside this workspace that take part in memory, and what they are written with.
pub mod peer {
    pub use super::job::{Mix, key, number_of, value};
    pub use super::store::{HashPeer, HashStore};
    pub use crate::harness::{Op, Tally};
}

const TARGET_KEYS: usize = 50_000_000;
/// The least number of keys at which targets against FASTER are judged.
const FASTER_KEYS: usize = 2_500_000;
const BYTES_MAX: u64 = 15 << 30;
/// Bytes that a store is taken to need for an entry.
const ENTRY_BYTES: usize = 50;
/// Most rounds of loading: a store is emptied for each.
const LOADS_MAX: usize = 3;

pub(crate) const BENCH: Bench = Bench {
    name: "hash",
    workloads: NAMES.split_at(4).0,
    extra: NAMES.split_at(4).1,
    engines: &[
        SAPWOOD,
        SAPWOOD_16,
        SAPWOOD_32,
        "hashbrown-shards",
        "dashmap",
        "papaya",
        "papaya-atomic",
        "scc",
        "moka",
        "mutex-hashmap",
        "floor-record",
        "floor-bucket-and-record",
        "floor-chain",
        spill::STAY,
    ],
    entries: [&[20_000], &[2_500_000], &[TARGET_KEYS]],
    entries_range: [16, NUMBERS_MAX as usize],
    runs: [2, 5, 5],
    threads: &[],
};

/// The peers that targets are set against: those made for many threads.
const CONCURRENT: &[&str] =
    &["hashbrown-shards", "dashmap", "papaya", "papaya-atomic", "scc", "moka"];
/// FASTER in the forms that the peer project `faster` brings, where it does.
const FASTER: &[&str] = &["faster", "faster-compact"];
const BOTH: &[usize] = &[1, 2];
const ALL_UNIFORM: &[&str] = &["* uniform"];
const PURE: &[&str] = &["read uniform", "update uniform", "read-modify-write uniform"];
const FOUR: &[&str] =
    &["read uniform", "read-50 uniform", "update uniform", "read-modify-write uniform"];

const TARGETS: Targets = Targets {
    judged: TARGET_KEYS..=usize::MAX,
    size_unit: "entries",
    hint: "pass --full to judge them",
    rows: &[
        Target::rate(&[SAPWOOD], PURE, 1.3, CONCURRENT).on(BOTH),
        Target::rate(&[SAPWOOD_16], ALL_UNIFORM, 2.4, CONCURRENT).on(BOTH),
        Target::rate(&[SAPWOOD_32], ALL_UNIFORM, 3.0, CONCURRENT).on(BOTH),
        Target::most(&[SAPWOOD], &["memory"], &BYTES_OF_ENTRY, 1.0, Against::Constant(40.0))
            .on(&[1]),
    ],
};

/// FASTER takes one key a call. Figures of another run say nothing, as they come from another
/// machine or another hour.
const TARGETS_AGAINST_FASTER: Targets = Targets {
    judged: FASTER_KEYS..=usize::MAX,
    size_unit: "entries",
    hint: "leave --smoke out to judge them",
    rows: &[
        Target::rate(&[SAPWOOD], FOUR, 3.0, FASTER).on(BOTH),
        Target::rate(&[SAPWOOD_32], FOUR, 9.0, FASTER).on(BOTH),
        Target::rate(&[SAPWOOD], &["load"], 5.0, FASTER),
    ],
};

/// Flags of `sapwood-bench hash`.
#[derive(Debug, Clone, clap::Args)]
pub struct HashArgs {
    #[command(flatten)]
    flags: Flags,

    /// Leave out the pass that times single calls
    #[arg(long)]
    no_latencies: bool,

    /// Parts to run: stores in memory, stores larger than memory [default: memory; both in a smoke
    /// run and a full one]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<HashPart>,

    /// The distribution of keys
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["uniform", "zipf"])]
    draw: Vec<Draw>,

    #[command(flatten)]
    spill: SpillFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum HashPart {
    /// 8-byte keys and values in memory, beside other maps
    Memory,
    /// 8-byte keys and 100-byte values on a disk, a quarter of them in memory
    Spill,
}

impl HashArgs {
    fn has(&self, part: HashPart) -> bool {
        match (self.part.is_empty(), self.flags.mode()) {
            (false, _) => self.part.contains(&part),
            (true, Mode::Usual) => part == HashPart::Memory,
            (true, _) => true,
        }
    }

    /// True if an engine is named by `--engines`, or none is.
    #[must_use]
    pub fn takes(&self, engine: &str) -> bool {
        self.flags.engines.is_empty() || self.flags.engines.iter().any(|name| name == engine)
    }
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &HashArgs, out: &mut dyn Write) -> Result {
    run_with(args, &[], &[], out)
}

/// Measures with stores from outside this workspace: `peers` in memory, `spilling` where data is
/// larger than memory.
pub fn run_with(
    args: &HashArgs,
    peers: &[HashPeer],
    spilling: &[SpillEngine],
    out: &mut dyn Write,
) -> Result {
    let spilling: Vec<SpillEngine> = spill::engines().iter().chain(spilling).copied().collect();
    let names = |peers: &[HashPeer]| peers.iter().map(|peer| peer.name).collect::<Vec<_>>();
    let outside = [names(peers), spilling.iter().map(|engine| engine.name).collect()].concat();
    let plan = args.flags.plan(&BENCH, &outside)?;
    let mut sheet = args.flags.open(out)?;
    // Some engines take part in one part only.
    let engines = engines::chosen(&plan, peers)?;
    if args.has(HashPart::Memory) && !engines.is_empty() {
        let report = measure(args, &plan, engines)?;
        sheet.print(&report, &[&TARGETS, &TARGETS_AGAINST_FASTER])?;
    }
    if args.has(HashPart::Spill) && spilling.iter().any(|engine| plan.takes(engine.name)) {
        spill::run_on(args, &plan, &spilling, &mut sheet)?;
    }
    sheet.end()
}

/// Measures stores whose data is larger than memory alone.
pub fn run_spill(args: &HashArgs, engines: &[SpillEngine], out: &mut dyn Write) -> Result {
    let outside: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
    let plan = args.flags.plan(&BENCH, &outside)?;
    let mut sheet = args.flags.open(out)?;
    spill::run_on(args, &plan, engines, &mut sheet)?;
    sheet.end()
}

/// Measures the stores in memory: loads, then all workloads. Those that add come last, between two
/// passes over all entries.
fn measure(
    args: &HashArgs,
    plan: &Plan,
    mut engines: Vec<Box<dyn HashContender>>,
) -> Result<Report> {
    let mut report = Report::new("hash", plan.size(), "8+8 B", &[SAPWOOD, SAPWOOD_16]);
    report.title =
        "; peers in Rust hash with foldhash, have room for all entries, and live on the \
                    system's allocator; latencies of batches are those of 16 or 32 operations"
            .to_owned();
    load(plan, &mut engines, &mut report)?;
    check_everything(&mut engines, &mut report)?;
    let (adding, others): (Vec<Mix>, Vec<Mix>) = plan
        .workloads
        .iter()
        .filter_map(|name| Mix::named(name))
        .partition(|mix| *mix == Mix::ReadModifyWrite);
    for mixes in [others, adding] {
        for &mix in &mixes {
            for &draw in &args.draw {
                for &threads in &plan.threads {
                    workload(args, plan, &mut engines, &mut report, mix, draw, threads)?;
                }
            }
        }
        check_everything(&mut engines, &mut report)?;
    }
    Ok(report)
}

/// Loads all stores in rounds, the first of which tells the memory that they take: later ones find
/// freed memory at hand.
fn load(plan: &Plan, engines: &mut [Box<dyn HashContender>], report: &mut Report) -> Result {
    let keys = plan.size() as u32;
    report.progress.set_message("touching memory");
    touch(plan.size() * ENTRY_BYTES * engines.len());
    let per_entry = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / f64::from(keys));
    for round in 0..plan.runs.min(LOADS_MAX) {
        for engine in engines.iter_mut() {
            report.progress.set_message(format!("{}: loading", engine.name()));
            let Some(load) = engine.load(keys)? else { continue };
            let name = engine.name().to_owned();
            let rate = Figure::rate(plan.size(), load.elapsed);
            report.note("load", 1, &name, &OPERATIONS, rate);
            let bytes = per_entry(load.resident_bytes.or(load.accounted_bytes));
            if let Some(bytes) = bytes.filter(|_| round == 0) {
                let huge = load.huge_bytes.zip(load.resident_bytes.filter(|&bytes| bytes > 0));
                let figure = Figure::new(bytes).with(serde_json::json!({
                    "accounted_bytes_per_entry": per_entry(load.accounted_bytes),
                    "share_on_huge_pages": huge.map(|(huge, all)| huge as f64 / all as f64),
                }));
                report.note("memory", 1, &name, &BYTES_OF_ENTRY, figure);
                // Forms of our store are one store.
                let forms = [SAPWOOD, SAPWOOD_16, SAPWOOD_32];
                let names = if is_ours(&name) { &forms[..] } else { &[&name[..]] };
                let bytes = names.iter().map(|&name| (name.to_owned(), bytes));
                report.bytes_per_entry.extend(bytes);
            }
        }
    }
    Ok(())
}

fn workload(
    args: &HashArgs,
    plan: &Plan,
    engines: &mut Vec<Box<dyn HashContender>>,
    report: &mut Report,
    mix: Mix,
    draw: Draw,
    threads: usize,
) -> Result {
    let ops = args.flags.ops.unwrap_or(plan.mode.pick(2_000, 1_000_000, 5_000_000));
    // Tags differ from run to run, so that a lost update shows.
    let first = report.samples.len() as u32 + 1;
    let job = |round: usize, ops: usize| {
        let tag = first * 64 + round as u32;
        HashJob::plan(mix, draw, plan.size() as u32, threads, ops, tag)
    };
    rounds(engines, report, plan.runs, |round| job(round, ops))?;
    if !args.no_latencies {
        latencies(engines, report, &job(plan.runs, ops / 4 + 1))?;
    }
    Ok(())
}

/// Reads every entry, which must be there with its own value, before and after all runs. A peer
/// that fails here takes no further part.
fn check_everything(engines: &mut Vec<Box<dyn HashContender>>, report: &mut Report) -> Result {
    let mut refused = Ok(());
    engines.retain_mut(|engine| {
        let Err(error) = engine.check_everything() else { return true };
        if is_ours(engine.name()) {
            refused = Err(error);
        } else {
            report.leave_out(format!("{error}: a bug in it or in its adapter"));
        }
        false
    });
    refused
}

fn takes(engine: &str, keys: usize) -> bool {
    engine != "moka" || keys <= MOKA_NUMBERS_MAX
}
