//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_OBJECTS;
use super::measure::Figures;
use super::processes::{REDIS, SAPWOOD};
use super::workload::{Client, Command, Sum, Workload};
use crate::figures::{Rate, Ratio, Timed};
use crate::report::{Targets, Verdicts};

/// Times Redis's rate: connections, pipeline, and the least.
const AGAINST_REDIS: [(usize, usize, f64); 6] =
    [(50, 1, 1.0), (50, 16, 1.5), (50, 64, 2.0), (1, 1, 1.0), (1, 16, 1.0), (1, 64, 1.0)];
const ENTRY_BYTES_MOST: f64 = 48.0;
const CONNECTION_BYTES_MOST: f64 = 4096.0;
/// Times the client that fetches one object at a time.
const SUM_AGAINST_FETCHING: f64 = 300.0;
/// Times a script in Redis.
const SUM_AGAINST_SCRIPT: f64 = 10.0;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let mut targets = Targets::new(Verdicts::Given);
    let rates = &figures.rates;
    for (connections, pipeline, least) in AGAINST_REDIS {
        for command in [Command::Set, Command::Get] {
            let client = Client::RedisBenchmark;
            let workload = Workload::Requests { client, command, connections, pipeline };
            let pair = rates.rate(SAPWOOD, workload, 1).zip(rates.rate(REDIS, workload, 1));
            if let Some((ours, theirs)) = pair {
                let title = format!("{} against {REDIS}", workload.name());
                targets.at_least(&title, 1, least, Ratio::of(&ours.rounds, &theirs.rounds));
            }
            let p99 = |server: &str| {
                let of = |it: &&crate::figures::Latency<Workload>| {
                    it.engine == server && it.workload == workload
                };
                rates.latencies.iter().find(of).map(|it| it.percentiles.p99 as f64)
            };
            if let Some((ours, theirs)) = p99(SAPWOOD).zip(p99(REDIS)) {
                let title = format!("p99 of {}, times {REDIS}'s", workload.name());
                targets.at_most(&title, 1.0, ours / theirs, "x");
            }
        }
    }
    if let Some(memory) = figures.memory.iter().find(|memory| memory.server == SAPWOOD) {
        targets.at_most("an entry of 8+8 B", ENTRY_BYTES_MOST, memory.entry, "B");
        targets.at_most("an idle connection", CONNECTION_BYTES_MOST, memory.connection, "B");
    }
    let verdicts = match figures.objects < TARGET_OBJECTS {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut sums = Targets::new(verdicts);
    let best = Sum::ALL
        .into_iter()
        .filter(|sum| matches!(sum, Sum::Aggregate(_)))
        .filter_map(|sum| rates.rate(SAPWOOD, Workload::Sum(sum), 1))
        .max_by(|one, two| one.median().total_cmp(&two.median()));
    let fetched = rates.rate(SAPWOOD, Workload::Sum(Sum::Pipelined(1)), 1);
    let script = rates.rate(REDIS, Workload::Sum(Sum::Lua), 1);
    let mut against = |title: &str, least: f64, theirs: Option<&Rate<Workload>>| {
        if let Some((ours, theirs)) = best.zip(theirs) {
            sums.at_least(title, 1, least, Ratio::of(&ours.rounds, &theirs.rounds));
        }
    };
    against("SW.AGGREGATE against one GET at a time", SUM_AGAINST_FETCHING, fetched);
    against("SW.AGGREGATE against Redis's script", SUM_AGAINST_SCRIPT, script);
    if !targets.is_empty() {
        writeln!(out, "\nTargets:\n{targets}")?;
    }
    if !sums.is_empty() {
        writeln!(out, "\nTargets, judged at {TARGET_OBJECTS} objects:")?;
        if verdicts == Verdicts::Withheld {
            writeln!(out, "(this run has {} objects: pass --full to judge them)", figures.objects)?;
        }
        writeln!(out, "{sums}")?;
    }
    Ok(())
}
