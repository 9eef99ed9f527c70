//! The interface of an engine, and a job on one; the engines of this process, each with the facts
//! that it folded last.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::hash_map::open_map;
use super::ours::{OURS, OurRollup};
use super::sets::RowSet;
use super::stream::{Expected, Stream, Total};
use crate::harness::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Ingest,
    Json,
    Timeseries,
    GroupByOne,
    GroupBy,
    TopN,
    Filter,
}

impl Phase {
    pub(crate) const FOLDS: [Phase; 2] = [Phase::Ingest, Phase::Json];
    pub(crate) const QUESTIONS: [Phase; 5] =
        [Phase::Timeseries, Phase::GroupByOne, Phase::GroupBy, Phase::TopN, Phase::Filter];

    pub(crate) fn name(self) -> &'static str {
        // In the order of the table.
        super::BENCH.workloads[self as usize]
    }

    pub(crate) fn is_question(self) -> bool {
        Phase::QUESTIONS.contains(&self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FactPlace {
    Live,
    Files,
}

impl FactPlace {
    pub(crate) const ASKED: [FactPlace; 2] = [FactPlace::Live, FactPlace::Files];
}

pub(crate) const HASH_MAP: &str = "hash-map";

pub(crate) struct SetLoad {
    pub(crate) set: RowSet,
    pub(crate) stream: Rc<Stream>,
    pub(crate) batch: usize,
    pub(crate) folder: PathBuf,
    pub(crate) files: bool,
    pub(crate) expected: Expected,
}

pub(crate) struct RollupJob {
    pub(crate) load: Rc<SetLoad>,
    pub(crate) phase: Phase,
    pub(crate) place: FactPlace,
    pub(crate) threads: usize,
    pub(crate) least: Duration,
}

impl Job for RollupJob {
    fn workload(&self) -> String {
        let (phase, set) = (self.phase.name(), self.load.set.name());
        match self.place {
            FactPlace::Live => format!("{phase}, {set}"),
            FactPlace::Files => format!("{phase} of files, {set}"),
        }
    }

    fn unit(&self) -> &'static Unit {
        if self.phase.is_question() { &QUESTIONS } else { &ROWS }
    }

    fn threads(&self) -> usize {
        self.threads
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Folded {
    pub(crate) elapsed: Duration,
    pub(crate) facts: usize,
    /// Bytes of the facts, where they can be told.
    pub(crate) bytes: Option<u64>,
    /// Bytes when what is free was given back, where an engine does that, of facts that are not
    /// asked.
    pub(crate) trimmed: Option<u64>,
    /// All facts, if the engine has not compared their sums with those of the rows itself.
    pub(crate) all: Option<Total>,
}

pub(crate) type Queried = Repeated<Total>;

/// An engine under test. Calls are coarse: all rows, or a query many times.
pub(crate) trait RollupEngine {
    fn title(&self) -> &'static str;

    fn takes(&self, job: &RollupJob) -> bool;

    /// Does, untimed, the work that a set needs once; answers the bytes of facts in files, if it
    /// made some.
    fn begin(&mut self, load: &SetLoad) -> Result<Option<u64>>;

    /// Folds all rows into an empty index. Live queries read the facts of the last
    /// [`Phase::Ingest`].
    fn fold(&mut self, load: &SetLoad, phase: Phase, threads: usize) -> Result<Folded>;

    fn ask(&mut self, job: &RollupJob, least: Duration) -> Result<Queried>;
}

/// A participant of rounds, whose totals are compared with those of the rows.
impl Engine<RollupJob> for dyn RollupEngine {
    fn name(&self) -> &str {
        self.title()
    }

    fn runs(&self, job: &RollupJob) -> bool {
        self.takes(job)
    }

    fn run(&mut self, job: &RollupJob) -> Result<Outcome> {
        let (load, expected) = (&*job.load, &job.load.expected);
        let mut outcome = Outcome::default();
        if job.phase.is_question() {
            // The first query reads files, and compiles.
            self.ask(job, Duration::ZERO)?;
            let Queried { times, elapsed, answer: total } = self.ask(job, job.least)?;
            let rows = if job.phase == Phase::TopN { 0 } else { total.rows };
            check(Total { rows, ..total }, expected.answer(job.phase))?;
            outcome.figures.push(Figure::rate(times, elapsed));
            return Ok(outcome);
        }
        let folded = self.fold(load, job.phase, job.threads)?;
        let expected = Total { groups: expected.facts, ..expected.all };
        check(folded.all.unwrap_or(Total { groups: folded.facts, ..expected }), expected)?;
        outcome.figures.push(Figure::rate(load.stream.count, folded.elapsed));
        let per_fact =
            |bytes: u64| Figure::new(bytes as f64 / folded.facts as f64).unit(&BYTES_OF_FACT);
        if job.threads == 1 {
            let live = folded.bytes.filter(|_| job.phase == Phase::Ingest);
            let trimmed = format!("trimmed, {}", load.set.name());
            let trimmed = folded.trimmed.map(|bytes| per_fact(bytes).of(trimmed));
            outcome.figures.extend(live.map(per_fact).into_iter().chain(trimmed));
        }
        Ok(outcome)
    }
}

fn check(found: Total, expected: Total) -> Result {
    if found != expected {
        bail!("{found}, not {expected}");
    }
    Ok(())
}

/// Facts in this process. Threads share them.
pub(crate) trait Facts: Sync {
    /// Brings batches of rows, by one of several threads.
    fn bring(
        &self,
        stream: &Stream,
        phase: Phase,
        batches: &mut dyn Iterator<Item = usize>,
    ) -> Result;

    fn facts(&self) -> usize;

    fn bytes(&self) -> u64;

    fn trim(&self) -> Option<u64> {
        None
    }

    fn ask(&self, load: &SetLoad, phase: Phase, threads: usize) -> Result<Total>;
}

pub(crate) struct LocalEngine {
    name: &'static str,
    live: Option<Box<dyn Facts>>,
    files: Option<Box<dyn Facts>>,
}

impl LocalEngine {
    pub(crate) fn new(name: &'static str) -> LocalEngine {
        LocalEngine { name, live: None, files: None }
    }

    fn empty(&self, load: &SetLoad) -> Result<Box<dyn Facts>> {
        match self.name {
            OURS => Ok(Box::new(OurRollup::live(load)?)),
            _ => open_map(load.set),
        }
    }
}

impl RollupEngine for LocalEngine {
    fn title(&self) -> &'static str {
        self.name
    }

    fn takes(&self, job: &RollupJob) -> bool {
        // A map is behind one lock, and goes with its process.
        self.name == OURS
            || !job.phase.is_question()
            || (job.threads == 1 && job.place == FactPlace::Live)
    }

    fn begin(&mut self, load: &SetLoad) -> Result<Option<u64>> {
        (self.live, self.files) = (None, None);
        if self.name == OURS && load.files {
            let sealed = OurRollup::sealed(load)?;
            let bytes = sealed.bytes();
            self.files = Some(Box::new(sealed));
            return Ok(Some(bytes));
        }
        Ok(None)
    }

    fn fold(&mut self, load: &SetLoad, phase: Phase, threads: usize) -> Result<Folded> {
        if phase == Phase::Ingest {
            self.live = None;
        }
        let facts = self.empty(load)?;
        let elapsed = fold(&*facts, &load.stream, phase, threads)?;
        let all = facts.ask(load, Phase::GroupBy, threads)?;
        let count = facts.facts();
        let bytes = facts.bytes();
        let mut trimmed = None;
        if phase == Phase::Ingest {
            self.live = Some(facts);
        } else if let Some(freed) = facts.trim() {
            // Facts that lie closer together are asked in less time: these are not asked any more.
            trimmed = Some(bytes - freed);
        }
        let all = Some(Total { groups: count, ..all });
        Ok(Folded { elapsed, facts: count, bytes: Some(bytes), trimmed, all })
    }

    fn ask(&mut self, job: &RollupJob, least: Duration) -> Result<Queried> {
        let facts = match job.place {
            FactPlace::Live => &self.live,
            FactPlace::Files => &self.files,
        };
        let facts = facts.as_ref().ok_or("there are no facts to ask")?;
        let ask = || Ok((1, facts.ask(&job.load, job.phase, job.threads)?));
        again(least, ask)
    }
}

/// Folds the whole stream, by threads that take batch after batch.
pub(crate) fn fold(
    facts: &dyn Facts,
    stream: &Stream,
    phase: Phase,
    threads: usize,
) -> Result<Duration> {
    let next = AtomicUsize::new(0);
    let (elapsed, ended) = run_threads(&vec![(); threads], |()| {
        let mut batches = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed))
            .take_while(|batch| *batch < stream.rows.len());
        facts.bring(stream, phase, &mut batches)
    });
    ended.into_iter().collect::<Result<()>>()?;
    Ok(elapsed)
}
