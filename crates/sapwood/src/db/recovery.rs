//! The tables that a database has when it is opened, from what the log tells.

mod beside;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use sapwood_chunkmap::ChunkMap;
use sapwood_disk::log::Lsn;
use sapwood_engine::Effect;
use sapwood_hashlog::HashLog;
use sapwood_ptree::{OpeningPool, Pool};
use sapwood_wal::{Recovery, Snapshot, TableId, View};

use crate::db_log::{self, DbLog, Description, Kept, Stopped};
use crate::db_options::OnRecovery;
use crate::directory::Directory;
use crate::formats::FormatsCell;
use crate::ordered_table::{Entries, Source, Stored};
use crate::{
    DbOptions, Error, HashTable, LogError, OrderedTable, OrderedTableOptions, Result, RollupTable,
    TreeEngineError, aggregate,
};

use beside::Beside;
use replay::{Engine, Replay, RollupTarget, Target};

pub(super) use beside::view as view_beside;

/// Tables that are read in place, at most: each has a file open.
const IN_PLACE_MAX: usize = 128;

/// Bytes of changes that are kept beside a table in place, at most.
const CHANGE_BYTES_MAX: u64 = 64 << 20;

/// The tables that the log of a directory has.
pub(super) struct LoggedTables {
    pub(super) ordered: Vec<OrderedTable>,
    /// By name.
    pub(super) hash: BTreeMap<Arc<str>, LoggedHash>,
    /// The pool of tree tables, if there is one.
    pub(super) trees: Option<Pool>,
    pub(super) rollups: Vec<RollupTable>,
}

/// A hash table that the log has.
pub(super) enum LoggedHash {
    /// The log has no change since its newest checkpoint.
    Closed(TableId),
    /// With all changes.
    Open(HashTable),
    /// The log has changes, and the table cannot be opened.
    Unrecovered(Option<TableId>, Error),
}

/// Opens the log of a directory, or makes it, with the tables that it has.
pub(super) fn open(
    directory: &Arc<Directory>,
    options: &DbOptions,
) -> Result<(Arc<DbLog>, LoggedTables)> {
    let recover = |recovery: &mut dyn Recovery<Stopped>| DbLog::open(directory, options, recovery);
    let (log, Told { ordered, hash, trees, rollups }) = tell(directory, options, None, recover)?;
    let trees = settle_trees(&log, directory, options, trees)?;
    let ordered = ordered.into_iter().map(|(id, table)| {
        let Finished { name, options: own, map, source } = table.finish()?;
        let (entries, formats, kept) = log
            .open_ordered(id, map, |map| entries(source, (&name, &own), map, directory, options));
        Ok(OrderedTable::with_entries(name, entries, own, formats, kept))
    });
    let ordered = ordered.collect::<Result<_>>()?;
    let hash = settle_hash(&log, directory, hash)?;
    directory.keep_rollups(|number| rollups.contains_key(&number))?;
    let rollups = rollups.into_iter().map(|(id, target)| target.logged(&log, directory, id));
    let rollups = rollups.collect();
    log.begin(options)?;
    Ok((log, LoggedTables { ordered, hash, trees, rollups }))
}

/// Opens the pool, after moving it to the log where it has one of its own.
fn settle_trees(
    log: &DbLog,
    directory: &Directory,
    options: &DbOptions,
    told: ToldTrees,
) -> Result<Option<Pool>> {
    let ToldTrees { table, opening } = told;
    let Some(opening) = opening else { return Ok(None) };
    if opening.shared_log().is_none() {
        drop(opening);
        let Some(disk) = directory.pool_disk()? else { return Ok(None) };
        let id = log.move_pool(table, &disk, &options.pool())?;
        let opening = OpeningPool::begin(disk, options.pool());
        let opening = opening.map_err(|cause| trees_refused(directory, cause))?;
        return log.open_pool(id, opening).map(Some);
    }
    match table {
        Some(table) => log.open_pool(table, opening).map(Some),
        None => expect_unused(directory, &opening, Some(log.wal().id())).map(|()| None),
    }
}

/// Refuses a pool that the log does not know, unless it is one that a crash left which came while it was made.
fn expect_unused(directory: &Directory, opening: &OpeningPool, log: Option<u64>) -> Result<()> {
    if log == opening.shared_log() && opening.generation() == 1 {
        return Ok(());
    }
    let what = match directory.is_pool() {
        true => {
            "they belong to a database, which has their commits: open the directory that this one \
             lies in"
        }
        false => "the log knows nothing of them: put the log back that they were used with",
    };
    Err(trees_refused(directory, TreeEngineError::Options(what.to_owned())))
}

fn trees_refused(directory: &Directory, cause: TreeEngineError) -> Error {
    Error::Trees { path: Some(directory.pool_path()), cause }
}

/// Reads the heap of the pool, if there is one.
fn begin_trees(directory: &Directory, options: &DbOptions) -> Result<Option<OpeningPool>> {
    let Some(disk) = directory.pool_disk()? else { return Ok(None) };
    let begun = match (directory.is_read_only(), directory.is_beside_writer()) {
        (true, true) => OpeningPool::begin_beside(disk, options.pool()),
        (true, false) => OpeningPool::begin_read_only(disk, options.pool()),
        (false, _) => OpeningPool::begin(disk, options.pool()),
    };
    begun.map(Some).map_err(|cause| trees_refused(directory, cause))
}

/// Does again what a log tells, by several threads.
fn tell<R>(
    directory: &Directory,
    options: &DbOptions,
    beside: Option<&mut Beside>,
    log: impl FnOnce(&mut dyn Recovery<Stopped>) -> Result<R>,
) -> Result<(R, Told)> {
    let trees = ToldTrees { table: None, opening: begin_trees(directory, options)? };
    thread::scope(|scope| {
        let told = Told { trees, ..Told::default() };
        let on_recovery = &options.on_recovery;
        let replay = Replay::new(scope, options.recovery_threads);
        let is_lazy = options.is_lazy;
        let mut tables = Tables { directory, on_recovery, is_lazy, replay, told, beside };
        let opened = log(&mut tables);
        tables.replay.end();
        // A batch that was refused lies before what the log may have stopped at.
        tables.told.rollups.values().try_for_each(|target| target.finish())?;
        Ok((opened?, tables.told))
    })
}

/// Brings the hash tables of the log and those of the directory together.
fn settle_hash(
    log: &Arc<DbLog>,
    directory: &Arc<Directory>,
    recovered: BTreeMap<TableId, RecoveredHash>,
) -> Result<BTreeMap<Arc<str>, LoggedHash>> {
    let mut there: BTreeSet<String> = directory.table_names()?.into_iter().collect();
    let mut tables = BTreeMap::new();
    for (id, RecoveredHash { name, newest, state }) in recovered {
        if !there.remove(&*name) {
            // A crash, or a failure, came while it was dropped.
            directory.settle_removal(&name)?;
            log.drop_hash(id)?;
            continue;
        }
        let table = match state {
            HashState::Unchanged => {
                log.close_hash(id, newest)?;
                LoggedHash::Closed(id)
            }
            HashState::Open(target, fields) => match finish_hash(target) {
                Ok(engine) => {
                    let (engine, kept) = log.open_hash(id, engine);
                    let (name, directory) = (Arc::clone(&name), Some(Arc::clone(directory)));
                    LoggedHash::Open(HashTable::new(name, engine, fields, directory, kept))
                }
                Err(error) => unrecovered(log, id, &name, error),
            },
            HashState::Unrecovered(error) => unrecovered(log, id, &name, error),
        };
        tables.insert(name, table);
    }
    // Of a version that had no log, or of a crash or a failure while they were made.
    for name in there {
        let table = match directory.settle_name(&name) {
            Ok(()) => LoggedHash::Closed(log.create_hash(&name)?),
            Err(error) => LoggedHash::Unrecovered(None, error),
        };
        tables.insert(name.as_str().into(), table);
    }
    Ok(tables)
}

fn unrecovered(log: &DbLog, id: TableId, name: &str, error: Error) -> LoggedHash {
    log.keep_hash(id, name, &error.to_string());
    LoggedHash::Unrecovered(Some(id), error)
}

/// The tables of a directory that is open to be read, and up to where the log has told of them, if there is one.
/// Beside a writer, `None` where it has outrun the reader: then it is to be tried again.
pub(super) fn view(
    directory: &Arc<Directory>,
    options: &DbOptions,
) -> Result<Option<(LoggedTables, Option<Lsn>)>> {
    let path = directory.log_path();
    let named = |cause| Error::Log { path: path.clone(), cause };
    let Some(disk) = db_log::disk_to_read(directory)? else {
        if directory.is_beside_writer() {
            beside::hold_listed(directory)?;
        }
        let (_, told) = tell(directory, options, None, |_| Ok(()))?;
        if directory.is_beside_writer() && db_log::disk_to_read(directory)?.is_some() {
            return Ok(None);
        }
        return viewed(directory, options, told, None).map(|tables| Some((tables, None)));
    };
    let mut view = View::begin(&*disk).map_err(named)?;
    let mut beside = match directory.is_beside_writer() {
        true => match Beside::open(directory, &view) {
            // Its files may be of a table that was dropped since.
            Err(_) if has_ended(&view) => return Ok(None),
            opened => Some(opened?),
        },
        false => None,
    };
    let told = tell(directory, options, beside.as_mut(), |tables| {
        view.tell(tables).map_err(|stopped: Stopped| stopped.named(&path))
    });
    let (log, told) = match told {
        // It may be of one that has come and gone since: names do not tell. The next attempt knows it from the beginning.
        Err(_) if beside.as_ref().is_some_and(|it| it.has_late() || has_ended(&view)) => {
            return Ok(None);
        }
        told => told?,
    };
    if let Some(beside) = beside
        && (beside.is_outrun(&view).map_err(named)? || !view.is_whole().map_err(named)?)
    {
        return Ok(None);
    }
    let tables = viewed(directory, options, told, Some(log))?;
    Ok(Some((tables, Some(log.1))))
}

/// Whether a table was dropped since the view began, or since it was told.
fn has_ended(view: &View<'_>) -> bool {
    view.ended_since().is_ok_and(|ended| !ended.is_empty())
}

/// The tables that were told of a log of this number which ends there.
fn viewed(
    directory: &Arc<Directory>,
    options: &DbOptions,
    told: Told,
    log: Option<(u64, Lsn)>,
) -> Result<LoggedTables> {
    let Told { ordered, hash, trees, rollups } = told;
    let trees = view_trees(directory, options, trees, log)?;
    let ordered = ordered.into_values().map(|table| {
        let Finished { name, options: own, map, source } = table.finish()?;
        let entries = entries(source, (&name, &own), Arc::new(map), directory, options);
        let kept = Kept::read_only(directory);
        Ok(OrderedTable::with_entries(name, entries, own, FormatsCell::default(), kept))
    });
    let ordered = ordered.collect::<Result<_>>()?;
    let there: BTreeSet<String> = directory.table_names()?.into_iter().collect();
    let hash = hash.into_values().filter_map(|RecoveredHash { name, state, .. }| {
        if !there.contains(&*name) {
            // A crash came while it was dropped.
            return None;
        }
        let table = match state {
            HashState::Unchanged => return None,
            HashState::Open(target, fields) => match finish_hash(target) {
                Ok(engine) => {
                    let (engine, versions) = (Arc::new(engine.read_only()), directory.versions());
                    let directory = Some(directory.clone());
                    LoggedHash::Open(HashTable::new(
                        name.clone(),
                        engine,
                        fields,
                        directory,
                        Kept::in_memory(versions),
                    ))
                }
                Err(error) => LoggedHash::Unrecovered(None, error),
            },
            HashState::Unrecovered(error) => LoggedHash::Unrecovered(None, error),
        };
        Some((name, table))
    });
    let rollups = rollups.into_iter().map(|(id, target)| target.viewed(directory, id));
    Ok(LoggedTables { ordered, hash: hash.collect(), trees, rollups: rollups.collect() })
}

/// The pool of a directory that is open to be read, and has a log of this number which ends there.
fn view_trees(
    directory: &Directory,
    options: &DbOptions,
    told: ToldTrees,
    log: Option<(u64, Lsn)>,
) -> Result<Option<Pool>> {
    let ToldTrees { table, opening } = told;
    let Some(opening) = opening else { return Ok(None) };
    let opened = match (opening.shared_log(), table, log) {
        (None, ..) => match directory.pool_disk()? {
            Some(disk) if directory.is_beside_writer() => Pool::open_beside(disk, options.pool()),
            Some(disk) => Pool::open_read_only(disk, options.pool()),
            None => return Ok(None),
        },
        (Some(_), Some(_), Some((log, end))) => opening.finish_read_only(log, end),
        (Some(_), _, log) => {
            return expect_unused(directory, &opening, log.map(|(id, _)| id)).map(|()| None);
        }
    };
    opened.map(Some).map_err(|cause| trees_refused(directory, cause))
}

/// The tables that were told so far.
#[derive(Default)]
struct Told {
    ordered: BTreeMap<TableId, Recovered>,
    hash: BTreeMap<TableId, RecoveredHash>,
    trees: ToldTrees,
    rollups: BTreeMap<TableId, Arc<RollupTarget>>,
}

/// The pool of tree tables.
#[derive(Default)]
struct ToldTrees {
    /// The table of its records, if the log knows it.
    table: Option<TableId>,
    /// The pool, if its files are there.
    opening: Option<OpeningPool>,
}

impl ToldTrees {
    /// The log has a table of the pool's records.
    fn create(
        &mut self,
        table: TableId,
        directory: &Directory,
        checkpoint: Option<u64>,
    ) -> Result<()> {
        self.table = Some(table);
        let generation = self.opening.as_ref().map(OpeningPool::generation);
        let what = match generation {
            None => "it is missing, and the log knows of tree tables".to_owned(),
            Some(generation) if generation < checkpoint.unwrap_or(0) => {
                format!("its superblock is of checkpoint {generation}, and there were later ones")
            }
            Some(_) => return Ok(()),
        };
        let file = "heap".to_owned();
        Err(trees_refused(directory, TreeEngineError::CorruptFile { file, offset: 0, what }))
    }

    /// Does a record of the pool again, if it has not all in its own log.
    fn redo(&mut self, directory: &Directory, record: &[u8]) -> Result<()> {
        match &mut self.opening {
            Some(opening) if opening.shared_log().is_some() => {
                opening.redo(record).map_err(|cause| trees_refused(directory, cause))
            }
            _ => Ok(()),
        }
    }
}

/// Takes what the log tells.
struct Tables<'d, 's, 'e> {
    directory: &'d Directory,
    on_recovery: &'d OnRecovery,
    /// Whether tables that may be changed are left in their snapshots, too.
    is_lazy: bool,
    replay: Replay<'s, 'e>,
    told: Told,
    /// What was opened before, beside a writer.
    beside: Option<&'d mut Beside>,
}

/// A hash table, which is opened when the log has a change of it.
struct RecoveredHash {
    name: Arc<str>,
    /// Its newest checkpoint when the log had one last.
    newest: u64,
    state: HashState,
}

enum HashState {
    Unchanged,
    Open(Arc<Target>, Option<aggregate::Layout>),
    /// It does not open, or may not be changed.
    Unrecovered(Error),
}

/// An ordered table without a journal.
struct Recovered {
    options: OrderedTableOptions,
    target: Arc<Target>,
    /// All its entries, where none was told.
    source: Option<Source>,
}

/// An ordered table with all that was told.
struct Finished {
    name: Arc<str>,
    options: OrderedTableOptions,
    map: ChunkMap,
    source: Option<Source>,
}

impl Recovered {
    fn finish(self) -> Result<Finished> {
        let Recovered { options, target, source } = self;
        let name = Arc::clone(&target.name);
        match target.finish()? {
            Engine::Ordered(map) => {
                // What is in the snapshot comes in whatever of the budget that takes.
                let budget = options.memory_budget.filter(|_| source.is_none());
                let map = map.with_memory_budget(budget);
                Ok(Finished { name, options, map, source })
            }
            Engine::Hash(_) => unreachable!("the table is ordered"),
        }
    }
}

/// The entries of a table, which are in the map or come into it as they are needed.
fn entries(
    source: Option<Source>,
    (name, options): (&Arc<str>, &OrderedTableOptions),
    map: Arc<ChunkMap>,
    directory: &Directory,
    db_options: &DbOptions,
) -> Entries {
    if source.is_none() {
        return Entries::Memory(map);
    }
    let (table, threads) = ((Arc::clone(name), options.clone()), db_options.recovery_threads);
    Entries::Stored(Arc::new(Stored::new(table, source, map, directory.log_path(), threads)))
}

fn finish_hash(target: Arc<Target>) -> Result<HashLog> {
    match target.finish()? {
        Engine::Hash(log) => Ok(log),
        Engine::Ordered(_) => unreachable!("the table is not ordered"),
    }
}

type Done<T> = std::result::Result<T, Stopped>;

impl RecoveredHash {
    /// The table to be changed; none if it cannot be.
    fn target(&mut self, directory: &Directory) -> Option<&Arc<Target>> {
        if matches!(self.state, HashState::Unchanged) {
            self.state = match self.open(directory) {
                Ok((log, fields)) => {
                    HashState::Open(Target::new(&self.name, Engine::Hash(log)), fields)
                }
                Err(error) => HashState::Unrecovered(error),
            };
        }
        match &self.state {
            HashState::Open(target, _) => Some(target),
            HashState::Unchanged | HashState::Unrecovered(_) => None,
        }
    }

    fn open(&self, directory: &Directory) -> Result<(HashLog, Option<aggregate::Layout>)> {
        let folder = directory.folder(&self.name)?;
        let stored = folder.read_options()?;
        let log = match directory.is_read_only() {
            true => {
                // What changes is kept in memory alone.
                let mut options = stored.engine();
                options.memory_budget = None;
                HashLog::open_to_recover(folder.disk, options)
            }
            false => HashLog::open(folder.disk, stored.engine()),
        };
        let log =
            log.map_err(|cause| Error::HashEngine { table: Arc::clone(&self.name), cause })?;
        Ok((log, stored.fields))
    }
}

impl Recovery<Stopped> for Tables<'_, '_, '_> {
    fn create(
        &mut self,
        table: TableId,
        name: &str,
        description: &[u8],
        own: Option<u64>,
    ) -> Done<()> {
        let damaged = |what| {
            let what = format!("the description of table `{name}` cannot be read: {what}");
            Stopped::Log(LogError::CorruptFile { file: "the log".to_owned(), offset: 0, what })
        };
        let name: Arc<str> = name.into();
        match Description::decode(description).map_err(damaged)? {
            Description::Ordered(options) => {
                // What was there is put in again, whatever of the budget that takes.
                let unlimited = OrderedTableOptions { memory_budget: None, ..options.clone() };
                let map = unlimited.new_map(&name).map_err(Stopped::Table)?;
                let target = Target::new(&name, Engine::Ordered(Box::new(map)));
                self.told.ordered.insert(table, Recovered { options, target, source: None });
            }
            Description::Hash => {
                if let Some(beside) = &mut self.beside {
                    beside.hold_hash(self.directory, table, &name).map_err(Stopped::Table)?;
                }
                let (newest, state) = (own.unwrap_or(0), HashState::Unchanged);
                self.told.hash.insert(table, RecoveredHash { name, newest, state });
            }
            Description::Rollup { name, schema } => {
                let opened = match &mut self.beside {
                    Some(beside) => beside.rollup(self.directory, table, (&name, &schema), own),
                    None => RollupTarget::open(self.directory, table, (&name, &schema), own),
                };
                let target = opened.map_err(Stopped::Table)?;
                let sealed = target.expect_sealed(self.directory, table, own);
                sealed.map_err(Stopped::Table)?;
                self.told.rollups.insert(table, target);
            }
            Description::Trees => {
                let told = self.told.trees.create(table, self.directory, own);
                told.map_err(Stopped::Table)?;
            }
        }
        Ok(())
    }

    fn stored(&mut self, table: TableId, snapshot: Snapshot, change_bytes: u64) -> Done<bool> {
        let ordered = &mut self.told.ordered;
        let in_place = ordered.values().filter(|recovered| recovered.source.is_some()).count();
        let (key_bytes, value_bytes) = snapshot.entry_bytes();
        let is_little = change_bytes <= CHANGE_BYTES_MAX.min(key_bytes + value_bytes);
        let Some(recovered) = ordered.get_mut(&table) else { return Ok(false) };
        let may_be = match self.directory.is_read_only() {
            true => true,
            // What comes in of the snapshot must not be refused, and what is put must be.
            false => self.is_lazy && recovered.options.memory_budget.is_none(),
        };
        let is_in_place = may_be && is_little && snapshot.entries() > 0 && in_place < IN_PLACE_MAX;
        if is_in_place {
            recovered.source = Some(Source::new(snapshot));
        }
        Ok(is_in_place)
    }

    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Done<()> {
        if let Some(recovered) = self.told.ordered.get(&table) {
            self.replay.entry(&recovered.target, key, value);
        }
        Ok(())
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Done<()> {
        if let Effect::Put(record) = effect
            && self.told.trees.table == Some(table)
        {
            return self.told.trees.redo(self.directory, record).map_err(Stopped::Table);
        }
        if let Effect::Put(record) = effect
            && let Some(target) = self.told.rollups.get(&table)
        {
            self.replay.record(target, record);
            return target.expect_sound().map_err(Stopped::Table);
        }
        let target = match self.told.ordered.get_mut(&table) {
            Some(Recovered { source: Some(source), .. }) => {
                source.note(key, effect);
                return Ok(());
            }
            Some(ordered) => Some(&ordered.target),
            None => self.told.hash.get_mut(&table).and_then(|hash| hash.target(self.directory)),
        };
        if let Some(target) = target {
            self.replay.change(table, target, key, effect);
        }
        Ok(())
    }

    fn progress(&mut self, read: u64, all: u64) {
        self.on_recovery.tell(read, all);
    }
}

#[cfg(test)]
mod tests;
