//! Facts as Parquet: a file for each interval of the segment granularity, which any engine reads.
//!
//! | column | type |
//! |---|---|
//! | `__time` | `TIMESTAMP(MILLIS, UTC)` |
//! | dimension of texts | `STRING`; `LIST` of them, if a fact of the table has several |
//! | dimension of longs, of doubles | `INT64`, `DOUBLE` |
//! | count, sum, least, greatest | `INT64` or `DOUBLE` |
//! | first, last | the same, and `NAME_time`, a `TIMESTAMP(MILLIS, UTC)` |
//! | distinct | `INT64`, the estimate; and `NAME_state`, `BINARY` |
//! | quantiles, KLL | `DOUBLE`, the median; and `NAME_state`, `BINARY` |
//! | HLL, theta | `DOUBLE`, the estimate; and `NAME_state`, `BINARY` |
//! | variance | `DOUBLE`, that of all there are; and `NAME_count` (`INT64`), `NAME_mean`, `NAME_m2` (`DOUBLE`) |
//!
//! So the column with the name of a metric is a figure, that of a scan but for sketches of Apache DataSketches, and
//! those beside it are what merges. States are those of `docs/design/aggregate.md`, or those sketches. A name that is taken gets an underscore at its end.
//!
//! All files of an export have the same columns, in the same order: a dimension that an interval lacks is null there.
//! Rows are in the order of their times. Each file says in its metadata which schema and interval it is of.
//!
//! A file has another name until it is whole and synced.

mod columns;
mod file;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sapwood_chunkmap::Direction;
use sapwood_disk::Disk;

use crate::contents::numbered;
use crate::error::{Error, Result};
use crate::live::facts::FactsSnapshot;
use crate::query::batch::Words;
use crate::query::columns::{Columns, Form, Source};
use crate::query::ordered::each_run;
use crate::query::plan::Plan;
use crate::query::source::{BoundPlace, Place, places};
use crate::query::{Query, ScanOrder};
use crate::rollup::Rollup;
use crate::schema::{Dimension, DimensionKind, TIME_COLUMN};
use crate::time::TIME_END;
use crate::time::interval::Interval;
use columns::{Batches, Shape};
use file::ParquetWriter;

/// How facts are written as Parquet.
#[derive(Debug, Clone, Default)]
pub struct ParquetOptions {
    lists: Vec<String>,
    cancel: Option<Arc<AtomicBool>>,
    keeps_files: bool,
}

impl ParquetOptions {
    /// Dimensions of texts that are lists even if no fact has several values by now. By default those are that have
    /// one. To be given where files of several exports are read as one table.
    #[must_use]
    pub fn lists<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> ParquetOptions {
        self.lists.extend(names.into_iter().map(Into::into));
        self
    }

    /// Ends with [`Error::Cancelled`] soon after the flag is set. Files that were done by then stay.
    #[must_use]
    pub fn cancelled_by(mut self, flag: Arc<AtomicBool>) -> ParquetOptions {
        self.cancel = Some(flag);
        self
    }

    /// Keeps files that are there: where one has the name of a file that would be written, none is
    /// ([`Error::Io`] of the kind `AlreadyExists`). By default such a file is replaced.
    #[must_use]
    pub fn keep_files(mut self) -> ParquetOptions {
        self.keeps_files = true;
        self
    }

    /// # Errors
    /// [`Error::Io`] where a file would be replaced.
    fn expect_absent(&self, disk: &dyn Disk, names: &[(Interval, String)]) -> Result<()> {
        if !self.keeps_files {
            return Ok(());
        }
        let there = disk.list();
        let there = there.map_err(|cause| Error::io(format!("list {}", disk.place()), &cause))?;
        match names.iter().find(|(_, name)| there.contains(name)) {
            None => Ok(()),
            Some((_, name)) => {
                let cause = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
                Err(Error::io(format!("write {name} to {}", disk.place()), &cause))
            }
        }
    }

    /// # Errors
    /// [`Error::Cancelled`].
    fn expect_wanted(&self) -> Result<()> {
        match self.cancel.as_deref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }
}

/// A Parquet file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetFile {
    /// Its name in the folder.
    pub name: String,
    /// The interval whose facts it has.
    pub interval: Interval,
    /// How many facts.
    pub facts: u64,
    /// Its length.
    pub bytes: u64,
}

impl Rollup {
    /// Writes all facts, live ones too, as they are when it begins: a Parquet file for each interval of the segment
    /// granularity that has some, called `NAME_START_END.parquet`. A file of that name gives way once the new one is
    /// whole, unless it is to be [kept](ParquetOptions::keep_files); others stay.
    ///
    /// Facts of the same time and dimensions in several segments, or in one and among live facts, are several rows, as
    /// in a scan: [`seal`](Rollup::seal) and [`merge_all`](Rollup::merge_all) before make them one.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`], [`Error::Cancelled`]: files that are done stay. [`Error::Query`] if the
    /// options name a dimension that has no texts, [`Error::Schema`] if no document says what the schema does.
    pub fn write_parquet(
        &self,
        disk: &dyn Disk,
        name: &str,
        options: &ParquetOptions,
    ) -> Result<Vec<ParquetFile>> {
        let contents = self.contents();
        let live = Arc::clone(&contents.live);
        let places = places(contents, &[Interval::ETERNITY]);
        // After the snapshots: no fact of them has a dimension that came later.
        let dimensions: Vec<Dimension> =
            live.columns().iter().map(|column| column.dimension()).collect();
        let metrics = self.schema().metrics();
        let names: Vec<String> = std::iter::once(TIME_COLUMN)
            .chain(dimensions.iter().map(|dimension| dimension.name.as_str()))
            .chain(metrics.iter().map(|metric| metric.name.as_str()))
            .map(str::to_owned)
            .collect();
        let query = Query::scan([], ScanOrder::Ascending);
        let plan = Plan::new(&query, self.schema(), &dimensions, self.layout(), &names)?;
        let lists = lists(&places, &plan.columns, &dimensions, options)?;
        let shape = Shape::new(&names, &plan, metrics, &lists);
        let about = [("schema", self.schema().to_json()?)];
        let intervals = self.intervals(&places)?.into_iter();
        let named = intervals.map(|interval| (interval, file_name(name, interval)));
        let named: Vec<_> = named.collect();
        options.expect_absent(disk, &named)?;
        let mut written = Vec::new();
        for (interval, name) in named {
            let about = about.iter().cloned().chain([("interval", interval.to_string())]);
            let mut writer = ParquetWriter::create(disk, &name, &shape, about)?;
            let facts =
                self.write_interval(&places, &plan, &shape, interval, &mut writer, options)?;
            let bytes = writer.finish()?;
            written.push(ParquetFile { name, interval, facts, bytes });
        }
        let synced = disk.sync();
        synced.map_err(|cause| Error::io(format!("sync {}", disk.place()), &cause))?;
        Ok(written)
    }

    /// Writes the facts of an interval: how many.
    fn write_interval(
        &self,
        places: &[Place],
        plan: &Plan<'_>,
        shape: &Shape<'_>,
        interval: Interval,
        writer: &mut ParquetWriter<'_>,
        options: &ParquetOptions,
    ) -> Result<u64> {
        let overlaps = |place: &&Place| match place {
            Place::Live { .. } => !place.is_empty(),
            Place::Segment(segment) => {
                let own = segment.interval();
                own.start < interval.end && interval.start < own.end
            }
        };
        let numbered = numbered(self.schema());
        let bound = places.iter().filter(overlaps);
        let bound = bound.map(|place| BoundPlace::new(place, plan, numbered));
        let bound: Vec<BoundPlace<'_>> = bound.collect::<Result<_>>()?;
        let mut batches = Batches::new(shape);
        let (intervals, wanted) = ([interval], || options.expect_wanted());
        each_run(&bound, &intervals, Direction::Ascending, wanted, |place, batch, rows| {
            let texts = place.texts(&plan.columns)?;
            for &row in rows {
                batches.push(batch, &texts, row as usize)?;
                if batches.is_full() {
                    writer.write(&batches.take())?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if !batches.is_empty() {
            writer.write(&batches.take())?;
        }
        Ok(batches.rows_taken())
    }

    /// The intervals that have facts, ascending; those that overlap are one.
    fn intervals(&self, places: &[Place]) -> Result<Vec<Interval>> {
        let mut found = BTreeSet::new();
        for place in places {
            match place {
                Place::Segment(segment) => {
                    found.insert((segment.interval().start, segment.interval().end));
                }
                Place::Live { snapshot, .. } => {
                    let mut from = Interval::ETERNITY;
                    while let Some(time) = first_time(snapshot, from)? {
                        let bucket = self.schema().segment_granularity.bucket(time);
                        found.insert(bucket);
                        from.start = bucket.1;
                    }
                }
            }
        }
        let mut intervals: Vec<Interval> = Vec::with_capacity(found.len());
        for (start, end) in found {
            match intervals.last_mut() {
                // The rules of a time zone were others when older segments were made.
                Some(last) if start < last.end => last.end = last.end.max(end),
                _ => intervals.push(Interval { start, end }),
            }
        }
        Ok(intervals)
    }
}

/// The first time of the live facts of an interval.
fn first_time(snapshot: &FactsSnapshot, interval: Interval) -> Result<Option<i64>> {
    use std::ops::Bound::{Excluded, Included};

    if interval.start >= TIME_END {
        return Ok(None);
    }
    let (low, high) = FactsSnapshot::bounds(interval);
    let range = (Included(&low), Excluded(&high));
    let flow = snapshot.scan_keys(range, Direction::Ascending, &mut |key, _| {
        ControlFlow::Break(crate::live::key::Parts::new(key).0)
    })?;
    Ok(flow.break_value())
}

/// The dimensions of texts that are lists.
fn lists(
    places: &[Place],
    columns: &Columns<'_>,
    dimensions: &[Dimension],
    options: &ParquetOptions,
) -> Result<Vec<bool>> {
    let is_text = |name: &String| {
        let found = dimensions.iter().find(|dimension| dimension.name == *name);
        found.is_some_and(|dimension| dimension.kind == DimensionKind::Text)
    };
    if let Some(name) = options.lists.iter().find(|name| !is_text(name)) {
        return Err(Error::Query(format!("there is no dimension of texts `{name}` to be lists")));
    }
    let mut lists: Vec<bool> =
        dimensions.iter().map(|dimension| options.lists.contains(&dimension.name)).collect();
    for place in places {
        let texts = place.texts(columns)?;
        for (column, (source, form)) in columns.read.iter().enumerate() {
            if let (Source::Dimension(number), Form::Ids) = (*source, *form) {
                lists[number] |= match texts.words(column) {
                    Words::Live(entries) => entries.has_lists(),
                    Words::Segment(texts) => texts.has_lists(),
                    Words::None => false,
                };
            }
        }
    }
    Ok(lists)
}

/// The name of the file of an interval, of characters that every file system takes.
fn file_name(name: &str, interval: Interval) -> String {
    format!("{name}_{}_{}.parquet", short_iso(interval.start), short_iso(interval.end))
}

/// A time as ISO 8601 writes it without colons, from the hour on only as far as there is something.
fn short_iso(time: i64) -> String {
    let format = match time {
        _ if time.rem_euclid(1_000) != 0 => "%Y-%m-%dT%H%M%S%.3fZ",
        _ if time.rem_euclid(60_000) != 0 => "%Y-%m-%dT%H%M%SZ",
        _ if time.rem_euclid(3_600_000) != 0 => "%Y-%m-%dT%H%MZ",
        _ => "%Y-%m-%dT%HZ",
    };
    match Timestamp::from_millisecond(time) {
        Ok(stamp) => stamp.to_zoned(TimeZone::UTC).strftime(format).to_string(),
        Err(_) => time.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Granularity;

    #[test]
    fn names_of_files_are_short_and_plain() {
        for (text, expected) in [
            ("2015-09-12/P1D", "edits_2015-09-12T00Z_2015-09-13T00Z.parquet"),
            ("2015-09-12T05:30Z/PT15M", "edits_2015-09-12T0530Z_2015-09-12T0545Z.parquet"),
            ("2015-09-12T05:30:07Z/PT1S", "edits_2015-09-12T053007Z_2015-09-12T053008Z.parquet"),
            (
                "2015-09-12T00:00:00.009Z/2015-09-12T00:00:00.010Z",
                "edits_2015-09-12T000000.009Z_2015-09-12T000000.010Z.parquet",
            ),
        ] {
            let interval = Interval::parse(text).expect("an interval");
            assert_eq!(file_name("edits", interval), expected);
        }
        let (start, end) = Granularity::ALL.bucket(0);
        let all = file_name("edits", Interval { start, end });
        assert_eq!(
            all,
            "edits_0000-01-01T00Z_8919-08-27T053150.656Z.parquet"
                .replace("8919-08-27T053150.656Z", &short_iso(end))
        );
        assert!(all.is_ascii() && !all.contains(':'), "{all}");
    }
}
