//! Reading and writing of records: one [`Form`] for each layout.
//!
//! # Invariants
//!
//! - I-PINNED: a [`Record`] is made from an address at or above `head` by a pinned thread, and its
//!   page stays mapped until that thread unpins.
//! - I-COMPLETE: a record is published by a Release store of its address after its last plain
//!   write; a thread that finds the address by Acquire may read its key by plain reads.
//! - I-STILL: the value of a record below `safe_read_only` never changes, but that of a fixed one
//!   by an edit (`log::edits`), which no snapshot shows and no copy misses. Above, a fixed value is
//!   one atomic word; a variable one is read under the record's reader count and written by the
//!   holder of WRITER and EXCLUSIVE alone, when the count is zero.
//!
//! | word | written | read |
//! |---|---|---|
//! | control: flags | writers by fetch_or and CAS, AcqRel | walks, writers: Acquire |
//! | control: readers | readers: fetch_add Acquire, fetch_sub Release | writers: CAS to EXCLUSIVE, Acquire |
//! | lengths | the holder of EXCLUSIVE | under the reader count, or below `safe_read_only` |
//! | value of a fixed record | puts: Release store; updates: AcqRel CAS | gets: Acquire |

use sapwood_mem::sync::{self, Ordering, RawAtomicU64};

use crate::error::{Error, Result};
use crate::record::address::Address;
use crate::record::hash;
use crate::record::layout::{KEY_BYTES_MAX, control, fixed, lengths, variable};

/// A record in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record(*mut u8);

impl Record {
    /// # Safety
    /// `base` is the first byte of a record, or of zeroed room for one, in a mapped page
    /// (I-PINNED), aligned to 8.
    #[inline]
    pub(crate) unsafe fn at(base: *mut u8) -> Record {
        debug_assert!(base.addr().is_multiple_of(8));
        Record(base)
    }

    #[inline]
    fn word(&self, offset: usize) -> &RawAtomicU64 {
        debug_assert!(offset.is_multiple_of(8));
        // SAFETY: I-PINNED; words of a record that are used as atomics are so by all threads.
        unsafe { &*self.0.add(offset).cast::<RawAtomicU64>() }
    }

    #[inline]
    pub(crate) fn control(&self) -> &RawAtomicU64 {
        self.word(0)
    }

    /// The address of the control word, to recognise a lock by.
    pub(crate) fn identity(&self) -> usize {
        std::ptr::from_ref(self.control()).addr()
    }

    #[inline]
    pub(crate) fn flags(&self) -> u64 {
        // Acquire: pairs with the Release of every thread that sets a flag.
        self.control().load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn previous(&self) -> Address {
        control::previous(self.control().load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn is_tombstone(&self) -> bool {
        self.flags() & control::TOMBSTONE != 0
    }

    /// Marks a record that is not the newest of its key any more; `flags` may add LATE. Answers its
    /// flags before.
    pub(crate) fn supersede(&self, flags: u64) -> u64 {
        // AcqRel: pairs with the Acquire in `flags`, and with `bury`, which sees it.
        self.control().fetch_or(control::SUPERSEDED | flags, Ordering::AcqRel)
    }

    /// Marks a record that was never published.
    pub(crate) fn abandon(&self) {
        let nowhere = control::NOWHERE | control::SUPERSEDED;
        self.control().fetch_or(nowhere, Ordering::AcqRel);
    }

    /// Makes a record in the mutable region a tombstone, if it is the newest of a present key. One
    /// of variable length is locked.
    pub(crate) fn bury(&self) -> Burial {
        let mut before = self.flags();
        loop {
            if before & control::TOMBSTONE != 0 {
                return Burial::Was;
            }
            if before & control::SUPERSEDED != 0 {
                return Burial::Superseded;
            }
            let buried = before | control::TOMBSTONE | control::SUPERSEDED;
            let word = self.control();
            // AcqRel: pairs with the Acquire in `flags`, and with `supersede`, which sees it.
            match word.compare_exchange(before, buried, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Burial::Done,
                Err(now) => before = now,
            }
        }
    }

    /// Tells edits that this fixed record below `safe_read_only` is being copied.
    pub(crate) fn claim(&self) {
        self.control().fetch_or(control::WRITER, Ordering::AcqRel);
    }

    /// Whether this fixed record is the newest of a present key, and no thread copies or holds it.
    #[inline(always)]
    pub(crate) fn is_unclaimed(&self) -> bool {
        let taken = control::WRITER | control::EXCLUSIVE;
        let flags = control::VALID | control::SUPERSEDED | control::TOMBSTONE | taken;
        self.flags() & flags == control::VALID
    }

    /// Keeps other threads from writing to this fixed record in place, from the next epoch on
    /// (I-HOLD, `ops::compute`); false if another thread does.
    pub(crate) fn hold(&self) -> bool {
        // Acquire: pairs with the Release in `let_go`. Release: pairs with the Acquire in `flags`.
        let before = self.control().fetch_or(control::EXCLUSIVE, Ordering::AcqRel);
        before & control::EXCLUSIVE == 0
    }

    /// Ends what `hold` began.
    pub(crate) fn let_go(&self) {
        // Release: pairs with the Acquire in `flags` and `hold`.
        self.control().fetch_and(!control::EXCLUSIVE, Ordering::Release);
    }

    /// Takes the record's writer lock: the flags, or `None` if another writer has it.
    pub(crate) fn try_lock(&self) -> Option<Writer> {
        // Acquire: pairs with the Release in Writer::drop.
        let before = self.control().fetch_or(control::WRITER, Ordering::Acquire);
        // Lazily: a Writer that is dropped unlocks.
        (before & control::WRITER == 0).then(|| Writer { record: *self })
    }

    /// Counts the caller as a reader: false while a writer changes the value.
    #[inline]
    fn try_read_lock(&self) -> bool {
        let before = self.control().fetch_add(control::READER, Ordering::Acquire);
        let refused = before & control::EXCLUSIVE != 0
            || control::readers(before) >= control::READERS_MAX - 64;
        if refused {
            // Release: as in `read_unlock`.
            self.control().fetch_add(control::READER.wrapping_neg(), Ordering::Release);
        }
        !refused
    }

    #[inline]
    fn read_unlock(&self) {
        // Release: pairs with the Acquire of a writer that goes exclusive.
        self.control().fetch_add(control::READER.wrapping_neg(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn fixed_value(&self) -> &RawAtomicU64 {
        self.word(fixed::VALUE)
    }

    /// Key and value of a fixed record below `safe_read_only`, or of zeroed room.
    #[inline(always)]
    pub(crate) fn fixed_words(&self) -> ([u8; 8], [u8; 8]) {
        // Relaxed: the boundary that it lies below was read after the last store.
        let word = |offset| self.word(offset).load(Ordering::Relaxed).to_le_bytes();
        (word(fixed::KEY), word(fixed::VALUE))
    }

    #[inline]
    fn lengths(&self) -> u64 {
        // Acquire: pairs with the Release in `try_write`.
        self.word(variable::LENGTHS).load(Ordering::Acquire)
    }

    /// Bytes that a plain read or write may touch.
    #[inline]
    fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: I-PINNED, and I-COMPLETE for keys, I-STILL for values.
        unsafe { std::slice::from_raw_parts(self.0.add(offset), len) }
    }

    /// Copies bytes into room that no other thread reads.
    fn fill(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: room that the tail gave to this thread alone, or I-STILL's exclusive holder.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(offset), bytes.len());
        }
    }
}

/// The outcome of a burial in place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Burial {
    Done,
    /// It was a tombstone.
    Was,
    /// Another record has taken its place.
    Superseded,
}

/// The writer lock of a record.
pub(crate) struct Writer {
    record: Record,
}

impl Writer {
    /// Whether the record is still the newest of a present key.
    pub(crate) fn is_current(&self) -> bool {
        self.record.flags() & (control::SUPERSEDED | control::TOMBSTONE) == 0
    }

    /// Writes a value in place, unless it does not fit or a thread reads.
    pub(crate) fn try_write(&self, value: &[u8]) -> bool {
        let lengths = self.record.lengths();
        if value.len() > lengths::room(lengths) {
            return false;
        }
        let word = self.record.control();
        let idle = word.load(Ordering::Relaxed);
        if control::readers(idle) != 0 {
            return false;
        }
        // Acquire: pairs with the Release of the last reader.
        let exclusive = idle | control::EXCLUSIVE;
        if word.compare_exchange(idle, exclusive, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let key_len = lengths::key_len(lengths);
        let offset = variable::value_offset(key_len);
        sync::write_bytes(self.record.bytes(offset, 0).as_ptr());
        self.record.fill(offset, value);
        let lengths = lengths::word(key_len, value.len(), lengths::room(lengths));
        // Release: pairs with the Acquire in `lengths`.
        self.record.word(variable::LENGTHS).store(lengths, Ordering::Release);
        // Release: pairs with the Acquire of the next reader.
        word.fetch_and(!control::EXCLUSIVE, Ordering::Release);
        true
    }

    /// The value, which only this thread may change.
    pub(crate) fn value(&self) -> &[u8] {
        Variable::value_of(&self.record)
    }

    /// The address of the lock, to recognise it by.
    pub(crate) fn identity(&self) -> usize {
        self.record.identity()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in try_lock.
        self.record.control().fetch_and(!control::WRITER, Ordering::Release);
    }
}

/// A value of variable length while it is read: I-STILL until it is dropped.
pub(crate) struct Reading {
    record: Record,
    counted: bool,
}

impl AsRef<[u8]> for Reading {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        Variable::value_of(&self.record)
    }
}

impl Drop for Reading {
    #[inline]
    fn drop(&mut self) {
        if self.counted {
            self.record.read_unlock();
        }
    }
}

impl Fixed {
    /// A key or a value as a word, if it has the bytes of one.
    #[inline(always)]
    pub(crate) fn word(bytes: &[u8]) -> Option<u64> {
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

/// A layout of keys and values.
pub(crate) trait Form: 'static {
    /// A key as the engine compares it.
    type Key<'k>: Copy;
    /// A value that is being read.
    type Value: AsRef<[u8]>;

    /// Checks a key's length.
    fn key(key: &[u8]) -> Result<Self::Key<'_>>;
    fn hash(key: Self::Key<'_>) -> u64;
    /// Checks a value's length against the bytes of a page.
    fn check_value(key: Self::Key<'_>, len: usize, page_bytes: usize) -> Result<()>;
    /// Bytes of a record with a value of this length.
    fn bytes(key: Self::Key<'_>, value_len: usize) -> usize;
    /// Writes a record into fresh room.
    fn write(record: Record, flags: u64, previous: Address, key: Self::Key<'_>, value: &[u8]);
    fn has_key(record: Record, key: Self::Key<'_>) -> bool;
    fn with_key<R>(record: Record, read: impl FnOnce(&[u8]) -> R) -> R;
    fn hash_of(record: Record) -> u64;
    /// Bytes of a record that is there.
    fn bytes_of(record: Record) -> usize;
    /// A value to read; `None` while a writer changes it. `still`: whether it lies below
    /// `safe_read_only`.
    fn value(record: Record, still: impl FnOnce() -> bool) -> Option<Self::Value>;
    /// Reads a key and a value that no thread changes.
    fn visit<R>(record: Record, visit: impl FnOnce(&[u8], &[u8]) -> R) -> R;
    /// Takes a record apart that was read from the disk: key, value.
    fn split(stored: &[u8]) -> Option<(&[u8], &[u8])>;
    /// Bytes of a stored record, from its first [`Form::PREFIX`] bytes; `None` if there is none.
    fn stored_bytes(prefix: &[u8]) -> Option<usize>;
    /// Bytes of a stored record up to the end of its key, from its first [`Form::PREFIX`] bytes.
    fn stored_key_end(prefix: &[u8]) -> Option<usize>;
    /// Whether a record can be read without a pin: all is atomic, and loads are Acquire of stores
    /// that are Release, so that a reader of a page that took another one's frame sees that by
    /// `head`. Not where a checker watches what frames hold.
    const READS_UNPINNED: bool;
    /// Bytes that tell how long a stored record is.
    const PREFIX: usize;
    /// Where its key begins.
    const KEY: usize;
    /// Bytes at which records begin, or 0 if each begins behind the one before.
    const STRIDE: usize;
    fn key_eq(key: Self::Key<'_>, stored: &[u8]) -> bool;
}

/// Keys and values of 8 bytes.
pub(crate) struct Fixed;

impl Form for Fixed {
    type Key<'k> = u64;
    type Value = [u8; 8];
    const READS_UNPINNED: bool = !cfg!(any(loom, miri, asan));
    const PREFIX: usize = fixed::BYTES;
    const KEY: usize = fixed::KEY;
    const STRIDE: usize = fixed::BYTES;

    #[inline]
    fn key(key: &[u8]) -> Result<u64> {
        match key.try_into() {
            Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
            Err(_) => Err(Error::KeyLength { len: key.len(), min: 8, max: 8 }),
        }
    }

    #[inline]
    fn hash(key: u64) -> u64 {
        hash::of_word(key)
    }

    #[inline]
    fn check_value(_: u64, len: usize, _: usize) -> Result<()> {
        if len == 8 { Ok(()) } else { Err(Error::ValueLength { len, min: 8, max: 8 }) }
    }

    #[inline]
    fn bytes(_: u64, _: usize) -> usize {
        fixed::BYTES
    }

    #[inline]
    fn write(record: Record, flags: u64, previous: Address, key: u64, value: &[u8]) {
        let value = value.try_into().map_or(0, u64::from_le_bytes);
        // Release, as `READS_UNPINNED` asks for.
        record.fixed_value().store(value, Ordering::Release);
        record.word(fixed::KEY).store(key, Ordering::Release);
        let word = control::VALID | flags | previous.units();
        // Release: pairs with the Acquire in `flags`.
        record.control().store(word, Ordering::Release);
    }

    #[inline]
    fn has_key(record: Record, key: u64) -> bool {
        // Acquire: pairs with the Release in `write`: see `READS_UNPINNED`.
        record.word(fixed::KEY).load(Ordering::Acquire) == key
    }

    #[inline]
    fn with_key<R>(record: Record, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&record.word(fixed::KEY).load(Ordering::Relaxed).to_le_bytes())
    }

    fn hash_of(record: Record) -> u64 {
        hash::of_word(record.word(fixed::KEY).load(Ordering::Relaxed))
    }

    fn bytes_of(_: Record) -> usize {
        fixed::BYTES
    }

    #[inline(always)]
    fn value(record: Record, _: impl FnOnce() -> bool) -> Option<[u8; 8]> {
        // Acquire: pairs with the Release of puts and updates.
        Some(record.fixed_value().load(Ordering::Acquire).to_le_bytes())
    }

    #[inline]
    fn visit<R>(record: Record, visit: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        let key = record.word(fixed::KEY).load(Ordering::Relaxed);
        // Acquire: pairs with the Release of puts and updates.
        let value = record.fixed_value().load(Ordering::Acquire);
        visit(&key.to_le_bytes(), &value.to_le_bytes())
    }

    fn split(stored: &[u8]) -> Option<(&[u8], &[u8])> {
        Some((stored.get(fixed::KEY..fixed::VALUE)?, stored.get(fixed::VALUE..fixed::BYTES)?))
    }

    fn stored_bytes(_: &[u8]) -> Option<usize> {
        Some(fixed::BYTES)
    }

    fn stored_key_end(_: &[u8]) -> Option<usize> {
        Some(fixed::VALUE)
    }

    fn key_eq(key: u64, stored: &[u8]) -> bool {
        stored == key.to_le_bytes()
    }
}

/// Keys and values of any length.
pub(crate) struct Variable;

impl Variable {
    fn value_of(record: &Record) -> &[u8] {
        let lengths = record.lengths();
        let offset = variable::value_offset(lengths::key_len(lengths));
        let value = record.bytes(offset, lengths::value_len(lengths));
        sync::read_bytes(value.as_ptr());
        value
    }

    fn key_of(record: &Record) -> &[u8] {
        let len = lengths::key_len(record.word(variable::LENGTHS).load(Ordering::Relaxed));
        record.bytes(variable::KEY, len)
    }
}

impl Form for Variable {
    type Key<'k> = &'k [u8];
    type Value = Reading;
    const READS_UNPINNED: bool = false;
    const PREFIX: usize = variable::KEY;
    const KEY: usize = variable::KEY;
    const STRIDE: usize = 0;

    #[inline]
    fn key(key: &[u8]) -> Result<&[u8]> {
        if (1..=KEY_BYTES_MAX).contains(&key.len()) {
            Ok(key)
        } else {
            Err(Error::KeyLength { len: key.len(), min: 1, max: KEY_BYTES_MAX })
        }
    }

    #[inline]
    fn hash(key: &[u8]) -> u64 {
        hash::of_bytes(key)
    }

    fn check_value(key: &[u8], len: usize, page_bytes: usize) -> Result<()> {
        let Some(max) = page_bytes.checked_sub(variable::value_offset(key.len())) else {
            let max = page_bytes.saturating_sub(variable::KEY) / 8 * 8;
            return Err(Error::KeyLength { len: key.len(), min: 1, max });
        };
        let max = (max / 8 * 8).min((1 << lengths::VALUE_BITS) - 8);
        if len <= max { Ok(()) } else { Err(Error::ValueLength { len, min: 0, max }) }
    }

    #[inline]
    fn bytes(key: &[u8], value_len: usize) -> usize {
        variable::bytes(key.len(), value_len)
    }

    fn write(record: Record, flags: u64, previous: Address, key: &[u8], value: &[u8]) {
        let room = value.len().next_multiple_of(8);
        let lengths = lengths::word(key.len(), value.len(), room);
        record.word(variable::LENGTHS).store(lengths, Ordering::Relaxed);
        record.fill(variable::KEY, key);
        let offset = variable::value_offset(key.len());
        sync::write_bytes(record.bytes(offset, 0).as_ptr());
        record.fill(offset, value);
        let word = control::VALID | flags | previous.units();
        // Release: pairs with the Acquire in `flags`.
        record.control().store(word, Ordering::Release);
    }

    #[inline]
    fn has_key(record: Record, key: &[u8]) -> bool {
        Variable::key_of(&record) == key
    }

    fn with_key<R>(record: Record, read: impl FnOnce(&[u8]) -> R) -> R {
        read(Variable::key_of(&record))
    }

    fn hash_of(record: Record) -> u64 {
        hash::of_bytes(Variable::key_of(&record))
    }

    fn bytes_of(record: Record) -> usize {
        let lengths = record.lengths();
        variable::bytes(lengths::key_len(lengths), lengths::room(lengths))
    }

    #[inline]
    fn value(record: Record, still: impl FnOnce() -> bool) -> Option<Reading> {
        let counted = !still();
        if counted && !record.try_read_lock() {
            return None;
        }
        Some(Reading { record, counted })
    }

    fn visit<R>(record: Record, visit: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        visit(Variable::key_of(&record), Variable::value_of(&record))
    }

    fn split(stored: &[u8]) -> Option<(&[u8], &[u8])> {
        let lengths = word_at(stored, variable::LENGTHS)?;
        let key_len = lengths::key_len(lengths);
        let value = variable::value_offset(key_len);
        let key = stored.get(variable::KEY..variable::KEY + key_len)?;
        Some((key, stored.get(value..value + lengths::value_len(lengths))?))
    }

    fn stored_bytes(prefix: &[u8]) -> Option<usize> {
        let lengths = word_at(prefix, variable::LENGTHS)?;
        let fits = lengths::value_len(lengths) <= lengths::room(lengths);
        let bytes = variable::bytes(lengths::key_len(lengths), lengths::room(lengths));
        (fits && lengths::key_len(lengths) > 0).then_some(bytes)
    }

    fn stored_key_end(prefix: &[u8]) -> Option<usize> {
        Some(variable::KEY + lengths::key_len(word_at(prefix, variable::LENGTHS)?))
    }

    fn key_eq(key: &[u8], stored: &[u8]) -> bool {
        key == stored
    }
}

/// A little-endian word of stored bytes.
pub(crate) fn word_at(stored: &[u8], offset: usize) -> Option<u64> {
    let bytes = stored.get(offset..offset + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().expect("8 bytes were cut")))
}
