//! The record locks that the current thread holds.
//!
//! A [`HeldLocks`] lists them, for engines that run closures of their users under such locks and
//! must not wait in there for what the thread itself keeps from going on. Each engine has one for
//! each thread, in a thread-local without a destructor: it is there to the end of the thread, and a
//! closure may run in the destructor of any other thread-local.

use std::mem::ManuallyDrop;

/// Closures within closures of this depth allocate nothing.
const FIRST: usize = 4;

/// The locks that a thread holds, each by a number of its engine's choice.
///
/// It has no destructor, and keeps no allocation while it holds `FIRST` locks or fewer.
pub struct HeldLocks {
    len: usize,
    first: [usize; FIRST],
    rest: ManuallyDrop<Vec<usize>>,
}

impl Default for HeldLocks {
    fn default() -> Self {
        HeldLocks::new()
    }
}

impl HeldLocks {
    /// No locks.
    pub const fn new() -> HeldLocks {
        HeldLocks { len: 0, first: [0; FIRST], rest: ManuallyDrop::new(Vec::new()) }
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it holds this one.
    pub fn contains(&self, lock: usize) -> bool {
        self.first[..self.len.min(FIRST)].contains(&lock) || self.rest.contains(&lock)
    }

    /// Adds a lock.
    pub fn push(&mut self, lock: usize) {
        match self.first.get_mut(self.len) {
            Some(place) => *place = lock,
            None => self.rest.push(lock),
        }
        self.len += 1;
    }

    /// Takes a lock away that was added, usually the last one.
    pub fn remove(&mut self, lock: usize) {
        assert!(!self.is_empty(), "a lock that was added");
        self.len -= 1;
        let last = match self.rest.pop() {
            Some(last) => last,
            None => self.first[self.len],
        };
        if last != lock {
            let there = self.first[..self.len.min(FIRST)].iter_mut().chain(self.rest.iter_mut());
            *there.rev().find(|held| **held == lock).expect("a lock that was added") = last;
        }
        if self.rest.is_empty() {
            drop(std::mem::take(&mut *self.rest));
        }
    }
}

impl std::fmt::Debug for HeldLocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldLocks").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const DEPTH: usize = 3 * FIRST;
    const _: () = assert!(!std::mem::needs_drop::<HeldLocks>());

    fn check(locks: &HeldLocks, held: impl Fn(usize) -> bool) {
        let expected: Vec<usize> = (0..DEPTH).filter(|lock| held(*lock)).collect();
        let told: Vec<usize> = (0..DEPTH).filter(|lock| locks.contains(*lock)).collect();
        assert_eq!(told, expected);
        assert_eq!(locks.is_empty(), expected.is_empty());
        assert!(expected.len() > FIRST || locks.rest.capacity() == 0, "memory is left behind");
    }

    #[test]
    fn locks_are_let_go_in_any_order() {
        for step in [1, 5, 7, DEPTH - 1] {
            let mut locks = HeldLocks::new();
            for lock in 0..DEPTH {
                locks.push(lock);
                check(&locks, |held| held <= lock);
            }
            let mut gone = vec![];
            for turn in 0..DEPTH {
                let lock = (turn * step) % DEPTH;
                locks.remove(lock);
                gone.push(lock);
                check(&locks, |held| !gone.contains(&held));
            }
        }
    }

    #[test]
    fn a_lock_that_was_added_twice_is_held_until_it_is_gone_twice() {
        let mut locks = HeldLocks::new();
        for _ in 0..DEPTH {
            locks.push(7);
        }
        for _ in 0..DEPTH {
            assert!(locks.contains(7));
            locks.remove(7);
        }
        assert!(locks.is_empty() && !locks.contains(7));
    }
}
