//! The turn of a transaction that met conflict after conflict: commits and changes of others wait for it
//! where they want the same stripes, for some time.
//!
//! A turn is advice. No invariant of the versions depends on it, so that it may end at any
//! moment: a thread that waits for a turn goes on after its end, whatever it holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// The length of a sleep between looks at what a thread waits for.
pub(crate) const PAUSE: Duration = Duration::from_micros(100);

/// Ends of a turn, for one that lasts shorter or longer.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);

/// The turn that there is, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Set while there may be one. Relaxed: a thread that misses it makes a conflict, as without turns.
    is_taken: AtomicBool,
    taken: Mutex<Option<Taken>>,
}

#[derive(Debug)]
struct Taken {
    thread: ThreadId,
    /// Numbers, in order.
    stripes: Vec<u32>,
    until: Instant,
}

/// The turn of this thread. Dropped, it ends.
#[must_use = "others wait as long as this lives"]
#[derive(Debug)]
pub struct Turn<'a>(&'a Turns);

impl Turns {
    /// Lets others wait where they want one of these stripes, for at most `time`, and a second. None while
    /// another thread has the turn.
    pub(crate) fn take(&self, mut stripes: Vec<u32>, time: Duration) -> Option<Turn<'_>> {
        stripes.sort_unstable();
        stripes.dedup();
        let mut taken = self.lock();
        if taken.is_some() {
            return None;
        }
        let until = Instant::now() + time.clamp(SHORTEST, LONGEST);
        *taken = Some(Taken { thread: thread::current().id(), stripes, until });
        self.is_taken.store(true, Ordering::Relaxed);
        Some(Turn(self))
    }

    /// Waits while another thread has its turn with one of these stripes.
    #[inline]
    pub(crate) fn let_pass(&self, stripes: impl Iterator<Item = u32> + Clone) {
        if self.is_taken.load(Ordering::Relaxed) {
            self.let_pass_slow(stripes);
        }
    }

    #[cold]
    fn let_pass_slow(&self, stripes: impl Iterator<Item = u32> + Clone) {
        while self.lock().as_ref().is_some_and(|taken| taken.holds_up(stripes.clone())) {
            thread::sleep(PAUSE);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn holds_up(&self, mut stripes: impl Iterator<Item = u32>) -> bool {
        self.thread != thread::current().id()
            && Instant::now() < self.until
            && stripes.any(|stripe| self.stripes.binary_search(&stripe).is_ok())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.0.lock();
        *taken = None;
        self.0.is_taken.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn others_wait_for_a_turn_of_their_stripes_alone() {
        let turns = Turns::default();
        let turn = turns.take(vec![3, 1, 3], LONGEST).expect("none is taken");
        turns.lock().as_mut().expect("it is taken").until += Duration::from_secs(3_600);
        assert!(turns.take(vec![9], LONGEST).is_none(), "one at a time");
        // Its own thread goes on, and so does one that wants other stripes.
        turns.let_pass([1].into_iter());
        let waited = |stripe: u32| {
            let taken = turns.lock();
            taken.as_ref().is_some_and(|taken| taken.holds_up([stripe].into_iter()))
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| (waited(1), waited(2)));
            assert_eq!(other.join().expect("no panic"), (true, false));
        });
        drop(turn);
        thread::scope(|scope| {
            let other = scope.spawn(|| waited(1));
            assert!(!other.join().expect("no panic"));
        });
    }

    #[test]
    fn a_turn_that_is_not_given_back_ends() {
        let turns = Turns::default();
        let _turn = turns.take(vec![1], Duration::ZERO).expect("none is taken");
        thread::scope(|scope| {
            scope.spawn(|| turns.let_pass([1].into_iter()));
        });
    }
}
