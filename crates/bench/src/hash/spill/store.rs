//! The interface of an engine that spills.

use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::*;
use crate::hash::job;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;

/// A key.
pub type SpillKey = [u8; 8];
/// A value; its first 8 bytes are a little-endian number that read-modify-writes add one to.
pub type SpillValue = [u8; VALUE_BYTES];

/// The place and the size of a store.
#[derive(Debug, Clone)]
pub struct SpillPlace {
    /// An empty folder of its own.
    pub dir: PathBuf,
    /// Most bytes of memory, caches and buffers together.
    pub budget_bytes: u64,
    /// Keys that will be loaded.
    pub keys: u32,
}

/// An engine that can take part.
#[derive(Debug, Clone, Copy)]
pub struct SpillEngine {
    /// The name in tables and in `--engines`.
    pub name: &'static str,
    /// Numbers of keys a call for which its batches are worth rows of their own.
    pub batches: &'static [usize],
    /// Opens an empty store.
    pub open: fn(&SpillPlace) -> Result<Arc<dyn SpillStore>>,
}

/// A store under test. What an operation did is visible when it returns; nothing is synced. Errors
/// are those of the engine.
pub trait SpillStore: Send + Sync {
    /// Begins a thread's session before its first call, where the engine has such.
    fn enter(&self) {}

    /// Ends a thread's session after its last call.
    fn leave(&self) {}

    /// Calls `read` with the key's value, if it is there.
    fn get(&self, key: &SpillKey, read: &mut dyn FnMut(&[u8])) -> Result;

    /// Inserts or replaces, without asking for what was there.
    fn put(&self, key: &SpillKey, value: &SpillValue) -> Result;

    /// Adds one to the first 8 bytes of the key's value, atomically.
    fn increment(&self, key: &SpillKey) -> Result;

    /// Puts entries together; also what the load calls.
    fn put_many(&self, entries: &[(SpillKey, SpillValue)]) -> Result {
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Calls `read(i, value)` once for each key that is there.
    fn get_many(&self, keys: &[SpillKey], read: &mut dyn FnMut(usize, &[u8])) -> Result {
        let get = |(i, key)| self.get(key, &mut |value| read(i, value));
        keys.iter().enumerate().try_for_each(get)
    }

    /// Increments each key as `increment` does.
    fn increment_many(&self, keys: &[SpillKey]) -> Result {
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

    /// True if it has grown so much longer than its entries that it should be loaded anew before
    /// the next workload.
    fn is_long(&self) -> bool {
        false
    }

    /// Does, between workloads and untimed, what it would otherwise put off for long.
    fn settle(&self) -> Result {
        Ok(())
    }
}

pub(crate) fn visit(store: &dyn SpillStore) -> Finally<impl FnMut()> {
    store.enter();
    Finally(|| store.leave())
}

#[inline]
pub(crate) fn key(number: u32) -> SpillKey {
    job::key(number).to_le_bytes()
}

/// A value of entry `number`: the number and `low`, then the key over and over.
#[inline]
pub(crate) fn value(number: u32, low: u32) -> SpillValue {
    let mut value = [0; VALUE_BYTES];
    value[..8].copy_from_slice(&job::value(number, low).to_le_bytes());
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
        assert_eq!(checked(7, &right), Some(job::value(7, 3)));
        for at in 8..VALUE_BYTES {
            let mut wrong = right;
            wrong[at] ^= 1;
            assert_eq!(checked(7, &wrong), None, "byte {at}");
        }
        assert_eq!(checked(7, &right[..99]), None);
        assert_eq!(checked(8, &right), None);
    }
}
