//! Snapshots of the first version: read, and written by no version since.
//!
//! Blocks of 256 KiB at most, each to a multiple of 4 KiB. Each says which it is, so that none is taken for
//! another:
//!
//! ```text
//! checksum 4 | length 4 | number of the block 7 | 1 for the last, 2 for compressed 1 | bytes
//! ```
//! Those of a compressed block are their length before that (4), and LZ4. All but the last have the same length
//! before. Their bytes, one after the other, are:
//!
//! ```text
//! magic 8 | log 8 | checkpoint 8 | table 8
//! key length + 1 | value length | key | value        for each entry
//! 0 | entries
//! ```
//! Numbers without a width have as many bytes as they need. All else is little endian.

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File, checksum};

use super::{Identity, Told};
use crate::error::{Error, Result};
use crate::frame::{number, split};

const MAGIC: [u8; 8] = *b"SWSNAP\x01\n";
const HEAD_BYTES: usize = 16;
const PIECE_BYTES: usize = 256 << 10;
const PAYLOAD_BYTES: usize = PIECE_BYTES - HEAD_BYTES;
/// In the last byte of a head.
const LAST: u8 = 1;
const COMPRESSED: u8 = 2;
/// Bytes that are read in one go.
const WINDOW_BYTES: usize = 4 * PIECE_BYTES;

/// Writes made-up bytes as those of a snapshot: behind the heads that they need.
#[cfg(any(fuzzing, test))]
pub(crate) fn write_stream(disk: &dyn Disk, identity: &Identity, input: &[u8]) -> Result<()> {
    let stream = [&identity.bytes(MAGIC)[..], input].concat();
    let pieces = stream.chunks(PAYLOAD_BYTES);
    let last = pieces.len() - 1;
    let mut bytes = Vec::new();
    for (number, piece) in pieces.enumerate() {
        let begin = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(piece.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(number as u64).to_le_bytes());
        bytes[begin + 15] = if number == last { LAST } else { 0 };
        bytes.extend_from_slice(piece);
        let sum = checksum(&bytes[begin + 4..]);
        bytes[begin..begin + 4].copy_from_slice(&sum.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
    }
    let mut blocks = Blocks::new(bytes.len());
    blocks.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
    let file = disk.create(&identity.file_name());
    let written = file.and_then(|file| file.write_at(0, &blocks));
    written.map_err(|cause| Error::io("write a snapshot", &cause))
}

/// Reads a snapshot and tells its entries.
pub(super) fn read<E: From<Error>>(
    disk: &dyn Disk,
    identity: &Identity,
    told: &mut dyn Told<E>,
) -> std::result::Result<u64, E> {
    let name = identity.file_name();
    let unread = |cause| Error::io(format!("read {name}"), &cause);
    let file = disk.open(&name).map_err(unread)?;
    let bytes = file.bytes().map_err(unread)?;
    let mut reader = Reader::new(&name, file, bytes);
    let mut stream: Vec<u8> = Vec::new();
    let mut entries = 0;
    let mut is_begun = false;
    loop {
        let before = reader.offset;
        let is_last = reader.next(&mut stream)?;
        told.read(reader.offset - before);
        let mut rest = &stream[..];
        if !is_begun {
            if rest.get(..32) != Some(&identity.bytes(MAGIC)[..]) {
                return Err(reader.corrupt("it is not the snapshot that it should be").into());
            }
            rest = &rest[32..];
            is_begun = true;
        }
        loop {
            let mut ahead = rest;
            match next_entry(&mut ahead) {
                Some(Next::Entry(key, value)) => {
                    entries += 1;
                    told.entry(key, value)?;
                }
                Some(Next::End(count)) if is_last && ahead.is_empty() && count == entries => {
                    return Ok(entries);
                }
                Some(Next::End(_)) => {
                    return Err(reader.corrupt("it ends where it does not").into());
                }
                None => break,
            }
            rest = ahead;
        }
        if is_last {
            return Err(reader.corrupt("an entry is cut off").into());
        }
        let kept = stream.len() - rest.len();
        stream.drain(..kept);
    }
}

enum Next<'a> {
    Entry(&'a [u8], &'a [u8]),
    End(u64),
}

/// The next entry, if all of it is there.
fn next_entry<'a>(rest: &mut &'a [u8]) -> Option<Next<'a>> {
    let Some(key_len) = number(rest)?.checked_sub(1) else {
        return number(rest).map(Next::End);
    };
    let value_len = number(rest)?;
    Some(Next::Entry(split(rest, key_len)?, split(rest, value_len)?))
}

struct Reader<'n> {
    name: &'n str,
    file: std::sync::Arc<dyn File>,
    bytes: u64,
    /// Of the block that is next, and of the one before.
    offset: u64,
    before: u64,
    pieces: u64,
    /// Bytes of the file that were read together, and where they begin.
    window: Blocks,
    from: u64,
}

impl<'n> Reader<'n> {
    fn new(name: &'n str, file: std::sync::Arc<dyn File>, bytes: u64) -> Reader<'n> {
        let (window, from) = (Blocks::default(), 0);
        Reader { name, file, bytes, offset: 0, before: 0, pieces: 0, window, from }
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.name, self.before, what)
    }

    /// Reads until the window has a whole block; where that is.
    fn fill(&mut self) -> Result<usize> {
        let wanted = self.bytes.saturating_sub(self.offset).min(PIECE_BYTES as u64);
        let wanted = wanted as usize / BLOCK_BYTES * BLOCK_BYTES;
        if wanted == 0 {
            return Err(self.corrupt("it is cut off"));
        }
        let ends = self.from + self.window.bytes().len() as u64;
        if self.offset < self.from || self.offset + wanted as u64 > ends {
            let left = self.bytes.saturating_sub(self.offset).min(WINDOW_BYTES as u64) as usize;
            self.window.resize(left / BLOCK_BYTES * BLOCK_BYTES);
            let read = self.file.read_at(self.offset, &mut self.window);
            read.map_err(|cause| Error::io(format!("read {}", self.name), &cause))?;
            self.from = self.offset;
        }
        Ok((self.offset - self.from) as usize)
    }

    /// Appends the bytes of a block; whether it is the last.
    fn next(&mut self, stream: &mut Vec<u8>) -> Result<bool> {
        self.before = self.offset;
        let at = self.fill()?;
        let piece = &self.window.bytes()[at..];
        let piece = &piece[..piece.len().min(PIECE_BYTES)];
        let word = |at: usize| u32::from_le_bytes(piece[at..at + 4].try_into().unwrap_or_default());
        let len = word(4) as usize;
        let used = HEAD_BYTES.saturating_add(len);
        if used > piece.len() || checksum(&piece[4..used]) != word(0) {
            return Err(self.corrupt("a checksum is wrong"));
        }
        let mut head = *piece[8..].first_chunk::<8>().unwrap_or(&[0; 8]);
        let kind = std::mem::take(&mut head[7]);
        if u64::from_le_bytes(head) != self.pieces {
            return Err(self.corrupt("a block is at another's place"));
        }
        if kind & !(LAST | COMPRESSED) != 0 {
            return Err(self.corrupt("a block is of a kind that this program does not know"));
        }
        let payload = &piece[HEAD_BYTES..used];
        let begin = stream.len();
        if kind & COMPRESSED == 0 {
            stream.extend_from_slice(payload);
        } else if unpack(payload, stream).is_none() {
            return Err(self.corrupt("a block cannot be decompressed"));
        }
        let is_last = kind & LAST != 0;
        if !is_last && stream.len() - begin != PAYLOAD_BYTES {
            return Err(self.corrupt("a block that is not the last is not full"));
        }
        self.offset += used.next_multiple_of(BLOCK_BYTES) as u64;
        self.pieces += 1;
        Ok(is_last)
    }
}

/// Appends what was compressed, if it is.
fn unpack(payload: &[u8], stream: &mut Vec<u8>) -> Option<()> {
    let (len, packed) = payload.split_first_chunk()?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > PAYLOAD_BYTES {
        return None;
    }
    let begin = stream.len();
    stream.resize(begin + len, 0);
    let unpacked = lz4_flex::block::decompress_into(packed, &mut stream[begin..]).ok()?;
    (unpacked == len).then_some(())
}
