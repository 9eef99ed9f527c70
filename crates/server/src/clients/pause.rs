//! A time in which the commands of clients wait, or those that change data.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::store::format::Millis;

/// The commands that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Paused {
    /// Those that change data, or send messages.
    Writes,
    /// All.
    All,
}

const NONE: u8 = 0;
const WRITES: u8 = 1;
const ALL: u8 = 2;

/// A pause that may be going on.
///
/// It begins under the exclusive side of the databases' lock: a command that comes later sees it,
/// and no earlier one is still at work.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    what: AtomicU8,
    until: AtomicU64,
}

// Relaxed throughout: see above, the databases' lock orders both words.
impl Pause {
    /// Begins a pause, or makes the one that is going on longer and stricter.
    pub(crate) fn begin(&self, what: Paused, until: Millis, now: Millis) {
        let what = match what {
            Paused::Writes => WRITES,
            Paused::All => ALL,
        };
        if self.at(now).is_none() {
            self.what.store(what, Ordering::Relaxed);
            self.until.store(until, Ordering::Relaxed);
            return;
        }
        self.what.fetch_max(what, Ordering::Relaxed);
        self.until.fetch_max(until, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.what.store(NONE, Ordering::Relaxed);
    }

    /// The commands that wait at a moment.
    #[inline]
    pub(crate) fn at(&self, now: Millis) -> Option<Paused> {
        let what = match self.what.load(Ordering::Relaxed) {
            NONE => return None,
            WRITES => Paused::Writes,
            _ => Paused::All,
        };
        (now < self.until.load(Ordering::Relaxed)).then_some(what)
    }

    /// Milliseconds until the pause ends.
    pub(crate) fn left(&self, now: Millis) -> Option<Millis> {
        self.at(now).map(|_| self.until.load(Ordering::Relaxed).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_and_ends() {
        let pause = Pause::default();
        assert_eq!(pause.at(10), None);
        pause.begin(Paused::Writes, 20, 10);
        assert_eq!((pause.at(19), pause.at(20)), (Some(Paused::Writes), None));
        pause.begin(Paused::All, 15, 10);
        assert_eq!((pause.at(19), pause.left(12)), (Some(Paused::All), Some(8)));
        pause.begin(Paused::Writes, 30, 25);
        assert_eq!(pause.at(26), Some(Paused::Writes));
        pause.end();
        assert_eq!(pause.at(26), None);
    }
}
