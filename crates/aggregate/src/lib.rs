//! Aggregation over keyed bytes: figures instead of a million objects.
//!
//! This re-imagines the core of RAMCloud's data operations for every engine. A [`Query`] says how
//! objects look ([`Layout`]), which of them count ([`Selection`], [`Predicate`]), into which groups
//! they fall ([`Group`]) and what is to be known of each group ([`Aggregate`]). Compiled, it folds
//! objects, one by one or in batches of columns, into a [`Partial`] state. Partial states of
//! threads, tables and machines merge in any order, travel as bytes, and become an [`Answer`].
//! `docs/design/aggregate.md` describes the design, the bytes, and what it costs.
//!
//! *Useful for* sums, extremes, spreads, ranks, frequent and different values of objects wherever
//! they lie: this crate knows no engine, and the executor of a query hands it keys and values. The
//! way back, from a figure to the objects, is [`Disaggregation`]. *Not useful for* joins.
//!
//! ```
//! use sapwood_aggregate::{Aggregate, Group, Query};
//!
//! let query = Query::new("hour:u8, delay:i16le@1?-32768".parse()?)
//!     .filter("hour >= 6".parse()?)
//!     .group_by(Group::list("bucket(hour, 6)")?)
//!     .aggregates(Aggregate::list("count, mean(delay), median(delay)")?)
//!     .compile()?;
//!
//! // Two threads, each with its own fold. The last flight was cancelled: it has no delay.
//! let flights = [(7, 5), (8, -3), (13, 60), (17, i16::MIN)];
//! let value = |(hour, delay): (u8, i16)| [&[hour][..], &delay.to_le_bytes()].concat();
//! let mut partial = query.empty();
//! for part in flights.chunks(2) {
//!     let mut fold = query.fold();
//!     for &flight in part {
//!         fold.push(b"key", &value(flight))?;
//!     }
//!     partial = query.merge(partial, fold.into_partial())?;
//! }
//!
//! let answer = query.finish(partial)?;
//! assert_eq!(answer.value(0, "mean(delay)")?.to_string(), "1");
//! assert_eq!(answer.value(1, "count")?, &2.into());
//! assert_eq!(answer.value(1, "mean(delay)")?.to_string(), "60");
//! assert_eq!(answer.tally.missing, 1);
//! # Ok::<(), sapwood_aggregate::QueryError>(())
//! ```
//!
//! # Figures are right, or there is none
//!
//! - Sums, means and variances are exact until one rounding at the end, whatever the order. A figure
//!   that its type cannot hold is [`QueryError::Overflow`].
//! - What has not the form that the layout says is counted and shown, and the query refuses to
//!   answer or leaves such objects out, as it was told ([`Mismatches`]). An object is in all figures
//!   or in none.
//! - Figures that are approximate say how far they may be off ([`Accuracy`]).
//! - Figures of nothing are [`Cell::Nothing`], never zero or NaN.
#![forbid(unsafe_code)]

mod accumulator;
mod answer;
mod columns;
mod disaggregate;
mod error;
mod evaluation;
mod fold;
mod plan;
mod question;
mod state;
mod value;

pub use accumulator::Accumulator;
pub use answer::{Answer, Cell};
pub use disaggregate::{
    Action, Amount, Change, Collected, Collector, Disaggregated, Disaggregation,
    DisaggregationProgress, Disaggregator, EditAction, EqualParts, FieldEdit, Guess, HeldBatch,
    Outcome, Pending, Refusal, Share, ShareBatch, Shares, WordParts, WordSums,
};
pub use error::{Example, QueryError, Result, SyntaxError};
pub use fold::Fold;
pub use fold::partial::{Partial, Tally};
pub use plan::compiled::Compiled;
pub use plan::output::{Accuracy, Column};
pub use question::aggregate::{Aggregate, Function};
pub use question::group::{Group, GroupBy, Input};
pub use question::key_list::KeyList;
pub use question::layout::{
    Component, ComponentForm, Field, Layout, Part, Path, Place, Read, RowColumn, Step, Tuple,
};
pub use question::predicate::{Operand, Predicate};
pub use question::query::{Mismatches, Missing, OrderBy, Query, SortDirection};
pub use question::selection::Selection;
pub use state::{CentralMoments, TopEntry, joint_spread, spread};
pub use value::comparison::Comparison;
pub use value::float_sum::FloatSum;
pub use value::number::{Form, Number, Order};
pub use value::{Float, Kind, Spread, Value};
