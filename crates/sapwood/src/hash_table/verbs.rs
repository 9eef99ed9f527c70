//! The verbs of every table, by the hash engine.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_hashlog::BatchError;

use super::{Hash, HashTable, Shared};
use crate::aggregate::{
    self, Compiled, DisaggregationRun, Disaggregator, Execution, Layout, Partial, Pending, Plan,
};
use crate::formats::Formats;
use crate::table::{Entry, Refusal, StoredVerbs, Verbs, operations};
use crate::{
    Compute, Computed, Error, HashEngineError, HashStats, Result, Table, Upsert, ValueMut,
};

impl Table<Hash> {
    #[cold]
    #[inline(never)]
    fn put_slow(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.change_key(key, || self.named(self.log().put_slow(key, value)))
    }

    #[cold]
    #[inline(never)]
    fn update_slow<R>(
        &self,
        key: &[u8],
        change: impl FnMut(&mut sapwood_hashlog::ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        self.change_key(key, || self.named(self.log().update_slow(key, change)))
    }

    #[cold]
    #[inline(never)]
    fn add_slow(&self, key: &[u8], delta: i64) -> Result<i64> {
        self.change_key(key, || self.named(self.log().add_slow(key, delta)))
    }

    /// Puts the table's name to an engine's error about a batch.
    fn batch<R>(&self, result: std::result::Result<R, BatchError>) -> Result<R> {
        result.map_err(|stopped| Error::HashBatch {
            table: self.shared.name.clone(),
            done: stopped.done,
            cause: stopped.error,
        })
    }
}

impl Verbs for Hash {
    type Shared = Arc<Shared>;
    /// Copies of entries, in the order of the index.
    type Iter<'a> = Box<dyn Iterator<Item = Result<Entry<'a>>> + 'a>;

    fn shared_name(table: &HashTable) -> &Arc<str> {
        &table.shared.name
    }

    fn debug(table: &HashTable, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashTable")
            .field("name", &table.name())
            .field("entries_estimate", &table.len_estimate())
            .field("directory", &table.shared.directory.as_ref().map(|directory| directory.path()))
            .finish_non_exhaustive()
    }

    fn formats(table: &HashTable) -> Option<&Arc<Formats>> {
        table.shared.formats.get()
    }

    fn refused(table: &HashTable, refusal: Refusal) -> Error {
        table.error(match refusal {
            Refusal::NotACounter { len } => HashEngineError::NotACounter { len },
            Refusal::Overflow { value, delta } => HashEngineError::Overflow { value, delta },
        })
    }

    #[inline(always)]
    fn get_with<R>(
        table: &HashTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        table.named(table.log().get_with(key, read))
    }

    #[inline]
    fn get_many<K: AsRef<[u8]>>(
        table: &HashTable,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        table.named(table.log().get_many(keys, read))
    }

    #[inline(always)]
    fn put(table: &HashTable, key: &[u8], value: &[u8]) -> Result<()> {
        match table.try_change_fast(|log| log.try_put_fast(key, value).then_some(())) {
            Some(()) => Ok(()),
            None => table.put_slow(key, value),
        }
    }

    #[inline]
    fn put_if_absent(table: &HashTable, key: &[u8], value: &[u8]) -> Result<bool> {
        table.change_key(key, || table.named(table.log().put_if_absent(key, value)))
    }

    #[inline]
    fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        table: &HashTable,
        entries: &[(K, V)],
    ) -> Result<()> {
        table.change_keys(entries.iter().map(|(key, _)| key.as_ref()), || {
            table.batch(table.log().put_many(entries))
        })
    }

    #[inline(always)]
    fn update<R>(
        table: &HashTable,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let name = &table.shared.name;
        let mut change =
            |value: &mut sapwood_hashlog::ValueMut<'_>| change(&mut ValueMut::of_hash(value, name));
        match table.try_change_fast(|log| log.try_update_fast(key, &mut change)) {
            Some(answer) => Ok(Some(answer)),
            None => table.update_slow(key, change),
        }
    }

    #[inline]
    fn update_many<K: AsRef<[u8]>>(
        table: &HashTable,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Result<usize> {
        let name = &table.shared.name;
        let change = |index, value: &mut sapwood_hashlog::ValueMut<'_>| {
            change(index, &mut ValueMut::of_hash(value, name));
        };
        table.change_keys(keys.iter().map(AsRef::as_ref), || {
            table.batch(table.log().update_many(keys, change))
        })
    }

    #[inline]
    fn put_if_absent_or_update<R>(
        table: &HashTable,
        key: &[u8],
        value: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let name = &table.shared.name;
        let change =
            |value: &mut sapwood_hashlog::ValueMut<'_>| change(&mut ValueMut::of_hash(value, name));
        table.change_key(key, || {
            table.named(table.log().put_if_absent_or_update(key, value, change))
        })
    }

    #[inline]
    fn compare_and_put(table: &HashTable, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        table.change_key(key, || table.named(table.log().compare_and_put(key, expected, new)))
    }

    #[inline(always)]
    fn add(table: &HashTable, key: &[u8], delta: i64) -> Result<i64> {
        match table.try_change_fast(|log| log.try_add_fast(key, delta)) {
            Some(sum) => Ok(sum),
            None => table.add_slow(key, delta),
        }
    }

    #[inline]
    fn add_many<K: AsRef<[u8]>>(table: &HashTable, deltas: &[(K, i64)]) -> Result<()> {
        table.change_keys(deltas.iter().map(|(key, _)| key.as_ref()), || {
            table.batch(table.log().add_many(deltas))
        })
    }

    #[inline]
    fn remove(table: &HashTable, key: &[u8]) -> Result<bool> {
        table.change_key(key, || table.named(table.log().remove(key)))
    }

    #[inline]
    fn remove_with<R>(
        table: &HashTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        table.change_key(key, || table.named(table.log().remove_with(key, read)))
    }

    #[inline]
    fn compute(
        table: &HashTable,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        table.change_key(key, || table.named(table.log().compute(key, decide)))
    }

    fn retain(table: &HashTable, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        table.change_any(|| table.named(table.log().retain(keep)))
    }

    fn clear(table: &HashTable) -> Result<()> {
        table.change_any(|| table.named(table.log().clear()))
    }

    #[inline]
    fn for_each<B>(
        table: &HashTable,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        table.for_each_part(0, 1, visit)
    }

    fn iter(table: &HashTable) -> Self::Iter<'_> {
        let entries = table.log().iter();
        Box::new(entries.map(|entry| table.named(entry).map(Entry::copied)))
    }

    fn len(table: &HashTable) -> Result<usize> {
        table.named(table.log().len())
    }

    fn is_empty(table: &HashTable) -> Result<bool> {
        table.named(table.log().is_empty())
    }
}

impl StoredVerbs for Hash {
    type Stats = HashStats;

    fn len_estimate(table: &HashTable) -> usize {
        table.log().len_estimate()
    }

    fn stats(table: &HashTable) -> HashStats {
        table.log().stats()
    }

    fn check(table: &HashTable) -> Result<()> {
        let name = || Arc::clone(&table.shared.name);
        table.log().check().map_err(|what| Error::HashCorrupt { table: name(), what })
    }

    fn fields(table: &HashTable) -> Option<&Layout> {
        table.shared.fields.as_ref()
    }

    operations!(log);
}
