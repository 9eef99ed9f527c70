//! Figures instead of objects: questions that are answered where the data lies, and totals that
//! are spread back over it.
//!
//! A [`Query`] says how values look ([`Layout`]), which objects count ([`Selection`],
//! [`Predicate`]), into which groups they fall and what is to be known of each group.
//! [`OrderedTable::aggregate`](crate::OrderedTable::aggregate) and
//! [`HashTable::aggregate`](crate::HashTable::aggregate) answer it, by whichever [`Executor`] the
//! planner takes for the fastest; `explain` says which and why, and [`Execution`] forces one, adds
//! threads, tells progress and can be cancelled.
//!
//! ```
//! use sapwood::aggregate::{Aggregate, Group, Query, Selection};
//! use sapwood::{Db, OrderedTableOptions, key};
//!
//! let db = Db::in_memory();
//! let table = db.create_ordered_table("flights", OrderedTableOptions::default())?;
//! for (carrier, number, delay) in [("AA", 1, 7_i16), ("UA", 2, 40), ("UA", 3, -5)] {
//!     table.put(&key::encode(&(carrier, number)), &delay.to_le_bytes())?;
//! }
//!
//! let query = Query::new("key(carrier:str, number:i32), delay:i16le".parse()?)
//!     .group_by(Group::list("carrier")?)
//!     .aggregates(Aggregate::list("count, sum(delay)")?);
//! let answer = table.aggregate(&query)?;
//! assert_eq!(answer.value(1, "sum(delay)")?, &35.into());
//!
//! // Only the entries of one carrier are visited.
//! let united = Selection::prefix(&key::encode(&"UA"));
//! let answer = table.aggregate(&query.clone().select(united))?;
//! assert_eq!(answer.tally.selected, 2);
//! # Ok::<(), sapwood::Error>(())
//! ```
//!
//! # Consistency
//!
//! An object is read whole, as it was at one moment. A key that is there throughout is counted
//! exactly once by every executor, while writers write; one that comes or goes meanwhile is counted
//! at most once. [`Execution::at_one_moment`] asks for more: all objects as they were at one moment
//! of the call. That costs what writers then copy instead of changing it in place, and up to a page
//! of the log that is left unused.

mod execution;
mod executor;
mod hash;
mod objects;
mod ordered;
mod plan;
mod run;
mod spread;

pub use execution::{Cancel, Execution, Progress};
pub use executor::Executor;
pub use plan::{Candidate, Measured, Plan};
pub use run::Aggregated;
pub use spread::Settlement;

// What is asked, and of which fields.
pub use sapwood_aggregate::{
    Action, Aggregate, Comparison, Compiled, Component, ComponentForm, Disaggregation,
    Disaggregator, Field, Form, Function, Group, GroupBy, Input, KeyList, Layout, Mismatches,
    Missing, Number, Operand, Order, OrderBy, Part, Path, Place, Predicate, Query, Read, Selection,
    SortDirection, Spread, Step,
};
// What is answered. What only executors drive (blocks, collectors, shares) is not for programs.
pub use sapwood_aggregate::{
    Accuracy, Answer, Cell, Column, Disaggregated, Example, Float, Fold, Kind, Partial, Pending,
    QueryError, SyntaxError, Tally, TopEntry, Value,
};
