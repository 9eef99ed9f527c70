//! One operation on an engine without order, as data.

use super::oracle::KeyedOracle;
use super::{KeyedEngine, Walk};
pub use crate::answer::Answer;
use crate::engine::{Edit, Pair};
use crate::op::Rule;
use crate::runner::Step;
use crate::{Bytes, Shown};
use std::fmt;

/// An operation on an engine without order.
#[derive(Clone)]
#[expect(missing_docs, reason = "each is the engine's method of that name")]
pub enum KeyedOp {
    Get(Bytes),
    GetWith(Bytes),
    ContainsKey(Bytes),
    Put(Bytes, Bytes),
    PutIfAbsent(Bytes, Bytes),
    Remove(Bytes),
    Take(Bytes),
    Compute(Bytes, Rule),
    /// Keeps the pairs that [`is_kept`] says with this number.
    Retain(u8),
    Update(Bytes, Vec<Edit>),
    Upsert(Bytes, Bytes, Vec<Edit>),
    /// Key, what is expected, what to put in its place.
    CompareAndPut(Bytes, Bytes, Bytes),
    Add(Bytes, i64),
    GetMany(Vec<Bytes>),
    PutMany(Vec<(Bytes, Bytes)>),
    UpdateMany(Vec<Bytes>, Vec<Edit>),
    AddMany(Vec<(Bytes, i64)>),
    Pairs(Walk),
    Clear,
    /// Compare everything the engine holds and run its own check.
    Verify,
}

impl KeyedOp {
    /// Asks `engine`.
    pub fn run(&self, engine: &impl KeyedEngine) -> Answer {
        let done = match self {
            KeyedOp::Get(key) => engine.get(key).map(Answer::Value),
            KeyedOp::GetWith(key) => engine.get_with(key).map(Answer::Value),
            KeyedOp::ContainsKey(key) => engine.contains_key(key).map(Answer::Bool),
            KeyedOp::Put(key, value) => engine.put(key, value).map(|()| Answer::Done),
            KeyedOp::PutIfAbsent(key, value) => engine.put_if_absent(key, value).map(Answer::Bool),
            KeyedOp::Remove(key) => engine.remove(key).map(Answer::Bool),
            KeyedOp::Take(key) => engine.take(key).map(Answer::Value),
            KeyedOp::Compute(key, rule) => {
                engine.compute(key, &mut |value| rule.decide(value)).map(Answer::Computed)
            }
            KeyedOp::Retain(number) => engine
                .retain(&mut |key, value| is_kept(*number, key, value))
                .map(|removed| Answer::Removed(removed as usize)),
            KeyedOp::Update(key, edits) => engine.update(key, edits).map(Answer::Edited),
            KeyedOp::Upsert(key, value, edits) => {
                engine.upsert(key, value, edits).map(Answer::Upserted)
            }
            KeyedOp::CompareAndPut(key, expected, new) => {
                engine.compare_and_put(key, expected, new).map(Answer::Bool)
            }
            KeyedOp::Add(key, delta) => engine.add(key, *delta).map(Answer::Sum),
            KeyedOp::GetMany(keys) => engine.get_many(keys).map(Answer::Values),
            KeyedOp::PutMany(pairs) => {
                Ok(Answer::of_batch(engine.put_many(pairs), |()| Answer::Done))
            }
            KeyedOp::UpdateMany(keys, edits) => {
                Ok(Answer::of_batch(engine.update_many(keys, edits), Answer::EditedMany))
            }
            KeyedOp::AddMany(deltas) => {
                Ok(Answer::of_batch(engine.add_many(deltas), |()| Answer::Done))
            }
            KeyedOp::Pairs(walk) => engine.pairs(*walk).map(sorted).map(Answer::Pairs),
            KeyedOp::Clear => engine.clear().map(|()| Answer::Done),
            KeyedOp::Verify => Ok(Answer::Done),
        };
        done.unwrap_or_else(Answer::Refused)
    }
}

/// Whether `KeyedOp::Retain(number)` keeps a pair: three of four, by the ends of key and value.
pub fn is_kept(number: u8, key: &[u8], value: &[u8]) -> bool {
    let end = |bytes: &[u8]| bytes.last().copied().unwrap_or_default();
    !(end(key) ^ end(value) ^ number).is_multiple_of(4)
}

/// Pairs of a walk in the order of their keys, so that they can be compared.
pub fn sorted(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_unstable();
    pairs
}

impl<E: KeyedEngine> Step<E> for KeyedOp {
    type Model = KeyedOracle;

    fn model(engine: &E) -> KeyedOracle {
        KeyedOracle::new(engine.lengths())
    }

    fn take(&self, engine: &mut E, oracle: &mut KeyedOracle) -> Result<(), String> {
        oracle.judge(self, &self.run(engine))?;
        match self {
            KeyedOp::Verify => verify(engine, oracle),
            _ => Ok(()),
        }
    }

    fn verify(engine: &E, oracle: &KeyedOracle) -> Result<(), String> {
        verify(engine, oracle)
    }
}

/// Compares everything the engine holds with the oracle, and asks it to check itself.
pub fn verify(engine: &impl KeyedEngine, oracle: &KeyedOracle) -> Result<(), String> {
    engine.check().map_err(|what| format!("check: {what}"))?;
    let mut oracle = oracle.clone();
    let keys = oracle.entries().keys().map(|key| Bytes::from(&key[..])).collect();
    let comparisons = Walk::ALL.map(KeyedOp::Pairs).into_iter();
    for op in comparisons.chain([KeyedOp::GetMany(keys)]) {
        oracle.judge(&op, &op.run(engine))?;
    }
    let right = oracle.entries().len();
    let (len, exact) = (engine.len_counted(), engine.len_exact());
    if exact != Ok(right) || len.is_some_and(|len| len != right) {
        return Err(format!("len {len:?}, len_exact {exact:?}, right is {right}"));
    }
    Ok(())
}

impl fmt::Debug for KeyedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = |keys: &[Bytes]| {
            let keys: Vec<String> = keys.iter().map(|key| Shown(key).to_string()).collect();
            keys.join(", ")
        };
        match self {
            KeyedOp::Get(key) => write!(f, "get({})", Shown(key)),
            KeyedOp::GetWith(key) => write!(f, "get_with({})", Shown(key)),
            KeyedOp::ContainsKey(key) => write!(f, "contains_key({})", Shown(key)),
            KeyedOp::Put(key, value) => write!(f, "put({}, {})", Shown(key), Shown(value)),
            KeyedOp::PutIfAbsent(key, value) => {
                write!(f, "put_if_absent({}, {})", Shown(key), Shown(value))
            }
            KeyedOp::Remove(key) => write!(f, "remove({})", Shown(key)),
            KeyedOp::Take(key) => write!(f, "remove_with({})", Shown(key)),
            KeyedOp::Compute(key, rule) => write!(f, "compute({}, {rule:?})", Shown(key)),
            KeyedOp::Retain(number) => write!(f, "retain({number})"),
            KeyedOp::Update(key, edits) => write!(f, "update({}, {edits:?})", Shown(key)),
            KeyedOp::Upsert(key, value, edits) => {
                let (key, value) = (Shown(key), Shown(value));
                write!(f, "put_if_absent_or_update({key}, {value}, {edits:?})")
            }
            KeyedOp::CompareAndPut(key, expected, new) => {
                let (expected, new) = (Shown(expected), Shown(new));
                write!(f, "compare_and_put({}, {expected}, {new})", Shown(key))
            }
            KeyedOp::Add(key, delta) => write!(f, "add({}, {delta})", Shown(key)),
            KeyedOp::GetMany(asked) => write!(f, "get_many({})", keys(asked)),
            KeyedOp::PutMany(pairs) => {
                let pair = |(key, value): &(Bytes, Bytes)| keys(&[key.clone(), value.clone()]);
                let pairs: Vec<String> = pairs.iter().map(pair).collect();
                write!(f, "put_many({})", pairs.join("; "))
            }
            KeyedOp::UpdateMany(changed, edits) => {
                write!(f, "update_many({}; {edits:?})", keys(changed))
            }
            KeyedOp::AddMany(deltas) => {
                let delta = |(key, delta): &(Bytes, i64)| format!("{}: {delta}", Shown(key));
                let deltas: Vec<String> = deltas.iter().map(delta).collect();
                write!(f, "add_many({})", deltas.join(", "))
            }
            KeyedOp::Pairs(walk) => write!(f, "pairs({walk:?})"),
            KeyedOp::Clear => write!(f, "clear()"),
            KeyedOp::Verify => write!(f, "verify()"),
        }
    }
}
