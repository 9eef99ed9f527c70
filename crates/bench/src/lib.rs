//! Workloads times engines times in-process peers, each with a smoke size that tests run.
//!
//! *Useful for* the figures that the README quotes, printed with the command that repeats them.
//! *Not useful for* profiling one call: `perf record` a single workload instead.
//!
//! A bench is a table of workloads, adapters of engines and a table of targets; all of them run on
//! one harness. The program `sapwood-bench` has a command for each.
//!
//! | module | holds |
//! |---|---|
//! | `harness` | flags, plan, rounds, samples, report, targets |
//! | [`ordered`] | the speed and size of the ordered engine beside its peers |
//! | [`hash`] | the speed and size of the hash log beside its peers, in memory and beyond it |
//! | [`aggregate`] | aggregation of many objects, by each executor |
//! | [`rollup`] | roll-ups of streams of rows, and queries of them, beside their peers |
//! | [`sql`] | statements over files and tables, beside DuckDB, SQLite and polars |
//! | [`server`] | the server beside Redis, over loopback |
//! | [`trees`] | the transactional trees beside embedded stores, at equal durability |
//! | [`durability`] | the cost of durable ordered and hash tables, and of opening them |
//! | [`plot`] | figures of these, drawn |
#![forbid(unsafe_code)]
// Both may be closed while a bench runs: `report::tell` and the given output are the ways out.
#![deny(clippy::print_stdout, clippy::print_stderr)]

/// Returns an error with a message.
macro_rules! bail {
    ($($message:tt)*) => { return Err(format!($($message)*).into()) };
}

pub mod aggregate;
pub mod durability;
pub mod hash;
pub mod ordered;
pub mod rollup;
pub mod server;
pub mod sql;
pub mod trees;

mod harness;

pub use harness::plot;

use std::io::Write;

/// The error of a bench that cannot run: a sentence that says what to do next.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// The outcome of what may fail; of nothing, where no type is named.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Prints the benches with their workloads and engines.
pub fn list(out: &mut dyn Write) -> Result {
    let benches = [
        &ordered::BENCH,
        &hash::BENCH,
        &aggregate::BENCH,
        &rollup::BENCH,
        &sql::BENCH,
        &server::BENCH,
        &trees::BENCH,
        &durability::BENCH,
    ];
    harness::list(&benches, out)
}
