//! Reports of a torture: progress while it runs, counts at its end, and for each failure what was
//! wrong, the line that repeats it and where the database lies.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::runs::DatabaseFolder;

/// Failures that are told in full.
const FAILURES_SHOWN: usize = 12;

/// The result of one task, a chain of runs or a single one.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// By name; summed up over all tasks.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) failures: Vec<Failure>,
}

/// Something wrong.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    /// A command line behind the name of the program.
    pub(crate) repeat: String,
    pub(crate) left: Option<PathBuf>,
}

impl Outcome {
    /// Tortures a database in a folder of its own, which is left for a look where something is
    /// wrong. `repeat` is the command line that does it again.
    pub(crate) fn of(
        within: Option<&Path>,
        repeat: impl FnOnce() -> String,
        torture: impl FnOnce(&DatabaseFolder, &mut Outcome) -> Result<(), String>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        match DatabaseFolder::make(within) {
            Err(what) => outcome.fail(what, repeat(), None),
            Ok(place) => match torture(&place, &mut outcome) {
                Ok(()) => {}
                Err(what) => outcome.fail(what, repeat(), Some(place.leave())),
            },
        }
        outcome
    }

    pub(crate) fn add(&mut self, name: &'static str, count: u64) {
        *self.counts.entry(name).or_default() += count;
    }

    pub(crate) fn fail(&mut self, what: String, repeat: String, left: Option<PathBuf>) {
        self.failures.push(Failure { what, repeat, left });
    }
}

/// Does `count` tasks, as many at a time as `jobs` says, and tells of them. `Err` when one failed.
pub(crate) fn run(
    name: &str,
    count: usize,
    jobs: usize,
    task: impl Fn(usize) -> Outcome + Sync,
) -> Result<(), String> {
    let begin = Instant::now();
    let progress = progress(name, count);
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Outcome::default()));
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    // Relaxed: pairs with itself alone; tasks share nothing but their results.
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let Outcome { counts, failures } = task(at);
                    let mut total = total.lock().expect("tasks do not panic under it");
                    for (name, count) in counts {
                        total.add(name, count);
                    }
                    for failure in failures {
                        progress.suspend(|| show(name, &failure, total.failures.len()));
                        total.failures.push(failure);
                    }
                    progress.inc(1);
                }
            });
        }
    });
    progress.finish_and_clear();
    let total = total.into_inner().expect("tasks do not panic under it");
    let counts: Vec<String> =
        total.counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    println!(
        "{name}: {}; {} failures, {:.1} s",
        counts.join(", "),
        total.failures.len(),
        begin.elapsed().as_secs_f64()
    );
    let kinds = kinds(&total.failures);
    match kinds.is_empty() {
        true => Ok(()),
        false => Err(format!("{name}: {} of the tasks failed:\n{kinds}", total.failures.len())),
    }
}

fn show(name: &str, failure: &Failure, before: usize) {
    if before == FAILURES_SHOWN {
        eprintln!("{name}: more failures are counted and not shown");
    }
    if before < FAILURES_SHOWN {
        eprintln!("{name}: FAILED: {}", failure.what);
        eprintln!("  repeat with: cargo run --release -p sapwood-torture -- {}", failure.repeat);
        if let Some(left) = &failure.left {
            eprintln!("  the database lies in {}", left.display());
        }
    }
}

/// How many failures of each kind there are: without the numbers and paths in their words.
fn kinds(failures: &[Failure]) -> String {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for failure in failures {
        let words = failure.what.split_whitespace();
        let words = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit() || c == '/'));
        let kind: Vec<&str> = words.take(24).collect();
        *kinds.entry(kind.join(" ")).or_default() += 1;
    }
    let line = |(kind, count): (&String, &u64)| format!("{count:6}  {kind}\n");
    kinds.iter().map(line).collect()
}

fn progress(name: &str, count: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
    let bar = ProgressBar::new(count as u64).with_message(name.to_owned());
    bar.with_style(style.expect("a template of ours"))
}
