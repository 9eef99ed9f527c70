//! Rates of puts at each level. All levels of all engines take turns in a round.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::floor::{self, Floor};
use super::measure::Figures;
use super::redis::{self, Files, Redis};
use super::store::{Engine, Place, Store};
use super::workload::{Data, Level, Workload};
use super::writers::{Job, Timing, check, load, write_while};
use super::{Plan, ours};
use crate::Error;
use crate::figures::{is_ours, note};
use crate::folder::Folder;

/// An engine at a level, with its entries.
struct Contender {
    name: &'static str,
    level: Level,
    runs: Runs,
    folder: Folder,
}

enum Runs {
    Here(Box<dyn Store>),
    Redis(Redis),
}

/// What a run came to.
struct Outcome {
    /// Puts a second.
    rate: f64,
    /// Bytes of the log a second.
    log_rate: Option<f64>,
}

/// The number of turns that [`measure`] takes at most.
pub(crate) fn turns(plan: &Plan, engines: &[Engine]) -> usize {
    let engines = engines.iter().filter(|engine| plan.takes(engine.name)).count() + 1;
    plan.data.len() * plan.writers.len() * plan.runs * engines * plan.levels.len()
}

pub(crate) fn measure(
    plan: &Plan,
    engines: &[Engine],
    figures: &mut Figures,
    bar: &ProgressBar,
) -> Result<(), Error> {
    for &data in &plan.data {
        let mut contenders = contenders(plan, engines, data, figures)?;
        for &writers in &plan.writers {
            for round in 0..plan.runs {
                if plan.takes(floor::NAME) {
                    measure_floor(plan, &mut figures.floor)?;
                }
                let mut failed = vec![false; contenders.len()];
                for turn in 0..contenders.len() {
                    let at = (round + turn) % contenders.len();
                    let contender = &contenders[at];
                    let workload = Workload { data, level: contender.level };
                    bar.set_message(format!("{}: {} writers", contender.title(data), writers));
                    match contender.run(plan, data, writers, round) {
                        Ok(outcome) => {
                            let rates = &mut figures.rates.rates;
                            note(rates, workload, writers, contender.name, outcome.rate);
                            if let Some(rate) = outcome.log_rate {
                                note(
                                    &mut figures.log_rates,
                                    workload,
                                    writers,
                                    contender.name,
                                    rate,
                                );
                            }
                        }
                        Err(error) => {
                            figures.rates.rates.retain(|rate| {
                                rate.engine != contender.name || rate.workload != workload
                            });
                            figures.rates.refuse(
                                contender.name,
                                workload,
                                writers,
                                &error.to_string(),
                            )?;
                            failed[at] = true;
                        }
                    }
                    bar.inc(1);
                }
                // One that failed in a round takes no further part.
                let mut failed = failed.into_iter();
                contenders.retain(|_| failed.next() != Some(true));
            }
        }
    }
    Ok(())
}

fn measure_floor(plan: &Plan, floor: &mut Floor) -> Result<(), Error> {
    let folder = Folder::new(&plan.dir, floor::NAME)?;
    floor.measure(folder.path(), plan.time)
}

/// Opens each engine at each level, with its entries; those that are not there are told of once.
fn contenders(
    plan: &Plan,
    engines: &[Engine],
    data: Data,
    figures: &mut Figures,
) -> Result<Vec<Contender>, Error> {
    let mut contenders = Vec::new();
    for engine in engines.iter().filter(|engine| plan.takes(engine.name)) {
        for &level in &plan.levels {
            let folder = Folder::new(&plan.dir, &format!("{}-{}", engine.name, level.name()))?;
            match open(plan, engine, level, data, &folder) {
                Ok(Some(store)) => {
                    let runs = Runs::Here(store);
                    contenders.push(Contender { name: engine.name, level, runs, folder });
                }
                Ok(None) => {
                    figures.leave_out(format!("{} has no level {}", engine.name, level.name()))
                }
                Err(error) if is_ours(engine.name) => {
                    return Err(format!("{}: {error}", engine.name).into());
                }
                Err(error) => figures.leave_out(format!("{}: {error}", engine.name)),
            }
        }
    }
    if plan.takes(redis::NAME) {
        for &level in &plan.levels {
            let folder = Folder::new(&plan.dir, &format!("{}-{}", redis::NAME, level.name()))?;
            let started = Redis::start(&folder, Files::of(level)).and_then(|(redis, _)| {
                redis.load(data, plan.keys(data))?;
                Ok(redis)
            });
            match started {
                Ok(redis) => {
                    let runs = Runs::Redis(redis);
                    contenders.push(Contender { name: redis::NAME, level, runs, folder });
                }
                Err(error) => figures.leave_out(format!("{}: {error}", redis::NAME)),
            }
        }
    }
    for contender in &contenders {
        contender.settle()?;
    }
    Ok(contenders)
}

fn open(
    plan: &Plan,
    engine: &Engine,
    level: Level,
    data: Data,
    folder: &Folder,
) -> Result<Option<Box<dyn Store>>, Error> {
    let keys = plan.keys(data);
    let place = Place { dir: folder.path().to_owned(), level, data, keys };
    let store = (engine.open)(&place)?;
    if let Some(store) = &store {
        load(&**store, data, keys)?;
    }
    Ok(store)
}

impl Contender {
    fn title(&self, data: Data) -> String {
        format!("{}, {}, {}", self.name, data.name(), self.level.name())
    }

    fn run(&self, plan: &Plan, data: Data, writers: usize, round: usize) -> Result<Outcome, Error> {
        let (keys, seed) = (plan.keys(data), round as u64 + 1);
        let outcome = match &self.runs {
            Runs::Redis(redis) => {
                let rate = redis.put_for(data, keys, writers, plan.time, seed)?;
                redis.check(data, keys, seed)?;
                Outcome { rate, log_rate: None }
            }
            Runs::Here(store) => {
                let store = &**store;
                let job = Job { data, keys, writers, seed, timing: Timing::Together };
                let log = store.log_bytes();
                let (written, ()) = write_while(store, &job, || self.wait(store, plan.time))?;
                let log_bytes = store.log_bytes().zip(log).map(|(end, begin)| end - begin);
                check(store, data, keys, seed)?;
                let second = written.elapsed.as_secs_f64();
                let log_rate =
                    log_bytes.filter(|&bytes| bytes > 0).map(|bytes| bytes as f64 / second);
                Outcome { rate: written.rate(), log_rate }
            }
        };
        self.settle()?;
        Ok(outcome)
    }

    /// Waits beside the writers; for an engine without a thread of its own, syncs as ours does.
    fn wait(&self, store: &dyn Store, time: Duration) -> Result<(), Error> {
        if self.level != Level::Async || store.syncs_itself() {
            std::thread::sleep(time);
            return Ok(());
        }
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(ours::SYNC_INTERVAL));
            if left <= ours::SYNC_INTERVAL {
                return Ok(());
            }
            store.sync()?;
        }
    }

    /// Leaves the disk idle.
    fn settle(&self) -> Result<(), Error> {
        match &self.runs {
            Runs::Here(store) => store.settle(),
            Runs::Redis(_) => self.folder.sync(),
        }
    }
}
