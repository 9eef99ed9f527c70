//! Streams of operations for engines without order.

use super::op::KeyedOp;
use super::oracle::KeyedOracle;
use super::{Lengths, Walk};
use crate::engine::Edit;
use crate::keys::KeyShape;
use crate::op::Rule;
use crate::pick::{KeyOrder, Picker};
use crate::values::ValueShape;
use crate::{Bytes, Rng};
use rand::{Rng as _, RngExt as _};
use std::collections::BTreeSet;

/// The ingredients of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedSpec {
    /// Number of operations.
    pub op_count: usize,
    /// Shape of the keys.
    pub keys: KeyShape,
    /// Number of distinct keys, at most.
    pub key_count: usize,
    /// Order in which writes come to them.
    pub order: KeyOrder,
    /// Shape of the values that are not counters.
    pub values: ValueShape,
    /// Both are cut to these lengths.
    pub lengths: Lengths,
}

impl KeyedSpec {
    /// A spec that follows from `seed`: over many seeds, every shape meets every other.
    pub fn random(seed: u64, op_count: usize, lengths: Lengths) -> Self {
        let shapes = crate::stream::StreamSpec::random(seed, op_count);
        let crate::stream::StreamSpec { op_count, keys, key_count, order, values } = shapes;
        KeyedSpec { op_count, keys, key_count, order, values, lengths }
    }

    /// The operations that follow from `seed`.
    pub fn ops(&self, seed: u64) -> Vec<KeyedOp> {
        let mut rng = crate::rng(seed);
        let cut = |key: Bytes| resized(&key, &self.lengths.key_of_pair());
        let keys: BTreeSet<Bytes> =
            self.keys.keys(self.key_count, &mut rng).into_iter().map(cut).collect();
        let mut writer = Writer {
            spec: self,
            keys: Picker::new(keys.into_iter().collect(), self.order),
            model: KeyedOracle::new(self.lengths.clone()),
            rng,
        };
        let mut op = |index| {
            let op = writer.op(index as f64 / self.op_count as f64);
            writer.model.answer(&op);
            op
        };
        (0..self.op_count).map(&mut op).collect()
    }
}

/// `bytes` cut from the front, where they agree most, or filled up with zero bytes.
fn resized(bytes: &[u8], lengths: &std::ops::RangeInclusive<usize>) -> Bytes {
    let len = bytes.len().clamp(*lengths.start(), *lengths.end());
    let mut resized = bytes[bytes.len().saturating_sub(len)..].to_vec();
    resized.resize(len, 0);
    resized.into()
}

/// Writes a stream, one operation at a time.
struct Writer<'a> {
    spec: &'a KeyedSpec,
    keys: Picker,
    /// The entries that the engine holds by now: a comparison that never finds what it expects
    /// tests little.
    model: KeyedOracle,
    rng: Rng,
}

impl Writer<'_> {
    fn op(&mut self, progress: f64) -> KeyedOp {
        // The stream swings between growing, changing and emptying.
        let phase = (progress * 6.0) as usize % 3;
        let (put, remove) = [(40, 5), (20, 15), (8, 40)][phase];
        let dice = self.rng.random_range(0..100);
        if dice < put {
            self.put(progress)
        } else if dice < put + remove {
            self.remove()
        } else if dice < put + remove + 30 {
            self.change(progress)
        } else {
            self.read()
        }
    }

    fn put(&mut self, progress: f64) -> KeyedOp {
        let key = self.key_to_put();
        let value = self.value(&key, progress);
        match self.rng.random_range(0..100) {
            0..60 => KeyedOp::Put(key, value),
            60..80 => KeyedOp::PutIfAbsent(key, value),
            80..94 => {
                let mut pairs = vec![(key, value)];
                for _ in 0..self.rng.random_range(0..40) {
                    let key = self.key_to_put();
                    let value = self.value(&key, progress);
                    pairs.push((key, value));
                }
                KeyedOp::PutMany(pairs)
            }
            // Bad lengths belong to every stream.
            94 => KeyedOp::Put(Bytes::from(&b""[..]), value),
            95 => KeyedOp::Put(vec![b'k'; self.spec.lengths.key.end() + 1].into(), value),
            96 => KeyedOp::Put(key, self.too_long(progress)),
            97 => KeyedOp::PutMany(vec![(key.clone(), value), (key, self.too_long(progress))]),
            _ => KeyedOp::Upsert(key, value, vec![]),
        }
    }

    /// A value that no key takes; just a value where none is too long.
    fn too_long(&mut self, progress: f64) -> Bytes {
        let longest = *self.spec.lengths.value_of(0).end();
        match longest < 1 << 20 {
            true => vec![b'v'; longest + 1].into(),
            false => self.spec.values.value(progress, &mut self.rng),
        }
    }

    fn remove(&mut self) -> KeyedOp {
        match self.rng.random_range(0..100) {
            0..70 => KeyedOp::Remove(self.keys.next_to_remove(&mut self.rng)),
            70..86 => KeyedOp::Take(self.keys.next_to_remove(&mut self.rng)),
            86..90 => KeyedOp::Retain(self.rng.random()),
            90..94 => KeyedOp::Remove(self.near_key()),
            94..97 => KeyedOp::Take(self.near_key()),
            _ => KeyedOp::Clear,
        }
    }

    fn change(&mut self, progress: f64) -> KeyedOp {
        let key = self.key_to_put();
        match self.rng.random_range(0..100) {
            0..12 => KeyedOp::Update(key, self.edits(progress)),
            12..25 => {
                let rule = self.rule(&key, progress);
                KeyedOp::Compute(key, rule)
            }
            25..40 => {
                let value = self.value(&key, progress);
                KeyedOp::Upsert(key, value, self.edits(progress))
            }
            40..55 => {
                let (new, other) = (self.value(&key, progress), self.value(&key, progress));
                let now = self.model.entries().get(&*key).map(|value| value[..].into());
                let expected = match self.rng.random_range(0..4) {
                    0 => other,
                    _ => now.unwrap_or(other),
                };
                KeyedOp::CompareAndPut(key, expected, new)
            }
            55..80 => KeyedOp::Add(key, self.delta()),
            80..90 => {
                let keys = self.some_keys(20);
                KeyedOp::UpdateMany(keys, self.edits(progress))
            }
            _ => {
                let keys = self.some_keys(20);
                KeyedOp::AddMany(keys.into_iter().map(|key| (key, self.delta())).collect())
            }
        }
    }

    fn rule(&mut self, key: &[u8], progress: f64) -> Rule {
        let value = self.value(key, progress);
        match self.rng.random_range(0..12) {
            0 => Rule::Keep,
            1..4 => Rule::Replace(value),
            4..7 => Rule::Remove,
            7..10 => Rule::Toggle(value),
            10 => Rule::AppendIfPresent(value[..value.len().min(2_000)].into()),
            _ => Rule::Replace(self.too_long(progress)),
        }
    }

    /// Small ones, and ones that come near the ends of the range.
    fn delta(&mut self) -> i64 {
        match self.rng.random_range(0..8) {
            0 => i64::MAX - self.rng.random_range(0..3),
            1 => i64::MIN + self.rng.random_range(0..3),
            _ => self.rng.random_range(-100..=100),
        }
    }

    fn edits(&mut self, progress: f64) -> Vec<Edit> {
        (0..self.rng.random_range(1..=3)).map(|_| self.edit(progress)).collect()
    }

    fn edit(&mut self, progress: f64) -> Edit {
        match self.rng.random_range(0..5) {
            0 => Edit::Set(self.value(b"12345678", progress)),
            1 => {
                let tail = self.spec.values.value(progress, &mut self.rng);
                // Appended over and over, values would outgrow the test.
                Edit::Append(tail[..tail.len().min(2_000)].into())
            }
            2 => Edit::Resize(self.spec.values.len(progress, &mut self.rng)),
            3 => Edit::Resize(8),
            _ => Edit::Xor(self.rng.random()),
        }
    }

    fn read(&mut self) -> KeyedOp {
        match self.rng.random_range(0..100) {
            0..30 => KeyedOp::Get(self.any_key()),
            30..55 => KeyedOp::GetWith(self.any_key()),
            55..70 => KeyedOp::ContainsKey(self.near_key()),
            70..85 => KeyedOp::GetMany(self.some_keys(40)),
            85..97 => KeyedOp::Pairs(Walk::ALL[self.rng.random_range(0..Walk::ALL.len())]),
            _ => KeyedOp::Verify,
        }
    }

    /// A value that fits, beside `key` and in the table; many are counters.
    fn value(&mut self, key: &[u8], progress: f64) -> Bytes {
        let lengths = self.spec.lengths.value_of(key.len());
        if lengths.contains(&8) && (self.spec.lengths.is_fixed() || self.rng.random_ratio(1, 3)) {
            return (self.rng.next_u64() as i64 >> self.rng.random_range(0..64))
                .to_le_bytes()
                .into();
        }
        resized(&self.spec.values.value(progress, &mut self.rng), &lengths)
    }

    fn some_keys(&mut self, most: usize) -> Vec<Bytes> {
        (0..self.rng.random_range(0..most)).map(|_| self.any_key()).collect()
    }

    fn key_to_put(&mut self) -> Bytes {
        self.keys.next_to_put(&mut self.rng)
    }

    fn any_key(&mut self) -> Bytes {
        let key = self.keys.any(&mut self.rng);
        resized(&key, &self.spec.lengths.key_of_pair())
    }

    fn near_key(&mut self) -> Bytes {
        self.keys.near(&mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Answer;

    #[test]
    fn every_kind_of_operation_comes_up_and_most_comparisons_find_what_they_expect() {
        for lengths in [Lengths::ANY, Lengths::EIGHT] {
            let mut kinds = std::collections::HashSet::new();
            let (mut compared, mut equal, mut added, mut sums) = (0, 0, 0, 0);
            for seed in 0..40 {
                let mut oracle = KeyedOracle::new(lengths.clone());
                for op in KeyedSpec::random(seed, 500, lengths.clone()).ops(seed) {
                    kinds.insert(std::mem::discriminant(&op));
                    let answer = oracle.answer(&op);
                    compared += usize::from(matches!(op, KeyedOp::CompareAndPut(..)));
                    added += usize::from(matches!(op, KeyedOp::Add(..)));
                    let right = (&op, &answer);
                    equal += usize::from(matches!(
                        right,
                        (KeyedOp::CompareAndPut(..), Answer::Bool(true))
                    ));
                    sums += usize::from(matches!(right, (_, Answer::Sum(_))));
                }
            }
            assert_eq!(kinds.len(), 20);
            assert!(equal * 5 > compared, "{equal} of {compared}");
            assert!(sums * 4 > added && sums < added, "{sums} of {added}");
        }
    }
}
