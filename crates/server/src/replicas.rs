//! A value that all threads read and few change, with a lock whose shared side is a thread's own.
//!
//! Every thread has a replica on cache lines of its own, behind a lock of its own. A reader takes
//! its lock, which no other reader touches; a writer takes all of them, in order, and waits so for
//! every reader. (Linux had such a lock as `brlock`.)

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crossbeam_utils::CachePadded;

/// A value with a replica for each of some threads.
#[derive(Debug)]
pub(crate) struct Replicas<T> {
    locks: Box<[CachePadded<RwLock<T>>]>,
}

/// The calling thread's number; threads beyond the number of replicas share.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    NUMBER.with(|number| {
        number.get().unwrap_or_else(|| {
            // Relaxed: nothing else is told by the number.
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            number.set(Some(next));
            next
        })
    })
}

impl<T: Clone> Replicas<T> {
    /// Replicas of a value, for so many threads.
    pub(crate) fn new(threads: usize, value: &T) -> Replicas<T> {
        let lock = || CachePadded::new(RwLock::new(value.clone()));
        Replicas { locks: std::iter::repeat_with(lock).take(threads.max(1)).collect() }
    }

    /// The thread's replica. Waits for a writer, and holds one back.
    #[inline]
    pub(crate) fn shared(&self) -> RwLockReadGuard<'_, T> {
        let lock = &self.locks[thread_number() % self.locks.len()];
        lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a writer holds the first replica, and may wait for the others.
    #[cfg(test)]
    pub(crate) fn has_writer(&self) -> bool {
        self.locks[0].try_read().is_err()
    }

    /// All replicas; waits for every reader. The caller holds none.
    pub(crate) fn exclusive(&self) -> Exclusive<'_, T> {
        let guards = self.locks.iter().map(|lock| lock.write());
        Exclusive {
            guards: guards.map(|guard| guard.unwrap_or_else(PoisonError::into_inner)).collect(),
        }
    }
}

/// A value that no other thread reads.
#[derive(Debug)]
pub(crate) struct Exclusive<'r, T> {
    guards: Vec<RwLockWriteGuard<'r, T>>,
}

impl<T: Clone> Exclusive<'_, T> {
    /// Changes the value, in every replica.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let answer = change(self.guards[0].deref_mut());
        let value = self.guards[0].clone();
        for guard in &mut self.guards[1..] {
            **guard = value.clone();
        }
        answer
    }
}

impl<T> Deref for Exclusive<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guards[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_has_the_value_for_itself() {
        let pair = Replicas::new(3, &(0_u64, 0_u64));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        pair.exclusive().change(|(left, right)| {
                            *left += 1;
                            std::thread::yield_now();
                            *right += 1;
                        });
                        let shared = pair.shared();
                        assert_eq!(shared.0, shared.1);
                    }
                });
            }
        });
        assert_eq!(*pair.exclusive(), (4_000, 4_000));
        assert!((0..8).all(|_| *pair.shared() == (4_000, 4_000)));
    }
}
