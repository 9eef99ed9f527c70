//! The manifest: which checkpoint counts.
//!
//! It is written under another name, made to last, and renamed: a crash leaves the one before or this
//! one, whole.
//!
//! ```text
//! magic 8 | checksum 4 | length 4 | bytes, zeros to the end of the block
//! ```
//! The bytes are numbers of as many bytes as each needs: log, checkpoint, LSN, part, durable, tables
//! ever made, tables; and of each table its number, 0 for a snapshot or one more than the number of its
//! own checkpoint, name and description, with their lengths.

use integer_encoding::VarInt;
use sapwood_disk::log::LogStart;
use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, checksum};

use crate::error::{Error, Result};
use crate::frame::{TableId, number, split};

pub(crate) const FILE: &str = "manifest";
const NEW: &str = "manifest.new";
const MAGIC: [u8; 8] = *b"SWMANI\x01\n";
pub(crate) const HEAD_BYTES: usize = 16;

/// A checkpoint that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The number that tells the files of this log from those of others.
    pub(crate) log: u64,
    /// Of the checkpoint; its snapshots have it, too.
    pub(crate) checkpoint: u64,
    pub(crate) start: LogStart,
    /// Numbers of tables below this one were given away.
    pub(crate) next_table: TableId,
    pub(crate) tables: Vec<Table>,
}

/// A table that there was at the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) id: TableId,
    pub(crate) name: String,
    pub(crate) description: Vec<u8>,
    /// The number of the checkpoint of its engine; none of a table that has a snapshot.
    pub(crate) own: Option<u64>,
}

/// Fills in the head.
fn seal(bytes: &mut [u8]) {
    let len = bytes.len() as u32 - HEAD_BYTES as u32;
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[12..16].copy_from_slice(&len.to_le_bytes());
    let sum = checksum(&bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Made-up bytes behind a head that is right.
#[cfg(any(fuzzing, test))]
pub(crate) fn sealed(input: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; HEAD_BYTES], input].concat();
    seal(&mut bytes);
    bytes
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        let number = |value: u64, bytes: &mut Vec<u8>| {
            let mut encoded = [0; 10];
            let len = value.encode_var(&mut encoded);
            bytes.extend_from_slice(&encoded[..len]);
        };
        let Manifest { log, checkpoint, start, next_table, tables } = self;
        let LogStart { lsn, part, durable } = *start;
        for value in [*log, *checkpoint, lsn, part, durable, *next_table, tables.len() as u64] {
            number(value, &mut bytes);
        }
        for Table { id, name, description, own } in tables {
            number(*id, &mut bytes);
            number(own.map_or(0, |own| own.saturating_add(1)), &mut bytes);
            for text in [name.as_bytes(), description] {
                number(text.len() as u64, &mut bytes);
                bytes.extend_from_slice(text);
            }
        }
        seal(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Manifest, &'static str> {
        if bytes.get(..8) != Some(&MAGIC[..]) {
            return Err("it does not begin as a manifest does");
        }
        let word = |at: usize| {
            let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map(u32::from_le_bytes).ok_or("it is cut off")
        };
        let end = HEAD_BYTES.saturating_add(word(12)? as usize);
        let covered = bytes.get(12..end).ok_or("it is cut off")?;
        if checksum(covered) != word(8)? {
            return Err("its checksum is wrong");
        }
        Manifest::parse(&bytes[HEAD_BYTES..end]).ok_or("it says what this program does not know")
    }

    fn parse(mut bytes: &[u8]) -> Option<Manifest> {
        let bytes = &mut bytes;
        let (log, checkpoint) = (number(bytes)?, number(bytes)?);
        let start = LogStart { lsn: number(bytes)?, part: number(bytes)?, durable: number(bytes)? };
        let (next_table, count) = (number(bytes)?, number(bytes)?);
        let mut tables = Vec::new();
        for _ in 0..count {
            let id = number(bytes)?;
            let own = number(bytes)?.checked_sub(1);
            let len = number(bytes)?;
            let name = std::str::from_utf8(split(bytes, len)?).ok()?.to_owned();
            let len = number(bytes)?;
            let description = split(bytes, len)?.to_vec();
            tables.push(Table { id, name, description, own });
        }
        bytes.is_empty().then_some(Manifest { log, checkpoint, start, next_table, tables })
    }

    /// Makes it the one that counts, and all names last.
    pub(crate) fn write(&self, disk: &dyn Disk) -> Result<()> {
        self.prepare(disk)?;
        Manifest::publish(disk)
    }

    /// Writes it under another name, behind which all names last that there are.
    pub(crate) fn prepare(&self, disk: &dyn Disk) -> Result<()> {
        let bytes = self.encode();
        let mut blocks = Blocks::new(bytes.len());
        blocks.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        let write = || {
            if disk.list()?.iter().any(|name| name == NEW) {
                disk.remove(NEW)?;
            }
            let file = disk.create(NEW)?;
            file.write_at(0, &blocks)?;
            file.sync()?;
            // The snapshots have their names before the manifest has its own.
            disk.sync()
        };
        write().map_err(unwritten)
    }

    /// Makes the one that was prepared count.
    pub(crate) fn publish(disk: &dyn Disk) -> Result<()> {
        disk.rename(NEW, FILE).and_then(|()| disk.sync()).map_err(unwritten)
    }

    pub(crate) fn read(disk: &dyn Disk) -> Result<Manifest> {
        let unread = |cause| Error::io(format!("read {FILE}"), &cause);
        let file = disk.open(FILE).map_err(unread)?;
        let bytes = file.bytes().map_err(unread)? as usize / BLOCK_BYTES * BLOCK_BYTES;
        if bytes == 0 {
            return Err(Error::corrupt(FILE, 0, "it is cut off"));
        }
        let mut blocks = Blocks::new(bytes);
        file.read_at(0, &mut blocks).map_err(unread)?;
        Error::expect_known(FILE, blocks.bytes(), MAGIC)?;
        Manifest::decode(blocks.bytes()).map_err(|what| Error::corrupt(FILE, 0, what))
    }
}

fn unwritten(cause: std::io::Error) -> Error {
    Error::io(format!("write {FILE}"), &cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_no_bit_may_flip() {
        let table = |id, name: &str| {
            let own = (id > 1).then_some(0);
            Table { id, name: name.to_owned(), description: vec![0; 200], own }
        };
        let manifest = Manifest {
            log: u64::MAX,
            checkpoint: 9,
            start: LogStart { lsn: 1 << 40, part: 3, durable: 5 },
            next_table: 12,
            tables: vec![table(1, "a"), table(11, "å")],
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest));
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(Manifest::decode(&bytes).is_err(), "byte {at}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = Manifest::decode(&bytes);
            let _ = Manifest::parse(&bytes);
        }
    }
}
