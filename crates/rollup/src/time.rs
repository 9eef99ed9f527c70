//! Times, intervals and granularities.
//!
//! A time is a count of milliseconds since 1970-01-01T00:00:00Z.

pub(crate) mod granularity;
pub(crate) mod interval;
pub(crate) mod timestamp;

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::{Error, Result};

/// The first time that a row may have: year 0.
pub(crate) const TIME_MIN: i64 = -62_167_219_200_000;
/// The first time beyond those that a row may have, in the year 8919: keys have 48 bits for it.
pub(crate) const TIME_END: i64 = TIME_MIN + (1 << 48);

/// The present by the system's clock, in milliseconds.
pub(crate) fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A time zone by its name in the IANA database, or `UTC`, or an offset such as `+02:00`.
pub(crate) fn time_zone(name: &str) -> Result<TimeZone> {
    if matches!(name, "UTC" | "Z" | "Etc/UTC") {
        return Ok(TimeZone::UTC);
    }
    if let Some(offset) = fixed_offset(name) {
        return Ok(TimeZone::fixed(offset));
    }
    TimeZone::get(name).map_err(|_| {
        Error::Time(format!(
            "there is no time zone `{name}`: name one as the IANA database does, such as \
             Europe/Berlin, or an offset such as +02:00"
        ))
    })
}

/// The name by which [`time_zone`] finds a zone.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    match zone.to_fixed_offset() {
        Ok(offset) if zone.iana_name().is_none() => {
            let (sign, seconds) = match offset.seconds() {
                seconds @ ..0 => ('-', -seconds),
                seconds => ('+', seconds),
            };
            format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)
        }
        _ => zone.iana_name().unwrap_or("UTC").to_owned(),
    }
}

fn fixed_offset(name: &str) -> Option<jiff::tz::Offset> {
    let (sign, digits) = match name.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if !(0..=18).contains(&hours) || !(0..60).contains(&minutes) {
        return None;
    }
    jiff::tz::Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

/// The time as ISO 8601 writes it, with milliseconds, in a time zone.
pub(crate) fn iso(time: i64, zone: &TimeZone) -> String {
    let Ok(stamp) = Timestamp::from_millisecond(time) else {
        return time.to_string();
    };
    let zoned = stamp.to_zoned(zone.clone());
    let offset = zoned.offset().seconds();
    let zone = match offset {
        0 => "Z".to_owned(),
        _ => {
            let (sign, offset) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
            format!("{sign}{:02}:{:02}", offset / 3600, offset / 60 % 60)
        }
    };
    format!("{}{zone}", zoned.strftime("%Y-%m-%dT%H:%M:%S%.3f"))
}
