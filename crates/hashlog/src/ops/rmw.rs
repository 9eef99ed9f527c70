//! Read-modify-write: a change of a value by atomic instructions, in place under a lock, or in a
//! copy at the tail.

use sapwood_mem::epoch::Pin;

use crate::error::{Error, Result};
use crate::index::SlotRef;
use crate::log::cold::Fetched;
use crate::ops::drive::Attempt;
use crate::ops::search::{Found, Probed};
use crate::ops::store::Store;
use crate::record::Record;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Stop, Write};
use crate::record::value::{ValueMut, with_scratch};

/// The outcome of a read-modify-write.
pub(crate) enum Rmw<R> {
    Updated(R),
    Inserted,
    Absent,
}

impl Store {
    /// Changes a value, or puts `absent` where there is none.
    #[inline]
    pub(crate) fn rmw<F: InPlace, R>(
        &self,
        key: &[u8],
        absent: Option<&[u8]>,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Result<Rmw<R>> {
        let (key, hash) = match absent {
            Some(value) => self.checked::<F>(key, value.len())?,
            None => F::key(key).map(|key| (key, F::hash(key)))?,
        };
        if let Some(answer) = self.rmw_by_look::<F, R>(hash, key, change) {
            return Ok(Rmw::Updated(answer));
        }
        self.drive::<F, _>(|pin, fetched| {
            self.rmw_attempt::<F, R>(pin, fetched, hash, key, absent, change)
        })
    }

    pub(crate) fn compare_and_put<F: InPlace>(
        &self,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        let mut refused: Option<Error> = None;
        let mut change = |value: &mut ValueMut<'_>| {
            if **value != *expected {
                return (false, Write::Unchanged);
            }
            refused = value.set(new).err();
            match refused {
                None => (true, Write::Changed),
                Some(_) => (false, Write::Unchanged),
            }
        };
        self.checked::<F>(key, new.len())?;
        let done = self.rmw::<F, bool>(key, None, &mut change)?;
        match refused {
            Some(error) => Err(error),
            None => Ok(matches!(done, Rmw::Updated(true))),
        }
    }

    /// Changes a value by atomic instructions where the key is found at first sight.
    #[inline(always)]
    fn rmw_by_look<F: InPlace, R>(
        &self,
        hash: u64,
        key: F::Key<'_>,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Option<R> {
        let pin = self.log.epochs.pin_quick()?;
        let first = self.look(&pin, hash, self.log.read_only())?;
        self.rmw_first::<F, R>(&pin, first, key, change)
    }

    /// Changes a mutable record that a look named, if it is the key's, and changed by atomic
    /// instructions alone.
    #[inline(always)]
    pub(crate) fn rmw_first<F: InPlace, R>(
        &self,
        pin: &Pin<'_>,
        first: Address,
        key: F::Key<'_>,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Option<R> {
        F::update_atomically(self.writable_record_of::<F>(pin, first, key)?, change)
    }

    pub(crate) fn rmw_attempt<F: InPlace, R>(
        &self,
        pin: &Pin<'_>,
        fetched: &Fetched,
        hash: u64,
        key: F::Key<'_>,
        absent: Option<&[u8]>,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Attempt<Rmw<R>> {
        let read_only = self.log.read_only();
        match self.find_known::<F>(pin, hash, key, fetched)? {
            Probed::Present(place, found) => {
                if let Found::Memory(record, address) = found
                    && address >= read_only
                {
                    // INVARIANT: I-HOLD: pinned, before the write.
                    F::admit(record)?;
                    if let Some(result) = F::update_atomically(record, change) {
                        return Ok(Rmw::Updated(result));
                    }
                }
                self.rmw_copy::<F, R>(pin, hash, key, place, found, read_only, change)
            }
            Probed::Absent(place, tombstone) => {
                let Some(value) = absent else { return Ok(Rmw::Absent) };
                let old = tombstone.and_then(|found| found.in_memory());
                self.append::<F>(pin, hash, key, Some(value), place, old)?;
                self.entries.add(1);
                Ok(Rmw::Inserted)
            }
            Probed::Unknown(..) => unreachable!("find_known reads what it must"),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a copy of what its caller knows")]
    fn rmw_copy<F: InPlace, R>(
        &self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        place: SlotRef<'_>,
        found: Found<'_>,
        read_only: Address,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Attempt<Rmw<R>> {
        let (min, max) = F::value_limits(key, self.log.page_bytes);
        let run = |scratch: &mut Vec<u8>,
                   change: &mut dyn FnMut(&mut ValueMut<'_>) -> (R, Write)| {
            change(&mut ValueMut::of_bytes(scratch, min, max))
        };
        with_scratch(|scratch| match found {
            Found::Memory(record, address) => {
                let lock = self.lock_for_copy::<F>(record, address)?;
                F::copy_value(record, &lock, scratch);
                let (result, write) = {
                    let _held = F::hold(&lock);
                    run(scratch, change)
                };
                if write == Write::Changed
                    && !(address >= read_only && F::write_back(&lock, scratch))
                {
                    let old = Some((record, address));
                    self.append::<F>(pin, hash, key, Some(scratch), Some(place), old)?;
                }
                Ok(Rmw::Updated(result))
            }
            Found::Disk(record) => {
                scratch.extend_from_slice(record.value::<F>());
                let (result, write) = run(scratch, change);
                if write == Write::Changed {
                    self.append::<F>(pin, hash, key, Some(scratch), Some(place), None)?;
                }
                Ok(Rmw::Updated(result))
            }
        })
    }

    /// Locks a record in memory of which a copy is to be made, or waits until no thread changes it
    /// where the layout has no locks: what is read now is still there when the copy is published.
    #[inline(always)]
    pub(crate) fn lock_for_copy<F: InPlace>(
        &self,
        record: Record,
        address: Address,
    ) -> Attempt<F::Lock> {
        if F::WAITS_WHILE_FUZZY && address >= self.log.safe_read_only() {
            return Err(Stop::Fuzzy(address));
        }
        if F::WAITS_WHILE_FUZZY && self.log.has_edits() {
            record.claim();
            if self.log.is_edited(address) {
                return Err(Stop::Edited(address));
            }
        }
        F::lock(record)
    }
}
