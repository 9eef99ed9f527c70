//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_ROWS;
use super::contenders::{HASH_MAP, OURS};
use super::druid;
use super::measure::{Figures, Size};
use super::workload::{Granule, Phase, Workload};
use crate::figures::Ratio;
use crate::report::{Targets, Verdicts};

/// What stands for Druid's index in a run without it: rows a second of `OnheapIncrementalIndex` 37.0.0 (JDK 17, one thread, the
/// best of several runs, on a machine of the class that the targets were set on: 2 cores of a shared
/// EPYC), on a stream of this kind.
const DRUID: [(Granule, f64); 3] =
    [(Granule::All, 367e3), (Granule::Hour, 325e3), (Granule::None, 626e3)];
const AGAINST_DRUID: f64 = 8.0;
const JSON_AGAINST_DRUID: f64 = 3.0;
/// A fifth of the 550 bytes of a fact there.
const BYTES_PER_FACT_MOST: f64 = 110.0;
const SCALING: f64 = 1.8;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = match figures.rows < TARGET_ROWS {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    for (granule, rows) in DRUID {
        let workload = Workload { phase: Phase::Ingest, granule };
        let name = granule.name();
        let rate = |engine: &str, threads: usize| figures.rates.rate(engine, workload, threads);
        if let Some(one) = rate(OURS, 1) {
            let (ratio, source) = match rate(druid::NAME, 1) {
                Some(druid) => (Ratio::of(&one.rounds, &druid.rounds), "in this run"),
                None => (Ratio::to(&one.rounds, rows), "as measured before"),
            };
            let title = format!("{name}: rows/s against Druid {source}");
            targets.at_least(&title, 1, AGAINST_DRUID, ratio);
            if let Some(two) = rate(OURS, 2) {
                let title = format!("{name}: rows/s of two threads against one");
                targets.at_least(&title, 2, SCALING, Ratio::of(&two.rounds, &one.rounds));
            }
            if let Some(map) = rate(HASH_MAP, 1) {
                let title = format!("{name}: rows/s against {HASH_MAP}");
                targets.at_least(&title, 1, 1.0, Ratio::of(&one.rounds, &map.rounds));
            }
        }
        let json = Workload { phase: Phase::Json, granule };
        let json = |engine: &str| figures.rates.rate(engine, json, 1);
        if let Some((ours, druid)) = json(OURS).zip(json(druid::NAME)) {
            let title = format!("{name}: rows/s of JSON lines against Druid in this run");
            let ratio = Ratio::of(&ours.rounds, &druid.rounds);
            targets.at_least(&title, 1, JSON_AGAINST_DRUID, ratio);
        }
        let bytes = |engine: &str| figures.size(engine, granule).and_then(Size::per_fact);
        if let Some(ours) = bytes(OURS) {
            let most =
                bytes(druid::NAME).map_or(BYTES_PER_FACT_MOST, |bytes| (bytes / 5.0).round());
            targets.at_most(
                &format!("{name}: bytes of a fact, a fifth of Druid's"),
                most,
                ours,
                "B",
            );
        }
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at {TARGET_ROWS} rows:")?;
    if targets.are_withheld() {
        writeln!(out, "(this run has {} rows: leave --rows out to judge them)", figures.rows)?;
    }
    writeln!(out, "{targets}")
}
