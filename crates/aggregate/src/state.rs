//! The state of an aggregate: its memory of the objects that it has seen.
//!
//! A [`Spec`] says what is remembered of which inputs, a [`State`] is that for one group. States
//! of parts of the objects merge into the state of all of them:
//!
//! - I-ORDERLESS: the state depends on the objects alone, not on their order, nor on how they were
//!   split and merged; equal states have equal bytes. The one exception is [`top::Top`] with more
//!   different values than it counts; its bounds hold in any order.
//! - I-FINITE: what is added up is finite ([`Spec::accepts`] refuses the rest before anything
//!   is changed), so no state holds NaN.
//! - I-SPEC: a state is used with the spec that made it.

mod count;
mod distinct;
mod edge;
mod extreme;
mod figures;
mod sketch;
mod sum;
mod top;

pub use sum::{CentralMoments, joint_spread, spread};
pub use top::TopEntry;

use crate::error::Why;
use crate::value::stored::{Corrupt, Reader};
use crate::value::{Kind, Value};
use distinct::Distinct;
use edge::Edge;
use sketch::Sketch;
use sum::Moments;
use top::Top;

pub(crate) use count::{CountOverflow, add_counts};
pub(crate) use distinct::{few_max as distinct_exact_max, standard_error as distinct_error};
pub(crate) use extreme::Side;
pub(crate) use figures::Figures;
pub(crate) use sketch::{ACCURACY_MAX, ACCURACY_MIN};
pub(crate) use sum::Sum;

/// What is remembered. Two aggregates with the same spec share a state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spec {
    Count,
    Sum,
    Moments,
    Extreme(Side),
    /// The value of the object that is first or last by something.
    Edge(Side),
    Distinct {
        precision: u8,
    },
    Quantile {
        accuracy: f64,
    },
    Top {
        capacity: u32,
    },
}

/// What one object gives to a state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) key: &'a [u8],
    /// None where objects are counted.
    pub(crate) value: Option<&'a Value<'a>>,
    /// By what the first or last is found; none: by key alone.
    pub(crate) by: Option<&'a Value<'a>>,
}

#[derive(Debug, Clone)]
pub(crate) enum State {
    Count(u64),
    Sum(Sum),
    Moments(Box<Moments>),
    Extreme(Option<Value<'static>>),
    Edge(Option<Box<Edge>>),
    Distinct(Distinct),
    Sketch(Box<Sketch>),
    Top(Box<Top>),
}

impl Spec {
    /// Whether a value can be an input.
    pub(crate) fn accepts(self, value: &Value<'_>) -> Result<(), Why> {
        let adds = matches!(self, Spec::Sum | Spec::Moments | Spec::Quantile { .. });
        match value {
            Value::Float(float) if adds && float.get().is_infinite() => Err(Why::NotFinite),
            Value::Int(_) | Value::Float(_) => Ok(()),
            other if adds => Err(Why::Kind { found: other.kind(), wanted: Kind::Number }),
            _ => Ok(()),
        }
    }

    /// Its name, for the fingerprint of a query. Stored: do not change.
    pub(crate) fn text(self) -> String {
        match self {
            Spec::Count => "count".to_owned(),
            Spec::Sum => "sum".to_owned(),
            Spec::Moments => "moments".to_owned(),
            Spec::Extreme(Side::Least) => "min".to_owned(),
            Spec::Extreme(Side::Greatest) => "max".to_owned(),
            Spec::Edge(Side::Least) => "first".to_owned(),
            Spec::Edge(Side::Greatest) => "last".to_owned(),
            Spec::Distinct { precision } => format!("distinct {precision}"),
            Spec::Quantile { accuracy } => format!("sketch {accuracy:?}"),
            Spec::Top { capacity } => format!("top {capacity}"),
        }
    }

    /// Whether its inputs must be numbers.
    pub(crate) fn needs_numbers(self) -> bool {
        matches!(self, Spec::Sum | Spec::Moments | Spec::Quantile { .. })
    }

    pub(crate) fn new_state(self) -> State {
        match self {
            Spec::Count => State::Count(0),
            Spec::Sum => State::Sum(Sum::default()),
            Spec::Moments => State::Moments(Box::default()),
            Spec::Extreme(_) => State::Extreme(None),
            Spec::Edge(_) => State::Edge(None),
            Spec::Distinct { .. } => State::Distinct(Distinct::default()),
            Spec::Quantile { accuracy } => State::Sketch(Box::new(Sketch::new(accuracy))),
            Spec::Top { .. } => State::Top(Box::default()),
        }
    }

    /// Reads what [`State::encode`] wrote for the same spec.
    pub(crate) fn decode(self, reader: &mut Reader<'_>) -> Result<State, Corrupt> {
        Ok(match self {
            Spec::Count => State::Count(reader.u64("a count")?),
            Spec::Sum => State::Sum(Sum::decode(reader)?),
            Spec::Moments => State::Moments(Box::new(Moments::decode(reader)?)),
            Spec::Extreme(_) => State::Extreme(reader.value()?.map(Value::into_owned)),
            Spec::Edge(_) => State::Edge(Edge::decode(reader)?.map(Box::new)),
            Spec::Distinct { precision } => State::Distinct(Distinct::decode(precision, reader)?),
            Spec::Quantile { accuracy } => {
                State::Sketch(Box::new(Sketch::decode(accuracy, reader)?))
            }
            Spec::Top { capacity } => State::Top(Box::new(Top::decode(capacity, reader)?)),
        })
    }
}

/// Spec and state are of one query: I-SPEC, made true by `new_state` and `decode`.
const I_SPEC: &str = "a state is made by the spec that it is used with";

impl State {
    /// Adds what one object gives, which the spec accepts.
    #[inline]
    pub(crate) fn push(&mut self, spec: Spec, given: Given<'_>) {
        match (self, given.value) {
            (State::Count(count), _) => *count += 1,
            (_, None) => unreachable!("all but counts have an input"),
            (State::Sum(sum), Some(value)) => sum.push(value),
            (State::Moments(moments), Some(value)) => moments.push(value),
            (State::Extreme(best), Some(value)) => match spec {
                Spec::Extreme(side) => extreme::push(best, side, value),
                _ => unreachable!("{I_SPEC}"),
            },
            (State::Edge(edge), Some(value)) => match spec {
                Spec::Edge(side) => edge::push(edge, side, given.by, given.key, value),
                _ => unreachable!("{I_SPEC}"),
            },
            (State::Distinct(distinct), Some(value)) => match spec {
                Spec::Distinct { precision } => distinct.push(precision, value),
                _ => unreachable!("{I_SPEC}"),
            },
            (State::Sketch(sketch), Some(value)) => sketch.push(value),
            (State::Top(top), Some(value)) => match spec {
                Spec::Top { capacity } => top.push(capacity, value),
                _ => unreachable!("{I_SPEC}"),
            },
        }
    }

    /// Adds what `count` whole numbers add up to, or which is the least or greatest of as many values.
    pub(crate) fn push_figures<'a>(
        &mut self,
        spec: Spec,
        count: u64,
        sum: impl FnOnce() -> i128,
        extreme: impl FnOnce(Side) -> Option<Value<'a>>,
    ) {
        match (self, spec) {
            (State::Count(known), _) => *known += count,
            (State::Sum(known), _) => known.push_ints(count, sum()),
            (State::Extreme(best), Spec::Extreme(side)) => {
                if let Some(value) = extreme(side) {
                    extreme::push(best, side, &value);
                }
            }
            _ => unreachable!("`ColumnPlan::new` takes no other specs"),
        }
    }

    pub(crate) fn merge(&mut self, spec: Spec, other: State) -> Result<(), CountOverflow> {
        match (self, other, spec) {
            (State::Count(left), State::Count(right), _) => add_counts(left, right)?,
            (State::Sum(left), State::Sum(right), _) => left.merge(&right)?,
            (State::Moments(left), State::Moments(right), _) => left.merge(&right)?,
            (State::Extreme(left), State::Extreme(right), Spec::Extreme(side)) => {
                if let Some(value) = right {
                    extreme::push(left, side, &value);
                }
            }
            (State::Edge(left), State::Edge(right), Spec::Edge(side)) => {
                edge::merge(left, side, right);
            }
            (State::Distinct(left), State::Distinct(right), Spec::Distinct { precision }) => {
                left.merge(precision, right);
            }
            (State::Sketch(left), State::Sketch(right), _) => left.merge(*right)?,
            (State::Top(left), State::Top(right), Spec::Top { capacity }) => {
                left.merge(capacity, *right)?;
            }
            _ => unreachable!("{I_SPEC}"),
        }
        Ok(())
    }

    /// Appends the one form of the state.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            State::Count(count) => out.extend(count.to_le_bytes()),
            State::Sum(sum) => sum.encode(out),
            State::Moments(moments) => moments.encode(out),
            State::Extreme(best) => crate::value::stored::value(best.as_ref(), out),
            State::Edge(edge) => edge::encode(edge.as_deref(), out),
            State::Distinct(distinct) => distinct.encode(out),
            State::Sketch(sketch) => sketch.encode(out),
            State::Top(top) => top.encode(out),
        }
    }
}
