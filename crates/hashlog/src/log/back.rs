//! Pages of an opened log that come back into memory.
//!
//! Opening reads no page. Pages come back from the newest down, so that `head` moves over them and
//! nothing changes for a search: all of them when a walk goes on, since it reads them anyway, and a
//! few for each record that was read from the disk. The first page that leaves memory ends it:
//! `head` never moves down once it has moved up, so that a reader without a pin is not fooled by a
//! page that left and came back.
//!
//! A page on the disk has no marks of what was superseded since it was written. Its records get
//! them as it comes back: by I-NAMED only those that a newer record names as previous can be
//! superseded, and all newer records are in memory by then, or have told which they name. So of most
//! pages the index is asked about few records, and a walk asks about none.
//!
//! | word | written | read |
//! |---|---|---|
//! | `from` | under `moving`: Release | all threads: Acquire; a stale one costs a read or a copy |
//! | `named`, `earned` | under `named` | under `named` |
//! | `opened` | before any thread has the log | Relaxed |
//! | `used` | under `moving` | Relaxed: a figure |
//!
//! # Invariants
//!
//! - I-BACK: `head` moves down over a page once it has its bytes, by a Release store that pairs
//!   with the Acquire load of a thread that looks for records there.
//! - I-NAMED: with a directory a record is published as the newest of its chain and names the one
//!   that was, so that every record but the newest of a chain is the previous of another one.
//! - I-MARKED: from `marked` up each superseded record in memory is marked, or a thread is about to
//!   mark it. Of pages that come back: what was superseded before `head` passed is named, and was
//!   asked about; a thread that had read an older `head` has appended below the tail that is read
//!   once all of these have left, and what it appended is followed to what it superseded; all
//!   others find the record in memory.

use std::ops::Range;

use sapwood_mem::sync::held::{Mutex, MutexGuard};
use sapwood_mem::sync::{AtomicU64, Ordering};

use crate::error::Result;
use crate::lock::lock;
use crate::log::Log;
use crate::record::Record;
#[cfg(all(loom, test))]
use crate::record::address::UNIT_BYTES;
use crate::record::address::{Address, PageNumber};
use crate::record::layout::control;

/// A record that was read from the disk earns so many bytes of pages: about as long as the disk
/// takes for it, it takes for these.
const EARNED_BYTES: u64 = 64 << 10;

/// No page comes back.
const NOTHING: u64 = u64::MAX;

/// The pages that come back.
pub(super) struct Back {
    /// Held by the thread that reads pages back.
    named: Mutex<Named>,
    /// The pages from here up to `head` come back.
    from: AtomicU64,
    /// Bytes that were earned, and not yet read.
    earned: AtomicU64,
    /// Where the log ended when it was opened.
    opened: AtomicU64,
    /// Bytes of the pages that come back that are used.
    used: AtomicU64,
}

impl Default for Back {
    fn default() -> Back {
        Back {
            named: Mutex::default(),
            from: AtomicU64::new(NOTHING),
            earned: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            used: AtomicU64::new(0),
        }
    }
}

/// The records of pages that are to come back that a newer record names as previous.
#[derive(Default)]
pub(crate) struct Named {
    first: Option<PageNumber>,
    /// A bit for each unit of a page, where any is set.
    pages: Vec<Option<Box<[u64]>>>,
    /// The records that were appended since the log was opened, below here, have told which they
    /// name.
    pub(crate) noted: Address,
}

impl Named {
    /// Notes that a record is named, of a page whose units are `units`.
    #[inline]
    pub(crate) fn note(&mut self, page: PageNumber, unit: usize, units: usize) {
        let Some(first) = self.first.filter(|first| *first <= page) else { return };
        let at = page.since(first) as usize;
        if at >= self.pages.len() {
            self.pages.resize(at + 1, None);
        }
        let words = self.pages[at]
            .get_or_insert_with(|| vec![0; units.div_ceil(u64::BITS as usize)].into_boxed_slice());
        words[unit / u64::BITS as usize] |= 1 << (unit % u64::BITS as usize);
    }

    /// The units of a page at which a record is named, in their order. They are forgotten.
    pub(crate) fn take(&mut self, page: PageNumber) -> impl Iterator<Item = usize> + use<> {
        let at = self.first.filter(|first| *first <= page).map(|first| page.since(first) as usize);
        let words = at.and_then(|at| self.pages.get_mut(at)?.take()).unwrap_or_default();
        (0..words.len()).flat_map(move |at| {
            let mut left = words[at];
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(at * u64::BITS as usize + bit)
            })
        })
    }

    /// No more pages come back.
    fn forget(&mut self) {
        *self = Named { noted: self.noted, ..Named::default() };
    }
}

/// The share of pages that is read back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// All, for a walk. It waits for another thread that is at it.
    All,
    /// As many as so many reads from the disk earn, unless another thread is at it.
    Earned(u64),
}

/// A page that is to come back.
pub(crate) struct Returning {
    pub(crate) page: PageNumber,
    pub(crate) start: Address,
}

impl Log {
    /// Of a log that was just opened, and lies on the disk alone, as many of the newest pages come
    /// back from now on as the budget has room for.
    pub(crate) fn bring_back(&self, beside: u64) {
        let (begin, end) = (self.begin(), self.head());
        let first = self.page_of(begin).max(self.page_of(end).before(self.room(beside)));
        *lock(&self.back.named) = Named { first: Some(first), noted: end, ..Named::default() };
        // Relaxed: the log is not shared yet.
        self.back.opened.store(end.units(), Ordering::Relaxed);
        let used = |page| self.parts.as_ref().map_or(0, |parts| parts.used(page).unwrap_or(0));
        let used: usize = PageNumber::each(first..self.page_of(end)).map(used).sum();
        self.back.used.store(used as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire in `begin_reading` and `next_to_come`.
        self.back.from.store(self.page_start(first).max(begin).units(), Ordering::Release);
    }

    /// Whether what lies at an address on the disk comes back into memory.
    #[inline]
    pub(crate) fn comes_back(&self, address: Address) -> bool {
        address.units() >= self.back.from.load(Ordering::Acquire)
    }

    /// Bytes of the log that are to come back.
    pub(crate) fn bytes_to_come(&self) -> u64 {
        // Once: a page may leave memory meanwhile.
        let head = self.head();
        let from = Address::from_units(self.back.from.load(Ordering::Acquire).min(head.units()));
        head.bytes() - from.max(self.begin()).min(head).bytes()
    }

    /// Bytes of them that are used.
    pub(crate) fn used_bytes_to_come(&self) -> u64 {
        // Relaxed: a figure.
        self.back.used.load(Ordering::Relaxed).min(self.bytes_to_come())
    }

    /// Whether the flags of a page in memory tell which of its records are superseded.
    pub(crate) fn is_marked(&self, page: PageNumber) -> bool {
        self.page_start(page) >= self.marked()
    }

    /// Marks a record that came back, and whose key a record at an address has next.
    pub(crate) fn mark(&self, record: Record, newer: Address) {
        if record.flags() & control::SUPERSEDED == 0 {
            // Every moment that is looked at is later than the log was opened.
            let is_old = newer.units() < self.back.opened.load(Ordering::Relaxed);
            // Known by now, if a moment that is looked at is older than the newer record.
            let late = !is_old && self.has_snapshots();
            record.supersede(if late { control::LATE } else { 0 });
        }
    }

    /// I-MARKED is true of every page in memory.
    pub(crate) fn note_marked(&self) {
        let _moving = lock(&self.moving);
        // Release: pairs with the Acquire in `marked`.
        self.bounds.marked.store(self.head().units(), Ordering::Release);
    }

    /// Begins to read a share of the pages back, unless there are none or the caller is pinned:
    /// answers which ones records name, and how many pages the share is.
    pub(crate) fn begin_reading(&self, share: Share) -> Option<(MutexGuard<'_, Named>, u64)> {
        // Acquire: pairs with the Release in `bring_back`.
        let any = self.back.from.load(Ordering::Acquire) < self.head().units();
        if !any || self.epochs.is_pinned() {
            return None;
        }
        match share {
            Share::All => Some((lock(&self.back.named), u64::MAX)),
            Share::Earned(reads) => {
                let named = match self.back.named.try_lock() {
                    Ok(named) => named,
                    Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(std::sync::TryLockError::WouldBlock) => return None,
                };
                let pages = self.pages_earned(reads);
                (pages > 0).then_some((named, pages))
            }
        }
    }

    /// Only one thread earns at a time.
    fn pages_earned(&self, reads: u64) -> u64 {
        let earned = self.back.earned.load(Ordering::Relaxed) + reads * EARNED_BYTES;
        let page_bytes = self.page_bytes as u64;
        self.back.earned.store(earned % page_bytes, Ordering::Relaxed);
        earned / page_bytes
    }

    /// The pages that are to come back.
    pub(crate) fn pages_to_come(&self) -> Range<PageNumber> {
        let limit = self.page_of(self.head());
        let from = self.back.from.load(Ordering::Acquire).max(self.begin().units());
        self.page_of(Address::from_units(from)).min(limit)..limit
    }

    /// The page that is to come back next.
    pub(crate) fn next_to_come(&self) -> Option<Returning> {
        let head = self.head();
        // Acquire: pairs with the Release in `bring_back`.
        let from = self.back.from.load(Ordering::Acquire).max(self.begin().units());
        (from < head.units()).then(|| {
            let page = self.page_of(head).before(1);
            Returning { page, start: self.page_start(page) }
        })
    }

    /// Puts a page that was read from the disk back into memory, with some bits of the control
    /// words at some offsets cleared; false if there is no room for it, or it is not the next any
    /// more.
    pub(crate) fn put_back(
        &self,
        next: &Returning,
        bytes: &[u8],
        stale: &[(usize, u64)],
        beside: u64,
    ) -> Result<bool> {
        let _moving = lock(&self.moving);
        let is_next = self.comes_back(next.start)
            && self.page_of(self.head()) == next.page.next()
            && next.start >= self.begin();
        // Beside the page there is room for another, which is written to.
        if !is_next || self.room(beside) <= self.frames.count() {
            return Ok(false);
        }
        debug_assert_eq!(self.page_start(next.page), next.start);
        self.load(next.page, bytes, stale)?;
        self.back.used.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
        // Release: I-BACK.
        self.bounds.head.store(next.start.units(), Ordering::Release);
        Ok(true)
    }

    /// Pages that fit into memory beside the one that is written to.
    fn room(&self, beside: u64) -> u64 {
        let max = self.frames_max(beside).unwrap_or(self.frames.count_max() - 1);
        max.saturating_sub(1)
    }

    /// What is still on the disk stays there.
    pub(crate) fn end_return(&self, named: &mut Named) {
        named.forget();
        let _moving = lock(&self.moving);
        self.end_return_moving();
    }

    /// The same, with `moving` held.
    pub(super) fn end_return_moving(&self) {
        self.back.from.store(NOTHING, Ordering::Release);
    }
}

#[cfg(all(loom, test))]
impl Log {
    /// As if the log had just been opened: what was closed lies on the disk alone.
    pub(crate) fn leave_memory(&self) {
        let end = self.page_start(self.page_of(self.tail()));
        for page in PageNumber::each(self.page_of(self.begin())..self.page_of(end)) {
            self.frames.evict(page);
        }
        self.place(self.begin(), end, end);
        self.bring_back(0);
    }

    /// The bytes of a page that left memory: a frame of a model keeps its words.
    pub(crate) fn bytes_that_left(&self, page: PageNumber) -> Vec<u8> {
        use sapwood_mem::sync::RawAtomicU64;

        let base = self.frames.base(page).cast::<RawAtomicU64>();
        let words = (0..self.page_bytes / UNIT_BYTES).flat_map(|at| {
            // SAFETY: a word of a frame that was in use, and that no thread writes to.
            unsafe { &*base.add(at) }.load(Ordering::Relaxed).to_le_bytes()
        });
        words.collect()
    }
}
