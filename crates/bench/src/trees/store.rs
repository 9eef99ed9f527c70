//! The interface of an engine.

use std::path::PathBuf;
use std::time::Duration;

use super::workload::Phase;
use crate::Error;

/// A key, which compares as its bytes do.
pub type Key = [u8; 8];
/// A value.
pub type Value = [u8; 8];
/// A key with its value.
pub type Entry = (Key, Value);

/// What a commit outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The end of the process; nothing is synced.
    Buffered,
    /// Power loss: a commit waits for the disk.
    Sync,
}

/// Where and how a store is to be.
#[derive(Debug, Clone)]
pub struct Place {
    /// An empty folder of its own.
    pub dir: PathBuf,
    /// What commits outlive.
    pub level: Level,
    /// Keys that it will hold at most.
    pub keys: usize,
}

/// An engine that can take part.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// As tables and `--engines` name it.
    pub name: &'static str,
    /// Opens an empty store.
    pub open: fn(&Place) -> Result<Box<dyn TreeStore>, Error>,
    /// Inserts entries, a transaction each, leaves the store as the end of a process would, and
    /// opens it again.
    pub recover: Option<fn(&Place, &[Entry]) -> Result<Recovery, Error>>,
}

/// Operations of a phase that a store is given at most, since they take it too long.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Operations.
    pub most: usize,
    /// Why they take long, as the end of a sentence.
    pub why: &'static str,
}

/// What it took to open a store that was not closed.
#[derive(Debug, Clone, Copy)]
pub struct Recovery {
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// From the call to the store.
    pub elapsed: Duration,
    /// Entries that it holds then.
    pub entries: u64,
}

/// A store under test.
pub trait TreeStore {
    /// Inserts an entry whose key is not there, in a transaction of its own.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn insert(&mut self, entry: &Entry) -> Result<(), Error>;

    /// Removes a key in a transaction of its own, and returns what it had.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn remove(&mut self, key: &Key) -> Result<Option<Value>, Error>;

    /// Inserts entries, a transaction each.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn insert_each(&mut self, entries: &[Entry]) -> Result<(), Error> {
        entries.iter().try_for_each(|entry| self.insert(entry))
    }

    /// Removes entries, a transaction each, and tells the value that each had.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn remove_each(
        &mut self,
        entries: &[Entry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        for (key, _) in entries {
            if let Some(value) = self.remove(key)? {
                removed(&value);
            }
        }
        Ok(())
    }

    /// Inserts entries whose keys are not there, in one transaction.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn insert_all(&mut self, entries: &[Entry]) -> Result<(), Error>;

    /// Removes entries in one transaction, and tells the value that each had.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn remove_all(
        &mut self,
        entries: &[Entry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error>;

    /// Tells the value of each entry's key, within one read transaction where there are such.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn get_all(&self, entries: &[Entry], read: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// Tells all entries in ascending order of keys.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error>;

    /// The store for several writers; none if its commits do not last.
    fn writers(&self) -> Option<&dyn Writers>;

    /// The time of the last call by the store's own clock, if it has one: a store in another
    /// process does not count the way of its entries to and fro.
    fn elapsed(&self) -> Option<Duration> {
        None
    }

    /// The limit of a phase, if it has one.
    fn limit(&self, _: Phase) -> Option<Limit> {
        None
    }

    /// Bytes that its entries take, by its own account; else those of its files count.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes that were ever written to its log, where it knows.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn log_position(&self) -> Result<Option<u64>, Error> {
        Ok(None)
    }
}

/// A store whose writers are many.
pub trait Writers: Sync {
    /// As [`TreeStore::insert`].
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn insert(&self, entry: &Entry) -> Result<(), Error>;
}
