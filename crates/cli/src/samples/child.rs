//! A process of this program that a sample starts, listens to, and kills.

use std::io::{self, Read, Write};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::thread;

use crate::terminal::exit::{Failure, Outcome};

/// The signal that no process can catch.
pub(super) const SIGKILL: i32 = 9;

/// A process that does not outlive its guard. Its standard output is read by line, and its standard
/// input ends with this process.
pub(super) struct Guarded {
    pub(super) child: Child,
}

impl Guarded {
    /// Starts this program again, with a hidden command.
    pub(super) fn start(command: impl FnOnce(&mut Command)) -> io::Result<Self> {
        let mut program = Command::new(std::env::current_exe()?);
        program.arg("--quiet").stdin(Stdio::piped()).stdout(Stdio::piped());
        command(&mut program);
        Ok(Self { child: program.spawn()? })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Both fail if it was killed and waited for, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Which signal ended a process.
pub(super) fn signal(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    return (!status.success()).then_some(SIGKILL);
}

/// Says a line to the process that started this one.
pub(super) fn say(line: std::fmt::Arguments<'_>) -> Outcome {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failure::of_output)
}

/// Waits for the end of the process that started this one: the input ends with it, and carries
/// nothing.
pub(super) fn exit_when_left_alone() {
    thread::spawn(|| {
        let _ = io::stdin().lock().read(&mut [0]);
        process::exit(1);
    });
}
