//! The shares that are left, and their bytes.
//!
//! The rest of a disaggregation: keys and parts of the objects that are not recorded, and what the
//! recorded ones add up to. Its bytes have one form, as those of partial states do.

use super::chunk::{AddressColumn, Chunk, Ints};
use super::disaggregator::Disaggregator;
use super::progress::DisaggregationProgress;
use super::recorded::Recorded;
use super::shares::{Parts, Shares, twice};
use crate::error::Result;
use crate::fold::partial::Tally;
use crate::state::Sum;
use crate::value::stored::{self, Corrupt, Envelope, Reader};

/// What is left of a disaggregation that was stopped: keys and parts. The same description goes on
/// with it, by [`Disaggregator::resume`], in the same table or in a copy of it, in any engine.
///
/// ```
/// use sapwood::aggregate::Disaggregation;
///
/// let grant = Disaggregation::new("n:i64le".parse()?, "n", 7).adding().compile()?;
/// let mut objects = [[10_i64.to_le_bytes()], [20_i64.to_le_bytes()]];
/// let mut collector = grant.collector();
/// for (at, [value]) in objects.iter().enumerate() {
///     collector.push(&[at as u8], value);
/// }
/// let shares = grant.shares([collector.into_collected()])?;
///
/// // Stopped after the first object.
/// let mut progress = shares.progress();
/// let share = shares.batch(0).shares().next().expect("two objects");
/// progress.record(0, &share, grant.change(&mut objects[0][0], share.part).into());
/// let saved = shares.pending(&progress)?.encode();
///
/// // Gone on with elsewhere.
/// let rest = grant.resume(grant.decode(&saved)?)?;
/// let mut progress = rest.progress();
/// for share in rest.batch(0).shares() {
///     let value = &mut objects[usize::from(share.key[0])][0];
///     progress.record(0, &share, grant.change(value, share.part).into());
/// }
/// assert_eq!(objects, [[14_i64.to_le_bytes()], [23_i64.to_le_bytes()]]);
/// let report = rest.report(&progress);
/// assert_eq!((report.changed, report.given, report.pending), (2, 7, 0));
/// # Ok::<(), sapwood::aggregate::QueryError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pending {
    fingerprint: u64,
    total: i128,
    tally: Tally,
    before: Sum,
    recorded: Recorded,
    /// Ascending by key.
    chunks: Vec<Chunk>,
    parts: Vec<Ints>,
}

const ENVELOPE: Envelope =
    Envelope { magic: *b"SWagPend", version: 1, what: "the rest of a disaggregation" };

impl Shares<'_> {
    /// What is not recorded yet. It is the whole when nothing is.
    ///
    /// # Errors
    /// [`QueryError::Twice`](crate::QueryError::Twice) if an object was collected more than once.
    pub fn pending(&self, progress: &DisaggregationProgress) -> Result<Pending> {
        let mut recorded = self.carried.clone();
        recorded.merge(progress.recorded());
        let is_left = |at: &usize| progress.done(*at) < self.chunks[*at].keys.len();
        let left = (0..self.batch_count()).filter(is_left);
        let rest = left.flat_map(|at| self.batch(at).shares().skip(progress.done(at)));
        let mut rest: Vec<_> = rest.map(|share| (share.key, share.part)).collect();
        rest.sort_unstable_by_key(|&(key, _)| key);
        if let Some(pair) = rest.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(twice(pair[0].0));
        }
        let mut pending = Pending {
            fingerprint: self.fingerprint,
            total: self.total,
            tally: self.tally.clone(),
            before: self.before.clone(),
            recorded,
            chunks: Vec::new(),
            parts: Vec::new(),
        };
        rest.into_iter().for_each(|(key, part)| pending.push(key, part));
        Ok(pending)
    }
}

impl Disaggregator {
    /// Reads the bytes of what is left of this disaggregation, [`Pending::encode`].
    ///
    /// # Errors
    /// [`QueryError::Corrupt`](crate::QueryError::Corrupt) for anything that `encode` did not write,
    /// [`QueryError::OtherDisaggregation`](crate::QueryError::OtherDisaggregation).
    pub fn decode(&self, bytes: &[u8]) -> Result<Pending> {
        Pending::decode(self, bytes)
    }

    /// Goes on with what is left. The shares are in the order of their keys and have no addresses.
    ///
    /// # Errors
    /// [`QueryError::OtherDisaggregation`](crate::QueryError::OtherDisaggregation).
    pub fn resume(&self, pending: Pending) -> Result<Shares<'static>> {
        pending.into_shares(self)
    }
}

impl Pending {
    /// How many objects are left.
    pub fn count(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.keys.len() as u64).sum()
    }

    fn push(&mut self, key: &[u8], part: i128) {
        if !self.chunks.last_mut().is_some_and(|chunk| chunk.keys.push(key)) {
            let mut chunk = Chunk::new(key.len(), AddressColumn::None);
            assert!(chunk.keys.push(key), "every chunk takes one key");
            self.chunks.push(chunk);
            self.parts.push(Ints::default());
        }
        self.parts.last_mut().expect("one for each chunk").push(part);
    }

    fn objects(&self) -> impl Iterator<Item = (&[u8], i128)> {
        self.chunks.iter().zip(&self.parts).flat_map(|(chunk, parts)| {
            (0..chunk.keys.len()).map(|at| (chunk.keys.get(at), parts.get(at)))
        })
    }

    /// It as bytes, to be read by [`Disaggregator::decode`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = ENVELOPE.begin();
        out.extend(self.fingerprint.to_le_bytes());
        self.tally.encode(&mut out);
        self.before.encode(&mut out);
        self.recorded.encode(&mut out);
        out.extend(self.count().to_le_bytes());
        for (key, part) in self.objects() {
            stored::varint(key.len() as u128, &mut out);
            out.extend_from_slice(key);
            stored::varint(part.unsigned_abs(), &mut out);
        }
        ENVELOPE.seal(&mut out);
        out
    }

    pub(super) fn decode(by: &Disaggregator, bytes: &[u8]) -> Result<Pending> {
        let mut reader = ENVELOPE.open(bytes)?;
        let fingerprint = reader.u64("the fingerprint of the disaggregation")?;
        by.check_own(fingerprint)?;
        let mut pending = Pending {
            fingerprint,
            total: by.total(),
            tally: Tally::decode(&mut reader)?,
            before: Sum::decode(&mut reader)?,
            recorded: Recorded::decode(&mut reader)?,
            chunks: Vec::new(),
            parts: Vec::new(),
        };
        let left = pending.left(&reader)?;
        pending.read_objects(&mut reader, left)?;
        match reader.is_empty() {
            true => Ok(pending),
            false => Err(reader.corrupt("nothing more is expected").into()),
        }
    }

    /// What is left of the total, without its sign, as the recorded shares have it.
    fn left(&self, reader: &Reader<'_>) -> std::result::Result<u128, Corrupt> {
        let wrong = |what: &str| Err(reader.corrupt(what));
        let mut left = self.total.unsigned_abs();
        for parts in [self.recorded.given, self.recorded.not_given] {
            let has_sign = parts == 0 || (parts < 0) == (self.total < 0);
            match left.checked_sub(parts.unsigned_abs()) {
                Some(rest) if has_sign => left = rest,
                _ => return wrong("parts are not of the total"),
            }
        }
        if self.before.count() > self.tally.matched {
            return wrong("more fields are summed than were collected");
        }
        Ok(left)
    }

    fn read_objects(
        &mut self,
        reader: &mut Reader<'_>,
        mut left: u128,
    ) -> std::result::Result<(), Corrupt> {
        let count = reader.u64("the number of objects")?;
        let recorded = self.recorded.count();
        if recorded.and_then(|recorded| recorded.checked_add(count)) != Some(self.tally.matched) {
            return Err(reader.corrupt("objects are more or fewer than were collected"));
        }
        let mut last: Option<&[u8]> = None;
        for _ in 0..count {
            let len = usize::try_from(reader.varint("the length of a key")?);
            let key = reader.bytes(len.unwrap_or(usize::MAX), "a key")?;
            if last.is_some_and(|last| last >= key) {
                return Err(reader.corrupt("keys do not ascend"));
            }
            last = Some(key);
            let magnitude = reader.varint("a part")?;
            left = left
                .checked_sub(magnitude)
                .ok_or_else(|| reader.corrupt("parts are more than the total"))?;
            let part = magnitude.cast_signed();
            self.push(key, if self.total < 0 { part.wrapping_neg() } else { part });
        }
        if left > 0 {
            return Err(reader.corrupt("parts are less than the total"));
        }
        Ok(())
    }

    pub(super) fn into_shares(self, by: &Disaggregator) -> Result<Shares<'static>> {
        by.check_own(self.fingerprint)?;
        Ok(Shares {
            fingerprint: self.fingerprint,
            total: self.total,
            action: by.action(),
            chunks: self.chunks,
            held: None,
            parts: Parts::Each(self.parts),
            tally: self.tally,
            before: self.before,
            carried: self.recorded,
        })
    }
}
