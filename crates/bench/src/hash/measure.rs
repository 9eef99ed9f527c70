//! The order of measurements. Stores are loaded in rounds, the first of which tells the memory that
//! they take; then they run each workload in rounds; then calls are timed singly. Workloads that
//! add come last, between two passes over all entries.

use indicatif::ProgressBar;

use super::Plan;
use super::contenders;
use super::load::{Load, Loadable};
use super::peer::Peer;
use super::workload::{Draw, Job, Mix, Workload};
use crate::Error;
use crate::figures::{Rate, Rates, is_ours};
use crate::pages::touch;
use crate::rounds::{latencies, progress, rounds};

/// Most rounds of loading: a store is emptied for each.
const LOADS_MAX: usize = 3;
/// Bytes that a store is taken to need for an entry.
const ENTRY_BYTES: usize = 50;

/// All figures of the stores in memory.
pub(crate) struct Figures {
    pub(crate) keys: u32,
    /// The first load of each store.
    pub(crate) loads: Vec<(String, Load)>,
    pub(crate) rates: Rates<Workload>,
}

impl Figures {
    /// Figures of the load of `engine`, or of the store that it is a form of.
    pub(crate) fn load(&self, engine: &str) -> Option<&Load> {
        let same = |name: &String| name == engine || (is_ours(name) && is_ours(engine));
        self.loads.iter().find(|(name, _)| same(name)).map(|(_, load)| load)
    }

    /// The share of an engine's resident memory that lies on 2 MiB pages.
    pub(crate) fn huge_share(load: &Load) -> Option<f64> {
        let (huge, resident) = load.huge_bytes.zip(load.resident_bytes)?;
        (resident > 0).then(|| huge as f64 / resident as f64)
    }

    /// Bytes an entry costs: resident memory where it was measured, else the engine's account.
    pub(crate) fn bytes_per_entry(&self, engine: &str) -> Option<f64> {
        let load = self.load(engine)?;
        let bytes = load.resident_bytes.or(load.accounted_bytes)?;
        Some(bytes as f64 / f64::from(self.keys))
    }
}

pub(crate) fn measure(plan: &Plan, outside: &[Peer]) -> Result<Figures, Error> {
    let wanted =
        |name: &str| plan.engines.is_empty() || plan.engines.iter().any(|engine| engine == name);
    let contenders = contenders::chosen(plan.keys, &wanted, outside);
    let groups = plan.rounds.threads.len() * plan.rounds.mixes.len() * plan.rounds.draws.len();
    let timed = groups * (plan.rounds.runs + usize::from(plan.rounds.latencies))
        + plan.rounds.runs.min(LOADS_MAX);
    let figures = Figures { keys: plan.keys, loads: Vec::new(), rates: Rates::default() };
    let progress = progress(contenders.len() * timed);
    Course { plan, contenders, figures, progress }.run()
}

/// One course of measurement, from load to last check.
struct Course<'a> {
    plan: &'a Plan,
    /// Those that still take part.
    contenders: Vec<Box<dyn Loadable>>,
    figures: Figures,
    progress: ProgressBar,
}

impl Course<'_> {
    fn run(mut self) -> Result<Figures, Error> {
        self.load()?;
        let (adding, others): (Vec<Mix>, Vec<Mix>) =
            self.plan.rounds.mixes.iter().partition(|&&mix| mix == Mix::ReadModifyWrite);
        self.check_everything()?;
        self.workloads(&others)?;
        if !adding.is_empty() {
            self.check_everything()?;
            self.workloads(&adding)?;
        }
        self.check_everything()?;
        self.progress.finish_and_clear();
        Ok(self.figures)
    }

    fn load(&mut self) -> Result<(), Error> {
        let count = self.contenders.len();
        self.progress.set_message("touching memory");
        touch(self.plan.keys as usize * ENTRY_BYTES * count);
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); count];
        for round in 0..self.plan.rounds.runs.min(LOADS_MAX) {
            for (contender, rates) in self.contenders.iter_mut().zip(&mut rates) {
                self.progress.set_message(format!("{}: loading", contender.name()));
                if let Some(load) = contender.load(self.plan.keys)? {
                    rates.push(f64::from(self.plan.keys) / load.elapsed.as_secs_f64());
                    // Later ones find freed memory at hand.
                    if round == 0 {
                        self.figures.loads.push((contender.name().to_owned(), load));
                    }
                }
                self.progress.inc(1);
            }
        }
        for (contender, rounds) in self.contenders.iter().zip(rates) {
            if !rounds.is_empty() {
                let engine = contender.name().to_owned();
                let rate = Rate { workload: Workload::Load, threads: 1, engine, rounds };
                self.figures.rates.rates.push(rate);
            }
        }
        Ok(())
    }

    fn workloads(&mut self, mixes: &[Mix]) -> Result<(), Error> {
        for &mix in mixes {
            for &draw in &self.plan.rounds.draws {
                for &threads in &self.plan.rounds.threads {
                    self.workload(mix, draw, threads)?;
                }
            }
        }
        Ok(())
    }

    fn workload(&mut self, mix: Mix, draw: Draw, threads: usize) -> Result<(), Error> {
        let plan = self.plan;
        // Tags differ from run to run, so that a lost update shows.
        let first = self.figures.rates.rates.len() as u32 + 1;
        let job = |round: usize, ops: usize| {
            let tag = first * 64 + round as u32;
            Job::plan(mix, draw, plan.keys, threads, ops, tag, plan.rounds.clock)
        };
        rounds(
            &mut self.contenders,
            &mut self.figures.rates,
            &self.progress,
            plan.rounds.runs,
            |round| job(round, plan.ops),
            |job| Some(job.expected()),
        )?;
        if plan.rounds.latencies {
            let job = job(plan.rounds.runs, plan.ops / 4 + 1);
            latencies(&mut self.contenders, &mut self.figures.rates, &self.progress, &job)?;
        }
        Ok(())
    }

    /// Every entry must be there with its own value, before and after all runs. A peer that fails
    /// here takes no further part.
    fn check_everything(&mut self) -> Result<(), Error> {
        let mut wrong = Vec::new();
        let mut refused = Ok(());
        self.contenders.retain_mut(|contender| {
            let Err(error) = contender.check_everything() else { return true };
            if is_ours(contender.name()) {
                refused = Err(error);
            } else {
                wrong.push(format!("{error}: a bug in it or in its adapter"));
            }
            false
        });
        self.figures.rates.wrong.extend(wrong);
        refused
    }
}
