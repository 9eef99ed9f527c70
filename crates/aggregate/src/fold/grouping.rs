//! Groups of runs of objects, by column.
//!
//! A group is a number: a lane, what a bucket or class makes of it, or, of several columns, the number of a pair of
//! such numbers. Groups that were met get slots, in which figures grow as plain numbers, and now and then the slots
//! are poured into the partial state. So what an object costs is one look into a small table and an addition a
//! figure.

use hashbrown::HashMap;

use crate::columns::dictionary::Dictionary;
use crate::columns::kernels::{Lanes, MISSING, RUN};
use crate::error::Result;
use crate::fold::columns::Destination;
use crate::fold::partial::count_overflow;
use crate::plan::columns::{Column, ColumnPlan, Takes};
use crate::plan::group_column::GroupColumn;
use crate::plan::state_plan::StatePlan;
use crate::state::{Given, Side, Spec, State};

/// Slots that are looked at before the table, by a hash of the group.
const NEAR: usize = 1024;
/// Groups below have their slots in an array.
const SMALL_MAX: u64 = 1 << 15;
/// Slots after which all are poured out and forgotten: figures of so many stay in the second cache.
#[cfg(not(test))]
const SLOTS_MAX: usize = 8192;
#[cfg(test)]
const SLOTS_MAX: usize = 30;

/// Groups that were met, and their figures so far.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The group and the slot that were last looked up with a hash; slot 0 is none.
    near: Box<[(u64, u32); NEAR]>,
    /// The slots of groups that are small numbers, as those of texts and pairs are.
    small: Vec<u32>,
    all: HashMap<u64, u32>,
    /// The group of each slot. Slot 0 is for objects that do not count.
    groups: Vec<u64>,
    counts: Vec<u64>,
    /// Of each state, by slot.
    figures: Vec<Figures>,
    pairs: Pairs,
    /// Of the run, each object's slot.
    run: Box<[u32; RUN]>,
    lanes: Box<Lanes>,
    others: Box<Lanes>,
    stored: Vec<u8>,
}

/// Pairs of numbers as numbers.
#[derive(Debug, Default)]
struct Pairs {
    numbers: HashMap<(u64, u64), u64>,
    pairs: Vec<(u64, u64)>,
}

/// The figures of one state.
#[derive(Debug)]
struct Figures {
    figure: Figure,
    /// How many objects have a value, where some may have none.
    present: Option<Vec<u64>>,
}

#[derive(Debug)]
enum Figure {
    Count,
    /// Of lanes.
    Sum(Vec<u128>),
    Least(Vec<u64>),
    Greatest(Vec<u64>),
    /// States that take the value of each object.
    Each(Spec, Vec<State>),
}

impl Pairs {
    #[inline]
    fn number(&mut self, pair: (u64, u64)) -> u64 {
        *self.numbers.entry(pair).or_insert_with(|| {
            self.pairs.push(pair);
            self.pairs.len() as u64 - 1
        })
    }
}

impl Figures {
    /// Makes room for so many slots, and lets those from `first` on begin with nothing.
    fn reset(&mut self, first: usize, slots: usize) {
        match &mut self.figure {
            Figure::Count => {}
            Figure::Sum(sums) => reset(sums, first, slots, || 0),
            Figure::Least(least) => reset(least, first, slots, || u64::MAX),
            Figure::Greatest(greatest) => reset(greatest, first, slots, || 0),
            Figure::Each(spec, states) => reset(states, first, slots, || spec.new_state()),
        }
        if let Some(present) = &mut self.present {
            reset(present, first, slots, || 0);
        }
    }
}

fn reset<T>(figures: &mut Vec<T>, first: usize, slots: usize, nothing: impl Fn() -> T) {
    figures.truncate(first);
    figures.resize_with(slots, nothing);
}

impl Slots {
    pub(crate) fn new(plan: &ColumnPlan, states: &[StatePlan]) -> Slots {
        let figures = states.iter().zip(&plan.states).map(|(state, of)| {
            let figure = match (of.takes, state.spec) {
                (Takes::Each, spec) => Figure::Each(spec, Vec::new()),
                (_, Spec::Sum) => Figure::Sum(Vec::new()),
                (_, Spec::Extreme(Side::Least)) => Figure::Least(Vec::new()),
                (_, Spec::Extreme(Side::Greatest)) => Figure::Greatest(Vec::new()),
                _ => Figure::Count,
            };
            let may_miss = of.column.is_some_and(|column| plan.columns[column].may_miss);
            let mut figures = Figures { figure, present: may_miss.then(Vec::new) };
            figures.reset(0, 1);
            figures
        });
        Slots {
            near: Box::new([(0, 0); NEAR]),
            small: Vec::new(),
            all: HashMap::new(),
            groups: vec![0],
            counts: vec![0],
            figures: figures.collect(),
            pairs: Pairs::default(),
            run: Box::new([0; RUN]),
            lanes: Box::new([0; RUN]),
            others: Box::new([0; RUN]),
            stored: Vec::new(),
        }
    }

    /// Finds the slots of a run's objects, of those that the mask has, if there is one.
    pub(crate) fn assign<'a>(
        &mut self,
        by: &[GroupColumn],
        lanes: impl Fn(usize) -> &'a [u64],
        mask: Option<&[u64]>,
    ) {
        let (first, others) = by.split_first().expect("there are groups");
        let first_lanes = lanes(first.column);
        let len = first_lanes.len();
        first.groups(first_lanes, &mut self.lanes[..len]);
        let counts = |at: usize| mask.is_none_or(|mask| mask[at] != 0);
        for other in others {
            other.groups(lanes(other.column), &mut self.others[..len]);
            for at in (0..len).filter(|&at| counts(at)) {
                self.lanes[at] = self.pairs.number((self.lanes[at], self.others[at]));
            }
        }
        for at in 0..len {
            self.run[at] = if counts(at) { self.slot(self.lanes[at]) } else { 0 };
        }
        for &slot in &self.run[..len] {
            self.counts[slot as usize] += 1;
        }
    }

    #[inline]
    fn slot(&mut self, group: u64) -> u32 {
        if let Some(&slot) = self.small.get(group as usize)
            && slot != 0
        {
            return slot;
        }
        // Fibonacci hashing: the upper bits depend on all others.
        let near = (group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - NEAR.ilog2())) as usize;
        match self.near[near] {
            (known, slot) if known == group && slot != 0 => slot,
            _ => self.slot_slow(group, near),
        }
    }

    fn slot_slow(&mut self, group: u64, near: usize) -> u32 {
        let slot = *self.all.entry(group).or_insert_with(|| {
            let slot = self.groups.len();
            self.groups.push(group);
            self.counts.push(0);
            self.figures.iter_mut().for_each(|figures| figures.reset(slot, slot + 1));
            slot as u32
        });
        if group < SMALL_MAX {
            let at = group as usize;
            self.small.resize(self.small.len().max(at + 1), 0);
            self.small[at] = slot;
        }
        self.near[near] = (group, slot);
        slot
    }

    /// Adds a column of the run to a state of each object's group.
    pub(crate) fn add(
        &mut self,
        state: usize,
        lanes: &[u64],
        column: &Column,
        dictionary: &Dictionary,
    ) {
        let figures = &mut self.figures[state];
        let run = self.run.iter().map(|&slot| slot as usize).zip(lanes.iter().copied());
        match &mut figures.present {
            None => figures.figure.add(run, column, dictionary),
            Some(present) => {
                let run = run.filter(|(_, lane)| *lane != MISSING);
                run.clone().for_each(|(slot, _)| present[slot] += 1);
                figures.figure.add(run, column, dictionary);
            }
        }
    }

    pub(crate) fn are_many(&self) -> bool {
        self.groups.len() > SLOTS_MAX
    }

    /// Pours all slots into the partial state.
    pub(crate) fn pour(
        &mut self,
        plan: &ColumnPlan,
        dictionaries: &[Dictionary],
        into: &mut Destination<'_>,
        groups_max: usize,
    ) -> Result<()> {
        let mut result = Ok(());
        for slot in (1..self.groups.len()).filter(|&slot| self.counts[slot] > 0) {
            self.stored.clear();
            self.pairs.encode(&plan.groups, self.groups[slot], dictionaries, &mut self.stored);
            let query = into.query;
            match into.partial.states_within(query, &self.stored, groups_max) {
                Ok(states) => {
                    let of_states = plan.states.iter().map(|state| state.column);
                    let states = states.iter_mut().zip(&query.states).zip(of_states);
                    for (((state, of), column), figures) in states.zip(&mut self.figures) {
                        let column =
                            column.map(|column| (&plan.columns[column], &dictionaries[column]));
                        let count = self.counts[slot];
                        let poured = figures.pour(state, of.spec, slot, count, column);
                        result = poured.and(result);
                    }
                }
                Err(error) => result = Err(error),
            }
        }
        if self.are_many() {
            self.forget();
        }
        let slots = self.groups.len();
        reset(&mut self.counts, 0, slots, || 0);
        self.figures.iter_mut().for_each(|figures| figures.reset(0, slots));
        result
    }

    /// Forgets the groups, which are poured out.
    pub(crate) fn forget(&mut self) {
        self.all.clear();
        self.small.clear();
        self.groups.truncate(1);
        self.counts.truncate(1);
        self.figures.iter_mut().for_each(|figures| figures.reset(0, 1));
        self.near.fill((0, 0));
        self.pairs = Pairs::default();
    }
}

impl Pairs {
    /// Appends the stored form of a group.
    fn encode(
        &self,
        by: &[GroupColumn],
        group: u64,
        dictionaries: &[Dictionary],
        out: &mut Vec<u8>,
    ) {
        match by {
            [] => {}
            [only] => only.encode(group, dictionaries, out),
            [before @ .., last] => {
                let (first, own) = self.pairs[group as usize];
                self.encode(before, first, dictionaries, out);
                last.encode(own, dictionaries, out);
            }
        }
    }
}

impl Figure {
    /// Adds the lanes of objects to the figures of their slots.
    #[inline(always)]
    fn add(
        &mut self,
        run: impl Iterator<Item = (usize, u64)>,
        column: &Column,
        dictionary: &Dictionary,
    ) {
        match self {
            Figure::Count => {}
            Figure::Sum(sums) => run.for_each(|(slot, lane)| sums[slot] += u128::from(lane)),
            Figure::Least(least) => {
                run.for_each(|(slot, lane)| least[slot] = least[slot].min(lane));
            }
            Figure::Greatest(greatest) => {
                run.for_each(|(slot, lane)| greatest[slot] = greatest[slot].max(lane));
            }
            Figure::Each(spec, states) => {
                run.filter(|(slot, _)| *slot != 0).for_each(|(slot, lane)| {
                    let value = column.meaning.value(lane, dictionary);
                    states[slot].push(*spec, Given { key: &[], value: Some(&value), by: None });
                })
            }
        }
    }
}

impl Figures {
    /// Pours a slot of `count` objects into a state of the group.
    fn pour(
        &mut self,
        state: &mut State,
        spec: Spec,
        slot: usize,
        count: u64,
        column: Option<(&Column, &Dictionary)>,
    ) -> Result<()> {
        let count = self.present.as_ref().map_or(count, |present| present[slot]);
        let bias = column.map_or(0, |(column, _)| column.meaning.bias());
        let value = |lane: u64| {
            let (column, dictionary) = column.filter(|_| count > 0)?;
            Some(column.meaning.value(lane, dictionary))
        };
        let (sum, extreme) = match &mut self.figure {
            Figure::Count => (0, None),
            // Slots are poured out long before 2^63 lanes.
            Figure::Sum(sums) => (sums[slot].cast_signed() - bias * i128::from(count), None),
            Figure::Least(lanes) | Figure::Greatest(lanes) => (0, value(lanes[slot])),
            Figure::Each(_, states) => {
                let own = std::mem::replace(&mut states[slot], spec.new_state());
                return state.merge(spec, own).map_err(|_| count_overflow());
            }
        };
        state.push_figures(spec, count, || sum, |_| extreme);
        Ok(())
    }
}
