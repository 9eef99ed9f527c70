//! The shares: the part of each object.

use sapwood_engine::{HeldKeys, RecordAddress, RecordRun};
use sapwood_mem::vector::Level;

use super::apportion;
use super::chunk::{AddressIter, Chunk, Ints, Keys};
use super::collect::Collected;
use super::disaggregator::{Disaggregator, Weight};
use super::field::{Action, Amount};
use super::recorded::{Recorded, value_of};
use super::select::{Bound, WordBound};
use crate::columns::kernels;
use crate::error::{Example, QueryError, Result};
use crate::fold::partial::{Tally, count_overflow};
use crate::question::query::Mismatches;
use crate::state::Sum;
use crate::value::Value;

/// The parts of a total, each of an object: what is to be applied. See
/// [`Disaggregation`](crate::Disaggregation) for an example.
///
/// They come in batches, in the order in which the objects were collected. Threads may take different
/// batches.
#[derive(Debug, Clone)]
pub struct Shares<'k> {
    pub(super) fingerprint: u64,
    pub(super) total: i128,
    pub(super) action: Action,
    pub(super) chunks: Vec<Chunk>,
    /// What holds the keys that chunks have not.
    pub(super) held: Option<&'k dyn HeldKeys>,
    pub(super) parts: Parts,
    pub(super) tally: Tally,
    /// What the fields held when they were collected.
    pub(super) before: Sum,
    /// What was done before the rest was gone on with.
    pub(super) carried: Recorded,
}

#[derive(Debug, Clone)]
pub(super) enum Parts {
    Equal {
        base: i128,
        /// One, with the sign of the total.
        unit: i128,
        /// The objects that get a unit more.
        bound: Bound,
        word: WordBound,
    },
    /// Of each chunk.
    Each(Vec<Ints>),
}

/// Shares that are applied one after the other.
#[derive(Debug, Clone, Copy)]
pub struct ShareBatch<'a> {
    chunk: &'a Chunk,
    keys: &'a Keys,
    parts: BatchParts<'a>,
}

/// A batch of shares of objects whose keys are in records that stay where they are.
#[derive(Debug, Clone, Copy)]
pub struct HeldBatch<'a> {
    runs: &'a [RecordRun],
    /// The part of an object, by its key.
    pub parts: EqualParts,
}

/// The parts of objects that depend on their keys alone: the lesser ones get more, if not all get the
/// same.
///
/// ```
/// use sapwood_aggregate::EqualParts;
///
/// let parts = EqualParts { least: -2, more: -3, below: 7 };
/// assert_eq!([6_u64, 7].map(|key| parts.of(key.to_be_bytes())), [-3, -2]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EqualParts {
    /// The part of most.
    pub least: i128,
    /// The part of those whose key, most significant byte first, lies below.
    pub more: i128,
    /// The key that parts them.
    pub below: u64,
}

impl EqualParts {
    /// The part of the object with a key.
    #[inline]
    pub fn of(&self, key: [u8; 8]) -> i128 {
        if u64::from_be_bytes(key) < self.below { self.more } else { self.least }
    }

    /// The same as words; `None` if one has more than 64 bits.
    pub fn words(&self) -> Option<WordParts> {
        let [least, more] = [self.least, self.more].map(|part| i64::try_from(part).ok());
        Some(WordParts { least: least?, more: more?, below: self.below })
    }
}

/// [`EqualParts`] of objects whose field is a word, as [`Disaggregator::changes_words`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordParts {
    least: i64,
    more: i64,
    below: u64,
}

/// What several words held before, and got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordSums {
    /// The sum of the words before.
    pub before: i128,
    /// The sum of the parts.
    pub given: i128,
}

impl WordParts {
    /// What a word becomes; `None` if it cannot hold that.
    #[inline]
    pub fn give_one(&self, action: Action, key: [u8; 8], word: [u8; 8]) -> Option<[u8; 8]> {
        let part = if u64::from_be_bytes(key) < self.below { self.more } else { self.least };
        match action {
            Action::Set => Some(part.to_le_bytes()),
            Action::Add => i64::from_le_bytes(word).checked_add(part).map(i64::to_le_bytes),
        }
    }

    /// Gives less than 2^31 words their parts, by their keys. `None`, and none has changed, if one
    /// cannot hold what it would become.
    ///
    /// ```
    /// use sapwood_aggregate::{Action, EqualParts, WordSums};
    ///
    /// let parts = EqualParts { least: 1, more: 2, below: 7 }.words().expect("words");
    /// let keys = [6_u64, 7].map(u64::to_be_bytes);
    /// let mut words = [40_i64, 50].map(i64::to_le_bytes);
    /// let sums = parts.give(Action::Add, &keys, &mut words);
    /// assert_eq!(sums, Some(WordSums { before: 90, given: 3 }));
    /// assert_eq!(words.map(i64::from_le_bytes), [42, 51]);
    /// ```
    pub fn give(
        &self,
        action: Action,
        keys: &[[u8; 8]],
        words: &mut [[u8; 8]],
    ) -> Option<WordSums> {
        let (level, &WordParts { least, more, below }) = (Level::detected(), self);
        if action == Action::Set {
            let before = kernels::span_of_words(level, words, (0, 0)).0;
            words.fill([0; 8]);
            let (got_more, _, _) = kernels::add_below(level, keys, below, (least, more), words);
            return Some(self.sums(keys.len(), got_more, before));
        }
        let (got_more, before, overflows) =
            kernels::add_below(level, keys, below, (least, more), words);
        if overflows {
            let back = (least.wrapping_neg(), more.wrapping_neg());
            kernels::add_below(level, keys, below, back, words);
            return None;
        }
        Some(self.sums(keys.len(), got_more, before))
    }

    fn sums(&self, count: usize, got_more: u64, before: i128) -> WordSums {
        let [least, more] = [self.least, self.more].map(i128::from);
        WordSums { before, given: count as i128 * least + i128::from(got_more) * (more - least) }
    }
}

#[derive(Debug, Clone, Copy)]
enum BatchParts<'a> {
    Equal { base: i128, unit: i128, bound: &'a Bound, word: WordBound },
    Each(&'a Ints),
}

/// The part of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share<'a> {
    /// The object's key.
    pub key: &'a [u8],
    /// Where it lies, as its collector was told.
    pub address: Option<RecordAddress>,
    /// Its part of the total.
    pub part: i128,
}

impl Disaggregator {
    /// Computes the parts of all objects that were collected, in the order in which they are given.
    /// What part an object gets does not depend on that order.
    ///
    /// That each object was collected once is up to the caller; a second time is found only where it
    /// would make the parts' sum another than the total.
    ///
    /// # Errors
    /// Nothing was changed: [`QueryError::Mismatched`], [`QueryError::NoObjects`], [`QueryError::NoWeights`],
    /// [`QueryError::Unfit`] if a part does not fit into its field, [`QueryError::Overflow`] of the sum of the
    /// weights, [`QueryError::Twice`], [`QueryError::OtherDisaggregation`].
    pub fn shares(
        &self,
        collected: impl IntoIterator<Item = Collected>,
    ) -> Result<Shares<'static>> {
        Shares::of(self, collected.into_iter().collect(), None)
    }

    /// As [`Disaggregator::shares`], of objects whose keys are read from what holds their records.
    ///
    /// # Errors
    /// As [`Disaggregator::shares`].
    ///
    /// # Panics
    /// If the collectors met them elsewhere.
    pub fn shares_of_held<'k>(
        &self,
        collected: impl IntoIterator<Item = Collected>,
        held: &'k dyn HeldKeys,
    ) -> Result<Shares<'k>> {
        Shares::of(self, collected.into_iter().collect(), Some(held))
    }
}

impl<'k> Shares<'k> {
    pub(super) fn of(
        by: &Disaggregator,
        collected: Vec<Collected>,
        held: Option<&'k dyn HeldKeys>,
    ) -> Result<Shares<'k>> {
        let mut all = Collected::nothing(by.fingerprint());
        for collected in collected {
            by.check_own(collected.fingerprint)?;
            all.merge(collected)?;
        }
        if let (Mismatches::Refuse, Some(first)) = (by.mismatches, &all.tally.first_mismatch) {
            return Err(QueryError::Mismatched {
                count: all.tally.mismatched,
                selected: all.tally.selected,
                first: Box::new(first.clone()),
            });
        }
        let parts = parts(by, &mut all, held)?;
        let shares = Shares {
            fingerprint: by.fingerprint(),
            total: by.total,
            action: by.action,
            chunks: all.chunks,
            held,
            parts,
            tally: all.tally,
            before: all.before,
            carried: Recorded::default(),
        };
        shares.check_fit(by)?;
        Ok(shares)
    }

    /// How many batches there are.
    pub fn batch_count(&self) -> usize {
        self.chunks.len()
    }

    /// One of the batches, from 0 on.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn batch(&self, at: usize) -> ShareBatch<'_> {
        let parts = match &self.parts {
            Parts::Equal { base, unit, bound, word } => {
                BatchParts::Equal { base: *base, unit: *unit, bound, word: *word }
            }
            Parts::Each(parts) => BatchParts::Each(&parts[at]),
        };
        let chunk = &self.chunks[at];
        ShareBatch { chunk, keys: chunk.keys(self.held), parts }
    }

    /// One of the batches, if records hold its keys. [`Shares::batch`] reads them.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn held_batch(&self, at: usize) -> Option<HeldBatch<'_>> {
        let Chunk { keys: Keys::Held { .. }, addresses, .. } = &self.chunks[at] else {
            return None;
        };
        let Parts::Equal { base, unit, word, .. } = self.parts else { return None };
        let (least, below) = match word {
            WordBound::Below(below) => (base, below),
            WordBound::All => (base + unit, 0),
        };
        let parts = EqualParts { least, more: base + unit, below };
        Some(HeldBatch { runs: addresses.runs(), parts })
    }

    /// How many objects there are in all batches.
    pub fn count(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.keys.len() as u64).sum()
    }

    /// How many objects were selected, matched the filter, and were mismatched.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The sum of the fields when they were collected.
    ///
    /// # Errors
    /// [`QueryError::Overflow`] if it leaves the range of its type.
    pub fn sum_before(&self) -> Result<Value<'static>> {
        value_of(&self.before)
    }

    /// Refuses what some field cannot become, with the object of the least key as an example.
    fn check_fit(&self, by: &Disaggregator) -> Result<()> {
        let mut unfit = Unfit::default();
        let fits = |part| by.target.after(Amount::Missing, by.action, part).is_ok();
        // Those of equal shares are at most two different ones.
        if let (Action::Set, Parts::Equal { base, unit, bound, .. }) = (by.action, &self.parts)
            && fits(*base)
            && (*bound == Bound::None || fits(base + unit))
        {
            return Ok(());
        }
        for (at, chunk) in self.chunks.iter().enumerate() {
            if by.action == Action::Add && chunk.risks.at.is_empty() {
                continue;
            }
            let batch = self.batch(at);
            match by.action {
                Action::Set => {
                    for share in batch.shares() {
                        unfit.check(by, &share, Amount::Missing);
                    }
                }
                Action::Add => {
                    for (risk, &object) in chunk.risks.at.iter().enumerate() {
                        let before = by.target.amount(chunk.risks.before.get(risk));
                        let at = object as usize;
                        let key = batch.keys.get(at);
                        let share = Share { key, address: None, part: batch.part(at) };
                        unfit.check(by, &share, before);
                    }
                }
            }
        }
        match unfit.first {
            None => Ok(()),
            Some(first) => Err(QueryError::Unfit { count: unfit.count, first: Box::new(first) }),
        }
    }
}

#[derive(Debug, Default)]
struct Unfit {
    count: u64,
    first: Option<Example>,
}

impl Unfit {
    fn check(&mut self, by: &Disaggregator, share: &Share<'_>, before: Amount) {
        let Err(why) = by.target.after(before, by.action, share.part) else { return };
        self.count += 1;
        let key = &share.key[..share.key.len().min(Example::KEY_BYTES_MAX)];
        if self.first.as_ref().is_none_or(|first| key < &first.key[..]) {
            let what = format!("field `{}` {why}", by.target.name());
            self.first = Some(Example { key: key.to_vec(), what });
        }
    }
}

fn parts(by: &Disaggregator, all: &mut Collected, held: Option<&dyn HeldKeys>) -> Result<Parts> {
    let (count, magnitude) = (all.tally.matched, by.total.unsigned_abs());
    if count == 0 {
        return match by.total {
            0 => Ok(Parts::Each(Vec::new())),
            total => Err(QueryError::NoObjects { total }),
        };
    }
    // Magnitudes up to 2^127 pass as negative numbers and come back.
    let signed = |magnitude: i128| if by.total < 0 { magnitude.wrapping_neg() } else { magnitude };
    if matches!(by.weight, Weight::Equal) {
        let (base, bound) = apportion::equally(magnitude, all, held).map_err(|key| twice(&key))?;
        let word = bound.word();
        return Ok(Parts::Equal { base: signed(base.cast_signed()), unit: signed(1), bound, word });
    }
    if all.weight_sum == 0 {
        return match by.total {
            0 => Ok(Parts::Each(
                all.chunks
                    .iter()
                    .map(|chunk| vec![0; chunk.keys.len()].into_iter().collect())
                    .collect(),
            )),
            total => Err(QueryError::NoWeights { total, count }),
        };
    }
    let parts = apportion::in_proportion(magnitude, &all.chunks, all.weight_sum, all.weight_max);
    let mut parts = parts.map_err(|key| twice(&key))?;
    if by.total < 0 {
        parts.iter_mut().for_each(Ints::negate);
    }
    Ok(Parts::Each(parts))
}

/// The error of an object that was collected twice.
pub(super) fn twice(key: &[u8]) -> QueryError {
    QueryError::Twice { key: Value::from(key).to_string() }
}

impl Collected {
    pub(super) fn nothing(fingerprint: u64) -> Collected {
        Collected {
            fingerprint,
            chunks: Vec::new(),
            tally: Tally::default(),
            before: Sum::default(),
            weight_sum: 0,
            weight_max: 0,
            guessed: None,
        }
    }

    /// How many objects were selected, matched the filter, and were mismatched.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    fn merge(&mut self, other: Collected) -> Result<()> {
        self.chunks.extend(other.chunks);
        self.tally.merge(other.tally)?;
        self.before.merge(&other.before).map_err(|_| count_overflow())?;
        self.weight_sum += other.weight_sum;
        self.weight_max = self.weight_max.max(other.weight_max);
        match (&mut self.guessed, other.guessed) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => *own = other,
            (Some(_), None) => {}
        }
        Ok(())
    }
}

impl<'a> ShareBatch<'a> {
    /// How many shares it has.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has none; no batch of [`Shares`] is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shares, in their order.
    pub fn shares(&self) -> impl Iterator<Item = Share<'a>> + use<'a> {
        let batch = *self;
        let mut addresses: AddressIter<'a> = batch.chunk.addresses.iter();
        (0..batch.len()).map(move |at| Share {
            key: batch.keys.get(at),
            address: addresses.next(),
            part: batch.part(at),
        })
    }

    /// The keys, if all are of 8 bytes.
    pub fn word_keys(&self) -> Option<&'a [[u8; 8]]> {
        self.keys.words()
    }

    /// Sets `out` to the addresses of the objects. False, and it is empty, if they are not known.
    pub fn addresses(&self, out: &mut Vec<RecordAddress>) -> bool {
        self.chunk.addresses.list(out)
    }

    /// Sets `out` to the parts, and answers their sum. None, and it is empty, if one has more than 64
    /// bits.
    pub fn word_parts(&self, out: &mut Vec<i64>) -> Option<i128> {
        out.clear();
        match self.parts {
            BatchParts::Each(Ints::Narrow(parts)) => {
                out.extend_from_slice(parts);
                Some(kernels::sum_signed(Level::detected(), parts))
            }
            BatchParts::Each(Ints::Wide(_)) => None,
            BatchParts::Equal { base, unit, word, .. } => {
                let least = i64::try_from(base).ok()?;
                let more = i64::try_from(base.wrapping_add(unit)).ok()?;
                let sum_with = |units: u64| base * self.len() as i128 + unit * i128::from(units);
                match (self.word_keys(), word) {
                    (Some(keys), WordBound::Below(word)) => {
                        out.resize(keys.len(), 0);
                        let level = Level::detected();
                        let units = kernels::choose_below(level, keys, word, more, least, out);
                        Some(sum_with(units))
                    }
                    (Some(keys), WordBound::All) => {
                        out.resize(keys.len(), more);
                        Some(sum_with(keys.len() as u64))
                    }
                    (None, _) => {
                        // One of the two, so it fits.
                        out.extend((0..self.len()).map(|at| self.part(at) as i64));
                        Some(kernels::sum_signed(Level::detected(), out))
                    }
                }
            }
        }
    }

    #[inline]
    fn part(&self, at: usize) -> i128 {
        match self.parts {
            BatchParts::Each(parts) => parts.get(at),
            BatchParts::Equal { base, unit, bound, word } => {
                let has_unit = match (self.keys.words(), word) {
                    (Some(words), WordBound::Below(word)) => u64::from_be_bytes(words[at]) < word,
                    (Some(_), WordBound::All) => true,
                    (None, _) => bound.is_above(self.keys.get(at)),
                };
                base + if has_unit { unit } else { 0 }
            }
        }
    }
}

impl<'a> HeldBatch<'a> {
    /// Where the objects lie, in their order.
    pub fn runs(&self) -> &'a [RecordRun] {
        self.runs
    }
}
