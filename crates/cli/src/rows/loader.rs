//! The rows of a file in memory, as text: every row is there, or named and counted.

use std::time::{Duration, Instant};

use sapwood::{Db, Engine, HashEngineError, OrderedEngineError, Table, Transaction};

use crate::args::rows::{Duplicates, EngineName, Input};
use crate::rows::encoding;
use crate::rows::kept::Held;
use crate::rows::key_columns::KeyColumns;
use crate::rows::reader::{Columns, Malformed, Row, RowReader};
use crate::rows::rows_table::{self, NewTable, Put, Rows};
use crate::rows::source::{self, Source};
use crate::terminal::exit::{Failure, Outcome, words};
use crate::terminal::format::{count, plural, shown_list, time};
use crate::terminal::stderr;
use crate::terminal::ui::Ui;

/// The number of rows that decide the types of key columns.
const TYPING_ROWS: usize = 1000;

/// A file in a table.
pub(crate) struct Loaded {
    /// Keeps the directory of a table that has one from being opened by others.
    pub(crate) db: Db,
    pub(crate) table: Table,
    pub(crate) columns: Columns,
    pub(crate) keys: KeyColumns,
    pub(crate) counts: Counts,
}

/// Counts of rows, by their outcome.
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
        // No row is put without a look at the one that it replaces: it is counted.
        let entries = self.table.len_estimate();
        let entries = match entries {
            1 => "1 entry".to_owned(),
            many => format!("{} entries", count(many as u64)),
        };
        let keys = &self.keys;
        match self.db.directory() {
            Some(_) => {
                let by = if keys.len() == 0 { String::new() } else { format!(" by {keys}") };
                ui.notice(format_args!(
                    "{file}: table {}, {entries}{by}, opened in {elapsed}",
                    input.table
                ));
            }
            None if keys.len() == 0 => ui.notice(format_args!(
                "{file}: {}, {elapsed}",
                plural(self.counts.rows as usize, "row")
            )),
            None => ui.notice(format_args!(
                "{file}: {} into {entries} by {keys}, {elapsed}",
                plural(self.counts.rows as usize, "row")
            )),
        }
    }

    /// With `--strict`, a failure if rows were refused.
    pub(crate) fn strictly(&self, input: &Input) -> Outcome {
        self.counts.strictly(input)
    }
}

impl Counts {
    /// Says how many rows are not in the table, and in which ways all would be.
    pub(crate) fn warn(&self, duplicates: Duplicates, held: Held, ways: &[&str]) {
        if self.malformed > 0 {
            let malformed = plural(self.malformed as usize, "malformed row");
            stderr::line(format_args!("warning: {malformed} left out"));
        }
        if self.duplicates == 0 {
            return;
        }
        let rows = plural(self.duplicates as usize, "row");
        let what = match (duplicates, held) {
            // All are there, as was asked.
            (Duplicates::All, _) => return,
            (Duplicates::First, Held::Nothing) => "dropped: an earlier row has the same key",
            (Duplicates::First, Held::Rows) => {
                "dropped: the table or an earlier row has the same key"
            }
            (Duplicates::Last, Held::Nothing) => "dropped: a later row has the same key",
            (Duplicates::Last, Held::Rows) => {
                "dropped, of the table or of the file: a later row has the same key"
            }
        };
        let ways = match ways {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            ways => ways.concat(),
        };
        stderr::line(format_args!("warning: {rows} {what}; {ways} would keep them all"));
    }

    pub(crate) fn strictly(&self, input: &Input) -> Outcome {
        let Counts { malformed, duplicates, .. } = *self;
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

/// The treatment of a file without `--key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyless {
    Refused,
    /// Every row is there, by its line.
    ByLine,
}

/// Refuses options that do not fit each other.
pub(crate) fn check(input: &Input) -> Outcome<EngineName> {
    if input.checkpoint.is_some() {
        return Err(Failure::Usage(
            "--checkpoint looks at a directory that was loaded before; a file has none".to_owned(),
        ));
    }
    let engine = input.engine.unwrap_or(EngineName::Ordered);
    if engine != EngineName::Tree && input.kind.is_some() {
        return Err(Failure::Usage("--kind is of --engine tree".to_owned()));
    }
    if engine == EngineName::Tree && input.memory_budget.is_some() {
        return Err(Failure::Usage(
            "tree tables have no memory budget: what lies in a directory need not fit into memory"
                .to_owned(),
        ));
    }
    if engine == EngineName::Hash && input.duplicates == Duplicates::All {
        return Err(Failure::Usage(
            "a hash table has one row a key: --duplicates all needs --engine ordered or --engine \
             tree"
                .to_owned(),
        ));
    }
    Ok(engine)
}

/// Loads `input` into a table in memory, naming on standard error the rows it cannot take.
pub(crate) fn load_into_memory(input: &Input, keyless: Keyless, ui: &Ui) -> Outcome<Loaded> {
    let engine = check(input)?;
    if input.key.is_none() && keyless == Keyless::Refused {
        // A missing file needs no key: report that first.
        source::exists(&input.file)?;
        return Err(Failure::Usage(
            "--key is needed: it names the columns that make the key of a row".to_owned(),
        ));
    }
    let started = Instant::now();
    let opened = Source::open(&input.file, input.format, ui).and_then(|source| {
        let progress = source.progress.clone();
        Ok((RowReader::new(source)?, progress))
    });
    let (mut reader, progress) = match opened {
        Err(_) if ui.interrupt.asked() => {
            return Err(Failure::Interrupted("nothing had been read".to_owned()));
        }
        opened => opened?,
    };
    for renamed in reader.renamed() {
        stderr::line(format_args!("warning: {renamed}"));
    }

    let mut first = Vec::new();
    while first.len() < TYPING_ROWS {
        match next(&mut reader, ui)? {
            None => break,
            Some(row) => first.push(row),
        }
    }
    let typing: Vec<&Row> = first.iter().filter_map(|row| row.as_ref().ok()).collect();
    let keys = match &input.key {
        Some(key) => KeyColumns::resolve(key, reader.columns(), &typing)?,
        None => KeyColumns::lines(),
    };
    let keys = match input.duplicates {
        Duplicates::All => keys.numbered(),
        Duplicates::First | Duplicates::Last => keys,
    };
    let db = Db::in_memory();
    let new =
        NewTable { kind: input.kind, memory_budget: input.memory_budget, ..NewTable::of(engine) };
    let table = new.make(&db, &input.table)?;
    let transaction = table.as_tree().map(|_| db.begin()).transpose()?;
    let mut loader = Loader {
        rows: Rows { table, transaction },
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
    while let Some(row) = next(&mut reader, ui)? {
        loader.take_or_refuse(row)?;
    }
    progress.finish_and_clear();
    let columns = reader.columns().clone();
    let mut counts = loader.counts.clone();
    counts.elapsed = started.elapsed();
    loader.close(&counts, keyless);
    if ui.interrupt.asked() {
        let rows = plural(counts.rows as usize, "row");
        let done = format!("{rows} had been read in {}", time(counts.elapsed));
        return Err(Failure::Interrupted(done));
    }
    let (Rows { table, transaction }, keys) = loader.into_parts();
    transaction.map(Transaction::commit).transpose()?;
    Ok(Loaded { db, table, columns, keys, counts })
}

/// The next row; none at the end, or when the user has asked to stop, which may be why reading
/// failed.
fn next(reader: &mut RowReader, ui: &Ui) -> Outcome<Option<Result<Row, Malformed>>> {
    if ui.interrupt.asked() {
        return Ok(None);
    }
    match reader.next_row() {
        Err(_) if ui.interrupt.asked() => Ok(None),
        read => read,
    }
}

struct Loader<'a> {
    rows: Rows<'a>,
    keys: KeyColumns,
    duplicates: Duplicates,
    counts: Counts,
    complaints: Complaints,
    // Kept from row to row for their memory.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Loader<'a> {
    fn into_parts(self) -> (Rows<'a>, KeyColumns) {
        (self.rows, self.keys)
    }

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
        let number = self.counts.rows;
        if let Err(what) = self.keys.encode_row(row, number, &mut self.key) {
            self.refuse(&Malformed { line, what });
            return Ok(());
        }
        encoding::encode(row, &mut self.value);
        match rows_table::put(&self.rows, &mut self.key, &self.value, number, self.duplicates) {
            Ok(Put::New) => self.counts.rows += 1,
            Ok(Put::Again) => {
                self.counts.rows += 1;
                self.counts.duplicates += 1;
                let outcome = match self.duplicates {
                    Duplicates::First => "this row is left out",
                    Duplicates::Last => "this row takes the place of the earlier one",
                    Duplicates::All => return Ok(()),
                };
                let values = shown_list(&self.keys.decode(&self.key).unwrap_or_default());
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
        let rows = match self.counts.rows {
            1 => "1 row is".to_owned(),
            rows => format!("{} rows are", count(rows)),
        };
        let why = out_of_memory(error, &["--memory-budget"]).unwrap_or_else(|| words(error));
        Failure::Failed(format!("line {line} cannot be loaded, {rows}: {why}"))
    }

    fn close(&self, counts: &Counts, keyless: Keyless) {
        let mut ways = vec!["more columns in --key"];
        if self.rows.table.engine() != Engine::Hash {
            ways.push("--duplicates all");
        }
        if keyless == Keyless::ByLine {
            ways.push("no --key");
        }
        counts.warn(self.duplicates, Held::Nothing, &ways);
    }

    fn refuse(&mut self, malformed: &Malformed) {
        self.counts.rows += 1;
        self.counts.malformed += 1;
        self.complaints.name("malformed", malformed.line, &malformed.what);
    }
}

/// The words of an error that more memory would help, with the options that give it.
pub(crate) fn out_of_memory(error: &sapwood::Error, options: &[&str]) -> Option<String> {
    let options = options.join(", ");
    match (error.ordered_engine(), error.hash_engine()) {
        (Some(cause @ OrderedEngineError::OutOfMemory { .. }), _) => {
            Some(format!("{cause} ({options})"))
        }
        (_, Some(cause @ HashEngineError::OutOfMemory { .. })) => {
            Some(format!("{cause} ({options})"))
        }
        _ => None,
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
            let line = format!("line {line}: {kind}: {what}");
            self.progress.suspend(|| stderr::line(line));
        }
    }
}
