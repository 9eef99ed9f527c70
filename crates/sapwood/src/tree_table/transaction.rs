//! A transaction of the trees, with the names of tables.

use std::ops::ControlFlow;

use sapwood_ptree::{Joint, Pool, Unsettled};

use super::TreeTable;
use crate::{Compute, Computed, Direction, Error, KeyRange, Result, Upsert, ValueMut};

/// The part of a [`Transaction`](crate::Transaction) in tree tables, and each operation of a tree table by itself.
#[derive(Debug)]
pub(crate) struct TreeTransaction<'db> {
    tx: sapwood_ptree::Transaction<'db>,
}

impl<'db> TreeTransaction<'db> {
    pub(crate) fn begin(pool: &'db Pool) -> Result<TreeTransaction<'db>> {
        Ok(TreeTransaction { tx: pool.begin().map_err(Error::trees)? })
    }

    pub(crate) fn begin_on(pool: &'db Pool, tables: &[&TreeTable]) -> Result<TreeTransaction<'db>> {
        let trees: Vec<_> = tables.iter().map(|table| table.tree()).collect();
        Ok(TreeTransaction { tx: pool.begin_on(&trees).map_err(Error::trees)? })
    }

    /// Readers see the changes once this returns.
    pub(crate) fn commit(self) -> Result<Unsettled<'db>> {
        self.tx.commit_unsettled().map_err(Error::trees)
    }

    /// The same, and what this thread has changed in other tables of the log is one record with it.
    pub(crate) fn commit_joined(self, joint: Joint<'db>) -> Result<Unsettled<'db>> {
        joint.commit(self.tx).map_err(Error::trees)
    }

    pub(crate) fn get(&self, table: &TreeTable, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        table.named(self.tx.get(table.tree(), key))
    }

    pub(crate) fn contains_key(&self, table: &TreeTable, key: impl AsRef<[u8]>) -> Result<bool> {
        table.named(self.tx.contains_key(table.tree(), key))
    }

    pub(crate) fn scan<B>(
        &self,
        table: &TreeTable,
        range: impl KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        table.named(self.tx.scan(table.tree(), range, direction, visit))
    }

    pub(crate) fn len(&self, table: &TreeTable) -> Result<usize> {
        table.named(self.tx.len(table.tree())).map(|len| len as usize)
    }

    pub(crate) fn put(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        table.named(self.tx.put(table.tree(), key, value).map(drop))
    }

    pub(crate) fn put_if_absent(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        table.named(self.tx.put_if_absent(table.tree(), key, value))
    }

    pub(crate) fn update<R>(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let name = &table.shared.name;
        let change =
            |value: &mut sapwood_ptree::ValueMut<'_>| change(&mut ValueMut::of_tree(value, name));
        table.named(self.tx.update(table.tree(), key, change))
    }

    pub(crate) fn put_if_absent_or_update<R>(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        change: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let name = &table.shared.name;
        let change =
            |value: &mut sapwood_ptree::ValueMut<'_>| change(&mut ValueMut::of_tree(value, name));
        table.named(self.tx.put_if_absent_or_update(table.tree(), key, value, change))
    }

    pub(crate) fn compare_and_put(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let (expected, new) = (expected.as_ref(), new.as_ref());
        let decide = |value: Option<&[u8]>| match value == Some(expected) {
            true => Compute::Replace(new.to_vec()),
            false => Compute::Keep,
        };
        Ok(self.compute(table, key, decide)? == Computed::Replaced)
    }

    pub(crate) fn add(&self, table: &TreeTable, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        table.named(self.tx.add(table.tree(), key, delta))
    }

    pub(crate) fn compute(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
        decide: impl FnOnce(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        table.named(self.tx.compute(table.tree(), key, decide))
    }

    pub(crate) fn remove(
        &self,
        table: &TreeTable,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        table.named(self.tx.remove(table.tree(), key))
    }

    pub(crate) fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        table: &TreeTable,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        table.named(self.tx.load(table.tree(), entries))
    }

    pub(crate) fn clear(&self, table: &TreeTable) -> Result<()> {
        table.named(self.tx.clear(table.tree()))
    }
}
