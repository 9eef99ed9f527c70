//! The fold of objects into a partial state.

pub(crate) mod columns;
pub(crate) mod grouping;
pub(crate) mod partial;

use sapwood_engine::ColumnBatch;
use smallvec::SmallVec;

use crate::error::{Mismatch, Result, Why};
use crate::fold::partial::Partial;
use crate::plan::compiled::{Compiled, Object};
use crate::plan::membership::Membership;
use crate::state::Given;
use crate::value::Value;
use crate::value::stored;
use columns::{Destination, Scratch, Taken};

/// A partial state that grows, object by object or batch by batch; see
/// [`Query`](crate::Query) for an example.
///
/// Each thread of an execution has its own; their partial states merge.
#[derive(Debug)]
pub struct Fold<'q> {
    query: &'q Compiled,
    partial: Partial,
    /// The stored form of an object's group.
    group: Vec<u8>,
    /// A run of objects, where the query goes by column.
    scratch: Option<Scratch>,
}

/// What is read of an object.
type Reads<'a> = SmallVec<[Option<Value<'a>>; 6]>;

impl<'q> Fold<'q> {
    pub(crate) fn new(query: &'q Compiled) -> Fold<'q> {
        let scratch = query.columns.as_ref().map(|columns| Scratch::new(columns, &query.states));
        Fold { query, partial: Partial::new(query), group: Vec::new(), scratch }
    }

    /// Adds an object, unless it is not selected.
    ///
    /// # Errors
    /// [`QueryError::TooManyGroups`](crate::QueryError::TooManyGroups), some objects later perhaps, and when the
    /// query is finished at the latest. An object that does not have what the
    /// query reads is counted, and is an error when the query is finished, if at all.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.query.membership.contains(key) { self.push_selected(key, value) } else { Ok(()) }
    }

    /// Adds an object that is known to be selected, because it was looked up or lies in the range.
    ///
    /// # Errors
    /// As [`Fold::push`].
    #[inline]
    pub fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let (Some(columns), Some(scratch)) = (&self.query.columns, &mut self.scratch)
            && columns.fit(key.len(), value.len())
        {
            match columns.push(key, value, scratch) {
                Taken::Yes => return Ok(()),
                Taken::Full => return self.flush(self.query.groups_max),
                Taken::No if scratch.is_full() => self.flush(self.query.groups_max)?,
                Taken::No => {}
            }
        }
        self.push_object(key, value)
    }

    fn push_object(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.partial.tally_mut().selected += 1;
        let object = Object { query: self.query, key, value };
        match self.read(&object) {
            Ok(Some(reads)) => self.add(key, &reads),
            Ok(None) => Ok(()),
            Err(mismatch) => {
                self.partial.tally_mut().add_mismatch(self.query, key, mismatch);
                Ok(())
            }
        }
    }

    /// Adds the valid objects of a batch that are selected: the same as pushing one after the other,
    /// and much faster where all that the query reads is whole numbers at offsets.
    ///
    /// # Errors
    /// As [`Fold::push`].
    pub fn push_batch(&mut self, batch: &ColumnBatch<'_>) -> Result<()> {
        self.push_chosen(batch, Some(&self.query.membership))
    }

    /// Adds the valid objects of a batch that are known to be selected.
    ///
    /// # Errors
    /// As [`Fold::push`].
    pub fn push_batch_selected(&mut self, batch: &ColumnBatch<'_>) -> Result<()> {
        self.push_chosen(batch, None)
    }

    fn push_chosen(&mut self, batch: &ColumnBatch<'_>, chosen: Option<&Membership>) -> Result<()> {
        let query = self.query;
        let chosen = chosen.filter(|chosen| !chosen.is_everything());
        let (keys, values) = (batch.keys().width(), batch.values().width());
        if let Some(columns) = &query.columns
            && columns.is_gathered()
            && columns.fit(keys, values)
        {
            self.flush(query.groups_max)?;
            let scratch = self.scratch.as_mut().expect("made with the columns");
            return columns.push_batch(
                batch,
                chosen,
                scratch,
                &mut Destination { partial: &mut self.partial, query },
            );
        }
        for (key, value) in (0..batch.len()).filter_map(|at| batch.entry(at)) {
            if chosen.is_none_or(|chosen| chosen.contains(key)) {
                self.push_selected(key, value)?;
            }
        }
        Ok(())
    }

    /// Folds the run that was gathered object by object, into at most so many groups.
    fn flush(&mut self, groups_max: usize) -> Result<()> {
        let query = self.query;
        match (&query.columns, &mut self.scratch) {
            (Some(columns), Some(scratch)) if scratch.len() > 0 || scratch.is_full() => columns
                .flush(scratch, &mut Destination { partial: &mut self.partial, query }, groups_max),
            _ => Ok(()),
        }
    }

    /// Folds the last objects, and pours all into whatever groups there are; too many are an error at the end.
    fn flush_last(&mut self) {
        let query = self.query;
        let mut flushed = self.flush(usize::MAX);
        if let (Some(columns), Some(scratch)) = (&query.columns, &mut self.scratch) {
            let mut into = Destination { partial: &mut self.partial, query };
            flushed = flushed.and(columns.pour(scratch, &mut into, usize::MAX));
        }
        flushed.expect("there is no bound");
    }

    /// Counts selected keys that have no object.
    pub fn add_absent(&mut self, count: u64) {
        self.partial.tally_mut().absent += count;
    }

    /// What the objects so far add up to.
    pub fn partial(&mut self) -> &Partial {
        self.flush_last();
        &self.partial
    }

    /// What all objects added up to.
    pub fn into_partial(mut self) -> Partial {
        self.flush_last();
        self.partial
    }

    /// Reads all that the query needs of an object before anything is changed, so that an object
    /// is in all figures or in none. `None` if the filter is not true. The group is left in
    /// `self.group`.
    fn read<'a>(&mut self, object: &Object<'a>) -> std::result::Result<Option<Reads<'a>>, Mismatch>
    where
        'q: 'a,
    {
        let query = self.query;
        if let Some(test) = &query.test
            && test.ask(object)? != Some(true)
        {
            return Ok(None);
        }
        let mut reads = Reads::new();
        for &field in &query.reads {
            match query.read(field, object.key, object.value) {
                Ok(None) if query.refuses_missing() => {
                    return Err(Mismatch { field, why: Why::Missing });
                }
                Ok(value) => reads.push(value),
                Err(why) => return Err(Mismatch { field, why }),
            }
        }
        for state in &query.states {
            if let Some(at) = state.value
                && let Some(value) = &reads[at]
            {
                let mismatch = |why| Mismatch { field: query.reads[at], why };
                state.spec.accepts(value).map_err(mismatch)?;
            }
        }
        self.group.clear();
        for group in &query.groups {
            let mismatch = |why| Mismatch { field: query.reads[group.read], why };
            let value = reads[group.read].clone();
            let value = value.map(|value| group.shape.of(value)).transpose().map_err(mismatch)?;
            stored::value(value.as_ref(), &mut self.group);
        }
        Ok(Some(reads))
    }

    fn add(&mut self, key: &[u8], reads: &Reads<'_>) -> Result<()> {
        let query = self.query;
        let states = self.partial.states(query, &self.group)?;
        let mut is_missing = false;
        for (state, plan) in states.iter_mut().zip(&query.states) {
            let get = |at: Option<usize>| at.map(|at| reads[at].as_ref());
            // Flattened, none would be "objects are counted" and "the value is missing".
            match (get(plan.value), get(plan.by)) {
                (Some(None), _) | (_, Some(None)) => is_missing = true,
                (value, by) => {
                    let given = Given { key, value: value.flatten(), by: by.flatten() };
                    state.push(plan.spec, given);
                }
            }
        }
        let tally = self.partial.tally_mut();
        tally.matched += 1;
        tally.missing += u64::from(is_missing);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
