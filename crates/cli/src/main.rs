//! The `sapwood` command line: samples, loading files, looking around in them.
//!
//! `args` says what can be asked, a module per command answers it, `exit` says how it ends.
#![forbid(unsafe_code)]
// They panic when the reader has left: `stderr::line` and `Ui::print` are the ways out.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod aggregate;
mod args;
mod bench;
mod checkpoints;
mod exit;
mod format;
mod get;
mod interrupt;
mod kept;
mod key_columns;
mod key_range;
mod lines;
mod load;
mod manual;
mod rows;
mod rows_table;
mod sample;
mod scan;
mod source;
mod stats;
mod stderr;
mod stored;
mod ui;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use ui::Ui;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::of_arguments(&error),
    };
    let ui = Ui::new(&args);
    let outcome = match &args.command {
        Command::Sample(sample) => sample::run(sample, &ui),
        Command::CountFlights(args) => sample::counters::count_until_killed(args, &ui),
        Command::Load(load) => load::run(load, &ui),
        Command::Get(get) => get::run(get, &ui),
        Command::Scan(scan) => scan::run(scan, &ui),
        Command::Aggregate(aggregate) => aggregate::run(aggregate, &ui),
        Command::Stats(stats) => stats::run(stats, &ui),
        Command::Checkpoints(args) => checkpoints::run(args, &ui),
        Command::Bench(bench) => bench::run(bench),
        Command::Completions(completions) => manual::completions(completions, &ui),
        Command::Man(man) => manual::man(man, &ui),
    };
    exit::code(outcome)
}
