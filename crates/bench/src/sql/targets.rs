//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::measure::Figures;
use super::systems::{DUCKDB, HASH, ORDERED, SAPWOOD};
use super::workload::{Phase, Place, Workload};
use super::{FLIGHTS, TARGET_ROWS};
use crate::figures::{Ratio, Timed as _, median};
use crate::report::{Targets, Verdicts};

/// Aggregates of stored rows take so much longer at most.
const STORED_AGAINST_DUCKDB: f64 = 1.0 / 1.5;
const FILE_AGAINST_DUCKDB: f64 = 1.0;
const GET_AGAINST_DUCKDB: f64 = 2.0;
/// A row by a process.
const GET_MOST_MS: f64 = 10.0;
const LOAD_AGAINST_DUCKDB: f64 = 1.5;
const BYTES_AGAINST_DUCKDB: f64 = 2.0;
const OPEN_AGAINST_DUCKDB: f64 = 20.0;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, all: &[Figures]) -> io::Result<()> {
    let is_whole = |figures: &Figures| figures.rows == FLIGHTS || figures.rows >= TARGET_ROWS;
    let verdicts = if all.iter().all(is_whole) { Verdicts::Given } else { Verdicts::Withheld };
    let mut targets = Targets::new(verdicts);
    for figures in all {
        of_rows(&mut targets, figures);
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at the {FLIGHTS} flights and {TARGET_ROWS} rows:")?;
    if targets.are_withheld() {
        writeln!(out, "(this run has fewer: leave --rows and --smoke out to judge them)")?;
    }
    writeln!(out, "{targets}")
}

fn of_rows(targets: &mut Targets, figures: &Figures) {
    let rows = format!("{} {}", figures.rows, figures.source.name());
    let threads = figures.rates.thread_counts().first().copied().unwrap_or(1);
    let rate = |engine: &str, phase: Phase, place: Place| {
        figures.rates.rate(engine, Workload { phase, place }, threads)
    };
    let mut against = |engine: &str, phase: Phase, place: Place, least: f64| {
        if let Some((ours, theirs)) = rate(engine, phase, place).zip(rate(DUCKDB, phase, place)) {
            let title = format!("{rows}: {engine}, {} against DuckDB", ours.workload.name());
            targets.at_least(&title, threads, least, Ratio::of(&ours.rounds, &theirs.rounds));
        }
    };
    for phase in [Phase::ByCarrier, Phase::Median] {
        against(SAPWOOD, phase, Place::File, FILE_AGAINST_DUCKDB);
    }
    for engine in [ORDERED, HASH] {
        for phase in [Phase::ByCarrier, Phase::Median] {
            against(engine, phase, Place::Stored, STORED_AGAINST_DUCKDB);
        }
        against(engine, Phase::Get, Place::Stored, GET_AGAINST_DUCKDB);
        against(engine, Phase::Load, Place::Stored, LOAD_AGAINST_DUCKDB);
        against(engine, Phase::Get, Place::Library, OPEN_AGAINST_DUCKDB);
        against(engine, Phase::Update, Place::Library, OPEN_AGAINST_DUCKDB);
    }
    for engine in [ORDERED, HASH] {
        if let Some(get) = rate(engine, Phase::Get, Place::Stored) {
            let title = format!("{rows}: {engine}, a get by a process");
            targets.at_most(&title, GET_MOST_MS, 1e3 / get.median(), "ms");
        }
        if let Some((ours, theirs)) = figures.bytes(engine).zip(figures.bytes(DUCKDB)) {
            let title = format!("{rows}: {engine}, bytes on disk against DuckDB");
            let ratio = median(ours) / median(theirs);
            targets.at_most(&title, BYTES_AGAINST_DUCKDB, ratio, "x");
        }
    }
}
