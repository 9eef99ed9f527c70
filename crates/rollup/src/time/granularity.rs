//! Granularities: how times fall into buckets.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::{TIME_END, TIME_MIN, iso, time_zone, timestamp, zone_name};
use crate::error::{Error, Result};

/// How times fall into buckets.
///
/// A bucket begins where the clock of the time zone says so. On the day of a change to or from
/// daylight-saving time, days and longer units are one bucket each, however many hours they have; units
/// of several hours go by what the clock shows, so a bucket may last an hour more or less; hours and
/// shorter units are counted on, so the hour that the clock shows twice is two buckets.
///
/// ```
/// use sapwood::rollup::Granularity;
///
/// let day = Granularity::parse("P1D")?.in_zone("America/New_York")?;
/// // The day of 23 hours on which summer began, 2013-03-10.
/// let (start, end) = day.bucket(1_362_942_000_000);
/// assert_eq!((end - start) / 3_600_000, 23);
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Granularity(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// Each millisecond is a bucket.
    None,
    /// All of time is one bucket.
    All,
    /// Buckets of one length, counted from an origin.
    Fixed { length: i64, origin: i64 },
    /// Buckets of the calendar.
    Calendar { unit: Unit, count: i64, zone: TimeZone, origin: Option<DateTime> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Hour,
    Day,
    Month,
}

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;

impl Granularity {
    /// Each millisecond is a bucket.
    pub const NONE: Granularity = Granularity(Kind::None);
    /// All of time is one bucket.
    pub const ALL: Granularity = Granularity(Kind::All);

    /// By its name (`none`, `all`, `second`, `minute`, `five_minute`, `ten_minute`, `fifteen_minute`,
    /// `thirty_minute`, `hour`, `six_hour`, `eight_hour`, `day`, `week`, `month`, `quarter`, `year`), or
    /// an ISO 8601 period such as `PT15M` or `P1W`; in UTC. Weeks begin on Monday.
    ///
    /// # Errors
    /// [`Error::Time`] if it is neither.
    pub fn parse(text: &str) -> Result<Granularity> {
        let name = text.to_ascii_lowercase();
        let period = match name.as_str() {
            "none" => return Ok(Granularity::NONE),
            "all" => return Ok(Granularity::ALL),
            "second" => "PT1S",
            "minute" => "PT1M",
            "five_minute" => "PT5M",
            "ten_minute" => "PT10M",
            "fifteen_minute" => "PT15M",
            "thirty_minute" => "PT30M",
            "hour" => "PT1H",
            "six_hour" => "PT6H",
            "eight_hour" => "PT8H",
            "day" => "P1D",
            "week" => "P1W",
            "month" => "P1M",
            "quarter" => "P3M",
            "year" => "P1Y",
            _ => text,
        };
        Granularity::period(period)
    }

    /// Buckets of so many milliseconds, counted from an origin.
    ///
    /// # Errors
    /// [`Error::Time`] if the length is not above zero.
    pub fn duration(length: i64, origin: i64) -> Result<Granularity> {
        match length > 0 {
            true => Ok(Granularity(Kind::Fixed { length, origin })),
            false => Err(Error::Time(format!("a bucket of {length} ms has no length"))),
        }
    }

    fn period(text: &str) -> Result<Granularity> {
        let refused = |why: &str| {
            Error::Time(format!(
                "there is no granularity `{text}`: {why}; say none, all, second, minute, hour, day, \
                 week, month, quarter, year, or an ISO 8601 period of one unit such as PT15M"
            ))
        };
        let span: Span = text.parse().map_err(|_| refused("it is neither a name nor a period"))?;
        let months = i64::from(span.get_years()) * 12 + i64::from(span.get_months());
        let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
        let seconds =
            i64::from(span.get_hours()) * 3600 + span.get_minutes() * 60 + span.get_seconds();
        let (unit, count) = match (months, days, seconds) {
            (1.., 0, 0) => (Unit::Month, months),
            (0, 1.., 0) => (Unit::Day, days),
            (0, 0, 1..) if seconds > 3600 && seconds % 3600 == 0 => (Unit::Hour, seconds / 3600),
            (0, 0, 1..) if 3600 % seconds == 0 => (Unit::Second, seconds),
            (0, 0, 1..) => {
                return Granularity::duration(seconds * SECOND, 0);
            }
            _ => return Err(refused("a period is of one unit, above zero")),
        };
        Ok(Granularity(Kind::Calendar { unit, count, zone: TimeZone::UTC, origin: None }))
    }

    /// The same by the clock of a time zone: a name of the IANA database, or an offset such as
    /// `+02:00`.
    ///
    /// # Errors
    /// [`Error::Time`] if there is no such zone, or if the buckets have a fixed length.
    pub fn in_zone(self, name: &str) -> Result<Granularity> {
        let zone = time_zone(name)?;
        match self.0 {
            Kind::Calendar { unit, count, origin, .. } => {
                Ok(Granularity(Kind::Calendar { unit, count, zone, origin }))
            }
            Kind::Fixed { .. } if zone != TimeZone::UTC => Err(Error::Time(
                "buckets of a fixed length have no time zone: give an origin instead".to_owned(),
            )),
            other => Ok(Granularity(other)),
        }
    }

    /// The same, counted from a time.
    ///
    /// # Errors
    /// [`Error::Time`] if it cannot be read.
    pub fn from_origin(self, origin: &str) -> Result<Granularity> {
        let time = timestamp::parse_iso(origin)?;
        Ok(Granularity(match self.0 {
            Kind::Fixed { length, .. } => Kind::Fixed { length, origin: time },
            Kind::Calendar { unit, count, zone, .. } => {
                let stamp = Timestamp::from_millisecond(time)
                    .map_err(|error| Error::Time(error.to_string()))?;
                let origin = Some(stamp.to_zoned(zone.clone()).datetime());
                Kind::Calendar { unit, count, zone, origin }
            }
            other => other,
        }))
    }

    /// Whether each time is a bucket of its own.
    pub fn is_none(&self) -> bool {
        self.0 == Kind::None
    }

    /// Whether all of time is one bucket.
    pub fn is_all(&self) -> bool {
        self.0 == Kind::All
    }

    /// The document that a schema has for it.
    pub(crate) fn document(&self) -> serde_json::Value {
        let mut document = serde_json::Map::new();
        let mut set = |name: &str, value: String| {
            document.insert(name.to_owned(), value.into());
        };
        match &self.0 {
            Kind::None => return "none".into(),
            Kind::All => return "all".into(),
            Kind::Fixed { length, origin } => {
                set("type", "duration".to_owned());
                set("origin", iso(*origin, &TimeZone::UTC));
                document.insert("duration".to_owned(), (*length).into());
            }
            Kind::Calendar { unit, count, zone, origin } => {
                set("type", "period".to_owned());
                set(
                    "period",
                    match unit {
                        Unit::Second => format!("PT{count}S"),
                        Unit::Hour => format!("PT{count}H"),
                        Unit::Day => format!("P{count}D"),
                        Unit::Month => format!("P{count}M"),
                    },
                );
                set("timeZone", zone_name(zone));
                // Of a time that the clock shows twice, either is read as the same.
                if let Some(time) = origin.and_then(|origin| origin.to_zoned(zone.clone()).ok()) {
                    set("origin", iso(time.timestamp().as_millisecond(), &TimeZone::UTC));
                }
            }
        }
        document.into()
    }

    /// The zone whose clock it goes by.
    pub(crate) fn zone(&self) -> TimeZone {
        match &self.0 {
            Kind::Calendar { zone, .. } => zone.clone(),
            _ => TimeZone::UTC,
        }
    }

    /// The bucket of a time: where it begins, and where the next one does. Of times that no row can
    /// have, and of [`ALL`](Self::ALL), it is cut at the first and the last that one can have.
    pub fn bucket(&self, time: i64) -> (i64, i64) {
        let time = time.clamp(TIME_MIN, TIME_END - 1);
        let (start, end) = match &self.0 {
            Kind::None => (time, time + 1),
            Kind::All => (TIME_MIN, TIME_END),
            Kind::Fixed { length, origin } => fixed(time, *length, *origin),
            Kind::Calendar { unit: Unit::Second, count, zone, origin } => {
                let offset = offset(zone, time);
                let origin = match origin {
                    Some(origin) => at(*origin, zone).map_or(0, |origin| origin + offset),
                    None => 0,
                };
                let (start, end) = fixed(time + offset, count * SECOND, origin);
                (start - offset, end - offset)
            }
            Kind::Calendar { unit, count, zone, origin } => {
                calendar(time, *unit, *count, zone, *origin).unwrap_or((TIME_MIN, TIME_END))
            }
        };
        (start.max(TIME_MIN), end.min(TIME_END))
    }
}

fn fixed(time: i64, length: i64, origin: i64) -> (i64, i64) {
    let start = (time - origin).div_euclid(length) * length + origin;
    (start, start + length)
}

fn offset(zone: &TimeZone, time: i64) -> i64 {
    let stamp = Timestamp::from_millisecond(time).unwrap_or_default();
    i64::from(zone.to_offset(stamp).seconds()) * SECOND
}

/// When the clock of the zone shows this: the first time of two, the end of the gap of none.
fn at(civil: DateTime, zone: &TimeZone) -> Option<i64> {
    zone.to_zoned(civil).ok().map(|zoned| zoned.timestamp().as_millisecond())
}

/// The bucket that begins a whole number of steps behind the origin. `None` beyond the calendar.
fn calendar(
    time: i64,
    unit: Unit,
    count: i64,
    zone: &TimeZone,
    origin: Option<DateTime>,
) -> Option<(i64, i64)> {
    let origin = origin.unwrap_or(match unit {
        // The first Monday, for weeks.
        Unit::Day if count % 7 == 0 => DateTime::constant(1970, 1, 5, 0, 0, 0, 0),
        _ => DateTime::constant(1970, 1, 1, 0, 0, 0, 0),
    });
    let civil = Timestamp::from_millisecond(time).ok()?.to_zoned(zone.clone()).datetime();
    let units = match unit {
        Unit::Month => {
            let years = i64::from(civil.year()) - i64::from(origin.year());
            years * 12 + i64::from(civil.month()) - i64::from(origin.month())
        }
        Unit::Day | Unit::Hour | Unit::Second => {
            let passed = civil.duration_since(origin).as_secs();
            passed.div_euclid(if unit == Unit::Day { 24 * 3600 } else { HOUR / SECOND })
        }
    };
    let start_of = |step: i64| -> Option<i64> {
        let units = step.checked_mul(count)?;
        let span = match unit {
            Unit::Month => Span::new().try_months(units),
            Unit::Day => Span::new().try_days(units),
            Unit::Hour | Unit::Second => Span::new().try_hours(units),
        };
        at(origin.checked_add(span.ok()?).ok()?, zone)
    };
    // Days of months and clocks that are set may shift a bucket by one.
    let mut step = units.div_euclid(count);
    while start_of(step)? > time {
        step -= 1;
    }
    let (mut start, mut end) = (start_of(step)?, start_of(step + 1).unwrap_or(TIME_END));
    while end <= time {
        step += 1;
        (start, end) = (end, start_of(step + 1).unwrap_or(TIME_END));
    }
    Some((start, end))
}

/// Truncates one time after another: those of one bucket cost a comparison.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    granularity: Granularity,
    start: i64,
    end: i64,
}

impl Buckets {
    pub(crate) fn new(granularity: Granularity) -> Buckets {
        Buckets { granularity, start: 0, end: 0 }
    }

    /// Where the bucket of a time begins.
    #[inline]
    pub(crate) fn start(&mut self, time: i64) -> i64 {
        if self.granularity.0 == Kind::None {
            return time;
        }
        if !(self.start..self.end).contains(&time) {
            (self.start, self.end) = self.granularity.bucket(time);
        }
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::iso;

    fn time(text: &str) -> i64 {
        timestamp::parse_iso(text).expect("a time")
    }

    fn bucket(granularity: &Granularity, at: &str) -> (String, i64) {
        let (start, end) = granularity.bucket(time(at));
        assert!((start..end).contains(&time(at)), "{at} in {start}..{end}");
        (iso(start, &granularity.zone()), (end - start) / 60_000)
    }

    #[test]
    fn each_unit_begins_where_the_calendar_says() {
        let cases = [
            ("second", "2013-05-06T07:08:09.000Z", 0),
            ("minute", "2013-05-06T07:08:00.000Z", 1),
            ("fifteen_minute", "2013-05-06T07:00:00.000Z", 15),
            ("hour", "2013-05-06T07:00:00.000Z", 60),
            ("six_hour", "2013-05-06T06:00:00.000Z", 360),
            ("day", "2013-05-06T00:00:00.000Z", 1440),
            ("week", "2013-05-06T00:00:00.000Z", 7 * 1440),
            ("month", "2013-05-01T00:00:00.000Z", 31 * 1440),
            ("quarter", "2013-04-01T00:00:00.000Z", 91 * 1440),
            ("year", "2013-01-01T00:00:00.000Z", 365 * 1440),
            ("P2Y", "2012-01-01T00:00:00.000Z", 731 * 1440),
            ("PT7M", "2013-05-06T07:08:00.000Z", 7),
        ];
        for (name, start, minutes) in cases {
            let granularity = Granularity::parse(name).expect(name);
            let found = bucket(&granularity, "2013-05-06T07:08:09.123Z");
            assert_eq!(found, (start.to_owned(), minutes), "{name}");
        }
        for refused in ["fortnight", "P1DT1H", "PT0S", "-P1D", "P", ""] {
            assert!(Granularity::parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn clocks_that_are_set_have_one_bucket_for_each_time() {
        let zone = "America/New_York";
        let of = |name| Granularity::parse(name).and_then(|it| it.in_zone(zone)).expect("known");
        // 2013-03-10 02:00 was 03:00; 2013-11-03 02:00 was 01:00.
        let day = of("day");
        assert_eq!(
            bucket(&day, "2013-03-10T12:00Z"),
            ("2013-03-10T00:00:00.000-05:00".into(), 23 * 60)
        );
        assert_eq!(
            bucket(&day, "2013-11-03T12:00Z"),
            ("2013-11-03T00:00:00.000-04:00".into(), 25 * 60)
        );
        let six = of("six_hour");
        assert_eq!(
            bucket(&six, "2013-03-10T08:00Z"),
            ("2013-03-10T00:00:00.000-05:00".into(), 300)
        );
        assert_eq!(
            bucket(&six, "2013-11-03T06:30Z"),
            ("2013-11-03T00:00:00.000-04:00".into(), 420)
        );
        let hour = of("hour");
        assert_eq!(
            bucket(&hour, "2013-11-03T05:30Z"),
            ("2013-11-03T01:00:00.000-04:00".into(), 60)
        );
        assert_eq!(
            bucket(&hour, "2013-11-03T06:30Z"),
            ("2013-11-03T01:00:00.000-05:00".into(), 60)
        );
        // The clock never shows 02:00 that day: the bucket begins when it shows 03:00.
        let two = of("PT2H");
        assert_eq!(bucket(&two, "2013-03-10T07:30Z"), ("2013-03-10T03:00:00.000-04:00".into(), 60));
        // A zone whose offset is no whole hour, and one whose clock was set at midnight.
        let hour = Granularity::parse("hour").and_then(|it| it.in_zone("Asia/Kolkata"));
        let hour = hour.expect("known");
        assert_eq!(
            bucket(&hour, "2013-01-01T00:00Z"),
            ("2013-01-01T05:00:00.000+05:30".into(), 60)
        );
        let day = Granularity::parse("day").and_then(|it| it.in_zone("America/Sao_Paulo"));
        let day = day.expect("known");
        assert_eq!(
            bucket(&day, "2013-10-20T12:00Z"),
            ("2013-10-20T01:00:00.000-02:00".into(), 23 * 60)
        );
    }

    #[test]
    fn buckets_tile_time() {
        for name in
            ["PT2H", "PT6H", "PT7H", "day", "P3D", "week", "month", "quarter", "P5M", "year"]
        {
            for zone in ["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"] {
                let granularity = Granularity::parse(name).and_then(|it| it.in_zone(zone));
                let granularity = granularity.expect("known");
                let mut at = time("2012-12-28");
                for _ in 0..600 {
                    let (start, end) = granularity.bucket(at);
                    assert!(start <= at && at < end, "{name} {zone} {at}");
                    assert_eq!(granularity.bucket(start), (start, end), "{name} {zone}");
                    assert_eq!(granularity.bucket(end - 1), (start, end), "{name} {zone}");
                    assert_eq!(granularity.bucket(end).0, end, "{name} {zone}");
                    at = end;
                }
            }
        }
    }

    #[test]
    fn origins_shift_buckets() {
        let from = |name: &str, origin: &str| {
            Granularity::parse(name).and_then(|it| it.from_origin(origin)).expect("known")
        };
        let day = from("day", "2013-01-01T06:00Z");
        assert_eq!(bucket(&day, "2013-01-02T05:00Z"), ("2013-01-01T06:00:00.000Z".into(), 1440));
        let month = from("month", "2013-01-15");
        assert_eq!(bucket(&month, "2013-03-01"), ("2013-02-15T00:00:00.000Z".into(), 28 * 1440));
        let minutes =
            Granularity::duration(90_000, 0).and_then(|it| it.from_origin("2013-01-01T00:00:30Z"));
        let minutes = minutes.expect("known");
        assert_eq!(minutes.bucket(time("2013-01-01T00:01:59Z")).0, time("2013-01-01T00:00:30Z"));
        assert!(Granularity::duration(0, 0).is_err());
    }
}
