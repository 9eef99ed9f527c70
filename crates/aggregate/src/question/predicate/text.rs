//! The text form of a predicate.

use std::fmt;
use std::str::FromStr;

use super::{Operand, Predicate};
use crate::error::SyntaxError;
use crate::question::syntax::{
    self, Cursor, DEPTH_MAX, Parsed, expect, fail, fail_at, found, keyword, offset, symbol,
};
use crate::question::{aggregate, group};
use crate::value::comparison::Comparison;
use crate::value::literal;

impl FromStr for Predicate {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Predicate, SyntaxError> {
        syntax::whole("predicate", text, |input| either(input, 0))
    }
}

/// Parts with `or` between.
fn either(input: &mut Cursor<'_>, depth: usize) -> Parsed<Predicate> {
    let first = both(input, depth)?;
    let mut parts = vec![first];
    while keyword(input, "or")? {
        parts.push(both(input, depth)?);
    }
    Ok(one_or(parts, Predicate::Or))
}

/// Parts with `and` between.
fn both(input: &mut Cursor<'_>, depth: usize) -> Parsed<Predicate> {
    let mut parts = vec![negated(input, depth)?];
    while keyword(input, "and")? {
        parts.push(negated(input, depth)?);
    }
    Ok(one_or(parts, Predicate::And))
}

fn one_or(mut parts: Vec<Predicate>, many: fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}

fn negated(input: &mut Cursor<'_>, depth: usize) -> Parsed<Predicate> {
    // Each level takes three in the tree at most: or, and, not.
    if depth > DEPTH_MAX / 3 {
        return fail(
            input,
            format!("the predicate nests deeper than {DEPTH_MAX} levels: flatten it"),
        );
    }
    if keyword(input, "not")? {
        return Ok(Predicate::Not(Box::new(negated(input, depth + 1)?)));
    }
    if symbol(input, "(")? {
        let inside = either(input, depth + 1)?;
        expect(input, ")")?;
        return Ok(inside);
    }
    condition(input)
}

fn condition(input: &mut Cursor<'_>) -> Parsed<Predicate> {
    let left = operand(input)?;
    if keyword(input, "is")? {
        let is_not = keyword(input, "not")?;
        if !keyword(input, "missing")? && !keyword(input, "null")? {
            return fail(input, format!("`missing` is expected behind `is`, and {}", found(input)));
        }
        return Ok(negate_if(is_not, Predicate::Missing(left)));
    }
    let begin = offset(input);
    let is_not = keyword(input, "not")?;
    if keyword(input, "in")? {
        return Ok(negate_if(is_not, Predicate::In(left, values(input)?)));
    }
    if keyword(input, "begins")? {
        if !keyword(input, "with")? {
            return fail(
                input,
                format!("`with` is expected behind `begins`, and {}", found(input)),
            );
        }
        let Some(prefix) = syntax::text(input)? else {
            return fail(input, format!("a text in quotes is expected, and {}", found(input)));
        };
        return Ok(negate_if(is_not, Predicate::Begins(left, prefix)));
    }
    if is_not {
        return fail(input, format!("`in` or `begins with` is expected, and {}", found(input)));
    }
    if keyword(input, "like")? {
        return fail_at(begin, "`like` is not known here: write `begins with \"AB\"`");
    }
    let Some(comparison) = comparison(input)? else {
        let known = "=, !=, <, <=, >, >=, in, begins with or is missing";
        return fail(input, format!("one of {known} is expected, and {}", found(input)));
    };
    Ok(Predicate::Compare(left, comparison, operand(input)?))
}

fn negate_if(is_not: bool, predicate: Predicate) -> Predicate {
    if is_not { Predicate::Not(Box::new(predicate)) } else { predicate }
}

fn values(input: &mut Cursor<'_>) -> Parsed<Vec<crate::Value<'static>>> {
    expect(input, "(")?;
    if symbol(input, ")")? {
        return Ok(Vec::new());
    }
    let values = syntax::list(input, |input| match syntax::value(input)? {
        Some(value) => Ok(value),
        None => {
            fail(input, format!("a number or a text in quotes is expected, and {}", found(input)))
        }
    })?;
    expect(input, ")")?;
    Ok(values)
}

fn comparison(input: &mut Cursor<'_>) -> Parsed<Option<Comparison>> {
    // Longer ones first.
    for (text, comparison) in [
        ("==", Comparison::Equal),
        ("=", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<>", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        ("<", Comparison::Less),
        (">=", Comparison::GreaterOrEqual),
        (">", Comparison::Greater),
    ] {
        if symbol(input, text)? {
            return Ok(Some(comparison));
        }
    }
    Ok(None)
}

fn operand(input: &mut Cursor<'_>) -> Parsed<Operand> {
    if keyword(input, "key")? {
        return Ok(Operand::Key);
    }
    if let Some(value) = syntax::value(input)? {
        return Ok(Operand::Value(value));
    }
    let Some(name) = column(input)? else {
        let what = "a field, a number or a text in quotes is expected";
        return fail(input, format!("{what}, and {}", found(input)));
    };
    Ok(Operand::Name(name))
}

/// A name, or the name of a column as it is computed: `sum(delay)`, `bucket(time, 3600)`.
pub(crate) fn column(input: &mut Cursor<'_>) -> Parsed<Option<String>> {
    if let Some(called) = aggregate::text::call(input)? {
        return Ok(Some(called.name));
    }
    if let Some(by) = group::text::call(input)? {
        return Ok(Some(by.to_string()));
    }
    syntax::name(input)
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Key => f.write_str("key"),
            Operand::Value(value) => f.write_str(&literal(value)),
            // As columns are named, which need no backquotes.
            Operand::Name(name) if name.ends_with(')') => f.write_str(name),
            Operand::Name(name) => f.write_str(&syntax::quoted_name(name)),
        }
    }
}

/// In the form that is read.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |parts: &[Predicate], word: &str| {
            let parts: Vec<_> = parts.iter().map(Predicate::in_a_list).collect();
            parts.join(word)
        };
        match self {
            Predicate::Compare(left, comparison, right) => write!(f, "{left} {comparison} {right}"),
            Predicate::In(operand, values) => {
                let values: Vec<_> = values.iter().map(literal).collect();
                write!(f, "{operand} in ({})", values.join(", "))
            }
            Predicate::Begins(operand, prefix) => {
                write!(f, "{operand} begins with {}", literal(&prefix[..].into()))
            }
            Predicate::Missing(operand) => write!(f, "{operand} is missing"),
            Predicate::And(parts) => f.write_str(&joined(parts, " and ")),
            Predicate::Or(parts) => f.write_str(&joined(parts, " or ")),
            Predicate::Not(part) => write!(f, "not {}", part.in_a_list()),
        }
    }
}

impl Predicate {
    /// With parentheses where they are needed.
    fn in_a_list(&self) -> String {
        match self {
            Predicate::And(_) | Predicate::Or(_) => format!("({self})"),
            _ => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (text, expected) in [
            ("a=1", "a = 1"),
            ("a == 1 AND b <> 2", "a = 1 and b != 2"),
            ("a = 1 or b = 2 and c = 3", "a = 1 or (b = 2 and c = 3)"),
            ("(a = 1 or b = 2) and c = 3", "(a = 1 or b = 2) and c = 3"),
            ("not a in (1,2)", "not a in (1, 2)"),
            ("a not in (1)", "not a in (1)"),
            ("a is not null", "not a is missing"),
            ("not (a = 1 or b = 2)", "not (a = 1 or b = 2)"),
            ("`a b` begins with 'x'", "`a b` begins with \"x\""),
            ("key >= x\"ff\"", "key >= x\"ff\""),
            ("sum( delay )>100", "sum(delay) > 100"),
            ("quantile(delay,1) > last(a by t)", "quantile(delay, 1.0) > last(a by t)"),
            ("bucket( t,60 ) = 0", "bucket(t, 60) = 0"),
            ("distinct(key) = 1.0", "distinct(key) = 1.0"),
        ] {
            let predicate: Predicate = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(predicate.to_string(), expected);
            assert_eq!(expected.parse::<Predicate>(), Ok(predicate), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at, says) in [
            ("", 0, "a field, a number or a text"),
            ("delay", 5, "one of =, !="),
            ("delay >", 7, "the text ends"),
            ("delay > and", 8, "`and` stands"),
            ("delay like 'x%'", 6, "begins with"),
            ("delay begins 'x'", 13, "`with` is expected"),
            ("delay begins with 1", 18, "a text in quotes"),
            ("a in 1", 5, "`(` is expected"),
            ("a in (b)", 6, "a number or a text"),
            ("a is 1", 5, "`missing` is expected"),
            ("a not = 1", 6, "`in` or `begins with`"),
            ("(a = 1", 6, "`)` is expected"),
            ("a = 1)", 5, "nothing more"),
            ("a = 1 b = 2", 6, "nothing more"),
            ("a = \"x", 4, "does not end"),
        ] {
            let error = text.parse::<Predicate>().expect_err(text);
            assert_eq!(error.offset, at, "{text}: {error}");
            assert!(error.what.contains(says), "{text}: {error}");
        }
        for deep in ["(".repeat(100_000), "not ".repeat(100_000)] {
            let error = deep.parse::<Predicate>().expect_err("too deep");
            assert!(error.what.contains("flatten"), "{}", error.what);
        }
    }
}
