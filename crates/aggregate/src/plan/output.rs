//! The output of a query: its columns, and how groups and states become rows.

use crate::error::{QueryError, Result};
use crate::question::aggregate::{Aggregate, Function};
use crate::question::predicate::{Names, Test};
use crate::question::query::{Query, SortDirection};
use crate::state::{State, distinct_error, distinct_exact_max};
use crate::value::Kind;

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

/// How groups and states become rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    pub(crate) columns: Vec<Column>,
    pub(crate) outputs: Vec<OutputColumn>,
    pub(crate) having: Option<Test>,
    pub(crate) order: Vec<(usize, SortDirection)>,
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct OutputColumn {
    pub(crate) source: Source,
    /// Of which kind its values are, if that is known.
    kind: Option<Kind>,
    /// Whole numbers are floats that were stored so.
    pub(crate) is_float: bool,
}

impl OutputColumn {
    /// Whether it is a quantile of few different numbers.
    pub(crate) fn is_exact_quantile(&self, states: &[State]) -> bool {
        match &self.source {
            Source::Figure { state, .. } => {
                matches!(&states[*state], State::Sketch(sketch) if sketch.is_exact())
            }
            Source::Group(_) => false,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    Group(usize),
    Figure { state: usize, function: Function },
}

impl Output {
    pub(crate) fn add_group(
        &mut self,
        name: &str,
        kind: Option<Kind>,
        is_float: bool,
    ) -> Result<()> {
        let source = Source::Group(self.outputs.len());
        let column = Column { name: name.to_owned(), accuracy: Accuracy::Exact };
        self.add(column, OutputColumn { source, kind, is_float })
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
        self.add(column, OutputColumn { source, kind, is_float: is_float && keeps_form })
    }

    fn add(&mut self, column: Column, output: OutputColumn) -> Result<()> {
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
impl Names for Output {
    fn number(&self, name: &str) -> Result<usize> {
        let named = self.columns.iter().position(|column| column.name == name);
        // Else as it is computed: `mean(x)` is the column `avg(x)`, if that was asked for.
        let asked = || {
            let function = crate::question::aggregate::text::function(name)?;
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
