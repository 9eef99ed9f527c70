//! The partial state of a query, after some of the objects.
//!
//! A [`Partial`] holds a tally and, for each group, its states. It merges with others of the same
//! query, and has one form as bytes, see `docs/design/aggregate.md`:
//!
//! - I-ONE-FORM: equal partial states have equal bytes, and decoding refuses all other bytes.
//!   Groups are stored ascending by the bytes of their values.

use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;

use crate::error::{Example, Mismatch, QueryError, Result};
use crate::plan::compiled::Compiled;
use crate::state::{State, add_counts};
use crate::value::stored::{self, Corrupt, Envelope, Reader};

/// The states of a group.
pub(crate) type States = Box<[State]>;

/// A partial state of a query: what some of the objects add up to.
///
/// ```
/// use sapwood::aggregate::{Aggregate, Query};
///
/// let query = Query::new("n:u32le".parse()?)
///     .aggregates(Aggregate::list("sum(n)")?)
///     .compile()?;
/// let part = |numbers: std::ops::Range<u32>| {
///     let mut fold = query.fold();
///     numbers.for_each(|n| fold.push(&n.to_be_bytes(), &n.to_le_bytes()).expect("no groups"));
///     fold.into_partial()
/// };
/// // A part from elsewhere arrives as bytes.
/// let bytes = part(0..50).encode();
/// let whole = query.merge(part(50..100), query.decode(&bytes)?)?;
/// assert_eq!(whole.encode(), part(0..100).encode());
/// assert_eq!(query.finish(whole)?.value(0, "sum(n)")?, &4950.into());
/// # Ok::<(), sapwood::aggregate::QueryError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Partial {
    fingerprint: u64,
    tally: Tally,
    groups: Groups,
}

/// States by the stored form of the group's values.
#[derive(Debug, Clone)]
enum Groups {
    /// The query does not group.
    One(States),
    Many(HashMap<Box<[u8]>, States>),
}

/// How many objects went which way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Tally {
    /// Objects that were selected by their keys.
    pub selected: u64,
    /// Of these, objects for which the filter is true: those that the figures are of.
    pub matched: u64,
    /// Of the selected, objects that do not have what the query reads. They are in no figure.
    pub mismatched: u64,
    /// Of the matched, objects of which some figure passed over a missing value.
    pub missing: u64,
    /// Selected keys without an object.
    pub absent: u64,
    /// Of the mismatched objects the one with the least key.
    pub first_mismatch: Option<Example>,
}

impl Tally {
    pub(crate) fn merge(&mut self, other: Tally) -> Result<()> {
        let both = [
            (&mut self.selected, other.selected),
            (&mut self.matched, other.matched),
            (&mut self.mismatched, other.mismatched),
            (&mut self.missing, other.missing),
            (&mut self.absent, other.absent),
        ];
        for (left, right) in both {
            add_counts(left, right).map_err(|_| count_overflow())?;
        }
        let examples = [self.first_mismatch.take(), other.first_mismatch];
        self.first_mismatch = examples.into_iter().flatten().min();
        Ok(())
    }

    #[cold]
    pub(crate) fn add_mismatch(&mut self, query: &Compiled, key: &[u8], mismatch: Mismatch) {
        self.mismatched += 1;
        let key = &key[..key.len().min(Example::KEY_BYTES_MAX)];
        // The text is made for the least key alone: objects may be skipped by the million.
        if self.first_mismatch.as_ref().is_none_or(|first| key <= &first.key[..]) {
            let what = format!("{} {}", query.field_name(mismatch.field), mismatch.why);
            let example = Example { key: key.to_vec(), what };
            if self.first_mismatch.as_ref().is_none_or(|first| example < *first) {
                self.first_mismatch = Some(example);
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for count in [self.selected, self.matched, self.mismatched, self.missing, self.absent] {
            out.extend(count.to_le_bytes());
        }
        if let Some(example) = &self.first_mismatch {
            example.encode(out);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> std::result::Result<Tally, Corrupt> {
        let mut count = || reader.u64("a count");
        let mut tally = Tally {
            selected: count()?,
            matched: count()?,
            mismatched: count()?,
            missing: count()?,
            absent: count()?,
            first_mismatch: None,
        };
        let used = tally.matched.checked_add(tally.mismatched);
        if used.is_none_or(|used| used > tally.selected) || tally.missing > tally.matched {
            return Err(reader.corrupt("the counts of objects contradict each other"));
        }
        if tally.mismatched > 0 {
            tally.first_mismatch = Some(Example::decode(reader)?);
        }
        Ok(tally)
    }
}

pub(crate) fn check_own(query: &Compiled, partial: &Partial) -> Result<()> {
    if partial.fingerprint == query.fingerprint() { Ok(()) } else { Err(QueryError::Foreign) }
}

pub(crate) fn count_overflow() -> QueryError {
    QueryError::Overflow { column: "a counter".into(), what: "above 2^64".into() }
}

impl Partial {
    pub(crate) fn new(query: &Compiled) -> Partial {
        let groups = match query.groups.is_empty() {
            true => Groups::One(new_states(query)),
            false => Groups::Many(HashMap::new()),
        };
        Partial { fingerprint: query.fingerprint(), tally: Tally::default(), groups }
    }

    /// How many objects went which way so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How many groups there are so far; 1 if the query does not group.
    pub fn groups(&self) -> usize {
        match &self.groups {
            Groups::One(_) => 1,
            Groups::Many(groups) => groups.len(),
        }
    }

    pub(crate) fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// The states of a query that does not group.
    pub(crate) fn one_group(&mut self) -> &mut States {
        match &mut self.groups {
            Groups::One(states) => states,
            Groups::Many(_) => unreachable!("the query does not group"),
        }
    }

    /// The states of a group, which is made if it is new.
    #[inline]
    pub(crate) fn states(&mut self, query: &Compiled, group: &[u8]) -> Result<&mut States> {
        self.states_within(query, group, query.groups_max)
    }

    /// The same with another bound of the groups that there may be.
    #[inline]
    pub(crate) fn states_within(
        &mut self,
        query: &Compiled,
        group: &[u8],
        groups_max: usize,
    ) -> Result<&mut States> {
        match &mut self.groups {
            Groups::One(states) => Ok(states),
            Groups::Many(groups) => {
                let count = groups.len();
                match groups.entry_ref(group) {
                    EntryRef::Occupied(entry) => Ok(entry.into_mut()),
                    EntryRef::Vacant(_) if count >= groups_max => {
                        Err(QueryError::TooManyGroups { max: groups_max })
                    }
                    EntryRef::Vacant(entry) => {
                        Ok(entry.insert_with_key(group.into(), new_states(query)))
                    }
                }
            }
        }
    }

    /// The stored forms of all groups, and their states.
    pub(crate) fn into_groups(self) -> Vec<(Box<[u8]>, States)> {
        match self.groups {
            Groups::One(states) => vec![(Box::default(), states)],
            Groups::Many(groups) => groups.into_iter().collect(),
        }
    }

    pub(crate) fn merge(self, query: &Compiled, other: Partial) -> Result<Partial> {
        check_own(query, &self)?;
        check_own(query, &other)?;
        let (mut into, from) =
            if self.groups() >= other.groups() { (self, other) } else { (other, self) };
        into.tally.merge(from.tally.clone())?;
        for (group, states) in from.into_groups() {
            let kept = into.states(query, &group)?;
            for ((kept, plan), state) in kept.iter_mut().zip(&query.states).zip(states) {
                kept.merge(plan.spec, state).map_err(|_| count_overflow())?;
            }
        }
        Ok(into)
    }

    /// The state as bytes, to be read by [`Compiled::decode`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = ENVELOPE.begin();
        out.extend(self.fingerprint.to_le_bytes());
        self.tally.encode(&mut out);
        match &self.groups {
            Groups::One(states) => states.iter().for_each(|state| state.encode(&mut out)),
            Groups::Many(groups) => {
                out.extend(stored::len(groups.len()).to_le_bytes());
                let mut groups: Vec<_> = groups.iter().collect();
                groups.sort_unstable_by_key(|(group, _)| &group[..]);
                for (group, states) in groups {
                    stored::sized(group, &mut out);
                    states.iter().for_each(|state| state.encode(&mut out));
                }
            }
        }
        ENVELOPE.seal(&mut out);
        out
    }

    pub(crate) fn decode(query: &Compiled, bytes: &[u8]) -> Result<Partial> {
        let mut reader = ENVELOPE.open(bytes)?;
        let fingerprint = reader.u64("the fingerprint of the query")?;
        if fingerprint != query.fingerprint() {
            return Err(QueryError::Foreign);
        }
        let mut partial = Partial::new(query);
        partial.tally = Tally::decode(&mut reader)?;
        match &mut partial.groups {
            Groups::One(states) => *states = decode_states(query, &mut reader)?,
            Groups::Many(groups) => {
                let count = reader.count(4, "groups")?;
                if count > query.groups_max {
                    return Err(QueryError::TooManyGroups { max: query.groups_max });
                }
                let mut last: Option<&[u8]> = None;
                for _ in 0..count {
                    let at = reader.offset();
                    let group = reader.sized("a group")?;
                    let wrong = || Corrupt { offset: at, what: "groups do not ascend".into() };
                    if last.is_some_and(|last| last >= group) {
                        return Err(wrong().into());
                    }
                    stored::values(group, query.groups.len())
                        .map_err(|inner| Corrupt { offset: at + 4 + inner.offset, ..inner })?;
                    groups.insert(group.into(), decode_states(query, &mut reader)?);
                    last = Some(group);
                }
            }
        }
        match reader.is_empty() {
            true => Ok(partial),
            false => Err(reader.corrupt("nothing more is expected").into()),
        }
    }
}

fn new_states(query: &Compiled) -> States {
    query.states.iter().map(|plan| plan.spec.new_state()).collect()
}

fn decode_states(
    query: &Compiled,
    reader: &mut Reader<'_>,
) -> std::result::Result<States, Corrupt> {
    query.states.iter().map(|plan| plan.spec.decode(reader)).collect()
}

const ENVELOPE: Envelope = Envelope { magic: *b"SWagPart", version: 2, what: "a partial state" };
