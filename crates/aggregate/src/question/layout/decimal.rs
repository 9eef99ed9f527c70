//! Numbers in decimal digits.

use crate::error::Why;
use crate::value::{Float, Value};

/// Reads `[+-]digits[.digits][e[+-]digits]`; one side of the point may be empty.
pub(super) fn read(bytes: &[u8]) -> Result<Value<'static>, Why> {
    let text = std::str::from_utf8(bytes).map_err(|_| Why::NotDecimal)?;
    match numeral(bytes).ok_or(Why::NotDecimal)? {
        // All that can be wrong with digits is that they are too many.
        Numeral::Whole => text.parse().map(Value::Int).map_err(|_| Why::Wide),
        Numeral::Fraction => {
            let value: f64 = text.parse().map_err(|_| Why::NotDecimal)?;
            let finite = Float::new(value).filter(|_| value.is_finite());
            finite.map(Value::Float).ok_or(Why::BeyondFloats)
        }
    }
}

enum Numeral {
    Whole,
    Fraction,
}

fn numeral(bytes: &[u8]) -> Option<Numeral> {
    let unsigned = |bytes: &[u8]| match bytes {
        [b'+' | b'-', ..] => 1,
        _ => 0,
    };
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = &bytes[unsigned(bytes)..];
    let before = digits(rest);
    rest = &rest[before..];
    if rest.is_empty() && before > 0 {
        return Some(Numeral::Whole);
    }
    let mut behind = 0;
    if let [b'.', fraction @ ..] = rest {
        behind = digits(fraction);
        rest = &fraction[behind..];
    }
    if before + behind == 0 {
        return None;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = &exponent[unsigned(exponent)..];
        let count = digits(exponent);
        rest = &exponent[count..];
        if count == 0 {
            return None;
        }
    }
    rest.is_empty().then_some(Numeral::Fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly_or_to_the_nearest_float() {
        for (text, expected) in [
            ("0", Value::Int(0)),
            ("-0", Value::Int(0)),
            ("007", Value::Int(7)),
            ("+5", Value::Int(5)),
            ("9223372036854775808", Value::Int(1 << 63)),
            ("-170141183460469231731687303715884105728", Value::Int(i128::MIN)),
        ] {
            assert_eq!(read(text.as_bytes()), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("3.0e3", 3000.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-1e-2", -0.01),
            ("0.1", 0.1),
            ("1e-999", 0.0),
        ] {
            let expected = Value::float(expected).expect("a number");
            assert_eq!(read(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "", " 1", "1 ", "+", "-", ".", "e5", ".e5", "1e", "1e+", "--1", "1.2.3", "0x10", "inf",
            "nan", "NA", "1_000", "1,5", "\u{661}",
        ] {
            assert_eq!(read(text.as_bytes()), Err(Why::NotDecimal), "{text}");
        }
        assert_eq!(read(b"\xFF"), Err(Why::NotDecimal));
        assert_eq!(read(b"170141183460469231731687303715884105728"), Err(Why::Wide));
        assert_eq!(read(b"1e400"), Err(Why::BeyondFloats));
    }
}
