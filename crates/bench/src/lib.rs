//! Workloads times engines times in-process peers, each with a smoke size that tests run.
//!
//! *Useful for* the figures that the README quotes, printed with the command that repeats them.
//! *Not useful for* profiling one call: `perf record` a single workload instead.
//!
//! | module | question it answers |
//! |---|---|
//! | [`ordered`] | how fast and how large is the ordered engine beside its peers? |
//! | [`hash`] | how fast and how large is the hash log beside its peers, in memory and beyond it? |
//! | [`aggregate`] | how fast are figures of many objects, by each executor? |
#![forbid(unsafe_code)]
// Both may be closed while a bench runs: `report::tell` and the given output are the ways out.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod aggregate;
pub mod hash;
pub mod ordered;

mod clock;
mod command;
mod consume;
mod figures;
mod pages;
mod random;
mod report;
mod resident;
mod rounds;
mod tally;

/// What a bench answers when it cannot run: a sentence that says what to do next.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
