//! An engine without order that is right because it is simple, and broken ones that prove the
//! checkers' teeth.

use super::op::{Answer, KeyedOp};
use super::oracle::KeyedOracle;
use super::{Batch, KeyedEngine, Lengths, Walk};
use crate::engine::{Computed, Decision, Edit, Edited, Pair, Result, Upserted};
use crate::op::Rule;
use crate::{Bytes, history, interleave};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The mistake of a [`LockedTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedFault {
    /// Nothing.
    None,
    /// `add` reads the counter first and writes the sum later.
    LostAdd,
    /// `compare_and_put` compares first and puts later.
    CompareThenPut,
    /// `remove_with` shows the value first and removes what is there later.
    TakesLate,
    /// `compute` decides about what was there a moment ago.
    ComputesLate,
    /// `update` works on a copy and writes it back: what came between is lost.
    LostUpdate,
    /// `put_many` has the last two pairs in the wrong order.
    BatchOutOfOrder,
    /// `update_many` goes over a key that comes twice only once.
    UpdatesOnce,
    /// An overflow wraps around.
    Wraps,
    /// A put that grows a value keeps the old length.
    KeepsLength,
    /// The parts of a walk share their first pair.
    PartsOverlap,
    /// `for_each` lets writers pass, and goes on after the pair at the same position.
    WalkByPosition,
    /// A walk of the log takes its pairs at two moments.
    TwoMoments,
}

/// The oracle behind a lock.
#[derive(Debug)]
pub struct LockedTable {
    fault: KeyedFault,
    lengths: Lengths,
    state: RwLock<KeyedOracle>,
}

impl LockedTable {
    /// Empty, and right.
    pub fn new(lengths: Lengths) -> Self {
        Self::broken(lengths, KeyedFault::None)
    }

    /// Empty, and wrong in one way.
    pub fn broken(lengths: Lengths, fault: KeyedFault) -> Self {
        let state = RwLock::new(KeyedOracle::new(lengths.clone()));
        LockedTable { fault, lengths, state }
    }

    fn shared(&self) -> RwLockReadGuard<'_, KeyedOracle> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, KeyedOracle> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, op: KeyedOp) -> Answer {
        self.alone().answer(&op)
    }

    fn everything(&self) -> Vec<Pair> {
        let oracle = self.shared();
        oracle.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The entry at each position when the walk comes there.
    fn by_position(&self) -> Vec<Pair> {
        let at = |position| {
            interleave::pause();
            self.everything().into_iter().nth(position)
        };
        (0..).map_while(at).collect()
    }
}

fn batch<T>(answer: Answer, done: impl FnOnce(Answer) -> T) -> Batch<T> {
    match answer {
        Answer::Stopped(count, refusal) => Err((count, refusal)),
        answer => Ok(done(answer)),
    }
}

impl KeyedEngine for LockedTable {
    fn lengths(&self) -> Lengths {
        self.lengths.clone()
    }
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.ask(KeyedOp::Get(key.into())).into_value()
    }
    fn get_with(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get(key)
    }
    fn contains_key(&self, key: &[u8]) -> Result<bool> {
        self.ask(KeyedOp::ContainsKey(key.into())).into_bool()
    }
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let before = match self.fault {
            KeyedFault::KeepsLength => self.get(key)?.map(|before| before.len()),
            _ => None,
        };
        let value = &value[..before.unwrap_or(value.len()).min(value.len())];
        match self.ask(KeyedOp::Put(key.into(), value.into())) {
            Answer::Done => Ok(()),
            other => Err(other.into_refusal()),
        }
    }
    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.ask(KeyedOp::PutIfAbsent(key.into(), value.into())).into_bool()
    }
    fn remove(&self, key: &[u8]) -> Result<bool> {
        self.ask(KeyedOp::Remove(key.into())).into_bool()
    }
    fn take(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.fault == KeyedFault::TakesLate {
            let value = self.get(key)?;
            interleave::pause();
            self.ask(KeyedOp::Remove(key.into())).into_bool()?;
            return Ok(value);
        }
        self.ask(KeyedOp::Take(key.into())).into_value()
    }
    fn compute(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Decision,
    ) -> Result<Computed> {
        loop {
            let before = self.get(key)?;
            let rule = match decide(before.as_deref()) {
                Decision::Keep => Rule::Keep,
                Decision::Replace(value) => Rule::Replace(value.into()),
                Decision::Remove => Rule::Remove,
            };
            let mut oracle = self.alone();
            // Else another thread came between.
            let stays = self.fault == KeyedFault::ComputesLate
                || oracle.entries().get(key) == before.as_ref();
            if stays {
                return match oracle.answer(&KeyedOp::Compute(key.into(), rule)) {
                    Answer::Computed(computed) => Ok(computed),
                    other => Err(other.into_refusal()),
                };
            }
        }
    }
    fn retain(&self, keep: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let mut removed = 0;
        for (key, value) in self.everything() {
            if keep(&key, &value) {
                continue;
            }
            let done = self.compute(&key, &mut |now| match now {
                Some(now) if !keep(&key, now) => Decision::Remove,
                _ => Decision::Keep,
            })?;
            removed += u64::from(done == Computed::Removed);
        }
        Ok(removed)
    }
    fn update(&self, key: &[u8], edits: &[Edit]) -> Result<Option<Edited>> {
        if self.fault == KeyedFault::LostUpdate {
            let Some(mut value) = self.get(key)? else {
                return Ok(None);
            };
            let edited = Edited::apply(edits, &mut value);
            self.put(key, &value)?;
            return Ok(Some(edited));
        }
        self.ask(KeyedOp::Update(key.into(), edits.to_vec())).into_edited()
    }
    fn upsert(&self, key: &[u8], value: &[u8], edits: &[Edit]) -> Result<Upserted> {
        self.ask(KeyedOp::Upsert(key.into(), value.into(), edits.to_vec())).into_upserted()
    }
    fn compare_and_put(&self, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool> {
        if self.fault == KeyedFault::CompareThenPut {
            let equal = self.get(key)?.as_deref() == Some(expected);
            interleave::pause();
            if equal {
                self.put(key, new)?;
            }
            return Ok(equal);
        }
        self.ask(KeyedOp::CompareAndPut(key.into(), expected.into(), new.into())).into_bool()
    }
    fn add(&self, key: &[u8], delta: i64) -> Result<i64> {
        if self.fault == KeyedFault::LostAdd {
            let sum = history::add(self.get(key)?.as_deref(), delta)?;
            interleave::pause();
            self.put(key, &sum.to_le_bytes())?;
            return Ok(sum);
        }
        match self.ask(KeyedOp::Add(key.into(), delta)) {
            Answer::Sum(sum) => Ok(sum),
            Answer::Refused(crate::engine::Refusal::Overflow)
                if self.fault == KeyedFault::Wraps =>
            {
                let value = self.get(key)?.unwrap_or_default();
                let counter = value.try_into().map_or(0, i64::from_le_bytes);
                Ok(counter.wrapping_add(delta))
            }
            other => Err(other.into_refusal()),
        }
    }
    fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Vec<u8>>>> {
        match self.ask(KeyedOp::GetMany(keys.to_vec())) {
            Answer::Values(values) => Ok(values),
            other => Err(other.into_refusal()),
        }
    }
    fn put_many(&self, pairs: &[(Bytes, Bytes)]) -> Batch<()> {
        let mut pairs = pairs.to_vec();
        if self.fault == KeyedFault::BatchOutOfOrder && pairs.len() > 1 {
            let last = pairs.len() - 1;
            pairs.swap(last - 1, last);
        }
        batch(self.ask(KeyedOp::PutMany(pairs)), drop)
    }
    fn update_many(&self, keys: &[Bytes], edits: &[Edit]) -> Batch<Vec<Option<Edited>>> {
        let mut seen = std::collections::HashSet::new();
        let mut keys = keys.to_vec();
        if self.fault == KeyedFault::UpdatesOnce {
            keys.retain(|key| seen.insert(key.clone()));
        }
        batch(self.ask(KeyedOp::UpdateMany(keys, edits.to_vec())), |answer| match answer {
            Answer::EditedMany(left) => left,
            other => unreachable!("no answer to update_many: {other:?}"),
        })
    }
    fn add_many(&self, deltas: &[(Bytes, i64)]) -> Batch<()> {
        batch(self.ask(KeyedOp::AddMany(deltas.to_vec())), drop)
    }
    fn pairs(&self, walk: Walk) -> Result<Vec<Pair>> {
        let mut pairs = match (self.fault, walk) {
            (KeyedFault::WalkByPosition, Walk::ForEach) => self.by_position(),
            (KeyedFault::TwoMoments, Walk::Log | Walk::Snapshot) => {
                let mut first = self.everything();
                first.truncate(first.len() / 2);
                interleave::pause();
                let mut pairs = self.everything();
                pairs.retain(|pair| first.last().is_none_or(|last| pair.0 > last.0));
                [first, pairs].concat()
            }
            _ => self.everything(),
        };
        let in_parts = matches!(
            walk,
            Walk::ForEachParts(_) | Walk::SnapshotParts(_) | Walk::Sweep(_) | Walk::Steps(_)
        );
        if self.fault == KeyedFault::PartsOverlap && in_parts {
            pairs.extend(pairs.first().cloned());
        }
        Ok(pairs)
    }
    fn len_counted(&self) -> Option<usize> {
        Some(self.shared().entries().len())
    }
    fn len_exact(&self) -> Result<usize> {
        Ok(self.shared().entries().len())
    }
    fn clear(&self) -> Result<()> {
        self.ask(KeyedOp::Clear);
        Ok(())
    }
    fn check(&self) -> std::result::Result<(), String> {
        Ok(())
    }
}
