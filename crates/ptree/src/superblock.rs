//! The superblock: where a pool begins.
//!
//! Two pages at the beginning of the heap's file take turns. Each says which pool this is, and where
//! in the log the heap's pages begin to be out of date. The one with the higher generation counts;
//! where it is damaged, a crash cut off its writing, and the other does.
//!
//! ```text
//! magic 8 | version 4 | checksum 4 | pool 8 | generation 8 | LSN 8 | part 8 | durable 8 | heap words 8 | name length 8 | name 64
//! shared log 8
//! ```
//! Little endian. The last field is there in version 2 alone, of a pool that shares a log; one with a log of its
//! own is of version 1.

use sapwood_disk::log::LogStart;
use sapwood_disk::{CachedFile, checksum, is_later_version};

use crate::error::{Error, Result};

const MAGIC: [u8; 8] = *b"SWPOOL\x01\n";
/// The version of a pool with a log of its own.
const OWN_LOG: u32 = 1;
/// The version of a pool that shares a log.
const SHARED_LOG: u32 = 2;
const BYTES: usize = SHARED_AT + 8;
/// Where the number of the shared log stands, and version 1 ends.
const SHARED_AT: usize = 16 + 7 * 8 + NAME_BYTES_MAX;
const PAGE_BYTES: u64 = 4096;
/// Bytes of the longest layout name.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// The file of the heap.
pub(crate) const HEAP_FILE: &str = "heap";

/// One of the two pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) pool: u64,
    pub(crate) generation: u64,
    pub(crate) log: LogStart,
    /// Words of the heap that the file has.
    pub(crate) heap_words: u64,
    pub(crate) layout_name: String,
    /// The number of the log, if the pool shares one.
    pub(crate) shared_log: Option<u64>,
}

impl Superblock {
    /// The version of the format.
    pub(crate) fn version(&self) -> u32 {
        if self.shared_log.is_some() { SHARED_LOG } else { OWN_LOG }
    }

    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let version = self.version();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let name = self.layout_name.as_bytes();
        let fields = [
            self.pool,
            self.generation,
            self.log.lsn,
            self.log.part,
            self.log.durable,
            self.heap_words,
            name.len() as u64,
        ];
        for (field, into) in fields.iter().zip(bytes[16..].chunks_exact_mut(8)) {
            into.copy_from_slice(&field.to_le_bytes());
        }
        let at = 16 + fields.len() * 8;
        bytes[at..at + name.len()].copy_from_slice(name);
        bytes[SHARED_AT..].copy_from_slice(&self.shared_log.unwrap_or(0).to_le_bytes());
        let sum = checksum(&bytes[16..end_of(version)]) ^ version;
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// What is wrong with the bytes, if they are none.
    pub(crate) fn decode(bytes: &[u8; BYTES]) -> std::result::Result<Superblock, String> {
        if bytes[..8] != MAGIC {
            return Err("it does not begin as the heap of a pool does".to_owned());
        }
        let version = u32::from_le_bytes(bytes[8..12].try_into().unwrap_or_default());
        if ![OWN_LOG, SHARED_LOG].contains(&version) {
            return Err(format!(
                "it is of version {version}, and this program reads {OWN_LOG} and {SHARED_LOG}"
            ));
        }
        let sum = u32::from_le_bytes(bytes[12..16].try_into().unwrap_or_default());
        if checksum(&bytes[16..end_of(version)]) ^ version != sum {
            return Err("its checksum is wrong".to_owned());
        }
        let word = |at: usize| {
            let bytes = bytes[at..].first_chunk();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let field = |number: usize| word(16 + number * 8);
        let at = 16 + 7 * 8;
        let name = usize::try_from(field(6)).ok().filter(|len| *len <= NAME_BYTES_MAX);
        let name = name.and_then(|len| std::str::from_utf8(&bytes[at..at + len]).ok());
        let layout_name = name.ok_or_else(|| "its layout has no name".to_owned())?.to_owned();
        Ok(Superblock {
            pool: field(0),
            generation: field(1),
            log: LogStart { lsn: field(2), part: field(3), durable: field(4) },
            heap_words: field(5),
            layout_name,
            shared_log: (version == SHARED_LOG).then(|| word(SHARED_AT)),
        })
    }

    /// Writes it to its page, where the older one is, and makes it last.
    pub(crate) fn write(&self, file: &dyn CachedFile) -> std::io::Result<()> {
        file.write_at(self.generation % 2 * PAGE_BYTES, &self.encode())?;
        file.sync()
    }

    /// Reads the newer of the two that are whole.
    pub(crate) fn read(file: &dyn CachedFile) -> Result<Superblock> {
        let io = |cause: std::io::Error| Error::io(format!("read {HEAP_FILE}"), &cause);
        let mut newest: Option<Superblock> = None;
        let mut refused = "it is shorter than a superblock".to_owned();
        for page in 0..2 {
            let offset = page * PAGE_BYTES;
            if file.bytes().map_err(io)? < offset + BYTES as u64 {
                continue;
            }
            let mut bytes = [0; BYTES];
            file.read_at(offset, &mut bytes).map_err(io)?;
            expect_known(&bytes)?;
            match Superblock::decode(&bytes) {
                Ok(read) if read.generation % 2 != page => {
                    refused = "a superblock is at the other's place".to_owned();
                }
                Ok(read) => {
                    if newest.as_ref().is_none_or(|newest| newest.generation < read.generation) {
                        newest = Some(read);
                    }
                }
                Err(why) => refused = why,
            }
        }
        let damaged =
            || Error::CorruptFile { file: HEAP_FILE.to_owned(), offset: 0, what: refused };
        newest.ok_or_else(damaged)
    }
}

/// Refuses the superblock of a later version of the format, even where the other one is of a known version: that
/// is the older state.
fn expect_known(bytes: &[u8; BYTES]) -> Result<()> {
    let found = u32::from_le_bytes(bytes[8..12].try_into().unwrap_or_default());
    if bytes[..8] == MAGIC && is_later_version(found, SHARED_LOG) {
        return Err(Error::Newer { file: HEAP_FILE.to_owned(), found, known: SHARED_LOG });
    }
    Ok(())
}

/// Where a superblock of a version ends.
fn end_of(version: u32) -> usize {
    if version == SHARED_LOG { BYTES } else { SHARED_AT }
}

/// The bytes of a superblock, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> Vec<crate::object::LayoutRow> {
    // Each field says where it is.
    let name = "n".repeat(NAME_BYTES_MAX);
    let log = LogStart { lsn: 32, part: 40, durable: 48 };
    let sample = Superblock {
        pool: 16,
        generation: 24,
        log,
        heap_words: 56,
        layout_name: name.clone(),
        shared_log: Some(136),
    };
    let bytes = sample.encode();
    for at in [16, 24, 32, 40, 48, 56, 136] {
        assert_eq!(bytes[at..at + 8], (at as u64).to_le_bytes(), "as the table says");
    }
    assert_eq!((bytes[64], &bytes[72..136]), (NAME_BYTES_MAX as u8, name.as_bytes()));
    assert_eq!((&bytes[..8], bytes[8]), (&MAGIC[..], SHARED_LOG as u8));
    vec![
        (0, 8, "magic", "SWPOOL, 1, a new line"),
        (8, 4, "version", "1 with a log of its own, 2 with a shared one"),
        (12, 4, "checksum", "CRC-32 of all that follows, xor the version"),
        (16, 8, "pool", "which pool; the number of its own log"),
        (
            24,
            8,
            "generation",
            "the higher of the two is the newer; odd ones are in the second page",
        ),
        (32, 8, "lsn", "from there on the log has what pages may lack"),
        (40, 8, "part", "number of the log's part with that position"),
        (48, 8, "durable", "up to there the log lasts: one that ends before is damaged"),
        (56, 8, "words", "of the heap, that the file has"),
        (64, 8, "length", "bytes of the layout's name"),
        (72, NAME_BYTES_MAX as u32, "name", "of the layout, zeros behind"),
        (136, 8, "shared log", "number of the log that the pool shares; not there in version 1"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_is_read_as_it_was_written_and_no_bit_may_flip() {
        for shared_log in [None, Some(7)] {
            let block = Superblock {
                pool: 1,
                generation: 2,
                log: LogStart { lsn: 3, part: 4, durable: 5 },
                heap_words: 6,
                layout_name: "ledger".to_owned(),
                shared_log,
            };
            let bytes = block.encode();
            let end = end_of(block.version());
            assert_eq!(Superblock::decode(&bytes), Ok(block));
            for at in 0..end {
                let mut bytes = bytes;
                bytes[at] ^= 1;
                assert!(Superblock::decode(&bytes).is_err(), "byte {at}");
            }
        }
    }
}
