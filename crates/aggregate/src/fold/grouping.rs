//! Groups of runs of objects, by column.
//!
//! A group by one whole number of at most 64 bits, plain or in steps, or by one, two, four or eight
//! bytes, is a number too. Groups that were met get slots, in which figures grow as plain numbers, and
//! now and then the slots are poured into the partial state. So what an object costs is one look into a
//! small table and an addition a figure.

use hashbrown::HashMap;

use crate::columns::kernels::{Lanes, RUN};
use crate::error::Result;
use crate::fold::partial::Partial;
use crate::plan::compiled::Compiled;
use crate::plan::group_column::GroupColumn;
use crate::state::{Side, Spec, State};

/// Slots that are looked at before the table, by a hash of the group.
const NEAR: usize = 1024;
/// Slots after which all are poured out and forgotten: figures of so many stay in the second cache.
const SLOTS_MAX: usize = 8192;

/// Groups that were met, and their figures so far.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The group and the slot that were last looked up with a hash; slot 0 is none.
    near: Box<[(u64, u32); NEAR]>,
    all: HashMap<u64, u32>,
    /// The group of each slot. Slot 0 is for objects that do not count.
    groups: Vec<u64>,
    counts: Vec<u64>,
    /// Of each state that is not a count, by slot.
    figures: Vec<Figure>,
    /// Of the run, each object's slot.
    run: Box<[u32; RUN]>,
    lanes: Box<Lanes>,
    stored: Vec<u8>,
}

#[derive(Debug)]
enum Figure {
    Count,
    /// Of lanes.
    Sum(Vec<u128>),
    Least(Vec<u64>),
    Greatest(Vec<u64>),
}

impl Figure {
    fn reset(&mut self, slots: usize) {
        match self {
            Figure::Count => {}
            Figure::Sum(sums) => reset(sums, slots, 0),
            Figure::Least(least) => reset(least, slots, u64::MAX),
            Figure::Greatest(greatest) => reset(greatest, slots, 0),
        }
    }
}

fn reset<T: Copy>(figures: &mut Vec<T>, slots: usize, nothing: T) {
    figures.clear();
    figures.resize(slots, nothing);
}

impl Slots {
    pub(crate) fn new(specs: impl Iterator<Item = Spec>) -> Slots {
        let figure = |spec| match spec {
            Spec::Sum => Figure::Sum(vec![0]),
            Spec::Extreme(Side::Least) => Figure::Least(vec![u64::MAX]),
            Spec::Extreme(Side::Greatest) => Figure::Greatest(vec![0]),
            _ => Figure::Count,
        };
        Slots {
            near: Box::new([(0, 0); NEAR]),
            all: HashMap::new(),
            groups: vec![0],
            counts: vec![0],
            figures: specs.map(figure).collect(),
            run: Box::new([0; RUN]),
            lanes: Box::new([0; RUN]),
            stored: Vec::new(),
        }
    }

    /// Finds the slots of a run's objects, of those that the mask has, if there is one.
    pub(crate) fn assign(&mut self, by: &GroupColumn, lanes: &[u64], mask: Option<&[u64]>) {
        let len = lanes.len();
        by.groups(lanes, &mut self.lanes[..len]);
        for at in 0..len {
            self.run[at] = match mask {
                Some(mask) if mask[at] == 0 => 0,
                _ => self.slot(self.lanes[at]),
            };
        }
        for &slot in &self.run[..len] {
            self.counts[slot as usize] += 1;
        }
    }

    #[inline]
    fn slot(&mut self, group: u64) -> u32 {
        // Fibonacci hashing: the upper bits depend on all others.
        let near = (group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - NEAR.ilog2())) as usize;
        match self.near[near] {
            (known, slot) if known == group && slot != 0 => slot,
            _ => self.slot_slow(group, near),
        }
    }

    fn slot_slow(&mut self, group: u64, near: usize) -> u32 {
        let slot = *self.all.entry(group).or_insert_with(|| {
            let slot = self.groups.len() as u32;
            self.groups.push(group);
            self.counts.push(0);
            for figure in &mut self.figures {
                match figure {
                    Figure::Count => {}
                    Figure::Sum(sums) => sums.push(0),
                    Figure::Least(least) => least.push(u64::MAX),
                    Figure::Greatest(greatest) => greatest.push(0),
                }
            }
            slot
        });
        self.near[near] = (group, slot);
        slot
    }

    /// Adds a column of the run to a state of each object's group.
    pub(crate) fn add(&mut self, state: usize, lanes: &[u64]) {
        let run = self.run.iter().map(|&slot| slot as usize).zip(lanes);
        match &mut self.figures[state] {
            Figure::Count => {}
            Figure::Sum(sums) => run.for_each(|(slot, &lane)| sums[slot] += u128::from(lane)),
            Figure::Least(least) => {
                run.for_each(|(slot, &lane)| least[slot] = least[slot].min(lane));
            }
            Figure::Greatest(greatest) => {
                run.for_each(|(slot, &lane)| greatest[slot] = greatest[slot].max(lane));
            }
        }
    }

    pub(crate) fn are_many(&self) -> bool {
        self.groups.len() > SLOTS_MAX
    }

    /// Pours all slots into the partial state. `bias` is what lanes of each state are more than numbers.
    pub(crate) fn pour(
        &mut self,
        by: &GroupColumn,
        query: &Compiled,
        bias: impl Fn(usize) -> i128,
        partial: &mut Partial,
        groups_max: usize,
    ) -> Result<()> {
        let mut result = Ok(());
        for slot in (1..self.groups.len()).filter(|&slot| self.counts[slot] > 0) {
            self.stored.clear();
            by.encode(self.groups[slot], &mut self.stored);
            match partial.states_within(query, &self.stored, groups_max) {
                Ok(states) => pour(states, query, &self.figures, self.counts[slot], slot, &bias),
                Err(error) => result = Err(error),
            }
        }
        if self.are_many() {
            self.all.clear();
            self.groups.truncate(1);
            self.near.fill((0, 0));
        }
        let slots = self.groups.len();
        reset(&mut self.counts, slots, 0);
        self.figures.iter_mut().for_each(|figure| figure.reset(slots));
        result
    }
}

fn pour(
    states: &mut [State],
    query: &Compiled,
    figures: &[Figure],
    count: u64,
    slot: usize,
    bias: impl Fn(usize) -> i128,
) {
    for (at, ((state, plan), figure)) in
        states.iter_mut().zip(&query.states).zip(figures).enumerate()
    {
        let lane = |lane: u64| Some(i128::from(lane) - bias(at));
        let (sum, extreme) = match figure {
            Figure::Count => (0, None),
            // Slots are poured out long before 2^63 lanes.
            Figure::Sum(sums) => (sums[slot].cast_signed() - bias(at) * i128::from(count), None),
            Figure::Least(lanes) | Figure::Greatest(lanes) => (0, lane(lanes[slot])),
        };
        state.push_figures(plan.spec, count, || sum, |_| extreme);
    }
}
