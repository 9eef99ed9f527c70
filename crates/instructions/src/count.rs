//! The process that counts: it steps through the other one, and lets it run where nothing is counted.

use std::process::{Child, Command, Stdio};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::work::{ARGUMENT, MARKER, NAMES, OPERATIONS};

/// Instructions of one operation, or of one entry of a batch, of each row.
pub(crate) type Figures = [f64; NAMES.len()];

/// Counts all rows.
pub(crate) fn figures() -> Result<Figures, String> {
    pin()?;
    let program = std::env::current_exe().map_err(|why| format!("which program is this? {why}"))?;
    let mut child = Command::new(program)
        .arg(ARGUMENT)
        .stdin(Stdio::null())
        .spawn()
        .map_err(|why| format!("the process to be counted does not start: {why}"))?;
    let figures = count_all(&child);
    if figures.is_err() {
        let _gone = child.kill();
    }
    // It has been waited for where it has ended by itself.
    let _ended = child.wait();
    figures
}

/// Keeps this process and those it starts on one core: a step that wakes another core takes twice as long.
fn pin() -> Result<(), String> {
    let failed = |why| format!("the process cannot be kept on one core: {why}");
    let own = Pid::from_raw(0);
    let allowed = sched_getaffinity(own).map_err(failed)?;
    let first = (0..CpuSet::count()).find(|&core| allowed.is_set(core) == Ok(true));
    let mut one = CpuSet::new();
    one.set(first.ok_or("the process has no core")?).map_err(failed)?;
    sched_setaffinity(own, &one).map_err(failed)
}

fn count_all(child: &Child) -> Result<Figures, String> {
    let counted = Counted(Pid::from_raw(child.id() as i32));
    let mut figures = [0.0; NAMES.len()];
    // Up to the first marker it runs, and asks to be traced.
    counted.wait()?.ok_or("the process ended before the first count")?;
    for (at, figure) in figures.iter_mut().enumerate() {
        if at > 0 {
            counted.run()?;
        }
        let (once, twice) = (counted.step()?, counted.step()?);
        // What a count has beside its operations falls out.
        *figure = twice.saturating_sub(once) as f64 / f64::from(OPERATIONS);
    }
    match counted.go_on(ptrace::cont)? {
        None => Ok(figures),
        Some(_) => Err("the process has more counts than rows".to_owned()),
    }
}

/// A process that stands still, and is traced.
struct Counted(Pid);

impl Counted {
    /// Lets it run to the next marker.
    fn run(&self) -> Result<(), String> {
        match self.go_on(ptrace::cont)? {
            Some(MARKER) => Ok(()),
            other => Err(format!("a marker was expected, not {other:?}")),
        }
    }

    /// Steps to the next marker, and counts.
    fn step(&self) -> Result<u64, String> {
        let mut count = 0;
        loop {
            match self.go_on(ptrace::step)? {
                Some(Signal::SIGTRAP) => count += 1,
                Some(MARKER) => return Ok(count),
                other => return Err(format!("a step was expected, not {other:?}")),
            }
        }
    }

    /// Lets it go on, and waits until it stops: why, or `None` if it has ended well.
    fn go_on(
        &self,
        how: fn(Pid, Option<Signal>) -> nix::Result<()>,
    ) -> Result<Option<Signal>, String> {
        how(self.0, None).map_err(|why| format!("the process cannot be traced: {why}"))?;
        self.wait()
    }

    fn wait(&self) -> Result<Option<Signal>, String> {
        match waitpid(self.0, None) {
            Ok(WaitStatus::Stopped(_, signal)) => Ok(Some(signal)),
            Ok(WaitStatus::Exited(_, 0)) => Ok(None),
            Ok(other) => Err(format!("the process could not be counted: {other:?}")),
            Err(why) => Err(format!("the process cannot be waited for: {why}")),
        }
    }
}
