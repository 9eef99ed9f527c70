//! Put: a value in place, or in a new record at the tail; unconditionally, or unless the key is there.

use sapwood_mem::epoch::Pin;

use crate::error::Result;
use crate::log::cold::Fetched;
use crate::ops::append::Old;
use crate::ops::drive::Attempt;
use crate::ops::search::{Found, Probed};
use crate::ops::store::Store;
use crate::record::Form;
use crate::record::address::Address;
use crate::record::in_place::InPlace;

impl Store {
    /// The key as its layout has it, and its hash, if the store takes it with a value of so many bytes.
    #[inline]
    pub(crate) fn checked<'k, F: Form>(
        &self,
        key: &'k [u8],
        value_len: usize,
    ) -> Result<(F::Key<'k>, u64)> {
        let key = F::key(key)?;
        F::check_value(key, value_len, self.log.page_bytes)?;
        Ok((key, F::hash(key)))
    }

    #[inline]
    pub(crate) fn put<F: InPlace>(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key, hash) = self.checked::<F>(key, value.len())?;
        if self.put_by_look::<F>(hash, key, value) {
            return Ok(());
        }
        self.drive::<F, _>(|pin, fetched| self.put_attempt::<F>(pin, fetched, hash, key, value))
    }

    #[inline]
    pub(crate) fn put_if_absent<F: InPlace>(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let (key, hash) = self.checked::<F>(key, value.len())?;
        self.drive::<F, _>(|pin, fetched| {
            self.put_if_absent_attempt::<F>(pin, fetched, hash, key, value)
        })
    }

    /// Puts a value in place where the key is found at first sight; true if it did.
    #[inline(always)]
    fn put_by_look<F: InPlace>(&self, hash: u64, key: F::Key<'_>, value: &[u8]) -> bool {
        if let Some(pin) = self.log.epochs.pin_quick()
            && let Some(first) = self.look(&pin, hash, self.log.read_only())
        {
            return self.put_first::<F>(&pin, first, key, value);
        }
        false
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

    pub(super) fn put_attempt<F: InPlace>(
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

    fn put_if_absent_attempt<F: InPlace>(
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
}
