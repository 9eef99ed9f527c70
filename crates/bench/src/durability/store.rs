//! The interface of an engine.

use std::path::PathBuf;

use super::data::{Data, Level};
use crate::harness::*;

/// The place and the durability of a store.
#[derive(Debug, Clone)]
pub struct DurablePlace {
    /// An empty folder of its own.
    pub dir: PathBuf,
    /// The failure that changes outlive.
    pub level: Level,
    /// Bytes of keys and values.
    pub data: Data,
    /// Keys that it will hold.
    pub keys: u32,
}

/// An engine that can take part.
#[derive(Debug, Clone, Copy)]
pub struct DurableEngine {
    /// The name in tables and in `--engines`.
    pub name: &'static str,
    /// Opens an empty store; none where it does not have the level.
    pub open: fn(&DurablePlace) -> Result<Option<Box<dyn DurableStore>>>,
}

/// A store under test, which threads share. Errors are those of the engine.
pub trait DurableStore: Send + Sync {
    /// Puts an entry whose key is there; it outlives what the level says.
    fn put(&self, key: &[u8], value: &[u8]) -> Result;

    /// Puts entries whose keys are not there, untimed and as one commit where it has such.
    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result;

    /// Calls `read` with the key's value, if it is there.
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result;

    /// Makes all last that was put before. At [`Level::Async`] a thread of the bench calls it ten
    /// times a second, unless the engine does so itself.
    fn sync(&self) -> Result;

    /// True if it syncs by itself at [`Level::Async`].
    fn syncs_itself(&self) -> bool {
        false
    }

    /// Does, between runs and untimed, what it would otherwise put off for long.
    fn settle(&self) -> Result {
        self.sync()
    }

    /// Bytes of its log since some moment before the run, where it knows.
    fn log_bytes(&self) -> Option<u64> {
        None
    }
}
