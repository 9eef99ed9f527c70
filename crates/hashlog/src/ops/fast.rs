//! The fast half of operations on fixed records: they end at first sight, in the caller's own code.
//!
//! Beyond the cache the rate of single operations is the processor's look-ahead, in instructions,
//! over those of an operation (`docs/design/hashlog.md`): so each of them counts, and
//! `crates/instructions` counts them. These make no call but of a user's closure: a call, however
//! seldom it is made, has its caller save, on each way, what it needs behind it. So a key that an
//! overflow bucket names, or that another thread holds, is not found here, nor is it by a thread that
//! has never pinned itself. What does not end here has changed nothing, and begins again in the slow half.

use sapwood_mem::epoch::Pin;
use sapwood_mem::sync::Ordering;

use crate::ops::store::Store;
use crate::record::in_place::{InPlace, Write};
use crate::record::value::ValueMut;
use crate::record::{Fixed, Form, Record};

impl Store {
    /// The value of a key.
    #[inline(always)]
    pub(crate) fn get_fast(&self, hash: u64, key: u64) -> Option<[u8; 8]> {
        if !Fixed::READS_UNPINNED {
            return None;
        }
        self.log.read_unpinned(self.index.look(hash), |record| {
            let is_it = Fixed::has_key(record, key) && !record.is_tombstone();
            // Acquire: pairs with the Release of the last writer.
            is_it.then(|| record.fixed_value().load(Ordering::Acquire).to_le_bytes())
        })
    }

    /// Puts a value; true if it did.
    #[inline(always)]
    pub(crate) fn put_fast(&self, hash: u64, key: u64, value: u64) -> bool {
        let Some(pin) = self.log.epochs.pin_at_once() else { return false };
        let Some(record) = self.writable_fast(&pin, hash, key) else { return false };
        // Release: pairs with the Acquire of gets.
        record.fixed_value().store(value, Ordering::Release);
        true
    }

    /// Adds to a counter; the sum, if there is one.
    #[inline(always)]
    pub(crate) fn add_fast(&self, hash: u64, key: u64, delta: i64) -> Option<i64> {
        let pin = self.log.epochs.pin_at_once()?;
        let record = self.writable_fast(&pin, hash, key)?;
        Fixed::add_atomically(record, delta)
    }

    /// Changes a value.
    #[inline(always)]
    pub(crate) fn rmw_fast<R>(
        &self,
        hash: u64,
        key: u64,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Option<R> {
        let pin = self.log.epochs.pin_at_once()?;
        let record = self.writable_fast(&pin, hash, key)?;
        Fixed::update_atomically(record, change)
    }

    /// The record of a key, if it may be written in place.
    #[inline(always)]
    fn writable_fast(&self, pin: &Pin<'_>, hash: u64, key: u64) -> Option<Record> {
        // Before the index: see `Store::look`.
        let from = self.log.read_only();
        let first = self.index.look(hash);
        // NONE is below every boundary.
        if first < from {
            return None;
        }
        self.writable_record_of::<Fixed>(pin, first, key)
    }
}
