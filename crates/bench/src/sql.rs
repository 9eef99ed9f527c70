//! Statements of SQL over a file and over tables, beside DuckDB, SQLite and polars.
//!
//! The flights as they are, and rows that are made up. From the file and stored, a process answers
//! each question and ends: its start is in the figure. Opened by a program (`library`), rows are
//! looked up, changed and queried without one. Answers of all systems are compared.

mod library;
mod rows;
mod systems;

use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::harness::*;
use library::{Library, OpenDb, PythonLibrary};
use rows::{CsvRows, CsvSource};
use systems::{Answer, Program, System};

/// The number of rows that are made up, and of flights, at which the targets are judged.
const TARGET_ROWS: usize = 5_000_000;
const FLIGHTS: usize = 336_776;

const FLAG: &str = "--peers";
const NO_PROGRAM: &str = "there is no program sapwood beside this one: build it in the same \
                          profile (-p sapwood-cli), or name it with --program FILE";
const ASKED_AT_LEAST: Duration = Duration::from_millis(500);

const SAPWOOD: &str = "sapwood";
const ORDERED: &str = "sapwood-ordered";
const HASH: &str = "sapwood-hash";
const DUCKDB: &str = "duckdb";
const SQLITE: &str = "sqlite";
const POLARS: &str = "polars";
const PEERS: [&str; 3] = [DUCKDB, SQLITE, POLARS];

pub(crate) const BENCH: Bench = Bench {
    name: "sql",
    workloads: &["load", "get", "by-carrier", "median", "top", "sum", "update"],
    extra: &[],
    engines: &[SAPWOOD, ORDERED, HASH, DUCKDB, SQLITE, POLARS],
    entries: [&[5_000], &[TARGET_ROWS], &[TARGET_ROWS, 10 * TARGET_ROWS]],
    entries_range: [1, 1 << 32],
    runs: [2, 3, 5],
    threads: &[1],
};

const STORED: &[&str] = &[ORDERED, HASH];

const fn duckdb(
    ours: &'static [&'static str],
    workloads: &'static [&'static str],
    least: f64,
) -> Target {
    Target::rate(ours, workloads, least, &[DUCKDB])
}

const PROMISES: &[Target] = &[
    duckdb(&[SAPWOOD], &["by-carrier, file", "median, file"], 1.0),
    duckdb(STORED, &["by-carrier, stored", "median, stored"], 1.0 / 1.5),
    duckdb(STORED, &["get, stored"], 2.0),
    duckdb(STORED, &["load"], 1.5),
    duckdb(STORED, &["get, library", "update, library"], 20.0),
    Target::rate(STORED, &["get, stored"], 1.0, &[]).against(Against::Time(10e6)),
    Target::most(STORED, &["load"], &BYTES, 2.0, Against::Best(&[DUCKDB])),
];

const TARGETS: Targets = Targets {
    judged: TARGET_ROWS..=usize::MAX,
    size_unit: "rows",
    hint: "leave --rows and --smoke out to judge them",
    rows: PROMISES,
};

const TARGETS_OF_FLIGHTS: Targets = Targets {
    judged: FLIGHTS..=FLIGHTS,
    size_unit: "rows",
    hint: "leave --smoke out to judge them",
    rows: PROMISES,
};

/// Flags of `sapwood-bench sql`. Its entries are rows that are made up.
#[derive(Debug, Clone, clap::Args)]
pub struct SqlArgs {
    #[command(flatten)]
    flags: Flags,

    /// Sources of rows [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    sets: Vec<CsvSource>,

    /// Run DuckDB, SQLite and polars beside ours, where Python 3.10 or later and sqlite3 are
    /// installed: packages come from PyPI the first time
    #[arg(long)]
    peers: bool,

    /// The program `sapwood` whose processes answer [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// The place of rows, and whether the start of a process is timed with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RowPlace {
    File,
    /// In a directory or a database file; by a process.
    Stored,
    Library,
}

struct SqlJob<'r> {
    name: &'static str,
    place: RowPlace,
    rows: &'r CsvRows,
    folder: &'r Folder,
    turn: usize,
    least: Duration,
    /// All cores: each system shares a question among them as it sees fit.
    threads: usize,
    /// The first answer of the round: others must agree.
    first: RefCell<Option<(&'static str, Answer)>>,
}

impl Job for SqlJob<'_> {
    fn workload(&self) -> String {
        match self.name {
            "load" => "load".to_owned(),
            name => format!("{name}, {}", self.place.name()),
        }
    }

    fn unit(&self) -> &'static Unit {
        match (self.name, self.place) {
            ("load", _) => &ROWS,
            ("get" | "update", RowPlace::Library) => &OPERATIONS,
            _ => &QUESTIONS,
        }
    }

    fn threads(&self) -> usize {
        self.threads
    }
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &SqlArgs, out: &mut dyn Write) -> Result {
    let plan = args.flags.plan(&BENCH, &[])?;
    args.flags.check_flag(&PEERS, args.peers, "is not part of this program", FLAG)?;
    let mut sheet = args.flags.open(out)?;
    for source in or(&args.sets, CsvSource::value_variants()) {
        let is_smoke = plan.mode == Mode::Smoke;
        let (counts, targets) = match source {
            CsvSource::Flights if is_smoke => (vec![5_000], &TARGETS_OF_FLIGHTS),
            CsvSource::Flights => (vec![usize::MAX], &TARGETS_OF_FLIGHTS),
            CsvSource::Generated => (plan.entries.clone(), &TARGETS),
        };
        for count in counts {
            let folder = Folder::new(&plan.dir, &format!("sql-{}-{count}", source.name()))?;
            let rows = CsvRows::new(source, count, &folder)?;
            let mut report =
                Report::new("sql", rows.count, source.name(), &[SAPWOOD, ORDERED, HASH]);
            let megabytes = std::fs::metadata(&rows.path)?.len() / 1_000_000;
            report.title = format!(", {megabytes} MB of CSV");
            measure(&plan, systems(args, &plan)?, &rows, &folder, &mut report)?;
            sheet.print(&report, &[targets])?;
        }
    }
    sheet.end()
}

fn systems(args: &SqlArgs, plan: &Plan) -> Result<Vec<System>> {
    let program = args.program.clone().or_else(sapwood_program).ok_or(NO_PROGRAM)?;
    let ours = |engine| Some(Program::Sapwood(program.clone(), engine));
    let in_process = || -> Option<Box<dyn Library>> { Some(Box::<OpenDb>::default()) };
    let mut systems = vec![
        System::new(SAPWOOD, ours(None), None),
        System::new(ORDERED, ours(Some("ordered")), in_process()),
        System::new(HASH, ours(Some("hash")), in_process()),
    ];
    if args.peers {
        let python = Foreign::python("sql", FLAG);
        let process = Rc::new(RefCell::new(python.start_python()?));
        let peer = |name| -> Option<Box<dyn Library>> {
            Some(Box::new(PythonLibrary::new(name, &process)))
        };
        let duckdb = Program::Duckdb(python.packaged("duckdb_cli", "duckdb")?);
        systems.push(System::new(DUCKDB, Some(duckdb), peer(DUCKDB)));
        systems.push(System::new(SQLITE, Some(Program::Sqlite), peer(SQLITE)));
        systems.push(System::new(POLARS, None, peer(POLARS)));
    }
    systems.retain(|system| plan.takes(system.name));
    Ok(systems)
}

/// Measures the rows of one source: systems load them; then each question is asked of one after the
/// other, of processes first, then of those that have the rows open.
fn measure(
    plan: &Plan,
    mut systems: Vec<System>,
    rows: &CsvRows,
    folder: &Folder,
    report: &mut Report,
) -> Result {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let least = if plan.mode == Mode::Smoke { Duration::ZERO } else { ASKED_AT_LEAST };
    let job = |name, place| {
        move |turn| SqlJob {
            name,
            place,
            rows,
            folder,
            turn,
            least,
            threads,
            first: RefCell::default(),
        }
    };
    if plan.runs("load") {
        rounds(&mut systems, report, plan.runs, job("load", RowPlace::Stored))?;
    } else {
        systems.iter_mut().try_for_each(|system| system.load_untimed(rows, folder))?;
    }
    let stored: Vec<_> = report.samples.iter().filter(|it| it.unit == &BYTES).collect();
    let per_row = stored.iter().map(|it| (it.engine.clone(), it.median() / rows.count as f64));
    report.bytes_per_entry = per_row.collect();
    for &place in RowPlace::value_variants() {
        if place == RowPlace::Library {
            systems.iter_mut().try_for_each(System::open)?;
        }
        // A file has no keys.
        let has_keys = place != RowPlace::File;
        for &name in plan.workloads.iter().filter(|name| **name != "load") {
            if has_keys || !["get", "update"].contains(&name) {
                rounds(&mut systems, report, plan.runs, job(name, place))?;
            }
        }
    }
    systems.iter_mut().try_for_each(System::close)
}
