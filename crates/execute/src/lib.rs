//! The planner and the executors: queries and disaggregations over the objects of an engine.
//!
//! An engine's [`Objects`] are reached by an [`Executor`]. The planner estimates the cost of each and
//! takes the fastest ([`explain`]); threads then share the visits, each with a sink of its own, and
//! what the sinks hold is merged ([`aggregate`]). [`disaggregate`] goes back: it collects objects so,
//! and changes each by its part of a total. `docs/design/executors.md` has the costs.
//!
//! | module | holds |
//! |---|---|
//! | `error`, `executor`, `execution`, `plan` | the public types |
//! | `sink`, `pool` | what takes objects in, and the threads that hand them over |
//! | `change` | what engines do for disaggregations |
//! | `held` | the same where a hold keeps records where they are |
//! | `objects` | what engines do for both |
//! | `ordered`, `hash`, `tree` | the executors of each engine |
//! | `query`, `disaggregate` | the runs, from plan to result |
//!
//! *Useful for* everything that asks figures of engines: tables, roll-ups, a server. *Not useful for*
//! what figures are (`sapwood-aggregate`), and for names of tables, which its caller puts to errors.
//!
//! ```
//! use sapwood_aggregate::{Aggregate, Query};
//! use sapwood_chunkmap::ChunkMap;
//! use sapwood_execute::{Execution, Executor};
//!
//! let map = ChunkMap::new();
//! map.put(b"acorn", &[3])?;
//! map.put(b"twig", &[4])?;
//! let query = Query::new("pieces:u8".parse()?)
//!     .aggregates(Aggregate::list("sum(pieces)")?)
//!     .compile()?;
//! let (partial, plan) = sapwood_execute::aggregate(&map, &query, &Execution::new())?;
//! assert_eq!(plan.executor, Executor::Range);
//! assert_eq!(query.finish(partial)?.value(0, "sum(pieces)")?, &7.into());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod change;
mod disaggregate;
mod error;
mod execution;
mod executor;
mod hash;
mod held;
mod objects;
mod ordered;
mod plan;
mod pool;
mod query;
mod sink;
mod tree;

pub use disaggregate::{DisaggregationRun, disaggregate, resume};
pub use error::{Error, Result};
pub use execution::{Cancel, Execution, Progress};
pub use executor::Executor;
pub use objects::Objects;
pub use plan::{Candidate, Measured, Plan};
pub use query::{aggregate, explain};
