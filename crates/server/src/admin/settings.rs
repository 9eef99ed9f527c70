//! Options that may be changed while the server runs.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

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
}

impl Settings {
    pub(crate) fn new(options: &Options, maxmemory: Option<u64>) -> Settings {
        Settings {
            maxmemory: maxmemory.unwrap_or(0).into(),
            slowlog_micros: options.slowlog_micros.into(),
            slowlog_len: options.slowlog_len.into(),
            latency_millis: options.latency_threshold_millis.into(),
            save: RwLock::new(options.save.clone()),
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

    pub(crate) fn set_save(&self, rules: Vec<SaveRule>) {
        *self.save.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }
}
