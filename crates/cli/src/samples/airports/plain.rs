//! The same figures by plain loops over the parsed rows: what the tables' figures must equal.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sapwood::aggregate::{Answer, Cell, Value};

use crate::samples::answer::equal;
use crate::samples::flight::{Code, Flight};
use crate::terminal::exit::{Failure, Outcome};

/// What a group has in common. In the order of an answer: what is missing comes last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    /// Below all classes.
    Below,
    Number(i64),
    Text(String),
    Missing,
}

/// The figures of a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures {
    pub(super) label: Label,
    pub(super) flights: u64,
    /// Of them, those that left.
    pub(super) left: u64,
    /// Of the departure delays, in minutes.
    pub(super) mean: Option<f64>,
    pub(super) deviation: Option<f64>,
    pub(super) median: Option<f64>,
    pub(super) worst: Option<i64>,
    /// Different destinations.
    pub(super) airports: u64,
    /// The most frequent destination, and how many flights went there.
    pub(super) most: (String, u64),
}

/// The figures of each group of the flights.
pub(super) fn figures<'a>(
    flights: impl Iterator<Item = &'a Flight>,
    label: impl Fn(&Flight) -> Label,
) -> Vec<Figures> {
    let mut groups: BTreeMap<Label, Vec<&Flight>> = BTreeMap::new();
    for flight in flights {
        groups.entry(label(flight)).or_default().push(flight);
    }
    groups.into_iter().map(|(label, flights)| of_group(label, &flights)).collect()
}

fn of_group(label: Label, flights: &[&Flight]) -> Figures {
    let delays = flights.iter().filter_map(|flight| flight.details.dep_delay);
    let mut delays: Vec<i64> = delays.map(i64::from).collect();
    delays.sort_unstable();
    let left = delays.len();
    let (sum, squares) =
        delays.iter().fold((0, 0), |(sum, squares), delay| (sum + delay, squares + delay * delay));
    // Whole numbers below 2^53, so that the division alone rounds.
    let over = |numerator: i64, denominator: usize| numerator as f64 / denominator as f64;
    let variance = || over(left as i64 * squares - sum * sum, left * (left - 1));
    let mut destinations: BTreeMap<Code<3>, u64> = BTreeMap::new();
    for flight in flights {
        *destinations.entry(flight.details.dest).or_default() += 1;
    }
    // The first in the alphabet of those with the most.
    let most = destinations.iter().fold(("", 0), |most, (dest, &count)| {
        if count > most.1 { (dest.as_str(), count) } else { most }
    });
    Figures {
        label,
        flights: flights.len() as u64,
        left: left as u64,
        mean: (left > 0).then(|| over(sum, left)),
        deviation: (left > 1).then(|| variance().sqrt()),
        // Between the two in the middle, which are one if the number is odd.
        median: (left > 0).then(|| (delays[(left - 1) / 2] + delays[left / 2]) as f64 / 2.0),
        worst: delays.last().copied(),
        airports: destinations.len() as u64,
        most: (most.0.to_owned(), most.1),
    }
}

/// The latest first; those of which none left last.
pub(super) fn latest_first(left: &Figures, right: &Figures) -> Ordering {
    let by_mean = match (left.mean, right.mean) {
        (Some(left), Some(right)) => right.total_cmp(&left),
        (left, right) => left.is_none().cmp(&right.is_none()),
    };
    by_mean.then_with(|| left.label.cmp(&right.label))
}

/// The columns of an answer, in the order of the fields of [`Figures`].
pub(super) const COLUMNS: &str = "count as flights, count(dep_delay) as left, \
    mean(dep_delay) as mean, stddev(dep_delay) as deviation, median(dep_delay) as median, \
    max(dep_delay) as worst, distinct(dest) as airports, top(dest, 1) as most";

/// The rows of an answer.
pub(super) fn of_answer(answer: &Answer) -> Outcome<Vec<Figures>> {
    let read = |row: &Vec<Cell>| {
        let [label, flights, left, mean, deviation, median, worst, airports, most] = &row[..]
        else {
            return None;
        };
        let label = match label {
            Cell::Nothing => Label::Missing,
            Cell::Value(Value::Int(number)) => Label::Number(i64::try_from(*number).ok()?),
            Cell::Value(Value::Float(number)) if number.get() == f64::NEG_INFINITY => Label::Below,
            Cell::Value(value @ Value::Bytes(_)) => Label::Text(value.to_string()),
            _ => return None,
        };
        let Cell::Top(most) = most else {
            return None;
        };
        let most = most.first().filter(|most| most.at_least == most.at_most)?;
        Some(Figures {
            label,
            flights: whole(flights)?.try_into().ok()?,
            left: whole(left)?.try_into().ok()?,
            mean: number(mean),
            deviation: number(deviation),
            median: number(median),
            worst: whole(worst),
            airports: whole(airports)?.try_into().ok()?,
            most: (most.value.to_string(), most.at_least),
        })
    };
    let rows: Option<Vec<Figures>> = answer.rows.iter().map(read).collect();
    rows.ok_or_else(|| Failure::Failed("the answer has other columns than were asked for".into()))
}

fn whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Value(Value::Int(number)) => i64::try_from(*number).ok(),
        _ => None,
    }
}

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Value(Value::Int(number)) => Some(*number as f64),
        Cell::Value(Value::Float(number)) => Some(number.get()),
        _ => None,
    }
}

/// Fails unless all figures are equal. Medians are: there are few different delays.
pub(super) fn check(found: &[Figures], expected: &[Figures]) -> Outcome {
    equal("the figures", found, expected)
}
