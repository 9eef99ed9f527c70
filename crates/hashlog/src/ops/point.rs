//! Operations on one key.
//!
//! | operation | linearization point |
//! |---|---|
//! | get, contains | the load of the slot; of a value in the mutable region, the load of its word or the reader count |
//! | put in place | the store of the value's word; the release of EXCLUSIVE |
//! | put by append, insert | publication in the slot |
//! | update in place | the CAS of the value's word; the release of EXCLUSIVE |
//! | remove | the tombstone flag in place; publication of the tombstone record |
//!
//! If an in-place write and an append to the same key race: the writer found the record before it
//! was replaced and had not returned when it was, so it counts as just before. A read-modify-write
//! never appends from a record that others may be writing in place: a fixed one leaves the
//! fuzzy region first, a variable one is locked.

use std::sync::atomic::Ordering::Relaxed;

use sapwood_mem::epoch::Pin;

use crate::error::{Error, Result};
use crate::index::{Look, SlotRef};
use crate::log::cold::Fetched;
use crate::ops::store::{Found, Old, Probed, Store};
use crate::options::ColdReads;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Stop, Write};
use crate::record::value::{ValueMut, with_scratch};
use crate::record::{Burial, Form, Record};

/// The outcome of a read-modify-write.
pub(crate) enum Rmw<R> {
    Updated(R),
    Inserted,
    Absent,
}

type Attempt<R> = std::result::Result<R, Stop>;

impl Store {
    /// The record that the index names first for a hash, if it names one from an address up.
    ///
    /// That address, `head` to read and `read_only` to write in place, is read before the index is,
    /// under the same pin. Then a thread that copies a record that is found to be mutable began
    /// before the region last grew down to it, and was waited for. Read later, the boundary might
    /// be lower than while the record was copied, and what is then written in place would be lost.
    #[inline(always)]
    pub(crate) fn look(&self, _: &Pin<'_>, hash: u64, from: Address) -> Option<Address> {
        match self.index.look(hash) {
            first if first >= from => Some(first),
            Address::NONE => self.look_behind(hash).filter(|first| *first >= from),
            _ => None,
        }
    }

    /// The record that an overflow bucket names first.
    #[cold]
    #[inline(never)]
    fn look_behind(&self, hash: u64) -> Option<Address> {
        match self.index.look_on(hash) {
            Look::Behind(next) => match self.index.look_behind(hash, next) {
                Look::Named(first) => Some(first),
                _ => None,
            },
            _ => None,
        }
    }

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

    /// Reads a key that is found at first sight, or gives the closure back.
    #[inline(always)]
    pub(crate) fn get_quick<F: InPlace, R, C: FnOnce(&[u8]) -> R>(
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
        let first = self.index.look(hash);
        let value = self.log.read_unpinned(first, |record| {
            let is_it = F::has_key(record, key) && !record.is_tombstone();
            is_it.then(|| F::value(record, || false)).flatten()
        });
        let value = match value {
            None if first == Address::NONE => self.get_behind::<F>(hash, key),
            value => value,
        };
        match value {
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
                // What comes back by itself needs no copy.
                if self.options.cold_reads == ColdReads::CopyToTail
                    && !self.log.comes_back(record.address)
                {
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

    /// Puts a value into a mutable record that a look named, if it is the key's.
    #[inline(always)]
    pub(crate) fn put_first<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        first: Address,
        key: F::Key<'_>,
        value: &[u8],
    ) -> bool {
        // I-BOUNDARIES: the mutable region is in memory.
        self.writable_record_of::<F>(pin, first, key)
            .is_some_and(|record| matches!(F::put(record, value), Ok(true)))
    }

    /// Puts the value of a key that a look did not find; false if it is there all the same, or
    /// there is no room at the tail.
    #[inline]
    pub(crate) fn put_new<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        value: &[u8],
    ) -> bool {
        // The insert of a slot fails if the key has a chain.
        let put = self.append::<F>(pin, hash, key, Some(value), None, None).is_ok();
        self.entries.add(i64::from(put));
        put
    }

    /// Puts a value in place where the key is found at first sight; true if it did.
    #[inline(always)]
    pub(crate) fn put_quick<F: InPlace>(&self, hash: u64, key: F::Key<'_>, value: &[u8]) -> bool {
        if let Some(pin) = self.log.epochs.pin_quick()
            && let Some(first) = self.look(&pin, hash, self.log.read_only())
        {
            return self.put_first::<F>(&pin, first, key, value);
        }
        false
    }

    pub(crate) fn put_attempt<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        fetched: &Fetched,
        hash: u64,
        key: F::Key<'_>,
        value: &[u8],
    ) -> Attempt<()> {
        // Before the search: a boundary that moves later moves past this pin.
        let read_only = self.log.read_only();
        match self.find::<F>(pin, hash, key, fetched)? {
            Probed::Present(place, Found::Memory(record, address)) => {
                if address >= read_only {
                    // INVARIANT: I-HOLD: pinned, before the write.
                    F::admit(record)?;
                    if F::put(record, value)? {
                        return Ok(());
                    }
                }
                let _lock = F::lock(record)?;
                let old = Some((record, address));
                if self.append::<F>(pin, hash, key, Some(value), Some(place), old)? == Old::Absent {
                    // A removal in place came between: this put inserts.
                    self.entries.add(1);
                }
                Ok(())
            }
            Probed::Present(place, Found::Disk(_)) | Probed::Unknown(place, _) => {
                self.append::<F>(pin, hash, key, Some(value), Some(place), None).map(drop)
            }
            Probed::Absent(place, tombstone) => {
                let old = tombstone.and_then(|found| found.in_memory());
                self.append::<F>(pin, hash, key, Some(value), place, old)?;
                self.entries.add(1);
                Ok(())
            }
        }
    }

    pub(crate) fn put_if_absent_attempt<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        fetched: &Fetched,
        hash: u64,
        key: F::Key<'_>,
        value: &[u8],
    ) -> Attempt<bool> {
        match self.find_known::<F>(pin, hash, key, fetched)? {
            Probed::Absent(place, tombstone) => {
                let old = tombstone.and_then(|found| found.in_memory());
                self.append::<F>(pin, hash, key, Some(value), place, old)?;
                self.entries.add(1);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(crate) fn remove_attempt<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        fetched: &Fetched,
        hash: u64,
        key: F::Key<'_>,
    ) -> Attempt<bool> {
        let read_only = self.log.read_only();
        let Probed::Present(place, found) = self.find_known::<F>(pin, hash, key, fetched)? else {
            return Ok(false);
        };
        match found.in_memory() {
            Some((record, address)) if address >= read_only => {
                let _lock = F::lock(record)?;
                self.bury::<F>(&place, record, address)
            }
            old => {
                let _lock = old.map(|(record, _)| F::lock(record)).transpose()?;
                // Two removals may race for a record that leaves the mutable region: one counts.
                let was = self.append::<F>(pin, hash, key, None, Some(place), old)?;
                self.entries.add(-i64::from(was == Old::Present));
                Ok(was == Old::Present)
            }
        }
    }

    /// Makes a mutable record a tombstone, which the caller has locked where the layout has locks;
    /// false if it was one.
    pub(crate) fn bury<F: Form>(
        &self,
        place: &SlotRef<'_>,
        record: Record,
        address: Address,
    ) -> Attempt<bool> {
        match record.bury() {
            Burial::Done => {}
            Burial::Was => return Ok(false),
            // By a thread that saw the boundary above it.
            Burial::Superseded => return Err(Stop::Raced),
        }
        self.garbage.add(F::bytes_of(record) as i64);
        self.entries.add(-1);
        // A chain that ends here needs no tombstone. One that goes on does: behind it may lie an
        // older record of the key.
        if place.address() == address && record.previous() < self.log.begin() && place.clear() {
            self.index.slots.add(-1);
        }
        Ok(true)
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

    /// Changes a value by atomic instructions where the key is found at first sight.
    #[inline(always)]
    pub(crate) fn rmw_quick<F: InPlace, R>(
        &self,
        hash: u64,
        key: F::Key<'_>,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Option<R> {
        let pin = self.log.epochs.pin_quick()?;
        let first = self.look(&pin, hash, self.log.read_only())?;
        self.rmw_first::<F, R>(&pin, first, key, change)
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
                let lock = self.lock_still::<F>(record, address)?;
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
    pub(crate) fn lock_still<F: InPlace>(
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

    /// Adds to a mutable record that a look named, if it is the key's and the sum is one.
    #[inline(always)]
    pub(crate) fn add_first<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        first: Address,
        key: F::Key<'_>,
        delta: i64,
    ) -> Option<i64> {
        F::add_atomically(self.writable_record_of::<F>(pin, first, key)?, delta)
    }

    /// Adds to a counter that is found at first sight.
    #[inline(always)]
    pub(crate) fn add_quick<F: InPlace>(
        &self,
        hash: u64,
        key: F::Key<'_>,
        delta: i64,
    ) -> Option<i64> {
        let pin = self.log.epochs.pin_quick()?;
        let first = self.look(&pin, hash, self.log.read_only())?;
        self.add_first::<F>(&pin, first, key, delta)
    }

    /// Adds to a counter: the sum, or why not.
    pub(crate) fn add_attempt<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        fetched: &Fetched,
        hash: u64,
        key: F::Key<'_>,
        delta: i64,
    ) -> Attempt<i64> {
        let first = delta.to_le_bytes();
        let done = self.rmw_attempt::<F, Result<i64>>(
            pin,
            fetched,
            hash,
            key,
            Some(&first),
            &mut |value| {
                let len = value.len();
                let Ok(bytes) = <[u8; 8]>::try_from(&**value) else {
                    return (Err(Error::NotACounter { len }), Write::Unchanged);
                };
                let before = i64::from_le_bytes(bytes);
                match before.checked_add(delta) {
                    Some(sum) => {
                        value.copy_from_slice(&sum.to_le_bytes());
                        (Ok(sum), Write::Changed)
                    }
                    None => (Err(Error::Overflow { value: before, delta }), Write::Unchanged),
                }
            },
        )?;
        match done {
            Rmw::Updated(sum) => Ok(sum?),
            Rmw::Inserted => Ok(delta),
            Rmw::Absent => unreachable!("an absent counter is inserted"),
        }
    }
}

impl Record {
    /// The address of the control word, to recognise a lock by.
    pub(crate) fn identity(&self) -> usize {
        std::ptr::from_ref(self.control()).addr()
    }
}
