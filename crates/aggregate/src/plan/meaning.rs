//! The meaning of the lanes of a column: how a value becomes a lane, and a lane a value again.
//!
//! Lanes of numbers, truth, days and moments are ordered as their values, so that comparisons with constants and
//! extremes go by lanes alone. A lane of a text is its number in a [`Dictionary`].

use std::borrow::Cow;

use sapwood_schema::{Cell, Civil, DAY_SECONDS, Precision, Type, Value as Typed, days_of};

use crate::columns::dictionary::Dictionary;
use crate::columns::kernels::SIGN;
use crate::error::Why;
use crate::question::predicate::{Test, Values};
use crate::value::comparison::Comparison;
use crate::value::number::{Form, Number};
use crate::value::{Float, Value};

#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// Whole numbers of 64 bits, with their sign bit flipped.
    Signed,
    Unsigned,
    Bool,
    /// Finite numbers: their bits, those of negative ones so that they sort below. Zeros are one.
    Float,
    /// Days of the years 0 to 9999, whose texts sort as they do.
    Day,
    /// Moments of the years 0 to 9999, likewise.
    Moment(Precision),
    Text,
    /// That there is a value: lanes are zero.
    Presence,
    /// Whether a test of the value is true.
    Truth(Box<Test>),
}

/// A value that is asked about by itself.
struct One<'a>(&'a Value<'a>);

impl Values for One<'_> {
    fn get(&self, _number: usize) -> Result<Option<Value<'_>>, Why> {
        Ok(Some(self.0.clone()))
    }
}

impl Meaning {
    /// Of numbers of fixed width.
    pub(crate) fn of_number(number: Number) -> Meaning {
        match number.form() {
            Form::Signed => Meaning::Signed,
            Form::Unsigned => Meaning::Unsigned,
            Form::Float => Meaning::Float,
        }
    }

    /// Of columns of rows of a type; none if no lane has its values.
    pub(crate) fn of_type(kind: &Type) -> Option<Meaning> {
        Some(match kind {
            Type::Bool => Meaning::Bool,
            Type::UInt(_) => Meaning::Unsigned,
            Type::Int(_) | Type::Decimal { scale: 0, .. } => Meaning::Signed,
            Type::F32 | Type::F64 | Type::Decimal { .. } => Meaning::Float,
            Type::Date => Meaning::Day,
            Type::Timestamp(precision) => Meaning::Moment(*precision),
            Type::Text | Type::Bytes => Meaning::Text,
            _ => return None,
        })
    }

    /// Whether lanes compare as their values do.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, Meaning::Text | Meaning::Presence | Meaning::Truth(_))
    }

    /// Whether lanes of both compare as their values do.
    pub(crate) fn compares_with(&self, other: &Meaning) -> bool {
        match (self, other) {
            (Meaning::Moment(precision), Meaning::Moment(other)) => precision == other,
            _ => self.is_ordered() && std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Whether lanes, less their bias, are numbers that can be added.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Meaning::Signed | Meaning::Unsigned)
    }

    /// What lanes of whole numbers are more than the numbers.
    pub(crate) fn bias(&self) -> i128 {
        match self {
            Meaning::Signed | Meaning::Day | Meaning::Moment(_) => SIGN.into(),
            _ => 0,
        }
    }

    /// The lane of a value. None if it has none, and its object must go by itself.
    #[inline]
    pub(crate) fn lane(&self, value: &Value<'_>, dictionary: &mut Dictionary) -> Option<u64> {
        match (self, value) {
            (Meaning::Signed, Value::Int(number)) => Some(of_signed(i64::try_from(*number).ok()?)),
            (Meaning::Unsigned, Value::Int(number)) => u64::try_from(*number).ok(),
            (Meaning::Bool, Value::Bool(truth)) => Some((*truth).into()),
            (Meaning::Float, Value::Float(float)) => {
                float.get().is_finite().then(|| of_float(float.get()))
            }
            (Meaning::Day | Meaning::Moment(_), Value::Int(number)) => {
                let (least, greatest) = self.limits();
                let lane = of_signed(i64::try_from(*number).ok()?);
                (least..=greatest).contains(&lane).then_some(lane)
            }
            (Meaning::Text, Value::Bytes(text)) => dictionary.number(text),
            (Meaning::Presence, _) => Some(0),
            (Meaning::Truth(test), value) => test.ask(&One(value)).ok()?.map(u64::from),
            _ => None,
        }
    }

    /// The lane of a cell of a row, where that needs no look at the value. None: its value may have one.
    #[inline]
    pub(crate) fn lane_of_cell(&self, cell: &Cell<'_>, dictionary: &mut Dictionary) -> Option<u64> {
        match (self, cell) {
            (Meaning::Signed, Cell::Int(number)) => Some(of_signed(*number)),
            // Those of 64 bits are not `Cell::Int`, so none of these is negative.
            (Meaning::Unsigned, Cell::Int(number)) => Some(number.cast_unsigned()),
            (Meaning::Bool, Cell::Int(number)) => Some(u64::from(*number != 0)),
            (Meaning::Float, Cell::Float(float)) if float.is_finite() => Some(of_float(*float)),
            // What is there was checked to be UTF-8 if it has to be.
            (Meaning::Text, Cell::Bytes(text)) => dictionary.find(text),
            _ => None,
        }
    }

    /// The value of a lane.
    pub(crate) fn value<'a>(&self, lane: u64, dictionary: &'a Dictionary) -> Value<'a> {
        match self {
            Meaning::Text => dictionary.text(lane).into(),
            _ => self.ordered_value(lane),
        }
    }

    fn ordered_value(&self, lane: u64) -> Value<'static> {
        let typed = |value: Typed<'_>| Value::Bytes(Cow::Owned(value.to_string().into_bytes()));
        match self {
            Meaning::Signed => Value::Int(to_signed(lane).into()),
            Meaning::Unsigned => Value::Int(lane.into()),
            Meaning::Bool => Value::Bool(lane == 1),
            Meaning::Float => {
                Value::Float(Float::new(to_float(lane)).expect("lanes are of finite numbers"))
            }
            Meaning::Day => typed(Typed::Date(to_signed(lane) as i32)),
            Meaning::Moment(precision) => {
                typed(Typed::Timestamp { ticks: to_signed(lane), precision: *precision })
            }
            Meaning::Text | Meaning::Presence | Meaning::Truth(_) => {
                unreachable!("lanes that are not ordered are not values by themselves")
            }
        }
    }

    /// The least and the greatest lane that there may be.
    fn limits(&self) -> (u64, u64) {
        let days = || {
            let year = |year| i64::from(days_of(Civil { year, month: 1, day: 1 }));
            (year(0), year(10_000))
        };
        match self {
            Meaning::Bool => (0, 1),
            Meaning::Float => (of_float(f64::MIN), of_float(f64::MAX)),
            Meaning::Day => (of_signed(days().0), of_signed(days().1 - 1)),
            Meaning::Moment(precision) => {
                let ticks = |days: i64| days.saturating_mul(DAY_SECONDS * precision.ticks());
                let greatest = of_signed(ticks(days().1).saturating_sub(1));
                (of_signed(ticks(days().0)), greatest)
            }
            _ => (0, u64::MAX),
        }
    }

    /// The first lane whose value is not below `constant`, beyond all lanes perhaps, and whether it is that.
    pub(crate) fn first_from(&self, constant: &Value<'_>) -> (i128, bool) {
        let (least, greatest) = self.limits();
        if let (true, Value::Int(number)) = (self.is_whole(), constant)
            && let Some(lane) = number.checked_add(self.bias())
        {
            return (lane, true);
        }
        let value = |lane: i128| self.ordered_value(lane as u64);
        let (mut begin, mut limit) = (i128::from(least), i128::from(greatest) + 1);
        while begin < limit {
            let middle = begin + (limit - begin) / 2;
            match value(middle) < *constant {
                true => begin = middle + 1,
                false => limit = middle,
            }
        }
        (begin, begin <= i128::from(greatest) && value(begin) == *constant)
    }

    /// A comparison of lanes that holds where one of values with `constant` does.
    pub(crate) fn compare(
        &self,
        comparison: Comparison,
        constant: &Value<'_>,
    ) -> (Comparison, i128) {
        /// Beyond all lanes.
        const NONE: i128 = -1;
        match (comparison, self.first_from(constant)) {
            (comparison, (lane, true)) => (comparison, lane),
            (Comparison::Equal | Comparison::NotEqual, _) => (comparison, NONE),
            (Comparison::Less | Comparison::LessOrEqual, (lane, _)) => (Comparison::Less, lane),
            (Comparison::Greater | Comparison::GreaterOrEqual, (lane, _)) => {
                (Comparison::GreaterOrEqual, lane)
            }
        }
    }
}

fn of_signed(number: i64) -> u64 {
    number.cast_unsigned() ^ SIGN
}

fn to_signed(lane: u64) -> i64 {
    (lane ^ SIGN).cast_signed()
}

fn of_float(number: f64) -> u64 {
    let bits = number.to_bits();
    // The complement of two, so that both zeros have one lane.
    if bits & SIGN == 0 { bits | SIGN } else { bits.wrapping_neg() }
}

fn to_float(lane: u64) -> f64 {
    f64::from_bits(if lane & SIGN == 0 { lane.wrapping_neg() } else { lane ^ SIGN })
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    fn float(value: f64) -> Value<'static> {
        Value::float(value).expect("not NaN")
    }

    fn day(text: &str) -> Value<'static> {
        Value::Int(sapwood_schema::date_of_text(text).expect("a day").into())
    }

    fn moment(text: &str) -> Value<'static> {
        let ticks = sapwood_schema::timestamp_of_text(text, Precision::Millis);
        Value::Int(ticks.expect("a moment").into())
    }

    #[test]
    fn lanes_compare_as_values_and_come_back() {
        let numbers = [i64::MIN, -1, 0, 1, i64::MAX].map(|number| Value::Int(number.into()));
        let floats = [f64::MIN, -2.5, -0.0, 0.0, 5e-324, 2.5, 3.0, f64::MAX].map(float);
        let constants = [
            Value::Int(i128::MIN),
            Value::Int(i128::MAX),
            float(f64::NEG_INFINITY),
            float(f64::INFINITY),
            float(2.5),
            float(0.25),
            float(-0.0),
            Value::Int(0),
            Value::Int(3),
        ];
        let texts = [
            "",
            "0000",
            "2013",
            "2013-01-31",
            "2013-01-31 10:00:00",
            "2013-01-31 10:00:00.25",
            "2013-01-31 10:00:00.251",
            "2013-02",
            "9999-12-31",
            "a",
        ];
        let texts = texts.map(Value::from);
        let days = ["0000-01-01", "2013-01-31", "2013-02-01", "9999-12-31"].map(day);
        let moments = [
            "0000-01-01 00:00:00",
            "2013-01-31 10:00:00",
            "2013-01-31 10:00:00.25",
            "9999-12-31 23:59:59.999",
        ];
        let moments = moments.map(moment);
        let whole = [&numbers[..], &constants].concat();
        let of_floats = [&floats[..], &constants].concat();
        let truths = [Value::Bool(false), Value::Bool(true)];
        let mut dictionary = Dictionary::default();
        for (meaning, values, constants) in [
            (Meaning::Signed, &numbers[..], &whole[..]),
            (Meaning::Unsigned, &numbers[2..], &whole),
            (Meaning::Float, &floats, &of_floats),
            (Meaning::Bool, &truths, &truths),
            (Meaning::Day, &days, &texts),
            (Meaning::Moment(Precision::Millis), &moments, &texts),
        ] {
            for value in values {
                let lane = meaning.lane(value, &mut dictionary).expect("it has one");
                let shown = meaning.value(lane, &dictionary);
                if meaning.is_whole() || matches!(meaning, Meaning::Float | Meaning::Bool) {
                    assert_eq!(shown, *value);
                }
                for constant in constants {
                    for comparison in Comparison::ALL {
                        let expected = comparison.holds(shown.cmp(constant));
                        let (by_lane, bound) = meaning.compare(comparison, constant);
                        let order: Ordering = i128::from(lane).cmp(&bound);
                        assert_eq!(
                            by_lane.holds(order),
                            expected,
                            "{shown:?} {comparison} {constant:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_has_no_lane_goes_by_itself() {
        let mut dictionary = Dictionary::default();
        let long = [b'x'; 1_000];
        for (meaning, value) in [
            (Meaning::Signed, Value::Int(1 << 63)),
            (Meaning::Unsigned, Value::Int(-1)),
            (Meaning::Float, float(f64::INFINITY)),
            (Meaning::Day, Value::Int(i32::MAX.into())),
            (Meaning::Moment(Precision::Seconds), Value::Int(i64::MIN.into())),
            (Meaning::Text, Value::from(&long[..])),
            (Meaning::Text, Value::Int(1)),
        ] {
            assert_eq!(meaning.lane(&value, &mut dictionary), None, "{meaning:?}");
        }
    }
}
