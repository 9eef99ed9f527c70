//! Flags that the parts of the bench share.

use super::workload::{Draw, Mix};
use crate::Error;
use crate::clock::Clock;
use crate::command::thread_counts;
use crate::sheet::SheetFlags;

/// Flags of rounds: repetitions, threads, clocks, output.
#[derive(Debug, Clone, clap::Args)]
pub struct RoundFlags {
    /// Workloads to run: read, read-99, read-95, read-90, read-50, update, read-modify-write
    /// [default: read, read-50, update, read-modify-write]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    workloads: Vec<String>,

    /// How keys are chosen
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["uniform", "zipf"])]
    pub(super) draw: Vec<Draw>,

    /// Threads [default: 1, 2, 4 ... and all cores]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    threads: Vec<usize>,

    /// Interleaved runs of each figure; loads are repeated 3 times at most
    #[arg(long, default_value_t = 5)]
    runs: usize,

    /// Operations of each thread in a run [default: 1000000, and fewer where a disk is read]
    #[arg(long)]
    pub(super) ops: Option<usize>,

    /// Leave out the pass that times single calls
    #[arg(long)]
    no_latencies: bool,

    /// What runs are timed by
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    pub(super) clock: Clock,

    #[command(flatten)]
    pub(super) sheet: SheetFlags,

    /// Finish in seconds: 20,000 keys, 2 runs, both parts
    #[arg(long, conflicts_with = "full")]
    pub(super) smoke: bool,

    /// Take what it needs: 50,000,000 keys, all workloads, 5,000,000 operations a run, both parts
    #[arg(long)]
    pub(super) full: bool,
}

/// The rounds of a run, with every default filled in.
#[derive(Debug, Clone)]
pub(super) struct Rounds {
    pub(super) mixes: Vec<Mix>,
    pub(super) draws: Vec<Draw>,
    pub(super) threads: Vec<usize>,
    pub(super) runs: usize,
    pub(super) latencies: bool,
    pub(super) clock: Clock,
}

impl RoundFlags {
    /// Fills in defaults; `all` are the workloads of a full run.
    pub(super) fn rounds(&self, all: &[Mix]) -> Result<Rounds, Error> {
        let mixes = if !self.workloads.is_empty() {
            self.workloads.iter().map(|name| mix_named(name)).collect::<Result<_, _>>()?
        } else if self.smoke || self.full {
            all.to_vec()
        } else {
            Mix::FOUR.to_vec()
        };
        if self.runs == 0 || self.threads.contains(&0) || self.ops == Some(0) {
            return Err("--runs, --threads and --ops are at least 1".into());
        }
        Ok(Rounds {
            mixes,
            draws: self.draw.clone(),
            threads: if self.threads.is_empty() { thread_counts() } else { self.threads.clone() },
            runs: if self.smoke { 2 } else { self.runs },
            latencies: !self.no_latencies,
            clock: self.clock,
        })
    }
}

fn mix_named(name: &str) -> Result<Mix, Error> {
    Mix::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Mix::ALL.iter().map(|mix| mix.name()).collect();
        format!("no workload is called {name}: choose from {}", known.join(", ")).into()
    })
}
