//! Reading a log: from a record on, to the first that is not what was written.

use std::collections::BTreeMap;
use std::io;

use super::format::{self, HEADER_BYTES, Kind, NUMBERS, PART_HEADER_BYTES, PartHeader, Verifier};
use super::{LogStart, Lsn, Part};
use crate::{CachedFile, Disk, Presence};

/// Bytes that are read in one go.
const WINDOW_BYTES: u64 = 256 << 10;

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

pub(super) fn read<E: From<io::Error>>(
    disk: &dyn Disk,
    id: u64,
    prefix: &str,
    start: LogStart,
    apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
) -> Result<Read, E> {
    let mut names = Vec::new();
    let mut found = BTreeMap::new();
    let mut next_number = start.part.saturating_add(1);
    for name in disk.list()? {
        let Some(said) = format::number_of(prefix, &name) else { continue };
        next_number = next_number.max(said.saturating_add(1));
        let file = disk.cached(&name, Presence::There)?;
        names.push(name.clone());
        let mut bytes = [0; 64];
        // A file that is shorter was being made.
        if file.bytes()? < PART_HEADER_BYTES {
            continue;
        }
        file.read_at(0, &mut bytes)?;
        let Some(header) = PartHeader::decode(&bytes).filter(|header| header.id == id) else {
            continue;
        };
        next_number = next_number.max(header.number.saturating_add(1));
        // A crash may keep both names of a file that was renamed: the one that it says is its own.
        if said == header.number || !found.contains_key(&header.number) {
            found.insert(header.number, (name, header, file));
        }
    }
    let missing = |what: String| E::from(io::Error::new(io::ErrorKind::InvalidData, what));
    if start.lsn >= NUMBERS || start.part >= NUMBERS {
        return Err(missing(format!("no log has a byte {} in a part {}", start.lsn, start.part)));
    }
    let Some((name, header, file)) = found.remove(&start.part) else {
        return Err(missing(format!("part {} of the log is missing", start.part)));
    };
    if header.first > start.lsn {
        return Err(missing(format!("{name} begins behind byte {} of the log", start.lsn)));
    }
    let mut durable = start.durable;
    let mut lsn = start.lsn;
    let mut offset = PART_HEADER_BYTES + (start.lsn - header.first);
    let mut parts = Vec::new();
    let mut records = Records { verifier: Verifier::new(id), open: Vec::new(), is_open: false };
    let (mut name, mut header, mut file) = (name, header, file);
    loop {
        let bytes = header.bytes.min(file.bytes()?);
        lsn = records.read_part(&*file, offset, bytes, lsn, apply)?;
        let number = header.number;
        // `renew` sees to what may be in the page cache alone.
        parts.push(Part { name, number, first: header.first, bytes, file, is_dirty: false });
        // The newest that goes on from here.
        let next = found
            .iter()
            .filter(|(_, (_, next, _))| next.previous == number && next.first == lsn)
            .map(|(number, _)| *number)
            .next_back();
        let Some(next) = next.and_then(|next| found.remove(&next)) else { break };
        (name, header, file) = next;
        offset = PART_HEADER_BYTES;
        durable = durable.max(header.durable);
    }
    if lsn < durable {
        let place = parts.last().map_or("the log", |part| &part.name);
        return Err(missing(format!(
            "{place} is damaged: the log was synced up to byte {durable}, and can be read up to byte {lsn}"
        )));
    }
    Ok(Read { parts, end: lsn, durable, names, next_number })
}

/// Records that are put together from fragments.
struct Records {
    verifier: Verifier,
    open: Vec<u8>,
    is_open: bool,
}

impl Records {
    /// Reads a part from a byte on; the LSN behind its last record.
    fn read_part<E: From<io::Error>>(
        &mut self,
        file: &dyn CachedFile,
        mut offset: u64,
        end: u64,
        mut lsn: Lsn,
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<Lsn, E> {
        let mut window = Window { file, end, from: 0, bytes: Vec::new() };
        loop {
            let Some(header) = window.get(offset, HEADER_BYTES)?.and_then(<[u8]>::first_chunk)
            else {
                return Ok(lsn);
            };
            let Some((kind, len)) = format::decode_header(header, lsn) else { return Ok(lsn) };
            let Some(record) = window.get(offset, HEADER_BYTES + len as u64)? else {
                return Ok(lsn);
            };
            if !self.verifier.is_valid(kind, record) {
                return Ok(lsn);
            }
            let payload = &record[HEADER_BYTES as usize..];
            let bytes = format::record_bytes(len);
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
        let bytes = len.max(WINDOW_BYTES).min(self.end - offset);
        self.bytes.resize(bytes as usize, 0);
        self.file.read_at(offset, &mut self.bytes)?;
        self.from = offset;
        Ok(())
    }
}
