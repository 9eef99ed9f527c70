//! The speed and size of roll-ups beside Druid's incremental index, DuckDB, DataFusion, and a
//! roll-up in a hash map.
//!
//! Rows of a synthetic stream (a time, five dimensions of texts with 10,000 combinations, a whole
//! number and a float), of the flights that left New York in 2013, and of a day of Wikipedia's
//! edits are folded into facts with five metrics, by time truncated to a granularity: as columns,
//! and as JSON lines with their parsing. Then the facts are queried, live ones and those in
//! segments. In each round the engines take turns; the totals of every engine are compared with
//! those of the rows.

mod druid;
mod engines;
mod frames;
mod hash_map;
mod ours;
mod sets;
mod stream;

use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::harness::*;
use druid::{DRUID, Druid};
use engines::{FactPlace, HASH_MAP, LocalEngine, Phase, RollupEngine, RollupJob, SetLoad};
use frames::{DATAFUSION, DUCKDB};
use ours::OURS;
use sets::{Granule, RowSource};
use stream::Stream;

const TARGET_ROWS: usize = 1_000_000;
const ASKED_AT_LEAST: Duration = Duration::from_millis(200);

pub(crate) const BENCH: Bench = Bench {
    name: "rollup",
    workloads: &["ingest", "json", "timeseries", "group-by-one", "group-by", "top-n", "filter"],
    extra: &[],
    engines: &[OURS, HASH_MAP, DRUID, DUCKDB, DATAFUSION],
    entries: [&[20_000], &[TARGET_ROWS], &[5 * TARGET_ROWS]],
    entries_range: [1, 1 << 32],
    runs: [2, 3, 5],
    threads: &[],
};

const SETS: &[&str] = &["ingest, *"];
/// Queries over segments are no slower than DuckDB's over the same facts in Parquet.
const OF_FILES: Target = Target::rate(
    &[OURS],
    &["timeseries of files, *", "group-by-one of files, *", "group-by of files, *"],
    1.0,
    &[DUCKDB],
);

/// Eight times Druid's rate. What stands for it in a run without it: rows a second of
/// `OnheapIncrementalIndex` 37.0.0 (JDK 17, one thread, the best of several runs, on a machine of the
/// class that the targets were set on: 2 cores of a shared EPYC), on a stream of this kind.
const fn druid(workloads: &'static [&'static str], before: f64) -> Target {
    Target::rate(&[OURS], workloads, 8.0, &[]).on(&[1]).against(Against::Before(DRUID, before))
}

const TARGETS: Targets = Targets {
    judged: TARGET_ROWS..=usize::MAX,
    size_unit: "rows",
    hint: "leave --rows and --smoke out to judge them",
    rows: &[
        druid(&["ingest, all"], 367e3),
        druid(&["ingest, hour"], 325e3),
        druid(&["ingest, none"], 626e3),
        Target::rate(&[OURS], SETS, 1.8, &[]).on(&[2]).against(Against::Sample("", "", 1)),
        Target::rate(&[OURS], SETS, 1.0, &[HASH_MAP]).on(&[1]),
        Target::rate(&[OURS], &["json, *"], 3.0, &[DRUID]).on(&[1]),
        // A fifth of the bytes of a fact there, where each row is one.
        Target::most(&[OURS], SETS, &BYTES_OF_FACT, 0.2, Against::Before(DRUID, 550.0)),
        OF_FILES,
    ],
};

const TARGETS_OF_READ_SETS: Targets =
    Targets { judged: 0..=usize::MAX, size_unit: "rows", hint: "", rows: &[OF_FILES] };

/// Flags of `sapwood-bench rollup`. Its entries are rows of the synthetic stream.
#[derive(Debug, Clone, clap::Args)]
pub struct RollupArgs {
    #[command(flatten)]
    flags: Flags,

    /// Rows that come in together
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,

    /// Sources of rows [default: all, and wikiticker where it is given]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    sets: Vec<RowSource>,

    /// Wikipedia's edits as JSON lines, such as wikiticker-2015-09-12-sampled.json.gz of Druid
    #[arg(long, value_name = "FILE")]
    wikiticker: Option<PathBuf>,

    /// Granularities that times of the synthetic stream are truncated to [default: all of them]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    granularity: Vec<Granule>,

    /// Run Druid's incremental index beside ours, where a JDK and Maven are installed
    #[arg(long)]
    druid: bool,

    /// Run DuckDB and DataFusion beside ours, where Python 3.10 or later is installed: packages
    /// come from PyPI the first time
    #[arg(long)]
    frames: bool,
}

impl RollupArgs {
    fn sources(&self) -> Result<Vec<RowSource>> {
        let mut sources = or(&self.sets, RowSource::value_variants());
        if self.wikiticker.is_none() && sources.contains(&RowSource::Wikiticker) {
            if self.sets.contains(&RowSource::Wikiticker) {
                bail!(
                    "the edits are not part of this repository: say with --wikiticker \
                            FILE where they are"
                );
            }
            tell("left out: wikiticker; say with --wikiticker FILE where the edits are");
            sources.retain(|source| *source != RowSource::Wikiticker);
        }
        Ok(sources)
    }

    fn stream(&self, plan: &Plan, source: RowSource) -> Result<Stream> {
        let (rows, batch) = (plan.size(), self.batch as usize);
        // A set that is read is read whole, but in a smoke run.
        let most = if plan.mode == Mode::Smoke { rows } else { usize::MAX };
        match source {
            RowSource::Synthetic => sets::synthetic(rows, batch),
            RowSource::Flights => sets::flights(most, batch),
            RowSource::Wikiticker => {
                let path = self.wikiticker.as_ref().ok_or("the edits need --wikiticker FILE")?;
                sets::wikiticker(path, most, batch)
            }
        }
    }

    fn engines(&self, plan: &Plan) -> Result<Vec<Box<dyn RollupEngine>>> {
        let mut engines: Vec<Box<dyn RollupEngine>> = Vec::new();
        for name in [OURS, HASH_MAP].into_iter().filter(|name| plan.takes(name)) {
            engines.push(Box::new(LocalEngine::new(name)));
        }
        if self.druid && plan.takes(DRUID) {
            // At least as many as there are flights.
            let rows =
                if plan.mode == Mode::Smoke { plan.size() } else { plan.size().max(340_000) };
            engines.push(Box::new(Druid::start(rows)?));
        }
        if self.frames && frames::NAMES.iter().any(|name| plan.takes(name)) {
            let frames = frames::start()?.into_iter().filter(|frame| plan.takes(frame.name));
            engines.extend(frames.map(|frame| -> Box<dyn RollupEngine> { Box::new(frame) }));
        }
        Ok(engines)
    }
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &RollupArgs, out: &mut dyn Write) -> Result {
    let plan = args.flags.plan(&BENCH, &[])?;
    args.flags.check_flag(&[DRUID], args.druid, "runs in a JVM", "--druid")?;
    args.flags.check_flag(&frames::NAMES, args.frames, "runs in Python", "--frames")?;
    let sources = args.sources()?;
    let mut sheet = args.flags.open(out)?;
    let mut engines = args.engines(&plan)?;
    for source in sources {
        let stream = Rc::new(args.stream(&plan, source)?);
        let dimensions = source.shape().dimensions.len();
        let data = format!("{}: {dimensions} texts, 5 metrics", source.name());
        let mut report = Report::new("rollup", stream.count, data, &[OURS]);
        for set in source.sets(&or(&args.granularity, Granule::value_variants())) {
            let files = Phase::QUESTIONS.iter().any(|phase| plan.runs(phase.name()));
            let (batch, folder) = (args.batch as usize, plan.dir.clone());
            let expected = stream.expected(set);
            let stream = Rc::clone(&stream);
            let load = Rc::new(SetLoad { set, stream, batch, folder, files, expected });
            measure(&plan, &load, &mut engines, &mut report)?;
        }
        let is_synthetic = source == RowSource::Synthetic;
        let targets = if is_synthetic { &TARGETS } else { &TARGETS_OF_READ_SETS };
        sheet.print(&report, &[targets])?;
    }
    sheet.end()
}

/// Measures one set: every engine folds the whole stream into an empty index, one after the other;
/// then each query is asked of one engine after the other.
fn measure(
    plan: &Plan,
    load: &Rc<SetLoad>,
    engines: &mut Vec<Box<dyn RollupEngine>>,
    report: &mut Report,
) -> Result {
    for engine in &mut *engines {
        if let Some(bytes) = engine.begin(load)? {
            let bytes = Figure::new(bytes as f64 / load.expected.facts as f64);
            let workload = format!("files, {}", load.set.name());
            report.note(&workload, 1, engine.title(), &BYTES_OF_FACT, bytes);
        }
    }
    let least = if plan.mode == Mode::Smoke { Duration::ZERO } else { ASKED_AT_LEAST };
    for &threads in &plan.threads {
        let job = |phase, place| RollupJob { load: Rc::clone(load), phase, place, threads, least };
        let folds = Phase::FOLDS.into_iter().map(|phase| (phase, FactPlace::Live));
        let questions = FactPlace::ASKED
            .into_iter()
            .flat_map(|place| Phase::QUESTIONS.into_iter().map(move |phase| (phase, place)));
        for (phase, place) in folds.chain(questions) {
            if plan.runs(phase.name()) {
                rounds(engines, report, plan.runs, |_| job(phase, place))?;
            } else if phase == Phase::Ingest && load.files {
                // Queries need facts.
                for engine in &mut *engines {
                    engine.fold(load, phase, threads)?;
                }
            }
        }
    }
    Ok(())
}
