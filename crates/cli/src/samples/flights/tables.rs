//! The tables of the sample, and the first check: every row is in them.

use std::time::Instant;

use sapwood::{Db, OrderedTable, OrderedTableOptions, key};
use serde_json::json;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, rate, time};
use crate::terminal::ui::Ui;

use super::expected;
use crate::samples::answer::{Answer, Effort, equal};
use crate::samples::flight::{Details, FlightId};
use crate::samples::unpack::{Flights, unpack};

/// The tables, and the parsed rows to compare with.
pub(super) struct Tables {
    /// `FlightId` -> `Details`.
    pub(super) flights: OrderedTable,
    /// Departure minute and `FlightId` -> nothing.
    pub(super) departures: OrderedTable,
    /// Carrier and destination -> `Totals`.
    pub(super) delays: OrderedTable,
    pub(super) source: Flights,
}

impl Tables {
    pub(super) fn load(ui: &Ui) -> Outcome<Self> {
        let started = Instant::now();
        let source = unpack(ui)?;
        let unpacked = started.elapsed();
        let rows = &source.rows;

        let db = Db::in_memory();
        let flights = db.create_ordered_table("flights", OrderedTableOptions::default())?;
        let departures = db.create_ordered_table("departures", OrderedTableOptions::default())?;
        let delays = db.create_ordered_table("delays", OrderedTableOptions::default())?;
        let progress = ui.progress("loading", rows.len() as u64);
        let mut key = Vec::new();
        let mut inserted = 0;
        let started = Instant::now();
        for batch in rows.chunks(1024) {
            for flight in batch {
                flight.id.encode_into(&mut key);
                let new = flights.put_if_absent(&key, flight.details.encode())?;
                inserted += u64::from(new);
            }
            progress.inc(batch.len() as u64);
            if ui.interrupt.asked() {
                progress.finish_and_clear();
                let entries = count(flights.len_estimate() as u64);
                return Err(Failure::Interrupted(format!("{entries} flights had been loaded")));
            }
        }
        let elapsed = started.elapsed();
        progress.finish_and_clear();

        let started = Instant::now();
        for flight in rows {
            if let Some(minute) = flight.departure_minute() {
                departures.put(departure_key(minute, &flight.id), b"")?;
            }
        }
        let indexed = started.elapsed();

        let distinct = expected::distinct_keys(rows);
        let without_time = expected::distinct_without_time(rows);
        equal("rows put", inserted, rows.len() as u64)?;
        equal("entries", flights.len()?, rows.len())?;
        equal("distinct keys", distinct, rows.len())?;
        equal("departures", departures.len()?, rows.len() - expected::cancelled(rows))?;
        for flight in rows {
            let read = flights.get_with(flight.id.encode(), Details::decode)?.flatten();
            equal("a flight read back", read, Some(flight.details))?;
        }
        let row_count = rows.len() as u64;
        Answer {
            name: "load",
            question: format!("Are all {} flights in the table?", count(row_count)),
            text: format!(
                "{} distinct keys of (carrier, flight, date, scheduled departure): no row is lost\n\
                 {} would be without the scheduled departure: {} numbers fly twice on a day\n\
                 unpacked and parsed in {}, {}\n\
                 {} departures indexed by time in {}, {}",
                count(distinct as u64),
                count(without_time as u64),
                count((distinct - without_time) as u64),
                time(unpacked),
                rate(row_count, "rows", unpacked),
                count(departures.len_estimate() as u64),
                time(indexed),
                rate(departures.len_estimate() as u64, "rows", indexed),
            ),
            json: json!({
                "rows": row_count,
                "entries": flights.len()?,
                "distinct_keys": distinct,
                "distinct_keys_without_time": without_time,
                "departures": departures.len()?,
                "unpack_seconds": unpacked.as_secs_f64(),
            }),
            effort: Effort { work: row_count, unit: "rows", elapsed },
            verified: "each row was read back by its key and is equal in every column",
        }
        .print(ui)?;
        Ok(Self { flights, departures, delays, source })
    }
}

/// The bytes before the key of the flight, in a key of the departures.
pub(super) const DEPARTURE_MINUTE_BYTES: usize = size_of::<i32>();

fn departure_key(minute: i32, id: &FlightId) -> Vec<u8> {
    let mut key = key::encode(&minute);
    key.extend(id.encode());
    key
}
