//! The bytes of a log.
//!
//! ```text
//! part: a header of 4 KiB, then records
//!   magic 8 | version 4 | checksum 4 | log 8 | number 8 | previous 8 | first LSN 8 | durable 8 | bytes 8
//! record: a header of 16 bytes, its bytes, zeros to a multiple of 8
//!   checksum 4 | kind 4 bits, length 28 bits | LSN 8
//! ```
//! Little endian. A record that does not fit goes on in the next part, in *fragments* (as LevelDB's
//! log does it).

use std::io;

use crate::checksum::Behind;
use crate::is_later_version;

/// A position in the log, in bytes from its beginning; headers of parts do not count.
pub type Lsn = u64;

/// Bytes of a part's header.
pub(super) const PART_HEADER_BYTES: u64 = 4096;
/// Bytes of a record's header.
pub(super) const HEADER_BYTES: u64 = 16;
/// Positions, numbers and lengths are below this, so that sums of a few of them fit 64 bits.
pub(super) const NUMBERS: u64 = 1 << 60;
/// Bytes of the longest fragment.
pub(super) const FRAGMENT_MAX: usize = (1 << 28) - 8;

const MAGIC: [u8; 8] = *b"SWREDO\x01\n";
const VERSION: u32 = 1;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Whole,
    First,
    Middle,
    Last,
    /// Nothing, to the end of a sector.
    Pad,
}

impl Kind {
    fn code(self) -> u32 {
        match self {
            Kind::Whole => 1,
            Kind::First => 2,
            Kind::Middle => 3,
            Kind::Last => 4,
            Kind::Pad => 5,
        }
    }

    fn from_code(code: u32) -> Option<Kind> {
        [Kind::Whole, Kind::First, Kind::Middle, Kind::Last, Kind::Pad]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// The name of a part.
pub(super) fn name(prefix: &str, number: u64) -> String {
    format!("{prefix}-{number:016x}.log")
}

/// The number that the name of a part says.
pub(super) fn number_of(prefix: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_prefix('-')?.strip_suffix(".log")?;
    let number = (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())??;
    (number < NUMBERS).then_some(number)
}

/// Bytes of a record with so many bytes in it.
pub(super) fn record_bytes(payload: usize) -> u64 {
    HEADER_BYTES + (payload as u64).next_multiple_of(8)
}

fn checksum(parts: &[&[u8]]) -> u32 {
    crate::checksum::checksum_of(parts)
}

/// The header of a record.
pub(super) fn record_header(id: u64, lsn: Lsn, kind: Kind, payload: &[u8]) -> [u8; 16] {
    let what = kind.code() << 28 | payload.len() as u32;
    encode_header(id, lsn, what, payload)
}

/// The header of a padding of so many bytes behind it, which hold anything.
pub(super) fn pad_header(id: u64, lsn: Lsn, payload: usize) -> [u8; 16] {
    encode_header(id, lsn, Kind::Pad.code() << 28 | payload as u32, &[])
}

fn encode_header(id: u64, lsn: Lsn, what: u32, payload: &[u8]) -> [u8; 16] {
    // With what the checksum covers besides in front of it, as one piece.
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..12].copy_from_slice(&what.to_le_bytes());
    bytes[12..].copy_from_slice(&lsn.to_le_bytes());
    let sum = checksum(&[&bytes, payload]);
    let mut header = [0; 16];
    header[..4].copy_from_slice(&sum.to_le_bytes());
    header[4..].copy_from_slice(&bytes[8..]);
    header
}

/// The kind of a record and its length, where the header can be that of a record at `lsn`.
pub(super) fn decode_header(header: &[u8; 16], lsn: Lsn) -> Option<(Kind, usize)> {
    let what = u32_at(header, 4);
    let kind = Kind::from_code(what >> 28)?;
    (u64_at(header, 8) == lsn).then_some((kind, (what & ((1 << 28) - 1)) as usize))
}

/// Tells whether the records of a log are what was written.
pub(super) struct Verifier(Behind);

impl Verifier {
    pub(super) fn new(id: u64) -> Verifier {
        Verifier(Behind::new(&id.to_le_bytes()))
    }

    /// Whether a record, its header included, is what was written.
    #[inline]
    pub(super) fn is_valid(&self, kind: Kind, record: &[u8]) -> bool {
        let end = if kind == Kind::Pad { HEADER_BYTES as usize } else { record.len() };
        let Some(summed) = record.get(4..end) else { return false };
        self.0.checksum(summed) == u32_at(record, 0)
    }
}

/// The header of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartHeader {
    pub(super) id: u64,
    pub(super) number: u64,
    /// The part before it; zero for the first.
    pub(super) previous: u64,
    /// The LSN of its first record.
    pub(super) first: Lsn,
    /// The log was synced up to there when the part was begun.
    pub(super) durable: Lsn,
    pub(super) bytes: u64,
}

impl PartHeader {
    pub(super) fn encode(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let fields = [self.id, self.number, self.previous, self.first, self.durable, self.bytes];
        for (field, into) in fields.iter().zip(bytes[16..].chunks_exact_mut(8)) {
            into.copy_from_slice(&field.to_le_bytes());
        }
        let sum = checksum(&[&bytes[..12], &bytes[16..]]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Refuses the header of a later version of the format: its part is no leftover.
    pub(super) fn expect_known(bytes: &[u8; 64], file: &str) -> io::Result<()> {
        let found = u32_at(bytes, 8);
        if bytes[..8] == MAGIC && is_later_version(found, VERSION) {
            let why = format!(
                "{file} was written by format {found}, and this program reads up to {VERSION}: upgrade to the version \
                 of Sapwood that wrote it, or a later one"
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(())
    }

    /// `None` where the bytes are no header of this version.
    pub(super) fn decode(bytes: &[u8; 64]) -> Option<PartHeader> {
        let sum = checksum(&[&bytes[..12], &bytes[16..]]);
        if bytes[..8] != MAGIC || u32_at(bytes, 8) != VERSION || u32_at(bytes, 12) != sum {
            return None;
        }
        let field = |number: usize| u64_at(bytes, 16 + number * 8);
        // All but the log's own number.
        if (1..6).any(|number| field(number) >= NUMBERS) {
            return None;
        }
        Some(PartHeader {
            id: field(0),
            number: field(1),
            previous: field(2),
            first: field(3),
            durable: field(4),
            bytes: field(5),
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The table of bytes, as `docs/design/layout/log.txt` shows it.
#[cfg(test)]
fn layout_table() -> String {
    use std::fmt::Write;
    // Each field says where it is.
    let header =
        PartHeader { id: 16, number: 24, previous: 32, first: 40, durable: 48, bytes: 56 }.encode();
    for at in [16, 24, 32, 40, 48, 56] {
        assert_eq!(header[at..at + 8], (at as u64).to_le_bytes(), "as the table says");
    }
    let record = record_header(0, 8, Kind::Pad, &[0; 0x0102]);
    assert_eq!(record[4..], [2, 1, 0, 0x50, 8, 0, 0, 0, 0, 0, 0, 0], "as the table says");
    let tables: [(&str, &[(u64, u64, &str, &str)]); 2] = [
        (
            "Part, 1 to 64 MiB",
            &[
                (0, 8, "magic", "SWREDO, 1, a new line"),
                (8, 4, "version", "1"),
                (12, 4, "checksum", "CRC-32 of the header but this field"),
                (16, 8, "log", "which log"),
                (24, 8, "number", "of the part, from 1; its name says the same"),
                (32, 8, "previous", "number of the part that it continues, 0 for the first"),
                (40, 8, "first", "position of its first record in the log"),
                (48, 8, "durable", "the log lasted up to there when the part was begun"),
                (56, 8, "bytes", "of the part, this header included"),
                (64, PART_HEADER_BYTES - 64, "reserve", "whatever it is"),
                (PART_HEADER_BYTES, 0, "records", "one behind the other"),
            ],
        ),
        (
            "Record",
            &[
                (
                    0,
                    4,
                    "checksum",
                    "CRC-32 of the log's number and all that follows; of 5 the header alone",
                ),
                (4, 4, "length", "28 bits: bytes of the record; 4 bits: its kind"),
                (8, 8, "position", "of the record in the log"),
                (HEADER_BYTES, 0, "bytes", "of the record, then zeros to a multiple of 8"),
            ],
        ),
    ];
    let mut text = String::from("Little endian. Headers of parts do not count for positions.\n\n");
    for (title, rows) in tables {
        let _ = writeln!(text, "{title}\n  offset  bytes  field     meaning");
        for (offset, bytes, field, meaning) in rows {
            let bytes = if *bytes == 0 { "..".to_owned() } else { bytes.to_string() };
            let _ = writeln!(text, "  {offset:>6}  {bytes:>5}  {field:<8}  {meaning}");
        }
        text.push('\n');
    }
    text.push_str("Kinds of records\n");
    for (kind, meaning) in [
        (Kind::Whole, "whole"),
        (Kind::First, "first fragment of one that goes on in the next part"),
        (Kind::Middle, "another fragment"),
        (Kind::Last, "last fragment"),
        (Kind::Pad, "nothing, to the end of a sector (of a line in persistent memory)"),
    ] {
        let _ = writeln!(text, "  {}  {meaning}", kind.code());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = PartHeader { id: 1, number: 2, previous: 3, first: 4, durable: 5, bytes: 6 };
        let bytes = header.encode();
        assert_eq!(PartHeader::decode(&bytes), Some(header));
        for at in 0..64 {
            let mut bytes = bytes;
            bytes[at] ^= 4;
            assert_eq!(PartHeader::decode(&bytes), None, "byte {at}");
        }
    }

    #[test]
    fn a_record_is_believed_at_its_own_place_in_its_own_log_alone() {
        let header = record_header(7, 64, Kind::First, b"acorn");
        assert_eq!(decode_header(&header, 64), Some((Kind::First, 5)));
        assert_eq!(decode_header(&header, 72), None);
        let is_valid = |id: u64, header: &[u8], kind: Kind, payload: &[u8]| {
            Verifier::new(id).is_valid(kind, &[header, payload].concat())
        };
        assert!(is_valid(7, &header, Kind::First, b"acorn"));
        assert!(!is_valid(8, &header, Kind::First, b"acorn"));
        assert!(!is_valid(7, &header, Kind::First, b"acorm"));
        let pad = pad_header(7, 64, 9);
        assert!(is_valid(7, &pad, Kind::Pad, b"whatever"));
    }

    #[test]
    fn names_have_numbers() {
        assert_eq!(number_of("redo", &name("redo", 77)), Some(77));
        for other in ["redo-1.log", "undo-0000000000000001.log", "redo-000000000000000g.log"] {
            assert_eq!(number_of("redo", other), None);
        }
    }

    /// The document cannot drift: `cargo xtask layout --bless` writes it anew.
    #[test]
    fn layout_is_the_documented_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layout/log.txt");
        let table = layout_table();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &table).expect("docs/design/layout can be written");
        }
        let documented = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(
            table, documented,
            "run `cargo xtask layout --bless` and look at the difference"
        );
    }
}
