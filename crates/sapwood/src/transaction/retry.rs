//! How often a transaction that met a conflict is run again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread;
use std::time::Duration;

/// The number of repetitions and the pauses after which [`Db::transaction_with`](crate::Db::transaction_with) runs a
/// transaction again that met a [conflict](crate::Error::is_conflict).
///
/// Pauses begin at nothing and double, each of random length, so that two transactions that met do not
/// meet again.
///
/// From the eighth run on, a transaction over ordered tables and hash tables has its turn, one at a time:
/// changes and commits of other threads wait before they change what it has used in the run before, for
/// four times as long as that took, and a second at most. So a long transaction on a hot key gets on beside
/// short ones.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions, Retry};
/// use std::time::Duration;
///
/// let db = Db::in_memory();
/// let hits = db.create_ordered_table("hits", OrderedTableOptions::default())?;
/// let patient = Retry::times(1_000).pause_at_most(Duration::from_millis(10));
/// let sum = db.transaction_with(patient, |tx| tx.table(&hits).add(b"/", 1))?;
/// assert_eq!(sum, 1);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    times: u32,
    pause_most: Duration,
}

impl Default for Retry {
    /// A hundred times, with pauses of a millisecond at most.
    fn default() -> Retry {
        Retry::times(100)
    }
}

impl Retry {
    /// Not at all: the caller is told of the first conflict.
    ///
    /// ```
    /// use sapwood::Retry;
    ///
    /// assert_eq!(Retry::never(), Retry::times(0));
    /// ```
    pub fn never() -> Retry {
        Retry::times(0)
    }

    /// So many times, with pauses of a millisecond at most.
    ///
    /// ```
    /// use sapwood::Retry;
    ///
    /// assert_eq!(Retry::default(), Retry::times(100));
    /// ```
    pub fn times(times: u32) -> Retry {
        Retry { times, pause_most: Duration::from_millis(1) }
    }

    /// With pauses of another length at most.
    ///
    /// ```
    /// use sapwood::Retry;
    /// use std::time::Duration;
    ///
    /// let patient = Retry::times(10).pause_at_most(Duration::from_millis(50));
    /// assert_ne!(patient, Retry::times(10));
    /// ```
    #[must_use]
    pub fn pause_at_most(mut self, pause: Duration) -> Retry {
        self.pause_most = pause;
        self
    }

    /// Grants a transaction its turn from its eighth run on. `attempt` counts the runs after the first.
    pub(crate) fn has_turn(attempt: u32) -> bool {
        attempt >= 7
    }

    /// Waits before a transaction runs again, for the `attempt`th time; false if it is not to.
    pub(crate) fn pause(&self, attempt: u32) -> bool {
        if attempt >= self.times {
            return false;
        }
        // A microsecond, doubled each time, and half of that at least.
        let most = (Duration::from_micros(1) * (1 << attempt.min(20))).min(self.pause_most);
        match attempt {
            // Mostly the other is nearly done.
            0..3 => thread::yield_now(),
            _ => {
                let share = RandomState::new().build_hasher().finish() % 1024;
                thread::sleep(most.mul_f64(0.5 + share as f64 / 2048.0));
            }
        }
        true
    }
}
