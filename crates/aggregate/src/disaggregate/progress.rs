//! The progress of a disaggregation: the outcome of each share so far.

use sapwood_mem::vector::Level;

use super::field::{Action, Amount, Change, Refusal};
use super::recorded::Recorded;
use super::shares::{Share, Shares};
use crate::columns::kernels;
use crate::error::Example;
use crate::fold::partial::Tally;
use crate::state::Sum;
use crate::value::Value;

/// The outcome of an object's share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The object has its part.
    Changed(Change),
    /// There is no such object any more. Its part is not given to any other.
    Vanished,
    /// The object is no longer what it was when it was collected, and cannot have its part.
    Refused(Refusal),
}

impl From<std::result::Result<Change, Refusal>> for Outcome {
    fn from(result: std::result::Result<Change, Refusal>) -> Outcome {
        match result {
            Ok(change) => Outcome::Changed(change),
            Err(refusal) => Outcome::Refused(refusal),
        }
    }
}

/// How far the shares of a disaggregation are applied.
///
/// Shares of a batch are recorded in the order of the batch; a share that is recorded is done for
/// good, and all else is pending. Threads that take different batches have one each, and these merge.
#[derive(Debug, Clone)]
pub struct DisaggregationProgress {
    action: Action,
    /// Of each batch how many shares are recorded, from its first on.
    done: Vec<u32>,
    recorded: Recorded,
}

/// What a disaggregation did, and what is left to be done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Disaggregated {
    /// How many objects were selected, matched the filter, and were mismatched, when they were
    /// collected.
    pub tally: Tally,
    /// What was to be spread: always `given + not_given + pending_sum`.
    pub total: i128,
    /// Objects that have their part.
    pub changed: u64,
    /// Objects that were gone when they were to be changed.
    pub vanished: u64,
    /// Objects that could not have their part any more.
    pub refused: u64,
    /// Of these the one with the least key.
    pub first_refusal: Option<Example>,
    /// Objects that are not dealt with yet.
    pub pending: u64,
    /// The sum of the parts that objects have.
    pub given: i128,
    /// The sum of the parts of vanished and refused objects.
    pub not_given: i128,
    /// The sum of the parts that are pending.
    pub pending_sum: i128,
    /// The sum of the fields that were changed, as they were just before. None if it leaves the range
    /// of its type.
    pub sum_before: Option<Value<'static>>,
    /// The same just after.
    pub sum_after: Option<Value<'static>>,
}

impl DisaggregationProgress {
    pub(super) fn new(action: Action, batch_count: usize) -> DisaggregationProgress {
        DisaggregationProgress { action, done: vec![0; batch_count], recorded: Recorded::default() }
    }

    /// How many shares of a batch are recorded, from its first on.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn done(&self, batch: usize) -> usize {
        self.done[batch] as usize
    }

    /// Records the next share of a batch.
    ///
    /// # Panics
    /// If there is no such batch.
    #[inline]
    pub fn record(&mut self, batch: usize, share: &Share<'_>, outcome: Outcome) {
        self.done[batch] += 1;
        let recorded = &mut self.recorded;
        match outcome {
            Outcome::Changed(change) => {
                recorded.changed += 1;
                recorded.given += share.part;
                add(&mut recorded.before, change.before);
                add(&mut recorded.after, change.after);
            }
            Outcome::Vanished => {
                recorded.vanished += 1;
                recorded.not_given += share.part;
            }
            Outcome::Refused(refusal) => {
                recorded.refused += 1;
                recorded.not_given += share.part;
                recorded.add_example(share.key, refusal);
            }
        }
    }

    /// Records the next shares of a batch at once: all of the objects have their parts. What their
    /// fields held is `before`, the sum of the parts `given`.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn record_words(&mut self, batch: usize, before: &[i64], given: i128) {
        let sum = kernels::sum_signed(Level::detected(), before);
        self.record_sums(batch, before.len() as u64, sum, given);
    }

    /// Records the next shares of a batch at once: `count` objects have their parts. The sum of what
    /// their fields held is `before`, that of the parts `given`.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn record_sums(&mut self, batch: usize, count: u64, before: i128, given: i128) {
        self.done[batch] += count as u32;
        let recorded = &mut self.recorded;
        recorded.changed += count;
        recorded.given += given;
        recorded.before.push_ints(count, before);
        recorded.after.push_ints(count, given);
        if self.action == Action::Add {
            recorded.after.push_ints(0, before);
        }
    }

    /// The progress of both, of different batches of the same shares.
    ///
    /// # Panics
    /// If they are of other shares, or of the same batch.
    pub fn merge(mut self, other: DisaggregationProgress) -> DisaggregationProgress {
        assert_eq!(self.done.len(), other.done.len(), "the progress of other shares");
        for (at, (done, other)) in self.done.iter_mut().zip(other.done).enumerate() {
            assert!(*done == 0 || other == 0, "batch {at} was dealt with by two threads");
            *done += other;
        }
        self.recorded.merge(&other.recorded);
        self
    }

    pub(super) fn recorded(&self) -> &Recorded {
        &self.recorded
    }
}

fn add(sum: &mut Sum, amount: Amount) {
    match amount {
        Amount::Missing => {}
        Amount::Whole(value) => sum.push_ints(1, value),
        Amount::Float(_) => {
            // Infinities that a writer left are shown by no sum.
            if let Some(value @ Value::Float(float)) = amount.value()
                && float.get().is_finite()
            {
                sum.push(&value);
            }
        }
    }
}

impl Shares<'_> {
    /// Nothing is applied yet.
    pub fn progress(&self) -> DisaggregationProgress {
        DisaggregationProgress::new(self.action, self.chunks.len())
    }

    /// What was done, with what was done before it was gone on with.
    pub fn report(&self, progress: &DisaggregationProgress) -> Disaggregated {
        let mut recorded = self.carried.clone();
        recorded.merge(&progress.recorded);
        let given = [recorded.given, recorded.not_given];
        Disaggregated {
            tally: self.tally.clone(),
            total: self.total,
            changed: recorded.changed,
            vanished: recorded.vanished,
            refused: recorded.refused,
            pending: self.tally.matched - recorded.count().expect("at most those that matched"),
            given: recorded.given,
            not_given: recorded.not_given,
            // Each is a part of the total.
            pending_sum: given.iter().fold(self.total, |rest, parts| rest - parts),
            sum_before: recorded.before.sum().ok(),
            sum_after: recorded.after.sum().ok(),
            first_refusal: recorded.first_refusal,
        }
    }
}
