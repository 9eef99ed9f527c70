//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_OBJECTS;
use super::baseline::{LOOK_UPS, RECORDS};
use super::contenders::{
    LOG, LOOK_UP, ORDERED_LOOK_UP, ORDERED_PLANNER, ORDERED_RANGE, PLANNER, WALK, Way,
};
use super::measure::Figures;
use super::workload::{Fraction, Pick, Workload};
use crate::figures::{Rate, Ratio, Timed};
use crate::report::{Targets, Verdicts};

const ALL: Workload = Workload::Sum(Pick::Everything);
/// Random keys.
const TENTH: Workload = Workload::Sum(Pick::List(Fraction::Tenth));

/// What a way reaches in a workload, of what a form of the baseline reaches in one: objects a ms on
/// one thread. A range of an ordered table visits what is selected alone, so that it is compared with
/// the loop over everything.
const OF_BASELINE: [(Way, Workload, &str, Workload, f64); 11] = [
    (LOG, ALL, RECORDS, ALL, 0.8),
    (WALK, ALL, LOOK_UPS, TENTH, 5.0),
    (LOOK_UP, TENTH, LOOK_UPS, TENTH, 0.8),
    (LOG, DISAGGREGATED, RECORDS, DISAGGREGATED, 0.4),
    (ORDERED_RANGE, range(Fraction::All), RECORDS, ALL, 0.1),
    (ORDERED_RANGE, range(Fraction::Tenth), RECORDS, ALL, 0.1),
    (ORDERED_RANGE, range(Fraction::TwoHundredth), RECORDS, ALL, 0.1),
    (ORDERED_LOOK_UP, list(Fraction::All), LOOK_UPS, list(Fraction::All), 0.4),
    (ORDERED_LOOK_UP, list(Fraction::Tenth), LOOK_UPS, list(Fraction::Tenth), 0.4),
    (ORDERED_LOOK_UP, list(Fraction::TwoHundredth), LOOK_UPS, list(Fraction::TwoHundredth), 0.4),
    (LOOK_UP, LISTED_DISAGGREGATED, LOOK_UPS, LISTED_DISAGGREGATED, 0.7),
];
const DISAGGREGATED: Workload = Workload::Disaggregate(Pick::Everything);
const LISTED_DISAGGREGATED: Workload = Workload::Disaggregate(Pick::List(Fraction::Tenth));

const fn range(share: Fraction) -> Workload {
    Workload::Sum(Pick::Range(share))
}

const fn list(share: Fraction) -> Workload {
    Workload::Sum(Pick::List(share))
}

/// The workloads in which two threads must beat one.
const ON_TWO_THREADS: [(Way, Workload); 11] = [
    (LOG, ALL),
    (WALK, ALL),
    (LOOK_UP, TENTH),
    (ORDERED_RANGE, range(Fraction::All)),
    (ORDERED_RANGE, range(Fraction::Tenth)),
    (ORDERED_RANGE, range(Fraction::TwoHundredth)),
    (ORDERED_LOOK_UP, list(Fraction::All)),
    (ORDERED_LOOK_UP, list(Fraction::Tenth)),
    (ORDERED_LOOK_UP, list(Fraction::TwoHundredth)),
    (LOG, DISAGGREGATED),
    (LOOK_UP, LISTED_DISAGGREGATED),
];
/// Two threads against one.
const TWO_THREADS: f64 = 1.7;
/// Where a part is selected, an object costs at most 1.3 times a look-up.
const OF_LOOK_UP: f64 = 1.0 / 1.3;
/// The planner's choice takes at most 15 % longer than the best executor.
const OF_BEST: f64 = 1.0 / 1.15;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = match figures.objects != TARGET_OBJECTS {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    let rate = |way: Way, pick, threads| figures.rates.rate(way.name, Workload::Sum(pick), threads);
    for (way, workload, form, of, least) in OF_BASELINE {
        let baseline = figures.rates.rate(form, of, 1);
        if let Some((ours, baseline)) = figures.rates.rate(way.name, workload, 1).zip(baseline) {
            let beside = if workload == of { String::new() } else { format!(", {}", of.name()) };
            let title = format!("{}, {}, of {form}{beside}", way.name, workload.name());
            targets.at_least(&title, 1, least, Ratio::of(&ours.rounds, &baseline.rounds));
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
