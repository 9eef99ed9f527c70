//! Writes of full pages in the background.
//!
//! A still page is copied in the background, and its copy written: a *flight*. Pages take off in
//! order and land in any; `flushed` moves over those that have landed without a gap. A thread
//! that needs a page on the disk, to evict it or for a checkpoint, waits for its flight.
//!
//! A write that failed is made again, from the page itself: by the next turn of a page, and at once
//! by the thread that needs it. If it fails once more then, that operation gets the error, and the
//! page stays in memory for the next one.
//!
//! *Thread safety*: flights take off and land under `moving`. The threads that write know a page
//! and a part of the log, not the log.
//!
//! Invariants:
//!
//! - I-FLUSHED, as in [`log`](crate::log).
//! - I-FLIGHTS: flights are of the pages from `flushed` on, one for each, in their order. No page
//!   is written by two threads at once, and none is written again that has landed: its flags may
//!   have changed since.

use std::collections::VecDeque;

use sapwood_disk::Blocks;
use sapwood_mem::sync::{Ordering, RawAtomicU64};

use crate::error::{Error, Result};
use crate::files::parts::{PageWrite, Parts};
use crate::lock::lock;
use crate::log::Log;
use crate::options::Options;
use crate::record::address::{Address, PageNumber, UNIT_BYTES};

/// Most pages that are written at once: a disk that is written in large pieces is no faster with
/// more.
const IN_THE_AIR_MAX: usize = 4;

/// Pages of a log that are written at once, at most.
pub(crate) fn in_the_air_max(options: &Options) -> usize {
    // Their buffers shall be little beside the pages.
    let pages = options.memory_budget.map_or(u64::MAX, |bytes| bytes / options.page_bytes as u64);
    (pages / FRAMES_A_FLIGHT).clamp(1, IN_THE_AIR_MAX as u64) as usize
}

/// A buffer for as many pages in memory.
const FRAMES_A_FLIGHT: u64 = 32;

/// Pages on their way to the disk.
#[derive(Default)]
pub(crate) struct Flights {
    /// The page that the first of them is of, while there are any.
    first: PageNumber,
    all: VecDeque<Flight>,
    spares: Vec<Blocks>,
}

enum Flight {
    InTheAir(PageWrite),
    Landed,
    Failed(Error),
}

impl Flights {
    /// Notes what became of those that are done.
    fn look(&mut self) {
        for flight in &mut self.all {
            if matches!(flight, Flight::InTheAir(write) if write.is_done()) {
                flight.land(&mut self.spares);
            }
        }
    }

    fn in_the_air(&self) -> usize {
        self.all.iter().filter(|flight| matches!(flight, Flight::InTheAir(_))).count()
    }

    /// Pages that have landed without a gap leave: the page behind them.
    fn clear(&mut self) -> PageNumber {
        while let Some(Flight::Landed) = self.all.front() {
            self.all.pop_front();
            self.first = self.first.next();
        }
        self.first
    }
}

impl Flight {
    /// Waits for it.
    fn land(&mut self, spares: &mut Vec<Blocks>) {
        *self = match std::mem::replace(self, Flight::Landed) {
            Flight::InTheAir(write) => {
                let (result, buffer) = write.wait();
                spares.push(buffer);
                result.map_or_else(Flight::Failed, |()| Flight::Landed)
            }
            done => done,
        };
    }
}

impl Log {
    /// Begins to write the pages up to `limit`, which lies at or below `safe_read_only`; as many at
    /// once as there may be, and those again that failed. Hold `moving`.
    pub(crate) fn begin_flush(&self, limit: Address) {
        let Some(parts) = &self.parts else { return };
        debug_assert!(limit <= self.safe_read_only());
        let mut flights = lock(&self.flights);
        self.look_at(&mut flights);
        for number in 0..flights.all.len() {
            if matches!(flights.all[number], Flight::Failed(_)) {
                self.take_off(parts, &mut flights, number);
            }
        }
        while self.take_off_next(parts, &mut flights, limit) {}
    }

    /// Writes the pages up to `limit`, which lies at or below `safe_read_only`. Not synced. Hold
    /// `moving`.
    pub(crate) fn flush(&self, limit: Address) -> Result<()> {
        let Some(parts) = &self.parts else { return Ok(()) };
        debug_assert!(limit <= self.safe_read_only());
        let mut flights = lock(&self.flights);
        let mut again = None;
        loop {
            self.look_at(&mut flights);
            if self.flushed() >= limit {
                return Ok(());
            }
            while self.take_off_next(parts, &mut flights, limit) {}
            let page = flights.first;
            match flights.all.front() {
                Some(Flight::Failed(error)) if again == Some(page) => return Err(error.clone()),
                Some(Flight::Failed(_)) => {
                    again = Some(page);
                    self.take_off(parts, &mut flights, 0);
                }
                _ => {
                    let Flights { all, spares, .. } = &mut *flights;
                    all.front_mut().expect("it has taken off").land(spares);
                }
            }
        }
    }

    /// Waits until nothing is being written, and forgets what failed below `limit`, which is
    /// no longer needed. Hold `moving`.
    pub(crate) fn give_up_below(&self, limit: Address) {
        let mut flights = lock(&self.flights);
        let Flights { first, all, spares } = &mut *flights;
        for flight in &mut *all {
            flight.land(spares);
        }
        let given_up = first.until(self.page_of(limit)).min(all.len() as u64);
        all.drain(..given_up as usize);
        *first = first.plus(given_up);
        if self.flushed() < limit {
            self.set_flushed(limit);
        }
        self.look_at(&mut flights);
    }

    /// Notes what has landed.
    fn look_at(&self, flights: &mut Flights) {
        flights.look();
        if !flights.all.is_empty() {
            let landed = self.page_start(flights.clear());
            if landed > self.flushed() {
                self.set_flushed(landed);
            }
        }
        // A log of few pages has none to spare: it makes a buffer anew for each.
        let kept = if self.in_the_air_max > 1 { self.in_the_air_max } else { 0 };
        flights.spares.truncate(kept);
        self.note_buffers(flights);
    }

    fn note_buffers(&self, flights: &Flights) {
        let bytes = (flights.in_the_air() + flights.spares.len()) * self.page_bytes;
        self.flight_bytes.store(bytes as u64, std::sync::atomic::Ordering::Relaxed);
    }

    /// Begins to write the first page below `limit` that was not begun; false if there is none, or
    /// enough are being written.
    fn take_off_next(&self, parts: &Parts, flights: &mut Flights, limit: Address) -> bool {
        if flights.all.is_empty() {
            flights.first = self.page_of(self.flushed());
        }
        let next = flights.first.plus(flights.all.len() as u64);
        if self.page_start(next) >= limit || flights.in_the_air() >= self.in_the_air_max {
            return false;
        }
        flights.all.push_back(Flight::Landed);
        let number = flights.all.len() - 1;
        self.take_off(parts, flights, number);
        true
    }

    fn take_off(&self, parts: &Parts, flights: &mut Flights, number: usize) {
        let page = flights.first.plus(number as u64);
        // I-FLIGHTS; a page whose values may still change would be torn on the disk.
        debug_assert!(number < flights.all.len());
        debug_assert!(self.page_start(page.next()) <= self.safe_read_only());
        debug_assert!(self.page_start(page) >= self.flushed(), "what has landed stays");
        let buffer = flights.spares.pop().unwrap_or_else(|| Blocks::new(self.page_bytes));
        let still = StillPage { base: self.page_base(page), bytes: self.page_bytes };
        // SAFETY: I-FLUSHED: the page stays in memory until its flight has landed. Eviction
        // waits for that, and so does the drop of the log before that of its frames.
        let fill = move |buffer: &mut Blocks| unsafe { still.copy(buffer) };
        flights.all[number] = Flight::InTheAir(parts.begin_write_page(page, buffer, fill));
        self.note_buffers(flights);
    }
}

/// A page in memory that only changes its flags any more.
struct StillPage {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: its bytes are read as atomics, on any thread.
unsafe impl Send for StillPage {}

impl StillPage {
    /// Copies it; answers the bytes up to its last word that is not zero.
    ///
    /// # Safety
    /// The page is in memory until this returns.
    unsafe fn copy(&self, into: &mut Blocks) -> usize {
        let base = self.base.cast::<RawAtomicU64>();
        let mut used = 0;
        let words = into.bytes_mut()[..self.bytes].chunks_exact_mut(UNIT_BYTES);
        for (at, bytes) in words.enumerate() {
            // SAFETY: I-FLUSHED, by the caller: in memory; words are valid as atomics for any bits.
            let word = unsafe { &*base.add(at) }.load(Ordering::Relaxed);
            bytes.copy_from_slice(&word.to_le_bytes());
            if word != 0 {
                used = (at + 1) * UNIT_BYTES;
            }
        }
        used
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The next log on these files may write the same pages.
        let mut flights = lock(&self.flights);
        let Flights { all, spares, .. } = &mut *flights;
        all.iter_mut().for_each(|flight| flight.land(spares));
    }
}
