//! The interface of an engine; keys and values.

use std::path::PathBuf;
use std::time::Duration;

use crate::harness::*;

/// A key, which compares as its bytes do.
pub type TreeKey = [u8; 8];
/// A value.
pub type TreeValue = [u8; 8];
/// A key with its value.
pub type TreeEntry = (TreeKey, TreeValue);

/// The failure that a commit outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitLevel {
    /// The end of the process; nothing is synced.
    Buffered,
    /// Power loss: a commit waits for the disk.
    Sync,
}

/// The place and the durability of a store.
#[derive(Debug, Clone)]
pub struct TreePlace {
    /// An empty folder of its own.
    pub dir: PathBuf,
    /// The failure that commits outlive.
    pub level: CommitLevel,
    /// Keys that it will hold at most.
    pub keys: usize,
}

/// An engine that can take part.
#[derive(Debug, Clone, Copy)]
pub struct TreeEngine {
    /// The name in tables and in `--engines`.
    pub name: &'static str,
    /// Opens an empty store.
    pub open: fn(&TreePlace) -> Result<Box<dyn TreeStore>>,
    /// Inserts entries, a transaction each, leaves the store as the end of a process would, and
    /// opens it again.
    pub recover: Option<fn(&TreePlace, &[TreeEntry]) -> Result<Recovery>>,
}

/// A workload that may have a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreePhase {
    /// Removes of all entries in one transaction.
    RemoveTogether,
    /// Durable inserts, a transaction each.
    Sync,
}

/// Operations of a workload that a store is given at most, since they take it too long.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Operations.
    pub most: usize,
    /// Why they take long, as the end of a sentence.
    pub why: &'static str,
}

/// The cost of opening a store that was not closed.
#[derive(Debug, Clone, Copy)]
pub struct Recovery {
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// From the call to the store.
    pub elapsed: Duration,
    /// Entries that it holds then.
    pub entries: u64,
}

/// A store under test. Errors are those of the engine.
pub trait TreeStore {
    /// Inserts an entry whose key is not there, in a transaction of its own.
    fn insert(&mut self, entry: &TreeEntry) -> Result {
        self.writers().ok_or("it has no writers")?.insert(entry)
    }

    /// Removes a key in a transaction of its own, and returns what it had.
    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>>;

    /// Inserts entries, a transaction each.
    fn insert_each(&mut self, entries: &[TreeEntry]) -> Result {
        entries.iter().try_for_each(|entry| self.insert(entry))
    }

    /// Removes entries, a transaction each, and tells the value that each had.
    fn remove_each(&mut self, entries: &[TreeEntry], removed: &mut dyn FnMut(&[u8])) -> Result {
        for (key, _) in entries {
            if let Some(value) = self.remove(key)? {
                removed(&value);
            }
        }
        Ok(())
    }

    /// Inserts entries whose keys are not there, in one transaction where there are such.
    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result {
        self.insert_each(entries)
    }

    /// Removes entries in one transaction where there are such, and tells the value that each had.
    fn remove_all(&mut self, entries: &[TreeEntry], removed: &mut dyn FnMut(&[u8])) -> Result {
        self.remove_each(entries, removed)
    }

    /// Tells the value of each entry's key, within one read transaction where there are such.
    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result;

    /// Tells all entries in ascending order of keys.
    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result;

    /// The store for several writers; none if its commits do not last.
    fn writers(&self) -> Option<&dyn Writers> {
        None
    }

    /// The time of the last call by the store's own clock, if it has one: a store in another
    /// process does not count the way of its entries to and fro.
    fn elapsed(&self) -> Option<Duration> {
        None
    }

    /// The limit of a workload, if it has one.
    fn limit(&self, _: TreePhase) -> Option<Limit> {
        None
    }

    /// Bytes that its entries take, by its own account; else those of its files count.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes that were ever written to its log, where it knows.
    fn log_position(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// A store with many writers. Errors are those of the engine.
pub trait Writers: Sync {
    /// Inserts an entry as [`TreeStore::insert`] does.
    fn insert(&self, entry: &TreeEntry) -> Result;
}
