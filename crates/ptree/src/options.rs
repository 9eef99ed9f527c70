//! Options of a pool.

use sapwood_disk::log::{Durability, LogOptions};
use sapwood_mem::reserve::machine_bytes;

/// How a pool is made or opened.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    pub(crate) durability: Durability,
    pub(crate) limit_bytes: u64,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) layout_name: String,
    pub(crate) id: u64,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            durability: Durability::Buffered,
            limit_bytes: 1 << 40,
            checkpoint_bytes: 256 << 20,
            memory_bytes: machine_bytes().map_or(u64::MAX, |bytes| bytes / 2),
            layout_name: String::new(),
            id: 0,
        }
    }
}

impl PoolOptions {
    /// How the log lies and is synced.
    pub(crate) fn log(&self) -> LogOptions {
        let sync_interval = match self.durability {
            Durability::Interval(interval) => Some(interval),
            Durability::Buffered | Durability::Sync => None,
        };
        LogOptions { sync_interval, ..LogOptions::default() }
    }

    /// What commits wait for.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> PoolOptions {
        self.durability = durability;
        self
    }

    /// Bytes that the heap may have at most; by default 1 TiB, or what address space allows.
    #[must_use]
    pub fn limit_bytes(mut self, bytes: u64) -> PoolOptions {
        self.limit_bytes = bytes;
        self
    }

    /// Bytes of the pool's own log after which a commit writes a checkpoint, by default 256 MiB: what opening
    /// the pool after a crash reads at most, about. Of a shared log others know when it has grown.
    #[must_use]
    pub fn checkpoint_bytes(mut self, bytes: u64) -> PoolOptions {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Bytes of memory that the pool keeps for itself, by default half of the machine's: pages that
    /// were changed. Beyond them it gives memory back after a checkpoint, as soon as no transaction is
    /// open; what is read again comes from the file, through the system's page cache. What changes
    /// between two checkpoints, and what one transaction changes, has to fit.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> PoolOptions {
        self.memory_bytes = bytes;
        self
    }

    /// A name for what the pool holds, of at most 64 bytes. Opening a pool with another one is
    /// refused. Without one, any pool is opened.
    #[must_use]
    pub fn layout_name(mut self, name: impl Into<String>) -> PoolOptions {
        self.layout_name = name.into();
        self
    }

    /// A number that tells the files of this pool from those of others; the maker draws it at
    /// random.
    #[must_use]
    pub fn id(mut self, id: u64) -> PoolOptions {
        self.id = id;
        self
    }
}
