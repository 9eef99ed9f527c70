//! The places where a query finds facts: live ones, and segments.
//!
//! What a query reads, how it groups and which figures it makes is the same for all of them (`plan`); the numbers
//! of texts are not, so that filters over texts are bound to each place.

use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;

use roaring::RoaringBitmap;
use sapwood_chunkmap::Direction;

use super::batch::{BATCH_ROWS, FactBatch, FactReader, SegmentReader, Texts, Words};
use super::bound::BoundFilter;
use super::columns::{Columns, Form, Source};
use super::plan::Plan;
use crate::contents::Contents;
use crate::error::Result;
use crate::live::facts::{DimensionColumn, FactsSnapshot};
use crate::segment::{Numbered, Segment};
use crate::time::interval::Interval;

/// Facts that do not change while a query runs.
#[derive(Debug)]
pub(crate) enum Place {
    Live {
        snapshot: FactsSnapshot,
        /// With all dimensions that the facts of the snapshot have.
        columns: Arc<Vec<DimensionColumn>>,
    },
    Segment(Arc<Segment>),
}

/// What is called before each batch is read, and may end the query.
pub(crate) type Check<'c> = &'c dyn Fn() -> Result<()>;

/// A range of keys.
pub(crate) type Keys = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A part of the facts of a place.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Keys(Keys),
    /// Those of an interval in some blocks.
    Blocks(Range<usize>, Interval),
}

/// A place, and how a query reads it.
#[derive(Debug)]
pub(crate) struct BoundPlace<'p> {
    place: &'p Place,
    plan: &'p Plan<'p>,
    reader: Reader<'p>,
    filter: Option<BoundFilter>,
    figure_filters: Vec<BoundFilter>,
    /// The rows of a segment that the filter may take; all without.
    candidates: Option<RoaringBitmap>,
}

#[derive(Debug)]
enum Reader<'p> {
    Live(FactReader<'p>),
    Segment(SegmentReader),
}

/// The places of all facts, as they are now.
pub(crate) fn places(contents: Contents, intervals: &[Interval]) -> Vec<Place> {
    let facts = contents.cut.iter().map(|cut| &cut.facts).chain([&contents.live]);
    let live = facts.map(|facts| {
        let snapshot = facts.snapshot();
        // After the snapshot: no fact of it has a dimension that came later.
        Place::Live { columns: snapshot.facts().columns(), snapshot }
    });
    let overlaps = |segment: &&Arc<Segment>| {
        let own = segment.interval();
        intervals.iter().any(|interval| interval.start < own.end && own.start < interval.end)
    };
    let live: Vec<Place> = live.collect();
    let segments = contents.segments.iter().filter(overlaps).cloned().map(Place::Segment);
    live.into_iter().chain(segments).collect()
}

impl Place {
    /// Whether it has no facts.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Place::Live { snapshot, .. } => snapshot.facts().len() == 0,
            Place::Segment(_) => false,
        }
    }

    /// The words of the columns of texts that a query reads.
    pub(crate) fn texts<'t>(&'t self, columns: &'t Columns<'_>) -> Result<Texts<'t>> {
        let words = columns.read.iter().map(|(source, form)| {
            let number = match (*source, *form) {
                (Source::Dimension(number), Form::Ids) => number,
                (Source::Virtual(number), Form::Ids) => {
                    return Ok(Some(Words::Live(columns.made_at(number).dictionary().read())));
                }
                _ => return Ok(None),
            };
            let words = match self {
                Place::Live { columns: live, .. } => match live.get(number) {
                    Some(column) => Words::Live(column.dictionary.read()),
                    None => Words::None,
                },
                Place::Segment(segment) => {
                    let wanted = columns.dimension_at(number);
                    match segment.dimension(&wanted.name) {
                        Some((at, kind)) if kind == wanted.kind => {
                            Words::Segment(segment.texts(at)?)
                        }
                        _ => Words::None,
                    }
                }
            };
            Ok(Some(words))
        });
        Ok(Texts::new(words.collect::<Result<_>>()?))
    }

    /// The facts of some intervals, in so many parts about for each.
    pub(crate) fn parts(&self, intervals: &[Interval], parts: usize) -> Result<Vec<Part>> {
        let mut found = Vec::new();
        for interval in intervals {
            match self {
                Place::Live { snapshot, .. } => {
                    let (low, high) = FactsSnapshot::bounds(*interval);
                    let mut low = Bound::Included(low);
                    if parts > 1 {
                        for key in snapshot.split(*interval, parts) {
                            let end = Bound::Excluded(key.clone());
                            let start = std::mem::replace(&mut low, Bound::Included(key));
                            found.push(Part::Keys((start, end)));
                        }
                    }
                    found.push(Part::Keys((low, Bound::Excluded(high))));
                }
                Place::Segment(segment) => {
                    let blocks = segment.blocks_of(*interval)?;
                    let step = blocks.len().div_ceil(parts).max(1);
                    for start in blocks.clone().step_by(step) {
                        let end = blocks.end.min(start + step);
                        found.push(Part::Blocks(start..end, *interval));
                    }
                }
            }
        }
        Ok(found)
    }
}

impl<'p> BoundPlace<'p> {
    pub(crate) fn new(
        place: &'p Place,
        plan: &'p Plan<'p>,
        numbered: Numbered,
    ) -> Result<BoundPlace<'p>> {
        let texts = place.texts(&plan.columns)?;
        let bind =
            |filter: &crate::filter::Compiled| BoundFilter::new(filter, &plan.columns, &texts);
        let filter = plan.filter.as_ref().map(bind);
        let figure_filters = plan.figure_filters.iter().map(bind).collect();
        drop(texts);
        let (reader, candidates) = match place {
            Place::Live { .. } => {
                (Reader::Live(FactReader::new(&plan.columns, plan.layout, numbered)), None)
            }
            Place::Segment(segment) => {
                let reader = SegmentReader::new(&plan.columns, segment);
                let candidates = match &filter {
                    Some(filter) => candidates(segment, &reader, filter)?,
                    None => None,
                };
                (Reader::Segment(reader), candidates)
            }
        };
        Ok(BoundPlace { place, plan, reader, filter, figure_filters, candidates })
    }

    pub(crate) fn place(&self) -> &'p Place {
        self.place
    }

    /// Which rows of a batch each filter of a figure takes.
    pub(crate) fn masks(&self, batch: &FactBatch, texts: &Texts<'_>) -> Vec<Vec<bool>> {
        let mask = |filter: &BoundFilter| filter.mask(batch, texts, self.plan.layout);
        self.figure_filters.iter().map(mask).collect()
    }

    /// Makes the virtual columns of a batch that was read.
    fn make(&self, batch: &mut FactBatch) -> Result<()> {
        for made in &self.plan.columns.made {
            let texts = self.place.texts(&self.plan.columns)?;
            let values = made.values(batch, &texts, self.plan.layout)?;
            drop(texts);
            made.fill(batch, &values)?;
        }
        Ok(())
    }

    /// Leaves those of some rows that the filter takes.
    fn filter(&self, batch: &FactBatch, rows: &mut Vec<u32>) -> Result<()> {
        if let Some(filter) = &self.filter {
            let texts = self.place.texts(&self.plan.columns)?;
            filter.retain(batch, &texts, self.plan.layout, rows);
        }
        Ok(())
    }

    /// Hands over the facts of a part in batches, with the rows that the filter takes.
    pub(crate) fn each_batch(
        &self,
        part: &Part,
        batch: &mut FactBatch,
        check: Check<'_>,
        mut each: impl FnMut(&FactBatch, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let mut rows = Vec::with_capacity(BATCH_ROWS);
        match (part, self.place, &self.reader) {
            (Part::Keys(keys), Place::Live { snapshot, .. }, Reader::Live(reader)) => {
                batch.clear();
                let mut finish = |batch: &mut FactBatch| -> Result<()> {
                    rows.clear();
                    rows.extend(0..batch.len() as u32);
                    check()?;
                    self.make(batch)?;
                    self.filter(batch, &mut rows)?;
                    each(batch, &rows)?;
                    batch.clear();
                    Ok(())
                };
                let range = (keys.0.as_ref(), keys.1.as_ref());
                let flow = snapshot.scan_keys(range, Direction::Ascending, &mut |key, state| {
                    reader.push(batch, key, state);
                    if batch.len() < BATCH_ROWS {
                        return ControlFlow::Continue(());
                    }
                    match finish(batch) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(error) => ControlFlow::Break(error),
                    }
                })?;
                match flow {
                    ControlFlow::Break(error) => Err(error),
                    ControlFlow::Continue(()) => finish(batch),
                }
            }
            (Part::Blocks(blocks, interval), Place::Segment(segment), Reader::Segment(reader)) => {
                for block in blocks.clone() {
                    check()?;
                    if self.read_block(segment, reader, block, *interval, batch, &mut rows)? {
                        each(batch, &rows)?;
                    }
                }
                Ok(())
            }
            _ => unreachable!("a part is one of the place that it is read from"),
        }
    }

    /// Reads a block, and the rows of it that lie in an interval and that the filter takes; false if there are none.
    fn read_block(
        &self,
        segment: &Segment,
        reader: &SegmentReader,
        block: usize,
        interval: Interval,
        batch: &mut FactBatch,
        rows: &mut Vec<u32>,
    ) -> Result<bool> {
        let (first, last) = segment.zone(block)?;
        if last < interval.start || first >= interval.end {
            return Ok(false);
        }
        let count = segment.rows_of(block) as u32;
        rows.clear();
        match &self.candidates {
            None => rows.extend(0..count),
            Some(candidates) => {
                let begin = (block * BATCH_ROWS) as u32;
                rows.extend(candidates.range(begin..begin + count).map(|row| row - begin));
            }
        }
        if rows.is_empty() {
            return Ok(false);
        }
        batch.clear();
        reader.read(segment, block, batch)?;
        if !(interval.contains(first) && interval.contains(last)) {
            rows.retain(|&row| interval.contains(batch.times[row as usize]));
        }
        self.make(batch)?;
        self.filter(batch, rows)?;
        Ok(!rows.is_empty())
    }
}

/// The rows of a segment that have a text that a filter needs, if its bitmaps say it and they are few.
fn candidates(
    segment: &Segment,
    reader: &SegmentReader,
    filter: &BoundFilter,
) -> Result<Option<RoaringBitmap>> {
    let mut all: Option<RoaringBitmap> = None;
    for (column, takes) in filter.needed() {
        let Some(dimension) = reader.dimension(column) else { continue };
        let taken = (0..).zip(takes).filter(|(_, takes)| **takes).map(|(id, _)| id);
        // Where most texts are taken, a look at each row costs less.
        if taken.clone().count() > takes.len() / 2 {
            continue;
        }
        let Some(rows) = segment.rows_with(dimension, taken)? else { continue };
        all = Some(match all {
            Some(before) => before & rows,
            None => rows,
        });
    }
    Ok(all)
}

/// Reads the facts of a place by and by, from the first by time or from the last.
#[derive(Debug)]
pub(crate) struct Cursor<'p> {
    bound: &'p BoundPlace<'p>,
    /// Those that are not read yet, the next one last.
    parts: Vec<Part>,
    direction: Direction,
    pub(crate) batch: FactBatch,
    /// The rows of the batch that the filter takes, the next one last.
    rows: Vec<u32>,
}

impl<'p> Cursor<'p> {
    pub(crate) fn new(
        bound: &'p BoundPlace<'p>,
        intervals: &[Interval],
        direction: Direction,
    ) -> Result<Cursor<'p>> {
        let mut parts = bound.place.parts(intervals, 1)?;
        if direction == Direction::Ascending {
            parts.reverse();
        }
        let batch = FactBatch::new(&bound.plan.columns);
        Ok(Cursor { bound, parts, direction, batch, rows: Vec::new() })
    }

    pub(crate) fn place(&self) -> &'p Place {
        self.bound.place
    }

    /// A time before which, in its direction, no fact comes, found without reading one; none at the end.
    pub(crate) fn bound(&self) -> Result<Option<i64>> {
        if let Some(&row) = self.rows.last() {
            return Ok(Some(self.batch.times[row as usize]));
        }
        let Some(part) = self.parts.last() else { return Ok(None) };
        Ok(Some(match (part, self.bound.place, self.direction) {
            (Part::Blocks(blocks, _), Place::Segment(segment), Direction::Ascending) => {
                segment.zone(blocks.start)?.0
            }
            (Part::Blocks(blocks, _), Place::Segment(segment), Direction::Descending) => {
                segment.zone(blocks.end - 1)?.1
            }
            (_, _, Direction::Ascending) => i64::MIN,
            (_, _, Direction::Descending) => i64::MAX,
        }))
    }

    /// Whether the next fact is read.
    pub(crate) fn is_read(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The row of the next fact in the batch, if it does not come after a time.
    pub(crate) fn take_until(&mut self, until: Option<i64>) -> Option<u32> {
        let time = self.batch.times[*self.rows.last()? as usize];
        let is_due = until.is_none_or(|until| match self.direction {
            Direction::Ascending => time <= until,
            Direction::Descending => time >= until,
        });
        if is_due { self.rows.pop() } else { None }
    }

    /// Reads more facts, if there are any.
    pub(crate) fn read(&mut self, check: Check<'_>) -> Result<()> {
        while self.rows.is_empty() {
            check()?;
            let Some(part) = self.parts.pop() else { return Ok(()) };
            let rest = self.read_part(part)?;
            self.parts.extend(rest);
            // The next one is taken from the end.
            if self.direction == Direction::Ascending {
                self.rows.reverse();
            }
        }
        Ok(())
    }

    /// Reads the begin of a part, in the direction of the cursor, and returns what is left of it.
    fn read_part(&mut self, part: Part) -> Result<Option<Part>> {
        let is_ascending = self.direction == Direction::Ascending;
        match (part, self.bound.place, &self.bound.reader) {
            (Part::Keys((low, high)), Place::Live { snapshot, .. }, Reader::Live(reader)) => {
                let batch = &mut self.batch;
                batch.clear();
                let range = (low.as_ref(), high.as_ref());
                let flow = snapshot.scan_keys(range, self.direction, &mut |key, state| {
                    reader.push(batch, key, state);
                    match batch.len() < BATCH_ROWS {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(key.to_vec()),
                    }
                })?;
                self.rows.extend(0..batch.len() as u32);
                if !is_ascending {
                    // They were read from the last on: the next one by time is the first of the batch.
                    self.rows.reverse();
                }
                self.bound.make(&mut self.batch)?;
                self.bound.filter(&self.batch, &mut self.rows)?;
                Ok(match flow {
                    ControlFlow::Continue(()) => None,
                    ControlFlow::Break(last) if is_ascending => {
                        Some(Part::Keys((Bound::Excluded(last), high)))
                    }
                    ControlFlow::Break(last) => Some(Part::Keys((low, Bound::Excluded(last)))),
                })
            }
            (
                Part::Blocks(mut blocks, interval),
                Place::Segment(segment),
                Reader::Segment(reader),
            ) => {
                let block = match is_ascending {
                    true => blocks.next(),
                    false => blocks.next_back(),
                };
                let Some(block) = block else { return Ok(None) };
                let (batch, rows) = (&mut self.batch, &mut self.rows);
                self.bound.read_block(segment, reader, block, interval, batch, rows)?;
                Ok((!blocks.is_empty()).then_some(Part::Blocks(blocks, interval)))
            }
            _ => unreachable!("a part is one of the place that it is read from"),
        }
    }
}
