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
        let mut key = vec![0; self.words];
        let mut lists: Vec<(usize, Vec<u64>)> = Vec::new();
        for &row in rows {
            let mut nulls = 0;
            lists.clear();
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
                                    let ids = ids
                                        .iter()
                                        .map(|id| Ok(numbers.of(*column, id, words)?.into()));
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
            if lists.is_empty() {
                let group = match pairs.last() {
                    // Facts of one group are often neighbours.
                    Some(&(_, last)) if self.key(last as usize) == key => last,
                    _ => self.group(&key),
                };
                pairs.push((row, group));
            } else {
                self.assign_each(row, &mut key, &lists, &mut pairs);
            }
        }
        self.pairs = pairs;
        Ok(())
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
#[derive(Debug)]
pub(crate) enum Numbers<'q> {
    Same,
    Others {
        /// By column.
        dictionaries: &'q [Dictionary],
        /// By column: the number of the query for each number of the facts, or [`UNKNOWN`].
        known: Vec<Vec<u32>>,
    },
}

/// No text has this number: a dictionary would have to be full.
const UNKNOWN: u32 = u32::MAX;

impl<'q> Numbers<'q> {
    pub(crate) fn others(dictionaries: &'q [Dictionary]) -> Numbers<'q> {
        Numbers::Others { dictionaries, known: vec![Vec::new(); dictionaries.len()] }
    }

    /// The number of a text, or of null, that has another one among the facts.
    #[inline]
    fn of(&mut self, column: usize, id: u32, words: &Words<'_>) -> Result<u32> {
        let Numbers::Others { dictionaries, known } = self else { return Ok(id) };
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
