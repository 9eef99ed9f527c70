//! A value as a number, text or bytes of Rust.

use super::{Float, Kind, Value, whole};
use crate::error::{QueryError, Result};

impl Value<'_> {
    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is whole: also a float that is, such as 2.0.
    ///
    /// ```
    /// use sapwood::aggregate::Value;
    ///
    /// assert_eq!(Value::from(-2).as_i128(), Some(-2));
    /// assert_eq!(Value::float(2.0)?.as_i128(), Some(2));
    /// assert_eq!(Value::float(2.5)?.as_i128(), None);
    /// # Ok::<(), sapwood::aggregate::QueryError>(())
    /// ```
    pub fn as_i128(&self) -> Option<i128> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Float(Float(value)) => whole(*value),
            _ => None,
        }
    }

    /// As [`as_i128`](Self::as_i128), if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128()?.try_into().ok()
    }

    /// As [`as_i128`](Self::as_i128), if it fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128()?.try_into().ok()
    }

    /// The number, if it is one. Whole numbers beyond 2^53 become the nearest float.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is bytes of UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    /// The bytes of a text, or of a value that is bytes and no text.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Why it is not converted.
    fn refuse(&self, wanted: &'static str) -> QueryError {
        let found = match self.kind() {
            Kind::Bytes if self.as_str().is_none() => "bytes that are no text".to_owned(),
            kind => kind.to_string(),
        };
        QueryError::Conversion { value: self.to_string(), found, wanted }
    }
}

macro_rules! try_into_int {
    ($($int:ident)*) => {$(
        /// As [`Value::as_i128`], if it fits.
        impl TryFrom<&Value<'_>> for $int {
            type Error = QueryError;

            fn try_from(value: &Value<'_>) -> Result<$int> {
                let number = value.as_i128().and_then(|number| number.try_into().ok());
                number.ok_or_else(|| value.refuse(stringify!($int)))
            }
        }
    )*};
}
try_into_int!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

macro_rules! try_into {
    ($($type:ty = $method:ident, $name:literal;)*) => {$(
        #[doc = concat!("As [`Value::", stringify!($method), "`].")]
        impl<'v> TryFrom<&'v Value<'_>> for $type {
            type Error = QueryError;

            fn try_from(value: &'v Value<'_>) -> Result<$type> {
                value.$method().ok_or_else(|| value.refuse($name))
            }
        }
    )*};
}
try_into! {
    bool = as_bool, "bool";
    f64 = as_f64, "f64";
    &'v str = as_str, "&str";
    &'v [u8] = as_bytes, "&[u8]";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f64) -> Value<'static> {
        Value::float(value).expect("not NaN")
    }

    #[test]
    fn values_are_what_they_are_worth() {
        for (value, int, number) in [
            (Value::from(-7), Some(-7), Some(-7.0)),
            (float(3.0), Some(3), Some(3.0)),
            (float(3.5), None, Some(3.5)),
            (float(f64::INFINITY), None, Some(f64::INFINITY)),
            (Value::from(i128::from(i64::MAX) + 1), None, Some(9_223_372_036_854_775_808.0)),
            (Value::from("3"), None, None),
            (Value::from(true), None, None),
        ] {
            assert_eq!((value.as_i64(), value.as_f64()), (int, number), "{value}");
            assert_eq!(i64::try_from(&value).ok(), int, "{value}");
            assert_eq!(f64::try_from(&value).ok(), number, "{value}");
        }
        assert_eq!(Value::from(-1).as_u64(), None);
        assert_eq!(Value::from(u64::MAX).as_u64(), Some(u64::MAX));
        assert_eq!((Value::from(true).as_bool(), Value::from(1).as_bool()), (Some(true), None));
        let (text, bytes) = (Value::from("UA"), Value::from(&[0xFF, 0][..]));
        assert_eq!((text.as_str(), text.as_bytes()), (Some("UA"), Some(&b"UA"[..])));
        assert_eq!((bytes.as_str(), bytes.as_bytes()), (None, Some(&[0xFF, 0][..])));
        assert_eq!(<&str>::try_from(&text), Ok("UA"));
    }

    #[test]
    fn what_cannot_be_converted_says_why() {
        let refused = |value: &Value<'_>| i64::try_from(value).expect_err("refused").to_string();
        assert_eq!(
            refused(&float(2.5)),
            "the value 2.5 is a number, and no i64: take it as what it is (`Value::kind`)"
        );
        assert!(refused(&Value::from("UA")).contains("the value UA is a text, and no i64"));
        let error = <&str>::try_from(&Value::from(&[0xFF][..])).expect_err("no text").to_string();
        assert!(error.contains("the value ff is bytes that are no text, and no &str"), "{error}");
        assert!(u8::try_from(&Value::from(256)).is_err());
    }
}
