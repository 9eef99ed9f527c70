//! A walk in steps between which nothing is held.
//!
//! A step walks whole buckets and answers a cursor: the number that the next bucket has in an index
//! in which it is whole, so the place of its first key with the bits reversed. Steps cut the places
//! between them (`places`), so each key belongs to one step, whatever becomes of the index. A
//! cursor that was made up may lie in the midst of a bucket, and so may one of an index that was
//! larger: the step begins with the rest of that bucket.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::index::LOAD;
use crate::ops::store::Store;
use crate::record::Form;
use crate::walks::places::Places;

/// Most buckets that are walked in one go: the index does not grow meanwhile.
pub(crate) const BUCKETS_MAX: u64 = 4_096;

impl Store {
    /// Visits the entries of buckets from a cursor on, until there were `entries_min`, and of one
    /// bucket at least; answers the next cursor, 0 at the end.
    pub(crate) fn scan_from<F: Form>(
        &self,
        cursor: u64,
        entries_min: usize,
        visit: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let entries_min = entries_min as u64;
        let mut first = Places::reversed(cursor);
        let (mut visited, mut walked) = (0, 0);
        let mut buckets = entries_min.div_ceil(LOAD);
        loop {
            let run = Places::of_buckets(first, buckets.min(BUCKETS_MAX), self.index.count());
            let _all = self.walk_places::<F, ()>(run, &mut |key, value| {
                visited += 1;
                visit(key, value);
                ControlFlow::Continue(())
            })?;
            let Some(next) = run.next() else { return Ok(0) };
            if visited >= entries_min {
                return Ok(Places::reversed(next));
            }
            first = next;
            walked += buckets;
            // As many as hold the rest if they are like those before; never more than these, so
            // that a step stays short if they are not.
            let left = entries_min - visited;
            buckets = left.saturating_mul(walked).div_ceil(visited.max(1)).min(walked);
        }
    }

    /// Visits the entries of all buckets, one bucket after the other, and tells the error of each that cannot be
    /// walked to its end.
    pub(crate) fn walk_readable<F: Form>(
        &self,
        visit: &mut impl FnMut(&[u8], &[u8]),
        problem: &mut impl FnMut(Error),
    ) {
        let mut next = Some(0);
        while let Some(first) = next {
            let run = Places::of_buckets(first, 1, self.index.count());
            let walked = self.walk_places::<F, ()>(run, &mut |key, value| {
                visit(key, value);
                ControlFlow::Continue(())
            });
            if let Err(error) = walked {
                problem(error);
            }
            next = run.next();
        }
    }
}
