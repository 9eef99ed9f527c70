//! Days and moments: the proleptic Gregorian calendar, without leap seconds.

use std::fmt::Write;

use crate::Precision;

/// Seconds of a day.
pub const DAY_SECONDS: i64 = 86_400;

/// A day by its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is the one before 1.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Civil {
    /// The day that is so many days behind 1970-01-01.
    ///
    /// ```
    /// use sapwood::schema::Civil;
    ///
    /// assert_eq!(Civil::of_days(-1), Civil { year: 1969, month: 12, day: 31 });
    /// ```
    #[inline]
    pub fn of_days(days: i32) -> Civil {
        // Howard Hinnant's `civil_from_days`: years begin in March, so that leap days come last.
        let shifted = i64::from(days) + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * from_march + 2) / 5 + 1) as u8;
        let month = (if from_march < 10 { from_march + 3 } else { from_march - 9 }) as u8;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil { year: year as i32, month, day }
    }

    /// The number of days of its month.
    pub fn days_of_month(year: i32, month: u8) -> u8 {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        match month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u8::from(is_leap),
            _ => 31,
        }
    }
}

/// The days from 1970-01-01 to a day, which must be one of the calendar.
#[inline]
pub fn days_of(civil: Civil) -> i32 {
    let year = i64::from(civil.year) - i64::from(civil.month <= 2);
    let month = i64::from(civil.month);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + i64::from(civil.day) - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era - 719_468) as i32
}

/// Years of dates in text: as many as four digits have, and five behind a sign.
const YEARS: std::ops::RangeInclusive<i32> = -99_999..=99_999;

/// Takes `2013-01-31` off the front of a text.
fn take_date(text: &[u8]) -> Option<(i32, &[u8])> {
    let (sign, rest) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let is_signed = rest.len() < text.len();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits != 4 && !(is_signed && digits == 5) {
        return None;
    }
    let year = sign * number(&rest[..digits])?;
    let [b'-', m0, m1, b'-', d0, d1, rest @ ..] = &rest[digits..] else { return None };
    let (month, day) = (number(&[*m0, *m1])? as u8, number(&[*d0, *d1])? as u8);
    let is_day = YEARS.contains(&year)
        && (1..=12).contains(&month)
        && (1..=Civil::days_of_month(year, month)).contains(&day);
    is_day.then(|| (days_of(Civil { year, month, day }), rest))
}

fn number(digits: &[u8]) -> Option<i32> {
    let mut number = 0_i32;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i32::from(byte - b'0');
    }
    Some(number)
}

/// Reads `2013-01-31`, as days since 1970.
///
/// ```
/// use sapwood::schema::date_of_text;
///
/// assert_eq!(date_of_text("1970-01-02"), Some(1));
/// assert_eq!(date_of_text("2013-02-29"), None);
/// ```
pub fn date_of_text(text: &str) -> Option<i32> {
    take_date(text.as_bytes()).filter(|(_, rest)| rest.is_empty()).map(|(days, _)| days)
}

/// Reads `2013-01-31 10:00:00.25`, as ticks since 1970: a `T` may stand for the space, the seconds and their
/// fraction may be left away, a day alone is its midnight, and behind it `Z`, `UTC` or an offset as `+02:00` may
/// stand. `None` if it is no moment, has digits that the precision has not, or lies beyond 64 bits.
///
/// ```
/// use sapwood::schema::{Precision, timestamp_of_text};
///
/// assert_eq!(timestamp_of_text("1970-01-01T00:01:00.5Z", Precision::Millis), Some(60_500));
/// assert_eq!(timestamp_of_text("1970-01-01 02:00+02:00", Precision::Seconds), Some(0));
/// ```
pub fn timestamp_of_text(text: &str, precision: Precision) -> Option<i64> {
    let (days, rest) = take_date(text.as_bytes())?;
    let (mut seconds, mut rest, mut nanos) = (0_i64, rest, 0_i64);
    if let [b' ' | b'T' | b't', h0, h1, b':', m0, m1, behind @ ..] = rest {
        let (hour, minute) = (number(&[*h0, *h1])?, number(&[*m0, *m1])?);
        rest = behind;
        let mut second = 0;
        if let [b':', s0, s1, behind @ ..] = rest {
            second = number(&[*s0, *s1])?;
            rest = behind;
            if let [b'.', behind @ ..] = rest {
                let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (fraction, behind) = behind.split_at(digits);
                let kept = &fraction[..digits.min(9)];
                let lost = |at: usize| fraction.iter().skip(at).any(|&digit| digit != b'0');
                if digits == 0 || lost(precision.digits()) {
                    return None;
                }
                nanos = i64::from(number(kept)?) * 10_i64.pow(9 - kept.len() as u32);
                rest = behind;
            }
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    }
    seconds -= match rest {
        b"" | b"Z" | b"z" | b" UTC" | b"UTC" => 0,
        [sign @ (b'+' | b'-'), h0, h1, more @ ..] => {
            let minutes = match more {
                [] => 0,
                [b':', m0, m1] | [m0, m1] => number(&[*m0, *m1])?,
                _ => return None,
            };
            let hours = number(&[*h0, *h1])?;
            if hours > 18 || minutes > 59 {
                return None;
            }
            let offset = i64::from(hours * 3_600 + minutes * 60);
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    let ticks = i128::from(i64::from(days) * DAY_SECONDS + seconds) * i128::from(precision.ticks());
    let fraction = nanos / (1_000_000_000 / precision.ticks());
    i64::try_from(ticks + i128::from(fraction)).ok()
}

/// Writes a day as [`date_of_text`] reads it.
pub fn date_to_text(days: i32, out: &mut String) {
    let Civil { year, month, day } = Civil::of_days(days);
    let written = match year {
        0..=9_999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{year:+06}-{month:02}-{day:02}"),
    };
    written.expect("a string takes everything");
}

/// Writes a moment as [`timestamp_of_text`] reads it: without a fraction where it is zero.
pub fn timestamp_to_text(ticks: i64, precision: Precision, out: &mut String) {
    let second = ticks.div_euclid(precision.ticks());
    let fraction = ticks.rem_euclid(precision.ticks());
    let (day, second) = (second.div_euclid(DAY_SECONDS), second.rem_euclid(DAY_SECONDS));
    date_to_text(day as i32, out);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    write!(out, " {hour:02}:{minute:02}:{second:02}").expect("a string takes everything");
    if fraction != 0 {
        let width = precision.digits();
        write!(out, ".{fraction:0width$}").expect("a string takes everything");
        out.truncate(out.trim_end_matches('0').len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(days: i32) -> String {
        let mut out = String::new();
        date_to_text(days, &mut out);
        out
    }

    #[test]
    fn days_are_those_of_another_calendar() {
        let first = jiff::civil::date(-9_999, 1, 1);
        let epoch = jiff::civil::date(1970, 1, 1);
        let mut date = first;
        while let Ok(next) = date.checked_add(jiff::Span::new().days(97)) {
            let days = date.since((jiff::Unit::Day, epoch)).expect("it is in range").get_days();
            let civil = Civil::of_days(days);
            let expected = (i32::from(date.year()), date.month() as u8, date.day() as u8);
            assert_eq!((civil.year, civil.month, civil.day), expected);
            assert_eq!(days_of(civil), days);
            assert_eq!(date_of_text(&text(days)), Some(days));
            assert_eq!(
                i32::from(Civil::days_of_month(civil.year, civil.month)),
                i32::from(date.days_in_month())
            );
            date = next;
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "2013",
            "2013-1-1",
            "2013-13-01",
            "2013-00-01",
            "2013-02-29",
            "1900-02-29",
            "2013-01-32",
            "2013-01-01x",
            "99999-01-01",
            "20130101",
        ] {
            assert_eq!(date_of_text(text), None, "{text}");
        }
        assert!(date_of_text("2000-02-29").is_some() && date_of_text("-0001-02-28").is_some());
    }

    #[test]
    fn moments_are_read_and_written() {
        for (written, precision, ticks, canonical) in [
            ("1970-01-01", Precision::Seconds, 0, "1970-01-01 00:00:00"),
            ("1970-01-01T00:00:01Z", Precision::Micros, 1_000_000, "1970-01-01 00:00:01"),
            ("1969-12-31 23:59:59.75", Precision::Millis, -250, "1969-12-31 23:59:59.75"),
            (
                "2013-01-01 10:00",
                Precision::Nanos,
                1_357_034_400_000_000_000,
                "2013-01-01 10:00:00",
            ),
            ("1970-01-01 00:00:00+0130", Precision::Seconds, -5_400, "1969-12-31 22:30:00"),
            ("1970-01-01 00:00:00-02", Precision::Seconds, 7_200, "1970-01-01 02:00:00"),
            ("1970-01-01 00:00:00.000000001", Precision::Nanos, 1, "1970-01-01 00:00:00.000000001"),
            ("1970-01-01 00:00:00.500000000000", Precision::Millis, 500, "1970-01-01 00:00:00.5"),
        ] {
            assert_eq!(timestamp_of_text(written, precision), Some(ticks), "{written}");
            let mut out = String::new();
            timestamp_to_text(ticks, precision, &mut out);
            assert_eq!(out, canonical);
        }
        for text in [
            "1970-01-01 24:00:00",
            "1970-01-01 00:60",
            "1970-01-01 00:00:60",
            "1970-01-01 0:00",
            "1970-01-01 00:00:00.",
            "1970-01-01 00:00:00.0001",
            "1970-01-01 00:00:00+19:00",
            "1970-01-01 00:00:00 CET",
        ] {
            assert_eq!(timestamp_of_text(text, Precision::Millis), None, "{text}");
        }
        assert_eq!(timestamp_of_text("9999-01-01", Precision::Nanos), None);
    }
}
