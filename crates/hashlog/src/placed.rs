//! How are entries changed where a walk found them, without a search for each?
//!
//! Under an edit of the log, a window of entries at a time: a place whose record is still the
//! newest of its key is changed where it lies; what is not goes by its key, in its turn, as in a
//! batch. A place is a hint and never believed: the record there says whether it is the key's.

use std::ops::Range;

use sapwood_mem::sync::Ordering;

use crate::address::{Address, UNIT_BYTES};
use crate::core::Core;
use crate::error::BatchError;
use crate::layout::fixed;
use crate::log::Edit;
use crate::point::InPlace;
use crate::record::{Fixed, Form};
use crate::runs::Place;
use crate::value::ValueMut;

/// Entries that one window is opened for.
const GROUP: usize = 1024;
/// How far ahead records are asked for, up to the second cache and up to the first.
const FAR: usize = 160;
const NEAR: usize = 24;

/// Entries to be changed.
struct Plan<'p, K> {
    places: &'p [Place],
    keys: &'p [K],
    stride: Stride,
}

type Batch<T> = std::result::Result<T, BatchError>;

impl Core {
    /// As `update_many`, for keys that were met at these places.
    pub(crate) fn update_placed<F: InPlace, K: AsRef<[u8]>>(
        &self,
        places: &[Place],
        keys: &[K],
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> Batch<usize> {
        // Stored pages are not edited, and who is pinned cannot wait for others to leave.
        // And an edit makes others copy, and what is not met where it was.
        let is_met = places.iter().any(|place| *place != Place::default());
        let is_edited = F::STRIDE == fixed::BYTES && self.log.parts.is_none() && is_met;
        if !is_edited || self.log.epochs.is_pinned() {
            return self.update_many::<F, K>(keys, change);
        }
        let _life = self.life.share();
        let edit = self.log.begin_edit();
        let plan = Plan { places, keys, stride: Stride::new(self.log.page_bytes) };
        let (mut done, mut found) = (0, 0);
        while done < keys.len() {
            let (changed, moved) = self.update_window(&plan, &edit, done, change);
            done += changed;
            found += changed;
            if moved > 0 {
                // In their turn, so that who stops knows what is done.
                let keys = &keys[done..done + moved];
                found += self
                    .update_many::<F, K>(keys, &mut |at, value| change(done + at, value))
                    .map_err(|stopped| BatchError { done: done + stopped.done, ..stopped })?;
                done += moved;
            }
        }
        Ok(found)
    }

    /// Changes entries from `first` on in place, up to one that is not where it was: how many, and
    /// how many in a row behind them are not.
    fn update_window<K: AsRef<[u8]>>(
        &self,
        plan: &Plan<'_, K>,
        edit: &Edit<'_>,
        first: usize,
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> (usize, usize) {
        let limit = plan.keys.len().min(first + GROUP);
        // `begin` stands still; what lies elsewhere is not edited.
        let _window = edit.open(span(&plan.places[first..limit], self.log.begin()..edit.limit));
        let pin = self.log.epochs.pin();
        let records = self.log.records(&pin);
        // Under the pin: a snapshot that moves it later waits.
        let floor = self.log.fixed_below().max(self.log.begin());
        let current = |at: usize| {
            let address = plan.places[at].address();
            let is_place = address >= floor && address < edit.limit && plan.stride.fits(address);
            let key = Fixed::key(plan.keys[at].as_ref()).ok()?;
            let record = is_place.then(|| records.at(address))?;
            (record.is_unclaimed() && Fixed::has_key(record, key)).then_some(record)
        };
        let mut at = first;
        while at < limit {
            if let Some(later) = plan.places.get(at + FAR) {
                records.prefetch_far(later.address());
                records.prefetch(plan.places[at + NEAR].address());
            }
            let Some(record) = current(at) else { break };
            let value = record.fixed_value();
            let mut bytes = value.load(Ordering::Acquire).to_le_bytes();
            change(at, Some(&mut ValueMut::of_word(&mut bytes)));
            // Release: pairs with the Acquire of gets.
            value.store(u64::from_le_bytes(bytes), Ordering::Release);
            at += 1;
        }
        (at - first, (at..limit).take_while(|at| current(*at).is_none()).count())
    }
}

/// The addresses from the lowest of these to the highest, of those within bounds; or an empty range.
fn span(places: &[Place], bounds: Range<Address>) -> Range<Address> {
    let within = || places.iter().map(|place| place.address()).filter(|at| bounds.contains(at));
    match (within().min(), within().max()) {
        (Some(lowest), Some(highest)) => lowest..highest.plus(fixed::BYTES),
        _ => bounds.start..bounds.start,
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
