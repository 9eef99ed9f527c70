//! The log and its tables: changes, checkpoints, durability.
//!
//! *Invariants*
//! - I-SCANNED: what [`Entries::for_each`] tells has each change of which the journal had heard when it began.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use sapwood_disk::Disk;
use sapwood_disk::log::{Durability, Log, LogOptions, LogStart, Lsn, SharedLog, Synced};
use sapwood_engine::Journal;

use crate::appender::{Appender, LogGroup, LogRoom, Records, TableJournal, TableLog, lock};
use crate::error::{Error, Result};
use crate::frame::{Frame, TableId};
use crate::manifest::{self, Manifest};
use crate::pace::Pace;
use crate::snapshot::{self, Cut, Identity, Snapshot, Writing};

/// Most bytes of a table's name, and of its description.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// What the names of the log's parts begin with.
pub(crate) const LOG_PREFIX: &str = "wal";

/// How checkpoints of the log have the entries of a table.
#[derive(Debug, Clone)]
pub enum Contents {
    /// The log writes them to a snapshot of its own.
    Entries(Arc<dyn Entries>),
    /// The engine writes checkpoints of the table.
    Checkpoints(Arc<dyn Checkpoints>),
}

/// The checkpoints of a table whose engine writes them itself.
pub trait Checkpoints: Debug + Send + Sync {
    /// Writes one that has every change of which the journal of the table heard before the call; its
    /// number, or that of the last one where nothing has changed since. It may have later changes, too:
    /// the engine lets the journal [sync](Journal::sync) those before the checkpoint counts, and its
    /// moment is [apart](Wal::apart) from changes that go together.
    ///
    /// # Errors
    /// [`Error::Contents`].
    fn checkpoint(&self) -> Result<u64>;
}

/// The entries of a table, for snapshots.
pub trait Entries: Debug + Send + Sync {
    /// Tells every entry that is there from the beginning to the end of the call once, and others once
    /// or not at all, each as it was at some moment of it. No entry may be told before the journal of
    /// the table has heard of it, and none as it was before a change of which the journal had heard when the
    /// call began.
    ///
    /// # Errors
    /// Those of `entry`, which end it, and of the table.
    fn for_each(&self, entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>;

    /// How entries are cut into pieces, of which those that are alike lie together in snapshots.
    fn cut(&self) -> Option<&dyn Cut> {
        None
    }
}

/// Tells entries.
type Tell<'t> = dyn FnMut(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> + 't;

/// What opening a log has read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Records of the log.
    pub records: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of snapshots.
    pub snapshot_bytes: u64,
    /// The record that a crash had cut off at the end of the log: its file, at which byte, and how many.
    pub cut_off: Option<(String, u64, u64)>,
}

/// How a log is made or opened.
#[derive(Debug, Clone)]
pub struct WalOptions {
    pub(crate) durability: Durability,
    pub(crate) unsynced_bytes: u64,
    pub(crate) checkpoint_bytes: u64,
    checkpoint_rate: Option<u64>,
    pub(crate) id: u64,
}

impl Default for WalOptions {
    fn default() -> WalOptions {
        WalOptions {
            durability: Durability::Buffered,
            unsynced_bytes: 64 << 20,
            checkpoint_bytes: 256 << 20,
            checkpoint_rate: None,
            id: 0,
        }
    }
}

impl WalOptions {
    /// What changes wait for.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> WalOptions {
        self.durability = durability;
        self
    }

    /// Most bytes of the log that may not last while changes wait for no sync, for
    /// [`Durability::Interval`]; a change beyond them waits for one. By default 64 MiB.
    #[must_use]
    pub fn unsynced_bytes(mut self, bytes: u64) -> WalOptions {
        self.unsynced_bytes = bytes;
        self
    }

    /// Bytes of the log after which a checkpoint is due, by default 256 MiB.
    #[must_use]
    pub fn checkpoint_bytes(mut self, bytes: u64) -> WalOptions {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Bytes of snapshots that [`Wal::checkpoint_in_background`] writes a second, at most; by default as fast
    /// as the disk takes them.
    #[must_use]
    pub fn checkpoint_rate(mut self, bytes_per_second: u64) -> WalOptions {
        self.checkpoint_rate = Some(bytes_per_second);
        self
    }

    /// A number that tells the files of this log from those of others; the maker draws it at random.
    #[must_use]
    pub fn id(mut self, id: u64) -> WalOptions {
        self.id = id;
        self
    }

    pub(crate) fn log(&self) -> LogOptions {
        let sync_interval = match self.durability {
            Durability::Interval(interval) => Some(interval),
            Durability::Buffered | Durability::Sync => None,
        };
        LogOptions { prefix: LOG_PREFIX.to_owned(), sync_interval, ..LogOptions::default() }
    }
}

/// A checkpoint that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Its number; a later one has a higher.
    pub number: u64,
    /// Entries of all tables.
    pub entries: u64,
    /// Bytes of the snapshots.
    pub bytes: u64,
}

/// The log of tables that live in memory. Threads share it.
#[derive(Debug)]
pub struct Wal {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: WalOptions,
    pub(crate) appender: Arc<Appender>,
    /// Taken before the appender's lock, or without it.
    pub(crate) tables: Mutex<Tables>,
    pub(crate) current: Mutex<Current>,
    /// Of `current`, for those that must not wait for a checkpoint: where its log begins, and the bytes of its
    /// snapshots.
    pub(crate) known: [AtomicU64; 2],
    /// Held while a checkpoint is written, before all else.
    pub(crate) files: Mutex<()>,
    pub(crate) recovered: Recovered,
    pub(crate) pace: Option<Pace>,
}

/// No file of the log goes away, and none is written but its last part, while this is held.
#[derive(Debug)]
pub struct FilesHeld<'a>(#[expect(dead_code, reason = "it is held")] MutexGuard<'a, ()>);

#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) next: TableId,
    pub(crate) open: BTreeMap<TableId, OpenTable>,
}

#[derive(Debug, Clone)]
pub(crate) struct OpenTable {
    pub(crate) name: String,
    pub(crate) description: Vec<u8>,
    /// None before the table was given back by the caller of [`Wal::open`].
    pub(crate) contents: Option<Contents>,
}

/// The checkpoint that counts. Held by the thread that writes the next.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) manifest: Manifest,
    /// A number that no file has or had.
    pub(crate) next_number: u64,
    /// Bytes of its snapshots.
    pub(crate) snapshot_bytes: u64,
}

impl Wal {
    /// Whether a folder has a log.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::CorruptFile`] where its manifest is missing: making a log writes that last, so that
    /// changes and snapshots without one are not of an attempt that was not finished.
    pub fn is_on(disk: &dyn Disk) -> Result<bool> {
        let names = disk.list().map_err(|cause| Error::io("list the files of the log", &cause))?;
        if names.iter().any(|name| name == manifest::FILE) {
            return Ok(true);
        }
        let snapshot = names.into_iter().find(|name| snapshot::checkpoint_of(name).is_some());
        let found = snapshot.map_or_else(|| has_records(disk), |name| Ok(Some(name)));
        match found.map_err(|cause| Error::unread(&cause))? {
            None => Ok(false),
            Some(file) => {
                let what = format!("it is missing, and there is {file}, which needs it");
                Err(Error::corrupt(manifest::FILE, 0, what))
            }
        }
    }

    /// Makes a log without tables, in a folder that has none. Files of an unfinished attempt are
    /// replaced.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(disk: Arc<dyn Disk>, options: WalOptions) -> Result<Wal> {
        let log = Log::create(Arc::clone(&disk), options.id, options.log(), 0)
            .map_err(|cause| Error::io("make the log", &cause))?;
        let (lsn, part) = log.position();
        let manifest = Manifest {
            log: options.id,
            checkpoint: 0,
            start: LogStart { lsn, part, durable: lsn },
            next_table: 1,
            tables: Vec::new(),
        };
        manifest.write(&*disk)?;
        let tables = Tables { next: 1, open: BTreeMap::new() };
        Ok(Wal::over(
            disk,
            options,
            log,
            tables,
            Current { manifest, next_number: 1, snapshot_bytes: 0 },
        ))
    }

    pub(crate) fn over(
        disk: Arc<dyn Disk>,
        options: WalOptions,
        log: Log,
        tables: Tables,
        current: Current,
    ) -> Wal {
        let due_at = current.manifest.start.lsn.saturating_add(options.checkpoint_bytes);
        let known = [current.manifest.start.lsn, current.snapshot_bytes].map(AtomicU64::new);
        let (tables, current) = (Mutex::new(tables), Mutex::new(current));
        let appender = Appender::new(log, due_at);
        let (files, recovered) = (Mutex::default(), Recovered::default());
        let pace = options.checkpoint_rate.map(Pace::new);
        Wal { disk, options, appender, tables, current, known, files, recovered, pace }
    }

    /// What opening it has read: nothing of a log that was made.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// A number for a table that is to be made.
    pub fn reserve(&self) -> TableId {
        let mut tables = lock(&self.tables);
        tables.next += 1;
        tables.next - 1
    }

    /// What a table tells its changes to. It does not keep the log open.
    pub fn journal(&self, table: TableId) -> Arc<dyn Journal> {
        Arc::new(self.table_journal(table))
    }

    /// What a table's engine appends records to that it keeps in this log: opening tells each as an
    /// [`Effect::Put`](sapwood_engine::Effect::Put) of no key. Records that end a group are one with the changes of
    /// their thread that go [together](Self::together). The table has the name [`RECORDS`](crate::RECORDS), and
    /// checkpoints of its own.
    pub fn shared_log(&self, table: TableId) -> Arc<dyn SharedLog> {
        let WalOptions { id, unsynced_bytes, .. } = self.options;
        Arc::new(TableLog { log: id, journal: self.table_journal(table), unsynced_bytes })
    }

    /// What an engine takes records down in that changes its memory only once a record is there. Opening tells each
    /// as of a [`shared_log`](Self::shared_log), whose name the table has, too.
    pub fn records(&self, table: TableId) -> Records {
        Records(self.table_journal(table))
    }

    fn table_journal(&self, table: TableId) -> TableJournal {
        TableJournal { table, appender: Arc::clone(&self.appender) }
    }

    /// The number that tells the files of this log from those of others.
    pub fn id(&self) -> u64 {
        self.options.id
    }

    /// Makes a table, which is empty and has told nothing yet; its number is from
    /// [`reserve`](Self::reserve). Opening the log tells its name and its description. It lasts, whatever
    /// the durability.
    ///
    /// # Errors
    /// [`Error::Table`], [`Error::Io`].
    pub fn create_table(
        &self,
        table: TableId,
        name: &str,
        description: &[u8],
        contents: Contents,
    ) -> Result<()> {
        if name.len() > TEXT_BYTES_MAX || description.len() > TEXT_BYTES_MAX {
            let what = format!("names and descriptions have at most {TEXT_BYTES_MAX} bytes");
            return Err(Error::Table(what));
        }
        let lsn = {
            let mut tables = lock(&self.tables);
            let lsn = self.appender.append(&Frame::Create { table, name, description })?;
            let open = OpenTable {
                name: name.to_owned(),
                description: description.to_vec(),
                contents: Some(contents),
            };
            tables.open.insert(table, open);
            lsn
        };
        self.sync_to(lsn)
    }

    /// Gives back a table that was told while the log was opened, with all its entries in it.
    pub fn adopt(&self, table: TableId, contents: Contents) {
        if let Some(open) = lock(&self.tables).open.get_mut(&table) {
            open.contents = Some(contents);
        }
    }

    /// Replaces what checkpoints have of a table: once it returns, none uses what was there before. It
    /// waits for one that is being written.
    ///
    /// # Errors
    /// [`Error::Table`] among [changes that go together](Self::together), for which the checkpoint waits
    /// that is being written.
    pub fn replace(&self, table: TableId, contents: Contents) -> Result<()> {
        let _none_runs = match self.current.try_lock() {
            Ok(current) => current,
            Err(TryLockError::Poisoned(current)) => current.into_inner(),
            Err(TryLockError::WouldBlock) if self.appender.is_together() => {
                return Err(Error::Table("a checkpoint of it is being written".to_owned()));
            }
            Err(TryLockError::WouldBlock) => lock(&self.current),
        };
        self.adopt(table, contents);
        Ok(())
    }

    /// The position behind all changes that were told before.
    pub fn position(&self) -> Lsn {
        self.appender.log.position().0
    }

    /// Notes that a checkpoint of a table's engine counts which has all changes before a
    /// [`position`](Self::position): opening the log tells none of them.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn note_saved(&self, table: TableId, before: Lsn) -> Result<()> {
        self.appender.append(&Frame::Saved { table, before }).map(drop)
    }

    /// Ends a table. It lasts, whatever the durability.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn drop_table(&self, table: TableId) -> Result<()> {
        let lsn = {
            let mut tables = lock(&self.tables);
            let lsn = self.appender.append(&Frame::Drop { table })?;
            tables.open.remove(&table);
            lsn
        };
        self.sync_to(lsn)
    }

    /// Refuses after a failure of the log. To be called before a change is made.
    ///
    /// # Errors
    /// Why it does not, from the first sync that failed on.
    pub fn check(&self) -> Result<()> {
        self.appender.check()
    }

    /// True after a change that was refused for lack of room, until one succeeds.
    pub fn lacks_room(&self) -> bool {
        self.appender.lacks_room()
    }

    /// Lets the log take no more changes, those of this thread that go together and are not appended yet
    /// included: memory has what the log must not have.
    pub fn refuse(&self, cause: Error) {
        self.appender.refuse(cause);
    }

    /// Runs changes of this thread, to any of the tables: after a crash all of them are there, or none.
    /// Until they have run, no other thread may change the same entries. A panic ends them where it
    /// comes.
    pub fn together<R>(&self, changes: impl FnOnce() -> R) -> R {
        let _group = self.appender.group(false);
        changes()
    }

    /// Whether this thread is among changes that go [together](Self::together), which are appended at
    /// their end.
    pub fn is_together(&self) -> bool {
        self.appender.is_together()
    }

    /// Appends what this thread's changes that go [together](Self::together) are so far, for the caller that began
    /// them: while no other thread can change the same entries, whose changes come behind then.
    pub fn append_group(&self) {
        self.appender.append_group();
    }

    /// Keeps room in the log for changes of this thread: for so many, whose keys and values have so many bytes together. A full
    /// disk refuses none of them until the room is dropped.
    ///
    /// # Errors
    /// [`Error::NoRoom`].
    pub fn room(&self, bytes: usize, changes: usize) -> Result<LogRoom<'_>> {
        self.appender.room(bytes, changes)
    }

    /// The place of the next change of this thread among those that go [together](Self::together),
    /// for [`take_back`](Self::take_back).
    pub fn mark(&self) -> usize {
        self.appender.mark()
    }

    /// Takes back, by a closure, all changes of this thread that it has made behind a
    /// [mark](Self::mark): the log has neither.
    pub fn take_back<R>(&self, mark: usize, take_back: impl FnOnce() -> R) -> R {
        self.appender.take_back(mark, take_back)
    }

    /// Begins changes of this thread that are one record of the log, as [`together`](Self::together) runs them; they end when
    /// the group is dropped. Among changes that already go together none begins.
    ///
    /// A thread that `holds` something for which other groups may wait does not wait behind a thread that waits to be
    /// [apart](Self::apart): that one waits for the others, and they would wait for this one.
    pub fn group(&self, holds: bool) -> Option<LogGroup<'_>> {
        self.appender.group(holds)
    }

    /// Runs something short while no changes that go together are made by half: a table with checkpoints of
    /// its own takes the moment of one there. It waits for those that run, and others wait for it.
    ///
    /// # Errors
    /// [`Error::Table`] among such changes of this thread.
    pub fn apart<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        self.appender.apart(work)
    }

    /// Waits for what the durability of the log wants of the changes that this thread has made.
    ///
    /// # Errors
    /// Why the log does not have them, or not for good.
    #[inline]
    pub fn settle(&self) -> Result<()> {
        self.settle_as(self.options.durability)
    }

    /// Waits for what another durability wants of them. [`Durability::Interval`] is as long as that of
    /// the log, and [`Durability::Buffered`] where the log has none.
    ///
    /// # Errors
    /// As of [`settle`](Self::settle).
    #[inline]
    pub fn settle_as(&self, durability: Durability) -> Result<()> {
        self.appender.check()?;
        match durability {
            Durability::Sync => self.sync_to(self.appender.told()),
            Durability::Interval(_) => {
                let bound = self.appender.bound_unsynced(self.options.unsynced_bytes);
                bound.map_err(|cause| Error::io("sync the log", &cause))
            }
            Durability::Buffered => Ok(()),
        }
    }

    /// A position behind the changes that this thread has made: the next one, or a later one of a thread
    /// that makes changes to other logs, too.
    pub fn told(&self) -> Lsn {
        self.appender.told()
    }

    /// Whether the log is known to last up to a position.
    pub fn is_durable(&self, lsn: Lsn) -> bool {
        self.appender.log.durable() >= lsn
    }

    /// Waits until the log lasts up to a position.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.appender.log.sync(lsn).map_err(|cause| Error::io("sync the log", &cause))
    }

    /// The same as a future, which shares syncs with all others and needs no runtime. Its error is that of
    /// the system.
    pub fn synced(&self, lsn: Lsn) -> Synced {
        self.appender.log.synced(lsn)
    }

    /// Replaces the time of [`Durability::Interval`], or gives it where the log was opened with another
    /// level; `None` for no such time.
    pub fn set_sync_interval(&self, interval: Option<Duration>) {
        self.appender.log.set_sync_interval(interval);
    }

    /// What changes wait for.
    pub fn durability(&self) -> Durability {
        self.options.durability
    }

    /// Waits until all changes last that were made before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<()> {
        self.appender.check()?;
        self.sync_to(self.appender.end())
    }

    /// Bytes of changes since the last checkpoint.
    pub fn bytes_since_checkpoint(&self) -> u64 {
        // Relaxed: figures, as of a moment.
        let begin = self.known[0].load(Ordering::Relaxed);
        self.appender.log.position().0.saturating_sub(begin)
    }

    /// Waits until the log has grown so long that the options want a checkpoint, or some time has
    /// passed: true; false once [`end_waiting`](Self::end_waiting) was called.
    pub fn wait_until_due(&self, at_most: Option<Duration>) -> bool {
        self.appender.wait_until_due(at_most)
    }

    /// Lets threads go that wait for the next checkpoint to be due, now and later.
    /// A checkpoint that is being written goes on without a pause.
    pub fn end_waiting(&self) {
        self.appender.end_waiting();
        if let Some(pace) = &self.pace {
            pace.end();
        }
    }

    /// Lets no checkpoint be written as long as the answer lives; waits for one that is being written.
    pub fn hold_files(&self) -> FilesHeld<'_> {
        let _hurry = self.pace.as_ref().map(Pace::hurry);
        FilesHeld(lock(&self.files))
    }

    /// Bytes of the files of the log, without snapshots.
    pub fn log_bytes(&self) -> u64 {
        self.appender.log.file_bytes()
    }

    /// Bytes of the snapshots of the last checkpoint.
    pub fn snapshot_bytes(&self) -> u64 {
        self.known[1].load(Ordering::Relaxed)
    }

    /// Writes the entries of all tables to files while changes go on, and gives up the log before. A
    /// call that comes meanwhile waits, and writes another.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Contents`]. The checkpoint before counts, or this one, and the log goes on;
    /// the next one is due when a quarter as much has been appended as the options say. [`Error::Table`] among
    /// [changes that go together](Self::together), for which a checkpoint waits.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        self.appender.expect_apart()?;
        // One that is being written in the background goes on without a pause, too.
        let _hurry = self.pace.as_ref().map(Pace::hurry);
        self.checkpoint_in_background()
    }

    /// The same, at the [rate](WalOptions::checkpoint_rate) of the options.
    ///
    /// # Errors
    /// As of [`checkpoint`](Self::checkpoint).
    pub fn checkpoint_in_background(&self) -> Result<Checkpoint> {
        let _files = lock(&self.files);
        self.write_next(None)
    }

    /// Writes a checkpoint in which a table without entries has those that are told, in the order of their keys. Its
    /// snapshot is given to `loaded`, and from then on the table's [`Contents`] are to tell the same. It takes as long
    /// as they are told, and other checkpoints wait.
    ///
    /// # Errors
    /// As of [`checkpoint`](Self::checkpoint), and those of `tell`: then the table is as before. [`Error::Table`] of a
    /// table that has ended.
    pub fn load(
        &self,
        table: TableId,
        mut tell: impl FnMut(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>,
        loaded: impl FnOnce(Snapshot),
    ) -> Result<()> {
        self.appender.expect_apart()?;
        let _hurry = self.pace.as_ref().map(Pace::hurry);
        let _files = lock(&self.files);
        let Checkpoint { number, .. } = self.write_next(Some((table, &mut tell)))?;
        if !lock(&self.tables).open.contains_key(&table) {
            return Err(Error::Table(format!("table {table} has ended")));
        }
        let identity = Identity { log: self.options.id, checkpoint: number, table };
        loaded(snapshot::open(&*self.disk, &identity)?.expect("it is of this version"));
        Ok(())
    }

    /// Writes a checkpoint. The caller holds `files`.
    fn write_next(&self, load: Option<(TableId, &mut Tell<'_>)>) -> Result<Checkpoint> {
        let mut current = lock(&self.current);
        let done = self.write_checkpoint(&mut current, load);
        let (from, bytes) = match done {
            Ok(_) => (current.manifest.start.lsn, self.options.checkpoint_bytes),
            Err(_) => (self.appender.end(), self.options.checkpoint_bytes / 4),
        };
        self.appender.set_due(from.saturating_add(bytes));
        done
    }

    fn write_checkpoint(
        &self,
        current: &mut Current,
        load: Option<(TableId, &mut Tell<'_>)>,
    ) -> Result<Checkpoint> {
        self.appender.check()?;
        // INVARIANT: I-SCANNED: the tables are scanned behind this moment, so that they show what the log gives up.
        let (position, next_table, tables) = {
            let tables = lock(&self.tables);
            (self.appender.log.position(), tables.next, tables.open.clone())
        };
        let (lsn, part) = position;
        let number = current.next_number;
        // Whatever becomes of it, its files may be there.
        current.next_number += 1;
        let is_load = load.is_some();
        let prepared = self.write_snapshots(number, tables, load).and_then(|written| {
            let Written { tables, durable, .. } = written;
            let start = LogStart { lsn, part, durable };
            let log = self.options.id;
            let manifest = Manifest { log, checkpoint: number, start, next_table, tables };
            manifest.prepare(&*self.disk)?;
            Ok((manifest, written.entries, written.bytes))
        });
        if prepared.is_err() && is_load {
            self.give_up_snapshots(number);
        }
        let (manifest, entries, bytes) = prepared?;
        Manifest::publish(&*self.disk)?;
        self.known[0].store(lsn, Ordering::Relaxed);
        self.known[1].store(bytes, Ordering::Relaxed);
        current.manifest = manifest;
        current.snapshot_bytes = bytes;
        let log = &self.appender.log;
        log.forget_before(part).map_err(|cause| Error::io("remove old parts", &cause))?;
        remove_snapshots_but(&*self.disk, number)?;
        Ok(Checkpoint { number, entries, bytes })
    }

    /// Writes the snapshots of a checkpoint, and lets the log last as far as they are.
    fn write_snapshots(
        &self,
        number: u64,
        tables: BTreeMap<TableId, OpenTable>,
        mut load: Option<(TableId, &mut Tell<'_>)>,
    ) -> Result<Written> {
        let (mut entries, mut bytes) = (0, 0);
        let loaded = load.as_ref().map(|(table, _)| *table);
        let mut saved = Vec::with_capacity(tables.len());
        for (id, open) in tables {
            let OpenTable { name, description, contents } = open;
            let own = match contents {
                None => return Err(Error::Table(format!("table {name} is being opened"))),
                Some(Contents::Checkpoints(own)) => match own.checkpoint() {
                    // It has ended meanwhile, with its files. The log says so behind where the checkpoint begins.
                    Err(_) if !lock(&self.tables).open.contains_key(&id) => continue,
                    done => Some(done?),
                },
                Some(Contents::Entries(told)) => {
                    let identity = Identity { log: self.options.id, checkpoint: number, table: id };
                    let writing = Writing { pace: self.pace.as_ref(), cut: told.cut() };
                    let tell = |entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>| match &mut load {
                        Some((loaded, tell)) if *loaded == id => tell(entry),
                        _ => told.for_each(entry),
                    };
                    let written = snapshot::write(&*self.disk, &identity, writing, tell)?;
                    entries += written.0;
                    bytes += written.1;
                    None
                }
            };
            saved.push(manifest::Table { id, name, description, own });
        }
        if let Some(table) = loaded {
            // Before the manifest counts, and so before any other change of the table.
            self.appender.append(&Frame::loaded(table))?;
        }
        // The snapshots have changes up to here, and would be no moment of the past without the others
        // before them, and beside them.
        self.appender.apart(|| ())?;
        let durable = self.appender.log.position().0;
        self.sync_to(durable)?;
        Ok(Written { tables: saved, entries, bytes, durable })
    }

    /// Removes the snapshots of a checkpoint that no manifest has. Those that cannot go now go with the next checkpoint, or
    /// when the log is opened.
    fn give_up_snapshots(&self, number: u64) {
        let remove = || {
            for name in self.disk.list()? {
                if snapshot::checkpoint_of(&name) == Some(number) {
                    self.disk.remove(&name)?;
                }
            }
            // No file is to come back with the number.
            self.disk.sync()
        };
        let _left: io::Result<()> = remove();
    }
}

/// What a checkpoint has before its manifest is written.
struct Written {
    tables: Vec<manifest::Table>,
    entries: u64,
    bytes: u64,
    /// Up to where the log lasts.
    durable: Lsn,
}

/// What there is of a log without a manifest, if that has records.
fn has_records(disk: &dyn Disk) -> io::Result<Option<String>> {
    let Some((id, start)) = Log::oldest_part(disk, LOG_PREFIX)? else { return Ok(None) };
    let first = format!("a record in part {} of the log", start.part);
    let mut found = |_lsn: Lsn, _record: &[u8]| Err(Looked::AtRecord);
    match Log::survey(disk, id, LOG_PREFIX, start, false, &mut found) {
        Ok(survey) => Ok(survey.damage.first().map(|_| first)),
        Err(Looked::AtRecord) => Ok(Some(first)),
        Err(Looked::InVain(cause)) => Err(cause),
    }
}

/// Why looking for a record ended.
enum Looked {
    AtRecord,
    InVain(io::Error),
}

impl From<io::Error> for Looked {
    fn from(cause: io::Error) -> Looked {
        Looked::InVain(cause)
    }
}

/// Removes the snapshots of all checkpoints but one; not while a reader may want them, which leaves them to the next
/// call.
pub(crate) fn remove_snapshots_but(disk: &dyn Disk, number: u64) -> Result<()> {
    if disk.is_being_read() {
        return Ok(());
    }
    let remove = || {
        for name in disk.list()? {
            if snapshot::checkpoint_of(&name).is_some_and(|of| of != number) {
                disk.remove(&name)?;
            }
        }
        Ok(())
    };
    remove().map_err(|cause| Error::io("remove old snapshots", &cause))
}
