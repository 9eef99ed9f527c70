//! The engines of this process, each with the facts that it folded last, and what all engines do.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::hash_map::open_map;
use super::ours::{OURS, Ours};
use super::sets::Set;
use super::stream::{Stream, Total};
use super::workload::{Phase, Place, Workload};
use crate::Error;
use crate::clock::Clock;
use crate::rounds::run_threads;

pub(crate) const HASH_MAP: &str = "hash-map";

/// A set that engines get ready for.
pub(crate) struct Load<'l> {
    pub(crate) set: Set,
    pub(crate) stream: &'l Stream,
    pub(crate) batch: usize,
    /// Where files go.
    pub(crate) folder: &'l Path,
    /// Whether facts in files will be asked.
    pub(crate) files: bool,
}

/// What folding all rows of a set has come to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folded {
    pub(crate) elapsed: Duration,
    pub(crate) facts: usize,
    /// Bytes of the facts, where they can be told.
    pub(crate) bytes: Option<u64>,
    /// Bytes when what is free was given back, where an engine does that, of facts that are not asked.
    pub(crate) trimmed: Option<u64>,
    /// All facts, if the engine has not compared their sums with those of the rows itself.
    pub(crate) all: Option<Total>,
}

/// A question that was asked until some time had passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) times: usize,
    pub(crate) elapsed: Duration,
    pub(crate) total: Total,
}

/// An engine under test. Calls are coarse: all rows, or a question many times.
pub(crate) trait Engine {
    fn name(&self) -> &'static str;

    /// Whether it takes part in `workload`, by so many threads.
    fn runs(&self, workload: Workload, threads: usize) -> bool;

    /// Does, untimed, what a set needs once. Answers the bytes of the facts in files, if it made some.
    fn begin(&mut self, load: &Load<'_>) -> Result<Option<u64>, Error>;

    /// Folds all rows into an empty index. Live questions ask what [`Phase::Ingest`] made last.
    fn fold(&mut self, load: &Load<'_>, phase: Phase, threads: usize) -> Result<Folded, Error>;

    /// Asks again and again, until `least` has passed.
    fn ask(
        &mut self,
        load: &Load<'_>,
        workload: Workload,
        threads: usize,
        least: Duration,
    ) -> Result<Asked, Error>;
}

/// Facts in this process. Threads share them.
pub(crate) trait Facts: Sync {
    /// A thread that brings rows, with a state of its own.
    fn thread<'c>(&'c self, stream: &'c Stream) -> Box<dyn Ingest + 'c>;

    /// How many facts there are.
    fn facts(&self) -> usize;

    /// Bytes of the facts.
    fn bytes(&self) -> u64;

    /// Gives back what is free, if it can.
    fn trim(&self) -> Option<u64>;

    /// Answers the question of a phase.
    fn ask(&self, load: &Load<'_>, phase: Phase, threads: usize) -> Result<Total, Error>;
}

/// A thread that brings rows.
pub(crate) trait Ingest {
    fn columns(&mut self, batch: usize) -> Result<(), Error>;

    fn json(&mut self, batch: usize) -> Result<(), Error>;
}

/// An engine of this process.
pub(crate) struct InProcess {
    name: &'static str,
    live: Option<Box<dyn Facts>>,
    files: Option<Box<dyn Facts>>,
}

impl InProcess {
    pub(crate) fn new(name: &'static str) -> InProcess {
        InProcess { name, live: None, files: None }
    }

    fn empty(&self, load: &Load<'_>) -> Result<Box<dyn Facts>, Error> {
        match self.name {
            OURS => Ok(Box::new(Ours::live(load)?)),
            _ => open_map(load.set),
        }
    }
}

impl Engine for InProcess {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runs(&self, workload: Workload, threads: usize) -> bool {
        // A map is behind one lock, and goes with its process.
        self.name == OURS
            || !workload.phase.is_question()
            || (threads == 1 && workload.place == Place::Live)
    }

    fn begin(&mut self, load: &Load<'_>) -> Result<Option<u64>, Error> {
        (self.live, self.files) = (None, None);
        if self.name == OURS && load.files {
            let sealed = Ours::sealed(load)?;
            let bytes = sealed.bytes();
            self.files = Some(Box::new(sealed));
            return Ok(Some(bytes));
        }
        Ok(None)
    }

    fn fold(&mut self, load: &Load<'_>, phase: Phase, threads: usize) -> Result<Folded, Error> {
        if phase == Phase::Ingest {
            self.live = None;
        }
        let facts = self.empty(load)?;
        let elapsed = fold(&*facts, load.stream, phase, threads)?;
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

    fn ask(
        &mut self,
        load: &Load<'_>,
        workload: Workload,
        threads: usize,
        least: Duration,
    ) -> Result<Asked, Error> {
        let facts = match workload.place {
            Place::Live | Place::Trimmed => &self.live,
            Place::Files => &self.files,
        };
        let facts = facts.as_ref().ok_or("there are no facts to ask")?;
        let begin = Instant::now();
        let mut times = 0;
        loop {
            let total = facts.ask(load, workload.phase, threads)?;
            times += 1;
            let elapsed = begin.elapsed();
            if elapsed >= least {
                return Ok(Asked { times, elapsed, total });
            }
        }
    }
}

/// Folds the whole stream, by threads that take batch after batch.
pub(crate) fn fold(
    facts: &dyn Facts,
    stream: &Stream,
    phase: Phase,
    threads: usize,
) -> Result<Duration, Error> {
    let next = AtomicUsize::new(0);
    let threads: Vec<()> = vec![(); threads];
    let (elapsed, ended) = run_threads(Clock::Wall, &threads, |()| {
        let mut thread = facts.thread(stream);
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= stream.rows.len() {
                return Ok(());
            }
            match phase {
                Phase::Json => thread.json(batch)?,
                _ => thread.columns(batch)?,
            }
        }
    });
    ended.into_iter().collect::<Result<(), Error>>()?;
    Ok(elapsed)
}
