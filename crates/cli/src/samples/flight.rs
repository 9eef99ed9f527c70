//! A flight: the columns of the data, its key, and its value as a fixed layout of 28 bytes.
//!
//! The key is (carrier, flight, year, month, day, scheduled departure), 12 bytes that sort so.
//! Without the scheduled departure 24 flights would be lost: some numbers fly twice a day. The
//! value holds everything else; nothing of a row is lost (a test writes every row back).
//!
//! ```text
//! offset  bytes  value, numbers least significant byte first; NA is the least i16
//!      0      2  dep_time        i16, local HHMM
//!      2      2  dep_delay       i16, minutes
//!      4      2  arr_time        i16, local HHMM
//!      6      2  sched_arr_time  i16, local HHMM
//!      8      2  arr_delay       i16, minutes
//!     10      2  air_time        i16, minutes
//!     12      2  distance        i16, miles
//!     14      6  tailnum         ASCII, then zeros; NA is six zeros
//!     20      3  origin          ASCII
//!     23      3  dest            ASCII
//!     26      1  UTC hour of the scheduled departure minus the local one: 4 or 5
//!     27      1  zero
//! ```

use sapwood::key::{self, DecodeError};

/// The header of the data.
pub(crate) const COLUMNS: [&str; 19] = [
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "distance",
    "hour",
    "minute",
    "time_hour",
];

pub(crate) const VALUE_BYTES: usize = 28;

/// The unique name of a flight, in the order of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FlightId {
    pub(crate) carrier: Code<2>,
    pub(crate) number: u16,
    pub(crate) year: u16,
    pub(crate) month: u8,
    pub(crate) day: u8,
    /// Local HHMM.
    pub(crate) scheduled: u16,
}

/// The other columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Details {
    /// Local HHMM; none for a cancelled flight.
    pub(crate) dep_time: Option<i16>,
    pub(crate) dep_delay: Option<i16>,
    pub(crate) arr_time: Option<i16>,
    pub(crate) sched_arr_time: Option<i16>,
    pub(crate) arr_delay: Option<i16>,
    pub(crate) air_time: Option<i16>,
    pub(crate) distance: Option<i16>,
    pub(crate) tailnum: Code<6>,
    pub(crate) origin: Code<3>,
    pub(crate) dest: Code<3>,
    pub(crate) utc_offset_hours: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) id: FlightId,
    pub(crate) details: Details,
}

/// Up to `N` ASCII characters, then zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Code<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Code<N> {
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (text.is_ascii() && !text.contains('\0')).then_some(Self(bytes))
    }

    pub(crate) fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(N);
        std::str::from_utf8(&self.0[..length]).unwrap_or("?")
    }
}

impl<const N: usize> std::fmt::Display for Code<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> std::fmt::Debug for Code<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl FlightId {
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        let Self { number, year, month, day, scheduled, .. } = *self;
        key::encode_into(&(self.carrier.as_str(), number, year, month, day, scheduled), out);
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    pub(crate) fn decode(key: &[u8]) -> Result<Self, DecodeError> {
        let (carrier, number, year, month, day, scheduled): (String, _, _, _, _, _) =
            key::decode(key)?;
        Ok(Self {
            carrier: Code::new(&carrier).ok_or_else(|| DecodeError {
                offset: 0,
                what: "a carrier has two letters".to_owned(),
            })?,
            number,
            year,
            month,
            day,
            scheduled,
        })
    }

    /// `2013-03-01 05:15`: when it was to leave.
    pub(crate) fn when(&self) -> String {
        let Self { year, month, day, scheduled, .. } = self;
        format!("{year}-{month:02}-{day:02} {:02}:{:02}", scheduled / 100, scheduled % 100)
    }
}

const NA: i16 = i16::MIN;

impl Details {
    pub(crate) fn encode(&self) -> [u8; VALUE_BYTES] {
        let mut out = [0; VALUE_BYTES];
        let numbers = [
            self.dep_time,
            self.dep_delay,
            self.arr_time,
            self.sched_arr_time,
            self.arr_delay,
            self.air_time,
            self.distance,
        ];
        for (place, number) in out.chunks_exact_mut(2).zip(numbers) {
            place.copy_from_slice(&number.unwrap_or(NA).to_le_bytes());
        }
        out[14..20].copy_from_slice(&self.tailnum.0);
        out[20..23].copy_from_slice(&self.origin.0);
        out[23..26].copy_from_slice(&self.dest.0);
        out[26] = self.utc_offset_hours;
        out
    }

    /// Of a value that [`encode`](Self::encode) wrote; none if it has another length.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let value: &[u8; VALUE_BYTES] = value.try_into().ok()?;
        let number = |offset: usize| {
            let number = i16::from_le_bytes([value[offset], value[offset + 1]]);
            (number != NA).then_some(number)
        };
        Some(Self {
            dep_time: number(0),
            dep_delay: number(2),
            arr_time: number(4),
            sched_arr_time: number(6),
            arr_delay: number(8),
            air_time: number(10),
            distance: number(12),
            tailnum: Code(*value[14..].first_chunk()?),
            origin: Code(*value[20..].first_chunk()?),
            dest: Code(*value[23..].first_chunk()?),
            utc_offset_hours: value[26],
        })
    }
}

impl Flight {
    /// Of a row of the data, or the column that cannot be read.
    pub(crate) fn parse(row: &csv::StringRecord) -> Result<Self, &'static str> {
        let column = |index: usize| row.get(index).ok_or(COLUMNS[index]);
        let optional = |index: usize| match column(index)? {
            "NA" => Ok(None),
            text => text.parse::<i16>().map(Some).map_err(|_| COLUMNS[index]),
        };
        let tailnum = match column(11)? {
            "NA" => "",
            text => text,
        };
        let id = FlightId {
            year: number(row, 0)?,
            month: number(row, 1)?,
            day: number(row, 2)?,
            scheduled: number(row, 4)?,
            carrier: Code::new(column(9)?).ok_or("carrier")?,
            number: number(row, 10)?,
        };
        let details = Details {
            dep_time: optional(3)?,
            dep_delay: optional(5)?,
            arr_time: optional(6)?,
            sched_arr_time: optional(7)?,
            arr_delay: optional(8)?,
            tailnum: Code::new(tailnum).ok_or("tailnum")?,
            origin: Code::new(column(12)?).ok_or("origin")?,
            dest: Code::new(column(13)?).ok_or("dest")?,
            air_time: optional(14)?,
            distance: optional(15)?,
            utc_offset_hours: {
                let utc: u16 = column(18)?
                    .get(11..13)
                    .and_then(|hour| hour.parse().ok())
                    .ok_or("time_hour")?;
                ((24 + utc - id.scheduled / 100) % 24) as u8
            },
        };
        Ok(Self { id, details })
    }

    /// Whether it never left.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.details.dep_time.is_none()
    }

    /// The hour in which it was to leave, in milliseconds since 1970, as `time_hour` of the data.
    pub(crate) fn hour_start(&self) -> i64 {
        /// 2013-01-01T00:00Z, in hours.
        const BEGIN: i64 = 376_944;
        let local = i64::from(days_since_2013(&self.id)) * 24 + i64::from(self.id.scheduled / 100);
        (BEGIN + local + i64::from(self.details.utc_offset_hours)) * 3_600_000
    }

    /// When it left: local minutes since 2013-01-01 00:00. The scheduled time and the delay say
    /// it, since `dep_time` has no date and many flights leave after midnight.
    pub(crate) fn departure_minute(&self) -> Option<i32> {
        let scheduled = i32::from(self.id.scheduled);
        let midnight = days_since_2013(&self.id) * 24 * 60;
        let delay = i32::from(self.details.dep_delay?);
        Some(midnight + scheduled / 100 * 60 + scheduled % 100 + delay)
    }
}

fn number<T: std::str::FromStr>(row: &csv::StringRecord, index: usize) -> Result<T, &'static str> {
    row.get(index).and_then(|text| text.parse().ok()).ok_or(COLUMNS[index])
}

const MONTH_DAYS: [i32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

fn days_since_2013(id: &FlightId) -> i32 {
    let months = MONTH_DAYS.iter().take(usize::from(id.month).saturating_sub(1));
    months.sum::<i32>() + i32::from(id.day) - 1 + (i32::from(id.year) - 2013) * 365
}

/// `2013-12-31 23:56` of minutes since 2013-01-01 00:00; good to the end of 2014.
pub(crate) fn minute_text(minute: i32) -> String {
    let (mut days, of_day) = (minute.div_euclid(24 * 60), minute.rem_euclid(24 * 60));
    let year = 2013 + days.div_euclid(365);
    days = days.rem_euclid(365);
    let mut month = 0;
    while days >= MONTH_DAYS[month] {
        days -= MONTH_DAYS[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02} {:02}:{:02}", month + 1, days + 1, of_day / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::unpack;

    /// The columns as the data has them.
    fn row_of(flight: &Flight) -> Vec<String> {
        let Flight { id, details } = flight;
        let optional =
            |number: Option<i16>| number.map_or("NA".to_owned(), |number| number.to_string());
        // The UTC hour may fall on the next day.
        let hour = i32::from(id.scheduled / 100) + i32::from(details.utc_offset_hours);
        let utc = minute_text((days_since_2013(id) * 24 + hour) * 60);
        vec![
            id.year.to_string(),
            id.month.to_string(),
            id.day.to_string(),
            optional(details.dep_time),
            id.scheduled.to_string(),
            optional(details.dep_delay),
            optional(details.arr_time),
            optional(details.sched_arr_time),
            optional(details.arr_delay),
            id.carrier.to_string(),
            id.number.to_string(),
            if details.tailnum.0 == [0; 6] { "NA".to_owned() } else { details.tailnum.to_string() },
            details.origin.to_string(),
            details.dest.to_string(),
            optional(details.air_time),
            optional(details.distance),
            (id.scheduled / 100).to_string(),
            (id.scheduled % 100).to_string(),
            format!("{}T{}:00Z", &utc[..10], &utc[11..]),
        ]
    }

    #[test]
    fn key_and_value_keep_every_column_of_every_row() {
        let mut rows = 0;
        for row in unpack::reader().expect("bundled").records() {
            let row = row.expect("good CSV");
            let flight = Flight::parse(&row).expect("a flight");
            let back = Flight {
                id: FlightId::decode(&flight.id.encode()).expect("a key"),
                details: Details::decode(&flight.details.encode()).expect("a value"),
            };
            assert_eq!(row_of(&back), row.iter().collect::<Vec<_>>());
            if let (Some(left), Some(minute)) = (back.details.dep_time, back.departure_minute()) {
                // The delay leads to the time that the data has, without its date.
                assert_eq!(
                    i32::from(left) % 2400,
                    minute.rem_euclid(1440) / 60 * 100 + minute.rem_euclid(60)
                );
            }
            let hour =
                sapwood::rollup::Interval::parse(&format!("{}/P1D", &row[18])).expect("a time");
            assert_eq!(back.hour_start(), hour.start);
            rows += 1;
        }
        assert_eq!(rows, 336_776);
    }

    #[test]
    fn a_value_of_another_length_is_refused() {
        assert_eq!(Details::decode(&[0; VALUE_BYTES - 1]), None);
        assert_eq!(Details::decode(&[0; VALUE_BYTES + 1]), None);
    }

    #[test]
    fn rows_that_are_not_flights_name_the_column() {
        let good = [
            "2013",
            "1",
            "1",
            "517",
            "515",
            "2",
            "830",
            "819",
            "11",
            "UA",
            "1545",
            "N14228",
            "EWR",
            "IAH",
            "227",
            "1400",
            "5",
            "15",
            "2013-01-01T10:00:00Z",
        ];
        assert!(Flight::parse(&csv::StringRecord::from(good.to_vec())).is_ok());
        for (index, bad) in [
            (0, "x"),
            (4, "NA"),
            (9, "UAX"),
            (10, "-1"),
            (11, "N1422800"),
            (13, "É"),
            (14, "1.5"),
            (18, ""),
        ] {
            let mut row = good.to_vec();
            row[index] = bad;
            assert_eq!(Flight::parse(&csv::StringRecord::from(row)), Err(COLUMNS[index]));
        }
        assert_eq!(Flight::parse(&csv::StringRecord::from(good[..5].to_vec())), Err("tailnum"));
    }

    #[test]
    fn minutes_have_dates() {
        for (minute, text) in [
            (0, "2013-01-01 00:00"),
            (-1, "2012-12-31 23:59"),
            (59 * 1440, "2013-03-01 00:00"),
            (365 * 1440 + 26, "2014-01-01 00:26"),
        ] {
            assert_eq!(minute_text(minute), text);
        }
    }
}
