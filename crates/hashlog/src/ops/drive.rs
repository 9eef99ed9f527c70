//! The driving of one operation: search, attempt, wait, next attempt.
//!
//! An operation is an attempt under a pin. An attempt that cannot go on says why ([`Stop`]), the
//! pin goes, the cause is waited for, and the next attempt starts from the top. So no thread waits
//! for another while it is pinned, and everything that waits for pinned threads comes to an end.

use std::sync::atomic::Ordering;

use sapwood_mem::epoch::Pin;
use sapwood_mem::sync::Backoff;

use crate::error::{Error, Result};
use crate::log::Share;
use crate::log::cold::{self, Fetched, Source};
use crate::ops::store::Store;
use crate::record::in_place::{InPlace, Stop};
use crate::record::value::Held;

/// The outcome of an attempt: done, or stopped and why.
pub(crate) type Attempt<R> = std::result::Result<R, Stop>;

impl Store {
    /// Attempts until it is done.
    #[inline(never)]
    pub(crate) fn drive<F: InPlace, R>(
        &self,
        mut attempt: impl FnMut(&Pin<'_>, &Fetched) -> Attempt<R>,
    ) -> Result<R> {
        let pin = self.log.epochs.pin();
        let attempted = attempt(&pin, &Fetched::default());
        let nested = !pin.is_outermost();
        drop(pin);
        self.let_index_catch_up::<F>();
        match attempted {
            Ok(done) => Ok(done),
            Err(stop) => self.drive_slow::<F, R>(stop, nested, &mut attempt),
        }
    }

    #[cold]
    #[inline(never)]
    fn drive_slow<F: InPlace, R>(
        &self,
        mut stop: Stop,
        nested: bool,
        attempt: &mut dyn FnMut(&Pin<'_>, &Fetched) -> Attempt<R>,
    ) -> Result<R> {
        let mut fetched = Fetched::default();
        let backoff = Backoff::new();
        loop {
            self.wait_for::<F>(stop, nested, &mut fetched, &backoff)?;
            let pin = self.log.epochs.pin();
            match attempt(&pin, &fetched) {
                Ok(done) => return Ok(done),
                Err(next) => stop = next,
            }
        }
    }

    /// Waits for what stopped an attempt.
    pub(crate) fn wait_for<F: InPlace>(
        &self,
        stop: Stop,
        nested: bool,
        fetched: &mut Fetched,
        backoff: &Backoff,
    ) -> Result<()> {
        match stop {
            Stop::Failed(error) => return Err(*error),
            Stop::Raced => backoff.wait(),
            // No page was begun: nothing of what is open to be read is ever changed.
            Stop::PageFull if self.is_read_only() => return Err(Error::ReadOnly),
            Stop::PageFull => {
                // Pages that hold nothing live go without room for a copy.
                while let Err(error) = self.log.turn(nested, self.bytes_beside()) {
                    if nested || !self.reclaim::<F>() {
                        return Err(error);
                    }
                }
                if !nested {
                    self.compact_in_memory::<F>()?;
                }
            }
            Stop::Fuzzy(_) if nested => return Err(Error::WouldBlock),
            Stop::Fuzzy(address) => {
                while (self.log.safe_read_only()..self.log.read_only()).contains(&address) {
                    backoff.wait();
                }
            }
            Stop::Edited(_) if nested => return Err(Error::WouldBlock),
            Stop::Edited(address) => {
                while self.log.is_edited(address) {
                    backoff.wait();
                }
            }
            Stop::Locked(identity) => {
                if let Some(error) = Held::refusal(identity) {
                    return Err(error);
                }
                backoff.wait();
            }
            Stop::Held(identity) if nested => {
                return Err(Held::refusal(identity).unwrap_or(Error::WouldBlock));
            }
            // Unpinned, it waits for no other thread that waits for this one.
            Stop::Held(_) => backoff.wait(),
            Stop::Pinned(epoch) => self.log.wait_for_epoch(epoch),
            Stop::Cold(address) => {
                let read = self.cold_record::<F>(address);
                let Some(read) = cold::unless_given_up(&self.log, address, read) else {
                    return Ok(());
                };
                let record = read?;
                let is_read = record.source == Source::Disk;
                fetched.push(record);
                if is_read && !nested {
                    self.read_back::<F>(Share::Earned(1));
                }
            }
        }
        Ok(())
    }

    /// After a read, unpinned: begins the page that its copy wanted. A read does not fail because
    /// there is no room for more.
    pub(crate) fn make_room_for_copies(&self) {
        if self.copy_wants_page.load(Ordering::Relaxed) && !self.log.epochs.is_pinned() {
            self.copy_wants_page.store(false, Ordering::Relaxed);
            let _copies_stay_cold = self.log.turn(false, self.bytes_beside());
            self.request_compaction();
        }
    }
}
