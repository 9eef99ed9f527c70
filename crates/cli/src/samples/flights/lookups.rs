//! Questions that one key answers.

use std::time::Instant;

use serde_json::json;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::count;
use crate::terminal::ui::Ui;

use super::tables::Tables;
use crate::samples::answer::{Answer, Effort, equal};
use crate::samples::flight::{Code, Details, Flight, FlightId};

/// The flight that the first row of the data tells of.
const ONE: FlightId =
    FlightId { carrier: Code(*b"UA"), number: 1545, year: 2013, month: 1, day: 1, scheduled: 515 };

impl Tables {
    pub(super) fn one_flight(&self, ui: &Ui) -> Outcome {
        let key = ONE.encode();
        let started = Instant::now();
        let details = self.flights.get_with(&key, Details::decode)?.flatten();
        let elapsed = started.elapsed();
        let mut rows = self.source.rows.iter();
        let row = rows.find(|flight| flight.id == ONE).map(|flight| flight.details);
        equal("the flight", details, row)?;
        let details = details.ok_or_else(|| Failure::Failed("the flight is missing".to_owned()))?;
        let flight = Flight { id: ONE, details };
        Answer {
            name: "one_flight",
            question: format!("What became of {} {} on {}?", ONE.carrier, ONE.number, ONE.when()),
            text: format!(
                "{} to {}, plane {}: {}, {} minutes in the air, {} miles",
                details.origin,
                details.dest,
                details.tailnum,
                times(&flight),
                details.air_time.unwrap_or_default(),
                details.distance.unwrap_or_default(),
            ),
            json: json!({
                "carrier": ONE.carrier.as_str(),
                "flight": ONE.number,
                "scheduled": ONE.when(),
                "origin": details.origin.as_str(),
                "dest": details.dest.as_str(),
                "tailnum": details.tailnum.as_str(),
                "dep_time": details.dep_time,
                "dep_delay": details.dep_delay,
                "arr_time": details.arr_time,
                "arr_delay": details.arr_delay,
                "air_time": details.air_time,
                "distance": details.distance,
            }),
            effort: Effort { work: 1, unit: "flights", elapsed },
            verified: "the row of the data says the same",
        }
        .print(ui)
    }

    pub(super) fn every_flight(&self, ui: &Ui) -> Outcome {
        let rows = &self.source.rows;
        // Keys first, so that only look-ups are timed.
        let keys: Vec<Vec<u8>> = rows.iter().map(|flight| flight.id.encode()).collect();
        let mut miles = 0;
        let started = Instant::now();
        for key in &keys {
            let distance = self.flights.get_with(key, |value| Details::decode(value)?.distance)?;
            miles += distance.flatten().map_or(0, i64::from);
        }
        let elapsed = started.elapsed();
        let expected = rows.iter().filter_map(|flight| flight.details.distance).map(i64::from);
        equal("miles", miles, expected.sum())?;
        Answer {
            name: "every_flight",
            question:
                "How many miles are all flights, looked up one by one in the order of the data?"
                    .to_owned(),
            text: format!("{} miles", count(miles as u64)),
            json: json!({ "miles": miles }),
            effort: Effort { work: rows.len() as u64, unit: "flights", elapsed },
            verified: "the sum over the rows is the same",
        }
        .print(ui)
    }
}

/// `left 05:17 (+2), arrived 08:30 (+11)`.
fn times(flight: &Flight) -> String {
    let Details { dep_time, dep_delay, arr_time, arr_delay, .. } = flight.details;
    let time = |verb: &str, time: Option<i16>, delay: Option<i16>| match (time, delay) {
        (Some(time), Some(delay)) => {
            format!("{verb} {:02}:{:02} ({delay:+})", time / 100, time % 100)
        }
        (Some(time), None) => format!("{verb} {:02}:{:02}", time / 100, time % 100),
        (None, _) => format!("never {verb}"),
    };
    format!("{}, {}", time("left", dep_time, dep_delay), time("arrived", arr_time, arr_delay))
}
