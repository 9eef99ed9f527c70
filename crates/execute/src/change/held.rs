//! Changes of objects where a hold keeps their records.

use sapwood_aggregate::{
    DisaggregationProgress, Disaggregator, EqualParts, HeldBatch, Outcome, Share, WordParts,
};
use sapwood_hashlog::{BatchError, ChangeRun, Hold, ValueMut};

use super::how_far;

/// Gives the objects of a batch their parts, in order, and records them: how many, and why not all.
pub(crate) fn change_batch(
    hold: &Hold<'_>,
    by: &Disaggregator,
    number: usize,
    batch: &HeldBatch<'_>,
    progress: &mut DisaggregationProgress,
) -> (u64, std::result::Result<(), BatchError>) {
    let words = batch.parts.words().filter(|_| by.changes_words());
    let mut done = 0;
    for run in batch.runs() {
        let mut apart = Apart { by, parts: batch.parts, outcomes: Vec::new() };
        let end = match words {
            Some(parts) => {
                let mut words = ChangeWords { parts, changed: 0, before: 0, given: 0, apart };
                let end = hold.update_run(run, 0, &mut words);
                progress.record_sums(number, words.changed, words.before, words.given);
                apart = words.apart;
                end
            }
            None => hold.update_run(run, 0, &mut apart),
        };
        let (changed, end) = how_far(run.len(), end);
        apart.record(changed, number, progress);
        done += changed as u64;
        if let Err(stopped) = end {
            return (done, Err(stopped));
        }
    }
    (done, Ok(()))
}

/// Gives the objects of a run their parts, of a word each.
struct ChangeWords<'a> {
    parts: WordParts,
    changed: u64,
    before: i128,
    given: i128,
    /// Objects that are not of the sums.
    apart: Apart<'a>,
}

impl ChangeRun for ChangeWords<'_> {
    fn becomes(&self, key: [u8; 8], value: [u8; 8]) -> Option<[u8; 8]> {
        self.parts.give_one(self.apart.by.action(), key, value)
    }

    fn met(&mut self, at: usize, key: [u8; 8], before: [u8; 8]) {
        if self.becomes(key, before).is_none() {
            return self.apart.met(at, key, before);
        }
        self.changed += 1;
        self.given += self.apart.parts.of(key);
        self.before += i128::from(i64::from_le_bytes(before));
    }

    fn change_group(&mut self, at: usize, keys: &[[u8; 8]], values: &mut [[u8; 8]]) {
        if let Some(sums) = self.parts.give(self.apart.by.action(), keys, values) {
            self.changed += keys.len() as u64;
            self.given += sums.given;
            self.before += sums.before;
            return;
        }
        for (at, (key, value)) in (at..).zip(keys.iter().zip(values)) {
            let before = *value;
            *value = self.becomes(*key, before).unwrap_or(before);
            self.met(at, *key, before);
        }
    }

    fn by_key(&mut self, at: usize, key: [u8; 8], value: Option<&mut ValueMut<'_>>) {
        self.apart.by_key(at, key, value);
    }
}

/// Gives objects their parts one by one, and keeps what became of them.
struct Apart<'a> {
    by: &'a Disaggregator,
    parts: EqualParts,
    /// Of the objects that have these numbers, ascending.
    outcomes: Vec<(usize, [u8; 8], Outcome)>,
}

impl Apart<'_> {
    /// Records those of the first `done` objects.
    fn record(self, done: usize, number: usize, progress: &mut DisaggregationProgress) {
        for (_, key, outcome) in self.outcomes.iter().filter(|(at, ..)| *at < done) {
            let share = Share { key, address: None, part: self.parts.of(*key) };
            progress.record(number, &share, *outcome);
        }
    }
}

impl ChangeRun for Apart<'_> {
    fn becomes(&self, key: [u8; 8], mut value: [u8; 8]) -> Option<[u8; 8]> {
        let changed = self.by.change(&mut value, self.parts.of(key));
        changed.is_ok().then_some(value)
    }

    fn met(&mut self, at: usize, key: [u8; 8], mut before: [u8; 8]) {
        let outcome = self.by.change(&mut before, self.parts.of(key)).into();
        self.outcomes.push((at, key, outcome));
    }

    fn by_key(&mut self, at: usize, key: [u8; 8], value: Option<&mut ValueMut<'_>>) {
        let outcome = match value {
            Some(value) => self.by.change(value, self.parts.of(key)).into(),
            None => Outcome::Vanished,
        };
        // The last call for an object counts.
        match self.outcomes.binary_search_by_key(&at, |(at, ..)| *at) {
            Ok(known) => self.outcomes[known].2 = outcome,
            Err(place) => self.outcomes.insert(place, (at, key, outcome)),
        }
    }
}
