//! A log of records: what is appended survives the process at once, and the machine once it is synced.
//!
//! The log is one sequence of bytes, counted by [`Lsn`], and lies in *parts*, files of the same disk.
//! A part's room is reserved and mapped, so that an append is a copy to memory and no system call.
//! [`Log::sync`] is a group commit (DeWitt et al.: "Implementation techniques for main memory database
//! systems", SIGMOD 1984): one caller syncs for all that appended before.
//!
//! The system may write any page of a mapping at any time, so behind the last sync anything may be
//! there or not. A record is believed if its checksum is right, which covers the log's number and
//! the record's place, and if all before it are: reading ends at the first that is not. What comes
//! next is written to a new part, which says where it continues, so that what lay behind is never
//! taken for a part of the log again.
//!
//! `format` has the bytes, and `docs/design/disk.md` the reasons.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::{CachedFile, Disk, Mapped, Presence};
use format::{HEADER_BYTES, Kind, PART_HEADER_BYTES, PartHeader};

mod format;
mod read;

/// A position in the log, in bytes from its beginning; headers of parts do not count.
pub type Lsn = u64;

/// Bytes that media write whole: a synced record is padded to them, so that none is written again.
const SECTOR: u64 = 512;

/// Bytes whose pages are made ready together.
const PREPARED_BYTES: u64 = 128 << 10;

/// How a log lies in files.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// What the names of its files begin with.
    pub prefix: String,
    /// Bytes of its first part, and of the first of each opening; each next one has twice as many ...
    pub part_bytes_min: u64,
    /// ... up to so many.
    pub part_bytes_max: u64,
    /// Files that are kept to be used again.
    pub spares: usize,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            prefix: "redo".to_owned(),
            part_bytes_min: 1 << 20,
            part_bytes_max: 64 << 20,
            spares: 2,
        }
    }
}

/// Where reading a log begins, and how far it must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStart {
    /// The first record that is wanted.
    pub lsn: Lsn,
    /// The number of the part that it is in, as [`Log::position`] said.
    pub part: u64,
    /// The log was synced up to there: one that ends before is damaged.
    pub durable: Lsn,
}

/// A log that is open to be appended to.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    id: u64,
    options: LogOptions,
    tail: Mutex<Tail>,
    group: Mutex<Group>,
    synced: Condvar,
    durable: AtomicU64,
    /// Whether a sync failed.
    is_poisoned: AtomicBool,
}

#[derive(Debug)]
struct Tail {
    parts: VecDeque<Part>,
    /// Of the last part, which is appended to.
    map: Box<dyn Mapped>,
    /// Where the next record goes in it.
    offset: u64,
    /// Up to where its pages were made ready.
    prepared: u64,
    lsn: Lsn,
    spares: Vec<Spare>,
    /// Whether names were made or changed since names were synced.
    names_changed: bool,
    next_number: u64,
}

#[derive(Debug)]
struct Part {
    name: String,
    number: u64,
    bytes: u64,
    file: Arc<dyn CachedFile>,
    /// Whether it has something that may not last.
    is_dirty: bool,
}

/// A file that a part is not in any more.
#[derive(Debug)]
struct Spare {
    name: String,
    bytes: u64,
    file: Arc<dyn CachedFile>,
}

/// Callers that wait for a sync.
#[derive(Debug, Default)]
struct Group {
    /// Whether one of them syncs.
    has_leader: bool,
    /// The first sync that failed: no later one is believed.
    failed: Option<(io::ErrorKind, String)>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// Makes an empty log that begins at `first`. `id` tells its files from those of other logs.
    ///
    /// # Errors
    /// What the disk answers. Files of an unfinished attempt are replaced.
    pub fn create(
        disk: Arc<dyn Disk>,
        id: u64,
        options: LogOptions,
        first: Lsn,
    ) -> io::Result<Log> {
        for name in disk.list()? {
            if format::number_of(&options.prefix, &name).is_some() {
                disk.remove(&name)?;
            }
        }
        Log::begin(disk, id, options, Vec::new(), first, 1)
    }

    /// Reads a log from some record on, and opens it to be appended to. `apply` gets each record,
    /// in order, with the position behind it; its error is the answer.
    ///
    /// # Errors
    /// `InvalidData` where the log ends before [`LogStart::durable`] or lacks its first part; what
    /// the disk answers, and `apply`.
    pub fn open<E: From<io::Error>>(
        disk: Arc<dyn Disk>,
        id: u64,
        options: LogOptions,
        start: LogStart,
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<Log, E> {
        let read = read::read(&*disk, id, &options.prefix, start, apply)?;
        let log = Log::begin(disk, id, options, read.parts, read.end, read.next_number)?;
        let used: Vec<String> =
            lock(&log.tail).parts.iter().map(|part| part.name.clone()).collect();
        for name in read.names {
            if !used.contains(&name) {
                log.disk.remove(&name)?;
            }
        }
        Ok(log)
    }

    /// Reads a log as [`Log::open`] does, and changes nothing; the position behind the last record.
    ///
    /// # Errors
    /// As of [`Log::open`].
    pub fn view<E: From<io::Error>>(
        disk: &dyn Disk,
        id: u64,
        prefix: &str,
        start: LogStart,
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<Lsn, E> {
        Ok(read::read(disk, id, prefix, start, apply)?.end)
    }

    fn begin(
        disk: Arc<dyn Disk>,
        id: u64,
        options: LogOptions,
        parts: Vec<Part>,
        lsn: Lsn,
        next_number: u64,
    ) -> io::Result<Log> {
        let mut tail = Tail {
            parts: parts.into(),
            map: Box::new(NoPart),
            offset: 0,
            prepared: 0,
            lsn,
            spares: Vec::new(),
            names_changed: false,
            next_number,
        };
        tail.begin_part(&*disk, id, &options, lsn)?;
        let log = Log {
            disk,
            id,
            options,
            tail: Mutex::new(tail),
            group: Mutex::default(),
            synced: Condvar::new(),
            durable: AtomicU64::new(0),
            is_poisoned: AtomicBool::new(false),
        };
        let durable = log.sync_all()?;
        log.durable.store(durable, Ordering::Release);
        Ok(log)
    }

    /// Appends a record; the position behind it. Any length will do.
    ///
    /// # Errors
    /// What the disk answers where a new part is needed; the record is not in the log then. After a
    /// failed sync, every append.
    pub fn append(&self, record: &[u8]) -> io::Result<Lsn> {
        if self.is_poisoned.load(Ordering::Acquire) {
            return Err(io::Error::other("an earlier sync of the log failed: open it again"));
        }
        let mut tail = lock(&self.tail);
        let mut rest = record;
        let mut is_first = true;
        loop {
            let room = tail.room();
            if room < HEADER_BYTES + 8 {
                let durable = self.durable.load(Ordering::Acquire);
                tail.begin_part(&*self.disk, self.id, &self.options, durable)?;
                continue;
            }
            let here = rest.len().min((room - HEADER_BYTES) as usize).min(format::FRAGMENT_MAX);
            let (fragment, behind) = rest.split_at(here);
            let kind = match (is_first, behind.is_empty()) {
                (true, true) => Kind::Whole,
                (true, false) => Kind::First,
                (false, false) => Kind::Middle,
                (false, true) => Kind::Last,
            };
            tail.write(self.id, kind, fragment);
            if behind.is_empty() {
                return Ok(tail.lsn);
            }
            (rest, is_first) = (behind, false);
        }
    }

    /// The position behind the last record, and the number of the part where the next one begins.
    pub fn position(&self) -> (Lsn, u64) {
        let tail = lock(&self.tail);
        (tail.lsn, tail.parts.back().map_or(0, |part| part.number))
    }

    /// The position up to which the log is known to last.
    pub fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// Waits until the log lasts up to `lsn`, a position that [`Log::append`] answered, together with
    /// all other callers that wait.
    ///
    /// # Errors
    /// What the disk answered to the first sync that failed, from then on: what it concerned may be
    /// lost, whatever a later sync says.
    pub fn sync(&self, lsn: Lsn) -> io::Result<()> {
        if self.durable() >= lsn {
            return Ok(());
        }
        let lsn = lsn.min(self.position().0);
        let mut group = lock(&self.group);
        loop {
            if let Some((kind, why)) = &group.failed {
                return Err(io::Error::new(*kind, why.clone()));
            }
            if self.durable() >= lsn {
                return Ok(());
            }
            if group.has_leader {
                group = self.synced.wait(group).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            group.has_leader = true;
            drop(group);
            let done = self.sync_all();
            group = lock(&self.group);
            group.has_leader = false;
            match done {
                // Release: with the acquire of `durable`.
                Ok(durable) => self.durable.store(durable, Ordering::Release),
                Err(cause) => {
                    self.is_poisoned.store(true, Ordering::Release);
                    group.failed = Some((cause.kind(), format!("sync the log: {cause}")));
                }
            }
            self.synced.notify_all();
        }
    }

    /// Syncs all that was appended before; how far that is.
    fn sync_all(&self) -> io::Result<Lsn> {
        let (lsn, files, names_changed) = {
            let mut tail = lock(&self.tail);
            tail.pad(self.id);
            let dirty = tail.parts.iter_mut().filter(|part| part.is_dirty);
            let files: Vec<_> = dirty
                .map(|part| {
                    part.is_dirty = false;
                    Arc::clone(&part.file)
                })
                .collect();
            (tail.lsn, files, std::mem::take(&mut tail.names_changed))
        };
        for file in files {
            file.sync()?;
        }
        if names_changed {
            self.disk.sync()?;
        }
        Ok(lsn)
    }

    /// Gives up all parts before `part`, which some [`Log::position`] named: their files are used
    /// again, or go. What their records say must last elsewhere.
    ///
    /// # Errors
    /// What the disk answers.
    pub fn forget_before(&self, part: u64) -> io::Result<()> {
        let mut tail = lock(&self.tail);
        while tail.parts.len() > 1 && tail.parts[0].number < part {
            let Some(part) = tail.parts.pop_front() else { break };
            let large = part.bytes >= self.options.part_bytes_max;
            if large && tail.spares.len() < self.options.spares {
                tail.spares.push(Spare { name: part.name, bytes: part.bytes, file: part.file });
            } else {
                self.disk.remove(&part.name)?;
            }
        }
        Ok(())
    }

    /// Bytes of all its files.
    pub fn file_bytes(&self) -> u64 {
        let tail = lock(&self.tail);
        let parts: u64 = tail.parts.iter().map(|part| part.bytes).sum();
        parts + tail.spares.iter().map(|spare| spare.bytes).sum::<u64>()
    }
}

impl Tail {
    /// Bytes that are left in the last part.
    fn room(&self) -> u64 {
        self.parts.back().map_or(0, |part| part.bytes - self.offset)
    }

    fn write(&mut self, id: u64, kind: Kind, payload: &[u8]) {
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
        if let Some(part) = self.parts.back_mut() {
            part.is_dirty = true;
        }
    }

    /// Ends the sector, so that what is about to last is not written again.
    fn pad(&mut self, id: u64) {
        let within = self.offset % SECTOR;
        let has_new = self.parts.back().is_some_and(|part| part.is_dirty);
        if within == 0 || !has_new {
            return;
        }
        let mut gap = SECTOR - within;
        if gap < HEADER_BYTES {
            gap += SECTOR;
        }
        if gap <= self.room() {
            let payload = (gap - HEADER_BYTES) as usize;
            let header = format::pad_header(id, self.lsn, payload);
            self.map.write(self.offset as usize, &header);
            self.advance(gap);
        }
    }

    /// Goes on in another file.
    fn begin_part(
        &mut self,
        disk: &dyn Disk,
        id: u64,
        options: &LogOptions,
        durable: Lsn,
    ) -> io::Result<()> {
        let number = self.next_number;
        let name = format::name(&options.prefix, number);
        let before = self.parts.back();
        let (bytes, file) = match self.spares.pop() {
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
                let bytes = doubled.clamp(options.part_bytes_min, options.part_bytes_max);
                let file = disk.cached(&name, Presence::New)?;
                if let Err(cause) = file.reserve(bytes) {
                    // Its room is not to be had: nothing is to be left of it.
                    let _left = disk.remove(&name);
                    return Err(cause);
                }
                (bytes, file)
            }
        };
        self.next_number += 1;
        self.names_changed = true;
        let mut map = file.map(bytes as usize)?;
        let previous = before.map_or(0, |part| part.number);
        let header = PartHeader { id, number, previous, first: self.lsn, durable, bytes };
        map.write(0, &header.encode());
        self.parts.push_back(Part { name, number, bytes, file, is_dirty: true });
        self.map = map;
        self.offset = PART_HEADER_BYTES;
        self.prepared = PART_HEADER_BYTES;
        Ok(())
    }
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
