//! Tables of a directory: how to read their rows, and how a load fills one.
//!
//! Tables with a schema say themselves which columns their rows have. Earlier versions of `sapwood load` kept rows as
//! text, and `sapwood import` does: there a table of the directory, [`COLUMNS_TABLE`], says of each of the others which
//! columns its rows have and which of them make the key, as a JSON object:
//! `{"columns": ["carrier", "flight"], "key": [["carrier", "str"], ["flight", "int"]]}`, where the
//! columns of JSON lines are `null`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sapwood::schema::{RowFormat, Schema};
use sapwood::sql::{Catalog, TableSummary, Tables};
use sapwood::{AnyTable, Cut, Db, DbOptions, Engine, Error, HashEngineError, HashTableOptions};
use serde_json::{Value, json};

use crate::rows::columns::Columns;
use crate::rows::key_columns::KeyColumns;
use sapwood::files::distinct_names;

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

    /// Of rows of a schema.
    pub(crate) fn typed(schema: &Schema) -> Self {
        let format = Arc::new(RowFormat::new(schema.clone()));
        Self { keys: KeyColumns::of_schema(&format), columns: Columns::Typed(format) }
    }

    /// Names of columns and the key, as they are kept.
    pub(crate) fn as_json(&self) -> Value {
        let columns = match &self.columns {
            Columns::Csv(names) => json!(names),
            Columns::Json | Columns::Entries | Columns::Typed(_) => Value::Null,
        };
        json!({ "columns": columns, "key": self.keys.as_json() })
    }

    /// The columns as schemas write them: of CSV, text.
    pub(crate) fn to_text(&self) -> String {
        let columns = match &self.columns {
            Columns::Csv(names) => names.iter().map(|name| format!("{name}:text")).collect(),
            _ => vec!["row:text".to_owned()],
        };
        format!("{}, key({})", columns.join(", "), self.keys)
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
) -> Outcome<(Db, AnyTable, Description)> {
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
) -> Outcome<(AnyTable, Description)> {
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
            .map(AnyTable::from),
        (_, Reading::At(number)) => db.hash_table_view(table, number).map(AnyTable::from),
    };
    let rows = rows.map_err(|error| explained(directory, table, error))?;
    let description = match rows.schema() {
        Some(schema) => Description::typed(schema),
        None => Description::read(db, table)?.unwrap_or_else(Description::entries),
    };
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

/// The tables of a database, but the one that describes others.
pub(crate) fn tables(db: &Db) -> Outcome<Vec<TableSummary>> {
    let mut tables = Tables::of(db).tables().map_err(Failure::Failed)?;
    tables.retain(|table| table.name != COLUMNS_TABLE);
    for table in &mut tables {
        // Rows that are kept as text have the columns of their file.
        if matches!(db.schema(&table.name), Ok(None))
            && let Some(description) = Description::read(db, &table.name)?
        {
            table.columns = description.to_text();
        }
    }
    Ok(tables)
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
    opened(ui, DbOptions::default().lazy(), |options| Db::open_with(directory, options))
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
///
/// # Errors
/// An error of the system that proves neither.
pub(crate) fn is_database(directory: &Path) -> Outcome<bool> {
    let look = |name: &str| {
        let path = directory.join(name);
        looked_at(&path).map_err(|cause| {
            Failure::Failed(format!("{} cannot be looked at: {cause}", path.display()))
        })
    };
    // The second is what a pool of trees alone has.
    Ok(look("tables")?.is_some_and(|about| about.is_dir())
        || look("heap")?.is_some_and(|about| about.is_file()))
}

/// The file or folder that a path leads to; `None` where nothing is there.
fn looked_at(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match path.metadata() {
        Err(cause)
            if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        about => about.map(Some),
    }
}

/// Looking must not make one.
pub(crate) fn expect_database(directory: &Path) -> Outcome {
    if is_database(directory)? {
        return Ok(());
    }
    let path = directory.display();
    let about = looked_at(directory)
        .map_err(|cause| Failure::Failed(format!("{path} cannot be looked at: {cause}")))?;
    Err(Failure::Failed(match about {
        None => format!("there is no directory {path}; `sapwood load FILE --dir {path}` makes one"),
        Some(about) if about.is_dir() => format!(
            "{path} is a directory that holds no database; `sapwood load FILE --dir {path}` makes one"
        ),
        Some(_) => format!(
            "{path} is a file, and the directory of a database is expected; `sapwood describe {path}` shows the \
             columns of a file"
        ),
    }))
}

/// A directory that a load fills: with all of a file, or it is as it was.
///
/// Rows go into a table without a checkpoint, or into one that counts once it has all. [`publish`](Self::publish) takes one; [`undo`](Self::undo)
/// takes back what was made on the way. What a process that was killed between the two has left holds no
/// rows, and the next load takes it over.
#[derive(Debug)]
pub(crate) struct Filling {
    db: Db,
    folders: Folders,
    table: String,
    had_table: bool,
    /// Whether the rows last already.
    is_lasting: bool,
}

/// The contents of a table before a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    Rows,
}

impl Filling {
    /// Opens a directory, after making it if it is not there.
    pub(crate) fn begin(directory: &Path, table: &str) -> Outcome<Self> {
        if table == COLUMNS_TABLE {
            return Err(Failure::Usage(format!(
                "table `{COLUMNS_TABLE}` describes the others; choose another name"
            )));
        }
        let folders = Folders::before(directory);
        let db = match Db::open_with(directory, DbOptions::default().without_log()) {
            Ok(db) => db,
            Err(error) => {
                // Another process may have made it, and may have it open.
                let is_in_use = matches!(error, Error::DirectoryInUse { .. });
                if !is_in_use && !folders.has_tables() {
                    folders.remove_files();
                    folders.remove_folders();
                }
                return Err(error.into());
            }
        };
        let had_table = db.engine(table).is_some();
        Ok(Self { db, folders, table: table.to_owned(), had_table, is_lasting: false })
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// The table that is there, and whether it has rows. A table without rows may be one that a killed load has left.
    ///
    /// # Errors
    /// For rows that have no typed columns.
    pub(crate) fn table(&self) -> Outcome<Option<(AnyTable, Held)>> {
        let Self { db, table, .. } = self;
        if db.engine(table).is_none() {
            return Ok(None);
        }
        let rows = db.table(table)?;
        if rows.is_empty()? {
            return Ok(Some((rows, Held::Nothing)));
        }
        if rows.schema().is_some() {
            return Ok(Some((rows, Held::Rows)));
        }
        let (directory, name) = (self.folders.directory.display(), quoted(table));
        Err(Failure::Failed(match Description::read(db, table)? {
            Some(description) => format!(
                "table {name} of {directory} keeps its rows as text, as earlier versions loaded them; to go on with \
                 typed columns, take them over: `sapwood export {directory} {table} --to {table}.csv`, then `sapwood \
                 load {table}.csv --key {} --dir {directory} --table NEW`",
                description.keys.to_spec()
            ),
            None => format!(
                "table {name} of {directory} holds bytes, and no rows of columns; load into another --table"
            ),
        }))
    }

    /// Notes that the rows last: they were [loaded](sapwood::BulkLoad) into a checkpoint.
    pub(crate) fn note_lasting(&mut self) {
        self.is_lasting = true;
    }

    /// Makes the rows last.
    pub(crate) fn publish(&mut self) -> Outcome {
        match self.is_lasting {
            true => Ok(()),
            false => Ok(self.db.clone().close()?),
        }
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
        // While the directory is locked. Tables that another process made, after this one had looked what is there,
        // stay with all that they need.
        let is_empty = db.table_names().is_empty();
        if is_empty {
            self.folders.remove_files();
        }
        let Self { db, folders, .. } = self;
        drop(db);
        if is_empty {
            folders.remove_folders();
        }
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
        // A file that cannot be looked at may be there, and is left.
        let is_absent = |path: &Path| matches!(looked_at(path), Ok(None));
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && is_absent(path);
        let made = directory.ancestors().take_while(is_missing).map(Path::to_owned).collect();
        Self {
            makes_tables: is_absent(&directory.join("tables")),
            makes_trees: is_absent(&directory.join("trees")),
            makes_log: is_absent(&directory.join("log")),
            makes_lock: is_absent(&directory.join(".lock")),
            directory: directory.to_owned(),
            made,
        }
    }

    /// True where there may be folders of tables.
    fn has_tables(&self) -> bool {
        match fs::read_dir(self.directory.join("tables")) {
            Ok(mut tables) => tables.next().is_some(),
            Err(cause) => cause.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Only of a database that holds no tables: what opening it made, and the empty table of schemas.
    fn remove_files(&self) {
        if self.makes_trees {
            let _ = fs::remove_dir_all(self.directory.join("trees"));
        }
        if self.makes_log {
            let _ = fs::remove_dir_all(self.directory.join("log"));
        }
        if self.makes_tables {
            let _ = fs::remove_dir_all(self.directory.join("tables"));
        }
        if self.makes_lock {
            let _ = fs::remove_file(self.directory.join(".lock"));
            let _ = fs::remove_file(self.directory.join(".readers"));
        }
    }

    fn remove_folders(&self) {
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of links: the system cannot tell what is there.
    #[test]
    fn what_cannot_be_looked_at_is_neither_absent_nor_removed() {
        let folder = tempfile::TempDir::new().expect("a directory for the test");
        let directory = folder.path();
        for name in ["tables", "trees", "log", ".lock"] {
            std::os::unix::fs::symlink(name, directory.join(name)).expect("a link");
        }
        let refused = is_database(directory).expect_err("it may be one");
        assert!(matches!(refused, Failure::Failed(why) if why.contains("tables")));
        let folders = Folders::before(directory);
        assert!(folders.has_tables());
        folders.remove_files();
        assert_eq!(fs::read_dir(directory).expect("read").count(), 4);
    }

    /// A load looks what is there before it has the directory to itself.
    #[test]
    fn what_another_process_made_meanwhile_stays() {
        let folder = tempfile::TempDir::new().expect("a directory for the test");
        let directory = folder.path().join("outer/database");
        let folders = Folders::before(&directory);
        {
            let other = Db::open(&directory).expect("a database");
            let tree = other.create_tree_table("tree", Default::default()).expect("a table");
            tree.put(b"k", b"v").expect("there is room");
            let table = other.create_hash_table("other", Default::default()).expect("a table");
            table.put(b"k", b"v").expect("there is room");
            other.close().expect("it lasts");
        }
        let db = Db::open_with(&directory, DbOptions::default().without_log()).expect("it opens");
        db.sql("create table rows (k text primary key)").expect("a table");
        Filling { db, folders, table: "rows".to_owned(), had_table: false, is_lasting: false }
            .undo()
            .expect("undone");
        let db = Db::open(&directory).expect("it is there");
        assert_eq!(db.table_names(), ["other", "tree"]);
        for name in ["other", "tree"] {
            let value = db.table(name).expect("it opens").get(b"k").expect("it is read");
            assert_eq!(value.as_deref(), Some(&b"v"[..]), "{name}");
        }
    }
}
