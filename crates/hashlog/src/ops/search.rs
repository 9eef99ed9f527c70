//! The search for a key: a quick look at the record that is named first, and a walk of the chain.

use sapwood_mem::epoch::Pin;

use crate::index::{Look, Probe, SlotRef, Walk};
use crate::log::cold::{ColdRecord, Fetched};
use crate::ops::drive::Attempt;
use crate::ops::store::Store;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Stop};
use crate::record::layout::control;
use crate::record::{Form, Record};

/// A record of a key.
pub(crate) enum Found<'f> {
    Memory(Record, Address),
    Disk(&'f ColdRecord),
}

impl Found<'_> {
    pub(crate) fn is_tombstone(&self) -> bool {
        match self {
            Found::Memory(record, _) => record.is_tombstone(),
            Found::Disk(record) => record.is_tombstone(),
        }
    }

    /// The record, where it is in memory and can be marked.
    pub(crate) fn in_memory(&self) -> Option<(Record, Address)> {
        match self {
            Found::Memory(record, address) => Some((*record, *address)),
            Found::Disk(_) => None,
        }
    }
}

/// The state of a key, as far as memory and the reads so far tell it.
pub(crate) enum Probed<'a> {
    Present(SlotRef<'a>, Found<'a>),
    /// Absent, and its tombstone if there is one. A new record belongs into the place's chain.
    Absent(Option<SlotRef<'a>>, Option<Found<'a>>),
    /// In this place's chain, if anywhere; the record at this address must be read to know.
    Unknown(SlotRef<'a>, Address),
}

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
    pub(super) fn look_behind(&self, hash: u64) -> Option<Address> {
        match self.index.look_on(hash) {
            Look::Behind(next) => match self.index.look_behind(hash, next) {
                Look::Named(first) => Some(first),
                _ => None,
            },
            _ => None,
        }
    }

    /// The record at an address from `head` up, if it is of this key and no tombstone. Nearly
    /// every search ends here; the others begin again in `find`.
    #[inline(always)]
    pub(crate) fn record_of<F: Form>(
        &self,
        pin: &Pin<'_>,
        address: Address,
        key: F::Key<'_>,
    ) -> Option<Record> {
        let record = self.log.record(pin, address);
        (F::has_key(record, key) && !record.is_tombstone()).then_some(record)
    }

    /// As `record_of`, if the record may be written in place.
    #[inline(always)]
    pub(crate) fn writable_record_of<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        address: Address,
        key: F::Key<'_>,
    ) -> Option<Record> {
        let record = self.log.record(pin, address);
        // INVARIANT: I-HOLD: the caller writes under the pin under which this is read.
        let is_open = record.flags() & (control::TOMBSTONE | F::HELD) == 0;
        (F::has_key(record, key) && is_open).then_some(record)
    }

    /// Searches for a key's newest record.
    #[cold]
    #[inline(never)]
    pub(crate) fn find<'a, F: Form>(
        &'a self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        fetched: &'a Fetched,
    ) -> Attempt<Probed<'a>> {
        let mut begin = self.log.begin();
        loop {
            let probed = self.find_once::<F>(pin, hash, key, fetched);
            let now = self.log.begin();
            // A record that this search took for one of those behind `begin` may have been moved to the tail after the
            // index was looked at, and before its page was given up.
            if now == begin || !matches!(probed, Ok(Probed::Absent(..))) {
                return probed;
            }
            begin = now;
        }
    }

    /// One search. That a key is absent holds if no page is given up meanwhile.
    fn find_once<'a, F: Form>(
        &'a self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        fetched: &'a Fetched,
    ) -> Attempt<Probed<'a>> {
        let head = self.log.head();
        let probe = self.index.find(hash, |newest| {
            let mut address = newest;
            loop {
                if address >= head {
                    let record = self.log.record(pin, address);
                    if F::has_key(record, key) {
                        return Walk::Hit(Found::Memory(record, address));
                    }
                    address = record.previous();
                } else if address < self.log.begin() {
                    return Walk::End;
                } else {
                    match fetched.get(address) {
                        None => return Walk::Cold(address),
                        Some(record) if F::key_eq(key, record.key::<F>()) => {
                            return Walk::Hit(Found::Disk(record));
                        }
                        Some(record) => address = record.previous(),
                    }
                }
            }
        });
        Ok(match probe {
            Probe::Hit(place, found) if !found.is_tombstone() => Probed::Present(place, found),
            Probe::Hit(place, found) => Probed::Absent(Some(place), Some(found)),
            Probe::Absent(place) => Probed::Absent(place, None),
            Probe::Cold(place, address) => Probed::Unknown(place, address),
            Probe::Unclear(address) => return Err(Stop::Cold(address)),
        })
    }

    /// As `find`, reading what must be read to know.
    #[inline]
    pub(crate) fn find_known<'a, F: Form>(
        &'a self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        fetched: &'a Fetched,
    ) -> Attempt<Probed<'a>> {
        match self.find::<F>(pin, hash, key, fetched)? {
            Probed::Unknown(_, address) => Err(Stop::Cold(address)),
            known => Ok(known),
        }
    }
}
