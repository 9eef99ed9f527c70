//! Workloads times engines times in-process peers, each with a smoke size that tests run.
//!
//! *Useful for* the figures that the README quotes, printed with the command that repeats them.
//! *Not useful for* profiling one call: `perf record` a single workload instead.
//!
//! | module | holds |
//! |---|---|
//! | [`ordered`] | the speed and size of the ordered engine beside its peers |
//! | [`hash`] | the speed and size of the hash log beside its peers, in memory and beyond it |
//! | [`aggregate`] | aggregation of many objects, by each executor |
//! | [`rollup`] | roll-ups of streams of rows, and questions about them, beside their peers |
//! | [`sql`] | statements over files and tables, beside DuckDB, SQLite and polars |
//! | [`server`] | the server beside Redis, over loopback |
//! | [`trees`] | the transactional trees beside embedded stores, at equal durability |
//! | [`durability`] | what it costs that ordered and hash tables last, and how long opening them takes |
//! | [`plot`] | figures of these, drawn |
#![forbid(unsafe_code)]
// Both may be closed while a bench runs: `report::tell` and the given output are the ways out.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod aggregate;
pub mod durability;
pub mod hash;
pub mod ordered;
pub mod plot;
pub mod rollup;
pub mod server;
pub mod sql;
pub mod trees;

mod clock;
mod command;
mod consume;
mod figures;
mod folder;
mod jvm;
mod list;
mod machine;
mod pages;
mod process;
mod python;
mod random;
mod report;
mod resident;
mod rounds;
mod sheet;
mod tally;

pub use list::list;

/// The error of a bench that cannot run: a sentence that says what to do next.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
