//! Get: the value of a key, read where it lies.

use std::sync::atomic::Ordering::Relaxed;

use sapwood_mem::epoch::Pin;

use crate::error::Result;
use crate::log::cold::Fetched;
use crate::ops::drive::Attempt;
use crate::ops::search::{Found, Probed};
use crate::ops::store::Store;
use crate::options::ColdReads;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Stop};
use crate::record::layout::control;

impl Store {
    /// The value of a record that a look named, if it is the key's.
    #[inline(always)]
    pub(crate) fn get_first<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        first: Address,
        key: F::Key<'_>,
    ) -> Option<F::Value> {
        let record = self.record_of::<F>(pin, first, key)?;
        F::value(record, || first < self.log.safe_read_only())
    }

    /// The same, unless the record has been superseded since the look. A put marks what it
    /// supersedes before it returns: so the value is as of now, and not as of the look.
    #[inline(always)]
    pub(crate) fn get_first_now<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        first: Address,
        key: F::Key<'_>,
    ) -> Option<F::Value> {
        let record = self.record_of::<F>(pin, first, key)?;
        if record.flags() & control::SUPERSEDED != 0 {
            return None;
        }
        F::value(record, || first < self.log.safe_read_only())
    }

    /// Reads a key that is found at first sight, or gives the closure back.
    #[inline(always)]
    pub(crate) fn get_by_look<F: InPlace, R, C: FnOnce(&[u8]) -> R>(
        &self,
        hash: u64,
        key: F::Key<'_>,
        read: C,
    ) -> std::result::Result<R, C> {
        if !F::READS_UNPINNED {
            if let Some(pin) = self.log.epochs.pin_quick()
                && let Some(first) = self.look(&pin, hash, self.log.head())
                && let Some(value) = self.get_first::<F>(&pin, first, key)
            {
                return Ok(read(value.as_ref()));
            }
            return Err(read);
        }
        // The others were looked for without a pin, at once.
        let behind = match self.index.look(hash) {
            Address::NONE => self.get_behind::<F>(hash, key),
            _ => None,
        };
        match behind {
            Some(value) => Ok(read(value.as_ref())),
            None => Err(read),
        }
    }

    /// The value of a key of which an overflow bucket names the record.
    #[cold]
    #[inline(never)]
    fn get_behind<F: InPlace>(&self, hash: u64, key: F::Key<'_>) -> Option<F::Value> {
        let pin = self.log.epochs.pin_quick()?;
        let head = self.log.head();
        let first = self.look_behind(hash).filter(|first| *first >= head)?;
        self.get_first::<F>(&pin, first, key)
    }

    /// Reads a key that was not found at first sight.
    #[cold]
    #[inline(never)]
    pub(crate) fn get_slow<F: InPlace, R>(
        &self,
        hash: u64,
        key: F::Key<'_>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let mut read = Some(read);
        let answer = self.drive::<F, _>(|pin, fetched| {
            self.get_attempt::<F, R>(pin, fetched, hash, key, &mut read)
        });
        self.make_room_for_copies();
        answer
    }

    pub(crate) fn get_attempt<F: InPlace, R>(
        &self,
        pin: &Pin<'_>,
        fetched: &Fetched,
        hash: u64,
        key: F::Key<'_>,
        read: &mut Option<impl FnOnce(&[u8]) -> R>,
    ) -> Attempt<Option<R>> {
        let mut take = || read.take().expect("an attempt that reads is the last");
        match self.find_known::<F>(pin, hash, key, fetched)? {
            Probed::Present(_, Found::Memory(record, address)) => {
                // Refused, the closure is still there for the next attempt.
                match F::value(record, || address < self.log.safe_read_only()) {
                    Some(value) => Ok(Some(take()(value.as_ref()))),
                    None => Err(Stop::Locked(record.identity())),
                }
            }
            Probed::Present(place, Found::Disk(record)) => {
                if self.options.cold_reads == ColdReads::Stay {
                    self.keep_read(record);
                } else if !self.log.comes_back(record.address) {
                    // What comes back by itself needs no copy.
                    let value = Some(record.value::<F>());
                    // If another thread changed the chain, the read precedes that change.
                    let copied = self.append::<F>(pin, hash, key, value, Some(place), None);
                    if let Err(Stop::PageFull) = copied {
                        self.copy_wants_page.store(true, Relaxed);
                    }
                }
                Ok(Some(take()(record.value::<F>())))
            }
            _ => Ok(None),
        }
    }
}
