//! The shares: the part of each object.

use fearless_simd::Level;
use sapwood_engine::RecordAddress;

use super::Action;
use super::apportion;
use super::chunk::{AddressIter, Chunk, Ints};
use super::collect::Collected;
use super::disaggregator::{Disaggregator, Weight};
use super::field::Amount;
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
pub struct Shares {
    pub(super) fingerprint: u64,
    pub(super) total: i128,
    pub(super) action: Action,
    pub(super) chunks: Vec<Chunk>,
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
    parts: BatchParts<'a>,
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
    pub fn shares(&self, collected: impl IntoIterator<Item = Collected>) -> Result<Shares> {
        Shares::of(self, collected.into_iter().collect())
    }
}

impl Shares {
    pub(super) fn of(by: &Disaggregator, collected: Vec<Collected>) -> Result<Shares> {
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
        let parts = parts(by, &all)?;
        let shares = Shares {
            fingerprint: by.fingerprint(),
            total: by.total,
            action: by.action,
            chunks: all.chunks,
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
        ShareBatch { chunk: &self.chunks[at], parts }
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
        for (at, chunk) in self.chunks.iter().enumerate() {
            let batch = self.batch(at);
            match by.action {
                Action::Set => {
                    // Those of equal shares are at most two different ones.
                    if let BatchParts::Equal { base, unit, bound, .. } = batch.parts
                        && by.target.after(Amount::Missing, by.action, base).is_ok()
                        && (*bound == Bound::None
                            || by.target.after(Amount::Missing, by.action, base + unit).is_ok())
                    {
                        continue;
                    }
                    for share in batch.shares() {
                        unfit.check(by, &share, Amount::Missing);
                    }
                }
                Action::Add => {
                    for (risk, &object) in chunk.risks.at.iter().enumerate() {
                        let before = by.target.amount(chunk.risks.before.get(risk));
                        let at = object as usize;
                        let share =
                            Share { key: chunk.keys.get(at), address: None, part: batch.part(at) };
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

fn parts(by: &Disaggregator, all: &Collected) -> Result<Parts> {
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
        let (base, bound) =
            apportion::equally(magnitude, &all.chunks, count).map_err(|key| twice(&key))?;
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
        Ok(())
    }
}

impl<'a> ShareBatch<'a> {
    /// How many shares it has.
    pub fn len(&self) -> usize {
        self.chunk.keys.len()
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
            key: batch.chunk.keys.get(at),
            address: addresses.next(),
            part: batch.part(at),
        })
    }

    /// The keys, if all are of 8 bytes.
    pub fn word_keys(&self) -> Option<&'a [[u8; 8]]> {
        self.chunk.keys.words()
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
                Some(kernels::sum_signed(Level::new(), parts))
            }
            BatchParts::Each(Ints::Wide(_)) => None,
            BatchParts::Equal { base, unit, word, .. } => {
                let least = i64::try_from(base).ok()?;
                let more = i64::try_from(base.wrapping_add(unit)).ok()?;
                let sum_with = |units: u64| base * self.len() as i128 + unit * i128::from(units);
                match (self.word_keys(), word) {
                    (Some(keys), WordBound::Below(word)) => {
                        out.resize(keys.len(), 0);
                        let level = Level::new();
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
                        Some(kernels::sum_signed(Level::new(), out))
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
                let has_unit = match (self.chunk.keys.words(), word) {
                    (Some(words), WordBound::Below(word)) => u64::from_be_bytes(words[at]) < word,
                    (Some(_), WordBound::All) => true,
                    (None, _) => bound.is_above(self.chunk.keys.get(at)),
                };
                base + if has_unit { unit } else { 0 }
            }
        }
    }
}
