//! Remove: a tombstone in place, or one at the tail.

use sapwood_mem::epoch::Pin;

use crate::error::Result;
use crate::index::SlotRef;
use crate::log::cold::Fetched;
use crate::ops::append::Old;
use crate::ops::drive::Attempt;
use crate::ops::search::Probed;
use crate::ops::store::Store;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Stop};
use crate::record::{Burial, Form, Record};

impl Store {
    #[inline]
    pub(crate) fn remove<F: InPlace>(&self, key: &[u8]) -> Result<bool> {
        let key = F::key(key)?;
        let hash = F::hash(key);
        self.drive::<F, _>(|pin, fetched| self.remove_attempt::<F>(pin, fetched, hash, key))
    }

    fn remove_attempt<F: InPlace>(
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
}
