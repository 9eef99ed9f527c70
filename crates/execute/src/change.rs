//! Changes of objects: each engine gives its objects their parts of a total.

mod held;

use std::ops::Range;

use sapwood_aggregate::{
    Action, Change, DisaggregationProgress, Disaggregator, Outcome, Refusal, Share, ShareBatch,
    Shares,
};
use sapwood_chunkmap::ChunkMap;
use sapwood_engine::RecordAddress;
use sapwood_hashlog::{BatchError, Edit, HashLog, Hold, ValueMut};
use sapwood_ptree::Tree;

use crate::Result;

/// How the objects of batches were found.
#[derive(Debug, Clone, Copy)]
pub enum Found<'h, 'l> {
    /// In the order of the log, which a walk went along: they are edited where they lie.
    InLog,
    /// The same, and a hold keeps their records there.
    Held(&'h Hold<'l>),
    /// In any other order.
    Anyhow,
}

/// The way back to objects: each gets its part of a total.
pub trait ChangeObjects: Sync {
    /// How many batches of shares are handed over at once.
    fn batches_at_once(&self) -> usize;

    /// Whether several threads may change objects at once. Else the caller's own does.
    fn changes_by_threads(&self) -> bool {
        true
    }

    /// A walk under which records stay where they are until they are changed, if there is one here.
    ///
    /// # Errors
    /// What the engine says where it cannot be walked.
    fn hold(&self) -> Result<Option<Hold<'_>>> {
        Ok(None)
    }

    /// Gives the objects of some batches their parts, in order, and records them. Answers how many,
    /// and why not all.
    fn change(
        &self,
        by: &Disaggregator,
        shares: &Shares<'_>,
        batches: Range<usize>,
        found: Found<'_, '_>,
        progress: &mut DisaggregationProgress,
    ) -> (u64, Result<()>);
}

impl ChangeObjects for ChunkMap {
    fn batches_at_once(&self) -> usize {
        1
    }

    fn change(
        &self,
        by: &Disaggregator,
        shares: &Shares<'_>,
        batches: Range<usize>,
        _found: Found<'_, '_>,
        progress: &mut DisaggregationProgress,
    ) -> (u64, Result<()>) {
        let mut digits = Vec::new();
        one_by_one(shares, batches, progress, |share| {
            let changed = self.update(share.key, |value| {
                if by.changes_in_place() {
                    return Ok(by.change(value, share.part));
                }
                digits.clear();
                let change = by.rewrite(value, share.part, &mut digits);
                match change {
                    Ok(_) => value.set(&digits).map(|()| change),
                    Err(_) => Ok(change),
                }
            })?;
            Ok(changed.transpose()?)
        })
    }
}

impl ChangeObjects for HashLog {
    fn batches_at_once(&self) -> usize {
        // Changes in place keep others from changing in place: not for each batch anew.
        if self.is_in_memory() { 16 } else { 1 }
    }

    fn hold(&self) -> Result<Option<Hold<'_>>> {
        Ok(HashLog::hold(self)?)
    }

    fn change(
        &self,
        by: &Disaggregator,
        shares: &Shares<'_>,
        batches: Range<usize>,
        found: Found<'_, '_>,
        progress: &mut DisaggregationProgress,
    ) -> (u64, Result<()>) {
        if by.changes_in_place() {
            return change_many(self, by, shares, batches, found, progress);
        }
        let mut digits = Vec::new();
        one_by_one(shares, batches, progress, |share| {
            let changed = self.update(share.key, |value| {
                digits.clear();
                let change = by.rewrite(value, share.part, &mut digits);
                match change {
                    Ok(_) => value.set(&digits).map(|()| change),
                    Err(_) => Ok(change),
                }
            })?;
            Ok(changed.transpose()?)
        })
    }
}

impl ChangeObjects for Tree {
    fn batches_at_once(&self) -> usize {
        1
    }

    /// One transaction has the tree. And the caller's thread may collect its commits
    /// (`Pool::together`), for whose end others would wait.
    fn changes_by_threads(&self) -> bool {
        false
    }

    /// In one transaction, so that nothing of them is there where it fails.
    fn change(
        &self,
        by: &Disaggregator,
        shares: &Shares<'_>,
        batches: Range<usize>,
        _found: Found<'_, '_>,
        progress: &mut DisaggregationProgress,
    ) -> (u64, Result<()>) {
        let mut digits = Vec::new();
        let mut outcomes = Vec::new();
        let changed = self.pool().transaction(|tx| {
            for share in batches.clone().flat_map(|at| shares.batch(at).shares()) {
                let changed = tx.update(self, share.key, |value| {
                    if by.changes_in_place() {
                        return Ok(by.change(value, share.part));
                    }
                    digits.clear();
                    let change = by.rewrite(value, share.part, &mut digits);
                    if change.is_ok() {
                        value.resize(digits.len())?;
                        value.copy_from_slice(&digits);
                    }
                    Ok(change)
                })?;
                outcomes.push(changed.transpose()?.map_or(Outcome::Vanished, Outcome::from));
            }
            Ok(())
        });
        if let Err(cause) = changed {
            return (0, Err(cause.into()));
        }
        let done = outcomes.len() as u64;
        let mut outcomes = outcomes.into_iter();
        for at in batches {
            for (share, outcome) in shares.batch(at).shares().zip(outcomes.by_ref()) {
                progress.record(at, &share, outcome);
            }
        }
        (done, Ok(()))
    }
}

/// Records each share as `change` says: what became of the object, if it is there.
fn one_by_one(
    shares: &Shares<'_>,
    batches: Range<usize>,
    progress: &mut DisaggregationProgress,
    mut change: impl FnMut(&Share<'_>) -> Result<Option<std::result::Result<Change, Refusal>>>,
) -> (u64, Result<()>) {
    let mut done = 0;
    for at in batches {
        for share in shares.batch(at).shares() {
            let outcome = match change(&share) {
                Ok(changed) => changed.map_or(Outcome::Vanished, Outcome::from),
                Err(error) => return (done, Err(error)),
            };
            progress.record(at, &share, outcome);
            done += 1;
        }
    }
    (done, Ok(()))
}

/// Changes objects of a hash table in batches: where the collectors met them, if they told.
fn change_many(
    log: &HashLog,
    by: &Disaggregator,
    shares: &Shares<'_>,
    batches: Range<usize>,
    found: Found<'_, '_>,
    progress: &mut DisaggregationProgress,
) -> (u64, Result<()>) {
    let mut done = 0;
    let edit = match found {
        Found::InLog => Some(log.edit()),
        Found::Held(_) | Found::Anyhow => None,
    };
    let mut by_address = ByAddress { edit, log };
    let mut columns = WordColumns::default();
    for at in batches {
        if let Found::Held(hold) = found {
            if let Some(batch) = shares.held_batch(at) {
                let (count, end) = held::change_batch(hold, by, at, &batch, progress);
                done += count;
                if let Err(stopped) = end {
                    return (done, Err(stopped.into()));
                }
                continue;
            }
            // Objects that keep their keys lie there as well, where the hold keeps others from changing in place.
            by_address.edit.get_or_insert_with(|| log.edit());
        }
        let batch = shares.batch(at);
        let (count, end) = match by.changes_words().then(|| columns.load(batch)).flatten() {
            Some(words) => words.change(&by_address, by, at, progress),
            None => change_each(&by_address, by, at, batch, progress),
        };
        done += count as u64;
        if let Err(stopped) = end {
            return (done, Err(stopped.into()));
        }
    }
    (done, Ok(()))
}

/// Changes entries where they were met.
struct ByAddress<'l> {
    edit: Option<Edit<'l>>,
    log: &'l HashLog,
}

impl ByAddress<'_> {
    /// As [`HashLog::update_many`]; `change` is told last of a key that is not there.
    fn update_many<K: AsRef<[u8]>>(
        &self,
        addresses: &[RecordAddress],
        keys: &[K],
        change: impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> std::result::Result<usize, BatchError> {
        match &self.edit {
            Some(edit) => edit.update_at(addresses, keys, change),
            None => self.log.update_at(addresses, keys, change),
        }
    }
}

/// Changes the objects of a batch and records them: how many, and why not all.
fn change_each(
    by_address: &ByAddress<'_>,
    by: &Disaggregator,
    number: usize,
    batch: ShareBatch<'_>,
    progress: &mut DisaggregationProgress,
) -> (usize, std::result::Result<(), BatchError>) {
    let all: Vec<Share<'_>> = batch.shares().collect();
    let keys: Vec<&[u8]> = all.iter().map(|share| share.key).collect();
    let addresses: Vec<RecordAddress> =
        all.iter().map(|share| share.address.unwrap_or_default()).collect();
    let mut outcomes = vec![Outcome::Vanished; all.len()];
    // The last call for a key counts.
    let changed = by_address.update_many(&addresses, &keys, |at, value| {
        outcomes[at] = match value {
            Some(value) => by.change(value, all[at].part).into(),
            None => Outcome::Vanished,
        };
    });
    let (done, end) = how_far(all.len(), changed);
    for (share, outcome) in all.iter().zip(outcomes).take(done) {
        progress.record(number, share, outcome);
    }
    (done, end)
}

/// How many entries of a batch were dealt with.
fn how_far(
    len: usize,
    end: std::result::Result<usize, BatchError>,
) -> (usize, std::result::Result<(), BatchError>) {
    match end {
        Ok(_) => (len, Ok(())),
        Err(stopped) => (stopped.done, Err(stopped)),
    }
}

/// What became of an object whose field is a word.
#[derive(Clone, Copy, PartialEq)]
enum WordState {
    Gone,
    Changed,
    /// The word cannot hold the sum.
    Unfit,
    /// The value ends, after so many bytes, before the word does.
    TooShort(u8),
}

/// Columns of a batch of objects, kept for the next one.
#[derive(Default)]
struct WordColumns {
    addresses: Vec<RecordAddress>,
    parts: Vec<i64>,
    before: Vec<i64>,
    states: Vec<WordState>,
}

/// Objects of 8-byte keys whose field is a word with which the value begins.
struct Words<'a> {
    batch: ShareBatch<'a>,
    keys: &'a [[u8; 8]],
    /// The sum of the parts.
    given: i128,
    columns: &'a mut WordColumns,
}

impl WordColumns {
    /// `None` if keys or parts are no words.
    fn load<'a>(&'a mut self, batch: ShareBatch<'a>) -> Option<Words<'a>> {
        let keys = batch.word_keys()?;
        let given = batch.word_parts(&mut self.parts)?;
        if !batch.addresses(&mut self.addresses) {
            self.addresses.resize(keys.len(), RecordAddress::default());
        }
        self.before.resize(keys.len(), 0);
        self.states.clear();
        self.states.resize(keys.len(), WordState::Gone);
        Some(Words { batch, keys, given, columns: self })
    }
}

impl Words<'_> {
    /// As `change_each`.
    fn change(
        self,
        by_address: &ByAddress<'_>,
        by: &Disaggregator,
        number: usize,
        progress: &mut DisaggregationProgress,
    ) -> (usize, std::result::Result<(), BatchError>) {
        const LEN: usize = size_of::<i64>();
        let WordColumns { addresses, parts, before, states } = self.columns;
        let is_added = by.action() == Action::Add;
        // The last call for a key counts.
        let changed = by_address.update_many(addresses, self.keys, |at, value| {
            let Some(value) = value else {
                states[at] = WordState::Gone;
                return;
            };
            let Some(word) = value.first_chunk_mut::<LEN>() else {
                states[at] = WordState::TooShort(value.len() as u8);
                return;
            };
            let held = i64::from_le_bytes(*word);
            let becomes = if is_added { held.checked_add(parts[at]) } else { Some(parts[at]) };
            states[at] = if becomes.is_some() { WordState::Changed } else { WordState::Unfit };
            before[at] = held;
            *word = becomes.unwrap_or(held).to_le_bytes();
        });
        let (done, end) = how_far(self.keys.len(), changed);
        let is_changed = |state: &WordState| *state == WordState::Changed;
        if done == self.keys.len() && states.iter().all(is_changed) {
            progress.record_words(number, before, self.given);
            return (done, end);
        }
        for (share, at) in self.batch.shares().zip(0..done) {
            let mut word: [u8; LEN] = i64::to_le_bytes(before[at]);
            let outcome = match states[at] {
                WordState::Gone => Outcome::Vanished,
                // What was found is asked again, of a copy: it answers as it did.
                WordState::Changed | WordState::Unfit => by.change(&mut word, share.part).into(),
                WordState::TooShort(len) => {
                    by.change(&mut word[..usize::from(len)], share.part).into()
                }
            };
            progress.record(number, &share, outcome);
        }
        (done, end)
    }
}
