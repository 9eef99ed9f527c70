//! The rows: the flights as they are, and rows that are made up with the columns of these that
//! questions name.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use crate::harness::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CsvSource {
    /// Departures from New York in 2013: 336,776 rows of 19 columns
    Flights,
    /// Made up: 9 columns
    Generated,
}

/// The values of a row's key: the hour, the carrier and the number of the flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowKey {
    pub(crate) hour: String,
    pub(crate) carrier: String,
    pub(crate) flight: i64,
}

pub(crate) struct CsvRows {
    pub(crate) path: PathBuf,
    pub(crate) count: usize,
    pub(crate) columns: Vec<String>,
    pub(crate) keys: Vec<RowKey>,
}

pub(crate) const KEY: [&str; 3] = ["time_hour", "carrier", "flight"];

/// Keys that are drawn: a peer takes milliseconds for one.
const KEYS: usize = 512;

/// The hours of a year, over which rows that are made up are spread in their order.
const HOURS: u64 = 8_760;
const CARRIERS: [&str; 16] = [
    "9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV",
];
const ORIGINS: [&str; 3] = ["EWR", "JFK", "LGA"];

impl CsvRows {
    pub(crate) fn new(source: CsvSource, count: usize, folder: &Folder) -> Result<CsvRows> {
        let path = folder.path().join("rows.csv");
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        let mut drawn = Drawn { keys: Vec::new(), seen: 0, random: Random::new(2) };
        let columns = match source {
            CsvSource::Flights => unpack(count, &mut out, &mut drawn)?,
            CsvSource::Generated => generate(count, &mut out, &mut drawn)?,
        };
        out.flush()?;
        Ok(CsvRows { path, count: drawn.seen, columns, keys: drawn.keys })
    }
}

fn unpack(most: usize, out: &mut impl Write, drawn: &mut Drawn) -> Result<Vec<String>> {
    let (mut reader, [hour, carrier, flight]) = flights(KEY)?;
    let mut out = csv::Writer::from_writer(out);
    let columns = reader.headers()?.clone();
    out.write_record(&columns)?;
    for row in reader.records().take(most) {
        let row = row?;
        out.write_record(&row)?;
        drawn.offer(|| RowKey {
            hour: row[hour].to_owned(),
            carrier: row[carrier].to_owned(),
            flight: row[flight].parse().expect("flights have numbers"),
        });
    }
    out.flush()?;
    Ok(columns.iter().map(str::to_owned).collect())
}

/// Makes rows up: in the order of time, as such files mostly are.
fn generate(count: usize, out: &mut impl Write, drawn: &mut Drawn) -> Result<Vec<String>> {
    let columns = "time_hour,carrier,flight,origin,dest,dep_delay,arr_delay,distance,fare";
    writeln!(out, "{columns}")?;
    let mut random = Random::new(1);
    for row in 0..count as u64 {
        let time = moment(row * HOURS / count as u64);
        let carrier = CARRIERS[random.below(16) as usize];
        // With its carrier and hour the number is that of no other row.
        let flight = row as i64;
        let delay = i64::from(random.below(200)) - 20;
        let delays = match random.below(40) {
            0 => "NA,NA".to_owned(),
            _ => format!("{delay},{}", delay + i64::from(random.below(60)) - 30),
        };
        let dest = random.below(120);
        let letters = [dest % 26, dest / 26, dest % 7].map(|it| char::from(b'A' + it as u8));
        let (origin, distance) = (ORIGINS[random.below(3) as usize], 80 + dest * 40);
        let dest = String::from_iter(letters);
        let (whole, cents) = (50 + random.below(900), random.below(100));
        writeln!(
            out,
            "{time},{carrier},{flight},{origin},{dest},{delays},{distance},{whole}.{cents:02}"
        )?;
        drawn.offer(|| RowKey { hour: time, carrier: carrier.to_owned(), flight });
    }
    Ok(columns.split(',').map(str::to_owned).collect())
}

fn moment(hour: u64) -> String {
    let begin = jiff::civil::date(2013, 1, 1);
    let date = begin.saturating_add(jiff::Span::new().days((hour / 24) as i64));
    format!("{date}T{:02}:00:00Z", hour % 24)
}

/// Keys drawn from a stream whose length is not known, each with the same chance (Vitter's
/// algorithm R, 1985).
struct Drawn {
    keys: Vec<RowKey>,
    seen: usize,
    random: Random,
}

impl Drawn {
    fn offer(&mut self, key: impl FnOnce() -> RowKey) {
        self.seen += 1;
        if self.keys.len() < KEYS {
            self.keys.push(key());
        } else if let place = self.random.below(self.seen as u32) as usize
            && place < KEYS
        {
            self.keys[place] = key();
        }
    }
}
