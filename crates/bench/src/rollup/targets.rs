//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_ROWS;
use super::druid::DRUID;
use super::engines::HASH_MAP;
use super::frames::DUCKDB;
use super::measure::Figures;
use super::ours::OURS;
use super::sets::{Granule, Set, Source};
use super::workload::{Phase, Place, Workload};
use crate::figures::Ratio;
use crate::report::{Targets, Verdicts};

/// What stands for Druid's index in a run without it: rows a second of `OnheapIncrementalIndex` 37.0.0 (JDK 17, one thread, the
/// best of several runs, on a machine of the class that the targets were set on: 2 cores of a shared
/// EPYC), on a stream of this kind.
const DRUID_BEFORE: [(Granule, f64); 3] =
    [(Granule::All, 367e3), (Granule::Hour, 325e3), (Granule::None, 626e3)];
const AGAINST_DRUID: f64 = 8.0;
const JSON_AGAINST_DRUID: f64 = 3.0;
/// Bytes of a fact there, where each row is one.
const BYTES_OF_DRUID: f64 = 550.0;
/// A fifth of its bytes at most.
const BYTES_AGAINST_DRUID: f64 = 5.0;
const SCALING: f64 = 1.8;
/// Questions that are no slower than DuckDB's over Parquet.
const AGAINST_DUCKDB: f64 = 1.0;
const ASKED_OF_DUCKDB: [Phase; 3] = [Phase::Timeseries, Phase::GroupByOne, Phase::GroupBy];

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, all: &[Figures]) -> io::Result<()> {
    let synthetic = all.iter().find(|figures| figures.source == Source::Synthetic);
    let verdicts = match synthetic.is_some_and(|figures| figures.rows >= TARGET_ROWS) {
        true => Verdicts::Given,
        false => Verdicts::Withheld,
    };
    let mut targets = Targets::new(verdicts);
    if let Some(figures) = synthetic {
        for (granule, before) in DRUID_BEFORE {
            ingestion(&mut targets, figures, Set { source: Source::Synthetic, granule }, before);
        }
    }
    for figures in all {
        for set in figures.source.sets(&Granule::ALL) {
            questions(&mut targets, figures, set);
        }
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at {TARGET_ROWS} rows:")?;
    if targets.are_withheld() {
        let rows = synthetic.map_or(0, |figures| figures.rows);
        writeln!(out, "(this run has {rows} rows: leave --rows and --smoke out to judge them)")?;
    }
    writeln!(out, "{targets}")
}

fn ingestion(targets: &mut Targets, figures: &Figures, set: Set, before: f64) {
    let name = set.name();
    let rate = |phase: Phase, engine: &str, threads: usize| {
        figures.rates.rate(engine, Workload { phase, place: Place::Live, set }, threads)
    };
    if let Some(one) = rate(Phase::Ingest, OURS, 1) {
        let (ratio, source) = match rate(Phase::Ingest, DRUID, 1) {
            Some(druid) => (Ratio::of(&one.rounds, &druid.rounds), "in this run"),
            None => (Ratio::to(&one.rounds, before), "as measured before"),
        };
        let title = format!("{name}: rows/s against Druid {source}");
        targets.at_least(&title, 1, AGAINST_DRUID, ratio);
        if let Some(two) = rate(Phase::Ingest, OURS, 2) {
            let title = format!("{name}: rows/s of two threads against one");
            targets.at_least(&title, 2, SCALING, Ratio::of(&two.rounds, &one.rounds));
        }
        if let Some(map) = rate(Phase::Ingest, HASH_MAP, 1) {
            let title = format!("{name}: rows/s against {HASH_MAP}");
            targets.at_least(&title, 1, 1.0, Ratio::of(&one.rounds, &map.rounds));
        }
    }
    if let Some((ours, druid)) = rate(Phase::Json, OURS, 1).zip(rate(Phase::Json, DRUID, 1)) {
        let title = format!("{name}: rows/s of JSON lines against Druid in this run");
        let ratio = Ratio::of(&ours.rounds, &druid.rounds);
        targets.at_least(&title, 1, JSON_AGAINST_DRUID, ratio);
    }
    if let Some(ours) = figures.live_bytes(OURS, set) {
        let druid = figures.live_bytes(DRUID, set);
        let ratio = match druid {
            Some(druid) => Ratio::of(druid, ours),
            None => Ratio::of(&vec![BYTES_OF_DRUID; ours.len()], ours),
        };
        let source = druid.map_or("as measured before", |_| "in this run");
        let title = format!("{name}: a fact's bytes of Druid {source} against ours");
        targets.at_least(&title, 1, BYTES_AGAINST_DRUID, ratio);
    }
}

/// Questions over segments against those over the same facts in Parquet, by each number of threads.
fn questions(targets: &mut Targets, figures: &Figures, set: Set) {
    for phase in ASKED_OF_DUCKDB {
        for threads in figures.rates.thread_counts() {
            let workload = Workload { phase, place: Place::Files, set };
            let rate = |engine: &str| figures.rates.rate(engine, workload, threads);
            if let Some((ours, duckdb)) = rate(OURS).zip(rate(DUCKDB)) {
                let title = format!("{}: {} of segments against DuckDB", set.name(), phase.name());
                let ratio = Ratio::of(&ours.rounds, &duckdb.rounds);
                targets.at_least(&title, threads, AGAINST_DUCKDB, ratio);
            }
        }
    }
}
