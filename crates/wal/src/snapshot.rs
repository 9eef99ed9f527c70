//! Snapshots: the entries of a table at a checkpoint, in one file that is read in place.
//!
//! ```text
//! magic 8 | log 8 | checkpoint 8 | table 8
//! block                                            up to 8,192 entries each, in the order of their keys
//! index                                            where each block begins, and its first key
//! magic 8 | where the index begins 8 | checksum 4  at the end of the last 4 KiB
//! ```
//!
//! The last checksum is over the first 32 bytes of the file and the 16 before it.
//!
//! Entries are cut into pieces ([`Cut`]), and those of all entries of a block that are at one place lie together, packed
//! by LZ4: a reader takes those that it needs. A block, and the index, begin with
//!
//! ```text
//! checksum 4 | bytes of the head 4 | bytes behind it 8 | head
//! ```
//!
//! The checksum is over the first 32 bytes of the file, the number of the block (8), and all that follows up to the end
//! of the head. The head of a block:
//!
//! ```text
//! 1 | entries | layout | pieces of the key | pieces
//! 0 | 0 | values                                  for each piece, if few values differ: how many
//! width + 1, or 0 and the width of lengths
//! bytes | packed bytes | checksum 4               for each of its streams: lengths, if they differ, bytes, and codes
//! ```
//!
//! A piece of which up to 256 values differ lies as a dictionary: the values in their order, then the code of each entry,
//! one byte, which is the number of its value.
//!
//! That of the index is `2 | blocks | entries | bytes of keys | bytes of values | bytes | packed bytes | checksum 4`, and
//! what is packed has for each block the bytes of its head, of its streams, its entries, and its first key with its
//! length. Numbers without a width have as many bytes as they need; all others are little endian. Values of up to 16
//! bytes of one width lie by planes: the first bytes of all, then the second ones.
//!
//! Files of the first version are read as well (`first`).

mod ahead;
mod dictionary;
mod first;
mod stored;
mod streams;
mod writer;

use sapwood_disk::{Disk, Presence};

use crate::error::{Error, Result};
use crate::frame::TableId;

pub use ahead::ReadAhead;
pub use stored::{Block, Piece, Snapshot, Values};
pub use writer::{Cut, Layout};

#[cfg(any(fuzzing, test))]
pub(crate) use first::write_stream;
#[cfg(any(fuzzing, test))]
pub(crate) use writer::write_block;
pub(crate) use writer::{Writing, write};

const MAGIC: [u8; 8] = *b"SWSNAP\x02\n";
/// Bytes in front of a head.
const PREFIX_BYTES: usize = 16;
/// Bytes at the end of the file.
const END_BYTES: usize = 20;
const BLOCK: u64 = 1;
const INDEX: u64 = 2;
/// A block has at most so many entries.
const ENTRIES_MAX: usize = 8_192;
/// Values that a dictionary has at most: their numbers are bytes.
const CODES_MAX: usize = 256;
/// The layout of entries that are not cut: the key and the value.
const WHOLE: u32 = 0;

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

    /// The first bytes of the file.
    fn bytes(&self, magic: [u8; 8]) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&magic);
        for (into, number) in
            bytes[8..].chunks_exact_mut(8).zip([self.log, self.checkpoint, self.table])
        {
            into.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The checksum of a head with its lengths, which is that of a block of this number.
    fn checksum(&self, number: u64, head: &[u8]) -> u32 {
        let of = [&self.bytes(MAGIC)[..], &number.to_le_bytes(), head].concat();
        sapwood_disk::checksum(&of)
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

/// Takes what a snapshot has.
pub(crate) trait Told<E> {
    /// The next entry; an error ends the reading.
    fn entry(&mut self, key: &[u8], value: &[u8]) -> std::result::Result<(), E>;
    /// So many bytes of the file were read.
    fn read(&mut self, bytes: u64) {
        let _not_shown = bytes;
    }
}

impl<E, F: FnMut(&[u8], &[u8]) -> std::result::Result<(), E>> Told<E> for F {
    fn entry(&mut self, key: &[u8], value: &[u8]) -> std::result::Result<(), E> {
        self(key, value)
    }
}

/// Reads a snapshot and tells its entries, up to the first that is damaged; how many there are.
pub(crate) fn read<E: From<Error>>(
    disk: &dyn Disk,
    identity: &Identity,
    told: &mut dyn Told<E>,
) -> std::result::Result<u64, E> {
    match is_first(disk, identity)? {
        true => first::read(disk, identity, told),
        false => stored::read(disk, identity, told),
    }
}

/// Opens a snapshot to read what is wanted of it; `None` of one of an earlier version, which is read as a whole.
pub(crate) fn open(disk: &dyn Disk, identity: &Identity) -> Result<Option<Snapshot>> {
    match is_first(disk, identity)? {
        true => Ok(None),
        false => Snapshot::open(disk, identity).map(Some),
    }
}

/// Whether a file is of an earlier version, which begins with a checksum.
fn is_first(disk: &dyn Disk, identity: &Identity) -> Result<bool> {
    let name = identity.file_name();
    let unread = |cause| Error::io(format!("read {name}"), &cause);
    let file = disk.cached(&name, Presence::There).map_err(unread)?;
    let mut magic = [0; 8];
    if file.bytes().map_err(unread)? >= 8 {
        file.read_at(0, &mut magic).map_err(unread)?;
    }
    Error::expect_known(&name, &magic, MAGIC)?;
    Ok(magic[..6] != MAGIC[..6])
}
