//! Answers from the counters: the busiest hours, planes, routes and days.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::time::Instant;

use comfy_table::CellAlignment;
use sapwood::{HashTable, key};
use serde_json::{Value, json};

use crate::samples::answer::{Answer, Effort, equal, listing};
use crate::samples::flight::minute_text;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::count;
use crate::terminal::ui::Ui;

use super::counting::decode;
use super::events::Kind;
use super::recount::Recount;

/// A question about one kind of counters.
struct Question {
    kind: Kind,
    /// Names it for machines.
    name: &'static str,
    /// The counted thing.
    what: &'static str,
    /// The subject of a counter, for people.
    who: fn(&[u8]) -> Option<String>,
}

const QUESTIONS: [Question; 5] = [
    Question {
        kind: Kind::Arrivals,
        name: "arrivals",
        what: "arrivals in an hour",
        who: airport_hour,
    },
    Question { kind: Kind::Route, name: "route", what: "flights on a route", who: route },
    Question { kind: Kind::PlaneFlights, name: "plane", what: "flights of a plane", who: plane },
    Question { kind: Kind::PlaneMiles, name: "miles", what: "miles of a plane", who: plane },
    Question {
        kind: Kind::CarrierDelay,
        name: "delay",
        what: "minutes late, carrier and day",
        who: carrier_day,
    },
];

/// The number of shown rows of each kind.
const SHOWN: usize = 3;

/// A counter's value and its key: sorts by value, and by key among equals.
type Counted = (Reverse<i64>, Vec<u8>);

pub(super) fn answer(table: &HashTable, recount: &Recount, ui: &Ui) -> Outcome {
    let started = Instant::now();
    let mut most: [Vec<Counted>; QUESTIONS.len()] = Default::default();
    let prefixes = QUESTIONS.map(|question| question.kind.prefix());
    let mut walked = 0;
    // In log order, which reads what lies on the disk from one end to the other.
    let _ = table.scan_log(|key, value| {
        walked += 1;
        let asked = prefixes.iter().position(|prefix| key.starts_with(prefix));
        if let (Some(asked), Some(sum)) = (asked, decode(value)) {
            keep_most(&mut most[asked], (Reverse(sum), key.to_vec()));
        }
        ControlFlow::<()>::Continue(())
    })?;
    let elapsed = started.elapsed();

    let mut listing = listing(&["most", "where, who or when", ""]);
    let mut answers = serde_json::Map::new();
    for (question, most) in QUESTIONS.iter().zip(&most) {
        let mut expected = Vec::new();
        for (key, sum) in recount.of_kind(question.kind) {
            keep_most(&mut expected, (Reverse(sum), key.to_vec()));
        }
        equal(question.what, most, &expected)?;
        let mut named = Vec::new();
        for (place, (Reverse(sum), key)) in most.iter().enumerate() {
            let who = (question.who)(key);
            let who =
                who.ok_or_else(|| Failure::Failed(format!("{key:?} is no {}", question.name)))?;
            let what = if place == 0 { question.what } else { "" };
            listing.add_row([what.to_owned(), who.clone(), count(sum.unsigned_abs())]);
            named.push(json!({ "who": who, "count": sum }));
        }
        answers.insert(question.name.to_owned(), Value::Array(named));
    }
    for column in listing.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Answer {
        name: "busiest",
        question: "Where, when and who was busiest?".to_owned(),
        text: listing.to_string(),
        json: Value::Object(answers),
        effort: Effort { work: walked, unit: "counters", elapsed },
        verified: "the recount has the same at the top",
    }
    .print_as("counters", ui)
}

fn keep_most(most: &mut Vec<Counted>, sum: Counted) {
    let place = most.partition_point(|other| *other < sum);
    if place < SHOWN {
        most.insert(place, sum);
        most.truncate(SHOWN);
    }
}

fn airport_hour(key: &[u8]) -> Option<String> {
    let (_, airport, day, hour): (u8, String, i32, u8) = key::decode(key).ok()?;
    let minute = minute_text(day * 1440 + i32::from(hour) * 60);
    Some(format!("{airport} {minute}"))
}

fn route(key: &[u8]) -> Option<String> {
    let (_, origin, dest): (u8, String, String) = key::decode(key).ok()?;
    Some(format!("{origin} to {dest}"))
}

fn plane(key: &[u8]) -> Option<String> {
    let (_, plane): (u8, String) = key::decode(key).ok()?;
    Some(plane)
}

fn carrier_day(key: &[u8]) -> Option<String> {
    let (_, carrier, day): (u8, String, i32) = key::decode(key).ok()?;
    Some(format!("{carrier} {}", &minute_text(day * 1440)[..10]))
}
