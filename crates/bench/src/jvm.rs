//! Programs of `bench-vs` that run in a JVM. Each takes a command a line on its standard input, so that
//! its runs take turns with ours.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::Error;

/// The folder of a program.
pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-vs")).join(name)
}

/// Builds the program of a folder.
///
/// # Errors
/// What Maven says, and that the flag can be left out.
pub(crate) fn build(maven: &str, folder: &Path, flag: &str) -> Result<(), Error> {
    let built = Command::new(maven)
        .args(["--quiet", "--batch-mode", "package"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| missing(maven, flag, &error))?;
    if !built.status.success() {
        return Err(format!(
            "Maven cannot build {}: {}\n{}; fix what it names, or leave {flag} out",
            folder.display(),
            built.status,
            String::from_utf8_lossy(&built.stdout).trim_end()
        )
        .into());
    }
    Ok(())
}

fn missing(program: &str, flag: &str, error: &std::io::Error) -> Error {
    format!("{program} cannot be started: {error}; install a JDK 17 or later and Maven 3.8 or later, or leave {flag} out").into()
}

/// A program in a JVM that takes a command a line and answers one JSON object a line.
pub(crate) struct Process {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts `java` with these words in a folder.
    ///
    /// # Errors
    /// That there is none, and that the flag can be left out.
    pub(crate) fn start(
        folder: &Path,
        words: impl IntoIterator<Item = String>,
        flag: &str,
    ) -> Result<Process, Error> {
        let mut child = Command::new("java")
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| missing("java", flag, &error))?;
        let commands = child.stdin.take().expect("its input is piped");
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Ok(Process { child, commands, answers })
    }

    /// Sends a command, and waits for the answer.
    ///
    /// # Errors
    /// What the program says, or that it ended.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Value, Error> {
        let explain = |what: &dyn std::fmt::Display| -> Error {
            format!("the JVM did not answer `{command}`: {what}; its own message stands above")
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
pub(crate) fn number(answer: &Value, field: &str) -> Result<i64, Error> {
    answer[field].as_i64().ok_or_else(|| {
        format!(
            "the JVM's answer {answer} has no number {field}: build its program in bench-vs again"
        )
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_maven_is_named_with_what_to_do() {
        let error = build("mvn-that-is-not-there", &std::env::temp_dir(), "--jvm");
        let message = error.expect_err("it is not there").to_string();
        assert!(message.starts_with("mvn-that-is-not-there cannot be started"), "{message}");
        assert!(message.contains("install a JDK 17"), "{message}");
        assert!(message.contains("leave --jvm out"), "{message}");
    }
}
