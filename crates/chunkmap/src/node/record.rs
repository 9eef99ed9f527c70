//! Records: header, key and value, and the locks of a record's readers and writers.
//!
//! | shared word | written by | read by |
//! |---|---|---|
//! | header | reader: readers +1 (Acquire), -1 (Release) | writer: readers, before it goes exclusive |
//! | | writer: writer and exclusive bit on (SeqCst), off with the new length (Release) | readers and writers |
//! | | mover: writer and moving bit on (Acquire), off (Release) | writers |
//! | | remover, replacer of a map with a journal: exclusive and moving bit on (Relaxed), which closes the record | readers and writers |
//! | | remover, replacer: dead bit (Release), once | every thread, before use |
//!
//! *Thread safety*: a `Record` may be used by any number of threads.
//!
//! *Invariants*
//! - I-PINNED: a thread that holds a `Record<'g>` is pinned for `'g`, so its slice is not freed.
//! - I-HELD: a record is not freed while a reader is inside or a writer has it, pinned or not. The
//!   reclaimer asks for readers; a record that a writer has is retired by that writer alone
//!   (I-OWNER).
//! - I-KEY: key and key length never change after the record was published.
//! - I-VALUE: the value's bytes change only while the exclusive bit is on, which
//!   excludes readers, and after the writer has seen that no reader has declared the record
//!   (I-DECLARED, `hazards`); or before the record is published.
//! - I-CLOSED: from before a journal hears of a change until the change is made, no reader goes into the record: one that
//!   is removed or superseded is dead then. So a thread that has heard of the change from the journal finds what it left.
//! - I-OWNER: while the writer bit is on, only its holder changes the entry word
//!   that names the record (besides freezing it), and the dead bit.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use sapwood_mem::sync::{self, Ordering, RawAtomicU64};

use crate::error::Error;
use crate::layout::record::{
    self, CROWDED, DEAD, EXCLUSIVE, HEADER_BYTES, KEY_LEN_BITS, MOVING, READER, READERS_BITS,
    READERS_MAX, READERS_SHIFT, VALUE_LEN_BITS, VALUE_LEN_SHIFT, WRITER, value_offset,
};
use crate::node::hazard_pointers::HazardPointers;
use crate::node::reentrancy::{Held, may_wait};

/// The header word, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header(u64);

impl Header {
    fn fresh(key_len: usize, value_len: usize) -> Header {
        Header((key_len as u64 - 1) | (value_len as u64) << VALUE_LEN_SHIFT)
    }

    fn key_len(self) -> usize {
        (self.0 & ((1 << KEY_LEN_BITS) - 1)) as usize + 1
    }

    fn value_len(self) -> usize {
        (self.0 >> VALUE_LEN_SHIFT & ((1 << VALUE_LEN_BITS) - 1)) as usize
    }

    fn readers(self) -> u64 {
        self.0 >> READERS_SHIFT & ((1 << READERS_BITS) - 1)
    }

    fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }
}

/// A published record, while its reader is pinned.
#[derive(Clone, Copy)]
pub(crate) struct Record<'g> {
    base: *mut u8,
    pinned: PhantomData<&'g ()>,
}

/// The outcome of going into a record.
pub(crate) enum Entered<T> {
    Inside(T),
    /// Removed or superseded: look the key up again.
    Dead,
    /// Another thread's closure has the record, for as long as it likes. The caller lets go of its
    /// pin while it waits.
    Busy,
}

/// How a writer got hold of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Alone with the bytes: change them in place.
    InPlace,
    /// Readers are inside: change a copy, and swap it in.
    Copy,
}

impl<'g> Record<'g> {
    /// # Safety
    /// `base` is the start of a record in a slice that stays live for `'g`.
    #[inline]
    pub(crate) unsafe fn new(base: *mut u8) -> Record<'g> {
        Record { base, pinned: PhantomData }
    }

    /// Writes a record that is not published yet.
    ///
    /// # Safety
    /// `base` starts a live slice of the caller's own with room for the record.
    pub(crate) unsafe fn write(base: *mut u8, key: &[u8], value: &[u8]) {
        // SAFETY: the caller's slice has room for header, padded key and value.
        unsafe {
            RawAtomicU64::init(base.cast(), Header::fresh(key.len(), value.len()).0);
            sync::write_bytes(base.add(HEADER_BYTES));
            if !value.is_empty() {
                sync::write_bytes(base.add(value_offset(key.len())));
            }
            base.add(HEADER_BYTES).copy_from_nonoverlapping(key.as_ptr(), key.len());
            base.add(value_offset(key.len())).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
    }

    /// Sets the value's length in a record that is not published yet.
    ///
    /// # Safety
    /// As of [`Record::write`], which was called before.
    pub(crate) unsafe fn set_value_len(base: *mut u8, key_len: usize, value_len: usize) {
        // SAFETY: the caller's.
        unsafe { RawAtomicU64::init(base.cast(), Header::fresh(key_len, value_len).0) };
    }

    #[inline]
    fn header(&self) -> &'g RawAtomicU64 {
        // SAFETY: I-PINNED; `write` made the header valid.
        unsafe { &*self.base.cast::<RawAtomicU64>() }
    }

    #[inline]
    fn load(&self, order: Ordering) -> Header {
        Header(self.header().load(order))
    }

    /// The key.
    #[inline]
    pub(crate) fn key(&self) -> &'g [u8] {
        let key_len = self.load(Ordering::Relaxed).key_len();
        // SAFETY: I-PINNED, I-KEY.
        unsafe {
            let base = self.base.add(HEADER_BYTES);
            sync::read_bytes(base);
            std::slice::from_raw_parts(base, key_len)
        }
    }

    /// Where it is, for a mark.
    #[inline]
    pub(crate) fn address(&self) -> *const u8 {
        self.base
    }

    /// Whether it is removed or superseded.
    #[inline]
    pub(crate) fn is_dead(&self) -> bool {
        // Acquire: pairs with the Release in `WriteLock::bury`, so that a thread that sees a
        // superseded record dead also sees the entry word that names its successor.
        self.load(Ordering::Acquire).has(DEAD)
    }

    /// The value's length, if no thread holds the record in any way.
    pub(crate) fn idle_value_len(&self) -> Option<usize> {
        // Acquire: pairs with the Release of the last writer.
        let header = self.load(Ordering::Acquire);
        let idle = header == Header::fresh(header.key_len(), header.value_len());
        idle.then(|| header.value_len())
    }

    #[inline]
    fn value_ptr(&self, key_len: usize) -> *mut u8 {
        // SAFETY: I-PINNED or I-HELD, as the caller has it; inside the record's slice.
        unsafe { self.base.add(value_offset(key_len)) }
    }

    /// Goes in as a reader. Busy only while this very value is being changed in place.
    ///
    /// Linearization point of every read: the successful exchange.
    #[inline]
    pub(crate) fn try_read(&self) -> Result<Entered<ReadLock<'g>>, Error> {
        let mut header = self.load(Ordering::Relaxed);
        while header.0 & (DEAD | EXCLUSIVE | CROWDED) == 0 {
            match self.try_enter(header) {
                Ok(lock) => return Ok(Entered::Inside(lock)),
                Err(now) => header = now,
            }
        }
        self.try_read_slow(header)
    }

    /// Goes in as a reader, if the first try succeeds: the answer fits into registers.
    #[inline]
    pub(crate) fn try_read_quick(&self) -> Option<ReadLock<'g>> {
        let header = self.load(Ordering::Relaxed);
        if header.0 & (DEAD | EXCLUSIVE | CROWDED) != 0 {
            return None;
        }
        self.try_enter(header).ok()
    }

    /// Goes in from this very header, or says which there is instead.
    #[inline]
    fn try_enter(&self, header: Header) -> Result<ReadLock<'g>, Header> {
        // Acquire: pairs with the Release that ended the last change.
        let entered = self.header().compare_exchange(
            header.0,
            header.0 + READER,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        entered.map_err(Header)?;
        let value = self.value_ptr(header.key_len());
        Ok(ReadLock { record: *self, value, value_len: header.value_len() })
    }

    #[cold]
    fn try_read_slow(&self, mut header: Header) -> Result<Entered<ReadLock<'g>>, Error> {
        loop {
            if header.has(DEAD) {
                return Ok(Entered::Dead);
            }
            if header.has(EXCLUSIVE) {
                // A record that is closed is dead soon: waiting for that closes no circle.
                if !header.has(MOVING) {
                    may_wait(self.base)?;
                }
                return Ok(Entered::Busy);
            }
            if header.readers() == READERS_MAX {
                // Readers of a crowded record leave as soon as they have their copies.
                return Ok(Entered::Busy);
            }
            match self.try_enter(header) {
                Ok(lock) if header.has(CROWDED) => return Ok(Entered::Inside(lock.into_copy())),
                Ok(lock) => return Ok(Entered::Inside(lock)),
                Err(now) => header = now,
            }
        }
    }

    #[inline]
    fn leave(&self) {
        let mut header = self.load(Ordering::Relaxed);
        // A record of the map has the exclusive bit of a writer: a copy alone has it without one.
        while !header.has(EXCLUSIVE) || header.has(WRITER) {
            debug_assert!(header.readers() > 0, "a reader leaves once");
            // Release: pairs with the Acquire of a writer that finds no reader inside, and of the
            // reclaimer, which may free a dead record at once.
            match self.header().compare_exchange(
                header.0,
                header.0 - READER,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => header = Header(now),
            }
        }
        // SAFETY: a copy has one reader, which leaves once.
        unsafe { free_copy(self.base, header) };
    }

    /// Key and value as they lie there; `None` if the record is dead, or a writer is changing it in place.
    ///
    /// # Safety
    /// The caller has declared the record ([`HazardPointers`]) since it reached it under its pin, and reads the value no longer
    /// than that.
    #[inline]
    pub(crate) unsafe fn read_declared(&self) -> Option<(&'g [u8], &'g [u8])> {
        // Acquire: pairs with the Release that ended the last change.
        let header = self.load(Ordering::Acquire);
        if header.0 & (DEAD | EXCLUSIVE) != 0 {
            return None;
        }
        let (key_len, value_len) = (header.key_len(), header.value_len());
        // SAFETY: I-PINNED, I-KEY.
        let key = unsafe { self.base.add(HEADER_BYTES) };
        let value = self.value_ptr(key_len);
        sync::read_bytes(key);
        if value_len > 0 {
            sync::read_bytes(value);
        }
        // SAFETY: I-PINNED, I-KEY; I-DECLARED: the header had no X, and the caller declared the record before.
        unsafe {
            Some((
                std::slice::from_raw_parts(key, key_len),
                std::slice::from_raw_parts(value, value_len),
            ))
        }
    }

    /// Whether a reader is inside of the record at `base`. Of a dead record the answer no is final.
    ///
    /// # Safety
    /// `base` is the start of a record in a live slice.
    pub(crate) unsafe fn is_read(base: *const u8) -> bool {
        // SAFETY: the caller's.
        let record = unsafe { Record::new(base.cast_mut()) };
        // Acquire: pairs with the Release in `leave`.
        record.load(Ordering::Acquire).readers() > 0
    }

    /// Takes the writer bit, with the bytes if no reader is inside and none has declared the record. Busy while another
    /// writer has it.
    #[inline]
    pub(crate) fn try_write_in_place(
        &self,
        hazards: &HazardPointers,
    ) -> Result<Entered<WriteLock<'g>>, Error> {
        self.take_writer(WriteMode::InPlace, |record| record.is_shared(hazards))
    }

    /// As [`try_write_in_place`](Self::try_write_in_place), of a record that no other thread knows.
    pub(crate) fn try_write_unpublished(&self) -> Result<Entered<WriteLock<'g>>, Error> {
        self.take_writer(WriteMode::InPlace, |_| false)
    }

    /// Takes the writer bit and leaves the bytes to the readers. Busy while another writer has it.
    pub(crate) fn try_write_shared(&self) -> Result<Entered<WriteLock<'g>>, Error> {
        self.take_writer(WriteMode::Copy, |_| false)
    }

    /// Takes the writer bit to copy the record elsewhere, and leaves the bytes to
    /// the readers; `None` if the record is dead or in another writer's hands.
    pub(crate) fn try_move(&self) -> Option<WriteLock<'g>> {
        let mut header = self.load(Ordering::Relaxed);
        loop {
            if header.has(DEAD) || header.has(WRITER) {
                return None;
            }
            let taken = header.0 | WRITER | MOVING;
            // Acquire: as in `take_writer`.
            match self.header().compare_exchange(
                header.0,
                taken,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(self.locked(header, WriteMode::Copy)),
                Err(now) => header = Header(now),
            }
        }
    }

    #[inline]
    fn locked(&self, header: Header, access: WriteMode) -> WriteLock<'g> {
        WriteLock {
            record: *self,
            access,
            key_len: header.key_len(),
            value_len: header.value_len(),
            buried: false,
            _held: Held::new(self.base),
        }
    }

    /// Whether a reader may have declared the record (I-DECLARED), whose exclusive bit this thread has set: it takes the
    /// bit off again then, and leaves the bytes alone.
    #[inline]
    fn is_shared(&self, hazards: &HazardPointers) -> bool {
        let is_shared = hazards.has(self.base);
        if is_shared {
            // Relaxed: the bytes are as they were. Readers that come now see those of the last change by the same word.
            self.header().fetch_and(!EXCLUSIVE, Ordering::Relaxed);
        }
        is_shared
    }

    /// Takes the writer bit. Once it has the exclusive bit too, it asks whether to share the bytes all the same.
    #[inline]
    fn take_writer(
        &self,
        wanted: WriteMode,
        is_shared: impl Fn(&Record<'g>) -> bool,
    ) -> Result<Entered<WriteLock<'g>>, Error> {
        let mut header = self.load(Ordering::Relaxed);
        loop {
            if header.has(DEAD) {
                return Ok(Entered::Dead);
            }
            if header.has(WRITER) {
                // A mover ends by itself, and so does a writer that has closed the record: waiting closes no circle.
                if !header.has(MOVING) {
                    may_wait(self.base)?;
                }
                return Ok(Entered::Busy);
            }
            let alone = wanted == WriteMode::InPlace && header.readers() == 0;
            let taken = header.0 | WRITER | if alone { EXCLUSIVE } else { 0 };
            // INVARIANT: I-VALUE, I-OWNER: the exclusive bit goes on only where no reader is inside,
            // the writer bit only where it was off. Acquire: pairs with the Release of the last
            // writer and of the last reader. SeqCst: I-DECLARED.
            match self.header().compare_exchange(
                header.0,
                taken,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let in_place = alone && !is_shared(self);
                    let access = if in_place { WriteMode::InPlace } else { WriteMode::Copy };
                    return Ok(Entered::Inside(self.locked(header, access)));
                }
                Err(now) => header = Header(now),
            }
        }
    }
}

/// A reader inside a record: the value's bytes stay as they are until dropped.
///
/// The readers of a [`CROWDED`] record each read a copy of their own.
pub(crate) struct ReadLock<'g> {
    record: Record<'g>,
    value: *const u8,
    value_len: usize,
}

impl<'g> ReadLock<'g> {
    /// The key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.record.key()
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        if self.value_len > 0 {
            sync::read_bytes(self.value);
        }
        // SAFETY: I-HELD; I-VALUE: this lock keeps the exclusive bit off.
        unsafe { std::slice::from_raw_parts(self.value, self.value_len) }
    }

    /// The same reader, which outlives the pin that found the record (I-HELD).
    ///
    /// # Safety
    /// `'m` ends before the map does.
    #[inline]
    pub(crate) unsafe fn unpinned<'m>(self) -> ReadLock<'m> {
        let lock = ManuallyDrop::new(self);
        let record = Record { base: lock.record.base, pinned: PhantomData };
        ReadLock { record, value: lock.value, value_len: lock.value_len }
    }

    /// Leaves the record and reads a copy of it.
    #[cold]
    fn into_copy(self) -> ReadLock<'g> {
        ReadLock::of_copy(self.key(), self.value())
    }

    /// A reader of a record of its own, on the heap.
    #[cold]
    fn of_copy(key: &[u8], value: &[u8]) -> ReadLock<'g> {
        let words = vec![0u64; record::bytes(key.len(), value.len()).div_ceil(8)];
        let base = Box::into_raw(words.into_boxed_slice()).cast::<u8>();
        let header = Header::fresh(key.len(), value.len()).0 | EXCLUSIVE;
        // SAFETY: new memory with room for the record, which is this reader's until `leave`.
        unsafe {
            Record::write(base, key, value);
            RawAtomicU64::init(base.cast(), header);
            let record = Record::new(base);
            ReadLock { record, value: record.value_ptr(key.len()), value_len: value.len() }
        }
    }
}

/// # Safety
/// `base` was made by `ReadLock::of_copy`, with this header, and nothing reads it any more.
#[cold]
unsafe fn free_copy(base: *mut u8, header: Header) {
    let words = record::bytes(header.key_len(), header.value_len()).div_ceil(8);
    // SAFETY: `of_copy` made a boxed slice of so many words.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(base.cast::<u64>(), words)) });
}

impl Drop for ReadLock<'_> {
    #[inline]
    fn drop(&mut self) {
        self.record.leave();
    }
}

/// A writer that has a record. Dropping it lets go, with the length it has then.
pub(crate) struct WriteLock<'g> {
    record: Record<'g>,
    access: WriteMode,
    key_len: usize,
    value_len: usize,
    buried: bool,
    _held: Held,
}

impl<'g> WriteLock<'g> {
    pub(crate) fn access(&self) -> WriteMode {
        self.access
    }

    pub(crate) fn value_len(&self) -> usize {
        self.value_len
    }

    pub(crate) fn key(&self) -> &'g [u8] {
        // SAFETY: I-HELD, I-KEY.
        unsafe { std::slice::from_raw_parts(self.record.base.add(HEADER_BYTES), self.key_len) }
    }

    /// The value, which no thread changes: this writer does not while the borrow lasts.
    pub(crate) fn value(&self) -> &[u8] {
        let value = self.record.value_ptr(self.key_len);
        if self.value_len > 0 {
            sync::read_bytes(value);
        }
        // SAFETY: I-HELD; the writer bit keeps every other writer out.
        unsafe { std::slice::from_raw_parts(value, self.value_len) }
    }

    /// Goes in as a reader besides, which may stay when this writer has gone.
    pub(crate) fn read(&self) -> ReadLock<'g> {
        debug_assert!(self.access == WriteMode::Copy, "no thread reads what is changed in place");
        let mut header = self.record.load(Ordering::Relaxed);
        while !header.has(CROWDED) {
            // Relaxed: this thread has seen the bytes when it became the writer.
            match self.record.header().compare_exchange(
                header.0,
                header.0 + READER,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let value = self.record.value_ptr(self.key_len);
                    return ReadLock { record: self.record, value, value_len: self.value_len };
                }
                Err(now) => header = Header(now),
            }
        }
        ReadLock::of_copy(self.key(), self.value())
    }

    /// Start of the value's bytes, to change them in place.
    pub(crate) fn value_ptr(&mut self) -> *mut u8 {
        assert!(self.access == WriteMode::InPlace, "readers may be inside");
        let value = self.record.value_ptr(self.key_len);
        sync::write_bytes(value);
        value
    }

    /// Gets alone with the bytes, if no reader is inside and none has declared the record.
    pub(crate) fn try_in_place(&mut self, hazards: &HazardPointers) -> WriteMode {
        if self.access == WriteMode::Copy {
            let header = self.record.load(Ordering::Relaxed);
            let alone = header.readers() == 0
                && self
                    .record
                    .header()
                    .compare_exchange(
                        header.0,
                        header.0 | EXCLUSIVE,
                        // Acquire: pairs with the Release of the last reader that left. SeqCst: I-DECLARED.
                        Ordering::SeqCst,
                        Ordering::Relaxed,
                    )
                    .is_ok();
            if alone && !self.record.is_shared(hazards) {
                self.access = WriteMode::InPlace;
            }
        }
        self.access
    }

    /// Sets the length that the value will have when the lock is dropped; in place only.
    pub(crate) fn set_value_len(&mut self, len: usize) {
        debug_assert!(self.access == WriteMode::InPlace);
        self.value_len = len;
    }

    /// Keeps readers from going in. In place they are out already; else those inside stay, the bytes stay as they are, and
    /// the record is to be buried (I-CLOSED).
    #[inline]
    pub(crate) fn close(&mut self) {
        if self.access == WriteMode::Copy {
            // INVARIANT: I-CLOSED. Relaxed: threads hear of it from the journal.
            self.record.header().fetch_or(EXCLUSIVE | MOVING, Ordering::Relaxed);
        }
    }

    /// Marks the record dead, for ever. Linearization point of a remove.
    pub(crate) fn bury(&mut self) {
        // Release: pairs with the Acquire in `is_dead`; the entry word of a
        // successor is visible before this.
        let before = self.record.header().fetch_or(DEAD, Ordering::AcqRel);
        debug_assert!(before & (DEAD | WRITER) == WRITER, "the writer buries, once");
        self.buried = true;
    }
}

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        let header = self.record.header();
        if self.access == WriteMode::Copy {
            // Release: pairs with the Acquire of the next writer.
            header.fetch_and(!(WRITER | EXCLUSIVE | MOVING), Ordering::Release);
            return;
        }
        // No other thread writes a header whose exclusive bit is on, so a store will do.
        let mut bare = Header::fresh(self.key_len, self.value_len).0;
        if self.buried {
            bare |= DEAD;
        }
        // Release: pairs with the Acquire of the next reader and writer.
        header.store(bare, Ordering::Release);
    }
}
