//! The server beside Redis, over loopback.
//!
//! Servers run as processes of their own, and take turns in each round with the same requests; the
//! floors are bare loops over epoll and over io_uring that find requests and answer each with the same
//! bytes. Two clients load them: `redis-benchmark`, and one of our own that checks every reply and
//! speaks memcached's protocol, too. Figures of RAMCloud's comparison are objects a second that go into
//! a sum: fetched by a client, or added up by the server.
//!
//! | module | holds |
//! |---|---|
//! | `workload` | what is timed |
//! | `replies` | where a reply of Redis's protocol ends |
//! | `protocol` | requests and replies of either protocol |
//! | `wire` | a connection that waits for its replies |
//! | `load_generator` | many connections on one thread, in a closed or an open loop |
//! | `redis_benchmark` | Redis's own load generator |
//! | `floor` | the bare loops |
//! | `processes` | servers, started and stopped |
//! | `contenders` | a workload on a server |
//! | `memory` | what entries and idle connections take |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed |
//! | `targets` | the targets, and whether a run reached them |

mod contenders;
mod floor;
pub(crate) mod load_generator;
mod measure;
mod memory;
pub(crate) mod processes;
pub(crate) mod protocol;
mod redis_benchmark;
mod replies;
mod report;
mod targets;
pub(crate) mod wire;
pub(crate) mod workload;

use std::io::Write;
use std::time::Duration;

use crate::Error;
use crate::command::check_engines;
use crate::list::Names;
use crate::sheet::SheetFlags;
use workload::Workload;

/// The number of objects at which the targets of sums are judged.
const TARGET_OBJECTS: u32 = 10_000_000;

/// Flags of `sapwood-bench server`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Objects that sums are taken of, and entries whose memory is measured [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1_000..=50_000_000))]
    objects: Option<u32>,

    /// Servers to run, by the names that the table shows [default: those that are installed]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    servers: Vec<String>,

    /// Workloads to run: those whose names contain one of these [default: all]
    #[arg(long, value_delimiter = ',', value_name = "WORDS")]
    workloads: Vec<String>,

    /// Interleaved runs of each figure
    #[arg(long, default_value_t = 5)]
    runs: usize,

    /// Seconds of a run [default: 0.6]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,

    /// Requests a second of the open loop, one at a time on each of 50 connections
    #[arg(long, default_value_t = 20_000)]
    rate: u32,

    /// Leave out the measurement of memory
    #[arg(long)]
    no_memory: bool,

    #[command(flatten)]
    sheet: SheetFlags,

    /// Finish in seconds: 10,000 objects, 2 runs of a hundredth of a second
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: 10,000,000 objects
    #[arg(long)]
    full: bool,
}

/// The measurements of a run, with every default filled in.
#[derive(Debug, Clone)]
struct Plan {
    objects: u32,
    servers: Vec<String>,
    workloads: Vec<Workload>,
    runs: usize,
    time: Duration,
    rate: u32,
    idle_connections: Option<usize>,
}

impl Args {
    fn plan(&self) -> Result<Plan, Error> {
        check_engines(&self.servers, &processes::NAMES)?;
        let wanted = |workload: &Workload| {
            let name = crate::figures::Timed::name(*workload);
            self.workloads.is_empty() || self.workloads.iter().any(|word| name.contains(word))
        };
        let workloads: Vec<_> = Workload::all().filter(wanted).collect();
        if workloads.is_empty() {
            let words = self.workloads.join(", ");
            return Err(
                format!("no workload's name contains {words}: leave --workloads out").into()
            );
        }
        let seconds = self.seconds.unwrap_or(if self.smoke { 0.01 } else { 0.6 });
        if self.runs == 0 || self.rate == 0 || seconds.is_nan() || seconds <= 0.0 {
            return Err("--runs and --rate are at least 1, --seconds above 0".into());
        }
        Ok(Plan {
            objects: self.objects.unwrap_or(match (self.smoke, self.full) {
                (true, _) => 10_000,
                (_, true) => TARGET_OBJECTS,
                _ => 1_000_000,
            }),
            servers: self.servers.clone(),
            workloads,
            runs: if self.smoke { 2 } else { self.runs },
            time: Duration::from_secs_f64(seconds),
            rate: self.rate,
            idle_connections: match (self.no_memory, self.smoke, self.full) {
                (true, ..) => None,
                (_, true, _) => Some(100),
                (.., true) => Some(10_000),
                _ => Some(1_000),
            },
        })
    }
}

/// The names of workloads and engines.
pub(crate) fn names() -> Names {
    Names::new(Workload::all().map(crate::figures::Timed::name), processes::NAMES)
}

/// Measures and prints to `out`; progress goes to standard error.
///
/// # Errors
///
/// A flag names what does not exist, a server does not start, ours answers wrongly, or `out` refuses
/// what is written.
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
