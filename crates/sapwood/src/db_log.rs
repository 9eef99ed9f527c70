//! The log of a database in a directory: what it has of tables outlives the process.
//!
//! | modules, each above those it uses | |
//! |---|---|
//! | `description` | a table, as the log describes it |
//! | `kept` | what a table does around a change |
//! | `changes` | changes that are waited for |
//! | `hash` | hash tables, whose engine writes their checkpoints |
//! | `rollups` | roll-up tables, which seal their facts |
//! | `trees` | the pool of tree tables, which has its commits in the log |
//!
//! Threads: one that writes checkpoints when they are due, and merges segments of roll-ups. It ends with the last handle of the `Db`
//! and of its tables.

mod changes;
mod description;
mod hash;
mod kept;
#[cfg_attr(not(feature = "rollup"), path = "db_log/no_rollups.rs")]
mod rollups;
mod trees;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use sapwood_chunkmap::ChunkMap;
use sapwood_disk::Disk;
use sapwood_wal::{Contents, Recovery, Snapshot, TableId, Wal};

use crate::directory::{self, Directory};
use crate::formats::FormatsCell;
use crate::{DbOptions, Error, LogError, OrderedTableOptions, Result};

pub use changes::{Changes, Lasting};
pub(crate) use description::Description;
pub(crate) use hash::DropOfHash;
pub(crate) use kept::{Kept, Place};

use rollups::OpenRollups;

/// What the log of a database costs, and how it is.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// # let directory = tempfile::tempdir().expect("a directory for the example");
/// let db = Db::open(directory.path())?;
/// db.create_ordered_table("t", OrderedTableOptions::default())?.put(b"key", b"value")?;
/// let log = db.stats().log.expect("there is a directory");
/// assert!(log.unsaved_bytes > 0 && log.refuses_changes.is_none());
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LogStats {
    /// Bytes of the files of the log.
    pub log_bytes: u64,
    /// Bytes of the last checkpoint's files of ordered tables.
    pub snapshot_bytes: u64,
    /// Bytes of changes since the last checkpoint: opening the database reads them.
    pub unsaved_bytes: u64,
    /// Why no change is taken any more, after a sync that failed.
    pub refuses_changes: Option<String>,
    /// True after a change that was refused for lack of room on the disk, until one succeeds.
    pub lacks_room: bool,
    /// Why the last checkpoint failed. The log grows until one succeeds.
    pub failed_checkpoint: Option<String>,
    /// Records of the log that opening the database did again.
    pub recovered_records: u64,
    /// Bytes of the log and of checkpoints of ordered tables that it read.
    pub recovered_bytes: u64,
    /// How long it took to read them, and to do the changes again.
    pub recovery_time: Duration,
    /// What a crash had cut off at the end of the log, which was never said to last.
    pub cut_off: Option<String>,
}

/// Bytes of changes that may be left without a checkpoint in any case: they are read in some milliseconds.
const LEFT_BYTES_MIN: u64 = 256 << 10;
/// The part of the bytes of a checkpoint that may be left, as writing it takes so much longer.
const LEFT_PART: u64 = 256;
/// Bytes of the log's files that may be left then, in any case and by those of a checkpoint.
const LEFT_FILES_MIN: u64 = 16 << 20;
const LEFT_FILES_PART: u64 = 8;

/// A table that is being loaded, until it is dropped.
#[derive(Debug)]
pub(crate) struct Loading(Arc<Mutex<Option<ThreadId>>>);

impl Drop for Loading {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Where the entries of an ordered table are.
pub(crate) trait LoggedEntries {
    /// What checkpoints write of them.
    fn contents(&self, formats: &FormatsCell) -> Contents;
}

/// The log, and the thread that writes its checkpoints.
#[derive(Debug)]
pub(crate) struct DbLog {
    wal: Arc<Wal>,
    /// Whether tables tell it their changes.
    is_logged: bool,
    /// Whether a few changes may be left without a checkpoint at the end.
    is_lazy: bool,
    /// Locked as long as a table may be changed.
    directory: Arc<Directory>,
    checkpoints: Mutex<Option<JoinHandle<()>>>,
    last_failure: Arc<Mutex<Option<LogError>>>,
    /// Those that are open.
    rollups: OpenRollups,
    recovery_time: Duration,
    /// The thread that loads a table, for which checkpoints wait.
    loader: Arc<Mutex<Option<ThreadId>>>,
    /// Whether checkpoints of hash tables are to be quick to open.
    is_closing: Arc<AtomicBool>,
}

impl DbLog {
    /// Opens the log of a directory, or makes it, and tells what it has.
    pub(crate) fn open(
        directory: &Arc<Directory>,
        options: &DbOptions,
        recovery: &mut dyn Recovery<Stopped>,
    ) -> Result<Arc<DbLog>> {
        let path = directory.log_path();
        let disk = directory.log_disk()?;
        let named = |cause| Error::Log { path: path.clone(), cause };
        let wal_options = options.log().id(directory::new_table_id());
        let started = Instant::now();
        let wal = match Wal::is_on(&*disk).map_err(named)? {
            true => Wal::open(disk, wal_options, recovery)
                .map_err(|stopped: Stopped| stopped.named(&path))?,
            false => Wal::create(disk, wal_options).map_err(named)?,
        };
        Ok(Arc::new(DbLog {
            checkpoints: Mutex::default(),
            wal: Arc::new(wal),
            is_logged: options.is_logged,
            is_lazy: options.is_lazy,
            directory: Arc::clone(directory),
            last_failure: Arc::default(),
            rollups: OpenRollups::default(),
            recovery_time: started.elapsed(),
            loader: Arc::default(),
            is_closing: Arc::default(),
        }))
    }

    /// Begins to write checkpoints when they are due. All tables that the log told were given back.
    pub(crate) fn begin(&self, options: &DbOptions) -> Result<()> {
        if !self.is_logged && self.wal.bytes_since_checkpoint() > 0 {
            // What the log has must not be done again over changes that it does not have.
            self.checkpoint()?;
        }
        let thread = self.log_thread(options)?;
        *self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Lets an ordered table that the log told tell its changes. The map has all entries, or is to have them.
    pub(crate) fn open_ordered<E: LoggedEntries>(
        self: &Arc<DbLog>,
        id: TableId,
        map: ChunkMap,
        entries: impl FnOnce(Arc<ChunkMap>) -> E,
    ) -> (E, FormatsCell, Kept) {
        let (entries, formats) = (entries(self.journaled(id, map)), FormatsCell::default());
        self.wal.adopt(id, entries.contents(&formats));
        (entries, formats, Kept::logged(self, id))
    }

    /// Notes an ordered table that is made.
    pub(crate) fn create_ordered<E: LoggedEntries>(
        self: &Arc<DbLog>,
        name: &Arc<str>,
        options: &OrderedTableOptions,
        entries: impl FnOnce(Arc<ChunkMap>) -> E,
    ) -> Result<(TableId, E, FormatsCell, Kept)> {
        let map = options.new_map(name)?;
        let id = self.wal.reserve();
        let entries = entries(self.journaled(id, map));
        let formats = FormatsCell::default();
        let description = Description::Ordered(options.clone()).encode();
        let contents = entries.contents(&formats);
        let made = self.wal.create_table(id, name, description.as_bytes(), contents);
        made.map_err(|cause| self.named(cause))?;
        Ok((id, entries, formats, Kept::logged(self, id)))
    }

    /// Writes a checkpoint in which a table has the entries that are told.
    pub(crate) fn load(
        &self,
        table: TableId,
        tell: impl FnMut(
            &mut dyn FnMut(&[u8], &[u8]) -> sapwood_wal::Result<()>,
        ) -> sapwood_wal::Result<()>,
        loaded: impl FnOnce(Snapshot),
    ) -> Result<()> {
        self.wal.load(table, tell, loaded).map_err(|cause| self.named(cause))?;
        note(&self.last_failure, None);
        Ok(())
    }

    /// Starts the thread that writes checkpoints when they are due.
    fn log_thread(&self, options: &DbOptions) -> Result<JoinHandle<()>> {
        let (wal, last_failure) = (Arc::clone(&self.wal), Arc::clone(&self.last_failure));
        let rollups = self.rollups.clone();
        let interval = options.checkpoint_interval;
        let run = move || {
            // Each life of the database may have left a segment.
            rollups.merge();
            while wal.wait_until_due(interval) {
                if wal.bytes_since_checkpoint() > 0 {
                    // The next one may succeed; until then the log grows, and the figures say why.
                    note(&last_failure, wal.checkpoint_in_background().as_ref().err());
                }
                rollups.merge();
            }
        };
        let spawned = std::thread::Builder::new().name("sapwood-saves".to_owned()).spawn(run);
        spawned
            .map_err(|cause| Error::directory(self.directory.path(), "served by a thread", &cause))
    }

    fn journaled(&self, id: TableId, map: ChunkMap) -> Arc<ChunkMap> {
        Arc::new(match self.is_logged {
            true => map.with_journal(self.wal.journal(id)),
            false => map,
        })
    }

    /// Whether opening the database is about as fast as behind a checkpoint, which need not be written therefore.
    pub(crate) fn has_little(&self) -> bool {
        let snapshot_bytes = self.wal.snapshot_bytes();
        let most = LEFT_BYTES_MIN.max(snapshot_bytes / LEFT_PART);
        // Each opening begins a file, though it may have little to put there.
        let most_files = LEFT_FILES_MIN.max(snapshot_bytes / LEFT_FILES_PART);
        self.is_lazy
            && self.is_logged
            && self.wal.bytes_since_checkpoint() <= most
            && self.wal.log_bytes() <= most_files
    }

    /// Whether tables tell it their changes.
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged
    }

    pub(crate) fn wal(&self) -> &Wal {
        &self.wal
    }

    /// # Errors
    /// Why the log takes no change.
    pub(crate) fn check(&self) -> Result<()> {
        self.wal.check().map_err(|cause| self.named(cause))
    }

    /// Lets the checkpoints from here on be quick to open.
    pub(crate) fn begin_close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Notes that this thread loads a table; `None` while another table is loaded.
    pub(crate) fn begin_load(&self) -> Option<Loading> {
        let mut loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
        loader.is_none().then(|| {
            *loader = Some(thread::current().id());
            Loading(Arc::clone(&self.loader))
        })
    }

    /// Refuses what would wait for this thread.
    pub(crate) fn expect_no_load(&self) -> Result<()> {
        let loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
        match *loader == Some(thread::current().id()) {
            true => {
                let what = "this thread loads a table, and a checkpoint waits for it: finish the load before";
                Err(self.named(LogError::Table(what.to_owned())))
            }
            false => Ok(()),
        }
    }

    /// Writes a checkpoint of all tables of the log.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.expect_no_load()?;
        let done = self.wal.checkpoint();
        note(&self.last_failure, done.as_ref().err());
        done.map(drop).map_err(|cause| self.named(cause))
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.wal.sync().map_err(|cause| self.named(cause))
    }

    pub(crate) fn stats(&self) -> LogStats {
        let recovered = self.wal.recovered();
        let failure = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        LogStats {
            log_bytes: self.wal.log_bytes(),
            snapshot_bytes: self.wal.snapshot_bytes(),
            unsaved_bytes: self.wal.bytes_since_checkpoint(),
            refuses_changes: self.wal.check().err().map(|cause| cause.to_string()),
            lacks_room: self.wal.lacks_room(),
            failed_checkpoint: failure.as_ref().map(LogError::to_string),
            recovered_records: recovered.records,
            recovered_bytes: recovered.log_bytes + recovered.snapshot_bytes,
            recovery_time: self.recovery_time,
            cut_off: recovered.cut_off.as_ref().map(|(file, offset, bytes)| {
                let file = self.directory.log_path().join(file);
                format!("{}: a record of {bytes} bytes at byte {offset} is cut off", file.display())
            }),
        }
    }

    #[cold]
    pub(crate) fn named(&self, cause: LogError) -> Error {
        Error::Log { path: self.directory.log_path(), cause }
    }
}

impl Drop for DbLog {
    fn drop(&mut self) {
        self.wal.end_waiting();
        let thread = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Its panic was told.
            let _ended = thread.join();
        }
    }
}

/// Why an opening ended.
#[derive(Debug)]
pub(crate) enum Stopped {
    Log(LogError),
    Table(Error),
}

impl From<LogError> for Stopped {
    fn from(cause: LogError) -> Stopped {
        Stopped::Log(cause)
    }
}

impl Stopped {
    pub(crate) fn named(self, path: &Path) -> Error {
        match self {
            Stopped::Log(cause) => Error::Log { path: path.to_owned(), cause },
            Stopped::Table(error) => error,
        }
    }
}

/// The folder of the log of a directory that is open to be read, if it has one.
pub(crate) fn disk_to_read(directory: &Directory) -> Result<Option<Arc<dyn Disk>>> {
    let Some(disk) = directory.log_disk_to_read()? else { return Ok(None) };
    match Wal::is_on(&*disk) {
        Ok(is_there) => Ok(is_there.then_some(disk)),
        Err(cause) => Err(Error::Log { path: directory.log_path(), cause }),
    }
}

fn note(failure: &Mutex<Option<LogError>>, cause: Option<&LogError>) {
    *failure.lock().unwrap_or_else(PoisonError::into_inner) = cause.cloned();
}
