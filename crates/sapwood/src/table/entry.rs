//! An entry that iterators and neighbours answer.

use std::fmt;

/// A key and its value: in place while it is held, or copied.
///
/// An ordered table shows the bytes where they are. They stay as they are for as long as the entry lives: a thread
/// that updates or removes the entry meanwhile changes a copy. Hash tables, tree tables and transactions answer
/// copies.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
/// table.put(b"oak", b"quercus")?;
/// let entry = table.first()?.expect("one entry");
/// assert_eq!((entry.key(), entry.value()), (&b"oak"[..], &b"quercus"[..]));
/// let (key, value) = entry.into_pair();
/// table.put(key, [value, b" robur".to_vec()].concat())?;
/// # Ok::<(), sapwood::Error>(())
/// ```
pub struct Entry<'a>(Bytes<'a>);

enum Bytes<'a> {
    InPlace(sapwood_chunkmap::Entry<'a>),
    Copied(Vec<u8>, Vec<u8>),
}

impl<'a> Entry<'a> {
    #[inline]
    pub(crate) fn in_place(entry: sapwood_chunkmap::Entry<'a>) -> Entry<'a> {
        Entry(Bytes::InPlace(entry))
    }

    #[inline]
    pub(crate) fn copied((key, value): (Vec<u8>, Vec<u8>)) -> Entry<'a> {
        Entry(Bytes::Copied(key, value))
    }

    /// The key's bytes.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// let entry = table.first()?.expect("one entry");
    /// assert_eq!(entry.key(), b"oak");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn key(&self) -> &[u8] {
        match &self.0 {
            Bytes::InPlace(entry) => entry.key(),
            Bytes::Copied(key, _) => key,
        }
    }

    /// The value's bytes.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// let entry = table.first()?.expect("one entry");
    /// assert_eq!(entry.value(), b"quercus");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn value(&self) -> &[u8] {
        match &self.0 {
            Bytes::InPlace(entry) => entry.value(),
            Bytes::Copied(_, value) => value,
        }
    }

    /// The key and the value as owned bytes.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// let entry = table.first()?.expect("one entry");
    /// assert_eq!(entry.into_pair(), (b"oak".to_vec(), b"quercus".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn into_pair(self) -> (Vec<u8>, Vec<u8>) {
        match self.0 {
            Bytes::InPlace(entry) => entry.to_owned(),
            Bytes::Copied(key, value) => (key, value),
        }
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key().escape_ascii().to_string())
            .field("value_len", &self.value().len())
            .finish()
    }
}
