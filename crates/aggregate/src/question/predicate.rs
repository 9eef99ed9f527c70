//! Predicates: over the fields of objects, and over the figures of groups.
//!
//! A [`Predicate`] is a tree over names. As a filter the names are fields of the layout and `key`;
//! in `having` they are the columns of the answer. It is resolved once into numbers ([`Test`]) and
//! then asked of each object.
//!
//! What is missing is neither less nor greater nor equal nor different: a comparison with it is
//! unknown, as in SQL, and so is `not` of that. An object is taken when the whole is true.

mod text;

pub(crate) use text::column;

use crate::error::{Mismatch, QueryError, Result, Why};
use crate::question::syntax::DEPTH_MAX;
use crate::value::comparison::Comparison;
use crate::value::{Kind, Value};

/// A condition on named values.
///
/// # Text form
///
/// `delay > 15 and (carrier in ("AA", "UA") or not plane begins with "N1")`. Comparisons are
/// `=`, `!=`, `<`, `<=`, `>`, `>=`, between names and values; `in (...)`, `not in (...)`,
/// `begins with "..."`, `is missing`, `is not missing`. `not` binds closest, then `and`, then `or`.
/// Texts stand in single or double quotes, bytes are `x"00ff"`; `key` is the whole key; names that
/// are not plain words stand in backquotes. In a condition on groups, columns are named as they are
/// asked for: `sum(delay) > 100`.
///
/// ```
/// use sapwood::aggregate::Predicate;
///
/// let predicate: Predicate = "delay > 15 and carrier in ('AA', 'UA')".parse()?;
/// assert_eq!(predicate.to_string(), r#"delay > 15 and carrier in ("AA", "UA")"#);
///
/// let error = "delay > and".parse::<Predicate>().unwrap_err();
/// assert_eq!(error.offset, 8);
/// # Ok::<(), sapwood::aggregate::SyntaxError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// Two operands compare as the comparison says. Comparing different kinds is a mismatch.
    Compare(Operand, Comparison, Operand),
    /// The operand equals one of the values.
    In(Operand, Vec<Value<'static>>),
    /// The operand, a text or bytes, begins with these bytes.
    Begins(Operand, Vec<u8>),
    /// The operand has no value: its path leads nowhere, it is null, or it has the value that
    /// stands for missing.
    Missing(Operand),
    /// All are true; true if there are none.
    And(Vec<Predicate>),
    /// At least one is true; false if there are none.
    Or(Vec<Predicate>),
    /// It is false.
    Not(Box<Predicate>),
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// The object's key.
    Key,
    /// A field, or a column of the answer.
    Name(String),
    /// A value.
    Value(Value<'static>),
}

/// What names mean, while a predicate is resolved.
pub(crate) trait Names {
    /// The number of what has this name.
    fn number(&self, name: &str) -> Result<usize>;
    /// Of which kind its values are, where that is known.
    fn kind(&self, number: usize) -> Option<Kind>;
    /// The number of the key, where there is one.
    fn key(&self) -> Result<usize>;
}

/// What numbers are worth, while a test is asked.
pub(crate) trait Values {
    fn get(&self, number: usize) -> std::result::Result<Option<Value<'_>>, Why>;
    /// What a comparison with something missing is.
    fn unknown(&self) -> std::result::Result<Option<bool>, Why> {
        Ok(None)
    }
}

/// A predicate whose names are numbers.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    /// A value with a constant, which is the most common comparison.
    Constant(usize, Comparison, Value<'static>),
    /// Two values.
    Pair(usize, Comparison, usize),
    /// Sorted.
    In(usize, Vec<Value<'static>>),
    Begins(usize, Vec<u8>),
    Missing(usize),
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
}

impl Predicate {
    pub(crate) fn resolve(&self, names: &impl Names) -> Result<Test> {
        self.resolve_at(names, 0)
    }

    fn resolve_at(&self, names: &impl Names, depth: usize) -> Result<Test> {
        if depth > DEPTH_MAX {
            let why = format!("the predicate nests deeper than {DEPTH_MAX} levels: flatten it");
            return Err(QueryError::Query(why));
        }
        let all = |parts: &[Predicate]| {
            parts.iter().map(|part| part.resolve_at(names, depth + 1)).collect::<Result<_>>()
        };
        Ok(match self {
            Predicate::And(parts) => Test::And(all(parts)?),
            Predicate::Or(parts) => Test::Or(all(parts)?),
            Predicate::Not(part) => Test::Not(Box::new(part.resolve_at(names, depth + 1)?)),
            Predicate::Missing(operand) => Test::Missing(operand.number(names)?),
            Predicate::Begins(operand, prefix) => {
                let number = operand.number(names)?;
                same_kind(names, number, Kind::Bytes, operand)?;
                Test::Begins(number, prefix.clone())
            }
            Predicate::In(operand, values) => {
                let number = operand.number(names)?;
                for value in values {
                    same_kind(names, number, value.kind(), operand)?;
                }
                let mut values = values.clone();
                values.sort();
                if values.windows(2).any(|pair| pair[0].kind() != pair[1].kind()) {
                    let why = format!("the values that {operand} may have are of different kinds");
                    return Err(QueryError::Query(why));
                }
                Test::In(number, values)
            }
            Predicate::Compare(left, comparison, right) => match (left, right) {
                (Operand::Value(_), Operand::Value(_)) => {
                    let why = format!("{left} and {right} are both values: compare a field");
                    return Err(QueryError::Query(why));
                }
                (_, Operand::Value(value)) => constant(names, left, *comparison, value)?,
                (Operand::Value(value), _) => constant(names, right, comparison.flipped(), value)?,
                (_, _) => {
                    let (first, second) = (left.number(names)?, right.number(names)?);
                    if let Some(kind) = names.kind(second) {
                        same_kind(names, first, kind, left)?;
                    }
                    Test::Pair(first, *comparison, second)
                }
            },
        })
    }
}

fn constant(
    names: &impl Names,
    operand: &Operand,
    comparison: Comparison,
    value: &Value<'static>,
) -> Result<Test> {
    let number = operand.number(names)?;
    same_kind(names, number, value.kind(), operand)?;
    Ok(Test::Constant(number, comparison, value.clone()))
}

/// Refuses what would never match.
fn same_kind(names: &impl Names, number: usize, wanted: Kind, operand: &Operand) -> Result<()> {
    match names.kind(number) {
        Some(kind) if kind != wanted => Err(QueryError::Query(format!(
            "{operand} is {kind} and cannot be compared with {wanted}"
        ))),
        _ => Ok(()),
    }
}

impl Operand {
    fn number(&self, names: &impl Names) -> Result<usize> {
        match self {
            Operand::Key => names.key(),
            Operand::Name(name) => names.number(name),
            Operand::Value(_) => {
                Err(QueryError::Query(format!("{self} is a value: a field is expected there")))
            }
        }
    }
}

impl Test {
    /// Whether it asks a field.
    pub(crate) fn asks(&self, field: usize) -> bool {
        match self {
            Test::Constant(number, ..)
            | Test::In(number, _)
            | Test::Begins(number, _)
            | Test::Missing(number) => *number == field,
            Test::Pair(first, _, second) => *first == field || *second == field,
            Test::And(parts) | Test::Or(parts) => parts.iter().any(|part| part.asks(field)),
            Test::Not(part) => part.asks(field),
        }
    }

    /// Whether it is true; `None` if that is unknown because something is missing.
    ///
    /// What comes first is asked first: `a is missing or a > 1` never compares what is missing.
    pub(crate) fn ask(&self, values: &impl Values) -> std::result::Result<Option<bool>, Mismatch> {
        let at = |field: usize| move |why| Mismatch { field, why };
        let get = |number: usize| values.get(number).map_err(at(number));
        let unknown = |number: usize| values.unknown().map_err(at(number));
        match self {
            Test::Constant(number, comparison, constant) => match get(*number)? {
                None => unknown(*number),
                Some(value) => {
                    comparable(&value, constant.kind(), *number)?;
                    Ok(Some(comparison.holds(value.cmp(constant))))
                }
            },
            Test::Pair(first, comparison, second) => match (get(*first)?, get(*second)?) {
                (Some(left), Some(right)) => {
                    comparable(&left, right.kind(), *first)?;
                    Ok(Some(comparison.holds(left.cmp(&right))))
                }
                (None, _) => unknown(*first),
                (_, None) => unknown(*second),
            },
            Test::In(number, constants) => match (get(*number)?, constants.first()) {
                (None, _) => unknown(*number),
                (Some(_), None) => Ok(Some(false)),
                (Some(value), Some(first)) => {
                    comparable(&value, first.kind(), *number)?;
                    let found = constants.binary_search_by(|constant| constant.cmp(&value));
                    Ok(Some(found.is_ok()))
                }
            },
            Test::Begins(number, prefix) => match get(*number)? {
                None => unknown(*number),
                Some(Value::Bytes(bytes)) => Ok(Some(bytes.starts_with(prefix))),
                Some(other) => {
                    let (found, wanted) = (other.kind(), Kind::Bytes);
                    Err(Mismatch { field: *number, why: Why::Kind { found, wanted } })
                }
            },
            Test::Missing(number) => Ok(Some(get(*number)?.is_none())),
            Test::And(parts) => Connective::And.ask(parts, values),
            Test::Or(parts) => Connective::Or.ask(parts, values),
            Test::Not(part) => Ok(part.ask(values)?.map(|is_true| !is_true)),
        }
    }
}

/// A way to join the parts of a test.
#[derive(Clone, Copy, PartialEq)]
enum Connective {
    And,
    Or,
}

impl Connective {
    /// Ends at the first part that decides the whole: one that is false under `And`, or true under
    /// `Or`.
    fn ask(
        self,
        parts: &[Test],
        values: &impl Values,
    ) -> std::result::Result<Option<bool>, Mismatch> {
        let decisive = self == Connective::Or;
        let mut answer = Some(!decisive);
        for part in parts {
            match part.ask(values)? {
                Some(truth) if truth == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => answer = None,
            }
        }
        Ok(answer)
    }
}

fn comparable(value: &Value<'_>, wanted: Kind, field: usize) -> std::result::Result<(), Mismatch> {
    match value.kind() {
        found if found == wanted => Ok(()),
        found => Err(Mismatch { field, why: Why::Kind { found, wanted } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a = 1, b = "x", c is missing, d is a mismatch; their kinds are not known.
    struct Sample;

    impl Names for Sample {
        fn number(&self, name: &str) -> Result<usize> {
            let number = ["a", "b", "c", "d", "n"].iter().position(|known| *known == name);
            number.ok_or_else(|| QueryError::Query(format!("no {name}")))
        }

        fn kind(&self, number: usize) -> Option<Kind> {
            (number == 4).then_some(Kind::Number)
        }

        fn key(&self) -> Result<usize> {
            Ok(5)
        }
    }

    impl Values for Sample {
        fn get(&self, number: usize) -> std::result::Result<Option<Value<'_>>, Why> {
            match number {
                0 => Ok(Some(1.into())),
                1 => Ok(Some("x".into())),
                2 => Ok(None),
                3 => Err(Why::Nan),
                4 => Ok(Some(7.into())),
                _ => Ok(Some("key".into())),
            }
        }
    }

    fn ask(text: &str) -> std::result::Result<Option<bool>, Mismatch> {
        let predicate: Predicate = text.parse().unwrap_or_else(|error| panic!("{error}"));
        predicate.resolve(&Sample).unwrap_or_else(|error| panic!("{error}")).ask(&Sample)
    }

    #[test]
    fn predicates_are_true_false_or_unknown() {
        for (text, expected) in [
            ("a = 1", Some(true)),
            ("a != 1", Some(false)),
            ("a < 1.5", Some(true)),
            ("2 > a", Some(true)),
            ("1 <= a", Some(true)),
            ("a >= n", Some(false)),
            ("n > a", Some(true)),
            ("a in (3, 1)", Some(true)),
            ("a not in (3, 2)", Some(true)),
            ("a in ()", Some(false)),
            ("b begins with 'x'", Some(true)),
            ("b begins with 'xy'", Some(false)),
            ("key = 'key'", Some(true)),
            ("key begins with x\"6b65\"", Some(true)),
            ("c = 1", None),
            ("c in (1)", None),
            ("c begins with 'x'", None),
            ("c != a", None),
            ("not c = 1", None),
            ("c is missing", Some(true)),
            ("c is not missing", Some(false)),
            ("a is null", Some(false)),
            // Unknown decides nothing.
            ("c = 1 and a = 1", None),
            ("c = 1 and a = 2", Some(false)),
            ("a = 2 or c = 1", None),
            ("c = 1 or a = 1", Some(true)),
            // What comes first decides, and the rest is not read.
            ("a = 2 and d = 1", Some(false)),
            ("a = 1 or d = 1", Some(true)),
            ("a = 1 and b = 'x' or d = 1", Some(true)),
            ("not (a = 1 and not b = 'y')", Some(false)),
        ] {
            assert_eq!(ask(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn kinds_that_differ_are_a_mismatch() {
        let kind = |field, found, wanted| Mismatch { field, why: Why::Kind { found, wanted } };
        for (text, expected) in [
            ("a = 'x'", kind(0, Kind::Number, Kind::Bytes)),
            ("b < 1", kind(1, Kind::Bytes, Kind::Number)),
            ("a = b", kind(0, Kind::Number, Kind::Bytes)),
            ("b in (1, 2)", kind(1, Kind::Bytes, Kind::Number)),
            ("a begins with 'x'", kind(0, Kind::Number, Kind::Bytes)),
            ("a = true", kind(0, Kind::Number, Kind::Bool)),
            ("d = 1", Mismatch { field: 3, why: Why::Nan }),
            ("d is missing", Mismatch { field: 3, why: Why::Nan }),
            ("c = 1 and d = 1", Mismatch { field: 3, why: Why::Nan }),
        ] {
            assert_eq!(ask(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn what_can_never_be_true_is_refused_at_once() {
        for (text, says) in [
            ("z = 1", "no z"),
            ("n = 'x'", "n is a number and cannot be compared with a text"),
            ("'x' = n", "cannot be compared"),
            ("n begins with 'x'", "cannot be compared"),
            ("n in (1, true)", "cannot be compared"),
            ("a in (1, 'x')", "different kinds"),
            ("1 = 1", "both values"),
            ("1 is missing", "is a value"),
        ] {
            let predicate: Predicate = text.parse().unwrap_or_else(|error| panic!("{error}"));
            let error = predicate.resolve(&Sample).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let mut deep = Predicate::And(Vec::new());
        for _ in 0..=DEPTH_MAX {
            deep = Predicate::Not(Box::new(deep));
        }
        assert!(deep.resolve(&Sample).is_err());
    }
}
