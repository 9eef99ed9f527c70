//! The few knobs of a log.

use sapwood_mem::Pages;

use crate::error::{Error, Result};

/// How long keys and values are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// Keys of 1 byte to 16 KiB - 1, values of any length that lets a record fit into a page;
    /// 16 bytes a record beside them.
    #[default]
    Variable,
    /// Keys and values of exactly 8 bytes: 24 bytes a record, values changed by single atomic
    /// instructions.
    Fixed8,
}

/// What becomes of a record that was read from the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColdReads {
    /// Nothing: the next read of it goes to the disk again.
    Stay,
    /// A copy goes to the tail of the log, so that the next read finds it in memory. Pays when
    /// reads come back to the same keys (Zipf), costs log space when they do not (uniform).
    #[default]
    CopyToTail,
}

/// How a log lays out its memory and its files.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Lengths of keys and values; default [`Layout::Variable`].
    pub layout: Layout,
    /// Bytes of a page of the log: a power of two from 64 B to 32 MiB, default 2 MiB, the size of
    /// a huge page. A record must fit into one.
    pub page_bytes: usize,
    /// Most bytes of memory, index included; default none. With a directory cold pages go there;
    /// without one reaching it answers [`Error::OutOfMemory`].
    pub memory_budget: Option<u64>,
    /// Share of the log's memory that is updated in place, the rest being copied on update;
    /// 0.0 to 1.0, default 0.9, of use only where a directory and a budget are given.
    pub mutable_share: f64,
    /// Entries that the index is sized for at the start; default 0. It grows online anyway, so
    /// this only saves the growing.
    pub expected_entries: u64,
    /// Whether records read from the disk come back; default [`ColdReads::CopyToTail`].
    pub cold_reads: ColdReads,
    /// Checkpoints kept, the newest included; at least 1, default 2.
    pub checkpoints_kept: usize,
    /// Which pages to ask for; default transparent huge pages, which stand in for explicit ones.
    pub pages: Pages,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            layout: Layout::default(),
            page_bytes: 2 << 20,
            memory_budget: None,
            mutable_share: 0.9,
            expected_entries: 0,
            cold_reads: ColdReads::default(),
            checkpoints_kept: 2,
            pages: Pages::default(),
        }
    }
}

impl Options {
    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |why: &str| Err(Error::Options(why.to_owned()));
        if !self.page_bytes.is_power_of_two() || !(64..=32 << 20).contains(&self.page_bytes) {
            return refuse("page_bytes must be a power of two from 64 B to 32 MiB");
        }
        if !(0.0..=1.0).contains(&self.mutable_share) {
            return refuse("mutable_share must be 0.0 to 1.0");
        }
        if self.memory_budget.is_some_and(|bytes| bytes < self.page_bytes as u64) {
            return refuse(
                "memory_budget must hold a page at least: raise it, or lower page_bytes",
            );
        }
        if self.checkpoints_kept == 0 {
            return refuse("checkpoints_kept must be at least 1");
        }
        Ok(())
    }
}
