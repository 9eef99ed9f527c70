//! An engine that is right because it is simple, and broken ones that prove the checkers' teeth.

use crate::engine::{
    Accounting, Bounds, Computed, Decision, Direction, Edit, Edited, OrderedEngine, Pair, Refusal,
    Result, ScanForm, Upserted,
};
use crate::op::{Answer, Op};
use crate::oracle::Oracle;
use crate::{Bytes, interleave};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

/// The mistake of a [`LockedMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// `update` works on a copy and writes it back: what came between is lost.
    LostUpdate,
    /// `get` lets others pass between finding a value and answering, then reads it from a stale
    /// copy of the map.
    StaleGet,
    /// `put_if_absent` looks first and puts later.
    CheckThenPut,
    /// `remove` says that it removed what another removed.
    DoubleRemove,
    /// A scan lets writers pass, and goes on after the key at the same position.
    ScanByPosition,
    /// `remove` of a key in the last place does nothing.
    KeepsLast,
    /// A descending scan leaves out the first key.
    DescendsTooFar,
    /// `len` counts a replaced entry twice.
    CountsReplaced,
}

/// The oracle behind a lock.
#[derive(Debug)]
pub struct LockedMap {
    fault: Fault,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    oracle: Oracle,
    /// The oracle as it was a while ago.
    stale: Oracle,
    writes: usize,
    replaced: usize,
}

impl Default for LockedMap {
    fn default() -> Self {
        Self::new()
    }
}

impl LockedMap {
    /// Empty, and right.
    pub fn new() -> Self {
        Self::broken(Fault::None)
    }

    /// Empty, and wrong in one way.
    pub fn broken(fault: Fault) -> Self {
        let state = Mutex::new(State::default());
        LockedMap { fault, state }
    }

    fn with<R>(&self, access: impl FnOnce(&mut State) -> R) -> R {
        access(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ask(&self, op: Op) -> Answer {
        self.with(|state| {
            state.writes += 1;
            if state.writes % 4 == 0 {
                state.stale = state.oracle.clone();
            }
            state.oracle.answer(&op)
        })
    }

    fn pair(&self, op: Op) -> Result<Option<Pair>> {
        match self.ask(op) {
            Answer::Pair(pair) => Ok(pair),
            other => Err(other.into_refusal()),
        }
    }

    fn value(&self, op: Op) -> Result<Option<Vec<u8>>> {
        self.ask(op).into_value()
    }

    fn bool(&self, op: Op) -> Result<bool> {
        self.ask(op).into_bool()
    }
}

fn owned(bounds: Bounds<'_>) -> (Bound<Bytes>, Bound<Bytes>) {
    let end = |end: Bound<&[u8]>| end.map(Bytes::from);
    (end(bounds.0), end(bounds.1))
}

impl OrderedEngine for LockedMap {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.fault == Fault::StaleGet {
            return self.with(|state| state.stale.answer(&Op::Get(key.into()))).into_value();
        }
        self.value(Op::Get(key.into()))
    }
    fn get_with(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value(Op::GetWith(key.into()))
    }
    fn contains_key(&self, key: &[u8]) -> Result<bool> {
        self.bool(Op::ContainsKey(key.into()))
    }
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let replaced = self.bool(Op::Put(key.into(), value.into()))?;
        self.with(|state| state.replaced += usize::from(replaced));
        Ok(replaced)
    }
    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        if self.fault == Fault::CheckThenPut {
            let absent = !self.contains_key(key)?;
            interleave::pause();
            if absent {
                self.put(key, value)?;
            }
            return Ok(absent);
        }
        self.bool(Op::PutIfAbsent(key.into(), value.into()))
    }
    fn remove(&self, key: &[u8]) -> Result<bool> {
        if self.fault == Fault::DoubleRemove {
            let present = self.contains_key(key)?;
            interleave::pause();
            self.bool(Op::Remove(key.into()))?;
            return Ok(present);
        }
        if self.fault == Fault::KeepsLast && self.last()?.is_some_and(|(last, _)| last == key) {
            return Ok(true);
        }
        self.bool(Op::Remove(key.into()))
    }
    fn take(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value(Op::Take(key.into()))
    }
    fn update(&self, key: &[u8], edits: &[Edit]) -> Result<Option<Edited>> {
        if self.fault == Fault::LostUpdate {
            let Some(mut value) = self.get(key)? else {
                return Ok(None);
            };
            let edited = Edited::apply(edits, &mut value);
            self.put(key, &value)?;
            return Ok(Some(edited));
        }
        self.ask(Op::Update(key.into(), edits.to_vec())).into_edited()
    }
    fn upsert(&self, key: &[u8], value: &[u8], edits: &[Edit]) -> Result<Upserted> {
        self.ask(Op::Upsert(key.into(), value.into(), edits.to_vec())).into_upserted()
    }
    fn compute(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Decision,
    ) -> Result<Computed> {
        self.with(|state| {
            let before = state.oracle.answer(&Op::Get(key.into())).into_value()?;
            let rule = match decide(before.as_deref()) {
                Decision::Keep => crate::op::Rule::Keep,
                Decision::Replace(value) => crate::op::Rule::Replace(value.into()),
                Decision::Remove => crate::op::Rule::Remove,
            };
            match state.oracle.answer(&Op::Compute(key.into(), rule)) {
                Answer::Computed(computed) => Ok(computed),
                other => Err(other.into_refusal()),
            }
        })
    }
    fn first(&self) -> Result<Option<Pair>> {
        self.pair(Op::First)
    }
    fn last(&self) -> Result<Option<Pair>> {
        self.pair(Op::Last)
    }
    fn floor(&self, key: &[u8]) -> Result<Option<Pair>> {
        self.pair(Op::Floor(key.into()))
    }
    fn lower(&self, key: &[u8]) -> Result<Option<Pair>> {
        self.pair(Op::Lower(key.into()))
    }
    fn ceiling(&self, key: &[u8]) -> Result<Option<Pair>> {
        self.pair(Op::Ceiling(key.into()))
    }
    fn higher(&self, key: &[u8]) -> Result<Option<Pair>> {
        self.pair(Op::Higher(key.into()))
    }
    fn pop_first(&self) -> Result<Option<Pair>> {
        self.pair(Op::PopFirst)
    }
    fn pop_last(&self) -> Result<Option<Pair>> {
        self.pair(Op::PopLast)
    }
    fn scan(
        &self,
        form: ScanForm,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        let (begin, end) = owned(bounds);
        let whole = |limit| {
            let bounds = (begin.clone(), end.clone());
            self.ask(Op::Scan(form, bounds, direction, limit)).into_pairs()
        };
        if self.fault == Fault::ScanByPosition {
            let mut seen: Vec<Pair> = Vec::new();
            while seen.len() < limit {
                let Some(pair) = whole(seen.len() + 1)?.into_iter().nth(seen.len()) else {
                    break;
                };
                seen.push(pair);
                interleave::pause();
            }
            return Ok(seen);
        }
        let mut pairs = whole(limit)?;
        if self.fault == Fault::DescendsTooFar && direction == Direction::Descending {
            pairs = pairs.split_off(1.min(pairs.len()));
        }
        Ok(pairs)
    }
    fn both_ends(&self, bounds: Bounds<'_>, from_back: u64) -> Result<Vec<Pair>> {
        self.ask(Op::BothEnds(owned(bounds), from_back)).into_pairs()
    }
    fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Vec<u8>>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }
    fn put_many(&self, pairs: &[(Bytes, Bytes)]) -> std::result::Result<usize, (usize, Refusal)> {
        let mut replaced = 0;
        for (done, (key, value)) in pairs.iter().enumerate() {
            replaced += usize::from(self.put(key, value).map_err(|refusal| (done, refusal))?);
        }
        Ok(replaced)
    }
    fn len(&self) -> usize {
        let counted_twice = match self.fault {
            Fault::CountsReplaced => self.with(|state| state.replaced),
            _ => 0,
        };
        self.len_exact() + counted_twice
    }
    fn len_exact(&self) -> usize {
        self.with(|state| state.oracle.len())
    }
    fn clear(&self) -> Result<()> {
        self.ask(Op::Clear);
        Ok(())
    }
    fn check(&self) -> std::result::Result<(), String> {
        Ok(())
    }
    fn accounting(&self) -> Option<Accounting> {
        Some(self.with(|state| state.oracle.accounting()))
    }
}
