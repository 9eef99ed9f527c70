//! Files that statements name, beside the tables of a database.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sapwood_files::{Existing, FileSink, FileSource, FileWriter, Format, ReadOptions};
use sapwood_sql::{
    Answer, Catalog, Filling, Request, Source, SourceResult, TableName, TableSummary,
};

use super::Tables;
use crate::Db;
use crate::schema::{Scan, Schema, SourceColumn, Type};

/// Opens a file by its name.
type Open<'a> = dyn Fn(&Path, &ReadOptions) -> SourceResult<FileSource> + Send + Sync + 'a;

/// Files that statements read and write. Each is opened once, and its types widen where a statement meets values that
/// they lack.
///
/// ```
/// use sapwood::files::ReadOptions;
/// use sapwood::schema::Type;
/// use sapwood::sql::{Files, FilesAndTables, Options, Session, parse};
///
/// # let folder = tempfile::tempdir().expect("a directory for the example");
/// # let path = folder.path().join("a.csv");
/// std::fs::write(&path, "code,n\n007,1\n").expect("room");
/// let options = ReadOptions { types: vec![("n".into(), Type::F64)], ..ReadOptions::default() };
/// let db = sapwood::Db::in_memory();
/// let catalog = FilesAndTables::of(&db, Files::new(options));
/// let statement = &parse(&format!("select code, n from '{}'", path.display()))?[0];
/// let answer = Session::new(&catalog, Options::default()).execute(statement)?;
/// # assert!(matches!(answer, sapwood::sql::Outcome::Rows(rows) if rows.columns()[1].kind == Type::F64));
/// # Ok::<(), sapwood::sql::Error>(())
/// ```
pub struct Files<'a> {
    options: ReadOptions,
    open: Box<Open<'a>>,
    sources: Mutex<HashMap<PathBuf, Arc<FileSource>>>,
    /// Files all of whose values have been looked at.
    settled: Mutex<HashSet<PathBuf>>,
    existing: Existing,
    written: Arc<Mutex<HashSet<PathBuf>>>,
}

impl fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Default for Files<'_> {
    fn default() -> Self {
        Files::new(ReadOptions::default())
    }
}

impl<'a> Files<'a> {
    /// Files that are read with these options.
    ///
    /// ```
    /// use sapwood::files::ReadOptions;
    /// let files = sapwood::sql::Files::new(ReadOptions { delimiter: Some(b';'), ..ReadOptions::default() });
    /// assert_eq!(files.left_out(), 0);
    /// ```
    pub fn new(options: ReadOptions) -> Files<'a> {
        Files {
            options,
            open: Box::new(|path, options| FileSource::open(path, options).map_err(words)),
            sources: Mutex::default(),
            settled: Mutex::default(),
            existing: Existing::Keep,
            written: Arc::default(),
        }
    }

    /// Opens files by `open`, which may know of further ones, as standard input.
    ///
    /// ```
    /// use sapwood::files::FileSource;
    /// use sapwood::sql::Files;
    ///
    /// let files = Files::default().opened_by(|path, options| FileSource::read(path, &b"a\n7\n"[..], options).map_err(|error| error.to_string()));
    /// assert_eq!(files.source("-".as_ref()).expect("rows").columns()[0].name, "a");
    /// ```
    #[must_use]
    pub fn opened_by(
        mut self,
        open: impl Fn(&Path, &ReadOptions) -> SourceResult<FileSource> + Send + Sync + 'a,
    ) -> Files<'a> {
        self.open = Box::new(open);
        self
    }

    /// Lets `copy ... to` replace files that are there. By default it replaces those alone that earlier statements
    /// wrote.
    ///
    /// ```
    /// let files = sapwood::sql::Files::default().replacing();
    /// # assert_eq!(files.left_out(), 0);
    /// ```
    #[must_use]
    pub fn replacing(mut self) -> Files<'a> {
        self.existing = Existing::Replace;
        self
    }

    /// Lets `copy ... to` replace files that statements over `earlier` ones wrote.
    ///
    /// ```
    /// use sapwood::sql::Files;
    /// let files = Files::default();
    /// let later = Files::default().behind(&files);
    /// # assert_eq!(later.left_out(), 0);
    /// ```
    #[must_use]
    pub fn behind(mut self, earlier: &Files<'_>) -> Files<'a> {
        self.written = Arc::clone(&earlier.written);
        self
    }

    /// The rows of a file, or of the files of a pattern or a folder.
    ///
    /// # Errors
    /// Why it cannot be read.
    ///
    /// ```
    /// let error = sapwood::sql::Files::default().source("none.csv".as_ref()).map(drop).unwrap_err();
    /// assert_eq!(error, "none.csv cannot be read: No such file or directory");
    /// ```
    pub fn source(&self, path: &Path) -> SourceResult<Box<dyn Source>> {
        self.file(path).map(|file| Box::new(FileRows(file)) as _)
    }

    /// The rows of a file whose types are those of all rows.
    ///
    /// # Errors
    /// Why it cannot be read.
    ///
    /// ```
    /// assert!(sapwood::sql::Files::default().settled_source("none.csv".as_ref()).is_err());
    /// ```
    pub fn settled_source(&self, path: &Path) -> SourceResult<Box<dyn Source>> {
        if !locked(&self.settled).insert(path.to_owned()) {
            return self.source(path);
        }
        let settled = Arc::new(self.file(path)?.reopen().map_err(words)?);
        locked(&self.sources).insert(path.to_owned(), Arc::clone(&settled));
        Ok(Box::new(FileRows(settled)))
    }

    fn file(&self, path: &Path) -> SourceResult<Arc<FileSource>> {
        if let [scheme, _] = &path.to_string_lossy().split("://").collect::<Vec<_>>()[..]
            && !scheme.is_empty()
        {
            return Err(format!(
                "`{}` is an address, and files are read from disks alone: fetch it first (`curl -O` for https), and \
                 name the file",
                path.display()
            ));
        }
        let mut sources = locked(&self.sources);
        if let Some(file) = sources.get(path) {
            return Ok(Arc::clone(file));
        }
        let file = (self.open)(path, &self.options)?;
        let file = Arc::new(file);
        sources.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    /// Writes an answer to a file, whose name tells the format: how many rows. The file is there whole or not at all.
    ///
    /// # Errors
    /// Why it cannot be written.
    ///
    /// ```
    /// use sapwood::sql::{Files, Outcome};
    ///
    /// # let folder = tempfile::tempdir().expect("a directory for the example");
    /// # let path = folder.path().join("a.csv");
    /// let Outcome::Rows(answer) = sapwood::Db::in_memory().sql("select 1 as one")? else { unreachable!() };
    /// assert_eq!(Files::default().write(&answer, &path), Ok(1));
    /// assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "one\n1\n");
    /// # Ok::<(), sapwood::sql::Error>(())
    /// ```
    pub fn write(&self, answer: &Answer, path: &Path) -> SourceResult<u64> {
        let existing = match locked(&self.written).contains(path) {
            true => Existing::Replace,
            false => self.existing,
        };
        write(answer, path, existing).map_err(words)?;
        locked(&self.written).insert(path.to_owned());
        Ok(answer.len() as u64)
    }

    /// Gives files of the last statement the types that all their rows have, where it met values that the types of
    /// the first rows lack: whether there were such.
    ///
    /// # Errors
    /// Why a file cannot be read.
    ///
    /// ```
    /// assert_eq!(sapwood::sql::Files::default().widen(), Ok(false));
    /// ```
    pub fn widen(&self) -> SourceResult<bool> {
        let mut is_wider = false;
        for file in locked(&self.sources).values_mut() {
            if file.is_too_narrow() {
                *file = Arc::new(file.reopen().map_err(words)?);
                is_wider = true;
            }
        }
        Ok(is_wider)
    }

    /// The number of records that statements left out, if the options say so.
    ///
    /// ```
    /// assert_eq!(sapwood::sql::Files::default().left_out(), 0);
    /// ```
    pub fn left_out(&self) -> u64 {
        locked(&self.sources).values().map(|file| file.left_out().0).sum()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn words(error: sapwood_files::Error) -> String {
    error.to_string()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(answer: &Answer, path: &Path, existing: Existing) -> sapwood_files::Result<()> {
    let (format, packing) = Format::of_name(path, None)?;
    let sink = FileSink::file(path, packing, existing)?;
    let columns = answer.columns().iter().map(|column| (&column.name[..], &column.kind));
    let mut writer = FileWriter::new(format, columns, sink)?;
    for at in 0..answer.len() {
        let values = answer.row(at);
        let values = values.map_err(|error| sapwood_files::Error::Read(error.what().to_owned()))?;
        writer.write(&values)?;
    }
    writer.finish()
}

/// A file that several statements read.
struct FileRows(Arc<FileSource>);

impl Source for FileRows {
    fn columns(&self) -> &[SourceColumn] {
        self.0.columns()
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn rows_estimate(&self) -> Option<u64> {
        self.0.rows_estimate()
    }

    fn explain(&self, request: &Request) -> String {
        self.0.explain(&request.columns)
    }

    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        self.0.scan(&request.columns, request.with_ids).map_err(words)
    }
}

/// The tables of a database by their names, and files by names in quotes.
///
/// Statements over it read and write any file that the process may: those of others are for [`Tables`], which refuse
/// files.
///
/// ```
/// use sapwood::sql::{Files, FilesAndTables, Options, Session, parse};
///
/// # let folder = tempfile::tempdir().expect("a directory for the example");
/// # let path = folder.path().join("a.csv");
/// # let path = path.display();
/// let db = sapwood::Db::in_memory();
/// let catalog = FilesAndTables::of(&db, Files::default().replacing());
/// let session = Session::new(&catalog, Options::default());
/// for statement in parse(&format!("copy (select 7 as a) to '{path}'; create table t as select * from '{path}'"))? {
///     session.execute(&statement)?;
/// }
/// assert_eq!(db.table_names(), ["t"]);
/// # Ok::<(), sapwood::sql::Error>(())
/// ```
#[derive(Debug)]
pub struct FilesAndTables<'a> {
    tables: Tables<'a>,
    files: Files<'a>,
}

impl<'a> FilesAndTables<'a> {
    /// The tables of a database, and files.
    ///
    /// ```
    /// use sapwood::sql::{Catalog, Files, FilesAndTables};
    /// let db = sapwood::Db::in_memory();
    /// assert!(FilesAndTables::of(&db, Files::default()).tables().is_ok_and(|tables| tables.is_empty()));
    /// ```
    pub fn of(db: &'a Db, files: Files<'a>) -> FilesAndTables<'a> {
        FilesAndTables { tables: Tables::of(db), files }
    }
}

/// The file that a name in quotes stands for.
fn file_of(name: &TableName) -> Option<&Path> {
    match (&name.parts[..], name.is_file) {
        ([file], true) => Some(Path::new(file)),
        _ => None,
    }
}

impl Catalog for FilesAndTables<'_> {
    fn open(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        match file_of(name) {
            Some(file) => self.files.source(file).map(|source| source as _),
            None => self.tables.open(name),
        }
    }

    fn open_settled(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        match file_of(name) {
            Some(file) => self.files.settled_source(file).map(|source| source as _),
            None => self.tables.open(name),
        }
    }

    fn widen(&self) -> SourceResult<bool> {
        self.files.widen()
    }

    fn tables(&self) -> SourceResult<Vec<TableSummary>> {
        self.tables.tables()
    }

    fn create(&self, name: &TableName, schema: Schema, engine: Option<&str>) -> SourceResult<()> {
        self.tables.create(name, schema, engine)
    }

    fn create_filled(
        &self,
        name: &TableName,
        schema: Schema,
        engine: Option<&str>,
        fill: &mut Filling<'_>,
    ) -> SourceResult<()> {
        self.tables.create_filled(name, schema, engine, fill)
    }

    fn drop_table(&self, name: &TableName) -> SourceResult<()> {
        self.tables.drop_table(name)
    }

    fn add_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.tables.add_column(name, column, kind)
    }

    fn widen_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.tables.widen_column(name, column, kind)
    }

    fn write(&self, answer: &Answer, file: &str) -> SourceResult<u64> {
        self.files.write(answer, Path::new(file))
    }
}
