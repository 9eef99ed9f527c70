//! The tables that statements of SQL can name on the command line: files, and tables of directories.
//!
//! | a statement names | and means |
//! |---|---|
//! | `'flights.csv.zst'` | that file |
//! | `'data'.flights`, `data.flights` | a table of that directory |
//! | `'data'`, `data` | the only table of that directory, or `rows` |
//! | `flights` | a table of the directory of `--dir`, or of the database of a shell |
//!
//! Directories are opened once, to be read, or to be changed if a statement changes tables.

mod text_table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sapwood::files::ReadOptions;
use sapwood::schema::{Schema, Type};
use sapwood::sql::{
    Answer, Catalog, ErrorKind, Files, Filling, Options, Outcome as Done, Session, Source,
    SourceResult, Statement, TableName, TableSummary, Tables,
};
use sapwood::{Db, DbOptions};

use crate::rows::kept::{self, Description};
use crate::rows::source;
use crate::terminal::exit::{COLUMNS_TABLE, Failure, Outcome};
use crate::terminal::ui::Ui;
use text_table::TextTable;

/// Whether directories are opened to be read or to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Change,
}

/// The tables that need no more than their names.
#[derive(Debug, Clone)]
pub(crate) enum Home {
    None,
    /// Those of a directory.
    Directory(PathBuf),
    /// Those of a database that is open, and the directory that it has.
    Open(Db, Option<PathBuf>),
    /// Those of a server, which statements do not reach.
    Server,
}

/// What statements can name.
pub(crate) struct Named<'a> {
    ui: &'a Ui,
    home: Home,
    access: Access,
    files: Files<'a>,
    directories: Mutex<HashMap<PathBuf, Db>>,
}

/// What a name stands for.
enum Place {
    File(PathBuf),
    Table(Db, String),
}

impl<'a> Named<'a> {
    pub(crate) fn new(home: Home, access: Access, options: ReadOptions, ui: &'a Ui) -> Named<'a> {
        let has_shell = matches!(home, Home::Open(..) | Home::Server);
        let files = Files::new(options).opened_by(move |path, options| {
            if path == Path::new("-") && has_shell {
                return Err("standard input has the lines of the shell: name a file".to_owned());
            }
            let file = source::open(path, options, ui).map_err(said)?;
            for notice in file.notices() {
                ui.notice(format_args!("{}: {notice}", path.display()));
            }
            Ok(file)
        });
        Named { ui, home, access, files, directories: Mutex::default() }
    }

    /// Lets `copy ... to` replace files that are there.
    pub(crate) fn overwriting(self, overwrite: bool) -> Self {
        match overwrite {
            true => Named { files: self.files.replacing(), ..self },
            false => self,
        }
    }

    /// Lets `copy ... to` replace what earlier statements wrote.
    pub(crate) fn behind(self, earlier: &Files<'_>) -> Self {
        Named { files: self.files.behind(earlier), ..self }
    }

    /// Executes a statement.
    pub(crate) fn execute(&self, statement: &Statement, options: Options<'_>) -> Outcome<Done> {
        Session::new(self, options).execute(statement).map_err(|error| match error.kind() {
            ErrorKind::Cancelled => Failure::Interrupted(error.what().to_owned()),
            ErrorKind::Syntax | ErrorKind::Unsupported | ErrorKind::Meaning => {
                Failure::Usage(error.to_string())
            }
            ErrorKind::Source if self.ui.interrupt.asked() => {
                Failure::Interrupted(error.what().to_owned())
            }
            _ => Failure::Failed(error.to_string()),
        })
    }

    /// The records of files that were left out.
    pub(crate) fn skipped(&self) -> u64 {
        self.files.left_out()
    }

    /// Ends changes of directories: they last, and a later opening is quick.
    pub(crate) fn close(self) -> Outcome {
        let directories = self.directories.into_inner().unwrap_or_else(PoisonError::into_inner);
        for db in directories.into_values() {
            match self.access {
                Access::Read => drop(db),
                Access::Change => db.close()?,
            }
        }
        Ok(())
    }

    fn place(&self, name: &TableName) -> SourceResult<Place> {
        let parts = &name.parts[..];
        if let [one] = parts
            && !name.is_file
            && !matches!(self.home, Home::None)
        {
            return Ok(Place::Table(self.home_database()?, one.clone()));
        }
        let joined = PathBuf::from(parts.join("."));
        if let [folders @ .., table] = parts
            && !folders.is_empty()
            && Path::new(&folders.join(".")).is_dir()
        {
            let db = self.directory(Path::new(&folders.join(".")))?;
            return Ok(Place::Table(db, table.clone()));
        }
        if joined.is_dir() && (!name.is_file || kept::is_database(&joined).map_err(said)?) {
            let table = self.only_table(&joined)?;
            return Ok(Place::Table(self.directory(&joined)?, table));
        }
        // A table in the quotes of a file: 'DIR.table'.
        if let [one] = parts
            && let Some((folder, table)) = one.rsplit_once('.')
            && !table.contains(std::path::is_separator)
            && !joined.exists()
            && kept::is_database(Path::new(folder)).map_err(said)?
        {
            return Ok(Place::Table(self.directory(Path::new(folder))?, table.to_owned()));
        }
        if name.is_file || joined.exists() {
            return Ok(Place::File(joined));
        }
        Err(format!(
            "no table is called `{name}`: a file stands in quotes ('flights.csv'), a table of a directory is \
             DIR.table, and with --dir DIR its name is enough"
        ))
    }

    /// The database whose tables need no more than their names.
    fn home_database(&self) -> SourceResult<Db> {
        match &self.home {
            Home::Directory(path) => self.directory(path),
            Home::Open(db, _) => Ok(db.clone()),
            Home::None => Err("--dir DIR is needed: it says whose tables to show".to_owned()),
            Home::Server => Err(
                "a statement over files does not reach the tables of a server, which executes those without files \
                 (`SW.SQL`): stop it and open its directory (`sapwood shell DIR`), or ask files alone"
                    .to_owned(),
            ),
        }
    }

    /// The table that a directory alone stands for.
    fn only_table(&self, directory: &Path) -> SourceResult<String> {
        let db = self.directory(directory)?;
        let mut names = db.table_names();
        names.retain(|name| name != COLUMNS_TABLE);
        match &names[..] {
            [one] => Ok(one.clone()),
            [] => Err(format!("{} has no tables", directory.display())),
            names if names.iter().any(|name| name == "rows") => Ok("rows".to_owned()),
            names => Err(format!(
                "{} has several tables: write '{0}'.{}, or {}",
                directory.display(),
                names[0],
                names[1..].join(", "),
            )),
        }
    }

    fn directory(&self, path: &Path) -> SourceResult<Db> {
        if let Home::Open(db, Some(home)) = &self.home
            && is_same(home, path)
        {
            return Ok(db.clone());
        }
        let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(db) = directories.get(path) {
            return Ok(db.clone());
        }
        let opened = match self.access {
            Access::Read if !path.exists() => {
                return Err(format!(
                    "there is no directory {}: a statement that makes a table makes it",
                    path.display()
                ));
            }
            Access::Read => kept::database(path, self.ui),
            Access::Change => kept::opened(self.ui, DbOptions::default().lazy(), |options| {
                Db::open_with(path, options)
            }),
        };
        let db = opened.map_err(said)?;
        directories.insert(path.to_owned(), db.clone());
        Ok(db)
    }

    /// A table to be changed.
    fn table(&self, name: &TableName) -> SourceResult<(Db, TableName)> {
        match self.place(name)? {
            Place::Table(db, table) => Ok((db, TableName { parts: vec![table], is_file: false })),
            Place::File(path) => Err(format!(
                "{} is a file: tables are made in a directory, by --dir DIR",
                path.display()
            )),
        }
    }
}

impl Catalog for Named<'_> {
    fn open(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        match self.place(name)? {
            Place::File(path) => self.files.source(&path).map(|source| source as _),
            Place::Table(db, table) => {
                if let Some(texts) = text_table(&db, &table)? {
                    return Ok(Box::new(texts));
                }
                Tables::of(&db).source(&table).map(|source| source as _)
            }
        }
    }

    fn open_settled(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        let Place::File(path) = self.place(name)? else { return self.open(name) };
        self.files.settled_source(&path).map(|source| source as _)
    }

    fn widen(&self) -> SourceResult<bool> {
        self.files.widen()
    }

    fn tables(&self) -> SourceResult<Vec<TableSummary>> {
        kept::tables(&self.home_database()?).map_err(said)
    }

    fn create(&self, name: &TableName, schema: Schema, engine: Option<&str>) -> SourceResult<()> {
        let (db, name) = self.table(name)?;
        Tables::of(&db).create(&name, schema, engine)
    }

    fn create_filled(
        &self,
        name: &TableName,
        schema: Schema,
        engine: Option<&str>,
        fill: &mut Filling<'_>,
    ) -> SourceResult<()> {
        let (db, name) = self.table(name)?;
        Tables::of(&db).create_filled(&name, schema, engine, fill)
    }

    fn drop_table(&self, name: &TableName) -> SourceResult<()> {
        let (db, name) = self.table(name)?;
        Tables::of(&db).drop_table(&name)
    }

    fn add_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        let (db, name) = self.table(name)?;
        Tables::of(&db).add_column(&name, column, kind)
    }

    fn widen_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        let (db, name) = self.table(name)?;
        Tables::of(&db).widen_column(&name, column, kind)
    }

    fn write(&self, answer: &Answer, file: &str) -> SourceResult<u64> {
        self.files.write(answer, Path::new(file))
    }
}

/// A table whose rows are kept as text; none if it is another.
fn text_table(db: &Db, name: &str) -> SourceResult<Option<TextTable>> {
    if !matches!(db.schema(name), Ok(None)) {
        return Ok(None);
    }
    let Some(description) = Description::read(db, name).map_err(said)? else { return Ok(None) };
    let table = db.table(name).map_err(|error| error.to_string())?;
    Ok(TextTable::new(table, &description.columns))
}

/// Whether two paths lead to one directory.
fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// The words of a failure.
fn said(failure: Failure) -> String {
    match failure {
        Failure::Usage(what) | Failure::Failed(what) | Failure::Interrupted(what) => what,
        Failure::Said | Failure::OutputClosed => "it failed".to_owned(),
    }
}
