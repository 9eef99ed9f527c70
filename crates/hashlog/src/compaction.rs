//! Compaction: live records of the oldest pages move to the tail, and the pages go.
//!
//! Each move is an ordinary append: the first change of the key wins, and the other record is
//! superseded. When the pages hold nothing live, `begin` moves past them. That goes chunk by chunk,
//! between which walks and checkpoints have their turn; what a chunk needs from the disk is read
//! before it holds `begin_lock` exclusively.
//!
//! | module | holds |
//! |---|---|
//! | `background` | the thread that compacts a log in a directory |
//! | `garbage` | an estimate of the garbage, from a sample |
//! | `cold_pages` | live records of pages on the disk, found ahead |

pub(crate) mod background;
mod cold_pages;
mod garbage;

use sapwood_disk::BLOCK_BYTES;

use crate::error::{Error, Result};
use crate::index::{Probe, Walk};
use crate::log::begin_lock::Alone;
use crate::log::cold::{self, Fetched};
use crate::ops::search::{Found, Probed};
use crate::ops::store::Store;
use crate::record::address::{Address, PageNumber};
use crate::record::in_place::InPlace;
use crate::record::in_place::Stop;
use crate::record::layout::control;
use crate::stats::Compacted;
use cold_pages::ColdPage;

/// Pages that a writer compacts when it begins a new one and much is garbage.
const IN_MEMORY_PAGES: u64 = 4;
/// So many bytes are compacted before others have their turn, a page at least ...
const CHUNK_BYTES: usize = 1 << 20;
/// ... and no more pages than this.
const CHUNK_PAGES_MAX: usize = 64;

/// A removal that goes once nothing behind it is left.
type Tombstone = (Address, u64);

impl Store {
    /// Compacts the log below `until`, rounded down to a page.
    pub(crate) fn compact<F: InPlace>(&self, until: Address) -> Result<Compacted> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        match self.log.parts {
            None => self.compact_chunks::<F>(until),
            Some(_) => self.compactor.alone(|| self.compact_chunks::<F>(until)),
        }
    }

    fn compact_chunks<F: InPlace>(&self, until: Address) -> Result<Compacted> {
        let mut done = Compacted::default();
        let limit = self.log.page_of(until).min(self.log.page_of(self.log.tail()));
        let chunk = self.chunk_pages();
        let mut compacted = Ok(());
        if self.log.parts.is_some() {
            let block_bytes = self.log.page_bytes.next_multiple_of(BLOCK_BYTES) as u64;
            self.compactor.set_buffer_bytes(chunk * block_bytes);
        }
        while compacted.is_ok() && !self.begin_lock.is_ended() {
            let first = self.log.page_of(self.log.begin());
            if first >= limit {
                break;
            }
            let pages = first..limit.min(first.plus(chunk));
            // What is read from the disk is read before any thread has to wait.
            compacted = self.read_ahead::<F>(pages.clone()).and_then(|cold| {
                let Some(_alone) = self.lock_begin() else { return Ok(()) };
                self.compact_pages::<F>(pages.end, cold, &mut done)
            });
            self.compactor.went_on();
        }
        self.compactor.set_buffer_bytes(0);
        self.compactor.count(&done);
        compacted?;
        if done.bytes_freed > 0
            && self.is_index_loose()
            && let Some(_alone) = self.lock_begin()
        {
            self.pack_index();
        }
        Ok(done)
    }

    /// Compacts the oldest page. `None` where that would have to wait, for a walk, a checkpoint or
    /// another compaction.
    pub(crate) fn compact_step<F: InPlace>(&self) -> Result<Option<Compacted>> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        match self.log.parts {
            None => self.compact_oldest::<F>(),
            Some(_) => self.compactor.try_alone(|| self.compact_oldest::<F>()).unwrap_or(Ok(None)),
        }
    }

    fn compact_oldest<F: InPlace>(&self) -> Result<Option<Compacted>> {
        let first = self.log.page_of(self.log.begin());
        let limit = first.next().min(self.log.page_of(self.log.tail()));
        let cold = self.read_ahead::<F>(first..limit.max(first))?;
        let Some(_alone) = self.begin_lock.try_alone() else { return Ok(None) };
        let mut done = Compacted::default();
        let compacted = self.compact_pages::<F>(limit, cold, &mut done);
        self.compactor.count(&done);
        compacted?;
        if done.bytes_freed > 0 && self.is_index_loose() {
            self.pack_index();
        }
        Ok(Some(done))
    }

    /// Waits until no walk goes on; `None` when the log is dropped.
    fn lock_begin(&self) -> Option<Alone<'_>> {
        let alone = self.begin_lock.try_alone();
        alone.or_else(|| self.compactor.waiting(|| self.begin_lock.alone()))
    }

    /// Pages of a chunk: few enough for their buffers to be a small part of the budget.
    fn chunk_pages(&self) -> u64 {
        let share = self.options.memory_budget.map_or(usize::MAX, |budget| budget as usize / 16);
        (CHUNK_BYTES.min(share) / self.log.page_bytes).clamp(1, CHUNK_PAGES_MAX) as u64
    }

    /// A step of compaction by a writer, where it pays and no walk goes on.
    pub(crate) fn compact_in_memory<F: InPlace>(&self) -> Result<()> {
        if self.log.parts.is_some() {
            self.request_compaction_and_yield();
            return Ok(());
        }
        let (begin, tail) = (self.log.begin().bytes(), self.log.tail().bytes());
        let page = self.log.page_bytes as u64;
        let garbage = self.garbage.sum() + self.log.wasted(0);
        let tight = self.log.frames_spare(self.bytes_beside()) <= IN_MEMORY_PAGES;
        let much = tight || garbage > (tail - begin) / 2;
        if !much || garbage <= 2 * page {
            return Ok(());
        }
        let Some(_alone) = self.begin_lock.try_alone() else { return Ok(()) };
        let limit = self.log.page_of(self.log.begin()).plus(IN_MEMORY_PAGES);
        self.compact_memory::<F>(limit).map(drop)
    }

    /// Compacts the oldest pages of a full log in memory; false if that gave no room.
    pub(crate) fn reclaim<F: InPlace>(&self) -> bool {
        if self.log.parts.is_some() {
            // The disk may be full, and the oldest files may hold nothing live.
            self.request_compaction();
            return false;
        }
        if self.garbage.sum() + self.log.wasted(0) == 0 {
            return false;
        }
        let Some(_alone) = self.begin_lock.try_alone() else { return false };
        let next = self.log.page_of(self.log.begin()).next();
        self.compact_memory::<F>(next).is_ok_and(|bytes_freed| bytes_freed > 0)
    }

    /// Compacts the pages below `limit` of a log in memory; answers the bytes that were freed.
    fn compact_memory<F: InPlace>(&self, limit: PageNumber) -> Result<u64> {
        let mut done = Compacted::default();
        let limit = limit.min(self.log.page_of(self.log.tail()));
        self.compact_pages::<F>(limit, Vec::new(), &mut done)?;
        self.compactor.count(&done);
        if self.is_index_loose() {
            self.pack_index();
        }
        Ok(done.bytes_freed)
    }

    /// Compacts the pages below `limit`, of which the oldest may have been read ahead. The caller
    /// holds `begin_lock` exclusively.
    fn compact_pages<F: InPlace>(
        &self,
        limit: PageNumber,
        cold: Vec<ColdPage>,
        done: &mut Compacted,
    ) -> Result<()> {
        let first = self.log.page_of(self.log.begin());
        if limit <= first {
            return Ok(());
        }
        let until = self.log.page_start(limit);
        self.log.raise(until);
        let mut tombstones = Vec::new();
        let mut cold = cold.into_iter().peekable();
        for page in PageNumber::each(first..limit) {
            let compacted = match cold.next_if(|cold| cold.page == page) {
                Some(cold) => self.compact_cold::<F>(&cold, &mut tombstones, done),
                None => self.compact_page::<F>(page, &mut tombstones, done),
            };
            if let Err(error) = compacted {
                if self.log.parts.is_none() {
                    self.log.lower();
                }
                return Err(error);
            }
        }
        done.bytes_freed += until.bytes() - self.log.begin().bytes();
        self.log.cut(until);
        // Not before: a checkpoint that knows the slot must know, too, that it names nothing.
        for (address, hash) in tombstones {
            self.forget_tombstone(address, hash);
        }
        Ok(())
    }

    /// At the load that an index grows at, a quarter of the buckets have one behind them.
    fn is_index_loose(&self) -> bool {
        self.index.overflow_in_use() > self.index.count() / 2
    }

    /// Packs the index. The caller holds `begin_lock` exclusively.
    fn pack_index(&self) {
        if let Some(epoch) = self.index.pack(self.log.begin(), &self.log.epochs) {
            self.log.wait_for_epoch(epoch);
        }
    }

    fn compact_page<F: InPlace>(
        &self,
        page: PageNumber,
        tombstones: &mut Vec<Tombstone>,
        done: &mut Compacted,
    ) -> Result<()> {
        let mut offset = 0;
        let mut copy = Vec::new();
        loop {
            // One record at a time under a pin: an append may have to wait unpinned.
            let pin = self.log.epochs.pin();
            if self.log.page_start(page) < self.log.head() {
                drop(pin);
                // It was evicted on the way.
                let cold = self.read_cold::<F>(page, offset)?;
                return self.compact_cold::<F>(&cold, tombstones, done);
            }
            let Some((address, record, flags)) = self.next_record::<F>(&pin, page, &mut offset)
            else {
                self.log.wasted((self.log.page_bytes - offset.min(self.log.page_bytes)) as u64);
                return Ok(());
            };
            let bytes = F::bytes_of(record) as i64;
            let buried = control::TOMBSTONE | control::SUPERSEDED;
            if flags & control::TOMBSTONE != 0 {
                tombstones.push((address, F::hash_of(record)));
                done.records_dropped += 1;
            } else if flags & control::SUPERSEDED == 0 {
                copy.clear();
                let key_len = F::visit(record, |key, value| {
                    copy.extend_from_slice(key);
                    copy.extend_from_slice(value);
                    key.len()
                });
                drop(pin);
                let (key, value) = copy.split_at(key_len);
                self.settle_record::<F>(address, F::key(key)?, value, done)?;
                let pin = self.log.epochs.pin();
                if address >= self.log.head()
                    && self.log.record(&pin, address).flags() & buried != 0
                {
                    self.garbage.add(-bytes);
                }
                continue;
            } else {
                done.records_dropped += 1;
            }
            if flags & buried != 0 {
                self.garbage.add(-bytes);
            }
        }
    }

    /// Moves a record in memory to the tail if it is the newest of its key.
    fn settle_record<F: InPlace>(
        &self,
        address: Address,
        key: F::Key<'_>,
        value: &[u8],
        done: &mut Compacted,
    ) -> Result<()> {
        let mut fetched = Fetched::default();
        loop {
            match self.was_live::<F>(address, self.log.tail(), key, &fetched) {
                Ok(true) => return self.move_record::<F>(address, key, value, done),
                Ok(false) => {
                    done.records_dropped += 1;
                    return Ok(());
                }
                Err(wanted) => fetched.push(cold::fetch::<F>(&self.log, wanted)?),
            }
        }
    }

    /// Appends a record that was live anew, unless another thread has changed the key since.
    fn move_record<F: InPlace>(
        &self,
        address: Address,
        key: F::Key<'_>,
        value: &[u8],
        done: &mut Compacted,
    ) -> Result<()> {
        let hash = F::hash(key);
        let moved = self.drive::<F, _>(|pin, fetched| {
            let (place, old) = match self.find::<F>(pin, hash, key, fetched)? {
                Probed::Present(place, Found::Memory(record, at)) if at == address => {
                    (place, Some((record, at)))
                }
                Probed::Present(place, Found::Disk(record)) if record.address == address => {
                    (place, None)
                }
                Probed::Unknown(place, at) if at == address => (place, None),
                Probed::Unknown(_, at) => return Err(Stop::Cold(at)),
                // Another thread changed the key meanwhile.
                _ => return Ok(false),
            };
            let _lock = old.map(|(record, _)| F::lock(record)).transpose()?;
            self.append::<F>(pin, hash, key, Some(value), Some(place), old)?;
            Ok(true)
        })?;
        done.records_kept += u64::from(moved);
        done.records_dropped += u64::from(!moved);
        if moved {
            done.bytes_moved += F::bytes(key, value.len()) as u64;
        }
        Ok(())
    }

    /// Empties the slot that names a tombstone: all behind it is given up with it.
    fn forget_tombstone(&self, address: Address, hash: u64) {
        let _pin = self.log.epochs.pin();
        let probe = self
            .index
            .find(hash, |newest| if newest == address { Walk::Hit(()) } else { Walk::End });
        if let Probe::Hit(place, ()) = probe
            && place.clear()
        {
            self.index.slots.add(-1);
        }
    }
}
