//! Sets of rows: a synthetic stream, the flights that left New York in 2013, a day of Wikipedia's
//! edits.
//!
//! A set says how its rows are rolled up, and which columns are asked for. All have the same five
//! metrics: rows, the sum and the least of a whole number, the sum and the greatest of a float.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::stream::{Row, Stream};
use crate::harness::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Granule {
    /// To the day: facts are the combinations of dimensions
    All,
    /// To the hour
    Hour,
    /// Not at all: each row is a fact
    None,
}

pub(crate) const HOUR: i64 = 3_600_000;
pub(crate) const DAY: i64 = 24 * HOUR;

impl Granule {
    pub(crate) fn millis(self) -> i64 {
        match self {
            Granule::All => DAY,
            Granule::Hour => HOUR,
            Granule::None => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RowSource {
    /// A day of rows with 5 dimensions of 10,000 combinations
    Synthetic,
    /// The 336,776 flights that left New York in 2013, by hour, carrier, origin and destination
    Flights,
    /// The edits of --wikiticker, by hour and five dimensions
    Wikiticker,
}

impl RowSource {
    pub(crate) fn shape(self) -> &'static RowShape {
        match self {
            RowSource::Synthetic => &SYNTHETIC,
            RowSource::Flights => &FLIGHTS,
            RowSource::Wikiticker => &WIKITICKER,
        }
    }

    /// The ways in which its rows are rolled up.
    pub(crate) fn sets(self, granules: &[Granule]) -> Vec<RowSet> {
        match self {
            RowSource::Synthetic => {
                granules.iter().map(|&granule| RowSet { source: self, granule }).collect()
            }
            _ => vec![RowSet { source: self, granule: Granule::Hour }],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowSet {
    pub(crate) source: RowSource,
    pub(crate) granule: Granule,
}

impl RowSet {
    pub(crate) fn name(self) -> String {
        match self.source {
            RowSource::Synthetic => self.granule.name(),
            source => source.name(),
        }
    }

    pub(crate) fn bucket(self, time: i64) -> i64 {
        time.div_euclid(self.granule.millis()) * self.granule.millis()
    }
}

pub(crate) struct RowShape {
    pub(crate) dimensions: &'static [&'static str],
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) time: TimeForm,
    pub(crate) segments: &'static str,
    pub(crate) one: usize,
    pub(crate) two: [usize; 2],
    pub(crate) top: usize,
    pub(crate) filter: (usize, &'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TimeForm {
    Millis,
    Iso,
}

impl TimeForm {
    pub(crate) fn read(self, value: &Value) -> Option<i64> {
        match self {
            TimeForm::Millis => value.as_i64(),
            TimeForm::Iso => {
                let time: jiff::Timestamp = value.as_str()?.parse().ok()?;
                Some(time.as_millisecond())
            }
        }
    }
}

static SYNTHETIC: RowShape = RowShape {
    dimensions: &["country", "device", "page", "user", "campaign"],
    x: "x",
    y: "y",
    time: TimeForm::Millis,
    segments: "day",
    one: 0,
    two: [0, 1],
    top: 4,
    filter: (4, "campaign 77"),
};

static FLIGHTS: RowShape = RowShape {
    dimensions: &["carrier", "origin", "dest"],
    x: "distance",
    y: "dep_delay",
    time: TimeForm::Millis,
    segments: "year",
    one: 0,
    two: [0, 1],
    top: 2,
    filter: (2, "SFO"),
};

static WIKITICKER: RowShape = RowShape {
    dimensions: &["channel", "cityName", "countryName", "isRobot", "namespace"],
    x: "added",
    y: "delta",
    time: TimeForm::Iso,
    segments: "day",
    one: 0,
    two: [0, 4],
    top: 0,
    filter: (0, "#fr.wikipedia"),
};

/// 2014-05-14T00:00Z.
const BEGIN: i64 = 1_400_025_600_000;
const COMBINATIONS: u32 = 10_000;

pub(crate) fn synthetic(rows: usize, batch: usize) -> Result<Stream> {
    let mut random = Random::new(0x5eed);
    let step = DAY as f64 / rows as f64;
    let rows = (0..rows).map(|number| {
        let combination = random.below(COMBINATIONS);
        let texts = [
            format!("country {}", combination % 10),
            format!("device {}", combination / 10 % 10),
            format!("page {}", combination / 100 % 10),
            format!("user {}", combination / 1_000),
            format!("campaign {combination}"),
        ];
        Row {
            time: BEGIN + (number as f64 * step) as i64,
            dimensions: texts.into_iter().map(Some).collect(),
            x: random.below(1_000).into(),
            // Sums of quarters are exact in any order.
            y: Some(f64::from(random.below(1_000)) / 4.0),
        }
    });
    Stream::new(&SYNTHETIC, rows.collect(), batch)
}

pub(crate) fn flights(most: usize, batch: usize) -> Result<Stream> {
    let [one, two, three] = [FLIGHTS.dimensions[0], FLIGHTS.dimensions[1], FLIGHTS.dimensions[2]];
    let columns = ["time_hour", FLIGHTS.x, FLIGHTS.y, one, two, three];
    let (mut reader, [time, x, y, dimensions @ ..]) = crate::harness::flights(columns)?;
    let mut rows = Vec::new();
    for record in reader.records().take(most) {
        let record = record?;
        let iso = Value::from(&record[time]);
        let bad = |what: &str| format!("flight {}: no {what}", rows.len() + 1);
        rows.push(Row {
            time: TimeForm::Iso.read(&iso).ok_or_else(|| bad("time"))?,
            dimensions: dimensions.iter().map(|&at| Some(record[at].to_owned())).collect(),
            x: record[x].parse().map_err(|_| bad(FLIGHTS.x))?,
            // Of a flight that was cancelled there is none.
            y: record[y].parse().ok(),
        });
    }
    Stream::new(&FLIGHTS, rows, batch)
}

/// The edits of a file of JSON lines, packed by gzip or not, or the first `most` of them.
pub(crate) fn wikiticker(path: &Path, most: usize, batch: usize) -> Result<Stream> {
    let explain = |what: String| -> Error {
        format!("the edits at {} cannot be read: {what}; choose other --sets", path.display())
            .into()
    };
    let bytes = std::fs::read(path).map_err(|error| explain(error.to_string()))?;
    let mut text = String::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text),
        false => (&bytes[..]).read_to_string(&mut text),
    }
    .map_err(|error| explain(error.to_string()))?;
    let lines: Vec<&str> = text.lines().take(most).collect();
    let row = |(at, line): (usize, &&str)| -> Result<Row> {
        let read = serde_json::from_str(line).ok().and_then(|edit| Row::parse(&WIKITICKER, &edit));
        read.ok_or_else(|| explain(format!("line {} is no edit", at + 1)))
    };
    let rows: Vec<Row> = lines.iter().enumerate().map(row).collect::<Result<_, _>>()?;
    // As they were written, with all that is not rolled up.
    let json = lines.chunks(batch).map(|lines| lines.join("\n") + "\n").collect();
    Ok(Stream::new(&WIKITICKER, rows, batch)?.with_json(json))
}
