//! One command: its name, what it runs, and how it went.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::{budget, failures};

/// A command with a name. Its [`Display`](fmt::Display) form can be pasted into a shell.
pub(crate) struct Step {
    name: String,
    env: Vec<(&'static str, String)>,
    words: Vec<String>,
    /// The step picks tests by name: one that picks none would pass without testing.
    must_pick_tests: bool,
    /// The step runs beside the one before it.
    is_beside: bool,
}

impl Step {
    /// `command` is split at blanks; no word of ours holds one.
    pub(crate) fn new(name: impl Into<String>, command: &str) -> Self {
        Step {
            name: name.into(),
            env: Vec::new(),
            words: command.split_whitespace().map(str::to_owned).collect(),
            must_pick_tests: false,
            is_beside: false,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Lets the step run beside the one before it.
    pub(crate) fn beside(mut self) -> Self {
        self.is_beside = true;
        self
    }

    pub(crate) fn env(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.env.push((key, value.into()));
        self
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(args);
        self
    }

    /// Fails if the command, a `cargo test` that ends in `-- FILTER`, picks no test of one of its crates.
    pub(crate) fn must_pick_tests(mut self) -> Self {
        self.must_pick_tests = true;
        self
    }

    fn command(&self, root: &Path) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(root);
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }

    fn run(&self, root: &Path, mut out: impl Write) -> Result<(), Failed> {
        let told = |e| format!("could not be told: {e}");
        writeln!(out, "\n==> {}\n    $ {self}", self.name).map_err(told)?;
        let started = self.command(root).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|e| self.unstartable(&e))?;
        let output = child.stdout.take().expect("it is piped");
        let tests = failures::tee(output, out);
        let status = child.wait().map_err(|e| format!("was lost: {e}"))?;
        let tests = tests.map_err(told)?;
        if !status.success() {
            return Err(Failed { why: format!("ended with {status}"), tests });
        }
        if self.must_pick_tests { Ok(self.expect_tests(root)?) } else { Ok(()) }
    }

    fn expect_tests(&self, root: &Path) -> Result<(), String> {
        let output = (self.command(root).arg("--list"))
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| self.unstartable(&e))?;
        let listing = String::from_utf8_lossy(&output.stdout);
        match picks_of_all(&listing) {
            true => Ok(()),
            false => {
                Err("picks no test of a crate by its filter, so that was not tested".to_owned())
            }
        }
    }

    fn unstartable(&self, error: &std::io::Error) -> String {
        format!("cannot start `{}`: {error}", self.words[0])
    }
}

/// Why a step failed.
struct Failed {
    why: String,
    /// What failed tests said.
    tests: Vec<String>,
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Failed { why, tests: Vec::new() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.env {
            write!(f, "{key}={} ", quoted(value))?;
        }
        let words: Vec<_> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

/// Whether each program of a `cargo test -- --list` has picked tests.
fn picks_of_all(listing: &str) -> bool {
    let mut sums = listing.lines().filter(|line| line.ends_with(" benchmarks")).peekable();
    sums.peek().is_some() && sums.all(|line| !line.starts_with("0 tests"))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The steps in groups: the steps of a group run side by side.
pub(crate) fn groups(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    steps.chunk_by(|_, next| next.is_beside)
}

type Outcome<'s> = (&'s Step, Result<(), Failed>, Duration);

fn run_group<'s>(root: &Path, group: &'s [Step]) -> Vec<Outcome<'s>> {
    let timed = |step: &'s Step, run: &dyn Fn(&Step) -> Result<(), Failed>| {
        let begin = Instant::now();
        (step, run(step), begin.elapsed())
    };
    if let [step] = group {
        return vec![timed(step, &|step| step.run(root, std::io::stdout()))];
    }
    let run = |step: &Step| {
        let mut text = Vec::new();
        let outcome = step.run(root, &mut text);
        // A reader that is gone is no reason to fail.
        let _ = std::io::stdout().write_all(&text);
        outcome
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            group.iter().map(|step| scope.spawn(move || timed(step, &run))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a step does not panic")).collect()
    })
}

/// Runs all steps, the failed ones notwithstanding, and prints how each went, beside its budget if it has one.
pub(crate) fn run_all(root: &Path, steps: &[Step]) -> ExitCode {
    let begin = Instant::now();
    let outcomes: Vec<_> = groups(steps).flat_map(|group| run_group(root, group)).collect();
    let total = begin.elapsed();

    let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
    let row = |name: &str, time: Duration, budget: Option<Duration>, verdict: &str| {
        let most = budget.map_or_else(String::new, seconds);
        let over = if budget.is_some_and(|budget| time > budget) { "over budget" } else { "" };
        println!(
            "{}",
            format!("{name:width$}  {:>8}  {most:>8}  {verdict:6}  {over}", seconds(time))
                .trim_end()
        );
    };
    println!();
    for (step, outcome, time) in &outcomes {
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        row(&step.name, *time, budget::of(&step.name), verdict);
    }
    row("total", total, budget::total(steps), "");

    let mut code = ExitCode::SUCCESS;
    for (step, outcome, _) in &outcomes {
        if let Err(Failed { why, tests }) = outcome {
            println!("\n{} failed: it {why}. To run just that:\n    {step}", step.name);
            for test in tests {
                println!("\n{test}");
            }
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_picked_tests_is_noticed() {
        let some = "map_loom::puts: test\n\n1 test, 0 benchmarks\n";
        let none = "\n0 tests, 0 benchmarks\n";
        assert!(picks_of_all(some) && picks_of_all(&some.repeat(2)));
        assert!(!picks_of_all(none) && !picks_of_all(&[some, none].concat()) && !picks_of_all(""));
    }

    #[test]
    fn a_step_reads_as_a_shell_would_take_it() {
        let step = Step::new("loom", "cargo test -- loom")
            .env("RUSTFLAGS", "--cfg loom")
            .env("EMPTY", "")
            .args(["it's".to_owned()]);
        let line = r"RUSTFLAGS='--cfg loom' EMPTY='' cargo test -- loom 'it'\''s'";
        assert_eq!(step.to_string(), line);
    }

    #[test]
    fn failures_reach_the_exit_code() {
        let root = Path::new(".");
        let good = || Step::new("good", "true");
        let picks = |listing| Step::new("filter", "echo").args([listing]).must_pick_tests();
        let code = |steps: &[Step]| format!("{:?}", run_all(root, steps));
        let (success, failure) =
            [ExitCode::SUCCESS, ExitCode::FAILURE].map(|code| format!("{code:?}")).into();
        assert_eq!(code(&[good()]), success);
        assert_eq!(code(&[Step::new("bad", "false"), good()]), failure);
        assert_eq!(code(&[Step::new("absent", "no-such-program-here")]), failure);
        assert_eq!(code(&[picks("0 tests,".to_owned())]), failure);
    }
}
