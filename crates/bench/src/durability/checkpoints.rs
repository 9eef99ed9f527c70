//! Single puts beside a checkpoint of all tables, and without one. Changes last soon, and nothing else
//! writes checkpoints.

use std::time::Instant;

use indicatif::ProgressBar;

use super::Plan;
use super::measure::Figures;
use super::ours::{Kind, Ours};
use super::workload::{Data, Level};
use super::writers::{Job, Timing, check, load, write_while};
use crate::Error;
use crate::figures::Percentiles;
use crate::folder::Folder;
use crate::report::tell;
use crate::resident::available_bytes;

/// Threads that put.
pub(crate) const WRITERS: [usize; 2] = [1, 2];
pub(crate) const DATA: Data = Data::Large;
/// Memory of an entry at most, with copies that a hash table makes while a checkpoint is written.
const ENTRY_BYTES: u64 = 4_000;

/// Puts of an engine, round by round.
pub(crate) struct Beside {
    pub(crate) engine: &'static str,
    pub(crate) writers: usize,
    /// While no checkpoint was written.
    pub(crate) without: Puts,
    /// While one was, or one after another.
    pub(crate) during: Puts,
    /// Seconds of a checkpoint, beside the writers.
    pub(crate) seconds: Vec<f64>,
}

#[derive(Default)]
pub(crate) struct Puts {
    pub(crate) rates: Vec<f64>,
    pub(crate) latencies: Vec<Percentiles>,
}

/// The entries of a table: as many as are wanted, or as memory takes.
pub(crate) fn entries(plan: &Plan) -> u32 {
    let most = available_bytes().map_or(u64::MAX, |bytes| bytes / ENTRY_BYTES);
    plan.checkpointed.min(u32::try_from(most).unwrap_or(u32::MAX)).max(1)
}

pub(crate) fn turns(plan: &Plan) -> usize {
    Kind::ALL.len() * WRITERS.len() * plan.runs
}

pub(crate) fn measure(plan: &Plan, figures: &mut Figures, bar: &ProgressBar) -> Result<(), Error> {
    let keys = figures.checkpointed;
    if keys < plan.checkpointed {
        tell(format_args!("memory is short: checkpoints of {keys} entries"));
    }
    for kind in Kind::ALL.into_iter().filter(|kind| plan.takes(kind.name())) {
        let folder = Folder::new(&plan.dir, kind.name())?;
        let ours = Ours::create(folder.path(), kind, Level::Async, DATA, keys)?;
        load(&ours, DATA, keys)?;
        ours.checkpoint()?;
        let mut besides = WRITERS.map(|writers| Beside::new(kind, writers));
        for round in 0..plan.runs {
            for beside in &mut besides {
                bar.set_message(format!(
                    "{}: {} beside a checkpoint",
                    beside.engine, beside.writers
                ));
                beside.measure(plan, &ours, keys, round as u64)?;
                bar.inc(1);
            }
        }
        figures.checkpoints.extend(besides);
    }
    Ok(())
}

impl Beside {
    fn new(kind: Kind, writers: usize) -> Beside {
        let (without, during) = (Puts::default(), Puts::default());
        Beside { engine: kind.name(), writers, without, during, seconds: Vec::new() }
    }

    fn measure(&mut self, plan: &Plan, ours: &Ours, keys: u32, round: u64) -> Result<(), Error> {
        let writers = self.writers;
        let job = |seed| Job { data: DATA, keys, writers, seed, timing: Timing::Singly };
        let wait = || {
            std::thread::sleep(plan.time);
            Ok(())
        };
        let (written, ()) = write_while(ours, &job(2 * round), wait)?;
        self.without.note(written.rate(), written.latencies);
        let checkpoints = || {
            let begin = Instant::now();
            let mut count = 0;
            while count == 0 || begin.elapsed() < plan.time {
                ours.checkpoint()?;
                count += 1;
            }
            Ok(begin.elapsed().as_secs_f64() / f64::from(count))
        };
        let (written, seconds) = write_while(ours, &job(2 * round + 1), checkpoints)?;
        self.during.note(written.rate(), written.latencies);
        self.seconds.push(seconds);
        check(ours, DATA, keys, round)?;
        // What the last puts left is not written during the next ones.
        ours.checkpoint()
    }
}

impl Puts {
    fn note(&mut self, rate: f64, latencies: Percentiles) {
        self.rates.push(rate);
        self.latencies.push(latencies);
    }

    /// A percentile of each round.
    pub(crate) fn each(&self, percentile: impl Fn(&Percentiles) -> u64) -> Vec<f64> {
        self.latencies.iter().map(|round| percentile(round) as f64).collect()
    }
}
