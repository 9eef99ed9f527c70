//! The order of measurements. In a round every engine folds the whole stream into an empty index, one after the
//! other; then each question is asked of one engine after the other. Each round begins with another engine.

use std::time::Duration;

use indicatif::ProgressBar;

use super::Plan;
use super::druid::{DRUID, Druid};
use super::engines::{Engine, HASH_MAP, InProcess, Load};
use super::frames;
use super::ours::OURS;
use super::sets::{self, Set, Source};
use super::stream::{Expected, Stream, Total};
use super::workload::{Phase, Place, Workload};
use crate::Error;
use crate::figures::{Rates, Timed as _, note};
use crate::rounds::progress;

/// All figures of the rows of one source.
pub(crate) struct Figures {
    pub(crate) source: Source,
    pub(crate) rows: usize,
    pub(crate) rates: Rates<Workload>,
    pub(crate) sizes: Vec<Size>,
}

/// Facts of an engine: of live ones, after one thread has folded all rows.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    pub(crate) engine: &'static str,
    pub(crate) set: Set,
    pub(crate) place: Place,
    pub(crate) facts: usize,
    /// Bytes of a fact, by round.
    pub(crate) rounds: Vec<f64>,
}

impl Figures {
    /// Bytes of a live fact.
    pub(crate) fn live_bytes(&self, engine: &str, set: Set) -> Option<&[f64]> {
        let is_meant =
            |size: &&Size| size.engine == engine && size.set == set && size.place == Place::Live;
        self.sizes.iter().find(is_meant).map(|size| &size.rounds[..])
    }

    fn note_size(
        &mut self,
        engine: &'static str,
        set: Set,
        place: Place,
        facts: usize,
        bytes: u64,
    ) {
        let per_fact = bytes as f64 / facts as f64;
        let is_same =
            |size: &&mut Size| size.engine == engine && size.set == set && size.place == place;
        match self.sizes.iter_mut().find(is_same) {
            Some(size) => size.rounds.push(per_fact),
            None => {
                self.sizes.push(Size { engine, set, place, facts, rounds: vec![per_fact] });
            }
        }
    }
}

pub(crate) fn measure(plan: &Plan) -> Result<Vec<Figures>, Error> {
    let mut engines = engines(plan)?;
    let sets: usize = plan.sources.iter().map(|source| source.sets(&plan.granules).len()).sum();
    let bar = progress(sets * plan.threads.len() * plan.runs);
    let mut all = Vec::new();
    for &source in &plan.sources {
        let stream = stream(plan, source)?;
        let (rates, sizes) = (Rates::default(), Vec::new());
        let mut figures = Figures { source, rows: stream.count, rates, sizes };
        for set in source.sets(&plan.granules) {
            let files = plan.phases.iter().any(|phase| phase.is_question());
            let load = Load { set, stream: &stream, batch: plan.batch, folder: &plan.dir, files };
            let mut of_set = OfSet {
                plan,
                load: &load,
                expected: stream.expected(set),
                figures: &mut figures,
                bar: &bar,
            };
            of_set.measure(&mut engines)?;
        }
        all.push(figures);
    }
    bar.finish_and_clear();
    Ok(all)
}

fn engines(plan: &Plan) -> Result<Vec<Box<dyn Engine>>, Error> {
    let wanted = |name: &str| plan.engines.is_empty() || plan.engines.iter().any(|it| it == name);
    let mut engines: Vec<Box<dyn Engine>> = Vec::new();
    for name in [OURS, HASH_MAP].into_iter().filter(|name| wanted(name)) {
        engines.push(Box::new(InProcess::new(name)));
    }
    if plan.druid && wanted(DRUID) {
        // At least as many as there are flights.
        engines.push(Box::new(Druid::start(plan.rows.max(plan.rows_most.min(340_000)))?));
    }
    if plan.frames && frames::NAMES.iter().any(|name| wanted(name)) {
        for frame in frames::start()?.into_iter().filter(|frame| wanted(frame.name())) {
            engines.push(Box::new(frame));
        }
    }
    Ok(engines)
}

fn stream(plan: &Plan, source: Source) -> Result<Stream, Error> {
    match source {
        Source::Synthetic => sets::synthetic(plan.rows, plan.batch),
        Source::Flights => sets::flights(&plan.flights, plan.rows_most, plan.batch),
        Source::Wikiticker => {
            let path = plan.wikiticker.as_ref().ok_or("the edits need --wikiticker FILE")?;
            sets::wikiticker(path, plan.rows_most, plan.batch)
        }
    }
}

/// The measurements of one set.
struct OfSet<'s> {
    plan: &'s Plan,
    load: &'s Load<'s>,
    expected: Expected,
    figures: &'s mut Figures,
    bar: &'s ProgressBar,
}

impl OfSet<'_> {
    fn measure(&mut self, engines: &mut [Box<dyn Engine>]) -> Result<(), Error> {
        let (set, facts) = (self.load.set, self.expected.facts);
        for engine in &mut *engines {
            if let Some(bytes) = engine.begin(self.load)? {
                self.figures.note_size(engine.name(), set, Place::Files, facts, bytes);
            }
        }
        for &threads in &self.plan.threads {
            for round in 0..self.plan.runs {
                self.round(engines, threads, round)?;
                self.bar.inc(1);
            }
        }
        Ok(())
    }

    fn round(
        &mut self,
        engines: &mut [Box<dyn Engine>],
        threads: usize,
        round: usize,
    ) -> Result<(), Error> {
        let plan = self.plan;
        let count = engines.len();
        let turns = (0..count).map(|turn| (round + turn) % count);
        let is_asked = plan.phases.iter().any(|phase| phase.is_question());
        for phase in Phase::FOLDS {
            // Questions need facts.
            let is_needed = plan.phases.contains(&phase) || (phase == Phase::Ingest && is_asked);
            for at in turns.clone().filter(|_| is_needed) {
                self.fold(&mut *engines[at], phase, threads)?;
            }
        }
        for place in Place::ASKED {
            for phase in Phase::QUESTIONS.into_iter().filter(|phase| plan.phases.contains(phase)) {
                for at in turns.clone() {
                    self.ask(&mut *engines[at], phase, place, threads)?;
                }
            }
        }
        Ok(())
    }

    fn fold(&mut self, engine: &mut dyn Engine, phase: Phase, threads: usize) -> Result<(), Error> {
        let workload = Workload { phase, place: Place::Live, set: self.load.set };
        if !engine.runs(workload, threads) {
            return Ok(());
        }
        self.say(engine, workload, threads);
        let folded = engine.fold(self.load, phase, threads)?;
        let expected = Total { groups: self.expected.facts, ..self.expected.all };
        let found = folded.all.unwrap_or(Total { groups: folded.facts, ..expected });
        if found != expected {
            return Err(wrong(engine, workload, found, expected));
        }
        if let Some(bytes) = folded.bytes.filter(|_| threads == 1 && phase == Phase::Ingest) {
            let (set, facts) = (self.load.set, folded.facts);
            self.figures.note_size(engine.name(), set, Place::Live, facts, bytes);
        }
        if let Some(bytes) = folded.trimmed.filter(|_| threads == 1) {
            let (set, facts) = (self.load.set, folded.facts);
            self.figures.note_size(engine.name(), set, Place::Trimmed, facts, bytes);
        }
        if self.plan.phases.contains(&phase) {
            let rate = self.load.stream.count as f64 / folded.elapsed.as_secs_f64();
            self.note(engine, workload, threads, rate);
        }
        Ok(())
    }

    fn ask(
        &mut self,
        engine: &mut dyn Engine,
        phase: Phase,
        place: Place,
        threads: usize,
    ) -> Result<(), Error> {
        let workload = Workload { phase, place, set: self.load.set };
        if !engine.runs(workload, threads) {
            return Ok(());
        }
        self.say(engine, workload, threads);
        // What comes first reads files, and compiles.
        engine.ask(self.load, workload, threads, Duration::ZERO)?;
        let asked = engine.ask(self.load, workload, threads, self.plan.asked_at_least)?;
        let expected = self.expected.answer(phase);
        let found = match phase {
            Phase::TopN => Total { rows: 0, ..asked.total },
            _ => asked.total,
        };
        if found != expected {
            return Err(wrong(engine, workload, found, expected));
        }
        self.note(engine, workload, threads, asked.times as f64 / asked.elapsed.as_secs_f64());
        Ok(())
    }

    fn say(&self, engine: &dyn Engine, workload: Workload, threads: usize) {
        self.bar.set_message(format!("{}: {} on {threads}", engine.name(), workload.name()));
    }

    fn note(&mut self, engine: &dyn Engine, workload: Workload, threads: usize, rate: f64) {
        note(&mut self.figures.rates.rates, workload, threads, engine.name(), rate);
    }
}

fn wrong(engine: &dyn Engine, workload: Workload, found: Total, expected: Total) -> Error {
    let (engine, workload) = (engine.name(), workload.name());
    format!("{engine}, {workload}: {found}, not {expected}: a bug in it or in its adapter").into()
}
