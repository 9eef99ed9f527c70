//! The stream of rows, and what is timed.

use std::fmt::Write;

use sapwood::rollup::{Column, Error, RowBatch};

use crate::figures::{Timed, Unit};
use crate::random::Random;

/// To what times are truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Granule {
    /// To the day: facts are the combinations of dimensions
    All,
    /// To the hour
    Hour,
    /// Not at all: each row is a fact
    None,
}

impl Granule {
    pub(crate) const ALL: [Granule; 3] = [Granule::All, Granule::Hour, Granule::None];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Granule::All => "all",
            Granule::Hour => "hour",
            Granule::None => "none",
        }
    }

    /// Milliseconds of a bucket.
    pub(crate) fn millis(self) -> i64 {
        match self {
            Granule::All => 24 * 3_600_000,
            Granule::Hour => 3_600_000,
            Granule::None => 1,
        }
    }
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Phase {
    /// Rows that are columns already are folded into facts
    Ingest,
    /// Rows are parsed from JSON lines, and folded
    Json,
    /// Facts are grouped by two dimensions, with a sum of a long and one of doubles
    GroupBy,
    /// Facts are added up by the hour
    Timeseries,
}

impl Phase {
    pub(crate) const ALL: [Phase; 4] =
        [Phase::Ingest, Phase::Json, Phase::GroupBy, Phase::Timeseries];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Ingest => "ingest",
            Phase::Json => "json",
            Phase::GroupBy => "group-by",
            Phase::Timeseries => "timeseries",
        }
    }
}

/// A phase at a granularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) phase: Phase,
    pub(crate) granule: Granule,
}

impl Timed for Workload {
    fn name(self) -> String {
        format!("{}, {}", self.phase.name(), self.granule.name())
    }

    fn unit(self) -> Unit {
        match self.phase {
            Phase::Ingest | Phase::Json => Unit::Rows,
            Phase::GroupBy | Phase::Timeseries => Unit::Objects,
        }
    }
}

pub(crate) const DIMENSIONS: [&str; 5] = ["country", "device", "page", "user", "campaign"];

/// A row, as a program has it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) time: i64,
    pub(crate) dimensions: [String; 5],
    pub(crate) x: i64,
    pub(crate) y: f64,
}

/// The stream: in batches of rows, of columns, and of JSON lines.
pub(crate) struct Stream {
    pub(crate) rows: Vec<Vec<Row>>,
    pub(crate) batches: Vec<RowBatch>,
    pub(crate) json: Vec<String>,
    /// Of all rows.
    pub(crate) count: i64,
    pub(crate) sum: i64,
}

/// 2014-05-14T00:00Z.
const BEGIN: i64 = 1_400_025_600_000;
const COMBINATIONS: u32 = 10_000;

impl Stream {
    /// A day of rows, in the order of their times.
    pub(crate) fn new(rows: usize, batch: usize) -> Result<Stream, Error> {
        let mut random = Random::new(0x5eed);
        let step = (24 * 3_600_000) as f64 / rows as f64;
        let all: Vec<Row> = (0..rows)
            .map(|number| {
                let combination = random.below(COMBINATIONS);
                Row {
                    time: BEGIN + (number as f64 * step) as i64,
                    dimensions: [
                        format!("country {}", combination % 10),
                        format!("device {}", combination / 10 % 10),
                        format!("page {}", combination / 100 % 10),
                        format!("user {}", combination / 1_000),
                        format!("campaign {combination}"),
                    ],
                    x: random.below(1_000).into(),
                    // Sums of quarters are exact in any order.
                    y: f64::from(random.below(1_000)) / 4.0,
                }
            })
            .collect();
        let rows: Vec<Vec<Row>> = all.chunks(batch).map(<[Row]>::to_vec).collect();
        Ok(Stream {
            batches: rows.iter().map(|rows| columns(rows)).collect::<Result<_, _>>()?,
            json: rows.iter().map(|rows| json(rows)).collect(),
            count: all.len() as i64,
            sum: all.iter().map(|row| row.x).sum(),
            rows,
        })
    }
}

fn columns(rows: &[Row]) -> Result<RowBatch, Error> {
    let mut batch =
        RowBatch::new(rows.len()).column("time", Column::longs(rows.iter().map(|row| row.time)))?;
    for (at, name) in DIMENSIONS.into_iter().enumerate() {
        batch = batch.column(name, Column::texts(rows.iter().map(|row| &row.dimensions[at])))?;
    }
    batch
        .column("x", Column::longs(rows.iter().map(|row| row.x)))?
        .column("y", Column::doubles(rows.iter().map(|row| row.y)))
}

fn json(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        // Writing to memory does not fail.
        let _ = write!(text, "{{\"time\":{}", row.time);
        for (name, value) in DIMENSIONS.into_iter().zip(&row.dimensions) {
            let _ = write!(text, ",\"{name}\":\"{value}\"");
        }
        let _ = writeln!(text, ",\"x\":{},\"y\":{:?}}}", row.x, row.y);
    }
    text
}
