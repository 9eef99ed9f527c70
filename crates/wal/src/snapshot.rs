//! Snapshots: the entries of a table, in one file.
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

use integer_encoding::VarInt;
use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File, checksum};

use crate::error::{Error, Result};
use crate::frame::{TableId, number, split};
use crate::pace::Pace;

const MAGIC: [u8; 8] = *b"SWSNAP\x01\n";
const HEAD_BYTES: usize = 16;
const PIECE_BYTES: usize = 256 << 10;
const PAYLOAD_BYTES: usize = PIECE_BYTES - HEAD_BYTES;
/// In the last byte of a head.
const LAST: u8 = 1;
const COMPRESSED: u8 = 2;
/// Bytes that are read in one go.
const WINDOW_BYTES: usize = 4 * PIECE_BYTES;

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

/// How snapshots are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Writing<'p> {
    pub(crate) compresses: bool,
    pub(crate) pace: Option<&'p Pace>,
}

/// A snapshot that is being written.
pub(crate) struct Writer<'d> {
    name: String,
    file: std::sync::Arc<dyn File>,
    writing: Writing<'d>,
    piece: Blocks,
    packed: Blocks,
    used: usize,
    pieces: u64,
    offset: u64,
    entries: u64,
}

impl<'d> Writer<'d> {
    pub(crate) fn create(
        disk: &dyn Disk,
        identity: &Identity,
        writing: Writing<'d>,
    ) -> Result<Writer<'d>> {
        let name = identity.file_name();
        let file = disk.create(&name).map_err(|cause| Error::io(format!("make {name}"), &cause))?;
        let piece = Blocks::new(PIECE_BYTES);
        let packed = match writing.compresses {
            true => Blocks::new(
                HEAD_BYTES + 4 + lz4_flex::block::get_maximum_output_size(PAYLOAD_BYTES),
            ),
            false => Blocks::default(),
        };
        let (used, pieces, offset, entries) = (0, 0, 0, 0);
        let mut writer =
            Writer { name, file, writing, piece, packed, used, pieces, offset, entries };
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
        let packed = self.writing.compresses.then(|| self.pack()).flatten();
        let (piece, len, kind) = match packed {
            Some(len) => (&mut self.packed, len, last | COMPRESSED),
            None => (&mut self.piece, self.used, last),
        };
        let used = HEAD_BYTES + len;
        let bytes = piece.bytes_mut();
        bytes[4..8].copy_from_slice(&(len as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.pieces.to_le_bytes());
        bytes[15] = kind;
        let sum = checksum(&bytes[4..used]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        let blocks = used.div_ceil(BLOCK_BYTES);
        bytes[used..blocks * BLOCK_BYTES].fill(0);
        self.file
            .write_some_at(self.offset, piece, 0..blocks)
            .map_err(|cause| Error::io(format!("write {}", self.name), &cause))?;
        self.offset += (blocks * BLOCK_BYTES) as u64;
        self.pieces += 1;
        self.used = 0;
        if let Some(pace) = self.writing.pace {
            pace.wait(blocks * BLOCK_BYTES);
        }
        Ok(())
    }

    /// Compresses the block; its length if that saves a block of the disk.
    fn pack(&mut self) -> Option<usize> {
        let bytes = &self.piece.bytes()[HEAD_BYTES..HEAD_BYTES + self.used];
        let into = &mut self.packed.bytes_mut()[HEAD_BYTES..];
        into[..4].copy_from_slice(&(self.used as u32).to_le_bytes());
        let len = 4 + lz4_flex::block::compress_into(bytes, &mut into[4..]).ok()?;
        let blocks = |len: usize| (HEAD_BYTES + len).div_ceil(BLOCK_BYTES);
        (blocks(len) < blocks(self.used)).then_some(len)
    }
}

/// Writes made-up bytes as those of a snapshot.
#[cfg(any(fuzzing, test))]
pub(crate) fn write_stream(disk: &dyn Disk, identity: &Identity, input: &[u8]) -> Result<()> {
    let mut writer = Writer::create(disk, identity, Writing::default())?;
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
    let bytes = file.bytes().map_err(unread)?;
    let mut reader = Reader::new(&name, file, bytes);
    let mut stream: Vec<u8> = Vec::new();
    let mut entries = 0;
    let mut is_begun = false;
    loop {
        let is_last = reader.next(&mut stream)?;
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
