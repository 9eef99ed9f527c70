//! Updates of entries at known addresses, without a search for each.
//!
//! A place whose record is still the newest of its key is changed where it lies; what is not goes
//! by its key, in its turn, as in a batch. An address is a hint and never believed: the record there
//! says whether it is the key's. There are two ways:
//!
//! - *One by one*, in the mutable region, as if the index had named the record. Instead it says
//!   itself, after the boundary was read under the same pin, that it is not superseded. A thread
//!   that copied it before the region grew down to it was waited for, and has marked it; one that
//!   copies it later races this update, which counts as just before.
//! - *Under an edit* of the log, a window of addresses at a time, without an atomic instruction for
//!   each: for addresses in the order of the log.

use sapwood_mem::epoch::Pin;
use sapwood_mem::sync::Ordering;

use crate::error::BatchError;
use crate::log::begin_lock::Shared;
use crate::log::{self, Records};
use crate::ops::store::Store;
use crate::record::address::{Address, UNIT_BYTES};
use crate::record::in_place::{InPlace, Write};
use crate::record::layout::fixed;
use crate::record::value::ValueMut;
use crate::record::{Fixed, Form, Record};
use sapwood_engine::RecordAddress;

/// Entries under one pin; records of one window.
const GROUP: usize = 1024;
/// Distances at which records are asked for ahead, up to the second cache and up to the first.
const FAR: usize = 160;
const NEAR: usize = 24;

type Batch<T> = std::result::Result<T, BatchError>;

/// Entries to be changed.
struct Plan<'p, K> {
    addresses: &'p [RecordAddress],
    keys: &'p [K],
    stride: Stride,
}

/// The records of a plan, as one pin sees them.
struct There<'a, 'p, K> {
    plan: &'a Plan<'p, K>,
    records: Records<'a>,
    /// Between which they may be changed.
    from: Address,
    to: Address,
}

impl Store {
    /// Begins an edit, unless the caller is pinned, and cannot wait for others to leave, or there
    /// are pages that may never be edited.
    pub(crate) fn edit<F: Form>(&self) -> Option<(log::LogEdit<'_>, Shared<'_>)> {
        let is_edited = F::STRIDE == fixed::BYTES && self.log.parts.is_none();
        if !is_edited || self.log.epochs.is_pinned() {
            return None;
        }
        let begin_lock = self.begin_lock.share();
        Some((self.log.begin_edit(), begin_lock))
    }

    /// As `update_many`, for keys that were met at these addresses.
    pub(crate) fn update_at<F: InPlace, K: AsRef<[u8]>>(
        &self,
        addresses: &[RecordAddress],
        keys: &[K],
        edit: Option<&log::LogEdit<'_>>,
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> Batch<usize> {
        let is_met = addresses.iter().any(|place| *place != RecordAddress::default());
        if F::STRIDE != fixed::BYTES || !is_met {
            return self.update_many::<F, K>(keys, change);
        }
        // Windows are opened unpinned.
        let edit = edit.filter(|_| !self.log.epochs.is_pinned());
        let plan = Plan { addresses, keys, stride: Stride::new(self.log.page_bytes) };
        let (mut done, mut found) = (0, 0);
        while done < keys.len() {
            let (changed, moved) = match edit {
                Some(edit) => self.update_window(&plan, edit, done, change),
                None => self.update_group(&plan, done, change),
            };
            done += changed;
            found += changed;
            if moved > 0 {
                // In their turn, so that a caller that stops knows what is done.
                let keys = &keys[done..done + moved];
                found += self
                    .update_many::<F, K>(keys, &mut |at, value| change(done + at, value))
                    .map_err(|stopped| BatchError { done: done + stopped.done, ..stopped })?;
                done += moved;
            }
        }
        Ok(found)
    }

    /// Changes entries from `first` on one by one, up to one that is not where it was: how many,
    /// and how many in a row behind them are not.
    fn update_group<K: AsRef<[u8]>>(
        &self,
        plan: &Plan<'_, K>,
        first: usize,
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> (usize, usize) {
        let pin = self.log.epochs.pin();
        // Before any record is looked at: see `Store::look`.
        let there = self.there(plan, &pin, self.log.read_only(), self.log.closed_below());
        there.update(
            first,
            |_| true,
            |at, record| {
                Fixed::update_atomically(record, &mut |value| {
                    (change(at, Some(value)), Write::Changed)
                });
            },
        )
    }

    /// The same under an edit, in a window from the first of them on.
    fn update_window<K: AsRef<[u8]>>(
        &self,
        plan: &Plan<'_, K>,
        edit: &log::LogEdit<'_>,
        first: usize,
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> (usize, usize) {
        let begin = Address::from(plan.addresses[first]).min(edit.limit);
        let range = begin..begin.plus(GROUP * fixed::BYTES).min(edit.limit);
        let _window = edit.open(range.clone());
        let pin = self.log.epochs.pin();
        // Under the pin: a snapshot that moves it later waits.
        let floor = self.log.fixed_below().max(self.log.begin());
        let there = self.there(plan, &pin, floor, edit.limit);
        there.update(
            first,
            |address| range.contains(&address),
            |at, record| {
                let value = record.fixed_value();
                // Acquire: pairs with the Release of the last writer.
                let mut bytes = value.load(Ordering::Acquire).to_le_bytes();
                change(at, Some(&mut ValueMut::of_word(&mut bytes)));
                // Release: pairs with the Acquire of gets.
                value.store(u64::from_le_bytes(bytes), Ordering::Release);
            },
        )
    }

    fn there<'a, 'p, K>(
        &'a self,
        plan: &'a Plan<'p, K>,
        pin: &'a Pin<'_>,
        from: Address,
        to: Address,
    ) -> There<'a, 'p, K> {
        There { plan, records: self.log.records(pin), from, to }
    }
}

impl<K: AsRef<[u8]>> There<'_, '_, K> {
    /// Changes entries from `first` on, up to one that is not where it was, or whose address is not
    /// one of those that this group is of: how many, and how many in a row behind them are not
    /// where they were.
    #[inline(always)]
    fn update(
        &self,
        first: usize,
        is_of_group: impl Fn(Address) -> bool,
        mut change: impl FnMut(usize, Record),
    ) -> (usize, usize) {
        let Plan { addresses, keys, .. } = self.plan;
        let limit = keys.len().min(first + GROUP);
        let mut at = first;
        while at < limit && is_of_group(Address::from(addresses[at])) {
            if let Some(later) = addresses.get(at + FAR) {
                self.records.prefetch_far(Address::from(*later));
                self.records.prefetch(Address::from(addresses[at + NEAR]));
            }
            let Some(record) = self.current(at) else { break };
            change(at, record);
            at += 1;
        }
        (at - first, (at..limit).take_while(|at| self.current(*at).is_none()).count())
    }

    /// The record of an entry, if it is still where it was.
    #[inline(always)]
    fn current(&self, at: usize) -> Option<Record> {
        let address = Address::from(self.plan.addresses[at]);
        let is_place = address >= self.from && address < self.to && self.plan.stride.fits(address);
        let key = Fixed::key(self.plan.keys[at].as_ref()).ok()?;
        let record = is_place.then(|| self.records.at(address))?;
        (record.is_unclaimed() && Fixed::has_key(record, key)).then_some(record)
    }
}

/// Where in a page fixed records begin.
struct Stride {
    page_units: u64,
}

impl Stride {
    const UNITS: u64 = (fixed::BYTES / UNIT_BYTES) as u64;

    fn new(page_bytes: usize) -> Stride {
        Stride { page_units: (page_bytes / UNIT_BYTES) as u64 }
    }

    #[inline(always)]
    fn fits(&self, address: Address) -> bool {
        let offset = address.units() & (self.page_units - 1);
        offset.is_multiple_of(Stride::UNITS) && offset <= self.page_units - Stride::UNITS
    }
}
