//! A hash table as of one moment.

use std::ops::ControlFlow;

use sapwood_hashlog::{Columns, Runs};

use crate::{HashTable, Result};

/// All entries of a [`HashTable`] as of the moment at which
/// [`HashTable::snapshot`] made it. Threads share it. While it lives, writers copy the records
/// that it holds on to before they change them, so do not keep it for long.
pub struct HashSnapshot<'a> {
    pub(super) snapshot: sapwood_hashlog::Snapshot<'a>,
    pub(super) table: &'a HashTable,
}

impl HashSnapshot<'_> {
    /// Calls `visit(key, value)` for every entry; `visit` ends it with `ControlFlow::Break`.
    ///
    /// # Errors
    /// As [`HashTable::for_each`].
    pub fn scan<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.table.named(self.snapshot.scan(visit))
    }

    /// The walk by columns, where records are of fixed length.
    pub(crate) fn runs(&self, columns: Columns) -> Option<Runs<'_>> {
        self.snapshot.runs(columns)
    }

    /// Part `part` of `parts` disjoint parts of [`scan`](Self::scan), which are the whole: several
    /// threads take one each.
    ///
    /// # Errors
    /// As [`HashTable::for_each`].
    pub fn scan_part<B>(
        &self,
        part: usize,
        parts: usize,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.table.named(self.snapshot.scan_part(part, parts, visit))
    }
}

impl std::fmt::Debug for HashSnapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HashSnapshot").field("table", &self.table.name()).finish_non_exhaustive()
    }
}
