//! Runs of objects, folded column by column.
//!
//! Objects that come one by one are gathered into a run first; batches are loaded a run at a time.

use fearless_simd::Level;
use sapwood_engine::{Column, ColumnBatch, Validity};

use crate::columns::Masking;
use crate::columns::kernels::{self, Lanes, RUN};
use crate::error::Result;
use crate::fold::grouping::Slots;
use crate::fold::partial::Partial;
use crate::plan::columns::{ColumnPlan, Filter, Int};
use crate::plan::compiled::Compiled;
use crate::plan::membership::Membership;
use crate::plan::state_plan::StatePlan;
use crate::question::layout::Place;
use crate::state::Figures;
use crate::value::number::{Form, Number, Order};

impl Int {
    fn side<'a>(&self, batch: &ColumnBatch<'a>) -> Column<'a> {
        match self.place {
            Place::Key => batch.keys(),
            Place::Value => batch.values(),
        }
    }
}

impl ColumnPlan {
    /// Takes an object that they fit. True if the run is full.
    #[inline]
    pub(crate) fn push(&self, key: &[u8], value: &[u8], scratch: &mut Scratch) -> bool {
        for (int, lanes) in self.ints.iter().zip(&mut scratch.columns) {
            let bytes = match int.place {
                Place::Key => key,
                Place::Value => value,
            };
            lanes[scratch.len] = kernels::lane(int.number, &bytes[int.offset..]);
        }
        scratch.len += 1;
        scratch.len == RUN
    }

    /// Folds the objects that were taken one by one, into at most so many groups.
    pub(crate) fn flush(
        &self,
        scratch: &mut Scratch,
        into: Destination<'_>,
        groups_max: usize,
    ) -> Result<()> {
        let len = std::mem::take(&mut scratch.len);
        let run = self.filter_run(len, Masking::Unmasked, scratch);
        self.fold(&run, scratch, into.partial, into.query, groups_max)?;
        self.pour(scratch, into, groups_max)
    }

    /// Folds the valid objects of a batch that they fit: of those `chosen`, or of all.
    pub(crate) fn push_batch(
        &self,
        batch: &ColumnBatch<'_>,
        chosen: Option<&Membership>,
        scratch: &mut Scratch,
        into: Destination<'_>,
    ) -> Result<()> {
        debug_assert_eq!(scratch.len, 0, "what was taken one by one is folded first");
        for begin in (0..batch.len()).step_by(RUN) {
            let run = self.load(batch, begin, chosen, scratch);
            self.fold(&run, scratch, into.partial, into.query, into.query.groups_max)?;
        }
        let groups_max = into.query.groups_max;
        self.pour(scratch, into, groups_max)
    }

    /// Makes columns of the run that begins at `begin`, and a mask of the objects that are valid,
    /// chosen, and pass the filter.
    pub(crate) fn load(
        &self,
        batch: &ColumnBatch<'_>,
        begin: usize,
        chosen: Option<&Membership>,
        scratch: &mut Scratch,
    ) -> Run {
        let level = scratch.level;
        let len = RUN.min(batch.len() - begin);
        for (int, lanes) in self.ints.iter().zip(&mut scratch.columns) {
            let side = int.side(batch);
            let bytes = side.bytes_from(begin, int.offset);
            kernels::gather(level, int.number, bytes, side.stride(), &mut lanes[..len]);
        }
        let mask = &mut scratch.mask[..len];
        let mut masking = valid(level, batch, begin, mask);
        if let Some(chosen) = chosen {
            let keys = &mut scratch.passes;
            masking = chosen.mask(level, batch.keys(), begin, masking, keys, mask);
        }
        self.filter_run(len, masking, scratch)
    }

    /// Narrows the mask of a run, if it has one, to the objects that pass the filter.
    fn filter_run(&self, len: usize, masking: Masking, scratch: &mut Scratch) -> Run {
        let is_masked = masking == Masking::Masked;
        let level = scratch.level;
        let mask = &mut scratch.mask[..len];
        let selected = if is_masked { kernels::count(level, mask) } else { len as u64 };
        let mut matched = selected;
        if let Some(filter) = &self.filter {
            let passes = &mut scratch.passes[..len];
            filter.ask(level, &scratch.columns, if is_masked { &mut *passes } else { &mut *mask });
            if is_masked {
                kernels::and(level, mask, passes);
            }
            matched = kernels::count(level, mask);
        }
        // Under a mask that has all lanes there is nothing to leave out.
        Run { len, selected, matched, is_masked: matched < len as u64 }
    }

    fn fold(
        &self,
        run: &Run,
        scratch: &mut Scratch,
        partial: &mut Partial,
        query: &Compiled,
        groups_max: usize,
    ) -> Result<()> {
        let tally = partial.tally_mut();
        tally.selected += run.selected;
        tally.matched += run.matched;
        let Some(by) = &self.group else {
            let states = partial.one_group();
            for ((state, plan), column) in states.iter_mut().zip(&query.states).zip(&self.states) {
                state.push_ints(plan.spec, &self.figures(run, *column, scratch));
            }
            return Ok(());
        };
        let mut slots = scratch.slots.take().expect("made with a group");
        slots.assign(by, scratch.lanes(run, by.column), scratch.mask(run));
        for (state, column) in self.states.iter().enumerate() {
            if let Some(column) = *column {
                slots.add(state, scratch.lanes(run, column));
            }
        }
        let are_many = slots.are_many();
        scratch.slots = Some(slots);
        match are_many {
            true => self.pour(scratch, Destination { partial, query }, groups_max),
            false => Ok(()),
        }
    }

    /// Pours what groups have so far into the partial state.
    fn pour(&self, scratch: &mut Scratch, into: Destination<'_>, groups_max: usize) -> Result<()> {
        let (Some(by), Some(slots)) = (&self.group, &mut scratch.slots) else { return Ok(()) };
        let bias = |state: usize| self.states[state].map_or(0, |column| self.bias(column));
        slots.pour(by, into.query, bias, into.partial, groups_max)
    }

    /// What a run gives to a state that is of a column.
    pub(crate) fn figures<'a>(
        &self,
        run: &Run,
        column: Option<usize>,
        scratch: &'a Scratch,
    ) -> Figures<'a> {
        let column = column.map(|column| (scratch.lanes(run, column), self.bias(column)));
        Figures { level: scratch.level, count: run.matched, column, mask: scratch.mask(run) }
    }
}

/// Sets the mask of the valid objects from `begin` on, unless all are.
fn valid(level: Level, batch: &ColumnBatch<'_>, begin: usize, mask: &mut [u64]) -> Masking {
    match batch.validity() {
        Validity::All => return Masking::Unmasked,
        Validity::Bits(bits) => kernels::spread(level, bits, begin, mask),
        Validity::Word { words, mask: bits, equals } => {
            kernels::gather(level, WORD, words.bytes_from(begin, 0), words.stride(), mask);
            kernels::agree(level, mask, bits, equals);
        }
    }
    Masking::Masked
}

/// The words that tell whether objects are valid.
const WORD: Number = Number::new(Form::Unsigned, 8, Order::Little).expect("a number of 8 bytes");

impl Filter {
    /// Sets the mask of the objects for which it is true.
    fn ask(&self, level: Level, columns: &[Box<Lanes>], mask: &mut [u64]) {
        let join = |parts: &[Filter], mask: &mut [u64], join: fn(Level, &mut [u64], &[u64])| {
            let mut of_part: Lanes = [0; RUN];
            let of_part = &mut of_part[..mask.len()];
            for part in parts {
                part.ask(level, columns, of_part);
                join(level, mask, of_part);
            }
        };
        match self {
            Filter::Compare(column, comparison, constant) => {
                let lanes = &columns[*column][..mask.len()];
                kernels::compare(level, lanes, *comparison, *constant, mask);
            }
            Filter::Not(part) => {
                part.ask(level, columns, mask);
                kernels::not(level, mask);
            }
            Filter::And(parts) => {
                mask.fill(u64::MAX);
                join(parts, mask, kernels::and);
            }
            Filter::Or(parts) => {
                mask.fill(0);
                join(parts, mask, kernels::or);
            }
        }
    }
}

/// A run whose columns are in the scratch.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) len: usize,
    /// Objects that are valid and chosen.
    pub(crate) selected: u64,
    /// Those of them that pass the filter.
    pub(crate) matched: u64,
    /// Whether the mask leaves some out.
    is_masked: bool,
}

/// Columns and masks of a run.
#[derive(Debug)]
pub(crate) struct Scratch {
    level: Level,
    columns: Vec<Box<Lanes>>,
    /// Which objects of the run count.
    mask: Box<Lanes>,
    /// For which the filter is true; before that, keys.
    passes: Box<Lanes>,
    /// Where objects are grouped.
    slots: Option<Slots>,
    /// Objects that were taken one by one and are not folded yet.
    len: usize,
}

impl Scratch {
    /// For a query with these states.
    pub(crate) fn new(columns: &ColumnPlan, states: &[StatePlan]) -> Scratch {
        let lanes = || Box::new([0; RUN]);
        Scratch {
            level: Level::new(),
            columns: columns.ints.iter().map(|_| lanes()).collect(),
            mask: lanes(),
            passes: lanes(),
            slots: columns.group.as_ref().map(|_| Slots::new(states.iter().map(|plan| plan.spec))),
            len: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// A column of a run.
    pub(crate) fn lanes(&self, run: &Run, column: usize) -> &[u64] {
        &self.columns[column][..run.len]
    }

    /// Which objects of a run count; none if all do.
    pub(crate) fn mask(&self, run: &Run) -> Option<&[u64]> {
        run.is_masked.then(|| &self.mask[..run.len])
    }
}

/// Where runs go.
pub(crate) struct Destination<'a> {
    pub(crate) partial: &'a mut Partial,
    pub(crate) query: &'a Compiled,
}
