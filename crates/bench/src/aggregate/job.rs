//! The queries: selections of objects, and the right answers.

use std::ops::{Bound, Range};
use std::sync::Arc;

use sapwood::aggregate::{Aggregate, Compiled, Query, Selection};

use super::disaggregate::SpreadTotal;
use super::objects::{Objects, Placed, amount, key};
use crate::harness::*;

pub(crate) const FIELD: &str = "amount";
pub(crate) const SUM: &str = "sum(amount)";
pub(crate) const LAYOUT: &str = "amount:i64le";

/// About the bytes that lists of keys take for each object of a table: of every key, a tenth, and a
/// two-hundredth.
pub(crate) const BYTES_EXPECTED: u64 = 40;
pub(crate) const BYTES_OF_PARTS: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fraction {
    All,
    Tenth,
    TwoHundredth,
}

impl Fraction {
    fn of(self, count: u32) -> u32 {
        match self {
            Fraction::All => count,
            Fraction::Tenth => count / 10,
            Fraction::TwoHundredth => count / 200,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    Everything,
    Range(Fraction),
    List(Fraction),
}

impl Pick {
    /// All of them, in the order of the table of workloads.
    pub(crate) const ALL: [Pick; 7] = [
        Pick::Everything,
        Pick::Range(Fraction::All),
        Pick::EVERY_KEY,
        Pick::Range(Fraction::Tenth),
        Pick::List(Fraction::Tenth),
        Pick::Range(Fraction::TwoHundredth),
        Pick::List(Fraction::TwoHundredth),
    ];

    /// A list of every key: longer than the table, so it is looked up alone.
    pub(crate) const EVERY_KEY: Pick = Pick::List(Fraction::All);

    pub(crate) fn share(self) -> Fraction {
        match self {
            Pick::Everything => Fraction::All,
            Pick::Range(share) | Pick::List(share) => share,
        }
    }

    pub(crate) fn is_list(self) -> bool {
        matches!(self, Pick::List(_))
    }

    pub(crate) fn name(self) -> &'static str {
        let at = Pick::ALL.iter().position(|pick| *pick == self);
        super::BENCH.workloads[at.expect("all picks are in the table")]
    }

    pub(crate) fn named(name: &str) -> Option<Pick> {
        let at = super::BENCH.workloads.iter().position(|known| *known == name)?;
        Some(Pick::ALL[at])
    }
}

pub(crate) struct Picked {
    pub(crate) pick: Pick,
    pub(crate) query: Compiled,
    pub(crate) numbers: Range<u32>,
    /// Objects of a list; a range has its from all objects.
    listed: Vec<Placed>,
    objects: Arc<Objects>,
    pub(crate) expected: Tally,
}

impl Picked {
    pub(crate) fn new(pick: Pick, objects: &Arc<Objects>) -> Result<Picked> {
        let all = objects.count();
        let count = pick.share().of(all);
        let begin = (all - count) / 3;
        let (numbers, listed) = match pick {
            Pick::List(_) => (0..all, objects.draw(count)),
            Pick::Everything | Pick::Range(_) => (begin..begin + count, Vec::new()),
        };
        let selection = match pick {
            Pick::Everything => Selection::EVERYTHING,
            Pick::List(_) => Selection::keys(listed.iter().map(|object| key(object.number))),
            Pick::Range(_) => {
                let [begin, limit] = [numbers.start, numbers.end].map(key);
                Selection::range((Bound::Included(&begin), Bound::Excluded(&limit)))?
            }
        };
        let query = Query::new(LAYOUT.parse()?)
            .select(selection)
            .aggregates(Aggregate::list(SUM)?)
            .compile()?;
        let mut picked = Picked {
            pick,
            query,
            numbers,
            listed,
            objects: Arc::clone(objects),
            expected: Tally::default(),
        };
        let mut expected = Tally::default();
        for object in picked.placed() {
            expected.add(amount(object.number) as u64);
        }
        picked.expected = expected;
        Ok(picked)
    }

    pub(crate) fn placed(&self) -> &[Placed] {
        if self.pick.is_list() {
            &self.listed
        } else {
            &self.objects.placed[self.numbers.start as usize..self.numbers.end as usize]
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.expected.entries as usize
    }

    pub(crate) fn sum(&self) -> i128 {
        // No sum of a bench leaves 64 bits.
        i128::from(self.expected.sum as i64)
    }
}

/// One timed run: selected objects are summed or a total is spread over them, several times where
/// the table is small.
#[derive(Clone)]
pub(crate) struct AggregateJob {
    pub(crate) picked: Arc<Picked>,
    pub(crate) total: Option<Arc<SpreadTotal>>,
    pub(crate) threads: usize,
    pub(crate) times: usize,
}

impl Job for AggregateJob {
    fn workload(&self) -> String {
        let over = if self.total.is_some() { "disaggregate over " } else { "" };
        format!("{over}{}", self.picked.pick.name())
    }

    fn unit(&self) -> &'static Unit {
        &OBJECTS
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn expected(&self) -> Option<Tally> {
        let Tally { entries, sum } = self.picked.expected;
        let sum = self.total.as_ref().map_or(sum, |total| total.after as u64);
        Some((0..self.times).map(|_| Tally { entries, sum }).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_have_their_share() {
        let objects = Arc::new(Objects::new(10_000));
        for pick in Pick::ALL {
            let picked = Picked::new(pick, &objects).expect("the query is sound");
            let count = match pick.share() {
                Fraction::All => 10_000,
                Fraction::Tenth => 1_000,
                Fraction::TwoHundredth => 50,
            };
            assert_eq!(picked.len(), count, "{}", pick.name());
            let selection = picked.query.selection();
            let selected = |number: &u32| selection.contains(&key(*number));
            assert_eq!((0..10_000).filter(selected).count(), count, "{}", pick.name());
            assert!(picked.placed().iter().all(|object| selected(&object.number)));
            assert!(picked.placed().iter().all(|object| picked.numbers.contains(&object.number)));
        }
    }
}
