//! Rows of an answer, collected, made different, sorted and cut.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::Shared;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::functions::compare;
use crate::group::Groups;
use crate::order::{Direction, Nulls};
use crate::plan::{OrderKey, Plan};
use sapwood_schema::{Batch, Vector};

/// Rows of the answer, with what they are sorted by.
pub(super) struct CollectedRows {
    outputs: Vec<Vector>,
    keys: Vec<Vector>,
    /// Where each row stands in the source: its batch, and its place there.
    places: Vec<(u64, u32)>,
    /// The rows so far, where they are to differ.
    distinct: Option<Groups>,
    /// Bytes of memory at the last look.
    memory: usize,
}

/// Rows that are kept at least before they are cut to those that a limit wants.
const ROWS_UNSORTED: usize = 8_192;

impl CollectedRows {
    pub(super) fn new(plan: &Plan) -> CollectedRows {
        let data = || plan.outputs.iter().map(|output| output.node.kind.data());
        CollectedRows {
            outputs: data().map(Vector::new).collect(),
            keys: plan.order.iter().map(|key| Vector::new(key.node.kind.data())).collect(),
            places: Vec::new(),
            distinct: plan.is_distinct.then(|| Groups::new(data())),
            memory: 0,
        }
    }

    /// Takes the rows of a batch: breaks if no more are wanted.
    pub(super) fn push(
        &mut self,
        number: u64,
        batch: &Batch,
        shared: &Shared<'_>,
    ) -> Result<ControlFlow<()>> {
        let plan = shared.plan;
        let outputs = plan.outputs.iter().map(|output| evaluate(&output.node, batch));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let wanted = plan.limit.map(|limit| limit.saturating_add(plan.offset));
        let rows: Vec<u32> = match &mut self.distinct {
            None => (0..batch.len as u32).collect(),
            Some(groups) => {
                let (before, mut numbers) = (groups.len(), Vec::new());
                groups.assign(&outputs, 0..batch.len, &mut numbers);
                // Groups are numbered as they come: the first row of each has the next number.
                let mut next = before as u32;
                let mut rows = Vec::new();
                for (row, number) in numbers.into_iter().enumerate() {
                    if number == next {
                        next += 1;
                        rows.push(row as u32);
                    }
                }
                rows
            }
        };
        // Keys of rows that are to differ are over the outputs.
        let of_outputs;
        let keys_of = match plan.is_distinct {
            false => batch,
            true => {
                let columns = outputs.iter().map(|output| output.clone().into_owned());
                of_outputs = Batch { len: batch.len, columns: columns.collect(), ids: None };
                &of_outputs
            }
        };
        for (own, key) in self.keys.iter_mut().zip(&plan.order) {
            let vector = evaluate(&key.node, keys_of)?;
            rows.iter().for_each(|&row| own.push_from(&vector, row as usize));
        }
        for (own, output) in self.outputs.iter_mut().zip(&outputs) {
            rows.iter().for_each(|&row| own.push_from(output, row as usize));
        }
        self.places.extend(rows.iter().map(|&row| (number, row)));
        if let Some(wanted) = wanted {
            if plan.order.is_empty()
                && self.places.len() as u64 >= wanted
                && plan.grouping.is_none()
            {
                return Ok(ControlFlow::Break(()));
            }
            let kept = usize::try_from(wanted).unwrap_or(usize::MAX);
            if !plan.order.is_empty() && self.places.len() / 2 > kept.max(ROWS_UNSORTED) {
                self.cut(&plan.order, kept);
            }
        }
        let vectors = self.outputs.iter().chain(&self.keys).map(Vector::memory).sum::<usize>();
        let distinct = self.distinct.as_ref().map_or(0, Groups::memory);
        shared.take_memory(&mut self.memory, vectors + distinct + self.places.len() * 16)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the rows of another thread.
    pub(super) fn merge(&mut self, other: CollectedRows) {
        let own = self.outputs.iter_mut().chain(&mut self.keys);
        for (own, other) in own.zip(other.outputs.iter().chain(&other.keys)) {
            (0..other.len()).for_each(|row| own.push_from(other, row));
        }
        self.places.extend(other.places);
    }

    /// The rows in their order.
    fn sorted(&self, order: &[OrderKey]) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.places.len() as u32).collect();
        let by = |left: &u32, right: &u32| {
            let (left, right) = (*left as usize, *right as usize);
            let keys = order.iter().zip(&self.keys);
            let by_keys = keys.map(|(order, keys)| order.compare(keys, left, right));
            by_keys
                .fold(Ordering::Equal, Ordering::then)
                .then_with(|| self.places[left].cmp(&self.places[right]))
        };
        if !rows.is_sorted_by(|left, right| by(left, right).is_le()) {
            rows.sort_unstable_by(by);
        }
        rows
    }

    /// Keeps the first rows alone.
    fn cut(&mut self, order: &[OrderKey], kept: usize) {
        let mut rows = self.sorted(order);
        rows.truncate(kept);
        for vector in self.outputs.iter_mut().chain(&mut self.keys) {
            *vector = vector.take(&rows);
        }
        self.places = rows.iter().map(|&row| self.places[row as usize]).collect();
    }

    /// The answer: its rows, and a vector for each output.
    pub(super) fn finish(self, plan: &Plan) -> (usize, Vec<Vector>) {
        let mut rows = self.sorted(&plan.order);
        let begin = usize::try_from(plan.offset).unwrap_or(usize::MAX).min(rows.len());
        rows.drain(..begin);
        if let Some(limit) = plan.limit {
            rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        let is_all = rows.len() == self.places.len() && rows.is_sorted();
        match is_all {
            true => (rows.len(), self.outputs),
            false => (rows.len(), self.outputs.iter().map(|output| output.take(&rows)).collect()),
        }
    }
}

impl OrderKey {
    fn compare(&self, keys: &Vector, left: usize, right: usize) -> Ordering {
        match (keys.is_null(left), keys.is_null(right)) {
            (false, false) => match self.direction {
                Direction::Ascending => compare(keys, left, keys, right),
                Direction::Descending => compare(keys, right, keys, left),
            },
            (left, right) => match self.nulls {
                Nulls::First => right.cmp(&left),
                Nulls::Last => left.cmp(&right),
            },
        }
    }
}
