//! Options of a log.

use sapwood_mem::Pages;
use sapwood_mem::region::PAGE_BYTES;
use sapwood_mem::reserve::machine_bytes;

use crate::error::{Error, Result};
use crate::index::Index;

/// The lengths of keys and values.
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

/// The fate of a record that was read from the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColdReads {
    /// It stays there. What was read lately is in the read cache ([`Options::read_cache`]); else the next
    /// read of it goes to the disk again.
    Stay,
    /// A copy goes to the tail of the log, so that the next read finds it in memory. Pays when
    /// reads come back to the same keys (Zipf), costs log space when they do not (uniform).
    #[default]
    CopyToTail,
}

/// When a log in a directory compacts itself: in steps, by a thread of its own, while traffic goes
/// on. How much is garbage it estimates by a sample of the pages, each time the log has grown by an
/// eighth.
///
/// Files go once no checkpoint that is kept needs them, so a log is compacted no further while
/// more of it waits for checkpoints to go than is in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    /// Share of the log that may be garbage; above 0.0 and below 1.0, default 0.5, with which files
    /// take about twice what is live. Lower it to save disk space: at 0.25 they take 1.34 times
    /// that, and up to three bytes are moved for each that is freed instead of one; under random
    /// overwriting it is less, since the oldest pages have most garbage.
    pub garbage_share: f64,
    /// Log of fewer bytes, from its oldest record to its newest, is left alone; default 256 MiB,
    /// four files. Below that there is little to gain.
    pub log_bytes_min: u64,
    /// Log of more bytes is compacted for less, as soon as a tenth of it is garbage; default none.
    /// A limit to plan a disk with, which live data may still pass.
    pub log_bytes_max: Option<u64>,
}

impl Default for Compaction {
    fn default() -> Self {
        Compaction { garbage_share: 0.5, log_bytes_min: 256 << 20, log_bytes_max: None }
    }
}

/// Options of a log: its memory, its files, its compaction.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Lengths of keys and values; default [`Layout::Variable`].
    pub layout: Layout,
    /// Bytes of a page of the log: a power of two from 64 B to 32 MiB, default 2 MiB, the size of
    /// a huge page. A record must fit into one.
    pub page_bytes: usize,
    /// Most bytes of memory, index included; default none. It must hold a page, of 4 KiB at least,
    /// and the first buckets. With a directory cold pages go there;
    /// without one reaching it answers [`Error::OutOfMemory`].
    pub memory_budget: Option<u64>,
    /// Share of the log's memory that is updated in place, the rest being copied on update;
    /// 0.0 to 1.0, default 0.9, of use only where a directory and a budget are given.
    pub mutable_share: f64,
    /// Entries that the index is sized for at the start; default 0. It grows online anyway, so this
    /// only saves the growing. Its buckets, 11 to 22 bytes for each entry, are written at once;
    /// more than a budget or the machine holds are refused.
    pub expected_entries: u64,
    /// Whether records read from the disk come back; default [`ColdReads::CopyToTail`].
    pub cold_reads: ColdReads,
    /// Bytes of memory, of the budget, for records that were lately read from the disk, where these stay
    /// there ([`ColdReads::Stay`]); default 0: none. Pays where some keys are read more than others and little
    /// is written: at a fourth of the memory of pages it has most of what an even larger one would have.
    pub read_cache: u64,
    /// Checkpoints kept, the newest included; at least 1, default 2.
    pub checkpoints_kept: usize,
    /// When a log in a directory compacts itself; default [`Compaction::default`]. `None`: on
    /// request alone, and without a thread. A log in memory needs no option, its writers do it.
    pub compaction: Option<Compaction>,
    /// Number that the files of a log carry that is made in a directory, by which those of another
    /// are told from them: best drawn at random. A log that is there keeps its own. Default 0, by
    /// which none are told apart.
    pub table_id: u64,
    /// The pages of the machine to ask for; default transparent huge pages, which stand in for
    /// explicit ones.
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
            read_cache: 0,
            checkpoints_kept: 2,
            compaction: Some(Compaction::default()),
            table_id: 0,
            pages: Pages::default(),
        }
    }
}

/// Bytes that a page of the log takes in memory.
pub(crate) fn frame_bytes(page_bytes: usize) -> u64 {
    page_bytes.next_multiple_of(PAGE_BYTES) as u64
}

impl Options {
    /// Whether there is memory for the index that a log begins with. One that is there already has
    /// an index of another size.
    pub(crate) fn validate_new(&self) -> Result<()> {
        self.validate_budget(self.expected_entries)?;
        let index_bytes = Index::first_bytes(self.expected_entries);
        match machine_bytes() {
            Some(machine) if index_bytes > machine => Err(Error::Options(format!(
                "expected_entries of {} need {index_bytes} bytes for buckets, and this machine has {machine} bytes of memory: lower it, the index grows by itself",
                self.expected_entries
            ))),
            _ => Ok(()),
        }
    }

    /// Bytes that the read cache of a log in a directory takes of the budget.
    pub(crate) fn read_cache_bytes(&self) -> u64 {
        match self.memory_budget {
            Some(_) if self.cold_reads == ColdReads::Stay => self.read_cache,
            _ => 0,
        }
    }

    fn validate_budget(&self, entries: u64) -> Result<()> {
        let least = frame_bytes(self.page_bytes)
            .saturating_add(Index::first_bytes(entries))
            .saturating_add(self.read_cache);
        if self.memory_budget.is_none_or(|bytes| bytes >= least) {
            return Ok(());
        }
        Err(Error::Options(format!(
            "memory_budget must hold a page, the first buckets and the read cache, {least} bytes: raise it, or lower page_bytes, expected_entries or read_cache"
        )))
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |why: &str| Err(Error::Options(why.to_owned()));
        if !self.page_bytes.is_power_of_two() || !(64..=32 << 20).contains(&self.page_bytes) {
            return refuse("page_bytes must be a power of two from 64 B to 32 MiB");
        }
        if !(0.0..=1.0).contains(&self.mutable_share) {
            return refuse("mutable_share must be 0.0 to 1.0");
        }
        self.validate_budget(0)?;
        if self.checkpoints_kept == 0 {
            return refuse("checkpoints_kept must be at least 1");
        }
        if let Some(compaction) = &self.compaction {
            let share = compaction.garbage_share;
            if !(share > 0.0 && share < 1.0) {
                return refuse("compaction.garbage_share must be above 0.0 and below 1.0");
            }
            if compaction.log_bytes_max.is_some_and(|max| max < compaction.log_bytes_min) {
                return refuse(
                    "compaction.log_bytes_max must not be below compaction.log_bytes_min",
                );
            }
        }
        Ok(())
    }
}

/// The parts of a checkpoint beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The log since the last checkpoint: small; recovery replays it over the last full one.
    Incremental,
    /// The log since the last checkpoint and an image of the index: recovery is fast.
    Full,
}
