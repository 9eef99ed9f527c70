//! The counters that a flight adds to, and their keys.
//!
//! | key | counts |
//! |---|---|
//! | 1, airport, day, hour | arrivals |
//! | 2, airport, day, hour | departures |
//! | 3, plane | flights |
//! | 4, plane | miles |
//! | 5, plane, day | flights |
//! | 6, origin, destination | flights |
//! | 7, carrier, day | flights |
//! | 8, carrier, day | minutes of delay, negative if early |
//! | 9, carrier, number, month | flights |
//! | 10, thread | batches counted: a position in the stream |

use sapwood::key;

use crate::samples::flight::Flight;

/// The first component of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Arrivals = 1,
    Departures = 2,
    PlaneFlights = 3,
    PlaneMiles = 4,
    PlaneDay = 5,
    Route = 6,
    CarrierDay = 7,
    CarrierDelay = 8,
    NumberMonth = 9,
    Position = 10,
}

/// The number of kinds of keys that a flight adds to: all but the position.
pub(super) const KINDS: usize = Kind::NumberMonth as usize;

/// Days since 2013-01-01, and the hour.
type DayHour = (i32, u8);

impl Kind {
    fn key(self, rest: impl key::KeyEncode) -> Vec<u8> {
        key::encode(&(self as u8, rest))
    }

    /// The prefix of all keys of this kind.
    pub(super) fn prefix(self) -> Vec<u8> {
        key::encode(&(self as u8))
    }
}

pub(super) fn position_key(thread: u16) -> Vec<u8> {
    Kind::Position.key(thread)
}

/// Appends what `flight` adds to each of its counters. A cancelled one adds nothing.
pub(super) fn append(flight: &Flight, out: &mut Vec<(Vec<u8>, i64)>) {
    let Some((departed, hour)) = departure(flight) else {
        return;
    };
    let (id, details) = (&flight.id, &flight.details);
    let (carrier, plane) = (id.carrier.as_str(), details.tailnum.as_str());
    let (origin, dest) = (details.origin.as_str(), details.dest.as_str());
    if let Some((day, hour)) = arrival(flight, departed) {
        out.push((Kind::Arrivals.key((dest, day, hour)), 1));
    }
    out.extend([
        (Kind::Departures.key((origin, departed, hour)), 1),
        (Kind::PlaneFlights.key(plane), 1),
        (Kind::PlaneMiles.key(plane), details.distance.unwrap_or(0).into()),
        (Kind::PlaneDay.key((plane, departed)), 1),
        (Kind::Route.key((origin, dest)), 1),
        (Kind::CarrierDay.key((carrier, departed)), 1),
        (Kind::CarrierDelay.key((carrier, departed)), details.dep_delay.unwrap_or(0).into()),
        (Kind::NumberMonth.key((carrier, id.number, id.month)), 1),
    ]);
}

fn departure(flight: &Flight) -> Option<DayHour> {
    let minute = flight.departure_minute()?;
    Some((minute.div_euclid(1440), (minute.rem_euclid(1440) / 60) as u8))
}

/// Arrivals have a time and no date: one before the departure is on the next day.
fn arrival(flight: &Flight, departed: i32) -> Option<DayHour> {
    let (left, arrived) = (flight.details.dep_time?, flight.details.arr_time?);
    let next_day = i32::from(arrived < left);
    // Midnight is 2400.
    let hours = arrived / 100;
    Some((departed + next_day + i32::from(hours / 24), (hours % 24) as u8))
}
