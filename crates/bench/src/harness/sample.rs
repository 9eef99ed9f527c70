//! Samples: the figures of one engine in one workload, and the ratio of two.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::harness::*;

#[derive(Debug)]
pub(crate) struct Unit {
    /// The name in JSON lines.
    pub(crate) name: &'static str,
    /// The name in tables, where figures are divided by `scale`.
    pub(crate) table_name: &'static str,
    pub(crate) scale: f64,
    pub(crate) digits: usize,
}

impl PartialEq for Unit {
    fn eq(&self, other: &Unit) -> bool {
        self.name == other.name
    }
}

macro_rules! units {
    ($($constant:ident: $name:literal, $table:literal, $scale:literal, $digits:literal;)*) => {
        $(pub(crate) static $constant: Unit =
            Unit { name: $name, table_name: $table, scale: $scale, digits: $digits };)*
    };
}

units! {
    OPERATIONS: "ops/s", "K ops/s", 1e3, 0;
    SCANS: "scans/s", "scans/s", 1.0, 0;
    OBJECTS: "objects/s", "objects/ms", 1e3, 0;
    ROWS: "rows/s", "K rows/s", 1e3, 0;
    // Tables show how long one takes.
    QUESTIONS: "questions/s", "time of one", 1.0, 0;
    NANOSECONDS: "ns", "latency", 1.0, 0;
    SECONDS: "s", "s", 1.0, 2;
    BYTES: "bytes", "MB", 1e6, 1;
    BYTES_A_SECOND: "bytes/s", "MB/s", 1e6, 0;
    BYTES_OF_ENTRY: "bytes/entry", "B/entry", 1.0, 1;
    BYTES_OF_FACT: "bytes/fact", "B/fact", 1.0, 1;
    BYTES_OF_CONNECTION: "bytes/connection", "B/connection", 1.0, 1;
    LOG_BYTES: "log bytes/op", "log B/op", 1.0, 2;
    LOG_BYTES_A_SECOND: "log bytes/s", "log MB/s", 1e6, 1;
    MISSES: "misses/op", "reads of the disk/op", 1.0, 3;
    SHARE_OF_DISK: "share of disk", "of what the disk allows", 1.0, 2;
    SETTLING_SCANS: "scans", "scans", 1.0, 0;
}

impl Unit {
    pub(crate) fn is_rate(&self) -> bool {
        [&OPERATIONS, &SCANS, &OBJECTS, &ROWS, &QUESTIONS].contains(&self)
    }

    pub(crate) fn shown(&self, figure: f64) -> String {
        match self.name {
            "questions/s" => time(1e9 / figure),
            "ns" => time(figure),
            _ => format!("{:.*}", self.digits, figure / self.scale),
        }
    }
}

/// A time in the unit that suits it.
fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 10_000.0 => format!("{ns:.0} ns"),
        ns if ns < 10_000_000.0 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

/// Further fields of a sample, which JSON lines have as they are.
pub(crate) type Fields = Map<String, Value>;

pub(crate) fn fields(object: Value) -> Fields {
    match object {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) workload: String,
    pub(crate) threads: usize,
    pub(crate) engine: String,
    pub(crate) unit: &'static Unit,
    pub(crate) rounds: Vec<f64>,
    /// Latencies of each round, where the unit is [`NANOSECONDS`].
    pub(crate) latencies: Vec<Percentiles>,
    pub(crate) fields: Fields,
}

/// Workload, threads, engine and unit of a sample, which no other one has.
pub(crate) type SampleKey = (String, usize, String, &'static str);

impl Sample {
    pub(crate) fn key(&self) -> SampleKey {
        (self.workload.clone(), self.threads, self.engine.clone(), self.unit.name)
    }

    /// The median, the least and the greatest. Of latencies: the median and the least of medians,
    /// and the greatest of all.
    pub(crate) fn spread(&self) -> [f64; 3] {
        let greatest = self.latencies.iter().map(|latencies| latencies[3] as f64);
        let greatest = greatest.fold(most(&self.rounds), f64::max);
        [median(&self.rounds), least(&self.rounds), greatest]
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.rounds)
    }

    pub(crate) fn percentile(&self, at: usize) -> f64 {
        let each: Vec<f64> = self.latencies.iter().map(|round| round[at] as f64).collect();
        median(&each)
    }
}

pub(crate) fn is_ours(engine: &str) -> bool {
    engine.starts_with("sapwood")
}

pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn least(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(0.0, f64::max)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Ratio {
    /// Round by round. A sample of one round stands for all rounds of the other.
    pub(crate) fn of(ours: &[f64], theirs: &[f64]) -> Ratio {
        let one = |figures: &[f64]| if let [one] = figures { Some(*one) } else { None };
        let rounds: Vec<f64> = match (one(ours), one(theirs)) {
            (_, Some(their)) => ours.iter().map(|our| our / their).collect(),
            (Some(our), _) => theirs.iter().map(|their| our / their).collect(),
            _ => ours.iter().zip(theirs).map(|(our, their)| our / their).collect(),
        };
        Ratio { median: median(ours) / median(theirs), min: least(&rounds), max: most(&rounds) }
    }

    pub(crate) fn json(self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max })
    }
}

/// Latencies of single calls, in nanoseconds: the 50th, 99th and 99.9th percentile, and the greatest.
pub(crate) type Percentiles = [u64; 4];

/// A histogram of up to a minute in nanoseconds, to three digits; longer counts as a minute.
pub(crate) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

/// Percentiles of all threads together.
pub(crate) fn percentiles(histograms: Vec<Histogram<u64>>) -> Result<Percentiles> {
    let mut all = new_histogram();
    for histogram in histograms {
        all.add(histogram)?;
    }
    let [p50, p99, p999] = [0.50, 0.99, 0.999].map(|quantile| all.value_at_quantile(quantile));
    Ok([p50, p99, p999, all.max()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_ratio_spans_single_rounds() {
        let ratio = Ratio::of(&[4.0, 6.0, 5.0], &[1.0, 3.0, 2.0]);
        assert_eq!((ratio.median, ratio.min, ratio.max), (2.5, 2.0, 4.0));
        let ratio = Ratio::of(&[4.0, 6.0, 5.0], &[2.0]);
        assert_eq!((ratio.median, ratio.min, ratio.max), (2.5, 2.0, 3.0));
    }
}
