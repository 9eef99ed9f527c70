//! What can be chosen when a database is opened.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use sapwood_disk::DiskReads;
use sapwood_ptree::PoolOptions;
use sapwood_wal::WalOptions;

use crate::Durability;

/// Options of a [`Db`](crate::Db): what changes wait for, and what tree tables may take.
///
/// ```
/// use sapwood::{Db, DbOptions, Durability, TreeTableOptions};
///
/// # let directory = tempfile::tempdir().expect("a directory for the example");
/// # let path = directory.path();
/// let db = Db::open_with(path, DbOptions::default().durability(Durability::Sync))?;
/// let orders = db.create_tree_table("orders", TreeTableOptions::default())?;
/// orders.put(b"1", b"an oak")?; // Survives power loss from here on.
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DbOptions {
    pool: PoolOptions,
    log: WalOptions,
    pub(crate) checkpoint_interval: Option<Duration>,
    pub(crate) is_logged: bool,
    pub(crate) is_lazy: bool,
    pub(crate) on_recovery: OnRecovery,
    /// Threads that do again what the log tells; by default as many as the machine has processors.
    pub(crate) recovery_threads: Option<NonZero<usize>>,
    pub(crate) disk_reads: DiskReads,
}

/// How far opening a database has come with reading its log ([`DbOptions::on_recovery`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryProgress {
    /// Bytes of checkpoints of ordered tables and of the log that were read.
    pub bytes: u64,
    /// Bytes of them that there are.
    pub all_bytes: u64,
}

/// What is told of it.
#[derive(Clone, Default)]
pub(crate) struct OnRecovery(Option<Arc<dyn Fn(RecoveryProgress) + Send + Sync>>);

impl OnRecovery {
    pub(crate) fn tell(&self, bytes: u64, all_bytes: u64) {
        if let Some(told) = &self.0 {
            told(RecoveryProgress { bytes, all_bytes });
        }
    }
}

impl std::fmt::Debug for OnRecovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "told" } else { "not told" })
    }
}

/// The time after which a change lasts by default.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

impl Default for DbOptions {
    fn default() -> Self {
        let options = Self {
            pool: PoolOptions::default(),
            log: WalOptions::default(),
            checkpoint_interval: None,
            is_logged: true,
            is_lazy: false,
            on_recovery: OnRecovery::default(),
            recovery_threads: None,
            disk_reads: DiskReads::default(),
        };
        options.durability(Durability::Interval(SYNC_INTERVAL))
    }
}

impl DbOptions {
    /// What changes wait for, by default [`Durability::Interval`] of 100 ms: for nothing. They survive
    /// the end of the process, however that comes; a power loss takes those of the last 100 ms, and of
    /// the sync that is under way.
    ///
    /// A table may have another level ([`OrderedTable::with_durability`](crate::OrderedTable::with_durability)),
    /// or none ([`OrderedTableOptions::volatile`](crate::OrderedTableOptions::volatile)).
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions, Durability};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().durability(Durability::Buffered))?;
    /// db.sync()?; // Now they survive power loss, too.
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.pool = self.pool.durability(durability);
        self.log = self.log.durability(durability);
        self
    }

    /// Most bytes of the log that a power loss may take while changes wait for nothing
    /// ([`Durability::Interval`]); a change beyond them waits for a sync. By default 64 MiB.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().unsynced_bytes(1 << 20))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn unsynced_bytes(mut self, bytes: u64) -> Self {
        self.log = self.log.unsynced_bytes(bytes);
        self
    }

    /// Bytes of the log after which a checkpoint is written, while changes go on; by default 256 MiB.
    /// Opening the database reads the checkpoint, and that much of the log at most about.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().checkpoint_bytes(16 << 20))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoint_bytes(mut self, bytes: u64) -> Self {
        self.log = self.log.checkpoint_bytes(bytes);
        self
    }

    /// The time after which a checkpoint is written if anything has changed; by default it is by
    /// [bytes](Self::checkpoint_bytes) alone.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # use std::time::Duration;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let options = DbOptions::default().checkpoint_interval(Duration::from_secs(300));
    /// let db = Db::open_with(directory.path(), options)?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoint_interval(mut self, interval: Duration) -> Self {
        self.checkpoint_interval = Some(interval);
        self
    }

    /// Bytes of ordered tables that checkpoints write a second, at most, while they come by themselves; by default as
    /// fast as the disk takes them. One that a caller waits for ([`Db::checkpoint`](crate::Db::checkpoint),
    /// [`Db::close`](crate::Db::close)) is written as fast as it can be.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().checkpoint_rate(50_000_000))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoint_rate(mut self, bytes_per_second: u64) -> Self {
        self.log = self.log.checkpoint_rate(bytes_per_second);
        self
    }

    /// By what batches over hash tables read what lies on the disk. Default: [`DiskReads::Auto`], by io_uring where
    /// the system has it and permits it, which comes nearer to the disk's own rate, else by threads. Choose
    /// [`DiskReads::Threads`] where io_uring is not to be tried; [`HashStats::reads_by`](crate::HashStats::reads_by)
    /// says what is in use.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions, DiskReads, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().disk_reads(DiskReads::Threads))?;
    /// let table = db.create_hash_table("t", HashTableOptions::default())?;
    /// assert_eq!(table.stats().reads_by, "threads");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn disk_reads(mut self, reads: DiskReads) -> Self {
        self.disk_reads = reads;
        self
    }

    /// Bytes of memory that tree tables keep for themselves; by default half of the machine's. What
    /// lies beyond comes from their file, through the system's page cache.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().tree_memory(64 << 20))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn tree_memory(mut self, bytes: u64) -> Self {
        self.pool = self.pool.memory_bytes(bytes);
        self
    }

    /// Bytes that all tree tables may have, at most.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions, TreeTableOptions};
    /// let db = Db::in_memory_with(DbOptions::default().tree_limit(8 << 20));
    /// let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(table.put(b"k", vec![0; 16 << 20]).is_err());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn tree_limit(mut self, bytes: u64) -> Self {
        self.pool = self.pool.limit_bytes(bytes);
        self
    }

    /// Changes are not logged, and last with the next checkpoint alone ([`Db::checkpoint`](crate::Db::checkpoint),
    /// [`Db::close`](crate::Db::close)): for loading many entries, which is faster so, and leaves all of
    /// them or none. Tables themselves are made and dropped at once. It does not concern tree tables.
    ///
    /// ```
    /// use sapwood::{Db, DbOptions, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let db = Db::open_with(path, DbOptions::default().without_log())?;
    /// let words = db.create_ordered_table("words", OrderedTableOptions::default())?;
    /// words.put_many(&[("acorn", "1"), ("oak", "2")])?;
    /// drop(words);
    /// db.close()?;
    ///
    /// assert_eq!(Db::open(path)?.ordered_table("words")?.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn without_log(mut self) -> Self {
        self.is_logged = false;
        self
    }

    /// Leaves the entries of ordered tables in their checkpoint until they are used: for a program that changes little
    /// and ends, as the command line does. A change reads the few thousand neighbours of its key, a get or a scan what
    /// it needs; what needs a table as a whole, as a [query](crate::OrderedTable::query), reads all of it the first time.
    /// Damage is told by what reads it, and not when the database is opened. Tables with a memory budget are read when
    /// it is opened, as all tables are without this, and [tables that are open to be read](crate::Db::open_read_only) never are.
    ///
    /// ```
    /// use sapwood::{Db, DbOptions, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let db = Db::open(path)?;
    /// let words = db.create_ordered_table("words", OrderedTableOptions::default())?;
    /// words.put_many(&[("acorn", "1"), ("oak", "2")])?;
    /// drop(words);
    /// db.close()?;
    ///
    /// let db = Db::open_with(path, DbOptions::default().lazy())?;
    /// let words = db.ordered_table("words")?;
    /// words.put("elm", "3")?;
    /// assert_eq!(words.len()?, 3);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn lazy(mut self) -> Self {
        self.is_lazy = true;
        self
    }

    /// Calls a function while the database is opened, every few megabytes of its log, and at the end: to show how
    /// far it has come. [`LogStats`](crate::LogStats) has what was read.
    ///
    /// ```
    /// use sapwood::{Db, DbOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// # Db::open(path)?.create_ordered_table("t", Default::default())?.put(b"k", b"v")?;
    /// let options = DbOptions::default()
    ///     .on_recovery(|progress| println!("{} of {}", progress.bytes, progress.all_bytes));
    /// let db = Db::open_with(path, options)?;
    /// assert_eq!(db.stats().log.expect("there is a directory").recovered_records, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn on_recovery(mut self, told: impl Fn(RecoveryProgress) + Send + Sync + 'static) -> Self {
        self.on_recovery = OnRecovery(Some(Arc::new(told)));
        self
    }

    pub(crate) fn pool(&self) -> PoolOptions {
        self.pool.clone()
    }

    pub(crate) fn log(&self) -> WalOptions {
        self.log.clone()
    }
}
