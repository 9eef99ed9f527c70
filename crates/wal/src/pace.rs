//! The pace of checkpoints that are written while changes go on.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::appender::lock;

/// Lets bytes be written at a rate, until some thread is in a hurry.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: u64,
    state: Mutex<State>,
    hurried: Condvar,
}

#[derive(Debug)]
struct State {
    /// When what was written so far should have taken its time.
    until: Instant,
    /// Threads that wait for the checkpoint.
    hurries: u64,
}

/// Time that a pause may not make up for: what was slow before is not written fast later.
const SLACK: Duration = Duration::from_millis(100);

impl Pace {
    pub(crate) fn new(bytes_per_second: u64) -> Pace {
        let state = State { until: Instant::now(), hurries: 0 };
        let (state, hurried) = (Mutex::new(state), Condvar::new());
        Pace { bytes_per_second: bytes_per_second.max(1), state, hurried }
    }

    /// Waits until so many bytes more may have been written.
    pub(crate) fn wait(&self, bytes: usize) {
        let took = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let mut state = lock(&self.state);
        let earliest = Instant::now().checked_sub(SLACK).unwrap_or(state.until);
        state.until = state.until.max(earliest) + took;
        while state.hurries == 0 {
            let left = state.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.hurried.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets nothing wait any more.
    pub(crate) fn end(&self) {
        std::mem::forget(self.hurry());
    }

    /// Lets nothing wait as long as the answer lives.
    pub(crate) fn hurry(&self) -> Hurry<'_> {
        lock(&self.state).hurries += 1;
        self.hurried.notify_all();
        Hurry(self)
    }
}

pub(crate) struct Hurry<'p>(&'p Pace);

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).hurries -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// It would wait for a day.
    #[test]
    fn what_waits_goes_on_once_a_thread_is_in_a_hurry() {
        let pace = Pace::new(1);
        thread::scope(|scope| {
            let waits = scope.spawn(|| pace.wait(86_400));
            let _hurry = pace.hurry();
            waits.join().expect("no panic");
        });
    }

    #[test]
    fn bytes_take_their_time() {
        let pace = Pace::new(1 << 20);
        let started = Instant::now();
        for _ in 0..4 {
            pace.wait(64 << 10);
        }
        assert!(started.elapsed() >= Duration::from_millis(100));
    }
}
