//! The questions, their queries, and the same by plain loops over the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use sapwood::rollup::{
    Aggregation, Answer as Table, Filter, Granularity, Query, TopNMetric, Value,
};
use serde_json::json;

use super::super::answer::{Answer, Effort, equal, listing};
use super::chart::bar;
use super::{Delays, ZONE};
use crate::samples::flight::Flight;
use crate::terminal::exit::Outcome;
use crate::terminal::format::count;
use crate::terminal::ui::Ui;

/// Columns of the bars of a chart.
const BAR_COLUMNS: usize = 32;

/// Flights that left, and their delay in minutes.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Left {
    flights: i64,
    minutes: i64,
}

impl Left {
    fn add(&mut self, flight: &Flight) {
        if let Some(delay) = flight.details.dep_delay {
            self.flights += 1;
            self.minutes += i64::from(delay);
        }
    }

    fn mean(self) -> Option<f64> {
        (self.flights > 0).then(|| self.minutes as f64 / self.flights as f64)
    }
}

fn long(table: &Table, row: usize, column: &str) -> i64 {
    table.value(row, column).and_then(|value| value.to_long().ok().flatten()).unwrap_or_default()
}

fn double(table: &Table, row: usize, column: &str) -> f64 {
    table.value(row, column).and_then(|value| value.to_double().ok().flatten()).unwrap_or_default()
}

fn text(table: &Table, row: usize, column: &str) -> String {
    table.value(row, column).map(ToString::to_string).unwrap_or_default()
}

/// The date of a bucket, of the first letters of its time.
fn date(table: &Table, row: usize, letters: usize) -> String {
    let time = table.value(row, "timestamp").and_then(|time| table.time(time)).unwrap_or_default();
    time.chars().take(letters).collect()
}

/// With the mean delay of the flights that left.
fn with_mean(query: Query) -> Result<Query, sapwood::rollup::Error> {
    query
        .aggregation(Aggregation::long_sum("flights", "flights"))
        .aggregation(Aggregation::long_sum("cancelled", "cancelled"))
        .aggregation(Aggregation::long_sum("minutes", "minutes"))
        .post_aggregation("mean", "cast(minutes, 'DOUBLE') / (flights - cancelled)")
}

impl Delays {
    /// Answers a query, and says how long it took.
    fn ask(&self, query: Query) -> Outcome<(Table, Effort)> {
        let query = query.threads(self.threads);
        let begin = Instant::now();
        let table = self.rollup.query(&query)?;
        let elapsed = begin.elapsed();
        let work = self.rollup.stats().facts;
        Ok((table, Effort { work, unit: "facts", elapsed }))
    }

    /// How many facts there must be.
    pub(super) fn expected_facts(&self) -> u64 {
        let facts: BTreeSet<_> = self
            .rows
            .iter()
            .map(|row| {
                let details = &row.details;
                (row.hour_start(), row.id.carrier, details.origin, details.dest)
            })
            .collect();
        facts.len() as u64
    }

    /// How delays went over the year.
    pub(super) fn year(&self, ui: &Ui) -> Outcome {
        let month = Granularity::parse("month")?.in_zone(ZONE)?;
        let (table, effort) = self.ask(with_mean(Query::timeseries(month))?)?;
        let mut expected: BTreeMap<(u16, u8), Left> = BTreeMap::new();
        for row in &self.rows {
            expected.entry((row.id.year, row.id.month)).or_default().add(row);
        }
        let found: Vec<(String, Option<f64>)> = (0..table.rows.len())
            .map(|row| (date(&table, row, 7), Some(double(&table, row, "mean"))))
            .collect();
        let wanted: Vec<(String, Option<f64>)> = expected
            .iter()
            .map(|((year, month), left)| (format!("{year}-{month:02}"), left.mean()))
            .collect();
        equal("months", &found, &wanted)?;
        let greatest = found.iter().filter_map(|(_, mean)| *mean).fold(0.0, f64::max);
        let mut chart = listing(&["month", "flights", "cancelled", "mean delay", ""]);
        for (row, (month, mean)) in found.iter().enumerate() {
            let mean = mean.unwrap_or_default();
            chart.add_row([
                month.clone(),
                count(long(&table, row, "flights").unsigned_abs()),
                count(long(&table, row, "cancelled").unsigned_abs()),
                format!("{mean:.1} min"),
                bar(mean, greatest, BAR_COLUMNS),
            ]);
        }
        let json = found.iter().enumerate().map(|(row, (month, mean))| {
            json!({ "month": month, "flights": long(&table, row, "flights"), "mean": mean })
        });
        let answer = Answer {
            name: "year",
            question: "How did departure delays go over the year?".to_owned(),
            text: chart.to_string(),
            json: json.collect(),
            effort,
            verified: "the mean of each month, by a loop over the rows",
        };
        self.print(answer, ui)
    }

    /// The days with the greatest mean delay.
    pub(super) fn worst_days(&self, ui: &Ui) -> Outcome {
        let day = Granularity::parse("day")?.in_zone(ZONE)?;
        let query = with_mean(Query::timeseries(day))?.order_by("mean", true).limit(5);
        let (table, effort) = self.ask(query)?;
        let mut expected: BTreeMap<(u16, u8, u8), Left> = BTreeMap::new();
        for row in &self.rows {
            expected.entry((row.id.year, row.id.month, row.id.day)).or_default().add(row);
        }
        let mut wanted: Vec<(String, f64)> = expected
            .iter()
            .filter_map(|((year, month, day), left)| {
                Some((format!("{year}-{month:02}-{day:02}"), left.mean()?))
            })
            .collect();
        wanted.sort_by(|left, right| right.1.total_cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        wanted.truncate(5);
        let found: Vec<(String, f64)> = (0..table.rows.len())
            .map(|row| (date(&table, row, 10), double(&table, row, "mean")))
            .collect();
        equal("days", &found, &wanted)?;
        let mut list = listing(&["day", "flights", "cancelled", "mean delay", ""]);
        for (row, (day, mean)) in found.iter().enumerate() {
            list.add_row([
                day.clone(),
                count(long(&table, row, "flights").unsigned_abs()),
                count(long(&table, row, "cancelled").unsigned_abs()),
                format!("{mean:.1} min"),
                bar(*mean, found[0].1, BAR_COLUMNS),
            ]);
        }
        let json = found.iter().map(|(day, mean)| json!({ "day": day, "mean": mean }));
        let answer = Answer {
            name: "worst_days",
            question: "Which five days were the worst?".to_owned(),
            text: list.to_string(),
            json: json.collect(),
            effort,
            verified: "the mean of each day, by a loop over the rows",
        };
        self.print(answer, ui)
    }

    /// How late the flights of each carrier leave.
    pub(super) fn carriers(&self, ui: &Ui) -> Outcome {
        let query = with_mean(Query::group_by(["carrier"]))?
            .aggregation(Aggregation::long_max("worst", "worst"))
            .aggregation(Aggregation::quantile("median", "delays", 0.5))
            .aggregation(Aggregation::quantile("p90", "delays", 0.9))
            .order_by("p90", true);
        let (table, effort) = self.ask(query)?;
        let mut expected: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for row in &self.rows {
            let delays = expected.entry(row.id.carrier.to_string()).or_default();
            delays.extend(row.details.dep_delay.map(i64::from));
        }
        let mut list = listing(&["carrier", "flights", "mean", "median", "9 of 10", "worst"]);
        let mut json = Vec::new();
        for row in 0..table.rows.len() {
            let carrier = text(&table, row, "carrier");
            let delays = expected.get_mut(&carrier).map(std::mem::take).unwrap_or_default();
            // Fewer than 4,096 different delays are counted each: these quantiles are exact.
            let (median, p90) = (quantile(&delays, 0.5), quantile(&delays, 0.9));
            let found = (double(&table, row, "median"), double(&table, row, "p90"));
            equal(&carrier, found, (median, p90))?;
            equal(&carrier, Some(long(&table, row, "worst")), delays.iter().max().copied())?;
            list.add_row([
                carrier.clone(),
                count(long(&table, row, "flights").unsigned_abs()),
                format!("{:.1} min", double(&table, row, "mean")),
                format!("{median:.1} min"),
                format!("{p90:.1} min"),
                format!("{} min", long(&table, row, "worst")),
            ]);
            json.push(json!({ "carrier": carrier, "median": median, "p90": p90 }));
        }
        equal("carriers", table.rows.len(), expected.len())?;
        let answer = Answer {
            name: "carriers",
            question: "How late do the flights of each carrier leave, the slowest first?"
                .to_owned(),
            text: list.to_string(),
            json: json.into(),
            effort,
            verified: "the delays of each carrier, sorted",
        };
        self.print(answer, ui)
    }

    /// Where most flights of an airport go.
    pub(super) fn destinations(&self, ui: &Ui) -> Outcome {
        let most = TopNMetric::Greatest("flights".to_owned());
        let query =
            with_mean(Query::top_n("dest", most, 5))?.filter(Filter::equal("origin", "JFK"));
        let (table, effort) = self.ask(query)?;
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.details.origin.as_str() == "JFK") {
            *expected.entry(row.details.dest.to_string()).or_default() += 1;
        }
        let mut wanted: Vec<(String, i64)> = expected.into_iter().collect();
        wanted.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        wanted.truncate(5);
        let found: Vec<(String, i64)> = (0..table.rows.len())
            .map(|row| (text(&table, row, "dest"), long(&table, row, "flights")))
            .collect();
        equal("destinations", &found, &wanted)?;
        let mut list = listing(&["to", "flights", "mean delay", ""]);
        for (row, (dest, flights)) in found.iter().enumerate() {
            list.add_row([
                dest.clone(),
                count(flights.unsigned_abs()),
                format!("{:.1} min", double(&table, row, "mean")),
                bar(*flights as f64, found[0].1 as f64, BAR_COLUMNS),
            ]);
        }
        let json = found.iter().map(|(dest, flights)| json!({ "dest": dest, "flights": flights }));
        let answer = Answer {
            name: "destinations",
            question: "Where do most flights from JFK go?".to_owned(),
            text: list.to_string(),
            json: json.collect(),
            effort,
            verified: "flights from JFK by destination, by a loop over the rows",
        };
        self.print(answer, ui)
    }

    /// How many different planes left each airport: an estimate.
    pub(super) fn planes(&self, ui: &Ui) -> Outcome {
        let query = Query::group_by(["origin"])
            .aggregation(Aggregation::distinct("planes", "planes"))
            .aggregation(Aggregation::long_sum("flights", "flights"));
        let (table, effort) = self.ask(query)?;
        let mut expected: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| !row.details.tailnum.as_str().is_empty()) {
            let planes = expected.entry(row.details.origin.to_string()).or_default();
            planes.insert(row.details.tailnum.as_str());
        }
        let mut list = listing(&["from", "flights", "planes", "in truth"]);
        let mut json = Vec::new();
        for row in 0..table.rows.len() {
            let origin = text(&table, row, "origin");
            let exact = expected.get(&origin).map_or(0, BTreeSet::len) as i64;
            let planes = long(&table, row, "planes");
            // Four standard errors.
            let is_near = (planes - exact).abs() as f64 <= 4.0 * 0.01625 * exact as f64;
            equal(&origin, is_near, true)?;
            list.add_row([
                origin.clone(),
                count(long(&table, row, "flights").unsigned_abs()),
                count(planes.unsigned_abs()),
                count(exact.unsigned_abs()),
            ]);
            json.push(json!({ "origin": origin, "planes": planes, "exact": exact }));
        }
        equal("airports", table.rows.len(), expected.len())?;
        let no_value = table.rows.iter().flatten().filter(|value| **value == Value::Null).count();
        equal("nulls", no_value, 0)?;
        let answer = Answer {
            name: "planes",
            question: "How many different planes left each airport, within 1.6 %?".to_owned(),
            text: list.to_string(),
            json: json.into(),
            effort,
            verified: "the planes of each airport, counted; estimates are within four standard errors",
        };
        self.print(answer, ui)
    }
}

/// The number with this share of the others below it.
fn quantile(delays: &[i64], share: f64) -> f64 {
    let mut sorted = delays.to_vec();
    sorted.sort_unstable();
    let position = share * sorted.len().saturating_sub(1) as f64;
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default() as f64;
    let (below, rest) = (position.floor() as usize, position.fract());
    if rest == 0.0 { at(below) } else { at(below) + (at(below + 1) - at(below)) * rest }
}
