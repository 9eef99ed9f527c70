//! The text form of aggregates.

use std::fmt;

use super::{ACCURACY, Aggregate, CAPACITY, Function, PRECISION};
use crate::error::SyntaxError;
use crate::question::group::Input as Read;
use crate::question::group::text::{alias, read};
use crate::question::syntax::{
    self, Cursor, Parsed, expect, fail, fail_at, found, keyword, offset, symbol,
};
use crate::value::{Spread, Value};

pub(super) fn list(text: &str) -> Result<Vec<Aggregate>, SyntaxError> {
    syntax::whole("list of aggregates", text, |input| syntax::list(input, aggregate))
}

fn aggregate(input: &mut Cursor<'_>) -> Parsed<Aggregate> {
    let aggregate = match call(input)? {
        Some(Called { function, name }) => Aggregate::of(function).named(name),
        None if keyword(input, "count")? => Aggregate::of(Function::Count),
        None => {
            let found = found(input);
            return fail(input, format!("one of {KNOWN} is expected, and {found}"));
        }
    };
    match alias(input)? {
        Some(name) => Ok(aggregate.named(name)),
        None => Ok(aggregate),
    }
}

const KNOWN: &str = "count, count(x), sum(x), min(x), max(x), mean(x), variance(x), \
    variance_pop(x), stddev(x), stddev_pop(x), first(x), last(x), distinct(x), quantile(x, 0.5), \
    median(x), top(x, 5)";

/// A function, and what it was called.
pub(crate) struct Called {
    pub(crate) function: Function,
    /// `median(x)` is `quantile(x, 0.5)` by another name, which stays.
    pub(crate) name: String,
}

/// The function that is all of a text, if one is.
pub(crate) fn function(text: &str) -> Option<Function> {
    let read = syntax::whole("function", text, |input| {
        call(input)?.map_or_else(|| fail(input, "a function is expected"), Ok)
    });
    read.ok().map(|called| called.function)
}

/// A function with its inputs in parentheses, if one comes next.
pub(crate) fn call(input: &mut Cursor<'_>) -> Parsed<Option<Called>> {
    syntax::try_take(input, |input| {
        let Some(word) = syntax::word(input)? else {
            return Ok(None);
        };
        if !symbol(input, "(")? {
            return Ok(None);
        }
        let function = match word {
            "count" => Function::CountOf(read(input)?),
            "sum" => Function::Sum(read(input)?),
            "min" => Function::Min(read(input)?),
            "max" => Function::Max(read(input)?),
            "mean" | "avg" => Function::Mean(read(input)?),
            "variance" => Function::Variance(read(input)?, Spread::Sample),
            "variance_pop" => Function::Variance(read(input)?, Spread::Population),
            "stddev" => Function::Deviation(read(input)?, Spread::Sample),
            "stddev_pop" => Function::Deviation(read(input)?, Spread::Population),
            "first" | "last" => edge(input, word == "first")?,
            "distinct" => {
                let of = read(input)?;
                let precision =
                    parameter(input, PRECISION, |input| bounded(input, "the precision"))?;
                Function::Distinct { input: of, precision }
            }
            "median" => Function::Quantile { input: read(input)?, share: 0.5, accuracy: ACCURACY },
            "quantile" => {
                let of = read(input)?;
                expect(input, ",")?;
                let share = fraction(input, "the share, from 0 to 1,")?;
                let accuracy = parameter(input, ACCURACY, |input| fraction(input, "the accuracy"))?;
                Function::Quantile { input: of, share, accuracy }
            }
            "top" => {
                let of = read(input)?;
                expect(input, ",")?;
                let count = bounded(input, "how many")?;
                let capacity = parameter(input, CAPACITY.max(count), |input| {
                    bounded(input, "how many are counted")
                })?;
                Function::Top { input: of, count, capacity }
            }
            _ => return Ok(None),
        };
        expect(input, ")")?;
        let name = match (word, &function) {
            ("median", Function::Quantile { input, .. }) | ("avg", Function::Mean(input)) => {
                format!("{word}({input})")
            }
            _ => function.to_string(),
        };
        Ok(Some(Called { function, name }))
    })
}

fn edge(input: &mut Cursor<'_>, is_first: bool) -> Parsed<Function> {
    let of = read(input)?;
    let by = match keyword(input, "by")? {
        // By key is what happens anyway.
        true => Some(read(input)?).filter(|by| *by != Read::Key),
        false => None,
    };
    Ok(match is_first {
        true => Function::First { input: of, by },
        false => Function::Last { input: of, by },
    })
}

/// What stands behind a comma, or the default.
fn parameter<T>(
    input: &mut Cursor<'_>,
    default: T,
    read: impl FnOnce(&mut Cursor<'_>) -> Parsed<T>,
) -> Parsed<T> {
    if symbol(input, ",")? { read(input) } else { Ok(default) }
}

fn bounded<T: TryFrom<usize>>(input: &mut Cursor<'_>, of: &str) -> Parsed<T> {
    let begin = offset(input);
    let number = syntax::index(input, of)?;
    T::try_from(number).or_else(|_| fail_at(begin, format!("{of} is too large")))
}

fn fraction(input: &mut Cursor<'_>, of: &str) -> Parsed<f64> {
    match syntax::number(input)?.map(Value::into_float) {
        Some(Value::Float(value)) => Ok(value.get()),
        _ => fail(input, format!("{of} is expected, and {}", found(input))),
    }
}

/// In the form that is read.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edge = |f: &mut fmt::Formatter<'_>, name, input: &Read, by: &Option<Read>| match by {
            None => write!(f, "{name}({input})"),
            Some(by) => write!(f, "{name}({input} by {by})"),
        };
        match self {
            Function::Count => f.write_str("count"),
            Function::CountOf(input) => write!(f, "count({input})"),
            Function::Sum(input) => write!(f, "sum({input})"),
            Function::Min(input) => write!(f, "min({input})"),
            Function::Max(input) => write!(f, "max({input})"),
            Function::Mean(input) => write!(f, "mean({input})"),
            Function::Variance(input, Spread::Sample) => write!(f, "variance({input})"),
            Function::Variance(input, Spread::Population) => write!(f, "variance_pop({input})"),
            Function::Deviation(input, Spread::Sample) => write!(f, "stddev({input})"),
            Function::Deviation(input, Spread::Population) => write!(f, "stddev_pop({input})"),
            Function::First { input, by } => edge(f, "first", input, by),
            Function::Last { input, by } => edge(f, "last", input, by),
            Function::Distinct { input, precision: PRECISION } => write!(f, "distinct({input})"),
            Function::Distinct { input, precision } => write!(f, "distinct({input}, {precision})"),
            Function::Quantile { input, share, accuracy } => {
                write!(f, "quantile({input}, {share:?}")?;
                match *accuracy == ACCURACY {
                    true => f.write_str(")"),
                    false => write!(f, ", {accuracy:?})"),
                }
            }
            Function::Top { input, count, capacity } if *capacity == CAPACITY.max(*count) => {
                write!(f, "top({input}, {count})")
            }
            Function::Top { input, count, capacity } => {
                write!(f, "top({input}, {count}, {capacity})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "count, count(x), sum(x), min(x), max(key), mean(x), variance(x), \
            variance_pop(x), stddev(x), stddev_pop(x), first(x), last(`a b` by t), distinct(key), \
            distinct(x, 18), quantile(x, 0.9), quantile(x, 1.0, 0.001), top(x, 5), \
            top(x, 5, 100), top(x, 5000)";
        let list = Aggregate::list(text).unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<_> = list.iter().map(|aggregate| aggregate.name.as_str()).collect();
        assert_eq!(names.join(", "), text);
        for (text, same, name) in [
            ("avg( x )", "mean(x)", "avg(x)"),
            ("median(`a b`)", "quantile(`a b`, 0.5)", "median(`a b`)"),
            ("first(x by key)", "first(x)", "first(x)"),
            ("quantile(x,1)", "quantile(x, 1.0)", "quantile(x, 1.0)"),
        ] {
            let read = |text| Aggregate::list(text).expect("figures").remove(0);
            assert_eq!(read(text).function, read(same).function, "{text}");
            assert_eq!(read(text).name, name, "it is called as it was asked for");
        }
        assert_eq!(Aggregate::list("count as n"), Ok(vec![Aggregate::count().named("n")]));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at, says) in [
            ("", 0, "one of count"),
            ("total(x)", 0, "`total` stands"),
            ("sum", 0, "sum(x)"),
            ("sum()", 4, "the name of a field"),
            ("sum(x", 5, "`)` is expected"),
            ("quantile(x)", 10, "`,` is expected"),
            ("quantile(x, y)", 12, "the share"),
            ("top(x, -1)", 7, "how many"),
            ("top(x, 99999999999)", 7, "too large"),
            ("distinct(x, 300)", 12, "too large"),
            ("first(x by)", 10, "the name of a field"),
        ] {
            let error = Aggregate::list(text).expect_err(text);
            assert_eq!(error.offset, at, "{text}: {error}");
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for text in [
            "distinct(x, 3)",
            "distinct(x, 19)",
            "quantile(x, 1.1)",
            "quantile(x, -0.1)",
            "quantile(x, 0.5, 0)",
            "quantile(x, 0.5, 0.6)",
            "top(x, 0)",
            "top(x, 5, 4)",
            "top(x, 1, 1)",
            "top(x, 5, 2000000)",
        ] {
            let list = Aggregate::list(text).expect(text);
            let error = list[0].function.spec().expect_err(text).to_string();
            assert!(error.starts_with(&list[0].name), "{error}");
        }
    }
}
