//! Text as values of a column.

use sapwood_schema::{Data, Strings, Type, Value, Vector, date_of_text, timestamp_of_text};

use crate::looks::Look;

/// How the fields of a column are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'c> {
    pub(crate) kind: &'c Type,
    /// What was seen of the column; none if its type was said.
    pub(crate) look: Option<&'c Look>,
    /// The text that stands for a missing value, beside the empty one.
    pub(crate) missing: Option<&'c [u8]>,
    /// Whether the column is one of a key, whose texts are what they are.
    pub(crate) is_key: bool,
}

impl Reading<'_> {
    /// The values of fields, which are UTF-8; or which of them is none of the type.
    pub(crate) fn vector<'t>(
        &self,
        texts: impl ExactSizeIterator<Item = &'t [u8]>,
    ) -> Result<Vector, usize> {
        match (self.kind, self.look) {
            (Type::Text, _) => {
                let mut values = Strings::new();
                let mut nulls = Nulls::default();
                for (at, text) in texts.enumerate() {
                    let is_missing = !self.is_key && self.is_missing(text);
                    if is_missing {
                        nulls.push(at);
                    }
                    values.push(if is_missing { b"" } else { text });
                }
                let nulls = nulls.of(values.len());
                Ok(Vector { data: Data::Bytes(values), nulls })
            }
            (Type::Int(64), Some(_)) => self.numbers(texts, Data::Int, 0, whole, |value| {
                let Value::Int(value) = value else { return None };
                i64::try_from(value).ok()
            }),
            (Type::F64, Some(_)) => self.numbers(texts, Data::Float, 0.0, float, |value| {
                let Value::Float(value) = value else { return None };
                Some(value)
            }),
            (Type::Date, Some(_)) => self.numbers(texts, Data::Int, 0, repeated(day), |value| {
                let Value::Date(days) = value else { return None };
                Some(days.into())
            }),
            (Type::Timestamp(precision), Some(_)) => {
                let moment = |text: &[u8]| {
                    let text = std::str::from_utf8(text).ok()?;
                    // Years behind a plus are text.
                    let is_plain = !text.starts_with('+');
                    is_plain.then(|| timestamp_of_text(text, *precision))?
                };
                self.numbers(texts, Data::Int, 0, repeated(moment), |value| {
                    let Value::Timestamp { ticks, .. } = value else { return None };
                    Some(ticks)
                })
            }
            _ => {
                let mut vector = Vector::of_type(self.kind);
                for (at, text) in texts.enumerate() {
                    match self.is_missing(text) {
                        true => vector.push_null(),
                        false => match self.value(text).ok_or(at)? {
                            value @ Value::Array(_) => vector.push_array(&value, self.kind),
                            value => vector.push_value(&value),
                        },
                    }
                }
                Ok(vector)
            }
        }
    }

    /// Which fields are none of the type.
    pub(crate) fn misfits<'t>(&self, texts: impl Iterator<Item = &'t [u8]>) -> Vec<usize> {
        let is_none = |text: &[u8]| !self.is_missing(text) && self.value(text).is_none();
        texts.enumerate().filter(|(_, text)| is_none(text)).map(|(at, _)| at).collect()
    }

    /// Values of a fixed width, most of which `fast` reads.
    fn numbers<'t, T: Copy>(
        &self,
        texts: impl ExactSizeIterator<Item = &'t [u8]>,
        data: fn(Vec<T>) -> Data,
        nothing: T,
        mut fast: impl FnMut(&'t [u8]) -> Option<T>,
        slow: impl Fn(Value<'_>) -> Option<T>,
    ) -> Result<Vector, usize> {
        let mut values = Vec::with_capacity(texts.len());
        let mut nulls = Nulls::default();
        for (at, text) in texts.enumerate() {
            if self.is_missing(text) {
                nulls.push(at);
                values.push(nothing);
            } else if let Some(value) = fast(text) {
                values.push(value);
            } else {
                let value = self.value(text).and_then(&slow);
                values.push(value.ok_or(at)?);
            }
        }
        let nulls = nulls.of(values.len());
        Ok(Vector { data: data(values), nulls })
    }

    #[inline]
    pub(crate) fn is_missing(&self, text: &[u8]) -> bool {
        text.is_empty() || self.missing.is_some_and(|missing| missing == text)
    }

    /// A value of the type; of a type that was found, as it is found.
    pub(crate) fn value<'t>(&self, text: &'t [u8]) -> Option<Value<'t>> {
        let text = std::str::from_utf8(text).ok()?;
        if self.look.is_some_and(|look| !look.holds(text, self.kind)) {
            return None;
        }
        Value::of_text(text, self.kind).and_then(|value| value.to_type(self.kind)).ok()
    }
}

/// Which values of a vector are null.
#[derive(Default)]
struct Nulls(Option<Vec<bool>>);

impl Nulls {
    /// The next one; those before it which were not told are none.
    #[inline]
    fn push(&mut self, at: usize) {
        let nulls = self.0.get_or_insert_default();
        nulls.resize(at, false);
        nulls.push(true);
    }

    fn of(self, len: usize) -> Option<Vec<bool>> {
        self.0.map(|mut nulls| {
            nulls.resize(len, false);
            nulls
        })
    }
}

/// Digits of a number that no zero begins, behind a sign; those before the first other byte.
#[inline]
fn digits(text: &[u8]) -> Option<(bool, u64, usize, &[u8])> {
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut number = 0_u64;
    let mut count = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        count += 1;
    }
    let is_code = text.len() > 1 && text[0] == b'0' && text[1].is_ascii_digit();
    (count > 0 && count <= 18 && !is_code).then(|| (is_negative, number, count, &text[count..]))
}

/// Most whole numbers.
#[inline]
fn whole(text: &[u8]) -> Option<i64> {
    let (is_negative, number, _, rest) = digits(text)?;
    let number = number as i64;
    rest.is_empty().then_some(if is_negative { -number } else { number })
}

/// Most floats: those whose digits and power of ten are exact, so that one division rounds as it should.
#[inline]
fn float(text: &[u8]) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (is_negative, mut number, mut count, rest) = digits(text)?;
    let mut behind = 0;
    if let [b'.', fraction @ ..] = rest {
        for &byte in fraction {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number.wrapping_mul(10).wrapping_add(digit.into());
            behind += 1;
        }
        count += behind;
    } else if !rest.is_empty() {
        return None;
    }
    if count > 15 {
        return None;
    }
    let value = number as f64 / POWERS[behind];
    Some(if is_negative { -value } else { value })
}

/// Answers the last value again where the text is the same.
fn repeated<'t>(
    mut read: impl FnMut(&'t [u8]) -> Option<i64>,
) -> impl FnMut(&'t [u8]) -> Option<i64> {
    let mut last: (&[u8], Option<i64>) = (b"", None);
    move |text| {
        if text != last.0 {
            last = (text, read(text));
        }
        last.1
    }
}

fn day(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    // Years behind a plus are text.
    (!text.starts_with('+')).then(|| date_of_text(text))?.map(i64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_way_is_the_slow_way() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200_000 {
            let len = random.usize(1..20);
            let sign = |_| b"0123456789.-"[random.usize(0..12)] as char;
            let text: String = (0..len).map(sign).collect();
            if let Some(value) = whole(text.as_bytes()) {
                assert_eq!(text.parse(), Ok(value), "{text}");
                assert!(text == "-0" || text == value.to_string());
            }
            if let Some(value) = float(text.as_bytes()) {
                let expected: f64 = text.parse().expect(&text);
                assert_eq!(value.to_bits(), expected.to_bits(), "{text}");
            }
        }
        for text in ["", "-", "007", "-01", "1e3", "+1", "01.5", "9999999999999999999"] {
            assert_eq!((whole(text.as_bytes()), float(text.as_bytes())), (None, None), "{text}");
        }
        assert_eq!(
            (whole(b"-0"), float(b"1."), float(b"-0.25")),
            (Some(0), Some(1.0), Some(-0.25))
        );
    }

    #[test]
    fn values_are_of_the_type_that_was_found() {
        let read = |found: &[&str], text: &str| {
            let mut look = Look::default();
            found.iter().for_each(|text| look.field(text, None));
            let kind = look.kind(false);
            let reading =
                Reading { kind: &kind, look: Some(&look), missing: Some(b"NA"), is_key: false };
            let vector = reading.vector([b"".as_slice(), text.as_bytes(), b"NA"].into_iter());
            vector.ok().map(|vector| {
                assert!(vector.is_null(0) && vector.is_null(2) && !vector.is_null(1));
                vector.value(1, &kind).expect("a value").to_string()
            })
        };
        for (found, text, value) in [
            (&["1"][..], "42", Some("42")),
            (&["1"], "007", None),
            (&["1"], "1.5", None),
            (&["1"], "9223372036854775808", None),
            (&["1"], "-9223372036854775808", Some("-9223372036854775808")),
            (&["1.5"], "42", Some("42")),
            (&["1.5"], "1e3", Some("1000")),
            (&["1.5"], "007", None),
            (&["1.5"], "x", None),
            (&["9223372036854775808"], "5", Some("5")),
            (&["true"], "FALSE", Some("false")),
            (&["true"], "t", None),
            (&["2013-01-01"], "2013-01-02", Some("2013-01-02")),
            (&["2013-01-01"], "2013-01-02 10:00", None),
            (&["2013-01-01 10:00"], "2013-01-02", Some("2013-01-02 00:00:00")),
            (&["2013-01-01 10:00"], "2013-01-02 10:00:00.123456789", None),
            (&["x"], "7", Some("7")),
        ] {
            assert_eq!(read(found, text).as_deref(), value, "{text} after {found:?}");
        }
    }
}
