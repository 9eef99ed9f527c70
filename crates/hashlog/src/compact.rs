//! How does the log give room back? Live records of its oldest pages move to the tail.
//!
//! Each move is an ordinary append: whoever changes the key first wins, and the other record is
//! superseded. When the pages hold nothing live, `begin` moves past them.

use std::sync::TryLockError;

use sapwood_disk::Blocks;
use sapwood_mem::sync::Backoff;

use crate::address::Address;
use crate::cold::{self, Fetched};
use crate::core::{Core, Found, Probed, Stop};
use crate::error::{Error, Result};
use crate::index::{Probe, Walk};
use crate::layout::control;
use crate::point::InPlace;
use crate::record::word_at;
use crate::walk::{for_each_stored, not_a_record};

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Records that were live and moved.
    pub records_kept: u64,
    /// Records that were superseded or removed.
    pub records_dropped: u64,
    /// Bytes of the log given up. Files go when no checkpoint that is kept needs them.
    pub bytes_freed: u64,
}

/// Pages that a writer compacts when it begins a new one and much is garbage.
const TIDY_PAGES: u64 = 4;

impl Core {
    /// Compacts the log below `until`, rounded down to a page.
    pub(crate) fn compact<F: InPlace>(&self, until: Address) -> Result<Compacted> {
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        let backoff = Backoff::new();
        // Never in the queue of the lock: a walk inside a walk would wait behind it for itself.
        let _life = loop {
            match self.life.try_write() {
                Ok(life) => break life,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => backoff.wait(),
            }
        };
        self.compact_alone::<F>(until)
    }

    /// A step of compaction by a writer, where it pays and nobody walks.
    pub(crate) fn tidy<F: InPlace>(&self) -> Result<()> {
        if self.log.parts.is_some() {
            return Ok(());
        }
        let (begin, tail) = (self.log.begin().bytes(), self.log.tail().bytes());
        let page = self.log.page_bytes as u64;
        let garbage = self.garbage.sum() + self.log.wasted(0);
        let tight = self.log.frames_spare(self.bytes_beside()) <= TIDY_PAGES;
        let much = tight || garbage > (tail - begin) / 2;
        if !much || garbage <= 2 * page {
            return Ok(());
        }
        let Ok(_life) = self.life.try_write() else { return Ok(()) };
        let until = self.log.page_start(self.log.page_of(self.log.begin()) + TIDY_PAGES);
        self.compact_alone::<F>(until).map(drop)
    }

    /// Compacts the oldest pages of a full log in memory; false if that gave no room.
    pub(crate) fn reclaim<F: InPlace>(&self) -> bool {
        if self.log.parts.is_some() || self.garbage.sum() + self.log.wasted(0) == 0 {
            return false;
        }
        let Ok(_life) = self.life.try_write() else { return false };
        let next = self.log.page_start(self.log.page_of(self.log.begin()) + 1);
        self.compact_alone::<F>(next).is_ok_and(|done| done.bytes_freed > 0)
    }

    fn compact_alone<F: InPlace>(&self, until: Address) -> Result<Compacted> {
        let mut done = Compacted::default();
        let first = self.log.page_of(self.log.begin());
        let limit = self.log.page_of(until).min(self.log.page_of(self.log.tail()));
        if limit <= first {
            return Ok(done);
        }
        let until = self.log.page_start(limit);
        self.log.raise(until);
        let mut buffer = None;
        for page in first..limit {
            if let Err(error) = self.compact_page::<F>(page, &mut buffer, &mut done) {
                if self.log.parts.is_none() {
                    self.log.lower();
                }
                return Err(error);
            }
        }
        done.bytes_freed = until.bytes() - self.log.begin().bytes();
        self.log.cut(until);
        // At the load that an index grows at, a quarter of the buckets have one behind them.
        if self.index.overflow_in_use() > self.index.count() / 2
            && let Some(epoch) = self.index.pack(until, &self.log.epochs)
        {
            self.log.wait_for_epoch(epoch);
        }
        Ok(done)
    }

    fn compact_page<F: InPlace>(
        &self,
        page: u64,
        buffer: &mut Option<Blocks>,
        done: &mut Compacted,
    ) -> Result<()> {
        let mut offset = 0;
        let mut copy = Vec::new();
        loop {
            // One record at a time under a pin: an append may have to wait unpinned.
            let pin = self.log.epochs.pin();
            if self.log.page_start(page) < self.log.head() {
                drop(pin);
                return self.compact_cold::<F>(page, offset, buffer, done);
            }
            let Some((address, record, flags)) = self.next_record::<F>(&pin, page, &mut offset)
            else {
                self.log.wasted((self.log.page_bytes - offset.min(self.log.page_bytes)) as u64);
                return Ok(());
            };
            let buried = control::TOMBSTONE | control::SUPERSEDED;
            if flags & control::SUPERSEDED == 0 || flags & control::TOMBSTONE != 0 {
                copy.clear();
                let key_len = F::visit(record, |key, value| {
                    copy.extend_from_slice(key);
                    copy.extend_from_slice(value);
                    key.len()
                });
                drop(pin);
                let (key, value) = copy.split_at(key_len);
                self.settle_record::<F>(address, flags, F::key(key)?, value, done)?;
                let pin = self.log.epochs.pin();
                if address >= self.log.head() {
                    let record = self.log.record(&pin, address);
                    if record.flags() & buried != 0 {
                        self.garbage.add(-(F::bytes_of(record) as i64));
                    }
                }
            } else {
                done.records_dropped += 1;
                self.garbage.add(-(F::bytes_of(record) as i64));
            }
        }
    }

    fn compact_cold<F: InPlace>(
        &self,
        page: u64,
        from: usize,
        buffer: &mut Option<Blocks>,
        done: &mut Compacted,
    ) -> Result<()> {
        let parts = self.log.parts.as_ref().expect("pages below head are on the disk");
        let blocks = buffer.get_or_insert_with(|| Blocks::new(self.log.page_bytes));
        parts.read_page(page, blocks)?;
        let stored = &blocks.bytes()[..self.log.page_bytes];
        let _all = for_each_stored::<F, ()>(stored, from, |offset, record| {
            let address = self.at(page, offset);
            let (key, value) =
                F::split(record).ok_or_else(|| not_a_record(parts.place(), address))?;
            let flags = word_at(record, 0).expect("a record has a control word");
            let dead = control::SUPERSEDED | control::LATE;
            if flags & dead == control::SUPERSEDED && flags & control::TOMBSTONE == 0 {
                done.records_dropped += 1;
            } else {
                self.settle_record::<F>(address, flags, F::key(key)?, value, done)?;
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// Moves a record to the tail if it is the newest of its key; forgets a tombstone.
    fn settle_record<F: InPlace>(
        &self,
        address: Address,
        flags: u64,
        key: F::Key<'_>,
        value: &[u8],
        done: &mut Compacted,
    ) -> Result<()> {
        if flags & control::TOMBSTONE != 0 {
            done.records_dropped += 1;
            self.forget_tombstone::<F>(address, F::hash(key));
            return Ok(());
        }
        let mut fetched = Fetched::default();
        loop {
            match self.was_live::<F>(address, self.log.tail(), key, &fetched) {
                Ok(true) => break,
                Ok(false) => {
                    done.records_dropped += 1;
                    return Ok(());
                }
                Err(wanted) => fetched.push(cold::fetch::<F>(&self.log, wanted)?),
            }
        }
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
                // Somebody changed the key meanwhile.
                _ => return Ok(false),
            };
            let _lock = old.map(|(record, _)| F::lock(record)).transpose()?;
            self.append::<F>(pin, hash, key, Some(value), Some(place), old)?;
            Ok(true)
        })?;
        done.records_kept += u64::from(moved);
        done.records_dropped += u64::from(!moved);
        Ok(())
    }

    /// Empties the slot that names a tombstone: all behind it is given up with it.
    fn forget_tombstone<F: InPlace>(&self, address: Address, hash: u64) {
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
