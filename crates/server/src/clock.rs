//! The time of day, for keys that end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::store::format::Millis;

/// A clock: the system's, or one that is set by hand.
#[derive(Debug, Default)]
pub enum Clock {
    /// The system's.
    #[default]
    System,
    /// One that stands still until it is set: tests do not wait.
    Manual(AtomicU64),
}

impl Clock {
    /// Milliseconds since 1970.
    #[inline]
    pub fn now(&self) -> Millis {
        match self {
            Clock::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as Millis),
            // Relaxed: a time tells nothing of other memory.
            Clock::Manual(time) => time.load(Ordering::Relaxed),
        }
    }

    /// Sets a clock that is set by hand; false for the system's.
    pub fn set(&self, now: Millis) -> bool {
        match self {
            Clock::System => false,
            Clock::Manual(time) => {
                time.store(now, Ordering::Relaxed);
                true
            }
        }
    }
}
