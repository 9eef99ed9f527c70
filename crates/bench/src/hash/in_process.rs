//! Runs a job on a store of this process, with the loop compiled for that store and form.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;

use super::load::{Load, Loadable};
use super::store::{CallForm, Store, Visit};
use super::workload::{Job, Mix, Op, Workload, key, number_of};
use crate::Error;
use crate::figures::{Percentiles, new_histogram};
use crate::resident::{huge_bytes, resident_bytes};
use crate::rounds::{Contender, Outcome, run_threads};
use crate::tally::Tally;

/// Of this many operations one call is timed, where calls are timed singly.
const SAMPLED: usize = 64;

/// A store that forms of it share.
pub(crate) struct Shared<S> {
    store: Option<S>,
    keys: u32,
    /// Sum of the lower halves at the last full check, and of what was added since; none once a
    /// blind update has overwritten lower halves.
    added: Option<u64>,
}

/// The rank of a form among those that share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// It loads and checks the store for all of them.
    First,
    Further,
}

/// One form of a store.
pub(crate) struct InProcess<S, F> {
    shared: Arc<RwLock<Shared<S>>>,
    rank: Rank,
    form: PhantomData<F>,
}

impl<S: Store, F: CallForm<S>> InProcess<S, F> {
    /// A form of a shared store.
    pub(crate) fn of(shared: Arc<RwLock<Shared<S>>>, rank: Rank) -> InProcess<S, F> {
        InProcess { shared, rank, form: PhantomData }
    }
}

impl<S: Store> Shared<S> {
    /// Not yet loaded.
    pub(crate) fn empty() -> Shared<S> {
        Shared { store: None, keys: 0, added: None }
    }

    fn store(&self) -> &S {
        self.store.as_ref().expect("loaded before it runs")
    }

    /// Values of the job's probes.
    fn probed(&self, job: &Job) -> Vec<Option<u64>> {
        let _visit = Visit::begin(self.store());
        job.probes.iter().map(|&(number, _)| self.store().get(key(number))).collect()
    }

    /// Compares probes with what the job must have left there, and notes what it added.
    fn check_after(&mut self, job: &Job, low: u32, before: &[Option<u64>]) -> Result<(), Error> {
        for ((&(number, writes), before), after) in
            job.probes.iter().zip(before).zip(self.probed(job))
        {
            let expected = match job.mix {
                Mix::Reads(_) => Some(super::workload::value(number, low)),
                Mix::ReadModifyWrite => before.map(|value| value + u64::from(writes)),
            };
            if after != expected {
                return Err(format!(
                    "entry {number} holds {after:x?} after {writes} writes, not {expected:x?}"
                )
                .into());
            }
        }
        match job.mix {
            Mix::Reads(100) => {}
            Mix::Reads(_) => self.added = None,
            Mix::ReadModifyWrite => {
                let operations: usize = job.plans.iter().map(Vec::len).sum();
                self.added = self.added.map(|added| added + operations as u64);
            }
        }
        Ok(())
    }
}

impl<S: Store + 'static, F: CallForm<S>> Contender<Job> for InProcess<S, F> {
    fn name(&self) -> &str {
        F::NAME
    }

    fn runs(&self, _: Workload) -> bool {
        true
    }

    fn run(&mut self, job: &Job) -> Result<Outcome, Error> {
        let mut shared = self.shared.write();
        let before = shared.probed(job);
        let low = job.tag << 2 | F::MARK;
        let store = shared.store();
        // A quarter of the operations as reads, so that caches hold this store and not the last
        // contender's.
        run_threads(job.clock, &job.plans, |plan| {
            let _visit = Visit::begin(store);
            let reads: Vec<Op> =
                plan[..plan.len() / 4].iter().map(|op| Op::read(op.number())).collect();
            std::hint::black_box(F::work(store, Mix::Reads(100), low, &reads));
        });
        let (elapsed, tallies) = run_threads(job.clock, &job.plans, |plan| {
            let _visit = Visit::begin(store);
            F::work(store, job.mix, low, plan)
        });
        shared.check_after(job, low, &before)?;
        let tally = tallies.into_iter().fold(Tally::default(), Tally::merge);
        Ok(Outcome { elapsed, tally, operations: None })
    }

    fn latencies(&mut self, job: &Job) -> Result<Percentiles, Error> {
        let mut shared = self.shared.write();
        let before = shared.probed(job);
        let low = job.tag << 2 | F::MARK;
        let store = shared.store();
        let (_, histograms) = run_threads(job.clock, &job.plans, |plan| {
            let _visit = Visit::begin(store);
            let mut histogram = new_histogram();
            for part in plan.chunks(SAMPLED) {
                let (timed, rest) = part.split_at(F::CALL.min(part.len()));
                let begin = Instant::now();
                std::hint::black_box(F::work(store, job.mix, low, timed));
                histogram.saturating_record(begin.elapsed().as_nanos() as u64);
                std::hint::black_box(F::work(store, job.mix, low, rest));
            }
            histogram
        });
        shared.check_after(job, low, &before)?;
        Percentiles::of_all(histograms)
    }
}

impl<S: Store + 'static, F: CallForm<S>> Loadable for InProcess<S, F> {
    fn load(&mut self, keys: u32) -> Result<Option<Load>, Error> {
        if self.rank != Rank::First {
            return Ok(None);
        }
        let mut shared = self.shared.write();
        shared.store = None;
        let growth = |before: Option<u64>, now: Option<u64>| {
            before.zip(now).map(|(before, now)| now.saturating_sub(before))
        };
        let (resident, huge) = (resident_bytes(), huge_bytes());
        let store = S::with_room(keys)?;
        let begin = Instant::now();
        {
            let _visit = Visit::begin(&store);
            store.load(0..keys);
        }
        let elapsed = begin.elapsed();
        let load = Load {
            elapsed,
            resident_bytes: growth(resident, resident_bytes()),
            huge_bytes: growth(huge, huge_bytes()),
            accounted_bytes: store.accounted_bytes(),
        };
        *shared = Shared { store: Some(store), keys, added: Some(0) };
        Ok(Some(load))
    }

    fn check_everything(&mut self) -> Result<(), Error> {
        if self.rank != Rank::First {
            return Ok(());
        }
        let mut shared = self.shared.write();
        let store = shared.store();
        let visit = Visit::begin(store);
        let mut low_sum = 0u64;
        for number in 0..shared.keys {
            let found = store.get(key(number));
            if found.map(number_of) != Some(u64::from(number)) {
                return Err(format!("{} holds {found:x?} for entry {number}", F::NAME).into());
            }
            low_sum += found.unwrap_or(0) & u64::from(u32::MAX);
        }
        drop(visit);
        if let Some(added) = shared.added.filter(|&added| added != low_sum) {
            return Err(
                format!("{} lost additions: {low_sum} of {added} are there", F::NAME).into()
            );
        }
        shared.added = Some(low_sum);
        Ok(())
    }
}
