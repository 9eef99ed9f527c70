//! Values that are too long for a page of the engine, in parts of half a MiB.
//!
//! A value gets a number that is never used again, and its parts lie in a table of their own under
//! that number and theirs. They are put before the head that names them, and removed after it: a
//! reader that misses a part looks at the head again.

use std::sync::atomic::{AtomicU64, Ordering};

use sapwood::{HashTable, Result};

use crate::store::format::Parts;

/// Bytes of a part: four fill a page of 2 MiB with their headers.
pub(crate) const PART_BYTES: usize = (512 << 10) - 256;

type PartKey = [u8; 16];

/// A table of parts.
#[derive(Debug)]
pub(crate) struct PartsTable {
    table: HashTable,
    next_id: AtomicU64,
}

impl PartsTable {
    /// `next_id` is larger than any number that the table holds.
    pub(crate) fn new(table: HashTable, next_id: u64) -> PartsTable {
        PartsTable { table, next_id: AtomicU64::new(next_id) }
    }

    /// A number for a value.
    pub(crate) fn new_id(&self) -> u64 {
        // Relaxed: nothing else is told by the number.
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Puts the bytes of `pieces`, one behind the other, under a number. Some may be there after an
    /// error.
    pub(crate) fn put(&self, id: u64, pieces: &[&[u8]]) -> Result<()> {
        let len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut part = Vec::with_capacity(PART_BYTES.min(len));
        let mut number = 0;
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let taken = rest.len().min(PART_BYTES - part.len());
                part.extend_from_slice(&rest[..taken]);
                rest = &rest[taken..];
                if part.len() == PART_BYTES {
                    self.table.put(key(id, number), &part)?;
                    part.clear();
                    number += 1;
                }
            }
        }
        if !part.is_empty() {
            self.table.put(key(id, number), &part)?;
        }
        Ok(())
    }

    /// Removes the parts that a head names.
    pub(crate) fn remove_all(&self, head: &Parts) -> Result<()> {
        for number in 0..(head.key_len + head.len).div_ceil(PART_BYTES as u64) {
            self.table.remove(key(head.id, number))?;
        }
        Ok(())
    }

    /// Bytes `from..to` of what lies under a head, key and value; `None` if it is gone.
    pub(crate) fn read(&self, head: &Parts, from: u64, to: u64) -> Result<Option<Vec<u8>>> {
        debug_assert!(from <= to && to <= head.key_len + head.len, "within the value");
        let mut bytes = Vec::with_capacity((to - from) as usize);
        let part_bytes = PART_BYTES as u64;
        for number in from / part_bytes..to.div_ceil(part_bytes) {
            let begin = number * part_bytes;
            let cut = |part: &[u8]| {
                let from = from.saturating_sub(begin) as usize;
                let to = (to - begin).min(part.len() as u64) as usize;
                bytes.extend_from_slice(part.get(from..to).unwrap_or_default());
            };
            if self.table.get_with(key(head.id, number), cut)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    /// Whether all parts of a value are there.
    pub(crate) fn is_whole(&self, head: &Parts) -> Result<bool> {
        for number in 0..(head.key_len + head.len).div_ceil(PART_BYTES as u64) {
            if !self.table.contains_key(key(head.id, number))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the parts of values that `keep` does not know.
    pub(crate) fn retain(&self, keep: impl Fn(u64) -> bool) -> Result<()> {
        self.table.retain(|key, _part| id_of(key).is_some_and(&keep))?;
        Ok(())
    }

    /// The value under a head; `None` if it is gone.
    pub(crate) fn value(&self, head: &Parts) -> Result<Option<Vec<u8>>> {
        self.read(head, head.key_len, head.key_len + head.len)
    }

    /// The key under a head; `None` if it is gone.
    pub(crate) fn key(&self, head: &Parts) -> Result<Option<Vec<u8>>> {
        self.read(head, 0, head.key_len)
    }

    pub(crate) fn table(&self) -> &HashTable {
        &self.table
    }
}

fn key(id: u64, number: u64) -> PartKey {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&id.to_le_bytes());
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

/// The number in the key of a part.
pub(crate) fn id_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*key.first_chunk()?))
}
