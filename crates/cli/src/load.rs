//! A file into a table: every row is loaded, or named and counted.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use sapwood::{Db, EngineError, HashEngineError, HashTable};
use serde_json::json;

use crate::args::{CompactAt, Duplicates, EngineName, Input, Load};
use crate::exit::{Failure, Outcome};
use crate::format::{bytes, count, plural, rate, time};
use crate::kept::{self, Description};
use crate::key_columns::KeyColumns;
use crate::rows::{Columns, Malformed, Row, RowReader};
use crate::rows_table::{self, Put, RowsTable};
use crate::source::Source;
use crate::stored;
use crate::ui::{Answers, Ui};

/// How many rows decide the types of key columns.
const TYPING_ROWS: usize = 1000;

/// `sapwood load`.
pub(crate) fn run(args: &Load, ui: &Ui) -> Outcome {
    if args.input.file.is_dir() {
        return Err(Failure::Usage(format!(
            "{} is a directory: give the file to load, and the directory with --dir",
            args.input.file.display()
        )));
    }
    let compact_at = args.compact_at;
    let keep = args.dir.as_deref().map(|directory| Keep { directory, compact_at });
    let loaded = load_into(&args.input, keep, ui)?;
    // With a directory a strict load keeps all of the file or nothing.
    if let (Some(directory), Err(failure)) = (&args.dir, loaded.strictly(&args.input)) {
        report(args, &loaded, ui)?;
        return Err(match failure {
            Failure::Failed(why) => Failure::Failed(format!("{why}; {}", nothing_kept(directory))),
            other => other,
        });
    }
    if args.dir.is_some() {
        loaded.db.clone().close()?;
    }
    report(args, &loaded, ui)?;
    loaded.strictly(&args.input)
}

fn report(args: &Load, loaded: &Loaded, ui: &Ui) -> Outcome {
    let Loaded { keys, counts, .. } = loaded;
    let figures = Figures::of(&loaded.table);
    match ui.answers {
        Answers::Json => {
            let mut object = json!({
                "file": args.input.file.display().to_string(),
                "key": keys.to_string(),
                "rows": counts.rows,
                "entries": loaded.table.len(),
                "malformed": counts.malformed,
                "duplicates": counts.duplicates,
                "seconds": counts.elapsed.as_secs_f64(),
            });
            if let Some(directory) = &args.dir {
                object["dir"] = json!(directory.display().to_string());
                object["table"] = json!(args.input.table);
            }
            for (_, name, number) in figures.named {
                object[name] = json!(number);
            }
            ui.print_json(&object)
        }
        Answers::Text => ui.print(|out| {
            writeln!(out, "key          {keys}")?;
            writeln!(out, "rows         {}", count(counts.rows))?;
            writeln!(out, "  malformed  {}", count(counts.malformed))?;
            writeln!(out, "  duplicates {}", count(counts.duplicates))?;
            writeln!(out, "entries      {}", count(loaded.table.len() as u64))?;
            for (label, _, number) in figures.named {
                writeln!(out, "{label:12} {}", bytes(number))?;
            }
            if let Some(directory) = &args.dir {
                writeln!(out, "kept in      {}, table {}", directory.display(), args.input.table)?;
            }
            let speed = rate(counts.rows, "rows", counts.elapsed);
            writeln!(out, "time         {}, {speed}", time(counts.elapsed))
        }),
    }
}

/// What a loaded table costs: for people, for machines, and in bytes.
struct Figures {
    named: [(&'static str, &'static str, u64); 3],
}

impl Figures {
    fn of(table: &RowsTable) -> Self {
        let named = match table {
            RowsTable::Ordered(table) => {
                let stats = table.stats();
                [
                    ("keys", "key_bytes", stats.key_bytes),
                    ("values", "value_bytes", stats.value_bytes),
                    ("memory", "reserved_bytes", stats.reserved_bytes),
                ]
            }
            RowsTable::Hash(table) => {
                let stats = table.stats();
                [
                    ("log", "log_bytes", stats.log_bytes),
                    ("memory", "reserved_bytes", stats.reserved_bytes),
                    ("on disk", "file_bytes", stats.file_bytes),
                ]
            }
        };
        Self { named }
    }
}

fn nothing_kept(directory: &Path) -> String {
    format!("nothing of the file is kept in {}", directory.display())
}

/// A file in a table.
pub(crate) struct Loaded {
    /// Keeps the directory of a table that has one from being opened by others.
    pub(crate) db: Db,
    pub(crate) table: RowsTable,
    pub(crate) columns: Columns,
    pub(crate) keys: KeyColumns,
    pub(crate) counts: Counts,
}

/// What became of the rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All that were read, good or not.
    pub(crate) rows: u64,
    pub(crate) malformed: u64,
    /// Rows whose key an earlier row had.
    pub(crate) duplicates: u64,
    pub(crate) elapsed: Duration,
}

impl Loaded {
    /// Says by the way what was loaded, for commands whose answer is another.
    pub(crate) fn tell(&self, input: &Input, ui: &Ui) {
        let (file, elapsed) = (input.file.display(), time(self.counts.elapsed));
        let entries = count(self.table.len() as u64);
        let keys = &self.keys;
        match self.db.directory() {
            Some(_) => {
                let by = if keys.len() == 0 { String::new() } else { format!(" by {keys}") };
                ui.notice(format_args!(
                    "{file}: table {}, {entries} entries{by}, opened in {elapsed}",
                    input.table
                ));
            }
            None => ui.notice(format_args!(
                "{file}: {} rows into {entries} entries by {keys}, {elapsed}",
                count(self.counts.rows)
            )),
        }
    }

    /// With `--strict`, a failure if rows were refused.
    pub(crate) fn strictly(&self, input: &Input) -> Outcome {
        let Counts { malformed, duplicates, .. } = self.counts;
        let duplicates = match input.duplicates {
            Duplicates::All => 0,
            Duplicates::First | Duplicates::Last => duplicates,
        };
        if input.strict && (malformed > 0 || duplicates > 0) {
            let malformed = plural(malformed as usize, "malformed row");
            let duplicates = plural(duplicates as usize, "repeated key");
            return Err(Failure::Failed(format!("--strict: {malformed}, {duplicates}")));
        }
        Ok(())
    }
}

/// The rows that a command is to look at: those of a file, loaded into memory, or those that a
/// directory keeps.
pub(crate) fn load(input: &Input, ui: &Ui) -> Outcome<Loaded> {
    load_by(input, ui, |directory, table| kept::open(directory, table, input.checkpoint))
}

/// As [`load`]; a table that others made has rows without columns.
pub(crate) fn load_any(input: &Input, ui: &Ui) -> Outcome<Loaded> {
    load_by(input, ui, |directory, table| {
        let (db, rows, description) = kept::open_any(directory, table, input.checkpoint)?;
        Ok((db, rows, description.unwrap_or_else(Description::none)))
    })
}

fn load_by(
    input: &Input,
    ui: &Ui,
    open: impl FnOnce(&Path, &str) -> Outcome<(Db, HashTable, Description)>,
) -> Outcome<Loaded> {
    if !input.file.is_dir() {
        return load_into(input, None, ui);
    }
    for (given, name) in [
        (input.key.is_some(), "--key"),
        (input.format.is_some(), "--format"),
        (input.engine == Some(EngineName::Ordered), "--engine ordered"),
        (input.memory_budget.is_some(), "--memory-budget"),
        (input.strict, "--strict"),
    ] {
        if given {
            return Err(Failure::Usage(format!(
                "{} is a directory, whose rows were loaded before: {name} is of `sapwood load`",
                input.file.display()
            )));
        }
    }
    let started = Instant::now();
    let (db, table, Description { columns, keys }) = open(&input.file, &input.table)?;
    let counts = Counts { elapsed: started.elapsed(), ..Counts::default() };
    Ok(Loaded { db, table: RowsTable::Hash(table), columns, keys, counts })
}

/// Where rows are kept, and how.
#[derive(Clone, Copy)]
struct Keep<'a> {
    directory: &'a Path,
    compact_at: Option<CompactAt>,
}

/// Loads `input` into a table, in memory or in a directory, naming on standard error the rows it
/// cannot take.
fn load_into(input: &Input, keep: Option<Keep<'_>>, ui: &Ui) -> Outcome<Loaded> {
    let directory = keep.map(|keep| keep.directory);
    if input.checkpoint.is_some() {
        return Err(Failure::Usage(
            "--checkpoint looks at a directory that was loaded before; a file has none".to_owned(),
        ));
    }
    let engine = input.engine.unwrap_or(EngineName::Ordered);
    let Some(key) = &input.key else {
        return Err(Failure::Usage(
            "--key is needed: it names the columns that make the key of a row".to_owned(),
        ));
    };
    if engine == EngineName::Ordered && directory.is_some() {
        return Err(Failure::Usage(
            "ordered tables live in memory alone: --dir needs --engine hash".to_owned(),
        ));
    }
    if engine == EngineName::Hash && input.duplicates == Duplicates::All {
        return Err(Failure::Usage(
            "a hash table has one row a key: --duplicates all needs --engine ordered".to_owned(),
        ));
    }
    let started = Instant::now();
    let source = Source::open(&input.file, input.format, ui)?;
    let progress = source.progress.clone();
    let mut reader = RowReader::new(source)?;

    let mut first = Vec::new();
    while first.len() < TYPING_ROWS && !ui.interrupt.asked() {
        match reader.next_row()? {
            None => break,
            Some(row) => first.push(row),
        }
    }
    let typing: Vec<&Row> = first.iter().filter_map(|row| row.as_ref().ok()).collect();
    let keys = KeyColumns::resolve(key, reader.columns(), &typing)?;
    let (db, table) = target(input, engine, keep, reader.columns(), &keys)?;
    let mut loader = Loader {
        table,
        keys,
        duplicates: input.duplicates,
        directory,
        counts: Counts::default(),
        complaints: Complaints {
            named: 0,
            named_max: input.show_errors,
            progress: progress.clone(),
        },
        key: Vec::new(),
        value: Vec::new(),
    };
    for row in first {
        loader.take_or_refuse(row)?;
    }
    while !ui.interrupt.asked() {
        match reader.next_row()? {
            None => break,
            Some(row) => loader.take_or_refuse(row)?,
        }
    }
    progress.finish_and_clear();
    let columns = reader.columns().clone();
    let mut counts = loader.counts;
    counts.elapsed = started.elapsed();
    loader.complaints.close(&counts);
    if ui.interrupt.asked() {
        let rows = count(counts.rows);
        let mut done = format!("{rows} rows had been read in {}", time(counts.elapsed));
        if let Some(directory) = directory {
            done = format!("{done}; {}", nothing_kept(directory));
        }
        return Err(Failure::Interrupted(done));
    }
    Ok(Loaded { db, table: loader.table, columns, keys: loader.keys, counts })
}

/// The table that rows go to: a new one, or one of the directory that has the same columns.
fn target(
    input: &Input,
    engine: EngineName,
    keep: Option<Keep<'_>>,
    columns: &Columns,
    keys: &KeyColumns,
) -> Outcome<(Db, RowsTable)> {
    let compact_at = keep.and_then(|keep| keep.compact_at);
    let create =
        |db: &Db| RowsTable::create(db, &input.table, engine, input.memory_budget, compact_at);
    let Some(Keep { directory, .. }) = keep else {
        let db = Db::in_memory();
        let table = create(&db)?;
        return Ok((db, table));
    };
    let description = Description { columns: columns.clone(), keys: keys.clone().settled() };
    let (db, table) = kept::open_for_load(directory, &input.table, &description)?;
    description.keep(&db, &input.table)?;
    let table = match table {
        Some(table) => RowsTable::Hash(table),
        None => create(&db)?,
    };
    Ok((db, table))
}

struct Loader<'a> {
    table: RowsTable,
    keys: KeyColumns,
    duplicates: Duplicates,
    directory: Option<&'a Path>,
    counts: Counts,
    complaints: Complaints,
    // Kept from row to row for their memory.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Loader<'_> {
    fn take_or_refuse(&mut self, row: Result<Row, Malformed>) -> Outcome {
        match row {
            Ok(row) => self.take(&row),
            Err(malformed) => {
                self.refuse(&malformed);
                Ok(())
            }
        }
    }

    fn take(&mut self, row: &Row) -> Outcome {
        let line = row.line;
        if let Err(what) = self.keys.encode_row(row, &mut self.key) {
            self.refuse(&Malformed { line, what });
            return Ok(());
        }
        stored::encode(row, &mut self.value);
        match self.table.put(&mut self.key, &self.value, line, self.duplicates) {
            Ok(Put::New) => self.counts.rows += 1,
            Ok(Put::Again) => {
                self.counts.rows += 1;
                self.counts.duplicates += 1;
                let outcome = match self.duplicates {
                    Duplicates::First => "this row is left out",
                    Duplicates::Last => "this row takes the place of the earlier one",
                    Duplicates::All => return Ok(()),
                };
                let values = self.keys.decode(&self.key).unwrap_or_default().join(",");
                let what = format!("key {values} came before; {outcome}");
                self.complaints.name("repeated", line, &what);
            }
            Err(error) => match rows_table::too_long(&error, &self.key, &self.value) {
                Some(what) => self.refuse(&Malformed { line, what }),
                None => return Err(self.stopped(line, &error)),
            },
        }
        Ok(())
    }

    fn stopped(&self, line: u64, error: &sapwood::Error) -> Failure {
        self.complaints.progress.finish_and_clear();
        let why = match (error.engine(), error.hash_engine()) {
            (Some(cause @ EngineError::OutOfMemory { .. }), _) => {
                format!("{cause} (--memory-budget)")
            }
            (_, Some(cause @ HashEngineError::OutOfMemory { .. })) => {
                format!("{cause} (--memory-budget, --dir)")
            }
            _ => error.to_string(),
        };
        Failure::Failed(match self.directory {
            None => {
                let rows = count(self.counts.rows);
                format!("line {line} cannot be loaded, {rows} rows are: {why}")
            }
            Some(directory) => {
                format!("line {line} cannot be loaded, {}: {why}", nothing_kept(directory))
            }
        })
    }

    fn refuse(&mut self, malformed: &Malformed) {
        self.counts.rows += 1;
        self.counts.malformed += 1;
        self.complaints.name("malformed", malformed.line, &malformed.what);
    }
}

/// Names the first rows that are not as they should be.
struct Complaints {
    named: u64,
    named_max: u64,
    progress: indicatif::ProgressBar,
}

impl Complaints {
    fn name(&mut self, kind: &str, line: u64, what: &str) {
        if self.named < self.named_max {
            self.named += 1;
            self.progress.suspend(|| eprintln!("line {line}: {kind}: {what}"));
        }
    }

    fn close(&self, counts: &Counts) {
        if counts.malformed > 0 {
            let malformed = plural(counts.malformed as usize, "malformed row");
            eprintln!("warning: {malformed} left out");
        }
        if counts.duplicates > 0 {
            let duplicates = plural(counts.duplicates as usize, "row");
            eprintln!(
                "warning: {duplicates} with the key of an earlier row; more columns in --key, \
                 or --duplicates all, would keep them apart"
            );
        }
    }
}
