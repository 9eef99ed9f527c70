//! Groups of facts: by time and by dimensions.
//!
//! The key of a group is a word for each part (where a bucket of time begins, the number of a text, the
//! bits of a number) and, if a part is a number, one more that says which of them are null.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::batch::{FactBatch, FactColumn, Texts, Words};
use super::columns::{Columns, Form};
use super::figures::{Figure, FigureStates};
use crate::error::{Error, Result};
use crate::live::dictionary::{Dictionary, Entry, NULL};
use crate::time::granularity::Buckets;
use crate::value::Value;

/// A query makes at most so many groups.
const GROUPS_MAX: usize = 1 << 24;

/// A part of the key of a group.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Time(Buckets),
    /// A column that is read.
    Column(usize),
    /// A column that has not come yet.
    Null,
}

/// Groups, and the states of their figures.
#[derive(Debug)]
pub(crate) struct Groups {
    parts: Vec<Part>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The keys, so many words each.
    keys: Vec<u64>,
    words: usize,
    count: usize,
    pub(crate) states: Vec<FigureStates>,
    pairs: Vec<(u32, u32)>,
}

impl Groups {
    pub(crate) fn new(parts: Vec<Part>, figures: &[Figure]) -> Groups {
        Groups {
            words: parts.len() + 1,
            parts,
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            keys: Vec::new(),
            count: 0,
            states: figures.iter().map(Figure::new_states).collect(),
            pairs: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The key of a group, with the word of nulls at its end.
    pub(crate) fn key(&self, group: usize) -> &[u64] {
        &self.keys[group * self.words..][..self.words]
    }

    /// The group of a key; a new one if it is new.
    pub(crate) fn group(&mut self, key: &[u64]) -> u32 {
        let hash = self.hasher.hash_one(key);
        let Groups { table, keys, words, hasher, count, .. } = self;
        let of = |group: u32| &keys[group as usize * *words..][..*words];
        if let Some(&group) = table.find(hash, |&group| of(group) == key) {
            return group;
        }
        let group = *count as u32;
        table.insert_unique(hash, group, |&group| hasher.hash_one(of(group)));
        keys.extend_from_slice(key);
        *count += 1;
        group
    }

    /// Folds facts into their groups. `masks` are those of the filters of figures.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Query`] if there are too many groups.
    pub(crate) fn fold(
        &mut self,
        figures: &[Figure],
        batch: &FactBatch,
        texts: &Texts<'_>,
        rows: &[u32],
        masks: &[Vec<bool>],
        numbers: &mut Numbers<'_>,
    ) -> Result<()> {
        self.assign(batch, texts, rows, numbers)?;
        self.expect_few()?;
        let count = self.count;
        let mut taken = Vec::new();
        for (figure, states) in figures.iter().zip(&mut self.states) {
            states.grow(count);
            let pairs = match figure.filter {
                None => &self.pairs,
                Some(filter) => {
                    taken.clear();
                    let mask = &masks[filter];
                    taken.extend(self.pairs.iter().filter(|(row, _)| mask[*row as usize]));
                    &taken
                }
            };
            figure.fold(states, batch, texts, pairs)?;
        }
        Ok(())
    }

    fn expect_few(&self) -> Result<()> {
        match self.count > GROUPS_MAX {
            false => Ok(()),
            true => Err(Error::Query(format!(
                "it has more than {GROUPS_MAX} groups: group by something coarser, or filter"
            ))),
        }
    }

    /// Finds the group of each row, or the groups, where a dimension has several values.
    fn assign(
        &mut self,
        batch: &FactBatch,
        texts: &Texts<'_>,
        rows: &[u32],
        numbers: &mut Numbers<'_>,
    ) -> Result<()> {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.clear();
        pairs.reserve(rows.len());
        let mut key = vec![0; self.words];
        let mut shortcut = std::mem::take(&mut numbers.shortcut);
        if shortcut.prepare(&self.parts, batch, texts, rows) {
            for (at, &row) in rows.iter().enumerate() {
                if let Some(Part::Time(buckets)) = self.parts.first_mut() {
                    shortcut.enter_bucket(buckets.start(batch.times[row as usize]));
                }
                let group = shortcut.group(at);
                match group {
                    Some(group) => pairs.push((row, group)),
                    None => {
                        let found =
                            self.assign_row(batch, texts, row, numbers, &mut key, &mut pairs)?;
                        shortcut.keep(at, found);
                    }
                }
            }
        } else {
            for &row in rows {
                self.assign_row(batch, texts, row, numbers, &mut key, &mut pairs)?;
            }
        }
        numbers.shortcut = shortcut;
        self.pairs = pairs;
        Ok(())
    }

    /// Finds the group of a row by its key, and returns it; none where they are several.
    fn assign_row(
        &mut self,
        batch: &FactBatch,
        texts: &Texts<'_>,
        row: u32,
        numbers: &mut Numbers<'_>,
        key: &mut [u64],
        pairs: &mut Vec<(u32, u32)>,
    ) -> Result<Option<u32>> {
        let mut nulls = 0;
        let mut lists: Vec<(usize, Vec<u64>)> = Vec::new();
        for (at, part) in self.parts.iter_mut().enumerate() {
            let (word, is_null) = match part {
                Part::Time(buckets) => {
                    (buckets.start(batch.times[row as usize]).cast_unsigned(), false)
                }
                Part::Null => (0, true),
                Part::Column(column) => match word(&batch.columns[*column], row as usize) {
                    Some(id) if matches!(batch.columns[*column], FactColumn::Ids(_)) => {
                        let words = texts.words(*column);
                        match words.entry(id as u32) {
                            Entry::List(ids) => {
                                let ids =
                                    ids.iter().map(|id| Ok(numbers.of(*column, id, words)?.into()));
                                lists.push((at, ids.collect::<Result<_>>()?));
                                (0, false)
                            }
                            _ => (numbers.of(*column, id as u32, words)?.into(), false),
                        }
                    }
                    Some(word) => (word, false),
                    None => (0, true),
                },
            };
            key[at] = word;
            nulls |= u64::from(is_null) << at;
        }
        key[self.parts.len()] = nulls;
        if !lists.is_empty() {
            self.assign_each(row, key, &lists, pairs);
            return Ok(None);
        }
        let group = match pairs.last() {
            // Facts of one group are often neighbours.
            Some(&(_, last)) if self.key(last as usize) == key => last,
            _ => self.group(key),
        };
        pairs.push((row, group));
        Ok(Some(group))
    }

    /// A fact of several values is in the group of each combination of them.
    fn assign_each(
        &mut self,
        row: u32,
        key: &mut [u64],
        lists: &[(usize, Vec<u64>)],
        pairs: &mut Vec<(u32, u32)>,
    ) {
        let Some(((at, values), rest)) = lists.split_first() else {
            pairs.push((row, self.group(key)));
            return;
        };
        for value in values {
            key[*at] = *value;
            self.assign_each(row, key, rest, pairs);
        }
    }

    /// Merges other groups of the same parts and figures.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(crate) fn merge(&mut self, other: &Groups, figures: &[Figure]) -> Result<()> {
        self.merge_as(other, figures, |_| {})
    }

    /// Merges other groups under other keys.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(crate) fn merge_as(
        &mut self,
        other: &Groups,
        figures: &[Figure],
        change: impl Fn(&mut [u64]),
    ) -> Result<()> {
        let mut key = Vec::new();
        for other_group in 0..other.count {
            key.clear();
            key.extend_from_slice(other.key(other_group));
            change(&mut key);
            let group = self.group(&key) as usize;
            self.expect_few()?;
            for ((states, others), figure) in self.states.iter_mut().zip(&other.states).zip(figures)
            {
                states.grow(self.count);
                if !states.merge(figure, group, others, other_group)? {
                    return Err(Error::Overflow { column: format!("`{}`", figure.name) });
                }
            }
        }
        Ok(())
    }

    /// Makes the states of groups that no fact is in.
    pub(crate) fn grow(&mut self) {
        let count = self.count;
        self.states.iter_mut().for_each(|states| states.grow(count));
    }

    /// The value of a part of a group's key.
    pub(crate) fn part(
        &self,
        group: usize,
        at: usize,
        columns: &Columns<'_>,
        texts: &Texts<'_>,
    ) -> Value<'static> {
        let key = self.key(group);
        if key[self.parts.len()] >> at & 1 == 1 {
            return Value::Null;
        }
        match &self.parts[at] {
            Part::Time(_) => Value::Long(key[at].cast_signed()),
            Part::Null => Value::Null,
            Part::Column(column) => match columns.read[*column].1 {
                Form::Ids => texts.value(*column, key[at] as u32).into_owned(),
                Form::Long | Form::TimedLong => Value::Long(key[at].cast_signed()),
                Form::Double | Form::TimedDouble => Value::Double(f64::from_bits(key[at])),
                Form::Sketch => Value::Null,
            },
        }
    }
}

/// The numbers by which groups tell texts: those of the facts, where these lie at one place, and else numbers of
/// dictionaries that the query has.
#[derive(Debug, Default)]
pub(crate) struct Numbers<'q> {
    others: Option<Others<'q>>,
    shortcut: Shortcut,
}

#[derive(Debug)]
struct Others<'q> {
    /// By column.
    dictionaries: &'q [Dictionary],
    /// By column: the number of the query for each number of the facts, or [`UNKNOWN`].
    known: Vec<Vec<u32>>,
}

/// No text has this number: a dictionary would have to be full.
const UNKNOWN: u32 = u32::MAX;

impl<'q> Numbers<'q> {
    pub(crate) fn others(dictionaries: &'q [Dictionary]) -> Numbers<'q> {
        let others = Others { dictionaries, known: vec![Vec::new(); dictionaries.len()] };
        Numbers { others: Some(others), shortcut: Shortcut::default() }
    }

    /// The number of a text, or of null, that has another one among the facts.
    #[inline]
    fn of(&mut self, column: usize, id: u32, words: &Words<'_>) -> Result<u32> {
        let Some(Others { dictionaries, known }) = &mut self.others else { return Ok(id) };
        let known = &mut known[column];
        if let Some(&number) = known.get(id as usize)
            && number != UNKNOWN
        {
            return Ok(number);
        }
        known.resize(known.len().max(words.len() + 1), UNKNOWN);
        let number = match words.text(id) {
            Some(text) => dictionaries[column].intern(text.as_bytes())?,
            None => NULL,
        };
        known[id as usize] = number;
        Ok(number)
    }
}

/// The groups of the facts of a place that were met, by the numbers that the facts have for texts: a look at one word, and
/// none at a key. There is one where all parts but the time are texts, and combinations of their numbers are few.
#[derive(Debug, Default)]
struct Shortcut {
    /// How many numbers there is room for in each column.
    rooms: Vec<usize>,
    /// By combination of numbers: the group, below the bucket of time in which it was met. 0 of none.
    groups: Vec<u64>,
    /// The combinations of the rows of a batch.
    slots: Vec<u32>,
    /// Where the bucket begins.
    start: i64,
    /// Its number, from 1 on, in the order in which buckets come.
    bucket: u32,
}

/// Combinations of numbers that are few: 8 MiB of them, of which those are touched that there are.
const SLOTS_MAX: usize = 1 << 20;

impl Shortcut {
    /// Finds the combinations of the rows of a batch; false if there are too many, or none.
    fn prepare(
        &mut self,
        parts: &[Part],
        batch: &FactBatch,
        texts: &Texts<'_>,
        rows: &[u32],
    ) -> bool {
        self.slots.clear();
        self.slots.resize(rows.len(), 0);
        let (mut columns, mut wanted) = (Vec::new(), Vec::new());
        for part in parts {
            let Part::Column(column) = part else { continue };
            let FactColumn::Ids(ids) = &batch.columns[*column] else { return false };
            columns.push(ids);
            // Null has a number, too.
            wanted.push(texts.words(*column).len() + 1);
        }
        self.make_room(&wanted);
        if self.groups.is_empty() {
            return false;
        }
        for (ids, room) in columns.into_iter().zip(&self.rooms) {
            for (slot, &row) in self.slots.iter_mut().zip(rows) {
                *slot = *slot * *room as u32 + ids[row as usize];
            }
        }
        true
    }

    /// Forgets all groups where there are more numbers than before, as there are where expressions make texts while the
    /// query runs; then there is room for as many again.
    fn make_room(&mut self, wanted: &[usize]) {
        let is_roomy = self.rooms.iter().zip(wanted).all(|(room, wanted)| room >= wanted);
        if !is_roomy || self.groups.is_empty() {
            self.rooms = wanted.iter().map(|wanted| wanted.next_power_of_two()).collect();
            let slots = self.rooms.iter().try_fold(1_usize, |all, room| all.checked_mul(*room));
            let slots = slots.filter(|slots| *slots <= SLOTS_MAX);
            self.groups = vec![0; slots.unwrap_or(0)];
            self.bucket = 1;
        }
    }

    /// Groups are those of a bucket of time from here on.
    #[inline]
    fn enter_bucket(&mut self, start: i64) {
        if start != self.start {
            self.start = start;
            if self.bucket == u32::MAX {
                self.groups.fill(0);
                self.bucket = 0;
            }
            self.bucket += 1;
        }
    }

    /// The group of a row of the batch, by its place among those that were prepared; none if it was not met.
    #[inline]
    fn group(&self, at: usize) -> Option<u32> {
        let kept = self.groups[self.slots[at] as usize];
        (kept >> 32 == u64::from(self.bucket)).then_some(kept as u32)
    }

    fn keep(&mut self, at: usize, group: Option<u32>) {
        if let Some(group) = group {
            self.groups[self.slots[at] as usize] = u64::from(self.bucket) << 32 | u64::from(group);
        }
    }
}

/// A value as a word; none of null.
#[inline]
fn word(column: &FactColumn, row: usize) -> Option<u64> {
    match column {
        FactColumn::Ids(ids) => Some(ids[row].into()),
        FactColumn::Longs { values, present } | FactColumn::TimedLongs { values, present, .. } => {
            present[row].then(|| values[row].cast_unsigned())
        }
        FactColumn::Doubles { values, present }
        | FactColumn::TimedDoubles { values, present, .. } => {
            present[row].then(|| values[row].to_bits())
        }
        FactColumn::Sketches { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_kept_within_their_bucket() {
        let mut shortcut = Shortcut::default();
        shortcut.make_room(&[3, 5]);
        assert_eq!(shortcut.groups.len(), 32);
        shortcut.slots = vec![0, 31];
        assert_eq!(shortcut.group(1), None);
        for bucket in [7, -1, 0] {
            shortcut.enter_bucket(bucket);
            assert_eq!((shortcut.group(0), shortcut.group(1)), (None, None), "{bucket}");
            shortcut.keep(0, Some(0));
            shortcut.keep(1, None);
            assert_eq!((shortcut.group(0), shortcut.group(1)), (Some(0), None), "{bucket}");
            shortcut.enter_bucket(bucket);
            assert_eq!(shortcut.group(0), Some(0), "{bucket}");
        }
        // Numbers of buckets begin anew, and so do groups.
        shortcut.bucket = u32::MAX;
        shortcut.keep(0, Some(9));
        shortcut.enter_bucket(1);
        assert_eq!((shortcut.bucket, shortcut.group(0)), (1, None));
        // Room for a few more is there; for many it is made.
        shortcut.keep(0, Some(9));
        shortcut.make_room(&[4, 8]);
        assert_eq!(shortcut.group(0), Some(9));
        shortcut.make_room(&[4, 9]);
        assert_eq!((shortcut.groups.len(), shortcut.group(0)), (64, None));
        shortcut.make_room(&[4, SLOTS_MAX]);
        assert!(shortcut.groups.is_empty());
        shortcut.make_room(&[usize::MAX / 2, usize::MAX / 2]);
        assert!(shortcut.groups.is_empty());
    }
}
