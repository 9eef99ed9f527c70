//! The store: its fields and its construction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result, no_memory};
use crate::files::kept::Checkpoints;
use crate::files::parts::Parts;
use crate::index::Index;
use crate::journal::LatchedJournal;
use crate::log::Log;
use crate::log::begin_lock::{BeginLock, Shared};
use crate::log::cold;
use crate::log::read_cache::ReadCache;
use crate::ops::compactor::Compactor;
use crate::options::Options;
use crate::record::address::PageNumber;
use crate::striped::StripedCounter;

/// Everything of a hash log but the choice of its layout.
pub(crate) struct Store {
    pub(crate) options: Options,
    pub(crate) index: Index,
    pub(crate) log: Log,
    /// An estimate in a directory: a put does not read what it replaces.
    pub(crate) entries: StripedCounter,
    /// Held by the walk that will set `entries` right.
    pub(crate) counting: std::sync::Mutex<()>,
    /// Bytes of superseded records in memory.
    pub(crate) garbage: StripedCounter,
    pub(crate) cold_reads: StripedCounter,
    /// `None` in memory, and where there is no room for it.
    pub(crate) read_cache: Option<ReadCache>,
    /// Records found there.
    pub(crate) cached_reads: StripedCounter,
    /// Records that the index was asked about, whether they are superseded.
    pub(crate) chains_asked: StripedCounter,
    /// A read found no room at the tail for a copy of what it had read from the disk.
    pub(crate) copy_wants_page: AtomicBool,
    /// Shared by everything that relies on `begin`: snapshots, walks; a compaction takes it alone.
    pub(crate) begin_lock: BeginLock,
    pub(crate) compactor: Compactor,
    /// No page is begun any more.
    is_frozen: AtomicBool,
    /// `None` in memory.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// The journal of a log that has one.
    pub(crate) journal: OnceLock<Arc<LatchedJournal>>,
}

impl Store {
    /// An empty log, in a directory if one is given.
    pub(crate) fn create(options: Options, files: Option<(Checkpoints, Parts)>) -> Result<Store> {
        options.validate_new()?;
        let buckets = Index::buckets_for(options.expected_entries);
        let index =
            Index::new(buckets, options.pages, options.memory_budget).map_err(no_memory(0))?;
        let (checkpoints, parts) = match files {
            Some((checkpoints, parts)) => (Some(checkpoints), Some(parts)),
            None => (None, None),
        };
        let log = Log::new(&options, parts, PageNumber::FIRST)?;
        Ok(Store::assemble(options, index, log, checkpoints))
    }

    pub(crate) fn assemble(
        options: Options,
        index: Index,
        log: Log,
        checkpoints: Option<Checkpoints>,
    ) -> Store {
        let cache_bytes = if log.parts.is_some() { options.read_cache_bytes() } else { 0 };
        let read_cache = ReadCache::new(cache_bytes, options.layout);
        if let Some(parts) = &log.parts {
            parts.keep_buffers(cold::buffers_kept(options.memory_budget));
        }
        let compactor = Compactor::new(options.compaction.filter(|_| checkpoints.is_some()));
        Store {
            options,
            index,
            log,
            entries: StripedCounter::default(),
            counting: std::sync::Mutex::default(),
            garbage: StripedCounter::default(),
            cold_reads: StripedCounter::default(),
            read_cache,
            cached_reads: StripedCounter::default(),
            chains_asked: StripedCounter::default(),
            copy_wants_page: AtomicBool::new(false),
            begin_lock: BeginLock::default(),
            compactor,
            is_frozen: AtomicBool::new(false),
            checkpoints,
            journal: OnceLock::new(),
        }
    }

    /// Makes sure that `begin` stays. A pinned thread must not block here: the compaction may be
    /// waiting for its pin.
    pub(crate) fn share_begin(&self) -> Result<Shared<'_>> {
        match self.log.epochs.is_pinned() {
            true => self.begin_lock.try_share().ok_or(Error::WouldBlock),
            false => Ok(self.begin_lock.share()),
        }
    }

    /// Whether the log is open to be read alone.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_frozen.load(Ordering::Relaxed)
    }

    /// Lets no page be begun any more, so that what is fixed stays as it is: all of a log that was just opened.
    pub(crate) fn begin_no_page(&self) {
        self.is_frozen.store(true, Ordering::Relaxed);
    }

    /// Lets no change happen any more. Call it unpinned, while no thread changes the log.
    pub(crate) fn freeze(&self) {
        self.log.pin_below();
        self.begin_no_page();
    }

    /// Bytes of memory beside the log's pages.
    pub(crate) fn bytes_beside(&self) -> u64 {
        let tables = self.log.parts.as_ref().map_or(0, |parts| parts.table_bytes());
        let buffers = self.compactor.buffer_bytes() + self.log.flight_bytes.load(Ordering::Relaxed);
        self.index.bytes() + tables + buffers + self.read_cache_bytes()
    }
}
