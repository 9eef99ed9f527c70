//! The heads of long values, by key, for puts that do not look at what they overwrite.
//!
//! A short value is put without a look at the one before. That may have been the head of parts,
//! which nothing names from then on. So each head of a plain key is listed here, and the thread that
//! finds one listed which the key does not have any more frees its parts. Keys that are hashed are
//! not listed: no put of theirs goes without a look.
//!
//! | a thread | does, in this order |
//! |---|---|
//! | puts a head | the put; [`Heads::add`]; a fence; a look at the key |
//! | puts a short value | the put; a fence; a look at [`Heads::suspects`] |
//!
//! One of two such threads sees what the other did. If the fence of the one that puts the head comes
//! first, the other finds the head listed; else the look at the key finds the short value. Either
//! takes the head out, under the lock of the key, so that its parts are freed once.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::fast::FixedState;

use crate::store::format::Parts;

/// Slots that count the heads of keys by their hash: 64 KiB, from the first long value on. Of other
/// keys one in 16 shares a slot when there are a thousand heads, which are half a GiB of values.
const SLOTS: usize = 1 << 14;

/// Locks of keys, by their hash: values that have grown may be many, and shorter than half a MiB.
const SHARDS: usize = 64;

type ByKey = HashMap<Box<[u8]>, Vec<Parts>, FixedState>;

/// Heads that are listed.
#[derive(Debug)]
pub(crate) struct Heads {
    by_key: [Mutex<ByKey>; SHARDS],
    /// The number of them. Written under the lock of a key.
    count: AtomicUsize,
    /// The number of them in each slot. Written under the lock of a key.
    slots: OnceLock<Box<[AtomicU32]>>,
}

impl Default for Heads {
    fn default() -> Heads {
        let by_key = std::array::from_fn(|_| Mutex::default());
        Heads { by_key, count: AtomicUsize::new(0), slots: OnceLock::new() }
    }
}

impl Heads {
    /// Lists the head that was put under a key. The caller looks at the key then, and
    /// [takes](Self::take_stale) out what it has not.
    pub(crate) fn add(&self, key: &[u8], head: Parts) {
        let mut by_key = self.lock(key);
        match by_key.get_mut(key) {
            Some(heads) => heads.push(head),
            None => drop(by_key.insert(key.into(), vec![head])),
        }
        let slots = self.slots.get_or_init(|| (0..SLOTS).map(|_| AtomicU32::new(0)).collect());
        // Relaxed: the fence orders them.
        slots[slot(key)].fetch_add(1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The keys among `keys` of which heads may be listed that puts before this call overwrote. The
    /// other keys have none.
    #[inline]
    pub(crate) fn suspects<'a, 'k: 'a>(
        &'a self,
        keys: impl Iterator<Item = &'k [u8]> + 'a,
    ) -> impl Iterator<Item = &'k [u8]> + 'a {
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders them. Most databases have no long value.
        let slots = self.slots.get().filter(|_| self.count.load(Ordering::Relaxed) > 0);
        let is_suspect = move |key: &&[u8]| {
            slots.is_some_and(|slots| slots[slot(key)].load(Ordering::Relaxed) > 0)
        };
        keys.filter(is_suspect)
    }

    /// Takes a head out that the caller has removed from its key or replaced; false if it is not
    /// listed. Then the thread that put it is about to list it, and finds it gone.
    pub(crate) fn take(&self, key: &[u8], id: u64) -> bool {
        !self.take_out(key, &mut self.lock(key), |head| head.id == id).is_empty()
    }

    /// Takes the heads of a key out but the one whose number is `current`: the one that the key has
    /// now, or `None` if it has none.
    ///
    /// # Errors
    /// The error of `current`; nothing was taken out.
    pub(crate) fn take_stale<E>(
        &self,
        key: &[u8],
        current: impl FnOnce() -> Result<Option<u64>, E>,
    ) -> Result<Vec<Parts>, E> {
        let mut by_key = self.lock(key);
        if !by_key.contains_key(key) {
            return Ok(Vec::new());
        }
        // Under the lock: a head that is listed was put before, so it is current now or never again.
        let current = current()?;
        Ok(self.take_out(key, &mut by_key, |head| Some(head.id) != current))
    }

    fn take_out(
        &self,
        key: &[u8],
        by_key: &mut ByKey,
        mut is_meant: impl FnMut(&Parts) -> bool,
    ) -> Vec<Parts> {
        let Some(heads) = by_key.get_mut(key) else { return Vec::new() };
        let taken: Vec<Parts> = heads.extract_if(.., |head| is_meant(head)).collect();
        if heads.is_empty() {
            by_key.remove(key);
            if by_key.is_empty() {
                by_key.shrink_to_fit();
            }
        }
        if let Some(slots) = self.slots.get() {
            // Relaxed: a put that reads the numbers before takes the lock, and finds none.
            slots[slot(key)].fetch_sub(taken.len() as u32, Ordering::Relaxed);
            self.count.fetch_sub(taken.len(), Ordering::Relaxed);
        }
        taken
    }

    fn lock(&self, key: &[u8]) -> MutexGuard<'_, ByKey> {
        self.by_key[slot(key) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slot(key: &[u8]) -> usize {
    FixedState::default().hash_one(key) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(id: u64) -> Parts {
        Parts { id, key_len: 0, len: 1 << 20, base: 1 << 20, expiry: None }
    }

    fn suspects<'k>(heads: &Heads, keys: &[&'k [u8]]) -> Vec<&'k [u8]> {
        heads.suspects(keys.iter().copied()).collect()
    }

    #[test]
    fn keys_with_heads_are_suspects_until_the_last_is_taken() {
        let heads = Heads::default();
        let keys = [&b"a"[..], b"b"];
        assert!(suspects(&heads, &keys).is_empty());
        heads.add(b"a", head(1));
        heads.add(b"a", head(2));
        assert_eq!(suspects(&heads, &keys), [b"a"]);
        assert!(heads.take(b"a", 1) && !heads.take(b"a", 1) && !heads.take(b"b", 2));
        assert_eq!(suspects(&heads, &keys), [b"a"]);
        assert!(heads.take(b"a", 2));
        assert!(suspects(&heads, &keys).is_empty());
    }

    #[test]
    fn heads_that_a_key_has_no_more_are_taken_once() {
        let heads = Heads::default();
        let ids = |taken: Result<Vec<Parts>, &'static str>| {
            taken.map(|heads| heads.iter().map(|head| head.id).collect::<Vec<_>>())
        };
        (1..4).for_each(|id| heads.add(b"a", head(id)));
        assert_eq!(ids(heads.take_stale(b"a", || Err("a read fails"))), Err("a read fails"));
        assert_eq!(ids(heads.take_stale(b"a", || Ok(Some(2)))), Ok(vec![1, 3]));
        assert_eq!(ids(heads.take_stale(b"a", || Ok(Some(2)))), Ok(vec![]));
        assert_eq!(ids(heads.take_stale(b"a", || Ok(None))), Ok(vec![2]));
        assert_eq!(ids(heads.take_stale(b"a", || panic!("none is listed"))), Ok(vec![]));
    }
}
