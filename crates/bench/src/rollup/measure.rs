//! The order of measurements. In a round the engines take turns, and each round begins with another
//! one. At its turn an engine folds the whole stream into an empty index, and is then asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Plan;
use super::contenders::{Contender, NAMES, Total, open};
use super::druid::{self, Druid};
use super::workload::{Granule, Phase, Stream, Workload};
use crate::Error;
use crate::clock::Clock;
use crate::figures::{Rates, note};
use crate::rounds::{progress, run_threads};

/// A question is asked again until this has passed.
const ASKED_AT_LEAST: Duration = Duration::from_millis(200);

/// All figures of a run.
pub(crate) struct Figures {
    pub(crate) rows: usize,
    pub(crate) rates: Rates<Workload>,
    pub(crate) sizes: Vec<Size>,
}

/// Facts of an engine after one thread has folded all rows, by the last round.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    pub(crate) engine: &'static str,
    pub(crate) granule: Granule,
    pub(crate) facts: usize,
    pub(crate) bytes: Option<u64>,
}

impl Size {
    pub(crate) fn per_fact(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / self.facts as f64)
    }
}

impl Figures {
    pub(crate) fn size(&self, engine: &str, granule: Granule) -> Option<&Size> {
        self.sizes.iter().find(|size| size.engine == engine && size.granule == granule)
    }
}

pub(crate) fn measure(plan: &Plan) -> Result<Figures, Error> {
    let stream = Stream::new(plan.rows, plan.batch)?;
    let wanted =
        |name: &&&str| plan.engines.is_empty() || plan.engines.iter().any(|it| it == **name);
    let mut engines: Vec<&'static str> = NAMES.iter().filter(wanted).copied().collect();
    let mut druid = match plan.druid && wanted(&&druid::NAME) {
        true => Some(Druid::start(plan.rows, plan.batch)?),
        false => None,
    };
    engines.extend(druid.as_ref().map(|_| druid::NAME));
    let mut figures = Figures { rows: plan.rows, rates: Rates::default(), sizes: Vec::new() };
    let steps = plan.granules.len() * plan.threads.len() * plan.runs * engines.len();
    let bar = progress(steps);
    for &granule in &plan.granules {
        for &threads in &plan.threads {
            for round in 0..plan.runs {
                for place in (0..engines.len()).map(|turn| (round + turn) % engines.len()) {
                    let engine = engines[place];
                    bar.set_message(format!("{engine}: {} on {threads}", granule.name()));
                    let mut turn =
                        Turn { plan, stream: &stream, engine, granule, threads, facts: 0 };
                    match (&mut druid, engine) {
                        (Some(druid), druid::NAME) => turn.run_druid(druid, &mut figures)?,
                        _ => turn.run(&mut figures)?,
                    }
                    bar.inc(1);
                }
            }
        }
    }
    bar.finish_and_clear();
    Ok(figures)
}

/// An engine's turn in a round.
struct Turn<'p> {
    plan: &'p Plan,
    stream: &'p Stream,
    engine: &'static str,
    granule: Granule,
    threads: usize,
    facts: usize,
}

impl Turn<'_> {
    fn run(&mut self, figures: &mut Figures) -> Result<(), Error> {
        let mut asked = None;
        for phase in [Phase::Ingest, Phase::Json] {
            let is_asked = phase == Phase::Ingest;
            let questions = [Phase::GroupBy, Phase::Timeseries];
            let needed = is_asked && questions.iter().any(|phase| self.plan.phases.contains(phase));
            if !self.plan.phases.contains(&phase) && !needed {
                continue;
            }
            let contender = open(self.engine, self.granule)?;
            let elapsed = self.fold(&*contender, phase)?;
            self.check(&*contender, phase)?;
            if self.plan.phases.contains(&phase) {
                self.note(figures, phase, self.plan.rows as f64 / elapsed.as_secs_f64());
            }
            if is_asked {
                asked = Some(contender);
            }
        }
        let Some(contender) = asked else { return Ok(()) };
        self.note_size(figures, contender.bytes());
        for phase in [Phase::GroupBy, Phase::Timeseries] {
            if !self.plan.phases.contains(&phase) {
                continue;
            }
            let (begin, mut times) = (Instant::now(), 0);
            while times == 0 || begin.elapsed() < ASKED_AT_LEAST {
                contender.ask(phase, self.threads)?;
                times += 1;
            }
            let facts = (self.facts * times) as f64;
            self.note(figures, phase, facts / begin.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// As [`run`](Self::run), in the JVM, by one thread and without questions.
    fn run_druid(&mut self, druid: &mut Druid, figures: &mut Figures) -> Result<(), Error> {
        if self.threads > 1 {
            return Ok(());
        }
        for phase in [Phase::Ingest, Phase::Json] {
            if self.plan.phases.contains(&phase) {
                let folded = druid.fold(phase, self.granule)?;
                self.facts = folded.facts;
                self.note(figures, phase, self.plan.rows as f64 / folded.elapsed.as_secs_f64());
                self.note_size(figures, folded.bytes);
            }
        }
        Ok(())
    }

    fn note_size(&self, figures: &mut Figures, bytes: Option<u64>) {
        if self.threads == 1 {
            let (engine, granule) = (self.engine, self.granule);
            let size = Size { engine, granule, facts: self.facts, bytes };
            figures.sizes.retain(|known| (known.engine, known.granule) != (engine, granule));
            figures.sizes.push(size);
        }
    }

    /// Folds the whole stream, by threads that take batch after batch.
    fn fold(&mut self, contender: &dyn Contender, phase: Phase) -> Result<Duration, Error> {
        let next = AtomicUsize::new(0);
        let threads: Vec<()> = vec![(); self.threads];
        let (elapsed, ended) = run_threads(Clock::Wall, &threads, |()| {
            let mut thread = contender.thread(self.stream);
            loop {
                let batch = next.fetch_add(1, Ordering::Relaxed);
                if batch >= self.stream.rows.len() {
                    return Ok(());
                }
                match phase {
                    Phase::Json => thread.json(batch)?,
                    _ => thread.columns(batch)?,
                }
            }
        });
        ended.into_iter().collect::<Result<(), Error>>()?;
        self.facts = contender.facts();
        Ok(elapsed)
    }

    fn check(&self, contender: &dyn Contender, phase: Phase) -> Result<(), Error> {
        for question in [Phase::GroupBy, Phase::Timeseries] {
            let Total { rows, sum, .. } = contender.ask(question, self.threads)?;
            if (rows, sum) != (self.stream.count, self.stream.sum) {
                return Err(format!(
                    "{}, {}: {rows} rows that sum to {sum}, not {} and {}",
                    self.engine,
                    phase.name(),
                    self.stream.count,
                    self.stream.sum
                )
                .into());
            }
        }
        Ok(())
    }

    fn note(&self, figures: &mut Figures, phase: Phase, rate: f64) {
        let workload = Workload { phase, granule: self.granule };
        note(&mut figures.rates.rates, workload, self.threads, self.engine, rate);
    }
}
