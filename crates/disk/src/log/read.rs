//! Reading a log: from a record on, to the first that is not what was written.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::damage::Damage;
use super::format::{
    self, HEADER_BYTES, Kind, Lsn, NUMBERS, PART_HEADER_BYTES, PartHeader, Verifier,
};
use super::options::LogStart;
use super::tail::Part;
use crate::{CachedFile, Disk, Presence};

/// Bytes that are read in one go.
const WINDOW_BYTES: u64 = 256 << 10;
/// Bytes of the first read: a log often has few records, and zeros behind them to the end of its file.
const FIRST_BYTES: u64 = 4 << 10;

/// What was found.
pub(super) struct Read {
    /// The parts that records were in, in order.
    pub(super) parts: Vec<Part>,
    /// Behind the last record.
    pub(super) end: Lsn,
    /// Up to where an earlier life knew that it lasts.
    pub(super) durable: Lsn,
    /// Names of all files that are parts of a log, used or not.
    pub(super) names: Vec<String>,
    /// A number that no part has.
    pub(super) next_number: u64,
}

impl Read {
    /// What is found of a log that begins at `first`.
    pub(super) fn nothing(first: Lsn) -> Read {
        Read { parts: Vec::new(), end: first, durable: first, names: Vec::new(), next_number: 1 }
    }
}

/// A part that there is.
struct Found {
    name: String,
    header: PartHeader,
    file: Arc<dyn CachedFile>,
}

/// The parts of a log.
struct Parts {
    found: BTreeMap<u64, Found>,
    /// Names of all files that are parts of a log, of this one or not.
    names: Vec<String>,
    next_number: u64,
}

impl Parts {
    fn find(disk: &dyn Disk, id: u64, prefix: &str, first: u64) -> io::Result<Parts> {
        let mut parts = Parts {
            found: BTreeMap::new(),
            names: Vec::new(),
            next_number: first.saturating_add(1),
        };
        for name in disk.list()? {
            let Some(said) = format::number_of(prefix, &name) else { continue };
            parts.next_number = parts.next_number.max(said.saturating_add(1));
            let file = disk.cached(&name, Presence::There)?;
            parts.names.push(name.clone());
            let mut bytes = [0; 64];
            // A file that is shorter was being made.
            if file.bytes()? < PART_HEADER_BYTES {
                continue;
            }
            file.read_at(0, &mut bytes)?;
            PartHeader::expect_known(&bytes, &name)?;
            let Some(header) = PartHeader::decode(&bytes).filter(|header| header.id == id) else {
                continue;
            };
            parts.next_number = parts.next_number.max(header.number.saturating_add(1));
            // A crash may keep both names of a file that was renamed: the one that it says is its own.
            if said == header.number || !parts.found.contains_key(&header.number) {
                parts.found.insert(header.number, Found { name, header, file });
            }
        }
        Ok(parts)
    }

    /// Takes the newest of those that go on from a part, at some position or at this one.
    fn take_next(&mut self, number: u64, at: Option<Lsn>) -> Option<Found> {
        let goes_on =
            |next: &PartHeader| next.previous == number && at.is_none_or(|lsn| next.first == lsn);
        let mut goes_on = self.found.iter().filter(|(_, next)| goes_on(&next.header));
        let number = *goes_on.next_back()?.0;
        self.found.remove(&number)
    }

    /// Takes the first part from a number on.
    fn take_from(&mut self, number: u64) -> Option<Found> {
        let number = *self.found.range(number..).next()?.0;
        self.found.remove(&number)
    }
}

pub(super) fn read<E: From<io::Error>>(
    disk: &dyn Disk,
    id: u64,
    prefix: &str,
    start: LogStart,
    apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
) -> Result<(Read, Option<Damage>), E> {
    let survey = survey(disk, id, prefix, start, Damaged::Ends, apply)?;
    match survey.damage.into_iter().next() {
        Some(damage) => Err(io::Error::new(io::ErrorKind::InvalidData, damage).into()),
        None => Ok((survey.read, survey.cut_off)),
    }
}

pub(super) fn oldest_part(disk: &dyn Disk, prefix: &str) -> io::Result<Option<PartHeader>> {
    let mut oldest: Option<PartHeader> = None;
    for name in disk.list()? {
        if format::number_of(prefix, &name).is_none() {
            continue;
        }
        let file = disk.cached(&name, Presence::There)?;
        let mut bytes = [0; 64];
        if file.bytes()? < PART_HEADER_BYTES {
            continue;
        }
        file.read_at(0, &mut bytes)?;
        PartHeader::expect_known(&bytes, &name)?;
        let header = PartHeader::decode(&bytes);
        let is_older = |header: &PartHeader| oldest.is_none_or(|old| header.number < old.number);
        if let Some(header) = header.filter(is_older) {
            oldest = Some(header);
        }
    }
    Ok(oldest)
}

/// What reading does where the log is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damaged {
    Ends,
    /// It goes on with the next record that is whole.
    GoesOn,
}

/// What was found of a log that may be damaged.
pub(super) struct Surveyed {
    pub(super) read: Read,
    pub(super) damage: Vec<Damage>,
    /// The byte of the last part behind which there is nothing.
    pub(super) end_offset: u64,
    /// A record that was begun there.
    pub(super) cut_off: Option<Damage>,
}

pub(super) fn survey<E: From<io::Error>>(
    disk: &dyn Disk,
    id: u64,
    prefix: &str,
    start: LogStart,
    damaged: Damaged,
    apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
) -> Result<Surveyed, E> {
    if start.lsn >= NUMBERS || start.part >= NUMBERS {
        let what = format!("no log has a byte {} in a part {}", start.lsn, start.part);
        return Err(io::Error::new(io::ErrorKind::InvalidData, what).into());
    }
    let mut all = Parts::find(disk, id, prefix, start.part)?;
    // What the headers of parts say lasted when they were begun is the promise of some life, whether reading
    // comes to that part or not.
    let promised = all.found.range(start.part + 1..).map(|(_, part)| part.header.durable);
    let durable = promised.max().unwrap_or(0).max(start.durable);
    let mut read = Read { durable, ..Read::nothing(start.lsn) };
    (read.next_number, read.names) = (all.next_number, std::mem::take(&mut all.names));
    let (mut damage, mut end_offset) = (Vec::new(), 0);
    let mut records = Records { verifier: Verifier::new(id), open: Vec::new(), is_open: false };
    let mut lsn = start.lsn;
    let mut next = all.found.remove(&start.part);
    match &next {
        Some(Found { name, header, .. }) if header.first > lsn => {
            let what = format!("it begins behind byte {lsn} of the log");
            damage.push(Damage { file: name.clone(), offset: 0, bytes: header.first - lsn, what });
        }
        Some(_) => {}
        None => {
            let name = format::name(prefix, start.part);
            let what = format!("part {} of the log is missing", start.part);
            damage.push(Damage { file: name, offset: 0, bytes: 0, what });
        }
    }
    if !damage.is_empty() {
        match damaged {
            Damaged::Ends => {
                return Ok(Surveyed { read, damage, end_offset, cut_off: None });
            }
            Damaged::GoesOn if next.is_none() => next = all.take_from(start.part),
            Damaged::GoesOn => {}
        }
        lsn = next.as_ref().map_or(lsn, |next| next.header.first.max(lsn));
    }
    while let Some(Found { name, header, file }) = next {
        let number = header.number;
        let bytes = header.bytes.min(file.bytes()?);
        let part = PartBytes {
            file: &*file,
            offset: PART_HEADER_BYTES + (lsn - header.first),
            // Behind the place where the next one goes on there is nothing of this log.
            bytes: match damaged {
                Damaged::Ends => bytes,
                Damaged::GoesOn => {
                    let ends = all.found.values().filter(|next| next.header.previous == number);
                    let ends = ends.map(|next| next.header.first).next_back();
                    ends.and_then(|end| end.checked_sub(header.first))
                        .map_or(bytes, |len| bytes.min(PART_HEADER_BYTES + len))
                }
            },
        };
        let first = lsn;
        lsn = records.read_part(
            &part,
            lsn,
            damaged,
            &mut |gap: Range<u64>| {
                let what = "no record is here, and there are some behind it".to_owned();
                let (offset, bytes) = (gap.start, gap.end - gap.start);
                damage.push(Damage { file: name.clone(), offset, bytes, what });
            },
            apply,
        )?;
        end_offset = part.offset + (lsn - first);
        // `renew` sees to what may be in the page cache alone.
        read.parts.push(Part { name, number, first: header.first, bytes, file, is_dirty: false });
        next = match damaged {
            Damaged::Ends => all.take_next(number, Some(lsn)),
            // One whose predecessor is missing goes on from that.
            Damaged::GoesOn => all.take_next(number, None).or_else(|| all.take_from(number)),
        };
        next = next.filter(|next| next.header.first >= lsn);
        if let Some(next) = &next
            && next.header.first > lsn
        {
            let name = read.parts.last().map_or(String::new(), |part| part.name.clone());
            let what = "no record is here, and another part goes on behind it".to_owned();
            let bytes = next.header.first - lsn;
            damage.push(Damage { file: name, offset: end_offset, bytes, what });
            lsn = next.header.first;
            records.is_open = false;
        }
    }
    read.end = lsn;
    if lsn < durable {
        let file = read.parts.last().map_or(prefix.to_owned(), |part| part.name.clone());
        let what =
            format!("the log was synced up to byte {durable}, and can be read up to byte {lsn}");
        damage.push(Damage { file, offset: end_offset, bytes: durable - lsn, what });
    }
    let cut_off = match read.parts.last() {
        Some(part) if lsn >= durable => cut_off(part, end_offset, lsn)?,
        _ => None,
    };
    Ok(Surveyed { read, damage, end_offset, cut_off })
}

/// The record that was begun at the end of the log, and that a crash cut off.
fn cut_off(part: &Part, offset: u64, lsn: Lsn) -> io::Result<Option<Damage>> {
    let mut header = [0; HEADER_BYTES as usize];
    if offset + HEADER_BYTES > part.bytes {
        return Ok(None);
    }
    part.file.read_at(offset, &mut header)?;
    let Some((_, len)) = format::decode_header(&header, lsn) else { return Ok(None) };
    let what = "the last record is cut off".to_owned();
    let bytes = format::record_bytes(len);
    Ok(Some(Damage { file: part.name.clone(), offset, bytes, what }))
}

/// A part that is read.
struct PartBytes<'f> {
    file: &'f dyn CachedFile,
    /// Where reading begins.
    offset: u64,
    /// Where it ends.
    bytes: u64,
}

/// Records that are put together from fragments.
struct Records {
    verifier: Verifier,
    open: Vec<u8>,
    is_open: bool,
}

impl Records {
    /// Reads a part from a byte on; the LSN behind its last record. `gap` gets bytes that are passed over.
    fn read_part<E: From<io::Error>>(
        &mut self,
        part: &PartBytes<'_>,
        mut lsn: Lsn,
        damaged: Damaged,
        gap: &mut dyn FnMut(Range<u64>),
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<Lsn, E> {
        let mut window = Window { file: part.file, end: part.bytes, from: 0, bytes: Vec::new() };
        let mut offset = part.offset;
        loop {
            let Some((kind, record)) = self.next(&mut window, offset, lsn)? else {
                let found = match damaged {
                    Damaged::Ends => None,
                    Damaged::GoesOn => self.search(&mut window, offset, lsn)?,
                };
                let Some(skipped) = found else { return Ok(lsn) };
                gap(offset..offset + skipped);
                (offset, lsn) = (offset + skipped, lsn + skipped);
                self.is_open = false;
                continue;
            };
            let payload = &record[HEADER_BYTES as usize..];
            let bytes = format::record_bytes(payload.len());
            offset += bytes;
            lsn += bytes;
            match kind {
                Kind::Pad => {}
                // Fragments that are open now were left by an append that failed.
                Kind::Whole => {
                    self.is_open = false;
                    apply(lsn, payload)?;
                }
                Kind::First => {
                    self.is_open = true;
                    self.open.clear();
                    self.open.extend_from_slice(payload);
                }
                // Of a record that began before the first that is wanted.
                Kind::Middle | Kind::Last if !self.is_open => {}
                Kind::Middle => self.open.extend_from_slice(payload),
                Kind::Last => {
                    self.open.extend_from_slice(payload);
                    self.is_open = false;
                    apply(lsn, &std::mem::take(&mut self.open))?;
                }
            }
        }
    }

    /// The record at a byte, header included, if it is whole.
    #[inline]
    fn next<'w>(
        &self,
        window: &'w mut Window<'_>,
        offset: u64,
        lsn: Lsn,
    ) -> io::Result<Option<(Kind, &'w [u8])>> {
        let Some(header) = window.get(offset, HEADER_BYTES)?.and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        let Some((kind, len)) = format::decode_header(header, lsn) else { return Ok(None) };
        let record = window.get(offset, HEADER_BYTES + len as u64)?;
        Ok(record
            .filter(|record| self.verifier.is_valid(kind, record))
            .map(|record| (kind, record)))
    }

    /// How far behind a byte the next record is that is whole.
    fn search(&self, window: &mut Window<'_>, offset: u64, lsn: Lsn) -> io::Result<Option<u64>> {
        let mut skipped = 8;
        while offset + skipped + HEADER_BYTES <= window.end {
            if self.next(window, offset + skipped, lsn + skipped)?.is_some() {
                return Ok(Some(skipped));
            }
            skipped += 8;
        }
        Ok(None)
    }
}

/// Bytes of a file that were read together.
struct Window<'a> {
    file: &'a dyn CachedFile,
    end: u64,
    from: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// A range of the file; `None` where it goes beyond the end.
    #[inline]
    fn get(&mut self, offset: u64, len: u64) -> io::Result<Option<&[u8]>> {
        let Some(limit) = offset.checked_add(len).filter(|limit| *limit <= self.end) else {
            return Ok(None);
        };
        let until = self.from + self.bytes.len() as u64;
        if offset < self.from || limit > until {
            self.fill(offset, len)?;
        }
        let at = (offset - self.from) as usize;
        Ok(Some(&self.bytes[at..at + len as usize]))
    }

    #[cold]
    fn fill(&mut self, offset: u64, len: u64) -> io::Result<()> {
        let ahead = (4 * self.bytes.len() as u64).clamp(FIRST_BYTES, WINDOW_BYTES);
        let bytes = len.max(ahead).min(self.end - offset);
        self.bytes.resize(bytes as usize, 0);
        self.file.read_at(offset, &mut self.bytes)?;
        self.from = offset;
        Ok(())
    }
}
