//! What the files of a pool say of it.

use crate::pool::{Pool, lock};

/// What the files of a pool say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolInfo {
    /// The version of the heap's file.
    pub version: u32,
    /// The number that tells its files from those of other pools.
    pub id: u64,
    /// The name of what it holds; empty if its maker gave none.
    pub layout_name: String,
    /// The number of the last checkpoint.
    pub generation: u64,
    /// Bytes of the heap as of that checkpoint.
    pub checkpoint_bytes: u64,
    /// Bytes of the log from that checkpoint on, of a shared one with what others appended.
    pub log_bytes: u64,
    /// The number of the log, if the pool shares one with other engines.
    pub shared_log: Option<u64>,
}

impl Pool {
    /// What its files say; nothing of a pool in memory.
    ///
    /// ```
    /// # use sapwood_ptree::{Pool, PoolOptions};
    /// let pool = Pool::in_memory(PoolOptions::default())?;
    /// assert_eq!(pool.info(), None);
    /// # Ok::<(), sapwood_ptree::Error>(())
    /// ```
    pub fn info(&self) -> Option<PoolInfo> {
        let files = self.inner.files.as_ref()?;
        let superblock = lock(&files.superblock);
        let end = files.log.as_ref().map_or(files.end_at_opening, |log| log.log().position().0);
        Some(PoolInfo {
            version: superblock.version(),
            id: superblock.pool,
            layout_name: superblock.layout_name.clone(),
            generation: superblock.generation,
            checkpoint_bytes: superblock.heap_words * 8,
            log_bytes: end.saturating_sub(superblock.log.lsn),
            shared_log: superblock.shared_log,
        })
    }
}
