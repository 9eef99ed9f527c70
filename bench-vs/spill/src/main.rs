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
use sapwood_bench::hash::spill::{SpillEngine, engines};
use sapwood_bench::hash::{HashArgs, run_spill};

/// Single-key operations on data larger than memory.
#[derive(Parser)]
struct Command {
    /// Run engines that leave caching to the kernel although nothing limits its page cache: their
    /// figures are then those of data in memory
    #[arg(long)]
    unlimited: bool,

    #[command(flatten)]
    args: HashArgs,
}

fn main() -> ExitCode {
    let Command { unlimited, args } = Command::parse();
    let mut all: Vec<SpillEngine> = engines().to_vec();
    #[cfg(feature = "rocksdb")]
    all.push(SpillEngine { name: "rocksdb", batches: &[64], open: rocks::open });
    let by_kernel = [
        SpillEngine { name: "lmdb", batches: &[], open: lmdb::open },
        SpillEngine { name: "redb", batches: &[], open: redb_store::open },
        SpillEngine { name: "fjall", batches: &[], open: fjall_store::open },
    ];
    all.extend(by_kernel);
    match limit::page_cache_limit() {
        Some(bytes) => eprintln!("the page cache is limited to {} MB", bytes / 1_000_000),
        None if unlimited => eprintln!("nothing limits the page cache"),
        None => {
            if let Some(engine) = by_kernel.iter().find(|engine| args.takes(engine.name)) {
                eprintln!(
                    "bench-vs-spill: {} is cached by the kernel, and nothing limits that: run in a control group with a memory limit (README.md), choose others with --engines, or add --unlimited",
                    engine.name
                );
                return ExitCode::FAILURE;
            }
        }
    }
    match run_spill(&args, &all, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-vs-spill: {error}");
            ExitCode::FAILURE
        }
    }
}
