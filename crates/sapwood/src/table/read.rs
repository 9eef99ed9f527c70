//! Verbs that read single keys.

use super::{Keyed, Stored, Table};
use crate::Result;

impl<E: Keyed> Table<E> {
    /// Reads a value in place; answers what `read` answers, or `None` without the key.
    ///
    /// A value of a hash table that is on the disk is read into a buffer first; one of a tree table is copied.
    ///
    /// # Errors
    /// [The engine's](Table#errors).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get_with(b"oak", |value| value.len())?, Some(7));
    /// assert_eq!(table.get_with(b"elm", |value| value.len())?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline(always)]
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        E::get_with(self, key.as_ref(), read)
    }

    /// Copies a value out.
    ///
    /// # Errors
    /// The errors of [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert_eq!(table.get(b"oak")?.as_deref(), Some(&b"quercus"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        E::get_with(self, key.as_ref(), <[u8]>::to_vec)
    }

    /// True if the table has the key.
    ///
    /// # Errors
    /// The errors of [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"oak", b"quercus")?;
    /// assert!(table.contains_key(b"oak")?);
    /// assert!(!table.contains_key(b"elm")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        E::contains_key(self, key.as_ref())
    }

    /// Reads a counter that [`add`](Self::add) makes; `None` without the key.
    ///
    /// # Errors
    /// `NotACounter` of the engine if the value does not have 8 bytes; otherwise those of
    /// [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let hits = Db::in_memory().create_ordered_table("hits", OrderedTableOptions::default())?;
    /// hits.add(b"/index.html", 42)?;
    /// assert_eq!(hits.get_counter(b"/index.html")?, Some(42));
    /// assert_eq!(hits.get_counter(b"/other.html")?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_counter(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>> {
        self.get_with(key, |value| self.counter(value))?.transpose()
    }

    /// Calls `read(i, value)` once for each `keys[i]`, in any order: faster than single calls on a table
    /// larger than the caches, since the searches overlap.
    ///
    /// # Errors
    /// The errors of [`get_with`](Self::get_with), at the first key that is refused; `read` was called for others.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("elm", "ulmus"), ("oak", "quercus")])?;
    /// let mut lens = [None; 3];
    /// table.get_many(&["oak", "ash", "elm"], |index, value| lens[index] = value.map(<[u8]>::len))?;
    /// assert_eq!(lens, [Some(7), None, Some(5)]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        E::get_many(self, keys, read)
    }

    /// The number of entries: exact while nothing changes the table.
    ///
    /// It costs nothing, except for a hash table in a directory, which walks all entries:
    /// [`len_estimate`](Self::len_estimate) does not.
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len(&self) -> Result<usize> {
        E::len(self)
    }

    /// True if the table has no entry. A hash table in a directory walks to its first entry for it.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// assert!(table.is_empty()?);
    /// table.put(b"k", b"v")?;
    /// assert!(!table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        E::is_empty(self)
    }
}

impl<E: Stored> Table<E> {
    /// An estimate of the number of entries, at no cost: exact for a table in memory while nothing changes it.
    ///
    /// A hash table in a directory does not read a record from the disk to learn whether a put replaces it, and
    /// takes it that it does. Each such put after a removal leaves the estimate one too low until
    /// [`len`](Self::len) corrects it, down to 0 in a full table: decide nothing by it.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// assert_eq!(table.len_estimate(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn len_estimate(&self) -> usize {
        E::len_estimate(self)
    }

    /// The entries and the memory of the table, with every byte accounted for: [`OrderedStats`](crate::OrderedStats),
    /// [`HashStats`](crate::HashStats), [`TreeStats`](crate::TreeStats), or [`TableStats`](crate::TableStats) for any of
    /// them.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"key", b"value")?;
    /// let stats = table.stats();
    /// assert_eq!((stats.entries, stats.key_bytes, stats.value_bytes), (1, 3, 5));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn stats(&self) -> E::Stats {
        E::stats(self)
    }

    /// Verifies the engine's invariants. Call it while nothing changes the table.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), [`Error::HashCorrupt`](crate::Error::HashCorrupt) or
    /// [`Error::TreesCorrupt`](crate::Error::TreesCorrupt): the first invariant that does not hold, and where.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// table.check()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        E::check(self)
    }
}
