//! Times as texts and numbers.

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::{TIME_END, TIME_MIN};
use crate::error::{Error, Result};
use crate::value::Value;

/// How the column of times writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampFormat {
    /// ISO 8601 texts and milliseconds.
    #[default]
    Auto,
    /// ISO 8601, with or without a time of day and an offset; UTC without.
    Iso,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// Microseconds since 1970.
    Micros,
    /// Nanoseconds since 1970.
    Nanos,
}

impl TimestampFormat {
    /// By the name that a schema has for it: `auto`, `iso`, `posix`, `millis`, `micro`, `nano`.
    ///
    /// # Errors
    /// [`Error::Schema`] if there is none.
    pub fn parse(name: &str) -> Result<TimestampFormat> {
        Ok(match name {
            "auto" => TimestampFormat::Auto,
            "iso" => TimestampFormat::Iso,
            "posix" | "seconds" => TimestampFormat::Seconds,
            "millis" => TimestampFormat::Millis,
            "micro" | "micros" => TimestampFormat::Micros,
            "nano" | "nanos" => TimestampFormat::Nanos,
            _ => {
                return Err(Error::Schema(format!(
                    "`timestampSpec.format` is `{name}`: say auto, iso, posix, millis, micro or nano"
                )));
            }
        })
    }

    /// The name that a schema has for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TimestampFormat::Auto => "auto",
            TimestampFormat::Iso => "iso",
            TimestampFormat::Seconds => "posix",
            TimestampFormat::Millis => "millis",
            TimestampFormat::Micros => "micro",
            TimestampFormat::Nanos => "nano",
        }
    }

    /// Reads a time.
    pub(crate) fn read(self, value: &Value<'_>) -> Result<i64> {
        let time = match (self, value) {
            (TimestampFormat::Auto | TimestampFormat::Iso, Value::Text(text)) => {
                let is_number = self == TimestampFormat::Auto
                    && text.bytes().enumerate().all(|(at, byte)| {
                        byte.is_ascii_digit() || (at == 0 && byte == b'-' && text.len() > 1)
                    })
                    && text.len() > 4;
                if is_number { self.scaled(value)? } else { parse_iso(text)? }
            }
            (TimestampFormat::Iso, _) => {
                return Err(Error::Time(format!("`{value}` is no ISO 8601 text")));
            }
            _ => self.scaled(value)?,
        };
        in_range(time)
    }

    /// Reads a time that is a number.
    #[inline]
    pub(crate) fn read_long(self, value: i64) -> Result<i64> {
        in_range(match self {
            TimestampFormat::Auto | TimestampFormat::Millis => value,
            TimestampFormat::Seconds => value.saturating_mul(1_000),
            TimestampFormat::Micros => value.div_euclid(1_000),
            TimestampFormat::Nanos => value.div_euclid(1_000_000),
            TimestampFormat::Iso => {
                return Err(Error::Time(format!("`{value}` is no ISO 8601 text")));
            }
        })
    }

    fn scaled(self, value: &Value<'_>) -> Result<i64> {
        if let (TimestampFormat::Seconds, Value::Double(seconds)) = (self, value) {
            return Ok((seconds * 1_000.0) as i64);
        }
        match value.to_long() {
            Ok(Some(number)) => self.read_long(number),
            Ok(None) => Err(Error::Time("there is no time".to_owned())),
            Err(_) => Err(Error::Time(format!("`{value}` is no number of a time"))),
        }
    }
}

#[inline]
fn in_range(time: i64) -> Result<i64> {
    match (TIME_MIN..TIME_END).contains(&time) {
        true => Ok(time),
        false => Err(Error::Time(format!("the time {time} is outside of the years 0 to 8918"))),
    }
}

/// Reads an ISO 8601 time: a year, a month, a date, or a date and a time of day, with an offset or in
/// UTC.
pub(crate) fn parse_iso(text: &str) -> Result<i64> {
    let text = text.trim();
    if let Some(time) = parse_plain(text.as_bytes()) {
        return Ok(time);
    }
    let filled = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    if let Ok(stamp) = filled.parse::<Timestamp>() {
        return Ok(stamp.as_millisecond());
    }
    let refused =
        || Error::Time(format!("`{text}` is no ISO 8601 time, such as 2013-05-06T07:08Z"));
    let filled = filled.strip_suffix('Z').unwrap_or(&filled);
    let civil: DateTime = filled.parse().map_err(|_| refused())?;
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| refused())?;
    Ok(zoned.timestamp().as_millisecond())
}

/// The form that programs write most: `2013-05-06T07:08:09.123Z`, with or without a fraction.
fn parse_plain(text: &[u8]) -> Option<i64> {
    if text.len() < 20 || text[text.len() - 1] != b'Z' {
        return None;
    }
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, byte)| text[at] != byte) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0_i64, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let millis = match &text[19..text.len() - 1] {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            let first = digits.iter().chain(b"00").take(3);
            if !digits.iter().all(u8::is_ascii_digit) {
                return None;
            }
            first.fold(0, |number, byte| number * 10 + i64::from(byte - b'0'))
        }
        _ => return None,
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let in_era = year.rem_euclid(400);
    let days = year.div_euclid(400) * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year
        - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_way_and_the_calendar_agree() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2013-05-06T07:08:09.123Z",
            "2013-05-06T07:08:09.1Z",
            "2013-05-06T07:08:09.123456789Z",
            "2000-02-29T23:59:59.999Z",
            "1900-03-01T00:00:00.001Z",
            "0000-01-01T00:00:00Z",
        ] {
            let quick = parse_plain(text.as_bytes()).expect(text);
            let stamp: Timestamp = text.parse().expect(text);
            assert_eq!(quick, stamp.as_millisecond(), "{text}");
        }
        for refused in ["2013-02-29T00:00:00Z", "2013-13-01T00:00:00Z", "2013-01-01T24:00:00Z"] {
            assert!(parse_iso(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn each_format_reads_its_own() {
        let read = |name: &str, value: Value<'_>| {
            TimestampFormat::parse(name).and_then(|format| format.read(&value)).ok()
        };
        let time = Some(1_367_824_089_123);
        assert_eq!(read("auto", Value::text("2013-05-06T07:08:09.123Z")), time);
        assert_eq!(read("auto", Value::text("2013-05-06T09:08:09.123+02:00")), time);
        assert_eq!(read("auto", Value::text("1367824089123")), time);
        assert_eq!(read("auto", Value::Long(1_367_824_089_123)), time);
        assert_eq!(read("posix", Value::Double(1_367_824_089.123)), time);
        assert_eq!(read("micro", Value::Long(1_367_824_089_123_456)), time);
        assert_eq!(read("nano", Value::Long(1_367_824_089_123_456_789)), time);
        assert_eq!(read("iso", Value::text("2013-05-06 07:08:09.123")), time);
        for date in ["2013", "2013-01", "2013-01-01", "2013-01-01T00:00Z"] {
            assert_eq!(read("auto", Value::text(date)), Some(1_356_998_400_000), "{date}");
        }
        for refused in [Value::Null, Value::text(""), Value::text("x"), Value::Long(i64::MAX)] {
            assert_eq!(read("auto", refused.clone()), None, "{refused}");
        }
        assert_eq!(read("iso", Value::Long(0)), None);
        assert!(TimestampFormat::parse("yy").is_err());
    }
}
