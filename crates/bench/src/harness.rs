//! The harness of all benches: workload times engine gives a sample, samples make a report.
//!
//! | module | holds |
//! |---|---|
//! | `args` | the flags of all benches, and the plan that they make |
//! | `sample` | units, samples, latencies, ratios |
//! | `rounds` | the engine and its job; the loop of interleaved rounds |
//! | `report` | samples, printed as tables or as JSON lines |
//! | `target` | tables of targets, judged |
//! | `plot` | figures, drawn |
//! | `consume`, `tally`, `random` | bytes that are read; their sum; streams of numbers |
//! | `system` | memory, folders and the name of the machine |
//! | `process`, `python`, `jvm` | programs of `bench-vs` |

pub(crate) mod args;
pub(crate) mod consume;
pub(crate) mod jvm;
pub mod plot;
pub(crate) mod process;
pub(crate) mod python;
pub(crate) mod random;
pub(crate) mod report;
pub(crate) mod rounds;
pub(crate) mod sample;
pub(crate) mod system;
pub(crate) mod tally;
pub(crate) mod target;
