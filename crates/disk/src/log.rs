//! A log of records: what is appended survives the process at once, and the machine once it is
//! synced.
//!
//! The log is one sequence of bytes, counted by [`Lsn`], and lies in *parts*, files of the same
//! disk. A part's room is reserved and mapped, so that an append is a copy to memory and no system
//! call. [`Log::sync`] is a group commit (DeWitt et al.: "Implementation techniques for main memory
//! database systems", SIGMOD 1984): one caller syncs for all that appended before.
//!
//! The system may write any page of a mapping at any time, so behind the last sync anything may be
//! there or not. A record is believed if its checksum is right, which covers the log's number and
//! the record's place, and if all before it are: reading ends at the first that is not. What comes
//! next is written to a new part, which says where it continues, so that what lay behind is never
//! taken for a part of the log again.
//!
//! An append may need a new part, and a full disk has none. Where a record must not be refused any
//! more, because what it tells was done, its room is [claimed](Log::claim) before.
//!
//! `format` has the bytes, and `docs/design/disk.md` the reasons.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Disk, is_full};
use claims::Claims;
use format::{HEADER_BYTES, Kind};
use group::Group;
use read::{Damaged, Read};
use tail::{Spare, Tail};

mod claims;
mod damage;
mod durability;
mod format;
mod group;
mod options;
mod read;
mod renew;
mod room;
mod shared;
mod tail;
mod task;

pub use damage::{Damage, LogSurvey, PartSurvey};
pub use durability::Durability;
pub use format::Lsn;
pub use options::{LogOptions, LogStart};
pub use shared::SharedLog;
pub use task::Synced;

/// A log that is open to be appended to. Threads share it.
///
/// It has a thread where [`LogOptions::sync_interval`] or a [`Synced`] wants one, from then on until
/// it is dropped. What is appended with an interval is synced at the latest when the log is dropped.
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    cut_off: Option<Damage>,
}

/// What the log's thread has of it, too.
#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    id: u64,
    options: LogOptions,
    /// Taken before the group's lock, or without it.
    tail: Mutex<Tail>,
    claims: Claims,
    group: Group,
    /// That of the options, or a later one, in nanoseconds; `u64::MAX` for none.
    sync_nanos: AtomicU64,
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
        Log::begin(disk, id, options, Read::nothing(first), false)
    }

    /// Reads a log from some record on, and opens it to be appended to. `apply` gets each record,
    /// in order, with the position behind it; its error is the answer. What an earlier life did not know to last
    /// is written again, and lasts then. On a full disk it opens, too, and the first append answers that.
    ///
    /// # Errors
    /// `InvalidData` with a [`Damage`] where the log ends before [`LogStart::durable`], or before what a part says
    /// lasted, or lacks its first part; what the disk answers, and `apply`.
    pub fn open<E: From<io::Error>>(
        disk: Arc<dyn Disk>,
        id: u64,
        options: LogOptions,
        start: LogStart,
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<Log, E> {
        let (mut read, cut_off) = read::read(&*disk, id, &options.prefix, start, apply)?;
        // Before the next part says that it continues what lasts.
        let renewed = renew::renew(&*disk, &options.prefix, &mut read);
        let (names, durable) = (std::mem::take(&mut read.names), read.durable);
        let mut log = Log::begin(disk, id, options, read, true)?;
        log.cut_off = cut_off;
        match renewed {
            // What there is can be read; nothing is promised of it.
            Err(cause) if is_full(cause.kind()) => {
                log.shared.group.fail(durable, &cause);
                return Ok(log);
            }
            renewed => renewed?,
        }
        let used: Vec<String> =
            lock(&log.shared.tail).parts.iter().map(|part| part.name.clone()).collect();
        // What a reader may still want goes when the log is opened next.
        let is_read = log.shared.disk.is_being_read();
        for name in names {
            if !is_read && !used.contains(&name) {
                log.shared.disk.remove(&name)?;
            }
        }
        Ok(log)
    }

    /// Reads a log as [`Log::open`] does, and changes nothing; the position behind the last record, and the
    /// number of the part that ends there. Another process may append to the log: what it has written is
    /// read.
    ///
    /// # Errors
    /// As of [`Log::open`].
    pub fn view<E: From<io::Error>>(
        disk: &dyn Disk,
        id: u64,
        prefix: &str,
        start: LogStart,
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<(Lsn, u64), E> {
        let (read, _) = read::read(disk, id, prefix, start, apply)?;
        Ok((read.end, read.parts.last().map_or(start.part, |part| part.number)))
    }

    /// Reads a log that may be damaged, and changes nothing: what is wrong is in the answer. Where `goes_on`,
    /// records behind damage are told too, as far as they are whole: then what is told need not be a prefix of what
    /// was appended.
    ///
    /// # Errors
    /// What the disk answers, and `apply`.
    pub fn survey<E: From<io::Error>>(
        disk: &dyn Disk,
        id: u64,
        prefix: &str,
        start: LogStart,
        goes_on: bool,
        apply: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<LogSurvey, E> {
        let damaged = if goes_on { Damaged::GoesOn } else { Damaged::Ends };
        let surveyed = read::survey(disk, id, prefix, start, damaged, apply)?;
        let read = surveyed.read;
        let is_read = |name: &String| read.parts.iter().any(|part| part.name == *name);
        let parts = read.parts.iter().map(|part| PartSurvey {
            name: part.name.clone(),
            number: part.number,
            first: part.first,
            bytes: part.bytes,
        });
        Ok(LogSurvey {
            end: read.end,
            durable: read.durable,
            end_offset: surveyed.end_offset,
            parts: parts.collect(),
            unread: read.names.iter().filter(|name| !is_read(name)).cloned().collect(),
            damage: surveyed.damage,
            cut_off: surveyed.cut_off,
        })
    }

    /// The number of the log whose oldest part there is, and where that part begins; `None` where no header of a
    /// part can be read. For what has lost what it knew.
    ///
    /// # Errors
    /// What the disk answers.
    pub fn oldest_part(disk: &dyn Disk, prefix: &str) -> io::Result<Option<(u64, LogStart)>> {
        let header = read::oldest_part(disk, prefix)?;
        Ok(header.map(|header| {
            (header.id, LogStart { lsn: header.first, part: header.number, durable: 0 })
        }))
    }

    fn begin(
        disk: Arc<dyn Disk>,
        id: u64,
        options: LogOptions,
        read: Read,
        is_opened: bool,
    ) -> io::Result<Log> {
        let mut tail = Tail::new(read.parts, read.end, read.next_number);
        match tail.begin_part(&*disk, id, &options, read.durable, 0) {
            // What there is can be read; an append tries again, and tells.
            Err(cause) if is_opened && is_full(cause.kind()) => {}
            begun => begun?,
        }
        let group = Group::new(disk.clock());
        let sync_nanos = AtomicU64::new(nanos(options.sync_interval));
        let claims = Claims::new(tail.room());
        let shared =
            Shared { disk, id, options, tail: Mutex::new(tail), claims, group, sync_nanos };
        shared.group.begin(shared.sync_all()?);
        Ok(Log { shared: Arc::new(shared), cut_off: None })
    }

    /// Appends a record; the position behind it. Any length will do.
    ///
    /// # Errors
    /// What the disk answers where a new part is needed; the record is not in the log then. After a
    /// failed sync, every append.
    pub fn append(&self, record: &[u8]) -> io::Result<Lsn> {
        let failed = |cause| io::Error::other(format!("{cause}: open it again"));
        self.shared.group.check().map_err(failed)?;
        self.append_claimed(record)
    }

    /// Keeps room for a record of so many bytes, until it is [given back](Self::give_back), by the
    /// number of the answer: then [`append_claimed`](Self::append_claimed) needs no new part.
    /// Several claims have room for one record as long as all their records together. Every caller
    /// that appends to a log with claims must claim.
    ///
    /// # Errors
    /// Errors of the disk where a new part is needed. After `StorageFull` another claim may be
    /// granted; after a failed sync none is.
    pub fn claim(&self, record_bytes: usize) -> io::Result<u64> {
        self.claim_many(record_bytes, 1)
    }

    /// [Claims](Self::claim) room for several records that have so many bytes together.
    ///
    /// # Errors
    /// The errors of [`claim`](Self::claim).
    pub fn claim_many(&self, record_bytes: usize, records: usize) -> io::Result<u64> {
        self.shared.claim(Log::claimed_bytes(record_bytes, records))
    }

    /// Bytes that a claim of some records has.
    pub fn claimed_bytes(record_bytes: usize, records: usize) -> u64 {
        claims::claimed_bytes(record_bytes, records)
    }

    /// Ends claims that have so many bytes together, once their record was appended, or if none is.
    pub fn give_back(&self, claimed: u64) {
        self.shared.claims.give_back(claimed);
    }

    /// Appends a record for which there is a claim, also behind a failed sync: what it tells was
    /// done before.
    ///
    /// # Errors
    /// Where there is no claim, those of [`append`](Self::append).
    pub fn append_claimed(&self, record: &[u8]) -> io::Result<Lsn> {
        let (lsn, is_first) = {
            let mut tail = lock(&self.shared.tail);
            self.shared.append(&mut tail, record)?;
            (tail.lsn, self.shared.sync_interval().is_some() && tail.arrange_sync())
        };
        if is_first {
            self.shared.arrange_sync();
        }
        Ok(lsn)
    }

    /// The record that a crash had cut off at the end of the log when it was opened, where its header was there.
    pub fn cut_off(&self) -> Option<&Damage> {
        self.cut_off.as_ref()
    }

    /// The position behind the last record, and the number of the part where the next one begins.
    pub fn position(&self) -> (Lsn, u64) {
        let tail = lock(&self.shared.tail);
        (tail.lsn, tail.parts.back().map_or(0, |part| part.number))
    }

    /// The position up to which the log is known to last.
    pub fn durable(&self) -> Lsn {
        self.shared.group.durable()
    }

    /// Waits until the log lasts up to `lsn`, a position that [`Log::append`] answered, together with
    /// all other callers that wait.
    ///
    /// # Errors
    /// What the disk answered to the first sync that failed, from then on: what it concerned may be
    /// lost, whatever a later sync says.
    pub fn sync(&self, lsn: Lsn) -> io::Result<()> {
        self.shared.sync(lsn)
    }

    /// The same as a future. The thread of the log syncs for it, together with all others.
    pub fn synced(self: &Arc<Log>, lsn: Lsn) -> Synced {
        Synced::new(Arc::clone(self), lsn.min(self.position().0))
    }

    /// The answer of the first sync that failed, whatever wanted it.
    pub fn failed_sync(&self) -> Option<io::Error> {
        self.shared.group.check().err()
    }

    /// Replaces [`LogOptions::sync_interval`], for what is appended from now on.
    pub fn set_sync_interval(&self, interval: Option<Duration>) {
        self.shared.sync_nanos.store(nanos(interval), Ordering::Relaxed);
    }

    /// Whether the log lies in persistent memory: a sync writes cache lines back, and is no system call
    /// but where a part has begun since the last one.
    pub fn is_dax(&self) -> bool {
        lock(&self.shared.tail).is_dax()
    }

    /// Gives up all parts before `part`, which some [`Log::position`] named: their files are used
    /// again, or go. What their records say must last elsewhere. While the disk [is being
    /// read](Disk::is_being_read) they stay, until the next call.
    ///
    /// # Errors
    /// What the disk answers.
    pub fn forget_before(&self, part: u64) -> io::Result<()> {
        let Shared { disk, options, tail, .. } = &*self.shared;
        if disk.is_being_read() {
            return Ok(());
        }
        let mut tail = lock(tail);
        while tail.parts.len() > 1 && tail.parts[0].number < part {
            let Some(part) = tail.parts.pop_front() else { break };
            let large = part.bytes == options.part_bytes_max;
            if large && tail.spares.len() < options.spares {
                tail.spares.push(Spare { name: part.name, bytes: part.bytes, file: part.file });
            } else {
                disk.remove(&part.name)?;
            }
        }
        Ok(())
    }

    /// Bytes of all its files.
    pub fn file_bytes(&self) -> u64 {
        let tail = lock(&self.shared.tail);
        let parts: u64 = tail.parts.iter().map(|part| part.bytes).sum();
        parts + tail.spares.iter().map(|spare| spare.bytes).sum::<u64>()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.group.end();
    }
}

fn nanos(interval: Option<Duration>) -> u64 {
    interval.map_or(u64::MAX, |interval| {
        u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX - 1).min(u64::MAX - 1)
    })
}

impl Shared {
    fn sync_interval(&self) -> Option<Duration> {
        // Relaxed: it takes effect when it does.
        let nanos = self.sync_nanos.load(Ordering::Relaxed);
        (nanos < u64::MAX).then(|| Duration::from_nanos(nanos))
    }

    fn append(&self, tail: &mut Tail, record: &[u8]) -> io::Result<()> {
        let mut rest = record;
        let mut is_first = true;
        loop {
            let room = tail.room();
            if room < HEADER_BYTES + 8 {
                self.begin_part(tail)?;
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
            self.claims.take(format::record_bytes(fragment.len()));
            tail.write(self.id, kind, fragment);
            if behind.is_empty() {
                return Ok(());
            }
            (rest, is_first) = (behind, false);
        }
    }

    /// Syncs all that was appended before; how far that is.
    fn sync_all(&self) -> io::Result<Lsn> {
        let unsynced = lock(&self.tail).take_unsynced(self.id, &self.claims)?;
        for file in unsynced.files {
            file.sync()?;
        }
        if unsynced.names_changed {
            self.disk.sync()?;
        }
        Ok(unsynced.end)
    }
}
