//! The way back: the minutes that a day's flights were late, as a budget that is spread over them
//! again, in whole minutes that add up to it.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use comfy_table::CellAlignment;
use sapwood::aggregate::{
    Aggregate, Disaggregated, Disaggregation, Disaggregator, Execution, Plan, Predicate, Query,
    Selection, Value as Figure,
};
use sapwood::{Error, Table};
use serde_json::{Value, json};

use crate::samples::answer::{Answer, Effort, equal, listing};
use crate::samples::flight::Flight;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, time};
use crate::terminal::ui::Ui;

use super::record;
use super::tables::Tables;

/// The 8th of March, on which it snowed.
const MONTH: u8 = 3;
const DAY: u8 = 8;

/// The flights that left.
const LEFT: &str = "dep_delay is not missing";

/// The way the budget is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weighting {
    Equally,
    ByDistance,
}

impl Weighting {
    fn name(self) -> &'static str {
        match self {
            Weighting::Equally => "equally",
            Weighting::ByDistance => "in proportion to distance",
        }
    }
}

/// A flight of the day, and its part of the budget.
struct Part<'a> {
    flight: &'a Flight,
    key: Vec<u8>,
    minutes: i128,
}

/// The outcome in a table.
struct TableReport {
    how: Weighting,
    table: &'static str,
    report: Disaggregated,
    plan: Plan,
    least: i128,
    most: i128,
    elapsed: Duration,
}

pub(super) fn answer(tables: &Tables, rows: &[Flight], threads: u16, ui: &Ui) -> Outcome {
    let execution = Execution::new().threads(threads.into()).cancel(ui.interrupt.cancel());
    let total = late_minutes(tables, rows)?;
    let equally = parts(rows, Weighting::Equally, total);
    let by_distance = parts(rows, Weighting::ByDistance, total);
    let mut spreads = Vec::new();
    for (how, parts) in [(Weighting::Equally, &equally), (Weighting::ByDistance, &by_distance)] {
        for table in both(tables) {
            spreads.push(spread_over(&table, how, total, parts, &execution)?);
        }
    }
    let elapsed = spreads.iter().map(|spread| spread.elapsed).sum();
    undo(tables, rows, &execution)?;
    let flights = equally.len() as u64;
    Answer {
        name: "budget",
        question: format!(
            "Flights left {} minutes late on the 8th of March in all. As a budget of delay, what is \
             each one's part?",
            count(total.unsigned_abs() as u64)
        ),
        text: format!(
            "{}\n{}\nthen it was taken back: every record is as it was loaded",
            spreads_listing(&spreads),
            extremes(&by_distance).join("\n"),
        ),
        json: json!({
            "minutes": total as i64,
            "flights": flights,
            "threads": threads,
            "spreads": spreads.iter().map(TableReport::as_json).collect::<Value>(),
        }),
        effort: Effort { work: spreads.len() as u64 * flights, unit: "flights", elapsed },
        verified: "the part of each flight is that of a plain loop, to the minute, and all parts \
                   add up to the budget",
    }
    .print_as("airports", ui)
}

/// The tables with the flights.
fn both(tables: &Tables) -> [Table; 2] {
    [tables.ordered.clone().into(), tables.hash.clone().into()]
}

/// Spreads the budget, and checks every part of it.
fn spread_over(
    table: &Table,
    how: Weighting,
    total: i128,
    parts: &[Part<'_>],
    execution: &Execution<'_>,
) -> Outcome<TableReport> {
    let what = spread(how, total).compile().map_err(Error::from)?;
    let started = Instant::now();
    let (report, plan) = disaggregate(table, &what, execution)?;
    let elapsed = started.elapsed();
    for part in parts {
        let found = table.get_with(&part.key, record::budget)?;
        let found = found.flatten().map(i128::from);
        equal("the minutes of a flight", found, Some(part.minutes))?;
    }
    let minutes = || parts.iter().map(|part| part.minutes);
    equal("the sum of the parts", minutes().sum(), total)?;
    equal("flights with a part", report.changed, parts.len() as u64)?;
    equal("minutes given", report.given, total)?;
    equal("minutes after", &report.sum_after, &Some(total.into()))?;
    Ok(TableReport {
        how,
        table: if table.as_ordered().is_some() { "ordered" } else { "hash" },
        report,
        plan,
        least: minutes().min().unwrap_or_default(),
        most: minutes().max().unwrap_or_default(),
        elapsed,
    })
}

/// The report, if everything was applied.
fn disaggregate(
    table: &Table,
    what: &Disaggregator,
    execution: &Execution<'_>,
) -> Outcome<(Disaggregated, Plan)> {
    let stopped = |error| match error {
        Error::Cancelled { visited, .. } => Failure::Interrupted(format!(
            "{} flights had been visited; the budget was being spread",
            count(visited)
        )),
        error => error.into(),
    };
    let run = table.disaggregate_with(what, execution).map_err(stopped)?;
    match (run.stopped, run.plan) {
        (Some(error), _) => Err(stopped(error)),
        (None, Some(plan)) => Ok((run.report, plan)),
        (None, None) => Err(Failure::Failed("a disaggregation has no plan".to_owned())),
    }
}

fn spreads_listing(spreads: &[TableReport]) -> comfy_table::Table {
    let mut listing =
        listing(&["how", "table", "by", "flights", "least", "most", "before", "after", "took"]);
    for spread in spreads {
        listing.add_row([
            spread.how.name().to_owned(),
            spread.table.to_owned(),
            spread.plan.executor.to_string(),
            count(spread.report.changed),
            spread.least.to_string(),
            spread.most.to_string(),
            sum_text(&spread.report.sum_before),
            sum_text(&spread.report.sum_after),
            time(spread.elapsed),
        ]);
    }
    for column in listing.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    listing
}

/// The sum of the day's delays, from the tables.
fn late_minutes(tables: &Tables, rows: &[Flight]) -> Outcome<i128> {
    let query =
        Query::new(record::layout()).select(day()).aggregates(vec![Aggregate::sum("dep_delay")]);
    let of_ordered = tables.ordered.aggregate(&query)?;
    equal("the answer of the other table", &tables.hash.aggregate(&query)?, &of_ordered)?;
    let delays = rows
        .iter()
        .filter(|flight| is_of_day(flight))
        .filter_map(|flight| flight.details.dep_delay.map(i128::from));
    let total: i128 = delays.sum();
    let found = of_ordered.value(0, "sum(dep_delay)").map_err(Error::from)?;
    equal("minutes late", found, &total.into())?;
    Ok(total)
}

fn day() -> Selection {
    Selection::prefix(record::day(MONTH, DAY))
}

fn is_of_day(flight: &Flight) -> bool {
    (flight.id.month, flight.id.day) == (MONTH, DAY)
}

fn spread(how: Weighting, total: i128) -> Disaggregation {
    let left: Predicate = LEFT.parse().expect("a predicate that the sample's test asks");
    let spread = Disaggregation::new(record::layout(), "budget", total).select(day()).filter(left);
    match how {
        Weighting::Equally => spread.equally(),
        Weighting::ByDistance => spread.in_proportion_to("distance"),
    }
}

/// Each flight's part by plain arithmetic: what divides, and a minute more for those that lose most
/// by it, by their keys where these tie.
fn parts(rows: &[Flight], how: Weighting, total: i128) -> Vec<Part<'_>> {
    let left = rows.iter().filter(|flight| is_of_day(flight) && !flight.is_cancelled());
    let mut parts: Vec<Part<'_>> = left
        .map(|flight| {
            let mut key = Vec::new();
            record::encode_key(flight, &mut key);
            Part { flight, key, minutes: 0 }
        })
        .collect();
    let weight = |part: &Part<'_>| match how {
        Weighting::Equally => 1,
        Weighting::ByDistance => part.flight.details.distance.map_or(0, i128::from),
    };
    let weights: i128 = parts.iter().map(weight).sum();
    let mut given = 0;
    for part in &mut parts {
        part.minutes = total * weight(part) / weights;
        given += part.minutes;
    }
    parts.sort_by_cached_key(|part| (Reverse(total * weight(part) % weights), part.key.clone()));
    let missing = usize::try_from(total - given).unwrap_or_default();
    parts.iter_mut().take(missing).for_each(|part| part.minutes += 1);
    parts
}

/// The flights that go the least and the most far.
fn extremes(parts: &[Part<'_>]) -> Vec<String> {
    let miles = |part: &&Part<'_>| (part.flight.details.distance, part.flight.id);
    let ends = [parts.iter().min_by_key(miles), parts.iter().max_by_key(miles)];
    let describe = |part: &Part<'_>| {
        let Flight { id, details } = part.flight;
        let miles = details.distance.unwrap_or_default();
        format!(
            "{} {} to {}, {miles} miles: {} minutes",
            id.carrier, id.number, details.dest, part.minutes
        )
    };
    ends.into_iter().flatten().map(describe).collect()
}

/// Takes the budget back, and checks every record of the year.
fn undo(tables: &Tables, rows: &[Flight], execution: &Execution<'_>) -> Outcome {
    let nothing = spread(Weighting::Equally, 0).compile().map_err(Error::from)?;
    for table in both(tables) {
        disaggregate(&table, &nothing, execution)?;
    }
    tables.expect(&record::all(rows))
}

fn sum_text(sum: &Option<Figure<'static>>) -> String {
    sum.as_ref().map_or("-".to_owned(), ToString::to_string)
}

impl TableReport {
    fn as_json(&self) -> Value {
        json!({
            "how": self.how.name(),
            "table": self.table,
            "executor": self.plan.executor.to_string(),
            "changed": self.report.changed,
            "given": self.report.given as i64,
            "least": self.least as i64,
            "most": self.most as i64,
            "sum_before": sum_text(&self.report.sum_before),
            "sum_after": sum_text(&self.report.sum_after),
            "seconds": self.elapsed.as_secs_f64(),
        })
    }
}
