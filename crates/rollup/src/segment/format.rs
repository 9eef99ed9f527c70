//! The outline of a segment's file.
//!
//! ```text
//! header ─ 64 bytes, as below
//! sections ─ zones, times; of each dimension its words, its bitmaps, its values; of each metric its values
//! footer ─ where each section lies
//! ```
//!
//! | header | bytes |
//! |---|---|
//! | `SWROLSEG` | 8 |
//! | version, 1 | 4 |
//! | zero | 4 |
//! | rows | 8 |
//! | begin and end of the interval, in milliseconds | 16 |
//! | where the footer begins | 8 |
//! | bytes of the footer | 4 |
//! | checksum of the footer | 4 |
//! | zero | 4 |
//! | checksum of the bytes before | 4 |
//!
//! | section in the footer | bytes |
//! |---|---|
//! | where it begins, how many bytes it has | 16 |
//! | its checksum | 4 |
//!
//! | footer | bytes |
//! |---|---|
//! | how many dimensions | 2 |
//! | of each: kind (1 text, 2 long, 3 double), name behind its length, three sections | 1, 2 and its length, 60 |
//! | how many metrics | 2 |
//! | of each: kind of its cell (1 to 10, 32 of a sketch), section | 1, 20 |
//! | zones, times | 40 |
//!
//! Zones are the first and the last time of each block. A section of blocks begins with where each block ends, 8
//! bytes each, counted from the first block on. All numbers are little endian. Codes are stored: do not renumber.

use std::ops::Range;

use sapwood_disk::checksum;

use super::bytes::Reader;
use crate::error::{Error, Result};
use crate::live::state::{CellKind, Place, StateLayout};
use crate::schema::{Dimension, DimensionKind};
use crate::time::interval::Interval;

pub(super) mod header {
    pub(in super::super) const BYTES: usize = 64;
    pub(super) const MAGIC: &[u8; 8] = b"SWROLSEG";
    pub(super) const VERSION: u32 = 1;
}

/// Where a section lies, and what its checksum is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SectionAt {
    pub(super) begin: u64,
    pub(super) bytes: u64,
    pub(super) checksum: u32,
}

#[derive(Debug)]
pub(super) struct FooterDimension {
    pub(super) dimension: Dimension,
    pub(super) words: SectionAt,
    pub(super) bitmaps: SectionAt,
    pub(super) values: SectionAt,
}

/// Where the sections of a segment lie.
#[derive(Debug)]
pub(super) struct Footer {
    pub(super) dimensions: Vec<FooterDimension>,
    pub(super) metrics: Vec<SectionAt>,
    pub(super) zones: SectionAt,
    pub(super) times: SectionAt,
}

/// What a header says.
pub(super) struct Header {
    pub(super) rows: u64,
    pub(super) interval: Interval,
    pub(super) footer: Range<usize>,
    footer_checksum: u32,
}

impl SectionAt {
    pub(super) fn new(begin: usize, bytes: &[u8]) -> SectionAt {
        let checksum = checksum(bytes);
        SectionAt { begin: begin as u64, bytes: bytes.len() as u64, checksum }
    }

    fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.begin.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    /// Reads where a section lies, which must be before the footer.
    fn read(reader: &mut Reader<'_>, limit: usize) -> Result<SectionAt> {
        let at = reader.clone();
        let read =
            SectionAt { begin: reader.u64()?, bytes: reader.u64()?, checksum: reader.u32()? };
        match read.begin.checked_add(read.bytes) {
            Some(end) if end <= limit as u64 => Ok(read),
            _ => Err(at.corrupt("a section ends behind the footer's begin")),
        }
    }

    pub(super) fn range(self) -> Range<usize> {
        // It lies within a file in memory.
        self.begin as usize..(self.begin + self.bytes) as usize
    }
}

fn dimension_code(kind: DimensionKind) -> u8 {
    match kind {
        DimensionKind::Text => 1,
        DimensionKind::Long => 2,
        DimensionKind::Double => 3,
    }
}

fn metric_code(place: Place) -> u8 {
    match place {
        Place::Cell(kind, _) => match kind {
            CellKind::SumLong => 1,
            CellKind::MinLong => 2,
            CellKind::MaxLong => 3,
            CellKind::SumDouble => 4,
            CellKind::MinDouble => 5,
            CellKind::MaxDouble => 6,
            CellKind::FirstLong => 7,
            CellKind::LastLong => 8,
            CellKind::FirstDouble => 9,
            CellKind::LastDouble => 10,
        },
        Place::Sketch(_) => 32,
    }
}

impl Footer {
    /// Appends the footer behind sections, and writes the header before them.
    pub(super) fn finish(
        &self,
        mut file: Vec<u8>,
        rows: u64,
        interval: Interval,
        layout: &StateLayout,
    ) -> Vec<u8> {
        let begin = file.len();
        file.extend_from_slice(&(self.dimensions.len() as u16).to_le_bytes());
        for FooterDimension { dimension, words, bitmaps, values } in &self.dimensions {
            file.push(dimension_code(dimension.kind));
            file.extend_from_slice(&(dimension.name.len() as u16).to_le_bytes());
            file.extend_from_slice(dimension.name.as_bytes());
            [words, bitmaps, values].into_iter().for_each(|section| section.push(&mut file));
        }
        file.extend_from_slice(&(self.metrics.len() as u16).to_le_bytes());
        for (section, slot) in self.metrics.iter().zip(&layout.slots) {
            file.push(metric_code(slot.place));
            section.push(&mut file);
        }
        self.zones.push(&mut file);
        self.times.push(&mut file);
        let mut head = Vec::with_capacity(header::BYTES);
        head.extend_from_slice(header::MAGIC);
        head.extend_from_slice(&header::VERSION.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(&rows.to_le_bytes());
        head.extend_from_slice(&interval.start.to_le_bytes());
        head.extend_from_slice(&interval.end.to_le_bytes());
        head.extend_from_slice(&(begin as u64).to_le_bytes());
        head.extend_from_slice(&((file.len() - begin) as u32).to_le_bytes());
        head.extend_from_slice(&checksum(&file[begin..]).to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(&checksum(&head).to_le_bytes());
        file[..header::BYTES].copy_from_slice(&head);
        file
    }

    /// Reads the footer of a file.
    pub(super) fn read(file: &[u8], header: &Header, layout: &StateLayout) -> Result<Footer> {
        let begin = header.footer.start;
        let mut reader = Reader::new(&file[header.footer.clone()], begin as u64);
        if checksum(reader.rest()) != header.footer_checksum {
            return Err(reader.corrupt("the checksum of the footer does not match"));
        }
        let mut dimensions = Vec::new();
        for _ in 0..reader.u16()? {
            let at = reader.clone();
            let kind = match reader.u8()? {
                1 => DimensionKind::Text,
                2 => DimensionKind::Long,
                3 => DimensionKind::Double,
                code => return Err(at.corrupt(format!("no dimension has the kind {code}"))),
            };
            let name = reader.text()?.to_owned();
            let mut section = || SectionAt::read(&mut reader, begin);
            let (words, bitmaps, values) = (section()?, section()?, section()?);
            dimensions.push(FooterDimension {
                dimension: Dimension { name, kind },
                words,
                bitmaps,
                values,
            });
        }
        let at = reader.clone();
        if usize::from(reader.u16()?) != layout.slots.len() {
            return Err(at.corrupt(format!("the schema has {} metrics", layout.slots.len())));
        }
        let mut metrics = Vec::new();
        for slot in &layout.slots {
            let at = reader.clone();
            if reader.u8()? != metric_code(slot.place) {
                return Err(at.corrupt("the schema has a metric of another kind here"));
            }
            metrics.push(SectionAt::read(&mut reader, begin)?);
        }
        let zones = SectionAt::read(&mut reader, begin)?;
        let times = SectionAt::read(&mut reader, begin)?;
        match reader.rest().is_empty() {
            true => Ok(Footer { dimensions, metrics, zones, times }),
            false => Err(reader.corrupt("the end of the footer is expected")),
        }
    }
}

impl Header {
    /// Reads the header of a file.
    pub(super) fn read(file: &[u8]) -> Result<Header> {
        let mut reader = Reader::new(file, 0);
        let head = reader.clone().take(header::BYTES)?;
        if reader.take(header::MAGIC.len())? != header::MAGIC {
            return Err(Error::corrupt(0, "this is no segment of a roll-up"));
        }
        let version = reader.u32()?;
        Error::expect_known(version, header::VERSION)?;
        if version != header::VERSION {
            return Err(Error::corrupt(8, format!("version {version} is not known")));
        }
        let (summed, sum) = head.split_at(header::BYTES - 4);
        if checksum(summed).to_le_bytes() != sum {
            return Err(Error::corrupt(60, "the checksum of the header does not match"));
        }
        let reserved = reader.u32()?;
        let rows = reader.u64()?;
        let interval = Interval { start: reader.i64()?, end: reader.i64()? };
        let begin = reader.u64()?;
        let end = begin.checked_add(reader.u32()?.into());
        let footer_checksum = reader.u32()?;
        let footer = usize::try_from(begin).ok().zip(end.and_then(|end| usize::try_from(end).ok()));
        let is_good = reserved == 0
            && reader.u32()? == 0
            && (1..=super::ROWS_MAX as u64).contains(&rows)
            && interval.start < interval.end;
        match footer {
            Some((begin, end)) if is_good && begin >= header::BYTES && end == file.len() => {
                Ok(Header { rows, interval, footer: begin..end, footer_checksum })
            }
            _ => Err(Error::corrupt(16, "the header does not fit the file")),
        }
    }
}
