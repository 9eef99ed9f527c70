//! The speed and size of the transactional trees beside embedded stores.
//!
//! The tables of libpmemobj's key-value stores ("An introduction to pmemobj", pmem.io, 2015): keys
//! and values of 8 bytes are inserted into an empty tree and removed from a full one, with one
//! transaction around all of them and with a transaction each, in random and in ascending order of
//! keys. Look-ups, walks in order, durable commits, bytes and recovery come with them. In each
//! round the engines take turns, each on an empty folder of the same file system. Every value that
//! comes back is summed, and sums are compared with what the keys must give.
//!
//! Engines outside this workspace run the same workloads through [`TreeStore`] and [`run_with`].

mod ours;
mod peers;
mod pmdk;
mod store;
mod turn;

use std::io::Write;

pub use store::{
    CommitLevel, Limit, Recovery, TreeEngine, TreeEntry, TreeKey, TreePhase, TreePlace, TreeStore,
    TreeValue, Writers,
};

use crate::harness::*;
use turn::{FLOOR, Order, SyncFloor, TreeContender, TreeJob};

const TARGET_KEYS: usize = 1_000_000;

pub(crate) const BENCH: Bench = Bench {
    name: "trees",
    workloads: &[
        "insert-each",
        "remove-each",
        "insert-together",
        "get",
        "iterate",
        "remove-together",
        "sync",
        "recover",
    ],
    extra: &["remove-tenfold"],
    engines: &[
        BTREE,
        CRIT_BIT,
        RED_BLACK,
        "std-btreemap",
        "redb",
        "pmdk-btree",
        "pmdk-crit-bit",
        "pmdk-red-black",
        FLOOR,
    ],
    entries: [&[2_000], &[TARGET_KEYS], &[TARGET_KEYS]],
    entries_range: [1, 1 << 32],
    runs: [2, 3, 5],
    threads: &[1, 16],
};

const BTREE: &str = "sapwood-btree";
const CRIT_BIT: &str = "sapwood-crit-bit";
const RED_BLACK: &str = "sapwood-red-black";
const OURS: &[&str] = &[BTREE, CRIT_BIT, RED_BLACK];
const INSERT_EACH: &[&str] = &["insert-each random"];
const REMOVE_EACH: &[&str] = &["remove-each random"];
const INSERT_TOGETHER: &[&str] = &["insert-together random"];
const SYNC: &[&str] = &["sync random"];

const fn ours(
    workloads: &'static [&'static str],
    least: f64,
    peer: &'static [&'static str],
) -> Target {
    Target::rate(OURS, workloads, least, peer)
}

/// Four times libpmemobj's tree of a kind, or what stands for it in a run without it: microseconds
/// of an operation (PMDK 1.12) on a file system in memory with forced flushes of cache lines, which
/// outlives the process alone; 1,000,000 random keys, the best of several runs, on a machine of the
/// class that the targets were set on (2 cores of a shared Xeon).
const fn pmdk(
    engine: &'static [&'static str],
    theirs: &'static str,
    workloads: &'static [&'static str],
    microseconds: f64,
) -> Target {
    let before = Against::Before(theirs, 1e6 / microseconds);
    Target::rate(engine, workloads, 4.0, &[]).against(before)
}

const TARGETS: Targets = Targets {
    judged: TARGET_KEYS..=usize::MAX,
    size_unit: "entries",
    hint: "leave --keys and --ops out to judge them",
    rows: &[
        pmdk(&[BTREE], "pmdk-btree", INSERT_EACH, 2.0),
        pmdk(&[BTREE], "pmdk-btree", REMOVE_EACH, 2.1),
        pmdk(&[BTREE], "pmdk-btree", INSERT_TOGETHER, 1.75),
        pmdk(&[CRIT_BIT], "pmdk-crit-bit", INSERT_EACH, 5.6),
        pmdk(&[CRIT_BIT], "pmdk-crit-bit", REMOVE_EACH, 4.0),
        pmdk(&[CRIT_BIT], "pmdk-crit-bit", INSERT_TOGETHER, 7.4),
        pmdk(&[RED_BLACK], "pmdk-red-black", INSERT_EACH, 4.9),
        pmdk(&[RED_BLACK], "pmdk-red-black", REMOVE_EACH, 4.9),
        pmdk(&[RED_BLACK], "pmdk-red-black", INSERT_TOGETHER, 8.7),
        ours(&["insert-each random", "remove-each random"], 10.0, &["lmdb"]),
        ours(&["insert-each random", "remove-each random"], 10.0, &["redb"]),
        ours(INSERT_TOGETHER, 1.5, &["lmdb"]),
        ours(INSERT_TOGETHER, 1.5, &["redb"]),
        ours(&["get random"], 2.0, &["lmdb"]),
        ours(&["get random"], 2.0, &["redb"]),
        ours(&["iterate random"], 1.0, &["lmdb"]),
        // A durable commit takes 1.3 syncs of the disk at most; many writers share them.
        ours(SYNC, 1.0 / 1.3, &[]).on(&[1]).against(Against::Sample(FLOOR, "", 1)),
        ours(SYNC, 5.0, &[]).on(&[16]).against(Against::Sample(FLOOR, "", 1)),
        // Ten times as many removes in one transaction take 12 times as long at most.
        ours(&["remove-tenfold random"], 10.0 / 12.0, &[]).against(Against::Sample(
            "",
            "remove-together random",
            0,
        )),
        ours(&["recover random"], 1.0, &[])
            .on(&[1])
            .of(&LOG_BYTES_A_SECOND)
            .against(Against::Constant((1 << 30) as f64)),
        // 40 MiB for 1,000,000 entries.
        Target::most(&[BTREE], INSERT_TOGETHER, &BYTES_OF_ENTRY, 1.0, Against::Constant(41.9)),
    ],
};

/// Flags of `sapwood-bench trees`. Its threads are writers of durable commits.
#[derive(Debug, Clone, clap::Args)]
pub struct TreesArgs {
    #[command(flatten)]
    flags: Flags,

    /// Durable commits, by all writers together [default: 4000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    syncs: Option<u32>,

    /// The order in which keys come [default: both]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ORDERS")]
    order: Vec<Order>,

    /// Run libpmemobj's trees beside ours, where libpmemobj-dev, make and a C compiler are
    /// installed
    #[arg(long)]
    pmdk: bool,
}

/// The engines of this workspace: ours, then peers.
#[must_use]
pub fn engines() -> Vec<TreeEngine> {
    ours::ENGINES.into_iter().chain(peers::ENGINES).collect()
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &TreesArgs, out: &mut dyn Write) -> Result {
    run_with(args, &engines(), out)
}

/// Measures `engines` and prints to `out`; progress goes to standard error.
pub fn run_with(args: &TreesArgs, engines: &[TreeEngine], out: &mut dyn Write) -> Result {
    let outside: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
    let plan = args.flags.plan(&BENCH, &outside)?;
    let of_pmdk = pmdk::ENGINES.map(|engine| engine.name);
    args.flags.check_flag(&of_pmdk, args.pmdk, "runs in a process of its own", "--pmdk")?;
    let mut sheet = args.flags.open(out)?;
    let mut report = Report::new("trees", plan.size(), "8+8 B", OURS);
    let ops = args.flags.ops.unwrap_or(plan.size()).min(plan.size());
    report.title = format!(
        ", {ops} of them where each has a transaction; commits outlive the process, and power \
         loss in `sync`"
    );
    let mut engines = engines.to_vec();
    if args.pmdk && of_pmdk.iter().any(|name| plan.takes(name)) {
        let absent = pmdk::join(&mut engines, &pmdk::foreign(), "make");
        report.left_out.extend(absent);
    }
    let syncs = args.syncs.map_or(plan.mode.pick(32, 4_000, 4_000), |syncs| syncs as usize);
    for order in or(&args.order, Order::value_variants()) {
        let mut contenders: Vec<Box<dyn Engine<TreeJob>>> = Vec::new();
        if plan.takes(FLOOR) && plan.runs("sync") {
            contenders.push(Box::new(SyncFloor));
        }
        for engine in engines.iter().filter(|engine| plan.takes(engine.name)) {
            contenders.push(Box::new(TreeContender(*engine)));
        }
        let job = TreeJob::new(&plan, order, ops, syncs);
        rounds(&mut contenders, &mut report, plan.runs, |round| job.in_round(round))?;
    }
    per_entry(&mut report);
    // Fewer transactions are a run of another size.
    report.size = ops;
    sheet.print(&report, &[&TARGETS])?;
    sheet.end()
}

/// Notes the bytes of an entry, those of random keys first.
fn per_entry(report: &mut Report) {
    let sizes: Vec<(String, f64)> = report
        .samples
        .iter()
        .filter(|sample| sample.unit == &BYTES_OF_ENTRY)
        .map(|sample| (sample.engine.clone(), sample.median()))
        .collect();
    for (engine, bytes) in sizes {
        report.bytes_per_entry.entry(engine).or_insert(bytes);
    }
}
