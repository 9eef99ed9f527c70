//! The program `sapwood-bench`: a command for each bench, one that draws, one that lists.
#![forbid(unsafe_code)]
// Output may be closed: errors of writing are answers, not panics.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sapwood_bench::{
    Error, aggregate, durability, hash, list, ordered, plot, rollup, server, sql, trees,
};

/// Measures Sapwood beside its peers, in one process and in turns
#[derive(Parser)]
#[command(
    name = "sapwood-bench",
    version,
    after_help = "\
Examples:
  sapwood-bench list
  sapwood-bench ordered --smoke
  sapwood-bench ordered --entries 1000000 --threads 1,2 --json
  sapwood-bench hash --keys 5000000 --engines sapwood,papaya --plot hash.svg
  sapwood-bench aggregate --objects 10000000 --threads 1
  sapwood-bench rollup --sets synthetic --granularity hour,none
  sapwood-bench trees --keys 100000 --engines sapwood-btree,redb --dir /var/tmp
  sapwood-bench durability --part levels,recovery --engines sapwood-ordered,redis
  sapwood-bench plot ordered.jsonl hash.jsonl --to figures.svg --threads 2"
)]
struct Invocation {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The ordered engine beside other ordered maps
    Ordered(ordered::OrderedArgs),
    /// The hash log beside other concurrent hash maps, in memory and beyond it
    Hash(hash::HashArgs),
    /// Aggregates of many objects: every executor, the planner, and a plain loop over the same
    /// bytes
    Aggregate(aggregate::AggregateArgs),
    /// Roll-ups of a stream of rows beside a hash map: rows a second, bytes of a fact, queries
    Rollup(rollup::RollupArgs),
    /// Statements over a file and over tables, beside DuckDB, SQLite and polars
    Sql(sql::SqlArgs),
    /// The server beside Redis, over loopback: requests, memory, and sums over the wire
    Server(server::ServerArgs),
    /// The transactional trees beside embedded stores, at equal durability
    Trees(trees::TreesArgs),
    /// The cost of durable ordered and hash tables, and of opening them, beside Redis
    Durability(durability::DurabilityArgs),
    /// Draw figures that the benches printed with --json
    Plot(plot::PlotArgs),
    /// List the benches with their workloads and engines
    List,
}

fn main() -> ExitCode {
    let out = &mut io::stdout().lock();
    let done = match Invocation::parse().command {
        Command::Ordered(args) => ordered::run_to(&args, out),
        Command::Hash(args) => hash::run_to(&args, out),
        Command::Aggregate(args) => aggregate::run_to(&args, out),
        Command::Rollup(args) => rollup::run_to(&args, out),
        Command::Sql(args) => sql::run_to(&args, out),
        Command::Server(args) => server::run_to(&args, out),
        Command::Trees(args) => trees::run_to(&args, out),
        Command::Durability(args) => durability::run_to(&args, out),
        Command::Plot(args) => plot::run(&args),
        Command::List => list(out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a reader the exit code tells.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True if the reader of the output has closed it.
fn is_closed(error: &Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
