//! Tests of one value.

use std::cmp::Ordering;
use std::collections::HashSet;

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::time::interval::Interval;
use crate::value::Value;

/// A test of the value of a column.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    IsNull,
    OneOf { texts: HashSet<String>, numbers: Vec<Value<'static>>, null: bool },
    Numbers { lower: Option<(Value<'static>, bool)>, upper: Option<(Value<'static>, bool)> },
    Texts { lower: Option<(String, bool)>, upper: Option<(String, bool)> },
    Pattern(Regex),
    Contains { text: String, case_sensitive: bool },
    Intervals(Vec<Interval>),
}

/// Compiled programs of patterns stay below this.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl Test {
    pub(super) fn one_of(values: &[Value<'static>]) -> Test {
        let texts = values.iter().filter_map(|value| Some(value.to_text()?.into_owned())).collect();
        let mut numbers: Vec<_> = values.iter().filter_map(number).collect();
        numbers.sort_by(Value::compare);
        Test::OneOf { texts, numbers, null: values.iter().any(Value::is_null) }
    }

    pub(super) fn between(
        lower: Option<(&Value<'static>, bool)>,
        upper: Option<(&Value<'static>, bool)>,
        numeric: bool,
    ) -> Result<Test> {
        if !numeric {
            let text = |(bound, strict): (&Value<'static>, bool)| {
                (bound.to_text().unwrap_or_default().into_owned(), strict)
            };
            return Ok(Test::Texts { lower: lower.map(text), upper: upper.map(text) });
        }
        let as_number = |(bound, strict): (&Value<'static>, bool)| match number(bound) {
            Some(number) => Ok((number, strict)),
            None => Err(Error::Query(format!("the bound `{bound}` is no number"))),
        };
        let (lower, upper) = (lower.map(as_number).transpose()?, upper.map(as_number).transpose()?);
        Ok(Test::Numbers { lower, upper })
    }

    pub(super) fn like(pattern: &str, escape: Option<char>) -> Result<Test> {
        let mut regex = String::from("^");
        let mut signs = pattern.chars();
        while let Some(sign) = signs.next() {
            match sign {
                sign if Some(sign) == escape => {
                    let literal = signs.next().ok_or_else(|| {
                        Error::Query(format!("the pattern `{pattern}` ends with its escape"))
                    })?;
                    regex.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
                }
                '%' => regex.push_str(".*"),
                '_' => regex.push('.'),
                sign => regex.push_str(&regex::escape(sign.encode_utf8(&mut [0; 4]))),
            }
        }
        regex.push('$');
        build(&regex, pattern, true)
    }

    pub(super) fn regex(pattern: &str) -> Result<Test> {
        build(pattern, pattern, false)
    }

    pub(super) fn contains(text: &str, case_sensitive: bool) -> Test {
        let text = if case_sensitive { text.to_owned() } else { text.to_lowercase() };
        Test::Contains { text, case_sensitive }
    }

    /// Whether it takes a value; what is unknown is taken if `unknown` says so.
    pub(crate) fn takes(&self, value: &Value<'_>, unknown: bool) -> bool {
        match value {
            Value::List(values) if values.is_empty() => self.takes(&Value::Null, unknown),
            Value::List(values) => values.iter().any(|value| self.takes(value, unknown)),
            Value::Null => match self {
                Test::IsNull => true,
                // A value that stands in the list or does not: null stands in it, or it is unknown.
                Test::OneOf { null, .. } => *null || unknown,
                _ => unknown,
            },
            value => self.holds(value),
        }
    }

    /// Whether it takes a value that is there.
    fn holds(&self, value: &Value<'_>) -> bool {
        match self {
            Test::IsNull => false,
            Test::OneOf { texts, numbers, .. } => match value {
                Value::Text(text) => texts.contains(&**text),
                value => numbers.binary_search_by(|known| known.compare(value)).is_ok(),
            },
            Test::Numbers { lower, upper } => number(value).is_some_and(|number| {
                let above = lower
                    .as_ref()
                    .is_none_or(|(bound, strict)| is_above(number.compare(bound), *strict));
                above
                    && upper
                        .as_ref()
                        .is_none_or(|(bound, strict)| is_above(bound.compare(&number), *strict))
            }),
            Test::Texts { lower, upper } => {
                let text = value.to_text().unwrap_or_default();
                let above = |(bound, strict): &(String, bool)| {
                    is_above(text.as_bytes().cmp(bound.as_bytes()), *strict)
                };
                let below = |(bound, strict): &(String, bool)| {
                    is_above(bound.as_bytes().cmp(text.as_bytes()), *strict)
                };
                lower.as_ref().is_none_or(above) && upper.as_ref().is_none_or(below)
            }
            Test::Pattern(regex) => regex.is_match(&value.to_text().unwrap_or_default()),
            Test::Contains { text, case_sensitive } => {
                let found = value.to_text().unwrap_or_default();
                match case_sensitive {
                    true => found.contains(&**text),
                    false => found.to_lowercase().contains(&**text),
                }
            }
            Test::Intervals(intervals) => value
                .to_long()
                .ok()
                .flatten()
                .is_some_and(|time| intervals.iter().any(|interval| interval.contains(time))),
        }
    }
}

fn is_above(order: Ordering, strict: bool) -> bool {
    if strict { order.is_gt() } else { order.is_ge() }
}

/// The number that a value is or says, whole if it can be.
fn number(value: &Value<'_>) -> Option<Value<'static>> {
    match value {
        Value::Long(number) => Some(Value::Long(*number)),
        Value::Double(number) => Some(Value::Double(*number)),
        Value::Text(text) => match text.trim().parse::<i64>() {
            Ok(number) => Some(Value::Long(number)),
            Err(_) => value.to_double().ok().flatten().map(Value::Double),
        },
        Value::Null | Value::List(_) => None,
    }
}

fn build(regex: &str, pattern: &str, whole: bool) -> Result<Test> {
    let built =
        RegexBuilder::new(regex).size_limit(REGEX_BYTES_MAX).dot_matches_new_line(whole).build();
    built
        .map(Test::Pattern)
        .map_err(|error| Error::Query(format!("the pattern `{pattern}` cannot be read: {error}")))
}
