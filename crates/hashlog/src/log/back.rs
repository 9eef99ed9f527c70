//! Pages of an opened log that come back into memory.
//!
//! Opening reads no page. Pages come back from the newest down, so that `head` moves over them and
//! nothing changes for a search: all of them when a walk goes on, since it reads them anyway, and a
//! few for each record that was read from the disk. The first page that leaves memory ends it:
//! `head` never moves down once it has moved up, so that a reader without a pin is not fooled by a
//! page that left and came back.
//!
//! A page that is back has no marks of what was superseded since it was written, so that a walk
//! asks the chain about each of its records. The first walk leaves the answer as a mark. From then
//! on the page is *marked*, like those that never left.
//!
//! | word | written | read |
//! |---|---|---|
//! | `from` | under `moving`: Release | all threads: Acquire; a stale one costs a read or a copy |
//! | `marking` | under `reading`, an epoch after `head`: Release | walks: Acquire |
//! | `unmarked_below` | before `marking`: Relaxed | after `marking`: Relaxed; a newer one is as good |
//! | `marked_pages`, `walked` | walks, under their locks | walks, under their locks |
//! | `opened` | before any thread has the log | walks: Relaxed |
//!
//! # Invariants
//!
//! - I-BACK: `head` moves down over a page once it has its bytes, by a Release store that pairs
//!   with the Acquire load of a thread that looks for records there.
//! - I-MARKING: a thread that supersedes a record from `marking` up finds it in memory and marks
//!   it: all that had read an older `head` have left, and appended below `unmarked_below`. So of a
//!   page above `marking` no marks are missing but of what is superseded by records below that,
//!   which are in their chains.

use std::collections::BTreeSet;

use sapwood_mem::sync::held::{Mutex, MutexGuard};
use sapwood_mem::sync::{AtomicU64, Ordering};

use crate::error::Result;
use crate::lock::lock;
use crate::log::Log;
use crate::record::Record;
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
    reading: Mutex<()>,
    /// The pages from here up to `head` come back.
    from: AtomicU64,
    /// Bytes that were earned, and not yet read.
    earned: AtomicU64,
    marking: AtomicU64,
    unmarked_below: AtomicU64,
    /// Of the pages below `marked`, those that have every mark.
    marked_pages: Mutex<BTreeSet<PageNumber>>,
    walked: Mutex<Walked>,
    /// Where the log ended when it was opened.
    opened: AtomicU64,
}

/// Parts of the keys whose records in memory have every mark from an address up.
#[derive(Default)]
struct Walked {
    parts: usize,
    done: BTreeSet<usize>,
    from: Address,
}

/// A walk that marks.
pub(crate) struct Marks {
    tail: Address,
}

impl Default for Back {
    fn default() -> Back {
        Back {
            reading: Mutex::default(),
            from: AtomicU64::new(NOTHING),
            earned: AtomicU64::new(0),
            marking: AtomicU64::new(NOTHING),
            unmarked_below: AtomicU64::new(0),
            marked_pages: Mutex::default(),
            walked: Mutex::default(),
            opened: AtomicU64::new(0),
        }
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
        // Release: pairs with the Acquire in `begin_reading` and `next_to_come`.
        self.back.from.store(self.page_start(first).max(begin).units(), Ordering::Release);
        // Release: orders nothing yet; the log is not shared.
        self.back.opened.store(end.units(), Ordering::Release);
        // Release: pairs with the Acquire of marks.
        self.back.marking.store(end.units(), Ordering::Release);
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

    /// Bytes of pages in memory whose records lack marks.
    pub(crate) fn bytes_unmarked(&self) -> u64 {
        let limit = self.page_of(self.marked());
        // Pages may leave between the two.
        let first = self.page_of(self.head()).min(limit);
        let marked = lock(&self.back.marked_pages).range(first..limit).count() as u64;
        (limit.since(first) - marked) * self.page_bytes as u64
    }

    /// Of a record at an address that is superseded by one from the answer up, the mark is never
    /// missing; `None` if it may be: I-MARKING.
    pub(crate) fn marking(&self, address: Address) -> Option<Address> {
        // Acquire: pairs with the Release in `read_back`.
        let is_known = address.units() >= self.back.marking.load(Ordering::Acquire);
        is_known.then(|| Address::from_units(self.back.unmarked_below.load(Ordering::Relaxed)))
    }

    /// Whether the flags of a page in memory tell which of its records are superseded.
    pub(crate) fn is_marked(&self, page: PageNumber) -> bool {
        self.page_start(page) >= self.marked() || lock(&self.back.marked_pages).contains(&page)
    }

    /// Every superseded record of a page is marked, and the thread that supersedes another marks
    /// it.
    pub(crate) fn note_marked(&self, page: PageNumber) {
        lock(&self.back.marked_pages).insert(page);
    }

    /// Marks a record that came back, and of whose key a newer one was met at an address.
    pub(crate) fn mark(&self, record: Record, address: Address, newer: Address) {
        if address < self.marked() && record.flags() & control::SUPERSEDED == 0 {
            // Every moment that is looked at is later than the log was opened.
            let is_old = newer.units() < self.back.opened.load(Ordering::Relaxed);
            record.supersede(if is_old { 0 } else { control::LATE });
        }
    }

    /// A walk of the index begins, which marks what it finds superseded; `None` if there is nothing
    /// to mark, or the caller is pinned, and cannot wait for others.
    pub(crate) fn begin_marks(&self) -> Option<Marks> {
        if self.epochs.is_pinned() || self.bytes_to_come() + self.bytes_unmarked() == 0 {
            return None;
        }
        let tail = self.tail();
        // Appends below are done.
        self.wait_for_epoch(self.epochs.bump());
        Some(Marks { tail })
    }

    /// The walk has seen a part of all keys, whose records in memory have their marks: if each
    /// thread that superseded one without a mark was done when the walk began, and above those that
    /// it met on the disk, the newest of which is at `unmarked`. The last of the parts makes it
    /// true for the pages.
    pub(crate) fn note_walked(&self, begun: Marks, unmarked: Address, part: usize, parts: usize) {
        // Acquire: pairs with the Release in `read_back`.
        let marking = Address::from_units(self.back.marking.load(Ordering::Acquire));
        if self.back.unmarked_below.load(Ordering::Relaxed) > begun.tail.units() {
            return;
        }
        let mut walked = lock(&self.back.walked);
        if walked.parts != parts {
            *walked = Walked { parts, ..Walked::default() };
        }
        walked.done.insert(part);
        let above = match unmarked {
            Address::NONE => Address::NONE,
            // Its page may have come back since.
            met => self.page_start(self.page_of(met).next()),
        };
        walked.from = walked.from.max(marking).max(above);
        if walked.done.len() == parts {
            let first = self.page_of(walked.from.max(self.head()));
            lock(&self.back.marked_pages)
                .extend(PageNumber::each(first..self.page_of(self.marked())));
            *walked = Walked::default();
        }
    }

    /// Reads pages back, newest first, by `read`, which puts one into memory with
    /// [`Log::put_back`] and answers whether there is room for more. Call it unpinned.
    pub(crate) fn read_back(&self, share: Share, mut read: impl FnMut(&Returning) -> bool) {
        let Some(_reading) = self.begin_reading(share) else { return };
        let mut most = match share {
            Share::All => u64::MAX,
            Share::Earned(reads) => self.pages_earned(reads),
        };
        let before = self.head();
        while most > 0
            && let Some(next) = self.next_to_come()
        {
            if !read(&next) {
                self.end_return();
            }
            most -= 1;
        }
        if self.head() < before {
            // I-MARKING.
            self.wait_for_epoch(self.epochs.bump());
            self.back.unmarked_below.store(self.tail().units(), Ordering::Relaxed);
            self.back.marking.store(self.head().units(), Ordering::Release);
        }
    }

    fn begin_reading(&self, share: Share) -> Option<MutexGuard<'_, ()>> {
        // Acquire: pairs with the Release in `bring_back`.
        let any = self.back.from.load(Ordering::Acquire) < self.head().units();
        if !any || self.epochs.is_pinned() {
            return None;
        }
        match share {
            Share::All => Some(lock(&self.back.reading)),
            Share::Earned(_) => match self.back.reading.try_lock() {
                Ok(reading) => Some(reading),
                Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) => None,
            },
        }
    }

    /// Only one thread earns at a time.
    fn pages_earned(&self, reads: u64) -> u64 {
        let earned = self.back.earned.load(Ordering::Relaxed) + reads * EARNED_BYTES;
        let page_bytes = self.page_bytes as u64;
        self.back.earned.store(earned % page_bytes, Ordering::Relaxed);
        earned / page_bytes
    }

    fn next_to_come(&self) -> Option<Returning> {
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
    fn end_return(&self) {
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

    /// Brings all of that back. A frame of a model keeps its words.
    pub(crate) fn return_to_memory(&self) {
        use sapwood_mem::sync::RawAtomicU64;

        self.read_back(Share::All, |next| {
            let base = self.frames.base(next.page).cast::<RawAtomicU64>();
            let words = (0..self.page_bytes / 8).flat_map(|at| {
                // SAFETY: a word of a frame that was in use, and that no thread writes to.
                unsafe { &*base.add(at) }.load(Ordering::Relaxed).to_le_bytes()
            });
            let bytes: Vec<u8> = words.collect();
            self.put_back(next, &bytes, &[], 0) == Ok(true)
        });
    }
}
