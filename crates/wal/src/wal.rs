//! The log and its tables: changes, checkpoints, durability.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use sapwood_disk::Disk;
use sapwood_disk::log::{Durability, Log, LogOptions, LogStart, Lsn};
use sapwood_engine::Journal;

use crate::appender::{Appender, TableJournal, lock};
use crate::error::{Error, Result};
use crate::frame::{Frame, TableId};
use crate::manifest::{self, Manifest};
use crate::snapshot::{self, Identity};

/// Most bytes of a table's name, and of its description.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// What the names of the log's parts begin with.
pub(crate) const LOG_PREFIX: &str = "wal";

/// The entries of a table, for snapshots.
pub trait Contents: Debug + Send + Sync {
    /// Tells every entry that is there from the beginning to the end of the call once, and others once
    /// or not at all, each as it was at some moment of it. No entry may be told before the journal of
    /// the table has heard of it.
    ///
    /// # Errors
    /// Those of `entry`, which end it, and of the table.
    fn for_each(&self, entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>;
}

/// How a log is made or opened.
#[derive(Debug, Clone)]
pub struct WalOptions {
    pub(crate) durability: Durability,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) id: u64,
}

impl Default for WalOptions {
    fn default() -> WalOptions {
        WalOptions { durability: Durability::Buffered, checkpoint_bytes: 256 << 20, id: 0 }
    }
}

impl WalOptions {
    /// What changes wait for.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> WalOptions {
        self.durability = durability;
        self
    }

    /// Bytes of the log after which a checkpoint is due, by default 256 MiB.
    #[must_use]
    pub fn checkpoint_bytes(mut self, bytes: u64) -> WalOptions {
        self.checkpoint_bytes = bytes;
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
}

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
    pub(crate) contents: Option<Arc<dyn Contents>>,
}

/// The checkpoint that counts. Held by the thread that writes the next.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) manifest: Manifest,
    /// A number that no file has or had.
    pub(crate) next_number: u64,
}

impl Wal {
    /// Whether a folder has a log.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_on(disk: &dyn Disk) -> Result<bool> {
        let names = disk.list().map_err(|cause| Error::io("list the files of the log", &cause))?;
        Ok(names.iter().any(|name| name == manifest::FILE))
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
        Ok(Wal::over(disk, options, log, tables, Current { manifest, next_number: 1 }))
    }

    pub(crate) fn over(
        disk: Arc<dyn Disk>,
        options: WalOptions,
        log: Log,
        tables: Tables,
        current: Current,
    ) -> Wal {
        let (tables, current) = (Mutex::new(tables), Mutex::new(current));
        Wal { disk, options, appender: Appender::new(log), tables, current }
    }

    /// A number for a table that is to be made.
    pub fn reserve(&self) -> TableId {
        let mut tables = lock(&self.tables);
        tables.next += 1;
        tables.next - 1
    }

    /// What a table tells its changes to. It does not keep the log open.
    pub fn journal(&self, table: TableId) -> Arc<dyn Journal> {
        Arc::new(TableJournal { table, appender: Arc::clone(&self.appender) })
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
        contents: Arc<dyn Contents>,
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
    pub fn adopt(&self, table: TableId, contents: Arc<dyn Contents>) {
        if let Some(open) = lock(&self.tables).open.get_mut(&table) {
            open.contents = Some(contents);
        }
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

    /// Whether the log takes changes. To be asked before one is made.
    ///
    /// # Errors
    /// Why it does not, from the first append or sync that failed on.
    pub fn check(&self) -> Result<()> {
        self.appender.check()
    }

    /// Waits for what the durability wants of the changes that this thread has made.
    ///
    /// # Errors
    /// Why the log does not have them, or not for good.
    pub fn settle(&self) -> Result<()> {
        match self.options.durability {
            Durability::Sync => self.sync(),
            Durability::Buffered | Durability::Interval(_) => self.check(),
        }
    }

    /// Waits until all changes last that were made before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<()> {
        self.appender.check()?;
        self.sync_to(self.appender.log.position().0)
    }

    fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.appender.log.sync(lsn).map_err(|cause| Error::io("sync the log", &cause))
    }

    /// Bytes of changes since the last checkpoint.
    pub fn bytes_since_checkpoint(&self) -> u64 {
        let begin = lock(&self.current).manifest.start.lsn;
        self.appender.log.position().0.saturating_sub(begin)
    }

    /// Whether the log has grown so long that the options want a checkpoint.
    pub fn is_checkpoint_due(&self) -> bool {
        // A thread that holds it writes one.
        let Ok(current) = self.current.try_lock() else { return false };
        let begin = current.manifest.start.lsn;
        self.appender.log.position().0.saturating_sub(begin) >= self.options.checkpoint_bytes
    }

    /// Bytes of the files of the log, without snapshots.
    pub fn log_bytes(&self) -> u64 {
        self.appender.log.file_bytes()
    }

    /// Writes the entries of all tables to files while changes go on, and gives up the log before. A
    /// call that comes meanwhile waits, and writes another.
    ///
    /// # Errors
    /// [`Error::Io`], those of [`Contents::for_each`]. The checkpoint before counts, or this one, and the
    /// log goes on.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let mut current = lock(&self.current);
        self.appender.check()?;
        let (position, next_table, tables) = {
            let tables = lock(&self.tables);
            (self.appender.log.position(), tables.next, tables.open.clone())
        };
        let (lsn, part) = position;
        let number = current.next_number;
        // Whatever becomes of it, its files may be there.
        current.next_number += 1;
        let (mut entries, mut bytes) = (0, 0);
        for (&table, open) in &tables {
            let Some(contents) = &open.contents else {
                return Err(Error::Table(format!("table {} is being opened", open.name)));
            };
            let identity = Identity { log: self.options.id, checkpoint: number, table };
            let mut writer = snapshot::Writer::create(&*self.disk, &identity)?;
            contents.for_each(&mut |key, value| {
                entries += 1;
                writer.entry(key, value)
            })?;
            bytes += writer.finish()?;
        }
        // The snapshots have changes up to here, and would be no moment of the past without the others
        // before them.
        let durable = self.appender.log.position().0;
        self.sync_to(durable)?;
        let tables = tables.into_iter().map(|(id, open)| {
            let OpenTable { name, description, contents: _ } = open;
            manifest::Table { id, name, description }
        });
        let manifest = Manifest {
            log: self.options.id,
            checkpoint: number,
            start: LogStart { lsn, part, durable },
            next_table,
            tables: tables.collect(),
        };
        manifest.write(&*self.disk)?;
        current.manifest = manifest;
        let log = &self.appender.log;
        log.forget_before(part).map_err(|cause| Error::io("remove old parts", &cause))?;
        remove_snapshots_but(&*self.disk, number)?;
        Ok(Checkpoint { number, entries, bytes })
    }
}

/// Removes the snapshots of all checkpoints but one.
pub(crate) fn remove_snapshots_but(disk: &dyn Disk, number: u64) -> Result<()> {
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
