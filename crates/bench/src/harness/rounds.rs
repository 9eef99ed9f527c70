//! Rounds: each runs every engine once, on the same planned operations, and begins with another
//! one, so that none always runs in another's wake.

use std::collections::HashSet;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::harness::*;

/// One planned run: the same for every engine.
pub(crate) trait Job {
    fn workload(&self) -> String;

    fn unit(&self) -> &'static Unit {
        &OPERATIONS
    }

    fn threads(&self) -> usize {
        1
    }

    /// The tally that every engine must come to, where the job itself does not check it.
    fn expected(&self) -> Option<Tally> {
        None
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Figure {
    /// None where it is the job's.
    pub(crate) workload: Option<String>,
    pub(crate) threads: Option<usize>,
    pub(crate) unit: Option<&'static Unit>,
    pub(crate) amount: f64,
    pub(crate) latencies: Option<Percentiles>,
    pub(crate) fields: Fields,
}

impl Figure {
    /// An amount in the job's workload, threads and unit.
    pub(crate) fn new(amount: f64) -> Figure {
        Figure { amount, ..Figure::default() }
    }

    pub(crate) fn rate(operations: usize, elapsed: Duration) -> Figure {
        Figure::new(operations as f64 / elapsed.as_secs_f64())
    }

    pub(crate) fn latencies(latencies: Percentiles) -> Figure {
        Figure {
            latencies: Some(latencies),
            unit: Some(&NANOSECONDS),
            ..Figure::new(latencies[0] as f64)
        }
    }

    pub(crate) fn of(self, workload: impl Into<String>) -> Figure {
        Figure { workload: Some(workload.into()), ..self }
    }

    pub(crate) fn on(self, threads: usize) -> Figure {
        Figure { threads: Some(threads), ..self }
    }

    pub(crate) fn unit(self, unit: &'static Unit) -> Figure {
        Figure { unit: Some(unit), ..self }
    }

    pub(crate) fn with(self, more: serde_json::Value) -> Figure {
        Figure { fields: fields(more), ..self }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) figures: Vec<Figure>,
    pub(crate) tally: Tally,
    /// Parts of the work that were left out, in a sentence each.
    pub(crate) left_out: Vec<String>,
}

impl From<Vec<Figure>> for Outcome {
    fn from(figures: Vec<Figure>) -> Outcome {
        Outcome { figures, ..Outcome::default() }
    }
}

impl Outcome {
    /// Operations that took so long, and what they read.
    pub(crate) fn of(operations: usize, elapsed: Duration, tally: Tally) -> Outcome {
        Outcome { tally, ..vec![Figure::rate(operations, elapsed)].into() }
    }
}

/// A participant. Calls are coarse: a whole run each.
pub(crate) trait Engine<J: Job> {
    fn name(&self) -> &str;

    /// The name of the workload that a job is to it.
    fn workload(&self, job: &J) -> String {
        job.workload()
    }

    fn runs(&self, _job: &J) -> bool {
        true
    }

    /// Runs a job, then checks what it left behind and puts back what must not stay, untimed.
    fn run(&mut self, job: &J) -> Result<Outcome>;

    /// Runs a job with single calls timed on their own; none where it has no single calls.
    fn latencies(&mut self, _job: &J) -> Result<Option<Percentiles>> {
        Ok(None)
    }
}

impl<J: Job, E: Engine<J> + ?Sized> Engine<J> for Box<E> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn workload(&self, job: &J) -> String {
        (**self).workload(job)
    }
    fn runs(&self, job: &J) -> bool {
        (**self).runs(job)
    }
    fn run(&mut self, job: &J) -> Result<Outcome> {
        (**self).run(job)
    }
    fn latencies(&mut self, job: &J) -> Result<Option<Percentiles>> {
        (**self).latencies(job)
    }
}

/// A line on standard error that tells what runs; silent when that is not a terminal.
pub(crate) fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Runs `runs` rounds of what `plan` plans for each, and notes their figures. An engine that reads
/// something wrong is left out of the job; one that fails leaves. Ours ends the bench.
pub(crate) fn rounds<J: Job, E: Engine<J>>(
    engines: &mut Vec<E>,
    report: &mut Report,
    runs: usize,
    plan: impl Fn(usize) -> J,
) -> Result {
    let count = engines.len();
    let (mut is_wrong, mut has_failed) = (vec![false; count], vec![false; count]);
    let before: HashSet<SampleKey> = report.samples.iter().map(Sample::key).collect();
    for round in 0..runs {
        let job = plan(round);
        let (threads, expected) = (job.threads(), job.expected());
        for place in (0..count).map(|turn| (round + turn) % count) {
            let engine = &mut engines[place];
            if is_wrong[place] || has_failed[place] || !engine.runs(&job) {
                continue;
            }
            let (name, workload) = (engine.name().to_owned(), engine.workload(&job));
            report.progress.set_message(format!("{name}: {workload} on {threads}"));
            match engine.run(&job) {
                Ok(outcome) if expected.is_none_or(|expected| outcome.tally == expected) => {
                    note(report, &job, &workload, &name, outcome);
                }
                Ok(Outcome { tally, .. }) => {
                    let what = format!("read {tally}, not {}", expected.unwrap_or_default());
                    report.refuse(&name, &workload, threads, &what)?;
                    is_wrong[place] = true;
                }
                Err(error) => {
                    report.refuse(&name, &workload, threads, &error.to_string())?;
                    has_failed[place] = true;
                }
            }
        }
    }
    // Other workloads that a failed engine had figures of in the same job.
    for (engine, _) in engines.iter().zip(&has_failed).filter(|(_, failed)| **failed) {
        let is_new = |sample: &Sample| !before.contains(&sample.key());
        report.samples.retain(|sample| sample.engine != engine.name() || !is_new(sample));
    }
    tell_medians(report, &before);
    let mut has_failed = has_failed.into_iter();
    engines.retain(|_| has_failed.next() == Some(false));
    Ok(())
}

fn note<J: Job>(report: &mut Report, job: &J, workload: &str, engine: &str, outcome: Outcome) {
    for figure in outcome.figures {
        let workload = figure.workload.clone().unwrap_or_else(|| workload.to_owned());
        let threads = figure.threads.unwrap_or_else(|| job.threads());
        let unit = figure.unit.unwrap_or_else(|| job.unit());
        report.note(&workload, threads, engine, unit, figure);
    }
    for sentence in outcome.left_out {
        report.leave_out(sentence);
    }
}

/// Tells the medians of new rates, a line for each workload: a run that is
/// interrupted has told what it measured.
fn tell_medians(report: &Report, before: &HashSet<SampleKey>) {
    let is_new = |sample: &&Sample| sample.unit.is_rate() && !before.contains(&sample.key());
    let rates = report.samples.iter().filter(is_new);
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for sample in rates {
        let (workload, threads) = (&sample.workload, sample.threads);
        let title = format!("{workload} on {threads}, {}", sample.unit.table_name);
        let figure = format!("{} {}", sample.engine, sample.unit.shown(sample.median()));
        match lines.iter_mut().find(|(known, _)| *known == title) {
            Some((_, figures)) => figures.push(figure),
            None => lines.push((title, vec![figure])),
        }
    }
    let tell_all =
        || lines.iter().for_each(|(title, it)| tell(format_args!("{title}: {}", it.join(", "))));
    report.progress.suspend(tell_all);
}

/// Times single calls of each engine that has a rate.
pub(crate) fn latencies<J: Job, E: Engine<J>>(
    engines: &mut [E],
    report: &mut Report,
    job: &J,
) -> Result {
    let threads = job.threads();
    for engine in engines {
        let (name, workload) = (engine.name().to_owned(), engine.workload(job));
        // A figure that was refused is not measured in another way.
        if report.rate(&name, &workload, threads).is_none() {
            continue;
        }
        report.progress.set_message(format!("{name}: latencies of {workload}"));
        match engine.latencies(job) {
            Ok(Some(latencies)) => {
                let figure = Figure::latencies(latencies);
                report.note(&workload, threads, &name, &NANOSECONDS, figure);
            }
            Ok(None) => {}
            Err(error) => report.refuse(&name, &workload, threads, &error.to_string())?,
        }
    }
    Ok(())
}

/// Runs `body` on a thread for each plan, all starting together, and times them from the first
/// thread's start to the last one's end.
pub(crate) fn run_threads<P: Sync, R: Send>(
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
                    let begin = Instant::now();
                    let result = body(plan);
                    (begin, Instant::now(), result)
                })
            })
            .collect();
        let ends: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("an engine does not panic"))
            .collect();
        let begin = ends.iter().map(|end| end.0).min();
        let end = ends.iter().map(|end| end.1).max();
        let elapsed = begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin);
        (elapsed, ends.into_iter().map(|end| end.2).collect())
    })
}

/// Work that was repeated until some time had passed.
pub(crate) struct Repeated<T> {
    /// The repetitions, or how often they count.
    pub(crate) times: usize,
    pub(crate) elapsed: Duration,
    pub(crate) answer: T,
}

/// Does work until some time has passed, once at least; the work says how often that counts.
pub(crate) fn again<T>(
    least: Duration,
    mut work: impl FnMut() -> Result<(usize, T)>,
) -> Result<Repeated<T>> {
    let (mut times, begin) = (0, Instant::now());
    loop {
        let (count, answer) = work()?;
        times += count;
        let elapsed = begin.elapsed();
        if elapsed >= least {
            return Ok(Repeated { times, elapsed, answer });
        }
    }
}

/// A call that is made in the end.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Times calls singly: the first `call` of every `sampled` operations of each plan, on a thread for
/// each plan with a state of its own.
pub(crate) fn time_calls<O: Sync, S>(
    plans: &[Vec<O>],
    (call, sampled): (usize, usize),
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &[O]) -> Result + Sync,
) -> Result<Percentiles> {
    let (_, histograms) = run_threads(plans, |plan| {
        let (mut state, mut histogram) = (begin(), new_histogram());
        for part in plan.chunks(sampled.max(call)) {
            let (timed, rest) = part.split_at(call.min(part.len()));
            let begin = Instant::now();
            work(&mut state, timed)?;
            histogram.saturating_record(begin.elapsed().as_nanos() as u64);
            work(&mut state, rest)?;
        }
        Ok(histogram)
    });
    percentiles(histograms.into_iter().collect::<Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads one entry, of which the sum is known, on a number of threads.
    struct Read(usize);

    const RIGHT: Tally = Tally { entries: 1, sum: 7 };

    impl Job for Read {
        fn workload(&self) -> String {
            "read".to_owned()
        }
        fn unit(&self) -> &'static Unit {
            &OPERATIONS
        }
        fn threads(&self) -> usize {
            self.0
        }
        fn expected(&self) -> Option<Tally> {
            Some(RIGHT)
        }
    }

    struct Answering(&'static str, Result<Tally, &'static str>, usize);

    impl Engine<Read> for Answering {
        fn name(&self) -> &str {
            self.0
        }
        fn run(&mut self, _: &Read) -> Result<Outcome> {
            self.2 += 1;
            Ok(Outcome::of(10, Duration::from_secs(2), self.1?))
        }
        fn latencies(&mut self, _: &Read) -> Result<Option<Percentiles>> {
            Ok(Some([1, 2, 3, 4]))
        }
    }

    fn run(engines: &mut Vec<Answering>) -> Result<Report> {
        let mut report = Report::new("test", 1, "none", &[]);
        for threads in [1, 2] {
            rounds(engines, &mut report, 3, |_| Read(threads))?;
            latencies(engines, &mut report, &Read(threads))?;
        }
        Ok(report)
    }

    #[test]
    fn a_peer_that_reads_wrongly_has_no_figure_and_one_that_fails_leaves() {
        let wrong = Tally { sum: 8, ..RIGHT };
        let mut engines = vec![
            Answering("sapwood", Ok(RIGHT), 0),
            Answering("forgetful", Ok(wrong), 0),
            Answering("broken", Err("it lost a value"), 0),
        ];
        let report = run(&mut engines).expect("peers may be wrong");
        // A rate and a latency on each number of threads.
        let of = |engine: &str| report.samples.iter().filter(|it| it.engine == engine).count();
        assert_eq!((of("sapwood"), of("forgetful"), of("broken")), (4, 0, 0));
        let sample = report.rate("sapwood", "read", 2).expect("it was right");
        assert_eq!(sample.rounds, [5.0, 5.0, 5.0]);
        // What reads wrongly is tried again on other threads, what is broken is not.
        let calls: Vec<_> = engines.iter().map(|engine| (engine.0, engine.2)).collect();
        assert_eq!(calls, [("sapwood", 6), ("forgetful", 2)]);
        assert_eq!(report.left_out.len(), 3, "{:?}", report.left_out);
        assert!(report.left_out[0].starts_with("forgetful, read on 1 threads: read 1 entries"));
        assert!(report.left_out[1].starts_with("broken, read on 1 threads: it lost a value"));
    }

    #[test]
    fn our_own_wrong_answer_ends_the_bench() {
        for answer in [Ok(Tally::default()), Err("it lost a value")] {
            assert!(run(&mut vec![Answering("sapwood-log", answer, 0)]).is_err());
        }
    }
}
