//! The evaluation of a compiled query: folds, partial states, the answer.

use crate::answer::{self, Answer};
use crate::error::{QueryError, Result};
use crate::fold::Fold;
use crate::fold::partial::{Partial, check_own};
use crate::plan::compiled::Compiled;
use crate::question::query::Mismatches;

impl Compiled {
    /// Begins to fold objects into a partial state.
    pub fn fold(&self) -> Fold<'_> {
        Fold::new(self)
    }

    /// The state of no objects at all.
    pub fn empty(&self) -> Partial {
        Partial::new(self)
    }

    /// The state of the objects of both. Merging is associative and commutative: any tree over the
    /// same parts gives the same state, but for `top` with more values than it counts, whose bounds
    /// hold in any order.
    ///
    /// # Errors
    /// [`QueryError::Foreign`] if one is of another query, [`QueryError::TooManyGroups`],
    /// [`QueryError::Overflow`] of a counter, which no honest state can have.
    pub fn merge(&self, left: Partial, right: Partial) -> Result<Partial> {
        left.merge(self, right)
    }

    /// Reads the bytes of a partial state of this query, [`Partial::encode`].
    ///
    /// # Errors
    /// [`QueryError::Corrupt`] for anything that `encode` did not write, [`QueryError::Foreign`] for the state
    /// of another query.
    pub fn decode(&self, bytes: &[u8]) -> Result<Partial> {
        Partial::decode(self, bytes)
    }

    /// The rows of the answer.
    ///
    /// # Errors
    /// [`QueryError::Mismatched`] if objects did not have what the query reads and it does not skip them,
    /// [`QueryError::Overflow`] if a figure leaves the range of its type, [`QueryError::TooManyGroups`],
    /// [`QueryError::Foreign`].
    pub fn finish(&self, partial: Partial) -> Result<Answer> {
        check_own(self, &partial)?;
        // The last objects of a fold are put into groups when it ends, and it cannot refuse them.
        if partial.groups() > self.groups_max.max(1) {
            return Err(QueryError::TooManyGroups { max: self.groups_max });
        }
        let tally = partial.tally();
        if let (Mismatches::Refuse, Some(first)) = (self.mismatches(), &tally.first_mismatch) {
            return Err(QueryError::Mismatched {
                count: tally.mismatched,
                selected: tally.selected,
                first: Box::new(first.clone()),
            });
        }
        answer::finish(self, partial)
    }
}
