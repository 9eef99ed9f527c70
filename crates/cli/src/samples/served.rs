//! The flights of `sapwood serve --sample flights`: an ordered table whose fields have names.
//!
//! The key is (month, day, scheduled departure, carrier, flight), 10 bytes that sort so: a month
//! and a day are prefixes. The year is 2013 for all.
//!
//! ```text
//! offset  bytes  value, numbers least significant byte first; NA is the least i16
//!      0      2  dep_delay  i16, minutes; NA for a flight that never left
//!      2      2  arr_delay  i16, minutes
//!      4      2  air_time   i16, minutes
//!      6      2  distance   i16, miles
//!      8      3  origin     ASCII
//!     11      3  dest       ASCII
//!     14      6  plane      ASCII, then zeros; six zeros if it is not known
//!     20      4  budget     i32, minutes of delay that are allowed; zero until some are
//!     24      1  hour       of the scheduled departure, local
//!     25      3  zero
//! ```

use sapwood::aggregate::Layout;
use sapwood::{Db, OrderedTableOptions, key};

use crate::terminal::exit::{Failure, Outcome};

use super::flight::Flight;
use super::unpack;

const VALUE_BYTES: usize = 28;

const NA: i16 = i16::MIN;

/// Loads the flights into an ordered table `flights` in memory; ends early when it is asked to.
/// Answers how many were loaded.
pub(crate) fn load_flights(db: &Db, is_stopped: &dyn Fn() -> bool) -> Outcome<u64> {
    let damaged = |what: &dyn std::fmt::Display| {
        Failure::Failed(format!("the bundled flights are damaged ({what}); build sapwood again"))
    };
    let options = OrderedTableOptions::default().volatile().fields(layout());
    let table = db.open_or_create_ordered_table("flights", options)?;
    let mut reader = unpack::reader().map_err(|error| damaged(&error))?;
    let (mut row, mut key, mut loaded) = (csv::StringRecord::new(), Vec::new(), 0_u64);
    while reader.read_record(&mut row).map_err(|error| damaged(&error))? {
        if loaded.is_multiple_of(1024) && is_stopped() {
            break;
        }
        let flight = Flight::parse(&row).map_err(|column| damaged(&format!("column {column}")))?;
        key.clear();
        encode_key(&flight, &mut key);
        table.put(&key, encode(&flight))?;
        loaded += 1;
    }
    Ok(loaded)
}

/// The fields of an entry, for queries.
fn layout() -> Layout {
    "key(month:u8, day:u8, scheduled:u16, carrier:str, number:u16), dep_delay:i16le@0?-32768, \
     arr_delay:i16le@2?-32768, air_time:i16le@4?-32768, distance:i16le@6?-32768, origin:text3@8, \
     dest:text3@11, plane:text6@14?\"\", budget:i32le@20, hour:u8@24"
        .parse()
        .expect("a layout that a test reads with")
}

fn encode_key(flight: &Flight, out: &mut Vec<u8>) {
    let id = &flight.id;
    key::encode_into(&(id.month, id.day, id.scheduled, id.carrier.as_str(), id.number), out);
}

fn encode(flight: &Flight) -> [u8; VALUE_BYTES] {
    let details = &flight.details;
    let mut out = [0; VALUE_BYTES];
    let numbers = [details.dep_delay, details.arr_delay, details.air_time, details.distance];
    for (place, number) in out.chunks_exact_mut(2).zip(numbers) {
        place.copy_from_slice(&number.unwrap_or(NA).to_le_bytes());
    }
    out[8..11].copy_from_slice(&details.origin.0);
    out[11..14].copy_from_slice(&details.dest.0);
    out[14..20].copy_from_slice(&details.tailnum.0);
    out[24] = (flight.id.scheduled / 100) as u8;
    out
}

#[cfg(test)]
mod tests {
    use sapwood::aggregate::{Aggregate, Query};

    use super::*;
    use crate::samples::flight::COLUMNS;

    /// Every field of the layout reads what the row has, or is missing where it is NA.
    #[test]
    fn the_layout_reads_what_was_written() {
        let columns = [
            ("month", "month"),
            ("day", "day"),
            ("scheduled", "sched_dep_time"),
            ("carrier", "carrier"),
            ("number", "flight"),
            ("dep_delay", "dep_delay"),
            ("arr_delay", "arr_delay"),
            ("air_time", "air_time"),
            ("distance", "distance"),
            ("origin", "origin"),
            ("dest", "dest"),
            ("plane", "tailnum"),
            ("hour", "hour"),
        ];
        let figures: Vec<String> =
            columns.iter().map(|(field, _)| format!("min({field}) as {field}")).collect();
        let query = Query::new(layout())
            .aggregates(Aggregate::list(&figures.join(", ")).expect("figures"))
            .compile()
            .expect("a query");
        // Cancelled ones are among them.
        for row in unpack::reader().expect("bundled").records().step_by(101) {
            let row = row.expect("good CSV");
            let flight = Flight::parse(&row).expect("a flight");
            let mut key = Vec::new();
            encode_key(&flight, &mut key);
            let mut fold = query.fold();
            fold.push(&key, &encode(&flight)).expect("no groups");
            let answer = query.finish(fold.into_partial()).expect("figures of one row");
            for (field, column) in columns {
                let index = COLUMNS.iter().position(|known| *known == column).expect("a column");
                let found = answer.value(0, field).map_or("NA".to_owned(), ToString::to_string);
                assert_eq!(found, row[index], "{field} of {row:?}");
            }
        }
    }
}
