//! Locks for engines without an atomic read-modify-write of their own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sapwood_bench::hash::spill::SpillKey;

/// So many that two threads seldom meet.
const COUNT: usize = 1024;

pub struct Stripes(Vec<Mutex<()>>);

impl Stripes {
    pub fn new() -> Stripes {
        Stripes((0..COUNT).map(|_| Mutex::new(())).collect())
    }

    /// The lock that all read-modify-writes of this key take.
    pub fn lock(&self, key: &SpillKey) -> MutexGuard<'_, ()> {
        let stripe = usize::from(u16::from_le_bytes([key[0], key[1]])) % COUNT;
        self.0[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value with one added to its first 8 bytes.
pub fn incremented(value: &[u8]) -> Vec<u8> {
    let mut changed = value.to_vec();
    if let Some(first) = changed.first_chunk_mut::<8>() {
        *first = u64::from_le_bytes(*first).wrapping_add(1).to_le_bytes();
    }
    changed
}
