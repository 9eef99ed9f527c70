//! Many keys at a time: their cache misses overlap.

use sapwood_engine::Upsert;
use sapwood_mem::SliceRef;

use crate::chunk::RECORD_LINES;
use crate::error::{BatchError, Result};
use crate::map::{ChunkMap, check_key};
use crate::tree::Node;
use crate::value::ValueMut;

/// Keys whose searches run side by side: about as many as a core keeps loads in
/// flight for.
const GROUP: usize = 16;

impl ChunkMap {
    /// Reads many values in place: calls `read(i, value)` once for each `keys[i]`,
    /// in order, with `None` where the key is absent. Each read is linearizable,
    /// the batch as a whole is not atomic.
    ///
    /// # Errors
    /// As of [`get_with`](Self::get_with), at the first key that is refused; `read`
    /// was called for those before it.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            self.prefetch_keys(keys, AsRef::as_ref);
            for (at, key) in keys.iter().enumerate() {
                check_key(key.as_ref())?;
                let lock = self.read_lock_unpinned(key.as_ref())?;
                read(group * GROUP + at, lock.as_ref().map(|lock| lock.value()));
            }
        }
        Ok(())
    }

    /// Puts many pairs, in order; returns how many replaced a value. Each put is
    /// linearizable, the batch as a whole is not atomic.
    ///
    /// # Errors
    /// As of [`put`](Self::put), at the first pair that is refused;
    /// [`BatchError::done`] says how many are in.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
    ) -> std::result::Result<usize, BatchError> {
        let mut replaced = 0;
        self.in_groups(
            entries,
            |entry| entry.0.as_ref(),
            |_, (key, value)| {
                replaced += usize::from(self.put(key.as_ref(), value.as_ref())?);
                Ok(())
            },
        )?;
        Ok(replaced)
    }

    /// Changes the values of many keys, in order, each as by [`update`](Self::update);
    /// `change` is given the key's index. Returns how many keys were there.
    ///
    /// # Errors
    /// As of [`update`](Self::update), at the first key that is refused;
    /// [`BatchError::done`] says how many are done.
    pub fn update_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> std::result::Result<usize, BatchError> {
        let mut found = 0;
        self.in_groups(keys, AsRef::as_ref, |index, key| {
            let changed = self.update(key.as_ref(), |value| change(index, value))?;
            found += usize::from(changed.is_some());
            Ok(())
        })?;
        Ok(found)
    }

    /// Puts the value of each entry if its key is absent, else changes the value that is there, in
    /// order, each as by [`put_if_absent_or_update`](Self::put_if_absent_or_update); `change` is given
    /// the entry's index. Returns how many keys were absent.
    ///
    /// ```
    /// use sapwood_chunkmap::ChunkMap;
    ///
    /// let words = ChunkMap::new();
    /// let seen = [("oak", [1]), ("elm", [1]), ("oak", [1])];
    /// let new = words.put_if_absent_or_update_many(&seen, |_, count| count[0] += 1)?;
    /// assert_eq!((new, words.get(b"oak")?), (2, Some(vec![2])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of [`put`](Self::put), at the first entry that is refused; [`BatchError::done`] says how many
    /// are done.
    pub fn put_if_absent_or_update_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
        mut change: impl FnMut(usize, &mut ValueMut<'_>),
    ) -> std::result::Result<usize, BatchError> {
        let mut inserted = 0;
        self.in_groups(
            entries,
            |entry| entry.0.as_ref(),
            |index, (key, value)| {
                let change = |known: &mut ValueMut<'_>| change(index, known);
                let upsert = self.put_if_absent_or_update(key.as_ref(), value.as_ref(), change)?;
                inserted += usize::from(upsert == Upsert::Inserted);
                Ok(())
            },
        )?;
        Ok(inserted)
    }

    /// Adds to many counters, in order, each as by [`add`](Self::add).
    ///
    /// # Errors
    /// As of [`add`](Self::add), at the first key that is refused;
    /// [`BatchError::done`] says how many are done.
    pub fn add_many<K: AsRef<[u8]>>(
        &self,
        deltas: &[(K, i64)],
    ) -> std::result::Result<(), BatchError> {
        self.in_groups(
            deltas,
            |entry| entry.0.as_ref(),
            |_, (key, delta)| self.add(key.as_ref(), *delta).map(drop),
        )
    }

    /// Calls `each` with the index of every entry and the entry, in order, while the
    /// searches of the entries behind it are under way.
    #[inline]
    fn in_groups<E>(
        &self,
        entries: &[E],
        key_of: impl Fn(&E) -> &[u8],
        mut each: impl FnMut(usize, &E) -> Result<()>,
    ) -> std::result::Result<(), BatchError> {
        for (group, entries) in entries.chunks(GROUP).enumerate() {
            self.prefetch_keys(entries, &key_of);
            for (at, entry) in entries.iter().enumerate() {
                let done = group * GROUP + at;
                each(done, entry).map_err(|error| BatchError { done, error })?;
            }
        }
        Ok(())
    }

    /// Goes down to the chunk of each key, then to its group, then to its likely
    /// record: each step for all keys before the next one for any, asking for what
    /// comes next instead of waiting for it.
    fn prefetch_keys<'k, E>(&self, entries: &'k [E], key_of: impl Fn(&'k E) -> &'k [u8]) {
        let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
        for (key, entry) in keys.iter_mut().zip(entries) {
            *key = key_of(entry);
        }
        let keys = &keys[..entries.len()];
        // Only now: what a key is, is up to the caller's code.
        let guard = self.tree.reclaimer.pin();
        let mut slices = [None; GROUP];
        for (slice, key) in slices.iter_mut().zip(keys) {
            *slice = Some(self.tree.leaf_slice(&guard, key));
        }
        let chunk_of = |slice: Option<SliceRef>| match self.tree.node(&guard, slice?) {
            Node::Chunk(chunk) => Some(chunk),
            Node::Inner(_) => None,
        };
        let chunks = slices.map(chunk_of);
        for (chunk, key) in chunks.iter().zip(keys) {
            if let Some(chunk) = chunk {
                chunk.prefetch_group(key);
            }
        }
        for (chunk, key) in chunks.iter().zip(keys) {
            if let Some(slice) = chunk.and_then(|chunk| chunk.likely_slice(key)) {
                self.tree.arena.prefetch(slice, RECORD_LINES);
            }
        }
    }
}
