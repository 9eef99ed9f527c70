//! How is a total spread over the objects of a table?
//!
//! First the objects are collected, by an executor as for a query, and each one's part is computed;
//! nothing is changed so far. Then the objects are changed by their keys, in batches that the
//! threads share, each object in one step for every reader.

use std::sync::Arc;
use std::time::Instant;

use sapwood_aggregate::{
    Change, Collector, Disaggregated, Disaggregation, Disaggregator, Fate, Pending, Progress,
    Refusal, Share, Shares,
};

use super::objects::{Asked, Crew, Objects};
use super::{Execution, Measured, Plan};
use crate::{Error, HashTable, Result, Table};

/// What a disaggregation came to.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// What was done, and what is left.
    pub report: Disaggregated,
    /// What is left, if anything: the same objects get it from
    /// [`Table::resume`] or [`HashTable::resume`], now or later, in this process or another
    /// ([`Pending::encode`]).
    pub pending: Option<Pending>,
    /// Why something is left: [`Error::Cancelled`], or what an engine refused.
    pub stopped: Option<Error>,
    /// How the objects were reached, and what was measured of that; none if it was gone on with.
    pub plan: Option<Plan>,
}

impl Settlement {
    fn whole(self) -> Result<Disaggregated> {
        match self.stopped {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}

/// What an engine can do for disaggregations.
pub(super) trait Changes: Objects {
    /// Gives objects their parts, in order, and says in `fates` what became of each. Answers how
    /// many were dealt with: fewer than there are with an error.
    fn change(
        &self,
        by: &Disaggregator,
        shares: &[Share<'_>],
        fates: &mut [Fate],
    ) -> (usize, Result<()>);
}

impl Changes for Table {
    fn change(
        &self,
        by: &Disaggregator,
        shares: &[Share<'_>],
        fates: &mut [Fate],
    ) -> (usize, Result<()>) {
        let mut digits = Vec::new();
        for (at, (share, fate)) in shares.iter().zip(&mut *fates).enumerate() {
            let changed = self.update(share.key, |value| {
                if by.changes_in_place() {
                    return Ok(by.change(value, share.part));
                }
                digits.clear();
                let change = by.rewrite(value, share.part, &mut digits);
                match change {
                    Ok(_) => value.set(&digits).map(|()| change),
                    Err(_) => Ok(change),
                }
            });
            match changed.and_then(|changed| self.named(changed.transpose())) {
                Ok(changed) => *fate = fate_of(changed),
                Err(error) => return (at, Err(error)),
            }
        }
        (shares.len(), Ok(()))
    }
}

impl Changes for HashTable {
    fn change(
        &self,
        by: &Disaggregator,
        shares: &[Share<'_>],
        fates: &mut [Fate],
    ) -> (usize, Result<()>) {
        if by.changes_in_place() {
            let keys: Vec<&[u8]> = shares.iter().map(|share| share.key).collect();
            fates.fill(Fate::Vanished);
            // The last run for a key counts.
            let changed = self.update_many(&keys, |at, value| {
                fates[at] = by.change(value, shares[at].part).into();
            });
            return match changed {
                Ok(_) => (shares.len(), Ok(())),
                Err(error) => (done_of(&error), Err(error)),
            };
        }
        let mut digits = Vec::new();
        for (at, (share, fate)) in shares.iter().zip(&mut *fates).enumerate() {
            let changed = self.update(share.key, |value| {
                digits.clear();
                let change = by.rewrite(value, share.part, &mut digits);
                match change {
                    Ok(_) => value.set(&digits).map(|()| change),
                    Err(_) => Ok(change),
                }
            });
            match changed.and_then(|changed| self.named(changed.transpose())) {
                Ok(changed) => *fate = fate_of(changed),
                Err(error) => return (at, Err(error)),
            }
        }
        (shares.len(), Ok(()))
    }
}

fn fate_of(changed: Option<std::result::Result<Change, Refusal>>) -> Fate {
    changed.map_or(Fate::Vanished, Fate::from)
}

/// How many entries of a batch were done before it stopped.
fn done_of(error: &Error) -> usize {
    match error {
        Error::HashBatch { done, .. } => *done,
        _ => 0,
    }
}

fn disaggregate(
    objects: &impl Changes,
    table: &Arc<str>,
    by: &Disaggregator,
    execution: &Execution<'_>,
) -> Result<Settlement> {
    let asked = Asked::by_disaggregation(by, execution.threads);
    let mut plan = Plan::choose(table, objects.candidates(&asked), execution)?;
    let begin = Instant::now();
    let crew = Crew::new(execution, plan.expected().visits);
    let gathered = objects
        .reach(plan.executor, &asked, &crew, &|| by.collector())
        .map_err(|ended| ended.into_error(table, &crew))?;
    let collected = gathered.parts.into_iter().map(Collector::into_collected);
    let shares = by.shares(collected)?;
    let selected = shares.tally().selected;
    plan.measured =
        Some(Measured { elapsed: begin.elapsed(), visited: gathered.visited, selected });
    let mut settlement = settle(objects, table, by, &shares, execution)?;
    if let Some(keys) = by.selection().as_keys() {
        settlement.report.tally.absent = (keys.len() as u64).saturating_sub(selected);
    }
    Ok(Settlement { plan: Some(plan), ..settlement })
}

fn resume(
    objects: &impl Changes,
    table: &Arc<str>,
    by: &Disaggregator,
    pending: Pending,
    execution: &Execution<'_>,
) -> Result<Settlement> {
    settle(objects, table, by, &by.resume(pending)?, execution)
}

/// Gives all objects their parts, or those before it is stopped.
fn settle(
    objects: &impl Changes,
    table: &Arc<str>,
    by: &Disaggregator,
    shares: &Shares,
    execution: &Execution<'_>,
) -> Result<Settlement> {
    let crew = Crew::new(execution, shares.count());
    let (parts, ended) = crew.all_parts(shares.batch_count(), &|| shares.progress(), |at, work| {
        let batch: Vec<Share<'_>> = shares.batch(at).shares().collect();
        let mut fates = vec![Fate::Vanished; batch.len()];
        let (done, end) = objects.change(by, &batch, &mut fates);
        for (share, fate) in batch.iter().zip(fates).take(done) {
            work.gather.settle(at, share, fate);
        }
        end.map(|()| work.count(done as u64))
    });
    let progress = parts.into_iter().map(|(progress, _)| progress).reduce(Progress::merge);
    let progress = progress.unwrap_or_else(|| shares.progress());
    let report = shares.report(&progress);
    let stopped = ended.map(|ended| ended.into_error(table, &crew));
    let pending = if report.pending > 0 { Some(shares.pending(&progress)?) } else { None };
    Ok(Settlement { report, pending, stopped, plan: None })
}

macro_rules! operations {
    ($table:ty) => {
        impl $table {
            /// Spreads a total over a field of the table's objects: the way back from a figure.
            /// Every object gets its part in one step for every reader, the parts add up to the
            /// total exactly, and nothing is changed unless all of them fit.
            ///
            /// Not one atomic operation: others may see some objects changed and some not yet. An
            /// object that goes away between being collected and being changed does not get its
            /// part, which the report tells; one that comes meanwhile has none.
            ///
            /// # Errors
            /// [`Error::Query`]: it does not fit together, no object is selected, or a part does
            /// not fit into its field; nothing was changed. What stops it later is answered too;
            /// [`disaggregate_with`](Self::disaggregate_with) keeps what is left to go on with.
            pub fn disaggregate(&self, what: &Disaggregation) -> Result<Disaggregated> {
                self.disaggregate_with(&what.compile()?, &Execution::new())?.whole()
            }

            /// As [`disaggregate`](Self::disaggregate), run as told. If it is cancelled, or an
            /// object cannot be changed, after the first object was, the answer holds what is left,
            /// for [`resume`](Self::resume).
            ///
            /// # Errors
            /// Nothing was changed: as [`disaggregate`](Self::disaggregate), and
            /// [`Error::Cancelled`], [`Error::Executor`].
            pub fn disaggregate_with(
                &self,
                by: &Disaggregator,
                execution: &Execution<'_>,
            ) -> Result<Settlement> {
                disaggregate(self, &self.shared.name, by, execution)
            }

            /// Gives those objects their parts that a disaggregation left, each exactly once.
            ///
            /// # Errors
            /// [`Error::Query`] if they were left by another disaggregation.
            pub fn resume(
                &self,
                by: &Disaggregator,
                pending: Pending,
                execution: &Execution<'_>,
            ) -> Result<Settlement> {
                resume(self, &self.shared.name, by, pending, execution)
            }
        }
    };
}

operations!(Table);
operations!(HashTable);
