//! Figures instead of objects: questions that are answered where the data lies, and totals that
//! are spread back over it.
//!
//! A [`Query`] says how values look ([`Layout`]), which objects count ([`Selection`],
//! [`Predicate`]), into which groups they fall and what is to be known of each group.
//! [`Table::aggregate`](crate::Table::aggregate) answers it, by the [`Executor`] that the planner
//! expects to be the fastest; `explain` says which and why, and [`Execution`] forces one, adds
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
//! An object is an entry, its key and its value.
//!
//! # The ten greatest
//!
//! A group for each key, sorted, and cut off. (`top(x, 10)` is another thing: the ten most frequent
//! *values* of a field.)
//!
//! ```
//! use sapwood::aggregate::{Aggregate, Group, OrderBy, Query};
//! use sapwood::{Db, HashTableOptions, key};
//!
//! let views = Db::in_memory().create_hash_table("views", HashTableOptions::default())?;
//! for (page, hour, times) in [("/oaks", 8_u8, 3), ("/elms", 8, 5), ("/oaks", 9, 7)] {
//!     views.add(&key::encode(&(page, hour)), times)?;
//! }
//! let query = Query::new("key(page:str, hour:u8), views:i64le".parse()?)
//!     .group_by(Group::list("page, hour")?)
//!     .aggregates(Aggregate::list("sum(views)")?)
//!     .order_by(OrderBy::list("sum(views) desc")?)
//!     .limit(10);
//! assert_eq!(views.aggregate(&query)?.value(0, "sum(views)")?, &7.into());
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

mod run;

use std::sync::Arc;

use crate::Error;

pub use run::{Aggregated, DisaggregationRun};
// How it is run.
pub use sapwood_execute::{Cancel, Candidate, Execution, Executor, Measured, Plan, Progress};

// What is asked, and of which fields.
pub use sapwood_aggregate::{
    Action, Aggregate, Comparison, Compiled, Component, ComponentForm, Disaggregation,
    Disaggregator, EditAction, Field, FieldEdit, Form, Function, Group, GroupBy, Input, KeyList,
    Layout, Mismatches, Missing, Number, Operand, Order, OrderBy, Part, Path, Place, Predicate,
    Query, Read, RowColumn, Selection, SortDirection, Spread, Step, Tuple,
};
// What is answered. What only executors drive (batches, collectors, shares) is not for programs.
pub use sapwood_aggregate::{
    Accuracy, Answer, Cell, Column, Disaggregated, Example, Float, Fold, Kind, Partial, Pending,
    QueryError, Refusal, SyntaxError, Tally, TopEntry, Value,
};

/// Puts a table's name to the error of a run.
pub(crate) fn named(table: &Arc<str>, cause: sapwood_execute::Error) -> Error {
    use sapwood_execute::Error as Cause;
    let table = Arc::clone(table);
    match cause {
        Cause::Query(cause) => Error::Query(cause),
        Cause::Executor { executor, why } => Error::Executor { table, executor, why },
        Cause::Cancelled { visited } => Error::Cancelled { table, visited },
        Cause::Ordered(cause) => Error::OrderedEngine { table, cause },
        Cause::Hash(cause) => Error::HashEngine { table, cause },
        Cause::Tree(cause) => Error::TreeEngine { table, cause },
        Cause::HashBatch(stopped) => {
            Error::HashBatch { table, done: stopped.done, cause: stopped.error }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_runs_name_their_table() {
        use sapwood_execute::Error as Cause;
        let executor = Some(Executor::Walk);
        let reentrant = sapwood_hashlog::Error::Reentrant;
        let stopped = sapwood_hashlog::BatchError { done: 3, error: reentrant.clone() };
        for (cause, text) in [
            (
                Cause::Executor { executor, why: "is none here".to_owned() },
                "table `oaks`: the executor `walk` is none here".to_owned(),
            ),
            (Cause::Cancelled { visited: 7 }, "table `oaks`: cancelled after 7 visits".to_owned()),
            (
                Cause::Ordered(sapwood_chunkmap::Error::Reentrant),
                format!("table `oaks`: {}", sapwood_chunkmap::Error::Reentrant),
            ),
            (Cause::Hash(reentrant.clone()), format!("table `oaks`: {reentrant}")),
            (
                Cause::HashBatch(stopped),
                format!(
                    "table `oaks`: the batch stopped after 3 entries, which are in: {reentrant}"
                ),
            ),
        ] {
            assert_eq!(named(&"oaks".into(), cause).to_string(), text);
        }
    }
}
