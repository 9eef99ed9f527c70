//! Histories: the operations of each thread, their times and their answers.
//!
//! One clock counts every begin and end of every operation: if one operation's end is before
//! another's begin, it happened before; else either may have come first.

use crate::engine::{Computed, Edit, Edited, Refusal, Result, Upserted};
use crate::op::Rule;
use crate::{Bytes, Shown};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts moments for all threads of one history.
#[derive(Debug, Default)]
pub struct Clock {
    moments: AtomicU64,
}

impl Clock {
    /// The next moment; no two calls get the same.
    pub fn tick(&self) -> u64 {
        // SeqCst: the operation between two ticks must not seem to lie outside of them.
        self.moments.fetch_add(1, Ordering::SeqCst)
    }
}

/// An operation on one key with its answer: what a legal order of operations must explain.
#[derive(Clone, PartialEq, Eq)]
pub enum Call {
    /// Saw the value, or that there is none.
    Get(Option<Vec<u8>>),
    /// Saw whether the key was there.
    Contains(bool),
    /// Put a value; whether it replaced one, where it was told.
    Put(Bytes, Option<bool>),
    /// Put a value if there was none; whether there was none.
    PutIfAbsent(Bytes, bool),
    /// Whether there was something to remove.
    Remove(bool),
    /// The value that was removed.
    Take(Option<Vec<u8>>),
    /// Changed a value in place; what it left there.
    Update(Vec<Edit>, Option<Edited>),
    /// Put a value, or else changed the one there; what the change left.
    Upsert(Bytes, Vec<Edit>, Option<Edited>),
    /// Decided by a rule; what that did.
    Compute(Rule, Computed),
    /// Put the second value if the first was there; whether it did.
    CompareAndPut(Bytes, Bytes, bool),
    /// Added to a counter; its sum, or none where the value was no counter.
    Add(i64, Option<i64>),
}

/// The value of a key, if it has one.
pub type State = Option<Vec<u8>>;

impl Call {
    /// A call of `put_if_absent_or_update`, with its outcome.
    pub fn upsert(value: &Bytes, edits: &[Edit], upserted: Upserted) -> Call {
        let left = match upserted {
            Upserted::Inserted => None,
            Upserted::Updated(left) => Some(left),
        };
        Call::Upsert(value.clone(), edits.to_vec(), left)
    }

    /// The reads of a batch, one for each key.
    pub fn gets(keys: &[Bytes], values: Vec<Option<Vec<u8>>>) -> Vec<(&[u8], Call)> {
        keys.iter().zip(values).map(|(key, value)| (&**key, Call::Get(value))).collect()
    }

    /// The puts of a batch, one for each key.
    pub fn puts(pairs: &[(Bytes, Bytes)]) -> Vec<(&[u8], Call)> {
        pairs.iter().map(|(key, value)| (&**key, Call::Put(value.clone(), None))).collect()
    }

    /// Whether its answer says that it left things as they were, wherever it was legal.
    pub fn changed_nothing(&self) -> bool {
        match self {
            Call::Get(_) | Call::Contains(_) => true,
            Call::PutIfAbsent(_, done) | Call::Remove(done) => !done,
            Call::Take(taken) => taken.is_none(),
            Call::Update(_, left) => left.is_none(),
            Call::Compute(_, computed) => matches!(computed, Computed::Kept | Computed::Absent),
            Call::CompareAndPut(_, _, done) => !done,
            Call::Add(_, sum) => sum.is_none(),
            Call::Put(..) | Call::Upsert(..) => false,
        }
    }

    /// The state after this call in `state`, or `None` if its answer is impossible there.
    pub fn step(&self, state: &State) -> Option<State> {
        let present = state.is_some();
        let same = |legal: bool| legal.then(|| state.clone());
        let edited = |edits: &[Edit], value: &Vec<u8>, left: &Edited| {
            let mut value = value.clone();
            (Edited::apply(edits, &mut value) == *left).then_some(Some(value))
        };
        match self {
            Call::Get(seen) => same(seen == state),
            Call::Contains(seen) => same(*seen == present),
            Call::Put(value, replaced) => {
                let legal = replaced.is_none_or(|replaced| replaced == present);
                legal.then(|| Some(value.to_vec()))
            }
            Call::PutIfAbsent(value, true) => (!present).then(|| Some(value.to_vec())),
            Call::PutIfAbsent(_, false) => same(present),
            Call::Remove(removed) => (*removed == present).then_some(None),
            Call::Take(taken) => (taken == state).then_some(None),
            Call::Update(edits, left) => match (state, left) {
                (None, None) => Some(None),
                (Some(value), Some(left)) => edited(edits, value, left),
                _ => None,
            },
            Call::Upsert(new, edits, left) => match (state, left) {
                (None, None) => Some(Some(new.to_vec())),
                (Some(value), Some(left)) => edited(edits, value, left),
                _ => None,
            },
            Call::Compute(rule, computed) => {
                let (after, right) = rule.outcome(state.as_deref());
                (*computed == right).then_some(after)
            }
            Call::CompareAndPut(expected, new, done) => {
                let equal = state.as_deref() == Some(expected);
                let after = || if equal { Some(new.to_vec()) } else { state.clone() };
                (*done == equal).then(after)
            }
            Call::Add(delta, sum) => {
                let right = add(state.as_deref(), *delta).ok();
                let after = |sum: i64| Some(sum.to_le_bytes().to_vec());
                (*sum == right).then(|| right.map_or_else(|| state.clone(), after))
            }
        }
    }
}

/// The answer of adding to a counter: 8 bytes, little endian, an absent one counting as 0.
pub fn add(value: Option<&[u8]>, delta: i64) -> Result<i64> {
    let counter = match value {
        Some(value) => i64::from_le_bytes(value.try_into().map_err(|_| Refusal::NotACounter)?),
        None => 0,
    };
    counter.checked_add(delta).ok_or(Refusal::Overflow)
}

/// Calls that a sequential specification explains: of one key, or of an object with many.
pub trait Specified: Clone + fmt::Debug {
    /// What calls change.
    type State: Clone + Eq + Hash;

    /// The state after this call in `state`, or `None` if its answer is impossible there.
    fn step(&self, state: &Self::State) -> Option<Self::State>;

    /// Whether its answer says that it left things as they were, wherever it was legal.
    fn changed_nothing(&self) -> bool;

    /// A state, for people.
    fn show(state: &Self::State) -> String;
}

impl Specified for Call {
    type State = State;

    fn step(&self, state: &State) -> Option<State> {
        Call::step(self, state)
    }

    fn changed_nothing(&self) -> bool {
        Call::changed_nothing(self)
    }

    fn show(state: &State) -> String {
        state.as_ref().map_or_else(|| "nothing".to_owned(), |value| Shown(value).to_string())
    }
}

/// A call by a thread between two moments. Calls of one thread come in the order of their begins;
/// those of a batch, which have one begin, in any.
#[derive(Clone, PartialEq, Eq)]
pub struct Event<C = Call> {
    /// Which thread.
    pub thread: usize,
    /// The moment before it.
    pub begin: u64,
    /// The moment after it.
    pub end: u64,
    /// The operation.
    pub call: C,
}

/// The events of each key.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// By key; in any order.
    pub by_key: BTreeMap<Vec<u8>, Vec<Event>>,
}

impl History {
    /// Adds an event.
    pub fn push(&mut self, key: &[u8], event: Event) {
        match self.by_key.get_mut(key) {
            Some(events) => events.push(event),
            None => drop(self.by_key.insert(key.to_vec(), vec![event])),
        }
    }

    /// Adds all events of another history of the same clock.
    pub fn merge(&mut self, other: History) {
        for (key, events) in other.by_key {
            self.by_key.entry(key).or_default().extend(events);
        }
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of events that ran while another of the same key did: without any, a history proves
    /// nothing about concurrency.
    pub fn overlaps(&self) -> usize {
        self.by_key.values().map(|events| overlaps(events)).sum()
    }
}

/// Number of events that ran while another did.
pub fn overlaps<C>(events: &[Event<C>]) -> usize {
    let mut by_begin: Vec<(u64, u64)> = events.iter().map(|e| (e.begin, e.end)).collect();
    by_begin.sort_unstable();
    let pairs = by_begin.windows(2);
    pairs.filter(|pair| pair[1].0 < pair[0].1).count()
}

impl<C: fmt::Debug> fmt::Debug for Event<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begin, end, thread) = (self.begin, self.end, self.thread);
        write!(f, "[{begin:>6} ..{end:>6}] thread {thread}: {:?}", self.call)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = |state: &State| match state {
            Some(value) => Shown(value).to_string(),
            None => "none".to_owned(),
        };
        let left = |edited: &Option<Edited>| state(&edited.as_ref().map(|e| e.after.clone()));
        match self {
            Call::Get(seen) => write!(f, "get -> {}", state(seen)),
            Call::Contains(seen) => write!(f, "contains -> {seen}"),
            Call::Put(value, Some(replaced)) => {
                write!(f, "put {} -> replaced {replaced}", Shown(value))
            }
            Call::Put(value, None) => write!(f, "put {}", Shown(value)),
            Call::PutIfAbsent(value, inserted) => {
                write!(f, "put_if_absent {} -> inserted {inserted}", Shown(value))
            }
            Call::Remove(removed) => write!(f, "remove -> {removed}"),
            Call::Take(taken) => write!(f, "remove_with -> {}", state(taken)),
            Call::Update(edits, edited) => write!(f, "update {edits:?} -> {}", left(edited)),
            Call::Upsert(value, edits, None) => {
                write!(f, "upsert {} else {edits:?} -> inserted", Shown(value))
            }
            Call::Upsert(value, edits, edited) => {
                let left = left(edited);
                write!(f, "upsert {} else {edits:?} -> {left}", Shown(value))
            }
            Call::Compute(rule, computed) => write!(f, "compute {rule:?} -> {computed:?}"),
            Call::CompareAndPut(expected, new, done) => {
                let (expected, new) = (Shown(expected), Shown(new));
                write!(f, "compare_and_put {expected}, {new} -> put {done}")
            }
            Call::Add(delta, Some(sum)) => write!(f, "add {delta} -> {sum}"),
            Call::Add(delta, None) => write!(f, "add {delta} -> not a counter"),
        }
    }
}
