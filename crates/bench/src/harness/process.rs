//! Programs of `bench-vs` that take a command a line on their standard input and answer one JSON
//! object a line, so that their runs take turns with ours.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::{Error, Result};

/// The folder of a program.
pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-vs")).join(name)
}

/// The program `sapwood` in the folder of this one, where it was built.
pub(crate) fn sapwood() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("sapwood");
    program.is_file().then_some(program)
}

/// A program that runs.
pub(crate) struct Process {
    /// The name in messages.
    name: &'static str,
    child: Child,
    pub(crate) commands: ChildStdin,
    pub(crate) answers: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// The system's: mostly that there is no such program.
    pub(crate) fn start(name: &'static str, command: &mut Command) -> io::Result<Process> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let commands = child.stdin.take().expect("its input is piped");
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Ok(Process { name, child, commands, answers })
    }

    /// Sends a command, and waits for the answer.
    ///
    /// # Errors
    /// The program's, or that it ended.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Value> {
        let name = self.name;
        let explain = |what: &dyn std::fmt::Display| -> Error {
            format!("{name} did not answer `{command}`: {what}; its own message stands above")
                .into()
        };
        writeln!(self.commands, "{command}")
            .and_then(|()| self.commands.flush())
            .map_err(|error| explain(&error))?;
        let mut line = String::new();
        if self.answers.read_line(&mut line).map_err(|error| explain(&error))? == 0 {
            return Err(explain(&"it ended"));
        }
        let answer: Value = serde_json::from_str(&line).map_err(|error| explain(&error))?;
        match answer.get("error") {
            Some(error) => Err(explain(error)),
            None => Ok(answer),
        }
    }
}

/// A number of an answer.
///
/// # Errors
/// That the program is another one.
pub(crate) fn number(answer: &Value, field: &str) -> Result<i64> {
    answer[field].as_i64().ok_or_else(|| {
        format!("the answer {answer} has no number {field}: build the programs in bench-vs again")
            .into()
    })
}
