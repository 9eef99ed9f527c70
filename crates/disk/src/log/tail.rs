//! The end of a log: the part that is appended to, and those before it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::claims::Claims;
use super::format::{self, HEADER_BYTES, Kind, Lsn, PART_HEADER_BYTES, PartHeader};
use super::options::LogOptions;
use crate::{CachedFile, Disk, Mapped, Presence, is_full};

/// Bytes that media write whole: a synced record is padded to them, so that none is written again.
const SECTOR: u64 = 512;
/// The same of persistent memory: a cache line.
const LINE: u64 = 64;

/// Bytes whose pages are made ready together.
const PREPARED_BYTES: u64 = 128 << 10;

#[derive(Debug)]
pub(super) struct Tail {
    pub(super) parts: VecDeque<Part>,
    /// Of the last part, which is appended to.
    map: Box<dyn Mapped>,
    /// Whether it lies in persistent memory.
    is_dax: bool,
    /// Whether there is such a part: none of a log that was opened on a full disk.
    has_part: bool,
    /// Where the next record goes in it.
    offset: u64,
    /// Up to where its pages were made ready.
    prepared: u64,
    /// Up to where its lines were written back, in persistent memory.
    persisted: u64,
    pub(super) lsn: Lsn,
    pub(super) spares: Vec<Spare>,
    /// Whether names were made or changed since names were synced.
    names_changed: bool,
    next_number: u64,
    /// Whether a sync of what was appended is arranged.
    is_sync_arranged: bool,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) number: u64,
    /// The position of its first record.
    pub(super) first: Lsn,
    pub(super) bytes: u64,
    pub(super) file: Arc<dyn CachedFile>,
    /// Whether it has something that may not last.
    pub(super) is_dirty: bool,
}

/// A file that a part is not in any more.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) file: Arc<dyn CachedFile>,
}

/// What a sync has to do.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// Where the log ended.
    pub(super) end: Lsn,
    pub(super) files: Vec<Arc<dyn CachedFile>>,
    pub(super) names_changed: bool,
}

impl Tail {
    /// Behind `parts`, which were read up to `lsn`.
    pub(super) fn new(parts: Vec<Part>, lsn: Lsn, next_number: u64) -> Tail {
        Tail {
            parts: parts.into(),
            map: Box::new(NoPart),
            is_dax: false,
            has_part: false,
            offset: 0,
            prepared: 0,
            persisted: 0,
            lsn,
            spares: Vec::new(),
            names_changed: false,
            next_number,
            is_sync_arranged: false,
        }
    }

    pub(super) fn is_dax(&self) -> bool {
        self.is_dax
    }

    /// Takes what is not synced, for a sync that begins now.
    pub(super) fn take_unsynced(&mut self, id: u64, claims: &Claims) -> io::Result<Unsynced> {
        self.pad(id, claims);
        self.persist()?;
        self.is_sync_arranged = false;
        let dirty = self.parts.iter_mut().filter(|part| part.is_dirty);
        let files = dirty.map(|part| {
            part.is_dirty = false;
            Arc::clone(&part.file)
        });
        Ok(Unsynced {
            files: files.collect(),
            end: self.lsn,
            names_changed: std::mem::take(&mut self.names_changed),
        })
    }

    /// Writes lines back, in persistent memory. Threads that append wait meanwhile: a hundred
    /// nanoseconds for a commit of a few lines.
    fn persist(&mut self) -> io::Result<()> {
        if self.is_dax && self.persisted < self.offset {
            self.map.persist(self.persisted as usize, (self.offset - self.persisted) as usize)?;
            self.persisted = self.offset;
        }
        Ok(())
    }

    /// Whether a sync is to be arranged now: once between two syncs.
    pub(super) fn arrange_sync(&mut self) -> bool {
        !std::mem::replace(&mut self.is_sync_arranged, true)
    }

    /// Bytes that are left in the last part.
    pub(super) fn room(&self) -> u64 {
        let last = self.parts.back().filter(|_| self.has_part);
        last.map_or(0, |part| part.bytes - self.offset)
    }

    pub(super) fn write(&mut self, id: u64, kind: Kind, payload: &[u8]) {
        let header = format::record_header(id, self.lsn, kind, payload);
        let at = self.offset as usize;
        let end = self.offset + format::record_bytes(payload.len());
        if end > self.prepared {
            self.prepare(end);
        }
        self.map.write(at + HEADER_BYTES as usize, payload);
        self.map.write(at, &header);
        self.advance(format::record_bytes(payload.len()));
    }

    /// Makes pages ready up to some bytes behind `end`.
    #[cold]
    fn prepare(&mut self, end: u64) {
        let Some(part) = self.parts.back() else { return };
        let to = (end + PREPARED_BYTES).min(part.bytes);
        let from = self.prepared.max(self.offset);
        self.map.prepare(from as usize, to.saturating_sub(from) as usize);
        self.prepared = to;
    }

    fn advance(&mut self, bytes: u64) {
        // A part's bytes are a multiple of 8, so what is rounded up still fits.
        self.offset += bytes;
        self.lsn += bytes;
        if let Some(part) = self.parts.back_mut().filter(|_| !self.is_dax) {
            part.is_dirty = true;
        }
    }

    /// Whether something was appended that is not synced.
    fn has_new(&self) -> bool {
        match self.is_dax {
            true => self.persisted < self.offset,
            false => self.parts.back().is_some_and(|part| part.is_dirty),
        }
    }

    /// Ends the sector, so that what is about to last is not written again, where no claim has that
    /// room.
    fn pad(&mut self, id: u64, claims: &Claims) {
        let unit = if self.is_dax { LINE } else { SECTOR };
        let within = self.offset % unit;
        if within == 0 || !self.has_new() {
            return;
        }
        let mut gap = unit - within;
        if gap < HEADER_BYTES {
            gap += unit;
        }
        if gap <= self.room() && claims.try_take(gap) {
            let payload = (gap - HEADER_BYTES) as usize;
            let header = format::pad_header(id, self.lsn, payload);
            self.map.write(self.offset as usize, &header);
            self.advance(gap);
        }
    }

    /// Goes on in another file, which has room for so many bytes of records, and more where the
    /// disk has.
    pub(super) fn begin_part(
        &mut self,
        disk: &dyn Disk,
        id: u64,
        options: &LogOptions,
        durable: Lsn,
        wanted: u64,
    ) -> io::Result<()> {
        // A part is dirty as a file until it is synced once: then its length lasts, and its name.
        self.persist()?;
        let number = self.next_number;
        let name = format::name(&options.prefix, number);
        let before = self.parts.back();
        let least = (PART_HEADER_BYTES + wanted).next_multiple_of(PART_HEADER_BYTES);
        let least = least.max(options.part_bytes_min);
        // Claims that go together come one by one: with room for as many again, few need another part.
        let roomy = (PART_HEADER_BYTES + 2 * wanted).next_multiple_of(PART_HEADER_BYTES);
        let (bytes, file) = match self.spares.pop_if(|spare| spare.bytes >= least) {
            Some(spare) => {
                if let Err(cause) = disk.rename(&spare.name, &name) {
                    self.spares.push(spare);
                    return Err(cause);
                }
                (spare.bytes, spare.file)
            }
            None => {
                // A life begins with a small one, whatever the one before had.
                let is_next = self.offset > 0;
                let filled = before.filter(|_| is_next);
                let doubled = filled.map_or(options.part_bytes_min, |part| part.bytes * 2);
                let bytes = doubled.min(options.part_bytes_max).max(least).max(roomy);
                match reserved(disk, &name, bytes) {
                    // A nearly full disk may have room for less.
                    Err(cause) if is_full(cause.kind()) && least < bytes => {
                        (least, reserved(disk, &name, least)?)
                    }
                    file => (bytes, file?),
                }
            }
        };
        self.next_number += 1;
        self.names_changed = true;
        let mut map = file.map(bytes as usize)?;
        let previous = before.map_or(0, |part| part.number);
        let header = PartHeader { id, number, previous, first: self.lsn, durable, bytes };
        map.write(0, &header.encode());
        self.parts.push_back(Part { name, number, first: self.lsn, bytes, file, is_dirty: true });
        self.is_dax = map.is_dax();
        self.has_part = true;
        self.map = map;
        self.offset = PART_HEADER_BYTES;
        self.prepared = PART_HEADER_BYTES;
        self.persisted = PART_HEADER_BYTES;
        Ok(())
    }
}

/// Makes a file with so much room, or leaves none.
fn reserved(disk: &dyn Disk, name: &str, bytes: u64) -> io::Result<Arc<dyn CachedFile>> {
    let file = disk.cached(name, Presence::New)?;
    if let Err(cause) = file.reserve(bytes) {
        let _left = disk.remove(name);
        return Err(cause);
    }
    Ok(file)
}

/// What is mapped before there is a part.
#[derive(Debug)]
struct NoPart;

impl Mapped for NoPart {
    fn write(&mut self, _offset: usize, _bytes: &[u8]) {}
    fn read(&self, _offset: usize, into: &mut [u8]) {
        into.fill(0);
    }
}
