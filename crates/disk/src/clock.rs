//! The time by which a thread of a disk waits, so that tests can let it pass by hand.

use std::fmt::Debug;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A clock, and sleep by it.
pub trait Clock: Send + Sync + Debug {
    /// The time since some moment.
    fn now(&self) -> Duration;
    /// Sleeps until the clock shows `until`, another thread wakes this one, or for no reason. A wake
    /// before the sleep ends it at once.
    fn sleep_until(&self, until: Option<Duration>);
    /// Ends the sleep of a thread, or else its next one.
    fn wake(&self, thread: &Thread);
}

/// The clock of the system.
#[derive(Debug)]
pub struct SystemClock {
    began: Instant,
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock { began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn sleep_until(&self, until: Option<Duration>) {
        match until {
            Some(until) => std::thread::park_timeout(until.saturating_sub(self.now())),
            None => std::thread::park(),
        }
    }

    fn wake(&self, thread: &Thread) {
        thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_woken_sleeps_no_more() {
        let clock = SystemClock::default();
        clock.wake(&std::thread::current());
        clock.sleep_until(None);
        let soon = clock.now() + Duration::from_micros(1);
        while clock.now() < soon {
            clock.sleep_until(Some(soon));
        }
    }
}
