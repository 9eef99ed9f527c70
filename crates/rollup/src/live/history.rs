//! Snapshots of facts that change: the first change of a fact after a snapshot keeps what it was.
//!
//! Batches change facts under a shared gate; a snapshot closes the gate for a moment, so it lies between
//! batches, and begins a generation. While a snapshot is open, whatever changes a fact first puts the
//! fact's bytes, or that it was not there, into the newest generation, unless it has them already. A
//! reader of a snapshot takes what a fact was from the first generation from its own on that has it, and
//! else the fact as it is: no change came between. It looks after it has read the fact, and the change
//! keeps before it writes, so the reader misses none. A generation holds on to those after it, and is
//! freed with the last snapshot that it, or one before it, belongs to. No writer waits for a reader.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};

use hashbrown::HashMap;

const SHARDS: usize = 64;

/// Where generations begin.
#[derive(Debug, Default)]
pub(crate) struct History {
    gate: RwLock<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    /// The newest generation, if a snapshot needs it.
    newest: Weak<Generation>,
    /// Whether no batch comes any more.
    is_closed: bool,
}

/// What facts were when a snapshot was taken, of those that have changed since.
#[derive(Debug)]
pub(crate) struct Generation {
    /// Whether there is any: without, no shard needs to be asked.
    kept: AtomicBool,
    shards: [Mutex<Kept>; SHARDS],
    hasher: RandomState,
    next: OnceLock<Arc<Generation>>,
}

/// By key: the fact's bytes, or that there was none.
type Kept = HashMap<Box<[u8]>, Option<Box<[u8]>>>;

/// Keeps snapshots from being taken while a batch is applied.
#[derive(Debug)]
pub(crate) struct Batch<'h> {
    _gate: RwLockReadGuard<'h, Gate>,
    newest: Option<Arc<Generation>>,
}

impl History {
    /// Begins a batch, which no snapshot cuts; none after [`close`](Self::close).
    pub(crate) fn batch(&self) -> Option<Batch<'_>> {
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let newest = gate.newest.upgrade();
        (!gate.is_closed).then_some(Batch { _gate: gate, newest })
    }

    /// Waits for the batches under way, and lets no other come.
    pub(crate) fn close(&self) {
        self.gate.write().unwrap_or_else(PoisonError::into_inner).is_closed = true;
    }

    /// Takes a snapshot: waits for the batches under way, and keeps others out until it is there.
    pub(crate) fn snapshot(&self) -> Arc<Generation> {
        let mut gate = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let newest = gate.newest.upgrade();
        if let Some(newest) = &newest
            && !newest.kept.load(Ordering::Acquire)
        {
            // Nothing has changed since.
            return Arc::clone(newest);
        }
        let generation = Arc::new(Generation {
            kept: AtomicBool::new(false),
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            next: OnceLock::new(),
        });
        if let Some(newest) = newest {
            newest.next.set(Arc::clone(&generation)).expect("the newest has none after it");
        }
        gate.newest = Arc::downgrade(&generation);
        generation
    }
}

impl Batch<'_> {
    /// The generation that has to know what facts were, while a snapshot is open.
    pub(crate) fn newest(&self) -> Option<&Generation> {
        self.newest.as_deref()
    }
}

impl Generation {
    fn shard(&self, key: &[u8]) -> &Mutex<Kept> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    /// Keeps what the fact of a key is, unless it was kept before. Every change calls it first.
    pub(crate) fn keep<E>(
        &self,
        key: &[u8],
        read: impl FnOnce() -> Result<Option<Vec<u8>>, E>,
    ) -> Result<(), E> {
        let mut kept = self.shard(key).lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.contains_key(key) {
            // No other thread can have changed it since the snapshot: it would have come here first,
            // and under this lock it waits.
            let fact = read()?.map(Vec::into_boxed_slice);
            kept.insert(key.into(), fact);
            self.kept.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Shows the fact of a key as it was, given what was read of it just now; nothing if it was not
    /// there.
    pub(crate) fn show<R>(
        &self,
        key: &[u8],
        now: &[u8],
        show: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let mut generation = self;
        loop {
            if generation.kept.load(Ordering::Acquire) {
                let kept = generation.shard(key).lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(fact) = kept.get(key) {
                    let fact = fact.clone();
                    drop(kept);
                    return fact.map(|fact| show(&fact));
                }
            }
            match generation.next.get() {
                Some(next) => generation = next,
                None => return Some(show(now)),
            }
        }
    }
}

impl Drop for Generation {
    /// One after another: a chain of many would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(generation) = next {
            next = Arc::into_inner(generation).and_then(|mut generation| generation.next.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_snapshot_has_its_own_past() {
        let history = History::default();
        let keep = |key: &[u8], was: Option<&[u8]>| {
            let batch = history.batch().expect("it is open");
            let Some(newest) = batch.newest() else { return false };
            newest.keep(key, || Ok::<_, ()>(was.map(<[u8]>::to_vec))).expect("no error");
            true
        };
        let past =
            |snapshot: &Generation, key: &[u8], now: &[u8]| snapshot.show(key, now, <[u8]>::to_vec);
        assert!(!keep(b"a", Some(b"0")), "no snapshot needs it");
        let first = history.snapshot();
        let same = history.snapshot();
        assert!(Arc::ptr_eq(&first, &same));
        assert!(keep(b"a", Some(b"1")) && keep(b"a", Some(b"later")) && keep(b"b", None));
        let second = history.snapshot();
        assert!(keep(b"a", Some(b"2")) && keep(b"c", Some(b"3")));
        assert_eq!(past(&first, b"a", b"now"), Some(b"1".to_vec()));
        assert_eq!(past(&first, b"b", b"now"), None);
        assert_eq!(past(&first, b"c", b"now"), Some(b"3".to_vec()), "from the next generation");
        assert_eq!(past(&first, b"d", b"now"), Some(b"now".to_vec()));
        assert_eq!(past(&second, b"a", b"now"), Some(b"2".to_vec()));
        assert_eq!(past(&second, b"b", b"now"), Some(b"now".to_vec()));
        drop((first, same));
        assert!(keep(b"d", None), "the second is still open");
        drop(second);
        assert!(!keep(b"d", None));
    }

    #[test]
    fn many_generations_are_freed() {
        let history = History::default();
        let first = history.snapshot();
        for _ in 0..200_000 {
            let batch = history.batch().expect("it is open");
            let newest = batch.newest().expect("the first is open");
            newest.keep(b"a", || Ok::<_, ()>(None)).expect("no error");
            drop(batch);
            drop(history.snapshot());
        }
        drop(first);
        assert!(history.batch().expect("it is open").newest().is_none());
    }
    #[test]
    fn a_closed_history_has_no_more_batches() {
        let history = History::default();
        assert!(history.batch().is_some());
        history.close();
        assert!(history.batch().is_none());
        let _past = history.snapshot();
    }
}
