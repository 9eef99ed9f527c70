//! Streams of operations, which follow from a seed and a spec.

use crate::engine::{Direction, Edit, ScanForm};
use crate::keys::{KeyShape, near};
use crate::op::{Op, OwnedBounds, Rule};
pub use crate::pick::KeyOrder;
use crate::pick::Picker;
use crate::values::ValueShape;
use crate::{Bytes, Rng};
use rand::RngExt as _;
use std::ops::Bound;

/// The ingredients of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSpec {
    /// Number of operations.
    pub op_count: usize,
    /// Shape of the keys.
    pub keys: KeyShape,
    /// Number of distinct keys, at most.
    pub key_count: usize,
    /// Order in which writes come to them.
    pub order: KeyOrder,
    /// Shape of the values.
    pub values: ValueShape,
}

impl StreamSpec {
    /// A spec that follows from `seed`: over many seeds, every shape meets every other.
    pub fn random(seed: u64, op_count: usize) -> Self {
        let mut rng = crate::rng(seed ^ 0x005E_ED0F_5BEC);
        let keys = KeyShape::ALL[rng.random_range(0..KeyShape::ALL.len())];
        let key_count = match keys {
            KeyShape::Huge => rng.random_range(1..=12),
            _ => [3, 10, 50, 300][rng.random_range(0..4)],
        };
        StreamSpec {
            op_count,
            keys,
            key_count,
            order: KeyOrder::ALL[rng.random_range(0..KeyOrder::ALL.len())],
            values: ValueShape::ALL[rng.random_range(0..ValueShape::ALL.len())],
        }
    }

    /// The operations that follow from `seed`.
    pub fn ops(&self, seed: u64) -> Vec<Op> {
        let mut rng = crate::rng(seed);
        let keys = self.keys.keys(self.key_count, &mut rng);
        let mut writer = Writer { spec: *self, keys: Picker::new(keys, self.order), rng };
        let mut op = |index| writer.op(index as f64 / self.op_count as f64);
        (0..self.op_count).map(&mut op).collect()
    }
}

/// Writes a stream, one operation at a time.
struct Writer {
    spec: StreamSpec,
    keys: Picker,
    rng: Rng,
}

impl Writer {
    fn op(&mut self, progress: f64) -> Op {
        // The stream swings between growing, changing and emptying, so that chunks split and merge.
        let phase = (progress * 6.0) as usize % 3;
        let (put, remove) = [(45, 5), (22, 18), (8, 40)][phase];
        let dice = self.rng.random_range(0..100);
        if dice < put {
            self.put(progress)
        } else if dice < put + remove {
            self.remove()
        } else if dice < put + remove + 22 {
            self.change(progress)
        } else {
            self.read()
        }
    }

    fn put(&mut self, progress: f64) -> Op {
        let (key, value) = (self.key_to_put(), self.value(progress));
        match self.rng.random_range(0..100) {
            0..65 => Op::Put(key, value),
            65..85 => Op::PutIfAbsent(key, value),
            85..96 => {
                let mut pairs = vec![(key, value)];
                for _ in 0..self.rng.random_range(0..40) {
                    pairs.push((self.key_to_put(), self.value(progress)));
                }
                Op::PutMany(pairs)
            }
            // Bad keys belong to every stream.
            96 => Op::Put(Bytes::from(&b""[..]), value),
            97 => Op::Put(vec![b'k'; crate::keys::KEY_BYTES_MAX + 1].into(), value),
            _ => Op::Upsert(key, value, vec![]),
        }
    }

    fn remove(&mut self) -> Op {
        match self.rng.random_range(0..100) {
            0..55 => Op::Remove(self.key_to_remove()),
            55..75 => Op::Take(self.key_to_remove()),
            75..85 => Op::PopFirst,
            85..95 => Op::PopLast,
            95..97 => Op::Clear,
            _ => Op::Remove(self.near_key()),
        }
    }

    fn change(&mut self, progress: f64) -> Op {
        let key = self.key_to_put();
        let mut edits = Vec::new();
        for _ in 0..self.rng.random_range(1..=3) {
            edits.push(self.edit(progress));
        }
        match self.rng.random_range(0..10) {
            0..5 => Op::Update(key, edits),
            5..8 => Op::Upsert(key, self.value(progress), edits),
            _ => Op::Compute(key, self.rule(progress)),
        }
    }

    fn edit(&mut self, progress: f64) -> Edit {
        match self.rng.random_range(0..4) {
            0 => Edit::Set(self.value(progress)),
            1 => {
                let tail = self.value(progress);
                // Appended over and over, values would outgrow the test.
                Edit::Append(tail[..tail.len().min(2_000)].into())
            }
            2 => Edit::Resize(self.spec.values.len(progress, &mut self.rng)),
            _ => Edit::Xor(self.rng.random()),
        }
    }

    fn rule(&mut self, progress: f64) -> Rule {
        match self.rng.random_range(0..5) {
            0 => Rule::Keep,
            1 => Rule::Replace(self.value(progress)),
            2 => Rule::Remove,
            3 => Rule::Toggle(self.value(progress)),
            _ => Rule::AppendIfPresent(self.value(progress)),
        }
    }

    fn read(&mut self) -> Op {
        match self.rng.random_range(0..100) {
            0..12 => Op::Get(self.any_key()),
            12..24 => Op::GetWith(self.any_key()),
            24..30 => Op::ContainsKey(self.near_key()),
            30..34 => Op::First,
            34..38 => Op::Last,
            38..44 => Op::Floor(self.near_key()),
            44..50 => Op::Lower(self.near_key()),
            50..56 => Op::Ceiling(self.near_key()),
            56..62 => Op::Higher(self.near_key()),
            62..82 => {
                let form = ScanForm::ALL[self.rng.random_range(0..4)];
                let direction = match self.rng.random() {
                    true => Direction::Ascending,
                    false => Direction::Descending,
                };
                let limit = [1, 5, usize::MAX][self.rng.random_range(0..3)];
                Op::Scan(form, self.bounds(), direction, limit)
            }
            82..90 => Op::BothEnds(self.bounds(), self.rng.random()),
            90..98 => {
                let count = self.rng.random_range(0..40);
                Op::GetMany((0..count).map(|_| self.any_key()).collect())
            }
            _ => Op::Verify,
        }
    }

    fn bounds(&mut self) -> OwnedBounds {
        let mut end = || match self.rng.random_range(0..4) {
            0 => Bound::Unbounded,
            1 | 2 => {
                let key = self.keys.uniform(&mut self.rng);
                let key = match self.rng.random_range(0..2) {
                    0 => key,
                    _ => near(&key, &mut self.rng),
                };
                Bound::Included(key)
            }
            _ => Bound::Excluded(self.keys.uniform(&mut self.rng)),
        };
        let (begin, limit) = (end(), end());
        // One in a while stays upside down.
        match (&begin, &limit) {
            (Bound::Included(a), Bound::Excluded(b)) if a > b && a.len() % 8 != 0 => {
                (Bound::Included(b.clone()), Bound::Excluded(a.clone()))
            }
            _ => (begin, limit),
        }
    }

    fn value(&mut self, progress: f64) -> Bytes {
        self.spec.values.value(progress, &mut self.rng)
    }

    fn any_key(&mut self) -> Bytes {
        self.keys.any(&mut self.rng)
    }

    fn near_key(&mut self) -> Bytes {
        self.keys.near(&mut self.rng)
    }

    fn key_to_put(&mut self) -> Bytes {
        self.keys.next_to_put(&mut self.rng)
    }

    fn key_to_remove(&mut self) -> Bytes {
        self.keys.next_to_remove(&mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_its_stream() {
        let text = |seed| {
            let ops = StreamSpec::random(seed, 300).ops(seed);
            format!("{ops:?}")
        };
        assert_eq!(text(4), text(4));
        assert_ne!(text(4), text(5));
    }

    #[test]
    fn every_shape_and_every_kind_of_operation_comes_up() {
        let specs: Vec<StreamSpec> = (0..200).map(|seed| StreamSpec::random(seed, 100)).collect();
        for keys in KeyShape::ALL {
            assert!(specs.iter().any(|spec| spec.keys == keys), "{keys:?}");
        }
        for values in ValueShape::ALL {
            assert!(specs.iter().any(|spec| spec.values == values), "{values:?}");
        }
        for order in KeyOrder::ALL {
            assert!(specs.iter().any(|spec| spec.order == order), "{order:?}");
        }
        let kinds: std::collections::HashSet<_> = (0..40)
            .flat_map(|seed| StreamSpec::random(seed, 500).ops(seed))
            .map(|op| std::mem::discriminant(&op))
            .collect();
        assert_eq!(kinds.len(), 24);
    }
}
