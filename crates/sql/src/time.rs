//! Parts of days and moments, spans between them, and how they are written.

mod format;

pub(crate) use format::Format;

use sapwood_schema::{Civil, DAY_SECONDS, Precision, days_of};

use crate::kind::Kind;

/// A unit in which moments are truncated and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    /// Begins on Monday.
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
}

/// A number that a moment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Year,
    Quarter,
    Month,
    /// Of ISO 8601.
    Week,
    IsoYear,
    Day,
    /// From 0, a Sunday.
    DayOfWeek,
    /// From 1, a Monday.
    IsoDayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    /// Seconds since 1970, with their fraction.
    Epoch,
    Decade,
    Century,
}

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Interval {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) micros: i64,
}

impl Unit {
    pub(crate) fn of_name(name: &str) -> Option<Unit> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Unit::Microsecond,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Unit::Millisecond,
            "second" | "seconds" | "s" | "sec" | "secs" => Unit::Second,
            "minute" | "minutes" | "m" | "min" | "mins" => Unit::Minute,
            "hour" | "hours" | "h" | "hr" | "hrs" => Unit::Hour,
            "day" | "days" | "d" => Unit::Day,
            "week" | "weeks" | "w" => Unit::Week,
            "month" | "months" | "mon" | "mons" => Unit::Month,
            "quarter" | "quarters" => Unit::Quarter,
            "year" | "years" | "y" | "yr" | "yrs" => Unit::Year,
            "decade" | "decades" | "dec" | "decs" => Unit::Decade,
            "century" | "centuries" | "c" | "cent" => Unit::Century,
            _ => return None,
        })
    }

    /// The names, for messages.
    pub(crate) const NAMES: &'static str = "microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, decade, century";

    /// Whether it is a day or more.
    pub(crate) fn is_of_days(self) -> bool {
        !matches!(
            self,
            Unit::Microsecond | Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour
        )
    }

    /// Microseconds of units below a day.
    fn micros(self) -> i64 {
        match self {
            Unit::Microsecond => 1,
            Unit::Millisecond => 1_000,
            Unit::Second => 1_000_000,
            Unit::Minute => 60_000_000,
            Unit::Hour => 3_600_000_000,
            _ => DAY_SECONDS * 1_000_000,
        }
    }

    /// The first day of the unit that a day is in.
    fn first_day(self, day: i32) -> i32 {
        let Civil { year, month, .. } = Civil::of_days(day);
        let first = |year: i32, month: u8| days_of(Civil { year, month, day: 1 });
        match self {
            // 1970-01-01 was a Thursday.
            Unit::Week => day - (day + 3).rem_euclid(7),
            Unit::Month => first(year, month),
            Unit::Quarter => first(year, (month - 1) / 3 * 3 + 1),
            Unit::Year => first(year, 1),
            Unit::Decade => first(year.div_euclid(10) * 10, 1),
            Unit::Century => first((year - 1).div_euclid(100) * 100 + 1, 1),
            _ => day,
        }
    }

    /// The beginning of the unit that a day or a moment is in, of the same kind.
    pub(crate) fn truncate(self, value: i64, kind: &Kind) -> i64 {
        let Kind::Timestamp(precision) = kind else {
            return self.first_day(value as i32).into();
        };
        let day = precision.ticks() * DAY_SECONDS;
        if self.is_of_days() {
            let first = self.first_day(value.div_euclid(day) as i32);
            return i64::from(first).saturating_mul(day);
        }
        let unit = self.micros() as i128 * i128::from(precision.ticks()) / 1_000_000;
        match unit {
            0 | 1 => value,
            unit => value - value.rem_euclid(unit as i64),
        }
    }

    /// How many units have begun since 1970: the difference of two is the boundaries between them.
    pub(crate) fn count(self, value: i64, kind: &Kind) -> i64 {
        let ticks_of_day = match kind {
            Kind::Timestamp(precision) => precision.ticks() * DAY_SECONDS,
            _ => 1,
        };
        let day = value.div_euclid(ticks_of_day);
        let Civil { year, month, .. } = Civil::of_days(day as i32);
        let (year, month) = (i64::from(year), i64::from(month));
        match self {
            Unit::Day => day,
            Unit::Week => (day + 3).div_euclid(7),
            Unit::Month => year * 12 + month,
            Unit::Quarter => year * 4 + (month - 1) / 3,
            Unit::Year => year,
            Unit::Decade => year.div_euclid(10),
            Unit::Century => (year - 1).div_euclid(100),
            unit => {
                let micros = match kind {
                    Kind::Timestamp(precision) => micros_of(value, *precision),
                    _ => i128::from(value) * i128::from(DAY_SECONDS) * 1_000_000,
                };
                micros.div_euclid(unit.micros().into()) as i64
            }
        }
    }
}

/// Microseconds since 1970, without their fraction.
fn micros_of(ticks: i64, precision: Precision) -> i128 {
    (i128::from(ticks) * 1_000_000).div_euclid(precision.ticks().into())
}

impl Field {
    pub(crate) fn of_name(name: &str) -> Option<Field> {
        Some(match name.to_ascii_lowercase().as_str() {
            "isoweek" => Field::Week,
            "isoyear" => Field::IsoYear,
            "dow" | "dayofweek" => Field::DayOfWeek,
            "isodow" => Field::IsoDayOfWeek,
            "doy" | "dayofyear" => Field::DayOfYear,
            "epoch" => Field::Epoch,
            other => match Unit::of_name(other)? {
                Unit::Microsecond => Field::Microsecond,
                Unit::Millisecond => Field::Millisecond,
                Unit::Second => Field::Second,
                Unit::Minute => Field::Minute,
                Unit::Hour => Field::Hour,
                Unit::Day => Field::Day,
                Unit::Week => Field::Week,
                Unit::Month => Field::Month,
                Unit::Quarter => Field::Quarter,
                Unit::Year => Field::Year,
                Unit::Decade => Field::Decade,
                Unit::Century => Field::Century,
            },
        })
    }

    /// The names, for messages.
    pub(crate) const NAMES: &'static str = "year, quarter, month, week, isoyear, day, dow, isodow, doy, \
         hour, minute, second, millisecond, microsecond, epoch, decade, century";

    /// Seconds since 1970.
    pub(crate) fn seconds(self, value: i64, kind: &Kind) -> f64 {
        debug_assert_eq!(self, Field::Epoch);
        match kind {
            Kind::Timestamp(precision) => value as f64 / precision.ticks() as f64,
            _ => (value * DAY_SECONDS) as f64,
        }
    }

    /// The number of a day or a moment.
    pub(crate) fn of(self, value: i64, kind: &Kind) -> i64 {
        let (day, of_day, precision) = match kind {
            Kind::Timestamp(precision) => {
                let day = precision.ticks() * DAY_SECONDS;
                (value.div_euclid(day) as i32, value.rem_euclid(day), *precision)
            }
            _ => (value as i32, 0, Precision::Seconds),
        };
        let second = of_day / precision.ticks();
        // Of the minute, in microseconds.
        let micros = micros_of(of_day % (60 * precision.ticks()), precision) as i64;
        let Civil { year, month, day: of_month } = Civil::of_days(day);
        let year_day = |day: i32| day - days_of(Civil { month: 1, day: 1, ..Civil::of_days(day) });
        // The week's Thursday is in the year of the week.
        let thursday = day - (day + 3).rem_euclid(7) + 3;
        match self {
            Field::Year => year.into(),
            Field::Quarter => i64::from((month - 1) / 3 + 1),
            Field::Month => month.into(),
            Field::Week => i64::from(year_day(thursday) / 7 + 1),
            Field::IsoYear => Civil::of_days(thursday).year.into(),
            Field::Day => of_month.into(),
            Field::DayOfWeek => i64::from((day + 4).rem_euclid(7)),
            Field::IsoDayOfWeek => i64::from((day + 3).rem_euclid(7) + 1),
            Field::DayOfYear => i64::from(year_day(day) + 1),
            Field::Hour => second / 3_600,
            Field::Minute => second / 60 % 60,
            Field::Second => second % 60,
            Field::Millisecond => micros / 1_000,
            Field::Microsecond => micros,
            Field::Epoch => unreachable!("it has a fraction"),
            Field::Decade => year.div_euclid(10).into(),
            Field::Century => i64::from((year - 1).div_euclid(100) + 1),
        }
    }
}

impl Interval {
    /// Reads `3 days`, `1 year 2 months`, or a number of a unit that stands behind it.
    pub(crate) fn of_text(text: &str, unit: Option<Unit>) -> Result<Interval, String> {
        let mut interval = Interval::default();
        let mut words = text.split_whitespace().peekable();
        let wrong =
            || format!("`{text}` is no interval: write interval '3 days', or interval 3 day");
        if words.peek().is_none() {
            return Err(wrong());
        }
        while let Some(word) = words.next() {
            let digits = word.find(|letter: char| letter.is_alphabetic()).unwrap_or(word.len());
            let number: i64 = word[..digits].parse().map_err(|_| wrong())?;
            let name = match &word[digits..] {
                "" => words.next(),
                name => Some(name),
            };
            let unit = match name {
                Some(name) => Unit::of_name(name).ok_or_else(wrong)?,
                None => unit.ok_or_else(wrong)?,
            };
            let more = Interval::of(number, unit).ok_or_else(wrong)?;
            interval = interval.plus(&more).ok_or_else(wrong)?;
        }
        Ok(interval)
    }

    fn of(number: i64, unit: Unit) -> Option<Interval> {
        let none = Interval::default();
        let months = |each: i64| Some(Interval { months: number.checked_mul(each)?, ..none });
        let days = |each: i64| Some(Interval { days: number.checked_mul(each)?, ..none });
        match unit {
            Unit::Century => months(1_200),
            Unit::Decade => months(120),
            Unit::Year => months(12),
            Unit::Quarter => months(3),
            Unit::Month => months(1),
            Unit::Week => days(7),
            Unit::Day => days(1),
            unit => Some(Interval { micros: number.checked_mul(unit.micros())?, ..none }),
        }
    }

    fn plus(&self, other: &Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    /// The span backwards.
    pub(crate) fn negated(&self) -> Interval {
        let Interval { months, days, micros } = self;
        Interval {
            months: months.saturating_neg(),
            days: days.saturating_neg(),
            micros: micros.saturating_neg(),
        }
    }

    /// The moment, or the day, that is so far behind another: months first, whose last day stands for days that
    /// they have not. `None` if there is none in range.
    pub(crate) fn add_to(&self, value: i64, kind: &Kind) -> Option<i64> {
        let (day, of_day, ticks_of_day) = match kind {
            Kind::Timestamp(precision) => {
                let day = precision.ticks() * DAY_SECONDS;
                (value.div_euclid(day), value.rem_euclid(day), day)
            }
            _ => (value, 0, 1),
        };
        let Civil { year, month, day: of_month } = Civil::of_days(i32::try_from(day).ok()?);
        let months = (i64::from(year) * 12 + i64::from(month) - 1).checked_add(self.months)?;
        let year = i32::try_from(months.div_euclid(12)).ok()?;
        let month = months.rem_euclid(12) as u8 + 1;
        if year.unsigned_abs() > 5_000_000 {
            return None;
        }
        let of_month = of_month.min(Civil::days_of_month(year, month));
        let day =
            i64::from(days_of(Civil { year, month, day: of_month })).checked_add(self.days)?;
        match kind {
            Kind::Timestamp(precision) => {
                let ticks = i128::from(self.micros) * i128::from(precision.ticks()) / 1_000_000;
                let ticks = i128::from(day) * i128::from(ticks_of_day) + i128::from(of_day) + ticks;
                i64::try_from(ticks).ok()
            }
            _ => i32::try_from(day).ok().map(i64::from),
        }
    }
}

/// The last day of the month of a day or a moment.
pub(crate) fn last_day(value: i64, kind: &Kind) -> i64 {
    let day = match kind {
        Kind::Timestamp(precision) => value.div_euclid(precision.ticks() * DAY_SECONDS),
        _ => value,
    };
    let Civil { year, month, .. } = Civil::of_days(day as i32);
    days_of(Civil { year, month, day: Civil::days_of_month(year, month) }).into()
}

/// Origins of spans of months, and of spans of a fixed length, a Monday: 2000-01-01 and 2000-01-03.
const FIRST_MONTH: i64 = 2_000 * 12;
const FIRST_DAY: i64 = 10_959;

impl Interval {
    /// True of a span with a length, which either is whole months or the same for all spans.
    pub(crate) fn is_span(&self) -> bool {
        let is_fixed = self.months == 0 && self.days >= 0 && self.micros >= 0;
        let is_of_months = self.months > 0 && self.days == 0 && self.micros == 0;
        *self != Interval::default() && (is_fixed || is_of_months)
    }

    /// True where days alone, or months, make the span.
    pub(crate) fn is_of_days(&self) -> bool {
        self.micros == 0
    }

    /// True where the part below a day is a whole number of ticks.
    pub(crate) fn is_whole_in(&self, precision: Precision) -> bool {
        // Of a tick; none of a nanosecond.
        let micros = 1_000_000 / precision.ticks();
        micros == 0 || self.micros % micros == 0
    }

    /// The beginning of the span of this length that a day or a moment is in; spans are counted
    /// from an origin. The span is a whole number of ticks.
    pub(crate) fn bucket_of(&self, value: i64, origin: Option<i64>, kind: &Kind) -> Option<i64> {
        let ticks_of_day = match kind {
            Kind::Timestamp(precision) => precision.ticks() * DAY_SECONDS,
            _ => 1,
        };
        if self.months > 0 {
            let Civil { year, month, .. } = Civil::of_days(value.div_euclid(ticks_of_day) as i32);
            let month = i64::from(year) * 12 + i64::from(month) - 1;
            let first = month - (month - FIRST_MONTH).rem_euclid(self.months);
            let (year, month) = (i32::try_from(first.div_euclid(12)).ok()?, first.rem_euclid(12));
            let day = days_of(Civil { year, month: month as u8 + 1, day: 1 });
            return i64::from(day).checked_mul(ticks_of_day);
        }
        let of_micros = match kind {
            Kind::Timestamp(precision) => {
                i128::from(self.micros) * i128::from(precision.ticks()) / 1_000_000
            }
            _ => 0,
        };
        let span = i128::from(self.days) * i128::from(ticks_of_day) + of_micros;
        debug_assert!(span > 0, "{self:?} is a whole number of ticks");
        let origin = match origin {
            Some(origin) => i128::from(origin),
            None => i128::from(FIRST_DAY) * i128::from(ticks_of_day),
        };
        let value = i128::from(value);
        i64::try_from(value - (value - origin).rem_euclid(span)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_schema::{date_of_text, timestamp_of_text};

    const MICROS: Kind = Kind::Timestamp(Precision::Micros);

    fn day(text: &str) -> i64 {
        date_of_text(text).expect("a day").into()
    }

    fn moment(text: &str) -> i64 {
        timestamp_of_text(text, Precision::Micros).expect("a moment")
    }

    #[test]
    fn moments_are_truncated_to_units() {
        let at = moment("2013-11-20 17:45:31.123456");
        for (unit, expected) in [
            ("microsecond", "2013-11-20 17:45:31.123456"),
            ("millisecond", "2013-11-20 17:45:31.123"),
            ("second", "2013-11-20 17:45:31"),
            ("minute", "2013-11-20 17:45"),
            ("hour", "2013-11-20 17:00"),
            ("day", "2013-11-20"),
            ("week", "2013-11-18"),
            ("month", "2013-11-01"),
            ("quarter", "2013-10-01"),
            ("year", "2013-01-01"),
            ("decade", "2010-01-01"),
            ("century", "2001-01-01"),
        ] {
            let unit = Unit::of_name(unit).expect("a unit");
            assert_eq!(unit.truncate(at, &MICROS), moment(expected), "{unit:?}");
            if unit.is_of_days() {
                assert_eq!(unit.truncate(day("2013-11-20"), &Kind::Date), day(&expected[..10]));
            }
        }
        assert_eq!(
            Unit::Hour.truncate(moment("1969-12-31 23:30"), &MICROS),
            moment("1969-12-31 23:00")
        );
    }

    #[test]
    fn moments_have_numbers() {
        let at = moment("2013-12-30 17:45:31.123456");
        for (field, expected) in [
            ("year", 2013),
            ("quarter", 4),
            ("month", 12),
            ("week", 1),
            ("isoyear", 2014),
            ("day", 30),
            ("dow", 1),
            ("isodow", 1),
            ("doy", 364),
            ("hour", 17),
            ("minute", 45),
            ("second", 31),
            ("millisecond", 31_123),
            ("microsecond", 31_123_456),
            ("decade", 201),
            ("century", 21),
        ] {
            assert_eq!(
                Field::of_name(field).expect("a field").of(at, &MICROS),
                expected,
                "{field}"
            );
        }
    }

    #[test]
    fn spans_are_added() {
        let add = |text: &str, to: &str| {
            let interval = Interval::of_text(text, None).expect("an interval");
            interval.add_to(moment(to), &MICROS)
        };
        assert_eq!(add("1 month", "2013-01-31 10:00"), Some(moment("2013-02-28 10:00")));
        assert_eq!(add("1 year 2 days", "2012-02-29"), Some(moment("2013-03-02")));
        assert_eq!(add("-36 hours", "2013-01-01"), Some(moment("2012-12-30 12:00")));
        assert_eq!(Interval::of_text("3", Some(Unit::Week)).map(|it| it.days), Ok(21));
        let days = Interval::of_text("3 days", None).expect("an interval");
        assert_eq!(days.negated().add_to(day("2013-01-01"), &Kind::Date), Some(day("2012-12-29")));
        assert_eq!(add("1000000000 years", "2013-01-01"), None);
        assert!(Interval::of_text("soon", None).is_err() && Interval::of_text("", None).is_err());
    }
}
