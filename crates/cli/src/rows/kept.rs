//! Rows that `sapwood load --dir` keeps: which table they are in, and how to read them.
//!
//! A directory is a database of tables. One of them, [`COLUMNS_TABLE`], says of
//! each of the others which columns its rows have and which of them make the key, as a JSON object:
//! `{"columns": ["carrier", "flight"], "key": [["carrier", "str"], ["flight", "int"]]}`, where the
//! columns of JSON lines are `null`.

use std::fs;
use std::path::{Path, PathBuf};

use sapwood::{Cut, Db, DbOptions, Engine, Error, HashEngineError, HashTableOptions, Table};
use serde_json::{Value, json};

use crate::rows::key_columns::KeyColumns;
use crate::rows::reader::{Columns, distinct_names};
use crate::terminal::exit::{COLUMNS_TABLE, Failure, Outcome};
use crate::terminal::format::quoted;
use crate::terminal::ui::Ui;

/// The columns and keys of a table's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) columns: Columns,
    pub(crate) keys: KeyColumns,
}

impl Description {
    /// Of entries that were not loaded from a file.
    pub(crate) fn entries() -> Self {
        Self { columns: Columns::Entries, keys: KeyColumns::bytes() }
    }

    /// Names of columns and the key, as they are kept.
    pub(crate) fn as_json(&self) -> Value {
        let columns = match &self.columns {
            Columns::Csv(names) => json!(names),
            Columns::Json | Columns::Entries => Value::Null,
        };
        json!({ "columns": columns, "key": self.keys.as_json() })
    }

    /// Writes it, and makes it last.
    pub(crate) fn keep(&self, db: &Db, table: &str) -> Outcome {
        let text = self.as_json().to_string();
        let descriptions =
            db.open_or_create_hash_table(COLUMNS_TABLE, HashTableOptions::default())?;
        descriptions.put(table.as_bytes(), text.as_bytes())?;
        descriptions.checkpoint(Cut::Full)?;
        Ok(())
    }

    /// Reads that of a table; none if it has none.
    pub(crate) fn read(db: &Db, table: &str) -> Outcome<Option<Self>> {
        let descriptions = match db.hash_table(COLUMNS_TABLE) {
            Err(Error::TableMissing { .. }) => return Ok(None),
            other => other?,
        };
        let Some(text) = descriptions.get(table.as_bytes())? else {
            return Ok(None);
        };
        let description = Self::parse(&text).ok_or_else(|| {
            Failure::Failed(format!(
                "what table `{COLUMNS_TABLE}` says of table {} cannot be read; load it again",
                quoted(table)
            ))
        })?;
        Ok(Some(description))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        Self::from_json(&serde_json::from_slice(text).ok()?)
    }

    /// Reads what [`as_json`](Self::as_json) wrote.
    pub(crate) fn from_json(object: &Value) -> Option<Self> {
        let columns = match object.get("columns")? {
            Value::Null => Columns::Json,
            Value::Array(names) => {
                let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                // Earlier versions kept names that columns shared.
                Columns::Csv(distinct_names(names.collect::<Option<_>>()?).0)
            }
            _ => return None,
        };
        let keys = KeyColumns::from_json(object.get("key")?, &columns)?;
        Some(Self { columns, keys })
    }
}

/// How a table of a directory is opened to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    /// As it is, within the memory that it was made for.
    AsIs,
    /// As it is, within so much memory.
    Within(u64),
    /// As it was at a checkpoint of this number.
    At(u64),
}

/// A table of a directory, opened to be read.
pub(crate) fn open(
    directory: &Path,
    table: &str,
    reading: Reading,
    ui: &Ui,
) -> Outcome<(Db, Table, Description)> {
    let db = database(directory, ui)?;
    let (rows, description) = self::table(&db, directory, table, reading)?;
    Ok((db, rows, description))
}

/// A table of the database of a directory, opened to be read.
pub(crate) fn table(
    db: &Db,
    directory: &Path,
    table: &str,
    reading: Reading,
) -> Outcome<(Table, Description)> {
    let rows = match (db.engine(table), reading) {
        (Some(Engine::Tree), Reading::Within(_)) => {
            return Err(Failure::Usage(
                "--memory-budget is of hash tables: a tree table is read where it lies".to_owned(),
            ));
        }
        (Some(Engine::Tree), Reading::At(_)) => {
            return Err(Failure::Usage(
                "--checkpoint is of hash tables: a tree table is as its last commit left it"
                    .to_owned(),
            ));
        }
        (_, Reading::AsIs) => db.table(table),
        (_, Reading::Within(budget)) => db
            .hash_table_options(table)
            .and_then(|made_with| db.hash_table_with(table, made_with.memory_budget(budget)))
            .map(Table::from),
        (_, Reading::At(number)) => db.hash_table_view(table, number).map(Table::from),
    };
    let rows = rows.map_err(|error| explained(directory, table, error))?;
    let description = Description::read(db, table)?.unwrap_or_else(Description::entries);
    Ok((rows, description))
}

/// The failure of a table that does not open: which checkpoint does, and by which command.
pub(crate) fn explained(directory: &Path, table: &str, error: Error) -> Failure {
    let Error::HashEngine { cause, .. } = &error else { return error.into() };
    let list = format!("sapwood checkpoints {} --table {table}", directory.display());
    match cause {
        HashEngineError::CheckpointDamaged { number, cause, opens } => Failure::Failed(format!(
            "table `{table}`: checkpoint {number} cannot be opened: {cause}; bring the file back \
             from a copy, look at the one before with --checkpoint {opens}, or go on from it: \
             `{list} --go-back {opens}`"
        )),
        HashEngineError::Corrupt { .. } => Failure::Failed(format!(
            "table `{table}`: {cause}; bring the file back from a copy, or see which checkpoints \
             open: `{list}`"
        )),
        _ => error.into(),
    }
}

/// The database in a directory, to be read: others may read it at the same time, and leave to write
/// is not needed.
pub(crate) fn database(directory: &Path, ui: &Ui) -> Outcome<Db> {
    expect_database(directory)?;
    opened(ui, DbOptions::default(), |options| Db::open_read_only_with(directory, options))
}

/// The same, to be changed.
pub(crate) fn database_to_change(directory: &Path, ui: &Ui) -> Outcome<Db> {
    expect_database(directory)?;
    opened(ui, DbOptions::default(), |options| Db::open_with(directory, options))
}

/// Opens a database, and shows how far it has come where its log is long.
pub(crate) fn opened(
    ui: &Ui,
    options: DbOptions,
    open: impl FnOnce(DbOptions) -> sapwood::Result<Db>,
) -> Outcome<Db> {
    let bar = ui.progress_bytes("reading the log", 0);
    let shown = bar.clone();
    let opened = open(options.on_recovery(move |progress| {
        if progress.all_bytes >= SHOWN_BYTES {
            shown.set_length(progress.all_bytes);
            shown.set_position(progress.bytes);
        }
    }));
    bar.finish_and_clear();
    let db = opened?;
    if let Some(cut_off) = db.stats().log.and_then(|log| log.cut_off) {
        ui.notice(format_args!(
            "{cut_off}: a crash came while it was written, and it was never said to last"
        ));
    }
    Ok(db)
}

/// Bytes of a log that take so long that a bar is worth its while.
const SHOWN_BYTES: u64 = 64 << 20;

/// Whether a directory holds a database.
pub(crate) fn is_database(directory: &Path) -> bool {
    // The second is what a pool of trees alone has.
    directory.join("tables").is_dir() || directory.join("heap").is_file()
}

/// Looking must not make one.
pub(crate) fn expect_database(directory: &Path) -> Outcome {
    if !is_database(directory) {
        return Err(Failure::Failed(format!(
            "{} is a directory that holds no database; `sapwood load FILE --engine hash --dir {}` makes one",
            directory.display(),
            directory.display()
        )));
    }
    Ok(())
}

/// A directory that a load fills: with all of a file, or it is as it was.
///
/// Rows go into a table without a checkpoint. [`publish`](Self::publish) says how they are to be
/// read and takes one; [`undo`](Self::undo) takes back what was made on the way. What a process
/// that was killed between the two has left holds no rows, and the next load takes it over.
#[derive(Debug)]
pub(crate) struct Filling {
    db: Db,
    folders: Folders,
    table: String,
    description: Description,
    /// The description of the table before the load, if it existed.
    before: Option<Description>,
    had_table: bool,
    had_descriptions: bool,
    /// From the moment on at which the description may be written.
    is_published: bool,
}

/// The contents of a table before a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    Rows,
}

impl Filling {
    /// Opens a directory, after making it if it is not there, and the table if it is there with the
    /// same columns.
    pub(crate) fn begin(
        directory: &Path,
        table: &str,
        description: Description,
    ) -> Outcome<(Self, Option<Table>)> {
        if table == COLUMNS_TABLE {
            return Err(Failure::Usage(format!(
                "table `{COLUMNS_TABLE}` describes the others; choose another name"
            )));
        }
        let folders = Folders::before(directory);
        let db = match Db::open_with(directory, DbOptions::default().without_log()) {
            Ok(db) => db,
            Err(error) => {
                // Another process that has it open may have made it.
                if !matches!(error, Error::DirectoryInUse { .. }) {
                    folders.remove_files();
                    folders.remove_folders();
                }
                return Err(error.into());
            }
        };
        let filling = Self {
            had_table: db.engine(table).is_some(),
            had_descriptions: db.engine(COLUMNS_TABLE).is_some(),
            db,
            folders,
            table: table.to_owned(),
            description,
            before: None,
            is_published: false,
        };
        match filling.fitting_table() {
            Ok((rows, before)) => Ok((Self { before, ..filling }, rows)),
            Err(failure) => Err(filling.undo_after(failure)),
        }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// The table if rows of these columns can go into it, and how its rows are read.
    fn fitting_table(&self) -> Outcome<(Option<Table>, Option<Description>)> {
        let Self { db, table, .. } = self;
        let rows = match db.engine(table) {
            Some(_) => Some(db.table(table)?),
            None => None,
        };
        let before = Description::read(db, table)?;
        let directory = self.folders.directory.display();
        // Only a table without a row may get other columns.
        let has_rows = match (&rows, &before) {
            (Some(_), Some(before)) if *before == self.description => false,
            (Some(rows), _) => !rows.is_empty()?,
            (None, _) => false,
        };
        match &before {
            Some(before) if has_rows => Err(Failure::Failed(format!(
                "table {} of {directory} was loaded with other columns, by --key {}; load into another --table",
                quoted(table),
                before.keys
            ))),
            None if has_rows => Err(Failure::Failed(format!(
                "table {} of {directory} was not made by `sapwood load`; load into another --table",
                quoted(table),
            ))),
            _ => Ok((rows, before)),
        }
    }

    /// Makes the rows last. They are described first, so that no row is without a description.
    pub(crate) fn publish(&mut self) -> Outcome {
        self.describe()?;
        Ok(self.db.clone().close()?)
    }

    /// Says how the rows are to be read, before they are there.
    pub(crate) fn describe(&mut self) -> Outcome {
        let is_described = std::mem::replace(&mut self.is_published, true);
        if !is_described && self.before.as_ref() != Some(&self.description) {
            self.description.keep(&self.db, &self.table)?;
        }
        Ok(())
    }

    /// [`undo`](Self::undo), and what is to be said then.
    pub(crate) fn undo_after(self, failure: Failure) -> Failure {
        let directory = self.folders.directory.clone();
        let Err(remains) = self.undo() else {
            return failure;
        };
        let remains = match remains {
            Failure::Failed(why) => why,
            other => format!("{other:?}"),
        };
        let more = |why: String| {
            format!("{why}; {} could not be tidied up: {remains}", directory.display())
        };
        match failure {
            Failure::Failed(why) => Failure::Failed(more(why)),
            Failure::Usage(why) => Failure::Usage(more(why)),
            Failure::Interrupted(done) => Failure::Interrupted(more(done)),
            other @ (Failure::OutputClosed | Failure::Said) => other,
        }
    }

    /// Takes back what was made since [`begin`](Self::begin). No handle of the table may be in use.
    fn undo(self) -> Outcome {
        let Self { db, table, .. } = &self;
        if !self.had_table && db.engine(table).is_some() {
            db.drop_table(table)?;
        }
        match (self.had_descriptions, &self.before) {
            (false, _) if db.engine(COLUMNS_TABLE).is_some() => db.drop_table(COLUMNS_TABLE)?,
            (false, _) => {}
            (true, before) if self.is_published => match before {
                Some(before) => before.keep(db, table)?,
                None => {
                    let descriptions = db.hash_table(COLUMNS_TABLE)?;
                    descriptions.remove(table.as_bytes())?;
                    descriptions.checkpoint(Cut::Full)?;
                }
            },
            (true, _) => {}
        }
        // While the directory is locked, so that these are not those of another process.
        self.folders.remove_files();
        let Self { db, folders, .. } = self;
        drop(db);
        folders.remove_folders();
        Ok(())
    }
}

/// The parts of a database's directory that opening it created.
#[derive(Debug)]
struct Folders {
    directory: PathBuf,
    /// The directory and those that it lies in, the innermost first.
    made: Vec<PathBuf>,
    makes_tables: bool,
    makes_trees: bool,
    makes_log: bool,
    makes_lock: bool,
}

impl Folders {
    /// To be asked before the directory is opened.
    fn before(directory: &Path) -> Self {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = directory.ancestors().take_while(is_missing).map(Path::to_owned).collect();
        Self {
            makes_tables: !directory.join("tables").exists(),
            makes_trees: !directory.join("trees").exists(),
            makes_log: !directory.join("log").exists(),
            makes_lock: !directory.join(".lock").exists(),
            directory: directory.to_owned(),
            made,
        }
    }

    /// No folder of tables is removed that is not empty: what others have put there meanwhile stays.
    /// The log and the pool of trees are those of the database which this made, and which no other has opened.
    fn remove_files(&self) {
        if self.makes_trees {
            let _ = fs::remove_dir_all(self.directory.join("trees"));
        }
        if self.makes_log {
            let _ = fs::remove_dir_all(self.directory.join("log"));
        }
        if self.makes_tables {
            let _ = fs::remove_dir(self.directory.join("tables"));
        }
        if self.makes_lock {
            let _ = fs::remove_file(self.directory.join(".lock"));
        }
    }

    fn remove_folders(&self) {
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}
