//! A roll-up table: rows of events become facts as they come in, and queries answer meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::db_log::{Kept, Place};
use crate::rollup::{
    Answer, Dimension, Error as Cause, Ingested, Query, Result as EngineResult, Rollup,
    RollupStats, RowBatch, Schema, Sealed, Writer,
};
use crate::{Error, Result};

/// So many writers are kept for threads that have none of their own: one that is not kept has to learn the
/// numbers of texts again.
const WRITERS_MAX: usize = 16;

/// A named table of facts, into which rows of event streams fold as they come in.
///
/// A fact is all rows of the same time, truncated to a granularity, with the same dimensions; it keeps a
/// state for each metric. Facts that reach a limit, or that a checkpoint of the database finds, are sealed into
/// segments, which are columns that change no more. Schemas, rows and queries are those of [`rollup`](crate::rollup), after Apache
/// Druid. There are no keys: rows are ingested, and queries answered. A `RollupTable` is a handle: clones
/// are the same table, and threads share it freely.
///
/// # Consistency
///
/// A query sees each batch of rows whole or not at all, and every batch whose ingestion returned before
/// the query began. Ingestion is no part of [transactions](crate::Transaction).
///
/// # Durability
///
/// In a database with a directory a batch is in the log before any query sees it, and is there after a crash whole
/// or not at all, in the order of all changes to the database; [`ingest`](Self::ingest) waits as the durability of
/// the database wants. With [`ingest_from`](Self::ingest_from), so is how far each source was read.
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
    kept: Kept,
    /// Where its segments are, in a directory.
    folder: Option<PathBuf>,
    /// Those that no thread uses right now.
    writers: Mutex<Vec<Writer>>,
}

impl RollupTable {
    pub(crate) fn new(
        name: Arc<str>,
        rollup: Arc<Rollup>,
        kept: Kept,
        folder: Option<PathBuf>,
    ) -> RollupTable {
        let shared = Shared { name, rollup, kept, folder, writers: Mutex::default() };
        RollupTable { shared: Arc::new(shared) }
    }

    pub(crate) fn kept(&self) -> &Kept {
        &self.shared.kept
    }

    /// Where its segments are, in a directory.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.shared.folder.as_deref()
    }

    pub(crate) fn rollup(&self) -> &Arc<Rollup> {
        &self.shared.rollup
    }

    /// Facts in memory and in segments.
    pub(crate) fn fact_count(&self) -> u64 {
        let stats = self.stats();
        stats.facts + stats.segment_facts
    }

    /// Keeps the files of segments from going away as long as the answer lives.
    pub(crate) fn hold_files(&self) -> impl fmt::Debug + '_ {
        self.shared.rollup.hold_files()
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

    /// Whether the table lasts: it is in a database with a directory.
    ///
    /// ```
    /// # use sapwood::{Db, RollupTableOptions, rollup::Schema};
    /// # let options = RollupTableOptions::new(Schema::new("time"));
    /// assert!(!Db::in_memory().create_rollup_table("edits", options)?.is_kept());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn is_kept(&self) -> bool {
        !matches!(self.shared.kept.place, Place::Memory)
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
        self.ingest_from(batch, &[])
    }

    /// As [`ingest`](Self::ingest), with the offset that each source has behind these rows: they are in together or
    /// not at all, also after a crash. A batch whose offsets were taken before is not taken again. So rows that a
    /// source can tell again are counted once each: after a crash, go on from [`offsets`](Self::offsets).
    ///
    /// # Errors
    /// As of [`ingest`](Self::ingest); [`Error::Rollup`] with [`Input`](Cause::Input) if some of the offsets were
    /// taken before, and others not.
    ///
    /// ```
    /// use sapwood::rollup::{Metric, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// let (batch, _) = RowBatch::from_csv(b"time\n2013-01-01\n").expect("CSV");
    /// table.ingest_from(&batch, &[("partition 0", 17)])?;
    /// drop((table, db));
    ///
    /// let table = Db::open(directory.path())?.rollup_table("edits")?;
    /// assert_eq!(table.offsets()["partition 0"], 17);
    /// assert_eq!(table.ingest_from(&batch, &[("partition 0", 17)])?.repeated, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ingest_from(&self, batch: &RowBatch, offsets: &[(&str, u64)]) -> Result<Ingested> {
        let kept = self.writers(Vec::pop);
        let mut writer = kept.unwrap_or_else(|| Writer::new(&self.shared.rollup));
        let told = self.keep(|| writer.ingest_from(batch, offsets));
        self.writers(|writers| {
            if writers.len() < WRITERS_MAX {
                writers.push(writer);
            }
        });
        told
    }

    /// How far rows of each source were taken.
    ///
    /// ```
    /// # use sapwood::{Db, RollupTableOptions, rollup::Schema};
    /// # let options = RollupTableOptions::new(Schema::new("time"));
    /// let table = Db::in_memory().create_rollup_table("edits", options)?;
    /// assert!(table.offsets().is_empty());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn offsets(&self) -> BTreeMap<String, u64> {
        self.shared.rollup.offsets()
    }

    /// Makes segments of the live facts, while rows go on into fresh ones, and says what it has made. Limits of the
    /// schema and checkpoints of the database do the same.
    ///
    /// # Errors
    /// [`Error::Rollup`] if the disk refuses, and within changes that go [together](crate::Db::together).
    /// [`Error::ReadOnly`], [`Error::Log`].
    ///
    /// ```
    /// use sapwood::rollup::{Metric, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// table.ingest(&RowBatch::from_csv(b"time\n2013-01-01\n2013-01-02\n").expect("CSV").0)?;
    /// // A segment for each day.
    /// assert_eq!(table.seal()?.segments, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn seal(&self) -> Result<Sealed> {
        self.keep(|| self.shared.rollup.seal())
    }

    /// Merges all segments of each interval into one, so that facts of the same time and dimensions are one. Small
    /// segments are merged in the background where they are many.
    ///
    /// # Errors
    /// As of [`seal`](Self::seal).
    ///
    /// ```
    /// use sapwood::rollup::{Metric, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// for _ in 0..2 {
    ///     table.ingest(&RowBatch::from_csv(b"time\n2013-01-01\n").expect("CSV").0)?;
    ///     table.seal()?;
    /// }
    /// table.merge()?;
    /// assert_eq!((table.stats().segments, table.stats().segment_facts), (1, 1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn merge(&self) -> Result<()> {
        self.keep(|| {
            while self.shared.rollup.merge_all()? {}
            Ok(())
        })
    }

    /// Gives back memory that live facts and their dictionaries keep free for more, and tells how many bytes: before a
    /// long rest. Writers that meet new texts wait meanwhile.
    ///
    /// ```
    /// use sapwood::rollup::{Column, Metric, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// let times = Column::longs(0..10_000);
    /// table.ingest(&RowBatch::new(10_000).column("time", times).expect("as long"))?;
    /// let given_back = table.trim();
    /// assert_eq!(table.stats().facts, 10_000);
    /// # println!("{given_back}");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn trim(&self) -> u64 {
        self.shared.rollup.trim()
    }

    /// Drops all segments whose interval ends at a time, in milliseconds since 1970, or before it: how many. Live
    /// facts stay until they are sealed.
    ///
    /// # Errors
    /// As of [`seal`](Self::seal).
    ///
    /// ```
    /// use sapwood::rollup::{Metric, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// table.ingest(&RowBatch::from_csv(b"time\n2013-01-01\n2013-01-02\n").expect("CSV").0)?;
    /// table.seal()?;
    /// // 2013-01-02T00:00Z.
    /// assert_eq!(table.drop_before(1_357_084_800_000)?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn drop_before(&self, time: i64) -> Result<u64> {
        self.keep(|| self.shared.rollup.drop_before(time))
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

    /// Writes all facts, live ones too, as they are when it begins, into a folder, which is made if it is not there: a
    /// Parquet file for each interval of the segment granularity that has some, called `TABLE_START_END.parquet`.
    /// Rows have the time as `__time`, a column for each dimension, and one for each metric with its figure;
    /// beside it stand further ones, such as the states of sketches: `docs/design/rollup.md` lists them. All files of
    /// an export have the same columns.
    ///
    /// A file is there whole or not at all; one that was there gives way to the newer one, and others stay. Facts of
    /// the same time and dimensions that are not [merged](Self::merge) yet are several rows, as in a scan.
    ///
    /// # Errors
    /// [`Error::Directory`] if the folder cannot be made, or another export holds it; [`Error::Rollup`] if the disk
    /// refuses, a segment is damaged, or the options name what is no dimension of texts.
    ///
    /// ```
    /// use sapwood::rollup::{Dimension, Metric, ParquetOptions, RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(schema))?;
    /// table.ingest(&RowBatch::from_csv(b"time,page\n2015-09-12,Oak\n2015-09-13,Elm\n").expect("CSV").0)?;
    ///
    /// let folder = tempfile::tempdir().expect("a folder for the example");
    /// let files = table.write_parquet(folder.path(), &ParquetOptions::default())?;
    /// assert_eq!(files[0].name, "edits_2015-09-12T00Z_2015-09-13T00Z.parquet");
    /// assert_eq!((files.len(), files[0].facts), (2, 1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[cfg(feature = "parquet")]
    pub fn write_parquet(
        &self,
        folder: impl AsRef<Path>,
        options: &crate::rollup::ParquetOptions,
    ) -> Result<Vec<crate::rollup::ParquetFile>> {
        let folder = folder.as_ref();
        let disk = sapwood_disk::FileDisk::open(folder)
            .map_err(|cause| Error::directory(folder, "opened", &cause))?;
        self.named(self.shared.rollup.write_parquet(&disk, self.name(), options))
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

    /// Changes something, and waits until it lasts as the durability wants.
    fn keep<T>(&self, change: impl FnOnce() -> EngineResult<T>) -> Result<T> {
        self.shared.kept.keep(|| self.named(change()))
    }

    fn named<T>(&self, result: EngineResult<T>) -> Result<T> {
        named(&self.shared.name, result)
    }

    // The list is whole even after a panic: nothing under the lock leaves it half changed.
    fn writers<T>(&self, change: impl FnOnce(&mut Vec<Writer>) -> T) -> T {
        change(&mut self.shared.writers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) fn named<T>(table: &Arc<str>, result: EngineResult<T>) -> Result<T> {
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
        self.ingest_from(batch, &[])
    }

    /// As [`RollupTable::ingest_from`].
    ///
    /// # Errors
    /// As [`RollupTable::ingest_from`].
    ///
    /// ```
    /// use sapwood::rollup::{RowBatch, Schema};
    /// # use sapwood::{Db, RollupTableOptions};
    ///
    /// # let db = Db::in_memory();
    /// let table = db.create_rollup_table("edits", RollupTableOptions::new(Schema::new("time")))?;
    /// let mut writer = table.writer();
    /// for (text, line) in [("time\n2013-01-01\n", 1), ("time\n2013-01-02\n", 2)] {
    ///     let (batch, _) = RowBatch::from_csv(text.as_bytes()).expect("CSV");
    ///     writer.ingest_from(&batch, &[("edits.csv", line)])?;
    /// }
    /// assert_eq!(table.offsets()["edits.csv"], 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ingest_from(&mut self, batch: &RowBatch, offsets: &[(&str, u64)]) -> Result<Ingested> {
        let RollupWriter { table, writer } = self;
        table.keep(|| writer.ingest_from(batch, offsets))
    }
}
