//! The order of measurements. In a round the engines take turns, and each round begins with
//! another one. At its turn an engine runs the phases one after the other, each pair of inserts and
//! removes on an empty folder of its own.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::store::{Engine, Entry, Level, Place, TreeStore, Writers};
use super::workload::{Entries, Order, Phase, Workload};
use super::{Plan, floor};
use crate::Error;
use crate::clock::Clock;
use crate::figures::{Rate, Rates, is_ours, note};
use crate::folder::Folder;
use crate::report::tell;
use crate::rounds::{progress, run_threads};
use crate::tally::Tally;

/// All figures of a run.
pub(crate) struct Figures {
    pub(crate) keys: usize,
    pub(crate) ops: usize,
    pub(crate) rates: Rates<Workload>,
    /// Bytes a second of logs that were read, as rates of [`Phase::Recover`].
    pub(crate) recoveries: Vec<Rate<Workload>>,
    pub(crate) sizes: Vec<Size>,
}

/// Bytes of an engine, by the last round.
pub(crate) struct Size {
    pub(crate) engine: String,
    pub(crate) order: Order,
    /// Of an entry, when all are there.
    pub(crate) entry: Option<f64>,
    /// Of the log, for an insert in a transaction of its own.
    pub(crate) log_each: Option<f64>,
    /// Of the log, for an insert in one transaction with all others.
    pub(crate) log_together: Option<f64>,
    /// Of the log, for a remove in a transaction of its own.
    pub(crate) log_remove: Option<f64>,
}

impl Figures {
    pub(crate) fn size(&self, engine: &str, order: Order) -> Option<&Size> {
        self.sizes.iter().find(|size| size.engine == engine && size.order == order)
    }
}

/// An engine's turn in a round.
struct Turn<'p> {
    plan: &'p Plan,
    engine: &'p Engine,
    order: Order,
    entries: &'p Entries,
    rates: Vec<(Phase, usize, f64)>,
    recovery: Option<f64>,
    size: Size,
    /// Operations that were left out, in a sentence for each phase.
    left_out: Vec<(Phase, String)>,
}

pub(crate) fn measure(plan: &Plan, engines: &[Engine]) -> Result<Figures, Error> {
    let mut figures = Figures {
        keys: plan.keys,
        ops: plan.ops,
        rates: Rates::default(),
        recoveries: Vec::new(),
        sizes: Vec::new(),
    };
    let engines: Vec<&Engine> = engines.iter().filter(|engine| plan.takes(engine.name)).collect();
    let bar = progress(plan.orders.len() * plan.runs * engines.len());
    for &order in &plan.orders {
        let entries = Entries::new(order, plan.keys);
        let mut left_out = vec![false; engines.len()];
        for round in 0..plan.runs {
            if plan.has(&[Phase::Sync]) && plan.takes(floor::NAME) {
                let folder = Folder::new(&plan.dir, floor::NAME)?;
                let rate = floor::syncs_a_second(folder.path(), plan.syncs)?;
                let workload = Workload { phase: Phase::Sync, order };
                note(&mut figures.rates.rates, workload, 1, floor::NAME, rate);
            }
            for place in (0..engines.len()).map(|turn| (round + turn) % engines.len()) {
                let engine = engines[place];
                if left_out[place] {
                    continue;
                }
                bar.set_message(format!("{}, round {}", engine.name, round + 1));
                let mut turn = Turn::new(plan, engine, order, &entries);
                let begin = Instant::now();
                let done = turn.run();
                turn.note(&mut figures);
                if let Err(error) = done {
                    left_out[place] = true;
                    leave_out(&mut figures, engine.name, order, &error)?;
                }
                if !std::io::stderr().is_terminal() {
                    tell(format_args!(
                        "{}, round {}: {:.1} s",
                        engine.name,
                        round + 1,
                        begin.elapsed().as_secs_f64()
                    ));
                }
                bar.inc(1);
            }
        }
        if plan.has(&[Phase::RemoveTenfold]) {
            tenfold(plan, &engines, order, &mut figures)?;
        }
    }
    bar.finish_and_clear();
    Ok(figures)
}

/// Takes an engine that failed out of an order's figures; an error if it is ours.
fn leave_out(
    figures: &mut Figures,
    engine: &str,
    order: Order,
    error: &Error,
) -> Result<(), Error> {
    let sentence = format!("{engine}: {error}: a bug in it or in its adapter");
    if is_ours(engine) {
        return Err(sentence.into());
    }
    let stays = |rate: &Rate<Workload>| rate.engine != engine || rate.workload.order != order;
    figures.rates.rates.retain(stays);
    figures.recoveries.retain(stays);
    figures.rates.wrong.push(sentence);
    Ok(())
}

impl<'p> Turn<'p> {
    fn new(plan: &'p Plan, engine: &'p Engine, order: Order, entries: &'p Entries) -> Turn<'p> {
        let size = Size {
            engine: engine.name.to_owned(),
            order,
            entry: None,
            log_each: None,
            log_together: None,
            log_remove: None,
        };
        Turn {
            plan,
            engine,
            order,
            entries,
            rates: Vec::new(),
            recovery: None,
            size,
            left_out: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Error> {
        if self.plan.has(&[Phase::InsertEach, Phase::RemoveEach]) {
            self.each()?;
        }
        let together = [Phase::InsertTogether, Phase::Get, Phase::Iterate, Phase::RemoveTogether];
        if self.plan.has(&together) {
            self.together()?;
        }
        if self.plan.has(&[Phase::Sync]) {
            for &writers in &self.plan.writers {
                self.sync(writers)?;
            }
        }
        if self.plan.has(&[Phase::Recover]) {
            self.recover()?;
        }
        Ok(())
    }

    /// A transaction each: inserts into an empty tree, and removes until it is empty again.
    fn each(&mut self) -> Result<(), Error> {
        let inserted = &self.entries.inserted[..self.plan.ops];
        // The taken ones are those that were inserted, where not all are.
        let removed = match self.plan.ops == self.plan.keys {
            true => &self.entries.taken[..],
            false => inserted,
        };
        let (_folder, mut store) = self.open(Level::Buffered)?;
        let log = store.log_position()?;
        let begin = Instant::now();
        store.insert_each(inserted)?;
        self.rate(Phase::InsertEach, inserted.len(), took(&*store, begin));
        let full = store.log_position()?;
        self.size.log_each = per(log, full, inserted.len());
        check_contents(&*store, inserted)?;
        let mut tally = Tally::default();
        let begin = Instant::now();
        store.remove_each(removed, &mut |value| tally.add(number(value)))?;
        self.rate(Phase::RemoveEach, removed.len(), took(&*store, begin));
        self.size.log_remove = per(full, store.log_position()?, removed.len());
        check("removed", tally, values(removed))?;
        check_contents(&*store, &[])
    }

    /// One transaction around all inserts, and one around all removes; reads between them.
    fn together(&mut self) -> Result<(), Error> {
        let Entries { inserted, taken } = self.entries;
        let (folder, mut store) = self.open(Level::Buffered)?;
        let log = store.log_position()?;
        let begin = Instant::now();
        store.insert_all(inserted)?;
        self.rate(Phase::InsertTogether, inserted.len(), took(&*store, begin));
        self.size.log_together = per(log, store.log_position()?, inserted.len());
        let bytes = match store.bytes() {
            Some(bytes) => Some(bytes),
            None => folder.bytes()?,
        };
        self.size.entry = bytes.map(|bytes| bytes as f64 / inserted.len() as f64);

        let mut tally = Tally::default();
        let begin = Instant::now();
        store.get_all(taken, &mut |value| tally.add(number(value)))?;
        self.rate(Phase::Get, taken.len(), took(&*store, begin));
        check("found", tally, values(taken))?;

        let mut tally = Tally::default();
        let mut ordered = true;
        let mut last = None;
        let begin = Instant::now();
        store.iterate(&mut |key, value| {
            let key = number_of_key(key);
            ordered &= last < Some(key);
            last = Some(key);
            tally.add(number(value));
        })?;
        self.rate(Phase::Iterate, inserted.len(), took(&*store, begin));
        check("walked over", tally, values(inserted))?;
        if !ordered {
            return Err("keys do not ascend".into());
        }

        let (removed, left) =
            taken.split_at(self.most(&*store, Phase::RemoveTogether, taken.len()));
        let mut tally = Tally::default();
        let begin = Instant::now();
        store.remove_all(removed, &mut |value| tally.add(number(value)))?;
        self.rate(Phase::RemoveTogether, removed.len(), took(&*store, begin));
        check("removed", tally, values(removed))?;
        check_contents(&*store, left)
    }

    /// Commits that last, by so many writers together.
    fn sync(&mut self, writers: usize) -> Result<(), Error> {
        let (_folder, store) = self.open(Level::Sync)?;
        let Some(shared) = store.writers() else { return Ok(()) };
        let syncs = self.plan.syncs.min(self.plan.keys);
        let inserted = &self.entries.inserted[..self.most(&*store, Phase::Sync, syncs)];
        let parts: Vec<&[Entry]> = inserted.chunks(inserted.len().div_ceil(writers)).collect();
        let (elapsed, results) = run_threads(Clock::Wall, &parts, |part| insert(shared, part));
        results.into_iter().collect::<Result<Vec<()>, Error>>()?;
        self.rates.push((Phase::Sync, writers, inserted.len() as f64 / elapsed.as_secs_f64()));
        check_contents(&*store, inserted)
    }

    /// What the end of a process leaves is opened.
    fn recover(&mut self) -> Result<(), Error> {
        let Some(recover) = self.engine.recover else { return Ok(()) };
        let folder = Folder::new(&self.plan.dir, self.engine.name)?;
        let inserted = &self.entries.inserted[..self.plan.ops];
        let found = recover(&self.place(&folder, Level::Buffered), inserted)?;
        if found.entries != inserted.len() as u64 {
            return Err(format!("{} of {} entries came back", found.entries, inserted.len()).into());
        }
        self.rate(Phase::Recover, inserted.len(), found.elapsed);
        self.recovery = Some(found.log_bytes as f64 / found.elapsed.as_secs_f64());
        Ok(())
    }

    fn place(&self, folder: &Folder, level: Level) -> Place {
        Place { dir: folder.path().to_owned(), level, keys: self.plan.keys }
    }

    fn open(&self, level: Level) -> Result<(Folder, Box<dyn TreeStore>), Error> {
        let folder = Folder::new(&self.plan.dir, self.engine.name)?;
        let store = (self.engine.open)(&self.place(&folder, level))?;
        Ok((folder, store))
    }

    /// How many of a phase's operations the store does; a sentence tells of the others.
    fn most(&mut self, store: &dyn TreeStore, phase: Phase, wanted: usize) -> usize {
        match store.limit(phase) {
            Some(limit) if limit.most < wanted => {
                let sentence = format!(
                    "{}, {}: all but {} of {wanted} operations: {}",
                    self.engine.name,
                    phase.name(),
                    limit.most,
                    limit.why
                );
                self.left_out.push((phase, sentence));
                limit.most
            }
            _ => wanted,
        }
    }

    fn rate(&mut self, phase: Phase, operations: usize, elapsed: Duration) {
        self.rates.push((phase, 1, operations as f64 / elapsed.as_secs_f64()));
    }

    fn note(self, figures: &mut Figures) {
        let order = self.order;
        for (phase, threads, rate) in self.rates {
            if self.plan.phases.contains(&phase) {
                let workload = Workload { phase, order };
                note(&mut figures.rates.rates, workload, threads, self.engine.name, rate);
            }
        }
        for (phase, sentence) in self.left_out {
            let wrong = &mut figures.rates.wrong;
            if self.plan.phases.contains(&phase) && !wrong.contains(&sentence) {
                wrong.push(sentence);
            }
        }
        if let Some(rate) = self.recovery {
            let workload = Workload { phase: Phase::Recover, order };
            note(&mut figures.recoveries, workload, 1, self.engine.name, rate);
        }
        figures.sizes.retain(|size| size.engine != self.engine.name || size.order != order);
        figures.sizes.push(self.size);
    }
}

/// Removes in one transaction from a tree ten times as large: they cost no more each, but for
/// caches, if their cost is linear.
fn tenfold(
    plan: &Plan,
    engines: &[&Engine],
    order: Order,
    figures: &mut Figures,
) -> Result<(), Error> {
    let Entries { inserted, taken } = Entries::new(order, plan.keys * 10);
    for engine in engines.iter().filter(|engine| is_ours(engine.name)) {
        let folder = Folder::new(&plan.dir, engine.name)?;
        let place =
            Place { dir: folder.path().to_owned(), level: Level::Buffered, keys: inserted.len() };
        let mut store = (engine.open)(&place)?;
        store.insert_all(&inserted)?;
        let mut tally = Tally::default();
        let begin = Instant::now();
        store.remove_all(&taken, &mut |value| tally.add(number(value)))?;
        let rate = taken.len() as f64 / begin.elapsed().as_secs_f64();
        check("removed", tally, values(&taken))?;
        let workload = Workload { phase: Phase::RemoveTenfold, order };
        note(&mut figures.rates.rates, workload, 1, engine.name, rate);
    }
    Ok(())
}

fn insert(store: &dyn Writers, entries: &[Entry]) -> Result<(), Error> {
    entries.iter().try_for_each(|entry| store.insert(entry))
}

/// The time since `begin`, or of the last call alone where the store knows it.
fn took(store: &dyn TreeStore, begin: Instant) -> Duration {
    let elapsed = begin.elapsed();
    store.elapsed().unwrap_or(elapsed)
}

fn per(begin: Option<u64>, end: Option<u64>, count: usize) -> Option<f64> {
    Some(end?.saturating_sub(begin?) as f64 / count as f64)
}

/// A value as a number; one of another length is that of no key.
#[inline]
fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

#[inline]
fn number_of_key(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

fn values(entries: &[Entry]) -> Tally {
    let mut tally = Tally::default();
    entries.iter().for_each(|(_, value)| tally.add(number(value)));
    tally
}

/// Both keys and values, so that a value under another key is seen.
fn check_contents(store: &dyn TreeStore, entries: &[Entry]) -> Result<(), Error> {
    let pair = |key: &[u8], value: &[u8]| number_of_key(key).rotate_left(7) ^ number(value);
    let mut expected = Tally::default();
    entries.iter().for_each(|(key, value)| expected.add(pair(key, value)));
    let mut found = Tally::default();
    store.iterate(&mut |key, value| found.add(pair(key, value)))?;
    check("held", found, expected)
}

fn check(what: &str, found: Tally, expected: Tally) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what} {found}, not {expected}").into()),
    }
}
