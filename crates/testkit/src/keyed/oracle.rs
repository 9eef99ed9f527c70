//! The oracle of engines without order: a `BTreeMap` knows the right answer on one thread.

use super::op::{Answer, KeyedOp, is_kept};
use super::{Batch, Lengths};
use crate::engine::{Computed, Edit, Edited, Refusal, Result, Upserted, ValueEdit};
use crate::{Bytes, history};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The map that an engine must be indistinguishable from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedOracle {
    lengths: Lengths,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl KeyedOracle {
    /// Empty, for an engine that takes such lengths.
    pub fn new(lengths: Lengths) -> Self {
        KeyedOracle { lengths, entries: BTreeMap::new() }
    }

    /// Its contents.
    pub fn entries(&self) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.entries
    }

    /// Compares the engine's `answer` to `op` with the right one, and follows it. An engine may
    /// answer `OutOfMemory` where an operation needs memory; then nothing may have changed, or
    /// of a batch or a change of several steps, exactly the part it says.
    pub fn judge(&mut self, op: &KeyedOp, answer: &Answer) -> std::result::Result<(), String> {
        if answer.is_out_of_memory() && needs_memory(op) {
            self.follow_refusal(op, answer);
            return Ok(());
        }
        let right = self.answer(op);
        if *answer == right {
            return Ok(());
        }
        Err(format!("{op:?}\n  answered {answer:?}\n  right is {right:?}"))
    }

    /// The right answer, with its effect.
    pub fn answer(&mut self, op: &KeyedOp) -> Answer {
        self.try_answer(op).unwrap_or_else(Answer::Refused)
    }

    fn try_answer(&mut self, op: &KeyedOp) -> Result<Answer> {
        Ok(match op {
            KeyedOp::Get(key) | KeyedOp::GetWith(key) => {
                Answer::Value(self.get(key)?.map(<[u8]>::to_vec))
            }
            KeyedOp::ContainsKey(key) => Answer::Bool(self.get(key)?.is_some()),
            KeyedOp::Put(key, value) => {
                self.put(key, value)?;
                Answer::Done
            }
            KeyedOp::PutIfAbsent(key, value) => {
                self.fits(key, value)?;
                let absent = self.get(key)?.is_none();
                if absent {
                    self.put(key, value)?;
                }
                Answer::Bool(absent)
            }
            KeyedOp::Remove(key) => {
                self.get(key)?;
                Answer::Bool(self.entries.remove(&**key).is_some())
            }
            KeyedOp::Take(key) => {
                self.get(key)?;
                Answer::Value(self.entries.remove(&**key))
            }
            KeyedOp::Compute(key, rule) => {
                let (after, computed) = rule.outcome(self.get(key)?);
                match (after, computed) {
                    (Some(new), Computed::Inserted | Computed::Replaced) => self.put(key, &new)?,
                    (None, Computed::Removed) => drop(self.entries.remove(&**key)),
                    _ => {}
                }
                Answer::Computed(computed)
            }
            KeyedOp::Retain(number) => {
                let before = self.entries.len();
                self.entries.retain(|key, value| is_kept(*number, key, value));
                Answer::Removed(before - self.entries.len())
            }
            KeyedOp::Update(key, edits) => Answer::Edited(self.update(key, edits)?),
            KeyedOp::Upsert(key, value, edits) => {
                self.fits(key, value)?;
                Answer::Upserted(match self.update(key, edits)? {
                    Some(edited) => Upserted::Updated(edited),
                    None => {
                        self.put(key, value)?;
                        Upserted::Inserted
                    }
                })
            }
            KeyedOp::CompareAndPut(key, expected, new) => {
                self.fits(key, new)?;
                let equal = self.get(key)? == Some(&**expected);
                if equal {
                    self.put(key, new)?;
                }
                Answer::Bool(equal)
            }
            KeyedOp::Add(key, delta) => Answer::Sum(self.add(key, *delta)?),
            KeyedOp::GetMany(keys) => {
                let value = |key: &Bytes| Ok(self.get(key)?.map(<[u8]>::to_vec));
                Answer::Values(keys.iter().map(value).collect::<Result<_>>()?)
            }
            KeyedOp::PutMany(pairs) => {
                let done = each(pairs, |(key, value)| self.put(key, value));
                Answer::of_batch(done, |_| Answer::Done)
            }
            KeyedOp::UpdateMany(keys, edits) => {
                let done = each(keys, |key| self.update(key, edits));
                Answer::of_batch(done, Answer::EditedMany)
            }
            KeyedOp::AddMany(deltas) => {
                let done = each(deltas, |(key, delta)| self.add(key, *delta));
                Answer::of_batch(done, |_| Answer::Done)
            }
            KeyedOp::Pairs(_) => {
                let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
                Answer::Pairs(self.entries.iter().map(owned).collect())
            }
            KeyedOp::Clear => {
                self.entries.clear();
                Answer::Done
            }
            KeyedOp::Verify => Answer::Done,
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        match self.lengths.key.contains(&key.len()) {
            true => Ok(self.entries.get(key).map(Vec::as_slice)),
            false => Err(Refusal::KeyLength),
        }
    }

    fn fits(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.lengths.fit(key.len(), value.len())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.fits(key, value)?;
        self.entries.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn update(&mut self, key: &[u8], edits: &[Edit]) -> Result<Option<Edited>> {
        self.get(key)?;
        let lengths = self.lengths.value_of(key.len());
        let value = self.entries.get_mut(key);
        Ok(value.map(|value| Edited::apply(edits, &mut Within { value, lengths })))
    }

    fn add(&mut self, key: &[u8], delta: i64) -> Result<i64> {
        self.lengths.fit(key.len(), 8)?;
        let sum = history::add(self.get(key)?, delta)?;
        self.put(key, &sum.to_le_bytes())?;
        Ok(sum)
    }

    /// Follows the part of `op` that an engine out of memory says is done.
    fn follow_refusal(&mut self, op: &KeyedOp, answer: &Answer) {
        if let (KeyedOp::UpdateMany(keys, edits), Answer::EditedMany(left)) = (op, answer) {
            for (key, left) in keys.iter().zip(left) {
                let refused = left.as_ref().and_then(|left| left.refused.as_ref());
                let done = refused.map_or(edits.len(), |(done, _)| *done);
                self.answer(&KeyedOp::Update(key.clone(), edits[..done].to_vec()));
            }
            return;
        }
        let part = match (op, answer) {
            (KeyedOp::PutMany(pairs), Answer::Stopped(done, _)) => {
                KeyedOp::PutMany(pairs[..*done].to_vec())
            }
            (KeyedOp::UpdateMany(keys, edits), Answer::Stopped(done, _)) => {
                KeyedOp::UpdateMany(keys[..*done].to_vec(), edits.clone())
            }
            (KeyedOp::AddMany(deltas), Answer::Stopped(done, _)) => {
                KeyedOp::AddMany(deltas[..*done].to_vec())
            }
            (KeyedOp::Update(key, edits) | KeyedOp::Upsert(key, _, edits), _) => {
                match answer.step_refused() {
                    Some((done, _)) => KeyedOp::Update(key.clone(), edits[..*done].to_vec()),
                    None => return,
                }
            }
            _ => return,
        };
        self.answer(&part);
    }
}

/// A value that refuses lengths that an engine refuses.
struct Within<'a> {
    value: &'a mut Vec<u8>,
    lengths: RangeInclusive<usize>,
}

impl Within<'_> {
    fn fits(&self, len: usize) -> Result<()> {
        if self.lengths.contains(&len) { Ok(()) } else { Err(Refusal::ValueLength) }
    }
}

impl ValueEdit for Within<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        self.value
    }
    fn set(&mut self, bytes: &[u8]) -> Result<()> {
        self.fits(bytes.len())?;
        self.value.set(bytes)
    }
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.fits(self.value.len() + bytes.len())?;
        ValueEdit::append(self.value, bytes)
    }
    fn resize(&mut self, len: usize) -> Result<()> {
        self.fits(len)?;
        ValueEdit::resize(self.value, len)
    }
}

/// Does the entries of a batch in order, up to the first that is refused.
fn each<T, R>(batch: &[T], mut one: impl FnMut(&T) -> Result<R>) -> Batch<Vec<R>> {
    let numbered = batch.iter().enumerate();
    numbered.map(|(done, entry)| one(entry).map_err(|refusal| (done, refusal))).collect()
}

/// Whether `op` may meet the end of memory: those that only read never do, and those that only
/// remove neither, for removal is the way out.
fn needs_memory(op: &KeyedOp) -> bool {
    matches!(
        op,
        KeyedOp::Put(..)
            | KeyedOp::PutIfAbsent(..)
            | KeyedOp::Compute(..)
            | KeyedOp::Update(..)
            | KeyedOp::Upsert(..)
            | KeyedOp::CompareAndPut(..)
            | KeyedOp::Add(..)
            | KeyedOp::PutMany(..)
            | KeyedOp::UpdateMany(..)
            | KeyedOp::AddMany(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        text.as_bytes().into()
    }

    #[test]
    fn lengths_are_kept_and_a_step_that_breaks_them_leaves_the_value() {
        let lengths = Lengths { key: 1..=4, value: 0..=6, pair_max: 8, key_unit: 2 };
        let mut oracle = KeyedOracle::new(lengths);
        let value = Answer::Refused(Refusal::ValueLength);
        assert_eq!(oracle.answer(&KeyedOp::Put(bytes("k"), bytes("1234567"))), value);
        assert_eq!(oracle.answer(&KeyedOp::Put(bytes("kkkk"), bytes("12345"))), value);
        assert_eq!(oracle.answer(&KeyedOp::Put(bytes("kkk"), bytes("12345"))), value);
        assert_eq!(oracle.answer(&KeyedOp::Put(bytes("kkkk"), bytes("1234"))), Answer::Done);
        let key = Answer::Refused(Refusal::KeyLength);
        assert_eq!(oracle.answer(&KeyedOp::Get(bytes("kkkkk"))), key);
        assert_eq!(oracle.answer(&KeyedOp::GetMany(vec![bytes("k"), bytes("")])), key);
        let edits = vec![Edit::Xor(1), Edit::Append(bytes("5")), Edit::Resize(0)];
        let refused = Some((1, Refusal::ValueLength));
        let edited = Edited { after: b"0325".to_vec(), refused };
        assert_eq!(
            oracle.answer(&KeyedOp::Update(bytes("kkkk"), edits)),
            Answer::Edited(Some(edited))
        );
    }

    #[test]
    fn a_batch_stops_at_the_first_that_is_refused() {
        let mut oracle = KeyedOracle::new(Lengths::ANY);
        oracle.answer(&KeyedOp::Put(bytes("text"), bytes("text")));
        oracle.answer(&KeyedOp::Add(bytes("most"), i64::MAX));
        for (bad, refusal) in [("text", Refusal::NotACounter), ("most", Refusal::Overflow)] {
            let deltas = [("a", 1), ("a", 2), (bad, 1), ("b", 1)];
            let op = KeyedOp::AddMany(deltas.map(|(key, delta)| (bytes(key), delta)).to_vec());
            assert_eq!(oracle.answer(&op), Answer::Stopped(2, refusal));
        }
        assert_eq!(oracle.answer(&KeyedOp::Add(bytes("a"), 0)), Answer::Sum(6));
        assert_eq!(oracle.answer(&KeyedOp::ContainsKey(bytes("b"))), Answer::Bool(false));
    }

    #[test]
    fn out_of_memory_changes_nothing_but_what_it_says() {
        let mut oracle = KeyedOracle::new(Lengths::ANY);
        let refused = Answer::Refused(Refusal::OutOfMemory);
        assert_eq!(oracle.judge(&KeyedOp::Add(bytes("a"), 1), &refused), Ok(()));
        assert!(oracle.entries().is_empty());
        let batch = KeyedOp::AddMany(vec![(bytes("a"), 1), (bytes("b"), 1)]);
        assert_eq!(oracle.judge(&batch, &Answer::Stopped(1, Refusal::OutOfMemory)), Ok(()));
        assert_eq!(oracle.entries().keys().collect::<Vec<_>>(), [b"a"]);
        assert!(oracle.judge(&KeyedOp::Remove(bytes("a")), &refused).is_err());
        assert!(oracle.judge(&KeyedOp::Get(bytes("a")), &refused).is_err());
    }
}
