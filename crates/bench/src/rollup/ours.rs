//! Our index: live, and sealed into segments in a folder.

use std::sync::Arc;

use sapwood::rollup::{
    Aggregation, Dimension, Filter, Granularity, Metric, Query, Rollup, RowBatch, Schema,
    TimestampFormat, TopNMetric, Writer,
};
use sapwood_disk::FileDisk;

use super::engines::{Facts, Phase, SetLoad, fold};
use super::sets::{Granule, RowSet, TimeForm};
use super::stream::{Stream, TOP, Total};
use crate::harness::*;

pub(crate) const OURS: &str = "sapwood-rollup";

/// An index, whose segments go with it.
pub(crate) struct OurRollup {
    rollup: Arc<Rollup>,
    _folder: Option<Folder>,
}

fn schema(set: RowSet) -> Result<Schema> {
    let shape = set.source.shape();
    let mut schema = Schema::new("time").timestamp_format(match shape.time {
        TimeForm::Millis => TimestampFormat::Millis,
        // Columns have milliseconds.
        TimeForm::Iso => TimestampFormat::Auto,
    });
    for &name in shape.dimensions {
        schema = schema.dimension(Dimension::text(name));
    }
    let granularity = match set.granule {
        Granule::All => Granularity::ALL,
        Granule::Hour => Granularity::parse("hour")?,
        Granule::None => Granularity::NONE,
    };
    Ok(schema
        .metric(Metric::count("rows"))
        .metric(Metric::long_sum("x sum", shape.x))
        .metric(Metric::double_sum("y sum", shape.y))
        .metric(Metric::long_min("x min", shape.x))
        .metric(Metric::double_max("y max", shape.y))
        .segment_granularity(Granularity::parse(shape.segments)?)
        .query_granularity(granularity))
}

impl OurRollup {
    pub(crate) fn live(load: &SetLoad) -> Result<OurRollup> {
        Ok(OurRollup { rollup: Arc::new(Rollup::new(schema(load.set)?)?), _folder: None })
    }

    pub(crate) fn sealed(load: &SetLoad) -> Result<OurRollup> {
        let folder = Folder::new(&load.folder, &format!("segments-{}", load.set.name()))?;
        let disk = Arc::new(FileDisk::open(folder.path())?);
        let rollup = Arc::new(Rollup::on_disk(schema(load.set)?, disk)?);
        let ours = OurRollup { rollup, _folder: Some(folder) };
        fold(&ours, &load.stream, Phase::Ingest, 1)?;
        ours.rollup.seal()?;
        Ok(ours)
    }
}

impl Facts for OurRollup {
    fn bring(
        &self,
        stream: &Stream,
        phase: Phase,
        batches: &mut dyn Iterator<Item = usize>,
    ) -> Result {
        let mut writer = Writer::new(&self.rollup);
        for batch in batches {
            if phase != Phase::Json {
                writer.ingest(&stream.batches[batch])?;
                continue;
            }
            let (rows, bad) = RowBatch::from_json_lines(stream.json[batch].as_bytes());
            if let Some(bad) = bad.first() {
                return Err(bad.why.clone().into());
            }
            writer.ingest(&rows)?;
        }
        Ok(())
    }

    fn facts(&self) -> usize {
        let stats = self.rollup.stats();
        (stats.facts + stats.segment_facts) as usize
    }

    fn bytes(&self) -> u64 {
        let stats = self.rollup.stats();
        match stats.segments {
            0 => stats.fact_bytes + stats.dictionary_bytes,
            _ => stats.segment_bytes,
        }
    }

    fn trim(&self) -> Option<u64> {
        Some(self.rollup.trim())
    }

    fn ask(&self, load: &SetLoad, phase: Phase, threads: usize) -> Result<Total> {
        let shape = load.set.source.shape();
        let name = |at: usize| shape.dimensions[at];
        let query = match phase {
            Phase::GroupByOne => Query::group_by([name(shape.one)]),
            Phase::TopN => Query::top_n(name(shape.top), TopNMetric::Greatest("x".to_owned()), TOP),
            Phase::Filter => {
                let (at, text) = shape.filter;
                Query::timeseries(Granularity::parse("hour")?).filter(Filter::equal(name(at), text))
            }
            Phase::Timeseries => Query::timeseries(Granularity::parse("hour")?),
            _ => Query::group_by(shape.two.map(name)),
        };
        let query = query
            .aggregation(Aggregation::long_sum("rows", "rows"))
            .aggregation(Aggregation::long_sum("x", "x sum"))
            .aggregation(Aggregation::double_sum("y", "y sum"))
            .threads(threads);
        let answer = self.rollup.query(&query)?;
        let mut total = Total::NONE;
        for row in 0..answer.rows.len() {
            let long = |column: &str| {
                answer.value(row, column).and_then(|value| value.to_long().ok().flatten())
            };
            let (rows, sum) = (long("rows").unwrap_or(0), long("x").unwrap_or(0));
            // A bucket without facts is shown, and is no group of theirs.
            if rows > 0 {
                total.add(rows, sum);
            }
        }
        Ok(total)
    }
}
