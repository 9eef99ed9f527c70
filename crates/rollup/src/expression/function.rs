//! Functions: their names, how many arguments they take, what they give.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::Node;
use crate::time::granularity::Granularity;
use crate::value::{Value, canonical, long_of};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Function {
    If,
    Nvl,
    IsNull,
    NotNull,
    /// Of one number.
    Figure(Figure),
    Pow,
    Extreme(Ordering),
    Concat,
    Lower,
    Upper,
    Trim,
    Strlen,
    Substring,
    Replace,
    Contains,
    Cast(Cast),
    Floor(Granularity),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Abs,
    Ceil,
    Floor,
    Round,
    Sqrt,
    Exp,
    Log,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cast {
    Long,
    Double,
    String,
}

const NAMES: [(&str, Function, usize, usize); 20] = [
    ("if", Function::If, 3, 3),
    ("nvl", Function::Nvl, 1, usize::MAX),
    ("coalesce", Function::Nvl, 1, usize::MAX),
    ("isnull", Function::IsNull, 1, 1),
    ("notnull", Function::NotNull, 1, 1),
    ("abs", Function::Figure(Figure::Abs), 1, 1),
    ("ceil", Function::Figure(Figure::Ceil), 1, 1),
    ("floor", Function::Figure(Figure::Floor), 1, 1),
    ("round", Function::Figure(Figure::Round), 1, 1),
    ("sqrt", Function::Figure(Figure::Sqrt), 1, 1),
    ("exp", Function::Figure(Figure::Exp), 1, 1),
    ("log", Function::Figure(Figure::Log), 1, 1),
    ("pow", Function::Pow, 2, 2),
    ("least", Function::Extreme(Ordering::Less), 1, usize::MAX),
    ("greatest", Function::Extreme(Ordering::Greater), 1, usize::MAX),
    ("concat", Function::Concat, 1, usize::MAX),
    ("lower", Function::Lower, 1, 1),
    ("upper", Function::Upper, 1, 1),
    ("trim", Function::Trim, 1, 1),
    ("strlen", Function::Strlen, 1, 1),
];

/// Those with more to them.
const MORE: [(&str, usize, usize); 5] = [
    ("substring", 2, 3),
    ("replace", 3, 3),
    ("contains", 2, 2),
    ("cast", 2, 2),
    ("timestamp_floor", 2, 3),
];

impl Function {
    pub(super) fn resolve(name: &str, arguments: &[Node]) -> Result<Function, String> {
        let lower = name.to_ascii_lowercase();
        let simple = NAMES.iter().find(|(known, ..)| *known == lower);
        let more = MORE.iter().find(|(known, ..)| *known == lower);
        let (least, most) = match (simple, more) {
            (Some((.., least, most)), _) | (_, Some((_, least, most))) => (*least, *most),
            (None, None) => {
                let known = NAMES.iter().map(|(known, ..)| *known);
                let known: Vec<_> = known.chain(MORE.iter().map(|(known, ..)| *known)).collect();
                return Err(format!(
                    "there is no function `{name}`; there are {}",
                    known.join(", ")
                ));
            }
        };
        if !(least..=most).contains(&arguments.len()) {
            let wanted = match most {
                usize::MAX => format!("{least} or more"),
                most if most == least => least.to_string(),
                most => format!("{least} to {most}"),
            };
            return Err(format!("`{name}` takes {wanted} arguments, not {}", arguments.len()));
        }
        if let Some((_, function, ..)) = simple {
            return Ok(function.clone());
        }
        let constant = |at: usize, what: &str| match arguments.get(at) {
            Some(Node::Constant(Value::Text(text))) => Ok(text.clone().into_owned()),
            _ => Err(format!("`{name}` takes {what} as a text in quotes")),
        };
        Ok(match lower.as_str() {
            "substring" => Function::Substring,
            "replace" => Function::Replace,
            "contains" => Function::Contains,
            "cast" => match constant(1, "a type")?.to_ascii_uppercase().as_str() {
                "LONG" => Function::Cast(Cast::Long),
                "DOUBLE" => Function::Cast(Cast::Double),
                "STRING" => Function::Cast(Cast::String),
                other => return Err(format!("no type `{other}`: say LONG, DOUBLE or STRING")),
            },
            _ => {
                let mut granularity = Granularity::parse(&constant(1, "a period")?);
                if arguments.len() == 3 {
                    let zone = constant(2, "a time zone")?;
                    granularity = granularity.and_then(|granularity| granularity.in_zone(&zone));
                }
                Function::Floor(granularity.map_err(|error| error.to_string())?)
            }
        })
    }

    /// Its value; `if` and `nvl` are evaluated before, since they need not all arguments.
    pub(super) fn call<'r>(&self, mut values: Vec<Value<'r>>) -> Result<Value<'r>, String> {
        let any_null = values.iter().any(Value::is_null);
        let first = std::mem::replace(&mut values[0], Value::Null);
        let rest = &values[1..];
        Ok(match self {
            Function::If | Function::Nvl => unreachable!("the evaluation chooses"),
            Function::IsNull => Value::Long(first.is_null().into()),
            Function::NotNull => Value::Long((!first.is_null()).into()),
            Function::Extreme(wanted) => {
                let all = std::iter::once(first).chain(rest.iter().cloned());
                let known = all.filter(|value| !value.is_null());
                let best = known.reduce(
                    |best, next| {
                        if next.compare(&best) == *wanted { next } else { best }
                    },
                );
                best.unwrap_or(Value::Null)
            }
            _ if any_null => Value::Null,
            Function::Figure(figure) => figure.of(&first)?,
            Function::Pow => {
                let (base, exponent) = (double(&first)?, double(&rest[0])?);
                finite(base.powf(exponent))
            }
            Function::Concat => {
                let mut text = plain(&first).into_owned();
                rest.iter().for_each(|value| text.push_str(&plain(value)));
                text.into()
            }
            Function::Lower => plain(&first).to_lowercase().into(),
            Function::Upper => plain(&first).to_uppercase().into(),
            Function::Trim => plain(&first).trim().to_owned().into(),
            Function::Strlen => Value::Long(plain(&first).chars().count() as i64),
            Function::Substring => {
                let from = whole(&rest[0])?;
                let len = rest.get(1).map(whole).transpose()?.unwrap_or(i64::MAX);
                let skipped = usize::try_from(from).map_err(|_| "a text begins at 0".to_owned())?;
                let taken = usize::try_from(len).unwrap_or(usize::MAX);
                plain(&first).chars().skip(skipped).take(taken).collect::<String>().into()
            }
            Function::Replace => {
                let (this, that) = (plain(&rest[0]), plain(&rest[1]));
                plain(&first).replace(&*this, &that).into()
            }
            Function::Contains => Value::Long(plain(&first).contains(&*plain(&rest[0])).into()),
            Function::Cast(Cast::Long) => match first.to_long() {
                Ok(Some(number)) => Value::Long(number),
                _ => Value::Null,
            },
            Function::Cast(Cast::Double) => match first.to_double() {
                Ok(Some(number)) => Value::Double(number),
                _ => Value::Null,
            },
            Function::Cast(Cast::String) => plain(&first).into_owned().into(),
            Function::Floor(granularity) => Value::Long(granularity.bucket(whole(&first)?).0),
        })
    }
}

impl Figure {
    fn of(self, value: &Value<'_>) -> Result<Value<'static>, String> {
        if let Value::Long(number) = value {
            match self {
                Figure::Abs => {
                    let abs = number.checked_abs().ok_or("the figure is beyond 64 bits")?;
                    return Ok(Value::Long(abs));
                }
                Figure::Ceil | Figure::Floor | Figure::Round => return Ok(Value::Long(*number)),
                Figure::Sqrt | Figure::Exp | Figure::Log => {}
            }
        }
        let number = double(value)?;
        let rounded = match self {
            Figure::Abs => return Ok(finite(number.abs())),
            Figure::Sqrt => return Ok(finite(number.sqrt())),
            Figure::Exp => return Ok(finite(number.exp())),
            Figure::Log => return Ok(finite(number.ln())),
            Figure::Ceil => number.ceil(),
            Figure::Floor => number.floor(),
            Figure::Round => number.round(),
        };
        Ok(long_of(rounded).map_or(Value::Double(rounded), Value::Long))
    }
}

fn plain<'v>(value: &'v Value<'_>) -> Cow<'v, str> {
    value.to_text().unwrap_or_default()
}

pub(super) fn double(value: &Value<'_>) -> Result<f64, String> {
    match value.to_double() {
        Ok(Some(number)) => Ok(number),
        _ => Err(format!("`{value}` is no number")),
    }
}

fn whole(value: &Value<'_>) -> Result<i64, String> {
    match value.to_long() {
        Ok(Some(number)) => Ok(number),
        _ => Err(format!("`{value}` is no whole number")),
    }
}

/// Null for what is no finite number.
pub(super) fn finite(number: f64) -> Value<'static> {
    if number.is_finite() { Value::Double(canonical(number)) } else { Value::Null }
}
