//! Aggregates: the figures that a query asks for.

pub(crate) mod text;

use crate::error::{QueryError, Result};
use crate::question::group::Input;
use crate::state::{ACCURACY_MAX, ACCURACY_MIN, Side, Spec};
use crate::value::Spread;

/// A figure of each group, and its name in the answer.
///
/// # Text form
///
/// | form | figure | of nothing |
/// |---|---|---|
/// | `count` | how many objects | 0 |
/// | `count(x)` | how many objects have an `x` | 0 |
/// | `sum(x)` | exact for whole numbers, rounded once for floats | nothing |
/// | `min(x)` `max(x)` | the least and the greatest value, of any kind | nothing |
/// | `mean(x)` | the exact sum over the count, rounded once | nothing |
/// | `variance(x)` `stddev(x)` | of a sample, over n - 1 | nothing |
/// | `variance_pop(x)` `stddev_pop(x)` | of all there are, over n | nothing |
/// | `first(x)` `last(x)` | of the object with the least and the greatest key | nothing |
/// | `first(x by t)` `last(x by t)` | with the least and the greatest `t`, ties by key | nothing |
/// | `distinct(x)` | how many different values, estimated when there are many | 0 |
/// | `quantile(x, 0.9)` `median(x)` | exact of up to 4,096 different numbers, else within 1 % | nothing |
/// | `top(x, 5)` | the most frequent values, with bounds of their counts | no values |
///
/// More exact at a price: `distinct(x, 18)` uses 2^18 registers instead of 2^14, `quantile(x, 0.9,
/// 0.001)` is within 0.1 %, `top(x, 5, 100000)` counts 100,000 values exactly instead of 4,096.
/// Instead of a field, `key` may stand. Behind each may stand `as` and a name.
///
/// ```
/// use sapwood::aggregate::Aggregate;
///
/// let figures = Aggregate::list("count, mean(delay) as late, last(dest by time)")?;
/// assert_eq!(figures[0], Aggregate::count());
/// assert_eq!(figures[1].name, "late");
/// assert_eq!(figures[2].name, "last(dest by time)");
/// # Ok::<(), sapwood::aggregate::SyntaxError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Which figure.
    pub function: Function,
    /// The name of the answer's column.
    pub name: String,
}

/// Which figure. [`Aggregate`] has the table of them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Function {
    /// How many objects.
    Count,
    /// How many objects have a value.
    CountOf(Input),
    /// The sum.
    Sum(Input),
    /// The least value.
    Min(Input),
    /// The greatest value.
    Max(Input),
    /// The sum over the count.
    Mean(Input),
    /// The mean squared difference from the mean.
    Variance(Input, Spread),
    /// The root of the variance.
    Deviation(Input, Spread),
    /// The value of the first object.
    First {
        /// Of which the value is told.
        input: Input,
        /// By what the first is found; ties, and none, go by key.
        by: Option<Input>,
    },
    /// The value of the last object, likewise.
    Last {
        /// Of which the value is told.
        input: Input,
        /// By what the last is found; ties, and none, go by key.
        by: Option<Input>,
    },
    /// How many different values: exactly up to 2^precision / 16, then within a standard error of
    /// 1.04 / 2^(precision / 2).
    Distinct {
        /// The values.
        input: Input,
        /// 4 to 18: a group takes up to 2^precision bytes.
        precision: u8,
    },
    /// The number with this share of the others below it: that at position share * (n - 1) of all,
    /// ascending. Of up to 4,096 different numbers it is exact, and between two of them lies so far on
    /// the way as the position does: the median of 116 and 177 is 146.5. Of more it is within a
    /// relative error of the lower of the two.
    Quantile {
        /// The numbers.
        input: Input,
        /// 0 to 1.
        share: f64,
        /// The relative error of many numbers, 0.0001 to 0.5. A group takes about 50 bytes a number
        /// while they are few, then about 30 bytes a bin, and a bin covers a factor of
        /// (1 + accuracy) / (1 - accuracy).
        accuracy: f64,
    },
    /// The most frequent values.
    Top {
        /// The values.
        input: Input,
        /// How many of them.
        count: u32,
        /// How many different values are counted. With more, counts are too low by at most
        /// 2 n / capacity of n objects; each answer says by how much at most.
        capacity: u32,
    },
}

/// Registers of `distinct`, as a power of two: 16 KiB a group, 0.8 % of standard error.
pub(crate) const PRECISION: u8 = 14;
/// Relative error of quantiles.
pub(crate) const ACCURACY: f64 = 0.01;
/// Values that `top` counts.
pub(crate) const CAPACITY: u32 = 4096;

impl Aggregate {
    /// How many objects.
    pub fn count() -> Aggregate {
        Aggregate::of(Function::Count)
    }

    /// The sum of a field.
    pub fn sum(input: impl Into<Input>) -> Aggregate {
        Aggregate::of(Function::Sum(input.into()))
    }

    /// Any figure, named as it is written.
    pub fn of(function: Function) -> Aggregate {
        Aggregate { name: function.to_string(), function }
    }

    /// With another name.
    pub fn named(self, name: impl Into<String>) -> Aggregate {
        Aggregate { name: name.into(), ..self }
    }

    /// Reads several, with commas between.
    ///
    /// # Errors
    /// What cannot be read, and where.
    pub fn list(text: &str) -> std::result::Result<Vec<Aggregate>, crate::SyntaxError> {
        text::list(text)
    }
}

impl Function {
    /// What it reads: the value, and by what it is found.
    pub(crate) fn inputs(&self) -> (Option<&Input>, Option<&Input>) {
        match self {
            Function::Count => (None, None),
            Function::CountOf(input)
            | Function::Sum(input)
            | Function::Min(input)
            | Function::Max(input)
            | Function::Mean(input)
            | Function::Variance(input, _)
            | Function::Deviation(input, _)
            | Function::Distinct { input, .. }
            | Function::Quantile { input, .. }
            | Function::Top { input, .. } => (Some(input), None),
            Function::First { input, by } | Function::Last { input, by } => {
                (Some(input), by.as_ref())
            }
        }
    }

    /// What is remembered for it.
    ///
    /// # Errors
    /// [`QueryError::Query`] if a number of it is out of range.
    pub(crate) fn spec(&self) -> Result<Spec> {
        let out_of_range = |what: &str| Err(QueryError::Query(format!("{self}: {what}")));
        Ok(match self {
            Function::Count | Function::CountOf(_) => Spec::Count,
            Function::Sum(_) | Function::Mean(_) => Spec::Sum,
            Function::Min(_) => Spec::Extreme(Side::Least),
            Function::Max(_) => Spec::Extreme(Side::Greatest),
            Function::Variance(..) | Function::Deviation(..) => Spec::Moments,
            Function::First { .. } => Spec::Edge(Side::Least),
            Function::Last { .. } => Spec::Edge(Side::Greatest),
            Function::Distinct { precision, .. } => match precision {
                4..=18 => Spec::Distinct { precision: *precision },
                _ => return out_of_range("the precision is 4 to 18"),
            },
            Function::Quantile { share, accuracy, .. } => {
                if !(0.0..=1.0).contains(share) {
                    return out_of_range("the share is 0 to 1");
                }
                if !(ACCURACY_MIN..=ACCURACY_MAX).contains(accuracy) {
                    return out_of_range("the accuracy is 0.0001 to 0.5");
                }
                Spec::Quantile { accuracy: *accuracy }
            }
            Function::Top { count, capacity, .. } => match (count, capacity) {
                (1.., 2..=0x10_0000) if count <= capacity => Spec::Top { capacity: *capacity },
                _ => {
                    return out_of_range(
                        "from 1 to as many as are counted, and 2 to 1,048,576 are counted",
                    );
                }
            },
        })
    }
}
