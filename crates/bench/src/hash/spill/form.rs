//! The forms of a store: a job runs one key a call, or many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::store::{
    SpillEngine, SpillKey, SpillPlace, SpillStore, VALUE_BYTES, checked, key, value, visit,
};
use super::{SpillEntrant, SpillJob};
use crate::harness::*;
use crate::hash::job::HashJob;
use crate::hash::job::Mix;
use crate::hash::job::number_of;

/// Operations of which one call is timed, where calls are timed singly.
const SAMPLED: usize = 16;

/// Written entries that are looked at before and after each run: few, as each may be on the disk.
const PROBES: usize = 32;

/// Operations between two looks at the clock, where a store is brought to what it holds in the long
/// run, and how many a call.
const WARMED_TOGETHER: usize = 4096;
const WARM_CALL: usize = 256;

const LOADED_TOGETHER: u32 = 256;

/// One way of calling a store of its own, so that none finds in memory what another has read.
pub(crate) struct SpillForm {
    name: String,
    engine: SpillEngine,
    place: SpillPlace,
    store: Option<Arc<dyn SpillStore>>,
    call: usize,
    pace: usize,
}

impl SpillForm {
    pub(crate) fn open(engine: &SpillEngine, place: SpillPlace, call: usize) -> Result<SpillForm> {
        let name = match call {
            1 => engine.name.to_owned(),
            _ => format!("{}-batch-{call}", engine.name),
        };
        std::fs::create_dir_all(&place.dir)?;
        let store = Some((engine.open)(&place)?);
        Ok(SpillForm { name, engine: *engine, place, store, call, pace: usize::MAX })
    }

    pub(crate) fn store(&self) -> &dyn SpillStore {
        &**self.store.as_ref().expect("it is not being replaced")
    }

    pub(crate) fn call(&self) -> usize {
        self.call
    }

    pub(crate) fn load(&self) -> Result<f64> {
        let keys = self.place.keys;
        let mut entries = vec![([0; 8], [0; VALUE_BYTES]); LOADED_TOGETHER as usize];
        let begin = Instant::now();
        let _visit = visit(self.store());
        for first in (0..keys).step_by(LOADED_TOGETHER as usize) {
            let limit = keys.min(first.saturating_add(LOADED_TOGETHER));
            let entries = &mut entries[..(limit - first) as usize];
            for (entry, number) in entries.iter_mut().zip(first..) {
                *entry = (key(number), value(number, 0));
            }
            self.store().put_many(entries)?;
        }
        Ok(f64::from(keys) / begin.elapsed().as_secs_f64())
    }

    /// Lets the store do what it puts off, or begins it anew if it has grown too long.
    pub(crate) fn settle(&mut self) -> Result {
        if self.store().is_long() {
            self.store = None;
            std::fs::remove_dir_all(&self.place.dir)?;
            std::fs::create_dir_all(&self.place.dir)?;
            self.store = Some((self.engine.open)(&self.place)?);
            self.load()?;
        }
        self.store().settle()
    }

    /// Does operations of a job for about `time`, in batches, so that memory holds what it would
    /// hold after a while.
    pub(crate) fn warm(&self, job: &HashJob, time: Duration) -> Result {
        let begin = Instant::now();
        let (_, results) = run_threads(&job.plans, |plan| {
            let _visit = visit(self.store());
            for part in plan.chunks(WARMED_TOGETHER) {
                if begin.elapsed() >= time {
                    break;
                }
                self.batched(WARM_CALL, job.mix, job.tag, part)?;
            }
            Ok(())
        });
        results.into_iter().collect()
    }

    /// Finds out how many operations of such a job take about `time`.
    pub(crate) fn find_pace(&mut self, job: &SpillJob, time: Duration) -> Result {
        let planned = job.0.plans.iter().map(Vec::len).max().unwrap_or(0);
        self.pace = (4 * self.call).max(256);
        loop {
            let begin = Instant::now();
            self.run(job)?;
            let elapsed = begin.elapsed();
            if self.pace >= planned {
                return Ok(());
            }
            if elapsed >= time / 8 {
                let pace = self.pace as f64 * time.as_secs_f64() / elapsed.as_secs_f64();
                self.pace = (pace as usize).max(1).next_multiple_of(self.call);
                return Ok(());
            }
            self.pace *= 4;
        }
    }

    fn work(&self, mix: Mix, low: u32, plan: &[Op]) -> Result<Tally> {
        match self.call {
            1 => self.singly(mix, low, plan),
            call => self.batched(call, mix, low, plan),
        }
    }

    fn singly(&self, mix: Mix, low: u32, plan: &[Op]) -> Result<Tally> {
        let mut tally = Tally::default();
        for op in plan {
            let number = op.number();
            if mix == Mix::ReadModifyWrite {
                self.store().increment(&key(number))?;
            } else if op.writes() {
                self.store().put(&key(number), &value(number, low))?;
            } else {
                self.store().get(&key(number), &mut |value| note(&mut tally, number, value))?;
            }
        }
        Ok(tally)
    }

    fn batched(&self, call: usize, mix: Mix, low: u32, plan: &[Op]) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut keys: Vec<SpillKey> = Vec::with_capacity(call);
        if mix == Mix::ReadModifyWrite {
            for part in plan.chunks(call) {
                keys.clear();
                keys.extend(part.iter().map(|op| key(op.number())));
                self.store().increment_many(&keys)?;
            }
            return Ok(tally);
        }
        let mut numbers: Vec<u32> = Vec::with_capacity(call);
        let mut updates = Vec::with_capacity(call);
        let mut read = |keys: &mut Vec<SpillKey>, numbers: &mut Vec<u32>| -> Result {
            self.store().get_many(keys, &mut |i, value| note(&mut tally, numbers[i], value))?;
            keys.clear();
            numbers.clear();
            Ok(())
        };
        for op in plan {
            let number = op.number();
            if op.writes() {
                updates.push((key(number), value(number, low)));
                if updates.len() == call {
                    self.store().put_many(&updates)?;
                    updates.clear();
                }
            } else {
                keys.push(key(number));
                numbers.push(number);
                if keys.len() == call {
                    read(&mut keys, &mut numbers)?;
                }
            }
        }
        read(&mut keys, &mut numbers)?;
        self.store().put_many(&updates)?;
        Ok(tally)
    }

    fn first_word(&self, number: u32) -> Result<Option<u64>> {
        let mut found = None;
        self.store().get(&key(number), &mut |value| found = checked(number, value))?;
        Ok(found)
    }

    fn probed(&self, job: &HashJob) -> Result<Vec<Option<u64>>> {
        let _visit = visit(self.store());
        job.probes.iter().take(PROBES).map(|&(number, _)| self.first_word(number)).collect()
    }
}

impl SpillEntrant for SpillForm {
    fn form(&mut self) -> Option<&mut SpillForm> {
        Some(self)
    }
}

impl Engine<SpillJob> for SpillForm {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, job: &SpillJob) -> Result<Outcome> {
        let job = job.0.first(self.pace);
        let before = self.probed(&job)?;
        let fetched = self.store().fetched();
        let (elapsed, tallies) = run_threads(&job.plans, |plan| {
            let _visit = visit(self.store());
            self.work(job.mix, job.tag, plan)
        });
        let operations = job.operations();
        let misses = fetched.zip(self.store().fetched());
        let tally = tallies.into_iter().sum::<Result<Tally>>()?;
        if let Some(expected) = job.expected().filter(|expected| *expected != tally) {
            bail!("read {tally}, not {expected}");
        }
        job.check(job.tag, &before, &self.probed(&job)?)?;
        let mut outcome = Outcome::of(operations, elapsed, tally);
        outcome.figures.extend(misses.map(|(before, now)| {
            Figure::new((now - before) as f64 / operations as f64).unit(&MISSES)
        }));
        Ok(outcome)
    }

    fn latencies(&mut self, job: &SpillJob) -> Result<Option<Percentiles>> {
        let job = job.0.first(self.pace);
        let begin = || visit(self.store());
        let work = |_: &mut _, plan: &[Op]| self.work(job.mix, job.tag, plan).map(drop);
        time_calls(&job.plans, (self.call, SAMPLED), begin, work).map(Some)
    }
}

/// Counts a value, under another number if any byte of it is wrong.
fn note(tally: &mut Tally, number: u32, value: &[u8]) {
    tally.add(checked(number, value).map_or(u64::MAX, number_of));
}
