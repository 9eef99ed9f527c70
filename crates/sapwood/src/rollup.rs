//! Roll-ups: events become answers as they arrive.
//!
//! A [`Rollup`] folds rows of event streams into facts: rows of the same time, truncated to a granularity,
//! and the same dimensions are one fact, which keeps a state for each metric. It answers queries while
//! rows come in. The words, and the documents that [`Schema`] and [`Query`] read, are those of Apache
//! Druid.
//!
//! ```
//! use std::sync::Arc;
//! use sapwood::rollup::{
//!     Aggregation, Dimension, Granularity, Metric, Query, Rollup, RowBatch, Schema, Writer,
//! };
//!
//! let schema = Schema::new("time")
//!     .dimension(Dimension::text("carrier"))
//!     .metric(Metric::count("flights"))
//!     .metric(Metric::quantiles("delays", "delay"))
//!     .query_granularity(Granularity::parse("hour")?.in_zone("America/New_York")?);
//! let rollup = Arc::new(Rollup::new(schema)?);
//!
//! // Each thread that brings rows has a writer.
//! let (batch, bad) = RowBatch::from_csv(
//!     b"time,carrier,delay\n\
//!       2013-01-01T05:15-05:00,UA,2\n\
//!       2013-01-01T05:29-05:00,UA,4\n\
//!       2013-01-01T05:40-05:00,AA,2\n",
//! )?;
//! assert!(bad.is_empty());
//! let told = Writer::new(&rollup).ingest(&batch)?;
//! assert_eq!((told.processed, told.new_facts), (3, 2));
//!
//! let query = Query::group_by(["carrier"])
//!     .aggregation(Aggregation::long_sum("flights", "flights"))
//!     .aggregation(Aggregation::quantile("median", "delays", 0.5))
//!     .order_by("flights", true);
//! let answer = rollup.query(&query)?;
//! assert_eq!(answer.value(0, "carrier"), Some(&"UA".into()));
//! assert_eq!(answer.value(0, "median").and_then(|value| value.to_double().ok()), Some(Some(3.0)));
//! # Ok::<(), sapwood::rollup::Error>(())
//! ```
//!
//! A [`RollupTable`](crate::RollupTable) is a roll-up of a [`Db`](crate::Db), by its name, and
//! lasts with it.

pub use sapwood_rollup::{
    Aggregation, AggregationKind, Answer, BadLine, BadRow, Column, Compiled as CompiledFilter,
    CsvRows, Dimension, DimensionKind, DimensionSpec, Discovery, EXPRESSION_DEPTH_MAX, Error,
    Expression, FILTER_DEPTH_MAX, FactField, FactKind, FactRow, FactRows, Filter, Granularity,
    Ingested, Interval, Limits, MessagePackRows, Metric, MetricKind, NoNumber, Number, OrderBy,
    Query, Result, Rollup, RollupStats, RowBatch, RowBatchBuilder, SAMPLES_MAX, Sample, ScanOrder,
    Schema, Sealed, SketchFigure, SketchInput, SyntaxError, TIME_COLUMN, ThetaSet, TimestampFormat,
    TopNMetric, Transform, Utf, Value, VirtualColumn, Writer,
};
#[cfg(feature = "parquet")]
pub use sapwood_rollup::{ParquetFile, ParquetOptions};
