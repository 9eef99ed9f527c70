//! Compute: a closure sees a key's value, or that there is none, and decides about it.
//!
//! The decision holds for the value that the closure saw, so nothing may come between. A copy at
//! the tail takes effect only if the chain is as it was, a record of variable length is locked, and
//! the word of a fixed value is replaced by one compare-and-swap. What is left is the removal of a
//! fixed record in place: its value and its tombstone flag are two words.
//!
//! Such a removal *holds* the record, by its EXCLUSIVE flag, then waits for an epoch:
//!
//! - I-HOLD: threads that write to a fixed record in place see under their pin that it is not held.
//!   So once all threads have left that were pinned when a record was held, no thread writes to it
//!   in place but the holder. Readers go on.
//!
//! | word | written | read |
//! |---|---|---|
//! | EXCLUSIVE of a fixed record | the holder: fetch_or AcqRel, then an epoch; fetch_and Release | writers in place, pinned: Acquire |
//!
//! | decision | linearization point |
//! |---|---|
//! | keep | the load of the value that the closure saw |
//! | replace | the CAS of the value's word; the release of EXCLUSIVE; publication in the slot |
//! | remove | the tombstone flag in place; publication of the tombstone record |

use sapwood_engine::{Compute, Computed};
use sapwood_mem::epoch::Pin;

use crate::error::{Error, Result};
use crate::index::SlotRef;
use crate::log::cold::Fetched;
use crate::ops::drive::Attempt;
use crate::ops::search::{Found, Probed};
use crate::ops::store::Store;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Stop, Write};
use crate::record::value::{Held, ValueMut, with_scratch};
use crate::record::{Form, Record};

/// A fixed record that this thread holds, until it is dropped.
struct Hold<'s> {
    store: &'s Store,
    address: Address,
    /// The value that the closure decided to remove.
    seen: Vec<u8>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let pin = self.store.log.epochs.pin();
        // No address is given twice: at or above `head` it is still the record that was held.
        if self.address >= self.store.log.head() {
            self.store.log.record(&pin, self.address).let_go();
        }
    }
}

/// One computation: what its attempts have in common.
struct Computation<'s, 'k, 'd, F: Form> {
    store: &'s Store,
    hash: u64,
    key: F::Key<'k>,
    decide: &'d mut dyn FnMut(Option<&[u8]>) -> Compute,
    hold: Option<Hold<'s>>,
}

impl Store {
    /// Lets a closure decide about a key; its last run counts.
    pub(crate) fn compute<F: InPlace>(
        &self,
        key: F::Key<'_>,
        decide: &mut dyn FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let mut computation =
            Computation::<F> { store: self, hash: F::hash(key), key, decide, hold: None };
        self.drive::<F, _>(|pin, fetched| computation.attempt(pin, fetched))
    }
}

impl<F: InPlace> Computation<'_, '_, '_, F> {
    fn attempt(&mut self, pin: &Pin<'_>, fetched: &Fetched) -> Attempt<Computed> {
        let (store, hash, key) = (self.store, self.hash, self.key);
        // Before the search: a boundary that moves later moves past this pin.
        let read_only = store.log.read_only();
        match store.find_known::<F>(pin, hash, key, fetched)? {
            Probed::Present(place, found) => {
                if let Found::Memory(record, address) = found
                    && address >= read_only
                    && let Some(done) = self.in_place(pin, &place, record, address)
                {
                    return done;
                }
                self.hold = None;
                self.by_copy(pin, place, found, read_only)
            }
            Probed::Absent(place, tombstone) => {
                self.hold = None;
                let Compute::Replace(value) = (self.decide)(None) else {
                    return Ok(Computed::Absent);
                };
                F::check_value(key, value.len(), store.log.page_bytes)?;
                let old = tombstone.and_then(|found| found.in_memory());
                store.append::<F>(pin, hash, key, Some(&value), place, old)?;
                store.entries.add(1);
                Ok(Computed::Inserted)
            }
            Probed::Unknown(..) => unreachable!("find_known reads what it must"),
        }
    }

    /// Decides about a mutable record of a layout whose values are changed by atomic instructions;
    /// `None` of the other.
    fn in_place(
        &mut self,
        pin: &Pin<'_>,
        place: &SlotRef<'_>,
        record: Record,
        address: Address,
    ) -> Option<Attempt<Computed>> {
        let (decide, held) = (&mut *self.decide, self.hold.take_if(|hold| hold.address == address));
        // A hold of another record has no use any more.
        self.hold = None;
        if held.is_none()
            && let Err(stop) = F::admit(record)
        {
            return Some(Err(stop));
        }
        let mut seen = Vec::new();
        let decided = {
            let _held = held.as_ref().map(|_| Held::new(record.identity()));
            F::update_atomically(record, &mut |value: &mut ValueMut<'_>| {
                let before = held.as_ref().map(|hold| &hold.seen[..]);
                let decision = match before == Some(&**value) {
                    true => Compute::Remove,
                    false => decide(Some(value)),
                };
                match decision {
                    Compute::Keep => (Ok(Computed::Kept), Write::Unchanged),
                    Compute::Replace(new) => match value.set(&new) {
                        Ok(()) => (Ok(Computed::Replaced), Write::Changed),
                        Err(refused) => (Err(refused), Write::Unchanged),
                    },
                    Compute::Remove => {
                        seen.clear();
                        seen.extend_from_slice(value);
                        (Ok(Computed::Removed), Write::Unchanged)
                    }
                }
            })?
        };
        Some(match (decided, held) {
            // I-HOLD: the value is what the closure saw.
            (Ok(Computed::Removed), Some(_held)) => {
                match self.store.bury::<F>(place, record, address) {
                    Ok(true) => Ok(Computed::Removed),
                    // Another removal came between.
                    Ok(false) => Err(Stop::Raced),
                    Err(stop) => Err(stop),
                }
            }
            (Ok(Computed::Removed), None) => Err(self.hold(pin, record, address, seen)),
            (Ok(done), _) => Ok(done),
            (Err(refused), _) => Err(refused.into()),
        })
    }

    /// Holds a record for the next attempt, which may begin once all threads have left that may
    /// write to it.
    fn hold(&mut self, pin: &Pin<'_>, record: Record, address: Address, seen: Vec<u8>) -> Stop {
        if !pin.is_outermost() {
            return Error::WouldBlock.into();
        }
        if !record.hold() {
            return Stop::Held(record.identity());
        }
        self.hold = Some(Hold { store: self.store, address, seen });
        // INVARIANT: I-HOLD: the epoch begins after the flag is set.
        Stop::Pinned(self.store.log.epochs.bump())
    }

    /// Decides about a record that is locked, or that no thread changes in place.
    fn by_copy(
        &mut self,
        pin: &Pin<'_>,
        place: SlotRef<'_>,
        found: Found<'_>,
        read_only: Address,
    ) -> Attempt<Computed> {
        let (store, hash, key) = (self.store, self.hash, self.key);
        let old = found.in_memory();
        let lock = match old {
            Some((record, address)) => Some(store.lock_for_copy::<F>(record, address)?),
            None => None,
        };
        let decision = with_scratch(|scratch| match (&found, &lock) {
            (Found::Memory(record, _), Some(lock)) => {
                F::copy_value(*record, lock, scratch);
                let _held = F::hold(lock);
                (self.decide)(Some(scratch))
            }
            (Found::Disk(record), _) => (self.decide)(Some(record.value::<F>())),
            (Found::Memory(..), None) => unreachable!("records in memory are locked"),
        });
        let mutable = old.filter(|(_, address)| *address >= read_only);
        match decision {
            Compute::Keep => Ok(Computed::Kept),
            Compute::Replace(value) => {
                F::check_value(key, value.len(), store.log.page_bytes)?;
                let in_place = mutable.is_some()
                    && lock.as_ref().is_some_and(|lock| F::write_back(lock, &value));
                if !in_place {
                    store.append::<F>(pin, hash, key, Some(&value), Some(place), old)?;
                }
                Ok(Computed::Replaced)
            }
            Compute::Remove => {
                match mutable {
                    Some((record, address)) => {
                        if !store.bury::<F>(&place, record, address)? {
                            return Err(Stop::Raced);
                        }
                    }
                    None => {
                        store.append::<F>(pin, hash, key, None, Some(place), old)?;
                        store.entries.add(-1);
                    }
                }
                Ok(Computed::Removed)
            }
        }
    }
}
