//! One operation as data.

pub use crate::answer::Answer;
use crate::engine::{Computed, Decision, Direction, Edit, OrderedEngine, ScanForm};
use crate::{Bytes, Shown, interleave};
use std::fmt;
use std::ops::Bound;

/// Both ends of a range of keys, owned.
pub type OwnedBounds = (Bound<Bytes>, Bound<Bytes>);

/// How the closure of `compute` decides.
#[derive(Clone, PartialEq, Eq)]
pub enum Rule {
    /// Keep whatever is there.
    Keep,
    /// Put this value.
    Replace(Bytes),
    /// Remove it.
    Remove,
    /// Put this value if the key is absent, else remove it.
    Toggle(Bytes),
    /// Add bytes to a value that is there.
    AppendIfPresent(Bytes),
}

impl Rule {
    /// The decision of this rule about `value`.
    pub fn decide(&self, value: Option<&[u8]>) -> Decision {
        interleave::pause();
        match (self, value) {
            (Rule::Keep, _) | (Rule::AppendIfPresent(_), None) => Decision::Keep,
            (Rule::Replace(new), _) | (Rule::Toggle(new), None) => Decision::Replace(new.to_vec()),
            (Rule::Remove, _) | (Rule::Toggle(_), Some(_)) => Decision::Remove,
            (Rule::AppendIfPresent(tail), Some(value)) => Decision::Replace([value, tail].concat()),
        }
    }

    /// The value after this rule, and what `compute` answers.
    pub fn outcome(&self, value: Option<&[u8]>) -> (Option<Vec<u8>>, Computed) {
        match (self.decide(value), value) {
            (Decision::Keep, Some(value)) => (Some(value.to_vec()), Computed::Kept),
            (Decision::Keep | Decision::Remove, None) => (None, Computed::Absent),
            (Decision::Remove, Some(_)) => (None, Computed::Removed),
            (Decision::Replace(new), Some(_)) => (Some(new), Computed::Replaced),
            (Decision::Replace(new), None) => (Some(new), Computed::Inserted),
        }
    }
}

/// An operation on an ordered engine.
#[derive(Clone)]
#[expect(missing_docs, reason = "each is the engine's method of that name")]
pub enum Op {
    Get(Bytes),
    GetWith(Bytes),
    ContainsKey(Bytes),
    Put(Bytes, Bytes),
    PutIfAbsent(Bytes, Bytes),
    Remove(Bytes),
    Take(Bytes),
    Update(Bytes, Vec<Edit>),
    Upsert(Bytes, Bytes, Vec<Edit>),
    Compute(Bytes, Rule),
    First,
    Last,
    Floor(Bytes),
    Lower(Bytes),
    Ceiling(Bytes),
    Higher(Bytes),
    PopFirst,
    PopLast,
    Scan(ScanForm, OwnedBounds, Direction, usize),
    BothEnds(OwnedBounds, u64),
    GetMany(Vec<Bytes>),
    PutMany(Vec<(Bytes, Bytes)>),
    Clear,
    /// Compare everything the engine holds and run its own check.
    Verify,
}

impl Op {
    /// Asks `engine`.
    pub fn run(&self, engine: &impl OrderedEngine) -> Answer {
        let done = match self {
            Op::Get(key) => engine.get(key).map(Answer::Value),
            Op::GetWith(key) => engine.get_with(key).map(Answer::Value),
            Op::ContainsKey(key) => engine.contains_key(key).map(Answer::Bool),
            Op::Put(key, value) => engine.put(key, value).map(Answer::Bool),
            Op::PutIfAbsent(key, value) => engine.put_if_absent(key, value).map(Answer::Bool),
            Op::Remove(key) => engine.remove(key).map(Answer::Bool),
            Op::Take(key) => engine.take(key).map(Answer::Value),
            Op::Update(key, edits) => engine.update(key, edits).map(Answer::Edited),
            Op::Upsert(key, value, edits) => engine.upsert(key, value, edits).map(Answer::Upserted),
            Op::Compute(key, rule) => {
                engine.compute(key, &mut |value| rule.decide(value)).map(Answer::Computed)
            }
            Op::First => engine.first().map(Answer::Pair),
            Op::Last => engine.last().map(Answer::Pair),
            Op::Floor(key) => engine.floor(key).map(Answer::Pair),
            Op::Lower(key) => engine.lower(key).map(Answer::Pair),
            Op::Ceiling(key) => engine.ceiling(key).map(Answer::Pair),
            Op::Higher(key) => engine.higher(key).map(Answer::Pair),
            Op::PopFirst => engine.pop_first().map(Answer::Pair),
            Op::PopLast => engine.pop_last().map(Answer::Pair),
            Op::Scan(form, bounds, direction, limit) => {
                engine.scan(*form, borrowed(bounds), *direction, *limit).map(Answer::Pairs)
            }
            Op::BothEnds(bounds, from_back) => {
                engine.both_ends(borrowed(bounds), *from_back).map(Answer::Pairs)
            }
            Op::GetMany(keys) => engine.get_many(keys).map(Answer::Values),
            Op::PutMany(pairs) => Ok(Answer::of_batch(engine.put_many(pairs), Answer::Replaced)),
            Op::Clear => engine.clear().map(|()| Answer::Done),
            Op::Verify => Ok(Answer::Done),
        };
        done.unwrap_or_else(Answer::Refused)
    }
}

/// The bounds as engines take them.
pub fn borrowed(bounds: &OwnedBounds) -> crate::engine::Bounds<'_> {
    (borrowed_end(&bounds.0), borrowed_end(&bounds.1))
}

fn borrowed_end(end: &Bound<Bytes>) -> Bound<&[u8]> {
    match end {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Keep => write!(f, "Keep"),
            Rule::Replace(value) => write!(f, "Replace({})", Shown(value)),
            Rule::Remove => write!(f, "Remove"),
            Rule::Toggle(value) => write!(f, "Toggle({})", Shown(value)),
            Rule::AppendIfPresent(tail) => write!(f, "AppendIfPresent({})", Shown(tail)),
        }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |bytes: &Bytes| Shown(bytes).to_string();
        let range = |(begin, limit): &OwnedBounds| {
            let end = |end: &Bound<Bytes>| match end {
                Bound::Included(key) => format!("Included({})", Shown(key)),
                Bound::Excluded(key) => format!("Excluded({})", Shown(key)),
                Bound::Unbounded => "Unbounded".to_owned(),
            };
            format!("({}, {})", end(begin), end(limit))
        };
        match self {
            Op::Get(key) => write!(f, "get({})", show(key)),
            Op::GetWith(key) => write!(f, "get_with({})", show(key)),
            Op::ContainsKey(key) => write!(f, "contains_key({})", show(key)),
            Op::Put(key, value) => write!(f, "put({}, {})", show(key), show(value)),
            Op::PutIfAbsent(key, value) => {
                write!(f, "put_if_absent({}, {})", show(key), show(value))
            }
            Op::Remove(key) => write!(f, "remove({})", show(key)),
            Op::Take(key) => write!(f, "remove_with({})", show(key)),
            Op::Update(key, edits) => write!(f, "update({}, {edits:?})", show(key)),
            Op::Upsert(key, value, edits) => {
                write!(f, "put_if_absent_or_update({}, {}, {edits:?})", show(key), show(value))
            }
            Op::Compute(key, rule) => write!(f, "compute({}, {rule:?})", show(key)),
            Op::First => write!(f, "first()"),
            Op::Last => write!(f, "last()"),
            Op::Floor(key) => write!(f, "floor({})", show(key)),
            Op::Lower(key) => write!(f, "lower({})", show(key)),
            Op::Ceiling(key) => write!(f, "ceiling({})", show(key)),
            Op::Higher(key) => write!(f, "higher({})", show(key)),
            Op::PopFirst => write!(f, "pop_first()"),
            Op::PopLast => write!(f, "pop_last()"),
            Op::Scan(form, bounds, direction, limit) => {
                let range = range(bounds);
                write!(f, "scan({form:?}, {range}, {direction:?}, limit {limit})")
            }
            Op::BothEnds(bounds, from_back) => {
                write!(f, "both_ends({}, {from_back:#x})", range(bounds))
            }
            Op::GetMany(keys) => {
                let keys: Vec<String> = keys.iter().map(show).collect();
                write!(f, "get_many({})", keys.join(", "))
            }
            Op::PutMany(pairs) => {
                let pair =
                    |(key, value): &(Bytes, Bytes)| format!("({}, {})", Shown(key), Shown(value));
                let pairs: Vec<String> = pairs.iter().map(pair).collect();
                write!(f, "put_many({})", pairs.join(", "))
            }
            Op::Clear => write!(f, "clear()"),
            Op::Verify => write!(f, "verify()"),
        }
    }
}
