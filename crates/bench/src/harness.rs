//! The harness of all benches: workload times engine gives a sample, samples make a report. Benches
//! take all of its names.
//!
//! | module | holds |
//! |---|---|
//! | `args` | the flags of all benches, and the plan that they make |
//! | `sample` | units, samples, latencies, ratios |
//! | `rounds` | the engine and its job; the loop of interleaved rounds |
//! | `report` | samples, printed as tables or as JSON lines |
//! | `target` | tables of targets, judged |
//! | `plot` | figures, drawn |
//! | `op`, `consume`, `tally`, `random` | planned operations; bytes that are read; their sum; streams of numbers |
//! | `system` | memory, folders and the name of the machine |
//! | `tables` | tables of a database |
//! | `process` | programs of `bench-vs` |

mod args;
mod consume;
mod op;
pub mod plot;
mod process;
mod random;
mod report;
mod rounds;
mod sample;
mod system;
mod tables;
mod tally;
mod target;

pub(crate) use clap::ValueEnum;

pub(crate) use crate::{Error, Result};
pub(crate) use args::*;
pub(crate) use consume::*;
pub(crate) use op::NUMBERS_MAX;
pub use op::Op;
pub(crate) use process::*;
pub(crate) use random::*;
pub(crate) use report::*;
pub(crate) use rounds::*;
pub(crate) use sample::*;
pub(crate) use system::*;
pub(crate) use tables::*;
pub use tally::Tally;
pub(crate) use target::*;
