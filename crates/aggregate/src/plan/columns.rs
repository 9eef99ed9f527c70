//! The columns of a query that is answered column by column.
//!
//! Each field that the query reads becomes a column of lanes, the filter a mask over them, and each figure one loop.
//! A field goes so if a lane can hold its values ([`Meaning`]). Whole numbers of fixed width at one offset are
//! gathered from batches at once; other fields are read object by object, those of rows together, and an object that
//! has a value without a lane, or is a mismatch, goes by itself. Everything else goes object by object, to the same
//! figures. `fold/columns.rs` folds runs of objects so.

use sapwood_schema::Projection;

use crate::plan::group_column::GroupColumn;
use crate::plan::meaning::Meaning;
use crate::plan::state_plan::{GroupPlan, StatePlan};
use crate::question::group::Shape;
use crate::question::layout::{ComponentForm, Field, Part, Place, Read, RowColumn};
use crate::question::predicate::Test;
use crate::state::Spec;
use crate::value::Value;
use crate::value::comparison::Comparison;
use crate::value::number::{Form, Number, Order};

/// Levels of a filter, each of which takes a mask of scratch.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct ColumnPlan {
    pub(crate) columns: Vec<Column>,
    /// Those that are of rows.
    pub(crate) rows: Option<Rows>,
    /// By which of them objects are grouped.
    pub(crate) groups: Vec<GroupColumn>,
    /// Of each state the column that it is of.
    pub(crate) states: Vec<StateColumn>,
    pub(crate) filter: Option<Filter>,
    /// Bytes that keys and values must have.
    key_end: usize,
    value_end: usize,
    refuses_missing: bool,
}

/// A field as lanes.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) source: Source,
    pub(crate) meaning: Meaning,
    /// Whether an object may have no value, and then the lane [`MISSING`](crate::columns::kernels::MISSING).
    pub(crate) may_miss: bool,
}

/// From where a column has its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Int(Int),
    /// Read with the other columns of rows.
    Row(RowColumn),
    /// Read by itself.
    Field(Box<Field>),
}

/// A whole number of at most 64 bits at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Int {
    pub(crate) place: Place,
    pub(crate) offset: usize,
    pub(crate) number: Number,
}

/// Columns that are read of a row at once.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) projection: Projection,
    /// Which column each of them is, and how its cells are read.
    pub(crate) columns: Vec<(usize, RowColumn)>,
}

/// The column that a state is of, and how it takes the lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateColumn {
    /// None: objects are counted.
    pub(crate) column: Option<usize>,
    pub(crate) takes: Takes,
}

/// How a state takes the lanes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// As one figure: a count, a sum of whole numbers, the least or greatest lane.
    Figure,
    /// The value of each.
    Each,
}

/// A filter without negations: they are moved to the comparisons, so that what is unknown counts as false.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
    /// A column against a constant, already in the order of lanes.
    Compare(usize, Comparison, i128),
    /// Two columns whose lanes mean the same.
    Pair(usize, Comparison, usize),
    /// Whether the lane is one of these, ascending, or none of them.
    In(usize, Vec<u64>, Sense),
    /// Whether there is no value, or one.
    Missing(usize, Sense),
    And(Vec<Filter>),
    Or(Vec<Filter>),
}

/// Whether a part of a filter is asked for as it is, or negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sense {
    Plain,
    Negated,
}

/// Columns are of rows of two formats.
struct TwoFormats;

/// What is wanted of a field.
enum Want {
    Value,
    /// Whether it is there.
    Presence,
    /// Whether a test of it is true.
    Truth(Test),
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

impl Column {
    /// None if the values of the field have no lanes.
    fn of(field: &Field) -> Option<Column> {
        if let Some(int) = Int::of(field) {
            let (source, meaning) = (Source::Int(int), Meaning::of_number(int.number));
            return Some(Column { source, meaning, may_miss: false });
        }
        if let Read::Row(row) = &field.read {
            let (source, meaning) =
                (Source::Row(row.clone()), Meaning::of_type(row.column_type())?);
            return Some(Column { source, meaning, may_miss: row.is_nullable() });
        }
        let (meaning, is_optional) = match &field.read {
            Read::Number(number) => (Meaning::of_number(*number), false),
            Read::Bytes(_) | Read::Text(_) => (Meaning::Text, false),
            Read::Tuple(tuple) => {
                let meaning = match tuple.component().form {
                    ComponentForm::Number(number) => Meaning::of_number(number),
                    ComponentForm::Bool => Meaning::Bool,
                    ComponentForm::Text => Meaning::Text,
                };
                (meaning, tuple.component().optional)
            }
            // Of any kind, or mostly of none that is known.
            Read::Decimal | Read::Json(_) | Read::MessagePack(_) => return None,
            Read::Row(_) => unreachable!("seen to above"),
        };
        let may_miss = is_optional || field.absent.is_some();
        Some(Column { source: Source::Field(Box::new(field.clone())), meaning, may_miss })
    }

    fn is(&self, other: &Column) -> bool {
        let is_truth = matches!(self.meaning, Meaning::Truth(_));
        let meanings = [self, other].map(|column| std::mem::discriminant(&column.meaning));
        !is_truth && meanings[0] == meanings[1] && self.source == other.source
    }
}

impl StateColumn {
    fn new(spec: Spec, column: usize, meaning: &Meaning, is_grouped: bool) -> Option<StateColumn> {
        let takes = match spec {
            Spec::Count => Takes::Figure,
            Spec::Sum if meaning.is_whole() => Takes::Figure,
            Spec::Extreme(_) if meaning.is_ordered() => Takes::Figure,
            Spec::Sum | Spec::Moments | Spec::Extreme(_) => Takes::Each,
            // In groups their states would be there twice, and they are large.
            Spec::Distinct { .. } | Spec::Quantile { .. } if !is_grouped => Takes::Each,
            Spec::Distinct { .. } | Spec::Quantile { .. } | Spec::Edge(_) | Spec::Top { .. } => {
                return None;
            }
        };
        Some(StateColumn { column: Some(column), takes })
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
        refuses_missing: bool,
    ) -> Option<ColumnPlan> {
        let mut plan = ColumnPlan {
            columns: Vec::new(),
            rows: None,
            groups: Vec::new(),
            states: Vec::new(),
            filter: None,
            key_end: 0,
            value_end: 0,
            refuses_missing,
        };
        for group in groups {
            let group = plan.group(fields, reads[group.read], &group.shape)?;
            plan.groups.push(group);
        }
        for state in states {
            let of = match (state.spec, state.value, state.by) {
                (Spec::Count, None, _) => StateColumn { column: None, takes: Takes::Figure },
                (spec, Some(read), None) => {
                    let is_count = spec == Spec::Count;
                    let want = if is_count { Want::Presence } else { Want::Value };
                    let column = plan.column(fields, reads[read], want)?;
                    let meaning = &plan.columns[column].meaning;
                    StateColumn::new(spec, column, meaning, !groups.is_empty())?
                }
                _ => return None,
            };
            plan.states.push(of);
        }
        if let Some(test) = test {
            plan.filter = Some(plan.filter(fields, test, Sense::Plain, 0)?);
        }
        plan.rows = plan.rows().ok()?;
        Some(plan)
    }

    fn group(&mut self, fields: &[Field], number: usize, shape: &Shape) -> Option<GroupColumn> {
        let field = fields.get(number)?;
        if let (Read::Bytes(Some(width)), None) = (&field.read, &field.absent)
            && let Ok(bytes) = u8::try_from(*width)
            && let Some(number) = Number::new(Form::Unsigned, bytes, Order::Big)
            && let Some(int) = Int::of(&Field { read: Read::Number(number), ..field.clone() })
        {
            let (source, meaning) = (Source::Int(int), Meaning::Unsigned);
            let column = self.add(Column { source, meaning, may_miss: false })?;
            return Some(GroupColumn::bytes(column, *width));
        }
        let at = self.column(fields, number, Want::Value)?;
        let column = &self.columns[at];
        GroupColumn::new(at, &column.meaning, column.may_miss, shape)
    }

    fn column(&mut self, fields: &[Field], number: usize, want: Want) -> Option<usize> {
        let mut column = Column::of(fields.get(number)?)?;
        // Objects that have no value go by themselves where that is refused.
        column.may_miss &= !self.refuses_missing;
        let is_known = self.columns.iter().any(|known| known.is(&column));
        match want {
            Want::Presence if !is_known && !column.meaning.is_ordered() => {
                column.meaning = Meaning::Presence;
            }
            Want::Value | Want::Presence => {}
            Want::Truth(test) => column.meaning = Meaning::Truth(Box::new(test)),
        }
        self.add(column)
    }

    fn add(&mut self, column: Column) -> Option<usize> {
        let known = self.columns.iter().position(|known| known.is(&column));
        if known.is_some() {
            return known;
        }
        if let Source::Int(int) = &column.source {
            let end = match int.place {
                Place::Key => &mut self.key_end,
                Place::Value => &mut self.value_end,
            };
            *end = int.offset.checked_add(int.number.bytes())?.max(*end);
        }
        self.columns.push(column);
        Some(self.columns.len() - 1)
    }

    fn filter(
        &mut self,
        fields: &[Field],
        test: &Test,
        sense: Sense,
        depth: usize,
    ) -> Option<Filter> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut all = |parts: &[Test]| -> Option<Vec<Filter>> {
            parts.iter().map(|part| self.filter(fields, part, sense, depth + 1)).collect()
        };
        match (test, sense) {
            (Test::And(parts), Sense::Plain) | (Test::Or(parts), Sense::Negated) => {
                all(parts).map(Filter::And)
            }
            (Test::Or(parts), Sense::Plain) | (Test::And(parts), Sense::Negated) => {
                all(parts).map(Filter::Or)
            }
            (Test::Not(part), sense) => self.filter(fields, part, sense.negated(), depth),
            (Test::Missing(number), sense) => {
                let column = self.column(fields, *number, Want::Presence)?;
                Some(Filter::Missing(column, sense))
            }
            (
                Test::Constant(number, ..) | Test::In(number, ..) | Test::Begins(number, ..),
                sense,
            ) => self.comparison(fields, *number, test, sense),
            (Test::Pair(first, comparison, second), sense) => {
                let [first, second] =
                    [first, second].map(|number| self.column(fields, *number, Want::Value));
                let (first, second) = (first?, second?);
                let meanings = [first, second].map(|column| &self.columns[column].meaning);
                meanings[0].compares_with(meanings[1]).then_some(())?;
                Some(Filter::Pair(first, sense.of(*comparison), second))
            }
        }
    }

    /// A test of one field against constants.
    fn comparison(
        &mut self,
        fields: &[Field],
        number: usize,
        test: &Test,
        sense: Sense,
    ) -> Option<Filter> {
        let is_ordered = Column::of(fields.get(number)?)?.meaning.is_ordered();
        match test {
            Test::Constant(_, comparison, constant) if is_ordered => {
                let column = self.column(fields, number, Want::Value)?;
                let meaning = &self.columns[column].meaning;
                let (comparison, lane) = meaning.compare(sense.of(*comparison), constant);
                Some(Filter::Compare(column, comparison, lane))
            }
            Test::In(_, constants) if is_ordered => {
                let column = self.column(fields, number, Want::Value)?;
                let meaning = &self.columns[column].meaning;
                let lanes = constants.iter().map(|constant| meaning.first_from(constant));
                let lanes = lanes.filter(|(_, is_it)| *is_it);
                let mut lanes: Vec<u64> =
                    lanes.filter_map(|(lane, _)| u64::try_from(lane).ok()).collect();
                lanes.sort_unstable();
                Some(Filter::In(column, lanes, sense))
            }
            Test::Begins(_, prefix) if is_ordered => {
                let column = self.column(fields, number, Want::Value)?;
                // The first text behind all that begin so.
                let mut behind = prefix.clone();
                let last = behind.last_mut()?;
                *last = last.checked_add(1)?;
                let meaning = &self.columns[column].meaning;
                let from = |text: &[u8]| meaning.first_from(&Value::from(text)).0;
                let (first, behind) = (from(prefix), from(&behind));
                let bound = |comparison, lane| Filter::Compare(column, comparison, lane);
                Some(match sense {
                    Sense::Plain => Filter::And(vec![
                        bound(Comparison::GreaterOrEqual, first),
                        bound(Comparison::Less, behind),
                    ]),
                    Sense::Negated => Filter::Or(vec![
                        bound(Comparison::Less, first),
                        bound(Comparison::GreaterOrEqual, behind),
                    ]),
                })
            }
            test => {
                let column = self.column(fields, number, Want::Truth(test.clone()))?;
                let truth = i128::from(sense == Sense::Plain);
                Some(Filter::Compare(column, Comparison::Equal, truth))
            }
        }
    }

    /// How the columns of rows are read, if there are some.
    fn rows(&self) -> Result<Option<Rows>, TwoFormats> {
        let of_rows = self.columns.iter().enumerate();
        let of_rows = of_rows.filter_map(|(at, column)| match &column.source {
            Source::Row(row) => Some((at, row.clone())),
            _ => None,
        });
        let columns: Vec<(usize, RowColumn)> = of_rows.collect();
        if columns.is_empty() {
            return Ok(None);
        }
        let projection = RowColumn::project(columns.iter().map(|(_, row)| row));
        Ok(Some(Rows { projection: projection.ok_or(TwoFormats)?, columns }))
    }

    /// Whether all columns are gathered from batches at once.
    pub(crate) fn is_gathered(&self) -> bool {
        self.columns.iter().all(|column| matches!(column.source, Source::Int(_)))
    }

    /// An object that goes by itself may be a mismatch, whose key is shown.
    pub(crate) fn needs_keys(&self) -> bool {
        self.key_end > 0 || !self.is_gathered()
    }

    pub(crate) fn key_bytes_min(&self) -> usize {
        self.key_end
    }

    pub(crate) fn value_bytes_min(&self) -> usize {
        self.value_end
    }

    /// Whether all numbers at offsets lie in objects with keys and values so long: then none of these is a mismatch.
    #[inline]
    pub(crate) fn fit(&self, key_len: usize, value_len: usize) -> bool {
        self.key_end <= key_len && self.value_end <= value_len
    }

    /// The column of a field that is gathered, if it is one.
    pub(crate) fn find(&self, field: &Field) -> Option<usize> {
        let int = Source::Int(Int::of(field)?);
        self.columns.iter().position(|known| known.source == int)
    }

    /// What the lanes of a column are more than its numbers.
    pub(crate) fn bias(&self, column: usize) -> i128 {
        self.columns[column].meaning.bias()
    }
}

impl Sense {
    fn of(self, comparison: Comparison) -> Comparison {
        match self {
            Sense::Plain => comparison,
            Sense::Negated => comparison.negated(),
        }
    }

    fn negated(self) -> Sense {
        match self {
            Sense::Plain => Sense::Negated,
            Sense::Negated => Sense::Plain,
        }
    }
}
