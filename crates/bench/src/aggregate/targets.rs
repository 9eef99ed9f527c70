//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_OBJECTS;
use super::baseline::RECORDS;
use super::contenders::{
    LOG, LOOK_UP, ORDERED_LOOK_UP, ORDERED_PLANNER, ORDERED_RANGE, PLANNER, WALK, Way,
};
use super::measure::Figures;
use super::references::PEERS;
use super::workload::{Fraction, Pick, Workload};
use crate::figures::{Rate, Ratio, Timed};
use crate::report::{Targets, Verdicts};

/// The log, all objects, of the plain loop over the same bytes.
const LOG_OF_BASELINE: f64 = 0.6;
/// Objects a ms on one thread, all of them or random keys.
const LEAST: [(Way, Workload, f64); 5] = [
    (LOG, Workload::Sum(Pick::Everything), 400_000.0),
    (WALK, Workload::Sum(Pick::Everything), 80_000.0),
    (LOOK_UP, Workload::Sum(Pick::List(Fraction::Tenth)), 25_000.0),
    (LOG, Workload::Disaggregate(Pick::Everything), 200_000.0),
    (LOOK_UP, Workload::Disaggregate(Pick::List(Fraction::Tenth)), 20_000.0),
];
/// The workloads in which two threads must beat one.
const ON_TWO_THREADS: [(Way, Workload); 6] = [
    (LOG, Workload::Sum(Pick::Everything)),
    (WALK, Workload::Sum(Pick::Everything)),
    (LOOK_UP, Workload::Sum(Pick::List(Fraction::Tenth))),
    (ORDERED_RANGE, Workload::Sum(Pick::Everything)),
    (LOG, Workload::Disaggregate(Pick::Everything)),
    (LOOK_UP, Workload::Disaggregate(Pick::List(Fraction::Tenth))),
];
/// Two threads against one.
const TWO_THREADS: f64 = 1.7;
/// Where a part is selected, an object costs at most 1.3 times a look-up.
const OF_LOOK_UP: f64 = 1.0 / 1.3;
/// The planner's choice takes at most 15 % longer than the best executor.
const OF_BEST: f64 = 1.0 / 1.15;
const AGAINST_PEERS: f64 = 10.0;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = match figures.objects != TARGET_OBJECTS {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    let rate = |way: Way, pick, threads| figures.rates.rate(way.name, Workload::Sum(pick), threads);
    if let Some(log) = rate(LOG, Pick::Everything, 1)
        && let Some(baseline) = figures.rates.rate(RECORDS, log.workload, 1)
    {
        let ratio = Ratio::of(&log.rounds, &baseline.rounds);
        targets.at_least("log, everything, of a plain loop", 1, LOG_OF_BASELINE, ratio);
    }
    for (way, workload, least) in LEAST {
        if let Some(rate) = figures.rates.rate(way.name, workload, 1) {
            let title = format!("{}, {}, of {least} objects/ms", way.name, workload.name());
            targets.at_least(&title, 1, 1.0, Ratio::to(&rate.rounds, least * 1e3));
        }
    }
    for (way, workload) in ON_TWO_THREADS {
        let on = |threads| figures.rates.rate(way.name, workload, threads);
        if let Some((one, two)) = on(1).zip(on(2)) {
            let title = format!("{}, {}, against one thread", way.name, workload.name());
            targets.at_least(&title, 2, TWO_THREADS, Ratio::of(&two.rounds, &one.rounds));
        }
    }
    for threads in figures.rates.thread_counts() {
        for pick in Pick::ALL {
            planner(&mut targets, &|way| rate(way, pick, threads), pick, threads);
        }
    }
    for peer in &PEERS {
        if let Some(rate) = rate(PLANNER, Pick::Everything, 1) {
            let title = format!("planner, everything, against {}", peer.name);
            targets.at_least(&title, 1, AGAINST_PEERS, Ratio::to(&rate.rounds, peer.rate * 1e3));
        }
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at {TARGET_OBJECTS} objects on 1 and 2 threads:")?;
    if verdicts == Verdicts::Withheld {
        writeln!(
            out,
            "(this run has {} objects: pass --objects {TARGET_OBJECTS} to judge them)",
            figures.objects
        )?;
    }
    writeln!(out, "{targets}")
}

/// The planner against look-ups, and against the best executor.
fn planner<'a>(
    targets: &mut Targets,
    rate: &dyn Fn(Way) -> Option<&'a Rate<Workload>>,
    pick: Pick,
    threads: usize,
) {
    if pick.share() != Fraction::All
        && let Some((planner, look_up)) = rate(PLANNER).zip(rate(LOOK_UP))
    {
        let title = format!("planner, {}, against look-ups", pick.name());
        targets.at_least(&title, threads, OF_LOOK_UP, Ratio::of(&planner.rounds, &look_up.rounds));
    }
    for (planner, forced) in
        [(PLANNER, &[LOOK_UP, WALK, LOG][..]), (ORDERED_PLANNER, &[ORDERED_LOOK_UP, ORDERED_RANGE])]
    {
        let best = forced
            .iter()
            .filter_map(|way| rate(*way))
            .max_by(|left, right| left.median().total_cmp(&right.median()));
        if let Some((ours, best)) = rate(planner).zip(best) {
            let title = format!("{}, {}, of the best: {}", planner.name, pick.name(), best.engine);
            targets.at_least(&title, threads, OF_BEST, Ratio::of(&ours.rounds, &best.rounds));
        }
    }
}
