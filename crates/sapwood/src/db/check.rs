//! Checking the files of a database, and looking into its log.

use std::path::Path;
use std::sync::Arc;

use sapwood_disk::Folders;
use sapwood_hashlog::HashLog;
use sapwood_ptree::Pool;
use sapwood_wal::{Inspection, Wal};

use super::{Db, Problem, Slot};
use crate::directory::Directory;
use crate::{DbOptions, Engine, Error, Result, TreeCheck};

/// What checking a directory found ([`Db::check`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DbCheck {
    /// The tables that it has, by name, if it opens.
    pub tables: Vec<CheckedTable>,
    /// What the log says, if its manifest can be read.
    pub log: Option<Inspection>,
    /// What there is of tree tables, if there are some and they open.
    pub trees: Option<TreeCheck>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// A table of a directory that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedTable {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: Engine,
    /// How many entries it has; of a roll-up, facts.
    pub entries: u64,
}

impl Db {
    /// Reads every file of a database that counts, and tells all that is wrong with them: the log with each
    /// of its records, snapshots, checkpoints of hash tables with each page, segments of roll-ups, the heap of the tree tables; at
    /// last it opens the database to be read. Nothing is changed, and all ordered tables must fit in memory.
    ///
    /// A record that a crash cut off at the end of the log is no problem; [`LogInspection::end`](crate::LogInspection::end) says where it ends.
    ///
    /// # Errors
    /// [`Error::DirectoryInUse`]; [`Error::Directory`] where the directory is not there or cannot be read. All
    /// else is in the report.
    ///
    /// ```
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let db = Db::open(path)?;
    /// db.create_ordered_table("sessions", OrderedTableOptions::default())?.put(b"key", b"value")?;
    /// db.close()?;
    /// let check = Db::check(path)?;
    /// assert!(check.problems.is_empty());
    /// assert_eq!((check.tables[0].name.as_str(), check.tables[0].entries), ("sessions", 1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn check(path: impl AsRef<Path>) -> Result<DbCheck> {
        let directory = Directory::open_read_only(path.as_ref())?;
        let mut check =
            DbCheck { tables: Vec::new(), log: None, trees: None, problems: Vec::new() };
        check.log(&directory)?;
        check.hash_tables(&directory)?;
        let is_sound = check.problems.is_empty();
        let pool_path = directory.pool_path();
        match Db::of_directory(directory, &DbOptions::default()) {
            Ok(db) => check.opened(&db, &pool_path),
            Err(Error::Trees { cause, .. }) => {
                check.problems.push(Problem::of_trees(&pool_path, &cause));
            }
            // What is damaged was told in particular.
            Err(error) if is_sound => check.problems.push(Problem::new(path.as_ref(), error)),
            Err(_) => {}
        }
        Ok(check)
    }

    /// Opens the database in folders to read it, and all its tables.
    ///
    /// # Errors
    /// Why it, or one of them, does not open.
    pub(crate) fn expect_opens(path: &Path, folders: Arc<dyn Folders>) -> Result<()> {
        let directory = Directory::open_beside_in(path, folders)?;
        let db = Db::of_directory(directory, &DbOptions::default())?;
        let names = db.stored_names().into_iter();
        // The others are open by then.
        let mut hash = names.filter(|name| db.engine(name) == Some(Engine::Hash));
        hash.try_for_each(|name| db.hash_table(&name).map(drop))
    }

    /// What the log of a database says, as far as it can be read. Another process may have the database open: then
    /// it is as of some moment. Snapshots are not read. `None` where there is no log.
    ///
    /// # Errors
    /// [`Error::Log`] where the manifest of the log is damaged; [`Error::Directory`].
    ///
    /// ```
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// db.create_ordered_table("sessions", OrderedTableOptions::default())?.put(b"key", b"value")?;
    /// let log = Db::inspect_log(directory.path())?.expect("there is one");
    /// assert_eq!((log.frames.creates, log.frames.puts), (1, 1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn inspect_log(path: impl AsRef<Path>) -> Result<Option<Inspection>> {
        let path = path.as_ref().join(crate::directory::LOG);
        let unread = |cause: &std::io::Error| Error::directory(&path, "read", cause);
        if !path.try_exists().map_err(|cause| unread(&cause))? {
            return Ok(None);
        }
        let disk = sapwood_disk::FileDisk::open_unlocked(&path).map_err(|cause| unread(&cause))?;
        let named = |cause| Error::Log { path: path.clone(), cause };
        match Wal::is_on(&disk).map_err(named)? {
            true => Wal::inspect(&disk, false).map(Some).map_err(named),
            false => Ok(None),
        }
    }
}

impl DbCheck {
    fn log(&mut self, directory: &Directory) -> Result<()> {
        let Some(disk) = directory.log_disk_to_read()? else { return Ok(()) };
        let path = directory.log_path();
        let inspected = match Wal::is_on(&*disk) {
            Ok(false) => return Ok(()),
            Ok(true) => Wal::inspect(&*disk, true),
            Err(error) => Err(error),
        };
        match inspected {
            Ok(log) => {
                self.problems
                    .extend(log.problems.iter().map(|error| Problem::of_log(&path, error)));
                self.log = Some(log);
            }
            Err(error) => self.problems.push(Problem::of_log(&path, &error)),
        }
        Ok(())
    }

    fn hash_tables(&mut self, directory: &Directory) -> Result<()> {
        for name in directory.table_names()? {
            let folder = match directory.folder(&name) {
                Ok(folder) => folder,
                Err(error) => {
                    self.problems.push(Problem::new(directory.path(), error).of_table(&name));
                    continue;
                }
            };
            if let Err(error) = folder.read_options() {
                self.problems.push(Problem::new(folder.path(), error).of_table(&name));
            }
            let found = HashLog::check_files(&folder.disk).unwrap_or_else(|error| vec![error]);
            let found = found.iter().map(|error| Problem::of_hash(folder.path(), &name, error));
            self.problems.extend(found);
        }
        Ok(())
    }

    /// Checks the heap of tree tables, and counts the entries of all tables.
    fn opened(&mut self, db: &Db, pool_path: &Path) {
        let pool = db.home().opened_pool();
        match pool.map(Pool::check).transpose() {
            Ok(report) => {
                let problems = report.iter().flat_map(|report| &report.problems);
                self.problems.extend(problems.map(|what| Problem::new(pool_path, what)));
                self.trees = report;
            }
            Err(cause) => self.problems.push(Problem::of_trees(pool_path, &cause)),
        }
        for name in db.stored_names() {
            #[cfg(feature = "rollup")]
            if let Ok(table) = db.rollup_table(&name) {
                let folder = table.folder().unwrap_or(Path::new(""));
                let found = table.rollup().check();
                let found = found.iter().map(|error| Problem::of_rollup(folder, &name, error));
                self.problems.extend(found);
            }
            match count(db, &name) {
                Ok((engine, entries)) => {
                    self.tables.push(CheckedTable { name, engine, entries });
                }
                // What is damaged was told in particular.
                Err(_) if self.problems.iter().any(|known| known.table.as_ref() == Some(&name)) => {
                }
                Err(error) => {
                    let path = db.directory().unwrap_or(Path::new(""));
                    self.problems.push(Problem::new(path, error).of_table(&name));
                }
            }
        }
    }
}

/// The engine and the entries of a table; of a roll-up, its facts.
pub(super) fn count(db: &Db, name: &str) -> Result<(Engine, u64)> {
    match db.slots().get(name) {
        Some(Slot::Rollup(table)) => Ok((Engine::Rollup, table.fact_count())),
        _ => {
            let table = db.table(name)?;
            Ok((table.engine(), table.len()? as u64))
        }
    }
}
