//! Intervals of time.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::{TIME_END, TIME_MIN, iso, timestamp};
use crate::error::{Error, Result};

/// The times from a start to an end, the end excluded, in milliseconds since 1970.
///
/// ```
/// use sapwood::rollup::Interval;
///
/// assert_eq!(Interval::parse("2013-01-01/P1D")?, Interval::parse("2013-01-01T00Z/2013-01-02")?);
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The first time.
    pub start: i64,
    /// The first time beyond.
    pub end: i64,
}

impl Interval {
    /// All times that rows can have.
    pub const ETERNITY: Interval = Interval { start: TIME_MIN, end: TIME_END };

    /// Reads `start/end`, `start/period` and `period/end`, in ISO 8601, UTC where there is no offset.
    ///
    /// # Errors
    /// [`Error::Time`] if it is none of them, or ends before it begins.
    pub fn parse(text: &str) -> Result<Interval> {
        let (first, second) = text.split_once('/').ok_or_else(|| {
            Error::Time(format!("`{text}` is no interval: say start/end, such as 2013-01-01/P1D"))
        })?;
        let interval = match (first.starts_with('P'), second.starts_with('P')) {
            (false, false) => {
                Interval { start: timestamp::parse_iso(first)?, end: timestamp::parse_iso(second)? }
            }
            (false, true) => {
                let start = timestamp::parse_iso(first)?;
                Interval { start, end: moved(start, second, false)? }
            }
            (true, false) => {
                let end = timestamp::parse_iso(second)?;
                Interval { start: moved(end, first, true)?, end }
            }
            (true, true) => {
                return Err(Error::Time(format!(
                    "the interval `{text}` has neither start nor end"
                )));
            }
        };
        if interval.start > interval.end {
            return Err(Error::Time(format!("the interval `{text}` ends before it begins")));
        }
        Ok(interval)
    }

    /// Whether a time is in it.
    pub fn contains(&self, time: i64) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// Those that do not overlap, ascending, which cover the same times.
    pub(crate) fn joined(intervals: &[Interval]) -> Vec<Interval> {
        let mut sorted: Vec<_> =
            intervals.iter().filter(|interval| interval.start < interval.end).copied().collect();
        sorted.sort_unstable_by_key(|interval| interval.start);
        let mut joined: Vec<Interval> = Vec::new();
        for interval in sorted {
            match joined.last_mut() {
                Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
                _ => joined.push(interval),
            }
        }
        joined
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", iso(self.start, &TimeZone::UTC), iso(self.end, &TimeZone::UTC))
    }
}

fn moved(time: i64, period: &str, back: bool) -> Result<i64> {
    let refused = || Error::Time(format!("`{period}` is no ISO 8601 period, such as P1D"));
    let span: Span = period.parse().map_err(|_| refused())?;
    let zoned = Timestamp::from_millisecond(time).map_err(|_| refused())?.to_zoned(TimeZone::UTC);
    let moved = if back { zoned.checked_sub(span) } else { zoned.checked_add(span) };
    Ok(moved.map_err(|_| refused())?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_and_joined() {
        let parse = |text| Interval::parse(text).expect("an interval");
        assert_eq!(parse("P1M/2013-03-01"), parse("2013-02-01/2013-03-01"));
        let joined = Interval::joined(&[
            parse("2013-03-01/P1D"),
            parse("2013-01-01/P2D"),
            parse("2013-01-02/P3D"),
            parse("2013-02-01/2013-02-01"),
        ]);
        assert_eq!(joined, [parse("2013-01-01/2013-01-05"), parse("2013-03-01/2013-03-02")]);
        for refused in ["2013", "P1D/P1D", "2013-01-02/2013-01-01", "x/y", "2013/P", "2013/P1X"] {
            assert!(Interval::parse(refused).is_err(), "{refused}");
        }
    }
}
