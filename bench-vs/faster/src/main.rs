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
use sapwood_bench::hash::peer::Peer;
use sapwood_bench::hash::spill::Engine;
use sapwood_bench::hash::{Args, run_with};

/// FASTER beside Sapwood.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn main() -> ExitCode {
    // Bytes of an entry were measured at 50 million keys.
    let peers = [Peer::of::<Faster<2>>(72), Peer::of::<Faster<8>>(44)];
    let spilling = [Engine { name: "faster", batches: &[64], open: spill::open }];
    let args = Command::parse().args;
    match run_with(&args, &peers, &spilling, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-vs-faster: {error}");
            ExitCode::FAILURE
        }
    }
}
