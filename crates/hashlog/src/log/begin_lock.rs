//! A readers-writer lock on `begin`: walks and checkpoints hold it shared, a compaction
//! exclusively.
//!
//! It differs from a usual one in three ways. A thread that releases it exclusively does not get it
//! back before all threads that wait to share it. No thread queues behind one that waits for it
//! exclusively: a walk inside a walk would wait for itself. Waiting ends when the log is dropped.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The lock.
#[derive(Default)]
pub(crate) struct BeginLock {
    door: Mutex<Door>,
    /// Signalled when a thread leaves.
    left: Condvar,
}

#[derive(Default)]
struct Door {
    sharing: usize,
    /// Threads that wait to share it.
    waiting: usize,
    alone: bool,
    ended: bool,
}

/// Shared possession: as long as it lives, `begin` stays.
pub(crate) struct Shared<'a>(&'a BeginLock);

/// Exclusive possession, to move `begin`.
pub(crate) struct Alone<'a>(&'a BeginLock);

impl BeginLock {
    /// Waits while another thread holds it exclusively.
    pub(crate) fn share(&self) -> Shared<'_> {
        let mut door = self.door();
        door.waiting += 1;
        while door.alone {
            door = self.left.wait(door).unwrap_or_else(PoisonError::into_inner);
        }
        door.waiting -= 1;
        door.sharing += 1;
        Shared(self)
    }

    /// Non-blocking `share`, for callers that hold something the exclusive holder may be waiting
    /// for.
    pub(crate) fn try_share(&self) -> Option<Shared<'_>> {
        let mut door = self.door();
        if door.alone {
            return None;
        }
        door.sharing += 1;
        Some(Shared(self))
    }

    /// Takes it exclusively if no thread has it or waits to share it.
    pub(crate) fn try_alone(&self) -> Option<Alone<'_>> {
        self.door().try_alone().then(|| Alone(self))
    }

    /// Waits until no thread has it or waits to share it; `None` when the log is dropped.
    pub(crate) fn alone(&self) -> Option<Alone<'_>> {
        let mut door = self.door();
        loop {
            if door.ended {
                return None;
            }
            if door.try_alone() {
                return Some(Alone(self));
            }
            door = self.left.wait(door).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// From now on no thread gets it exclusively that would have to wait.
    pub(crate) fn end(&self) {
        self.door().ended = true;
        self.left.notify_all();
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.door().ended
    }

    // No step leaves it half done.
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    fn try_alone(&mut self) -> bool {
        let free = self.sharing == 0 && self.waiting == 0 && !self.alone;
        self.alone |= free;
        free
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.0.door().sharing -= 1;
        self.0.left.notify_all();
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.door().alone = false;
        self.0.left.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sharing_excludes_exclusive_holders_alone() {
        let begin_lock = BeginLock::default();
        let shared = [begin_lock.share(), begin_lock.share()];
        assert!(begin_lock.try_alone().is_none());
        drop(shared);
        let alone = begin_lock.try_alone();
        assert!(alone.is_some() && begin_lock.try_alone().is_none());
    }

    /// A thread that takes it exclusively again and again lets waiting threads in.
    #[test]
    fn threads_that_wait_to_share_come_first() {
        let begin_lock = BeginLock::default();
        std::thread::scope(|scope| {
            let alone = begin_lock.alone();
            let sharing = scope.spawn(|| drop(begin_lock.share()));
            while begin_lock.door().waiting == 0 {
                std::thread::yield_now();
            }
            drop(alone);
            // Only once the other thread has been let in and has left.
            assert!(begin_lock.alone().is_some());
            sharing.join().expect("it was let in");
        });
    }

    #[test]
    fn the_end_wakes_threads_that_wait_exclusively() {
        let begin_lock = BeginLock::default();
        let _shared = begin_lock.share();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| begin_lock.alone().is_none());
            begin_lock.end();
            assert!(waits.join().expect("it ends"));
        });
    }
}
