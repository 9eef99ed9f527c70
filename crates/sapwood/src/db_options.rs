//! What can be chosen when a database is opened.

use sapwood_ptree::PoolOptions;

use crate::Durability;

/// Options of a [`Db`](crate::Db): how its tree tables commit, and what they may take.
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
#[derive(Debug, Clone, Default)]
pub struct DbOptions {
    pool: PoolOptions,
}

impl DbOptions {
    /// What commits to tree tables wait for; by default for nothing
    /// ([`Durability::Buffered`]): they survive the end of the process, however that comes.
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

    /// Bytes of the log after which a commit writes a checkpoint of the tree tables; by default
    /// 256 MiB. Opening the database after a crash reads that much, at most about.
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open_with(directory.path(), DbOptions::default().tree_checkpoint(16 << 20))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn tree_checkpoint(mut self, bytes: u64) -> Self {
        self.pool = self.pool.checkpoint_bytes(bytes);
        self
    }

    pub(crate) fn pool(&self) -> PoolOptions {
        self.pool.clone()
    }
}
