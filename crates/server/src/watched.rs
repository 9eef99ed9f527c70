//! Keys that transactions watch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The keys that a client watches, and whether one has changed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    is_broken: AtomicBool,
}

impl Watch {
    /// Whether a key that is watched has changed.
    pub(crate) fn is_broken(&self) -> bool {
        // Relaxed: the reader has the databases for itself, and their lock orders it behind the
        // commands that changed a key.
        self.is_broken.load(Ordering::Relaxed)
    }

    pub(crate) fn set_broken(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

type Key = (usize, Vec<u8>);

/// Keys that there is room for at any time.
const CAPACITY_KEPT: usize = 256;

/// Watches by key.
///
/// A key is added by a command that has the databases for itself, so each later command sees that
/// there are some, and the others pay for one load of a word that seldom changes.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Keys that are watched.
    count: AtomicUsize,
    by_key: Mutex<HashMap<Key, Vec<Weak<Watch>>>>,
}

impl Watched {
    /// Whether any key is watched.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: see above, the databases' lock orders it.
        self.count.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn add(&self, database: usize, key: &[u8], watch: &Arc<Watch>) {
        let mut by_key = self.lock();
        let watches = by_key.entry((database, key.to_vec())).or_default();
        // Those of clients that have gone make room.
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(Arc::downgrade(watch));
        self.count.store(by_key.len(), Ordering::Relaxed);
    }

    /// Forgets a watch under a key.
    pub(crate) fn remove(&self, database: usize, key: &[u8], watch: &Arc<Watch>) {
        let mut by_key = self.lock();
        let key = (database, key.to_vec());
        if let Some(watches) = by_key.get_mut(&key) {
            watches
                .retain(|other| other.strong_count() > 0 && other.as_ptr() != Arc::as_ptr(watch));
            if watches.is_empty() {
                by_key.remove(&key);
                // Rarely: it copies what is left.
                if by_key.capacity() / 4 > by_key.len().max(CAPACITY_KEPT) {
                    let kept = 2 * by_key.len();
                    by_key.shrink_to(kept);
                }
            }
        }
        self.count.store(by_key.len(), Ordering::Relaxed);
    }

    /// Breaks the watches of a key.
    #[inline]
    pub(crate) fn touch(&self, database: usize, key: &[u8]) {
        if !self.is_empty() {
            self.touch_watched(database, key);
        }
    }

    #[cold]
    fn touch_watched(&self, database: usize, key: &[u8]) {
        let by_key = self.lock();
        for watch in by_key.get(&(database, key.to_vec())).into_iter().flatten() {
            if let Some(watch) = watch.upgrade() {
                watch.set_broken();
            }
        }
    }

    /// Breaks the watches of those keys of a database of which `has_changed` says so.
    pub(crate) fn touch_all(&self, database: usize, has_changed: impl Fn(&[u8]) -> bool) {
        for ((of, key), watches) in &*self.lock() {
            if *of == database && has_changed(key) {
                watches.iter().filter_map(Weak::upgrade).for_each(|watch| watch.set_broken());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Weak<Watch>>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_watches_goes_with_them() {
        let (watched, watch) = (Watched::default(), Arc::new(Watch::default()));
        let key = |number: u32| number.to_be_bytes();
        (0..10_000).for_each(|number| watched.add(0, &key(number), &watch));
        let most = watched.lock().capacity();
        (1..10_000).for_each(|number| watched.remove(0, &key(number), &watch));
        let left = watched.lock().capacity();
        assert!(left <= 4 * CAPACITY_KEPT + 4 && most >= 10_000, "{left} of {most}");
        watched.touch(0, &key(0));
        assert!(watch.is_broken(), "what is left is watched");
        watched.remove(0, &key(0), &watch);
        assert!(watched.is_empty());
    }
}
