//! A file into a table: every row is loaded, or named and counted.

use std::io::Write;
use std::time::{Duration, Instant};

use sapwood::{Db, EngineError, Table, TableOptions, key::KeyEncode};
use serde_json::json;

use crate::args::{Duplicates, Input, Load};
use crate::exit::{Failure, Outcome};
use crate::format::{bytes, count, plural, rate, time};
use crate::key_columns::KeyColumns;
use crate::rows::{Columns, Malformed, Row, RowReader};
use crate::source::Source;
use crate::stored;
use crate::ui::{Answers, Ui};

/// How many rows decide the types of key columns.
const TYPING_ROWS: usize = 1000;

/// `sapwood load`.
pub(crate) fn run(args: &Load, ui: &Ui) -> Outcome {
    let loaded = load(&args.input, ui)?;
    let Loaded { keys, counts, .. } = &loaded;
    let stats = loaded.table.stats();
    match ui.answers {
        Answers::Json => ui.print_json(&json!({
            "file": args.input.file.display().to_string(),
            "key": keys.to_string(),
            "rows": counts.rows,
            "entries": stats.entries,
            "malformed": counts.malformed,
            "duplicates": counts.duplicates,
            "seconds": counts.elapsed.as_secs_f64(),
            "key_bytes": stats.key_bytes,
            "value_bytes": stats.value_bytes,
            "reserved_bytes": stats.reserved_bytes,
        })),
        Answers::Text => ui.print(|out| {
            writeln!(out, "key          {keys}")?;
            writeln!(out, "rows         {}", count(counts.rows))?;
            writeln!(out, "  malformed  {}", count(counts.malformed))?;
            writeln!(out, "  duplicates {}", count(counts.duplicates))?;
            writeln!(out, "entries      {}", count(stats.entries))?;
            writeln!(out, "keys         {}", bytes(stats.key_bytes))?;
            writeln!(out, "values       {}", bytes(stats.value_bytes))?;
            writeln!(out, "memory       {}", bytes(stats.reserved_bytes))?;
            let speed = rate(counts.rows, "rows", counts.elapsed);
            writeln!(out, "time         {}, {speed}", time(counts.elapsed))
        }),
    }?;
    loaded.strictly(&args.input)
}

/// A file in a table.
pub(crate) struct Loaded {
    pub(crate) table: Table,
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
        ui.notice(format_args!(
            "{}: {} rows into {} entries by {}, {}",
            input.file.display(),
            count(self.counts.rows),
            count(self.table.len() as u64),
            self.keys,
            time(self.counts.elapsed)
        ));
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

/// Loads `input` into a table, naming on standard error the rows it cannot take.
pub(crate) fn load(input: &Input, ui: &Ui) -> Outcome<Loaded> {
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
    let keys = KeyColumns::resolve(&input.key, reader.columns(), &typing)?;
    let mut options = TableOptions::default();
    if let Some(budget) = input.memory_budget {
        options = options.memory_budget(budget);
    }
    let mut loader = Loader {
        table: Db::in_memory().create_table("rows", options)?,
        keys,
        duplicates: input.duplicates,
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
        let done = format!("{rows} rows had been read in {}", time(counts.elapsed));
        return Err(Failure::Interrupted(done));
    }
    Ok(Loaded { table: loader.table, columns, keys: loader.keys, counts })
}

struct Loader {
    table: Table,
    keys: KeyColumns,
    duplicates: Duplicates,
    counts: Counts,
    complaints: Complaints,
    // Kept from row to row for their memory.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Loader {
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
        match self.put(line) {
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
            Err(error) => match error.engine() {
                Some(EngineError::KeyLength { .. } | EngineError::ValueLength { .. }) => {
                    let what = too_long(&self.key, &self.value);
                    self.refuse(&Malformed { line, what });
                }
                cause => {
                    self.complaints.progress.finish_and_clear();
                    let rows = count(self.counts.rows);
                    let why = match cause {
                        Some(cause @ EngineError::OutOfMemory { .. }) => {
                            format!("{cause} (--memory-budget)")
                        }
                        _ => error.to_string(),
                    };
                    return Err(Failure::Failed(format!(
                        "line {line} cannot be loaded, {rows} rows are: {why}"
                    )));
                }
            },
        }
        Ok(())
    }

    fn put(&mut self, line: u64) -> sapwood::Result<Put> {
        let new = match self.duplicates {
            Duplicates::First => self.table.put_if_absent(&self.key, &self.value)?,
            Duplicates::Last => !self.table.put(&self.key, &self.value)?,
            Duplicates::All => {
                // The line makes the key unique, behind all columns, so that it decides last.
                let whole = self.key.len();
                let before = self.table.ceiling(&self.key)?;
                let new = !before.is_some_and(|entry| entry.key().starts_with(&self.key));
                line.encode_to(&mut self.key);
                let put = self.table.put(&self.key, &self.value);
                self.key.truncate(whole);
                put?;
                new
            }
        };
        Ok(if new { Put::New } else { Put::Again })
    }

    fn refuse(&mut self, malformed: &Malformed) {
        self.counts.rows += 1;
        self.counts.malformed += 1;
        self.complaints.name("malformed", malformed.line, &malformed.what);
    }
}

/// Whether a row's key was new.
enum Put {
    New,
    Again,
}

fn too_long(key: &[u8], value: &[u8]) -> String {
    if key.len() > sapwood::KEY_BYTES_MAX {
        let (length, max) = (bytes(key.len() as u64), bytes(sapwood::KEY_BYTES_MAX as u64));
        format!("the key is {length} long, the most is {max}")
    } else {
        let (length, max) = (bytes(value.len() as u64), bytes(sapwood::VALUE_BYTES_MAX as u64));
        format!("the row is {length} long, the most is {max}")
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
