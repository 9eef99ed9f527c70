//! Who relies on `begin`? Walks and checkpoints share that it stays; a compaction moves it alone.
//!
//! A readers-writer lock of its own kind: who has it alone gives way to all who wait to share it
//! before it has it again, nobody queues behind a thread that waits to be alone (a walk inside a
//! walk would wait for itself), and waiting ends when the log is dropped.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The lock.
#[derive(Default)]
pub(crate) struct BeginLock {
    door: Mutex<Door>,
    /// Signalled when somebody leaves.
    left: Condvar,
}

#[derive(Default)]
struct Door {
    sharing: usize,
    /// Threads that wait until nobody is alone.
    waiting: usize,
    alone: bool,
    ended: bool,
}

/// As long as it lives, `begin` stays.
pub(crate) struct Shared<'a>(&'a BeginLock);

/// Leave to move `begin`.
pub(crate) struct Alone<'a>(&'a BeginLock);

impl BeginLock {
    /// Waits until nobody is alone.
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

    /// Shares it unless somebody is alone: for who holds what that thread may wait for.
    pub(crate) fn try_share(&self) -> Option<Shared<'_>> {
        let mut door = self.door();
        if door.alone {
            return None;
        }
        door.sharing += 1;
        Some(Shared(self))
    }

    /// Takes it alone if nobody has it or waits to share it.
    pub(crate) fn try_alone(&self) -> Option<Alone<'_>> {
        self.door().try_alone().then(|| Alone(self))
    }

    /// Waits until nobody has it or waits to share it; `None` when the log is dropped.
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

    /// From now on nobody is given it alone who would have to wait.
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
    fn who_shares_excludes_who_is_alone_and_nobody_else() {
        let begin_lock = BeginLock::default();
        let shared = [begin_lock.share(), begin_lock.share()];
        assert!(begin_lock.try_alone().is_none());
        drop(shared);
        let alone = begin_lock.try_alone();
        assert!(alone.is_some() && begin_lock.try_alone().is_none());
    }

    /// A thread that is alone again and again lets those in who wait.
    #[test]
    fn who_waits_to_share_comes_first() {
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
    fn the_end_wakes_who_waits_to_be_alone() {
        let begin_lock = BeginLock::default();
        let _shared = begin_lock.share();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| begin_lock.alone().is_none());
            begin_lock.end();
            assert!(waits.join().expect("it ends"));
        });
    }
}
