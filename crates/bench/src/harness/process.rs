//! Programs of `bench-vs`: built and started where what they need is installed. They take a command
//! a line on their standard input and answer one JSON object a line, so that their runs take turns
//! with ours.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::*;

/// A folder of `bench-vs`.
pub(crate) struct Foreign {
    pub(crate) folder: PathBuf,
    pub(crate) needs: &'static str,
    /// The flag that asks for it, and can be left out.
    pub(crate) flag: &'static str,
}

/// The place of Python's packages, in the folder of a program.
const ENVIRONMENT: &str = "target/venv";
const REQUIREMENTS: &str = "requirements.txt";

impl Foreign {
    pub(crate) fn new(name: &str, needs: &'static str, flag: &'static str) -> Foreign {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-vs");
        Foreign { folder: PathBuf::from(folder).join(name), needs, flag }
    }

    pub(crate) fn java(name: &str, flag: &'static str) -> Foreign {
        Foreign::new(name, "a JDK 17 or later and Maven 3.8 or later", flag)
    }

    pub(crate) fn python(name: &str, flag: &'static str) -> Foreign {
        Foreign::new(name, "python3 3.10 or later with its module venv", flag)
    }

    fn missing(&self, program: &OsStr, error: &io::Error) -> Error {
        let (program, needs, flag) = (program.display(), self.needs, self.flag);
        format!("{program} cannot be started: {error}; install {needs}, or leave {flag} out").into()
    }

    /// Runs a program to its end in the folder; `what` says what it cannot do where it fails.
    pub(crate) fn run(&self, program: impl AsRef<OsStr>, words: &[&str], what: &str) -> Result {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.folder).stdin(Stdio::null());
        let ran = command.output().map_err(|error| self.missing(program, &error))?;
        if !ran.status.success() {
            let said = [ran.stderr, ran.stdout].concat();
            let (said, flag) = (String::from_utf8_lossy(&said), self.flag);
            bail!("{what}: {}: {}; or leave {flag} out", ran.status, said.trim())
        }
        Ok(())
    }

    pub(crate) fn build(&self, maven: &str) -> Result {
        let what = format!("Maven cannot build {}", self.folder.display());
        self.run(maven, &["--quiet", "--batch-mode", "package"], &what)
    }

    pub(crate) fn start(
        &self,
        name: &'static str,
        program: impl AsRef<OsStr>,
        words: &[String],
    ) -> Result<Process> {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.folder);
        Process::start(name, &mut command).map_err(|error| self.missing(program, &error))
    }

    /// Starts `peers.py`, after installing its packages where they are not there.
    pub(crate) fn start_python(&self) -> Result<Process> {
        self.prepare("python3")?;
        let python = self.folder.join(ENVIRONMENT).join("bin/python");
        // Without files of its own beside the source.
        self.start("peers.py", python, &["-B", "peers.py"].map(str::to_owned))
    }

    /// A program that a package of Python has, itself: the one in `bin` may be a script that starts
    /// it.
    pub(crate) fn packaged(&self, package: &str, program: &str) -> Result<PathBuf> {
        let libraries = self.folder.join(ENVIRONMENT).join("lib");
        let versions = std::fs::read_dir(&libraries)?.filter_map(io::Result::ok);
        let mut programs = versions
            .map(|version| version.path().join("site-packages").join(package).join(program));
        programs.find(|path| path.is_file()).ok_or_else(|| {
            let libraries = libraries.display();
            format!("{libraries} has no {package}/{program}: remove it, to install it anew").into()
        })
    }

    fn prepare(&self, python: &str) -> Result {
        let environment = self.folder.join(ENVIRONMENT);
        let wanted = std::fs::read(self.folder.join(REQUIREMENTS))?;
        // Written when all was installed.
        let installed = environment.join(REQUIREMENTS);
        if std::fs::read(&installed).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        let no_module = "Python cannot make an environment: install its module venv (apt install \
                         python3-venv)";
        self.run(python, &["-m", "venv", ENVIRONMENT], no_module)?;
        let no_package = "pip cannot install packages, for which it needs the network once";
        let words =
            ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "-r", REQUIREMENTS];
        self.run(environment.join("bin/python"), &words, no_package)?;
        Ok(std::fs::write(installed, wanted)?)
    }
}

/// The program `sapwood` in the folder of this one, where it was built.
pub(crate) fn sapwood_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("sapwood");
    program.is_file().then_some(program)
}

pub(crate) struct Process {
    name: &'static str,
    _child: Owned,
    pub(crate) commands: ChildStdin,
    pub(crate) answers: BufReader<ChildStdout>,
}

/// A process that ends with its owner.
pub(crate) struct Owned(pub(crate) Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left running.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub(crate) fn start(name: &'static str, command: &mut Command) -> io::Result<Process> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let commands = child.stdin.take().expect("its input is piped");
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Ok(Process { name, _child: Owned(child), commands, answers })
    }

    pub(crate) fn ask(&mut self, command: impl std::fmt::Display) -> Result<Value> {
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

pub(crate) fn number(answer: &Value, field: &str) -> Result<i64> {
    answer[field].as_i64().ok_or_else(|| {
        format!("the answer {answer} has no number {field}: build the programs in bench-vs again")
            .into()
    })
}

pub(crate) fn elapsed_of(answer: &Value) -> Result<Duration> {
    Ok(Duration::from_nanos(number(answer, "elapsed_ns")? as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(REQUIREMENTS), "duckdb\n").expect("a file");
        let within = |foreign| Foreign { folder: folder.path().to_owned(), ..foreign };
        let (java, python) = (Foreign::java("jvm", "--jvm"), Foreign::python("sql", "--frames"));
        for (built, wanted) in [
            (within(java).build("not-there"), ["install a JDK 17", "leave --jvm out"]),
            (within(python).prepare("not-there"), ["install python3", "leave --frames out"]),
        ] {
            let message = built.expect_err("it is not there").to_string();
            assert!(message.starts_with("not-there cannot be started"), "{message}");
            assert!(wanted.iter().all(|text| message.contains(text)), "{message}");
        }
    }

    #[test]
    fn an_environment_that_has_the_packages_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = folder.path().join(ENVIRONMENT);
        std::fs::create_dir_all(&environment).expect("a folder");
        for place in [folder.path(), &environment] {
            std::fs::write(place.join(REQUIREMENTS), "duckdb\n").expect("a file");
        }
        let python = Foreign::python("sql", "--frames");
        let python = Foreign { folder: folder.path().to_owned(), ..python };
        assert!(python.prepare("python-that-is-not-there").is_ok());
        std::fs::write(folder.path().join(REQUIREMENTS), "duckdb==2\n").expect("a file");
        assert!(python.prepare("python-that-is-not-there").is_err());
    }
}
