//! All flights of a carrier in March, ascending: a question across the order of the keys.

use std::ops::{Bound, ControlFlow};
use std::time::Instant;

use sapwood::{Direction, OrderedTable, key};
use serde_json::json;

use crate::terminal::exit::Outcome;
use crate::terminal::format::{count, time};
use crate::terminal::ui::Ui;

use super::expected;
use super::tables::Tables;
use crate::samples::answer::{Answer, Effort, equal, listing};
use crate::samples::flight::{Code, FlightId};

const CARRIER: Code<2> = Code(*b"UA");
const YEAR: u16 = 2013;
const MARCH: u8 = 3;

impl Tables {
    pub(super) fn carrier_in_march(&self, ui: &Ui) -> Outcome {
        // Keys are ordered by flight number before the date, so March is one short range for each
        // number: jump from number to number instead of reading the carrier's whole year.
        let mut found = Vec::new();
        let mut jumps = 0_u64;
        let started = Instant::now();
        let mut number = 0;
        loop {
            let from = key::encode(&(CARRIER.as_str(), number, YEAR, MARCH));
            let Some(next) = self.flights.ceiling(&from)? else {
                break;
            };
            jumps += 1;
            let id = FlightId::decode(next.key())?;
            if id.carrier != CARRIER {
                break;
            }
            let march = key::prefix_range(key::encode(&(CARRIER.as_str(), id.number, YEAR, MARCH)));
            collect_ids(&self.flights, march.bounds(), &mut found)?;
            match id.number.checked_add(1) {
                Some(next) => number = next,
                None => break,
            }
        }
        let elapsed = started.elapsed();

        let mut filtered = Vec::new();
        let started = Instant::now();
        let year = key::prefix_range(key::encode(CARRIER.as_str()));
        collect_ids(&self.flights, year.bounds(), &mut filtered)?;
        let carrier_flights = filtered.len() as u64;
        filtered.retain(|id| id.month == MARCH);
        let filtering = started.elapsed();

        let expected = expected::in_month(&self.source.rows, CARRIER, MARCH);
        equal("flights in March", &found, &expected)?;
        equal("flights in March, filtered", &filtered, &expected)?;
        let mut listing = listing(&["flight", "scheduled"]);
        for id in found.iter().take(3) {
            listing.add_row([format!("{} {}", id.carrier, id.number), id.when()]);
        }
        listing.add_row([
            format!("{} more", count(found.len().saturating_sub(3) as u64)),
            String::new(),
        ]);
        let describe = |id: Option<&FlightId>| {
            id.map(|id| format!("{} {} {}", id.carrier, id.number, id.when()))
        };
        Answer {
            name: "carrier_march",
            question: format!("Which flights of {CARRIER} were there in March, ascending?"),
            text: format!(
                "{listing}\n{} jumps to the March of each flight number; reading and filtering all {} \
                 flights of {CARRIER} took {}",
                count(jumps),
                count(carrier_flights),
                time(filtering),
            ),
            json: json!({
                "carrier": CARRIER.as_str(),
                "month": MARCH,
                "flights": found.len(),
                "first": describe(found.first()),
                "last": describe(found.last()),
                "jumps": jumps,
                "filtering_seconds": filtering.as_secs_f64(),
            }),
            effort: Effort {
                work: found.len() as u64,
                unit: "flights",
                elapsed,
            },
            verified: "the sorted rows of that month are the same flights in the same order",
        }
        .print(ui)
    }
}

fn collect_ids(
    table: &OrderedTable,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    found: &mut Vec<FlightId>,
) -> Outcome {
    let end = table.scan_keys(bounds, Direction::Ascending, |key| match FlightId::decode(key) {
        Ok(id) => {
            found.push(id);
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    })?;
    match end {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error.into()),
    }
}
