//! The log as a row of files.
//!
//! [`Parts`] keeps the log as files of about 64 MiB, its *parts*. A part has a header and a slot
//! for each of its pages; a slot has an area for the page's bytes and two trailers, of which the
//! newer valid one counts. A trailer says how many bytes of the page are used and has a checksum of
//! each block, so that a read of one record verifies the blocks it lies in and no others.
//!
//! *Useful for* pages that are appended to and written again when they have more. *Not useful for*
//! pages whose bytes change: see I-PREFIX.
//!
//! Invariants:
//!
//! - I-PREFIX: a page that is written again has at least as many used bytes as before, and the same
//!   ones up to there. Writing checks it, except where nothing of the page lasts and a write or
//!   sync of it failed: then it may be written as if anew, while no thread reads it. So blocks of
//!   which all bytes are used are not written again once they last, and where the last one is torn
//!   between the old and the new, the bytes that the old trailer vouches for are there either way.
//! - I-TRAILER: the trailer that lasts is not overwritten; a newer one goes to the other place.
//!   With I-PREFIX: a crash while a page is written again leaves the page as it lasted before, or
//!   newer.
//! - I-HONEST: what a failed write or sync was to make last keeps [`Parts::sync`] failing until it
//!   is written again (or given up by [`Parts::remove_from`]). The system may have dropped it, and
//!   a second sync that succeeds would say nothing about it.
//!
//! *Thread safety*: everything may be called by any thread at any time, but one page is written by
//! one thread at a time, and [`Parts::remove_from`] excludes writers. Lock order:
//! parts, then a part's `writing`, then its `table`; no lock on a table or on the parts is held
//! across I/O (one on `making`, for the first page of a part, and one on `writing`, while a part is
//! synced, are).

mod part;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use sapwood_disk::{BLOCK_BYTES, BegunRead, Blocks, Disk, Pending, ReadsBy};

use crate::error::{Error, Result};
use crate::files::stored::{self, FileKind, PageTrailer};
use crate::record::address::PageNumber;
use part::{Part, Piece, Scratch};

/// Bytes of page areas in a part. Stored in the header as a number of pages: a part with another
/// number is refused, so keep it.
const PART_BYTES: u64 = 64 << 20;
/// Buffers kept for reads to come, as many as a batch of the usual size waits for together; more, where the
/// log says that it has the memory. They count among that ...
const SPARES_MIN: usize = 32;
/// ... and none larger than this.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// The arrangement of pages in parts, and the table that they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PartShape {
    page_bytes: u64,
    pages_per_part: u64,
    table_id: u64,
}

impl PartShape {
    fn new(page_bytes: usize, pages_per_part: Option<u64>) -> PartShape {
        assert!(page_bytes.is_power_of_two() && (64..=32 << 20).contains(&page_bytes));
        let page_bytes = page_bytes as u64;
        let area_bytes = page_bytes.next_multiple_of(BLOCK_BYTES as u64);
        let pages_per_part = pages_per_part.unwrap_or((PART_BYTES / area_bytes).max(1));
        PartShape { page_bytes, pages_per_part, table_id: 0 }
    }

    fn of_table(self, table_id: u64) -> PartShape {
        PartShape { table_id, ..self }
    }

    /// Bytes of a page's area, whole blocks.
    fn area_bytes(self) -> u64 {
        self.page_bytes.next_multiple_of(BLOCK_BYTES as u64)
    }

    fn blocks_per_page(self) -> usize {
        (self.area_bytes() / BLOCK_BYTES as u64) as usize
    }

    /// Bytes of a trailer, whole blocks.
    fn trailer_bytes(self) -> u64 {
        let bytes = size_of::<PageTrailer>() + 4 * self.blocks_per_page();
        (bytes as u64).next_multiple_of(BLOCK_BYTES as u64)
    }

    fn slot_bytes(self) -> u64 {
        self.area_bytes() + 2 * self.trailer_bytes()
    }

    /// The number of the part with a page.
    fn part_of(self, page: PageNumber) -> u64 {
        page.get() / self.pages_per_part
    }

    /// The page of a log address in bytes.
    fn page_of(self, address: u64) -> PageNumber {
        PageNumber::new(address / self.page_bytes)
    }

    /// The first page of a part.
    fn first_page_of(self, part: u64) -> PageNumber {
        PageNumber::new(part * self.pages_per_part)
    }
}

/// A page that is on its way from the disk: what was seen in it, and its bytes.
pub(crate) type PageRead<T> = Pending<(Result<T>, Blocks)>;
/// A page that is on its way to the disk, and its buffer back.
pub(crate) type PageWrite = Pending<(Result<()>, Blocks)>;

/// The files of a log.
pub(crate) struct Parts {
    disk: Arc<dyn Disk>,
    shape: PartShape,
    access: Access,
    /// By number: the number of the first page, divided by the pages of a part.
    parts: RwLock<BTreeMap<u64, Arc<Part>>>,
    /// Held while a part is made, so that it is made once.
    making: Mutex<()>,
    names: Mutex<Names>,
    spares: Arc<Spares>,
}

/// Permission to change the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads alone: every write is refused.
    Read,
    Write,
}

/// Buffers for reads to come.
struct Spares {
    all: Mutex<Vec<Scratch>>,
    /// So many are kept.
    most: AtomicUsize,
}

impl Default for Spares {
    fn default() -> Spares {
        Spares { all: Mutex::default(), most: AtomicUsize::new(SPARES_MIN) }
    }
}

/// Whether the names of all parts last.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    Lasting,
    Unsynced,
    /// A sync of names failed. Unlike pages, names cannot be written again.
    Lost(Error),
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("disk", &self.disk).field("shape", &self.shape).finish()
    }
}

impl Parts {
    /// A log without pages. Files of an earlier one are replaced when their turn comes.
    pub(crate) fn create(disk: Arc<dyn Disk>, page_bytes: usize, table_id: u64) -> Result<Parts> {
        Ok(Parts::with(disk, PartShape::new(page_bytes, None).of_table(table_id)))
    }

    /// A log whose pages from `first_page` to below `limit_page` were written before. Reads their
    /// trailers, and where a crash may have torn a page the page as well. What lies beyond is
    /// ignored, and replaced when it is written. Nothing is changed on the disk.
    ///
    /// A page may have more bytes used than what is being recovered vouches for, where it was
    /// written again after that. So the log goes on with `limit_page`, not in the page before.
    ///
    /// # Errors
    /// `Corrupt` when a page is missing, damaged or of another table, `Io` when the disk fails.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        page_bytes: usize,
        table_id: u64,
        first_page: PageNumber,
        limit_page: PageNumber,
    ) -> Result<Parts> {
        let shape = PartShape::new(page_bytes, None).of_table(table_id);
        Parts::open_shaped(disk, shape, first_page, limit_page)
    }

    /// The same, for reads alone.
    pub(crate) fn for_reading(self) -> Parts {
        Parts { access: Access::Read, ..self }
    }

    fn open_shaped(
        disk: Arc<dyn Disk>,
        shape: PartShape,
        first_page: PageNumber,
        limit_page: PageNumber,
    ) -> Result<Parts> {
        let parts = Parts::with(disk, shape);
        if first_page < limit_page {
            let mut all = parts.parts_mut();
            for number in shape.part_of(first_page)..=shape.part_of(limit_page.before(1)) {
                let pages = first_page..limit_page;
                all.insert(number, Arc::new(Part::open(&*parts.disk, shape, number, &pages)?));
            }
        }
        Ok(parts)
    }

    fn with(disk: Arc<dyn Disk>, shape: PartShape) -> Parts {
        // The way of reads is chosen as the log is opened, not by the first that misses.
        let _chosen = disk.reads_by();
        Parts {
            disk,
            shape,
            access: Access::Write,
            parts: RwLock::default(),
            making: Mutex::default(),
            names: Mutex::new(Names::Lasting),
            spares: Arc::default(),
        }
    }

    /// Begins to write the first bytes of a page, and its trailer. `fill` puts them into a buffer
    /// and answers how many there are. Lasting after a [`Parts::sync`] that comes after the answer;
    /// nothing else of the page may be written before.
    ///
    /// The answer is `Io` when the disk fails: the page reads as before, and [`Parts::sync`] fails
    /// until it is written. It is `Corrupt` when the page was written before and these bytes break
    /// I-PREFIX: nothing is written then.
    pub(crate) fn begin_write_page(
        &self,
        page: PageNumber,
        mut buffer: Blocks,
        fill: impl FnOnce(&mut Blocks) -> usize + Send + 'static,
    ) -> PageWrite {
        let part = match self.expect_writing(page).and_then(|()| self.part_or_new(page)) {
            Ok(part) => part,
            Err(error) => return Pending::ready((Err(error), buffer)),
        };
        let (spares, page_bytes) = (Arc::clone(&self.spares), self.shape.page_bytes);
        let (write, work) = Pending::new(move || {
            let used = fill(&mut buffer);
            assert!(used as u64 <= page_bytes && used <= buffer.bytes().len());
            let mut scratch = spares.take();
            let result = part.write_page(page, used, &buffer, &mut scratch);
            spares.give_back(scratch);
            (result, buffer)
        });
        self.disk.spawn(vec![work]);
        write
    }

    fn expect_writing(&self, page: PageNumber) -> Result<()> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => {
                let cause = std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
                let what = format!("write page {page} of a log that was opened for reading alone");
                Err(Error::io(what, &cause))
            }
        }
    }

    /// Makes everything last that was written before the call.
    ///
    /// # Errors
    /// `Io` when the disk fails. It keeps failing until all pages concerned are written again; for
    /// ever, where the names of parts could not be made to last.
    pub(crate) fn sync(&self) -> Result<()> {
        let all: Vec<_> = self.parts().values().cloned().collect();
        let mut result = Ok(());
        for part in all {
            // The others all the same: they would be tried again in vain otherwise.
            result = result.and(part.sync());
        }
        result.and(self.sync_names())
    }

    fn sync_names(&self) -> Result<()> {
        let mut names = lock(&self.names);
        match &*names {
            Names::Lasting => Ok(()),
            Names::Lost(cause) => Err(cause.clone()),
            Names::Unsynced => match stored::sync_names(&*self.disk) {
                Ok(()) => {
                    *names = Names::Lasting;
                    Ok(())
                }
                Err(cause) => {
                    *names = Names::Lost(cause.clone());
                    Err(cause)
                }
            },
        }
    }

    /// Reads bytes of one page, verifying the blocks they lie in.
    ///
    /// # Errors
    /// `Corrupt` when they were never written or are damaged, `Io` when the disk fails.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let part = self.part(self.shape.page_of(address))?;
        let mut scratch = self.spares.take();
        let result = part.plan(address, bytes.len(), &mut scratch).and_then(|piece| {
            part.read(&piece, &mut scratch)?;
            bytes.copy_from_slice(part.check(&piece, &scratch)?);
            Ok(())
        });
        self.spares.give_back(scratch);
        result
    }

    /// Bytes of a page that were written; what it has behind them is zero.
    ///
    /// # Errors
    /// As [`Parts::read`].
    pub(crate) fn used(&self, page: PageNumber) -> Result<usize> {
        self.part(page)?.used(page)
    }

    /// Begins many reads, of so many bytes from a log address each, all in one page. Each answers
    /// for itself, as [`Parts::read`] does.
    pub(crate) fn begin_reads(
        &self,
        wanted: impl Iterator<Item = Result<(u64, usize)>>,
    ) -> Vec<PartRead> {
        let mut reads = Vec::new();
        let mut plan = |wanted: Result<(u64, usize)>| {
            let (address, len) = wanted?;
            let part = self.part(self.shape.page_of(address))?;
            let mut scratch = self.spares.take();
            let piece = part.plan(address, len, &mut scratch)?;
            let into = std::mem::take(&mut scratch.blocks);
            reads.push(part.owned_read(&piece, into));
            Ok(Planned { part, piece, scratch, spares: Arc::clone(&self.spares) })
        };
        let planned: Vec<Result<Planned>> = wanted.map(&mut plan).collect();
        let mut begun = self.disk.begin_reads(reads).into_iter();
        let mut pair = |planned: Result<Planned>| {
            PartRead(planned.map(|planned| (planned, begun.next().expect("each has its read"))))
        };
        planned.into_iter().map(&mut pair).collect()
    }

    /// Reads a page, verified: the bytes that are used, and zeros behind them. Answers how many are
    /// used. `into` gets the length of a page's area.
    ///
    /// # Errors
    /// As [`Parts::read`].
    pub(crate) fn read_page(&self, page: PageNumber, into: &mut Blocks) -> Result<usize> {
        let part = self.part(page)?;
        // The page's own buffer is read into, not one of the spares.
        let mut scratch = Scratch { blocks: std::mem::take(into), checksums: Vec::new() };
        let result = part.read_page(page, &mut scratch);
        *into = scratch.blocks;
        let used = *result.as_ref().unwrap_or(&0);
        into.bytes_mut()[used..].fill(0);
        into.resize(self.shape.area_bytes() as usize);
        debug_assert!(used as u64 <= self.shape.page_bytes, "a page has no more");
        result
    }

    /// Begins to read the bytes of a page that are used, and to look at them.
    pub(crate) fn begin_page<T: Send + 'static>(
        &self,
        page: PageNumber,
        into: Blocks,
        look: impl FnOnce(&[u8]) -> Result<T> + Send + 'static,
    ) -> PageRead<T> {
        let part = match self.part(page) {
            Ok(part) => part,
            Err(error) => return Pending::ready((Err(error), into)),
        };
        let (read, work) = Pending::new(move || {
            let mut scratch = Scratch { blocks: into, checksums: Vec::new() };
            let used = part.read_page(page, &mut scratch);
            let seen = used.and_then(|used| look(&scratch.blocks.bytes()[..used]));
            (seen, scratch.blocks)
        });
        self.disk.spawn(vec![work]);
        read
    }

    /// Deletes the parts of which all pages lie below `page`, those that a crash brought back among
    /// them, and gives the room of such pages back in the part that has others, unless another
    /// process reads. Answers the bytes that were freed. Reads under way of a deleted part go on.
    pub(crate) fn remove_below(&self, page: PageNumber) -> Result<u64> {
        let limit = self.shape.part_of(page);
        let mut parts = self.parts_mut();
        let kept = parts.split_off(&limit);
        let removed = std::mem::replace(&mut *parts, kept);
        let shared = parts.get(&limit).cloned();
        drop(parts);
        for first_page in FileKind::Part.list::<PageNumber>(&*self.disk)? {
            if self.shape.part_of(first_page) < limit {
                FileKind::Part.remove(&*self.disk, first_page)?;
            }
        }
        let freed: u64 = removed.values().map(|part| part.file_bytes()).sum();
        match shared.filter(|_| !self.disk.is_being_read()) {
            Some(part) => Ok(freed + part.discard_below(page)?),
            None => Ok(freed),
        }
    }

    /// Leaves the file of a part that has bytes on both sides of `page` to those that have it open, and goes on in a
    /// copy of what lies below.
    pub(crate) fn leave_to_readers(&self, page: PageNumber) -> Result<()> {
        let number = self.shape.part_of(page);
        let mut parts = self.parts_mut();
        if let Some(part) = parts.get(&number).cloned()
            && page > self.shape.first_page_of(number)
            && part.reaches(page)?
        {
            let copy = part.copy_below(&*self.disk, page)?;
            parts.insert(number, Arc::new(copy));
        }
        Ok(())
    }

    /// Forgets pages from `page` on, so that they may be written anew, and deletes their bytes:
    /// parts that have no others, and the end of the part that has.
    pub(crate) fn remove_from(&self, page: PageNumber) -> Result<()> {
        let limit = page.get().div_ceil(self.shape.pages_per_part);
        let mut parts = self.parts_mut();
        parts.split_off(&limit);
        let shared = parts.get(&self.shape.part_of(page)).cloned();
        if let Some(part) = &shared {
            part.forget_from(page);
        }
        drop(parts);
        for first_page in FileKind::Part.list::<PageNumber>(&*self.disk)? {
            if first_page.get().div_ceil(self.shape.pages_per_part) >= limit {
                FileKind::Part.remove(&*self.disk, first_page)?;
            }
        }
        shared.map_or(Ok(()), |part| part.cut_from(page))
    }

    /// Whether there are pages from `page` on.
    pub(crate) fn has_from(&self, page: PageNumber) -> bool {
        let parts = self.parts();
        let shared = parts.get(&self.shape.part_of(page));
        parts.range(self.shape.part_of(page) + 1..).next().is_some()
            || shared.is_some_and(|part| part.has_from(page))
    }

    /// Deletes the files of parts that are not of this log: of an earlier course of it, which
    /// was not removed when it was opened.
    pub(crate) fn remove_foreign(&self) -> Result<()> {
        // Of a part that is being made the file may be there before the part is.
        let _none_is_made = lock(&self.making);
        for first_page in FileKind::Part.list::<PageNumber>(&*self.disk)? {
            let number = self.shape.part_of(first_page);
            let is_ours = first_page.get().is_multiple_of(self.shape.pages_per_part)
                && self.parts().contains_key(&number);
            if !is_ours {
                FileKind::Part.remove(&*self.disk, first_page)?;
            }
        }
        Ok(())
    }

    /// Keeps buffers for so many reads in flight, if these are more than would be kept anyway.
    pub(crate) fn keep_buffers(&self, reads: usize) {
        self.spares.most.fetch_max(reads, Ordering::Relaxed);
    }

    /// Bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.parts().values().map(|part| part.file_bytes()).sum()
    }

    /// Bytes of memory for checksums, states of pages and spare buffers.
    pub(crate) fn table_bytes(&self) -> u64 {
        let tables: u64 = self.parts().values().map(|part| part.table_bytes()).sum();
        tables + self.spares.bytes()
    }

    /// By what reads are in flight together, and how many were given to io_uring.
    pub(crate) fn reads_by(&self) -> (ReadsBy, u64) {
        (self.disk.reads_by(), self.disk.ring_reads())
    }

    /// Where the files are, for messages.
    pub(crate) fn place(&self) -> String {
        self.disk.place()
    }

    fn part(&self, page: PageNumber) -> Result<Arc<Part>> {
        let number = self.shape.part_of(page);
        self.parts().get(&number).cloned().ok_or_else(|| {
            let first_page = self.shape.first_page_of(number);
            Error::Corrupt {
                file: FileKind::Part.file_name(first_page),
                offset: 0,
                what: format!("page {page} was never written, or has been removed"),
            }
        })
    }

    fn part_or_new(&self, page: PageNumber) -> Result<Arc<Part>> {
        let number = self.shape.part_of(page);
        let find = || self.parts().get(&number).cloned();
        if let Some(part) = find() {
            return Ok(part);
        }
        let _making = lock(&self.making);
        if let Some(part) = find() {
            return Ok(part);
        }
        let part = Arc::new(Part::create(&*self.disk, self.shape, number)?);
        let mut names = lock(&self.names);
        if *names == Names::Lasting {
            *names = Names::Unsynced;
        }
        drop(names);
        self.parts_mut().insert(number, Arc::clone(&part));
        Ok(part)
    }

    fn parts(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Arc<Part>>> {
        self.parts.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, Arc<Part>>> {
        self.parts.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a page that are on their way.
pub(crate) struct PartRead(Result<(Planned, BegunRead)>);

/// What a read must match.
struct Planned {
    part: Arc<Part>,
    piece: Piece,
    /// Its blocks are on their way.
    scratch: Scratch,
    spares: Arc<Spares>,
}

impl PartRead {
    /// Waits for them; answers as many of the first ones as are to be kept.
    pub(crate) fn wait(self, keep: impl FnOnce(&[u8]) -> usize) -> Result<Vec<u8>> {
        let (Planned { part, piece, mut scratch, spares }, read) = self.0?;
        let (blocks, result) = read.wait();
        scratch.blocks = blocks;
        let bytes = part
            .answered(&piece, &scratch, result)
            .and_then(|()| part.check(&piece, &scratch))
            .map(|bytes| bytes[..keep(bytes).min(bytes.len())].to_vec());
        spares.give_back(scratch);
        bytes
    }

    /// Waits until all of these are there, or nearly all.
    pub(crate) fn wait_for_many<'r>(reads: impl DoubleEndedIterator<Item = &'r PartRead> + Clone) {
        let begun = reads.filter_map(|read| Some(&read.0.as_ref().ok()?.1));
        BegunRead::wait_for_many(begun);
    }
}

impl Spares {
    fn take(&self) -> Scratch {
        lock(&self.all).pop().unwrap_or_default()
    }

    fn give_back(&self, scratch: Scratch) {
        let mut spares = lock(&self.all);
        if spares.len() < self.most.load(Ordering::Relaxed)
            && scratch.blocks.bytes().len() <= SPARE_BYTES_MAX
        {
            spares.push(scratch);
        }
    }

    fn bytes(&self) -> u64 {
        lock(&self.all).iter().map(|spare| spare.blocks.bytes().len() as u64).sum()
    }
}

/// Locks; no critical section of this module leaves its data half done, even if it were to panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
