//! Facts in a map of the standard library, behind a lock: what a program writes first.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use super::engines::{Facts, Phase, SetLoad};
use super::sets::{HOUR, RowSet};
use super::stream::{Row, Stream, TOP, Total};
use crate::harness::*;

/// A map for the dimensions of a set. A null is the empty text in it.
pub(crate) fn open_map(set: RowSet) -> Result<Box<dyn Facts>> {
    Ok(match set.source.shape().dimensions.len() {
        3 => Box::new(FactMap::<3> { set, facts: Mutex::default() }),
        5 => Box::new(FactMap::<5> { set, facts: Mutex::default() }),
        other => bail!("no map is written for {other} dimensions"),
    })
}

struct FactMap<const N: usize> {
    set: RowSet,
    facts: Mutex<HashMap<FactKey<N>, Metrics>>,
}

type FactKey<const N: usize> = (i64, [String; N]);

#[derive(Debug, Clone, Copy)]
struct Metrics {
    rows: i64,
    x_sum: i64,
    y_sum: f64,
    x_min: i64,
    y_max: f64,
}

/// A group of an answer: rows, and both sums.
#[derive(Debug, Clone, Copy, Default)]
struct Group(i64, i64, f64);

impl<const N: usize> FactMap<N> {
    fn fold(&self, row: &Row) {
        let texts = std::array::from_fn(|at| row.dimensions[at].clone().unwrap_or_default());
        let key = (self.set.bucket(row.time), texts);
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let none = Metrics { rows: 0, x_sum: 0, y_sum: 0.0, x_min: i64::MAX, y_max: f64::MIN };
        let figures = facts.entry(key).or_insert(none);
        figures.rows += 1;
        figures.x_sum += row.x;
        figures.x_min = figures.x_min.min(row.x);
        if let Some(y) = row.y {
            figures.y_sum += y;
            figures.y_max = figures.y_max.max(y);
        }
    }

    fn groups<'f, K: Hash + Eq>(
        facts: &'f HashMap<FactKey<N>, Metrics>,
        is_wanted: impl Fn(&[String; N]) -> bool,
        key: impl Fn(i64, &'f [String; N]) -> K,
    ) -> Vec<Group> {
        let mut found: HashMap<K, Group> = HashMap::new();
        for ((time, texts), figures) in facts.iter().filter(|((_, texts), _)| is_wanted(texts)) {
            let group = found.entry(key(*time, texts)).or_default();
            let Group(rows, x, y) = *group;
            *group = Group(rows + figures.rows, x + figures.x_sum, y + figures.y_sum);
        }
        found.into_values().collect()
    }
}

impl<const N: usize> Facts for FactMap<N> {
    fn bring(
        &self,
        stream: &Stream,
        phase: Phase,
        batches: &mut dyn Iterator<Item = usize>,
    ) -> Result {
        for batch in batches {
            if phase != Phase::Json {
                stream.rows[batch].iter().for_each(|row| self.fold(row));
                continue;
            }
            for line in stream.json[batch].lines() {
                let object = serde_json::from_str(line)?;
                self.fold(&Row::parse(stream.shape, &object).ok_or("a line without a time")?);
            }
        }
        Ok(())
    }

    fn facts(&self) -> usize {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn bytes(&self) -> u64 {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        // A byte of the table for each, and the texts, which the allocator rounds to 16.
        let table = facts.capacity() * (size_of::<(FactKey<N>, Metrics)>() + 1);
        let text = |text: &String| text.capacity().next_multiple_of(16) + 8;
        let texts: usize = facts.keys().flat_map(|(_, texts)| texts).map(text).sum();
        (table + texts) as u64
    }

    fn ask(&self, load: &SetLoad, phase: Phase, _threads: usize) -> Result<Total> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let shape = load.set.source.shape();
        let ([first, second], (at, text)) = (shape.two, shape.filter);
        let all = |_: &[String; N]| true;
        let hour = |time: i64, _: &[String; N]| time.div_euclid(HOUR);
        let groups = match phase {
            Phase::Timeseries => FactMap::groups(&facts, all, hour),
            Phase::Filter => FactMap::groups(&facts, |texts| texts[at] == text, hour),
            Phase::GroupByOne => FactMap::groups(&facts, all, |_, texts| &texts[shape.one]),
            Phase::TopN => {
                let mut groups = FactMap::groups(&facts, all, |_, texts| &texts[shape.top]);
                groups.sort_unstable_by_key(|group| std::cmp::Reverse(group.1));
                groups.truncate(TOP);
                groups
            }
            _ => FactMap::groups(&facts, all, |_, texts| (&texts[first], &texts[second])),
        };
        let mut total = Total::NONE;
        for Group(rows, x, y) in groups {
            std::hint::black_box(y);
            total.add(rows, x);
        }
        Ok(total)
    }
}
