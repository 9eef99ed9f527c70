//! The operations that change something, as the engine does them: whether they are told is the
//! caller's matter.

use crate::error::{BatchError, Error, Result};
use crate::map::HashLog;
use crate::ops::by_layout;
use crate::ops::rmw::Rmw;
use crate::record::Form;
use crate::record::in_place::{InPlace, Write};
use crate::record::value::ValueMut;
use sapwood_engine::{Compute, Computed, Upsert};

impl HashLog {
    #[inline]
    pub(crate) fn put_untold(&self, key: &[u8], value: &[u8]) -> Result<()> {
        by_layout!(self, F => {
            let (key, hash) = self.checked::<F>(key, value)?;
            if self.store.put_quick::<F>(hash, key, value) {
                return Ok(());
            }
            self.store.drive::<F, _>(|pin, fetched| {
                self.store.put_attempt::<F>(pin, fetched, hash, key, value)
            })
        })
    }

    #[inline]
    pub(crate) fn put_if_absent_untold(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        by_layout!(self, F => {
            let (key, hash) = self.checked::<F>(key, value)?;
            self.store.drive::<F, _>(|pin, fetched| {
                self.store.put_if_absent_attempt::<F>(pin, fetched, hash, key, value)
            })
        })
    }

    #[inline]
    pub(crate) fn remove_untold(&self, key: &[u8]) -> Result<bool> {
        by_layout!(self, F => {
            let key = F::key(key)?;
            let hash = F::hash(key);
            self.store.drive::<F, _>(|pin, fetched| {
                self.store.remove_attempt::<F>(pin, fetched, hash, key)
            })
        })
    }

    #[inline]
    pub(crate) fn update_untold<R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut change = |value: &mut ValueMut<'_>| (change(value), Write::Changed);
        by_layout!(self, F => {
            let key = F::key(key)?;
            match self.rmw::<F, R>(key, None, &mut change)? {
                Rmw::Updated(answer) => Ok(Some(answer)),
                Rmw::Inserted | Rmw::Absent => Ok(None),
            }
        })
    }

    #[inline]
    pub(crate) fn put_if_absent_or_update_untold<R>(
        &self,
        key: &[u8],
        value: &[u8],
        mut change: impl FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let mut change = |value: &mut ValueMut<'_>| (change(value), Write::Changed);
        by_layout!(self, F => {
            let (key, _) = self.checked::<F>(key, value)?;
            match self.rmw::<F, R>(key, Some(value), &mut change)? {
                Rmw::Updated(answer) => Ok(Upsert::Updated(answer)),
                Rmw::Inserted | Rmw::Absent => Ok(Upsert::Inserted),
            }
        })
    }

    pub(crate) fn compare_and_put_untold(
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
        let done = by_layout!(self, F => {
            let (key, _) = self.checked::<F>(key, new)?;
            self.rmw::<F, bool>(key, None, &mut change)?
        });
        match refused {
            Some(error) => Err(error),
            None => Ok(matches!(done, Rmw::Updated(true))),
        }
    }

    pub(crate) fn compute_untold(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        by_layout!(self, F => self.store.compute::<F>(F::key(key)?, decide))
    }

    #[inline]
    pub(crate) fn add_untold(&self, key: &[u8], delta: i64) -> Result<i64> {
        by_layout!(self, F => {
            let (key, hash) = self.checked::<F>(key, &[0; 8])?;
            if let Some(sum) = self.store.add_quick::<F>(hash, key, delta) {
                return Ok(sum);
            }
            self.store.drive::<F, _>(|pin, fetched| {
                self.store.add_attempt::<F>(pin, fetched, hash, key, delta)
            })
        })
    }

    #[inline]
    pub(crate) fn put_many_untold<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
    ) -> std::result::Result<(), BatchError> {
        by_layout!(self, F => self.store.put_many::<F, K, V>(entries))
    }

    #[inline]
    pub(crate) fn add_many_untold<K: AsRef<[u8]>>(
        &self,
        deltas: &[(K, i64)],
        sum: &mut impl FnMut(usize, i64),
    ) -> std::result::Result<(), BatchError> {
        by_layout!(self, F => self.store.add_many::<F, K>(deltas, sum))
    }

    #[inline]
    pub(crate) fn update_each_untold<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> std::result::Result<usize, BatchError> {
        by_layout!(self, F => self.store.update_many::<F, K>(keys, change))
    }

    /// Checks both lengths; answers the key and its hash.
    #[inline]
    fn checked<'k, F: Form>(&self, key: &'k [u8], value: &[u8]) -> Result<(F::Key<'k>, u64)> {
        let key = F::key(key)?;
        F::check_value(key, value.len(), self.store.log.page_bytes)?;
        Ok((key, F::hash(key)))
    }

    #[inline]
    fn rmw<F: InPlace, R>(
        &self,
        key: F::Key<'_>,
        absent: Option<&[u8]>,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Result<Rmw<R>> {
        let hash = F::hash(key);
        if let Some(answer) = self.store.rmw_quick::<F, R>(hash, key, change) {
            return Ok(Rmw::Updated(answer));
        }
        self.store.drive::<F, _>(|pin, fetched| {
            self.store.rmw_attempt::<F, R>(pin, fetched, hash, key, absent, change)
        })
    }
}
