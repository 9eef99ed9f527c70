//! A hash table as of one moment.

use std::ops::ControlFlow;

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
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"before")?;
    /// let snapshot = table.snapshot()?;
    /// table.put(b"k", b"after")?;
    /// let found = snapshot.scan(|_key, value| ControlFlow::Break(value.to_vec()))?;
    /// assert_eq!(found, ControlFlow::Break(b"before".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.table.named(self.snapshot.scan(visit))
    }

    /// Part `part` of `parts` disjoint parts of [`scan`](Self::scan), which are the whole: several
    /// threads take one each.
    ///
    /// # Errors
    /// As [`HashTable::for_each`].
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let snapshot = table.snapshot()?;
    /// let mut entries = 0;
    /// for part in 0..2 {
    ///     let _ = snapshot.scan_part(part, 2, |_key, _value| {
    ///         entries += 1;
    ///         ControlFlow::<()>::Continue(())
    ///     })?;
    /// }
    /// assert_eq!(entries, 3);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
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
