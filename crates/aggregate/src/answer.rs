//! The answer of a query.
//!
//! Partial states become rows of figures, which are filtered, sorted and cut as the query says.

mod text;

use std::cmp::Ordering;

use crate::error::{QueryError, Result, Why};
use crate::fold::partial::{Partial, Tally};
use crate::plan::compiled::Compiled;
use crate::plan::output::{Accuracy, Column, Source};
use crate::question::aggregate::Function;
use crate::question::predicate::Values;
use crate::question::query::SortDirection;
use crate::state::{State, TopEntry};
use crate::value::Value;
use crate::value::stored;

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
    /// # let table = sapwood::Db::in_memory().create_ordered_table("t", sapwood::OrderedTableOptions::default())?;
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
pub(crate) fn figure(function: &Function, state: &State) -> std::result::Result<Cell, String> {
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
