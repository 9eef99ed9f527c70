//! A value under change, of a table of any kind.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::{Error, Result};

/// A value under change, in a closure of `update`. It dereferences to its bytes.
///
/// # Consistency
///
/// Readers see the value as it was before, or as the closure leaves it, and nothing in between.
/// After a panic of the closure, a value of an [`OrderedTable`](crate::OrderedTable) holds what was
/// written until then, and one of a [`HashTable`](crate::HashTable) is as before.
///
/// ```
/// use sapwood::{AnyTable, Db, HashTableOptions, OrderedTableOptions, ValueMut};
///
/// fn shout(value: &mut ValueMut<'_>) -> sapwood::Result<()> {
///     value.make_ascii_uppercase();
///     value.extend_from_slice(b"!")
/// }
///
/// let db = Db::in_memory();
/// let ordered = db.create_ordered_table("ordered", OrderedTableOptions::default())?;
/// let hash = db.create_hash_table("hash", HashTableOptions::default())?;
/// for table in [AnyTable::from(ordered), AnyTable::from(hash)] {
///     table.put(b"k", b"oak")?;
///     table.update(b"k", shout)?.expect("it was put")?;
///     assert_eq!(table.get(b"k")?.as_deref(), Some(&b"OAK!"[..]));
/// }
/// # Ok::<(), sapwood::Error>(())
/// ```
pub struct ValueMut<'a> {
    bytes: Bytes<'a>,
    table: &'a Arc<str>,
}

enum Bytes<'a> {
    Ordered(sapwood_chunkmap::ValueMut<'a>),
    Hash(sapwood_hashlog::ValueMut<'a>),
    Tree(sapwood_ptree::ValueMut<'a>),
    /// A copy, and which lengths it may have.
    Buffer(&'a mut Vec<u8>, &'a dyn Fn(usize) -> Result<()>),
}

impl<'a> ValueMut<'a> {
    #[inline]
    pub(crate) fn of_ordered(
        value: &'a mut sapwood_chunkmap::ValueMut<'_>,
        table: &'a Arc<str>,
    ) -> ValueMut<'a> {
        ValueMut { bytes: Bytes::Ordered(value.reborrow()), table }
    }

    #[inline]
    pub(crate) fn of_hash(
        value: &'a mut sapwood_hashlog::ValueMut<'_>,
        table: &'a Arc<str>,
    ) -> ValueMut<'a> {
        ValueMut { bytes: Bytes::Hash(value.reborrow()), table }
    }

    #[inline]
    pub(crate) fn of_tree(
        value: &'a mut sapwood_ptree::ValueMut<'_>,
        table: &'a Arc<str>,
    ) -> ValueMut<'a> {
        ValueMut { bytes: Bytes::Tree(value.reborrow()), table }
    }

    pub(crate) fn of_buffer(
        value: &'a mut Vec<u8>,
        expect_len: &'a dyn Fn(usize) -> Result<()>,
        table: &'a Arc<str>,
    ) -> ValueMut<'a> {
        ValueMut { bytes: Bytes::Buffer(value, expect_len), table }
    }

    /// Replaces the whole value.
    ///
    /// # Errors
    /// As [`resize`](Self::resize).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"old")?;
    /// table.update(b"k", |value| value.set(b"newer"))?.expect("it was put")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"newer"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn set(&mut self, value: impl AsRef<[u8]>) -> Result<()> {
        let value = value.as_ref();
        self.resize(value.len())?;
        self.copy_from_slice(value);
        Ok(())
    }

    /// Cuts the value, or grows it with zero bytes.
    ///
    /// # Errors
    /// [`Error::OrderedEngine`] or [`Error::HashEngine`] with `ValueLength` for a length that the
    /// table does not take, or `OutOfMemory`; the value is as before. An ordered table at its
    /// memory budget cannot wait for memory inside a closure, as it can in `put`: try again after
    /// it.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"oak")?;
    /// table.update(b"k", |value| value.resize(1))?.expect("it was put")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"o"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn resize(&mut self, len: usize) -> Result<()> {
        match &mut self.bytes {
            Bytes::Ordered(value) => value
                .resize(len)
                .map_err(|cause| Error::OrderedEngine { table: Arc::clone(self.table), cause }),
            Bytes::Hash(value) => value
                .resize(len)
                .map_err(|cause| Error::HashEngine { table: Arc::clone(self.table), cause }),
            Bytes::Tree(value) => value
                .resize(len)
                .map_err(|cause| Error::TreeEngine { table: Arc::clone(self.table), cause }),
            Bytes::Buffer(value, expect_len) => {
                expect_len(len)?;
                value.resize(len, 0);
                Ok(())
            }
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// As [`resize`](Self::resize).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"oak")?;
    /// table.update(b"k", |value| value.extend_from_slice(b"s"))?.expect("it was put")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"oaks"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn extend_from_slice(&mut self, tail: impl AsRef<[u8]>) -> Result<()> {
        let tail = tail.as_ref();
        let before = self.len();
        self.resize(before.saturating_add(tail.len()))?;
        self[before..].copy_from_slice(tail);
        Ok(())
    }
}

impl Deref for ValueMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Ordered(value) => value,
            Bytes::Hash(value) => value,
            Bytes::Tree(value) => value,
            Bytes::Buffer(value, _) => value,
        }
    }
}

impl DerefMut for ValueMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            Bytes::Ordered(value) => value,
            Bytes::Hash(value) => value,
            Bytes::Tree(value) => value,
            Bytes::Buffer(value, _) => value,
        }
    }
}

impl std::fmt::Debug for ValueMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValueMut").field("len", &self.len()).finish_non_exhaustive()
    }
}
