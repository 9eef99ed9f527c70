//! The verbs of every table, by trees: each change is a transaction of its own.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Shared, Tree, TreeTable, TreeTransaction};
use crate::aggregate::{
    self, Compiled, DisaggregationRun, Disaggregator, Execution, Layout, Partial, Pending, Plan,
};
use crate::formats::Formats;
use crate::table::{
    Bounds, Entry, Nearest, Paged, Range, Refusal, SortedVerbs, StoredVerbs, Verbs, operations,
};
use crate::{
    Compute, Computed, Direction, Error, Result, Table, TreeEngineError, TreePoolStats, TreeStats,
    Upsert, ValueMut,
};

impl Table<Tree> {
    /// Runs a change in a transaction of its own.
    fn alone<R>(&self, change: impl FnOnce(&TreeTransaction<'_>) -> Result<R>) -> Result<R> {
        let transaction = TreeTransaction::begin(self.tree().pool())?;
        let done = change(&transaction)?;
        transaction.commit()?.settle().map_err(Error::trees)?;
        if let (Some(durability), Some(log)) = (self.durability, self.shared.home.log()) {
            log.wal().settle_as(durability).map_err(|cause| log.named(cause))?;
        }
        Ok(done)
    }

    /// Removes the entries of a range that `keep` refuses.
    fn retain_in(
        &self,
        bounds: Bounds<'_>,
        mut keep: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.alone(|tx| {
            let mut refused = Vec::new();
            let _all = tx.scan(self, bounds, Direction::Ascending, |key, value| {
                if !keep(key, value) {
                    refused.push(key.to_vec());
                }
                ControlFlow::<()>::Continue(())
            })?;
            for key in &refused {
                tx.remove(self, key)?;
            }
            Ok(refused.len() as u64)
        })
    }
}

impl Verbs for Tree {
    type Shared = Arc<Shared>;
    type Iter<'a> = Range<'a>;

    fn shared_name(table: &TreeTable) -> &Arc<str> {
        &table.shared.name
    }

    fn debug(table: &TreeTable, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeTable")
            .field("name", &table.name())
            .field("kind", &table.kind())
            .field("entries", &table.len_estimate())
            .finish_non_exhaustive()
    }

    fn formats(table: &TreeTable) -> Option<&Arc<Formats>> {
        table.shared.formats.get()
    }

    fn refused(table: &TreeTable, refusal: Refusal) -> Error {
        table.error(match refusal {
            Refusal::NotACounter { len } => TreeEngineError::NotACounter { len },
            Refusal::Overflow { value, delta } => TreeEngineError::Overflow { value, delta },
        })
    }

    fn get_with<R>(
        table: &TreeTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        table.named(table.tree().get_with(key, read))
    }

    fn contains_key(table: &TreeTable, key: &[u8]) -> Result<bool> {
        table.named(table.tree().contains_key(key))
    }

    fn put(table: &TreeTable, key: &[u8], value: &[u8]) -> Result<()> {
        table.alone(|tx| tx.put(table, key, value))
    }

    fn put_if_absent(table: &TreeTable, key: &[u8], value: &[u8]) -> Result<bool> {
        table.alone(|tx| tx.put_if_absent(table, key, value))
    }

    fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        table: &TreeTable,
        entries: &[(K, V)],
    ) -> Result<()> {
        table.alone(|tx| entries.iter().try_for_each(|(key, value)| tx.put(table, key, value)))
    }

    fn update<R>(
        table: &TreeTable,
        key: &[u8],
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        table.alone(|tx| tx.update(table, key, change))
    }

    fn update_many<K: AsRef<[u8]>>(
        table: &TreeTable,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        table.alone(|tx| {
            keys.iter().enumerate().try_fold(0, |found, (index, key)| {
                let changed = tx.update(table, key, |value| change(index, value))?;
                Ok(found + usize::from(changed.is_some()))
            })
        })
    }

    fn put_if_absent_or_update<R>(
        table: &TreeTable,
        key: &[u8],
        value: &[u8],
        change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        table.alone(|tx| tx.put_if_absent_or_update(table, key, value, change))
    }

    fn compare_and_put(table: &TreeTable, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        table.alone(|tx| tx.compare_and_put(table, key, expected, new))
    }

    fn add(table: &TreeTable, key: &[u8], delta: i64) -> Result<i64> {
        table.alone(|tx| tx.add(table, key, delta))
    }

    fn add_many<K: AsRef<[u8]>>(table: &TreeTable, deltas: &[(K, i64)]) -> Result<()> {
        table.alone(|tx| {
            deltas.iter().try_for_each(|(key, delta)| tx.add(table, key, *delta).map(drop))
        })
    }

    fn remove(table: &TreeTable, key: &[u8]) -> Result<bool> {
        table.alone(|tx| tx.remove(table, key)).map(|removed| removed.is_some())
    }

    fn remove_with<R>(
        table: &TreeTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        Ok(table.alone(|tx| tx.remove(table, key))?.map(|value| read(&value)))
    }

    fn compute(
        table: &TreeTable,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        table.alone(|tx| tx.compute(table, key, decide))
    }

    fn retain(table: &TreeTable, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        table.retain_in(Nearest::First.range().0, keep)
    }

    fn clear(table: &TreeTable) -> Result<()> {
        table.alone(|tx| tx.clear(table))
    }

    fn for_each<B>(
        table: &TreeTable,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        Self::scan(table, Nearest::First.range().0, Direction::Ascending, visit)
    }

    fn iter(table: &TreeTable) -> Range<'_> {
        table.range(..)
    }

    fn len(table: &TreeTable) -> Result<usize> {
        table.named(table.tree().len()).map(|len| len as usize)
    }
}

impl SortedVerbs for Tree {
    fn scan<B>(
        table: &TreeTable,
        bounds: Bounds<'_>,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        table.named(table.tree().scan(bounds, direction, visit))
    }

    fn range<'a>(table: &'a TreeTable, bounds: Bounds<'_>) -> Range<'a> {
        Range::copied(&table.shared.name, Paged::new(table, bounds))
    }

    fn nearest<'a>(table: &'a TreeTable, nearest: Nearest<'_>) -> Result<Option<Entry<'a>>> {
        let entry = match nearest.range() {
            (bounds, Direction::Ascending) => table.tree().first(bounds),
            (bounds, Direction::Descending) => table.tree().last(bounds),
        };
        Ok(table.named(entry)?.map(Entry::copied))
    }

    fn count(table: &TreeTable, bounds: Bounds<'_>) -> Result<u64> {
        table.named(table.tree().count(bounds))
    }

    fn nth(table: &TreeTable, rank: u64) -> Result<Option<Entry<'_>>> {
        Ok(table.named(table.tree().nth(rank))?.map(Entry::copied))
    }

    fn pop(table: &TreeTable, end: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        table.alone(|tx| {
            let found = tx.scan(table, .., end, |key, _| ControlFlow::Break(key.to_vec()))?;
            let ControlFlow::Break(key) = found else { return Ok(None) };
            let value = tx.remove(table, &key)?;
            Ok(value.map(|value| (key, value)))
        })
    }

    fn remove_range(table: &TreeTable, bounds: Bounds<'_>) -> Result<u64> {
        table.retain_in(bounds, |_, _| false)
    }
}

impl StoredVerbs for Tree {
    type Stats = TreeStats;

    fn len_estimate(table: &TreeTable) -> usize {
        table.len().unwrap_or_default()
    }

    fn stats(table: &TreeTable) -> TreeStats {
        let pool = table.tree().pool();
        TreeStats {
            entries: table.len_estimate() as u64,
            kind: table.kind(),
            layout: table.layout(),
            trees: TreePoolStats { heap_bytes: pool.heap_bytes() },
        }
    }

    fn check(table: &TreeTable) -> Result<()> {
        let report = table.named(table.tree().pool().check())?;
        match report.problems.is_empty() {
            true => Ok(()),
            false => Err(Error::TreesCorrupt { problems: report.problems.into() }),
        }
    }

    fn fields(table: &TreeTable) -> Option<&Layout> {
        table.shared.fields.as_ref()
    }

    operations!(tree);
}
