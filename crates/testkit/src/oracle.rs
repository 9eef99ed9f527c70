//! The oracle: a `BTreeMap` knows the right answer on one thread.

use crate::engine::{Accounting, Bounds, Direction, Edited, Pair, Refusal, ScanForm, Upserted};
use crate::keys::KEY_BYTES_MAX;
use crate::op::{Answer, Op, borrowed};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The map that an engine must be indistinguishable from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oracle {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Oracle {
    /// Compares the engine's `answer` to `op` with the right one, and follows it. An engine may
    /// answer `OutOfMemory` where an operation needs memory; then nothing may have changed, or
    /// of a batch or a change of several steps, exactly the part it says.
    pub fn judge(&mut self, op: &Op, answer: &Answer) -> Result<(), String> {
        if refused_for_memory(op, answer) {
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
    pub fn answer(&mut self, op: &Op) -> Answer {
        if let Some(key) = single_key(op)
            && !(1..=KEY_BYTES_MAX).contains(&key.len())
        {
            return Answer::Refused(Refusal::KeyLength);
        }
        let map = &mut self.entries;
        match op {
            Op::Get(key) | Op::GetWith(key) => Answer::Value(map.get(&**key).cloned()),
            Op::ContainsKey(key) => Answer::Bool(map.contains_key(&**key)),
            Op::Put(key, value) => Answer::Bool(map.insert(key.to_vec(), value.to_vec()).is_some()),
            Op::PutIfAbsent(key, value) => {
                let absent = !map.contains_key(&**key);
                if absent {
                    map.insert(key.to_vec(), value.to_vec());
                }
                Answer::Bool(absent)
            }
            Op::Remove(key) => Answer::Bool(map.remove(&**key).is_some()),
            Op::Take(key) => Answer::Value(map.remove(&**key)),
            Op::Update(key, edits) => {
                let value = map.get_mut(&**key);
                Answer::Edited(value.map(|value| Edited::apply(edits, value)))
            }
            Op::Upsert(key, value, edits) => Answer::Upserted(match map.get_mut(&**key) {
                Some(value) => Upserted::Updated(Edited::apply(edits, value)),
                None => {
                    map.insert(key.to_vec(), value.to_vec());
                    Upserted::Inserted
                }
            }),
            Op::Compute(key, rule) => {
                let (after, computed) = rule.outcome(map.get(&**key).map(Vec::as_slice));
                match after {
                    Some(value) => map.insert(key.to_vec(), value),
                    None => map.remove(&**key),
                };
                Answer::Computed(computed)
            }
            Op::First => Answer::Pair(owned(map.first_key_value())),
            Op::Last => Answer::Pair(owned(map.last_key_value())),
            Op::Floor(key) => Answer::Pair(owned(self.below(Bound::Included(key)))),
            Op::Lower(key) => Answer::Pair(owned(self.below(Bound::Excluded(key)))),
            Op::Ceiling(key) => Answer::Pair(owned(self.above(Bound::Included(key)))),
            Op::Higher(key) => Answer::Pair(owned(self.above(Bound::Excluded(key)))),
            Op::PopFirst => Answer::Pair(map.pop_first()),
            Op::PopLast => Answer::Pair(map.pop_last()),
            Op::Scan(form, bounds, direction, limit) => {
                Answer::Pairs(self.scan(*form, borrowed(bounds), *direction, *limit))
            }
            Op::BothEnds(bounds, from_back) => {
                Answer::Pairs(self.both_ends(borrowed(bounds), *from_back))
            }
            Op::GetMany(keys) => {
                Answer::Values(keys.iter().map(|key| map.get(&**key).cloned()).collect())
            }
            Op::PutMany(pairs) => {
                let replaces = |(key, value): &(crate::Bytes, crate::Bytes)| {
                    map.insert(key.to_vec(), value.to_vec()).is_some()
                };
                Answer::Replaced(pairs.iter().map(replaces).filter(|replaced| *replaced).count())
            }
            Op::Clear => {
                map.clear();
                Answer::Done
            }
            Op::Verify => Answer::Done,
        }
    }

    /// The right outcome of a scan.
    pub fn scan(
        &self,
        form: ScanForm,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: usize,
    ) -> Vec<Pair> {
        let shown = |(key, value): (&Vec<u8>, &Vec<u8>)| match form {
            ScanForm::Keys => (key.clone(), Vec::new()),
            _ => (key.clone(), value.clone()),
        };
        let range = self.range(bounds);
        match direction {
            Direction::Ascending => range.take(limit).map(shown).collect(),
            Direction::Descending => range.rev().take(limit).map(shown).collect(),
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.entries.keys()
    }

    /// The sums that an exact engine says it holds.
    pub fn accounting(&self) -> Accounting {
        let bytes = |len: usize| len as u64;
        Accounting {
            entries: bytes(self.entries.len()),
            key_bytes: self.entries.keys().map(|key| bytes(key.len())).sum(),
            value_bytes: self.entries.values().map(|value| bytes(value.len())).sum(),
        }
    }

    fn both_ends(&self, bounds: Bounds<'_>, from_back: u64) -> Vec<Pair> {
        let mut range = self.range(bounds);
        let step = |index: u32| match from_back >> (index % 64) & 1 {
            0 => owned(range.next()),
            _ => owned(range.next_back()),
        };
        (0..).map_while(step).collect()
    }

    fn below(&self, limit: Bound<&[u8]>) -> Option<(&Vec<u8>, &Vec<u8>)> {
        self.range((Bound::Unbounded, limit)).next_back()
    }

    fn above(&self, begin: Bound<&[u8]>) -> Option<(&Vec<u8>, &Vec<u8>)> {
        self.range((begin, Bound::Unbounded)).next()
    }

    /// `BTreeMap` panics on a range that is upside down; such a range holds nothing.
    fn range(&self, bounds: Bounds<'_>) -> impl DoubleEndedIterator<Item = (&Vec<u8>, &Vec<u8>)> {
        let upside_down = match bounds {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(a), Bound::Included(b)) => a > b,
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
                a >= b
            }
        };
        let range = (!upside_down).then(|| self.entries.range::<[u8], _>(bounds));
        range.into_iter().flatten()
    }

    /// Follows the part of `op` that an engine out of memory says is done.
    fn follow_refusal(&mut self, op: &Op, answer: &Answer) {
        match (op, answer) {
            (Op::PutMany(pairs), Answer::Stopped(done, _)) => {
                self.answer(&Op::PutMany(pairs[..*done].to_vec()));
            }
            (Op::Update(key, edits) | Op::Upsert(key, _, edits), _) => {
                if let Some((done, _)) = answer.step_refused() {
                    self.answer(&Op::Update(key.clone(), edits[..*done].to_vec()));
                }
            }
            _ => {}
        }
    }
}

/// Whether `answer` is a refusal for memory that `op` may meet: those that only read never,
/// and those that only remove neither, for removal is the way out.
fn refused_for_memory(op: &Op, answer: &Answer) -> bool {
    let needs_memory = matches!(
        op,
        Op::Put(..)
            | Op::PutIfAbsent(..)
            | Op::Update(..)
            | Op::Upsert(..)
            | Op::Compute(..)
            | Op::PutMany(..)
    );
    needs_memory && answer.is_out_of_memory()
}

/// The key of an operation that refuses one of a wrong length.
fn single_key(op: &Op) -> Option<&[u8]> {
    match op {
        Op::Get(key)
        | Op::GetWith(key)
        | Op::ContainsKey(key)
        | Op::Put(key, _)
        | Op::PutIfAbsent(key, _)
        | Op::Remove(key)
        | Op::Take(key)
        | Op::Update(key, _)
        | Op::Upsert(key, _, _)
        | Op::Compute(key, _) => Some(key),
        _ => None,
    }
}

fn owned(pair: Option<(&Vec<u8>, &Vec<u8>)>) -> Option<Pair> {
    pair.map(|(key, value)| (key.clone(), value.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use crate::engine::Edit;

    fn bytes(text: &str) -> Bytes {
        text.as_bytes().into()
    }

    #[test]
    fn a_wrong_answer_is_told_with_the_right_one() {
        let mut oracle = Oracle::default();
        let put = Op::Put(bytes("a"), bytes("1"));
        assert_eq!(oracle.judge(&put, &Answer::Bool(false)), Ok(()));
        let wrong = oracle.judge(&put, &Answer::Bool(false));
        let told = wrong.expect_err("the second put replaces");
        assert!(told.contains("answered false") && told.contains("right is true"), "{told}");
    }

    #[test]
    fn out_of_memory_changes_nothing_but_what_it_says() {
        let mut oracle = Oracle::default();
        let refused = Answer::Refused(Refusal::OutOfMemory);
        assert_eq!(oracle.judge(&Op::Put(bytes("a"), bytes("1")), &refused), Ok(()));
        assert!(oracle.is_empty());
        let batch = Op::PutMany(vec![(bytes("a"), bytes("1")), (bytes("b"), bytes("2"))]);
        let stopped = Answer::Stopped(1, Refusal::OutOfMemory);
        assert_eq!(oracle.judge(&batch, &stopped), Ok(()));
        assert_eq!(oracle.keys().collect::<Vec<_>>(), [b"a"]);
        let edits = vec![Edit::Append(bytes("2")), Edit::Append(bytes("3"))];
        let half = Answer::Edited(Some(Edited {
            after: b"12".to_vec(),
            refused: Some((1, Refusal::OutOfMemory)),
        }));
        assert_eq!(oracle.judge(&Op::Update(bytes("a"), edits), &half), Ok(()));
        assert_eq!(oracle.answer(&Op::Get(bytes("a"))), Answer::Value(Some(b"12".to_vec())));
        assert!(oracle.judge(&Op::Remove(bytes("a")), &refused).is_err());
    }

    #[test]
    fn a_range_upside_down_is_empty() {
        let mut oracle = Oracle::default();
        oracle.answer(&Op::Put(bytes("b"), bytes("")));
        let cases = [
            (Bound::Included(bytes("c")), Bound::Included(bytes("a")), 0),
            (Bound::Excluded(bytes("b")), Bound::Excluded(bytes("b")), 0),
            (Bound::Excluded(bytes("b")), Bound::Included(bytes("b")), 0),
            (Bound::Included(bytes("b")), Bound::Included(bytes("b")), 1),
        ];
        for (begin, limit, count) in cases {
            let bounds = (begin, limit);
            let found = oracle.both_ends(borrowed(&bounds), 0b10);
            assert_eq!(found.len(), count, "{:?}", Op::BothEnds(bounds, 0));
        }
    }
}
