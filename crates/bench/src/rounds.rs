//! Rounds: each runs every contender once, on the same planned operations, and begins with another
//! one, so that none always runs in another's wake.

use std::sync::Barrier;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::Error;
use crate::clock::{Clock, Moment};
use crate::figures::{Latency, Percentiles, Rate, Rates, Timed};
use crate::report::{table_figure, tell};
use crate::tally::Tally;

/// One timed run: the same for every contender.
pub(crate) trait Run {
    type Workload: Timed;

    fn workload(&self) -> Self::Workload;

    fn threads(&self) -> usize;

    /// The work of all threads together, in the workload's unit.
    fn operations(&self) -> usize;
}

/// The figures of one timed run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) elapsed: Duration,
    pub(crate) tally: Tally,
    /// The operations done, if not all that the run planned.
    pub(crate) operations: Option<usize>,
}

/// One participant. Calls are coarse: a whole run each.
pub(crate) trait Contender<R: Run> {
    fn name(&self) -> &str;

    /// Whether it takes part in `workload`.
    fn runs(&self, workload: R::Workload) -> bool;

    /// Runs `run`, then checks what it left behind and puts back what must not stay, untimed.
    fn run(&mut self, run: &R) -> Result<Outcome, Error>;

    /// As `run`, with single calls timed on their own, in nanoseconds.
    fn latencies(&mut self, run: &R) -> Result<Percentiles, Error>;

    /// Whether single calls can be timed.
    fn is_timed_singly(&self) -> bool {
        true
    }
}

impl<R: Run, C: Contender<R> + ?Sized> Contender<R> for Box<C> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn runs(&self, workload: R::Workload) -> bool {
        (**self).runs(workload)
    }
    fn run(&mut self, run: &R) -> Result<Outcome, Error> {
        (**self).run(run)
    }
    fn latencies(&mut self, run: &R) -> Result<Percentiles, Error> {
        (**self).latencies(run)
    }
    fn is_timed_singly(&self) -> bool {
        (**self).is_timed_singly()
    }
}

/// Why an engine's figure was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It read something else than there is; it takes part in other workloads.
    Reading,
    /// It lost or changed what it was given, or ended: it takes no further part.
    Altogether,
}

/// A bar on standard error; silent when that is not a terminal.
pub(crate) fn progress(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}");
    ProgressBar::new(steps as u64).with_style(style.expect("the template is well-formed"))
}

/// Runs `runs` rounds of what `plan` plans for each, and notes their rates. Contenders that fail
/// altogether leave.
pub(crate) fn rounds<R: Run, C: Contender<R>>(
    contenders: &mut Vec<C>,
    rates: &mut Rates<R::Workload>,
    progress: &ProgressBar,
    runs: usize,
    plan: impl Fn(usize) -> R,
    expected: impl Fn(&R) -> Option<Tally>,
) -> Result<(), Error> {
    let count = contenders.len();
    let mut measured: Vec<Vec<f64>> = vec![Vec::new(); count];
    let mut failed: Vec<Option<Failed>> = vec![None; count];
    let mut of = None;
    for round in 0..runs {
        let run = plan(round);
        let (workload, threads) = (run.workload(), run.threads());
        of = Some((workload, threads));
        let expected = expected(&run);
        for place in (0..count).map(|turn| (round + turn) % count) {
            let contender = &mut contenders[place];
            if !contender.runs(workload) || failed[place].is_some() {
                continue;
            }
            progress.set_message(format!("{}: {} on {threads}", contender.name(), workload.name()));
            match contender.run(&run) {
                Ok(outcome) if expected.is_none_or(|expected| outcome.tally == expected) => {
                    let operations = outcome.operations.unwrap_or_else(|| run.operations());
                    measured[place].push(operations as f64 / outcome.elapsed.as_secs_f64());
                }
                Ok(outcome) => {
                    let what =
                        format!("read {}, not {}", outcome.tally, expected.unwrap_or_default());
                    rates.refuse(contender.name(), workload, threads, &what)?;
                    failed[place] = Some(Failed::Reading);
                }
                Err(error) => {
                    rates.refuse(contender.name(), workload, threads, &error.to_string())?;
                    failed[place] = Some(Failed::Altogether);
                }
            }
            progress.inc(1);
        }
    }
    if let Some((workload, threads)) = of {
        let begin = rates.rates.len();
        for ((contender, rounds), failed) in contenders.iter().zip(measured).zip(&failed) {
            if failed.is_none() && !rounds.is_empty() {
                let engine = contender.name().to_owned();
                rates.rates.push(Rate { workload, threads, engine, rounds });
            }
        }
        let figures = medians(&rates.rates[begin..]);
        let title = workload.name();
        progress.suspend(|| tell(format_args!("{title} on {threads}, {figures}")));
    }
    let mut failed = failed.into_iter();
    contenders.retain(|_| failed.next() != Some(Some(Failed::Altogether)));
    Ok(())
}

/// The medians of one workload's rates, in a line: a run that is interrupted has told what it measured.
fn medians<W: Timed>(rates: &[Rate<W>]) -> String {
    let Some(first) = rates.first() else { return "no figure".to_owned() };
    let unit = first.workload.unit();
    let of = |rate: &Rate<W>| format!("{} {}", rate.engine, table_figure(unit, rate.median()));
    format!("{}: {}", unit.table_name(), rates.iter().map(of).collect::<Vec<_>>().join(", "))
}

/// Times single calls of each contender that has a rate.
pub(crate) fn latencies<R: Run, C: Contender<R>>(
    contenders: &mut [C],
    rates: &mut Rates<R::Workload>,
    progress: &ProgressBar,
    run: &R,
) -> Result<(), Error> {
    let (workload, threads) = (run.workload(), run.threads());
    for contender in contenders {
        let engine = contender.name().to_owned();
        // A figure that was refused is not measured in another way.
        if rates.rate(&engine, workload, threads).is_none() || !contender.is_timed_singly() {
            continue;
        }
        progress.set_message(format!("{engine}: latencies of {}", workload.name()));
        match contender.latencies(run) {
            Ok(percentiles) => {
                rates.latencies.push(Latency { workload, threads, engine, percentiles });
            }
            Err(error) => rates.refuse(&engine, workload, threads, &error.to_string())?,
        }
        progress.inc(1);
    }
    Ok(())
}

/// Runs `body` on a thread for each plan, all starting together, and times them by `clock`.
pub(crate) fn run_threads<P: Sync, R: Send>(
    clock: Clock,
    plans: &[P],
    body: impl Fn(&P) -> R + Sync,
) -> (Duration, Vec<R>) {
    let barrier = Barrier::new(plans.len());
    let (barrier, body) = (&barrier, &body);
    std::thread::scope(|scope| {
        let threads: Vec<_> = plans
            .iter()
            .map(|plan| {
                scope.spawn(move || {
                    barrier.wait();
                    let begin = Moment::now();
                    let result = body(plan);
                    (begin, Moment::now(), result)
                })
            })
            .collect();
        let ends: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("an engine does not panic"))
            .collect();
        let elapsed = clock.elapsed(ends.iter().map(|end| (end.0, end.1)));
        (elapsed, ends.into_iter().map(|end| end.2).collect())
    })
}
