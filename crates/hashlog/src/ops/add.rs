//! Add: a read-modify-write of a counter.

use sapwood_mem::epoch::Pin;

use crate::error::{Error, Result};
use crate::log::cold::Fetched;
use crate::ops::drive::Attempt;
use crate::ops::rmw::Rmw;
use crate::ops::store::Store;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Write};

impl Store {
    /// Adds to a counter, of which an absent one counts as 0; the sum.
    #[inline]
    pub(crate) fn add<F: InPlace>(&self, key: &[u8], delta: i64) -> Result<i64> {
        let (key, hash) = self.checked::<F>(key, size_of::<i64>())?;
        if let Some(sum) = self.add_by_look::<F>(hash, key, delta) {
            return Ok(sum);
        }
        self.drive::<F, _>(|pin, fetched| self.add_attempt::<F>(pin, fetched, hash, key, delta))
    }

    /// Adds to a counter that is found at first sight.
    #[inline(always)]
    fn add_by_look<F: InPlace>(&self, hash: u64, key: F::Key<'_>, delta: i64) -> Option<i64> {
        let pin = self.log.epochs.pin_quick()?;
        let first = self.look(&pin, hash, self.log.read_only())?;
        self.add_first::<F>(&pin, first, key, delta)
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
