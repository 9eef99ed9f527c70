//! The roll-up index: events become answers as they arrive.
//!
//! Rows of event streams fold into facts as they come in: rows of the same time, truncated to a
//! granularity, and the same dimensions are one [fact](Rollup), which has a state for each metric. Facts
//! lie in an ordered map outside of the heap, dimensions as numbers of dictionaries, and are queried
//! while they grow. The words are those of Apache Druid, whose incremental index this re-imagines:
//! [`Schema`] reads its `dataSchema`, [`Query`] its native queries.
//!
//! *Useful for* counts, sums, extremes, distinct counts and quantiles of events by time and dimensions,
//! seconds after they happened, at a few dozen bytes a fact. *Not useful for* rows that must be changed
//! or removed one by one, nor for joins.
//!
//! `docs/design/rollup.md` describes the design, the bytes, and what it costs.
//!
//! # What is lost is told
//!
//! - A row without a time that can be read, or that would take a sum beyond its type, is left out,
//!   counted and, if it is among the first, shown ([`Ingested`]). A value that cannot be read is null,
//!   and its row counted.
//! - Null and the empty text are two values.
//! - A figure that its type cannot hold is an error of the query, never a wrong number.
#![forbid(unsafe_code)]

mod contents;
mod error;
#[cfg(feature = "parquet")]
mod export;
mod expression;
mod facts;
mod filter;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod input;
mod json;
mod live;
mod log;
mod query;
mod report;
mod rollup;
mod salvage;
mod schema;
mod segment;
mod sketch;
mod store;
mod time;
mod value;
mod writer;

pub use error::{Error, Result, SyntaxError};
#[cfg(feature = "parquet")]
pub use export::{ParquetFile, ParquetOptions};
pub use expression::{EXPRESSION_DEPTH_MAX, Expression};
pub use facts::{FactField, FactKind, FactRow, FactRows};
pub use filter::{Compiled, FILTER_DEPTH_MAX, Filter};
pub use input::batch::{Column, RowBatch};
pub use input::builder::RowBatchBuilder;
pub use input::csv::CsvRows;
pub use input::json_lines::BadLine;
pub use input::message_pack::{BadRow, MessagePackRows};
pub use log::BatchLog;
pub use query::answer::Answer;
pub use query::{
    Aggregation, AggregationKind, DimensionSpec, OrderBy, Query, ScanOrder, SketchFigure, ThetaSet,
    TopNMetric, VirtualColumn,
};
pub use report::{Ingested, SAMPLES_MAX, Sample};
pub use rollup::{FilesHeld, Rollup, RollupStats, Sealed};
pub use salvage::salvage;
pub use schema::{
    Dimension, DimensionKind, Discovery, Limits, Metric, MetricKind, Number, Schema, SketchInput,
    TIME_COLUMN, Transform, Utf,
};
pub use time::granularity::Granularity;
pub use time::interval::Interval;
pub use time::timestamp::TimestampFormat;
pub use value::{NoNumber, Value};
pub use writer::Writer;
