//! The values of columns, outside of any table.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::{
    Precision, Type, date_of_text, date_to_text, decimal_of_text, decimal_to_text, rescale,
    timestamp_of_text, timestamp_to_text,
};

/// A value of a column.
///
/// Two values are equal if they are of one variant and have the same contents; floats are compared by
/// [`f64::total_cmp`], so that NaN equals itself.
///
/// ```
/// use sapwood::schema::{Type, Value};
///
/// let price: Type = "decimal(10,2)".parse()?;
/// let value = Value::of_text("7.5", &price).expect("a number");
/// assert_eq!(value, Value::Decimal { units: 750, scale: 2 });
/// assert_eq!(value.to_string(), "7.50");
/// # Ok::<(), sapwood::schema::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number of up to 128 bits with a sign.
    Int(i128),
    /// A whole number beyond those: above [`i128::MAX`], so that no number has two forms. [`Value::from`] picks the form.
    Huge(u128),
    /// A floating point number.
    Float(f64),
    /// An exact number: units of a power of ten.
    Decimal {
        /// The digits, without the point.
        units: i128,
        /// How many of them stand behind the point.
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date(i32),
    /// A moment in UTC.
    Timestamp {
        /// Units since 1970-01-01.
        ticks: i64,
        /// The unit.
        precision: Precision,
    },
    /// UTF-8.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// Items of one type.
    Array(Vec<Value<'a>>),
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Huge(left), Value::Huge(right)) => left == right,
            (Value::Float(left), Value::Float(right)) => left.total_cmp(right).is_eq(),
            (
                Value::Decimal { units, scale },
                Value::Decimal { units: other_units, scale: other_scale },
            ) => (units, scale) == (other_units, other_scale),
            (Value::Date(left), Value::Date(right)) => left == right,
            (
                Value::Timestamp { ticks, precision },
                Value::Timestamp { ticks: other_ticks, precision: other_precision },
            ) => (ticks, precision) == (other_ticks, other_precision),
            (Value::Text(left), Value::Text(right)) => left == right,
            (Value::Bytes(left), Value::Bytes(right)) => left == right,
            (Value::Array(left), Value::Array(right)) => left == right,
            _ => false,
        }
    }
}

impl Eq for Value<'_> {}

impl<'a> Value<'a> {
    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value::Text(text.into())
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The same value, borrowing nothing.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::Huge(value) => Value::Huge(value),
            Value::Float(value) => Value::Float(value),
            Value::Decimal { units, scale } => Value::Decimal { units, scale },
            Value::Date(days) => Value::Date(days),
            Value::Timestamp { ticks, precision } => Value::Timestamp { ticks, precision },
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Value::Array(items) => Value::Array(items.into_iter().map(Value::into_owned).collect()),
        }
    }

    /// Reads a text as a value of a type.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_text(text: &'a str, wanted: &Type) -> Result<Value<'a>, String> {
        let refused = || format!("`{}` is no {wanted}", text.escape_debug());
        let value = match wanted {
            Type::Bool => match text {
                "true" | "TRUE" | "True" | "t" => Value::Bool(true),
                "false" | "FALSE" | "False" | "f" => Value::Bool(false),
                _ => return Err(refused()),
            },
            Type::Int(_) | Type::UInt(_) => {
                whole_of_text(text).ok_or_else(refused)?.to_type(wanted)?
            }
            Type::F32 => Value::Float(f32_of_text(text).ok_or_else(refused)?.into()),
            Type::F64 => Value::Float(float_of_text(text).ok_or_else(refused)?),
            Type::Decimal { .. } => {
                let (units, scale) = decimal_of_text(text).ok_or_else(refused)?;
                Value::Decimal { units, scale }.to_type(wanted)?
            }
            Type::Date => Value::Date(date_of_text(text).ok_or_else(refused)?),
            Type::Timestamp(precision) => Value::Timestamp {
                ticks: timestamp_of_text(text, *precision).ok_or_else(refused)?,
                precision: *precision,
            },
            Type::Text => Value::Text(Cow::Borrowed(text)),
            Type::Bytes => Value::Bytes(Cow::Owned(bytes_of_text(text).ok_or_else(refused)?)),
            Type::Array(item, _) => {
                let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                let items = inner.ok_or_else(refused)?.split(',').map(str::trim);
                let items = items.map(|text| Value::of_text(text, item));
                Value::Array(items.collect::<Result<_, _>>()?).to_type(wanted)?
            }
        };
        Ok(value)
    }

    /// The value as one of a column's type, if nothing of it is lost: 7 as `f64` is 7.0, 7.50 as
    /// `decimal(10,1)` is 7.5, a date as a timestamp its midnight. Text stays text.
    ///
    /// # Errors
    /// What is lost, or that the type has no such values.
    pub fn to_type(self, wanted: &Type) -> Result<Value<'a>, String> {
        let refused = |value: &Value<'_>| format!("{} is no {wanted}", shown(value));
        let value = match (self, wanted) {
            (Value::Null, _) => Value::Null,
            (value @ Value::Bool(_), Type::Bool)
            | (value @ Value::Text(_), Type::Text)
            | (value @ Value::Date(_), Type::Date)
            | (value @ Value::Bytes(_), Type::Bytes) => value,
            (Value::Text(text), Type::Bytes) => Value::Bytes(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
            (Value::Int(value), Type::Int(bits)) => {
                let limit = 1_i128.checked_shl(u32::from(*bits) - 1).unwrap_or(i128::MIN);
                match *bits == 128 || (-limit..limit).contains(&value) {
                    true => Value::Int(value),
                    false => return Err(format!("{value} does not fit into {wanted}")),
                }
            }
            (Value::Int(value), Type::UInt(bits)) => {
                let limit = 1_i128.checked_shl(u32::from(*bits));
                match value >= 0 && limit.is_none_or(|limit| value < limit) {
                    true => Value::Int(value),
                    false => return Err(format!("{value} does not fit into {wanted}")),
                }
            }
            (Value::Huge(value), Type::UInt(128)) => Value::Huge(value),
            (Value::Huge(value), Type::Int(_) | Type::UInt(_) | Type::Decimal { .. }) => {
                return Err(format!("{value} does not fit into {wanted}"));
            }
            (Value::Decimal { units, scale }, Type::Int(_) | Type::UInt(_)) => {
                let value = Value::Decimal { units, scale };
                match exactly(units, scale, 0) {
                    Some(whole) => return Value::Int(whole).to_type(wanted),
                    None => return Err(refused(&value)),
                }
            }
            (Value::Float(value), Type::Int(_) | Type::UInt(_)) => {
                // All floats below 2^127 are whole numbers of 128 bits, if they are whole; and so are those below 2^128
                // without a sign.
                match value.trunc() == value {
                    true if value.abs() < 2_f64.powi(127) => {
                        return Value::Int(value as i128).to_type(wanted);
                    }
                    true if value > 0.0 && value < 2_f64.powi(128) => {
                        return Value::from(value as u128).to_type(wanted);
                    }
                    _ => return Err(refused(&Value::Float(value))),
                }
            }
            (Value::Float(value), Type::F64) => Value::Float(value),
            (Value::Float(value), Type::F32) => {
                let nearest = value as f32;
                if nearest.is_infinite() && value.is_finite() {
                    return Err(format!("{} does not fit into {wanted}", Value::Float(value)));
                }
                Value::Float(nearest.into())
            }
            (Value::Int(value), Type::F32) => Value::Float((value as f32).into()),
            (Value::Int(value), Type::F64) => Value::Float(value as f64),
            (Value::Huge(value), Type::F32 | Type::F64) => {
                return Value::Float(value as f64).to_type(wanted);
            }
            (Value::Decimal { units, scale }, Type::F32) => {
                let text = Value::Decimal { units, scale }.to_string();
                return Value::of_text(&text, wanted).map(Value::into_owned);
            }
            (Value::Decimal { units, scale }, Type::F64) => {
                Value::Float(decimal_to_float(units, scale))
            }
            (Value::Int(value), Type::Decimal { .. }) => {
                return Value::Decimal { units: value, scale: 0 }.to_type(wanted);
            }
            (Value::Decimal { units, scale }, Type::Decimal { digits, scale: to }) => {
                let limit = crate::POWERS_OF_TEN[usize::from(*digits)];
                match exactly(units, scale, *to) {
                    Some(units) if units.abs() < limit => Value::Decimal { units, scale: *to },
                    _ => {
                        let value = Value::Decimal { units, scale };
                        return Err(format!("{value} does not fit into {wanted}"));
                    }
                }
            }
            (Value::Float(value), Type::Decimal { .. }) => {
                // The digits that people see, not those of the power of two beneath.
                let text = format!("{value}");
                let (units, scale) =
                    decimal_of_text(&text).ok_or_else(|| refused(&Value::Float(value)))?;
                return Value::Decimal { units, scale }.to_type(wanted);
            }
            (Value::Timestamp { ticks, precision }, Type::Timestamp(to)) => {
                match convert_ticks(ticks, precision, *to) {
                    Some(ticks) => Value::Timestamp { ticks, precision: *to },
                    None => return Err(refused(&Value::Timestamp { ticks, precision })),
                }
            }
            (Value::Date(days), Type::Timestamp(to)) => {
                let ticks = i128::from(days) * 86_400 * i128::from(to.ticks());
                match i64::try_from(ticks) {
                    Ok(ticks) => Value::Timestamp { ticks, precision: *to },
                    Err(_) => return Err(refused(&Value::Date(days))),
                }
            }
            (Value::Array(items), Type::Array(item, len)) => {
                if items.len() != usize::from(*len) {
                    return Err(format!("{} items are no {wanted}", items.len()));
                }
                let items = items.into_iter().map(|value| match value {
                    Value::Null => Err("an array has no nulls inside".to_owned()),
                    value => value.to_type(item),
                });
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            (value, _) => return Err(refused(&value)),
        };
        Ok(value)
    }

    /// The value as a column of this type shows it: a float of 32 bits is the double of the fewest digits that stand for it.
    ///
    /// ```
    /// use sapwood::schema::{Type, Value};
    ///
    /// let value = Value::from(1.023_f32);
    /// assert_eq!(value.to_string(), "1.0230000019073486");
    /// assert_eq!(value.shown_as(&Type::F32).to_string(), "1.023");
    /// ```
    #[must_use]
    pub fn shown_as(self, kind: &Type) -> Value<'a> {
        match (self, kind) {
            (Value::Float(value), Type::F32) => {
                let digits = (value as f32).to_string();
                Value::Float(digits.parse().expect("a float is written as it is read"))
            }
            (Value::Array(items), Type::Array(item, _)) if **item == Type::F32 => {
                Value::Array(items.into_iter().map(|value| value.shown_as(item)).collect())
            }
            (value, _) => value,
        }
    }
}

/// The units of another scale, if no digit is lost.
fn exactly(units: i128, from: u8, to: u8) -> Option<i128> {
    let there = rescale(units, from, to)?;
    (rescale(there, to, from) == Some(units)).then_some(there)
}

/// The float that is nearest to a decimal.
pub(crate) fn decimal_to_float(units: i128, scale: u8) -> f64 {
    // Both are exact up to here, and a division rounds once.
    if units.unsigned_abs() < 1 << 53 && scale <= 22 {
        return units as f64 / 10_f64.powi(i32::from(scale));
    }
    let mut text = String::new();
    decimal_to_text(units, scale, &mut text);
    text.parse().expect("a decimal is a number")
}

/// The same moment in another unit, if it has it.
fn convert_ticks(ticks: i64, from: Precision, to: Precision) -> Option<i64> {
    if to >= from {
        return ticks.checked_mul(to.ticks() / from.ticks());
    }
    let unit = from.ticks() / to.ticks();
    (ticks % unit == 0).then_some(ticks / unit)
}

/// Reads a whole number of up to 128 bits.
fn whole_of_text(text: &str) -> Option<Value<'static>> {
    match text.parse() {
        Ok(number) => Some(Value::Int(number)),
        Err(_) => text.parse::<u128>().ok().map(Value::from),
    }
}

/// Reads a float as people write it; `inf` and `nan` are such, `infinity1` is not.
pub(crate) fn float_of_text(text: &str) -> Option<f64> {
    match text.as_bytes().first()? {
        b'0'..=b'9' | b'-' | b'+' | b'.' | b'n' | b'N' | b'i' | b'I' => text.parse().ok(),
        _ => None,
    }
}

/// Reads a float of 32 bits, rounded once; none if it is beyond them.
fn f32_of_text(text: &str) -> Option<f32> {
    let wide = float_of_text(text)?;
    let nearest = text.parse::<f32>().ok()?;
    (nearest.is_finite() || !wide.is_finite()).then_some(nearest)
}

/// Reads bytes as they are shown: printable ASCII is itself, `\xE2` a byte, `\\` a backslash.
fn bytes_of_text(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next()? {
            b'\\' => out.push(b'\\'),
            b'x' => {
                let mut digit = || (bytes.next()? as char).to_digit(16);
                out.push((digit()? * 16 + digit()?) as u8);
            }
            _ => return None,
        }
    }
    Some(out)
}

/// Writes bytes as [`Value::of_text`] reads them.
fn write_bytes(bytes: &[u8], out: &mut impl Write) -> fmt::Result {
    for &byte in bytes {
        match byte {
            b'\\' => out.write_str("\\\\")?,
            b' '..=b'~' => out.write_char(byte as char)?,
            _ => write!(out, "\\x{byte:02X}")?,
        }
    }
    Ok(())
}

/// As messages show it: text in quotes.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => format!("text '{}'", text.escape_debug()),
        other => other.to_string(),
    }
}

/// As [`Value::of_text`] reads it; null is `null`, floats that are whole have no point.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        match self {
            Value::Null => text.push_str("null"),
            Value::Bool(value) => return value.fmt(f),
            Value::Int(value) => return value.fmt(f),
            Value::Huge(value) => return value.fmt(f),
            Value::Float(value) => return write_float(*value, f),
            Value::Decimal { units, scale } => decimal_to_text(*units, *scale, &mut text),
            Value::Date(days) => date_to_text(*days, &mut text),
            Value::Timestamp { ticks, precision } => {
                timestamp_to_text(*ticks, *precision, &mut text);
            }
            Value::Text(value) => return f.pad(value),
            Value::Bytes(bytes) => write_bytes(bytes, &mut text)?,
            Value::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    item.fmt(f)?;
                }
                return f.write_str("]");
            }
        }
        f.pad(&text)
    }
}

/// With an exponent where digits alone would be long.
fn write_float(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = value.abs();
    if size.is_finite() && size != 0.0 && !(1e-5..1e17).contains(&size) {
        write!(f, "{value:e}")
    } else {
        write!(f, "{value}")
    }
}

macro_rules! of_ints {
    ($($int:ty)*) => {$(
        impl From<$int> for Value<'_> {
            fn from(value: $int) -> Self {
                Value::Int(value.into())
            }
        }
    )*};
}
of_ints!(i8 i16 i32 i64 i128 u8 u16 u32 u64);

impl From<u128> for Value<'_> {
    fn from(value: u128) -> Self {
        i128::try_from(value).map_or(Value::Huge(value), Value::Int)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl From<f32> for Value<'_> {
    fn from(value: f32) -> Self {
        Value::Float(value.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a, V: Into<Value<'a>>> From<Option<V>> for Value<'a> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, wanted: &str) -> Result<String, String> {
        let wanted: Type = wanted.parse().expect("a type");
        Value::of_text(text, &wanted).map(|value| value.to_string())
    }

    #[test]
    fn texts_are_values_of_each_type() {
        for (text, wanted, shown) in [
            ("true", "bool", "true"),
            ("-128", "i8", "-128"),
            (
                "170141183460469231731687303715884105727",
                "i128",
                "170141183460469231731687303715884105727",
            ),
            ("18446744073709551615", "u64", "18446744073709551615"),
            ("7", "u128", "7"),
            (
                "340282366920938463463374607431768211455",
                "u128",
                "340282366920938463463374607431768211455",
            ),
            ("1e3", "f64", "1000"),
            ("1e-7", "f64", "1e-7"),
            ("1.023", "f32", "1.0230000019073486"),
            ("inf", "f32", "inf"),
            // Halves of what a float has: the nearest double is one, and the text is more.
            ("16777217", "f32", "16777216"),
            ("16777217.0000000001", "f32", "16777218"),
            ("nan", "f64", "NaN"),
            ("7.5", "decimal(10,2)", "7.50"),
            ("2013-01-01", "date", "2013-01-01"),
            ("2013-01-01T10:00:00Z", "timestamp", "2013-01-01 10:00:00"),
            ("a b", "text", "a b"),
            (r"a\x00\\", "bytes", r"a\x00\\"),
            ("[1, 2,3]", "[u8; 3]", "[1, 2, 3]"),
        ] {
            assert_eq!(of(text, wanted).as_deref(), Ok(shown), "{text} as {wanted}");
        }
        for (text, wanted) in [
            ("yes", "bool"),
            ("128", "i8"),
            ("-1", "u8"),
            ("-1", "u128"),
            ("340282366920938463463374607431768211456", "u128"),
            ("170141183460469231731687303715884105728", "i128"),
            ("170141183460469231731687303715884105728", "decimal(38,0)"),
            ("1.5", "i32"),
            ("", "i32"),
            ("x", "f64"),
            ("1e39", "f32"),
            ("", "f32"),
            ("7.555", "decimal(10,2)"),
            ("123", "decimal(2,0)"),
            ("2013-02-30", "date"),
            ("now", "timestamp"),
            (r"\q", "bytes"),
            ("[1]", "[u8; 3]"),
            ("1,2,3", "[u8; 3]"),
        ] {
            assert!(of(text, wanted).is_err(), "{text} as {wanted}");
        }
    }

    #[test]
    fn values_change_their_type_where_nothing_is_lost() {
        let to = |value: Value<'static>, wanted: &str| {
            value.to_type(&wanted.parse().expect("a type")).map(|value| value.to_string())
        };
        assert_eq!(to(Value::Int(7), "f64").as_deref(), Ok("7"));
        assert_eq!(to(Value::Int(7), "decimal(3,2)").as_deref(), Ok("7.00"));
        let more = Value::Decimal { units: 167_772_170_000_000_001, scale: 10 };
        assert_eq!(to(more, "f32").as_deref(), Ok("16777218"));
        assert_eq!(
            to(Value::Int((1 << 60) + (1 << 36) + 1), "f32"),
            Ok("1.1529216420458004e18".into())
        );
        assert!(to(Value::Float(1e39), "f32").is_err());
        assert!(to(Value::Int(70), "decimal(3,2)").is_err());
        let huge = 1 << 127;
        assert_eq!(Value::from(huge), Value::Huge(huge));
        assert_eq!(Value::from(huge - 1), Value::Int(i128::MAX));
        assert_eq!(to(Value::Huge(huge), "f64").as_deref(), Ok("1.7014118346046923e38"));
        assert_eq!(to(Value::Float(2_f64.powi(127)), "u128"), Ok(huge.to_string()));
        assert!(to(Value::Float(2_f64.powi(127)), "i128").is_err());
        assert!(to(Value::Float(2_f64.powi(128)), "u128").is_err());
        assert!(to(Value::Huge(huge), "i128").is_err() && to(Value::Int(-1), "u128").is_err());
        assert_eq!(to(Value::Float(7.0), "u8").as_deref(), Ok("7"));
        assert!(to(Value::Float(7.5), "u8").is_err() && to(Value::Float(f64::NAN), "u8").is_err());
        assert_eq!(to(Value::Float(0.1), "decimal(3,2)").as_deref(), Ok("0.10"));
        assert_eq!(to(Value::Date(1), "timestamp(s)").as_deref(), Ok("1970-01-02 00:00:00"));
        assert!(
            to(Value::Timestamp { ticks: 1, precision: Precision::Nanos }, "timestamp").is_err()
        );
        assert!(to(Value::text("7"), "i32").is_err());
        assert!(to(Value::Null, "i32").is_ok());
    }

    #[test]
    fn decimals_are_the_nearest_floats() {
        assert_eq!(decimal_to_float(1, 1), 0.1);
        assert_eq!(decimal_to_float(i128::MAX / 10, 30), 17_014_118.346_046_925);
    }
}
