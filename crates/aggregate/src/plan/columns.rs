//! The columns of a query that is answered column by column.
//!
//! Counts, sums and extremes of whole numbers of fixed width, without groups or in groups by one such
//! number, or by 1, 2, 4 or 8 bytes, under a filter that compares such numbers with constants: each
//! field becomes a column of lanes, the filter a mask over them, and each figure one loop. Everything
//! else goes object by object, to the same figures. `fold/columns.rs` folds runs of objects so.

use crate::columns::kernels;
use crate::plan::group_column::GroupColumn;
use crate::plan::state_plan::{GroupPlan, StatePlan};
use crate::question::group::Shape;
use crate::question::layout::{Field, Part, Place, Read};
use crate::question::predicate::Test;
use crate::state::Spec;
use crate::value::Value;
use crate::value::comparison::Comparison;
use crate::value::number::{Form, Number, Order};

/// Levels of a filter, each of which takes a mask of scratch.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct ColumnPlan {
    /// The fields that become columns.
    pub(crate) ints: Vec<Int>,
    /// By which of them objects are grouped.
    pub(crate) group: Option<GroupColumn>,
    /// Of each state the column that it is of; none: objects are counted.
    pub(crate) states: Vec<Option<usize>>,
    pub(crate) filter: Option<Filter>,
    /// Bytes that keys and values must have.
    key_end: usize,
    value_end: usize,
}

/// A whole number of at most 64 bits at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Int {
    pub(crate) place: Place,
    pub(crate) offset: usize,
    pub(crate) number: Number,
}

#[derive(Debug, Clone)]
pub(crate) enum Filter {
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
}

impl ColumnPlan {
    /// `None` if the query must go object by object.
    pub(crate) fn new(
        fields: &[Field],
        test: Option<&Test>,
        groups: &[GroupPlan],
        states: &[StatePlan],
        reads: &[usize],
    ) -> Option<ColumnPlan> {
        let mut columns = ColumnPlan {
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
