//! The rows: the flights as they are, and rows that are made up with the columns of these that
//! questions name.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

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
        match source {
            CsvSource::Flights => CsvRows::flights(Path::new(FLIGHTS_FILE), count, folder),
            CsvSource::Generated => CsvRows::generated(count, folder),
        }
    }

    fn flights(packed: &Path, most: usize, folder: &Folder) -> Result<CsvRows> {
        let explain = |error: io::Error| format!("{}: {error}", packed.display());
        let mut text = String::new();
        let mut file = zstd::Decoder::new(File::open(packed).map_err(explain)?)?;
        file.read_to_string(&mut text).map_err(explain)?;
        let mut lines = text.lines();
        let header = lines.next().ok_or("the flights have no header")?;
        let path = folder.path().join("flights.csv");
        let mut out = BufWriter::new(File::create(&path)?);
        writeln!(out, "{header}")?;
        let mut drawn = Drawn::default();
        let columns: Vec<String> = header.split(',').map(str::to_owned).collect();
        let places = KEY.map(|name| columns.iter().position(|column| column == name));
        let [Some(hour), Some(carrier), Some(flight)] = places else {
            bail!("{} is of other flights", packed.display());
        };
        for line in lines.take(most) {
            writeln!(out, "{line}")?;
            let fields: Vec<&str> = line.split(',').collect();
            drawn.offer(|| RowKey {
                hour: fields[hour].to_owned(),
                carrier: fields[carrier].to_owned(),
                flight: fields[flight].parse().expect("flights have numbers"),
            });
        }
        out.flush()?;
        Ok(CsvRows { path, count: drawn.seen, columns, keys: drawn.keys })
    }

    /// Makes rows up: in the order of time, as such files mostly are.
    fn generated(count: usize, folder: &Folder) -> Result<CsvRows> {
        let path = folder.path().join("generated.csv");
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        let columns = [
            "time_hour",
            "carrier",
            "flight",
            "origin",
            "dest",
            "dep_delay",
            "arr_delay",
            "distance",
            "fare",
        ];
        writeln!(out, "{}", columns.join(","))?;
        let mut random = Random::new(1);
        let mut drawn = Drawn::default();
        for row in 0..count as u64 {
            let hour = row * HOURS / count as u64;
            let time = moment(hour);
            let carrier = CARRIERS[random.below(16) as usize];
            // With its carrier and hour the number is that of no other row.
            let flight = row as i64;
            let delay = i64::from(random.below(200)) - 20;
            let delays = match random.below(40) {
                0 => "NA,NA".to_owned(),
                _ => format!("{delay},{}", delay + i64::from(random.below(60)) - 30),
            };
            let dest = random.below(120);
            writeln!(
                out,
                "{time},{carrier},{flight},{},{}{}{},{delays},{},{}.{:02}",
                ORIGINS[random.below(3) as usize],
                char::from(b'A' + (dest % 26) as u8),
                char::from(b'A' + (dest / 26) as u8),
                char::from(b'A' + (dest % 7) as u8),
                80 + dest * 40,
                50 + random.below(900),
                random.below(100),
            )?;
            drawn.offer(|| RowKey { hour: time, carrier: carrier.to_owned(), flight });
        }
        out.flush()?;
        let columns = columns.map(str::to_owned).into();
        Ok(CsvRows { path, count, columns, keys: drawn.keys })
    }
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

impl Default for Drawn {
    fn default() -> Self {
        Drawn { keys: Vec::new(), seen: 0, random: Random::new(2) }
    }
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
