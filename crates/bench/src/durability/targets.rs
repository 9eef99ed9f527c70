//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::measure::Figures;
use super::ours::NAMES;
use super::recovery::{Left, Recovered};
use super::report::{against_memory, share_of_disk};
use super::workload::{Data, Level, Workload};
use super::{TARGET_CHECKPOINTED, TARGET_RECOVERED, TARGET_SECONDS, redis};
use crate::figures::{Rate, Ratio, median};
use crate::report::{Targets, Verdicts};

const ASYNC_AGAINST_MEMORY: f64 = 0.7;
/// The share of the disk's own rate from which on a log is held back by it.
const FULL_DISK: f64 = 0.8;
const MANY_WRITERS: usize = 50;
const MANY_AGAINST_ONE: f64 = 10.0;
const RECOVERY_SECONDS_MOST: f64 = 5.0;
const P99_MOST: f64 = 2.0;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let seconds = figures.plan.time.as_secs_f64();
    let judged = |is_full| if is_full { Verdicts::Given } else { Verdicts::Withheld };
    let title = format!("Targets of levels, judged from {TARGET_SECONDS} s a run on");
    let mut levels = Targets::new(judged(seconds >= TARGET_SECONDS));
    for rate in &figures.rates.rates {
        if rate.workload.level == Level::Async && NAMES.contains(&&*rate.engine) {
            async_against_memory(&mut levels, figures, rate);
        }
    }
    for data in Data::ALL {
        for engine in NAMES {
            let sync = Workload { data, level: Level::Sync };
            let rate = |writers| figures.rates.rate(engine, sync, writers);
            if let Some((many, one)) = rate(MANY_WRITERS).zip(rate(1)) {
                let title = format!("{engine}: sync of {} against one writer", data.name());
                let ratio = Ratio::of(&many.rounds, &one.rounds);
                levels.at_least(&title, MANY_WRITERS, MANY_AGAINST_ONE, ratio);
            }
        }
    }
    section(out, &title, &levels, &format!("{seconds} s a run"))?;

    let mut checkpoints = Targets::new(judged(figures.checkpointed >= TARGET_CHECKPOINTED));
    for beside in &figures.checkpoints {
        let [during, without] =
            [&beside.during, &beside.without].map(|puts| median(&puts.each(|round| round.p99)));
        let (engine, writers) = (beside.engine, beside.writers);
        let title = format!("{engine}: p99 of {writers} writers beside a checkpoint");
        checkpoints.at_most(&title, P99_MOST, during / without, "x");
    }
    let title = format!("Targets of checkpoints, judged at {TARGET_CHECKPOINTED} entries");
    section(out, &title, &checkpoints, &format!("{} entries", figures.checkpointed))?;

    let entries = figures.plan.recovered;
    let mut recovery = Targets::new(judged(entries >= TARGET_RECOVERED));
    for left in [Left::Closed, Left::Ended] {
        for engine in NAMES {
            let of = |engine: &'static str| figures.recovered.iter().find(is(engine, left));
            let Some(ours) = of(engine) else { continue };
            let title = format!("{engine}: recovery from its {}", left.name());
            recovery.at_most(&title, RECOVERY_SECONDS_MOST, ours.median(), "s");
            if let Some(theirs) = of(redis::NAME) {
                let ratio = Ratio::of(&ours.rates(), &theirs.rates());
                let title = format!("{title} against {}", redis::NAME);
                recovery.at_least(&title, 1, 1.0, ratio);
            }
        }
    }
    let title = format!("Targets of recovery, judged at {TARGET_RECOVERED} entries");
    section(out, &title, &recovery, &format!("{entries} entries"))
}

fn section(out: &mut dyn Write, title: &str, targets: &Targets, size: &str) -> io::Result<()> {
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}:")?;
    if targets.are_withheld() {
        writeln!(out, "(this run has {size}: pass --full to judge them)")?;
    }
    writeln!(out, "{targets}")
}

fn is(engine: &'static str, left: Left) -> impl Fn(&&Recovered) -> bool {
    move |it| it.engine == engine && it.left == left
}

fn async_against_memory(targets: &mut Targets, figures: &Figures, rate: &Rate<Workload>) {
    let Some(ratio) = against_memory(figures, rate) else { return };
    let mut title = format!("{}: async against memory, {}", rate.engine, rate.workload.data.name());
    if let Some(share) = share_of_disk(figures, rate) {
        let full = if share >= FULL_DISK { ", which is full" } else { "" };
        title += &format!(" ({:.0} % of the disk{full})", share * 100.0);
    }
    targets.at_least(&title, rate.threads, ASYNC_AGAINST_MEMORY, ratio);
}
