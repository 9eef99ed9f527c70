//! Snapshots: the entries of a table, in one file.
//!
//! Blocks of 256 KiB, of which the last may be shorter. Each says which it is, so that none is taken
//! for another:
//!
//! ```text
//! checksum 4 | length 4 | number of the block 7, last or not 1 | bytes
//! ```
//! Their bytes, one after the other, are:
//!
//! ```text
//! magic 8 | log 8 | checkpoint 8 | table 8
//! key length + 1 | value length | key | value        for each entry
//! 0 | entries
//! ```
//! Numbers without a width have as many bytes as they need. All else is little endian.

use integer_encoding::VarInt;
use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File, checksum};

use crate::error::{Error, Result};
use crate::frame::{TableId, number, split};

const MAGIC: [u8; 8] = *b"SWSNAP\x01\n";
const HEAD_BYTES: usize = 16;
const PIECE_BYTES: usize = 256 << 10;
const PAYLOAD_BYTES: usize = PIECE_BYTES - HEAD_BYTES;
/// In the last byte of a head.
const LAST: u8 = 1;

/// Which snapshot it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) log: u64,
    pub(crate) checkpoint: u64,
    pub(crate) table: TableId,
}

impl Identity {
    pub(crate) fn file_name(&self) -> String {
        format!("snapshot-{:016x}-{:016x}", self.checkpoint, self.table)
    }

    fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&MAGIC);
        for (into, number) in
            bytes[8..].chunks_exact_mut(8).zip([self.log, self.checkpoint, self.table])
        {
            into.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

/// The number of the checkpoint that a file is a snapshot of.
pub(crate) fn checkpoint_of(name: &str) -> Option<u64> {
    numbers_of(name).map(|(checkpoint, _)| checkpoint)
}

/// The numbers of the checkpoint and of the table that a file is a snapshot of.
pub(crate) fn numbers_of(name: &str) -> Option<(u64, TableId)> {
    let (checkpoint, table) = name.strip_prefix("snapshot-")?.split_once('-')?;
    Some((u64::from_str_radix(checkpoint, 16).ok()?, u64::from_str_radix(table, 16).ok()?))
}

/// A snapshot that is being written.
pub(crate) struct Writer<'d> {
    name: String,
    file: std::sync::Arc<dyn File>,
    disk: std::marker::PhantomData<&'d dyn Disk>,
    piece: Blocks,
    used: usize,
    pieces: u64,
    entries: u64,
}

impl<'d> Writer<'d> {
    pub(crate) fn create(disk: &'d dyn Disk, identity: &Identity) -> Result<Writer<'d>> {
        let name = identity.file_name();
        let file = disk.create(&name).map_err(|cause| Error::io(format!("make {name}"), &cause))?;
        let piece = Blocks::new(PIECE_BYTES);
        let disk = std::marker::PhantomData;
        let mut writer = Writer { name, file, disk, piece, used: 0, pieces: 0, entries: 0 };
        writer.add(&identity.bytes())?;
        Ok(writer)
    }

    pub(crate) fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut head = [0; 20];
        let mut len = (key.len() as u64 + 1).encode_var(&mut head);
        len += (value.len() as u64).encode_var(&mut head[len..]);
        self.add(&head[..len])?;
        self.add(key)?;
        self.entries += 1;
        self.add(value)
    }

    /// Ends the file and makes it last; its bytes.
    pub(crate) fn finish(mut self) -> Result<u64> {
        let mut tail = [0; 11];
        let len = 1 + self.entries.encode_var(&mut tail[1..]);
        self.add(&tail[..len])?;
        self.write_piece(LAST)?;
        let bytes = self.file.bytes();
        let bytes = self.file.sync().and(bytes);
        bytes.map_err(|cause| Error::io(format!("write {}", self.name), &cause))
    }

    fn add(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.used == PAYLOAD_BYTES {
                self.write_piece(0)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PAYLOAD_BYTES - self.used));
            let at = HEAD_BYTES + self.used;
            self.piece.bytes_mut()[at..at + now.len()].copy_from_slice(now);
            self.used += now.len();
            bytes = later;
        }
        Ok(())
    }

    fn write_piece(&mut self, last: u8) -> Result<()> {
        let used = HEAD_BYTES + self.used;
        let bytes = self.piece.bytes_mut();
        bytes[4..8].copy_from_slice(&(self.used as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.pieces.to_le_bytes());
        bytes[15] = last;
        let sum = checksum(&bytes[4..used]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        let blocks = used.div_ceil(BLOCK_BYTES);
        bytes[used..blocks * BLOCK_BYTES].fill(0);
        let offset = self.pieces * PIECE_BYTES as u64;
        self.file
            .write_some_at(offset, &self.piece, 0..blocks)
            .map_err(|cause| Error::io(format!("write {}", self.name), &cause))?;
        self.pieces += 1;
        self.used = 0;
        Ok(())
    }
}

/// Writes made-up bytes as those of a snapshot.
#[cfg(any(fuzzing, test))]
pub(crate) fn write_stream(disk: &dyn Disk, identity: &Identity, input: &[u8]) -> Result<()> {
    let mut writer = Writer::create(disk, identity)?;
    writer.add(input)?;
    writer.write_piece(LAST)
}

/// Reads a snapshot and tells its entries.
pub(crate) fn read<E: From<Error>>(
    disk: &dyn Disk,
    identity: &Identity,
    entry: &mut dyn FnMut(&[u8], &[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<u64, E> {
    let name = identity.file_name();
    let unread = |cause| Error::io(format!("read {name}"), &cause);
    let file = disk.open(&name).map_err(unread)?;
    let mut reader = Reader { name: &name, bytes: file.bytes().map_err(unread)?, file, pieces: 0 };
    let mut piece = Blocks::new(PIECE_BYTES);
    let mut stream: Vec<u8> = Vec::new();
    let mut entries = 0;
    let mut is_begun = false;
    loop {
        let (len, is_last) = reader.next(&mut piece)?;
        stream.extend_from_slice(&piece.bytes()[HEAD_BYTES..HEAD_BYTES + len]);
        let mut rest = &stream[..];
        if !is_begun {
            if rest.get(..32) != Some(&identity.bytes()[..]) {
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
                    entry(key, value)?;
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
    pieces: u64,
}

impl Reader<'_> {
    fn corrupt(&self, what: &str) -> Error {
        let offset = self.pieces.saturating_sub(1) * PIECE_BYTES as u64;
        Error::corrupt(self.name, offset, what)
    }

    /// Reads a block; its length, and whether it is the last.
    fn next(&mut self, piece: &mut Blocks) -> Result<(usize, bool)> {
        let offset = self.pieces * PIECE_BYTES as u64;
        let left = self.bytes.saturating_sub(offset).min(PIECE_BYTES as u64) as usize;
        self.pieces += 1;
        let whole = left / BLOCK_BYTES * BLOCK_BYTES;
        if whole == 0 {
            return Err(self.corrupt("it is cut off"));
        }
        piece.resize(whole);
        let read = self.file.read_at(offset, piece);
        read.map_err(|cause| Error::io(format!("read {}", self.name), &cause))?;
        let bytes = piece.bytes();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        let len = word(4) as usize;
        let used = HEAD_BYTES.saturating_add(len);
        if used > whole || checksum(&bytes[4..used]) != word(0) {
            return Err(self.corrupt("a checksum is wrong"));
        }
        let mut head = *bytes[8..].first_chunk::<8>().unwrap_or(&[0; 8]);
        let is_last = std::mem::take(&mut head[7]) == LAST;
        if u64::from_le_bytes(head) != self.pieces - 1 {
            return Err(self.corrupt("a block is at another's place"));
        }
        if !is_last && len != PAYLOAD_BYTES {
            return Err(self.corrupt("a block that is not the last is not full"));
        }
        Ok((len, is_last))
    }
}
