//! The systems that are measured: one answers in a process of its own, in a program that has it
//! open, or in both.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::library::Library;
use super::rows::{CsvRows, KEY, RowKey};
use super::{DUCKDB, POLARS, RowPlace, SAPWOOD, SQLITE, SqlJob};
use crate::harness::*;

pub(crate) const TABLE: &str = "rows";

/// Columns of text; all others are numbers.
const TEXTS: [&str; 5] = ["time_hour", "carrier", "tailnum", "origin", "dest"];

pub(crate) type Answer = Vec<Map<String, Value>>;

pub(crate) type Answered = Repeated<Answer>;

pub(crate) enum Program {
    /// The program `sapwood`, with the engine of its tables.
    Sapwood(PathBuf, Option<&'static str>),
    Duckdb(PathBuf),
    Sqlite,
}

pub(crate) struct System {
    pub(crate) name: &'static str,
    pub(crate) program: Option<Program>,
    pub(crate) library: Option<Box<dyn Library>>,
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

    pub(crate) fn load_untimed(&mut self, rows: &CsvRows, folder: &Folder) -> Result {
        if self.stores() { self.load(rows, folder).map(drop) } else { Ok(()) }
    }

    fn stores(&self) -> bool {
        self.program.is_some() && self.name != SAPWOOD
    }

    /// Makes a table of the rows, instead of one that was made before: how long it took, and its
    /// bytes on disk.
    fn load(&mut self, rows: &CsvRows, parent: &Folder) -> Result<(Duration, u64)> {
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

    pub(crate) fn open(&mut self) -> Result {
        match (&mut self.library, &self.stored, &self.program) {
            (Some(library), Some(folder), Some(program)) => library.open(&program.database(folder)),
            _ => Ok(()),
        }
    }

    pub(crate) fn close(&mut self) -> Result {
        match (&mut self.library, &self.stored) {
            (Some(library), Some(_)) => library.close(),
            _ => Ok(()),
        }
    }

    /// Asks until some time has passed, once at least; the turn says for which of the keys.
    fn ask(&mut self, job: &SqlJob<'_>) -> Result<Answered> {
        let &SqlJob { name, place, rows, turn, least, .. } = job;
        match (place, &mut self.library, &self.program) {
            (RowPlace::File, Some(library), None) => {
                let question = question(name, "rows", as_text).ok_or("files have no keys")?;
                library.open(&rows.path)?;
                library.ask(&question, least)
            }
            (RowPlace::Library, Some(library), _) => {
                match question(name, TABLE, literal_of(self.name)) {
                    Some(question) => library.ask(&question, least),
                    None if name == "update" => library.update(&rows.keys, turn, least),
                    None => library.get(&rows.keys, least),
                }
            }
            (_, _, Some(program)) => {
                let moment = literal_of(self.name);
                let is_file = place == RowPlace::File;
                let table = if is_file { program.file(rows) } else { TABLE.to_owned() };
                let key = &rows.keys[turn % rows.keys.len()];
                let question = question(name, &table, moment)
                    .unwrap_or_else(|| by_key(name, key, turn, moment));
                let folder = self.stored.as_ref().filter(|_| place == RowPlace::Stored);
                let answer = || Ok((1, run(&mut program.ask(&question, folder))?));
                let Repeated { times, elapsed, answer: printed } = again(least, answer)?;
                let answer = if name == "update" { Answer::new() } else { parsed(&printed)? };
                Ok(Answered { times, elapsed, answer })
            }
            (_, _, None) => bail!("it has no program"),
        }
    }
}

impl<'r> Engine<SqlJob<'r>> for System {
    fn name(&self) -> &str {
        self.name
    }

    fn runs(&self, job: &SqlJob<'r>) -> bool {
        match job.place {
            // SQLite has no median.
            _ if job.name == "median" && self.name == SQLITE => false,
            RowPlace::File => [SAPWOOD, DUCKDB, POLARS].contains(&self.name),
            RowPlace::Stored => self.stores(),
            RowPlace::Library => self.library.is_some() && self.name != POLARS,
        }
    }

    /// Compares the answer with the first one of the round.
    fn run(&mut self, job: &SqlJob<'r>) -> Result<Outcome> {
        if job.name == "load" {
            let (elapsed, bytes) = self.load(job.rows, job.folder)?;
            let bytes = Figure::new(bytes as f64).unit(&BYTES).on(1);
            let figures = vec![Figure::rate(job.rows.count, elapsed), bytes];
            return Ok(Outcome::from(figures));
        }
        let Answered { times, elapsed, answer } = self.ask(job)?;
        let mut first = job.first.borrow_mut();
        let (name, expected) = first.get_or_insert_with(|| (self.name, answer.clone()));
        if !agree(expected, &answer) {
            let (expected, found) = (shown(expected), shown(&answer));
            bail!("{name} answered {expected}, and it {found}");
        }
        Ok(Outcome::from(vec![Figure::rate(times, elapsed)]))
    }
}

fn shown(answer: &Answer) -> String {
    let first = answer.iter().take(3).map(|row| Value::Object(row.clone()).to_string());
    format!("{} rows, {}", answer.len(), first.collect::<Vec<_>>().join(" "))
}

/// The first day of the week that is asked about, and the first one behind it.
const WEEK: (&str, &str) = ("2013-07-01", "2013-07-08");

/// A question of `rows`; none for a statement by key. All systems understand it, with moments as
/// they write them.
fn question(name: &str, rows: &str, moment: fn(&str) -> String) -> Option<String> {
    let (from, to) = (moment(WEEK.0), moment(WEEK.1));
    Some(match name {
        // Count and mean by carrier.
        "by-carrier" => format!(
            "select carrier, count(*) as flights, avg(dep_delay) as late from {rows} \
             group by carrier order by carrier"
        ),
        // Median, and the number of different destinations, under a filter.
        "median" => format!(
            "select origin, carrier, median(arr_delay) as late, count(distinct dest) as dests \
             from {rows} where distance > 500 group by origin, carrier order by origin, carrier"
        ),
        // The ten latest of a week.
        "top" => format!(
            "select carrier, flight, dep_delay from {rows} \
             where time_hour >= {from} and time_hour < {to} and dep_delay is not null \
             order by dep_delay desc, carrier, flight limit 10"
        ),
        "sum" => format!(
            "select count(*) as flights, sum(dep_delay) as late, sum(distance) as miles from {rows}"
        ),
        _ => return None,
    })
}

/// The form in which a system writes a moment: as text, where it keeps it so.
fn literal_of(name: &str) -> fn(&str) -> String {
    match name {
        SQLITE | POLARS => as_text,
        _ => |day| format!("timestamp '{}'", day.replace('T', " ").replace('Z', "")),
    }
}

fn as_text(day: &str) -> String {
    if day.contains('T') { format!("'{day}'") } else { format!("'{day}T00:00:00Z'") }
}

/// A statement on one row. A change gives it a delay that tells the turn.
fn by_key(name: &str, key: &RowKey, turn: usize, moment: fn(&str) -> String) -> String {
    let RowKey { hour, carrier, flight } = key;
    let hour = moment(hour);
    let row = format!("time_hour = {hour} and carrier = '{carrier}' and flight = {flight}");
    match name {
        "update" => format!("update {TABLE} set dep_delay = {} where {row}", turn % 100),
        _ => format!("select carrier, flight, dest, distance, dep_delay from {TABLE} where {row}"),
    }
}

impl Program {
    fn command(&self) -> Command {
        Command::new(match self {
            Program::Sapwood(program, _) | Program::Duckdb(program) => program.as_os_str(),
            Program::Sqlite => "sqlite3".as_ref(),
        })
    }

    fn load(&self, rows: &CsvRows, folder: &Folder) -> Command {
        let (mut command, database) = (self.command(), self.database(folder));
        match self {
            Program::Sapwood(_, engine) => {
                command.args(["--quiet", "load"]).arg(&rows.path);
                command.args(["--key", &KEY.join(","), "--table", TABLE]);
                command.args(["--engine", engine.unwrap_or("ordered"), "--dir"]).arg(database);
            }
            Program::Duckdb(_) => {
                let rows = self.file(rows);
                let statement = format!("create table {TABLE} as select * from {rows}");
                command.arg(database).args(["-c", &statement]);
            }
            Program::Sqlite => {
                let typed = rows.columns.iter().map(|column| match &column[..] {
                    text if TEXTS.contains(&text) => format!("{column} text"),
                    "fare" => format!("{column} real"),
                    _ => format!("{column} integer"),
                });
                let typed = typed.collect::<Vec<_>>().join(", ");
                let numbers = rows.columns.iter().filter(|column| !TEXTS.contains(&&column[..]));
                let missing = numbers.map(|column| format!("{column} = nullif({column}, 'NA')"));
                let (missing, key) = (missing.collect::<Vec<_>>().join(", "), KEY.join(", "));
                command.arg(database).args([
                    "pragma journal_mode = off".to_owned(),
                    "pragma synchronous = off".to_owned(),
                    format!("create table {TABLE} ({typed}, primary key ({key})) without rowid"),
                    format!(".import --csv --skip 1 '{}' {TABLE}", rows.path.display()),
                    format!("update {TABLE} set {missing}"),
                ]);
            }
        }
        command
    }

    fn database(&self, folder: &Folder) -> PathBuf {
        folder.path().join(match self {
            Program::Sapwood(..) => "db",
            Program::Duckdb(_) => "rows.duckdb",
            Program::Sqlite => "rows.sqlite",
        })
    }

    fn file(&self, rows: &CsvRows) -> String {
        let path = rows.path.display();
        match self {
            Program::Duckdb(_) => format!(
                "read_csv('{path}', nullstr = ['NA', ''], types = {{'time_hour': 'timestamp'}})"
            ),
            _ => format!("'{path}'"),
        }
    }

    fn ask(&self, question: &str, folder: Option<&Folder>) -> Command {
        let (mut command, database) = (self.command(), folder.map(|folder| self.database(folder)));
        match self {
            Program::Sapwood(..) => {
                let dir =
                    database.iter().flat_map(|database| ["--dir".as_ref(), database.as_os_str()]);
                command.args(["--json", "--quiet", "sql", question]).args(dir)
            }
            Program::Duckdb(_) => command.args(database).args(["-json", "-c", question]),
            Program::Sqlite => command.arg("-json").args(database).arg(question),
        };
        command
    }
}

fn run(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{name} cannot be started: {error}"))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        bail!("{name} failed, {}: {}", ran.status, said.trim_end());
    }
    Ok(ran.stdout)
}

fn parsed(printed: &[u8]) -> Result<Answer> {
    let explain = |error| format!("an answer is no JSON: {error}");
    if printed.first() == Some(&b'[') {
        return Ok(serde_json::from_slice(printed).map_err(explain)?);
    }
    let objects = serde_json::Deserializer::from_slice(printed).into_iter();
    Ok(objects.collect::<Result<_, _>>().map_err(explain)?)
}

/// True if two answers are the same: floats to nine digits. DuckDB writes numbers of 128 bits as
/// text.
fn agree(one: &Answer, other: &Answer) -> bool {
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
