//! The types of columns.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Digits that a decimal has at most.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// Items that an array has at most.
pub(crate) const ITEMS_MAX: u16 = 4_096;

/// The type of a column.
///
/// | text form | values | bytes |
/// |---|---|---|
/// | `bool` | true or false | 1 |
/// | `i8` `i16` `i32` `i64` `i128`, `u8` `u16` `u32` `u64` `u128` | whole numbers | 1 to 16 |
/// | `f32` `f64` | floating point numbers, also infinite or NaN | 4, 8 |
/// | `decimal(10,2)` | exact numbers: of 10 digits, 2 of them behind the point | 8; 16 from 19 digits on |
/// | `date` | a day | 4 |
/// | `timestamp(us)` | a moment (UTC), counted in `s`, `ms`, `us` (the one that `timestamp` means) or `ns` since 1970 | 8 |
/// | `text` | UTF-8 of any length | its own |
/// | `bytes` | bytes of any length | their own |
/// | `[f32; 8]` | so many values of a type of fixed width | theirs |
///
/// ```
/// use sapwood::schema::Type;
///
/// let price: Type = "decimal(10, 2)".parse()?;
/// assert_eq!(price, Type::Decimal { digits: 10, scale: 2 });
/// assert_eq!("[f32; 8]".parse::<Type>()?.width(), Some(32));
/// assert!("integer".parse::<Type>().is_err());
/// # Ok::<(), sapwood::schema::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// True or false.
    Bool,
    /// A signed whole number of 8, 16, 32, 64 or 128 bits.
    Int(u8),
    /// An unsigned whole number of 8, 16, 32, 64 or 128 bits.
    UInt(u8),
    /// A floating point number of 32 bits.
    F32,
    /// A floating point number of 64 bits.
    F64,
    /// An exact number: so many digits, `scale` of them behind the point.
    Decimal {
        /// All digits, at most [`DECIMAL_DIGITS_MAX`].
        digits: u8,
        /// Those behind the point.
        scale: u8,
    },
    /// A day.
    Date,
    /// A moment in UTC.
    Timestamp(Precision),
    /// UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// So many items of a type of fixed width.
    Array(Box<Type>, u16),
}

/// The unit in which timestamps count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// Seconds.
    Seconds,
    /// Thousandths of a second.
    Millis,
    /// Millionths of a second.
    Micros,
    /// Billionths of a second.
    Nanos,
}

impl Precision {
    /// The units in a second.
    pub const fn ticks(self) -> i64 {
        match self {
            Precision::Seconds => 1,
            Precision::Millis => 1_000,
            Precision::Micros => 1_000_000,
            Precision::Nanos => 1_000_000_000,
        }
    }

    /// The digits of a second's fraction.
    pub const fn digits(self) -> usize {
        match self {
            Precision::Seconds => 0,
            Precision::Millis => 3,
            Precision::Micros => 6,
            Precision::Nanos => 9,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Precision::Seconds => "s",
            Precision::Millis => "ms",
            Precision::Micros => "us",
            Precision::Nanos => "ns",
        }
    }
}

impl Type {
    /// The bytes of a value in a row; `None` if each value has its own length.
    pub fn width(&self) -> Option<usize> {
        Some(match self {
            Type::Bool => 1,
            Type::Int(bits) | Type::UInt(bits) => usize::from(*bits) / 8,
            Type::F32 | Type::Date => 4,
            Type::F64 | Type::Timestamp(_) => 8,
            Type::Decimal { digits, .. } => {
                if *digits <= 18 {
                    8
                } else {
                    16
                }
            }
            Type::Array(item, len) => item.width()? * usize::from(*len),
            Type::Text | Type::Bytes => return None,
        })
    }

    /// Whether its values are numbers.
    pub fn is_number(&self) -> bool {
        matches!(self, Type::Int(_) | Type::UInt(_) | Type::F32 | Type::F64 | Type::Decimal { .. })
    }

    /// Whether another type has all values of this one, and more, as values of the same kind: whole numbers with more
    /// bits, also signed ones for unsigned ones; `f64` for `f32`; decimals with more digits and the same scale.
    ///
    /// ```
    /// use sapwood::schema::Type;
    ///
    /// assert!(Type::UInt(16).widens_to(&Type::Int(32)));
    /// assert!(!Type::UInt(32).widens_to(&Type::Int(32)));
    /// assert!(!Type::UInt(128).widens_to(&Type::Int(128)));
    /// assert!(!Type::Int(32).widens_to(&Type::F64));
    /// ```
    pub fn widens_to(&self, wider: &Type) -> bool {
        match (self, wider) {
            (Type::Int(bits), Type::Int(more))
            | (Type::UInt(bits), Type::UInt(more) | Type::Int(more)) => bits < more,
            (Type::F32, Type::F64) => true,
            (
                Type::Decimal { digits, scale },
                Type::Decimal { digits: more, scale: same_scale },
            ) => scale == same_scale && digits < more,
            _ => false,
        }
    }

    /// Whether the type is one that can be stored.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Type::Int(8 | 16 | 32 | 64 | 128) | Type::UInt(8 | 16 | 32 | 64 | 128) => Ok(()),
            Type::Int(bits) | Type::UInt(bits) => {
                Err(format!("no whole number has {bits} bits: 8, 16, 32, 64 and 128"))
            }
            Type::Decimal { digits, .. } if !(1..=DECIMAL_DIGITS_MAX).contains(digits) => {
                Err(format!("a decimal has 1 to {DECIMAL_DIGITS_MAX} digits"))
            }
            Type::Decimal { digits, scale } if scale > digits => {
                Err("a decimal has no more digits behind the point than in all".to_owned())
            }
            Type::Array(_, len) if !(1..=ITEMS_MAX).contains(len) => {
                Err(format!("an array has 1 to {ITEMS_MAX} items"))
            }
            Type::Array(item, _) if matches!(**item, Type::Array(..)) => {
                Err("the items of an array are no arrays".to_owned())
            }
            Type::Array(item, _) if item.width().is_none() => {
                Err(format!("the items of an array have a fixed width, and {item} has none"))
            }
            Type::Array(item, _) => item.check(),
            _ => Ok(()),
        }
    }
}

/// In the form that is read.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int(bits) => write!(f, "i{bits}"),
            Type::UInt(bits) => write!(f, "u{bits}"),
            Type::F32 => f.write_str("f32"),
            Type::F64 => f.write_str("f64"),
            Type::Decimal { digits, scale } => write!(f, "decimal({digits},{scale})"),
            Type::Date => f.write_str("date"),
            Type::Timestamp(precision) => write!(f, "timestamp({})", precision.word()),
            Type::Text => f.write_str("text"),
            Type::Bytes => f.write_str("bytes"),
            Type::Array(item, len) => write!(f, "[{item}; {len}]"),
        }
    }
}

impl FromStr for Type {
    type Err = Error;

    fn from_str(text: &str) -> Result<Type, Error> {
        of_text(text.trim())
            .and_then(|found| found.check().map(|()| found))
            .map_err(|what| Error::Syntax { offset: 0, what })
    }
}

fn of_text(text: &str) -> Result<Type, String> {
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or("`]` is expected behind an array")?;
        let (item, len) =
            inner.rsplit_once(';').ok_or("an array is written as [f32; 8]: `;` is expected")?;
        let len = len.trim().parse().map_err(|_| {
            format!("the number of items, 1 to {ITEMS_MAX}, is expected, not `{}`", len.trim())
        })?;
        return Ok(Type::Array(Box::new(of_text(item.trim())?), len));
    }
    let (word, arguments) = match text.split_once('(') {
        None => (text, None),
        Some((word, rest)) => {
            let inner = rest.strip_suffix(')').ok_or("`)` is expected")?;
            (word.trim(), Some(inner.split(',').map(str::trim).collect::<Vec<_>>()))
        }
    };
    let number = |digits: &str| digits.parse::<u8>().map_err(|_| format!("`{digits}` is no width"));
    match (word, arguments.as_deref()) {
        ("bool", None) => Ok(Type::Bool),
        ("f32", None) => Ok(Type::F32),
        ("f64", None) => Ok(Type::F64),
        ("date", None) => Ok(Type::Date),
        ("text" | "str", None) => Ok(Type::Text),
        ("bytes", None) => Ok(Type::Bytes),
        ("timestamp", None) => Ok(Type::Timestamp(Precision::Micros)),
        ("timestamp", Some([unit])) => Ok(Type::Timestamp(match *unit {
            "s" => Precision::Seconds,
            "ms" => Precision::Millis,
            "us" => Precision::Micros,
            "ns" => Precision::Nanos,
            _ => return Err(format!("timestamps count in s, ms, us or ns, not in `{unit}`")),
        })),
        ("decimal", Some([digits, scale])) => {
            Ok(Type::Decimal { digits: number(digits)?, scale: number(scale)? })
        }
        ("decimal", _) => Err("a decimal says its digits, as decimal(10,2)".to_owned()),
        (word, None) => match word.split_at_checked(1) {
            Some(("i", digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Type::Int(number(digits)?))
            }
            Some(("u", digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Type::UInt(number(digits)?))
            }
            _ => Err(unknown(word)),
        },
        (word, Some(_)) => Err(unknown(word)),
    }
}

fn unknown(word: &str) -> String {
    format!(
        "no type is called `{word}`: bool, i8 to i128, u8 to u128, f32, f64, decimal(10,2), date, \
         timestamp, text, bytes, [f32; 8]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "bool",
            "i8",
            "i128",
            "u64",
            "u128",
            "f32",
            "decimal(38,0)",
            "decimal(18,18)",
            "date",
            "timestamp(ns)",
            "text",
            "bytes",
            "[u8; 16]",
            "[decimal(10,2); 3]",
        ] {
            let found: Type = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found.to_string(), text);
        }
        assert_eq!("timestamp".parse(), Ok(Type::Timestamp(Precision::Micros)));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, says) in [
            ("", "no type is called"),
            ("int", "no type is called `int`"),
            ("i7", "no whole number has 7 bits"),
            ("u256", "no width"),
            ("decimal", "says its digits"),
            ("decimal(39,1)", "1 to 38"),
            ("decimal(3,4)", "no more digits"),
            ("timestamp(m)", "s, ms, us or ns"),
            ("[text; 2]", "fixed width"),
            ("[[u8; 2]; 2]", "no arrays"),
            ("[u8; 0]", "1 to 4096"),
            ("[u8]", "`;` is expected"),
            ("[u8; 2", "`]` is expected"),
        ] {
            let error = text.parse::<Type>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn widths_are_those_of_the_values() {
        for (text, width) in [
            ("bool", Some(1)),
            ("u16", Some(2)),
            ("i128", Some(16)),
            ("u128", Some(16)),
            ("decimal(18,2)", Some(8)),
            ("decimal(19,2)", Some(16)),
            ("[u16; 3]", Some(6)),
            ("text", None),
        ] {
            assert_eq!(text.parse::<Type>().expect("a type").width(), width, "{text}");
        }
    }
}
