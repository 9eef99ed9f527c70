//! How a query runs: over all places of facts, by one thread or several, each with its own groups.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Instant;

use sapwood_chunkmap::Direction;

use super::answer::{Answer, Shape};
use super::batch::{FactBatch, FactColumn, Texts, Words};
use super::columns::{Columns, Form, Source};
use super::groups::{Groups, Numbers};
use super::ordered::each_run;
use super::plan::Plan;
use super::rows;
use super::source::{BoundPlace, Part, Place, places};
use super::{Aggregation, Kind, Query, ScanForm, ScanOrder};
use crate::contents::numbered;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::live::dictionary::{Dictionary, Entry};
use crate::rollup::Rollup;
use crate::schema::{Dimension, DimensionKind, TIME_COLUMN};
use crate::time::interval::Interval;
use crate::value::Value;

/// Parts of the work for each thread: what one finishes early it takes from the others.
const PARTS_A_THREAD: usize = 4;

impl Rollup {
    /// Answers a query, over the facts as they are when it begins.
    ///
    /// # Errors
    /// [`Error::Query`] if it does not fit the schema, [`Error::Overflow`] if a figure leaves its type,
    /// [`Error::Corrupt`] if a segment is damaged, [`Error::Cancelled`], [`Error::Timeout`].
    pub fn query(&self, query: &Query) -> Result<Answer> {
        // A time beyond the clock's end never comes.
        let deadline = query.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let contents = self.contents();
        let live = std::sync::Arc::clone(&contents.live);
        let places = places(contents, &query.intervals);
        // After the snapshots: no fact of them has a dimension that came later.
        let dimensions: Vec<Dimension> =
            live.columns().iter().map(|column| column.dimension()).collect();
        let run = Run { rollup: self, query, deadline, places: &places, dimensions: &dimensions };
        // A query that reads no fact may be over, too.
        run.expect_wanted()?;
        run.answer()
    }
}

struct Run<'r> {
    rollup: &'r Rollup,
    query: &'r Query,
    /// When its time is over.
    deadline: Option<Instant>,
    places: &'r [Place],
    /// All that there are, wherever facts have them.
    dimensions: &'r [Dimension],
}

impl<'r> Run<'r> {
    fn answer(&self) -> Result<Answer> {
        match &self.query.kind {
            Kind::Timeseries { .. } | Kind::TopN { .. } | Kind::GroupBy { .. } => self.grouped(),
            Kind::Scan { columns, order, form } => self.scan(columns, *order, *form),
            Kind::Search { dimensions, text, case_sensitive } => {
                self.search(dimensions, text, *case_sensitive)
            }
            Kind::TimeBoundary { first, last } => self.time_boundary(*first, *last),
            Kind::SegmentMetadata => self.segment_metadata(),
        }
    }

    /// The same facts, until the same time, for another query.
    fn with<'o>(&'o self, query: &'o Query) -> Run<'o> {
        Run { query, ..*self }
    }

    fn plan(&self, more: &[String]) -> Result<Plan<'r>> {
        let (schema, layout) = (self.rollup.schema(), self.rollup.layout());
        Plan::new(self.query, schema, self.dimensions, layout, more)
    }

    /// Those that have facts, as a plan reads them; one that has none, where all are empty.
    fn bind<'p>(&self, plan: &'p Plan<'p>) -> Result<Vec<BoundPlace<'p>>>
    where
        'r: 'p,
    {
        let numbered = numbered(self.rollup.schema());
        let bind = |place: &'r Place| BoundPlace::new(place, plan, numbered);
        let full = self.places.iter().filter(|place| !place.is_empty());
        let bound: Vec<BoundPlace<'p>> = full.map(bind).collect::<Result<_>>()?;
        match (bound.is_empty(), self.places.first()) {
            (true, Some(empty)) => Ok(vec![bind(empty)?]),
            _ => Ok(bound),
        }
    }

    fn grouped(&self) -> Result<Answer> {
        let plan = self.plan(&[])?;
        let names = rows::names(self.query)?;
        let bound = self.bind(&plan)?;
        let first = AtomicI64::new(i64::MAX);
        let start = |first: AtomicI64| match self.query.intervals.first() {
            // Of all of time the bucket begins where the question does, or the facts do.
            Some(interval) if *interval != Interval::ETERNITY => interval.start,
            _ => first.into_inner(),
        };
        if let [one] = &bound[..] {
            let groups = self.groups(&plan, &bound, &Numbers::default, &first)?;
            let texts = one.place().texts(&plan.columns)?;
            return rows::answer(self.query, &plan, &texts, groups, names, start(first));
        }
        // Each place has numbers of its own: the query has others, for the texts that it finds.
        let dictionaries: Vec<Dictionary> =
            plan.columns.read.iter().map(|_| Dictionary::default()).collect();
        let groups = self.groups(&plan, &bound, &|| Numbers::others(&dictionaries), &first)?;
        let words = plan.columns.read.iter().zip(&dictionaries).map(|((_, form), dictionary)| {
            (*form == Form::Ids).then(|| Words::Live(dictionary.read()))
        });
        let texts = Texts::new(words.collect());
        rows::answer(self.query, &plan, &texts, groups, names, start(first))
    }

    /// Groups all facts of the intervals. `first` becomes the time of the first.
    fn groups<'n>(
        &self,
        plan: &Plan<'_>,
        bound: &[BoundPlace<'_>],
        numbers: &(dyn Fn() -> Numbers<'n> + Sync),
        first: &AtomicI64,
    ) -> Result<Groups> {
        let threads = self.query.threads;
        let parts = if threads == 1 { 1 } else { threads * PARTS_A_THREAD };
        let mut works: Vec<(usize, Part)> = Vec::new();
        for (at, bound) in bound.iter().enumerate() {
            let parts = bound.place().parts(&self.query.intervals, parts)?;
            works.extend(parts.into_iter().map(|part| (at, part)));
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut groups = Groups::new(plan.parts.clone(), &plan.figures);
            let mut batch = FactBatch::new(&plan.columns);
            // Of the place of the last part: no other one comes again.
            let mut known: Option<(usize, Numbers<'n>)> = None;
            while let Some((at, part)) = works.get(next.fetch_add(1, Ordering::Relaxed)) {
                let bound = &bound[*at];
                let (_, numbers) = match &mut known {
                    Some(known) if known.0 == *at => known,
                    known => known.insert((*at, numbers())),
                };
                bound.each_batch(part, &mut batch, &|| self.expect_wanted(), |batch, rows| {
                    if let Some(&row) = rows.first() {
                        first.fetch_min(batch.times[row as usize], Ordering::Relaxed);
                    }
                    let texts = bound.place().texts(&plan.columns)?;
                    let masks = bound.masks(batch, &texts);
                    groups.fold(&plan.figures, batch, &texts, rows, &masks, numbers)
                })?;
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

    /// # Errors
    /// [`Error::Cancelled`], [`Error::Timeout`].
    fn expect_wanted(&self) -> Result<()> {
        if self.query.cancel.as_deref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Error::Cancelled);
        }
        match self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            true => Err(Error::Timeout),
            false => Ok(()),
        }
    }

    fn scan(&self, columns: &[String], order: ScanOrder, form: ScanForm) -> Result<Answer> {
        let mut names = columns.to_vec();
        if names.is_empty() {
            names.push(TIME_COLUMN.to_owned());
            let metrics = self.rollup.schema().metrics.iter().map(|metric| &metric.name);
            let columns = self.dimensions.iter().map(|dimension| &dimension.name).chain(metrics);
            let virtuals = self.query.virtual_columns.iter().map(|column| &column.name);
            let is_hidden = |name: &&String| virtuals.clone().any(|known| known == *name);
            names.extend(virtuals.clone().cloned());
            names.extend(columns.filter(|name| !is_hidden(name)).cloned());
        }
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name))
        {
            return Err(Error::Query(format!("it asks for `{}` twice", twice.1)));
        }
        let plan = self.plan(&names)?;
        let columns: Vec<Option<(usize, Source)>> = names
            .iter()
            .map(|name| {
                let (source, _) = plan.columns.find(name)?;
                let at = plan.columns.read.iter().position(|(known, _)| *known == source);
                at.map(|at| (at, source))
            })
            .collect();
        let (mut skip, limit) = (self.query.offset, self.query.limit.unwrap_or(usize::MAX));
        let mut found = Vec::new();
        let direction = match order {
            ScanOrder::Ascending => Direction::Ascending,
            ScanOrder::Descending => Direction::Descending,
        };
        let bound = self.bind(&plan)?;
        let (intervals, wanted) = (&self.query.intervals, || self.expect_wanted());
        each_run(&bound, intervals, direction, wanted, |place, batch, rows| {
            let texts = place.texts(&plan.columns)?;
            let skipped = skip.min(rows.len());
            skip -= skipped;
            for &row in rows[skipped..].iter().take(limit - found.len()) {
                let cell = |column: &Option<(usize, Source)>| match column {
                    None => Value::Null,
                    Some((at, source)) => {
                        texts.value_of(batch, *at, row as usize, plan.layout, *source).into_owned()
                    }
                };
                found.push(columns.iter().map(cell).collect());
            }
            Ok(match found.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        let kinds = names.iter().map(|name| plan.columns.kind(name)).collect();
        let shape = Shape::Scan { form, begin: self.query.offset };
        Ok(Answer::new(names, kinds, found, shape, self.query))
    }

    fn search(&self, wanted: &[String], text: &str, case_sensitive: bool) -> Result<Answer> {
        let names: Vec<String> = match wanted {
            [] => self.dimensions.iter().map(|dimension| dimension.name.clone()).collect(),
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
            query.virtual_columns.clone_from(&self.query.virtual_columns);
            for mut row in self.with(&query).grouped()?.rows {
                // Of several values of a fact only those that contain the text are found.
                if test.matches(&|_| row[1].borrowed()) {
                    row[0] = Value::Text(name.clone().into());
                    found.push(row);
                }
            }
        }
        found.truncate(self.query.limit.unwrap_or(usize::MAX));
        let names = ["dimension", "value", "count"].map(str::to_owned).to_vec();
        // Values may be those of dimensions of several kinds.
        let kinds = vec![Some(DimensionKind::Text), None, Some(DimensionKind::Long)];
        Ok(Answer::new(names, kinds, found, Shape::Search, self.query))
    }

    fn time_boundary(&self, first: bool, last: bool) -> Result<Answer> {
        let edge = |order: ScanOrder| -> Result<Value<'static>> {
            let mut query = Query::scan([TIME_COLUMN], order).limit(1);
            query.intervals.clone_from(&self.query.intervals);
            query.filter.clone_from(&self.query.filter);
            query.cancel.clone_from(&self.query.cancel);
            query.virtual_columns.clone_from(&self.query.virtual_columns);
            let answer =
                self.with(&query).scan(&[TIME_COLUMN.to_owned()], order, ScanForm::List)?;
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
        let kinds = vec![Some(DimensionKind::Long); names.len()];
        Ok(Answer::new(names, kinds, rows, Shape::TimeBoundary, self.query))
    }

    fn segment_metadata(&self) -> Result<Answer> {
        let (schema, layout) = (self.rollup.schema(), self.rollup.layout());
        let all = Columns::new(self.dimensions, &schema.metrics, layout, &[], false);
        let names: Vec<String> = all.names().map(str::to_owned).collect();
        let plan = self.plan(&names)?;
        let mut seen: Vec<Seen> = names.iter().map(|_| Seen::default()).collect();
        let mut count = 0;
        let mut batch = FactBatch::new(&plan.columns);
        for bound in &self.bind(&plan)? {
            let mut ids: Vec<BTreeSet<u32>> = names.iter().map(|_| BTreeSet::new()).collect();
            for part in bound.place().parts(&self.query.intervals, 1)? {
                bound.each_batch(&part, &mut batch, &|| self.expect_wanted(), |batch, rows| {
                    let texts = bound.place().texts(&plan.columns)?;
                    count += rows.len() as i64;
                    for (at, (source, _)) in plan.columns.read.iter().enumerate() {
                        for row in rows.iter().map(|row| *row as usize) {
                            match &batch.columns[at] {
                                FactColumn::Ids(known) => drop(ids[at].insert(known[row])),
                                _ => seen[at].see(&texts.value_of(
                                    batch,
                                    at,
                                    row,
                                    plan.layout,
                                    *source,
                                )),
                            }
                        }
                    }
                    Ok(())
                })?;
            }
            let texts = bound.place().texts(&plan.columns)?;
            for (at, ids) in ids.iter().enumerate() {
                ids.iter().for_each(|id| seen[at].see_word(*id, texts.words(at)));
            }
        }
        let mut found = Vec::with_capacity(names.len());
        for ((name, seen), (_, form)) in names.into_iter().zip(seen).zip(&plan.columns.read) {
            let (kind, cardinality) = match form {
                Form::Ids => ("STRING", Value::Long(seen.texts.len() as i64)),
                Form::Long | Form::TimedLong => ("LONG", Value::Null),
                Form::Double | Form::TimedDouble => ("DOUBLE", Value::Null),
                Form::Sketch => ("SKETCH", Value::Null),
            };
            let text = |text: Option<&String>| text.map(|text| Value::Text(text.clone().into()));
            let least = text(seen.texts.first()).or(seen.least);
            let greatest = text(seen.texts.last()).or(seen.greatest);
            found.push(vec![
                Value::Text(name.into()),
                Value::text(kind),
                flag(seen.multiple),
                flag(seen.null),
                cardinality,
                least.unwrap_or(Value::Null),
                greatest.unwrap_or(Value::Null),
            ]);
        }
        let columns = [
            ("column", Some(DimensionKind::Text)),
            ("type", Some(DimensionKind::Text)),
            ("hasMultipleValues", Some(DimensionKind::Text)),
            ("hasNulls", Some(DimensionKind::Text)),
            ("cardinality", Some(DimensionKind::Long)),
            ("minValue", None),
            ("maxValue", None),
        ];
        let (columns, kinds) =
            columns.map(|(name, kind)| (name.to_owned(), kind)).into_iter().unzip();
        let shape = Shape::SegmentMetadata { facts: count };
        Ok(Answer::new(columns, kinds, found, shape, self.query))
    }
}

fn flag(is_true: bool) -> Value<'static> {
    Value::text(if is_true { "true" } else { "false" })
}

/// What was seen in a column.
#[derive(Debug, Default)]
struct Seen {
    texts: BTreeSet<String>,
    multiple: bool,
    null: bool,
    least: Option<Value<'static>>,
    greatest: Option<Value<'static>>,
}

impl Seen {
    fn see_word(&mut self, id: u32, words: &Words<'_>) {
        match words.entry(id) {
            Entry::Null => self.null = true,
            Entry::Text(text) => {
                if !self.texts.contains(text) {
                    self.texts.insert(text.to_owned());
                }
            }
            Entry::List(ids) => {
                self.multiple = true;
                ids.iter().for_each(|id| self.see_word(id, words));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::input::batch::{Column, RowBatch};
    use crate::query::TopNMetric;
    use crate::schema::{Metric, Schema};
    use crate::time::granularity::Granularity;
    use crate::writer::Writer;

    /// Each kind, of facts that no query takes.
    fn kinds() -> Vec<Query> {
        let none = Filter::equal("d", "none");
        [
            Query::timeseries(Granularity::ALL),
            Query::group_by(["d"]).threads(2),
            Query::top_n("d", TopNMetric::Dimension, 1),
            Query::scan(["d"], ScanOrder::Descending),
            Query::search(["d"], "none"),
            Query::time_boundary(),
            Query::segment_metadata(),
        ]
        .map(|query| query.filter(none.clone()))
        .into()
    }

    #[test]
    fn the_time_is_looked_at_between_batches() {
        let schema = Schema::new("t").dimension(Dimension::text("d")).metric(Metric::count("n"));
        for is_sealed in [false, true] {
            let rollup = Arc::new(Rollup::new(schema.clone()).expect("it fits"));
            let batch = RowBatch::new(5_000).column("t", Column::longs(0..5_000));
            let batch = batch.and_then(|it| it.column("d", Column::texts(vec!["x"; 5_000])));
            Writer::new(&rollup).ingest(&batch.expect("as long")).expect("room");
            if is_sealed {
                rollup.seal().expect("it is sealed");
            }
            for query in kinds() {
                let contents = rollup.contents();
                let dimensions: Vec<Dimension> =
                    contents.live.columns().iter().map(|column| column.dimension()).collect();
                let places = places(contents, &query.intervals);
                let run = |deadline| {
                    let (query, places, dimensions) = (&query, &places[..], &dimensions[..]);
                    Run { rollup: &rollup, query, deadline, places, dimensions }.answer()
                };
                assert!(run(None).is_ok(), "{query:?}");
                // What `Rollup::query` looks at before the first batch is left out.
                assert_eq!(run(Some(Instant::now())), Err(Error::Timeout), "{query:?}");
            }
        }
    }
}
