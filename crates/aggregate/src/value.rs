//! The values that are read from objects, compared and answered.
//!
//! A [`Value`] is one of four kinds. Numbers compare by what they are worth, whether whole or
//! floating point, exactly: no whole number is rounded for the comparison. There is no NaN: reading
//! one is a mismatch. Kinds have an order too (booleans, numbers, bytes), so that every set of
//! values has one least and one greatest element, whatever the order in which they arrived.

pub(crate) mod comparison;
mod convert;
pub(crate) mod exact;
pub(crate) mod float_sum;
pub(crate) mod number;
#[cfg(feature = "serde")]
mod serialize;
pub(crate) mod stored;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// A value of an object's field, of a group, or of an answer.
///
/// ```
/// use sapwood::aggregate::Value;
///
/// assert_eq!(Value::from(2), Value::float(2.0)?);
/// assert!(Value::from(i64::MAX) < Value::float(9.3e18)?);
/// assert!(Value::from("AA") < Value::from("UA"));
/// # Ok::<(), sapwood::aggregate::QueryError>(())
/// ```
#[derive(Clone)]
pub enum Value<'a> {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A floating point number, infinite perhaps, but never NaN.
    Float(Float),
    /// Bytes or text; text is its UTF-8 bytes.
    Bytes(Cow<'a, [u8]>),
}

/// A floating point number that is not NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Float(f64);

impl Float {
    /// `None` if `value` is NaN.
    pub fn new(value: f64) -> Option<Float> {
        (!value.is_nan()).then_some(Float(value))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Which of the kinds a value is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// True or false.
    Bool,
    /// Whole or floating point.
    Number,
    /// Bytes or text.
    Bytes,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bool => "a truth value",
            Kind::Number => "a number",
            Kind::Bytes => "a text",
        })
    }
}

impl Value<'_> {
    /// A floating point value.
    ///
    /// # Errors
    /// [`QueryError::Query`](crate::QueryError::Query) if `value` is NaN, which compares with nothing.
    pub fn float(value: f64) -> crate::Result<Value<'static>> {
        let refused =
            || crate::QueryError::Query("NaN is no value: it compares with nothing".into());
        Float::new(value).map(Value::Float).ok_or_else(refused)
    }

    /// Which kind this value is of.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) | Value::Float(_) => Kind::Number,
            Value::Bytes(_) => Kind::Bytes,
        }
    }

    /// The same value, borrowing nothing.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::Float(value) => Value::Float(value),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }

    /// The one form that equal values share: floats that are whole become whole numbers.
    pub(crate) fn canonical(self) -> Self {
        match self {
            Value::Float(Float(value)) => whole(value).map_or(self, Value::Int),
            other => other,
        }
    }

    /// A canonical number in the form that a field of floats reads.
    pub(crate) fn into_float(self) -> Self {
        match self {
            Value::Int(value) => Value::Float(Float(value as f64)),
            other => other,
        }
    }
}

/// The whole number that `value` is, if it is one of 128 bits.
fn whole(value: f64) -> Option<i128> {
    let in_range = (-TWO_TO_127..TWO_TO_127).contains(&value);
    (in_range && value.trunc() == value).then_some(value as i128)
}

/// The first float above every `i128`.
const TWO_TO_127: f64 = (1_u128 << 127) as f64;

/// By worth, exactly.
fn compare_mixed(int: i128, Float(float): Float) -> Ordering {
    if float >= TWO_TO_127 {
        return Ordering::Less;
    }
    if float < -TWO_TO_127 {
        return Ordering::Greater;
    }
    let truncated = float.trunc();
    let rest = float - truncated;
    let by_rest = || 0.0_f64.partial_cmp(&rest).expect("a finite number less its whole part");
    int.cmp(&(truncated as i128)).then_with(by_rest)
}

impl Ord for Value<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
            (Value::Int(left), Value::Int(right)) => left.cmp(right),
            (Value::Float(left), Value::Float(right)) => {
                left.0.partial_cmp(&right.0).expect("a Float is not NaN")
            }
            (Value::Int(left), Value::Float(right)) => compare_mixed(*left, *right),
            (Value::Float(left), Value::Int(right)) => compare_mixed(*right, *left).reverse(),
            (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
            (left, right) => left.kind().cmp(&right.kind()),
        }
    }
}

impl PartialOrd for Value<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value<'_> {}

macro_rules! from_int {
    ($($int:ty)*) => {$(
        impl From<$int> for Value<'_> {
            fn from(value: $int) -> Self {
                Value::Int(value.into())
            }
        }
    )*};
}
from_int!(u8 u16 u32 u64 i8 i16 i32 i64 i128);

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Bytes(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(Cow::Borrowed(bytes))
    }
}

/// The variant; text as text, other bytes in hexadecimal.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => f.debug_tuple("Bool").field(value).finish(),
            Value::Int(value) => f.debug_tuple("Int").field(value).finish(),
            Value::Float(Float(value)) => f.debug_tuple("Float").field(value).finish(),
            Value::Bytes(_) => write!(f, "Bytes({})", literal(self)),
        }
    }
}

/// For people: text as it is, other bytes in hexadecimal.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => value.fmt(f),
            Value::Int(value) => value.fmt(f),
            Value::Float(Float(value)) => value.fmt(f),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.chars().any(char::is_control) => f.pad(text),
                _ => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            },
        }
    }
}

/// Writes a value as the text forms of queries read it.
pub(crate) fn literal(value: &Value<'_>) -> String {
    match value {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => {
                format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
            _ => format!("x\"{value_hex}\"", value_hex = hex(bytes)),
        },
        // Debug writes a point or an exponent, so that a float is read as one.
        Value::Float(Float(value)) => format!("{value:?}"),
        other => other.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Over what squared differences are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// One less than the objects: they are a sample of more.
    Sample,
    /// The objects: they are all there are.
    Population,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f64) -> Value<'static> {
        Value::float(value).expect("not NaN")
    }

    #[test]
    fn numbers_compare_by_worth() {
        // Ascending; each differs from its neighbour by less than a float of that size can say.
        let ascending = [
            float(f64::NEG_INFINITY),
            float(-1e39),
            Value::Int(i128::MIN + 1),
            Value::Int(-1),
            float(-0.5),
            Value::Int(0),
            float(f64::MIN_POSITIVE),
            float(0.5),
            Value::Int((1 << 53) - 1),
            float((1_u64 << 53) as f64),
            Value::Int((1 << 53) + 1),
            Value::Int(i128::MAX),
            float(TWO_TO_127),
            float(f64::INFINITY),
        ];
        for (left_at, left) in ascending.iter().enumerate() {
            for (right_at, right) in ascending.iter().enumerate() {
                assert_eq!(left.cmp(right), left_at.cmp(&right_at), "{left} and {right}");
            }
        }
        assert_eq!(float(-0.0), Value::Int(0));
        assert_eq!(float(-TWO_TO_127), Value::Int(i128::MIN));
    }

    #[test]
    fn equal_values_have_one_form() {
        for (value, expected) in [
            (float(2.0), "Int(2)"),
            (float(-0.0), "Int(0)"),
            (float(-TWO_TO_127), "Int(-170141183460469231731687303715884105728)"),
            (float(TWO_TO_127), "Float(1.7014118346046923e38)"),
            (float(2.5), "Float(2.5)"),
        ] {
            assert_eq!(format!("{:?}", value.canonical()), expected);
        }
    }

    #[test]
    fn kinds_have_an_order_and_nan_is_none() {
        assert!(Value::from(true) < Value::from(-5) && Value::from(5) < Value::from(""));
        assert!(Value::float(f64::NAN).is_err());
    }

    #[test]
    fn text_prints_as_text_and_other_bytes_in_hexadecimal() {
        assert_eq!(Value::from("UA").to_string(), "UA");
        assert_eq!(Value::from(&[0, 255][..]).to_string(), "00ff");
        assert_eq!(literal(&Value::from("a\"b\\")), r#""a\"b\\""#);
        assert_eq!(format!("{:?}", Value::from("/p/0")), r#"Bytes("/p/0")"#);
        assert_eq!(format!("{:?}", Value::from(&[0, 255][..])), r#"Bytes(x"00ff")"#);
        assert_eq!(literal(&float(2.0)), "2.0");
    }
}
