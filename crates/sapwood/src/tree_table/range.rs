//! The iterator over a range of a tree table.

use std::ops::Bound;

use sapwood_ptree::Entries;

use super::TreeTable;
use crate::{KeyRange, Result};

/// The entries in a range of a [`TreeTable`], from either end. [`TreeTable::range`] makes it.
///
/// Each end reads entries in batches of one moment. A key that is there throughout comes once.
pub struct TreeRange<'a> {
    table: &'a TreeTable,
    bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ends: [End; 2],
}

/// One end of a range: what is left to read from there, and the key that came last.
#[derive(Default)]
struct End {
    entries: Option<Entries>,
    last: Option<Vec<u8>>,
    is_done: bool,
}

const FRONT: usize = 0;
const BACK: usize = 1;

impl<'a> TreeRange<'a> {
    pub(super) fn new(table: &'a TreeTable, range: impl KeyRange) -> TreeRange<'a> {
        let (low, high) = range.bounds();
        let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        TreeRange { table, bounds: (owned(low), owned(high)), ends: Default::default() }
    }

    /// The next entry from an end, unless the other one has come to it.
    fn step(&mut self, end: usize) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        if self.ends.iter().any(|end| end.is_done) {
            return None;
        }
        let tree = self.table.tree();
        let bounds = &self.bounds;
        let entries = self.ends[end].entries.get_or_insert_with(|| {
            let bounds =
                (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
            match end {
                FRONT => tree.range(bounds),
                _ => tree.range_descending(bounds),
            }
        });
        let next = entries.next();
        let met = match (&next, &self.ends[1 - end].last) {
            (Some(Ok((key, _))), Some(other)) if end == FRONT => key >= other,
            (Some(Ok((key, _))), Some(other)) => key <= other,
            (next, _) => !matches!(next, Some(Ok(_))),
        };
        self.ends[end].is_done = met;
        match next? {
            Ok((key, value)) => (!met).then(|| {
                self.ends[end].last = Some(key.clone());
                Ok((key, value))
            }),
            Err(cause) => Some(self.table.named(Err(cause))),
        }
    }
}

impl Iterator for TreeRange<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(FRONT)
    }
}

impl DoubleEndedIterator for TreeRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(BACK)
    }
}

impl std::fmt::Debug for TreeRange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeRange").field("table", &self.table.name()).finish_non_exhaustive()
    }
}
