//! Options that may be changed while the server runs.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use sapwood::Durability;

use crate::admin::{Options, SaveRule};

// Relaxed throughout: an option tells nothing of other memory.

/// Options that `CONFIG SET` may change.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Bytes; 0 for no limit.
    maxmemory: AtomicU64,
    slowlog_micros: AtomicI64,
    slowlog_len: AtomicU64,
    latency_millis: AtomicU64,
    save: RwLock<Vec<SaveRule>>,
    append_fsync: AtomicU8,
}

/// When the log is synced, in the words of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum AppendFsync {
    /// When the system writes it.
    No,
    /// A second after the first change that does not last, at the latest.
    #[default]
    EverySecond,
    /// Before a change is answered.
    Always,
}

impl AppendFsync {
    /// All, with their words, in the order of Redis.
    pub(crate) const ALL: [(&'static str, AppendFsync); 3] = [
        ("everysec", AppendFsync::EverySecond),
        ("always", AppendFsync::Always),
        ("no", AppendFsync::No),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        AppendFsync::ALL.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }

    /// What it asks of the database: replies of `Always` wait by themselves.
    pub fn durability(self) -> Durability {
        self.sync_interval().map_or(Durability::Buffered, Durability::Interval)
    }

    pub(crate) fn sync_interval(self) -> Option<Duration> {
        (self != AppendFsync::No).then_some(Duration::from_secs(1))
    }
}

impl Settings {
    pub(crate) fn new(options: &Options, maxmemory: Option<u64>) -> Settings {
        Settings {
            maxmemory: maxmemory.unwrap_or(0).into(),
            slowlog_micros: options.slowlog_micros.into(),
            slowlog_len: options.slowlog_len.into(),
            latency_millis: options.latency_threshold_millis.into(),
            save: RwLock::new(options.save.clone()),
            append_fsync: AtomicU8::new(options.append_fsync as u8),
        }
    }

    /// Bytes of memory, at most.
    pub(crate) fn maxmemory(&self) -> Option<u64> {
        Some(self.maxmemory.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    pub(crate) fn set_maxmemory(&self, bytes: u64) {
        self.maxmemory.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn slowlog_micros(&self) -> i64 {
        self.slowlog_micros.load(Ordering::Relaxed)
    }

    pub(crate) fn set_slowlog_micros(&self, micros: i64) {
        self.slowlog_micros.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn slowlog_len(&self) -> u64 {
        self.slowlog_len.load(Ordering::Relaxed)
    }

    pub(crate) fn set_slowlog_len(&self, len: u64) {
        self.slowlog_len.store(len, Ordering::Relaxed);
    }

    pub(crate) fn latency_millis(&self) -> u64 {
        self.latency_millis.load(Ordering::Relaxed)
    }

    pub(crate) fn set_latency_millis(&self, millis: u64) {
        self.latency_millis.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn save(&self) -> Vec<SaveRule> {
        self.save.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn append_fsync(&self) -> AppendFsync {
        let level = self.append_fsync.load(Ordering::Relaxed);
        let known = AppendFsync::ALL.iter().find(|(_, it)| *it as u8 == level);
        known.map_or(AppendFsync::Always, |(_, it)| *it)
    }

    pub(crate) fn set_append_fsync(&self, level: AppendFsync) {
        self.append_fsync.store(level as u8, Ordering::Relaxed);
    }

    pub(crate) fn set_save(&self, rules: Vec<SaveRule>) {
        *self.save.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }
}
