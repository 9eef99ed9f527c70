//! The check that a scan keeps its promise while writers run.
//!
//! The promise: every key present through the whole scan is seen once, none twice, in order, and
//! each value seen was current at some moment of the scan.
//!
//! Order and "none twice" show in the scan's output alone. The rest is a question about single
//! keys: that a scan saw `(key, value)` says no less and no more than a `get` of that value some
//! time during the scan; that it did not see a key says that some time during the scan the key was
//! absent. So a scan becomes one such read of each key, and the history must be linearizable.

use crate::Shown;
use crate::engine::{Bounds, Direction, Pair, ScanForm};
use crate::history::{Call, Event, History};
use std::ops::{Bound, RangeBounds as _};

/// The record of a scan.
#[derive(Debug, Clone)]
pub struct ScanRecord {
    /// Which thread.
    pub thread: usize,
    /// The moment before it.
    pub begin: u64,
    /// The moment after it.
    pub end: u64,
    /// Which of the engine's scans.
    pub form: ScanForm,
    /// The keys asked for.
    pub bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The way.
    pub direction: Direction,
    /// It stops after so many.
    pub limit: usize,
    /// The entries that it saw, in order.
    pub seen: Vec<Pair>,
}

impl ScanRecord {
    /// Adds to `history` what this scan says about each key of `universe` (all keys that any
    /// writer touches); or says what is wrong with the scan whatever the writers did.
    pub fn add_to(&self, history: &mut History, universe: &[Vec<u8>]) -> Result<(), String> {
        self.check_shape(universe)?;
        let mut seen: std::collections::HashMap<&[u8], &[u8]> =
            self.seen.iter().map(|(key, value)| (&**key, &**value)).collect();
        for key in universe.iter().filter(|key| self.passed(key)) {
            let call = match (self.form, seen.remove(&**key)) {
                (ScanForm::Keys, value) => Call::Contains(value.is_some()),
                (_, value) => Call::Get(value.map(<[u8]>::to_vec)),
            };
            let (thread, begin, end) = (self.thread, self.begin, self.end);
            history.push(key, Event { thread, begin, end, call });
        }
        Ok(())
    }

    fn check_shape(&self, universe: &[Vec<u8>]) -> Result<(), String> {
        let wrong = |what: &str, key: &[u8]| {
            let (form, direction) = (self.form, self.direction);
            Err(format!("a scan ({form:?}, {direction:?}) {what} {}", Shown(key)))
        };
        for pair in self.seen.windows(2) {
            let (one, next) = (&pair[0].0, &pair[1].0);
            let ordered = match self.direction {
                Direction::Ascending => one < next,
                Direction::Descending => one > next,
            };
            if one == next {
                return wrong("saw twice", next);
            }
            if !ordered {
                return wrong("saw out of order", next);
            }
        }
        for (key, _) in &self.seen {
            if !self.asked().contains(&&**key) {
                return wrong("saw out of bounds", key);
            }
            if !universe.contains(key) {
                return wrong("saw what nobody ever put:", key);
            }
        }
        match self.seen.get(self.limit) {
            Some((key, _)) => wrong("went on past its limit to", key),
            None => Ok(()),
        }
    }

    /// Whether the scan has come past `key`, and so says something about it.
    fn passed(&self, key: &[u8]) -> bool {
        let stopped_at = (self.seen.len() == self.limit).then(|| self.seen.last());
        let reached = match (stopped_at, self.direction) {
            (None, _) => true,
            (Some(None), _) => false,
            (Some(Some((last, _))), Direction::Ascending) => key <= &**last,
            (Some(Some((last, _))), Direction::Descending) => key >= &**last,
        };
        reached && self.asked().contains(&key)
    }

    fn asked(&self) -> Bounds<'_> {
        fn end(end: &Bound<Vec<u8>>) -> Bound<&[u8]> {
            end.as_ref().map(Vec::as_slice)
        }
        (end(&self.bounds.0), end(&self.bounds.1))
    }
}
