//! The interface of an engine that spills.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Error;
use crate::hash::workload;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;

/// A key.
pub type Key = [u8; 8];
/// A value; its first 8 bytes are a little-endian number that read-modify-writes add one to.
pub type Value = [u8; VALUE_BYTES];

/// Where and how large a store is to be.
#[derive(Debug, Clone)]
pub struct Place {
    /// An empty folder of its own.
    pub dir: PathBuf,
    /// Most bytes of memory, caches and buffers together.
    pub budget_bytes: u64,
    /// Keys that will be loaded.
    pub keys: u32,
}

/// An engine that can take part.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// As tables and `--engines` name it.
    pub name: &'static str,
    /// Numbers of keys a call for which its batches are worth rows of their own.
    pub batches: &'static [usize],
    /// Opens an empty store.
    pub open: fn(&Place) -> Result<Arc<dyn SpillStore>, Error>,
}

/// A store under test. What an operation did is visible when it returns; nothing is synced.
pub trait SpillStore: Send + Sync {
    /// What a thread does before its first call, where the engine has sessions.
    fn enter(&self) {}

    /// What a thread does after its last call.
    fn leave(&self) {}

    /// Calls `read` with the key's value, if it is there.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn get(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// Inserts or replaces, without asking for what was there.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn put(&self, key: &Key, value: &Value) -> Result<(), Error>;

    /// Adds one to the first 8 bytes of the key's value, atomically.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn increment(&self, key: &Key) -> Result<(), Error>;

    /// Puts entries together; also what the load calls.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn put_many(&self, entries: &[(Key, Value)]) -> Result<(), Error> {
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Calls `read(i, value)` once for each key that is there.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn get_many(&self, keys: &[Key], read: &mut dyn FnMut(usize, &[u8])) -> Result<(), Error> {
        let get = |(i, key)| self.get(key, &mut |value| read(i, value));
        keys.iter().enumerate().try_for_each(get)
    }

    /// As `increment` on each key.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn increment_many(&self, keys: &[Key]) -> Result<(), Error> {
        keys.iter().try_for_each(|key| self.increment(key))
    }

    /// Entries that were read from the disk so far, where it counts them.
    fn fetched(&self) -> Option<u64> {
        None
    }

    /// Bytes of memory by its own account, where it keeps one.
    fn accounted_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether it has grown so much longer than its entries that it should be loaded anew before
    /// the next workload.
    fn is_long(&self) -> bool {
        false
    }

    /// Does, between workloads and untimed, what it would otherwise put off for long.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A thread's calls on a store, from the first to the last.
pub(crate) struct Visit<'s>(&'s dyn SpillStore);

impl Visit<'_> {
    pub(crate) fn begin(store: &dyn SpillStore) -> Visit<'_> {
        store.enter();
        Visit(store)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The key of entry `number`.
#[inline]
pub(crate) fn key(number: u32) -> Key {
    workload::key(number).to_le_bytes()
}

/// A value of entry `number`: the number and `low`, then the key over and over.
#[inline]
pub(crate) fn value(number: u32, low: u32) -> Value {
    let mut value = [0; VALUE_BYTES];
    value[..8].copy_from_slice(&workload::value(number, low).to_le_bytes());
    let key = key(number);
    for word in value[8..].chunks_mut(8) {
        word.copy_from_slice(&key[..word.len()]);
    }
    value
}

/// The first word of a value of entry `number`; none if any byte after it is wrong.
#[inline]
pub(crate) fn checked(number: u32, value: &[u8]) -> Option<u64> {
    let (first, rest) = value.split_first_chunk::<8>()?;
    let key = key(number);
    let right = value.len() == VALUE_BYTES && rest.chunks(8).all(|word| *word == key[..word.len()]);
    right.then(|| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_anywhere_is_seen() {
        let right = value(7, 3);
        assert_eq!(checked(7, &right), Some(workload::value(7, 3)));
        for at in 8..VALUE_BYTES {
            let mut wrong = right;
            wrong[at] ^= 1;
            assert_eq!(checked(7, &wrong), None, "byte {at}");
        }
        assert_eq!(checked(7, &right[..99]), None);
        assert_eq!(checked(8, &right), None);
    }
}
