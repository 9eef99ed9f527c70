//! Appends: a new record at the tail becomes the newest of its chain.

use sapwood_mem::epoch::Pin;

use crate::error::{Error, no_memory};
use crate::index::{Insert, SlotRef};
use crate::ops::drive::Attempt;
use crate::ops::store::Store;
use crate::record::address::{Address, UNIT_BYTES};
use crate::record::in_place::Stop;
use crate::record::layout::control;
use crate::record::{Form, Record};

/// The record that an append replaced, at the moment when it was marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Old {
    /// It was not in memory, or no tombstone.
    Present,
    /// It was a tombstone.
    Absent,
}

impl Store {
    /// Writes a new record of a key at the tail and makes it the newest of its chain.
    ///
    /// `old` is the key's record so far where it is in memory; the caller holds its lock where the
    /// layout has one. Else a removal in place that began while the record was mutable may bury it
    /// until it is marked as superseded: that removal counts as just before, and the answer tells.
    /// The linearization point is the publication in the chain's slot.
    #[inline]
    pub(crate) fn append<F: Form>(
        &self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        value: Option<&[u8]>,
        place: Option<SlotRef<'_>>,
        old: Option<(Record, Address)>,
    ) -> Attempt<Old> {
        let bytes = F::bytes(key, value.map_or(0, <[u8]>::len));
        let address = self.log.alloc(bytes)?;
        debug_assert_eq!(
            self.log.page_of(address),
            self.log.page_of(address.plus(bytes - UNIT_BYTES)),
            "a record lies in one page"
        );
        let record = self.log.record(pin, address);
        let flags = if value.is_some() { 0 } else { control::TOMBSTONE };
        // Known by now to a thread that allocated above a snapshot's boundary.
        let late = self.log.has_snapshots();
        let previous = match (place, old) {
            (None, _) => Address::NONE,
            // A chain in memory need not keep what no search needs any more.
            (Some(place), Some((old, at)))
                if at == place.address() && !late && self.log.parts.is_none() =>
            {
                old.previous()
            }
            (Some(place), _) => place.address(),
        };
        F::write(record, flags, previous, key, value.unwrap_or(&[]));
        let published = match place {
            // Addresses of a key only grow, so that a cut of the log is a cut of its history.
            Some(place) => place.address() < address && place.publish(address),
            None => match self.index.insert(hash, address, &self.log.epochs, self.may_extend()) {
                Ok(Insert::Done) => true,
                Ok(Insert::Full) => {
                    self.grow::<F>(pin);
                    true
                }
                Ok(Insert::Raced) => false,
                Ok(Insert::Crowded) => self.index.share_slot(hash, address, |previous| {
                    // Chains of several keys are read through: fewer slots for more reads.
                    F::write(record, flags, previous, key, value.unwrap_or(&[]));
                }),
                Err(cause) => {
                    self.abandon::<F>(record);
                    let used = self.log.mapped_bytes() + self.bytes_beside();
                    return Err(no_memory(used)(cause).into());
                }
            },
        };
        if !published {
            self.abandon::<F>(record);
            // A walk of this thread's own may be what is in the way.
            let own = place.is_none() && !pin.is_outermost() && !self.may_extend();
            return Err(if own { Error::WouldBlock.into() } else { Stop::Raced });
        }
        let late = if late { control::LATE } else { 0 };
        Ok(old.map_or(Old::Present, |(old, _)| self.drop_record::<F>(old, late)))
    }

    /// Marks a record that was never published.
    fn abandon<F: Form>(&self, record: Record) {
        record.abandon();
        self.garbage.add(F::bytes_of(record) as i64);
    }

    /// Marks a record that is not the newest of its key any more. Answers what it was.
    fn drop_record<F: Form>(&self, record: Record, flags: u64) -> Old {
        let before = record.supersede(flags);
        if before & control::SUPERSEDED == 0 {
            self.garbage.add(F::bytes_of(record) as i64);
        }
        match before & control::TOMBSTONE {
            0 => Old::Present,
            _ => Old::Absent,
        }
    }
}
