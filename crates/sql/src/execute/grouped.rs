//! Rows that are folded into groups.

use std::borrow::Cow;

use super::Shared;
use crate::error::Result;
use crate::evaluate::{evaluate, rows_where};
use crate::group::Groups;
use crate::plan::{Grouping, Plan};
use crate::states::Accumulator;
use sapwood_schema::{Batch, Vector};

/// The groups of a thread.
pub(super) struct GroupedRows {
    groups: Groups,
    accumulators: Vec<Accumulator>,
    /// Bytes of memory at the last look.
    memory: usize,
    batches: u32,
    // Kept for their memory.
    numbers: Vec<u32>,
    all_rows: Vec<u32>,
}

/// Batches from one look at the memory to the next.
const BATCHES_A_LOOK: u32 = 16;

impl GroupedRows {
    pub(super) fn new(grouping: &Grouping) -> GroupedRows {
        let accumulators = grouping.calls.iter().map(Accumulator::new);
        GroupedRows {
            groups: Groups::new(grouping.by.iter().map(|by| by.kind.data())),
            accumulators: accumulators.collect(),
            memory: 0,
            batches: 0,
            numbers: Vec::new(),
            all_rows: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, batch: &Batch, shared: &Shared<'_>) -> Result<()> {
        let grouping = shared.plan.grouping.as_ref().expect("rows are grouped");
        let by = grouping.by.iter().map(|by| evaluate(by, batch));
        let by: Vec<Cow<'_, Vector>> = by.collect::<Result<_>>()?;
        self.groups.assign(&by, 0..batch.len, &mut self.numbers);
        if self.all_rows.len() < batch.len {
            self.all_rows = (0..batch.len as u32).collect();
        }
        for (call, accumulator) in grouping.calls.iter().zip(&mut self.accumulators) {
            accumulator.grow(self.groups.len());
            if let Some(filter) = &call.filter {
                let chosen = rows_where(filter, batch)?;
                let numbers = chosen.iter().map(|&row| self.numbers[row as usize]);
                let numbers: Vec<u32> = numbers.collect();
                match &call.input {
                    None => accumulator.update(None, None, &chosen, &numbers),
                    // What is left out is not computed: it may have no value.
                    Some(input) => {
                        let batch = super::take(batch, &chosen);
                        let input = evaluate(input, &batch)?;
                        let second = call.second.as_ref();
                        let second = second.map(|second| evaluate(second, &batch)).transpose()?;
                        let rows = &self.all_rows[..batch.len];
                        accumulator.update(Some(&input), second.as_deref(), rows, &numbers);
                    }
                }
                continue;
            }
            let rows = &self.all_rows[..batch.len];
            let input = call.input.as_ref().map(|input| evaluate(input, batch)).transpose()?;
            let second = call.second.as_ref().map(|second| evaluate(second, batch)).transpose()?;
            accumulator.update(input.as_deref(), second.as_deref(), rows, &self.numbers);
        }
        self.batches += 1;
        if self.batches.is_multiple_of(BATCHES_A_LOOK) {
            let states: usize = self.accumulators.iter().map(Accumulator::memory).sum();
            shared.take_memory(&mut self.memory, self.groups.memory() + states)?;
        }
        Ok(())
    }

    /// Takes the groups of another thread.
    pub(super) fn merge(&mut self, other: &GroupedRows) {
        let count = other.groups.len();
        self.groups.assign(other.groups.columns(), 0..count, &mut self.numbers);
        for (own, other) in self.accumulators.iter_mut().zip(&other.accumulators) {
            own.grow(self.groups.len());
            own.merge(other, &self.numbers);
        }
    }

    /// A row for each group: the values that it is by, and its aggregates. Without any groups there is one, also
    /// of no rows.
    pub(super) fn finish(mut self, plan: &Plan) -> Result<Batch> {
        let grouping = plan.grouping.as_ref().expect("rows are grouped");
        if grouping.by.is_empty() {
            self.groups.assign::<Vector>(&[], 0..0, &mut self.numbers);
        }
        let len = self.groups.len();
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.grow(len));
        let mut columns = self.groups.into_columns();
        for (call, accumulator) in grouping.calls.iter().zip(self.accumulators) {
            columns.push(accumulator.finish(&call.kind)?);
        }
        Ok(Batch { len, columns, ids: None })
    }
}
