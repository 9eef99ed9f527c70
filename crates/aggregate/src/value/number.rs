//! Numbers of fixed width.

use std::fmt;
use std::str::FromStr;

use super::{Float, Value};
use crate::error::{SyntaxError, Why};

/// A number of fixed width: whole or floating point, in 1 to 16 bytes, in an order of bytes.
///
/// Its text form is a letter, the width in bits, and the order: `u8`, `i16le`, `f64be`, `i32ord`.
///
/// ```
/// use sapwood::aggregate::{Form, Number, Order};
///
/// let number: Number = "i16be".parse()?;
/// assert_eq!(Some(number), Number::new(Form::Signed, 2, Order::Big));
/// assert_eq!(Number::new(Form::Float, 2, Order::Big), None);
/// # Ok::<(), sapwood::aggregate::SyntaxError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    form: Form,
    bytes: u8,
    order: Order,
}

/// What the bits of a number mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Whole, from zero. One of 128 bits must be below 2^127; others are a mismatch.
    Unsigned,
    /// Whole, in two's complement.
    Signed,
    /// IEEE 754. NaN is a mismatch, infinities are not.
    Float,
}

/// In which order the bytes of a number lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Least significant first.
    Little,
    /// Most significant first.
    Big,
    /// As ordered keys encode numbers, so that bytes sort as numbers do: most significant first,
    /// the sign bit flipped, and negative floats inverted.
    Ordered,
}

impl Number {
    /// `None` unless the width is 1, 2, 4, 8 or 16 bytes (4 or 8 for floats).
    pub const fn new(form: Form, bytes: u8, order: Order) -> Option<Number> {
        match (form, bytes) {
            (Form::Float, 4 | 8) | (Form::Unsigned | Form::Signed, 1 | 2 | 4 | 8 | 16) => {
                Some(Number { form, bytes, order })
            }
            _ => None,
        }
    }

    /// What its bits mean.
    pub const fn form(self) -> Form {
        self.form
    }

    /// Its width, in bytes.
    pub const fn bytes(self) -> usize {
        self.bytes as usize
    }

    /// The order of its bytes.
    pub const fn order(self) -> Order {
        self.order
    }

    /// Reads a number from exactly as many bytes as it has.
    #[inline]
    pub(crate) fn read(self, bytes: &[u8]) -> Result<Value<'static>, Why> {
        let raw = self.raw(bytes);
        let bits = u32::from(self.bytes) * 8;
        match self.form {
            Form::Unsigned => i128::try_from(raw).map(Value::Int).map_err(|_| Why::Wide),
            // Shifts of 128 bits take several times as long as those of 64.
            Form::Signed if bits <= 64 => {
                let shift = 64 - bits;
                let sign = u64::from(self.order == Order::Ordered) << 63;
                let upper = (raw as u64) << shift ^ sign;
                Ok(Value::Int((upper.cast_signed() >> shift).into()))
            }
            Form::Signed => {
                let sign = u128::from(self.order == Order::Ordered) << 127;
                Ok(Value::Int((raw ^ sign).cast_signed()))
            }
            Form::Float => {
                let sign = 1_u128 << (bits - 1);
                let raw = match self.order {
                    Order::Ordered if raw & sign != 0 => raw ^ sign,
                    // Bits above the number's own are cut off below.
                    Order::Ordered => !raw,
                    Order::Little | Order::Big => raw,
                };
                let value = match self.bytes {
                    4 => f64::from(f32::from_bits(raw as u32)),
                    _ => f64::from_bits(raw as u64),
                };
                Float::new(value).map(Value::Float).ok_or(Why::Nan)
            }
        }
    }

    #[inline]
    fn raw(self, bytes: &[u8]) -> u128 {
        macro_rules! of {
            ($int:ty) => {{
                let bytes = bytes.try_into().expect("as many bytes as the number has");
                let big = !matches!(self.order, Order::Little);
                let raw =
                    if big { <$int>::from_be_bytes(bytes) } else { <$int>::from_le_bytes(bytes) };
                u128::from(raw)
            }};
        }
        match self.bytes {
            1 => of!(u8),
            2 => of!(u16),
            4 => of!(u32),
            8 => of!(u64),
            _ => of!(u128),
        }
    }

    /// The least and the greatest whole number that it can be; none of floats.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        let bits = u32::from(self.bytes) * 8;
        match self.form {
            // Those of 128 bits are read below 2^127 alone.
            Form::Unsigned => Some((0, (u128::MAX >> (128 - bits).max(1)).cast_signed())),
            Form::Signed => Some((i128::MIN >> (128 - bits), i128::MAX >> (128 - bits))),
            Form::Float => None,
        }
    }

    /// Writes a whole number that lies in the range into exactly as many bytes as the number has.
    #[inline]
    pub(crate) fn write(self, value: i128, bytes: &mut [u8]) {
        debug_assert!(self.range().is_some_and(|(min, max)| (min..=max).contains(&value)));
        let sign = match (self.form, self.order) {
            (Form::Signed, Order::Ordered) => 1_u128 << (u32::from(self.bytes) * 8 - 1),
            _ => 0,
        };
        self.write_raw(value.cast_unsigned() ^ sign, bytes);
    }

    /// Writes a float, rounded to as many bytes as the number has.
    pub(crate) fn write_float(self, value: f64, bytes: &mut [u8]) {
        let raw = match self.bytes {
            4 => u128::from((value as f32).to_bits()),
            _ => u128::from(value.to_bits()),
        };
        let sign = 1_u128 << (u32::from(self.bytes) * 8 - 1);
        self.write_raw(
            match self.order {
                Order::Ordered if raw & sign != 0 => !raw,
                Order::Ordered => raw ^ sign,
                Order::Little | Order::Big => raw,
            },
            bytes,
        );
    }

    #[inline]
    fn write_raw(self, raw: u128, bytes: &mut [u8]) {
        macro_rules! of {
            ($int:ty) => {{
                let raw = raw as $int;
                let big = !matches!(self.order, Order::Little);
                let raw = if big { raw.to_be_bytes() } else { raw.to_le_bytes() };
                bytes.copy_from_slice(&raw);
            }};
        }
        match self.bytes {
            1 => of!(u8),
            2 => of!(u16),
            4 => of!(u32),
            8 => of!(u64),
            _ => of!(u128),
        }
    }

    /// Reads the text form, or says what is wrong with it.
    pub(crate) fn from_word(word: &str) -> Result<Number, String> {
        let digits = word.trim_start_matches(['u', 'i', 'f']);
        let width = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let form = match &word[..word.len() - digits.len()] {
            "u" => Form::Unsigned,
            "i" => Form::Signed,
            "f" => Form::Float,
            _ => return Err(String::new()),
        };
        let bits: u8 = width.parse().map_err(|_| String::new())?;
        let order = match &digits[width.len()..] {
            "" | "le" => Order::Little,
            "be" => Order::Big,
            "ord" => Order::Ordered,
            _ => return Err(String::new()),
        };
        let number = Number::new(form, bits / 8, order).filter(|_| bits.is_multiple_of(8));
        let Some(number) = number else {
            return Err(format!(
                "no number has {bits} bits here: 8, 16, 32, 64 or 128, floats 32 or 64"
            ));
        };
        if digits == width && number.bytes > 1 {
            return Err(format!(
                "the order of bytes is missing: write `{word}le` or `{word}be`, or `{word}ord` for a number of an ordered key"
            ));
        }
        Ok(number)
    }
}

impl FromStr for Number {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Number, SyntaxError> {
        Number::from_word(text).map_err(|what| {
            let what = match what.is_empty() {
                true => "a number is expected, such as u8, i16le, u32be, f64le or i64ord".into(),
                false => what,
            };
            SyntaxError { form: "number", text: text.to_owned(), offset: 0, what }
        })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Unsigned => 'u',
            Form::Signed => 'i',
            Form::Float => 'f',
        };
        let order = match self.order {
            Order::Little if self.bytes == 1 => "",
            Order::Little => "le",
            Order::Big => "be",
            Order::Ordered => "ord",
        };
        write!(f, "{form}{}{order}", u32::from(self.bytes) * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        text.parse().expect("a number")
    }

    #[test]
    fn numbers_are_read() {
        let float = |value: f64| Value::float(value).expect("not NaN");
        for (form, bytes, expected) in [
            ("u8", &[200][..], Value::Int(200)),
            ("i8", &[200], Value::Int(-56)),
            ("u16le", &[1, 2], Value::Int(0x0201)),
            ("u16be", &[1, 2], Value::Int(0x0102)),
            ("i32le", &(-7_i32).to_le_bytes(), Value::Int(-7)),
            ("u64be", &u64::MAX.to_be_bytes(), Value::Int(u64::MAX.into())),
            ("i128le", &i128::MIN.to_le_bytes(), Value::Int(i128::MIN)),
            ("u128be", &i128::MAX.to_be_bytes(), Value::Int(i128::MAX)),
            ("f32le", &1.5_f32.to_le_bytes(), float(1.5)),
            ("f64be", &(-0.1_f64).to_be_bytes(), float(-0.1)),
            ("f64le", &f64::INFINITY.to_le_bytes(), float(f64::INFINITY)),
            // The examples of docs/design/keys.md.
            ("i8ord", &[0x00], Value::Int(-128)),
            ("i16ord", &[0x7F, 0xFF], Value::Int(-1)),
            ("i32ord", &[0x80, 0, 0, 0], Value::Int(0)),
            ("u16ord", &[1, 2], Value::Int(258)),
            ("f32ord", &[0x00, 0x7F, 0xFF, 0xFF], float(f64::NEG_INFINITY)),
            ("f64ord", &[0x40, 0x0F, 255, 255, 255, 255, 255, 255], float(-1.0)),
            ("f64ord", &[0xBF, 0xF0, 0, 0, 0, 0, 0, 0], float(1.0)),
        ] {
            assert_eq!(number(form).read(bytes).as_ref(), Ok(&expected), "{form}");
            assert_eq!(number(form).to_string(), form);
            let mut written = vec![0xA5; bytes.len()];
            match expected {
                Value::Float(float) => number(form).write_float(float.get(), &mut written),
                Value::Int(whole) => number(form).write(whole, &mut written),
                _ => unreachable!("the cases are numbers"),
            }
            assert_eq!(written, bytes, "{form}");
        }
    }

    #[test]
    fn ranges_end_with_numbers_that_are_written_and_read() {
        for form in ["u8", "i16ord", "u32be", "u64le", "i64be", "u128le", "i128ord"] {
            let number = number(form);
            let (min, max) = number.range().expect("whole");
            for value in [min, max] {
                let mut bytes = vec![0; number.bytes()];
                number.write(value, &mut bytes);
                assert_eq!(number.read(&bytes), Ok(Value::Int(value)), "{form}");
            }
            if number.bytes() < 16 {
                let count = 1_i128 << (8 * number.bytes());
                assert_eq!(max - min + 1, count, "{form}");
            }
        }
        assert_eq!(number("f32le").range(), None);
    }

    #[test]
    fn no_number_is_made_up() {
        assert_eq!(number("f64le").read(&f64::NAN.to_le_bytes()), Err(Why::Nan));
        assert_eq!(number("f32be").read(&(-f32::NAN).to_be_bytes()), Err(Why::Nan));
        assert_eq!(number("u128le").read(&u128::MAX.to_le_bytes()), Err(Why::Wide));
    }

    #[test]
    fn other_words_are_refused() {
        for (word, says) in [
            ("u32", "`u32le` or `u32be`"),
            ("f64", "the order"),
            ("u24le", "no number has 24 bits"),
            ("f16le", "no number has 16 bits"),
            ("u9le", "no number has 9 bits"),
            ("u32xe", "a number is expected"),
            ("uu8", "a number is expected"),
            ("u", "a number is expected"),
            ("", "a number is expected"),
            ("größe", "a number is expected"),
        ] {
            let error = word.parse::<Number>().expect_err("refused").to_string();
            assert!(error.contains(says), "{word}: {error}");
        }
    }
}
