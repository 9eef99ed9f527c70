//! Many keys at a time: their cache misses overlap.

use sapwood_engine::Upsert;

use crate::error::{BatchError, Result};
use crate::map::{ChunkMap, check_key};
use crate::node::chunk::RECORD_LINES;
use crate::tree::Found;
use crate::write::value::ValueMut;

/// Keys by which the search for a chunk is ahead of the key in hand ...
const CHUNK_AHEAD: usize = 12;
/// ... that in the chunk ...
const GROUP_AHEAD: usize = 8;
/// ... and the request for the record.
const RECORD_AHEAD: usize = 4;
/// Keys that are under way at once, and more: a power of two.
const RING: usize = 16;
/// Keys behind which a run is looked for again, at least.
const NO_RUN: usize = 16;
const _: () = assert!(RING > CHUNK_AHEAD && RING.is_power_of_two());

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
        self.in_pipeline(keys, AsRef::as_ref, |index, key, _, found| {
            check_key(key)?;
            let lock = self.read_lock_found(found, key)?;
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
        self.in_runs(entries, self.is_logged(), |_, key, value, found| {
            replaced += usize::from(self.put_at(Some(found), key, value)?);
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
        self.in_runs(entries, false, |_, key, value, found| {
            self.put_new(Some(found), key, value, false).map(drop)
        })
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
        let mut present = 0;
        self.in_pipeline(keys, AsRef::as_ref, |index, key, _, found| {
            let changed = self.update_at(Some(found), key, |value| change(index, value))?;
            present += usize::from(changed.is_some());
            Ok(())
        })?;
        Ok(present)
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
        self.in_pipeline(
            deltas,
            |entry| entry.0.as_ref(),
            |_, key, (_, delta), found| self.add_at(Some(found), key, *delta).map(drop),
        )
    }

    /// Puts in the runs among pairs, unless a journal is told, and calls `each` for all others, in order. Returns how
    /// many were in runs.
    fn in_runs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
        is_logged: bool,
        mut each: impl FnMut(usize, &[u8], &[u8], Found) -> Result<()>,
    ) -> std::result::Result<usize, BatchError> {
        let (mut done, mut in_runs) = (0, 0);
        while done < entries.len() {
            // A journal hears of each entry by itself, while no other thread sees it.
            let run = if is_logged { 0 } else { self.insert_run(&entries[done..]) };
            if run > 0 {
                (done, in_runs) = (done + run, in_runs + run);
                continue;
            }
            // Where there is none, there is none at the next keys, mostly.
            let most = if is_logged { entries.len() } else { self.run_min().max(NO_RUN) };
            let end = entries.len().min(done + most);
            self.in_pipeline(
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

    /// Calls `each` with the index of every entry, its key, the entry, and the chunk that was found for the key, in
    /// order. Meanwhile the keys behind it are looked for, each a step further than the one behind it: down to its
    /// chunk, then to its group, then to its likely record. Each step asks for what the next one needs instead of
    /// waiting for it.
    #[inline]
    fn in_pipeline<E>(
        &self,
        entries: &[E],
        key_of: impl Fn(&E) -> &[u8],
        mut each: impl FnMut(usize, &[u8], &E, Found) -> Result<()>,
    ) -> std::result::Result<(), BatchError> {
        // Of few keys each is less ahead.
        let ahead = |of_many: usize| of_many * entries.len().min(CHUNK_AHEAD) / CHUNK_AHEAD;
        let (chunk_ahead, group_ahead, record_ahead) =
            (ahead(CHUNK_AHEAD), ahead(GROUP_AHEAD), ahead(RECORD_AHEAD));
        let mut ring: [Option<(Found, &[u8])>; RING] = [None; RING];
        for step in 0..entries.len() + chunk_ahead {
            let key = entries.get(step).map(&key_of);
            {
                let guard = self.tree.reclaimer.pin();
                if let Some(key) = key {
                    ring[step % RING] = Some((self.tree.find_leaf(&guard, key), key));
                }
                let under_way = |ahead: usize| {
                    let at = step.checked_sub(chunk_ahead - ahead)?;
                    let (found, key) = ring[at % RING].filter(|_| at < entries.len())?;
                    Some((self.tree.found_leaf(&guard, found)?.chunk, key))
                };
                if let Some((chunk, key)) = under_way(group_ahead) {
                    chunk.prefetch_group(chunk.abbreviate(key));
                }
                if let Some((chunk, key)) = under_way(record_ahead)
                    && let Some(slice) = chunk.likely_slice(key, chunk.abbreviate(key))
                {
                    self.tree.arena.prefetch(slice, RECORD_LINES);
                }
            }
            if let Some(at) = step.checked_sub(chunk_ahead) {
                let (found, key) = ring[at % RING].expect("it was looked for before");
                each(at, key, &entries[at], found)
                    .map_err(|error| BatchError { done: at, error })?;
            }
        }
        Ok(())
    }
}
