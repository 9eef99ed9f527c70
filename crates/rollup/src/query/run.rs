//! How a query runs: over a snapshot, by one thread or several, each with its own groups.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use sapwood_chunkmap::Direction;

use super::answer::{Answer, Shape};
use super::batch::{BATCH_ROWS, FactBatch, Texts};
use super::columns::{Form, Source};
use super::groups::Groups;
use super::plan::Plan;
use super::rows;
use super::{Aggregation, Kind, Query, ScanOrder};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::live::dictionary::Entry;
use crate::live::facts::FactsSnapshot;
use crate::rollup::Rollup;
use crate::schema::TIME_COLUMN;
use crate::time::interval::Interval;
use crate::value::Value;

/// Parts of the work for each thread: what one finishes early it takes from the others.
const PARTS_A_THREAD: usize = 4;

impl Rollup {
    /// Answers a query, over the facts as they are when it begins.
    ///
    /// # Errors
    /// [`Error::Query`] if it does not fit the schema, [`Error::Overflow`] if a figure leaves its type,
    /// [`Error::Cancelled`].
    pub fn query(&self, query: &Query) -> Result<Answer> {
        let snapshot = self.snapshot();
        let run = Run { rollup: self, query, snapshot };
        match &query.kind {
            Kind::Timeseries { .. } | Kind::TopN { .. } | Kind::GroupBy { .. } => run.grouped(),
            Kind::Scan { columns, order, compact } => run.scan(columns, *order, *compact),
            Kind::Search { dimensions, text, case_sensitive } => {
                run.search(dimensions, text, *case_sensitive)
            }
            Kind::TimeBoundary { first, last } => run.time_boundary(*first, *last),
            Kind::SegmentMetadata => run.segment_metadata(),
        }
    }
}

/// A range of keys.
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

struct Run<'r> {
    rollup: &'r Rollup,
    query: &'r Query,
    snapshot: FactsSnapshot,
}

impl Run<'_> {
    fn grouped(&self) -> Result<Answer> {
        let dimensions = self.rollup.columns();
        let layout = self.rollup.layout();
        let plan = Plan::new(self.query, self.rollup.schema(), &dimensions, layout, &[])?;
        let names = rows::names(self.query)?;
        let first = AtomicI64::new(i64::MAX);
        let groups = self.groups(&plan, &first)?;
        // Of all of time the bucket begins where the question does, or the facts do.
        let start = match self.query.intervals.first() {
            Some(interval) if *interval != Interval::ETERNITY => interval.start,
            _ => first.into_inner(),
        };
        rows::answer(self.query, &plan, groups, names, start)
    }

    /// Groups all facts of the intervals. `first` becomes the time of the first.
    fn groups(&self, plan: &Plan<'_>, first: &AtomicI64) -> Result<Groups> {
        let threads = self.query.threads;
        let ranges = self.ranges(if threads == 1 { 1 } else { threads * PARTS_A_THREAD });
        let next = AtomicUsize::new(0);
        let work = || {
            let mut groups = Groups::new(plan.parts.clone(), &plan.figures);
            let mut batch = plan.reader.new_batch();
            while let Some(range) = ranges.get(next.fetch_add(1, Ordering::Relaxed)) {
                let _ = self.each_batch(
                    plan,
                    range,
                    Direction::Ascending,
                    &mut batch,
                    |batch, rows| {
                        if let Some(&row) = rows.first() {
                            first.fetch_min(batch.times[row as usize], Ordering::Relaxed);
                        }
                        let texts = Texts::of(&plan.columns);
                        let masks: Vec<Vec<bool>> = plan
                            .figure_filters
                            .iter()
                            .map(|filter| filter.mask(batch, &texts, plan.layout))
                            .collect();
                        groups.fold(&plan.figures, batch, &texts, rows, &masks)?;
                        Ok(ControlFlow::Continue(()))
                    },
                )?;
            }
            Ok(groups)
        };
        if threads == 1 {
            return work();
        }
        let mut all = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut all = vec![work()];
            all.extend(others.into_iter().map(|thread| match thread.join() {
                Ok(groups) => groups,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
            all
        })
        .into_iter();
        let mut groups = all.next().expect("this thread works, too")?;
        for other in all {
            groups.merge(&other?, &plan.figures)?;
        }
        Ok(groups)
    }

    /// The keys of the intervals, in so many parts about.
    fn ranges(&self, parts: usize) -> Vec<Range> {
        let mut ranges = Vec::new();
        for interval in &self.query.intervals {
            let (low, high) = FactsSnapshot::bounds(*interval);
            let mut low = Bound::Included(low);
            if parts > 1 {
                for key in self.snapshot.split(*interval, parts) {
                    let end = Bound::Excluded(key.clone());
                    ranges.push((std::mem::replace(&mut low, Bound::Included(key)), end));
                }
            }
            ranges.push((low, Bound::Excluded(high)));
        }
        ranges
    }

    /// Hands over the facts of a range in batches, with the rows that the filter takes.
    fn each_batch(
        &self,
        plan: &Plan<'_>,
        range: &Range,
        direction: Direction,
        batch: &mut FactBatch,
        mut each: impl FnMut(&FactBatch, &[u32]) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let cancel = self.query.cancel.as_deref();
        let mut rows = Vec::with_capacity(BATCH_ROWS);
        let mut finish = |batch: &mut FactBatch| -> Result<ControlFlow<()>> {
            if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                return Err(Error::Cancelled);
            }
            rows.clear();
            rows.extend(0..batch.len() as u32);
            if let Some(filter) = &plan.filter {
                let texts = Texts::of(&plan.columns);
                filter.retain(batch, &texts, plan.layout, &mut rows);
            }
            let flow = each(batch, &rows)?;
            batch.clear();
            Ok(flow)
        };
        batch.clear();
        let (low, high) = (range.0.as_ref(), range.1.as_ref());
        let flow = self.snapshot.scan_keys((low, high), direction, &mut |key, state| {
            plan.reader.push(batch, key, state);
            if batch.len() < BATCH_ROWS {
                return ControlFlow::Continue(());
            }
            match finish(batch) {
                Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        })?;
        match flow {
            ControlFlow::Break(Ok(())) => Ok(ControlFlow::Break(())),
            ControlFlow::Break(Err(error)) => Err(error),
            ControlFlow::Continue(()) => finish(batch),
        }
    }

    fn scan(&self, columns: &[String], order: ScanOrder, compact: bool) -> Result<Answer> {
        let dimensions = self.rollup.columns();
        let (schema, layout) = (self.rollup.schema(), self.rollup.layout());
        let mut names = columns.to_vec();
        if names.is_empty() {
            names.push(TIME_COLUMN.to_owned());
            names.extend(dimensions.iter().map(|dimension| dimension.name.clone()));
            names.extend(schema.metrics.iter().map(|metric| metric.name.clone()));
        }
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name))
        {
            return Err(Error::Query(format!("it asks for `{}` twice", twice.1)));
        }
        let plan = Plan::new(self.query, schema, &dimensions, layout, &names)?;
        let places: Vec<Option<(usize, Source)>> = names
            .iter()
            .map(|name| {
                let (source, _) = plan.columns.find(name)?;
                let at = plan.columns.read.iter().position(|(known, _)| *known == source);
                at.map(|at| (at, source))
            })
            .collect();
        let (mut skip, limit) = (self.query.offset, self.query.limit.unwrap_or(usize::MAX));
        let mut found = Vec::new();
        let mut ranges = self.ranges(1);
        let direction = match order {
            ScanOrder::Ascending => Direction::Ascending,
            ScanOrder::Descending => {
                ranges.reverse();
                Direction::Descending
            }
        };
        let mut batch = plan.reader.new_batch();
        for range in &ranges {
            let flow = self.each_batch(&plan, range, direction, &mut batch, |batch, rows| {
                let texts = Texts::of(&plan.columns);
                for &row in rows {
                    if found.len() == limit {
                        return Ok(ControlFlow::Break(()));
                    }
                    if skip > 0 {
                        skip -= 1;
                        continue;
                    }
                    let cell = |place: &Option<(usize, Source)>| match place {
                        None => Value::Null,
                        Some((at, source)) => texts
                            .value_of(batch, *at, row as usize, plan.layout, *source)
                            .into_owned(),
                    };
                    found.push(places.iter().map(cell).collect());
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(Answer::new(names, found, Shape::Scan { compact }, self.query))
    }

    fn search(&self, wanted: &[String], text: &str, case_sensitive: bool) -> Result<Answer> {
        let dimensions = self.rollup.columns();
        let names: Vec<String> = match wanted {
            [] => dimensions.iter().map(|dimension| dimension.name.clone()).collect(),
            wanted => wanted.to_vec(),
        };
        let mut found = Vec::new();
        for name in names {
            let contains =
                Filter::Contains { column: name.clone(), text: text.to_owned(), case_sensitive };
            let test = contains.compile()?;
            let filter = match &self.query.filter {
                Some(filter) => Filter::and([contains, filter.clone()]),
                None => contains,
            };
            let mut query = Query::group_by([name.as_str()])
                .filter(filter)
                .aggregation(Aggregation::count("count"))
                .threads(self.query.threads);
            query.intervals.clone_from(&self.query.intervals);
            query.cancel.clone_from(&self.query.cancel);
            let run = Run { rollup: self.rollup, query: &query, snapshot: self.snapshot.again() };
            for mut row in run.grouped()?.rows {
                // Of several values of a fact only those that contain the text are found.
                if test.matches(&|_| row[1].borrowed()) {
                    row[0] = Value::Text(name.clone().into());
                    found.push(row);
                }
            }
        }
        found.truncate(self.query.limit.unwrap_or(usize::MAX));
        let names = ["dimension", "value", "count"].map(str::to_owned).to_vec();
        Ok(Answer::new(names, found, Shape::Search, self.query))
    }

    fn time_boundary(&self, first: bool, last: bool) -> Result<Answer> {
        let edge = |order: ScanOrder| -> Result<Value<'static>> {
            let mut query = Query::scan([TIME_COLUMN], order).limit(1);
            query.intervals.clone_from(&self.query.intervals);
            query.filter.clone_from(&self.query.filter);
            query.cancel.clone_from(&self.query.cancel);
            let run = Run { rollup: self.rollup, query: &query, snapshot: self.snapshot.again() };
            let answer = run.scan(&[TIME_COLUMN.to_owned()], order, false)?;
            Ok(answer.rows.into_iter().flatten().next().unwrap_or(Value::Null))
        };
        let (mut names, mut row) = (Vec::new(), Vec::new());
        for (wanted, name, order) in
            [(first, "minTime", ScanOrder::Ascending), (last, "maxTime", ScanOrder::Descending)]
        {
            if wanted {
                names.push(name.to_owned());
                row.push(edge(order)?);
            }
        }
        let rows = if row.iter().all(Value::is_null) { Vec::new() } else { vec![row] };
        Ok(Answer::new(names, rows, Shape::TimeBoundary, self.query))
    }

    fn segment_metadata(&self) -> Result<Answer> {
        let dimensions = self.rollup.columns();
        let (schema, layout) = (self.rollup.schema(), self.rollup.layout());
        let all = super::columns::Columns::new(&dimensions, &schema.metrics, layout, false);
        let names: Vec<String> = all.names().map(str::to_owned).collect();
        let plan = Plan::new(self.query, schema, &dimensions, layout, &names)?;
        let mut seen: Vec<Seen> = names.iter().map(|_| Seen::default()).collect();
        let mut count = 0;
        let mut batch = plan.reader.new_batch();
        for range in &self.ranges(1) {
            let _ =
                self.each_batch(&plan, range, Direction::Ascending, &mut batch, |batch, rows| {
                    let texts = Texts::of(&plan.columns);
                    count += rows.len() as i64;
                    for (at, ((source, form), seen)) in
                        plan.columns.read.iter().zip(&mut seen).enumerate()
                    {
                        for &row in rows {
                            if let (Form::Ids, super::batch::FactColumn::Ids(ids)) =
                                (form, &batch.columns[at])
                            {
                                seen.see_id(ids[row as usize], texts.entries(at));
                            } else {
                                let row = row as usize;
                                seen.see(&texts.value_of(batch, at, row, plan.layout, *source));
                            }
                        }
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
        }
        let texts = Texts::of(&plan.columns);
        let mut found = Vec::with_capacity(names.len());
        for (at, ((name, seen), (_, form))) in
            names.into_iter().zip(&seen).zip(&plan.columns.read).enumerate()
        {
            let (kind, cardinality) = match form {
                Form::Ids => ("STRING", Value::Long(seen.ids.len() as i64)),
                Form::Long | Form::TimedLong => ("LONG", Value::Null),
                Form::Double | Form::TimedDouble => ("DOUBLE", Value::Null),
                Form::Sketch => ("SKETCH", Value::Null),
            };
            let mut known: Vec<Value<'_>> =
                seen.ids.iter().map(|id| texts.value(at, *id)).collect();
            known.sort_by(Value::compare);
            let least = known.first().map(Value::borrowed).or_else(|| seen.least.clone());
            let greatest = known.last().map(Value::borrowed).or_else(|| seen.greatest.clone());
            found.push(vec![
                Value::Text(name.into()),
                Value::text(kind),
                flag(seen.multiple),
                flag(seen.null),
                cardinality,
                least.unwrap_or(Value::Null).into_owned(),
                greatest.unwrap_or(Value::Null).into_owned(),
            ]);
        }
        let columns = ["column", "type", "hasMultipleValues", "hasNulls", "cardinality"];
        let columns = columns.iter().chain(&["minValue", "maxValue"]);
        let columns = columns.map(|&name| name.to_owned()).collect();
        let shape = Shape::SegmentMetadata { facts: count };
        Ok(Answer::new(columns, found, shape, self.query))
    }
}

fn flag(is_true: bool) -> Value<'static> {
    Value::text(if is_true { "true" } else { "false" })
}

/// What was seen in a column.
#[derive(Debug, Default)]
struct Seen {
    ids: BTreeSet<u32>,
    multiple: bool,
    null: bool,
    least: Option<Value<'static>>,
    greatest: Option<Value<'static>>,
}

impl Seen {
    fn see_id(&mut self, id: u32, entries: &crate::live::dictionary::Entries) {
        match entries.entry(id) {
            Entry::Null => self.null = true,
            Entry::Text(_) => drop(self.ids.insert(id)),
            Entry::List(ids) => {
                self.multiple = true;
                ids.iter().for_each(|id| self.see_id(id, entries));
            }
        }
    }

    fn see(&mut self, value: &Value<'_>) {
        if value.is_null() {
            self.null = true;
            return;
        }
        if self.least.as_ref().is_none_or(|least| value.compare(least).is_lt()) {
            self.least = Some(value.clone().into_owned());
        }
        if self.greatest.as_ref().is_none_or(|greatest| value.compare(greatest).is_gt()) {
            self.greatest = Some(value.clone().into_owned());
        }
    }
}
