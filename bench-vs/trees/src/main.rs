//! Transactional trees beside embedded stores, measured.
//!
//! The workloads, their checks and their report are those of `sapwood-bench trees`; this program
//! adds engines that are too heavy to build for a test.
//!
//! *Useful for* small entries that fit into memory, at equal durability. *Not useful for* data
//! larger than memory, or long values.

mod fjall_store;
mod lmdb;
mod sqlite;

use std::process::ExitCode;

use clap::Parser;
use sapwood_bench::trees::{TreesArgs, TreeEngine, engines, run_with};

/// Transactional trees beside embedded stores.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: TreesArgs,
}

fn main() -> ExitCode {
    let mut engines = engines();
    engines.extend([
        TreeEngine { name: "lmdb", open: lmdb::open, recover: None },
        TreeEngine { name: "fjall", open: fjall_store::open, recover: None },
        TreeEngine { name: "sqlite", open: sqlite::open, recover: None },
    ]);
    match run_with(&Command::parse().args, &engines, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-vs-trees: {error}");
            ExitCode::FAILURE
        }
    }
}
