//! Databases in real files, tortured: processes killed, power lost, calls failed, files damaged,
//! disks filled; and after each, an oracle outside says what must be there.
#![forbid(unsafe_code)]

mod chains;
mod damage;
mod enospc;
mod expected;
mod faults;
mod leftovers;
mod message;
mod oracle;
mod pools;
mod report;
mod runs;
mod statements;
mod stream;
mod tables;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use chains::{Chain, Ends};
use damage::Damages;
use expected::Expected;
use faults::Sweep;
use pools::{PoolChain, PoolWork};
use sapwood_shim::{Call, Failure, PowerLoss};
use statements::{StatementChain, StatementWork};

/// Databases in real files, tortured, and compared with an oracle outside. `cargo xtask kills`,
/// `faults`, `damage` and `enospc` run these at full size.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    torture: Torture,
}

#[derive(Subcommand)]
enum Torture {
    /// Ends workers by kill -9 at any moment, over and over on one database
    Kills(Chains),
    /// Ends workers by losses of power that take back what was not synced
    Losses(Chains),
    /// Ends workers on pools by kill -9 at any moment, over and over on one pool
    Pools(Chains),
    /// Ends workers that execute SQL by kill -9, losses of power and moves of their directory
    Statements(Chains),
    /// Lets every call of a worker fail, once and from then on; then, lets the power go after it
    Faults(Faults),
    /// Damages every stored file of a small database, and reads each damaged copy
    Damage(Damage),
    /// Works on small disks that are full (needs the right to mount them)
    Enospc(Full),
    /// The process that reads a damaged database
    #[command(hide = true)]
    Read(Read),
    /// The process that is tortured
    #[command(hide = true)]
    Worker(worker::Work),
    /// The process that is tortured on a pool
    #[command(hide = true)]
    PoolWorker(PoolWork),
    /// The process that is tortured within statements
    #[command(hide = true)]
    StatementWorker(StatementWork),
}

#[derive(Args)]
struct Chains {
    /// Names the first chain; those after it have the seeds that follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many databases
    #[arg(long)]
    chains: usize,
    /// How many workers one after the other on each
    #[arg(long)]
    links: u64,
    #[command(flatten)]
    size: Size,
}

#[derive(Args)]
struct Faults {
    /// Names the work
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// Lets every so many of the calls of a kind fail
    #[arg(long, default_value_t = 1)]
    stride: u64,
    /// Kinds of calls, such as fsync,rename; all if none are given
    #[arg(long, value_delimiter = ',', value_parser = call)]
    only: Vec<Call>,
    /// One run alone, with this failing call, such as fsync:37:EIO:once
    #[arg(long)]
    fail: Option<Failure>,
    /// In that run, a loss of power, such as 7:117:some
    #[arg(long, requires = "fail")]
    lose: Option<PowerLoss>,
    #[command(flatten)]
    size: Size,
}

#[derive(Args)]
struct Damage {
    /// Names the database and the damages
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first damage
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many damages
    #[arg(long)]
    count: usize,
    #[command(flatten)]
    size: Size,
}

#[derive(Args)]
struct Full {
    /// Names the first disk; those after it have the seeds that follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many disks
    #[arg(long)]
    count: usize,
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

#[derive(Args)]
struct Read {
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    expected: PathBuf,
}

fn call(name: &str) -> Result<Call, String> {
    let names = Call::ALL.map(Call::name);
    let found = Call::ALL.into_iter().find(|call| call.name() == name);
    found.ok_or_else(|| format!("no such kind; there are {}", names.join(", ")))
}

#[derive(Args)]
struct Size {
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where the databases lie; by default in the folder for temporary files
    #[arg(long)]
    within: Option<PathBuf>,
}

fn main() -> ExitCode {
    let ended = match Cli::parse().torture {
        Torture::Kills(chains) => run_chains("kills", Ends::Kills, &chains),
        Torture::Losses(chains) => run_chains("losses", Ends::Losses, &chains),
        Torture::Pools(chains) => run_pools(&chains),
        Torture::Statements(chains) => run_statements(&chains),
        Torture::Faults(faults) => run_faults(&faults),
        Torture::Damage(Damage { seed, first, count, size: Size { jobs, within } }) => {
            Damages { seed, first, count, within }.run(jobs)
        }
        Torture::Enospc(Full { seed, count, jobs }) => enospc::run(seed, count, jobs),
        Torture::Read(read) => read_damaged(&read),
        Torture::Worker(work) => worker::run(&work),
        Torture::PoolWorker(work) => pools::worker::run(&work),
        Torture::StatementWorker(work) => statements::worker::run(&work),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run_chains(name: &str, ends: Ends, chains: &Chains) -> Result<(), String> {
    let Size { jobs, within } = &chains.size;
    report::run(name, chains.chains, *jobs, |at| {
        let seed = chains.seed + at as u64;
        Chain { ends, seed, links: chains.links, within: within.clone() }.run()
    })
}

fn run_pools(chains: &Chains) -> Result<(), String> {
    let Size { jobs, within } = &chains.size;
    report::run("pools", chains.chains, *jobs, |at| {
        let seed = chains.seed + at as u64;
        PoolChain { seed, links: chains.links, within: within.clone() }.run()
    })
}

fn run_statements(chains: &Chains) -> Result<(), String> {
    let Size { jobs, within } = &chains.size;
    report::run("statements", chains.chains, *jobs, |at| {
        let seed = chains.seed + at as u64;
        StatementChain { seed, links: chains.links, within: within.clone() }.run()
    })
}

fn run_faults(faults: &Faults) -> Result<(), String> {
    let sweep = Sweep {
        seed: faults.seed,
        within: faults.size.within.clone(),
        only: faults.only.clone(),
        stride: faults.stride.max(1),
    };
    if let Some(failure) = faults.fail {
        return sweep.one(failure, faults.lose);
    }
    let calls = sweep.failing_calls(faults.size.jobs);
    let losses = sweep.lost_after_failing(faults.size.jobs);
    match (calls, losses) {
        (Err(one), Err(other)) => Err(format!("{one}{other}")),
        (one, other) => one.and(other),
    }
}

fn read_damaged(read: &Read) -> Result<(), String> {
    let text = std::fs::read_to_string(&read.expected).map_err(|e| e.to_string())?;
    let expected = Expected::parse(&text).ok_or("the file of what is expected is not ours")?;
    let refused = expected.compare(&read.dir)?;
    match refused.first() {
        Some(first) => println!("refused {first}, and {} more", refused.len() - 1),
        None => println!("read all"),
    }
    damage::expect_little_memory()
}
