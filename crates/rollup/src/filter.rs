//! Filters: which rows of input, which facts, which rows of an answer.

mod document;
mod json;
mod test;

pub(crate) use test::Test;

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::time::interval::Interval;
use crate::value::Value;

/// Which rows, by the values of their columns.
///
/// A comparison with null is neither true nor false, and so is its negation: such rows are left out
/// either way, as in SQL. Ask for null by [`Filter::IsNull`]. Of a column with several values one that
/// matches is enough. Numbers and texts compare as the column has them: the text `5` equals the number 5
/// in a column of numbers. The time of a row is the column `__time`.
///
/// ```
/// use sapwood::rollup::{Filter, Value};
///
/// let filter = Filter::and([Filter::equal("carrier", "UA"), Filter::at_least("delay", 15)]);
/// let row = |name: &str| match name {
///     "carrier" => Value::text("UA"),
///     "delay" => Value::Long(20),
///     _ => Value::Null,
/// };
/// assert!(filter.compile()?.matches(&row));
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Filter {
    /// All rows.
    True,
    /// No rows.
    False,
    /// Rows that all of them take.
    And(Vec<Filter>),
    /// Rows that one of them takes.
    Or(Vec<Filter>),
    /// Rows that it does not take.
    Not(Box<Filter>),
    /// Rows whose column has one of the values; null among them takes rows without one.
    In {
        /// The column.
        column: String,
        /// The values.
        values: Vec<Value<'static>>,
    },
    /// Rows whose column has no value.
    IsNull {
        /// The column.
        column: String,
    },
    /// Rows whose column lies between two bounds.
    Bound {
        /// The column.
        column: String,
        /// From here on.
        lower: Option<Value<'static>>,
        /// Whether the lower bound itself is out.
        lower_strict: bool,
        /// Up to here.
        upper: Option<Value<'static>>,
        /// Whether the upper bound itself is out.
        upper_strict: bool,
        /// Whether values are compared as numbers; a text that is none matches nothing. Else they are
        /// compared as texts.
        numeric: bool,
    },
    /// Rows whose column is like a pattern of SQL: `%` is any text, `_` any sign.
    Like {
        /// The column.
        column: String,
        /// The pattern.
        pattern: String,
        /// The sign that takes the next one as it is.
        escape: Option<char>,
    },
    /// Rows in whose column a regular expression is found.
    Regex {
        /// The column.
        column: String,
        /// The regular expression.
        pattern: String,
    },
    /// Rows whose column contains a text.
    Contains {
        /// The column.
        column: String,
        /// The text.
        text: String,
        /// Whether great and small letters differ.
        case_sensitive: bool,
    },
    /// Rows whose column of times, or `__time`, lies in one of the intervals.
    Interval {
        /// The column.
        column: String,
        /// The intervals.
        intervals: Vec<Interval>,
    },
    /// Rows whose columns have the same value.
    Columns(Vec<String>),
    /// Rows for which an expression is true.
    Expression(Expression),
}

/// So deep may filters nest.
pub const FILTER_DEPTH_MAX: usize = 64;

impl Filter {
    /// Rows that all of them take.
    pub fn and(filters: impl IntoIterator<Item = Filter>) -> Filter {
        Filter::And(filters.into_iter().collect())
    }

    /// Rows that one of them takes.
    pub fn or(filters: impl IntoIterator<Item = Filter>) -> Filter {
        Filter::Or(filters.into_iter().collect())
    }

    /// Rows that it does not take, unless that is unknown.
    #[expect(clippy::should_implement_trait, reason = "it stands beside `and` and `or`")]
    pub fn not(filter: Filter) -> Filter {
        Filter::Not(Box::new(filter))
    }

    /// Rows whose column has the value; of null, those that have none.
    pub fn equal(column: &str, value: impl Into<Value<'static>>) -> Filter {
        Filter::In { column: column.to_owned(), values: vec![value.into()] }
    }

    /// Rows whose column has one of the values.
    pub fn one_of<V: Into<Value<'static>>>(
        column: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Filter {
        let values = values.into_iter().map(Into::into).collect();
        Filter::In { column: column.to_owned(), values }
    }

    /// Rows whose column is this number or more.
    pub fn at_least(column: &str, number: impl Into<Value<'static>>) -> Filter {
        Filter::Bound {
            column: column.to_owned(),
            lower: Some(number.into()),
            lower_strict: false,
            upper: None,
            upper_strict: false,
            numeric: true,
        }
    }

    /// Rows whose column is below this number.
    pub fn below(column: &str, number: impl Into<Value<'static>>) -> Filter {
        Filter::Bound {
            column: column.to_owned(),
            lower: None,
            lower_strict: false,
            upper: Some(number.into()),
            upper_strict: true,
            numeric: true,
        }
    }

    /// Reads a filter as Druid's native queries write it. `docs/design/rollup.md` lists the forms.
    ///
    /// # Errors
    /// [`Error::Query`], which names the field.
    pub fn from_json(text: &str) -> Result<Filter> {
        let json = serde_json::from_str(text)
            .map_err(|error| Error::Query(format!("the filter is no JSON: {error}")))?;
        json::filter("filter", json, Error::Query)
    }

    /// Makes it ready to be asked.
    ///
    /// # Errors
    /// [`Error::Query`] if a pattern cannot be read, or if it nests too deep.
    pub fn compile(&self) -> Result<Compiled> {
        compile(self, 0)
    }

    /// The columns that it asks.
    pub fn columns(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        self.collect(&mut names);
        names.into_iter().collect()
    }

    fn collect(&self, names: &mut BTreeSet<String>) {
        match self {
            Filter::True | Filter::False => {}
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter().for_each(|part| part.collect(names));
            }
            Filter::Not(part) => part.collect(names),
            Filter::In { column, .. }
            | Filter::IsNull { column }
            | Filter::Bound { column, .. }
            | Filter::Like { column, .. }
            | Filter::Regex { column, .. }
            | Filter::Contains { column, .. }
            | Filter::Interval { column, .. } => drop(names.insert(column.clone())),
            Filter::Columns(columns) => names.extend(columns.iter().cloned()),
            Filter::Expression(expression) => {
                names.extend(expression.columns().into_iter().map(str::to_owned));
            }
        }
    }
}

pub(crate) use json::filter as from_json;

/// A filter that is ready to be asked.
#[derive(Debug, Clone)]
pub struct Compiled(pub(crate) Node);

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Constant(bool),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Column { column: String, test: Test },
    Columns(Vec<String>),
    Expression(Expression),
}

impl Compiled {
    /// Whether it takes a row, given the values of columns by name.
    pub fn matches<'r>(&self, columns: &dyn Fn(&str) -> Value<'r>) -> bool {
        self.0.matches(columns, false)
    }
}

impl Node {
    /// Whether it takes a row; what is unknown is taken if `unknown` says so.
    pub(crate) fn matches<'r>(&self, columns: &dyn Fn(&str) -> Value<'r>, unknown: bool) -> bool {
        match self {
            Node::Constant(truth) => *truth,
            Node::And(parts) => parts.iter().all(|part| part.matches(columns, unknown)),
            Node::Or(parts) => parts.iter().any(|part| part.matches(columns, unknown)),
            Node::Not(part) => !part.matches(columns, !unknown),
            Node::Column { column, test } => test.takes(&columns(column), unknown),
            Node::Columns(names) => {
                let values: Vec<_> = names.iter().map(|name| columns(name)).collect();
                values.windows(2).all(|pair| pair[0].compare(&pair[1]).is_eq())
            }
            Node::Expression(expression) => match expression.evaluate(columns) {
                Ok(Value::Null) => unknown,
                Ok(value) => value.is_true(),
                Err(_) => unknown,
            },
        }
    }
}

fn compile(filter: &Filter, depth: usize) -> Result<Compiled> {
    if depth > FILTER_DEPTH_MAX {
        return Err(Error::Query(format!(
            "the filter nests deeper than {FILTER_DEPTH_MAX} levels: flatten it"
        )));
    }
    let all = |parts: &[Filter]| {
        parts.iter().map(|part| Ok(compile(part, depth + 1)?.0)).collect::<Result<Vec<_>>>()
    };
    let column = |column: &str, test: Test| Node::Column { column: column.to_owned(), test };
    Ok(Compiled(match filter {
        Filter::True => Node::Constant(true),
        Filter::False => Node::Constant(false),
        Filter::And(parts) => Node::And(all(parts)?),
        Filter::Or(parts) => Node::Or(all(parts)?),
        Filter::Not(part) => Node::Not(Box::new(compile(part, depth + 1)?.0)),
        Filter::Columns(columns) => Node::Columns(columns.clone()),
        Filter::Expression(expression) => Node::Expression(expression.clone()),
        Filter::In { column: name, values } => column(name, Test::one_of(values)),
        Filter::IsNull { column: name } => column(name, Test::IsNull),
        Filter::Bound { column: name, lower, lower_strict, upper, upper_strict, numeric } => {
            let lower = lower.as_ref().map(|bound| (bound, *lower_strict));
            let upper = upper.as_ref().map(|bound| (bound, *upper_strict));
            column(name, Test::between(lower, upper, *numeric)?)
        }
        Filter::Like { column: name, pattern, escape } => {
            column(name, Test::like(pattern, *escape)?)
        }
        Filter::Regex { column: name, pattern } => column(name, Test::regex(pattern)?),
        Filter::Contains { column: name, text, case_sensitive } => {
            column(name, Test::contains(text, *case_sensitive))
        }
        Filter::Interval { column: name, intervals } => {
            column(name, Test::Intervals(Interval::joined(intervals)))
        }
    }))
}
