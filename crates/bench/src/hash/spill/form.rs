//! How does a job run on a store, one key at a time or many?

use std::sync::Arc;
use std::time::Instant;

use super::store::{Key, SpillStore, checked, key, value};
use crate::Error;
use crate::figures::{Percentiles, new_histogram};
use crate::hash::workload::{self, Job, Mix, Op, Workload, number_of};
use crate::rounds::{Contender, Outcome, run_threads};
use crate::tally::Tally;

/// Of this many operations one call is timed, where calls are timed singly.
const SAMPLED: usize = 16;

/// Written entries that are looked at before and after each run: few, as each may be on the disk.
const PROBES: usize = 32;

/// One way of calling a store of its own, so that none finds in memory what another has read.
pub(crate) struct Form {
    name: String,
    store: Arc<dyn SpillStore>,
    /// Operations of a call.
    call: usize,
    /// Entries read from the disk per operation, of each run since they were asked for.
    misses: Vec<f64>,
}

impl Form {
    pub(crate) fn new(engine: &str, store: Arc<dyn SpillStore>, call: usize) -> Form {
        let name = if call == 1 { engine.to_owned() } else { format!("{engine}-batch-{call}") };
        Form { name, store, call, misses: Vec::new() }
    }

    pub(crate) fn store(&self) -> &dyn SpillStore {
        &*self.store
    }

    pub(crate) fn take_misses(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.misses)
    }

    fn work(&self, mix: Mix, low: u32, plan: &[Op]) -> Result<Tally, Error> {
        if self.call == 1 { self.singly(mix, low, plan) } else { self.batched(mix, low, plan) }
    }

    fn singly(&self, mix: Mix, low: u32, plan: &[Op]) -> Result<Tally, Error> {
        let mut tally = Tally::default();
        for op in plan {
            let number = op.number();
            if mix == Mix::ReadModifyWrite {
                self.store.increment(&key(number))?;
            } else if op.writes() {
                self.store.put(&key(number), &value(number, low))?;
            } else {
                self.store.get(&key(number), &mut |value| note(&mut tally, number, value))?;
            }
        }
        Ok(tally)
    }

    /// Reads are gathered in one batch and updates in another.
    fn batched(&self, mix: Mix, low: u32, plan: &[Op]) -> Result<Tally, Error> {
        let mut tally = Tally::default();
        let mut keys: Vec<Key> = Vec::with_capacity(self.call);
        if mix == Mix::ReadModifyWrite {
            for part in plan.chunks(self.call) {
                keys.clear();
                keys.extend(part.iter().map(|op| key(op.number())));
                self.store.increment_many(&keys)?;
            }
            return Ok(tally);
        }
        let mut numbers: Vec<u32> = Vec::with_capacity(self.call);
        let mut updates = Vec::with_capacity(self.call);
        let mut read = |keys: &mut Vec<Key>, numbers: &mut Vec<u32>| -> Result<(), Error> {
            self.store.get_many(keys, &mut |i, value| note(&mut tally, numbers[i], value))?;
            keys.clear();
            numbers.clear();
            Ok(())
        };
        for op in plan {
            let number = op.number();
            if op.writes() {
                updates.push((key(number), value(number, low)));
                if updates.len() == self.call {
                    self.store.put_many(&updates)?;
                    updates.clear();
                }
            } else {
                keys.push(key(number));
                numbers.push(number);
                if keys.len() == self.call {
                    read(&mut keys, &mut numbers)?;
                }
            }
        }
        read(&mut keys, &mut numbers)?;
        self.store.put_many(&updates)?;
        Ok(tally)
    }

    fn first_word(&self, number: u32) -> Result<Option<u64>, Error> {
        let mut found = None;
        self.store.get(&key(number), &mut |value| found = checked(number, value))?;
        Ok(found)
    }

    fn probed(&self, job: &Job) -> Result<Vec<Option<u64>>, Error> {
        probes(job).map(|&(number, _)| self.first_word(number)).collect()
    }

    /// Compares probes with what the job must have left there.
    fn check_after(&self, job: &Job, before: &[Option<u64>]) -> Result<(), Error> {
        for ((&(number, writes), before), after) in probes(job).zip(before).zip(self.probed(job)?) {
            let expected = match job.mix {
                Mix::Reads(_) => Some(workload::value(number, job.tag)),
                Mix::ReadModifyWrite => before.map(|value| value + u64::from(writes)),
            };
            if after != expected {
                return Err(format!(
                    "entry {number} holds {after:x?} after {writes} writes, not {expected:x?}"
                )
                .into());
            }
        }
        Ok(())
    }
}

fn probes(job: &Job) -> impl Iterator<Item = &(u32, u32)> {
    job.probes.iter().take(PROBES)
}

/// Counts a value, under another number if any byte of it is wrong.
fn note(tally: &mut Tally, number: u32, value: &[u8]) {
    tally.add(checked(number, value).map_or(u64::MAX, number_of));
}

impl Contender<Job> for Form {
    fn name(&self) -> &str {
        &self.name
    }

    fn runs(&self, _: Workload) -> bool {
        true
    }

    fn run(&mut self, job: &Job) -> Result<Outcome, Error> {
        let before = self.probed(job)?;
        let fetched = self.store.fetched();
        let (elapsed, tallies) =
            run_threads(job.clock, &job.plans, |plan| self.work(job.mix, job.tag, plan));
        let operations: usize = job.plans.iter().map(Vec::len).sum();
        if let Some((before, now)) = fetched.zip(self.store.fetched()) {
            self.misses.push((now - before) as f64 / operations as f64);
        }
        let mut sum = Tally::default();
        for tally in tallies {
            sum = sum.merge(tally?);
        }
        self.check_after(job, &before)?;
        Ok(Outcome { elapsed, tally: sum })
    }

    fn latencies(&mut self, job: &Job) -> Result<Percentiles, Error> {
        let (_, histograms) = run_threads(job.clock, &job.plans, |plan| {
            let mut histogram = new_histogram();
            for part in plan.chunks(SAMPLED.max(self.call)) {
                let (timed, rest) = part.split_at(self.call.min(part.len()));
                let begin = Instant::now();
                self.work(job.mix, job.tag, timed)?;
                histogram.saturating_record(begin.elapsed().as_nanos() as u64);
                self.work(job.mix, job.tag, rest)?;
            }
            Ok(histogram)
        });
        Percentiles::of_all(histograms.into_iter().collect::<Result<_, Error>>()?)
    }
}
