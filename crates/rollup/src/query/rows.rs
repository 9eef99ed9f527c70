//! From groups to the rows of an answer: names, figures of figures, having, order, limits.

use std::cmp::Ordering;

use super::answer::{Answer, Shape};
use super::batch::Texts;
use super::groups::{Groups, Part};
use super::plan::Plan;
use super::{Kind, Query, TopNMetric};
use crate::error::{Error, Result};
use crate::filter::Compiled;
use crate::schema::DimensionKind;
use crate::value::Value;

/// The first column of answers about buckets of time: where each begins.
pub(crate) const TIMESTAMP: &str = "timestamp";

/// More buckets without facts than this are not shown, but refused.
const EMPTY_MAX: usize = 1 << 20;

type Row = Vec<Value<'static>>;

/// The names of the columns of an answer.
///
/// # Errors
/// [`Error::Query`] if two of them are one.
pub(crate) fn names(query: &Query) -> Result<Vec<String>> {
    let mut names = vec![TIMESTAMP.to_owned()];
    names.extend(query.dimensions.iter().map(|dimension| dimension.output.clone()));
    names.extend(query.aggregations.iter().map(|aggregation| aggregation.name.clone()));
    names.extend(query.sets.iter().map(|(name, ..)| name.clone()));
    names.extend(query.post_aggregations.iter().map(|(name, _)| name.clone()));
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(Error::Query(format!("two columns of the answer are called `{name}`")));
        }
    }
    Ok(names)
}

/// What the values of each column of an answer are.
fn kinds(query: &Query, plan: &Plan<'_>) -> Vec<Option<DimensionKind>> {
    let dimensions =
        query.dimensions.iter().map(|dimension| plan.columns.kind(&dimension.dimension));
    let aggregations = query.aggregations.iter().map(|aggregation| Some(aggregation.kind.value()));
    let sets = query.sets.iter().map(|(_, _, figure)| Some(figure.value()));
    let made = query.post_aggregations.iter().map(|_| None);
    let time = std::iter::once(Some(DimensionKind::Long));
    time.chain(dimensions).chain(aggregations).chain(sets).chain(made).collect()
}

/// Makes the answer of groups.
pub(crate) fn answer(
    query: &Query,
    plan: &Plan<'_>,
    texts: &Texts<'_>,
    mut groups: Groups,
    names: Vec<String>,
    start: i64,
) -> Result<Answer> {
    groups.grow();
    let table = Table { query, plan, texts, names: &names, start };
    let having = query.having.as_ref().map(|having| having.compile()).transpose()?;
    let order = table.order()?;
    let rows = match &query.kind {
        Kind::Timeseries { descending, skip_empty } => {
            if !*skip_empty {
                add_empty(query, &mut groups)?;
            }
            let mut rows = table.rows(&groups, &[])?;
            table.sort(&mut rows, &order);
            if *descending {
                rows.reverse();
            }
            rows
        }
        Kind::TopN { metric } => {
            let rows = table.rows(&groups, &[])?;
            table.top(rows, metric, query.limit.unwrap_or(usize::MAX))?
        }
        Kind::GroupBy { subtotals } if !subtotals.is_empty() => {
            let mut all = Vec::new();
            for kept in subtotals {
                let hidden = table.hidden(kept)?;
                let mut coarser = Groups::new(plan.parts.clone(), &plan.figures);
                let first = plan.parts.len() - query.dimensions.len();
                coarser.merge_as(&groups, &plan.figures, |key| {
                    for &at in &hidden {
                        key[first + at] = 0;
                        *key.last_mut().expect("a key has a word of nulls") |= 1 << (first + at);
                    }
                })?;
                let mut rows = table.rows(&coarser, &hidden)?;
                table.sort(&mut rows, &order);
                all.append(&mut rows);
            }
            all
        }
        _ => {
            let mut rows = table.rows(&groups, &[])?;
            table.sort(&mut rows, &order);
            rows
        }
    };
    let mut rows = match &having {
        Some(having) => table.having(rows, having),
        None => rows,
    };
    if !matches!(query.kind, Kind::TopN { .. }) {
        rows.drain(..query.offset.min(rows.len()));
        rows.truncate(query.limit.unwrap_or(usize::MAX));
    }
    let shape = match &query.kind {
        Kind::Timeseries { .. } => Shape::Timeseries,
        Kind::TopN { .. } => Shape::TopN,
        _ => Shape::GroupBy,
    };
    Ok(Answer::new(names, kinds(query, plan), rows, shape, query))
}

/// Adds the buckets of time that have no facts, between those that have some.
fn add_empty(query: &Query, groups: &mut Groups) -> Result<()> {
    if query.granularity.is_all() || query.granularity.is_none() {
        return Ok(());
    }
    let starts = (0..groups.len()).map(|group| groups.key(group)[0].cast_signed());
    let mut starts: Vec<i64> = starts.collect();
    starts.sort_unstable();
    let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else { return Ok(()) };
    // Each bucket of an interval, and not those of the gaps between intervals, which may be wide.
    for interval in &query.intervals {
        let (mut time, end) = (interval.start.max(first), interval.end.min(last));
        while time < end {
            let bucket = query.granularity.bucket(time);
            groups.group(&[bucket.0.cast_unsigned(), 0]);
            if groups.len() > starts.len() + EMPTY_MAX {
                return Err(Error::Query(format!(
                    "it has more than {EMPTY_MAX} buckets of time without facts: skip empty buckets, \
                     or choose a coarser granularity"
                )));
            }
            time = bucket.1;
        }
    }
    groups.grow();
    Ok(())
}

struct Table<'q> {
    query: &'q Query,
    plan: &'q Plan<'q>,
    /// By which groups tell texts.
    texts: &'q Texts<'q>,
    names: &'q [String],
    start: i64,
}

impl Table<'_> {
    /// A row for each group.
    fn rows(&self, groups: &Groups, hidden: &[usize]) -> Result<Vec<Row>> {
        let (columns, texts) = (&self.plan.columns, self.texts);
        let has_time = matches!(self.plan.parts.first(), Some(Part::Time(_)));
        let mut rows = Vec::with_capacity(groups.len());
        for group in 0..groups.len() {
            let mut row = Vec::with_capacity(self.names.len());
            row.push(match has_time {
                true => groups.part(group, 0, columns, texts),
                false => Value::Long(self.start),
            });
            for at in 0..self.query.dimensions.len() {
                row.push(match hidden.contains(&at) {
                    true => Value::Null,
                    false => groups.part(group, at + usize::from(has_time), columns, texts),
                });
            }
            for (at, figure) in self.plan.figures.iter().enumerate() {
                let states = &groups.states[figure.shares().unwrap_or(at)];
                row.push(figure.value(states, group)?);
            }
            for (set, reading) in &self.plan.sets {
                row.push(set.value(&groups.states, group, reading)?);
            }
            for (name, expression) in &self.query.post_aggregations {
                let value = expression.evaluate(&|name| self.cell(&row, name));
                let value = value.map(Value::into_owned);
                row.push(value.map_err(|why| Error::Query(format!("`{name}`: {why}")))?);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn cell<'v>(&self, row: &'v [Value<'static>], name: &str) -> Value<'v> {
        let at = self.names.iter().position(|known| known == name);
        at.and_then(|at| row.get(at)).map_or(Value::Null, Value::borrowed)
    }

    fn place(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|known| known == name).ok_or_else(|| {
            Error::Query(format!(
                "the answer has no column `{name}`; it has {}",
                self.names.join(", ")
            ))
        })
    }

    /// The columns by which rows are ordered, and whether the greatest comes first.
    fn order(&self) -> Result<Vec<(usize, bool)>> {
        let order = self.query.order.iter();
        order.map(|by| Ok((self.place(&by.column)?, by.descending))).collect()
    }

    /// Sorts rows, those that are equal by time and dimensions.
    fn sort(&self, rows: &mut [Row], order: &[(usize, bool)]) {
        let keys = 1 + self.query.dimensions.len();
        rows.sort_unstable_by(|left, right| {
            let by_order =
                order.iter().map(|&(at, descending)| compare(&left[at], &right[at], descending));
            let by_keys = (0..keys).map(|at| left[at].compare(&right[at]));
            by_order.chain(by_keys).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
    }

    /// The first rows of each bucket of time.
    fn top(&self, mut rows: Vec<Row>, metric: &TopNMetric, threshold: usize) -> Result<Vec<Row>> {
        let (at, descending) = match metric {
            TopNMetric::Greatest(name) => (self.place(name)?, true),
            TopNMetric::Least(name) => (self.place(name)?, false),
            TopNMetric::Dimension => (1, false),
        };
        rows.sort_unstable_by(|left, right| {
            let by_time = left[0].compare(&right[0]);
            by_time
                .then_with(|| compare(&left[at], &right[at], descending))
                .then_with(|| left[1].compare(&right[1]))
        });
        let mut top: Vec<Row> = Vec::new();
        let mut taken = 0;
        for row in rows {
            let same = top.last().is_some_and(|last| last[0].compare(&row[0]).is_eq());
            taken = if same { taken + 1 } else { 1 };
            if taken <= threshold {
                top.push(row);
            }
        }
        Ok(top)
    }

    /// The numbers of the dimensions that are not kept.
    fn hidden(&self, kept: &[String]) -> Result<Vec<usize>> {
        let outputs: Vec<&str> =
            self.query.dimensions.iter().map(|dimension| dimension.output.as_str()).collect();
        if let Some(unknown) = kept.iter().find(|name| !outputs.contains(&name.as_str())) {
            return Err(Error::Query(format!(
                "`{unknown}` of the subtotals is none of its dimensions, which are {}",
                outputs.join(", ")
            )));
        }
        let is_hidden = |at: &usize| !kept.iter().any(|name| name == outputs[*at]);
        Ok((0..outputs.len()).filter(is_hidden).collect())
    }

    fn having(&self, rows: Vec<Row>, having: &Compiled) -> Vec<Row> {
        let takes = |row: &Row| having.matches(&|name| self.cell(row, name));
        rows.into_iter().filter(takes).collect()
    }
}

/// Null comes last, either way.
fn compare(left: &Value<'_>, right: &Value<'_>, descending: bool) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (false, false) if descending => right.compare(left),
        (false, false) => left.compare(right),
        (left, right) => left.cmp(&right),
    }
}
