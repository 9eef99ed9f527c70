//! The roll-up index.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Error, Result};
use crate::filter::Compiled;
use crate::live::dictionary::Dictionary;
use crate::live::facts::{Facts, FactsSnapshot};
use crate::live::state::StateLayout;
use crate::report::Ingested;
use crate::schema::{DIMENSIONS_MAX, Dimension, DimensionKind, Schema};

/// A roll-up index: rows fold into facts as they come in, and queries answer meanwhile.
///
/// A fact is all rows of the same time, truncated to the query granularity, with the same dimensions. It
/// lies in an ordered map outside of the heap, its key being time and dimensions, its value the states
/// of its metrics; a row is one search. This is the incremental index of Apache Druid, over a map such
/// as Oak ("Oak: A Scalable Off-Heap Allocated Key-Value Map", Meir et al., PPoPP 2020).
/// `docs/design/rollup.md` describes it.
///
/// Share it in an `Arc`; each thread that brings rows has a [`Writer`](crate::Writer).
///
/// # Consistency
/// A query sees each batch of rows whole or not at all, and every batch whose ingestion returned before
/// the query began. A writer waits for a query while it takes its snapshot, and one that meets new texts
/// while the query tests those that are known; a query waits for the batches under way when it begins.
///
/// ```
/// use std::sync::Arc;
/// use sapwood::rollup::{Dimension, Granularity, Metric, Query, Rollup, RowBatch, Schema, Writer};
///
/// let schema = Schema::new("time")
///     .dimension(Dimension::text("page"))
///     .metric(Metric::count("edits"))
///     .metric(Metric::long_sum("added", "added"))
///     .query_granularity(Granularity::parse("hour")?);
/// let rollup = Arc::new(Rollup::new(schema)?);
/// let (batch, bad) = RowBatch::from_json_lines(
///     br#"{"time": "2013-01-01T00:10Z", "page": "Oak", "added": 3}
///         {"time": "2013-01-01T00:20Z", "page": "Oak", "added": 4}
///         {"time": "2013-01-01T00:30Z", "page": "Elm", "added": 5}"#,
/// );
/// assert!(bad.is_empty());
/// let told = Writer::new(&rollup).ingest(&batch)?;
/// assert_eq!((told.processed, rollup.stats().facts), (3, 2));
///
/// let query = Query::from_json(r#"{
///     "queryType": "topN", "dimension": "page", "metric": "added", "threshold": 1,
///     "intervals": ["2013-01-01/P1D"], "granularity": "all",
///     "aggregations": [{"type": "longSum", "name": "added", "fieldName": "added"}]
/// }"#)?;
/// let answer = rollup.query(&query)?;
/// assert_eq!(answer.value(0, "page"), Some(&"Oak".into()));
/// assert_eq!(answer.value(0, "added"), Some(&7.into()));
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug)]
pub struct Rollup {
    schema: Schema,
    filter: Option<Compiled>,
    metric_filters: Vec<Option<Compiled>>,
    layout: Arc<StateLayout>,
    /// Declared dimensions, then those that were discovered; only ever longer.
    dimensions: RwLock<Arc<Vec<DimensionColumn>>>,
    facts: Arc<Facts>,
    totals: Totals,
}

/// A dimension, and its texts.
#[derive(Debug, Clone)]
pub(crate) struct DimensionColumn {
    pub(crate) name: String,
    pub(crate) kind: DimensionKind,
    /// Empty of numbers.
    pub(crate) dictionary: Arc<Dictionary>,
}

impl DimensionColumn {
    fn new(dimension: &Dimension) -> DimensionColumn {
        DimensionColumn {
            name: dimension.name.clone(),
            kind: dimension.kind,
            dictionary: Arc::default(),
        }
    }
}

/// What became of rows so far.
#[derive(Debug, Default)]
struct Totals {
    processed: AtomicU64,
    processed_with_error: AtomicU64,
    thrown_away: AtomicU64,
    unparseable: AtomicU64,
    overflowed: AtomicU64,
}

/// Figures of a roll-up index.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct RollupStats {
    /// Live facts.
    pub facts: u64,
    /// Bytes mapped for live facts.
    pub fact_bytes: u64,
    /// Bytes of dictionaries.
    pub dictionary_bytes: u64,
    /// Dimensions, with those that were discovered.
    pub dimensions: u64,
    /// Rows that are in facts.
    pub processed: u64,
    /// Of them, those with a value that could not be read and counts as null.
    pub processed_with_error: u64,
    /// Rows that the filter, or the windows of time, left out.
    pub thrown_away: u64,
    /// Rows that have no time that can be read.
    pub unparseable: u64,
    /// Rows that would take a sum beyond its type.
    pub overflowed: u64,
}

impl Rollup {
    /// An index without facts, in memory.
    ///
    /// # Errors
    /// [`Error::Schema`] if the schema's parts do not fit, [`Error::Facts`] if there is no memory.
    pub fn new(schema: Schema) -> Result<Rollup> {
        schema.check()?;
        let compile = |filter: &Option<crate::Filter>| {
            filter.as_ref().map(crate::Filter::compile).transpose()
        };
        let metric_filters = schema.metrics.iter().map(|metric| compile(&metric.filter));
        Ok(Rollup {
            filter: compile(&schema.filter)?,
            metric_filters: metric_filters.collect::<Result<_>>()?,
            layout: Arc::new(StateLayout::new(&schema.metrics)),
            dimensions: RwLock::new(Arc::new(
                schema.dimensions.iter().map(DimensionColumn::new).collect(),
            )),
            facts: Arc::new(Facts::new()?),
            totals: Totals::default(),
            schema,
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The dimensions, with those that were discovered so far.
    pub fn dimensions(&self) -> Vec<Dimension> {
        let columns = self.columns();
        let dimension =
            |column: &DimensionColumn| Dimension { name: column.name.clone(), kind: column.kind };
        columns.iter().map(dimension).collect()
    }

    /// Figures.
    pub fn stats(&self) -> RollupStats {
        let columns = self.columns();
        let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RollupStats {
            facts: self.facts.len(),
            fact_bytes: self.facts.bytes(),
            dictionary_bytes: dictionary_bytes(&columns),
            dimensions: columns.len() as u64,
            processed: total(&self.totals.processed),
            processed_with_error: total(&self.totals.processed_with_error),
            thrown_away: total(&self.totals.thrown_away),
            unparseable: total(&self.totals.unparseable),
            overflowed: total(&self.totals.overflowed),
        }
    }

    pub(crate) fn columns(&self) -> Arc<Vec<DimensionColumn>> {
        Arc::clone(&self.dimensions.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn layout(&self) -> &Arc<StateLayout> {
        &self.layout
    }

    pub(crate) fn filter(&self) -> Option<&Compiled> {
        self.filter.as_ref()
    }

    pub(crate) fn metric_filter(&self, metric: usize) -> Option<&Compiled> {
        self.metric_filters[metric].as_ref()
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn snapshot(&self) -> FactsSnapshot {
        self.facts.snapshot()
    }

    /// Adds dimensions that are not there yet.
    pub(crate) fn discover(&self, found: &[Dimension]) -> Result<()> {
        let mut dimensions = self.dimensions.write().unwrap_or_else(PoisonError::into_inner);
        let mut more: Vec<DimensionColumn> = dimensions.to_vec();
        for dimension in found {
            if more.iter().any(|known| known.name == dimension.name) {
                continue;
            }
            if more.len() == DIMENSIONS_MAX {
                return Err(Error::Input(format!(
                    "`{}` would be dimension {}: declare the dimensions, or exclude columns",
                    dimension.name,
                    DIMENSIONS_MAX + 1
                )));
            }
            more.push(DimensionColumn::new(dimension));
        }
        *dimensions = Arc::new(more);
        Ok(())
    }

    /// Refuses a batch when live facts have no room.
    pub(crate) fn expect_room(&self, columns: &[DimensionColumn], bytes: u64) -> Result<()> {
        let Some(max) = self.schema.limits.bytes_max else { return Ok(()) };
        let used = self.facts.bytes() + dictionary_bytes(columns);
        match used + bytes > max {
            true => Err(Error::Full { what: format!("{} bytes", used + bytes), limit: max }),
            false => Ok(()),
        }
    }

    pub(crate) fn count(&self, told: &Ingested) {
        let add = |counter: &AtomicU64, count: u64| counter.fetch_add(count, Ordering::Relaxed);
        add(&self.totals.processed, told.processed);
        add(&self.totals.processed_with_error, told.processed_with_error);
        add(&self.totals.thrown_away, told.thrown_away);
        add(&self.totals.unparseable, told.unparseable);
        add(&self.totals.overflowed, told.overflowed);
    }
}

fn dictionary_bytes(columns: &[DimensionColumn]) -> u64 {
    columns.iter().map(|column| column.dictionary.read().heap_bytes()).sum()
}
