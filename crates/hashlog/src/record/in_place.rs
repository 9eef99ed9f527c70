//! Changes of a record where it lies, for each layout.

use sapwood_mem::sync::Ordering;

use crate::error::Error;
use crate::record::address::Address;
use crate::record::layout::control;
use crate::record::value::{Held, ValueMut};
use crate::record::{Fixed, Form, Record, Variable, Writer};

/// Changes of values where they lie, by layout.
pub(crate) trait InPlace: Form {
    /// The lock of a writer while it replaces a record.
    type Lock;

    /// Locks a record in memory against other writers; `Raced` if it is not the newest any more.
    fn lock(record: Record) -> std::result::Result<Self::Lock, Stop>;
    /// Puts a value into a mutable record; false if it must be appended.
    fn put(record: Record, value: &[u8]) -> std::result::Result<bool, Stop>;
    /// Changes a value in the mutable region by atomic instructions alone: what the closure
    /// answered, or `None` where the layout has none.
    fn update_atomically<R>(
        record: Record,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Option<R>;
    /// Adds to a counter in the mutable region by one atomic instruction: the sum, or `None` where
    /// it would overflow or the layout has no such instruction.
    fn add_atomically(record: Record, delta: i64) -> Option<i64>;
    /// The flag of a record that a thread holds: see `ops::compute`. Zero where there are locks.
    const HELD: u64;
    /// Refuses to write to a record in place while another thread holds it, or has buried it.
    #[inline]
    fn admit(record: Record) -> std::result::Result<(), Stop> {
        if Self::HELD == 0 {
            return Ok(());
        }
        // One load: the holder buries a record before it lets go of it.
        let flags = record.flags();
        match (flags & control::TOMBSTONE, flags & Self::HELD) {
            (0, 0) => Ok(()),
            (0, _) => Err(Stop::Held(record.identity())),
            _ => Err(Stop::Raced),
        }
    }
    /// Whether an append must wait until a record has left the fuzzy region.
    const WAITS_WHILE_FUZZY: bool;
    /// The value of a locked record, copied.
    fn copy_value(record: Record, lock: &Self::Lock, into: &mut Vec<u8>);
    /// Writes back under the lock; false if it must be appended.
    fn write_back(lock: &Self::Lock, value: &[u8]) -> bool;
    /// The note of the lock while a user's closure runs under it.
    fn hold(lock: &Self::Lock) -> Option<Held>;
    /// Shortest and longest value beside this key.
    fn value_limits(key: Self::Key<'_>, page_bytes: usize) -> (usize, usize);
}

/// Whether a closure changed the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Changed,
    Unchanged,
}

impl InPlace for Fixed {
    type Lock = ();
    const HELD: u64 = control::EXCLUSIVE;
    const WAITS_WHILE_FUZZY: bool = true;

    fn lock(_: Record) -> std::result::Result<(), Stop> {
        Ok(())
    }

    #[inline]
    fn put(record: Record, value: &[u8]) -> std::result::Result<bool, Stop> {
        let value = u64::from_le_bytes(value.try_into().expect("checked length"));
        // Release: pairs with the Acquire of gets.
        record.fixed_value().store(value, Ordering::Release);
        Ok(true)
    }

    #[inline]
    fn update_atomically<R>(
        record: Record,
        change: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Option<R> {
        let word = record.fixed_value();
        // Acquire: pairs with the Release of the last writer.
        let mut before = word.load(Ordering::Acquire);
        loop {
            let mut bytes = before.to_le_bytes();
            let (result, write) = change(&mut ValueMut::of_word(&mut bytes));
            if write == Write::Unchanged {
                return Some(result);
            }
            let after = u64::from_le_bytes(bytes);
            // AcqRel: pairs with the Acquire of gets and the Release of the last writer.
            match word.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(result),
                Err(now) => before = now,
            }
        }
    }

    /// By compare-and-exchange, and not by `fetch_add` behind a look that finds the counter far from
    /// the ends of `i64`: adds alone would take 2^22 threads between look and addition to get there
    /// from 2^62 by steps of 2^40, but a put or an update stores in one step what it likes. After a
    /// put of `i64::MAX` in between, the addition would wrap, and every thread see it
    /// (`loom_add_beside_put_of_the_most`).
    #[inline(always)]
    fn add_atomically(record: Record, delta: i64) -> Option<i64> {
        let word = record.fixed_value();
        // Acquire: pairs with the Release of the last writer.
        let mut before = word.load(Ordering::Acquire);
        loop {
            let sum = (before as i64).checked_add(delta)?;
            // AcqRel: pairs with the Acquire of gets and the Release of the last writer.
            match word.compare_exchange(before, sum as u64, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(sum),
                Err(now) => before = now,
            }
        }
    }

    fn copy_value(record: Record, (): &(), into: &mut Vec<u8>) {
        // Acquire: pairs with the Release of the last writer.
        into.extend_from_slice(&record.fixed_value().load(Ordering::Acquire).to_le_bytes());
    }

    fn write_back((): &(), _: &[u8]) -> bool {
        false
    }

    fn hold((): &()) -> Option<Held> {
        None
    }

    fn value_limits(_: u64, _: usize) -> (usize, usize) {
        (8, 8)
    }
}

impl InPlace for Variable {
    type Lock = Writer;
    const HELD: u64 = 0;
    const WAITS_WHILE_FUZZY: bool = false;

    fn lock(record: Record) -> std::result::Result<Writer, Stop> {
        let lock = record.try_lock().ok_or_else(|| Stop::Locked(record.identity()))?;
        if lock.is_current() { Ok(lock) } else { Err(Stop::Raced) }
    }

    fn put(record: Record, value: &[u8]) -> std::result::Result<bool, Stop> {
        Ok(Self::lock(record)?.try_write(value))
    }

    fn update_atomically<R>(
        _: Record,
        _: &mut impl FnMut(&mut ValueMut<'_>) -> (R, Write),
    ) -> Option<R> {
        None
    }

    fn add_atomically(_: Record, _: i64) -> Option<i64> {
        None
    }

    fn copy_value(_: Record, lock: &Writer, into: &mut Vec<u8>) {
        into.extend_from_slice(lock.value());
    }

    fn write_back(lock: &Writer, value: &[u8]) -> bool {
        lock.try_write(value)
    }

    fn hold(lock: &Writer) -> Option<Held> {
        Some(Held::new(lock.identity()))
    }

    fn value_limits(key: &[u8], page_bytes: usize) -> (usize, usize) {
        match Self::check_value(key, usize::MAX, page_bytes) {
            Err(Error::ValueLength { max, .. }) => (0, max),
            _ => (0, 0),
        }
    }
}

/// The reason why an attempt cannot go on.
pub(crate) enum Stop {
    /// The tail's page is full.
    PageFull,
    /// The record at this address lies in the fuzzy region: threads that were pinned before
    /// `read_only` moved past it may still change it.
    Fuzzy(Address),
    /// Another writer has this record.
    Locked(usize),
    /// Another thread holds this record, and waits for pinned threads.
    Held(usize),
    /// Threads that were pinned before this epoch may still write to the record in place.
    Pinned(u64),
    /// An edit changes records around this address in place.
    Edited(Address),
    /// The record at this address is not in memory.
    Cold(Address),
    /// Another thread was first.
    Raced,
    /// Boxed, since every attempt's answer has room for it.
    Failed(Box<Error>),
}

impl From<Error> for Stop {
    #[cold]
    fn from(error: Error) -> Stop {
        Stop::Failed(Box::new(error))
    }
}
