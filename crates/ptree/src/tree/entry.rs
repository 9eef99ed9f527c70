//! Entries: a key and its value in two words, and the record that has the rest.
//!
//! A node of any tree holds entries of two words, `a` and `b`:
//!
//! | layout | `a` | `b` |
//! |---|---|---|
//! | fixed | the key, 8 bytes, big endian | the value, 8 bytes, little endian |
//! | bytes | the first 8 bytes of the key, big endian, zeros behind a shorter one | record's name (48 bits), length of the key (16 bits) |
//!
//! ```text
//! record: header | value's length (32 bits) | key from byte 8 on, in words, big endian | value, in words, little endian
//! ```
//! Words of keys compare as their bytes do (an order-preserving prefix: Graefe and Larson: "B-tree
//! indexes and CPU caches", ICDE 2001), so that a search rarely leaves the nodes.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::heap::layout::OBJECT_WORDS_MAX;
use crate::object::{ObjectId, ObjectType, Word, load};
use crate::transaction::Transaction;
use crate::view::View;

/// Bytes of the longest key.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Bytes of the longest value: 128 MiB.
pub const VALUE_BYTES_MAX: usize = 128 << 20;

/// Words of a record in front of its key.
const RECORD_HEAD: usize = 2;

/// What keys and values a tree takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TreeLayout {
    /// Keys of 0 to [`KEY_BYTES_MAX`] bytes, and values of 0 to [`VALUE_BYTES_MAX`].
    #[default]
    Bytes,
    /// Keys of 8 bytes and values of 8 bytes, which lie in the nodes themselves.
    Fixed,
}

/// A key with its value, as a node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) a: u64,
    pub(crate) b: u64,
}

/// A key that is searched for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe<'k> {
    pub(crate) key: &'k [u8],
    /// Its first 8 bytes, as `a` of an entry has them.
    pub(crate) head: u64,
}

impl<'k> Probe<'k> {
    #[inline]
    pub(crate) fn new(key: &'k [u8]) -> Probe<'k> {
        Probe { key, head: key_word(key) }
    }

    /// The part that a record has.
    #[inline]
    pub(crate) fn rest(self) -> &'k [u8] {
        self.key.get(8..).unwrap_or(&[])
    }
}

/// The first 8 bytes of a key, or of what is left of it, as a word that compares as they do.
#[inline]
pub(crate) fn key_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        }
    }
}

fn value_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }
    }
}

impl Entry {
    /// The record of an entry of layout `Bytes`.
    #[inline]
    pub(crate) fn record(self) -> ObjectId {
        ObjectId::new(self.b & ((1 << 48) - 1))
    }

    /// Bytes of the key of an entry of layout `Bytes`.
    #[inline]
    pub(crate) fn key_len(self) -> usize {
        (self.b >> 48) as usize
    }

    /// Words of the key that the record has.
    #[inline]
    fn rest_words(self) -> usize {
        self.key_len().saturating_sub(8).div_ceil(8)
    }

    /// The part of the key that the record has, of an entry of layout `Bytes`.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn rest(self, view: &impl View) -> Result<&[Word]> {
        match self.rest_words() {
            0 => Ok(&[]),
            words => Ok(&view.object(self.record(), RECORD_HEAD + words)?[RECORD_HEAD..]),
        }
    }
}

impl TreeLayout {
    /// How many bytes keys may have.
    pub fn key_bytes(self) -> RangeInclusive<usize> {
        match self {
            TreeLayout::Bytes => 0..=KEY_BYTES_MAX,
            TreeLayout::Fixed => 8..=8,
        }
    }

    /// How many bytes values may have.
    pub fn value_bytes(self) -> RangeInclusive<usize> {
        match self {
            TreeLayout::Bytes => 0..=VALUE_BYTES_MAX,
            TreeLayout::Fixed => 8..=8,
        }
    }

    /// # Errors
    /// [`Error::KeyLength`].
    pub(crate) fn check_key(self, key: &[u8]) -> Result<()> {
        let (len, lens) = (key.len(), self.key_bytes());
        match lens.contains(&len) {
            true => Ok(()),
            false => Err(Error::KeyLength { len, min: *lens.start(), max: *lens.end() }),
        }
    }

    /// # Errors
    /// [`Error::ValueLength`].
    pub(crate) fn check_value(self, value: &[u8]) -> Result<()> {
        self.check_value_len(value.len())
    }

    /// # Errors
    /// [`Error::ValueLength`].
    pub(crate) fn check_value_len(self, len: usize) -> Result<()> {
        let lens = self.value_bytes();
        match lens.contains(&len) {
            true => Ok(()),
            false => Err(Error::ValueLength { len, min: *lens.start(), max: *lens.end() }),
        }
    }

    /// The order of a key and the key of an entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline]
    pub(crate) fn compare(
        self,
        view: &impl View,
        key: Probe<'_>,
        entry: Entry,
    ) -> Result<Ordering> {
        match key.head.cmp(&entry.a) {
            Ordering::Equal if self == TreeLayout::Bytes => compare_rest(view, key, entry),
            order => Ok(order),
        }
    }

    /// The key of an entry, appended to `into`.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn read_key(
        self,
        view: &impl View,
        entry: Entry,
        into: &mut impl Extend<u8>,
    ) -> Result<()> {
        let head = entry.a.to_be_bytes();
        if self == TreeLayout::Fixed {
            into.extend(head);
            return Ok(());
        }
        let len = entry.key_len();
        into.extend(head.into_iter().take(len));
        if len > 8 {
            let bytes = entry.rest(view)?.iter().flat_map(|word| load(word).to_be_bytes());
            into.extend(bytes.take(len - 8));
        }
        Ok(())
    }

    /// The key of an entry in place of what is in `into`. For checks: what a short key leaves of
    /// its word must be zeros.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn check_key_of(
        self,
        view: &impl View,
        entry: Entry,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        into.clear();
        self.read_key(view, entry, into)?;
        match key_word(into) == entry.a {
            true => Ok(()),
            false => Err(Error::corrupt(
                entry.record().index(),
                format!("a key of {} bytes is longer in its node", into.len()),
            )),
        }
    }

    /// The value of an entry, appended to `into`.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn read_value(
        self,
        view: &impl View,
        entry: Entry,
        into: &mut impl Extend<u8>,
    ) -> Result<()> {
        if self == TreeLayout::Fixed {
            into.extend(entry.b.to_le_bytes());
            return Ok(());
        }
        let (len, words) = value_words(view, entry)?;
        into.extend(words.iter().flat_map(|word| load(word).to_le_bytes()).take(len));
        Ok(())
    }

    /// Makes an entry, with a record where the layout has one.
    ///
    /// # Errors
    /// Those of the lengths, [`Error::OutOfMemory`].
    pub(crate) fn make(self, tx: &Transaction<'_>, key: Probe<'_>, value: &[u8]) -> Result<Entry> {
        self.check_key(key.key)?;
        self.check_value(value)?;
        if self == TreeLayout::Fixed {
            return Ok(Entry { a: key.head, b: value_word(value) });
        }
        let rest = key.rest();
        let words = RECORD_HEAD + rest.len().div_ceil(8) + value.len().div_ceil(8);
        let (id, record) = tx.make(ObjectType::RECORD, words)?;
        for (index, bytes) in rest.chunks(8).enumerate() {
            record.set(RECORD_HEAD + index, key_word(bytes));
        }
        record.set(1, value.len() as u64);
        for (index, bytes) in value.chunks(8).enumerate() {
            record.set(RECORD_HEAD + rest.len().div_ceil(8) + index, value_word(bytes));
        }
        Ok(Entry { a: key.head, b: id.word() | (key.key.len() as u64) << 48 })
    }

    /// Gives an entry another value; the entry as it is then. The record stays where it is if the
    /// value has as many words.
    ///
    /// # Errors
    /// As of [`TreeLayout::make`].
    pub(crate) fn replace(
        self,
        tx: &Transaction<'_>,
        key: Probe<'_>,
        entry: Entry,
        value: &[u8],
    ) -> Result<Entry> {
        self.check_value(value)?;
        if self == TreeLayout::Fixed {
            return Ok(Entry { b: value_word(value), ..entry });
        }
        let (old_len, _) = value_words(tx, entry)?;
        let at = RECORD_HEAD + entry.rest_words();
        let (old, new) = (at + old_len.div_ceil(8), at + value.len().div_ceil(8));
        if new != old {
            tx.free(entry.record())?;
            return self.make(tx, key, value);
        }
        let record = tx.edit(entry.record(), old)?;
        if value.len() != old_len {
            record.set(1, value.len() as u64);
        }
        for (index, bytes) in value.chunks(8).enumerate() {
            // What is set is logged: words that stay the same are left alone.
            if record.get(at + index) != value_word(bytes) {
                record.set(at + index, value_word(bytes));
            }
        }
        Ok(entry)
    }

    /// Frees what an entry has besides its two words.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn free(self, tx: &Transaction<'_>, entry: Entry) -> Result<()> {
        match self {
            TreeLayout::Fixed => Ok(()),
            TreeLayout::Bytes => tx.free(entry.record()),
        }
    }

    /// The record of an entry, if it has one: for walks that count objects.
    pub(crate) fn record_of(self, entry: Entry) -> Option<ObjectId> {
        (self == TreeLayout::Bytes).then(|| entry.record())
    }

    pub(crate) fn stored(self) -> u64 {
        match self {
            TreeLayout::Bytes => 1,
            TreeLayout::Fixed => 2,
        }
    }

    pub(crate) fn from_stored(code: u64) -> Option<TreeLayout> {
        [TreeLayout::Bytes, TreeLayout::Fixed].into_iter().find(|layout| layout.stored() == code)
    }
}

#[cold]
fn compare_rest(view: &impl View, key: Probe<'_>, entry: Entry) -> Result<Ordering> {
    let rest = key.rest();
    if !rest.is_empty() {
        for (bytes, word) in rest.chunks(8).zip(entry.rest(view)?) {
            match key_word(bytes).cmp(&load(word)) {
                Ordering::Equal => {}
                order => return Ok(order),
            }
        }
    }
    Ok(key.key.len().cmp(&entry.key_len()))
}

/// Bytes of the value, and its words.
fn value_words(view: &impl View, entry: Entry) -> Result<(usize, &[Word])> {
    let head = view.object(entry.record(), RECORD_HEAD)?;
    let len = load(&head[1]) as usize;
    let at = RECORD_HEAD + entry.rest_words();
    let words = at + len.div_ceil(8);
    if len > VALUE_BYTES_MAX || words > OBJECT_WORDS_MAX {
        return Err(Error::corrupt(entry.record().index(), "a record's value is too long"));
    }
    Ok((len, &view.object(entry.record(), words)?[at..]))
}
