//! Workloads times engines times in-process peers, each with a smoke size that tests run.
//!
//! *Useful for* the figures that the README quotes, printed with the command that repeats them.
//! *Not useful for* profiling one call: `perf record` a single workload instead.
//!
//! | module | question it answers |
//! |---|---|
//! | [`ordered`] | how fast and how large is the ordered engine beside its peers? |
#![forbid(unsafe_code)]

pub mod ordered;

mod consume;
mod random;
mod resident;

/// What a bench answers when it cannot run: a sentence that says what to do next.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
