//! The workloads: selections of objects, and the right answers.

use std::ops::{Bound, Range};
use std::sync::Arc;

use sapwood::aggregate::{Aggregate, Compiled, Query, Selection};

use super::objects::{Objects, Placed, amount, key};
use crate::Error;
use crate::figures::{Timed, Unit};
use crate::rounds::Run;
use crate::tally::Tally;

/// The field that is summed.
pub(crate) const FIELD: &str = "amount";
/// The figure that is asked for.
pub(crate) const SUM: &str = "sum(amount)";
/// The layout of an object's value.
pub(crate) const LAYOUT: &str = "amount:i64le";

/// About the bytes that lists of keys take for each object of a table: of every key, a tenth, and a
/// two-hundredth.
pub(crate) const BYTES_EXPECTED: u64 = 40;
/// The same without a list of every key.
pub(crate) const BYTES_OF_PARTS: u64 = 8;

/// The selected share of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fraction {
    All,
    Tenth,
    TwoHundredth,
}

impl Fraction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fraction::All => "100 %",
            Fraction::Tenth => "10 %",
            Fraction::TwoHundredth => "0.5 %",
        }
    }

    fn of(self, count: u32) -> u32 {
        match self {
            Fraction::All => count,
            Fraction::Tenth => count / 10,
            Fraction::TwoHundredth => count / 200,
        }
    }
}

/// Which objects are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Every one, without a word about keys.
    Everything,
    /// Those between two keys.
    Range(Fraction),
    /// Those of a list of keys, drawn at random.
    List(Fraction),
}

impl Pick {
    /// All of them.
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

    pub(crate) fn name(self) -> String {
        match self {
            Pick::Everything => "everything".to_owned(),
            Pick::Range(share) => format!("range of {}", share.name()),
            Pick::List(share) => format!("list of {}", share.name()),
        }
    }
}

/// The timed work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Sums, in the common rounds.
    Sum(Pick),
    /// A total is spread, in the common rounds.
    Disaggregate(Pick),
    /// Sums over and over for a while, alone or beside a writer.
    SumsBeside(Pick, Beside),
    /// The writer's changes, beside such sums or alone.
    Writes(Option<&'static str>),
}

/// Other work on the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Nobody,
    Writer,
}

impl Timed for Workload {
    fn name(self) -> String {
        match self {
            Workload::Sum(pick) => pick.name(),
            Workload::Disaggregate(pick) => format!("disaggregate over {}", pick.name()),
            Workload::SumsBeside(pick, Beside::Nobody) => format!("{}, no writer", pick.name()),
            Workload::SumsBeside(pick, Beside::Writer) => format!("{}, a writer", pick.name()),
            Workload::Writes(None) => "writes".to_owned(),
            Workload::Writes(Some(sums)) => format!("writes beside {sums}"),
        }
    }

    fn unit(self) -> Unit {
        match self {
            Workload::Sum(_) | Workload::Disaggregate(_) | Workload::SumsBeside(..) => {
                Unit::Objects
            }
            Workload::Writes(_) => Unit::Operations,
        }
    }
}

/// Selected objects, and what is right to say of them.
pub(crate) struct Picked {
    pub(crate) pick: Pick,
    pub(crate) query: Compiled,
    /// Numbers within which all selected lie.
    pub(crate) numbers: Range<u32>,
    /// Those of a list; a range of everything has them from the objects.
    listed: Vec<Placed>,
    objects: Arc<Objects>,
    pub(crate) expected: Tally,
}

impl Picked {
    pub(crate) fn new(pick: Pick, objects: &Arc<Objects>) -> Result<Picked, Error> {
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

    /// The selected objects, in the order of their keys.
    pub(crate) fn placed(&self) -> &[Placed] {
        if self.pick.is_list() {
            &self.listed
        } else {
            &self.objects.placed()[self.numbers.start as usize..self.numbers.end as usize]
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.expected.entries as usize
    }

    /// Their sum.
    pub(crate) fn sum(&self) -> i128 {
        // No sum of a bench leaves 64 bits.
        i128::from(self.expected.sum as i64)
    }
}

/// One timed run: the same question, several times where the table is small.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) picked: Arc<Picked>,
    pub(crate) threads: usize,
    pub(crate) times: usize,
}

impl Job {
    pub(crate) fn expected(&self) -> Tally {
        (0..self.times).fold(Tally::default(), |sum, _| sum.merge(self.picked.expected))
    }
}

impl Run for Job {
    type Workload = Workload;

    fn workload(&self) -> Workload {
        Workload::Sum(self.picked.pick)
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn operations(&self) -> usize {
        self.picked.len() * self.times
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
