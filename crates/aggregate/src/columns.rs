//! Can a query be answered column by column, and how?
//!
//! Counts, sums and extremes of whole numbers of fixed width, without groups or in groups by one such
//! number, or by 1, 2, 4 or 8 bytes, under a filter that compares such numbers with constants: of runs
//! of objects, each field becomes a column of lanes, the filter a mask over them, and each figure one
//! loop. Objects that come one by one are gathered into a run first. Everything else goes object by
//! object, to the same figures.

use fearless_simd::Level;

use crate::block::{Block, Live, Strided};
use crate::compiled::{Compiled, GroupPlan, StatePlan};
use crate::error::Result;
use crate::group::Shape;
use crate::grouping::{GroupColumn, Slots};
use crate::kernels::{self, Lanes, RUN};
use crate::layout::{Field, Form, Number, Order, Part, Place, Read};
use crate::membership::Membership;
use crate::partial::Partial;
use crate::predicate::{Comparison, Test};
use crate::state::{Side, Spec};
use crate::value::Value;

/// Levels of a filter, each of which takes a mask of scratch.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// The fields that become columns.
    ints: Vec<Int>,
    /// By which of them objects are grouped.
    group: Option<GroupColumn>,
    /// Of each state the column that it is of; none: objects are counted.
    states: Vec<Option<usize>>,
    filter: Option<Filter>,
    /// Bytes that keys and values must have.
    key_end: usize,
    value_end: usize,
}

/// A whole number of at most 64 bits at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Int {
    place: Place,
    offset: usize,
    number: Number,
}

#[derive(Debug, Clone)]
enum Filter {
    /// A column against a constant, already in the order of lanes.
    Compare(usize, Comparison, i128),
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

impl Int {
    fn of(field: &Field) -> Option<Int> {
        match (&field.part, &field.read, &field.absent) {
            (Part::From(offset), Read::Number(number), None)
                if number.form() != Form::Float && number.bytes() <= 8 =>
            {
                Some(Int { place: field.place, offset: *offset, number: *number })
            }
            _ => None,
        }
    }

    fn side<'a>(&self, block: &Block<'a>) -> Strided<'a> {
        match self.place {
            Place::Key => block.keys(),
            Place::Value => block.values(),
        }
    }
}

impl Columns {
    /// `None` if the query must go object by object.
    pub(crate) fn new(
        fields: &[Field],
        test: Option<&Test>,
        groups: &[GroupPlan],
        states: &[StatePlan],
        reads: &[usize],
    ) -> Option<Columns> {
        let mut columns = Columns {
            ints: Vec::new(),
            group: None,
            states: Vec::new(),
            filter: None,
            key_end: 0,
            value_end: 0,
        };
        for state in states {
            let column = match (state.spec, state.value) {
                (Spec::Count, None) => None,
                (Spec::Count | Spec::Sum | Spec::Extreme(_), Some(read)) => {
                    Some(columns.column(fields, reads[read])?)
                }
                _ => return None,
            };
            columns.states.push(column);
        }
        match groups {
            [] => {}
            [group] => {
                columns.group = Some(columns.group(fields, reads[group.read], &group.shape)?)
            }
            _ => return None,
        }
        if let Some(test) = test {
            columns.filter = Some(columns.filter(fields, test, 0)?);
        }
        Some(columns)
    }

    fn group(&mut self, fields: &[Field], number: usize, shape: &Shape) -> Option<GroupColumn> {
        let field = fields.get(number)?;
        let Read::Bytes(Some(width)) = field.read else {
            let column = self.column(fields, number)?;
            return GroupColumn::number(column, self.bias(column), shape);
        };
        let number = Number::new(Form::Unsigned, u8::try_from(width).ok()?, Order::Big)?;
        let bytes = Field { read: Read::Number(number), ..field.clone() };
        Some(GroupColumn::bytes(self.int(Int::of(&bytes)?)?, width))
    }

    fn column(&mut self, fields: &[Field], number: usize) -> Option<usize> {
        self.int(Int::of(fields.get(number)?)?)
    }

    fn int(&mut self, int: Int) -> Option<usize> {
        let known = self.ints.iter().position(|known| *known == int);
        if known.is_some() {
            return known;
        }
        let end = match int.place {
            Place::Key => &mut self.key_end,
            Place::Value => &mut self.value_end,
        };
        *end = int.offset.checked_add(int.number.bytes())?.max(*end);
        self.ints.push(int);
        Some(self.ints.len() - 1)
    }

    fn filter(&mut self, fields: &[Field], test: &Test, depth: usize) -> Option<Filter> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut all = |parts: &[Test]| -> Option<Vec<Filter>> {
            parts.iter().map(|part| self.filter(fields, part, depth + 1)).collect()
        };
        match test {
            Test::Constant(number, comparison, Value::Int(constant)) => {
                let column = self.column(fields, *number)?;
                let constant = constant.checked_add(kernels::bias(self.ints[column].number))?;
                Some(Filter::Compare(column, *comparison, constant))
            }
            Test::And(parts) => all(parts).map(Filter::And),
            Test::Or(parts) => all(parts).map(Filter::Or),
            Test::Not(part) => {
                self.filter(fields, part, depth + 1).map(|part| Filter::Not(Box::new(part)))
            }
            _ => None,
        }
    }

    pub(crate) fn needs_keys(&self) -> bool {
        self.key_end > 0
    }

    pub(crate) fn value_bytes_min(&self) -> usize {
        self.value_end
    }

    /// Whether all fields lie in objects with keys and values so long: then none is a mismatch.
    #[inline]
    pub(crate) fn fit(&self, key_len: usize, value_len: usize) -> bool {
        self.key_end <= key_len && self.value_end <= value_len
    }

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
        into: Sink<'_>,
        groups_max: usize,
    ) -> Result<()> {
        let len = std::mem::take(&mut scratch.len);
        let run = self.filter_run(len, false, scratch);
        self.fold(&run, scratch, into.partial, into.query, groups_max)?;
        self.pour(scratch, into, groups_max)
    }

    /// Folds the live objects of a block that they fit: of those `chosen`, or of all.
    pub(crate) fn push_block(
        &self,
        block: &Block<'_>,
        chosen: Option<&Membership>,
        scratch: &mut Scratch,
        into: Sink<'_>,
    ) -> Result<()> {
        debug_assert_eq!(scratch.len, 0, "what was taken one by one is folded first");
        for begin in (0..block.count()).step_by(RUN) {
            let run = self.load(block, begin, chosen, scratch);
            self.fold(&run, scratch, into.partial, into.query, into.query.groups_max)?;
        }
        let groups_max = into.query.groups_max;
        self.pour(scratch, into, groups_max)
    }

    /// Makes columns of the run that begins at `begin`, and a mask of the objects that live, are
    /// chosen, and pass the filter.
    pub(crate) fn load(
        &self,
        block: &Block<'_>,
        begin: usize,
        chosen: Option<&Membership>,
        scratch: &mut Scratch,
    ) -> Run {
        let level = scratch.level;
        let len = RUN.min(block.count() - begin);
        for (int, lanes) in self.ints.iter().zip(&mut scratch.columns) {
            let side = int.side(block);
            let bytes = side.from(begin, int.offset);
            kernels::gather(level, int.number, bytes, side.stride(), &mut lanes[..len]);
        }
        let mask = &mut scratch.mask[..len];
        let mut is_masked = live(level, block, begin, mask);
        if let Some(chosen) = chosen {
            let keys = &mut scratch.passes;
            is_masked = chosen.mask(level, block.keys(), begin, is_masked, keys, mask);
        }
        self.filter_run(len, is_masked, scratch)
    }

    /// Narrows the mask of a run, if it has one, to the objects that pass the filter.
    fn filter_run(&self, len: usize, is_masked: bool, scratch: &mut Scratch) -> Run {
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
            true => self.pour(scratch, Sink { partial, query }, groups_max),
            false => Ok(()),
        }
    }

    /// Pours what groups have so far into the partial state.
    fn pour(&self, scratch: &mut Scratch, into: Sink<'_>, groups_max: usize) -> Result<()> {
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

    /// The column of a field, if it is one.
    pub(crate) fn find(&self, field: &Field) -> Option<usize> {
        let int = Int::of(field)?;
        self.ints.iter().position(|known| *known == int)
    }

    /// What the lanes of a column are more than its numbers.
    pub(crate) fn bias(&self, column: usize) -> i128 {
        kernels::bias(self.ints[column].number)
    }
}

/// Sets the mask of the live objects from `begin` on; false if all are.
fn live(level: Level, block: &Block<'_>, begin: usize, mask: &mut [u64]) -> bool {
    match block.live() {
        Live::All => return false,
        Live::Bits(bits) => kernels::spread(level, bits, begin, mask),
        Live::Word { words, mask: bits, equals } => {
            kernels::gather(level, WORD, words.from(begin, 0), words.stride(), mask);
            kernels::agree(level, mask, bits, equals);
        }
    }
    true
}

/// The words that tell whether objects live.
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
    /// Objects that live and are chosen.
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
    pub(crate) fn new(columns: &Columns, states: &[StatePlan]) -> Scratch {
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
pub(crate) struct Sink<'a> {
    pub(crate) partial: &'a mut Partial,
    pub(crate) query: &'a Compiled,
}

/// What a run gives to a state.
#[derive(Debug)]
pub(crate) struct Figures<'a> {
    level: Level,
    /// How many objects.
    pub(crate) count: u64,
    /// Lanes of the state's field, and what they are more than its numbers.
    column: Option<(&'a [u64], i128)>,
    mask: Option<&'a [u64]>,
}

impl Figures<'_> {
    pub(crate) fn sum(&self) -> i128 {
        let Some((lanes, bias)) = self.column else { return 0 };
        let sum = match self.mask {
            None => kernels::sum(self.level, lanes),
            Some(mask) => kernels::sum_masked(self.level, lanes, mask),
        };
        sum.cast_signed() - bias * i128::from(self.count)
    }

    /// None of no objects.
    pub(crate) fn extreme(&self, side: Side) -> Option<i128> {
        let (lanes, bias) = self.column.filter(|_| self.count > 0)?;
        let lane = match (side, self.mask) {
            (Side::Least, None) => kernels::least(self.level, lanes),
            (Side::Least, Some(mask)) => kernels::least_masked(self.level, lanes, mask),
            (Side::Greatest, None) => kernels::greatest(self.level, lanes),
            (Side::Greatest, Some(mask)) => kernels::greatest_masked(self.level, lanes, mask),
        };
        Some(i128::from(lane) - bias)
    }
}
