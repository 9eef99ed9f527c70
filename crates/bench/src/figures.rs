//! Measured figures, and the ratio of two engines.

use hdrhistogram::Histogram;

use crate::Error;

/// A timed workload of one of the benches.
pub(crate) trait Timed: Copy + PartialEq {
    /// As tables and JSON lines show it.
    fn name(self) -> String;

    fn unit(self) -> Unit;
}

/// The unit of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Point operations.
    Operations,
    /// Whole scans.
    Scans,
    /// Objects that go into a figure.
    Objects,
    /// Rows of a stream.
    Rows,
    /// Whole questions. Tables show how long one takes.
    Questions,
}

impl Unit {
    /// As JSON lines name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Operations => "ops/s",
            Unit::Scans => "scans/s",
            Unit::Objects => "objects/s",
            Unit::Rows => "rows/s",
            Unit::Questions => "questions/s",
        }
    }

    /// As tables name it, where figures are divided by [`Unit::table_scale`].
    pub(crate) fn table_name(self) -> &'static str {
        match self {
            Unit::Operations => "K ops/s",
            Unit::Scans => "scans/s",
            Unit::Objects => "objects/ms",
            Unit::Rows => "K rows/s",
            Unit::Questions => "time of one",
        }
    }

    pub(crate) fn table_scale(self) -> f64 {
        match self {
            Unit::Operations | Unit::Objects | Unit::Rows => 1e3,
            Unit::Scans | Unit::Questions => 1.0,
        }
    }
}

/// Rates of one engine's rounds of one workload.
pub(crate) struct Rate<W> {
    pub(crate) workload: W,
    pub(crate) threads: usize,
    pub(crate) engine: String,
    /// Operations or scans a second, by round.
    pub(crate) rounds: Vec<f64>,
}

/// Latencies of one engine's operations.
pub(crate) struct Latency<W> {
    pub(crate) workload: W,
    pub(crate) threads: usize,
    pub(crate) engine: String,
    pub(crate) percentiles: Percentiles,
}

/// Latencies of single calls, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Percentiles {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

/// All figures of the rounds of a bench.
pub(crate) struct Rates<W> {
    pub(crate) rates: Vec<Rate<W>>,
    pub(crate) latencies: Vec<Latency<W>>,
    /// Engines left out of a workload that they answered wrongly, in a sentence each.
    pub(crate) wrong: Vec<String>,
}

impl<W> Default for Rates<W> {
    fn default() -> Self {
        Rates { rates: Vec::new(), latencies: Vec::new(), wrong: Vec::new() }
    }
}

impl<W: Timed> Rates<W> {
    pub(crate) fn rate(&self, engine: &str, workload: W, threads: usize) -> Option<&Rate<W>> {
        self.rates.iter().find(|rate| {
            rate.engine == engine && rate.workload == workload && rate.threads == threads
        })
    }

    /// The thread counts that there are rates of, in order.
    pub(crate) fn thread_counts(&self) -> Vec<usize> {
        let mut threads: Vec<usize> = self.rates.iter().map(|rate| rate.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Ours against `theirs`, round by round; none for an engine against itself.
    pub(crate) fn ratio(&self, ours: &str, theirs: &Rate<W>) -> Option<Ratio> {
        if theirs.engine == ours {
            return None;
        }
        let ours = self.rate(ours, theirs.workload, theirs.threads)?;
        Some(Ratio::of(&ours.rounds, &theirs.rounds))
    }

    /// Leaves a peer's figure out with a sentence; an error if the engine is ours.
    pub(crate) fn refuse(
        &mut self,
        engine: &str,
        workload: W,
        threads: usize,
        what: &str,
    ) -> Result<(), Error> {
        let sentence = format!(
            "{engine}, {} on {threads} threads: {what}: a bug in it or in its adapter",
            workload.name()
        );
        if is_ours(engine) {
            return Err(sentence.into());
        }
        self.wrong.push(sentence);
        Ok(())
    }
}

/// Whether an engine's name says that it is one of Sapwood's.
pub(crate) fn is_ours(engine: &str) -> bool {
    engine.starts_with("sapwood")
}

impl<W> Rate<W> {
    pub(crate) fn median(&self) -> f64 {
        median(&self.rounds)
    }

    pub(crate) fn min(&self) -> f64 {
        least(&self.rounds)
    }

    pub(crate) fn max(&self) -> f64 {
        most(&self.rounds)
    }
}

/// Adds a round's rate to those of its workload, which stand together.
pub(crate) fn note<W: Copy + PartialEq>(
    rates: &mut Vec<Rate<W>>,
    workload: W,
    threads: usize,
    engine: &str,
    figure: f64,
) {
    let same = |rate: &&mut Rate<W>| {
        rate.workload == workload && rate.threads == threads && rate.engine == engine
    };
    match rates.iter_mut().find(same) {
        Some(rate) => rate.rounds.push(figure),
        None => {
            let group = |rate: &Rate<W>| rate.workload == workload && rate.threads == threads;
            let at = rates.iter().rposition(group).map_or(rates.len(), |last| last + 1);
            let rate = Rate { workload, threads, engine: engine.to_owned(), rounds: vec![figure] };
            rates.insert(at, rate);
        }
    }
}

pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

pub(crate) fn least(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

pub(crate) fn most(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(0.0, f64::max)
}

/// A ratio of two rates: of the medians, and the least and greatest of single rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Ratio {
    pub(crate) fn of(ours: &[f64], theirs: &[f64]) -> Ratio {
        let rounds: Vec<f64> = ours.iter().zip(theirs).map(|(our, their)| our / their).collect();
        Ratio { median: median(ours) / median(theirs), min: least(&rounds), max: most(&rounds) }
    }

    /// Against a constant.
    pub(crate) fn to(ours: &[f64], constant: f64) -> Ratio {
        Ratio {
            median: median(ours) / constant,
            min: least(ours) / constant,
            max: most(ours) / constant,
        }
    }
}

/// Up to a minute in nanoseconds, to three digits; longer counts as a minute.
pub(crate) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

impl From<&Histogram<u64>> for Percentiles {
    fn from(histogram: &Histogram<u64>) -> Self {
        Percentiles {
            p50: histogram.value_at_quantile(0.50),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}

impl Percentiles {
    /// Of all threads together.
    pub(crate) fn of_all(histograms: Vec<Histogram<u64>>) -> Result<Percentiles, Error> {
        let mut all = new_histogram();
        for histogram in histograms {
            all.add(histogram)?;
        }
        Ok(Percentiles::from(&all))
    }
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
    }
}
