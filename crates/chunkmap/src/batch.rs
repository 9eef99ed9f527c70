//! Many keys at a time: their cache misses overlap.

use sapwood_engine::Upsert;

use crate::chunk::RECORD_LINES;
use crate::error::{BatchError, Result};
use crate::map::{ChunkMap, check_key};
use crate::tree::Found;
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
        self.in_groups(keys, AsRef::as_ref, |index, key, _, _| {
            check_key(key)?;
            let lock = self.read_lock_unpinned(key)?;
            read(index, lock.as_ref().map(|lock| lock.value()));
            Ok(())
        })
        .map_err(|stopped| stopped.error)
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
        self.in_runs(entries, self.is_logged(), |_, key, value, _| {
            replaced += usize::from(self.put(key, value)?);
            Ok(())
        })?;
        Ok(replaced)
    }

    /// Puts many pairs of which the [journal](Self::with_journal) is told nothing, as it has them from elsewhere. Keys
    /// that the map has stay as they are; no other thread may change one of the keys meanwhile.
    ///
    /// # Errors
    /// As of [`put`](Self::put), at the first pair that is refused; [`BatchError::done`] says how many are in.
    pub fn load_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
    ) -> std::result::Result<(), BatchError> {
        self.in_runs(entries, false, |_, key, value, _| self.put_new(key, value, false).map(drop))
            .map(drop)
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
        self.in_groups(keys, AsRef::as_ref, |index, key, _, _| {
            let changed = self.update(key, |value| change(index, value))?;
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
        let in_runs = self.in_runs(entries, self.is_logged(), |index, key, value, found| {
            let change = |known: &mut ValueMut<'_>| change(index, known);
            let upsert = self.put_if_absent_or_update_at(Some(found), key, value, change)?;
            inserted += usize::from(upsert == Upsert::Inserted);
            Ok(())
        })?;
        Ok(inserted + in_runs)
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
            |_, key, (_, delta), _| self.add(key, *delta).map(drop),
        )
    }

    /// Puts in the runs among pairs, unless a journal is told, and calls `each` for all others, in order. Returns how
    /// many were in runs.
    fn in_runs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
        is_told: bool,
        mut each: impl FnMut(usize, &[u8], &[u8], Found) -> Result<()>,
    ) -> std::result::Result<usize, BatchError> {
        let (mut done, mut in_runs) = (0, 0);
        while done < entries.len() {
            // A journal hears of each entry by itself, while no other thread sees it.
            let run = if is_told { 0 } else { self.insert_run(&entries[done..]) };
            if run > 0 {
                (done, in_runs) = (done + run, in_runs + run);
                continue;
            }
            // Where there is none, there is none at the next keys, mostly.
            let end = entries.len().min(done + self.run_min().max(GROUP));
            self.in_groups(
                &entries[done..end],
                |entry| entry.0.as_ref(),
                |at, key, (_, value), found| each(done + at, key, value.as_ref(), found),
            )
            .map_err(|stopped| BatchError { done: done + stopped.done, error: stopped.error })?;
            done = end;
        }
        if in_runs > 0 {
            self.compact_if_due();
        }
        Ok(in_runs)
    }

    /// Calls `each` with the index of every entry, its key, the entry, and the chunk that was found for
    /// the key, in order, while the searches of the entries behind it are under way.
    #[inline]
    fn in_groups<E>(
        &self,
        entries: &[E],
        key_of: impl Fn(&E) -> &[u8],
        mut each: impl FnMut(usize, &[u8], &E, Found) -> Result<()>,
    ) -> std::result::Result<(), BatchError> {
        for (group, entries) in entries.chunks(GROUP).enumerate() {
            let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
            for (key, entry) in keys.iter_mut().zip(entries) {
                *key = key_of(entry);
            }
            let found = self.prefetch_keys(&keys[..entries.len()]);
            for (at, entry) in entries.iter().enumerate() {
                let done = group * GROUP + at;
                let chunk = found[at].expect("each key has a chunk");
                each(done, keys[at], entry, chunk).map_err(|error| BatchError { done, error })?;
            }
        }
        Ok(())
    }

    /// Goes down to the chunk of each key, then to its group, then to its likely
    /// record: each step for all keys before the next one for any, asking for what
    /// comes next instead of waiting for it. Returns the chunks.
    fn prefetch_keys(&self, keys: &[&[u8]]) -> [Option<Found>; GROUP] {
        let guard = self.tree.reclaimer.pin();
        let mut found = [None; GROUP];
        for (found, key) in found.iter_mut().zip(keys) {
            *found = Some(self.tree.find_leaf(&guard, key));
        }
        let chunks = found.map(|found| Some(self.tree.found_leaf(&guard, found?)?.chunk));
        for (chunk, key) in chunks.iter().zip(keys) {
            if let Some(chunk) = chunk {
                chunk.prefetch_group(chunk.abbreviate(key));
            }
        }
        for (chunk, key) in chunks.iter().zip(keys) {
            if let Some(slice) =
                chunk.and_then(|chunk| chunk.likely_slice(key, chunk.abbreviate(key)))
            {
                self.tree.arena.prefetch(slice, RECORD_LINES);
            }
        }
        found
    }
}
