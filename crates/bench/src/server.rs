//! The server beside Redis, over loopback.
//!
//! Servers run as processes of their own, and take turns in each round with the same requests; the
//! floors are bare loops over epoll and over io_uring that find requests and answer each with the
//! same bytes. Two clients load them: `redis-benchmark`, and one of our own that checks every reply
//! and speaks memcached's protocol, too. Figures of RAMCloud's comparison are objects a second that
//! go into a sum: fetched by a client, or added up by the server.

mod engines;
mod floor;
pub(crate) mod job;
pub(crate) mod load_generator;
mod memory;
pub(crate) mod processes;
pub(crate) mod protocol;
mod redis_benchmark;
pub(crate) mod wire;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::harness::*;
use engines::Loaded;
use job::{NAMES, ServerJob, ServerWorkload};
use processes::{FLOOR, MEMCACHED, REDIS, SAPWOOD, URING_FLOOR};

/// The number of objects at which the targets of sums are judged.
const TARGET_OBJECTS: usize = 10_000_000;

pub(crate) const BENCH: Bench = Bench {
    name: "server",
    workloads: &NAMES,
    extra: &[],
    engines: &[SAPWOOD, REDIS, "valkey", "keydb", MEMCACHED, FLOOR, URING_FLOOR],
    entries: [&[10_000], &[1_000_000], &[TARGET_OBJECTS]],
    entries_range: [1_000, 50_000_000],
    runs: [2, 5, 5],
    threads: &[1],
};

const OURS: &[&str] = &[SAPWOOD];

const fn requests(workloads: &'static [&'static str], least: f64) -> Target {
    Target::rate(OURS, workloads, least, &[REDIS])
}

/// Names of the first so many workloads of a table: those of `redis-benchmark` come first, by
/// connections and pipelines.
const fn named(from: usize) -> &'static [&'static str] {
    NAMES.split_at(from).1.split_at(2).0
}

const TARGETS: Targets = Targets {
    judged: 0..=usize::MAX,
    size_unit: "objects",
    hint: "",
    rows: &[
        requests(named(0), 1.0),
        requests(named(2), 1.5),
        requests(named(4), 2.0),
        requests(named(6), 1.0),
        requests(named(8), 1.0),
        requests(named(10), 1.0),
        Target::most(OURS, NAMES.split_at(12).0, &NANOSECONDS, 1.0, Against::Best(&[REDIS])),
        Target::most(OURS, &["memory"], &BYTES_OF_ENTRY, 1.0, Against::Constant(48.0)),
        Target::most(
            OURS,
            &["idle connections"],
            &BYTES_OF_CONNECTION,
            1.0,
            Against::Constant(4096.0),
        ),
    ],
};

/// Sums by the executor that is fastest, against a client that fetches one object at a time and
/// against a script in Redis.
const SUMS: Targets = Targets {
    judged: TARGET_OBJECTS..=usize::MAX,
    size_unit: "objects",
    hint: "pass --full to judge them",
    rows: &[
        Target::rate(OURS, &["sum by SW.AGGREGATE, log"], 300.0, &[]).against(Against::Sample(
            "",
            "sum by GET, one at a time",
            0,
        )),
        Target::rate(OURS, &["sum by SW.AGGREGATE, log"], 10.0, &[]).against(Against::Sample(
            REDIS,
            "sum by a Lua script",
            0,
        )),
    ],
};

/// Flags of `sapwood-bench server`. Its entries are objects that sums are taken of, and those whose
/// memory is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    #[command(flatten)]
    flags: Flags,

    /// Seconds of a run [default: 0.6]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,

    /// Requests a second of the open loop, one at a time on each of 50 connections
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,

    /// Leave out the measurement of memory
    #[arg(long)]
    no_memory: bool,

    /// The program `sapwood` whose server is measured [default: the one beside this program, else a
    /// server within it]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &ServerArgs, out: &mut dyn Write) -> Result {
    let plan = args.flags.plan(&BENCH, &[])?;
    let seconds = args.seconds.unwrap_or(plan.mode.pick(0.01, 0.6, 0.6));
    if seconds.is_nan() || seconds <= 0.0 {
        bail!("--seconds is above 0");
    }
    let mut sheet = args.flags.open(out)?;
    let objects = plan.size() as u32;
    let mut report = Report::new("server", plan.size(), "8+8 B", &[SAPWOOD, URING_FLOOR]);
    report.title = " that sums are taken of; over loopback; latencies are of a pipeline, and \
                    redis-benchmark tells no 99.9th percentile but the greatest"
        .to_owned();
    let program = args.program.clone().or_else(sapwood_program);
    let start = || processes::start(&plan, program.as_deref());
    if !args.no_memory {
        let connections = plan.mode.pick(100, 1_000, 10_000);
        memory::measure(start()?.0, objects, connections, &mut report)?;
    }
    let (servers, missing) = start()?;
    report.left_out.extend(missing);
    let has_redis_benchmark = redis_benchmark::is_installed();
    if !has_redis_benchmark {
        report
            .leave_out("redis-benchmark: it is not installed: Debian has it in redis-tools".into());
    }
    let loaded = servers.into_iter().map(|server| Loaded::new(server, has_redis_benchmark));
    let mut engines = loaded.collect::<Result<Vec<Loaded>>>()?;
    for workload in plan.workloads.iter().filter_map(|name| ServerWorkload::named(name)) {
        if matches!(workload, ServerWorkload::Sum(_)) {
            engines.iter_mut().try_for_each(|engine| engine.load_objects(objects))?;
        }
        let time = Duration::from_secs_f64(seconds);
        let job = |round| ServerJob { workload, round, time, rate: args.rate, objects };
        rounds(&mut engines, &mut report, plan.runs, job)?;
    }
    sheet.print(&report, &[&TARGETS, &SUMS])?;
    sheet.end()
}
