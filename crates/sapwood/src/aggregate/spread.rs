//! Disaggregation: a total, spread over the objects of a table.
//!
//! First the objects are collected, by an executor as for a query, and each one's part is computed;
//! nothing is changed so far. Then the objects are changed by their keys, in batches that the
//! threads share, each object in one step for every reader.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use sapwood_aggregate::{
    Action, Batch, Change, Collector, Disaggregated, Disaggregation, Disaggregator, Fate, Pending,
    Progress, Refusal, Share, Shares,
};
use sapwood_hashlog::{BatchError, Place};

use super::objects::{Asked, Crew, Objects};
use super::{Execution, Executor, Measured, Plan};
use crate::hash_table::Placing;
use crate::{Error, HashTable, OrderedTable, Result};

/// What a disaggregation came to.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// What was done, and what is left.
    pub report: Disaggregated,
    /// What is left, if anything: the same objects get it from
    /// [`OrderedTable::resume`] or [`HashTable::resume`], now or later, in this process or another
    /// ([`Pending::encode`]).
    pub pending: Option<Pending>,
    /// Why something is left: [`Error::Cancelled`], or what an engine refused.
    pub stopped: Option<Error>,
    /// How the objects were reached, and what was measured of that; none if it was gone on with.
    pub plan: Option<Plan>,
}

impl Settlement {
    fn whole(self) -> Result<Disaggregated> {
        match self.stopped {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}

/// What an engine can do for disaggregations.
pub(super) trait Changes: Objects {
    /// How many batches of shares are handed over at once.
    fn batches_at_once(&self) -> usize;

    /// Gives the objects of some batches their parts, in order, and settles them. Answers how many,
    /// and why not all. `in_log_order`: a walk of the log met them.
    fn change(
        &self,
        by: &Disaggregator,
        shares: &Shares,
        batches: Range<usize>,
        in_log_order: bool,
        progress: &mut Progress,
    ) -> (u64, Result<()>);
}

impl Changes for OrderedTable {
    fn batches_at_once(&self) -> usize {
        1
    }

    fn change(
        &self,
        by: &Disaggregator,
        shares: &Shares,
        batches: Range<usize>,
        _in_log_order: bool,
        progress: &mut Progress,
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
            changed.transpose()
        })
    }
}

impl Changes for HashTable {
    fn batches_at_once(&self) -> usize {
        // Changes in place keep others from changing in place: not for each batch anew.
        if self.is_in_memory() { 16 } else { 1 }
    }

    fn change(
        &self,
        by: &Disaggregator,
        shares: &Shares,
        batches: Range<usize>,
        in_log_order: bool,
        progress: &mut Progress,
    ) -> (u64, Result<()>) {
        if by.changes_in_place() {
            return change_many(self, by, shares, batches, in_log_order, progress);
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
            changed.transpose()
        })
    }
}

/// Settles each share as `change` says: what became of the object, if it is there.
fn one_by_one(
    shares: &Shares,
    batches: Range<usize>,
    progress: &mut Progress,
    mut change: impl FnMut(&Share<'_>) -> Result<Option<std::result::Result<Change, Refusal>>>,
) -> (u64, Result<()>) {
    let mut done = 0;
    for at in batches {
        for share in shares.batch(at).shares() {
            let fate = match change(&share) {
                Ok(changed) => changed.map_or(Fate::Vanished, Fate::from),
                Err(error) => return (done, Err(error)),
            };
            progress.settle(at, &share, fate);
            done += 1;
        }
    }
    (done, Ok(()))
}

/// Changes objects of a hash table in batches: where the collectors met them, if they told.
fn change_many(
    table: &HashTable,
    by: &Disaggregator,
    shares: &Shares,
    batches: Range<usize>,
    in_log_order: bool,
    progress: &mut Progress,
) -> (u64, Result<()>) {
    let mut done = 0;
    let end = table.change_placed(in_log_order, |placing| {
        let mut columns = WordColumns::default();
        for at in batches {
            let batch = shares.batch(at);
            let (count, end) = match by.changes_words().then(|| columns.load(batch)).flatten() {
                Some(words) => words.change(placing, by, at, progress),
                None => change_each(placing, by, at, batch, progress),
            };
            done += count as u64;
            end?;
        }
        Ok(())
    });
    (done, end)
}

/// Changes the objects of a batch and settles them: how many, and why not all.
fn change_each(
    placing: &Placing<'_>,
    by: &Disaggregator,
    number: usize,
    batch: Batch<'_>,
    progress: &mut Progress,
) -> (usize, std::result::Result<(), BatchError>) {
    let all: Vec<Share<'_>> = batch.shares().collect();
    let keys: Vec<&[u8]> = all.iter().map(|share| share.key).collect();
    let place = |share: &Share<'_>| share.place.map_or(Place::default(), Place::from_word);
    let places: Vec<Place> = all.iter().map(place).collect();
    let mut fates = vec![Fate::Vanished; all.len()];
    // The last call for a key counts.
    let changed = placing.update_many(&places, &keys, |at, value| {
        fates[at] = match value {
            Some(value) => by.change(value, all[at].part).into(),
            None => Fate::Vanished,
        };
    });
    let (done, end) = how_far(all.len(), changed);
    for (share, fate) in all.iter().zip(fates).take(done) {
        progress.settle(number, share, fate);
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
    places: Vec<Place>,
    parts: Vec<i64>,
    before: Vec<i64>,
    states: Vec<WordState>,
}

/// Objects of 8-byte keys whose field is a word with which the value begins.
struct Words<'a> {
    batch: Batch<'a>,
    keys: &'a [[u8; 8]],
    /// The sum of the parts.
    given: i128,
    columns: &'a mut WordColumns,
}

impl WordColumns {
    /// `None` if keys or parts are no words.
    fn load<'a>(&'a mut self, batch: Batch<'a>) -> Option<Words<'a>> {
        let keys = batch.word_keys()?;
        let given = batch.word_parts(&mut self.parts)?;
        if !batch.places(&mut self.places, Place::from_word) {
            self.places.resize(keys.len(), Place::default());
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
        placing: &Placing<'_>,
        by: &Disaggregator,
        number: usize,
        progress: &mut Progress,
    ) -> (usize, std::result::Result<(), BatchError>) {
        const LEN: usize = size_of::<i64>();
        let WordColumns { places, parts, before, states } = self.columns;
        let is_added = by.action() == Action::Add;
        // The last call for a key counts.
        let changed = placing.update_many(places, self.keys, |at, value| {
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
            progress.settle_words(number, before, self.given);
            return (done, end);
        }
        for (share, at) in self.batch.shares().zip(0..done) {
            let mut word: [u8; LEN] = i64::to_le_bytes(before[at]);
            let fate = match states[at] {
                WordState::Gone => Fate::Vanished,
                // What was found is asked again, of a copy: it answers as it did.
                WordState::Changed | WordState::Unfit => by.change(&mut word, share.part).into(),
                WordState::TooShort(len) => {
                    by.change(&mut word[..usize::from(len)], share.part).into()
                }
            };
            progress.settle(number, &share, fate);
        }
        (done, end)
    }
}

fn disaggregate(
    objects: &impl Changes,
    table: &Arc<str>,
    by: &Disaggregator,
    execution: &Execution<'_>,
) -> Result<Settlement> {
    let asked = Asked::by_disaggregation(by, execution);
    let mut plan = Plan::choose(table, objects.candidates(&asked), execution)?;
    let begin = Instant::now();
    let crew = Crew::new(execution, plan.expected().visits);
    let gathered = objects
        .reach(plan.executor, &asked, &crew, &|| by.collector())
        .map_err(|ended| ended.into_error(table, &crew))?;
    let mut collected: Vec<_> = gathered.parts.into_iter().map(Collector::into_collected).collect();
    let selected = collected.iter().map(|part| part.tally().selected).sum();
    if let Some(keys) = by.selection().as_keys() {
        let mut absent = by.collector();
        absent.add_absent((keys.len() as u64).saturating_sub(selected));
        collected.push(absent.into_collected());
    }
    let shares = by.shares(collected)?;
    plan.measured =
        Some(Measured { elapsed: begin.elapsed(), visited: gathered.visited, selected });
    let in_log_order = plan.executor == Executor::Log;
    let settlement = settle(objects, table, by, &shares, in_log_order, execution);
    Ok(Settlement { plan: Some(plan), ..settlement })
}

fn resume(
    objects: &impl Changes,
    table: &Arc<str>,
    by: &Disaggregator,
    pending: Pending,
    execution: &Execution<'_>,
) -> Result<Settlement> {
    Ok(settle(objects, table, by, &by.resume(pending)?, false, execution))
}

/// Gives all objects their parts, or those before it is stopped.
fn settle(
    objects: &impl Changes,
    table: &Arc<str>,
    by: &Disaggregator,
    shares: &Shares,
    in_log_order: bool,
    execution: &Execution<'_>,
) -> Settlement {
    let crew = Crew::new(execution, shares.count());
    let (count, at_once) = (shares.batch_count(), objects.batches_at_once());
    let turns = count.div_ceil(at_once);
    let (parts, ended) = crew.all_parts(turns, &|| shares.progress(), |turn, work| {
        let batches = turn * at_once..((turn + 1) * at_once).min(count);
        let (done, end) = objects.change(by, shares, batches, in_log_order, &mut work.gather);
        let flow = work.count(done);
        end.map(|()| flow)
    });
    let progress = parts.into_iter().map(|(progress, _)| progress).reduce(Progress::merge);
    let progress = progress.unwrap_or_else(|| shares.progress());
    let report = shares.report(&progress);
    let mut settlement = Settlement { report, pending: None, stopped: None, plan: None };
    // Told to stop when all was done, it did all.
    if settlement.report.pending > 0 {
        settlement.stopped = ended.map(|ended| ended.into_error(table, &crew));
        match shares.pending(&progress) {
            Ok(pending) => settlement.pending = Some(pending),
            Err(cause) => settlement.stopped = Some(Error::Query(cause)),
        }
    }
    settlement
}

macro_rules! operations {
    ($table:ty) => {
        impl $table {
            /// Spreads a total over a field of the table's objects: the way back from a figure.
            /// Every object gets its part in one step for every reader, the parts add up to the
            /// total exactly, and nothing is changed unless all of them fit.
            ///
            /// Not one atomic operation: others may see some objects changed and some not yet. An
            /// object that goes away between being collected and being changed does not get its
            /// part, which the report tells; one that comes meanwhile has none.
            ///
            /// # Errors
            /// [`Error::Query`]: it does not fit together, no object is selected, or a part does
            /// not fit into its field; nothing was changed. What stops it later is answered too;
            /// [`disaggregate_with`](Self::disaggregate_with) keeps what is left to go on with.
            ///
            /// ```
            /// # use sapwood::aggregate::{Disaggregation, Execution};
            /// # use sapwood::{Db, HashTableOptions};
            /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
            /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
            /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding();
            /// let report = table.disaggregate(&more)?;
            /// assert_eq!((report.changed, report.given), (2, 10));
            /// # Ok::<(), sapwood::Error>(())
            /// ```
            pub fn disaggregate(&self, what: &Disaggregation) -> Result<Disaggregated> {
                self.disaggregate_with(&what.compile()?, &Execution::new())?.whole()
            }

            /// As [`disaggregate`](Self::disaggregate), run as told. If it is cancelled while
            /// objects are collected, that is an error. If it is later, or the engine refuses to
            /// change an object, the answer says what was done and holds what is left, for
            /// [`resume`](Self::resume).
            ///
            /// # Errors
            /// Nothing was changed: as [`disaggregate`](Self::disaggregate), and
            /// [`Error::Cancelled`], [`Error::Executor`].
            ///
            /// ```
            /// # use sapwood::aggregate::{Disaggregation, Execution};
            /// # use sapwood::{Db, HashTableOptions};
            /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
            /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
            /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding().compile()?;
            /// let settlement = table.disaggregate_with(&more, &Execution::new().threads(2))?;
            /// assert!(settlement.stopped.is_none() && settlement.pending.is_none());
            /// assert_eq!(settlement.report.given, 10);
            /// # Ok::<(), sapwood::Error>(())
            /// ```
            pub fn disaggregate_with(
                &self,
                by: &Disaggregator,
                execution: &Execution<'_>,
            ) -> Result<Settlement> {
                disaggregate(self, &self.shared.name, by, execution)
            }

            /// Gives those objects their parts that a disaggregation left, each exactly once.
            ///
            /// # Errors
            /// [`Error::Query`] if they were left by another disaggregation.
            ///
            /// ```
            /// # use sapwood::aggregate::{Disaggregation, Execution};
            /// # use sapwood::{Db, HashTableOptions};
            /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
            /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
            /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding().compile()?;
            /// let mut settlement = table.disaggregate_with(&more, &Execution::new())?;
            /// // What a cancellation left, or an engine that had no memory.
            /// while let Some(pending) = settlement.pending.take() {
            ///     settlement = table.resume(&more, pending, &Execution::new())?;
            /// }
            /// assert_eq!(settlement.report.given, 10);
            /// # Ok::<(), sapwood::Error>(())
            /// ```
            pub fn resume(
                &self,
                by: &Disaggregator,
                pending: Pending,
                execution: &Execution<'_>,
            ) -> Result<Settlement> {
                resume(self, &self.shared.name, by, pending, execution)
            }
        }
    };
}

operations!(OrderedTable);
operations!(HashTable);
