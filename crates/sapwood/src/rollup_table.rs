//! A roll-up table: rows of events become facts as they come in, and queries answer meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::rollup::{
    Answer, Dimension, Error as Cause, Ingested, Query, Result as EngineResult, Rollup,
    RollupStats, RowBatch, Schema, Writer,
};
use crate::{Error, Result, RollupTableOptions};

/// So many writers are kept for threads that have none of their own: one that is not kept has to learn the
/// numbers of texts again.
const WRITERS_MAX: usize = 16;

/// A named table of facts, into which rows of event streams fold as they come in.
///
/// A fact is all rows of the same time, truncated to a granularity, with the same dimensions; it keeps a
/// state for each metric. Schemas, rows and queries are those of [`rollup`](crate::rollup), after Apache
/// Druid. There are no keys: rows are ingested, and queries answered. A `RollupTable` is a handle: clones
/// are the same table, and threads share it freely.
///
/// # Consistency
///
/// A query sees each batch of rows whole or not at all, and every batch whose ingestion returned before
/// the query began. Ingestion is no part of [transactions](crate::Transaction).
///
/// ```
/// use sapwood::rollup::{Aggregation, Dimension, Granularity, Metric, Query, RowBatch, Schema};
/// use sapwood::{Db, RollupTableOptions};
///
/// let schema = Schema::new("time")
///     .dimension(Dimension::text("page"))
///     .metric(Metric::count("edits"))
///     .metric(Metric::long_sum("added", "added"))
///     .query_granularity(Granularity::parse("hour").expect("a granularity"));
/// let db = Db::in_memory();
/// let edits = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
///
/// let (batch, bad) = RowBatch::from_json_lines(
///     br#"{"time": "2013-01-01T00:10Z", "page": "Oak", "added": 3}
///         {"time": "2013-01-01T00:20Z", "page": "Oak", "added": 4}"#,
/// );
/// assert!(bad.is_empty());
/// assert_eq!(edits.ingest(&batch)?.new_facts, 1);
///
/// let query = Query::group_by(["page"]).aggregation(Aggregation::long_sum("added", "added"));
/// assert_eq!(edits.query(&query)?.value(0, "added"), Some(&7.into()));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Clone)]
pub struct RollupTable {
    shared: Arc<Shared>,
}

struct Shared {
    name: Arc<str>,
    rollup: Arc<Rollup>,
    /// Those that no thread uses right now.
    writers: Mutex<Vec<Writer>>,
}

impl RollupTable {
    /// A table that ends with the process.
    pub(crate) fn in_memory(name: Arc<str>, options: RollupTableOptions) -> Result<RollupTable> {
        let rollup = named(&name, Rollup::new(options.schema))?;
        let shared = Shared { name, rollup: Arc::new(rollup), writers: Mutex::default() };
        Ok(RollupTable { shared: Arc::new(shared) })
    }

    pub(crate) fn is_same(&self, other: &RollupTable) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The table's name.
    ///
    /// ```
    /// # use sapwood::{Db, RollupTableOptions, rollup::Schema};
    /// # let options = RollupTableOptions::new(Schema::new("time"));
    /// let table = Db::in_memory().create_rollup_table("edits", options)?;
    /// assert_eq!(table.name(), "edits");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The schema that the table was made with.
    ///
    /// ```
    /// # use sapwood::{Db, RollupTableOptions, rollup::Schema};
    /// let schema = Schema::new("time");
    /// let options = RollupTableOptions::new(schema.clone());
    /// let table = Db::in_memory().create_rollup_table("edits", options)?;
    /// assert_eq!(table.schema(), &schema);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self) -> &Schema {
        self.shared.rollup.schema()
    }

    /// The dimensions: those of the schema, then those that were discovered in rows.
    ///
    /// ```
    /// use sapwood::rollup::{Dimension, Discovery, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").dimension(Dimension::text("page")).discover(Discovery::Texts, &[]);
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// let (batch, _) = RowBatch::from_json_lines(br#"{"time": "2013-01-01", "page": "Oak", "user": "ada"}"#);
    /// table.ingest(&batch)?;
    /// let names: Vec<String> = table.dimensions().into_iter().map(|known| known.name).collect();
    /// assert_eq!(names, ["page", "user"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn dimensions(&self) -> Vec<Dimension> {
        self.shared.rollup.dimensions()
    }

    /// Folds rows into the facts, and tells what became of each. Queries see all of the batch or nothing
    /// of it. Any thread may call this; one that brings batch after batch keeps a
    /// [`writer`](Self::writer).
    ///
    /// # Errors
    /// [`Error::Rollup`]: [`Full`](Cause::Full) if the facts would pass their limits, so that no row of the
    /// batch is in; [`Input`](Cause::Input) if it has more than 2^32 rows or would make too many
    /// dimensions; [`Facts`](Cause::Facts) if the system has no memory, and some rows may be in.
    ///
    /// ```
    /// use sapwood::rollup::{Metric, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// let (batch, _) = RowBatch::from_csv(b"time\n2013-01-01\nyesterday\n").expect("CSV");
    /// let told = table.ingest(&batch)?;
    /// assert_eq!((told.processed, told.unparseable, told.samples[0].row), (1, 1, 1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ingest(&self, batch: &RowBatch) -> Result<Ingested> {
        let kept = self.writers(Vec::pop);
        let mut writer = kept.unwrap_or_else(|| Writer::new(&self.shared.rollup));
        let told = writer.ingest(batch);
        self.writers(|writers| {
            if writers.len() < WRITERS_MAX {
                writers.push(writer);
            }
        });
        self.named(told)
    }

    /// A writer for one thread, which brings batch after batch.
    ///
    /// ```
    /// use sapwood::rollup::{Column, Metric, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         scope.spawn(|| {
    ///             let mut writer = table.writer();
    ///             for time in 0..100 {
    ///                 let batch = RowBatch::new(1).column("time", Column::longs([time]));
    ///                 writer.ingest(&batch.expect("one value")).expect("room");
    ///             }
    ///         });
    ///     }
    /// });
    /// assert_eq!(table.stats().processed, 200);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn writer(&self) -> RollupWriter {
        RollupWriter { table: self.clone(), writer: Writer::new(&self.shared.rollup) }
    }

    /// Answers a query, over the facts as they are when it begins.
    ///
    /// # Errors
    /// [`Error::Rollup`]: [`Query`](Cause::Query) if it does not fit the schema,
    /// [`Overflow`](Cause::Overflow) if a figure leaves its type, [`Cancelled`](Cause::Cancelled).
    ///
    /// ```
    /// use sapwood::rollup::{Metric, Query, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// table.ingest(&RowBatch::from_csv(b"time\n2013-01-01\n2013-01-01\n").expect("CSV").0)?;
    /// let query = Query::from_json(r#"{
    ///     "queryType": "timeseries", "dataSource": "edits", "granularity": "day",
    ///     "intervals": ["2013-01-01/P1D"],
    ///     "aggregations": [{"type": "longSum", "name": "edits", "fieldName": "edits"}]
    /// }"#).expect("a query");
    /// assert_eq!(table.query(&query)?.value(0, "edits"), Some(&2.into()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn query(&self, query: &Query) -> Result<Answer> {
        self.named(self.shared.rollup.query(query))
    }

    /// What the table holds and costs, and what became of rows so far.
    ///
    /// ```
    /// # use sapwood::{Db, RollupTableOptions, rollup::Schema};
    /// # let options = RollupTableOptions::new(Schema::new("time"));
    /// let table = Db::in_memory().create_rollup_table("edits", options)?;
    /// assert_eq!(table.stats().facts, 0);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn stats(&self) -> RollupStats {
        self.shared.rollup.stats()
    }

    fn named<T>(&self, result: EngineResult<T>) -> Result<T> {
        named(&self.shared.name, result)
    }

    // The list is whole even after a panic: nothing under the lock leaves it half changed.
    fn writers<T>(&self, change: impl FnOnce(&mut Vec<Writer>) -> T) -> T {
        change(&mut self.shared.writers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn named<T>(table: &Arc<str>, result: EngineResult<T>) -> Result<T> {
    result.map_err(|cause: Cause| Error::Rollup { table: Arc::clone(table), cause })
}

impl fmt::Debug for RollupTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RollupTable").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Brings rows of one thread into a [`RollupTable`].
///
/// It remembers the numbers of texts that it has met, so that it need not ask for them: keep it for batch
/// after batch.
#[derive(Debug)]
pub struct RollupWriter {
    table: RollupTable,
    writer: Writer,
}

impl RollupWriter {
    /// The table into which it brings rows.
    ///
    /// ```
    /// # use sapwood::{Db, RollupTableOptions, rollup::Schema};
    /// # let options = RollupTableOptions::new(Schema::new("time"));
    /// # let table = Db::in_memory().create_rollup_table("edits", options)?;
    /// assert_eq!(table.writer().table().name(), "edits");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn table(&self) -> &RollupTable {
        &self.table
    }

    /// Takes this for the present, in milliseconds since 1970, when it judges whether rows are late or
    /// early; else the system's clock says it.
    ///
    /// ```
    /// use sapwood::rollup::{Limits, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let mut limits = Limits::default();
    /// limits.late_max = Some(3_600_000);
    /// # let db = Db::in_memory();
    /// let options = RollupTableOptions::new(Schema::new("time").limits(limits));
    /// let table = db.create_rollup_table("edits", options)?;
    /// let (batch, _) = RowBatch::from_csv(b"time\n1970-01-01T00:00Z\n").expect("CSV");
    /// assert_eq!(table.writer().at(60_000).ingest(&batch)?.thrown_away, 0);
    /// assert_eq!(table.writer().at(7_200_000).ingest(&batch)?.thrown_away, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn at(&mut self, now: i64) -> &mut RollupWriter {
        self.writer.at(now);
        self
    }

    /// As [`RollupTable::ingest`].
    ///
    /// # Errors
    /// As [`RollupTable::ingest`].
    ///
    /// ```
    /// use sapwood::rollup::{RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(Schema::new("time")))?;
    /// let mut writer = table.writer();
    /// for text in ["time\n2013-01-01\n", "time\n2013-01-02\n"] {
    ///     writer.ingest(&RowBatch::from_csv(text.as_bytes()).expect("CSV").0)?;
    /// }
    /// assert_eq!(table.stats().processed, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ingest(&mut self, batch: &RowBatch) -> Result<Ingested> {
        self.table.named(self.writer.ingest(batch))
    }
}
