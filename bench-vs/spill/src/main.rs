//! Disk engines whose data is larger than their memory, measured.
//!
//! The workload, its checks and its report are those of `sapwood-bench hash --part spill`; this
//! program adds engines that are too heavy to build for a test.
//!
//! *Useful for* single-key operations on data that outgrows memory. *Not useful for* scans,
//! durability, or data that compresses: nothing is synced, and compression is off.

mod fjall_store;
mod limit;
mod lmdb;
mod redb_store;
#[cfg(feature = "rocksdb")]
mod rocks;
mod stripes;

use std::process::ExitCode;

use clap::Parser;
use sapwood_bench::hash::spill::{Engine, our_engines, run_to};
use sapwood_bench::hash::{RoundFlags, SpillFlags};

/// Single-key operations on data larger than memory.
#[derive(Parser)]
struct Args {
    /// Engines to run: sapwood, sapwood-stay, rocksdb, lmdb, redb, fjall [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Run engines that leave caching to the kernel although nothing limits its page cache: their
    /// figures are then those of data in memory
    #[arg(long)]
    unlimited: bool,

    #[command(flatten)]
    rounds: RoundFlags,

    #[command(flatten)]
    spill: SpillFlags,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let ours = our_engines();
    let mut engines: Vec<Engine> = ours.to_vec();
    #[cfg(feature = "rocksdb")]
    engines.push(Engine { name: "rocksdb", batches: &[64], open: rocks::open });
    let by_kernel = [
        Engine { name: "lmdb", batches: &[], open: lmdb::open },
        Engine { name: "redb", batches: &[], open: redb_store::open },
        Engine { name: "fjall", batches: &[], open: fjall_store::open },
    ];
    engines.extend(by_kernel);
    let runs = |engine: &Engine| {
        args.engines.is_empty() || args.engines.iter().any(|name| name == engine.name)
    };
    match limit::page_cache_limit() {
        Some(bytes) => eprintln!("the page cache is limited to {} MB", bytes / 1_000_000),
        None if args.unlimited => eprintln!("nothing limits the page cache"),
        None => {
            if let Some(engine) = by_kernel.iter().find(|engine| runs(engine)) {
                eprintln!(
                    "bench-vs-spill: {} is cached by the kernel, and nothing limits that: run in a control group with a memory limit (README.md), choose others with --engines, or add --unlimited",
                    engine.name
                );
                return ExitCode::FAILURE;
            }
        }
    }
    match run_to(&args.rounds, &args.spill, &args.engines, &engines, &mut std::io::stdout().lock())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-vs-spill: {error}");
            ExitCode::FAILURE
        }
    }
}
