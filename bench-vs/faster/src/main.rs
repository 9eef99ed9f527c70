//! FASTER beside Sapwood, measured.
//!
//! The workloads, their checks and their report are those of `sapwood-bench hash`; this program adds
//! FASTER, which takes a C++ compiler.
//!
//! *Useful for* the targets against FASTER, in memory and larger than memory. *Not useful for* FASTER's
//! checkpoints, or its answers that come later.

mod memory;
mod native;
mod spill;

use std::process::ExitCode;

use clap::Parser;
use memory::Faster;
use sapwood_bench::hash::peer::HashPeer;
use sapwood_bench::hash::spill::SpillEngine;
use sapwood_bench::hash::{HashArgs, run_with};

/// FASTER beside Sapwood.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: HashArgs,
}

fn main() -> ExitCode {
    // Bytes of an entry were measured at 50 million keys.
    let peers = [HashPeer::of::<Faster<2>>(72), HashPeer::of::<Faster<8>>(44)];
    let spilling = [SpillEngine { name: "faster", batches: &[64], open: spill::open }];
    let args = Command::parse().args;
    match run_with(&args, &peers, &spilling, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-vs-faster: {error}");
            ExitCode::FAILURE
        }
    }
}
