//! The operations of a hash table whose closures decide, and owned entries.

use crate::{Compute, Computed, HashTable, Result};

impl HashTable {
    /// Removes a key and shows its value to `read`, afterwards: the entry is gone by then, also if
    /// `read` panics. `None` if the key is not there.
    ///
    /// # Errors
    /// As [`compute`](Self::compute); the entry is as it was.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"gone")?;
    /// assert_eq!(table.remove_with(b"k", |value| value.len())?, Some(4));
    /// assert_eq!(table.remove_with(b"k", |value| value.len())?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.change_key(key.as_ref(), || self.named(self.log().remove_with(key.as_ref(), read)))
    }

    /// Shows the value of a key, or `None`, to a closure that decides what becomes of it, in one
    /// step for every other thread.
    ///
    /// The closure may run again, on a newer value, when another thread gets between; the last run
    /// counts. With [`RecordLayout::Fixed8`](crate::RecordLayout::Fixed8) a removal may wait until
    /// closures of other threads have ended.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_with`](Self::get_with); inside a closure that reads or
    /// changes a value also `Reentrant` or `WouldBlock`
    /// ([`HashEngineError`](crate::HashEngineError)). The entry is as it was.
    ///
    /// # Panics
    /// If the closure does; the entry is as it was.
    ///
    /// ```
    /// # use sapwood::{Compute, Computed, Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// let count_down = |value: Option<&[u8]>| match value {
    ///     None => Compute::Replace(vec![1]),
    ///     Some([0]) => Compute::Remove,
    ///     Some(left) => Compute::Replace(vec![left[0] - 1]),
    /// };
    /// assert_eq!(table.compute(b"k", count_down)?, Computed::Inserted);
    /// assert_eq!(table.compute(b"k", count_down)?, Computed::Replaced);
    /// assert_eq!(table.compute(b"k", count_down)?, Computed::Removed);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn compute(
        &self,
        key: impl AsRef<[u8]>,
        decide: impl FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        self.change_key(key.as_ref(), || self.named(self.log().compute(key.as_ref(), decide)))
    }

    /// Removes the entries of which `keep` says false, and answers how many. An entry that is put
    /// meanwhile may be asked about or not. Not atomic as a whole; writers go on.
    ///
    /// An entry is removed as it was when `keep` refused it: one that a writer changes meanwhile is
    /// asked about again.
    ///
    /// # Errors
    /// As [`for_each`](Self::for_each) and [`compute`](Self::compute); some entries may be gone by
    /// then.
    ///
    /// # Panics
    /// If `keep` does; the entry that it was asked about is there.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// assert_eq!(table.retain(|_key, value| value == b"2")?, 2);
    /// assert_eq!(table.get(b"b")?.as_deref(), Some(&b"2"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn retain(&self, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        self.change_any(|| self.named(self.log().retain(keep)))
    }

    /// The entries, owned, in no order. A key that is there from the call to the iterator's end
    /// comes exactly once, with a value that it had meanwhile. Of a key that is put or removed
    /// meanwhile the entry may come or not.
    ///
    /// A few hundred entries are in memory at a time, more in a table of many millions. Nothing
    /// waits for the iterator: not writers, not a checkpoint. An error is the last item.
    ///
    /// # Errors
    /// Each step may answer as [`for_each`](Self::for_each).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let mut entries = table.iter().collect::<Result<Vec<_>, _>>()?;
    /// entries.sort();
    /// assert_eq!(entries[0], (b"a".to_vec(), b"1".to_vec()));
    /// assert_eq!(entries.len(), 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + '_ {
        self.log().iter().map(|entry| self.named(entry))
    }
}
