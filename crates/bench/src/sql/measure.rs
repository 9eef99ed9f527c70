//! The order of measurements. In a round one system after the other loads the rows; then each question is asked of
//! one after the other, of processes first, then of those that have the rows open. Each round begins with another
//! system. Answers are compared with those of ours.

use std::cell::RefCell;
use std::rc::Rc;

use indicatif::ProgressBar;

use super::library::{InProcess, Library, Peer};
use super::rows::{Rows, Source};
use super::systems::{
    Answer, Asked, DUCKDB, HASH, ORDERED, POLARS, Program, SAPWOOD, SQLITE, System, agree,
};
use super::workload::{Phase, Place, Workload};
use super::{FLAG, Plan};
use crate::Error;
use crate::figures::{Rates, Timed as _, note};
use crate::folder::Folder;
use crate::python;
use crate::rounds::progress;

/// All figures of the rows of one source.
pub(crate) struct Figures {
    pub(crate) source: Source,
    pub(crate) rows: usize,
    pub(crate) rates: Rates<Workload>,
    pub(crate) sizes: Vec<Size>,
    pub(crate) csv_bytes: u64,
}

/// Bytes on disk of the rows that a system has loaded.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    pub(crate) engine: &'static str,
    /// By round.
    pub(crate) rounds: Vec<f64>,
}

impl Figures {
    pub(crate) fn bytes(&self, engine: &str) -> Option<&[f64]> {
        self.sizes.iter().find(|size| size.engine == engine).map(|size| &size.rounds[..])
    }

    fn note_bytes(&mut self, engine: &'static str, bytes: u64) {
        match self.sizes.iter_mut().find(|size| size.engine == engine) {
            Some(size) => size.rounds.push(bytes as f64),
            None => self.sizes.push(Size { engine, rounds: vec![bytes as f64] }),
        }
    }
}

pub(crate) fn measure(plan: &Plan) -> Result<Vec<Figures>, Error> {
    let mut all = Vec::new();
    let bar = progress(plan.sources.len() * (1 + Place::ALL.len()) * plan.runs);
    for &(source, count) in &plan.sources {
        let folder = Folder::new(&plan.dir, &format!("sql-{}-{count}", source.name()))?;
        bar.set_message(format!("{} as CSV", source.name()));
        let rows = match source {
            Source::Flights => Rows::flights(&plan.flights, count, &folder)?,
            Source::Generated => Rows::generated(count, &folder)?,
        };
        let csv_bytes = std::fs::metadata(&rows.path)?.len();
        let (rates, sizes) = (Rates::default(), Vec::new());
        let figures = Figures { source, rows: rows.count, rates, sizes, csv_bytes };
        let systems = systems(plan)?;
        let mut of_rows =
            OfRows { plan, rows: &rows, folder: &folder, systems, figures, bar: &bar };
        of_rows.measure()?;
        all.push(of_rows.figures);
    }
    bar.finish_and_clear();
    Ok(all)
}

fn systems(plan: &Plan) -> Result<Vec<System>, Error> {
    let sapwood = |engine| Some(Program::Sapwood(plan.program.clone(), engine));
    let in_process = || -> Option<Box<dyn Library>> { Some(Box::<InProcess>::default()) };
    let mut systems = vec![
        System::new(SAPWOOD, sapwood(None), None),
        System::new(ORDERED, sapwood(Some("ordered")), in_process()),
        System::new(HASH, sapwood(Some("hash")), in_process()),
    ];
    if plan.peers {
        let process = Rc::new(RefCell::new(python::start("sql", FLAG)?));
        let peer = |name| -> Option<Box<dyn Library>> { Some(Box::new(Peer::new(name, &process))) };
        let duckdb = Program::Duckdb(python::program("sql", "duckdb_cli", "duckdb")?);
        systems.push(System::new(DUCKDB, Some(duckdb), peer(DUCKDB)));
        systems.push(System::new(SQLITE, Some(Program::Sqlite), peer(SQLITE)));
        systems.push(System::new(POLARS, None, peer(POLARS)));
    }
    let wanted = |system: &System| {
        plan.engines.is_empty() || plan.engines.iter().any(|name| name == system.name)
    };
    systems.retain(wanted);
    Ok(systems)
}

/// The measurements of the rows of one source.
struct OfRows<'s> {
    plan: &'s Plan,
    rows: &'s Rows,
    folder: &'s Folder,
    systems: Vec<System>,
    figures: Figures,
    bar: &'s ProgressBar,
}

impl OfRows<'_> {
    fn measure(&mut self) -> Result<(), Error> {
        for round in 0..self.plan.runs {
            self.load(round)?;
            self.bar.inc(1);
        }
        for place in Place::ALL {
            if place == Place::Library {
                for system in &mut self.systems {
                    system.open()?;
                }
            }
            for round in 0..self.plan.runs {
                for &phase in place.phases() {
                    if phase != Phase::Load && self.plan.phases.contains(&phase) {
                        self.ask(Workload { phase, place }, round)?;
                    }
                }
                self.bar.inc(1);
            }
        }
        self.systems.iter_mut().try_for_each(System::close)
    }

    /// The places of systems in a round.
    fn turns(&self, round: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.systems.len();
        (0..count).map(move |turn| (round + turn) % count)
    }

    /// Loads the rows where they are stored: once, or in each round where that is measured.
    fn load(&mut self, round: usize) -> Result<(), Error> {
        let is_measured = self.plan.phases.contains(&Phase::Load);
        if round > 0 && !is_measured {
            return Ok(());
        }
        let workload = Workload { phase: Phase::Load, place: Place::Stored };
        for place in self.turns(round) {
            let system = &mut self.systems[place];
            if !system.runs(workload) {
                continue;
            }
            self.bar.set_message(format!("{} loads {}", system.name, self.figures.source.name()));
            let (elapsed, bytes) = system.load(self.rows, self.folder)?;
            let rate = self.rows.count as f64 / elapsed.as_secs_f64();
            if is_measured {
                note(&mut self.figures.rates.rates, workload, self.plan.threads, system.name, rate);
            }
            self.figures.note_bytes(system.name, bytes);
        }
        Ok(())
    }

    fn ask(&mut self, workload: Workload, round: usize) -> Result<(), Error> {
        let mut answers: Vec<(&'static str, Answer)> = Vec::new();
        for place in self.turns(round) {
            let system = &mut self.systems[place];
            if !system.runs(workload) {
                continue;
            }
            self.bar.set_message(format!("{}: {}", system.name, workload.name()));
            let asked = system.ask(workload, self.rows, round, self.plan.least);
            let name = system.name;
            let Asked { times, elapsed, answer } =
                asked.map_err(|error| format!("{name}, {}: {error}", workload.name()))?;
            let rate = times as f64 / elapsed.as_secs_f64();
            note(&mut self.figures.rates.rates, workload, self.plan.threads, name, rate);
            answers.push((name, answer));
        }
        let Some(((first, expected), others)) = answers.split_first() else { return Ok(()) };
        match others.iter().find(|(_, answer)| !agree(expected, answer)) {
            None => Ok(()),
            Some((other, answer)) => Err(format!(
                "{}: {first} and {other} do not agree: {} and {}",
                workload.name(),
                shown(expected),
                shown(answer)
            )
            .into()),
        }
    }
}

/// The first rows of an answer.
fn shown(answer: &Answer) -> String {
    let first = answer.iter().take(3).map(|row| serde_json::Value::Object(row.clone()).to_string());
    format!("{} rows, {}", answer.len(), first.collect::<Vec<_>>().join(" "))
}
