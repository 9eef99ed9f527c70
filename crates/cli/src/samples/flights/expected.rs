//! The same answers by plain iteration over the parsed rows: what the tables' answers must equal.

use std::collections::{BTreeMap, HashSet};

use super::totals::{Pair, Totals};
use crate::samples::flight::{Code, Flight, FlightId};

/// The number of different keys.
pub(super) fn distinct_keys(rows: &[Flight]) -> usize {
    let ids: HashSet<FlightId> = rows.iter().map(|flight| flight.id).collect();
    ids.len()
}

/// The number of different keys without the scheduled time.
pub(super) fn distinct_without_time(rows: &[Flight]) -> usize {
    let ids: HashSet<FlightId> =
        rows.iter().map(|flight| FlightId { scheduled: 0, ..flight.id }).collect();
    ids.len()
}

/// All flights of a carrier in a month, in the order of their keys.
pub(super) fn in_month(rows: &[Flight], carrier: Code<2>, month: u8) -> Vec<FlightId> {
    let ids = rows.iter().map(|flight| flight.id);
    let mut ids: Vec<FlightId> =
        ids.filter(|id| id.carrier == carrier && id.month == month).collect();
    ids.sort_unstable();
    ids
}

/// The `limit` flights that left last, the last first.
pub(super) fn latest(rows: &[Flight], limit: usize) -> Vec<(i32, FlightId)> {
    let departures = rows.iter().filter_map(|flight| Some((flight.departure_minute()?, flight.id)));
    let mut departures: Vec<(i32, FlightId)> = departures.collect();
    departures.sort_unstable();
    departures.into_iter().rev().take(limit).collect()
}

/// Delays of each carrier to each destination.
pub(super) fn delay_totals(rows: &[Flight]) -> BTreeMap<Pair, Totals> {
    let mut totals = BTreeMap::new();
    for flight in rows {
        let pair = (flight.id.carrier, flight.details.dest);
        if let Some(one) = Totals::of(&flight.details) {
            totals.entry(pair).or_insert_with(Totals::default).add(&one);
        }
    }
    totals
}

pub(super) fn cancelled(rows: &[Flight]) -> usize {
    rows.iter().filter(|flight| flight.is_cancelled()).count()
}
