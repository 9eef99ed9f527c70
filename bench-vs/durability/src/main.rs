//! Puts to tables that last beside embedded stores, measured.
//!
//! The workloads, their checks and their report are those of `sapwood-bench durability`; this program
//! adds engines that are too heavy to build for a test.
//!
//! *Useful for* what single puts cost at equal durability, in memory that holds all entries. *Not useful
//! for* transactions of several changes, or data larger than memory.

mod fjall_store;
mod lmdb;
#[cfg(feature = "rocksdb")]
mod rocks;
mod sqlite;

use std::process::ExitCode;

use clap::Parser;
use sapwood_bench::durability::{DurabilityArgs, DurableEngine, engines, run_with};

/// Puts to tables that last beside embedded stores.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: DurabilityArgs,
}

fn main() -> ExitCode {
    let mut engines = engines();
    engines.extend([
        DurableEngine { name: "lmdb", open: lmdb::open },
        DurableEngine { name: "fjall", open: fjall_store::open },
        DurableEngine { name: "sqlite", open: sqlite::open },
    ]);
    #[cfg(feature = "rocksdb")]
    engines.push(DurableEngine { name: "rocksdb", open: rocks::open });
    match run_with(&Command::parse().args, &engines, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-vs-durability: {error}");
            ExitCode::FAILURE
        }
    }
}
