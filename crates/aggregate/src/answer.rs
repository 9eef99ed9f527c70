//! What is the answer?
//!
//! Partial states become rows of figures, which are filtered, sorted and cut as the query says.

mod text;

use std::cmp::Ordering;

use crate::aggregate::{Aggregate, Function};
use crate::compiled::Compiled;
use crate::error::{QueryError, Result, Why};
use crate::partial::{Partial, Tally};
use crate::predicate::{Names, Test, Values};
use crate::query::{Query, SortDirection};
use crate::state::{State, TopEntry, distinct_error, distinct_exact_max};
use crate::stored;
use crate::value::{Kind, Value};

/// The rows of an answer, and how many objects went which way. Its text is a table.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Answer {
    /// The columns of each row: the groups, then the figures.
    pub columns: Vec<Column>,
    /// The rows, in the order of the query.
    pub rows: Vec<Vec<Cell>>,
    /// How many groups there were, before `having` and the limit; 1 if the query does not group.
    pub groups: u64,
    /// How many objects went which way.
    pub tally: Tally,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Column {
    /// Its name.
    pub name: String,
    /// How exact its figures are.
    pub accuracy: Accuracy,
}

/// How exact the figures of a column are.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Accuracy {
    /// As they are.
    Exact,
    /// Exact until they were rounded to the nearest float: once, twice for a standard deviation, a
    /// few times for a quantile that lies between two numbers.
    Rounded,
    /// Within this share of the number at that rank, the lower one of two. Before the run this is said
    /// of all quantiles; those of few different numbers are exact, and then the answer says
    /// [`Rounded`](Accuracy::Rounded).
    Within(f64),
    /// Exact up to some number; beyond, estimates with this relative standard error: two thirds
    /// are within it, 95 % within twice as much.
    Estimated {
        /// Figures up to this are exact.
        exact_max: u64,
        /// The relative standard error of others.
        standard_error: f64,
    },
    /// Between bounds that each figure tells itself.
    Bounded,
}

/// A cell of an answer.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
pub enum Cell {
    /// There is no such figure: nothing had a value for it. Of a group: the value is missing.
    Nothing,
    /// A value.
    Value(Value<'static>),
    /// The most frequent values, the most frequent first.
    Top(Vec<TopEntry>),
}

impl Cell {
    fn of(value: Option<Value<'static>>) -> Cell {
        value.map_or(Cell::Nothing, Cell::Value)
    }

    /// Whether there is no such figure, or the value of the group is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Cell::Nothing)
    }

    /// The value, if it is one.
    pub fn value(&self) -> Option<&Value<'static>> {
        match self {
            Cell::Value(value) => Some(value),
            Cell::Nothing | Cell::Top(_) => None,
        }
    }

    /// The most frequent values, if it is a list of them.
    pub fn top(&self) -> Option<&[TopEntry]> {
        match self {
            Cell::Top(entries) => Some(entries),
            Cell::Nothing | Cell::Value(_) => None,
        }
    }
}

impl Answer {
    /// A cell, by its row and the name of its column.
    ///
    /// # Errors
    /// [`QueryError::Query`] if there is no such row or column.
    pub fn cell(&self, row: usize, column: &str) -> Result<&Cell> {
        let absent = || {
            let names: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
            let ending = if self.rows.len() == 1 { "" } else { "s" };
            let (rows, names) = (self.rows.len(), names.join(", "));
            QueryError::Query(format!(
                "there is no `{column}` in row {row}; the answer has {rows} row{ending} of {names}"
            ))
        };
        let at = self.columns.iter().position(|known| known.name == column).ok_or_else(absent)?;
        self.rows.get(row).map(|row| &row[at]).ok_or_else(absent)
    }

    /// The value of a cell.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Query};
    /// # let table = sapwood::Db::in_memory().create_table("t", sapwood::TableOptions::default())?;
    /// # table.put(b"k", &[7])?;
    /// let query = Query::new("n:u8".parse()?).aggregates(Aggregate::list("sum(n)")?);
    /// let answer = table.aggregate(&query)?;
    /// assert_eq!(answer.value(0, "sum(n)")?.as_i64(), Some(7));
    /// let sum: u32 = answer.value(0, "sum(n)")?.try_into()?;
    /// # assert_eq!(sum, 7);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`QueryError::Query`] if there is no such row or column, or if it is a list;
    /// [`QueryError::Nothing`] if nothing had a value for it.
    pub fn value(&self, row: usize, column: &str) -> Result<&Value<'static>> {
        match self.cell(row, column)? {
            Cell::Value(value) => Ok(value),
            Cell::Nothing => Err(QueryError::Nothing { column: column.to_owned() }),
            Cell::Top(_) => Err(QueryError::Query(format!("`{column}` is a list of values"))),
        }
    }
}

/// How groups and states become rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) columns: Vec<Column>,
    outputs: Vec<Output>,
    having: Option<Test>,
    order: Vec<(usize, SortDirection)>,
    limit: Option<usize>,
}

#[derive(Debug, Clone)]
struct Output {
    source: Source,
    /// Of which kind its values are, if that is known.
    kind: Option<Kind>,
    /// Whole numbers are floats that were stored so.
    is_float: bool,
}

impl Output {
    /// Whether it is a quantile of few different numbers.
    fn is_exact_quantile(&self, states: &[State]) -> bool {
        match &self.source {
            Source::Figure { state, .. } => {
                matches!(&states[*state], State::Sketch(sketch) if sketch.is_exact())
            }
            Source::Group(_) => false,
        }
    }
}

#[derive(Debug, Clone)]
enum Source {
    Group(usize),
    Figure { state: usize, function: Function },
}

impl Plan {
    pub(crate) fn add_group(
        &mut self,
        name: &str,
        kind: Option<Kind>,
        is_float: bool,
    ) -> Result<()> {
        let source = Source::Group(self.outputs.len());
        let column = Column { name: name.to_owned(), accuracy: Accuracy::Exact };
        self.add(column, Output { source, kind, is_float })
    }

    pub(crate) fn add_figure(
        &mut self,
        aggregate: &Aggregate,
        state: usize,
        input: Option<Kind>,
        is_float: bool,
    ) -> Result<()> {
        let function = aggregate.function.clone();
        let (accuracy, kind, keeps_form) = match &function {
            Function::Count | Function::CountOf(_) => (Accuracy::Exact, Some(Kind::Number), false),
            Function::Sum(_) if is_float => (Accuracy::Rounded, Some(Kind::Number), true),
            Function::Sum(_) => (Accuracy::Exact, Some(Kind::Number), false),
            Function::Mean(_) | Function::Variance(..) | Function::Deviation(..) => {
                (Accuracy::Rounded, Some(Kind::Number), false)
            }
            Function::Min(_)
            | Function::Max(_)
            | Function::First { .. }
            | Function::Last { .. } => (Accuracy::Exact, input, true),
            Function::Distinct { precision, .. } => {
                let exact_max = distinct_exact_max(*precision);
                let standard_error = distinct_error(*precision);
                let accuracy = Accuracy::Estimated { exact_max, standard_error };
                (accuracy, Some(Kind::Number), false)
            }
            Function::Quantile { accuracy, .. } => {
                (Accuracy::Within(*accuracy), Some(Kind::Number), false)
            }
            Function::Top { .. } => (Accuracy::Bounded, None, false),
        };
        let column = Column { name: aggregate.name.clone(), accuracy };
        let source = Source::Figure { state, function };
        self.add(column, Output { source, kind, is_float: is_float && keeps_form })
    }

    fn add(&mut self, column: Column, output: Output) -> Result<()> {
        let name = &column.name;
        if self.columns.iter().any(|known| known.name == *name) {
            let why = format!("two columns are called `{name}`: name one with `as`");
            return Err(QueryError::Query(why));
        }
        self.columns.push(column);
        self.outputs.push(output);
        Ok(())
    }

    /// Takes what the query says about rows.
    pub(crate) fn arrange(&mut self, query: &Query) -> Result<()> {
        if self.columns.is_empty() {
            let why = "the query asks for nothing: add groups, or figures such as count";
            return Err(QueryError::Query(why.into()));
        }
        self.having = query.having.as_ref().map(|having| having.resolve(&*self)).transpose()?;
        let order = query.order.iter().map(|by| Ok((self.number(&by.column)?, by.direction)));
        self.order = order.collect::<Result<_>>()?;
        self.limit = query.limit;
        Ok(())
    }

    fn is_list(&self, number: usize) -> bool {
        let source = self.outputs.get(number).map(|output| &output.source);
        matches!(source, Some(Source::Figure { function: Function::Top { .. }, .. }))
    }
}

/// What names mean in `having`.
impl Names for Plan {
    fn number(&self, name: &str) -> Result<usize> {
        let named = self.columns.iter().position(|column| column.name == name);
        // Else as it is computed: `mean(x)` is the column `avg(x)`, if that was asked for.
        let asked = || {
            let function = crate::aggregate::text::function(name)?;
            self.outputs.iter().position(|output| match &output.source {
                Source::Figure { function: known, .. } => *known == function,
                Source::Group(_) => false,
            })
        };
        match named.or_else(asked) {
            Some(number) if self.is_list(number) => Err(QueryError::Query(format!(
                "`{name}` is a list of values: rows do not compare by it"
            ))),
            Some(number) => Ok(number),
            None => {
                let known: Vec<_> = self.columns.iter().map(|c| c.name.as_str()).collect();
                let known = known.join(", ");
                Err(QueryError::Query(format!(
                    "there is no column `{name}`; the answer has {known}"
                )))
            }
        }
    }

    fn kind(&self, number: usize) -> Option<Kind> {
        self.outputs.get(number).and_then(|output| output.kind)
    }

    /// A column, if the query groups by it.
    fn key(&self) -> Result<usize> {
        self.number("key")
    }
}

struct Row<'a>(&'a [Cell]);

impl Values for Row<'_> {
    fn get(&self, number: usize) -> std::result::Result<Option<Value<'_>>, Why> {
        Ok(self.0[number].value().cloned())
    }
}

pub(crate) fn finish(query: &Compiled, partial: Partial) -> Result<Answer> {
    let plan = &query.answer;
    let tally = partial.tally().clone();
    let groups = partial.groups() as u64;
    let mut rows = Vec::with_capacity(partial.groups());
    let mut columns = plan.columns.clone();
    let mut exact_quantiles = vec![true; columns.len()];
    for (group, states) in partial.into_groups() {
        for (is_exact, output) in exact_quantiles.iter_mut().zip(&plan.outputs) {
            *is_exact &= output.is_exact_quantile(&states);
        }
        let group = stored::values(&group, query.groups.len())?;
        let row = row(query, &group, &states)?;
        let is_wanted = plan.having.as_ref().map(|having| having.ask(&Row(&row))).transpose();
        let is_wanted = is_wanted.map_err(|mismatch| {
            let name = &plan.columns[mismatch.field].name;
            QueryError::Query(format!("in having, `{name}` {}", mismatch.why))
        })?;
        if is_wanted.is_none_or(|truth| truth == Some(true)) {
            rows.push((group, row));
        }
    }
    rows.sort_unstable_by(|left, right| {
        let by_order = plan.order.iter().map(|(number, direction)| {
            compare(left.1[*number].value(), right.1[*number].value(), *direction)
        });
        let by_group =
            left.0.iter().zip(&right.0).map(|(left, right)| {
                compare(left.as_ref(), right.as_ref(), SortDirection::Ascending)
            });
        by_order.chain(by_group).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    rows.truncate(plan.limit.unwrap_or(usize::MAX));
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    for (column, is_exact) in columns.iter_mut().zip(exact_quantiles) {
        if is_exact && matches!(column.accuracy, Accuracy::Within(_)) {
            column.accuracy = Accuracy::Rounded;
        }
    }
    Ok(Answer { columns, rows, groups, tally })
}

/// What has no value comes last, whichever way.
fn compare(
    left: Option<&Value<'_>>,
    right: Option<&Value<'_>>,
    direction: SortDirection,
) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => direction.apply(left.cmp(right)),
        _ => left.is_none().cmp(&right.is_none()),
    }
}

fn row(query: &Compiled, group: &[Option<Value<'static>>], states: &[State]) -> Result<Vec<Cell>> {
    let plan = &query.answer;
    let mut cells = Vec::with_capacity(plan.outputs.len());
    for (output, column) in plan.outputs.iter().zip(&plan.columns) {
        let cell = match &output.source {
            Source::Group(at) => Cell::of(group[*at].clone()),
            Source::Figure { state, function } => {
                figure(function, &states[*state]).map_err(|what| QueryError::Overflow {
                    column: format!("`{}`", column.name),
                    what,
                })?
            }
        };
        cells.push(match cell {
            Cell::Value(value) if output.is_float => Cell::Value(value.into_float()),
            other => other,
        });
    }
    Ok(cells)
}

/// The figure that a state amounts to, or what it would be if its type could hold it.
fn figure(function: &Function, state: &State) -> std::result::Result<Cell, String> {
    Ok(match (function, state) {
        (Function::Count | Function::CountOf(_), State::Count(count)) => {
            Cell::Value((*count).into())
        }
        (Function::Sum(_), State::Sum(sum)) => match sum.count() {
            0 => Cell::Nothing,
            _ => Cell::Value(sum.sum()?),
        },
        (Function::Mean(_), State::Sum(sum)) => Cell::of(sum.mean()?),
        (Function::Variance(_, spread), State::Moments(moments)) => {
            Cell::of(moments.variance(*spread)?)
        }
        (Function::Deviation(_, spread), State::Moments(moments)) => {
            Cell::of(moments.deviation(*spread)?)
        }
        (Function::Min(_) | Function::Max(_), State::Extreme(best)) => Cell::of(best.clone()),
        (Function::First { .. } | Function::Last { .. }, State::Edge(edge)) => {
            Cell::of(edge.as_ref().map(|edge| edge.value().clone()))
        }
        (Function::Distinct { precision, .. }, State::Distinct(distinct)) => {
            Cell::Value(distinct.estimate(*precision).into())
        }
        (Function::Quantile { share, .. }, State::Sketch(sketch)) => {
            Cell::of(sketch.quantile(*share))
        }
        (Function::Top { count, .. }, State::Top(top)) => Cell::Top(top.entries(*count as usize)),
        _ => unreachable!("Function::spec makes the state of each function"),
    })
}
