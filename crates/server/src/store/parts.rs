//! Values that are too long for a page of the engine, in parts of half a MiB, and values that have
//! grown, in pieces of 4 KiB behind those.
//!
//! A value gets a number that is never used again, and its parts lie in a table of their own under
//! that number and theirs. They are put before the head that names them, and removed after it: a
//! reader that misses a part looks at the head again.
//!
//! Parts are as long as what lies there; pieces are put at their full length. So what is appended is
//! written into the last piece, behind the bytes that the head names, and then the head names them.
//! The log takes down those bytes, and no piece for each change.
//!
//! ```text
//!   key and value:   [ part 0 ][ part 1 ][ part 2 |  piece 0  |  piece 1  |  piece 2  ... room ]
//!                                        base of the value ^      length of the value ^
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use sapwood::{HashTable, Result};

use crate::store::format::Parts;

/// Bytes of a part: four fill a page of 2 MiB with their headers.
pub(crate) const PART_BYTES: usize = (512 << 10) - 256;

/// Bytes of a piece: a change of one copies it some times, in half a microsecond.
pub(crate) const PIECE_BYTES: usize = 4 << 10;
/// The number of the first piece: there are fewer parts.
const PIECES: u64 = 1 << 32;

type PartKey = [u8; 16];

/// The place of a byte of what lies under a head.
struct Place {
    /// Number of the part or piece.
    number: u64,
    /// Offset within it.
    offset: usize,
    /// Bytes from there to its end.
    room: u64,
}

impl Place {
    /// The place of byte `at` of key and value.
    fn of(head: &Parts, at: u64) -> Place {
        let split = head.key_len + head.base;
        if at >= split {
            return Place::behind(head, at);
        }
        let part_bytes = PART_BYTES as u64;
        let (number, offset) = (at / part_bytes, at % part_bytes);
        Place { number, offset: offset as usize, room: (part_bytes - offset).min(split - at) }
    }

    /// The place of a byte behind the parts, in a piece that may not be there yet.
    fn behind(head: &Parts, at: u64) -> Place {
        let (piece_bytes, at) = (PIECE_BYTES as u64, at - (head.key_len + head.base));
        let (number, offset) = (at / piece_bytes, at % piece_bytes);
        Place { number: PIECES + number, offset: offset as usize, room: piece_bytes - offset }
    }
}

/// Parts under a head.
fn parts(head: &Parts) -> u64 {
    (head.key_len + head.base).div_ceil(PART_BYTES as u64)
}

/// Pieces under a head.
pub(crate) fn pieces(head: &Parts) -> u64 {
    (head.len - head.base).div_ceil(PIECE_BYTES as u64)
}

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

    /// Puts `more` behind the bytes of a value that its head names, into room that no reader looks at
    /// yet; false if the value is gone. Some may be there after an error.
    pub(crate) fn extend(&self, head: &Parts, mut more: &[u8]) -> Result<bool> {
        let mut at = head.key_len + head.len;
        while !more.is_empty() {
            let place = Place::behind(head, at);
            let (taken, rest) = more.split_at(more.len().min(place.room as usize));
            if place.offset == 0 {
                let mut piece = vec![0; PIECE_BYTES];
                piece[..taken.len()].copy_from_slice(taken);
                self.table.put(key(head.id, place.number), &piece)?;
            } else if !self.overwrite_part(head.id, &place, taken)? {
                return Ok(false);
            }
            at += taken.len() as u64;
            more = rest;
        }
        Ok(true)
    }

    /// Removes the pieces behind those that a head names, of a value that is gone by now.
    pub(crate) fn remove_behind(&self, head: &Parts) -> Result<()> {
        self.remove_pieces(head.id, PIECES + pieces(head))
    }

    /// Overwrites bytes of what lies under a head from byte `at` of the value on; false if it is gone.
    /// The caller has the keyspace for itself: more than one part may change.
    pub(crate) fn overwrite(&self, head: &Parts, at: u64, mut bytes: &[u8]) -> Result<bool> {
        debug_assert!(at + bytes.len() as u64 <= head.len, "within the value");
        let mut at = head.key_len + at;
        while !bytes.is_empty() {
            let place = Place::of(head, at);
            let (taken, rest) = bytes.split_at(bytes.len().min(place.room as usize));
            if !self.overwrite_part(head.id, &place, taken)? {
                return Ok(false);
            }
            at += taken.len() as u64;
            bytes = rest;
        }
        Ok(true)
    }

    /// Overwrites bytes of one part or piece; false if it is not there, or not so long.
    fn overwrite_part(&self, id: u64, place: &Place, bytes: &[u8]) -> Result<bool> {
        let written = self.table.update(key(id, place.number), |part| {
            let range = place.offset..place.offset + bytes.len();
            let room = part.get_mut(range);
            room.map(|room| room.copy_from_slice(bytes)).is_some()
        })?;
        Ok(written.unwrap_or(false))
    }

    /// Removes the parts that a head names, and all pieces.
    pub(crate) fn remove_all(&self, head: &Parts) -> Result<()> {
        for number in 0..parts(head) {
            self.table.remove(key(head.id, number))?;
        }
        self.remove_pieces(head.id, PIECES)
    }

    /// Removes the pieces of a value from one on: there is no gap between them.
    fn remove_pieces(&self, id: u64, from: u64) -> Result<()> {
        let mut numbers = from..;
        while self.table.remove(key(id, numbers.next().unwrap_or(u64::MAX)))? {}
        Ok(())
    }

    /// Bytes `from..to` of what lies under a head, key and value; `None` if it is gone.
    pub(crate) fn read(&self, head: &Parts, from: u64, to: u64) -> Result<Option<Vec<u8>>> {
        debug_assert!(from <= to && to <= head.key_len + head.len, "within the value");
        let mut bytes = Vec::with_capacity((to - from) as usize);
        let mut at = from;
        while at < to {
            let place = Place::of(head, at);
            let taken = place.room.min(to - at) as usize;
            let cut = |part: &[u8]| {
                let found = part.get(place.offset..place.offset + taken);
                bytes.extend_from_slice(found.unwrap_or_default());
                found.is_some()
            };
            if self.table.get_with(key(head.id, place.number), cut)? != Some(true) {
                return Ok(None);
            }
            at += taken as u64;
        }
        Ok(Some(bytes))
    }

    /// Tells if all parts and pieces of a value are there.
    pub(crate) fn is_whole(&self, head: &Parts) -> Result<bool> {
        for number in (0..parts(head)).chain((0..pieces(head)).map(|piece| PIECES + piece)) {
            if !self.table.contains_key(key(head.id, number))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the parts of values that `keep` does not know, and pieces behind the so many that it
    /// answers.
    pub(crate) fn retain(&self, keep: impl Fn(u64) -> Option<u64>) -> Result<()> {
        self.table.retain(|key, _part| {
            let pieces = id_of(key).and_then(&keep);
            pieces.is_some_and(|pieces| number_of(key).is_some_and(|it| it < PIECES + pieces))
        })?;
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

/// The number of a part or piece in its key.
fn number_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*key.get(8..)?.first_chunk()?))
}
