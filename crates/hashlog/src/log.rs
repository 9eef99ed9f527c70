//! The log and its boundaries: where a record goes, and what may still be done to it.
//!
//! ```text
//!   begin          head          safe_read_only  read_only     tail
//!     |  on disk    |  in memory,      |   fuzzy   |  mutable    |
//!     |             |  read-only       |   region  |  region     |
//!     +-------------+------------------+-----------+-------------+--->  addresses
//! ```
//! The names are FASTER's: `head` is its head address, `safe_read_only` its safe read-only address,
//! `read_only` its read-only address, `tail` its tail address. A record from `read_only` up lies in
//! the *mutable region* and is changed in place. One below `safe_read_only` never changes, but by
//! an edit (`edits`): it is copied to the tail, written to the disk, evicted. Between the two lies
//! the *fuzzy region*: threads that were pinned before `read_only` moved may still be writing in
//! place there, so a read-modify-write waits, unpinned, where FASTER keeps it for later.
//! `safe_read_only` follows, and the region is empty again, when those threads have left.
//!
//! | module | holds |
//! |---|---|
//! | `frames` | the memory of pages |
//! | `flush` | writing pages in the background |
//! | `back` | pages that come back into memory after opening |
//! | `cold` | reading records that lie on the disk |
//! | `read_cache` | the records that were lately read there |
//! | `edits` | windows in which many records are changed in place |
//! | `begin_lock` | the lock under which `begin` stays, or moves |
//!
//! # Thread safety
//!
//! | word | written | read |
//! |---|---|---|
//! | `tail` | all threads: fetch_add AcqRel; the thread that adds a page: store Release | all threads: Acquire |
//! | boundaries | under `moving`: Release, then an epoch | pinned threads: Acquire; `head` by gets without a pin, before and after |
//!
//! # Invariants
//!
//! - I-BOUNDARIES: begin <= head <= safe_read_only <= read_only <= tail; `safe_read_only` moves up
//!   to `read_only` only after every thread that was pinned before `read_only` moved has left, and
//!   down before it.
//! - I-FLUSHED: pages below `flushed` are on the disk; head <= flushed where there is one.
//! - `head` moves down only over pages that come back after opening (`log::back`), and never after
//!   it has moved up.

pub(crate) mod back;
pub(crate) mod begin_lock;
pub(crate) mod cold;
mod edits;
mod flush;
pub(crate) mod frames;
pub(crate) mod read_cache;

use std::marker::PhantomData;

use crossbeam_utils::CachePadded;
use sapwood_mem::Pages;
use sapwood_mem::epoch::{Epochs, Pin};
#[cfg(loom)]
use sapwood_mem::sync::RawAtomicU64;
use sapwood_mem::sync::held::Mutex;
use sapwood_mem::sync::{AtomicU64, Backoff, Ordering};

use crate::error::{Error, Result, no_memory};
use crate::files::parts::Parts;
use crate::lock::lock;
use crate::log::back::Back;
pub(crate) use crate::log::back::Share;
use crate::log::edits::Edits;
pub(crate) use crate::log::edits::LogEdit;
use crate::log::flush::Flights;
use crate::log::frames::{Addressing, Frames};
use crate::options::Options;
use crate::record::Record;
use crate::record::address::{Address, PageNumber, UNIT_BYTES};
use crate::record::in_place::Stop;
use crate::record::layout::fixed;

/// The distance ahead of a sequential reader at which lines are asked for: some two microseconds at
/// the rate that one core reads at, several times the wait for a line.
const AHEAD_BYTES: usize = 8 << 10;
const LINE_BYTES: usize = 64;

const OFFSET_BITS: u32 = 32;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// The boundaries of the log.
pub(crate) struct Bounds {
    begin: AtomicU64,
    head: AtomicU64,
    safe_read_only: AtomicU64,
    read_only: AtomicU64,
    flushed: AtomicU64,
    /// From here up the flags of records in memory tell which are superseded: below lie pages
    /// that are just coming back from the disk, which tell it soon.
    marked: AtomicU64,
    /// The highest of what snapshots pinned, or zero.
    fixed_below: AtomicU64,
}

/// The log.
pub(crate) struct Log {
    tail: CachePadded<AtomicU64>,
    bounds: CachePadded<Bounds>,
    /// Units of a page are `1 << page_shift`.
    page_shift: u32,
    pub(crate) page_bytes: usize,
    frames: Frames,
    pub(crate) epochs: Epochs,
    /// Held by the thread that turns to the next page, or that must not see it turned; in memory
    /// it waits for no other thread.
    turning: Mutex<()>,
    /// Held while boundaries move, which may wait for pinned threads; taken before `turning`.
    moving: Mutex<()>,
    /// Addresses that `read_only` may not go below: one for each snapshot.
    pinned: Mutex<Vec<Address>>,
    /// The number of snapshots and sweeps that go on, or are about to.
    snapshots: AtomicU64,
    edits: Edits,
    back: Back,
    wasted: std::sync::atomic::AtomicU64,
    pub(crate) parts: Option<Parts>,
    /// Pages on their way there.
    pub(crate) flights: Mutex<Flights>,
    /// Bytes of their buffers.
    pub(crate) flight_bytes: std::sync::atomic::AtomicU64,
    pub(crate) in_the_air_max: usize,
    budget: Option<u64>,
    mutable_share: f64,
}

/// A view of the in-memory records for the lifetime of a pin; caches the addressing for bulk
/// readers.
#[derive(Clone, Copy)]
pub(crate) struct Records<'p> {
    /// They begin here.
    pub(crate) head: Address,
    at: Addressing,
    pinned: PhantomData<&'p ()>,
}

/// Fixed records of a page, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Row<'p> {
    first: *mut u8,
    pinned: PhantomData<&'p ()>,
}

impl Row<'_> {
    /// Record number `at`, which lies in the page too.
    #[inline(always)]
    pub(crate) fn at(&self, at: usize) -> Record {
        // SAFETY: I-PINNED, as in `Log::record`; the memory of a page is in one piece.
        unsafe { Record::at(self.first.wrapping_add(at * fixed::BYTES)) }
    }

    /// Asks for the lines that a sequential reader of so many records comes to soon: see
    /// [`Records::prefetch_ahead`].
    #[inline(always)]
    pub(crate) fn prefetch_ahead(&self, count: usize) {
        for line in (0..count * fixed::BYTES).step_by(LINE_BYTES) {
            sapwood_mem::arena::prefetch_line_far(self.first.wrapping_add(AHEAD_BYTES + line));
        }
    }
}

impl Records<'_> {
    /// The record at an address from `head` up.
    #[inline(always)]
    pub(crate) fn at(&self, address: Address) -> Record {
        // SAFETY: I-PINNED, as in `Log::record`.
        unsafe { Record::at(self.at.at(address)) }
    }

    /// The fixed records of a page from the one at an address from `head` up on.
    #[inline(always)]
    pub(crate) fn row(&self, first: Address) -> Row<'_> {
        Row { first: self.at.at(first), pinned: PhantomData }
    }

    /// As [`Log::prefetch`].
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: Address) {
        let record = self.at.at(address);
        sapwood_mem::arena::prefetch_line(record);
        sapwood_mem::arena::prefetch_line(record.wrapping_add(2 * UNIT_BYTES));
    }

    /// Asks for the first line of a record, up to the second cache.
    #[inline(always)]
    pub(crate) fn prefetch_far(&self, address: Address) {
        sapwood_mem::arena::prefetch_line_far(self.at.at(address));
    }

    /// Asks for the lines that a sequential reader comes to soon, up to the second cache: the
    /// processor itself looks ahead no further than a page of the machine.
    #[inline(always)]
    pub(crate) fn prefetch_ahead(&self, address: Address) {
        sapwood_mem::arena::prefetch_line_far(self.at.at(address).wrapping_add(AHEAD_BYTES));
    }
}

/// There is no memory for a record yet: the tail's page is full.
pub(crate) struct PageFull;

impl From<PageFull> for Stop {
    fn from(_: PageFull) -> Stop {
        Stop::PageFull
    }
}

impl Log {
    /// A log that begins and ends at the start of `page`, which is not the first there could be:
    /// address zero names nothing.
    pub(crate) fn new(options: &Options, parts: Option<Parts>, page: PageNumber) -> Result<Log> {
        let page_shift = (options.page_bytes / UNIT_BYTES).ilog2();
        let first = page.get() << page_shift;
        let frames = Frames::new(options.page_bytes, options.pages, options.memory_budget)
            .map_err(no_memory(0))?;
        let word = || AtomicU64::new(first);
        Ok(Log {
            // As if the page before were full: the first record brings the first frame.
            tail: CachePadded::new(AtomicU64::new(
                page.before(1).get() << OFFSET_BITS | ((1 << page_shift) + 1),
            )),
            bounds: CachePadded::new(Bounds {
                begin: word(),
                head: word(),
                safe_read_only: word(),
                read_only: word(),
                flushed: word(),
                marked: word(),
                fixed_below: AtomicU64::new(0),
            }),
            page_shift,
            page_bytes: options.page_bytes,
            frames,
            epochs: Epochs::new(),
            turning: Mutex::default(),
            moving: Mutex::default(),
            pinned: Mutex::default(),
            snapshots: AtomicU64::new(0),
            edits: Edits::default(),
            back: Back::default(),
            wasted: std::sync::atomic::AtomicU64::new(0),
            parts,
            flights: Mutex::default(),
            flight_bytes: std::sync::atomic::AtomicU64::new(0),
            in_the_air_max: flush::in_the_air_max(options),
            budget: options.memory_budget,
            mutable_share: options.mutable_share,
        })
    }

    #[inline]
    pub(crate) fn begin(&self) -> Address {
        // Acquire: pairs with the Release in `cut` and `place`.
        Address::from_units(self.bounds.begin.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn head(&self) -> Address {
        // Acquire: pairs with the Release in `evict_to`, and of a page that comes back.
        Address::from_units(self.bounds.head.load(Ordering::Acquire))
    }

    /// Whether some records lie on the disk alone. A log in memory has none, whatever its bounds
    /// say while they move.
    #[inline]
    pub(crate) fn has_cold(&self) -> bool {
        self.parts.is_some() && self.begin() < self.head()
    }

    #[inline]
    pub(crate) fn safe_read_only(&self) -> Address {
        // Acquire: pairs with the Release in `raise_moving`: all in-place writes below are made.
        Address::from_units(self.bounds.safe_read_only.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn read_only(&self) -> Address {
        // Acquire: pairs with the Release in `raise_moving` and `lower`.
        Address::from_units(self.bounds.read_only.load(Ordering::Acquire))
    }

    pub(crate) fn marked(&self) -> Address {
        // Acquire: pairs with the Release in `evict_to` and `place`.
        Address::from_units(self.bounds.marked.load(Ordering::Acquire))
    }

    /// Where the next record would go.
    pub(crate) fn tail(&self) -> Address {
        let tail = self.tail.load(Ordering::Acquire);
        let offset = (tail & OFFSET_MASK).min(1 << self.page_shift);
        Address::from_units(((tail >> OFFSET_BITS) << self.page_shift) + offset)
    }

    /// Where the log begins and ends, at one moment: read at two, it could be longer than it ever
    /// was.
    pub(crate) fn ends(&self) -> (Address, Address) {
        let mut begin = self.begin();
        loop {
            let (tail, again) = (self.tail(), self.begin());
            // It only grows: so it stood here when the tail was read.
            if begin == again {
                return (begin, tail);
            }
            begin = again;
        }
    }

    #[inline]
    pub(crate) fn page_of(&self, address: Address) -> PageNumber {
        PageNumber::new(address.units() >> self.page_shift)
    }

    /// First address of a page.
    pub(crate) fn page_start(&self, page: PageNumber) -> Address {
        Address::from_units(page.get() << self.page_shift)
    }

    /// Whether a page begins at an address.
    fn is_border(&self, address: Address) -> bool {
        address == self.page_start(self.page_of(address))
    }

    /// The record at an address at or above `head`, which the pin keeps there.
    #[inline(always)]
    pub(crate) fn record(&self, _: &Pin<'_>, address: Address) -> Record {
        // SAFETY: I-PINNED: the caller read `head` pinned, and eviction waits for it to leave.
        unsafe { Record::at(self.frames.at(address)) }
    }

    /// The result of atomic loads from the record at an address, if that is in memory before and
    /// after: so it was meanwhile, since `head` moves before a page goes.
    #[inline(always)]
    pub(crate) fn read_unpinned<T>(
        &self,
        address: Address,
        read: impl FnOnce(Record) -> Option<T>,
    ) -> Option<T> {
        if address < self.head() {
            return None;
        }
        // SAFETY: a frame stays committed when its page goes, and holds atomic words for ever.
        let value = read(unsafe { Record::at(self.frames.at(address)) })?;
        (address >= self.head()).then_some(value)
    }

    /// Asks for the line of a record, which is there if its page is in memory.
    #[inline]
    pub(crate) fn prefetch(&self, _: &Pin<'_>, address: Address) {
        let record = self.frames.at(address);
        sapwood_mem::arena::prefetch_line(record);
        // One fixed record in four crosses a line.
        sapwood_mem::arena::prefetch_line(record.wrapping_add(2 * UNIT_BYTES));
    }

    /// The records in memory, as long as the pin lives.
    #[inline(always)]
    pub(crate) fn records<'p>(&self, _: &'p Pin<'_>) -> Records<'p> {
        Records { head: self.head(), at: self.frames.addressing(), pinned: PhantomData }
    }

    /// Room for so many bytes at the tail, zeroed and the caller's alone.
    #[inline]
    pub(crate) fn alloc(&self, bytes: usize) -> std::result::Result<Address, PageFull> {
        let (units, page_units) = ((bytes / UNIT_BYTES) as u64, 1 << self.page_shift);
        debug_assert!(bytes.is_multiple_of(UNIT_BYTES), "records are whole units");
        debug_assert!((1..=page_units).contains(&units), "a record fits into a page");
        // The count must not run over while many threads wait for a page.
        if self.tail.load(Ordering::Relaxed) & OFFSET_MASK > page_units {
            return Err(PageFull);
        }
        // AcqRel: a thread that allocates above a snapshot's boundary sees that snapshot.
        let tail = self.tail.fetch_add(units, Ordering::AcqRel);
        let offset = tail & OFFSET_MASK;
        if offset + units > page_units {
            return Err(PageFull);
        }
        Ok(Address::from_units(((tail >> OFFSET_BITS) << self.page_shift) + offset))
    }

    /// Moves the tail to a fresh page, if the one it is on is full. `nested`: the caller's thread
    /// is pinned and cannot wait for others to leave. `beside`: bytes of memory beside the log.
    pub(crate) fn turn(&self, nested: bool, beside: u64) -> Result<()> {
        debug_assert_eq!(nested, self.epochs.is_pinned(), "a pinned thread cannot wait");
        // Only a log that spills moves boundaries here. No pinned thread ever waits for `moving`,
        // whose holder may wait for pinned threads.
        let _moving = match &self.parts {
            None => None,
            Some(_) if nested => match self.moving.try_lock() {
                Ok(moving) => Some(moving),
                Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) => return Err(Error::WouldBlock),
            },
            Some(_) => Some(lock(&self.moving)),
        };
        self.turn_moving(nested, beside)
    }

    /// As `turn`, with `moving` held where the log spills.
    fn turn_moving(&self, nested: bool, beside: u64) -> Result<()> {
        let _turning = lock(&self.turning);
        let tail = self.tail.load(Ordering::Acquire);
        if tail & OFFSET_MASK <= 1 << self.page_shift {
            return Ok(());
        }
        let page = PageNumber::new(tail >> OFFSET_BITS).next();
        self.make_room(nested, beside)?;
        let used = beside + self.frames.mapped_bytes();
        self.frames.install(page).map_err(no_memory(used))?;
        // Release: pairs with the AcqRel in `alloc`: the page has its frame.
        self.tail.store(page.get() << OFFSET_BITS, Ordering::Release);
        // The oldest part of what is in memory is copied on update, so that what is evicted next
        // is on the disk by then.
        if let Some(frames) = self.frames_max(beside).filter(|_| self.parts.is_some() && !nested) {
            let in_place = ((frames as f64 * self.mutable_share) as u64).max(1);
            let limit = self.page_start(page.next().before(in_place));
            if limit > self.flushed() && frames < u64::MAX {
                self.raise_moving(limit);
                self.begin_flush(limit);
            }
        }
        Ok(())
    }

    /// Frames that fit into the budget.
    fn frames_max(&self, beside: u64) -> Option<u64> {
        // The index grows between two turns of a page.
        let bytes = self.budget?.saturating_sub(beside + beside / 8 + 1024);
        Some((bytes / self.frames.frame_bytes()).clamp(1, self.frames.count_max() - 1))
    }

    /// Whether the frames are more than fit into the budget, until the next page is begun.
    pub(crate) fn takes_more(&self, beside: u64) -> bool {
        self.frames_max(beside).is_some_and(|max| self.frames.count() > max)
    }

    /// Makes sure that one more frame fits into the budget.
    fn make_room(&self, nested: bool, beside: u64) -> Result<()> {
        let max = self.frames_max(beside).unwrap_or(self.frames.count_max() - 1);
        let no_more = || Error::OutOfMemory {
            used: beside + self.frames.mapped_bytes(),
            budget: self.budget.unwrap_or(u64::MAX),
            wanted: self.page_bytes as u64,
        };
        if self.parts.is_none() {
            let fits = self.frames.count() < max;
            return if fits { Ok(()) } else { Err(no_more()) };
        }
        while self.frames.count() >= max {
            if nested {
                return Err(Error::WouldBlock);
            }
            let limit = self.page_start(self.page_of(self.head()).next());
            self.raise_moving(limit);
            self.flush(limit)?;
            self.evict_to(limit);
        }
        Ok(())
    }

    pub(crate) fn flushed(&self) -> Address {
        // Acquire: pairs with the Release in `set_flushed`.
        Address::from_units(self.bounds.flushed.load(Ordering::Acquire))
    }

    pub(crate) fn set_flushed(&self, limit: Address) {
        debug_assert!(limit > self.flushed(), "pages that have landed stay on the disk");
        // Release: pairs with the Acquire in `flushed`.
        self.bounds.flushed.store(limit.units(), Ordering::Release);
    }

    /// First byte of a page that is in memory.
    pub(crate) fn page_base(&self, page: PageNumber) -> *mut u8 {
        self.frames.base(page)
    }

    /// Frees the frames below `limit`. Their addresses are on the disk, or dropped.
    fn evict_to(&self, limit: Address) {
        let (from, to) = (self.page_of(self.head()), self.page_of(limit));
        debug_assert!(self.is_border(limit) && from <= to, "whole pages go, oldest first");
        // I-FLUSHED, I-BOUNDARIES.
        debug_assert!(limit <= self.flushed() && limit <= self.safe_read_only());
        self.end_return_moving();
        // Release: pairs with the Acquire of pinned threads, which read it anew after the epoch.
        self.bounds.head.store(limit.units(), Ordering::Release);
        if self.marked() < limit {
            // Release: pairs with the Acquire in `marked`.
            self.bounds.marked.store(limit.units(), Ordering::Release);
        }
        self.wait_for_epoch(self.epochs.bump());
        for page in PageNumber::each(from..to) {
            self.frames.evict(page);
        }
    }

    /// Waits until every thread that was pinned before `epoch` has left. Call it unpinned.
    pub(crate) fn wait_for_epoch(&self, epoch: u64) {
        debug_assert!(!self.epochs.is_pinned(), "a thread would wait for itself");
        let backoff = Backoff::new();
        while !self.epochs.is_safe(epoch) {
            backoff.wait();
        }
    }

    /// Moves `read_only`, and then `safe_read_only`, up to at least `limit`. Call it unpinned.
    pub(crate) fn raise(&self, limit: Address) {
        let _moving = lock(&self.moving);
        self.raise_moving(limit);
    }

    fn raise_moving(&self, limit: Address) {
        // I-BOUNDARIES.
        debug_assert!(limit <= self.tail(), "what is raised over was allocated or closed");
        if limit > self.read_only() {
            // Release: pairs with the Acquire of pinned threads, which read it anew after the
            // epoch.
            self.bounds.read_only.store(limit.units(), Ordering::Release);
        }
        if limit > self.safe_read_only() {
            self.wait_for_epoch(self.epochs.bump());
            // Release: pairs with the Acquire in `safe_read_only`: threads that wrote below have
            // left.
            self.bounds.safe_read_only.store(self.read_only().units(), Ordering::Release);
        }
        debug_assert!(limit <= self.safe_read_only() && self.safe_read_only() <= self.read_only());
    }

    /// Fixes everything up to the end of the tail's page until `unpin_below` is called with it.
    /// Answers that address. Call it unpinned.
    ///
    /// First `read_only` moves there, then the tail. So an operation that appended above began
    /// after `read_only` had moved, and an operation that begins after that one ended changes
    /// nothing below: once all threads that were pinned before have left, what is below is a state
    /// that was, and no thread waited for it. No page is turned before `read_only` has moved, or
    /// what is appended to that page lies above, and what is changed in place after it below.
    pub(crate) fn pin_below(&self) -> Address {
        let _moving = lock(&self.moving);
        // Known before the tail moves: a thread that allocates above the boundary finds it.
        self.snapshots.fetch_add(1, Ordering::SeqCst);
        let limit = {
            // In memory pages are turned without `moving`.
            let _turning = lock(&self.turning);
            // Acquire: pairs with the Release of the thread that adds a page. That may get its
            // first record at any moment, so that it is closed also while it has none.
            let page = PageNumber::new(self.tail.load(Ordering::Acquire) >> OFFSET_BITS);
            let limit = self.page_start(page.next());
            self.change_pinned(|pinned| pinned.push(limit));
            if limit > self.read_only() {
                self.bounds.read_only.store(limit.units(), Ordering::SeqCst);
            }
            self.seal(limit);
            limit
        };
        if self.edits.any() {
            // One may be at what is still below `safe_read_only`.
            self.wait_for_epoch(self.epochs.bump());
        }
        self.raise_moving(limit);
        debug_assert!(self.is_border(limit) && limit <= self.tail(), "a closed page ends here");
        limit
    }

    /// Begins a sweep of what lies below the address that is answered, where the log ends now:
    /// until `end_sweep`, a thread that replaces a record there marks it as superseded late, and
    /// does it by a record above. Changes in place go on. Call it unpinned.
    pub(crate) fn begin_sweep(&self) -> Address {
        self.snapshots.fetch_add(1, Ordering::SeqCst);
        // A thread that does not find the sweep has left, and appended below.
        self.wait_for_epoch(self.epochs.bump());
        let limit = self.tail();
        // Appends below are done.
        self.wait_for_epoch(self.epochs.bump());
        limit
    }

    pub(crate) fn end_sweep(&self) {
        self.snapshots.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a snapshot or a sweep is going on.
    #[inline]
    pub(crate) fn has_snapshots(&self) -> bool {
        self.snapshots.load(Ordering::Acquire) > 0
    }

    /// Ends what `pin_below` began: what is not on the disk may be changed in place again.
    pub(crate) fn unpin_below(&self, limit: Address) {
        self.change_pinned(|pinned| {
            let at = pinned.iter().position(|at| *at == limit).expect("it was pinned");
            pinned.swap_remove(at);
        });
        self.snapshots.fetch_sub(1, Ordering::SeqCst);
        // With a directory, pages become read-only on their way to the disk and stay so. And a
        // thread that is pinned itself cannot wait for the readers that rely on `safe_read_only`.
        if self.parts.is_some() || self.epochs.is_pinned() {
            return;
        }
        self.lower();
    }

    fn change_pinned(&self, change: impl FnOnce(&mut Vec<Address>)) {
        let mut pinned = lock(&self.pinned);
        change(&mut pinned);
        let highest = pinned.iter().copied().max().unwrap_or(Address::NONE);
        // Release: pairs with the Acquire in `fixed_below`.
        self.bounds.fixed_below.store(highest.units(), Ordering::Release);
    }

    /// Lets what is in memory and belongs to no snapshot be changed in place again. Call it
    /// unpinned, on a log without a directory.
    pub(crate) fn lower(&self) {
        let _moving = lock(&self.moving);
        let edited = lock(&self.edits.limits).iter().copied().max().unwrap_or(Address::NONE);
        let lower = self.fixed_below().max(edited).max(self.begin());
        if lower < self.safe_read_only() {
            // Release: pairs with the Acquire of pinned threads, which read it anew after the
            // epoch.
            self.bounds.safe_read_only.store(lower.units(), Ordering::Release);
            self.wait_for_epoch(self.epochs.bump());
            // Release: pairs with the Acquire of pinned threads, which read it anew after the
            // epoch.
            self.bounds.read_only.store(lower.units(), Ordering::Release);
        }
    }

    /// Ends the page before `limit`, if the tail is still on it. The next comes with its first
    /// record.
    fn seal(&self, limit: Address) {
        let page_units = 1 << self.page_shift;
        loop {
            // Acquire: pairs with the Release of the thread that adds a page.
            let tail = self.tail.load(Ordering::Acquire);
            let (page, offset) = (PageNumber::new(tail >> OFFSET_BITS), tail & OFFSET_MASK);
            if page >= self.page_of(limit) || offset > page_units {
                return;
            }
            let full = page.get() << OFFSET_BITS | (page_units + 1);
            // AcqRel: pairs with the AcqRel in `alloc`.
            if self.tail.compare_exchange(tail, full, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                self.wasted.fetch_add((page_units - offset) * UNIT_BYTES as u64, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Bytes at the ends of pages that snapshots closed, since a page of `freed` bytes of them
    /// went.
    pub(crate) fn wasted(&self, freed: u64) -> u64 {
        let wasted = self.wasted.load(Ordering::Relaxed);
        let left = wasted.saturating_sub(freed);
        if freed > 0 {
            self.wasted.store(left, Ordering::Relaxed);
        }
        left
    }

    /// Gives a page below `head` its frame, and the bytes of it that are used and were read from
    /// the disk, with some bits of the control words at some offsets cleared. Hold `moving`.
    fn load(&self, page: PageNumber, bytes: &[u8], stale: &[(usize, u64)]) -> Result<()> {
        assert!(bytes.len() <= self.page_bytes, "a page has no more");
        debug_assert_eq!(self.page_of(self.head()), page.next(), "pages come back newest first");
        self.frames
            .install_used(page, bytes.len())
            .map_err(no_memory(self.frames.mapped_bytes()))?;
        let base = self.frames.base(page);
        // SAFETY: I-BACK: a fresh frame of page_bytes that no other thread knows before `head`
        // moves; the rest of it is zero.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), base, bytes.len()) };
        #[cfg(loom)]
        for (at, word) in bytes.chunks_exact(UNIT_BYTES).enumerate() {
            let word = u64::from_le_bytes(word.try_into().expect("a word"));
            // SAFETY: I-BACK: inside the frame, as above.
            unsafe { RawAtomicU64::init(base.cast::<RawAtomicU64>().add(at), word) };
        }
        for (start, bits) in stale {
            assert!(start + UNIT_BYTES <= bytes.len(), "a record lies inside of what is used");
            // SAFETY: I-BACK: a record of the page, inside of the frame, as above.
            let record = unsafe { Record::at(base.add(*start)) };
            record.control().fetch_and(!bits, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes everything below `limit`, at or below `safe_read_only`, to the disk. Call it
    /// unpinned.
    pub(crate) fn flush_below(&self, limit: Address) -> Result<()> {
        let _moving = lock(&self.moving);
        self.flush(limit)
    }

    /// Sets every boundary of a log that was just opened: pages from `head` up are in memory.
    pub(crate) fn place(&self, begin: Address, head: Address, end: Address) {
        let bounds = &self.bounds;
        // I-BOUNDARIES.
        debug_assert!(begin <= head && head <= end && end <= self.tail());
        bounds.begin.store(begin.units(), Ordering::Release);
        // Release: pairs with the Acquire in `head`.
        bounds.head.store(head.units(), Ordering::Release);
        for word in [&bounds.safe_read_only, &bounds.read_only, &bounds.flushed, &bounds.marked] {
            // Release: pairs with the Acquire of each boundary.
            word.store(end.units(), Ordering::Release);
        }
    }

    /// Gives up everything below `limit`, a page border that nothing live lies below. Call it
    /// unpinned.
    pub(crate) fn cut(&self, limit: Address) {
        debug_assert!(limit <= self.safe_read_only());
        let _moving = lock(&self.moving);
        debug_assert!(self.is_border(limit) && self.begin() <= limit, "whole pages are given up");
        // Release: pairs with the Acquire of pinned threads, which read it anew after the epoch.
        self.bounds.begin.store(limit.units(), Ordering::Release);
        self.give_up_below(limit);
        if self.head() < limit {
            self.evict_to(limit);
        }
        // I-BOUNDARIES.
        debug_assert!(self.begin() <= self.head());
    }

    /// Waits for the pages that are on their way to the disk.
    pub(crate) fn land(&self) {
        let _moving = lock(&self.moving);
        self.give_up_below(self.begin());
    }

    /// Frames that fit beside what is there already, and one to write to.
    pub(crate) fn frames_spare(&self, beside: u64) -> u64 {
        self.frames_max(beside).unwrap_or(u64::MAX).saturating_sub(self.frames.count() + 1)
    }

    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.frames.mapped_bytes()
    }

    pub(crate) fn pages(&self) -> Pages {
        self.frames.pages()
    }
}
