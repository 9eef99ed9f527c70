//! The latest departures, descending.

use std::ops::ControlFlow;
use std::time::Instant;

use sapwood::{Direction, key};
use serde_json::json;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

use super::expected;
use super::tables::{DEPARTURE_MINUTE_BYTES, Tables};
use crate::samples::answer::{Answer, Effort, equal, listing};
use crate::samples::flight::{Details, FlightId, minute_text};

const LATEST_COUNT: usize = 10;

impl Tables {
    pub(super) fn latest_departures(&self, ui: &Ui) -> Outcome {
        let mut latest = Vec::new();
        let started = Instant::now();
        let end = self.departures.scan_keys(.., Direction::Descending, |key| {
            let (minute, flight_key) = key.split_at(DEPARTURE_MINUTE_BYTES);
            let read = || -> Outcome<_> {
                let minute: i32 = key::decode(minute)?;
                let details = self.flights.get_with(flight_key, Details::decode)?.flatten();
                Ok((minute, FlightId::decode(flight_key)?, details))
            };
            match read() {
                Err(failure) => return ControlFlow::Break(Err(failure)),
                Ok(departure) => latest.push(departure),
            }
            if latest.len() == LATEST_COUNT {
                ControlFlow::Break(Ok(()))
            } else {
                ControlFlow::Continue(())
            }
        })?;
        let elapsed = started.elapsed();
        if let ControlFlow::Break(outcome) = end {
            outcome?;
        }
        let keys: Vec<(i32, FlightId)> =
            latest.iter().map(|(minute, id, _)| (*minute, *id)).collect();
        equal("latest departures", keys, expected::latest(&self.source.rows, LATEST_COUNT))?;
        let mut listing = listing(&["left", "flight", "scheduled", "from", "to", "delay"]);
        let mut departures = Vec::new();
        for (minute, id, details) in &latest {
            let Some(details) = details else {
                return Err(Failure::Failed("a departure leads to no flight".to_owned()));
            };
            let flight = format!("{} {}", id.carrier, id.number);
            let delay = details.dep_delay.unwrap_or_default();
            departures.push(json!({
                "left": minute_text(*minute),
                "flight": flight,
                "scheduled": id.when(),
                "origin": details.origin.as_str(),
                "dest": details.dest.as_str(),
                "dep_delay": delay,
            }));
            listing.add_row([
                minute_text(*minute),
                flight,
                id.when(),
                details.origin.to_string(),
                details.dest.to_string(),
                format!("{delay:+}"),
            ]);
        }
        Answer {
            name: "latest_departures",
            question: format!("Which {LATEST_COUNT} flights left last, descending?"),
            text: listing.to_string(),
            json: json!(departures),
            effort: Effort { work: latest.len() as u64, unit: "flights", elapsed },
            verified: "the rows sorted by departure end the same",
        }
        .print(ui)
    }
}
