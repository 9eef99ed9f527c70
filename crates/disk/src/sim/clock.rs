//! A clock that tests move by hand.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Thread, ThreadId};
use std::time::Duration;

use crate::Clock;

/// Time that passes when a test says so.
#[derive(Debug, Default)]
pub(super) struct SimClock {
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Sleepers {
    now: Duration,
    /// Threads that sleep, and until when.
    asleep: HashMap<ThreadId, Option<Duration>>,
    /// Threads that were woken before they slept.
    woken: HashSet<ThreadId>,
}

impl SimClock {
    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass. Threads whose time has come are awake afterwards.
    pub(super) fn advance(&self, by: Duration) {
        let mut sleepers = self.lock();
        sleepers.now += by;
        let now = sleepers.now;
        sleepers.asleep.retain(|_, until| until.is_none_or(|until| until > now));
        self.changed.notify_all();
    }

    /// Waits until so many threads sleep. One that was told to wake does not.
    pub(super) fn wait_for_sleepers(&self, count: usize) {
        let mut sleepers = self.lock();
        while sleepers.asleep.len() != count {
            sleepers = self.changed.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Duration {
        self.lock().now
    }

    fn sleep_until(&self, until: Option<Duration>) {
        let this = std::thread::current().id();
        let mut sleepers = self.lock();
        if !sleepers.woken.remove(&this) && until.is_none_or(|until| until > sleepers.now) {
            sleepers.asleep.insert(this, until);
            self.changed.notify_all();
            while sleepers.asleep.contains_key(&this) {
                sleepers = self.changed.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn wake(&self, thread: &Thread) {
        let mut sleepers = self.lock();
        if sleepers.asleep.remove(&thread.id()).is_none() {
            sleepers.woken.insert(thread.id());
        }
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_when_their_time_has_come_or_they_are_told() {
        let clock = SimClock::default();
        std::thread::scope(|scope| {
            let late = scope.spawn(|| clock.sleep_until(Some(Duration::from_secs(2))));
            let told = scope.spawn(|| clock.sleep_until(None));
            clock.wait_for_sleepers(2);
            clock.advance(Duration::from_secs(1));
            clock.wait_for_sleepers(2);
            clock.wake(told.thread());
            told.join().expect("no panic");
            clock.wait_for_sleepers(1);
            clock.advance(Duration::from_secs(1));
            late.join().expect("no panic");
            clock.wait_for_sleepers(0);
        });
        // Its time is over.
        clock.sleep_until(Some(Duration::from_secs(2)));
        clock.wake(&std::thread::current());
        clock.sleep_until(None);
    }
}
