//! DuckDB and DataFusion, in a program in Python over the same rows as Arrow batches. They group rows into facts,
//! and are asked for these facts in memory, as they made them, and in Parquet.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::engines::{Asked, Engine, Folded, Load};
use super::sets::{Granule, Set};
use super::stream::{TOP, Total};
use super::workload::{Phase, Place, Workload};
use crate::Error;
use crate::folder::Folder;
use crate::process::{self, Process, number};

pub(crate) const DUCKDB: &str = "duckdb";
pub(crate) const DATAFUSION: &str = "datafusion";
pub(crate) const NAMES: [&str; 2] = [DUCKDB, DATAFUSION];

/// The flag that asks for them.
const FLAG: &str = "--frames";
/// Where the packages lie, in the folder of the program.
const ENVIRONMENT: &str = "target/venv";
const REQUIREMENTS: &str = "requirements.txt";

/// The program, and what it has.
struct Program {
    process: Process,
    loaded: Option<(Set, usize)>,
    parquet_bytes: Option<u64>,
    folder: Option<Folder>,
}

/// One engine of the program.
pub(crate) struct Frame {
    name: &'static str,
    program: Rc<RefCell<Program>>,
}

/// Makes the environment where there is none, starts the program, and answers its engines.
pub(crate) fn start() -> Result<Vec<Frame>, Error> {
    let folder = process::folder("frames");
    prepare("python3", &folder)?;
    // Without files of its own beside the source.
    let mut command = Command::new(folder.join(ENVIRONMENT).join("bin/python"));
    command.args(["-B", "peers.py"]).current_dir(&folder);
    let process =
        Process::start("peers.py", &mut command).map_err(|error| missing("python3", &error))?;
    let program = Program { process, loaded: None, parquet_bytes: None, folder: None };
    let program = Rc::new(RefCell::new(program));
    Ok(NAMES.map(|name| Frame { name, program: Rc::clone(&program) }).into())
}

/// Makes an environment with the packages of the requirements, unless it is there.
fn prepare(python: &str, folder: &Path) -> Result<(), Error> {
    let environment = folder.join(ENVIRONMENT);
    let wanted = std::fs::read(folder.join(REQUIREMENTS))?;
    // Written when all was installed.
    let installed = environment.join(REQUIREMENTS);
    if std::fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let run = |program: &Path, words: &[&str], what: &str| -> Result<(), Error> {
        let ran = Command::new(program)
            .args(words)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| missing(&program.display().to_string(), &error))?;
        match ran.status.success() {
            true => Ok(()),
            false => Err(format!(
                "{what}: {}\n{}; or leave {FLAG} out",
                ran.status,
                String::from_utf8_lossy(&ran.stderr).trim_end()
            )
            .into()),
        }
    };
    run(
        Path::new(python),
        &["-m", "venv", ENVIRONMENT],
        "Python cannot make an environment: install its module venv (apt install python3-venv)",
    )?;
    run(
        &environment.join("bin/python"),
        &["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "-r", REQUIREMENTS],
        "pip cannot install the packages of bench-vs/frames/requirements.txt, for which it needs the network once",
    )?;
    Ok(std::fs::write(installed, wanted)?)
}

fn missing(program: &str, error: &std::io::Error) -> Error {
    format!("{program} cannot be started: {error}; install python3 3.10 or later with its module venv, or leave {FLAG} out").into()
}

fn total(answer: &Value) -> Result<Total, Error> {
    Ok(Total {
        groups: number(answer, "groups")? as usize,
        rows: number(answer, "rows")?,
        sum: number(answer, "sum")?,
    })
}

fn elapsed(answer: &Value) -> Result<Duration, Error> {
    Ok(Duration::from_nanos(number(answer, "elapsed_ns")? as u64))
}

impl Program {
    fn ask(&mut self, command: &Value) -> Result<Value, Error> {
        self.process.ask(&command.to_string())
    }

    /// Reads the rows of a set, and has DuckDB write its facts as Parquet.
    fn load(&mut self, load: &Load<'_>) -> Result<(), Error> {
        let wanted = Some((load.set, load.stream.count));
        if self.loaded == wanted {
            return Ok(());
        }
        let folder = Folder::new(load.folder, &format!("frames-{}", load.set.name()))?;
        let (rows, facts) = (folder.path().join("rows.arrow"), folder.path().join("facts.parquet"));
        load.stream.write_arrow(&rows)?;
        let shape = load.stream.shape;
        let name = |at: usize| shape.dimensions[at];
        let millis = match load.set.granule {
            Granule::All => 0,
            granule => granule.millis(),
        };
        let answer = self.ask(&json!({
            "do": "load", "rows": rows, "facts": facts, "millis": millis,
            "dimensions": shape.dimensions, "x": shape.x, "y": shape.y,
            "one": name(shape.one), "two": shape.two.map(name), "top": name(shape.top), "first": TOP,
            "filter": [name(shape.filter.0), shape.filter.1],
        }))?;
        self.parquet_bytes = Some(number(&answer, "parquet_bytes")? as u64);
        (self.loaded, self.folder) = (wanted, Some(folder));
        Ok(())
    }
}

impl Engine for Frame {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runs(&self, workload: Workload, _threads: usize) -> bool {
        workload.phase != Phase::Json
    }

    fn begin(&mut self, load: &Load<'_>) -> Result<Option<u64>, Error> {
        let mut program = self.program.borrow_mut();
        program.load(load)?;
        // Both read the file that DuckDB has written.
        Ok(program.parquet_bytes.filter(|_| self.name == DUCKDB && load.files))
    }

    fn fold(&mut self, _load: &Load<'_>, _phase: Phase, threads: usize) -> Result<Folded, Error> {
        let command = json!({ "do": "fold", "engine": self.name, "threads": threads });
        let answer = self.program.borrow_mut().ask(&command)?;
        let all = total(&answer)?;
        Ok(Folded {
            elapsed: elapsed(&answer)?,
            facts: all.groups,
            bytes: None,
            trimmed: None,
            all: Some(all),
        })
    }

    fn ask(
        &mut self,
        _load: &Load<'_>,
        workload: Workload,
        threads: usize,
        least: Duration,
    ) -> Result<Asked, Error> {
        let answer = self.program.borrow_mut().ask(&json!({
            "do": "ask", "engine": self.name, "threads": threads,
            "question": workload.phase.name(), "live": workload.place == Place::Live,
            "least_ns": least.as_nanos() as u64,
        }))?;
        let times = number(&answer, "times")? as usize;
        Ok(Asked { times, elapsed: elapsed(&answer)?, total: total(&answer)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_python_is_named_with_what_to_do() {
        let folder = Folder::new(&std::env::temp_dir(), "no-python").expect("a folder");
        std::fs::write(folder.path().join(REQUIREMENTS), "duckdb\n").expect("a file");
        let error =
            prepare("python-that-is-not-there", folder.path()).expect_err("it is not there");
        let message = error.to_string();
        assert!(message.starts_with("python-that-is-not-there cannot be started"), "{message}");
        assert!(message.contains("install python3"), "{message}");
        assert!(message.contains("leave --frames out"), "{message}");
    }

    #[test]
    fn an_environment_that_has_the_packages_is_left_as_it_is() {
        let folder = Folder::new(&std::env::temp_dir(), "python").expect("a folder");
        let environment = folder.path().join(ENVIRONMENT);
        std::fs::create_dir_all(&environment).expect("a folder");
        for place in [folder.path(), &environment] {
            std::fs::write(place.join(REQUIREMENTS), "duckdb\n").expect("a file");
        }
        assert!(prepare("python-that-is-not-there", folder.path()).is_ok());
        std::fs::write(folder.path().join(REQUIREMENTS), "duckdb==2\n").expect("a file");
        assert!(prepare("python-that-is-not-there", folder.path()).is_err());
    }
}
