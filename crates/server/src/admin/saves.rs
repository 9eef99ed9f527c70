//! Rules by which checkpoints are taken, and how the last ones went.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::store::format::Millis;

/// The pause after a checkpoint that failed.
const PAUSE_MILLIS: Millis = 5_000;

/// A checkpoint is taken when so many seconds have gone by since the last, with so many changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveRule {
    /// Seconds.
    pub seconds: u64,
    /// Changes.
    pub changes: u64,
}

impl SaveRule {
    /// Rules in the form of Redis: pairs of seconds and changes; none for an empty text.
    ///
    /// ```
    /// use sapwood_server::admin::SaveRule;
    ///
    /// let rules = SaveRule::list("3600 1 60 1000");
    /// assert_eq!(rules.as_deref().map(SaveRule::text).as_deref(), Some("3600 1 60 1000"));
    /// assert_eq!(SaveRule::list("3600"), None);
    /// assert_eq!(SaveRule::list(""), Some(vec![]));
    /// ```
    pub fn list(text: &str) -> Option<Vec<SaveRule>> {
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(u64::from_str).collect();
        let numbers = numbers.ok()?;
        let pairs = numbers.chunks(2).map(|pair| match *pair {
            [seconds, changes] if seconds > 0 => Some(SaveRule { seconds, changes }),
            _ => None,
        });
        pairs.collect()
    }

    /// Rules as [`list`](Self::list) reads them.
    pub fn text(rules: &[SaveRule]) -> String {
        let pairs: Vec<_> =
            rules.iter().map(|rule| format!("{} {}", rule.seconds, rule.changes)).collect();
        pairs.join(" ")
    }
}

/// How the last checkpoints went.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    /// The last that was complete.
    pub(crate) saved_at: Millis,
    /// The changes by then.
    pub(crate) changes: u64,
    /// The last try.
    pub(crate) tried_at: Millis,
    pub(crate) took: Option<Duration>,
    /// The one that runs.
    pub(crate) began: Option<Instant>,
    pub(crate) error: Option<String>,
    pub(crate) count: u64,
}

/// Checkpoints of the server.
#[derive(Debug)]
pub(crate) struct Saves {
    past: Mutex<Past>,
    /// Set with `past` locked where a thread waits for it.
    is_running: AtomicBool,
    ended: Condvar,
    /// Whether a client wants one in the background.
    is_wanted: AtomicBool,
    pub(crate) failures: AtomicU64,
}

/// The right to take a checkpoint: one at a time.
#[derive(Debug)]
pub(crate) struct Running<'s>(&'s Saves);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut past = self.0.lock();
        past.began = None;
        self.0.is_running.store(false, Ordering::SeqCst);
        drop(past);
        self.0.ended.notify_all();
    }
}

impl Saves {
    pub(crate) fn new(now: Millis) -> Saves {
        Saves {
            past: Mutex::new(Past { saved_at: now, ..Past::default() }),
            is_running: AtomicBool::new(false),
            ended: Condvar::new(),
            is_wanted: AtomicBool::new(false),
            failures: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn past(&self) -> Past {
        self.lock().clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::SeqCst)
    }

    /// Begins a checkpoint; `None` if one runs.
    pub(crate) fn begin(&self) -> Option<Running<'_>> {
        let was_running = self.is_running.swap(true, Ordering::SeqCst);
        (!was_running).then(|| {
            self.lock().began = Some(Instant::now());
            Running(self)
        })
    }

    /// Begins a checkpoint, once the one that runs has ended.
    pub(crate) fn begin_next(&self) -> Running<'_> {
        let mut past = self.lock();
        while self.is_running.swap(true, Ordering::SeqCst) {
            past = self.ended.wait(past).unwrap_or_else(PoisonError::into_inner);
        }
        past.began = Some(Instant::now());
        Running(self)
    }

    /// Asks for a checkpoint in the background.
    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::SeqCst)
    }

    /// Whether a checkpoint is due, by a client's wish or by the rules.
    pub(crate) fn is_due(&self, rules: &[SaveRule], changes: u64, now: Millis) -> bool {
        if self.is_running() {
            return false;
        }
        if self.is_wanted.swap(false, Ordering::SeqCst) {
            return true;
        }
        let past = self.lock();
        let new = changes.saturating_sub(past.changes);
        let idle = now.saturating_sub(past.saved_at);
        let may_try = past.error.is_none() || now.saturating_sub(past.tried_at) >= PAUSE_MILLIS;
        may_try
            && rules
                .iter()
                .any(|rule| new > 0 && new >= rule.changes && idle > rule.seconds * 1_000)
    }

    /// Notes how a checkpoint went that began with so many changes.
    pub(crate) fn ended(
        &self,
        running: &Running<'_>,
        changes: u64,
        now: Millis,
        result: Result<(), String>,
    ) {
        let mut past = running.0.lock();
        past.tried_at = now;
        past.took = past.began.map(|began| began.elapsed());
        match result {
            Ok(()) => {
                past.saved_at = now;
                past.changes = changes;
                past.error = None;
                past.count += 1;
            }
            Err(error) => {
                past.error = Some(error);
                // Relaxed: a count for reports.
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_by_time_and_changes() {
        let rules = SaveRule::list("900 1 60 100").expect("two rules");
        let saves = Saves::new(1_000_000);
        let due =
            |changes, seconds: u64| saves.is_due(&rules, changes, 1_000_000 + seconds * 1_000);
        assert!(!due(0, 5_000), "nothing to keep");
        assert!(!due(1, 900));
        assert!(due(1, 901));
        assert!(!due(99, 61));
        assert!(due(100, 61));
        saves.want();
        assert!(due(0, 0));
        assert!(!due(0, 0), "a wish is granted once");
    }

    #[test]
    fn the_next_begins_when_the_one_before_has_ended() {
        let saves = Saves::new(0);
        let has_ended = AtomicBool::new(false);
        let running = saves.begin().expect("none runs");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let running = saves.begin_next();
                    assert!(has_ended.load(Ordering::SeqCst));
                    assert!(saves.begin().is_none());
                    saves.ended(&running, 0, 0, Ok(()));
                });
            }
            has_ended.store(true, Ordering::SeqCst);
            drop(running);
        });
        assert_eq!(saves.past().count, 2);
        assert!(!saves.is_running());
    }

    #[test]
    fn one_runs_at_a_time_and_is_tried_again_later() {
        let rules = SaveRule::list("1 1").expect("a rule");
        let saves = Saves::new(0);
        let running = saves.begin().expect("none runs");
        assert!(saves.begin().is_none());
        assert!(!saves.is_due(&rules, 9, 60_000));
        saves.ended(&running, 9, 60_000, Err("full".to_owned()));
        drop(running);
        assert!(!saves.is_due(&rules, 9, 61_000));
        assert!(saves.is_due(&rules, 9, 65_000));
        let running = saves.begin().expect("none runs");
        saves.ended(&running, 9, 65_000, Ok(()));
        drop(running);
        assert!(!saves.is_due(&rules, 9, 99_000));
        assert_eq!(saves.past().count, 1);
    }
}
