//! Every way to answer a question, with what was expected of it and what it did.

use std::time::Duration;

use comfy_table::CellAlignment;
use sapwood::aggregate::{Aggregated, Answer as Figured, Compiled, Execution, Measured, Plan};
use serde_json::{Value, json};

use crate::commands::aggregate::plan_as_json;
use crate::samples::answer::{equal, listing};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, per_second, time};

use super::tables::Tables;

/// The runs of each executor; the median time counts.
const RUNS: usize = 3;

/// The measured execution.
pub(super) struct Way {
    table: &'static str,
    plan: Plan,
    /// Whether the planner would have taken it.
    is_chosen: bool,
    measured: Measured,
}

/// Answers by each executor of each table, and fails unless all answers are the same.
pub(super) fn every_way(
    tables: &Tables,
    query: &Compiled,
    execution: &Execution<'_>,
) -> Outcome<(Figured, Vec<Way>)> {
    let Tables { ordered, hash } = tables;
    let (answer, mut ways) = every_way_of(
        "ordered",
        execution,
        |execution| ordered.explain(query, execution),
        |execution| ordered.aggregate_with(query, execution),
    )?;
    let (of_hash, ways_of_hash) = every_way_of(
        "hash",
        execution,
        |execution| hash.explain(query, execution),
        |execution| hash.aggregate_with(query, execution),
    )?;
    equal("the answer of the other table", &of_hash, &answer)?;
    ways.extend(ways_of_hash);
    Ok((answer, ways))
}

fn every_way_of<'q>(
    table: &'static str,
    execution: &Execution<'_>,
    explain: impl Fn(&Execution<'_>) -> sapwood::Result<Plan>,
    run: impl Fn(&Execution<'_>) -> sapwood::Result<Aggregated<'q>>,
) -> Outcome<(Figured, Vec<Way>)> {
    let planned = explain(execution)?;
    let mut first: Option<Figured> = None;
    let mut ways = Vec::new();
    for candidate in &planned.candidates {
        let forced = execution.clone().executor(candidate.executor);
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            let done = run(&forced).map_err(stopped)?;
            let plan = done.plan.clone();
            let answer = done.answer()?;
            match &first {
                None => first = Some(answer),
                Some(first) => equal("the answer of another executor", &answer, first)?,
            }
            runs.extend(plan.measured.map(|measured| (measured, plan)));
        }
        runs.sort_by_key(|(measured, _)| measured.elapsed);
        let (measured, plan) = runs.swap_remove(RUNS / 2);
        let is_chosen = candidate.executor == planned.executor;
        ways.push(Way { table, plan, is_chosen, measured });
    }
    let nobody = || Failure::Failed(format!("no executor reaches the {table} table"));
    let answer = first.ok_or_else(nobody)?;
    Ok((answer, ways))
}

fn stopped(error: sapwood::Error) -> Failure {
    match error {
        sapwood::Error::Cancelled { visited, .. } => Failure::Interrupted(format!(
            "{} flights had been visited; nothing was changed",
            count(visited)
        )),
        error => error.into(),
    }
}

impl Way {
    fn objects_per_ms(&self) -> f64 {
        per_second(self.measured.selected, self.measured.elapsed) / 1e3
    }

    pub(super) fn as_json(&self) -> Value {
        let mut object = plan_as_json(&self.plan);
        object["table"] = json!(self.table);
        object["chosen"] = json!(self.is_chosen);
        object["objects_per_ms"] = json!(self.objects_per_ms());
        object
    }
}

/// The time of the fastest.
pub(super) fn fastest(ways: &[Way]) -> Duration {
    ways.iter().map(|way| way.measured.elapsed).min().unwrap_or_default()
}

/// The plans, with what was expected and what was measured; `>` marks what the planner takes.
pub(super) fn listing_of(ways: &[Way]) -> comfy_table::Table {
    let mut listing =
        listing(&["", "table", "by", "to visit", "expected", "visited", "took", "flights/ms"]);
    for way in ways {
        let expected = way.plan.expected();
        listing.add_row([
            if way.is_chosen { ">" } else { "" }.to_owned(),
            way.table.to_owned(),
            way.plan.executor.to_string(),
            count(expected.visits),
            time(expected.estimate),
            count(way.measured.visited),
            time(way.measured.elapsed),
            count(way.objects_per_ms() as u64),
        ]);
    }
    align_right(&mut listing, 3..8);
    listing
}

pub(super) fn align_right(listing: &mut comfy_table::Table, columns: std::ops::Range<usize>) {
    for column in listing.column_iter_mut().skip(columns.start).take(columns.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
