//! Targets: tables of promises about samples, and whether a report keeps them.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use serde_json::Value;

use crate::harness::*;

/// The targets of a bench. Figures of another size say nothing about them.
pub(crate) struct Targets {
    /// Sizes of runs at which they are judged, in a unit.
    pub(crate) judged: RangeInclusive<usize>,
    pub(crate) size_unit: &'static str,
    /// The next step where a run has another size.
    pub(crate) hint: &'static str,
    pub(crate) rows: &'static [Target],
}

pub(crate) struct Target {
    pub(crate) ours: &'static [&'static str],
    /// A star stands for any part of a name.
    pub(crate) workloads: &'static [&'static str],
    /// Empty for all that there are samples of.
    pub(crate) threads: &'static [usize],
    /// None for rates. Of latencies the 99th percentile is judged.
    pub(crate) unit: Option<&'static Unit>,
    pub(crate) against: Against,
    pub(crate) bound: Bound,
}

/// The divisor of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Against {
    /// The greatest of some engines in the same workload.
    Best(&'static [&'static str]),
    /// The sample of an engine, a workload and a number of threads; `""` and 0 for the same ones.
    Sample(&'static str, &'static str, usize),
    /// An engine in the same workload, or the figure that was measured before it was left out.
    Before(&'static str, f64),
    Constant(f64),
    Time(f64),
    /// Nothing: a field of the sample is divided by another one.
    Fields(&'static str, &'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    Least(f64),
    Most(f64),
}

impl Target {
    /// Rates on any number of threads, at least so many times those of the best of some engines.
    pub(crate) const fn rate(
        ours: &'static [&'static str],
        workloads: &'static [&'static str],
        least: f64,
        best: &'static [&'static str],
    ) -> Target {
        let (against, bound) = (Against::Best(best), Bound::Least(least));
        Target { ours, workloads, threads: &[], unit: None, against, bound }
    }

    pub(crate) const fn against(self, against: Against) -> Target {
        Target { against, ..self }
    }

    pub(crate) const fn of(self, unit: &'static Unit) -> Target {
        Target { unit: Some(unit), ..self }
    }

    pub(crate) const fn on(self, threads: &'static [usize]) -> Target {
        Target { threads, ..self }
    }

    /// Amounts of a unit, at most so many times something.
    pub(crate) const fn most(
        ours: &'static [&'static str],
        workloads: &'static [&'static str],
        unit: &'static Unit,
        most: f64,
        against: Against,
    ) -> Target {
        let bound = Bound::Most(most);
        Target { ours, workloads, threads: &[], unit: Some(unit), against, bound }
    }
}

impl Targets {
    pub(crate) fn print(&self, out: &mut dyn Write, report: &Report) -> io::Result<()> {
        let is_judged = self.judged.contains(&report.size);
        let header = ["target", "threads", "wanted", "measured", "rounds from .. to", ""];
        let mut rows = table(&header, header.len());
        for target in self.rows {
            for ours in target.named(report) {
                let Some((title, ratio)) = target.ratio(report, ours) else { continue };
                let (wanted, is_reached) = match target.bound {
                    Bound::Least(least) => (format!(">= {least:.2}x"), ratio.median >= least),
                    Bound::Most(most) => (format!("<= {most:.2}x"), ratio.median <= most),
                };
                let verdict = match (is_judged, is_reached) {
                    (false, _) => "",
                    (true, true) => "hit",
                    (true, false) => "miss",
                };
                rows.add_row([
                    format!("{}: {} {title}", ours.engine, ours.workload),
                    ours.threads.to_string(),
                    wanted,
                    format!("{:.2}x", ratio.median),
                    format!("{:.2}x .. {:.2}x", ratio.min, ratio.max),
                    verdict.to_owned(),
                ]);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let (from, to) = self.judged.clone().into_inner();
        let size = if from == to { "at" } else { "from" };
        writeln!(out, "\nTargets, judged {size} {from} {}:", self.size_unit)?;
        if !is_judged {
            writeln!(out, "(this run has {} entries: {})", report.entries, self.hint)?;
        }
        writeln!(out, "{rows}")
    }
}

impl Target {
    fn named<'r>(&'r self, report: &'r Report) -> impl Iterator<Item = &'r Sample> {
        let pairs = self
            .workloads
            .iter()
            .flat_map(|workload| self.ours.iter().map(move |engine| (*engine, *workload)));
        pairs.flat_map(move |(engine, workload)| {
            report.samples.iter().filter(move |sample| {
                sample.engine == engine
                    && is_named(&sample.workload, workload)
                    && (self.threads.is_empty() || self.threads.contains(&sample.threads))
                    && self.unit.map_or(sample.unit.is_rate(), |unit| sample.unit == unit)
            })
        })
    }

    /// The divisor of a sample, as the end of a title, and the ratio.
    fn ratio(&self, report: &Report, ours: &Sample) -> Option<(String, Ratio)> {
        let to = |theirs: &[f64]| Ratio::of(&judged(ours), theirs);
        let (workload, threads, unit) = (&ours.workload[..], ours.threads, Some(ours.unit));
        let sample = |engine: &str| report.sample(engine, workload, threads, unit);
        Some(match self.against {
            Against::Best(engines) => {
                let all = engines.iter().filter_map(|engine| sample(engine));
                let best = all.max_by(|one, two| one.median().total_cmp(&two.median()))?;
                (format!("against {}", best.engine), to(&judged(best)))
            }
            Against::Sample(engine, other, count) => {
                let named = if engine.is_empty() { &ours.engine[..] } else { engine };
                let on = if other.is_empty() { workload } else { other };
                let count = if count == 0 { threads } else { count };
                let unit = if on == workload { unit } else { self.unit };
                let theirs = report.sample(named, on, count, unit)?;
                let mut words = vec![engine.to_owned(), other.to_owned()];
                let plural = if count == 1 { "" } else { "s" };
                words.extend((count != threads).then(|| format!("{count} thread{plural}")));
                words.retain(|word| !word.is_empty());
                (format!("against {}", words.join(", ")), to(&judged(theirs)))
            }
            Against::Before(engine, figure) => match sample(engine) {
                Some(theirs) => (format!("against {engine} in this run"), to(&judged(theirs))),
                None => {
                    let amount = self.unit.map(|unit| format!(", {}", unit.table_name));
                    let amount = amount.unwrap_or_default();
                    (format!("against {engine} as measured before{amount}"), to(&[figure]))
                }
            },
            Against::Constant(figure) => {
                let unit = ours.unit;
                (format!("of {} {}", unit.shown(figure), unit.table_name), to(&[figure]))
            }
            Against::Time(nanoseconds) => {
                (format!("in {}", NANOSECONDS.shown(nanoseconds)), to(&[1e9 / nanoseconds]))
            }
            Against::Fields(one, other) => {
                let field = |name: &str| ours.fields.get(name).and_then(Value::as_f64);
                let title = format!("{} of {}", one.replace('_', " "), other.replace('_', " "));
                (title, Ratio::of(&[field(one)?], &[field(other)?]))
            }
        })
    }
}

/// True if a workload has a name, or both ends of a name with a star.
fn is_named(workload: &str, name: &str) -> bool {
    match name.split_once('*') {
        Some((begin, end)) => workload.starts_with(begin) && workload.ends_with(end),
        None => workload == name,
    }
}

fn judged(sample: &Sample) -> Vec<f64> {
    if sample.unit != &NANOSECONDS {
        return sample.rounds.clone();
    }
    sample.latencies.iter().map(|round| round[1] as f64).collect()
}
