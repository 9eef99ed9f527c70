//! The types of columns that are text.

use crate::value::float_of_text;
use crate::{Precision, Type, Value, date_of_text, timestamp_of_text};

/// The texts that stand for no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Beside the empty text, which always does.
    pub texts: Vec<String>,
}

impl Missing {
    /// The empty text alone.
    pub fn empty() -> Missing {
        Missing { texts: Vec::new() }
    }

    /// Whether a text stands for no value.
    #[inline]
    pub fn is(&self, text: &str) -> bool {
        text.is_empty() || self.texts.iter().any(|missing| missing == text)
    }
}

/// What is known of a column of texts, from those that were looked at.
///
/// Whole numbers, floats, truth values, days and moments each have a type; what is
/// none of these, or of several that do not go together, is text. Numbers with zeros or a plus before them
/// are codes, so text. A column of whole numbers is `i64`, or `i128` or `u128` if one needs it; [`stored_kind`](Self::stored_kind) is a
/// narrower type that has all of them, and more than twice as large ones. Whole numbers keep their digits: those that no
/// type holds are text, and so is a column of floats with a whole number that no float of 64 bits is written as.
///
/// ```
/// use sapwood::schema::{Inference, Type};
///
/// let mut column = Inference::default();
/// for text in ["17", "-4.5", ""] {
///     column.look(text);
/// }
/// assert_eq!(column.kind(), Type::F64);
/// assert!(column.nullable());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inference {
    seen: Option<Seen>,
    missing: bool,
    /// Whether a whole number is below zero.
    has_negative: bool,
    /// Whether a whole number has more digits than a float keeps.
    has_precise: bool,
}

/// What all values so far are. Variants are in the order in which numbers widen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    /// Of so many digits at most.
    Int(u8),
    /// Of 128 bits with a sign.
    Big,
    /// Of 128 bits without one.
    Huge,
    Float,
    Bool,
    Date,
    Timestamp(Precision),
    Text,
}

impl Seen {
    fn of(text: &str) -> Seen {
        let bytes = text.as_bytes();
        let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
        match digits {
            [b'0', b'0'..=b'9', ..] => match date_or_moment(text) {
                Some(seen) => seen,
                None => Seen::Text,
            },
            [b'0'..=b'9' | b'.', ..] => {
                if digits.iter().all(u8::is_ascii_digit) {
                    if digits.len() <= 18 || text.parse::<i64>().is_ok() {
                        return Seen::Int(digits.len() as u8);
                    }
                    return match (text.parse::<i128>(), text.parse::<u128>()) {
                        (Ok(_), _) => Seen::Big,
                        (_, Ok(_)) => Seen::Huge,
                        _ => Seen::Text,
                    };
                }
                match date_or_moment(text) {
                    Some(seen) => seen,
                    None if float_of_text(text).is_some_and(f64::is_finite) => Seen::Float,
                    None => Seen::Text,
                }
            }
            _ => match text {
                "true" | "false" | "TRUE" | "FALSE" | "True" | "False" => Seen::Bool,
                "NaN" | "nan" | "inf" | "-inf" | "Infinity" | "-Infinity" => Seen::Float,
                _ => Seen::Text,
            },
        }
    }

    /// What values of both are.
    fn and(self, other: Seen) -> Seen {
        use Seen::{Big, Date, Float, Huge, Int, Text, Timestamp};
        match (self.min(other), self.max(other)) {
            (left, right) if left == right => left,
            (Int(_) | Big | Huge | Float, right @ (Int(_) | Big | Huge | Float)) => right,
            (Date, right @ Timestamp(_)) | (Timestamp(_), right @ Timestamp(_)) => right,
            _ => Text,
        }
    }
}

/// Whether a float is a whole number, or is written with its digits.
fn is_a_float(text: &str) -> bool {
    /// Digits that every float of 64 bits keeps.
    const DIGITS: usize = 15;
    let is_same = |float: f64| {
        let size = text.trim_start_matches('-').parse::<u128>();
        size.is_ok_and(|size| float.abs() as u128 == size) || float.to_string() == text
    };
    text.len() <= DIGITS || text.parse().is_ok_and(is_same)
}

fn date_or_moment(text: &str) -> Option<Seen> {
    // Days have ten bytes, and moments more.
    if text.len() < 10 || !text.as_bytes().contains(&b'-') {
        return None;
    }
    if date_of_text(text).is_some() {
        return Some(Seen::Date);
    }
    let precisions = [Precision::Micros, Precision::Nanos];
    precisions.into_iter().find(|it| timestamp_of_text(text, *it).is_some()).map(Seen::Timestamp)
}

impl Inference {
    /// Takes a value into account. The empty text is a missing one; others that stand for one
    /// ([`Missing`]) are told by [`look_missing`](Self::look_missing).
    #[inline]
    pub fn look(&mut self, text: &str) {
        if text.is_empty() {
            self.missing = true;
        } else if self.seen != Some(Seen::Text) {
            let seen = Seen::of(text);
            if let Seen::Int(_) | Seen::Big | Seen::Huge = seen {
                self.has_negative |= text.starts_with('-');
                self.has_precise |= !is_a_float(text);
            }
            self.seen = Some(self.seen.map_or(seen, |before| before.and(seen)));
            self.forget_of_text();
        }
    }

    /// Takes a missing value into account.
    pub fn look_missing(&mut self) {
        self.missing = true;
    }

    /// Takes into account what another has seen.
    pub fn merge(&mut self, other: &Inference) {
        self.missing |= other.missing;
        self.has_negative |= other.has_negative;
        self.has_precise |= other.has_precise;
        self.seen = match (self.seen, other.seen) {
            (Some(left), Some(right)) => Some(left.and(right)),
            (left, right) => left.or(right),
        };
        self.forget_of_text();
    }

    /// What numbers there were says nothing of a text.
    fn forget_of_text(&mut self) {
        if self.seen == Some(Seen::Text) {
            (self.has_negative, self.has_precise) = (false, false);
        }
    }

    /// As [`kind`](Self::kind), in fewer bytes: `i16` for whole numbers of up to 4 digits, `i32` for those of up to 9. Both have
    /// room for numbers more than twice as large as any of these.
    ///
    /// ```
    /// use sapwood::schema::{Inference, Type};
    ///
    /// let mut column = Inference::default();
    /// column.look("2013");
    /// assert_eq!((column.kind(), column.stored_kind()), (Type::Int(64), Type::Int(16)));
    /// ```
    pub fn stored_kind(&self) -> Type {
        match self.seen {
            Some(Seen::Int(0..=4)) => Type::Int(16),
            Some(Seen::Int(5..=9)) => Type::Int(32),
            _ => self.kind(),
        }
    }

    /// The type that has all values so far; text if there was none.
    pub fn kind(&self) -> Type {
        match self.seen {
            Some(Seen::Int(_)) => Type::Int(64),
            Some(Seen::Big) => Type::Int(128),
            Some(Seen::Huge) if !self.has_negative => Type::UInt(128),
            Some(Seen::Float) if !self.has_precise => Type::F64,
            Some(Seen::Bool) => Type::Bool,
            Some(Seen::Date) => Type::Date,
            Some(Seen::Timestamp(precision)) => Type::Timestamp(precision),
            Some(Seen::Text | Seen::Huge | Seen::Float) | None => Type::Text,
        }
    }

    /// Whether a value was missing.
    pub fn nullable(&self) -> bool {
        self.missing
    }

    /// Whether a text is a value of the type so far.
    pub fn holds(&self, text: &str) -> bool {
        match self.kind() {
            Type::Text => true,
            kind => Value::of_text(text, &kind).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(texts: &[&str]) -> String {
        let mut whole = Inference::default();
        texts.iter().for_each(|text| whole.look(text));
        // In any parts it is the same.
        for at in 0..texts.len() {
            let mut parts = [Inference::default(); 2];
            texts[..at].iter().for_each(|text| parts[0].look(text));
            texts[at..].iter().for_each(|text| parts[1].look(text));
            let [mut first, second] = parts;
            first.merge(&second);
            assert_eq!(first, whole);
        }
        let none = if whole.nullable() { "?" } else { "" };
        for text in texts.iter().filter(|text| !text.is_empty()) {
            assert!(whole.holds(text), "{text} as {}", whole.kind());
        }
        format!("{}{none}", whole.kind())
    }

    #[test]
    fn columns_have_the_type_that_all_values_have() {
        for (texts, expected) in [
            (&[][..], "text"),
            (&[""], "text?"),
            (&["1", "-2"], "i64"),
            (&["1", ""], "i64?"),
            (&["1", "9223372036854775808"], "i128"),
            (&["1", "9223372036854775807"], "i64"),
            (&["-1", "170141183460469231731687303715884105727"], "i128"),
            (&["1", "170141183460469231731687303715884105728"], "u128"),
            (&["0", "340282366920938463463374607431768211455", ""], "u128?"),
            (&["-1", "170141183460469231731687303715884105728"], "text"),
            (&["340282366920938463463374607431768211456"], "text"),
            (&["9007199254740993", "2.5"], "text"),
            (&["100000000000000000000", "2.5"], "f64"),
            (&["-9007199254740992", "1e-3"], "f64"),
            (&["1", "2.5"], "f64"),
            (&["1e3", "9223372036854775808"], "f64"),
            (&["1", "NaN"], "f64"),
            (&["007"], "text"),
            (&["+49170"], "text"),
            (&["0", "0.5", "-0"], "f64"),
            (&["1", "x"], "text"),
            (&["x", "-1"], "text"),
            (&["x", "12345678901234567891"], "text"),
            (&["true", "false"], "bool"),
            (&["true", "1"], "text"),
            (&["2013-01-01"], "date"),
            (&["2013-01-01", "2013-01-01 10:00"], "timestamp(us)"),
            (&["2013-01-01T10:00:00.123456789Z", "2013-01-01"], "timestamp(ns)"),
            (&["0001-01-01"], "date"),
            (&["2013-01-01", "x"], "text"),
            (&["2013-13-01"], "text"),
            (&["1_000"], "text"),
            (&["-"], "text"),
            (&["."], "text"),
            (&[&"9".repeat(40)], "text"),
        ] {
            assert_eq!(kind(texts), expected, "{texts:?}");
        }
    }
}
