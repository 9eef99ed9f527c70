//! Values under change: a closure's view of a value, and the commit behind it.
//!
//! A [`Change`] holds the record's writer lock while the closure runs. The bytes
//! are the record's own if it has no readers, else a private copy; growing past
//! the slice's room moves to a larger private copy. Dropping the `Change`
//! commits what is there, also when the closure panicked: so a panic always
//! leaves exactly what was written until then.

use std::ops::{Deref, DerefMut, Range};

use sapwood_engine::Effect;
use sapwood_mem::reclaim::{Epoch, Guard};
use sapwood_mem::{Arena, SliceRef};

use crate::error::Result;
use crate::layout::record;
use crate::map::{ChunkMap, check_value};
use crate::node::chunk::Hit;
use crate::node::record::{Record, WriteLock, WriteMode};

/// A value under change, private to its closure. Dereferences to its bytes.
pub struct ValueMut<'a> {
    map: &'a ChunkMap,
    key: &'a [u8],
    place: &'a mut BytesPlace,
}

/// Where the bytes of a value under change are.
struct BytesPlace {
    base: *mut u8,
    len: usize,
    capacity: usize,
    /// The private record the bytes are in, if not in the published one.
    fresh: Option<SliceRef>,
    written: Written,
    /// The longest value for which the journal has room ...
    claimed_len: usize,
    /// ... and what it keeps for that.
    claimed: u64,
}

/// The bytes that a closure may have written.
#[derive(Debug, Clone)]
enum Written {
    Some(Range<usize>),
    All,
}

impl Written {
    const NOTHING: Written = Written::Some(0..0);

    fn add(&mut self, range: Range<usize>) {
        match self {
            Written::All => {}
            Written::Some(written) if Range::is_empty(written) => *written = range,
            Written::Some(written) => {
                *written = written.start.min(range.start)..written.end.max(range.end);
            }
        }
    }
}

impl ValueMut<'_> {
    /// The same value, for a shorter time: for a view that wraps this one.
    #[inline]
    pub fn reborrow(&mut self) -> ValueMut<'_> {
        ValueMut { map: self.map, key: self.key, place: self.place }
    }

    /// Sets the length; new bytes are zero.
    ///
    /// # Errors
    /// [`Error::ValueLength`](crate::Error::ValueLength), [`Error::Journal`](crate::Error::Journal)
    /// and [`Error::OutOfMemory`](crate::Error::OutOfMemory); the value is as before. At the memory
    /// budget, what was removed but is not yet free cannot be waited for inside of a closure, as it
    /// can in `put`: retry after the closure.
    #[inline]
    pub fn resize(&mut self, len: usize) -> Result<()> {
        check_value(len)?;
        if len > self.place.claimed_len {
            self.claim(len)?;
        }
        if len > self.place.capacity {
            self.grow(len)?;
        }
        if len != self.place.len {
            self.place.written = Written::All;
        }
        if len > self.place.len {
            // SAFETY: `len <= capacity`, and the bytes are this closure's alone.
            unsafe { self.place.base.add(self.place.len).write_bytes(0, len - self.place.len) };
        }
        self.place.len = len;
        Ok(())
    }

    /// Replaces the whole value.
    ///
    /// # Errors
    /// As of [`resize`](Self::resize).
    #[inline]
    pub fn set(&mut self, bytes: &[u8]) -> Result<()> {
        self.resize(bytes.len())?;
        self.copy_from_slice(bytes);
        Ok(())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// As of [`resize`](Self::resize).
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<()> {
        let len = self.place.len;
        self.resize(len.saturating_add(bytes.len()))?;
        self[len..].copy_from_slice(bytes);
        Ok(())
    }

    /// Writes bytes from `offset` on. A journal hears of them alone, if no more was written, and not of
    /// the whole value.
    ///
    /// # Panics
    /// Where they do not lie within the value.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let written = self.place.written.clone();
        let range = offset..offset + bytes.len();
        self[range.clone()].copy_from_slice(bytes);
        self.place.written = written;
        self.place.written.add(range);
    }

    /// Keeps room in the journal for a value of so many bytes.
    #[cold]
    fn claim(&mut self, len: usize) -> Result<()> {
        if let Some(journal) = self.map.journal() {
            self.place.claimed += journal.claim(len - self.place.claimed_len, 0)?;
        }
        self.place.claimed_len = len;
        Ok(())
    }

    /// Moves to a private record with room for `len` bytes and a little more, so
    /// that a value that grows step by step is not copied at every step.
    fn grow(&mut self, len: usize) -> Result<()> {
        let roomy = (len + len / 16).min(crate::VALUE_BYTES_MAX);
        self.move_to(roomy)
    }

    /// Moves to a private record with room for `capacity` bytes, at least `len`.
    fn move_to(&mut self, capacity: usize) -> Result<()> {
        let arena = &self.map.tree.arena;
        let slice = arena.alloc(record::bytes(self.key.len(), capacity))?;
        let base = arena.ptr(slice);
        // SAFETY: the new slice has room for key and value, and is ours alone.
        unsafe { Record::write(base, self.key, self) };
        if let Some(previous) = self.place.fresh.replace(slice) {
            // SAFETY: private, and replaced just now.
            unsafe { arena.free(previous) };
        }
        let offset = record::value_offset(self.key.len());
        // SAFETY: inside the slice.
        self.place.base = unsafe { base.add(offset) };
        self.place.capacity = arena.capacity(slice) - offset;
        Ok(())
    }
}

impl Deref for ValueMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: I-VALUE: `len` initialised bytes that only this closure touches: the record's
        // under the exclusive bit, or a private copy.
        unsafe { std::slice::from_raw_parts(self.place.base, self.place.len) }
    }
}

impl DerefMut for ValueMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.place.written = Written::All;
        // SAFETY: I-VALUE, as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.place.base, self.place.len) }
    }
}

impl std::fmt::Debug for ValueMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValueMut").field("len", &self.place.len).finish_non_exhaustive()
    }
}

/// A change under way; dropping it commits.
pub(crate) struct Change<'g> {
    map: &'g ChunkMap,
    guard: &'g Guard<'g>,
    /// Reached in this epoch: the closure runs without a pin.
    hit: Hit<'g>,
    epoch: Epoch,
    lock: Option<WriteLock<'g>>,
    key: &'g [u8],
    place: BytesPlace,
}

impl<'g> Change<'g> {
    /// Makes the bytes of a locked record ready for change. If that needs a copy
    /// and there is no memory, or the journal has no room for them, nothing has happened.
    pub(crate) fn begin(
        map: &'g ChunkMap,
        guard: &'g Guard<'g>,
        hit: Hit<'g>,
        mut lock: WriteLock<'g>,
    ) -> Result<Change<'g>> {
        let arena: &Arena = &map.tree.arena;
        let (key, len) = (lock.key(), lock.value_len());
        let capacity = arena.capacity(hit.slice) - record::value_offset(key.len());
        let in_place = lock.access() == WriteMode::InPlace;
        let base = if in_place { lock.value_ptr() } else { lock.value().as_ptr().cast_mut() };
        let (fresh, written) = (None, Written::NOTHING);
        let claim = map.journal().map(|journal| journal.claim(key.len() + len, 1)).transpose()?;
        let (claimed_len, claimed) = claim.map_or((usize::MAX, 0), |claimed| (len, claimed));
        let mut place = BytesPlace { base, len, capacity, fresh, written, claimed_len, claimed };
        if !in_place && let Err(refused) = (ValueMut { map, key, place: &mut place }).move_to(len) {
            map.give_back(claimed);
            return Err(refused);
        }
        Ok(Change { map, guard, hit, epoch: guard.epoch(), lock: Some(lock), key, place })
    }

    #[inline]
    pub(crate) fn value(&mut self) -> ValueMut<'_> {
        ValueMut { map: self.map, key: self.key, place: &mut self.place }
    }

    /// Tells what the closure wrote, while the record is still this thread's.
    #[inline]
    fn log(&mut self, lock: &mut WriteLock<'_>) {
        if !self.map.is_logged() {
            return;
        }
        let (map, written) = (self.map, self.place.written.clone());
        let value = self.value();
        match written {
            Written::Some(range) if range.is_empty() => {}
            Written::Some(range) if range.len() <= value.len() / 2 => {
                map.log(lock, Effect::Write { offset: range.start, bytes: &value[range] });
            }
            Written::Some(_) | Written::All => map.log(lock, Effect::Put(&value)),
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let mut lock = self.lock.take().expect("taken only here");
        let (old_len, new_len) = (lock.value_len(), self.place.len);
        let wanted = record::bytes(self.key.len(), new_len);
        let capacity = self.map.tree.arena.capacity(self.place.fresh.unwrap_or(self.hit.slice));
        if !suits(capacity, wanted) {
            // It shrank a lot. Without memory for a smaller one it keeps its slice.
            let _ = self.value().move_to(new_len);
        }
        self.log(&mut lock);
        match self.place.fresh {
            None => {
                lock.set_value_len(new_len);
                drop(lock);
            }
            Some(fresh) => {
                let base = self.map.tree.arena.ptr(fresh);
                // SAFETY: private until `supersede` publishes it.
                unsafe { Record::set_value_len(base, self.key.len(), new_len) };
                let hit = self.map.still(self.guard, self.epoch, self.hit, self.key);
                self.map.supersede(self.guard, hit, lock, fresh);
            }
        }
        self.map.counters.resized(old_len, new_len);
        self.map.give_back(self.place.claimed);
    }
}

/// Is a slice of `capacity` right for a record of `wanted` bytes: large enough,
/// and not so large that it wastes more than a quarter?
pub(crate) fn suits(capacity: usize, wanted: usize) -> bool {
    const SLACK_BYTES: usize = 64;
    wanted <= capacity && capacity - wanted <= SLACK_BYTES.max(capacity / 4)
}
