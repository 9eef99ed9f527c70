//! The query: a question about the objects of a table.
//!
//! A [`Query`] is put together from a layout, a selection, a predicate, groups and aggregates, and
//! checked as a whole by [`Query::compile`]. [`Compiled`](crate::Compiled) answers it.

use crate::question::aggregate::Aggregate;
use crate::question::group::Group;
use crate::question::layout::Layout;
use crate::question::predicate::Predicate;
use crate::question::selection::Selection;

/// A question about the objects of a table.
///
/// ```
/// use sapwood::aggregate::{Aggregate, Group, OrderBy, Query};
///
/// let query = Query::new("carrier:key.bytes2, delay:i16le".parse()?)
///     .filter("delay > 0".parse()?)
///     .group_by(Group::list("carrier")?)
///     .aggregates(Aggregate::list("count, sum(delay)")?)
///     .having("count >= 2".parse()?)
///     .order_by(OrderBy::list("sum(delay) desc")?)
///     .limit(10)
///     .compile()?;
///
/// let mut fold = query.fold();
/// for (key, delay) in [("UA1", 20_i16), ("AA1", 5), ("UA2", -3), ("UA3", 7)] {
///     fold.push(key.as_bytes(), &delay.to_le_bytes())?;
/// }
/// let answer = query.finish(fold.into_partial())?;
/// assert_eq!(answer.rows.len(), 1);
/// assert_eq!(answer.value(0, "carrier")?, &"UA".into());
/// assert_eq!(answer.value(0, "sum(delay)")?, &27.into());
/// assert_eq!(answer.tally.matched, 3);
/// # Ok::<(), sapwood::aggregate::QueryError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Query {
    pub(crate) layout: Layout,
    pub(crate) selection: Selection,
    pub(crate) filter: Option<Predicate>,
    pub(crate) groups: Vec<Group>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) having: Option<Predicate>,
    pub(crate) order: Vec<OrderBy>,
    pub(crate) limit: Option<usize>,
    pub(crate) mismatches: Mismatches,
    pub(crate) missing: Missing,
    pub(crate) groups_max: usize,
}

/// What happens with objects that do not have what the query reads: too short, no number where one
/// is declared, or of another kind than the query needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatches {
    /// There is no answer, but an error that counts them and shows one.
    Refuse,
    /// They are left out of every figure, and counted; the answer shows one.
    Skip,
}

/// What happens where a field is missing: its path leads nowhere, it is null, or it has the value
/// that stands for missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// As in SQL. Comparisons with it are neither true nor false, figures pass over it, grouped by
    /// it it is a group of its own. The answer counts the objects that a figure passed over.
    PassOver,
    /// It is a mismatch, wherever the query reads it but for `is missing`.
    Refuse,
}

/// By which column the answer is sorted. Rows without a value come last, and rows that are equal
/// in all columns so far are sorted by their groups, ascending.
///
/// ```
/// use sapwood::aggregate::{OrderBy, SortDirection};
///
/// let order = OrderBy::list("sum(delay) desc, carrier")?;
/// assert_eq!(order[0].direction, SortDirection::Descending);
/// assert_eq!(order[1], OrderBy { column: "carrier".into(), direction: SortDirection::Ascending });
/// # Ok::<(), sapwood::aggregate::SyntaxError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    /// The column's name.
    pub column: String,
    /// Which way.
    pub direction: SortDirection,
}

/// Which way rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortDirection {
    /// The least first.
    Ascending,
    /// The greatest first.
    Descending,
}

/// Groups that a query may have unless it says more: with a sum each, about 200 MB.
const GROUPS_MAX: usize = 1_000_000;

impl Query {
    /// Of objects that look so: every object, no groups, no figures yet.
    pub fn new(layout: Layout) -> Query {
        Query {
            layout,
            selection: Selection::EVERYTHING,
            filter: None,
            groups: Vec::new(),
            aggregates: Vec::new(),
            having: None,
            order: Vec::new(),
            limit: None,
            mismatches: Mismatches::Refuse,
            missing: Missing::PassOver,
            groups_max: GROUPS_MAX,
        }
    }

    /// Only objects with these keys.
    pub fn select(self, selection: Selection) -> Query {
        Query { selection, ..self }
    }

    /// Only objects for which this is true.
    pub fn filter(self, filter: Predicate) -> Query {
        Query { filter: Some(filter), ..self }
    }

    /// A row for each group of objects that agree in all of these; without any, one row for all.
    pub fn group_by(self, groups: Vec<Group>) -> Query {
        Query { groups, ..self }
    }

    /// The figures of each row.
    pub fn aggregates(self, aggregates: Vec<Aggregate>) -> Query {
        Query { aggregates, ..self }
    }

    /// Only rows for which this is true; its names are columns.
    pub fn having(self, having: Predicate) -> Query {
        Query { having: Some(having), ..self }
    }

    /// Sorts the rows; without any, by the groups, ascending.
    pub fn order_by(self, order: Vec<OrderBy>) -> Query {
        Query { order, ..self }
    }

    /// At most so many rows, the first ones of the order.
    pub fn limit(self, limit: usize) -> Query {
        Query { limit: Some(limit), ..self }
    }

    /// What happens with objects that do not have what the query reads. Default: refuse.
    pub fn mismatches(self, mismatches: Mismatches) -> Query {
        Query { mismatches, ..self }
    }

    /// What happens where a field is missing. Default: pass over.
    pub fn missing(self, missing: Missing) -> Query {
        Query { missing, ..self }
    }

    /// The most groups that there may be, 1,000,000 by default. Each takes memory for its values
    /// and figures: about 200 B with a sum, 16 KiB with many distinct values.
    pub fn groups_max(self, groups_max: usize) -> Query {
        Query { groups_max, ..self }
    }
}

impl SortDirection {
    pub(crate) fn apply(self, order: std::cmp::Ordering) -> std::cmp::Ordering {
        match self {
            SortDirection::Ascending => order,
            SortDirection::Descending => order.reverse(),
        }
    }
}

impl OrderBy {
    /// Reads several, with commas between: `sum(delay) desc, carrier`.
    ///
    /// # Errors
    /// What cannot be read, and where.
    pub fn list(text: &str) -> std::result::Result<Vec<OrderBy>, crate::SyntaxError> {
        use crate::question::syntax::{self, fail, found, keyword};
        syntax::whole("list of columns to sort by", text, |input| {
            syntax::list(input, |input| {
                let column = match keyword(input, "key")? {
                    true => Some("key".to_owned()),
                    false => crate::question::predicate::column(input)?,
                };
                let Some(column) = column else {
                    let found = found(input);
                    return fail(input, format!("the name of a column is expected, and {found}"));
                };
                let direction = match keyword(input, "desc")? {
                    true => SortDirection::Descending,
                    false => keyword(input, "asc").map(|_| SortDirection::Ascending)?,
                };
                Ok(OrderBy { column, direction })
            })
        })
    }
}
