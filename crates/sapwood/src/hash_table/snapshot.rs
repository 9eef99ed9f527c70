//! A hash table as of one moment.

use crate::table::Visit;
use crate::{CheckpointInfo, Cut, HashTable, Result};

/// All entries of a [`HashTable`] as of the moment at which
/// [`snapshot`](crate::Table::snapshot) made it. Threads share it. While it lives, writers copy the records
/// that it holds on to before they change them, so do not keep it for long.
pub struct HashSnapshot<'a> {
    pub(super) snapshot: sapwood_hashlog::Snapshot<'a>,
    pub(super) table: &'a HashTable,
    /// The log's position before it.
    pub(super) before: u64,
}

impl HashSnapshot<'_> {
    /// Calls `visit(key, value)` for every entry; `visit` ends it with `ControlFlow::Break`.
    ///
    /// # Errors
    /// The errors of [`Table::for_each`](crate::Table::for_each).
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
    pub fn scan<V: Visit>(&self, visit: impl FnMut(&[u8], &[u8]) -> V) -> Result<V> {
        self.scan_part(0, 1, visit)
    }

    /// Part `part` of `parts` disjoint parts of [`scan`](Self::scan), which are the whole: several
    /// threads take one each.
    ///
    /// # Errors
    /// The errors of [`Table::for_each`](crate::Table::for_each).
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let snapshot = table.snapshot()?;
    /// let mut entries = 0;
    /// for part in 0..2 {
    ///     snapshot.scan_part(part, 2, |_key, _value| entries += 1)?;
    /// }
    /// assert_eq!(entries, 3);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan_part<V: Visit>(
        &self,
        part: usize,
        parts: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> V,
    ) -> Result<V> {
        let visit = |key: &[u8], value: &[u8]| visit(key, value).into_flow();
        Ok(V::of_flow(self.table.named(self.snapshot.scan_part(part, parts, visit))?))
    }

    /// Makes the table's state at this moment durable, and returns when it is; writers go on
    /// meanwhile. Checkpoints of several tables are of one moment where no writer ran while their
    /// snapshots were taken.
    ///
    /// # Errors
    /// The errors of [`Table::checkpoint`](crate::Table::checkpoint); [`Error::HashEngine`](crate::Error::HashEngine) with `Argument`
    /// where the table has a checkpoint of a later moment.
    ///
    /// ```
    /// # use sapwood::{Cut, Db, DbOptions, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// // Without a log, what is not in a checkpoint goes.
    /// let options = || DbOptions::default().without_log();
    /// let db = Db::open_with(directory.path(), options())?;
    /// let orders = db.create_hash_table("orders", HashTableOptions::default())?;
    /// let stock = db.create_hash_table("stock", HashTableOptions::default())?;
    /// orders.put(b"1", b"oak")?;
    /// // No writer runs here.
    /// let moment = [orders.snapshot()?, stock.snapshot()?];
    /// // Here they do.
    /// orders.put(b"2", b"elm")?;
    /// for snapshot in moment {
    ///     snapshot.checkpoint(Cut::Incremental)?;
    /// }
    /// drop((orders, stock, db));
    /// assert_eq!(Db::open_with(directory.path(), options())?.hash_table("orders")?.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn checkpoint(self, cut: Cut) -> Result<CheckpointInfo> {
        let info = self.table.named(self.snapshot.checkpoint(cut))?;
        self.table.shared.kept.note_saved(self.before)?;
        Ok(info)
    }
}

impl std::fmt::Debug for HashSnapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HashSnapshot").field("table", &self.table.name()).finish_non_exhaustive()
    }
}
