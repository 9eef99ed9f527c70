//! A value under change.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};

use sapwood_mem::reentry::HeldLocks;

use crate::error::{Error, Result};

/// A value under change, in a closure of `update`: a copy that takes the value's place, in one step
/// for every reader, when the closure returns. If the closure panics the value is as before.
pub struct ValueMut<'a> {
    bytes: Bytes<'a>,
}

enum Bytes<'a> {
    Word(&'a mut [u8; 8]),
    Any { bytes: &'a mut Vec<u8>, min: usize, max: usize },
}

/// A change of a value, as an operation takes it from its caller.
pub(crate) type ChangeValue<'c> = dyn FnMut(&mut ValueMut<'_>) + 'c;

impl<'a> ValueMut<'a> {
    pub(crate) fn of_word(word: &'a mut [u8; 8]) -> ValueMut<'a> {
        ValueMut { bytes: Bytes::Word(word) }
    }

    pub(crate) fn of_bytes(bytes: &'a mut Vec<u8>, min: usize, max: usize) -> ValueMut<'a> {
        ValueMut { bytes: Bytes::Any { bytes, min, max } }
    }

    /// The same value, for a shorter time: for a view that wraps this one.
    #[inline]
    pub fn reborrow(&mut self) -> ValueMut<'_> {
        let bytes = match &mut self.bytes {
            Bytes::Word(word) => Bytes::Word(word),
            Bytes::Any { bytes, min, max } => Bytes::Any { bytes, min: *min, max: *max },
        };
        ValueMut { bytes }
    }

    /// Replaces the whole value.
    ///
    /// # Errors
    /// [`Error::ValueLength`] if the table does not take that length; nothing is changed.
    #[inline]
    pub fn set(&mut self, value: &[u8]) -> Result<()> {
        self.resize(value.len())?;
        self.copy_from_slice(value);
        Ok(())
    }

    /// Cuts the value, or grows it with zero bytes.
    ///
    /// # Errors
    /// As [`ValueMut::set`].
    #[inline]
    pub fn resize(&mut self, len: usize) -> Result<()> {
        match &mut self.bytes {
            Bytes::Word(_) if len == 8 => Ok(()),
            Bytes::Word(_) => Err(Error::ValueLength { len, min: 8, max: 8 }),
            Bytes::Any { bytes, min, max } if (*min..=*max).contains(&len) => {
                bytes.resize(len, 0);
                Ok(())
            }
            Bytes::Any { min, max, .. } => Err(Error::ValueLength { len, min: *min, max: *max }),
        }
    }

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// As [`ValueMut::set`].
    #[inline]
    pub fn extend_from_slice(&mut self, tail: &[u8]) -> Result<()> {
        let before = self.len();
        self.resize(before + tail.len())?;
        self[before..].copy_from_slice(tail);
        Ok(())
    }
}

impl Deref for ValueMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Word(word) => &word[..],
            Bytes::Any { bytes, .. } => bytes,
        }
    }
}

impl DerefMut for ValueMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            Bytes::Word(word) => &mut word[..],
            Bytes::Any { bytes, .. } => bytes,
        }
    }
}

impl std::fmt::Debug for ValueMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Calls `work` with this thread's buffer, so that an update allocates nothing in steady state.
/// Nested calls get buffers of their own.
pub(crate) fn with_scratch<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    thread_local! {
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    /// Kept for the next call unless it is this large.
    const KEPT_BYTES_MAX: usize = 64 << 10;
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    let result = work(&mut scratch);
    if scratch.capacity() <= KEPT_BYTES_MAX {
        // A thread that is ending keeps nothing.
        let _kept = SCRATCH.try_with(|kept| kept.set(scratch));
    }
    result
}

thread_local! {
    /// The records whose writer lock this thread holds while a user's closure runs.
    static HELD: RefCell<HeldLocks> = const { RefCell::new(HeldLocks::new()) };
}

/// Notes that a closure runs under a record's lock.
pub(crate) struct Held(usize);

impl Held {
    pub(crate) fn new(identity: usize) -> Held {
        HELD.with(|held| held.borrow_mut().push(identity));
        Held(identity)
    }

    /// The reason why this thread must not wait for the lock of a record, if there is one.
    pub(crate) fn refusal(identity: usize) -> Option<Error> {
        HELD.with(|held| {
            let held = held.borrow();
            match held.contains(identity) {
                true => Some(Error::Reentrant),
                false if held.is_empty() => None,
                false => Some(Error::WouldBlock),
            }
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.with(|held| held.borrow_mut().remove(self.0));
    }
}
