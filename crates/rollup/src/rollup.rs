//! The roll-up index.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use sapwood_disk::Disk;

use crate::contents::{self, Contents, CutFacts};
use crate::error::{Error, Result};
use crate::filter::Compiled;
use crate::live::facts::{DimensionColumn, Facts};
use crate::live::state::StateLayout;
use crate::log::{self, BatchLog, Order};
use crate::report::Ingested;
use crate::schema::{Dimension, Schema};
use crate::segment::Segment;
use crate::store::{Manifest, Store};

/// A roll-up index: rows fold into facts as they come in, and queries answer meanwhile.
///
/// A fact is all rows of the same time, truncated to the query granularity, with the same dimensions. It
/// lies in an ordered map outside of the heap, its key being time and dimensions, its value the states
/// of its metrics; a row is one search. This is the incremental index of Apache Druid, over a map such
/// as Oak ("Oak: A Scalable Off-Heap Allocated Key-Value Map", Meir et al., PPoPP 2020).
/// When a limit is reached, or on command, live facts are [sealed](Self::seal) into columns that do not change
/// any more: segments, in memory or in files. Queries see both. `docs/design/rollup.md` describes it.
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
    /// Locked for a moment, inside of all else.
    contents: RwLock<Contents>,
    /// Held by a batch from when it has a number until its record is in the log.
    order: Mutex<Order>,
    /// Held by the one thread that makes segments, before all else.
    store: Mutex<Store>,
    log: OnceLock<Arc<dyn BatchLog>>,
    /// Why memory has less than the log.
    failed: OnceLock<Error>,
    totals: Totals,
}

/// No file of a roll-up is made, and none goes away, while this is held.
#[derive(Debug)]
pub struct FilesHeld<'a>(#[expect(dead_code, reason = "it is held")] MutexGuard<'a, Store>);

/// What sealing has made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Sealed {
    /// Segments that are new.
    pub segments: u64,
    /// Their facts.
    pub facts: u64,
    /// Their bytes.
    pub bytes: u64,
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
    /// Segments.
    pub segments: u64,
    /// Their facts. Facts of the same time and dimensions in several segments, or in one and among live facts,
    /// count as several until they are merged.
    pub segment_facts: u64,
    /// Their bytes.
    pub segment_bytes: u64,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // What they hold is whole between any two steps that can fail.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rollup {
    /// An index without facts, in memory: also its segments.
    ///
    /// # Errors
    /// [`Error::Schema`] if the schema's parts do not fit, [`Error::Facts`] if there is no memory.
    pub fn new(schema: Schema) -> Result<Rollup> {
        Rollup::over(schema, |_| Ok((Store::in_memory(), Vec::new())))
    }

    /// An index whose segments are files of a folder, with those that are there. Live facts do not outlive the
    /// process, but for those that a log [tells again](crate::Writer::redo).
    ///
    /// # Errors
    /// As of [`new`](Self::new); [`Error::Corrupt`], [`Error::Io`].
    pub fn on_disk(schema: Schema, disk: Arc<dyn Disk>) -> Result<Rollup> {
        Rollup::over(schema, |layout| Store::open(disk, layout))
    }

    fn over(
        schema: Schema,
        store: impl FnOnce(&StateLayout) -> Result<(Store, Vec<Arc<Segment>>)>,
    ) -> Result<Rollup> {
        schema.check()?;
        let compile = |filter: &Option<crate::Filter>| {
            filter.as_ref().map(crate::Filter::compile).transpose()
        };
        let metric_filters = schema.metrics.iter().map(|metric| compile(&metric.filter));
        let layout = Arc::new(StateLayout::new(&schema.metrics));
        let (store, segments) = store(&layout)?;
        let mut dimensions = schema.dimensions.clone();
        for found in store.manifest().dimensions() {
            if !dimensions.iter().any(|known| known.name == found.name) {
                dimensions.push(found);
            }
        }
        let Manifest { batches, ref offsets, .. } = *store.manifest();
        let order = Order { number: batches, offsets: offsets.clone() };
        let contents = Contents {
            live: Arc::new(Facts::new(&dimensions)?),
            cut: Vec::new(),
            cut_number: batches,
            segments: Arc::new(segments),
        };
        Ok(Rollup {
            filter: compile(&schema.filter)?,
            metric_filters: metric_filters.collect::<Result<_>>()?,
            layout,
            contents: RwLock::new(contents),
            order: Mutex::new(order),
            store: Mutex::new(store),
            log: OnceLock::new(),
            failed: OnceLock::new(),
            totals: Totals::default(),
            schema,
        })
    }

    /// Appends all batches from here on to a log, which has told all that it has of the index.
    ///
    /// # Panics
    /// If it has a log.
    #[must_use]
    pub fn with_log(self: Arc<Self>, log: Arc<dyn BatchLog>) -> Arc<Rollup> {
        assert!(self.log.set(log).is_ok(), "an index has one log");
        self
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The dimensions, with those that were discovered so far.
    pub fn dimensions(&self) -> Vec<Dimension> {
        self.contents().live.columns().iter().map(DimensionColumn::dimension).collect()
    }

    /// How far rows of each source were taken: the offsets of the batches that are in.
    pub fn offsets(&self) -> BTreeMap<String, u64> {
        lock(&self.order).offsets.clone()
    }

    /// The number of the last batch that is in a segment, with all before it: a log need not keep these.
    pub fn sealed_batches(&self) -> u64 {
        lock(&self.store).manifest().batches
    }

    /// Figures.
    pub fn stats(&self) -> RollupStats {
        let contents = self.contents();
        let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (fact_bytes, dictionary_bytes) = contents.live.bytes();
        let segments = &contents.segments;
        let mut stats = RollupStats {
            facts: contents.live.len(),
            fact_bytes,
            dictionary_bytes,
            dimensions: contents.live.columns().len() as u64,
            processed: total(&self.totals.processed),
            processed_with_error: total(&self.totals.processed_with_error),
            thrown_away: total(&self.totals.thrown_away),
            unparseable: total(&self.totals.unparseable),
            overflowed: total(&self.totals.overflowed),
            segments: segments.len() as u64,
            segment_facts: segments.iter().map(|segment| segment.rows() as u64).sum(),
            segment_bytes: segments.iter().map(|segment| segment.bytes()).sum(),
        };
        for CutFacts { facts, .. } in &contents.cut {
            let (fact_bytes, dictionary_bytes) = facts.bytes();
            stats.facts += facts.len();
            stats.fact_bytes += fact_bytes;
            stats.dictionary_bytes += dictionary_bytes;
        }
        stats
    }

    /// Ends the live facts: they change no more, and rows go on into fresh ones. [`seal`](Self::seal) makes segments
    /// of them. It waits for the batches under way, and for nothing else.
    ///
    /// # Errors
    /// [`Error::Facts`] if there is no memory.
    pub fn cut(&self) -> Result<()> {
        self.cut_if(|_| true)
    }

    /// Ends the live facts, if they are some that are meant.
    fn cut_if(&self, is_meant: impl Fn(&Arc<Facts>) -> bool) -> Result<()> {
        let mut contents = self.contents.write().unwrap_or_else(PoisonError::into_inner);
        let is_empty = contents.live.len() == 0 && lock(&self.order).number == contents.cut_number;
        if is_empty || !is_meant(&contents.live) {
            return Ok(());
        }
        let fresh = Arc::new(Facts::new(&[])?);
        // No batch is under way from here on, and each that was is in the facts and in the order.
        contents.live.close();
        // Only now: a batch that was under way may have brought a dimension.
        let dimensions: Vec<Dimension> =
            contents.live.columns().iter().map(DimensionColumn::dimension).collect();
        fresh.discover(&dimensions).expect("the facts before had as many");
        let facts = std::mem::replace(&mut contents.live, fresh);
        let order = lock(&self.order).clone();
        contents.cut_number = order.number;
        contents.cut.push(CutFacts { facts, order });
        Ok(())
    }

    /// Makes segments of the live facts, while rows go on into fresh ones. Queries see each fact once meanwhile.
    ///
    /// Without files, segments take a fraction of the memory of live facts.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sapwood::rollup::{Dimension, Metric, Rollup, RowBatch, Schema, Writer};
    ///
    /// let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// let rollup = Arc::new(Rollup::new(schema)?);
    /// let (batch, _) = RowBatch::from_json_lines(br#"{"time": "2013-01-01", "page": "Oak"}"#);
    /// Writer::new(&rollup).ingest(&batch)?;
    /// assert_eq!(rollup.seal()?.facts, 1);
    /// assert_eq!((rollup.stats().facts, rollup.stats().segments), (0, 1));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`]: the facts stay, and the next call tries again, as far as the disk is to be believed
    /// ([`Error::Failed`]). [`Error::Io`] among changes that go together, too.
    pub fn seal(&self) -> Result<Sealed> {
        self.cut_apart(|_| true)?;
        self.seal_cut()
    }

    /// Seals live facts that have no room for a batch, unless another thread has by now, and merges where that is
    /// due. The thread that brings rows does it, so that rows do not come faster than they can be sealed.
    pub(crate) fn make_room(&self, full: &Arc<Facts>) -> Result<()> {
        self.cut_apart(|live| Arc::ptr_eq(live, full))?;
        self.seal_cut()?;
        self.merge().map(drop)
    }

    /// Ends the live facts at a moment that no changes that go together are cut by. No lock may be held: the thread
    /// that makes such changes may wait for it.
    fn cut_apart(&self, is_meant: impl Fn(&Arc<Facts>) -> bool) -> Result<()> {
        let Some(log) = self.log.get() else { return self.cut_if(is_meant) };
        let mut cut = Ok(());
        let done = log.apart(&mut || cut = self.cut_if(&is_meant));
        done.map_err(|cause| Error::io("seal facts", &cause)).and(cut)
    }

    /// Makes segments of facts that were [cut](Self::cut) before.
    ///
    /// # Errors
    /// As of [`seal`](Self::seal).
    pub fn seal_cut(&self) -> Result<Sealed> {
        let store = &mut *lock(&self.store);
        self.expect_sound()?;
        let Contents { live, cut, segments, .. } = self.contents();
        let Some(last) = cut.last() else { return Ok(Sealed::default()) };
        let mut made = Vec::new();
        for CutFacts { facts, .. } in &cut {
            made.extend(contents::seal(&self.schema, &self.layout, facts, store)?);
        }
        let sealed = Sealed {
            segments: made.len() as u64,
            facts: made.iter().map(|segment| segment.rows() as u64).sum(),
            bytes: made.iter().map(|segment| segment.bytes()).sum(),
        };
        let all: Vec<Arc<Segment>> = segments.iter().cloned().chain(made).collect();
        let dimensions: Vec<Dimension> =
            live.columns().iter().map(DimensionColumn::dimension).collect();
        let manifest = Manifest::new(&last.order, &dimensions, &all);
        store.publish(manifest, || match self.log.get() {
            // The segments must not have a batch whose predecessors, in any table, are lost.
            Some(log) => log.sync().map_err(|cause| Error::io("sync the log", &cause)),
            None => Ok(()),
        })?;
        let mut contents = self.contents.write().unwrap_or_else(PoisonError::into_inner);
        contents.cut.drain(..cut.len());
        contents.segments = Arc::new(all);
        Ok(sealed)
    }

    /// Merges segments of an interval that has many of them, if there is one: facts of the same time and
    /// dimensions become one. Returns whether it has. To be called again and again, in the background: before it
    /// merges, it drops segments that the schema keeps [no longer](crate::Limits::retention).
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`]; the segments stay as they are.
    pub fn merge(&self) -> Result<bool> {
        if let Some(retention) = self.schema.limits.retention {
            self.drop_before(crate::time::clock().saturating_sub(retention))?;
        }
        self.merge_from(contents::MERGED_FROM)
    }

    /// Merges all segments of an interval that has several, if there is one. Returns whether it has.
    ///
    /// # Errors
    /// As of [`merge`](Self::merge).
    pub fn merge_all(&self) -> Result<bool> {
        self.merge_from(2)
    }

    fn merge_from(&self, from: usize) -> Result<bool> {
        let mut store = lock(&self.store);
        let Contents { live, segments, .. } = self.contents();
        let Some(merged) = contents::to_merge(&segments, from) else { return Ok(false) };
        let dimensions: Vec<Dimension> =
            live.columns().iter().map(DimensionColumn::dimension).collect();
        let made = contents::merge(&self.schema, &self.layout, &dimensions, &merged, &mut store)?;
        let stays = |segment: &&Arc<Segment>| !merged.iter().any(|gone| Arc::ptr_eq(gone, segment));
        let kept = segments.iter().filter(stays).cloned().chain([made]).collect();
        self.replace_segments(&mut store, kept)?;
        Ok(true)
    }

    /// Gives back memory that live facts and dictionaries keep free for more, and tells how many bytes: before a long
    /// rest. Writers that meet new texts wait meanwhile.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sapwood::rollup::{Column, Dimension, Metric, Rollup, RowBatch, Schema, Writer};
    ///
    /// let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// let rollup = Arc::new(Rollup::new(schema)?);
    /// let pages = (0..10_000).map(|number| format!("page {number}"));
    /// let batch = RowBatch::new(10_000)
    ///     .column("time", Column::longs(0..10_000))?
    ///     .column("page", Column::texts(pages))?;
    /// Writer::new(&rollup).ingest(&batch)?;
    /// let given_back = rollup.trim();
    /// assert_eq!(rollup.stats().facts, 10_000);
    /// # println!("{given_back}");
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    pub fn trim(&self) -> u64 {
        let live = self.live();
        let bytes = || {
            let (facts, dictionaries) = live.bytes();
            facts + dictionaries
        };
        let before = bytes();
        live.trim();
        before.saturating_sub(bytes())
    }

    /// Drops all segments whose interval ends at a time, in milliseconds, or before it: how many. Live facts stay.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn drop_before(&self, time: i64) -> Result<u64> {
        let mut store = lock(&self.store);
        let segments = self.contents().segments;
        let kept: Vec<Arc<Segment>> =
            segments.iter().filter(|segment| segment.interval().end > time).cloned().collect();
        let dropped = (segments.len() - kept.len()) as u64;
        if dropped > 0 {
            self.replace_segments(&mut store, kept)?;
        }
        Ok(dropped)
    }

    /// Lets other segments count, which have the same batches.
    fn replace_segments(&self, store: &mut Store, segments: Vec<Arc<Segment>>) -> Result<()> {
        let known = store.manifest();
        let order = Order { number: known.batches, offsets: known.offsets.clone() };
        let dimensions: Vec<Dimension> = known.dimensions().collect();
        store.publish(Manifest::new(&order, &dimensions, &segments), || Ok(()))?;
        let mut contents = self.contents.write().unwrap_or_else(PoisonError::into_inner);
        contents.segments = Arc::new(segments);
        Ok(())
    }

    /// Reads all segments, and tells the first thing that is wrong in each.
    pub fn check(&self) -> Vec<Error> {
        let segments = self.contents().segments;
        segments.iter().filter_map(|segment| segment.check(&self.layout).err()).collect()
    }

    /// Lets no file be made and none go away as long as the answer lives; waits for segments that are being made.
    pub fn hold_files(&self) -> FilesHeld<'_> {
        FilesHeld(lock(&self.store))
    }

    pub(crate) fn contents(&self) -> Contents {
        self.contents.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn live(&self) -> Arc<Facts> {
        Arc::clone(&self.contents.read().unwrap_or_else(PoisonError::into_inner).live)
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

    /// # Errors
    /// [`Error::Failed`] once memory has less than the log.
    pub(crate) fn expect_sound(&self) -> Result<()> {
        match self.failed.get() {
            Some(error) => Err(Error::Failed(error.to_string())),
            None => Ok(()),
        }
    }

    /// Notes that a batch is in the log, and not all of it in memory.
    pub(crate) fn fail(&self, error: &Error) {
        if self.log.get().is_some() {
            self.failed.get_or_init(|| error.clone());
        }
    }

    /// Refuses a batch when live facts have no room.
    pub(crate) fn expect_room(&self, facts: &Facts, bytes: u64) -> Result<()> {
        let Some(max) = self.schema.limits.bytes_max else { return Ok(()) };
        let (map, dictionaries) = facts.bytes();
        let used = map + dictionaries;
        match used + bytes > max {
            true => Err(Error::Full { what: format!("{} bytes", used + bytes), limit: max }),
            false => Ok(()),
        }
    }

    /// Whether a batch with these offsets was taken before.
    ///
    /// # Errors
    /// [`Error::Input`] if some of its sources were taken as far, and others not.
    pub(crate) fn is_taken(&self, offsets: &[(&str, u64)]) -> Result<bool> {
        is_taken(&lock(&self.order), offsets)
    }

    /// Gives a batch its number, and takes it down in the log, where there is one: from here on it is in. False if a
    /// batch with its offsets was taken before. Called within the batch of the facts that it goes to.
    pub(crate) fn take_down(&self, taking: Taking<'_>) -> Result<bool> {
        let mut order = lock(&self.order);
        match taking {
            Taking::New { record, offsets } => {
                if is_taken(&order, offsets)? {
                    return Ok(false);
                }
                let number = order.number + 1;
                if let (Some(log), Some(record)) = (self.log.get(), record) {
                    log::number(record, number);
                    let appended = log.append(record);
                    appended.map_err(|cause| Error::io("append rows to the log", &cause))?;
                }
                order.number = number;
                let offsets =
                    offsets.iter().map(|(source, offset)| ((*source).to_owned(), *offset));
                order.offsets.extend(offsets);
            }
            Taking::Again { number, offsets, .. } => {
                // Batches of changes that went together come behind others with higher numbers.
                order.number = order.number.max(number);
                for (source, offset) in offsets {
                    let taken = order.offsets.entry(source.clone()).or_insert(*offset);
                    *taken = (*taken).max(*offset);
                }
            }
        }
        Ok(true)
    }

    /// Whether batches are taken down in a log.
    pub(crate) fn is_logged(&self) -> bool {
        self.log.get().is_some()
    }

    /// Whether a batch of a number is in a segment.
    pub(crate) fn has_sealed(&self, number: u64) -> bool {
        number <= self.sealed_batches()
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

/// How a batch is taken down.
pub(crate) enum Taking<'t> {
    /// For the first time, with its record where there is a log.
    New { record: Option<&'t mut Vec<u8>>, offsets: &'t [(&'t str, u64)] },
    /// As the log tells it, once the batches before it are in.
    Again { number: u64, offsets: &'t [(String, u64)], turn: &'t mut dyn FnMut() },
}

impl Taking<'_> {
    /// Waits until the batches are in that the log has before this one.
    pub(crate) fn wait_for_turn(&mut self) {
        if let Taking::Again { turn, .. } = self {
            turn();
        }
    }
}

fn is_taken(order: &Order, offsets: &[(&str, u64)]) -> Result<bool> {
    let is_taken = |(source, offset): &(&str, u64)| {
        order.offsets.get(*source).is_some_and(|taken| offset <= taken)
    };
    let taken = offsets.iter().filter(|offset| is_taken(offset)).count();
    match taken {
        0 => Ok(false),
        all if all == offsets.len() => Ok(true),
        _ => Err(Error::Input(format!(
            "{taken} of the {} offsets of a batch were taken before: bring the rows of each source from the \
             offset on that was taken last",
            offsets.len()
        ))),
    }
}
