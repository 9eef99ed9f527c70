//! Can a query be answered column by column, and how?
//!
//! Counts, sums and extremes of whole numbers of fixed width, without groups, under a filter that
//! compares such numbers with constants: of runs of objects, each field becomes a column of lanes,
//! the filter a mask over them, and each figure one loop. Everything else goes object by object, to
//! the same figures.

use crate::block::{Block, Live, Strided};
use crate::compiled::{GroupPlan, StatePlan};
use crate::kernels::{self, Lanes, RUN};
use crate::layout::{Field, Form, Number, Part, Place, Read};
use crate::partial::{States, Tally};
use crate::predicate::{Comparison, Test};
use crate::selection::Selection;
use crate::state::{Side, Spec};
use crate::value::Value;

/// Levels of a filter, each of which takes a mask of scratch.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// The fields that become columns.
    ints: Vec<Int>,
    /// Of each state the column that it is of; none: objects are counted.
    states: Vec<Option<usize>>,
    filter: Option<Filter>,
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
        selection: &Selection,
        test: Option<&Test>,
        groups: &[GroupPlan],
        states: &[StatePlan],
        reads: &[usize],
    ) -> Option<Columns> {
        if !selection.is_everything() || !groups.is_empty() {
            return None;
        }
        let mut columns = Columns { ints: Vec::new(), states: Vec::new(), filter: None };
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
        if let Some(test) = test {
            columns.filter = Some(columns.filter(fields, test, 0)?);
        }
        Some(columns)
    }

    fn column(&mut self, fields: &[Field], number: usize) -> Option<usize> {
        let int = Int::of(fields.get(number)?)?;
        let known = self.ints.iter().position(|known| *known == int);
        Some(known.unwrap_or_else(|| {
            self.ints.push(int);
            self.ints.len() - 1
        }))
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

    /// Whether all fields lie in objects that are so wide: then none is a mismatch.
    pub(crate) fn fit(&self, block: &Block<'_>) -> bool {
        self.ints.iter().all(|int| {
            let end = int.offset.checked_add(int.number.bytes());
            end.is_some_and(|end| end <= int.side(block).width())
        })
    }

    /// Folds a block that they fit.
    pub(crate) fn push(
        &self,
        block: &Block<'_>,
        scratch: &mut Scratch,
        tally: &mut Tally,
        states: &mut States,
        plans: &[StatePlan],
    ) {
        scratch.columns.resize_with(self.ints.len(), || Box::new([0; RUN]));
        for begin in (0..block.count()).step_by(RUN) {
            let len = RUN.min(block.count() - begin);
            for (int, lanes) in self.ints.iter().zip(&mut scratch.columns) {
                let side = int.side(block);
                let bytes = side.from(begin, int.offset);
                kernels::gather(int.number, bytes, side.stride(), &mut lanes[..len]);
            }
            let mask = &mut scratch.mask[..len];
            let is_masked = live(block, begin, mask);
            tally.selected += if is_masked { kernels::count(mask) } else { len as u64 };
            let is_filtered = self.filter.as_ref().map(|filter| {
                let mut passes = [0; RUN];
                filter.ask(&scratch.columns, &mut passes[..len]);
                match is_masked {
                    true => kernels::and(mask, &passes[..len]),
                    false => mask.copy_from_slice(&passes[..len]),
                }
            });
            let mask = (is_masked || is_filtered.is_some()).then_some(&*mask);
            let count = mask.map_or(len as u64, kernels::count);
            tally.matched += count;
            for ((state, plan), column) in states.iter_mut().zip(plans).zip(&self.states) {
                let column =
                    column.map(|column| (&scratch.columns[column][..len], self.bias(column)));
                state.push_ints(plan.spec, &Figures { count, column, mask });
            }
        }
    }

    fn bias(&self, column: usize) -> i128 {
        kernels::bias(self.ints[column].number)
    }
}

/// Sets the mask of the live objects from `begin` on; false if all are.
fn live(block: &Block<'_>, begin: usize, mask: &mut [u64]) -> bool {
    match block.live() {
        Live::All => return false,
        Live::Bits(bits) => kernels::spread(bits, begin, mask),
        Live::Word { words, mask: bits, equals } => {
            let mut lanes: Lanes = [0; RUN];
            let lanes = &mut lanes[..mask.len()];
            kernels::gather(WORD, words.from(begin, 0), words.stride(), lanes);
            kernels::agree(lanes, bits, equals, mask);
        }
    }
    true
}

/// The words that tell whether objects live.
const WORD: Number =
    Number::new(Form::Unsigned, 8, crate::layout::Order::Little).expect("a number of 8 bytes");

impl Filter {
    /// Sets the mask of the objects for which it is true.
    fn ask(&self, columns: &[Box<Lanes>], mask: &mut [u64]) {
        match self {
            Filter::Compare(column, comparison, constant) => {
                kernels::compare(&columns[*column][..mask.len()], *comparison, *constant, mask);
            }
            Filter::Not(part) => {
                part.ask(columns, mask);
                kernels::not(mask);
            }
            Filter::And(parts) => {
                mask.fill(u64::MAX);
                Filter::join(parts, columns, mask, kernels::and);
            }
            Filter::Or(parts) => {
                mask.fill(0);
                Filter::join(parts, columns, mask, kernels::or);
            }
        }
    }

    fn join(
        parts: &[Filter],
        columns: &[Box<Lanes>],
        mask: &mut [u64],
        join: impl Fn(&mut [u64], &[u64]),
    ) {
        let mut of_part: Lanes = [0; RUN];
        let of_part = &mut of_part[..mask.len()];
        for part in parts {
            part.ask(columns, of_part);
            join(mask, of_part);
        }
    }
}

/// Columns and a mask, kept from block to block.
#[derive(Debug)]
pub(crate) struct Scratch {
    columns: Vec<Box<Lanes>>,
    mask: Box<Lanes>,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { columns: Vec::new(), mask: Box::new([0; RUN]) }
    }
}

/// What a run gives to a state.
#[derive(Debug)]
pub(crate) struct Figures<'a> {
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
            None => kernels::sum(lanes),
            Some(mask) => kernels::sum_masked(lanes, mask),
        };
        sum.cast_signed() - bias * i128::from(self.count)
    }

    /// None of no objects.
    pub(crate) fn extreme(&self, side: Side) -> Option<i128> {
        let (lanes, bias) = self.column.filter(|_| self.count > 0)?;
        let lane = match (side, self.mask) {
            (Side::Least, None) => kernels::least(lanes),
            (Side::Least, Some(mask)) => kernels::least_masked(lanes, mask),
            (Side::Greatest, None) => kernels::greatest(lanes),
            (Side::Greatest, Some(mask)) => kernels::greatest_masked(lanes, mask),
        };
        Some(i128::from(lane) - bias)
    }
}
