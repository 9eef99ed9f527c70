//! The operations of a thread on a table, one by one, the same in every process.
//!
//! A thread has keys of its own, so that the right answer to each operation, and what a table holds
//! after so many of them, follow from the seed alone. An operation is named by its number; a key of
//! the thread, its *position*, holds the number of the operation that comes next. A table that was
//! cut at some moment holds a prefix of each thread's operations, and perhaps a part of the next.

use std::collections::BTreeMap;

use rand::RngExt as _;
use sapwood::RecordLayout;
use sapwood_testkit::Rng;

/// The contents of a thread's part of a table.
pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Data keys of a thread, and as many counters: few enough to come back to, more than memory holds.
const KEYS: u64 = 48;
/// A value of the variable layout at most: with its key it fits into a page of 4 KiB.
const VALUE_BYTES_MAX: usize = 1_500;

/// The operations of one thread on one table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) seed: u64,
    pub(crate) layout: RecordLayout,
    pub(crate) thread: u64,
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    Get(Vec<u8>),
    Put(Vec<u8>, Vec<u8>),
    PutIfAbsent(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Add(Vec<u8>, i64),
    /// Turns all bits of a value.
    Update(Vec<u8>),
    /// Puts a value if the old one is what the model says.
    Swap(Vec<u8>, Vec<u8>),
    PutMany(Vec<(Vec<u8>, Vec<u8>)>),
    AddMany(Vec<(Vec<u8>, i64)>),
}

/// The answer of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Did(bool),
    Sum(i64),
    Value(Option<Vec<u8>>),
}

impl Stream {
    /// The key that holds the number of the next operation.
    pub(crate) fn position_key(self) -> Vec<u8> {
        match self.layout {
            RecordLayout::Variable => format!("position of thread {}", self.thread).into_bytes(),
            RecordLayout::Fixed8 => (u64::MAX - self.thread).to_be_bytes().to_vec(),
        }
    }

    /// Which thread owns a key.
    pub(crate) fn owner(layout: RecordLayout, key: &[u8]) -> Option<u64> {
        match layout {
            RecordLayout::Variable => match key.strip_prefix(b"position of thread ") {
                Some(number) => std::str::from_utf8(number).ok()?.parse().ok(),
                None => Some(u64::from(*key.get(1)?)),
            },
            RecordLayout::Fixed8 => {
                let number = u64::from_be_bytes(key.try_into().ok()?);
                Some(if number > u64::MAX / 2 { u64::MAX - number } else { number >> 32 })
            }
        }
    }

    /// The `number`-th data key; counters have the numbers from `KEYS` on.
    fn key(self, number: u64) -> Vec<u8> {
        match self.layout {
            RecordLayout::Variable => {
                let mut key = vec![b'a' + (number % 26) as u8, self.thread as u8];
                key.extend(number.to_string().bytes());
                key.resize(key.len() + (number * 7 % 60) as usize, b'.');
                key
            }
            RecordLayout::Fixed8 => (self.thread << 32 | number).to_be_bytes().to_vec(),
        }
    }

    fn value(self, rng: &mut Rng) -> Vec<u8> {
        let bytes = match self.layout {
            RecordLayout::Fixed8 => 8,
            RecordLayout::Variable => match rng.random_range(0..16) {
                0 => rng.random_range(0..VALUE_BYTES_MAX),
                1 => 0,
                _ => rng.random_range(1..200),
            },
        };
        let first: u8 = rng.random();
        (0..bytes).map(|at| first.wrapping_add(at as u8)).collect()
    }

    /// Operation `number`.
    pub(crate) fn op(self, number: u64) -> Op {
        let mut rng = sapwood_testkit::rng(
            self.seed ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ self.thread << 56,
        );
        let rng = &mut rng;
        let data = self.key(rng.random_range(0..KEYS));
        let counter = self.key(KEYS + rng.random_range(0..KEYS));
        match rng.random_range(0..20) {
            0..=5 => Op::Put(data, self.value(rng)),
            6 => Op::PutIfAbsent(data, self.value(rng)),
            7..=8 => Op::Remove(if rng.random() { data } else { counter }),
            9..=11 => Op::Add(counter, rng.random_range(-1000..1000)),
            12..=13 => Op::Update(data),
            14 => Op::Swap(data, self.value(rng)),
            15 => {
                let entry = |_| (self.key(rng.random_range(0..KEYS)), self.value(rng));
                Op::PutMany((0..6).map(entry).collect())
            }
            16 => {
                let mut delta =
                    |_| (self.key(KEYS + rng.random_range(0..KEYS)), rng.random_range(-1000..1000));
                Op::AddMany((0..6).map(&mut delta).collect())
            }
            _ => Op::Get(if rng.random() { data } else { counter }),
        }
    }
}

impl Op {
    /// Changes the model and says what is right to answer.
    pub(crate) fn apply(&self, contents: &mut Contents) -> Answer {
        match self {
            Op::Get(key) => return Answer::Value(contents.get(key).cloned()),
            Op::Put(key, value) => drop(contents.insert(key.clone(), value.clone())),
            Op::PutIfAbsent(key, value) => {
                let did = !contents.contains_key(key);
                if did {
                    contents.insert(key.clone(), value.clone());
                }
                return Answer::Did(did);
            }
            Op::Remove(key) => return Answer::Did(contents.remove(key).is_some()),
            Op::Add(key, delta) => return Answer::Sum(add(contents, key, *delta)),
            Op::Update(key) => {
                let value = contents.get_mut(key);
                let did = value.is_some();
                value.into_iter().flatten().for_each(|byte| *byte = !*byte);
                return Answer::Did(did);
            }
            Op::Swap(key, new) => {
                return Answer::Did(match contents.get_mut(key) {
                    Some(value) => {
                        *value = new.clone();
                        true
                    }
                    None => false,
                });
            }
            Op::PutMany(entries) => {
                contents.extend(entries.iter().cloned());
            }
            Op::AddMany(deltas) => {
                for (key, delta) in deltas {
                    add(contents, key, *delta);
                }
            }
        }
        Answer::Done
    }

    /// The keys that it may change.
    pub(crate) fn keys(&self) -> Vec<&[u8]> {
        match self {
            Op::Get(_) => Vec::new(),
            Op::Put(key, _)
            | Op::PutIfAbsent(key, _)
            | Op::Remove(key)
            | Op::Add(key, _)
            | Op::Update(key)
            | Op::Swap(key, _) => vec![key],
            Op::PutMany(entries) => entries.iter().map(|(key, _)| &**key).collect(),
            Op::AddMany(deltas) => deltas.iter().map(|(key, _)| &**key).collect(),
        }
    }

    /// The values that its keys may have while it is under way: those of before, of after, and of
    /// each step of a batch.
    pub(crate) fn stages(&self, before: &Contents) -> Vec<Contents> {
        let mut stages = vec![before.clone()];
        let mut step = |op: Op| {
            let mut next = stages.last().expect("one at least").clone();
            op.apply(&mut next);
            stages.push(next);
        };
        match self {
            Op::PutMany(entries) => {
                entries.iter().for_each(|(key, value)| step(Op::Put(key.clone(), value.clone())));
            }
            Op::AddMany(deltas) => {
                deltas.iter().for_each(|(key, delta)| step(Op::Add(key.clone(), *delta)));
            }
            op => step(op.clone()),
        }
        stages
    }
}

fn add(contents: &mut Contents, key: &[u8], delta: i64) -> i64 {
    let old = contents.get(key).map_or(0, |value| {
        i64::from_le_bytes(value.as_slice().try_into().expect("counters have 8 bytes"))
    });
    let sum = old + delta;
    contents.insert(key.to_vec(), sum.to_le_bytes().to_vec());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_owner() {
        for layout in [RecordLayout::Variable, RecordLayout::Fixed8] {
            for thread in 0..3 {
                let stream = Stream { seed: 1, layout, thread };
                assert_eq!(Stream::owner(layout, &stream.position_key()), Some(thread));
                for number in 0..300 {
                    for key in stream.op(number).keys() {
                        assert_eq!(Stream::owner(layout, key), Some(thread), "{key:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_batch_has_a_stage_for_each_of_its_entries() {
        let entry = |key: u8| (vec![key], vec![key]);
        let batch = Op::PutMany(vec![entry(1), entry(2)]);
        let sizes: Vec<_> = batch.stages(&Contents::new()).iter().map(Contents::len).collect();
        assert_eq!(sizes, [0, 1, 2]);
    }
}
