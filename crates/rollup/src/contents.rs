//! What a roll-up has: live facts, facts on the way to segments, and segments.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::live::dictionary::Entries;
use crate::live::facts::{DimensionColumn, Facts};
use crate::live::state::StateLayout;
use crate::log::Order;
use crate::schema::{Dimension, DimensionKind, Schema};
use crate::segment::{FactTable, Folding, Numbered, ROWS_MAX, Segment, build};
use crate::store::Store;
use crate::time::interval::Interval;

/// The parts that queries look at, as they are at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    /// The facts that rows fold into.
    pub(crate) live: Arc<Facts>,
    /// Facts that change no more, from the oldest on, whose segments do not count yet.
    pub(crate) cut: Vec<CutFacts>,
    /// The number of the last batch that live facts do not have.
    pub(crate) cut_number: u64,
    pub(crate) segments: Arc<Vec<Arc<Segment>>>,
}

/// Facts that change no more.
#[derive(Debug, Clone)]
pub(crate) struct CutFacts {
    pub(crate) facts: Arc<Facts>,
    /// The last batch that they have.
    pub(crate) order: Order,
}

/// A table is made into a segment before it takes more memory than this.
const TABLE_BYTES_MAX: usize = 1 << 30;

/// Whether facts of a schema have row numbers.
pub(crate) fn numbered(schema: &Schema) -> Numbered {
    if schema.rollup { Numbered::No } else { Numbered::Yes }
}

fn folding(schema: &Schema) -> Folding {
    if schema.rollup { Folding::Yes } else { Folding::No }
}

/// Makes segments of facts that change no more: of each interval one, or several if it has many facts.
pub(crate) fn seal(
    schema: &Schema,
    layout: &StateLayout,
    facts: &Facts,
    store: &mut Store,
) -> Result<Vec<Arc<Segment>>> {
    let columns = facts.columns();
    let new_table = || FactTable::new(columns.iter().map(DimensionColumn::dimension));
    let mut sealing = Sealing { schema, layout, columns: &columns, store, segments: Vec::new() };
    let numbered = numbered(schema);
    let mut table = new_table();
    let mut interval: Option<Interval> = None;
    let flow = facts.for_each(|key, state| {
        let time = crate::live::key::Parts::new(key).0;
        let is_inside = interval.is_some_and(|interval| interval.contains(time));
        if !is_inside || table.len() == ROWS_MAX || table.bytes() > TABLE_BYTES_MAX {
            let done = std::mem::replace(&mut table, new_table());
            if let Some(interval) = interval
                && let Err(error) = sealing.finish(done, interval)
            {
                return ControlFlow::Break(error);
            }
            if !is_inside {
                let (start, end) = schema.segment_granularity.bucket(time);
                interval = Some(Interval { start, end });
            }
        }
        table.push_live(key, numbered, state);
        ControlFlow::Continue(())
    })?;
    if let ControlFlow::Break(error) = flow {
        return Err(error);
    }
    if let Some(interval) = interval {
        sealing.finish(table, interval)?;
    }
    Ok(sealing.segments)
}

/// Live facts on their way to segments.
struct Sealing<'s> {
    schema: &'s Schema,
    layout: &'s StateLayout,
    columns: &'s [DimensionColumn],
    store: &'s mut Store,
    segments: Vec<Arc<Segment>>,
}

impl Sealing<'_> {
    fn finish(&mut self, table: FactTable, interval: Interval) -> Result<()> {
        let guards: Vec<_> = self
            .columns
            .iter()
            .map(|column| (column.kind == DimensionKind::Text).then(|| column.dictionary.read()))
            .collect();
        let dictionaries: Vec<Option<&Entries>> =
            guards.iter().map(|guard| guard.as_deref()).collect();
        let bytes = build(table, &dictionaries, self.layout, interval, folding(self.schema))?;
        self.segments.push(self.store.write(bytes, self.layout)?);
        Ok(())
    }
}

/// Makes one segment of several of the same interval.
pub(crate) fn merge(
    schema: &Schema,
    layout: &StateLayout,
    dimensions: &[Dimension],
    segments: &[Arc<Segment>],
    store: &mut Store,
) -> Result<Arc<Segment>> {
    store.write(merged(schema, layout, dimensions, segments)?, layout)
}

/// The bytes of one segment of several of the same interval.
pub(crate) fn merged(
    schema: &Schema,
    layout: &StateLayout,
    dimensions: &[Dimension],
    segments: &[Arc<Segment>],
) -> Result<Vec<u8>> {
    let mut table = FactTable::new(dimensions.iter().cloned());
    let mut entries: Vec<Entries> = dimensions.iter().map(|_| Entries::default()).collect();
    for segment in segments {
        segment.append_to(&mut table, &mut entries, layout)?;
    }
    let is_text = |dimension: &Dimension| dimension.kind == DimensionKind::Text;
    let dictionaries: Vec<Option<&Entries>> = dimensions
        .iter()
        .zip(&entries)
        .map(|(dimension, entries)| is_text(dimension).then_some(entries))
        .collect();
    let interval = segments[0].interval();
    build(table, &dictionaries, layout, interval, folding(schema))
}

/// Segments of an interval are merged when it has so many.
pub(crate) const MERGED_FROM: usize = 8;

/// Which segments are to become one: all small ones of an interval that has many.
pub(crate) fn to_merge(segments: &[Arc<Segment>], from: usize) -> Option<Vec<Arc<Segment>>> {
    let mut intervals: Vec<Interval> = segments.iter().map(|segment| segment.interval()).collect();
    intervals.sort_unstable_by_key(|interval| (interval.start, interval.end));
    intervals.dedup();
    let merged = |interval: &Interval| {
        let mut rows = 0;
        let mut found: Vec<&Arc<Segment>> =
            segments.iter().filter(|segment| segment.interval() == *interval).collect();
        found.sort_by_key(|segment| segment.rows());
        let fits = |segment: &&Arc<Segment>| {
            rows += segment.rows();
            rows <= ROWS_MAX
        };
        let found: Vec<Arc<Segment>> = found.into_iter().take_while(fits).cloned().collect();
        (found.len() >= from).then_some(found)
    };
    intervals.iter().find_map(merged)
}
