//! The values of rows, dimensions and answers.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// A value of a row, of a dimension, or of an answer.
///
/// There is no NaN and no infinity: what cannot be such a value is refused where it comes in. Null and
/// the empty text are two values. The order is null, numbers by worth, texts by their bytes, lists.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A whole number.
    Long(i64),
    /// A finite floating point number.
    Double(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// Several values of a dimension, or of a list that an answer has.
    List(Vec<Value<'a>>),
}

impl<'a> Value<'a> {
    /// A text that lives elsewhere.
    pub fn text(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }

    /// The value as JSON.
    ///
    /// ```
    /// use sapwood::rollup::Value;
    ///
    /// let tags = Value::List(vec![Value::text("oak"), Value::Null, Value::Long(7)]);
    /// assert_eq!(tags.to_json(), r#"["oak",null,7]"#);
    /// ```
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("every value is one of JSON")
    }

    /// Whether there is none.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The same value, borrowing nothing.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Long(value) => Value::Long(value),
            Value::Double(value) => Value::Double(value),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::List(values) => Value::List(values.into_iter().map(Value::into_owned).collect()),
        }
    }

    /// The same value, borrowed from this one.
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            Value::Null => Value::Null,
            Value::Long(value) => Value::Long(*value),
            Value::Double(value) => Value::Double(*value),
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            Value::List(values) => Value::List(values.iter().map(Value::borrowed).collect()),
        }
    }

    /// The whole number that this is or says: a fraction is cut off, as Druid does. `Ok(None)` of null
    /// and of the empty text.
    ///
    /// # Errors
    /// If it is no number, or beyond 64 bits.
    pub fn to_long(&self) -> Result<Option<i64>, NoNumber> {
        match self {
            Value::Null => Ok(None),
            Value::Long(value) => Ok(Some(*value)),
            Value::Double(value) => long_of(*value).map(Some).ok_or(NoNumber),
            Value::Text(text) => match text.trim() {
                "" => Ok(None),
                text => match text.parse::<i64>() {
                    Ok(value) => Ok(Some(value)),
                    Err(_) => {
                        let value = finite(text)?;
                        long_of(value).map(Some).ok_or(NoNumber)
                    }
                },
            },
            Value::List(_) => Err(NoNumber),
        }
    }

    /// The floating point number that this is or says. `Ok(None)` of null and of the empty text.
    ///
    /// # Errors
    /// If it is no number, or not a finite one.
    pub fn to_double(&self) -> Result<Option<f64>, NoNumber> {
        match self {
            Value::Null => Ok(None),
            Value::Long(value) => Ok(Some(*value as f64)),
            Value::Double(value) => Ok(Some(*value)),
            Value::Text(text) => match text.trim() {
                "" => Ok(None),
                text => finite(text).map(Some),
            },
            Value::List(_) => Err(NoNumber),
        }
    }

    /// The text that a dimension of texts has of it; `None` of null.
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Null => None,
            Value::Text(text) => Some(Cow::Borrowed(text)),
            other => Some(Cow::Owned(other.to_string())),
        }
    }

    /// Whether an expression takes it for true: a number that is not zero, the text `true`.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Null | Value::List(_) => false,
            Value::Long(value) => *value != 0,
            Value::Double(value) => *value != 0.0,
            Value::Text(text) => text.eq_ignore_ascii_case("true"),
        }
    }

    /// The order of values.
    pub fn compare(&self, other: &Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Long(left), Value::Long(right)) => left.cmp(right),
            (Value::Double(left), Value::Double(right)) => {
                canonical(*left).total_cmp(&canonical(*right))
            }
            (Value::Long(left), Value::Double(right)) => compare_mixed(*left, *right),
            (Value::Double(left), Value::Long(right)) => compare_mixed(*right, *left).reverse(),
            (Value::Text(left), Value::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Value::List(left), Value::List(right)) => {
                let pairs = left.iter().zip(right).map(|(left, right)| left.compare(right));
                pairs
                    .into_iter()
                    .find(|order| order.is_ne())
                    .unwrap_or(left.len().cmp(&right.len()))
            }
            (left, right) => left.kind().cmp(&right.kind()),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Long(_) | Value::Double(_) => 1,
            Value::Text(_) => 2,
            Value::List(_) => 3,
        }
    }

    /// The same for a sketch; `None` of null. Lists are pushed value by value.
    pub(crate) fn to_aggregate(&self) -> Option<sapwood_aggregate::Value<'_>> {
        match self {
            Value::Null | Value::List(_) => None,
            Value::Long(value) => Some((*value).into()),
            Value::Double(value) => sapwood_aggregate::Value::float(*value).ok(),
            Value::Text(text) => Some(sapwood_aggregate::Value::from(&**text)),
        }
    }
}

/// Negative zero is zero.
pub(crate) fn canonical(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

/// The whole number below a double's fraction, if 64 bits hold it.
pub(crate) fn long_of(value: f64) -> Option<i64> {
    let cut = value.trunc();
    (-TWO_TO_63..TWO_TO_63).contains(&cut).then_some(cut as i64)
}

const TWO_TO_63: f64 = (1_u64 << 63) as f64;

/// By worth, exactly.
fn compare_mixed(long: i64, double: f64) -> Ordering {
    match long_of(double) {
        None if double > 0.0 => Ordering::Less,
        None => Ordering::Greater,
        Some(cut) => {
            let rest = double - double.trunc();
            long.cmp(&cut).then_with(|| 0.0_f64.total_cmp(&canonical(rest)))
        }
    }
}

fn finite(text: &str) -> Result<f64, NoNumber> {
    let value: f64 = text.parse().map_err(|_| NoNumber)?;
    if value.is_finite() { Ok(canonical(value)) } else { Err(NoNumber) }
}

/// A value is no number of the type that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoNumber;

/// As a dimension of texts has it.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Long(value) => value.fmt(f),
            // A point or an exponent, so that it is read as a double.
            Value::Double(value) => write!(f, "{value:?}"),
            Value::Text(text) => f.write_str(text),
            Value::List(values) => {
                f.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Long(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::text(text)
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl serde::Serialize for Value<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Long(value) => serializer.serialize_i64(*value),
            Value::Double(value) => serializer.serialize_f64(*value),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(values) => serializer.collect_seq(values),
        }
    }
}

/// Numbers beyond 64 bits are doubles; truth values are the texts `true` and `false`, as a dimension
/// has them.
impl<'de> serde::Deserialize<'de> for Value<'static> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Value<'static>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null, a number, a text, or a list of them")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Value::Text(Cow::Borrowed(if value { "true" } else { "false" })))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Value::Long(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(value).map_or(Value::Double(value as f64), Value::Long))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
                match value.is_finite() {
                    true => Ok(Value::Double(canonical(value))),
                    false => Err(E::custom("a number is not finite")),
                }
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Value::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(Value::List(values))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_order() {
        let ascending = [
            Value::Null,
            Value::Double(-1e300),
            Value::Long(i64::MIN),
            Value::Double(-0.5),
            Value::Long(0),
            Value::Double(0.5),
            Value::Long((1 << 53) + 1),
            Value::Long(i64::MAX),
            Value::Double(TWO_TO_63),
            Value::text(""),
            Value::text("a"),
            Value::List(vec![Value::text("a")]),
            Value::List(vec![Value::text("a"), Value::Null]),
        ];
        for (left_at, left) in ascending.iter().enumerate() {
            for (right_at, right) in ascending.iter().enumerate() {
                assert_eq!(left.compare(right), left_at.cmp(&right_at), "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn numbers_of_equal_worth_are_equal() {
        for (double, long) in [(-1.0, -1), (0.0, 0), (-0.0, 0), (3.0, 3)] {
            let (double, long) = (Value::Double(double), Value::Long(long));
            assert!(double.compare(&long).is_eq() && long.compare(&double).is_eq(), "{double:?}");
        }
        assert!(Value::Double(-0.0).compare(&Value::Double(0.0)).is_eq());
    }

    #[test]
    fn texts_become_numbers_if_they_say_one() {
        assert_eq!(Value::text(" 12 ").to_long(), Ok(Some(12)));
        assert_eq!(Value::text("1.9").to_long(), Ok(Some(1)));
        assert_eq!(Value::text("-1.9e0").to_long(), Ok(Some(-1)));
        assert_eq!(Value::text("").to_long(), Ok(None));
        for no_number in ["x", "1e30", "NaN", "inf"] {
            assert_eq!(Value::text(no_number).to_long(), Err(NoNumber), "{no_number}");
        }
        assert_eq!(Value::text("1e30").to_double(), Ok(Some(1e30)));
        assert_eq!(Value::text("inf").to_double(), Err(NoNumber));
    }
}
