//! Programs of `bench-vs` that run in a JVM.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::Process;
use crate::{Error, Result};

/// Builds the program of a folder.
///
/// # Errors
/// The message of Maven, and the flag that can be left out.
pub(crate) fn build(maven: &str, folder: &Path, flag: &str) -> Result {
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

/// Starts `java` with these words in a folder.
///
/// # Errors
/// That there is none, and that the flag can be left out.
pub(crate) fn start(
    folder: &Path,
    words: impl IntoIterator<Item = String>,
    flag: &str,
) -> Result<Process> {
    let mut command = Command::new("java");
    command.args(words).current_dir(folder);
    Process::start("the JVM", &mut command).map_err(|error| missing("java", flag, &error))
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
