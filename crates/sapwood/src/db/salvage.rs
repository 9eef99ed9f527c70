//! What can be saved of a damaged database.

#[cfg_attr(not(feature = "rollup"), path = "salvage/no_rollups.rs")]
mod rollups;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use sapwood_engine::Effect;
use sapwood_hashlog::HashLog;
use sapwood_ptree::DamagedPool;
use sapwood_wal::{Recovery, TableId, Wal};

use super::check::count;
use super::{Db, Problem};
use crate::db_log::{Description, Stopped};
use crate::directory::{Directory, Folder};
use crate::{
    AnyTable, DbOptions, Engine, Error, HashTable, HashTableOptions, LogError, OrderedTableOptions,
    Result, TreeSalvage,
};

use rollups::SavedRollup;

/// Entries that are copied together.
const BATCH: usize = 1024;

/// What was saved of a damaged database ([`Db::salvage`]), and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvage {
    /// The ordered tables, hash tables and roll-up tables that the new directory has, by name.
    pub tables: Vec<SalvagedTable>,
    /// What was saved of the tree tables, if there were some.
    pub trees: Option<TreeSalvage>,
    /// What is wrong with the damaged files, and what was not saved.
    pub problems: Vec<Problem>,
}

/// A table that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedTable {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: Engine,
    /// How many entries it has; of a roll-up, facts.
    pub entries: u64,
}

impl Salvage {
    /// Whether nothing was found to be wrong, so that all was saved.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let (damaged, new) = (directory.path().join("damaged"), directory.path().join("new"));
    /// # sapwood::Db::open(&damaged)?.close()?;
    /// let salvage = sapwood::Db::salvage(&damaged, &new)?;
    /// assert!(salvage.is_complete() && salvage.problems.is_empty());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty() && self.trees.as_ref().is_none_or(TreeSalvage::is_complete)
    }
}

impl Db {
    /// Copies what can be read of a damaged database into a new directory. The damaged one is not written.
    ///
    /// - *Ordered tables* are as of the last checkpoint, or have what of it can be read, with the changes of the
    ///   log up to the first record that is damaged.
    /// - *Hash tables* are as of their newest checkpoint that opens, with the entries of it that can be
    ///   read, and the changes of the log up to the same record.
    /// - *Roll-up tables* have the segments of which every column can be read, the batches of the log up to the same
    ///   record that no segment has, and the offsets of both. Rows of a segment that is not copied are not there, and
    ///   their offsets are: their sources do not bring them again by themselves.
    /// - *Tree tables* have what their nodes lead to. Words of the heap have no checksums: a damaged word that
    ///   still is a value, or a key, is copied as it is.
    ///
    /// # Errors
    /// [`Error::Directory`] where the new directory is not empty, or files cannot be read or written;
    /// [`Error::DirectoryInUse`]; [`Error::Trees`] where nothing says where the tree tables begin.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let (damaged, new) = (directory.path().join("damaged"), directory.path().join("new"));
    /// # let db = Db::open(&damaged)?;
    /// # db.create_tree_table("t", TreeTableOptions::default())?.put(b"k", b"v")?;
    /// # db.close()?;
    /// let salvage = Db::salvage(&damaged, &new)?;
    /// assert!(salvage.is_complete());
    /// assert!(Db::open(&new)?.tree_table("t")?.contains_key(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn salvage(damaged: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<Salvage> {
        salvage(damaged.as_ref(), new.as_ref(), false)
    }

    /// As [`Db::salvage`], and takes changes behind damage of the log, too, as far as their records are whole. So
    /// more is saved, and it need never have been there at one moment: a later change may be there and an
    /// earlier one not.
    ///
    /// # Errors
    /// As of [`Db::salvage`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let (damaged, new) = (directory.path().join("damaged"), directory.path().join("new"));
    /// # let db = Db::open(&damaged)?;
    /// # db.create_ordered_table("t", OrderedTableOptions::default())?.put(b"k", b"v")?;
    /// # drop(db);
    /// let salvage = Db::salvage_past_damage(&damaged, &new)?;
    /// assert_eq!(salvage.tables[0].entries, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn salvage_past_damage(
        damaged: impl AsRef<Path>,
        new: impl AsRef<Path>,
    ) -> Result<Salvage> {
        salvage(damaged.as_ref(), new.as_ref(), true)
    }
}

fn salvage(damaged: &Path, new: &Path, goes_on: bool) -> Result<Salvage> {
    let from = Directory::open_read_only(damaged)?;
    expect_empty(damaged, new)?;
    // What is saved is made to last at the end.
    let db = Db::open_with(new, DbOptions::default().without_log())?;
    let (tables, rollups) = (BTreeMap::new(), BTreeMap::new());
    let mut saving = Saving { db, from, tables, rollups, salvage: Salvage::default() };
    saving.hash_tables()?;
    saving.log(goes_on)?;
    saving.trees()?;
    let Saving { db, tables, rollups, mut salvage, .. } = saving;
    drop((tables, rollups));
    for name in db.stored_names() {
        let (engine, entries) = count(&db, &name)?;
        if engine != Engine::Tree {
            salvage.tables.push(SalvagedTable { name, engine, entries });
        }
    }
    db.close()?;
    Ok(salvage)
}

fn expect_empty(damaged: &Path, new: &Path) -> Result<()> {
    let refused = |why: &str| {
        let cause = io::Error::new(io::ErrorKind::AlreadyExists, why);
        Error::directory(new, "used for the copy", &cause)
    };
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|cause| Error::directory(path, "found", &cause))
    };
    if absolute(new)?.starts_with(absolute(damaged)?) {
        return Err(refused("it lies in the damaged one: choose another"));
    }
    match new.read_dir().map(|mut files| files.next().is_none()) {
        Ok(true) => Ok(()),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(false) => Err(refused("it is not empty: choose another")),
        Err(cause) => Err(Error::directory(new, "read", &cause)),
    }
}

struct Saving {
    db: Db,
    from: Directory,
    /// Those of the log that the new directory has.
    tables: BTreeMap<TableId, AnyTable>,
    rollups: BTreeMap<TableId, SavedRollup>,
    salvage: Salvage,
}

impl Saving {
    fn hash_tables(&mut self) -> Result<()> {
        for name in self.from.table_names()? {
            let folder = self.from.folder(&name)?;
            let options = match folder.read_options() {
                Ok(options) => options,
                Err(error) => {
                    self.problem(Problem::new(folder.path(), error).of_table(&name));
                    HashTableOptions::default()
                }
            };
            let table = self.db.create_hash_as_it_was(&name, &options)?;
            if let Some(log) = self.open_hash(&name, &folder, &options) {
                self.copy_hash(&log, &table, &folder)?;
            }
        }
        Ok(())
    }

    /// The table as of its newest checkpoint that opens.
    fn open_hash(
        &mut self,
        name: &str,
        folder: &Folder,
        options: &HashTableOptions,
    ) -> Option<HashLog> {
        let disk = || Arc::clone(&folder.disk);
        let refused = match HashLog::open(disk(), options.engine()) {
            Ok(log) => return Some(log),
            Err(error) => error,
        };
        self.problem(Problem::of_hash(folder.path(), name, &refused));
        let stored = HashLog::stored(&folder.disk).unwrap_or_default();
        for checkpoint in stored.iter().rev().filter(|checkpoint| checkpoint.state.is_ok()) {
            if let Ok(log) = HashLog::view(disk(), options.engine(), checkpoint.number) {
                let what = format!(
                    "its checkpoint {} was taken; what changed between it and the newest is lost",
                    checkpoint.number
                );
                self.problem(Problem::new(folder.path(), what).of_table(name));
                return Some(log);
            }
        }
        None
    }

    fn copy_hash(&mut self, log: &HashLog, table: &HashTable, folder: &Folder) -> Result<()> {
        let (mut problems, mut batch) = (Vec::new(), Vec::new());
        let mut done = Ok(());
        log.for_each_readable(
            |key, value| {
                batch.push((key.to_vec(), value.to_vec()));
                if batch.len() == BATCH && done.is_ok() {
                    done = table.put_many(&batch).map(drop);
                    batch.clear();
                }
            },
            |error| problems.push(Problem::of_hash(folder.path(), table.name(), &error)),
        );
        done?;
        table.put_many(&batch)?;
        // One damaged page is met by many buckets.
        problems.dedup();
        let mut known = std::collections::BTreeSet::new();
        problems.retain(|problem| known.insert((problem.path.clone(), problem.offset)));
        self.salvage.problems.extend(problems);
        Ok(())
    }

    fn log(&mut self, goes_on: bool) -> Result<()> {
        let Some(disk) = self.from.log_disk_to_read()? else { return Ok(()) };
        let path = self.from.log_path();
        if disk.list().map_err(|cause| Error::directory(&path, "listed", &cause))?.is_empty() {
            return Ok(());
        }
        match Wal::salvage(&*disk, goes_on, self) {
            Ok(problems) => {
                for problem in problems {
                    self.problem(Problem::of_log(&path, &problem));
                }
                Ok(())
            }
            // Nothing of the log can be read.
            Err(Stopped::Log(problem @ LogError::CorruptFile { .. })) => {
                self.problem(Problem::of_log(&path, &problem));
                Ok(())
            }
            Err(stopped) => Err(stopped.named(&path)),
        }
    }

    fn trees(&mut self) -> Result<()> {
        let Some(disk) = self.from.pool_disk()? else { return Ok(()) };
        let path = self.from.pool_path();
        let refused = |cause| Error::Trees { path: Some(path.clone()), cause };
        let damaged = DamagedPool::open(&*disk, &DbOptions::default().pool()).map_err(refused)?;
        let damaged = match damaged.shared_log() {
            None => damaged,
            Some(log) => self.trees_of_log(damaged, log)?,
        };
        let salvage = self.db.home().pool()?.salvage(damaged).map_err(refused)?;
        self.salvage.trees = Some(salvage);
        Ok(())
    }

    /// Does the commits again that the log has up to the first damage: they change bytes as others before have
    /// left them.
    fn trees_of_log(&mut self, damaged: DamagedPool, log: u64) -> Result<DamagedPool> {
        let mut commits = Commits { damaged, table: None };
        let told = match self.from.log_disk_to_read()? {
            Some(disk) => Wal::salvage::<LogError>(&*disk, false, &mut commits).map(drop),
            None => Ok(()),
        };
        // What is wrong with the log was told before.
        if told.is_err() || commits.table.is_none() {
            let what = format!(
                "what was committed since the last checkpoint is lost with the log of number {log}"
            );
            self.problem(Problem::new(&self.from.pool_path(), what));
        }
        Ok(commits.damaged)
    }

    fn problem(&mut self, problem: Problem) {
        self.salvage.problems.push(problem);
    }

    /// Makes a table of the log, under another name where its own is taken.
    fn create_free<T>(
        &mut self,
        id: TableId,
        name: &str,
        create: impl Fn(&Db, &str) -> Result<T>,
    ) -> Result<T> {
        match create(&self.db, name) {
            Err(Error::TableExists { .. }) => {
                let other = format!("{name}-{id}");
                let what = format!("another table has its name: it is called {other}");
                self.problem(Problem::new(&self.from.log_path(), what).of_table(name));
                create(&self.db, &other)
            }
            made => made,
        }
    }

    fn create_ordered(
        &mut self,
        id: TableId,
        name: &str,
        options: OrderedTableOptions,
    ) -> Result<AnyTable> {
        let create = |db: &Db, name: &str| db.create_ordered_as_it_was(name, options.clone());
        self.create_free(id, name, create).map(AnyTable::from)
    }
}

impl Recovery<Stopped> for Saving {
    fn create(
        &mut self,
        table: TableId,
        name: &str,
        description: &[u8],
        own: Option<u64>,
    ) -> std::result::Result<(), Stopped> {
        let made = match Description::decode(description) {
            Ok(Description::Hash) => match self.db.hash_table(name) {
                Ok(made) => made.into(),
                Err(Error::TableMissing { .. }) => {
                    let what = "the log has it, and it has no folder: a crash came while it was \
                                dropped, or its folder is lost";
                    self.problem(Problem::new(&self.from.log_path(), what).of_table(name));
                    return Ok(());
                }
                Err(error) => return Err(Stopped::Table(error)),
            },
            Ok(Description::Trees) => return Ok(()),
            Ok(Description::Rollup { name, schema }) => {
                let made = self.create_rollup(table, &name, &schema, own.unwrap_or(0));
                return made.map_err(Stopped::Table);
            }
            Ok(Description::Ordered(options)) => {
                self.create_ordered(table, name, options).map_err(Stopped::Table)?
            }
            Err(what) => {
                let what = format!("its description cannot be read, it has other options: {what}");
                self.problem(Problem::new(&self.from.log_path(), what).of_table(name));
                let options = OrderedTableOptions::default();
                self.create_ordered(table, name, options).map_err(Stopped::Table)?
            }
        };
        self.tables.insert(table, made);
        Ok(())
    }

    fn entry(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> std::result::Result<(), Stopped> {
        self.change(table, key, Effect::Put(value))
    }

    fn change(
        &mut self,
        table: TableId,
        key: &[u8],
        effect: Effect<'_>,
    ) -> std::result::Result<(), Stopped> {
        if let Effect::Put(record) = effect
            && self.rollups.contains_key(&table)
        {
            return self.redo(table, record).map_err(Stopped::Table);
        }
        let Some(table) = self.tables.get(&table) else { return Ok(()) };
        let done = match effect {
            Effect::Put(value) => table.put(key, value),
            Effect::Remove => table.remove(key).map(drop),
            // What does not fit is of a value that is missing, or becomes as it will be.
            Effect::Write { offset, bytes } => table
                .update(key, |value| {
                    if let Some(there) = value.get_mut(offset..offset.saturating_add(bytes.len())) {
                        there.copy_from_slice(bytes);
                    }
                })
                .map(drop),
        };
        done.map_err(Stopped::Table)
    }
}

/// Takes the commits to tree tables that a log tells, and nothing else.
struct Commits {
    damaged: DamagedPool,
    /// The table of them, if the log knows it.
    table: Option<TableId>,
}

impl Recovery<LogError> for Commits {
    fn create(
        &mut self,
        table: TableId,
        _name: &str,
        description: &[u8],
        _own: Option<u64>,
    ) -> std::result::Result<(), LogError> {
        if Description::decode(description) == Ok(Description::Trees) {
            self.table = Some(table);
        }
        Ok(())
    }

    fn entry(&mut self, _: TableId, _: &[u8], _: &[u8]) -> std::result::Result<(), LogError> {
        Ok(())
    }

    fn change(
        &mut self,
        table: TableId,
        _key: &[u8],
        effect: Effect<'_>,
    ) -> std::result::Result<(), LogError> {
        if let Effect::Put(record) = effect
            && self.table == Some(table)
        {
            self.damaged.redo(record);
        }
        Ok(())
    }
}
