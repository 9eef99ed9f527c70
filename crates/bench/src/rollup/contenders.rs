//! Our index, and the map that a program would write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sapwood::rollup::{
    Aggregation, Dimension, Granularity, Metric, Query, Rollup, RowBatch, Schema, TimestampFormat,
    Writer,
};

use super::workload::{DIMENSIONS, Granule, Phase, Row, Stream};
use crate::Error;

pub(crate) const OURS: &str = "sapwood-rollup";
pub(crate) const HASH_MAP: &str = "hash-map";
pub(crate) const NAMES: [&str; 2] = [OURS, HASH_MAP];

/// What an answer adds up to: the groups, the rows in them, and the sum of `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) groups: usize,
    pub(crate) rows: i64,
    pub(crate) sum: i64,
}

/// A roll-up under test. Threads share it.
pub(crate) trait Contender: Sync {
    /// Folds the batch of a number, with a thread's own state.
    fn thread<'c>(&'c self, stream: &'c Stream) -> Box<dyn Ingest + 'c>;

    /// How many facts there are.
    fn facts(&self) -> usize;

    /// Bytes of the facts, where they can be told.
    fn bytes(&self) -> Option<u64>;

    /// Answers the question of a phase.
    fn ask(&self, phase: Phase, threads: usize) -> Result<Total, Error>;
}

/// A thread that brings rows.
pub(crate) trait Ingest {
    fn columns(&mut self, batch: usize) -> Result<(), Error>;

    fn json(&mut self, batch: usize) -> Result<(), Error>;
}

pub(crate) fn open(name: &str, granule: Granule) -> Result<Box<dyn Contender>, Error> {
    Ok(match name {
        OURS => Box::new(Ours(Arc::new(Rollup::new(schema(granule)?)?))),
        _ => Box::new(Map { granule, facts: Mutex::default() }),
    })
}

fn schema(granule: Granule) -> Result<Schema, sapwood::rollup::Error> {
    let mut schema = Schema::new("time").timestamp_format(TimestampFormat::Millis);
    for name in DIMENSIONS {
        schema = schema.dimension(Dimension::text(name));
    }
    let granularity = match granule {
        Granule::All => Granularity::ALL,
        Granule::Hour => Granularity::parse("hour")?,
        Granule::None => Granularity::NONE,
    };
    Ok(schema
        .metric(Metric::count("rows"))
        .metric(Metric::long_sum("x sum", "x"))
        .metric(Metric::double_sum("y sum", "y"))
        .metric(Metric::long_min("x min", "x"))
        .metric(Metric::double_max("y max", "y"))
        .query_granularity(granularity))
}

struct Ours(Arc<Rollup>);

struct OurThread<'c> {
    writer: Writer,
    stream: &'c Stream,
}

impl Contender for Ours {
    fn thread<'c>(&'c self, stream: &'c Stream) -> Box<dyn Ingest + 'c> {
        Box::new(OurThread { writer: Writer::new(&self.0), stream })
    }

    fn facts(&self) -> usize {
        self.0.stats().facts as usize
    }

    fn bytes(&self) -> Option<u64> {
        let stats = self.0.stats();
        Some(stats.fact_bytes + stats.dictionary_bytes)
    }

    fn ask(&self, phase: Phase, threads: usize) -> Result<Total, Error> {
        let query = match phase {
            Phase::Timeseries => Query::timeseries(Granularity::parse("hour")?),
            _ => Query::group_by([DIMENSIONS[0], DIMENSIONS[1]]),
        };
        let query = query
            .aggregation(Aggregation::long_sum("rows", "rows"))
            .aggregation(Aggregation::long_sum("x", "x sum"))
            .aggregation(Aggregation::double_sum("y", "y sum"))
            .threads(threads);
        let answer = self.0.query(&query)?;
        let sum = |column: &str| -> i64 {
            let values = (0..answer.rows.len()).filter_map(|row| answer.value(row, column));
            values.filter_map(|value| value.to_long().ok().flatten()).sum()
        };
        Ok(Total { groups: answer.rows.len(), rows: sum("rows"), sum: sum("x") })
    }
}

impl Ingest for OurThread<'_> {
    fn columns(&mut self, batch: usize) -> Result<(), Error> {
        self.writer.ingest(&self.stream.batches[batch])?;
        Ok(())
    }

    fn json(&mut self, batch: usize) -> Result<(), Error> {
        let (batch, bad) = RowBatch::from_json_lines(self.stream.json[batch].as_bytes());
        match bad.first() {
            Some(bad) => Err(bad.why.clone().into()),
            None => Ok(self.writer.ingest(&batch).map(drop)?),
        }
    }
}

/// Facts in a map of the standard library, behind a lock: what a program writes first.
struct Map {
    granule: Granule,
    facts: Mutex<HashMap<Key, Figures>>,
}

type Key = (i64, [String; 5]);

#[derive(Debug, Clone, Copy)]
struct Figures {
    rows: i64,
    x_sum: i64,
    y_sum: f64,
    x_min: i64,
    y_max: f64,
}

struct MapThread<'c> {
    map: &'c Map,
    stream: &'c Stream,
}

impl Map {
    fn fold(&self, row: &Row) {
        let time = row.time.div_euclid(self.granule.millis()) * self.granule.millis();
        let key = (time, row.dimensions.clone());
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let none = Figures { rows: 0, x_sum: 0, y_sum: 0.0, x_min: i64::MAX, y_max: f64::MIN };
        let figures = facts.entry(key).or_insert(none);
        figures.rows += 1;
        figures.x_sum += row.x;
        figures.y_sum += row.y;
        figures.x_min = figures.x_min.min(row.x);
        figures.y_max = figures.y_max.max(row.y);
    }
}

impl Contender for Map {
    fn thread<'c>(&'c self, stream: &'c Stream) -> Box<dyn Ingest + 'c> {
        Box::new(MapThread { map: self, stream })
    }

    fn facts(&self) -> usize {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn bytes(&self) -> Option<u64> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        // A byte of the table for each, and the texts, which the allocator rounds to 16.
        let table = facts.capacity() * (size_of::<(Key, Figures)>() + 1);
        let text = |text: &String| text.capacity().next_multiple_of(16) + 8;
        let texts: usize = facts.keys().flat_map(|(_, texts)| texts).map(text).sum();
        Some((table + texts) as u64)
    }

    fn ask(&self, phase: Phase, _threads: usize) -> Result<Total, Error> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut total, mut groups) = (Total { groups: 0, rows: 0, sum: 0 }, 0);
        let mut add = |rows: i64, sum: i64, y: f64| {
            (total.rows, total.sum, groups) = (total.rows + rows, total.sum + sum, groups + 1);
            std::hint::black_box(y);
        };
        if phase == Phase::Timeseries {
            let mut found: HashMap<i64, (i64, i64, f64)> = HashMap::new();
            for ((time, _), figures) in &*facts {
                let group = found.entry(time.div_euclid(3_600_000)).or_default();
                *group = (group.0 + figures.rows, group.1 + figures.x_sum, group.2 + figures.y_sum);
            }
            found.into_values().for_each(|(rows, sum, y)| add(rows, sum, y));
        } else {
            let mut found: HashMap<(&str, &str), (i64, i64, f64)> = HashMap::new();
            for ((_, dimensions), figures) in &*facts {
                let group = found.entry((&dimensions[0], &dimensions[1])).or_default();
                *group = (group.0 + figures.rows, group.1 + figures.x_sum, group.2 + figures.y_sum);
            }
            found.into_values().for_each(|(rows, sum, y)| add(rows, sum, y));
        }
        Ok(Total { groups, ..total })
    }
}

impl Ingest for MapThread<'_> {
    fn columns(&mut self, batch: usize) -> Result<(), Error> {
        self.stream.rows[batch].iter().for_each(|row| self.map.fold(row));
        Ok(())
    }

    fn json(&mut self, batch: usize) -> Result<(), Error> {
        for line in self.stream.json[batch].lines() {
            let object: serde_json::Value = serde_json::from_str(line)?;
            let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
            self.map.fold(&Row {
                time: object["time"].as_i64().unwrap_or_default(),
                dimensions: DIMENSIONS.map(text),
                x: object["x"].as_i64().unwrap_or_default(),
                y: object["y"].as_f64().unwrap_or_default(),
            });
        }
        Ok(())
    }
}
