//! Cases: the seeds that a test runs under, and the line that repeats one.
//!
//! Seeds are `1..=count` unless the environment says otherwise: `SEED=n` runs that one alone,
//! `SEEDS=n` runs `1..=n`. A failure of any kind, a hang included, prints one line to repeat it.

use std::io::Write;
use std::ops::{ControlFlow, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// A run that takes longer than this hangs: no seed is meant to take a hundredth of it.
const HANG_LIMIT: Duration = Duration::from_secs(300);

/// The [`Case`] of the test function it is called in.
#[macro_export]
macro_rules! case {
    () => {{
        fn here() {}
        $crate::case::Case::new(env!("CARGO_PKG_NAME"), std::any::type_name_of_val(&here))
    }};
}

/// A test by name, run under one seed or many.
#[derive(Debug, Clone)]
pub struct Case {
    package: &'static str,
    test: String,
    hang_limit: Duration,
}

impl Case {
    /// Called by [`case!`](crate::case!) with the path of a function inside the test.
    pub fn new(package: &'static str, path_inside: &str) -> Self {
        let path = path_inside.strip_suffix("::here").unwrap_or(path_inside);
        let path = path.replace("::{{closure}}", "");
        let test = path.split_once("::").map_or(&*path, |(_, test)| test);
        Case { package, test: test.to_owned(), hang_limit: HANG_LIMIT }
    }

    /// For a test that is meant to run long: what counts as a hang, in place of five minutes.
    pub fn hangs_after(mut self, limit: Duration) -> Self {
        self.hang_limit = limit;
        self
    }

    /// The name the test harness knows this test by.
    pub fn test(&self) -> &str {
        &self.test
    }

    /// The one line that repeats this test under `seed`.
    pub fn line(&self, seed: u64) -> String {
        let (package, test) = (self.package, &self.test);
        format!("SEED={seed} cargo test -p {package} -- --exact {test}")
    }

    /// Runs `body` under each seed; one that panics or hangs prints the line that repeats it.
    pub fn seeds(&self, count: u64, body: impl Fn(u64)) {
        self.each_seed(seeds_of_environment(count), |seed| {
            body(seed);
            ControlFlow::Continue(())
        });
    }

    /// Runs `body` under one seed after the other until it breaks, as [`seeds`](Self::seeds) does.
    pub fn seeds_until(&self, body: impl FnMut(u64) -> ControlFlow<()>) {
        self.each_seed(seeds_of_environment(u64::MAX), body);
    }

    fn each_seed(&self, seeds: RangeInclusive<u64>, mut body: impl FnMut(u64) -> ControlFlow<()>) {
        let hangs = |seed| format!("hangs; repeat with: {}", self.line(seed));
        let watchdog = Watchdog::arm(self.hang_limit, hangs(*seeds.start()));
        for seed in seeds {
            watchdog.rearm(hangs(seed));
            match catch_unwind(AssertUnwindSafe(|| body(seed))) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(panic) => {
                    eprintln!("\nrepeat with: {}\n", self.line(seed));
                    resume_unwind(panic);
                }
            }
        }
    }

    /// Runs a `body` without randomness; one that hangs ends the process with a message.
    pub fn once(&self, body: impl FnOnce()) {
        let (package, test) = (self.package, &self.test);
        let line = format!("hangs; repeat with: cargo test -p {package} -- --exact {test}");
        let _watchdog = Watchdog::arm(self.hang_limit, line);
        body();
    }

    /// Runs a `body` in a process of its own, for what other tests of this process would disturb:
    /// figures of resident memory, and memory that comes back only once no thread is pinned.
    pub fn alone(&self, body: impl FnOnce()) {
        let test = self.test();
        if self.is_alone() {
            return self.once(body);
        }
        let program = std::env::current_exe().expect("a test knows its program");
        let child = Command::new(program)
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(ALONE, test)
            .output()
            .expect("a test program runs");
        let [told, summary] = [child.stderr, child.stdout].map(lossy);
        assert!(child.status.success(), "in a process of its own: {}\n{told}", child.status);
        assert!(summary.contains("1 passed"), "nothing ran: {summary}");
    }

    fn is_alone(&self) -> bool {
        std::env::var(ALONE).as_deref() == Ok(self.test())
    }
}

/// Names the test that a process was started for.
const ALONE: &str = "SAPWOOD_TEST_ALONE";

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn seeds_of_environment(count: u64) -> RangeInclusive<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        let parsed = text.parse();
        Some(parsed.unwrap_or_else(|_| panic!("{name}={text}: expected a whole number")))
    };
    match (number("SEED"), number("SEEDS")) {
        (Some(seed), _) => seed..=seed,
        (None, Some(count)) => 1..=count,
        (None, None) => 1..=count,
    }
}

/// Aborts the process with a message unless it is dropped in time: a hang has no other witness.
#[must_use = "dropping it disarms it"]
pub struct Watchdog {
    messages: mpsc::Sender<String>,
}

impl Watchdog {
    /// Starts the clock.
    pub fn arm(limit: Duration, mut message: String) -> Self {
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                match messages.recv_timeout(limit) {
                    Ok(next) => message = next,
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(mpsc::RecvTimeoutError::Timeout) => break,
                }
            }
            // Past the harness's capture, which an abort would throw away.
            let seconds = limit.as_secs();
            let line = format!("\nno end after {seconds} s: {message}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            std::process::abort();
        });
        Watchdog { messages: sender }
    }

    /// Starts the clock anew, with another message.
    pub fn rearm(&self, message: String) {
        // The thread ends with the watchdog alone.
        let _ = self.messages.send(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_case_knows_its_test_and_the_line_that_repeats_it() {
        let name = "case::tests::a_case_knows_its_test_and_the_line_that_repeats_it";
        assert_eq!(crate::case!().test(), name);
        let inside_closures = [(); 1].map(|()| crate::case!());
        assert_eq!(inside_closures[0].test(), name);
        let line = format!("SEED=7 cargo test -p sapwood-testkit -- --exact {name}");
        assert_eq!(crate::case!().line(7), line);
    }

    #[test]
    fn every_seed_runs_and_a_panic_passes_through() {
        let seen = RefCell::new(Vec::new());
        let run = || {
            crate::case!().seeds(5, |seed| {
                seen.borrow_mut().push(seed);
                assert!(seed != 3, "three");
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("seed 3 panics");
        if std::env::var_os("SEED").is_none() && std::env::var_os("SEEDS").is_none() {
            assert_eq!(*seen.borrow(), [1, 2, 3]);
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"three"));
        }
    }

    #[test]
    fn seeds_come_until_the_body_breaks() {
        let mut seen = Vec::new();
        crate::case!().seeds_until(|seed| {
            seen.push(seed);
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if std::env::var_os("SEED").is_none() && std::env::var_os("SEEDS").is_none() {
            assert_eq!(seen, [1, 2, 3]);
        }
    }

    #[test]
    fn alone_is_in_another_process() {
        let ran_here = std::cell::Cell::new(false);
        crate::case!().alone(|| ran_here.set(true));
        assert_eq!(ran_here.get(), crate::case!().is_alone());
    }

    #[test]
    fn what_fails_alone_fails_here_with_the_same_words() {
        let fails = || crate::case!().alone(|| panic!("words"));
        if crate::case!().is_alone() {
            return fails();
        }
        let panic = catch_unwind(fails).expect_err("the other process fails");
        let told = panic.downcast_ref::<String>().expect("a message");
        assert!(told.contains("words"), "{told}");
    }
}
