//! What is measured: a system answers in a process of its own, in a program that has it open, or in both.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::library::Library;
use super::rows::{KEY, Key, Rows};
use super::workload::{Phase, Place, Workload, question};
use crate::Error;
use crate::folder::Folder;

/// Over files.
pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const ORDERED: &str = "sapwood-ordered";
pub(crate) const HASH: &str = "sapwood-hash";
pub(crate) const DUCKDB: &str = "duckdb";
pub(crate) const SQLITE: &str = "sqlite";
/// Over files, in a program.
pub(crate) const POLARS: &str = "polars";

pub(crate) const OURS: [&str; 3] = [SAPWOOD, ORDERED, HASH];
pub(crate) const PEERS: [&str; 3] = [DUCKDB, SQLITE, POLARS];

/// The table, wherever rows are stored.
pub(crate) const TABLE: &str = "rows";

/// Columns of text; all others are numbers.
const TEXTS: [&str; 5] = ["time_hour", "carrier", "tailnum", "origin", "dest"];

/// The rows of an answer.
pub(crate) type Answer = Vec<Map<String, Value>>;

/// A question that was asked several times.
pub(crate) struct Asked {
    /// Of rows that were looked up or changed: of these.
    pub(crate) times: usize,
    pub(crate) elapsed: Duration,
    pub(crate) answer: Answer,
}

/// A program, by the commands that it takes.
pub(crate) enum Program {
    /// With the engine of its tables.
    Sapwood(PathBuf, Option<&'static str>),
    Duckdb(PathBuf),
    Sqlite,
}

/// A system under its name.
pub(crate) struct System {
    pub(crate) name: &'static str,
    pub(crate) program: Option<Program>,
    pub(crate) library: Option<Box<dyn Library>>,
    /// Where it stores the rows, once they are loaded.
    stored: Option<Folder>,
}

impl System {
    pub(crate) fn new(
        name: &'static str,
        program: Option<Program>,
        library: Option<Box<dyn Library>>,
    ) -> System {
        System { name, program, library, stored: None }
    }

    pub(crate) fn runs(&self, workload: Workload) -> bool {
        match workload {
            // SQLite has no median.
            Workload { phase: Phase::Median, .. } if self.name == SQLITE => false,
            Workload { place: Place::File, .. } => [SAPWOOD, DUCKDB, POLARS].contains(&self.name),
            Workload { place: Place::Stored, .. } => self.program.is_some() && self.name != SAPWOOD,
            Workload { place: Place::Library, .. } => self.library.is_some() && self.name != POLARS,
        }
    }

    /// Makes a table of the rows, instead of one that was made before: how long it took, and its bytes on disk.
    pub(crate) fn load(&mut self, rows: &Rows, parent: &Folder) -> Result<(Duration, u64), Error> {
        let program = self.program.as_ref().ok_or("it stores nothing")?;
        self.stored = None;
        let folder = Folder::new(parent.path(), self.name)?;
        let mut command = program.load(rows, &folder);
        let begin = Instant::now();
        run(&mut command)?;
        let elapsed = begin.elapsed();
        let bytes = folder.bytes()?.unwrap_or(0);
        self.stored = Some(folder);
        Ok((elapsed, bytes))
    }

    /// Lets a program open what is stored.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        match (&mut self.library, &self.stored, &self.program) {
            (Some(library), Some(folder), Some(program)) => library.open(&program.database(folder)),
            _ => Ok(()),
        }
    }

    pub(crate) fn close(&mut self) -> Result<(), Error> {
        match (&mut self.library, &self.stored) {
            (Some(library), Some(_)) => library.close(),
            _ => Ok(()),
        }
    }

    /// Asks until some time has passed, once at least; `turn` says for which of the keys.
    pub(crate) fn ask(
        &mut self,
        workload: Workload,
        rows: &Rows,
        turn: usize,
        least: Duration,
    ) -> Result<Asked, Error> {
        let Workload { phase, place } = workload;
        match (place, &mut self.library, &self.program) {
            (Place::File, Some(library), None) => {
                let question = question(phase, "rows", as_text).ok_or("files have no keys")?;
                library.open(&rows.path)?;
                library.ask(&question, least)
            }
            (Place::Library, Some(library), _) => {
                match question(phase, TABLE, literal_of(self.name)) {
                    Some(question) => library.ask(&question, least),
                    None if phase == Phase::Update => library.update(&rows.keys, turn, least),
                    None => library.get(&rows.keys, least),
                }
            }
            (_, _, Some(program)) => {
                let moment = literal_of(self.name);
                let table = match place {
                    Place::File => program.file(rows),
                    _ => TABLE.to_owned(),
                };
                let key = &rows.keys[turn % rows.keys.len()];
                let question = question(phase, &table, moment)
                    .unwrap_or_else(|| by_key(phase, key, turn, moment));
                let folder = self.stored.as_ref().filter(|_| place == Place::Stored);
                let answer = || Ok((1, run(&mut program.ask(&question, folder))?));
                let (times, elapsed, printed) = again(least, answer)?;
                let answer = match phase {
                    Phase::Update => Answer::new(),
                    _ => parsed(&printed)?,
                };
                Ok(Asked { times, elapsed, answer })
            }
            (_, _, None) => Err("it has no program".into()),
        }
    }
}

/// Does work until some time has passed, once at least; the work says how often that counts. How often in all, how long it
/// took, and the last answer.
pub(crate) fn again<T>(
    least: Duration,
    mut work: impl FnMut() -> Result<(usize, T), Error>,
) -> Result<(usize, Duration, T), Error> {
    let (mut times, begin) = (0, Instant::now());
    loop {
        let (count, answer) = work()?;
        times += count;
        let elapsed = begin.elapsed();
        if elapsed >= least {
            return Ok((times, elapsed, answer));
        }
    }
}

/// How a system writes a moment: as text, where it keeps it so.
fn literal_of(name: &str) -> fn(&str) -> String {
    match name {
        SQLITE | POLARS => as_text,
        _ => |day| format!("timestamp '{}'", day.replace('T', " ").replace('Z', "")),
    }
}

fn as_text(day: &str) -> String {
    match day.contains('T') {
        true => format!("'{day}'"),
        false => format!("'{day}T00:00:00Z'"),
    }
}

/// What is asked of one row. A change gives it a delay that tells the turn.
fn by_key(phase: Phase, key: &Key, turn: usize, moment: fn(&str) -> String) -> String {
    let Key { hour, carrier, flight } = key;
    let hour = moment(hour);
    let row = format!("time_hour = {hour} and carrier = '{carrier}' and flight = {flight}");
    match phase {
        Phase::Update => format!("update {TABLE} set dep_delay = {} where {row}", turn % 100),
        _ => format!("select carrier, flight, dest, distance, dep_delay from {TABLE} where {row}"),
    }
}

impl Program {
    fn load(&self, rows: &Rows, folder: &Folder) -> Command {
        let database = self.database(folder);
        match self {
            Program::Sapwood(program, engine) => {
                let mut command = Command::new(program);
                command.args(["--quiet", "load"]).arg(&rows.path);
                command.args(["--key", &KEY.join(","), "--table", TABLE]);
                command.args(["--engine", engine.unwrap_or("ordered"), "--dir"]).arg(database);
                command
            }
            Program::Duckdb(program) => {
                let mut command = Command::new(program);
                let statement =
                    format!("create table {TABLE} as select * from {}", self.file(rows));
                command.arg(database).args(["-c", &statement]);
                command
            }
            Program::Sqlite => {
                let mut command = Command::new("sqlite3");
                let typed = rows.columns.iter().map(|column| match &column[..] {
                    text if TEXTS.contains(&text) => format!("{column} text"),
                    "fare" => format!("{column} real"),
                    _ => format!("{column} integer"),
                });
                let typed: Vec<String> = typed.collect();
                let numbers = rows.columns.iter().filter(|column| !TEXTS.contains(&&column[..]));
                let missing: Vec<String> =
                    numbers.map(|column| format!("{column} = nullif({column}, 'NA')")).collect();
                command.arg(database).args([
                    "pragma journal_mode = off".to_owned(),
                    "pragma synchronous = off".to_owned(),
                    format!(
                        "create table {TABLE} ({}, primary key ({})) without rowid",
                        typed.join(", "),
                        KEY.join(", ")
                    ),
                    format!(".import --csv --skip 1 '{}' {TABLE}", rows.path.display()),
                    format!("update {TABLE} set {}", missing.join(", ")),
                ]);
                command
            }
        }
    }

    /// What it opens.
    fn database(&self, folder: &Folder) -> PathBuf {
        match self {
            Program::Sapwood(..) => folder.path().join("db"),
            Program::Duckdb(_) => folder.path().join("rows.duckdb"),
            Program::Sqlite => folder.path().join("rows.sqlite"),
        }
    }

    /// The rows of the file, as a statement names them.
    fn file(&self, rows: &Rows) -> String {
        let path = rows.path.display();
        match self {
            Program::Duckdb(_) => format!(
                "read_csv('{path}', nullstr = ['NA', ''], types = {{'time_hour': 'timestamp'}})"
            ),
            _ => format!("'{path}'"),
        }
    }

    fn ask(&self, question: &str, folder: Option<&Folder>) -> Command {
        let database = folder.map(|folder| self.database(folder));
        match self {
            Program::Sapwood(program, _) => {
                let mut command = Command::new(program);
                command.args(["--json", "--quiet", "sql", question]);
                if let Some(database) = database {
                    command.arg("--dir").arg(database);
                }
                command
            }
            Program::Duckdb(program) => {
                let mut command = Command::new(program);
                command.args(database).args(["-json", "-c", question]);
                command
            }
            Program::Sqlite => {
                let mut command = Command::new("sqlite3");
                command.arg("-json").args(database).arg(question);
                command
            }
        }
    }
}

/// Runs a program to its end: what it printed.
fn run(command: &mut Command) -> Result<Vec<u8>, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{name} cannot be started: {error}"))?;
    match ran.status.success() {
        true => Ok(ran.stdout),
        false => {
            let said = String::from_utf8_lossy(&ran.stderr);
            Err(format!("{name} failed, {}: {}", ran.status, said.trim_end()).into())
        }
    }
}

/// Objects of an array, or one a line.
fn parsed(printed: &[u8]) -> Result<Answer, Error> {
    let explain = |error| format!("an answer is no JSON: {error}");
    match printed.first() {
        Some(b'[') => Ok(serde_json::from_slice(printed).map_err(explain)?),
        _ => {
            let objects = serde_json::Deserializer::from_slice(printed).into_iter();
            Ok(objects.collect::<Result<_, _>>().map_err(explain)?)
        }
    }
}

/// Whether two answers are the same: floats to nine digits. DuckDB writes numbers of 128 bits as text.
pub(crate) fn agree(one: &Answer, other: &Answer) -> bool {
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    };
    let same = |one: &Value, other: &Value| match (number(one), number(other)) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(other.abs()),
        _ => one == other,
    };
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|it| same(value, it)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_agree_to_nine_digits_whatever_the_form() {
        let ours = parsed(b"{\"a\":1,\"b\":0.3}\n{\"a\":2,\"b\":null}\n").expect("lines");
        let theirs =
            parsed(b"[{\"b\":0.30000000000000004,\"a\":\"1\"},\n{\"b\":null,\"a\":2.0}]\n");
        assert!(agree(&ours, &theirs.expect("an array")));
        let others: [&[u8]; 4] = [
            b"[{\"a\":1,\"b\":0.3}]",
            b"[{\"a\":1,\"b\":0.31},{\"a\":2,\"b\":null}]",
            b"[{\"a\":1,\"b\":0.3},{\"a\":2,\"b\":0}]",
            b"[{\"a\":1,\"c\":0.3},{\"a\":2,\"b\":null}]",
        ];
        for other in others {
            assert!(!agree(&ours, &parsed(other).expect("an array")));
        }
        assert!(parsed(b"no row").is_err());
        assert!(parsed(b"").expect("nothing").is_empty());
    }
}
